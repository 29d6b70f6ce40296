/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of layouts that a runtime runs instead of the executor, for example on a device. The kit
 * fills these structs (core/kit/offload.c); the tape reads them.
 *
 * Life: a layout's parts are freed with the layout. Their handles are released earlier if the
 * executable is: no step may run then, so the tape never sees a handle disappear. */
#ifndef TN_CORE_EXEC_STEP_OFFLOAD_H
#define TN_CORE_EXEC_STEP_OFFLOAD_H

#include <core/base/threads/lock.h>
#include <tenon/kit.h>

struct tn__instance;
struct tn__run;

/* Calls [first, last) of a tape. */
typedef struct tn__part {
  uint32_t first, last;
  void *handle; /* the runtime's; NULL: it declined the part, and the executor makes the calls */
  uint32_t n_inputs, n_outputs;
  uint32_t operands; /* in tn__offloaded.slots: of inputs, then of outputs */
  tn_kit_part said;  /* as the runtime sees the part; valid as long as the layout */
} tn__part;

/* The offload of one executable. Counted: the executable has a reference, and so has each
 * tn__offloaded. */
typedef struct tn__offload {
  _Atomic uint32_t refs;
  tn_kit_offload calls;        /* the runtime's functions */
  tn__mutex mu;
  struct tn__offloaded *first; /* one for each layout; guarded by mu, as is closed */
  bool closed;                 /* the executable is released, and all handles are */
  /* Offers the parts of the instance's layout to the runtime, unless they were offered before. */
  tn_status (*offer)(struct tn__run *run, struct tn__instance *instance);
  /* Runs a part that has a handle, with the views of the instance. */
  tn_status (*run)(struct tn__run *run, struct tn__instance *instance, const tn__part *part);
  void (*close)(struct tn__offload *offload); /* when the executable is released */
} tn__offload;

/* The parts of one layout, made when they are offered. Immutable except for the links, and for the handles when they
 * are released. */
typedef struct tn__offloaded {
  tn__offload *offload;            /* a reference */
  struct tn__offloaded *next, *prev; /* guarded by offload->mu */
  tn_plan_layout *shapes; /* owned: the layout as the runtime sees it */
  uint32_t *slots;        /* owned: operands of the parts, one part after the other */
  uint32_t n_slots;
  size_t slots_bytes, block_bytes; /* of these two allocations */
  bool any; /* the runtime took at least one part */
  uint32_t n_parts;
  tn__part parts[]; /* in the order of the tape, without overlap */
} tn__offloaded;

#endif
