/* SPDX-License-Identifier: Apache-2.0 */
/* Workspaces: the memory of one step.
 *
 * A step takes a workspace: an arena, and for each segment a list of instances, which are layouts
 * with addresses. Most addresses stay valid from one step to the next; each step binds only those
 * that change: entries (feeds, values of earlier segments) and the memory of outputs.
 *
 * Unused workspaces are kept in plan->idle. A workspace taken from there belongs to the step until
 * it is put back. */
#ifndef TN_CORE_EXEC_STEP_WORKSPACE_H
#define TN_CORE_EXEC_STEP_WORKSPACE_H

#include <core/layout/layout.h>

#define TN__MAX_INSTANCES 8 /* of one segment in a workspace */

/* A layout with addresses: the views that its kernels receive. One workspace owns it. The struct,
 * views, operands and heap are one allocation. */
typedef struct tn__instance {
  struct tn__instance *next; /* in the list of its segment */
  tn__layout *layout; /* a reference */
  const char *arena;  /* the arena that its views point into; rebound when the workspace has another one */
  tn_view *views;     /* by slot */
  tn_view **operands; /* as layout->operands */
  tn_tensor **heap;   /* by slot: references, NULL outside of a step; NULL if the layout has no heap values */
  size_t block_bytes; /* of this allocation */
  struct tn__jobs *jobs; /* owned; for a layout with tasks (jobs.h), NULL until its first run by tasks */
  struct tn__offloaded *offloaded; /* of the layout or its base, borrowed; NULL = the tape runs all calls */
  tn_view **part_views; /* owned; of the offloaded parts: inputs, then outputs, part after part */
  size_t part_views_bytes;
  bool offered;         /* its parts were offered to the runtime, which may have declined them */
} tn__instance;

/* A released tensor whose memory the next tensor that fits may reuse. */
typedef struct tn__spare {
  tn_tensor *tensor; /* the only reference; its elements are plain bytes */
  size_t room;       /* bytes that elements may take */
  uint32_t since;    /* workspace->step when it was released */
} tn__spare;

/* The address of an offset in the arena. Without arena memory the base is NULL; the sum is of integers, since NULL + 0
 * is undefined in C. */
static inline void *tn__arena_at(const tn__instance *instance, size_t offset)
{
  return (void *)((uintptr_t)instance->arena + offset);
}

/* The address of values without elements. Kernels may do pointer arithmetic on it; on NULL that is
 * undefined. */
extern const char tn__empty_data[TN_ALIGN];
static inline void *tn__non_null(void *data) { return data != NULL ? data : (void *)(uintptr_t)tn__empty_data; }

/* Points a slot, and all slots that share its memory, at `data`. */
static inline void tn__bind_data(tn__instance *instance, uint32_t slot, void *data, tn_buffer *buffer)
{
  const tn__slot *slots = instance->layout->slots;
  data = tn__non_null(data);
  for (uint32_t s = slot; s != TN__NONE; s = slots[s].next_alias) {
    instance->views[s].data = data;
    instance->views[s].buffer = buffer;
  }
}

/* The memory of one step. One step at a time uses it, so it needs no lock, except for the spares
 * while tasks of the step run concurrently. Segments run one after the other and share the arena.
 *
 * The struct, the arrays of control flow, held, entries and instances are one allocation. Its size
 * depends on the plan alone. */
struct tn__workspace {
  uint32_t generation; /* of the plan's kernels; a workspace of an old generation is freed instead of kept */
  uint32_t step;       /* number of steps that have used it */
  uint32_t place;      /* in plan->idle, to which it returns */
  uint32_t n_small;    /* consecutive checks that found the arena much too large */
  size_t used;         /* bytes: the largest arena that a step needed since the last check */
  uint8_t *segment_states; /* by segment: TN__STATE_...; only in a plan with control flow, as are the next four */
  uint8_t *context_states; /* by context: TN__UNDECIDED, ... */
  uint32_t *readers_left;  /* by held value, as plan->held_readers: segments that have not run yet */
  uint8_t *predicates;     /* of branches: 0, 1 or TN__NO_SCALAR */
  struct tn__pending **pending; /* by segment that may wait, kept for the next step; NULL = none yet */
  char *arena;         /* owned, aligned to TN_ALIGN; NULL = none yet */
  size_t arena_bytes;
  tn__account *account; /* charged for the arena, a reference; NULL = none */
  tn__spare *spares;   /* smallest first; guarded by *guard unless that is NULL */
  size_t n_spares, spare_room;
  tn__mutex *guard;    /* of the spares while several threads use the workspace; NULL = one thread does */
  tn_tensor **held;    /* by tn__plan_value.held: references, for values that outlive their segment; NULL = no value
                        * at present, or its memory is elsewhere */
  tn__entry *entries;  /* scratch for one segment's entries */
  tn_resource **_Atomic resources; /* by instruction: the resource that its kernel used last; NULL = none so far.
                                    * Tasks of a step may create the list concurrently (resources.c) */
  size_t block_bytes;  /* of this allocation */
  tn__instance *instances[]; /* by segment: lists, most recently used first */
};

/* workspace.c. An idle workspace of the plan, or a new one; NULL without memory. Any thread. */
tn__workspace *tn__workspace_take(tn_plan *plan, tn_error *err);
/* Returns it to the plan, or frees it if the plan's kernels were replaced. The step must have
 * released its values. */
void tn__workspace_put(tn_plan *plan, tn__workspace *workspace);
/* Allocates a larger arena; the contents of the old one are lost. in_use: a waiting call will write
 * into the arena, so the old one is kept if this fails. */
tn_status tn__workspace_reserve(tn__workspace *workspace, size_t bytes, bool in_use, tn_error *err);

/* pending.c. NULL allowed. */
void tn__pending_destroy(struct tn__pending *pending);

/* instance.c: finds or makes the instance for these entries and moves it to the front of its
 * segment's list. A new one may evict the least recently used. */
tn_status tn__instance_find(tn_plan *plan, tn__workspace *workspace, uint32_t segment, const tn__entry *entries,
                            tn_error *err);
/* Points the views of arena values into the workspace's arena. */
void tn__instance_bind_arena(tn__instance *instance, const tn__workspace *workspace);
void tn__instance_destroy(tn__instance *instance);

/* spare.c: a tensor for the step's own use; it reuses a spare if one fits. The caller owns the
 * reference. */
tn_status tn__spare_tensor(tn__workspace *workspace, tn_dtype dtype, const int64_t *dims, int32_t rank, int64_t count,
                           size_t bytes, tn_tensor **out, tn_error *err);
/* Releases a reference, and keeps the memory as a spare if it was the last one. NULL allowed. */
void tn__spare_give(tn__workspace *workspace, tn_tensor *tensor);
/* The same for the tensor in *place, which becomes NULL. */
static inline void tn__spare_give_from(tn__workspace *workspace, tn_tensor **place)
{
  tn_tensor *t = *place;
  *place = NULL;
  tn__spare_give(workspace, t);
}
/* Frees all spares, because the session has reached its memory limit. */
void tn__spare_drop(tn__workspace *workspace);
/* Frees the spares that no recent step has reused. */
void tn__spare_prune(tn__workspace *workspace);

#endif
