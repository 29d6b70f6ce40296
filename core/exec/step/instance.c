/* SPDX-License-Identifier: Apache-2.0 */
/* Instances: made once for a layout and a workspace, and rebound when the workspace has another
 * arena. */
#include <core/exec/step/jobs.h>
#include <core/exec/step/workspace.h>

_Alignas(TN_ALIGN) const char tn__empty_data[TN_ALIGN];

void tn__instance_destroy(tn__instance *i)
{
  tn__jobs_destroy(i->jobs);
  if (i->part_views != NULL) tn__free(i->part_views, i->part_views_bytes);
  tn__layout_unref(i->layout);
  tn__free(i, i->block_bytes);
}

void tn__instance_bind_arena(tn__instance *i, const tn__workspace *workspace)
{
  const tn__layout *l = i->layout;
  i->arena = workspace->arena;
  for (uint32_t s = 0; s < l->n_slots; s++)
    if (l->slots[s].store == TN_STORE_ARENA)
      i->views[s].data = tn__non_null(tn__arena_at(i, l->slots[l->slots[s].root].offset));
}

/* Binds shapes and constants, which are the same in all steps. */
static void bind_fixed(tn__instance *i)
{
  const tn__layout *l = i->layout;
  for (uint32_t s = 0; s < l->n_slots; s++) {
    const tn__slot *slot = &l->slots[s];
    const tn__slot *root = &l->slots[slot->root];
    tn_view *v = &i->views[s];
    *v = (tn_view){ .dims = slot->dims, .count = slot->count, .dtype = slot->dtype, .rank = slot->rank };
    if (root->store == TN_STORE_CONSTANT) {
      v->data = tn__non_null(root->elements == NULL ? NULL : root->elements->data);
      v->buffer = root->elements == NULL ? NULL : root->elements->buffer;
    } else if (root->store == TN_STORE_KNOWN) {
      v->data = root->known;
    }
  }
  for (uint32_t k = 0; k < l->n_operands; k++) i->operands[k] = &i->views[l->operands[k]];
}

static tn_status instance_make(tn__layout *layout, const tn__workspace *workspace, tn__instance **out, tn_error *err)
{
  size_t views = sizeof(tn__instance), operands, heap, size;
  bool ok = tn__size_mul(layout->n_slots, sizeof(tn_view), &size) && tn__size_add(views, size, &operands) &&
            tn__size_mul(layout->n_operands, sizeof(tn_view *), &size) && tn__size_add(operands, size, &heap) &&
            tn__size_mul(layout->n_heaps > 0 ? layout->n_slots : 0, sizeof(tn_tensor *), &size) &&
            tn__size_add(heap, size, &size);
  tn__instance *i = ok ? tn__zalloc(size) : NULL;
  if (i == NULL) return tn__no_memory(err, "memory of a step", heap);
  i->block_bytes = size;
  i->views = (tn_view *)((char *)i + views);
  i->operands = (tn_view **)((char *)i + operands);
  if (layout->n_heaps > 0) i->heap = (tn_tensor **)((char *)i + heap);
  atomic_fetch_add_explicit(&layout->refs, 1, memory_order_relaxed);
  i->layout = layout;
  bind_fixed(i);
  tn__instance_bind_arena(i, workspace);
  *out = i;
  return TN_OK;
}

/* Puts a new instance at the front. The list keeps at most as many instances as the plan keeps
 * layouts; the least recently used is evicted. */
static void instance_push(const tn_plan *plan, tn__instance **list, tn__instance *i)
{
  uint32_t most = plan->settings.max_layouts < TN__MAX_INSTANCES ? plan->settings.max_layouts : TN__MAX_INSTANCES,
           n = 1;
  i->next = *list;
  *list = i;
  while (i->next != NULL && n < most) {
    i = i->next;
    n++;
  }
  tn__instance *last = i->next;
  i->next = NULL;
  if (last != NULL) tn__instance_destroy(last); /* one was added, so at most one is too many */
}

static void instance_to_front(tn__instance **list, tn__instance **at)
{
  tn__instance *i = *at;
  *at = i->next;
  i->next = *list;
  *list = i;
}

/* Whether an instance of one layout can be used for the other: they differ at most in the values of
 * operands, so they have the same slots and addresses. */
static bool layouts_share(const tn__layout *a, const tn__layout *b)
{
  return (a->base != NULL ? a->base : a) == (b->base != NULL ? b->base : b);
}

/* First an instance whose layout fits; else one whose layout shares its arrays with the layout for
 * these entries; else a new one. */
tn_status tn__instance_find(tn_plan *plan, tn__workspace *workspace, uint32_t segment, const tn__entry *entries,
                            tn_error *err)
{
  tn__instance **list = &workspace->instances[segment], **at = list, *i = NULL;
  while (*at != NULL && !tn__layout_fits(plan, (*at)->layout, entries)) at = &(*at)->next;
  if (*at != NULL) {
    instance_to_front(list, at);
    return TN_OK;
  }
  tn__layout *layout;
  tn_status st = tn__layout_get(plan, &plan->segments[segment], entries, &layout, err);
  if (st != TN_OK) return st;
  at = list;
  while (*at != NULL && !layouts_share((*at)->layout, layout)) at = &(*at)->next;
  if (*at != NULL) {
    tn__layout_unref((*at)->layout);
    (*at)->layout = layout;
    instance_to_front(list, at);
    return TN_OK;
  }
  st = instance_make(layout, workspace, &i, err);
  if (st == TN_OK) instance_push(plan, list, i);
  tn__layout_unref(layout);
  return st;
}
