/* SPDX-License-Identifier: Apache-2.0 */
/* Queues: the order of elements, calls that wait, and the state after a call has given up waiting. */

#include <pthread.h>
#include <stdlib.h>

#include "conformance/support/op_kit.h"

#define LIST(key, values) "attr { key: '" key "' value { list { " values " } } }"
#define INT32 LIST("component_types", "type: DT_INT32")
#define PUTS LIST("Tcomponents", "type: DT_INT32")
#define SCALARS LIST("shapes", "shape { }")
#define Q "input: 'q'"

/* A queue "q" of int32 scalars with all operations on it; x: elements to put in, n: number of
 * elements to take. */
#define USES(types)                                                                                              \
  ANY("x", "DT_INT32") ANY("n", "DT_INT32")                                                                      \
  NODE("put", "QueueEnqueueV2", Q " input: 'x'", PUTS) NODE("puts", "QueueEnqueueManyV2", Q " input: 'x'", PUTS) \
  NODE("get", "QueueDequeueV2", Q, types) NODE("gets", "QueueDequeueManyV2", Q " input: 'n'", types)             \
  NODE("upto", "QueueDequeueUpToV2", Q " input: 'n'", types) NODE("size", "QueueSizeV2", Q, "")                  \
  NODE("close", "QueueCloseV2", Q, "") NODE("closed", "QueueIsClosedV2", Q, "")                                  \
  NODE("shut", "QueueCloseV2", Q, "attr { key: 'cancel_pending_enqueues' value { b: true } }")
#define FIFO(capacity) NODE("q", "FIFOQueueV2", "", INT32 SCALARS INT("capacity", capacity)) USES(INT32)

/* ---- steps ---- */

typedef struct call {
  tn_session *session;
  const char *fetch, *target; /* exactly one is NULL */
  int32_t x[8];
  int64_t n_x;     /* rows of the feed; -1: x is a scalar; -2: x is not fed */
  int32_t n;       /* -1: n is not fed */
  int64_t timeout_ms;
  tn_status status;
  int32_t got[64];
  int64_t n_got;
  tn_error err;
  pthread_t thread;
} call;

static void run(call *c)
{
  const char *names[2];
  tn_tensor *feeds[2], *fetched = NULL;
  size_t n_feeds = 0;
  tn_run_options options;
  tn_run_options_init(&options);
  options.timeout_ms = c->timeout_ms;
  tn_error_init(&c->err);
  if (c->n_x != -2) {
    int64_t rows = c->n_x < 0 ? 1 : c->n_x;
    names[n_feeds] = "x";
    tn_tensor_from_data(TN_INT32, &rows, c->n_x >= 0, c->x, (size_t)rows * 4, &feeds[n_feeds++], NULL);
  }
  if (c->n >= 0) {
    names[n_feeds] = "n";
    tn_tensor_from_data(TN_INT32, NULL, 0, &c->n, 4, &feeds[n_feeds++], NULL);
  }
  c->status = tn_session_run(c->session, &options, names, feeds, n_feeds, &c->fetch, &fetched, c->fetch != NULL,
                             &c->target, c->target != NULL, NULL, &c->err);
  c->n_got = fetched == NULL ? 0 : tn_tensor_elements(fetched);
  for (int64_t i = 0; i < c->n_got && i < 64; i++)
    c->got[i] = tn_tensor_dtype(fetched) == TN_INT32 ? ((const int32_t *)tn_tensor_data(fetched))[i]
                                                     : ((const tn_bool *)tn_tensor_data(fetched))[i];
  tn_tensor_unref(fetched);
  while (n_feeds > 0) tn_tensor_unref(feeds[--n_feeds]);
}

static tn_status end(call *c)
{
  tn_error_clear(&c->err);
  return c->status;
}

static tn_status put(tn_session *s, int32_t x, int64_t timeout_ms)
{
  call c = { .session = s, .target = "put", .x = { x }, .n_x = -1, .n = -1, .timeout_ms = timeout_ms };
  run(&c);
  return end(&c);
}

