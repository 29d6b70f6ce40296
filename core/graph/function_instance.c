/* SPDX-License-Identifier: Apache-2.0 */
/* Functions as they are called: finds the function that a node calls, and makes its body as a graph that can be run.
 *
 * A node calls functions in two ways: its op is a function, or it has attributes of kind func or list(func). In the
 * second case functions are numbered in the order of attributes and items. */
#include <core/graph/function_instance.h>
#include <core/graph/functions.h>

#include <string.h>

/* The maximum number of nodes and edges of one body: a few bytes of a file can claim a million. */
#define BUDGET_BASE (INT64_C(1) << 22)
#define BUDGET_PER_NODE 64

tn_status (*_Atomic tn__function_differentiate)(tn__function_instance *f, tn_error *err);

/* ---- finding the function ---- */

static size_t n_functions_of(const tn__attr *a)
{
  if (a->kind == TN_ATTR_FUNC) return 1;
  return a->kind == TN_ATTR_FUNC + TN_ATTR_LIST ? a->v.list.n : 0;
}

uint32_t tn_operation_n_functions(const tn_operation *op)
{
  if (op == NULL || op->schema == NULL) return 0;
  if (op->schema->is_function) return 1;
  size_t n = 0;
  for (uint32_t i = 0; i < op->schema->n_attrs; i++) n += n_functions_of(tn__op_attr(op, i));
  return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

/* Returns function k with its attribute and item. NULL: there is none, or the op itself is the function. */
static const tn__func *func_at(const tn_operation *op, uint32_t k, const tn__attr **attr, size_t *item)
{
  *attr = NULL;
  *item = 0;
  for (uint32_t i = 0; !op->schema->is_function && i < op->schema->n_attrs; i++) {
    const tn__attr *a = tn__op_attr(op, i);
    size_t n = n_functions_of(a);
    if (k >= n) {
      k -= (uint32_t)n;
      continue;
    }
    *attr = a;
    *item = k;
    return a->kind == TN_ATTR_FUNC ? &a->v.func : (const tn__func *)a->v.list.items + k;
  }
  return NULL;
}

void tn__function_path(const tn_operation *op, uint32_t k, tn__text *path)
{
  const tn__attr *attr;
  size_t item;
  uint32_t n = tn_operation_n_functions(op);
  tn__text_printf(path, "%s/", op->name);
  if (n < 2 || n == UINT32_MAX) return;
  func_at(op, k % n, &attr, &item);
  if (attr == NULL) return;
  tn__text_puts(path, attr->name);
  if (attr->kind != TN_ATTR_FUNC) tn__text_printf(path, ".%zu", item);
  tn__text_puts(path, "/");
}

/* The graph whose function library the operation uses. */
static tn_graph *library_of(const tn_operation *op)
{
  tn_graph *g = op->graph;
  return g->library != NULL ? g->library : g;
}

/* The function that is called. */
typedef struct target {
  const tn_function *f;
  const tn__func *func; /* the attribute value that names it; NULL: the operation's own op */
  bool differentiate;   /* the gradient of f is wanted and must be derived */
} target;

static tn_status no_function(const tn_operation *op, uint32_t k, tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "function %u of node '%s' (%s) was asked for, it has %u", k, op->name,
                      op->type, tn_operation_n_functions(op));
}

static tn_status find(const tn_operation *op, uint32_t k, target *out, tn_error *err)
{
  *out = (target){ .f = NULL };
  const tn__functions *table = atomic_load_explicit(&library_of(op)->functions, memory_order_acquire);
  uint32_t n = tn_operation_n_functions(op);
  if (n == 0 || k / n > 1) return no_function(op, k, err);
  const tn__attr *attr;
  size_t item;
  out->func = func_at(op, k % n, &attr, &item);
  if (out->func == NULL && !op->schema->is_function) return no_function(op, k, err);
  tn__slice name = out->func != NULL ? out->func->name : tn__slice_of(op->type);
  int shown = name.size > 200 ? 200 : (int)name.size;
  if (k >= n) {
    const char *gradient = tn__functions_gradient(table, name.data, name.size);
    out->differentiate = gradient == NULL;
    if (gradient != NULL) name = tn__slice_of(gradient);
    shown = name.size > 200 ? 200 : (int)name.size;
  }
  out->f = tn__functions_find(table, name.data, name.size);
  if (out->f == NULL) return tn_error_set(err, TN_NOT_FOUND, "the graph has no function '%.*s'", shown, name.data);
  return TN_OK;
}

