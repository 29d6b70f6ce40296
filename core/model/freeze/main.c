/* SPDX-License-Identifier: Apache-2.0 */
/* The main body: the nodes that the outputs of the signature need, backwards over data and control edges.
 *
 * Each node has a role. PLAIN is an operation of the model's graph, or of the function of a replaced call. The others
 * are made here: FED is a placeholder for an input of the signature that is not a placeholder in the model's graph.
 * For a replaced call, JOIN has the call's name and outputs and waits for the function's effects; GATE waits for what
 * the call waited for; HAND hands an argument in, after the gate.
 *
 * Inside a call, an argument stands for the value that the call passes, and a replaced call's output for the result of
 * its function. These are looked through, which needs no nodes, except where the call's control edges or effects
 * matter. */
#include <core/formats/graphdef/graphdef.h>
#include <core/model/freeze/freeze.h>

#include <string.h>

enum { PLAIN, FED, JOIN, GATE, HAND };

typedef struct origin {
  uint8_t role;
  bool needs_operation;    /* of FED: the operation itself is needed, too */
  tn__freeze_scope *scope; /* that the node is in; of JOIN, GATE and HAND: that of the replaced call */
  tn_operation *op;        /* of PLAIN and FED */
  uint32_t argument;       /* of HAND */
} origin;

typedef struct collector {
  tn__freeze *fz;
  tn__freeze_body *body;
  origin *origins; /* of each node; a heap block */
  size_t room;
  tn__map plain, fed, scopes; /* by operation: node numbers plus 1, tn__freeze_scope */
  tn__map inputs;             /* operations of the signature's inputs that are no placeholders */
} collector;

/* ---- nodes ---- */

static tn_status add_node(collector *c, origin from, const char *name, uint32_t *out)
{
  tn__freeze *fz = c->fz;
  tn_status st = tn__freeze_count(fz, 1);
  if (st != TN_OK) return st;
  tn__freeze_node *node = name == NULL ? NULL : tn__freeze_add_node(fz, c->body);
  if (node == NULL || !tn__grow((void **)&c->origins, &c->room, c->body->n_nodes, sizeof *c->origins))
    return tn__freeze_no_memory(fz);
  *out = (uint32_t)(c->body->n_nodes - 1);
  c->origins[*out] = from;
  node->name = tn__slice_of(name);
  node->row = tn__freeze_op_of((tn__slice){ "", 0 });
  node->operation = from.op;
  if (from.scope != NULL) node->device = from.scope->device;
  if (!tn__map_put(&c->body->names, name, node->name.size, (void *)c->body->n_nodes, NULL))
    return tn__freeze_no_memory(fz);
  return TN_OK;
}

/* The node of an operation, PLAIN or FED, added at the first call. */
static tn_status node_of(collector *c, tn__map *map, uint8_t role, tn__freeze_scope *scope, tn_operation *op,
                         uint32_t *out)
{
  size_t found = (size_t)tn__map_get(map, (const char *)&op, sizeof op);
  *out = (uint32_t)(found - 1);
  if (found != 0) return TN_OK;
  const origin from = { .role = role, .scope = scope, .op = op };
  tn_status st = add_node(c, from, tn__freeze_inner_name(c->fz, scope, tn_operation_name(op)), out);
  if (st != TN_OK) return st;
  const char *key = (const char *)&c->body->nodes[*out]->operation;
  return tn__map_put(map, key, sizeof op, (void *)(*out + (size_t)1), NULL) ? TN_OK : tn__freeze_no_memory(c->fz);
}

/* A node that is made for a replaced call, added at the first call: *place is 1 + its number. */
static tn_status made_node(collector *c, uint8_t role, tn__freeze_scope *scope, uint32_t argument, const char *name,
                           uint32_t *place, uint32_t *out)
{
  tn_status st = TN_OK;
  if (*place == 0) {
    const origin from = { .role = role, .scope = scope, .argument = argument };
    st = add_node(c, from, name, out);
    if (st == TN_OK) *place = *out + 1;
  }
  *out = *place - 1;
  return st;
}

static tn_status join_of(collector *c, tn__freeze_scope *scope, uint32_t *out)
{
  return made_node(c, JOIN, scope, 0, scope->name, &scope->join, out);
}

static tn_status hand_of(collector *c, tn__freeze_scope *scope, uint32_t argument, uint32_t *out)
{
  const char *name = NULL;
  if (scope->arguments[argument] == 0)
    name = tn__freeze_inner_name(c->fz, scope, tn_operation_name(scope->f.inputs[argument].op));
  return made_node(c, HAND, scope, argument, name, &scope->arguments[argument], out);
}

