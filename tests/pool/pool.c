/* SPDX-License-Identifier: Apache-2.0 */
/* The worker pool: deques, crews, quotas, loops, sleep. */
#define _GNU_SOURCE
#include <core/base/plugin_call.h>
#include <core/exec/step/env.h>
#include <core/exec/step/run_state.h>
#include <core/pool/deque.h>

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <core/base/threads/lock.h>
#include <tenon/plugins.h>

#include "conformance/support/oom.h"
#include "tests/support/pool_kit.h"
#include "conformance/support/tap.h"
#include "conformance/support/threads.h"

#define MS 1000000

static uint32_t any(uint64_t *random, uint32_t below)
{
  *random ^= *random << 13;
  *random ^= *random >> 7;
  *random ^= *random << 17;
  return (uint32_t)(*random >> 33) % below;
}

/* ---- deques ---- */

enum { ITEMS = 200000, THIEVES = 3 };
static _Atomic unsigned char taken[ITEMS + 1];
static tn__deque deque;
static _Atomic int thieves_stop;

static void take_item(void *item) { atomic_fetch_add(&taken[(uintptr_t)item], 1); }

static void *thief(void *arg)
{
  for (void *item; !atomic_load(&thieves_stop) || tn__deque_count(&deque) > 0;)
    if ((item = tn__deque_steal(&deque)) != NULL) take_item(item);
  return arg;
}

static void pool__deque_gives_each_item_once(void)
{
  pthread_t threads[THIEVES];
  uint64_t random = 88172645463325252u;
  tn__deque_init(&deque);
  memset((void *)taken, 0, sizeof taken);
  atomic_store(&thieves_stop, 0);
  CHECK_NULL(tn__deque_pop(&deque));
  CHECK_NULL(tn__deque_steal(&deque));
  for (int i = 0; i < THIEVES; i++) REQUIRE_INT(pthread_create(&threads[i], NULL, thief, NULL), 0);
  for (uintptr_t next = 1; next <= ITEMS;) {
    uint32_t n = 1 + any(&random, random & 64 ? 300 : 3), back = any(&random, n + 1);
    for (; n > 0 && next <= ITEMS; n--) REQUIRE(tn__deque_push(&deque, (void *)next++));
    for (void *item; back > 0 && (item = tn__deque_pop(&deque)) != NULL; back--) take_item(item);
  }
  for (void *item; (item = tn__deque_pop(&deque)) != NULL;) take_item(item);
  atomic_store(&thieves_stop, 1);
  for (int i = 0; i < THIEVES; i++) pthread_join(threads[i], NULL);
  int wrong = 0;
  for (int i = 1; i <= ITEMS; i++) wrong += atomic_load(&taken[i]) != 1;
  CHECK_INT(wrong, 0);
  tn__deque_fini(&deque);
}

/* ---- tasks ---- */

/* A tree of tasks: each submits its children, and is counted. */
typedef struct node {
  tn__task task;
  tn__crew *crew;
  uint32_t number, n;
  struct node *all;
  _Atomic uint32_t *left;
  _Atomic unsigned char runs;
} node;

static void run_node(tn__task *task)
{
  node *self = (node *)task;
  atomic_fetch_add(&self->runs, 1);
  for (uint32_t child = 2 * self->number + 1; child <= 2 * self->number + 2 && child < self->n; child++)
    tn__crew_submit(self->crew, &self->all[child].task, child % 7 == 0 ? 50000 : 100);
  if (self->number % 64 == 0) busy(5000);
  tn__count_down(self->crew, self->left);
}

/* A step of n tasks; true if each ran once. */
static bool run_tree(tn__pool_client *client, uint32_t n)
{
  node *all = calloc(n, sizeof *all);
  _Atomic uint32_t left = n;
  tn__crew *crew = tn__crew_take(client);
  REQUIRE_PTR(crew);
  CHECK(tn__crew_current() == crew);
  for (uint32_t i = 0; i < n; i++)
    all[i] = (node){ .task.run = run_node, .crew = crew, .number = i, .n = n, .all = all, .left = &left };
  tn__crew_submit(crew, &all[0].task, 1000);
  bool right = tn__crew_wait(crew, tn__counted_down, &left, 0);
  tn__crew_put(crew);
  for (uint32_t i = 0; i < n; i++) right &= atomic_load(&all[i].runs) == 1;
  free(all);
  return right;
}

