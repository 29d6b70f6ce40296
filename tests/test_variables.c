/* SPDX-License-Identifier: Apache-2.0 */
/* Variables, behind handles and by reference: their life, what a reader holds, who sees them, and what bad input is told. */
#include "tests/support/op_kit.h"

#include <ops/support/variable.h>
#include <pthread.h>

#define TEXT_ATTR(key, value) "attr { key: '" key "' value { s: '" value "' } }"
#define SHAPE(dims) "attr { key: 'shape' value { shape { " dims " } } }"
#define BOOL(key, value) "attr { key: '" key "' value { b: " value " } }"
#define DT TYPE("dtype", "DT_FLOAT")
#define TI TYPE("Tindices", "DT_INT32")
#define VALUES(name, n, values) TENSOR(name, "DT_FLOAT", D(n), values)
#define HANDLE(name, shared) NODE(name, "VarHandleOp", "", DT SHAPE(D(2)) TEXT_ATTR("shared_name", shared))
#define VARIABLE(name, shared) NODE(name, "VariableV2", "", DT SHAPE(D(2)) TEXT_ATTR("shared_name", shared))

/* ---- a session for a text; nothing is left of its default container at the end ---- */

static void open_text(ts *t, int level, const char *text)
{
  tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  ts_init(t, level);
  REQUIRE_OK(tn_graph_import(t->graph, text, strlen(text), &options, &t->err), &t->err);
  ts_start(t);
}

static void fini(ts *t)
{
  CHECK_INT(tn_reset(t->options, NULL, 0, NULL), TN_OK);
  ts_fini(t);
}

static tn_tensor *fetch(ts *t, const char *name)
{
  tn_tensor *out = NULL;
  CHECK_OK(ts_run(t, NULL, NAMES(name), &out, NULL), &t->err);
  return out;
}

/* Fetches floats and compares them. */
static void check_floats(ts *t, const char *name, int64_t n, const float *wanted)
{
  tn_tensor *out = fetch(t, name);
  CHECK_INT(tn_tensor_elements(out), n);
  for (int64_t i = 0; out != NULL && i < n && i < tn_tensor_elements(out); i++)
    CHECK_DOUBLE(((const float *)tn_tensor_data(out))[i], wanted[i], 1e-6);
  tn_tensor_unref(out);
}
#define CHECK_FLOATS(t, name, ...) \
  check_floats(t, name, (int64_t)(sizeof((float[]){ __VA_ARGS__ }) / sizeof(float)), (float[]){ __VA_ARGS__ })

static bool fetch_bool(ts *t, const char *name)
{
  tn_tensor *out = fetch(t, name);
  bool is = out != NULL && *(const uint8_t *)tn_tensor_data(out);
  tn_tensor_unref(out);
  return is;
}

static tn_status target(ts *t, const char *name) { return ts_run(t, NULL, NULL, NULL, NAMES(name)); }
static tn_status fails(ts *t, const char *name)
{
  tn_tensor *out = NULL;
  tn_status st = ts_run(t, NULL, NAMES(name), &out, NULL);
  tn_tensor_unref(out);
  return st;
}

/* ---- the life of a variable ---- */

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
    open_text(&t, level, LIFE);
    CHECK(!fetch_bool(&t, "is"));
    CHECK_INT(fails(&t, "read"), TN_FAILED_PRECONDITION);
    CHECK_CONTAINS(tn_error_message(&t.err), "weights");
    CHECK_INT(target(&t, "add"), TN_NOT_FOUND);
    CHECK_INT(target(&t, "end"), TN_NOT_FOUND);
    REQUIRE_OK(target(&t, "set"), &t.err);
    CHECK(fetch_bool(&t, "is"));
    CHECK_FLOATS(&t, "read", 1, 2);
    CHECK_OK(target(&t, "add"), &t.err);
    CHECK_OK(target(&t, "add"), &t.err);
    CHECK_FLOATS(&t, "read", 3, 6);
    CHECK_OK(target(&t, "sub"), &t.err);
    CHECK_FLOATS(&t, "read", 2, 4);
    tn_tensor *shape = fetch(&t, "shape");
    CHECK_INT(tn_tensor_elements(shape), 1);
    CHECK_INT(*(const int64_t *)tn_tensor_data(shape), 2);
    tn_tensor_unref(shape);
    CHECK_OK(target(&t, "end"), &t.err);
    CHECK_INT(fails(&t, "read"), TN_FAILED_PRECONDITION);
    CHECK_INT(fails(&t, "shape"), TN_NOT_FOUND);
    CHECK_INT(target(&t, "end"), TN_NOT_FOUND);
    CHECK_OK(target(&t, "end_any"), &t.err);
    CHECK_OK(target(&t, "set"), &t.err); /* again */
    CHECK_FLOATS(&t, "read", 1, 2);
    fini(&t);
  }
}

