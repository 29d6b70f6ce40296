/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the ir of a signature. A depth-first walk from fetches and targets, cut at fed outputs, yields the needed
 * operations in an order in which they can run. The graph's read lock is held for the walk only: operations never
 * change once added, so nodes are made from them without a lock. */
#include <core/compile/import/dereference.h>
#include <core/compile/import/inline.h>
#include <core/compile/import/partial.h>

#define EFFECTS (TN_TRAIT_STATEFUL | TN_TRAIT_MAY_WAIT | TN_TRAIT_FUNCTION_CALL)
#define FRAME (TN_TRAIT_ENTER | TN_TRAIT_EXIT | TN_TRAIT_NEXT_ITERATION)

static tn_status push(tn__pruner *c, tn_operation *op)
{
  if (!tn__grow((void **)&c->stack, &c->stack_room, c->depth + 1, sizeof *c->stack)) return tn__ir_no_memory(c->ir);
  c->stack[c->depth++] = (tn__walk_frame){ op, 0 };
  c->ops[tn__operation_id(op)].visit = 1;
  return TN_OK;
}

static tn_status visited(tn__pruner *c, tn_operation *op)
{
  uint32_t traits = tn__operation_traits(op);
  if ((traits & FRAME) && !tn__pruned(c, op)->own) c->has_frames = true;
  if (!tn__grow((void **)&c->order, &c->order_room, c->n_order + 1, sizeof *c->order)) return tn__ir_no_memory(c->ir);
  c->order[c->n_order++] = op;
  c->ops[tn__operation_id(op)].visit = 2;
  return TN_OK;
}

/* False if memory is exhausted. */
static bool keep_for_later(tn__pruner *c, tn_operation *op)
{
  if (!tn__grow((void **)&c->later, &c->later_room, c->n_later + 1, sizeof *c->later)) return false;
  c->later[c->n_later++] = op;
  return true;
}

/* The next operation that f->op needs and that the walk has not seen; NULL if there is none left. */
static tn_operation *next_needed(tn__pruner *c, tn__walk_frame *f)
{
  size_t n_in, n_control;
  const tn_output *in = tn__operation_inputs(f->op, &n_in);
  tn_operation *const *control = tn__operation_control_inputs(f->op, &n_control);
  while (f->next < n_in + n_control) {
    size_t i = f->next++;
    tn_operation *op = i < n_in ? in[i].op : control[i - n_in];
    if (i < n_in && tn__is_fed(c, in[i])) continue;
    if (i < n_in && tn__pruned(c, op)->rotated) {
      c->met_rotated = true;
      op = tn__rotated(c, op);
    }
    tn__op_state *s = &c->ops[tn__operation_id(op)];
    if (i >= n_in && tn__is_past(c, op)) continue;
    if (i < n_in && tn__is_back_edge(op, f->op)) {
      if (s->back == TN__NONE && !keep_for_later(c, op)) c->failed = true;
      continue;
    }
    if (s->visit == 0) return op;
  }
  return NULL;
}

/* A constant that an Enter brings into a loop is a constant inside the loop, too, so kernels may pack it. A value fed
 * in its place is not a constant. */
bool tn__enters_constant(const tn__pruner *c, const tn_operation *op)
{
  for (;;) {
    tn_bool constant = 0;
    size_t n, n_control;
    const tn_output *in = tn__operation_inputs(op, &n);
    tn__operation_control_inputs(op, &n_control);
    if (n != 1 || n_control != 0 || tn_operation_attr_bool(op, "is_constant", &constant, NULL) != TN_OK || !constant)
      return false;
    if (tn__is_fed(c, in[0])) return false;
    op = in[0].op;
    tn__operation_control_inputs(op, &n_control);
    uint32_t traits = tn__operation_traits(op);
    if (traits & TN_TRAIT_CONSTANT) return n_control == 0;
    if (!(traits & TN_TRAIT_ENTER)) return false;
  }
}

