/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of the functions that the nodes of a plan call. A function is compiled at its first call, once for all nodes
 * that mean it with the same attributes: the plan of a signature has a table of them, which the plans in it share. So a
 * function that calls itself is one plan, and a chain in which each calls the next one twice has as many plans as
 * functions. */
#ifndef TN_CORE_PLAN_CALLEES_H
#define TN_CORE_PLAN_CALLEES_H

#include <core/plan/plan.h>

typedef struct tn__callee {
  struct tn__callee *next; /* in the table, which owns it */
  tn_plan *plan;           /* a reference */
  const char *name;        /* of the function; in the plan's graph */
  uint32_t n_inputs, n_outputs;
  uint32_t n_fetches;      /* of the plan: outputs that are one value are fetched once */
  const uint8_t *input_dtypes, *output_dtypes;
  const uint32_t *fetches; /* of each output */
  bool in_order;           /* output i is fetch i */
  size_t block_bytes;
} tn__callee;

typedef struct tn__callees tn__callees;

/* NULL without memory. */
tn__callees *tn__callees_create(void);
void tn__callees_free(tn__callees *callees); /* NULL allowed */

/* What an instruction called so far, by function. */
typedef struct tn__instr_callees {
  uint32_t n;
  _Atomic(const tn__callee *) items[];
} tn__instr_callees;
void tn__instr_callees_free(tn__instr_callees *callees); /* NULL allowed */

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
