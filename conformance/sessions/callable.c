/* SPDX-License-Identifier: Apache-2.0 */
/* Callables: prepared signatures that take tensors by position and can write into tensors of the
 * caller. */
#include "conformance/support/oom.h"
#include "conformance/support/session_kit.h"

#include <math.h>
#include <pthread.h>

/* twice = (x + y) * 2 and neg = -x, in that order, from (x, y). */
static tn_callable usual_callable(ts *t)
{
  static const char *const feeds[] = { "x", "y" }, *const fetches[] = { "twice", "neg" };
  tn_callable callable = { 0 };
  REQUIRE_OK(tn_session_make_callable(t->session, NULL, feeds, 2, fetches, 2, NULL, 0, &callable, &t->err), &t->err);
  return callable;
}

static tn_status call(ts *t, tn_callable callable, float x, float y, tn_tensor **fetched)
{
  tn_tensor *feeds[] = { ts_scalar(x), ts_scalar(y) };
  tn_status status = tn_session_run_callable(t->session, callable, feeds, 2, fetched, 2, NULL, &t->err);
  tn_tensor_unref(feeds[0]);
  tn_tensor_unref(feeds[1]);
  return status;
}

static void unref2(tn_tensor **fetched)
{
  for (int i = 0; i < 2; i++) {
    tn_tensor_unref(fetched[i]);
    fetched[i] = NULL;
  }
}

static void callable__takes_tensors_by_position(void) /* S-CAL-01, S-CAL-02, S-CAL-05 */
{
  FOR_LEVELS(level)
  {
    ts t;
    tn_tensor *fetched[2] = { NULL, NULL };
    ts_open(&t, level);
    tn_callable callable = usual_callable(&t);
    for (int i = 0; i < 5; i++) {
      REQUIRE_OK(call(&t, callable, (float)i, 10, fetched), &t.err);
      CHECK_DOUBLE(ts_float(fetched[0]), 2.0 * (i + 10), 0);
      CHECK_DOUBLE(ts_float(fetched[1]), -i, 0);
      CHECK(tn_tensor_is_exclusive(fetched[0]));
      unref2(fetched);
    }
    ts_fini(&t);
  }
}

static void callable__follows_the_shapes(void) /* S-CAL-01 */
{
  FOR_LEVELS(level)
  {
    ts t;
    ts_open(&t, level);
    tn_callable callable = usual_callable(&t);
    for (int64_t n = 40; n >= 0; n -= 5) {
      tn_tensor *feeds[] = { ts_filled(1, &n, 1), ts_scalar(2) }, *fetched[2] = { NULL, NULL };
      REQUIRE_OK(tn_session_run_callable(t.session, callable, feeds, 2, fetched, 2, NULL, &t.err), &t.err);
      CHECK_INT(tn_tensor_elements(fetched[0]), n);
      for (int64_t i = 0; i < n; i++) CHECK_DOUBLE(((const float *)tn_tensor_data(fetched[0]))[i], 6, 0);
      unref2(fetched);
      unref2(feeds);
    }
    ts_fini(&t);
  }
}

