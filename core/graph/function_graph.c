/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the body of a function as a graph, for one call. Placeholders in attributes are replaced by attributes of the
 * call, input names become edges, and everything is checked as in any other graph.
 *
 * A body for shapes has only what shape functions need: attributes in the schemas, and edges that carry tensors. A body
 * that will be run is whole: with control edges and all attributes.
 *
 * The graph is private to its maker until it is published, so no lock is taken. */
#include <core/graph/functions.h>

#include <string.h>

typedef struct maker {
  tn__body_graph *out;
  tn_graph *graph;
  const tn_function *f;
  const tn__function_body *body;
  tn__call_frame *frame;
  tn__call_state *state;
  bool whole;       /* the body will be run: with control edges and all attributes */
  tn_output *edges; /* inputs of the current node, or results of the function; a heap block */
  size_t n_edges, room;
  tn_operation **controls; /* control inputs of the current node; a heap block */
  size_t n_controls, control_room;
  tn_error *err;
} maker;

static tn_status no_memory(maker *m) { return tn__no_memory(m->err, "body of a function", 0); }

/* Charges n nodes or edges to the budget (made in all) and the room (alive at once) of the query. */
static tn_status charge(maker *m, size_t n)
{
  tn__call_state *state = m->state;
  int64_t units = n > (size_t)INT32_MAX ? INT32_MAX : (int64_t)n;
  m->out->size += units;
  state->budget -= units;
  state->room -= units;
  if (state->budget >= 0 && state->room >= 0) return TN_OK;
  state->exhausted = true;
  if (m->whole)
    return tn_error_set(m->err, TN_RESOURCE_EXHAUSTED, "function '%s' has too many nodes and edges to be run",
                        m->f->name);
  return tn_error_set(m->err, TN_OUT_OF_RANGE, "calls of functions have too many nodes in all");
}

static tn_status in_node(maker *m, const char *node, tn_status st)
{
  if (st != TN_OK && st != TN_RESOURCE_EXHAUSTED)
    tn_error_prefix(m->err, "function '%s': node '%s'", m->f->name, node);
  return st;
}

tn_status tn__signature_count(const tn_operation *call, const tn__arg_spec *args, uint32_t n_args, size_t *out,
                              tn_error *err)
{
  size_t n = 0;
  for (uint32_t k = 0; k < n_args; k++) {
    size_t count = tn__arg_count(call, &args[k]);
    if (count > TN__MAX_OUTPUTS - n)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "argument '%s' of function '%s' has %zu tensors, at most %d are "
                          "supported", args[k].name, call->type, count, TN__MAX_OUTPUTS);
    n += count;
  }
  *out = n;
  return TN_OK;
}

tn_status tn__call_attr(const tn_operation *call, const tn__slice *name, const tn__attr **out, tn_error *err)
{
  const tn__attr *a = *out = call == NULL ? NULL : tn__op_attr_named(call, name->data, name->size);
  if (a == NULL || a->kind == TN_ATTR_NONE || a->kind == TN_ATTR_PLACEHOLDER)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "the call has no attribute '%.200s'", name->data);
  tn_status st = tn__op_attr_resolve(call, out, err);
  if (st != TN_OK) return st;
  a = *out;
  const tn__func *funcs = a->kind == TN_ATTR_FUNC ? &a->v.func : NULL;
  size_t n = funcs != NULL;
  if (a->kind == TN_ATTR_FUNC + TN_ATTR_LIST) funcs = a->v.list.items, n = a->v.list.n;
  for (size_t i = 0; i < n; i++) /* placeholders in them would refer to the wrong function's attributes here */
    if (funcs[i].attrs != NULL)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "'%.200s' is a function with attributes, which is not supported",
                          name->data);
  return TN_OK;
}

/* ---- arguments ---- */

/* Never called, because the shapes of an argument are set when it is made. But an op without a shape function would
 * count as one of unknown shapes. */
static tn_status infer_argument(tn_infer_ctx *ctx, tn_error *err)
{
  (void)ctx, (void)err;
  return TN_OK;
}

static const tn_op_def argument_def = { .struct_size = TN_OP_DEF_SIZE, .name = "(argument)", .inputs = "",
                                        .outputs = "", .attrs = "", .infer = infer_argument };