/* Returns the operation whose attributes replace placeholders in the body: op itself, or one made in arena. */
static tn_status make_call(const tn_operation *op, const target *t, tn__arena *arena, const tn_operation **out,
                           tn_error *err)
{
  tn_operation *call = NULL;
  tn_status st = TN_OK;
  if (t->func != NULL) st = tn__call_create(op, t->func, t->f, arena, &call, err);
  *out = t->func != NULL ? call : op;
  if (st != TN_OK && st != TN_RESOURCE_EXHAUSTED) tn_error_prefix(err, "function '%s'", t->f->name);
  return st;
}

/* ---- keys ---- */

/* Equal keys mean the same function with the same attribute values; see tn__attr_words for values elsewhere. */
static void put_attrs(const tn_operation *call, const tn_function *f, tn__text *key)
{
  int64_t words[3];
  for (uint32_t i = 0; i < f->schema.n_attrs; i++) {
    tn__attr_words(tn__op_attr(call, i), words);
    tn__text_append(key, (const char *)words, sizeof words);
  }
  for (uint32_t i = 0; i < call->n_attrs; i++) { /* placeholders may also name attributes that the signature lacks */
    const tn__attr *a = &call->attrs[i];
    if (tn__schema_attr_index(&f->schema, a->name, a->name_size) >= 0) continue;
    if (a->lazy) words[0] = a->kind, words[1] = (int64_t)(intptr_t)a->proto.data, words[2] = (int64_t)a->proto.size;
    else tn__attr_words(a, words);
    tn__text_append(key, a->name, a->name_size);
    tn__text_append(key, (const char *)words, sizeof words);
  }
}

tn_status tn__function_key(const tn_operation *op, uint32_t k, tn__text *key, tn_error *err)
{
  target t;
  const tn_operation *call;
  tn_status st = find(op, k, &t, err);
  if (st != TN_OK) return st;
  tn__arena arena;
  tn__arena_init(&arena, 256);
  st = make_call(op, &t, &arena, &call, err);
  if (st == TN_OK) {
    tn__text_append(key, (const char *)&t.f, sizeof t.f);
    tn__text_append(key, t.differentiate ? "d" : "", 1);
    put_attrs(call, t.f, key);
    if (key->failed) st = tn__no_memory(err, "function", key->size);
  }
  tn__arena_fini(&arena);
  return st;
}

/* ---- the body ---- */

static tn_status no_memory(tn_error *err) { return tn__no_memory(err, "function", 0); }

static tn_status list_inputs(tn__function_instance *out, const tn_function *f, tn_error *err)
{
  tn_graph *g = out->graph;
  uint32_t n_args = f->schema.n_inputs;
  for (uint32_t k = 0; k < n_args; k++) out->n_inputs += tn__graph_at(g, k)->n_outputs;
  out->inputs = tn__arena_array(&g->arena, out->n_inputs, sizeof *out->inputs);
  if (out->inputs == NULL) return no_memory(err);
  size_t n = 0;
  for (uint32_t k = 0; k < n_args; k++) {
    tn_operation *arg = tn__graph_at(g, k);
    for (uint32_t i = 0; i < arg->n_outputs; i++) out->inputs[n++] = (tn_output){ arg, (int32_t)i };
  }
  return TN_OK;
}

/* Lists the nodes that run even if their outputs are not read: stateful ones, and those of control outputs. */
static tn_status list_targets(tn__function_instance *out, const tn_function *f, tn_error *err)
{
  tn_graph *g = out->graph;
  size_t n = g->staged;
  uint8_t *wanted = tn__arena_array(&g->arena, n, sizeof *wanted);
  if (wanted == NULL) return no_memory(err);
  for (size_t i = 0; i < n; i++) wanted[i] = (tn__graph_at(g, i)->traits & TN_TRAIT_STATEFUL) != 0;
  for (size_t i = 0; i < f->n_controls; i++) {
    const tn_operation *op = tn__graph_find_staged(g, f->controls[i].node, strlen(f->controls[i].node));
    if (op == NULL)
      return tn_error_set(err, TN_INVALID_ARGUMENT,
                          "function '%s': control output '%s' names node '%s', which the function does not have",
                          f->name, f->controls[i].name, f->controls[i].node);
    if (op->id >= f->schema.n_inputs) wanted[op->id] = 1;
  }
  for (size_t i = 0; i < n; i++) out->n_targets += wanted[i];
  out->targets = tn__arena_array(&g->arena, out->n_targets, sizeof *out->targets);
  if (out->targets == NULL) return no_memory(err);
  size_t at = 0;
  for (size_t i = 0; i < n; i++)
    if (wanted[i]) out->targets[at++] = tn__graph_at(g, i);
  return TN_OK;
}

