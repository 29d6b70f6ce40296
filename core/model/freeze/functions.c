/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of the new graph: one for each use that the main body reaches. A use in which nothing is a variable is
 * the function as it was; others get a new name, so that a process may have both. */
#include <core/model/freeze/freeze.h>

#include <string.h>

/* Fields of FunctionDef, its signature (OpDef), an ArgDef; FunctionDefLibrary and GradientDef. */
enum { F_SIGNATURE = 1, F_NODE = 3, F_RET = 4, F_ATTR = 5, F_ARG_ATTR = 7, F_RESOURCE_ID = 8 };
enum {
  O_NAME = 1,
  O_INPUT = 2,
  O_OUTPUT = 3,
  O_STATEFUL = 17,
  A_TYPE = 3,
  A_HANDLE_DATA = 7,
  A_FULL_TYPE = 17,
  LIB_GRADIENT = 2,
  GRADIENT_OF = 1,
  GRADIENT = 2
};

/* ---- what a use becomes ---- */

static tn_status reach(tn__freeze *fz, tn__freeze_use **stack)
{
  size_t n = 0;
  fz->main_use->reached = true;
  stack[n++] = fz->main_use;
  while (n > 0) {
    tn__freeze_use *use = stack[--n];
    for (size_t i = 0; i < use->body->n_calls; i++) {
      tn__freeze_use *callee = use->callees[i];
      if (callee == NULL) continue;
      tn__freeze_uses *caller = tn__arena_alloc(&fz->arena, sizeof *caller);
      if (caller == NULL) return tn__freeze_no_memory(fz);
      *caller = (tn__freeze_uses){ use, callee->callers };
      callee->callers = caller;
      if (!callee->reached) stack[n++] = callee;
      callee->reached = true;
    }
  }
  return TN_OK;
}

/* A use changes if it has a variable, or calls one that changes. */
static void spread_changes(tn__freeze *fz, tn__freeze_use **stack)
{
  size_t n = 0;
  for (tn__freeze_use *use = fz->first_use; use != NULL; use = use->next) {
    use->changed = use->body->has_variables;
    for (size_t i = 0; i < use->body->n_arguments; i++) use->changed = use->changed || use->arguments[i] != 0;
    if (use->changed) stack[n++] = use;
  }
  while (n > 0) {
    for (const tn__freeze_uses *c = stack[--n]->callers; c != NULL; c = c->next) {
      if (!c->use->changed) stack[n++] = c->use;
      c->use->changed = true;
    }
  }
}

/* Whether a use has no effects: its body has none if variables are values, and all resources that it gets are
 * variables. */
static bool is_pure(const tn__freeze_use *use)
{
  bool pure = !use->body->impure;
  for (size_t i = 0; pure && i < use->body->n_arguments; i++)
    pure = use->arguments[i] != 0 || tn_function_input_dtype(use->body->function, i) != TN_RESOURCE;
  return pure;
}

static bool is_free(const tn__freeze *fz, const char *name)
{
  return tn__map_get(&fz->taken, name, strlen(name)) == NULL && tn_graph_find_function(fz->graph, name) == NULL &&
         tn_op_schema_find(name) == NULL;
}

/* "NAME_frozen", "NAME_frozen_1", ... */
static tn_status name_use(tn__freeze *fz, tn__freeze_use *use)
{
  tn__slice old = tn__slice_of(tn_function_name(use->body->function));
  char suffix[40] = "_frozen";
  use->name = old.data;
  if (!use->changed) return TN_OK;
  use->name = tn__freeze_join(fz, old, tn__slice_of(suffix));
  while (use->name != NULL && !is_free(fz, use->name)) {
    tn__snprintf(suffix, sizeof suffix, "_frozen_%zu", ++use->body->n_named);
    use->name = tn__freeze_join(fz, old, tn__slice_of(suffix));
  }
  if (use->name == NULL || !tn__map_put(&fz->taken, use->name, strlen(use->name), use, NULL))
    return tn__freeze_no_memory(fz);
  return TN_OK;
}

