/* SPDX-License-Identifier: Apache-2.0 */
/* The threaded runtime: its settings for threads, and their effects. The general rules of
 * sessions are tested by the other suites, which run on it, too (check-conformance.sh). */
#define _GNU_SOURCE
#include "conformance/support/session_kit.h"
#include "conformance/support/threads.h"

#include <dlfcn.h>
#include <errno.h>
#include <fenv.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* ---- threads that the system refuses ---- */

static atomic_bool no_threads;

#if defined(__linux__) && defined(__GLIBC__)
#define CAN_REFUSE 1
/* Replaces the system's function, for the library, too. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
  static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  if (atomic_load(&no_threads)) return EAGAIN;
  if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
  return real(thread, attr, fn, arg);
}
#else
#define CAN_REFUSE 0
#endif

/* ---- an op with a loop ----
 *
 * TestLoop  x: float -> y: float   y = 2 x, in a loop whose items take item_ns each
 * TestHold  x: float -> y: float   the same; each part waits for the gate, or until its step is cancelled
 * TestAsk   x: float -> y: float   runs "loop" of the session `asked` for y, inside of the kernel
 * TestDeep  x: float -> y: float   the same inside of each item of a loop */

enum { ITEMS = 64, MOST_THREADS = 16 };

static atomic_llong item_ns;
static atomic_int loops_now, loops_most;   /* threads running items */
static atomic_int helpers_now, helpers_most, helped; /* threads other than the caller of Run; items run by them */
static _Thread_local bool is_caller;
static tn_session *asked;

static void note_most(atomic_int *most, int n)
{
  int old = atomic_load(most);
  while (n > old && !atomic_compare_exchange_weak(most, &old, n)) continue;
}

static void forget(void)
{
  atomic_store(&loops_most, 0);
  atomic_store(&helpers_most, 0);
  atomic_store(&helped, 0);
}

static int64_t now_ns(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void loop_part(void *user, int64_t begin, int64_t end)
{
  tn_kernel_ctx *ctx = user;
  const float *x = ctx->inputs[0]->data;
  float *y = ctx->outputs[0]->data;
  note_most(&loops_most, atomic_fetch_add(&loops_now, 1) + 1);
  if (!is_caller) note_most(&helpers_most, atomic_fetch_add(&helpers_now, 1) + 1);
  for (int64_t i = begin; i < end; i++) {
    for (int64_t until = now_ns() + atomic_load(&item_ns); now_ns() < until;) continue;
    y[i] = 2 * x[i];
  }
  if (!is_caller) atomic_fetch_add(&helped, (int)(end - begin));
  if (!is_caller) atomic_fetch_sub(&helpers_now, 1);
  atomic_fetch_sub(&loops_now, 1);
}

static tn_status compute_loop(tn_kernel_ctx *ctx)
{
  tn_parallel_for(ctx, ctx->inputs[0]->count, 1, (double)atomic_load(&item_ns), loop_part, ctx);
  return TN_OK;
}

static void hold_part(void *user, int64_t begin, int64_t end)
{
  atomic_fetch_add(&ts_watched.at_gate, 1);
  while (!atomic_load(&ts_watched.gate) && !tn_kernel_cancelled(user)) ts_sleep_ms(1);
  loop_part(user, begin, end);
}

static tn_status compute_hold(tn_kernel_ctx *ctx)
{
  tn_parallel_for(ctx, ctx->inputs[0]->count, 1, 1e9, hold_part, ctx);
  return TN_OK;
}

/* One step of `asked`; false if it fails or the result is wrong. */
static bool ask(void)
{
  bool was = is_caller;
  const char *feed = "x", *fetch = "loop";
  int64_t n = ITEMS;
  tn_tensor *x = ts_filled(1, &n, 1), *y = NULL;
  is_caller = true;
  tn_status st = tn_session_run(asked, NULL, &feed, &x, 1, &fetch, &y, 1, NULL, 0, NULL, NULL);
  is_caller = was;
  const float *data = st == TN_OK ? tn_tensor_data(y) : NULL;
  bool right = data != NULL;
  for (int64_t i = 0; right && i < n; i++) right = data[i] == 2;
  tn_tensor_unref(x);
  tn_tensor_unref(y);
  return right;
}

static tn_status compute_ask(tn_kernel_ctx *ctx)
{
  float *y = ctx->outputs[0]->data;
  for (int64_t i = 0; i < ctx->outputs[0]->count; i++) y[i] = 0;
  for (int64_t i = 0; i < 4; i++) y[0] += ask() ? 1 : -100;
  return TN_OK;
}

static void deep_part(void *user, int64_t begin, int64_t end)
{
  float *y = ((tn_kernel_ctx *)user)->outputs[0]->data;
  for (int64_t i = begin; i < end; i++) y[i] = ask() ? 1 : -100;
}

static tn_status compute_deep(tn_kernel_ctx *ctx)
{
  tn_parallel_for(ctx, ctx->inputs[0]->count, 1, 1e6, deep_part, ctx);
  return TN_OK;
}

static tn_status prepare_same(tn_prepare_ctx *ctx, tn_error *err) { return tn_prepare_output_like(ctx, 0, 0, err); }

#define OP(name_)                                                                                            \
  { .struct_size = TN_OP_DEF_SIZE, .name = name_, .inputs = "x: float", .outputs = "y: float", .attrs = "", \
    .traits = TN_TRAIT_STATEFUL }
#define KERNEL(op_, compute_)                                                                             \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = op_, .device = "CPU", .name = op_ "_cpu", .rank = TN_RANK_C, \
    .prepare = prepare_same, .compute = compute_ }

