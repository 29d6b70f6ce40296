/* SPDX-License-Identifier: Apache-2.0 */
/* Workers stay awake for the next step if steps follow each other closely, and only then. */
#include <core/pool/pool_internal.h>

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/support/pool_kit.h"

#define MS 1000000
#define LONG_US 20000 /* a spin longer than most pauses of a busy machine */

static fixture open_lingering(uint32_t spin_us, int32_t linger_us)
{
  fixture f;
  tn_error err = TN_ERROR_INIT;
  tn__client_config config = { .workers = 1, .spin_us = spin_us, .linger_us = linger_us };
  REQUIRE_OK(tn__pool_private(1, false, &f.pool, &err), &err);
  REQUIRE_OK(tn__client_create(f.pool, &config, &f.client, &err), &err);
  return f;
}

static void item(void *user, int64_t begin, int64_t end)
{
  busy(*(const int64_t *)user * (end - begin));
}

/* A step with a loop that is worth help; returns whether workers are to look for more work after
 * it. */
static bool step(const fixture *f, const void *kind)
{
  int64_t ns = 200000;
  tn__crew *crew = tn__crew_take_for(f->client, kind);
  CHECK(crew != NULL);
  bool awake = atomic_load(&crew->awake) != 0;
  tn__parallel_for(crew, 2, 1, (double)ns, item, &ns);
  tn__crew_put(crew);
  return awake;
}

/* Runs n steps in a row; returns how many expected a successor. */
static int steps(const fixture *f, int n)
{
  static int kind;
  int awake = 0;
  for (int i = 0; i < n; i++) awake += step(f, &kind);
  return awake;
}

static void pool_linger__the_next_step_is_expected_after_many(void)
{
  fixture f = open_lingering(LONG_US, -1);
  CHECK_INT(steps(&f, 20), 0);
  int best = steps(&f, 80); /* a long pause of the machine resets the count */
  CHECK_MSG(best > 0, "none of 80 steps in a row was expected");
  usleep(3 * LONG_US);
  CHECK_INT(steps(&f, 20), 0); /* a single late step ends the expectation */
  close_client(f);
}

static void pool_linger__no_lingering_without_time_to_spin(void)
{
  fixture f = open_lingering(LONG_US, 0);
  CHECK_INT(steps(&f, 100), 0);
  close_client(f);
  f = open_lingering(0, -1); /* workers that must not spin do not linger */
  CHECK_INT(steps(&f, 100), 0);
  close_client(f);
}

static double cpu_ms(void)
{
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 +
         (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
}

/* A pause after many steps in a row costs the time of one spin and no more. */
static void pool_linger__a_pause_costs_one_spin(void)
{
  fixture f = open_lingering(LONG_US, -1);
  steps(&f, 100);
  double before = cpu_ms();
  usleep(500000);
  double spent = cpu_ms() - before;
  CHECK_MSG(spent < 3.0 * LONG_US / 1000, "the pool took %.1f ms of CPU in half a second without steps", spent);
  close_client(f);
}

/* A lingering worker does not delay the close of its client. */
static void pool_linger__a_close_does_not_wait_for_lingering_workers(void)
{
  int64_t best = INT64_MAX;
  for (int i = 0; i < 5 && best > 100 * MS; i++) {
    fixture f = open_lingering(900000, -1);
    steps(&f, 60);
    int64_t begin = tn__now_ns();
    close_client(f);
    if (tn__now_ns() - begin < best) best = tn__now_ns() - begin;
  }
  CHECK_MSG(best <= 100 * MS, "the fastest close took %lld ms", (long long)best / MS);
}

TAP_MAIN(
  TAP_TEST(pool_linger__the_next_step_is_expected_after_many),
  TAP_TEST(pool_linger__no_lingering_without_time_to_spin),
  TAP_TEST(pool_linger__a_pause_costs_one_spin),
  TAP_TEST(pool_linger__a_close_does_not_wait_for_lingering_workers))
