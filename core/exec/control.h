/* SPDX-License-Identifier: Apache-2.0 */
/* Plans with control flow: the order of their segments, and the conditions under which they run. */
#ifndef TN_CORE_EXEC_CONTROL_H
#define TN_CORE_EXEC_CONTROL_H

#include <core/exec/step/run_state.h>

/* control.c: runs all segments of a plan whose order or conditions depend on values. TN_PENDING: an
 * inner or a partial run waits, and is to be called again. */
tn_status tn__run_controlled(tn__run *run);
/* Before a new run: no segment has run, and no context is decided. */
void tn__run_controlled_reset(tn__run *run);

/* context.c. The state of a context, and of a segment, in a workspace. 0 is the state before the
 * run. */
enum { TN__UNDECIDED = 0, TN__LIVE, TN__DEAD };
enum { TN__STATE_NEW = 0, TN__STATE_WAITING, TN__STATE_DONE, TN__STATE_SKIPPED };
#define TN__NO_SCALAR 2 /* a predicate in the workspace that is not a scalar */
#define TN__FAULT (-1)  /* a state: a predicate is not a scalar, and the error says which */
/* Decides the context as far as is possible now: TN__UNDECIDED, TN__LIVE, TN__DEAD or TN__FAULT. */
int tn__context_state(tn__run *run, uint32_t context);
/* Allows undecided contexts to be checked again. Within a pass each is checked once. */
void tn__contexts_look_again(tn__run *run);
bool tn__run_waits(const tn__run *run); /* whether some segment has begun, and waits */
bool tn__segment_has_run(const tn__run *run, uint32_t number);

#endif
