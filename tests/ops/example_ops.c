/* SPDX-License-Identifier: Apache-2.0 */
/* Serialized tf.Examples and sparse tensors as a program sees them: which features are found, padding, errors that name
 * the example and the key, hostile messages, and lack of memory. Recorded cases check all forms of messages. */
#include "conformance/support/op_kit.h"

#include <stdio.h>
#include <string.h>

#define LIST(key, items) "attr { key: '" key "' value { list { " items " } } }"
#define STRINGS(name, shape, values) TENSOR(name, "DT_STRING", shape, values)
#define KEY(name, text) STRINGS(name, "", "string_val: '" text "'")

/* ---- messages ---- */

typedef struct message {
  char data[2000];
  size_t n;
} message;

static void put(message *m, const void *data, size_t n)
{
  REQUIRE(m->n + n <= sizeof m->data);
  memcpy(m->data + m->n, data, n);
  m->n += n;
}

static void put_byte(message *m, size_t byte) { put(m, &(uint8_t){ (uint8_t)byte }, 1); }

static void put_bytes(message *m, unsigned field, const void *data, size_t n)
{
  put_byte(m, field << 3 | 2);
  if (n >= 0x80) put_byte(m, 0x80 | (n & 0x7f));
  put_byte(m, n >= 0x80 ? n >> 7 : n);
  put(m, data, n);
}

static void put_message(message *m, unsigned field, const message *inner)
{
  put_bytes(m, field, inner->data, inner->n);
}

/* Features of small numbers, each with its tag or all in one run. */
static message ints(int n, const int *values, bool packed)
{
  message run = { .n = 0 }, list = { .n = 0 }, feature = { .n = 0 };
  for (int i = 0; i < n; i++) {
    if (!packed) put_byte(&run, 1 << 3);
    put_byte(&run, (size_t)values[i]);
  }
  if (packed) put_message(&list, 1, &run);
  put_message(&feature, 3, packed ? &list : &run);
  return feature;
}

static message floats(int n, const float *values)
{
  message list = { .n = 0 }, feature = { .n = 0 };
  put_bytes(&list, 1, values, (size_t)n * sizeof *values);
  put_message(&feature, 2, &list);
  return feature;
}

static message text(const char *value)
{
  message list = { .n = 0 }, feature = { .n = 0 };
  put_bytes(&list, 1, value, strlen(value));
  put_message(&feature, 1, &list);
  return feature;
}

/* Adds an entry to a map. */
static void put_entry(message *map, const char *key, message value)
{
  message entry = { .n = 0 };
  put_bytes(&entry, 1, key, strlen(key));
  put_message(&entry, 2, &value);
  put_message(map, 1, &entry);
}

static message example(const message *features)
{
  message m = { .n = 0 };
  put_message(&m, 1, features);
  return m;
}

#define INTS_OF(packed, ...) ints(sizeof((int[]){ __VA_ARGS__ }) / sizeof(int), (int[]){ __VA_ARGS__ }, packed)

/* ---- steps ---- */

/* Runs one node for messages, as a scalar if n is 0. */
static tn_status run(ts *t, const char *node, int n, const message *messages, tn_tensor **out, size_t n_out)
{
  char names[16][24];
  const char *fetches[16], *feed = "x:0";
  int64_t dim = n;
  tn_tensor *x;
  REQUIRE_OK(tn_tensor_create(TN_STRING, &dim, n > 0, &x, &t->err), &t->err);
  for (int i = 0; i == 0 || i < n; i++)
    REQUIRE_OK(tn_tensor_set_string(x, i, messages[i].data, messages[i].n, &t->err), &t->err);
  for (size_t i = 0; i < n_out; i++) {
    snprintf(names[i], sizeof names[i], "%s:%d", node, (int)i);
    fetches[i] = names[i];
  }
  tn_status st = tn_session_run(t->session, NULL, &feed, &x, 1, fetches, out, n_out, NULL, 0, NULL, &t->err);
  tn_tensor_unref(x);
  return st;
}

static void drop(tn_tensor **out, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    tn_tensor_unref(out[i]);
    out[i] = NULL;
  }
}

