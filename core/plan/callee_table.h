/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of the functions that the nodes of a plan call. A function is compiled at its first call, once for all nodes
 * that call it with the same attributes: the plan of a signature has a table of them, which all plans inside it share.
 * A recursive function is thus one plan, and a chain in which each function calls the next one twice has as many plans
 * as functions. */
#ifndef TN_CORE_PLAN_CALLEE_TABLE_H
#define TN_CORE_PLAN_CALLEE_TABLE_H

#include <core/base/map.h>
#include <core/plan/plan.h>

/* A compiled function. Immutable once it is in the table; owned by it and valid as long as the table. Struct, arrays
 * and key are one block. */
typedef struct tn__callee {
  struct tn__callee *next; /* in the table; guarded by its mu */
  tn_plan *plan;           /* owned reference */
  const char *name;        /* of the function; borrowed from the plan's graph */
  uint32_t n_inputs, n_outputs;
  uint32_t n_fetches;      /* of the plan: outputs that are the same value are fetched once */
  const uint8_t *input_dtypes, *output_dtypes;
  const uint32_t *fetches; /* by output: its fetch */
  bool in_order;           /* output i is fetch i */
  size_t block_bytes;      /* size of the block */
} tn__callee;

typedef struct tn__callees {
  tn__mutex mu;
  tn__map by_key;    /* from tn__function_key to tn__callee; guarded by mu */
  tn__callee *first; /* list of all; guarded by mu */
} tn__callees;

/* NULL if memory is exhausted. */
tn__callees *tn__callees_create(void);
void tn__callees_destroy(tn__callees *callees); /* NULL allowed */
void tn__callee_destroy(tn__callee *callee);    /* one that is in no table; NULL allowed */
/* Thread-safe. NULL if the function has not been compiled. */
const tn__callee *tn__callees_find(tn__callees *callees, const tn__text *key);
/* Takes over `mine` and enters it; or, if another thread has entered the function meanwhile, frees `mine` and returns
 * that one. NULL if memory is exhausted; `mine` is freed. Its key, of key_size bytes, must be at the end of its block.
 * Thread-safe. */
const tn__callee *tn__callees_enter(tn__callees *callees, tn__callee *mine, size_t key_size);

/* The functions that an instruction has called so far, by their index. Lets later calls skip the table and its lock. */
typedef struct tn__instr_callees {
  uint32_t n;
  _Atomic(const tn__callee *) items[];
} tn__instr_callees;
static inline size_t tn__instr_callees_bytes(uint32_t n)
{
  return sizeof(tn__instr_callees) + n * sizeof(_Atomic(const tn__callee *));
}
/* Those of an instruction, created at first use; NULL if memory is exhausted. Thread-safe. */
tn__instr_callees *tn__instr_callees_of(tn__plan_instr *instr);
void tn__instr_callees_destroy(tn__instr_callees *callees); /* NULL allowed */

#endif
