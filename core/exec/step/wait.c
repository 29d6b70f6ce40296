/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting: the tokens of kernels that wait, and the sleep of a step in which no call can continue.
 *
 * A token belongs to the call that waits, until a thread wakes it. Any thread may wake it, once; it
 * does so under the sleeper's lock. The sleeper is counted, since the step may end as soon as that
 * lock is released, while the waking thread still uses it. Only the step's own thread removes
 * tokens from the list.
 *
 * Each token is freed once: by tn__wait_take if it was woken; else, if the call ended without it,
 * by whichever comes last of tn__wait_leave and tn_wake, which agree on that by `woken` and `left`. */
#include <core/exec/step/env.h>
#include <core/exec/step/pending.h>
#include <core/exec/step/wait.h>
#include <core/exec/step/workspace.h>

typedef struct tn__sleeper {
  _Atomic uint32_t refs; /* one of the step, and one of each token that is not woken */
  tn__mutex mu;
  tn__cond woken;           /* signalled at each wake-up, and when the stop conditions are to be checked */
  uint64_t wakes;           /* number of wake-ups so far; guarded by mu */
  tn_wait_token *tokens;    /* of the step, neither taken nor left yet, last one first; guarded by mu */
  struct tn__sleeper *prev, *next; /* in the session's list of sleeping steps, guarded by the list's lock */
} tn__sleeper;

struct tn_wait_token {
  tn__sleeper *sleeper; /* a reference until it is woken */
  tn_wait_token *next;  /* in the sleeper's list */
  const tn_operation *op; /* for messages */
  void (*cancel)(void *user, tn_wait_token *token);
  void *user;
  bool woken; /* guarded by the sleeper's lock, as are the next two */
  bool told;  /* cancel was called, or is about to be */
  bool left;  /* the call ended without it: the thread that wakes it frees it */
};

/* The step's first kernel that waits makes it. NULL without memory. */
static tn__sleeper *make_sleeper(void)
{
  tn__sleeper *s = tn__zalloc(sizeof *s);
  if (s == NULL) return NULL;
  atomic_init(&s->refs, 1);
  tn__mutex_init(&s->mu, "step", TN_RANK_STEP);
  tn__cond_init(&s->woken);
  return s;
}

void tn__sleeper_unref(tn__sleeper *s)
{
  if (s == NULL || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1) return;
  tn__cond_fini(&s->woken);
  tn__mutex_fini(&s->mu);
  tn__free(s, sizeof *s);
}

/* ---- tokens ---- */

tn_status tn_kernel_wait(tn_kernel_ctx *ctx, void (*cancel)(void *user, tn_wait_token *token), void *user,
                         tn_wait_token **token)
{
  tn__call *call = (tn__call *)ctx; /* its first member */
  tn__step_env *env = ctx->step == NULL ? NULL : ctx->step->env;
  *token = NULL;
  if (cancel == NULL) return tn_error_set(ctx->err, TN_INTERNAL, "tn_kernel_wait: cancel is NULL");
  if (env == NULL || call->run == NULL)
    return tn_error_set(ctx->err, TN_FAILED_PRECONDITION, "a kernel can wait only in a step of a session");
  uint32_t segment = call->run->plan->instrs[call->tape->instr].segment;
  tn__pending *p = call->run->workspace->pending == NULL ? NULL : call->run->workspace->pending[segment];
  if (p == NULL || &p->call != call)
    return tn_error_set(ctx->err, TN_INTERNAL, "the kernel may not wait: its op lacks TN_TRAIT_MAY_WAIT");
  if (p->token != NULL) return tn_error_set(ctx->err, TN_INTERNAL, "the kernel already has a wait token");
  if (env->sleeper == NULL) env->sleeper = make_sleeper();
  tn_wait_token *t = env->sleeper == NULL ? NULL : tn__zalloc(sizeof *t);
  if (t == NULL) return tn__no_memory(ctx->err, "kernel that waits", sizeof *t);
  *t = (tn_wait_token){ .sleeper = env->sleeper, .op = call->run->plan->instrs[call->tape->instr].op, .cancel = cancel,
                        .user = user };
  atomic_fetch_add_explicit(&env->sleeper->refs, 1, memory_order_relaxed);
  tn__mutex_lock(&t->sleeper->mu);
  t->next = t->sleeper->tokens;
  t->sleeper->tokens = t;
  tn__mutex_unlock(&t->sleeper->mu);
  p->token = *token = t;
  return TN_OK;
}

/* Any thread, also within `cancel`. The token may be freed by the step as soon as the lock is
 * released, so `left` is read under it. */
void tn_wake(tn_wait_token *t)
{
  if (t == NULL) return;
  tn__sleeper *s = t->sleeper;
  tn__mutex_lock(&s->mu);
  t->woken = true;
  bool left = t->left;
  s->wakes++;
  tn__cond_broadcast(&s->woken);
  tn__mutex_unlock(&s->mu);
  if (left) tn__free(t, sizeof *t);
  tn__sleeper_unref(s);
}

static void unlink_token(tn__sleeper *s, const tn_wait_token *t)
{
  tn__assert_held(&s->mu);
  tn_wait_token **at = &s->tokens;
  while (*at != t) at = &(*at)->next;
  *at = t->next;
}

