/* SPDX-License-Identifier: Apache-2.0 */
/* Frames and loops of the graph being imported: frames_find.c finds them, frames_build.c makes a node of each loop, and
 * frames.c goes through the plan in order. */
#ifndef TN_CORE_COMPILE_IMPORT_FRAMES_H
#define TN_CORE_COMPILE_IMPORT_FRAMES_H

#include <core/compile/import/prune.h>

/* A frame. Number 0 is the plan's own. */
typedef struct tn__frame_info {
  uint32_t parent, depth;
  char *key; /* number of the parent, then the name; owned. by_key borrows it */
  size_t key_size;
} tn__frame_info;

typedef struct tn__op_list {
  tn_operation **items;
  size_t n, room;
} tn__op_list;

/* Operations of one loop. All lists but `targets` have only those of its outermost frame. */
typedef struct tn__frame_loop {
  tn__op_list enters; /* without those of constants */
  tn__op_list nexts, exits, merges;
  tn__op_list targets;  /* in any of its frames */
  tn__op_list own;      /* nexts, exits, and Enters of constants: in the body they only forward */
  uint8_t visit; /* 0 = not seen, 1 = on the stack, 2 = added */
} tn__frame_loop;

/* An entry of the plan's order: an operation of the plan's own frame, or a whole loop. */
typedef struct tn__frame_unit {
  tn_operation *op;
  uint32_t loop; /* index of the loop; TN__NONE = the operation */
  size_t next;   /* next edge to visit; of a loop, see next_needed */
} tn__frame_unit;

typedef struct tn__frame_finder {
  tn__pruner *c; /* borrowed */
  tn__frame_info *frames;
  size_t n_frames, frame_room;
  tn__map by_key; /* to the number of a frame */
  tn__frame_loop *loops;
  size_t n_loops, loop_room;
  tn__frame_unit *stack; /* of the walk that adds units in order */
  size_t depth, stack_room;
  uint8_t *seen; /* by operation of the plan's own frame: 0 = not seen, 1 = on the stack, 2 = added */
  tn_error *err;
} tn__frame_finder;

static inline tn_status tn__frames_no_memory(const tn__frame_finder *f) { return tn__ir_no_memory(f->c->ir); }

static inline tn_status tn__op_list_add(const tn__frame_finder *f, tn__op_list *l, tn_operation *op)
{
  if (!tn__grow((void **)&l->items, &l->room, l->n + 1, sizeof *l->items)) return tn__frames_no_memory(f);
  l->items[l->n++] = op;
  return TN_OK;
}

static inline bool tn__op_has(const tn_operation *op, uint32_t trait)
{
  return (tn__operation_traits(op) & trait) != 0;
}

/* Assigns frames, joins the operations of each loop, then fills the lists of the loops. */
tn_status tn__frames_find_loops(tn__frame_finder *f);
/* The operation that op needs at edge k; NULL if it needs none there: the edge is fed, has the value of the previous
 * iteration, or delays nothing. *n is the number of edges. */
tn_operation *tn__frames_source(const tn__frame_finder *f, const tn_operation *op, size_t k, size_t *n);
/* The loop of an operation in a frame. Creates it if it is new. */
tn_status tn__frames_loop_of(tn__frame_finder *f, const tn_operation *op, uint32_t *out);
/* Compiles the loop and adds its node; its targets are then computed by that node. */
tn_status tn__frames_add_loop(tn__frame_finder *f, tn__frame_loop *l);

#endif
