/* SPDX-License-Identifier: Apache-2.0 */
/* Optimisers: what a step changes and what it does not, errors for invalid inputs, many threads,
 * little memory. Recorded cases test whether an optimiser's numbers are right. */
#include "conformance/support/op_kit.h"

#include <math.h>
#include <pthread.h>

#define TI TYPE("Tindices", "DT_INT32")
#define DT TYPE("dtype", "DT_FLOAT")
#define IN(x) " input: '" x "'"
#define SHAPE(dims) "attr { key: 'shape' value { shape { " dims " } } }"
#define NAMED(text) "attr { key: 'shared_name' value { s: '" text "' } }"
#define FLAG(key) "attr { key: '" key "' value { b: true } }"
#define SCALAR(name, value) TENSOR(name, "DT_FLOAT", "", "float_val: " value)

/* A variable behind a handle, by name, with the nodes that set and read it. */
#define HANDLE(name, dims, value)                                                                                  \
  NODE(name, "VarHandleOp", "", DT SHAPE(dims) NAMED(name))                                                        \
  TENSOR(name "_value", "DT_FLOAT", dims, "float_val: " value)                                                     \
  NODE("set_" name, "AssignVariableOp", IN(name) IN(name "_value"), DT)                                            \
  NODE("read_" name, "ReadVariableOp", IN(name), DT)
/* The same as a reference variable. */
#define VARIABLE(name, dims, value)                                                                                \
  NODE(name, "VariableV2", "", DT SHAPE(dims) NAMED(name))                                                         \
  TENSOR(name "_value", "DT_FLOAT", dims, "float_val: " value)                                                     \
  NODE("set_" name, "Assign", IN(name) IN(name "_value"), F)                                                       \
  NODE("read_" name, "Identity", IN(name), F)

/* ---- sessions and steps ---- */

static void open_text(ts *t, int level, const char *text)
{
  tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  ts_init(t, level);
  REQUIRE_OK(tn_graph_import(t->graph, text, strlen(text), &options, &t->err), &t->err);
  ts_start(t);
}

static void fini(ts *t)
{
  ts_clean(t, NULL);
  ts_fini(t);
}

static tn_status target(ts *t, const char *name) { return ts_run(t, NULL, NULL, NULL, NAMES(name)); }

static tn_tensor *tensor(tn_dtype dtype, int32_t rank, const int64_t *dims, const void *data)
{
  tn_tensor *out;
  int64_t n = 1;
  for (int32_t k = 0; k < rank; k++) n *= dims[k];
  REQUIRE_OK(tn_tensor_from_data(dtype, dims, rank, data, (size_t)n * tn_dtype_size(dtype), &out, NULL), NULL);
  return out;
}
#define DIMS(...) (int32_t)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), (int64_t[]){ __VA_ARGS__ }
#define FLOATS(dims, ...) tensor(TN_FLOAT, dims, (float[]){ __VA_ARGS__ })
#define INT32S(dims, ...) tensor(TN_INT32, dims, (int32_t[]){ __VA_ARGS__ })

/* A step of `name` on the gradient "g" and, if not NULL, the indices "i". Takes ownership of both
 * tensors. */
static tn_status step(ts *t, const char *name, tn_tensor *g, tn_tensor *i)
{
  static const char *const feeds[] = { "g:0", "i:0" };
  tn_tensor *values[] = { g, i };
  tn_status st = tn_session_run(t->session, NULL, feeds, values, i == NULL ? 1 : 2, NULL, NULL, 0, &name, 1, NULL,
                                &t->err);
  tn_tensor_unref(g);
  tn_tensor_unref(i);
  return st;
}

/* Fetches floats and compares them. */
static void check_floats(ts *t, const char *name, int64_t n, const float *wanted)
{
  tn_tensor *out = NULL;
  CHECK_OK(ts_run(t, NULL, NAMES(name), &out, NULL), &t->err);
  if (out != NULL) CHECK_INT(tn_tensor_elements(out), n);
  for (int64_t i = 0; out != NULL && i < n && i < tn_tensor_elements(out); i++)
    CHECK_DOUBLE(((const float *)tn_tensor_data(out))[i], wanted[i], 0);
  tn_tensor_unref(out);
}
#define CHECK_FLOATS(t, name, ...) \
  check_floats(t, name, (int64_t)(sizeof((float[]){ __VA_ARGS__ }) / sizeof(float)), (float[]){ __VA_ARGS__ })

