/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces calls whose condition and body are functions (While) by loops of the plan. They are made as rotated loops
 * (rotate.c): one plan computes whether there is a first iteration; the other one runs the body and then the condition
 * of the next iteration. If something inside may wait, a result is on a branch, or a call cannot be inlined, the loop
 * is left to its kernel, which calls the functions. */
#include <core/compile/import/loop_call.h>
#include <core/compile/import/rotate.h>

#define MAX_DEPTH 3 /* maximum nesting of loops: each level may compile the loops inside it twice */
#define COST 16     /* of each of its plans, in nodes of the inline budget */

enum { CONDITION, BODY }; /* index of the op's functions */

/* Compiles the two plans of one loop. All pointers are borrowed. */
typedef struct maker {
  const tn__pruner *c;     /* the walk that found the loop */
  struct tn__scope *scope; /* the call of the loop */
  tn_operation *op;
  size_t n;       /* number of loop variables */
  bool with_body; /* the plan being compiled is the body with the condition, not the condition alone */
} maker;

/* One feed for each variable of the loop. */
static tn_status add_feeds(tn__ir *ir, const maker *m)
{
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < m->n; i++)
    st = tn__ir_add_value(ir,
                          (tn__ir_value){ .kind = TN_VALUE_FEED,
                                          .node = TN__NONE,
                                          .index = (uint32_t)i,
                                          .dtype = tn_operation_output_dtype(m->op, i),
                                          .output = { m->op, (int32_t)i } },
                          &ir->inputs[i]);
  return st;
}

/* Whether the ir has a node that may wait or that calls a function. */
static bool has_calls(const tn__ir *ir)
{
  for (uint32_t id = ir->first; id != TN__NONE; id = ir->nodes[id].next)
    if (ir->nodes[id].traits & (TN_TRAIT_MAY_WAIT | TN_TRAIT_FUNCTION_CALL)) return true;
  return false;
}

/* Inlines function k into the plan. It begins after all nodes with effects that the plan has so far. Returns
 * TN_UNIMPLEMENTED if the function, or a call in it, cannot be inlined. */
static tn_status add_function(tn__ir *ir, const maker *m, uint32_t k, const uint32_t *args, uint32_t *outputs,
                              size_t n_outputs)
{
  bool done = false;
  size_t n_before = 0, room = ir->n_nodes + 1;
  uint32_t *before = tn__alloc_array(room, sizeof *before);
  if (before == NULL) return tn__ir_no_memory(ir);
  for (uint32_t id = ir->first; id != TN__NONE; id = ir->nodes[id].next)
    if (ir->nodes[id].wanted || (ir->nodes[id].traits & (TN_TRAIT_STATEFUL | TN_TRAIT_ENTER))) before[n_before++] = id;
  struct tn__scope around = { .up = m->scope->up, .depth = m->scope->depth, .asked = true, .begin = TN__NONE };
  struct tn__scope scope = { .up = &around, .op = m->op, .before = before, .n_before = n_before };
  tn_status st = tn__inline_body(ir, &scope, ir->spec, k, args, m->n, outputs, n_outputs, &done);
  tn__free(before, room * sizeof *before);
  if (st != TN_OK) return st;
  return done && !has_calls(ir) ? TN_OK : TN_UNIMPLEMENTED;
}

/* A tn__ir_fill_fn. Outputs: the variables after an iteration (with_body only), then the condition. */
static tn_status fill(tn__ir *ir, const void *user)
{
  const maker *m = user;
  uint32_t *values = ir->inputs, *condition = &ir->outputs[m->with_body ? m->n : 0];
  tn_status st = add_feeds(ir, m);
  if (st == TN_OK && m->with_body) {
    st = add_function(ir, m, BODY, values, ir->outputs, m->n);
    values = ir->outputs;
  }
  for (size_t i = 0; st == TN_OK && m->with_body && i < m->n; i++)
    if (ir->values[values[i]].dtype != tn_operation_output_dtype(m->op, i)) st = TN_UNIMPLEMENTED;
  if (st == TN_OK) st = add_function(ir, m, CONDITION, values, condition, 1);
  if (st == TN_OK && ir->values[*condition].dtype != TN_BOOL) st = TN_UNIMPLEMENTED;
  return st;
}

