/* SPDX-License-Identifier: Apache-2.0 */
/* Partial runs in a plan. A feed is a node that waits until it is given, so what reads it has a condition, as behind
 * any call that waits; nothing else of the plan is special. Which feeds a fetch needs follows from its conditions. */
#include <core/compile/import/partial.h>

#define GIVEN (TN_TRAIT_STATEFUL | TN_TRAIT_MAY_WAIT)

/* ---- nodes ---- */

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

static uint32_t find_feed(const tn__ir *ir, const tn_operation *op)
{
  uint32_t f = 0;
  while (f < ir->spec->n_feeds && (ir->spec->feeds[f].op != op || ir->spec->feeds[f].index != 0)) f++;
  return f;
}

/* A placeholder that others wait for, or that is needed and no feed. One that is a feed waits for nothing but that. */
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

/* ---- what fetches need ---- */

typedef struct needs {
  const tn_plan *plan;
  uint64_t *atoms; /* by atom: a set of n_words */
  uint32_t n_words;
} needs;

static void add_set(const needs *n, uint64_t *to, const uint64_t *from)
{
  for (uint32_t w = 0; w < n->n_words; w++) to[w] |= from[w];
}

static void add_context(const needs *n, uint64_t *to, uint32_t context)
{
  const tn__context *c = &n->plan->contexts[context];
  for (uint32_t k = 0; k < c->n; k++) {
    size_t atom = n->plan->context_atoms[c->first + k];
    add_set(n, to, n->atoms + atom * n->n_words);
  }
}

/* For a Merge every input counts: it is not known which comes. */
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

/* An atom depends only on atoms in front of it. */
static void find_atoms(const needs *n)
{
  for (uint32_t i = 0; i < n->plan->n_atoms; i++) {
    const tn__atom *a = &n->plan->atoms[i];
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
  bool ok = tn__size_mul((size_t)plan->n_atoms + 1, n.n_words, &n_atoms) &&
            tn__size_mul((size_t)plan->n_outputs + 1, n.n_words, &n_fetches);
  n.atoms = ok ? tn__alloc_array(n_atoms, sizeof *n.atoms) : NULL;
  uint64_t *fetches = ok ? tn__arena_array(&plan->arena, n_fetches, sizeof *fetches) : NULL;
  if (n.atoms == NULL || fetches == NULL) ok = false;
  if (ok) find_atoms(&n);
  for (uint32_t o = 0; ok && o < plan->n_outputs; o++)
    add_context(&n, fetches + (size_t)o * n.n_words, plan->output_contexts[o]);
  p->needs = fetches;
  if (n.atoms != NULL) tn__free(n.atoms, n_atoms * sizeof *n.atoms);
  return ok ? TN_OK : tn__no_memory(err, "plan", 0);
}
