/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of control flow and state: a loop iteration, creating and destroying a session, closing with a blocked step,
 * time limits. */
#include <bench/bench.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NODE(name, op, inputs, attrs) "node { name: '" name "' op: '" op "' " inputs " " attrs " }\n"
#define T(key, type) "attr { key: '" key "' value { type: " type " } }"
#define IN(x) "input: '" x "' "
#define INT32 T("T", "DT_INT32")
#define SCALAR(name, type, field, value, inputs)  \
  NODE(name, "Const", inputs, T("dtype", type) "attr { key: 'value' value { tensor { dtype: " type \
       " tensor_shape { } " field ": " value " } } }")

/* A while loop as TensorFlow writes it: x circulates while it is less than `turns`. */
#define LOOP(turns)                                                                                              \
  NODE("x", "Placeholder", "", T("dtype", "DT_INT32"))                                                           \
  NODE("enter", "Enter", IN("x"), INT32 "attr { key: 'frame_name' value { s: 'w' } }")                           \
  NODE("merge", "Merge", IN("enter") IN("next"), INT32 "attr { key: 'N' value { i: 2 } }")                       \
  SCALAR("k", "DT_INT32", "int_val", turns, IN("^merge"))                                                        \
  NODE("less", "Less", IN("merge") IN("k"), INT32)                                                               \
  NODE("cond", "LoopCond", IN("less"), "")                                                                       \
  NODE("switch", "Switch", IN("merge") IN("cond"), INT32)                                                        \
  NODE("body", "Identity", IN("switch:1"), INT32)                                                                \
  SCALAR("one", "DT_INT32", "int_val", "1", IN("^body"))                                                         \
  NODE("add", "Add", IN("body") IN("one"), INT32)                                                                \
  NODE("next", "NextIteration", IN("add"), INT32)                                                                \
  NODE("exit", "Exit", IN("switch"), INT32)

#define SIGNATURE(name, y, type)                                                                         \
  "signature { name: '" name "' input_arg { name: 'x' type: DT_INT32 } output_arg { name: '" y "' type: " type " } } "
#define BODY(name, op, inputs, attrs) "node_def { name: '" name "' op: '" op "' " inputs " " attrs " }\n"
#define BODY_SCALAR(name, value)                                                                       \
  BODY(name, "Const", "", T("dtype", "DT_INT32") "attr { key: 'value' value { tensor { dtype: DT_INT32 " \
       "tensor_shape { } int_val: " value " } } }")
#define FUNC(key, name) "attr { key: '" key "' value { func { name: '" name "' } } }"
#define ONE_INT(key) "attr { key: '" key "' value { list { type: DT_INT32 } } }"

/* The same loop with functions. */
#define FUNCTION_LOOP(turns)                                                                                          \
  "library { function { " SIGNATURE("More", "y", "DT_BOOL") BODY_SCALAR("k", turns)                                   \
  BODY("less", "Less", IN("x") IN("k:output:0"), INT32) "ret { key: 'y' value: 'less:z:0' } }\n"                      \
  "function { " SIGNATURE("Next", "y", "DT_INT32") BODY_SCALAR("one", "1")                                            \
  BODY("add", "Add", IN("x") IN("one:output:0"), INT32) "ret { key: 'y' value: 'add:z:0' } } }\n"                     \
  NODE("x", "Placeholder", "", T("dtype", "DT_INT32"))                                                                \
  NODE("exit", "StatelessWhile", IN("x"), ONE_INT("T") FUNC("cond", "More") FUNC("body", "Next"))

/* Ten consecutive calls of a function that adds one. */
#define CALL(name, x) NODE(name, "PartitionedCall", IN(x), ONE_INT("Tin") ONE_INT("Tout") FUNC("f", "Next"))
#define CALLS                                                                                                         \
  "library { function { " SIGNATURE("Next", "y", "DT_INT32") BODY_SCALAR("one", "1")                                  \
  BODY("add", "Add", IN("x") IN("one:output:0"), INT32) "ret { key: 'y' value: 'add:z:0' } } }\n"                     \
  NODE("x", "Placeholder", "", T("dtype", "DT_INT32")) CALL("a", "x") CALL("b", "a") CALL("c", "b") CALL("d", "c")    \
  CALL("e", "d") CALL("f", "e") CALL("g", "f") CALL("h", "g") CALL("i", "h") CALL("exit", "i")

