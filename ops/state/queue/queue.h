/* SPDX-License-Identifier: Apache-2.0 */
/* Queues and the attempts that wait for them.
 *
 * Elements are put in and taken out by attempts. There are attempts to put elements, to take
 * elements, and to close the queue; the last wait for earlier puts. Attempts are served in order,
 * takers first; an attempt with several elements may be served in parts. A cancelled attempt leaves
 * no trace: elements that it put in are removed, and elements that it took are returned to their
 * places. */
#ifndef TN_OPS_STATE_QUEUE_QUEUE_H
#define TN_OPS_STATE_QUEUE_QUEUE_H

#include <ops/state/queue/queue_spec.h>
#include <ops/state/queue/queue_store.h>
#include <ops/state/queue/waiting.h>

extern const tn_resource_class tn__queue_class; /* "Queue"; its objects are tn__queue */

/* Everything except spec and the names is guarded by place.mu. */
typedef struct tn__queue {
  tn__waitable place;
  tn__queue_spec *spec; /* a reference */
  const char *what;     /* "queue" or "barrier", and its name, for error messages */
  char *name;
  tn__queue_store store;
  tn__line putters, takers;
  uint64_t n_attempts, n_elements; /* total so far; for numbering */
  bool closed;
} tn__queue;

/* Fails with TN_RESOURCE_EXHAUSTED only. */
tn_status tn__queue_create(tn__queue_spec *spec, const char *name, tn__queue **out, tn_error *err);
void tn__queue_destroy(void *queue);
/* The same for a queue embedded in another object; `what` names the kind of object. */
tn_status tn__queue_init(tn__queue *queue, tn__queue_spec *spec, const char *what, const char *name, tn_error *err);
void tn__queue_fini(tn__queue *queue);

typedef enum tn__queue_action { TN__QUEUE_PUT, TN__QUEUE_TAKE, TN__QUEUE_CLOSE } tn__queue_action;

/* How an attempt ended, for messages. */
typedef enum tn__queue_end {
  TN__QUEUE_DONE,
  TN__QUEUE_GONE,      /* cancelled with its step; the default */
  TN__QUEUE_CLOSED,    /* put into a closed queue, or closed a second time */
  TN__QUEUE_SHUT,      /* was waiting when the queue was closed with pending attempts cancelled */
  TN__QUEUE_TOO_FEW,   /* closed, with too few elements */
  TN__QUEUE_NO_MEMORY
} tn__queue_end;

/* base.status and `end` are the result.
 * list   put: elements that are not in the queue yet, or were taken out again; take: elements obtained so far.
 * asked  take: number wanted; with up_to fewer suffice if the queue is closed. Put: number to put. */
typedef struct tn__queue_attempt {
  tn__attempt base;
  tn__queue *queue;
  tn__queue_action action;
  tn__queue_end end;
  bool up_to, many; /* many: used by the kernel */
  int64_t asked, found; /* found: elements in the queue when it ended with TOO_FEW */
  uint64_t number;
  tn__queue_list list;
} tn__queue_attempt;

/* ---- no lock held ---- */

/* `resource` is that of the object which is the queue, or contains it. */
void tn__queue_attempt_init(tn__queue_attempt *attempt, tn__queue *queue, tn_resource *resource,
                            tn__queue_action action);
void tn__queue_attempt_fini(tn__attempt *attempt); /* frees the elements in its list */
/* Returns the elements of a successful take to the queue, because its step no longer needs them. */
void tn__queue_give_back(tn__queue_attempt *attempt);
int64_t tn__queue_size(tn__queue *queue);
bool tn__queue_is_closed(tn__queue *queue);
/* Closes the queue immediately; pending attempts to put or close end with TN_CANCELLED. */
void tn__queue_shut(tn__queue *queue);

/* ---- under the lock ---- */

/* Functions of a tn__attempt_kind. */
bool tn__queue_attempt_now(tn__attempt *attempt);
void tn__queue_enter(tn__attempt *attempt);
/* Serves all attempts that can be served. */
void tn__queue_serve(tn__queue *queue);

#endif
