/* SPDX-License-Identifier: Apache-2.0 */
/* Steps: memory of values, compiled signatures, errors, cancellation, time limits. */
#include "conformance/support/session_kit.h"

#include <pthread.h>
#include <stdio.h>

/* --- memory of values --------------------------------------------------------------------------------------------- */

static void session_step__fetched_constants_are_copies(void) /* S-RUN-27 */
{
  FOR_LEVELS(level)
  {
    ts t;
    tn_tensor *fetched[4];
    ts_init(&t, level);
    ts_op1(t.graph, "Identity", "same", ts_const(t.graph, "c", 5));
    ts_start(&t);
    REQUIRE_OK(ts_run(&t, NULL, NAMES("c", "c", "same", "same"), fetched, NULL), &t.err);
    for (int i = 0; i < 4; i++) {
      CHECK(tn_tensor_is_exclusive(fetched[i]));
      CHECK_DOUBLE(ts_float(fetched[i]), 5, 0);
      for (int k = 0; k < i; k++) CHECK(tn_tensor_data(fetched[i]) != tn_tensor_data(fetched[k]));
      *(float *)tn_tensor_data(fetched[i]) = (float)(100 + i); /* the program may write to its own tensors */
    }
    CHECK_DOUBLE(ts_run1(&t, NULL, "c"), 5, 0);
    CHECK_DOUBLE(ts_run1(&t, NULL, "same"), 5, 0);
    for (int i = 0; i < 4; i++) tn_tensor_unref(fetched[i]);
    ts_fini(&t);
  }
}

static void session_step__fetched_views_are_the_callers(void) /* S-RUN-27 */
{
  FOR_LEVELS(level)
  {
    ts t;
    tn_tensor *fetched[3];
    ts_init(&t, level);
    tn_output x = ts_placeholder(t.graph, "x", TN_FLOAT), neg = ts_op1(t.graph, "Neg", "neg", x);
    ts_op1(t.graph, "Neg", "after", ts_op1(t.graph, "Identity", "view", neg));
    ts_start(&t);
    REQUIRE_OK(ts_run(&t, FEEDS({ "x", 2 }), NAMES("neg", "view", "after"), fetched, NULL), &t.err);
    CHECK(tn_tensor_data(fetched[0]) != tn_tensor_data(fetched[1]));
    CHECK_DOUBLE(ts_float(fetched[0]), -2, 0);
    CHECK_DOUBLE(ts_float(fetched[1]), -2, 0);
    CHECK_DOUBLE(ts_float(fetched[2]), 2, 0);
    for (int i = 0; i < 3; i++) {
      CHECK(tn_tensor_is_exclusive(fetched[i]));
      tn_tensor_unref(fetched[i]);
    }
    ts_fini(&t);
  }
}

static void session_step__fetched_tensors_outlive_the_session(void) /* S-RUN-27 */
{
  ts t;
  tn_tensor *fetched;
  ts_open(&t, 1);
  REQUIRE_OK(ts_run(&t, FEEDS({ "x", 3 }, { "y", 4 }), NAMES("twice"), &fetched, NULL), &t.err);
  ts_fini(&t);
  CHECK_DOUBLE(ts_float(fetched), 14, 0);
  tn_tensor_unref(fetched);
}

static void session_step__feeds_are_not_written_to(void) /* S-RUN-28 */
{
  FOR_LEVELS(level)
  {
    ts t;
    ts_open(&t, level);
    tn_tensor *values[] = { ts_filled(1, (int64_t[]){ 1000 }, 3), ts_filled(1, (int64_t[]){ 1000 }, 4) },
              *fetched = NULL;
    const char *feeds[] = { "x", "y" }, *name = "twice";
    REQUIRE_OK(tn_session_run(t.session, NULL, feeds, values, 2, &name, &fetched, 1, NULL, 0, NULL, &t.err), &t.err);
    for (int i = 0; i < 2; i++) {
      const float *data = tn_tensor_data(values[i]);
      for (int k = 0; k < 1000; k++)
        if (!CHECK_DOUBLE(data[k], 3 + i, 0)) break;
      CHECK(tn_tensor_is_exclusive(values[i])); /* and no other reference is left */
      tn_tensor_unref(values[i]);
    }
    tn_tensor_unref(fetched);
    ts_fini(&t);
  }
}

