/* SPDX-License-Identifier: Apache-2.0 */
/* From a graph and a signature to what passes rewrite: a depth-first walk from fetches and targets, cut at fed endpoints,
 * gives the operations in an order in which they can run (under the graph's read lock). */
#include <core/plan/ir.h>

/* What the walk knows of an operation, by its id. */
typedef struct op_state {
  uint32_t fed;   /* first feed of one of its outputs, chained by feed_next; TN__NONE = none */
  uint32_t node;  /* TN__NONE = not added */
  uint8_t visit;  /* 0 unseen, 1 its inputs are being walked, 2 done */
} op_state;

typedef struct frame {
  tn_operation *op;
  size_t next; /* edge to look at: data inputs, then control inputs */
} frame;

typedef struct pruner {
  tn__ir *ir;
  op_state *ops;
  size_t n_ops;
  uint32_t *feed_next; /* n_feeds */
  frame *stack;
  size_t depth, stack_room;
  tn_operation **order;
  size_t n_order, order_room;
  uint32_t *inputs; /* of one node */
  size_t input_room;
} pruner;

static uint32_t feed_of(const pruner *c, tn_output output)
{
  uint32_t f = c->ops[tn__operation_id(output.op)].fed;
  while (f != TN__NONE && c->ir->spec->feeds[f].index != output.index) f = c->feed_next[f];
  return f;
}

static tn_status push(pruner *c, tn_operation *op)
{
  if (!tn__grow((void **)&c->stack, &c->stack_room, c->depth + 1, sizeof *c->stack)) return tn__ir_no_memory(c->ir);
  c->stack[c->depth++] = (frame){ op, 0 };
  c->ops[tn__operation_id(op)].visit = 1;
  return TN_OK;
}

static tn_status visited(pruner *c, tn_operation *op)
{
  if (!tn__grow((void **)&c->order, &c->order_room, c->n_order + 1, sizeof *c->order)) return tn__ir_no_memory(c->ir);
  c->order[c->n_order++] = op;
  c->ops[tn__operation_id(op)].visit = 2;
  return TN_OK;
}

/* The next operation that the frame's one needs and that was not walked yet; NULL when there is none left. */
static tn_operation *next_needed(pruner *c, frame *f)
{
  size_t n_in, n_control;
  const tn_output *in = tn__operation_inputs(f->op, &n_in);
  tn_operation *const *control = tn__operation_control_inputs(f->op, &n_control);
  while (f->next < n_in + n_control) {
    size_t i = f->next++;
    tn_operation *op = i < n_in ? in[i].op : control[i - n_in];
    if (i < n_in && feed_of(c, in[i]) != TN__NONE) continue;
    if (c->ops[tn__operation_id(op)].visit == 0) return op;
  }
  return NULL;
}

static tn_status walk_from(pruner *c, tn_operation *root)
{
  if (c->ops[tn__operation_id(root)].visit != 0) return TN_OK;
  tn_status st = push(c, root);
  while (st == TN_OK && c->depth > 0) {
    tn_operation *op = next_needed(c, &c->stack[c->depth - 1]);
    if (op != NULL) {
      st = push(c, op);
    } else {
      st = visited(c, c->stack[c->depth - 1].op);
      c->depth--;
    }
  }
  return st;
}

static tn_status order_operations(pruner *c)
{
  const tn__signature_spec *spec = c->ir->spec;
  tn_status st = TN_OK;
  tn__graph_read_lock(c->ir->graph);
  c->n_ops = tn_graph_n_operations(c->ir->graph);
  c->ops = tn__alloc_array(c->n_ops + 1, sizeof *c->ops);
  c->feed_next = tn__alloc_array(spec->n_feeds + 1, sizeof *c->feed_next);
  if (c->ops == NULL || c->feed_next == NULL) st = tn__ir_no_memory(c->ir);
  for (size_t i = 0; st == TN_OK && i < c->n_ops; i++) c->ops[i] = (op_state){ TN__NONE, TN__NONE, 0 };
  for (size_t i = 0; st == TN_OK && i < spec->n_feeds; i++) {
    op_state *s = &c->ops[tn__operation_id(spec->feeds[i].op)];
    c->feed_next[i] = s->fed;
    s->fed = (uint32_t)i;
  }
  for (size_t i = 0; st == TN_OK && i < spec->n_fetches; i++)
    if (feed_of(c, spec->fetches[i]) == TN__NONE) st = walk_from(c, spec->fetches[i].op);
  for (size_t i = 0; st == TN_OK && i < spec->n_targets; i++) st = walk_from(c, spec->targets[i]);
  tn__graph_unlock(c->ir->graph);
  return st;
}

