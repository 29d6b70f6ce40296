/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces calls by the bodies of their functions. A body is instantiated for one call, so that it benefits from what
 * is known of the arguments. It is walked as a signature of its own whose feeds are values of the plan.
 *
 * A call begins when all its inputs are available, and ends when all its nodes have ended. Nodes without effects can
 * ignore both. Nodes with effects wait for the beginning; control successors of the call wait for the beginning and for
 * these nodes.
 *
 * These remain calls: a call that may be dead; a recursive call; a call of a function with seeded random ops, whose
 * calls continue one sequence; a call for which the stack has no room; and calls beyond a budget that grows with the
 * graph. */
#include <core/compile/import/inline.h>
#include <core/compile/import/loop_call.h>
#include <core/compile/import/partial.h>
#include <core/base/threads/thread.h>
#include <core/graph/function_instance.h>

/* Maximum number of inlined nodes for one plan: a constant plus a multiple of the nodes of the graph and its
 * library. */
#define BUDGET_BASE 4096
#define BUDGET_PER_NODE 4
#define BODY_COST 4   /* overhead of a body, in nodes: it is a graph of its own */
#define MAX_DEPTH 100 /* maximum nesting of bodies: the walk recurses */
#define MAX_LOOPS 3   /* maximum loops around a body: the contents of a loop are compiled more than once */

#define HAS_EFFECT (TN_TRAIT_STATEFUL | TN_TRAIT_MAY_WAIT | TN_TRAIT_FUNCTION_CALL | TN_TRAIT_ENTER)

/* ---- the end of a call ---- */

/* Whether the end of a call waits for this node of its body. */
static bool is_waited_for(const tn__ir_node *node)
{
  return node->live && (node->wanted || (node->traits & HAS_EFFECT) != 0);
}

tn_status tn__inlined_end(tn__pruner *c, const tn_operation *op, uint32_t *node)
{
  tn__ir *ir = c->ir;
  struct tn__inlined *call = &c->calls[tn__pruned(c, op)->call - 1];
  uint32_t begin;
  *node = call->done;
  if (call->done != TN__NONE) return TN_OK;
  tn_status st = tn__scope_begin(ir, &call->scope, &begin);
  if (st == TN_OK) st = tn__ir_add_special(ir, op, TN_TRAIT_NO_EFFECT, NULL, 0, 0, node);
  if (st == TN_OK && begin != TN__NONE) st = tn__ir_add_control(ir, *node, begin);
  for (uint32_t id = call->first; st == TN_OK && id < call->end; id++)
    if (is_waited_for(&ir->nodes[id])) st = tn__ir_add_control(ir, *node, id);
  for (size_t i = 0; st == TN_OK && i < call->n_outputs; i++) { /* the call fails if an output fails */
    uint32_t from = ir->values[call->outputs[i]].node;
    if (from != TN__NONE && !is_waited_for(&ir->nodes[from])) st = tn__ir_add_control(ir, *node, from);
  }
  if (st != TN_OK) return st;
  tn__ir_node *done = &ir->nodes[*node];
  if (done->may_be_dead)
    done->traits = TN_TRAIT_CONTROL_TRIGGER; /* the body has branches: the call ends whichever is taken */
  done->may_be_dead = false;
  call->done = *node;
  return TN_OK;
}

void tn__inlined_fini(tn__pruner *c)
{
  for (size_t i = 0; i < c->n_calls; i++) {
    tn__free(c->calls[i].outputs, (c->calls[i].n_outputs + 1) * sizeof(uint32_t));
    tn__free(c->calls[i].lists, c->calls[i].n_lists * sizeof(uint32_t));
  }
  tn__free(c->calls, c->call_room * sizeof *c->calls);
}

/* ---- one body ---- */

static bool may_inline(tn__ir *ir, const struct tn__scope *up, const tn__function_facts *f)
{
  if ((up != NULL && up->depth >= MAX_DEPTH) || ir->spec->depth > MAX_LOOPS || tn__stack_left() == 0) return false;
  for (; up != NULL; up = up->up)
    if (up->function == f->identity) return false;
  return *tn__inlined_nodes(ir) + f->n_nodes + BODY_COST <= BUDGET_BASE + BUDGET_PER_NODE * f->n_library;
}

static bool has_seeds(const tn_operation *op)
{
  int64_t seed = 0, seed2 = 0;
  tn_operation_attr_int(op, "seed", &seed, NULL);
  tn_operation_attr_int(op, "seed2", &seed2, NULL);
  return seed != 0 || seed2 != 0;
}

/* Whether a body has a seeded random op. All calls of the function continue one sequence, which needs a single node
 * with one state: copies of the body would each begin the sequence again. */
