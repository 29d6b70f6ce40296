/* SPDX-License-Identifier: Apache-2.0 */
/* FunctionDefLibrary of a GraphDef: checked in its structure, its signatures and bodies made readable. The bytes
 * themselves are kept with the rest of the file, for export. */
#include <core/formats/graphdef.h>
#include <core/graph/functions.h>

#include <string.h>

enum { G_LIBRARY = 2, L_FUNCTION = 1, L_GRADIENT = 2, GR_FUNCTION = 1, GR_GRADIENT = 2 };
enum { F_SIGNATURE = 1, F_NODE = 3, F_RET = 4 };
enum { S_NAME = 1, S_INPUT = 2, S_OUTPUT = 3, S_ATTR = 4 };
enum { A_NAME = 1, A_TYPE = 3, A_TYPE_ATTR = 4, A_NUMBER_ATTR = 5, A_LIST_ATTR = 6 };
enum { N_NAME = 1, N_OP = 2, N_INPUT = 3, N_ATTR = 5, E_KEY = 1, E_VALUE = 2 };

/* GraphDef, library, function, node, entry, value */
#define VALUE_DEPTH 6

typedef struct reader {
  tn__slice bytes;
  const char *file;
  tn__arena *arena;
  const tn__functions *old;
  tn__functions *table; /* that is made; has room for all */
  tn__map functions, gradients;
  tn__map names; /* arguments and nodes of the function that is read */
  tn_error *err;
} reader;

static tn_status no_memory(reader *r) { return tn__no_memory(r->err, r->file, 0); }
static int shown(tn__slice text) { return text.size > 200 ? 200 : (int)text.size; }

static tn_status malformed(reader *r, const uint8_t *at, const char *what)
{
  return tn_error_set(r->err, TN_INVALID_ARGUMENT, "%s: byte %zu: %s", r->file,
                      (size_t)(at - (const uint8_t *)r->bytes.data), what);
}

static tn_status after(reader *r, const tn__wire *w) { return w->error == NULL ? TN_OK : malformed(r, w->at, w->error); }

static size_t count(tn__slice message, uint32_t field)
{
  size_t n = 0;
  tn__wire w = tn__wire_read(message);
  while (tn__wire_next(&w)) n += tn__wire_is(&w, field, TN__WIRE_BYTES);
  return n;
}

/* The last such field, as protobuf has it. */
static tn__slice text_field(tn__slice message, uint32_t field)
{
  tn__slice found = { "", 0 };
  tn__wire w = tn__wire_read(message);
  while (tn__wire_next(&w))
    if (tn__wire_is(&w, field, TN__WIRE_BYTES)) found = w.bytes;
  return found;
}

static tn_status copy(reader *r, tn__slice text, const char **out)
{
  *out = text.size == 0 ? "" : tn__arena_string(r->arena, text.data, text.size);
  return *out == NULL ? no_memory(r) : TN_OK;
}

static tn_status in_function(reader *r, const tn_function *f, const char *what, tn__slice name, const char *wrong)
{
  return tn_error_set(r->err, TN_INVALID_ARGUMENT, "%s: function '%s': %s '%.*s' %s", r->file, f->name, what,
                      shown(name), name.data, wrong);
}

static tn_status add_name(reader *r, const tn_function *f, const char *what, tn__slice name)
{
  static char there;
  if (!tn__name_is_valid(name.data, name.size)) return in_function(r, f, what, name, "has no valid name");
  if (tn__map_get(&r->names, name.data, name.size) != NULL) return in_function(r, f, what, name, "is there twice");
  return tn__map_put(&r->names, name.data, name.size, &there, NULL) ? TN_OK : no_memory(r);
}

/* ---- signatures ---- */

