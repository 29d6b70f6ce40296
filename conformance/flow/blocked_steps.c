/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that do not end by themselves: blocked at a queue, in a loop, or in a kernel that ignores
 * cancellation. Tests what ends them, what they report, and what remains usable afterwards. */
#include "conformance/support/blocked_kit.h"

#define GRAPH                                                                                             \
  LOOP_LIBRARY START QUEUE("") NARROW LOOP WHILE SCALAR_VARIABLE("")                                      \
  NODE("deaf", "TestDeaf", "input: 'begun'", SLOT(1)) NODE("gate", "TestGate", "input: 'begun'", SLOT(2))  \
  NODE("beyond_late", "TestCount", "input: 'late'", SLOT(9)) \
  NODE("beyond_exit", "TestCount", "input: 'exit'", SLOT(9)) \
  NODE("beyond_while", "TestCount", "input: 'while'", SLOT(9)) \
  NODE("beyond_deaf", "TestCount", "input: 'deaf'", SLOT(9)) \
  NODE("beyond_gate", "TestCount", "input: 'gate'", SLOT(9)) \
  NODE("beyond_squeeze", "TestCount", "input: 'x' input: '^squeeze'", SLOT(9))

/* Where a step blocks: the fetch, the node that the time-out names, and whether its kernel ignores
 * cancellation. */
typedef struct place {
  const char *fetch, *late;
  bool deaf;
} place;

static const place places[] = { { "beyond_late", "'late'", false },       { "beyond_squeeze", "'squeeze'", false },
                                { "beyond_exit", "node '", false },       { "beyond_while", "'while", false },
                                { "beyond_gate", "'gate'", false },       { "beyond_deaf", "'deaf'", true } };
enum { PLACES = sizeof places / sizeof *places };

static void open_place(ts *t, int64_t operation_timeout_ms)
{
  ts_fini(t); /* of the previous place */
  bk_open(t, true, GRAPH);
  tn_session_destroy(t->session);
  REQUIRE_OK(tn_session_options_set_int(t->options, "operation_timeout_ms", operation_timeout_ms, &t->err), &t->err);
  t->session = bk_session(t);
  CHECK_INT(bk_target(t->session, "fill", 5), TN_OK);
  CHECK_INT(bk_target(t->session, "set", 3), TN_OK);
}

/* The step left no trace (S-CAN-12, S-RO-07). */
static void check_usable(tn_session *s, const place *p)
{
  CHECK_MSG(ts_counted(9) == 0, "a node after %s was started", p->fetch); /* S-CAN-06 */
  CHECK_DOUBLE(bk_fetch(s, "read"), 3, 0);
  CHECK_INT(bk_target(s, "add", 4), TN_OK);
  CHECK_DOUBLE(bk_fetch(s, "read"), 7, 0);
  CHECK_DOUBLE(bk_fetch(s, "size"), 0, 0);
  CHECK_INT(bk_target(s, "put", 8), TN_OK);
  CHECK_DOUBLE(bk_fetch(s, "size"), 1, 0);
  CHECK_DOUBLE(bk_fetch(s, "get"), 8, 0);
  CHECK_DOUBLE(bk_fetch(s, "drain"), 5, 0);
  CHECK_INT(bk_target(s, "fill", 6), TN_OK);
  CHECK_DOUBLE(bk_fetch(s, "drain"), 6, 0);
}

#define FOR_PLACES(t, p, limit)                                                  \
  for (const place *p = (ts_init(&t, 1), places); p < places + PLACES; p++)      \
    if (open_place(&t, limit), true)

/* A kernel that ignores cancellation is released only after the call that ends its step has
 * returned: that call does not wait. */
static void check_ended(bk_step *s, const place *p, tn_status wanted, const char *message)
{
  CHECK_MSG(!p->deaf || !atomic_load(&s->ended), "the step ended while its kernel ran");
  ts_open_gate();
  CHECK_STATUS(bk_join(s), wanted, &s->err);
  CHECK_CONTAINS(tn_error_message(&s->err), message);
  CHECK_MSG(s->value != s->value, "%s has a value", p->fetch);
  bk_done(s);
}

