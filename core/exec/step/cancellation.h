/* SPDX-License-Identifier: Apache-2.0 */
/* A cancellation: what a caller, or the session, uses to end steps. */
#ifndef TN_CORE_EXEC_STEP_CANCELLATION_H
#define TN_CORE_EXEC_STEP_CANCELLATION_H

#include <core/base/threads/lock.h>
#include <core/base/threads/stop.h>
#include <tenon/session.h>

/* Its protocol is described in cancel.c. */
struct tn_cancellation {
  _Atomic uint32_t refs;
  _Atomic int64_t cancelled; /* when, on the monotonic clock; 0 = not. Set under mu, once. tn__stop points here */
  tn__mutex mu;
  tn__cond ended; /* signalled when a callback has returned */
  struct tn__cancel_callback *callbacks; /* guarded by mu, as are the next three */
  uint64_t next_key;
  uint64_t running; /* key of the callback that runs, 0 = none */
  pthread_t runner; /* the thread that cancels; valid once cancelled */
  tn_cancellation *parent; /* a reference; NULL = none */
  uint64_t parent_key;     /* of the callback registered with the parent; 0 = none */
  const struct tn__folders *folders; /* replace those of the session in steps of this call; borrowed; NULL = none */
};

/* The cancellation that a stop made by tn__step_limits points into; NULL = none. Borrowed. */
static inline tn_cancellation *tn__stop_cancellation(const tn__stop *stop)
{
  if (stop->cancelled == NULL) return NULL;
  return (tn_cancellation *)(uintptr_t)((const char *)stop->cancelled - offsetof(tn_cancellation, cancelled));
}

#endif
