/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies: nodes, their edges, and the functions that they call. */
#include <core/formats/file.h>
#include <core/model/freeze/freeze.h>

#include <string.h>

/* Fields of a FunctionDef. */
enum { F_NODE = 3 };

/* ---- shared by all files of freezing ---- */

tn_status tn__freeze_no_memory(tn__freeze *fz) { return tn__no_memory(fz->err, "frozen graph", fz->arena.bytes); }

tn_status tn__freeze_count(tn__freeze *fz, size_t n)
{
  if (n > TN__FREEZE_NODES - fz->n_made)
    return tn_error_set(fz->err, TN_RESOURCE_EXHAUSTED, "the frozen graph and its functions have more than %zu nodes",
                        TN__FREEZE_NODES);
  fz->n_made += n;
  return TN_OK;
}

const char *tn__freeze_join(tn__freeze *fz, tn__slice a, tn__slice b)
{
  char *text = tn__arena_alloc(&fz->arena, a.size + b.size + 1);
  if (text == NULL) return NULL;
  if (a.size > 0) memcpy(text, a.data, a.size);
  if (b.size > 0) memcpy(text + a.size, b.data, b.size);
  text[a.size + b.size] = 0;
  return text;
}

static bool is_taken(const tn__freeze *fz, const tn__freeze_body *body, const char *name)
{
  size_t size = strlen(name);
  if (tn__map_get(&body->names, name, size) != NULL) return true;
  return body->function == NULL &&
         (tn__map_get(&fz->taken, name, size) != NULL || tn_graph_find(fz->graph, name) != NULL);
}

const char *tn__freeze_unique(tn__freeze *fz, const tn__freeze_body *body, const char *name)
{
  const char *unique = name;
  char number[32];
  for (size_t i = 1; unique != NULL && is_taken(fz, body, unique); i++) {
    tn__snprintf(number, sizeof number, "_%zu", i);
    unique = tn__freeze_join(fz, tn__slice_of(name), tn__slice_of(number));
  }
  return unique;
}

tn_status tn__freeze_refuse(tn__freeze *fz, const tn__freeze_body *body, const tn__freeze_node *node, tn_status code,
                            const char *format, ...)
{
  char text[1000];
  va_list args;
  va_start(args, format);
  tn__vsnprintf(text, sizeof text, format, args);
  va_end(args);
  const char *function = body->function == NULL ? NULL : tn_function_name(body->function);
  int name = node->name.size > 300 ? 300 : (int)node->name.size, op = node->op.size > 100 ? 100 : (int)node->op.size;
  tn_error_set(fz->err, code, "%s%.200s%snode '%.*s' (%.*s) %s", function == NULL ? "" : "function '",
               function == NULL ? "" : function, function == NULL ? "" : "': ", name, node->name.data, op,
               node->op.data, text);
  tn_error_set_node(fz->err, node->name.data);
  return code;
}

/* ---- making a body ---- */

tn__freeze_node *tn__freeze_add_node(tn__freeze *fz, tn__freeze_body *body)
{
  tn__freeze_node *node = tn__arena_zalloc(&fz->arena, sizeof *node);
  if (node == NULL || !tn__grow((void **)&body->nodes, &body->node_room, body->n_nodes + 1, sizeof *body->nodes))
    return NULL;
  return body->nodes[body->n_nodes++] = node;
}

tn_status tn__freeze_add_edge(tn__freeze *fz, tn__freeze_body *body, tn__freeze_edge edge)
{
  if (!tn__grow((void **)&body->edges, &body->edge_room, body->n_edges + 1, sizeof *body->edges))
    return tn__freeze_no_memory(fz);
  body->edges[body->n_edges++] = edge;
  return TN_OK;
}

static tn_status add_call(tn__freeze *fz, tn__freeze_body *body, tn__freeze_call call)
{
  if (!tn__grow((void **)&body->calls, &body->call_room, body->n_calls + 1, sizeof *body->calls))
    return tn__freeze_no_memory(fz);
  body->calls[body->n_calls++] = call;
  body->nodes[call.node]->n_calls++;
  return TN_OK;
}

