/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that create, select, search and combine: sizes that propagate, inputs longer than in the
 * recorded cases, errors, and lack of memory. */
#include "conformance/support/op_kit.h"

#define IN(name, type, dims)                                                                    \
  NODE(name, "Placeholder", "", "attr { key: 'dtype' value { type: " type " } } attr { key: 'shape' value { shape { " \
       dims " } } }")
#define INTS1(name, n, values) INTS(name, D(n), values)
#define INT0(name, value) TENSOR(name, "DT_INT32", "", "int_val: " #value)
#define GATHER TYPE("Tindices", "DT_INT32") TYPE("Taxis", "DT_INT32")
#define I TYPE("T", "DT_INT32")

/* ---- sizes ---- */

#define SIZES                                                                                                         \
  IN("x", "DT_FLOAT", D(4) D(-1) D(6)) ANY("y", "DT_FLOAT") INT0("0", 0) INT0("1", 1) INT0("3", 3)                    \
  NODE("shape", "Shape", "input: 'x'", F) NODE("axes", "Range", "input: '0' input: '3' input: '1'", "")               \
  INTS1("last", 2, "int_val: 2 int_val: 0")                                                                           \
  NODE("picked", "GatherV2", "input: 'shape' input: 'last' input: '0'", TYPE("Tparams", "DT_INT32") GATHER)           \
  NODE("swapped", "Reshape", "input: 'y' input: 'picked'", F)                                                         \
  NODE("ones", "OnesLike", "input: 'last'", I)                                                                        \
  NODE("kept", "DynamicStitch", "input: 'axes' input: 'last' input: 'shape' input: 'ones'", I INT("N", 2))            \
  NODE("reduced", "Reshape", "input: 'y' input: 'kept'", F)                                                           \
  NODE("both", "BroadcastArgs", "input: 'kept' input: 'shape'", I)                                                    \
  NODE("again", "Reshape", "input: 'y' input: 'both'", F)                                                             \
  NODE("grads", "BroadcastGradientArgs", "input: 'last' input: 'ones'", I)                                            \
  NODE("filled", "Fill", "input: 'picked' input: '0'", I)                                                             \
  NODE("sum", "Sum", "input: 'x' input: 'axes'", F)                                                                   \
  NODE("hot", "OneHot", "input: 'last' input: '3' input: '0' input: '1'", I TYPE("TI", "DT_INT32"))

static void array_ops__sizes_propagate(void)
{
  ts t;
  ops_open_text(&t, SIZES);
  CHECK_STR(ops_shape_of(&t, "axes", 0), "[3]");
  CHECK_STR(ops_shape_of(&t, "swapped", 0), "[6,4]");
  CHECK_STR(ops_shape_of(&t, "reduced", 0), "[1,?,1]");
  CHECK_STR(ops_shape_of(&t, "again", 0), "[4,?,6]");
  CHECK_STR(ops_shape_of(&t, "grads", 0), "[0]");
  CHECK_STR(ops_shape_of(&t, "grads", 1), "[2]");
  CHECK_STR(ops_shape_of(&t, "filled", 0), "[6,4]");
  CHECK_STR(ops_shape_of(&t, "sum", 0), "[]");
  CHECK_STR(ops_shape_of(&t, "hot", 0), "[2,3]");
  ts_fini(&t);
}

/* ---- long inputs ---- */

#define LONG 3000

static tn_tensor *numbers(int modulus)
{
  int64_t n = LONG;
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_create(TN_INT32, &n, 1, &t, NULL), NULL);
  int32_t *x = tn_tensor_data(t);
  for (int64_t i = 0; i < LONG; i++) x[i] = (int32_t)((uint32_t)i * 2654435761u >> 8) % modulus - modulus / 2;
  return t;
}

/* Feeds "x" and fetches one output. */
static tn_status run(ts *t, tn_tensor *x, const char *fetch, tn_tensor **out)
{
  static const char *const feeds[] = { "x:0" };
  tn_error_clear(&t->err);
  return tn_session_run(t->session, NULL, feeds, &x, x != NULL, &fetch, out, 1, NULL, 0, NULL, &t->err);
}

static tn_tensor *get(ts *t, tn_tensor *x, const char *fetch)
{
  tn_tensor *out = NULL;
  REQUIRE_OK(run(t, x, fetch, &out), &t->err);
  return out;
}

static int32_t int_at(const tn_tensor *t, int64_t i) { return ((const int32_t *)tn_tensor_data(t))[i]; }

#define LONG_GRAPH                                                                                             \
  ANY("x", "DT_INT32") INT0("k", 700) NODE("top", "TopKV2", "input: 'x' input: 'k'", I)                        \
  NODE("nth", "NthElement", "input: 'x' input: 'k'", I "attr { key: 'reverse' value { b: true } }")            \
  NODE("where", "Where", "input: 'x'", I) NODE("unique", "UniqueWithCounts", "input: 'x'", I)                  \
  INT0("0", 0)                                                                                                 \
  NODE("back", "GatherV2", "input: 'unique' input: 'unique:1' input: '0'", TYPE("Tparams", "DT_INT32") GATHER)

