/* SPDX-License-Identifier: Apache-2.0 */
/* The table of ops and kernels of the process.
 *
 * At the first look-up the library's own families are entered by name only, and a schema is parsed when it is first
 * looked up. So a program that needs ten ops does not parse seven hundred. Families of plugins and programs are parsed
 * when they are registered, so that malformed ones are refused.
 *
 * One readers-writer lock guards names, lists of kernels and parsing. A schema in state READY never changes, except for
 * its lists of kernels and rewrites.
 *
 * While a plugin's init code runs (registrar.h), its families are checked but not left in the table; they are entered
 * together when the plugin has started. */
#include <core/base/plugin_call.h>
#include <core/base/registrar.h>
#include <core/graph/graph_structs.h>

#include <stdlib.h>
#include <string.h>

typedef struct family_entry {
  struct family_entry *next;
  const tn_op_family *family;
  tn_op_schema *schemas; /* n_ops */
  tn__kernel *kernels;   /* n_kernels */
  tn__rewrite *rewrites; /* n_rewrites */
  tn__arena arena;       /* of the origin and of constraints of kernels */
  const char *origin;    /* "the library", "the program" or "plugin ...", for messages */
  tn__guest guest;       /* the plugin that registered it; the name is NULL if none did */
} family_entry;

static tn__rwlock lock = { PTHREAD_RWLOCK_INITIALIZER, "op table", TN_RANK_OPS };
static atomic_bool own_families_in; /* stored (release) after they are entered, loaded (acquire) before look-ups */
/* Guarded by lock: */
static tn__map by_name;        /* to tn_op_schema */
static family_entry *families; /* newest first */
static uint32_t n_kernels_ever;
static const tn_op_schema *own_call; /* the op with TN_TRAIT_OWN_CALL */
static const tn_op_schema **sorted;  /* all schemas by name; made on demand, stale if n_sorted is not by_name.count */
static size_t n_sorted, sorted_room;

/* A family's structs may be longer than ours, if it was built with newer headers: their own size is the stride. */
static const tn_op_def *op_at(const tn_op_family *f, size_t i)
{
  return (const tn_op_def *)((const char *)f->ops + i * tn__round_up(f->ops->struct_size, _Alignof(tn_op_def)));
}
static const tn_kernel_def *kernel_at(const tn_op_family *f, size_t i)
{
  size_t size = tn__round_up(f->kernels->struct_size, _Alignof(tn_kernel_def));
  return (const tn_kernel_def *)((const char *)f->kernels + i * size);
}

static const tn_rewrite_def *rewrite_at(const tn_op_family *f, size_t i)
{
  size_t size = tn__round_up(f->rewrites->struct_size, _Alignof(tn_rewrite_def));
  return (const tn_rewrite_def *)((const char *)f->rewrites + i * size);
}
static size_t n_rewrites(const tn_op_family *f)
{
  return TN_HAS_FIELD(f, tn_op_family, n_rewrites) ? f->n_rewrites : 0;
}

static const tn_cost_def *cost_at(const tn_op_family *f, size_t i)
{
  size_t size = tn__round_up(f->costs->struct_size, _Alignof(tn_cost_def));
  return (const tn_cost_def *)((const char *)f->costs + i * size);
}
static size_t n_costs(const tn_op_family *f) { return TN_HAS_FIELD(f, tn_op_family, n_costs) ? f->n_costs : 0; }

/* ---- checks ---- */

/* The upper bound catches uninitialised sizes. */
static tn_status check_struct(const char *what, const char *name, size_t found, size_t wanted, tn_error *err)
{
  if (found >= wanted && found <= 4096) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s '%s': struct_size is %zu, wanted at least %zu", what,
                      name == NULL ? "" : name, found, wanted);
}