static void register_loops(void)
{
  static const tn_op_def ops[] = { OP("TestLoop"), OP("TestHold"), OP("TestAsk"), OP("TestDeep") };
  static const tn_kernel_def kernels[] = { KERNEL("TestLoop", compute_loop), KERNEL("TestHold", compute_hold),
                                           KERNEL("TestAsk", compute_ask), KERNEL("TestDeep", compute_deep) };
  static const tn_op_family family = { .struct_size = TN_OP_FAMILY_SIZE, .name = "test_loops", .ops = ops, .n_ops = 4,
                                       .kernels = kernels, .n_kernels = 4 };
  tn_error err = TN_ERROR_INIT;
  REQUIRE_OK(tn_register_ops(&family, &err), &err);
}

/* ---- sessions ---- */

/* loop, hold, ask and deep of x; options as "field=text" separated by blanks. */
static tn_status try_open(ts *t, const char *target, const char *options)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  char text[200], *rest = NULL;
  pthread_once(&once, register_loops);
  ts_init(t, 1);
  tn_output x = ts_placeholder(t->graph, "x", TN_FLOAT);
  ts_op1(t->graph, "TestLoop", "loop", x);
  ts_op1(t->graph, "TestHold", "hold", x);
  ts_op1(t->graph, "TestAsk", "ask", x);
  ts_op1(t->graph, "TestDeep", "deep", x);
  snprintf(text, sizeof text, "%s", options);
  for (char *field = strtok_r(text, " ", &rest); field != NULL; field = strtok_r(NULL, " ", &rest)) {
    char *value = strchr(field, '=');
    *value++ = 0;
    REQUIRE_OK(tn_session_options_parse(t->options, field, value, &t->err), &t->err);
  }
  tn_status st = tn_session_options_set_target(t->options, target, &t->err);
  return st == TN_OK ? tn_session_create(t->options, &t->session, &t->err) : st;
}

static ts open_on(const char *target, const char *options)
{
  ts t;
  REQUIRE_OK(try_open(&t, target, options), &t.err);
  REQUIRE_OK(tn_session_set_graph(t.session, t.graph, &t.err), &t.err);
  return t;
}

/* Runs an op on ITEMS ones, in the pool; returns the sum of the result. */
static float run_op(const ts *t, const char *op, int32_t pool)
{
  int64_t n = ITEMS;
  tn_error err = TN_ERROR_INIT;
  const char *feed = "x";
  tn_tensor *x = ts_filled(1, &n, 1), *y = NULL;
  tn_run_options options;
  tn_run_options_init(&options);
  options.inter_op_pool = pool;
  is_caller = true;
  CHECK_OK(tn_session_run(t->session, &options, &feed, &x, 1, &op, &y, 1, NULL, 0, NULL, &err), &err);
  float sum = 0;
  const float *data = y == NULL ? NULL : tn_tensor_data(y);
  for (int64_t i = 0; data != NULL && i < n; i++) sum += data[i];
  tn_tensor_unref(x);
  tn_tensor_unref(y);
  tn_error_clear(&err);
  return sum;
}

