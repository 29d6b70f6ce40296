/* SPDX-License-Identifier: Apache-2.0 */
/* Segments under conditions: branches, loops, calls that may wait.
 *
 * Segments are visited in the order of the plan, in which a segment follows those that decide its
 * context. So one pass is enough, unless a call waits or the run is partial. A call that returns
 * TN_PENDING leaves its segment in the state WAITING; it is resumed in a later pass, once its token
 * is woken. After a pass without progress the step sleeps (tn__sleep), or returns TN_PENDING if it
 * is an inner or a partial run.
 *
 * When a step fails, no new segment begins, waiting calls are cancelled, and passes continue until
 * all of them have returned: their kernels may still write to the step's memory. */
#include <core/exec/call.h>
#include <core/exec/control.h>
#include <core/exec/loop.h>
#include <core/exec/segment.h>
#include <core/exec/step/env.h>
#include <core/exec/step/trace.h>
#include <core/exec/step/wait.h>
#include <core/exec/values.h>

/* ---- segments ---- */

/* The second output of a Merge: the index of the input that it took. */
static tn_status set_index(tn__run *run, const tn__plan_instr *instr, uint32_t index)
{
  const tn__plan_value *v = &run->plan->values[tn__instr_outputs(run->plan, instr)[1]];
  if (v->n_uses == 0) return TN_OK;
  tn_tensor **place = &run->workspace->held[v->held];
  tn_status st = tn__spare_tensor(run->workspace, TN_INT32, NULL, 0, 1, sizeof(int32_t), place, run->err);
  if (st == TN_OK) *(int32_t *)(*place)->data = (int32_t)index;
  return st;
}

/* Takes the first input that is live (S-EXE-08). If none is, but some are undecided, its turn comes
 * in a later pass. */
static tn_status run_merge(tn__run *run, uint32_t number, uint8_t *state)
{
  const tn__plan_instr *instr = &run->plan->instrs[run->plan->segments[number].begin];
  bool undecided = false;
  for (uint32_t k = 0; k < instr->n_inputs; k++) {
    int one = tn__context_state(run, instr->input_contexts[k]);
    if (one == TN__FAULT) return TN_INVALID_ARGUMENT;
    undecided |= one == TN__UNDECIDED;
    if (one != TN__LIVE) continue;
    const tn__plan_value *v = &run->plan->values[tn__instr_outputs(run->plan, instr)[0]];
    *state = TN__STATE_DONE;
    tn_status st = tn__run_tensor(run, tn__instr_inputs(run->plan, instr)[k], &run->workspace->held[v->held]);
    return st == TN_OK && instr->n_outputs > 1 ? set_index(run, instr, k) : st;
  }
  if (!undecided) *state = TN__STATE_SKIPPED;
  return TN_OK;
}

/* Begins the segment and sets up its call, which stays valid while it waits. */
static tn_status call_begin(tn__run *run, uint32_t number, tn__pending **out)
{
  tn__instance *in;
  tn_status st = tn__segment_begin(run, number, &in);
  tn__pending *p = *out = st == TN_OK ? tn__pending_get(run, number) : NULL;
  if (p == NULL) return st == TN_OK ? TN_RESOURCE_EXHAUSTED : st;
  p->over = false;
  p->began_ns = 0;
  p->call = (tn__call){ .ctx = { .struct_size = sizeof p->call.ctx, .err = run->err, .step = run->step,
                                  .reproducible = run->plan->settings.reproducible },
                        .run = run, .instance = in, .tape = in->layout->tape };
  return TN_OK;
}

static bool has_failed(const tn__run *run) { return tn__step_failed(run->step); }

/* A call that returned TN_PENDING without a token would never be resumed. */
static tn_status waits_for_nothing(const tn__run *run, uint32_t number, tn_error *err)
{
  const tn_operation *op = run->plan->instrs[run->plan->segments[number].begin].op;
  tn_error_set_node(err, tn_operation_name(op));
  return tn_error_set(err, TN_INTERNAL, "node '%s' (%s): its kernel returned TN_PENDING without a wait token",
                      tn_operation_name(op), tn_operation_type(op));
}

/* The step fails with this cause, unless it has failed before: cancels waiting calls, and no other
 * call begins. */
static void run_fail(tn__run *run, tn_status cause)
{
  if (run->step->env == NULL) return;
  if (!tn__step_failed(run->step)) run->step->env->cause = cause;
  atomic_store_explicit(&run->step->env->failed, true, memory_order_relaxed);
  tn__cancel_waits(run->step);
}

/* The kernel has ended while a function that it called waits. The step fails, the waiting calls in
 * the function are cancelled, and the segment stays WAITING until they have returned. */
