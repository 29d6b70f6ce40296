/* SPDX-License-Identifier: Apache-2.0 */
/* FusedBatchNorm in its three versions with gradients, BatchNormWithGlobalNormalization, LRN. */
#include "ops/kernel/columns.h"

#include <string.h>

typedef struct norm {
  gpu_columns columns;
  float epsilon;
  bool training;
} norm;

static gpu_ref input(size_t i) { return (gpu_ref){ GPU_ARG_INPUT, i }; }
static gpu_ref output(size_t i) { return (gpu_ref){ GPU_ARG_OUTPUT, i }; }

static tn_status read_norm(gpu_node *n, const gpu_value *x, norm *out, tn_error *err)
{
  const bool first = gpu_attr_text_is(n, "data_format", "NCHW") || gpu_attr_text_is(n, "data_format", "NCDHW");
  if (x->rank < 2) return gpu_decline(err, "a tensor of fewer than 2 dimensions");
  *out = (norm){ gpu_columns_of(x, first), gpu_attr_float(n, "epsilon", 0.0001f),
                 gpu_attr_bool(n, "is_training", true) };
  if (out->columns.channels > INT32_MAX - 4096) return gpu_decline(err, "more than 2^31 channels");
  if (x->count == 0) return gpu_decline(err, "statistics of nothing");
  return TN_OK;
}

/* Those at the end of a launch over all elements. */
static void arg_sizes(gpu_launch *l, const gpu_columns *c, int64_t count)
{
  gpu_arg_int(l, c->channels);
  gpu_arg_place(l, count, c->inner);
  gpu_arg_place(l, count, count);
  gpu_range_1d(l, count, 64);
}

static gpu_launch *launch_elements(gpu_node *n, const char *kernel, const char *define, tn_dtype dtype, int64_t count)
{
  gpu_launch *l = gpu_launch_file(n, "norm", kernel);
  gpu_define(l, define, "1");
  gpu_define_elements(l, "", dtype);
  gpu_define_places(l, count);
  return l;
}

static gpu_launch *launch_channels(gpu_node *n, const char *kernel, const char *define)
{
  gpu_launch *l = gpu_launch_file(n, "norm", kernel);
  gpu_define(l, define, "1");
  return l;
}

static void launch_zero(gpu_node *n, uint32_t output)
{
  gpu_launch *l = launch_channels(n, "zero", "ZERO");
  gpu_arg_output(l, output);
  gpu_arg_int(l, n->outputs[output].count);
  gpu_range_1d(l, n->outputs[output].count, 64);
}

/* ---- FusedBatchNorm ---- */

static void launch_statistics(gpu_node *n, const norm *m)
{
  const float factor = gpu_attr_float(n, "exponential_avg_factor", 1), terms = (float)m->columns.terms;
  gpu_columns_sum(n, &m->columns, GPU_SUM_PLAIN, input(0), input(0), input(0), 1 / terms, output(3), TN_FLOAT);
  gpu_columns_sum(n, &m->columns, GPU_SUM_SQUARES, input(0), input(0), output(3), 1 / terms, output(4), TN_FLOAT);
  gpu_launch *l = launch_channels(n, "kept", "KEPT");
  const bool mixed = factor != 1;
  if (mixed) gpu_define(l, "FACTOR", "1");
  gpu_arg_ref(l, mixed ? input(3) : output(3));
  gpu_arg_ref(l, mixed ? input(4) : output(4));
  gpu_arg_output(l, 3);
  gpu_arg_output(l, 4);
  gpu_arg_output(l, 1);
  gpu_arg_output(l, 2);
  gpu_arg_float(l, m->columns.terms > 1 ? terms / (terms - 1) : 1);
  gpu_arg_float(l, factor);
  gpu_arg_int(l, m->columns.channels);
  gpu_range_1d(l, m->columns.channels, 64);
}

static void launch_given(gpu_node *n, const norm *m)
{
  gpu_launch *l = launch_channels(n, "given", "GIVEN");
  gpu_arg_input(l, 3);
  gpu_arg_input(l, 4);
  for (uint32_t i = 1; i < 5; i++) gpu_arg_output(l, i);
  gpu_arg_int(l, m->columns.channels);
  gpu_range_1d(l, m->columns.channels, 64);
}

static tn_status plan_fused(gpu_node *n, tn_error *err)
{
  norm m;
  const gpu_value *x = &n->inputs[0];
  tn_status st = read_norm(n, x, &m, err);
  if (st != TN_OK) return st;
  if (m.training) launch_statistics(n, &m);
  else launch_given(n, &m);
  if (n->n_outputs > 5) launch_zero(n, 5);
  gpu_launch *l = launch_elements(n, "batch_norm", "NORM", x->dtype, x->count);
  gpu_define(l, "N", "float");
  gpu_define(l, "LOADN", "LOAD_PLAIN");
  gpu_define(l, "SCALE", "1");
  gpu_arg_input(l, 0);
  gpu_arg_input(l, 1);
  gpu_arg_input(l, 2);
  gpu_arg_ref(l, m.training ? output(3) : input(3));
  gpu_arg_ref(l, m.training ? output(4) : input(4));
  gpu_arg_output(l, 0);
  gpu_arg_float(l, m.epsilon);
  arg_sizes(l, &m.columns, x->count);
  return gpu_node_done(n, err);
}