static void pool__runs_every_task_once(void)
{
  for (uint32_t workers = 0; workers <= 5; workers++) {
    fixture f = open_client(workers, 0);
    CHECK_INT(tn__client_width(f.client), workers + 1);
    for (uint32_t n = 1; n < 3000; n = 3 * n + 1)
      CHECK_MSG(run_tree(f.client, n), "%u tasks on %u workers", n, workers);
    close_client(f);
  }
  CHECK_NULL(tn__crew_current());
}

typedef struct caller {
  pthread_t thread;
  tn__pool_client *client;
  int wrong;
} caller;

static void *call_steps(void *arg)
{
  caller *c = arg;
  for (uint32_t i = 0; i < 60; i++) c->wrong += !run_tree(c->client, 1 + i * 13 % 700);
  return NULL;
}

/* Twelve threads run steps at once, which is more than a client's first places for crews. */
static void pool__steps_from_many_threads(void)
{
  fixture f = open_client(3, 0);
  caller callers[12];
  for (int i = 0; i < 12; i++) {
    callers[i] = (caller){ .client = f.client };
    REQUIRE_INT(pthread_create(&callers[i].thread, NULL, call_steps, &callers[i]), 0);
  }
  for (int i = 0; i < 12; i++) {
    pthread_join(callers[i].thread, NULL);
    CHECK_INT(callers[i].wrong, 0);
  }
  close_client(f);
}

/* ---- stealing ---- */

typedef struct stolen {
  tn__task task;
  tn__crew *crew;
  _Atomic uint32_t *left;
  int64_t ns;
  uint32_t by;
} stolen;

static void run_stolen(tn__task *task)
{
  stolen *s = (stolen *)task;
  s->by = tn__worker_number();
  busy(s->ns);
  tn__count_down(s->crew, s->left);
}

enum { MANY = 64 };

/* MANY tasks from one thread; returns the number that workers ran. */
static int run_batch(tn__pool_client *client, int64_t ns, double cost_ns)
{
  stolen all[MANY];
  _Atomic uint32_t left = MANY;
  tn__crew *crew = tn__crew_take(client);
  int n = 0;
  for (int i = 0; i < MANY; i++) {
    all[i] = (stolen){ .task.run = run_stolen, .crew = crew, .left = &left, .ns = ns };
    tn__crew_submit(crew, &all[i].task, cost_ns);
  }
  CHECK(tn__crew_wait(crew, tn__counted_down, &left, 0));
  tn__crew_put(crew);
  for (int i = 0; i < MANY; i++) n += all[i].by != 0;
  return n;
}

static void pool__workers_steal_tasks_that_are_worth_it(void)
{
  fixture f = open_client(2, 0);
  int by_workers = 0;
  for (int i = 0; i < 20; i++) by_workers += run_batch(f.client, MS / 2, MS / 2);
  CHECK_MSG(by_workers > 0, "no worker took any of 1280 tasks of half a millisecond");
  tn__pool_join(f.pool); /* no worker is awake */
  CHECK_INT(run_batch(f.client, 0, 10), 0); /* 64 tasks of 10 ns are not worth a wake-up */
  close_client(f);
}

/* ---- quotas, S-CFG-11 ---- */

typedef struct gauge {
  _Atomic int now, most;
} gauge;

static void gauge_in(gauge *g)
{
  int n = atomic_fetch_add(&g->now, 1) + 1, most = atomic_load(&g->most);
  while (n > most && !atomic_compare_exchange_weak(&g->most, &most, n)) continue;
}

typedef struct measured {
  tn__task task;
  tn__crew *crew;
  gauge *g;
  _Atomic uint32_t *left;
} measured;

static void run_measured(tn__task *task)
{
  measured *m = (measured *)task;
  bool worker = tn__worker_number() != 0;
  if (worker) gauge_in(m->g);
  busy(200000);
  if (worker) atomic_fetch_sub(&m->g->now, 1);
  tn__count_down(m->crew, m->left);
}

typedef struct quota_caller {
  pthread_t thread;
  tn__pool_client *client;
  gauge *g;
} quota_caller;

