/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the uses of values, the values that follow from shapes, the entries and slots of each segment, and the values
 * that outlive their segment. */
#include <core/compile/lower/lower.h>

/* Sets n_uses and last_use. A fetch is a use, too. */
static void count_uses(tn_plan *plan)
{
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    const uint32_t *in = tn__instr_inputs(plan, &plan->instrs[i]);
    for (uint32_t k = 0; k < plan->instrs[i].n_inputs; k++) {
      plan->values[in[k]].n_uses++;
      plan->values[in[k]].last_use = i;
    }
  }
  for (uint32_t i = 0; i < plan->n_outputs; i++) plan->values[plan->outputs[i]].n_uses++;
}

/* ---- values that follow from shapes ---- */

#define NOT_PURE                                                                                         \
  (TN_TRAIT_STATEFUL | TN_TRAIT_RANDOM | TN_TRAIT_PLACEHOLDER | TN_TRAIT_NO_EFFECT | TN_TRAIT_MAY_WAIT | \
   TN_TRAIT_DYNAMIC)

/* Sizes, axes and paddings are integers of rank 2 at most. */
static bool is_small_ints(const tn__plan_value *v)
{
  int32_t rank;
  if (v->dtype != TN_INT32 && v->dtype != TN_INT64) return false;
  return tn_output_shape(v->output, NULL, 0, &rank, NULL) == TN_OK && rank >= 0 && rank <= 2;
}

/* Whether the outputs are small integers computed, without effects, from shapes, constants and values that follow from
 * shapes themselves. They are computed when a layout is made, not in steps. */
static bool follows_from_shapes(const tn_plan *plan, const tn__plan_instr *instr)
{
  if (tn__instr_kernels(instr) == NULL || instr->n_outputs == 0 || instr->n_after != 0 || (instr->traits & NOT_PURE))
    return false;
  const uint32_t *in = tn__instr_inputs(plan, instr), *out = tn__instr_outputs(plan, instr);
  for (uint32_t k = 0; k < instr->n_inputs && !(instr->traits & TN_TRAIT_SHAPE_ONLY); k++)
    if (plan->values[in[k]].kind != TN_VALUE_CONSTANT && !plan->values[in[k]].from_shapes) return false;
  for (uint32_t k = 0; k < instr->n_outputs; k++)
    if (!is_small_ints(&plan->values[out[k]])) return false;
  return true;
}

static void mark_from_shapes(tn_plan *plan)
{
  for (uint32_t i = 0; i < plan->n_instrs && plan->settings.call_kernel != NULL; i++) {
    const tn__plan_instr *instr = &plan->instrs[i];
    if (!follows_from_shapes(plan, instr)) continue;
    for (uint32_t k = 0; k < instr->n_outputs; k++) plan->values[tn__instr_outputs(plan, instr)[k]].from_shapes = true;
  }
}

/* ---- entries and slots ---- */

/* Whether the value of input k determines an output shape. */
static bool is_operand(const tn__plan_instr *instr, uint32_t k)
{
  return instr->shape_operands != 0 && tn__operation_is_shape_operand(instr->op, k);
}

/* A value in the segment that listed it last. Marks of earlier segments are void, so they need no reset. */
typedef struct mark {
  uint32_t segment; /* tag of that segment: 1 + its number; 0 = none yet */
  uint32_t slot;    /* for an entry, also its index among the entries */
  bool is_operand;
} mark;

typedef struct lister {
  tn_plan *plan;
  mark *marks; /* by value */
  uint32_t *entries, *operands; /* scratch: lists of the current segment */
  size_t entry_room, operand_room;
  tn_error *err;
} lister;

/* Whether a segment reads a value as an entry: a feed, or computed by an earlier segment. */
static bool from_outside(const tn_plan *plan, const tn__segment *s, uint32_t value)
{
  const tn__plan_value *v = &plan->values[value];
  return v->kind == TN_VALUE_FEED || (v->kind == TN_VALUE_COMPUTED && v->producer < s->begin);
}

