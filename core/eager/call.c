/* SPDX-License-Identifier: Apache-2.0 */
/* One operation: pins the inputs, finds the plan, runs it, makes handles of the outputs. */
#include <core/eager/call.h>
#include <core/eager/cache.h>
#include <core/eager/devices.h>
#include <core/eager/queue.h>
#include <core/eager/scope.h>
#include <core/eager/slots.h>
#include <core/eager/sweep.h>
#include <core/exec/step/env.h>
#include <core/exec/step/wait.h>

#define ON_STACK 12 /* inputs, and outputs, for which a call allocates no lists */

/* ---- the step ---- */

/* Checks the outputs that the runtime returned. */
static tn_status check_outputs(const tn_eager_session *s, const tn__eager_plan *p, tn_tensor *const *outputs,
                               tn_error *err)
{
  for (uint32_t i = 0; i < p->n_outputs; i++) {
    if (outputs[i] == NULL)
      return tn_error_set(err, TN_INTERNAL, "runtime '%s' returned OK without output %u", s->runtime.on.info.name, i);
    if (outputs[i]->dtype != p->outputs[i] && p->outputs[i] != TN_DTYPE_INVALID)
      return tn_error_set(err, TN_INTERNAL, "runtime '%s' returned output %u as %s, but it is %s",
                          s->runtime.on.info.name, i, tn_dtype_name(outputs[i]->dtype), tn_dtype_name(p->outputs[i]));
  }
  return TN_OK;
}

/* Checks whether a step that returned OK was stopped after its last instruction. */
static tn_status check_end(tn_eager_session *s, const tn_step *step, tn_error *err)
{
  int why = tn__step_stop(step);
  if (__builtin_expect(why == TN__GO_ON, 1)) return TN_OK;
  return why == TN__STOP_CLOSED ? tn__eager_closed(s, err) : tn__step_stopped(why, NULL, err);
}

/* Runs the plan once, in the session's memory account. The limits of a step whose kernel makes this
 * call do not apply. */
static tn_status execute(tn_eager_session *s, const tn__eager_plan *p, tn_tensor **inputs, tn_tensor **outputs,
                         tn_tensor **again, tn_error *err)
{
  tn__step_env env = { .containers = s->runtime.on.containers,
                       .mu = &s->step_mu,
                       .sleepers = &s->sleepers,
                       .account = s->runtime.on.account };
  tn_step step = { .inputs = inputs,
                   .outputs = outputs,
                   .n_inputs = p->n_inputs,
                   .n_outputs = p->n_outputs,
                   .env = &env,
                   .closed = &s->closed,
                   .again = again };
  tn__account *around = tn__account_now;
  const tn__stop *stop_around = tn__stop_now;
  if (__builtin_expect(stop_around != NULL, 0)) tn__stop_now = NULL;
  step.deadline_ns = tn__step_deadline(s->runtime.on.timeout_ms);
  tn__account_now = s->runtime.on.account;
  tn_status st = s->runtime.execute == NULL
                     ? tn_kit_step(p->executable, &step, err)
                     : tn__session_base_run(&s->runtime.on, s->runtime.execute, p->executable, &step, err);
  if (env.crew != NULL) tn__step_dismiss(&env);
  tn__account_now = around;
  if (__builtin_expect(stop_around != NULL, 0)) tn__stop_now = stop_around;
  tn__container_leave(env.own);
  tn__sleeper_unref(env.sleeper);
  if (__builtin_expect(st == TN_OK, 1)) {
    tn__error_reset(err);
    st = check_end(s, &step, err);
    return st == TN_OK ? check_outputs(s, p, outputs, err) : st;
  }
  if (st == TN_CANCELLED && atomic_load(&s->closed) != 0) { /* S-EAG-18 */
    tn__error_reset(err);
    return tn__eager_closed(s, err);
  }
  return err == NULL || err->code != st ? tn__factory_status(s->runtime.on.factory, "execute", st, err) : st;
}

