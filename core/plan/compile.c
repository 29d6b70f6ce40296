/* SPDX-License-Identifier: Apache-2.0 */
/* From a graph and a signature to a plan.
 *
 *   1. prune and order: a depth-first walk from fetches and targets, cut at fed endpoints, gives the operations in an order
 *      in which they can run (under the graph's read lock);
 *   2. emit: values and instructions, kernels resolved and created (no lock: operations do not change);
 *   3. cut into segments and list what each reads from outside. */
#include <core/plan/plan.h>

/* What the passes know of an operation, by its id. */
typedef struct op_state {
  uint32_t fed;         /* first feed of one of its outputs, chained by feed_next; TN__NONE = none */
  uint32_t first_value; /* value of output 0; TN__NONE = not emitted */
  uint32_t instr;       /* TN__NONE = it has none */
  uint8_t visit;        /* 0 unseen, 1 its inputs are being walked, 2 done */
  bool waited_for;      /* an operation of the plan has a control edge from it */
} op_state;

typedef struct frame {
  tn_operation *op;
  size_t next; /* edge to look at: data inputs, then control inputs */
} frame;

typedef struct compiler {
  const tn__signature_spec *spec;
  tn_plan *plan;
  op_state *ops;
  size_t n_ops;
  uint32_t *feed_next;  /* n_feeds */
  uint32_t *feed_value; /* n_feeds */
  frame *stack;
  size_t depth, stack_room;
  tn_operation **order;
  size_t n_order, order_room;
  uint32_t *alias; /* of values: TN__NONE, or the value that stands for it */
  size_t max_values, max_ids;
  tn_error *err;
} compiler;

static tn_status no_memory(compiler *c) { return tn__no_memory(c->err, "plan", 0); }

/* ---- 1: prune and order ---- */

static uint32_t feed_of(const compiler *c, tn_output output)
{
  uint32_t f = c->ops[tn__operation_id(output.op)].fed;
  while (f != TN__NONE && c->spec->feeds[f].index != output.index) f = c->feed_next[f];
  return f;
}

static tn_status push(compiler *c, tn_operation *op)
{
  if (!tn__grow((void **)&c->stack, &c->stack_room, c->depth + 1, sizeof *c->stack)) return no_memory(c);
  c->stack[c->depth++] = (frame){ op, 0 };
  c->ops[tn__operation_id(op)].visit = 1;
  return TN_OK;
}

static tn_status visited(compiler *c, tn_operation *op)
{
  if (!tn__grow((void **)&c->order, &c->order_room, c->n_order + 1, sizeof *c->order)) return no_memory(c);
  c->order[c->n_order++] = op;
  c->ops[tn__operation_id(op)].visit = 2;
  size_t n_in, n_control;
  tn__operation_inputs(op, &n_in);
  tn_operation *const *control = tn__operation_control_inputs(op, &n_control);
  for (size_t i = 0; i < n_control; i++) c->ops[tn__operation_id(control[i])].waited_for = true;
  c->max_values += tn_operation_n_outputs(op);
  c->max_ids += 2 * n_in + n_control + tn_operation_n_outputs(op);
  return TN_OK;
}

/* The next operation that the frame's one needs and that was not walked yet; NULL when there is none left. */
static tn_operation *next_needed(compiler *c, frame *f)
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

static tn_status walk_from(compiler *c, tn_operation *root)
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

