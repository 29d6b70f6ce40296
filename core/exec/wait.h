/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting: tokens of kernels, and the sleep of steps. */
#ifndef TN_CORE_EXEC_WAIT_H
#define TN_CORE_EXEC_WAIT_H

#include <core/exec/step.h>

/* Steps of a session that sleep, so that its close can wake them. */
typedef struct tn__sleepers {
  tn__mutex mu;
  struct tn__sleeper *first; /* guarded by mu */
} tn__sleepers;

struct tn__pending;

/* Whether what the token stands for has happened; then the token is gone. */
bool tn__wait_take(struct tn__pending *pending);
void tn__wait_leave(struct tn__pending *pending); /* the call has ended; NULL token allowed */
/* Until some token is woken, after `seen` of them; TN_CANCELLED, TN_DEADLINE_EXCEEDED. */
uint64_t tn__wakes(const tn_step *step);
tn_status tn__sleep(const tn_step *step, uint64_t seen, tn_error *err);
/* Asks everything in the step that waits to come back. */
void tn__cancel_waits(const tn_step *step);
void tn__sleeper_unref(struct tn__sleeper *sleeper);
void tn__sleepers_init(tn__sleepers *sleepers);
void tn__sleepers_fini(tn__sleepers *sleepers);
void tn__sleepers_wake(tn__sleepers *sleepers);

#endif