/* Appends root and everything that it needs to the order, inputs first. */
static tn_status walk_from(tn__pruner *c, tn_operation *root)
{
  if (c->ops[tn__operation_id(root)].visit != 0) return TN_OK;
  tn_status st = push(c, root);
  while (st == TN_OK && c->depth > 0) {
    tn_operation *op = next_needed(c, &c->stack[c->depth - 1]);
    if (c->failed) {
      st = tn__ir_no_memory(c->ir);
    } else if (op != NULL) {
      st = push(c, op);
    } else {
      st = visited(c, c->stack[c->depth - 1].op);
      c->depth--;
    }
  }
  return st;
}

/* Marks an operation of the body's own frame. A constant enters through the surrounding frames: its Enters there only
 * forward it, so they are marked, too. */
static void mark_own(const tn__pruner *c, tn_operation *op)
{
  tn__pruned(c, op)->own = true;
  if (!(tn__operation_traits(op) & TN_TRAIT_ENTER)) return;
  for (size_t n; (op = tn__operation_inputs(op, &n)[0].op) != NULL && (tn__operation_traits(op) & TN_TRAIT_ENTER);)
    tn__pruned(c, op)->own = true;
}

/* Fills c->ops and c->order. */
static tn_status order_operations(tn__pruner *c)
{
  const tn__signature_spec *spec = c->spec;
  tn_status st = TN_OK;
  tn__graph_read_lock(c->graph);
  c->n_ops = tn_graph_n_operations(c->graph);
  c->ops = tn__alloc_array(c->n_ops + 1, sizeof *c->ops);
  c->feed_next = tn__alloc_array(spec->n_feeds + 1, sizeof *c->feed_next);
  if (c->ops == NULL || c->feed_next == NULL) st = tn__ir_no_memory(c->ir);
  for (size_t i = 0; st == TN_OK && i < c->n_ops; i++)
    c->ops[i] = (tn__op_state){ .fed = TN__NONE, .back = TN__NONE, .node = TN__NONE };
  for (size_t i = 0; st == TN_OK && i < spec->n_feeds; i++) {
    tn__op_state *s = &c->ops[tn__operation_id(spec->feeds[i].op)];
    if (spec->body != NULL && i >= spec->body->n_plain) {
      s->back = (uint32_t)i;
      continue;
    }
    s->cut = spec->body != NULL;
    c->feed_next[i] = s->fed;
    s->fed = (uint32_t)i;
  }
  for (size_t i = 0; st == TN_OK && spec->body != NULL && i < spec->body->n_own; i++)
    mark_own(c, spec->body->own[i]);
  for (size_t i = 0; st == TN_OK && spec->body != NULL && i < spec->body->n_rotated; i++)
    tn__pruned(c, spec->body->rotated[i])->rotated = tn__pruned(c, spec->body->rotated[i])->cut = true;
  for (size_t i = 0; st == TN_OK && i < spec->n_fetches; i++) {
    if (c->met_rotated && i < spec->n_fetches)
      st = tn_error_set(c->ir->err, TN_UNIMPLEMENTED, "the body of a loop reads what its condition computes");
    if (st == TN_OK && !tn__is_fed(c, spec->fetches[i])) st = walk_from(c, spec->fetches[i].op);
  }
  for (size_t i = 0; st == TN_OK && i < spec->n_targets; i++) {
    if (tn__pruned(c, spec->targets[i])->cut) continue; /* it runs before the body */
    tn__pruned(c, spec->targets[i])->wanted = true;
    st = walk_from(c, spec->targets[i]);
  }
  for (size_t i = 0; st == TN_OK && i < c->n_later; i++) st = walk_from(c, c->later[i]);
  tn__graph_unlock(c->graph);
  return st;
}

/* ---- checks ---- */

/* The planner relies on the trait when it assigns memory to outputs, so an op (of a plugin) that breaks the promise of
 * its trait is refused: an identity has at most as many outputs as inputs, with equal dtypes; an op with
 * TN_TRAIT_NO_EFFECT has none. */
