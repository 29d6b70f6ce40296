/* SPDX-License-Identifier: Apache-2.0 */
/* Branches and loops of frames, as seen through a session: dead values, executed nodes, and what
 * can be fetched. */
#include "conformance/support/blocked_kit.h"

/* x > 0 takes the branch "twice" (slot 2), else "neg" (slot 1). */
#define BRANCHES                                                                                           \
  ANY("x", "DT_FLOAT") ANY("y", "DT_FLOAT") SCALAR("zero", "0") NODE("p", "Less", "input: 'zero' input: 'x'", F) \
  NODE("sw", "Switch", "input: 'x' input: 'p'", F)                                                          \
  NODE("seen0", "TestCount", "input: 'sw:0'", SLOT(1)) NODE("seen1", "TestCount", "input: 'sw:1'", SLOT(2))  \
  NODE("neg", "Neg", "input: 'seen0'", F) NODE("twice", "AddV2", "input: 'seen1' input: 'seen1'", F)        \
  NODE("merge", "Merge", "input: 'neg' input: 'twice'", F INT("N", 2))                                      \
  NODE("index", "Cast", "input: 'merge:1'", TYPE("SrcT", "DT_INT32") TYPE("DstT", "DT_FLOAT"))              \
  NODE("more", "Neg", "input: 'twice'", F) NODE("after", "TestCount", "input: 'y' input: '^twice'", SLOT(3)) \
  NODE("effect", "TestEffect", "input: '^twice'", INT("slot", 4))                                           \
  NODE("of_dead", "Merge", "input: 'more' input: 'twice'", F INT("N", 2))                                   \
  NODE("of_live", "Merge", "input: 'y' input: 'x'", F INT("N", 2))                                          \
  NODE("which", "Cast", "input: 'of_live:1'", TYPE("SrcT", "DT_INT32") TYPE("DstT", "DT_FLOAT"))            \
  NODE("mixed", "AddV2", "input: 'twice' input: 'x'", F)

static void branches__run_on_one_side(void) /* S-EXE-05, S-EXE-07, S-EXE-12 */
{
  FOR_LEVELS(level)
  {
    ts t;
    vk_open(&t, level, BRANCHES);
    ts_watch_reset();
    for (int i = 0; i < 6; i++) {
      tn_tensor *out[2];
      float x = i % 2 ? 3 : -3;
      CHECK_OK(ts_run(&t, FEEDS({ "x", x }), NAMES("merge", "index"), out, NULL), &t.err);
      CHECK_DOUBLE(ts_float(out[0]), i % 2 ? 6 : 3, 0);
      CHECK_DOUBLE(ts_float(out[1]), i % 2, 0);
      tn_tensor_unref(out[0]);
      tn_tensor_unref(out[1]);
      CHECK_INT(ts_counted(1), i / 2 + 1);
      CHECK_INT(ts_counted(2), (i + 1) / 2);
    }
    ts_fini(&t);
  }
}

static void branches__not_taken_are_dead(void) /* S-EXE-06, S-EXE-07, S-EXE-09, S-EXE-10 */
{
  static const char *const dead[] = { "twice", "more", "after", "mixed", "of_dead", "sw:1", "seen1" };
  FOR_LEVELS(level)
  {
    ts t;
    vk_open(&t, level, BRANCHES);
    for (size_t i = 0; i < sizeof dead / sizeof *dead; i++) {
      tn_tensor *out[2];
      ts_watch_reset();
      CHECK_STATUS(ts_run(&t, FEEDS({ "x", -3 }, { "y", 1 }), NAMES("neg", dead[i]), out, NULL), TN_INVALID_ARGUMENT,
                   &t.err);
      CHECK_CONTAINS(tn_error_message(&t.err), dead[i]);
      CHECK_NULL(out[0]); /* not the live side either */
      CHECK_NULL(out[1]);
      CHECK_INT(ts_run(&t, FEEDS({ "x", -3 }, { "y", 1 }), NULL, NULL, NAMES("effect", "after", "merge")), TN_OK);
      CHECK_INT(ts_counted(2) + ts_counted(3) + ts_counted(4), 0);
      CHECK_INT(ts_run(&t, FEEDS({ "x", 3 }, { "y", 1 }), NULL, NULL, NAMES("effect", "after")), TN_OK);
      CHECK_INT(ts_counted(3) + ts_counted(4), 2);
      CHECK_STATUS(ts_run(&t, FEEDS({ "x", 3 }, { "y", 1 }), NAMES("after", dead[i]), out, NULL), TN_OK, &t.err);
      tn_tensor_unref(out[0]);
      tn_tensor_unref(out[1]);
    }
    ts_fini(&t);
  }
}

/* "head" and "tail" begin segments of their own, because their shapes are known only after they
 * ran. They are on the side x > 0; one value is read twice, another one has no reader and is
 * released. */