static bool has_sequence(const tn_graph *g)
{
  for (size_t i = 0; i < tn_graph_n_operations(g); i++) {
    const tn_operation *op = tn_graph_operation(g, i);
    if ((tn__operation_traits(op) & TN_TRAIT_RANDOM) && has_seeds(op)) return true;
  }
  return false;
}

/* Whether the instance has as many inputs and outputs as the call, and its inputs have the dtypes of the arguments. */
static bool fits(const tn__ir *ir, const tn__function_instance *f, const uint32_t *args, size_t n_args,
                 size_t n_outputs)
{
  if (f->n_inputs != n_args || f->n_outputs != n_outputs) return false;
  for (size_t i = 0; i < n_args; i++) {
    const tn_output in = f->inputs[i];
    if (tn__dtype_base(tn_operation_output_dtype(in.op, (size_t)in.index)) != ir->values[args[i]].dtype) return false;
  }
  return true;
}

/* The nodes borrow the operations of the body, so the ir keeps a reference to its graph. */
static tn_status keep_graph(tn__ir *ir, const tn__function_instance *f)
{
  if (!tn__grow((void **)&ir->made.inlined, &ir->made.inlined_room, ir->made.n_inlined + 1, sizeof *ir->made.inlined))
    return tn__ir_no_memory(ir);
  ir->made.inlined[ir->made.n_inlined++] = tn_graph_ref(f->graph);
  return TN_OK;
}

static tn_status add_body(tn__ir *ir, struct tn__scope *scope, const tn__signature_spec *around,
                          const tn__function_instance *f, const uint32_t *args, uint32_t *outputs)
{
  tn__signature_spec spec = *around;
  spec.feeds = f->inputs;
  spec.n_feeds = f->n_inputs;
  spec.fetches = f->outputs;
  spec.n_fetches = f->n_outputs;
  spec.targets = f->targets;
  spec.n_targets = f->n_targets;
  spec.body = NULL;
  tn__pruner c = {
    .ir = ir, .graph = f->graph, .spec = &spec, .feeds = (uint32_t *)args, .fetches = outputs, .scope = scope
  };
  return tn__prune(&c);
}

/* Removes the nodes of a body that could not be added. If the node for the beginning of an outer call is among them, it
 * is made again when it is next needed. */
static void undo(tn__ir *ir, struct tn__scope *scope, size_t n_nodes)
{
  for (; scope != NULL; scope = scope->up)
    if (scope->asked && scope->begin != TN__NONE && scope->begin >= n_nodes) scope->asked = false;
  for (size_t id = ir->n_nodes; id-- > n_nodes;) tn__ir_remove(ir, (uint32_t)id);
  tn__error_reset(ir->err);
}

tn_status tn__inline_body(tn__ir *ir, struct tn__scope *scope, const tn__signature_spec *around, uint32_t k,
                          const uint32_t *args, size_t n_args, uint32_t *outputs, size_t n_outputs, bool *done)
{
  const tn_operation *op = scope->op;
  tn__function_facts facts;
  tn__function_instance f;
  size_t n_nodes = ir->n_nodes;
  *done = false;
  if (!tn__function_look(op, k, &facts) || !may_inline(ir, scope->up, &facts)) return TN_OK;
  scope->function = facts.identity;
  scope->depth = scope->up == NULL ? 1 : scope->up->depth + 1;
  *tn__inlined_nodes(ir) += facts.n_nodes + BODY_COST;
  tn_status st = tn__function_inline(op, k, (tn__operation_traits(op) & TN_TRAIT_LOOP_CALL) != 0, &f, ir->err);
  if (st == TN_OK && !has_sequence(f.graph) && fits(ir, &f, args, n_args, n_outputs)) {
    st = keep_graph(ir, &f);
    if (st == TN_OK) st = add_body(ir, scope, around, &f, args, outputs);
    *done = st == TN_OK;
  }
  tn__function_instance_fini(&f);
  if (*done || st == TN_RESOURCE_EXHAUSTED) return st;
  undo(ir, scope, n_nodes); /* if the function is wrong, the call reports that when it runs */
  return TN_OK;
}

/* ---- calls ---- */

typedef struct site {
  tn__pruner *c;
  tn_operation *op;
  uint32_t *args;  /* values of the inputs: n_args; owned */
  uint32_t *lists; /* nodes that the call waits for from the front, values from the back: n_lists; owned */
  size_t n_args, n_before, n_given, n_lists;
} site;