/* Adds a value to the entries, and to the operands if `operand`, unless it is there. */
static tn_status list_input(lister *l, tn__segment *s, uint32_t tag, uint32_t value, bool operand)
{
  mark *m = &l->marks[value];
  if (l->plan->values[value].kind == TN_VALUE_COMPUTED) l->plan->values[value].dynamic_user = true;
  if (m->segment != tag) {
    if (!tn__grow((void **)&l->entries, &l->entry_room, s->n_entries + 1, sizeof *l->entries))
      return tn__no_memory(l->err, "plan", 0);
    *m = (mark){ tag, s->n_entries, false };
    l->entries[s->n_entries++] = value;
  }
  if (!operand || m->is_operand) return TN_OK;
  if (!tn__grow((void **)&l->operands, &l->operand_room, s->n_operands + 1, sizeof *l->operands))
    return tn__no_memory(l->err, "plan", 0);
  m->is_operand = true;
  l->operands[s->n_operands++] = m->slot;
  return TN_OK;
}

/* Copies a list to the plan's arena; NULL if memory is exhausted. */
static const uint32_t *keep(lister *l, const uint32_t *from, uint32_t n)
{
  uint32_t *to = tn__arena_array(&l->plan->arena, (size_t)n + 1, sizeof *to);
  if (to != NULL && n > 0) __builtin_memcpy(to, from, n * sizeof *to);
  return to;
}

static tn_status list_entries(lister *l, tn__segment *s, uint32_t tag)
{
  const tn_plan *plan = l->plan;
  for (uint32_t i = s->begin; i < s->end; i++) {
    const uint32_t *in = tn__instr_inputs(plan, &plan->instrs[i]);
    for (uint32_t k = 0; k < plan->instrs[i].n_inputs; k++) {
      if (!from_outside(plan, s, in[k])) continue;
      bool operand = is_operand(&plan->instrs[i], k) || plan->values[in[k]].from_shapes;
      tn_status st = list_input(l, s, tag, in[k], operand);
      if (st != TN_OK) return st;
    }
  }
  s->entries = keep(l, l->entries, s->n_entries);
  s->operands = keep(l, l->operands, s->n_operands);
  if (s->n_entries > l->plan->max_entries) l->plan->max_entries = s->n_entries;
  return s->entries == NULL || s->operands == NULL ? tn__no_memory(l->err, "plan", 0) : TN_OK;
}

/* Numbers the slots of a segment: entries first, then constants and outputs in the order in which instructions first
 * name them. The numbers do not depend on shapes, so they hold for all layouts. */
static void number_slots(lister *l, tn__segment *s, uint32_t tag)
{
  tn_plan *plan = l->plan;
  s->n_slots = s->n_entries;
  for (uint32_t i = s->begin; i < s->end; i++) {
    const tn__plan_instr *instr = &plan->instrs[i];
    for (uint32_t k = 0; k < instr->n_inputs + instr->n_outputs; k++) {
      uint32_t value = plan->ids[instr->first + k];
      mark *m = &l->marks[value];
      if (m->segment != tag) *m = (mark){ tag, s->n_slots++, false };
      plan->slots[instr->first + k] = m->slot;
      if (k < instr->n_inputs) continue;
      plan->values[value].segment = tag - 1;
      plan->values[value].slot = m->slot;
      plan->values[value].whole = s->kind >= TN__SEGMENT_MERGE;
      plan->values[value].dynamic_user |= plan->values[value].whole;
    }
  }
}

/* ---- values that outlive their segment ---- */

typedef struct counts { /* lengths of a segment's lists */
  uint32_t outputs, held, ends;
} counts;

static uint32_t last_reader(const tn__plan_value *v) { return v->last_use == TN__NONE ? v->producer : v->last_use; }

/* Numbers the held values. Fetched ones come first, and their number is returned: they are held until the step ends,
 * not until their last reader has run, because an output of a later segment may be a view of their memory. */
