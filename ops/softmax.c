/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax and LogSoftmax along the last dimension. */
#include <core/base/alloc.h>
#include <math.h>
#include <ops/support/half.h>
#include <ops/support/reduce_loops.h>
#include <ops/support/shapes.h>
#include <ops/support/vector_math.h>
#include <string.h>

#define BLOCK 256

/* ---- one row ---- */

typedef struct softmax_state softmax_state;
typedef void (*row_fn)(const softmax_state *s, const void *in, int64_t n, void *out);

struct softmax_state {
  row_fn fn;
  const tn__reduce_loops *sum, *max; /* of floats */
  size_t element;
  bool log;
};

static float float_of(const tn__reduce_loops *loops, const void *row, int64_t n)
{
  double acc[2];
  float result;
  loops->init(acc, 1);
  loops->rows(acc, row, n, n, 1);
  loops->finish(&result, acc, 1, n);
  return result;
}

static void row_f32(const softmax_state *s, const void *from, int64_t n, void *to)
{
  const float *in = from;
  float *out = to;
  float most = float_of(s->max, in, n);
  if (s->log) {
    double acc = 0;
    float part[BLOCK];
    for (int64_t at = 0; at < n; at += BLOCK) {
      int64_t m = n - at < BLOCK ? n - at : BLOCK;
      for (int64_t i = 0; i < m; i++) part[i] = tn__expf(in[at + i] - most);
      s->sum->rows(&acc, part, m, m, 1);
    }
    float shift = logf((float)acc);
    for (int64_t i = 0; i < n; i++) out[i] = in[i] - most - shift;
    return;
  }
  for (int64_t i = 0; i < n; i++) out[i] = tn__expf(in[i] - most);
  float scale = 1.0f / float_of(s->sum, out, n);
  for (int64_t i = 0; i < n; i++) out[i] *= scale;
}

static void row_f64(const softmax_state *s, const void *from, int64_t n, void *to)
{
  const double *in = from;
  double *out = to, most = -(double)INFINITY, total = 0;
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

/* Half and bfloat16 are computed in float, a block at a time; exponentials twice, as there is no place to keep them. */
#define ROW_SHORT(name, LOAD, STORE)                                                        \
  static void row_##name(const softmax_state *s, const void *from, int64_t n, void *to)     \
  {                                                                                         \
    const uint16_t *in = from;                                                              \
    uint16_t *out = to;                                                                     \
    float part[BLOCK], most = -INFINITY;                                                    \
    double acc = 0;                                                                         \
    for (int64_t i = 0; i < n; i++) most = LOAD(in[i]) > most ? LOAD(in[i]) : most;         \
    for (int64_t at = 0; at < n; at += BLOCK) {                                             \
      int64_t m = n - at < BLOCK ? n - at : BLOCK;                                          \
      for (int64_t i = 0; i < m; i++) part[i] = tn__expf(LOAD(in[at + i]) - most);          \
      s->sum->rows(&acc, part, m, m, 1);                                                    \
    }                                                                                       \
    const float shift = logf((float)acc), scale = 1.0f / (float)acc;                        \
    if (s->log)                                                                             \
      for (int64_t i = 0; i < n; i++) out[i] = STORE(LOAD(in[i]) - most - shift);           \
    else                                                                                    \
      for (int64_t i = 0; i < n; i++) out[i] = STORE(tn__expf(LOAD(in[i]) - most) * scale); \
  }
ROW_SHORT(f16, tn__half_to_float, tn__half_from_float)
ROW_SHORT(b16, tn__bfloat16_to_float, tn__bfloat16_from_float)

/* ---- kernel ---- */

static tn_status softmax_create(const tn_operation *op, void **state, tn_error *err)
{
  *state = NULL;
  tn_dtype dtype = tn_operation_input_dtype(op, 0);
  row_fn fn = dtype == TN_FLOAT      ? row_f32
              : dtype == TN_DOUBLE   ? row_f64
              : dtype == TN_HALF     ? row_f16
              : dtype == TN_BFLOAT16 ? row_b16
                                     : NULL;
  if (fn == NULL) return tn__no_kernel(err, op, dtype);
  softmax_state *s = tn__zalloc(sizeof *s);
  if (s == NULL) return tn__no_memory(err, "state of Softmax", sizeof *s);
  s->fn = fn;
  s->sum = tn__reduce_loops_find(TN__REDUCE_SUM, TN_FLOAT);
  s->max = tn__reduce_loops_find(TN__REDUCE_MAX, TN_FLOAT);
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
  ctx->cost_ns = 30 + 2.0 * (double)ctx->inputs[0].count;
  return tn__prepare_unchanged(ctx, err);
}

typedef struct softmax_run {
  const softmax_state *state;
  const char *in;
  char *out;
  int64_t n;
} softmax_run;

static void softmax_part(void *user, int64_t begin, int64_t end)
{
  const softmax_run *r = user;
  size_t row = (size_t)r->n * r->state->element;
  for (int64_t i = begin; i < end; i++)
    r->state->fn(r->state, r->in + (size_t)i * row, r->n, r->out + (size_t)i * row);
}

static tn_status softmax_compute(tn_kernel_ctx *ctx)
{
  const tn_view *in = ctx->inputs[0];
  if (in->count == 0) return TN_OK;
  softmax_run r = { ctx->state, in->data, ctx->outputs[0]->data, in->dims[in->rank - 1] };
  int64_t rows = in->count / r.n;
  if (in->count <= TN__SERIAL_ELEMENTS)
    softmax_part(&r, 0, rows);
  else
    tn_parallel_for(ctx, rows, TN__SERIAL_ELEMENTS / 4 / r.n + 1, 2.0 * (double)r.n, softmax_part, &r);
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
  SOFTMAX_OP("Softmax", "softmax: T", "exp(x) over its sum along the last dimension"),
};

static const tn_kernel_def kernels[] = {
  SOFTMAX_KERNEL("LogSoftmax", "log_softmax_cpu"),
  SOFTMAX_KERNEL("Softmax", "softmax_cpu"),
};

extern const tn_op_family tn__ops_softmax;
const tn_op_family tn__ops_softmax = {
  .struct_size = TN_OP_FAMILY_SIZE,
  .name = "softmax",
  .ops = ops,
  .n_ops = sizeof ops / sizeof ops[0],
  .kernels = kernels,
  .n_kernels = sizeof kernels / sizeof kernels[0],
};