static tn_status check_forwards(const tn__ir *ir, const tn_operation *op)
{
  size_t n_out = tn_operation_n_outputs(op), n_in;
  tn__operation_inputs(op, &n_in);
  bool ok = tn__operation_traits(op) & TN_TRAIT_IDENTITY ? n_out <= n_in : n_out == 0;
  for (size_t i = 0; ok && i < n_out; i++)
    ok = tn__dtype_base(tn_operation_output_dtype(op, i)) == tn__dtype_base(tn_operation_input_dtype(op, i));
  if (ok) return TN_OK;
  return tn__ir_refuse(ir, op, tn_error_set(ir->err, TN_INTERNAL,
                                            "node '%s': op '%s' is declared to forward its inputs, but its outputs "
                                            "do not match them",
                                            tn_operation_name(op), tn_operation_type(op)));
}

static tn_status check_switch(const tn__ir *ir, const tn_operation *op)
{
  if (tn_operation_n_inputs(op) == 2 && tn_operation_n_outputs(op) == 2 && tn_operation_input_dtype(op, 1) == TN_BOOL)
    return TN_OK;
  return tn__ir_refuse(ir, op,
                       tn_error_set(ir->err, TN_INTERNAL,
                                    "node '%s': op '%s' is declared to be a switch, but does not have a value and "
                                    "a bool as inputs and two outputs",
                                    tn_operation_name(op), tn_operation_type(op)));
}

static tn_status not_registered(const tn_operation *op, tn_error *err)
{
  tn_status st = tn__op_not_registered(tn_operation_type(op), err);
  tn_error_prefix(err, "node '%s'", tn_operation_name(op));
  return st;
}

static tn_status check_runnable(const tn__ir *ir, const tn_operation *op)
{
  if (tn_operation_schema(op) == NULL)
    return tn__ir_refuse(ir, op, not_registered(op, ir->err));
  uint32_t traits = tn__operation_traits(op);
  if ((traits & TN_TRAIT_PLACEHOLDER) && !tn__spec_is_partial(ir->spec))
    return tn__ir_refuse(ir, op, tn__placeholder_missing(op, "fed", ir->err));
  if (traits & TN_TRAIT_SWITCH) return check_switch(ir, op);
  return traits & (TN_TRAIT_IDENTITY | TN_TRAIT_NO_EFFECT) ? check_forwards(ir, op) : TN_OK;
}

/* ---- nodes ---- */

/* The value of feed f, made when it is first needed. */
static tn_status feed_value(tn__pruner *c, uint32_t f, tn_output output, uint32_t *out)
{
  tn__ir *ir = c->ir;
  *out = c->feeds[f];
  if (*out != TN__NONE) return TN_OK;
  tn_dtype dtype = (size_t)output.index < tn_operation_n_outputs(output.op)
                       ? tn_operation_output_dtype(output.op, (size_t)output.index) : TN_DTYPE_INVALID;
  bool by_ref = c->spec->body != NULL && tn__dtype_is_ref(dtype); /* programs feed values, never references */
  tn_status st = tn__ir_add_value(ir, (tn__ir_value){ .kind = TN_VALUE_FEED, .by_ref = by_ref,
                                                      .dtype = by_ref ? TN_RESOURCE : tn__dtype_base(dtype),
                                                      .node = TN__NONE, .index = f, .output = output }, out);
  if (st == TN_OK) c->feeds[f] = *out;
  return st;
}

/* The value that carries an output. Makes the value of a feed when it is first needed; the producer of any other output
 * must have been added before. */
static tn_status prune_value(tn__pruner *c, tn_output output, uint32_t *out)
{
  uint32_t f = tn__feed_of(c, output);
  if (f != TN__NONE) return feed_value(c, f, output, out);
  output.op = tn__rotated(c, output.op);
  const tn__op_state *s = tn__pruned(c, output.op);
  if (s->call != 0) {
    *out = c->calls[s->call - 1].outputs[output.index];
    return TN_OK;
  }
  if (s->node == TN__NONE)
    return tn__ir_refuse(
        c->ir, output.op,
        tn_error_set(c->ir->err, TN_INVALID_ARGUMENT, "node '%s' needs its own output", tn_operation_name(output.op)));
  if (s->in_loop && !s->leaves)
    return tn__ir_refuse(c->ir, output.op,
                         tn_error_set(c->ir->err, TN_INVALID_ARGUMENT,
                                      "'%s:%d' is inside a loop and is "
                                      "read outside of it",
                                      tn_operation_name(output.op), (int)output.index));
  *out = c->ir->nodes[s->node].first_value + (s->in_loop ? s->exit : (uint32_t)output.index);
  return TN_OK;
}

