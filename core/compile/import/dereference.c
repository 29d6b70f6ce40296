/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of variables through references, by nodes that exist only in the plan. Their kernel is that of
 * TN__READ_REFERENCE_OP. */
#include <core/compile/import/dereference.h>

#define TRAITS (TN_TRAIT_STATEFUL | TN_TRAIT_READS | TN_TRAIT_DYNAMIC)

tn_status tn__ir_add_dereference(tn__ir *ir, const uint32_t *inputs, uint32_t n, uint32_t *node)
{
  const tn_output from = ir->values[inputs[0]].output;
  bool late = false;
  tn_status st = tn__ir_add_special(ir, from.op, TRAITS, inputs, n, 1, node);
  if (st != TN_OK) return st;
  for (uint32_t i = 0; i < n; i++) late |= tn__ir_is_late(ir, tn__ir_value_of(ir, inputs[i]));
  ir->nodes[*node].late = late; /* a read is not an effect, although it is stateful: only its inputs count */
  ir->nodes[*node].dereferences = true;
  tn__ir_value *v = &ir->values[ir->nodes[*node].first_value];
  v->output = from;
  v->dtype = tn__dtype_base(tn_operation_output_dtype(from.op, (size_t)from.index));
  return TN_OK;
}
