/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of functions by kernels. A function is a plan of its own that runs inside of an
 * instruction. Its arguments are fed without a copy: a value in a tensor that no longer changes is
 * fed as that tensor, so a function that returns it returns the same tensor. Other memory is lent
 * to the function, and copied if the function returns it.
 *
 * The workspace of a function stays open until the kernel that called it has ended, so a kernel
 * that calls the function in a loop takes the workspace once. */
#include <core/base/threads/thread.h>
#include <core/exec/call.h>
#include <core/exec/inner.h>
#include <core/exec/step/env.h>
#include <core/exec/step/trace.h>
#include <core/exec/values.h>
#include <core/graph/function_instance.h>
#include <core/compile/callees.h>

/* Maximum depth of calls inside of calls; the thread's stack is a limit, too. A level takes about 1 KiB of it. */
#define MAX_DEPTH 400

tn_buffer tn__borrowed = { .refs = 1, .desc = { .struct_size = sizeof(tn_buffer_desc), .memory = TN_MEMORY_HOST,
                                                .ownership = TN_BUFFER_FOREIGN } };

/* One function of a node, while its kernel runs. Only the step's own thread calls functions, so it
 * needs no lock. */
typedef struct called {
  const tn__callee *f; /* NULL: it is not open, and the rest is not set */
  tn__inner inner;
  tn_tensor **inputs;  /* by input: borrowed, or an element of `lent` */
  tn_tensor *lent;     /* by input: tensors for borrowed memory; NULL = none yet */
  /* By fetch: references to the results of the last call and of the one before. The next call may
   * overwrite those of the one before. One allocation. */
  tn_tensor **made[2];
  uint32_t turn;       /* index in `made` of those that are next */
} called;

struct tn__calling {
  uint32_t n;
  called items[]; /* by number of the function; gradients have numbers after the functions */
};

/* ---- opening and closing a function ---- */

static void close_one(called *c)
{
  if (c->f == NULL) return;
  size_t n = (size_t)c->f->n_inputs + 1, n_made = 2 * (size_t)c->f->n_fetches + 1;
  tn__inner_end(&c->inner);
  if (c->made[0] != NULL) {
    for (size_t i = 0; i + 1 < n_made; i++) tn_tensor_unref(c->made[0][i]);
    tn__free(c->made[0], n_made * sizeof *c->made[0]);
  }
  if (c->inputs != NULL) tn__free(c->inputs, n * sizeof *c->inputs);
  if (c->lent != NULL) tn__free(c->lent, n * sizeof *c->lent);
  *c = (called){ .f = NULL };
}

bool tn__calls_wait(const tn__calling *calling)
{
  for (uint32_t k = 0; calling != NULL && k < calling->n; k++)
    if (calling->items[k].f != NULL && calling->items[k].inner.busy) return true;
  return false;
}

tn_status tn__calls_drain(tn__calling *calling, tn_error *err)
{
  for (uint32_t k = 0; k < calling->n; k++) {
    called *c = &calling->items[k];
    if (c->f == NULL || !c->inner.busy) continue;
    c->inner.run.err = err;
    if (tn__inner_go(&c->inner, c->inputs, NULL) != TN_OK) continue;
    for (uint32_t i = 0; i < c->f->n_fetches; i++) tn_tensor_unref(c->inner.outputs[i]);
  }
  return tn__calls_wait(calling) ? TN_PENDING : TN_OK;
}

void tn__calls_end(tn__calling *calling)
{
  for (uint32_t k = 0; calling != NULL && k < calling->n; k++) close_one(&calling->items[k]);
}

static size_t calling_bytes(uint32_t n) { return sizeof(tn__calling) + n * sizeof(called); }

static void free_calling(tn__calling *calling)
{
  tn__calls_end(calling);
  tn__free(calling, calling_bytes(calling->n));
}