/* Momentum on weights and their velocity, 3 rows of 2 elements, as ops with this prefix. */
#define ROWS_3_2 D(3) D(2)
#define MOMENTUM(prefix)                                                                                           \
  SCALAR("lr", "0.5") SCALAR("momentum", "0.25") NODE("g", "Placeholder", "", DT)                                  \
  NODE("i", "Placeholder", "", TYPE("dtype", "DT_INT32"))                                                          \
  NODE("apply", prefix "ApplyMomentum", IN("weights") IN("velocity") IN("lr") IN("g") IN("momentum"), F)           \
  NODE("apply_rows", prefix "SparseApplyMomentum",                                                                 \
       IN("weights") IN("velocity") IN("lr") IN("g") IN("i") IN("momentum"), F TI)
#define BY_HANDLE HANDLE("weights", ROWS_3_2, "1") HANDLE("velocity", ROWS_3_2, "2") MOMENTUM("Resource")
#define BY_REFERENCE VARIABLE("weights", ROWS_3_2, "1") VARIABLE("velocity", ROWS_3_2, "2") MOMENTUM("")

static void open_set(ts *t, int level, const char *text)
{
  open_text(t, level, text);
  REQUIRE_OK(target(t, "set_weights"), &t->err);
  REQUIRE_OK(target(t, "set_velocity"), &t->err);
}

/* ---- what a step changes ---- */

static void check_two_steps(const char *text)
{
  FOR_LEVELS(level)
  {
    ts t;
    open_set(&t, level, text);
    CHECK_OK(step(&t, "apply", FLOATS(DIMS(3, 2), 0, 1, 2, 3, 4, 5), NULL), &t.err);
    CHECK_FLOATS(&t, "read_velocity", 0.5f, 1.5f, 2.5f, 3.5f, 4.5f, 5.5f);
    CHECK_FLOATS(&t, "read_weights", 0.75f, 0.25f, -0.25f, -0.75f, -1.25f, -1.75f);
    CHECK_OK(step(&t, "apply_rows", FLOATS(DIMS(2, 2), 1, 1, 1, 1), INT32S(DIMS(2), 2, 0)), &t.err);
    CHECK_FLOATS(&t, "read_velocity", 1.125f, 1.375f, 2.5f, 3.5f, 2.125f, 2.375f);
    CHECK_FLOATS(&t, "read_weights", 0.1875f, -0.4375f, -0.25f, -0.75f, -2.3125f, -2.9375f);
    fini(&t);
  }
}

static void training__a_step_changes_variable_and_slots(void) { check_two_steps(BY_HANDLE); }
static void training__references_are_updated_equally(void) { check_two_steps(BY_REFERENCE); }

static void training__a_reference_is_forwarded(void)
{
  FOR_LEVELS(level)
  {
    ts t;
    static const char *const feed = "g:0", *const fetch = "apply:0";
    tn_tensor *out = NULL, *g = FLOATS(DIMS(3, 2), 2, 2, 2, 2, 2, 2);
    open_set(&t, level, BY_REFERENCE);
    CHECK_OK(tn_session_run(t.session, NULL, &feed, &g, 1, &fetch, &out, 1, NULL, 0, NULL, &t.err), &t.err);
    CHECK_DOUBLE(ts_float(out), 1 - 0.5 * 2.5, 0); /* the referenced variable after the step */
    tn_tensor_unref(out);
    tn_tensor_unref(g);
    fini(&t);
  }
}

static void training__values_read_before_do_not_change(void) /* S-RUN-27 */
{
  ts t;
  tn_tensor *before = NULL;
  open_set(&t, 1, BY_HANDLE);
  REQUIRE_OK(ts_run(&t, NULL, NAMES("read_weights"), &before, NULL), &t.err);
  CHECK_OK(step(&t, "apply", FLOATS(DIMS(3, 2), 2, 2, 2, 2, 2, 2), NULL), &t.err);
  CHECK_DOUBLE(ts_float(before), 1, 0);
  tn_tensor_unref(before);
  fini(&t);
}

static void training__repeated_rows_are_applied_in_order(void)
{
  ts t;
  open_set(&t, 1, BY_HANDLE);
  CHECK_OK(step(&t, "apply_rows", FLOATS(DIMS(2, 2), 1, 2, 3, 4), INT32S(DIMS(2), 1, 1)), &t.err);
  CHECK_FLOATS(&t, "read_velocity", 2, 2, 3.375f, 4.625f, 2, 2);
  CHECK_FLOATS(&t, "read_weights", 1, 1, -1.4375f, -2.5625f, 1, 1);
  fini(&t);
}

