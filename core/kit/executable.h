/* SPDX-License-Identifier: Apache-2.0 */
/* An executable, which a runtime runs steps with. */
#ifndef TN_CORE_KIT_EXECUTABLE_H
#define TN_CORE_KIT_EXECUTABLE_H

#include <core/exec/step.h>

struct tn_executable {
  tn_plan *plan; /* a reference */
  uint32_t flags;
  tn_kit_scheduler scheduler; /* of TN__KIT_SCHEDULED, and */
  void (*schedule)(struct tn__jobs *jobs); /* how its tasks get to it (schedule.c) */
  struct tn__offload *offload; /* NULL = none */
};
#define TN__KIT_SCHEDULED 2 /* beside TN_KIT_INLINE and _POOL */

#endif
