/* SPDX-License-Identifier: Apache-2.0 */
/* From nodes and values to a plan's instructions: kernels are resolved and created (no lock: operations do not change). */
#include <core/plan/ir.h>

typedef struct emitter {
  tn__ir *ir;
  tn_plan *plan;
  uint32_t n_ids;
} emitter;

/* A large constant's elements are the plan's own, to be let go: what is said of it everywhere is its shape. */
static void set_constant(const emitter *e, tn__plan_value *to, const tn__ir_value *v)
{
  tn_tensor *c = tn_tensor_ref(v->constant), *outline;
  to->constant = c;
  if (v->recipe == NULL) return;
  if (!tn__tensor_is_outline(c)) {
    if (tn__tensor_outline(c->dtype, c->dims, c->rank, c->count, c->bytes, &outline, NULL) != TN_OK) return; /* stays whole */
    to->elements = c;
    to->constant = outline;
  }
  to->recipe = tn__recipe_ref(v->recipe);
}

static uint32_t plan_value(emitter *e, uint32_t id)
{
  tn__ir_value *v = &e->ir->values[id];
  if (v->planned == TN__NONE) {
    v->planned = e->plan->n_values++;
    tn__plan_value *to = &e->plan->values[v->planned];
    *to = (tn__plan_value){
      .kind = v->kind, .dtype = v->dtype, .index = v->kind == TN_VALUE_FEED ? v->index : TN__NONE,
      .producer = TN__NONE, .last_use = TN__NONE, .output = v->output,
    };
    if (v->constant != NULL) set_constant(e, to, v);
  }
  return v->planned;
}

/* A constant that waits for control edges keeps an instruction that does nothing. */
static bool needs_no_instruction(const tn__ir_node *node)
{
  return (node->traits & TN_TRAIT_CONSTANT) && node->n_controls == 0;
}

static void add_inputs(emitter *e, tn__plan_instr *instr, const tn__ir_node *node)
{
  bool for_order_only = instr->n_outputs == 0 && tn__instr_kernels(instr) == NULL;
  instr->first = e->n_ids;
  for (uint32_t i = 0; i < node->n_inputs && !for_order_only; i++)
    e->plan->ids[e->n_ids++] = plan_value(e, tn__ir_input(e->ir, node, i));
  instr->n_inputs = e->n_ids - instr->first;
  for (uint32_t k = 0; k < instr->n_outputs; k++) e->plan->ids[e->n_ids++] = plan_value(e, node->first_value + k);
}

static void add_after(emitter *e, tn__plan_instr *instr, const tn__ir_node *node)
{
  const tn__ir *ir = e->ir;
  uint32_t first = e->n_ids;
  for (uint32_t i = 0; i < node->n_controls; i++) {
    uint32_t id = ir->nodes[tn__ir_control(ir, node, i)].instr;
    if (id != TN__NONE) e->plan->ids[e->n_ids++] = id;
  }
  for (uint32_t i = 0; i < instr->n_inputs; i++) { /* what a constant waits for, its readers wait for */
    const tn__ir_value *v = &ir->values[tn__ir_input(ir, node, i)];
    uint32_t id = v->kind == TN_VALUE_CONSTANT && v->node != TN__NONE ? ir->nodes[v->node].instr : TN__NONE;
    if (id != TN__NONE) e->plan->ids[e->n_ids++] = id;
  }
  instr->n_after = e->n_ids - first;
}

static tn_status emit_node(emitter *e, tn__ir_node *node)
{
  tn_plan *plan = e->plan;
  tn__plan_instr instr = { .op = node->op, .traits = node->traits };
  bool empty = (node->traits & TN_TRAIT_CONSTANT) != 0;
  if (!empty) {
    instr.n_outputs = node->n_outputs;
    instr.shape_operands = tn__schema_def(tn_operation_schema(node->op))->shape_operands;
  }
  if (!empty && !(instr.traits & (TN_TRAIT_NO_EFFECT | TN_TRAIT_IDENTITY))) {
    const tn__plan_kernels *kernels;
    tn_status st = tn__plan_kernels_make(plan, node->op, NULL, &kernels, e->ir->err);
    if (st != TN_OK) return tn__ir_refuse(e->ir, node->op, st);
    atomic_init(&instr.kernels, kernels);
  }
  node->instr = plan->n_instrs++;
  add_inputs(e, &instr, node);
  add_after(e, &instr, node);
  plan->instrs[node->instr] = instr;
  for (uint32_t k = 0; k < instr.n_outputs; k++)
    plan->values[tn__instr_outputs(plan, &instr)[k]].producer = node->instr;
  return TN_OK;
}

