/* SPDX-License-Identifier: Apache-2.0 */
/* Help for partial runs, and their metadata: workers of the runtime, pools. */
#define _GNU_SOURCE
#include "conformance/support/oom.h"
#include "conformance/support/partial_kit.h"

#include <core/session/metadata/metadata.h>
#include <limits.h>
#include <time.h>

/* ---- an op with a loop: y = x + 1, with slow items; `told` is the number of threads passed to
 * prepare ---- */

enum { ITEMS = 64, ITEM_NS = 50000 };

static atomic_int helped; /* items that ran on threads other than the caller's */
static atomic_uintptr_t
    leaving; /* a second_call: the first part that runs on the thread it names releases its run */
static atomic_uint told;
static _Thread_local bool is_caller;

static int64_t now_ns(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void leave_run(void);

static void loop_part(void *user, int64_t begin, int64_t end)
{
  leave_run();
  tn_kernel_ctx *ctx = user;
  const float *x = ctx->inputs[0]->data;
  float *y = ctx->outputs[0]->data;
  for (int64_t i = begin; i < end; i++) {
    for (int64_t until = now_ns() + ITEM_NS; now_ns() < until;) continue;
    y[i] = x[i] + 1;
  }
  if (!is_caller) atomic_fetch_add(&helped, (int)(end - begin));
}

static tn_status compute_loop(tn_kernel_ctx *ctx)
{
  tn_parallel_for(ctx, ctx->inputs[0]->count, 1, ITEM_NS, loop_part, ctx);
  return TN_OK;
}

static tn_status prepare_loop(tn_prepare_ctx *ctx, tn_error *err)
{
  atomic_store(&told, ctx->threads);
  return tn_prepare_output_like(ctx, 0, 0, err);
}

static void register_loop(void)
{
  static const tn_op_def op = { .struct_size = TN_OP_DEF_SIZE,
                                .name = "TestSlow",
                                .inputs = "x: float",
                                .outputs = "y: float",
                                .attrs = "",
                                .traits = TN_TRAIT_STATEFUL };
  static const tn_kernel_def kernel = { .struct_size = TN_KERNEL_DEF_SIZE, .op = "TestSlow", .device = "CPU",
                                        .name = "TestSlow_cpu", .rank = TN_RANK_C, .prepare = prepare_loop,
                                        .compute = compute_loop };
  static const tn_op_family family = { .struct_size = TN_OP_FAMILY_SIZE, .name = "test_slow", .ops = &op, .n_ops = 1,
                                       .kernels = &kernel, .n_kernels = 1 };
  tn_error err = TN_ERROR_INIT;
  REQUIRE_OK(tn_register_ops(&family, &err), &err);
}

/* a = x + 1, b = a + 1, each with a loop; v = -z. */
static ts open_slow(const char *target, const char *pools)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  ts t;
  pthread_once(&once, register_loop);
  ts_init(&t, 1);
  ts_op1(t.graph, "TestSlow", "b", ts_op1(t.graph, "TestSlow", "a", ts_placeholder(t.graph, "x", TN_FLOAT)));
  ts_op1(t.graph, "Neg", "v", ts_placeholder(t.graph, "z", TN_FLOAT));
  REQUIRE_OK(tn_session_options_set_target(t.options, target, &t.err), &t.err);
  if (pools == NULL) REQUIRE_OK(tn_session_options_parse(t.options, "use_per_session_threads", "1", &t.err), &t.err);
  else REQUIRE_OK(tn_session_options_parse(t.options, "session_inter_op_pools", pools, &t.err), &t.err);
  ts_start(&t);
  return t;
}

/* One call with a vector, on this thread. */
static tn_status feed_slow(tn_session *session, tn_partial_run run, const char *feed, const char *fetch, float wanted)
{
  int64_t n = ITEMS;
  tn_error err = TN_ERROR_INIT;
  tn_tensor *in = ts_filled(1, &n, 1), *out = NULL;
  is_caller = true;
  tn_status st = tn_session_partial_run(session, run, &feed, &in, feed != NULL, &fetch, &out, fetch != NULL, &err);
  for (int64_t i = 0; st == TN_OK && out != NULL && i < n; i++)
    CHECK_DOUBLE(((float *)tn_tensor_data(out))[i], wanted, 0);
  tn_tensor_unref(in);
  tn_tensor_unref(out);
  tn_error_clear(&err);
  return st;
}

