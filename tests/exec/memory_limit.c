/* SPDX-License-Identifier: Apache-2.0 */
/* memory_limit_bytes and memory of steps other than tensors: indices of lists and arrays, rows
 * of tables. */
#include "conformance/support/calls_kit.h"

#define LIMIT (1 << 20)

static void open_limited(ts *t, int level, const char *text)
{
  const tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  ts_init(t, level);
  REQUIRE_OK(tn_session_options_set_int(t->options, "memory_limit_bytes", LIMIT, &t->err), &t->err);
  REQUIRE_OK(tn_session_options_set_bool(t->options, "isolate_session_state", 1, &t->err), &t->err);
  REQUIRE_OK(tn_graph_import(t->graph, text, strlen(text), &options, &t->err), &t->err);
  ts_start(t);
}

/* The int32 or float scalar fetched when int32 "n" is fed; -1 on failure, with the error in
 * t->err. */
static double run(ts *t, int32_t n, const char *fetch, tn_status *status)
{
  static const char *const feed = "n";
  tn_tensor *in = NULL, *out = NULL;
  REQUIRE_OK(tn_tensor_from_data(TN_INT32, NULL, 0, &n, sizeof n, &in, &t->err), &t->err);
  *status = tn_session_run(t->session, NULL, &feed, &in, 1, &fetch, &out, 1, NULL, 0, NULL, &t->err);
  double value = *status != TN_OK ? -1 : *(const int32_t *)tn_tensor_data(out);
  tn_tensor_unref(out);
  tn_tensor_unref(in);
  return value;
}

/* `small` succeeds any number of times; `large` always fails, with the limit in its error. */
static void check_limit(const char *text, const char *fetch, int32_t small, int32_t large)
{
  FOR_LEVELS(level)
  {
    ts t;
    tn_status st;
    open_limited(&t, level, text);
    for (int i = 0; i < 20; i++) {
      CHECK_INT(run(&t, small, fetch, &st), small);
      CHECK_OK(st, &t.err);
      run(&t, large, fetch, &st);
      CHECK_STATUS(st, TN_RESOURCE_EXHAUSTED, &t.err);
      CHECK_CONTAINS(tn_error_message(&t.err), "the session may have 1048576 bytes (memory_limit_bytes)");
      tn_error_clear(&t.err);
    }
    ts_fini(&t);
  }
}

#define LIST_OF(name, length)                                           \
  NODE(name, "TensorListReserve", "input: 'shape' input: '" length "'", \
       "attr { key: 'element_dtype' value { type: DT_FLOAT } }"         \
       "attr { key: 'shape_type' value { type: DT_INT32 } }")
#define ELEMENTS "attr { key: 'element_dtype' value { type: DT_FLOAT } }"
#define BASE IN("n", "DT_INT32") NODE("shape", "Const", "", INT_OF("-1"))

static void memory_limit__counts_the_index_of_a_list(void) /* S-CFG-24 */
{
  const char *reserved = BASE LIST_OF("l", "n") NODE("length", "TensorListLength", "input: 'l'", "");
  check_limit(reserved, "length", LIMIT / 16, LIMIT / 4);
  const char *resized = BASE NODE("one", "Const", "", INT_OF("1")) LIST_OF("l", "one")
      NODE("r", "TensorListResize", "input: 'l' input: 'n'", "") NODE("length", "TensorListLength", "input: 'r'", "");
  check_limit(resized, "length", LIMIT / 32, LIMIT / 4);
}

/* Two versions of a list, each of which writes, have an index each. */
static void memory_limit__counts_copies_of_lists(void) /* S-CFG-24 */
{
#define SET(name, i)                       \
  NODE("at_" name, "Const", "", INT_OF(i)) \
  NODE(name, "TensorListSetItem", "input: 'l' input: 'at_" name "' input: 'v'", ELEMENTS)
  const char *text = BASE NODE("v", "Const", "", FLOAT_OF("1")) LIST_OF("l", "n") SET("a", "0") SET("b", "1")
      SET("c", "2") NODE("na", "TensorListLength", "input: 'a' input: '^b' input: '^c'", "")
          NODE("nb", "TensorListLength", "input: 'b' input: '^a' input: '^c'", "")
              NODE("nc", "TensorListLength", "input: 'c' input: '^na' input: '^nb'", "");
  check_limit(text, "nc", LIMIT / 64, LIMIT / 16); /* one of 512 KiB fits, three do not */
}

static void memory_limit__counts_the_index_of_an_array(void) /* S-CFG-24 */
{
  const char *text = BASE NODE("a", "TensorArrayV3", "input: 'n'", "attr { key: 'dtype' value { type: DT_FLOAT } }")
      NODE("size", "TensorArraySizeV3", "input: 'a' input: 'a:1'", "");
  check_limit(text, "size", LIMIT / 32, LIMIT / 8);
}

/* The memory of a table other than the tensors that are fed. */
static void memory_limit__counts_the_rows_of_a_table(void) /* S-CFG-24 */
{
#define TABLE "attr { key: 'key_dtype' value { type: DT_INT64 } } attr { key: 'value_dtype' value { type: DT_INT64 } }"
#define TYPED "attr { key: 'Tin' value { type: DT_INT64 } } attr { key: 'Tout' value { type: DT_INT64 } }"
  static const char *const feed = "keys", *const insert = "insert";
  const char *text = IN("keys", "DT_INT64") NODE("table", "MutableHashTableV2", "", TABLE)
      NODE("insert", "LookupTableInsertV2", "input: 'table' input: 'keys' input: 'keys'", TYPED);
  ts t;
  tn_tensor *keys = NULL;
  const int64_t n = 4000;
  open_limited(&t, 1, text);
  REQUIRE_OK(tn_tensor_create(TN_INT64, &n, 1, &keys, &t.err), &t.err);
  tn_status st = TN_OK;
  int steps = 0;
  for (; st == TN_OK && steps < 100; steps++) {
    for (int64_t i = 0; i < n; i++) ((int64_t *)tn_tensor_data(keys))[i] = steps * n + i;
    st = tn_session_run(t.session, NULL, &feed, &keys, 1, NULL, NULL, 0, &insert, 1, NULL, &t.err);
  }
  CHECK_STATUS(st, TN_RESOURCE_EXHAUSTED, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "rows of a table of ");
  CHECK(steps >= 3 && steps <= 17); /* at 16 bytes a row plus the index, at least 64 KiB per step */
  tn_tensor_unref(keys);
  ts_fini(&t);
}

TAP_MAIN(
  TAP_TEST(memory_limit__counts_the_index_of_a_list),
  TAP_TEST(memory_limit__counts_copies_of_lists),
  TAP_TEST(memory_limit__counts_the_index_of_an_array),
  TAP_TEST(memory_limit__counts_the_rows_of_a_table))
