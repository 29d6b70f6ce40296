/* SPDX-License-Identifier: Apache-2.0 */
/* The intermediate representation: adding, replacing and removing nodes and values. */
#include <core/plan/frame.h>
#include <core/compile/ir/ir.h>

/* A node with one of these traits may not be removed or replaced, even if nothing reads it. */
#define HAS_EFFECT                                                                                                    \
  (TN_TRAIT_STATEFUL | TN_TRAIT_RANDOM | TN_TRAIT_PLACEHOLDER | TN_TRAIT_NO_EFFECT | TN_TRAIT_MAY_WAIT |              \
   TN_TRAIT_SWITCH | TN_TRAIT_MERGE | TN_TRAIT_ENTER | TN_TRAIT_EXIT | TN_TRAIT_NEXT_ITERATION | TN_TRAIT_LOOP_COND | \
   TN_TRAIT_CONTROL_TRIGGER | TN_TRAIT_FUNCTION_CALL)

tn_status tn__ir_init(tn__ir *ir, tn_graph *graph, const tn__signature_spec *spec, tn_error *err)
{
  *ir = (tn__ir){ .graph = graph, .spec = spec, .first = TN__NONE, .last = TN__NONE, .err = err };
  ir->inputs = tn__alloc_array(spec->n_feeds + 1, sizeof *ir->inputs);
  ir->outputs = tn__alloc_array(spec->n_fetches + 1, sizeof *ir->outputs);
  if (ir->inputs == NULL || ir->outputs == NULL) return tn__ir_no_memory(ir);
  for (size_t i = 0; i < spec->n_feeds; i++) ir->inputs[i] = TN__NONE;
  ir->has_branches = spec->body != NULL && spec->body->gated != NULL;
  return TN_OK;
}

void tn__ir_fini(tn__ir *ir)
{
  for (size_t i = 0; i < ir->n_values; i++) {
    if (ir->values[i].recipe == NULL) tn_tensor_unref(ir->values[i].constant);
    else tn__tensor_unref_large(ir->values[i].constant);
    tn__recipe_unref(ir->values[i].recipe);
  }
  for (size_t i = 0; i < ir->n_nodes; i++) tn__plan_frame_destroy(ir->nodes[i].frame);
  tn__free(ir->nodes, ir->node_room * sizeof *ir->nodes);
  tn__free(ir->values, ir->value_room * sizeof *ir->values);
  tn__free(ir->edges, ir->edge_room * sizeof *ir->edges);
  tn__free(ir->inputs, (ir->spec->n_feeds + 1) * sizeof *ir->inputs);
  tn__free(ir->outputs, (ir->spec->n_fetches + 1) * sizeof *ir->outputs);
  tn__free(ir->notes.passes, ir->notes.pass_room * sizeof *ir->notes.passes);
  tn__free(ir->notes.rewrites, ir->notes.rewrite_room * sizeof *ir->notes.rewrites);
  tn_graph_unref(ir->made.extra);
  for (size_t i = 0; i < ir->made.n_inlined; i++) tn_graph_unref(ir->made.inlined[i]);
  tn__free(ir->made.inlined, ir->made.inlined_room * sizeof *ir->made.inlined);
}

tn_status tn__ir_elements(const tn__ir *ir, uint32_t value, tn_tensor **out, tn_error *err)
{
  const tn__ir_value *v = &ir->values[tn__ir_value_of(ir, value)];
  if (v->recipe != NULL && tn__tensor_is_outline(v->constant))
    return tn__recipe_follow(v->recipe, ir->spec->evaluate, out, err);
  *out = tn_tensor_ref(v->constant);
  return TN_OK;
}

int32_t tn__ir_shape(const tn__ir *ir, uint32_t value, int64_t *dims)
{
  const tn__ir_value *v = &ir->values[tn__ir_value_of(ir, value)];
  if (v->constant != NULL) {
    for (int32_t d = 0; d < v->constant->rank; d++) dims[d] = v->constant->dims[d];
    return v->constant->rank;
  }
  int32_t rank;
  if (ir->spec->unsure) return -1;
  return tn_output_shape(v->output, dims, TN_MAX_RANK, &rank, NULL) == TN_OK ? rank : -1;
}

bool tn__ir_may_be_dead(const tn__ir *ir, uint32_t value)
{
  const tn__ir_value *v = &ir->values[value];
  const tn__body_spec *body = ir->spec->body;
  if (v->kind == TN_VALUE_FEED) return body != NULL && body->gated != NULL && body->gated[v->index];
  return v->node != TN__NONE && ir->nodes[v->node].may_be_dead;
}

bool tn__ir_is_free(const tn__ir_node *node)
{
  return node->n_controls == 0 && !node->waited_for && !node->wanted && !(node->traits & HAS_EFFECT);
}