typedef struct second_call {
  pthread_t thread;
  tn_session *session;
  tn_partial_run run;
  bool as_caller; /* for a release in a part: the thread that makes it */
} second_call;

static void leave_run(void)
{
  uintptr_t found = atomic_load(&leaving);
  if (found == 0 || ((second_call *)found)->as_caller != is_caller) return;
  if (!atomic_compare_exchange_strong(&leaving, &found, 0)) return;
  second_call *c = (second_call *)found;
  CHECK_INT(tn_session_partial_release(c->session, c->run, NULL), TN_OK);
}

static void *make_second_call(void *arg)
{
  second_call *c = arg;
  CHECK_INT(feed_slow(c->session, c->run, "z", "b", 3), TN_OK);
  return NULL;
}

/* A run of two calls, each on its own thread; both kernels run in the first. */
static void run_slow(ts *t, const tn_run_options *options)
{
  second_call c = { .session = t->session };
  is_caller = true;
  REQUIRE_OK(pk_setup_with(t, t->session, options, NAMES("x", "z"), NAMES("a", "b"), NAMES("v"), &c.run), &t->err);
  CHECK_INT(feed_slow(t->session, c.run, "x", "a", 2), TN_OK);
  REQUIRE_INT(pthread_create(&c.thread, NULL, make_second_call, &c), 0);
  pthread_join(c.thread, NULL);
}

/* Whether workers help with one of `runs` runs, within a minute; on a busy machine workers take
 * a while. */
static bool help_within(ts *t, int32_t pool, int runs)
{
  tn_run_options options;
  tn_run_options_init(&options);
  options.inter_op_pool = pool;
  atomic_store(&helped, 0);
  time_t end = time(NULL) + 60;
  for (int i = 0; i < runs && atomic_load(&helped) == 0 && time(NULL) < end; i++) run_slow(t, &options);
  return atomic_load(&helped) > 0;
}
static bool gets_help(ts *t, int32_t pool) { return help_within(t, pool, INT_MAX); }
static bool stays_alone(ts *t, int32_t pool) { return !help_within(t, pool, 5); }

static void partial_help__workers_share_the_loops_of_kernels(void) /* S-PR-33 */
{
  ts t = open_slow("threaded:threads=3", NULL);
  CHECK(gets_help(&t, 0));
  CHECK_INT(atomic_load(&told), 3);
  CHECK(stays_alone(&t, -1));
  ts_fini(&t);
  t = open_slow("threaded:threads=1", NULL);
  CHECK(stays_alone(&t, 0));
  CHECK_INT(atomic_load(&told), 1);
  ts_fini(&t);
  t = open_slow("direct", NULL);
  CHECK(stays_alone(&t, 0));
  ts_fini(&t);
}

static void partial_help__comes_from_the_requested_pool(void) /* S-RO-09, S-RO-10, S-PR-32 */
{
  ts t = open_slow("threaded", "-1,3,2@helpers");
  CHECK(stays_alone(&t, 0));
  CHECK(gets_help(&t, 1));
  CHECK(gets_help(&t, 2));
  CHECK(stays_alone(&t, -1));
  ts_fini(&t);
}

/* A run that waits for its next call holds no worker: the single worker of the session is
 * available to others. */
static void partial_help__ends_when_a_call_returns(void) /* S-CFG-11 */
{
  ts t = open_slow("threaded:threads=2", NULL);
  tn_partial_run open[4];
  for (int i = 0; i < 4; i++) {
    open[i] = pk_begin(&t, NAMES("x", "z"), NAMES("a", "b"), NAMES("v"));
    CHECK_INT(feed_slow(t.session, open[i], "x", "a", 2), TN_OK);
  }
  CHECK(gets_help(&t, 0));
  for (int i = 0; i < 4; i++) CHECK_INT(feed_slow(t.session, open[i], "z", "b", 3), TN_OK);
  CHECK_OK(tn_join_workers(&t.err), &t.err); /* no worker is held */
  ts_fini(&t);
}