tn_status tn__freeze_name_uses(tn__freeze *fz)
{
  size_t n = 0;
  for (const tn__freeze_use *use = fz->first_use; use != NULL; use = use->next) n++;
  tn__freeze_use **stack = tn__alloc_array(n, sizeof(tn__freeze_use *));
  if (stack == NULL) return tn__freeze_no_memory(fz);
  tn_status st = tn__freeze_spread_impurity(fz);
  if (st == TN_OK) st = reach(fz, stack);
  if (st == TN_OK) spread_changes(fz, stack);
  for (tn__freeze_use *use = fz->first_use; st == TN_OK && use != NULL; use = use->next) {
    if (!use->reached || use == fz->main_use) continue;
    use->pure = is_pure(use);
    st = name_use(fz, use);
  }
  tn__free(stack, n * sizeof(tn__freeze_use *));
  return st;
}

/* ---- writing a function ---- */

typedef struct function_writer {
  tn__freeze *fz;
  tn__sink *s;
  const tn__freeze_use *use;
} function_writer;

static void copy_field(tn__sink *s, const tn__wire *w) { tn__sink_put(s, w->at, (size_t)(w->p - w->at)); }

/* Writes an argument with the type of the variable's value. */
static void put_argument(const function_writer *f, const tn__wire *w, uint32_t type)
{
  if (type == 0) {
    copy_field(f->s, w);
    return;
  }
  size_t place = tn__freeze_open(f->s, w->field);
  tn__wire parts = tn__wire_read(w->bytes);
  while (tn__wire_next(&parts))
    if (parts.field != A_TYPE && parts.field != A_HANDLE_DATA && parts.field != A_FULL_TYPE) copy_field(f->s, &parts);
  tn__sink_int(f->s, A_TYPE, (uint64_t)tn__freeze_type_of(f->fz, type)->dtype);
  tn__sink_end(f->s, place);
}

static void put_signature(const function_writer *f, tn__slice signature)
{
  const tn__freeze_use *use = f->use;
  size_t place = tn__freeze_open(f->s, F_SIGNATURE), n_inputs = 0, n_outputs = 0;
  tn__wire w = tn__wire_read(signature);
  tn__sink_bytes(f->s, O_NAME, tn__slice_of(use->name));
  while (tn__wire_next(&w)) {
    bool input = tn__wire_is(&w, O_INPUT, TN__WIRE_BYTES) && n_inputs < use->body->n_arguments;
    bool output = tn__wire_is(&w, O_OUTPUT, TN__WIRE_BYTES) && n_outputs < use->body->n_results;
    bool left_out = w.field == O_NAME || (w.field == O_STATEFUL && use->pure);
    if (input)
      put_argument(f, &w, use->arguments[n_inputs++]);
    else if (output)
      put_argument(f, &w, use->results[n_outputs++]);
    else if (!left_out)
      copy_field(f->s, &w);
  }
  tn__sink_end(f->s, place);
}

/* An entry of the map from outputs to their sources. */
static void put_result(const function_writer *f, tn__slice entry)
{
  size_t place = tn__freeze_open(f->s, F_RET);
  tn__sink_bytes(f->s, TN__FZ_KEY, tn__field_text(entry, TN__FZ_KEY));
  tn__freeze_put_edge_text(f->fz, f->s, TN__FZ_VALUE, f->use, tn__field_text(entry, TN__FZ_VALUE));
  tn__sink_end(f->s, place);
}

/* An attribute of the function. "_input_shapes" has a shape for each argument, which for a variable was that of its
 * resource. */
static void put_attr(const function_writer *f, const tn__wire *w)
{
  tn__slice key = tn__field_text(w->bytes, TN__FZ_KEY);
  if (!tn__slice_is(key, "_input_shapes")) {
    copy_field(f->s, w);
    return;
  }
  size_t entry = tn__freeze_open(f->s, F_ATTR), i = 0;
  tn__sink_bytes(f->s, TN__FZ_KEY, key);
  size_t value = tn__freeze_open(f->s, TN__FZ_VALUE), list = tn__freeze_open(f->s, TN__FZ_A_LIST);
  tn__wire items = tn__wire_read(tn__field_text(tn__field_text(w->bytes, TN__FZ_VALUE), TN__FZ_A_LIST));
  while (tn__wire_next(&items)) {
    uint32_t type = i < f->use->body->n_arguments ? f->use->arguments[i++] : 0;
    if (type == 0)
      copy_field(f->s, &items);
    else
      tn__freeze_put_type_shape(f->s, TN__FZ_L_SHAPE, tn__freeze_type_of(f->fz, type));
  }
  tn__sink_end(f->s, list);
  tn__sink_end(f->s, value);
  tn__sink_end(f->s, entry);
}