static void blocked_steps__end_when_the_session_is_closed(void) /* S-LIFE-03, S-LIFE-04, S-LIFE-05 */
{
  ts t;
  FOR_PLACES(t, p, 0)
  {
    bk_step s = { .session = t.session, .fetch = p->fetch };
    bk_start_late(&s);
    CHECK(!p->deaf || ts_wait_at_gate(1));
    CHECK_OK(tn_session_close(t.session, &t.err), &t.err);
    check_ended(&s, p, TN_CANCELLED, "session has been closed");
    CHECK_INT(ts_counted(9), 0);
    CHECK_INT(bk_fails(t.session, "read"), TN_CANCELLED);
  }
  ts_fini(&t);
}

static void blocked_steps__end_at_a_reset(void) /* S-RST-02, S-RST-03, S-RST-04, S-RST-05 */
{
  ts t;
  TS_NEEDS_RESET();
  FOR_PLACES(t, p, 0)
  {
    bk_step s = { .session = t.session, .fetch = p->fetch };
    bk_start_late(&s);
    CHECK(!p->deaf || ts_wait_at_gate(1));
    CHECK_OK(tn_reset(t.options, NULL, 0, &t.err), &t.err);
    check_ended(&s, p, TN_CANCELLED, "session has been closed");
    CHECK_INT(bk_fails(t.session, "read"), TN_CANCELLED);
    CHECK_OK(tn_session_close(t.session, &t.err), &t.err);
  }
  ts_fini(&t);
}

static void *open_later(void *arg)
{
  (void)arg;
  ts_sleep_ms(20);
  ts_open_gate();
  return NULL;
}

static void blocked_steps__are_awaited_by_destroy(void) /* S-LIFE-09, S-LIFE-10 */
{
  ts t;
  FOR_PLACES(t, p, 0)
  {
    pthread_t opener;
    bk_step s = { .session = t.session, .fetch = p->fetch };
    bk_start_late(&s);
    CHECK(!p->deaf || ts_wait_at_gate(1));
    if (p->deaf) REQUIRE_INT(pthread_create(&opener, NULL, open_later, NULL), 0);
    tn_session_destroy(t.session);
    t.session = NULL;
    CHECK_MSG(!p->deaf || atomic_load(&ts_watched.passed) == 1, "a kernel is still running in a destroyed session");
    if (p->deaf) pthread_join(opener, NULL);
    CHECK_STATUS(bk_join(&s), TN_CANCELLED, &s.err);
    bk_done(&s);
    CHECK_INT(ts_counted(9), 0);
  }
  ts_fini(&t);
}

static void blocked_steps__can_be_cancelled_alone(void) /* S-RO-15 */
{
  ts t;
  FOR_PLACES(t, p, 0)
  {
    bk_step s = { .session = t.session, .fetch = p->fetch };
    REQUIRE_OK(tn_cancellation_create(NULL, &s.cancellation, &t.err), &t.err);
    bk_start_late(&s);
    CHECK(!p->deaf || ts_wait_at_gate(1));
    tn_cancellation_cancel(s.cancellation);
    check_ended(&s, p, TN_CANCELLED, "");
    tn_cancellation_unref(s.cancellation);
    check_usable(t.session, p);
  }
  ts_fini(&t);
}

#define LIMIT 60 /* ms */

/* The limit of the step or of the session; the message names the node that was running. */
static void blocked_steps__have_a_time_limit(void) /* S-RO-03, S-RO-04, S-RO-06, S-RO-08 */
{
  ts t;
  for (int own = 0; own <= 1; own++) {
    FOR_PLACES(t, p, own ? 0 : LIMIT)
    {
      bk_step s = { .session = t.session, .fetch = p->fetch, .timeout_ms = own ? LIMIT : -1 };
      int64_t begun = ts_now_ms();
      bk_start(&s);
      if (p->deaf && ts_wait_at_gate(1)) {
        ts_sleep_ms(LIMIT + 30);
        CHECK(!atomic_load(&s.ended)); /* S-RO-06 */
        ts_open_gate();
      }
      CHECK_STATUS(bk_join(&s), TN_DEADLINE_EXCEEDED, &s.err);
      CHECK(ts_now_ms() - begun >= LIMIT - 1);
      CHECK_CONTAINS(tn_error_message(&s.err), p->late);
      CHECK_CONTAINS(tn_error_message(&s.err), "exceeded its time limit at node");
      CHECK_MSG(tn_error_node(&s.err) != NULL && *tn_error_node(&s.err) != 0, "%s: the error names no node", p->fetch);
      bk_done(&s);
      ts_open_gate();
      check_usable(t.session, p);
    }
    ts_fini(&t);
  }
}

