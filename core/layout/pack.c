/* SPDX-License-Identifier: Apache-2.0 */
/* Packed constants: forms of weights that kernels make once. They are stored with the graph, so that its sessions share
 * them. A form is looked up by the constant's recipe, or else by its bytes, since folding makes new but equal constants
 * for each plan. A form lives as long as a layout uses it.
 *
 * The store's lock is held for look-ups only, and packing runs without it. Two threads may therefore pack the same
 * constant; one form is kept. Lock order: plan->mu before the store's lock. */
#include <core/layout/layout.h>

#include <core/base/map.h>
#include <core/base/threads/stop.h>
#include <string.h>

#define GRACE_NS 20000000 /* by which a form may exceed the time limit: 20 ms */

typedef struct pack_key {
  const tn_kernel_def *kernel;
  uint64_t key; /* chosen by the kernel */
  size_t bytes; /* of the form */
} pack_key;

/* A form of one constant. */
typedef struct pack {
  pack_key key;       /* the first of a list lends it to the store's map */
  struct pack *next;  /* form of another constant with the same key; guarded by the store's lock */
  tn_tensor *from;    /* owned reference, to compare its bytes; NULL if there is a recipe */
  tn__recipe *recipe; /* owned reference; NULL = none */
  uint64_t seen;      /* store.counts when it was counted last; guarded by the store's lock */
  uint32_t uses;      /* number of layouts that use it; guarded by the store's lock */
  void *data;         /* key.bytes, owned; written before it is in the store, then immutable */
} pack;

/* A layout's use of a form. A list of them is in the layout, or in plan->unfinished. */
struct tn__pack_use {
  struct tn__pack_use *next;
  pack *pack;
};

/* The packed constants of one graph. */
typedef struct store {
  tn__mutex mu;
  tn__map packs;   /* from a pack_key to a list of packs; guarded by mu */
  uint64_t counts; /* number of calls of tn__packs_count; guarded by mu */
} store;

static void *make_store(void)
{
  store *s = tn__zalloc(sizeof *s);
  if (s == NULL) return NULL;
  tn__mutex_init(&s->mu, "packed constants", TN_RANK_PACK);
  tn__map_init(&s->packs);
  return s;
}

/* Called when the graph is freed, after all its plans: the store is empty. */
static void free_store(void *data)
{
  store *s = data;
  tn__mutex_fini(&s->mu);
  tn__map_fini(&s->packs);
  tn__free(s, sizeof *s);
}

static store *store_of(tn_plan *plan) { return tn__graph_plan_data(plan->graphs.main, make_store, free_store); }

static void free_pack(pack *p)
{
  if (p == NULL) return;
  tn_tensor_unref(p->from);
  tn__recipe_unref(p->recipe);
  tn__free_aligned(p->data, p->key.bytes, TN_ALIGN);
  tn__free(p, sizeof *p);
}

static bool same_bytes(const tn_tensor *a, const tn_tensor *b)
{
  if (a == b) return true;
  if (a->dtype != b->dtype || a->rank != b->rank || a->bytes != b->bytes || tn__dtype_is_managed(a->dtype))
    return false;
  for (int32_t d = 0; d < a->rank; d++)
    if (a->dims[d] != b->dims[d]) return false;
  return a->bytes == 0 || memcmp(a->data, b->data, a->bytes) == 0;
}

/* ---- the store ---- */

/* A kernel's request for a form. All pointers are borrowed. */
typedef struct request {
  pack_key key;
  tn_tensor *from;    /* the constant; an outline if it has a recipe */
  tn__recipe *recipe; /* NULL = none */
  tn_status (*fn)(void *user, const tn_view *from, void *to, tn_error *err);
  void *user;
} request;

/* Whether the form was made from an equal constant. */
static bool answers(const pack *p, const request *r)
{
  if (r->recipe == NULL || p->recipe == NULL) return r->recipe == p->recipe && same_bytes(p->from, r->from);
  return tn__recipe_same(p->recipe, r->recipe);
}

static pack *find_locked(store *s, const request *r)
{
  tn__assert_held(&s->mu);
  pack *p = tn__map_get(&s->packs, (const char *)&r->key, sizeof r->key);
  while (p != NULL && !answers(p, r)) p = p->next;
  return p;
}

