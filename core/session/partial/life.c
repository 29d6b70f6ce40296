/* SPDX-License-Identifier: Apache-2.0 */
/* Partial runs: how they begin, are found, take turns and end. */
#include <core/kit/workers.h>
#include <core/session/metadata/metadata.h>
#include <core/session/partial/partial.h>
#include <core/session/step.h>

static _Atomic uint64_t last_id; /* unique in the process, so that an id of another session is detected (S-PR-10) */

/* ---- turns ---- */

/* Functions with _locked need the session's mu. */
static void begin_turn_locked(tn__partial_run *r)
{
  r->busy = true;
  r->who = pthread_self();
}

/* Whether the step has to end and its waiting kernels were not cancelled yet. */
static bool has_to_stop(const tn__partial_run *r)
{
  return r->begun && r->step.status == TN_PENDING && !r->step.env.failed && tn__step_stop(&r->step.step) != TN__GO_ON;
}

/* Cancels what waits in the step. The caller has the turn. */
static void stop(tn__partial_run *r)
{
  tn__account *around = tn__account_now;
  tn__account_now = r->session->on.account;
  tn__partial_cancel(&r->step);
  tn__account_now = around;
}

/* ---- the end ---- */

/* Removes the run from the list of those that the session's close has to cancel. */
static void leave_untold_locked(tn__partial_run *r)
{
  if (r->prev != NULL) r->prev->next = r->next;
  else if (r->session->untold_partials == r) r->session->untold_partials = r->next;
  if (r->next != NULL) r->next->prev = r->prev;
  r->prev = r->next = NULL;
}

static void unlist_locked(tn__partial_run *r)
{
  if (!r->listed) return;
  tn__map_remove(&r->session->partials, (const char *)&r->id, sizeof r->id);
  leave_untold_locked(r);
  r->listed = false;
}

/* Fills in the metadata of a run that is over (S-PR-32). Drops the lock meanwhile. */
static void tell_metadata_locked(tn__partial_run *r)
{
  tn_session *s = r->session;
  tn__trace *trace = r->step.env.trace;
  tn_run_metadata *m = r->options.metadata;
  if (m == NULL || !r->begun) return;
  r->step.env.trace = NULL; /* kernels that stop waiting later are not recorded */
  r->options.metadata = NULL;
  r->telling = true;
  tn__mutex_unlock(&s->mu);
  tn__metadata_end(m, s, r->entry->signature->plan, &r->step.step, &r->options, trace);
  tn__mutex_lock(&s->mu);
  r->telling = false;
}

/* A cancellation that came during the turn is carried out here, before the turn is given up. The
 * loop, because another may come while the lock is not held. */
void tn__partial_leave(tn__partial_run *r)
{
  tn_session *s = r->session;
  r->step.step.deadline_ns = 0;
  tn__mutex_lock(&s->mu);
  while (has_to_stop(r)) { /* a thread that cancels the run after this finds the turn free */
    tn__mutex_unlock(&s->mu);
    stop(r);
    tn__mutex_lock(&s->mu);
  }
  if (r->over) {
    tell_metadata_locked(r);
    unlist_locked(r);
  }
  r->busy = false;
  tn__cond_broadcast(&r->turn);
  tn__mutex_unlock(&s->mu);
}

/* False: the run was over already. */
static bool finish_locked(tn__partial_run *r)
{
  if (r->over) return false;
  r->over = true;
  r->refs--; /* the map's; the caller has another */
  return true;
}

void tn__partial_finish(tn__partial_run *r)
{
  tn__mutex_lock(&r->session->mu);
  finish_locked(r);
  tn__mutex_unlock(&r->session->mu);
}

/* Waits until no other thread writes the metadata. A call of another thread ends first, since the run is cancelled; but
 * a kernel of the run itself, on a thread that helps, cannot wait for that: then the metadata stays empty. */
static void await_metadata_locked(tn__partial_run *r)
{
  bool inside = tn__worker_number() != 0 || (r->busy && pthread_equal(r->who, pthread_self()));
  while (r->telling || (!inside && r->busy && r->options.metadata != NULL)) tn__cond_wait(&r->turn, &r->session->mu);
  if (inside && r->busy) r->options.metadata = NULL;
}

/* A thread that has the turn already must not wait for itself: a kernel of the run may call the
 * session. */