bool tn__ir_is_pure(const tn__ir_node *node) { return !(node->traits & HAS_EFFECT) && !node->dereferences; }

tn_status tn__ir_add_value(tn__ir *ir, tn__ir_value value, uint32_t *out)
{
  if (ir->n_values >= TN__NONE - 1)
    return tn_error_set(ir->err, TN_RESOURCE_EXHAUSTED, "the signature needs more than 2^32 values");
  if (!tn__grow((void **)&ir->values, &ir->value_room, ir->n_values + 1, sizeof *ir->values))
    return tn__ir_no_memory(ir);
  value.same_as = value.planned = TN__NONE;
  *out = (uint32_t)ir->n_values;
  ir->values[ir->n_values++] = value;
  return TN_OK;
}

tn_status tn__ir_add_constant(tn__ir *ir, tn_tensor *tensor, uint32_t node, tn_output output, uint32_t *out)
{
  tn_status st = tn__ir_add_value(
      ir, (tn__ir_value){ .kind = TN_VALUE_CONSTANT, .dtype = tensor->dtype, .node = node, .output = output }, out);
  if (st == TN_OK) ir->values[*out].constant = tn_tensor_ref(tensor);
  return st;
}

/* Inserts a node in the order. */
static void link_before(tn__ir *ir, uint32_t id, uint32_t before)
{
  tn__ir_node *node = &ir->nodes[id];
  node->next = before;
  node->prev = before == TN__NONE ? ir->last : ir->nodes[before].prev;
  if (node->prev == TN__NONE) ir->first = id;
  else ir->nodes[node->prev].next = id;
  if (before == TN__NONE) ir->last = id;
  else ir->nodes[before].prev = id;
}

/* Appends the inputs of a node to ir->edges. */
static tn_status add_edges(tn__ir *ir, const uint32_t *inputs, uint32_t n, uint32_t *first)
{
  if (ir->n_edges + n >= TN__NONE)
    return tn_error_set(ir->err, TN_RESOURCE_EXHAUSTED, "the signature needs more than 2^32 edges");
  if (!tn__grow((void **)&ir->edges, &ir->edge_room, ir->n_edges + n, sizeof *ir->edges)) return tn__ir_no_memory(ir);
  *first = (uint32_t)ir->n_edges;
  for (uint32_t i = 0; i < n; i++) ir->edges[ir->n_edges++] = inputs[i];
  return TN_OK;
}

/* Adds the values of a node's outputs, as its operation declares them. */
static tn_status add_outputs(tn__ir *ir, uint32_t id, uint32_t n_outputs)
{
  const tn_operation *op = ir->nodes[id].op;
  for (uint32_t k = 0; k < n_outputs; k++) {
    uint32_t value;
    tn_dtype dtype = tn_operation_output_dtype(op, k);
    bool by_ref = tn__dtype_is_ref(dtype);
    tn_status st = tn__ir_add_value(
        ir, (tn__ir_value){ .kind = TN_VALUE_COMPUTED, .dtype = by_ref ? TN_RESOURCE : dtype, .by_ref = by_ref,
                            .node = id, .index = k, .output = { (tn_operation *)op, (int32_t)k } }, &value);
    if (st != TN_OK) return st;
    if (k == 0) ir->nodes[id].first_value = value;
    ir->nodes[id].n_outputs = k + 1;
  }
  return TN_OK;
}

/* Whether a node may change state. Stateful ops without inputs that make a handle or a reference do not. */
static bool is_effect(const tn_operation *op, uint32_t traits, uint32_t n_inputs)
{
  if (traits & (TN_TRAIT_MAY_WAIT | TN_TRAIT_FUNCTION_CALL)) return true;
  if (!(traits & TN_TRAIT_STATEFUL)) return false;
  if (n_inputs > 0 || tn_operation_n_outputs(op) == 0) return true;
  tn_dtype dtype = tn_operation_output_dtype(op, 0);
  return dtype != TN_RESOURCE && !tn__dtype_is_ref(dtype);
}

#define NODES_BETWEEN_CHECKS 256 /* for cancellation and the time limit */

