/* SPDX-License-Identifier: Apache-2.0 */
/* Concurrent branches: results equal those of one thread for any order; errors, cancellations
 * and limits end all branches; shared data is used by one branch at a time. Tasks of any size
 * are made here, even if they would not be worth it. */
#include "tests/support/tasks_kit.h"

#include <pthread.h>
#include <stdlib.h>

#include <core/layout/tasks.h>
#include <tenon/runtime.h>

#include "tests/support/plugin_files.h"

#define STEPS 3

static void open_on(ts *t, const char *target, int level)
{
  ts_init(t, level);
  ts_register_tasks();
  REQUIRE_OK(tn_session_options_set_target(t->options, target, &t->err), &t->err);
}

/* Runs a step with x being n ones. */
static tn_status run_on(ts *t, const tn_run_options *options, int64_t n, const char *const *fetches, size_t n_fetches,
                        tn_tensor **out, tn_run_metadata *metadata)
{
  const char *feed = "x";
  tn_tensor *x = ts_filled(1, &n, 1.5f);
  for (size_t i = 0; i < n_fetches; i++) out[i] = NULL;
  tn_status st = tn_session_run(t->session, options, &feed, &x, 1, fetches, out, n_fetches, NULL, 0, metadata, &t->err);
  tn_tensor_unref(x);
  return st;
}

static void drop(tn_tensor **list, size_t n)
{
  for (size_t i = 0; i < n; i++) tn_tensor_unref(list[i]);
}

static bool equal(const tn_tensor *a, const tn_tensor *b)
{
  return a != NULL && b != NULL && tn_tensor_elements(a) == tn_tensor_elements(b) &&
         memcmp(tn_tensor_data(a), tn_tensor_data(b), (size_t)tn_tensor_elements(a) * sizeof(float)) == 0;
}

/* ---- equal results ---- */

typedef struct notes {
  int n, slots[256];
} notes;

static notes take_notes(void)
{
  notes taken = { .n = atomic_load(&ts_watched.n_log) };
  for (int i = 0; i < 256; i++) taken.slots[i] = i < taken.n ? atomic_load(&ts_watched.log[i]) : 0;
  ts_watch_reset();
  return taken;
}

/* One random graph on `direct` and on another runtime; returns whether all results are the same,
 * step by step. */
static bool same_results(const char *target, uint32_t seed, int most_nodes, int level)
{
  char texts[TS_MOST_FETCHES][16];
  const char *fetches[TS_MOST_FETCHES];
  tn_tensor *one[TS_MOST_FETCHES], *all[TS_MOST_FETCHES];
  ts a, b;
  open_on(&a, "direct", level);
  open_on(&b, target, level);
  size_t n = ts_random_branches(a.graph, seed, most_nodes, texts);
  ts_random_branches(b.graph, seed, most_nodes, texts);
  for (size_t i = 0; i < n; i++) fetches[i] = texts[i];
  ts_start(&a);
  ts_start(&b);
  ts_watch_reset();
  bool same = true;
  for (int step = 0; step < STEPS; step++) {
    int64_t x = step == 1 ? 9 : 64; /* other shapes in between */
    CHECK_OK(run_on(&a, NULL, x, fetches, n, one, NULL), &a.err);
    notes in_order = take_notes();
    CHECK_OK(run_on(&b, NULL, x, fetches, n, all, NULL), &b.err);
    notes at_once = take_notes();
    for (size_t i = 0; i < n; i++) same &= equal(one[i], all[i]);
    same &= memcmp(&in_order, &at_once, sizeof in_order) == 0;
    drop(one, n);
    drop(all, n);
  }
  ts_fini(&a);
  ts_fini(&b);
  return same;
}

static void check_many(const char *target, uint32_t first, int n, int most_nodes, double speed)
{
  atomic_store(&tn__tasks_always, true);
  atomic_store(&ts_speed, speed);
  atomic_store(&ts_spoilt, 0);
  for (uint32_t seed = first; seed < first + (uint32_t)n; seed++) {
    bool same = same_results(target, seed, most_nodes, (int)(seed & 1));
    CHECK_MSG(same, "%s: seed %u, %d nodes at most: results differ from one thread's", target, seed, most_nodes);
    CHECK_MSG(atomic_load(&ts_spoilt) == 0, "%s: seed %u: memory was shared by concurrent values", target, seed);
    atomic_store(&ts_spoilt, 0);
  }
  atomic_store(&tn__tasks_always, false);
}

