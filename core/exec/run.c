/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a plan for one step on the calling thread: segment after segment, each a tape of kernel calls. */
#include <core/exec/offload.h>
#include <core/exec/trace.h>

/* ---- entries ---- */

/* A value of an earlier segment. */
static const tn_view *earlier(const tn__run *run, uint32_t value)
{
  uint32_t slot;
  tn__instance *instance;
  return tn__run_view(run, value, &slot, &instance);
}

static void describe_entry(const tn__run *run, uint32_t value, tn__entry *e)
{
  const tn_tensor *t = tn__run_whole(run, value);
  const tn_view *v = t == NULL ? earlier(run, value) : NULL;
  *e = t != NULL ? (tn__entry){ .dims = t->dims, .rank = t->rank, .count = t->count, .data = t->data }
                 : (tn__entry){ .dims = v->dims, .rank = v->rank, .count = v->count, .data = v->data };
}

static bool same_shape(const tn__slot *slot, const int64_t *dims, int32_t rank)
{
  if (slot->rank != rank) return false;
  for (int32_t d = 0; d < rank; d++)
    if (slot->dims[d] != dims[d]) return false;
  return true;
}

static bool same_shapes(const tn__run *run, const tn__segment *s, const tn__instance *first)
{
  const tn__slot *slots = first->layout->slots;
  if (s->n_operands != 0) return false; /* values to compare: the long way */
  for (uint32_t i = 0; i < s->n_entries; i++) {
    const tn_tensor *t = tn__run_whole(run, s->entries[i]);
    const tn_view *v = t == NULL ? earlier(run, s->entries[i]) : NULL;
    if (!(t != NULL ? same_shape(&slots[i], t->dims, t->rank) : same_shape(&slots[i], v->dims, v->rank))) return false;
  }
  return true;
}

/* A layout that has to be made ends with the step that it is for. */
static tn_status find_instance(tn__run *run, uint32_t number)
{
  const tn__stop limits = tn__step_limits(run->step), *around = tn__stop_now;
  tn__stop_now = &limits;
  tn_status st = tn__instance_find(run->plan, run->workspace, number, run->workspace->entries, run->err);
  tn__stop_now = around;
  return st;
}

/* The segment's instance for this step stands in front of its list afterwards, with addresses in the arena. */
static tn_status take_instance(tn__run *run, uint32_t number, tn__instance **out)
{
  const tn__segment *s = &run->plan->segments[number];
  tn__workspace *w = run->workspace;
  tn_status st = TN_OK;
  if (w->instances[number] == NULL || !same_shapes(run, s, w->instances[number])) {
    for (uint32_t i = 0; i < s->n_entries; i++) describe_entry(run, s->entries[i], &w->entries[i]);
    st = find_instance(run, number);
  }
  if (__builtin_expect(run->offload != NULL, 0) && st == TN_OK) st = tn__offload_offer(run, w->instances[number]);
  if (st != TN_OK) return st;
  tn__instance *i = *out = w->instances[number];
  if (i->layout->arena_bytes > w->used) w->used = i->layout->arena_bytes;
  if (__builtin_expect(w->used > w->arena_bytes, 0)) {
    st = tn__workspace_reserve(w, w->used, tn__run_waits(run), run->err);
    if (st != TN_OK) w->used = 0; /* what the next step needs may be there */
  }
  if (st == TN_OK && i->arena != w->arena) tn__instance_bind_arena(i, w);
  return st;
}

