/* SPDX-License-Identifier: Apache-2.0 */
/* Flat indices of elements as coordinates: UnravelIndex. */
#include <ops/kernel/elements/elements.h>
#include <ops/kernel/family.h>
#include <ops/kernel/poll.h>
#include <ops/kernel/shapes.h>

static tn_status unravel_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *x = &ctx->inputs[0];
  const int64_t dims[2] = { ctx->inputs[1].count, x->count };
  tn_status st = tn__want_rank(ctx, 1, 1, err);
  if (st == TN_OK && x->rank > 1) st = tn__want_rank(ctx, 0, 1, err);
  if (st == TN_OK && x->count == 0)
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "UnravelIndex: input 0 has no elements");
  ctx->cost_ns = 50 + 10 * (double)x->count * (double)dims[0];
  return st == TN_OK ? tn_prepare_output(ctx, 0, dims, 1 + x->rank, err) : st;
}

/* The number of elements, which must fit the dtype. */
static tn_status product_of(const tn_view *dims, int64_t *product, tn_error *err)
{
  *product = 1;
  for (int64_t d = 0; d < dims->count; d++) {
    int64_t n = tn__index_at(dims, d);
    if (n <= 0)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "dimension %lld is %lld, wanted a positive number", (long long)d,
                          (long long)n);
    if (__builtin_mul_overflow(*product, n, product) || (dims->dtype == TN_INT32 && *product > INT32_MAX))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "the product of the dimensions is too large for %s",
                          tn_dtype_name(dims->dtype));
  }
  return TN_OK;
}

static void put(const tn_view *out, int64_t i, int64_t value)
{
  if (out->dtype == TN_INT32) ((int32_t *)out->data)[i] = (int32_t)value;
  else ((int64_t *)out->data)[i] = value;
}

/* Negative indices give negative coordinates, as in TensorFlow. */
static tn_status unravel_compute(tn_kernel_ctx *ctx)
{
  const tn_view *x = ctx->inputs[0], *dims = ctx->inputs[1];
  int64_t all;
  tn_status st = product_of(dims, &all, ctx->err);
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t i = 0; st == TN_OK && i < x->count; i++) {
    int64_t rest = tn__index_at(x, i), stride = all;
    if (tn__poll_over(&poll, 5 + 10 * dims->count)) return TN_CANCELLED;
    if (rest >= all)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "index %lld at %lld is not below %lld", (long long)rest,
                          (long long)i, (long long)all);
    for (int64_t d = 0; d < dims->count; d++) {
      stride /= tn__index_at(dims, d);
      put(ctx->outputs[0], d * x->count + i, rest / stride);
      rest %= stride;
    }
  }
  return st;
}

static tn_status infer_unravel(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape x, dims, out = { -1, { -1 } };
  tn__infer_get(ctx, 0, &x);
  tn__infer_get(ctx, 1, &dims);
  if (x.rank >= 0) out = (tn__shape){ 1 + (x.rank > 0), { dims.rank == 1 ? dims.dims[0] : -1, -1 } };
  if (x.rank == 1) out.dims[1] = x.dims[0];
  return tn__infer_set(ctx, 0, &out, err);
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "UnravelIndex", .inputs = "indices: Tidx, dims: Tidx",
    .outputs = "output: Tidx", .attrs = "Tidx: {int32, int64} = int32", .infer = infer_unravel,
    .summary = "coordinates of flat indices" },
};

static const tn_kernel_def kernels[] = {
  TN__KERNEL("UnravelIndex", "unravel_index_cpu", NULL, NULL, unravel_prepare, unravel_compute),
};

TN_OP_FAMILY(unravel)