static bool add_locked(store *s, pack *p)
{
  tn__assert_held(&s->mu);
  pack *first = tn__map_get(&s->packs, (const char *)&p->key, sizeof p->key);
  if (first == NULL) return tn__map_put(&s->packs, (const char *)&p->key, sizeof p->key, p, NULL);
  p->next = first->next; /* the first one remains first: the map borrows its key */
  first->next = p;
  return true;
}

static void remove_locked(store *s, pack *p)
{
  tn__assert_held(&s->mu);
  pack *first = tn__map_get(&s->packs, (const char *)&p->key, sizeof p->key);
  if (first != p) {
    while (first->next != p) first = first->next;
    first->next = p->next;
    return;
  }
  tn__map_remove(&s->packs, (const char *)&p->key, sizeof p->key);
  if (p->next != NULL) tn__map_put(&s->packs, (const char *)&p->next->key, sizeof p->key, p->next, NULL); /* has room */
}

/* Ends one use of a form, and frees the form with the last. */
static void give_up(store *s, pack *p)
{
  tn__mutex_lock(&s->mu);
  bool last = --p->uses == 0;
  if (last) remove_locked(s, p);
  tn__mutex_unlock(&s->mu);
  if (last) free_pack(p);
}

static void release(tn_plan *plan, struct tn__pack_use *uses)
{
  store *s = uses == NULL ? NULL : store_of(plan);
  for (struct tn__pack_use *u = uses, *next; u != NULL; u = next) {
    next = u->next;
    give_up(s, u->pack);
    tn__free(u, sizeof *u);
  }
}

void tn__packs_release(tn__layout *layout)
{
  struct tn__pack_use *uses = layout->packs;
  layout->packs = NULL;
  release(layout->plan, uses);
}

/* A layout that ran out of time leaves its forms to the next attempt, which then has less to do. */
void tn__packs_leave(tn__layout *layout)
{
  tn_plan *plan = layout->plan;
  struct tn__pack_use **end = &layout->packs;
  while (*end != NULL) end = &(*end)->next;
  tn__mutex_lock(&plan->caches.mu);
  *end = plan->caches.unfinished;
  plan->caches.unfinished = layout->packs;
  tn__mutex_unlock(&plan->caches.mu);
  layout->packs = NULL;
}

void tn__packs_forget(tn_plan *plan)
{
  tn__mutex_lock(&plan->caches.mu);
  struct tn__pack_use *uses = plan->caches.unfinished;
  plan->caches.unfinished = NULL;
  tn__mutex_unlock(&plan->caches.mu);
  release(plan, uses);
}

void tn__packs_count(tn_plan *plan, uint64_t *n, uint64_t *bytes)
{
  tn__assert_held(&plan->caches.mu);
  *n = *bytes = 0;
  store *s = store_of(plan);
  if (s == NULL) return;
  tn__mutex_lock(&s->mu);
  s->counts++;
  for (uint32_t i = 0; i < plan->n_segments; i++)
    for (const tn__layout *l = plan->segments[i].layouts; l != NULL; l = l->next)
      for (const struct tn__pack_use *u = l->packs; u != NULL; u = u->next) {
        if (u->pack->seen == s->counts) continue; /* equal constants share a form */
        u->pack->seen = s->counts;
        ++*n;
        *bytes += u->pack->key.bytes;
      }
  tn__mutex_unlock(&s->mu);
}

/* ---- packing ---- */

/* Packs with a time limit that is later by GRACE_NS: otherwise calls with a short limit would never complete a form. */
static tn_status run(const request *r, const tn_view *from, void *to, tn_error *err)
{
  const tn__stop *around = tn__stop_now;
  tn__stop later = around == NULL ? (tn__stop){ NULL, NULL, 0 } : *around;
  if (later.deadline_ns != 0 && later.deadline_ns < INT64_MAX - GRACE_NS) later.deadline_ns += GRACE_NS;
  tn__stop_now = around == NULL ? NULL : &later;
  tn_status st = r->fn(r->user, from, to, err);
  if (st == TN_OK) st = tn__prepare_check(NULL, err); /* if stopped, the form may be incomplete */
  tn__stop_now = around;
  return st;
}

