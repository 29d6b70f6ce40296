/* SPDX-License-Identifier: Apache-2.0 */
/* Plans on a device: level (c) of the kit for straight plans. All others are run by level (a), which offers the parts between
 * conditions, also those of loops and functions: each is a schedule of its own (part.c).
 *
 * A schedule is a segment of a plan with concrete shapes: for each instruction whether it runs on the device or on the CPU, the launches of
 * those on the device, and between them what has to be copied from one memory to the other. Values lie in two arenas, one in
 * each memory; on a device that shares memory with the host the two are one. An instance is what one step at a time
 * uses of a schedule: arenas, kernels with their arguments set, a queue. Instances are kept, so a second step allocates and
 * builds nothing. */
#ifndef GPU_SCHEDULE_SCHEDULE_H
#define GPU_SCHEDULE_SCHEDULE_H

#include "schedule/actions.h"
#include "schedule/executable.h"
#include "schedule/slots.h"

typedef struct gpu_schedule gpu_schedule;
typedef struct gpu_order gpu_order; /* order.c */

struct gpu_schedule {
  gpu_schedule *next; /* guarded by the executable's mu, as are users, state and idle */
  size_t n_users;     /* steps, and the list */
  int state;          /* 0: being made, 1: there, -1: it failed */
  struct gpu_instance *idle;
  int64_t *key;
  size_t n_key;

  tn_executable *executable;
  uint32_t segment;
  /* What is made; from here on it is cleared before it is made again. */
  int64_t *dims;           /* of values that earlier segments made */
  gpu_site *sites;         /* by device of the session */
  uint32_t n_sites;
  uint32_t n_arenas;       /* of an instance */
  gpu_lane *lanes;
  uint32_t n_lanes;
  tn_plan_layout *layout;
  gpu_slot *slots;
  uint32_t n_slots;
  gpu_place *places;       /* by site, then by slot */
  gpu_item *items;
  uint32_t n_items;
  gpu_call *calls;
  uint32_t n_calls;
  gpu_action *actions;
  uint32_t n_actions, actions_room;
  uint32_t *waits;         /* actions */
  uint32_t n_waits, waits_room;
  gpu_order *order;        /* while the schedule is made */
  uint32_t *sequence;      /* items, in the order in which they are gone through */
  gpu_out *outs;
  uint32_t n_outs, n_feeds;
  gpu_binding *bindings;
  uint32_t n_bindings, bindings_room;
  gpu_dynamic *dynamics;
  uint32_t n_dynamic;
  uint32_t n_operands;     /* pointers to views, of all host items */
  uint32_t max_outputs;    /* of an item */
  bool apart;              /* host and device have arenas of their own, also where they share their memory */
  bool too_large;          /* one arena for both is more than the device gives at once */
  bool part;               /* the kit runs what is around it, and has the memory of what it reads and gives */
  bool shared;             /* one arena for host and device, of which there is one */
  bool possible;           /* the device could run some of the nodes */
  bool looks;              /* after the last action that looks a launch may find elements that it cannot take */
  uint32_t *late;          /* values whose host memory differs from step to step */
  uint32_t n_late;
  size_t host_bytes, host_scratch, constant_bytes;
  uint32_t n_device, n_host, n_launches, n_copies; /* in one step */
};

/* Makes what gpu_schedule_take found missing. */
tn_status gpu_schedule_make(gpu_schedule *s, const gpu_values *values, tn_error *err);
void gpu_schedule_clear(gpu_schedule *s); /* what make made */
/* The rest of making, when values and instructions are read. */
tn_status gpu_schedule_sites(gpu_schedule *s, tn_error *err); /* before */
tn_status gpu_schedule_build(gpu_schedule *s, tn_error *err);
void gpu_schedule_log(const gpu_schedule *s, int64_t ns);

/* nodes.c: which items the device could run. */
tn_status gpu_nodes_plan(gpu_schedule *s, tn_error *err);
/* placement.c: sets `where` of all items. */
tn_status gpu_choose_places(gpu_schedule *s, tn_error *err);
void gpu_placement_note(const gpu_schedule *s); /* in the session's report of where nodes run */
/* transfer.c: lanes, actions, roots, spans, outputs. */
tn_status gpu_transfers(gpu_schedule *s, tn_error *err);
/* bindings.c: the arguments that differ from step to step. */
tn_status gpu_bindings(gpu_schedule *s, tn_error *err);
/* arena.c: where the blocks lie; the schedule's order is needed for it and goes. */
tn_status gpu_arenas(gpu_schedule *s, tn_error *err);
/* faults.c: where the host looks what kernels found. */
void gpu_faults_plan(gpu_schedule *s);

/* A later segment reads value v, which this one makes. */
static inline bool gpu_hands_on(const gpu_schedule *s, uint32_t v)
{
  const tn_executable *e = s->executable;
  return e->crosses[v] && e->made_in[v] == s->segment && s->slots[v].root != GPU_NONE;
}
static inline gpu_place *gpu_place_at(const gpu_schedule *s, uint32_t site, uint32_t root)
{
  return &s->places[(size_t)site * s->n_slots + root];
}
/* What a device makes for the caller is given as it lies there. */
static inline bool gpu_outputs_stay(const gpu_schedule *s)
{
  return !s->part && (s->executable->placed || s->executable->session->settings.fetch_device);
}
static inline bool gpu_reads(const gpu_item *item, uint32_t i) { return (item->reads[i / 32] >> i % 32 & 1) != 0; }
#endif
