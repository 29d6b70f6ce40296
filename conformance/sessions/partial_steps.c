/* SPDX-License-Identifier: Apache-2.0 */
/* Execution in partial runs: branches, loops, waiting, threads, and external ends. */
#include "conformance/support/partial_kit.h"

#include <math.h>
#include <tenon/runtime.h>

static void open_text(ts *t, int level, const char *text)
{
  ts_fini(t);
  ts_watch_reset();
  vk_open(t, level, text);
}
#define FOR_OPEN(t, text)                                               \
  for (int level = (ts_init(&t, 1), 0); level <= 1; level++)            \
    if (open_text(&t, level, text), true)

/* ---- which nodes run ---- */

#define BRANCHES                                                                                                  \
  ANY("x", "DT_FLOAT") ANY("y", "DT_FLOAT") ANY("f", "DT_FLOAT") SCALAR("one", "1")                               \
  NODE("p", "Less", "input: 'f' input: 'one'", F) NODE("s", "Switch", "input: 'x' input: 'p'", F)                 \
  NODE("no", "TestCount", "input: 's'", SLOT(1)) NODE("yes", "TestCount", "input: 's:1'", SLOT(2))                \
  NODE("yy", "AddV2", "input: 'yes' input: 'y'", F) NODE("m", "Merge", "input: 'no' input: 'yy'", F INT("N", 2))  \
  NODE("same", "Identity", "input: 'x'", F) NODE("other", "Identity", "input: 'same'", F)

static void partial_steps__take_branches(void) /* S-PR-13, S-PR-27, S-EXE-05, S-EXE-07 */
{
  ts t;
  FOR_OPEN(t, BRANCHES)
  {
    tn_partial_run run = pk_begin(&t, NAMES("x", "y", "f"), NAMES("yes", "m", "m:1"), NULL);
    CHECK_OK(pk_give(&t, run, FEEDS({ "x", 3 })), &t.err);
    CHECK_INT(pk_fails(&t, run, NULL, "yes"), TN_INVALID_ARGUMENT); /* the predicate is not known yet */
    CHECK_CONTAINS(tn_error_message(&t.err), "'f:0'");
    CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "f", 0 }), "yes"), 3, 0);
    CHECK_INT(pk_fails(&t, run, NULL, "m"), TN_INVALID_ARGUMENT); /* y may be needed */
    CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "y", 4 }), "m"), 7, 0);
    CHECK_INT(ts_counted(1), 0);
    CHECK_OK(tn_session_partial_release(t.session, run, &t.err), &t.err);
    run = pk_begin(&t, NAMES("x", "y", "f"), NAMES("yes", "m"), NULL);
    CHECK_INT(pk_fails(&t, run, FEEDS({ "x", 3 }, { "f", 2 }), "yes"), TN_INVALID_ARGUMENT); /* S-PR-27 */
    CHECK_CONTAINS(tn_error_message(&t.err), "'yes:0'");
    CHECK(pk_has_ended(&t, run));
  }
  ts_fini(&t);
}

static void partial_steps__fetch_tensors_owned_by_the_caller(void) /* S-RUN-27, S-RUN-28 */
{
  ts t;
  FOR_OPEN(t, BRANCHES NODE("sum", "AddV2", "input: 'other' input: 'y'", F))
  {
    const char *x = "x", *names[] = { "same", "other" };
    tn_tensor *feed = ts_scalar(3), *fetched[2] = { NULL, NULL };
    tn_partial_run run = pk_begin(&t, NAMES("x", "y"), NAMES("same", "other", "sum"), NULL);
    REQUIRE_OK(tn_session_partial_run(t.session, run, &x, &feed, 1, names, fetched, 2, &t.err), &t.err);
    *(float *)tn_tensor_data(feed) = 100; /* it is not read any more */
    for (int i = 0; i < 2; i++) {
      CHECK_DOUBLE(ts_float(fetched[i]), 3, 0);
      CHECK(tn_tensor_is_exclusive(fetched[i]));
      *(float *)tn_tensor_data(fetched[i]) = 200;
      tn_tensor_unref(fetched[i]);
    }
    tn_tensor_unref(feed);
    CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "y", 4 }), "sum"), 7, 0);
  }
  ts_fini(&t);
}