static tn_status read_arg(reader *r, const tn_function *f, tn__slice proto, tn__function_arg *arg)
{
  uint64_t dtype = 0;
  tn__wire w = tn__wire_read(proto);
  while (tn__wire_next(&w))
    if (tn__wire_is(&w, A_TYPE, TN__WIRE_VARINT)) dtype = w.value;
  tn_status st = after(r, &w);
  if (st == TN_OK) st = copy(r, text_field(proto, A_NAME), &arg->name);
  if (st == TN_OK) st = copy(r, text_field(proto, A_TYPE_ATTR), &arg->type_attr);
  if (st == TN_OK) st = copy(r, text_field(proto, A_NUMBER_ATTR), &arg->number_attr);
  if (st == TN_OK) st = copy(r, text_field(proto, A_LIST_ATTR), &arg->list_attr);
  if (st != TN_OK) return st;
  tn__slice name = tn__slice_of(arg->name);
  if (dtype != 0 && (dtype > INT32_MAX || !tn__dtype_valid((tn_dtype)dtype)))
    return in_function(r, f, "argument", name, "has a type that does not exist");
  if ((dtype != 0) + (arg->type_attr[0] != '\0') + (arg->list_attr[0] != '\0') != 1)
    return in_function(r, f, "argument", name, "needs one type, or one attribute that says it");
  arg->dtype = dtype == 0 ? TN_DTYPE_INVALID : (tn_dtype)dtype;
  return TN_OK;
}

static tn_status read_args(reader *r, tn_function *f, tn__slice signature, uint32_t field, tn__function_arg **out,
                           size_t *n)
{
  *out = tn__arena_array(r->arena, count(signature, field), sizeof **out);
  if (*out == NULL) return no_memory(r);
  tn_status st = TN_OK;
  tn__wire w = tn__wire_read(signature);
  while (st == TN_OK && tn__wire_next(&w)) {
    if (!tn__wire_is(&w, field, TN__WIRE_BYTES)) continue;
    st = read_arg(r, f, w.bytes, &(*out)[(*n)++]);
    if (st == TN_OK && field == S_INPUT) st = add_name(r, f, "argument", text_field(w.bytes, A_NAME));
  }
  return st == TN_OK ? after(r, &w) : st;
}

static tn_status read_signature(reader *r, tn_function *f, tn__slice signature)
{
  tn_status st = read_args(r, f, signature, S_INPUT, &f->inputs, &f->n_inputs);
  if (st == TN_OK) st = read_args(r, f, signature, S_OUTPUT, &f->outputs, &f->n_outputs);
  if (st != TN_OK) return st;
  f->attrs = tn__arena_array(r->arena, count(signature, S_ATTR), sizeof *f->attrs);
  if (f->attrs == NULL) return no_memory(r);
  tn__wire w = tn__wire_read(signature);
  while (st == TN_OK && tn__wire_next(&w))
    if (tn__wire_is(&w, S_ATTR, TN__WIRE_BYTES)) {
      tn__wire all = tn__wire_read(w.bytes);
      while (tn__wire_next(&all)) { }
      st = after(r, &all);
      if (st == TN_OK) st = copy(r, text_field(w.bytes, A_NAME), &f->attrs[f->n_attrs++]);
    }
  return st;
}

/* ---- bodies ---- */

/* "arg", "arg:0", "node:out", "node:out:0", "^node": the part in front must be there. */
static tn_status check_edge(reader *r, const tn_function *f, tn__slice text)
{
  tn__slice name = text;
  if (name.size > 0 && name.data[0] == '^') name = (tn__slice){ name.data + 1, name.size - 1 };
  const char *colon = name.size == 0 ? NULL : memchr(name.data, ':', name.size);
  if (colon != NULL) name.size = (size_t)(colon - name.data);
  if (name.size > 0 && tn__map_get(&r->names, name.data, name.size) != NULL) return TN_OK;
  return in_function(r, f, "input", text, "names no argument or node of it");
}

static tn_status check_value(reader *r, tn__slice entry)
{
  tn__attr_head head;
  tn__fault fault;
  tn__wire w = tn__wire_read(entry);
  while (tn__wire_next(&w)) { }
  tn_status st = after(r, &w);
  if (st != TN_OK || tn__attr_scan(text_field(entry, E_VALUE), VALUE_DEPTH, &head, &fault)) return st;
  return malformed(r, fault.at, fault.what);
}