/* Adds the functions that an AttrValue names. The import has checked its encoding and its depth. */
static tn_status add_calls(tn__freeze *fz, tn__freeze_body *body, uint32_t node, tn__slice attr, tn__slice value,
                           unsigned depth);

/* The op SymbolicGradient calls the gradient that the library has for its function. */
static tn_status add_gradient(tn__freeze *fz, tn__freeze_body *body, tn__freeze_call call)
{
  if (!tn__slice_is(body->nodes[call.node]->op, "SymbolicGradient")) return TN_OK;
  const char *name = tn__freeze_join(fz, call.name, (tn__slice){ NULL, 0 });
  if (name == NULL) return tn__freeze_no_memory(fz);
  call.name = tn__slice_of(tn_graph_gradient(fz->graph, name));
  call.nested = true;
  return call.name.size == 0 ? TN_OK : add_call(fz, body, call);
}

static tn_status add_function(tn__freeze *fz, tn__freeze_body *body, uint32_t node, tn__slice attr, tn__slice func,
                              unsigned depth)
{
  const tn__freeze_call call = {
    .node = node, .nested = depth > 0, .attr = attr, .name = tn__field_text(func, TN__FZ_F_NAME)
  };
  tn_status st = add_call(fz, body, call);
  if (st == TN_OK) st = add_gradient(fz, body, call);
  tn__wire w = tn__wire_read(func);
  while (st == TN_OK && depth < TN__WIRE_DEPTH && tn__wire_next(&w))
    if (tn__wire_is(&w, TN__FZ_F_ATTR, TN__WIRE_BYTES))
      st = add_calls(fz, body, node, attr, tn__field_text(w.bytes, TN__FZ_VALUE), depth + 1);
  return st;
}

static tn_status add_calls(tn__freeze *fz, tn__freeze_body *body, uint32_t node, tn__slice attr, tn__slice value,
                           unsigned depth)
{
  tn_status st = TN_OK;
  tn__wire w = tn__wire_read(value);
  while (st == TN_OK && tn__wire_next(&w)) {
    if (tn__wire_is(&w, TN__FZ_A_FUNC, TN__WIRE_BYTES)) st = add_function(fz, body, node, attr, w.bytes, depth);
    if (!tn__wire_is(&w, TN__FZ_A_LIST, TN__WIRE_BYTES)) continue;
    tn__wire list = tn__wire_read(w.bytes);
    while (st == TN_OK && tn__wire_next(&list))
      if (tn__wire_is(&list, TN__FZ_L_FUNC, TN__WIRE_BYTES)) st = add_function(fz, body, node, attr, list.bytes, depth);
  }
  return st;
}

tn_status tn__freeze_set_op(tn__freeze *fz, tn__freeze_body *body, uint32_t number, tn__slice op)
{
  tn__freeze_node *node = body->nodes[number];
  const tn__freeze_op *row = tn__freeze_op_of(op);
  if (tn__freeze_is_variable(row->kind) && !tn__is_variable(node->operation))
    row = tn__freeze_op_of((tn__slice){ "", 0 });
  node->op = op;
  node->row = row;
  node->kind = row->kind;
  node->first_call = (uint32_t)body->n_calls;
  body->has_variables = body->has_variables || tn__freeze_is_variable(row->kind);
  if (row->kind == TN__FREEZE_OTHER && tn_graph_find_function(fz->graph, op.data) != NULL) {
    node->kind = TN__FREEZE_OWN_CALL;
    return add_call(fz, body, (tn__freeze_call){ .node = number, .name = op });
  }
  if (row->kind == TN__FREEZE_OTHER && tn__freeze_has_effect(op)) body->has_effect = true;
  if (tn_op_schema_find(op.data) == NULL) body->has_unknown = true;
  tn_status st = TN_OK;
  tn__wire w = tn__wire_read(node->bytes);
  while (st == TN_OK && tn__wire_next(&w))
    if (tn__wire_is(&w, TN__FZ_N_ATTR, TN__WIRE_BYTES))
      st = add_calls(fz, body, number, tn__field_text(w.bytes, TN__FZ_KEY), tn__field_text(w.bytes, TN__FZ_VALUE), 0);
  return st;
}

