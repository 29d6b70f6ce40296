/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of partial runs. A feed is a node that waits until its value is given, so its readers have a condition, like
 * those of any call that waits. Nothing else in such a plan is special. The feeds that a fetch needs follow from its
 * conditions. */
#include <core/compile/import/partial.h>

/* Traits of a node that stands for a feed. */
#define GIVEN (TN_TRAIT_STATEFUL | TN_TRAIT_MAY_WAIT)

/* ---- nodes ---- */

/* Moves a node to the front of the order. It must not read or wait for anything. */
static void to_front(tn__ir *ir, uint32_t id)
{
  tn__ir_node *node = &ir->nodes[id];
  if (ir->first == id) return;
  ir->nodes[node->prev].next = node->next;
  if (node->next == TN__NONE) ir->last = node->prev;
  else ir->nodes[node->next].prev = node->prev;
  node->prev = TN__NONE;
  node->next = ir->first;
  ir->nodes[ir->first].prev = id;
  ir->first = id;
}

/* The feed that replaces output 0 of op; n_feeds if there is none. */
static uint32_t find_feed(const tn__ir *ir, const tn_operation *op)
{
  uint32_t f = 0;
  while (f < ir->spec->n_feeds && (ir->spec->feeds[f].op != op || ir->spec->feeds[f].index != 0)) f++;
  return f;
}

/* Turns a placeholder's node into one that waits for its value. The ir has such a node if others wait for the
 * placeholder, or if it is needed but not a feed; then it counts as missing. The node of a feed waits for its value
 * only, so its control edges are dropped. */
static void hold_placeholder(tn__ir *ir, uint32_t id, uint32_t *n_missing)
{
  tn__ir_node *node = &ir->nodes[id];
  uint32_t f = find_feed(ir, node->op);
  node->traits = GIVEN;
  if (f == ir->spec->n_feeds) {
    node->feed = 1 + f + (*n_missing)++;
    return;
  }
  node->feed = 1 + f;
  node->n_controls = 0;
  if (ir->inputs[f] != TN__NONE) tn__ir_replace(ir, ir->inputs[f], node->first_value);
  ir->inputs[f] = node->first_value;
  to_front(ir, id);
}

/* Makes the node of a feed that does not replace a placeholder's node. */
static tn_status hold_feed(tn__ir *ir, uint32_t f)
{
  uint32_t id, value = ir->inputs[f];
  if (value == TN__NONE || ir->values[value].kind != TN_VALUE_FEED) return TN_OK; /* nothing reads it, or it is done */
  tn_status st = tn__ir_add_special(ir, ir->values[value].output.op, GIVEN, NULL, 0, 1, &id);
  if (st != TN_OK) return st;
  tn__ir_node *node = &ir->nodes[id];
  node->feed = 1 + f;
  ir->values[node->first_value].dtype = ir->values[value].dtype;
  ir->values[node->first_value].output = ir->values[value].output;
  tn__ir_replace(ir, value, node->first_value);
  ir->inputs[f] = node->first_value;
  to_front(ir, id);
  return TN_OK;
}

tn_status tn__ir_hold_feeds(tn__ir *ir)
{
  tn_status st = TN_OK;
  uint32_t n_missing = 0;
  ir->partial = true;
  for (uint32_t id = ir->first, next; id != TN__NONE; id = next) {
    next = ir->nodes[id].next;
    if (ir->nodes[id].traits & TN_TRAIT_PLACEHOLDER) hold_placeholder(ir, id, &n_missing);
  }
  for (uint32_t f = 0; st == TN_OK && f < ir->spec->n_feeds; f++) st = hold_feed(ir, f);
  return st;
}

/* ---- the needs of fetches ---- */

/* Sets of feeds: bit f is feed f, or, from n_inputs on, missing placeholder f - n_inputs. */
typedef struct needs {
  const tn_plan *plan;
  uint64_t *atoms; /* by atom: the set on which it depends, n_words */
  uint32_t n_words;
} needs;

static void add_set(const needs *n, uint64_t *to, const uint64_t *from)
{
  for (uint32_t w = 0; w < n->n_words; w++) to[w] |= from[w];
}

