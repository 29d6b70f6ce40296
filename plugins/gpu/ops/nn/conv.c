/* SPDX-License-Identifier: Apache-2.0 */
/* Conv2D, alone and with what follows it, and its gradients, as products: no windows are copied together. */
#include "ops/kernel/product.h"

/* Images, filter and results of a convolution, whichever of them is asked for. */
typedef struct convolution {
  gpu_window window;
  gpu_images in, out;
  int64_t kc, groups;
} convolution;

static tn_status read_convolution(const gpu_node *n, const gpu_value *in, const gpu_value *filter, const gpu_value *out,
                                  convolution *c, tn_error *err)
{
  tn_status st = gpu_window_read(n, 0, &c->window, err);
  if (st != TN_OK) return st;
  if (c->window.channels_first) return gpu_decline(err, "images with channels first");
  if (in->rank != 4 || filter->rank != 4 || out->rank != 4) return gpu_decline(err, "shapes that are no images");
  c->in = gpu_images_of(&c->window, in->dims);
  c->out = gpu_images_of(&c->window, out->dims);
  c->window.y.size = filter->dims[0];
  c->window.x.size = filter->dims[1];
  c->kc = filter->dims[2];
  if (c->kc < 1 || c->in.c < 1 || c->in.c % c->kc != 0 || c->out.c != filter->dims[3] || c->in.n != c->out.n)
    return gpu_decline(err, "channels that do not fit the filter");
  c->groups = c->in.c / c->kc;
  if (c->out.c < 1 || c->out.c % c->groups != 0) return gpu_decline(err, "channels that do not fit the filter");
  return gpu_window_fit(n, &c->window, &c->in, &c->out, err);
}

static gpu_window_arg window_arg(const convolution *c)
{
  return gpu_window_pass(&c->window, c->in.c, c->out.c, c->kc);
}

static int64_t taps(const convolution *c) { return c->window.y.size * c->window.x.size; }

static bool is_pointwise(const gpu_axis *a)
{
  return a->size == 1 && a->stride == 1 && a->before == 0 && a->places == a->length;
}

static tn_status launch(gpu_node *n, const gpu_product *p, tn_error *err)
{
  tn_status st = gpu_product_launch(n, p, err);
  return st == TN_OK ? gpu_node_done(n, err) : st;
}

static tn_status plan_conv(gpu_node *n, tn_error *err)
{
  convolution c;
  gpu_product p = { .mode = GPU_WINDOWS, .a = 0, .b = 1, .first_arg = 2 };
  tn_status st = read_convolution(n, &n->inputs[0], &n->inputs[1], &n->outputs[0], &c, err);
  if (st == TN_OK) st = gpu_after_read(n, 2, &p.after, err);
  if (st != TN_OK) return st;
  p.batch = c.groups;
  p.m = c.out.n * c.out.h * c.out.w;
  p.n = p.b_batch = p.out_batch = c.out.c / c.groups;
  p.k = taps(&c) * c.kc;
  p.b_row = p.out_row = c.out.c;
  p.a_batch = c.kc;
  if (is_pointwise(&c.window.y) && is_pointwise(&c.window.x)) { /* the images are the matrix */
    p.mode = GPU_MATRIX;
    p.a_row = c.in.c;
  }
  p.window = window_arg(&c);
  return launch(n, &p, err);
}

static tn_status plan_to_input(gpu_node *n, tn_error *err)
{
  convolution c;
  gpu_product p = { .mode = GPU_PLACES, .a = 2, .b = 1 };
  tn_status st = read_convolution(n, &n->outputs[0], &n->inputs[1], &n->inputs[2], &c, err);
  if (st != TN_OK) return st;
  p.batch = c.groups;
  p.m = c.in.n * c.in.h * c.in.w;
  p.n = p.out_batch = c.kc;
  p.k = taps(&c) * (c.out.c / c.groups);
  p.a_batch = p.b_batch = c.out.c / c.groups;
  p.out_row = c.in.c;
  p.window = window_arg(&c);
  return launch(n, &p, err);
}

static tn_status plan_to_filter(gpu_node *n, tn_error *err)
{
  convolution c;
  gpu_product p = { .mode = GPU_TAPS, .a = 0, .b = 2 };
  tn_status st = read_convolution(n, &n->inputs[0], &n->outputs[0], &n->inputs[2], &c, err);
  if (st != TN_OK) return st;
  p.batch = c.groups;
  p.m = taps(&c) * c.kc;
  p.n = p.b_batch = p.out_batch = c.out.c / c.groups;
  p.k = c.out.n * c.out.h * c.out.w;
  p.a_batch = c.kc;
  p.b_row = p.out_row = c.out.c;
  p.window = window_arg(&c);
  return launch(n, &p, err);
}

/* Shapes that are inputs are those of outputs, too, and not read. */
const gpu_op gpu_conv_ops[] = {
  { "Conv2D", "T=" GPU_FLOATS "|int32", plan_conv, 0, false },
  { "_TnConv2D", "T=float", plan_conv, 0, false },
  { "Conv2DBackpropInput", "T=" GPU_FLOATS "|int32", plan_to_input, 0, false },
  { "Conv2DBackpropFilter", "T=" GPU_FLOATS, plan_to_filter, 0, false },
  { NULL, NULL, NULL, 0, false },
};
