/* SPDX-License-Identifier: Apache-2.0 */
/* Workspaces: what one step works in.
 *
 * A step takes a workspace: an arena, and for each segment instances, which are layouts with addresses. The step binds again what
 * differs from step to step: entries (feeds, values of earlier segments) and the memory of outputs. Workspaces that no step uses
 * wait at plan->idle. */
#ifndef TN_CORE_EXEC_WORKSPACE_H
#define TN_CORE_EXEC_WORKSPACE_H

#include <core/layout/layout.h>

#define TN__MAX_INSTANCES 8 /* of one segment in a workspace */

/* A layout with addresses. */
typedef struct tn__instance {
  struct tn__instance *next;
  tn__layout *layout; /* a reference */
  const char *arena;  /* that its views point into */
  tn_view *views;     /* by slot */
  tn_view **operands; /* as layout->operands */
  tn_tensor **heap;   /* by slot, NULL when the layout has no heap values */
  size_t block_bytes; /* of this allocation */
  struct tn__jobs *jobs; /* of a layout with tasks (tasks.h); NULL = none were run so far */
  struct tn__offloaded *offloaded; /* the layout's, or its base's; NULL = the tape has all of it */
  tn_view **part_views; /* of the parts that are offloaded: inputs, then outputs, one part after the other */
  size_t part_views_bytes;
  bool offered;         /* its parts were */
} tn__instance;

/* Memory of a tensor that ended, for the next one that it fits. */
typedef struct tn__spare {
  tn_tensor *tensor; /* exclusive, plain bytes */
  size_t room;
  uint32_t since;    /* step of the workspace that gave it */
} tn__spare;

/* Where an offset of the arena is. Without a byte needed there is no arena: numbers, since NULL + 0 is undefined in C. */
static inline void *tn__arena_at(const tn__instance *instance, size_t offset)
{
  return (void *)((uintptr_t)instance->arena + offset);
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

/* What one step works in: one step at a time, without a lock. Segments run one after the other and share the arena. */
struct tn__workspace {
  uint32_t generation; /* of the plan's kernels */
  uint32_t step;       /* counts */
  uint32_t place;      /* in plan->idle, where it goes back */
  uint32_t n_small;    /* looks in a row that found the arena much too large */
  size_t used;         /* most of the arena that a step needed since the last look */
  uint8_t *segment_states; /* of a plan with control flow, as contexts */
  uint8_t *context_states;
  uint32_t *readers_left;  /* as plan->held_readers: segments that did not have their turn */
  uint8_t *predicates;     /* of branches: 0, 1, or that it is no scalar */
  struct tn__pending **pending; /* by segment: of what may wait, kept for the next step; NULL = none yet */
  char *arena;
  size_t arena_bytes;
  tn__account *account; /* that the arena was charged to, a reference; NULL = none */
  tn__spare *spares;   /* smallest first */
  size_t n_spares, spare_room;
  tn__mutex *guard;    /* of the spares, while several threads work in it; NULL = there is one */
  tn_tensor **held;    /* memory of values that outlive their segment, by tn__plan_value.held; NULL = none, or elsewhere */
  tn__entry *entries;  /* of one segment */
  tn_resource **_Atomic resources; /* by instruction: what its kernel asked for last, remembered; NULL = nothing so far */
  size_t block_bytes;
  tn__instance *instances[]; /* by segment: used last first */
};

/* workspace.c */
/* NULL without memory. */
tn__workspace *tn__workspace_take(tn_plan *plan, tn_error *err);
void tn__workspace_put(tn_plan *plan, tn__workspace *workspace);
/* A larger arena: what the old one held is gone. in_use: a call that waits will write into its part of the arena, so there has
 * to be one after a failure, too. */
tn_status tn__workspace_reserve(tn__workspace *workspace, size_t bytes, bool in_use, tn_error *err);

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
/* The same for the tensor of a place, which is empty afterwards. */
static inline void tn__spare_give_from(tn__workspace *workspace, tn_tensor **place)
{
  tn_tensor *t = *place;
  *place = NULL;
  tn__spare_give(workspace, t);
}
/* Frees all of them: the session's limit of memory is near. */
void tn__spare_drop(tn__workspace *workspace);
/* Frees spares that no step took lately. */
void tn__spare_prune(tn__workspace *workspace);

#endif
