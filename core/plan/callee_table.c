/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the functions that a plan, and all plans inside it, have called so far. */
#include <core/plan/callee_table.h>

tn__callees *tn__callees_create(void)
{
  tn__callees *c = tn__zalloc(sizeof *c);
  if (c == NULL) return NULL;
  tn__mutex_init(&c->mu, "functions of a plan", TN_RANK_PLAN);
  tn__map_init(&c->by_key);
  return c;
}

/* The key is after the last array of the block. */
static const char *key_of(const tn__callee *c) { return (const char *)c->input_dtypes + c->n_inputs; }

const tn__callee *tn__callees_find(tn__callees *table, const tn__text *key)
{
  tn__mutex_lock(&table->mu);
  const tn__callee *c = tn__map_get(&table->by_key, key->data, key->size);
  tn__mutex_unlock(&table->mu);
  return c;
}

/* If two threads compiled the same function, the second result is discarded. */
const tn__callee *tn__callees_enter(tn__callees *table, tn__callee *mine, size_t key_size)
{
  tn__mutex_lock(&table->mu);
  const tn__callee *c = tn__map_get(&table->by_key, key_of(mine), key_size);
  bool kept = c == NULL && tn__map_put(&table->by_key, key_of(mine), key_size, mine, NULL);
  if (kept) {
    mine->next = table->first;
    table->first = mine;
    c = mine;
  }
  tn__mutex_unlock(&table->mu);
  if (!kept) tn__callee_destroy(mine);
  return c;
}

tn__instr_callees *tn__instr_callees_of(tn__plan_instr *instr)
{
  tn__instr_callees *there = atomic_load_explicit(&instr->callees, memory_order_acquire);
  if (there != NULL) return there;
  uint32_t n = 2 * tn_operation_n_functions(instr->op); /* and their gradients */
  tn__instr_callees *mine = tn__zalloc(tn__instr_callees_bytes(n));
  if (mine == NULL) return NULL;
  mine->n = n;
  if (atomic_compare_exchange_strong(&instr->callees, &there, mine)) return mine;
  tn__instr_callees_destroy(mine);
  return there;
}