/* c counts; d depends on the placeholder y only. */
#define WAITS_FOR_FEED \
  ANY("x", "DT_FLOAT") ANY("y", "DT_FLOAT") NODE("d", "TestCount", "input: 'x' input: '^y'", SLOT(1))

static void partial_steps__wait_for_feeds_by_control_edges(void) /* S-PR-13, S-EXE-02 */
{
  ts t;
  FOR_OPEN(t, WAITS_FOR_FEED NODE("neg", "Neg", "input: 'y'", F))
  {
    tn_partial_run run = pk_begin(&t, NAMES("x", "y"), NAMES("d", "neg"), NULL);
    CHECK_INT(pk_fails(&t, run, FEEDS({ "x", 3 }), "d"), TN_INVALID_ARGUMENT);
    CHECK_OK(pk_give(&t, run, FEEDS({ "x", 3 })), &t.err);
    CHECK_INT(ts_counted(1), 0);
    CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "y", 2 }), "d"), 3, 0);
    CHECK_DOUBLE(pk_get(&t, run, NULL, "neg"), -2, 0);
  }
  ts_fini(&t);
}

#define ROUNDS                                                                                                    \
  LOOP_LIBRARY START ANY("y", "DT_FLOAT") COUNTS NODE("ten_y", "AddV2", "input: 'ten' input: 'y'", F)             \
  NODE("few_y", "AddV2", "input: 'few' input: 'y'", F)

static void partial_steps__run_loops(void) /* S-EXE-13 */
{
  ts t;
  FOR_OPEN(t, ROUNDS)
  {
    tn_partial_run run = pk_begin(&t, NAMES("x", "y"), NAMES("ten", "few", "ten_y", "few_y"), NULL);
    CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "x", 2.5f }), "ten"), 10.5, 0);
    CHECK_INT(pk_fails(&t, run, NULL, "few_y"), TN_INVALID_ARGUMENT);
    CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "y", 1 }), "few_y"), 11.5, 0);
    CHECK_DOUBLE(pk_get(&t, run, NULL, "ten_y"), 11.5, 0);
    CHECK_DOUBLE(pk_get(&t, run, NULL, "few"), 10.5, 0);
    CHECK(pk_has_ended(&t, run));
  }
  ts_fini(&t);
}

/* A stack of the step: pushed in one call, popped in another. */
#define STACK                                                                                                     \
  ANY("x", "DT_FLOAT") ANY("y", "DT_FLOAT") INTS("size", "", "int_val: 9")                                        \
  NODE("stack", "StackV2", "input: 'size'", TYPE("elem_type", "DT_FLOAT"))                                        \
  NODE("push", "StackPushV2", "input: 'stack' input: 'x'", F)                                                     \
  NODE("pop", "StackPopV2", "input: 'stack' input: '^push' input: '^y'", TYPE("elem_type", "DT_FLOAT"))

static void partial_steps__keep_the_steps_container(void) /* S-RST-22 */
{
  ts t;
  FOR_OPEN(t, STACK)
  {
    tn_partial_run run = pk_begin(&t, NAMES("x", "y"), NAMES("push", "pop"), NULL);
    CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "x", 3 }), "push"), 3, 0);
    CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "y", 4 }), "pop"), 3, 0);
  }
  ts_fini(&t);
}

/* ---- waiting ---- */

#define WAITING LOOP_LIBRARY START QUEUE("") ANY("y", "DT_FLOAT") SCALAR_VARIABLE("")                             \
  NODE("got", "TestCount", "input: 'get'", SLOT(5)) NODE("sum", "AddV2", "input: 'get' input: 'y'", F)            \
  NODE("puty", "QueueEnqueueV2", "input: 'q' input: 'y'", PUTS)

static void open_waiting(ts *t, int64_t timeout_ms)
{
  bk_open(t, true, WAITING);
  tn_session_destroy(t->session);
  REQUIRE_OK(tn_session_options_set_int(t->options, "operation_timeout_ms", timeout_ms, &t->err), &t->err);
  t->session = bk_session(t);
}

