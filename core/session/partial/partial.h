/* SPDX-License-Identifier: Apache-2.0 */
/* The object of a partial run.
 *
 * Life: a session's map leads from ids to its runs. The map, until the run is over, and each call hold a reference
 * (`refs`, guarded by the session's lock); the thread that gives up the last one destroys the run, without a lock.
 *
 * Turns: one thread at a time has the run's turn (`busy`) and may use the step; others wait for theirs. Cancelling
 * (by the token, a release, the session's close) needs the turn too. If the turn is free, the cancelling thread
 * takes it. Otherwise the thread that has the turn cancels the step before it gives the turn up.
 *
 * End: once a run is `over` it takes no further call. The thread that then has the turn, or gets it next, fills in
 * the metadata and takes the run off the map. A run is on the map until its metadata is filled in, so a program
 * that is told that the run has ended may free the metadata. */
#ifndef TN_CORE_SESSION_PARTIAL_PARTIAL_H
#define TN_CORE_SESSION_PARTIAL_PARTIAL_H

#include <core/exec/partial.h>
#include <core/session/entry_point.h>

/* States of a feed or a fetch: not given or taken yet; by an earlier call; by the call that is
 * being checked. */
enum { TN__OPEN, TN__USED, TN__IN_THIS_CALL };

typedef struct tn__partial_run {
  tn_session *session;        /* borrowed: the session ends its runs before it is freed */
  uint64_t id;                /* unique in the process */
  uint32_t refs;              /* guarded by session->mu, as are all fields up to `turn` */
  bool listed;                /* in the session's map */
  bool over;                  /* takes no further call */
  bool telling;               /* the thread with the turn writes the metadata */
  struct tn__partial_run *prev, *next; /* runs that were not cancelled yet by the session's close */
  bool busy;                  /* a thread has the turn */
  pthread_t who;              /* the thread that has it */
  tn__cond turn;              /* signalled when a turn ends */
  tn__entry_point *entry;     /* a reference */
  tn_run_options options; /* its cancellation is borrowed for setup; the metadata until the run has ended, then NULL */
  int64_t timeout_ms;         /* of each call */
  tn_cancellation *cancellation; /* a child of the token that the program gave */
  uint64_t key;                  /* its registration there */
  tn_output *feeds;           /* by feed of the signature, in its order */
  /* Used by the thread with the turn only, as are all fields below: states by feed and fetch of the
   * signature. One allocation. */
  uint8_t *fed, *fetched;
  uint32_t *first;            /* by fetch: its first position in the call */
  size_t n_unfed, n_unfetched; /* feeds and fetches that no call has used yet */
  bool begun;                 /* `step` was initialised */
  tn__partial step;
} tn__partial_run;

/* Makes a run, adds it to the map, and gives the caller the turn. The caller calls tn__partial_leave on *out, also
 * after a failure. Takes over the reference to entry in any case. */
tn_status tn__partial_open(tn_session *session, tn__entry_point *entry, const tn_run_options *options,
                           tn__partial_run **out, tn_error *err);
/* The open run of an id, a reference. TN_INVALID_ARGUMENT if there is none. */
tn_status tn__partial_find(tn_session *session, tn_partial_run run, tn__partial_run **out, tn_error *err);
/* Waits for the caller's turn, within the time limit of a call. */
tn_status tn__partial_take_turn(tn__partial_run *r, tn_error *err);
/* The run takes no further call. The caller has the turn. */
void tn__partial_finish(tn__partial_run *r);
/* Cancels the run. When this returns, the program owns the metadata object. TN_INVALID_ARGUMENT: the run has ended. */
tn_status tn__partial_end_early(tn__partial_run *r, tn_error *err);
/* Gives up the turn. */
void tn__partial_leave(tn__partial_run *r);
/* Drops a reference. */
void tn__partial_unref(tn__partial_run *r);

static inline tn_status tn__partial_refuse(uint64_t id, const char *why, tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "partial run %#llx: %s", (unsigned long long)id, why);
}

#endif
