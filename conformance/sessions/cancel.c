/* SPDX-License-Identifier: Apache-2.0 */
/* Cancellations: callbacks exactly once, children, threads. */
#include <pthread.h>
#include <stdatomic.h>
#include <conformance/support/oom.h>
#include <conformance/support/tap.h>
#include <tenon/tenon.h>
#include <unistd.h>

static void count(void *user) { atomic_fetch_add((_Atomic int *)user, 1); }

static tn_cancellation *make(tn_cancellation *parent)
{
  tn_cancellation *c = NULL;
  CHECK_INT(tn_cancellation_create(parent, &c, NULL), TN_OK);
  return c;
}

static void cancel__callback_runs_once(void) /* S-CAN-08 */
{
  tn_cancellation *c = make(NULL);
  _Atomic int n = 0;
  CHECK(tn_cancellation_register(c, count, &n) != 0);
  CHECK(!tn_cancellation_is_cancelled(c));
  tn_cancellation_cancel(c);
  tn_cancellation_cancel(c);
  CHECK_INT(n, 1);
  CHECK(tn_cancellation_is_cancelled(c));
  tn_cancellation_unref(c);
}

static void cancel__register_after_cancel_calls_nothing(void) /* S-CAN-08 */
{
  tn_cancellation *c = make(NULL);
  _Atomic int n = 0;
  tn_cancellation_cancel(c);
  CHECK(tn_cancellation_register(c, count, &n) == 0);
  CHECK_INT(n, 0);
  tn_cancellation_unref(c);
}

static void cancel__deregistered_callback_does_not_run(void) /* S-CAN-09 */
{
  tn_cancellation *c = make(NULL);
  _Atomic int n = 0;
  uint64_t key = tn_cancellation_register(c, count, &n), other = tn_cancellation_register(c, count, &n);
  CHECK(tn_cancellation_deregister(c, key));
  CHECK(!tn_cancellation_deregister(c, key));
  tn_cancellation_cancel(c);
  CHECK_INT(n, 1);
  CHECK(!tn_cancellation_try_deregister(c, other));
  tn_cancellation_unref(c);
}

static void cancel__child_follows_parent_only(void) /* S-CAN-11 */
{
  tn_cancellation *parent = make(NULL), *a = make(parent), *b = make(parent);
  tn_cancellation_cancel(a);
  CHECK(!tn_cancellation_is_cancelled(parent));
  CHECK(!tn_cancellation_is_cancelled(b));
  tn_cancellation_unref(a);
  tn_cancellation_cancel(parent);
  CHECK(tn_cancellation_is_cancelled(b));
  tn_cancellation *late = make(parent);
  CHECK(tn_cancellation_is_cancelled(late));
  tn_cancellation_unref(late);
  tn_cancellation_unref(b);
  tn_cancellation_unref(parent);
}

static void give_up(void *child) { tn_cancellation_unref(child); }

static void cancel__child_given_up_by_its_own_callback(void) /* S-CAN-11 */
{
  tn_cancellation *parent = make(NULL), *child = make(parent);
  _Atomic int n = 0;
  CHECK(tn_cancellation_register(child, count, &n) != 0);
  CHECK(tn_cancellation_register(child, give_up, child) != 0); /* runs first */
  tn_cancellation_cancel(parent);
  CHECK_INT(n, 1);
  tn_cancellation_unref(parent);
}

typedef struct slow {
  tn_cancellation *c;
  _Atomic int begun, ended, from_inside;
  uint64_t key;
} slow;

static void slow_callback(void *user)
{
  slow *s = user;
  atomic_store(&s->begun, 1);
  usleep(50000);
  s->from_inside = tn_cancellation_deregister(s->c, s->key); /* from its own callback: must not wait for itself */
  atomic_store(&s->ended, 1);
}

static void *cancel_thread(void *user)
{
  tn_cancellation_cancel(((slow *)user)->c);
  return NULL;
}

static void cancel__deregister_waits_for_the_one_that_runs(void) /* S-CAN-09 */
{
  slow s = { .c = make(NULL) };
  s.key = tn_cancellation_register(s.c, slow_callback, &s);
  pthread_t t;
  pthread_create(&t, NULL, cancel_thread, &s);
  while (!atomic_load(&s.begun)) usleep(100);
  CHECK(!tn_cancellation_try_deregister(s.c, s.key)); /* immediately */
  CHECK(!atomic_load(&s.ended));
  CHECK(!tn_cancellation_deregister(s.c, s.key));
  CHECK(atomic_load(&s.ended));
  CHECK_INT(s.from_inside, 0);
  pthread_join(t, NULL);
  tn_cancellation_unref(s.c);
}

static void reenter(void *user)
{
  tn_cancellation *c = user;
  CHECK(tn_cancellation_is_cancelled(c));
  CHECK(tn_cancellation_register(c, count, NULL) == 0); /* S-CAN-10: no lock is held here */
}

static void cancel__callbacks_run_without_the_lock(void) /* S-CAN-10 */
{
  tn_cancellation *c = make(NULL);
  tn_cancellation_register(c, reenter, c);
  tn_cancellation_cancel(c);
  tn_cancellation_unref(c);
}

static tn_status create_two(void *arg)
{
  (void)arg;
  tn_cancellation *parent, *child;
  tn_status st = tn_cancellation_create(NULL, &parent, NULL);
  if (st != TN_OK) return st;
  st = tn_cancellation_create(parent, &child, NULL);
  if (st == TN_OK) tn_cancellation_unref(child);
  tn_cancellation_unref(parent);
  return st;
}

static void cancel__survives_lack_of_memory(void) { tn_test_oom_sweep(create_two, NULL); }

TAP_MAIN(
  TAP_TEST(cancel__callback_runs_once),
  TAP_TEST(cancel__register_after_cancel_calls_nothing),
  TAP_TEST(cancel__deregistered_callback_does_not_run),
  TAP_TEST(cancel__child_follows_parent_only),
  TAP_TEST(cancel__child_given_up_by_its_own_callback),
  TAP_TEST(cancel__deregister_waits_for_the_one_that_runs),
  TAP_TEST(cancel__callbacks_run_without_the_lock),
  TAP_TEST(cancel__survives_lack_of_memory))