/* ---- metadata ---- */

static tn_run_metadata *new_metadata(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_run_metadata *m = NULL;
  REQUIRE_OK(tn_run_metadata_create(&m, &err), &err);
  return m;
}

static tn_metadata_summary summary_of(const tn_run_metadata *m)
{
  tn_metadata_summary s = { .struct_size = sizeof s };
  CHECK_INT(tn_run_metadata_summary(m, &s, NULL), TN_OK);
  return s;
}

/* Records of a node; *last is the last one, if there is one. */
static int records_of(const tn_run_metadata *m, const char *node, tn_node_record *last)
{
  int n = 0;
  for (size_t i = 0; i < summary_of(m).records; i++) {
    tn_node_record r = { .struct_size = sizeof r };
    CHECK_INT(tn_run_metadata_record(m, i, &r, NULL), TN_OK);
    if (strcmp(r.node, node) != 0 || r.kind == TN_RECORD_PART) continue;
    n++;
    if (last != NULL) *last = r;
  }
  return n;
}

static bool is_empty(const tn_run_metadata *m)
{
  tn_metadata_summary s = summary_of(m);
  return s.records == 0 && s.partition_graphs == 0 && s.step_id == 0 && !s.cut;
}

static tn_run_options traced(tn_run_metadata *m)
{
  tn_run_options options;
  tn_run_options_init(&options);
  options.trace_level = 3;
  options.output_partition_graphs = 1;
  options.metadata = m;
  return options;
}

static const char *const xyz[] = { "x", "y", "z", NULL }, *const abc[] = { "a", "b", "c", NULL };

static void open_steps(ts *t, int level)
{
  ts_watch_reset();
  vk_open(t, level, STEPS NODE("loose", "TestCount", "input: 'one'", SLOT(4))
                        NODE("bad", "TestFail", "input: 'y'", SLOT(2))); /* UNKNOWN */
}

static void partial_help__metadata_is_of_the_whole_run(void) /* S-PR-32, S-MD-02, S-RO-13 */
{
  FOR_LEVELS(level)
  {
    ts t;
    tn_partial_run run;
    tn_node_record loose, a, b, c;
    tn_run_metadata *m = new_metadata();
    tn_run_options options = traced(m);
    open_steps(&t, level);
    REQUIRE_OK(pk_setup_with(&t, t.session, &options, xyz, abc, NAMES("loose"), &run), &t.err);
    tn_run_options_init(&options); /* they were copied */
    CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "x", 2 }), "a"), 3, 0);
    ts_sleep_ms(2);
    CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "y", 4 }), "b"), 7, 0);
    CHECK(is_empty(m)); /* until the run ends */
    pk_thread other = { .session = t.session, .run = run, .feed = "z", .fetch = "c", .x = 5 };
    pk_start(&other);
    CHECK_INT(pk_join(&other), TN_OK);
    pk_done(&other);
    tn_metadata_summary s = summary_of(m);
    CHECK(s.traced && !s.cut && s.step_id != 0);
    CHECK_INT(s.threads, 2);
    CHECK_INT(s.partition_graphs, 1);
    CHECK(s.duration_ns >= 2000000); /* time between calls counts, too */
    CHECK_INT(records_of(m, "loose", &loose), 1); /* ran in setup */
    CHECK_INT(records_of(m, "a", &a), 1);
    CHECK_INT(records_of(m, "b", &b), 1);
    CHECK_INT(records_of(m, "c", &c), 1);
    CHECK(loose.start_ns <= a.start_ns && a.start_ns + 2000000 <= b.start_ns && b.start_ns <= c.start_ns);
    CHECK_INT(loose.thread, 0);
    CHECK_INT(b.thread, 0);
    CHECK(c.thread != 0);
    CHECK_INT(records_of(m, "bad", NULL), 0);
    ts_fini(&t);
    CHECK_INT(records_of(m, "c", &c), 1); /* does not need the session */
    tn_run_metadata_destroy(m);
  }
}

enum { FAILS, IS_RELEASED, IS_CANCELLED_THEN_RELEASED, IS_CANCELLED, IS_CLOSED, N_ENDS };

