/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that stay awake for the next step: where steps follow each other closely, and nowhere else. */
#include <core/pool/pool_internal.h>

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/support/pool_kit.h"

#define MS 1000000
#define LONG_US 20000 /* a spin that no pause of a busy machine reaches easily */

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

/* A step with a loop that is worth help; whether workers are to look on after it. */
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

/* So many steps in a row; how many of them found that the next was expected. */
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
  int best = steps(&f, 80); /* a machine that stops us for long makes it begin anew */
  CHECK_MSG(best > 0, "no step of 80 in a row was expected");
  usleep(3 * LONG_US);
  CHECK_INT(steps(&f, 20), 0); /* one that came late ends it */
  close_client(f);
}

static void pool_linger__asleep_means_asleep(void)
{
  fixture f = open_lingering(LONG_US, 0);
  CHECK_INT(steps(&f, 100), 0);
  close_client(f);
  f = open_lingering(0, -1); /* who is not to spin does not linger */
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

/* After many steps in a row, and then none: the time of one spin, not more. */
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

/* It does not keep who closes the client waiting. */
static void pool_linger__closing_does_not_wait_for_it(void)
{
  int64_t best = INT64_MAX;
  for (int i = 0; i < 5 && best > 100 * MS; i++) {
    fixture f = open_lingering(900000, -1);
    steps(&f, 60);
    int64_t begin = tn__now_ns();
    close_client(f);
    if (tn__now_ns() - begin < best) best = tn__now_ns() - begin;
  }
  CHECK_MSG(best <= 100 * MS, "a close took %lld ms at least", (long long)best / MS);
}

TAP_MAIN(
  TAP_TEST(pool_linger__the_next_step_is_expected_after_many),
  TAP_TEST(pool_linger__asleep_means_asleep),
  TAP_TEST(pool_linger__a_pause_costs_one_spin),
  TAP_TEST(pool_linger__closing_does_not_wait_for_it))