static tn_status order_operations(compiler *c, tn_graph *graph)
{
  tn_status st = TN_OK;
  tn__graph_read_lock(graph);
  c->n_ops = tn_graph_n_operations(graph);
  c->ops = tn__alloc_array(c->n_ops + 1, sizeof *c->ops);
  c->feed_next = tn__alloc_array(c->spec->n_feeds + 1, sizeof *c->feed_next);
  c->feed_value = tn__alloc_array(c->spec->n_feeds + 1, sizeof *c->feed_value);
  if (c->ops == NULL || c->feed_next == NULL || c->feed_value == NULL) st = no_memory(c);
  for (size_t i = 0; st == TN_OK && i < c->n_ops; i++) c->ops[i] = (op_state){ TN__NONE, TN__NONE, TN__NONE, 0, false };
  for (size_t i = 0; st == TN_OK && i < c->spec->n_feeds; i++) {
    op_state *s = &c->ops[tn__operation_id(c->spec->feeds[i].op)];
    c->feed_next[i] = s->fed;
    s->fed = (uint32_t)i;
    c->feed_value[i] = TN__NONE;
  }
  for (size_t i = 0; st == TN_OK && i < c->spec->n_fetches; i++)
    if (feed_of(c, c->spec->fetches[i]) == TN__NONE) st = walk_from(c, c->spec->fetches[i].op);
  for (size_t i = 0; st == TN_OK && i < c->spec->n_targets; i++) st = walk_from(c, c->spec->targets[i]);
  tn__graph_unlock(graph);
  return st;
}

/* ---- 2: emit ---- */

static uint32_t new_value(compiler *c, uint8_t kind, tn_dtype dtype, tn_output output)
{
  uint32_t id = c->plan->n_values++;
  c->plan->values[id] = (tn__plan_value){ .kind = kind, .dtype = tn__dtype_base(dtype), .index = TN__NONE,
                                          .producer = TN__NONE, .last_use = TN__NONE, .output = output };
  return id;
}

/* The value that an edge carries. */
static uint32_t value_of(compiler *c, tn_output output)
{
  uint32_t f = feed_of(c, output);
  if (f == TN__NONE) {
    uint32_t v = c->ops[tn__operation_id(output.op)].first_value + (uint32_t)output.index;
    return c->alias[v] == TN__NONE ? v : c->alias[v];
  }
  if (c->feed_value[f] == TN__NONE) {
    tn_dtype dtype = (size_t)output.index < tn_operation_n_outputs(output.op)
                         ? tn_operation_output_dtype(output.op, (size_t)output.index) : TN_DTYPE_INVALID;
    uint32_t v = new_value(c, TN_VALUE_FEED, dtype, output);
    c->plan->values[v].index = f;
    c->plan->inputs[f] = v;
    c->feed_value[f] = v;
  }
  return c->feed_value[f];
}

static tn_status refuse_node(compiler *c, const tn_operation *op, tn_status code)
{
  tn_error_set_node(c->err, tn_operation_name(op));
  return code;
}

#define CONTROL_FLOW (TN_TRAIT_SWITCH | TN_TRAIT_MERGE | TN_TRAIT_ENTER | TN_TRAIT_EXIT | TN_TRAIT_NEXT_ITERATION | \
                      TN_TRAIT_LOOP_COND | TN_TRAIT_CONTROL_TRIGGER | TN_TRAIT_FUNCTION_CALL)

/* What a trait promises decides whose memory a value is: an op of a plugin that breaks it is refused. */
static tn_status check_hands_on(compiler *c, const tn_operation *op)
{
  size_t n_out = tn_operation_n_outputs(op), n_in;
  tn__operation_inputs(op, &n_in);
  bool ok = tn__operation_traits(op) & TN_TRAIT_IDENTITY ? n_out <= n_in : n_out == 0;
  for (size_t i = 0; ok && i < n_out; i++)
    ok = tn__dtype_base(tn_operation_output_dtype(op, i)) == tn__dtype_base(tn_operation_input_dtype(op, i));
  if (ok) return TN_OK;
  return refuse_node(c, op, tn_error_set(c->err, TN_INTERNAL,
                                         "node '%s': op '%s' should hand its inputs on, but its outputs are others",
                                         tn_operation_name(op), tn_operation_type(op)));
}