static void training__no_rows_change_nothing(void)
{
  ts t;
  open_set(&t, 1, BY_HANDLE);
  CHECK_OK(step(&t, "apply_rows", tensor(TN_FLOAT, DIMS(0, 2), ""), tensor(TN_INT32, DIMS(0), "")), &t.err);
  CHECK_FLOATS(&t, "read_velocity", 2, 2, 2, 2, 2, 2);
  fini(&t);
}

static void training__one_variable_may_be_its_own_slot(void)
{
  ts t;
  open_text(&t, 1, HANDLE("weights", D(2), "4") SCALAR("lr", "0.5") SCALAR("momentum", "0.25")
            NODE("apply", "ResourceApplyMomentum",
                 IN("weights") IN("weights") IN("lr") IN("read_weights") IN("momentum"), F));
  REQUIRE_OK(target(&t, "set_weights"), &t.err);
  CHECK_OK(target(&t, "apply"), &t.err); /* no lock is taken; the value is either of the two */
  fini(&t);
}

/* ---- invalid inputs ---- */

typedef struct bad_step {
  const char *target;
  tn_tensor *g, *i;
  const char *part, *other; /* in the message */
} bad_step;

static void training__bad_input_is_reported_and_changes_nothing(void)
{
  ts t;
  open_set(&t, 1, BY_HANDLE);
  const bad_step steps[] = {
    { "apply", FLOATS(DIMS(2), 1, 1), NULL, "gradient has shape [2]", "'weights' has shape [3,2]" },
    { "apply", FLOATS(DIMS(3, 1), 1, 1, 1), NULL, "gradient has shape [3,1]", "node 'apply'" },
    { "apply_rows", FLOATS(DIMS(2, 2), 1, 1, 1, 1), INT32S(DIMS(2), 0, 3), "index 1", "is 3, wanted one in [0, 3)" },
    { "apply_rows", FLOATS(DIMS(2, 2), 1, 1, 1, 1), INT32S(DIMS(2), 0, -1), "index 1", "is -1" },
    { "apply_rows", FLOATS(DIMS(2, 2), 1, 1, 1, 1), INT32S(DIMS(1), 0), "2 rows", "1 indices" },
    { "apply_rows", FLOATS(DIMS(1, 2), 1, 1), INT32S(DIMS(1, 1), 0), "input 4 has shape [1,1]", "wanted rank 1" },
    { "apply_rows", FLOATS(DIMS(1, 3), 1, 1, 1), INT32S(DIMS(1), 0), "gradient has shape [1,3]", "[3,2]" },
  };
  for (size_t k = 0; k < sizeof steps / sizeof steps[0]; k++) {
    CHECK_INT(step(&t, steps[k].target, steps[k].g, steps[k].i), TN_INVALID_ARGUMENT);
    CHECK_CONTAINS(tn_error_message(&t.err), steps[k].part);
    CHECK_CONTAINS(tn_error_message(&t.err), steps[k].other);
    CHECK_FLOATS(&t, "read_weights", 1, 1, 1, 1, 1, 1);
    CHECK_FLOATS(&t, "read_velocity", 2, 2, 2, 2, 2, 2);
  }
  fini(&t);
}

static void training__variables_must_have_values(void)
{
  ts t;
  open_text(&t, 1, BY_HANDLE);
  CHECK_INT(step(&t, "apply", FLOATS(DIMS(3, 2), 0, 0, 0, 0, 0, 0), NULL), TN_FAILED_PRECONDITION);
  CHECK_CONTAINS(tn_error_message(&t.err), "'weights'");
  REQUIRE_OK(target(&t, "set_weights"), &t.err);
  CHECK_INT(step(&t, "apply", FLOATS(DIMS(3, 2), 0, 0, 0, 0, 0, 0), NULL), TN_FAILED_PRECONDITION);
  CHECK_CONTAINS(tn_error_message(&t.err), "'velocity'");
  fini(&t);
}

static void training__slots_must_have_the_variables_shape(void)
{
  ts t;
  open_set(&t, 1, HANDLE("weights", ROWS_3_2, "1") HANDLE("velocity", D(6), "2") MOMENTUM("Resource"));
  CHECK_INT(step(&t, "apply", FLOATS(DIMS(3, 2), 0, 0, 0, 0, 0, 0), NULL), TN_INVALID_ARGUMENT);
  CHECK_CONTAINS(tn_error_message(&t.err), "'velocity' has shape [6]");
  CHECK_CONTAINS(tn_error_message(&t.err), "'weights' has shape [3,2]");
  fini(&t);
}

/* Sparse Ftrl rejects a learning rate of 0, unless everything is multiplied by it. */
#define FTRL(name, attrs)                                                                                            \
  NODE(name, "ResourceSparseApplyFtrl",                                                                              \
       IN("v") IN("a") IN("l") IN("g") IN("i") IN("none") IN("none") IN("none") IN("power"), F TI attrs)