static void tasks__results_equal_those_of_one_thread(void) /* S-THR-01 */
{
  atomic_store(&ts_most_at_once, 0);
  check_many("threaded:threads=3", 1, 60, 40, 0.5);
  check_many("threaded:threads=3", 1000, 20, 200, 0.2);
  check_many("threaded:threads=2", 2000, 40, 12, 1);
  CHECK_MSG(atomic_load(&ts_most_at_once) >= 2, "no two kernels ran concurrently");
}

static void tasks__many_small_tasks(void)
{
  check_many("threaded:threads=4", 3000, 12, 500, 0);
}

static void tasks__one_thread_can_run_all_tasks(void)
{
  atomic_store(&tn__tasks_always, true);
  for (uint32_t seed = 50; seed < 60; seed++) {
    char texts[TS_MOST_FETCHES][16];
    const char *fetches[TS_MOST_FETCHES];
    tn_tensor *one[TS_MOST_FETCHES], *all[TS_MOST_FETCHES];
    tn_run_options options;
    ts t;
    open_on(&t, "threaded:threads=3", 1);
    size_t n = ts_random_branches(t.graph, seed, 60, texts);
    for (size_t i = 0; i < n; i++) fetches[i] = texts[i];
    ts_start(&t);
    tn_run_options_init(&options);
    CHECK_OK(run_on(&t, &options, 64, fetches, n, all, NULL), &t.err);
    options.inter_op_pool = -1;
    CHECK_OK(run_on(&t, &options, 64, fetches, n, one, NULL), &t.err);
    for (size_t i = 0; i < n; i++) CHECK_MSG(equal(one[i], all[i]), "seed %u, fetch %s", seed, fetches[i]);
    drop(one, n);
    drop(all, n);
    ts_fini(&t);
  }
  atomic_store(&tn__tasks_always, false);
}

typedef struct caller {
  pthread_t thread;
  ts *t;
  bool same;
} caller;

static void *call_many(void *arg)
{
  caller *c = arg;
  const char *fetch = "sum", *feed = "x";
  int64_t n = 64;
  tn_error err = TN_ERROR_INIT;
  tn_tensor *x = ts_filled(1, &n, 1.5f), *first = NULL;
  c->same = true;
  for (int i = 0; i < 30; i++) {
    tn_tensor *out = NULL;
    CHECK_OK(tn_session_run(c->t->session, NULL, &feed, &x, 1, &fetch, &out, 1, NULL, 0, NULL, &err), &err);
    if (first == NULL) first = out;
    c->same &= equal(first, out);
    if (out != first) tn_tensor_unref(out);
  }
  tn_tensor_unref(first);
  tn_tensor_unref(x);
  tn_error_clear(&err);
  return NULL;
}

/* x -> n chains of `length` nodes -> sum; the last node of chain c is "c<c>". */
static void chains(tn_graph *graph, const char *op, int n, int length, int ns)
{
  tn_output x = ts_placeholder(graph, "x", TN_FLOAT), sum = x;
  const tn_output none = { NULL, 0 };
  for (int c = 0; c < n; c++) {
    tn_output at = x;
    for (int i = 0; i < length; i++) {
      char name[32];
      snprintf(name, sizeof name, i + 1 < length ? "c%d_%d" : "c%d", c, i);
      at = ts_task_op(graph, op, name, at, strcmp(op, "TestScan") == 0 ? x : none, 64, ns, c);
    }
    char name[32];
    snprintf(name, sizeof name, c + 1 < n ? "sum_%d" : "sum", c);
    sum = ts_task_op(graph, "TestScan", name, sum, at, 64, 0, 0);
  }
}

static void tasks__concurrent_steps(void)
{
  caller callers[4];
  ts t;
  atomic_store(&tn__tasks_always, true);
  open_on(&t, "threaded:threads=3", 1);
  chains(t.graph, "TestScan", 5, 4, 5000);
  ts_start(&t);
  for (int i = 0; i < 4; i++) {
    callers[i] = (caller){ .t = &t };
    REQUIRE_INT(pthread_create(&callers[i].thread, NULL, call_many, &callers[i]), 0);
  }
  for (int i = 0; i < 4; i++) {
    pthread_join(callers[i].thread, NULL);
    CHECK(callers[i].same);
  }
  ts_fini(&t);
  atomic_store(&tn__tasks_always, false);
}

