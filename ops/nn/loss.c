/* SPDX-License-Identifier: Apache-2.0 */
/* Losses for training: L2Loss SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits. */
#include <math.h>
#include <ops/kernel/elements/half.h>
#include <ops/kernel/elements/vector_math.h>
#include <ops/kernel/family.h>
#include <ops/kernel/operands.h>
#include <ops/kernel/shapes.h>

#define GRAIN_ELEMENTS 4096 /* minimum number of elements per thread */
#define LANES 8             /* number of parallel partial sums */

/* ---- cross entropy of one row ---- */

/* Rows of features and labels; a step of 0 means broadcasting. labels is NULL if each row's label is a single class. */
typedef struct entropy_run {
  const char *features, *labels, *classes;
  char *loss, *gradient;
  int64_t feature_row, feature_step, label_row, label_step; /* in elements */
  int64_t n;
  bool wide_classes;
  void (*row)(const struct entropy_run *r, int64_t at);
} entropy_run;

static int64_t class_at(const entropy_run *r, int64_t at)
{
  return r->wide_classes ? ((const int64_t *)(const void *)r->classes)[at]
                         : ((const int32_t *)(const void *)r->classes)[at];
}

/* loss = sum of label * (log(total) - x + most), gradient = softmax - label. most is the row's maximum. */
#define ROW(name, T, N, LOAD, STORE, EXP)                                                                   \
  static void row_##name(const entropy_run *r, int64_t at)                                                  \
  {                                                                                                         \
    const T *x = (const T *)(const void *)r->features + at * r->feature_row;                                \
    T *gradient = (T *)(void *)r->gradient + at * r->n;                                                     \
    const int64_t n = r->n, step = r->feature_step, label_step = r->label_step;                             \
    N most = -(N)INFINITY;                                                                                  \
    double total = 0, loss = 0;                                                                             \
    for (int64_t i = 0; i < n; i++) most = LOAD(x[i * step]) > most ? LOAD(x[i * step]) : most;             \
    for (int64_t i = 0; i < n; i++) total += (double)EXP(LOAD(x[i * step]) - most);                         \
    const N scale = (N)(1 / total), shift = (N)log(total);                                                  \
    if (r->labels == NULL) {                                                                                \
      const int64_t class = class_at(r, at);                                                                \
      for (int64_t i = 0; i < n; i++)                                                                       \
        gradient[i] = STORE(EXP(LOAD(x[i * step]) - most) * scale - (i == class ? (N)1 : (N)0));            \
      loss = (double)(shift - (LOAD(x[class * step]) - most));                                              \
    } else {                                                                                                \
      const T *labels = (const T *)(const void *)r->labels + at * r->label_row;                             \
      for (int64_t i = 0; i < n; i++) {                                                                     \
        const N d = LOAD(x[i * step]) - most, label = LOAD(labels[i * label_step]);                         \
        gradient[i] = STORE(EXP(d) * scale - label);                                                        \
        loss += (double)(label * (shift - d));                                                              \
      }                                                                                                     \
    }                                                                                                       \
    ((T *)(void *)r->loss)[at] = STORE((N)loss);                                                            \
  }
#define AS_IS(x) (x)
ROW(f32, float, float, AS_IS, AS_IS, tn__expf)
ROW(f64, double, double, AS_IS, AS_IS, exp)
ROW(f16, uint16_t, float, tn__half_to_float, tn__half_from_float, tn__expf)
ROW(b16, uint16_t, float, tn__bfloat16_to_float, tn__bfloat16_from_float, tn__expf)

static void entropy_rows(void *user, int64_t begin, int64_t end)
{
  const entropy_run *r = user;
  for (int64_t i = begin; i < end; i++) r->row(r, i);
}