/* The call state is needed only while the body is filled, so it is on the stack; its budget limits this body alone. */
static tn_status fill(const tn_operation *op, const target *t, const tn__value_shape *shapes, tn__body_graph *body,
                      tn_error *err)
{
  tn_graph *g = body->graph, *library = library_of(op);
  const tn__functions *table = atomic_load_explicit(&library->functions, memory_order_acquire);
  g->caller = tn_graph_ref(op->graph);
  g->library = library;
  atomic_store_explicit(&g->functions, table, memory_order_relaxed);
  tn__call_frame *frame = tn__arena_zalloc(&g->arena, sizeof *frame);
  if (frame == NULL) return no_memory(err);
  tn_status st = make_call(op, t, &g->arena, &frame->call, err);
  if (st != TN_OK) return st;
  int64_t budget = BUDGET_BASE + BUDGET_PER_NODE * (int64_t)t->f->n_nodes;
  tn__call_state state = { .root = library, .functions = table, .budget = budget, .room = budget };
  st = tn__body_graph_fill(body, t->f, frame, &state, shapes, true, err);
  body->state = NULL;
  return st;
}

tn_status tn__function_set_signature(tn__function_instance *f, const tn_output *inputs, size_t n_inputs,
                                     const tn_output *outputs, size_t n_outputs, tn_error *err)
{
  tn_output *in = tn__arena_array(&f->graph->arena, n_inputs, sizeof *in);
  tn_output *out = tn__arena_array(&f->graph->arena, n_outputs, sizeof *out);
  if (in == NULL || out == NULL) return no_memory(err);
  if (n_inputs > 0) memcpy(in, inputs, n_inputs * sizeof *in);
  if (n_outputs > 0) memcpy(out, outputs, n_outputs * sizeof *out);
  f->inputs = in;
  f->outputs = out;
  f->n_inputs = n_inputs;
  f->n_outputs = n_outputs;
  return TN_OK;
}

static tn_status differentiate(tn__function_instance *f, tn_error *err)
{
  tn_status (*how)(tn__function_instance *, tn_error *) = tn__function_differentiate;
  if (how != NULL) return how(f, err);
  return tn_error_set(err, TN_UNIMPLEMENTED, "the library has no gradient of function '%s'", f->name);
}

static tn_status instantiate(const tn_operation *op, const target *t, const tn__value_shape *shapes,
                             tn__function_instance *out, tn_error *err)
{
  tn__body_graph body;
  tn_status st = tn__body_graph_begin(&body, t->f, err);
  if (st != TN_OK) return st;
  *out = (tn__function_instance){ .graph = body.graph, .name = t->f->name };
  st = fill(op, t, shapes, &body, err);
  out->outputs = body.outputs;
  out->n_outputs = body.n_outputs;
  if (st == TN_OK) st = list_inputs(out, t->f, err);
  if (st == TN_OK) st = list_targets(out, t->f, err);
  return st;
}

tn_status tn__function_instantiate(const tn_operation *op, uint32_t k, tn__function_instance *out, tn_error *err)
{
  target t;
  *out = (tn__function_instance){ .graph = NULL };
  tn_status st = find(op, k, &t, err);
  if (st == TN_OK) st = instantiate(op, &t, NULL, out, err);
  if (st == TN_OK) tn__graph_publish(out->graph);
  if (st == TN_OK && t.differentiate) st = differentiate(out, err);
  if (st != TN_OK) tn__function_instance_fini(out);
  return st;
}

/* ---- inlined bodies ---- */

#define MAX_PATH 1000 /* bytes of the path before a node's name, and of the name itself: they are copied per call */