/* Opens a function: takes its workspace, one level deeper. */
static tn_status open_one(const tn__call *call, const tn__callee *f, called *c)
{
  tn_status st = tn__inner_begin(&c->inner, f->plan, call->run->plan->instrs[call->tape->instr].op, call->run->step,
                                 call->ctx.err);
  c->f = f;
  c->inner.step.depth++;
  if (st == TN_OK) c->inputs = tn__alloc_array((size_t)f->n_inputs + 1, sizeof *c->inputs);
  if (st == TN_OK) c->made[0] = tn__alloc_array(2 * (size_t)f->n_fetches + 1, sizeof *c->made[0]);
  if (st == TN_OK && (c->inputs == NULL || c->made[0] == NULL))
    st = tn__no_memory(call->ctx.err, "arguments of a function", f->n_inputs);
  c->made[1] = c->made[0] == NULL ? NULL : c->made[0] + f->n_fetches;
  if (st != TN_OK) close_one(c);
  return st;
}

/* The place of function k of the kernel's node; NULL and an error if there is no such function. */
static tn_status place_of(const tn__call *call, uint32_t k, called **out)
{
  const tn__run *run = call->run;
  const tn__plan_instr *instr = &run->plan->instrs[call->tape->instr];
  tn__pending *p = run->workspace->pending == NULL ? NULL : run->workspace->pending[instr->segment];
  *out = NULL;
  if (p == NULL || &p->call != call)
    return tn_error_set(call->ctx.err, TN_INTERNAL,
                        "op '%s' lacks TN_TRAIT_FUNCTION_CALL, so its kernels cannot call functions",
                        tn_operation_type(instr->op));
  if (p->calling == NULL) {
    uint32_t n = 2 * tn_operation_n_functions(instr->op); /* each function and its gradient */
    p->calling = tn__zalloc(calling_bytes(n));
    if (p->calling == NULL) return tn__no_memory(call->ctx.err, "call of a function", calling_bytes(n));
    p->calling->n = n;
    p->free_calling = free_calling;
  }
  if (k >= p->calling->n)
    return tn_error_set(call->ctx.err, TN_INVALID_ARGUMENT, "function %u called, but the node has %u functions", k,
                        tn_operation_n_functions(instr->op));
  *out = &p->calling->items[k];
  return TN_OK;
}

/* ---- arguments ---- */

/* Whether the tensor has the view's type, shape and memory, and may be kept. */
static bool shows(const tn_tensor *t, const tn_view *v)
{
  if (t->buffer == &tn__borrowed || t->dtype != v->dtype || t->rank != v->rank || t->count != v->count) return false;
  if (t->count > 0 && t->data != v->data) return false;
  for (int32_t d = 0; t->dims != v->dims && d < t->rank; d++)
    if (t->dims[d] != v->dims[d]) return false;
  return true;
}

/* The tensor that a view shows, if a reference to it may be kept: that of an input, or one that the
 * kernel owns. Else NULL. Borrowed. */
static tn_tensor *tensor_of(const tn__call *call, const tn_view *v)
{
  const tn__instance *in = call->instance;
  tn_tensor *t = NULL;
  if (v >= in->views && v < in->views + in->layout->n_slots) t = tn__call_lasting(call, (uint32_t)(v - in->views));
  else if (v->buffer != NULL) t = v->buffer->inside;
  return t != NULL && shows(t, v) ? t : NULL;
}

/* A tensor for the memory of a view, for the duration of the call. */
static tn_tensor *lend(tn_tensor *t, const tn_view *v)
{
  *t = (tn_tensor){ .refs = 1, .dtype = v->dtype, .rank = v->rank, .count = v->count, .data = v->data,
                    .bytes = (size_t)v->count * tn_dtype_size(v->dtype), .buffer = &tn__borrowed,
                    .dims = (int64_t *)v->dims };
  return t;
}