static void callable__wrong_counts_and_types(void) /* S-CAL-02, S-RUN-18 */
{
  ts t;
  ts_open(&t, 1);
  tn_callable callable = usual_callable(&t);
  int32_t seven = 7;
  tn_tensor *feeds[3] = { ts_scalar(1), ts_scalar(2), ts_scalar(3) }, *fetched[3] = { NULL, NULL, NULL }, *wrong = NULL;
  REQUIRE_OK(tn_tensor_from_data(TN_INT32, NULL, 0, &seven, sizeof(seven), &wrong, &t.err), &t.err);
  CHECK_INT(tn_session_run_callable(t.session, callable, feeds, 1, fetched, 2, NULL, &t.err), TN_INVALID_ARGUMENT);
  CHECK_INT(tn_session_run_callable(t.session, callable, feeds, 3, fetched, 2, NULL, &t.err), TN_INVALID_ARGUMENT);
  CHECK_INT(tn_session_run_callable(t.session, callable, feeds, 2, fetched, 1, NULL, &t.err), TN_INVALID_ARGUMENT);
  CHECK_INT(tn_session_run_callable(t.session, callable, feeds, 2, fetched, 3, NULL, &t.err), TN_INVALID_ARGUMENT);
  CHECK_INT(tn_session_run_callable(t.session, callable, NULL, 2, fetched, 2, NULL, &t.err), TN_INVALID_ARGUMENT);
  CHECK_INT(tn_session_run_callable(t.session, callable, feeds, 2, NULL, 2, NULL, &t.err), TN_INVALID_ARGUMENT);
  tn_tensor *second = feeds[1];
  feeds[1] = wrong;
  CHECK_INT(tn_session_run_callable(t.session, callable, feeds, 2, fetched, 2, NULL, &t.err), TN_INVALID_ARGUMENT);
  CHECK_CONTAINS(tn_error_message(&t.err), "int32");
  CHECK_CONTAINS(tn_error_message(&t.err), "y");
  feeds[1] = NULL;
  CHECK_INT(tn_session_run_callable(t.session, callable, feeds, 2, fetched, 2, NULL, &t.err), TN_INVALID_ARGUMENT);
  feeds[1] = second;
  for (int i = 0; i < 3; i++) CHECK_NULL(fetched[i]);
  CHECK_OK(tn_session_run_callable(t.session, callable, feeds, 2, fetched, 2, NULL, &t.err), &t.err);
  for (int i = 0; i < 3; i++) {
    tn_tensor_unref(feeds[i]);
    tn_tensor_unref(fetched[i]);
  }
  tn_tensor_unref(wrong);
  ts_fini(&t);
}

static void callable__making_one_checks_names(void) /* S-CAL-01, S-NAM */
{
  ts t;
  ts_open(&t, 1);
  const char *absent = "absent", *far = "neg:9", *neg = "neg", *twins[] = { "x", "x:0" }, *none = NULL;
  tn_callable c = { 99 };
  tn_session *s = t.session;
  CHECK_INT(tn_session_make_callable(s, NULL, NULL, 0, &absent, 1, NULL, 0, &c, &t.err), TN_NOT_FOUND);
  CHECK_INT(c.id, 0);
  CHECK_INT(tn_session_make_callable(s, NULL, &absent, 1, &neg, 1, NULL, 0, &c, &t.err), TN_NOT_FOUND);
  CHECK_INT(tn_session_make_callable(s, NULL, NULL, 0, NULL, 0, &absent, 1, &c, &t.err), TN_NOT_FOUND);
  CHECK_INT(tn_session_make_callable(s, NULL, NULL, 0, &far, 1, NULL, 0, &c, &t.err), TN_OUT_OF_RANGE);
  CHECK_INT(tn_session_make_callable(s, NULL, twins, 2, &neg, 1, NULL, 0, &c, &t.err), TN_INVALID_ARGUMENT);
  CHECK_INT(tn_session_make_callable(s, NULL, NULL, 0, NULL, 0, NULL, 0, &c, &t.err), TN_INVALID_ARGUMENT);
  CHECK_INT(tn_session_make_callable(s, NULL, NULL, 0, &none, 1, NULL, 0, &c, &t.err), TN_INVALID_ARGUMENT);
  CHECK_INT(tn_session_make_callable(s, NULL, NULL, 0, &neg, 1, NULL, 0, NULL, &t.err), TN_INVALID_ARGUMENT);
  CHECK_INT(tn_session_make_callable(s, NULL, NULL, 0, &neg, 1, NULL, 0, &c, &t.err),
            TN_INVALID_ARGUMENT); /* x is not fed */
  CHECK_CONTAINS(tn_error_message(&t.err), "'x'");
  ts_fini(&t);
}

