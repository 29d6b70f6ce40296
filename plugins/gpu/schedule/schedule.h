/* SPDX-License-Identifier: Apache-2.0 */
/* Plans on a device. Straight plans use level (c) of the kit. All others use level (a), which offers the
 * parts between conditions, also those of loops and functions; each part is a schedule of its own
 * (step/part.c).
 *
 * A schedule is a segment of a plan with concrete shapes. It says for each instruction whether it runs on the
 * device or on the CPU, which kernels are launched on the device, and which values are copied between the two
 * memories. Values are in two arenas, one in each memory; on a device that shares memory with the host there
 * is one arena. An instance (step/instance.h) is the data that one step at a time uses: arenas, kernels with
 * their arguments set, a queue. Instances are kept, so a second step allocates and builds nothing. */
#ifndef GPU_SCHEDULE_SCHEDULE_H
#define GPU_SCHEDULE_SCHEDULE_H

#include "schedule/actions.h"
#include "schedule/executable.h"
#include "schedule/slots.h"

typedef struct gpu_schedule gpu_schedule;
typedef struct gpu_order gpu_order; /* order.c */

/* The memory of an instance. */
typedef struct gpu_schedule_memory {
  uint32_t n_arenas;
  bool apart;     /* host and device have separate arenas even if they share memory */
  bool too_large; /* one arena for both would exceed the largest allocation of the device */
  bool shared;    /* one arena for the host and the only device */
  uint32_t *late; /* values whose host memory differs from step to step */
  uint32_t n_late;
  size_t host_bytes, host_scratch, constant_bytes;
} gpu_schedule_memory;

/* What a step does, and what each action waits for. */
typedef struct gpu_schedule_work {
  gpu_action *actions;
  uint32_t n_actions, actions_room;
  uint32_t *waits;  /* actions */
  uint32_t n_waits, waits_room;
  gpu_order *order; /* while the schedule is made */
} gpu_schedule_work;

/* The values that enter and leave a step. */
typedef struct gpu_schedule_io {
  gpu_out *outs;
  uint32_t n_outs, n_feeds;
  gpu_binding *bindings;
  uint32_t n_bindings, bindings_room;
} gpu_schedule_io;

/* Numbers of one step, for the report. */
typedef struct gpu_schedule_counts {
  uint32_t n_device, n_host, n_launches, n_copies;
} gpu_schedule_counts;

/* A schedule in the list of its executable. */
typedef struct gpu_schedule_entry {
  gpu_schedule *next; /* guarded by the executable's mu, as are users, state and idle */
  size_t n_users;     /* steps, and the list */
  int state;          /* 0: being made, 1: ready, -1: failed */
  struct gpu_instance *idle;
  int64_t *key;
  size_t n_key;
} gpu_schedule_entry;

struct gpu_schedule {
  gpu_schedule_entry entry;
  tn_executable *executable;
  uint32_t segment;
  /* What is made; from here on it is cleared before it is made again. */
  int64_t *dims;           /* of values that earlier segments made */
  gpu_site *sites;         /* by device of the session */
  uint32_t n_sites;
  gpu_schedule_memory memory;
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
  gpu_schedule_work work;
  uint32_t *sequence;      /* items, in the order in which they are gone through */
  gpu_schedule_io io;
  gpu_dynamic *dynamics;
  uint32_t n_dynamic;
  uint32_t n_operands;     /* pointers to views, of all host items */
  uint32_t max_outputs;    /* of an item */
  bool part;               /* a part: the kit runs the rest of the plan, and owns the memory of inputs and outputs */
  bool possible;           /* the device could run some of the nodes */
  bool looks;              /* launches after the last check may find invalid elements */
  gpu_schedule_counts counts;
};

/* Makes what gpu_schedule_take found missing. */
tn_status gpu_schedule_complete(gpu_schedule *s, const gpu_values *values, tn_error *err);
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
/* arena.c: offsets of the blocks; needs the schedule's order, and frees it. */
tn_status gpu_arenas(gpu_schedule *s, tn_error *err);
/* faults.c: where the host checks for invalid elements that kernels found. */
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
/* Outputs that a device makes stay in its memory. */
static inline bool gpu_outputs_stay(const gpu_schedule *s)
{
  return !s->part && (s->executable->placed || s->executable->session->settings.fetch_device);
}
static inline bool gpu_reads(const gpu_item *item, uint32_t i) { return (item->reads[i / 32] >> i % 32 & 1) != 0; }
#endif
