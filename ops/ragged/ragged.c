/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/ragged/ragged.h>

tn_status tn__splits_check(const tn_kernel_ctx *ctx, uint32_t i, int64_t rows, tn__poll *poll)
{
  const tn_view *splits = ctx->inputs[i];
  int64_t last = 0;
  if (splits->count == 0) return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "input %u has no row splits", i);
  for (int64_t k = 0; k < splits->count; k++) {
    int64_t at = tn__view_int_at(splits, k);
    if (tn__poll_over(poll, 2)) return TN_CANCELLED;
    if (k == 0 ? at != 0 : at < last)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "split %lld of input %u is %lld, wanted %s%lld", (long long)k,
                          i, (long long)at, k == 0 ? "" : "at least ", (long long)last);
    last = at;
  }
  if (last == rows) return TN_OK;
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "the last split of input %u is %lld, wanted %lld", i,
                      (long long)last, (long long)rows);
}
