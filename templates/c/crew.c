/* SPDX-License-Identifier: Apache-2.0 */
/* Of the ready instructions, the longest runs first. Implement your own order in `take`. */
#include "crew.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

typedef struct item {
  tn_step *step;
  uint32_t instruction;
  float cost;
} item;

struct crew {
  pthread_mutex_t lock;
  pthread_cond_t changed; /* signalled when an instruction is ready, a part is over, or the crew closes */
  item *items;            /* ready instructions of all steps */
  size_t n, room;
  int closed;
  int n_helpers;
  pthread_t helpers[MOST_THREADS];
};

/* Removes and returns the longest instruction, of one step or (NULL) of any. Call with the lock
 * held. */
static int take(crew *c, const tn_step *step, item *out)
{
  item *best = NULL;
  for (item *i = c->items; i < c->items + c->n; i++)
    if ((step == NULL || i->step == step) && (best == NULL || i->cost > best->cost)) best = i;
  if (best == NULL) return 0;
  *out = *best;
  *best = c->items[--c->n];
  return 1;
}

/* Runs ready instructions until the end: a helper's end is that of the crew, a step's own thread's
 * that of the part. */
static void work(crew *c, tn_step *step)
{
  item one;
  pthread_mutex_lock(&c->lock);
  while (step == NULL ? !c->closed : tn_kit_instructions_left(step) > 0) {
    if (!take(c, step, &one)) {
      pthread_cond_wait(&c->changed, &c->lock);
      continue;
    }
    pthread_mutex_unlock(&c->lock);
    tn_kit_run_instructions(one.step, &one.instruction, 1);
    pthread_mutex_lock(&c->lock);
  }
  pthread_mutex_unlock(&c->lock);
}

static void *help(void *c)
{
  work(c, NULL);
  return NULL;
}

/* Makes room for n more. Call with the lock held. */
static int reserve(crew *c, size_t n)
{
  if (c->n + n <= c->room) return 1;
  size_t room = 2 * (c->n + n);
  item *items = tn_alloc(room * sizeof *items);
  if (items == NULL) return 0;
  if (c->n > 0) memcpy(items, c->items, c->n * sizeof *items);
  tn_free(c->items);
  c->items = items;
  c->room = room;
  return 1;
}

/* n = 0: the part is over, which `work` must check. */
void crew_ready(void *user, tn_step *step, const uint32_t *instructions, const float *costs, size_t n)
{
  crew *c = user;
  pthread_mutex_lock(&c->lock);
  int kept = reserve(c, n);
  for (size_t i = 0; kept && i < n; i++) c->items[c->n++] = (item){ step, instructions[i], costs[i] };
  pthread_cond_broadcast(&c->changed);
  pthread_mutex_unlock(&c->lock);
  if (!kept) tn_kit_run_instructions(step, instructions, n); /* no memory: this thread runs them all */
}

void crew_wait(void *user, tn_step *step) { work(user, step); }

void crew_close(crew *c)
{
  pthread_mutex_lock(&c->lock);
  c->closed = 1;
  pthread_cond_broadcast(&c->changed);
  pthread_mutex_unlock(&c->lock);
  for (int i = 0; i < c->n_helpers; i++) pthread_join(c->helpers[i], NULL);
  pthread_cond_destroy(&c->changed);
  pthread_mutex_destroy(&c->lock);
  tn_free(c->items);
  tn_free(c);
}

/* Signals are for the program: helpers block all of them. */
static int start_helper(crew *c)
{
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  int failed = pthread_create(&c->helpers[c->n_helpers], NULL, help, c);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return failed;
}

tn_status crew_open(int threads, crew **out, tn_error *err)
{
  crew *c = tn_alloc(sizeof *c);
  *out = NULL;
  if (c == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for a session");
  memset(c, 0, sizeof *c);
  pthread_mutex_init(&c->lock, NULL);
  pthread_cond_init(&c->changed, NULL);
  while (c->n_helpers < threads - 1) {
    if (start_helper(c) != 0) {
      crew_close(c);
      return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "the system gives no more threads");
    }
    c->n_helpers++;
  }
  *out = c;
  return TN_OK;
}
