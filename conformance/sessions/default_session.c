/* SPDX-License-Identifier: Apache-2.0 */
/* Default sessions: entering, leaving, and sessions destroyed while they are on a stack. */
#include "conformance/support/default_kit.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- a stack for each thread -------------------------------------------------------------------------------------- */

static void default_session__there_is_none_at_first(void) /* S-DEF-01 */
{
  ts t;
  CHECK_NULL(tn_session_default());
  ts_open(&t, 1);
  CHECK_NULL(tn_session_default());
  CHECK_INT(dk_run_two(t.session), TN_OK);
  CHECK_NULL(tn_session_default());
  ts_fini(&t);
}

typedef struct two_sessions {
  tn_session *other, *own;
} two_sessions;

static void *look_and_enter(void *arg)
{
  two_sessions *s = arg;
  CHECK_NULL(tn_session_default());
  CHECK_INT(tn_session_leave_default(s->other, NULL), TN_FAILED_PRECONDITION);
  CHECK_INT(tn_session_enter_default(s->own, NULL), TN_OK);
  CHECK(tn_session_default() == s->own);
  CHECK_INT(tn_session_leave_default(s->own, NULL), TN_OK);
  return NULL;
}

static void default_session__belongs_to_its_thread(void) /* S-DEF-02 */
{
  ts t;
  ts_open(&t, 1);
  two_sessions s = { t.session, dk_session(&t) };
  REQUIRE_OK(tn_session_enter_default(t.session, &t.err), &t.err);
  dk_on_thread(look_and_enter, &s);
  CHECK(tn_session_default() == t.session);
  CHECK_OK(tn_session_leave_default(t.session, &t.err), &t.err);
  tn_session_destroy(s.own);
  ts_fini(&t);
}

static void default_session__inner_one_wins(void) /* S-DEF-03 */
{
  ts t;
  ts_open(&t, 1);
  tn_session *inner = dk_session(&t);
  CHECK_OK(tn_session_enter_default(t.session, &t.err), &t.err);
  CHECK_OK(tn_session_enter_default(inner, &t.err), &t.err);
  CHECK_OK(tn_session_enter_default(t.session, &t.err), &t.err); /* entered a second time */
  CHECK(tn_session_default() == t.session);
  CHECK_OK(tn_session_leave_default(t.session, &t.err), &t.err);
  CHECK(tn_session_default() == inner);
  CHECK_OK(tn_session_leave_default(inner, &t.err), &t.err);
  CHECK(tn_session_default() == t.session);
  CHECK_OK(tn_session_leave_default(t.session, &t.err), &t.err);
  CHECK_NULL(tn_session_default());
  tn_session_destroy(inner);
  ts_fini(&t);
}

static void default_session__leaving_closes_nothing(void) /* S-DEF-04 */
{
  ts t;
  ts_open(&t, 1);
  CHECK_OK(tn_session_enter_default(t.session, &t.err), &t.err);
  CHECK_DOUBLE(dk_two(), 2, 0);
  CHECK_OK(tn_session_leave_default(t.session, &t.err), &t.err);
  CHECK_INT(dk_run_two(t.session), TN_OK);
  ts_fini(&t);
}

static void default_session__leaving_out_of_order_is_refused(void) /* S-DEF-05 */
{
  ts t;
  ts_open(&t, 1);
  tn_session *inner = dk_session(&t), *never = dk_session(&t);
  CHECK_STATUS(tn_session_leave_default(t.session, &t.err), TN_FAILED_PRECONDITION, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "of which there are 0");
  CHECK_OK(tn_session_enter_default(t.session, &t.err), &t.err);
  CHECK_OK(tn_session_enter_default(inner, &t.err), &t.err);
  CHECK_STATUS(tn_session_leave_default(t.session, &t.err), TN_FAILED_PRECONDITION, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "1 that was entered after it must be left first");
  CHECK_STATUS(tn_session_leave_default(never, &t.err), TN_FAILED_PRECONDITION, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "of which there are 2");
  CHECK(tn_session_default() == inner);
  CHECK_OK(tn_session_leave_default(inner, &t.err), &t.err);
  CHECK_OK(tn_session_leave_default(t.session, &t.err), &t.err);
  CHECK_NULL(tn_session_default());
  CHECK_STATUS(tn_session_leave_default(t.session, &t.err), TN_FAILED_PRECONDITION, &t.err);
  tn_session_destroy(inner);
  tn_session_destroy(never);
  ts_fini(&t);
}

