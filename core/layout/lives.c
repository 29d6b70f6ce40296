/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a layout: decides which values are computed in the step's outputs, how long each block is needed, which
 * outputs are written over inputs, and, if several threads may work, which calls run concurrently. */
#include <core/layout/builder.h>
#include <core/tensor/account.h>

/* Estimated costs of calls, for the cut into tasks, in ns. */
#define CALL_NS 30.0   /* of any call */
#define ELEMENT_NS 0.5 /* of an element, if the kernel declares no cost */
/* Calls of at least this cost share their loops. Equal to TN__LOOP_NS of core/exec, which core/layout must not
 * include. */
#define SHARED_NS 4000.0

/* ---- outputs ---- */

/* Moves values out of the arena: fetched ones to the step's outputs, those that outlive the segment to the heap. A
 * fetched view of part of a value is copied instead. */
static void place_outputs(tn__layout_builder *b)
{
  tn__layout *l = b->layout;
  for (uint32_t at = 0; at < b->segment->n_outputs; at++) {
    tn__slot *s = &l->slots[tn__builder_output(b, at)];
    tn__slot *root = &l->slots[s->root];
    root->fetched = true;
    if (root->store != TN_STORE_ARENA || root->bytes != s->bytes) continue;
    root->store = TN_STORE_OUTPUT;
    root->offset = b->segment->outputs[at];
    l->has_outputs = true;
  }
  for (uint32_t i = 0; i < b->segment->n_held; i++) {
    tn__slot *root = &l->slots[l->slots[b->plan->values[b->segment->held[i]].slot].root];
    if (root->store == TN_STORE_ARENA) root->store = TN_STORE_HEAP;
  }
  for (uint32_t i = 0; i < l->n_slots; i++) l->slots[i].store = l->slots[l->slots[i].root].store;
}

bool tn__builder_ends(const tn__layout_builder *b, uint32_t slot)
{
  const tn__plan_value *v = tn__builder_value(b, slot);
  return slot < b->segment->n_entries && !b->plan->has_waits && v->kind == TN_VALUE_COMPUTED && v->held != TN__NONE &&
         !v->fetched && v->last_use != TN__NONE && v->last_use < b->segment->end;
}

/* Finds the last instruction that needs each root, through any of its views. */
static void find_lasts(tn__layout_builder *b)
{
  tn__layout *l = b->layout;
  for (uint32_t i = 0; i < l->n_slots; i++) {
    const tn__plan_value *v = tn__builder_value(b, i);
    uint32_t last = v->last_use == TN__NONE ? v->producer : v->last_use;
    bool outlives = v->dynamic_user || v->predicate != 0 || (last != TN__NONE && last >= b->segment->end);
    if (outlives && !tn__builder_ends(b, i)) last = TN__FOREVER;
    uint32_t root = l->slots[i].root;
    if (last != TN__NONE && last > b->last[root]) b->last[root] = last;
    if (last == TN__FOREVER) b->last[root] = TN__FOREVER;
  }
  for (uint32_t at = 0; at < b->segment->n_outputs; at++)
    b->last[l->slots[tn__builder_output(b, at)].root] = TN__FOREVER;
}

/* ---- tasks ---- */

bool tn__builder_views_only(const tn__layout_builder *b, const tn__plan_instr *instr)
{
  if (tn__instr_kernels(instr) == NULL) return true;
  if (instr->traits & TN_TRAIT_STATEFUL) return false; /* it may have an effect */
  for (uint32_t k = 0; k < instr->n_outputs; k++) {
    uint32_t out = tn__output_slots(b, instr)[k];
    if (b->layout->slots[out].root == out && b->layout->slots[out].store != TN_STORE_KNOWN) return false;
    if (b->in_place[out] != TN__NONE) return false; /* shares memory, yet is computed */
  }
  return instr->n_outputs > 0;
}

/* The cost of an instruction, in ns; 0 if it is not called. If its kernel declares none, it is estimated from the
 * largest operand. */
static double cost_of(const tn__layout_builder *b, uint32_t i)
{
  const tn__plan_instr *instr = &b->plan->instrs[i];
  double said = b->notes[i - b->segment->begin].cost_ns, most = 0;
  if (tn__builder_views_only(b, instr)) return 0;
  for (uint32_t k = 0; k < instr->n_inputs + instr->n_outputs && !(said > 0); k++) {
    double count = (double)b->layout->slots[b->plan->slots[instr->first + k]].count;
    if (count > most) most = count;
  }
  return CALL_NS + (said > 0 ? said : most * ELEMENT_NS);
}

/* Sets b->order if more than one thread may work and tasks are worth it. */
static tn_status find_tasks(tn__layout_builder *b)
{
  size_t n = (size_t)(b->segment->end - b->segment->begin) + 1;
  bool one =
      tn__plan_threads(b->plan) <= 1 && !atomic_load_explicit(&b->plan->settings.scheduled, memory_order_relaxed);
  if (one) return TN_OK;
  double *costs = tn__alloc_array(n, sizeof *costs);
  if (costs == NULL) return tn__builder_no_memory(b);
  for (uint32_t i = b->segment->begin; i < b->segment->end; i++) costs[i - b->segment->begin] = cost_of(b, i);
  tn_status st = tn__task_order_create(b->plan, b->segment, costs, &b->order, b->err);
  tn__free(costs, n * sizeof *costs);
  return st;
}

