/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of the worker pool: tasks, wake-ups, loops. A separate program, since it links the core.
 *
 *     bench/pool [WORKERS]        default 1
 *
 * Loops and the same work on one thread are measured alternately, so the ratio also holds on a machine with other
 * load. */
#include <bench/bench.h>
#include <core/base/threads/lock.h>
#include <core/pool/pool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BATCH = 1000, ROUNDS = 301 };

static int64_t samples[2][ROUNDS];

static int by_size(const void *a, const void *b)
{
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static double median(int64_t *s, int n)
{
  qsort(s, (size_t)n, sizeof *s, by_size);
  return (double)s[n / 2];
}

static void nothing(tn__task *task) { (void)task; }

static bool at_once(void *user)
{
  (void)user;
  return true;
}

static void tasks(tn__pool_client *client)
{
  static tn__task all[BATCH];
  for (int r = 0; r < ROUNDS; r++) {
    int64_t t = tn__now_ns();
    for (int i = 0; i < BATCH; i++) tn__crew_put(tn__crew_take(client));
    samples[0][r] = tn__now_ns() - t;
    tn__crew *crew = tn__crew_take(client);
    t = tn__now_ns();
    for (int i = 0; i < BATCH; i++) {
      all[i].run = nothing;
      tn__crew_submit(crew, &all[i], 1);
    }
    while (tn__crew_help(crew)) continue;
    samples[1][r] = tn__now_ns() - t;
    tn__crew_wait(crew, at_once, NULL, 0);
    tn__crew_put(crew);
  }
  printf("%-34s %10.1f ns\n", "crew taken and put", median(samples[0], ROUNDS) / BATCH);
  printf("%-34s %10.1f ns\n", "task submitted and run by its thread", median(samples[1], ROUNDS) / BATCH);
}

/* ---- wake-ups ---- */

typedef struct late {
  tn__task task;
  tn__crew *crew;
  int64_t at;
  _Atomic uint32_t left;
} late;

static void note_time(tn__task *task)
{
  late *l = (late *)task;
  l->at = tn__now_ns();
  tn__count_down(l->crew, &l->left);
}

static void wake_ups(tn__pool_client *client)
{
  int n = 0;
  for (int r = 0; r < ROUNDS; r++) {
    late l = { .task.run = note_time, .left = 1 };
    usleep(300); /* lets the worker fall asleep */
    l.crew = tn__crew_take(client);
    int64_t t = tn__now_ns();
    tn__crew_submit(l.crew, &l.task, 1e9);
    int64_t called = tn__now_ns();
    while (!tn__counted_down(&l.left) && tn__now_ns() - t < 20000000) continue; /* the owner does not help */
    if (tn__counted_down(&l.left)) {
      samples[0][n] = called - t;
      samples[1][n++] = l.at - t;
    }
    tn__crew_wait(l.crew, tn__counted_down, &l.left, 0);
    tn__crew_put(l.crew);
  }
  if (n == 0) return;
  printf("%-34s %10.2f us\n", "wake-up: what the caller spends", median(samples[0], n) / 1e3);
  printf("%-34s %10.2f us\n", "wake-up: until the task runs", median(samples[1], n) / 1e3);
}

/* ---- loops ---- */

static float data[1 << 20];

static void add_part(void *user, int64_t begin, int64_t end)
{
  float add = *(const float *)user;
  for (int64_t i = begin; i < end; i++) {
    float x = data[i];
    x = x * 0.5f + add;
    x = x * 0.5f + add;
    x = x * 0.5f + add;
    data[i] = x;
  }
}

static void (*volatile add_fn)(void *user, int64_t begin, int64_t end) = add_part; /* the same code in every loop */

static double item_ns(float *add)
{
  int64_t best = INT64_MAX;
  for (int r = 0; r < 50; r++) {
    int64_t t = tn__now_ns();
    add_fn(add, 0, 1 << 14);
    t = tn__now_ns() - t;
    if (t < best) best = t;
  }
  return (double)best / (1 << 14);
}

static void loops(tn__pool_client *client)
{
  float add = 1;
  double item = item_ns(&add);
  printf("\n%-14s %14s %14s %8s\n", "loop of", "one thread, us", "shared, us", "ratio");
  for (double ns = 1000; ns < 1.1e6; ns *= ns < 3e3 || ns > 0.9e5 ? 10 : 3.1623) {
    int64_t n = (int64_t)(ns / item) < 1 << 20 ? (int64_t)(ns / item) : 1 << 20;
    tn__crew *crew = tn__crew_take(client);
    for (int r = 0; r < ROUNDS; r++) {
      int64_t t = tn__now_ns();
      add_fn(&add, 0, n);
      samples[0][r] = tn__now_ns() - t;
      t = tn__now_ns();
      tn__parallel_for(crew, n, 256, item, add_fn, &add);
      samples[1][r] = tn__now_ns() - t;
    }
    tn__crew_put(crew);
    double one = median(samples[0], ROUNDS), shared = median(samples[1], ROUNDS);
    printf("%8.0f us    %14.2f %14.2f %8.2f\n", ns / 1e3, one / 1e3, shared / 1e3, one / shared);
  }
}

/* Steps of many consecutive loops: the worker is already awake, so the cost of a loop is its hand-over. */
static void steps(tn__pool_client *client)
{
  enum { LOOPS = 200, STEPS = 101 };
  float add = 1;
  double item = item_ns(&add);
  printf("\n%-14s %14s %14s %8s %16s\n", "200 loops of", "one thread, us", "shared, us", "ratio", "lost a loop, us");
  for (int us = 5; us <= 80; us *= 2) {
    int64_t n = (int64_t)(us * 1e3 / item) < 1 << 20 ? (int64_t)(us * 1e3 / item) : 1 << 20;
    for (int r = 0; r < STEPS; r++) {
      int64_t t = tn__now_ns();
      for (int i = 0; i < LOOPS; i++) add_fn(&add, 0, n);
      samples[0][r] = tn__now_ns() - t;
      t = tn__now_ns();
      tn__crew *crew = tn__crew_take_for(client, (char *)samples + us);
      for (int i = 0; i < LOOPS; i++) tn__parallel_for(crew, n, 256, item, add_fn, &add);
      tn__crew_put(crew);
      samples[1][r] = tn__now_ns() - t;
    }
    double one = median(samples[0], STEPS) / LOOPS, shared = median(samples[1], STEPS) / LOOPS;
    printf("%8d us    %14.2f %14.2f %8.2f %16.2f\n", us, one / 1e3, shared / 1e3, one / shared,
           (shared - one / 2) / 1e3);
  }
}

int main(int argc, char **argv)
{
  tn_error err = TN_ERROR_INIT;
  tn__pool *pool;
  tn__pool_client *client;
  tn__client_config config = { .workers = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1, .spin_us = TN__SPIN_US };
  bench_check(tn__pool_private(config.workers, false, &pool, &err), &err, "pool");
  bench_check(tn__client_create(pool, &config, &client, &err), &err, "client");
  printf("%u usable CPUs, %u workers and the caller\n", tn__usable_cpus(), config.workers);
  tasks(client);
  if (config.workers > 0) wake_ups(client);
  loops(client);
  steps(client);
  tn__client_destroy(client);
  tn__pool_unref(pool);
  return 0;
}