static tn_status check_runnable(compiler *c, const tn_operation *op)
{
  const char *name = tn_operation_name(op);
  if (tn_operation_schema(op) == NULL)
    return refuse_node(c, op, tn_error_set(c->err, TN_NOT_FOUND, "node '%s': op '%s' is not registered", name,
                                           tn_operation_type(op)));
  uint32_t traits = tn__operation_traits(op);
  if (traits & TN_TRAIT_PLACEHOLDER)
    return refuse_node(c, op, tn_error_set(c->err, TN_INVALID_ARGUMENT,
                                           "placeholder '%s' of type %s is needed and was not fed", name,
                                           tn_dtype_name(tn_operation_output_dtype(op, 0))));
  if (traits & CONTROL_FLOW)
    return refuse_node(c, op, tn_error_set(c->err, TN_UNIMPLEMENTED,
                                           "node '%s': op '%s' is control flow, which this version does not run", name,
                                           tn_operation_type(op)));
  return traits & (TN_TRAIT_IDENTITY | TN_TRAIT_NO_EFFECT) ? check_hands_on(c, op) : TN_OK;
}

/* A feed in place of an op that is not registered gets the type that its first reader wants; all must want the same. */
static tn_status claim_dtype(compiler *c, const tn_operation *op, size_t i, uint32_t value)
{
  tn__plan_value *v = &c->plan->values[value];
  if (v->kind != TN_VALUE_FEED) return TN_OK;
  tn_dtype wanted = tn__dtype_base(tn_operation_input_dtype(op, i));
  if (v->dtype == TN_DTYPE_INVALID) v->dtype = wanted;
  if (v->dtype == wanted || wanted == TN_DTYPE_INVALID) return TN_OK;
  return refuse_node(c, op, tn_error_set(c->err, TN_INVALID_ARGUMENT,
                                         "node '%s': input %zu is %s, the feed '%s:%d' is read as %s elsewhere",
                                         tn_operation_name(op), i, tn_dtype_name(wanted),
                                         tn_operation_name(v->output.op), (int)v->output.index, tn_dtype_name(v->dtype)));
}

/* Operations of no computation: a constant, and at level 1 what hands its inputs on, become values only. *done: the
 * operation needs no instruction. A constant that waits for control edges keeps one that does nothing; what hands on and
 * has control edges on either side is left as it is, so that they hold for its readers, too. */
static tn_status emit_without_kernel(compiler *c, tn_operation *op, uint32_t first, bool *done)
{
  tn_plan *plan = c->plan;
  uint32_t traits = tn__operation_traits(op);
  size_t n_control, n_in;
  tn__operation_control_inputs(op, &n_control);
  const tn_output *in = tn__operation_inputs(op, &n_in);
  *done = false;
  if (traits & TN_TRAIT_CONSTANT) {
    tn_tensor *constant;
    if (tn_operation_n_outputs(op) != 1)
      return refuse_node(c, op, tn_error_set(c->err, TN_INTERNAL, "node '%s': op '%s' is a constant with %zu outputs",
                                             tn_operation_name(op), tn_operation_type(op), tn_operation_n_outputs(op)));
    tn_status st = tn__operation_constant(op, &constant, c->err);
    if (st != TN_OK) return refuse_node(c, op, st);
    plan->values[first].kind = TN_VALUE_CONSTANT;
    plan->values[first].constant = tn_tensor_ref(constant);
    *done = n_control == 0;
  } else if ((traits & TN_TRAIT_IDENTITY) && plan->level > 0 && n_in == tn_operation_n_outputs(op) && n_control == 0 &&
             !c->ops[tn__operation_id(op)].waited_for) {
    for (size_t i = 0; i < n_in; i++) {
      c->alias[first + i] = value_of(c, in[i]);
      tn_status st = claim_dtype(c, op, i, c->alias[first + i]);
      if (st != TN_OK) return st;
    }
    *done = true;
  }
  return TN_OK;
}