static tn_status target(tn_session *s, const char *name)
{
  call c = { .session = s, .target = name, .n_x = -2, .n = -1 };
  run(&c);
  return end(&c);
}

/* Fetches an int32 or bool; returns the negated status on failure. */
static int32_t fetch(tn_session *s, const char *name, int64_t timeout_ms)
{
  call c = { .session = s, .fetch = name, .n_x = -2, .n = -1, .timeout_ms = timeout_ms };
  run(&c);
  return end(&c) == TN_OK && c.n_got == 1 ? c.got[0] : -1000 - c.status;
}
#define FAILED(status) (-1000 - (status))

/* Runs "puts" with n numbers starting at `first`; "gets" and "upto" take n elements. */
static call rows(tn_session *s, int32_t first, int64_t n, int64_t timeout_ms)
{
  call c = { .session = s, .target = "puts", .n_x = n, .n = -1, .timeout_ms = timeout_ms };
  for (int32_t i = 0; i < n; i++) c.x[i] = first + i;
  run(&c);
  end(&c);
  return c;
}
static call take(tn_session *s, const char *how, int32_t n, int64_t timeout_ms)
{
  call c = { .session = s, .fetch = how, .n_x = -2, .n = n, .timeout_ms = timeout_ms };
  run(&c);
  end(&c);
  return c;
}

static void *run_thread(void *arg)
{
  run(arg);
  return NULL;
}
static void start(call *c) { REQUIRE_INT(pthread_create(&c->thread, NULL, run_thread, c), 0); }
static tn_status join(call *c)
{
  pthread_join(c->thread, NULL);
  return end(c);
}

static void open(ts *t, const char *text)
{
  tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  ts_init(t, 1);
  REQUIRE_OK(tn_session_options_set_bool(t->options, "isolate_session_state", 1, &t->err), &t->err);
  REQUIRE_OK(tn_graph_import(t->graph, text, strlen(text), &options, &t->err), &t->err);
  ts_start(t);
}

/* ---- order of elements ---- */

static void queues__closed_ones_give_their_elements(void)
{
  ts t;
  open(&t, FIFO(-1));
  tn_session *s = t.session;
  CHECK_INT(rows(s, 10, 5, 0).status, TN_OK);
  CHECK_INT(fetch(s, "closed", 0), 0);
  CHECK_INT(target(s, "close"), TN_OK);
  CHECK_INT(fetch(s, "closed", 0), 1);
  CHECK_INT(target(s, "close"), TN_CANCELLED);
  CHECK_INT(put(s, 1, 0), TN_CANCELLED);
  CHECK_INT(fetch(s, "get", 0), 10);
  CHECK_INT(take(s, "gets", 5, 0).status, TN_OUT_OF_RANGE);
  CHECK_INT(fetch(s, "size", 0), 4);
  call c = take(s, "upto", 3, 0);
  CHECK_INT(c.n_got, 3);
  CHECK_INT(c.got[0], 11);
  c = take(s, "upto", 3, 0);
  CHECK_INT(c.n_got, 1);
  CHECK_INT(c.got[0], 14);
  CHECK_INT(take(s, "upto", 3, 0).status, TN_OUT_OF_RANGE);
  CHECK_INT(take(s, "upto", 0, 0).status, TN_OK);
  ts_fini(&t);
}