static tn_status plan_fused_grad(gpu_node *n, tn_error *err)
{
  norm m;
  const gpu_value *dy = &n->inputs[0];
  tn_status st = read_norm(n, dy, &m, err);
  if (st != TN_OK) return st;
  const gpu_ref sum_d = { GPU_ARG_SCRATCH, gpu_scratch(n, (size_t)m.columns.channels * sizeof(float)) };
  gpu_columns_sum(n, &m.columns, GPU_SUM_PLAIN, input(0), input(0), input(0), 1, output(2), TN_FLOAT);
  gpu_columns_sum(n, &m.columns, GPU_SUM_WITH, input(0), input(1), input(3), 1, sum_d, TN_FLOAT);
  gpu_launch *l = launch_channels(n, "scale_grad", "GRAD");
  gpu_define_elements(l, "", dy->dtype);
  gpu_define_places(l, dy->count);
  if (m.training) gpu_define(l, "TRAINING", "1");
  gpu_arg_input(l, 4);
  gpu_arg_ref(l, sum_d);
  gpu_arg_output(l, 1);
  gpu_arg_float(l, m.epsilon);
  gpu_arg_int(l, m.columns.channels);
  gpu_range_1d(l, m.columns.channels, 64);
  l = launch_elements(n, "batch_norm_grad", "GRAD", dy->dtype, dy->count);
  if (m.training) gpu_define(l, "TRAINING", "1");
  gpu_arg_input(l, 0);
  gpu_arg_input(l, 1);
  gpu_arg_input(l, 2);
  gpu_arg_input(l, 3);
  gpu_arg_input(l, 4);
  gpu_arg_output(l, 2);
  gpu_arg_ref(l, sum_d);
  gpu_arg_output(l, 0);
  gpu_arg_float(l, m.epsilon);
  gpu_arg_float(l, 1 / (float)m.columns.terms);
  arg_sizes(l, &m.columns, dy->count);
  return gpu_node_done(n, err);
}

/* ---- others ---- */

static tn_status plan_global(gpu_node *n, tn_error *err)
{
  const gpu_value *t = &n->inputs[0];
  if (t->rank != 4 || t->dims[3] > INT32_MAX) return gpu_decline(err, "shapes that are no images");
  const gpu_columns c = gpu_columns_of(t, false);
  const gpu_element *e = gpu_element_of(t->dtype);
  gpu_launch *l = launch_elements(n, "batch_norm", "NORM", t->dtype, t->count);
  gpu_define(l, "N", "%s", e->stored);
  gpu_define(l, "LOADN", "LOAD_%s", e->access);
  if (gpu_attr_bool(n, "scale_after_normalization", false)) gpu_define(l, "SCALE", "1");
  gpu_arg_input(l, 0);
  gpu_arg_input(l, 4);
  gpu_arg_input(l, 3);
  gpu_arg_input(l, 1);
  gpu_arg_input(l, 2);
  gpu_arg_output(l, 0);
  gpu_arg_float(l, gpu_attr_float(n, "variance_epsilon", 0));
  arg_sizes(l, &c, t->count);
  return gpu_node_done(n, err);
}

static tn_status plan_lrn(gpu_node *n, tn_error *err)
{
  const gpu_value *x = &n->inputs[0];
  const int64_t radius = gpu_attr_int(n, "depth_radius", 5);
  if (x->rank != 4 || x->dims[3] > INT32_MAX || radius < 0) return gpu_decline(err, "shapes that are no images");
  gpu_launch *l = launch_elements(n, "lrn", "LRN", x->dtype, x->count);
  gpu_arg_input(l, 0);
  gpu_arg_output(l, 0);
  gpu_arg_float(l, gpu_attr_float(n, "bias", 1));
  gpu_arg_float(l, gpu_attr_float(n, "alpha", 1));
  gpu_arg_float(l, gpu_attr_float(n, "beta", 0.5f));
  gpu_arg_int(l, radius);
  gpu_arg_int(l, x->dims[3]);
  gpu_arg_place(l, x->count, x->count);
  gpu_range_1d(l, x->count, 64);
  return gpu_node_done(n, err);
}

#define SHORTS "T=half|bfloat16|float"
const gpu_op gpu_norm_ops[] = {
  { "FusedBatchNorm", "T=float", plan_fused, 0, false },
  { "FusedBatchNormV2", SHORTS, plan_fused, 0, false },
  { "FusedBatchNormV3", SHORTS ",U=float", plan_fused, 0, false },
  { "FusedBatchNormGrad", "T=float", plan_fused_grad, 0, false },
  { "FusedBatchNormGradV2", SHORTS, plan_fused_grad, 0, false },
  { "FusedBatchNormGradV3", SHORTS, plan_fused_grad, 0, false },
  { "BatchNormWithGlobalNormalization", "T=half|float|double", plan_global, 0, false },
  { "LRN", SHORTS, plan_lrn, 0, false },
  { NULL, NULL, NULL, 0, false },
};
