/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of layouts: a short list for each segment, most recently used first. A step with the same shapes as the
 * previous one finds its layout at the first comparison. plan->mu guards the lists.
 *
 * The key of a layout: for each entry its rank and dimensions, as int64; then the bytes of the operands. */
#include <core/layout/layout.h>

/* Size of operand j in the key. Strings and handles have none: their bytes never decide a shape. */
static size_t operand_bytes(const tn_plan *plan, const tn__segment *s, const tn__entry *entries, uint32_t j)
{
  uint32_t e = s->operands[j];
  tn_dtype dtype = plan->values[s->entries[e]].dtype;
  return tn__dtype_is_managed(dtype) || entries[e].data == NULL ? 0 : (size_t)entries[e].count * tn_dtype_size(dtype);
}

static size_t key_size(const tn_plan *plan, const tn__segment *s, const tn__entry *entries)
{
  size_t size = 0;
  for (uint32_t i = 0; i < s->n_entries; i++) size += (1 + (size_t)entries[i].rank) * sizeof(int64_t);
  for (uint32_t j = 0; j < s->n_operands; j++) size += operand_bytes(plan, s, entries, j);
  return size;
}

static void write_key(const tn_plan *plan, const tn__segment *s, const tn__entry *entries, unsigned char *to)
{
  for (uint32_t i = 0; i < s->n_entries; i++) {
    int64_t rank = entries[i].rank;
    __builtin_memcpy(to, &rank, sizeof rank);
    if (rank > 0) __builtin_memcpy(to + sizeof rank, entries[i].dims, (size_t)rank * sizeof rank);
    to += (1 + (size_t)rank) * sizeof rank;
  }
  for (uint32_t j = 0; j < s->n_operands; j++) {
    size_t n = operand_bytes(plan, s, entries, j);
    if (n > 0) __builtin_memcpy(to, entries[s->operands[j]].data, n);
    to += n;
  }
}

static bool same_shapes(const tn__layout *l, const tn__entry *entries)
{
  for (uint32_t i = 0; i < l->segment->n_entries; i++) {
    const tn__slot *slot = &l->slots[i];
    if (slot->rank != entries[i].rank) return false;
    for (int32_t d = 0; d < slot->rank; d++)
      if (slot->dims[d] != entries[i].dims[d]) return false;
  }
  return true;
}

/* Compares entries with the layout directly, so that a hit makes no key. Operands whose value decided nothing may
 * differ. */
bool tn__layout_fits(const tn_plan *plan, const tn__layout *l, const tn__entry *entries)
{
  const tn__segment *s = l->segment;
  if (!same_shapes(l, entries)) return false;
  if (s->n_operands == 0) return true;
  size_t at = 0;
  for (uint32_t i = 0; i < s->n_entries; i++) at += (1 + (size_t)entries[i].rank) * sizeof(int64_t);
  for (uint32_t j = 0; j < s->n_operands; j++) {
    size_t n = operand_bytes(plan, s, entries, j);
    uint32_t entry = s->operands[j];
    if (n > 0 && l->key.by_value[entry] && __builtin_memcmp(l->key.bytes + at, entries[entry].data, n) != 0)
      return false;
    at += n;
  }
  return true;
}

/* Finds a layout, moves it to the front and adds a reference. plan->mu is held. Ignores layouts with older kernels:
 * they are about to be dropped, and a workspace made for one now would keep it forever. */
static tn__layout *find_locked(tn_plan *plan, tn__segment *s, const tn__entry *entries)
{
  uint32_t generation = atomic_load(&plan->upgrade.generation);
  tn__assert_held(&plan->caches.mu);
  for (tn__layout **at = &s->layouts; *at != NULL; at = &(*at)->next) {
    tn__layout *l = *at;
    if (l->generation != generation || !tn__layout_fits(plan, l, entries)) continue;
    if (at != &s->layouts) {
      *at = l->next;
      l->next = s->layouts;
      s->layouts = l;
    }
    atomic_fetch_add_explicit(&l->refs, 1, memory_order_relaxed);
    return l;
  }
  return NULL;
}

/* Inserts a new layout at the front. Returns the one that the list has no room for, NULL = none; the caller releases it
 * after unlocking. plan->mu is held. */
static tn__layout *insert_locked(tn_plan *plan, tn__segment *s, tn__layout *l)
{
  tn__assert_held(&plan->caches.mu);
  l->next = s->layouts;
  s->layouts = l;
  if (++s->n_layouts <= plan->settings.max_layouts) return NULL;
  tn__layout **at = &s->layouts;
  while ((*at)->next != NULL) at = &(*at)->next;
  tn__layout *old = *at;
  *at = NULL;
  s->n_layouts--;
  return old;
}

#define MOST_TRIES 4 /* maximum attempts to share a layout before a new one is made */

