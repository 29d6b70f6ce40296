/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles functions when they are called, and keeps their plans. */
#include <core/plan/callees.h>

#include <core/base/map.h>
#include <core/graph/function_instance.h>
#include <core/plan/tasks.h>
#include <string.h>

struct tn__callees {
  tn__mutex mu;
  tn__map by_key;    /* to tn__callee; guarded by mu */
  tn__callee *first; /* all of them; guarded by mu */
};

/* ---- objects ---- */

tn__callees *tn__callees_create(void)
{
  tn__callees *c = tn__zalloc(sizeof *c);
  if (c == NULL) return NULL;
  tn__mutex_init(&c->mu, "functions of a plan", TN_RANK_PLAN);
  tn__map_init(&c->by_key);
  return c;
}

static void free_one(tn__callee *c)
{
  if (c == NULL) return;
  tn__plan_unref(c->plan);
  tn__free(c, c->block_bytes);
}

void tn__callees_free(tn__callees *callees)
{
  if (callees == NULL) return;
  for (tn__callee *c = callees->first, *next; c != NULL; c = next) {
    next = c->next;
    free_one(c);
  }
  tn__map_fini(&callees->by_key);
  tn__mutex_fini(&callees->mu);
  tn__free(callees, sizeof *callees);
}

static size_t known_bytes(uint32_t n) { return sizeof(tn__instr_callees) + n * sizeof(_Atomic(const tn__callee *)); }

void tn__instr_callees_free(tn__instr_callees *known)
{
  if (known != NULL) tn__free(known, known_bytes(known->n));
}

/* ---- compiling ---- */

/* The arrays stand behind the struct: the key, which the table's map borrows, comes last. */
static tn__callee *new_callee(const tn__function_instance *f, const tn__text *key)
{
  size_t bytes;
  if (!tn__size_mul(f->n_outputs, sizeof(uint32_t) + 1, &bytes) || !tn__size_add(bytes, f->n_inputs, &bytes) ||
      !tn__size_add(bytes, sizeof(tn__callee) + key->size, &bytes))
    return NULL;
  tn__callee *c = tn__zalloc(bytes);
  if (c == NULL) return NULL;
  c->block_bytes = bytes;
  c->name = f->name;
  c->n_inputs = (uint32_t)f->n_inputs;
  c->n_outputs = (uint32_t)f->n_outputs;
  uint32_t *fetches = (uint32_t *)(c + 1);
  uint8_t *dtypes = (uint8_t *)(fetches + f->n_outputs);
  c->fetches = fetches;
  c->output_dtypes = dtypes;
  c->input_dtypes = dtypes + f->n_outputs;
  for (size_t i = 0; i < f->n_outputs + f->n_inputs; i++) {
    tn_output o = i < f->n_outputs ? f->outputs[i] : f->inputs[i - f->n_outputs];
    dtypes[i] = (uint8_t)tn__dtype_base(tn_operation_output_dtype(o.op, (size_t)o.index));
  }
  memcpy(dtypes + f->n_outputs + f->n_inputs, key->data, key->size);
  return c;
}

static const char *key_of(const tn__callee *c) { return (const char *)c->input_dtypes + c->n_inputs; }

/* Fetches of the function's distinct outputs. Signatures are short, and long ones mostly differ: a map from where each
 * output comes from. */
static tn_status list_fetches(const tn__function_instance *f, tn__callee *c, tn_output *to, tn_error *err)
{
  typedef struct place {
    tn_operation *op;
    uint64_t index;
  } place;
  uint32_t *fetches = (uint32_t *)c->fetches;
  tn__map seen;
  tn__map_init(&seen);
  place *keys = tn__alloc_array(f->n_outputs + 1, sizeof *keys);
  bool ok = keys != NULL && tn__map_reserve(&seen, f->n_outputs);
  c->in_order = true;
  for (size_t i = 0; ok && i < f->n_outputs; i++) {
    keys[i] = (place){ f->outputs[i].op, (uint64_t)f->outputs[i].index };
    uintptr_t at = (uintptr_t)tn__map_get(&seen, (const char *)&keys[i], sizeof keys[i]);
    if (at == 0) {
      to[c->n_fetches] = f->outputs[i];
      at = ++c->n_fetches;
      ok = tn__map_put(&seen, (const char *)&keys[i], sizeof keys[i], (void *)at, NULL);
    }
    fetches[i] = (uint32_t)at - 1;
    if (fetches[i] != i) c->in_order = false;
  }
  tn__map_fini(&seen);
  tn__free(keys, (f->n_outputs + 1) * sizeof *keys);
  return ok ? TN_OK : tn__no_memory(err, "function", 0);
}

