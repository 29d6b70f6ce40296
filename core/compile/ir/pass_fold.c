/* SPDX-License-Identifier: Apache-2.0 */
/* Constant folding: folds every node with only constant inputs (fold.c). */
#include <core/compile/ir/passes.h>

tn_status tn__pass_fold(tn__ir *ir, size_t *changes)
{
  tn_status st = TN_OK;
  for (uint32_t id = ir->first; st == TN_OK && id != TN__NONE;) {
    uint32_t next = ir->nodes[id].next;
    st = tn__ir_fold_node(ir, id, changes);
    id = next;
  }
  return st;
}
