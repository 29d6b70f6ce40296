/* SPDX-License-Identifier: Apache-2.0 */
/* Conv2D and DepthwiseConv2dNative, channels last, alone and with what follows them. */
#include "onednn.h"

#include <string.h>

typedef struct conv_state {
  dnn_epilogue epilogue;
  dnn_window window;
  bool depthwise;
} conv_state;

tn_status dnn_conv_create(const tn_operation *op, void **state, tn_error *err)
{
  conv_state s = { .depthwise = strstr(tn_operation_type(op), "Depthwise") != NULL };
  *state = NULL;
  if (!dnn_type_is_fast(tn_operation_input_dtype(op, 0)))
    return dnn_declined(err, "this processor has no such products");
  if (!dnn_window_read(op, 2, false, &s.window))
    return dnn_declined(err, "attributes that the library's own kernel judges");
  tn_status st = dnn_epilogue_read(op, &s.epilogue, err);
  if (st != TN_OK) return st;
  conv_state *p = tn_alloc(sizeof *p);
  if (p == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "out of memory for a convolution");
  *p = s;
  *state = p;
  return TN_OK;
}

typedef struct sizes {
  dnn_window window;
  int64_t groups, in_group, out_group; /* channels of a group */
  int64_t out[4];
} sizes;

/* What the library's own kernel would refuse it is left to refuse. */
static bool measure(const tn_prepare_ctx *ctx, const conv_state *s, sizes *z)
{
  const tn_view *in = &ctx->inputs[0], *filter = &ctx->inputs[1];
  if (in->rank != 4 || filter->rank != 4 || !dnn_fits(in) || !dnn_fits(filter)) return false;
  int64_t c = in->dims[3];
  *z = (sizes){ .window = s->window };
  if (s->depthwise ? filter->dims[2] != c : c % filter->dims[2] != 0) return false;
  z->groups = s->depthwise ? c : c / filter->dims[2];
  z->in_group = s->depthwise ? 1 : filter->dims[2];
  if (!s->depthwise && filter->dims[3] % z->groups != 0) return false;
  z->out_group = s->depthwise ? filter->dims[3] : filter->dims[3] / z->groups;
  for (int a = 0; a < 2; a++) z->window.size[a] = filter->dims[a];
  z->out[0] = in->dims[0];
  z->out[3] = z->groups * z->out_group;
  return dnn_window_fit(&z->window, in->dims + 1, z->out + 1) && dnn_dims_fit(z->out, 4);
}

typedef struct layouts {
  dnnl_memory_desc_t source, filter, any_filter, bias, target;
} layouts;

static layouts describe(const sizes *z, const tn_view *in, bool depthwise)
{
  layouts l;
  dnnl_data_type_t type = dnn_type(in->dtype);
  int64_t oc = z->groups * z->out_group, kw = z->window.size[1];
  l.source = dnn_channels_last(in->dims, 4, type);
  l.target = dnn_channels_last(z->out, 4, type);
  /* [kh,kw,in,out] as (group, out, in, kh, kw); a depthwise filter is [kh,kw,group,out] */
  const int64_t dims[] = { z->groups, z->out_group, z->in_group, z->window.size[0], kw };
  int64_t place = depthwise ? oc : z->in_group * oc;
  const int64_t strides[] = { z->out_group, 1, depthwise ? 1 : oc, kw * place, place };
  int skip = z->groups == 1 && !depthwise;
  l.filter = dnn_strided(dims + skip, strides + skip, 5 - skip, type);
  l.any_filter = dnn_any(dims + skip, 5 - skip, type);
  const int64_t one = 1;
  l.bias = dnn_strided(&oc, &one, 1, type);
  return l;
}

/* Below these the library's own loops are as fast. */
#define SMALL 24000
#define SMALL_DEPTHWISE 8000

static tn_status conv_plan(tn_prepare_ctx *ctx, const conv_state *s, const sizes *z, tn_error *err)
{
  layouts l = describe(z, &ctx->inputs[0], s->depthwise);
  const dnn_window *w = &z->window;
  const dnnl_dims_t dilates = { w->dilation[0] - 1, w->dilation[1] - 1 };
  dnnl_convolution_desc_t desc;
  tn_status st = dnn_status(
      dnnl_dilated_convolution_forward_desc_init(&desc, dnnl_forward_inference, dnnl_convolution_direct, &l.source,
                                                 &l.any_filter, dnn_has_bias(&s->epilogue) ? &l.bias : NULL, &l.target,
                                                 w->stride, dilates, w->before, w->after), "convolution", err);
  dnn_plan *p = NULL;
  const dnn_setup setup = { &s->epilogue, &l.target };
  if (st == TN_OK) st = dnn_plan_create(ctx, &desc, &setup, &p, err);
  if (st != TN_OK) return st;
  ctx->shape_state = p;
  dnn_plan_input(p, DNNL_ARG_SRC, 0, &l.source);
  dnn_plan_output(p, DNNL_ARG_DST, 0, &l.target);
  dnn_plan_epilogue(p, &s->epilogue, 2, &l.bias, &l.target);
  return dnn_plan_weights(p, ctx, DNNL_ARG_WEIGHTS, 1, &l.filter, err);
}

tn_status dnn_conv_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const conv_state *s = ctx->state;
  sizes z;
  if (!measure(ctx, s, &z)) return dnn_declined(err, "shapes that the library's own kernel judges");
  if (!dnn_epilogue_fits(&s->epilogue, ctx, 2, z.out, 4)) return dnn_declined(err, "fused tensors of other shapes");
  double products = (double)z.out[0] * (double)z.out[1] * (double)z.out[2] * (double)ctx->inputs[1].count;
  if (products < (s->depthwise ? SMALL_DEPTHWISE : SMALL)) return dnn_declined(err, "a convolution this small");
  tn_status st = conv_plan(ctx, s, &z, err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 0, z.out, 4, err);
  ctx->cost_ns = products * 0.02;
  return st;
}
