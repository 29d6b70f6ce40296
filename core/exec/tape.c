/* SPDX-License-Identifier: Apache-2.0 */
/* The tape of a segment: the loops that call its kernels one after the other, each call with its
 * heap values.
 *
 * There are four loops, since the usual one has to be short: run_tape; run_tape_traced;
 * run_tape_offloaded, with parts that a runtime runs; and tn__job_compute in tasks.c, for one task.
 * All of them check the step's stop conditions before each call. The tape is checked once more at
 * its end: a kernel's loop may have been cut short by a stop, and then its outputs are incomplete
 * although it returned TN_OK. */
#include <core/exec/compute.h>
#include <core/exec/step/env.h>
#include <core/exec/segment.h>
#include <core/exec/step/trace.h>

/* ---- heap values ---- */

/* Allocates this call's outputs on the heap, before it computes. Outputs that the kernel allocates
 * itself (dynamic or given ones) and views of other slots are skipped. A fetched output will be the
 * program's, so it gets an allocation of its exact size; the others may reuse spares. */
static tn_status make_heap(tn__call *call)
{
  tn__instance *in = call->instance;
  const tn__tape *t = call->tape;
  const uint32_t *slots = in->layout->operands + t->operands + t->n_inputs;
  for (uint32_t k = 0; k < t->n_outputs; k++) {
    const tn__slot *s = &in->layout->slots[slots[k]];
    if (s->store != TN_STORE_HEAP || s->root != slots[k] || s->dynamic || s->given) continue;
    tn_tensor *made;
    tn_status st = s->fetched
                       ? tn__tensor_create_known(s->dtype, s->dims, s->rank, s->count, s->bytes, &made, call->ctx.err)
                       : tn__spare_tensor(call->run->workspace, s->dtype, s->dims, s->rank, s->count, s->bytes, &made,
                                          call->ctx.err);
    if (st != TN_OK) return st;
    in->heap[slots[k]] = made;
    tn__bind_data(in, slots[k], made->data, made->buffer);
  }
  return TN_OK;
}

/* A kernel that returned TN_OK must have set each output that it allocates itself. */
static tn_status check_dynamic(tn__call *call)
{
  tn__instance *in = call->instance;
  const tn__tape *t = call->tape;
  const uint32_t *slots = in->layout->operands + t->operands + t->n_inputs;
  for (uint32_t k = 0; k < t->n_outputs; k++) { /* S-RUN-26 */
    const tn__slot *s = &in->layout->slots[slots[k]];
    if ((s->dynamic || s->given) && in->heap[slots[k]] == NULL)
      return tn_error_set(call->ctx.err, TN_INTERNAL, "kernel '%s' returned OK without setting output %u",
                          tn__layout_kernel(in->layout, t->instr)->def->name, k);
  }
  return TN_OK;
}

void tn__slot_release(const tn__run *run, const tn__instance *in, uint32_t slot)
{
  const tn__slot *s = &in->layout->slots[slot];
  tn__workspace *w = run->workspace;
  tn__spare_give_from(w, s->store == TN_STORE_ENTRY ? &w->held[run->plan->values[s->value].held] : &in->heap[slot]);
}

/* Releases the values that this call is the last to read. */
static void release_heap(const tn__call *call)
{
  const tn__tape *t = call->tape;
  for (uint32_t k = 0; k < t->n_release; k++)
    tn__slot_release(call->run, call->instance, call->instance->layout->operands[t->release + k]);
}

/* ---- the tape ---- */

/* The status and error of the step after a call that did not return TN_OK. */
static tn_status call_failed(tn__call *call, tn_status st)
{
  const tn__plan_instr *instr = &call->run->plan->instrs[call->tape->instr];
  const tn_kernel_def *kernel = tn__layout_kernel(call->instance->layout, call->tape->instr)->def;
  tn_error *err = call->ctx.err;
  if (tn__step_failed(call->run->step)) return st; /* the first error has been reported (S-CAN-01) */
  int why = tn__step_stop(call->run->step);
  if (st == TN_CANCELLED && why != TN__GO_ON) { /* it noticed the stop; report the first cause (S-CAN-05, -07) */
    tn_error_clear(err);
    return tn__step_stopped(why, instr->op, err);
  }
  if (st == TN_PENDING)
    st = tn_error_set(err, TN_INTERNAL, "kernel '%s' returned TN_PENDING, but its op lacks TN_TRAIT_MAY_WAIT",
                      kernel->name);
  return tn__kernel_status(instr->op, kernel, "compute", st, err);
}

tn_status tn__guest_compute(tn__call *call, const tn__layout *layout)
{
  const tn__tape *t = call->tape;
  tn__plugin_call calling =
      tn__kernel_call(tn__layout_kernel(layout, t->instr), layout->plan->instrs[t->instr].op, "compute of a kernel");
  tn__plugin_call_enter(&calling);
  tn_status st = t->compute(&call->ctx);
  tn__plugin_call_leave(&calling);
  return st;
}