/* Releases outputs after a failure. */
static void drop(tn_tensor **outputs, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    tn_tensor_unref(outputs[i]);
    outputs[i] = NULL;
  }
}

/* If memory is exhausted, deletes unused tensors and tries once more. */
tn_status tn__eager_step(tn_eager_session *s, const tn__eager_plan *p, tn_tensor **inputs, tn_tensor **outputs,
                         tn_tensor **again, tn_error *err)
{
  for (uint32_t i = 0; i < p->n_outputs; i++) outputs[i] = NULL;
  tn_status st = execute(s, p, inputs, outputs, again, err);
  if (__builtin_expect(st == TN_OK, 1)) return st;
  drop(outputs, p->n_outputs);
  if (st != TN_RESOURCE_EXHAUSTED || !tn__eager_reclaim(s)) return st;
  tn__error_reset(err);
  st = execute(s, p, inputs, outputs, NULL, err);
  if (st != TN_OK) drop(outputs, p->n_outputs);
  return st;
}

/* ---- the call ---- */

/* The working memory of a call: on the stack if it is small. */
typedef struct call {
  tn__eager_slot **slots; /* of the inputs; the first n_pinned are pinned */
  tn_tensor **inputs;     /* borrowed from the pinned slots */
  tn_dtype *dtypes;
  size_t n, n_pinned;
  tn__eager_plan *plan;
  bool mine;              /* the plan is not kept: the call frees it */
} call;

/* After a failure, those that were pinned stay so until the end of the call. */
static tn_status pin_inputs(tn_eager_session *s, call *c, const tn_eager_handle *inputs, tn_error *err)
{
  for (; c->n_pinned < c->n; c->n_pinned++) {
    size_t i = c->n_pinned;
    tn_status st = tn__eager_pin(s, inputs[i], &c->slots[i], err);
    if (st != TN_OK) {
      if (c->n > 1) tn_error_prefix(err, "input %zu", i);
      return st;
    }
    c->dtypes[i] = c->slots[i]->dtype;
    c->inputs[i] = atomic_load_explicit(&c->slots[i]->tensor, memory_order_relaxed);
  }
  return TN_OK;
}

/* Runs the plan and makes handles of its outputs. */
static tn_status run_now(tn_eager_session *s, const call *c, tn_eager_handle *outputs, tn_error *err)
{
  tn_tensor *fixed[ON_STACK], **made = fixed;
  size_t n = c->plan->n_outputs;
  if (n > ON_STACK) made = tn__alloc_array(n, sizeof *made);
  if (made == NULL) return tn__no_memory(err, "outputs of an operation", n * sizeof *made);
  tn_tensor *spare = n == 1 ? tn__eager_spare_take(s) : NULL;
  tn_status st = tn__eager_step(s, c->plan, c->inputs, made, spare == NULL ? NULL : &spare, err);
  tn_tensor_unref(spare); /* of another shape */
  if (st == TN_OK) {
    st = tn__eager_publish(s, made, NULL, NULL, n, outputs, err);
    if (st != TN_OK) drop(made, n);
  }
  if (made != fixed) tn__free(made, n * sizeof *made);
  return st;
}

/* Stores the device that the operation runs on in *device. */
static tn_status find_plan(tn_eager_op *op, call *c, uint16_t *device, tn_error *err)
{
  const tn_eager_session *s = op->session;
  if (__builtin_expect(s->n_devices == 1, 1))
    return tn__eager_plan_get(op, c->dtypes, c->n, 0, &c->plan, &c->mine, err);
  tn_status st = tn__eager_place(op, c->slots, c->dtypes, c->n, device, err);
  if (st != TN_OK) return st;
  st = tn__eager_plan_get(op, c->dtypes, c->n, tn__eager_is_away(s, *device) ? *device : 0, &c->plan, &c->mine, err);
  if (st == TN_OK && c->plan->moved) *device = 0;
  return st;
}