static void *call_measured(void *arg)
{
  quota_caller *q = arg;
  for (int k = 0; k < 4; k++) {
    measured all[40];
    _Atomic uint32_t left = 40;
    tn__crew *crew = tn__crew_take(q->client);
    for (int i = 0; i < 40; i++) {
      all[i] = (measured){ .task.run = run_measured, .crew = crew, .g = q->g, .left = &left };
      tn__crew_submit(crew, &all[i].task, 200000);
    }
    tn__crew_wait(crew, tn__counted_down, &left, 0);
    tn__crew_put(crew);
  }
  return NULL;
}

/* Three sessions on one pool of 6, each called from two threads: at no time more workers than
 * the session's quota. */
static void pool__quotas_hold_for_every_client(void) /* S-CFG-11 */
{
  tn_error err = TN_ERROR_INIT;
  tn__pool *pool;
  tn__pool_client *clients[3];
  gauge gauges[3] = { 0 };
  quota_caller callers[6];
  REQUIRE_OK(tn__pool_private(6, false, &pool, &err), &err);
  CHECK_INT(tn__pool_workers(pool), 6);
  for (uint32_t i = 0; i < 3; i++) {
    tn__client_config config = { .workers = i == 2 ? 100 : i + 1, .spin_us = TN__SPIN_US };
    REQUIRE_OK(tn__client_create(pool, &config, &clients[i], &err), &err);
    CHECK_INT(tn__client_width(clients[i]), i == 2 ? 7 : i + 2);
  }
  for (int i = 0; i < 6; i++) {
    callers[i] = (quota_caller){ .client = clients[i % 3], .g = &gauges[i % 3] };
    REQUIRE_INT(pthread_create(&callers[i].thread, NULL, call_measured, &callers[i]), 0);
  }
  for (int i = 0; i < 6; i++) pthread_join(callers[i].thread, NULL);
  for (int i = 0; i < 3; i++) {
    int limit = i == 2 ? 6 : i + 1, most = atomic_load(&gauges[i].most);
    CHECK_MSG(most >= 1 && most <= limit, "client %d had %d workers at once, its quota is %d", i, most, limit);
    tn__client_destroy(clients[i]);
  }
  tn__pool_unref(pool);
}

static void spin_part(void *user, int64_t begin, int64_t end)
{
  gauge_in(user);
  busy(20000 * (end - begin));
  atomic_fetch_sub(&((gauge *)user)->now, 1);
}

static void pool__loops_respect_their_limit(void) /* S-CFG-15 */
{
  for (uint32_t intra = 0; intra <= 3; intra++) {
    fixture f = open_client(5, intra);
    gauge g = { 0 };
    tn__crew *crew = tn__crew_take(f.client);
    for (int i = 0; i < 20; i++) tn__parallel_for(crew, 100, 1, 20000, spin_part, &g);
    tn__crew_put(crew);
    int most = atomic_load(&g.most), limit = intra == 0 ? 6 : (int)intra;
    CHECK_MSG(most <= limit, "%d threads in a loop for at most %d", most, limit);
    if (intra == 1) CHECK_INT(most, 1);
    close_client(f);
  }
}

/* A part of a plugin's kernel that a worker runs is attributed to the plugin. */
typedef struct asked {
  _Atomic int parts, right, of_workers;
} asked;

static void ask_part(void *user, int64_t begin, int64_t end)
{
  asked *a = user;
  tn_plugin_call call = { .struct_size = sizeof call };
  bool found = tn_plugin_call_now(&call) && strcmp(call.plugin, "acme") == 0 && strcmp(call.node, "y") == 0;
  atomic_fetch_add(&a->parts, (int)(end - begin));
  if (found) atomic_fetch_add(&a->right, (int)(end - begin));
  if (tn__worker_number() != 0) atomic_fetch_add(&a->of_workers, 1);
  busy(20000 * (end - begin));
}

static void pool__helpers_know_the_kernel_they_run(void)
{
  fixture f = open_client(3, 0);
  asked a = { 0 };
  tn_plugin_call call = { .struct_size = sizeof call };
  tn__plugin_call record = {
    .plugin = "acme", .file = "/a.so", .call = "compute of a kernel", .kernel = "k", .node = "y"
  };
  tn__crew *crew = tn__crew_take(f.client);
  for (int i = 0; i < 1000 && atomic_load(&a.of_workers) == 0; i++) {
    tn__plugin_call_enter(&record);
    tn__parallel_for(crew, 100, 1, 20000, ask_part, &a);
    tn__plugin_call_leave(&record);
  }
  CHECK(atomic_load(&a.of_workers) > 0);
  CHECK_INT(atomic_load(&a.right), atomic_load(&a.parts));
  CHECK(!tn_plugin_call_now(&call));
  int parts = atomic_load(&a.parts);
  atomic_store(&a.right, 0);
  for (int i = 0; i < 20; i++) tn__parallel_for(crew, 100, 1, 20000, ask_part, &a);
  CHECK_INT(atomic_load(&a.right), 0);
  CHECK(atomic_load(&a.parts) > parts);
  tn__crew_put(crew);
  close_client(f);
}