tn_status tn__freeze_index_readers(tn__freeze *fz, tn__freeze_body *body)
{
  size_t n = body->n_nodes;
  body->first_reader = tn__arena_array(&fz->arena, n + 1, sizeof *body->first_reader);
  body->readers = tn__arena_array(&fz->arena, body->n_edges, sizeof *body->readers);
  body->edge_node = tn__arena_array(&fz->arena, body->n_edges, sizeof *body->edge_node);
  if (body->first_reader == NULL || body->readers == NULL || body->edge_node == NULL) return tn__freeze_no_memory(fz);
  uint32_t *first = body->first_reader;
  for (int pass = 0; pass < 2; pass++) { /* counts; then places, from the end of each node's part */
    for (size_t i = n; i-- > 0;) {
      const tn__freeze_node *node = body->nodes[i];
      for (uint32_t e = node->first + node->n_data; e-- > node->first;) {
        uint32_t from = body->edges[e].from;
        body->edge_node[e] = (uint32_t)i;
        if (from == TN__FREEZE_NONE) continue;
        if (pass == 0)
          first[from]++;
        else
          body->readers[--first[from]] = e;
      }
    }
    for (size_t i = 1; pass == 0 && i <= n; i++) first[i] += first[i - 1];
  }
  return TN_OK;
}

/* ---- functions ---- */

static tn_status add_name(tn__freeze *fz, tn__freeze_body *body, const char *name)
{
  tn__freeze_node *node = tn__freeze_add_node(fz, body);
  if (node == NULL) return tn__freeze_no_memory(fz);
  node->name = tn__slice_of(name);
  node->row = tn__freeze_op_of((tn__slice){ "", 0 });
  if (!tn__map_put(&body->names, name, node->name.size, (void *)body->n_nodes, NULL)) return tn__freeze_no_memory(fz);
  return TN_OK;
}

static tn_status add_arguments(tn__freeze *fz, tn__freeze_body *body)
{
  const tn_function *f = body->function;
  const tn_op_schema *schema = tn_function_schema(f);
  tn_op_arg arg = { .struct_size = sizeof arg };
  tn_status st = TN_OK;
  body->n_arguments = tn_function_n_inputs(f);
  for (size_t i = 0; st == TN_OK && i < body->n_arguments; i++) {
    st = tn_op_schema_input(schema, i, &arg, fz->err);
    if (st == TN_OK) st = add_name(fz, body, tn_function_input_name(f, i));
    if (st != TN_OK) return st;
    body->nodes[i]->kind = TN__FREEZE_ARGUMENT;
    body->nodes[i]->op = tn__slice_of("argument");
    body->has_lists = body->has_lists || arg.number_attr >= 0 || arg.list_attr >= 0;
  }
  for (size_t i = 0; st == TN_OK && i < tn_function_n_outputs(f); i++) {
    st = tn_op_schema_output(schema, i, &arg, fz->err);
    body->has_lists = body->has_lists || arg.number_attr >= 0 || arg.list_attr >= 0;
    body->gives_resources = body->gives_resources || arg.dtype == TN_RESOURCE;
  }
  return st;
}

static tn_status add_nodes(tn__freeze *fz, tn__freeze_body *body)
{
  const tn_function *f = body->function;
  tn__wire w = tn__wire_read(f->proto);
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < tn_function_n_nodes(f); i++) {
    const char *op = tn_function_node_type(f, i);
    st = add_name(fz, body, tn_function_node_name(f, i));
    while (st == TN_OK && tn__wire_next(&w) && !tn__wire_is(&w, F_NODE, TN__WIRE_BYTES)) continue;
    if (st != TN_OK) return st;
    tn__freeze_node *node = body->nodes[body->n_nodes - 1];
    node->bytes = w.bytes;
    if (tn__freeze_is_variable(tn__freeze_op_of(tn__slice_of(op))->kind))
      st = tn_function_node(f, i, &node->operation, fz->err);
    if (st == TN_OK) st = tn__freeze_set_op(fz, body, (uint32_t)(body->n_nodes - 1), tn__slice_of(op));
  }
  return st;
}

