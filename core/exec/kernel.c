/* SPDX-License-Identifier: Apache-2.0 */
/* What compute may call. */
#include <core/exec/trace.h>

static tn__call *call_of(const tn_kernel_ctx *ctx) { return (tn__call *)ctx; /* its first member */ }

tn_bool tn_kernel_cancelled(const tn_kernel_ctx *ctx)
{
  const tn__step_env *env = ctx->step->env;
  const tn__run *run = call_of(ctx)->run;
  if (run != NULL && run->jobs != NULL && tn__jobs_failed(run->jobs)) return 1;
  return (env != NULL && env->failed) || tn__step_stop(ctx->step) != TN__GO_ON;
}

static const tn__layout *layout_of(const tn__call *call)
{
  return call->apart != NULL ? call->apart->layout : call->instance->layout;
}

/* The slot of a dynamic output that has no value yet. */
static tn_status dynamic_slot(tn_kernel_ctx *ctx, uint32_t i, uint32_t *slot)
{
  const tn__call *call = call_of(ctx);
  if (call->run == NULL && call->apart == NULL)
    return tn_error_set(ctx->err, TN_INTERNAL, "output %u is given outside of a step", i);
  const tn__layout *l = layout_of(call);
  const char *kernel = tn__layout_kernel(l, call->tape->instr)->def->name;
  if (i >= ctx->n_outputs)
    return tn_error_set(ctx->err, TN_INTERNAL, "kernel '%s' gives output %u of %u", kernel, i, ctx->n_outputs);
  *slot = l->operands[call->tape->operands + ctx->n_inputs + i];
  bool may = l->slots[*slot].dynamic || l->slots[*slot].given;
  if (!may || (call->apart != NULL ? call->apart->made[i] : call->instance->heap[*slot]) != NULL)
    return tn_error_set(ctx->err, TN_INTERNAL, "kernel '%s': output %u is not dynamic, or was given before", kernel, i);
  return TN_OK;
}

static bool same_dims(const int64_t *a, const int64_t *b, int32_t rank)
{
  for (int32_t d = 0; d < rank; d++)
    if (a[d] != b[d]) return false;
  return true;
}

/* A given output has the shape that prepare said. */
static tn_status check_given(tn_kernel_ctx *ctx, uint32_t i, const tn__slot *s, const int64_t *dims, int32_t rank)
{
  if (s->dynamic || (s->rank == rank && same_dims(s->dims, dims, rank))) return TN_OK;
  char said[96], found[96];
  return tn_error_set(ctx->err, TN_INTERNAL, "output %u was to have shape %s, the kernel gave %s", i,
                      tn__format_shape(said, sizeof said, s->dims, s->rank),
                      tn__format_shape(found, sizeof found, dims, rank));
}

/* Takes the reference over. */
static void set_dynamic(tn_kernel_ctx *ctx, uint32_t i, uint32_t slot, tn_tensor *t)
{
  const tn__apart *apart = call_of(ctx)->apart;
  tn__instance *in = call_of(ctx)->instance;
  *(apart != NULL ? &apart->made[i] : &in->heap[slot]) = t;
  if (apart == NULL && in->layout->slots[slot].given) {
    tn__bind_data(in, slot, t->data, t->buffer);
    return;
  }
  *(apart != NULL ? apart->outputs[i] : &in->views[slot]) =
      (tn_view){ .data = tn__somewhere(t->data), .dims = t->dims, .count = t->count, .dtype = t->dtype, .rank = t->rank,
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
  if (s->fetched || call->run == NULL) { /* the program's soon: memory of its own size */
    st = tn_tensor_create(s->dtype, dims, rank, &t, ctx->err);
  } else {
    st = tn_shape_bytes(s->dtype, dims, rank, &bytes, ctx->err);
    if (st == TN_OK)
      st = tn__spare_tensor(call->run->workspace, s->dtype, dims, rank, (int64_t)(bytes / tn_dtype_size(s->dtype)), bytes,
                            &t, ctx->err);
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
    return tn_error_set(ctx->err, TN_INTERNAL, "output %u is %s, the kernel gave %s", i, tn_dtype_name(wanted),
                        tensor == NULL ? "NULL" : tn_dtype_name(tensor->dtype));
  if (tensor->data == NULL && tensor->bytes > 0)
    return tn_error_set(ctx->err, TN_INTERNAL, "output %u: the kernel gave a tensor that is not in host memory", i);
  st = check_given(ctx, i, s, tensor->dims, tensor->rank);
  if (st != TN_OK) return st;
  set_dynamic(ctx, i, slot, tn_tensor_ref(tensor));
  return TN_OK;
}

/* The crew is taken for the first loop that is worth it, and stays to the end of the step: it would be the step's own thread
 * that takes it, since others come to a step by its crew only. */
void tn_parallel_for(tn_kernel_ctx *ctx, int64_t n, int64_t grain, double cost_ns,
                     void (*fn)(void *user, int64_t begin, int64_t end), void *user)
{
  if (n <= 0) return;
  tn__step_env *env = ctx->step == NULL ? NULL : ctx->step->env; /* NULL: outside of a step */
  if (env == NULL || env->client == NULL || (double)n * cost_ns < TN__LOOP_NS) {
    fn(user, 0, n);
    return;
  }
  if (env->crew == NULL) env->crew = tn__crew_take_for(env->client, env->kind);
  if (env->trace != NULL && call_of(ctx)->run != NULL) tn__trace_loop(call_of(ctx), n, grain, cost_ns, fn, user);
  else tn__parallel_for(env->crew, n, grain, cost_ns, fn, user);
}
