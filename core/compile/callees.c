/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles functions at their first call, and keeps their plans. */
#include <core/compile/callees.h>
#include <core/compile/compile.h>

#include <core/base/map.h>
#include <core/graph/function_instance.h>
#include <string.h>

/* ---- compiling ---- */

/* One block: the struct, its arrays (fetches, dtypes of the outputs and inputs), then the key, which the table's map
 * borrows. */
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

/* Lists the distinct outputs of the function as fetches in `to`, and the fetch of each output in c->fetches. */
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

/* Compiles a function with the settings of the calling plan. *out is owned by the caller. */
static tn_status compile(tn_plan *plan, const tn__function_instance *f, const tn__text *key, tn__callee **out,
                         tn_error *err)
{
  tn__callee *c = *out = new_callee(f, key);
  tn_output *fetches = tn__alloc_array(f->n_outputs + 1, sizeof *fetches);
  tn_status st = c == NULL || fetches == NULL ? tn__no_memory(err, "function", 0) : list_fetches(f, c, fetches, err);
  if (st == TN_OK) {
    const tn__signature_spec spec = {
      .feeds = f->inputs,
      .n_feeds = f->n_inputs,
      .fetches = fetches,
      .n_fetches = c->n_fetches,
      .targets = f->targets,
      .n_targets = f->n_targets,
      .level = plan->settings.level,
      .max_layouts = plan->settings.max_layouts,
      .disabled = plan->settings.disabled,
      .evaluate = plan->settings.evaluate,
      .want_kernels = plan->upgrade.want_kernels,
      .want_always = plan->settings.want_always,
      .cpu_only = plan->settings.cpu_only,
      .reproducible = plan->settings.reproducible,
      .weights = plan->settings.weights,
      .call_kernel = plan->settings.call_kernel,
      .callees = plan->caches.callees,
    };
    st = tn__plan_compile(f->graph, &spec, &c->plan, err);
    if (st == TN_OK) tn__plan_set_threads(c->plan, tn__plan_threads(plan));
    if (st == TN_OK && atomic_load_explicit(&plan->settings.scheduled, memory_order_relaxed))
      tn__plan_set_scheduled(c->plan);
  }
  tn__free(fetches, (f->n_outputs + 1) * sizeof *fetches);
  if (st == TN_OK) return TN_OK;
  tn__callee_destroy(c);
  *out = NULL;
  return st;
}

/* ---- calls ---- */

/* Looks the function up in the shared table, or compiles and enters it. No lock is held while it is compiled, so two
 * threads may compile it at once; one of the results is dropped. */
static tn_status get(tn_plan *plan, const tn__plan_instr *instr, uint32_t k, const tn__callee **out, tn_error *err)
{
  tn__text key;
  tn__text_init(&key, SIZE_MAX);
  tn_status st = tn__function_key(instr->op, k, &key, err);
  *out = st == TN_OK ? tn__callees_find(plan->caches.callees, &key) : NULL;
  if (st == TN_OK && *out == NULL) {
    tn__function_instance f;
    tn__callee *mine = NULL;
    st = tn__function_instantiate(instr->op, k, &f, err);
    if (st == TN_OK) st = compile(plan, &f, &key, &mine, err);
    if (st == TN_OK && (*out = tn__callees_enter(plan->caches.callees, mine, key.size)) == NULL)
      st = tn__no_memory(err, "function", 0);
    tn__function_instance_fini(&f);
  }
  tn__text_fini(&key);
  return st;
}

tn_status tn__plan_callee_compile(tn_plan *plan, tn__plan_instr *instr, uint32_t k, const tn__callee **out,
                                  tn_error *err)
{
  *out = NULL;
  if (plan->caches.callees == NULL)
    return tn_error_set(err, TN_INTERNAL, "node '%s' cannot call a function here", tn_operation_name(instr->op));
  tn__instr_callees *known = tn__instr_callees_of(instr);
  if (known == NULL) return tn__no_memory(err, "function", 0);
  tn_status st = get(plan, instr, k, out, err);
  if (st == TN_OK) atomic_store_explicit(&known->items[k], *out, memory_order_release);
  return st;
}
