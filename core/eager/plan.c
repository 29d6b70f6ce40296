/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of one operation, for the types of its inputs and a device.
 *
 * Each plan has a graph of its own, with placeholders and the operation, which is freed with the plan. An
 * operation that calls functions is built in the graph of the session's functions instead, and stays there. */
#include <core/compile/compile.h>
#include <core/eager/devices.h>
#include <core/exec/evaluate.h>

static _Atomic uint64_t names; /* number of the next node name, unique in the process */

void tn__eager_plan_destroy(tn_eager_session *s, tn__eager_plan *p)
{
  if (p == NULL) return;
  tn__session_base_release(&s->runtime.on, p->executable);
  tn__plan_unref(p->plan);
  tn__kernel_states_fini(&p->states);
  tn_graph_unref(p->graph);
  tn__free(p, sizeof *p + ((size_t)p->n_inputs + p->n_outputs) * sizeof(tn_dtype));
}

void tn__eager_plans_destroy(tn_eager_session *s, tn_eager_op *op)
{
  tn__eager_plan *p = atomic_exchange(&op->plans, NULL);
  atomic_store(&op->last, NULL);
  while (p != NULL) {
    tn__eager_plan *next = p->next;
    tn__eager_plan_destroy(s, p);
    p = next;
  }
}

/* ---- the operation ---- */

/* Errors are reported by tn_operation_finish. */
static void set_attr(tn_operation_builder *b, const tn_eager_attr *a)
{
  switch (a->kind) {
  case TN_ATTR_STRING: tn_operation_set_string(b, a->name, a->at, a->n); break;
  case TN_ATTR_INT: tn_operation_set_int(b, a->name, a->i); break;
  case TN_ATTR_FLOAT: tn_operation_set_float(b, a->name, (float)a->f); break;
  case TN_ATTR_BOOL: tn_operation_set_bool(b, a->name, a->i != 0); break;
  case TN_ATTR_TYPE: tn_operation_set_type(b, a->name, (tn_dtype)a->i); break;
  case TN_ATTR_SHAPE: tn_operation_set_shape(b, a->name, a->at, a->rank); break;
  case TN_ATTR_TENSOR: tn_operation_set_tensor(b, a->name, (tn_tensor *)(uintptr_t)a->at); break;
  case TN_ATTR_FUNC: tn_operation_set_func(b, a->name, a->at); break;
  case TN_ATTR_LIST | TN_ATTR_INT: tn_operation_set_ints(b, a->name, a->at, a->n); break;
  case TN_ATTR_LIST | TN_ATTR_FLOAT: tn_operation_set_floats(b, a->name, a->at, a->n); break;
  case TN_ATTR_LIST | TN_ATTR_BOOL: tn_operation_set_bools(b, a->name, a->at, a->n); break;
  case TN_ATTR_LIST | TN_ATTR_TYPE: tn_operation_set_types(b, a->name, a->at, a->n); break;
  case TN_ATTR_LIST | TN_ATTR_STRING: tn_operation_set_strings(b, a->name, a->at, a->sizes, a->n); break;
  case TN_ATTR_LIST | TN_ATTR_SHAPE: tn_operation_set_shapes(b, a->name, a->at, a->sizes, a->n); break;
  case TN_ATTR_LIST | TN_ATTR_FUNC: tn_operation_set_funcs(b, a->name, a->at, a->n); break;
  default: break;
  }
}

/* The length of an input list as an attribute of the op gives it: an int, or the length of a list of types.
 * -1: not given. */
static int64_t said_number(const tn_eager_op *op, const tn_op_schema *schema, const tn_op_arg *arg)
{
  tn_op_attr attr = { .struct_size = TN_OP_ATTR_SIZE };
  int32_t which = arg->number_attr >= 0 ? arg->number_attr : arg->list_attr;
  if (tn_op_schema_attr(schema, (size_t)which, &attr, NULL) != TN_OK) return -1;
  for (size_t i = 0; i < op->n_attrs; i++)
    if (strcmp(op->attrs[i].name, attr.name) == 0)
      return arg->number_attr >= 0 ? op->attrs[i].i : (int64_t)op->attrs[i].n;
  return -1;
}

