/* SPDX-License-Identifier: Apache-2.0 */
/* Gates: threads are counted without contending with each other, and the last thread to leave is
 * notified. */
#include "conformance/support/tap.h"

#include <core/base/threads/gate.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

static tn__gate gate;

static void gate__the_last_thread_to_leave_is_notified(void)
{
  tn__gate_open(&gate);
  CHECK(tn__gate_shut(&gate, 1)); /* no thread is inside */
  CHECK(tn__gate_is_empty(&gate));

  tn__gate_open(&gate);
  tn__gate_enter(&gate);
  CHECK_INT(tn__gate_leave(&gate), 0); /* it is not shut */
  tn__gate_enter(&gate);
  tn__gate_enter(&gate);
  CHECK(!tn__gate_shut(&gate, 7));
  CHECK(!tn__gate_is_empty(&gate));
  CHECK_INT(tn__gate_leave(&gate), 0);
  CHECK_INT(tn__gate_leave(&gate), 7);
  CHECK(tn__gate_is_empty(&gate));
}

/* A late entrant enters and leaves before the gate is opened again, or before and after. */
static void gate__late_entrants_do_no_harm(void)
{
  tn__gate_open(&gate);
  tn__gate_enter(&gate);
  CHECK(!tn__gate_shut(&gate, 1));
  CHECK_INT(tn__gate_leave(&gate), 1);
  tn__gate_enter(&gate);
  CHECK(tn__gate_is_empty(&gate));
  CHECK_INT(tn__gate_leave(&gate), 0);

  tn__gate_enter(&gate);
  tn__gate_open(&gate);
  CHECK(!tn__gate_shut(&gate, 2)); /* the late entrant counts as inside now */
  CHECK_INT(tn__gate_leave(&gate), 2);
}

enum { THREADS = TN__LANES + 2 };

typedef struct guest {
  pthread_t thread;
  pthread_barrier_t *inside;
  uint32_t number;
} guest;

static void *visit(void *arg)
{
  guest *g = arg;
  g->number = tn__thread_number();
  tn__gate_enter(&gate);
  pthread_barrier_wait(g->inside);
  pthread_barrier_wait(g->inside);
  CHECK_INT(tn__thread_number(), g->number);
  tn__gate_leave(&gate);
  return NULL;
}

/* Up to TN__LANES threads have a lane each, and no two lanes share a cache line. */
static void gate__threads_have_lanes_of_their_own(void)
{
  pthread_barrier_t inside;
  guest guests[TN__LANES];
  tn__gate_open(&gate);
  pthread_barrier_init(&inside, NULL, TN__LANES + 1);
  for (int i = 0; i < TN__LANES; i++) {
    guests[i] = (guest){ .inside = &inside };
    REQUIRE_INT(pthread_create(&guests[i].thread, NULL, visit, &guests[i]), 0);
  }
  pthread_barrier_wait(&inside);
  for (int i = 0; i < TN__LANES; i++) {
    CHECK_INT(atomic_load(&gate.lanes[i].word), 1);
    CHECK_INT((uintptr_t)&gate.lanes[i] % 64, 0);
    for (int k = 0; k < i; k++) CHECK(guests[k].number != guests[i].number);
  }
  pthread_barrier_wait(&inside);
  for (int i = 0; i < TN__LANES; i++) pthread_join(guests[i].thread, NULL);
  CHECK(tn__gate_shut(&gate, 1));
  pthread_barrier_destroy(&inside);
}

/* ---- an object that is used and given up ---- */

static _Atomic(int *) thing; /* the object guarded by the gate; NULL once it is given up */
static atomic_bool stop;
static atomic_int ends, uses, bad;

static void end(int *t)
{
  atomic_fetch_add(&ends, 1);
  *t = 0; /* late uses are reported by the sanitizers */
  free(t);
}

static _Atomic(int *) given_up;

static void *use(void *unused)
{
  (void)unused;
  while (!atomic_load(&stop)) {
    tn__gate_enter(&gate);
    int *t = atomic_load(&thing);
    if (t != NULL) {
      atomic_fetch_add(&uses, 1);
      atomic_fetch_add(&bad, *t != 42);
    }
    if (tn__gate_leave(&gate) != 0) end(atomic_exchange(&given_up, NULL));
    sched_yield();
  }
  return NULL;
}

static void gate__guards_an_object_in_use(void)
{
  enum { ROUNDS = 500 };
  pthread_t threads[THREADS];
  tn__gate_open(&gate);
  CHECK(tn__gate_shut(&gate, 1));
  for (int i = 0; i < THREADS; i++) REQUIRE_INT(pthread_create(&threads[i], NULL, use, NULL), 0);
  for (int i = 0; i < ROUNDS; i++) {
    int *t = malloc(sizeof *t);
    REQUIRE_PTR(t);
    *t = 42;
    tn__gate_open(&gate);
    atomic_store(&thing, t);
    while (i == 0 && atomic_load(&uses) == 0) sched_yield(); /* a busy machine may start the threads late */
    for (int k = 0; k < i % 50; k++) sched_yield();
    atomic_store(&given_up, t);
    atomic_store(&thing, NULL);
    if (tn__gate_shut(&gate, 1)) end(atomic_exchange(&given_up, NULL));
    while (atomic_load(&ends) <= i) sched_yield(); /* reopened when the object has ended, like a slot */
  }
  atomic_store(&stop, true);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  CHECK_INT(atomic_load(&ends), ROUNDS);
  CHECK_INT(atomic_load(&bad), 0);
  CHECK(atomic_load(&uses) > 0);
}

TAP_MAIN(
  TAP_TEST(gate__the_last_thread_to_leave_is_notified),
  TAP_TEST(gate__late_entrants_do_no_harm),
  TAP_TEST(gate__threads_have_lanes_of_their_own),
  TAP_TEST(gate__guards_an_object_in_use))