static tn_status check_op(const tn_op_family *f, size_t i, tn_error *err)
{
  const tn_op_def *d = op_at(f, i);
  tn_status st = check_struct("op", i == 0 ? NULL : d->name, d->struct_size, TN_OP_DEF_SIZE, err);
  if (st != TN_OK) return st;
  if (d->name == NULL || !tn__op_type_is_valid(d->name, strlen(d->name)))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "family '%s': op %zu has no valid name: '%s'", f->name, i,
                        d->name == NULL ? "" : d->name);
  return TN_OK;
}

static const char *kernel_name(const tn_kernel_def *k)
{
  if (k->name != NULL) return k->name;
  return k->op != NULL ? k->op : "";
}

static tn_status check_kernel(const tn_op_family *f, size_t i, tn_error *err)
{
  const tn_kernel_def *k = kernel_at(f, i);
  tn_status st = check_struct("kernel", i == 0 ? NULL : k->name, k->struct_size, TN_KERNEL_DEF_SIZE, err);
  if (st != TN_OK) return st;
  const char *missing = NULL;
  if (k->compute == NULL) missing = "compute";
  if (k->prepare == NULL) missing = "prepare";
  if (k->name == NULL) missing = "name";
  if (k->device == NULL || *k->device == 0) missing = "device";
  if (k->op == NULL) missing = "op";
  if (missing == NULL) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "family '%s': kernel %zu ('%s') lacks '%s'", f->name, i, kernel_name(k),
                      missing);
}

static tn_status check_rewrite(const tn_op_family *f, size_t i, tn_error *err)
{
  const tn_rewrite_def *r = rewrite_at(f, i);
  tn_status st = check_struct("rewrite", i == 0 ? NULL : r->name, r->struct_size, TN_REWRITE_DEF_SIZE, err);
  if (st != TN_OK) return st;
  if (r->pass != NULL && r->name != NULL && r->op != NULL && r->apply != NULL) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "family '%s': rewrite %zu ('%s') lacks its pass, name, op or apply",
                      f->name, i, r->name == NULL ? "" : r->name);
}

static tn_status check_cost(const tn_op_family *f, size_t i, tn_error *err)
{
  const tn_cost_def *c = cost_at(f, i);
  tn_status st = check_struct("cost", i == 0 ? NULL : c->op, c->struct_size, TN_COST_DEF_SIZE, err);
  if (st != TN_OK || (c->op != NULL && c->cost != NULL)) return st;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "family '%s': cost %zu ('%s') lacks its op or function", f->name, i,
                      c->op == NULL ? "" : c->op);
}

static tn_status check_family(const tn_op_family *f, tn_error *err)
{
  if (f == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "no family of ops given");
  tn_status st = check_struct("family", NULL, f->struct_size, TN_OP_FAMILY_SIZE, err);
  if (st != TN_OK) return st;
  if (f->name == NULL || (f->n_ops != 0 && f->ops == NULL) || (f->n_kernels != 0 && f->kernels == NULL) ||
      (n_rewrites(f) != 0 && f->rewrites == NULL) || (n_costs(f) != 0 && f->costs == NULL))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "family '%s': its name or a table is missing",
                        f->name == NULL ? "" : f->name);
  for (size_t i = 0; st == TN_OK && i < f->n_ops; i++) st = check_op(f, i, err);
  for (size_t i = 0; st == TN_OK && i < f->n_kernels; i++) st = check_kernel(f, i, err);
  for (size_t i = 0; st == TN_OK && i < n_rewrites(f); i++) st = check_rewrite(f, i, err);
  for (size_t i = 0; st == TN_OK && i < n_costs(f); i++) st = check_cost(f, i, err);
  return st;
}

/* ---- kernels of an op ---- */

static bool better(const tn__kernel *a, const tn__kernel *b)
{
  return a->def->rank != b->def->rank ? a->def->rank > b->def->rank : a->order < b->order;
}

static void link_kernel(tn__kernel *kernel)
{
  tn__kernel **at = &kernel->schema->kernels;
  while (*at != NULL && better(*at, kernel)) at = &(*at)->next;
  kernel->next = *at;
  *at = kernel;
}