/* A tensor as "[2,1]: 3 4". */
static const char *show(const tn_tensor *t)
{
  static char line[400];
  size_t at = (size_t)snprintf(line, sizeof line, "[");
  for (int32_t d = 0; d < tn_tensor_rank(t); d++)
    at += (size_t)snprintf(line + at, sizeof line - at, d > 0 ? ",%d" : "%d", (int)tn_tensor_dims(t)[d]);
  at += (size_t)snprintf(line + at, sizeof line - at, "]:");
  for (int64_t i = 0; i < tn_tensor_elements(t) && at < 350; i++) {
    const void *data = tn_tensor_data(t);
    const char *s = "";
    size_t n = 0;
    switch (tn_tensor_dtype(t)) {
    case TN_INT64: at += (size_t)snprintf(line + at, sizeof line - at, " %d", (int)((const int64_t *)data)[i]); break;
    case TN_INT32: at += (size_t)snprintf(line + at, sizeof line - at, " %d", (int)((const int32_t *)data)[i]); break;
    case TN_FLOAT: at += (size_t)snprintf(line + at, sizeof line - at, " %g", (double)((const float *)data)[i]); break;
    default:
      REQUIRE_OK(tn_tensor_get_string(t, i, &s, &n, NULL), NULL);
      at += (size_t)snprintf(line + at, sizeof line - at, " '%.*s'", (int)n, s);
    }
  }
  return line;
}

/* ---- graphs ---- */

#define PARSE_NODE(from)                                                                                             \
  NODE("parse", "ParseExampleV2", "input: '" from "' input: 'names' input: 'sparse' input: 'dense' input: 'ragged' " \
       "input: 'none' input: 'half' input: 'pad'",                                                                   \
       INT("num_sparse", 1) LIST("sparse_types", "type: DT_STRING") LIST("ragged_value_types", "type: DT_INT64")     \
       LIST("ragged_split_types", "type: DT_INT32") LIST("Tdense", "type: DT_INT64 type: DT_FLOAT type: DT_INT64")   \
       LIST("dense_shapes", "shape { dim { size: 1 } } shape { dim { size: 2 } } shape { dim { size: -1 } }"))
#define PARSE                                                                                      \
  ANY("x", "DT_STRING") STRINGS("names", D(0), "") TENSOR("none", "DT_INT64", D(0), "")            \
  TENSOR("half", "DT_FLOAT", D(2), "float_val: 0.5") TENSOR("pad", "DT_INT64", "", "int64_val: 7") \
  STRINGS("sparse", D(1), "string_val: 's'") STRINGS("ragged", D(1), "string_val: 'r'")            \
  STRINGS("dense", D(3), "string_val: 'd' string_val: 'f' string_val: 'v'")                        \
  PARSE_NODE("x")

enum { INDICES, VALUES, SHAPE, NUMBER, PAIR, PADDED, RAGGED, SPLITS, N_PARSED };

static message usual(int number)
{
  message f = { .n = 0 };
  put_entry(&f, "d", ints(1, &number, true));
  return f;
}

/* ---- tests ---- */

static void example_ops__features_become_tensors(void)
{
  ts t;
  tn_tensor *out[N_PARSED] = { NULL };
  message f[2] = { usual(1), usual(2) }, x[2];
  put_entry(&f[0], "s", text("left"));
  put_entry(&f[0], "v", INTS_OF(true, 3, 4));
  put_entry(&f[0], "unknown", text("ignored"));
  put_entry(&f[1], "r", INTS_OF(false, 5, 6, 9));
  put_entry(&f[1], "f", floats(2, (float[]){ 1, -2 }));
  for (int i = 0; i < 2; i++) x[i] = example(&f[i]);
  ops_open_text(&t, PARSE);
  CHECK_OK(run(&t, "parse", 2, x, out, N_PARSED), &t.err);
  CHECK_STR(show(out[INDICES]), "[1,2]: 0 0");
  CHECK_STR(show(out[VALUES]), "[1]: 'left'");
  CHECK_STR(show(out[SHAPE]), "[2]: 2 1");
  CHECK_STR(show(out[NUMBER]), "[2,1]: 1 2");
  CHECK_STR(show(out[PAIR]), "[2,2]: 0.5 0.5 1 -2");
  CHECK_STR(show(out[PADDED]), "[2,2]: 3 4 7 7");
  CHECK_STR(show(out[RAGGED]), "[3]: 5 6 9");
  CHECK_STR(show(out[SPLITS]), "[3]: 0 0 3");
  drop(out, N_PARSED);
  CHECK_OK(run(&t, "parse", 0, x, out, N_PARSED), &t.err); /* one message, which need not be a batch */
  CHECK_STR(show(out[INDICES]), "[1,1]: 0");
  CHECK_STR(show(out[NUMBER]), "[1]: 1");
  CHECK_STR(show(out[PADDED]), "[2]: 3 4");
  CHECK_STR(show(out[SPLITS]), "[0]:");
  drop(out, N_PARSED);
  ts_fini(&t);
}