/* The first cause is reported, also for blocked nodes and loops. */
static void blocked_steps__report_the_first_cause(void) /* S-CAN-07 */
{
  ts t;
  for (int closed_first = 0; closed_first <= 1; closed_first++) {
    FOR_PLACES(t, p, 0)
    {
      if (!p->deaf) continue;
      bk_step s = { .session = t.session, .fetch = p->fetch, .timeout_ms = closed_first ? 200 : 20 };
      bk_start_late(&s);
      CHECK(ts_wait_at_gate(1));
      if (!closed_first) ts_sleep_ms(60);
      CHECK_OK(tn_session_close(t.session, &t.err), &t.err);
      if (closed_first) ts_sleep_ms(250);
      ts_open_gate();
      CHECK_STATUS(bk_join(&s), closed_first ? TN_CANCELLED : TN_DEADLINE_EXCEEDED, &s.err);
      bk_done(&s);
    }
    ts_fini(&t);
  }
}

static void blocked_steps__do_not_block_other_sessions(void) /* S-THR-05 */
{
  ts t;
  FOR_PLACES(t, p, 0)
  {
    bk_step s = { .session = t.session, .fetch = p->fetch };
    bk_start_late(&s);
    tn_session *other = bk_session(&t);
    CHECK_INT(bk_target(other, "set", 2), TN_OK);
    CHECK_DOUBLE(bk_fetch(other, "read"), 2, 0);
    CHECK_DOUBLE(bk_fetch(t.session, "read"), 3, 0); /* nor another step of the same session */
    tn_session_destroy(other);
    CHECK_OK(tn_session_close(t.session, &t.err), &t.err);
    ts_open_gate();
    CHECK_INT(bk_join(&s), TN_CANCELLED);
    bk_done(&s);
  }
  ts_fini(&t);
}

/* ---- in one step ---- */

/* Whichever node comes first in the graph, a blocked dequeue lets its step continue. */
static void blocked_steps__are_woken_by_their_own_nodes(void) /* S-EXE-01, S-EXE-04 */
{
#define PUT NODE("put", "QueueEnqueueV2", "input: 'q' input: 'x'", PUTS)
#define GET NODE("get", "QueueDequeueV2", "input: 'q'", QT)
#define Q NODE("q", "FIFOQueueV2", "", QT SCALARS)
  static const char *const texts[] = { Q ANY("x", "DT_FLOAT") GET PUT, Q ANY("x", "DT_FLOAT") PUT GET };
  for (int i = 0; i < 2; i++) {
    ts t;
    bk_open(&t, true, texts[i]);
    for (int k = 0; k < 20; k++) {
      bk_step s = { .session = t.session, .fetch = "get", .target = "put", .x = (float)k, .timeout_ms = 10000 };
      CHECK_OK(bk_run(&s), &s.err);
      CHECK_DOUBLE(s.value, k, 0);
      bk_done(&s);
    }
    ts_fini(&t);
  }
}

/* The assertion depends on nothing, on a kernel that ran, or on another blocked node: the step ends
 * with the assertion's code and text. */
static void blocked_steps__do_not_hide_an_assertion(void) /* S-CAN-01, S-CAN-04, S-CAN-05 */
{
#define CLAIM(name, inputs) NODE(name, "Assert", "input: 'no' input: 'x' " inputs, LIST("T", "type: DT_FLOAT"))
  static const char *const targets[] = { "plain", "after", "waited" };
  ts t;
  bk_open(&t, true, LOOP_LIBRARY START QUEUE("") NARROW LOOP WHILE TRUTH("no", "false", "") CLAIM("plain", "")
          CLAIM("after", "input: '^begun'") CLAIM("waited", "input: '^drain'"));
  for (int i = 0; i < 3; i++)
    for (int k = 0; k < 2; k++) {
      CHECK_INT(bk_target(t.session, "fill", 1), TN_OK);
      bk_step s = { .session = t.session, .fetch = k ? "get" : "late", .target = targets[i], .x = 7,
                    .timeout_ms = 20000 };
      int64_t begun = ts_now_ms();
      CHECK_STATUS(bk_run(&s), TN_INVALID_ARGUMENT, &s.err);
      CHECK(ts_now_ms() - begun < 10000);
      CHECK_STR(tn_error_node(&s.err), targets[i]);
      CHECK_CONTAINS(tn_error_message(&s.err), "7");
      bk_done(&s);
      if (i < 2) CHECK_DOUBLE(bk_fetch(t.session, "drain"), 1, 0);
      CHECK_INT(bk_target(t.session, "put", 2), TN_OK); /* S-CAN-12 */
      CHECK_DOUBLE(bk_fetch(t.session, "get"), 2, 0);
    }
  ts_fini(&t);
}

