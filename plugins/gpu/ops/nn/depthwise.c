/* SPDX-License-Identifier: Apache-2.0 */
/* DepthwiseConv2dNative, alone and with what follows it, and its gradients. */
#include "ops/kernel/product.h"

#include <stdio.h>

typedef struct depthwise {
  gpu_window window;
  gpu_images in, out;
  int64_t times; /* filters of a channel */
  gpu_window_arg arg;
} depthwise;

static tn_status read_depthwise(gpu_node *n, const gpu_value *in, const gpu_value *filter, const gpu_value *out,
                                depthwise *d, tn_error *err)
{
  tn_status st = gpu_window_read(n, 0, &d->window, err);
  if (st != TN_OK) return st;
  if (d->window.channels_first) return gpu_decline(err, "images with channels first");
  if (in->rank != 4 || filter->rank != 4 || out->rank != 4) return gpu_decline(err, "shapes that are no images");
  d->in = gpu_images_of(&d->window, in->dims);
  d->out = gpu_images_of(&d->window, out->dims);
  d->window.y.size = filter->dims[0];
  d->window.x.size = filter->dims[1];
  d->times = filter->dims[3];
  if (d->in.c < 1 || d->times < 1 || filter->dims[2] != d->in.c || d->out.c / d->times != d->in.c ||
      d->out.c % d->times != 0 || d->out.c > INT32_MAX || d->in.n != d->out.n)
    return gpu_decline(err, "channels that do not fit the filter");
  st = gpu_window_fit(n, &d->window, &d->in, &d->out, err);
  d->arg = gpu_window_pass(&d->window, d->in.c, d->out.c, 1);
  const double taps = (double)d->window.y.size * (double)d->window.x.size;
  n->cost_ns = 4e-3 * taps * (double)out->count + 0.01 * (double)(in->bytes + out->bytes + filter->bytes);
  return st;
}

/* Types for channels that are done at a time. */
static void define_vectors(gpu_launch *l, tn_dtype dtype, int width)
{
  const gpu_element *e = gpu_element_of(dtype);
  gpu_define_elements(l, "", dtype);
  gpu_define(l, "FLOATING", "1");
  gpu_define(l, "VECTOR", "%d", width);
  if (e == NULL) return;
  char four[32];
  snprintf(four, sizeof four, "%s4", e->computed);
  gpu_define(l, "CV", "%s", width > 1 ? four : e->computed);
  gpu_define(l, "LOADV", "%s_%s", width > 1 ? "LOAD4" : "LOAD", e->access);
  gpu_define(l, "STOREV", "%s_%s", width > 1 ? "STORE4" : "STORE", e->access);
}

static tn_status plan_depthwise(gpu_node *n, tn_error *err)
{
  depthwise d;
  gpu_after after;
  tn_status st = read_depthwise(n, &n->inputs[0], &n->inputs[1], &n->outputs[0], &d, err);
  if (st == TN_OK) st = gpu_after_read(n, 2, &after, err);
  if (st != TN_OK) return st;
  const int width = d.times == 1 && d.in.c % 4 == 0 ? 4 : 1;
  const int64_t count = n->outputs[0].count / width;
  gpu_launch *l = gpu_launch_file(n, "product", "depthwise");
  gpu_define(l, "DEPTHWISE", "1");
  define_vectors(l, n->outputs[0].dtype, width);
  gpu_define_places(l, count);
  gpu_after_define(l, &after);
  gpu_arg_input(l, 0);
  gpu_arg_input(l, 1);
  gpu_arg_output(l, 0);
  gpu_after_args(l, &after, 2);
  gpu_arg_bytes(l, &d.arg, sizeof d.arg);
  gpu_arg_int(l, d.times);
  gpu_arg_place(l, count, count);
  gpu_range_1d(l, count, 64);
  return gpu_node_done(n, err);
}

static tn_status plan_to_input(gpu_node *n, tn_error *err)
{
  depthwise d;
  const int64_t count = n->outputs[0].count;
  tn_status st = read_depthwise(n, &n->outputs[0], &n->inputs[1], &n->inputs[2], &d, err);
  if (st != TN_OK) return st;
  gpu_launch *l = gpu_launch_file(n, "depthwise", "to_input");
  gpu_define(l, "TO_INPUT", "1");
  gpu_define_elements(l, "", n->outputs[0].dtype);
  gpu_define_places(l, count);
  gpu_arg_input(l, 1);
  gpu_arg_input(l, 2);
  gpu_arg_output(l, 0);
  gpu_arg_bytes(l, &d.arg, sizeof d.arg);
  gpu_arg_int(l, d.times);
  gpu_arg_place(l, count, count);
  gpu_range_1d(l, count, 64);
  return gpu_node_done(n, err);
}

static tn_status plan_to_filter(gpu_node *n, tn_error *err)
{
  depthwise d;
  tn_status st = read_depthwise(n, &n->inputs[0], &n->outputs[0], &n->inputs[2], &d, err);
  if (st != TN_OK) return st;
  const int64_t taps = d.window.y.size * d.window.x.size, blocks = (d.out.c + 15) / 16;
  if (taps > INT32_MAX) return gpu_decline(err, "a filter of more than 2^31 taps");
  gpu_launch *l = gpu_launch_file(n, "depthwise", "to_filter");
  gpu_define(l, "TO_FILTER", "1");
  gpu_define_elements(l, "", n->outputs[0].dtype);
  gpu_arg_input(l, 0);
  gpu_arg_input(l, 2);
  gpu_arg_output(l, 0);
  gpu_arg_bytes(l, &d.arg, sizeof d.arg);
  gpu_arg_int(l, d.times);
  gpu_arg_long(l, d.out.n * d.out.h * d.out.w);
  gpu_range_1d(l, taps * blocks * 256, 256);
  return gpu_node_done(n, err);
}

const gpu_op gpu_depthwise_ops[] = {
  { "DepthwiseConv2dNative", "T=" GPU_FLOATS, plan_depthwise, 0, false },
  { "_TnDepthwiseConv2D", "T=float", plan_depthwise, 0, false },
  { "DepthwiseConv2dNativeBackpropInput", "T=" GPU_FLOATS, plan_to_input, 0, false },
  { "DepthwiseConv2dNativeBackpropFilter", "T=" GPU_FLOATS, plan_to_filter, 0, false },
  { NULL, NULL, NULL, 0, false },
};