static void example_ops__of_a_key_that_occurs_twice_the_last_entry_counts(void)
{
  ts t;
  tn_tensor *out[N_PARSED] = { NULL };
  message f = usual(1), more = usual(2), empty = { .n = 0 }, x;
  put_entry(&f, "s", text("first"));
  put_entry(&f, "s", text("second"));
  put_entry(&more, "d", empty); /* not a number, so the one before counts */
  put_entry(&more, "r", INTS_OF(true, 5));
  put_entry(&more, "r", empty); /* no numbers */
  x = example(&f);
  put_message(&x, 1, &more); /* two messages one after the other are one */
  ops_open_text(&t, PARSE);
  CHECK_OK(run(&t, "parse", 1, &x, out, N_PARSED), &t.err);
  CHECK_STR(show(out[VALUES]), "[1]: 'second'");
  CHECK_STR(show(out[NUMBER]), "[1,1]: 2");
  CHECK_STR(show(out[RAGGED]), "[0]:");
  drop(out, N_PARSED);
  ts_fini(&t);
}

static void check_error(ts *t, message bad, const char *wanted)
{
  tn_tensor *out[N_PARSED] = { NULL };
  message good = usual(1), x[3];
  x[0] = example(&good);
  x[1] = example(&bad);
  x[2] = x[1];
  CHECK_STATUS(run(t, "parse", 3, x, out, N_PARSED), TN_INVALID_ARGUMENT, &t->err);
  CHECK_CONTAINS(tn_error_message(&t->err), wanted);
  CHECK_NULL(out[0]);
}

static void example_ops__errors_name_the_example_and_the_key(void)
{
  ts t;
  message none = { .n = 0 }, f = { .n = 0 }, many = { .n = 0 }, odd = usual(1);
  ops_open_text(&t, PARSE);
  check_error(&t, none, "example 1: key 'd' (int64) is missing, and has no default");
  put_entry(&f, "d", text("one"));
  check_error(&t, f, "example 1: key 'd' has values of string, wanted int64");
  put_entry(&many, "d", INTS_OF(true, 1, 2));
  check_error(&t, many, "example 1: key 'd' has 2 values of int64, wanted 1");
  put_entry(&odd, "s", (message){ "\x22\0", 2 });
  check_error(&t, odd, "example 1: key 's' has a list of an unknown type");
  ts_fini(&t);
}

/* A message that was cut, or whose lengths lie, gives a status, and takes no more memory than it has bytes. */
static void example_ops__damaged_messages_are_refused(void)
{
  ts t;
  tn_tensor *out[N_PARSED] = { NULL };
  message f = usual(1), x;
  put_entry(&f, "s", text("text"));
  put_entry(&f, "f", floats(2, (float[]){ 1, 2 }));
  put_entry(&f, "v", INTS_OF(false, 1, 2, 3));
  x = example(&f);
  ops_open_text(&t, PARSE);
  for (size_t i = 0; i < x.n; i++) {
    message cut = x, wrong = x;
    cut.n = i;
    tn_status st = run(&t, "parse", 1, &cut, out, N_PARSED);
    CHECK_MSG(st == TN_OK || st == TN_INVALID_ARGUMENT, "cut to %d: %s", (int)i, tn_status_name(st));
    drop(out, N_PARSED);
    wrong.data[i] = (char)0xff;
    st = run(&t, "parse", 0, &wrong, out, N_PARSED);
    CHECK_MSG(st == TN_OK || st == TN_INVALID_ARGUMENT, "byte %d: %s", (int)i, tn_status_name(st));
    drop(out, N_PARSED);
  }
  static const char huge[] = "\x0a\xff\xff\xff\xff\x0f\x0a\x0f\x0a\x01"
                             "f\x12\x0a\x12\x08\x0a\xfc\xff\xff\xff\x07"
                             "abc";
  memcpy(x.data, huge, sizeof huge - 1);
  x.n = sizeof huge - 1;
  CHECK_STATUS(run(&t, "parse", 1, &x, out, N_PARSED), TN_INVALID_ARGUMENT, &t.err);
  ts_fini(&t);
}