static void queues__of_lowest_priority_first_keep_the_order_of_equals(void)
{
  ts t;
  open(&t, NODE("q", "PriorityQueueV2", "", INT32 SCALARS) ANY("p", "DT_INT64") USES(
                   LIST("component_types", "type: DT_INT64 type: DT_INT32"))
               NODE("both", "QueueEnqueueManyV2", Q " input: 'p' input: 'x'",
                    LIST("Tcomponents", "type: DT_INT64 type: DT_INT32")));
  const int64_t n = 6, priorities[] = { 1, 1, 0, 1, -7, 0 };
  const int32_t values[] = { 0, 1, 2, 3, 4, 5 }, order[] = { 4, 2, 5, 0, 1, 3 };
  const char *names[] = { "p", "x" }, *both = "both";
  tn_tensor *feeds[2];
  REQUIRE_OK(tn_tensor_from_data(TN_INT64, &n, 1, priorities, sizeof priorities, &feeds[0], NULL), NULL);
  REQUIRE_OK(tn_tensor_from_data(TN_INT32, &n, 1, values, sizeof values, &feeds[1], NULL), NULL);
  CHECK_OK(tn_session_run(t.session, NULL, names, feeds, 2, NULL, NULL, 0, &both, 1, NULL, &t.err), &t.err);
  for (int i = 0; i < 6; i++) CHECK_INT(fetch(t.session, "get:1", 0), order[i]);
  tn_tensor_unref(feeds[0]);
  tn_tensor_unref(feeds[1]);
  ts_fini(&t);
}

/* Each of five elements is first about equally often; equal seeds give equal orders. */
static void queues__in_random_order_give_everything_once(void)
{
  ts t;
  int first[5] = { 0 }, again = 0;
  for (int round = 0; round < 200; round++) {
    int seen = 0;
    open(&t, round < 198
                 ? NODE("q", "RandomShuffleQueueV2", "", INT32 SCALARS) USES(INT32)
                 : NODE("q", "RandomShuffleQueueV2", "", INT32 SCALARS INT("seed", 5)) USES(INT32));
    CHECK_INT(rows(t.session, 0, 5, 0).status, TN_OK);
    call c = take(t.session, "gets", 5, 0);
    for (int i = 0; i < 5; i++) seen |= 1 << c.got[i];
    CHECK_INT(seen, 31);
    first[c.got[0]]++;
    if (round >= 198) again = again * 100000 + c.got[0] * 1000 + c.got[1] * 100 + c.got[2] * 10 + c.got[3];
    if (round == 199) CHECK_INT(again / 100000, again % 100000);
    ts_fini(&t);
  }
  for (int i = 0; i < 5; i++) CHECK_MSG(first[i] > 10 && first[i] < 90, "%d was first %d times", i, first[i]);
}

static void queues__in_random_order_keep_a_minimum_until_closed(void)
{
  ts t;
  open(&t, NODE("q", "RandomShuffleQueueV2", "", INT32 SCALARS INT("min_after_dequeue", 3)) USES(INT32));
  CHECK_INT(rows(t.session, 0, 4, 0).status, TN_OK);
  CHECK_INT(take(t.session, "gets", 1, 0).status, TN_OK);
  CHECK_INT(fetch(t.session, "get", 10), FAILED(TN_DEADLINE_EXCEEDED));
  CHECK_INT(target(t.session, "close"), TN_OK);
  CHECK_INT(take(t.session, "upto", 8, 0).n_got, 3);
  ts_fini(&t);
}

/* ---- waiting ---- */

/* S-RST-18: one queue, by container and name. */
static void queues__are_shared_by_sessions(void)
{
  ts a, b;
  const char *text = NODE("q", "FIFOQueueV2", "", INT32 SCALARS
                          "attr { key: 'container' value { s: 'shared' } }") USES(INT32);
  ops_open_text(&a, text);
  ops_open_text(&b, text);
  call c = { .session = a.session, .fetch = "gets", .n_x = -2, .n = 3 };
  start(&c);
  for (int32_t i = 0; i < 3; i++) CHECK_INT(put(b.session, i, 0), TN_OK);
  CHECK_INT(join(&c), TN_OK);
  for (int32_t i = 0; i < 3; i++) CHECK_INT(c.got[i], i);
  ts_clean(&a, "shared");
  ts_fini(&a);
  ts_fini(&b);
}