/* A feed that replaces an output of an unregistered op has no dtype of its own: it gets the dtype that its first reader
 * takes. All readers must take the same one. */
static tn_status claim_dtype(const tn__ir *ir, const tn_operation *op, size_t i, uint32_t value)
{
  tn__ir_value *v = &ir->values[value];
  if (v->kind != TN_VALUE_FEED) return TN_OK;
  tn_dtype wanted = tn_operation_input_dtype(op, i);
  if (tn__dtype_is_ref(wanted) && !v->by_ref)
    return tn__ir_refuse(ir, op,
                         tn_error_set(ir->err, TN_INVALID_ARGUMENT,
                                      "node '%s': input %zu must be a variable, but "
                                      "the feed '%s:%d' is a value",
                                      tn_operation_name(op), i, tn_operation_name(v->output.op), (int)v->output.index));
  if (v->by_ref) return TN_OK;
  if (v->dtype == TN_DTYPE_INVALID) v->dtype = wanted;
  if (v->dtype == wanted || wanted == TN_DTYPE_INVALID) return TN_OK;
  return tn__ir_refuse(ir, op, tn_error_set(ir->err, TN_INVALID_ARGUMENT,
                                            "node '%s': input %zu is %s, the feed '%s:%d' is read as %s elsewhere",
                                            tn_operation_name(op), i, tn_dtype_name(wanted),
                                            tn_operation_name(v->output.op), (int)v->output.index,
                                            tn_dtype_name(v->dtype)));
}

/* Turns the output of a Const node into a constant value. Large tensors come with a recipe and no elements. */
static tn_status make_constant(tn__ir *ir, uint32_t id)
{
  const tn__ir_node *node = &ir->nodes[id];
  const tn_operation *op = node->op;
  if (node->n_outputs != 1)
    return tn__ir_refuse(ir, op, tn_error_set(ir->err, TN_INTERNAL, "node '%s': op '%s' is a constant with %u outputs",
                                              tn_operation_name(op), tn_operation_type(op), node->n_outputs));
  tn__ir_value *v = &ir->values[node->first_value];
  tn_status st = tn__operation_take_constant(op, true, &v->constant, ir->err);
  if (st == TN_OK) v->recipe = tn__recipe_create(op, 0, NULL, 0, v->constant);
  if (st == TN_OK && v->recipe == NULL && tn__tensor_is_outline(v->constant)) st = tn__ir_no_memory(ir);
  if (st != TN_OK) return tn__ir_refuse(ir, op, st);
  v->kind = TN_VALUE_CONSTANT;
  return TN_OK;
}

/* The node that represents op as a control input; TN__NONE if there is none. An operation where the body begins has no
 * node, because it runs before the iteration. A node that waits for it runs only if it is live, so if it may be dead, a
 * node without effect that reads its feed takes its place. */
static tn_status control_of(tn__pruner *c, tn_operation *op, uint32_t *out)
{
  const tn__op_state *s = tn__pruned(c, op);
  const tn__body_spec *body = c->spec->body;
  if (s->call != 0) return tn__inlined_end(c, op, out);
  *out = s->cut && body->gated == NULL ? TN__NONE : s->node;
  if (!s->cut || body->gated == NULL || !body->gated[s->fed]) return TN_OK;
  uint32_t value;
  tn_status st = feed_value(c, s->fed, c->spec->feeds[s->fed], &value);
  return st == TN_OK ? tn__ir_add_special(c->ir, op, TN_TRAIT_NO_EFFECT, &value, 1, 0, out) : st;
}

