/* SPDX-License-Identifier: Apache-2.0 */
/* Workspaces: a step finds its memory as the previous step left it, so as a rule it allocates
 * nothing.
 *
 * plan->idle is an array of places that are changed by atomic exchange, without a lock. A thread
 * prefers a place of its own, which depends on the thread's number, so concurrent steps rarely
 * touch the same cache line, and a thread finds the memory that is in its CPU's cache. */
#include <core/base/threads/thread.h>
#include <core/exec/step/workspace.h>
#include <core/resource/container.h>

#define TIDY_STEPS 16   /* steps between two checks for unused memory */
#define SMALL_LOOKS 16  /* consecutive checks that find the arena four times too large, after which it is freed */

static void drop_arena(tn__workspace *w)
{
  tn__free_aligned(w->arena, w->arena_bytes, TN_ALIGN);
  tn__account_credit(w->account, w->arena_bytes);
  tn__account_unref(w->account);
  w->account = NULL;
  w->arena = NULL;
  w->arena_bytes = 0;
}

static void workspace_free(tn_plan *plan, tn__workspace *w)
{
  for (uint32_t i = 0; i < plan->n_segments; i++) {
    while (w->instances[i] != NULL) {
      tn__instance *instance = w->instances[i];
      w->instances[i] = instance->next;
      tn__instance_destroy(instance);
    }
  }
  for (uint32_t i = 0; w->pending != NULL && i < plan->n_segments; i++) tn__pending_destroy(w->pending[i]);
  tn_resource **known = atomic_load_explicit(&w->resources, memory_order_relaxed);
  for (uint32_t i = 0; known != NULL && i < plan->n_instrs; i++) tn__resource_forget(known[i]);
  if (known != NULL) tn__free(known, plan->n_instrs * sizeof *known);
  for (size_t i = 0; i < w->n_spares; i++) tn_tensor_unref(w->spares[i].tensor);
  tn__free(w->spares, w->spare_room * sizeof *w->spares);
  drop_arena(w);
  tn__free(w, w->block_bytes);
}

/* The end of the arrays for control flow, which begin at `begin`: pending calls by segment, readers
 * of held values, then the states of segments and contexts and the predicates, one byte each.
 * False: too large. */
static bool size_of_control(const tn_plan *plan, size_t begin, size_t *end)
{
  size_t size;
  *end = begin;
  if (!plan->has_control) return true;
  size_t readers;
  if (!tn__size_mul(plan->has_waits ? plan->n_held : 0, sizeof(uint32_t), &readers) ||
      !tn__size_add(begin, readers, &begin))
    return false;
  return tn__size_mul(plan->n_segments, sizeof(struct tn__pending *) + 1, &size) && tn__size_add(begin, size, &size) &&
         tn__size_add(size, (size_t)plan->conditions.n_contexts + 1 + plan->conditions.n_predicates, end);
}

/* Sets the pointers to these arrays. */
static void place_control(const tn_plan *plan, tn__workspace *w, size_t begin)
{
  if (!plan->has_control) return;
  w->pending = (struct tn__pending **)((char *)w + begin);
  w->readers_left = (uint32_t *)(w->pending + plan->n_segments);
  w->segment_states = (uint8_t *)(w->readers_left + (plan->has_waits ? plan->n_held : 0));
  w->context_states = w->segment_states + plan->n_segments;
  w->predicates = w->context_states + plan->conditions.n_contexts + 1;
}

/* One block: the instances, then entries, then held values, then the arrays for control flow. */
static tn__workspace *workspace_make(tn_plan *plan, tn_error *err)
{
  size_t entries, held, control, size;
  bool ok = tn__size_mul(plan->n_segments, sizeof(tn__instance *), &size) &&
            tn__size_add(sizeof(tn__workspace), size, &entries) &&
            tn__size_mul(plan->max_entries, sizeof(tn__entry), &size) && tn__size_add(entries, size, &held) &&
            tn__size_mul(plan->n_held, sizeof(tn_tensor *), &size) && tn__size_add(held, size, &control) &&
            size_of_control(plan, control, &size);
  tn__workspace *w = ok ? tn__zalloc(size) : NULL;
  if (w == NULL) {
    tn__no_memory(err, "memory of a step", held);
    return NULL;
  }
  w->block_bytes = size;
  w->entries = (tn__entry *)((char *)w + entries);
  w->held = (tn_tensor **)((char *)w + held);
  place_control(plan, w, control);
  w->generation = atomic_load(&plan->upgrade.generation);
  atomic_store_explicit(&tn__workspace_destroy, workspace_free, memory_order_release);
  return w;
}