/* A call with any flag set: heap outputs, releases, or a plugin's kernel. */
static tn_status slow_call(tn__call *call)
{
  const tn__tape *t = call->tape;
  tn_status st = t->flags & TN_TAPE_HEAP ? make_heap(call) : TN_OK;
  if (st == TN_OK) st = tn__call_compute(call, call->instance->layout);
  if (st == TN_OK && (t->flags & TN_TAPE_DYNAMIC)) st = check_dynamic(call);
  if (st == TN_OK && (t->flags & TN_TAPE_RELEASE)) release_heap(call);
  return st;
}

/* Points the context at another call of the same tape. */
static inline void set_call(tn__call *call, const tn__instance *instance, const tn__tape *t)
{
  call->tape = t;
  call->ctx.state = t->state;
  call->ctx.shape_state = t->shape_state;
  call->ctx.scratch = tn__non_null(tn__arena_at(instance, t->scratch));
  call->ctx.inputs = instance->operands + t->operands;
  call->ctx.outputs = call->ctx.inputs + t->n_inputs;
  call->ctx.n_inputs = t->n_inputs;
  call->ctx.n_outputs = t->n_outputs;
}

/* The node that ran just before this call: the stop was noticed after it. */
static const tn_operation *late_op(const tn__run *run, const tn__layout *layout, const tn__tape *t)
{
  return t == layout->tape ? run->op : run->plan->instrs[t[-1].instr].op;
}

static tn_status run_tape(tn__run *run, tn__instance *instance)
{
  const tn__layout *layout = instance->layout;
  const tn_step *step = run->step;
  tn__call call = { .run = run, .instance = instance };
  call.ctx.struct_size = sizeof call.ctx;
  call.ctx.step = run->step;
  call.ctx.reproducible = run->plan->settings.reproducible;
  call.ctx.err = run->err;
  tn_status st = TN_OK;
  for (const tn__tape *t = layout->tape, *end = t + layout->n_tape; t != end; t++) {
    int why = tn__step_stop(step);
    if (__builtin_expect(why != TN__GO_ON, 0)) {
      st = tn__step_stopped(why, late_op(run, layout, t), run->err);
      break;
    }
    set_call(&call, instance, t);
    st = __builtin_expect(t->flags == 0, 1) ? t->compute(&call.ctx) : slow_call(&call);
    if (__builtin_expect(st != TN_OK, 0)) {
      st = call_failed(&call, st);
      break;
    }
    if (__builtin_expect(call.ctx.err->code != TN_OK, 0))
      tn_error_clear(call.ctx.err); /* the kernel set an error but returned TN_OK: discard the text */
  }
  int why = st == TN_OK ? tn__step_stop(step) : TN__GO_ON; /* the last kernel's loop may have been cut short */
  if (__builtin_expect(why != TN__GO_ON, 0))
    st = tn__step_stopped(why, late_op(run, layout, layout->tape + layout->n_tape), run->err);
  return st;
}

/* One call. It is recorded before the values that it reads last are released, since their shapes
 * are recorded. */
static tn_status traced_call(tn__call *call, tn__trace *trace)
{
  const tn__tape *t = call->tape;
  int64_t began = tn__now_ns();
  tn_status st = t->flags & TN_TAPE_HEAP ? make_heap(call) : TN_OK;
  if (st == TN_OK) st = tn__call_compute(call, call->instance->layout);
  if (st == TN_OK && (t->flags & TN_TAPE_DYNAMIC)) st = check_dynamic(call);
  tn__trace_call(trace, call, began, false, st);
  if (st == TN_OK && (t->flags & TN_TAPE_RELEASE)) release_heap(call);
  return st;
}

/* run_tape with a trace. A function of its own, so that run_tape keeps its variables in registers. */
__attribute__((noinline, cold)) static tn_status run_tape_traced(tn__run *run, uint32_t number, tn__instance *instance,
                                                                 tn__trace *trace)
{
  const tn__layout *l = instance->layout;
  tn__call call = { .ctx = { .struct_size = sizeof call.ctx, .step = run->step, .err = run->err,
                             .reproducible = run->plan->settings.reproducible },
                    .run = run,
                    .instance = instance };
  tn_status st = TN_OK;
  uint32_t next = run->plan->segments[number].begin;
  for (const tn__tape *t = l->tape; st == TN_OK && t != l->tape + l->n_tape; t++) {
    int why = tn__step_stop(run->step);
    if (why != TN__GO_ON) return tn__step_stopped(why, late_op(run, l, t), run->err);
    tn__trace_empty(trace, run, instance, next, t->instr);
    next = t->instr + 1;
    set_call(&call, instance, t);
    st = traced_call(&call, trace);
    if (st != TN_OK) return call_failed(&call, st);
    tn_error_clear(run->err);
  }
  tn__trace_empty(trace, run, instance, next, run->plan->segments[number].end);
  int why = tn__step_stop(run->step);
  return why == TN__GO_ON ? TN_OK : tn__step_stopped(why, late_op(run, l, l->tape + l->n_tape), run->err);
}

/* Calls that a runtime runs as one part. The heap values of all of them are allocated before it and
 * released after it, since the runtime runs the part as a whole. */
