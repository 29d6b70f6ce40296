/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the values and instructions of a plan from the ir, and resolves and creates their kernels. Needs no lock:
 * operations do not change. */
#include <core/compile/lower/contexts.h>
#include <core/plan/frame.h>
#include <core/compile/lower/lower.h>

#include <string.h>

typedef struct emitter {
  tn__ir *ir;     /* borrowed */
  tn_plan *plan;  /* borrowed */
  uint32_t n_ids; /* used entries of plan->ids */
  tn__contexts contexts;
} emitter;

/* The elements of a large constant are kept apart, in to->elements, where they can be released; to->constant is an
 * outline with its shape only. */
static void set_constant(const emitter *e, tn__plan_value *to, const tn__ir_value *v)
{
  tn_tensor *c = tn_tensor_ref(v->constant), *outline;
  to->constant = c;
  if (v->recipe == NULL) return;
  if (!tn__tensor_is_outline(c)) {
    if (tn__tensor_outline(c->dtype, c->dims, c->rank, c->count, c->bytes, &outline, NULL) != TN_OK)
      return; /* out of memory: keep the elements, without a recipe */
    to->elements = c;
    to->constant = outline;
  }
  to->recipe = tn__recipe_ref(v->recipe);
}

static bool is_switch(const tn__ir *ir, const tn__ir_value *v)
{
  return v->kind == TN_VALUE_COMPUTED && (ir->nodes[v->node].traits & TN_TRAIT_SWITCH) != 0;
}

/* The plan's value for a value of the ir, made at first use. The outputs of a Switch are its input; contexts say when
 * they are live. */