/* A queue that stays empty. */
#define QUEUE                                                                                                     \
  NODE("queue", "FIFOQueueV2", "", "attr { key: 'component_types' value { list { type: DT_FLOAT } } }")           \
  NODE("dequeue", "QueueDequeueV2", IN("queue"), "attr { key: 'component_types' value { list { type: DT_FLOAT } } }")

#define SMALL \
  NODE("x", "Placeholder", "", T("dtype", "DT_FLOAT")) NODE("y", "Neg", IN("x"), T("T", "DT_FLOAT"))

static tn_graph *graph_of(const char *text)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph;
  const tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  bench_check(tn_graph_create(&graph, &err), &err, "graph");
  bench_check(tn_graph_import(graph, text, strlen(text), &options, &err), &err, "import");
  return graph;
}

typedef struct control {
  const bench *b;
  tn_graph *graph;
  tn_session *session;
  tn_callable callable;
  tn_tensor *feed;
  const char *fetch;
  int64_t timeout_ms;
} control;

static void run(void *user)
{
  control *c = user;
  tn_tensor *out = NULL;
  tn_error err = TN_ERROR_INIT;
  bench_check(tn_session_run_callable(c->session, c->callable, &c->feed, 1, &out, 1, NULL, &err), &err, "run");
  tn_tensor_unref(out);
}

static void loop(bench *b, const char *name, const char *text, const char *unit, const char *goal)
{
  static const char *const feed = "x", *const fetch = "exit";
  tn_error err = TN_ERROR_INIT;
  control c = { .graph = graph_of(text) };
  double median, p99;
  int32_t zero = 0;
  bench_check(tn_tensor_from_data(TN_INT32, NULL, 0, &zero, sizeof zero, &c.feed, &err), &err, "feed");
  c.session = bench_session(b, c.graph, 1);
  bench_check(tn_session_make_callable(c.session, NULL, &feed, 1, &fetch, 1, NULL, 0, &c.callable, &err), &err,
              "callable");
  bench_time(b, 1, run, &c, &median, &p99);
  double scale = strcmp(unit, "ms") == 0 ? 1e3 : 1e6;
  bench_report(b, name, median * scale, p99 * scale, unit, goal);
  tn_session_destroy(c.session);
  tn_graph_unref(c.graph);
  tn_tensor_unref(c.feed);
}

static void life(void *user)
{
  control *c = user;
  static const char *const feed = "x", *const fetch = "y";
  tn_tensor *out = NULL;
  tn_error err = TN_ERROR_INIT;
  tn_session *session = bench_session(c->b, c->graph, 1);
  bench_check(tn_session_run(session, NULL, &feed, &c->feed, 1, &fetch, &out, 1, NULL, 0, NULL, &err), &err, "run");
  tn_tensor_unref(out);
  tn_session_destroy(session);
}

static void lives(bench *b)
{
  control c = { .b = b, .graph = graph_of(SMALL), .feed = bench_scalar(1) };
  double median, p99;
  bench_time(b, 100, life, &c, &median, &p99);
  bench_report(b, "session_new_run_delete", median * 1e6, p99 * 1e6, "us", "<= 30");
  tn_graph_unref(c.graph);
  tn_tensor_unref(c.feed);
}

/* ---- blocked steps ---- */

typedef struct blocked {
  tn_session *session;
  const char *fetch;
  tn_tensor *feed;
  int64_t timeout_ms;
  _Atomic int begun;
  tn_status status;
  double ended;
} blocked;

static void *run_blocked(void *user)
{
  blocked *k = user;
  static const char *const feed = "x";
  tn_error err = TN_ERROR_INIT;
  tn_tensor *out = NULL;
  tn_run_options options;
  tn_run_options_init(&options);
  options.timeout_ms = k->timeout_ms;
  atomic_store(&k->begun, 1);
  k->status =
      tn_session_run(k->session, &options, &feed, &k->feed, k->feed != NULL, &k->fetch, &out, 1, NULL, 0, NULL, &err);
  k->ended = bench_now();
  tn_tensor_unref(out);
  tn_error_clear(&err);
  return NULL;
}

