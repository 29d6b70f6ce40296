/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the FunctionDefLibrary of a GraphDef: checks its structure and makes signatures, nodes and edges accessible.
 * Attributes are read on demand (body.c). The bytes are kept with the rest of the file, for export.
 *
 * A function or gradient that the graph has already is skipped if it is identical, and refused otherwise. */
#include <core/formats/graphdef/functions.h>

#include <string.h>

/* Field numbers of GraphDef, FunctionDefLibrary, GradientDef, OpDef. */
enum { G_LIBRARY = 2, L_FUNCTION = 1, L_GRADIENT = 2, GR_FUNCTION = 1, GR_GRADIENT = 2, S_NAME = 1 };

#define VALUE_DEPTH 6 /* nesting of a value: GraphDef, library, function, node, entry, value */

typedef tn__library_reader reader;

/* ---- bodies ---- */

static bool has_output(const tn_op_schema *schema, tn__slice name)
{
  for (uint32_t i = 0; i < schema->n_outputs; i++)
    if (tn__slice_equal(name, (tn__slice){ schema->outputs[i].name, schema->outputs[i].name_size })) return true;
  return false;
}

/* Checks an edge: "arg", "arg:0", "node:out", "node:out:0" or "^node". The argument or node must exist, and its op, if
 * registered, must have the output. The index is not checked: the number of tensors of an output depends on the
 * call. */
static tn_status check_edge(reader *r, const tn_function *f, const char *what, tn__slice text)
{
  tn__function_edge edge;
  if (!tn__function_edge_parse(text.data, text.size, &edge))
    return tn__in_function(r, f, what, text, "is malformed, wanted for example 'x', 'node:y:0' or '^node'");
  const tn__function_node *from = tn__map_get(&r->names, edge.node.data, edge.node.size);
  if (from == NULL) return tn__in_function(r, f, what, text, "names no argument or node of it");
  if (edge.is_control) return TN_OK;
  if ((from == &tn__library_argument) != (edge.output.data == NULL))
    return tn__in_function(r, f, what, text,
                           from == &tn__library_argument ? "names an output of an argument"
                                                         : "names no output of the node");
  const tn_op_schema *schema = from == &tn__library_argument ? NULL : tn__schema_find(from->op, strlen(from->op));
  if (schema == NULL || has_output(schema, edge.output)) return TN_OK;
  return tn__in_function(r, f, what, text, "names an output that the op does not have");
}

/* Checks an entry of a map of attributes, so that decoding it later cannot fail for its encoding. */
static tn_status check_value(reader *r, tn__slice entry)
{
  tn__attr_head head;
  tn__fault fault;
  tn__wire w = tn__wire_read(entry);
  while (tn__wire_next(&w)) { }
  tn_status st = tn__library_after(r, &w);
  if (st != TN_OK || tn__attr_scan(tn__field_text(entry, TN__E_VALUE), VALUE_DEPTH, &head, &fault)) return st;
  return tn__library_malformed(r, fault.at, fault.what);
}

/* Reads name, op and inputs of a node, and checks the encoding of its attributes. */
static tn_status read_node(reader *r, const tn_function *f, tn__slice proto, tn__function_node *node)
{
  tn_status st = TN_OK;
  tn__slice name = tn__field_text(proto, TN__N_NAME), op = tn__field_text(proto, TN__N_OP);
  tn__wire w = tn__wire_read(proto);
  while (st == TN_OK && tn__wire_next(&w))
    if (tn__wire_is(&w, TN__N_ATTR, TN__WIRE_BYTES)) st = check_value(r, w.bytes);
  if (st == TN_OK) st = tn__library_after(r, &w);
  if (st == TN_OK) st = tn__function_add_name(r, f, name, node);
  if (st == TN_OK && !tn__op_type_is_valid(op.data, op.size))
    st = tn__in_function(r, f, "node", name, "has an invalid op name");
  if (st == TN_OK) st = tn__library_copy(r, name, &node->name);
  if (st == TN_OK) st = tn__library_copy(r, op, &node->op);
  if (st != TN_OK) return st;
  node->inputs = tn__arena_array(r->arena, tn__field_count(proto, TN__N_INPUT), sizeof *node->inputs);
  if (node->inputs == NULL) return tn__library_no_memory(r);
  w = tn__wire_read(proto);
  while (st == TN_OK && tn__wire_next(&w))
    if (tn__wire_is(&w, TN__N_INPUT, TN__WIRE_BYTES))
      st = tn__library_copy(r, w.bytes, &node->inputs[node->n_inputs++]);
  return st;
}

/* After all nodes are read, because an input may name a later node. */
static tn_status check_inputs(reader *r, const tn_function *f)
{
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < f->n_nodes; i++)
    for (size_t k = 0; st == TN_OK && k < f->nodes[i].n_inputs; k++)
      st = check_edge(r, f, "input", tn__slice_of(f->nodes[i].inputs[k]));
  return st;
}

