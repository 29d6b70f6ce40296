/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax, LogSoftmax, and losses of softmax with their gradients. */
#include "ops/kernel/elements.h"

#include <string.h>

enum { GROUP = 64, ROW_LEAST = 48 /* shorter rows are done by one work item */ };

static gpu_launch *begin(gpu_node *n, const char *kernel, int64_t places)
{
  gpu_launch *l = gpu_launch_file(n, "softmax", kernel);
  gpu_define_elements(l, "", n->inputs[0].dtype);
  gpu_define(l, "GROUP", "%d", GROUP);
  gpu_define_places(l, places);
  return l;
}

static tn_status plan_softmax(gpu_node *n, tn_error *err)
{
  const gpu_value *x = &n->inputs[0];
  if (x->rank < 1) return gpu_decline(err, "its input is a scalar");
  int64_t columns = x->dims[x->rank - 1], rows = columns > 0 ? x->count / columns : 0;
  bool whole = columns >= ROW_LEAST;
  gpu_launch *l = begin(n, whole ? "softmax_rows" : "softmax_short", x->count);
  if (strcmp(tn_operation_type(n->op), "LogSoftmax") == 0) gpu_define(l, "LOGARITHM", "1");
  gpu_arg_input(l, 0);
  gpu_arg_output(l, 0);
  gpu_arg_place(l, x->count, columns);
  if (!whole) gpu_arg_place(l, x->count, rows);
  gpu_range_1d(l, whole ? rows * GROUP : rows, GROUP);
  return gpu_node_done(n, err);
}

/* How far it is from row to row and from element to element. */
static void put_steps(gpu_launch *l, const gpu_value *v, int64_t places)
{
  int64_t columns = v->rank > 0 ? v->dims[v->rank - 1] : 1, rows = v->rank > 1 ? v->dims[v->rank - 2] : 1;
  gpu_arg_place(l, places, rows != 1 ? columns : 0);
  gpu_arg_place(l, places, columns != 1);
}

static tn_status plan_entropy(gpu_node *n, tn_error *err)
{
  const gpu_value *out = &n->outputs[1];
  gpu_launch *l = begin(n, "entropy", out->count);
  for (uint32_t i = 0; i < 2; i++) gpu_arg_input(l, i);
  for (uint32_t i = 0; i < 2; i++) gpu_arg_output(l, i);
  gpu_arg_place(l, out->count, out->dims[1]);
  for (uint32_t i = 0; i < 2; i++) put_steps(l, &n->inputs[i], out->count);
  gpu_range_1d(l, out->dims[0] * GROUP, GROUP);
  return gpu_node_done(n, err);
}

static int64_t class_at(const gpu_value *v, int64_t i)
{
  return v->dtype == TN_INT64 ? ((const int64_t *)v->host)[i] : ((const int32_t *)v->host)[i];
}

/* Classes that planning knows need no look in the step. */
static bool are_known(const gpu_value *classes, int64_t n)
{
  for (int64_t i = 0; i < classes->count; i++)
    if (classes->host == NULL || class_at(classes, i) < 0 || class_at(classes, i) >= n) return false;
  return true;
}

static tn_status explain_class(const gpu_fault *f, tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT,
                      "SparseSoftmaxCrossEntropyWithLogits: label %lld is %lld, there are %lld classes",
                      (long long)f->place, (long long)f->value, (long long)f->limit);
}

static tn_status plan_class_entropy(gpu_node *n, tn_error *err)
{
  const gpu_value *x = &n->inputs[0], *classes = &n->inputs[1];
  bool known = are_known(classes, x->dims[1]);
  gpu_launch *l = begin(n, "class_entropy", x->count);
  gpu_define(l, "CLASS", "%s", gpu_type(classes->dtype));
  for (uint32_t i = 0; i < 2; i++) gpu_arg_input(l, i);
  for (uint32_t i = 0; i < 2; i++) gpu_arg_output(l, i);
  gpu_arg_place(l, x->count, x->dims[1]);
  if (!known) gpu_define(l, "CHECKED", "1");
  if (!known) gpu_arg_fault(l, explain_class, x->dims[1]);
  gpu_range_1d(l, x->dims[0] * GROUP, GROUP);
  return gpu_node_done(n, err);
}

extern const gpu_op gpu_softmax_ops[];
const gpu_op gpu_softmax_ops[] = {
  { "Softmax", "T=" GPU_FLOATS, plan_softmax },
  { "LogSoftmax", "T=" GPU_FLOATS, plan_softmax },
  { "SoftmaxCrossEntropyWithLogits", "T=" GPU_FLOATS, plan_entropy },
  { "SparseSoftmaxCrossEntropyWithLogits", "T=" GPU_FLOATS ",Tlabels=int32|int64", plan_class_entropy },
  { NULL },
};
