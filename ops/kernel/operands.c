/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/kernel/operands.h>

int64_t tn__operand_int(const tn_view *view, int64_t k)
{
  switch (view->dtype) {
  case TN_INT8: return ((const int8_t *)view->data)[k];
  case TN_INT16: return ((const int16_t *)view->data)[k];
  case TN_INT32: return ((const int32_t *)view->data)[k];
  default: return ((const int64_t *)view->data)[k];
  }
}

tn_status tn__want_value(const tn_prepare_ctx *ctx, uint32_t i, tn_error *err)
{
  if (ctx->inputs[i].data != NULL || ctx->inputs[i].count == 0) return TN_OK;
  return tn_error_set(err, TN_INTERNAL, "%s: the value of input %u is not known", tn_operation_type(ctx->op), i);
}

tn_status tn__want_vector(const tn_prepare_ctx *ctx, uint32_t i, int64_t n, tn_error *err)
{
  const tn_view *v = &ctx->inputs[i];
  if (v->rank != 1 || v->count != n) return tn__shape_error(err, ctx, i, &n, 1);
  return tn__want_value(ctx, i, err);
}

tn_status tn__want_axis(const tn_prepare_ctx *ctx, uint32_t i, int32_t max_rank, int32_t rank, int32_t *axis,
                        tn_error *err)
{
  const tn_view *v = &ctx->inputs[i];
  *axis = 0;
  if (v->rank > max_rank || v->count != 1) return tn__want_rank(ctx, i, 0, err);
  tn_status st = tn__want_value(ctx, i, err);
  if (st == TN_OK && rank == 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: a scalar has no axis %lld", tn_operation_type(ctx->op),
                        (long long)tn__operand_int(v, 0));
  return st != TN_OK ? st : tn__shape_axis(tn_operation_type(ctx->op), tn__operand_int(v, 0), rank, axis, err);
}

tn_status tn__infer_axis(const tn_infer_ctx *ctx, size_t i, int32_t rank, int32_t *axis, tn_error *err)
{
  const int64_t *items;
  *axis = -1;
  int64_t n = tn_infer_input_ints(ctx, i, &items);
  if (rank < 0 || n != 1 || items[0] == TN_UNKNOWN_INT) return TN_OK;
  tn_status st = tn__shape_axis(tn__infer_op(ctx), items[0], rank, axis, err);
  if (st != TN_OK) *axis = -1;
  return st;
}

int32_t tn__infer_length(const tn_infer_ctx *ctx, size_t i)
{
  const int64_t *dims;
  int32_t rank = tn_infer_input(ctx, i, &dims);
  return rank < 1 || dims[0] < 0 || dims[0] > TN_MAX_RANK ? -1 : (int32_t)dims[0];
}
