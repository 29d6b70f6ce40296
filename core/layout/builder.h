/* SPDX-License-Identifier: Apache-2.0 */
/* A layout while it is made: what its passes share (build.c lists them). */
#ifndef TN_CORE_LAYOUT_BUILDER_H
#define TN_CORE_LAYOUT_BUILDER_H

#include <core/layout/layout.h>
#include <core/layout/tasks.h>

#define TN__FOREVER UINT32_MAX /* needed until the step ends */

typedef struct tn__instr_note {
  size_t scratch_bytes;
  double cost_ns;
  uint32_t scratch_life;
} tn__instr_note;

/* A slot over which an output may be written. */
typedef struct tn__place {
  uint32_t slot, next; /* next: of the same output, TN__NONE = none */
} tn__place;

/* A known value for as long as the layout is made. */
typedef struct tn__passing {
  struct tn__passing *next;
  uint32_t slot;
  size_t bytes; /* of the allocation at l->slots[slot].known */
} tn__passing;

typedef struct tn__layout_builder {
  tn_plan *plan;
  tn__segment *segment;
  tn__layout *layout;
  uint32_t *in_place; /* by slot: the first of its places, TN__NONE = none */
  tn__place *places;
  tn__again *again;
  uint32_t *last;     /* by slot: last instruction that needs it */
  uint32_t *packed;   /* by slot: how many times it is read by a kernel that has a form of its own */
  bool *has_form;     /* by input of one instruction */
  tn__instr_note *notes; /* by instruction of the segment */
  tn_view *views;     /* inputs of one instruction */
  struct tn__prepared_output *prepared;
  tn__life *lives;
  tn__passing *passing;
  tn__task_order *order; /* NULL = calls run one after the other */
  size_t again_room, n_lives, n_places, place_room, max_inputs, max_outputs, n_ids;
  tn_error *err;
} tn__layout_builder;

static inline tn_status tn__builder_no_memory(tn__layout_builder *b)
{
  return tn__no_memory(b->err, "layout", b->segment->n_slots * sizeof(tn__slot));
}

static inline uint32_t tn__layout_root(const tn__layout *l, uint32_t slot)
{
  while (l->slots[slot].root != slot) slot = l->slots[slot].root;
  return slot;
}

static inline const uint32_t *tn__input_slots(const tn__layout_builder *b, const tn__plan_instr *instr)
{
  return b->plan->slots + instr->first;
}

static inline const uint32_t *tn__output_slots(const tn__layout_builder *b, const tn__plan_instr *instr)
{
  return b->plan->slots + instr->first + instr->n_inputs;
}

static inline const tn__plan_value *tn__builder_value(const tn__layout_builder *b, uint32_t slot)
{
  return &b->plan->values[b->layout->slots[slot].value];
}

static inline uint32_t tn__builder_output(const tn__layout_builder *b, uint32_t at)
{
  return b->plan->values[b->plan->outputs[b->segment->outputs[at]]].slot;
}

/* lives.c: where fetched values lie, what may run at once, which memory each value has and how long. */
tn_status tn__layout_lives(tn__layout_builder *b);
/* An earlier segment's value that nobody needs after this one: its memory goes with its last reader, so that a variable
 * that was read can be changed where it is. What waits may be read again. */
bool tn__builder_ends(const tn__layout_builder *b, uint32_t slot);
/* A call that computes nothing: its outputs are other values' memory, or known. */
bool tn__builder_views_only(const tn__layout_builder *b, const tn__plan_instr *instr);

/* tape_build.c: the calls with their operands; what each step has to bind, and to hold when the segment has run. */
tn_status tn__layout_tape(tn__layout_builder *b);
tn_status tn__layout_binds(tn__layout_builder *b);

#endif