static void partial_steps__wait_in_one_call_for_another(void) /* S-PR-02: a dequeue before its enqueue */
{
  ts t;
  open_waiting(&t, 0);
  tn_partial_run run = pk_begin(&t, NAMES("x", "y"), NAMES("begun", "got", "sum"), NAMES("put"));
  CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "x", 3 }), "begun"), 3, 0); /* lets "put" and then "get" run */
  CHECK_DOUBLE(pk_get(&t, run, NULL, "got"), 3, 0);
  CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "y", 4 }), "sum"), 7, 0);
  CHECK(pk_has_ended(&t, run));
  run = pk_begin(&t, NAMES("x", "y"), NAMES("begun", "got"), NAMES("puty")); /* the other way round */
  CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "x", 3 }), "begun"), 3, 0);
  CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "y", 4 }), "got"), 4, 0);
  ts_fini(&t);
}

static void partial_steps__wait_for_other_steps(void) /* a fetch that depends on a blocked dequeue */
{
  ts t;
  open_waiting(&t, 0);
  tn_partial_run run = pk_begin(&t, NAMES("y"), NAMES("got", "sum"), NULL);
  pk_thread p = { .session = t.session, .run = run, .fetch = "got" };
  pk_start(&p);
  ts_sleep_ms(20);
  CHECK(!atomic_load(&p.ended));
  CHECK_INT(bk_target(t.session, "put", 8), TN_OK);
  CHECK_STATUS(pk_join(&p), TN_OK, &p.err);
  CHECK_DOUBLE(p.value, 8, 0);
  pk_done(&p);
  CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "y", 1 }), "sum"), 9, 0);
  ts_fini(&t);
}

static void partial_steps__have_a_time_limit_for_each_call(void) /* S-PR-28, S-PR-32, S-PR-23, S-PR-24 */
{
  ts t;
  tn_run_options options;
  tn_run_options_init(&options);
  for (int own = 0; own <= 1; own++) {
    open_waiting(&t, own ? 10000 : 60);
    options.timeout_ms = own ? 60 : 0;
    tn_partial_run run, idle;
    REQUIRE_OK(pk_setup_with(&t, t.session, &options, NAMES("y"), NAMES("got"), NULL, &run), &t.err);
    REQUIRE_OK(pk_setup_with(&t, t.session, &options, NAMES("x"), NAMES("begun"), NULL, &idle), &t.err);
    int64_t begin = ts_now_ms();
    CHECK_INT(pk_fails(&t, run, FEEDS({ "y", 1 }), "got"), TN_DEADLINE_EXCEEDED);
    CHECK(ts_now_ms() - begin >= 55 && ts_now_ms() - begin < 5000);
    CHECK_CONTAINS(tn_error_message(&t.err), "'get'");
    CHECK(pk_has_ended(&t, run));
    CHECK_DOUBLE(pk_get(&t, idle, FEEDS({ "x", 2 }), "begun"), 2, 0); /* time between calls does not count */
    CHECK_INT(bk_target(t.session, "put", 8), TN_OK);
    CHECK_DOUBLE(bk_fetch(t.session, "get"), 8, 0); /* S-CAN-12 */
    ts_fini(&t);
  }
}

#define IN_FUNCTION                                                                                               \
  "library { function { signature { name: 'Take' input_arg { name: 'q' type: DT_RESOURCE } "                      \
  "output_arg { name: 'y' type: DT_FLOAT } is_stateful: true } node_def { name: 'g' op: 'QueueDequeueV2' input: " \
  "'q' " QT " } "                                                                                                 \
  "ret { key: 'y' value: 'g:components:0' } } }\n" ANY("x", "DT_FLOAT") ANY("y", "DT_FLOAT")                      \
      NODE("q", "FIFOQueueV2", "", QT SCALARS) NODE("put", "QueueEnqueueV2", "input: 'q' input: 'x'", PUTS)       \
          NODE("neg", "Neg", "input: 'y'", F)                                                                     \
              NODE("take", "PartitionedCall", "input: 'q'",                                                       \
                   LIST("Tin", "type: DT_RESOURCE")                                                               \
                       LIST("Tout", "type: DT_FLOAT") "attr { key: 'f' value { func { name: 'Take' } } }")        \
                  NODE("more", "TestCount", "input: 'take'", SLOT(5))

