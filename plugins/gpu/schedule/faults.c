/* SPDX-License-Identifier: Apache-2.0 */
/* Plans where the host checks for invalid elements that kernels found (step/fault.c): before items with
 * effects, and after waits. */
#include "schedule/schedule.h"

#define HAS_EFFECT (TN_TRAIT_STATEFUL | TN_TRAIT_MAY_WAIT | TN_TRAIT_FUNCTION_CALL)

void gpu_faults_plan(gpu_schedule *s)
{
  for (uint32_t i = 0; i < s->work.n_actions; i++) {
    gpu_action *a = &s->work.actions[i];
    if (a->what == GPU_DO_CALL && s->calls[a->id].launch->explain != NULL)
      s->sites[s->lanes[a->lane].site].may_fault = s->looks = true;
    bool waits = a->what == GPU_DO_ENTER || (a->what == GPU_DO_READ && a->waits);
    bool acts = a->what == GPU_DO_HOST && (s->items[a->id].in.traits & HAS_EFFECT) != 0;
    if (!s->looks || (!waits && !acts)) continue;
    a->looks = true;
    s->looks = false;
  }
}