/* The layout that has the arrays. */
static const tn__layout *base_of(const tn__layout *l) { return l->base != NULL ? l->base : l; }

/* A new reference to a layout for the same shapes whose arrays can be shared by other values of the operands. Skips
 * those tried before; NULL if there is none left. */
static tn__layout *find_like(tn_plan *plan, const tn__segment *s, const tn__entry *entries, const tn__layout **tried,
                             size_t n)
{
  tn__mutex_lock(&plan->caches.mu);
  tn__layout *l = s->n_operands == 0 ? NULL : s->layouts;
  for (; l != NULL; l = l->next) {
    bool fits = !l->key.fixed && l->generation == atomic_load(&plan->upgrade.generation) && same_shapes(l, entries);
    for (size_t i = 0; i < n; i++) fits &= tried[i] != base_of(l);
    if (fits) break;
  }
  if (l != NULL) atomic_fetch_add_explicit(&l->refs, 1, memory_order_relaxed);
  tn__mutex_unlock(&plan->caches.mu);
  return l;
}

/* Makes a layout. Called without the lock, since kernels' prepare runs here; several threads may make the same one. */
static tn_status make(tn_plan *plan, tn__segment *s, const tn__entry *entries, tn__layout **out, tn_error *err)
{
  const tn__layout *tried[MOST_TRIES];
  tn_status st = TN_OK;
  *out = NULL;
  for (size_t n = 0; st == TN_OK && *out == NULL && n < MOST_TRIES; n++) {
    tn__layout *like = find_like(plan, s, entries, tried, n);
    if (like == NULL) break;
    tried[n] = base_of(like);
    st = tn__layout_vary(plan, like, entries, out, err);
    tn__layout_unref(like);
  }
  return st != TN_OK || *out != NULL ? st : tn__layout_build(plan, s, entries, out, err);
}

tn_status tn__layout_get(tn_plan *plan, tn__segment *s, const tn__entry *entries, tn__layout **out, tn_error *err)
{
  tn__mutex_lock(&plan->caches.mu);
  *out = find_locked(plan, s, entries);
  tn__mutex_unlock(&plan->caches.mu);
  if (*out != NULL) return TN_OK;

  tn__layout *made;
  tn_status st = make(plan, s, entries, &made, err);
  if (st != TN_OK) return st;
  size_t size = key_size(plan, s, entries);
  unsigned char *key = tn__alloc(size);
  if (key == NULL && size > 0) {
    tn__layout_unref(made);
    return tn__no_memory(err, "layout", size);
  }
  if (size > 0) write_key(plan, s, entries, key);
  made->key.bytes = key;
  made->key.n_bytes = size;

  tn__mutex_lock(&plan->caches.mu);
  tn__layout *old = NULL;
  *out = find_locked(plan, s, entries);
  if (*out == NULL) {
    /* if kernels were replaced meanwhile, the layout serves this step only */
    if (made->generation == atomic_load(&plan->upgrade.generation)) {
      old = insert_locked(plan, s, made);
      atomic_fetch_add_explicit(&made->refs, 1, memory_order_relaxed);
    }
    *out = made;
    made = NULL;
  }
  tn__mutex_unlock(&plan->caches.mu);
  tn__layout_unref(old);
  tn__layout_unref(made);
  return TN_OK;
}

/* ---- for the plan ---- */

/* The plan's kernels have changed. Advances the generation first, so that no layout with the old kernels is entered
 * after its segment's list was emptied. Layouts are released without the lock. */
static void drop_layouts(tn_plan *plan)
{
  tn__mutex_lock(&plan->caches.mu);
  atomic_fetch_add(&plan->upgrade.generation, 1);
  tn__plan_forget_kept(plan);
  tn__mutex_unlock(&plan->caches.mu);
  tn__plan_drop_workspaces(plan);
  for (uint32_t i = 0; i < plan->n_segments; i++) {
    tn__segment *s = &plan->segments[i];
    tn__mutex_lock(&plan->caches.mu);
    tn__layout *layouts = s->layouts;
    s->layouts = NULL;
    s->n_layouts = 0;
    tn__mutex_unlock(&plan->caches.mu);
    while (layouts != NULL) {
      tn__layout *next = layouts->next;
      tn__layout_unref(layouts);
      layouts = next;
    }
  }
}

static void segment_fini(tn__segment *segment)
{
  while (segment->layouts != NULL) {
    tn__layout *l = segment->layouts;
    segment->layouts = l->next;
    tn__layout_unref(l);
  }
}

static void end_layouts(tn_plan *plan)
{
  tn__packs_forget(plan);
  for (uint32_t i = 0; i < plan->n_segments; i++) segment_fini(&plan->segments[i]);
}

const tn__layout_calls tn__plan_layouts = { .drop = drop_layouts, .end = end_layouts };
