/* SPDX-License-Identifier: Apache-2.0 */
/* Conv2D and DepthwiseConv2dNative of float, channels last, alone and with what follows them. */
#include "onednn.h"

#include <string.h>

typedef struct conv_state {
  dnn_epilogue epilogue;
  int64_t strides[2], dilations[2], before[2], after[2]; /* rows, columns; before and after: EXPLICIT */
  bool same, depthwise;
} conv_state;

static bool text_is(const tn_operation *op, const char *attr, const char *text)
{
  const char *found;
  size_t size;
  return tn_operation_attr_string(op, attr, &found, &size, NULL) == TN_OK && size == strlen(text) &&
         memcmp(found, text, size) == 0;
}

static tn_status declined(tn_error *err, const char *why) { return tn_error_set(err, TN_UNIMPLEMENTED, "oneDNN: %s", why); }

/* Rows and columns of a list of four numbers; channels and batch must have 1. */
static bool read_pair(const tn_operation *op, const char *attr, int64_t to[2])
{
  const int64_t *v;
  size_t n;
  if (tn_operation_attr_ints(op, attr, &v, &n, NULL) != TN_OK || n != 4 || v[0] != 1 || v[3] != 1) return false;
  to[0] = v[1];
  to[1] = v[2];
  return v[1] > 0 && v[2] > 0;
}

static bool read_paddings(const tn_operation *op, conv_state *s)
{
  const int64_t *v;
  size_t n;
  if (!text_is(op, "padding", "EXPLICIT")) return true;
  if (tn_operation_attr_ints(op, "explicit_paddings", &v, &n, NULL) != TN_OK || n != 8) return false;
  for (int i = 0; i < 8; i++)
    if (v[i] < 0 || v[i] > INT32_MAX || (v[i] != 0 && (i < 2 || i > 5))) return false;
  for (int a = 0; a < 2; a++) s->before[a] = v[2 + 2 * a], s->after[a] = v[3 + 2 * a];
  return true;
}

static tn_status conv_create(const tn_operation *op, void **state, tn_error *err)
{
  conv_state s = { .same = text_is(op, "padding", "SAME"), .depthwise = strstr(tn_operation_type(op), "Depthwise") != NULL };
  *state = NULL;
  if (!text_is(op, "data_format", "NHWC")) return declined(err, "channels are not last");
  if (!read_pair(op, "strides", s.strides) || !read_pair(op, "dilations", s.dilations) || !read_paddings(op, &s))
    return declined(err, "attributes that the library's own kernel judges");
  tn_status st = dnn_epilogue_read(op, &s.epilogue, err);
  if (st != TN_OK) return st;
  conv_state *p = tn_alloc(sizeof *p);
  if (p == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "out of memory for a convolution");
  *p = s;
  *state = p;
  return TN_OK;
}

typedef struct sizes {
  int64_t n, c, groups, in_group, out_group; /* channels of a group */
  int64_t in[2], kernel[2], out[2], before[2], after[2];
} sizes;

/* What the library's own kernel would refuse it is left to refuse. */
static bool measure(const tn_prepare_ctx *ctx, const conv_state *s, sizes *z)
{
  const tn_view *in = &ctx->inputs[0], *filter = &ctx->inputs[1];
  if (in->rank != 4 || filter->rank != 4 || in->count == 0 || filter->count == 0) return false;
  *z = (sizes){ .n = in->dims[0], .c = in->dims[3] };
  if (s->depthwise ? filter->dims[2] != z->c : z->c % filter->dims[2] != 0) return false;
  z->groups = s->depthwise ? z->c : z->c / filter->dims[2];
  z->in_group = s->depthwise ? 1 : filter->dims[2];
  if (!s->depthwise && filter->dims[3] % z->groups != 0) return false;
  z->out_group = s->depthwise ? filter->dims[3] : filter->dims[3] / z->groups;
  for (int a = 0; a < 2; a++) {
    z->in[a] = in->dims[1 + a];
    z->kernel[a] = filter->dims[a];
    int64_t reach = (z->kernel[a] - 1) * s->dilations[a] + 1, step = s->strides[a];
    z->before[a] = s->before[a];
    z->after[a] = s->after[a];
    if (s->same) {
      int64_t out = (z->in[a] + step - 1) / step, pad = (out - 1) * step + reach - z->in[a];
      z->before[a] = pad > 0 ? pad / 2 : 0;
      z->after[a] = pad > 0 ? pad - pad / 2 : 0;
    }
    int64_t room = z->in[a] + z->before[a] + z->after[a] - reach;
    if (room < 0) return false;
    z->out[a] = room / step + 1;
    z->after[a] = (z->out[a] - 1) * step + reach - z->in[a] - z->before[a]; /* what the last window needs; may be below 0 */
  }
  return true;
}

