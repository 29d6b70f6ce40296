/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax and LogSoftmax along the last dimension. */
#include <core/base/alloc.h>
#include <math.h>
#include <ops/kernel/elements/half.h>
#include <ops/kernel/elements/vector_math.h>
#include <ops/kernel/elements/vectors.h>
#include <ops/kernel/family.h>
#include <ops/kernel/reduce/reduce_loops.h>
#include <ops/kernel/shapes.h>
#include <ops/nn/soften.h>
#include <string.h>

/* Elements processed together: they stay in the L1 cache. */
#define BLOCK 1024
/* Rows shorter than this are processed many at a time. */
#define SHORT_ROW 64
#define NS_PER_ELEMENT 0.5

/* ---- loops ---- */

/* out = exp(x - most); out = x - a - b; out = x * by */
#define EXP_FOR(fused, count) \
  TN__IVDEP                   \
  for (int64_t i = 0; i < (count); i++) out[i] = tn__expf_below_by(fused, x[i] - most);
#define LESS_FOR(count) \
  TN__IVDEP             \
  for (int64_t i = 0; i < (count); i++) out[i] = x[i] - a - b;
#define SCALE_FOR(count) \
  TN__IVDEP              \
  for (int64_t i = 0; i < (count); i++) out[i] = x[i] * by;
TN__APART static void exp_row(const float *x, float most, float *out, int64_t n) { EXP_FOR(0, n) }
TN__APART static void less_row(const float *x, float a, float b, float *out, int64_t n) { LESS_FOR(n) }
TN__APART static void scale_row(const float *x, float by, float *out, int64_t n) { SCALE_FOR(n) }

#define EXP_WIDE(name, end, attribute)                                                        \
  attribute static void name##_##end(const float *x, float most, float *out, int64_t n)       \
  {                                                                                           \
    int64_t whole = n & -INT64_C(16);                                                         \
    EXP_FOR(0, whole)                                                                        \
    if (whole < n) name(x + whole, most, out + whole, n - whole);                             \
  }
#define LESS_WIDE(name, end, attribute)                                                       \
  attribute static void name##_##end(const float *x, float a, float b, float *out, int64_t n) \
  {                                                                                           \
    int64_t whole = n & -INT64_C(16);                                                         \
    LESS_FOR(whole)                                                                           \
    if (whole < n) name(x + whole, a, b, out + whole, n - whole);                             \
  }
#define SCALE_WIDE(name, end, attribute)                                                      \
  attribute static void name##_##end(const float *x, float by, float *out, int64_t n)         \
  {                                                                                           \
    int64_t whole = n & -INT64_C(16);                                                         \
    SCALE_FOR(whole)                                                                          \
    if (whole < n) name(x + whole, by, out + whole, n - whole);                               \
  }
#define EXP_WHOLE(name, end, attribute) \
  attribute static void name##_##end(const float *x, float most, float *out, int64_t n) { EXP_FOR(1, n) }
TN__AVX2_LOOPS(EXP_WIDE, exp_row)
TN__FUSED_LOOPS(EXP_WHOLE, exp_row)
TN__AVX2_LOOPS(LESS_WIDE, less_row)
TN__AVX2_LOOPS(SCALE_WIDE, scale_row)

typedef struct loops {
  void (*exp)(const float *x, float most, float *out, int64_t n);
  void (*less)(const float *x, float a, float b, float *out, int64_t n);
  void (*scale)(const float *x, float by, float *out, int64_t n);
  tn__soften_fn soften;
} loops;

static loops loops_for(bool reproducible)
{
  static void (*const exps[])(const float *, float, float *, int64_t) = TN__FUSED_FNS(exp_row);
  static void (*const lesses[])(const float *, float, float, float *, int64_t) = TN__AVX2_FNS(less_row);
  static void (*const scales[])(const float *, float, float *, int64_t) = TN__AVX2_FNS(scale_row);
  int v = tn__vectors_for(reproducible);
  return (loops){ exps[v], lesses[v], scales[v], tn__soften_for(reproducible) };
}

/* ---- rows ---- */

typedef struct softmax_state softmax_state;
typedef void (*rows_fn)(const softmax_state *s, const loops *l, const void *in, int64_t rows, int64_t n, void *out);

struct softmax_state {
  rows_fn fn;
  const tn__reduce_loops *sum; /* for float */
  const tn__reduce_loops *max; /* for the dtype of the elements; accumulates in float */
  void (*load)(const uint16_t *from, float *to, int64_t n); /* load, store: for half and bfloat16 */
  void (*store)(const float *from, uint16_t *to, int64_t n);
  size_t element;
  bool log;
};