/* 50 operations in sequence on one megabyte each: a step does not hold all of them. */
static void session_step__tensors_are_freed_after_their_last_use(void) /* S-EXE-22 */
{
  FOR_LEVELS(level)
  {
    ts t;
    const int64_t n = 1 << 18;
    tn_output at = ts_open_watched(&t, level);
    char name[16];
    for (int i = 0; i < 50; i++) {
      snprintf(name, sizeof(name), "n%d", i);
      at = ts_op1(t.graph, i % 2 ? "Neg" : "Square", name, at);
    }
    ts_watch_op(t.graph, "TestCount", "probe", at, 1);
    ts_start(&t);
    tn_tensor *fed = ts_filled(1, &n, 1), *fetched = NULL;
    uint64_t before = tn_test_live_bytes();
    const char *feed = "in", *fetch = "probe";
    REQUIRE_OK(tn_session_run(t.session, NULL, &feed, &fed, 1, &fetch, &fetched, 1, NULL, 0, NULL, &t.err), &t.err);
    CHECK(atomic_load(&ts_watched.live_bytes) - before < 8 * (uint64_t)n * sizeof(float));
    tn_tensor_unref(fetched);
    tn_tensor_unref(fed);
    ts_fini(&t);
  }
}

/* --- signatures --------------------------------------------------------------------------------------------------- */

static void session_step__signatures_are_reused(void) /* S-RUN-29 */
{
  ts t;
  uint64_t compiled = 0, held = 0;
  ts_open(&t, 1);
  for (int i = 0; i < 10; i++) {
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", (float)i }), "neg"), -i, 0);
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", (float)i }, { "y", 1 }), "sum"), i + 1, 0);
  }
  tn_session_signature_counts(t.session, &compiled, &held);
  CHECK_INT(compiled, 2);
  CHECK_INT(held, 2);
  ts_fini(&t);
}

static void session_step__number_of_signatures_is_bounded(void) /* S-RUN-30 */
{
  ts t;
  uint64_t compiled = 0, held = 0;
  char names[40][8];
  ts_init(&t, 1);
  for (int i = 0; i < 40; i++) {
    snprintf(names[i], sizeof(names[i]), "c%d", i);
    ts_const(t.graph, names[i], (float)i);
  }
  CHECK_OK(tn_session_options_set_int(t.options, "max_signatures", 4, &t.err), &t.err);
  ts_start(&t);
  for (int round = 0; round < 2; round++)
    for (int i = 0; i < 40; i++) CHECK_DOUBLE(ts_run1(&t, NULL, names[i]), i, 0);
  tn_session_signature_counts(t.session, &compiled, &held);
  CHECK(held <= 4);
  CHECK(compiled >= 40);
  ts_fini(&t);
}

/* An evicted signature is freed, whatever names it was compiled with; a stateful node keeps its
 * kernel (S-EXE-20). */
static void session_step__signatures_that_are_not_kept_are_freed(void) /* S-RUN-30 */
{
  ts t;
  char name[16];
  tn_output in = ts_open_watched(&t, 1), same = ts_watch_op(t.graph, "TestCount", "same", in, 20);
  for (int i = 0; i < 8; i++) {
    snprintf(name, sizeof name, "c%u", (unsigned)i % 10);
    ts_watch_op(t.graph, "TestPlain", name, same, i);
  }
  CHECK_OK(tn_session_options_set_int(t.options, "max_signatures", 2, &t.err), &t.err);
  ts_start(&t);
  for (int i = 0; i < 8; i++) {
    snprintf(name, sizeof name, "c%u", (unsigned)i % 10);
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "in", 3 }), name), 3, 0);
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "in:0", 4 }), name), 4, 0);
  }
  for (int i = 0; i < 8; i++) CHECK_INT(atomic_load(&ts_watched.destroyed[i]), i < 6);
  CHECK_DOUBLE(ts_run1(&t, FEEDS({ "in", 5 }), "c0"), 5, 0);
  CHECK_INT(atomic_load(&ts_watched.created[0]), 2);
  CHECK_INT(atomic_load(&ts_watched.created[20]), 1);
  CHECK_INT(atomic_load(&ts_watched.destroyed[20]), 0);
  ts_fini(&t);
  CHECK_INT(atomic_load(&ts_watched.destroyed[20]), 1);
}