static void unlink_kernel(const tn__kernel *kernel)
{
  if (kernel->schema == NULL) return; /* the op was removed first */
  tn__kernel **at = &kernel->schema->kernels;
  while (*at != NULL && *at != kernel) at = &(*at)->next;
  if (*at != NULL) *at = kernel->next;
}

/* ---- rewrites of an op ---- */

static void unlink_rewrite(const tn__rewrite *rewrite)
{
  if (rewrite->def == NULL) return;
  tn_op_schema *s = tn__map_get(&by_name, rewrite->def->op, strlen(rewrite->def->op));
  tn__rewrite *_Atomic *at = s == NULL ? NULL : &s->rewrites;
  while (at != NULL && atomic_load(at) != NULL && atomic_load(at) != rewrite) at = &atomic_load(at)->next;
  if (at != NULL && atomic_load(at) == rewrite) atomic_store(at, atomic_load(&rewrite->next));
}

/* Links the family's rewrites to their ops. A rewrite of an unknown op is ignored: it could never apply. */
static void enter_rewrites(family_entry *e)
{
  for (size_t i = 0; i < n_rewrites(e->family); i++) {
    const tn_rewrite_def *def = rewrite_at(e->family, i);
    tn_op_schema *s = tn__map_get(&by_name, def->op, strlen(def->op));
    if (s == NULL) continue;
    e->rewrites[i].def = def;
    tn__rewrite *_Atomic *at = &s->rewrites;
    while (atomic_load(at) != NULL) at = &atomic_load(at)->next;
    atomic_store_explicit(at, &e->rewrites[i], memory_order_release);
  }
}

const tn_rewrite_def *tn__schema_rewrite(const tn_op_schema *schema, size_t i)
{
  const tn__rewrite *r = atomic_load_explicit(&schema->rewrites, memory_order_acquire);
  while (r != NULL && i-- > 0) r = atomic_load_explicit(&r->next, memory_order_acquire);
  return r == NULL ? NULL : r->def;
}

/* ---- costs of an op ---- */

/* Sets the family's costs in the schemas of their ops. A cost of an unknown op is ignored. */
static void enter_costs(const tn_op_family *f)
{
  for (size_t i = 0; i < n_costs(f); i++) {
    const tn_cost_def *def = cost_at(f, i), *none = NULL;
    tn_op_schema *s = tn__map_get(&by_name, def->op, strlen(def->op));
    if (s != NULL) atomic_compare_exchange_strong(&s->cost, &none, def);
  }
}

static void remove_costs(const tn_op_family *f)
{
  for (size_t i = 0; i < n_costs(f); i++) {
    const tn_cost_def *def = cost_at(f, i);
    tn_op_schema *s = tn__map_get(&by_name, def->op, strlen(def->op));
    if (s != NULL) atomic_compare_exchange_strong(&s->cost, &def, NULL);
  }
}

/* ---- parsing at first use (_locked: the lock is held for writing) ---- */

static tn_status parse_locked(tn_op_schema *s, tn_error *err)
{
  tn_status st = tn__schema_parse(s, err);
  for (tn__kernel *k = s->kernels; st == TN_OK && k != NULL; k = k->next) {
    st = tn__constraints_parse(s, k->def, &s->arena, &k->constraints, &k->n_constraints, err);
    if (st != TN_OK) tn_error_prefix(err, "kernel '%s'", k->def->name);
  }
  if (st == TN_OK) {
    atomic_store_explicit(&s->state, TN__SCHEMA_READY, memory_order_release);
    return TN_OK;
  }
  for (tn__kernel *k = s->kernels; k != NULL; k = k->next) k->constraints = NULL, k->n_constraints = 0;
  tn__arena_fini(&s->arena);
  s->n_attrs = s->n_inputs = s->n_outputs = 0;
  /* After a lack of memory the schema stays RAW, and the next look-up tries again. */
  if (st != TN_RESOURCE_EXHAUSTED) atomic_store_explicit(&s->state, TN__SCHEMA_BAD, memory_order_release);
  return st;
}