static void bind_entries(const tn__run *run, const tn__segment *s, tn__instance *instance)
{
  for (uint32_t i = 0; i < s->n_entries; i++) {
    const tn_tensor *t = tn__run_whole(run, s->entries[i]);
    const tn_view *v = t == NULL ? earlier(run, s->entries[i]) : NULL;
    if (t != NULL) tn__bind_data(instance, i, t->data, t->buffer);
    else tn__bind_data(instance, i, v->data, v->buffer);
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
    if (s->store != TN_STORE_HEAP || s->root != slots[k] || s->dynamic || s->given) continue;
    tn_tensor *made;
    tn_status st = s->fetched ? tn__tensor_create_known(s->dtype, s->dims, s->rank, s->count, s->bytes, &made, call->ctx.err)
                              : tn__spare_tensor(call->run->workspace, s->dtype, s->dims, s->rank, s->count, s->bytes,
                                                 &made, call->ctx.err);
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
  for (uint32_t k = 0; k < t->n_outputs; k++) { /* S-RUN-26 */
    const tn__slot *s = &in->layout->slots[slots[k]];
    if ((s->dynamic || s->given) && in->heap[slots[k]] == NULL)
      return tn_error_set(call->ctx.err, TN_INTERNAL, "kernel '%s' returned OK without setting output %u",
                          tn__layout_kernel(in->layout, t->instr)->def->name, k);
  }
  return TN_OK;
}

static void give_back(tn__workspace *w, tn_tensor **place)
{
  tn_tensor *t = *place;
  *place = NULL;
  tn__spare_give(w, t);
}

void tn__slot_release(const tn__run *run, const tn__instance *in, uint32_t slot)
{
  const tn__slot *s = &in->layout->slots[slot];
  tn__workspace *w = run->workspace;
  give_back(w, s->store == TN_STORE_ENTRY ? &w->held[run->plan->values[s->value].held] : &in->heap[slot]);
}

static void release_heap(const tn__call *call)
{
  const tn__tape *t = call->tape;
  for (uint32_t k = 0; k < t->n_release; k++)
    tn__slot_release(call->run, call->instance, call->instance->layout->operands[t->release + k]);
}

/* Values that outlive their segment hold the memory that they show, whosever it is, by a reference each. */
static void hold_values(tn__run *run, const tn__instance *in)
{
  const tn__layout *l = in->layout;
  tn_tensor **held = run->workspace->held;
  for (uint32_t i = 0; i < l->n_holds; i++) {
    const tn__hold *h = &l->holds[i];
    held[h->held] = tn_tensor_ref(h->root != TN__NONE ? in->heap[h->root] : held[h->from]);
  }
  for (uint32_t i = 0; i < l->n_holds; i++) { /* theirs alone from now on */
    uint32_t root = l->holds[i].root;
    if (root == TN__NONE || in->heap[root] == NULL) continue;
    tn_tensor_unref(in->heap[root]);
    in->heap[root] = NULL;
  }
}

/* Where something may wait, segments in front of others in the order may yet have to read what they read. */
static void leave_entries(tn__run *run, const tn__segment *s)
{
  tn__workspace *w = run->workspace;
  for (uint32_t i = 0; i < s->n_entries; i++) {
    const tn__plan_value *v = &run->plan->values[s->entries[i]];
    if (v->kind == TN_VALUE_COMPUTED && v->held != TN__NONE && --w->readers_left[v->held] == 0) give_back(w, &w->held[v->held]);
  }
}

void tn__segment_release(tn__run *run, const tn__segment *s)
{
  if (run->plan->has_waits) {
    leave_entries(run, s);
    return;
  }
  for (uint32_t i = 0; i < s->n_ends; i++) give_back(run->workspace, &run->workspace->held[s->ends[i]]);
}

void tn__segment_end(tn__run *run, uint32_t number)
{
  const tn__segment *s = &run->plan->segments[number];
  const tn__instance *in = run->workspace->instances[number];
  const tn__layout *l = in->layout;
  for (uint32_t i = 0; i < s->n_predicates; i++) {
    const tn_view *v = &in->views[l->predicates[2 * i]];
    run->workspace->predicates[l->predicates[2 * i + 1]] = v->count == 1 ? *(const uint8_t *)v->data != 0 : TN__NO_SCALAR;
  }
  if (l->n_holds > 0) hold_values(run, in);
  if (s->n_ends > 0 || run->plan->has_waits) tn__segment_release(run, s);
}

/* What is left of a step, more after an error. */
void tn__run_drop(tn__run *run)
{
  for (uint32_t i = 0; i < run->plan->n_held; i++) give_back(run->workspace, &run->workspace->held[i]);
  for (uint32_t i = 0; i < run->plan->n_segments; i++) {
    const tn__instance *in = run->workspace->instances[i];
    for (uint32_t k = 0; in != NULL && k < in->layout->n_heaps; k++) give_back(run->workspace, &in->heap[in->layout->heaps[k]]);
  }
}

/* ---- the tape ---- */

static tn_status failed(tn__call *call, tn_status st)
{
  const tn__plan_instr *instr = &call->run->plan->instrs[call->tape->instr];
  const tn_kernel_def *kernel = tn__layout_kernel(call->instance->layout, call->tape->instr)->def;
  tn_error *err = call->ctx.err;
  if (tn__step_failed(call->run->step)) return st; /* the first error was told (S-CAN-01) */
  int why = tn__step_stop(call->run->step);
  if (st == TN_CANCELLED && why != TN__GO_ON) { /* the kernel noticed: the first cause is reported (S-CAN-05, -07) */
    tn_error_clear(err);
    return tn__step_stopped(why, instr->op, err);
  }
  if (st == TN_PENDING)
    st = tn_error_set(err, TN_INTERNAL, "kernel '%s' waits, which its op does not say", kernel->name);
  return tn__kernel_status(instr->op, kernel, "compute", st, err);
}

tn_status tn__guest_compute(tn__call *call, const tn__layout *layout)
{
  const tn__tape *t = call->tape;
  tn__plugin_call calling = tn__kernel_call(tn__layout_kernel(layout, t->instr), layout->plan->instrs[t->instr].op, "compute of a kernel");
  tn__plugin_call_enter(&calling);
  tn_status st = t->compute(&call->ctx);
  tn__plugin_call_leave(&calling);
  return st;
}

static tn_status slow_call(tn__call *call)
{
  const tn__tape *t = call->tape;
  tn_status st = t->flags & TN_TAPE_HEAP ? make_heap(call) : TN_OK;
  if (st == TN_OK) st = tn__call_compute(call, call->instance->layout);
  if (st == TN_OK && (t->flags & TN_TAPE_DYNAMIC)) st = check_dynamic(call);
  if (st == TN_OK && (t->flags & TN_TAPE_RELEASE)) release_heap(call);
  return st;
}

static inline void set_call(tn__call *call, const tn__instance *instance, const tn__tape *t)
{
  call->tape = t;
  call->ctx.state = t->state;
  call->ctx.shape_state = t->shape_state;
  call->ctx.scratch = tn__somewhere(tn__arena_at(instance, t->scratch));
  call->ctx.inputs = instance->operands + t->operands;
  call->ctx.outputs = call->ctx.inputs + t->n_inputs;
  call->ctx.n_inputs = t->n_inputs;
  call->ctx.n_outputs = t->n_outputs;
}

/* The node that ran just before this call, when it is what took so long. */
static const tn_operation *late(const tn__run *run, const tn__layout *layout, const tn__tape *t)
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
  call.ctx.err = run->err;
  tn_status st = TN_OK;
  for (const tn__tape *t = layout->tape, *end = t + layout->n_tape; t != end; t++) {
    int why = tn__step_stop(step);
    if (__builtin_expect(why != TN__GO_ON, 0)) {
      st = tn__step_stopped(why, late(run, layout, t), run->err);
      break;
    }
    set_call(&call, instance, t);
    st = __builtin_expect(t->flags == 0, 1) ? t->compute(&call.ctx) : slow_call(&call);
    if (__builtin_expect(st != TN_OK, 0)) {
      st = failed(&call, st);
      break;
    }
    if (__builtin_expect(call.ctx.err->code != TN_OK, 0)) tn_error_clear(call.ctx.err); /* it went on all the same */
  }
  int why = st == TN_OK ? tn__step_stop(step) : TN__GO_ON; /* the last loop may have been cut short */
  if (__builtin_expect(why != TN__GO_ON, 0))
    st = tn__step_stopped(why, late(run, layout, layout->tape + layout->n_tape), run->err);
  return st;
}