/* ---- results ---- */

/* Reads an entry of `ret`. One for an output that the signature lacks is ignored, but kept in the bytes. */
static tn_status read_ret(reader *r, tn_function *f, tn__slice entry)
{
  tn__wire w = tn__wire_read(entry);
  while (tn__wire_next(&w)) { }
  tn_status st = tn__library_after(r, &w);
  tn__slice key = tn__field_text(entry, TN__E_KEY), value = tn__field_text(entry, TN__E_VALUE);
  if (st == TN_OK) st = check_edge(r, f, "output", value);
  if (st == TN_OK && value.data[0] == '^') return tn__in_function(r, f, "output", value, "is not a tensor");
  const tn__arg_spec *output = st == TN_OK ? tn__map_get(&r->outputs, key.data, key.size) : NULL;
  return output == NULL ? st : tn__library_copy(r, value, &f->rets[output - f->schema.outputs]);
}

/* Makes the map of the signature's outputs; of two with one name the first counts. */
static tn_status list_outputs(reader *r, const tn_function *f)
{
  tn_status st = TN_OK;
  for (uint32_t i = 0; st == TN_OK && i < f->schema.n_outputs; i++) {
    const tn__arg_spec *output = &f->schema.outputs[i];
    tn__slice name = { output->name, output->name_size };
    if (tn__map_get(&r->outputs, name.data, name.size) == NULL) st = tn__library_put(r, &r->outputs, name, output);
  }
  return st;
}

/* Reads an entry of `control_ret`: a name, and the node that runs for it. */
static tn_status read_control(reader *r, tn_function *f, tn__slice entry)
{
  tn__wire w = tn__wire_read(entry);
  while (tn__wire_next(&w)) { }
  tn_status st = tn__library_after(r, &w);
  tn__slice node = tn__field_text(entry, TN__E_VALUE);
  const tn__function_node *from = st == TN_OK ? tn__map_get(&r->names, node.data, node.size) : NULL;
  if (st == TN_OK && (from == NULL || from == &tn__library_argument))
    st = tn__in_function(r, f, "control output", node, "names no node of it");
  if (st != TN_OK) return st;
  tn__function_control *control = &f->controls[f->n_controls++];
  control->node = from->name;
  return tn__library_copy(r, tn__field_text(entry, TN__E_KEY), &control->name);
}

/* Reads the maps `ret` and `control_ret`. */
static tn_status read_outputs(reader *r, tn_function *f)
{
  f->rets = tn__arena_array(r->arena, f->schema.n_outputs, sizeof *f->rets);
  f->controls = tn__arena_array(r->arena, tn__field_count(f->proto, TN__F_CONTROL), sizeof *f->controls);
  if (f->rets == NULL || f->controls == NULL) return tn__library_no_memory(r);
  tn_status st = list_outputs(r, f);
  tn__wire w = tn__wire_read(f->proto);
  while (st == TN_OK && tn__wire_next(&w)) {
    if (tn__wire_is(&w, TN__F_RET, TN__WIRE_BYTES)) st = read_ret(r, f, w.bytes);
    if (tn__wire_is(&w, TN__F_CONTROL, TN__WIRE_BYTES)) st = read_control(r, f, w.bytes);
  }
  return st;
}

/* Reads nodes, then checks their inputs, then reads the results. */
static tn_status read_body(reader *r, tn_function *f)
{
  f->nodes = tn__arena_array(r->arena, tn__field_count(f->proto, TN__F_NODE), sizeof *f->nodes);
  if (f->nodes == NULL) return tn__library_no_memory(r);
  tn_status st = TN_OK;
  tn__wire w = tn__wire_read(f->proto);
  while (st == TN_OK && tn__wire_next(&w))
    if (tn__wire_is(&w, TN__F_NODE, TN__WIRE_BYTES)) st = read_node(r, f, w.bytes, &f->nodes[f->n_nodes++]);
  if (st == TN_OK) st = check_inputs(r, f);
  return st == TN_OK ? read_outputs(r, f) : st;
}

/* ---- the library ---- */

/* Checks that all fields of a message are well-formed. */
static tn_status whole(reader *r, tn__slice message)
{
  tn__wire w = tn__wire_read(message);
  while (tn__wire_next(&w)) { }
  return tn__library_after(r, &w);
}

/* Finds a function of this file so far, or of the graph. */
static const tn_function *find_function(const reader *r, tn__slice name)
{
  const tn_function *f = tn__map_get(&r->functions, name.data, name.size);
  return f != NULL ? f : tn__functions_find(r->old, name.data, name.size);
}