/* The call with its inputs pinned. Room for the outputs is checked before anything runs, since a
 * step cannot be undone. */
static tn_status call_pinned(tn_eager_op *op, call *c, tn_eager_handle *outputs, size_t room, size_t *n_outputs,
                             tn_error *err)
{
  tn_eager_session *s = op->session;
  uint16_t device = 0;
  tn_status st = find_plan(op, c, &device, err);
  if (st != TN_OK) return st;
  size_t n = c->plan->n_outputs;
  if (n_outputs != NULL) *n_outputs = n;
  if (n > room)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "eager op '%s' has %zu outputs, there is room for %zu", op->name, n,
                        room);
  if (__builtin_expect(s->n_devices > 1, 0)) st = tn__eager_admit(op, c->plan, c->slots, c->n, device, err);
  if (st == TN_OK) st = tn__eager_scope_room(s, n, err);
  if (st != TN_OK) return st;
  if (__builtin_expect(s->queue == NULL, 1)) {
    st = run_now(s, c, outputs, err);
  } else {
    st = tn__eager_queue_call(op, c->plan, c->mine, c->slots, c->n, outputs, err);
    if (st == TN_OK) {
      c->n_pinned = 0; /* the queue has taken over the pins */
      c->mine = false;
    }
  }
  if (st != TN_OK) return st;
  if (device != 0) tn__eager_set_device(s, outputs, n, device);
  tn__eager_scope_note(s, outputs, n);
  return TN_OK;
}

/* The pins keep the inputs from being deleted while the call uses them, also if another thread
 * releases their handles. */
static tn_status run_call(tn_eager_op *op, call *c, const tn_eager_handle *inputs, tn_eager_handle *outputs,
                          size_t room, size_t *n_outputs, tn_error *err)
{
  tn_eager_session *s = op->session;
  tn_status st = pin_inputs(s, c, inputs, err);
  if (st == TN_OK) st = call_pinned(op, c, outputs, room, n_outputs, err);
  for (size_t i = 0; i < c->n_pinned; i++) tn__eager_unpin(s, c->slots[i]);
  if (c->mine) tn__eager_plan_destroy(s, c->plan);
  return st;
}

/* The caller is inside of the session. */
static tn_status eager_run(tn_eager_op *op, const tn_eager_handle *inputs, size_t n, tn_eager_handle *outputs,
                           size_t room, size_t *n_outputs, tn_error *err)
{
  tn__eager_slot *slots[ON_STACK];
  tn_tensor *tensors[ON_STACK];
  tn_dtype dtypes[ON_STACK];
  call c = { slots, tensors, dtypes, n, 0, NULL, false };
  tn_eager_session *s = op->session;
  if (s->strategy == TN_EAGER_ON_SAFE_POINTS) tn__eager_safe_point(s); /* S-EAG-12 */
  else tn__eager_help(s);
  if (__builtin_expect(n > ON_STACK, 0)) {
    c.slots = tn__alloc_array(n, sizeof *c.slots);
    c.inputs = tn__alloc_array(n, sizeof(tn_tensor *));
    c.dtypes = tn__alloc_array(n, sizeof *c.dtypes);
  }
  tn_status st = c.slots == NULL || c.inputs == NULL || c.dtypes == NULL
                     ? tn__no_memory(err, "inputs of an operation", n * sizeof *c.slots)
                     : run_call(op, &c, inputs, outputs, room, n_outputs, err);
  if (__builtin_expect(n > ON_STACK, 0)) {
    tn__free(c.slots, n * sizeof *c.slots);
    tn__free(c.inputs, n * sizeof(tn_tensor *));
    tn__free(c.dtypes, n * sizeof *c.dtypes);
  }
  if (s->strategy == TN_EAGER_ON_SAFE_POINTS) tn__eager_safe_point(s);
  return st;
}