static uint32_t plan_value(emitter *e, uint32_t id)
{
  tn__ir_value *v = &e->ir->values[id];
  while (is_switch(e->ir, v)) v = &e->ir->values[tn__ir_input(e->ir, &e->ir->nodes[v->node], 0)];
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

/* Makes the elements of a constant and keeps them permanently: for readers that take whole tensors. */
static tn_status make_whole(emitter *e, uint32_t value)
{
  tn__plan_value *v = &e->plan->values[value];
  tn_tensor *elements;
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

/* A constant that waits for control edges keeps an instruction that does nothing, and so does a Switch with such
 * edges. */
static bool needs_no_instruction(const tn__ir_node *node)
{
  if (node->traits & TN_TRAIT_SWITCH) return node->n_controls == 0 && !node->waited_for && !node->wanted;
  return (node->traits & TN_TRAIT_CONSTANT) && node->n_controls == 0;
}

/* Appends the inputs and outputs of an instruction to plan->ids. An instruction that computes nothing only waits, and
 * does so by add_after. */
static void add_inputs(emitter *e, tn__plan_instr *instr, const tn__ir_node *node)
{
  bool for_order_only = instr->kind == TN__SEGMENT_TAPE && instr->n_outputs == 0 && tn__instr_kernels(instr) == NULL;
  instr->first = e->n_ids;
  for (uint32_t i = 0; i < node->n_inputs && !for_order_only; i++)
    e->plan->ids[e->n_ids++] = plan_value(e, tn__ir_input(e->ir, node, i));
  instr->n_inputs = e->n_ids - instr->first;
  for (uint32_t k = 0; k < instr->n_outputs; k++) e->plan->ids[e->n_ids++] = plan_value(e, node->first_value + k);
}

/* Appends the instructions that an instruction waits for to plan->ids: those of its control edges, and those of the
 * constants and Switches that it reads, which have instructions only if they wait for something themselves. A Switch
 * has no inputs in the plan, so it also waits for the producer of its input. */
static void add_after(emitter *e, tn__plan_instr *instr, const tn__ir_node *node)
{
  const tn__ir *ir = e->ir;
  uint32_t first = e->n_ids;
  for (uint32_t i = 0; i < node->n_controls; i++) {
    uint32_t id = ir->nodes[tn__ir_control(ir, node, i)].instr;
    if (id != TN__NONE) e->plan->ids[e->n_ids++] = id;
  }
  for (uint32_t i = 0; i < node->n_inputs; i++) {
    const tn__ir_value *v = &ir->values[tn__ir_input(ir, node, i)];
    while (is_switch(ir, v)) {
      const tn__ir_node *from = &ir->nodes[v->node];
      if (from->instr != TN__NONE) e->plan->ids[e->n_ids++] = from->instr;
      v = &ir->values[tn__ir_input(ir, from, 0)];
    }
    bool waits = v->kind == TN_VALUE_CONSTANT || (v->kind == TN_VALUE_COMPUTED && (node->traits & TN_TRAIT_SWITCH));
    uint32_t id = waits && v->node != TN__NONE ? ir->nodes[v->node].instr : TN__NONE;
    if (id != TN__NONE) e->plan->ids[e->n_ids++] = id;
  }
  instr->n_after = e->n_ids - first;
}

/* A Merge or a loop reads whole tensors, so constants need their elements. */
static tn_status make_inputs_whole(emitter *e, const tn__ir_node *node)
{
  tn_status st = TN_OK;
  for (uint32_t i = 0; st == TN_OK && i < node->n_inputs; i++)
    st = make_whole(e, plan_value(e, tn__ir_input(e->ir, node, i)));
  return st;
}

static tn_status set_input_contexts(emitter *e, tn__plan_instr *instr, const tn__ir_node *node)
{
  uint32_t *to = tn__arena_array(&e->plan->arena, (size_t)node->n_inputs + 1, sizeof *to);
  if (to == NULL) return tn__ir_no_memory(e->ir);
  for (uint32_t i = 0; i < node->n_inputs; i++) to[i] = e->contexts.values[tn__ir_input(e->ir, node, i)];
  instr->input_contexts = to;
  return TN_OK;
}

/* Sets the kind of segment that the instruction needs. It takes over the frame of a loop. */
static tn_status set_kind(emitter *e, tn__plan_instr *instr, tn__ir_node *node)
{
  tn_plan *plan = e->plan;
  if (node->frame != NULL) {
    instr->kind = TN__SEGMENT_LOOP;
    instr->frame = node->frame;
    plan->has_waits |= node->frame->body->has_waits;
    node->frame = NULL;
    return make_inputs_whole(e, node);
  }
  if (node->traits & TN_TRAIT_MERGE) {
    instr->kind = TN__SEGMENT_MERGE;
    tn_status st = set_input_contexts(e, instr, node);
    return st == TN_OK ? make_inputs_whole(e, node) : st;
  }
  if (!(node->traits & (TN_TRAIT_MAY_WAIT | TN_TRAIT_FUNCTION_CALL))) return TN_OK;
  if (node->feed != 0) {
    instr->kind = TN__SEGMENT_FEED;
    return TN_OK;
  }
  instr->kind = TN__SEGMENT_WAIT;
  plan->has_waits = true;
  return TN_OK;
}

/* Creates the kernels that may compute the node. */
static tn_status add_kernels(emitter *e, tn__plan_instr *instr, const tn__ir_node *node)
{
  const tn__plan_kernels *kernels;
  tn_status st;
  if (node->dereferences) {
    st = tn__plan_kernels_one(e->plan, tn_op_schema_kernel(tn_op_schema_find(TN__READ_REFERENCE_OP), 0), &kernels,
                              e->ir->err);
  } else {
    instr->shape_operands = tn__schema_def(tn_operation_schema(node->op))->shape_operands;
    st = tn__plan_kernels_create(e->plan, node->op, NULL, &kernels, e->ir->err);
  }
  if (st != TN_OK) return tn__ir_refuse(e->ir, node->op, st);
  atomic_init(&instr->kernels, kernels);
  return TN_OK;
}

static tn_status emit_node(emitter *e, tn__ir_node *node)
{
  tn_plan *plan = e->plan;
  tn__plan_instr instr = { .op = node->op, .traits = node->traits };
  bool empty = (node->traits & (TN_TRAIT_CONSTANT | TN_TRAIT_SWITCH)) != 0;
  if (!empty) instr.n_outputs = node->n_outputs;
  if (e->contexts.any) instr.context = e->contexts.nodes[node - e->ir->nodes];
  tn_status st = set_kind(e, &instr, node);
  bool computes = !empty && instr.kind <= TN__SEGMENT_WAIT &&
                  !(instr.traits & (TN_TRAIT_NO_EFFECT | TN_TRAIT_IDENTITY | TN_TRAIT_CONTROL_TRIGGER));
  if (st == TN_OK && computes) st = add_kernels(e, &instr, node);
  if (st != TN_OK) {
    tn__plan_frame_destroy(instr.frame);
    return st;
  }
  node->instr = plan->n_instrs++;
  add_inputs(e, &instr, node);
  add_after(e, &instr, node);
  plan->instrs[node->instr] = instr;
  for (uint32_t k = 0; k < instr.n_outputs; k++)
    plan->values[tn__instr_outputs(plan, &instr)[k]].producer = node->instr;
  if (node->feed != 0) plan->values[tn__instr_outputs(plan, &instr)[0]].index = node->feed - 1;
  return TN_OK;
}

/* Maximum number of ids for an input of a node: its own, and the instructions that it waits for through Switches. */
static size_t count_input(const tn__ir *ir, const tn__ir_node *node, uint32_t i)
{
  size_t n = 2;
  const tn__ir_value *v = &ir->values[tn__ir_input(ir, node, i)];
  for (; is_switch(ir, v); n++) v = &ir->values[tn__ir_input(ir, &ir->nodes[v->node], 0)];
  return n;
}

/* Allocates the arrays of the plan for the maximum that the ir may need. */
static tn_status allocate(emitter *e)
{
  const tn__ir *ir = e->ir;
  tn_plan *plan = e->plan;
  size_t n_ids = 1;
  for (uint32_t id = ir->first; id != TN__NONE; id = ir->nodes[id].next) {
    n_ids += (size_t)ir->nodes[id].n_controls + ir->nodes[id].n_outputs;
    for (uint32_t i = 0; i < ir->nodes[id].n_inputs; i++) n_ids += count_input(ir, &ir->nodes[id], i);
  }
  if (n_ids >= TN__NONE)
    return tn_error_set(ir->err, TN_RESOURCE_EXHAUSTED, "the signature needs more than 2^32 operands");
  plan->values = tn__arena_array(&plan->arena, ir->n_values + 1, sizeof *plan->values);
  plan->instrs = tn__arena_array(&plan->arena, ir->n_live + 1, sizeof *plan->instrs);
  plan->ids = tn__arena_array(&plan->arena, n_ids, sizeof *plan->ids);
  plan->inputs = tn__arena_array(&plan->arena, ir->spec->n_feeds + 1, sizeof *plan->inputs);
  plan->outputs = tn__arena_array(&plan->arena, ir->spec->n_fetches + 1, sizeof *plan->outputs);
  plan->conditions.outputs = tn__arena_array(&plan->arena, ir->spec->n_fetches + 1, sizeof *plan->conditions.outputs);
  plan->asked = tn__arena_array(&plan->arena, ir->spec->n_fetches + 1, sizeof *plan->asked);
  if (plan->values == NULL || plan->instrs == NULL || plan->ids == NULL || plan->inputs == NULL ||
      plan->outputs == NULL || plan->conditions.outputs == NULL || plan->asked == NULL)
    return tn__ir_no_memory(ir);
  plan->n_inputs = (uint32_t)ir->spec->n_feeds;
  plan->n_outputs = (uint32_t)ir->spec->n_fetches;
  return TN_OK;
}

/* Copies what passes did, for reports. */
static tn_status keep_notes(const tn__ir *ir, tn_plan *plan)
{
  plan->notes.passes = tn__arena_array(&plan->arena, ir->notes.n_passes, sizeof *plan->notes.passes);
  plan->notes.rewrites = tn__arena_array(&plan->arena, ir->notes.n_rewrites, sizeof *plan->notes.rewrites);
  if (plan->notes.passes == NULL || plan->notes.rewrites == NULL) return tn__ir_no_memory(ir);
  if (ir->notes.n_passes > 0)
    __builtin_memcpy(plan->notes.passes, ir->notes.passes, ir->notes.n_passes * sizeof *ir->notes.passes);
  if (ir->notes.n_rewrites > 0)
    __builtin_memcpy(plan->notes.rewrites, ir->notes.rewrites, ir->notes.n_rewrites * sizeof *ir->notes.rewrites);
  plan->notes.n_passes = (uint32_t)ir->notes.n_passes;
  plan->notes.n_rewrites = (uint32_t)ir->notes.n_rewrites;
  plan->notes.n_graph_nodes = (uint32_t)ir->notes.n_graph;
  plan->notes.n_needed_nodes = (uint32_t)ir->notes.n_needed;
  plan->notes.n_nodes = (uint32_t)ir->n_live;
  return TN_OK;
}

/* A fetched constant is copied in each step, so it keeps its elements. */
static tn_status add_output(emitter *e, size_t i, uint32_t id)
{
  e->plan->outputs[i] = plan_value(e, id);
  if (e->ir->spec->fetches != NULL)
    e->plan->asked[i] = e->ir->spec->fetches[i]; /* a plan of one operation or of functions has no fetches by name */
  e->plan->conditions.outputs[i] = e->contexts.any ? e->contexts.values[id] : 0;
  return make_whole(e, e->plan->outputs[i]);
}

/* Copies contexts and atoms to the plan, where the ids of atoms are values and instructions of the plan. */
static tn_status add_contexts(emitter *e)
{
  tn__contexts *c = &e->contexts;
  tn__plan_conditions *to = &e->plan->conditions;
  tn__arena *arena = &e->plan->arena;
  e->plan->has_control = c->any;
  if (!c->any) return TN_OK;
  to->atoms = tn__arena_array(arena, c->n_atoms + 1, sizeof *to->atoms);
  to->contexts = tn__arena_array(arena, c->n_contexts + 1, sizeof *to->contexts);
  to->context_atoms = tn__arena_array(arena, c->n_lists + 1, sizeof *to->context_atoms);
  if (to->atoms == NULL || to->contexts == NULL || to->context_atoms == NULL) return tn__ir_no_memory(e->ir);
  for (size_t i = 0; i < c->n_atoms; i++) {
    tn__atom *a = &to->atoms[i];
    *a = c->atoms[i];
    if (a->kind == TN__ATOM_BRANCH) a->id = plan_value(e, a->id);
    if (a->kind == TN__ATOM_MERGE || a->kind == TN__ATOM_EXIT || a->kind == TN__ATOM_WAIT)
      a->id = e->ir->nodes[a->id].instr;
  }
  memcpy(to->contexts, c->contexts, c->n_contexts * sizeof *c->contexts);
  if (c->n_lists > 0) memcpy(to->context_atoms, c->lists, c->n_lists * sizeof *c->lists);
  to->n_atoms = (uint32_t)c->n_atoms;
  to->n_contexts = (uint32_t)c->n_contexts;
  return TN_OK;
}

/* The instructions borrow operations of inlined bodies, so the plan keeps references to their graphs. */
static tn_status keep_bodies(tn__ir *ir, tn_plan *plan)
{
  plan->graphs.inlined = tn__arena_array(&plan->arena, ir->made.n_inlined, sizeof *plan->graphs.inlined);
  if (plan->graphs.inlined == NULL) return tn__ir_no_memory(ir);
  while (plan->graphs.n_inlined < ir->made.n_inlined) {
    plan->graphs.inlined[plan->graphs.n_inlined] = tn_graph_ref(ir->made.inlined[plan->graphs.n_inlined]);
    plan->graphs.n_inlined++;
  }
  return TN_OK;
}

tn_status tn__ir_emit(tn__ir *ir, tn_plan *plan)
{
  emitter e = { .ir = ir, .plan = plan };
  plan->has_waits = ir->partial;
  tn_status st = tn__contexts_find(ir, &e.contexts);
  if (st == TN_OK) st = allocate(&e);
  if (st == TN_OK) st = keep_notes(ir, plan);
  for (uint32_t id = ir->first; st == TN_OK && id != TN__NONE; id = ir->nodes[id].next)
    if (!needs_no_instruction(&ir->nodes[id])) st = emit_node(&e, &ir->nodes[id]);
  for (size_t i = 0; st == TN_OK && i < ir->spec->n_feeds; i++)
    plan->inputs[i] = ir->inputs[i] == TN__NONE ? TN__NONE : plan_value(&e, ir->inputs[i]);
  for (size_t i = 0; st == TN_OK && i < ir->spec->n_fetches; i++)
    st = add_output(&e, i, tn__ir_value_of(ir, ir->outputs[i]));
  if (st == TN_OK) st = add_contexts(&e);
  tn__contexts_fini(&e.contexts);
  plan->graphs.extra = tn_graph_ref(ir->made.extra);
  return st == TN_OK ? keep_bodies(ir, plan) : st;
}