static uint32_t number_held(tn_plan *plan, counts *n)
{
  for (uint32_t i = 0; i < plan->n_values; i++) plan->values[i].held = TN__NONE;
  for (uint32_t o = 0; o < plan->n_outputs; o++) {
    tn__plan_value *v = &plan->values[plan->outputs[o]];
    if (v->kind != TN_VALUE_COMPUTED) continue;
    v->fetched = true;
    n[v->segment].outputs++;
    if ((plan->n_segments == 1 && !v->whole) || v->held != TN__NONE) continue;
    v->held = plan->n_held++;
    n[v->segment].held++;
  }
  uint32_t n_fetched = plan->n_held;
  for (uint32_t i = 0; i < plan->n_values; i++) {
    tn__plan_value *v = &plan->values[i];
    if (v->kind != TN_VALUE_COMPUTED || !v->dynamic_user || v->held != TN__NONE) continue;
    v->held = plan->n_held++;
    n[v->segment].held++;
    n[plan->instrs[last_reader(v)].segment].ends++;
  }
  return n_fetched;
}

/* Fills outputs, held and ends of all segments. `to` has room for them all. */
static void fill_lists(tn_plan *plan, uint32_t *to, uint32_t n_fetched, const counts *n)
{
  for (uint32_t k = 0; k < plan->n_segments; k++) {
    tn__segment *s = &plan->segments[k];
    s->outputs = to;
    s->held = to += n[k].outputs;
    s->ends = to += n[k].held;
    to += n[k].ends;
  }
  for (uint32_t o = 0; o < plan->n_outputs; o++) {
    const tn__plan_value *v = &plan->values[plan->outputs[o]];
    if (v->kind != TN_VALUE_COMPUTED) continue;
    tn__segment *s = &plan->segments[v->segment];
    plan->output_places[o] = s->n_outputs;
    s->outputs[s->n_outputs++] = o;
  }
  for (uint32_t i = 0; i < plan->n_values; i++) {
    const tn__plan_value *v = &plan->values[i];
    if (v->held == TN__NONE) continue;
    tn__segment *s = &plan->segments[v->segment];
    s->held[s->n_held++] = i;
    if (v->held < n_fetched) continue;
    s = &plan->segments[plan->instrs[last_reader(v)].segment];
    s->ends[s->n_ends++] = v->held;
  }
}

/* If segments may run out of order, because some wait, a held value is released by whichever reader ends last. Counts
 * the readers; the end of the step is the reader of a fetched value. */
static tn_status count_held_readers(tn_plan *plan, tn_error *err)
{
  if (!plan->has_waits) return TN_OK;
  plan->held_readers = tn__arena_array(&plan->arena, (size_t)plan->n_held + 1, sizeof *plan->held_readers);
  if (plan->held_readers == NULL) return tn__no_memory(err, "plan", plan->n_held * sizeof *plan->held_readers);
  for (uint32_t k = 0; k < plan->n_segments; k++)
    for (uint32_t i = 0; i < plan->segments[k].n_entries; i++) {
      const tn__plan_value *v = &plan->values[plan->segments[k].entries[i]];
      if (v->kind == TN_VALUE_COMPUTED && v->held != TN__NONE) plan->held_readers[v->held]++;
    }
  for (uint32_t o = 0; o < plan->n_outputs; o++) {
    const tn__plan_value *v = &plan->values[plan->outputs[o]];
    if (v->kind == TN_VALUE_COMPUTED && v->held != TN__NONE) plan->held_readers[v->held]++;
  }
  return TN_OK;
}