/* Returns the schema, parsed. Only schemas of the library itself are parsed here, and its tests parse all of them; a
 * malformed one is logged and its op counts as unknown. */
static const tn_op_schema *ready(tn_op_schema *s)
{
  if (s == NULL) return NULL;
  int state = atomic_load_explicit(&s->state, memory_order_acquire);
  if (state == TN__SCHEMA_RAW) {
    tn_error err = TN_ERROR_INIT;
    tn__rwlock_write(&lock);
    state = atomic_load_explicit(&s->state, memory_order_relaxed);
    if (state == TN__SCHEMA_RAW && parse_locked(s, &err) == TN_OK) state = TN__SCHEMA_READY;
    tn__rwlock_unlock(&lock);
    if (tn_error_code(&err) != TN_OK)
      tn_log(TN_LOG_ERROR, "op '%s' cannot be used: %s", s->name, tn_error_message(&err));
    tn_error_clear(&err);
  }
  return state == TN__SCHEMA_READY ? s : NULL;
}

/* ---- entering and removing families; the lock is held for writing ---- */

static void free_entry(family_entry *e)
{
  for (size_t i = 0; e->schemas != NULL && i < e->family->n_ops; i++)
    if (atomic_load(&e->schemas[i].state) == TN__SCHEMA_READY) tn__arena_fini(&e->schemas[i].arena);
  tn__arena_fini(&e->arena);
  tn__free(e->schemas, e->family->n_ops * sizeof *e->schemas);
  tn__free(e->kernels, e->family->n_kernels * sizeof *e->kernels);
  tn__free(e->rewrites, n_rewrites(e->family) * sizeof *e->rewrites);
  tn__free(e, sizeof *e);
}

/* Undoes the entry of a family: the first n_names ops and n_linked kernels, and all rewrites. */
static void leave(family_entry *e, size_t n_names, size_t n_linked)
{
  for (size_t i = 0; i < n_linked; i++) unlink_kernel(&e->kernels[i]);
  for (size_t i = 0; i < n_rewrites(e->family); i++) unlink_rewrite(&e->rewrites[i]);
  remove_costs(e->family);
  for (size_t i = 0; i < n_names; i++) {
    for (tn__kernel *k = e->schemas[i].kernels; k != NULL; k = k->next) k->schema = NULL;
    tn__map_remove(&by_name, e->schemas[i].name, e->schemas[i].name_size);
    if (own_call == &e->schemas[i]) own_call = NULL;
  }
  n_sorted = 0;
}

static const char *origin_of(const tn_op_schema *s)
{
  for (const family_entry *e = families; e != NULL; e = e->next)
    if (e->schemas != NULL && s >= e->schemas && s < e->schemas + e->family->n_ops) return e->origin;
  return "this family";
}

static const char own_origin[] = "the library";

static const char *new_origin(tn__arena *arena)
{
  if (!atomic_load_explicit(&own_families_in, memory_order_relaxed)) return own_origin;
  const tn__registrar *r = tn__registrar_now;
  return r == NULL ? "the program" : tn__arena_string(arena, r->who, strlen(r->who));
}

static tn_status new_entry(const tn_op_family *f, family_entry **out, tn_error *err)
{
  family_entry *e = tn__zalloc(sizeof *e);
  if (e == NULL) return tn__no_memory(err, "family of ops", sizeof *e);
  e->family = f;
  tn__arena_init(&e->arena, 256);
  e->origin = new_origin(&e->arena);
  if (tn__registrar_now != NULL) e->guest = (tn__guest){ tn__registrar_now->name, tn__registrar_now->file };
  e->schemas = f->n_ops == 0 ? NULL : tn__alloc_array(f->n_ops, sizeof *e->schemas);
  e->kernels = f->n_kernels == 0 ? NULL : tn__alloc_array(f->n_kernels, sizeof *e->kernels);
  e->rewrites = n_rewrites(f) == 0 ? NULL : tn__alloc_array(n_rewrites(f), sizeof *e->rewrites);
  if (e->origin == NULL || (f->n_ops != 0 && e->schemas == NULL) || (f->n_kernels != 0 && e->kernels == NULL) ||
      (n_rewrites(f) != 0 && e->rewrites == NULL) ||
      !tn__map_reserve(&by_name, by_name.count + f->n_ops)) {
    free_entry(e);
    return tn__no_memory(err, "family of ops", f->n_ops * sizeof *e->schemas);
  }
  *out = e;
  return TN_OK;
}