static void session_step__step_ids_rise(void) /* S-RUN-31 */
{
  ts t, other;
  tn_output in = ts_open_watched(&t, 1);
  ts_watch_op(t.graph, "TestCount", "c", in, 1);
  ts_start(&t);
  ts_init(&other, 1);
  ts_watch_op(other.graph, "TestCount", "c", ts_placeholder(other.graph, "in", TN_FLOAT), 1);
  ts_start(&other);
  uint64_t last = 0;
  for (int i = 0; i < 10; i++) {
    CHECK_DOUBLE(ts_run1(i % 2 ? &t : &other, FEEDS({ "in", 1 }), "c"), 1, 0);
    CHECK(atomic_load(&ts_watched.step_id[1]) > last);
    last = atomic_load(&ts_watched.step_id[1]);
  }
  ts_fini(&other);
  ts_fini(&t);
}

/* --- errors in a step, cancellation, time limits
 * ------------------------------------------------------------------ */

static void session_step__error_names_the_node_and_keeps_its_code(void) /* S-CAN-01, S-CAN-02, S-CAN-14 */
{
  static const tn_status codes[] = { TN_UNKNOWN,           TN_INVALID_ARGUMENT, TN_NOT_FOUND, TN_FAILED_PRECONDITION,
                                     TN_OUT_OF_RANGE,      TN_UNIMPLEMENTED,    TN_INTERNAL,  TN_DATA_LOSS,
                                     TN_RESOURCE_EXHAUSTED };
  FOR_LEVELS(level) for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
  {
    ts t;
    tn_tensor *fetched;
    tn_output in = ts_open_watched(&t, level);
    ts_watch_op(t.graph, "TestFail", "culprit", in, codes[i]);
    ts_start(&t);
    CHECK_STATUS(ts_run(&t, FEEDS({ "in", 1 }), NAMES("culprit"), &fetched, NULL), codes[i], &t.err);
    CHECK_CONTAINS(tn_error_message(&t.err), "told to fail");
    CHECK_CONTAINS(tn_error_message(&t.err), "culprit");
    CHECK_STR(tn_error_node(&t.err), "culprit");
    ts_fini(&t);
  }
}

/* If two nodes fail, one of the errors is reported in full: its code, node and text. */
static void session_step__one_error_is_reported(void) /* S-CAN-01 */
{
  FOR_LEVELS(level) for (int i = 0; i < 2; i++)
  {
    ts t;
    tn_tensor *fetched[2];
    tn_output in = ts_open_watched(&t, level);
    ts_watch_op(t.graph, "TestFail", i ? "lost" : "odd", in, i ? TN_DATA_LOSS : TN_OUT_OF_RANGE);
    ts_watch_op(t.graph, "TestFail", i ? "odd" : "lost", in, i ? TN_OUT_OF_RANGE : TN_DATA_LOSS);
    ts_start(&t);
    tn_status st = ts_run(&t, FEEDS({ "in", 1 }), NAMES("lost", "odd"), fetched, NULL);
    CHECK(st == TN_DATA_LOSS || st == TN_OUT_OF_RANGE);
    CHECK_INT(tn_error_code(&t.err), st);
    CHECK_STR(tn_error_node(&t.err), st == TN_DATA_LOSS ? "lost" : "odd");
    CHECK_MSG((strstr(tn_error_message(&t.err), "'lost'") == NULL) == (st == TN_OUT_OF_RANGE), "%s",
              tn_error_message(&t.err));
    ts_fini(&t);
  }
}