/* One call, which the trace is told of before anything that it read goes. */
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

/* run_tape, slower, with a trace; apart, so that the other one keeps its registers. */
__attribute__((noinline, cold)) static tn_status run_tape_traced(tn__run *run, uint32_t number, tn__instance *instance, tn__trace *trace)
{
  const tn__layout *l = instance->layout;
  tn__call call = { .ctx = { .struct_size = sizeof call.ctx, .step = run->step, .err = run->err }, .run = run, .instance = instance };
  tn_status st = TN_OK;
  uint32_t next = run->plan->segments[number].begin;
  for (const tn__tape *t = l->tape; st == TN_OK && t != l->tape + l->n_tape; t++) {
    int why = tn__step_stop(run->step);
    if (why != TN__GO_ON) return tn__step_stopped(why, late(run, l, t), run->err);
    tn__trace_empty(trace, run, instance, next, t->instr);
    next = t->instr + 1;
    set_call(&call, instance, t);
    st = traced_call(&call, trace);
    if (st != TN_OK) return failed(&call, st);
    tn_error_clear(run->err);
  }
  tn__trace_empty(trace, run, instance, next, run->plan->segments[number].end);
  int why = tn__step_stop(run->step);
  return why == TN__GO_ON ? TN_OK : tn__step_stopped(why, late(run, l, l->tape + l->n_tape), run->err);
}