/* ---- between sessions ---- */

static void blocked_steps__are_woken_by_other_sessions(void) /* S-RST-18 */
{
  ts t;
  const char *container = "between";
  bk_open(&t, false, START QUEUE(TEXT_ATTR("container", "between"))
          NODE("narrow", "FIFOQueueV2", "", QT SCALARS INT("capacity", 1) TEXT_ATTR("container", "between"))
          NODE("drain", "QueueDequeueV2", "input: 'narrow'", QT)
          NODE("squeeze", "QueueEnqueueV2", "input: 'narrow' input: 'begun'", PUTS));
  tn_session *other = bk_session(&t);
  for (int i = 0; i < 20; i++) {
    bk_step s = { .session = t.session, .fetch = "late" };
    bk_start_late(&s);
    CHECK_INT(bk_target(other, "put", (float)i), TN_OK);
    CHECK_STATUS(bk_join(&s), TN_OK, &s.err);
    CHECK_DOUBLE(s.value, i, 0);
    CHECK_INT(bk_target(other, "squeeze", (float)i), TN_OK);
    s = (bk_step){ .session = t.session, .target = "squeeze", .x = 100 };
    bk_start_late(&s);
    CHECK_DOUBLE(bk_fetch(other, "drain"), i, 0);
    CHECK_STATUS(bk_join(&s), TN_OK, &s.err);
    CHECK_DOUBLE(bk_fetch(other, "drain"), 100, 0);
  }
  ts_clean(&t, container);
  tn_session_destroy(other);
  ts_fini(&t);
}

/* Two steps wait: an element taken for a step that is cancelled is not lost for the other. */
static void blocked_steps__lose_no_element_when_cancelled(void) /* S-CAN-12 */
{
  ts t;
  bk_open(&t, true, START QUEUE(""));
  int late = 0; /* steps cancelled after the dequeue had ended but before the step had (S-RUN-25) */
  for (int i = 0; i < 200; i++) {
    bk_step a = { .session = t.session, .fetch = "late" }, b = a;
    REQUIRE_OK(tn_cancellation_create(NULL, &a.cancellation, &t.err), &t.err);
    bk_start_late(&a);
    bk_step put = { .session = t.session, .target = "put", .x = (float)i };
    if (i % 2) bk_start(&put);
    tn_cancellation_cancel(a.cancellation);
    if (i % 2 == 0) bk_start(&put);
    bk_join(&a);
    CHECK_INT(bk_join(&put), TN_OK);
    CHECK_MSG(a.status == TN_OK || a.status == TN_CANCELLED, "%s", tn_status_name(a.status));
    float left = bk_fetch(t.session, "size"); /* either it took the element, or the element is still there */
    if (a.status == TN_OK) CHECK_DOUBLE(left, 0, 0);
    else if (left > 0) CHECK_OK(bk_run(&b), &b.err), bk_done(&b);
    else late++;
    bk_done(&a);
    bk_done(&put);
    tn_cancellation_unref(a.cancellation);
  }
  CHECK_MSG(late < 50, "%d of 200 elements were taken by cancelled steps", late);
  ts_fini(&t);
}

TAP_MAIN(
  TAP_TEST(blocked_steps__end_when_the_session_is_closed),
  TAP_TEST(blocked_steps__end_at_a_reset),
  TAP_TEST(blocked_steps__are_awaited_by_destroy),
  TAP_TEST(blocked_steps__can_be_cancelled_alone),
  TAP_TEST(blocked_steps__have_a_time_limit),
  TAP_TEST(blocked_steps__report_the_first_cause),
  TAP_TEST(blocked_steps__do_not_block_other_sessions),
  TAP_TEST(blocked_steps__are_woken_by_their_own_nodes),
  TAP_TEST(blocked_steps__do_not_hide_an_assertion),
  TAP_TEST(blocked_steps__are_woken_by_other_sessions),
  TAP_TEST(blocked_steps__lose_no_element_when_cancelled))