static const tn_op_schema argument_schema = { .def = &argument_def, .name = "(argument)", .state = TN__SCHEMA_READY,
                                              .constant_attr = -1, .plain_inputs = true, .plain_outputs = true };

static void set_name(tn_operation *op, const char *name)
{
  op->name = name;
  op->name_size = (uint32_t)strlen(name);
  op->hash = tn__hash(name, op->name_size);
}

/* Stores the facts of an argument's tensors, in advance of any inference. */
static tn_status set_shapes(maker *m, tn_operation *op, const tn__value_shape *values)
{
  size_t n = op->n_outputs;
  bool has_ints = false;
  tn__shape *shapes = tn__arena_array(&m->graph->arena, n, sizeof *shapes);
  tn__ints *ints = tn__arena_array(&m->graph->arena, n, sizeof *ints);
  if (shapes == NULL || ints == NULL) return no_memory(m);
  for (size_t i = 0; i < n; i++) {
    shapes[i] = values[i].shape;
    ints[i] = values[i].ints;
    has_ints = has_ints || ints[i].n >= 0;
  }
  tn__op_shapes *block = tn__shapes_pack(shapes, has_ints ? ints : NULL, n);
  if (block == NULL) return no_memory(m);
  atomic_store_explicit(&op->shapes, block, memory_order_relaxed); /* its epoch is 0, as the graph's */
  tn__graph_own(m->graph, &block->owned);
  return TN_OK;
}

static tn_status add_arguments(maker *m, const tn__value_shape *inputs)
{
  const tn_op_schema *s = &m->f->schema;
  tn_status st = TN_OK;
  for (uint32_t k = 0; st == TN_OK && k < s->n_inputs; k++) {
    size_t n = tn__arg_count(m->frame->call, &s->inputs[k]);
    if ((st = charge(m, n + 1)) != TN_OK) return st;
    tn_operation *op = tn__graph_stage(m->graph);
    set_name(op, s->inputs[k].name);
    op->schema = &argument_schema;
    op->type = argument_schema.name;
    op->device = "";
    op->traits = TN_TRAIT_PLACEHOLDER;
    op->n_outputs = (uint32_t)n;
    op->output_dtypes = tn__arena_alloc(&m->graph->arena, n);
    if (op->output_dtypes == NULL) return no_memory(m);
    for (size_t i = 0; i < n; i++) op->output_dtypes[i] = (uint8_t)tn__arg_dtype(m->frame->call, &s->inputs[k], i);
    tn__graph_index_add(m->graph, op);
    if (n > 0 && inputs != NULL) st = set_shapes(m, op, inputs);
    if (inputs != NULL) inputs += n;
  }
  return st;
}

/* ---- nodes ---- */

/* Copies an attribute of a node, or the attribute of the call that its placeholder names. The decoded value is copied:
 * the encoded one must not be, because other threads may be writing to it. */
static tn_status set_attr(maker *m, const tn_operation *node, const tn__attr *from, tn__attr *to)
{
  const tn__attr *value = from;
  bool own = from->kind != TN_ATTR_PLACEHOLDER;
  tn_status st = own ? tn__op_attr_resolve(node, &value, m->err)
                     : tn__call_attr(m->frame->call, &from->v.text, &value, m->err);
  if (st != TN_OK) return st;
  *to = *value;
  if (own) {
    to->place = from->place;
    to->proto = from->proto;
  }
  to->name = from->name;
  to->name_size = from->name_size;
  to->lazy = 0;
  return TN_OK;
}

/* Copies an attribute that the schema lacks, for kernels that read it. If it is a placeholder without a value, it is
 * left out. */
static tn_status set_more(maker *m, const tn_operation *node, const tn__attr *a, tn_operation *op)
{
  tn_error why = TN_ERROR_INIT;
  maker quiet = *m;
  quiet.err = &why;
  tn_status st = set_attr(&quiet, node, a, &op->attrs[op->n_attrs]);
  if (st == TN_OK) op->n_attrs++;
  if (st == TN_RESOURCE_EXHAUSTED && m->err != NULL) tn_error_copy(m->err, &why);
  tn_error_clear(&why);
  return st == TN_RESOURCE_EXHAUSTED ? st : TN_OK;
}