/* Enters op i of a family. eager: parse it now, so that a malformed schema is refused. */
static tn_status enter_op(family_entry *e, size_t i, bool eager, tn_error *err)
{
  tn_op_schema *s = &e->schemas[i];
  s->def = op_at(e->family, i);
  s->name = s->def->name;
  s->name_size = (uint32_t)strlen(s->name);
  s->traits = s->def->traits;
  s->shape_operands = s->def->shape_operands;
  s->constant_attr = -1;
  s->is_own = e->origin == own_origin;
  const tn_op_schema *there = tn__map_get(&by_name, s->name, s->name_size);
  if (there != NULL)
    return tn_error_set(err, TN_ALREADY_EXISTS, "op '%s' is registered already, by %s", s->name, origin_of(there));
  tn_status st = eager ? parse_locked(s, err) : TN_OK;
  if (st == TN_OK) tn__map_put(&by_name, s->name, s->name_size, s, NULL); /* new_entry has reserved room */
  if (st == TN_OK && own_call == NULL && (s->traits & TN_TRAIT_OWN_CALL)) own_call = s;
  return st;
}

static tn_status enter_kernel(family_entry *e, size_t i, tn_error *err)
{
  tn__kernel *k = &e->kernels[i];
  k->def = kernel_at(e->family, i);
  k->order = n_kernels_ever++;
  k->schema = tn__map_get(&by_name, k->def->op, strlen(k->def->op));
  if (k->schema == NULL)
    return tn_error_set(err, TN_NOT_FOUND, "kernel '%s': op '%s' is not registered", k->def->name, k->def->op);
  if (atomic_load(&k->schema->state) == TN__SCHEMA_READY) {
    tn_status st = tn__constraints_parse(k->schema, k->def, &e->arena, &k->constraints, &k->n_constraints, err);
    if (st != TN_OK) return tn_error_prefix(err, "kernel '%s'", k->def->name), st;
  }
  link_kernel(k);
  return TN_OK;
}

static tn_status enter_family(const tn_op_family *f, tn_error *err)
{
  family_entry *e = NULL;
  tn_status st = new_entry(f, &e, err);
  if (st != TN_OK) return st;
  size_t n_names = 0, n_linked = 0;
  while (st == TN_OK && n_names < f->n_ops)
    if ((st = enter_op(e, n_names, true, err)) == TN_OK) n_names++;
  /* A kernel may be for an op that has not been looked up, and so not parsed, yet. */
  for (size_t i = 0; st == TN_OK && i < f->n_kernels; i++) {
    tn_op_schema *s = tn__map_get(&by_name, kernel_at(f, i)->op, strlen(kernel_at(f, i)->op));
    if (s != NULL && atomic_load(&s->state) == TN__SCHEMA_RAW) st = parse_locked(s, err);
  }
  while (st == TN_OK && n_linked < f->n_kernels)
    if ((st = enter_kernel(e, n_linked, err)) == TN_OK) n_linked++;
  if (st != TN_OK) {
    leave(e, n_names, n_linked);
    free_entry(e);
    return tn_error_prefix(err, "family '%s'", f->name), st;
  }
  enter_rewrites(e);
  enter_costs(f);
  e->next = families;
  families = e;
  n_sorted = 0;
  return TN_OK;
}

/* ---- the library's own families ---- */

static void drop_all_locked(void)
{
  for (family_entry *e = families, *next; e != NULL; e = next) {
    next = e->next;
    free_entry(e);
  }
  families = NULL;
  own_call = NULL;
  tn__map_fini(&by_name);
}

