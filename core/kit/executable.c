/* SPDX-License-Identifier: Apache-2.0 */
/* Executables: a plan, and how its steps run: inline, or with the workers of a pool. Schedulers and
 * offloaded parts add to it (schedule.c, offload.c). */
#include <core/kit/executable.h>
#include <core/exec/step/offload.h>
#include <core/plan/plan.h>

tn_status tn_kit_prepare(const tn_plan *plan, uint32_t flags, tn_executable **out, tn_error *err)
{
  tn__error_reset(err);
  if (out == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_kit_prepare: out is NULL");
  *out = NULL;
  if (plan == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_kit_prepare: plan is NULL");
  if (flags != TN_KIT_INLINE && (flags & 0xff) != TN_KIT_POOL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_kit_prepare: unknown flags %#x", flags);
  tn_executable *e = tn__alloc(sizeof *e);
  if (e == NULL) return tn__no_memory(err, "executable", sizeof *e);
  *e = (tn_executable){ .plan = tn__plan_ref((tn_plan *)plan), .flags = flags };
  if (flags >> 8 > 1) tn__plan_set_threads(e->plan, flags >> 8);
  *out = e;
  return TN_OK;
}

/* No step of it may run. Its plan may live on, and with it the layouts whose parts the offload gave
 * handles to. */
void tn_kit_release(tn_executable *executable)
{
  if (executable == NULL) return;
  if (executable->offload != NULL) executable->offload->close(executable->offload);
  tn__plan_unref(executable->plan);
  tn__free(executable, sizeof *executable);
}