/* ---- repeated steps ---- */

typedef struct habit_loop {
  int64_t own_ns, worker_ns; /* per item: on the caller's thread, on a worker */
  _Atomic int workers;       /* items run by workers */
} habit_loop;

static void sleep_part(void *user, int64_t begin, int64_t end)
{
  habit_loop *l = user;
  bool worker = tn__worker_number() != 0;
  if (worker) atomic_fetch_add(&l->workers, (int)(end - begin));
  usleep((useconds_t)((worker ? l->worker_ns : l->own_ns) * (end - begin) / 1000));
}

/* The number of steps that had help. */
static int steps_with_help(fixture f, habit_loop *l, int steps)
{
  int n = 0;
  for (int i = 0; i < steps; i++) {
    atomic_store(&l->workers, 0);
    tn__crew *crew = tn__crew_take_for(f.client, l);
    tn__parallel_for(crew, 8, 1, (double)l->own_ns, sleep_part, l);
    tn__crew_put(crew);
    n += atomic_load(&l->workers) > 0;
  }
  return n;
}

/* The measured cost decides, whatever cost was passed. */
static void pool__steps_have_help_if_it_makes_them_faster(void)
{
  fixture f = open_client(1, 0);
  habit_loop slower = { .own_ns = 50000, .worker_ns = 3 * MS }, faster = { .own_ns = 2 * MS, .worker_ns = 2 * MS };
  steps_with_help(f, &slower, 40);
  int n = steps_with_help(f, &slower, 100);
  CHECK_MSG(n <= 50, "%d of 100 steps had help, which makes them slower", n);
  steps_with_help(f, &faster, 25);
  n = steps_with_help(f, &faster, 40);
  CHECK_MSG(n >= 10, "%d of 40 steps had help, which makes them faster", n);
  close_client(f);
}

/* A step that always has work yields workers to the step of another session. */
static _Atomic int greedy_stop;

static void run_greedy(tn__task *task)
{
  stolen *s = (stolen *)task;
  busy(100000);
  if (!atomic_load(&greedy_stop)) tn__crew_submit(s->crew, task, 100000);
  else tn__count_down(s->crew, s->left);
}

static void *be_greedy(void *arg)
{
  stolen all[8];
  _Atomic uint32_t left = 8;
  tn__crew *crew = tn__crew_take(arg);
  for (int i = 0; i < 8; i++) {
    all[i] = (stolen){ .task.run = run_greedy, .crew = crew, .left = &left };
    tn__crew_submit(crew, &all[i].task, 100000);
  }
  tn__crew_wait(crew, tn__counted_down, &left, 0);
  tn__crew_put(crew);
  return NULL;
}

static void pool__workers_take_turns(void)
{
  tn_error err = TN_ERROR_INIT;
  fixture f = open_client(1, 0);
  tn__pool_client *late;
  pthread_t greedy;
  tn__client_config config = { .workers = 1, .spin_us = TN__SPIN_US };
  REQUIRE_OK(tn__client_create(f.pool, &config, &late, &err), &err);
  atomic_store(&greedy_stop, 0);
  REQUIRE_INT(pthread_create(&greedy, NULL, be_greedy, f.client), 0);
  int by_worker = 0;
  int64_t until = tn__now_ns() + 10000 * (int64_t)MS;
  usleep(10000); /* the worker is with the greedy step */
  while (by_worker == 0 && tn__now_ns() < until) by_worker = run_batch(late, 200000, 200000);
  CHECK(by_worker > 0);
  atomic_store(&greedy_stop, 1);
  pthread_join(greedy, NULL);
  tn__client_destroy(late);
  close_client(f);
}

/* ---- loops ---- */