/* S-RST-03, S-RST-04, S-RST-06 */
static void queues__of_a_reset_container_are_new(void)
{
  ts a;
  tn_session *b;
  const char *container = "again";
  TS_NEEDS_RESET();
  ops_open_text(&a, NODE("q", "FIFOQueueV2", "", INT32 SCALARS "attr { key: 'container' value { s: 'again' } }")
                        USES(INT32));
  CHECK_INT(rows(a.session, 0, 2, 0).status, TN_OK);
  call c = { .session = a.session, .fetch = "gets", .n_x = -2, .n = 5 };
  start(&c);
  ts_sleep_ms(5);
  CHECK_OK(tn_reset(a.options, &container, 1, &a.err), &a.err);
  CHECK_INT(join(&c), TN_CANCELLED);
  REQUIRE_OK(tn_session_create(a.options, &b, &a.err), &a.err);
  REQUIRE_OK(tn_session_set_graph(b, a.graph, &a.err), &a.err);
  CHECK_INT(fetch(b, "size", 0), 0);
  CHECK_INT(put(a.session, 1, 0), TN_CANCELLED);
  tn_session_destroy(b);
  CHECK_OK(tn_reset(a.options, &container, 1, &a.err), &a.err);
  ts_fini(&a);
}

/* S-RO-03, S-RO-07, S-CAN-12 */
static void queues__are_unchanged_by_timed_out_steps(void)
{
  ts t;
  open(&t, FIFO(4));
  tn_session *s = t.session;
  CHECK_INT(fetch(s, "get", 10), FAILED(TN_DEADLINE_EXCEEDED));
  CHECK_INT(rows(s, 0, 3, 0).status, TN_OK);
  CHECK_INT(take(s, "gets", 5, 10).status, TN_DEADLINE_EXCEEDED); /* it had taken three of them */
  CHECK_INT(fetch(s, "size", 0), 3);
  CHECK_INT(rows(s, 7, 5, 10).status, TN_DEADLINE_EXCEEDED); /* one of these had been put in */
  CHECK_INT(fetch(s, "size", 0), 3);
  CHECK_INT(put(s, 3, 0), TN_OK);
  call c = take(s, "gets", 4, 0);
  REQUIRE_INT(c.n_got, 4);
  for (int32_t i = 0; i < 4; i++) CHECK_INT(c.got[i], i);
  CHECK_INT(fetch(s, "size", 0), 0);
  ts_fini(&t);
}

/* S-LIFE-04 */
static void queues__do_not_keep_a_session_from_closing(void)
{
  ts t;
  open(&t, FIFO(4));
  call c = { .session = t.session, .fetch = "get", .n_x = -2, .n = -1 };
  start(&c);
  ts_sleep_ms(5);
  CHECK_OK(tn_session_close(t.session, &t.err), &t.err);
  CHECK_INT(join(&c), TN_CANCELLED);
  ts_fini(&t);
}

/* S-CAN-04, S-CAN-05: an invalid element next to a waiting dequeue. */
static void queues__a_waiting_dequeue_does_not_hide_an_error(void)
{
  ts t;
  open(&t, FIFO(4));
  int64_t two = 2;
  const int32_t x[] = { 1, 2 };
  tn_tensor *feed, *fetched = NULL;
  const char *in = "x", *get = "get", *bad = "put";
  REQUIRE_OK(tn_tensor_from_data(TN_INT32, &two, 1, x, sizeof x, &feed, NULL), NULL);
  CHECK_STATUS(tn_session_run(t.session, NULL, &in, &feed, 1, &get, &fetched, 1, &bad, 1, NULL, &t.err),
               TN_INVALID_ARGUMENT, &t.err);
  CHECK_STR(tn_error_node(&t.err), "put");
  CHECK_CONTAINS(tn_error_message(&t.err), "component 0 has shape [2], the queue wants []");
  CHECK_NULL(fetched);
  tn_tensor_unref(feed);
  ts_fini(&t);
}

static void queues__cancelling_close_ends_waiting_enqueues(void)
{
  ts t;
  open(&t, FIFO(2));
  CHECK_INT(rows(t.session, 0, 2, 0).status, TN_OK);
  call c = { .session = t.session, .target = "put", .n_x = -1, .n = -1 };
  start(&c);
  CHECK_INT(target(t.session, "shut"), TN_OK);
  CHECK_INT(join(&c), TN_CANCELLED);
  CHECK_INT(take(t.session, "upto", 5, 0).n_got, 2);
  ts_fini(&t);
}

