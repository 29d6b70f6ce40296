/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a plan for one step on the calling thread: segment after segment, each a tape of kernel calls. */
#include <core/exec/exec.h>

#define STACK_ENTRIES 32

tn_status tn__step_stopped(const tn_step *step, int why, tn_error *err)
{
  if (why == TN__STOP_DEADLINE)
    return tn_error_set(err, TN_DEADLINE_EXCEEDED, "step %llu did not end in its time limit",
                        (unsigned long long)step->id);
  if (why == TN__STOP_CLOSED) return tn_error_set(err, TN_CANCELLED, "session has been closed");
  return tn_error_set(err, TN_CANCELLED, "step %llu was cancelled", (unsigned long long)step->id);
}

/* ---- entries ---- */

static void describe_entry(const tn__run *run, uint32_t value, tn__entry *e, tn_view *feed)
{
  const tn__plan_value *v = &run->plan->values[value];
  const tn_view *from = feed;
  if (v->kind == TN_VALUE_FEED) {
    const tn_tensor *t = run->step->inputs[v->index];
    *feed = (tn_view){ .data = t->data, .dims = t->dims, .count = t->count, .dtype = t->dtype, .rank = t->rank,
                       .buffer = t->buffer };
  } else {
    uint32_t slot;
    tn__instance *instance;
    from = tn__run_view(run, value, &slot, &instance);
    *feed = *from;
  }
  *e = (tn__entry){ .dims = from->dims, .rank = from->rank, .count = from->count, .data = from->data };
}

static bool hot_fits(const tn__run *run, const tn__segment *s, const tn__instance *hot)
{
  const tn__slot *slots = hot->layout->slots;
  if (s->n_operands != 0) return false; /* values to compare: the long way */
  for (uint32_t i = 0; i < s->n_entries; i++) {
    tn__entry e;
    tn_view v;
    describe_entry(run, s->entries[i], &e, &v);
    if (slots[i].rank != e.rank) return false;
    for (int32_t d = 0; d < e.rank; d++)
      if (slots[i].dims[d] != e.dims[d]) return false;
  }
  return true;
}

static tn_status take_cold(tn__run *run, tn__segment *s, tn__instance *hot, tn__instance **out)
{
  tn__entry fixed[STACK_ENTRIES], *entries = fixed;
  tn_view unused;
  if (s->n_entries > STACK_ENTRIES) {
    entries = tn__alloc_array(s->n_entries, sizeof *entries);
    if (entries == NULL) return tn__no_memory(run->err, "entries of a step", s->n_entries * sizeof *entries);
  }
  for (uint32_t i = 0; i < s->n_entries; i++) describe_entry(run, s->entries[i], &entries[i], &unused);
  tn_status st = TN_OK;
  if (hot != NULL && tn__layout_fits(run->plan, hot->layout, entries)) {
    *out = hot;
  } else {
    if (hot != NULL) tn__instance_put(run->plan, s, hot);
    st = tn__instance_take(run->plan, s, entries, out, run->err);
  }
  if (entries != fixed) tn__free(entries, s->n_entries * sizeof *entries);
  return st;
}

static tn_status take_instance(tn__run *run, tn__segment *s, tn__instance **out)
{
  tn__instance *hot = atomic_exchange_explicit(&s->hot, NULL, memory_order_acq_rel);
  if (hot != NULL && hot_fits(run, s, hot)) {
    *out = hot;
    return TN_OK;
  }
  return take_cold(run, s, hot, out);
}

static void bind_entries(const tn__run *run, const tn__segment *s, tn__instance *instance)
{
  for (uint32_t i = 0; i < s->n_entries; i++) {
    tn__entry e;
    tn_view v;
    describe_entry(run, s->entries[i], &e, &v);
    tn__bind_data(instance, i, v.data, v.buffer);
  }
}

/* ---- heap values ---- */

static tn_status make_heap(tn__call *call)
{
  tn__instance *in = call->instance;
  const tn__tape *t = call->tape;
  const uint32_t *slots = in->layout->operands + t->operands + t->n_inputs;
  for (uint32_t k = 0; k < t->n_outputs; k++) {
    const tn__slot *s = &in->layout->slots[slots[k]];
    if (s->store != TN_STORE_HEAP || s->root != slots[k] || s->dynamic) continue;
    tn_tensor *made;
    tn_status st = tn_tensor_create(s->dtype, s->dims, s->rank, &made, call->ctx.err);
    if (st != TN_OK) return st;
    in->heap[slots[k]] = made;
    tn__bind_data(in, slots[k], made->data, made->buffer);
  }
  return TN_OK;
}

static tn_status check_dynamic(tn__call *call)
{
  tn__instance *in = call->instance;
  const tn__tape *t = call->tape;
  const uint32_t *slots = in->layout->operands + t->operands + t->n_inputs;
  for (uint32_t k = 0; k < t->n_outputs; k++) /* S-RUN-26 */
    if (in->layout->slots[slots[k]].dynamic && in->heap[slots[k]] == NULL)
      return tn_error_set(call->ctx.err, TN_INTERNAL, "kernel '%s' returned OK without setting output %u",
                          tn__layout_kernel(in->layout, t->instr)->def->name, k);
  return TN_OK;
}