static void entropy(tn_kernel_ctx *ctx, entropy_run *r)
{
  const tn_view *gradient = ctx->outputs[1];
  int64_t rows = gradient->dims[0], grain;
  r->features = ctx->inputs[0]->data;
  r->loss = ctx->outputs[0]->data;
  r->gradient = gradient->data;
  r->n = gradient->dims[1];
  switch (gradient->dtype) {
  case TN_FLOAT: r->row = row_f32; break;
  case TN_DOUBLE: r->row = row_f64; break;
  case TN_HALF: r->row = row_f16; break;
  default: r->row = row_b16; break;
  }
  grain = GRAIN_ELEMENTS / (r->n > 0 ? r->n : 1) + 1;
  if (rows <= 2 * grain)
    entropy_rows(r, 0, rows);
  else
    tn_parallel_for(ctx, rows, grain, 5.0 * (double)r->n, entropy_rows, r);
}

static tn_status entropy_outputs(tn_prepare_ctx *ctx, const int64_t *dims, tn_error *err)
{
  ctx->cost_ns = 30 + 5.0 * (double)dims[0] * (double)dims[1];
  tn_status st = tn_prepare_output(ctx, 0, dims, 1, err);
  return st != TN_OK ? st : tn_prepare_output(ctx, 1, dims, 2, err);
}

/* ---- labels as weights ---- */

static tn_status not_a_matrix(tn_error *err, const char *op, int32_t rank)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: inputs 0 and 1 broadcast to rank %d, wanted rank 2", op,
                      (int)rank);
}

static tn_status weights_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *x = &ctx->inputs[0], *labels = &ctx->inputs[1];
  const char *op = tn_operation_type(ctx->op);
  tn__shape s;
  if (!tn__broadcast_shapes(x->dims, x->rank, labels->dims, labels->rank, &s))
    return tn__broadcast_error(err, op, x->dims, x->rank, labels->dims, labels->rank);
  return s.rank != 2 ? not_a_matrix(err, op, s.rank) : entropy_outputs(ctx, s.dims, err);
}

/* The distances between rows and between elements, in elements. */
static void steps(const tn_view *v, int64_t *row, int64_t *step)
{
  int64_t n = v->rank > 0 ? v->dims[v->rank - 1] : 1, rows = v->rank > 1 ? v->dims[v->rank - 2] : 1;
  *step = n != 1;
  *row = rows != 1 ? n : 0;
}

static tn_status weights_compute(tn_kernel_ctx *ctx)
{
  entropy_run r = { .labels = ctx->inputs[1]->data };
  steps(ctx->inputs[0], &r.feature_row, &r.feature_step);
  steps(ctx->inputs[1], &r.label_row, &r.label_step);
  entropy(ctx, &r);
  return TN_OK;
}

static tn_status infer_weights(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape x, labels, s;
  tn__infer_get(ctx, 0, &x);
  tn__infer_get(ctx, 1, &labels);
  const char *op = tn__infer_op(ctx);
  if (!tn__broadcast_shapes(x.dims, x.rank, labels.dims, labels.rank, &s))
    return tn__broadcast_error(err, op, x.dims, x.rank, labels.dims, labels.rank);
  if (s.rank >= 0 && s.rank != 2) return not_a_matrix(err, op, s.rank);
  if (s.rank < 0) tn__shape_set(&s, (const int64_t[]){ -1, -1 }, 2);
  tn_status st = tn_infer_output(ctx, 0, s.dims, 1, err);
  return st != TN_OK ? st : tn__infer_set(ctx, 1, &s, err);
}

/* ---- labels as classes ---- */

static tn_status classes_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *x = &ctx->inputs[0], *labels = &ctx->inputs[1];
  tn_status st = tn__want_rank(ctx, 0, 2, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 1, 1, err);
  if (st != TN_OK) return st;
  if (labels->dims[0] != x->dims[0]) return tn__shape_error(err, ctx, 1, x->dims, 1);
  if (x->dims[1] == 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 0 has no classes", tn_operation_type(ctx->op));
  return entropy_outputs(ctx, x->dims, err);
}

static tn_status classes_compute(tn_kernel_ctx *ctx)
{
  const tn_view *labels = ctx->inputs[1];
  int64_t n = ctx->inputs[0]->dims[1];
  entropy_run r = { .classes = labels->data, .wide_classes = labels->dtype == TN_INT64, .feature_row = n,
                    .feature_step = 1 };
  for (int64_t i = 0; i < labels->count; i++) {
    int64_t class = class_at(&r, i);
    if (class < 0 || class >= n)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                          "SparseSoftmaxCrossEntropyWithLogits: label %lld is %lld, there are %lld classes",
                          (long long)i, (long long)class, (long long)n);
  }
  entropy(ctx, &r);
  return TN_OK;
}