typedef struct sum {
  tn__crew *crew;
  int64_t n, grain;
  _Atomic unsigned char *seen;
  _Atomic int64_t items;
  _Atomic int small, nested;
} sum;

static void inner_part(void *user, int64_t begin, int64_t end)
{
  atomic_fetch_sub(&((sum *)user)->nested, (int)(end - begin));
}

static void sum_part(void *user, int64_t begin, int64_t end)
{
  sum *s = user;
  if (end - begin < s->grain && end - begin < s->n) atomic_fetch_add(&s->small, 1);
  for (int64_t i = begin; i < end; i++) atomic_fetch_add(&s->seen[i], 1);
  atomic_fetch_add(&s->items, end - begin);
  atomic_fetch_add(&s->nested, 1000);
  tn__parallel_for(s->crew, 1000, 1, 1000, inner_part, s);
}

static int check_loop(tn__crew *crew, int64_t n, int64_t grain, double cost_ns)
{
  sum s = { .crew = crew, .n = n, .grain = grain, .seen = calloc((size_t)n + 1, 1) };
  tn__parallel_for(crew, n, grain, cost_ns, sum_part, &s);
  int wrong = atomic_load(&s.items) != (n > 0 ? n : 0) || atomic_load(&s.small) != 0;
  for (int64_t i = 0; i < n; i++) wrong += atomic_load(&s.seen[i]) != 1;
  wrong += atomic_load(&s.nested) != 0; /* a loop in a loop */
  free((void *)s.seen);
  return wrong;
}

static void *call_loops(void *arg)
{
  caller *c = arg;
  uint64_t random = (uintptr_t)arg | 1;
  for (int i = 0; i < 40; i++) {
    tn__crew *crew = tn__crew_take(c->client);
    for (int k = 0; k < 10; k++)
      c->wrong += check_loop(crew, any(&random, 3000), 1 + any(&random, 200), any(&random, 2) ? 50 : 5000);
    tn__crew_put(crew);
  }
  return NULL;
}

static void pool__loops_cover_each_item_once(void)
{
  fixture f = open_client(3, 0);
  tn__crew *crew = tn__crew_take(f.client);
  static const int64_t sizes[] = { -1, 0, 1, 2, 3, 15, 16, 17, 63, 64, 65, 1000, 1023, 1024, 1025, 4097 };
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int64_t grain = 0; grain < 2000; grain = grain * 3 + 1)
      CHECK_INT(check_loop(crew, sizes[i], grain, 20000), 0);
  CHECK_INT(check_loop(NULL, 1000, 1, 20000), 0);
  tn__crew_put(crew);
  CHECK_INT(check_loop(crew, 1000, 1, 20000), 0); /* this thread has left the crew */
  caller callers[4];
  for (int i = 0; i < 4; i++) {
    callers[i] = (caller){ .client = f.client };
    REQUIRE_INT(pthread_create(&callers[i].thread, NULL, call_loops, &callers[i]), 0);
  }
  for (int i = 0; i < 4; i++) {
    pthread_join(callers[i].thread, NULL);
    CHECK_INT(callers[i].wrong, 0);
  }
  close_client(f);
}

/* From the kernel's view: the crew is taken at the first loop that is worth it, and returned at
 * the end of the step. */
static void pool__kernels_share_loops(void)
{
  fixture f = open_client(2, 0);
  gauge g = { 0 };
  tn__step_env env = { .client = f.client };
  tn_step step = { .env = &env };
  tn__call call = { .ctx = { .step = &step } };
  tn_parallel_for(&call.ctx, 0, 1, 1e6, spin_part, &g);
  tn_parallel_for(&call.ctx, 1, 1, 10, spin_part, &g);
  CHECK_NULL(env.crew);
  for (int i = 0; i < 200 && atomic_load(&g.most) < 2; i++) tn_parallel_for(&call.ctx, 500, 1, 20000, spin_part, &g);
  REQUIRE_PTR(env.crew);
  CHECK_MSG(atomic_load(&g.most) >= 2 && atomic_load(&g.most) <= 3, "%d threads", atomic_load(&g.most));
  tn__crew_put(env.crew);
  env = (tn__step_env){ 0 };
  g = (gauge){ 0 };
  tn_parallel_for(&call.ctx, 100, 1, 20000, spin_part, &g); /* a session without workers */
  CHECK_INT(atomic_load(&g.most), 1);
  close_client(f);
}

