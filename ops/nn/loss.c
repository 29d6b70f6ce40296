/* SPDX-License-Identifier: Apache-2.0 */
/* Losses for training: L2Loss SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits. */
#include <math.h>
#include <ops/kernel/elements/half.h>
#include <ops/kernel/elements/vector_math.h>
#include <ops/kernel/elements/vectors.h>
#include <ops/kernel/family.h>
#include <ops/kernel/operands.h>
#include <ops/kernel/shapes.h>
#include <ops/nn/soften.h>

#define GRAIN_ELEMENTS 4096 /* minimum number of elements per thread */
#define ENTROPY_NS 1.0      /* for an element of a row */
#define WEIGHED 64          /* elements of a row that are added in float */
#define WEIGHED_LANES 16
#define SQUARE_NS 0.2
#define SQUARES_PART 32768 /* elements that are added on one thread */
#define LANES 8             /* number of parallel partial sums */

/* ---- cross entropy of one row ---- */

/* Rows of features and labels; a step of 0 means broadcasting. labels is NULL if each row's label is a single class. */
typedef struct entropy_run {
  const char *features, *labels, *classes;
  char *loss, *gradient;
  int64_t feature_row, feature_step, label_row, label_step; /* in elements */
  int64_t n;
  bool wide_classes;
  tn__soften_fn soften;
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

/* gradient, which contains the exponentials, becomes softmax - label. Returns the loss. */
#define WEIGHTED(name, attribute)                                                                             \
  attribute static double name(const float *x, const float *label, float most, float shift, float scale,      \
                               float *gradient, int64_t n)                                                    \
  {                                                                                                           \
    double loss = 0;                                                                                          \
    int64_t i = 0;                                                                                            \
    for (int64_t end; n - i >= WEIGHED; i = end) {                                                            \
      float lanes[WEIGHED_LANES] = { 0 };                                                                     \
      for (end = i + WEIGHED; i < end; i += WEIGHED_LANES)                                                    \
        for (int k = 0; k < WEIGHED_LANES; k++) {                                                             \
          gradient[i + k] = gradient[i + k] * scale - label[i + k];                                           \
          lanes[k] += label[i + k] * (shift - (x[i + k] - most));                                             \
        }                                                                                                     \
      loss += (double)tn__add_lanes(lanes);                                                                   \
    }                                                                                                         \
    for (; i < n; i++) {                                                                                      \
      gradient[i] = gradient[i] * scale - label[i];                                                           \
      loss += (double)(label[i] * (shift - (x[i] - most)));                                                   \
    }                                                                                                         \
    return loss;                                                                                              \
  }
#define WEIGHTED_WIDE(name, end, attribute) WEIGHTED(name##_##end, attribute)
WEIGHTED(weighted, )
TN__AVX2_LOOPS(WEIGHTED_WIDE, weighted)

#define SCALED(name, attribute)                                     \
  attribute static void name(float *x, float by, int64_t n)         \
  {                                                                 \
    for (int64_t i = 0; i < n; i++) x[i] *= by;                     \
  }
#define SCALED_WIDE(name, end, attribute) SCALED(name##_##end, attribute)
SCALED(scaled, )
TN__AVX2_LOOPS(SCALED_WIDE, scaled)

/* The same as row_f32 where elements are adjacent: the exponentials are computed once, in the gradient. */
static void row_f32_adjacent(const entropy_run *r, int64_t at)
{
  static double (*const weigh[])(const float *, const float *, float, float, float, float *, int64_t) =
      TN__AVX2_FNS(weighted);
  static void (*const scale_by[])(float *, float, int64_t) = TN__AVX2_FNS(scaled);
  const float *x = (const float *)(const void *)r->features + at * r->feature_row;
  float *gradient = (float *)(void *)r->gradient + at * r->n, most;
  double loss;
  const double total = r->soften(x, r->n, gradient, &most);
  const float scale = (float)(1 / total), shift = (float)log(total);
  if (r->labels == NULL) {
    const int64_t class = class_at(r, at);
    scale_by[tn__vectors()](gradient, scale, r->n);
    gradient[class] -= 1;
    loss = (double)(shift - (x[class] - most));
  } else {
    const float *labels = (const float *)(const void *)r->labels + at * r->label_row;
    loss = weigh[tn__vectors()](x, labels, most, shift, scale, gradient, r->n);
  }
  ((float *)(void *)r->loss)[at] = (float)loss;
}

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
  r->soften = tn__soften_for(ctx->reproducible);
  const bool adjacent = r->feature_step == 1 && (r->labels == NULL || r->label_step == 1) && r->n > 0;
  switch (gradient->dtype) {
  case TN_FLOAT: r->row = adjacent ? row_f32_adjacent : row_f32; break;
  case TN_DOUBLE: r->row = row_f64; break;
  case TN_HALF: r->row = row_f16; break;
  default: r->row = row_b16; break;
  }
  grain = GRAIN_ELEMENTS / (r->n > 0 ? r->n : 1) + 1;
  if (rows <= 2 * grain)
    entropy_rows(r, 0, rows);
  else
    tn_parallel_for(ctx, rows, grain, ENTROPY_NS * (double)r->n, entropy_rows, r);
}