static tn_status enter_own_family_names(const tn_op_family *f, tn_error *err)
{
  tn_status st = check_family(f, err);
  family_entry *e = NULL;
  if (st == TN_OK) st = new_entry(f, &e, err);
  if (st != TN_OK) return st;
  for (size_t i = 0; i < f->n_ops; i++) {
    tn_status op_st = enter_op(e, i, false, err);
    if (op_st != TN_OK) st = op_st;
  }
  e->next = families;
  families = e;
  return st;
}

/* Families first, then kernels, rewrites and costs, because these may be for ops of later families. Malformed families
 * and kernels are logged and left out; only a lack of memory is an error, after which nothing is entered. */
static tn_status enter_own_locked(tn_error *err)
{
  tn_status st = TN_OK;
  for (size_t i = 0; st != TN_RESOURCE_EXHAUSTED && i < tn__n_op_families; i++) {
    tn_error why = TN_ERROR_INIT;
    st = enter_own_family_names(tn__op_families[i], &why);
    if (st == TN_RESOURCE_EXHAUSTED)
      tn_error_copy(err, &why);
    else if (st != TN_OK)
      tn_log(TN_LOG_ERROR, "family of ops %zu: %s", i, tn_error_message(&why));
    tn_error_clear(&why);
  }
  for (family_entry *e = families; st != TN_RESOURCE_EXHAUSTED && e != NULL; e = e->next)
    for (size_t i = 0; i < e->family->n_kernels; i++) {
      tn_error why = TN_ERROR_INIT;
      if (enter_kernel(e, i, &why) != TN_OK) tn_log(TN_LOG_ERROR, "%s", tn_error_message(&why));
      tn_error_clear(&why);
    }
  for (family_entry *e = families; st != TN_RESOURCE_EXHAUSTED && e != NULL; e = e->next) {
    enter_rewrites(e);
    enter_costs(e->family);
  }
  if (st == TN_RESOURCE_EXHAUSTED) drop_all_locked();
  return st == TN_RESOURCE_EXHAUSTED ? st : TN_OK;
}

tn_status tn__ops_ensure(tn_error *err)
{
  if (atomic_load_explicit(&own_families_in, memory_order_acquire)) return TN_OK;
  tn__rwlock_write(&lock);
  tn_status st = TN_OK;
  if (!atomic_load_explicit(&own_families_in, memory_order_relaxed)) {
    st = enter_own_locked(err);
    if (st == TN_OK) atomic_store_explicit(&own_families_in, true, memory_order_release);
  }
  tn__rwlock_unlock(&lock);
  return st;
}

/* ---- registering ---- */

static void remove_locked(const tn_op_family *family)
{
  family_entry **at = &families;
  while (*at != NULL && (*at)->family != family) at = &(*at)->next;
  family_entry *e = *at;
  if (e == NULL) return;
  *at = e->next;
  leave(e, family->n_ops, family->n_kernels);
  free_entry(e);
}

/* Enters all families of the registrar, and `last` if it is not NULL. On failure it enters none. */
static tn_status enter_all_locked(const tn__registrar *r, const tn_op_family *last, tn_error *err)
{
  tn_status st = TN_OK;
  size_t n = 0;
  while (st == TN_OK && n < r->n)
    if ((st = enter_family(r->families[n], err)) == TN_OK) n++;
  if (st == TN_OK && last != NULL) st = enter_family(last, err);
  while (st != TN_OK && n > 0) remove_locked(r->families[--n]);
  return st;
}

static bool has_put_down(const tn__registrar *r, const char *op)
{
  for (size_t i = 0; i < r->n; i++) {
    const tn_op_family *f = r->families[i];
    for (size_t k = 0; k < f->n_ops; k++)
      if (strcmp(op_at(f, k)->name, op) == 0) return true;
  }
  return false;
}

static tn_status settle(tn__registrar *r, bool keep, tn_error *err)
{
  tn_status st = TN_OK;
  if (keep) {
    tn__rwlock_write(&lock);
    st = enter_all_locked(r, NULL, err);
    tn__rwlock_unlock(&lock);
  }
  tn__free(r->families, r->room * sizeof *r->families);
  r->families = NULL;
  r->n = r->room = 0;
  return st;
}