static void callable__released_and_unknown_ones(void) /* S-CAL-03, S-CAL-04 */
{
  ts t;
  tn_tensor *fetched[2] = { NULL, NULL };
  ts_open(&t, 1);
  tn_callable callable = usual_callable(&t), unknown = { UINT64_C(0x123456789) }, none = { 0 };
  CHECK_OK(tn_session_release_callable(t.session, callable, &t.err), &t.err);
  CHECK_INT(call(&t, callable, 1, 2, fetched), TN_INVALID_ARGUMENT);
  CHECK_CONTAINS(tn_error_message(&t.err), "released");
  CHECK_OK(tn_session_release_callable(t.session, callable, &t.err), &t.err);
  CHECK_INT(call(&t, unknown, 1, 2, fetched), TN_INVALID_ARGUMENT);
  CHECK_CONTAINS(tn_error_message(&t.err), "no such");
  CHECK_INT(tn_session_release_callable(t.session, unknown, &t.err), TN_INVALID_ARGUMENT);
  CHECK_INT(call(&t, none, 1, 2, fetched), TN_INVALID_ARGUMENT);
  CHECK_INT(tn_session_release_callable(t.session, none, &t.err), TN_INVALID_ARGUMENT);

  tn_callable next = usual_callable(&t); /* may use the same slot; the old handle remains invalid */
  CHECK(next.id != callable.id);
  CHECK_INT(call(&t, callable, 1, 2, fetched), TN_INVALID_ARGUMENT);
  CHECK_OK(call(&t, next, 1, 2, fetched), &t.err);
  unref2(fetched);
  ts_fini(&t);
}

static void callable__many_at_once(void) /* S-CAL-03: handles remain valid while the table grows */
{
  enum { N = 200 };
  ts t;
  tn_callable callables[N];
  tn_tensor *fetched[2] = { NULL, NULL };
  ts_open(&t, 1);
  for (int i = 0; i < N; i++) callables[i] = usual_callable(&t);
  for (int i = 0; i < N; i += 2) CHECK_OK(tn_session_release_callable(t.session, callables[i], &t.err), &t.err);
  for (int i = 0; i < N; i++) {
    CHECK_STATUS(call(&t, callables[i], 1, 2, fetched), i % 2 ? TN_OK : TN_INVALID_ARGUMENT, &t.err);
    unref2(fetched);
  }
  ts_fini(&t);
}

static void callable__lives_on_when_the_cache_forgets(void) /* S-RUN-30: a callable keeps its plan */
{
  ts t;
  tn_tensor *fetched[2] = { NULL, NULL };
  ts_init(&t, 1);
  ts_usual_graph(t.graph);
  CHECK_OK(tn_session_options_set_int(t.options, "max_signatures", 1, &t.err), &t.err);
  ts_start(&t);
  tn_callable callable = usual_callable(&t);
  for (int i = 0; i < 3; i++) {
    CHECK_DOUBLE(ts_run1(&t, NULL, "two"), 2, 0);
    CHECK_DOUBLE(ts_run1(&t, NULL, "half"), 0.5, 0);
    CHECK_OK(call(&t, callable, 1, 2, fetched), &t.err);
    unref2(fetched);
  }
  ts_fini(&t);
}

/* --- writing into tensors of the caller
 * --------------------------------------------------------------------------- */

static void callable__writes_into_given_tensors(void)
{
  FOR_LEVELS(level)
  {
    ts t;
    ts_open(&t, level);
    tn_callable callable = usual_callable(&t);
    tn_tensor *mine[2] = { ts_scalar(-99), NULL }, *fetched[2];
    void *memory = tn_tensor_data(mine[0]);
    for (int i = 0; i < 3; i++) {
      fetched[0] = mine[0];
      fetched[1] = NULL;
      REQUIRE_OK(call(&t, callable, (float)i, 1, fetched), &t.err);
      CHECK(fetched[0] == mine[0]);
      CHECK(tn_tensor_data(mine[0]) == memory);
      CHECK_DOUBLE(ts_float(mine[0]), 2.0 * (i + 1), 0);
      CHECK_DOUBLE(ts_float(fetched[1]), -i, 0);
      CHECK(tn_tensor_is_exclusive(mine[0])); /* it still belongs to the caller */
      tn_tensor_unref(fetched[1]);
    }
    tn_tensor_unref(mine[0]);
    ts_fini(&t);
  }
}

