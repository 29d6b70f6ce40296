/* SPDX-License-Identifier: Apache-2.0 */
/* Variables behind handles: lifetime, values seen by readers, sharing, and errors for invalid
 * inputs. */
#include "conformance/support/variable_kit.h"

#include <pthread.h>

/* ---- lifetime ---- */

#define LIFE                                                                                                       \
  HANDLE("v", "weights") VALUES("ab", 2, "float_val: 1 float_val: 2")                                              \
  NODE("read", "ReadVariableOp", "input: 'v'", DT) NODE("is", "VarIsInitializedOp", "input: 'v'", "")              \
  NODE("set", "AssignVariableOp", "input: 'v' input: 'ab'", DT)                                                    \
  NODE("add", "AssignAddVariableOp", "input: 'v' input: 'ab'", DT)                                                 \
  NODE("sub", "AssignSubVariableOp", "input: 'v' input: 'ab'", DT)                                                 \
  NODE("shape", "VariableShape", "input: 'v'", TYPE("out_type", "DT_INT64"))                                       \
  NODE("end", "DestroyResourceOp", "input: 'v'", BOOL("ignore_lookup_error", "false"))                             \
  NODE("end_any", "DestroyResourceOp", "input: 'v'", "")

static void variables__live_from_the_first_assignment_to_their_end(void) /* S-RUN-23 */
{
  FOR_LEVELS(level)
  {
    ts t;
    vk_open(&t, level, LIFE);
    CHECK(!vk_fetch_bool(&t, "is"));
    CHECK_INT(vk_fails(&t, "read"), TN_FAILED_PRECONDITION);
    CHECK_CONTAINS(tn_error_message(&t.err), "weights");
    CHECK_INT(vk_target(&t, "add"), TN_NOT_FOUND);
    CHECK_INT(vk_target(&t, "end"), TN_NOT_FOUND);
    REQUIRE_OK(vk_target(&t, "set"), &t.err);
    CHECK(vk_fetch_bool(&t, "is"));
    CHECK_FLOATS(&t, "read", 1, 2);
    CHECK_OK(vk_target(&t, "add"), &t.err);
    CHECK_OK(vk_target(&t, "add"), &t.err);
    CHECK_FLOATS(&t, "read", 3, 6);
    CHECK_OK(vk_target(&t, "sub"), &t.err);
    CHECK_FLOATS(&t, "read", 2, 4);
    tn_tensor *shape = vk_fetch(&t, "shape");
    CHECK_INT(tn_tensor_elements(shape), 1);
    CHECK_INT(*(const int64_t *)tn_tensor_data(shape), 2);
    tn_tensor_unref(shape);
    CHECK_OK(vk_target(&t, "end"), &t.err);
    CHECK_INT(vk_fails(&t, "read"), TN_FAILED_PRECONDITION);
    CHECK_INT(vk_fails(&t, "shape"), TN_NOT_FOUND);
    CHECK_INT(vk_target(&t, "end"), TN_NOT_FOUND);
    CHECK_OK(vk_target(&t, "end_any"), &t.err);
    CHECK_OK(vk_target(&t, "set"), &t.err); /* set again after its destruction */
    CHECK_FLOATS(&t, "read", 1, 2);
    vk_fini(&t);
  }
}

/* ---- readers ---- */

static void variables__values_read_do_not_change(void) /* S-RUN-27 */
{
  FOR_LEVELS(level)
  {
    ts t;
    vk_open(&t, level, LIFE);
    REQUIRE_OK(vk_target(&t, "set"), &t.err);
    tn_tensor *kept = vk_fetch(&t, "read");
    REQUIRE_OK(vk_target(&t, "add"), &t.err);
    CHECK_DOUBLE(ts_float(kept), 1, 0);
    *(float *)tn_tensor_data(kept) = 100; /* it belongs to the caller alone */
    CHECK_FLOATS(&t, "read", 2, 4);
    tn_tensor_unref(kept);
    vk_fini(&t);
  }
}

#define IN_ONE_STEP                                                                                                  \
  LIFE NODE("before", "ReadVariableOp", "input: 'v'", DT)                                                            \
  NODE("between", "AssignAddVariableOp", "input: 'v' input: 'ab' input: '^before'", DT)                              \
  NODE("after", "ReadVariableOp", "input: 'v' input: '^between'", DT)                                                \
  NODE("both", "Sub", "input: 'after' input: 'before'", F)

static void variables__a_step_reads_before_and_after_a_change(void) /* S-EXE-02 */
{
  FOR_LEVELS(level)
  {
    ts t;
    vk_open(&t, level, IN_ONE_STEP);
    REQUIRE_OK(vk_target(&t, "set"), &t.err);
    for (int i = 0; i < 3; i++) CHECK_FLOATS(&t, "both", 1, 2);
    CHECK_FLOATS(&t, "read", 4, 8);
    vk_fini(&t);
  }
}