static tn_status compile(tn_plan *plan, const tn__function_instance *f, const tn__text *key, tn__callee **out,
                         tn_error *err)
{
  tn__callee *c = *out = new_callee(f, key);
  tn_output *fetches = tn__alloc_array(f->n_outputs + 1, sizeof *fetches);
  tn_status st = c == NULL || fetches == NULL ? tn__no_memory(err, "function", 0) : list_fetches(f, c, fetches, err);
  if (st == TN_OK) {
    const tn__signature_spec spec = {
      .feeds = f->inputs, .n_feeds = f->n_inputs, .fetches = fetches, .n_fetches = c->n_fetches, .targets = f->targets,
      .n_targets = f->n_targets, .level = plan->level, .max_layouts = plan->max_layouts, .disabled = plan->disabled,
      .evaluate = plan->evaluate, .want_kernels = plan->want_kernels, .want_always = plan->want_always,
      .call_kernel = plan->call_kernel, .callees = plan->callees,
    };
    st = tn__plan_compile(f->graph, &spec, &c->plan, err);
    if (st == TN_OK) tn__plan_set_threads(c->plan, tn__plan_threads(plan));
    if (st == TN_OK && atomic_load_explicit(&plan->scheduled, memory_order_relaxed)) tn__plan_set_scheduled(c->plan);
  }
  tn__free(fetches, (f->n_outputs + 1) * sizeof *fetches);
  if (st == TN_OK) return TN_OK;
  free_one(c);
  *out = NULL;
  return st;
}

/* ---- looking up ---- */

static const tn__callee *look_up(tn__callees *table, const tn__text *key)
{
  tn__mutex_lock(&table->mu);
  const tn__callee *c = tn__map_get(&table->by_key, key->data, key->size);
  tn__mutex_unlock(&table->mu);
  return c;
}

/* Of two threads that compiled one function one throws its work away. */
static const tn__callee *enter(tn__callees *table, tn__callee *mine, size_t key_size)
{
  tn__mutex_lock(&table->mu);
  const tn__callee *c = tn__map_get(&table->by_key, key_of(mine), key_size);
  bool kept = c == NULL && tn__map_put(&table->by_key, key_of(mine), key_size, mine, NULL);
  if (kept) {
    mine->next = table->first;
    table->first = mine;
    c = mine;
  }
  tn__mutex_unlock(&table->mu);
  if (!kept) free_one(mine);
  return c;
}

static tn_status get(tn_plan *plan, const tn__plan_instr *instr, uint32_t k, const tn__callee **out, tn_error *err)
{
  tn__text key;
  tn__text_init(&key, SIZE_MAX);
  tn_status st = tn__function_key(instr->op, k, &key, err);
  *out = st == TN_OK ? look_up(plan->callees, &key) : NULL;
  if (st == TN_OK && *out == NULL) {
    tn__function_instance f;
    tn__callee *mine = NULL;
    st = tn__function_instantiate(instr->op, k, &f, err);
    if (st == TN_OK) st = compile(plan, &f, &key, &mine, err);
    if (st == TN_OK && (*out = enter(plan->callees, mine, key.size)) == NULL) st = tn__no_memory(err, "function", 0);
    tn__function_instance_fini(&f);
  }
  tn__text_fini(&key);
  return st;
}

static tn__instr_callees *known_of(tn__plan_instr *instr)
{
  tn__instr_callees *there = atomic_load_explicit(&instr->callees, memory_order_acquire);
  if (there != NULL) return there;
  uint32_t n = 2 * tn_operation_n_functions(instr->op); /* and their gradients */
  tn__instr_callees *mine = tn__zalloc(known_bytes(n));
  if (mine == NULL) return NULL;
  mine->n = n;
  if (atomic_compare_exchange_strong(&instr->callees, &there, mine)) return mine;
  tn__instr_callees_free(mine);
  return there;
}

tn_status tn__plan_callee_make(tn_plan *plan, tn__plan_instr *instr, uint32_t k, const tn__callee **out, tn_error *err)
{
  *out = NULL;
  if (plan->callees == NULL)
    return tn_error_set(err, TN_INTERNAL, "node '%s' cannot call a function here", tn_operation_name(instr->op));
  tn__instr_callees *known = known_of(instr);
  if (known == NULL) return tn__no_memory(err, "function", 0);
  tn_status st = get(plan, instr, k, out, err);
  if (st == TN_OK) atomic_store_explicit(&known->items[k], *out, memory_order_release);
  return st;
}
