/* SPDX-License-Identifier: Apache-2.0 */
/* Distributes the instructions over as few segments as possible: each into the first one that may hold it.
 *
 * - All instructions of a segment have one context: it runs as a whole or not at all.
 * - An instruction whose output shape depends on the value of a computed tensor is in a later segment than the tensor's
 *   producer. So is one that reads a tensor whose shape its producer determines at run time.
 * - A Merge, a loop, and a call that may wait each have a segment of their own.
 *
 * Segments run in the order of their numbers, so the segments of a context have higher numbers than those that decide
 * it. */
#include <core/compile/lower/lower.h>

#include <string.h>

/* A segment being filled. */
typedef struct place {
  uint32_t context;
  uint8_t kind; /* TN__SEGMENT_... */
  uint32_t n;   /* number of instructions */
} place;

/* The segments of one context that can hold more than one instruction: ascending numbers. */
typedef struct tapes {
  uint32_t *at;
  size_t n, room;
} tapes;

typedef struct cutter {
  tn_plan *plan;
  uint32_t *of;    /* by instruction: its segment */
  uint32_t *depth; /* by context: the first segment in which it is decided; TN__NONE = not known yet */
  tapes *tapes;    /* by context */
  place *places;   /* by segment */
  size_t n_places, room;
  tn_error *err;
} cutter;

static uint32_t later(uint32_t a, uint32_t b) { return a > b ? a : b; }

/* These return the first segment that an instruction may be in because of one input, atom or context. */

static uint32_t after_input(const cutter *c, const tn__plan_instr *instr, uint32_t k)
{
  const tn_plan *plan = c->plan;
  const tn__plan_value *v = &plan->values[tn__instr_inputs(plan, instr)[k]];
  if (v->kind != TN_VALUE_COMPUTED) return 0;
  const tn__plan_instr *from = &plan->instrs[v->producer];
  bool operand = instr->shape_operands != 0 && tn__operation_is_shape_operand(instr->op, k);
  bool apart = from->kind != TN__SEGMENT_TAPE || (!v->from_shapes && (operand || (from->traits & TN_TRAIT_DYNAMIC)));
  return c->of[v->producer] + (apart ? 1 : 0);
}

static uint32_t after_context(const cutter *c, uint32_t context);

/* The instructions that decide the atoms of a context precede those in the context, so they have segments already. */
static uint32_t after_atom(const cutter *c, const tn__atom *a)
{
  const tn__plan_value *v = a->kind == TN__ATOM_BRANCH ? &c->plan->values[a->id] : NULL;
  if (a->kind == TN__ATOM_FEED) return 0;
  if (a->kind == TN__ATOM_DONE) return after_context(c, a->id);
  if (v != NULL) return v->kind == TN_VALUE_COMPUTED ? c->of[v->producer] + 1 : 0;
  return c->of[a->id] + 1;
}

static uint32_t after_context(const cutter *c, uint32_t context)
{
  if (c->plan->conditions.n_contexts == 0) return 0;
  if (c->depth[context] != TN__NONE) return c->depth[context];
  const tn__context *x = &c->plan->conditions.contexts[context];
  uint32_t min = 0;
  for (uint32_t k = 0; k < x->n; k++)
    min = later(min, after_atom(c, &c->plan->conditions.atoms[c->plan->conditions.context_atoms[x->first + k]]));
  return c->depth[context] = min;
}

/* The first segment that may hold instruction i. */
static uint32_t earliest(const cutter *c, uint32_t i)
{
  const tn__plan_instr *instr = &c->plan->instrs[i];
  uint32_t min = after_context(c, instr->context);
  for (uint32_t k = 0; k < instr->n_inputs; k++) min = later(min, after_input(c, instr, k));
  for (uint32_t k = 0; k < instr->n_after; k++) {
    uint32_t from = tn__instr_after(c->plan, instr)[k];
    min = later(min, c->of[from] + (c->plan->instrs[from].kind != TN__SEGMENT_TAPE));
  }
  for (uint32_t k = 0; instr->input_contexts != NULL && k < instr->n_inputs; k++)
    min = later(min, after_context(c, instr->input_contexts[k]));
  return min;
}

/* Appends a segment. */
static tn_status add_place(cutter *c, uint32_t context, uint8_t kind, uint32_t *out)
{
  if (!tn__grow((void **)&c->places, &c->room, c->n_places + 1, sizeof *c->places))
    return tn__no_memory(c->err, "plan", 0);
  *out = (uint32_t)c->n_places;
  c->places[c->n_places++] = (place){ context, kind, 0 };
  tapes *t = &c->tapes[context];
  if (kind != TN__SEGMENT_TAPE) return TN_OK;
  if (!tn__grow((void **)&t->at, &t->room, t->n + 1, sizeof *t->at)) return tn__no_memory(c->err, "plan", 0);
  t->at[t->n++] = *out;
  return TN_OK;
}

