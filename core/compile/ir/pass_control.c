/* SPDX-License-Identifier: Apache-2.0 */
/* Removes control edges that delay nothing: those from constants, feeds, nodes that forward these, and nodes that wait
 * for nothing else. Graphs frozen from functions have an edge from each variable's Identity to a NoOp, and from there
 * to the outputs. Without these edges, the identities can be removed and the constants are recognised. */
#include <core/compile/ir/passes.h>

/* Whether a feed of a loop's body may have no value in an iteration. */
static bool may_be_dead(const tn__ir *ir, uint32_t feed)
{
  return ir->spec->body != NULL && ir->spec->body->gated != NULL && ir->spec->body->gated[feed];
}

/* Whether a node has ended before a step begins. `idle` is valid for the nodes before it in the order. */
static bool is_idle(const tn__ir *ir, const bool *idle, const tn__ir_node *node)
{
  if (!(node->traits & (TN_TRAIT_CONSTANT | TN_TRAIT_IDENTITY | TN_TRAIT_NO_EFFECT))) return false;
  if (node->traits & (TN_TRAIT_STATEFUL | TN_TRAIT_MAY_WAIT)) return false;
  for (uint32_t i = 0; i < node->n_inputs; i++) {
    const tn__ir_value *v = &ir->values[tn__ir_input(ir, node, i)];
    if (v->kind != TN_VALUE_FEED && v->node != TN__NONE && !idle[v->node]) return false;
    if (v->kind == TN_VALUE_FEED && may_be_dead(ir, v->index)) return false;
  }
  for (uint32_t i = 0; i < node->n_controls; i++)
    if (!idle[tn__ir_control(ir, node, i)]) return false;
  return true;
}

static size_t drop_idle_controls(tn__ir *ir, const bool *idle, tn__ir_node *node)
{
  if (node->n_controls == 0) return 0; /* ir->edges is NULL in a graph without edges */
  uint32_t *controls = &ir->edges[node->edges + node->n_inputs], kept = 0;
  for (uint32_t i = 0; i < node->n_controls; i++)
    if (!idle[controls[i]]) controls[kept++] = controls[i];
  size_t dropped = node->n_controls - kept;
  node->n_controls = kept;
  return dropped;
}

tn_status tn__pass_control(tn__ir *ir, size_t *changes)
{
  bool *idle = tn__alloc_array(ir->n_nodes + 1, sizeof *idle);
  if (idle == NULL) return tn__ir_no_memory(ir);
  for (uint32_t id = ir->first; id != TN__NONE; id = ir->nodes[id].next) {
    *changes += drop_idle_controls(ir, idle, &ir->nodes[id]);
    idle[id] = is_idle(ir, idle, &ir->nodes[id]);
    ir->nodes[id].waited_for = false;
  }
  for (uint32_t id = ir->first; id != TN__NONE; id = ir->nodes[id].next)
    for (uint32_t i = 0; i < ir->nodes[id].n_controls; i++)
      ir->nodes[tn__ir_control(ir, &ir->nodes[id], i)].waited_for = true;
  tn__free(idle, (ir->n_nodes + 1) * sizeof *idle);
  return TN_OK;
}
