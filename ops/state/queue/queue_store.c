/* SPDX-License-Identifier: Apache-2.0 */
/* The elements of a queue. */
#include <core/base/alloc.h>
#include <ops/state/queue/queue_store.h>

/* ---- elements ---- */

static size_t element_size(uint32_t n_parts) { return sizeof(tn__queue_element) + n_parts * sizeof(tn__queue_part); }

tn__queue_element *tn__queue_element_create(uint32_t n_parts)
{
  tn__queue_element *e = tn__zalloc(element_size(n_parts));
  if (e != NULL) e->n = n_parts;
  return e;
}

void tn__queue_element_destroy(tn__queue_element *element)
{
  for (uint32_t i = 0; i < element->n; i++) tn_tensor_unref(element->parts[i].whole);
  tn__free(element, element_size(element->n));
}

void tn__queue_list_add(tn__queue_list *list, tn__queue_element *element)
{
  element->next = NULL;
  if (list->last != NULL) list->last->next = element;
  else list->first = element;
  list->last = element;
  list->n++;
}

tn__queue_element *tn__queue_list_take(tn__queue_list *list)
{
  tn__queue_element *e = list->first;
  list->first = e->next;
  if (list->first == NULL) list->last = NULL;
  list->n--;
  return e;
}

void tn__queue_list_clear(tn__queue_list *list)
{
  while (list->first != NULL) tn__queue_element_destroy(tn__queue_list_take(list));
}

static void reverse(tn__queue_list *list)
{
  tn__queue_element *e = list->first, *before = NULL;
  list->last = e;
  while (e != NULL) {
    tn__queue_element *next = e->next;
    e->next = before;
    before = e;
    e = next;
  }
  list->first = before;
}

/* ---- the ring ---- */

static size_t place(const tn__queue_store *s, size_t i)
{
  size_t at = s->first + i; /* no overflow: both are below room */
  return at < s->room ? at : at - s->room;
}

static void push_front(tn__queue_store *s, tn__queue_element *element)
{
  s->first = s->first == 0 ? s->room - 1 : s->first - 1;
  s->items[s->first] = element;
  s->n++;
}

/* ---- the heap: s->first is always 0 ---- */

static bool before(const tn__queue_element *a, const tn__queue_element *b)
{
  return a->priority != b->priority ? a->priority < b->priority : a->order < b->order;
}

static void sift_up(tn__queue_element **items, size_t at)
{
  tn__queue_element *e = items[at];
  while (at > 0 && before(e, items[(at - 1) / 2])) {
    items[at] = items[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  items[at] = e;
}

static void sift_down(tn__queue_element **items, size_t n, size_t at)
{
  tn__queue_element *e = items[at];
  for (size_t child; (child = 2 * at + 1) < n; at = child) {
    if (child + 1 < n && before(items[child + 1], items[child])) child++;
    if (!before(items[child], e)) break;
    items[at] = items[child];
  }
  items[at] = e;
}

/* ---- the store ---- */

void tn__queue_store_fini(tn__queue_store *s)
{
  for (size_t i = 0; i < s->n; i++) tn__queue_element_destroy(s->items[place(s, i)]);
  tn__free(s->items, s->room * sizeof s->items[0]);
  s->items = NULL;
  s->n = s->room = s->first = s->owed = 0;
}

static bool grow(tn__queue_store *s, size_t wanted)
{
  size_t room = s->room < 8 ? 8 : s->room;
  while (room < wanted)
    if (!tn__size_mul(room, 2, &room)) return false;
  tn__queue_element **items = tn__alloc_array(room, sizeof items[0]);
  if (items == NULL) return false;
  for (size_t i = 0; i < s->n; i++) items[i] = s->items[place(s, i)];
  tn__free(s->items, s->room * sizeof s->items[0]);
  s->items = items;
  s->room = room;
  s->first = 0;
  return true;
}

bool tn__queue_store_reserve(tn__queue_store *s, size_t n)
{
  size_t wanted;
  if (!tn__size_add(s->owed, n, &wanted) || (wanted > s->room && !grow(s, wanted))) return false;
  s->owed = wanted;
  return true;
}

void tn__queue_store_release(tn__queue_store *s, size_t n) { s->owed -= n; }

void tn__queue_store_put(tn__queue_store *s, tn__queue_element *element)
{
  s->items[place(s, s->n)] = element;
  s->n++;
  if (s->order == TN__ORDER_PRIORITY) sift_up(s->items, s->n - 1);
}

/* The high half of the product with 64 random bits is uniform enough for any n that fits in memory. */
static size_t random_below(tn__queue_store *s)
{
  uint64_t low = tn__philox_word(&s->words), high = tn__philox_word(&s->words);
  return (size_t)(((unsigned __int128)(high << 32 | low) * s->n) >> 64);
}

tn__queue_element *tn__queue_store_take(tn__queue_store *s)
{
  size_t at = 0;
  if (s->order == TN__ORDER_RANDOM) at = random_below(s);
  tn__queue_element *e = s->items[place(s, at)];
  s->n--;
  if (s->order == TN__ORDER_ARRIVAL) {
    s->first = place(s, 1);
    return e;
  }
  s->items[at] = s->items[s->n];
  if (s->order == TN__ORDER_PRIORITY && s->n > 0) sift_down(s->items, s->n, 0);
  return e;
}

void tn__queue_store_give_back(tn__queue_store *s, tn__queue_list *list)
{
  reverse(list);
  while (list->first != NULL) {
    tn__queue_element *e = tn__queue_list_take(list);
    if (s->order == TN__ORDER_ARRIVAL) push_front(s, e);
    else tn__queue_store_put(s, e);
  }
}

void tn__queue_store_take_owned(tn__queue_store *s, uint64_t owner, tn__queue_list *list)
{
  tn__queue_list owned = { NULL, NULL, 0 };
  size_t kept = 0;
  for (size_t i = 0; i < s->n; i++) {
    tn__queue_element *e = s->items[place(s, i)];
    if (e->owner == owner) tn__queue_list_add(&owned, e);
    else s->items[place(s, kept++)] = e;
  }
  s->n = kept;
  if (s->order == TN__ORDER_PRIORITY)
    for (size_t i = kept / 2; i-- > 0;) sift_down(s->items, kept, i);
  while (list->first != NULL) tn__queue_list_add(&owned, tn__queue_list_take(list));
  *list = owned;
}