tn_status tn__prune_controls(tn__pruner *c, tn_operation *const *control, size_t n, size_t *n_out)
{
  tn__prune_scratch *s = &c->scratch;
  *n_out = 0;
  if (!tn__grow((void **)&s->controls, &s->control_room, n, sizeof *s->controls)) return tn__ir_no_memory(c->ir);
  for (size_t i = 0; i < n; i++) {
    uint32_t to;
    tn_status st = control_of(c, control[i], &to);
    if (st != TN_OK) return st;
    if (to == TN__NONE && tn__is_past(c, control[i])) continue;
    if (to == TN__NONE)
      return tn__ir_refuse(
          c->ir, control[i],
          tn_error_set(c->ir->err, TN_INVALID_ARGUMENT, "node '%s' waits for itself", tn_operation_name(control[i])));
    s->controls[(*n_out)++] = to;
  }
  return TN_OK;
}

/* Makes the node wait for c->scratch.controls. It must be the node made last: its edges are at the end of ir->edges. */
static tn_status add_controls(tn__pruner *c, uint32_t id, size_t n)
{
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < n; i++) st = tn__ir_add_control(c->ir, id, c->scratch.controls[i]);
  return st;
}

tn_status tn__scope_begin(tn__ir *ir, struct tn__scope *s, uint32_t *node)
{
  uint32_t outer = TN__NONE;
  tn_status st = TN_OK;
  *node = TN__NONE;
  if (s == NULL) return TN_OK;
  if (!s->asked) {
    s->begin = TN__NONE;
    st = tn__scope_begin(ir, s->up, &outer);
    if (st == TN_OK && (outer != TN__NONE || s->n_before > 0 || s->n_given > 0))
      st = tn__ir_add_special(ir, s->op, TN_TRAIT_NO_EFFECT, s->given, (uint32_t)s->n_given, 0, &s->begin);
    if (st == TN_OK && outer != TN__NONE) st = tn__ir_add_control(ir, s->begin, outer);
    for (size_t i = 0; st == TN_OK && i < s->n_before; i++) st = tn__ir_add_control(ir, s->begin, s->before[i]);
    s->asked = true;
  }
  *node = s->begin;
  return st;
}

/* Lists the nodes that op waits for in c->scratch.controls. With `effect`, that includes the node for the beginning of
 * the call around it, which is made here if necessary. Call it before the node of op is made. */
static tn_status list_all_controls(tn__pruner *c, const tn_operation *op, bool effect, size_t *n)
{
  tn__prune_scratch *s = &c->scratch;
  size_t n_control;
  tn_operation *const *control = tn__operation_control_inputs(op, &n_control);
  uint32_t begin = TN__NONE;
  tn_status st = tn__prune_controls(c, control, n_control, n);
  if (st == TN_OK && effect) st = tn__scope_begin(c->ir, c->scope, &begin);
  if (st != TN_OK || begin == TN__NONE) return st;
  if (!tn__grow((void **)&s->controls, &s->control_room, *n + 1, sizeof *s->controls)) return tn__ir_no_memory(c->ir);
  s->controls[(*n)++] = begin;
  return TN_OK;
}

/* Whether a variable could be written before this value is available. If so, the variable must not be read before. */
static bool may_come_late(const tn__ir *ir, uint32_t value)
{
  const tn__ir_value *v = &ir->values[value];
  if (tn__spec_is_partial(ir->spec)) return v->kind == TN_VALUE_FEED || v->node != TN__NONE;
  return tn__ir_is_late(ir, value) || tn__ir_may_be_dead(ir, value);
}

/* Input i is a reference and op takes a value: adds a node that reads the variable and replaces inputs[i] by its
 * output. The read waits for everything that op waits for, which includes its other inputs. A Merge does not wait for
 * its other inputs, and neither does its read. */
