/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels of stateful nodes made of themselves, kept for a session: a node is one and the same in all signatures
 * that need it, and in one that was given up and is compiled again (S-EXE-20). */
#ifndef TN_CORE_PLAN_STATES_H
#define TN_CORE_PLAN_STATES_H

#include <core/base/lock.h>
#include <core/base/map.h>
#include <core/graph/graph_internal.h>
#include <stdatomic.h>

typedef struct tn__kernel_states {
  tn__mutex mu;
  tn__map by_node; /* guarded by mu */
  struct tn__kept_state *first; /* all of them; guarded by mu */
  _Atomic(tn_graph *) graph; /* borrowed: nodes of others (of functions, of passes) live only as long as their plan */
} tn__kernel_states;

void tn__kernel_states_init(tn__kernel_states *states);
/* When no plan is left that was compiled with it. */
void tn__kernel_states_fini(tn__kernel_states *states);
/* Whether the state of this node's kernel is kept; states may be NULL. */
bool tn__kernel_states_want(const tn__kernel_states *states, const tn_operation *op, const tn_kernel_def *def);
bool tn__kernel_states_find(tn__kernel_states *states, const tn_operation *op, const tn_kernel_def *def, void **state);
/* Takes over *state. Of two threads that made one, both get the first one's. False without memory: *state is
 * destroyed. */
bool tn__kernel_states_keep(tn__kernel_states *states, const tn_operation *op, const tn_kernel_def *def, void **state);

#endif
