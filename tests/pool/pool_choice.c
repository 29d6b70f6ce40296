/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of a client's pool, and of its workers' CPUs. */
#define _GNU_SOURCE
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/pool_kit.h"

static void pool_choice__names_are_shared(void) /* S-CFG-13, S-CFG-14 */
{
  tn_error err = TN_ERROR_INIT;
  tn__pool *a, *b, *c;
  REQUIRE_OK(tn__pool_named("first", 3, &a, &err), &err);
  REQUIRE_OK(tn__pool_named("second", 2, &b, &err), &err);
  CHECK(a != b);
  REQUIRE_OK(tn__pool_named("first", 3, &c, &err), &err);
  CHECK(a == c);
  CHECK_STATUS(tn__pool_named("first", 4, &c, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_NULL(c);
  CHECK_CONTAINS(tn_error_message(&err), "'first' has 3 threads, but 4 were requested");
  tn_error_clear(&err);
  tn__pool_unref(a);
  CHECK_STATUS(tn__pool_named("first", 4, &c, &err), TN_INVALID_ARGUMENT, &err);
  tn__pool_unref(a);
  REQUIRE_OK(tn__pool_named("first", 4, &c, &err), &err); /* no client has it any more */
  CHECK_INT(tn__pool_workers(c), 4);
  tn__pool_unref(b);
  tn__pool_unref(c);
  tn_error_clear(&err);
}

static void pool_choice__default_has_the_usable_cpus(void) /* S-CFG-11 */
{
  tn_error err = TN_ERROR_INIT;
  tn__pool *a, *b;
  uint32_t cpus = tn__usable_cpus();
  CHECK(cpus >= 1);
  CHECK((long)cpus <= sysconf(_SC_NPROCESSORS_CONF));
  REQUIRE_OK(tn__pool_default(&a, &err), &err);
  REQUIRE_OK(tn__pool_default(&b, &err), &err);
  CHECK(a == b);
  CHECK_INT(tn__pool_workers(a), cpus);
  tn__pool_unref(a);
  tn__pool_unref(b);
}

#if defined(__linux__)
enum { PINNED = 3 };
static _Atomic int cpu_of[PINNED + 1]; /* of each worker, + 1; -1: it has several */

static void note_cpu(void *user, int64_t begin, int64_t end)
{
  cpu_set_t set;
  uint32_t number = tn__worker_number();
  int cpu = 0;
  (void)user;
  if (number != 0 && sched_getaffinity(0, sizeof set, &set) == 0) {
    while (!CPU_ISSET(cpu, &set)) cpu++;
    atomic_store(&cpu_of[number], CPU_COUNT(&set) == 1 ? cpu + 1 : -1);
  }
  busy(20000 * (end - begin));
}

/* Each worker gets the next CPU, whichever thread starts it: most are started by a worker,
 * itself pinned. */
static void pool_choice__pinned_workers_are_spread(void)
{
  cpu_set_t all;
  int cpus[CPU_SETSIZE], n = 0, tries = 0;
  if (sched_getaffinity(0, sizeof all, &all) != 0) TAP_SKIP("there are more CPUs than the test supports");
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET(cpu, &all)) cpus[n++] = cpu;
  fixture f;
  tn_error err = TN_ERROR_INIT;
  tn__client_config config = { .workers = PINNED, .spin_us = 0 };
  REQUIRE_OK(tn__pool_private(PINNED, true, &f.pool, &err), &err);
  REQUIRE_OK(tn__client_create(f.pool, &config, &f.client, &err), &err);
  while (tries++ < 100 && (atomic_load(&cpu_of[PINNED]) == 0 || atomic_load(&cpu_of[1]) == 0)) {
    tn__crew *crew = tn__crew_take(f.client);
    tn__parallel_for(crew, 1000, 1, 20000, note_cpu, NULL);
    tn__crew_put(crew);
  }
  for (int i = 1; i <= PINNED; i++)
    if (atomic_load(&cpu_of[i]) != 0) CHECK_INT(atomic_load(&cpu_of[i]) - 1, cpus[i % n]);
  CHECK(atomic_load(&cpu_of[1]) != 0);
  close_client(f);
}

static _Atomic int shared; /* parts on a worker that might have used the caller's CPU, + 1 */

static void note_sharing(void *user, int64_t begin, int64_t end)
{
  cpu_set_t set;
  if (tn__worker_number() != 0 && sched_getaffinity(0, sizeof set, &set) == 0)
    atomic_fetch_add(&shared, CPU_ISSET(*(int *)user, &set) ? 1000 : 1);
  busy(20000 * (end - begin));
}

/* The caller is pinned to one CPU. A worker that it wakes then avoids that CPU. */
static void pool_choice__workers_avoid_the_callers_cpu(void)
{
  cpu_set_t all, one;
  int cpu = 0;
  if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < 2) TAP_SKIP("needs several CPUs, not too many");
  fixture f = open_client(1, 0);
  for (int turn = 0; turn < 6; turn++) {
    while (!CPU_ISSET(cpu, &all)) cpu = (cpu + 1) % CPU_SETSIZE;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    int found = 0; /* a worker that was still awake was not woken */
    for (int tries = 0; tries < 100 && (found == 0 || found >= 1000); tries++) {
      usleep(1000); /* the worker usually sleeps by then */
      atomic_store(&shared, 0);
      if (turn > 0) REQUIRE_INT(sched_setaffinity(0, sizeof one, &one), 0); /* it was started before this */
      tn__crew *crew = tn__crew_take(f.client);
      tn__parallel_for(crew, 1000, 1, 20000, note_sharing, &cpu);
      tn__crew_put(crew);
      found = atomic_load(&shared);
    }
    if (turn > 0) CHECK_MSG(found < 1000, "a worker may run on CPU %d, its caller's", cpu);
    REQUIRE_INT(sched_setaffinity(0, sizeof all, &all), 0);
    cpu = (cpu + 1) % CPU_SETSIZE;
  }
  close_client(f);
}
#else
static void pool_choice__pinned_workers_are_spread(void) { TAP_SKIP("no CPU affinity on this system"); }
static void pool_choice__workers_avoid_the_callers_cpu(void) { TAP_SKIP("no CPU affinity on this system"); }
#endif

TAP_MAIN(
  TAP_TEST(pool_choice__names_are_shared),
  TAP_TEST(pool_choice__default_has_the_usable_cpus),
  TAP_TEST(pool_choice__pinned_workers_are_spread),
  TAP_TEST(pool_choice__workers_avoid_the_callers_cpu))
