/* SPDX-License-Identifier: Apache-2.0 */
/* States of kernels that a session keeps for its stateful nodes (states.h). */
#include <core/plan/states.h>

typedef struct tn__kept_state {
  const void *key[2]; /* the node and the kernel; the map borrows the array */
  const tn_kernel_def *def;
  void *state;
  struct tn__kept_state *next;
} kept_state;

static void destroy(const tn_kernel_def *def, void *state)
{
  if (state != NULL && def->destroy != NULL) def->destroy(state);
}

void tn__kernel_states_init(tn__kernel_states *states)
{
  tn__mutex_init(&states->mu, "states of kernels", TN_RANK_PLAN);
  tn__map_init(&states->by_node);
  states->first = NULL;
  atomic_init(&states->graph, NULL);
}

void tn__kernel_states_fini(tn__kernel_states *states)
{
  for (kept_state *k = states->first, *next; k != NULL; k = next) {
    next = k->next;
    destroy(k->def, k->state);
    tn__free(k, sizeof *k);
  }
  tn__map_fini(&states->by_node);
  tn__mutex_fini(&states->mu);
}

bool tn__kernel_states_want(const tn__kernel_states *states, const tn_operation *op, const tn_kernel_def *def)
{
  return states != NULL && def->create != NULL &&
         (tn__schema_def(tn_operation_schema(op))->traits & TN_TRAIT_STATEFUL) &&
         tn__operation_graph(op) == atomic_load_explicit(&states->graph, memory_order_acquire);
}

static kept_state *find(tn__kernel_states *states, const tn_operation *op, const tn_kernel_def *def)
{
  const void *key[2] = { op, def };
  tn__assert_held(&states->mu);
  return tn__map_get(&states->by_node, (const char *)key, sizeof key);
}

bool tn__kernel_states_find(tn__kernel_states *states, const tn_operation *op, const tn_kernel_def *def, void **state)
{
  tn__mutex_lock(&states->mu);
  const kept_state *k = find(states, op, def);
  if (k != NULL) *state = k->state;
  tn__mutex_unlock(&states->mu);
  return k != NULL;
}

bool tn__kernel_states_keep(tn__kernel_states *states, const tn_operation *op, const tn_kernel_def *def, void **state)
{
  void *unused = *state;
  kept_state *mine = tn__alloc(sizeof *mine);
  if (mine != NULL) *mine = (kept_state){ .key = { op, def }, .def = def, .state = *state };
  tn__mutex_lock(&states->mu);
  const kept_state *there = find(states, op, def);
  bool taken = there == NULL && mine != NULL &&
               tn__map_put(&states->by_node, (const char *)mine->key, sizeof mine->key, mine, NULL);
  if (taken) {
    mine->next = states->first;
    states->first = mine;
    there = mine;
  }
  *state = there == NULL ? NULL : there->state;
  tn__mutex_unlock(&states->mu);
  if (taken) return true;
  tn__free(mine, sizeof *mine);
  destroy(def, unused);
  return there != NULL;
}