/* Steps run by kernels in branches, on a pool fully occupied by them. */
static void tasks__steps_nested_in_branches(void) /* S-THR-07 */
{
  caller callers[3];
  ts inner, t;
  atomic_store(&tn__tasks_always, true);
  open_on(&inner, "threaded:threads=2", 1);
  chains(inner.graph, "TestScan", 3, 2, 2000);
  ts_start(&inner);
  ts_nested = inner.session;
  open_on(&t, "threaded:threads=2", 1);
  chains(t.graph, "TestNest", 4, 2, 20000);
  ts_start(&t);
  for (int i = 0; i < 3; i++) {
    callers[i] = (caller){ .t = &t };
    REQUIRE_INT(pthread_create(&callers[i].thread, NULL, call_many, &callers[i]), 0);
  }
  for (int i = 0; i < 3; i++) {
    pthread_join(callers[i].thread, NULL);
    CHECK(callers[i].same);
  }
  ts_fini(&t);
  ts_fini(&inner);
  atomic_store(&tn__tasks_always, false);
}

/* ---- errors and cancellation ---- */

static void tasks__an_error_ends_the_step(void) /* S-CAN-01 */
{
  const char *fetch = "sum";
  tn_tensor *out;
  ts t;
  atomic_store(&tn__tasks_always, true);
  open_on(&t, "threaded:threads=3", 1);
  chains(t.graph, "TestBreak", 4, 6, 20000);
  ts_start(&t);
  for (int slot = 0; slot < 8; slot++) {
    atomic_store(&ts_breaks, slot % 5 + 1); /* slot 5 does not exist: steps succeed again after a failure */
    tn_status st = run_on(&t, NULL, 64, &fetch, 1, &out, NULL);
    CHECK_INT(st, slot % 5 == 4 ? TN_OK : TN_ABORTED);
    CHECK((out == NULL) == (slot % 5 != 4));
    if (st == TN_ABORTED) {
      char said[32];
      snprintf(said, sizeof said, "broken in slot %d", slot % 5);
      CHECK_CONTAINS(tn_error_message(&t.err), said);
      snprintf(said, sizeof said, "c%d_0", slot % 5);
      CHECK_STR(tn_error_node(&t.err), said);
    }
    tn_tensor_unref(out);
  }
  atomic_store(&ts_breaks, 0);
  ts_fini(&t);
  atomic_store(&tn__tasks_always, false);
}

/* One branch fails while another is inside a kernel: that kernel is notified, and the step does
 * not wait longer. */
static void tasks__an_error_reaches_other_branches(void)
{
  const char *fetch = "z";
  const tn_output none = { NULL, 0 };
  tn_tensor *out;
  ts t;
  atomic_store(&tn__tasks_always, true);
  open_on(&t, "threaded:threads=2", 1);
  tn_output x = ts_placeholder(t.graph, "x", TN_FLOAT);
  tn_output a = ts_task_op(t.graph, "TestStay", "stay", x, none, 64, 50000, 0);
  tn_output b = ts_task_op(t.graph, "TestBreak", "slow", x, none, 64, 20000000, 5);
  b = ts_task_op(t.graph, "TestBreak", "break", b, none, 64, 20000000, 1);
  ts_task_op(t.graph, "TestScan", "z", a, b, 64, 0, 0);
  ts_start(&t);
  atomic_store(&ts_speed, 1);
  atomic_store(&ts_goes, 0);
  atomic_store(&ts_breaks, 2);
  CHECK_STATUS(run_on(&t, NULL, 64, &fetch, 1, &out, NULL), TN_ABORTED, &t.err);
  CHECK_STR(tn_error_node(&t.err), "break");
  CHECK_NULL(out);
  atomic_store(&ts_breaks, 0);
  ts_fini(&t);
  atomic_store(&tn__tasks_always, false);
}

static void *cancel_soon(void *token)
{
  while (atomic_load(&ts_stays) == 0) ts_sleep_ms(1);
  ts_sleep_ms(5);
  tn_cancellation_cancel(token);
  return NULL;
}