#define BIG 262144
#define LARGE                                                                                                         \
  NODE("v", "VarHandleOp", "", DT SHAPE(D(262144)) TEXT_ATTR("shared_name", "large"))                                 \
  NODE("ones", "Const", "", DT "attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape { " D(262144)       \
       " } float_val: 1 } } }")                                                                                       \
  NODE("x", "Placeholder", "", DT) NODE("twice", "Add", "input: 'x' input: 'x'", F)                                   \
  NODE("set", "AssignVariableOp", "input: 'v' input: 'ones'", DT)                                                     \
  NODE("keep", "AssignVariableOp", "input: 'v' input: 'x'", DT)                                                       \
  NODE("add", "AssignAddVariableOp", "input: 'v' input: 'ones'", DT)                                                  \
  NODE("read", "ReadVariableOp", "input: 'v'", DT)

/* Allocations of ten steps, after two equal ones. */
static uint64_t allocations_of(ts *t, const char *name)
{
  CHECK_OK(vk_target(t, name), &t->err);
  CHECK_OK(vk_target(t, name), &t->err);
  uint64_t made = tn_test_allocations();
  for (int i = 0; i < 10; i++) CHECK_OK(vk_target(t, name), &t->err);
  return tn_test_allocations() - made;
}

static void variables__a_change_without_readers_takes_no_memory(void)
{
  ts t;
  vk_open(&t, 1, LARGE);
  REQUIRE_OK(vk_target(&t, "set"), &t.err);
  REQUIRE_OK(vk_target(&t, "add"), &t.err); /* until now it shared the constant's memory */
  tn_tensor_unref(vk_fetch(&t, "read"));
  for (int i = 0; i < 30; i++)
    REQUIRE_OK(vk_target(&t, "add"), &t.err); /* a runtime may create workers in its first loops */
  REQUIRE_OK(vk_target(&t, "v"), &t.err);
  uint64_t before = tn_test_live_bytes();
  tn_tensor *held = vk_fetch(&t, "read");
  CHECK(tn_test_live_bytes() - before >= BIG * sizeof(float)); /* the fetched tensor is a copy */
  tn_tensor_unref(held);
  REQUIRE_OK(vk_target(&t, "add"), &t.err);
  CHECK_INT(tn_test_live_bytes(), before);
  CHECK_INT(allocations_of(&t, "add"), allocations_of(&t, "v")); /* a step without work */
  vk_fini(&t);
}

#define READ_THEN_ADD                                                                                                 \
  LARGE INTS("0", "", "int_val: 0") NODE("seen", "ReadVariableOp", "input: 'v'", DT)                                  \
  NODE("sum", "Sum", "input: 'seen' input: '0'", F TYPE("Tidx", "DT_INT32"))                                          \
  NODE("then", "AssignAddVariableOp", "input: 'v' input: 'ones' input: '^sum'", DT)

static void variables__a_step_releases_values_it_has_read(void) /* S-EXE-22 */
{
  FOR_LEVELS(level)
  {
    ts t;
    vk_open(&t, level, READ_THEN_ADD);
    REQUIRE_OK(vk_target(&t, "set"), &t.err);
    for (int i = 0; i < 30; i++)
      REQUIRE_OK(vk_target(&t, "then"), &t.err); /* a runtime may create workers in its first loops */
    REQUIRE_OK(vk_target(&t, "set"), &t.err);
    CHECK_INT(allocations_of(&t, "then"), allocations_of(&t, "sum"));
    tn_tensor *now = vk_fetch(&t, "read");
    CHECK_DOUBLE(ts_float(now), 13, 0);
    tn_tensor_unref(now);
    vk_fini(&t);
  }
}

static void variables__a_feed_that_is_kept_is_copied(void)
{
  FOR_LEVELS(level)
  {
    ts t;
    vk_open(&t, level, LARGE);
    float *mine = tn_alloc(BIG * sizeof *mine);
    for (int64_t i = 0; i < BIG; i++) mine[i] = 5;
    int64_t n = BIG;
    tn_tensor *feed = NULL;
    const char *x = "x", *keep = "keep";
    REQUIRE_OK(tn_tensor_wrap(TN_FLOAT, &n, 1, mine, BIG * sizeof *mine, NULL, NULL, &feed, NULL), NULL);
    for (int i = 0; i < 2; i++) { /* into new memory, then over existing memory */
      mine[0] = (float)(5 + i);
      CHECK_OK(tn_session_run(t.session, NULL, &x, &feed, 1, NULL, NULL, 0, &keep, 1, NULL, &t.err), &t.err);
      mine[0] = 0;
      tn_tensor *got = vk_fetch(&t, "read");
      CHECK_DOUBLE(ts_float(got), 5 + i, 0);
      tn_tensor_unref(got);
    }
    tn_tensor_unref(feed);
    tn_free(mine);
    vk_fini(&t);
  }
}