typedef struct layouts {
  dnnl_memory_desc_t source, filter, any_filter, bias, target;
} layouts;

static dnnl_memory_desc_t channels_last(int64_t n, int64_t c, const int64_t hw[2])
{
  const int64_t dims[] = { n, c, hw[0], hw[1] }, strides[] = { hw[0] * hw[1] * c, 1, hw[1] * c, c };
  return dnn_strided(dims, strides, 4, dnnl_f32);
}

static layouts describe(const sizes *z, bool depthwise)
{
  layouts l;
  int64_t oc = z->groups * z->out_group, kw = z->kernel[1];
  l.source = channels_last(z->n, z->c, z->in);
  l.target = channels_last(z->n, oc, z->out);
  /* [kh,kw,in,out] as (group, out, in, kh, kw); a depthwise filter is [kh,kw,group,out] */
  const int64_t dims[] = { z->groups, z->out_group, z->in_group, z->kernel[0], z->kernel[1] };
  int64_t place = depthwise ? oc : z->in_group * oc;
  const int64_t strides[] = { z->out_group, 1, depthwise ? 1 : oc, kw * place, place };
  int skip = z->groups == 1 && !depthwise;
  l.filter = dnn_strided(dims + skip, strides + skip, 5 - skip, dnnl_f32);
  l.any_filter = dnn_any(dims + skip, 5 - skip, dnnl_f32);
  const int64_t one = 1;
  l.bias = dnn_strided(&oc, &one, 1, dnnl_f32);
  return l;
}

static tn_status conv_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const conv_state *s = ctx->state;
  sizes z;
  if (!measure(ctx, s, &z)) return declined(err, "shapes that the library's own kernel judges");
  const int64_t out[] = { z.n, z.out[0], z.out[1], z.groups * z.out_group };
  if (!dnn_epilogue_fits(&s->epilogue, ctx, 2, out, 4)) return declined(err, "fused tensors of other shapes");
  double products = (double)z.n * (double)z.out[0] * (double)z.out[1] * (double)ctx->inputs[1].count;
  if (products < 4096) return declined(err, "a convolution this small");
  layouts l = describe(&z, s->depthwise);
  const dnnl_dims_t strides = { s->strides[0], s->strides[1] }, before = { z.before[0], z.before[1] };
  const dnnl_dims_t dilates = { s->dilations[0] - 1, s->dilations[1] - 1 }, after = { z.after[0], z.after[1] };
  dnnl_convolution_desc_t desc;
  tn_status st = dnn_status(dnnl_dilated_convolution_forward_desc_init(
                                &desc, dnnl_forward_inference, dnnl_convolution_direct, &l.source, &l.any_filter,
                                dnn_has_bias(&s->epilogue) ? &l.bias : NULL, &l.target, strides, dilates, before, after), "convolution", err);
  dnn_plan *p = NULL;
  const dnn_setup setup = { &s->epilogue, &l.target };
  if (st == TN_OK) st = dnn_plan_create(ctx, &desc, &setup, &p, err);
  if (st != TN_OK) return st;
  ctx->shape_state = p;
  dnn_plan_input(p, DNNL_ARG_SRC, 0, &l.source);
  dnn_plan_output(p, DNNL_ARG_DST, 0, &l.target);
  dnn_plan_epilogue(p, &s->epilogue, 2, &l.bias, &l.target);
  st = dnn_plan_weights(p, ctx, DNNL_ARG_WEIGHTS, 1, &l.filter, err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 0, out, 4, err);
  ctx->cost_ns = products * 0.02;
  return st;
}

#define KERNEL(type, text)                                                                                            \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = type, .device = "CPU", .types = "T=float", .name = text,                 \
    .rank = DNN_RANK, .create = conv_create, .destroy = tn_free, .prepare = conv_prepare,                             \
    .destroy_shape_state = dnn_plan_free, .compute = dnn_compute }

const tn_kernel_def dnn_convolution_kernels[] = {
  KERNEL("Conv2D", "conv2d_onednn"),
  KERNEL("DepthwiseConv2dNative", "depthwise_onednn"),
  KERNEL("_TnConv2D", "fused_conv2d_onednn"),
  KERNEL("_TnDepthwiseConv2D", "fused_depthwise_onednn"),
};
const size_t dnn_n_convolution_kernels = sizeof dnn_convolution_kernels / sizeof *dnn_convolution_kernels;