static void *close_soon(void *session)
{
  while (atomic_load(&ts_stays) == 0) ts_sleep_ms(1);
  CHECK_INT(tn_session_close(session, NULL), TN_OK);
  return NULL;
}

static void tasks__cancellations_and_time_limits(void) /* S-CAN-05, S-RUN-19, S-LIFE-04 */
{
  const char *fetch = "sum";
  tn_tensor *out;
  tn_run_options options;
  pthread_t thread;
  ts t;
  atomic_store(&tn__tasks_always, true);
  atomic_store(&ts_goes, 0);
  open_on(&t, "threaded:threads=3", 1);
  chains(t.graph, "TestStay", 3, 2, 1000);
  ts_start(&t);
  tn_run_options_init(&options);
  options.timeout_ms = 30;
  CHECK_STATUS(run_on(&t, &options, 64, &fetch, 1, &out, NULL), TN_DEADLINE_EXCEEDED, &t.err);
  CHECK_NULL(out);
  tn_run_options_init(&options);
  REQUIRE_OK(tn_cancellation_create(NULL, &options.cancellation, &t.err), &t.err);
  REQUIRE_INT(pthread_create(&thread, NULL, cancel_soon, options.cancellation), 0);
  CHECK_STATUS(run_on(&t, &options, 64, &fetch, 1, &out, NULL), TN_CANCELLED, &t.err);
  CHECK_NULL(out);
  pthread_join(thread, NULL);
  tn_cancellation_unref(options.cancellation);
  REQUIRE_INT(pthread_create(&thread, NULL, close_soon, t.session), 0);
  CHECK_STATUS(run_on(&t, NULL, 64, &fetch, 1, &out, NULL), TN_CANCELLED, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "closed");
  pthread_join(thread, NULL);
  ts_fini(&t);
  atomic_store(&tn__tasks_always, false);
}

/* ---- cost ---- */

/* Maximum of concurrent kernels in `steps` steps of two chains, with kernels of ns each. */
static int most_at_once(const char *target, int ns, int steps)
{
  const char *fetch = "sum";
  tn_tensor *out;
  ts t;
  atomic_store(&ts_speed, 1);
  open_on(&t, target, 1);
  chains(t.graph, "TestScan", 2, 4, ns);
  ts_start(&t);
  atomic_store(&ts_most_at_once, 0);
  for (int i = 0; i < steps && atomic_load(&ts_most_at_once) < 2; i++) {
    CHECK_OK(run_on(&t, NULL, 64, &fetch, 1, &out, NULL), &t.err);
    tn_tensor_unref(out);
  }
  ts_fini(&t);
  return atomic_load(&ts_most_at_once);
}

static void tasks__only_heavy_branches_run_concurrently(void)
{
  CHECK_INT(most_at_once("threaded:threads=2", 500000, 200), 2);
  CHECK_INT(most_at_once("threaded:threads=2", 500, 100), 1);
  CHECK_INT(most_at_once("threaded:threads=1", 500000, 20), 1);
  CHECK_INT(most_at_once("direct", 500000, 20), 1);
}

/* ---- a trace ---- */

static void tasks__a_trace_shows_concurrent_threads(void) /* S-RM */
{
  const char *fetch = "sum";
  tn_tensor *out;
  tn_run_options options;
  ts t;
  bool overlap = false;
  atomic_store(&tn__tasks_always, true);
  atomic_store(&ts_speed, 1);
  open_on(&t, "threaded:threads=2", 1);
  chains(t.graph, "TestScan", 2, 3, 2000000);
  ts_start(&t);
  tn_run_options_init(&options);
  options.trace_level = 3;
  for (int i = 0; i < 50 && !overlap; i++) { /* on a busy machine a worker may be late */
    tn_run_metadata *m;
    tn_metadata_summary sum = { .struct_size = sizeof sum };
    REQUIRE_OK(tn_run_metadata_create(&m, &t.err), &t.err);
    CHECK_OK(run_on(&t, &options, 64, &fetch, 1, &out, m), &t.err);
    CHECK_OK(tn_run_metadata_summary(m, &sum, &t.err), &t.err);
    int calls = 0;
    for (size_t k = 0; k < sum.records; k++) {
      tn_node_record r = { .struct_size = sizeof r }, o = { .struct_size = sizeof o };
      CHECK_OK(tn_run_metadata_record(m, k, &r, &t.err), &t.err);
      calls += r.kind == TN_RECORD_NODE;
      for (size_t j = 0; j < k && !overlap; j++) {
        CHECK_OK(tn_run_metadata_record(m, j, &o, &t.err), &t.err);
        overlap =
            o.thread != r.thread && o.start_ns < r.start_ns + r.duration_ns && r.start_ns < o.start_ns + o.duration_ns;
      }
    }
    CHECK_INT(calls, 8); /* each call once */
    tn_tensor_unref(out);
    tn_run_metadata_destroy(m);
  }
  CHECK(overlap);
  ts_fini(&t);
  atomic_store(&tn__tasks_always, false);
}

