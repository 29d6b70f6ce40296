/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of layouts that a runtime runs instead of the executor, for example on a device. The kit fills these structs
 * (core/kit/offload.c); the tape reads them. */
#ifndef TN_CORE_EXEC_OFFLOAD_H
#define TN_CORE_EXEC_OFFLOAD_H

#include <core/exec/run.h>

/* Calls [first, last) of a tape. */
typedef struct tn__part {
  uint32_t first, last;
  void *handle; /* NULL: the executor runs them */
  uint32_t n_inputs, n_outputs;
  uint32_t operands; /* in tn__offloaded.slots: of inputs, then of outputs */
  tn_kit_part said;
} tn__part;

/* Of one executable. References: the executable, and each tn__offloaded. */
typedef struct tn__offload {
  _Atomic uint32_t refs;
  tn_kit_offload calls;
  tn__mutex mu;
  struct tn__offloaded *first; /* one for each layout; guarded by mu, as is closed */
  bool closed;                 /* the executable is released, and all handles are */
  /* Offers the parts of the instance's layout to the runtime, unless they were offered before. */
  tn_status (*offer)(tn__run *run, tn__instance *instance);
  tn_status (*run)(tn__run *run, tn__instance *instance, const tn__part *part);
  void (*close)(struct tn__offload *offload); /* when the executable is released */
} tn__offload;

/* The parts of one layout, made when they are offered. Immutable except for the links, and for the handles when they
 * are released. */
typedef struct tn__offloaded {
  tn__offload *offload;            /* a reference */
  struct tn__offloaded *next, *prev; /* guarded by offload->mu */
  tn_plan_layout *shapes;
  uint32_t *slots;
  uint32_t n_slots;
  size_t slots_bytes, block_bytes;
  bool any; /* the runtime took some */
  uint32_t n_parts;
  tn__part parts[];
} tn__offloaded;

static inline bool tn__offload_takes(const tn__run *run, const tn__instance *instance)
{
  return run->offload != NULL && instance->offloaded != NULL && instance->offloaded->offload == run->offload;
}

#endif
