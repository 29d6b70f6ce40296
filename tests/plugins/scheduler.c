/* SPDX-License-Identifier: Apache-2.0 */
/* Level (b) of the kit: a runtime with a thread of its own, which runs every other instruction;
 * the thread that called Run runs the others. The setting "wrong" selects a mistake: "twice",
 * "unknown", "never", "early". */
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include <tenon/runtime.h>

#include "runtime.h"

TN_PLUGIN_MANIFEST("runtime", "test.scheduler", "CPU", "0", "1.0.0", "Tests", "")

enum { MOST_WAITING = 4096 };

typedef struct item {
  tn_step *step;
  uint32_t instruction;
} item;

struct tn_runtime_session {
  pthread_mutex_t mu;
  pthread_cond_t changed;
  pthread_t helper;
  item items[MOST_WAITING]; /* a stack */
  size_t n;
  int stop;
  char wrong[16];
};

static const char *const settings[] = { "wrong" };

/* Takes the item added last, of one step or of any; the lock is held. */
static int take(tn_runtime_session *s, const tn_step *step, item *out)
{
  for (size_t i = s->n; i-- > 0;) {
    if (step != NULL && s->items[i].step != step) continue;
    *out = s->items[i];
    s->items[i] = s->items[--s->n];
    return 1;
  }
  return 0;
}

static void run(tn_runtime_session *s, item one)
{
  uint32_t numbers[2] = { one.instruction, one.instruction };
  if (strcmp(s->wrong, "unknown") == 0) numbers[1] = one.instruction + 1000000;
  tn_kit_run_instructions(one.step, numbers,
                          strcmp(s->wrong, "twice") == 0 || strcmp(s->wrong, "unknown") == 0 ? 2 : 1);
}

static void *help(void *arg)
{
  tn_runtime_session *s = arg;
  item one;
  pthread_mutex_lock(&s->mu);
  while (!s->stop) {
    if (strcmp(s->wrong, "early") == 0 || !take(s, NULL, &one)) {
      pthread_cond_wait(&s->changed, &s->mu);
      continue;
    }
    pthread_mutex_unlock(&s->mu);
    run(s, one);
    pthread_mutex_lock(&s->mu);
  }
  pthread_mutex_unlock(&s->mu);
  return NULL;
}

static void ready(void *user, tn_step *step, const uint32_t *instructions, const float *costs, size_t n)
{
  tn_runtime_session *s = user;
  (void)costs;
  if (strcmp(s->wrong, "never") == 0) return;
  pthread_mutex_lock(&s->mu);
  size_t i = 0;
  for (; i < n && s->n < MOST_WAITING; i++) s->items[s->n++] = (item){ step, instructions[i] };
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->mu);
  for (; i < n; i++) run(s, (item){ step, instructions[i] });
}

static void wait(void *user, tn_step *step)
{
  tn_runtime_session *s = user;
  item one;
  if (strcmp(s->wrong, "never") == 0) return;
  pthread_mutex_lock(&s->mu);
  if (strcmp(s->wrong, "early") == 0) {
    while (take(s, step, &one)) continue;
    pthread_mutex_unlock(&s->mu);
    return;
  }
  while (tn_kit_instructions_left(step) > 0) {
    if (!take(s, step, &one)) {
      pthread_cond_wait(&s->changed, &s->mu);
      continue;
    }
    pthread_mutex_unlock(&s->mu);
    run(s, one);
    pthread_mutex_lock(&s->mu);
  }
  pthread_mutex_unlock(&s->mu);
}

/* Signals are the program's: the thread blocks all of them (P-101). */
static int start_helper(tn_runtime_session *s)
{
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  int failed = pthread_create(&s->helper, NULL, help, s);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return failed;
}

static tn_status new_session(const tn_session_factory *self, const tn_session_options *options,
                             tn_runtime_session **out, tn_error *err)
{
  (void)self;
  const char *wrong = tn_session_options_setting(options, "wrong");
  tn_runtime_session *s = *out = tn_alloc(sizeof *s);
  if (s == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for a session");
  memset(s, 0, sizeof *s);
  if (wrong != NULL) strncat(s->wrong, wrong, sizeof s->wrong - 1);
  pthread_mutex_init(&s->mu, NULL);
  pthread_cond_init(&s->changed, NULL);
  if (start_helper(s) == 0) return TN_OK;
  tn_free(s);
  *out = NULL;
  return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no thread for a session");
}

static tn_bool accepts_options(const tn_session_factory *self, const tn_session_options *options)
{
  (void)self;
  return tn_session_options_check_settings(options, settings, 1, NULL) == TN_OK;
}

static void destroy_session(const tn_session_factory *self, tn_runtime_session *session)
{
  (void)self;
  pthread_mutex_lock(&session->mu);
  session->stop = 1;
  pthread_cond_broadcast(&session->changed);
  pthread_mutex_unlock(&session->mu);
  pthread_join(session->helper, NULL);
  pthread_cond_destroy(&session->changed);
  pthread_mutex_destroy(&session->mu);
  tn_free(session);
}

static tn_status prepare(const tn_session_factory *self, tn_runtime_session *session, const tn_plan *plan,
                         tn_executable **out, tn_error *err)
{
  (void)self;
  const tn_kit_scheduler scheduler = { TN_KIT_SCHEDULER_SIZE, session, ready, wait };
  return tn_kit_prepare_scheduled(plan, &scheduler, out, err);
}

static void release(const tn_session_factory *self, tn_runtime_session *session, tn_executable *executable)
{
  (void)self, (void)session;
  tn_kit_release(executable);
}

static tn_status step(const tn_session_factory *self, tn_runtime_session *session, tn_executable *executable,
                      tn_step *step, tn_error *err)
{
  (void)self, (void)session;
  return tn_kit_step(executable, step, err);
}

TEST_RUNTIME("test.scheduler", .prepare = prepare, .release = release, .step = step, .reset = test_reset)
