/* SPDX-License-Identifier: Apache-2.0 */
/* Resources as kernels ask for them. What a node asked for last is remembered with it: a plan belongs to one session, which
 * sees one generation of each container. */
#include <core/exec/exec.h>

#include <string.h>

static tn__plan_instr *instr_of(const tn_kernel_ctx *ctx)
{
  const tn__call *call = (const tn__call *)ctx;
  return call->run == NULL ? NULL : &call->run->plan->instrs[call->tape->instr];
}

/* The step's own container; it lives until the step ends. */
static tn_status own_container(tn__step_env *env, tn__container **out, tn_error *err)
{
  tn_status st = TN_OK;
  tn__mutex_lock(env->mu);
  if (env->own == NULL) st = tn__container_create(TN_STEP_CONTAINER, &env->own, err);
  *out = env->own;
  tn__mutex_unlock(env->mu);
  return st;
}

static tn_status container_of(tn_kernel_ctx *ctx, const char *name, tn__container **out)
{
  tn__step_env *env = ctx->step->env;
  *out = NULL;
  if (env == NULL || env->containers == NULL)
    return tn_error_set(ctx->err, TN_FAILED_PRECONDITION, "there are no containers outside of a session");
  if (name != NULL && strcmp(name, TN_STEP_CONTAINER) == 0) return own_container(env, out, ctx->err);
  return tn__container_view_get(env->containers, name, out, ctx->err);
}

static bool is_wanted(const tn_resource *r, const tn_resource_class *cls, const char *name)
{
  return r != NULL && tn_resource_class_of(r) == cls && tn_resource_is_alive(r) && strcmp(tn_resource_name(r), name) == 0;
}

/* A plan keeps what was remembered first, as long as it is alive: what takes its place is asked for again each time. */
static void remember(tn__plan_instr *instr, const char *container, tn_resource *r)
{
  tn_resource *none = NULL;
  if (container != NULL && strcmp(container, TN_STEP_CONTAINER) == 0) return;
  if (atomic_compare_exchange_strong(&instr->resource, &none, tn_resource_ref(r))) return;
  tn_resource_unref(r);
}

tn_status tn_kernel_obtain(tn_kernel_ctx *ctx, const char *container, const char *name, const tn_resource_class *cls,
                           tn_status (*make)(void *user, void **object, tn_error *err), void *user, tn_resource **out)
{
  tn__plan_instr *instr = instr_of(ctx);
  tn_resource *known = instr == NULL ? NULL : atomic_load_explicit(&instr->resource, memory_order_acquire);
  *out = NULL;
  if (is_wanted(known, cls, name)) {
    *out = tn_resource_ref(known);
    return TN_OK;
  }
  tn__container *c;
  tn_status st = container_of(ctx, container, &c);
  if (st == TN_OK) st = tn__container_obtain(c, cls, name, make, user, out, ctx->err);
  if (st == TN_OK && instr != NULL) remember(instr, container, *out);
  return st;
}

tn_status tn_kernel_lookup(tn_kernel_ctx *ctx, const char *container, const char *name, const tn_resource_class *cls,
                           tn_resource **out)
{
  tn__container *c;
  *out = NULL;
  tn_status st = container_of(ctx, container, &c);
  return st == TN_OK ? tn__container_lookup(c, cls, name, out, ctx->err) : st;
}

tn_status tn_kernel_remove(tn_kernel_ctx *ctx, tn_resource *resource)
{
  if (resource == NULL) return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "tn_kernel_remove: resource is NULL");
  return tn__container_remove(resource, ctx->err);
}