/* The gate of a call, or of the nearest call around it that has one. *out is TN__FREEZE_NONE if there is none. */
static tn_status gate_of(collector *c, tn__freeze_scope *scope, uint32_t *out)
{
  while (scope != NULL && !scope->gated) scope = scope->parent;
  *out = TN__FREEZE_NONE;
  if (scope == NULL) return TN_OK;
  const char *name = scope->gate != 0 ? NULL : tn__freeze_inner_name(c->fz, scope, "control_inputs");
  return made_node(c, GATE, scope, 0, name, &scope->gate, out);
}

/* ---- edges ---- */

/* Finds the node that a tensor comes from. */
static tn_status resolve(collector *c, tn__freeze_scope *scope, tn_output from, tn__freeze_edge *edge)
{
  uint32_t argument;
  for (;;) {
    *edge = (tn__freeze_edge){ .port = (uint32_t)from.index };
    if (tn__freeze_argument(scope, from, &argument)) {
      if (scope->gated || scope->anchored) {
        edge->port = 0;
        return hand_of(c, scope, argument, &edge->from);
      }
      from = tn_operation_input(scope->call, argument);
      scope = scope->parent;
    } else if (tn__freeze_is_inlined(c->fz, from.op)) {
      tn__freeze_scope *inner;
      tn_status st = tn__freeze_scope_get(c->fz, &c->scopes, scope, from.op, &inner);
      if (st != TN_OK || inner->effects) return st == TN_OK ? join_of(c, inner, &edge->from) : st;
      from = inner->f.outputs[from.index];
      scope = inner;
    } else if (scope == NULL && tn__map_get(&c->inputs, (const char *)&from.op, sizeof from.op) != NULL) {
      tn_status st = node_of(c, &c->fed, FED, NULL, from.op, &edge->from);
      if (st == TN_OK && from.index != 0) c->origins[edge->from].needs_operation = true;
      return st;
    } else {
      return node_of(c, &c->plain, PLAIN, scope, from.op, &edge->from);
    }
  }
}

static tn_status add_data(collector *c, uint32_t node, tn__freeze_scope *scope, tn_output from)
{
  tn__freeze_edge edge;
  tn_status st = resolve(c, scope, from, &edge);
  if (st == TN_OK) st = tn__freeze_add_edge(c->fz, c->body, edge);
  if (st == TN_OK) c->body->nodes[node]->n_data++;
  return st;
}

static tn_status add_control_node(collector *c, uint32_t node, uint32_t from)
{
  c->body->nodes[node]->n_controls++;
  return tn__freeze_add_edge(c->fz, c->body, (tn__freeze_edge){ .from = from });
}

static tn_status add_control(collector *c, uint32_t node, tn__freeze_scope *scope, tn_operation *from)
{
  uint32_t number;
  tn__freeze_scope *inner;
  tn_status st;
  if (tn__freeze_is_inlined(c->fz, from)) {
    st = tn__freeze_scope_get(c->fz, &c->scopes, scope, from, &inner);
    if (st == TN_OK) st = join_of(c, inner, &number);
  } else {
    st = node_of(c, &c->plain, PLAIN, scope, from, &number);
  }
  return st == TN_OK ? add_control_node(c, node, number) : st;
}

static tn_status add_controls(collector *c, uint32_t node, tn__freeze_scope *scope, const tn_operation *op)
{
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < tn_operation_n_control_inputs(op); i++)
    st = add_control(c, node, scope, tn_operation_control_input(op, i));
  return st;
}

/* Makes a node without inputs wait for the call that it is in. */
static tn_status add_gate(collector *c, uint32_t node, tn__freeze_scope *scope, const tn_operation *op)
{
  uint32_t gate = TN__FREEZE_NONE;
  tn_status st = TN_OK;
  tn__slice type = tn__slice_of(tn_operation_type(op));
  bool effect = tn__freeze_has_effect(type) && !tn__freeze_is_variable(tn__freeze_op_of(type)->kind);
  if (scope == NULL || (!scope->anchored && !effect)) return TN_OK;
  if (scope->anchored && tn_operation_n_inputs(scope->call) > 0)
    st = hand_of(c, scope, 0, &gate);
  else
    st = gate_of(c, scope, &gate);
  return st == TN_OK && gate != TN__FREEZE_NONE ? add_control_node(c, node, gate) : st;
}