static tn_status read_node(reader *r, const tn_function *f, tn__slice proto, tn__function_node *node)
{
  tn_status st = TN_OK;
  tn__slice name = text_field(proto, N_NAME), op = text_field(proto, N_OP);
  tn__wire w = tn__wire_read(proto);
  while (st == TN_OK && tn__wire_next(&w))
    if (tn__wire_is(&w, N_ATTR, TN__WIRE_BYTES)) st = check_value(r, w.bytes);
  if (st == TN_OK) st = after(r, &w);
  if (st == TN_OK) st = add_name(r, f, "node", name);
  if (st == TN_OK && !tn__op_type_is_valid(op.data, op.size)) st = in_function(r, f, "node", name, "has no valid op");
  if (st == TN_OK) st = copy(r, name, &node->name);
  if (st == TN_OK) st = copy(r, op, &node->op);
  if (st != TN_OK) return st;
  node->inputs = tn__arena_array(r->arena, count(proto, N_INPUT), sizeof *node->inputs);
  if (node->inputs == NULL) return no_memory(r);
  w = tn__wire_read(proto);
  while (st == TN_OK && tn__wire_next(&w))
    if (tn__wire_is(&w, N_INPUT, TN__WIRE_BYTES)) st = copy(r, w.bytes, &node->inputs[node->n_inputs++]);
  return st;
}

static tn_status check_edges(reader *r, const tn_function *f)
{
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < f->n_nodes; i++)
    for (size_t k = 0; st == TN_OK && k < f->nodes[i].n_inputs; k++)
      st = check_edge(r, f, tn__slice_of(f->nodes[i].inputs[k]));
  tn__wire w = tn__wire_read(f->proto);
  while (st == TN_OK && tn__wire_next(&w))
    if (tn__wire_is(&w, F_RET, TN__WIRE_BYTES)) {
      tn__wire entry = tn__wire_read(w.bytes);
      while (tn__wire_next(&entry)) { }
      st = after(r, &entry);
      if (st == TN_OK) st = check_edge(r, f, text_field(w.bytes, E_VALUE));
    }
  return st;
}

static tn_status read_body(reader *r, tn_function *f)
{
  f->nodes = tn__arena_array(r->arena, count(f->proto, F_NODE), sizeof *f->nodes);
  if (f->nodes == NULL) return no_memory(r);
  tn_status st = TN_OK;
  tn__wire w = tn__wire_read(f->proto);
  while (st == TN_OK && tn__wire_next(&w))
    if (tn__wire_is(&w, F_NODE, TN__WIRE_BYTES)) st = read_node(r, f, w.bytes, &f->nodes[f->n_nodes++]);
  return st == TN_OK ? check_edges(r, f) : st;
}

/* ---- the library ---- */

static tn_status add_function(reader *r, tn__slice proto)
{
  tn__wire w = tn__wire_read(proto);
  while (tn__wire_next(&w)) { }
  tn_status st = after(r, &w);
  if (st != TN_OK) return st;
  tn__slice signature = text_field(proto, F_SIGNATURE);
  w = tn__wire_read(signature);
  while (tn__wire_next(&w)) { }
  if ((st = after(r, &w)) != TN_OK) return st;
  tn__slice name = text_field(signature, S_NAME);
  if (name.size == 0) return TN_OK; /* nothing can call it: it stays among the bytes and is not listed */
  if (memchr(name.data, 0, name.size) != NULL) /* TensorFlow's own names begin with "__" */
    return malformed(r, (const uint8_t *)proto.data, "a function's name has a zero byte");
  const tn_function *there = tn__map_get(&r->functions, name.data, name.size);
  if (there != NULL)
    return tn__slice_equal(there->proto, proto)
               ? TN_OK
               : tn_error_set(r->err, TN_INVALID_ARGUMENT, "%s: function '%s' is there with another definition",
                              r->file, there->name);
  tn_function *f = tn__arena_zalloc(r->arena, sizeof *f);
  if (f == NULL) return no_memory(r);
  f->proto = proto;
  if ((st = copy(r, name, &f->name)) != TN_OK) return st;
  tn__map_fini(&r->names);
  tn__map_init(&r->names);
  st = read_signature(r, f, signature);
  if (st == TN_OK) st = read_body(r, f);
  if (st != TN_OK) return st;
  if (!tn__map_put(&r->functions, f->name, name.size, f, NULL)) return no_memory(r);
  r->table->items[r->table->n] = r->table->sorted[r->table->n] = f;
  r->table->n++;
  return TN_OK;
}

