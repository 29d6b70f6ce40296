/* SPDX-License-Identifier: Apache-2.0 */
/* Staging areas by key. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <ops/state/queue/staging_map.h>

#include <string.h>

/* ---- tuples by key ---- */

/* The index of the first key that is not below this one. */
static size_t find(const tn__staging_keys *k, int64_t key)
{
  size_t low = 0, high = k->n;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (k->items[middle]->priority < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

static bool has(const tn__staging_keys *k, size_t at, int64_t key)
{
  return at < k->n && k->items[at]->priority == key;
}

static bool make_room(tn__staging_keys *k)
{
  return tn__grow((void **)&k->items, &k->room, k->n + 1, sizeof k->items[0]);
}

/* There must be room. */
static void insert(tn__staging_keys *k, size_t at, tn__queue_element *e)
{
  memmove(k->items + at + 1, k->items + at, (k->n - at) * sizeof k->items[0]);
  k->items[at] = e;
  k->n++;
}

static tn__queue_element *take_out(tn__staging_keys *k, size_t at)
{
  tn__queue_element *e = k->items[at];
  k->n--;
  memmove(k->items + at, k->items + at + 1, (k->n - at) * sizeof k->items[0]);
  return e;
}

static void free_keys(tn__staging_keys *k)
{
  for (size_t i = 0; i < k->n; i++) tn__queue_element_destroy(k->items[i]);
  tn__free(k->items, k->room * sizeof k->items[0]);
  *k = (tn__staging_keys){ NULL, 0, 0 };
}

/* ---- the resource ---- */

static void destroy(void *object)
{
  tn__staging_map *m = object;
  free_keys(&m->complete);
  free_keys(&m->incomplete);
  tn__free(m->dtypes, m->n * sizeof m->dtypes[0]);
  tn__waitable_fini(&m->place);
  tn__strfree(m->name);
  tn__free(m, sizeof *m);
}

const tn_resource_class tn__staging_map_class = { .struct_size = sizeof(tn_resource_class), .name = "Staging map",
                                                  .destroy = destroy };

tn_status tn__staging_map_create(void *user, void **object, tn_error *err)
{
  const tn__staging_state *s = user;
  tn__staging_map *m = tn__zalloc(sizeof *m);
  *object = NULL;
  if (m != NULL) m->name = tn__strdup(s->place.name);
  if (m == NULL || m->name == NULL) {
    tn__free(m, sizeof *m);
    return tn__no_memory(err, "a staging area", sizeof *m);
  }
  tn__waitable_init(&m->place, "staging map");
  m->capacity = s->capacity;
  m->memory_limit = s->memory_limit;
  *object = m;
  return TN_OK;
}

/* ---- attempts, under the lock ---- */

static bool fail(tn__staging_attempt *t, tn_status status, const char *problem, int64_t index)
{
  t->problem = problem;
  t->index = index;
  tn__attempt_serve(&t->base, status);
  return true;
}

static bool wrong(tn__staging_attempt *t, const char *problem, int64_t index)
{
  return fail(t, TN_INVALID_ARGUMENT, problem, index);
}

static bool no_memory(tn__staging_attempt *t)
{
  return fail(t, TN_RESOURCE_EXHAUSTED, NULL, 0);
}

static int64_t index_at(const tn__staging_attempt *t, uint32_t i)
{
  return ((const int32_t *)tn_tensor_data(t->indices))[i];
}

/* The first node that stages determines the dtypes of a tuple. */
static bool learn(tn__staging_map *m, const tn__staging_state *node)
{
  if (m->is_known) return true;
  m->dtypes = tn__alloc_array(node->n, sizeof m->dtypes[0]);
  if (m->dtypes == NULL && node->n > 0) return false;
  for (uint32_t i = 0; i < node->n; i++) m->dtypes[i] = node->dtypes[i];
  m->n = node->n;
  m->is_known = true;
  return true;
}

/* Checks dtypes and indices of the parts to stage. `into` is a tuple with some parts already; NULL
 * = none. */
static bool check_put(tn__staging_attempt *t, const tn__queue_element *into)
{
  const tn__staging_map *m = t->map;
  for (uint32_t i = 0; i < t->tuple->n; i++) {
    int64_t index = index_at(t, i);
    if (index < 0 || index >= m->n) return !wrong(t, "is outside of the tuple", index);
    if (tn_tensor_dtype(t->tuple->parts[i].whole) != m->dtypes[index]) return !wrong(t, "is of another dtype", index);
    if (into != NULL && into->parts[index].whole != NULL) return !wrong(t, "is there already", index);
  }
  return true;
}

/* Inserts a complete tuple, for which there is room, or drops it if its key exists already. */
static void put_complete(tn__staging_attempt *t, tn__queue_element *e)
{
  tn__staging_map *m = t->map;
  size_t at = find(&m->complete, t->key);
  if (has(&m->complete, at, t->key)) {
    m->bytes -= (int64_t)e->owner;
    tn__queue_list_add(&t->gone, e);
  } else {
    insert(&m->complete, at, e);
  }
}

static bool put_whole(tn__staging_attempt *t)
{
  tn__staging_map *m = t->map;
  if (m->capacity > 0 && m->complete.n >= (uint64_t)m->capacity) return false;
  if (!make_room(&m->complete)) return no_memory(t);
  t->tuple->priority = t->key;
  t->tuple->owner = (uint64_t)t->bytes;
  m->bytes += t->bytes;
  put_complete(t, t->tuple);
  t->tuple = NULL;
  tn__attempt_serve(&t->base, TN_OK);
  return true;
}

/* The incomplete tuple of this key, created if there is none. Returns NULL if out of memory. */
static tn__queue_element *begun(tn__staging_map *m, int64_t key, size_t at)
{
  if (has(&m->incomplete, at, key)) return m->incomplete.items[at];
  tn__queue_element *e = make_room(&m->incomplete) ? tn__queue_element_create(m->n) : NULL;
  if (e == NULL) return NULL;
  e->priority = key;
  insert(&m->incomplete, at, e);
  return e;
}

static bool is_complete(const tn__queue_element *e)
{
  for (uint32_t i = 0; i < e->n; i++)
    if (e->parts[i].whole == NULL) return false;
  return true;
}

/* Moves the parts into the tuple of their key. */
static bool put_parts(tn__staging_attempt *t)
{
  tn__staging_map *m = t->map;
  size_t at = find(&m->incomplete, t->key);
  if (!check_put(t, has(&m->incomplete, at, t->key) ? m->incomplete.items[at] : NULL)) return true;
  tn__queue_element *e = make_room(&m->complete) ? begun(m, t->key, at) : NULL;
  if (e == NULL) return no_memory(t);
  for (uint32_t i = 0; i < t->tuple->n; i++) {
    e->parts[index_at(t, i)] = t->tuple->parts[i];
    t->tuple->parts[i].whole = NULL;
  }
  e->owner += (uint64_t)t->bytes;
  m->bytes += t->bytes;
  if (is_complete(e)) put_complete(t, take_out(&m->incomplete, at));
  tn__attempt_serve(&t->base, TN_OK);
  return true;
}

static bool run_put(tn__staging_attempt *t)
{
  tn__staging_map *m = t->map;
  if (!learn(m, t->node)) return no_memory(t);
  size_t at = find(&m->incomplete, t->key);
  int64_t held = has(&m->incomplete, at, t->key) ? (int64_t)m->incomplete.items[at]->owner : 0;
  if (m->memory_limit > 0 && t->bytes > m->memory_limit - held)
    return fail(t, TN_RESOURCE_EXHAUSTED, "makes the tuple larger than the memory_limit", index_at(t, 0));
  if (m->memory_limit > 0 && t->bytes > m->memory_limit - m->bytes) return false;
  if (t->tuple->n != m->n) return put_parts(t);
  return !check_put(t, NULL) || put_whole(t);
}

static bool check_take(tn__staging_attempt *t, const tn__queue_element *e)
{
  for (uint32_t i = 0; i < t->tuple->n; i++) {
    int64_t index = index_at(t, i);
    if (index < 0 || index >= e->n) return !wrong(t, "is outside of the tuple", index);
    if (e->parts[index].whole == NULL) return !wrong(t, "was taken already", index);
    if (tn_tensor_dtype(e->parts[index].whole) != t->node->dtypes[i])
      return !wrong(t, "is of another dtype than the output", index);
  }
  return true;
}

static bool run_take(tn__staging_attempt *t)
{
  tn__staging_map *m = t->map;
  size_t at = t->any_key ? 0 : find(&m->complete, t->key);
  if (t->any_key ? m->complete.n == 0 : !has(&m->complete, at, t->key)) return false;
  tn__queue_element *e = m->complete.items[at];
  if (!check_take(t, e)) return true;
  t->key = e->priority;
  for (uint32_t i = 0; i < t->tuple->n; i++) {
    tn__queue_part *p = &e->parts[index_at(t, i)];
    t->tuple->parts[i] = (tn__queue_part){ tn_tensor_ref(p->whole), -1 };
    if (t->action == TN__STAGING_PEEK) continue;
    int64_t bytes = tn__staging_bytes(p->whole);
    e->owner -= (uint64_t)bytes;
    m->bytes -= bytes;
    tn_tensor_unref(p->whole); /* never the last reference */
    p->whole = NULL;
  }
  bool empty = true;
  for (uint32_t i = 0; i < e->n; i++) empty = empty && e->parts[i].whole == NULL;
  if (empty) tn__queue_list_add(&t->gone, take_out(&m->complete, at));
  tn__attempt_serve(&t->base, TN_OK);
  return true;
}

static void serve(tn__staging_map *m)
{
  bool changed = true;
  while (changed) {
    changed = false;
    while (m->stagers.first != NULL && run_put((tn__staging_attempt *)m->stagers.first)) changed = true;
    for (tn__attempt *a = m->takers.first, *next; a != NULL; a = next) { /* each waits for its own key */
      next = a->next;
      if (run_take((tn__staging_attempt *)a)) changed = true;
    }
  }
}

bool tn__staging_attempt_now(tn__attempt *attempt)
{
  tn__staging_attempt *t = (tn__staging_attempt *)attempt;
  bool puts = t->action == TN__STAGING_PUT;
  if (puts && t->map->stagers.first != NULL) return false;
  if (puts ? !run_put(t) : !run_take(t)) return false;
  serve(t->map);
  return true;
}

void tn__staging_enter(tn__attempt *attempt)
{
  tn__staging_attempt *t = (tn__staging_attempt *)attempt;
  tn__line_join(t->action == TN__STAGING_PUT ? &t->map->stagers : &t->map->takers, attempt);
  serve(t->map);
}

static void leave(tn__attempt *attempt) { serve(((tn__staging_attempt *)attempt)->map); }

/* ---- no lock held ---- */

void tn__staging_attempt_init(tn__staging_attempt *t, tn__staging_map *map, tn_resource *resource,
                              tn__staging_action action)
{
  *t = (tn__staging_attempt){ .map = map, .action = action };
  tn__attempt_init(&t->base, &map->place, resource, leave);
}

void tn__staging_attempt_fini(tn__attempt *attempt)
{
  tn__staging_attempt *t = (tn__staging_attempt *)attempt;
  tn__queue_list_clear(&t->gone);
  if (t->tuple != NULL) tn__queue_element_destroy(t->tuple);
  tn_tensor_unref(t->indices);
  tn__attempt_fini(attempt);
}

void tn__staging_give_back(tn__staging_attempt *t)
{
  tn__staging_map *m = t->map;
  tn__waitable_lock(&m->place);
  size_t at = find(&m->complete, t->key);
  bool there = has(&m->complete, at, t->key);
  if (!there && t->gone.n > 0 && make_room(&m->complete)) {
    insert(&m->complete, at, tn__queue_list_take(&t->gone));
    there = true;
  }
  tn__queue_element *e = there ? m->complete.items[at] : NULL;
  for (uint32_t i = 0; there && i < t->tuple->n; i++) {
    tn__queue_part *p = &e->parts[index_at(t, i)];
    if (p->whole != NULL) continue; /* meanwhile another tuple with this key was inserted */
    *p = t->tuple->parts[i];
    t->tuple->parts[i].whole = NULL;
    e->owner += (uint64_t)tn__staging_bytes(p->whole);
    m->bytes += tn__staging_bytes(p->whole);
  }
  serve(m);
  tn__waitable_unlock(&m->place);
}

void tn__staging_map_clear(tn__staging_map *m)
{
  tn__waitable_lock(&m->place);
  tn__staging_keys complete = m->complete, incomplete = m->incomplete;
  m->complete = m->incomplete = (tn__staging_keys){ NULL, 0, 0 };
  m->bytes = 0;
  serve(m);
  tn__waitable_unlock(&m->place);
  free_keys(&complete);
  free_keys(&incomplete);
}
