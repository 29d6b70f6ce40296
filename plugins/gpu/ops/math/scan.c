/* SPDX-License-Identifier: Apache-2.0 */
/* Running sums and the like along an axis: Cumsum, Cumprod, CumulativeLogsumexp. */
#include "ops/kernel/move.h"

#include <string.h>

enum { GROUP = 64, LONG = 512 /* a line that is worth a group of work items */ };

/* STEP of scan.cl. */
static int step_of(const char *op)
{
  if (strcmp(op, "Cumsum") == 0) return 0;
  return strcmp(op, "Cumprod") == 0 ? 1 : 2;
}

static tn_status plan_scan(gpu_node *n, tn_error *err)
{
  const gpu_value *x = &n->inputs[0];
  const gpu_element *t = gpu_element_of(x->dtype);
  int64_t axis = gpu_int_at(&n->inputs[1], 0), inner = 1, size, lines;
  if (axis < 0) axis += x->rank;
  if (axis < 0 || axis >= x->rank) return gpu_decline(err, "axis %lld of rank %d", (long long)axis, (int)x->rank);
  if (x->count == 0) return gpu_node_done(n, err);
  for (int32_t d = (int32_t)axis + 1; d < x->rank; d++) inner *= x->dims[d];
  size = x->dims[axis];
  lines = x->count / size;
  /* Sums of the short floating-point types are rounded at each step, so one work item must compute a whole line. */
  bool whole = size >= LONG && strcmp(t->access, "PLAIN") == 0;
  gpu_launch *l = gpu_launch_file(n, "scan", whole ? "scan_long" : "scan");
  gpu_define_elements(l, "", x->dtype);
  gpu_define(l, "ROUND", "ROUND_%s", t->access);
  gpu_define(l, "W", "%s", gpu_sum_type(t));
  gpu_define(l, "STEP", "%d", step_of(tn_operation_type(n->op)));
  gpu_define(l, "GROUP", "%d", GROUP);
  gpu_define_places(l, x->count);
  gpu_arg_input(l, 0);
  gpu_arg_output(l, 0);
  gpu_arg_place(l, x->count, lines);
  gpu_arg_place(l, x->count, size);
  gpu_arg_place(l, x->count, inner);
  gpu_arg_int(l, gpu_attr_bool(n, "exclusive", false));
  gpu_arg_int(l, gpu_attr_bool(n, "reverse", false));
  gpu_range_1d(l, whole ? lines * GROUP : lines, GROUP);
  if (!whole) n->cost_ns = (double)size * (10 + 0.02 * (double)lines);
  return gpu_node_done(n, err);
}

extern const gpu_op gpu_scan_ops[];
const gpu_op gpu_scan_ops[] = {
  { "Cumsum", "T=" GPU_FLOATS "|" GPU_INTEGERS, plan_scan, .host_inputs = 1u << 1 },
  { "Cumprod", "T=" GPU_FLOATS "|" GPU_INTEGERS, plan_scan, .host_inputs = 1u << 1 },
  { "CumulativeLogsumexp", "T=" GPU_FLOATS, plan_scan, .host_inputs = 1u << 1 },
  { NULL },
};
