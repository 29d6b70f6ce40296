/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of the functions that the nodes of a plan call. A function is compiled at its first call, once for all nodes
 * that mean it with the same attributes: the plan of a signature has a table of them, which the plans in it share. So a
 * function that calls itself is one plan, and a chain in which each calls the next one twice has as many plans as
 * functions. */
#ifndef TN_CORE_PLAN_CALLEE_TABLE_H
#define TN_CORE_PLAN_CALLEE_TABLE_H

#include <core/base/map.h>
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

typedef struct tn__callees {
  tn__mutex mu;
  tn__map by_key;    /* to tn__callee; guarded by mu */
  tn__callee *first; /* all of them; guarded by mu */
} tn__callees;

/* NULL without memory. */
tn__callees *tn__callees_create(void);
void tn__callees_free(tn__callees *callees); /* NULL allowed */
void tn__callee_free(tn__callee *callee);    /* one that no table has; NULL allowed */
/* NULL: it is not there. */
const tn__callee *tn__callees_find(tn__callees *callees, const tn__text *key);
/* Enters it, or frees it and returns the one that another thread entered meanwhile. NULL without memory. The key is at
 * its end. */
const tn__callee *tn__callees_enter(tn__callees *callees, tn__callee *mine, size_t key_size);

/* What an instruction called so far, by function. */
typedef struct tn__instr_callees {
  uint32_t n;
  _Atomic(const tn__callee *) items[];
} tn__instr_callees;
static inline size_t tn__instr_callees_bytes(uint32_t n)
{
  return sizeof(tn__instr_callees) + n * sizeof(_Atomic(const tn__callee *));
}
/* That of an instruction, made when it has none; NULL without memory. */
tn__instr_callees *tn__instr_callees_of(tn__plan_instr *instr);
void tn__instr_callees_free(tn__instr_callees *callees); /* NULL allowed */

#endif