/* The error for a number of inputs that the op does not take. */
static tn_status wrong_count(const tn_eager_op *op, const tn_op_schema *schema, size_t n, tn_error *err)
{
  char text[512];
  tn_op_schema_format(schema, text, sizeof text);
  return tn_error_set(err, TN_INVALID_ARGUMENT, "eager op '%s': %zu inputs do not fit %s", op->name, n, text);
}

/* The length of each input list whose length no attribute gives: such lists share the remaining
 * inputs equally. An error if the inputs do not fit the op. */
static tn_status share_inputs(const tn_eager_op *op, const tn_op_schema *schema, size_t n, size_t *each, tn_error *err)
{
  size_t fixed = 0, open = 0;
  for (size_t i = 0; i < tn_op_schema_n_inputs(schema); i++) {
    tn_op_arg arg = { .struct_size = TN_OP_ARG_SIZE };
    tn_status st = tn_op_schema_input(schema, i, &arg, err);
    if (st != TN_OK) return st;
    if (arg.number_attr < 0 && arg.list_attr < 0) {
      fixed++;
      continue;
    }
    int64_t said = said_number(op, schema, &arg);
    if (said < 0) open++;
    else if ((uint64_t)said > n) return wrong_count(op, schema, n, err);
    else fixed += (size_t)said;
  }
  *each = 0;
  if (fixed > n || (open == 0 && fixed != n) || (open > 0 && (n - fixed) % open != 0))
    return wrong_count(op, schema, n, err);
  if (open > 0) *each = (n - fixed) / open;
  return TN_OK;
}

/* Distributes the inputs to the arguments of the op, in order. */
static tn_status add_inputs(const tn_eager_op *op, const tn_op_schema *schema, tn_operation_builder *b,
                            const tn_output *inputs, size_t n, tn_error *err)
{
  size_t each, at = 0;
  tn_status st = share_inputs(op, schema, n, &each, err);
  for (size_t i = 0; st == TN_OK && i < tn_op_schema_n_inputs(schema); i++) {
    tn_op_arg arg = { .struct_size = TN_OP_ARG_SIZE };
    st = tn_op_schema_input(schema, i, &arg, err);
    if (st != TN_OK) return st;
    if (arg.number_attr < 0 && arg.list_attr < 0) {
      tn_operation_add_input(b, inputs[at++]);
      continue;
    }
    int64_t said = said_number(op, schema, &arg);
    size_t count = said < 0 ? each : (size_t)said;
    tn_operation_add_input_list(b, inputs + at, count);
    at += count;
  }
  return st;
}

/* Builds the operation. device: "" = none. */
static tn_status make_node(const tn_eager_op *op, const char *device, tn_graph *graph, const char *name,
                           const tn_output *inputs, size_t n, tn_operation **out, tn_error *err)
{
  const tn_op_schema *schema = tn_op_schema_find(op->name);
  const tn_function *f = schema == NULL ? tn_graph_find_function(graph, op->name) : NULL;
  if (f != NULL) schema = tn_function_schema(f);
  if (schema == NULL) return tn__op_not_registered(op->name, err);
  tn_operation_builder *b = tn_operation_begin(graph, op->name, name, 0);
  if (b == NULL) return tn__no_memory(err, "eager op", 0);
  for (size_t i = 0; i < op->n_attrs; i++) set_attr(b, &op->attrs[i]);
  if (device[0] != 0) tn_operation_set_device(b, device);
  tn_status st = add_inputs(op, schema, b, inputs, n, err);
  if (st == TN_OK) return tn_operation_finish(b, out, err);
  tn_operation_abandon(b);
  return st;
}

