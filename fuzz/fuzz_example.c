/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of ops that extract features: tf.Example and tf.SequenceExample, also as JSON, and serialized sparse
 * tensors. The first byte is the op; the rest is one message, or several separated by bytes 0xfe. Each gives tensors or
 * a status with a message. Indices are inside their shape and row splits end at the last value. */
#include <fuzz/bytes.h>
#include <fuzz/runtime.h>

#include <stdbool.h>
#include <stdio.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MOST_MESSAGES 6
#define MOST_OUTPUTS 42
#define SEPARATOR 0xfe

/* ---- the graph ---- */

#define NODE(name, op, inputs, attrs) "node { name: '" name "' op: '" op "' " inputs attrs "}\n"
#define TYPE(key, type) "attr { key: '" key "' value { type: " type " } } "
#define INT(key, n) "attr { key: '" key "' value { i: " #n " } } "
#define LIST(key, items) "attr { key: '" key "' value { list { " items " } } } "
#define CONST(name, dtype, shape, values)                                                           \
  NODE(name, "Const", "", TYPE("dtype", dtype) "attr { key: 'value' value { tensor { dtype: " dtype \
       " tensor_shape { " shape " } " values " } } } ")
#define TEXTS(name, n, values) CONST(name, "DT_STRING", "dim { size: " #n " }", values)
#define TEXT(name, value) CONST(name, "DT_STRING", "", "string_val: '" value "'")
#define IN(name) "input: '" name "' "

#define TYPES "type: DT_INT64 type: DT_FLOAT type: DT_STRING "
#define SHAPES "shape { dim { size: 2 } } shape { } shape { dim { size: 1 } dim { size: 1 } } "
#define DEFAULTS IN("none") IN("half") IN("word")
#define EXAMPLE_TYPES LIST("Tdense", TYPES "type: DT_INT64 ") LIST("sparse_types", TYPES) \
  LIST("dense_shapes", SHAPES "shape { dim { size: -1 } dim { size: 2 } } ")
#define SEQUENCE_TYPES LIST("Tcontext_dense", TYPES) LIST("context_sparse_types", TYPES) \
  LIST("context_dense_shapes", SHAPES) LIST("feature_list_dense_types", TYPES)           \
  LIST("feature_list_sparse_types", TYPES) LIST("feature_list_dense_shapes", SHAPES)     \
  INT("Ncontext_sparse", 3) INT("Nfeature_list_sparse", 3) INT("Nfeature_list_dense", 3)
#define RAGGED_TYPES(prefix) LIST(prefix "ragged_value_types", TYPES) \
  LIST(prefix "ragged_split_types", "type: DT_INT64 type: DT_INT32 type: DT_INT64 ")

#define SPARSE_KEYS IN("ks") IN("kt") IN("ku")
#define DENSE_KEYS IN("kd") IN("ke") IN("kf")

