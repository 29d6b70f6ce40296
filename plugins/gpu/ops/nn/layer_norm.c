/* SPDX-License-Identifier: Apache-2.0 */
/* _TnLayerNorm, which the planner makes of layer and RMS normalisation: each row is that of a group. */
#include "ops/kernel/elements.h"

enum { GROUP = 64 };

static tn_status plan_layer_norm(gpu_node *n, tn_error *err)
{
  const gpu_value *x = &n->inputs[0];
  const bool scaled = gpu_attr_bool(n, "scaled", false), shifted = gpu_attr_bool(n, "shifted", false);
  if (x->rank < 1) return gpu_decline(err, "its input is a scalar");
  const int64_t columns = x->dims[x->rank - 1], rows = columns > 0 ? x->count / columns : 0;
  for (uint32_t i = 1; i < 1u + scaled + shifted; i++)
    if (n->inputs[i].count != columns) return gpu_decline(err, "a vector of another size than its rows");
  gpu_launch *l = gpu_launch_file(n, "layer_norm", "layer_norm");
  gpu_define_elements(l, "", x->dtype);
  gpu_define(l, "GROUP", "%d", GROUP);
  gpu_define_places(l, x->count);
  if (gpu_attr_bool(n, "centered", true)) gpu_define(l, "CENTERED", "1");
  if (scaled) gpu_define(l, "SCALED", "1");
  if (shifted) gpu_define(l, "SHIFTED", "1");
  gpu_arg_input(l, 0);
  if (scaled) gpu_arg_input(l, 1);
  if (shifted) gpu_arg_input(l, scaled ? 2 : 1);
  gpu_arg_output(l, 0);
  gpu_arg_place(l, x->count, columns);
  gpu_arg_float(l, gpu_attr_float(n, "epsilon", 0));
  gpu_range_1d(l, rows * GROUP, GROUP);
  return gpu_node_done(n, err);
}

extern const gpu_op gpu_layer_norm_ops[];
const gpu_op gpu_layer_norm_ops[] = {
  { "_TnLayerNorm", "T=float", plan_layer_norm },
  { NULL },
};