/* Adds all feeds on which a context depends. */
static void add_context(const needs *n, uint64_t *to, uint32_t context)
{
  const tn__context *c = &n->plan->conditions.contexts[context];
  for (uint32_t k = 0; k < c->n; k++) {
    size_t atom = n->plan->conditions.context_atoms[c->first + k];
    add_set(n, to, n->atoms + atom * n->n_words);
  }
}

/* Adds all feeds on which an instruction depends. For a Merge all inputs count: which one will be live is unknown. */
static void add_instruction(const needs *n, uint64_t *to, uint32_t i)
{
  const tn__plan_instr *instr = &n->plan->instrs[i];
  add_context(n, to, instr->context);
  for (uint32_t k = 0; instr->input_contexts != NULL && k < instr->n_inputs; k++)
    add_context(n, to, instr->input_contexts[k]);
  if (instr->kind != TN__SEGMENT_FEED) return;
  uint32_t f = n->plan->values[tn__instr_outputs(n->plan, instr)[0]].index;
  to[f / 64] |= UINT64_C(1) << f % 64;
}

/* Atoms depend only on atoms with lower numbers, so one pass is enough. */
static void find_atoms(const needs *n)
{
  for (uint32_t i = 0; i < n->plan->conditions.n_atoms; i++) {
    const tn__atom *a = &n->plan->conditions.atoms[i];
    uint64_t *to = n->atoms + (size_t)i * n->n_words;
    if (a->kind == TN__ATOM_DONE) {
      add_context(n, to, a->id);
    } else if (a->kind == TN__ATOM_BRANCH) {
      const tn__plan_value *v = &n->plan->values[a->id];
      if (v->kind == TN_VALUE_COMPUTED) add_instruction(n, to, v->producer);
    } else if (a->kind != TN__ATOM_FEED) {
      add_instruction(n, to, a->id);
    }
  }
}

/* Lists the placeholders that the plan needs and that are not feeds, by their number. */
static tn_status list_missing(tn_plan *plan, tn__partial_plan *p)
{
  p->missing = tn__arena_array(&plan->arena, (size_t)plan->n_instrs + 1, sizeof *p->missing);
  if (p->missing == NULL) return TN_RESOURCE_EXHAUSTED;
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    const tn__plan_instr *instr = &plan->instrs[i];
    uint32_t f = instr->kind == TN__SEGMENT_FEED ? plan->values[tn__instr_outputs(plan, instr)[0]].index : 0;
    if (f < plan->n_inputs || instr->kind != TN__SEGMENT_FEED) continue;
    p->missing[f - plan->n_inputs] = instr->op;
    p->n_missing++;
  }
  return TN_OK;
}

tn_status tn__plan_find_needs(tn_plan *plan, tn_error *err)
{
  tn__partial_plan *p = plan->partial = tn__arena_array(&plan->arena, 1, sizeof *p);
  if (p == NULL || list_missing(plan, p) != TN_OK) return tn__no_memory(err, "plan", 0);
  needs n = { .plan = plan, .n_words = p->n_words = (plan->n_inputs + p->n_missing) / 64 + 1 };
  size_t n_atoms, n_fetches;
  bool ok = tn__size_mul((size_t)plan->conditions.n_atoms + 1, n.n_words, &n_atoms) &&
            tn__size_mul((size_t)plan->n_outputs + 1, n.n_words, &n_fetches);
  n.atoms = ok ? tn__alloc_array(n_atoms, sizeof *n.atoms) : NULL;
  uint64_t *fetches = ok ? tn__arena_array(&plan->arena, n_fetches, sizeof *fetches) : NULL;
  if (n.atoms == NULL || fetches == NULL) ok = false;
  if (ok) find_atoms(&n);
  for (uint32_t o = 0; ok && o < plan->n_outputs; o++)
    add_context(&n, fetches + (size_t)o * n.n_words, plan->conditions.outputs[o]);
  p->needs = fetches;
  if (n.atoms != NULL) tn__free(n.atoms, n_atoms * sizeof *n.atoms);
  return ok ? TN_OK : tn__no_memory(err, "plan", 0);
}