/* A placeholder for each input, of its type and of any shape. */
static tn_status make_placeholders(tn_graph *graph, const char *name, const tn_dtype *dtypes, size_t n, tn_output *out,
                                   tn_error *err)
{
  char text[80];
  for (size_t i = 0; i < n; i++) {
    tn__snprintf(text, sizeof text, "%s_x%zu", name, i);
    tn_operation_builder *b = tn_operation_begin(graph, "Placeholder", text, 0);
    if (b == NULL) return tn__no_memory(err, "eager op", 0);
    tn_operation_set_type(b, "dtype", dtypes[i]);
    tn_status st = tn_operation_finish(b, &out[i].op, err);
    if (st != TN_OK) return st;
    out[i].index = 0;
  }
  return TN_OK;
}

/* ---- compiling ---- */

/* Whether the operation calls functions, or is one. */
static bool needs_library(const tn_eager_op *op)
{
  for (size_t i = 0; i < op->n_attrs; i++)
    if ((op->attrs[i].kind & ~TN_ATTR_LIST) == TN_ATTR_FUNC) return true;
  return tn_op_schema_find(op->name) == NULL;
}

/* The graph in which the operation is built, a reference, and the node's name. */
static tn_status open_graph(tn_eager_op *op, tn__eager_plan *p, char *name, size_t room, tn_error *err)
{
  tn_eager_session *s = op->session;
  /* Resources without a name of their own have the node's. */
  tn__snprintf(name, room, "eager/op%llu", (unsigned long long)atomic_fetch_add(&names, 1));
  if (needs_library(op)) {
    tn__mutex_lock(&s->mu);
    p->graph = tn_graph_ref(s->library);
    tn__mutex_unlock(&s->mu);
  }
  return p->graph != NULL ? TN_OK : tn_graph_create(&p->graph, err);
}

/* Where the plan is to run. */
typedef struct place {
  uint16_t asked;     /* as in the plan */
  const char *device; /* what the node names */
  bool refused;       /* the runtime says that the device cannot */
} place;

/* Lets the runtime prepare the plan: on its device, or by the usual slot. Sets where->refused if
 * the device has no kernel for it (TN_UNIMPLEMENTED). */
static tn_status plan_prepare(tn_eager_session *s, tn__eager_plan *p, place *where, tn_error *err)
{
  if (where->asked == 0 || p->moved) return tn__session_base_prepare(&s->runtime.on, p->plan, &p->executable, err);
  tn__plugin_call calling = tn__session_base_call(&s->runtime.on, "its prepare_on");
  tn__plugin_call_enter(&calling);
  tn_status st = s->runtime.prepare_on(s->runtime.on.self, s->runtime.on.runtime, p->plan,
                                       s->runtime.devices[where->asked].number, &p->executable, err);
  tn__plugin_call_leave(&calling);
  if (st == TN_OK && p->executable == NULL)
    return tn_error_set(err, TN_INTERNAL, "runtime '%s': prepare_on returned OK without an executable",
                        s->runtime.on.info.name);
  if (st == TN_OK) return TN_OK;
  p->executable = NULL;
  where->refused = st == TN_UNIMPLEMENTED;
  return tn__factory_status(s->runtime.on.factory, "prepare_on", st, err);
}

/* The inputs from whose values shapes follow, as bits; only the first 64. */
static uint64_t find_on_host(const tn_plan *plan)
{
  uint64_t found = 0;
  for (uint32_t v = 0; v < plan->n_values; v++)
    if (plan->values[v].kind == TN_VALUE_FEED && plan->values[v].index < 64 && tn_plan_value_gives_shapes(plan, v))
      found |= UINT64_C(1) << plan->values[v].index;
  return found;
}

