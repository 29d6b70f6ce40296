/* SPDX-License-Identifier: Apache-2.0 */
/* Staging areas, in order and by key, and stacks: their results, calls that wait, and errors. */
#include <pthread.h>

#include "conformance/support/op_kit.h"

#define LIST(key, values) "attr { key: '" key "' value { list { " values " } } }"
#define FLOATS LIST("dtypes", "type: DT_FLOAT")
#define TWO LIST("dtypes", "type: DT_FLOAT type: DT_FLOAT")
#define SHARED "attr { key: 'shared_name' value { s: 'area' } }"
#define NUMBER(name, n) INTS(name, "", "int_val: " #n)
#define KEY(name, n) TENSOR(name, "DT_INT64", "", "int64_val: " #n)

static void open(ts *t, const char *text)
{
  tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  ts_init(t, 1);
  REQUIRE_OK(tn_session_options_set_bool(t->options, "isolate_session_state", 1, &t->err), &t->err);
  REQUIRE_OK(tn_graph_import(t->graph, text, strlen(text), &options, &t->err), &t->err);
  ts_start(t);
}

/* Feeds x, runs a target or fetches one number; NAN on failure. */
static tn_status step(ts *t, float x, const char *target, int64_t timeout_ms)
{
  tn_run_options options;
  const char *name = "x";
  tn_tensor *feed = ts_scalar(x);
  tn_run_options_init(&options);
  options.timeout_ms = timeout_ms;
  tn_error_clear(&t->err);
  tn_status st = tn_session_run(t->session, &options, &name, &feed, 1, NULL, NULL, 0, &target, 1, NULL, &t->err);
  tn_tensor_unref(feed);
  return st;
}

static tn_status fetch(ts *t, const char *name, int64_t timeout_ms, double *out)
{
  tn_run_options options;
  tn_tensor *fetched = NULL;
  tn_run_options_init(&options);
  options.timeout_ms = timeout_ms;
  tn_error_clear(&t->err);
  tn_status st = tn_session_run(t->session, &options, NULL, NULL, 0, &name, &fetched, 1, NULL, 0, NULL, &t->err);
  *out = -1;
  if (st == TN_OK && tn_tensor_dtype(fetched) == TN_INT32) *out = *(const int32_t *)tn_tensor_data(fetched);
  if (st == TN_OK && tn_tensor_dtype(fetched) == TN_INT64) *out = (double)*(const int64_t *)tn_tensor_data(fetched);
  if (st == TN_OK && tn_tensor_dtype(fetched) == TN_FLOAT) *out = ts_float(fetched);
  tn_tensor_unref(fetched);
  return st;
}

static double get(ts *t, const char *name)
{
  double value;
  CHECK_OK(fetch(t, name, 0, &value), &t->err);
  return value;
}

/* ---- in order ---- */

#define AREA(limits)                                                                            \
  ANY("x", "DT_FLOAT") NODE("stage", "Stage", "input: 'x'", FLOATS SHARED limits)               \
  NODE("take", "Unstage", "", FLOATS SHARED limits) NODE("size", "StageSize", "", FLOATS SHARED limits) \
  NUMBER("two", 2) NODE("peek", "StagePeek", "input: 'two'", FLOATS SHARED limits)              \
  NODE("clear", "StageClear", "", FLOATS SHARED limits)                                         \
  NUMBER("minus", -1) NODE("bad", "StagePeek", "input: 'minus'", FLOATS SHARED limits)          \
  NODE("pair", "Unstage", "", TWO SHARED limits)

static void staging__gives_tuples_in_order(void)
{
  ts t;
  double value;
  open(&t, AREA(""));
  for (int i = 0; i < 3; i++) CHECK_OK(step(&t, (float)i, "stage", 0), &t.err);
  CHECK_DOUBLE(get(&t, "peek"), 2, 0);
  CHECK_DOUBLE(get(&t, "take"), 0, 0);
  CHECK_INT(fetch(&t, "peek", 10, &value), TN_DEADLINE_EXCEEDED); /* there are two elements */
  CHECK_DOUBLE(get(&t, "size"), 2, 0);
  CHECK_STATUS(fetch(&t, "pair:1", 0, &value), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "staging area 'area'");
  CHECK_STATUS(fetch(&t, "bad", 0, &value), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "index is -1");
  CHECK_OK(step(&t, 0, "clear", 0), &t.err);
  CHECK_DOUBLE(get(&t, "size"), 0, 0);
  CHECK_INT(fetch(&t, "take", 10, &value), TN_DEADLINE_EXCEEDED);
  ts_fini(&t);
}