/* Makes the call wait until the input is available. A constant without control edges always is. */
static void wait_for(site *s, uint32_t value)
{
  tn__ir *ir = s->c->ir;
  uint32_t from = ir->values[value].node;
  if (from == TN__NONE && tn__spec_is_partial(ir->spec)) s->lists[s->n_lists - ++s->n_given] = value;
  if (from != TN__NONE && ir->nodes[from].n_controls + !(ir->nodes[from].traits & TN_TRAIT_CONSTANT) > 0)
    s->lists[s->n_before++] = from;
}

/* Lists the inputs of the call and what it waits for. *ok is false if it cannot be inlined: an input is a reference, or
 * may be dead. If an input is dead, the whole call is; after inlining, only the nodes that depend on it would be. */
static tn_status read_inputs(site *s, bool *ok)
{
  tn__pruner *c = s->c;
  size_t n_control, n;
  const tn_output *in = tn__operation_inputs(s->op, &s->n_args);
  tn_operation *const *control = tn__operation_control_inputs(s->op, &n_control);
  for (size_t i = 0; i < s->n_args; i++)
    if (tn__dtype_is_ref(tn_operation_output_dtype(in[i].op, (size_t)in[i].index))) return TN_OK;
  s->n_lists = s->n_args + n_control + 1;
  s->args = tn__alloc_array(s->n_args + 1, sizeof *s->args);
  s->lists = tn__alloc_array(s->n_lists, sizeof *s->lists);
  tn_status st = s->args == NULL || s->lists == NULL ? tn__ir_no_memory(c->ir) : TN_OK;
  *ok = true;
  if (st == TN_OK) st = tn__prune_inputs(c, s->op, s->args, s->n_args);
  for (size_t i = 0; st == TN_OK && i < s->n_args; i++) {
    *ok &= !tn__ir_may_be_dead(c->ir, s->args[i]);
    wait_for(s, s->args[i]);
  }
  if (st == TN_OK) st = tn__prune_controls(c, control, n_control, &n);
  for (size_t i = 0; st == TN_OK && i < n; i++) {
    *ok &= !c->ir->nodes[c->scratch.controls[i]].may_be_dead;
    s->lists[s->n_before++] = c->scratch.controls[i];
  }
  return st;
}

/* Enters the call into c->calls, which takes over s->lists and outputs. */
static tn_status remember(site *s, const struct tn__scope *scope, uint32_t *outputs, uint32_t first)
{
  tn__pruner *c = s->c;
  if (!tn__grow((void **)&c->calls, &c->call_room, c->n_calls + 1, sizeof *c->calls)) return tn__ir_no_memory(c->ir);
  c->calls[c->n_calls++] = (struct tn__inlined){
    .scope = *scope, .outputs = outputs, .n_outputs = tn_operation_n_outputs(s->op), .lists = s->lists,
    .n_lists = s->n_lists, .first = first, .end = (uint32_t)c->ir->n_nodes, .done = TN__NONE,
  };
  s->lists = NULL;
  tn__pruned(c, s->op)->call = (uint32_t)c->n_calls;
  return TN_OK;
}

static tn_status inline_call(site *s, struct tn__scope *scope, bool *done)
{
  tn__ir *ir = s->c->ir;
  size_t n = tn_operation_n_outputs(s->op);
  uint32_t first = (uint32_t)ir->n_nodes, *outputs = tn__alloc_array(n + 1, sizeof *outputs);
  if (outputs == NULL) return tn__ir_no_memory(ir);
  tn_status st = tn__inline_body(ir, scope, s->c->spec, 0, s->args, s->n_args, outputs, n, done);
  for (size_t i = 0; st == TN_OK && *done && i < n; i++)
    if (ir->values[outputs[i]].dtype != tn_operation_output_dtype(s->op, i)) {
      undo(ir, scope, first);
      *done = false;
    }
  if (st == TN_OK && *done) st = remember(s, scope, outputs, first);
  if (st != TN_OK || !*done) tn__free(outputs, (n + 1) * sizeof *outputs);
  return st;
}

tn_status tn__prune_inline(tn__pruner *c, tn_operation *op, bool *done)
{
  site s = { .c = c, .op = op };
  bool ok = false;
  *done = false;
  tn_status st = read_inputs(&s, &ok);
  if (st == TN_OK && ok) {
    struct tn__scope scope = { .up = c->scope, .op = op, .before = s.lists, .n_before = s.n_before,
                               .given = s.lists + s.n_lists - s.n_given, .n_given = s.n_given };
    if (tn__operation_traits(op) & TN_TRAIT_LOOP_CALL) st = tn__prune_loop_call(c, &scope, s.args, s.n_args, done);
    else st = inline_call(&s, &scope, done);
  }
  if (s.args != NULL) tn__free(s.args, (s.n_args + 1) * sizeof *s.args);
  if (s.lists != NULL) tn__free(s.lists, s.n_lists * sizeof *s.lists);
  return st;
}