static void callable__writes_feeds_and_constants_into_given_tensors(void) /* S-RUN-13 */
{
  FOR_LEVELS(level)
  {
    ts t;
    ts_open(&t, level);
    const char *feed = "x", *fetches[] = { "x", "two" };
    tn_callable callable;
    REQUIRE_OK(tn_session_make_callable(t.session, NULL, &feed, 1, fetches, 2, NULL, 0, &callable, &t.err), &t.err);
    tn_tensor *mine[2] = { ts_scalar(0), ts_scalar(0) }, *fed = ts_scalar(7), *fetched[2] = { mine[0], mine[1] };
    REQUIRE_OK(tn_session_run_callable(t.session, callable, &fed, 1, fetched, 2, NULL, &t.err), &t.err);
    CHECK_DOUBLE(ts_float(mine[0]), 7, 0);
    CHECK_DOUBLE(ts_float(mine[1]), 2, 0);
    CHECK_DOUBLE(ts_run1(&t, NULL, "two"), 2, 0);
    tn_tensor_unref(fed);
    unref2(mine);
    ts_fini(&t);
  }
}

static tn_tensor *immutable(float *value)
{
  tn_buffer_desc desc = { .struct_size = sizeof(desc), .ownership = TN_BUFFER_IMMUTABLE, .data = value,
                          .bytes = sizeof(*value) };
  tn_buffer *buffer = NULL;
  tn_tensor *tensor = NULL;
  REQUIRE_OK(tn_buffer_create(&desc, &buffer, NULL), NULL);
  REQUIRE_OK(tn_tensor_from_buffer(TN_FLOAT, NULL, 0, buffer, 0, &tensor, NULL), NULL);
  tn_buffer_unref(buffer);
  return tensor;
}

/* Tensors that cannot be written into: the step is rejected and the caller's tensors are unchanged. */
static void callable__refuses_tensors_that_do_not_fit(void)
{
  ts t;
  ts_open(&t, 1);
  tn_callable callable = usual_callable(&t);
  const int64_t two = 2;
  int32_t seven = 7;
  float constant = 0;
  tn_tensor *wrong[4] = { NULL };
  REQUIRE_OK(tn_tensor_from_data(TN_INT32, NULL, 0, &seven, sizeof(seven), &wrong[0], &t.err), &t.err); /* dtype */
  wrong[1] = ts_filled(1, &two, 0);                                                                     /* shape */
  wrong[2] = ts_scalar(0);                                                                              /* held twice */
  tn_tensor *second_holder = tn_tensor_ref(wrong[2]);
  wrong[3] = immutable(&constant);
  for (int i = 0; i < 4; i++) {
    tn_tensor *fetched[2] = { wrong[i], NULL };
    tn_status status = call(&t, callable, 1, 2, fetched);
    CHECK_MSG(status == TN_INVALID_ARGUMENT, "given tensor %d: %s", i, tn_status_name(status));
    CHECK(fetched[0] == wrong[i]);
    CHECK_NULL(fetched[1]);
  }
  tn_tensor_unref(second_holder);
  for (int i = 0; i < 4; i++) tn_tensor_unref(wrong[i]);
  tn_tensor *fetched[2] = { NULL, NULL };
  CHECK_OK(call(&t, callable, 1, 2, fetched), &t.err);
  unref2(fetched);
  ts_fini(&t);
}