static void end_run(ts *t, tn_partial_run run, tn_cancellation *token, int how)
{
  if (how == FAILS) CHECK_INT(pk_give(t, run, FEEDS({ "y", 1 })), TN_UNKNOWN);
  if (how == IS_CANCELLED || how == IS_CANCELLED_THEN_RELEASED) tn_cancellation_cancel(token);
  if (how == IS_CANCELLED) CHECK_INT(pk_give(t, run, NULL), TN_CANCELLED);
  if (how == IS_CLOSED) CHECK_OK(tn_session_close(t->session, &t->err), &t->err);
  if (how != FAILS && how != IS_CANCELLED) CHECK_OK(tn_session_partial_release(t->session, run, &t->err), &t->err);
}

/* However the run ends, records up to then exist. */
static void partial_help__metadata_of_runs_that_end_early(void) /* S-PR-32, S-MD-04, S-PR-23, S-PR-31 */
{
  for (int how = 0; how < N_ENDS; how++) {
    ts t;
    tn_partial_run run;
    tn_node_record bad = { .status = TN_OK };
    tn_run_metadata *m = new_metadata();
    tn_run_options options = traced(m);
    open_steps(&t, 1);
    REQUIRE_OK(tn_cancellation_create(NULL, &options.cancellation, &t.err), &t.err);
    REQUIRE_OK(pk_setup_with(&t, t.session, &options, xyz, abc, NAMES("bad"), &run), &t.err);
    CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "x", 2 }), "a"), 3, 0);
    CHECK(is_empty(m));
    end_run(&t, run, options.cancellation, how);
    CHECK_INT(records_of(m, "a", NULL), 1);
    CHECK_INT(records_of(m, "c", NULL), 0);
    CHECK_INT(records_of(m, "bad", &bad), how == FAILS);
    CHECK_INT(bad.status, how == FAILS ? TN_UNKNOWN : TN_OK);
    CHECK_INT(summary_of(m).partition_graphs, 1);
    tn_cancellation_unref(options.cancellation);
    ts_fini(&t);
    tn_run_metadata_destroy(m);
  }
}

/* A release waits for a call made by another thread, so that the program owns the metadata when
 * it returns. */
static void partial_help__a_release_returns_with_the_metadata(void) /* S-PR-31, S-PR-32, S-MD-04 */
{
  ts t;
  bk_open(&t, true, START QUEUE(""));
  for (int i = 0; i < 20; i++) {
    pk_thread other = { .session = t.session, .fetch = "late" };
    tn_run_metadata *m = new_metadata();
    tn_run_options options = traced(m);
    int before = atomic_load(&ts_watched.count[BEGUN]);
    REQUIRE_OK(pk_setup_with(&t, t.session, &options, NAMES("x"), NAMES("late"), NULL, &other.run), &t.err);
    REQUIRE_OK(pk_give(&t, other.run, FEEDS({ "x", 1 })), &t.err);
    CHECK_INT(atomic_load(&ts_watched.count[BEGUN]), before + 1);
    pk_start(&other);
    if (i % 2) ts_sleep_ms(2); /* otherwise it may come after the release */
    CHECK_OK(tn_session_partial_release(t.session, other.run, &t.err), &t.err);
    CHECK_INT(records_of(m, "begun", NULL), 1);
    CHECK_INT(summary_of(m).partition_graphs, 1);
    tn_run_metadata_destroy(m);
    tn_status st = pk_join(&other);
    CHECK(st == TN_CANCELLED || st == TN_INVALID_ARGUMENT);
    pk_done(&other);
  }
  ts_fini(&t);
}

enum { OPEN_RUNS = 16, CLOSES = 400 };

static void *close_soon(void *arg)
{
  second_call *c = arg;
  for (volatile unsigned i = (unsigned)c->run.id; i > 0; i--) continue;
  CHECK_INT(tn_session_close(c->session, NULL), TN_OK);
  return NULL;
}

/* The session is closed while runs are released: the close uses a run's metadata before the
 * release returns, or not at all. */