/* Runs steps until workers help, at most `steps` or for a minute; returns whether they helped.
 * On a busy machine workers take a while. */
static bool helped_within(const ts *t, int32_t pool, int steps)
{
  time_t end = time(NULL) + 60;
  forget();
  atomic_store(&item_ns, 100000);
  for (int i = 0; i < steps && atomic_load(&helped) == 0 && time(NULL) < end; i++)
    CHECK_DOUBLE(run_op(t, "loop", pool), 2 * ITEMS, 0);
  return atomic_load(&helped) > 0;
}
static bool gets_help(const ts *t, int32_t pool) { return helped_within(t, pool, INT_MAX); }
static bool stays_alone(const ts *t, int32_t pool) { return !helped_within(t, pool, 10); }

/* ---- counts ---- */

/* target, options, threads that may run items of one step at once */
static void threaded__counts_are_kept(void) /* S-CFG-10, S-CFG-11, S-CFG-12, S-CFG-15, S-CFG-16 */
{
  static const struct {
    const char *target, *options;
    int most;
  } cases[] = {
    { "threaded:threads=3", "use_per_session_threads=1", 3 },
    { "threaded:threads=3", "use_per_session_threads=1 inter_op_threads=1", 3 }, /* the target's takes precedence */
    { "threaded:threads=1", "use_per_session_threads=1 inter_op_threads=3", 1 },
    { "threaded", "use_per_session_threads=1 inter_op_threads=2", 2 },
    { "threaded", "inter_op_threads=2", 2 },
    { "threaded", "inter_op_threads=1", 1 },
    { "threaded", "inter_op_threads=-1", 1 },
    { "threaded", "inter_op_threads=-2147483648", 1 },
    { "threaded:threads=4", "use_per_session_threads=1 intra_op_threads=2", 2 },
    { "threaded:threads=4", "intra_op_threads=1", 1 },
    { "threaded:threads=4", "intra_op_threads=-5", 1 },
    { "threaded:threads=3,pin=1", "", 3 },
    { "threaded:threads=3,spin_us=0", "use_per_session_threads=1", 3 },
    { "threaded:threads=4096,spin_us=1000000", "", 1 << 20 }, /* the pool's maximum */
    { "threaded:threads=3,spin_us=0,linger_us=100", "use_per_session_threads=1", 3 },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ts t = open_on(cases[i].target, cases[i].options);
    bool right = cases[i].most > 1 ? gets_help(&t, 0) : stays_alone(&t, 0);
    CHECK_MSG(right, "%s %s: help: %d", cases[i].target, cases[i].options, atomic_load(&helped));
    for (int k = 0; k < 5; k++) run_op(&t, "loop", 0);
    CHECK_MSG(atomic_load(&loops_most) <= cases[i].most, "%s %s: %d threads", cases[i].target, cases[i].options,
              atomic_load(&loops_most));
    ts_fini(&t);
  }
}

typedef struct caller {
  pthread_t thread;
  const ts *t;
  const char *op;
  float sum;
} caller;

static void *call(void *arg)
{
  caller *c = arg;
  c->sum = 0;
  for (int i = 0; i < 10; i++) c->sum += run_op(c->t, c->op, 0);
  return NULL;
}

static void start_calls(caller *callers, int n, const ts *t, const char *op)
{
  for (int i = 0; i < n; i++) {
    callers[i] = (caller){ .t = t, .op = op };
    REQUIRE_INT(pthread_create(&callers[i].thread, NULL, call, &callers[i]), 0);
  }
}

static float join_calls(caller *callers, int n)
{
  float sum = 0;
  for (int i = 0; i < n; i++) {
    pthread_join(callers[i].thread, NULL);
    sum += callers[i].sum;
  }
  return sum;
}

