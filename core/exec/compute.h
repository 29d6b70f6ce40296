/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of kernels. */
#ifndef TN_CORE_EXEC_COMPUTE_H
#define TN_CORE_EXEC_COMPUTE_H

#include <core/exec/step/run_state.h>
#include <core/layout/layout.h>

/* tape.c: calls a plugin's kernel, and records which one while the call lasts, for reports of a
 * crash. */
tn_status tn__guest_compute(tn__call *call, const tn__layout *layout);
static inline tn_status tn__call_compute(tn__call *call, const tn__layout *layout)
{
  const tn__tape *t = call->tape;
  return __builtin_expect((t->flags & TN_TAPE_GUEST) == 0, 1) ? t->compute(&call->ctx)
                                                              : tn__guest_compute(call, layout);
}

#endif