static tn_status append_ids(compiler *c, tn__plan_instr *instr, tn_operation *op, uint32_t *n_ids)
{
  tn_plan *plan = c->plan;
  size_t n_in, n_control;
  const tn_output *in = tn__operation_inputs(op, &n_in);
  tn_operation *const *control = tn__operation_control_inputs(op, &n_control);
  if (instr->n_outputs == 0 && instr->kernel == NULL) n_in = 0; /* there for the order only */
  instr->first = *n_ids;
  for (size_t i = 0; i < n_in; i++) {
    uint32_t value = value_of(c, in[i]);
    tn_status st = claim_dtype(c, op, i, value);
    if (st != TN_OK) return st;
    plan->ids[(*n_ids)++] = value;
  }
  instr->n_inputs = *n_ids - instr->first;
  for (uint32_t i = 0; i < instr->n_outputs; i++)
    plan->ids[(*n_ids)++] = c->ops[tn__operation_id(op)].first_value + i;
  uint32_t after = *n_ids;
  for (size_t i = 0; i < n_control; i++) {
    uint32_t id = c->ops[tn__operation_id(control[i])].instr;
    if (id != TN__NONE) plan->ids[(*n_ids)++] = id;
  }
  for (uint32_t i = 0; i < instr->n_inputs; i++) { /* what a constant waits for, its readers wait for */
    const tn__plan_value *v = &plan->values[plan->ids[instr->first + i]];
    uint32_t id = v->kind == TN_VALUE_CONSTANT ? c->ops[tn__operation_id(v->output.op)].instr : TN__NONE;
    if (id != TN__NONE) plan->ids[(*n_ids)++] = id;
  }
  instr->n_after = *n_ids - after;
  return TN_OK;
}

static tn_status create_state(compiler *c, const tn_operation *op, tn__plan_instr *instr)
{
  if (instr->kernel->create == NULL) return TN_OK;
  tn_status st = instr->kernel->create(op, &instr->state, c->err);
  if (st == TN_OK) {
    tn__error_reset(c->err); /* whatever it tried on the way */
    return TN_OK;
  }
  instr->state = NULL;
  return tn__kernel_status(instr, "create", st, c->err);
}

static tn_status emit_instruction(compiler *c, tn_operation *op, bool empty, uint32_t *n_ids)
{
  tn_plan *plan = c->plan;
  op_state *s = &c->ops[tn__operation_id(op)];
  tn__plan_instr instr = { .op = op, .traits = tn__operation_traits(op) };
  if (!empty) {
    instr.n_outputs = (uint32_t)tn_operation_n_outputs(op);
    instr.shape_operands = tn__schema_def(tn_operation_schema(op))->shape_operands;
  }
  if (!empty && !(instr.traits & (TN_TRAIT_NO_EFFECT | TN_TRAIT_IDENTITY))) {
    tn_status st = tn__kernel_find(op, TN__HOST_DEVICE, &instr.kernel, c->err);
    if (st == TN_OK) st = create_state(c, op, &instr);
    if (st != TN_OK) return refuse_node(c, op, st);
  }
  uint32_t id = plan->n_instrs++;
  tn_status st = append_ids(c, &instr, op, n_ids);
  plan->instrs[id] = instr; /* in any case: it holds the kernel's state */
  if (st != TN_OK) return st;
  s->instr = id;
  for (uint32_t i = 0; i < instr.n_outputs; i++) plan->values[s->first_value + i].producer = id;
  return TN_OK;
}

static tn_status emit_operation(compiler *c, tn_operation *op, uint32_t *n_ids)
{
  op_state *s = &c->ops[tn__operation_id(op)];
  s->first_value = c->plan->n_values;
  for (size_t i = 0; i < tn_operation_n_outputs(op); i++)
    new_value(c, TN_VALUE_COMPUTED, tn_operation_output_dtype(op, i), (tn_output){ op, (int32_t)i });
  bool done;
  uint32_t first = s->first_value;
  tn_status st = emit_without_kernel(c, op, first, &done);
  if (st != TN_OK || done) return st;
  return emit_instruction(c, op, (tn__operation_traits(op) & TN_TRAIT_CONSTANT) != 0, n_ids);
}

