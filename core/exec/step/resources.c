/* SPDX-License-Identifier: Apache-2.0 */
/* How kernels look up resources, and which folders they may use.
 *
 * The workspace remembers the last resource of each node, so that most steps search no container.
 * That is valid because a plan belongs to one session, which sees one generation of each container.
 * The workspace remembers a resource without keeping it alive: a destroyed variable is not found
 * any more. */
#include <core/exec/step/env.h>
#include <core/exec/step/run_state.h>
#include <core/exec/step/workspace.h>
#include <core/resource/folders.h>

#include <string.h>

/* The place of the instruction's last resource; NULL: it has none. Each instruction runs on one
 * thread at a time, so its place needs no lock; only the list is created under competition. */
static tn_resource **memory_of(const tn_kernel_ctx *ctx)
{
  const tn__call *call = (const tn__call *)ctx;
  if (call->run == NULL) return NULL;
  tn__workspace *w = call->run->workspace;
  tn_resource **list = atomic_load_explicit(&w->resources, memory_order_acquire);
  if (list == NULL) {
    size_t n = call->run->plan->n_instrs;
    tn_resource **mine = tn__alloc_array(n, sizeof *mine);
    if (mine == NULL) return NULL;
    if (atomic_compare_exchange_strong(&w->resources, &list, mine)) list = mine;
    else tn__free(mine, n * sizeof *mine); /* another task of the step has created it */
  }
  return &list[call->tape->instr];
}

/* The step's own container (S-RST-22), created at the first request. It lives until the step ends. */
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

/* Whether a remembered resource is the one that is looked up; if so, a reference for the step is
 * taken. */
static bool is_wanted(tn_resource *r, const tn_resource_class *cls, const char *name)
{
  return r != NULL && tn_resource_class_of(r) == cls && tn_resource_is_alive(r) &&
         strcmp(tn_resource_name(r), name) == 0 && tn__resource_hold_again(r);
}

/* Resources of the step's own container are not remembered: the next step has another container. */
static void remember(tn_resource **place, const char *container, tn_resource *r)
{
  if (container != NULL && strcmp(container, TN_STEP_CONTAINER) == 0) return;
  tn__resource_forget(*place);
  *place = tn__resource_remember(r);
}

tn_status tn_kernel_obtain(tn_kernel_ctx *ctx, const char *container, const char *name, const tn_resource_class *cls,
                           tn_status (*make)(void *user, void **object, tn_error *err), void *user, tn_resource **out)
{
  tn_resource **known = memory_of(ctx);
  *out = NULL;
  if (known != NULL && is_wanted(*known, cls, name)) {
    *out = *known;
    return TN_OK;
  }
  tn__container *c;
  tn_status st = container_of(ctx, container, &c);
  if (st == TN_OK) st = tn__container_obtain(c, cls, name, make, user, out, ctx->err);
  if (st == TN_OK && known != NULL) remember(known, container, *out);
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

/* ---- files ---- */

const tn__folders *tn__kernel_folders(const tn_kernel_ctx *ctx)
{
  const tn_step *step = ctx->step;
  if (step == NULL || step->env == NULL) return NULL;
  if (step->cancellation != NULL && step->cancellation->folders != NULL) return step->cancellation->folders;
  return tn__container_view_folders(step->env->containers);
}