static void callable__writes_into_memory_of_the_program(void)
{
  ts t;
  ts_open(&t, 1);
  tn_callable callable = usual_callable(&t);
  float place[2] = { -99, -99 };
  tn_tensor *fetched[2] = { NULL, NULL };
  for (int i = 0; i < 2; i++)
    REQUIRE_OK(tn_tensor_wrap(TN_FLOAT, NULL, 0, &place[i], sizeof(float), NULL, NULL, &fetched[i], &t.err), &t.err);
  CHECK_OK(call(&t, callable, 1, 2, fetched), &t.err);
  CHECK_DOUBLE(place[0], 6, 0);
  CHECK_DOUBLE(place[1], -1, 0);
  unref2(fetched);
  ts_fini(&t);
}

static void callable__one_tensor_in_two_places(void) /* the tensor is not exclusive */
{
  ts t;
  ts_open(&t, 1);
  tn_callable callable = usual_callable(&t);
  tn_tensor *mine = ts_scalar(0), *fetched[2] = { mine, mine };
  CHECK_INT(call(&t, callable, 1, 2, fetched), TN_INVALID_ARGUMENT);
  tn_tensor_unref(mine);
  ts_fini(&t);
}

static void callable__a_fed_tensor_is_not_written_into(void) /* S-RUN-28 */
{
  ts t;
  ts_open(&t, 1);
  tn_callable callable = usual_callable(&t);
  tn_tensor *feeds[] = { ts_scalar(3), ts_scalar(4) }, *fetched[2] = { NULL, NULL };
  fetched[1] = feeds[0];
  tn_status status = tn_session_run_callable(t.session, callable, feeds, 2, fetched, 2, NULL, &t.err);
  CHECK_STATUS(status, TN_INVALID_ARGUMENT, &t.err);
  CHECK_DOUBLE(ts_float(feeds[0]), 3, 0);
  CHECK_NULL(fetched[0]);
  unref2(feeds);
  ts_fini(&t);
}

static void callable__failed_one_leaves_given_tensors(void) /* S-RUN-08 */
{
  ts t;
  tn_output in = ts_open_watched(&t, 1);
  ts_op1(t.graph, "Neg", "good", in);
  ts_watch_op(t.graph, "TestFail", "bad", in, TN_ABORTED);
  ts_start(&t);
  const char *feed = "in", *fetches[] = { "good", "bad" };
  tn_callable callable;
  REQUIRE_OK(tn_session_make_callable(t.session, NULL, &feed, 1, fetches, 2, NULL, 0, &callable, &t.err), &t.err);
  tn_tensor *mine = ts_scalar(0), *fed = ts_scalar(1), *fetched[2] = { mine, NULL };
  CHECK_STATUS(tn_session_run_callable(t.session, callable, &fed, 1, fetched, 2, NULL, &t.err), TN_ABORTED, &t.err);
  CHECK(fetched[0] == mine);
  CHECK_NULL(fetched[1]);
  CHECK(tn_tensor_is_exclusive(mine));
  tn_tensor_unref(mine);
  tn_tensor_unref(fed);
  ts_fini(&t);
}

/* The hot path: with tensors of the caller, a step on known shapes allocates nothing. */
static void callable__steady_state_allocates_nothing(void)
{
  FOR_LEVELS(level)
  {
    ts t;
    ts_open(&t, level);
    tn_callable callable = usual_callable(&t);
    const int64_t n = 100;
    tn_tensor *feeds[] = { ts_filled(1, &n, 1), ts_filled(1, &n, 2) },
              *fetched[] = { ts_filled(1, &n, 0), ts_filled(1, &n, 0) };
    for (int i = 0; i < 3; i++)
      REQUIRE_OK(tn_session_run_callable(t.session, callable, feeds, 2, fetched, 2, NULL, &t.err), &t.err);
    uint64_t before = tn_test_allocations();
    for (int i = 0; i < 100; i++)
      REQUIRE_OK(tn_session_run_callable(t.session, callable, feeds, 2, fetched, 2, NULL, &t.err), &t.err);
    CHECK_INT(tn_test_allocations() - before, 0);
    CHECK_DOUBLE(ts_float(fetched[0]), 6, 0);
    unref2(feeds);
    unref2(fetched);
    ts_fini(&t);
  }
}

