/* SPDX-License-Identifier: Apache-2.0 */
/* What is in a queue: elements in the order in which they come out. No locks: the queue has one. */
#ifndef TN_OPS_STATE_QUEUE_QUEUE_STORE_H
#define TN_OPS_STATE_QUEUE_QUEUE_STORE_H

#include <ops/random/philox.h>
#include <stdbool.h>
#include <stddef.h>
#include <tenon/tensor.h>

/* A component of an element: a tensor, or one row of it. */
typedef struct tn__queue_part {
  tn_tensor *whole; /* a reference */
  int64_t row;      /* -1: all of it */
} tn__queue_part;

typedef struct tn__queue_element {
  struct tn__queue_element *next; /* in a list */
  uint64_t owner;                 /* the attempt that put it in */
  uint64_t order;                 /* of two with equal priority the lower one comes first */
  int64_t priority;
  uint32_t n;
  tn__queue_part parts[];
} tn__queue_element;

/* Elements in a list, in order. */
typedef struct tn__queue_list {
  tn__queue_element *first, *last;
  int64_t n;
} tn__queue_list;

/* Without references yet: parts are zero. NULL without memory. */
tn__queue_element *tn__queue_element_new(uint32_t n_parts);
void tn__queue_element_free(tn__queue_element *element);
void tn__queue_list_add(tn__queue_list *list, tn__queue_element *element);
tn__queue_element *tn__queue_list_take(tn__queue_list *list); /* the first; there is one */
void tn__queue_list_free(tn__queue_list *list);               /* frees its elements, too */

typedef enum tn__queue_order { TN__ORDER_ARRIVAL, TN__ORDER_PRIORITY, TN__ORDER_RANDOM } tn__queue_order;

/* items: a ring for the order of arrival, a heap by priority, or no order at all. */
typedef struct tn__queue_store {
  tn__queue_order order;
  tn__queue_element **items;
  size_t room;  /* of items */
  size_t first; /* of the ring */
  size_t n;
  size_t owed;  /* elements that room is kept for, those in it included */
  tn__philox_words words; /* for random order */
} tn__queue_store;

void tn__queue_store_fini(tn__queue_store *store); /* frees the elements */
/* Keeps room for n more elements, so that putting them in cannot fail. False without memory. */
bool tn__queue_store_reserve(tn__queue_store *store, size_t n);
/* n elements for which room was kept will not come (any more). */
void tn__queue_store_release(tn__queue_store *store, size_t n);
void tn__queue_store_put(tn__queue_store *store, tn__queue_element *element);
tn__queue_element *tn__queue_store_take(tn__queue_store *store); /* the next one; there is one */
/* Puts back what was taken, so that it comes out as it would have; the list is empty then. */
void tn__queue_store_give_back(tn__queue_store *store, tn__queue_list *list);
/* Takes out all elements of an owner, in order, to the front of the list. */
void tn__queue_store_take_owned(tn__queue_store *store, uint64_t owner, tn__queue_list *list);
/* Takes out all. */
void tn__queue_store_take_all(tn__queue_store *store, tn__queue_list *list);

#endif