static void example_ops__large_batches_keep_their_order(void)
{
  enum { N = 3000 };
  static message x[N];
  ts t;
  tn_tensor *out[N_PARSED] = { NULL };
  for (int i = 0; i < N; i++) {
    message f = usual(i % 100);
    put_entry(&f, "r", ints(i % 3, (int[]){ i % 128, 1 }, i % 2));
    x[i] = example(&f);
  }
  ops_open_text(&t, PARSE);
  REQUIRE_OK(run(&t, "parse", N, x, out, N_PARSED), &t.err);
  const int64_t *numbers = tn_tensor_data(out[NUMBER]), *values = tn_tensor_data(out[RAGGED]);
  const int32_t *splits = tn_tensor_data(out[SPLITS]);
  for (int i = 0; i < N; i++) {
    REQUIRE_INT(numbers[i], i % 100);
    REQUIRE_INT(splits[i + 1] - splits[i], i % 3);
    if (i % 3 > 0) REQUIRE_INT(values[splits[i]], i % 128);
  }
  drop(out, N_PARSED);
  ts_fini(&t);
}

static void example_ops__shapes_are_known_as_far_as_messages_do_not_decide(void)
{
  ts t;
  ops_open_text(&t, PARSE NODE("one", "ParseSingleExample", "input: 'x' input: 'half'",
                               INT("num_sparse", 1) LIST("sparse_keys", "s: 's'") LIST("dense_keys", "s: 'f'")
                               LIST("sparse_types", "type: DT_INT64") LIST("Tdense", "type: DT_FLOAT")
                               LIST("dense_shapes", "shape { dim { size: 2 } }")));
  CHECK_STR(ops_shape_of(&t, "parse", VALUES), "[?]");
  CHECK_STR(ops_shape_of(&t, "parse", NUMBER), "?"); /* a batch, or one message */
  CHECK_STR(ops_shape_of(&t, "parse", RAGGED), "[?]");
  CHECK_STR(ops_shape_of(&t, "one", 0), "[?,1]");
  CHECK_STR(ops_shape_of(&t, "one", 2), "[1]");
  CHECK_STR(ops_shape_of(&t, "one", 3), "[2]");
  ts_fini(&t);
}

/* ---- sequences ---- */

#define SEQUENCES                                                                                                \
  ANY("x", "DT_STRING") STRINGS("names", D(0), "") STRINGS("keys", D(1), "string_val: 'l'")                      \
  STRINGS("none", D(0), "") TENSOR("may", "DT_BOOL", D(1), "bool_val: true")                                     \
  NODE("parse", "ParseSequenceExampleV2", "input: 'x' input: 'names' input: 'none' input: 'none' input: 'none' " \
       "input: 'none' input: 'keys' input: 'none' input: 'may'",                                                 \
       INT("Nfeature_list_dense", 1) LIST("feature_list_dense_types", "type: DT_INT64")                          \
       LIST("feature_list_dense_shapes", "shape { dim { size: 2 } }"))

static message sequence(int rows, int width)
{
  message list = { .n = 0 }, lists = { .n = 0 }, m = { .n = 0 };
  for (int i = 0; i < rows; i++) {
    message row = ints(width, (int[]){ i, i + 10, 0 }, true);
    put_message(&list, 1, &row);
  }
  put_entry(&lists, "l", list);
  put_message(&m, 2, &lists);
  return m;
}