tn_status tn__partial_take_turn(tn__partial_run *r, tn_error *err)
{
  tn_session *s = r->session;
  int64_t deadline = tn__step_deadline(r->timeout_ms);
  tn_status st = TN_OK;
  tn__mutex_lock(&s->mu);
  if (r->busy && pthread_equal(r->who, pthread_self()))
    st = tn_error_set(err, TN_FAILED_PRECONDITION, "partial run %#llx is called from inside of itself",
                      (unsigned long long)r->id);
  while (st == TN_OK && r->busy) {
    if (deadline == 0) tn__cond_wait(&r->turn, &s->mu);
    else if (!tn__cond_wait_until(&r->turn, &s->mu, deadline) && r->busy)
      st = tn_error_set(err, TN_DEADLINE_EXCEEDED,
                        "partial run %#llx: another call did not end within the time limit of this one",
                        (unsigned long long)r->id);
  }
  if (st == TN_OK && r->over) st = tn__partial_refuse(r->id, "it has ended", err);
  if (st == TN_OK) begin_turn_locked(r);
  tn__mutex_unlock(&s->mu);
  if (st == TN_OK) r->step.step.deadline_ns = deadline;
  return st;
}

/* Makes a thread check whether the run has to stop. The thread with the turn checks before it gives the turn up; if the
 * turn is free, this thread takes it. Needs no reference: a caller has one, and destroy waits for a callback. */
static void look(void *user)
{
  tn__partial_run *r = user;
  tn__mutex_lock(&r->session->mu);
  bool mine = !r->busy;
  if (mine) begin_turn_locked(r);
  tn__mutex_unlock(&r->session->mu);
  if (mine) tn__partial_leave(r);
}

/* ---- the map ---- */

tn_status tn__partial_find(tn_session *s, tn_partial_run run, tn__partial_run **out, tn_error *err)
{
  tn__mutex_lock(&s->mu);
  tn__partial_run *r = tn__map_get(&s->partials, (const char *)&run.id, sizeof run.id);
  if (r != NULL && r->refs == 0)
    r = NULL; /* it is being destroyed, and a callback of its cancellation still has the turn */
  if (r != NULL) r->refs++;
  *out = r;
  tn__mutex_unlock(&s->mu);
  return r != NULL ? TN_OK : tn__partial_refuse(run.id, "the session has no such run, or it has ended", err);
}

/* Adds the run to the map, which takes a reference, and to the list for the session's close. */
static tn_status list(tn__partial_run *r, tn_error *err)
{
  tn__mutex_lock(&r->session->mu);
  tn_session *s = r->session;
  bool listed = r->listed = tn__map_put(&s->partials, (const char *)&r->id, sizeof r->id, r, NULL);
  r->refs += listed;
  if (listed) {
    r->next = s->untold_partials;
    if (r->next != NULL) r->next->prev = r;
    s->untold_partials = r;
  }
  tn__mutex_unlock(&s->mu);
  return listed ? TN_OK : tn__no_memory(err, "partial run", 0);
}

/* ---- beginning and ending ---- */

/* Without the lock. No call has a reference, and the run is not on the map, or the session is being
 * freed. */
static void destroy(tn__partial_run *r)
{
  if (r->key != 0) tn_cancellation_deregister(r->cancellation, r->key); /* the callback has ended */
  tn__account *around = tn__account_now;
  tn__account_now = r->session->on.account;
  if (r->begun) tn__partial_end(&r->step);
  tn__trace_destroy(r->step.env.trace);
  tn__account_now = around;
  tn_cancellation_unref(r->cancellation);
  size_t n_feeds = r->entry->signature->n_feeds + 1, n_fetches = r->entry->signature->n_fetches + 1;
  if (r->feeds != NULL) tn__free(r->feeds, n_feeds * sizeof *r->feeds);
  if (r->fed != NULL) tn__free(r->fed, n_feeds + n_fetches);
  if (r->first != NULL) tn__free(r->first, n_fetches * sizeof *r->first);
  tn__entry_unref(r->entry);
  tn__cond_fini(&r->turn);
  tn__free(r, sizeof *r);
}

void tn__partial_unref(tn__partial_run *r)
{
  tn__mutex_lock(&r->session->mu);
  bool last = --r->refs == 0;
  tn__mutex_unlock(&r->session->mu);
  if (last) destroy(r);
}

/* The run's own token: a child of the program's, so the run can be cancelled without cancelling
 * that. `look` is called when it is cancelled. */
static tn_status watch_cancellation(tn__partial_run *r, tn_cancellation *parent, tn_error *err)
{
  tn_status st = tn_cancellation_create(parent, &r->cancellation, err);
  if (st != TN_OK) return st;
  r->key = tn_cancellation_register(r->cancellation, look, r);
  return r->key != 0 || tn_cancellation_is_cancelled(r->cancellation) ? TN_OK : tn__no_memory(err, "partial run", 0);
}

