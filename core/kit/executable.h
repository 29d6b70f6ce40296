/* SPDX-License-Identifier: Apache-2.0 */
/* An executable: a plan as a runtime has prepared it to run steps. */
#ifndef TN_CORE_KIT_EXECUTABLE_H
#define TN_CORE_KIT_EXECUTABLE_H

#include <tenon/kit.h>

struct tn__jobs;

/* Immutable once made, so concurrent steps share it. */
struct tn_executable {
  tn_plan *plan; /* a reference */
  uint32_t flags;
  tn_kit_scheduler scheduler; /* a copy of the runtime's; only with TN__KIT_SCHEDULED, as is the next field */
  void (*schedule)(struct tn__jobs *jobs); /* passes the tasks to the scheduler and waits (schedule.c) */
  struct tn__offload *offload; /* a reference, NULL = none */
};
#define TN__KIT_SCHEDULED 2 /* a value of flags, beside TN_KIT_INLINE and TN_KIT_POOL */

#endif