static tn_status list_held(tn_plan *plan, tn_error *err)
{
  counts *n = tn__alloc_array((size_t)plan->n_segments + 1, sizeof *n);
  if (n == NULL) return tn__no_memory(err, "plan", plan->n_segments * sizeof *n);
  uint32_t n_fetched = number_held(plan, n);
  size_t room = 2 * (size_t)plan->n_held + plan->n_outputs + 1;
  uint32_t *lists = tn__arena_array(&plan->arena, room, sizeof *lists);
  plan->output_places = tn__arena_array(&plan->arena, (size_t)plan->n_outputs + 1, sizeof *plan->output_places);
  bool ok = lists != NULL && plan->output_places != NULL;
  if (ok) fill_lists(plan, lists, n_fetched, n);
  tn__free(n, ((size_t)plan->n_segments + 1) * sizeof *n);
  return ok ? TN_OK : tn__no_memory(err, "plan", room * sizeof *lists);
}

/* ---- all of it ---- */

/* The values that decide branches are recorded at the end of the segment that computes them. Feeds and constants are
 * available without that. */
static tn_status list_predicates(tn_plan *plan, tn_error *err)
{
  for (uint32_t i = 0; i < plan->conditions.n_atoms; i++) {
    const tn__atom *a = &plan->conditions.atoms[i];
    tn__plan_value *v = a->kind == TN__ATOM_BRANCH ? &plan->values[a->id] : NULL;
    if (v == NULL) continue;
    v->n_uses++;
    if (v->kind != TN_VALUE_COMPUTED || v->predicate != 0) continue;
    v->predicate = ++plan->conditions.n_predicates;
    plan->segments[v->segment].n_predicates++;
  }
  uint32_t *list = tn__arena_array(&plan->arena, (size_t)plan->conditions.n_predicates + 1, sizeof *list);
  if (list == NULL) return tn__no_memory(err, "plan", plan->conditions.n_predicates * sizeof *list);
  for (uint32_t k = 0; k < plan->n_segments; k++) {
    plan->segments[k].predicates = list;
    list += plan->segments[k].n_predicates;
    plan->segments[k].n_predicates = 0;
  }
  for (uint32_t i = 0; i < plan->n_values && plan->conditions.n_predicates > 0; i++) {
    tn__segment *s = plan->values[i].predicate == 0 ? NULL : &plan->segments[plan->values[i].segment];
    if (s != NULL) s->predicates[s->n_predicates++] = i;
  }
  return TN_OK;
}

static tn_status number_all_slots(lister *l)
{
  tn_plan *plan = l->plan;
  size_t n_ids = 0;
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    size_t end = (size_t)plan->instrs[i].first + plan->instrs[i].n_inputs + plan->instrs[i].n_outputs;
    if (end > n_ids) n_ids = end;
  }
  plan->slots = tn__arena_array(&plan->arena, n_ids + 1, sizeof *plan->slots);
  tn_status st = plan->slots == NULL ? tn__no_memory(l->err, "plan", n_ids * sizeof *plan->slots) : TN_OK;
  for (uint32_t k = 0; st == TN_OK && k < plan->n_segments; k++) {
    st = list_entries(l, &plan->segments[k], k + 1);
    if (st == TN_OK) number_slots(l, &plan->segments[k], k + 1);
  }
  return st;
}

tn_status tn__plan_cut(tn_plan *plan, tn_error *err)
{
  mark_from_shapes(plan);
  tn_status st = tn__plan_make_segments(plan, err);
  if (st != TN_OK) return st;
  count_uses(plan);
  lister l = { .plan = plan, .err = err };
  size_t n_marks = (size_t)plan->n_values + 1;
  l.marks = tn__alloc_array(n_marks, sizeof *l.marks);
  if (l.marks == NULL) st = tn__no_memory(err, "plan", n_marks * sizeof *l.marks);
  if (st == TN_OK) st = number_all_slots(&l);
  if (st == TN_OK) st = list_predicates(plan, err);
  if (st == TN_OK) st = list_held(plan, err);
  if (st == TN_OK) st = count_held_readers(plan, err);
  tn__free(l.marks, n_marks * sizeof *l.marks);
  tn__free(l.entries, l.entry_room * sizeof *l.entries);
  tn__free(l.operands, l.operand_room * sizeof *l.operands);
  return st;
}