/* ---- what can run at all ---- */

#define CONTROL_FLOW (TN_TRAIT_SWITCH | TN_TRAIT_MERGE | TN_TRAIT_ENTER | TN_TRAIT_EXIT | TN_TRAIT_NEXT_ITERATION | \
                      TN_TRAIT_LOOP_COND | TN_TRAIT_CONTROL_TRIGGER | TN_TRAIT_FUNCTION_CALL)

/* What a trait promises decides whose memory a value is: an op of a plugin that breaks it is refused. */
static tn_status check_hands_on(const tn__ir *ir, const tn_operation *op)
{
  size_t n_out = tn_operation_n_outputs(op), n_in;
  tn__operation_inputs(op, &n_in);
  bool ok = tn__operation_traits(op) & TN_TRAIT_IDENTITY ? n_out <= n_in : n_out == 0;
  for (size_t i = 0; ok && i < n_out; i++)
    ok = tn__dtype_base(tn_operation_output_dtype(op, i)) == tn__dtype_base(tn_operation_input_dtype(op, i));
  if (ok) return TN_OK;
  return tn__ir_refuse(ir, op, tn_error_set(ir->err, TN_INTERNAL,
                                            "node '%s': op '%s' should hand its inputs on, but its outputs are others",
                                            tn_operation_name(op), tn_operation_type(op)));
}

static tn_status check_runnable(const tn__ir *ir, const tn_operation *op)
{
  const char *name = tn_operation_name(op);
  if (tn_operation_schema(op) == NULL)
    return tn__ir_refuse(ir, op, tn_error_set(ir->err, TN_NOT_FOUND, "node '%s': op '%s' is not registered", name,
                                              tn_operation_type(op)));
  uint32_t traits = tn__operation_traits(op);
  if (traits & TN_TRAIT_PLACEHOLDER)
    return tn__ir_refuse(ir, op, tn_error_set(ir->err, TN_INVALID_ARGUMENT,
                                              "placeholder '%s' of type %s is needed and was not fed", name,
                                              tn_dtype_name(tn_operation_output_dtype(op, 0))));
  if (traits & CONTROL_FLOW)
    return tn__ir_refuse(ir, op, tn_error_set(ir->err, TN_UNIMPLEMENTED,
                                              "node '%s': op '%s' is control flow, which this version does not run",
                                              name, tn_operation_type(op)));
  return traits & (TN_TRAIT_IDENTITY | TN_TRAIT_NO_EFFECT) ? check_hands_on(ir, op) : TN_OK;
}

/* ---- nodes ---- */

/* The value that an edge carries. */
static tn_status value_of(pruner *c, tn_output output, uint32_t *out)
{
  tn__ir *ir = c->ir;
  uint32_t f = feed_of(c, output);
  if (f == TN__NONE) {
    *out = ir->nodes[c->ops[tn__operation_id(output.op)].node].first_value + (uint32_t)output.index;
    return TN_OK;
  }
  *out = ir->inputs[f];
  if (*out != TN__NONE) return TN_OK;
  tn_dtype dtype = (size_t)output.index < tn_operation_n_outputs(output.op)
                       ? tn_operation_output_dtype(output.op, (size_t)output.index) : TN_DTYPE_INVALID;
  tn_status st = tn__ir_add_value(ir, (tn__ir_value){ .kind = TN_VALUE_FEED, .dtype = tn__dtype_base(dtype),
                                                      .node = TN__NONE, .index = f, .output = output }, out);
  if (st == TN_OK) ir->inputs[f] = *out;
  return st;
}