static void default_session__null_is_refused(void)
{
  ts t;
  tn_session *out;
  ts_open(&t, 1);
  CHECK_STATUS(tn_session_enter_default(NULL, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STATUS(tn_session_leave_default(NULL, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STATUS(tn_session_open_scoped(t.options, t.graph, NULL, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STATUS(tn_session_open_interactive(t.options, t.graph, NULL, &t.err), TN_INVALID_ARGUMENT, &t.err);
  out = t.session;
  CHECK_STATUS(tn_session_open_scoped(NULL, t.graph, &out, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_NULL(out);
  out = t.session;
  CHECK_STATUS(tn_session_open_interactive(NULL, t.graph, &out, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_NULL(out);
  tn_session_release(NULL);
  ts_fini(&t);
}

static void default_session__stack_has_no_bottom(void)
{
  enum { DEEP = 10000 };
  ts t;
  ts_open(&t, 1);
  tn_session *other = dk_session(&t);
  for (int i = 0; i < DEEP; i++)
    REQUIRE_OK(tn_session_enter_default(i % 3 ? t.session : other, &t.err), &t.err);
  for (int i = DEEP; i-- > 0;)
    REQUIRE_OK(tn_session_leave_default(i % 3 ? t.session : other, &t.err), &t.err);
  CHECK_NULL(tn_session_default());
  tn_session_destroy(other);
  ts_fini(&t);
}

static void *enter_and_end(void *arg)
{
  CHECK_INT(tn_session_enter_default(arg, NULL), TN_OK);
  CHECK_INT(tn_session_enter_default(arg, NULL), TN_OK);
  return NULL;
}

/* When a thread ends, its stack is freed; the sessions on it stay open. */
static void default_session__stack_is_freed_with_its_thread(void)
{
  ts t;
  ts_open(&t, 1);
  dk_on_thread(enter_and_end, t.session);
  const uint64_t blocks = tn_test_live_blocks();
  for (int i = 0; i < 100; i++) dk_on_thread(enter_and_end, t.session);
  CHECK_INT(tn_test_live_blocks(), blocks);
  CHECK_INT(dk_run_two(t.session), TN_OK);
  ts_fini(&t);
}

static void default_session__fork_is_detected(void) /* S-THR-08 */
{
  ts t;
  ts_open(&t, 1);
  REQUIRE_OK(tn_session_enter_default(t.session, &t.err), &t.err);
  fflush(stdout);
  pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    alarm(20);
    tn_tensor *value = NULL;
    bool refused = tn_session_enter_default(t.session, NULL) == TN_FAILED_PRECONDITION &&
                   tn_session_leave_default(t.session, NULL) == TN_FAILED_PRECONDITION &&
                   tn_eval_name(NULL, "two", NULL, NULL, 0, &value, NULL) == TN_FAILED_PRECONDITION;
    tn_session_release(t.session);
    _exit(refused && tn_session_default() == NULL ? 0 : 1);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK_DOUBLE(dk_two(), 2, 0);
  CHECK_OK(tn_session_leave_default(t.session, &t.err), &t.err);
  ts_fini(&t);
}
/* --- sessions destroyed on a stack
 * -------------------------------------------------------------------------------- */

static void default_session__destroyed_one_leaves_the_stack(void) /* S-DEF-19 */
{
  ts t;
  ts_open(&t, 1);
  tn_session *a = dk_session(&t), *b = dk_session(&t);
  CHECK_OK(tn_session_enter_default(a, &t.err), &t.err);
  CHECK_OK(tn_session_enter_default(t.session, &t.err), &t.err);
  CHECK_OK(tn_session_enter_default(b, &t.err), &t.err);
  CHECK_OK(tn_session_enter_default(a, &t.err), &t.err);
  tn_session_destroy(a); /* it is on the stack twice */
  CHECK(tn_session_default() == b);
  tn_session_release(b);
  CHECK(tn_session_default() == t.session);
  CHECK_DOUBLE(dk_two(), 2, 0);
  CHECK_OK(tn_session_leave_default(t.session, &t.err), &t.err);
  CHECK_NULL(tn_session_default());
  ts_fini(&t);
}

enum { THREADS = 4 };

typedef struct holder {
  tn_session *shared, *own;
  atomic_int *entered, *gone;
  pthread_t thread;
} holder;

static void wait_for(atomic_int *flag, int n)
{
  while (atomic_load(flag) < n) ts_sleep_ms(1);
}

static void *hold(void *arg)
{
  holder *h = arg;
  CHECK_INT(tn_session_enter_default(h->own, NULL), TN_OK);
  CHECK_INT(tn_session_enter_default(h->shared, NULL), TN_OK);
  CHECK(tn_session_default() == h->shared);
  atomic_fetch_add(h->entered, 1);
  wait_for(h->gone, 1);
  CHECK(tn_session_default() == h->own);
  CHECK_DOUBLE(dk_two(), 2, 0);
  CHECK_INT(tn_session_leave_default(h->own, NULL), TN_OK);
  CHECK_NULL(tn_session_default());
  return NULL;
}

static void default_session__destroyed_one_leaves_all_stacks(void) /* S-DEF-19 */
{
  ts t;
  holder h[THREADS];
  atomic_int entered = 0, gone = 0;
  ts_open(&t, 1);
  tn_session *shared = dk_session(&t);
  for (int i = 0; i < THREADS; i++) {
    h[i] = (holder){ shared, dk_session(&t), &entered, &gone, 0 };
    REQUIRE_INT(pthread_create(&h[i].thread, NULL, hold, &h[i]), 0);
  }
  wait_for(&entered, THREADS);
  tn_session_destroy(shared);
  atomic_store(&gone, 1);
  for (int i = 0; i < THREADS; i++) pthread_join(h[i].thread, NULL);
  for (int i = 0; i < THREADS; i++) tn_session_destroy(h[i].own);
  ts_fini(&t);
}

static void *eval_until_gone(void *arg)
{
  holder *h = arg;
  tn_tensor *value = NULL;
  tn_status status;
  CHECK_INT(tn_session_enter_default(h->shared, NULL), TN_OK);
  atomic_fetch_add(h->entered, 1);
  do {
    status = tn_eval_name(NULL, "two", NULL, NULL, 0, &value, NULL);
    CHECK(status == TN_OK ? ts_float(value) == 2 : value == NULL);
    tn_tensor_unref(value);
  } while (status == TN_OK || status == TN_CANCELLED);
  CHECK_INT(status, TN_FAILED_PRECONDITION);
  return NULL;
}

/* Default sessions are destroyed while other threads evaluate in them: steps that have begun end,
 * later calls find no session. */
static void default_session__may_be_destroyed_during_evals(void) /* S-DEF-07, S-DEF-19 */
{
  ts t;
  ts_open(&t, 1);
  for (int round = 0; round < 40; round++) {
    holder h[THREADS];
    atomic_int entered = 0;
    tn_session *shared = dk_session(&t);
    for (int i = 0; i < THREADS; i++) {
      h[i] = (holder){ .shared = shared, .entered = &entered };
      REQUIRE_INT(pthread_create(&h[i].thread, NULL, eval_until_gone, &h[i]), 0);
    }
    wait_for(&entered, THREADS);
    if (round % 2) tn_session_destroy(shared);
    else tn_session_release(shared);
    for (int i = 0; i < THREADS; i++) pthread_join(h[i].thread, NULL);
  }
  ts_fini(&t);
}
/* --- memory ------------------------------------------------------------------------------------------------------- */

typedef struct life {
  ts *t;
  tn_status status;
} life;

static void *live_on_thread(void *arg)
{
  life *l = arg;
  tn_session *a = NULL, *b = NULL;
  tn_tensor *value = NULL;
  l->status = tn_session_open_scoped(l->t->options, l->t->graph, &a, NULL);
  if (l->status == TN_OK) l->status = tn_session_open_interactive(l->t->options, l->t->graph, &b, NULL);
  for (int i = 0; l->status == TN_OK && i < 40; i++) l->status = tn_session_enter_default(i % 2 ? a : b, NULL);
  if (l->status == TN_OK) l->status = tn_eval_name(NULL, "two", NULL, NULL, 0, &value, NULL);
  tn_tensor_unref(value);
  if (l->status != TN_OK && a == NULL) CHECK_NULL(tn_session_default());
  tn_session_release(a);
  tn_session_destroy(b);
  CHECK_NULL(tn_session_default());
  return NULL;
}

static tn_status whole_life(void *arg)
{
  life l = { .t = arg };
  dk_on_thread(live_on_thread, &l);
  return l.status;
}

static void default_session__survives_every_failed_allocation(void)
{
  ts t;
  ts_open(&t, 1);
  tn_test_oom_sweep(whole_life, &t);
  ts_fini(&t);
}

TAP_MAIN(
    TAP_TEST(default_session__there_is_none_at_first),
    TAP_TEST(default_session__belongs_to_its_thread),
    TAP_TEST(default_session__inner_one_wins),
    TAP_TEST(default_session__leaving_closes_nothing),
    TAP_TEST(default_session__leaving_out_of_order_is_refused),
    TAP_TEST(default_session__null_is_refused),
    TAP_TEST(default_session__stack_has_no_bottom),
    TAP_TEST(default_session__stack_is_freed_with_its_thread),
    TAP_TEST(default_session__fork_is_detected),
    TAP_TEST(default_session__destroyed_one_leaves_the_stack),
    TAP_TEST(default_session__destroyed_one_leaves_all_stacks),
    TAP_TEST(default_session__may_be_destroyed_during_evals),
    TAP_TEST(default_session__survives_every_failed_allocation))
