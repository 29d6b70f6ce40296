/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of layouts that a runtime runs instead of the kit, as on a device: what was offered, and taken. */
#ifndef TN_CORE_EXEC_OFFLOAD_H
#define TN_CORE_EXEC_OFFLOAD_H

#include <core/exec/exec.h>

/* Of one executable. Counted: by the executable, and by what was asked of it for layouts. */
typedef struct tn__offload {
  _Atomic uint32_t refs;
  tn_kit_offload calls;
  tn__mutex mu;
  struct tn__offloaded *first; /* of layouts that are there; guarded by mu, as is closed */
  bool closed;                 /* the executable is gone: so are all handles */
} tn__offload;

/* Calls [first, last) of a tape. */
typedef struct tn__part {
  uint32_t first, last;
  void *handle; /* NULL: the kit runs them */
  uint32_t n_inputs, n_outputs;
  uint32_t operands; /* in tn__offloaded.slots: of inputs, then of outputs */
  tn_kit_part said;
} tn__part;

/* What the runtime has of one layout; never NULL once it was asked. Immutable but for the links, and the handles when all goes. */
typedef struct tn__offloaded {
  tn__offload *offload;            /* a reference */
  struct tn__offloaded *next, *prev; /* guarded by offload->mu */
  tn_plan_layout *shapes;
  uint32_t *slots;
  uint32_t n_slots;
  size_t slots_bytes, block_bytes;
  bool any; /* some were taken */
  uint32_t n_parts;
  tn__part parts[];
} tn__offloaded;

/* Parts of the instance's layout are offered, if they were not. */
tn_status tn__offload_offer(tn__run *run, tn__instance *instance);
tn_status tn__offload_run(tn__run *run, tn__instance *instance, const tn__part *part);
void tn__offload_forget(tn__instance *instance); /* the instance goes */
void tn__offload_close(tn__offload *offload);    /* the executable goes; NULL allowed */

static inline bool tn__offload_takes(const tn__run *run, const tn__instance *instance)
{
  return run->offload != NULL && instance->offloaded != NULL && instance->offloaded->offload == run->offload;
}

/* kit_layout.c: the one layout of its plan that is there, both borrowed; NULL without memory. */
tn_plan_layout *tn__kit_layout_alone(tn_plan *plan, tn__layout *layout);
void tn__kit_layout_alone_free(tn_plan_layout *layout); /* NULL allowed */
uint32_t *tn__kit_layout_ids(tn_plan_layout *layout, size_t n); /* that go with it; NULL without memory */

#endif
