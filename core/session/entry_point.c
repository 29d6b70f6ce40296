/* SPDX-License-Identifier: Apache-2.0 */
/* Entry points: the object, and the bounded cache that finds one by the names of a call. */
#include <core/session/entry_point.h>

#define ENTRIES_PER_SIGNATURE 4 /* average number of entry points kept per signature */

void tn__entry_unref(tn__entry_point *e)
{
  if (e == NULL || atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) != 1) return;
  tn__signature_unref(e->signature);
  tn_cancellation_unref(e->options.cancellation);
  tn__free(e->feed_map, (e->n_feeds + 1) * sizeof *e->feed_map);
  tn__free(e->feeds, (e->n_feeds + 1) * sizeof *e->feeds);
  tn__free(e->fetch_map, (e->n_fetches + 1) * sizeof *e->fetch_map);
  tn__free(e->first, (e->n_fetches + 1) * sizeof *e->first);
  tn__free(e->key, e->key_size);
  tn__free(e, sizeof *e);
}

tn_status tn__entry_create(const tn__names *names, tn__entry_point **out, tn_error *err)
{
  tn__entry_point *e = tn__zalloc(sizeof *e);
  *out = e;
  if (e == NULL) return tn__no_memory(err, "signature", sizeof *e);
  atomic_init(&e->refs, 1);
  e->n_feeds = names->n_feeds;
  e->n_fetches = names->n_fetches;
  e->feed_map = tn__alloc_array(e->n_feeds + 1, sizeof *e->feed_map);
  e->feeds = tn__alloc_array(e->n_feeds + 1, sizeof *e->feeds);
  e->fetch_map = tn__alloc_array(e->n_fetches + 1, sizeof *e->fetch_map);
  e->first = tn__alloc_array(e->n_fetches + 1, sizeof *e->first);
  if (e->feed_map == NULL || e->feeds == NULL || e->fetch_map == NULL || e->first == NULL)
    return tn__no_memory(err, "signature", e->n_feeds + e->n_fetches);
  return TN_OK;
}

tn__entry_point *tn__entry_find(tn_session *session, const char *key, size_t size)
{
  tn__mutex_lock(&session->mu);
  tn__entry_point *e = tn__map_get(&session->entries, key, size);
  if (e != NULL) {
    atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
    e->used = e->signature->used = ++session->clock;
  }
  tn__mutex_unlock(&session->mu);
  return e;
}

/* If there are too many entry points, takes the least recently used one but `keep` out of the map. The caller releases
 * it. */
static tn__entry_point *evict_entry_locked(tn_session *session, const tn__entry_point *keep)
{
  if (session->entries.count <= session->on.max_signatures * ENTRIES_PER_SIGNATURE) return NULL;
  tn__entry_point *oldest = NULL;
  size_t place = 0;
  for (tn__map_entry *m; (m = tn__map_next(&session->entries, &place)) != NULL;) {
    tn__entry_point *e = m->value;
    if (e != keep && (oldest == NULL || e->used < oldest->used)) oldest = e;
  }
  if (oldest != NULL) tn__map_remove(&session->entries, oldest->key, oldest->key_size);
  return oldest;
}

/* An entry point of an evicted signature is not kept: it would keep the signature alive, and the
 * next call compiles it again. Another thread may have added one for the same names. */
void tn__entry_keep(tn_session *session, tn__entry_point *e, const char *key, size_t size)
{
  char *copy = tn__alloc(size);
  if (copy == NULL) return; /* it is made again by the next call */
  memcpy(copy, key, size);
  tn__entry_point *old = NULL, *evicted = NULL;
  tn__mutex_lock(&session->mu);
  bool kept = tn__map_get(&session->signatures, e->signature->key, e->signature->key_size) == e->signature;
  if (kept && tn__map_get(&session->entries, key, size) == NULL && e->key == NULL) {
    e->key = copy;
    e->key_size = size;
    e->used = ++session->clock;
    if (tn__map_put(&session->entries, e->key, size, e, (void **)&old)) {
      atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
      evicted = evict_entry_locked(session, e);
    }
    copy = NULL;
  }
  tn__mutex_unlock(&session->mu);
  tn__free(copy, size);
  tn__entry_unref(evicted);
}

/* The references of the map pass to the chain: they are released after the lock. */
tn__entry_point *tn__entries_evict_locked(tn_session *session, const tn__signature *s)
{
  tn__entry_point *chain = NULL;
  for (;;) { /* a removal may move an entry; the next walk finds it */
    tn__entry_point *found = NULL;
    size_t place = 0;
    for (tn__map_entry *m; found == NULL && (m = tn__map_next(&session->entries, &place)) != NULL;)
      if (((tn__entry_point *)m->value)->signature == s) found = m->value;
    if (found == NULL) return chain;
    tn__map_remove(&session->entries, found->key, found->key_size);
    found->next_evicted = chain;
    chain = found;
  }
}

void tn__entries_unref(tn__entry_point *chain)
{
  while (chain != NULL) {
    tn__entry_point *next = chain->next_evicted;
    tn__entry_unref(chain);
    chain = next;
  }
}

void tn__entries_fini(tn_session *session)
{
  size_t place = 0;
  for (tn__map_entry *m; (m = tn__map_next(&session->entries, &place)) != NULL;) tn__entry_unref(m->value);
  tn__map_fini(&session->entries);
}