static tn_status set_attrs(maker *m, const tn_operation *node, tn_operation *op)
{
  if (op->schema == NULL) return TN_OK;
  op->attrs = tn__arena_array(&m->graph->arena, node->n_attrs, sizeof *op->attrs);
  if (op->attrs == NULL) return no_memory(m);
  tn_status st = TN_OK;
  for (uint32_t i = 0; st == TN_OK && i < node->n_attrs; i++) {
    const tn__attr *a = &node->attrs[i];
    if (tn__schema_attr_index(op->schema, a->name, a->name_size) >= 0) {
      st = set_attr(m, node, a, &op->attrs[op->n_attrs]);
      op->n_attrs++;
    } else if (m->whole) {
      st = set_more(m, node, a, op);
    }
  }
  return st;
}

static tn_status add_node(maker *m, size_t i)
{
  const tn_operation *node = &m->body->nodes[i];
  tn_operation *op = tn__graph_stage(m->graph);
  set_name(op, node->name);
  op->type = node->type;
  op->device = node->device;
  op->schema = node->schema;
  if (op->schema == NULL)
    op->schema = tn__functions_schema(m->state->functions, op->type, strlen(op->type));
  op->traits = op->schema == NULL ? 0 : op->schema->traits;
  tn__graph_index_add(m->graph, op);
  tn_status st = charge(m, 1 + (size_t)node->n_attrs);
  if (st == TN_OK) st = set_attrs(m, node, op);
  if (st == TN_OK) st = tn__op_check_attrs(op, &m->graph->arena, m->err);
  if (st == TN_OK) st = tn__op_set_outputs(op, &m->graph->arena, m->err);
  if (st == TN_OK) st = charge(m, op->n_outputs);
  return in_node(m, op->name, st);
}

/* ---- edges ---- */

static tn_status add_edges(maker *m, tn_operation *from, size_t first, size_t n)
{
  tn_status st = charge(m, n);
  if (st != TN_OK) return st;
  if (!tn__grow((void **)&m->edges, &m->room, m->n_edges + n, sizeof *m->edges)) return no_memory(m);
  for (size_t i = 0; i < n; i++) m->edges[m->n_edges++] = (tn_output){ from, (int32_t)(first + i) };
  return TN_OK;
}

static tn_status wrong(maker *m, const char *text, const char *what)
{
  return tn_error_set(m->err, TN_INVALID_ARGUMENT, "'%.200s' %s", text, what);
}

/* Finds the range of the node's outputs with this name. The search is charged to the budget, because a function may
 * have very many outputs. */
static bool range_of(maker *m, const tn_operation *op, tn__slice name, size_t *first, size_t *n)
{
  *first = 0;
  m->state->budget -= op->schema->n_outputs / 16;
  for (uint32_t k = 0; k < op->schema->n_outputs; k++) {
    const tn__arg_spec *arg = &op->schema->outputs[k];
    *n = tn__arg_count(op, arg);
    if (tn__slice_equal(name, (tn__slice){ arg->name, arg->name_size })) return true;
    *first += *n;
  }
  return false;
}

/* A control edge from an argument is left out: an argument is available from the start. */
static tn_status add_control(maker *m, tn_operation *from)
{
  if (!m->whole || from->schema == &argument_schema) return TN_OK;
  if (!tn__grow((void **)&m->controls, &m->control_room, m->n_controls + 1, sizeof *m->controls)) return no_memory(m);
  m->controls[m->n_controls++] = from;
  return charge(m, 1);
}

/* Adds the edges that the text names: one tensor, all tensors of an output, or a control edge. */
static tn_status resolve(maker *m, const char *text)
{
  tn__function_edge edge;
  if (!tn__function_edge_parse(text, strlen(text), &edge)) return wrong(m, text, "is malformed");
  if (edge.is_control && !m->whole) return TN_OK;
  tn_operation *from = tn__graph_find_staged(m->graph, edge.node.data, edge.node.size);
  if (from == NULL) return wrong(m, text, "names no argument or node");
  if (edge.is_control) return add_control(m, from);
  if (from->schema == NULL)
    return add_edges(m, from, edge.index < 0 || edge.index > INT32_MAX ? 0 : (size_t)edge.index, 1);
  size_t first = 0, n = from->n_outputs;
  if (from->schema != &argument_schema && !range_of(m, from, edge.output, &first, &n))
    return wrong(m, text, "names an output that the op does not have");
  if (edge.index < 0) return add_edges(m, from, first, n);
  if ((uint64_t)edge.index >= n) return wrong(m, text, "is past the end of the output");
  return add_edges(m, from, first + (size_t)edge.index, 1);
}

