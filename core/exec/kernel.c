/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that a kernel's compute may call: outputs that it allocates itself, loops, and
 * cancellation. */
#include <core/exec/step/env.h>
#include <core/exec/step/jobs.h>
#include <core/exec/step/run_state.h>
#include <core/exec/step/trace.h>
#include <core/exec/step/workspace.h>

static tn__call *call_of(const tn_kernel_ctx *ctx) { return (tn__call *)ctx; /* its first member */ }

tn_bool tn_kernel_cancelled(const tn_kernel_ctx *ctx)
{
  const tn__run *run = call_of(ctx)->run;
  if (run != NULL && run->jobs != NULL && tn__jobs_failed(run->jobs)) return 1;
  return tn__step_failed(ctx->step) || tn__step_stop(ctx->step) != TN__GO_ON;
}

static const tn__layout *layout_of(const tn__call *call)
{
  return call->apart != NULL ? call->apart->layout : call->instance->layout;
}

/* The slot of an output that the kernel sets itself and has not set yet. */
static tn_status dynamic_slot(tn_kernel_ctx *ctx, uint32_t i, uint32_t *slot)
{
  const tn__call *call = call_of(ctx);
  if (call->run == NULL && call->apart == NULL)
    return tn_error_set(ctx->err, TN_INTERNAL, "output %u cannot be set outside of a step", i);
  const tn__layout *l = layout_of(call);
  const char *kernel = tn__layout_kernel(l, call->tape->instr)->def->name;
  if (i >= ctx->n_outputs)
    return tn_error_set(ctx->err, TN_INTERNAL, "kernel '%s' sets output %u, but has %u outputs", kernel, i,
                        ctx->n_outputs);
  *slot = l->operands[call->tape->operands + ctx->n_inputs + i];
  bool may = l->slots[*slot].dynamic || l->slots[*slot].given;
  if (!may || (call->apart != NULL ? call->apart->made[i] : call->instance->heap[*slot]) != NULL)
    return tn_error_set(ctx->err, TN_INTERNAL, "kernel '%s': output %u is not dynamic, or was set before", kernel, i);
  return TN_OK;
}

static bool same_dims(const int64_t *a, const int64_t *b, int32_t rank)
{
  for (int32_t d = 0; d < rank; d++)
    if (a[d] != b[d]) return false;
  return true;
}

/* An output that is not dynamic, but set by the kernel, must have the shape that prepare declared. */
static tn_status check_given(tn_kernel_ctx *ctx, uint32_t i, const tn__slot *s, const int64_t *dims, int32_t rank)
{
  if (s->dynamic || (s->rank == rank && same_dims(s->dims, dims, rank))) return TN_OK;
  char said[96], found[96];
  return tn_error_set(ctx->err, TN_INTERNAL, "output %u must have shape %s, but the kernel set %s", i,
                      tn__format_shape(said, sizeof said, s->dims, s->rank),
                      tn__format_shape(found, sizeof found, dims, rank));
}

/* Stores the output. Takes over the reference. Slots that share the memory of a given output are
 * bound with it; the layout has none for a dynamic one. */
static void set_dynamic(tn_kernel_ctx *ctx, uint32_t i, uint32_t slot, tn_tensor *t)
{
  const tn__external_call *apart = call_of(ctx)->apart;
  tn__instance *in = call_of(ctx)->instance;
  *(apart != NULL ? &apart->made[i] : &in->heap[slot]) = t;
  if (apart == NULL && in->layout->slots[slot].given) {
    tn__bind_data(in, slot, t->data, t->buffer);
    return;
  }
  *(apart != NULL ? apart->outputs[i] : &in->views[slot]) =
      (tn_view){ .data = tn__non_null(t->data), .dims = t->dims, .count = t->count, .dtype = t->dtype, .rank = t->rank,
                 .buffer = t->buffer };
}

tn_status tn_kernel_allocate(tn_kernel_ctx *ctx, uint32_t i, const int64_t *dims, int32_t rank)
{
  uint32_t slot;
  tn_status st = dynamic_slot(ctx, i, &slot);
  if (st != TN_OK) return st;
  const tn__call *call = call_of(ctx);
  const tn__slot *s = &layout_of(call)->slots[slot];
  size_t bytes;
  tn_tensor *t;
  st = check_given(ctx, i, s, dims, rank);
  if (st != TN_OK) return st;
  if (s->fetched || call->run == NULL) { /* the program will own it: an allocation of its exact size */
    st = tn_tensor_create(s->dtype, dims, rank, &t, ctx->err);
  } else {
    st = tn_shape_bytes(s->dtype, dims, rank, &bytes, ctx->err);
    if (st == TN_OK)
      st = tn__spare_tensor(call->run->workspace, s->dtype, dims, rank, (int64_t)(bytes / tn_dtype_size(s->dtype)),
                            bytes, &t, ctx->err);
  }
  if (st == TN_OK) set_dynamic(ctx, i, slot, t);
  return st;
}