static tn_status emit(compiler *c)
{
  tn_plan *plan = c->plan;
  const tn__signature_spec *spec = c->spec;
  c->max_values += spec->n_feeds;
  if (c->max_values >= TN__NONE || c->max_ids >= TN__NONE || c->n_order >= TN__NONE)
    return tn_error_set(c->err, TN_RESOURCE_EXHAUSTED, "the signature needs more than 2^32 values");
  plan->values = tn__arena_array(&plan->arena, c->max_values + 1, sizeof *plan->values);
  plan->instrs = tn__arena_array(&plan->arena, c->n_order + 1, sizeof *plan->instrs);
  plan->ids = tn__arena_array(&plan->arena, c->max_ids + 1, sizeof *plan->ids);
  plan->inputs = tn__arena_array(&plan->arena, spec->n_feeds + 1, sizeof *plan->inputs);
  plan->outputs = tn__arena_array(&plan->arena, spec->n_fetches + 1, sizeof *plan->outputs);
  c->alias = tn__alloc_array(c->max_values + 1, sizeof *c->alias);
  if (plan->values == NULL || plan->instrs == NULL || plan->ids == NULL || plan->inputs == NULL ||
      plan->outputs == NULL || c->alias == NULL)
    return no_memory(c);
  for (size_t i = 0; i < c->max_values; i++) c->alias[i] = TN__NONE;
  for (size_t i = 0; i < spec->n_feeds; i++) plan->inputs[i] = TN__NONE;
  plan->n_inputs = (uint32_t)spec->n_feeds;
  plan->n_outputs = (uint32_t)spec->n_fetches;
  uint32_t n_ids = 0;
  for (size_t i = 0; i < c->n_order; i++) { /* all before any: what passes stands in a real order, without a cycle */
    tn_status st = check_runnable(c, c->order[i]);
    if (st != TN_OK) return st;
  }
  for (size_t i = 0; i < c->n_order; i++) {
    tn_status st = emit_operation(c, c->order[i], &n_ids);
    if (st != TN_OK) return st;
  }
  for (size_t i = 0; i < spec->n_fetches; i++) plan->outputs[i] = value_of(c, spec->fetches[i]);
  return TN_OK;
}

/* ---- 3: uses and segments ---- */

static void count_uses(tn_plan *plan)
{
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    const uint32_t *in = tn__instr_inputs(plan, &plan->instrs[i]);
    for (uint32_t k = 0; k < plan->instrs[i].n_inputs; k++) {
      plan->values[in[k]].n_uses++;
      plan->values[in[k]].last_use = i;
    }
  }
  for (uint32_t i = 0; i < plan->n_outputs; i++) plan->values[plan->outputs[i]].n_uses++;
}

/* Whether instruction i has to begin a segment, when the current one began at `begin`. */
static bool begins_segment(const tn_plan *plan, uint32_t i, uint32_t begin)
{
  const tn__plan_instr *instr = &plan->instrs[i];
  const uint32_t *in = tn__instr_inputs(plan, instr);
  for (uint32_t k = 0; k < instr->n_inputs; k++) {
    const tn__plan_value *v = &plan->values[in[k]];
    if (v->kind != TN_VALUE_COMPUTED || v->producer < begin) continue;
    if (k < 32 && (instr->shape_operands >> k & 1)) return true;
    if (plan->instrs[v->producer].traits & TN_TRAIT_DYNAMIC) return true;
  }
  return false;
}