/* The first tape with a number of at least `min`; TN__NONE if there is none. Binary search. */
static uint32_t tape_from(const tapes *t, uint32_t min)
{
  size_t begin = 0, end = t->n;
  while (begin < end) {
    size_t middle = begin + (end - begin) / 2;
    if (t->at[middle] < min) begin = middle + 1;
    else end = middle;
  }
  return begin < t->n ? t->at[begin] : TN__NONE;
}

static tn_status put(cutter *c, uint32_t i)
{
  const tn__plan_instr *instr = &c->plan->instrs[i];
  uint32_t min = earliest(c, i);
  uint32_t at = instr->kind == TN__SEGMENT_TAPE ? tape_from(&c->tapes[instr->context], min) : TN__NONE;
  tn_status st = at == TN__NONE ? add_place(c, instr->context, instr->kind, &at) : TN_OK;
  if (st == TN_OK) c->places[at].n++;
  c->of[i] = at;
  return st;
}

/* Sorts the instructions by segment, keeping their order within one, and makes plan->segments. Updates all references
 * to instructions: those in ids, values and atoms. */
static tn_status reorder(cutter *c)
{
  tn_plan *plan = c->plan;
  size_t n = (size_t)plan->n_instrs + 1;
  tn__plan_instr *instrs = tn__arena_array(&plan->arena, n, sizeof *instrs);
  uint32_t *moved = tn__alloc_array(n, sizeof *moved);
  if (instrs == NULL || moved == NULL) {
    tn__free(moved, n * sizeof *moved);
    return tn__no_memory(c->err, "plan", n * sizeof *instrs);
  }
  for (uint32_t k = 0, at = 0; k < c->n_places; k++) {
    plan->segments[k] =
        (tn__segment){ .begin = at, .end = at, .context = c->places[k].context, .kind = c->places[k].kind };
    at += c->places[k].n;
  }
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    uint32_t to = moved[i] = plan->segments[c->of[i]].end++;
    memcpy(&instrs[to], &plan->instrs[i], sizeof *instrs);
    instrs[to].segment = c->of[i];
  }
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    uint32_t *after = (uint32_t *)tn__instr_after(plan, &instrs[i]);
    for (uint32_t k = 0; k < instrs[i].n_after; k++) after[k] = moved[after[k]];
  }
  for (uint32_t i = 0; i < plan->n_values; i++)
    if (plan->values[i].producer != TN__NONE) plan->values[i].producer = moved[plan->values[i].producer];
  for (uint32_t i = 0; i < plan->conditions.n_atoms; i++)
    if (plan->conditions.atoms[i].kind == TN__ATOM_MERGE || plan->conditions.atoms[i].kind == TN__ATOM_EXIT ||
        plan->conditions.atoms[i].kind == TN__ATOM_WAIT)
      plan->conditions.atoms[i].id = moved[plan->conditions.atoms[i].id];
  plan->instrs = instrs;
  tn__free(moved, n * sizeof *moved);
  return TN_OK;
}

tn_status tn__plan_make_segments(tn_plan *plan, tn_error *err)
{
  cutter c = { .plan = plan, .err = err };
  size_t n_contexts = (size_t)plan->conditions.n_contexts + 1, n = (size_t)plan->n_instrs + 1;
  c.of = tn__alloc_array(n, sizeof *c.of);
  c.depth = tn__alloc_array(n_contexts, sizeof *c.depth);
  c.tapes = tn__alloc_array(n_contexts, sizeof *c.tapes);
  tn_status st =
      c.of == NULL || c.depth == NULL || c.tapes == NULL ? tn__no_memory(err, "plan", n * sizeof *c.of) : TN_OK;
  for (size_t i = 0; st == TN_OK && i < n_contexts; i++) c.depth[i] = TN__NONE;
  for (uint32_t i = 0; st == TN_OK && i < plan->n_instrs; i++) st = put(&c, i);
  if (st == TN_OK) {
    plan->n_segments = (uint32_t)c.n_places;
    plan->segments = tn__arena_array(&plan->arena, c.n_places + 1, sizeof *plan->segments);
    st = plan->segments == NULL ? tn__no_memory(err, "plan", 0) : reorder(&c);
    if (st != TN_OK) plan->n_segments = 0;
  }
  for (size_t i = 0; c.tapes != NULL && i < n_contexts; i++)
    tn__free(c.tapes[i].at, c.tapes[i].room * sizeof *c.tapes[i].at);
  if (c.tapes != NULL) tn__free(c.tapes, n_contexts * sizeof *c.tapes);
  if (c.of != NULL) tn__free(c.of, n * sizeof *c.of);
  if (c.depth != NULL) tn__free(c.depth, n_contexts * sizeof *c.depth);
  tn__free(c.places, c.room * sizeof *c.places);
  return st;
}