static void session_step__nothing_starts_after_an_error(void) /* S-CAN-03 */
{
  FOR_LEVELS(level)
  {
    ts t;
    tn_tensor *fetched;
    tn_output in = ts_open_watched(&t, level), bad = ts_watch_op(t.graph, "TestFail", "bad", in, TN_ABORTED);
    ts_watch_op(t.graph, "TestCount", "after", bad, 1);
    ts_test_op(t.graph, "TestEffect", "effect", NULL, 2, &bad.op, 1);
    ts_start(&t);
    CHECK_STATUS(ts_run(&t, FEEDS({ "in", 1 }), NAMES("after"), &fetched, NAMES("effect")), TN_ABORTED, &t.err);
    CHECK_INT(ts_counted(1), 0);
    CHECK_INT(ts_counted(2), 0);
    ts_fini(&t);
  }
}

static void session_step__out_of_memory_in_a_step(void) /* S-CAN-13 */
{
  ts t;
  const int64_t n = 4096;
  ts_open(&t, 1);
  tn_tensor *fed = ts_filled(1, &n, 2), *fetched = NULL;
  const char *feed = "x", *fetch = "neg";
  REQUIRE_OK(tn_session_run(t.session, NULL, &feed, &fed, 1, &fetch, &fetched, 1, NULL, 0, NULL, &t.err), &t.err);
  tn_tensor_unref(fetched);
  tn_test_fail_allocation(1, 1);
  tn_status status = tn_session_run(t.session, NULL, &feed, &fed, 1, &fetch, &fetched, 1, NULL, 0, NULL, &t.err);
  tn_test_fail_allocation(0, 0);
  CHECK_STATUS(status, TN_RESOURCE_EXHAUSTED, &t.err);
  CHECK_NULL(fetched);
  REQUIRE_OK(tn_session_run(t.session, NULL, &feed, &fed, 1, &fetch, &fetched, 1, NULL, 0, NULL, &t.err), &t.err);
  CHECK_DOUBLE(ts_float(fetched), -2, 0);
  tn_tensor_unref(fetched);
  tn_tensor_unref(fed);
  ts_fini(&t);
}

typedef struct canceller {
  tn_cancellation *cancellation;
} canceller;

static void *cancel_at_gate(void *arg)
{
  canceller *c = arg;
  CHECK(ts_wait_at_gate(1));
  tn_cancellation_cancel(c->cancellation);
  return NULL;
}

static void session_step__a_step_can_be_cancelled_alone(void) /* S-RO-15, S-CAN-06 */
{
  ts t;
  canceller c = { NULL };
  pthread_t thread;
  tn_output in = ts_open_watched(&t, 1);
  ts_watch_op(t.graph, "TestCount", "after", ts_watch_op(t.graph, "TestGate", "gate", in, 0), 1);
  ts_start(&t);
  REQUIRE_OK(tn_cancellation_create(NULL, &c.cancellation, &t.err), &t.err);
  REQUIRE_INT(pthread_create(&thread, NULL, cancel_at_gate, &c), 0);
  tn_run_options options;
  tn_run_options_init(&options);
  options.cancellation = c.cancellation;
  tn_tensor *one = ts_scalar(1), *fetched = NULL;
  const char *feed = "in", *fetch = "after";
  CHECK_STATUS(tn_session_run(t.session, &options, &feed, &one, 1, &fetch, &fetched, 1, NULL, 0, NULL, &t.err),
               TN_CANCELLED, &t.err);
  pthread_join(thread, NULL);
  CHECK_NULL(fetched);
  CHECK_INT(ts_counted(1), 0);
  CHECK_STATUS(tn_session_run(t.session, &options, &feed, &one, 1, &fetch, &fetched, 1, NULL, 0, NULL, &t.err),
               TN_CANCELLED, &t.err);
  ts_open_gate();
  CHECK_DOUBLE(ts_run1(&t, FEEDS({ "in", 3 }), "after"), 3, 0); /* the session is unchanged */
  tn_cancellation_unref(c.cancellation);
  tn_tensor_unref(one);
  ts_fini(&t);
}