/* ---- readers ---- */

static void variables__what_was_read_does_not_change(void) /* S-RUN-27 */
{
  FOR_LEVELS(level)
  {
    ts t;
    open_text(&t, level, LIFE);
    REQUIRE_OK(target(&t, "set"), &t.err);
    tn_tensor *kept = fetch(&t, "read");
    REQUIRE_OK(target(&t, "add"), &t.err);
    CHECK_DOUBLE(ts_float(kept), 1, 0);
    *(float *)tn_tensor_data(kept) = 100; /* it is the caller's alone */
    CHECK_FLOATS(&t, "read", 2, 4);
    tn_tensor_unref(kept);
    fini(&t);
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
    open_text(&t, level, IN_ONE_STEP);
    REQUIRE_OK(target(&t, "set"), &t.err);
    for (int i = 0; i < 3; i++) CHECK_FLOATS(&t, "both", 1, 2);
    CHECK_FLOATS(&t, "read", 4, 8);
    fini(&t);
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

static void variables__a_change_takes_no_memory_when_nobody_reads(void)
{
  ts t;
  open_text(&t, 1, LARGE);
  REQUIRE_OK(target(&t, "set"), &t.err);
  REQUIRE_OK(target(&t, "add"), &t.err); /* the constant was shared until now */
  tn_tensor_unref(fetch(&t, "read"));
  REQUIRE_OK(target(&t, "v"), &t.err);
  uint64_t before = tn_test_live_bytes();
  tn_tensor *held = fetch(&t, "read");
  CHECK(tn_test_live_bytes() - before >= BIG * sizeof(float)); /* the fetched one is a copy */
  tn_tensor_unref(held);
  REQUIRE_OK(target(&t, "add"), &t.err);
  CHECK_INT(tn_test_live_bytes(), before);
  uint64_t made = tn_test_allocations();
  for (int i = 0; i < 10; i++) REQUIRE_OK(target(&t, "add"), &t.err);
  uint64_t adds = tn_test_allocations() - made;
  made = tn_test_allocations();
  for (int i = 0; i < 10; i++) REQUIRE_OK(target(&t, "v"), &t.err);
  CHECK(adds <= tn_test_allocations() - made); /* no more than a step that does nothing */
  fini(&t);
}

static void variables__a_feed_that_is_kept_is_copied(void)
{
  FOR_LEVELS(level)
  {
    ts t;
    open_text(&t, level, LARGE);
    float *mine = tn_alloc(BIG * sizeof *mine);
    for (int64_t i = 0; i < BIG; i++) mine[i] = 5;
    int64_t n = BIG;
    tn_tensor *feed = NULL;
    const char *x = "x", *keep = "keep";
    REQUIRE_OK(tn_tensor_wrap(TN_FLOAT, &n, 1, mine, BIG * sizeof *mine, NULL, NULL, &feed, NULL), NULL);
    for (int i = 0; i < 2; i++) { /* into new memory, and over what is there */
      mine[0] = (float)(5 + i);
      CHECK_OK(tn_session_run(t.session, NULL, &x, &feed, 1, NULL, NULL, 0, &keep, 1, NULL, &t.err), &t.err);
      mine[0] = 0;
      tn_tensor *got = fetch(&t, "read");
      CHECK_DOUBLE(ts_float(got), 5 + i, 0);
      tn_tensor_unref(got);
    }
    tn_tensor_unref(feed);
    tn_free(mine);
    fini(&t);
  }
}

/* ---- who sees a variable ---- */

#define NAMED(name, attrs)                                                                   \
  NODE(name, "VarHandleOp", "", DT SHAPE(D(2)) attrs) NODE("is_" name, "VarIsInitializedOp", "input: '" name "'", "") \
  NODE("set_" name, "AssignVariableOp", "input: '" name "' input: 'ab'", DT)
#define AB VALUES("ab", 2, "float_val: 1 float_val: 2")
#define ANONYMOUS TEXT_ATTR("shared_name", "cd2c89b7-88b7-44c8-ad83-06c2a9158347")

static void variables__are_found_by_container_and_name(void) /* S-RST-17 */
{
  ts t;
  open_text(&t, 1,
            AB NAMED("a", TEXT_ATTR("shared_name", "one")) NAMED("b", TEXT_ATTR("shared_name", "one"))
                NAMED("c", TEXT_ATTR("shared_name", "one") TEXT_ATTR("container", "box")) NAMED("d", "") NAMED("e", "")
                    NAMED("f", TEXT_ATTR("container", "box")));
  REQUIRE_OK(target(&t, "set_a"), &t.err);
  CHECK(fetch_bool(&t, "is_b"));
  CHECK(!fetch_bool(&t, "is_c"));
  CHECK(!fetch_bool(&t, "is_d"));
  REQUIRE_OK(target(&t, "set_d"), &t.err);
  CHECK(fetch_bool(&t, "is_e")); /* without a name: one of each container */
  CHECK(!fetch_bool(&t, "is_f"));
  const char *box = "box";
  CHECK_INT(tn_reset(t.options, &box, 1, NULL), TN_OK);
  fini(&t);
}

static void variables__are_shared_by_sessions_until_a_reset(void) /* S-RST-10, S-RST-18, S-LIFE-12 */
{
  ts first, second;
  open_text(&first, 1, LIFE);
  open_text(&second, 1, LIFE);
  REQUIRE_OK(target(&first, "set"), &first.err);
  CHECK_FLOATS(&second, "read", 1, 2);
  ts_fini(&first);
  CHECK_FLOATS(&second, "read", 1, 2);
  fini(&second);
  open_text(&second, 1, LIFE);
  CHECK_INT(fails(&second, "read"), TN_FAILED_PRECONDITION);
  fini(&second);
}

static void variables__without_a_place_live_in_the_step(void)
{
  ts t;
  open_text(&t, 1,
            AB NAMED("a", ANONYMOUS) NODE("read", "ReadVariableOp", "input: 'a' input: '^set_a'", DT)
                NODE("gone", "ReadVariableOp", "input: 'a'", DT));
  CHECK_FLOATS(&t, "read", 1, 2);
  CHECK_FLOATS(&t, "read", 1, 2);
  CHECK_INT(fails(&t, "gone"), TN_FAILED_PRECONDITION);
  CHECK_CONTAINS(tn_error_message(&t.err), "'a'");
  REQUIRE_OK(target(&t, "set_a"), &t.err);
  uint64_t before = tn_test_live_bytes();
  for (int i = 0; i < 50; i++) REQUIRE_OK(target(&t, "set_a"), &t.err);
  CHECK_INT(tn_test_live_bytes(), before);
  fini(&t);
}

#define INT_HANDLE NODE("i", "VarHandleOp", "", TYPE("dtype", "DT_INT32") SHAPE(D(2)) TEXT_ATTR("shared_name", "weights"))
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
  open_text(&t, 1, OTHER);
  REQUIRE_OK(target(&t, "set"), &t.err);
  static const char *const targets[] = { "set_int", "add_int", "read_int", "gather_int", "scatter_int" };
  for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
    CHECK_INT(target(&t, targets[i]), TN_INVALID_ARGUMENT);
    CHECK_CONTAINS(tn_error_message(&t.err), "variable 'weights' is float32");
    CHECK_CONTAINS(tn_error_message(&t.err), targets[i]);
  }
  CHECK_FLOATS(&t, "read", 1, 2);
  CHECK_OK(target(&t, "end"), &t.err);
  CHECK_OK(target(&t, "set_int"), &t.err); /* what was destroyed may be anything next time */
  CHECK_INT(fails(&t, "read"), TN_INVALID_ARGUMENT);
  fini(&t);
}

