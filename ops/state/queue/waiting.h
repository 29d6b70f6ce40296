/* SPDX-License-Identifier: Apache-2.0 */
/* Places where steps wait for one another: queues, staging areas, barriers.
 *
 * A place has a lock and lines of attempts. A thread that changes the place serves attempts from
 * the front of the lines, under the lock. Served attempts are woken when the lock is released.
 * Kernels submit attempts, and resume them when they are called again. */
#ifndef TN_OPS_STATE_QUEUE_WAITING_H
#define TN_OPS_STATE_QUEUE_WAITING_H

#include <core/base/threads/lock.h>
#include <ops/kernel/resources.h>

typedef struct tn__attempt tn__attempt;

/* Attempts in order of arrival. Guarded by the place's lock. */
typedef struct tn__line {
  tn__attempt *first, *last;
} tn__line;

typedef struct tn__waitable {
  tn__mutex mu;
  tn__line served; /* to be woken when mu is released */
} tn__waitable;

/* Guarded by the place's lock until it is served; then it belongs to the kernel again.
 * leave  reverts what the attempt did so far, and serves others. Called under the lock if its step is cancelled, after
 *        the attempt was removed from its line. */
struct tn__attempt {
  tn__attempt *next, *previous;
  tn__line *line; /* the line it waits in; NULL = none */
  tn__waitable *place;
  tn_resource *held; /* a reference: a place with attempts is not destroyed */
  void (*leave)(tn__attempt *attempt);
  tn_wait_token *token; /* NULL: the kernel does not wait, so nothing to wake */
  tn_status status;     /* set when served */
  bool served;
};

/* `name` is a string literal, for lock checking. */
void tn__waitable_init(tn__waitable *place, const char *name);
void tn__waitable_fini(tn__waitable *place); /* no attempts may be left */
void tn__waitable_lock(tn__waitable *place);
/* Also wakes served attempts. The place may be freed before it returns, unless the caller holds a
 * reference. */
void tn__waitable_unlock(tn__waitable *place);

/* ---- under the lock ---- */

void tn__line_join(tn__line *line, tn__attempt *attempt); /* appends */
/* Ends the attempt with this status: removes it from its line, if any, and wakes it when the lock
 * is released. */
void tn__attempt_serve(tn__attempt *attempt, tn_status status);

/* ---- no lock held ---- */

/* Takes a reference to the resource. */
void tn__attempt_init(tn__attempt *attempt, tn__waitable *place, tn_resource *resource,
                      void (*leave)(tn__attempt *attempt));
/* Releases that reference. The caller owns the memory. */
void tn__attempt_fini(tn__attempt *attempt);
/* A kind of attempt.
 * size     bytes of its struct, which begins with a tn__attempt.
 * attempt  under the lock: if it is first in line and can be served completely, serves it at once and then others;
 *          otherwise returns false and changes nothing.
 * enter    under the lock: joins a line, and serves attempts that can be served.
 * finish   without the lock: sets the outputs and returns the kernel's status, once the attempt was served.
 * release  without the lock: frees its resources, but not the struct. */
typedef struct tn__attempt_kind {
  size_t size;
  bool (*attempt)(tn__attempt *attempt);
  void (*enter)(tn__attempt *attempt);
  tn_status (*finish)(tn_kernel_ctx *ctx, tn__attempt *attempt);
  void (*release)(tn__attempt *attempt);
} tn__attempt_kind;

/* For compute: submits an attempt on the caller's stack, and takes it over. TN_PENDING if it has to
 * wait. */
tn_status tn__attempt_submit(tn_kernel_ctx *ctx, tn__attempt *attempt, const tn__attempt_kind *kind);
/* For compute, if ctx->resume is set. */
tn_status tn__attempt_resume(tn_kernel_ctx *ctx, const tn__attempt_kind *kind);

/* The cancel callback for tn_kernel_wait: ends the attempt with TN_CANCELLED unless it was served
 * before. */
void tn__attempt_cancel(tn__attempt *attempt);

#endif
