/* SPDX-License-Identifier: Apache-2.0 */
/* Forms of constants that kernels make once: packed weights. They hang on the graph, so its sessions share them, and are
 * found by the constant's bytes, since folding makes equal constants anew for each plan. A form lives as long as a plan
 * uses it.
 *
 * The store's lock is held for look-ups only; packing runs without it, so two threads may pack the same, and one form is
 * kept. */
#include <core/plan/layout.h>

#include <string.h>

typedef struct tn__pack {
  struct tn__pack *next;
  const tn_kernel_def *kernel;
  uint64_t key;
  tn_tensor *from; /* a reference, so that its bytes can be compared */
  size_t bytes;
  uint32_t uses;   /* of plans, guarded by the store's lock */
  void *data;
} pack;

struct tn__pack_use {
  struct tn__pack_use *next;
  pack *pack;
  const tn_tensor *from; /* as this plan calls it */
};

typedef struct store {
  tn__mutex mu;
  pack *packs; /* guarded by mu */
} store;

static void *make_store(void)
{
  store *s = tn__zalloc(sizeof *s);
  if (s != NULL) tn__mutex_init(&s->mu, "packed constants", TN_RANK_PACK);
  return s;
}

static void free_store(void *data) /* with its graph, so after all plans: it is empty */
{
  store *s = data;
  tn__mutex_fini(&s->mu);
  tn__free(s, sizeof *s);
}

static void free_pack(pack *p)
{
  if (p == NULL) return;
  tn_tensor_unref(p->from);
  tn__free_aligned(p->data, p->bytes, TN_ALIGN);
  tn__free(p, sizeof *p);
}

static bool same_bytes(const tn_tensor *a, const tn_tensor *b)
{
  if (a == b) return true;
  if (a->dtype != b->dtype || a->rank != b->rank || a->bytes != b->bytes || tn__dtype_is_managed(a->dtype)) return false;
  for (int32_t d = 0; d < a->rank; d++)
    if (a->dims[d] != b->dims[d]) return false;
  return a->bytes == 0 || memcmp(a->data, b->data, a->bytes) == 0;
}

static pack *find_locked(store *s, const tn_kernel_def *kernel, uint64_t key, size_t bytes, const tn_tensor *from)
{
  tn__assert_held(&s->mu);
  pack *p = s->packs;
  while (p != NULL && (p->kernel != kernel || p->key != key || p->bytes != bytes || !same_bytes(p->from, from)))
    p = p->next;
  return p;
}

/* ---- what a plan uses ---- */

static const void *find_used(tn_plan *plan, const tn_kernel_def *kernel, uint64_t key, const tn_tensor *from)
{
  tn__mutex_lock(&plan->mu);
  struct tn__pack_use *u = plan->packs;
  while (u != NULL && (u->from != from || u->pack->kernel != kernel || u->pack->key != key)) u = u->next;
  tn__mutex_unlock(&plan->mu);
  return u == NULL ? NULL : u->pack->data;
}

static void note_use(tn_plan *plan, struct tn__pack_use *use)
{
  tn__mutex_lock(&plan->mu);
  use->next = plan->packs;
  plan->packs = use;
  tn__mutex_unlock(&plan->mu);
}

static void give_up(store *s, pack *p)
{
  tn__mutex_lock(&s->mu);
  bool last = --p->uses == 0;
  if (last) {
    pack **at = &s->packs;
    while (*at != p) at = &(*at)->next;
    *at = p->next;
  }
  tn__mutex_unlock(&s->mu);
  if (last) free_pack(p);
}

void tn__packs_release(tn_plan *plan)
{
  store *s = plan->packs == NULL ? NULL : tn__graph_plan_data(plan->graph, make_store, free_store);
  while (plan->packs != NULL) {
    struct tn__pack_use *u = plan->packs;
    plan->packs = u->next;
    give_up(s, u->pack);
    tn__free(u, sizeof *u);
  }
}