/* S-RO-07, S-CAN-12 */
static void staging__waits_when_it_is_full(void)
{
  ts t;
  double value;
  open(&t, AREA(INT("capacity", 2)));
  for (int i = 0; i < 2; i++) CHECK_OK(step(&t, (float)i, "stage", 0), &t.err);
  CHECK_INT(step(&t, 9, "stage", 10), TN_DEADLINE_EXCEEDED);
  CHECK_DOUBLE(get(&t, "take"), 0, 0);
  CHECK_OK(step(&t, 2, "stage", 0), &t.err);
  CHECK_DOUBLE(get(&t, "take"), 1, 0);
  CHECK_DOUBLE(get(&t, "take"), 2, 0);
  ts_fini(&t);
  open(&t, AREA(INT("memory_limit", 4)));
  CHECK_OK(step(&t, 1, "stage", 0), &t.err);
  CHECK_INT(step(&t, 2, "stage", 10), TN_DEADLINE_EXCEEDED);
  CHECK_OK(fetch(&t, "take", 0, &value), &t.err);
  CHECK_OK(step(&t, 2, "stage", 0), &t.err);
  ts_fini(&t);
  open(&t, AREA(INT("memory_limit", 3)));
  CHECK_STATUS(step(&t, 1, "stage", 0), TN_RESOURCE_EXHAUSTED, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "tensors of 4 bytes do not fit");
  ts_fini(&t);
}

typedef struct pipe {
  ts *t;
  double sum;
  pthread_t thread;
} pipe;

static void *drain(void *arg)
{
  pipe *p = arg;
  for (int i = 0; i < 300; i++) p->sum += get(p->t, "take");
  return NULL;
}

static void *fill(void *arg)
{
  pipe *p = arg;
  tn_error err = TN_ERROR_INIT;
  for (int i = 0; i < 300; i++) {
    const char *name = "x", *target = "stage";
    tn_tensor *feed = ts_scalar((float)i);
    CHECK_OK(tn_session_run(p->t->session, NULL, &name, &feed, 1, NULL, NULL, 0, &target, 1, NULL, &err), &err);
    tn_tensor_unref(feed);
  }
  return NULL;
}

static void staging__joins_threads(void)
{
  ts t;
  open(&t, AREA(INT("capacity", 2)));
  ts others[2] = { t, t }; /* each with its own error */
  pipe pipes[4];
  for (int i = 0; i < 4; i++) {
    pipes[i] = (pipe){ .t = &others[i / 2] };
    REQUIRE_INT(pthread_create(&pipes[i].thread, NULL, i % 2 ? drain : fill, &pipes[i]), 0);
  }
  for (int i = 0; i < 4; i++) pthread_join(pipes[i].thread, NULL);
  CHECK_DOUBLE(pipes[1].sum + pipes[3].sum, 2 * 299 * 150, 0);
  CHECK_DOUBLE(get(&t, "size"), 0, 0);
  ts_fini(&t);
}

/* ---- by key ---- */

#define FAKE(n) LIST("fake_dtypes", n)
#define PART(name, key, index)                                                                                       \
  NODE(name, "MapStage", "input: '" key "' input: '" index "' input: 'x'", TWO FAKE("type: DT_FLOAT") SHARED)