/* --- life --------------------------------------------------------------------------------------------------------- */

static void callable__belongs_to_its_session(void) /* S-CAL-03 */
{
  ts a, b;
  tn_tensor *fetched[2] = { NULL, NULL };
  ts_open(&a, 1);
  ts_open(&b, 1);
  tn_callable of_a = usual_callable(&a);
  tn_status status = call(&b, of_a, 1, 2, fetched);
  CHECK_STATUS(status, TN_INVALID_ARGUMENT, &b.err);
  if (status == TN_OK) unref2(fetched);
  ts_fini(&b);
  ts_fini(&a);
}

static void callable__is_released_by_destroy(void) /* S-LIFE-12 */
{
  ts t;
  ts_open(&t, 1);
  usual_callable(&t);
  ts_fini(&t);
  uint64_t bytes = tn_test_live_bytes();
  for (int i = 0; i < 20; i++) {
    ts_open(&t, 1);
    usual_callable(&t);
    ts_fini(&t);
  }
  CHECK_INT(tn_test_live_bytes(), bytes);
}

typedef struct caller {
  ts *t;
  tn_callable callable;
  tn_status status;
  float value;
} caller;

static void *call_blocked(void *arg)
{
  caller *c = arg;
  tn_tensor *one = ts_scalar(1), *fetched = NULL;
  c->status = tn_session_run_callable(c->t->session, c->callable, &one, 1, &fetched, 1, NULL, NULL);
  c->value = ts_float(fetched);
  tn_tensor_unref(fetched);
  tn_tensor_unref(one);
  return NULL;
}

static void callable__steps_in_flight_survive_release(void) /* S-CAL-04 */
{
  ts t;
  pthread_t thread;
  tn_output in = ts_open_watched(&t, 1);
  ts_op1(t.graph, "Neg", "out", ts_watch_op(t.graph, "TestGate", "gate", in, 0));
  ts_start(&t);
  const char *feed = "in", *fetch = "out";
  caller c = { .t = &t };
  REQUIRE_OK(tn_session_make_callable(t.session, NULL, &feed, 1, &fetch, 1, NULL, 0, &c.callable, &t.err), &t.err);
  REQUIRE_INT(pthread_create(&thread, NULL, call_blocked, &c), 0);
  CHECK(ts_wait_at_gate(1));
  CHECK_OK(tn_session_release_callable(t.session, c.callable, &t.err), &t.err);
  CHECK_INT(atomic_load(&ts_watched.destroyed[0]), 0);
  ts_open_gate();
  pthread_join(thread, NULL);
  CHECK_INT(c.status, TN_OK);
  CHECK_DOUBLE(c.value, -1, 0);
  ts_fini(&t);
}

/* Strings allocated by the program must not be freed by the library. */
static void callable__does_not_write_into_foreign_strings(void) /* S-CAL-02 */
{
  ts t;
  tn_string mine = { { { 0 } } };
  const char *text = "text", *feed = "in", *fetch = "out";
  tn_tensor *in, *given;
  tn_callable callable;
  ts_init(&t, 1);
  ts_op1(t.graph, "Identity", "out", ts_placeholder(t.graph, "in", TN_STRING));
  ts_start(&t);
  REQUIRE_OK(tn_tensor_from_strings(NULL, 0, &text, NULL, &in, &t.err), &t.err);
  REQUIRE_OK(tn_tensor_wrap(TN_STRING, NULL, 0, &mine, sizeof mine, NULL, NULL, &given, &t.err), &t.err);
  REQUIRE_OK(tn_session_make_callable(t.session, NULL, &feed, 1, &fetch, 1, NULL, 0, &callable, &t.err), &t.err);
  CHECK_STATUS(tn_session_run_callable(t.session, callable, &in, 1, &given, 1, NULL, &t.err), TN_INVALID_ARGUMENT,
               &t.err);
  tn_tensor_unref(given);
  tn_tensor_unref(in);
  ts_fini(&t);
}