static tn_status compile(maker *m, bool with_body, tn_plan **out)
{
  tn__signature_spec spec = *m->c->spec;
  spec.feeds = spec.fetches = NULL;
  spec.targets = NULL;
  spec.n_targets = 0;
  spec.body = NULL;
  spec.inlined_nodes = tn__inlined_nodes(m->c->ir);
  *spec.inlined_nodes += COST;
  spec.depth++;
  spec.n_feeds = m->n;
  spec.n_fetches = with_body ? m->n + 1 : 1;
  m->with_body = with_body;
  return spec.compile_with(m->c->graph, &spec, fill, m, out, m->c->ir->err);
}

static bool allocate(tn__plan_frame *f, size_t n)
{
  f->n_nexts = f->n_exits = f->n_first_feeds = f->n_turn_feeds = (uint32_t)n;
  f->first_feeds = tn__alloc_array(n + 1, sizeof *f->first_feeds);
  f->turn_feeds = tn__alloc_array(n + 1, sizeof *f->turn_feeds);
  f->variables = tn__alloc_array(n + 1, sizeof *f->variables);
  f->exit_variables = tn__alloc_array(n + 1, sizeof *f->exit_variables);
  if (f->first_feeds == NULL || f->turn_feeds == NULL || f->variables == NULL || f->exit_variables == NULL)
    return false;
  for (uint32_t i = 0; i < n; i++) {
    f->first_feeds[i] = f->turn_feeds[i] = (tn__turn_feed){ true, i };
    f->variables[i] = (tn__frame_variable){ i, i };
    f->exit_variables[i] = i;
  }
  return true;
}

/* Whether nothing in the plan waits and all its outputs are always live. */
static bool is_certain(const tn_plan *plan, size_t n_outputs)
{
  bool certain = !plan->has_waits;
  for (size_t i = 0; i < n_outputs; i++) certain &= plan->conditions.outputs[i] == 0;
  return certain;
}

/* TN_UNIMPLEMENTED: the loop cannot be a loop of the plan. *out is set also then; the caller frees it. */
static tn_status make_frame(maker *m, tn__plan_frame **out)
{
  tn__plan_frame *f = *out = tn__zalloc(sizeof *f);
  if (f == NULL) return tn__ir_no_memory(m->c->ir);
  f->simple = f->any_rank = true;
  if (!allocate(f, m->n)) return tn__ir_no_memory(m->c->ir);
  tn_status st = compile(m, true, &f->turn);
  if (st == TN_OK) f->body = tn__plan_ref(f->turn);
  if (st == TN_OK) st = compile(m, false, &f->first);
  return st == TN_OK && !(is_certain(f->turn, m->n + 1) && is_certain(f->first, 1)) ? TN_UNIMPLEMENTED : st;
}

/* Adds the loop's node, which takes over the frame. */
static tn_status add_loop(tn__pruner *c, const maker *m, const uint32_t *args, tn__plan_frame *frame)
{
  tn__ir *ir = c->ir;
  uint32_t id, begin;
  tn_status st = tn__scope_begin(ir, m->scope, &begin);
  if (st == TN_OK)
    st = tn__ir_add_special(ir, m->op, TN_TRAIT_ENTER | TN_TRAIT_STATEFUL, args, (uint32_t)m->n, (uint32_t)m->n, &id);
  if (st != TN_OK) {
    tn__plan_frame_destroy(frame);
    return st;
  }
  ir->nodes[id].frame = frame;
  for (size_t i = 0; i < m->n; i++) {
    tn__ir_value *v = &ir->values[ir->nodes[id].first_value + i];
    v->dtype = tn_operation_output_dtype(m->op, i);
    v->output = (tn_output){ m->op, (int32_t)i };
  }
  tn__pruned(c, m->op)->node = id;
  return begin == TN__NONE ? TN_OK : tn__ir_add_control(ir, id, begin);
}

tn_status tn__prune_loop_call(tn__pruner *c, struct tn__scope *scope, const uint32_t *args, size_t n, bool *done)
{
  maker m = { .c = c, .scope = scope, .op = (tn_operation *)scope->op, .n = n };
  if (n != tn_operation_n_outputs(m.op) || c->spec->depth >= MAX_DEPTH) return TN_OK;
  for (size_t i = 0; i < n; i++)
    if (c->ir->values[args[i]].dtype != tn_operation_output_dtype(m.op, i)) return TN_OK;
  tn__plan_frame *frame;
  tn_status st = make_frame(&m, &frame);
  if (st == TN_OK) {
    *done = true;
    return add_loop(c, &m, args, frame);
  }
  tn__plan_frame_destroy(frame);
  if (st == TN_RESOURCE_EXHAUSTED) return st;
  tn__error_reset(c->ir->err); /* if a function is wrong, the loop's kernel reports that */
  return TN_OK;
}