static const char *find_gradient(const reader *r, tn__slice function)
{
  const char *gradient = tn__map_get(&r->gradients, function.data, function.size);
  return gradient != NULL ? gradient : tn__functions_gradient(r->old, function.data, function.size);
}

/* Checks the name of a function. *skip: it need not be added. */
static tn_status check_function(reader *r, tn__slice proto, tn__slice name, bool *skip)
{
  *skip = true;
  if (name.size == 0) return TN_OK; /* it cannot be called: kept in the bytes, but not listed */
  if (!tn__text_is_plain(name)) /* nothing more: TensorFlow's own names begin with "__" and may contain "<lambda>" */
    return tn__library_malformed(r, (const uint8_t *)proto.data, "a function's name has a control character");
  const tn_function *there = find_function(r, name);
  if (there != NULL)
    return tn__slice_equal(there->proto, proto)
               ? TN_OK
               : tn_error_set(r->err, TN_INVALID_ARGUMENT, "%s: function '%s' exists with another definition", r->file,
                              there->name);
  if (tn__schema_find(name.data, name.size) != NULL)
    return tn_error_set(r->err, TN_INVALID_ARGUMENT, "%s: function '%.*s' has the name of an op", r->file,
                        tn__library_shown(name), name.data);
  *skip = false;
  return TN_OK;
}

/* Reads one FunctionDef into the new table. */
static tn_status add_function(reader *r, tn__slice proto)
{
  tn_status st = whole(r, proto);
  tn__slice signature = tn__field_text(proto, TN__F_SIGNATURE);
  if (st == TN_OK && tn__field_count(proto, TN__F_SIGNATURE) > 1) /* protobuf, and so our text form, would merge them */
    st = tn__library_malformed(r, (const uint8_t *)proto.data, "a function has two signatures");
  if (st == TN_OK) st = whole(r, signature);
  tn__slice name = tn__field_text(signature, S_NAME);
  bool skip = false;
  if (st == TN_OK) st = check_function(r, proto, name, &skip);
  if (st != TN_OK || skip) return st;
  tn_function *f = tn__arena_zalloc(r->arena, sizeof *f);
  if (f == NULL) return tn__library_no_memory(r);
  f->proto = proto;
  f->graph = r->graph;
  if ((st = tn__library_copy(r, name, &f->name)) != TN_OK) return st;
  tn__map_fini(&r->names);
  tn__map_fini(&r->outputs);
  st = tn__signature_read(r, f, signature);
  if (st == TN_OK) st = read_body(r, f);
  if (st == TN_OK) st = tn__library_put(r, &r->functions, (tn__slice){ f->name, name.size }, f);
  if (st != TN_OK) return st;
  r->table->items[r->table->n++] = r->table->sorted[r->table->n_sorted++] = f;
  r->table->n_nodes += f->n_nodes;
  return TN_OK;
}

/* Adds a gradient. Whether both functions exist is checked at the end, because they may follow in the file. */
static tn_status add_gradient(reader *r, tn__slice proto)
{
  tn_status st = whole(r, proto);
  tn__slice function = tn__field_text(proto, GR_FUNCTION), gradient = tn__field_text(proto, GR_GRADIENT);
  if (st != TN_OK) return st;
  if (function.size == 0 || gradient.size == 0)
    return tn__library_malformed(r, (const uint8_t *)proto.data, "a gradient needs two names of functions");
  const char *there = find_gradient(r, function);
  if (there != NULL)
    return tn__slice_is(gradient, there)
               ? TN_OK
               : tn_error_set(r->err, TN_INVALID_ARGUMENT, "%s: function '%.*s' has the gradient '%s' already", r->file,
                              tn__library_shown(function), function.data, there);
  tn__gradient *g = &r->table->gradients[r->table->n_gradients];
  st = tn__library_copy(r, function, &g->function);
  if (st == TN_OK) st = tn__library_copy(r, gradient, &g->gradient);
  if (st == TN_OK) st = tn__library_put(r, &r->gradients, (tn__slice){ g->function, function.size }, g->gradient);
  if (st == TN_OK) r->table->n_gradients++;
  return st;
}

/* Makes room for n more functions in the array of all. The array may be shared with the published table: its readers do
 * not look beyond their own count, so new items can be written after it. */
static tn_status make_items(reader *r, size_t n)
{
  tn__functions *t = r->table;
  if (n <= t->room - t->n) return TN_OK;
  size_t room = n > t->n ? t->n + n : 2 * t->n;
  tn__arena_credit(r->arena, (room - n) * sizeof *t->items); /* room for functions that are not from this file */
  tn_function **items = tn__arena_array(r->arena, room, sizeof *items);
  if (items == NULL) return tn__library_no_memory(r);
  if (t->n > 0) memcpy(items, t->items, t->n * sizeof *items);
  t->items = items;
  t->room = room;
  return TN_OK;
}

