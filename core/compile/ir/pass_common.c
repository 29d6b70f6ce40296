/* SPDX-License-Identifier: Apache-2.0 */
/* Common subexpressions: merges nodes of one op with equal attributes and equal inputs. The walk visits nodes in an
 * order in which they can run, so a node's inputs are merged before the node is compared. */
#include <core/compile/ir/passes.h>

#include <string.h>

#define HASHED_BYTES 4096 /* maximum size of a constant whose bytes tn__operation_same_attrs compares */

/* Nodes by hash: open addressing. A slot has 1 + the node; 0 = empty. */
typedef struct table {
  uint32_t *slots;
  size_t mask;
} table;

static uint64_t mix(uint64_t h, uint64_t v)
{
  h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
  return h ^ h >> 32;
}

static uint64_t hash_of(const tn__ir *ir, const tn__ir_node *node)
{
  uint64_t h = mix((uint64_t)(uintptr_t)tn_operation_schema(node->op), tn__operation_attrs_hash(node->op));
  for (uint32_t i = 0; i < node->n_inputs; i++) h = mix(h, tn__ir_input(ir, node, i));
  if (!(node->traits & TN_TRAIT_CONSTANT)) return h;
  const tn_tensor *t = ir->values[node->first_value].constant;
  if (t->bytes > HASHED_BYTES) return mix(h, (uint64_t)(uintptr_t)t->data); /* equal only if it is the same memory */
  return t->bytes > 0 && !tn__dtype_is_managed(t->dtype) ? mix(h, tn__hash(t->data, t->bytes)) : h;
}

static bool same(const tn__ir *ir, const tn__ir_node *a, const tn__ir_node *b)
{
  if (a->n_inputs != b->n_inputs || a->n_outputs != b->n_outputs) return false;
  for (uint32_t i = 0; i < a->n_inputs; i++)
    if (tn__ir_input(ir, a, i) != tn__ir_input(ir, b, i)) return false;
  return strcmp(tn_operation_device(a->op), tn_operation_device(b->op)) == 0 && tn__operation_same_attrs(a->op, b->op);
}

/* Only nodes whose outputs are equal each time they run can be merged. */
static bool may_merge(const tn__ir_node *node)
{
  return tn__ir_is_free(node) && node->n_outputs > 0 && tn_operation_schema(node->op) != NULL;
}

static void merge(tn__ir *ir, uint32_t id, uint32_t into)
{
  for (uint32_t k = 0; k < ir->nodes[id].n_outputs; k++)
    tn__ir_replace(ir, ir->nodes[id].first_value + k, ir->nodes[into].first_value + k);
  tn__ir_remove(ir, id);
}

tn_status tn__pass_common(tn__ir *ir, size_t *changes)
{
  table t = { .mask = 15 };
  while (t.mask < 2 * ir->n_live) t.mask = t.mask * 2 + 1;
  t.slots = tn__alloc_array(t.mask + 1, sizeof *t.slots);
  if (t.slots == NULL) return tn__ir_no_memory(ir);
  for (uint32_t id = ir->first; id != TN__NONE;) {
    const tn__ir_node *node = &ir->nodes[id];
    uint32_t next = node->next;
    if (may_merge(node)) {
      size_t at = (size_t)hash_of(ir, node) & t.mask;
      while (t.slots[at] != 0 && !same(ir, node, &ir->nodes[t.slots[at] - 1])) at = (at + 1) & t.mask;
      if (t.slots[at] == 0) {
        t.slots[at] = id + 1;
      } else {
        merge(ir, id, t.slots[at] - 1);
        ++*changes;
      }
    }
    id = next;
  }
  tn__free(t.slots, (t.mask + 1) * sizeof *t.slots);
  return TN_OK;
}
