/* SPDX-License-Identifier: Apache-2.0 */
/* CheckNumerics: collects the kinds of non-finite numbers over all elements, and reports them once. */
#include "ops/kernel/elements.h"

enum { HAS_NAN = 1, HAS_PLUS = 2, HAS_MINUS = 4 }; /* as in check.cl */

static tn_status explain(const gpu_fault *f, tn_error *err)
{
  const char *text = "";
  size_t length = 0;
  tn_operation_attr_string(f->op, "message", &text, &length, NULL);
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%.*s%sthe tensor has%s%s%s", (int)length, text, length > 0 ? ": " : "",
                      f->value & HAS_NAN ? " NaN" : "", f->value & HAS_PLUS ? " +Inf" : "",
                      f->value & HAS_MINUS ? " -Inf" : "");
}

static gpu_launch *begin(gpu_node *n, const char *kernel)
{
  gpu_launch *l = gpu_launch_file(n, "check", kernel);
  gpu_define_elements(l, "", n->inputs[0].dtype);
  gpu_define_places(l, n->inputs[0].count);
  return l;
}

static tn_status plan_check(gpu_node *n, tn_error *err)
{
  int64_t count = n->inputs[0].count;
  if (count == 0) return gpu_node_done(n, err);
  size_t found = gpu_scratch(n, sizeof(cl_uint));
  gpu_launch *l = begin(n, "check_begin");
  gpu_arg_scratch(l, found);
  gpu_range_1d(l, 1, 1);
  l = begin(n, "check");
  gpu_arg_input(l, 0);
  gpu_arg_output(l, 0);
  gpu_arg_scratch(l, found);
  gpu_arg_place(l, count, count);
  gpu_range_1d(l, count, 64);
  l = begin(n, "check_end");
  gpu_arg_scratch(l, found);
  gpu_arg_fault(l, explain, 0);
  gpu_range_1d(l, 1, 1);
  return gpu_node_done(n, err);
}

extern const gpu_op gpu_check_ops[];
const gpu_op gpu_check_ops[] = {
  { "CheckNumerics", "T=" GPU_FLOATS, plan_check, .in_place = true },
  { "CheckNumericsV2", "T=" GPU_FLOATS, plan_check, .in_place = true },
  { NULL },
};