/* Records the memory that an instruction uses, for the order of tasks. */
static void touch(const tn__layout_builder *b, uint32_t i)
{
  const tn__plan_instr *instr = &b->plan->instrs[i];
  if (b->order == NULL || tn__builder_views_only(b, instr)) return;
  for (uint32_t k = 0; k < instr->n_inputs + instr->n_outputs; k++)
    tn__task_touch(b->order, tn__layout_root(b->layout, b->plan->slots[instr->first + k]), i);
}

/* Whether instruction i is the last to need the memory, and all others that need it have ended when it begins,
 * whichever threads run them. */
static bool is_last(const tn__layout_builder *b, uint32_t i, uint32_t root)
{
  if (b->last[root] != i) return false;
  return b->order == NULL || tn__task_follows(b->order, tn__task_touched(b->order, root), tn__task_of(b->order, i));
}

/* ---- in place ---- */

/* Whether an output may be written over an input: no other operand of the instruction may use the same memory. */
static bool may_take_over(const tn__layout_builder *b, uint32_t i, uint32_t out, uint32_t in)
{
  const tn__layout *l = b->layout;
  const tn__plan_instr *instr = &b->plan->instrs[i];
  uint32_t root = tn__layout_root(l, in);
  if (l->slots[out].store != TN_STORE_ARENA || l->slots[root].store != TN_STORE_ARENA) return false;
  if (!is_last(b, i, root) || l->slots[root].bytes != l->slots[out].bytes) return false;
  for (uint32_t k = 0; k < instr->n_inputs; k++) {
    uint32_t s = tn__input_slots(b, instr)[k];
    if (s != in && tn__layout_root(l, s) == root) return false;
  }
  for (uint32_t k = 0; k < instr->n_outputs; k++) { /* two outputs would overwrite each other */
    uint32_t s = tn__output_slots(b, instr)[k];
    if (s != out && tn__layout_root(l, s) == root) return false;
  }
  return true;
}

/* Places an output over the first of its candidates that is not needed any more. False if there is none. */
static bool take_over(tn__layout_builder *b, uint32_t i, uint32_t out)
{
  for (uint32_t at = b->in_place[out]; at != TN__NONE; at = b->places[at].next) {
    if (!may_take_over(b, i, out, b->places[at].slot)) continue;
    uint32_t root = tn__layout_root(b->layout, b->places[at].slot);
    b->layout->slots[out].root = root;
    b->last[root] = b->last[out];
    b->layout->memory.in_place_bytes += b->layout->slots[out].bytes;
    return true;
  }
  return false;
}

/* Lists the blocks of the arena with the time for which they live, and assigns their offsets. */
static tn_status find_lives(tn__layout_builder *b)
{
  tn__layout *l = b->layout;
  for (uint32_t i = b->segment->begin; i < b->segment->end; i++) {
    const tn__plan_instr *instr = &b->plan->instrs[i];
    tn__instr_note *note = &b->notes[i - b->segment->begin];
    bool shared = note->cost_ns >= SHARED_NS;
    touch(b, i);
    for (uint32_t k = 0; k < instr->n_outputs; k++) {
      uint32_t out = tn__output_slots(b, instr)[k];
      if (l->slots[out].root != out || l->slots[out].store != TN_STORE_ARENA || take_over(b, i, out)) continue;
      b->lives[b->n_lives++] = (tn__life){ .slot = out, .first = i, .bytes = l->slots[out].bytes, .shared = shared };
    }
    if (note->scratch_bytes > 0) {
      note->scratch_life = (uint32_t)b->n_lives;
      b->lives[b->n_lives++] =
          (tn__life){ .slot = TN__NONE, .first = i, .last = i, .bytes = note->scratch_bytes, .shared = shared };
    }
  }
  for (size_t i = 0; i < b->n_lives; i++)
    if (b->lives[i].slot != TN__NONE) b->lives[i].last = b->last[b->lives[i].slot];
  for (uint32_t i = 0; i < l->n_slots; i++) l->slots[i].root = tn__layout_root(l, i);
  tn__layout_memory *m = &l->memory;
  tn_status st = b->order != NULL
                     ? tn__layout_assign_tasks(b->lives, b->n_lives, b->order, &m->arena_bytes, &m->live_bytes, b->err)
                     : tn__layout_assign(b->lives, b->n_lives, &m->arena_bytes, &m->live_bytes, b->err);
  if (st == TN_OK && b->order == NULL && tn__account_now == NULL) /* with a memory limit the arena must not grow */
    tn__layout_share(b->lives, b->n_lives, tn__plan_threads(b->plan), m->live_bytes, &m->arena_bytes);
  for (size_t i = 0; st == TN_OK && i < b->n_lives; i++)
    if (b->lives[i].slot != TN__NONE) l->slots[b->lives[i].slot].offset = b->lives[i].offset;
  return st;
}

tn_status tn__layout_lives(tn__layout_builder *b)
{
  place_outputs(b);
  find_lasts(b);
  tn_status st = find_tasks(b);
  return st == TN_OK ? find_lives(b) : st;
}
