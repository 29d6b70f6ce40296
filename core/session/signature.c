/* SPDX-License-Identifier: Apache-2.0 */
/* The signatures of a session: each is compiled once, by one thread while others wait, and kept in
 * a bounded cache.
 *
 * One thread of a session compiles at a time (`compiling`), without holding mu. Threads that need
 * any new signature wait for it, then look in the cache again. Waiting ends when the call's own
 * limits are reached. */
#include <core/session/entry_point.h>
#include <core/exec/evaluate.h>

/* Compiles the signature of parsed names. Takes over p->key on success. */
static tn_status compile(tn_session *session, tn_graph *graph, tn__parsed_names *p, tn__signature **out, tn_error *err)
{
  tn__signature_spec spec =
      tn__spec_of(session, p->spec_feeds, p->n_feeds, p->spec_fetches, p->n_fetches, p->targets, p->n_targets);
  spec.partial = p->partial;
  spec.unsure = p->partial || tn__feeds_unsettle_shapes(graph, p->spec_feeds, p->n_feeds);
  *out = NULL;
  atomic_store_explicit(&session->states.graph, graph, memory_order_release);
  tn_status st = tn__placement_for(session, graph, p->spec_feeds, p->n_feeds, p->spec_fetches, p->n_fetches, p->targets,
                                   p->n_targets, err);
  if (st == TN_OK) st = tn__signature_compile(session, graph, &spec, out, err);
  if (st == TN_OK) st = tn__signature_assume(*out, &spec, err);
  if (st != TN_OK) {
    tn__signature_unref(*out);
    *out = NULL;
    return st;
  }
  (*out)->key = (char *)p->key; /* the signature owns the key now */
  (*out)->key_size = p->key_size;
  p->key = NULL;
  return TN_OK;
}

/* If there are too many signatures, takes the least recently used one out of the map. The caller releases it. */
static tn__signature *evict_signature_locked(tn_session *session)
{
  if (session->signatures.count <= session->on.max_signatures) return NULL;
  tn__signature *oldest = NULL;
  size_t place = 0;
  for (tn__map_entry *e; (e = tn__map_next(&session->signatures, &place)) != NULL;) {
    tn__signature *s = e->value;
    if (oldest == NULL || s->used < oldest->used) oldest = s;
  }
  tn__map_remove(&session->signatures, oldest->key, oldest->key_size);
  return oldest;
}

#define LOOK_NS 10000000 /* how often a waiting call checks whether it has to end */

/* Waits for the thread that compiles. mu is held. */
static tn_status wait_for_another(tn_session *session, tn_error *err)
{
  tn__cond_wait_until(&session->compiled_one, &session->mu, tn__now_ns() + LOOK_NS);
  return tn__prepare_check(NULL, err);
}

/* Evicted objects are released after the lock: that may free a plan. */
tn_status tn__signature_get(tn_session *session, tn_graph *graph, tn__parsed_names *p, tn__signature **out,
                            tn_error *err)
{
  tn_status st = TN_OK;
  tn__mutex_lock(&session->mu);
  for (;;) {
    *out = tn__map_get(&session->signatures, (const char *)p->key, p->key_size);
    if (*out != NULL || !session->compiling) break;
    st = wait_for_another(session, err);
    if (st == TN_OK) continue;
    tn__mutex_unlock(&session->mu);
    return st;
  }
  if (*out != NULL) {
    atomic_fetch_add_explicit(&(*out)->refs, 1, memory_order_relaxed);
    (*out)->used = ++session->clock;
  }
  bool refused = *out == NULL && session->finalized;
  bool mine = *out == NULL && !refused;
  if (mine) session->compiling = true;
  tn__mutex_unlock(&session->mu);
  if (refused)
    return tn_error_set(err, TN_FAILED_PRECONDITION, "the session was finalized: no new signature can be compiled");
  if (!mine) return TN_OK;

  tn__signature *evicted = NULL;
  tn__entry_point *entries = NULL;
  st = compile(session, graph, p, out, err);
  tn__mutex_lock(&session->mu);
  session->compiling = false;
  if (st == TN_OK) {
    session->compiled++;
    (*out)->used = ++session->clock;
    if (tn__map_put(&session->signatures, (*out)->key, (*out)->key_size, *out, NULL)) {
      atomic_fetch_add_explicit(&(*out)->refs, 1, memory_order_relaxed);
      evicted = evict_signature_locked(session);
      if (evicted != NULL) entries = tn__entries_evict_locked(session, evicted);
    } /* if the map had no memory for it, it is used once and compiled again next time */
  }
  tn__cond_broadcast(&session->compiled_one);
  tn__mutex_unlock(&session->mu);
  tn__entries_unref(entries);
  tn__signature_unref(evicted);
  return st;
}

void tn__signatures_fini(tn_session *session)
{
  size_t place = 0;
  for (tn__map_entry *m; (m = tn__map_next(&session->signatures, &place)) != NULL;) tn__signature_unref(m->value);
  tn__map_fini(&session->signatures);
}