bool tn__wait_take(tn__pending *p)
{
  tn_wait_token *t = p->token;
  tn__sleeper *s = p->call.ctx.step->env->sleeper;
  tn__mutex_lock(&s->mu);
  bool woken = t->woken;
  if (woken) unlink_token(s, t);
  tn__mutex_unlock(&s->mu);
  if (!woken) return false;
  tn__free(t, sizeof *t);
  p->token = NULL;
  return true;
}

/* The kernel requested a token and ended without waiting. If it was woken already, it is freed
 * here, else by the thread that wakes it. */
void tn__wait_leave(tn__pending *p)
{
  tn_wait_token *t = p->token;
  if (t == NULL) return;
  tn__sleeper *s = p->call.ctx.step->env->sleeper;
  tn__mutex_lock(&s->mu);
  unlink_token(s, t);
  bool woken = t->woken;
  t->left = true;
  tn__mutex_unlock(&s->mu);
  if (woken) tn__free(t, sizeof *t);
  p->token = NULL;
}

/* `cancel` may wake its token, or another, so it is called without the lock, and the list is
 * searched again after it. The token stays valid: only this thread takes tokens. */
void tn__cancel_waits(const tn_step *step)
{
  tn__sleeper *s = step->env == NULL ? NULL : step->env->sleeper;
  while (s != NULL) {
    tn__mutex_lock(&s->mu);
    tn_wait_token *t = s->tokens;
    while (t != NULL && (t->told || t->woken)) t = t->next;
    if (t != NULL) t->told = true;
    tn__mutex_unlock(&s->mu);
    if (t == NULL) return;
    t->cancel(t->user, t);
  }
}

/* ---- sleeping ---- */

uint64_t tn__wakes(const tn_step *step)
{
  tn__sleeper *s = step->env == NULL ? NULL : step->env->sleeper;
  if (s == NULL) return 0;
  tn__mutex_lock(&s->mu);
  uint64_t n = s->wakes;
  tn__mutex_unlock(&s->mu);
  return n;
}

/* Makes the sleeping thread check the stop conditions. Also a callback of a cancellation. */
static void poke(void *sleeper)
{
  tn__sleeper *s = sleeper;
  tn__mutex_lock(&s->mu);
  tn__cond_broadcast(&s->woken);
  tn__mutex_unlock(&s->mu);
}

static void list_sleeper(tn__sleepers *list, tn__sleeper *s)
{
  if (list == NULL) return;
  tn__mutex_lock(&list->mu);
  s->prev = NULL;
  s->next = list->first;
  if (list->first != NULL) list->first->prev = s;
  list->first = s;
  tn__mutex_unlock(&list->mu);
}

static void unlist_sleeper(tn__sleepers *list, tn__sleeper *s)
{
  if (list == NULL) return;
  tn__mutex_lock(&list->mu);
  if (s->prev != NULL) s->prev->next = s->next;
  else list->first = s->next;
  if (s->next != NULL) s->next->prev = s->prev;
  tn__mutex_unlock(&list->mu);
}

/* The operation that has waited longest, for the message of a time limit; the lock is held. */
static const tn_operation *late(const tn__sleeper *s)
{
  const tn_wait_token *t = s->tokens, *last = NULL;
  for (; t != NULL; t = t->next)
    if (!t->woken) last = t; /* the list has the latest first */
  return last == NULL ? NULL : last->op;
}

/* Wake-ups come from tokens, from the cancellation (a callback registered for the time of the
 * sleep) and from closing the session (the list of sleeping steps). All of these signal under the
 * lock, after the condition has changed. */
tn_status tn__sleep(const tn_step *step, uint64_t seen, tn_error *err)
{
  tn__sleeper *s = step->env->sleeper;
  bool failed = tn__step_failed(step); /* then it waits only for the calls that were cancelled */
  uint64_t key = 0;
  list_sleeper(step->env->sleepers, s);
  if (step->cancellation != NULL && !failed) key = tn_cancellation_register(step->cancellation, poke, s);
  if (key == 0 && step->cancellation != NULL && !failed && !tn_cancellation_is_cancelled(step->cancellation)) {
    unlist_sleeper(step->env->sleepers, s);
    return tn__no_memory(err, "step that waits", 0);
  }
  const tn_operation *op = NULL;
  int why = TN__GO_ON;
  tn__mutex_lock(&s->mu);
  while (s->wakes == seen && (failed || (why = tn__step_stop(step)) == TN__GO_ON)) {
    if (step->deadline_ns == 0 || failed) tn__cond_wait(&s->woken, &s->mu);
    else tn__cond_wait_until(&s->woken, &s->mu, step->deadline_ns);
  }
  if (why != TN__GO_ON) op = late(s);
  tn__mutex_unlock(&s->mu);
  if (key != 0) tn_cancellation_deregister(step->cancellation, key);
  unlist_sleeper(step->env->sleepers, s);
  return why == TN__GO_ON ? TN_OK : tn__step_stopped(why, op, err);
}

void tn__sleepers_init(tn__sleepers *list) { tn__mutex_init(&list->mu, "sleeping steps", TN_RANK_SLEEPERS); }
void tn__sleepers_fini(tn__sleepers *list) { tn__mutex_fini(&list->mu); }

void tn__sleepers_wake(tn__sleepers *list)
{
  tn__mutex_lock(&list->mu);
  for (tn__sleeper *s = list->first; s != NULL; s = s->next) poke(s);
  tn__mutex_unlock(&list->mu);
}