/* ---- sharing ---- */

#define NAMED(name, attrs)                                                                   \
  NODE(name, "VarHandleOp", "", DT SHAPE(D(2)) attrs) NODE("is_" name, "VarIsInitializedOp", "input: '" name "'", "") \
  NODE("set_" name, "AssignVariableOp", "input: '" name "' input: 'ab'", DT)
#define AB VALUES("ab", 2, "float_val: 1 float_val: 2")
#define ANONYMOUS TEXT_ATTR("shared_name", "cd2c89b7-88b7-44c8-ad83-06c2a9158347")

static void variables__are_found_by_container_and_name(void) /* S-RST-17 */
{
  ts t;
  vk_open(&t, 1,
            AB NAMED("a", TEXT_ATTR("shared_name", "one")) NAMED("b", TEXT_ATTR("shared_name", "one"))
                NAMED("c", TEXT_ATTR("shared_name", "one") TEXT_ATTR("container", "box")) NAMED("d", "") NAMED("e", "")
                    NAMED("f", TEXT_ATTR("container", "box")));
  REQUIRE_OK(vk_target(&t, "set_a"), &t.err);
  CHECK(vk_fetch_bool(&t, "is_b"));
  CHECK(!vk_fetch_bool(&t, "is_c"));
  CHECK(!vk_fetch_bool(&t, "is_d"));
  REQUIRE_OK(vk_target(&t, "set_d"), &t.err);
  CHECK(vk_fetch_bool(&t, "is_e")); /* without a name: one per container */
  CHECK(!vk_fetch_bool(&t, "is_f"));
  ts_clean(&t, "box");
  vk_fini(&t);
}

static void variables__are_shared_by_sessions_until_a_reset(void) /* S-RST-10, S-RST-18, S-LIFE-12 */
{
  ts first, second;
  TS_NEEDS_RESET();
  vk_open(&first, 1, LIFE);
  vk_open(&second, 1, LIFE);
  REQUIRE_OK(vk_target(&first, "set"), &first.err);
  CHECK_FLOATS(&second, "read", 1, 2);
  ts_fini(&first);
  CHECK_FLOATS(&second, "read", 1, 2);
  vk_fini(&second);
  vk_open(&second, 1, LIFE);
  CHECK_INT(vk_fails(&second, "read"), TN_FAILED_PRECONDITION);
  vk_fini(&second);
}

static void variables__without_a_place_live_in_the_step(void)
{
  ts t;
  vk_open(&t, 1,
            AB NAMED("a", ANONYMOUS) NODE("read", "ReadVariableOp", "input: 'a' input: '^set_a'", DT)
                NODE("gone", "ReadVariableOp", "input: 'a'", DT));
  CHECK_FLOATS(&t, "read", 1, 2);
  CHECK_FLOATS(&t, "read", 1, 2);
  CHECK_INT(vk_fails(&t, "gone"), TN_FAILED_PRECONDITION);
  CHECK_CONTAINS(tn_error_message(&t.err), "'a'");
  REQUIRE_OK(vk_target(&t, "set_a"), &t.err);
  uint64_t before = tn_test_live_bytes();
  for (int i = 0; i < 50; i++) REQUIRE_OK(vk_target(&t, "set_a"), &t.err);
  CHECK_INT(tn_test_live_bytes(), before);
  vk_fini(&t);
}

#define INT_HANDLE \
  NODE("i", "VarHandleOp", "", TYPE("dtype", "DT_INT32") SHAPE(D(2)) TEXT_ATTR("shared_name", "weights"))
#define OTHER                                                                                                       \
  LIFE INT_HANDLE INTS("12", D(2), "int_val: 1 int_val: 2")                                                         \
  NODE("set_int", "AssignVariableOp", "input: 'i' input: '12'", TYPE("dtype", "DT_INT32"))                          \
  NODE("add_int", "AssignAddVariableOp", "input: 'i' input: '12'", TYPE("dtype", "DT_INT32"))                       \
  NODE("read_int", "ReadVariableOp", "input: 'i'", TYPE("dtype", "DT_INT32"))                                       \
  NODE("gather_int", "ResourceGather", "input: 'i' input: '12'", TYPE("dtype", "DT_INT32") TI)                      \
  NODE("scatter_int", "ResourceScatterAdd", "input: 'i' input: '12' input: '12'", TYPE("dtype", "DT_INT32") TI)