#define INDEX(name, values) INTS(name, "dim { size: 1 }", "int_val: " values)
#define TAKES(name, op, key, index) NODE(name, op, "input: '" key "' input: '" index "'", FLOATS SHARED)
#define MAP                                                                                                           \
  ANY("x", "DT_FLOAT")                                                                                                \
  KEY("one", 1) KEY("seven", 7) INDEX("i0", "0") INDEX("i1", "1") INDEX("i2", "2") INTS("both", "dim { size: 2 }",    \
                                                                                        "int_val: 0 int_val: 1")      \
      INTS("falling", "dim { size: 2 }", "int_val: 1 int_val: 0") PART("a0", "seven", "i0") PART("a1", "seven", "i1") \
          PART("a2", "seven", "i2") NODE("b", "MapStage", "input: 'one' input: 'both' input: 'x' input: 'x'",         \
                                         TWO FAKE("type: DT_FLOAT type: DT_FLOAT") SHARED)                            \
              NODE("f", "MapStage", "input: 'one' input: 'falling' input: 'x' input: 'x'",                            \
                   TWO FAKE("type: DT_FLOAT type: DT_FLOAT") SHARED) TAKES("take0", "MapUnstage", "seven", "i0")      \
                  TAKES("take1", "MapUnstage", "seven", "i1") TAKES("peek0", "MapPeek", "seven", "i0")                \
                      NODE("any", "MapUnstageNoKey", "input: 'both'", TWO SHARED)                                     \
                          NODE("size", "MapSize", "", TWO SHARED) NODE("rest", "MapIncompleteSize", "", TWO SHARED)   \
                              NODE("clear", "MapClear", "", TWO SHARED)

static void staging_maps__complete_tuples_part_by_part(void)
{
  ts t;
  double value;
  open(&t, MAP);
  CHECK_OK(step(&t, 3, "a1", 0), &t.err);
  CHECK_DOUBLE(get(&t, "rest"), 1, 0);
  CHECK_INT(fetch(&t, "take1", 10, &value), TN_DEADLINE_EXCEEDED); /* incomplete */
  CHECK_STATUS(step(&t, 3, "a1", 0), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "key 7: index 1 is there already");
  CHECK_STATUS(step(&t, 3, "a2", 0), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "index 2 is outside of the tuple");
  CHECK_STATUS(step(&t, 3, "f", 0), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "index 0 follows index 1");
  CHECK_OK(step(&t, 4, "a0", 0), &t.err);
  CHECK_DOUBLE(get(&t, "peek0"), 4, 0);
  CHECK_DOUBLE(get(&t, "take1"), 3, 0);
  CHECK_STATUS(fetch(&t, "take1", 0, &value), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "index 1 was taken already");
  CHECK_DOUBLE(get(&t, "take0"), 4, 0);
  CHECK_DOUBLE(get(&t, "size"), 0, 0);
  ts_fini(&t);
}

static void staging_maps__give_the_lowest_key_first(void)
{
  ts t;
  double value;
  open(&t, MAP);
  CHECK_OK(step(&t, 3, "a1", 0), &t.err);
  CHECK_OK(step(&t, 4, "a0", 0), &t.err);
  CHECK_OK(step(&t, 5, "b", 0), &t.err);
  CHECK_OK(step(&t, 6, "b", 0), &t.err); /* an existing key: dropped */
  CHECK_DOUBLE(get(&t, "size"), 2, 0);
  CHECK_DOUBLE(get(&t, "any:1"), 5, 0);
  CHECK_DOUBLE(get(&t, "any:0"), 7, 0);
  CHECK_INT(fetch(&t, "any", 10, &value), TN_DEADLINE_EXCEEDED);
  CHECK_OK(step(&t, 5, "b", 0), &t.err);
  CHECK_OK(step(&t, 0, "clear", 0), &t.err);
  CHECK_DOUBLE(get(&t, "size"), 0, 0);
  ts_fini(&t);
}

/* ---- stacks ---- */