/* Room for all that could be needed. */
static tn_status allocate(emitter *e)
{
  const tn__ir *ir = e->ir;
  tn_plan *plan = e->plan;
  size_t n_ids = 1;
  for (uint32_t id = ir->first; id != TN__NONE; id = ir->nodes[id].next)
    n_ids += 2 * (size_t)ir->nodes[id].n_inputs + ir->nodes[id].n_controls + ir->nodes[id].n_outputs;
  if (n_ids >= TN__NONE)
    return tn_error_set(ir->err, TN_RESOURCE_EXHAUSTED, "the signature needs more than 2^32 operands");
  plan->values = tn__arena_array(&plan->arena, ir->n_values + 1, sizeof *plan->values);
  plan->instrs = tn__arena_array(&plan->arena, ir->n_live + 1, sizeof *plan->instrs);
  plan->ids = tn__arena_array(&plan->arena, n_ids, sizeof *plan->ids);
  plan->inputs = tn__arena_array(&plan->arena, ir->spec->n_feeds + 1, sizeof *plan->inputs);
  plan->outputs = tn__arena_array(&plan->arena, ir->spec->n_fetches + 1, sizeof *plan->outputs);
  if (plan->values == NULL || plan->instrs == NULL || plan->ids == NULL || plan->inputs == NULL || plan->outputs == NULL)
    return tn__ir_no_memory(ir);
  plan->n_inputs = (uint32_t)ir->spec->n_feeds;
  plan->n_outputs = (uint32_t)ir->spec->n_fetches;
  return TN_OK;
}

static tn_status keep_notes(const tn__ir *ir, tn_plan *plan)
{
  plan->passes = tn__arena_array(&plan->arena, ir->n_passes, sizeof *plan->passes);
  plan->rewrites = tn__arena_array(&plan->arena, ir->n_rewrites, sizeof *plan->rewrites);
  if (plan->passes == NULL || plan->rewrites == NULL) return tn__ir_no_memory(ir);
  if (ir->n_passes > 0) __builtin_memcpy(plan->passes, ir->passes, ir->n_passes * sizeof *ir->passes);
  if (ir->n_rewrites > 0) __builtin_memcpy(plan->rewrites, ir->rewrites, ir->n_rewrites * sizeof *ir->rewrites);
  plan->n_passes = (uint32_t)ir->n_passes;
  plan->n_rewrites = (uint32_t)ir->n_rewrites;
  plan->n_graph_nodes = (uint32_t)ir->n_graph;
  plan->n_needed_nodes = (uint32_t)ir->n_needed;
  plan->n_nodes = (uint32_t)ir->n_live;
  return TN_OK;
}

/* A constant that is fetched is copied in each step: it is whole, and stays so. */
static tn_status add_output(emitter *e, size_t i, uint32_t id)
{
  uint32_t value = plan_value(e, id);
  tn__plan_value *v = &e->plan->values[value];
  tn_tensor *elements;
  e->plan->outputs[i] = value;
  if (v->recipe == NULL) return TN_OK;
  tn_status st = tn__plan_need_elements(e->plan, value, &elements, e->ir->err);
  if (st != TN_OK) return st;
  tn_tensor_unref(v->constant);
  tn_tensor_unref(v->elements);
  tn__recipe_unref(v->recipe);
  v->constant = elements;
  v->elements = NULL;
  v->recipe = NULL;
  return TN_OK;
}

tn_status tn__ir_emit(tn__ir *ir, tn_plan *plan)
{
  emitter e = { .ir = ir, .plan = plan };
  tn_status st = allocate(&e);
  if (st == TN_OK) st = keep_notes(ir, plan);
  for (uint32_t id = ir->first; st == TN_OK && id != TN__NONE; id = ir->nodes[id].next)
    if (!needs_no_instruction(&ir->nodes[id])) st = emit_node(&e, &ir->nodes[id]);
  for (size_t i = 0; st == TN_OK && i < ir->spec->n_feeds; i++)
    plan->inputs[i] = ir->inputs[i] == TN__NONE ? TN__NONE : plan_value(&e, ir->inputs[i]);
  for (size_t i = 0; st == TN_OK && i < ir->spec->n_fetches; i++)
    st = add_output(&e, i, tn__ir_value_of(ir, ir->outputs[i]));
  plan->extra = tn_graph_ref(ir->extra);
  return st;
}