static const char graph_text[] =
  NODE("x", "Placeholder", "", TYPE("dtype", "DT_STRING"))
  TEXTS("names", 0, "")
  CONST("none", "DT_INT64", "dim { size: 0 }", "")
  CONST("half", "DT_FLOAT", "", "float_val: 0.5")
  CONST("word", "DT_STRING", "dim { size: 1 } dim { size: 1 }", "string_val: 'w'")
  CONST("pad", "DT_INT64", "", "int64_val: 7")
  CONST("may_miss", "DT_BOOL", "dim { size: 3 }", "bool_val: true bool_val: false bool_val: true")
  TEXTS("may_miss_keys", 2, "string_val: 'd' string_val: 'f'")
  TEXT("ks", "s") TEXT("kt", "t") TEXT("ku", "u") TEXT("kd", "d") TEXT("ke", "e") TEXT("kf", "f") TEXT("kv", "v")
  TEXTS("sparse", 3, "string_val: 's' string_val: 't' string_val: 'u'")
  TEXTS("dense", 4, "string_val: 'd' string_val: 'e' string_val: 'f' string_val: 'v'")
  TEXTS("fixed", 3, "string_val: 'd' string_val: 'e' string_val: 'f'")
  TEXTS("ragged", 3, "string_val: 'p' string_val: 'q' string_val: 'r'")
  NODE("v1", "ParseExample", IN("x") IN("names") SPARSE_KEYS DENSE_KEYS IN("kv") DEFAULTS IN("pad"),
       EXAMPLE_TYPES INT("Nsparse", 3) INT("Ndense", 4))
  NODE("v2", "ParseExampleV2", IN("x") IN("names") IN("sparse") IN("dense") IN("ragged") DEFAULTS IN("pad"),
       EXAMPLE_TYPES INT("num_sparse", 3) RAGGED_TYPES(""))
  NODE("one", "ParseSingleExample", IN("x") DEFAULTS IN("pad"),
       EXAMPLE_TYPES INT("num_sparse", 3) LIST("sparse_keys", "s: 's' s: 't' s: 'u'")
       LIST("dense_keys", "s: 'd' s: 'e' s: 'f' s: 'v'"))
  NODE("sequence", "ParseSequenceExampleV2", IN("x") IN("names") IN("sparse") IN("fixed") IN("ragged") IN("sparse")
       IN("fixed") IN("ragged") IN("may_miss") DEFAULTS,
       SEQUENCE_TYPES RAGGED_TYPES("context_") RAGGED_TYPES("feature_list_"))
  NODE("one_sequence", "ParseSingleSequenceExample", IN("x") IN("may_miss_keys") SPARSE_KEYS DENSE_KEYS SPARSE_KEYS
       DENSE_KEYS DEFAULTS IN("names"), SEQUENCE_TYPES INT("Ncontext_dense", 3))
  NODE("json", "DecodeJSONExample", IN("x"), "")
  NODE("from_json", "ParseExampleV2", IN("json") IN("names") IN("sparse") IN("dense") IN("ragged") DEFAULTS IN("pad"),
       EXAMPLE_TYPES INT("num_sparse", 3) RAGGED_TYPES(""))
  NODE("texts", "DeserializeSparse", IN("x"), TYPE("dtype", "DT_STRING"))
  NODE("ints", "DeserializeSparse", IN("x"), TYPE("dtype", "DT_INT64"));

/* A node to run, and where its outputs are sparse tensors: indices from `sparse` on, `n_sparse` of each part. */
typedef struct target {
  const char *name;
  int n, sparse, n_sparse, lists, n_lists; /* outputs; and those of feature lists, 0 = none */
  int splits, inner; /* the first of three outputs of row splits, 0 = none: their values are three, or six, before */
  bool scalar;       /* one message; else a vector of them */
} target;

static const target targets[] = {
  { "v1", 13, 0, 3, 0, 0, 0, 0, false },
  { "v2", 19, 0, 3, 0, 0, 16, 0, false },
  { "v2", 19, 0, 3, 0, 0, 0, 0, true },
  { "one", 13, 0, 3, 0, 0, 0, 0, true },
  { "sequence", 42, 0, 3, 18, 3, 15, 39, false },
  { "sequence", 42, 0, 3, 18, 3, 0, 39, true },
  { "one_sequence", 24, 0, 3, 12, 3, 0, 0, true },
  { "from_json", 19, 0, 3, 0, 0, 16, 0, false },
  { "texts", 3, 0, 0, 0, 0, 0, 0, false },
  { "ints", 3, 0, 0, 0, 0, 0, 0, false },
};
#define N_TARGETS (sizeof targets / sizeof *targets)

static tn_graph *graph;
static tn_session *session;

static void quiet_log(void *user, int32_t level, const char *line) { (void)user, (void)level, (void)line; }

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
  tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  tn_error err = TN_ERROR_INIT;
  (void)argc, (void)argv;
  fuzz_limit_memory((size_t)64 << 20);
  fuzz_make_options();
  tn_set_log_sink(quiet_log, NULL);
  if (tn_graph_create(&graph, NULL) != TN_OK) abort();
  if (tn_graph_import(graph, graph_text, sizeof graph_text - 1, &options, &err) != TN_OK) {
    fprintf(stderr, "%s\n", tn_error_message(&err));
    abort();
  }
  if (tn_session_create(options_of[1], &session, NULL) != TN_OK || tn_session_set_graph(session, graph, NULL) != TN_OK)
    abort();
  return 0;
}

