/* SPDX-License-Identifier: Apache-2.0 */
/* Removes control edges that delay nothing: those from constants, feeds, nodes that forward these, and nodes that wait
 * for nothing else. Graphs frozen from functions have an edge from each variable's Identity to a NoOp, and from there
 * to the outputs. Without these edges, the identities can be removed and the constants are recognised.
 *
 * Where nothing is on a branch, edges are removed, too, that order nothing but computations. TensorFlow's gradients let
 * each value wait for the incoming gradient, so that it is not computed too early; the edge would keep it out of all
 * passes. An edge from A to B is needless if B reads A, or if B only computes and everything that reads B, perhaps
 * through other computations, reads A or waits for it as well. */
#include <core/compile/ir/passes.h>

#include <string.h>

#define MOST_READERS 24 /* between B and the nodes that follow A */
#define MOST_LEVELS 4   /* between A and a node that follows it */
#define MOST_VISITS 64  /* of nodes on these levels */

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

/* ---- edges between computations ---- */

/* Nodes that read a node or wait for it: first[id] to first[id + 1] in `to`. */
typedef struct readers {
  const tn__ir *ir;
  size_t n;
  uint32_t *first, *to;
  size_t n_to;
} readers;

static uint32_t producer(const tn__ir *ir, const tn__ir_node *node, uint32_t i)
{
  const tn__ir_value *v = &ir->values[tn__ir_input(ir, node, i)];
  return v->kind == TN_VALUE_FEED ? TN__NONE : v->node;
}

/* Counts the edges of each node, or stores them. */
static void note_readers(readers *r, bool store)
{
  for (uint32_t id = r->ir->first; id != TN__NONE; id = r->ir->nodes[id].next) {
    const tn__ir_node *node = &r->ir->nodes[id];
    for (uint32_t i = 0; i < node->n_inputs + node->n_controls; i++) {
      uint32_t from = i < node->n_inputs ? producer(r->ir, node, i) : tn__ir_control(r->ir, node, i - node->n_inputs);
      if (from == TN__NONE) continue;
      if (store) r->to[r->first[from]++] = id;
      else r->first[from + 2]++, r->n_to++;
    }
  }
}

static bool find_readers(readers *r, const tn__ir *ir)
{
  *r = (readers){ .ir = ir, .n = ir->n_nodes + 3 };
  r->first = tn__alloc_array(r->n, sizeof *r->first);
  if (r->first == NULL) return false;
  memset(r->first, 0, r->n * sizeof *r->first);
  note_readers(r, false);
  for (size_t i = 2; i < r->n; i++) r->first[i] += r->first[i - 1];
  r->to = tn__alloc_array(r->n_to + 1, sizeof *r->to);
  if (r->to == NULL) return false;
  r->first++; /* storing moves the beginning of each list to that of the next one */
  note_readers(r, true);
  r->first--;
  return true;
}

static void drop_readers(readers *r)
{
  tn__free(r->first, r->n * sizeof *r->first);
  tn__free(r->to, (r->n_to + 1) * sizeof *r->to);
}

/* Whether a node cannot run before another one has ended, seen over a few levels of inputs. What depends on shapes only
 * may be computed before a step. */
static bool follows(const tn__ir *ir, const tn__ir_node *node, uint32_t other, int levels, int *visits)
{
  if ((node->traits & TN_TRAIT_SHAPE_ONLY) || --*visits < 0) return false;
  for (uint32_t i = 0; i < node->n_controls; i++)
    if (tn__ir_control(ir, node, i) == other) return true;
  for (uint32_t i = 0; i < node->n_inputs; i++)
    if (producer(ir, node, i) == other) return true;
  for (uint32_t i = 0; levels > 1 && i < node->n_inputs; i++) {
    uint32_t from = producer(ir, node, i);
    if (from != TN__NONE && follows(ir, &ir->nodes[from], other, levels - 1, visits)) return true;
  }
  return false;
}

/* Whether all that reads a computation follows another node anyway. */
static bool readers_follow(const readers *r, uint32_t id, uint32_t other)
{
  uint32_t list[MOST_READERS], n = 1, done = 0, n_following = 0;
  list[0] = id;
  for (; done < n; done++) {
    const uint32_t at = list[done];
    if (!tn__ir_is_pure(&r->ir->nodes[at]) || r->ir->nodes[at].wanted) return false;
    for (uint32_t k = r->first[at]; k < r->first[at + 1]; k++) {
      uint32_t seen = 0;
      int visits = MOST_VISITS;
      if (follows(r->ir, &r->ir->nodes[r->to[k]], other, MOST_LEVELS, &visits)) {
        n_following++;
        continue;
      }
      while (seen < n && list[seen] != r->to[k]) seen++;
      if (seen < n) continue;
      if (n == MOST_READERS) return false;
      list[n++] = r->to[k];
    }
  }
  return n_following > 0;
}

static size_t drop_needless(const readers *r, uint32_t id)
{
  tn__ir_node *node = &r->ir->nodes[id];
  if (node->n_controls == 0) return 0;
  uint32_t *controls = &r->ir->edges[node->edges + node->n_inputs];
  size_t dropped = 0;
  for (uint32_t i = 0; i < node->n_controls;) {
    const uint32_t other = controls[i];
    /* follows() must not see the edge itself */
    controls[i] = controls[--node->n_controls];
    int visits = MOST_VISITS;
    if (tn__ir_is_pure(&r->ir->nodes[other]) &&
        (follows(r->ir, node, other, 1, &visits) || readers_follow(r, id, other))) {
      dropped++;
      continue;
    }
    controls[node->n_controls++] = controls[i];
    controls[i++] = other;
  }
  return dropped;
}

static tn_status drop_between_computations(tn__ir *ir, size_t *changes)
{
  readers r;
  bool any = false;
  for (uint32_t id = ir->first; !any && id != TN__NONE; id = ir->nodes[id].next) any = ir->nodes[id].n_controls > 0;
  if (!any || ir->has_branches || ir->partial || ir->spec->body != NULL) return TN_OK;
  const bool found = find_readers(&r, ir);
  for (uint32_t id = ir->first; found && id != TN__NONE; id = ir->nodes[id].next) *changes += drop_needless(&r, id);
  drop_readers(&r);
  return found ? TN_OK : tn__ir_no_memory(ir);
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
  tn_status st = drop_between_computations(ir, changes);
  for (uint32_t id = ir->first; id != TN__NONE; id = ir->nodes[id].next)
    for (uint32_t i = 0; i < ir->nodes[id].n_controls; i++)
      ir->nodes[tn__ir_control(ir, &ir->nodes[id], i)].waited_for = true;
  tn__free(idle, (ir->n_nodes + 1) * sizeof *idle);
  return st;
}