/* ---- shapes that do not fit ---- */

#define SHAPES                                                                                                       \
  LIFE VALUES("three", 3, "float_val: 7")                                                                            \
  NODE("any", "AssignVariableOp", "input: 'v' input: 'x'", DT) ANY("x", "DT_FLOAT")                                  \
  NODE("same", "AssignVariableOp", "input: 'v' input: 'x'", DT BOOL("validate_shape", "true"))                       \
  NODE("more", "AssignAddVariableOp", "input: 'v' input: 'x'", DT)

static tn_status feed_three(ts *t, const char *node)
{
  tn_tensor *three = ts_vector(3, (const float[]){ 7, 8, 9 });
  const char *x = "x";
  tn_status st = tn_session_run(t->session, NULL, &x, &three, 1, NULL, NULL, 0, &node, 1, NULL, &t->err);
  tn_tensor_unref(three);
  return st;
}

static void variables__change_their_shape_where_that_is_allowed(void)
{
  FOR_LEVELS(level)
  {
    ts t;
    open_text(&t, level, SHAPES);
    REQUIRE_OK(target(&t, "set"), &t.err);
    CHECK_INT(feed_three(&t, "more"), TN_INVALID_ARGUMENT);
    CHECK_INT(feed_three(&t, "same"), TN_INVALID_ARGUMENT);
    CHECK_CONTAINS(tn_error_message(&t.err), "'weights' has shape [2], the value has shape [3]");
    CHECK_FLOATS(&t, "read", 1, 2);
    CHECK_OK(feed_three(&t, "any"), &t.err);
    CHECK_FLOATS(&t, "read", 7, 8, 9);
    CHECK_OK(feed_three(&t, "more"), &t.err);
    CHECK_FLOATS(&t, "read", 14, 16, 18);
    fini(&t);
  }
}

