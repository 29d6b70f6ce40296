/* SPDX-License-Identifier: Apache-2.0 */
/* Queues, and what waits at them.
 *
 * Each element goes in and comes out by an attempt: to put elements in, to take some, or to close the queue, which waits
 * behind those who put in before. Attempts are served in order, takers first; one of many elements may be served in parts.
 * What is cancelled leaves no trace: elements that it put in are taken out, those that it took go back to their places. */
#ifndef TN_OPS_STATE_QUEUE_QUEUE_H
#define TN_OPS_STATE_QUEUE_QUEUE_H

#include <ops/state/queue/queue_spec.h>
#include <ops/state/queue/queue_store.h>
#include <ops/state/queue/waiting.h>

extern const tn_resource_class tn__queue_class; /* "Queue"; its objects are tn__queue */

/* All but spec and names is guarded by place.mu. */
typedef struct tn__queue {
  tn__waitable place;
  tn__queue_spec *spec; /* a reference */
  const char *what;     /* "queue", and what it is called, for messages */
  char *name;
  tn__queue_store store;
  tn__line putters, takers;
  uint64_t n_attempts, n_elements; /* ever */
  bool closed;
} tn__queue;

/* TN_RESOURCE_EXHAUSTED. */
tn_status tn__queue_create(tn__queue_spec *spec, const char *name, tn__queue **out, tn_error *err);
void tn__queue_destroy(void *queue);
/* The same for one inside of another object, which is a `what`. */
tn_status tn__queue_init(tn__queue *queue, tn__queue_spec *spec, const char *what, const char *name, tn_error *err);
void tn__queue_fini(tn__queue *queue);

typedef enum tn__queue_action { TN__QUEUE_PUT, TN__QUEUE_TAKE, TN__QUEUE_CLOSE } tn__queue_action;

/* How an attempt ended, for messages. */
typedef enum tn__queue_end {
  TN__QUEUE_DONE,
  TN__QUEUE_GONE,      /* cancelled with its step, as nobody else said why */
  TN__QUEUE_CLOSED,    /* put into a closed queue, or closed for the second time */
  TN__QUEUE_SHUT,      /* it waited when the queue was closed and what waited was cancelled */
  TN__QUEUE_TOO_FEW,   /* closed, with too few elements */
  TN__QUEUE_NO_MEMORY
} tn__queue_end;

/* base.status and `end` say how it ended.
 * list   put: the elements that are not in the queue yet, or were taken out again; take: those that it got so far.
 * asked  take: how many are wanted; with up_to fewer do when the queue is closed. Put: how many there were. */
typedef struct tn__queue_attempt {
  tn__attempt base;
  tn__queue *queue;
  tn__queue_action action;
  tn__queue_end end;
  bool up_to, many; /* many: for the kernel */
  int64_t asked, found; /* found: elements there were when it ended with TOO_FEW */
  uint64_t number;
  tn__queue_list list;
} tn__queue_attempt;

/* ---- no lock held ---- */

/* resource: that of the object which the queue is, or is part of. */
void tn__queue_attempt_init(tn__queue_attempt *attempt, tn__queue *queue, tn_resource *resource,
                            tn__queue_action action);
void tn__queue_attempt_fini(tn__attempt *attempt); /* frees what is on its list */
/* An attempt to take that ended well gives back what it got, since nobody wants that any more. */
void tn__queue_give_back(tn__queue_attempt *attempt);
int64_t tn__queue_size(tn__queue *queue);
bool tn__queue_is_closed(tn__queue *queue);
/* Closes it at once; attempts to put and to close that wait end with TN_CANCELLED. */
void tn__queue_shut(tn__queue *queue);

/* ---- under the lock ---- */

/* Parts of a tn__attempt_kind. */
bool tn__queue_attempt_now(tn__attempt *attempt);
void tn__queue_enter(tn__attempt *attempt);
/* Serves who can be served. */
void tn__queue_serve(tn__queue *queue);

#endif