/* The place in which this thread looks first, and in which it put its last workspace. */
static inline uint32_t own_place(void) { return tn__thread_place(TN__MAX_IDLE); }

/* Takes the workspace of any other place, or makes one. */
static tn__workspace *take_elsewhere(tn_plan *plan, uint32_t own, tn_error *err)
{
  for (uint32_t k = 1; k < TN__MAX_IDLE; k++) {
    _Atomic(tn__workspace *) *place = &plan->caches.idle[(own + k) % TN__MAX_IDLE].at;
    if (atomic_load_explicit(place, memory_order_relaxed) == NULL) continue;
    tn__workspace *w = atomic_exchange_explicit(place, NULL, memory_order_acq_rel);
    if (w != NULL) return w;
  }
  return workspace_make(plan, err);
}

tn__workspace *tn__workspace_take(tn_plan *plan, tn_error *err)
{
  uint32_t own = own_place();
  tn__workspace *w = atomic_exchange_explicit(&plan->caches.idle[own].at, NULL, memory_order_acq_rel);
  if (__builtin_expect(w == NULL, 0)) {
    w = take_elsewhere(plan, own, err);
    if (w == NULL) return NULL;
  }
  w->place = own;
  return w;
}

tn_status tn__workspace_reserve(tn__workspace *w, size_t bytes, bool in_use, tn_error *err)
{
  tn__account *account = tn__account_now;
  if (!in_use) drop_arena(w); /* first, so that the two arenas never exist at once */
  if (!tn__account_charge(account, bytes)) return tn__account_refuse(account, "memory of a step", bytes, err);
  char *arena = tn__alloc_aligned(bytes, TN_ALIGN);
  if (arena == NULL) {
    tn__account_credit(account, bytes);
    return tn__no_memory(err, "memory of a step", bytes);
  }
  drop_arena(w);
  w->arena = arena;
  w->account = tn__account_ref(account);
  w->arena_bytes = bytes;
  return TN_OK;
}

/* Frees memory that recent steps did not need: spares, and an arena that has been too large for 256
 * steps. */
static void workspace_tidy(tn__workspace *w)
{
  tn__spare_prune(w);
  w->n_small = w->used <= w->arena_bytes / 4 ? w->n_small + 1 : 0;
  w->used = 0;
  if (w->n_small < SMALL_LOOKS) return;
  drop_arena(w);
  w->n_small = 0;
}

/* Puts a workspace whose place was taken into another one; frees it if all are full. */
static void put_elsewhere(tn_plan *plan, tn__workspace *w, uint32_t own)
{
  for (uint32_t k = 1; k < TN__MAX_IDLE; k++) {
    tn__workspace *none = NULL;
    if (atomic_compare_exchange_strong(&plan->caches.idle[(own + k) % TN__MAX_IDLE].at, &none, w)) return;
  }
  workspace_free(plan, w);
}

void tn__workspace_put(tn_plan *plan, tn__workspace *w)
{
  if (++w->step % TIDY_STEPS == 0) workspace_tidy(w);
  uint32_t generation = w->generation;
  if (generation != atomic_load_explicit(&plan->upgrade.generation, memory_order_relaxed)) {
    workspace_free(plan, w);
    return;
  }
  uint32_t own = w->place; /* read before the exchange, after which another thread may take the workspace */
  tn__workspace *old = atomic_exchange_explicit(&plan->caches.idle[own].at, w, memory_order_acq_rel);
  if (__builtin_expect(old != NULL, 0)) put_elsewhere(plan, old, own);
  /* If the kernels were replaced since the check above, the idle workspaces may have been freed
   * before this one was put there: free them again. */
  bool changed = generation != atomic_load(&plan->upgrade.generation);
  if (__builtin_expect(changed, 0)) tn__plan_drop_workspaces(plan);
}