/* ---- parts of variables ---- */

#define ROWS                                                                                                          \
  NODE("v", "VarHandleOp", "", DT SHAPE(D(2) D(2)) TEXT_ATTR("shared_name", "rows"))                                  \
  TENSOR("1234", "DT_FLOAT", D(2) D(2), "float_val: 1 float_val: 2 float_val: 3 float_val: 4") ANY("x", "DT_FLOAT")   \
  NODE("set", "AssignVariableOp", "input: 'v' input: '1234'", DT) NODE("read", "ReadVariableOp", "input: 'v'", DT)    \
  INTS("at", D(3), "int_val: 1 int_val: 9 int_val: 0") INTS("1", "", "int_val: 1") INTS("none", D(0), "")             \
  INTS("at2", D(2) D(2), "int_val: 1 int_val: 5 int_val: 0 int_val: 1")                                               \
  TENSOR("ten", "DT_FLOAT", "", "float_val: 10") VALUES("tens", 2, "float_val: 10 float_val: 20")                     \
  NODE("bad", "ResourceScatterAdd", "input: 'v' input: 'at' input: 'ten'", DT TI)                                     \
  NODE("row", "ResourceScatterUpdate", "input: 'v' input: '1' input: 'tens'", DT TI)                                  \
  NODE("odd", "ResourceScatterSub", "input: 'v' input: 'at' input: 'tens'", DT TI)                                    \
  NODE("bad_nd", "ResourceScatterNdAdd", "input: 'v' input: 'at2' input: 'tens'", F TI)                               \
  NODE("let_nd", "ResourceScatterNdAdd", "input: 'v' input: 'at2' input: 'tens'", F TI                                \
       TEXT_ATTR("bad_indices_policy", "IGNORE"))                                                                     \
  NODE("nothing", "ResourceScatterAdd", "input: 'v' input: 'none' input: 'ten'", DT TI)                               \
  NODE("gather", "ResourceGather", "input: 'v' input: '1'", DT TI)                                                    \
  NODE("far", "ResourceGather", "input: 'v' input: 'at'", DT TI)                                                      \
  NODE("nd", "ResourceGatherNd", "input: 'v' input: 'at2'", DT TI)