/* ---- invalid arguments ---- */

static void check_refused(const char *text, tn_status code, const char *part)
{
  ts t;
  tn_tensor *fetched = NULL;
  const char *fetch_name = "y";
  open(&t, text);
  CHECK_STATUS(tn_session_run(t.session, NULL, NULL, NULL, 0, &fetch_name, &fetched, 1, NULL, 0, NULL, &t.err), code,
               &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), part);
  ts_fini(&t);
}

static void queues__reject_mismatched_inputs(void)
{
#define SIZE NODE("y", "QueueSizeV2", Q, "")
#define SHARED "attr { key: 'shared_name' value { s: 'one' } }"
  check_refused(NODE("q", "FIFOQueueV2", "", INT32 LIST("shapes", "shape { } shape { }")) SIZE, TN_INVALID_ARGUMENT,
                "1 component_types and 2 shapes");
  check_refused(NODE("q", "FIFOQueueV2", "", INT32 LIST("shapes", "shape { dim { size: -1 } }")) SIZE,
                TN_INVALID_ARGUMENT, "'shapes' has [?] at 0");
  check_refused(NODE("q", "PaddingFIFOQueueV2", "", INT32 LIST("shapes", "shape { unknown_rank: true }")) SIZE,
                TN_INVALID_ARGUMENT, "known rank");
  check_refused(NODE("q", "RandomShuffleQueueV2", "", INT32 INT("min_after_dequeue", 3) INT("capacity", 3)) SIZE,
                TN_INVALID_ARGUMENT, "less than the capacity, 3");
  check_refused(FIFO(4) NODE("y", "QueueDequeueV2", Q, LIST("component_types", "type: DT_FLOAT")), TN_INVALID_ARGUMENT,
                "component 0 of queue 'q' is of type int32, the node wants float32");
  check_refused(FIFO(4) NODE("y", "QueueDequeueV2", Q, INT32 INT("timeout_ms", 5)), TN_INVALID_ARGUMENT,
                "'timeout_ms' is 5");
  check_refused(INTS("k", "", "int_val: -2") FIFO(4) NODE("y", "QueueDequeueManyV2", Q " input: 'k'", INT32),
                TN_INVALID_ARGUMENT, "-2 elements are asked for");
  check_refused(INTS("k", "", "int_val: 2") NODE("q", "FIFOQueueV2", "", INT32) NODE("y", "QueueDequeueManyV2",
                Q " input: 'k'", INT32), TN_INVALID_ARGUMENT, "queue 'q' has no shapes");
  check_refused(NODE("a", "FIFOQueueV2", "", INT32 SHARED) NODE("q", "FIFOQueueV2", "", INT32 SHARED INT("capacity", 7))
                NODE("z", "QueueSizeV2", "input: 'a'", "") NODE("y", "QueueSizeV2", Q " input: '^z'", ""),
                TN_INVALID_ARGUMENT, "queue 'one' exists with capacity");
  check_refused(NODE("q", "VarHandleOp", "", TYPE("dtype", "DT_FLOAT") "attr { key: 'shape' value { shape { } } }")
                    SIZE,
                TN_INVALID_ARGUMENT, "wanted a Queue");
}

/* ---- memory, threads ---- */