/* Begins a table that extends the graph's. It becomes visible only when it is published. */
static tn_status start_table(reader *r, size_t n, size_t n_gradients)
{
  tn__functions *t = r->table = tn__arena_zalloc(r->arena, sizeof *t);
  if (t == NULL) return tn__library_no_memory(r);
  if (r->old != NULL)
    *t = (tn__functions){ .items = r->old->items, .n = r->old->n, .room = r->old->room, .n_nodes = r->old->n_nodes,
                          .older = r->old };
  t->sorted = tn__arena_array(r->arena, n, sizeof *t->sorted);
  t->gradients = tn__arena_array(r->arena, n_gradients, sizeof *t->gradients);
  if (t->sorted == NULL || t->gradients == NULL) return tn__library_no_memory(r);
  return make_items(r, n);
}

static tn_status read_library(reader *r, tn__slice library)
{
  tn_status st = TN_OK;
  tn__wire w = tn__wire_read(library);
  while (st == TN_OK && tn__wire_next(&w)) {
    if (tn__wire_is(&w, L_FUNCTION, TN__WIRE_BYTES)) st = add_function(r, w.bytes);
    if (tn__wire_is(&w, L_GRADIENT, TN__WIRE_BYTES)) st = add_gradient(r, w.bytes);
  }
  return st == TN_OK ? tn__library_after(r, &w) : st;
}

/* Makes the graph that operations in bodies belong to, so that they are not taken for nodes of the graph. */
static tn_status make_home(reader *r)
{
  if (r->graph->bodies != NULL) return TN_OK;
  if (tn_graph_create(&r->graph->bodies, NULL) != TN_OK) return tn__library_no_memory(r);
  atomic_store_explicit(&r->graph->bodies->codec, &tn__graphdef_codec, memory_order_release);
  return TN_OK;
}

/* Checks that both functions of each new gradient exist. */
static tn_status check_gradients(reader *r)
{
  for (size_t i = 0; i < r->table->n_gradients; i++) {
    const tn__gradient *g = &r->table->gradients[i];
    const char *names[] = { g->function, g->gradient };
    for (int k = 0; k < 2; k++)
      if (find_function(r, tn__slice_of(names[k])) == NULL)
        return tn_error_set(r->err, TN_INVALID_ARGUMENT, "%s: the gradient '%s' of function '%s': there is no function "
                            "'%s'", r->file, g->gradient, g->function, names[k]);
  }
  return TN_OK;
}

/* A file may have several libraries, which protobuf would merge. */
static tn_status read_libraries(reader *r)
{
  tn_status st = TN_OK;
  tn__wire w = tn__wire_read(r->bytes);
  while (st == TN_OK && tn__wire_next(&w))
    if (tn__wire_is(&w, G_LIBRARY, TN__WIRE_BYTES)) st = read_library(r, w.bytes);
  if (st == TN_OK) st = check_gradients(r);
  if (st == TN_OK && !tn__functions_settle(r->table, r->arena)) st = tn__library_no_memory(r);
  return st;
}

/* Counts first, so that the table gets its room at once. */
tn_status tn__functions_read(tn_graph *graph, tn__slice bytes, const tn__origin *origin, const tn__functions **out,
                             tn_error *err)
{
  size_t n = 0, n_gradients = 0;
  const tn__functions *old = *out = atomic_load_explicit(&graph->functions, memory_order_acquire);
  reader r = { .bytes = bytes, .file = origin->name, .origin = origin, .graph = graph, .arena = &graph->arena,
               .old = old, .err = err };
  tn_status st = TN_OK;
  tn__wire w = tn__wire_read(bytes);
  while (st == TN_OK && tn__wire_next(&w)) {
    if (!tn__wire_is(&w, G_LIBRARY, TN__WIRE_BYTES)) continue;
    st = whole(&r, w.bytes); /* malformed bytes would only end the counting */
    n += tn__field_count(w.bytes, L_FUNCTION);
    n_gradients += tn__field_count(w.bytes, L_GRADIENT);
  }
  if (st != TN_OK || n + n_gradients == 0) return st;
  tn__map_init(&r.functions);
  tn__map_init(&r.gradients);
  tn__map_init(&r.names);
  tn__map_init(&r.outputs);
  st = start_table(&r, n, n_gradients);
  if (st == TN_OK && n > 0) st = make_home(&r);
  if (st == TN_OK) st = read_libraries(&r);
  tn__map_fini(&r.functions);
  tn__map_fini(&r.gradients);
  tn__map_fini(&r.names);
  tn__map_fini(&r.outputs);
  bool is_new = st == TN_OK && r.table->n_sorted + r.table->n_gradients > 0;
  if (is_new)
    *out = r.table;
  else
    tn__functions_abandon(r.table);
  return st;
}