static void wanted(tn_status found, tn_status status)
{
  tn_error err = TN_ERROR_INIT;
  if (found != status)
    bench_check(tn_error_set(&err, TN_INTERNAL, "the step ended with %s", tn_status_name(found)), &err, "blocked step");
}

/* The time that a close, or a reset, takes while a step waits, and the time until that step has ended. */
static void close_blocked(bench *b, bool reset)
{
  enum { ROUNDS = 100 };
  double call[ROUNDS], all[ROUNDS], median, p99;
  tn_graph *graph = graph_of(QUEUE);
  for (int i = 0; i < ROUNDS; i++) {
    pthread_t thread;
    tn_error err = TN_ERROR_INIT;
    blocked k = { .session = bench_session(b, graph, 1), .fetch = "dequeue" };
    pthread_create(&thread, NULL, run_blocked, &k);
    while (!atomic_load(&k.begun)) usleep(50);
    usleep(2000);
    double before = bench_now();
    if (reset) {
      tn_session_options *options;
      bench_check(tn_session_options_create(&options, &err), &err, "options");
      bench_check(tn_session_options_set_target(options, b->runtime, &err), &err, "target");
      before = bench_now();
      bench_check(tn_reset(options, NULL, 0, &err), &err, "reset");
      call[i] = bench_now() - before;
      tn_session_options_destroy(options);
    } else {
      bench_check(tn_session_close(k.session, &err), &err, "close");
      call[i] = bench_now() - before;
    }
    pthread_join(thread, NULL);
    wanted(k.status, TN_CANCELLED);
    all[i] = k.ended - before;
    tn_session_destroy(k.session);
  }
  bench_stats(call, ROUNDS, &median, &p99);
  bench_report(b, reset ? "reset_blocked" : "close_blocked", median * 1e3, p99 * 1e3, "ms", "<= 0.1");
  bench_stats(all, ROUNDS, &median, &p99);
  bench_report(b, reset ? "reset_blocked_step_ends" : "close_blocked_step_ends", median * 1e3, p99 * 1e3, "ms", "");
  tn_graph_unref(graph);
}

static void limit(bench *b, const char *name, const char *text, const char *fetch, const char *goal)
{
  enum { ROUNDS = 40 };
  double samples[ROUNDS], median, p99;
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = graph_of(text);
  int32_t zero = 0;
  blocked k = { .session = bench_session(b, graph, 1), .fetch = fetch, .timeout_ms = 50 };
  if (strcmp(fetch, "exit") == 0)
    bench_check(tn_tensor_from_data(TN_INT32, NULL, 0, &zero, sizeof zero, &k.feed, &err), &err, "feed");
  for (int i = 0; i < ROUNDS; i++) {
    double before = bench_now();
    run_blocked(&k);
    wanted(k.status, TN_DEADLINE_EXCEEDED);
    samples[i] = k.ended - before;
  }
  bench_stats(samples, ROUNDS, &median, &p99);
  bench_report(b, name, median * 1e3, p99 * 1e3, "ms", goal);
  tn_session_destroy(k.session);
  tn_tensor_unref(k.feed);
  tn_graph_unref(graph);
}

void bench_control(bench *b)
{
  if (bench_wants("while_10000_turns")) loop(b, "while_10000_turns", LOOP("10000"), "ms", "<= 0.8");
  if (bench_wants("function_while_10000_turns"))
    loop(b, "function_while_10000_turns", FUNCTION_LOOP("10000"), "ms", "");
  if (bench_wants("ten_calls")) loop(b, "ten_calls", CALLS, "us", "");
  if (bench_wants("session_new_run_delete")) lives(b);
  if (bench_wants("close_blocked") || bench_wants("close_blocked_step_ends")) close_blocked(b, false);
  if (bench_wants("reset_blocked") || bench_wants("reset_blocked_step_ends")) close_blocked(b, true);
  if (bench_wants("limit_50ms_queue")) limit(b, "limit_50ms_queue", QUEUE, "dequeue", "<= 52");
  if (bench_wants("limit_50ms_loop")) limit(b, "limit_50ms_loop", LOOP("2147483647"), "exit", "<= 52");
}
