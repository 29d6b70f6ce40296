/* SPDX-License-Identifier: Apache-2.0 */
/* Staging areas by key: tuples that are completed part by part, and the attempts that wait for
 * them.
 *
 * A tuple is complete once all of its parts have been staged. Taking parts removes them, and the
 * tuple is removed with its last part. A completed tuple is dropped if its key exists already. */
#ifndef TN_OPS_STATE_QUEUE_STAGING_MAP_H
#define TN_OPS_STATE_QUEUE_STAGING_MAP_H

#include <ops/state/queue/staging_area.h>

extern const tn_resource_class tn__staging_map_class; /* "Staging map"; its objects are tn__staging_map */

/* Tuples in ascending order of key. An element's `priority` is its key, `owner` its size in bytes. */
typedef struct tn__staging_keys {
  tn__queue_element **items;
  size_t n, room;
} tn__staging_keys;

/* Everything except name and limits is guarded by place.mu. */
typedef struct tn__staging_map {
  tn__waitable place;
  char *name;
  int64_t capacity, memory_limit;
  bool is_known;    /* n and dtypes are known, because something was staged */
  uint32_t n;       /* parts of a tuple */
  tn_dtype *dtypes;
  int64_t bytes;
  tn__staging_keys complete, incomplete;
  tn__line stagers, takers;
} tn__staging_map;

/* For tn_kernel_obtain; `user` is a tn__staging_state. */
tn_status tn__staging_map_create(void *user, void **object, tn_error *err);

typedef enum tn__staging_action { TN__STAGING_PUT, TN__STAGING_TAKE, TN__STAGING_PEEK } tn__staging_action;

/* indices  the parts of a tuple, int32, ascending.
 * tuple    put: the parts, one per index; take, peek: room for one per index, filled in.
 * any_key  take: the lowest key, which is then stored in `key`. */
typedef struct tn__staging_attempt {
  tn__attempt base;
  tn__staging_map *map;
  tn__staging_action action;
  bool any_key;
  int64_t key, bytes;
  const tn__staging_state *node; /* dtypes: for put those of a whole tuple; for take those of the outputs */
  tn_tensor *indices;            /* a reference */
  tn__queue_element *tuple;
  tn__queue_list gone;           /* removed tuples, to be freed after unlocking */
  const char *problem;           /* if base.status is an error: what is wrong with an index; NULL = out of memory */
  int64_t index;
} tn__staging_attempt;

void tn__staging_attempt_init(tn__staging_attempt *attempt, tn__staging_map *map, tn_resource *resource,
                              tn__staging_action action);
/* Functions of a tn__attempt_kind. tn__staging_attempt_fini frees tuple, indices and `gone`. */
bool tn__staging_attempt_now(tn__attempt *attempt);
void tn__staging_enter(tn__attempt *attempt);
void tn__staging_attempt_fini(tn__attempt *attempt);

/* Returns what a successful attempt took, because its step no longer needs it. Call it without the
 * lock. */
void tn__staging_give_back(tn__staging_attempt *attempt);

/* Removes all tuples. Call it without the lock. */
void tn__staging_map_clear(tn__staging_map *map);

#endif