static tn_status whole_life(void *text)
{
  static const char *const steps[][2] = { { "puts", NULL }, { NULL, "get" }, { NULL, "gets" }, { "close", NULL } };
  tn_session *session = NULL;
  tn_tensor *x = NULL, *n = NULL;
  int64_t three = 3;
  const int32_t values[] = { 1, 2, 3 }, two = 2;
  tn_status st = ts_open_isolated(text, &session);
  if (st == TN_OK) st = tn_tensor_from_data(TN_INT32, &three, 1, values, sizeof values, &x, NULL);
  if (st == TN_OK) st = tn_tensor_from_data(TN_INT32, NULL, 0, &two, 4, &n, NULL);
  for (int i = 0; st == TN_OK && i < 4; i++) {
    const char *names[] = { "x", "n" };
    tn_tensor *feeds[] = { x, n }, *fetched = NULL;
    st = tn_session_run(session, NULL, names, feeds, 2, &steps[i][1], &fetched, steps[i][1] != NULL, &steps[i][0],
                        steps[i][0] != NULL, NULL, NULL);
    tn_tensor_unref(fetched);
  }
  tn_tensor_unref(x);
  tn_tensor_unref(n);
  tn_session_destroy(session);
  return st;
}

static void queues__survive_failing_allocations(void)
{
  static char fifo[] = FIFO(-1), padded[] = NODE("q", "PaddingFIFOQueueV2", "", INT32 SCALARS) USES(INT32);
  tn_test_oom_sweep(whole_life, fifo);
  tn_test_oom_sweep(whole_life, padded);
}

enum { PRODUCERS = 3, CONSUMERS = 3, WORKERS = 7, EACH = 400 };

typedef struct worker {
  tn_session *session;
  int number;
  unsigned seed;
  atomic_int *taken; /* by value */
  pthread_t thread;
} worker;

/* Puts its numbers in, one at a time or several at once; sometimes gives up and tries again. */
static void *produce(void *arg)
{
  worker *w = arg;
  for (int32_t i = 0; i < EACH;) {
    int64_t n = 1 + rand_r(&w->seed) % 4, ms = rand_r(&w->seed) % 3;
    if (n > EACH - i) n = EACH - i;
    call c = n == 1 ? (call){ .session = w->session, .target = "put", .n_x = -1, .n = -1, .timeout_ms = ms,
                              .x = { w->number * EACH + i } }
                    : rows(w->session, w->number * EACH + i, n, ms);
    if (n == 1) {
      run(&c);
      end(&c);
    }
    CHECK(c.status == TN_OK || c.status == TN_DEADLINE_EXCEEDED);
    if (c.status == TN_OK) i += (int32_t)n;
  }
  return NULL;
}

static void *consume(void *arg)
{
  worker *w = arg;
  for (;;) {
    int32_t n = 1 + rand_r(&w->seed) % 5;
    call c = take(w->session, n % 2 ? "gets" : "upto", n, 0);
    if (c.status == TN_OUT_OF_RANGE && n == 1) return NULL;
    CHECK(c.status == TN_OK || c.status == TN_OUT_OF_RANGE);
    for (int64_t i = 0; i < c.n_got; i++) atomic_fetch_add(&w->taken[c.got[i]], 1);
  }
}

/* Requests more elements than are ever put in; elements taken when it gives up are put back. */
static void *want_too_much(void *arg)
{
  worker *w = arg;
  while (take(w->session, "gets", 1000000, 1 + rand_r(&w->seed) % 3).status == TN_DEADLINE_EXCEEDED) ts_sleep_ms(1);
  return NULL;
}

/* Every element is taken. A producer that gave up may have put in an element that was already taken
 * (S-RUN-25), so with time limits a number may be taken twice, but none is lost. */