static tn_status add_node(tn__ir *ir, const tn_operation *op, uint32_t traits, const uint32_t *inputs, uint32_t n,
                          uint32_t before, uint32_t *out)
{
  if (!tn__grow((void **)&ir->nodes, &ir->node_room, ir->n_nodes + 1, sizeof *ir->nodes)) return tn__ir_no_memory(ir);
  uint32_t edges = 0;
  tn_status st = ir->n_nodes % NODES_BETWEEN_CHECKS == 0 ? tn__prepare_check(op, ir->err) : TN_OK;
  if (st == TN_OK) st = add_edges(ir, inputs, n, &edges);
  if (st != TN_OK) return st;
  uint32_t id = (uint32_t)ir->n_nodes;
  ir->nodes[id] = (tn__ir_node){ .op = op, .traits = traits, .n_inputs = n, .edges = edges,
                                 .instr = TN__NONE, .live = true };
  ir->has_branches |= (traits & (TN_TRAIT_SWITCH | TN_TRAIT_MERGE | TN_TRAIT_ENTER)) != 0;
  ir->n_nodes++;
  link_before(ir, id, before);
  ir->n_live++;
  ir->nodes[id].may_be_dead = (traits & (TN_TRAIT_SWITCH | TN_TRAIT_MERGE)) != 0;
  ir->nodes[id].late = is_effect(op, traits, n);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t value = tn__ir_value_of(ir, inputs[i]);
    ir->values[value].n_uses++;
    ir->nodes[id].may_be_dead |= tn__ir_may_be_dead(ir, value);
    ir->nodes[id].late |= tn__ir_is_late(ir, value);
  }
  *out = id;
  return TN_OK;
}

tn_status tn__ir_add_node(tn__ir *ir, const tn_operation *op, const uint32_t *inputs, uint32_t n, uint32_t before,
                          uint32_t *out)
{
  tn_status st = add_node(ir, op, tn__operation_traits(op), inputs, n, before, out);
  return st == TN_OK ? add_outputs(ir, *out, (uint32_t)tn_operation_n_outputs(op)) : st;
}

tn_status tn__ir_add_special(tn__ir *ir, const tn_operation *op, uint32_t traits, const uint32_t *inputs, uint32_t n,
                             uint32_t n_outputs, uint32_t *out)
{
  tn_status st = add_node(ir, op, traits, inputs, n, TN__NONE, out);
  for (uint32_t k = 0; st == TN_OK && k < n_outputs; k++) {
    uint32_t value = 0;
    st = tn__ir_add_value(ir, (tn__ir_value){ .kind = TN_VALUE_COMPUTED, .node = *out, .index = k }, &value);
    if (st == TN_OK && k == 0) ir->nodes[*out].first_value = value;
    if (st == TN_OK) ir->nodes[*out].n_outputs = k + 1;
  }
  return st;
}

tn_status tn__ir_add_control(tn__ir *ir, uint32_t node, uint32_t to)
{
  if (!tn__grow((void **)&ir->edges, &ir->edge_room, ir->n_edges + 1, sizeof *ir->edges)) return tn__ir_no_memory(ir);
  ir->edges[ir->n_edges++] = to; /* contiguous with the node's other edges */
  ir->nodes[node].n_controls++;
  ir->nodes[to].waited_for = true;
  ir->nodes[node].may_be_dead |= ir->nodes[to].may_be_dead;
  ir->nodes[node].late |= ir->nodes[to].late;
  return TN_OK;
}

void tn__ir_replace(tn__ir *ir, uint32_t from, uint32_t to)
{
  from = tn__ir_value_of(ir, from);
  to = tn__ir_value_of(ir, to);
  if (from == to) return;
  ir->values[to].n_uses += ir->values[from].n_uses;
  ir->values[from].n_uses = 0;
  ir->values[from].same_as = to;
}

void tn__ir_remove(tn__ir *ir, uint32_t id)
{
  tn__ir_node *node = &ir->nodes[id];
  if (!node->live) return;
  for (uint32_t i = 0; i < node->n_inputs; i++) ir->values[tn__ir_input(ir, node, i)].n_uses--;
  if (node->prev == TN__NONE) ir->first = node->next;
  else ir->nodes[node->prev].next = node->next;
  if (node->next == TN__NONE) ir->last = node->prev;
  else ir->nodes[node->next].prev = node->prev;
  node->live = false;
  ir->n_live--;
}

bool tn__ir_is_needed(const tn__ir *ir, const tn__ir_node *node)
{
  if ((node->traits & TN_TRAIT_NO_EFFECT) && !node->waited_for && !node->wanted) return false;
  if (!tn__ir_is_free(node)) return true;
  for (uint32_t k = 0; k < node->n_outputs; k++)
    if (ir->values[node->first_value + k].n_uses > 0) return true;
  return false;
}

size_t tn__ir_sweep(tn__ir *ir)
{
  size_t n = 0;
  for (uint32_t id = ir->last; id != TN__NONE;) { /* readers first, so one walk is enough */
    uint32_t prev = ir->nodes[id].prev;
    if (!tn__ir_is_needed(ir, &ir->nodes[id])) {
      tn__ir_remove(ir, id);
      n++;
    }
    id = prev;
  }
  return n;
}