static void partial_help__a_close_does_not_use_released_metadata(void) /* S-PR-31, S-PR-32, S-LIFE-04 */
{
  ts t;
  open_steps(&t, 1);
  for (unsigned k = 0; k < CLOSES; k++) {
    tn_run_metadata *m[OPEN_RUNS];
    tn_partial_run runs[OPEN_RUNS];
    second_call closing = { .session = bk_session(&t), .run = { k * 7919 % 3000 + 1 } };
    for (int i = 0; i < OPEN_RUNS; i++) {
      m[i] = new_metadata();
      tn_run_options options = traced(m[i]);
      REQUIRE_OK(pk_setup_with(&t, closing.session, &options, NAMES("x"), NAMES("a"), NULL, &runs[i]), &t.err);
    }
    REQUIRE_INT(pthread_create(&closing.thread, NULL, close_soon, &closing), 0);
    for (int i = 0; i < OPEN_RUNS; i++) {
      CHECK_OK(tn_session_partial_release(closing.session, runs[i], &t.err), &t.err);
      CHECK_INT(summary_of(m[i]).partition_graphs, 1);
      tn_run_metadata_destroy(m[i]);
    }
    pthread_join(closing.thread, NULL);
    tn_session_destroy(closing.session);
  }
  ts_fini(&t);
}

/* A kernel that releases its own run does not block, on any thread; the metadata is empty then. */
static void partial_help__a_kernel_may_release_its_run(void) /* S-PR-31, S-PR-32 */
{
  for (int as_caller = 0; as_caller < 2; as_caller++) {
    ts t = open_slow("threaded:threads=3", NULL);
    bool made = false;
    for (time_t end = time(NULL) + 60; !made && time(NULL) < end;) {
      tn_run_metadata *m = new_metadata();
      tn_run_options options = traced(m);
      second_call c = { .session = t.session, .as_caller = as_caller };
      REQUIRE_OK(pk_setup_with(&t, t.session, &options, NAMES("x", "z"), NAMES("a", "b"), NAMES("v"), &c.run), &t.err);
      atomic_store(&leaving, (uintptr_t)&c);
      tn_status st = feed_slow(t.session, c.run, "x", "a", 2);
      made = atomic_exchange(&leaving, 0) == 0;
      CHECK_INT(st, made ? TN_CANCELLED : TN_OK);
      if (made) CHECK_INT(summary_of(m).records, 0);
      else CHECK_INT(tn_session_partial_release(t.session, c.run, NULL), TN_OK); /* no worker helped in time */
      tn_run_metadata_destroy(m);
    }
    CHECK(made);
    ts_fini(&t);
  }
}

static void partial_help__metadata_is_as_requested(void) /* S-MD-01, S-MD-04, S-MD-06, S-RO-11, S-RO-12 */
{
  ts t;
  tn_partial_run run;
  tn_run_metadata *m = new_metadata();
  tn_run_options options = traced(m);
  open_steps(&t, 1);
  for (int i = 0; i < 2; i++) {
    REQUIRE_OK(pk_setup_with(&t, t.session, &options, NAMES("x"), NAMES("a"), NULL, &run), &t.err);
    CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "x", 2 }), "a"), 3, 0);
    CHECK_INT(records_of(m, "a", NULL), 1); /* none from the run before */
  }
  options.trace_level = 4; /* rejected: unchanged */
  CHECK_INT(pk_setup_with(&t, t.session, &options, NAMES("x"), NAMES("a"), NULL, &run), TN_INVALID_ARGUMENT);
  options.trace_level = 3;
  CHECK_INT(pk_setup_with(&t, t.session, &options, NAMES("absent"), NAMES("a"), NULL, &run), TN_NOT_FOUND);
  CHECK_INT(records_of(m, "a", NULL), 1);
  options.trace_level = 0;
  options.output_partition_graphs = 0;
  REQUIRE_OK(pk_setup_with(&t, t.session, &options, NAMES("x"), NAMES("a"), NULL, &run), &t.err);
  CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "x", 2 }), "a"), 3, 0);
  CHECK(is_empty(m) && !summary_of(m).traced);
  options = traced(NULL);
  REQUIRE_OK(pk_setup_with(&t, t.session, &options, NAMES("x"), NAMES("a"), NULL, &run), &t.err);
  CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "x", 2 }), "a"), 3, 0);
  options = traced(m); /* a program with older headers lacks this field */
  options.struct_size = offsetof(tn_run_options, metadata);
  REQUIRE_OK(pk_setup_with(&t, t.session, &options, NAMES("x"), NAMES("a"), NULL, &run), &t.err);
  CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "x", 2 }), "a"), 3, 0);
  CHECK(is_empty(m));
  options = traced(m); /* open until the end: never written */
  REQUIRE_OK(pk_setup_with(&t, t.session, &options, NAMES("x"), NAMES("a"), NULL, &run), &t.err);
  tn_run_metadata_destroy(m);
  ts_fini(&t);
}