/* Checks a plugin's family and adds it to the registrar. The family is entered and removed again while the lock is
 * held, so the plugin gets errors at once, and no other thread sees ops of a plugin that fails later. */
static tn_status put_down(tn__registrar *r, const tn_op_family *family, tn_error *err)
{
  r->has = has_put_down;
  r->settle = settle;
  if (!tn__grow((void **)&r->families, &r->room, r->n + 1, sizeof *r->families))
    return tn__no_memory(err, "family of ops", 0);
  tn__rwlock_write(&lock);
  tn_status st = enter_all_locked(r, family, err);
  if (st == TN_OK) {
    remove_locked(family);
    for (size_t i = r->n; i > 0; i--) remove_locked(r->families[i - 1]);
    r->families[r->n++] = family;
  }
  tn__rwlock_unlock(&lock);
  return st;
}

tn_status tn_register_ops(const tn_op_family *family, tn_error *err)
{
  tn__error_reset(err);
  tn_status st = check_family(family, err);
  if (st == TN_OK) st = tn__ops_ensure(err);
  if (st != TN_OK) return st;
  if (tn__registrar_now != NULL) return put_down(tn__registrar_now, family, err);
  tn__rwlock_write(&lock);
  st = enter_family(family, err);
  tn__rwlock_unlock(&lock);
  return st;
}

void tn__ops_remove(const tn_op_family *family)
{
  tn__rwlock_write(&lock);
  remove_locked(family);
  tn__rwlock_unlock(&lock);
}

/* ---- look-up ---- */

const tn_op_schema *tn__schema_find(const char *name, size_t size)
{
  if (tn__ops_ensure(NULL) != TN_OK) return NULL;
  tn__rwlock_read(&lock);
  tn_op_schema *s = tn__map_get(&by_name, name, size);
  tn__rwlock_unlock(&lock);
  return ready(s);
}

size_t tn_n_op_schemas(void)
{
  if (tn__ops_ensure(NULL) != TN_OK) return 0;
  tn__rwlock_read(&lock);
  size_t n = by_name.count;
  tn__rwlock_unlock(&lock);
  return n;
}

static int by_op_name(const void *a, const void *b)
{
  return strcmp((*(const tn_op_schema *const *)a)->name, (*(const tn_op_schema *const *)b)->name);
}

static void sort_locked(void)
{
  if (!tn__grow((void **)&sorted, &sorted_room, by_name.count, sizeof *sorted)) return;
  size_t place = 0, n = 0;
  for (tn__map_entry *e; (e = tn__map_next(&by_name, &place)) != NULL;) sorted[n++] = e->value;
  qsort(sorted, n, sizeof *sorted, by_op_name);
  n_sorted = n;
}

const tn_op_schema *tn_op_schema_at(size_t i)
{
  if (tn__ops_ensure(NULL) != TN_OK) return NULL;
  tn__rwlock_read(&lock);
  bool stale = n_sorted != by_name.count;
  const tn_op_schema *s = !stale && i < n_sorted ? sorted[i] : NULL;
  tn__rwlock_unlock(&lock);
  if (!stale) return ready((tn_op_schema *)s);
  tn__rwlock_write(&lock);
  if (n_sorted != by_name.count) sort_locked();
  s = i < n_sorted ? sorted[i] : NULL;
  tn__rwlock_unlock(&lock);
  return ready((tn_op_schema *)s);
}

/* The kernels of an op. A function has no kernels of its own; it uses those of the op with TN_TRAIT_OWN_CALL. */
static const tn__kernel *kernels_of(const tn_op_schema *s)
{
  if (s->is_function) s = own_call;
  return s == NULL ? NULL : s->kernels;
}

