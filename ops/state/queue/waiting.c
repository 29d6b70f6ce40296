/* SPDX-License-Identifier: Apache-2.0 */
/* Places where steps wait for one another. */
#include <core/base/alloc.h>
#include <ops/state/queue/waiting.h>

#include <string.h>

void tn__waitable_init(tn__waitable *place, const char *name)
{
  tn__mutex_init(&place->mu, name, TN_RANK_WAITING);
  place->served = (tn__line){ NULL, NULL };
}

void tn__waitable_fini(tn__waitable *place) { tn__mutex_fini(&place->mu); }

void tn__waitable_lock(tn__waitable *place) { tn__mutex_lock(&place->mu); }

void tn__waitable_unlock(tn__waitable *place)
{
  tn__attempt *served = place->served.first;
  place->served = (tn__line){ NULL, NULL };
  tn__mutex_unlock(&place->mu);
  while (served != NULL) { /* an attempt may be freed as soon as it is woken */
    tn__attempt *next = served->next;
    if (served->token != NULL) tn_wake(served->token);
    served = next;
  }
}

void tn__line_join(tn__line *line, tn__attempt *attempt)
{
  attempt->line = line;
  attempt->next = NULL;
  attempt->previous = line->last;
  if (line->last != NULL) line->last->next = attempt;
  else line->first = attempt;
  line->last = attempt;
}

static void take_out(tn__attempt *attempt)
{
  tn__line *line = attempt->line;
  if (line == NULL) return;
  if (attempt->next != NULL) attempt->next->previous = attempt->previous;
  else line->last = attempt->previous;
  if (attempt->previous != NULL) attempt->previous->next = attempt->next;
  else line->first = attempt->next;
  attempt->line = NULL;
}

void tn__attempt_serve(tn__attempt *attempt, tn_status status)
{
  take_out(attempt);
  attempt->status = status;
  attempt->served = true;
  tn__line_join(&attempt->place->served, attempt);
  attempt->line = NULL;
}

void tn__attempt_init(tn__attempt *attempt, tn__waitable *place, tn_resource *resource,
                      void (*leave)(tn__attempt *attempt))
{
  *attempt = (tn__attempt){ .place = place, .held = tn_resource_ref(resource), .leave = leave };
}

void tn__attempt_fini(tn__attempt *attempt)
{
  tn_resource_unref(attempt->held);
  attempt->held = NULL;
}

void tn__attempt_cancel(tn__attempt *attempt)
{
  tn__waitable *place = attempt->place;
  tn_resource *held = tn_resource_ref(attempt->held); /* the attempt's own is released once it is woken */
  tn__waitable_lock(place);
  if (!attempt->served) {
    bool waited = attempt->line != NULL;
    take_out(attempt);
    if (waited) attempt->leave(attempt);
    tn__attempt_serve(attempt, TN_CANCELLED);
  }
  tn__waitable_unlock(place);
  tn_resource_unref(held);
}

static void cancel(void *user, tn_wait_token *token)
{
  (void)token;
  tn__attempt_cancel(user);
}

/* Makes the kernel wait: stores the attempt in ctx->waiting and calls `enter` under the lock, which
 * joins a line and serves attempts that can be served. Returns TN_PENDING, or the error of
 * tn_kernel_wait, in which case enter was not called. */
static tn_status attempt_wait(tn_kernel_ctx *ctx, tn__attempt *attempt, void (*enter)(tn__attempt *attempt))
{
  tn_status st = tn_kernel_wait(ctx, cancel, attempt, &attempt->token);
  if (st != TN_OK) return st;
  ctx->waiting = attempt;
  tn__waitable_lock(attempt->place);
  if (!attempt->served) enter(attempt); /* already served if the step was cancelled in the meantime */
  tn__waitable_unlock(attempt->place);
  return TN_PENDING;
}

tn_status tn__attempt_submit(tn_kernel_ctx *ctx, tn__attempt *attempt, const tn__attempt_kind *kind)
{
  tn_status st;
  tn__waitable_lock(attempt->place);
  bool done = kind->attempt(attempt);
  tn__waitable_unlock(attempt->place);
  if (done) {
    st = kind->finish(ctx, attempt);
    kind->release(attempt);
    return st;
  }
  tn__attempt *a = tn__alloc(kind->size);
  if (a == NULL) {
    kind->release(attempt);
    return tn__no_memory(ctx->err, "what waits", kind->size);
  }
  memcpy(a, attempt, kind->size);
  st = attempt_wait(ctx, a, kind->enter);
  if (st == TN_PENDING) return st;
  kind->release(a);
  tn__free(a, kind->size);
  return st;
}

tn_status tn__attempt_resume(tn_kernel_ctx *ctx, const tn__attempt_kind *kind)
{
  tn__attempt *a = ctx->waiting;
  ctx->waiting = NULL;
  tn_status st = kind->finish(ctx, a);
  kind->release(a);
  tn__free(a, kind->size);
  return st;
}