static float largest(const softmax_state *s, const void *row, int64_t n)
{
  float most;
  s->max->init(&most, 1);
  s->max->rows(&most, row, n, n, 1);
  return most;
}

static void long_row(const softmax_state *s, const loops *l, const float *in, int64_t n, float *out)
{
  if (!s->log) {
    float unused;
    const double total = l->soften(in, n, out, &unused);
    l->scale(out, 1.0f / (float)total, out, n);
    return;
  }
  const float most = largest(s, in, n);
  double sum = 0;
  float part[BLOCK];
  for (int64_t at = 0, m; at < n; at += m) {
    m = n - at < BLOCK ? n - at : BLOCK;
    l->exp(in + at, most, part, m);
    s->sum->rows(&sum, part, m, m, 1);
  }
  l->less(in, most, logf((float)sum), out, n);
}

/* For rows that may be shorter than a vector: computes the exponentials of all rows at once. Requires rows * n <=
 * BLOCK. */
static void short_rows(const softmax_state *s, const loops *l, const float *in, int64_t rows, int64_t n, float *out)
{
  float part[BLOCK], most[BLOCK];
  double sum[BLOCK];
  s->max->init(most, rows);
  s->max->rows(most, in, n, n, rows);
  s->sum->init(sum, rows);
  for (int64_t r = 0; r < rows; r++)
    for (int64_t i = 0; i < n; i++) part[r * n + i] = in[r * n + i] - most[r];
  float *powers = s->log ? out : part;
  if (s->log) memcpy(out, part, (size_t)(rows * n) * sizeof *out);
  l->exp(part, 0, part, rows * n);
  s->sum->rows(sum, part, n, n, rows);
  for (int64_t r = 0; r < rows; r++) {
    float total = (float)sum[r], by = s->log ? logf(total) : 1.0f / total;
    if (s->log)
      for (int64_t i = 0; i < n; i++) out[r * n + i] = powers[r * n + i] - by;
    else
      for (int64_t i = 0; i < n; i++) out[r * n + i] = powers[r * n + i] * by;
  }
}

static void rows_f32(const softmax_state *s, const loops *l, const void *from, int64_t rows, int64_t n, void *to)
{
  const float *in = from;
  float *out = to;
  int64_t together = n < SHORT_ROW ? BLOCK / n : 1;
  for (int64_t r = 0, k; r < rows; r += k) {
    k = rows - r < together ? rows - r : together;
    if (n < SHORT_ROW) short_rows(s, l, in + r * n, k, n, out + r * n);
    else long_row(s, l, in + r * n, n, out + r * n);
  }
}

static void row_f64(const softmax_state *s, const double *in, int64_t n, double *out)
{
  double most = -(double)INFINITY, total = 0;
  for (int64_t i = 0; i < n; i++) most = in[i] > most ? in[i] : most;
  if (s->log) {
    for (int64_t i = 0; i < n; i++) total += exp(in[i] - most);
    double shift = log(total);
    for (int64_t i = 0; i < n; i++) out[i] = in[i] - most - shift;
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    out[i] = exp(in[i] - most);
    total += out[i];
  }
  for (int64_t i = 0; i < n; i++) out[i] /= total;
}

static void rows_f64(const softmax_state *s, const loops *l, const void *in, int64_t rows, int64_t n, void *out)
{
  for (int64_t r = 0; r < rows; r++) row_f64(s, (const double *)in + r * n, n, (double *)out + r * n);
}

/* half and bfloat16 are computed in float, block by block. Exponentials are computed twice, as there is no room to
 * store them. */
static void row_short(const softmax_state *s, const loops *l, const uint16_t *in, int64_t n, uint16_t *out)
{
  float part[BLOCK], most = largest(s, in, n);
  double sum = 0;
  for (int64_t at = 0, m; at < n; at += m) {
    m = n - at < BLOCK ? n - at : BLOCK;
    s->load(in + at, part, m);
    l->exp(part, most, part, m);
    s->sum->rows(&sum, part, m, m, 1);
  }
  const float shift = logf((float)sum), scale = 1.0f / (float)sum;
  for (int64_t at = 0, m; at < n; at += m) {
    m = n - at < BLOCK ? n - at : BLOCK;
    s->load(in + at, part, m);
    if (s->log) {
      l->less(part, most, shift, part, m);
    } else {
      l->exp(part, most, part, m);
      l->scale(part, scale, part, m);
    }
    s->store(part, out + at, m);
  }
}