/* ---- messages ---- */

/* A scalar, a vector of the messages, or rows of three. */
static tn_tensor *messages(const uint8_t *data, size_t size, const target *t, bool rows)
{
  int64_t n = 1;
  tn_tensor *x;
  for (size_t i = 0; !t->scalar && i < size && n < MOST_MESSAGES; i++) n += data[i] == SEPARATOR;
  const int64_t dims[2] = { rows ? (n + 2) / 3 : n, 3 };
  int32_t rank = t->scalar ? 0 : 1;
  if (rows && n > 3) rank = 2;
  if (tn_tensor_create(TN_STRING, rows && n <= 3 ? dims + 1 : dims, rank, &x, NULL) != TN_OK) abort();
  for (int64_t i = 0; i < n; i++) {
    const uint8_t *end = i + 1 < n ? memchr(data, SEPARATOR, size) : NULL;
    size_t length = end != NULL ? (size_t)(end - data) : size;
    if (tn_tensor_set_string(x, i, data, length, NULL) != TN_OK) abort();
    if (end == NULL) break;
    data = end + 1, size -= length + 1;
  }
  return x;
}

/* ---- results ---- */

static int64_t dim(const tn_tensor *t, int d) { return tn_tensor_dims(t)[d]; }

static void check_sparse(tn_tensor *indices, tn_tensor *values, tn_tensor *shape)
{
  const int64_t *at = tn_tensor_data(indices), *dims = tn_tensor_data(shape);
  int64_t n = dim(values, 0), rank = dim(shape, 0);
  if (tn_tensor_rank(indices) != 2 || dim(indices, 0) != n || dim(indices, 1) != rank) abort();
  for (int64_t i = 0; i < n * rank; i++)
    if (at[i] < 0 || at[i] >= dims[i % rank]) abort();
}

static int64_t last_split(const tn_tensor *splits)
{
  int64_t n = dim(splits, 0) - 1;
  return tn_tensor_dtype(splits) == TN_INT64 ? ((int64_t *)tn_tensor_data(splits))[n]
                                             : ((int32_t *)tn_tensor_data(splits))[n];
}

static void check_results(const target *t, tn_tensor **out)
{
  for (int i = t->sparse; i < t->sparse + t->n_sparse; i++)
    check_sparse(out[i], out[i + t->n_sparse], out[i + 2 * t->n_sparse]);
  for (int i = t->lists; i < t->lists + t->n_lists; i++)
    check_sparse(out[i], out[i + t->n_lists], out[i + 2 * t->n_lists]);
  for (int i = t->splits; t->splits > 0 && i < t->splits + 3; i++)
    if (last_split(out[i]) != dim(out[i - 3], 0)) abort();
  for (int i = t->inner; t->inner > 0 && i < t->inner + 3; i++)
    if (last_split(out[i]) != dim(out[i - 6], 0)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  tn_error err = TN_ERROR_INIT;
  tn_tensor *out[MOST_OUTPUTS] = { NULL };
  char names[MOST_OUTPUTS][24];
  const char *fetches[MOST_OUTPUTS];
  if (size < 1) return 0;
  const target *t = &targets[data[0] % N_TARGETS];
  const char *x = "x:0";
  tn_tensor *message = messages(data + 1, size - 1, t, t->n == 3);
  for (int i = 0; i < t->n; i++) {
    snprintf(names[i], sizeof names[i], "%s:%d", t->name, i);
    fetches[i] = names[i];
  }
  tn_status st = tn_session_run(session, NULL, &x, &message, 1, fetches, out, (size_t)t->n, NULL, 0, NULL, &err);
  check_status(st, &err);
#ifdef FUZZ_SHOW
  fprintf(stderr, "%s: %s %s\n", t->name, tn_status_name(st), tn_error_message(&err));
#endif
  if (st != TN_OK && st != TN_INVALID_ARGUMENT && st != TN_RESOURCE_EXHAUSTED) abort();
  if (st == TN_OK) check_results(t, out);
  for (int i = 0; i < t->n; i++) tn_tensor_unref(out[i]);
  tn_tensor_unref(message);
  tn_error_clear(&err);
  return 0;
}
