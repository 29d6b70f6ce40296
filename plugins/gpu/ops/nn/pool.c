/* SPDX-License-Identifier: Apache-2.0 */
/* MaxPool, MaxPoolV2, AvgPool and their gradients, over rows and columns of images. */
#include "ops/kernel/elements.h"
#include "ops/kernel/window.h"

#include <string.h>

/* The maximum of an empty window. */
static const char *lowest(tn_dtype dtype)
{
  switch (dtype) {
  case TN_FLOAT: return "-FLT_MAX";
  case TN_DOUBLE: return "-DBL_MAX";
  case TN_HALF: return "-65504.0f";
  case TN_BFLOAT16: return "-0x1.fep127f";
  case TN_INT8: return "CHAR_MIN";
  case TN_INT16: return "SHRT_MIN";
  case TN_INT32: return "INT_MIN";
  case TN_INT64: return "LONG_MIN";
  default: return "0";
  }
}

typedef struct pooling {
  gpu_window_arg arg;
  int64_t n_in, n_out; /* elements */
} pooling;

/* Places of a window as its op counts them. */
static int64_t places(const gpu_axis *a, int64_t length)
{
  if (a->before < 0) return (length + a->stride - 1) / a->stride;
  return (length - a->size + a->stride) / a->stride;
}

/* Images with channels first are as many images of one channel. */
static tn_status read_pooling(gpu_node *n, uint32_t sizes_from, const gpu_value *in, const gpu_value *out, pooling *p,
                              tn_error *err)
{
  gpu_window w;
  tn_status st = gpu_window_read(n, sizes_from, &w, err);
  if (st != TN_OK) return st;
  if (in->rank != 4 || out->rank != 4) return gpu_decline(err, "shapes that are no images");
  gpu_images from = gpu_images_of(&w, in->dims), to = gpu_images_of(&w, out->dims);
  if (from.n != to.n || from.c != to.c) return gpu_decline(err, "pooling over batch or channels");
  if (!gpu_attr_text_is(n, "padding", "EXPLICIT") && (places(&w.y, from.h) != to.h || places(&w.x, from.w) != to.w))
    return gpu_decline(err, "results that are not those of all windows");
  const int64_t c = w.channels_first ? 1 : from.c;
  if (c > INT32_MAX) return gpu_decline(err, "more than 2^31 channels");
  st = gpu_window_fit(n, &w, &from, &to, err);
  *p = (pooling){ gpu_window_pass(&w, c, c, 1), in->count, out->count };
  const double taps = (double)w.y.size * (double)w.x.size;
  n->cost_ns = 2e-3 * taps * (double)out->count + 0.01 * (double)(in->bytes + out->bytes);
  return st;
}

static gpu_launch *begin(gpu_node *n, const char *kernel, const char *define, int64_t count)
{
  gpu_launch *l = gpu_launch_file(n, "pool", kernel);
  gpu_define(l, define, "1");
  gpu_define_elements(l, "", n->outputs[0].dtype);
  gpu_define_places(l, count);
  return l;
}

static tn_status end(gpu_node *n, gpu_launch *l, const pooling *p, int64_t count, tn_error *err)
{
  gpu_arg_output(l, 0);
  gpu_arg_bytes(l, &p->arg, sizeof p->arg);
  gpu_arg_place(l, count, count);
  gpu_range_1d(l, count, 64);
  return gpu_node_done(n, err);
}

static tn_status plan_pool(gpu_node *n, tn_error *err)
{
  pooling p;
  const bool mean = strcmp(tn_operation_type(n->op), "AvgPool") == 0;
  const uint32_t sizes = strcmp(tn_operation_type(n->op), "MaxPoolV2") == 0 ? 1 : 0;
  tn_status st = read_pooling(n, sizes, &n->inputs[0], &n->outputs[0], &p, err);
  if (st != TN_OK) return st;
  gpu_launch *l = begin(n, "pool", "POOL", p.n_out);
  if (mean) gpu_define(l, "MEAN", "1");
  gpu_define(l, "FIRST", "%s", mean ? "0" : lowest(n->outputs[0].dtype));
  gpu_arg_input(l, 0);
  return end(n, l, &p, p.n_out, err);
}

/* The op's second version has sizes as inputs. */
static uint32_t sizes_of_grad(const gpu_node *n)
{
  const char *type = tn_operation_type(n->op);
  return strcmp(type + strlen(type) - 2, "V2") == 0 ? 3 : 0;
}

static tn_status plan_max_grad(gpu_node *n, tn_error *err)
{
  pooling p;
  tn_status st = read_pooling(n, sizes_of_grad(n), &n->inputs[0], &n->inputs[1], &p, err);
  if (st != TN_OK) return st;
  gpu_launch *l = begin(n, "max_grad", "MAX_GRAD", p.n_in);
  gpu_arg_input(l, 0);
  gpu_arg_input(l, 2);
  return end(n, l, &p, p.n_in, err);
}

static tn_status plan_max_grad_grad(gpu_node *n, tn_error *err)
{
  pooling p;
  tn_status st = read_pooling(n, sizes_of_grad(n), &n->inputs[0], &n->inputs[1], &p, err);
  if (st != TN_OK) return st;
  gpu_launch *l = begin(n, "max_grad_grad", "MAX_GRAD_GRAD", p.n_out);
  gpu_arg_input(l, 0);
  gpu_arg_input(l, 1);
  gpu_arg_input(l, 2);
  return end(n, l, &p, p.n_out, err);
}

static tn_status plan_mean_grad(gpu_node *n, tn_error *err)
{
  pooling p;
  tn_status st = read_pooling(n, 0, &n->outputs[0], &n->inputs[1], &p, err);
  if (st != TN_OK) return st;
  gpu_launch *l = begin(n, "mean_grad", "MEAN_GRAD", p.n_in);
  gpu_arg_input(l, 1);
  return end(n, l, &p, p.n_in, err);
}

#define REALS GPU_FLOATS "|" GPU_INTEGERS
const gpu_op gpu_pool_ops[] = {
  { "MaxPool", "T=" REALS, plan_pool, 0, false },
  { "MaxPoolV2", "T=" REALS, plan_pool, 1u << 1 | 1u << 2, false },
  { "AvgPool", "T=" GPU_FLOATS, plan_pool, 0, false },
  { "MaxPoolGrad", "T=" REALS, plan_max_grad, 0, false },
  { "MaxPoolGradV2", "T=" REALS, plan_max_grad, 1u << 3 | 1u << 4, false },
  { "MaxPoolGradGrad", "T=" REALS, plan_max_grad_grad, 0, false },
  { "MaxPoolGradGradV2", "T=" REALS, plan_max_grad_grad, 1u << 3 | 1u << 4, false },
  { "AvgPoolGrad", "T=" GPU_FLOATS, plan_mean_grad, 0, false },
  { NULL, NULL, NULL, 0, false },
};
