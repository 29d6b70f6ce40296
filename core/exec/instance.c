/* SPDX-License-Identifier: Apache-2.0 */
/* Instances: made once, bound to their arena once, used by one step at a time. */
#include <core/exec/exec.h>

_Alignas(TN_ALIGN) const char tn__nowhere[TN_ALIGN];

static void free_one(tn__instance *i)
{
  tn__free_aligned(i->arena, i->arena_bytes, TN_ALIGN);
  tn__layout_unref(i->layout);
  tn__free(i, i->block_bytes);
}

static void free_list(tn__instance *list)
{
  while (list != NULL) {
    tn__instance *next = list->next;
    free_one(list);
    list = next;
  }
}

/* Addresses that no step changes: constants and the arena. */
static void bind_fixed(tn__instance *i)
{
  const tn__layout *l = i->layout;
  for (uint32_t s = 0; s < l->n_slots; s++) {
    const tn__slot *slot = &l->slots[s];
    const tn__slot *root = &l->slots[slot->root];
    tn_view *v = &i->views[s];
    *v = (tn_view){ .dims = slot->dims, .count = slot->count, .dtype = slot->dtype, .rank = slot->rank };
    if (root->store == TN_STORE_CONSTANT) {
      v->data = tn__somewhere(root->elements == NULL ? NULL : root->elements->data);
      v->buffer = root->elements == NULL ? NULL : root->elements->buffer;
    } else if (root->store == TN_STORE_KNOWN) {
      v->data = root->known;
    } else if (root->store == TN_STORE_ARENA) {
      v->data = tn__somewhere(tn__arena_at(i, root->offset));
    }
  }
  for (uint32_t k = 0; k < l->n_operands; k++) i->operands[k] = &i->views[l->operands[k]];
}

/* `arena` of `arena_bytes`, when not NULL, is taken over. */
static tn_status make(tn__layout *layout, char *arena, size_t arena_bytes, tn__instance **out, tn_error *err)
{
  size_t views = sizeof(tn__instance), operands, heap, size;
  bool ok = tn__size_mul(layout->n_slots, sizeof(tn_view), &size) && tn__size_add(views, size, &operands) &&
            tn__size_mul(layout->n_operands, sizeof(tn_view *), &size) && tn__size_add(operands, size, &heap) &&
            tn__size_mul(layout->has_heap ? layout->n_slots : 0, sizeof(tn_tensor *), &size) &&
            tn__size_add(heap, size, &size);
  tn__instance *i = ok ? tn__zalloc(size) : NULL;
  if (i != NULL && arena == NULL && layout->arena_bytes > 0) {
    arena_bytes = layout->arena_bytes;
    arena = tn__alloc_aligned(arena_bytes, TN_ALIGN);
    if (arena == NULL) {
      tn__free(i, size);
      i = NULL;
    }
  }
  if (i == NULL) {
    if (arena != NULL) tn__free_aligned(arena, arena_bytes, TN_ALIGN);
    return tn__no_memory(err, "memory of a step", layout->arena_bytes);
  }
  i->block_bytes = size;
  i->arena = arena;
  i->arena_bytes = arena == NULL ? 0 : arena_bytes;
  i->views = (tn_view *)((char *)i + views);
  i->operands = (tn_view **)((char *)i + operands);
  if (layout->has_heap) i->heap = (tn_tensor **)((char *)i + heap);
  atomic_fetch_add_explicit(&layout->refs, 1, memory_order_relaxed);
  i->layout = layout;
  bind_fixed(i);
  *out = i;
  return TN_OK;
}

/* A free instance of the layout; when the list is full, *victim gets the one that was not used for longest. */
static tn__instance *pop_free(tn_plan *plan, const tn__layout *layout, tn__instance **victim)
{
  tn__instance *found = NULL;
  tn__mutex_lock(&plan->mu);
  tn__instance **at = &plan->free_instances;
  while (*at != NULL && (*at)->layout != layout) at = &(*at)->next;
  if (*at == NULL && plan->n_free >= TN__MAX_FREE) {
    at = &plan->free_instances;
    while ((*at)->next != NULL) at = &(*at)->next;
    *victim = *at;
  } else {
    found = *at;
  }
  tn__instance *taken = *at;
  if (taken != NULL) {
    *at = taken->next;
    taken->next = NULL;
    plan->n_free--;
  }
  tn__mutex_unlock(&plan->mu);
  return found;
}

tn_status tn__instance_take(tn_plan *plan, tn__segment *segment, const tn__entry *entries, tn__instance **out,
                            tn_error *err)
{
  *out = NULL;
  tn__layout *layout;
  tn_status st = tn__layout_get(plan, segment, entries, &layout, err);
  if (st != TN_OK) return st;
  tn__instance *victim = NULL;
  *out = pop_free(plan, layout, &victim);
  if (*out == NULL) {
    char *arena = NULL;
    size_t bytes = 0;
    if (victim != NULL && victim->arena_bytes >= layout->arena_bytes && victim->arena_bytes / 4 <= layout->arena_bytes) {
      arena = victim->arena;
      bytes = victim->arena_bytes;
      victim->arena = NULL;
      victim->arena_bytes = 0;
    }
    if (victim != NULL) free_one(victim);
    atomic_store(&tn__instance_free, free_list);
    st = make(layout, arena, bytes, out, err);
  }
  tn__layout_unref(layout);
  return st;
}

void tn__instance_put(tn_plan *plan, tn__segment *segment, tn__instance *instance)
{
  if (instance->layout->generation != atomic_load_explicit(&plan->generation, memory_order_relaxed)) {
    free_one(instance);
    return;
  }
  tn__instance *old = atomic_exchange_explicit(&segment->hot, instance, memory_order_acq_rel);
  if (old == NULL) return;
  tn__mutex_lock(&plan->mu);
  bool keep = plan->n_free < TN__MAX_FREE;
  if (keep) {
    old->next = plan->free_instances;
    plan->free_instances = old;
    plan->n_free++;
  }
  tn__mutex_unlock(&plan->mu);
  if (!keep) free_one(old);
}
