/* SPDX-License-Identifier: Apache-2.0 */
/* Places where steps wait for each other: queues, staging areas, barriers.
 *
 * A place has a lock and lines of attempts. Whoever changes the place serves attempts from the front of the lines, under the
 * lock; those that were served are woken when the lock is let go. Kernels submit attempts, and resume when they are called
 * again.
 */
#ifndef TN_OPS_STATE_QUEUE_WAITING_H
#define TN_OPS_STATE_QUEUE_WAITING_H

#include <core/base/lock.h>
#include <ops/kernel/resources.h>

typedef struct tn__attempt tn__attempt;

/* Attempts in order of arrival. Guarded by the place's lock. */
typedef struct tn__line {
  tn__attempt *first, *last;
} tn__line;

typedef struct tn__waitable {
  tn__mutex mu;
  tn__line served; /* to be woken when mu is let go */
} tn__waitable;

/* Guarded by the place's lock until it was served; then it is the kernel's again.
 * leave  takes back what the attempt did so far, and serves others; called under the lock, when its step is cancelled, after
 *        it was taken out of its line. */
struct tn__attempt {
  tn__attempt *next, *previous;
  tn__line *line; /* in which it waits, NULL = in none */
  tn__waitable *place;
  tn_resource *held; /* a reference: a place with attempts does not end */
  void (*leave)(tn__attempt *attempt);
  tn_wait_token *token; /* NULL: nobody is to be woken */
  tn_status status;     /* once it was served */
  bool served;
};

/* `name` is static text, for the checks of locks. */
void tn__waitable_init(tn__waitable *place, const char *name);
void tn__waitable_fini(tn__waitable *place); /* no attempt is left */
void tn__waitable_lock(tn__waitable *place);
/* Also wakes those that were served. The place may be gone when it returns, unless the caller holds it. */
void tn__waitable_unlock(tn__waitable *place);

/* ---- under the lock ---- */

void tn__line_join(tn__line *line, tn__attempt *attempt); /* at the end */
/* The attempt is over with this status: it leaves its line, if it is in one, and will be woken. */
void tn__attempt_serve(tn__attempt *attempt, tn_status status);

/* ---- no lock held ---- */

/* Takes a reference to the resource. */
void tn__attempt_init(tn__attempt *attempt, tn__waitable *place, tn_resource *resource,
                      void (*leave)(tn__attempt *attempt));
/* Gives it back; the memory is the caller's. */
void tn__attempt_fini(tn__attempt *attempt);
/* A kind of attempt.
 * size     bytes of its struct, which begins with a tn__attempt.
 * attempt  under the lock: does it at once and wholly, when that is possible and nobody is in front of it, and serves others
 *          then; false: nothing happened.
 * enter    under the lock: joins a line, and serves who can be served.
 * finish   no lock held: what the kernel returns, with its outputs, once the attempt was served.
 * release  no lock held: frees what it has, but not the struct. */
typedef struct tn__attempt_kind {
  size_t size;
  bool (*attempt)(tn__attempt *attempt);
  void (*enter)(tn__attempt *attempt);
  tn_status (*finish)(tn_kernel_ctx *ctx, tn__attempt *attempt);
  void (*release)(tn__attempt *attempt);
} tn__attempt_kind;

/* Compute: an attempt on the caller's stack, which is taken over. TN_PENDING: it has to wait. */
tn_status tn__attempt_submit(tn_kernel_ctx *ctx, tn__attempt *attempt, const tn__attempt_kind *kind);
/* Compute, when ctx->resume is set. */
tn_status tn__attempt_resume(tn_kernel_ctx *ctx, const tn__attempt_kind *kind);

/* Has the kernel wait: calls enter under the lock, which joins a line and serves who can be served, and leaves the attempt
 * at ctx->waiting. Returns TN_PENDING, or what tn_kernel_wait returned: enter was not called then. */
tn_status tn__attempt_wait(tn_kernel_ctx *ctx, tn__attempt *attempt, void (*enter)(tn__attempt *attempt));
/* What tn_kernel_wait's cancel does: the attempt ends with TN_CANCELLED unless it was served before. */
void tn__attempt_cancel(tn__attempt *attempt);

#endif