/* At the end, since the outputs may overlap the inputs. */
static tn_status clear_outputs(tn_status st, tn_eager_handle *outputs, size_t room)
{
  for (size_t i = 0; st != TN_OK && outputs != NULL && i < room; i++) outputs[i].id = 0;
  return st;
}

/* Checks the arguments. what: the name of the target, for errors. */
static tn_status check_call(const char *name, const char *what, const void *target,
                            const tn_eager_handle *inputs, size_t n, tn_eager_handle *outputs, size_t room,
                            size_t *n_outputs, tn_error *err)
{
  const char *missing = NULL;
  if (target == NULL) missing = what;
  else if (inputs == NULL && n > 0) missing = "inputs";
  else if (outputs == NULL && room > 0) missing = "outputs";
  if (n_outputs != NULL) *n_outputs = 0;
  if (__builtin_expect(missing == NULL && n < UINT32_MAX, 1)) return TN_OK;
  return missing != NULL ? tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %s is NULL", name, missing)
                         : tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %zu inputs are too many", name, n);
}

tn_status tn_eager_op_call(tn_eager_op *op, const tn_eager_handle *inputs, size_t n_inputs, tn_eager_handle *outputs,
                           size_t room, size_t *n_outputs, tn_error *err)
{
  tn__error_reset(err);
  tn_status st = check_call("tn_eager_op_call", "op", op, inputs, n_inputs, outputs, room, n_outputs, err);
  if (__builtin_expect(st != TN_OK, 0)) return clear_outputs(st, outputs, room);
  tn__eager_frame frame;
  tn_eager_session *s = op->session;
  uint32_t thread = tn__thread_number();
  st = tn__eager_enter(s, &frame, thread, err);
  if (__builtin_expect(st != TN_OK, 0)) return clear_outputs(st, outputs, room);
  st = eager_run(op, inputs, n_inputs, outputs, room, n_outputs, err);
  tn__eager_leave(s, &frame, thread);
  return clear_outputs(st, outputs, room);
}

/* A call by name and attributes. An op that is not kept in the table lives for this call only. */
static tn_status call_named(tn_eager_session *s, const char *name, const tn_eager_attr *attrs, size_t n_attrs,
                            const tn_eager_handle *inputs, size_t n_inputs, tn_eager_handle *outputs, size_t room,
                            size_t *n_outputs, tn_error *err)
{
  tn_eager_op *op;
  bool mine;
  tn_status st = tn__eager_named_op(s, name, attrs, n_attrs, &op, &mine, err);
  if (st != TN_OK) return st;
  st = eager_run(op, inputs, n_inputs, outputs, room, n_outputs, err);
  if (!mine) return st;
  if (s->queue != NULL) tn__eager_queue_wait(s, NULL, false); /* tasks use the op until then */
  tn__eager_plans_destroy(s, op);
  tn__eager_op_destroy(op);
  return st;
}

tn_status tn_eager_call(tn_eager_session *s, const char *op, const tn_eager_attr *attrs, size_t n_attrs,
                        const tn_eager_handle *inputs, size_t n_inputs, tn_eager_handle *outputs, size_t room,
                        size_t *n_outputs, tn_error *err)
{
  tn__error_reset(err);
  tn_status st = check_call("tn_eager_call", s == NULL ? "session" : "op", op == NULL ? NULL : s, inputs, n_inputs,
                            outputs, room, n_outputs, err);
  if (__builtin_expect(st != TN_OK, 0)) return clear_outputs(st, outputs, room);
  tn__eager_frame frame;
  uint32_t thread = tn__thread_number();
  st = tn__eager_enter(s, &frame, thread, err);
  if (__builtin_expect(st != TN_OK, 0)) return clear_outputs(st, outputs, room);
  st = call_named(s, op, attrs, n_attrs, inputs, n_inputs, outputs, room, n_outputs, err);
  tn__eager_leave(s, &frame, thread);
  return clear_outputs(st, outputs, room);
}