/* ---- the bytes of a node ---- */

static tn_status keep_bytes(collector *c, tn__freeze_node *node, const void *bytes, size_t size)
{
  const char *copy = tn__freeze_join(c->fz, (tn__slice){ bytes, size }, (tn__slice){ NULL, 0 });
  if (copy == NULL) return tn__freeze_no_memory(c->fz);
  node->bytes = (tn__slice){ copy, size };
  return TN_OK;
}

/* Keeps what was written as the bytes of a node, and sets its op. */
static tn_status keep_written(collector *c, uint32_t number, tn__sink *s, const char *op)
{
  tn_status st = s->status;
  if (st == TN_OK) st = keep_bytes(c, c->body->nodes[number], s->data, s->used);
  if (st == TN_OK) st = tn__freeze_set_op(c->fz, c->body, number, tn__slice_of(op));
  tn__sink_fini(s);
  return st;
}

static tn_status load_bytes(collector *c, uint32_t number, const tn_operation *op)
{
  tn__freeze_node *node = c->body->nodes[number];
  const char *type = tn_operation_type(op);
  void *bytes;
  size_t size;
  node->by_reference = strcmp(type, "Const") == 0 && node->n_controls == 0 && tn__operation_constant_is_large(op);
  if (!node->by_reference && !tn__freeze_is_variable(tn__freeze_op_of(tn__slice_of(type))->kind)) {
    tn_status st = tn_operation_node_def(op, &bytes, &size, c->fz->err);
    if (st != TN_OK) return st;
    st = keep_bytes(c, node, bytes, size);
    tn_free(bytes);
    if (st != TN_OK) return st;
  }
  return tn__freeze_set_op(c->fz, c->body, number, tn__slice_of(type));
}

/* ---- each role ---- */

static tn_status expand_plain(collector *c, uint32_t number, origin from)
{
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < tn_operation_n_inputs(from.op); i++)
    st = add_data(c, number, from.scope, tn_operation_input(from.op, i));
  if (st == TN_OK) st = add_controls(c, number, from.scope, from.op);
  const tn__freeze_node *node = c->body->nodes[number];
  if (st == TN_OK && node->n_data == 0 && node->n_controls == 0) st = add_gate(c, number, from.scope, from.op);
  return st == TN_OK ? load_bytes(c, number, from.op) : st;
}

static void put_types(tn__sink *s, const tn_operation *call, size_t n)
{
  const tn__freeze_places places = tn__freeze_open_attr(s, tn__slice_of("T"));
  size_t list = tn__freeze_open(s, TN__FZ_A_LIST), types = tn__freeze_open(s, TN__FZ_L_TYPE);
  for (size_t i = 0; i < n; i++) tn__sink_varint(s, (uint64_t)tn__dtype_base(tn_operation_output_dtype(call, i)));
  tn__sink_end(s, types);
  tn__sink_end(s, list);
  tn__freeze_close_attr(s, places);
}

static tn_status expand_join(collector *c, uint32_t number, tn__freeze_scope *scope)
{
  const tn_operation *call = scope->call;
  size_t n = tn_operation_n_outputs(call);
  tn__sink s = tn__sink_memory(c->fz->err);
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < n; i++) st = add_data(c, number, scope, scope->f.outputs[i]);
  for (size_t i = 0; st == TN_OK && i < scope->f.n_targets; i++)
    if (tn__freeze_is_effect(scope, scope->f.targets[i])) st = add_control(c, number, scope, scope->f.targets[i]);
  if (st == TN_OK && n == 0 && c->body->nodes[number]->n_controls == 0)
    st = add_controls(c, number, scope->parent, call);
  if (st != TN_OK) return st;
  if (n == 1) tn__freeze_put_type(&s, "T", tn__dtype_base(tn_operation_output_dtype(call, 0)));
  if (n > 1) put_types(&s, call, n);
  const char *many = n == 0 ? "NoOp" : "IdentityN";
  return keep_written(c, number, &s, n == 1 ? "Identity" : many);
}

static tn_status expand_gate(collector *c, uint32_t number, tn__freeze_scope *scope)
{
  tn__sink s = tn__sink_memory(c->fz->err);
  tn_status st = add_controls(c, number, scope->parent, scope->call);
  return st == TN_OK ? keep_written(c, number, &s, "NoOp") : st;
}