static void rows_short(const softmax_state *s, const loops *l, const void *in, int64_t rows, int64_t n, void *out)
{
  for (int64_t r = 0; r < rows; r++) row_short(s, l, (const uint16_t *)in + r * n, n, (uint16_t *)out + r * n);
}

/* ---- kernel ---- */

static tn_status softmax_create(const tn_operation *op, void **state, tn_error *err)
{
  *state = NULL;
  tn_dtype dtype = tn_operation_input_dtype(op, 0);
  bool half = dtype == TN_HALF, is_short = half || dtype == TN_BFLOAT16;
  if (!is_short && dtype != TN_FLOAT && dtype != TN_DOUBLE) return tn__no_kernel(err, op, dtype);
  softmax_state *s = tn__zalloc(sizeof *s);
  if (s == NULL) return tn__no_memory(err, "state of Softmax", sizeof *s);
  s->fn = dtype == TN_FLOAT ? rows_f32 : rows_f64;
  if (is_short) s->fn = rows_short;
  s->sum = tn__reduce_loops_find(TN__REDUCE_SUM, TN_FLOAT);
  s->max = tn__reduce_loops_find(TN__REDUCE_MAX, dtype);
  s->load = half ? tn__half_to_floats : tn__bfloat16_to_floats;
  s->store = half ? tn__half_from_floats : tn__bfloat16_from_floats;
  s->element = tn_dtype_size(dtype);
  s->log = strcmp(tn_operation_type(op), "LogSoftmax") == 0;
  *state = s;
  return TN_OK;
}

static void softmax_destroy(void *state) { tn__free(state, sizeof(softmax_state)); }

static tn_status softmax_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank_at_least(ctx, 0, 1, err);
  if (st != TN_OK) return st;
  ctx->cost_ns = 30 + NS_PER_ELEMENT * (double)ctx->inputs[0].count;
  return tn__prepare_unchanged(ctx, err);
}

typedef struct softmax_run {
  const softmax_state *state;
  loops loops;
  const char *in;
  char *out;
  int64_t n;
} softmax_run;

static void softmax_part(void *user, int64_t begin, int64_t end)
{
  const softmax_run *r = user;
  size_t row = (size_t)r->n * r->state->element;
  r->state->fn(r->state, &r->loops, r->in + (size_t)begin * row, end - begin, r->n, r->out + (size_t)begin * row);
}

static tn_status softmax_compute(tn_kernel_ctx *ctx)
{
  const tn_view *in = ctx->inputs[0];
  if (in->count == 0) return TN_OK;
  softmax_run r = { ctx->state, loops_for(ctx->reproducible), in->data, ctx->outputs[0]->data, in->dims[in->rank - 1] };
  int64_t rows = in->count / r.n;
  if (in->count <= TN__SERIAL_ELEMENTS)
    softmax_part(&r, 0, rows);
  else
    tn_parallel_for(ctx, rows, TN__SERIAL_ELEMENTS / 4 / r.n + 1, NS_PER_ELEMENT * (double)r.n, softmax_part, &r);
  return TN_OK;
}

static tn_status infer_softmax(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s;
  tn__infer_get(ctx, 0, &s);
  if (s.rank >= 0) {
    tn_status st = tn__infer_rank_at_least(ctx, 0, 1, &s, err);
    if (st != TN_OK) return st;
  }
  return tn__infer_set(ctx, 0, &s, err);
}

/* ---- tables ---- */

#define SOFTMAX_OP(op, out, text)                                                     \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = "logits: T", .outputs = out, \
    .attrs = "T: {half, bfloat16, float, double}", .infer = infer_softmax, .summary = text }
#define SOFTMAX_KERNEL(which, title)                                                                          \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .types = "T=half|bfloat16|float|double", \
    .name = title, .rank = TN_RANK_C, .create = softmax_create, .destroy = softmax_destroy,                   \
    .prepare = softmax_prepare, .compute = softmax_compute }

static const tn_op_def ops[] = {
  SOFTMAX_OP("LogSoftmax", "logsoftmax: T", "logarithm of Softmax"),
  SOFTMAX_OP("Softmax", "softmax: T", "exp(x) divided by its sum along the last dimension"),
};

static const tn_kernel_def kernels[] = {
  SOFTMAX_KERNEL("LogSoftmax", "log_softmax_cpu"),
  SOFTMAX_KERNEL("Softmax", "softmax_cpu"),
};

TN_OP_FAMILY(softmax)
