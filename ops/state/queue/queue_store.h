/* SPDX-License-Identifier: Apache-2.0 */
/* The elements of a queue in the order in which they are taken. Not locked: the queue has a lock. */
#ifndef TN_OPS_STATE_QUEUE_QUEUE_STORE_H
#define TN_OPS_STATE_QUEUE_QUEUE_STORE_H

#include <ops/random/philox.h>
#include <stdbool.h>
#include <stddef.h>
#include <tenon/tensor.h>

/* A component of an element: a tensor, or one row of it. */
typedef struct tn__queue_part {
  tn_tensor *whole; /* a reference */
  int64_t row;      /* -1: the whole tensor */
} tn__queue_part;

typedef struct tn__queue_element {
  struct tn__queue_element *next; /* in a list */
  uint64_t owner;                 /* the attempt that put it in */
  uint64_t order;                 /* among equal priorities the lowest is taken first */
  int64_t priority;
  uint32_t n;
  tn__queue_part parts[];
} tn__queue_element;

/* A list of elements, in order. */
typedef struct tn__queue_list {
  tn__queue_element *first, *last;
  int64_t n;
} tn__queue_list;

/* A new element whose parts are zero. Returns NULL if out of memory. */
tn__queue_element *tn__queue_element_create(uint32_t n_parts);
void tn__queue_element_destroy(tn__queue_element *element);
void tn__queue_list_add(tn__queue_list *list, tn__queue_element *element);
tn__queue_element *tn__queue_list_take(tn__queue_list *list); /* removes the first; the list must not be empty */
void tn__queue_list_clear(tn__queue_list *list);               /* also frees its elements */

typedef enum tn__queue_order { TN__ORDER_ARRIVAL, TN__ORDER_PRIORITY, TN__ORDER_RANDOM } tn__queue_order;

/* `items` is a ring in order of arrival, a heap by priority, or unordered. */
typedef struct tn__queue_store {
  tn__queue_order order;
  tn__queue_element **items;
  size_t room;  /* of items */
  size_t first; /* start of the ring */
  size_t n;
  size_t owed;  /* elements for which room is reserved, including those stored */
  tn__philox_words words; /* for random order */
} tn__queue_store;

void tn__queue_store_fini(tn__queue_store *store); /* frees the elements */
/* Reserves room for n more elements, so that putting them cannot fail. Returns false if out of
 * memory. */
bool tn__queue_store_reserve(tn__queue_store *store, size_t n);
/* Cancels the reservation for n elements that will not be put, or are taken. */
void tn__queue_store_release(tn__queue_store *store, size_t n);
void tn__queue_store_put(tn__queue_store *store, tn__queue_element *element);
tn__queue_element *tn__queue_store_take(tn__queue_store *store); /* takes the next one; the store must not be empty */
/* Returns taken elements, which are then taken again in the original order. Empties the list. */
void tn__queue_store_give_back(tn__queue_store *store, tn__queue_list *list);
/* Removes all elements of an owner and inserts them, in order, at the front of the list. */
void tn__queue_store_take_owned(tn__queue_store *store, uint64_t owner, tn__queue_list *list);

#endif