static tn_status infer_classes(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape x, labels;
  tn_status st = tn__infer_rank(ctx, 0, 2, &x, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 1, 1, &labels, err);
  if (st != TN_OK) return st;
  if (!tn__dim_merge(&x.dims[0], labels.dims[0]))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 0 has %lld rows, input 1 has %lld labels",
                        tn__infer_op(ctx), (long long)x.dims[0], (long long)labels.dims[0]);
  st = tn_infer_output(ctx, 0, x.dims, 1, err);
  return st != TN_OK ? st : tn__infer_set(ctx, 1, &x, err);
}

/* ---- half the sum of squares ---- */

#define SQUARES(name, T, LOAD)                                                     \
  static double squares_##name(const void *from, int64_t n)                        \
  {                                                                                \
    const T *x = from;                                                             \
    double sums[LANES] = { 0 }, total = 0;                                         \
    int64_t i = 0;                                                                 \
    for (; i + LANES <= n; i += LANES)                                             \
      for (int k = 0; k < LANES; k++) sums[k] += (double)LOAD(x[i + k]) * (double)LOAD(x[i + k]); \
    for (; i < n; i++) total += (double)LOAD(x[i]) * (double)LOAD(x[i]);           \
    for (int k = 0; k < LANES; k++) total += sums[k];                              \
    return total / 2;                                                              \
  }
SQUARES(f32, float, AS_IS)
SQUARES(f64, double, AS_IS)
SQUARES(f16, uint16_t, tn__half_to_float)
SQUARES(b16, uint16_t, tn__bfloat16_to_float)

static tn_status squares_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  ctx->cost_ns = 20 + 0.3 * (double)ctx->inputs[0].count;
  return tn_prepare_output(ctx, 0, NULL, 0, err);
}

static tn_status squares_compute(tn_kernel_ctx *ctx)
{
  const tn_view *x = ctx->inputs[0];
  void *out = ctx->outputs[0]->data;
  switch (x->dtype) {
  case TN_FLOAT: *(float *)out = (float)squares_f32(x->data, x->count); break;
  case TN_DOUBLE: *(double *)out = squares_f64(x->data, x->count); break;
  case TN_HALF: *(uint16_t *)out = tn__half_from_double(squares_f16(x->data, x->count)); break;
  default: *(uint16_t *)out = tn__bfloat16_from_double(squares_b16(x->data, x->count));
  }
  return TN_OK;
}

/* ---- tables ---- */

#define OP(op, in, out, attributes, shapes, text)                                                 \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = attributes, \
    .infer = shapes, .summary = text }
#define FLOATS "T: {half, bfloat16, float, double}"

static const tn_op_def ops[] = {
  OP("L2Loss", "t: T", "output: T", FLOATS, tn__infer_scalar, "half the sum of squares"),
  OP("SoftmaxCrossEntropyWithLogits", "features: T, labels: T", "loss: T, backprop: T", FLOATS, infer_weights,
     "softmax cross entropy with label distributions, and its gradient"),
  OP("SparseSoftmaxCrossEntropyWithLogits", "features: T, labels: Tlabels", "loss: T, backprop: T",
     FLOATS "; Tlabels: {int32, int64} = int64", infer_classes,
     "softmax cross entropy with class labels, and its gradient"),
};

#define KERNEL(which, title, prepare_fn, compute_fn)                                                   \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C, \
    .prepare = prepare_fn, .compute = compute_fn }

static const tn_kernel_def kernels[] = {
  KERNEL("L2Loss", "l2_loss_cpu", squares_prepare, squares_compute),
  KERNEL("SoftmaxCrossEntropyWithLogits", "cross_entropy_cpu", weights_prepare, weights_compute),
  KERNEL("SparseSoftmaxCrossEntropyWithLogits", "sparse_cross_entropy_cpu", classes_prepare, classes_compute),
};

TN_OP_FAMILY(loss)