/* ---- memory ---- */

static void tasks__a_repeated_step_allocates_only_its_outputs(void)
{
  const char *fetch = "sum";
  tn_tensor *out;
  ts t;
  atomic_store(&tn__tasks_always, true);
  open_on(&t, "threaded:threads=3", 1);
  chains(t.graph, "TestMake", 4, 5, 2000);
  ts_start(&t);
  uint64_t blocks = 0;
  for (int i = 0; i < 40; i++) {
    CHECK_OK(run_on(&t, NULL, 64, &fetch, 1, &out, NULL), &t.err);
    tn_tensor_unref(out);
    if (i == 30) blocks = tn_test_live_blocks();
  }
  CHECK_MSG(tn_test_live_blocks() <= blocks + 40, "%llu blocks after 30 steps, %llu after 40",
            (unsigned long long)blocks, (unsigned long long)tn_test_live_blocks());
  ts_fini(&t);
  atomic_store(&tn__tasks_always, false);
}

static tn_status run_fresh(void *arg)
{
  const char *target = arg, *fetch = "sum", *feed = "x";
  int64_t n = 16;
  tn_error err = TN_ERROR_INIT;
  tn_session_options *options = NULL;
  tn_session *session = NULL;
  tn_tensor *x = NULL, *out = NULL;
  static tn_graph *graph;
  if (graph == NULL) {
    REQUIRE_OK(tn_graph_create(&graph, &err), &err);
    chains(graph, "TestMake", 3, 2, 1000);
  }
  tn_status st = tn_session_options_create(&options, &err);
  if (st == TN_OK) st = tn_session_options_set_target(options, target, &err);
  if (st == TN_OK)
    st = tn_session_options_set_bool(options, "use_per_session_threads", 1, &err); /* so that its pool is freed */
  if (st == TN_OK) st = tn_session_create(options, &session, &err);
  if (st == TN_OK) st = tn_session_set_graph(session, graph, &err);
  if (st == TN_OK) st = tn_tensor_create(TN_FLOAT, &n, 1, &x, &err);
  if (st == TN_OK) memset(tn_tensor_data(x), 0, (size_t)n * sizeof(float));
  if (st == TN_OK) st = tn_session_run(session, NULL, &feed, &x, 1, &fetch, &out, 1, NULL, 0, NULL, &err);
  tn_tensor_unref(out);
  tn_tensor_unref(x);
  tn_session_destroy(session);
  tn_session_options_destroy(options);
  tn_error_clear(&err);
  return st;
}

static void tasks__nothing_leaks_without_memory(void)
{
  atomic_store(&tn__tasks_always, true);
  ts_register_tasks();
  tn_test_oom_sweep(run_fresh, (void *)(uintptr_t)"threaded:threads=2");
  atomic_store(&tn__tasks_always, false);
}

/* ---- level (b) ---- */

static void search_scheduler(void)
{
  static bool there;
  if (there) return;
  const char *folder = plugin_folder();
  plugin_copy("scheduler", folder, "scheduler.so");
  plugin_search(folder);
  there = true;
}