/* Makes a form that is in no store. Its memory is allocated before the constant's elements, so that these leave no hole
 * in the heap when they are released. */
static tn_status make_pack(const request *r, tn_plan *plan, uint32_t value, pack **out, tn_error *err)
{
  *out = tn__zalloc(sizeof **out);
  if (*out == NULL) return tn__no_memory(err, "packed constant", sizeof **out);
  **out = (pack){ .key = r->key, .recipe = tn__recipe_ref(r->recipe) };
  if (r->recipe == NULL) (*out)->from = tn_tensor_ref(r->from);
  (*out)->data = tn__alloc_aligned(r->key.bytes, TN_ALIGN);
  tn_tensor *elements = NULL;
  tn_status st = (*out)->data == NULL ? tn__no_memory(err, "packed constant", r->key.bytes) : TN_OK;
  if (st == TN_OK) st = tn__plan_need_elements(plan, value, &elements, err);
  if (st == TN_OK) {
    const tn_view view = { .data = elements->data, .dims = elements->dims, .count = elements->count,
                           .dtype = elements->dtype, .rank = elements->rank };
    st = run(r, &view, (*out)->data, err);
  }
  tn_tensor_unref(elements);
  /* released at once, so that the next constant's elements can use the memory */
  if (plan->values[value].n_uses == 1) tn__plan_drop_elements(plan, value);
  if (st == TN_OK) return TN_OK;
  free_pack(*out);
  *out = NULL;
  return st;
}

/* Takes the form from the store, or makes it now. Adds a use. */
static tn_status obtain(store *s, const request *r, tn_plan *plan, uint32_t value, pack **out, tn_error *err)
{
  tn__mutex_lock(&s->mu);
  pack *p = find_locked(s, r);
  if (p != NULL) p->uses++;
  tn__mutex_unlock(&s->mu);
  *out = p;
  if (p != NULL) return TN_OK;
  pack *made;
  tn_status st = make_pack(r, plan, value, &made, err);
  if (st != TN_OK) return st;
  tn__mutex_lock(&s->mu);
  p = find_locked(s, r);
  if (p == NULL && add_locked(s, made)) {
    p = made;
    made = NULL;
  }
  if (p != NULL) p->uses++;
  tn__mutex_unlock(&s->mu);
  free_pack(made);
  *out = p;
  return p != NULL ? TN_OK : tn__no_memory(err, "packed constant", r->key.bytes);
}

tn_status tn_prepare_pack(tn_prepare_ctx *ctx, uint32_t i, uint64_t key, size_t bytes,
                          tn_status (*fn)(void *user, const tn_view *from, void *to, tn_error *err), void *user,
                          const void **packed, tn_error *err)
{
  tn__prepared *p = ctx->host;
  if (packed != NULL) *packed = NULL;
  if (packed == NULL || fn == NULL || i >= ctx->n_inputs)
    return tn_error_set(err, TN_INTERNAL, "kernel '%s' of node '%s' packs input %u, there are %u", p->kernel->def->name,
                        tn_operation_name(p->instr->op), i, ctx->n_inputs);
  tn_plan *plan = p->plan;
  uint32_t value = tn__instr_inputs(plan, p->instr)[i];
  const tn__plan_value *v = &plan->values[value];
  if (v->constant == NULL || (v->recipe == NULL && v->constant->data == NULL && v->constant->bytes > 0))
    return tn_error_set(err, TN_FAILED_PRECONDITION, "input %u is not a constant", i);
  store *s = store_of(plan);
  struct tn__pack_use *use = s == NULL ? NULL : tn__zalloc(sizeof *use);
  if (use == NULL) return tn__no_memory(err, "packed constant", bytes);
  const request r = { { p->kernel->def, key, bytes == 0 ? 1 : bytes }, v->constant, v->recipe, fn, user };
  tn_status st = obtain(s, &r, plan, value, &use->pack, err);
  if (st != TN_OK) {
    tn__free(use, sizeof *use);
    return st;
  }
  *packed = use->pack->data;
  use->next = p->layout->packs;
  p->layout->packs = use;
  if (p->packed != NULL) p->packed[i] = true;
  return TN_OK;
}