#define STACK(most)                                                                             \
  NUMBER("most", most) NODE("s", "StackV2", "input: 'most'", TYPE("elem_type", "DT_FLOAT"))     \
  ANY("x", "DT_FLOAT") NODE("a", "StackPushV2", "input: 's' input: 'x'", F)                     \
  NODE("twice", "AddV2", "input: 'x' input: 'x'", F)                                            \
  NODE("b", "StackPushV2", "input: 's' input: 'twice' input: '^a'", F)                          \
  NODE("p", "StackPopV2", "input: 's' input: '^b'", TYPE("elem_type", "DT_FLOAT"))              \
  NODE("r", "StackPopV2", "input: 's' input: '^p'", TYPE("elem_type", "DT_FLOAT"))              \
  NODE("none", "StackPopV2", "input: 's' input: '^r'", TYPE("elem_type", "DT_FLOAT"))           \
  NODE("c", "StackCloseV2", "input: 's'", "")                                                   \
  NODE("late", "StackPopV2", "input: 's' input: '^c'", TYPE("elem_type", "DT_FLOAT"))           \
  NODE("other", "StackPopV2", "input: 's'", TYPE("elem_type", "DT_INT32"))

static tn_status stack_step(ts *t, const char *fetch_name, float *out)
{
  const char *name = "x";
  tn_tensor *feed = ts_scalar(3), *fetched = NULL;
  tn_error_clear(&t->err);
  tn_status st = tn_session_run(t->session, NULL, &name, &feed, 1, &fetch_name, &fetched, 1, NULL, 0, NULL, &t->err);
  *out = ts_float(fetched);
  tn_tensor_unref(fetched);
  tn_tensor_unref(feed);
  return st;
}

static void stacks__pop_in_reverse_order(void)
{
  ts t;
  float value;
  open(&t, STACK(-1));
  for (int i = 0; i < 2; i++) { /* each step has its own */
    CHECK_OK(stack_step(&t, "p", &value), &t.err);
    CHECK_DOUBLE(value, 6, 0);
    CHECK_OK(stack_step(&t, "r", &value), &t.err);
    CHECK_DOUBLE(value, 3, 0);
  }
  CHECK_STATUS(stack_step(&t, "none", &value), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "stack 's' is empty");
  CHECK_STATUS(stack_step(&t, "late", &value), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "stack 's' is closed");
  CHECK_STATUS(stack_step(&t, "other", &value), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "the node's element is int32");
  ts_fini(&t);
  open(&t, STACK(1));
  CHECK_STATUS(stack_step(&t, "b", &value), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "stack 's' is full");
  ts_fini(&t);
}

/* ---- memory ---- */

static tn_status whole_life(void *arg)
{
  static const char *const targets[] = { "b", "a1", "a0", "stage" }, *const fetches[] = { "any:1", "take1", "take0",
                                                                                          "take" };
  tn_session *session = NULL;
  tn_tensor *x = NULL;
  const float one = 1;
  const char *text = arg, *name = "x";
  bool by_key = strstr(text, "MapStage") != NULL;
  const int first = by_key ? 0 : 3, end = by_key ? 3 : 4;
  tn_status st = ts_open_isolated(text, &session);
  if (st == TN_OK) st = tn_tensor_from_data(TN_FLOAT, NULL, 0, &one, sizeof one, &x, NULL);
  for (int i = first; st == TN_OK && i < end; i++)
    st = tn_session_run(session, NULL, &name, &x, 1, NULL, NULL, 0, &targets[i], 1, NULL, NULL);
  for (int i = first; st == TN_OK && i < end; i++) {
    tn_tensor *fetched = NULL;
    st = tn_session_run(session, NULL, &name, &x, 1, &fetches[i], &fetched, 1, NULL, 0, NULL, NULL);
    tn_tensor_unref(fetched);
  }
  tn_tensor_unref(x);
  tn_session_destroy(session);
  return st;
}

static void staging__survives_failing_allocations(void)
{
  static char area[] = AREA(""), map[] = MAP;
  tn_test_oom_sweep(whole_life, area);
  tn_test_oom_sweep(whole_life, map);
}

TAP_MAIN(
  TAP_TEST(staging__gives_tuples_in_order),
  TAP_TEST(staging__waits_when_it_is_full),
  TAP_TEST(staging__joins_threads),
  TAP_TEST(staging_maps__complete_tuples_part_by_part),
  TAP_TEST(staging_maps__give_the_lowest_key_first),
  TAP_TEST(stacks__pop_in_reverse_order),
  TAP_TEST(staging__survives_failing_allocations))