const tn_kernel_def *tn_op_schema_kernel(const tn_op_schema *schema, size_t i)
{
  if (schema == NULL) return NULL;
  tn__rwlock_read(&lock);
  const tn__kernel *k = kernels_of(schema);
  while (k != NULL && i-- > 0) k = k->next;
  tn__rwlock_unlock(&lock);
  return k == NULL ? NULL : k->def;
}

/* Newer families are first in the list, so the search ends at the library's own, which were entered first. */
const tn__guest *tn__kernel_guest(const tn_kernel_def *def)
{
  const tn__guest *guest = NULL;
  tn__rwlock_read(&lock);
  for (const family_entry *e = families; e != NULL && e->origin != own_origin && guest == NULL; e = e->next)
    for (size_t i = 0; e->guest.name != NULL && i < e->family->n_kernels && guest == NULL; i++)
      if (kernel_at(e->family, i) == def) guest = &e->guest;
  tn__rwlock_unlock(&lock);
  return guest;
}

/* ---- the kernel of an operation ---- */

static bool kernel_fits(const tn_operation *op, const tn__kernel *k, const char *device)
{
  if (k->def->rank <= 0 || (k->def->device != device && strcmp(k->def->device, device) != 0)) return false;
  /* Constraints name attributes of the kernel's own op, which a function does not have. */
  if (op->schema->is_function) return k->def->types == NULL || *k->def->types == 0;
  for (uint32_t i = 0; i < k->n_constraints; i++)
    if (!tn__types_fit(op, &k->constraints[i])) return false;
  return true;
}

static void describe_kernels(const tn_op_schema *s, tn__text *t)
{
  tn__rwlock_read(&lock);
  for (const tn__kernel *k = kernels_of(s); k != NULL; k = k->next) {
    const char *types = k->def->types == NULL || *k->def->types == 0 ? "any type" : k->def->types;
    tn__text_printf(t, "%s%s %s%s", t->size == 0 ? "" : "; ", k->def->device, types,
                    k->def->rank <= 0 ? " (switched off)" : "");
  }
  tn__rwlock_unlock(&lock);
}

static tn_status no_kernel(const tn_operation *op, const char *device, tn_error *err)
{
  tn__text types, kernels;
  tn__text_init(&types, 1000);
  tn__text_init(&kernels, 4000);
  tn__describe_types(op, &types);
  describe_kernels(op->schema, &kernels);
  tn_status st = tn_error_set(err, TN_UNIMPLEMENTED,
                              "node '%s': op '%s' has no kernel for device %s%s%s%s; there are: %s", op->name, op->type,
                              device, types.size == 0 ? "" : " with ", tn__text_get(&types), types.size == 0 ? "" : "",
                              kernels.size == 0 ? "none" : tn__text_get(&kernels));
  tn_error_set_node(err, op->name);
  tn__text_fini(&types);
  tn__text_fini(&kernels);
  return st;
}

bool tn__kernels_exist(const tn_operation *op, const char *device, bool *any)
{
  bool fits = false, some = false;
  tn__rwlock_read(&lock);
  for (const tn__kernel *k = op->schema == NULL ? NULL : kernels_of(op->schema); k != NULL && !fits; k = k->next) {
    some = true;
    fits = kernel_fits(op, k, device);
  }
  tn__rwlock_unlock(&lock);
  if (any != NULL) *any = some;
  return fits;
}

tn_status tn__kernels_find(const tn_operation *op, const char *device, const tn_kernel_def **out, size_t room,
                           size_t *n, tn_error *err)
{
  *n = 0;
  if (op->schema == NULL) {
    tn__op_not_registered(op->type, err);
    tn_error_prefix(err, "node '%s'", op->name);
    tn_error_set_node(err, op->name);
    return TN_NOT_FOUND;
  }
  tn__rwlock_read(&lock);
  for (const tn__kernel *k = kernels_of(op->schema); k != NULL && *n < room; k = k->next)
    if (kernel_fits(op, k, device)) out[(*n)++] = k->def;
  tn__rwlock_unlock(&lock);
  return *n == 0 ? no_kernel(op, device, err) : TN_OK;
}