static tn_status add_gradient(reader *r, tn__slice proto)
{
  tn__wire w = tn__wire_read(proto);
  while (tn__wire_next(&w)) { }
  tn_status st = after(r, &w);
  tn__slice function = text_field(proto, GR_FUNCTION), gradient = text_field(proto, GR_GRADIENT);
  if (st != TN_OK) return st;
  if (function.size == 0 || gradient.size == 0)
    return malformed(r, (const uint8_t *)proto.data, "a gradient needs two names of functions");
  const char *there = tn__map_get(&r->gradients, function.data, function.size);
  if (there != NULL)
    return tn__slice_is(gradient, there)
               ? TN_OK
               : tn_error_set(r->err, TN_INVALID_ARGUMENT, "%s: function '%.*s' has the gradient '%s' already", r->file,
                              shown(function), function.data, there);
  tn__gradient *g = &r->table->gradients[r->table->n_gradients];
  if ((st = copy(r, function, &g->function)) != TN_OK || (st = copy(r, gradient, &g->gradient)) != TN_OK) return st;
  if (!tn__map_put(&r->gradients, g->function, function.size, (void *)g->gradient, NULL)) return no_memory(r);
  r->table->n_gradients++;
  return TN_OK;
}

static tn_status start_table(reader *r, size_t n, size_t n_gradients)
{
  const tn__functions none = { 0 }, *old = r->old != NULL ? r->old : &none;
  tn__functions *t = r->table = tn__arena_zalloc(r->arena, sizeof *t);
  if (t == NULL) return no_memory(r);
  t->items = tn__arena_array(r->arena, old->n + n, sizeof *t->items);
  t->sorted = tn__arena_array(r->arena, old->n + n, sizeof *t->sorted);
  t->gradients = tn__arena_array(r->arena, old->n_gradients + n_gradients, sizeof *t->gradients);
  if (t->items == NULL || t->sorted == NULL || t->gradients == NULL) return no_memory(r);
  for (; t->n < old->n; t->n++) {
    tn_function *f = t->items[t->n] = t->sorted[t->n] = old->items[t->n];
    if (!tn__map_put(&r->functions, f->name, strlen(f->name), f, NULL)) return no_memory(r);
  }
  for (; t->n_gradients < old->n_gradients; t->n_gradients++) {
    tn__gradient g = t->gradients[t->n_gradients] = old->gradients[t->n_gradients];
    if (!tn__map_put(&r->gradients, g.function, strlen(g.function), (void *)g.gradient, NULL)) return no_memory(r);
  }
  return TN_OK;
}

static tn_status read_library(reader *r, tn__slice library)
{
  tn_status st = TN_OK;
  tn__wire w = tn__wire_read(library);
  while (st == TN_OK && tn__wire_next(&w)) {
    if (tn__wire_is(&w, L_FUNCTION, TN__WIRE_BYTES)) st = add_function(r, w.bytes);
    if (tn__wire_is(&w, L_GRADIENT, TN__WIRE_BYTES)) st = add_gradient(r, w.bytes);
  }
  return st == TN_OK ? after(r, &w) : st;
}

tn_status tn__functions_read(tn_graph *graph, tn__slice bytes, const char *file, const tn__functions **out,
                             tn_error *err)
{
  size_t n = 0, n_gradients = 0;
  const tn__functions *old = *out = atomic_load_explicit(&graph->functions, memory_order_acquire);
  tn__wire w = tn__wire_read(bytes);
  while (tn__wire_next(&w)) {
    if (!tn__wire_is(&w, G_LIBRARY, TN__WIRE_BYTES)) continue;
    n += count(w.bytes, L_FUNCTION);
    n_gradients += count(w.bytes, L_GRADIENT);
  }
  reader r = { .bytes = bytes, .file = file, .arena = &graph->arena, .old = old, .err = err };
  tn__map_init(&r.functions);
  tn__map_init(&r.gradients);
  tn__map_init(&r.names);
  tn_status st = n + n_gradients > 0 ? start_table(&r, n, n_gradients) : TN_OK;
  w = tn__wire_read(bytes);
  while (st == TN_OK && tn__wire_next(&w))
    if (tn__wire_is(&w, G_LIBRARY, TN__WIRE_BYTES)) st = read_library(&r, w.bytes);
  tn__map_fini(&r.functions);
  tn__map_fini(&r.gradients);
  tn__map_fini(&r.names);
  if (st != TN_OK || r.table == NULL) return st;
  tn__functions_sort(r.table);
  *out = r.table;
  return TN_OK;
}