static tn_status expand_hand(collector *c, uint32_t number, tn__freeze_scope *scope, uint32_t argument)
{
  uint32_t gate = TN__FREEZE_NONE;
  tn__sink s = tn__sink_memory(c->fz->err);
  tn_status st = add_data(c, number, scope->parent, tn_operation_input(scope->call, argument));
  if (st == TN_OK && scope->gated) st = gate_of(c, scope, &gate);
  if (st == TN_OK && gate != TN__FREEZE_NONE) st = add_control_node(c, number, gate);
  if (st != TN_OK) return st;
  tn__freeze_put_type(&s, "T", tn__dtype_base(tn_operation_input_dtype(scope->call, argument)));
  return keep_written(c, number, &s, "Identity");
}

static tn_status expand(collector *c, uint32_t number)
{
  const origin from = c->origins[number]; /* the array may move */
  c->body->nodes[number]->first = (uint32_t)c->body->n_edges;
  switch (from.role) {
  case PLAIN: return expand_plain(c, number, from);
  case JOIN: return expand_join(c, number, from.scope);
  case GATE: return expand_gate(c, number, from.scope);
  case HAND: return expand_hand(c, number, from.scope, from.argument);
  default: return TN_OK;
  }
}

/* ---- inputs of the signature ---- */

static tn_status find(collector *c, const char *tensor, tn_output *out)
{
  tn__graph_read_lock(c->fz->graph);
  tn_status st = tn__graph_parse_output(c->fz->graph, tensor, out, c->fz->err);
  tn__graph_unlock(c->fz->graph);
  if (st != TN_OK) tn_error_prefix(c->fz->err, "signature '%s'", c->fz->signature->name);
  return st;
}

static bool is_placeholder(const tn_operation *op)
{
  return (tn__operation_traits(op) & TN_TRAIT_PLACEHOLDER) != 0 ||
         strcmp(tn_operation_type(op), "PlaceholderWithDefault") == 0;
}

/* Notes the inputs that are to become placeholders. */
static tn_status note_inputs(collector *c)
{
  const tn__signature_def *s = c->fz->signature;
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < s->n_inputs; i++) {
    tn_output from;
    st = find(c, s->inputs[i].tensor, &from);
    if (st != TN_OK || is_placeholder(from.op)) continue;
    tn_operation **key = tn__arena_alloc(&c->fz->arena, sizeof *key);
    if (key == NULL) return tn__freeze_no_memory(c->fz);
    *key = from.op;
    if (!tn__map_put(&c->inputs, (const char *)key, sizeof *key, key, NULL)) return tn__freeze_no_memory(c->fz);
  }
  return st;
}

/* Adds inputs that the outputs do not need. */
static tn_status add_unneeded(collector *c)
{
  const tn__signature_def *s = c->fz->signature;
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < s->n_inputs; i++) {
    tn_output from;
    uint32_t number;
    st = find(c, s->inputs[i].tensor, &from);
    if (st != TN_OK || from.index != 0) continue;
    if (tn__map_get(&c->plain, (const char *)&from.op, sizeof from.op) != NULL) continue;
    bool has_inputs = tn_operation_n_inputs(from.op) + tn_operation_n_control_inputs(from.op) > 0;
    bool is_fed = !is_placeholder(from.op) || has_inputs;
    st = node_of(c, is_fed ? &c->fed : &c->plain, is_fed ? FED : PLAIN, NULL, from.op, &number);
  }
  return st;
}

static tn_status make_placeholder(collector *c, uint32_t number)
{
  const tn__signature_def *d = c->fz->signature;
  const tn_operation *op = c->origins[number].op;
  const tn__slice name = c->body->nodes[number]->name;
  const tn__endpoint *e = &(const tn__endpoint){ .rank = -1 };
  for (size_t i = 0; e->tensor == NULL && i < d->n_inputs; i++)
    if (strncmp(d->inputs[i].tensor, name.data, name.size) == 0 && strchr(":", d->inputs[i].tensor[name.size]) != NULL)
      e = &d->inputs[i];
  tn__sink s = tn__sink_memory(c->fz->err);
  tn__freeze_put_type(&s, "dtype", tn__dtype_base(tn_operation_output_dtype(op, 0)));
  tn__freeze_put_shape(&s, "shape", e->dims, e->rank);
  return keep_written(c, number, &s, "Placeholder");
}

/* An input becomes a placeholder, unless the operation itself is needed, too: for another output, or by a control edge.
 * *more: operations were added. */