static void variables__rows_change_at_indices(void)
{
  FOR_LEVELS(level)
  {
    ts t;
    open_text(&t, level, ROWS);
    CHECK_INT(target(&t, "bad"), TN_NOT_FOUND);
    REQUIRE_OK(target(&t, "set"), &t.err);
    CHECK_INT(target(&t, "bad"), TN_INVALID_ARGUMENT);
    CHECK_CONTAINS(tn_error_message(&t.err), "index 1 is 9 in dimension 0, wanted one in [0, 2)");
    CHECK_FLOATS(&t, "read", 1, 2, 13, 14); /* what came before the bad index stays, as in TensorFlow */
    CHECK_OK(target(&t, "row"), &t.err);
    CHECK_FLOATS(&t, "read", 1, 2, 10, 20);
    CHECK_INT(target(&t, "odd"), TN_INVALID_ARGUMENT);
    CHECK_CONTAINS(tn_error_message(&t.err), "input 2 has shape [2], wanted [3,2] or a scalar");
    CHECK_INT(target(&t, "bad_nd"), TN_INVALID_ARGUMENT);
    CHECK_FLOATS(&t, "read", 1, 22, 10, 20); /* and of these, all others */
    CHECK_OK(target(&t, "let_nd"), &t.err);
    CHECK_OK(target(&t, "nothing"), &t.err);
    CHECK_FLOATS(&t, "gather", 10, 20);
    CHECK_INT(fails(&t, "far"), TN_INVALID_ARGUMENT);
    CHECK_INT(fails(&t, "nd"), TN_INVALID_ARGUMENT);
    CHECK_FLOATS(&t, "read", 1, 42, 10, 20);
    fini(&t);
  }
}

#define INTEGERS                                                                                                    \
  NODE("v", "VarHandleOp", "", TYPE("dtype", "DT_INT32") SHAPE(D(2)) TEXT_ATTR("shared_name", "integers"))          \
  INTS("start", D(2), "int_val: -7 int_val: -2147483648") INTS("at", D(2), "int_val: 0 int_val: 1")                 \
  INTS("by", D(2), "int_val: 2 int_val: -1") INTS("zeros", D(2), "int_val: 1 int_val: 0")                           \
  NODE("set", "AssignVariableOp", "input: 'v' input: 'start'", TYPE("dtype", "DT_INT32"))                           \
  NODE("div", "ResourceScatterDiv", "input: 'v' input: 'at' input: 'by'", TYPE("dtype", "DT_INT32") TI)             \
  NODE("zero", "ResourceScatterDiv", "input: 'v' input: 'at' input: 'zeros'", TYPE("dtype", "DT_INT32") TI)         \
  NODE("read", "ReadVariableOp", "input: 'v'", TYPE("dtype", "DT_INT32"))

static void variables__integers_are_divided_without_a_trap(void)
{
  ts t;
  open_text(&t, 1, INTEGERS);
  REQUIRE_OK(target(&t, "set"), &t.err);
  CHECK_OK(target(&t, "div"), &t.err);
  CHECK_INT(target(&t, "zero"), TN_INVALID_ARGUMENT);
  tn_tensor *out = fetch(&t, "read");
  const int32_t *x = tn_tensor_data(out);
  CHECK_INT(x[0], -3);
  CHECK_INT(x[1], INT32_MIN); /* wraps */
  tn_tensor_unref(out);
  fini(&t);
}

#define SLICES                                                                                                      \
  ROWS INTS("0", D(1), "int_val: 0") INTS("2", D(1), "int_val: 2") INTS("step", D(1), "int_val: 1")                 \
  VALUES("three", 3, "float_val: 7")                                                                                \
  NODE("slice", "ResourceStridedSliceAssign", "input: 'v' input: '0' input: '2' input: 'step' input: 'ten'",        \
       F TYPE("Index", "DT_INT32"))                                                                                 \
  NODE("wide", "ResourceStridedSliceAssign", "input: 'v' input: '0' input: '2' input: 'step' input: 'three'",       \
       F TYPE("Index", "DT_INT32"))                                                                                 \
  NODE("long", "ResourceStridedSliceAssign", "input: 'v' input: 'at' input: '2' input: 'step' input: 'ten'",        \
       F TYPE("Index", "DT_INT32"))

static void variables__slices_get_values(void)
{
  ts t;
  open_text(&t, 1, SLICES);
  REQUIRE_OK(target(&t, "set"), &t.err);
  CHECK_INT(target(&t, "wide"), TN_INVALID_ARGUMENT);
  CHECK_CONTAINS(tn_error_message(&t.err), "input 4 has shape [3], the slice of variable 'rows' has shape [2,2]");
  CHECK_INT(target(&t, "long"), TN_INVALID_ARGUMENT);
  CHECK_OK(target(&t, "slice"), &t.err);
  CHECK_FLOATS(&t, "read", 10, 10, 10, 10);
  fini(&t);
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
  ts t, other;
  pthread_t threads[THREADS];
  open_text(&t, 1, LIFE);
  open_text(&other, 1, LIFE);
  REQUIRE_OK(target(&t, "set"), &t.err);
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, adder, i % 2 ? &t : &other);
  for (int i = 0; i < 20; i++) tn_tensor_unref(fetch(&t, "read"));
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  CHECK_FLOATS(&t, "read", 1 + THREADS * TURNS, 2 * (1 + THREADS * TURNS));
  ts_fini(&other);
  fini(&t);
}