static tn_status take_arguments(const tn__call *call, tn_view *const *views, called *c)
{
  const tn__callee *f = c->f;
  for (uint32_t i = 0; i < f->n_inputs; i++) {
    if (views[i]->dtype != f->input_dtypes[i])
      return tn_error_set(call->ctx.err, TN_INVALID_ARGUMENT, "function '%s': argument %u must be %s, but is %s",
                          f->name, i, tn_dtype_name(f->input_dtypes[i]), tn_dtype_name(views[i]->dtype));
    c->inputs[i] = tensor_of(call, views[i]);
    if (c->inputs[i] != NULL) continue;
    if (c->lent == NULL) c->lent = tn__alloc_array((size_t)f->n_inputs + 1, sizeof *c->lent);
    if (c->lent == NULL) return tn__no_memory(call->ctx.err, "arguments of a function", f->n_inputs * sizeof *c->lent);
    c->inputs[i] = lend(&c->lent[i], views[i]);
  }
  return TN_OK;
}

/* ---- results ---- */

/* In a loop each turn reads the results of the turn before, and may overwrite those of the turn
 * before that. */
static void offer_again(called *c) { c->inner.run.again = c->made[c->turn]; }

/* Keeps references to the results that a later call may overwrite, once the caller has released its
 * own. */
static void keep_for_again(called *c)
{
  tn_tensor **made = c->made[c->turn], **fetched = c->inner.outputs;
  for (uint32_t i = 0; i < c->f->n_fetches; i++) {
    tn_tensor_unref(made[i]);
    bool ours = fetched[i] != NULL && tn_tensor_is_exclusive(fetched[i]) && !tn__dtype_is_managed(fetched[i]->dtype);
    made[i] = ours ? tn_tensor_ref(fetched[i]) : NULL;
  }
  c->turn ^= 1;
}

static tn_status no_result(const tn__call *call, const called *c, uint32_t i)
{
  return tn_error_set(call->ctx.err, TN_INVALID_ARGUMENT,
                      "function '%s' has no value for output %u: it is on a branch that was not taken", c->f->name, i);
}

/* Moves the fetched values to the outputs. Outputs with the same value are fetched once, so they
 * are references to one tensor. */
static tn_status give_results(const tn__call *call, const called *c, tn_tensor **outputs)
{
  const tn__callee *f = c->f;
  tn_tensor **fetched = c->inner.outputs;
  tn_status st = TN_OK;
  for (uint32_t i = 0; st == TN_OK && i < f->n_outputs; i++) {
    uint32_t from = f->fetches[i];
    outputs[i] = f->in_order ? fetched[from] : tn_tensor_ref(fetched[from]);
    if (outputs[i] == NULL) st = no_result(call, c, i);
  }
  for (uint32_t i = 0; st != TN_OK && !f->in_order && i < f->n_outputs; i++) tn_tensor_unref(outputs[i]);
  for (uint32_t i = 0; st != TN_OK && i < f->n_outputs; i++) outputs[i] = NULL;
  for (uint32_t i = 0; i < f->n_fetches; i++) {
    if (st != TN_OK || !f->in_order) tn_tensor_unref(fetched[i]);
    fetched[i] = NULL;
  }
  return st;
}

/* ---- the call ---- */

/* May compile the function, which ends early if the step that needs it is stopped. */
static tn_status find_callee(const tn__call *call, uint32_t k, const tn__callee **out)
{
  tn_plan *plan = call->run->plan;
  const tn__stop limits = tn__step_limits(call->run->step), *around = tn__stop_now;
  tn__stop_now = &limits;
  tn_status st = tn__plan_callee(plan, &plan->instrs[call->tape->instr], k, out, call->ctx.err);
  tn__stop_now = around;
  return st;
}

/* Begins a call: checks it against the function's signature and the limits of depth, and sets the
 * arguments. */
