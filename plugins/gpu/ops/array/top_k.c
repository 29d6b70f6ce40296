/* SPDX-License-Identifier: Apache-2.0 */
/* TopK, TopKV2: an element's place in the result is how many of its row go before it. */
#include "ops/kernel/elements.h"

#include <string.h>

enum { MOST = 16384 /* elements of a row: each is compared with all others */ };

static tn_status plan_top_k(gpu_node *n, tn_error *err)
{
  const gpu_value *x = &n->inputs[0], *out = &n->outputs[0];
  const gpu_element *t = gpu_element_of(x->dtype);
  int64_t columns = x->dims[x->rank - 1], k = out->dims[out->rank - 1];
  if (columns > MOST)
    return gpu_decline(err, "rows of %lld elements, at most %d are compared", (long long)columns, MOST);
  if (out->count == 0) return gpu_node_done(n, err);
  gpu_launch *l = gpu_launch_file(n, "top_k", "top_k");
  gpu_define_elements(l, "", x->dtype);
  gpu_define(l, "FLOATING", "%d", t->kind == GPU_FLOATING);
  gpu_define(l, "J", "%s", gpu_type(n->outputs[1].dtype));
  gpu_define_places(l, x->count);
  gpu_arg_input(l, 0);
  gpu_arg_output(l, 0);
  gpu_arg_output(l, 1);
  gpu_arg_place(l, x->count, x->count);
  gpu_arg_int(l, columns);
  gpu_arg_int(l, k);
  gpu_range_1d(l, x->count, 64);
  n->cost_ns = (double)x->count * (double)columns / 500;
  return gpu_node_done(n, err);
}

extern const gpu_op gpu_top_k_ops[];
const gpu_op gpu_top_k_ops[] = {
  { "TopK", "T=" GPU_FLOATS "|" GPU_INTEGERS, plan_top_k },
  { "TopKV2", "T=" GPU_FLOATS "|" GPU_INTEGERS ",index_type=int16|int32|int64", plan_top_k, .host_inputs = 1u << 1 },
  { NULL },
};
