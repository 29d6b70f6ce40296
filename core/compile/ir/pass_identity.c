/* SPDX-License-Identifier: Apache-2.0 */
/* Identities: replaces the outputs of nodes that only forward their inputs by these inputs, so that constants after the
 * Identity nodes of frozen graphs are recognised. A node with control edges on either side is left, so that these hold
 * for its readers, too. */
#include <core/compile/ir/passes.h>

/* An identity of several values outputs them only if all are live. Its outputs can be separated only if nothing can be
 * dead. */
static bool may_part(const tn__ir *ir, const tn__ir_node *node) { return node->n_inputs == 1 || !ir->has_branches; }

tn_status tn__pass_identity(tn__ir *ir, size_t *changes)
{
  for (uint32_t id = ir->first; id != TN__NONE;) {
    tn__ir_node *node = &ir->nodes[id];
    uint32_t next = node->next;
    bool effect = node->n_controls > 0 || node->waited_for || node->wanted;
    if ((node->traits & TN_TRAIT_IDENTITY) && node->n_inputs == node->n_outputs && !effect && may_part(ir, node)) {
      for (uint32_t k = 0; k < node->n_outputs; k++)
        tn__ir_replace(ir, node->first_value + k, tn__ir_input(ir, node, k));
      tn__ir_remove(ir, id);
      ++*changes;
    }
    id = next;
  }
  return TN_OK;
}
