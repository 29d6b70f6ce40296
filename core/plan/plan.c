/* SPDX-License-Identifier: Apache-2.0 */
/* The plan object and its reading functions (level (c) of the kit). */
#include <core/plan/callee_table.h>
#include <core/plan/frame.h>
#include <core/plan/plan.h>

#include <string.h>

_Atomic(tn__workspace_free_fn) tn__workspace_destroy;

tn_plan *tn__plan_ref(tn_plan *plan)
{
  if (plan != NULL) atomic_fetch_add_explicit(&plan->refs, 1, memory_order_relaxed);
  return plan;
}

void tn__plan_drop_workspaces(tn_plan *plan)
{
  for (size_t i = 0; i < TN__MAX_IDLE; i++) {
    tn__workspace *w = atomic_exchange(&plan->caches.idle[i].at, NULL);
    if (w != NULL) atomic_load(&tn__workspace_destroy)(plan, w);
  }
}

void tn__plan_unref(tn_plan *plan)
{
  if (plan == NULL || atomic_fetch_sub_explicit(&plan->refs, 1, memory_order_acq_rel) != 1) return;
  tn__plan_drop_workspaces(plan);
  if (plan->caches.layouts != NULL) plan->caches.layouts->end(plan);
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    tn__plan_kernels_destroy(tn__instr_kernels(&plan->instrs[i]));
    tn__instr_callees_destroy(atomic_load(&plan->instrs[i].callees));
    tn__plan_frame_destroy(plan->instrs[i].frame);
  }
  if (plan->caches.owns_callees) tn__callees_destroy(plan->caches.callees);
  for (uint32_t i = 0; i < plan->n_values; i++) {
    tn_tensor_unref(plan->values[i].constant);
    tn_tensor_unref(plan->values[i].elements);
    tn__recipe_unref(plan->values[i].recipe);
  }
  tn__mutex_fini(&plan->caches.mu);
  tn_graph_unref(plan->graphs.extra);
  for (uint32_t i = 0; i < plan->graphs.n_inlined; i++) tn_graph_unref(plan->graphs.inlined[i]);
  tn_graph_unref(plan->graphs.main);
  tn__arena_fini(&plan->arena);
  tn__free(plan, sizeof *plan);
}

/* ---- parts that own plans ---- */

void tn__plan_frame_drop_rotation(tn__plan_frame *frame)
{
  tn__plan_unref(frame->first);
  tn__plan_unref(frame->turn);
  if (frame->first_feeds != NULL)
    tn__free(frame->first_feeds, (frame->n_first_feeds + (size_t)1) * sizeof *frame->first_feeds);
  if (frame->turn_feeds != NULL)
    tn__free(frame->turn_feeds, (frame->n_turn_feeds + (size_t)1) * sizeof *frame->turn_feeds);
  if (frame->variables != NULL) tn__free(frame->variables, (frame->n_nexts + (size_t)1) * sizeof *frame->variables);
  if (frame->exit_variables != NULL)
    tn__free(frame->exit_variables, (frame->n_exits + (size_t)1) * sizeof *frame->exit_variables);
  frame->first = frame->turn = NULL;
  frame->first_feeds = frame->turn_feeds = NULL;
  frame->variables = NULL;
  frame->exit_variables = NULL;
}

void tn__plan_frame_destroy(tn__plan_frame *frame)
{
  if (frame == NULL) return;
  tn__plan_frame_drop_rotation(frame);
  tn__plan_unref(frame->body);
  tn__free(frame, sizeof *frame + frame->n_feeds * sizeof *frame->feeds);
}

void tn__callee_destroy(tn__callee *c)
{
  if (c == NULL) return;
  tn__plan_unref(c->plan);
  tn__free(c, c->block_bytes);
}

void tn__callees_destroy(tn__callees *callees)
{
  if (callees == NULL) return;
  for (tn__callee *c = callees->first, *next; c != NULL; c = next) {
    next = c->next;
    tn__callee_destroy(c);
  }
  tn__map_fini(&callees->by_key);
  tn__mutex_fini(&callees->mu);
  tn__free(callees, sizeof *callees);
}

void tn__instr_callees_destroy(tn__instr_callees *known)
{
  if (known != NULL) tn__free(known, tn__instr_callees_bytes(known->n));
}

/* ---- settings by the runtime ---- */

void tn__plan_set_threads(tn_plan *plan, uint32_t threads)
{
  atomic_store_explicit(&plan->settings.threads, threads, memory_order_relaxed);
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    const tn__plan_frame *f = plan->instrs[i].frame;
    if (f == NULL) continue;
    tn__plan_set_threads(f->body, threads);
    if (f->first != NULL) tn__plan_set_threads(f->first, threads);
    if (f->turn != NULL) tn__plan_set_threads(f->turn, threads);
  }
}

void tn__plan_set_scheduled(tn_plan *plan)
{
  atomic_store_explicit(&plan->settings.scheduled, true, memory_order_relaxed);
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    const tn__plan_frame *f = plan->instrs[i].frame;
    if (f == NULL) continue;
    tn__plan_set_scheduled(f->body);
    if (f->first != NULL) tn__plan_set_scheduled(f->first);
    if (f->turn != NULL) tn__plan_set_scheduled(f->turn);
  }
}

size_t tn_plan_n_instructions(const tn_plan *plan) { return plan->n_instrs; }
size_t tn_plan_n_values(const tn_plan *plan) { return plan->n_values; }
size_t tn_plan_n_inputs(const tn_plan *plan) { return plan->n_inputs; }
size_t tn_plan_n_outputs(const tn_plan *plan) { return plan->n_outputs; }