static void partial_steps__a_waiting_node_has_the_limit_of_the_current_call(void) /* S-PR-28 */
{
  ts t;
  bk_open(&t, true, IN_FUNCTION);
  tn_run_options options;
  tn_run_options_init(&options);
  options.timeout_ms = 150;
  tn_partial_run run;
  REQUIRE_OK(tn_session_options_set_int(t.options, "level", 0, &t.err), &t.err);
  tn_session_destroy(t.session);
  t.session = bk_session(&t);
  REQUIRE_OK(pk_setup_with(&t, t.session, &options, NAMES("y"), NAMES("more", "neg"), NULL, &run), &t.err);
  CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "y", 1 }), "neg"), -1, 0);
  ts_sleep_ms(250); /* the time limit of the first call has long passed */
  CHECK_INT(bk_target(t.session, "put", 8), TN_OK);
  CHECK_DOUBLE(pk_get(&t, run, NULL, "more"), 8, 0);
  CHECK_MSG(tn_error_code(&t.err) == TN_OK, "%s", tn_error_message(&t.err));
  ts_fini(&t);
}

/* ---- external ends ---- */

/* A run whose dequeue waits between calls and then receives an element. */
static tn_partial_run begin_waiting(ts *t, const tn_run_options *options)
{
  tn_partial_run run = { 0 };
  REQUIRE_OK(pk_setup_with(t, t->session, options, NAMES("y"), NAMES("got", "sum"), NULL, &run), &t->err);
  return run;
}

static void partial_steps__end_when_the_session_is_closed(void) /* S-PR-29, S-LIFE-05 */
{
  ts t;
  int ways = ts_has_reset() ? 2 : 1;
  ts_init(&t, 1);
  for (int how = 0; how < ways; how++) {
    ts_fini(&t);
    open_waiting(&t, 0);
    tn_partial_run idle = begin_waiting(&t, NULL), run = begin_waiting(&t, NULL);
    pk_thread p = { .session = t.session, .run = run, .fetch = "got" };
    pk_start(&p);
    ts_sleep_ms(20);
    int64_t begin = ts_now_ms();
    if (how == 0) CHECK_OK(tn_session_close(t.session, &t.err), &t.err);
    else CHECK_OK(tn_reset(t.options, NULL, 0, &t.err), &t.err); /* S-RST-04 */
    CHECK(ts_now_ms() - begin < 1000);
    CHECK_STATUS(pk_join(&p), TN_CANCELLED, &p.err);
    CHECK_CONTAINS(tn_error_message(&p.err), "closed");
    pk_done(&p);
    CHECK_INT(pk_fails(&t, idle, NULL, "got"), TN_CANCELLED);
    CHECK_INT(pk_fails(&t, run, NULL, "got"), TN_CANCELLED);
    CHECK_INT(pk_setup(&t, NAMES("y"), NAMES("got"), NULL, &run), TN_CANCELLED);
    if (how == 0) CHECK_OK(tn_session_partial_release(t.session, idle, &t.err), &t.err);
  }
  ts_fini(&t);
}

static void partial_steps__end_with_their_session(void) /* S-LIFE-11 */
{
  ts t;
  open_waiting(&t, 0);
  tn_session *other = bk_session(&t);
  for (int i = 0; i < 10; i++) begin_waiting(&t, NULL);
  pk_begin(&t, NAMES("x", "y"), NAMES("begun", "sum"), NAMES("put"));
  int64_t begin = ts_now_ms();
  tn_session_destroy(t.session);
  CHECK(ts_now_ms() - begin < 2000);
  t.session = other;
  ts_fini(&t);
}

/* A node waiting in a run between calls takes no later elements. */
static void check_nothing_taken(ts *t)
{
  CHECK_INT(bk_target(t->session, "put", 8), TN_OK);
  CHECK_DOUBLE(bk_fetch(t->session, "size"), 1, 0);
  CHECK_DOUBLE(bk_fetch(t->session, "get"), 8, 0);
}

