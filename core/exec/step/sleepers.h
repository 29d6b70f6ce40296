/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a session in which every kernel waits (wait.c), as the session keeps them. */
#ifndef TN_CORE_EXEC_STEP_SLEEPERS_H
#define TN_CORE_EXEC_STEP_SLEEPERS_H

#include <core/base/threads/lock.h>

/* Steps of a session that sleep, so that its close can wake them. */
typedef struct tn__sleepers {
  tn__mutex mu;
  struct tn__sleeper *first; /* guarded by mu */
} tn__sleepers;

void tn__sleepers_init(tn__sleepers *sleepers);
void tn__sleepers_fini(tn__sleepers *sleepers);
/* Makes all sleeping steps check their stop conditions. Any thread. */
void tn__sleepers_wake(tn__sleepers *sleepers);

#endif