#define SEGMENTS                                                                                                     \
  BRANCHES INTS("one", "", "int_val: 1") NODE("head", "TestHead", "input: 'twice' input: 'one'", F)                  \
  NODE("read0", "TestCount", "input: 'head'", SLOT(10)) NODE("read1", "TestCount", "input: 'head'", SLOT(11))        \
  NODE("sum", "AddV2", "input: 'read0' input: 'read1'", F) NODE("tail", "TestHead", "input: 'sum' input: 'one'", F)  \
  NODE("last", "TestCount", "input: 'tail'", SLOT(12)) NODE("unread", "TestHead", "input: 'seen1' input: 'one'", F)  \
  NODE("either", "Merge", "input: 'neg' input: 'last'", F N2) NODE("end", "TestCount", "input: 'either'", SLOT(13))
#define N2 INT("N", 2)

/* A value is computed once for all its readers, and each reader receives it once; a dead value is
 * dead for all readers. */
static void branches__reach_into_later_segments(void) /* S-EXE-19, S-EXE-06, S-EXE-22 */
{
  FOR_LEVELS(level)
  {
    ts t;
    tn_tensor *out;
    uint64_t bytes = 0;
    vk_open(&t, level, SEGMENTS);
    for (int i = 0; i < 40; i++) {
      int taken = i % 2;
      ts_watch_reset();
      CHECK_OK(ts_run(&t, FEEDS({ "x", taken ? 3 : -3 }), NAMES("end"), &out, NAMES("unread")), &t.err);
      CHECK_DOUBLE(ts_float(out), taken ? 12 : 3, 0);
      tn_tensor_unref(out);
      CHECK_INT(ts_counted(2), taken); /* the producer, its two readers, and theirs */
      CHECK_INT(ts_counted(10), taken);
      CHECK_INT(ts_counted(11), taken);
      CHECK_INT(ts_counted(12), taken);
      CHECK_INT(ts_counted(13), 1);
      if (i == 20) bytes = tn_test_live_bytes();
      if (i > 20 && !taken) CHECK_INT(tn_test_live_bytes(), bytes);
    }
    CHECK_STATUS(ts_run(&t, FEEDS({ "x", -3 }), NAMES("tail"), &out, NULL), TN_INVALID_ARGUMENT, &t.err);
    CHECK_STR(tn_error_node(&t.err), "tail");
    CHECK_OK(ts_run(&t, FEEDS({ "x", -3 }), NULL, NULL, NAMES("tail", "unread")), &t.err);
    CHECK_OK(ts_run(&t, FEEDS({ "x", -3 }, { "head", 4 }), NAMES("tail"), &out, NULL), &t.err);
    CHECK_DOUBLE(ts_float(out), 8, 0);
    tn_tensor_unref(out);
    ts_fini(&t);
  }
}

static void branches__merge_the_first_of_several(void) /* S-EXE-08 */
{
  FOR_LEVELS(level)
  {
    ts t;
    vk_open(&t, level, BRANCHES);
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 1 }, { "y", 2 }), "of_live"), 2, 0);
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 1 }, { "y", 2 }), "which"), 0, 0);
    ts_fini(&t);
  }
}

static void branches__that_are_fed_live(void) /* S-EXE-11 */
{
  FOR_LEVELS(level)
  {
    ts t;
    vk_open(&t, level, BRANCHES);
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "twice", 9 }), "more"), -9, 0);
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", -3 }, { "twice", 9 }), "mixed"), 6, 0);
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "sw:1", 4 }), "more"), -8, 0);
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", -3 }, { "sw:1", 4 }), "of_dead"), -8, 0);
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", -3 }, { "seen1", 4 }), "index"), 0, 0); /* both live */
    ts_fini(&t);
  }
}

/* ---- loops ---- */

#define ONE_OF(name, value, inputs) NODE(name, "Const", inputs, FILLED("DT_FLOAT", "float_val: " value))
/* Counts from `from` up to `limit`; "add" has the additional inputs `more`. */
#define TURNS(p, from, limit, value, more) TURNS_OF(p, from, limit, value, more, "")
#define TURNS_OF(p, from, limit, value, more, enter)                                                                 \
  NODE(p "enter", "Enter", "input: '" from "'", F TEXT_ATTR("frame_name", p "f") enter)                              \
  NODE(p "merge", "Merge", "input: '" p "enter' input: '" p "next'", F INT("N", 2))                                  \
  ONE_OF(p "k", limit, "input: '^" p "merge'") NODE(p "less", "Less", "input: '" p "merge' input: '" p "k'", F)      \
  NODE(p "cond", "LoopCond", "input: '" p "less'", "")                                                               \
  NODE(p "switch", "Switch", "input: '" p "merge' input: '" p "cond'", F)                                            \
  NODE(p "body", "Identity", "input: '" p "switch:1'", F) ONE_OF(p "one", "1", "input: '^" p "body'")                \
  NODE(p "add", "AddV2", "input: '" value "' input: '" p "one' " more, F)                                            \
  NODE(p "next", "NextIteration", "input: '" p "add'", F) NODE(p "exit", "Exit", "input: '" p "switch'", F)
#define NESTED                                                                                    \
  ANY("x", "DT_FLOAT") TURNS("o_", "x", "3", "o_body", "input: '^i_exit'")                        \
  ONE_OF("o_zero", "0", "input: '^o_body'") TURNS("i_", "o_zero", "4", "i_seen", "")              \
  NODE("i_seen", "TestCount", "input: 'i_body'", SLOT(5))