static void partial_steps__release_ends_waiting_nodes(void) /* S-PR-31 */
{
  ts t;
  open_waiting(&t, 0);
  tn_partial_run run = begin_waiting(&t, NULL);
  CHECK_OK(tn_session_partial_release(t.session, run, &t.err), &t.err);
  check_nothing_taken(&t);
  CHECK(pk_has_ended(&t, run));
  run = begin_waiting(&t, NULL); /* a call is in progress */
  pk_thread p = { .session = t.session, .run = run, .fetch = "got" };
  pk_start(&p);
  ts_sleep_ms(20);
  CHECK_OK(tn_session_partial_release(t.session, run, &t.err), &t.err);
  CHECK_STATUS(pk_join(&p), TN_CANCELLED, &p.err);
  pk_done(&p);
  check_nothing_taken(&t);
  ts_fini(&t);
}

static void partial_steps__are_cancelled_by_their_token(void) /* S-PR-32, S-RO-15 */
{
  ts t;
  open_waiting(&t, 0);
  tn_run_options options;
  tn_run_options_init(&options);
  REQUIRE_OK(tn_cancellation_create(NULL, &options.cancellation, &t.err), &t.err);
  tn_partial_run idle = begin_waiting(&t, &options), run = begin_waiting(&t, &options), free = begin_waiting(&t, NULL);
  CHECK_OK(tn_session_partial_release(t.session, free, &t.err), &t.err);
  pk_thread p = { .session = t.session, .run = run, .fetch = "got" };
  pk_start(&p);
  ts_sleep_ms(20);
  tn_cancellation_cancel(options.cancellation);
  CHECK_STATUS(pk_join(&p), TN_CANCELLED, &p.err);
  pk_done(&p);
  check_nothing_taken(&t);
  CHECK_INT(pk_fails(&t, idle, NULL, "got"), TN_CANCELLED);
  CHECK(pk_has_ended(&t, idle));
  CHECK_OK(pk_setup_with(&t, t.session, &options, NAMES("y"), NAMES("got"), NULL, &run), &t.err); /* cancelled */
  CHECK_INT(pk_fails(&t, run, FEEDS({ "y", 1 }), "got"), TN_CANCELLED);
  tn_cancellation_unref(options.cancellation);
  ts_fini(&t);
}

static void partial_steps__abandoned_runs_give_their_memory_back(void) /* S-PR-31, S-LIFE-12 */
{
  ts t;
  ts_init(&t, 1);
  open_text(&t, 1, STEPS QUEUE("") NODE("begun", "TestCount", "input: 'x'", SLOT(BEGUN)));
  uint64_t before = 0;
  for (int i = 0; i < 2000; i++) {
    tn_partial_run run = pk_begin(&t, NAMES("x", "y", "z"), NAMES("a", "b", "c", "get"), NULL);
    if (i % 2 == 0) CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "x", 1 }), "a"), 2, 0);
    CHECK_OK(tn_session_partial_release(t.session, run, &t.err), &t.err);
    if (i == 20) before = tn_test_live_bytes();
    if (i > 20 && i % 2 == 0) CHECK_MSG(tn_test_live_bytes() <= before, "run %d: live memory grew by %llu bytes", i,
                                        (unsigned long long)(tn_test_live_bytes() - before));
  }
  ts_fini(&t);
}

/* ---- threads ---- */

static void partial_steps__calls_on_one_run_take_turns(void) /* S-PR-34 */
{
  ts t;
  open_waiting(&t, 0);
  tn_partial_run run = begin_waiting(&t, NULL);
  pk_thread first = { .session = t.session, .run = run, .fetch = "got" };
  pk_thread second = { .session = t.session, .run = run, .feed = "y", .x = 1, .fetch = "sum" };
  pk_start(&first);
  ts_sleep_ms(20);
  pk_start(&second);
  ts_sleep_ms(20);
  CHECK(!atomic_load(&first.ended) && !atomic_load(&second.ended));
  CHECK_INT(bk_target(t.session, "put", 8), TN_OK);
  CHECK_STATUS(pk_join(&first), TN_OK, &first.err);
  CHECK_STATUS(pk_join(&second), TN_OK, &second.err);
  CHECK_DOUBLE(first.value, 8, 0);
  CHECK_DOUBLE(second.value, 9, 0);
  pk_done(&first);
  pk_done(&second);
  ts_fini(&t);
}

