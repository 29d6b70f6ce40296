/* SPDX-License-Identifier: Apache-2.0 */
/* Staging areas by key: tuples that become complete part by part, and what waits for them.
 *
 * A tuple is complete once every part was there; parts that were taken are missing from then on, and a tuple goes with its
 * last part. A complete tuple whose key is there already is dropped. */
#ifndef TN_OPS_STATE_QUEUE_STAGING_MAP_H
#define TN_OPS_STATE_QUEUE_STAGING_MAP_H

#include <ops/state/queue/staging_area.h>

extern const tn_resource_class tn__staging_map_class; /* "Staging map"; its objects are tn__staging_map */

/* Tuples in the order of their keys, which are the elements' `priority`; `owner` is their bytes. */
typedef struct tn__staging_keys {
  tn__queue_element **items;
  size_t n, room;
} tn__staging_keys;

/* All but name and limits is guarded by place.mu. */
typedef struct tn__staging_map {
  tn__waitable place;
  char *name;
  int64_t capacity, memory_limit;
  bool is_known;    /* n and dtypes are, since something was staged */
  uint32_t n;       /* parts of a tuple */
  tn_dtype *dtypes;
  int64_t bytes;
  tn__staging_keys complete, incomplete;
  tn__line stagers, takers;
} tn__staging_map;

/* For tn_kernel_obtain: user is a tn__staging_state. */
tn_status tn__staging_map_make(void *user, void **object, tn_error *err);

typedef enum tn__staging_action { TN__STAGING_PUT, TN__STAGING_TAKE, TN__STAGING_PEEK } tn__staging_action;

/* indices  which parts of a tuple, int32, rising.
 * tuple    put: the parts, as many as indices; take, peek: room for as many, filled in.
 * any_key  take: the lowest key; `key` is it then. */
typedef struct tn__staging_attempt {
  tn__attempt base;
  tn__staging_map *map;
  tn__staging_action action;
  bool any_key;
  int64_t key, bytes;
  const tn__staging_state *node; /* dtypes: put: of a whole tuple; take: of the outputs */
  tn_tensor *indices;            /* a reference */
  tn__queue_element *tuple;
  tn__queue_list gone;           /* what it removed, to be freed outside of the lock */
  const char *problem;           /* for a base.status that is an error: how an index is wrong; NULL = no memory */
  int64_t index;
} tn__staging_attempt;

void tn__staging_attempt_init(tn__staging_attempt *attempt, tn__staging_map *map, tn_resource *resource,
                              tn__staging_action action);
/* As in a tn__attempt_kind; tn__staging_attempt_fini frees tuple, indices and what is gone. */
bool tn__staging_attempt_now(tn__attempt *attempt);
void tn__staging_enter(tn__attempt *attempt);
void tn__staging_attempt_fini(tn__attempt *attempt);

/* What an attempt took that ended well goes back, since nobody wants it any more. No lock held. */
void tn__staging_give_back(tn__staging_attempt *attempt);

/* Takes everything out. No lock held. */
void tn__staging_map_clear(tn__staging_map *map);

#endif
