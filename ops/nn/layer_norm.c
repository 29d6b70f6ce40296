/* SPDX-License-Identifier: Apache-2.0 */
/* _TnLayerNorm: rows along the last dimension, less their mean (if `centered`) and divided by their deviation. The
 * planner's "norm" pass makes it of the chains that exporters write (ops/rewrite/fuse_norm.c).
 *
 *   y = (x - mean) / sqrt(mean of (x - mean)^2 + epsilon) * scale + shift
 *
 * Sums have 16 lanes, whatever the vectors' width, so that every processor gives the same bits. */
#include <core/base/alloc.h>
#include <math.h>
#include <ops/kernel/elements/vectors.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>

#define LANES 16
#define NS_PER_ELEMENT 0.4
#define GRAIN_NS 4000.0

typedef struct row_args {
  const float *scale, *shift; /* NULL: none */
  float epsilon;
  bool centered;
} row_args;
typedef void (*row_fn)(const row_args *a, const float *x, float *y, int64_t n);

/* The sum of a term over a row. */
#define ROW_SUM(TERM)                                                        \
  float lanes[LANES] = { 0 };                                                \
  int64_t i = 0;                                                             \
  for (; i + LANES <= n; i += LANES)                                         \
    for (int k = 0; k < LANES; k++) lanes[k] += TERM(x[i + k]);              \
  for (int k = 0; i < n; i++, k++) lanes[k] += TERM(x[i]);                   \
  return tn__add_lanes(lanes);
#define PLAIN(v) (v)
#define SQUARE(v) (((v) - mean) * ((v) - mean))

/* y may be x. */
#define ROW_OUT(RESULT) \
  TN__IVDEP             \
  for (int64_t i = 0; i < n; i++) y[i] = RESULT;

#define ROWS(name, attribute)                                                                         \
  attribute static float name##_plain_sum(const float *x, int64_t n) { ROW_SUM(PLAIN) }               \
  attribute static float name##_square_sum(const float *x, float mean, int64_t n) { ROW_SUM(SQUARE) } \
  attribute static void name(const row_args *a, const float *x, float *y, int64_t n)                  \
  {                                                                                                   \
    const float *scale = a->scale, *shift = a->shift;                                                 \
    float mean = a->centered ? name##_plain_sum(x, n) / (float)n : 0;                                 \
    float by = 1 / sqrtf(name##_square_sum(x, mean, n) / (float)n + a->epsilon);                      \
    if (scale != NULL && shift != NULL) {                                                             \
      ROW_OUT((x[i] - mean) * by * scale[i] + shift[i])                                               \
    } else if (scale != NULL) {                                                                       \
      ROW_OUT((x[i] - mean) * by * scale[i])                                                          \
    } else if (shift != NULL) {                                                                       \
      ROW_OUT((x[i] - mean) * by + shift[i])                                                          \
    } else {                                                                                          \
      ROW_OUT((x[i] - mean) * by)                                                                     \
    }                                                                                                 \
  }
ROWS(row, )
#define WIDE_ROWS(name, end, attribute) ROWS(name##_##end, attribute)
TN__WIDE_LOOPS(WIDE_ROWS, row)

/* ---- the kernel ---- */

typedef struct norm_state {
  float epsilon;
  bool centered, scaled, shifted;
} norm_state;

static tn_status create(const tn_operation *op, void **state, tn_error *err)
{
  norm_state s = { .epsilon = tn__attr_float(op, "epsilon", 0), .centered = tn__attr_bool(op, "centered", true),
                   .scaled = tn__attr_bool(op, "scaled", false), .shifted = tn__attr_bool(op, "shifted", false) };
  if (tn_operation_n_inputs(op) != 1u + s.scaled + s.shifted)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "_TnLayerNorm has %zu inputs, wanted %d", tn_operation_n_inputs(op),
                        1 + s.scaled + s.shifted);
  return tn__keep_state(&s, sizeof s, "normalisation", state, err);
}

static void destroy(void *state) { tn__free(state, sizeof(norm_state)); }

static tn_status infer(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape x;
  tn__infer_get(ctx, 0, &x);
  return tn__infer_set(ctx, 0, &x, err);
}

/* The vectors have an element for each column. */
static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *x = &ctx->inputs[0];
  int64_t columns = x->rank > 0 ? x->dims[x->rank - 1] : -1;
  for (uint32_t i = 1; i < ctx->n_inputs; i++)
    if (ctx->inputs[i].rank != 1 || ctx->inputs[i].dims[0] != columns)
      return tn_error_set(err, TN_INVALID_ARGUMENT,
                          "_TnLayerNorm: input %u has %lld elements, but rows have %lld columns", (unsigned)i,
                          (long long)ctx->inputs[i].count, (long long)columns);
  ctx->cost_ns = NS_PER_ELEMENT * (double)x->count;
  return tn__prepare_unchanged(ctx, err);
}

typedef struct run {
  row_args args;
  row_fn row;
  const float *x;
  float *y;
  int64_t n;
} run;

static void rows_part(void *user, int64_t begin, int64_t end)
{
  const run *r = user;
  for (int64_t i = begin; i < end; i++) r->row(&r->args, r->x + i * r->n, r->y + i * r->n, r->n);
}

static tn_status compute(tn_kernel_ctx *ctx)
{
  static const row_fn rows[] = TN__FNS(row);
  const norm_state *s = ctx->state;
  const tn_view *x = ctx->inputs[0];
  if (x->count == 0) return TN_OK;
  run r = { .row = rows[tn__vectors()], .x = x->data, .y = ctx->outputs[0]->data, .n = x->dims[x->rank - 1] };
  r.args = (row_args){ .scale = s->scaled ? ctx->inputs[1]->data : NULL,
                       .shift = s->shifted ? ctx->inputs[1 + s->scaled]->data : NULL,
                       .epsilon = s->epsilon,
                       .centered = s->centered };
  double row_ns = NS_PER_ELEMENT * (double)r.n;
  int64_t grain = row_ns < GRAIN_NS ? (int64_t)(GRAIN_NS / row_ns) + 1 : 1;
  tn_parallel_for(ctx, x->count / r.n, grain, row_ns, rows_part, &r);
  return TN_OK;
}

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "_TnLayerNorm", .inputs = "x: T, args: N * T", .outputs = "y: T",
    .attrs = "T: {float}; N: int >= 0; epsilon: float; centered: bool = true; scaled: bool = false; "
             "shifted: bool = false",
    .infer = infer, .summary = "normalisation of rows, fused from the operations that exporters write" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "_TnLayerNorm", .device = "CPU", .types = "T=float",
    .name = "layer_norm_cpu", .rank = TN_RANK_C, .create = create, .destroy = destroy, .prepare = prepare,
    .compute = compute },
};

TN_OP_FAMILY(layer_norm)