/* A feed in place of an op that is not registered gets the type that its first reader wants; all must want the same. */
static tn_status claim_dtype(const tn__ir *ir, const tn_operation *op, size_t i, uint32_t value)
{
  tn__ir_value *v = &ir->values[value];
  if (v->kind != TN_VALUE_FEED) return TN_OK;
  tn_dtype wanted = tn__dtype_base(tn_operation_input_dtype(op, i));
  if (v->dtype == TN_DTYPE_INVALID) v->dtype = wanted;
  if (v->dtype == wanted || wanted == TN_DTYPE_INVALID) return TN_OK;
  return tn__ir_refuse(ir, op, tn_error_set(ir->err, TN_INVALID_ARGUMENT,
                                            "node '%s': input %zu is %s, the feed '%s:%d' is read as %s elsewhere",
                                            tn_operation_name(op), i, tn_dtype_name(wanted),
                                            tn_operation_name(v->output.op), (int)v->output.index,
                                            tn_dtype_name(v->dtype)));
}

static tn_status make_constant(tn__ir *ir, uint32_t id)
{
  const tn__ir_node *node = &ir->nodes[id];
  const tn_operation *op = node->op;
  if (node->n_outputs != 1)
    return tn__ir_refuse(ir, op, tn_error_set(ir->err, TN_INTERNAL, "node '%s': op '%s' is a constant with %u outputs",
                                              tn_operation_name(op), tn_operation_type(op), node->n_outputs));
  tn__ir_value *v = &ir->values[node->first_value];
  tn_status st = tn__operation_take_constant(op, true, &v->constant, ir->err);
  if (st == TN_OK) v->recipe = tn__recipe_make(op, 0, NULL, 0, v->constant);
  if (st == TN_OK && v->recipe == NULL && tn__tensor_is_outline(v->constant)) st = tn__ir_no_memory(ir);
  if (st != TN_OK) return tn__ir_refuse(ir, op, st);
  v->kind = TN_VALUE_CONSTANT;
  return TN_OK;
}

static tn_status add_controls(pruner *c, uint32_t id, tn_operation *const *control, size_t n)
{
  tn__ir *ir = c->ir;
  if (!tn__grow((void **)&ir->edges, &ir->edge_room, ir->n_edges + n, sizeof *ir->edges)) return tn__ir_no_memory(ir);
  for (size_t i = 0; i < n; i++) {
    uint32_t to = c->ops[tn__operation_id(control[i])].node;
    ir->edges[ir->n_edges++] = to;
    ir->nodes[to].waited_for = true;
  }
  ir->nodes[id].n_controls = (uint32_t)n;
  return TN_OK;
}

static tn_status add_operation(pruner *c, tn_operation *op)
{
  tn__ir *ir = c->ir;
  size_t n_in, n_control;
  const tn_output *in = tn__operation_inputs(op, &n_in);
  tn_operation *const *control = tn__operation_control_inputs(op, &n_control);
  if (!tn__grow((void **)&c->inputs, &c->input_room, n_in, sizeof *c->inputs)) return tn__ir_no_memory(ir);
  for (size_t i = 0; i < n_in; i++) {
    tn_status st = value_of(c, in[i], &c->inputs[i]);
    if (st == TN_OK) st = claim_dtype(ir, op, i, c->inputs[i]);
    if (st != TN_OK) return st;
  }
  uint32_t id;
  tn_status st = tn__ir_add_node(ir, op, c->inputs, (uint32_t)n_in, TN__NONE, &id);
  if (st == TN_OK) st = add_controls(c, id, control, n_control);
  if (st != TN_OK) return st;
  c->ops[tn__operation_id(op)].node = id;
  return ir->nodes[id].traits & TN_TRAIT_CONSTANT ? make_constant(ir, id) : TN_OK;
}