/* Finds the number of an output that may be a variable, of a node whose outputs have names. The search is counted,
 * because a function may have very many outputs. */
static tn_status find_port(tn__freeze *fz, const tn__freeze_node *from, const tn__function_edge *edge, uint32_t *out)
{
  bool second = tn__slice_is(edge->output, "output_true") || tn__slice_is(edge->output, "value_index");
  *out = edge->index < 0 || edge->index >= TN__FREEZE_NONE ? 0 : (uint32_t)edge->index;
  if (second) *out = 1;
  if (from->kind != TN__FREEZE_OWN_CALL) return TN_OK;
  const tn_function *f = tn_graph_find_function(fz->graph, from->op.data);
  size_t n = tn_function_n_outputs(f);
  *out = TN__FREEZE_NONE;
  for (size_t i = 0; i < n && *out == TN__FREEZE_NONE; i++)
    if (tn__slice_is(edge->output, tn_function_output_name(f, i))) *out = (uint32_t)i;
  return tn__freeze_count(fz, n / 16);
}

/* Parses an input of a node. *fits: it is a data input if `data`, else a control input. */
static tn_status parse(tn__freeze *fz, const tn__freeze_body *body, const char *text, bool data, bool *fits,
                       tn__freeze_edge *out)
{
  tn__function_edge edge;
  *out = (tn__freeze_edge){ TN__FREEZE_NONE, 0, tn__slice_of(text) };
  bool ok = tn__function_edge_parse(text, out->text.size, &edge);
  *fits = ok ? edge.is_control != data : data;
  size_t found = ok && *fits ? (size_t)tn__map_get(&body->names, edge.node.data, edge.node.size) : 0;
  if (found == 0) return TN_OK;
  out->from = (uint32_t)(found - 1);
  return data ? find_port(fz, body->nodes[found - 1], &edge, &out->port) : TN_OK;
}

static tn_status add_inputs(tn__freeze *fz, tn__freeze_body *body, size_t i, bool data)
{
  tn__freeze_edge edge;
  bool fits;
  tn_status st = TN_OK;
  for (size_t k = 0; st == TN_OK && k < tn_function_node_n_inputs(body->function, i); k++) {
    st = parse(fz, body, tn_function_node_input(body->function, i, k), data, &fits, &edge);
    if (st == TN_OK && fits) st = tn__freeze_add_edge(fz, body, edge);
  }
  return st;
}

static tn_status add_results(tn__freeze *fz, tn__freeze_body *body)
{
  bool fits;
  body->n_results = tn_function_n_outputs(body->function);
  body->results = tn__arena_array(&fz->arena, body->n_results, sizeof *body->results);
  if (body->results == NULL) return tn__freeze_no_memory(fz);
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < body->n_results; i++) {
    const char *source = tn_function_output_source(body->function, i);
    st = parse(fz, body, source == NULL ? "" : source, true, &fits, &body->results[i]);
  }
  return st;
}

static tn_status add_edges(tn__freeze *fz, tn__freeze_body *body)
{
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < tn_function_n_nodes(body->function); i++) {
    tn__freeze_node *node = body->nodes[body->n_arguments + i];
    node->first = (uint32_t)body->n_edges;
    st = add_inputs(fz, body, i, true);
    node->n_data = (uint32_t)body->n_edges - node->first;
    if (st == TN_OK) st = add_inputs(fz, body, i, false);
    node->n_controls = (uint32_t)body->n_edges - node->first - node->n_data;
  }
  return st == TN_OK ? add_results(fz, body) : st;
}

static tn_status load(tn__freeze *fz, tn__freeze_body *body)
{
  const tn_function *f = body->function;
  tn_status st = tn__freeze_count(fz, tn_function_n_inputs(f) + tn_function_n_nodes(f));
  if (st == TN_OK) st = tn__bytes_keep(f->holder, f->proto.data, f->proto.size, fz->err);
  if (st == TN_OK) st = add_arguments(fz, body);
  if (st == TN_OK) st = add_nodes(fz, body);
  return st == TN_OK ? add_edges(fz, body) : st;
}