static tn_status dereference(tn__pruner *c, const tn_operation *op, uint32_t *inputs, size_t n_in, size_t i)
{
  tn__ir *ir = c->ir;
  tn__prune_scratch *s = &c->scratch;
  bool alone = (tn__operation_traits(op) & TN_TRAIT_MERGE) != 0;
  uint32_t id, n_reads = 0;
  size_t n;
  if (!tn__grow((void **)&s->reads, &s->read_room, n_in, sizeof *s->reads)) return tn__ir_no_memory(ir);
  s->reads[n_reads++] = inputs[i];
  for (size_t k = 0; k < n_in && !alone; k++)
    if (k != i && may_come_late(ir, inputs[k])) s->reads[n_reads++] = inputs[k];
  tn_status st = list_all_controls(c, op, true, &n);
  if (st == TN_OK) st = tn__ir_add_dereference(ir, s->reads, n_reads, &id);
  if (st != TN_OK) return st;
  inputs[i] = ir->nodes[id].first_value;
  return add_controls(c, id, n);
}

tn_status tn__prune_inputs(tn__pruner *c, const tn_operation *op, uint32_t *inputs, size_t n)
{
  size_t n_in;
  const tn_output *in = tn__operation_inputs(op, &n_in);
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < n; i++) {
    bool back = tn__is_back_edge(in[i].op, op) && tn__pruned(c, in[i].op)->back != TN__NONE;
    st = back ? feed_value(c, tn__pruned(c, in[i].op)->back, in[i], &inputs[i]) : prune_value(c, in[i], &inputs[i]);
    if (st == TN_OK) st = claim_dtype(c->ir, op, i, inputs[i]);
  }
  for (size_t i = 0; st == TN_OK && i < n; i++)
    if (c->ir->values[inputs[i]].by_ref && !tn__dtype_is_ref(tn_operation_input_dtype(op, i)))
      st = dereference(c, op, inputs, n, i);
  return st;
}

/* Traits that a node loses if it is an identity as well: in its own body, an Enter, Exit, NextIteration or LoopCond
 * only forwards its input. */
#define FORWARDS (FRAME | TN_TRAIT_LOOP_COND)

tn_status tn__prune_add(tn__pruner *c, tn_operation *op)
{
  tn__ir *ir = c->ir;
  tn__prune_scratch *s = &c->scratch;
  size_t n_in;
  tn__operation_inputs(op, &n_in);
  bool inlined = false;
  tn_status st = c->inlines && tn__is_inlinable(op) ? tn__prune_inline(c, op, &inlined) : TN_OK;
  if (st != TN_OK || inlined) return st;
  if (!tn__grow((void **)&s->inputs, &s->input_room, n_in, sizeof *s->inputs)) st = tn__ir_no_memory(ir);
  if (st == TN_OK) st = tn__prune_inputs(c, op, s->inputs, n_in);
  uint32_t id;
  size_t n;
  if (st == TN_OK) st = list_all_controls(c, op, (tn__operation_traits(op) & EFFECTS) != 0, &n);
  if (st == TN_OK) st = tn__ir_add_node(ir, op, s->inputs, (uint32_t)n_in, TN__NONE, &id);
  if (st == TN_OK) st = add_controls(c, id, n);
  if (st != TN_OK) return st;
  c->ops[tn__operation_id(op)].node = id;
  if (ir->nodes[id].traits & TN_TRAIT_IDENTITY) ir->nodes[id].traits &= ~(uint32_t)FORWARDS;
  return ir->nodes[id].traits & TN_TRAIT_CONSTANT ? make_constant(ir, id) : TN_OK;
}

/* The value of a fetch. A fetched reference is read; the body of a loop passes references on. */
static tn_status fetch_value(tn__pruner *c, tn_output output, uint32_t *out)
{
  const tn__op_state *s = tn__pruned(c, output.op);
  tn__ir *ir = c->ir;
  if (s->in_loop && !s->leaves && !tn__is_fed(c, output)) /* S-EXE-17 */
    return tn__ir_refuse(ir, output.op, tn_error_set(ir->err, TN_INVALID_ARGUMENT, "'%s:%d' is inside a loop and has a "
                                                     "value for each iteration: it cannot be fetched",
                                                     tn_operation_name(output.op), (int)output.index));
  tn_status st = prune_value(c, output, out);
  if (st != TN_OK || !ir->values[*out].by_ref || c->spec->body != NULL) return st;
  uint32_t id, begin;
  st = tn__scope_begin(ir, c->scope, &begin);
  if (st == TN_OK) st = tn__ir_add_dereference(ir, out, 1, &id);
  if (st == TN_OK && begin != TN__NONE) st = tn__ir_add_control(ir, id, begin);
  if (st == TN_OK) *out = ir->nodes[id].first_value;
  return st;
}