typedef struct late {
  ts *t;
  _Atomic uint64_t id; /* of a callable that was released, or is about to be */
  atomic_bool stop;
} late;

static void *run_stale_ones(void *arg)
{
  late *l = arg;
  tn_tensor *feeds[] = { ts_scalar(1), ts_scalar(2) };
  while (!atomic_load(&l->stop)) {
    tn_tensor *fetched[2] = { NULL, NULL };
    tn_callable callable = { atomic_load(&l->id) };
    tn_status status = tn_session_run_callable(l->t->session, callable, feeds, 2, fetched, 2, NULL, NULL);
    CHECK(status == TN_OK || status == TN_INVALID_ARGUMENT);
    unref2(fetched);
  }
  unref2(feeds);
  return NULL;
}

static void callable__late_runs_leave_new_callables_alone(void) /* S-CAL-03, S-ERR-04 */
{
  enum { THREADS = 3 };
  ts t;
  late l = { .t = &t };
  pthread_t threads[THREADS];
  ts_open(&t, 1);
  atomic_store(&l.id, usual_callable(&t).id);
  for (int i = 0; i < THREADS; i++) REQUIRE_INT(pthread_create(&threads[i], NULL, run_stale_ones, &l), 0);
  for (int64_t end = ts_now_ms() + 400; ts_now_ms() < end;) {
    tn_callable old = { atomic_load(&l.id) };
    CHECK_OK(tn_session_release_callable(t.session, old, &t.err), &t.err);
    tn_callable next = usual_callable(&t); /* usually in the same slot */
    tn_tensor *fetched[2] = { NULL, NULL };
    CHECK_OK(call(&t, next, 1, 2, fetched), &t.err);
    unref2(fetched);
    atomic_store(&l.id, next.id);
  }
  atomic_store(&l.stop, true);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  ts_fini(&t);
}

static void callable__options_hold_for_every_run(void) /* the options of tn_session_make_callable */
{
  ts t;
  tn_output in = ts_open_watched(&t, 1);
  ts_watch_op(t.graph, "TestGate", "gate", in, 0);
  ts_start(&t);
  tn_run_options options;
  tn_run_options_init(&options);
  options.timeout_ms = 30;
  const char *feed = "in", *fetch = "gate";
  tn_callable callable;
  REQUIRE_OK(tn_session_make_callable(t.session, &options, &feed, 1, &fetch, 1, NULL, 0, &callable, &t.err), &t.err);
  tn_tensor *one = ts_scalar(1), *fetched = NULL;
  for (int i = 0; i < 2; i++)
    CHECK_STATUS(tn_session_run_callable(t.session, callable, &one, 1, &fetched, 1, NULL, &t.err), TN_DEADLINE_EXCEEDED,
                 &t.err);
  CHECK_NULL(fetched);
  tn_tensor_unref(one);
  ts_fini(&t);
}

static void callable__runs_targets(void) /* S-CAL-01, S-RUN-06 */
{
  ts t;
  ts_open_watched(&t, 1);
  ts_test_op(t.graph, "TestEffect", "effect", NULL, 3, NULL, 0);
  ts_start(&t);
  const char *target = "effect";
  tn_callable callable;
  REQUIRE_OK(tn_session_make_callable(t.session, NULL, NULL, 0, NULL, 0, &target, 1, &callable, &t.err), &t.err);
  for (int i = 1; i <= 3; i++) {
    CHECK_OK(tn_session_run_callable(t.session, callable, NULL, 0, NULL, 0, NULL, &t.err), &t.err);
    CHECK_INT(ts_counted(3), i);
  }
  ts_fini(&t);
}