static void array_ops__top_k_of_a_long_row_is_sorted_and_complete(void)
{
  ts t;
  ops_open_text(&t, LONG_GRAPH);
  tn_tensor *x = numbers(50); /* many are equal, also at the end of the result */
  tn_tensor *values = get(&t, x, "top:0"), *indices = get(&t, x, "top:1"), *nth = get(&t, x, "nth:0");
  bool ordered = true, right = true;
  for (int64_t i = 0; i < 700; i++) {
    int32_t v = int_at(values, i), at = int_at(indices, i);
    right = right && int_at(x, at) == v;
    if (i == 0) continue;
    int32_t before = int_at(values, i - 1);
    ordered = ordered && (before > v || (before == v && int_at(indices, i - 1) < at));
  }
  CHECK(right);
  CHECK(ordered);
  /* the result has all elements above the last one, and of those equal to it, the first ones */
  int32_t last = int_at(values, 699), last_at = int_at(indices, 699);
  int64_t wanted = 0, above = 0, reach = 0;
  for (int64_t i = 0; i < LONG; i++) {
    wanted += int_at(x, i) > last || (int_at(x, i) == last && i <= last_at);
    above += int_at(x, i) > int_at(nth, 0);
    reach += int_at(x, i) >= int_at(nth, 0);
  }
  CHECK_INT(wanted, 700);
  CHECK(reach > 700); /* the 701st largest */
  CHECK(above <= 700);
  tn_tensor_unref(x), tn_tensor_unref(values), tn_tensor_unref(indices), tn_tensor_unref(nth);
  ts_fini(&t);
}

static void array_ops__where_of_a_long_vector_finds_each_place(void)
{
  ts t;
  ops_open_text(&t, LONG_GRAPH);
  tn_tensor *x = numbers(3), *places = get(&t, x, "where:0");
  int64_t found = 0;
  bool right = true;
  const int64_t *place = tn_tensor_data(places);
  for (int64_t i = 0; i < LONG; i++) {
    if (int_at(x, i) == 0) continue;
    right = right && found < tn_tensor_elements(places) && place[found] == i;
    found++;
  }
  CHECK(right);
  CHECK_INT(tn_tensor_elements(places), found);
  CHECK(found > 0 && found < LONG);
  tn_tensor_unref(x), tn_tensor_unref(places);
  ts_fini(&t);
}

static void array_ops__unique_of_a_long_vector_can_be_reversed(void)
{
  ts t;
  ops_open_text(&t, LONG_GRAPH);
  tn_tensor *x = numbers(900), *y = get(&t, x, "unique:0"), *counts = get(&t, x, "unique:2");
  tn_tensor *back = get(&t, x, "back:0");
  bool same = tn_tensor_elements(back) == LONG, different = true;
  int64_t total = 0;
  for (int64_t i = 0; same && i < LONG; i++) same = int_at(back, i) == int_at(x, i);
  for (int64_t i = 0; i < tn_tensor_elements(y); i++) {
    total += int_at(counts, i);
    for (int64_t k = 0; k < i; k++) different = different && int_at(y, i) != int_at(y, k);
  }
  CHECK(same);
  CHECK(different);
  CHECK_INT(total, LONG);
  tn_tensor_unref(x), tn_tensor_unref(y), tn_tensor_unref(counts), tn_tensor_unref(back);
  ts_fini(&t);
}

/* ---- errors ---- */

#define BAD                                                                                                   \
  ANY("x", "DT_INT32") INT0("0", 0) INT0("1", 1) INT0("minus", -1) INTS1("two", 2, "int_val: 5 int_val: 7")      \
  NODE("gather", "GatherV2", "input: 'two' input: 'x' input: '0'", TYPE("Tparams", "DT_INT32") GATHER)        \
  NODE("range", "Range", "input: '1' input: '0' input: '1'", "")                                              \
  NODE("hot", "OneHot", "input: 'x' input: 'minus' input: '0' input: '1'", I TYPE("TI", "DT_INT32"))             \
  NODE("top", "TopKV2", "input: 'two' input: 'x'", I)                                                         \
  NODE("sum", "Cumsum", "input: 'two' input: 'x'", I)                                                         \
  NODE("ensure", "EnsureShape", "input: 'two'", I "attr { key: 'shape' value { shape { " D(3) " } } }")

static void expect_error(ts *t, tn_tensor *x, const char *fetch, const char *text)
{
  tn_tensor *out = NULL;
  CHECK_INT(run(t, x, fetch, &out), TN_INVALID_ARGUMENT);
  CHECK(out == NULL);
  if (strstr(tn_error_message(&t->err), text) == NULL) CHECK_STR(tn_error_message(&t->err), text);
}