/* A session has its quota of workers, however many steps it runs at once. */
static void threaded__steps_share_the_quota(void) /* S-CFG-11 */
{
  ts t = open_on("threaded:threads=3", "use_per_session_threads=1");
  caller callers[4];
  CHECK(gets_help(&t, 0));
  forget();
  start_calls(callers, 4, &t, "loop");
  CHECK_DOUBLE(join_calls(callers, 4), 4 * 10 * 2 * ITEMS, 0);
  CHECK(atomic_load(&helpers_most) <= 2);
  ts_fini(&t);
}

/* A worker that stays awake between steps is available to other sessions, and a close does not
 * wait for it. */
static void threaded__lingering_workers_leave_on_request(void)
{
  enum { LINGER_NS = 1000000000 };
  ts a = open_on("threaded:linger_us=1000000", "inter_op_threads=1000"),
     b = open_on("threaded", "inter_op_threads=1000");
  for (int i = 0; i < 3; i++) {
    CHECK(gets_help(&a, 0));
    CHECK(gets_help(&b, 0));
  }
  int64_t best = INT64_MAX; /* on a busy machine the worker may notice it late */
  for (int i = 0; i < 5 && best >= LINGER_NS / 2; i++) {
    if (i > 0) a = open_on("threaded:linger_us=1000000", "");
    CHECK(gets_help(&a, 0));
    int64_t begin = now_ns();
    ts_fini(&a);
    if (now_ns() - begin < best) best = now_ns() - begin;
  }
  CHECK_MSG(best < LINGER_NS / 2, "the fastest close took %lld ms", (long long)best / 1000000);
  ts_fini(&b);
}