/* The arrays that depend on the signature. */
static tn_status list_endpoints(tn__partial_run *r, tn_error *err)
{
  const tn__entry_point *e = r->entry;
  r->n_unfed = e->signature->n_feeds;
  r->n_unfetched = e->signature->n_fetches;
  r->feeds = tn__alloc_array(r->n_unfed + 1, sizeof *r->feeds);
  r->fed = tn__zalloc(r->n_unfed + r->n_unfetched + 2);
  r->first = tn__alloc_array(r->n_unfetched + 1, sizeof *r->first);
  if (r->feeds == NULL || r->fed == NULL || r->first == NULL)
    return tn__no_memory(err, "partial run", r->n_unfed + r->n_unfetched);
  r->fetched = r->fed + r->n_unfed + 1;
  for (size_t i = 0; i < e->n_feeds; i++) r->feeds[e->feed_map[i]] = e->feeds[i];
  return TN_OK;
}

/* The runtime's workers that help with the run. */
static tn__pool_client *helpers(tn__partial_run *r)
{
  const tn_session *s = r->session;
  int32_t pool = r->options.inter_op_pool;
  return pool < 0 || s->on.slots->workers == NULL ? NULL
                                                  : tn__kit_workers_client(tn__session_base_workers(&s->on, pool));
}

/* Begins the step; nothing runs yet. */
static tn_status begin_step(tn__partial_run *r, tn_error *err)
{
  tn_session *s = r->session;
  tn__step_env env = { .containers = s->on.containers, .mu = &s->mu, .sleepers = &s->sleepers, .account = s->on.account,
                       .pool = r->options.inter_op_pool, .client = helpers(r) };
  const tn_step step = { .closed = &s->closed, .cancellation = r->cancellation,
                         .deadline_ns = tn__step_deadline(r->timeout_ms) };
  if (r->options.metadata != NULL) tn__metadata_begin(r->options.metadata, &r->options, &env);
  r->begun = true;
  return tn__partial_begin(&r->step, r->entry->signature->plan, &step, &env, err);
}

tn_status tn__partial_open(tn_session *session, tn__entry_point *entry, const tn_run_options *options,
                           tn__partial_run **out, tn_error *err)
{
  tn__partial_run *r = *out = tn__zalloc(sizeof *r);
  if (r == NULL) {
    tn__entry_unref(entry);
    return tn__no_memory(err, "partial run", sizeof *r);
  }
  r->session = session;
  r->entry = entry;
  r->refs = 1;
  r->id = atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
  tn__run_options_copy(&r->options, options);
  r->timeout_ms = r->options.timeout_ms > 0 ? r->options.timeout_ms : session->on.timeout_ms;
  tn__cond_init(&r->turn);
  begin_turn_locked(r); /* no other thread knows the run yet */
  tn_status st = list_endpoints(r, err);
  if (st == TN_OK) st = watch_cancellation(r, r->options.cancellation, err);
  if (st == TN_OK) st = begin_step(r, err);
  if (st == TN_OK) st = list(r, err);
  if (st != TN_OK) r->over = true; /* no other thread knows the run */
  return st;
}

/* Order: first `over`, so that no call begins; then the token, which ends a call in progress; then
 * the metadata. */
tn_status tn__partial_end_early(tn__partial_run *r, tn_error *err)
{
  tn_session *s = r->session;
  tn__mutex_lock(&s->mu);
  bool first = finish_locked(r);
  tn__mutex_unlock(&s->mu);
  tn_cancellation_cancel(r->cancellation); /* a call in progress ends; the last thread to leave frees the run */
  look(r);                                 /* the token may have been cancelled before */
  tn__mutex_lock(&s->mu);
  await_metadata_locked(r);
  tn__mutex_unlock(&s->mu);
  return first ? TN_OK : tn__partial_refuse(r->id, "it has ended", err);
}

/* ---- the session's end ---- */

/* A reference to a run that was not cancelled yet, which leaves the list; NULL: none is left. */
static tn__partial_run *next_untold(tn_session *s)
{
  tn__mutex_lock(&s->mu);
  tn__partial_run *r = s->untold_partials;
  if (r != NULL) {
    leave_untold_locked(r);
    r->refs++;
  }
  tn__mutex_unlock(&s->mu);
  return r;
}

void tn__partials_tell(tn_session *s)
{
  for (tn__partial_run *r; (r = next_untold(s)) != NULL;) {
    tn_cancellation_cancel(r->cancellation);
    tn__partial_unref(r);
  }
}

void tn__partials_fini(tn_session *s)
{
  size_t place = 0;
  for (tn__map_entry *e; (e = tn__map_next(&s->partials, &place)) != NULL;) destroy(e->value); /* no call is left */
  tn__map_fini(&s->partials);
}