/* ---- several at once ---- */

typedef struct pair {
  tn_resource *resources[3];
  uint32_t order[3];
} pair;

static tn_resource *new_variable(const char *name, float value)
{
  void *object;
  tn_resource *r = NULL;
  tn__variable_wish wish = { name, TN_FLOAT, 0, NULL, true };
  REQUIRE_OK(tn__variable_make(&wish, &object, NULL), NULL);
  if (value >= 0) tn__variable_put(object, ts_scalar(value));
  REQUIRE_OK(tn_resource_create(&tn__variable_class, name, object, &r, NULL), NULL);
  return r;
}

/* Inputs 0, 1, 2 are handles of these resources. */
static tn_status add_to_all(tn_resource *const *resources, tn_error *err)
{
  static const uint32_t inputs[] = { 0, 1, 2 };
  tn_handle *handles[3];
  tn_view views[3];
  tn_view *list[3];
  tn__variable *vars[3];
  tn_tensor *tensors[3];
  for (int k = 0; k < 3; k++) {
    handles[k] = tn_resource_handle(resources[k]);
    views[k] = (tn_view){ .data = &handles[k], .count = 1, .dtype = TN_RESOURCE };
    list[k] = &views[k];
  }
  tn_kernel_ctx ctx = { .struct_size = sizeof ctx, .inputs = list, .n_inputs = 3, .err = err };
  tn_status st = tn__variables_open(&ctx, inputs, 3, vars, tensors);
  if (st != TN_OK) return st;
  for (int k = 0; k < 3; k++) *(float *)tn_tensor_data(tensors[k]) += 1;
  tn__variables_close(vars, tensors, 3);
  return TN_OK;
}

static void *all_adder(void *arg)
{
  tn_error err = TN_ERROR_INIT;
  for (int i = 0; i < TURNS; i++) CHECK_INT(add_to_all(arg, &err), TN_OK);
  tn_error_clear(&err);
  return NULL;
}

static void variables__several_are_opened_in_any_order(void)
{
  tn_resource *a = new_variable("a", 0), *b = new_variable("b", 0), *empty = new_variable("empty", -1);
  tn_resource *ab[] = { a, b, a }, *ba[] = { b, a, a }, *bad[] = { a, empty, b };
  pthread_t threads[2];
  tn_error err = TN_ERROR_INIT;
  pthread_create(&threads[0], NULL, all_adder, ab);
  pthread_create(&threads[1], NULL, all_adder, ba);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  tn_tensor *held;
  REQUIRE_OK(tn__variable_read(tn_resource_object(a), &held, &err), &err);
  CHECK_DOUBLE(ts_float(held), 4 * TURNS, 0);
  CHECK_INT(add_to_all(bad, &err), TN_FAILED_PRECONDITION);
  CHECK_CONTAINS(tn_error_message(&err), "variable 'empty'");
  CHECK_OK(add_to_all(ab, &err), &err); /* nothing was left locked; what a reader holds is copied */
  CHECK_DOUBLE(ts_float(held), 4 * TURNS, 0);
  tn_tensor_unref(held);
  REQUIRE_OK(tn__variable_read(tn_resource_object(a), &held, &err), &err);
  CHECK_DOUBLE(ts_float(held), 4 * TURNS + 2, 0);
  tn_tensor_unref(held);
  tn_error_clear(&err);
  tn_resource_unref(a);
  tn_resource_unref(b);
  tn_resource_unref(empty);
}

/* ---- by reference ---- */