/* Makes nodes for all operations of the order. All are checked before the first node is made. */
static tn_status add_all(tn__pruner *c)
{
  tn__ir *ir = c->ir;
  const tn__signature_spec *spec = c->spec;
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < c->n_order; i++) st = check_runnable(ir, c->order[i]);
  if (st == TN_OK && c->has_frames) st = tn__prune_add_loops(c);
  for (size_t i = 0; !c->has_frames && st == TN_OK && i < c->n_order; i++) st = tn__prune_add(c, c->order[i]);
  for (size_t i = 0; st == TN_OK && i < spec->n_fetches; i++) st = fetch_value(c, spec->fetches[i], &c->fetches[i]);
  for (size_t i = 0; st == TN_OK && i < spec->n_targets; i++) {
    uint32_t node = tn__pruned(c, spec->targets[i])->node;
    if (tn__pruned(c, spec->targets[i])->call != 0) st = tn__inlined_end(c, spec->targets[i], &node);
    if (st == TN_OK && node != TN__NONE) ir->nodes[node].wanted = true;
  }
  return st;
}

tn_status tn__prune(tn__pruner *c)
{
  c->inlines = c->ir->spec->level > 0 && !tn__pass_is_off(c->ir->spec, "inline");
  tn_status st = order_operations(c);
  if (st == TN_OK) st = add_all(c);
  tn__free(c->ops, (c->n_ops + 1) * sizeof *c->ops);
  tn__free(c->feed_next, (c->spec->n_feeds + 1) * sizeof *c->feed_next);
  tn__free(c->stack, c->stack_room * sizeof *c->stack);
  tn__free(c->order, c->order_room * sizeof *c->order);
  tn__free(c->later, c->later_room * sizeof *c->later);
  tn__free(c->scratch.controls, c->scratch.control_room * sizeof *c->scratch.controls);
  tn__free(c->scratch.inputs, c->scratch.input_room * sizeof *c->scratch.inputs);
  tn__free(c->scratch.reads, c->scratch.read_room * sizeof *c->scratch.reads);
  tn__inlined_fini(c);
  return st;
}

tn_status tn__ir_from_graph(tn__ir *ir, tn_graph *graph, const tn__signature_spec *spec, tn_error *err)
{
  tn_status st = tn__ir_init(ir, graph, spec, err);
  tn__pruner c = { .ir = ir, .graph = graph, .spec = spec, .feeds = ir->inputs, .fetches = ir->outputs };
  if (st == TN_OK) st = tn__prune(&c);
  for (size_t i = 0; st == TN_OK && i < spec->n_fetches; i++) ir->values[ir->outputs[i]].n_uses++;
  ir->notes.n_graph = c.n_ops;
  ir->notes.n_needed = ir->n_live;
  return st;
}

tn_status tn__ir_from_operation(tn__ir *ir, const tn_operation *op, const tn__signature_spec *spec, tn_error *err)
{
  tn_status st = tn__ir_init(ir, tn__operation_graph(op), spec, err);
  size_t n_in;
  const tn_output *in = tn__operation_inputs(op, &n_in);
  if (st == TN_OK && (n_in != spec->n_feeds || tn_operation_n_outputs(op) != spec->n_fetches))
    st = tn_error_set(err, TN_INTERNAL, "node '%s' was to be planned alone with %zu inputs", tn_operation_name(op),
                      n_in);
  for (size_t i = 0; st == TN_OK && i < n_in; i++)
    st = tn__ir_add_value(ir,
                          (tn__ir_value){ .kind = TN_VALUE_FEED,
                                          .node = TN__NONE,
                                          .index = (uint32_t)i,
                                          .dtype = tn__dtype_base(tn_operation_input_dtype(op, i)),
                                          .output = in[i] },
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
