/* SPDX-License-Identifier: Apache-2.0 */
/* The executor: steps, workspaces, the tape loop.
 *
 * A step takes a workspace: an arena, and for each segment instances, which are layouts with addresses. What differs from
 * step to step is bound again: entries (feeds, values of earlier segments) and the memory of outputs. Workspaces that no
 * step uses wait at plan->idle. */
#ifndef TN_CORE_EXEC_EXEC_H
#define TN_CORE_EXEC_EXEC_H

#include <core/plan/layout.h>
#include <core/resource/container.h>
#include <tenon/session.h>

#define TN__MAX_INSTANCES 8 /* of one segment in a workspace */

struct tn_cancellation {
  _Atomic uint32_t refs;
  _Atomic int64_t cancelled; /* when, on the monotonic clock; 0 = not */
  tn__mutex mu; /* callbacks, children, the parent link */
  tn__cond ended;
  struct tn__cancel_callback *callbacks; /* guarded by mu */
  uint64_t next_key;
  uint64_t running; /* key of the callback that runs, 0 = none */
  pthread_t runner;
  tn_cancellation *parent; /* a reference */
  uint64_t parent_key;
};

/* Why a step is to end. */
enum { TN__GO_ON = 0, TN__STOP_CLOSED, TN__STOP_CANCELLED, TN__STOP_DEADLINE };

/* What a step has of its session, and what is its own alone; shared by all that runs in it. */
typedef struct tn__step_env {
  tn__container_view *containers; /* NULL = none */
  tn__mutex *mu;                  /* of the session; guards own */
  tn__container *own;             /* of the step (S-RST-22), NULL = not asked for yet */
} tn__step_env;

struct tn_step {
  uint64_t id;
  tn_tensor *const *inputs;
  tn_tensor **outputs;      /* set by the runtime; those that the caller gave stand in `given` */
  tn_tensor *const *given;  /* NULL = none given */
  size_t n_inputs, n_outputs;
  const _Atomic int64_t *closed; /* when the session was, 0 = it is open; NULL = none */
  tn_cancellation *cancellation;  /* NULL = none */
  int64_t deadline_ns;            /* monotonic, 0 = none */
  tn__step_env *env;              /* NULL: outside of a session */
};

/* Of several reasons the first counts (S-CAN-07). */
static inline int tn__step_stop(const tn_step *step)
{
  int64_t closed = step->closed == NULL ? 0 : atomic_load_explicit(step->closed, memory_order_relaxed);
  int64_t cancelled =
      step->cancellation == NULL ? 0 : atomic_load_explicit(&step->cancellation->cancelled, memory_order_relaxed);
  if (closed == 0 && cancelled == 0)
    return step->deadline_ns != 0 && tn__now_ns() >= step->deadline_ns ? TN__STOP_DEADLINE : TN__GO_ON;
  int64_t first = closed == 0 || (cancelled != 0 && cancelled < closed) ? cancelled : closed;
  if (step->deadline_ns != 0 && step->deadline_ns < first) return TN__STOP_DEADLINE;
  return first == closed ? TN__STOP_CLOSED : TN__STOP_CANCELLED;
}
/* The status of a step that is stopped. */
tn_status tn__step_stopped(const tn_step *step, int why, tn_error *err);

/* A layout with addresses. */
typedef struct tn__instance {
  struct tn__instance *next;
  tn__layout *layout; /* a reference */
  const char *arena;  /* that its views point into */
  tn_view *views;     /* by slot */
  tn_view **operands; /* as layout->operands */
  tn_tensor **heap;   /* by slot, NULL when the layout has no heap values */
  size_t block_bytes; /* of this allocation */
} tn__instance;

/* Memory of a tensor that ended, for the next one that it fits. */
typedef struct tn__spare {
  tn_tensor *tensor; /* exclusive, plain bytes */
  size_t room;
  uint32_t since;    /* step of the workspace that gave it */
} tn__spare;

/* What one step works in: one step at a time, without a lock. Segments run one after the other and share the arena. */
struct tn__workspace {
  uint32_t generation; /* of the plan's kernels */
  uint32_t step;       /* counts */
  uint32_t place;      /* in plan->idle, where it goes back */
  uint32_t n_small;    /* looks in a row that found the arena much too large */
  size_t used;         /* most of the arena that a step needed since the last look */
  char *arena;
  size_t arena_bytes;
  tn__spare *spares;   /* smallest first */
  size_t n_spares, spare_room;
  tn_tensor **held;    /* memory of values that outlive their segment, by tn__plan_value.held; NULL = none, or elsewhere */
  tn__entry *entries;  /* of one segment */
  size_t block_bytes;
  tn__instance *instances[]; /* by segment: used last first */
};