static void tasks__a_scheduler_of_a_plugin_runs_them(void)
{
  const char *fetch = "sum";
  tn_tensor *out;
  ts t;
  search_scheduler();
  atomic_store(&ts_speed, 0.3);
  for (uint32_t seed = 1; seed <= 40; seed++) {
    CHECK_MSG(same_results("test.scheduler", seed, 60, (int)(seed & 1)), "seed %u: results differ from one thread's",
              seed);
    CHECK_INT(atomic_load(&ts_spoilt), 0);
  }
  atomic_store(&ts_speed, 1);
  atomic_store(&ts_most_at_once, 0);
  open_on(&t, "test.scheduler", 1);
  chains(t.graph, "TestScan", 2, 3, 2000000);
  ts_start(&t);
  for (int i = 0; i < 50 && atomic_load(&ts_most_at_once) < 2; i++) {
    CHECK_OK(run_on(&t, NULL, 64, &fetch, 1, &out, NULL), &t.err);
    tn_tensor_unref(out);
  }
  CHECK_INT(atomic_load(&ts_most_at_once), 2);
  ts_fini(&t);
}

/* ---- a scheduler that runs everything immediately, as in docs/plugin-guide/kit.md ---- */

struct tn_runtime_session {
  size_t given, over, parts;
};

static void run_now(void *user, tn_step *step, const uint32_t *instructions, const float *costs, size_t n)
{
  tn_runtime_session *s = user;
  for (size_t i = 0; i < n; i++) CHECK(costs[i] >= 0);
  s->given += n;
  s->over += n == 0;
  if (n > 0) tn_kit_run_instructions(step, instructions, n);
}

static void wait_for_nothing(void *user, tn_step *step)
{
  ((tn_runtime_session *)user)->parts++;
  CHECK_INT(tn_kit_instructions_left(step), 0);
}

static tn_runtime_session inline_session;

static tn_status new_inline(const tn_session_factory *self, const tn_session_options *options, tn_runtime_session **out,
                            tn_error *err)
{
  (void)self, (void)options, (void)err;
  *out = &inline_session;
  return TN_OK;
}

static tn_bool accepts_all(const tn_session_factory *self, const tn_session_options *options)
{
  (void)self, (void)options;
  return 1;
}

static void end_inline(const tn_session_factory *self, tn_runtime_session *session) { (void)self, (void)session; }

static tn_status prepare_inline(const tn_session_factory *self, tn_runtime_session *session, const tn_plan *plan,
                                tn_executable **out, tn_error *err)
{
  (void)self;
  const tn_kit_scheduler scheduler = { TN_KIT_SCHEDULER_SIZE, session, run_now, wait_for_nothing };
  return tn_kit_prepare_scheduled(plan, &scheduler, out, err);
}

/* A long plan, too: running instructions inside `ready` does not nest deeper and deeper. */
static void tasks__a_scheduler_that_runs_instructions_immediately(void)
{
  static const tn_session_factory factory = { .struct_size = TN_SESSION_FACTORY_SIZE,
                                              .name = "test.inline",
                                              .new_session = new_inline,
                                              .accepts_options = accepts_all,
                                              .destroy_session = end_inline,
                                              .prepare = prepare_inline };
  const char *fetch = "sum";
  tn_tensor *out, *wanted;
  tn_run_options options;
  ts t, direct;
  ts_init(&t, 1);
  REQUIRE_OK(tn_runtime_register("test.inline", &factory, &t.err), &t.err);
  ts_fini(&t);
  open_on(&t, "test.inline", 1);
  open_on(&direct, "direct", 1);
  chains(t.graph, "TestScan", 1500, 3, 10);
  chains(direct.graph, "TestScan", 1500, 3, 10);
  ts_start(&t);
  ts_start(&direct);
  CHECK_OK(run_on(&direct, NULL, 64, &fetch, 1, &wanted, NULL), &direct.err);
  inline_session = (tn_runtime_session){ 0, 0, 0 };
  CHECK_OK(run_on(&t, NULL, 64, &fetch, 1, &out, NULL), &t.err);
  CHECK(equal(out, wanted));
  CHECK_MSG(inline_session.given > 100 && inline_session.given <= TN__MOST_TASKS, "%zu instructions",
            inline_session.given);
  CHECK_INT(inline_session.over, 1);
  CHECK_INT(inline_session.parts, 1);
  tn_tensor_unref(out);
  tn_run_options_init(&options); /* steps that must run on one thread are not scheduled */
  options.inter_op_pool = -1;
  CHECK_OK(run_on(&t, &options, 64, &fetch, 1, &out, NULL), &t.err);
  CHECK(equal(out, wanted));
  CHECK_INT(inline_session.parts, 1);
  tn_tensor_unref(out);
  tn_tensor_unref(wanted);
  ts_fini(&t);
  ts_fini(&direct);
}