/* Tasks that contain loops, as kernels do. */
typedef struct looper {
  tn__task task;
  tn__crew *crew;
  _Atomic uint32_t *left;
  int wrong;
} looper;

static void run_looper(tn__task *task)
{
  looper *l = (looper *)task;
  l->wrong = check_loop(l->crew, 2000, 10, 1000);
  tn__count_down(l->crew, l->left);
}

static void pool__tasks_have_loops(void)
{
  fixture f = open_client(3, 0);
  for (int k = 0; k < 20; k++) {
    looper all[10];
    _Atomic uint32_t left = 10;
    tn__crew *crew = tn__crew_take(f.client);
    for (int i = 0; i < 10; i++) {
      all[i] = (looper){ .task.run = run_looper, .crew = crew, .left = &left };
      tn__crew_submit(crew, &all[i].task, 2000000);
    }
    CHECK(tn__crew_wait(crew, tn__counted_down, &left, 0));
    tn__crew_put(crew);
    for (int i = 0; i < 10; i++) CHECK_INT(all[i].wrong, 0);
  }
  close_client(f);
}

/* ---- nested steps ---- */

typedef struct deep {
  tn__task task;
  tn__crew *crew;
  tn__pool_client *client;
  _Atomic uint32_t *left;
  int depth;
} deep;

/* A kernel that runs a step of the same session with two tasks, each of which does so again. */
static void run_deep(tn__task *task)
{
  deep *d = (deep *)task;
  if (d->depth > 0) {
    _Atomic uint32_t left = 2;
    tn__crew *crew = tn__crew_take(d->client);
    deep inner[2];
    for (int i = 0; i < 2; i++) {
      inner[i] = (deep){ .task.run = run_deep, .crew = crew, .client = d->client, .left = &left,
                         .depth = d->depth - 1 };
      tn__crew_submit(crew, &inner[i].task, 1e6);
    }
    tn__crew_wait(crew, tn__counted_down, &left, 0);
    tn__crew_put(crew);
    CHECK(tn__crew_current() == d->crew);
  }
  tn__count_down(d->crew, d->left);
}

static void *call_deep(void *arg)
{
  for (int i = 0; i < 5; i++) {
    _Atomic uint32_t left = 1;
    tn__crew *crew = tn__crew_take(arg);
    deep first = { .task.run = run_deep, .crew = crew, .client = arg, .left = &left, .depth = 7 };
    tn__crew_submit(crew, &first.task, 1e6);
    tn__crew_wait(crew, tn__counted_down, &left, 0);
    tn__crew_put(crew);
  }
  return NULL;
}

static void pool__nested_steps_end(void) /* S-THR-07 */
{
  fixture f = open_client(2, 0);
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) REQUIRE_INT(pthread_create(&threads[i], NULL, call_deep, f.client), 0);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  close_client(f);
}

/* ---- waiting ---- */

static void count_down(tn__task *task)
{
  stolen *s = (stolen *)task;
  s->by = tn__worker_number();
  tn__count_down(s->crew, s->left);
}

static void *submit_late(void *arg)
{
  stolen *s = arg;
  usleep(20000); /* the owner sleeps by now */
  for (int i = 0; i < 3; i++) tn__crew_submit(s[i].crew, &s[i].task, 10);
  return NULL;
}

static void pool__an_external_thread_wakes_the_waiter(void)
{
  for (uint32_t workers = 0; workers < 2; workers++) {
    fixture f = open_client(workers, 0);
    for (int k = 0; k < 5; k++) {
      _Atomic uint32_t left = 3;
      stolen s[3];
      tn__crew *crew = tn__crew_take(f.client);
      pthread_t thread;
      for (int i = 0; i < 3; i++) s[i] = (stolen){ .task.run = count_down, .crew = crew, .left = &left };
      CHECK(!tn__crew_wait(crew, tn__counted_down, &left, tn__now_ns() + MS)); /* the timeout comes first */
      REQUIRE_INT(pthread_create(&thread, NULL, submit_late, s), 0);
      CHECK(tn__crew_wait(crew, tn__counted_down, &left, 0));
      tn__crew_put(crew);
      pthread_join(thread, NULL);
    }
    close_client(f);
  }
}