/* A kernel that waits has a single record, across calls. */
static void partial_help__a_waiting_kernel_has_one_record(void) /* S-MD-02 */
{
  ts t;
  tn_partial_run run;
  tn_node_record got;
  tn_run_metadata *m = new_metadata();
  tn_run_options options = traced(m);
  bk_open(&t, true, START QUEUE("") ANY("y", "DT_FLOAT") NODE("sum", "AddV2", "input: 'get' input: 'y'", F));
  REQUIRE_OK(pk_setup_with(&t, t.session, &options, NAMES("x", "y"), NAMES("sum"), NAMES("put"), &run), &t.err);
  CHECK_OK(pk_give(&t, run, FEEDS({ "y", 1 })), &t.err);
  CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "x", 4 }), "sum"), 5, 0);
  CHECK_INT(records_of(m, "get", &got), 1);
  CHECK(got.waited);
  ts_fini(&t);
  tn_run_metadata_destroy(m);
}

typedef struct life {
  ts *t;
  tn_run_metadata *m;
} life;

static tn_status traced_life(void *arg)
{
  life *l = arg;
  static const char *const feed = "x", *const fetch = "a";
  tn_run_options options = traced(l->m);
  tn_partial_run run;
  tn_tensor *one = NULL, *fetched = NULL;
  tn_error err = TN_ERROR_INIT;
  tn_session *s; /* state kept between steps is freed with it */
  tn_status st = tn_session_create(l->t->options, &s, &err);
  if (st == TN_OK) st = tn_session_set_graph(s, l->t->graph, &err);
  if (st == TN_OK) st = tn_session_partial_setup(s, &options, &feed, 1, &fetch, 1, NULL, 0, &run, &err);
  if (st == TN_OK) st = tn_tensor_from_data(TN_FLOAT, NULL, 0, &(float){ 1 }, sizeof(float), &one, &err);
  if (st == TN_OK) st = tn_session_partial_run(s, run, &feed, &one, 1, &fetch, &fetched, 1, &err);
  CHECK(st != TN_OK || ts_float(fetched) == 2);
  if (st == TN_OK && summary_of(l->m).cut) st = TN_RESOURCE_EXHAUSTED; /* a trace is cut, the run is not */
  tn_tensor_unref(fetched);
  tn_tensor_unref(one);
  tn_error_clear(&err);
  tn_session_destroy(s);
  tn__metadata_clear(l->m);
  return st;
}

static void partial_help__metadata_survives_failing_allocations(void)
{
  ts t;
  life l = { &t, new_metadata() };
  open_steps(&t, 1);
  CHECK_INT(traced_life(&l), TN_OK);
  tn_test_oom_sweep(traced_life, &l);
  tn_run_metadata_destroy(l.m);
  ts_fini(&t);
}

TAP_MAIN(
  TAP_TEST(partial_help__workers_share_the_loops_of_kernels),
  TAP_TEST(partial_help__comes_from_the_requested_pool),
  TAP_TEST(partial_help__ends_when_a_call_returns),
  TAP_TEST(partial_help__metadata_is_of_the_whole_run),
  TAP_TEST(partial_help__metadata_of_runs_that_end_early),
  TAP_TEST(partial_help__a_release_returns_with_the_metadata),
  TAP_TEST(partial_help__a_close_does_not_use_released_metadata),
  TAP_TEST(partial_help__a_kernel_may_release_its_run),
  TAP_TEST(partial_help__metadata_is_as_requested),
  TAP_TEST(partial_help__a_waiting_kernel_has_one_record),
  TAP_TEST(partial_help__metadata_survives_failing_allocations))
