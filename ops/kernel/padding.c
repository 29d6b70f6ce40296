/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/kernel/padding.h>

tn_status tn__paddings_read(const tn_prepare_ctx *ctx, uint32_t i, tn__paddings *p, tn_error *err)
{
  const tn_view *v = &ctx->inputs[i];
  int32_t rank = ctx->inputs[0].rank;
  if (v->rank != 2 || v->dims[0] != rank || v->dims[1] != 2) {
    int64_t wanted[2] = { rank, 2 };
    return tn__shape_error(err, ctx, i, wanted, 2);
  }
  tn_status st = tn__want_value(ctx, i, err);
  p->rank = rank;
  for (int32_t k = 0; k < rank && st == TN_OK; k++) {
    p->before[k] = tn__operand_int(v, 2 * k);
    p->after[k] = tn__operand_int(v, 2 * k + 1);
    if (p->before[k] < 0 || p->after[k] < 0)
      st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: paddings %lld and %lld of dimension %d, wanted none below 0",
                        tn_operation_type(ctx->op), (long long)p->before[k], (long long)p->after[k], (int)k);
  }
  return st;
}

/* A dimension with its paddings added (sign 1) or removed (sign -1); -1 if the result is not a valid size. */
static int64_t padded(int64_t size, int64_t before, int64_t after, int sign)
{
  int64_t sum;
  if (size < 0 || before < 0 || after < 0 || __builtin_add_overflow(before, after, &sum)) return -1;
  if (sign < 0) return sum > size ? -1 : size - sum;
  return __builtin_add_overflow(size, sum, &sum) ? -1 : sum;
}

tn_status tn__paddings_infer(tn_infer_ctx *ctx, size_t i, int sign, tn_error *err)
{
  tn__shape s;
  const tn_tensor *p = tn_infer_input_value(ctx, i);
  tn__infer_get(ctx, 0, &s);
  if (s.rank < 0) { /* the paddings have one row per dimension */
    s.rank = tn__infer_length(ctx, i);
    for (int32_t k = 0; k < s.rank; k++) s.dims[k] = -1;
  }
  bool known = p != NULL && tn_tensor_rank(p) == 2 && tn_tensor_elements(p) == 2 * (int64_t)s.rank &&
               tn_tensor_data(p) != NULL;
  for (int32_t k = 0; k < s.rank; k++)
    s.dims[k] =
        known ? padded(s.dims[k], tn__tensor_int_at(p, 2 * k), tn__tensor_int_at(p, 2 * k + 1), sign) : -1;
  return tn__infer_set(ctx, 0, &s, err);
}
