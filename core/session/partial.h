/* SPDX-License-Identifier: Apache-2.0 */
/* A partial run as its session has it.
 *
 * Life: a session's map leads from ids to its runs. The map, until the run is over, and each call hold a reference
 * (`refs`, guarded by the session's lock); the thread that gives up the last one destroys the run, without a lock.
 *
 * Turns: one thread at a time has the run's turn (`busy`) and may use the step; others wait for theirs. Canceling (by the
 * token, a release, the session's close) needs the turn, too: it takes the turn when the turn is free, and otherwise
 * the thread that has the turn does the canceling before it gives the turn up.
 *
 * End: once a run is `over` it takes no further call. The thread that then has the turn, or gets it next, fills in the
 * metadata and takes the run off the map. A run is on the map until its metadata is filled in, so a program that is told
 * that the run has ended may free the metadata. */
#ifndef TN_CORE_SESSION_PARTIAL_H
#define TN_CORE_SESSION_PARTIAL_H

#include <core/exec/partial.h>
#include <core/session/entry_point.h>

/* Of a feed or a fetch. */
enum { TN__OPEN, TN__USED, TN__IN_THIS_CALL };

typedef struct tn__partial_run {
  tn_session *session;
  uint64_t id;
  uint32_t refs;              /* guarded by session->mu, as all up to `turn` */
  bool listed;                /* in the session's map */
  bool over;                  /* takes no further call */
  bool telling;               /* the thread with the turn writes the metadata */
  struct tn__partial_run *prev, *next; /* runs that were not told of the session's close */
  bool busy;                  /* a thread has the turn */
  pthread_t who;              /* the thread that has it */
  tn__cond turn;
  tn__entry_point *entry;
  tn_run_options options;     /* its cancellation is borrowed for setup; the metadata until the run has ended, then NULL */
  int64_t timeout_ms;         /* of each call */
  tn_cancellation *cancellation; /* a child of the token that the program gave */
  uint64_t key;                  /* there */
  tn_output *feeds;           /* by feed of the signature, in its order */
  uint8_t *fed, *fetched;     /* by feed and fetch of the signature; of whoever has the turn, as all below */
  uint32_t *first;            /* by fetch: its first position in the call */
  size_t n_unfed, n_unfetched;
  bool begun;
  tn__partial step;
} tn__partial_run;

/* Listed, and the caller's turn. *out is the caller's also after a failure: tn__partial_leave it. Takes entry in any case. */
tn_status tn__partial_open(tn_session *session, tn__entry_point *entry, const tn_run_options *options,
                           tn__partial_run **out, tn_error *err);
/* The open run of an id: TN_INVALID_ARGUMENT when there is none. A reference. */
tn_status tn__partial_find(tn_session *session, tn_partial_run run, tn__partial_run **out, tn_error *err);
/* Waits for the caller's turn, within the time limit of a call. */
tn_status tn__partial_take_turn(tn__partial_run *r, tn_error *err);
/* The run takes no further call. With the turn. */
void tn__partial_finish(tn__partial_run *r);
/* Cancels the run. When this returns, its metadata is the program's. TN_INVALID_ARGUMENT: it has ended. */
tn_status tn__partial_end_early(tn__partial_run *r, tn_error *err);
/* Gives up the turn. */
void tn__partial_leave(tn__partial_run *r);
/* Gives up the reference. */
void tn__partial_unref(tn__partial_run *r);

static inline tn_status tn__partial_refuse(uint64_t id, const char *why, tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "partial run %#llx: %s", (unsigned long long)id, why);
}

#endif
