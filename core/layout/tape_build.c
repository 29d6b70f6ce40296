/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a layout's calls with their operands, and lists what a step binds and holds. */
#include <core/layout/builder.h>

/* Lists the heap values, and values held from earlier segments, whose memory instruction i is the last to need. They
 * are among its operands. */
static uint32_t list_releases(tn__layout_builder *b, uint32_t i, const uint32_t *operands, uint32_t n, uint32_t *to)
{
  uint32_t n_out = 0;
  for (uint32_t k = 0; k < n; k++) {
    uint32_t root = b->layout->slots[operands[k]].root;
    bool held = b->layout->slots[root].store == TN_STORE_ENTRY && tn__builder_ends(b, root);
    if ((b->layout->slots[root].store != TN_STORE_HEAP && !held) || b->last[root] != i) continue;
    bool twice = false;
    for (uint32_t j = 0; j < n_out; j++) twice |= to[j] == root;
    if (!twice) to[n_out++] = root;
  }
  return n_out;
}

tn_status tn__layout_tape(tn__layout_builder *b)
{
  tn__layout *l = b->layout;
  uint32_t *ids = tn__arena_array(&l->arena, b->n_ids * 2 + 1, sizeof *ids);
  if (ids == NULL) return tn__builder_no_memory(b);
  l->operands = ids;
  for (uint32_t i = b->segment->begin; i < b->segment->end; i++) {
    const tn__plan_instr *instr = &b->plan->instrs[i];
    const tn__instr_note *note = &b->notes[i - b->segment->begin];
    if (tn__builder_views_only(b, instr)) continue;
    tn__tape *t = &l->tape[l->n_tape++];
    const tn__plan_kernel *kernel = tn__layout_kernel(l, i);
    *t = (tn__tape){ .compute = kernel->def->compute, .state = kernel->state, .instr = i, .operands = l->n_operands,
                     .shape_state = l->shape_states[i - b->segment->begin], .n_inputs = instr->n_inputs,
                     .n_outputs = instr->n_outputs };
    if (note->scratch_bytes > 0) t->scratch = b->lives[note->scratch_life].offset;
    t->scratch_units = (uint32_t)((note->scratch_bytes + TN_ALIGN - 1) / TN_ALIGN);
    for (uint32_t k = 0; k < instr->n_inputs; k++) ids[l->n_operands++] = tn__input_slots(b, instr)[k];
    for (uint32_t k = 0; k < instr->n_outputs; k++) {
      uint32_t out = tn__output_slots(b, instr)[k];
      ids[l->n_operands++] = out;
      if (l->slots[out].dynamic || l->slots[out].given) t->flags |= TN_TAPE_DYNAMIC;
      else if (l->slots[out].root == out && l->slots[out].store == TN_STORE_HEAP) t->flags |= TN_TAPE_HEAP;
    }
    t->release = l->n_operands;
    t->n_release = list_releases(b, i, ids + t->operands, t->n_inputs + t->n_outputs, ids + l->n_operands);
    l->n_operands += t->n_release;
    if (t->n_release > 0) t->flags |= TN_TAPE_RELEASE;
    if (kernel->guest != NULL) t->flags |= TN_TAPE_GUEST;
  }
  return TN_OK;
}

/* Links the slots that share memory, lists the heap roots, and finds the memory of the step's outputs. */
static tn_status link_aliases(tn__layout_builder *b)
{
  tn__layout *l = b->layout;
  uint32_t *roots = tn__arena_array(&l->arena, (size_t)b->segment->n_outputs + 1, sizeof *roots);
  uint32_t n_heaps = 0;
  for (uint32_t i = 0; i < l->n_slots; i++) n_heaps += l->slots[i].root == i && l->slots[i].store == TN_STORE_HEAP;
  uint32_t *heaps = tn__arena_array(&l->arena, (size_t)n_heaps + 1, sizeof *heaps);
  if (roots == NULL || heaps == NULL) return tn__builder_no_memory(b);
  l->heaps = heaps;
  for (uint32_t i = 0; i < l->n_slots; i++) l->slots[i].next_alias = TN__NONE;
  for (uint32_t i = 0; i < l->n_slots; i++) {
    uint32_t root = l->slots[i].root;
    l->slots[i].store = l->slots[root].store;
    if (root == i && l->slots[i].store == TN_STORE_HEAP) heaps[l->n_heaps++] = i;
    if (root == i) continue;
    l->slots[i].next_alias = l->slots[root].next_alias;
    l->slots[root].next_alias = i;
  }
  for (uint32_t at = 0; at < b->segment->n_outputs; at++) {
    uint32_t root = l->slots[tn__builder_output(b, at)].root;
    bool there = l->slots[root].store == TN_STORE_OUTPUT && l->slots[root].offset == b->segment->outputs[at];
    roots[at] = there ? root : TN__NONE;
  }
  l->output_root = roots;
  return TN_OK;
}

/* Lists the tensors that a step holds, and the predicates that it records, after the segment has run. */
static tn_status list_holds(tn__layout_builder *b)
{
  tn__layout *l = b->layout;
  const tn_plan *plan = b->plan;
  l->holds = tn__arena_array(&l->arena, (size_t)b->segment->n_held + 1, sizeof *l->holds);
  if (l->holds == NULL) return tn__builder_no_memory(b);
  l->predicates = tn__arena_array(&l->arena, 2 * (size_t)b->segment->n_predicates + 1, sizeof *l->predicates);
  if (l->predicates == NULL) return tn__builder_no_memory(b);
  for (uint32_t i = 0; i < b->segment->n_predicates; i++) {
    const tn__plan_value *v = &plan->values[b->segment->predicates[i]];
    l->predicates[2 * i] = v->slot;
    l->predicates[2 * i + 1] = v->predicate - 1;
  }
  for (uint32_t i = 0; i < b->segment->n_held; i++) {
    const tn__plan_value *v = &plan->values[b->segment->held[i]];
    uint32_t root = l->slots[v->slot].root;
    const tn__plan_value *from = &plan->values[l->slots[root].value];
    if (l->slots[root].store == TN_STORE_HEAP && !l->slots[root].fetched)
      l->holds[l->n_holds++] = (tn__hold){ root, TN__NONE, v->held };
    if (l->slots[root].store == TN_STORE_ENTRY && from->held != TN__NONE)
      l->holds[l->n_holds++] = (tn__hold){ TN__NONE, from->held, v->held };
  }
  return TN_OK;
}

tn_status tn__layout_binds(tn__layout_builder *b)
{
  tn_status st = link_aliases(b);
  return st == TN_OK ? list_holds(b) : st;
}