#define LAYER                                                                                                         \
  VARIABLE("v", "by_ref") AB ANY("x", "DT_FLOAT") NODE("is", "IsVariableInitialized", "input: 'v'", DT)               \
  NODE("read", "Identity", "input: 'v'", F) NODE("set", "Assign", "input: 'v' input: 'ab'", F)                        \
  NODE("add", "AssignAdd", "input: 'v' input: 'ab'", F) NODE("sub", "AssignSub", "input: 'add' input: 'ab'", F)       \
  NODE("same", "Assign", "input: 'v' input: 'x'", F)                                                                  \
  NODE("any", "Assign", "input: 'v' input: 'x'", F BOOL("validate_shape", "false"))                                   \
  INTS("at", D(2), "int_val: 1 int_val: 1") NODE("rows", "ScatterAdd", "input: 'v' input: 'at' input: 'ab'", F TI)    \
  NODE("ref", "RefIdentity", "input: 'v'", F) NODE("add_ref", "AssignAdd", "input: 'ref' input: 'ab'", F)

static void variables__by_reference_have_a_shape_from_the_beginning(void) /* S-RUN-23 */
{
  FOR_LEVELS(level)
  {
    ts t;
    open_text(&t, level, LAYER);
    CHECK(!fetch_bool(&t, "is"));
    CHECK_INT(fails(&t, "read"), TN_FAILED_PRECONDITION);
    CHECK_CONTAINS(tn_error_message(&t.err), "by_ref");
    CHECK_INT(fails(&t, "add"), TN_FAILED_PRECONDITION);
    CHECK_INT(feed_three(&t, "same"), TN_INVALID_ARGUMENT);
    CHECK(!fetch_bool(&t, "is"));
    CHECK_FLOATS(&t, "set", 1, 2);
    CHECK(fetch_bool(&t, "is"));
    CHECK_FLOATS(&t, "read", 1, 2);
    CHECK_FLOATS(&t, "add", 2, 4);
    CHECK_FLOATS(&t, "sub", 2, 4);
    CHECK_FLOATS(&t, "rows", 2, 7);
    CHECK_FLOATS(&t, "add_ref", 3, 9);
    CHECK_OK(feed_three(&t, "any"), &t.err);
    CHECK_FLOATS(&t, "read", 7, 8, 9);
    CHECK_INT(fails(&t, "add"), TN_INVALID_ARGUMENT);
    fini(&t);
  }
}

#define COUNTER                                                                                                       \
  NODE("v", "VariableV2", "", TYPE("dtype", "DT_INT64") SHAPE("") TEXT_ATTR("shared_name", "counter"))                \
  TENSOR("0", "DT_INT64", "", "int64_val: 0") NODE("set", "Assign", "input: 'v' input: '0'", TYPE("T", "DT_INT64"))   \
  NODE("count", "CountUpTo", "input: 'v'", TYPE("T", "DT_INT64") INT("limit", 2))

static void variables__are_counted_up_to_a_limit(void)
{
  ts t;
  open_text(&t, 1, COUNTER);
  CHECK_INT(fails(&t, "count"), TN_FAILED_PRECONDITION);
  REQUIRE_OK(target(&t, "set"), &t.err);
  for (int64_t i = 0; i < 2; i++) {
    tn_tensor *out = fetch(&t, "count");
    CHECK_INT(*(const int64_t *)tn_tensor_data(out), i);
    tn_tensor_unref(out);
  }
  CHECK_INT(fails(&t, "count"), TN_OUT_OF_RANGE);
  CHECK_CONTAINS(tn_error_message(&t.err), "limit of 2");
  fini(&t);
}

#define TEMPORARY(name, var) NODE(name, "TemporaryVariable", "", DT SHAPE(D(2)) TEXT_ATTR("var_name", var))
#define TEMPORARIES                                                                                                   \
  AB TEMPORARY("a", "tmp") TEMPORARY("b", "tmp") NODE("set", "Assign", "input: 'a' input: 'ab'", F)                   \
  NODE("add", "AssignAdd", "input: 'set' input: 'ab'", F)                                                             \
  NODE("end", "DestroyTemporaryVariable", "input: 'add'", F TEXT_ATTR("var_name", "tmp"))                             \
  NODE("wrong", "DestroyTemporaryVariable", "input: 'set'", F TEXT_ATTR("var_name", "other"))                         \
  NODE("second", "Assign", "input: 'b' input: 'ab' input: '^set'", F)