static tn_status keep_edges(maker *m, tn_output **out)
{
  *out = tn__arena_array(&m->graph->arena, m->n_edges, sizeof **out);
  if (*out == NULL) return no_memory(m);
  if (m->n_edges > 0) memcpy(*out, m->edges, m->n_edges * sizeof **out);
  return TN_OK;
}

static tn_status keep_controls(maker *m, tn_operation *op)
{
  if (m->n_controls == 0) return TN_OK;
  op->controls = tn__arena_array(&m->graph->arena, m->n_controls, sizeof(tn_operation *));
  if (op->controls == NULL) return no_memory(m);
  memcpy(op->controls, m->controls, m->n_controls * sizeof *m->controls);
  op->n_controls = (uint32_t)m->n_controls;
  return TN_OK;
}

static tn_status set_inputs(maker *m, size_t i, tn_operation *op)
{
  const tn__function_node *node = &m->f->nodes[i];
  tn_status st = TN_OK;
  m->n_edges = m->n_controls = 0;
  for (size_t k = 0; st == TN_OK && k < node->n_inputs; k++) st = resolve(m, node->inputs[k]);
  if (st == TN_OK) st = keep_edges(m, &op->inputs);
  op->n_inputs = st == TN_OK ? (uint32_t)m->n_edges : 0;
  if (st == TN_OK) st = keep_controls(m, op);
  if (st == TN_OK) st = tn__op_check_inputs(op, &m->graph->arena, m->err);
  return in_node(m, op->name, st);
}

/* ---- cycles ---- */

/* An operation on the stack of the depth-first search. */
typedef struct frame {
  const tn_operation *op;
  uint32_t next; /* number of the next input, then control input */
} frame;

/* The source of the operation's next edge; NULL at the end. */
static const tn_operation *next_edge(const maker *m, frame *at)
{
  const tn_operation *op = at->op;
  if (op->schema == NULL && !m->whole) return NULL; /* an unregistered op may be part of a loop; shapes end there */
  if (at->next >= op->n_inputs + op->n_controls) return NULL;
  uint32_t i = at->next++;
  return i < op->n_inputs ? op->inputs[i].op : op->controls[i - op->n_inputs];
}

/* Shape inference and execution terminate only if all cycles go through back edges of loops. In `seen`, 1 is on the
 * stack, 2 is done. */
static tn_status walk_from(maker *m, const tn_operation *root, uint8_t *seen, frame *stack)
{
  size_t depth = 0;
  if (seen[root->id] != 0) return TN_OK;
  seen[root->id] = 1;
  stack[depth++] = (frame){ root, 0 };
  while (depth > 0) {
    frame *at = &stack[depth - 1];
    const tn_operation *from = next_edge(m, at);
    if (from == NULL) {
      seen[at->op->id] = 2;
      depth--;
      continue;
    }
    if (seen[from->id] == 2 || tn__is_back_edge(from, at->op)) continue;
    if (seen[from->id] == 1)
      return tn_error_set(m->err, TN_INVALID_ARGUMENT, "function '%s': node '%s' is part of a cycle", m->f->name,
                          from->name);
    seen[from->id] = 1;
    stack[depth++] = (frame){ from, 0 };
  }
  return TN_OK;
}

static tn_status check_cycles(maker *m)
{
  size_t n = m->graph->staged;
  uint8_t *seen = tn__arena_array(&m->graph->arena, n, sizeof *seen);
  frame *stack = tn__arena_array(&m->graph->arena, n, sizeof *stack);
  if (seen == NULL || stack == NULL) return no_memory(m);
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < n; i++) st = walk_from(m, tn__graph_at(m->graph, i), seen, stack);
  return st;
}