bool tn__function_look(const tn_operation *op, uint32_t k, tn__function_facts *out)
{
  target t;
  tn_error why = TN_ERROR_INIT;
  if (op->name_size > MAX_PATH / 2) return false;
  tn_status st = find(op, k, &t, &why);
  tn_error_clear(&why);
  if (st != TN_OK || t.differentiate) return false;
  const tn_graph *library = library_of(op);
  const tn__functions *table = atomic_load_explicit(&library->functions, memory_order_acquire);
  *out = (tn__function_facts){ t.f, t.f->n_nodes, table->n_nodes + tn_graph_n_operations(library) };
  return true;
}

/* The known facts of the arguments: of the inputs of op, or of its outputs. */
static tn_status know_arguments(const tn_operation *op, bool as_outputs, tn__arena *arena, tn__value_shape **out,
                                tn_error *err)
{
  uint32_t n = as_outputs ? op->n_outputs : op->n_inputs;
  *out = tn__arena_array(arena, n, sizeof **out);
  tn_status st = *out == NULL ? no_memory(err) : TN_OK;
  for (uint32_t i = 0; st == TN_OK && i < n; i++) {
    const tn_output from = as_outputs ? (tn_output){ (tn_operation *)op, (int32_t)i } : op->inputs[i];
    st = tn__output_known(from, arena, &(*out)[i].shape, &(*out)[i].ints, err);
  }
  return st;
}

/* Prefixes the names of all nodes with the path of the call. The index is not updated: nodes of an inlined body are not
 * looked up by name. */
static tn_status put_path(const tn_operation *op, uint32_t k, tn_graph *g, tn_error *err)
{
  tn__text path;
  tn__text_init(&path, MAX_PATH);
  tn__function_path(op, k, &path);
  bool ok = !path.failed, fits = true;
  g->path_size = (uint32_t)path.size;
  for (size_t i = 0; fits && i < g->staged; i++) fits = tn__graph_at(g, i)->name_size <= MAX_PATH;
  for (size_t i = 0; ok && fits && i < g->staged; i++) {
    tn_operation *inner = tn__graph_at(g, i);
    char *name = tn__arena_alloc(&g->arena, path.size + inner->name_size + 1);
    ok = name != NULL;
    if (!ok) break;
    memcpy(name, path.data, path.size);
    memcpy(name + path.size, inner->name, inner->name_size + (size_t)1);
    inner->name = name;
    inner->name_size += (uint32_t)path.size;
  }
  tn__text_fini(&path);
  if (!fits)
    return tn_error_set(err, TN_UNIMPLEMENTED, "a node name has more than %d bytes, which is too long to inline",
                        MAX_PATH);
  return ok ? TN_OK : no_memory(err);
}

static tn_status check_arguments(const tn_operation *op, const target *t, bool as_outputs, const tn_operation *call,
                                 tn_error *err)
{
  size_t n = as_outputs ? op->n_outputs : op->n_inputs, wanted;
  tn_status st = tn__signature_count(call, t->f->schema.inputs, t->f->schema.n_inputs, &wanted, err);
  if (st != TN_OK || wanted == n) return st;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "function '%s' takes %zu arguments, but is called with %zu",
                      t->f->name, wanted, n);
}

tn_status tn__function_inline(const tn_operation *op, uint32_t k, bool as_outputs, tn__function_instance *out,
                              tn_error *err)
{
  target t;
  tn__arena arena;
  const tn_operation *call;
  tn__value_shape *shapes;
  *out = (tn__function_instance){ .graph = NULL };
  tn__arena_init(&arena, 1024);
  tn_status st = find(op, k, &t, err);
  if (st == TN_OK) st = make_call(op, &t, &arena, &call, err);
  if (st == TN_OK) st = check_arguments(op, &t, as_outputs, call, err);
  if (st == TN_OK) st = know_arguments(op, as_outputs, &arena, &shapes, err);
  if (st == TN_OK) st = instantiate(op, &t, shapes, out, err);
  if (st == TN_OK) st = put_path(op, k, out->graph, err);
  if (st == TN_OK) tn__graph_publish(out->graph);
  else tn__function_instance_fini(out);
  tn__arena_fini(&arena);
  return st;
}

void tn__function_instance_fini(tn__function_instance *instance)
{
  tn_graph_unref(instance->graph);
  *instance = (tn__function_instance){ .graph = NULL };
}