typedef struct worker {
  ts *t;
  pthread_t thread;
  int number;
} worker;

static void *work(void *arg)
{
  worker *w = arg;
  tn_error err = TN_ERROR_INIT;
  static const char *const feeds[] = { "x", "y", "z" }, *const fetches[] = { "a", "b", "c" };
  for (int i = 0; i < 100; i++) {
    tn_partial_run run;
    tn_tensor *fetched[3] = { NULL };
    float x = (float)(w->number * 1000 + i);
    CHECK_OK(tn_session_partial_setup(w->t->session, NULL, feeds, 3, fetches, 3, NULL, 0, &run, &err), &err);
    CHECK_OK(pk_call(w->t->session, run, FEEDS({ "x", x }), NAMES("a"), &fetched[0], &err), &err);
    const ts_feed *more = FEEDS({ "y", 1 }, { "z", 2 });
    if (i % 3 != 0) CHECK_OK(pk_call(w->t->session, run, more, NAMES("b", "c"), fetched + 1, &err), &err);
    else CHECK_OK(tn_session_partial_release(w->t->session, run, &err), &err);
    CHECK(ts_float(fetched[0]) == x + 1 && (i % 3 == 0 || ts_float(fetched[2]) == 2 * (x + 2)));
    for (int k = 0; k < 3; k++) tn_tensor_unref(fetched[k]);
  }
  tn_error_clear(&err);
  return NULL;
}