/* ---- results ---- */

static tn_status check_output(maker *m, const tn__arg_spec *arg, size_t first)
{
  size_t wanted = tn__arg_count(m->frame->call, arg), found = m->n_edges - first;
  if (wanted != found)
    return tn_error_set(m->err, TN_INVALID_ARGUMENT,
                        "function '%s': output '%s' has %zu tensors, but its body returns %zu", m->f->name, arg->name,
                        wanted, found);
  for (size_t i = 0; i < found; i++) {
    tn_output from = m->edges[first + i];
    tn_dtype dtype = tn_operation_output_dtype(from.op, (size_t)from.index);
    tn_dtype type = tn__dtype_base(tn__arg_dtype(m->frame->call, arg, i));
    if (from.op->schema == NULL || tn__dtype_base(dtype) == type) continue;
    return tn_error_set(m->err, TN_INVALID_ARGUMENT, "function '%s': output '%s' has type %s, but its body returns %s",
                        m->f->name, arg->name, tn_dtype_name(type), tn_dtype_name(dtype));
  }
  return TN_OK;
}

static tn_status set_outputs(maker *m)
{
  const tn_op_schema *s = &m->f->schema;
  tn_status st = TN_OK;
  m->n_edges = 0;
  for (uint32_t k = 0; st == TN_OK && k < s->n_outputs; k++) {
    size_t first = m->n_edges;
    if (m->f->rets[k] == NULL)
      return tn_error_set(m->err, TN_INVALID_ARGUMENT, "function '%s': its output '%s' has no source", m->f->name,
                          s->outputs[k].name);
    st = resolve(m, m->f->rets[k]);
    if (st == TN_OK) st = check_output(m, &s->outputs[k], first);
  }
  if (st == TN_OK) st = keep_edges(m, &m->out->outputs);
  m->out->n_outputs = st == TN_OK ? m->n_edges : 0;
  return st;
}

/* ---- the whole body ---- */

static tn_status make(maker *m, const tn__value_shape *inputs)
{
  tn_graph *g = m->graph;
  size_t n_nodes = m->f->n_nodes, n = n_nodes + m->f->schema.n_inputs;
  tn_status st = charge(m, n);
  if (st == TN_OK) st = tn__function_body_get(m->f, &m->body, m->err);
  if (st == TN_OK) st = tn__graph_reserve(g, n, m->err);
  if (st == TN_OK) st = add_arguments(m, inputs);
  for (size_t i = 0; st == TN_OK && i < n_nodes; i++) st = add_node(m, i);
  for (size_t i = 0; st == TN_OK && i < n_nodes; i++)
    st = set_inputs(m, i, tn__graph_at(g, m->f->schema.n_inputs + i));
  if (st == TN_OK) st = check_cycles(m);
  if (st == TN_OK) st = set_outputs(m);
  return st;
}

tn_status tn__body_graph_begin(tn__body_graph *out, const tn_function *f, tn_error *err)
{
  *out = (tn__body_graph){ .graph = NULL };
  if (tn_graph_create(&out->graph, NULL) != TN_OK) return tn__no_memory(err, "body of a function", sizeof *out->graph);
  out->graph->lender = f->graph->bodies;
  atomic_store_explicit(&out->graph->codec, atomic_load_explicit(&f->graph->bodies->codec, memory_order_acquire),
                        memory_order_relaxed);
  return TN_OK;
}

tn_status tn__body_graph_fill(tn__body_graph *out, const tn_function *f, tn__call_frame *call, tn__call_state *state,
                              const tn__value_shape *inputs, bool whole, tn_error *err)
{
  maker m = { .out = out, .graph = out->graph, .f = f, .frame = call, .state = state, .whole = whole,
              .err = err };
  out->state = state;
  out->graph->frame = call;
  tn_status st = make(&m, inputs);
  tn__free(m.edges, m.room * sizeof *m.edges);
  tn__free(m.controls, m.control_room * sizeof *m.controls);
  return st;
}

void tn__body_graph_fini(tn__body_graph *body)
{
  if (body->state != NULL) body->state->room += body->size;
  tn_graph_unref(body->graph);
  *body = (tn__body_graph){ .graph = NULL };
}
