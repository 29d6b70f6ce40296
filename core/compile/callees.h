/* SPDX-License-Identifier: Apache-2.0 */
/* Functions called by plans: each is compiled at its first call. */
#ifndef TN_CORE_COMPILE_CALLEES_H
#define TN_CORE_COMPILE_CALLEES_H

#include <core/plan/callee_table.h>

/* Function k of an instruction, in the order of tn__function_instantiate. Compiled by tn__plan_callee_compile if it is
 * not known yet. *out is borrowed and is valid as long as the plan. Thread-safe; takes no lock if the instruction has
 * called the function before. */
tn_status tn__plan_callee_compile(tn_plan *plan, tn__plan_instr *instr, uint32_t k, const tn__callee **out,
                                  tn_error *err);
static inline tn_status tn__plan_callee(tn_plan *plan, tn__plan_instr *instr, uint32_t k, const tn__callee **out,
                                        tn_error *err)
{
  tn__instr_callees *known = atomic_load_explicit(&instr->callees, memory_order_acquire);
  *out = known == NULL || k >= known->n ? NULL : atomic_load_explicit(&known->items[k], memory_order_acquire);
  return __builtin_expect(*out != NULL, 1) ? TN_OK : tn__plan_callee_compile(plan, instr, k, out, err);
}

#endif