tn_status tn__freeze_body_get(tn__freeze *fz, tn__slice function, tn__freeze_body **out)
{
  *out = tn__map_get(&fz->bodies, function.data, function.size);
  if (*out != NULL) return TN_OK;
  const char *name = tn__freeze_join(fz, function, (tn__slice){ NULL, 0 });
  if (name == NULL) return tn__freeze_no_memory(fz);
  const tn_function *f = tn_graph_find_function(fz->graph, name);
  if (f == NULL) return TN_OK;
  tn__freeze_body *body = tn__arena_zalloc(&fz->arena, sizeof *body);
  if (body == NULL || !tn__grow((void **)&fz->all, &fz->body_room, fz->n_bodies + 1, sizeof(tn__freeze_body *)))
    return tn__freeze_no_memory(fz);
  fz->all[fz->n_bodies++] = body;
  body->function = f;
  tn__map_init(&body->names);
  if (!tn__map_put(&fz->bodies, name, function.size, body, NULL)) return tn__freeze_no_memory(fz);
  *out = body;
  return load(fz, body);
}

void tn__freeze_body_fini(tn__freeze_body *body)
{
  for (size_t i = 0; i < body->n_nodes; i++) tn_tensor_unref(body->nodes[i]->value);
  tn__free(body->nodes, body->node_room * sizeof *body->nodes);
  tn__free(body->edges, body->edge_room * sizeof *body->edges);
  tn__free(body->calls, body->call_room * sizeof *body->calls);
  tn__map_fini(&body->names);
}

/* ---- calls ---- */

tn_status tn__freeze_link(tn__freeze *fz, tn__freeze_body *body)
{
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < body->n_calls; i++)
    if (body->calls[i].body == NULL) st = tn__freeze_body_get(fz, body->calls[i].name, &body->calls[i].body);
  return st;
}

/* Adds a body to the callers of the functions that it calls. *unknown: it calls one that the library does not have. */
static tn_status add_to_callers(tn__freeze *fz, tn__freeze_body *body, bool *unknown)
{
  *unknown = false;
  for (size_t i = 0; i < body->n_calls; i++) {
    tn__freeze_body *callee = body->calls[i].body;
    tn__freeze_callers *caller = tn__arena_alloc(&fz->arena, sizeof *caller);
    if (caller == NULL) return tn__freeze_no_memory(fz);
    *unknown = *unknown || callee == NULL;
    if (callee == NULL) continue;
    *caller = (tn__freeze_callers){ body, callee->callers };
    callee->callers = caller;
  }
  return TN_OK;
}

/* A function is impure if one of its nodes has an effect, or if it calls an impure one. `stack` has room for all. */
static tn_status spread_impurity(tn__freeze *fz, tn__freeze_body **stack)
{
  size_t n = 0;
  bool unknown;
  for (size_t i = 0; i < fz->n_bodies; i++) fz->all[i]->callers = NULL;
  for (size_t i = 0; i < fz->n_bodies; i++) {
    tn__freeze_body *body = fz->all[i];
    tn_status st = add_to_callers(fz, body, &unknown);
    if (st != TN_OK) return st;
    body->impure = body->has_effect || unknown;
    if (body->impure) stack[n++] = body;
  }
  while (n > 0) {
    for (const tn__freeze_callers *c = stack[--n]->callers; c != NULL; c = c->next) {
      if (c->body->impure) continue;
      c->body->impure = true;
      stack[n++] = c->body;
    }
  }
  return TN_OK;
}

tn_status tn__freeze_spread_impurity(tn__freeze *fz)
{
  tn__freeze_body **stack = tn__alloc_array(fz->n_bodies, sizeof(tn__freeze_body *));
  if (stack == NULL && fz->n_bodies > 0) return tn__freeze_no_memory(fz);
  tn_status st = spread_impurity(fz, stack);
  tn__free(stack, fz->n_bodies * sizeof(tn__freeze_body *));
  return st;
}
