/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting: the tokens of kernels that wait, and the sleep of a step in which no call can continue. */
#ifndef TN_CORE_EXEC_STEP_WAIT_H
#define TN_CORE_EXEC_STEP_WAIT_H

#include <core/exec/step/sleepers.h>
#include <tenon/kit.h>

struct tn__pending;

/* True if the call's token was woken; the token is then freed, and the call may resume. The step's
 * own thread only, as are the functions below. */
bool tn__wait_take(struct tn__pending *pending);
/* The call has ended: gives up its token, if it has one that was not taken. */
void tn__wait_leave(struct tn__pending *pending);
/* The number of wake-ups in the step so far. To sleep without losing one: read it, try all calls,
 * and pass it to tn__sleep. */
uint64_t tn__wakes(const tn_step *step);
/* Sleeps until that number differs from `seen`. Returns TN_CANCELLED or TN_DEADLINE_EXCEEDED, with
 * the error set, if the step is stopped first; a step that has failed only waits for wake-ups. */
tn_status tn__sleep(const tn_step *step, uint64_t seen, tn_error *err);
/* Calls the cancel function of each token in the step that is not woken, once. The call then
 * resumes as soon as its token is woken. */
void tn__cancel_waits(const tn_step *step);
void tn__sleeper_unref(struct tn__sleeper *sleeper); /* NULL allowed */

#endif