/* Where an offset of the arena is. Without a byte needed there is no arena: numbers, since NULL + 0 is undefined in C. */
static inline void *tn__arena_at(const tn__instance *instance, size_t offset)
{
  return (void *)((uintptr_t)instance->arena + offset);
}

/* workspace.c */
/* NULL without memory. */
tn__workspace *tn__workspace_take(tn_plan *plan, tn_error *err);
void tn__workspace_put(tn_plan *plan, tn__workspace *workspace);
/* A larger arena: what the old one held is gone. */
tn_status tn__workspace_reserve(tn__workspace *workspace, size_t bytes, tn_error *err);

/* instance.c: the instance for these entries, in front of its segment's list. */
tn_status tn__instance_find(tn_plan *plan, tn__workspace *workspace, uint32_t segment, const tn__entry *entries,
                            tn_error *err);
/* Points what lies in the arena into the workspace's. */
void tn__instance_bind_arena(tn__instance *instance, const tn__workspace *workspace);
void tn__instance_free(tn__instance *instance);

/* spare.c: tensors of the step's own. They come from the spares when one fits. */
tn_status tn__spare_tensor(tn__workspace *workspace, tn_dtype dtype, const int64_t *dims, int32_t rank, int64_t count,
                           size_t bytes, tn_tensor **out, tn_error *err);
/* Gives a reference back; NULL allowed. */
void tn__spare_give(tn__workspace *workspace, tn_tensor *tensor);
/* Frees spares that no step took lately. */
void tn__spare_prune(tn__workspace *workspace);

/* One run of a plan for a step. */
typedef struct tn__run {
  tn_plan *plan;
  tn_step *step;
  tn__workspace *workspace;
  tn_error *err;
} tn__run;

/* What compute gets, with what stands behind it. */
typedef struct tn__call {
  tn_kernel_ctx ctx;
  tn__run *run;
  tn__instance *instance;
  const tn__tape *tape;
} tn__call;

tn_status tn__run_plan(tn_plan *plan, tn_step *step, tn_error *err);

/* Runs an operation by its kernel on the host (evaluate.c); outputs are NULL on failure, else the caller's. Any thread. */
tn_status tn__call_kernel(const tn__plan_kernel *kernel, const void *shape_state, tn_view *const *inputs,
                          uint32_t n_inputs, tn_view *const *outputs, uint32_t n_outputs, void *scratch, tn_error *err);
tn_status tn__evaluate(const tn_operation *op, tn_tensor *const *inputs, size_t n_inputs, tn_tensor **outputs,
                       size_t n_outputs, uint64_t max_bytes, tn_error *err);

/* outputs.c: memory for outputs of a segment before it runs, and what is copied or handed over at the end. */
tn_status tn__outputs_bind(tn__run *run, tn__instance *instance);
tn_status tn__outputs_finish(tn__run *run);
void tn__outputs_drop(tn__run *run); /* after an error */

/* View of a computed value, in the instance of its segment. */
static inline tn_view *tn__run_view(const tn__run *run, uint32_t value, uint32_t *slot, tn__instance **instance)
{
  const tn__plan_value *v = &run->plan->values[value];
  *instance = run->workspace->instances[v->segment];
  *slot = v->slot;
  return &(*instance)->views[v->slot];
}

/* Where values without elements lie for kernels: an address that can be added to, which NULL is not. */
extern const char tn__nowhere[TN_ALIGN];
static inline void *tn__somewhere(void *data) { return data != NULL ? data : (void *)(uintptr_t)tn__nowhere; }

/* Points a slot and all that share its memory at `data`. */
static inline void tn__bind_data(tn__instance *instance, uint32_t slot, void *data, tn_buffer *buffer)
{
  const tn__slot *slots = instance->layout->slots;
  data = tn__somewhere(data);
  for (uint32_t s = slot; s != TN__NONE; s = slots[s].next_alias) {
    instance->views[s].data = data;
    instance->views[s].buffer = buffer;
  }
}

struct tn_executable {
  tn_plan *plan; /* a reference */
};

#endif
