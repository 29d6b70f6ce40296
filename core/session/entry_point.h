/* SPDX-License-Identifier: Apache-2.0 */
/* Entry points: the positions of one caller's names mapped to the order of a signature; and the cache of them by
 * name. */
#ifndef TN_CORE_SESSION_ENTRY_POINT_H
#define TN_CORE_SESSION_ENTRY_POINT_H

#include <core/session/names.h>
#include <core/session/signature.h>

/* A signature in the order of one caller. Immutable once made, except for `used`, and for `key`
 * when it is cached. The arrays are owned. */
typedef struct tn__entry_point {
  _Atomic uint32_t refs;
  tn__signature *signature; /* a reference */
  char *key;                /* the names as tn__names_key writes them, owned; NULL: not cached (a callable, for one) */
  size_t key_size;
  size_t n_feeds, n_fetches;
  uint32_t *feed_map;  /* position -> feed of the signature */
  uint32_t *fetch_map; /* position -> fetch of the signature */
  uint32_t *first;     /* fetch of the signature -> the first position that fetches it */
  tn_output *feeds;    /* by position, for messages */
  tn_run_options options; /* of a callable; has a reference to the cancellation */
  uint64_t used;          /* session->clock at the last use, guarded by session->mu */
  struct tn__entry_point *next_evicted; /* the chain that eviction returns */
} tn__entry_point;

/* An entry point with room for these names, and no signature yet. */
tn_status tn__entry_create(const tn__names *names, tn__entry_point **out, tn_error *err);
void tn__entry_unref(tn__entry_point *entry); /* NULL allowed */
void tn__entries_unref(tn__entry_point *chain); /* releases all that are linked by next_evicted; NULL allowed */

/* The cache. A key is made by tn__names_key. Any thread; takes session->mu. tn__entry_find returns
 * a reference, or NULL. tn__entry_keep adds an entry point unless the cache has one for the key, or
 * its signature was evicted; it may evict another one. */
tn__entry_point *tn__entry_find(tn_session *session, const char *key, size_t size);
void tn__entry_keep(tn_session *session, tn__entry_point *entry, const char *key, size_t size);
/* Takes the entry points of an evicted signature out of the map: they would keep it alive. Returns a chain for
 * tn__entries_unref. */
tn__entry_point *tn__entries_evict_locked(tn_session *session, const tn__signature *signature);
void tn__entries_fini(tn_session *session);

#endif