static void release_heap(tn__instance *in, const tn__tape *t)
{
  for (uint32_t k = 0; k < t->n_release; k++) {
    uint32_t slot = in->layout->operands[t->release + k];
    tn_tensor_unref(in->heap[slot]);
    in->heap[slot] = NULL;
  }
}

static void drop_heap(tn__instance *in)
{
  if (in->heap == NULL) return;
  for (uint32_t s = 0; s < in->layout->n_slots; s++) {
    tn_tensor_unref(in->heap[s]);
    in->heap[s] = NULL;
  }
}

/* ---- the tape ---- */

static tn_status failed(tn__call *call, tn_status st)
{
  const tn__plan_instr *instr = &call->run->plan->instrs[call->tape->instr];
  const tn_kernel_def *kernel = tn__layout_kernel(call->instance->layout, call->tape->instr)->def;
  tn_error *err = call->ctx.err;
  int why = tn__step_stop(call->run->step);
  if (st == TN_CANCELLED && why != TN__GO_ON) { /* the kernel noticed: the first cause is reported (S-CAN-05, -07) */
    tn_error_clear(err);
    return tn__step_stopped(call->run->step, why, err);
  }
  if (st == TN_PENDING)
    st = tn_error_set(err, TN_INTERNAL, "kernel '%s' waits, which this version does not support", kernel->name);
  return tn__kernel_status(instr->op, kernel, "compute", st, err);
}

static tn_status slow_call(tn__call *call)
{
  const tn__tape *t = call->tape;
  tn_status st = t->flags & TN_TAPE_HEAP ? make_heap(call) : TN_OK;
  if (st == TN_OK) st = t->compute(&call->ctx);
  if (st == TN_OK && (t->flags & TN_TAPE_DYNAMIC)) st = check_dynamic(call);
  if (st == TN_OK && (t->flags & TN_TAPE_RELEASE)) release_heap(call->instance, t);
  return st;
}

static tn_status run_tape(tn__run *run, tn__instance *instance)
{
  const tn__layout *layout = instance->layout;
  const tn_step *step = run->step;
  tn_error local = TN_ERROR_INIT;
  tn__call call = { .run = run, .instance = instance };
  call.ctx.struct_size = sizeof call.ctx;
  call.ctx.step = run->step;
  call.ctx.err = run->err != NULL ? run->err : &local;
  tn_status st = TN_OK;
  for (const tn__tape *t = layout->tape, *end = t + layout->n_tape; t != end; t++) {
    int why = tn__step_stop(step);
    if (__builtin_expect(why != TN__GO_ON, 0)) {
      st = tn__step_stopped(step, why, run->err);
      break;
    }
    call.tape = t;
    call.ctx.state = t->state;
    call.ctx.shape_state = t->shape_state;
    call.ctx.scratch = tn__somewhere(tn__arena_at(instance, t->scratch));
    call.ctx.inputs = instance->operands + t->operands;
    call.ctx.outputs = call.ctx.inputs + t->n_inputs;
    call.ctx.n_inputs = t->n_inputs;
    call.ctx.n_outputs = t->n_outputs;
    st = __builtin_expect(t->flags == 0, 1) ? t->compute(&call.ctx) : slow_call(&call);
    if (__builtin_expect(st != TN_OK, 0)) {
      st = failed(&call, st);
      break;
    }
    if (__builtin_expect(call.ctx.err->code != TN_OK, 0)) tn_error_clear(call.ctx.err); /* it went on all the same */
  }
  tn_error_clear(&local);
  return st;
}

static tn_status run_segment(tn__run *run, uint32_t number)
{
  tn__segment *s = &run->plan->segments[number];
  tn_status st = take_instance(run, s, &run->instances[number]);
  if (st != TN_OK) return st;
  tn__instance *instance = run->instances[number];
  bind_entries(run, s, instance);
  if (instance->layout->has_outputs) st = tn__outputs_bind(run, instance);
  if (st == TN_OK) st = run_tape(run, instance);
  return st;
}

tn_status tn__run_plan(tn_plan *plan, tn_step *step, tn_error *err)
{
  tn__instance *one = NULL;
  tn__run run = { .plan = plan, .step = step, .instances = &one, .err = err };
  if (plan->n_segments > 1) {
    run.instances = tn__alloc_array(plan->n_segments, sizeof *run.instances);
    if (run.instances == NULL) return tn__no_memory(err, "segments of a step", plan->n_segments * sizeof *run.instances);
  }
  int why = tn__step_stop(step);
  tn_status st = why == TN__GO_ON ? TN_OK : tn__step_stopped(step, why, err);
  for (uint32_t i = 0; st == TN_OK && i < plan->n_segments; i++) st = run_segment(&run, i);
  if (st == TN_OK) st = tn__outputs_finish(&run);
  if (st != TN_OK) tn__outputs_drop(&run);
  double cost_ns = 0;
  for (uint32_t i = 0; i < plan->n_segments; i++) {
    if (run.instances[i] == NULL) continue;
    cost_ns += run.instances[i]->layout->cost_ns;
    drop_heap(run.instances[i]);
    tn__instance_put(plan, &plan->segments[i], run.instances[i]);
  }
  if (plan->n_segments > 1) tn__free(run.instances, plan->n_segments * sizeof *run.instances);
  if (__builtin_expect(atomic_load_explicit(&plan->may_upgrade, memory_order_relaxed), 0)) tn__plan_note_cost(plan, cost_ns);
  return st;
}