void tn__copy_sized(void *to, const void *from, size_t size, size_t room)
{
  size_t n = room < size ? room : size;
  __builtin_memcpy((char *)to + sizeof(size_t), (const char *)from + sizeof(size_t), n - sizeof(size_t));
  __builtin_memset((char *)to + n, 0, room - n);
}

/* ---- straight plans: tn_plan_instruction describes them completely ---- */

/* Whether a context holds in every step, perhaps after something has waited. */
static bool is_certain(const tn_plan *plan, uint32_t context)
{
  const tn__context *c = &plan->conditions.contexts[context];
  for (uint32_t k = 0; k < c->n; k++)
    if (plan->conditions.atoms[plan->conditions.context_atoms[c->first + k]].kind != TN__ATOM_WAIT) return false;
  return true;
}

/* Why tn_plan_instruction cannot describe an instruction; NULL if it can. */
static const char *unsaid(const tn_plan *plan, const tn__plan_instr *in)
{
  if (in->kind == TN__SEGMENT_LOOP) return "is a loop, whose body is a plan of its own";
  if (in->kind == TN__SEGMENT_MERGE) return "forwards whichever of its inputs is live";
  if (plan->has_control && !is_certain(plan, in->context)) return "runs under a condition";
  return NULL;
}

static tn_status not_straight(const tn_operation *op, const char *why, tn_error *err)
{
  tn__text name;
  tn__text_init(&name, SIZE_MAX);
  tn__plan_node_name(op, &name);
  const char *node = name.failed ? tn_operation_name(op) : tn__text_get(&name);
  tn_error_set(err, TN_UNIMPLEMENTED,
               "node '%s' (%s) %s, which plan instructions cannot describe in this version: let the kit run "
               "the plan (tn_kit_prepare)",
               node, tn_operation_type(op), why);
  tn_error_set_node(err, node);
  tn__text_fini(&name);
  return TN_UNIMPLEMENTED;
}

tn_status tn_plan_check_straight(const tn_plan *plan, tn_error *err)
{
  tn__error_reset(err);
  if (plan == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_plan_check_straight: plan is NULL");
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    const tn__plan_instr *in = &plan->instrs[i];
    const char *why = unsaid(plan, in);
    if (why == NULL && in->kind == TN__SEGMENT_WAIT)
      why = in->traits & TN_TRAIT_FUNCTION_CALL ? "calls functions, which may wait"
                                                : "may wait for later instructions or other steps";
    if (why != NULL) return not_straight(in->op, why, err);
  }
  for (uint32_t i = 0; plan->has_control && i < plan->n_outputs; i++)
    if (!is_certain(plan, plan->conditions.outputs[i]))
      return not_straight(plan->asked[i].op, "is fetched, but may have no value", err);
  return TN_OK;
}

/* ---- reading ---- */

void tn__plan_instruction(const tn_plan *plan, uint32_t i, tn_plan_instruction *out)
{
  const tn__plan_instr *in = &plan->instrs[i];
  const tn__plan_kernels *kernels = tn__instr_kernels(in);
  const tn_plan_instruction full = {
    .struct_size = sizeof full, .op = in->op, .kernel = kernels == NULL ? NULL : kernels->items[0].def,
    .state = kernels == NULL ? NULL : kernels->items[0].state, .traits = in->traits,
    .n_inputs = in->n_inputs, .n_outputs = in->n_outputs, .n_after = in->n_after,
    .inputs = tn__instr_inputs(plan, in), .outputs = tn__instr_outputs(plan, in), .after = tn__instr_after(plan, in),
  };
  tn__copy_sized(out, &full, sizeof full, out->struct_size);
}

tn_status tn_plan_get_instruction(const tn_plan *plan, size_t i, tn_plan_instruction *out, tn_error *err)
{
  tn__error_reset(err);
  if (out == NULL || out->struct_size < sizeof(size_t))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_plan_get_instruction: out is NULL or its struct_size is not set");
  if (i >= plan->n_instrs)
    return tn_error_set(err, TN_OUT_OF_RANGE, "instruction %zu is out of range, the plan has %u", i, plan->n_instrs);
  const tn__plan_instr *in = &plan->instrs[i];
  const char *why = unsaid(plan, in);
  if (why != NULL) return not_straight(in->op, why, err);
  tn__plan_instruction(plan, (uint32_t)i, out);
  return TN_OK;
}

tn_status tn_plan_get_value(const tn_plan *plan, size_t i, tn_plan_value *out, tn_error *err)
{
  tn__error_reset(err);
  if (out == NULL || out->struct_size < sizeof(size_t))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_plan_get_value: out is NULL or its struct_size is not set");
  if (i >= plan->n_values)
    return tn_error_set(err, TN_OUT_OF_RANGE, "value %zu is out of range, the plan has %u", i, plan->n_values);
  const tn__plan_value *v = &plan->values[i];
  tn_tensor *constant = v->constant;
  if (v->recipe != NULL) { /* callers that read plans also run them, so the plan keeps the elements from now on */
    tn_status st = tn__plan_lend_elements((tn_plan *)plan, (uint32_t)i, &constant, err);
    if (st != TN_OK) return st;
  }
  const tn_plan_value full = {
    .struct_size = sizeof full, .kind = v->kind, .dtype = v->dtype, .index = v->index, .producer = v->producer,
    .source = TN__NONE, .n_uses = v->n_uses, .constant = constant, .output = v->output,
  };
  tn__copy_sized(out, &full, sizeof full, out->struct_size);
  return TN_OK;
}

uint32_t tn_plan_output(const tn_plan *plan, size_t i) { return i < plan->n_outputs ? plan->outputs[i] : TN__NONE; }