static tn_status plan_compile(tn_eager_session *s, tn__eager_plan *p, place *where, tn_operation *node,
                              const tn_output *feeds, tn_output *fetches, tn_error *err)
{
  for (uint32_t i = 0; i < p->n_outputs; i++) fetches[i] = (tn_output){ node, (int32_t)i };
  const tn__signature_spec spec = {
    .feeds = feeds,
    .n_feeds = p->n_inputs,
    .fetches = fetches,
    .n_fetches = p->n_outputs,
    .targets = &node,
    .n_targets = 1,
    .level = s->runtime.on.level,
    .max_layouts = s->runtime.on.max_layouts,
    .disabled = s->runtime.on.disabled_passes,
    .evaluate = s->runtime.on.reproducible ? tn__evaluate_reproducible : tn__evaluate,
    .want_kernels = s->runtime.on.want_kernels ? tn__registry_want_kernels : NULL,
    .want_always = s->runtime.on.want_kernels_always,
    .cpu_only = tn__session_base_cpu_only(&s->runtime.on),
    .reproducible = s->runtime.on.reproducible,
    .weights = s->runtime.on.weights,
    .call_kernel = tn__call_kernel,
    .states = &p->states,
  };
  atomic_store_explicit(&p->states.graph, p->graph, memory_order_release);
  tn_status st = tn__plan_compile(p->graph, &spec, &p->plan, err);
  if (st != TN_OK) return st;
  if (s->n_devices > s->n_cpus) p->on_host = find_on_host(p->plan);
  return plan_prepare(s, p, where, err);
}

/* The struct with the types of inputs and outputs, in one block. */
static tn__eager_plan *plan_alloc(const tn_dtype *dtypes, size_t n, const tn_operation *node)
{
  size_t n_outputs = tn_operation_n_outputs(node);
  tn__eager_plan *p = tn__zalloc(sizeof *p + (n + n_outputs) * sizeof(tn_dtype));
  if (p == NULL) return NULL;
  p->n_inputs = (uint32_t)n;
  p->n_outputs = (uint32_t)n_outputs;
  p->outputs = p->dtypes + n;
  if (n > 0) memcpy(p->dtypes, dtypes, n * sizeof *dtypes);
  for (size_t i = 0; i < n_outputs; i++) p->outputs[i] = tn__dtype_base(tn_operation_output_dtype(node, i));
  tn__kernel_states_init(&p->states);
  return p;
}

/* Builds the operation and compiles its plan. Errors name the op, not the node that was made for
 * it. */
static tn_status plan_make(tn_eager_op *op, place *where, const tn_dtype *dtypes, size_t n, tn_output *feeds,
                           tn__eager_plan **out, tn_error *err)
{
  char name[64];
  tn__eager_plan built = { 0 }, *p = NULL;
  tn_operation *node = NULL;
  tn_output *fetches = NULL;
  tn_status st = open_graph(op, &built, name, sizeof name, err);
  if (st == TN_OK) st = make_placeholders(built.graph, name, dtypes, n, feeds, err);
  if (st == TN_OK) st = make_node(op, where->device, built.graph, name, feeds, n, &node, err);
  if (st == TN_OK) {
    p = plan_alloc(dtypes, n, node);
    fetches = tn__alloc_array(tn_operation_n_outputs(node) + 1, sizeof *fetches);
    if (p == NULL || fetches == NULL) st = tn__no_memory(err, "eager op", 0);
  }
  if (p != NULL) {
    p->graph = built.graph;
    p->asked = where->asked;
    p->moved = where->refused;
  }
  if (st == TN_OK) st = plan_compile(op->session, p, where, node, feeds, fetches, err);
  if (fetches != NULL) tn__free(fetches, (tn_operation_n_outputs(node) + 1) * sizeof *fetches);
  if (st == TN_OK) {
    *out = p;
    return TN_OK;
  }
  if (p != NULL) tn__eager_plan_destroy(op->session, p);
  else tn_graph_unref(built.graph);
  return st;
}

/* Makes the plan for the requested device. If that has no kernel, makes it for the default device,
 * unless the program named the device and does not allow soft placement. S-CFG-02, S-CFG-03 */
static tn_status make_somewhere(tn_eager_op *op, uint16_t asked, const tn_dtype *dtypes, size_t n, tn_output *feeds,
                                tn__eager_plan **out, tn_error *err)
{
  const tn_eager_session *s = op->session;
  place where = { .asked = asked, .device = asked != 0 ? s->runtime.devices[asked].name : op->device };
  tn_error why = TN_ERROR_INIT;
  if (asked == 0) return plan_make(op, &where, dtypes, n, feeds, out, err);
  tn_status st = plan_make(op, &where, dtypes, n, feeds, out, &why);
  if (where.refused && op->place != TN__EAGER_ANYWHERE && !s->soft) {
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "eager op '%s' asks for device '%s': %s", op->name, op->device,
                      tn_error_message(&why));
  } else if (where.refused) {
    tn_log(TN_LOG_INFO, "eager op '%s' runs on '%s': %s", op->name, s->runtime.devices[0].name, tn_error_message(&why));
    where.device = s->runtime.devices[0].name;
    st = plan_make(op, &where, dtypes, n, feeds, out, err);
  } else if (st != TN_OK) {
    tn_error_copy(err, &why);
  }
  tn_error_clear(&why);
  return st;
}

