/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of functions: compiled at their first call. */
#ifndef TN_CORE_COMPILE_CALLEES_H
#define TN_CORE_COMPILE_CALLEES_H

#include <core/plan/callee_table.h>

/* Function k of an instruction, as tn__function_instantiate counts them; compiled when it is not there yet. */
tn_status tn__plan_callee_make(tn_plan *plan, tn__plan_instr *instr, uint32_t k, const tn__callee **out, tn_error *err);
static inline tn_status tn__plan_callee(tn_plan *plan, tn__plan_instr *instr, uint32_t k, const tn__callee **out,
                                        tn_error *err)
{
  tn__instr_callees *known = atomic_load_explicit(&instr->callees, memory_order_acquire);
  *out = known == NULL || k >= known->n ? NULL : atomic_load_explicit(&known->items[k], memory_order_acquire);
  return __builtin_expect(*out != NULL, 1) ? TN_OK : tn__plan_callee_make(plan, instr, k, out, err);
}

#endif