static void queues__lose_nothing_between_threads_of_two_sessions(void)
{
  static atomic_int taken[PRODUCERS * EACH];
  ts a, b;
  worker workers[WORKERS];
  const char *container = "stress";
  const char *text = NODE("q", "FIFOQueueV2", "", INT32 SCALARS INT("capacity", 5)
                          "attr { key: 'container' value { s: 'stress' } }") USES(INT32);
  ops_open_text(&a, text);
  ops_open_text(&b, text);
  for (int i = 0; i < WORKERS; i++) {
    void *(*fn)(void *) = want_too_much;
    if (i < PRODUCERS) fn = produce;
    else if (i < PRODUCERS + CONSUMERS) fn = consume;
    workers[i] =
        (worker){ .session = i % 2 ? a.session : b.session, .number = i, .seed = (unsigned)i + 1, .taken = taken };
    REQUIRE_INT(pthread_create(&workers[i].thread, NULL, fn, &workers[i]), 0);
  }
  for (int i = 0; i < PRODUCERS; i++) pthread_join(workers[i].thread, NULL);
  CHECK_INT(target(a.session, "close"), TN_OK);
  for (int i = PRODUCERS; i < WORKERS; i++) pthread_join(workers[i].thread, NULL);
  int lost = 0, twice = 0;
  for (int i = 0; i < PRODUCERS * EACH; i++) {
    lost += atomic_load(&taken[i]) == 0;
    twice += atomic_load(&taken[i]) > 1;
  }
  CHECK_INT(lost, 0);
  tap_note("%d of %d numbers were taken twice, because their producer had given up", twice, PRODUCERS * EACH);
  CHECK_OK(tn_reset(a.options, &container, 1, &a.err), &a.err);
  ts_fini(&a);
  ts_fini(&b);
}

/* ---- destruction ---- */

static tn_status put_once(ts *t, const float *values, size_t n, const char *target)
{
  const char *feed = "x";
  tn_tensor *x = ts_vector(n, values);
  tn_status st =
      tn_session_run(t->session, NULL, &feed, &x, target[0] == 'p', NULL, NULL, 0, &target, 1, NULL, &t->err);
  tn_tensor_unref(x);
  return st;
}

/* A destroyed queue is freed although the plans of several steps have used it; the next queue with
 * its name is a new one. */
static void queues__take_no_memory_once_they_are_destroyed(void) /* S-LIFE-12 */
{
  enum { N = 1 << 16 };
  FOR_LEVELS(level)
  {
    ts t;
    uint64_t bytes = 0;
    float *values = calloc(N, sizeof *values);
    const char *text = ANY("x", "DT_FLOAT") NODE("q", "FIFOQueueV2", "", LIST("component_types", "type: DT_FLOAT"))
        NODE("put", "QueueEnqueueV2", Q "input: 'x'", LIST("Tcomponents", "type: DT_FLOAT"))
            NODE("end", "DestroyResourceOp", Q, "");
    const tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
    ts_init(&t, level);
    REQUIRE_OK(tn_graph_import(t.graph, text, strlen(text), &options, &t.err), &t.err);
    ts_start(&t);
    uint64_t before = tn_test_live_bytes();
    for (int i = 0; i < 1000; i++) {
      CHECK_OK(put_once(&t, values, i < 100 ? N : 1, "put"), &t.err);
      CHECK_OK(put_once(&t, values, 1, "end"), &t.err);
      CHECK(tn_test_live_bytes() - before < N * sizeof *values); /* the plans are small */
      if (i == 150) bytes = tn_test_live_bytes();
      if (i > 150) CHECK_INT(tn_test_live_bytes(), bytes);
    }
    free(values);
    ts_clean(&t, NULL);
    ts_fini(&t);
  }
}

TAP_MAIN(
  TAP_TEST(queues__closed_ones_give_their_elements),
  TAP_TEST(queues__of_lowest_priority_first_keep_the_order_of_equals),
  TAP_TEST(queues__in_random_order_give_everything_once),
  TAP_TEST(queues__in_random_order_keep_a_minimum_until_closed),
  TAP_TEST(queues__are_shared_by_sessions),
  TAP_TEST(queues__of_a_reset_container_are_new),
  TAP_TEST(queues__are_unchanged_by_timed_out_steps),
  TAP_TEST(queues__do_not_keep_a_session_from_closing),
  TAP_TEST(queues__a_waiting_dequeue_does_not_hide_an_error),
  TAP_TEST(queues__cancelling_close_ends_waiting_enqueues),
  TAP_TEST(queues__reject_mismatched_inputs),
  TAP_TEST(queues__take_no_memory_once_they_are_destroyed),
  TAP_TEST(queues__survive_failing_allocations),
  TAP_TEST(queues__lose_nothing_between_threads_of_two_sessions))
