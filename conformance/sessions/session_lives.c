/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions created and destroyed, with variables, queues, loops and abandoned steps: the library's
 * memory stays constant. */
#include "conformance/support/blocked_kit.h"

#define GRAPH                                                                                      \
  LOOP_LIBRARY START QUEUE("") NARROW LOOP WHILE COUNTS SCALAR_VARIABLE(TEXT_ATTR("shared_name", "v")) \
  TRUTH("no", "false", "") \
  NODE("claim", "Assert", "input: 'no' input: 'x' input: '^begun'", LIST("T", "type: DT_FLOAT"))    \
  NODE("ref", "VariableV2", "", DT SHAPE("")) NODE("assign", "Assign", "input: 'ref' input: 'x'", F) \
  NODE("value", "Identity", "input: 'ref'", F)
enum { ROUNDS = 1000, WARM = 20 };

static void work(tn_session *s, int i)
{
  CHECK_INT(bk_target(s, "set", 1), TN_OK);
  CHECK_INT(bk_target(s, "add", (float)i), TN_OK);
  CHECK_DOUBLE(bk_fetch(s, "read"), i + 1, 0);
  CHECK_INT(bk_target(s, "assign", 4), TN_OK);
  CHECK_DOUBLE(bk_fetch(s, "value"), 4, 0);
  CHECK_INT(bk_target(s, "put", 1), TN_OK);
  CHECK_INT(bk_target(s, "put", 2), TN_OK); /* it stays in the queue */
  CHECK_DOUBLE(bk_fetch(s, "get"), 1, 0);
  CHECK_DOUBLE(bk_fetch(s, "ten"), 10, 0);
  CHECK_DOUBLE(bk_fetch(s, "few"), 10, 0);
}

static const char *const places[] = { "late", "exit", "while" };

/* Abandons steps by a time limit, an assertion, or with their session, in one of four ways. */
static void give_up(ts *t, tn_session *s, int i)
{
  bk_step late = { .session = s, .fetch = places[i % 3], .timeout_ms = 1 };
  bk_fetch(s, "get"); /* the queue is empty now */
  if (i % 10 == 0) {
    CHECK_STATUS(bk_run(&late), TN_DEADLINE_EXCEEDED, &late.err);
    bk_done(&late);
  }
  late = (bk_step){ .session = s, .fetch = "late", .target = "claim" };
  CHECK_STATUS(bk_run(&late), TN_INVALID_ARGUMENT, &late.err);
  bk_done(&late);
  if (i % 5 == 0) {
    late = (bk_step){ .session = s, .fetch = places[i % 3] };
    bk_start_late(&late);
  }
  if (i % 4 == 1) CHECK_OK(tn_session_close(s, &t->err), &t->err);
  if (i % 4 == 2) CHECK_OK(tn_reset(t->options, NULL, 0, &t->err), &t->err);
  tn_session_destroy(s);
  if (i % 5 == 0) {
    CHECK_INT(bk_join(&late), TN_CANCELLED);
    bk_done(&late);
  }
}

/* S-LIFE-12; shared: contents of the factory's containers are freed by a reset, not with the
 * session. */
static void check_constant(bool isolated)
{
  ts t;
  uint64_t blocks = 0, bytes = 0;
  TS_NEEDS_RESET();
  bk_open(&t, isolated, GRAPH);
  for (int i = 0; i < ROUNDS; i++) {
    tn_session *s = bk_session(&t);
    work(s, i);
    give_up(&t, s, i);
    if (!isolated) CHECK_OK(tn_reset(t.options, NULL, 0, &t.err), &t.err);
    tn_error_clear(&t.err);
    if (i == WARM) blocks = tn_test_live_blocks(), bytes = tn_test_live_bytes();
    if (i < WARM || (tn_test_live_blocks() == blocks && tn_test_live_bytes() == bytes)) continue;
    FAIL("round %d: %llu blocks, %llu bytes; after round %d: %llu blocks, %llu bytes", i,
         (unsigned long long)tn_test_live_blocks(),
         (unsigned long long)tn_test_live_bytes(), WARM, (unsigned long long)blocks, (unsigned long long)bytes);
    break;
  }
  ts_fini(&t);
}

static void session_lives__of_isolated_sessions_leave_nothing(void) { check_constant(true); }
static void session_lives__of_sessions_that_share_leave_nothing(void) { check_constant(false); }

/* A session that is not closed is never collected: its objects remain, whatever else is freed, and
 * can be used until it is deleted. */
static void session_lives__of_unclosed_sessions_continue(void) /* S-LIFE-13, S-LIFE-09 */
{
  for (int round = 0; round < 4; round++) {
    ts t, other;
    uint64_t before = tn_test_live_bytes(), blocks = tn_test_live_blocks();
    bk_open(&t, true, GRAPH);
    tn_session *left = t.session;
    work(left, round);
    t.session = NULL;
    ts_fini(&t); /* destroys the program's graph and options */
    uint64_t held = tn_test_live_bytes();
    CHECK(held > before);
    for (int i = 0; i < 3; i++) {
      bk_open(&other, true, GRAPH);
      work(other.session, 50);
      ts_fini(&other);
      CHECK_INT(tn_test_live_bytes(), held);
    }
    CHECK_DOUBLE(bk_fetch(left, "read"), round + 1, 0);
    CHECK_DOUBLE(bk_fetch(left, "value"), 4, 0);
    CHECK_DOUBLE(bk_fetch(left, "size"), 1, 0);
    CHECK_DOUBLE(bk_fetch(left, "get"), 2, 0);
    tn_session_destroy(left);
    if (round == 0) continue; /* allocates memory that is kept for the process */
    CHECK_INT(tn_test_live_bytes(), before);
    CHECK_INT(tn_test_live_blocks(), blocks);
  }
}

/* One session with many steps that fail: each step's memory is freed (S-RO-07, S-RST-22). */
static void session_lives__of_steps_leave_nothing(void)
{
  ts t;
  uint64_t blocks = 0, bytes = 0;
  bk_open(&t, true, GRAPH);
  for (int i = 0; i < ROUNDS; i++) {
    bk_step late = { .session = t.session, .fetch = "late", .target = "claim" };
    CHECK_STATUS(bk_run(&late), TN_INVALID_ARGUMENT, &late.err);
    bk_done(&late);
    /* The limit covers the preparation of a step: the first ones are prepared, whatever else the machine does. */
    late = (bk_step){ .session = t.session, .fetch = places[i % 3], .timeout_ms = i < 30 ? 300 : 1 };
    if (i % 10 == 0) CHECK_STATUS(bk_run(&late), TN_DEADLINE_EXCEEDED, &late.err), bk_done(&late);
    CHECK_DOUBLE(bk_fetch(t.session, i % 2 ? "ten" : "few"), 10, 0);
    CHECK_INT(bk_target(t.session, "put", 1), TN_OK);
    CHECK_DOUBLE(bk_fetch(t.session, "get"), 1, 0);
    if (i == 100) blocks = tn_test_live_blocks(), bytes = tn_test_live_bytes();
  }
  CHECK_INT(tn_test_live_blocks(), blocks);
  CHECK_INT(tn_test_live_bytes(), bytes);
  ts_fini(&t);
}

TAP_MAIN(
  TAP_TEST(session_lives__of_isolated_sessions_leave_nothing),
  TAP_TEST(session_lives__of_sessions_that_share_leave_nothing),
  TAP_TEST(session_lives__of_unclosed_sessions_continue),
  TAP_TEST(session_lives__of_steps_leave_nothing))