static void training__numbers_out_of_range_are_reported(void)
{
  ts t;
  open_text(&t, 1, HANDLE("v", D(2), "1") HANDLE("a", D(2), "1") HANDLE("l", D(2), "1") SCALAR("none", "0")
            SCALAR("power", "-0.5") NODE("g", "Placeholder", "", DT)
            NODE("i", "Placeholder", "", TYPE("dtype", "DT_INT32")) FTRL("divides", "")
            FTRL("multiplies", FLAG("multiply_linear_by_lr")));
  REQUIRE_OK(ts_run(&t, NULL, NULL, NULL, NAMES("set_v", "set_a", "set_l")), &t.err);
  CHECK_INT(step(&t, "divides", FLOATS(DIMS(1), 1), INT32S(DIMS(1), 0)), TN_INVALID_ARGUMENT);
  CHECK_CONTAINS(tn_error_message(&t.err), "input 5 is 0, wanted a number above 0");
  CHECK_OK(step(&t, "multiplies", FLOATS(DIMS(1), 1), INT32S(DIMS(1), 0)), &t.err);
  fini(&t);
}

/* ---- shapes ---- */

#define DESCENT(dims, rate)                                                                                     \
  NODE("v", "VariableV2", "", DT SHAPE(D(3))) TENSOR("rate", "DT_FLOAT", rate, "float_val: 1")                  \
  TENSOR("d", "DT_FLOAT", dims, "float_val: 1")                                                                 \
  NODE("apply", "ApplyGradientDescent", IN("v") IN("rate") IN("d"), F)
static void training__references_have_the_variables_shape(void)
{
  ts t;
  ops_open_text(&t, DESCENT(D(3), ""));
  CHECK_STR(ops_shape_of(&t, "apply", 0), "[3]");
  ts_fini(&t);
}

/* ---- large ones, threads, memory ---- */

enum { MANY = 20000, WIDEST_ROW = 20, N_ROWS = 100, THREADS = 4, STEPS = 60 };

#define OF_ROWS(n)                                                                                              \
  { n, HANDLE("weights", D(100) D(n), "1") HANDLE("velocity", D(100) D(n), "2") MOMENTUM("Resource") }
static const struct {
  int width;
  const char *text;
} of_rows[] = { OF_ROWS(1), OF_ROWS(3), OF_ROWS(8), OF_ROWS(20) };

/* Rows in any order, most of them repeated: blocks and shares of rows must give the result of
 * sequential execution. */
static void training__large_sparse_gradients_are_done_in_order(void)
{
  static float g[MANY * WIDEST_ROW], velocity[N_ROWS * WIDEST_ROW], weights[N_ROWS * WIDEST_ROW];
  static int32_t rows[MANY];
  uint32_t seed = 7;
  for (int i = 0; i < MANY * WIDEST_ROW; i++) {
    seed = seed * 1664525u + 1013904223u;
    g[i] = (float)(seed >> 12) / (1 << 20) - 0.25f;
  }
  for (size_t k = 0; k < sizeof of_rows / sizeof of_rows[0]; k++) {
    ts t;
    int width = of_rows[k].width;
    open_set(&t, 1, of_rows[k].text);
    for (int i = 0; i < N_ROWS * width; i++) velocity[i] = 2, weights[i] = 1;
    for (int i = 0; i < MANY; i++) {
      rows[i] = (int32_t)((uint32_t)i * 7919u / 3u % N_ROWS);
      for (int d = 0; d < width; d++) {
        float *v = &velocity[rows[i] * width + d];
        *v = *v * 0.25f + g[i * width + d];
        weights[rows[i] * width + d] -= *v * 0.5f;
      }
    }
    CHECK_OK(step(&t, "apply_rows", tensor(TN_FLOAT, DIMS(MANY, width), g), tensor(TN_INT32, DIMS(MANY), rows)),
             &t.err);
    check_floats(&t, "read_weights", N_ROWS * width, weights);
    check_floats(&t, "read_velocity", N_ROWS * width, velocity);
    fini(&t);
  }
}

/* Each of two ops uses the other's variable as its slot. */
#define CROSSED                                                                                                     \
  HANDLE("a", D(2), "0") HANDLE("b", D(2), "0") SCALAR("one", "1") SCALAR("none", "0")                              \
  TENSOR("grad", "DT_FLOAT", D(2), "float_val: 1")                                                                  \
  NODE("descend", "ResourceApplyGradientDescent", IN("a") IN("one") IN("grad"), F)                                  \
  NODE("a_b", "ResourceApplyMomentum", IN("a") IN("b") IN("none") IN("grad") IN("one"), F)                          \
  NODE("b_a", "ResourceApplyMomentum", IN("b") IN("a") IN("none") IN("grad") IN("one"), F)