static void threaded__errors_name_wrong_settings(void) /* S-OPT-14 */
{
  static const struct {
    const char *target, *said;
  } cases[] = {
    { "threaded:threads=0", "setting threads=0 of runtime 'threaded': wanted a number from 1 to 4096" },
    { "threaded:threads=-1", "setting threads=-1" },
    { "threaded:threads=abc", "setting threads=abc" },
    { "threaded:threads=2x", "setting threads=2x" },
    { "threaded:threads=", "setting threads=" },
    { "threaded:threads=99999", "from 1 to 4096" },
    { "threaded:threads=99999999999999999999", "from 1 to 4096" },
    { "threaded:pin=2", "setting pin=2 of runtime 'threaded': wanted a number from 0 to 1" },
    { "threaded:spin_us=-1", "from 0 to 1000000" },
    { "threaded:linger_us=1000001",
      "setting linger_us=1000001 of runtime 'threaded': wanted a number from 0 to 1000000" },
    { "threaded:thread=2",
      "there is no setting 'thread' (did you mean 'threads'?); available: threads, pin, spin_us, linger_us" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ts t;
    CHECK_STATUS(try_open(&t, cases[i].target, ""), TN_INVALID_ARGUMENT, &t.err);
    CHECK_NULL(t.session);
    CHECK_CONTAINS(tn_error_message(&t.err), cases[i].said);
    ts_fini(&t);
  }
}

/* ---- pools ---- */

static void threaded__a_session_closes_its_own_pool(void) /* S-CFG-12 */
{
  int before = threads_of_process();
  if (before < 0) TAP_SKIP("the system does not report threads");
  ts a = open_on("threaded:threads=2", "use_per_session_threads=1");
  ts b = open_on("threaded:threads=2", "use_per_session_threads=1");
  CHECK_INT(threads_of_process(), before); /* none before there is work */
  CHECK(gets_help(&a, 0));
  CHECK_INT(threads_of_process(), before + 1);
  CHECK(gets_help(&b, 0));
  CHECK_INT(threads_of_process(), before + 2);
  ts_fini(&a);
  CHECK_INT(threads_of_process(), before + 1);
  ts_fini(&b);
  CHECK_INT(threads_of_process(), before);
}

static void threaded__sessions_share_a_named_pool(void) /* S-CFG-13, S-CFG-14 */
{
  int before = threads_of_process();
  ts refused, a = open_on("threaded", "session_inter_op_pools=2@team"),
              b = open_on("threaded", "session_inter_op_pools=1,2@team");
  CHECK_STATUS(try_open(&refused, "threaded", "session_inter_op_pools=-1,3@team"), TN_INVALID_ARGUMENT, &refused.err);
  CHECK_CONTAINS(tn_error_message(&refused.err),
                 "option session_inter_op_pools, pool 1: the pool 'team' has 2 threads, but 3 were requested");
  ts_fini(&refused);
  CHECK(gets_help(&a, 0));
  CHECK(stays_alone(&b, 0));
  CHECK(gets_help(&b, 1));
  if (before >= 0) CHECK(threads_of_process() <= before + 2);
  ts_fini(&a);
  CHECK(gets_help(&b, 1)); /* as long as a session names it */
  ts_fini(&b);
  if (before >= 0) CHECK_INT(threads_of_process(), before);
  a = open_on("threaded", "session_inter_op_pools=100000@team"); /* another pool of that name */
  ts_fini(&a);
}

static void threaded__calls_choose_their_pool(void) /* S-RO-09, S-RO-10 */
{
  ts t = open_on("threaded", "session_inter_op_pools=-1,3,2");
  const char *feed = "x", *fetch = "loop";
  int64_t n = ITEMS;
  tn_tensor *x = ts_filled(1, &n, 1), *y = NULL;
  tn_run_options o;
  CHECK(stays_alone(&t, 0));
  CHECK(gets_help(&t, 1));
  CHECK(atomic_load(&loops_most) <= 3);
  CHECK(gets_help(&t, 2));
  CHECK(atomic_load(&loops_most) <= 2);
  CHECK(stays_alone(&t, -1));
  for (int32_t pool = -2; pool <= 3; pool += 5) {
    tn_run_options_init(&o);
    o.inter_op_pool = pool;
    CHECK_STATUS(tn_session_run(t.session, &o, &feed, &x, 1, &fetch, &y, 1, NULL, 0, NULL, &t.err), TN_INVALID_ARGUMENT,
                 &t.err);
    CHECK_CONTAINS(tn_error_message(&t.err), "the session has 3 pools");
  }
  o.inter_op_pool = -1; /* a callable keeps the options it was made with */
  tn_callable callable;
  REQUIRE_OK(tn_session_make_callable(t.session, &o, &feed, 1, &fetch, 1, NULL, 0, &callable, &t.err), &t.err);
  forget();
  for (int i = 0; i < 10; i++) {
    CHECK_OK(tn_session_run_callable(t.session, callable, &x, 1, &y, 1, NULL, &t.err), &t.err);
    tn_tensor_unref(y);
    y = NULL;
  }
  CHECK_INT(atomic_load(&helped), 0);
  tn_tensor_unref(x);
  ts_fini(&t);
}

/* ---- concurrent steps ---- */

/* One step holds all workers of a pool indefinitely; others run on their callers' threads. */
static void threaded__a_blocked_step_does_not_stop_others(void) /* S-THR-05, S-THR-06 */
{
  ts_watch_reset();
  atomic_store(&item_ns, 1000);
  ts a = open_on("threaded", "session_inter_op_pools=1@one"), b = open_on("threaded", "session_inter_op_pools=1@one");
  ts c = open_on("threaded", "session_inter_op_pools=2@two"), d = open_on("threaded", "session_inter_op_pools=2@two");
  caller callers[2];
  start_calls(callers, 1, &a, "hold");
  start_calls(callers + 1, 1, &c, "hold");
  CHECK(ts_wait_at_gate(3)); /* both callers, and the worker of c */
  for (int i = 0; i < 10; i++) {
    CHECK_DOUBLE(run_op(&a, "loop", 0), 2 * ITEMS, 0); /* the same session */
    CHECK_DOUBLE(run_op(&b, "loop", 0), 2 * ITEMS, 0); /* the same pool */
    CHECK_DOUBLE(run_op(&d, "loop", 0), 2 * ITEMS, 0);
  }
  ts_open_gate();
  CHECK_DOUBLE(join_calls(callers, 2), 2 * 10 * 2 * ITEMS, 0);
  ts_fini(&a);
  ts_fini(&b);
  ts_fini(&c);
  ts_fini(&d);
}

typedef struct cancelled {
  pthread_t thread;
  ts *t;
  tn_cancellation *cancellation;
  tn_status status;
} cancelled;

static void *call_cancelled(void *arg)
{
  cancelled *c = arg;
  const char *feed = "x", *fetch = "hold";
  int64_t n = ITEMS;
  tn_tensor *x = ts_filled(1, &n, 1), *y = NULL;
  tn_run_options o;
  tn_run_options_init(&o);
  o.cancellation = c->cancellation;
  c->status = tn_session_run(c->t->session, &o, &feed, &x, 1, &fetch, &y, 1, NULL, 0, NULL, NULL);
  CHECK_NULL(y);
  tn_tensor_unref(x);
  return NULL;
}

/* Workers notice the cancellation as the caller does, and later steps are not affected. */
static void threaded__cancelled_loops_end(void) /* S-CAN-03, S-RO-15 */
{
  ts t = open_on("threaded:threads=3", "use_per_session_threads=1");
  atomic_store(&item_ns, 1000);
  for (int i = 0; i < 5; i++) {
    cancelled c = { .t = &t };
    ts_watch_reset();
    REQUIRE_OK(tn_cancellation_create(NULL, &c.cancellation, &t.err), &t.err);
    REQUIRE_INT(pthread_create(&c.thread, NULL, call_cancelled, &c), 0);
    CHECK(ts_wait_at_gate(2));
    tn_cancellation_cancel(c.cancellation);
    pthread_join(c.thread, NULL);
    CHECK_INT(c.status, TN_CANCELLED);
    CHECK_DOUBLE(run_op(&t, "loop", 0), 2 * ITEMS, 0);
    tn_cancellation_unref(c.cancellation);
  }
  ts_fini(&t);
}

static void threaded__kernels_run_steps(void) /* S-THR-07 */
{
  static const char *const targets[] = { "threaded:threads=2", "threaded:threads=3,spin_us=0" };
  for (size_t i = 0; i < 2; i++) {
    ts t = open_on(targets[i], "use_per_session_threads=1");
    caller asks[3], deep[2];
    atomic_store(&item_ns, 2000);
    asked = t.session;
    start_calls(asks, 3, &t, "ask");
    start_calls(deep, 2, &t, "deep");
    CHECK_DOUBLE(join_calls(asks, 3), 3 * 10 * 4, 0);
    CHECK_DOUBLE(join_calls(deep, 2), 2 * 10 * ITEMS, 0);
    ts_fini(&t);
  }
}

/* ---- results ---- */

enum { SIDE = 320 };

static tn_output matrix(tn_graph *graph, const char *name, uint32_t seed)
{
  const int64_t dims[] = { SIDE, SIDE };
  tn_tensor *t = ts_filled(2, dims, 0);
  float *data = tn_tensor_data(t);
  for (int i = 0; i < SIDE * SIDE; i++) {
    seed = seed * 1664525 + 1013904223;
    data[i] = (float)(int32_t)seed / 3e9f;
  }
  tn_output out = ts_const_tensor(graph, name, t);
  tn_tensor_unref(t);
  return out;
}

/* Without AVX-512, the sums of oneDNN depend on how many rows a thread computes. */
static bool same_with_plugins(void)
{
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f");
#else
  return false;
#endif
}

/* softmax(exp(x a) / 3 + b): products, loops over elements, reductions. */
static ts open_products(const char *target, int level)
{
  ts t;
  ts_init(&t, level);
  tn_output x = ts_placeholder(t.graph, "x", TN_FLOAT), a = matrix(t.graph, "a", 1), b = matrix(t.graph, "b", 2);
  tn_output p = ts_op1(t.graph, "Exp", "exp", ts_op2(t.graph, "MatMul", "product", x, a));
  tn_output q = ts_op2(t.graph, "AddV2", "sum", ts_op2(t.graph, "Mul", "third", p, ts_const(t.graph, "c", 1.f / 3)), b);
  ts_op1(t.graph, "Softmax", "y", q);
  REQUIRE_OK(tn_session_options_set_target(t.options, target, &t.err), &t.err);
  if (!same_with_plugins())
    REQUIRE_OK(tn_session_options_set_string(t.options, "kernel_plugins", "never", &t.err), &t.err);
  ts_start(&t);
  return t;
}

static tn_tensor *product_of(ts *t, tn_callable callable, float value)
{
  const int64_t dims[] = { SIDE, SIDE };
  tn_tensor *x = ts_filled(2, dims, value), *y = NULL;
  tn_error err = TN_ERROR_INIT;
  CHECK_OK(tn_session_run_callable(t->session, callable, &x, 1, &y, 1, NULL, &err), &err);
  tn_tensor_unref(x);
  tn_error_clear(&err);
  return y;
}

static tn_callable products_callable(ts *t)
{
  const char *feed = "x", *fetch = "y";
  tn_callable callable = { 0 };
  REQUIRE_OK(tn_session_make_callable(t->session, NULL, &feed, 1, &fetch, 1, NULL, 0, &callable, &t->err), &t->err);
  return callable;
}

static void check_same(const tn_tensor *found, const tn_tensor *wanted)
{
  REQUIRE_PTR(found);
  REQUIRE_PTR(wanted);
  CHECK_BYTES(tn_tensor_data(found), tn_tensor_data(wanted), SIDE * SIDE * sizeof(float));
}

/* Also if the program changes the rounding mode: workers round as the caller does. */
static void threaded__results_equal_those_of_direct(void)
{
  static const int modes[] = { FE_TONEAREST, FE_UPWARD, FE_TONEAREST };
  FOR_LEVELS(level)
  {
    ts direct = open_products("direct", level), threaded = open_products("threaded:threads=3", level);
    tn_callable one = products_callable(&direct), many = products_callable(&threaded);
    for (size_t m = 0; m < 3; m++) {
      fesetround(modes[m]);
      for (int i = 0; i < 10; i++) {
        tn_tensor *wanted = product_of(&direct, one, 0.01f * (float)i),
                  *found = product_of(&threaded, many, 0.01f * (float)i);
        fesetround(FE_TONEAREST);
        check_same(found, wanted);
        fesetround(modes[m]);
        tn_tensor_unref(wanted);
        tn_tensor_unref(found);
      }
    }
    fesetround(FE_TONEAREST);
    ts_fini(&direct);
    ts_fini(&threaded);
  }
}

typedef struct side {
  pthread_t thread;
  ts *t;
  tn_callable callable;
  tn_tensor *wanted;
  int wrong;
} side;

static void *run_products(void *arg)
{
  side *s = arg;
  for (int i = 0; i < 20; i++) {
    tn_tensor *found = product_of(s->t, s->callable, 0.25f);
    s->wrong +=
        found == NULL || memcmp(tn_tensor_data(found), tn_tensor_data(s->wanted), SIDE * SIDE * sizeof(float)) != 0;
    tn_tensor_unref(found);
  }
  return NULL;
}

static void threaded__callables_run_side_by_side(void) /* S-THR-01 */
{
  ts t = open_products("threaded:threads=3", 1);
  tn_callable callable = products_callable(&t);
  tn_tensor *wanted = product_of(&t, callable, 0.25f);
  side sides[4];
  for (int i = 0; i < 4; i++) {
    sides[i] = (side){ .t = &t, .callable = callable, .wanted = wanted };
    REQUIRE_INT(pthread_create(&sides[i].thread, NULL, run_products, &sides[i]), 0);
  }
  for (int i = 0; i < 4; i++) {
    pthread_join(sides[i].thread, NULL);
    CHECK_INT(sides[i].wrong, 0);
  }
  tn_tensor_unref(wanted);
  ts_fini(&t);
}

/* ---- as a guest of the program ---- */

static double cpu_ms(void)
{
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 +
         (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
}

static void threaded__idle_sessions_take_no_cpu(void)
{
  ts t[3];
  for (int i = 0; i < 3; i++) t[i] = open_on("threaded:threads=3", i == 2 ? "" : "use_per_session_threads=1");
  for (int i = 0; i < 3; i++) CHECK(gets_help(&t[i], 0));
  double spent = 1000;
  for (int i = 0; i < 5 && spent >= 5;
       i++) { /* on a busy machine workers fall asleep late, and CPU time is counted in ticks */
    ts_sleep_ms(20);
    double before = cpu_ms();
    ts_sleep_ms(1000);
    spent = cpu_ms() - before;
  }
  CHECK_MSG(spent < 5, "idle sessions took %.1f ms of CPU in a second", spent);
  for (int i = 0; i < 3; i++) ts_fini(&t[i]);
}

static void threaded__steps_run_without_threads(void)
{
  if (!CAN_REFUSE) TAP_SKIP("threads cannot be refused here");
  ts t = open_on("threaded:threads=3", "use_per_session_threads=1");
  atomic_store(&no_threads, true);
  CHECK(stays_alone(&t, 0)); /* and results are right */
  atomic_store(&no_threads, false);
  ts_sleep_ms(1100); /* the system is asked again once a second */
  CHECK(gets_help(&t, 0));
  ts_fini(&t);
}

static atomic_bool calls_go_on;

static void *call_on_and_on(void *arg)
{
  caller *c = arg;
  while (atomic_load(&calls_go_on)) c->sum += run_op(c->t, "loop", 0) == 2 * ITEMS;
  return NULL;
}

/* Workers are joined although there is always work, and are started again. */
static void threaded__workers_are_joined_during_steps(void)
{
  int before = threads_of_process();
  ts t = open_on("threaded:threads=3", "use_per_session_threads=1");
  caller c = { .t = &t };
  CHECK(gets_help(&t, 0));
  atomic_store(&item_ns, 2000);
  atomic_store(&calls_go_on, true);
  REQUIRE_INT(pthread_create(&c.thread, NULL, call_on_and_on, &c), 0);
  for (int i = 0; i < 20; i++) CHECK_OK(tn_join_workers(&t.err), &t.err);
  atomic_store(&calls_go_on, false);
  pthread_join(c.thread, NULL);
  CHECK_OK(tn_join_workers(&t.err), &t.err);
  if (before >= 0) CHECK_INT(threads_of_process(), before);
  CHECK(gets_help(&t, 0));
  ts_fini(&t);
}

static atomic_uintptr_t handled_by;

static void on_signal(int number)
{
  (void)number;
  atomic_store(&handled_by, ts_this_thread());
}

/* The program's signal handlers run on its own threads. */
static void threaded__workers_take_no_signals(void)
{
  ts t = open_on("threaded:threads=3", "use_per_session_threads=1");
  sigset_t set, before;
  struct sigaction action = { .sa_handler = on_signal }, old;
  CHECK(gets_help(&t, 0));
  sigaction(SIGUSR1, &action, &old);
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &set, &before);
  for (int i = 0; i < 10; i++) {
    atomic_store(&handled_by, 0);
    kill(getpid(), SIGUSR1);
    run_op(&t, "loop", 0);
    CHECK_INT(atomic_load(&handled_by), 0);
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  CHECK(atomic_load(&handled_by) == ts_this_thread());
  sigaction(SIGUSR1, &old, NULL);
  ts_fini(&t);
}

TAP_MAIN(
  TAP_TEST(threaded__counts_are_kept),
  TAP_TEST(threaded__steps_share_the_quota),
  TAP_TEST(threaded__lingering_workers_leave_on_request),
  TAP_TEST(threaded__errors_name_wrong_settings),
  TAP_TEST(threaded__a_session_closes_its_own_pool),
  TAP_TEST(threaded__sessions_share_a_named_pool),
  TAP_TEST(threaded__calls_choose_their_pool),
  TAP_TEST(threaded__a_blocked_step_does_not_stop_others),
  TAP_TEST(threaded__cancelled_loops_end),
  TAP_TEST(threaded__kernels_run_steps),
  TAP_TEST(threaded__results_equal_those_of_direct),
  TAP_TEST(threaded__callables_run_side_by_side),
  TAP_TEST(threaded__idle_sessions_take_no_cpu),
  TAP_TEST(threaded__steps_run_without_threads),
  TAP_TEST(threaded__workers_are_joined_during_steps),
  TAP_TEST(threaded__workers_take_no_signals))