static tn_status settle_fed(collector *c, size_t n, bool *more)
{
  tn_status st = TN_OK;
  *more = false;
  for (uint32_t i = 0; st == TN_OK && i < n; i++) {
    uint32_t plain;
    tn_operation *op = c->origins[i].op;
    if (c->origins[i].role != FED || c->body->nodes[i]->left_out) continue;
    bool both = tn__map_get(&c->plain, (const char *)&op, sizeof op) != NULL;
    if (!both && !c->origins[i].needs_operation) continue;
    c->body->nodes[i]->left_out = *more = true;
    st = node_of(c, &c->plain, PLAIN, NULL, op, &plain);
    c->origins[i].argument = plain;
  }
  return st;
}

/* Edges from an input whose operation is in the graph come from the operation. */
static void redirect(const collector *c, tn__freeze_edge *edges, size_t n)
{
  for (size_t i = 0; i < n; i++)
    if (c->body->nodes[edges[i].from]->left_out) edges[i].from = c->origins[edges[i].from].argument;
}

/* ---- the walk ---- */

/* The outputs keep their names, so a replaced call that has one stays as a JOIN. */
static tn_status add_outputs(collector *c)
{
  tn__freeze_body *body = c->body;
  const tn__signature_def *s = c->fz->signature;
  body->n_results = s->n_outputs;
  body->results = tn__arena_array(&c->fz->arena, s->n_outputs, sizeof *body->results);
  tn_status st = body->results == NULL ? tn__freeze_no_memory(c->fz) : TN_OK;
  for (size_t i = 0; st == TN_OK && i < s->n_outputs; i++) {
    tn_output from;
    tn__freeze_scope *scope;
    st = find(c, s->outputs[i].tensor, &from);
    if (st != TN_OK) return st;
    body->results[i].port = (uint32_t)from.index;
    if (!tn__freeze_is_inlined(c->fz, from.op)) {
      st = resolve(c, NULL, from, &body->results[i]);
      continue;
    }
    st = tn__freeze_scope_get(c->fz, &c->scopes, NULL, from.op, &scope);
    if (st == TN_OK) st = join_of(c, scope, &body->results[i].from);
  }
  return st;
}

static tn_status walk(collector *c)
{
  tn__freeze_body *body = c->body;
  bool more = true;
  uint32_t done = 0;
  tn_status st = note_inputs(c);
  if (st == TN_OK) st = add_outputs(c);
  while (st == TN_OK && more) {
    for (; st == TN_OK && done < body->n_nodes; done++) st = expand(c, done);
    if (st == TN_OK) st = settle_fed(c, body->n_nodes, &more);
  }
  if (st == TN_OK) st = add_unneeded(c);
  for (; st == TN_OK && done < body->n_nodes; done++) st = expand(c, done);
  if (st != TN_OK) return st;
  redirect(c, body->edges, body->n_edges);
  redirect(c, body->results, body->n_results);
  for (uint32_t i = 0; st == TN_OK && i < body->n_nodes; i++)
    if (c->origins[i].role == FED && !body->nodes[i]->left_out) st = make_placeholder(c, i);
  return st;
}

/* Parses all functions, to know which have effects. */
static tn_status load_library(tn__freeze *fz)
{
  tn__freeze_body *body;
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < tn_graph_n_functions(fz->graph); i++)
    st = tn__freeze_body_get(fz, tn__slice_of(tn_function_name(tn_graph_function(fz->graph, i))), &body);
  for (size_t i = 0; st == TN_OK && i < fz->n_bodies; i++) st = tn__freeze_link(fz, fz->all[i]);
  return st == TN_OK ? tn__freeze_spread_impurity(fz) : st;
}

tn_status tn__freeze_collect(tn__freeze *fz)
{
  collector c = { .fz = fz };
  c.body = fz->main = tn__arena_zalloc(&fz->arena, sizeof *fz->main);
  if (c.body == NULL) return tn__freeze_no_memory(fz);
  tn__map_init(&c.body->names);
  tn__map_init(&c.plain);
  tn__map_init(&c.fed);
  tn__map_init(&c.scopes);
  tn__map_init(&c.inputs);
  fz->has_flow = tn__freeze_has_flow(fz->graph);
  tn_status st = fz->inlines ? load_library(fz) : TN_OK;
  if (st == TN_OK) st = walk(&c);
  tn__free(c.origins, c.room * sizeof *c.origins);
  tn__map_fini(&c.plain);
  tn__map_fini(&c.fed);
  tn__map_fini(&c.scopes);
  tn__map_fini(&c.inputs);
  return st;
}