/* A crew moves from thread to thread, as in a partial run. */
static void *enter_and_run(void *arg)
{
  stolen *s = arg;
  tn__crew_enter(s->crew);
  CHECK(tn__crew_help(s->crew));
  CHECK(!tn__crew_help(s->crew));
  tn__crew_leave(s->crew);
  return NULL;
}

static void pool__crews_change_their_owner(void)
{
  fixture f = open_client(0, 0);
  _Atomic uint32_t left = 1;
  tn__crew *crew = tn__crew_take(f.client);
  stolen s = { .task.run = count_down, .crew = crew, .left = &left };
  pthread_t thread;
  tn__crew_submit(crew, &s.task, 10);
  tn__crew_leave(crew);
  CHECK_NULL(tn__crew_current());
  CHECK(!tn__crew_help(crew));
  REQUIRE_INT(pthread_create(&thread, NULL, enter_and_run, &s), 0);
  pthread_join(thread, NULL);
  CHECK_INT(atomic_load(&left), 0);
  tn__crew_enter(crew);
  tn__crew_put(crew);
  close_client(f);
}

/* ---- idle, join, fork ---- */

static double cpu_ms(void)
{
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 +
         (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
}

static void pool__idle_workers_cost_nothing(void)
{
  fixture f = open_client(4, 0);
  for (int i = 0; i < 5; i++) run_batch(f.client, 100000, 100000);
  usleep(10000);
  double before = cpu_ms();
  usleep(1000000);
  double spent = cpu_ms() - before;
  CHECK_MSG(spent < 5, "idle workers took %.1f ms of CPU in a second", spent);
  close_client(f);
}

static void join_task(tn__task *task)
{
  stolen *s = (stolen *)task;
  s->by = tn__worker_number();
  if (s->by != 0) CHECK(!tn__pool_join(*(tn__pool **)(s + 1))); /* it would wait for itself */
  if (s->by != 0) CHECK_STATUS(tn_join_workers(NULL), TN_FAILED_PRECONDITION, NULL);
  busy(MS / 4);
  tn__count_down(s->crew, s->left);
}

static void pool__workers_are_joined_on_request(void)
{
  tn_error err = TN_ERROR_INIT;
  int before = threads_of_process();
  fixture f = open_client(3, 0);
  CHECK_INT(threads_of_process(), before); /* none before there is work */
  for (int i = 0; i < 4; i++) {
    struct { stolen s; tn__pool *pool; } all[16];
    _Atomic uint32_t left = 16;
    tn__crew *crew = tn__crew_take(f.client);
    for (int k = 0; k < 16; k++) {
      all[k].s = (stolen){ .task.run = join_task, .crew = crew, .left = &left };
      all[k].pool = f.pool;
      tn__crew_submit(crew, &all[k].s.task, MS);
    }
    tn__crew_wait(crew, tn__counted_down, &left, 0);
    tn__crew_put(crew);
    if (before > 0) CHECK(threads_of_process() > before);
    if (i % 2 == 0) CHECK(tn__pool_join(f.pool));
    else CHECK_OK(tn_join_workers(&err), &err);
    CHECK_INT(threads_of_process(), before);
  }
  run_batch(f.client, MS, MS);
  close_client(f);
  CHECK_INT(threads_of_process(), before);
}

/* Sessions of the parent do not work in the child (S-THR-08); the remains of their pool do no
 * harm there. */
static void pool__child_has_no_workers(void)
{
  fixture f = open_client(2, 0);
  tn_error err = TN_ERROR_INIT;
  tn__pool *shared;
  REQUIRE_OK(tn__pool_named("shared", 2, &shared, &err), &err);
  run_batch(f.client, MS / 4, MS / 4);
  pid_t pid = fork();
  if (pid == 0) {
    alarm(20);
    int by_workers = run_batch(f.client, 1000, 1e6);
    tn__crew *crew = tn__crew_take(f.client);
    int wrong = check_loop(crew, 1000, 1, 20000);
    tn__crew_put(crew);
    bool joined = tn__pool_join(f.pool);
    tn__client_destroy(f.client);
    tn__pool_unref(f.pool);
    tn__pool_unref(shared);
    bool fresh = tn__pool_named("shared", 3, &shared, NULL) == TN_OK && tn__pool_workers(shared) == 3;
    if (fresh) tn__pool_unref(shared);
    _exit(by_workers == 0 && wrong == 0 && joined && fresh ? 0 : 1);
  }
  int status = -1;
  REQUIRE(pid > 0 && waitpid(pid, &status, 0) == pid);
  CHECK_INT(status, 0);
  run_batch(f.client, MS / 4, MS / 4);
  tn__pool_unref(shared);
  close_client(f);
}

/* ---- pinned workers ---- */

static void pool__pinned_workers_work(void)
{
  fixture f;
  tn_error err = TN_ERROR_INIT;
  tn__client_config config = { .workers = 3, .spin_us = 0 };
  REQUIRE_OK(tn__pool_private(3, true, &f.pool, &err), &err);
  REQUIRE_OK(tn__client_create(f.pool, &config, &f.client, &err), &err);
  for (int i = 0; i < 5; i++) CHECK(run_tree(f.client, 500));
  close_client(f);
}

/* ---- memory ---- */

static tn_status use_everything(void *arg)
{
  tn__pool *pool = NULL;
  tn__pool_client *client = NULL;
  tn__client_config config = { .workers = 2 };
  tn_status st = arg != NULL ? tn__pool_named(arg, 2, &pool, NULL) : tn__pool_private(2, false, &pool, NULL);
  if (st == TN_OK) st = tn__client_create(pool, &config, &client, NULL);
  tn__crew *crew = st == TN_OK ? tn__crew_take(client) : NULL;
  if (st == TN_OK && crew == NULL) st = TN_RESOURCE_EXHAUSTED;
  if (crew != NULL) { /* all tasks run, even if no worker helps and no deque can grow */
    stolen all[MANY];
    _Atomic uint32_t left = MANY;
    for (int i = 0; i < MANY; i++) {
      all[i] = (stolen){ .task.run = count_down, .crew = crew, .left = &left };
      tn__crew_submit(crew, &all[i].task, i == 40 ? 1e9 : 10);
    }
    CHECK(tn__crew_wait(crew, tn__counted_down, &left, 0));
    CHECK_INT(check_loop(crew, 300, 1, 1000), 0);
  }
  tn__crew_put(crew);
  tn__client_destroy(client);
  tn__pool_unref(pool);
  return st;
}

static void pool__survives_lack_of_memory(void)
{
  tn_test_oom_sweep(use_everything, NULL);
  char name[] = "named";
  tn_test_oom_sweep(use_everything, name);
}

/* Steps of a client that has run before do not allocate. */
static void pool__steps_allocate_nothing(void)
{
  fixture f = open_client(1, 0);
  for (int i = 0; i < 20; i++) run_batch(f.client, MS / 8, MS / 8);
  uint64_t before = tn_test_allocations();
  for (int i = 0; i < 20; i++) {
    run_batch(f.client, 1000, 1000);
    tn__crew *crew = tn__crew_take(f.client);
    check_loop(crew, 1000, 1, 1000);
    tn__crew_put(crew);
  }
  CHECK(tn_test_allocations() - before <= 1); /* the deque of a worker that has not pushed before */
  close_client(f);
}

TAP_MAIN(
  TAP_TEST(pool__deque_gives_each_item_once),
  TAP_TEST(pool__runs_every_task_once),
  TAP_TEST(pool__steps_from_many_threads),
  TAP_TEST(pool__workers_steal_tasks_that_are_worth_it),
  TAP_TEST(pool__quotas_hold_for_every_client),
  TAP_TEST(pool__loops_respect_their_limit), TAP_TEST(pool__helpers_know_the_kernel_they_run),
  TAP_TEST(pool__steps_have_help_if_it_makes_them_faster),
  TAP_TEST(pool__workers_take_turns),
  TAP_TEST(pool__loops_cover_each_item_once),
  TAP_TEST(pool__kernels_share_loops),
  TAP_TEST(pool__tasks_have_loops),
  TAP_TEST(pool__nested_steps_end),
  TAP_TEST(pool__an_external_thread_wakes_the_waiter),
  TAP_TEST(pool__crews_change_their_owner),
  TAP_TEST(pool__idle_workers_cost_nothing),
  TAP_TEST(pool__workers_are_joined_on_request),
  TAP_TEST(pool__child_has_no_workers),
  TAP_TEST(pool__pinned_workers_work),
  TAP_TEST(pool__survives_lack_of_memory),
  TAP_TEST(pool__steps_allocate_nothing))
