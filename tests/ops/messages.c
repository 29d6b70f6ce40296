/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that print: data shown by an assertion, destinations of printed text. */
#include "conformance/support/variable_kit.h"

#include <stdio.h>

/* ---- Assert ---- */

#define TYPES(key, list) "attr { key: '" key "' value { list { " list " } } }"
#define DATA                                                                                                        \
  ANY("c", "DT_BOOL")                                                                                               \
  ANY("f", "DT_FLOAT") TENSOR("many", "DT_FLOAT", D(2) D(3),                                                        \
                              "float_val: 1 float_val: 2.5 float_val: 0.1 float_val: 16777216 float_val: -4 "       \
                              "float_val: 6")                                                                       \
      TENSOR("ints", "DT_INT64", D(4), "int64_val: -1 int64_val: 2 int64_val: 3 int64_val: 4")                      \
          TENSOR("text", "DT_STRING", "", "string_val: 'x = '")                                                     \
              TENSOR("yes", "DT_BOOL", D(2), "bool_val: true bool_val: false") TENSOR("none", "DT_FLOAT", D(0), "") \
                  TENSOR("half", "DT_HALF", "", "half_val: 15872")                                                  \
                      TENSOR("big", "DT_UINT64", "", "uint64_val: 18446744073709551615")                            \
                          TENSOR("z", "DT_COMPLEX64", "", "scomplex_val: 1 scomplex_val: -2")                       \
                              TENSOR("d", "DT_DOUBLE", "", "double_val: 0.1")
#define ASSERT(name, inputs, types, summarize) \
  NODE(name, "Assert", "input: 'c' " inputs, TYPES("T", types) INT("summarize", summarize))
#define ASSERTS                                                                                                       \
  DATA ASSERT("few", "input: 'many' input: 'ints'", "type: DT_FLOAT type: DT_INT64", 4)                               \
      ASSERT("all", "input: 'many'", "type: DT_FLOAT", -1) ASSERT("zero", "input: 'many'", "type: DT_FLOAT", 0)       \
          ASSERT("row", "input: 'many' input: 'ints'", "type: DT_FLOAT type: DT_INT64", 3)                            \
              ASSERT("kinds",                                                                                         \
                     "input: 'text' input: 'yes' input: 'none' input: 'half' input: 'big' input: 'z' input: 'd'",     \
                     "type: DT_STRING type: DT_BOOL type: DT_FLOAT type: DT_HALF type: DT_UINT64 type: DT_COMPLEX64 " \
                     "type: DT_DOUBLE",                                                                               \
                     3)

static tn_status assert_of(ts *t, const char *node, bool condition, int32_t rank)
{
  int64_t one = 1;
  tn_tensor *c = NULL;
  const char *name = "c";
  uint8_t byte = condition;
  REQUIRE_OK(tn_tensor_from_data(TN_BOOL, &one, rank, &byte, 1, &c, NULL), NULL);
  tn_status st = tn_session_run(t->session, NULL, &name, &c, 1, NULL, NULL, 0, &node, 1, NULL, &t->err);
  tn_tensor_unref(c);
  return st;
}

static void messages__an_assertion_shows_its_data(void) /* S-CAN-02 */
{
  static const char *const wanted[][2] = {
    { "few", "assertion failed: [[1 2.5 0.1][16777216...]...] [-1 2 3 4]" },
    { "all", "assertion failed: [[1 2.5 0.1][16777216 -4 6]]" },
    { "zero", "assertion failed: [...]" },
    { "row", "assertion failed: [[1 2.5 0.1]...] [-1 2 3...]" },
    { "kinds", "assertion failed: [x = ] [1 0] [] [1.5] [18446744073709551615] [(1,-2)] [0.1]" },
  };
  FOR_LEVELS(level)
  {
    ts t;
    vk_open(&t, level, ASSERTS);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
      CHECK_OK(assert_of(&t, wanted[i][0], true, 0), &t.err);
      CHECK_INT(assert_of(&t, wanted[i][0], false, 0), TN_INVALID_ARGUMENT);
      CHECK_CONTAINS(tn_error_message(&t.err), wanted[i][0]);
      CHECK_CONTAINS(tn_error_message(&t.err), wanted[i][1]);
    }
    CHECK_INT(assert_of(&t, "few", true, 1), TN_INVALID_ARGUMENT);
    CHECK_CONTAINS(tn_error_message(&t.err), "input 0 has shape [1], wanted rank 0");
    vk_fini(&t);
  }
}

/* ---- printing ---- */

static struct {
  char text[2][1000]; /* standard output, standard error */
  size_t n[2];
} printed;

static void keep(void *user, int32_t stream, const char *text, size_t length)
{
  CHECK(user == &printed);
  int to = stream == TN_PRINT_STDERR;
  if (length >= sizeof printed.text[to] - printed.n[to]) return;
  memcpy(printed.text[to] + printed.n[to], text, length);
  printed.n[to] += length;
  printed.text[to][printed.n[to]] = 0;
}

static void start_printing(void)
{
  memset(&printed, 0, sizeof printed);
  tn_set_print_sink(keep, &printed);
}

#define PRINT(name, input, data, types, attrs) \
  NODE(name, "Print", "input: '" input "' " data, F TYPES("U", types) attrs)
#define PRINTS                                                                                 \
  DATA PRINT("plain", "many", "input: 'ints' input: 'text'", "type: DT_INT64 type: DT_STRING", \
             TEXT_ATTR("message", "got "))                                                     \
      PRINT("twice", "none", "", "", TEXT_ATTR("message", "twice") INT("first_n", 2))          \
          PRINT("never", "none", "", "", TEXT_ATTR("message", "never") INT("first_n", 0))      \
              NODE("sum", "Add", "input: 'plain' input: 'plain'", F)