/* Checks the inputs, then makes a plan, which is in no list. */
static tn_status plan_new(tn_eager_op *op, uint16_t asked, const tn_dtype *dtypes, size_t n, tn__eager_plan **out,
                          tn_error *err)
{
  tn_output fixed[16], *feeds = fixed;
  *out = NULL;
  if (n > UINT16_MAX)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "eager op '%s': %zu inputs are too many", op->name, n);
  for (size_t i = 0; i < n; i++)
    if (tn_dtype_size(dtypes[i]) == 0)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "eager op '%s': input %zu has no type", op->name, i);
  if (n > 16) feeds = tn__alloc_array(n, sizeof *feeds);
  if (feeds == NULL) return tn__no_memory(err, "eager op", n);
  tn_status st = make_somewhere(op, asked, dtypes, n, feeds, out, err);
  if (feeds != fixed) tn__free(feeds, n * sizeof *feeds);
  return st;
}

/* ---- finding ---- */

static bool fits(const tn__eager_plan *p, const tn_dtype *dtypes, size_t n, uint16_t asked)
{
  if (p->n_inputs != n || p->asked != asked) return false;
  for (size_t i = 0; i < n; i++)
    if (p->dtypes[i] != dtypes[i]) return false;
  return true;
}

/* The list is read without a lock: plans are only added at its front, and freed when no call uses
 * the op. */
static tn__eager_plan *plan_find(tn_eager_op *op, const tn_dtype *dtypes, size_t n, uint16_t asked)
{
  for (tn__eager_plan *p = atomic_load_explicit(&op->plans, memory_order_acquire); p != NULL; p = p->next)
    if (fits(p, dtypes, n, asked)) return p;
  return NULL;
}

/* Makes a plan under the op's lock, unless another thread has made it meanwhile. If the op has as
 * many plans as it may, it is made for this call only. */
static tn_status plan_find_or_make(tn_eager_op *op, const tn_dtype *dtypes, size_t n, uint16_t asked,
                                   tn__eager_plan **out, bool *mine, tn_error *err)
{
  tn_status st = TN_OK;
  tn__mutex_lock(&op->mu); /* one thread makes it, others wait */
  *out = plan_find(op, dtypes, n, asked);
  if (*out == NULL) {
    st = plan_new(op, asked, dtypes, n, out, err);
    if (st == TN_OK && atomic_load(&op->n_plans) >= op->session->runtime.on.max_signatures) {
      *mine = true; /* made for this call */
    } else if (st == TN_OK) {
      (*out)->next = atomic_load(&op->plans);
      atomic_store_explicit(&op->plans, *out, memory_order_release);
      atomic_fetch_add(&op->n_plans, 1);
    }
  }
  tn__mutex_unlock(&op->mu);
  return st;
}

/* Usually the plan used last fits. */
tn_status tn__eager_plan_get(tn_eager_op *op, const tn_dtype *dtypes, size_t n, uint16_t asked, tn__eager_plan **out,
                             bool *mine, tn_error *err)
{
  tn__eager_plan *p = atomic_load_explicit(&op->last, memory_order_acquire);
  *mine = false;
  if (__builtin_expect(p != NULL && fits(p, dtypes, n, asked), 1)) {
    *out = p;
    return TN_OK;
  }
  *out = plan_find(op, dtypes, n, asked);
  tn_status st = *out != NULL ? TN_OK : plan_find_or_make(op, dtypes, n, asked, out, mine, err);
  if (st == TN_OK && !*mine) atomic_store_explicit(&op->last, *out, memory_order_release);
  return st;
}