/* Calls that a runtime runs at once: memory for all of them is made before, and given back after. */
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
  if (st != TN_OK) return failed(call, st);
  st = tn__offload_run(run, call->instance, part);
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
  tn__call call = { .ctx = { .struct_size = sizeof call.ctx, .step = run->step, .err = run->err }, .run = run, .instance = instance };
  uint32_t next = run->plan->segments[number].begin;
  tn_status st = TN_OK;
  for (uint32_t t = 0; st == TN_OK && t < l->n_tape;) {
    int why = tn__step_stop(run->step);
    if (why != TN__GO_ON) return tn__step_stopped(why, late(run, l, l->tape + t), run->err);
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
  return why == TN__GO_ON ? TN_OK : tn__step_stopped(why, late(run, l, l->tape + l->n_tape), run->err);
}

tn_status tn__segment_begin(tn__run *run, uint32_t number, tn__instance **out)
{
  tn_status st = take_instance(run, number, out);
  if (st != TN_OK) return st;
  run->cost_ns += (*out)->layout->cost_ns;
  bind_entries(run, &run->plan->segments[number], *out);
  return (*out)->layout->has_outputs ? tn__outputs_bind(run, *out) : TN_OK;
}

static tn_status run_in_order(tn__run *run, uint32_t number, tn__instance *instance)
{
  if (__builtin_expect(run->offload != NULL, 0) && tn__offload_takes(run, instance)) return run_tape_offloaded(run, number, instance);
  tn__trace *trace = tn__step_trace(run->step);
  return __builtin_expect(trace == NULL, 1) ? run_tape(run, instance) : run_tape_traced(run, number, instance, trace);
}

tn_status tn__segment_tape(tn__run *run, uint32_t number, tn__instance *instance)
{
  if (__builtin_expect(instance->layout->tasks != NULL, 0) && !tn__offload_takes(run, instance))
    return tn__tasks_tape(run, number, instance, run_in_order);
  return run_in_order(run, number, instance);
}

/* One call of a task: what it read last is for its caller to release. */
tn_status tn__tape_call(tn__call *call, const tn__tape *t, tn__trace *trace)
{
  set_call(call, call->instance, t);
  int64_t began = trace == NULL ? 0 : tn__now_ns();
  tn_status st = t->flags & TN_TAPE_HEAP ? make_heap(call) : TN_OK;
  if (st == TN_OK) st = tn__call_compute(call, call->instance->layout);
  if (st == TN_OK && (t->flags & TN_TAPE_DYNAMIC)) st = check_dynamic(call);
  if (trace != NULL) tn__trace_call(trace, call, began, false, st);
  return st == TN_OK ? st : failed(call, st);
}

tn_status tn__segment_run(tn__run *run, uint32_t number)
{
  tn__instance *instance;
  tn_status st = tn__segment_begin(run, number, &instance);
  if (st == TN_OK) st = tn__segment_tape(run, number, instance);
  if (st == TN_OK) tn__segment_end(run, number);
  return st;
}

/* The one call of a segment that may wait. */
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
  return st == TN_OK ? st : failed(call, st);
}

static tn_status run_plan(tn_plan *plan, tn_step *step, tn_error *err)
{
  tn__run run = { .plan = plan, .step = step, .err = err, .again = step->again,
                  .offload = step->env == NULL ? NULL : step->env->offload };
  run.workspace = tn__workspace_take(plan, err);
  if (run.workspace == NULL) return TN_RESOURCE_EXHAUSTED;
  tn_status st = TN_OK;
  if (plan->has_control) {
    tn__run_controlled_reset(&run);
    st = tn__run_controlled(&run);
  } else {
    for (uint32_t i = 0; st == TN_OK && i < plan->n_segments; i++) st = tn__segment_run(&run, i);
  }
  if (st == TN_OK) st = tn__outputs_finish(&run);
  if (st != TN_OK) tn__limit_explain(&run, st);
  if (st != TN_OK) tn__outputs_drop(&run);
  tn__run_drop(&run);
  if (st == TN_RESOURCE_EXHAUSTED && tn__account_now != NULL) tn__spare_drop(run.workspace);
  tn__workspace_put(plan, run.workspace);
  if (__builtin_expect(atomic_load_explicit(&plan->may_upgrade, memory_order_relaxed), 0)) tn__plan_note_cost(plan, run.cost_ns);
  return st;
}

/* Kernels always have an error object, also those that wait and are called again: one for the whole step. */
tn_status tn__run_plan(tn_plan *plan, tn_step *step, tn_error *err)
{
  int why = tn__step_stop(step);
  if (why != TN__GO_ON) return tn__step_stopped(why, NULL, err);
  if (err != NULL) return run_plan(plan, step, err);
  tn_error unheard = TN_ERROR_INIT;
  tn_status st = run_plan(plan, step, &unheard);
  tn_error_clear(&unheard);
  return st;
}
