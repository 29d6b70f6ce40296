/* SPDX-License-Identifier: Apache-2.0 */
/* Identities: what hands its inputs on is its inputs, so the constants behind the Identity nodes of frozen graphs are
 * seen as constants. One that has control edges on either side stays, so that they hold for its readers, too. */
#include <core/compile/ir/passes.h>

/* Of several values each is there only when all are; they are taken apart where nothing can be dead. */
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