static tn_status leave_functions(tn__run *run, uint32_t number, tn_status st)
{
  const tn_operation *op = run->plan->instrs[run->plan->segments[number].begin].op;
  tn__pending *p = run->workspace->pending[number];
  p->over = true;
  tn__wait_leave(p); /* before the cancellation: the kernel that the token's cancel is for has ended */
  if (st == TN_OK) {
    tn_error_set_node(p->call.ctx.err, tn_operation_name(op));
    st = tn_error_set(p->call.ctx.err, TN_INTERNAL,
                      "node '%s' (%s): its kernel returned while a function that it called was waiting",
                      tn_operation_name(op), tn_operation_type(op));
  }
  run_fail(run, st);
  /* Resumes at once the calls whose tokens were woken before the cancellation: they are not woken
   * again. */
  tn_error unheard = TN_ERROR_INIT;
  tn__calls_drain(p->calling, &unheard);
  tn_error_clear(&unheard);
  return st;
}

/* Calls the segment's kernel, or resumes the functions that it left behind. */
static tn_status call_compute(tn__run *run, uint32_t number, tn__pending *p)
{
  tn_status st = TN_OK;
  if (p->over) return tn__calls_drain(p->calling, p->call.ctx.err);
  if (p->call.instance->layout->n_tape > 0) st = tn__segment_call(&p->call);
  bool inside = tn__calls_wait(p->calling);
  if (st == TN_PENDING && p->token == NULL && !inside) return waits_for_nothing(run, number, p->call.ctx.err);
  return st != TN_PENDING && inside ? leave_functions(run, number, st) : st;
}

/* Begins, or resumes, a segment whose call may wait. */
static tn_status call_run(tn__run *run, uint32_t number, uint8_t *state)
{
  tn__pending *p = run->workspace->pending[number];
  tn_status st = TN_OK;
  int why = *state == TN__STATE_NEW ? tn__step_stop(run->step) : TN__GO_ON;
  if (why != TN__GO_ON) /* S-CAN-06: its inputs may be incomplete */
    return tn__step_stopped(why, run->plan->instrs[run->plan->segments[number].begin].op, run->err);
  if (*state == TN__STATE_NEW) st = call_begin(run, number, &p);
  else if (p->token != NULL && !p->over && !tn__wait_take(p)) return TN_PENDING;
  if (st != TN_OK) return st;
  tn_error unheard = TN_ERROR_INIT; /* of a step that has already failed */
  if (has_failed(run)) p->call.ctx.err = &unheard;
  p->call.ctx.resume = *state == TN__STATE_WAITING;
  st = call_compute(run, number, p);
  bool waits = st == TN_PENDING || tn__calls_wait(p->calling);
  *state = waits ? TN__STATE_WAITING : TN__STATE_DONE;
  p->call.ctx.err = run->err;
  tn_error_clear(&unheard);
  if (waits) return st;
  tn__wait_leave(p);
  tn__calls_end(p->calling);
  if (st == TN_OK && !p->over) tn__segment_end(run, number);
  return st;
}

/* Ends a segment whose outputs are tensors of their own (a Merge, a loop, a feed): notes those that
 * are predicates, and releases the values that the segment is the last to read. */
static void end_whole(tn__run *run, uint32_t number)
{
  const tn__segment *s = &run->plan->segments[number];
  for (uint32_t i = 0; i < s->n_predicates; i++) {
    const tn__plan_value *v = &run->plan->values[s->predicates[i]];
    const tn_tensor *t = run->workspace->held[v->held];
    uint8_t p = TN__NO_SCALAR;
    if (t == NULL) p = 0; /* dead */
    else if (t->count == 1) p = *(const uint8_t *)t->data != 0;
    run->workspace->predicates[v->predicate - 1] = p;
  }
  tn__segment_release(run, s);
}

/* The segment of a feed of a partial run: done once the feed is given, NEW until then. */
static void take_feed(tn__run *run, uint32_t number, uint8_t *state)
{
  const tn__plan_instr *instr = &run->plan->instrs[run->plan->segments[number].begin];
  const tn__plan_value *v = &run->plan->values[tn__instr_outputs(run->plan, instr)[0]];
  tn_tensor *t = v->index < run->step->n_inputs ? run->step->inputs[v->index] : NULL;
  if (t == NULL) return;
  run->workspace->held[v->held] = tn_tensor_ref(t);
  *state = TN__STATE_DONE;
  end_whole(run, number);
}

/* Runs a segment that is live, or resumes one that waits, and sets its state. */
static tn_status segment_run_any(tn__run *run, uint32_t number, uint8_t *state)
{
  tn_status st;
  switch (run->plan->segments[number].kind) {
  case TN__SEGMENT_MERGE:
    st = run_merge(run, number, state);
    if (st == TN_OK && *state != TN__STATE_NEW) end_whole(run, number);
    return st;
  case TN__SEGMENT_LOOP:
    st = tn__loop_run(run, number);
    *state = st == TN_PENDING ? TN__STATE_WAITING : TN__STATE_DONE;
    if (st == TN_OK) end_whole(run, number);
    return st;
  case TN__SEGMENT_WAIT: return call_run(run, number, state);
  case TN__SEGMENT_FEED: take_feed(run, number, state); return TN_OK;
  default:
    *state = TN__STATE_DONE;
    return tn__segment_run(run, number);
  }
}