static tn_status call_begin(const tn__call *call, uint32_t k, tn_view *const *inputs, uint32_t n_inputs,
                            uint32_t n_outputs, called *c)
{
  tn_error *err = call->ctx.err;
  const tn__callee *f;
  if (c->f == NULL && call->run->step->depth > 0 && tn__stack_left() == 0)
    return tn_error_set(err, TN_RESOURCE_EXHAUSTED,
                        "the thread's stack has no room for a function call (call depth %u)", call->run->step->depth);
  tn_status st = c->f != NULL ? TN_OK : find_callee(call, k, &f);
  if (st != TN_OK) return st;
  if (c->f != NULL) f = c->f;
  if (n_inputs != f->n_inputs)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "function '%s' takes %u arguments, but is called with %u", f->name,
                        f->n_inputs, n_inputs);
  if (n_outputs != f->n_outputs)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "function '%s' returns %u tensors, but the kernel expects %u",
                        f->name, f->n_outputs, n_outputs);
  if (call->run->step->depth >= MAX_DEPTH)
    return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "function '%s' exceeds the maximum call depth of %d", f->name,
                        MAX_DEPTH);
  if (c->f == NULL) st = open_one(call, f, c);
  return st == TN_OK ? take_arguments(call, inputs, c) : st;
}

/* Runs the function, or resumes it. In a trace its records are in the scope of this call. */
static tn_status go_in(const tn__call *call, uint32_t k, called *c)
{
  tn__trace *trace = tn__step_trace(call->run->step);
  if (trace == NULL) return tn__inner_go(&c->inner, c->inputs, NULL);
  tn__trace_scope *before = tn__trace_enter(trace, call->run->plan->instrs[call->tape->instr].op, k);
  tn_status st = tn__inner_go(&c->inner, c->inputs, NULL);
  tn__trace_leave(trace, before);
  return st;
}

static tn_status call_function(const tn__call *call, uint32_t k, tn_view *const *inputs, uint32_t n_inputs,
                               tn_tensor **outputs, uint32_t n_outputs)
{
  called *c;
  tn_status st = place_of(call, k, &c);
  if (st == TN_OK && !c->inner.busy) st = call_begin(call, k, inputs, n_inputs, n_outputs, c);
  if (st != TN_OK) return st;
  if (n_outputs != c->f->n_outputs)
    return tn_error_set(call->ctx.err, TN_INTERNAL,
                        "function '%s' returns %u tensors, but the kernel expects %u after it has waited", c->f->name,
                        c->f->n_outputs, n_outputs);
  c->inner.run.err = call->ctx.err;
  offer_again(c);
  st = go_in(call, k, c);
  if (st != TN_OK) return st;
  keep_for_again(c);
  return give_results(call, c, outputs);
}

/* Extends the error by this call, so that it names an inner node by its path through the calls. */
static tn_status call_failed(const tn__call *call, uint32_t k, tn_status st)
{
  tn_error *err = call->ctx.err;
  bool reported = tn__step_failed(call->run->step); /* a plan in the function has reported the error */
  if (!reported && tn__step_stop(call->run->step) != TN__GO_ON && (st == TN_CANCELLED || st == TN_DEADLINE_EXCEEDED)) {
    tn_error_clear(err); /* the caller reports the first cause */
    return tn_error_set(err, TN_CANCELLED, "the step was stopped");
  }
  tn__text path;
  tn__text_init(&path, 4096);
  tn__function_path(call->run->plan->instrs[call->tape->instr].op, k, &path);
  if (!path.failed) tn__error_in_call(err, tn__text_get(&path));
  tn__text_fini(&path);
  return st;
}

tn_status tn_kernel_call(tn_kernel_ctx *ctx, uint32_t k, tn_view *const *inputs, uint32_t n_inputs, tn_tensor **outputs,
                         uint32_t n_outputs)
{
  const tn__call *call = (const tn__call *)ctx; /* its first member */
  for (uint32_t i = 0; i < n_outputs; i++) outputs[i] = NULL;
  if (call->run == NULL)
    return tn_error_set(ctx->err, TN_FAILED_PRECONDITION, "functions cannot be called outside of a step");
  tn_status st = call_function(call, k, inputs, n_inputs, outputs, n_outputs);
  return __builtin_expect(st == TN_OK, 1) || st == TN_PENDING ? st : call_failed(call, k, st);
}