/* The type of the argument whose number is the key of a map's entry. */
static uint32_t entry_type(const function_writer *f, tn__slice entry)
{
  uint64_t number = 0;
  tn__wire w = tn__wire_read(entry);
  while (tn__wire_next(&w))
    if (tn__wire_is(&w, TN__FZ_KEY, TN__WIRE_VARINT)) number = w.value;
  return number < f->use->body->n_arguments ? f->use->arguments[number] : 0;
}

/* Attributes of an argument, without the shape of a resource. */
static void put_argument_attrs(const function_writer *f, const tn__wire *w)
{
  if (entry_type(f, w->bytes) == 0) {
    copy_field(f->s, w);
    return;
  }
  size_t entry = tn__freeze_open(f->s, F_ARG_ATTR);
  tn__wire parts = tn__wire_read(w->bytes);
  while (tn__wire_next(&parts)) {
    if (!tn__wire_is(&parts, TN__FZ_VALUE, TN__WIRE_BYTES)) {
      copy_field(f->s, &parts);
      continue;
    }
    size_t value = tn__freeze_open(f->s, TN__FZ_VALUE);
    tn__wire attrs = tn__wire_read(parts.bytes);
    while (tn__wire_next(&attrs))
      if (!tn__slice_is(tn__field_text(attrs.bytes, TN__FZ_KEY), "_output_shapes")) copy_field(f->s, &attrs);
    tn__sink_end(f->s, value);
  }
  tn__sink_end(f->s, entry);
}

static void put_function(const function_writer *f)
{
  const tn__freeze_body *body = f->use->body;
  size_t place = tn__freeze_open(f->s, TN__FZ_LIB_FUNCTION);
  uint32_t node = (uint32_t)body->n_arguments;
  tn__wire w = tn__wire_read(body->function->proto);
  while (f->s->status == TN_OK && tn__wire_next(&w)) {
    bool bytes = w.type == TN__WIRE_BYTES;
    switch (bytes ? w.field : 0) {
    case F_SIGNATURE: put_signature(f, w.bytes); break;
    case F_NODE: tn__freeze_put_node(f->fz, f->s, F_NODE, f->use, node++); break;
    case F_RET: put_result(f, w.bytes); break;
    case F_ATTR: put_attr(f, &w); break;
    case F_ARG_ATTR: put_argument_attrs(f, &w); break;
    case F_RESOURCE_ID:
      if (entry_type(f, w.bytes) != 0) break; /* fall through */
    default: copy_field(f->s, &w); break;
    }
  }
  tn__sink_end(f->s, place);
}

/* Writes the gradient that the library has for a function, if both are in the new graph. */
static void put_gradient(tn__freeze *fz, tn__sink *s, const tn__freeze_use *use)
{
  const char *name = tn_graph_gradient(fz->graph, tn_function_name(use->body->function));
  const tn__freeze_body *body = name == NULL ? NULL : tn__map_get(&fz->bodies, name, strlen(name));
  const tn__freeze_use *gradient, *plain;
  if (body == NULL || s->status != TN_OK) return;
  s->status = tn__freeze_plain_use(fz, body, &gradient);
  if (s->status == TN_OK) s->status = tn__freeze_plain_use(fz, use->body, &plain);
  if (s->status != TN_OK || gradient == NULL || !gradient->reached || plain != use) return;
  size_t place = tn__freeze_open(s, LIB_GRADIENT);
  tn__sink_bytes(s, GRADIENT_OF, tn__slice_of(use->name));
  tn__sink_bytes(s, GRADIENT, tn__slice_of(gradient->name));
  tn__sink_end(s, place);
}

void tn__freeze_put_library(tn__freeze *fz, tn__sink *s)
{
  size_t place = tn__freeze_open(s, TN__FZ_G_LIBRARY);
  for (const tn__freeze_use *use = fz->first_use; s->status == TN_OK && use != NULL; use = use->next) {
    const function_writer f = { .fz = fz, .s = s, .use = use };
    if (!use->reached || use == fz->main_use) continue;
    if (use->changed)
      put_function(&f);
    else
      tn__sink_bytes(s, TN__FZ_LIB_FUNCTION, use->body->function->proto);
    put_gradient(fz, s, use);
  }
  tn__sink_end(s, place);
}