static void *run_many(void *arg)
{
  ts *t = arg;
  static const char *const targets[] = { "descend", "a_b", "b_a" };
  for (int i = 0; i < STEPS; i++)
    CHECK_INT(tn_session_run(t->session, NULL, NULL, NULL, 0, NULL, NULL, 0, targets, 3, NULL, NULL), TN_OK);
  return NULL;
}

static void training__steps_side_by_side_lose_no_change(void)
{
  ts t;
  pthread_t threads[THREADS];
  open_text(&t, 1, CROSSED);
  REQUIRE_OK(ts_run(&t, NULL, NULL, NULL, NAMES("set_a", "set_b")), &t.err);
  for (int i = 0; i < THREADS; i++) REQUIRE_INT(pthread_create(&threads[i], NULL, run_many, &t), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  CHECK_FLOATS(&t, "read_a", 0, 0); /* increased as often as decreased */
  CHECK_FLOATS(&t, "read_b", THREADS * STEPS, THREADS * STEPS);
  fini(&t);
}

/* Allocations of ten steps. */
static uint64_t allocations_of(ts *t, const char *const *targets)
{
  tn_callable callable;
  REQUIRE_OK(tn_session_make_callable(t->session, NULL, NULL, 0, NULL, 0, targets, 2, &callable, &t->err), &t->err);
  for (int i = 0; i < 3; i++)
    REQUIRE_OK(tn_session_run_callable(t->session, callable, NULL, 0, NULL, 0, NULL, &t->err), &t->err);
  uint64_t before = tn_test_allocations();
  for (int i = 0; i < 10; i++)
    CHECK_OK(tn_session_run_callable(t->session, callable, NULL, 0, NULL, 0, NULL, &t->err), &t->err);
  tn_session_release_callable(t->session, callable, NULL);
  return tn_test_allocations() - before;
}

static void training__changes_allocate_nothing(void)
{
  ts t;
  static const char *const changes[] = { "descend", "a_b" }, *const handles[] = { "a", "b" };
  open_text(&t, 1, CROSSED);
  REQUIRE_OK(ts_run(&t, NULL, NULL, NULL, NAMES("set_a", "set_b")), &t.err);
  allocations_of(&t, changes); /* the variables get their own memory */
  CHECK_INT(allocations_of(&t, changes), allocations_of(&t, handles));
  fini(&t);
}

static tn_status compile_and_run(void *arg)
{
  ts *t = arg;
  tn_callable callable;
  static const char *const names[] = { "descend", "a_b" };
  tn_status st = tn_session_make_callable(t->session, NULL, NULL, 0, NULL, 0, names, 2, &callable, NULL);
  if (st != TN_OK) return st;
  st = tn_session_run_callable(t->session, callable, NULL, 0, NULL, 0, NULL, NULL);
  tn_session_release_callable(t->session, callable, NULL);
  return st;
}

static void training__without_memory_nothing_is_left(void)
{
  ts t;
  open_text(&t, 1, CROSSED);
  REQUIRE_OK(ts_run(&t, NULL, NULL, NULL, NAMES("set_a", "set_b")), &t.err);
  CHECK_INT(compile_and_run(&t), TN_OK);
  tn_test_oom_sweep(compile_and_run, &t);
  fini(&t);
}

TAP_MAIN(
  TAP_TEST(training__a_step_changes_variable_and_slots),
  TAP_TEST(training__references_are_updated_equally),
  TAP_TEST(training__a_reference_is_forwarded),
  TAP_TEST(training__values_read_before_do_not_change),
  TAP_TEST(training__repeated_rows_are_applied_in_order),
  TAP_TEST(training__no_rows_change_nothing),
  TAP_TEST(training__one_variable_may_be_its_own_slot),
  TAP_TEST(training__bad_input_is_reported_and_changes_nothing),
  TAP_TEST(training__variables_must_have_values),
  TAP_TEST(training__slots_must_have_the_variables_shape),
  TAP_TEST(training__numbers_out_of_range_are_reported),
  TAP_TEST(training__references_have_the_variables_shape),
  TAP_TEST(training__large_sparse_gradients_are_done_in_order),
  TAP_TEST(training__steps_side_by_side_lose_no_change),
  TAP_TEST(training__changes_allocate_nothing),
  TAP_TEST(training__without_memory_nothing_is_left))
