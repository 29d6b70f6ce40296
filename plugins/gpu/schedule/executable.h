/* SPDX-License-Identifier: Apache-2.0 */
/* Data shared by all schedules of a plan, and the values of a step. */
#ifndef GPU_SCHEDULE_EXECUTABLE_H
#define GPU_SCHEDULE_EXECUTABLE_H

#include "device/base.h"
#include "session/session.h"
#include <pthread.h>
#include <stdatomic.h>

struct gpu_instance;
struct gpu_schedule;

/* A part of the plan whose shapes follow from its inputs. */
typedef struct gpu_segment {
  uint32_t begin, end; /* instructions */
  const uint32_t *entries;
  uint32_t n_entries;
  uint32_t *outputs; /* outputs of the step that it makes */
  uint32_t n_outputs;
} gpu_segment;

struct tn_executable {
  const tn_plan *plan;
  tn_executable *kit;
  tn_runtime_session *session;
  void (*instances_free)(struct gpu_instance *first); /* frees the idle instances of a schedule */
  bool straight;           /* steps run schedules; otherwise the kit runs all steps, and the fields below are empty */
  _Atomic bool hopeless;   /* no device can run any of the nodes */
  bool placed;             /* prepared for a device, where all its outputs are stored, whichever side computed them */
  uint32_t placed_at;      /* the device's number in the session */
  uint32_t n_values, n_outputs, n_segments;
  gpu_segment *segments;
  uint32_t *feeds;         /* value of each input of the step; GPU_NONE: not read */
  uint32_t *made_in;       /* by value: segment */
  uint32_t *read_in;       /* by value: the last segment that reads it from outside */
  uint32_t *computed_from; /* by value, a bit: an instruction makes it */
  bool *gives_shapes;      /* by value: shapes follow from its elements */
  bool *crosses;           /* by value: a later segment than its own reads it */
  pthread_mutex_t mu;
  pthread_cond_t made;     /* signalled when a schedule is made, or failed */
  struct gpu_schedule *schedules; /* most recently used first */
  size_t n_schedules;
  struct gpu_values *idle; /* not in use by a step */
};

static inline bool gpu_is_computed(const tn_executable *e, uint32_t v)
{
  return (e->computed_from[v / 32] >> v % 32 & 1) != 0;
}

/* The plan's values of a step: feeds, and outputs of segments that later segments read. */
typedef struct gpu_values {
  struct gpu_values *next; /* in the list of idle ones; guarded by the executable's mu */
  int64_t *key;            /* room for keys of schedules */
  size_t key_room;
  tn_tensor **tensors; /* by value */
  tn_tensor **feeds;   /* by input */
  size_t n_feeds;
  struct gpu_schedule **used; /* by segment: they own the shapes of values that were released */
  tn_view *views;      /* by value, for layouts; NULL with one segment. dtype 0: no value */
} gpu_values;

/* Reads the plan of a straight executable, whose `plan` and `session` are set. On failure, too, fini frees
 * what it made. */
tn_status gpu_executable_read(tn_executable *e, tn_error *err);
void gpu_executable_fini(tn_executable *e);

#endif
