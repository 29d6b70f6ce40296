/* SPDX-License-Identifier: Apache-2.0 */
/* States of stateful nodes' kernels, which a session keeps: a node has one state in all signatures that need it, also
 * in one that was discarded and is compiled again (S-EXE-20). */
#ifndef TN_CORE_PLAN_STATES_H
#define TN_CORE_PLAN_STATES_H

#include <core/base/map.h>
#include <core/base/threads/lock.h>
#include <core/graph/graph_internal.h>
#include <stdatomic.h>

typedef struct tn__kernel_states {
  tn__mutex mu;
  tn__map by_node;              /* from a node and a kernel to a state; guarded by mu */
  struct tn__kept_state *first; /* list of all, which owns them; guarded by mu */
  _Atomic(tn_graph *) graph; /* the session's, borrowed. Only its nodes have kept states: those of other graphs (of
                              * functions, of passes) live only as long as their plan */
} tn__kernel_states;

void tn__kernel_states_init(tn__kernel_states *states);
/* Destroys all states. No plan that was compiled with them may exist any more. */
void tn__kernel_states_fini(tn__kernel_states *states);
/* Whether the state of this node's kernel is to be kept; `states` may be NULL. */
bool tn__kernel_states_want(const tn__kernel_states *states, const tn_operation *op, const tn_kernel_def *def);
/* Stores the kept state, borrowed, in *state; false if there is none. Thread-safe. */
bool tn__kernel_states_find(tn__kernel_states *states, const tn_operation *op, const tn_kernel_def *def, void **state);
/* Takes over *state. If two threads have made one, the second is destroyed, and both get the first in *state. False if
 * memory is exhausted: *state is destroyed. Thread-safe. */
bool tn__kernel_states_keep(tn__kernel_states *states, const tn_operation *op, const tn_kernel_def *def, void **state);

#endif