static void branches__loops_nest(void) /* S-EXE-13, S-EXE-14 */
{
  FOR_LEVELS(level)
  {
    ts t;
    vk_open(&t, level, NESTED);
    for (int x = 0; x < 5; x++) {
      ts_watch_reset();
      CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", (float)x }), "o_exit"), x < 3 ? 3 : x, 0);
      CHECK_INT(ts_counted(5), x < 3 ? (3 - x) * 4 : 0);
    }
    ts_fini(&t);
  }
}

static void branches__inside_of_loops_are_not_fetched(void) /* S-EXE-17 */
{
  static const char *const inner[] = { "t_body", "t_merge", "t_add", "t_switch:1", "t_next", "t_enter" };
  FOR_LEVELS(level)
  {
    ts t;
    vk_open(&t, level, LOOP_LIBRARY ANY("x", "DT_FLOAT") COUNTS);
    for (size_t i = 0; i < sizeof inner / sizeof *inner; i++) {
      tn_tensor *out[2];
      CHECK_STATUS(ts_run(&t, FEEDS({ "x", 1 }), NAMES("ten", inner[i]), out, NULL), TN_INVALID_ARGUMENT, &t.err);
      CHECK_CONTAINS(tn_error_message(&t.err), "t_");
      CHECK_NULL(out[0]);
    }
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 1 }), "ten"), 10, 0);
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 50 }), "ten"), 50, 0);
    ts_fini(&t);
  }
}

/* Counts x up to 20, and enqueues each value and then half of the next one into the queue "seen".
 * `n` iterations may overlap. */
#define IN_TURN(n)                                                                                                   \
  ANY("x", "DT_FLOAT") NODE("seen", "FIFOQueueV2", "", QT SCALARS) NODE("get", "QueueDequeueV2", "input: 'seen'", QT) \
  TURNS_OF("l_", "x", "20", "l_body", "input: '^second'", INT("parallel_iterations", n))                             \
  NODE("inside", "Enter", "input: 'seen'", TYPE("T", "DT_RESOURCE") TEXT_ATTR("frame_name", "l_f")                   \
       BOOL("is_constant", "true") INT("parallel_iterations", n))                                                    \
  ONE_OF("half", "0.5", "input: '^l_body'") NODE("later", "AddV2", "input: 'l_body' input: 'half'", F)                \
  NODE("first", "QueueEnqueueV2", "input: 'inside' input: 'l_body'", PUTS)                                           \
  NODE("second", "QueueEnqueueV2", "input: 'inside' input: 'later' input: '^first'", PUTS)

/* On the direct runtime with any overlap, elsewhere without overlap. */
static void branches__iterations_are_in_order(void) /* S-EXE-15, S-EXE-13 */
{
  static const char *const texts[] = { IN_TURN(1), IN_TURN(2), IN_TURN(10), IN_TURN(1000) };
  for (int i = 0; i < (strcmp(ts_runtime_name(), "direct") == 0 ? 4 : 1); i++) FOR_LEVELS(level) {
    ts t;
    vk_open(&t, level, texts[i]);
    for (int round = 0; round < 3; round++) {
      CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 0 }), "l_exit"), 20, 0);
      for (int k = 0; k < 40; k++) CHECK_DOUBLE(ts_run1(&t, NULL, "get"), k / 2.0, 0);
    }
    vk_fini(&t);
  }
}

/* Inputs from outside without an Enter, and from another loop. */
static void branches__do_not_mix_frames(void) /* S-EXE-18 */
{
  static const char *const texts[] = {
    ANY("x", "DT_FLOAT") TURNS("a_", "x", "3", "wrong", "") NODE("wrong", "AddV2", "input: 'a_body' input: 'x'", F),
    ANY("x", "DT_FLOAT") TURNS("a_", "x", "3", "wrong", "") TURNS("b_", "x", "3", "b_body", "")
        NODE("wrong", "AddV2", "input: 'a_body' input: 'b_body'", F),
  };
  for (int i = 0; i < 4; i++) {
    ts t;
    tn_tensor *out;
    vk_open(&t, i / 2, texts[i % 2]);
    CHECK_STATUS(ts_run(&t, FEEDS({ "x", 0 }), NAMES("a_exit"), &out, NULL), TN_INVALID_ARGUMENT, &t.err);
    CHECK_CONTAINS(tn_error_message(&t.err), "wrong");
    CHECK_NULL(out);
    ts_fini(&t);
  }
}

TAP_MAIN(
  TAP_TEST(branches__run_on_one_side),
  TAP_TEST(branches__not_taken_are_dead),
  TAP_TEST(branches__merge_the_first_of_several),
  TAP_TEST(branches__that_are_fed_live),
  TAP_TEST(branches__reach_into_later_segments),
  TAP_TEST(branches__loops_nest),
  TAP_TEST(branches__iterations_are_in_order),
  TAP_TEST(branches__inside_of_loops_are_not_fetched),
  TAP_TEST(branches__do_not_mix_frames))