static void session_step__a_step_has_a_time_limit(void) /* S-RO-04, S-RO-05, S-RO-07, S-CFG-17, S-CAN-07 */
{
  ts t;
  tn_output in = ts_open_watched(&t, 1);
  ts_watch_op(t.graph, "TestCount", "after", ts_watch_op(t.graph, "TestGate", "gate", in, 0), 1);
  CHECK_OK(tn_session_options_set_int(t.options, "operation_timeout_ms", 50, &t.err), &t.err);
  ts_start(&t);
  tn_tensor *fetched;
  int64_t start = ts_now_ms();
  CHECK_STATUS(ts_run(&t, FEEDS({ "in", 1 }), NAMES("after"), &fetched, NULL), TN_DEADLINE_EXCEEDED, &t.err);
  CHECK(ts_now_ms() - start >= 45);
  CHECK_INT(ts_counted(1), 0);
  tn_run_options options;
  tn_run_options_init(&options);
  options.timeout_ms = 200; /* longer than the session's */
  tn_tensor *one = ts_scalar(1);
  const char *feed = "in", *fetch = "after";
  start = ts_now_ms();
  CHECK_STATUS(tn_session_run(t.session, &options, &feed, &one, 1, &fetch, &fetched, 1, NULL, 0, NULL, &t.err),
               TN_DEADLINE_EXCEEDED, &t.err);
  CHECK(ts_now_ms() - start >= 190);
  ts_open_gate();
  CHECK_DOUBLE(ts_run1(&t, FEEDS({ "in", 3 }), "after"), 3, 0);
  tn_tensor_unref(one);
  ts_fini(&t);
}

/* Closes the session once a kernel has waited at the gate for 60 ms, and opens the gate. */
static void *close_late(void *session)
{
  CHECK(ts_wait_at_gate(1));
  ts_sleep_ms(60);
  CHECK_INT(tn_session_close(session, NULL), TN_OK);
  ts_open_gate();
  return NULL;
}

/* A kernel that ignores cancellation ends last, but the step reports the first cause. */
static void session_step__the_first_cause_is_reported(void) /* S-CAN-07, S-LIFE-04, S-RO-03 */
{
  static const int64_t limits[] = { 20, 60000, 0 };
  for (int i = 0; i < 3; i++) {
    ts t;
    pthread_t thread;
    tn_output in = ts_open_watched(&t, 1);
    ts_watch_op(t.graph, "TestDeaf", "deaf", in, 0);
    CHECK_OK(tn_session_options_set_int(t.options, "operation_timeout_ms", limits[i], &t.err), &t.err);
    ts_start(&t);
    REQUIRE_INT(pthread_create(&thread, NULL, close_late, t.session), 0);
    tn_tensor *fetched;
    CHECK_STATUS(ts_run(&t, FEEDS({ "in", 1 }), NAMES("deaf"), &fetched, NULL),
                 i == 0 ? TN_DEADLINE_EXCEEDED : TN_CANCELLED, &t.err);
    CHECK_NULL(fetched);
    pthread_join(thread, NULL);
    ts_fini(&t);
  }
}

TAP_MAIN(
    TAP_TEST(session_step__fetched_constants_are_copies),
    TAP_TEST(session_step__fetched_views_are_the_callers),
    TAP_TEST(session_step__fetched_tensors_outlive_the_session),
    TAP_TEST(session_step__feeds_are_not_written_to),
    TAP_TEST(session_step__tensors_are_freed_after_their_last_use),
    TAP_TEST(session_step__signatures_are_reused),
    TAP_TEST(session_step__number_of_signatures_is_bounded),
    TAP_TEST(session_step__signatures_that_are_not_kept_are_freed),
    TAP_TEST(session_step__step_ids_rise),
    TAP_TEST(session_step__error_names_the_node_and_keeps_its_code),
    TAP_TEST(session_step__one_error_is_reported),
    TAP_TEST(session_step__nothing_starts_after_an_error),
    TAP_TEST(session_step__out_of_memory_in_a_step),
    TAP_TEST(session_step__a_step_can_be_cancelled_alone),
    TAP_TEST(session_step__a_step_has_a_time_limit),
    TAP_TEST(session_step__the_first_cause_is_reported))