static tn_status entropy_outputs(tn_prepare_ctx *ctx, const int64_t *dims, tn_error *err)
{
  ctx->cost_ns = 30 + ENTROPY_NS * (double)dims[0] * (double)dims[1];
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

#define SQUARES(name, attribute, T, LOAD)                                          \
  attribute static double squares_##name(const void *from, int64_t n)              \
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
#define SQUARES_WIDE(name, end, attribute) SQUARES(name##_##end, attribute, float, AS_IS)
SQUARES(f32, , float, AS_IS)
TN__AVX2_LOOPS(SQUARES_WIDE, f32)
SQUARES(f64, , double, AS_IS)
SQUARES(f16, , uint16_t, tn__half_to_float)
SQUARES(b16, , uint16_t, tn__bfloat16_to_float)

static int64_t n_squares_parts(int64_t count) { return (count + SQUARES_PART - 1) / SQUARES_PART; }

static tn_status squares_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const int64_t count = ctx->inputs[0].count;
  ctx->cost_ns = 20 + SQUARE_NS * (double)count;
  ctx->scratch_bytes = (size_t)n_squares_parts(count) * sizeof(double);
  return tn_prepare_output(ctx, 0, NULL, 0, err);
}

typedef struct squares_run {
  double (*fn)(const void *from, int64_t n);
  const char *x;
  size_t size;
  int64_t count;
  double *sums; /* of each part: parts depend only on the shape, so results do not depend on the number of threads */
} squares_run;

static void squares_parts(void *user, int64_t begin, int64_t end)
{
  const squares_run *r = user;
  for (int64_t i = begin; i < end; i++) {
    const int64_t at = i * SQUARES_PART, left = r->count - at;
    r->sums[i] = r->fn(r->x + (size_t)at * r->size, left < SQUARES_PART ? left : SQUARES_PART);
  }
}

static double (*squares_of(tn_dtype dtype))(const void *, int64_t)
{
  static double (*const floats[])(const void *, int64_t) = TN__AVX2_FNS(squares_f32);
  switch (dtype) {
  case TN_FLOAT: return floats[tn__vectors()];
  case TN_DOUBLE: return squares_f64;
  case TN_HALF: return squares_f16;
  default: return squares_b16;
  }
}

static tn_status squares_compute(tn_kernel_ctx *ctx)
{
  const tn_view *x = ctx->inputs[0];
  void *out = ctx->outputs[0]->data;
  squares_run r = { squares_of(x->dtype), x->data, tn_dtype_size(x->dtype), x->count, ctx->scratch };
  const int64_t parts = n_squares_parts(x->count);
  if (parts < 2) squares_parts(&r, 0, parts);
  else tn_parallel_for(ctx, parts, 1, SQUARE_NS * SQUARES_PART, squares_parts, &r);
  double sum = 0;
  for (int64_t i = 0; i < parts; i++) sum += r.sums[i];
  switch (x->dtype) {
  case TN_FLOAT: *(float *)out = (float)sum; break;
  case TN_DOUBLE: *(double *)out = sum; break;
  case TN_HALF: *(uint16_t *)out = tn__half_from_double(sum); break;
  default: *(uint16_t *)out = tn__bfloat16_from_double(sum);
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