static void example_ops__lists_are_padded_to_the_longest(void)
{
  ts t;
  tn_tensor *out[2] = { NULL };
  message x[3] = { sequence(2, 2), { .n = 0 }, sequence(1, 2) };
  ops_open_text(&t, SEQUENCES);
  CHECK_OK(run(&t, "parse", 3, x, out, 2), &t.err);
  CHECK_STR(show(out[0]), "[3,2,2]: 0 10 1 11 0 0 0 0 0 10 0 0");
  CHECK_STR(show(out[1]), "[3]: 2 0 1");
  drop(out, 2);
  x[1] = sequence(2, 3);
  CHECK_STATUS(run(&t, "parse", 3, x, out, 2), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "example 1: key 'l' has 3 values in row 0, wanted 2");
  ts_fini(&t);
}

/* ---- JSON ---- */

static void example_ops__json_errors_name_the_byte(void)
{
  static const struct { const char *text, *error; } bad[] = {
    { "{\"features\": 2", "byte 13: an unexpected character" },
    { "{\"features\": {}} x", "byte 17: there is more after the object" },
    { "{\"features\": {\"feature\": {\"a\": {}, \"a\": {}}}}", "a key occurs twice" },
    { "{\"features\": {\"feature\": {\"a\": {\"int64List\": {\"value\": [1.5]}}}}}", "a number is no integer" },
    { "{\"features\": {\"feature\": {\"a\": {\"bytesList\": {\"value\": [\"_\"]}}}}}", "a text is not base64" },
  };
  ts t;
  tn_tensor *out = NULL;
  ops_open_text(&t, ANY("x", "DT_STRING") NODE("json", "DecodeJSONExample", "input: 'x'", ""));
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    message m = { .n = 0 };
    put(&m, bad[i].text, strlen(bad[i].text));
    CHECK_STATUS(run(&t, "json", 1, &m, &out, 1), TN_INVALID_ARGUMENT, &t.err);
    CHECK_CONTAINS(tn_error_message(&t.err), bad[i].error);
  }
  /* [[[[... is flattened as far as protobuf does it, and no further */
  message deep = { .n = 0 };
  static const char head[] = "{\"features\":{\"feature\":{\"a\":{\"int64List\":{\"value\":";
  put(&deep, head, sizeof head - 1);
  for (int i = 0; i < 1500; i++) put_byte(&deep, '[');
  CHECK_STATUS(run(&t, "json", 1, &deep, &out, 1), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "arrays are nested too deeply");
  ts_fini(&t);
}

/* ---- sparse tensors ---- */

#define SPARSE                                                                                                 \
  TENSOR("indices", "DT_INT64", D(3) D(2), "int64_val: [0, 1, 0, 2, 2, 0]")                                    \
  STRINGS("values", D(3), "string_val: 'a' string_val: '' string_val: 'text that is longer than a short one'") \
  TENSOR("shape", "DT_INT64", D(2), "int64_val: [3, 4]")
#define SERIALIZE(name, op, out)                                    \
  NODE(name, op, "input: 'indices' input: 'values' input: 'shape'", \
       TYPE("T", "DT_STRING") TYPE("out_type", out))
#define DESERIALIZE(name, from, in) \
  NODE(name, "DeserializeSparse", "input: '" from "'", TYPE("dtype", "DT_STRING") TYPE("Tserialized", in))

static void check_sparse(ts *t, const char *node)
{
  tn_tensor *out[3] = { NULL };
  message none = { .n = 0 };
  CHECK_OK(run(t, node, 0, &none, out, 3), &t->err);
  if (out[0] == NULL) return;
  CHECK_STR(show(out[0]), "[3,2]: 0 1 0 2 2 0");
  CHECK_STR(show(out[1]), "[3]: 'a' '' 'text that is longer than a short one'");
  CHECK_STR(show(out[2]), "[2]: 3 4");
  drop(out, 3);
}

