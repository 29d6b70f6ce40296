/* SPDX-License-Identifier: Apache-2.0 */
/* Plans with control flow: the order of their segments, and the conditions under which they run. */
#ifndef TN_CORE_EXEC_CONTROL_H
#define TN_CORE_EXEC_CONTROL_H

#include <core/exec/run.h>

/* control.c: segments whose turn depends on values. TN_PENDING: an inner or a partial run waits, and is called
 * again. */
tn_status tn__run_controlled(tn__run *run);
void tn__run_controlled_reset(tn__run *run);

/* context.c. What a workspace knows of a context, and of a segment. */
enum { TN__UNDECIDED = 0, TN__LIVE, TN__DEAD };
enum { TN__STATE_NEW = 0, TN__STATE_WAITING, TN__STATE_DONE, TN__STATE_SKIPPED };
#define TN__NO_SCALAR 2 /* among the predicates of a workspace */
#define TN__FAULT (-1)  /* a predicate is no scalar: the error says which */
int tn__context_state(tn__run *run, uint32_t context);
/* Forgets which contexts are undecided: more may be known by now. */
void tn__contexts_look_again(tn__run *run);
bool tn__run_waits(const tn__run *run); /* whether some segment has begun, and waits */
bool tn__segment_has_run(const tn__run *run, uint32_t number);

#endif