/* segment_run_any with a record for a Merge or a loop. Kernel calls are recorded where they are
 * made. */
static tn_status segment_run_traced(tn__run *run, uint32_t number, uint8_t *state, tn__trace *trace)
{
  uint8_t kind = run->plan->segments[number].kind;
  int64_t began = tn__now_ns();
  tn_status st = segment_run_any(run, number, state);
  if (st != TN_PENDING && *state == TN__STATE_DONE && (kind == TN__SEGMENT_MERGE || kind == TN__SEGMENT_LOOP))
    tn__trace_whole(trace, run, number, began, st);
  return st;
}

/* A segment whose context is dead. The values that it would have read are counted as read. */
static void segment_skip(tn__run *run, uint32_t number, uint8_t *state)
{
  *state = TN__STATE_SKIPPED;
  tn__segment_release(run, &run->plan->segments[number]);
}

/* ---- passes ---- */

/* The result of one pass over all segments. */
typedef struct pass {
  bool left;     /* some segment is neither done nor skipped */
  bool waiting;  /* some call waits to be woken */
  bool progress; /* some segment changed its state */
} pass;

/* One segment's turn in a pass. TN_OK also if it waits. */
static tn_status segment_turn(tn__run *run, uint32_t number, pass *p)
{
  uint8_t *state = &run->workspace->segment_states[number];
  if (*state == TN__STATE_DONE || *state == TN__STATE_SKIPPED) return TN_OK;
  const tn__segment *s = &run->plan->segments[number];
  if (s->kind == TN__SEGMENT_TAPE && !has_failed(run) &&
      tn__context_state(run, s->context) == TN__LIVE) { /* the usual case */
    *state = TN__STATE_DONE;
    p->progress = true;
    return tn__segment_run(run, number);
  }
  if (*state == TN__STATE_NEW && has_failed(run)) return TN_OK;
  int live = *state == TN__STATE_WAITING ? TN__LIVE : tn__context_state(run, run->plan->segments[number].context);
  if (live == TN__FAULT) return TN_INVALID_ARGUMENT;
  uint8_t before = *state;
  tn_status st = TN_OK;
  if (live == TN__DEAD) segment_skip(run, number, state);
  else if (live == TN__LIVE && tn__step_trace(run->step) != NULL)
    st = segment_run_traced(run, number, state, tn__step_trace(run->step));
  else if (live == TN__LIVE) st = segment_run_any(run, number, state);
  p->left |= *state == TN__STATE_NEW || *state == TN__STATE_WAITING;
  p->waiting |= *state == TN__STATE_WAITING;
  p->progress |= *state != before;
  return st == TN_PENDING ? TN_OK : st;
}

/* One pass. Returns the first error of the run (first: that of an earlier pass). After an error the
 * pass continues if there may be waiting calls, which have to be resumed. */
static tn_status run_pass(tn__run *run, pass *p, tn_status first)
{
  for (uint32_t i = 0; i < run->plan->n_segments; i++) {
    tn_status st = segment_turn(run, i, p);
    if (st == TN_OK || first != TN_OK) continue;
    first = st; /* S-CAN-01 */
    run_fail(run, st);
    if (!run->plan->has_waits) break;
  }
  return first;
}

void tn__run_controlled_reset(tn__run *run)
{
  for (uint32_t i = 0; run->plan->has_waits && i < run->plan->n_held; i++)
    run->workspace->readers_left[i] = run->plan->held_readers[i];
  /* The states of segments and contexts are adjacent, and all start at 0 (place_control in
   * step/workspace.c). */
  uint8_t *states = run->workspace->segment_states;
  const uint8_t *end = run->workspace->context_states + run->plan->conditions.n_contexts + 1;
  if (end - states > 32) __builtin_memset(states, 0, (size_t)(end - states));
  else
    while (states < end) *states++ = 0;
}

/* The status of a run in which no call waits any more. */
static tn_status all_had_a_turn(const tn__run *run, const pass *p)
{
  if (has_failed(run)) return run->step->env->cause;
  return !p->left ? TN_OK
                  : tn_error_set(run->err, TN_INTERNAL, "the step has ended, but some segments were never decided");
}

tn_status tn__run_controlled(tn__run *run)
{
  tn_status st = TN_OK;
  for (;;) {
    pass p = { false, false, false };
    uint64_t seen = run->plan->has_waits ? tn__wakes(run->step) : 0; /* before the pass: no wake-up gets lost */
    st = run_pass(run, &p, st);
    if (p.left) tn__contexts_look_again(run);
    if (!p.waiting && run->partial && p.left && st == TN_OK && !has_failed(run)) return TN_PENDING;
    if (!p.waiting) return st == TN_OK ? all_had_a_turn(run, &p) : st;
    if (p.progress) continue;
    if (run->inner || run->partial) return TN_PENDING;
    tn_status why = tn__sleep(run->step, seen, run->err);
    if (why != TN_OK && st == TN_OK) {
      st = why;
      run_fail(run, st);
    }
  }
}