tn_status tn_kernel_set_output(tn_kernel_ctx *ctx, uint32_t i, tn_tensor *tensor)
{
  uint32_t slot;
  tn_status st = dynamic_slot(ctx, i, &slot);
  if (st != TN_OK) return st;
  const tn__slot *s = &layout_of(call_of(ctx))->slots[slot];
  tn_dtype wanted = s->dtype;
  if (tensor == NULL || tensor->dtype != wanted)
    return tn_error_set(ctx->err, TN_INTERNAL, "output %u must be %s, but the kernel set %s", i, tn_dtype_name(wanted),
                        tensor == NULL ? "NULL" : tn_dtype_name(tensor->dtype));
  if (tensor->data == NULL && tensor->bytes > 0)
    return tn_error_set(ctx->err, TN_INTERNAL, "output %u: the kernel set a tensor that is not in host memory", i);
  st = check_given(ctx, i, s, tensor->dims, tensor->rank);
  if (st != TN_OK) return st;
  set_dynamic(ctx, i, slot, tn_tensor_ref(tensor));
  return TN_OK;
}

/* ---- loops ---- */

/* A loop that is estimated to take longer than this is run in slices, so that it ends soon after
 * its step is stopped. */
#define SLICED_NS 2000000.0
#define FIRST_NS 250000.0  /* estimated time of the first slice */
#define SLICE_NS 2000000.0 /* intended time of each later slice; measured, since the estimate may be far off */
#define LEAST_ITEM_NS 0.02 /* lower limit for the estimated cost of an item */
#define MOST_GROWTH 8      /* largest ratio of a slice to the one before */

/* A loop that is run in slices. */
typedef struct sliced {
  const tn_kernel_ctx *ctx;
  void (*fn)(void *user, int64_t begin, int64_t end);
  void *user;
  int64_t grain, first; /* items of the smallest slice; of the first one */
} sliced;

/* The size of a slice: rounded to one that suits vectors, and at least `grain`. */
static int64_t slice_of(const sliced *l, double items)
{
  int64_t n = items < 0x1p62 ? (int64_t)items : INT64_MAX / 2;
  if (n >= 256) n -= n % (n >= 1024 ? 64 : 16);
  return n < l->grain ? l->grain : n;
}

/* If the step is stopped, the remaining slices are skipped; the kernel's outputs are never read
 * then. */
static void run_slices(void *user, int64_t begin, int64_t end)
{
  const sliced *l = user;
  const tn__stop limits = tn__step_limits(l->ctx->step), *around = tn__stop_now;
  tn__stop_now = &limits; /* single items that take long check it themselves */
  int64_t size = l->first, began = tn__now_ns();
  while (begin < end && !tn_kernel_cancelled(l->ctx)) {
    int64_t n = end - begin - size >= l->grain ? size : end - begin;
    l->fn(l->user, begin, begin + n);
    begin += n;
    int64_t now = tn__now_ns();
    double growth = SLICE_NS / (double)(now - began + 1);
    size = slice_of(l, (double)n * (growth > MOST_GROWTH ? MOST_GROWTH : growth));
    began = now;
  }
  tn__stop_now = around;
}

/* The plan that a call belongs to; NULL: it is made outside of a plan. */
static const tn_plan *plan_of(const tn__call *call)
{
  if (call->run != NULL) return call->run->plan;
  return call->apart != NULL ? call->apart->layout->plan : NULL;
}

/* The loop of a kernel without state may be cut short, since its outputs are never read then. A
 * change of state is always completed. */
static bool may_end_early(const tn__call *call)
{
  const tn_plan *plan = plan_of(call);
  uint32_t traits = plan == NULL ? 0 : plan->instrs[call->tape->instr].traits;
  return (traits & TN_TRAIT_STATEFUL) == 0 || (traits & TN_TRAIT_RANDOM) != 0;
}

/* The crew is taken for the first loop that is worth it, and kept until the step ends. `env` needs
 * no lock: only the step's own thread can get here without a crew, since others join a step through
 * its crew. */
static void run_loop(tn_kernel_ctx *ctx, int64_t n, int64_t grain, double cost_ns,
                     void (*fn)(void *user, int64_t begin, int64_t end), void *user)
{
  tn__step_env *env = ctx->step == NULL ? NULL : ctx->step->env; /* NULL: outside of a step */
  if (env == NULL || env->client == NULL || (double)n * cost_ns < TN__LOOP_NS) {
    fn(user, 0, n);
    return;
  }
  if (env->crew == NULL) env->crew = tn__crew_take_for(env->client, env->kind);
  if (env->trace != NULL && call_of(ctx)->run != NULL) tn__trace_loop(call_of(ctx), n, grain, cost_ns, fn, user);
  else tn__parallel_for(env->crew, n, grain, cost_ns, fn, user);
}

/* In a loop that must be completed, single items must not end early either, so tn__stop_now is
 * cleared. */
void tn_parallel_for(tn_kernel_ctx *ctx, int64_t n, int64_t grain, double cost_ns,
                     void (*fn)(void *user, int64_t begin, int64_t end), void *user)
{
  double item = cost_ns > LEAST_ITEM_NS ? cost_ns : LEAST_ITEM_NS;
  if (n <= 0) return;
  if ((double)n * item < SLICED_NS || ctx->step == NULL) {
    run_loop(ctx, n, grain, cost_ns, fn, user);
    return;
  }
  if (!may_end_early(call_of(ctx))) {
    const tn__stop *around = tn__stop_now;
    tn__stop_now = NULL;
    run_loop(ctx, n, grain, cost_ns, fn, user);
    tn__stop_now = around;
    return;
  }
  sliced l = { ctx, fn, user, grain < 1 ? 1 : grain, 0 };
  l.first = slice_of(&l, FIRST_NS / item);
  run_loop(ctx, n, grain, cost_ns, run_slices, &l);
}
