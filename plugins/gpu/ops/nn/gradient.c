/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients that are neither a convolution's, pooling's nor an activation's: BiasAddGrad. */
#include "ops/kernel/columns.h"

static tn_status plan_bias_grad(gpu_node *n, tn_error *err)
{
  const gpu_value *x = &n->inputs[0];
  if (x->rank < 2) return gpu_decline(err, "a tensor of fewer than 2 dimensions");
  const gpu_columns c = gpu_columns_of(x, gpu_attr_text_is(n, "data_format", "NCHW"));
  const gpu_ref in = { GPU_ARG_INPUT, 0 }, out = { GPU_ARG_OUTPUT, 0 };
  gpu_columns_sum(n, &c, GPU_SUM_PLAIN, in, in, in, 1, out, x->dtype);
  return gpu_node_done(n, err);
}

const gpu_op gpu_gradient_ops[] = {
  { "BiasAddGrad", "T=" GPU_FLOATS "|" GPU_INTEGERS, plan_bias_grad, 0, false },
  { NULL, NULL, NULL, 0, false },
};
