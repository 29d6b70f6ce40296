/* SPDX-License-Identifier: Apache-2.0 */
/* The number of boundaries that are not above each element: Bucketize. */
#include <core/base/alloc.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>

/* Boundaries are borrowed from the node. */
typedef struct bounds {
  const float *at;
  size_t n;
} bounds;

static void bucketize_destroy(void *state) { tn__free(state, sizeof(bounds)); }

static tn_status bucketize_create(const tn_operation *op, void **state, tn_error *err)
{
  bounds b = { NULL, 0 };
  *state = NULL;
  tn_status st = tn_operation_attr_floats(op, "boundaries", &b.at, &b.n, err);
  if (st == TN_OK && b.n > INT32_MAX)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "Bucketize: %zu boundaries, at most %d are possible", b.n, INT32_MAX);
  for (size_t i = 1; st == TN_OK && i < b.n; i++)
    if (b.at[i] < b.at[i - 1])
      return tn_error_set(err, TN_INVALID_ARGUMENT, "Bucketize: boundary %zu, %g, is below the one before, %g", i,
                          (double)b.at[i], (double)b.at[i - 1]);
  return st == TN_OK ? tn__keep_state(&b, sizeof b, "kernel", state, err) : st;
}

static tn_status bucketize_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  ctx->cost_ns = 50 + 10 * (double)ctx->inputs[0].count;
  return tn_prepare_output_like(ctx, 0, 0, err);
}

/* Integers are compared as floats, as in TensorFlow. NaN is above all boundaries. */
#define BUCKETIZE(T, C)                                             \
  static void bucketize_##T(void *user, int64_t begin, int64_t end) \
  {                                                                 \
    tn_kernel_ctx *ctx = user;                                      \
    const bounds *b = ctx->state;                                   \
    const T *x = ctx->inputs[0]->data;                              \
    int32_t *y = ctx->outputs[0]->data;                             \
    for (int64_t i = begin; i < end; i++) {                         \
      const C v = (C)x[i];                                          \
      size_t at = 0;                                                \
      for (size_t left = b->n, half; left > 0;) {                   \
        half = left / 2;                                            \
        bool above = v < (C)b->at[at + half];                       \
        at = above ? at : at + half + 1;                            \
        left = above ? half : left - half - 1;                      \
      }                                                             \
      y[i] = (int32_t)at;                                           \
    }                                                               \
  }
BUCKETIZE(int32_t, float)
BUCKETIZE(int64_t, float)
BUCKETIZE(float, float)
BUCKETIZE(double, double)

static tn_status bucketize_compute(tn_kernel_ctx *ctx)
{
  int64_t n = ctx->outputs[0]->count;
  void (*fn)(void *user, int64_t begin, int64_t end) = bucketize_float;
  switch (ctx->inputs[0]->dtype) {
  case TN_INT32: fn = bucketize_int32_t; break;
  case TN_INT64: fn = bucketize_int64_t; break;
  case TN_DOUBLE: fn = bucketize_double; break;
  default: break;
  }
  if (n <= TN__SERIAL_ELEMENTS / 16) fn(ctx, 0, n);
  else tn_parallel_for(ctx, n, TN__SERIAL_ELEMENTS / 16, 10, fn, ctx);
  return TN_OK;
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "Bucketize", .inputs = "input: T", .outputs = "output: int32",
    .attrs = "T: {int32, int64, float, double}; boundaries: list(float)", .infer = tn__infer_unchanged,
    .summary = "the bucket between boundaries of each element" },
};

static const tn_kernel_def kernels[] = {
  TN__KERNEL("Bucketize", "bucketize_cpu", bucketize_create, bucketize_destroy, bucketize_prepare, bucketize_compute),
};

TN_OP_FAMILY(bucketize)
