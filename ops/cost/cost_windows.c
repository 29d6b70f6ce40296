/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of convolutions with their gradients, and of pooling. Taps of a window that lie in the padding need no work
 * and are not counted. */
#include <ops/cost/cost.h>
#include <ops/kernel/window/volume.h>

/* The three operands of a convolution and its gradients. */
typedef struct operands {
  const tn_view *x, *filter, *y;
} operands;

/* Taps of all window positions along an axis that are inside the input. */
static double axis_taps(const tn__window_axis *a, int64_t length, int64_t places)
{
  double sum = 0;
  for (int64_t place = 0; place < places; place++) {
    int64_t at, first, n;
    tn__window_taps(a, place, length, &at, &first, &n);
    if (n > 0) sum += (double)n;
  }
  return sum;
}

/* Every tap multiplies each input channel of a filter with each of its outputs. The same products make up the result,
 * the images' gradient and the filter's. */
static void convolution(tn_cost_ctx *ctx, operands of)
{
  tn__volume_window w;
  tn__volume out;
  int directions = of.filter->rank - 2;
  if (directions < 2 || directions > 3 || of.x->rank != of.filter->rank || of.y->rank != of.filter->rank) return;
  if (tn__volume_read(ctx->op, directions, &w, NULL) != TN_OK) return;
  for (int k = 3 - directions; k < 3; k++) w.axis[k].size = of.filter->dims[k - (3 - directions)];
  tn__volume x = tn__volume_of(&w, of.x->dims);
  if (tn__volume_fit(&w, tn_operation_type(ctx->op), &x, &out, NULL) != TN_OK) return;
  double taps = 1;
  for (int k = 0; k < 3; k++) taps *= axis_taps(&w.axis[k], x.size[k], out.size[k]);
  ctx->flops = 2 * (double)x.n * taps * tn__cost_dim(of.filter, -2) * tn__cost_dim(of.filter, -1);
}

static void forward(tn_cost_ctx *ctx)
{
  convolution(ctx, (operands){ &ctx->inputs[0], &ctx->inputs[1], &ctx->outputs[0] });
}

static void fused_forward(tn_cost_ctx *ctx)
{
  forward(ctx);
  tn__cost_epilogue(ctx);
}

/* Gradients read two of the three operands; the other input has only a shape. */
static void of_images(tn_cost_ctx *ctx)
{
  convolution(ctx, (operands){ &ctx->outputs[0], &ctx->inputs[1], &ctx->inputs[2] });
  ctx->bytes -= tn__cost_bytes(&ctx->inputs[0]);
}

static void of_filter(tn_cost_ctx *ctx)
{
  convolution(ctx, (operands){ &ctx->inputs[0], &ctx->outputs[0], &ctx->inputs[2] });
  ctx->bytes -= tn__cost_bytes(&ctx->inputs[1]);
}

/* A comparison or a sum for each tap. */
static void pooling(tn_cost_ctx *ctx)
{
  tn__volume_window w;
  if (tn__volume_read(ctx->op, ctx->inputs[0].rank - 2, &w, NULL) != TN_OK) return;
  ctx->flops = (double)ctx->outputs[0].count * (double)w.batch_size * (double)w.depth_size;
  for (int k = 0; k < 3; k++) ctx->flops *= (double)w.axis[k].size;
}

static const tn_cost_def costs[] = {
  TN__COST("AvgPool", pooling),
  TN__COST("AvgPool3D", pooling),
  TN__COST("Conv2D", forward),
  TN__COST("Conv2DBackpropFilter", of_filter),
  TN__COST("Conv2DBackpropInput", of_images),
  TN__COST("Conv3D", forward),
  TN__COST("Conv3DBackpropFilter", of_filter),
  TN__COST("Conv3DBackpropFilterV2", of_filter),
  TN__COST("Conv3DBackpropInput", of_images),
  TN__COST("Conv3DBackpropInputV2", of_images),
  TN__COST("DepthwiseConv2dNative", forward),
  TN__COST("DepthwiseConv2dNativeBackpropFilter", of_filter),
  TN__COST("DepthwiseConv2dNativeBackpropInput", of_images),
  TN__COST("MaxPool", pooling),
  TN__COST("MaxPool3D", pooling),
  TN__COST("MaxPoolWithArgmax", pooling),
  TN__COST("_TnConv2D", fused_forward),
  TN__COST("_TnDepthwiseConv2D", fused_forward),
};

TN_COST_FAMILY(cost_windows)
