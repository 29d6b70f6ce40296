/* SPDX-License-Identifier: Apache-2.0 */
#include <core/base/text.h>
#include <ops/image/resize_boxes.h>

tn_status tn__want_boxes(const tn_prepare_ctx *ctx, uint32_t i, int64_t *n, tn_error *err)
{
  const tn_view *boxes = &ctx->inputs[i], *images = &ctx->inputs[i + 1];
  tn_status st = tn__want_rank(ctx, i, 2, err);
  if (st == TN_OK) st = tn__want_rank(ctx, i + 1, 1, err);
  if (st != TN_OK) return st;
  *n = boxes->dims[0];
  const int64_t wanted[] = { *n, 4 };
  if (*n > 0 && boxes->dims[1] != 4) return tn__shape_error(err, ctx, i, wanted, 2);
  return images->dims[0] == *n ? TN_OK : tn__shape_error(err, ctx, i + 1, n, 1);
}

tn_status tn__check_boxes(const tn_kernel_ctx *ctx, uint32_t i, int64_t images)
{
  const tn_view *boxes = ctx->inputs[i];
  const float *box = boxes->data;
  const int32_t *index = ctx->inputs[i + 1]->data;
  for (int64_t k = 0; k < boxes->dims[0]; k++, box += 4) {
    if (index[k] < 0 || index[k] >= images)
      return tn_error_set(ctx->err, TN_OUT_OF_RANGE,
                          "element %lld of input %u is %d, wanted 0 to %lld: the image of a box", (long long)k, i + 1,
                          (int)index[k], (long long)images - 1);
    if (!isfinite(box[0]) || !isfinite(box[1]) || !isfinite(box[2]) || !isfinite(box[3]))
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "row %lld of input %u is [%g %g %g %g], wanted finite numbers",
                          (long long)k, i, (double)box[0], (double)box[1], (double)box[2], (double)box[3]);
  }
  return TN_OK;
}