static void partial_steps__runs_are_concurrent(void) /* S-PR-34, S-THR-01 */
{
  ts t;
  worker w[8];
  ts_init(&t, 1);
  open_text(&t, 1, STEPS);
  for (int i = 0; i < 8; i++) {
    w[i] = (worker){ .t = &t, .number = i };
    REQUIRE_INT(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
  }
  for (int i = 0; i < 100; i++) CHECK_DOUBLE(bk_fetch(t.session, "a"), 1, 0);
  for (int i = 0; i < 8; i++) pthread_join(w[i].thread, NULL);
  ts_fini(&t);
}

/* Calls of all kinds run concurrently on a few runs; any result that the call may return is
 * accepted. */
#define N_RUNS 6
typedef struct crowd {
  tn_session *session;
  tn_cancellation *cancellation;
  _Atomic uint64_t ids[N_RUNS];
  atomic_bool over;
} crowd;

static void *meddle(void *arg)
{
  crowd *c = arg;
  static const char *const feeds[] = { "x", "y" }, *const fetches[] = { "begun", "got", "sum" }, *const target = "put";
  tn_error err = TN_ERROR_INIT;
  tn_run_options options;
  tn_run_options_init(&options);
  options.cancellation = c->cancellation;
  options.timeout_ms = 5;
  for (unsigned n = (unsigned)(uintptr_t)&err >> 4; !atomic_load(&c->over); n = n * 1103515245u + 12345u) {
    unsigned place = n >> 16 & 0xffff;
    _Atomic uint64_t *id = &c->ids[place % N_RUNS];
    tn_partial_run run = { atomic_load(id) };
    tn_tensor *fetched = NULL;
    switch (place / N_RUNS % 5) {
    case 0:
      if (tn_session_partial_setup(c->session, &options, feeds, 2, fetches, 3, &target, 1, &run, &err) != TN_OK) break;
      run.id = atomic_exchange(id, run.id);
      tn_session_partial_release(c->session, run, &err);
      break;
    case 1: tn_session_partial_release(c->session, run, &err); break;
    case 2: pk_call(c->session, run, FEEDS({ "x", 1 }), NAMES("begun"), &fetched, &err); break;
    case 3: pk_call(c->session, run, FEEDS({ "y", 1 }), NULL, NULL, &err); break;
    default: pk_call(c->session, run, NULL, NAMES(fetches[place % 3]), &fetched, &err); break;
    }
    tn_tensor_unref(fetched);
  }
  tn_error_clear(&err);
  return NULL;
}

static void partial_steps__survive_concurrent_calls(void) /* S-PR-34, S-PR-29, S-PR-31 */
{
  for (int how = 0; how < 6; how++) {
    ts t;
    crowd c = { .over = false };
    pthread_t threads[4];
    open_waiting(&t, 0);
    c.session = t.session;
    REQUIRE_OK(tn_cancellation_create(NULL, &c.cancellation, &t.err), &t.err);
    for (int i = 0; i < 4; i++) REQUIRE_INT(pthread_create(&threads[i], NULL, meddle, &c), 0);
    ts_sleep_ms(100);
    if (how % 3 == 1) tn_cancellation_cancel(c.cancellation);
    if (how % 3 == 2) CHECK_OK(tn_session_close(t.session, &t.err), &t.err);
    ts_sleep_ms(20);
    atomic_store(&c.over, true);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    tn_cancellation_unref(c.cancellation); /* runs that are still open hold a reference */
    ts_fini(&t);
  }
}

static void partial_steps__keep_to_the_sessions_memory(void) /* S-CAN-13, S-PR-23, S-PR-24 */
{
  static const char *const feeds[] = { "x", "y" }, *const b = "b";
  const int64_t many = 20000, one = 1;
  ts t;
  ts_init(&t, 1);
  open_text(&t, 1, STEPS);
  tn_session_destroy(t.session);
  REQUIRE_OK(tn_session_options_set_int(t.options, "memory_limit_bytes", 200000, &t.err), &t.err);
  t.session = bk_session(&t);
  for (int i = 0; i < 4; i++) {
    bool fits = i % 2 == 0;
    const int64_t *n = fits ? &one : &many;
    tn_tensor *tensors[] = { ts_filled(1, n, 1), ts_filled(1, n, 1) }, *fetched;
    tn_partial_run run = pk_begin(&t, NAMES("x", "y"), NAMES("a", "b"), NULL);
    tn_status st = tn_session_partial_run(t.session, run, feeds, tensors, 2, &b, &fetched, 1, &t.err);
    CHECK_STATUS(st, fits ? TN_OK : TN_RESOURCE_EXHAUSTED, &t.err);
    tn_session_partial_release(t.session, run, &t.err);
    tn_tensor_unref(fetched);
    for (int k = 0; k < 2; k++) tn_tensor_unref(tensors[k]);
  }
  ts_fini(&t);
}

/* ---- memory, runtimes ---- */

static tn_status whole_life(void *arg)
{
  ts *t = arg;
  static const char *const feeds[] = { "x", "y", "z" }, *const fetches[] = { "a", "b", "c" };
  tn_partial_run run;
  tn_tensor *fetched[2] = { NULL };
  tn_error err = TN_ERROR_INIT;
  tn_session *s;
  tn_status st = tn_session_create(t->options, &s, &err);
  if (st == TN_OK) st = tn_session_set_graph(s, t->graph, &err);
  if (st == TN_OK) st = tn_session_partial_setup(s, NULL, feeds, 3, fetches, 3, NULL, 0, &run, &err);
  tn_tensor *one = NULL;
  if (st == TN_OK) st = tn_tensor_from_data(TN_FLOAT, NULL, 0, &(float){ 1 }, sizeof(float), &one, &err);
  if (st == TN_OK) st = tn_session_partial_run(s, run, feeds, &one, 1, fetches, fetched, 1, &err);
  tn_tensor_unref(fetched[0]);
  tn_tensor *two[] = { one, one };
  if (st == TN_OK) st = tn_session_partial_run(s, run, feeds + 1, two, 2, fetches + 1, fetched, 2, &err);
  if (st == TN_OK) CHECK(ts_float(fetched[0]) == 3 && ts_float(fetched[1]) == 3);
  for (int i = 0; st == TN_OK && i < 2; i++) tn_tensor_unref(fetched[i]);
  tn_tensor_unref(one);
  tn_error_clear(&err);
  tn_session_destroy(s);
  return st;
}

static void partial_steps__survive_failing_allocations(void)
{
  ts t;
  FOR_OPEN(t, STEPS)
  {
    tn_test_oom_sweep(whole_life, &t);
  }
  ts_fini(&t);
}

static tn_status new_thing(const tn_session_factory *self, const tn_session_options *options, tn_runtime_session **out,
                           tn_error *err)
{
  (void)self, (void)options, (void)err;
  *out = tn_alloc(1);
  return *out == NULL ? TN_RESOURCE_EXHAUSTED : TN_OK;
}

static tn_bool accept(const tn_session_factory *self, const tn_session_options *options)
{
  (void)self, (void)options;
  return 1;
}

static void destroy_thing(const tn_session_factory *self, tn_runtime_session *session)
{
  (void)self;
  tn_free(session);
}

static tn_status has_none(const tn_session_factory *self, tn_runtime_session *session, tn_error *err)
{
  (void)self, (void)session;
  return tn_error_set(err, TN_UNIMPLEMENTED, "it only runs whole plans");
}

static void partial_steps__a_runtime_may_have_none(void) /* S-PR-33 */
{
  static const tn_session_factory factories[] = {
    { .struct_size = TN_SESSION_FACTORY_SIZE, .name = "test.parts", .new_session = new_thing, .accepts_options = accept,
      .destroy_session = destroy_thing },
    { .struct_size = TN_SESSION_FACTORY_SIZE, .name = "test.whole", .new_session = new_thing, .accepts_options = accept,
      .destroy_session = destroy_thing, .partial_runs = has_none } };
  for (int i = 0; i < 2; i++) {
    ts t;
    tn_partial_run run;
    ts_init(&t, 1);
    ts_usual_graph(t.graph);
    REQUIRE_OK(tn_runtime_register(factories[i].name, &factories[i], &t.err), &t.err);
    REQUIRE_OK(tn_session_options_set_target(t.options, factories[i].name, &t.err), &t.err);
    ts_start(&t);
    CHECK_STATUS(pk_setup(&t, NAMES("x"), NAMES("neg"), NULL, &run), i == 0 ? TN_OK : TN_UNIMPLEMENTED, &t.err);
    if (i == 0) CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "x", 2 }), "neg"), -2, 0);
    else CHECK_CONTAINS(tn_error_message(&t.err), "only runs whole plans");
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 3 }), "neg"), -3, 0);
    tn_session_destroy(t.session);
    t.session = NULL;
    REQUIRE_OK(tn_runtime_unregister(factories[i].name, &t.err), &t.err);
    ts_fini(&t);
  }
}