static tn_status add_all(pruner *c)
{
  tn__ir *ir = c->ir;
  for (size_t i = 0; i < c->n_order; i++) { /* all before any: what passes stands in a real order, without a cycle */
    tn_status st = check_runnable(ir, c->order[i]);
    if (st != TN_OK) return st;
  }
  for (size_t i = 0; i < c->n_order; i++) {
    tn_status st = add_operation(c, c->order[i]);
    if (st != TN_OK) return st;
  }
  for (size_t i = 0; i < ir->spec->n_fetches; i++) {
    tn_status st = value_of(c, ir->spec->fetches[i], &ir->outputs[i]);
    if (st != TN_OK) return st;
    ir->values[ir->outputs[i]].n_uses++;
  }
  for (size_t i = 0; i < ir->spec->n_targets; i++)
    ir->nodes[c->ops[tn__operation_id(ir->spec->targets[i])].node].wanted = true;
  return TN_OK;
}

static tn_status init(tn__ir *ir, tn_graph *graph, const tn__signature_spec *spec, tn_error *err)
{
  *ir = (tn__ir){ .graph = graph, .spec = spec, .first = TN__NONE, .last = TN__NONE, .err = err };
  ir->inputs = tn__alloc_array(spec->n_feeds + 1, sizeof *ir->inputs);
  ir->outputs = tn__alloc_array(spec->n_fetches + 1, sizeof *ir->outputs);
  if (ir->inputs == NULL || ir->outputs == NULL) return tn__ir_no_memory(ir);
  for (size_t i = 0; i < spec->n_feeds; i++) ir->inputs[i] = TN__NONE;
  return TN_OK;
}

tn_status tn__ir_from_graph(tn__ir *ir, tn_graph *graph, const tn__signature_spec *spec, tn_error *err)
{
  pruner c = { .ir = ir };
  tn_status st = init(ir, graph, spec, err);
  if (st == TN_OK) st = order_operations(&c);
  if (st == TN_OK) st = add_all(&c);
  ir->n_graph = c.n_ops;
  ir->n_needed = ir->n_live;
  tn__free(c.ops, (c.n_ops + 1) * sizeof *c.ops);
  tn__free(c.feed_next, (spec->n_feeds + 1) * sizeof *c.feed_next);
  tn__free(c.stack, c.stack_room * sizeof *c.stack);
  tn__free(c.order, c.order_room * sizeof *c.order);
  tn__free(c.inputs, c.input_room * sizeof *c.inputs);
  return st;
}

tn_status tn__ir_from_operation(tn__ir *ir, const tn_operation *op, const tn__signature_spec *spec, tn_error *err)
{
  tn_status st = init(ir, tn__operation_graph(op), spec, err);
  size_t n_in;
  const tn_output *in = tn__operation_inputs(op, &n_in);
  if (st == TN_OK && (n_in != spec->n_feeds || tn_operation_n_outputs(op) != spec->n_fetches))
    st = tn_error_set(err, TN_INTERNAL, "node '%s' was to be planned alone with %zu inputs", tn_operation_name(op), n_in);
  for (size_t i = 0; st == TN_OK && i < n_in; i++)
    st = tn__ir_add_value(ir, (tn__ir_value){ .kind = TN_VALUE_FEED, .node = TN__NONE, .index = (uint32_t)i,
                                              .dtype = tn__dtype_base(tn_operation_input_dtype(op, i)), .output = in[i] },
                          &ir->inputs[i]);
  if (st == TN_OK) st = check_runnable(ir, op);
  uint32_t id;
  if (st == TN_OK) st = tn__ir_add_node(ir, op, ir->inputs, (uint32_t)n_in, TN__NONE, &id);
  for (uint32_t k = 0; st == TN_OK && k < ir->nodes[id].n_outputs; k++) {
    ir->outputs[k] = ir->nodes[id].first_value + k;
    ir->values[ir->outputs[k]].n_uses++;
  }
  return st;
}