static void tasks__failed_steps_with_a_scheduler(void)
{
  const char *fetch = "sum";
  tn_tensor *out;
  tn_run_options options;
  ts t;
  search_scheduler();
  open_on(&t, "test.scheduler", 1);
  chains(t.graph, "TestBreak", 4, 6, 20000);
  ts_start(&t);
  atomic_store(&ts_breaks, 3);
  CHECK_STATUS(run_on(&t, NULL, 64, &fetch, 1, &out, NULL), TN_ABORTED, &t.err);
  CHECK_STR(tn_error_node(&t.err), "c2_0");
  atomic_store(&ts_breaks, 0);
  CHECK_OK(run_on(&t, NULL, 64, &fetch, 1, &out, NULL), &t.err);
  tn_tensor_unref(out);
  atomic_store(&ts_speed, 5000); /* each node 0.1 s */
  tn_run_options_init(&options);
  options.timeout_ms = 30;
  CHECK_STATUS(run_on(&t, &options, 64, &fetch, 1, &out, NULL), TN_DEADLINE_EXCEEDED, &t.err);
  atomic_store(&ts_speed, 1);
  ts_fini(&t);
}

static void tasks__errors_report_mistakes_of_a_scheduler(void)
{
  static const struct {
    const char *target, *said;
  } cases[] = { { "test.scheduler:wrong=twice", "twice" },
                { "test.scheduler:wrong=unknown", "ran instruction 100000" },
                { "test.scheduler:wrong=never", "has not run" },
                { "test.scheduler:wrong=early", "has not run" } };
  const char *fetch = "sum";
  tn_tensor *out;
  search_scheduler();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ts t;
    open_on(&t, cases[i].target, 1);
    chains(t.graph, "TestScan", 3, 3, 1000);
    ts_start(&t);
    for (int k = 0; k < 3; k++) {
      CHECK_STATUS(run_on(&t, NULL, 64, &fetch, 1, &out, NULL), TN_INTERNAL, &t.err);
      CHECK_CONTAINS(tn_error_message(&t.err), cases[i].said);
      CHECK_NULL(out);
    }
    ts_fini(&t);
  }
}

static void tasks__a_scheduler_is_checked(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_executable *e = (tn_executable *)&err;
  tn_kit_scheduler s = { .struct_size = TN_KIT_SCHEDULER_SIZE };
  CHECK_STATUS(tn_kit_prepare_scheduled(NULL, &s, &e, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_NULL(e);
  CHECK_STATUS(tn_kit_prepare_scheduled((const tn_plan *)&err, NULL, &e, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_kit_prepare_scheduled((const tn_plan *)&err, &s, &e, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "ready");
  s.struct_size = 8;
  CHECK_STATUS(tn_kit_prepare_scheduled((const tn_plan *)&err, &s, &e, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_kit_prepare_scheduled((const tn_plan *)&err, &s, NULL, &err), TN_INVALID_ARGUMENT, &err);
  tn_error_clear(&err);
}

TAP_MAIN(
  TAP_TEST(tasks__results_equal_those_of_one_thread),
  TAP_TEST(tasks__many_small_tasks),
  TAP_TEST(tasks__one_thread_can_run_all_tasks),
  TAP_TEST(tasks__concurrent_steps),
  TAP_TEST(tasks__steps_nested_in_branches),
  TAP_TEST(tasks__an_error_ends_the_step),
  TAP_TEST(tasks__an_error_reaches_other_branches),
  TAP_TEST(tasks__cancellations_and_time_limits),
  TAP_TEST(tasks__only_heavy_branches_run_concurrently),
  TAP_TEST(tasks__a_trace_shows_concurrent_threads),
  TAP_TEST(tasks__a_repeated_step_allocates_only_its_outputs),
  TAP_TEST(tasks__nothing_leaks_without_memory),
  TAP_TEST(tasks__a_scheduler_of_a_plugin_runs_them),
  TAP_TEST(tasks__a_scheduler_that_runs_instructions_immediately),
  TAP_TEST(tasks__failed_steps_with_a_scheduler),
  TAP_TEST(tasks__errors_report_mistakes_of_a_scheduler),
  TAP_TEST(tasks__a_scheduler_is_checked))