TAP_MAIN(
  TAP_TEST(partial_steps__take_branches),
  TAP_TEST(partial_steps__fetch_tensors_owned_by_the_caller),
  TAP_TEST(partial_steps__wait_for_feeds_by_control_edges),
  TAP_TEST(partial_steps__run_loops),
  TAP_TEST(partial_steps__keep_the_steps_container),
  TAP_TEST(partial_steps__wait_in_one_call_for_another),
  TAP_TEST(partial_steps__wait_for_other_steps),
  TAP_TEST(partial_steps__have_a_time_limit_for_each_call),
  TAP_TEST(partial_steps__a_waiting_node_has_the_limit_of_the_current_call),
  TAP_TEST(partial_steps__end_when_the_session_is_closed),
  TAP_TEST(partial_steps__end_with_their_session),
  TAP_TEST(partial_steps__release_ends_waiting_nodes),
  TAP_TEST(partial_steps__are_cancelled_by_their_token),
  TAP_TEST(partial_steps__abandoned_runs_give_their_memory_back),
  TAP_TEST(partial_steps__calls_on_one_run_take_turns),
  TAP_TEST(partial_steps__runs_are_concurrent),
  TAP_TEST(partial_steps__survive_concurrent_calls),
  TAP_TEST(partial_steps__keep_to_the_sessions_memory),
  TAP_TEST(partial_steps__survive_failing_allocations),
  TAP_TEST(partial_steps__a_runtime_may_have_none))
