/* SPDX-License-Identifier: Apache-2.0 */
/* A layout under construction: the state shared by the passes that build.c lists. */
#ifndef TN_CORE_LAYOUT_BUILDER_H
#define TN_CORE_LAYOUT_BUILDER_H

#include <core/layout/layout.h>
#include <core/layout/tasks.h>

#define TN__FOREVER UINT32_MAX /* as `last`: needed until the step ends */

/* Results of prepare for an instruction. */
typedef struct tn__instr_note {
  size_t scratch_bytes;
  double cost_ns;        /* 0 = not declared */
  uint32_t scratch_life; /* index in lives, if scratch_bytes > 0 */
} tn__instr_note;

/* A slot over which an output may be written. */
typedef struct tn__place {
  uint32_t slot, next; /* next: of the same output; TN__NONE = none */
} tn__place;

/* A known value that is too large to keep: it exists while the layout is made. */
typedef struct tn__passing {
  struct tn__passing *next;
  uint32_t slot;
  size_t bytes; /* of the allocation at l->slots[slot].known */
} tn__passing;

/* All arrays are owned by the builder. */
typedef struct tn__layout_builder {
  tn_plan *plan;
  tn__segment *segment;
  tn__layout *layout;
  uint32_t *in_place; /* by slot: index of the first of its places; TN__NONE = none */
  tn__place *places;
  tn__prepare_memo *again;
  uint32_t *last;        /* by slot: last instruction that needs it */
  uint32_t *packed;      /* by slot: number of its readers that have a packed form of it */
  bool *has_form;        /* by input of the current instruction: its kernel has a packed form */
  tn__instr_note *notes; /* by instruction of the segment */
  tn_view *views;        /* by input of the current instruction */
  struct tn__prepared_output *prepared; /* by output of the current instruction */
  tn__life *lives;
  tn__passing *passing;
  tn__task_order *order; /* NULL = calls run one after the other */
  size_t again_room, n_lives, n_places, place_room;
  size_t max_inputs, max_outputs; /* maximum over the instructions */
  size_t n_ids;                   /* inputs and outputs of all instructions */
  tn_error *err;
} tn__layout_builder;

static inline tn_status tn__builder_no_memory(tn__layout_builder *b)
{
  return tn__no_memory(b->err, "layout", b->segment->n_slots * sizeof(tn__slot));
}

/* The slot that has the memory of a slot. Roots may be chained while the layout is made. */
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

/* The slot of the segment's output `at`. */
static inline uint32_t tn__builder_output(const tn__layout_builder *b, uint32_t at)
{
  return b->plan->values[b->plan->outputs[b->segment->outputs[at]]].slot;
}

/* ---- lives.c ---- */

/* Decides the store of each value, the tasks, how long each block lives, and the arena offsets. */
tn_status tn__layout_lives(tn__layout_builder *b);
/* Whether a slot is a value of an earlier segment that is not needed after this one. Its memory is released by its last
 * reader, so that a variable that was read can be updated in place. Never in plans that may wait: there, segments do
 * not run in order. */
bool tn__builder_ends(const tn__layout_builder *b, uint32_t slot);
/* Whether an instruction needs no call: its outputs are views of other values, or known. */
bool tn__builder_views_only(const tn__layout_builder *b, const tn__plan_instr *instr);

/* ---- tape_build.c ---- */

/* Makes the calls with their operands. */
tn_status tn__layout_tape(tn__layout_builder *b);
/* Lists what each step has to bind, and to hold after the segment has run. */
tn_status tn__layout_binds(tn__layout_builder *b);

#endif
