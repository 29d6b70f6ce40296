/* SPDX-License-Identifier: Apache-2.0 */
/* Values as tensors that outlive their segment: for Merges, loops, functions, and for kernels that
 * keep an input. A value is shared by reference if its memory no longer changes, else copied. */
#include <core/exec/values.h>

#include <string.h>

static tn_status copy_view(const tn_view *v, tn_tensor **out, tn_error *err)
{
  tn_status st = tn_tensor_create(v->dtype, v->dims, v->rank, out, err);
  if (st != TN_OK) return st;
  if (tn__dtype_is_managed(v->dtype)) st = tn__elements_copy(v->dtype, (*out)->data, v->data, v->count, err);
  else if ((*out)->bytes > 0) memcpy((*out)->data, v->data, (*out)->bytes);
  if (st == TN_OK) return TN_OK;
  tn_tensor_unref(*out);
  *out = NULL;
  return st;
}

/* A reference to `t` if the view shows it, or to a tensor of another shape with its memory; else a
 * copy. `t` may be NULL. */
static tn_status share(tn_tensor *t, const tn_view *v, tn_tensor **out, tn_error *err)
{
  if (t == NULL || t->buffer == &tn__borrowed || t->dtype != v->dtype ||
      t->count != v->count || tn__non_null(t->data) != v->data)
    return copy_view(v, out, err);
  bool same = t->rank == v->rank;
  for (int32_t d = 0; same && d < t->rank; d++) same = t->dims[d] == v->dims[d];
  if (!same) return tn_tensor_reshape(t, v->dims, v->rank, out, err);
  *out = tn_tensor_ref(t);
  return TN_OK;
}

/* The tensor whose memory a slot shows, if that memory no longer changes; else NULL. */
static tn_tensor *owner(const tn__run *run, const tn__instance *in, uint32_t slot)
{
  const tn__slot *slots = in->layout->slots, *root = &slots[slots[slot].root];
  const tn__plan_value *v = &run->plan->values[root->value], *own = &run->plan->values[slots[slot].value];
  tn_tensor **held = run->workspace->held;
  switch (root->store) {
  case TN_STORE_HEAP:
    if (in->heap[root - slots] != NULL) return in->heap[root - slots];
    return own->held != TN__NONE ? held[own->held] : NULL;
  case TN_STORE_CONSTANT: return root->elements;
  case TN_STORE_ENTRY:
    if (v->kind == TN_VALUE_FEED)
      return run->inner ? run->step->inputs[v->index] : NULL; /* the program may change its feeds */
    return v->held != TN__NONE ? held[v->held] : NULL;
  case TN_STORE_OUTPUT: return run->inner ? run->step->outputs[root->offset] : NULL;
  default: return NULL;
  }
}

tn_tensor *tn__call_lasting(const tn__call *call, uint32_t slot)
{
  tn_tensor *t = owner(call->run, call->instance, slot);
  return t != NULL && t->buffer != &tn__borrowed ? t : NULL;
}

static tn_view view_of(const tn_tensor *t)
{
  return (tn_view){ .data = tn__non_null(t->data),
                    .dims = t->dims,
                    .count = t->count,
                    .dtype = t->dtype,
                    .rank = t->rank,
                    .buffer = t->buffer };
}

tn_status tn__run_tensor(tn__run *run, uint32_t value, tn_tensor **out)
{
  const tn__plan_value *v = &run->plan->values[value];
  *out = NULL;
  if (v->kind == TN_VALUE_CONSTANT) return tn__plan_need_elements(run->plan, value, out, run->err);
  tn_tensor *t = tn__run_whole(run, value);
  if (t != NULL) {
    const tn_view view = view_of(t); /* the program may change its tensors as soon as the step has ended */
    return v->kind == TN_VALUE_FEED && !run->inner ? copy_view(&view, out, run->err) : share(t, &view, out, run->err);
  }
  uint32_t slot;
  tn__instance *in;
  const tn_view *view = tn__run_view(run, value, &slot, &in);
  return share(owner(run, in, slot), view, out, run->err);
}

tn_status tn_kernel_keep_input(tn_kernel_ctx *ctx, uint32_t i, tn_tensor **out)
{
  const tn__call *call = (const tn__call *)ctx;
  *out = NULL;
  if (i >= ctx->n_inputs)
    return tn_error_set(ctx->err, TN_INTERNAL, "the kernel keeps input %u, but has %u inputs", i, ctx->n_inputs);
  if (call->run == NULL) return copy_view(ctx->inputs[i], out, ctx->err);
  uint32_t slot = call->instance->layout->operands[call->tape->operands + i];
  return share(owner(call->run, call->instance, slot), ctx->inputs[i], out, ctx->err);
}