/* Entries and operands of a segment; `mark` holds for each value the number of the segment that listed it last. */
static tn_status list_entries(compiler *c, tn__segment *s, uint32_t number, uint32_t *mark, uint32_t *operand_mark)
{
  tn_plan *plan = c->plan;
  uint32_t *list = NULL, *operands = NULL;
  for (int pass = 0; pass < 2; pass++) {
    uint32_t n = 0, n_operands = 0;
    for (uint32_t i = s->begin; i < s->end; i++) {
      const uint32_t *in = tn__instr_inputs(plan, &plan->instrs[i]);
      for (uint32_t k = 0; k < plan->instrs[i].n_inputs; k++) {
        tn__plan_value *v = &plan->values[in[k]];
        if (v->kind == TN_VALUE_CONSTANT || (v->kind == TN_VALUE_COMPUTED && v->producer >= s->begin)) continue;
        if (v->kind == TN_VALUE_COMPUTED) v->dynamic_user = true;
        uint32_t tag = number * 2 + (uint32_t)pass + 1;
        if (mark[in[k]] != tag) {
          mark[in[k]] = tag;
          if (pass == 1) list[n] = in[k];
          n++;
        }
        bool operand = k < 32 && (plan->instrs[i].shape_operands >> k & 1);
        if (operand && operand_mark[in[k]] != tag) {
          operand_mark[in[k]] = tag;
          if (pass == 1) operands[n_operands] = in[k];
          n_operands++;
        }
      }
    }
    if (pass == 0) {
      list = tn__arena_array(&plan->arena, n + 1, sizeof *list);
      operands = tn__arena_array(&plan->arena, n_operands + 1, sizeof *operands);
      if (list == NULL || operands == NULL) return no_memory(c);
    }
    s->n_entries = n;
    s->n_operands = n_operands;
  }
  for (uint32_t j = 0; j < s->n_operands; j++) { /* from value to place among the entries */
    uint32_t e = 0;
    while (list[e] != operands[j]) e++;
    operands[j] = e;
  }
  s->entries = list;
  s->operands = operands;
  return TN_OK;
}

static tn_status cut_segments(compiler *c)
{
  tn_plan *plan = c->plan;
  uint32_t n = 0, begin = 0;
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    if (i == 0 || begins_segment(plan, i, begin)) {
      n++;
      begin = i;
    }
    plan->instrs[i].segment = n - 1;
  }
  plan->segments = tn__arena_array(&plan->arena, n + 1, sizeof *plan->segments);
  uint32_t *mark = tn__alloc_array((size_t)plan->n_values * 2 + 1, sizeof *mark);
  tn_status st = plan->segments == NULL || mark == NULL ? no_memory(c) : TN_OK;
  for (uint32_t i = 0; st == TN_OK && i < plan->n_instrs; i++) {
    tn__segment *s = &plan->segments[plan->instrs[i].segment];
    if (s->end == 0) s->begin = i;
    s->end = i + 1;
  }
  if (st == TN_OK) plan->n_segments = n;
  for (uint32_t k = 0; st == TN_OK && k < n; k++)
    st = list_entries(c, &plan->segments[k], k, mark, mark + plan->n_values);
  tn__free(mark, ((size_t)plan->n_values * 2 + 1) * sizeof *mark);
  return st;
}

static void compiler_fini(compiler *c)
{
  tn__free(c->ops, (c->n_ops + 1) * sizeof *c->ops);
  tn__free(c->feed_next, (c->spec->n_feeds + 1) * sizeof *c->feed_next);
  tn__free(c->feed_value, (c->spec->n_feeds + 1) * sizeof *c->feed_value);
  tn__free(c->stack, c->stack_room * sizeof *c->stack);
  tn__free(c->order, c->order_room * sizeof *c->order);
  tn__free(c->alias, (c->max_values + 1) * sizeof *c->alias);
}

tn_status tn__plan_compile(tn_graph *graph, const tn__signature_spec *spec, tn_plan **out, tn_error *err)
{
  *out = NULL;
  tn_plan *plan = tn__zalloc(sizeof *plan);
  if (plan == NULL) return tn__no_memory(err, "plan", sizeof *plan);
  atomic_init(&plan->refs, 1);
  plan->level = spec->level;
  plan->max_layouts = spec->max_layouts > 0 ? spec->max_layouts : 1;
  plan->graph = tn_graph_ref(graph);
  tn__arena_init(&plan->arena, 4096);
  tn__mutex_init(&plan->mu, "plan", TN_RANK_PLAN);
  compiler c = { .spec = spec, .plan = plan, .err = err };
  tn_status st = order_operations(&c, graph);
  if (st == TN_OK) st = emit(&c);
  if (st == TN_OK) {
    count_uses(plan);
    st = cut_segments(&c);
  }
  compiler_fini(&c);
  if (st != TN_OK) tn__plan_unref(plan);
  else *out = plan;
  return st;
}