static tn_status run_part(tn__call *call, const tn__part *part)
{
  tn__run *run = call->run;
  const tn__tape *tape = call->instance->layout->tape;
  tn__trace *trace = tn__step_trace(run->step);
  tn_status st = TN_OK;
  for (uint32_t t = part->first; st == TN_OK && t < part->last; t++) {
    call->tape = &tape[t];
    if (tape[t].flags & TN_TAPE_HEAP) st = make_heap(call);
  }
  if (st != TN_OK) return call_failed(call, st);
  st = run->offload->run(run, call->instance, part);
  for (uint32_t t = part->first; trace != NULL && st == TN_OK && t + 1 < part->last; t++)
    tn__trace_empty(trace, run, call->instance, tape[t].instr + 1, tape[t + 1].instr);
  for (uint32_t t = part->first; st == TN_OK && t < part->last; t++) {
    call->tape = &tape[t];
    if (tape[t].flags & TN_TAPE_RELEASE) release_heap(call);
  }
  return st;
}

/* run_tape, or run_tape_traced, with parts that a runtime runs. */
__attribute__((noinline)) static tn_status run_tape_offloaded(tn__run *run, uint32_t number, tn__instance *instance)
{
  const tn__layout *l = instance->layout;
  const tn__part *part = instance->offloaded->parts, *last = part + instance->offloaded->n_parts;
  tn__trace *trace = tn__step_trace(run->step);
  tn__call call = { .ctx = { .struct_size = sizeof call.ctx, .step = run->step, .err = run->err,
                             .reproducible = run->plan->settings.reproducible },
                    .run = run,
                    .instance = instance };
  uint32_t next = run->plan->segments[number].begin;
  tn_status st = TN_OK;
  for (uint32_t t = 0; st == TN_OK && t < l->n_tape;) {
    int why = tn__step_stop(run->step);
    if (why != TN__GO_ON) return tn__step_stopped(why, late_op(run, l, l->tape + t), run->err);
    while (part != last && (part->handle == NULL || part->first < t)) part++;
    bool is_part = part != last && part->first == t;
    if (trace != NULL) tn__trace_empty(trace, run, instance, next, l->tape[t].instr);
    if (is_part) st = run_part(&call, part);
    else st = tn__tape_call(&call, &l->tape[t], trace);
    if (st == TN_OK && !is_part && (l->tape[t].flags & TN_TAPE_RELEASE)) release_heap(&call);
    t = is_part ? part->last : t + 1;
    next = l->tape[t - 1].instr + 1;
    if (st == TN_OK) tn_error_clear(run->err);
  }
  if (st != TN_OK) return st;
  if (trace != NULL) tn__trace_empty(trace, run, instance, next, run->plan->segments[number].end);
  int why = tn__step_stop(run->step);
  return why == TN__GO_ON ? TN_OK : tn__step_stopped(why, late_op(run, l, l->tape + l->n_tape), run->err);
}

tn_status tn__tape_run(tn__run *run, uint32_t number, tn__instance *instance)
{
  if (__builtin_expect(run->offload != NULL, 0) && tn__offload_takes(run, instance))
    return run_tape_offloaded(run, number, instance);
  tn__trace *trace = tn__step_trace(run->step);
  return __builtin_expect(trace == NULL, 1) ? run_tape(run, instance) : run_tape_traced(run, number, instance, trace);
}

tn_status tn__tape_call(tn__call *call, const tn__tape *t, tn__trace *trace)
{
  set_call(call, call->instance, t);
  int64_t began = trace == NULL ? 0 : tn__now_ns();
  tn_status st = t->flags & TN_TAPE_HEAP ? make_heap(call) : TN_OK;
  if (st == TN_OK) st = tn__call_compute(call, call->instance->layout);
  if (st == TN_OK && (t->flags & TN_TAPE_DYNAMIC)) st = check_dynamic(call);
  if (trace != NULL) tn__trace_call(trace, call, began, false, st);
  return st == TN_OK ? st : call_failed(call, st);
}

/* The arena may have been replaced while the call waited. Heap outputs are allocated only before
 * the first call, not when it resumes. */
tn_status tn__segment_call(tn__call *call)
{
  tn__instance *in = call->instance;
  const tn__tape *t = call->tape;
  if (in->arena != call->run->workspace->arena) tn__instance_bind_arena(in, call->run->workspace);
  set_call(call, in, t);
  if (__builtin_expect(tn__step_trace(call->run->step) != NULL, 0)) tn__call_began(call);
  tn_status st = (t->flags & TN_TAPE_HEAP) && !call->ctx.resume ? make_heap(call) : TN_OK;
  if (st == TN_OK) st = tn__call_compute(call, call->instance->layout);
  if (st == TN_PENDING) return st;
  if (st == TN_OK && (t->flags & TN_TAPE_DYNAMIC)) st = check_dynamic(call);
  tn__trace *trace = tn__step_trace(call->run->step);
  if (__builtin_expect(trace != NULL, 0)) tn__trace_call(trace, call, tn__call_began(call), call->ctx.resume != 0, st);
  if (st == TN_OK && (t->flags & TN_TAPE_RELEASE)) release_heap(call);
  return st == TN_OK ? st : call_failed(call, st);
}