typedef struct another_shape {
  ts t;
  tn_tensor *in;
} another_shape;

static tn_status feed_another_shape(void *arg)
{
  another_shape *a = arg;
  static const char *const feed = "x", *const fetch = "y";
  tn_session *session = NULL;
  tn_callable callable;
  tn_tensor *out = NULL;
  tn_error err = TN_ERROR_INIT;
  tn_status st = tn_session_create(a->t.options, &session, &err);
  if (st == TN_OK) st = tn_session_set_graph(session, a->t.graph, &err);
  if (st == TN_OK) st = tn_session_make_callable(session, NULL, &feed, 1, &fetch, 1, NULL, 0, &callable, &err);
  if (st == TN_OK) st = tn_session_run_callable(session, callable, &a->in, 1, &out, 1, NULL, &err);
  CHECK((out != NULL) == (st == TN_OK));
  CHECK_INT(tn_error_code(&err), st);
  tn_tensor_unref(out);
  tn_session_destroy(session);
  tn_error_clear(&err);
  return st;
}

/* The feed's shape differs from the declared one, so its step gets a new plan. */
static void callable__other_shapes_survive_lack_of_memory(void) /* S-RUN-16, S-CAN-13 */
{
  another_shape a;
  tn_operation *x;
  ts_init(&a.t, 1);
  tn_operation_builder *b = tn_operation_begin(a.t.graph, "Placeholder", "x", 0);
  tn_operation_set_type(b, "dtype", TN_FLOAT);
  tn_operation_set_shape(b, "shape", (int64_t[]){ 2, 4 }, 2);
  REQUIRE_OK(tn_operation_finish(b, &x, &a.t.err), &a.t.err);
  b = tn_operation_begin(a.t.graph, "Neg", "y", 0);
  tn_operation_add_input(b, (tn_output){ x, 0 });
  REQUIRE_OK(tn_operation_finish(b, NULL, &a.t.err), &a.t.err);
  ts_start(&a.t);
  a.in = ts_filled(2, (int64_t[]){ 3, 4 }, 1);
  tn_test_oom_sweep(feed_another_shape, &a);
  tn_tensor_unref(a.in);
  ts_fini(&a.t);
}

TAP_MAIN(
    TAP_TEST(callable__takes_tensors_by_position),
    TAP_TEST(callable__follows_the_shapes),
    TAP_TEST(callable__wrong_counts_and_types),
    TAP_TEST(callable__making_one_checks_names),
    TAP_TEST(callable__released_and_unknown_ones),
    TAP_TEST(callable__many_at_once),
    TAP_TEST(callable__lives_on_when_the_cache_forgets),
    TAP_TEST(callable__writes_into_given_tensors),
    TAP_TEST(callable__writes_feeds_and_constants_into_given_tensors),
    TAP_TEST(callable__refuses_tensors_that_do_not_fit),
    TAP_TEST(callable__writes_into_memory_of_the_program),
    TAP_TEST(callable__one_tensor_in_two_places),
    TAP_TEST(callable__a_fed_tensor_is_not_written_into),
    TAP_TEST(callable__failed_one_leaves_given_tensors),
    TAP_TEST(callable__steady_state_allocates_nothing),
    TAP_TEST(callable__belongs_to_its_session),
    TAP_TEST(callable__does_not_write_into_foreign_strings),
    TAP_TEST(callable__late_runs_leave_new_callables_alone),
    TAP_TEST(callable__is_released_by_destroy),
    TAP_TEST(callable__steps_in_flight_survive_release),
    TAP_TEST(callable__options_hold_for_every_run),
    TAP_TEST(callable__runs_targets),
    TAP_TEST(callable__other_shapes_survive_lack_of_memory))