static void variables__of_a_step_end_with_it(void) /* S-RST-22 */
{
  FOR_LEVELS(level)
  {
    ts t;
    open_text(&t, level, TEMPORARIES);
    for (int i = 0; i < 3; i++) CHECK_FLOATS(&t, "end", 2, 4);
    CHECK_INT(fails(&t, "wrong"), TN_NOT_FOUND);
    CHECK_INT(target(&t, "second"), TN_ALREADY_EXISTS);
    CHECK_CONTAINS(tn_error_message(&t.err), "'tmp'");
    fini(&t);
  }
}

#define UNKNOWN NODE("v", "VariableV2", "", DT SHAPE(D(-1) D(2))) NODE("is", "IsVariableInitialized", "input: 'v'", DT)

static void variables__need_a_shape(void)
{
  ts t;
  open_text(&t, 1, UNKNOWN);
  CHECK_INT(fails(&t, "is"), TN_INVALID_ARGUMENT);
  CHECK_CONTAINS(tn_error_message(&t.err), "[?,2]");
  fini(&t);
}

/* ---- without memory ---- */

static tn_status step(tn_session *session, const char *target_name)
{
  return tn_session_run(session, NULL, NULL, NULL, 0, NULL, NULL, 0, &target_name, 1, NULL, NULL);
}

static tn_status whole_life(void *arg)
{
  const char *text = arg;
  tn_graph *graph = NULL;
  tn_session_options *options = NULL;
  tn_session *session = NULL;
  tn_tensor *out = NULL;
  const char *read = "read";
  tn_import_options import = { .struct_size = sizeof import, .flags = TN_IMPORT_TEXT };
  tn_status st = tn_graph_create(&graph, NULL);
  if (st == TN_OK) st = tn_graph_import(graph, text, strlen(text), &import, NULL);
  if (st == TN_OK) st = tn_session_options_create(&options, NULL);
  if (st == TN_OK) st = tn_session_options_set_target(options, ts_runtime(), NULL);
  if (st == TN_OK) st = tn_session_options_set_bool(options, "isolate_session_state", 1, NULL);
  if (st == TN_OK) st = tn_session_create(options, &session, NULL);
  if (st == TN_OK) st = tn_session_set_graph(session, graph, NULL);
  if (st == TN_OK) st = step(session, "set");
  if (st == TN_OK) st = step(session, "add");
  if (st == TN_OK) st = tn_session_run(session, NULL, NULL, NULL, 0, &read, &out, 1, NULL, 0, NULL, NULL);
  if (st == TN_OK) CHECK_DOUBLE(ts_float(out), 2, 0);
  tn_tensor_unref(out);
  tn_session_destroy(session);
  tn_session_options_destroy(options);
  tn_graph_unref(graph);
  return st;
}

static void variables__survive_every_failed_allocation(void) /* S-CAN-13 */
{
  tn_test_oom_sweep(whole_life, (void *)LIFE);
  tn_test_oom_sweep(whole_life, (void *)LAYER);
}

TAP_MAIN(
    TAP_TEST(variables__live_from_the_first_assignment_to_their_end),
    TAP_TEST(variables__what_was_read_does_not_change),
    TAP_TEST(variables__a_step_reads_before_and_after_a_change),
    TAP_TEST(variables__a_change_takes_no_memory_when_nobody_reads),
    TAP_TEST(variables__a_feed_that_is_kept_is_copied),
    TAP_TEST(variables__are_found_by_container_and_name),
    TAP_TEST(variables__are_shared_by_sessions_until_a_reset),
    TAP_TEST(variables__without_a_place_live_in_the_step),
    TAP_TEST(variables__keep_their_dtype),
    TAP_TEST(variables__change_their_shape_where_that_is_allowed),
    TAP_TEST(variables__rows_change_at_indices),
    TAP_TEST(variables__integers_are_divided_without_a_trap),
    TAP_TEST(variables__slices_get_values),
    TAP_TEST(variables__no_change_of_concurrent_steps_is_lost),
    TAP_TEST(variables__several_are_opened_in_any_order),
    TAP_TEST(variables__by_reference_have_a_shape_from_the_beginning),
    TAP_TEST(variables__are_counted_up_to_a_limit),
    TAP_TEST(variables__of_a_step_end_with_it),
    TAP_TEST(variables__need_a_shape),
    TAP_TEST(variables__survive_every_failed_allocation))