static void example_ops__sparse_tensors_survive_in_both_forms(void)
{
  ts t;
  tn_tensor *out[3] = { NULL };
  message none = { .n = 0 };
  ops_open_text(&t, ANY("x", "DT_STRING") SPARSE SERIALIZE("one", "SerializeSparse", "DT_STRING")
                SERIALIZE("boxed", "SerializeSparse", "DT_VARIANT")
                SERIALIZE("rows", "SerializeManySparse", "DT_STRING")
                SERIALIZE("boxes", "SerializeManySparse", "DT_VARIANT") DESERIALIZE("a", "one", "DT_STRING")
                DESERIALIZE("b", "boxed", "DT_VARIANT") DESERIALIZE("c", "rows", "DT_STRING")
                DESERIALIZE("d", "boxes", "DT_VARIANT")
                NODE("other", "DeserializeSparse", "input: 'boxes'",
                     TYPE("dtype", "DT_FLOAT") TYPE("Tserialized", "DT_VARIANT")));
  check_sparse(&t, "a");
  check_sparse(&t, "b");
  check_sparse(&t, "c");
  check_sparse(&t, "d");
  CHECK_STATUS(run(&t, "other", 0, &none, out, 3), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "the values of sparse tensor 0 are of string and rank 1, wanted float32");
  ts_fini(&t);
}

/* ---- lack of memory ---- */

#define ONE_OF_EACH                                                                                              \
  KEY("x", "{features:{feature:{d:{int64List:{value:5}},s:{bytesList:{value:[\"dGV4dCB0aGF0IGlzIGxvbmdlciB0aGFu" \
           "IGEgc2hvcnQgb25l\"]}}}}}")                                                                           \
  NODE("json", "DecodeJSONExample", "input: 'x'", "") STRINGS("names", D(0), "")                                 \
  TENSOR("none", "DT_INT64", D(0), "") TENSOR("half", "DT_FLOAT", D(2), "float_val: 0.5")                        \
  TENSOR("pad", "DT_INT64", "", "int64_val: 7") STRINGS("sparse", D(1), "string_val: 's'")                       \
  STRINGS("ragged", D(1), "string_val: 'r'")                                                                     \
  STRINGS("dense", D(3), "string_val: 'd' string_val: 'f' string_val: 'v'") PARSE_NODE("json")                   \
  SPARSE SERIALIZE("rows", "SerializeManySparse", "DT_STRING")                                                   \
  SERIALIZE("boxes", "SerializeManySparse", "DT_VARIANT") DESERIALIZE("c", "rows", "DT_STRING")                  \
  DESERIALIZE("d", "boxes", "DT_VARIANT")

/* A new session each time: an old one keeps memory for its next step. */
static tn_status open_and_run(void *arg)
{
  static const char *const names[] = { "parse:0", "parse:1", "parse:4", "parse:5", "parse:6", "d:0", "c:1", "json:0" };
  enum { N = sizeof names / sizeof names[0] };
  tn_session *session = NULL;
  tn_tensor *out[N] = { NULL };
  tn_status st = ts_open_isolated(arg, &session);
  if (st == TN_OK) st = tn_session_run(session, NULL, NULL, NULL, 0, names, out, N, NULL, 0, NULL, NULL);
  for (int k = 0; k < N; k++) tn_tensor_unref(out[k]);
  tn_session_destroy(session);
  return st;
}

static void example_ops__nothing_leaks_without_memory(void)
{
  static char text[] = ONE_OF_EACH;
  REQUIRE_INT(open_and_run(text), TN_OK);
  tn_test_oom_sweep(open_and_run, text);
}

TAP_MAIN(
  TAP_TEST(example_ops__features_become_tensors),
  TAP_TEST(example_ops__of_a_key_that_occurs_twice_the_last_entry_counts),
  TAP_TEST(example_ops__errors_name_the_example_and_the_key),
  TAP_TEST(example_ops__damaged_messages_are_refused),
  TAP_TEST(example_ops__large_batches_keep_their_order),
  TAP_TEST(example_ops__shapes_are_known_as_far_as_messages_do_not_decide),
  TAP_TEST(example_ops__lists_are_padded_to_the_longest),
  TAP_TEST(example_ops__json_errors_name_the_byte),
  TAP_TEST(example_ops__sparse_tensors_survive_in_both_forms),
  TAP_TEST(example_ops__nothing_leaks_without_memory))