static void array_ops__errors_name_the_offending_value(void)
{
  ts t;
  ops_open_text(&t, BAD);
  tn_tensor *nine = NULL;
  const int32_t value = 9;
  REQUIRE_OK(tn_tensor_from_data(TN_INT32, NULL, 0, &value, sizeof value, &nine, NULL), NULL);
  expect_error(&t, nine, "gather:0", "index 0 of input 1 is 9, wanted one in [0, 2)");
  expect_error(&t, nine, "range:0", "start (input 0) is beyond limit (input 1)");
  expect_error(&t, nine, "hot:0", "depth (input 1) is -1");
  expect_error(&t, nine, "top:0", "k is 9, the rows of input 0 have 2 elements");
  expect_error(&t, nine, "sum:0", "axis 9 is outside [-1, 1)");
  expect_error(&t, nine, "ensure:0", "input 0 has shape [2], attribute 'shape' is [3]");
  tn_tensor_unref(nine);
  ts_fini(&t);
}

/* ---- lack of memory ---- */

#define STRINGS "string_val: 'a' string_val: 'a text too long for the element itself' string_val: 'a' string_val: ''"
#define S TYPE("T", "DT_STRING")
#define MANY                                                                                                        \
  ANY("x", "DT_INT32") INT0("0", 0) INT0("2", 2) TENSOR("words", "DT_STRING", D(4), STRINGS)                        \
  TENSOR("rows", "DT_INT32", D(2) D(1), "int_val: 2 int_val: 0")                                                    \
  TENSOR("pair", "DT_STRING", D(2), "string_val: 'another text that is rather long' string_val: 'b'")               \
  NODE("unique", "UniqueWithCounts", "input: 'words'", S) NODE("less", "ListDiff", "input: 'words' input: 'pair'", S) \
  NODE("put", "TensorScatterUpdate", "input: 'words' input: 'rows' input: 'pair'", S TYPE("Tindices", "DT_INT32"))  \
  NODE("true", "Where", "input: 'x'", I) NODE("yes", "Equal", "input: 'x' input: '2'", I)                           \
  NODE("one", "SelectV2", "input: 'yes' input: 'put' input: 'words'", S)                                            \
  NODE("some", "GatherV2", "input: 'one' input: 'x' input: '0'", TYPE("Tparams", "DT_STRING") GATHER)               \
  NODE("run", "Cumsum", "input: 'x' input: '0'", I) NODE("part", "DynamicPartition", "input: 'some' input: 'x'",    \
                                                         S INT("num_partitions", 4))                                \
  NODE("top", "TopKV2", "input: 'run' input: '2'", I)                                                               \
  NODE("all", "DynamicStitch", "input: 'x' input: 'top:1' input: 'some' input: 'pair'", S INT("N", 2))              \
  NODE("hot", "OneHot", "input: 'top:1' input: '2' input: '0' input: '2'", I TYPE("TI", "DT_INT32"))                \
  NODE("nth", "NthElement", "input: 'hot' input: '0'", I)

typedef struct trial {
  ts *t;
  tn_tensor *x;
} trial;

/* Uses a session of its own, as plans keep memory for the next step. */
static tn_status compile_and_run(void *arg)
{
  static const char *const feeds[] = { "x:0" };
  static const char *const fetches[] = { "unique:0", "less:0", "part:2", "all:0", "true:0", "nth:0" };
  trial *a = arg;
  tn_session *session;
  tn_callable callable;
  tn_tensor *out[6] = { NULL };
  tn_status st = tn_session_create(a->t->options, &session, NULL);
  if (st == TN_OK) st = tn_session_set_graph(session, a->t->graph, NULL);
  if (st == TN_OK) st = tn_session_make_callable(session, NULL, feeds, 1, fetches, 6, NULL, 0, &callable, NULL);
  if (st == TN_OK) st = tn_session_run_callable(session, callable, &a->x, 1, out, 6, NULL, NULL);
  if (st == TN_OK) CHECK_INT(tn_tensor_elements(out[0]), 3);
  for (int k = 0; k < 6; k++) tn_tensor_unref(out[k]);
  tn_session_destroy(session);
  return st;
}

static void array_ops__nothing_leaks_without_memory(void)
{
  ts t;
  ops_open_text(&t, MANY);
  const int64_t n = 4;
  trial a = { &t, NULL };
  REQUIRE_OK(tn_tensor_from_data(TN_INT32, &n, 1, (int32_t[]){ 2, 0, 1, 2 }, 16, &a.x, NULL), NULL);
  CHECK_INT(compile_and_run(&a), TN_OK);
  tn_test_oom_sweep(compile_and_run, &a);
  tn_tensor_unref(a.x);
  ts_fini(&t);
}

TAP_MAIN(TAP_TEST(array_ops__sizes_propagate),
         TAP_TEST(array_ops__top_k_of_a_long_row_is_sorted_and_complete),
         TAP_TEST(array_ops__where_of_a_long_vector_finds_each_place),
         TAP_TEST(array_ops__unique_of_a_long_vector_can_be_reversed),
         TAP_TEST(array_ops__errors_name_the_offending_value), TAP_TEST(array_ops__nothing_leaks_without_memory))