static void variables__keep_their_dtype(void)
{
  ts t;
  vk_open(&t, 1, OTHER);
  REQUIRE_OK(vk_target(&t, "set"), &t.err);
  static const char *const targets[] = { "set_int", "add_int", "read_int", "gather_int", "scatter_int" };
  for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
    CHECK_INT(vk_target(&t, targets[i]), TN_INVALID_ARGUMENT);
    CHECK_CONTAINS(tn_error_message(&t.err), "variable 'weights' is float32");
    CHECK_CONTAINS(tn_error_message(&t.err), targets[i]);
  }
  CHECK_FLOATS(&t, "read", 1, 2);
  CHECK_OK(vk_target(&t, "end"), &t.err);
  CHECK_OK(vk_target(&t, "set_int"), &t.err); /* a destroyed variable's name can be reused with another dtype */
  CHECK_INT(vk_fails(&t, "read"), TN_INVALID_ARGUMENT);
  vk_fini(&t);
}

/* ---- mismatched shapes ---- */

#define SHAPES                                                                                                       \
  LIFE VALUES("three", 3, "float_val: 7")                                                                            \
  NODE("any", "AssignVariableOp", "input: 'v' input: 'x'", DT) ANY("x", "DT_FLOAT")                                  \
  NODE("same", "AssignVariableOp", "input: 'v' input: 'x'", DT BOOL("validate_shape", "true"))                       \
  NODE("more", "AssignAddVariableOp", "input: 'v' input: 'x'", DT)

#define FEED_THREE(t, node) vk_feed(t, "x", 3, (const float[]){ 7, 8, 9 }, node)

static void variables__change_their_shape_where_that_is_allowed(void)
{
  FOR_LEVELS(level)
  {
    ts t;
    vk_open(&t, level, SHAPES);
    REQUIRE_OK(vk_target(&t, "set"), &t.err);
    CHECK_INT(FEED_THREE(&t, "more"), TN_INVALID_ARGUMENT);
    CHECK_INT(FEED_THREE(&t, "same"), TN_INVALID_ARGUMENT);
    CHECK_CONTAINS(tn_error_message(&t.err), "'weights' has shape [2], the value has shape [3]");
    CHECK_FLOATS(&t, "read", 1, 2);
    CHECK_OK(FEED_THREE(&t, "any"), &t.err);
    CHECK_FLOATS(&t, "read", 7, 8, 9);
    CHECK_OK(FEED_THREE(&t, "more"), &t.err);
    CHECK_FLOATS(&t, "read", 14, 16, 18);
    vk_fini(&t);
  }
}

/* ---- threads ---- */

#define THREADS 4
#define TURNS 200

static void *adder(void *arg)
{
  ts *t = arg;
  const char *add = "add";
  tn_error err = TN_ERROR_INIT;
  for (int i = 0; i < TURNS; i++)
    CHECK_INT(tn_session_run(t->session, NULL, NULL, NULL, 0, NULL, NULL, 0, &add, 1, NULL, &err), TN_OK);
  tn_error_clear(&err);
  return NULL;
}

static void variables__no_change_of_concurrent_steps_is_lost(void) /* S-EXE-23, S-THR-01 */
{
  TS_NEEDS_RESET(); /* otherwise each session has its own containers here */
  ts t, other;
  pthread_t threads[THREADS];
  vk_open(&t, 1, LIFE);
  vk_open(&other, 1, LIFE);
  REQUIRE_OK(vk_target(&t, "set"), &t.err);
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, adder, i % 2 ? &t : &other);
  for (int i = 0; i < 20; i++) tn_tensor_unref(vk_fetch(&t, "read"));
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  CHECK_FLOATS(&t, "read", 1 + THREADS * TURNS, 2 * (1 + THREADS * TURNS));
  ts_fini(&other);
  vk_fini(&t);
}

/* ---- lack of memory ---- */

static void variables__survive_every_failed_allocation(void) /* S-CAN-13 */
{
  tn_test_oom_sweep(vk_whole_life, (void *)LIFE);
}

TAP_MAIN(
    TAP_TEST(variables__live_from_the_first_assignment_to_their_end),
    TAP_TEST(variables__values_read_do_not_change),
    TAP_TEST(variables__a_step_reads_before_and_after_a_change),
    TAP_TEST(variables__a_change_without_readers_takes_no_memory),
    TAP_TEST(variables__a_step_releases_values_it_has_read),
    TAP_TEST(variables__a_feed_that_is_kept_is_copied),
    TAP_TEST(variables__are_found_by_container_and_name),
    TAP_TEST(variables__are_shared_by_sessions_until_a_reset),
    TAP_TEST(variables__without_a_place_live_in_the_step),
    TAP_TEST(variables__keep_their_dtype),
    TAP_TEST(variables__change_their_shape_where_that_is_allowed),
    TAP_TEST(variables__no_change_of_concurrent_steps_is_lost),
    TAP_TEST(variables__survive_every_failed_allocation))