void tn__packs_count(tn_plan *plan, uint64_t *n, uint64_t *bytes)
{
  tn__assert_held(&plan->mu);
  *n = *bytes = 0;
  for (const struct tn__pack_use *u = plan->packs; u != NULL; u = u->next) {
    const struct tn__pack_use *other = u->next; /* equal constants share a form */
    while (other != NULL && other->pack != u->pack) other = other->next;
    if (other != NULL) continue;
    ++*n;
    *bytes += u->pack->bytes;
  }
}

/* ---- packing ---- */

typedef struct request {
  const tn_kernel_def *kernel;
  uint64_t key;
  size_t bytes;
  tn_tensor *from;
  tn_status (*fn)(void *user, const tn_view *from, void *to, tn_error *err);
  void *user;
} request;

static tn_status make_pack(const request *r, pack **out, tn_error *err)
{
  *out = tn__zalloc(sizeof **out);
  if (*out == NULL) return tn__no_memory(err, "packed constant", sizeof **out);
  **out = (pack){ .kernel = r->kernel, .key = r->key, .from = tn_tensor_ref(r->from), .bytes = r->bytes };
  (*out)->data = tn__alloc_aligned(r->bytes, TN_ALIGN);
  tn_status st = (*out)->data == NULL ? tn__no_memory(err, "packed constant", r->bytes) : TN_OK;
  const tn_tensor *t = r->from;
  const tn_view view = { .data = t->data, .dims = t->dims, .count = t->count, .dtype = t->dtype, .rank = t->rank };
  if (st == TN_OK) st = r->fn(r->user, &view, (*out)->data, err);
  if (st == TN_OK) return TN_OK;
  free_pack(*out);
  *out = NULL;
  return st;
}

/* The form from the store, or made now; one more use is counted. */
static tn_status obtain(store *s, const request *r, pack **out, tn_error *err)
{
  tn__mutex_lock(&s->mu);
  pack *p = find_locked(s, r->kernel, r->key, r->bytes, r->from);
  if (p != NULL) p->uses++;
  tn__mutex_unlock(&s->mu);
  *out = p;
  if (p != NULL) return TN_OK;
  pack *made;
  tn_status st = make_pack(r, &made, err);
  if (st != TN_OK) return st;
  tn__mutex_lock(&s->mu);
  p = find_locked(s, r->kernel, r->key, r->bytes, r->from);
  if (p == NULL) {
    p = made;
    p->next = s->packs;
    s->packs = p;
    made = NULL;
  }
  p->uses++;
  tn__mutex_unlock(&s->mu);
  free_pack(made);
  *out = p;
  return TN_OK;
}

tn_status tn_prepare_pack(tn_prepare_ctx *ctx, uint32_t i, uint64_t key, size_t bytes,
                          tn_status (*fn)(void *user, const tn_view *from, void *to, tn_error *err), void *user,
                          const void **packed, tn_error *err)
{
  tn__prepared *p = ctx->host;
  if (packed != NULL) *packed = NULL;
  if (packed == NULL || fn == NULL || i >= ctx->n_inputs)
    return tn_error_set(err, TN_INTERNAL, "kernel '%s' of node '%s' packs input %u of %u", p->kernel->def->name,
                        tn_operation_name(ctx->op), i, ctx->n_inputs);
  tn_plan *plan = p->plan;
  tn_tensor *from = plan->values[tn__instr_inputs(plan, p->instr)[i]].constant;
  if (from == NULL || (from->data == NULL && from->bytes > 0))
    return tn_error_set(err, TN_FAILED_PRECONDITION, "input %u is no constant", i);
  *packed = find_used(plan, p->kernel->def, key, from);
  if (*packed != NULL) return TN_OK;
  store *s = tn__graph_plan_data(plan->graph, make_store, free_store);
  struct tn__pack_use *use = s == NULL ? NULL : tn__zalloc(sizeof *use);
  if (use == NULL) return tn__no_memory(err, "packed constant", bytes);
  const request r = { p->kernel->def, key, bytes == 0 ? 1 : bytes, from, fn, user };
  tn_status st = obtain(s, &r, &use->pack, err);
  if (st != TN_OK) {
    tn__free(use, sizeof *use);
    return st;
  }
  use->from = from;
  *packed = use->pack->data;
  note_use(plan, use);
  return TN_OK;
}