static void messages__print_returns_its_input(void)
{
  FOR_LEVELS(level)
  {
    ts t;
    vk_open(&t, level, PRINTS);
    start_printing();
    CHECK_FLOATS(&t, "plain", 1, 2.5f, 0.1f, 16777216, -4, 6);
    CHECK_STR(printed.text[1], "got [-1 2 3...][x = ]\n");
    for (int i = 0; i < 4; i++) tn_tensor_unref(vk_fetch(&t, "twice"));
    tn_tensor_unref(vk_fetch(&t, "never"));
    CHECK_STR(printed.text[1], "got [-1 2 3...][x = ]\ntwice\ntwice\n");
    CHECK_FLOATS(&t, "sum", 2, 5, 0.2f, 33554432, -8, 12);
    CHECK_STR(printed.text[0], "");
    tn_set_print_sink(NULL, NULL);
    vk_fini(&t);
  }
}

#define STREAM(name, attrs) NODE(name, "PrintV2", "input: 'text'", attrs)
#define STREAMS                                                                                                   \
  DATA STREAM("err", "") STREAM("out", TEXT_ATTR("output_stream", "stdout") TEXT_ATTR("end", "!"))                \
  STREAM("warn", TEXT_ATTR("output_stream", "log(warning)")) STREAM("bad", TEXT_ATTR("output_stream", "nowhere")) \
  STREAM("lost", TEXT_ATTR("output_stream", "file:///nonexistent/folder/x"))                                      \
  ANY("s", "DT_STRING") NODE("vector", "PrintV2", "input: 's'", "")

static char logged[200];
static void keep_line(void *user, int32_t level, const char *line)
{
  (void)user;
  snprintf(logged, sizeof logged, "%d %s", (int)level, line);
}

static void messages__a_text_is_written_to_its_destination(void)
{
  ts t;
  ops_open_text_in(&t, "/nonexistent", STREAMS);
  start_printing();
  CHECK_OK(vk_target(&t, "err"), &t.err);
  CHECK_OK(vk_target(&t, "out"), &t.err);
  CHECK_STR(printed.text[1], "x = \n");
  CHECK_STR(printed.text[0], "x = !");
  tn_set_log_sink(keep_line, NULL);
  CHECK_OK(vk_target(&t, "warn"), &t.err);
  tn_set_log_sink(NULL, NULL);
  CHECK_STR(logged, "1 x = ");
  CHECK_INT(vk_target(&t, "bad"), TN_INVALID_ARGUMENT);
  CHECK_CONTAINS(tn_error_message(&t.err), "nowhere");
  CHECK_INT(vk_target(&t, "lost"), TN_NOT_FOUND);
  CHECK_CONTAINS(tn_error_message(&t.err), "/nonexistent/folder/x");
  int64_t two = 2;
  const char *s = "s", *vector = "vector", *const texts[] = { "a", "b" };
  tn_tensor *strings = NULL;
  REQUIRE_OK(tn_tensor_from_strings(&two, 1, texts, NULL, &strings, NULL), NULL);
  CHECK_INT(tn_session_run(t.session, NULL, &s, &strings, 1, NULL, NULL, 0, &vector, 1, NULL, &t.err),
            TN_INVALID_ARGUMENT);
  tn_tensor_unref(strings);
  tn_set_print_sink(NULL, NULL);
  vk_fini(&t);
}

static void messages__text_is_appended_to_a_file(void)
{
  char path[300], text[1000], found[64] = "";
  snprintf(path, sizeof path, "%s/lines", tap_scratch_dir());
  snprintf(text, sizeof text,
           TENSOR("text", "DT_STRING", "", "string_val: 'line'") "node { name: 'file' op: 'PrintV2' input: 'text' attr "
                                                                 "{ key: 'output_stream' value { s: 'file://%s' } } }",
           path);
  ts t;
  vk_open(&t, 1, text);
  CHECK_STATUS(vk_target(&t, "file"), TN_PERMISSION_DENIED, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), path);
  CHECK_CONTAINS(tn_error_message(&t.err), "the session option write_folders allows no folder");
  vk_fini(&t);
  ops_open_text_in(&t, tap_scratch_dir(), text);
  for (int i = 0; i < 3; i++) CHECK_OK(vk_target(&t, "file"), &t.err);
  FILE *file = fopen(path, "r");
  REQUIRE_PTR(file);
  CHECK_INT(fread(found, 1, sizeof found - 1, file), 15);
  fclose(file);
  CHECK_STR(found, "line\nline\nline\n");
  vk_fini(&t);
}

/* ---- lack of memory ---- */

#define LIFE                                                                                             \
  INTS("i", "", "int_val: 1") TENSOR("text", "DT_STRING", "", "string_val: 'abc'")                       \
  TENSOR("yes", "DT_BOOL", "", "bool_val: true") TENSOR("two", "DT_FLOAT", "", "float_val: 2")           \
  NODE("read", "Print", "input: 'two' input: 'text'", F TYPES("U", "type: DT_STRING"))                   \
  NODE("set", "PrintV2", "input: 'text'", "")                                                            \
  NODE("add", "Assert", "input: 'yes' input: 'i'", TYPES("T", "type: DT_INT32"))

static void messages__survive_every_failed_allocation(void) /* S-CAN-13 */
{
  start_printing();
  tn_test_oom_sweep(vk_whole_life, (void *)LIFE);
  tn_set_print_sink(NULL, NULL);
}

TAP_MAIN(
    TAP_TEST(messages__an_assertion_shows_its_data),
    TAP_TEST(messages__print_returns_its_input),
    TAP_TEST(messages__a_text_is_written_to_its_destination),
    TAP_TEST(messages__text_is_appended_to_a_file),
    TAP_TEST(messages__survive_every_failed_allocation))
