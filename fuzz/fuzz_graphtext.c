/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs in text form, with structural mutations: a mutation deletes, duplicates, moves or swaps whole fields, or
 * gives one the value of another, so that most results are still valid text. Each text gives a graph or a status; a
 * graph is the same when written and read again; and each of its steps gives tensors or a status with a message. */
#include <fuzz/bytes.h>
#include <fuzz/runtime.h>

#include <stdbool.h>
#include <stdio.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned int seed);

#define MOST_FIELDS 4096
#define MOST_STEPS 6
#define MOST_FEEDS 8
#define MOST_FETCHES 6
#define DEPTH 64

static void quiet_log(void *user, int32_t level, const char *line) { (void)user, (void)level, (void)line; }
static void quiet_print(void *user, int32_t to, const char *text, size_t n)
{
  (void)user, (void)to, (void)text, (void)n;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
  (void)argc, (void)argv;
  fuzz_limit_memory((size_t)16 << 20);
  fuzz_make_options();
  tn_set_log_sink(quiet_log, NULL);
  tn_set_print_sink(quiet_print, NULL);
  return 0;
}

/* ---- the fields of a text ---- */

typedef struct field {
  size_t from, value, end; /* offsets of its name, of its value or '{', and after its last character */
  bool message;
} field;

typedef struct fields {
  field at[MOST_FIELDS];
  size_t n;
} fields;

static bool is_name(uint8_t c) { return (c | 32) >= 'a' ? (c | 32) <= 'z' || c == '_' : c == '_'; }
static bool is_space(uint8_t c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == ',' || c == ';'; }

static size_t skip_space(const uint8_t *text, size_t size, size_t at)
{
  while (at < size && is_space(text[at])) at++;
  return at;
}

static size_t skip_value(const uint8_t *text, size_t size, size_t at)
{
  if (at < size && (text[at] == '"' || text[at] == '\'')) {
    uint8_t quote = text[at++];
    while (at < size && text[at] != quote) at += text[at] == '\\' ? 2 : 1;
    return at < size ? at + 1 : size;
  }
  while (at < size && !is_space(text[at]) && text[at] != '}' && text[at] != '{') at++;
  return at;
}

/* Finds the fields in one pass; skips all other text. */
static void find_fields(const uint8_t *text, size_t size, fields *f)
{
  size_t open[DEPTH], depth = 0, at = 0;
  f->n = 0;
  while (at < size && f->n < MOST_FIELDS) {
    if (text[at] == '}') {
      at++;
      if (depth > 0) f->at[open[--depth]].end = at;
    } else if (!is_name(text[at])) {
      at++;
    } else {
      field *now = &f->at[f->n];
      *now = (field){ .from = at };
      while (at < size && (is_name(text[at]) || (text[at] >= '0' && text[at] <= '9'))) at++;
      at = skip_space(text, size, at);
      if (at < size && text[at] == ':') at = skip_space(text, size, at + 1);
      now->value = at;
      now->message = at < size && text[at] == '{';
      now->end = now->message ? size : skip_value(text, size, at);
      at = now->message ? at + 1 : now->end;
      if (now->message && depth < DEPTH) open[depth++] = f->n;
      f->n++;
    }
  }
}

/* ---- mutations ---- */

static uint32_t random_state;

static size_t below(size_t n)
{
  random_state = random_state * 1664525u + 1013904223u;
  return n == 0 ? 0 : (random_state >> 8) % n;
}

/* Replaces text[from, end) by `with`; false if it does not fit. */
static bool replace(uint8_t *text, size_t *size, size_t room, size_t from, size_t end, const void *with, size_t n)
{
  if (from > end || end > *size || *size - (end - from) + n > room) return false;
  memmove(text + from + n, text + end, *size - end);
  memcpy(text + from, with, n);
  *size = *size - (end - from) + n;
  return true;
}

static const char *const words[] = { "0",
                                     "1",
                                     "-1",
                                     "2147483647",
                                     "-9223372036854775808",
                                     "9223372036854775807",
                                     "1e300",
                                     "nan",
                                     "inf",
                                     "true",
                                     "DT_FLOAT",
                                     "DT_INT32",
                                     "DT_STRING",
                                     "DT_RESOURCE",
                                     "DT_FLOAT_REF",
                                     "DT_VARIANT",
                                     "\"\"",
                                     "\"^a\"",
                                     "\"a:1\"",
                                     "\"Switch\"",
                                     "\"Merge\"",
                                     "\"Enter\"",
                                     "\"Exit\"",
                                     "\"NextIteration\"",
                                     "\"Identity\"",
                                     "\"Const\"",
                                     "\"PartitionedCall\"",
                                     "\"While\"",
                                     "\"/device:CPU:1\"",
                                     "\"\\377\"" };

/* Gives a field the value of another one of the same kind, or a word. */
static bool change_value(uint8_t *text, size_t *size, size_t room, const fields *f, const field *to)
{
  const field *from = &f->at[below(f->n)];
  if (to->message != from->message || below(4) == 0) {
    const char *word = words[below(sizeof words / sizeof words[0])];
    return !to->message && replace(text, size, room, to->value, to->end, word, strlen(word));
  }
  size_t n = from->end - from->value;
  uint8_t *copy = malloc(n + 1);
  if (copy == NULL) return false;
  memcpy(copy, text + from->value, n);
  bool done = replace(text, size, room, to->value, to->end, copy, n);
  free(copy);
  return done;
}

/* Inserts a copy of a field before another one, with a newline between them. */
static bool copy_field(uint8_t *text, size_t *size, size_t room, const field *from, size_t to)
{
  size_t n = from->end - from->from;
  uint8_t *copy = malloc(n + 1);
  if (copy == NULL) return false;
  memcpy(copy, text + from->from, n);
  copy[n] = '\n';
  bool done = replace(text, size, room, to, to, copy, n + 1);
  free(copy);
  return done;
}

/* Lets libFuzzer mutate the bytes of one value; quoted names stay quoted. */
static bool change_bytes(uint8_t *text, size_t *size, size_t room, const field *of)
{
  uint8_t bytes[256];
  size_t n = of->end - of->value, quote = n >= 2 && text[of->value] == '"';
  if (of->message || n - 2 * quote > sizeof bytes / 2) return false;
  memcpy(bytes, text + of->value + quote, n - 2 * quote);
  size_t changed = LLVMFuzzerMutate(bytes, n - 2 * quote, sizeof bytes);
  return replace(text, size, room, of->value + quote, of->end - quote, bytes, changed);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned int seed)
{
  static fields f;
  random_state = seed;
  for (size_t n = 1 + below(3); n > 0; n--) {
    find_fields(data, size, &f);
    if (f.n == 0 || below(32) == 0) return LLVMFuzzerMutate(data, size, room);
    const field *of = &f.at[below(f.n)], *other = &f.at[below(f.n)];
    switch (below(6)) {
    case 0: replace(data, &size, room, of->from, of->end, "", 0); break;
    case 1: copy_field(data, &size, room, of, other->from); break;
    case 2: copy_field(data, &size, room, of, of->from); break;
    case 3: change_bytes(data, &size, room, of); break;
    default: change_value(data, &size, room, &f, of); break;
    }
  }
  return size;
}

/* ---- using a graph ---- */

static tn_graph *import(const void *data, size_t size, tn_error *err)
{
  tn_graph *graph;
  const tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  if (tn_graph_create(&graph, err) != TN_OK) abort();
  tn_status st = tn_graph_import(graph, data, size, &options, err);
  check_status(st, err);
#ifdef FUZZ_SHOW
  fprintf(stderr, "import: %s %s\n", tn_status_name(st), tn_error_message(err));
#endif
  if (st == TN_OK) return graph;
  if (st == TN_INTERNAL || tn_graph_n_operations(graph) != 0) abort();
  tn_graph_unref(graph);
  return NULL;
}

static void write_and_read(tn_graph *graph, tn_error *err)
{
  void *first, *second;
  size_t n, m;
  tn_status st = tn_graph_export(graph, TN_EXPORT_TEXT, &first, &n, err);
  check_status(st, err);
  if (st != TN_OK) return; /* malformed in parts that an import does not check */
  tn_graph *copy = import(first, n, err);
  if (copy == NULL) {
    if (tn_error_code(err) != TN_RESOURCE_EXHAUSTED) abort();
    tn_free(first);
    return;
  }
  if (tn_graph_n_operations(copy) != tn_graph_n_operations(graph)) abort();
  if (tn_graph_export(copy, TN_EXPORT_TEXT, &second, &m, err) == TN_OK) {
    if (memchr(first, '#', n) == NULL && (n != m || memcmp(first, second, n) != 0)) abort();
    tn_free(second);
  }
  tn_free(first);
  tn_graph_unref(copy);
}

typedef struct feeds {
  const char *names[MOST_FEEDS];
  tn_tensor *at[MOST_FEEDS];
  size_t n;
} feeds;

/* A tensor of ones for a placeholder; unknown dimensions are small. */
static void feed(tn_operation *op, feeds *f)
{
  int64_t dims[TN_MAX_RANK], n = 1;
  int32_t rank = -1;
  if (f->n == MOST_FEEDS || tn_output_shape((tn_output){ op, 0 }, dims, TN_MAX_RANK, &rank, NULL) != TN_OK) return;
  for (int32_t i = 0; i < rank; i++) {
    if (dims[i] < 0) dims[i] = 2;
    if (dims[i] > 4096 || (n *= dims[i]) > 4096) return;
  }
  tn_dtype dtype = tn_operation_output_dtype(op, 0);
  if (tn_tensor_create(dtype, dims, rank < 0 ? 0 : rank, &f->at[f->n], NULL) != TN_OK) return;
  for (int64_t i = 0; dtype == TN_FLOAT && i < n && rank >= 0; i++) ((float *)tn_tensor_data(f->at[f->n]))[i] = 1;
  f->names[f->n++] = tn_operation_name(op);
}

static void step(tn_session *session, tn_operation *op, const feeds *f, tn_error *err)
{
  char names[MOST_FETCHES][140];
  const char *fetches[MOST_FETCHES], *target = tn_operation_name(op);
  tn_tensor *out[MOST_FETCHES] = { NULL };
  tn_run_options limited;
  size_t n = tn_operation_n_outputs(op) < MOST_FETCHES ? tn_operation_n_outputs(op) : MOST_FETCHES;
  if (strlen(target) > 120) return;
  for (size_t i = 0; i < n; i++) {
    snprintf(names[i], sizeof names[i], "%s:%zu", target, i);
    fetches[i] = names[i];
  }
  tn_run_options_init(&limited);
  limited.timeout_ms = 100;
  tn_status st = tn_session_run(session, &limited, f->names, f->at, f->n, fetches, out, n, &target, 1, NULL, err);
  check_status(st, err);
#ifdef FUZZ_SHOW
  fprintf(stderr, "%s: %s %s\n", target, tn_status_name(st), tn_error_message(err));
#endif
  if (st == TN_INTERNAL) abort();
  for (size_t i = 0; i < n; i++) {
    if ((out[i] != NULL) != (st == TN_OK)) abort();
    tn_tensor_unref(out[i]);
  }
}

static void run(tn_graph *graph, int level, tn_error *err)
{
  feeds f = { .n = 0 };
  tn_session *session;
  size_t n = tn_graph_n_operations(graph);
  if (tn_session_create(options_of[level], &session, err) != TN_OK) abort();
  tn_status st = tn_session_set_graph(session, graph, err);
  check_status(st, err);
  for (size_t i = 0; i < n; i++) {
    tn_operation *op = tn_graph_operation(graph, i);
    const tn_op_schema *schema = tn_operation_schema(op);
    if (schema != NULL && (tn_op_schema_traits(schema) & TN_TRAIT_PLACEHOLDER) != 0) feed(op, &f);
  }
  for (size_t i = n; st == TN_OK && i-- > 0 && i + MOST_STEPS >= n;)
    step(session, tn_graph_operation(graph, i), &f, err);
  for (size_t i = 0; i < f.n; i++) tn_tensor_unref(f.at[i]);
  tn_session_destroy(session);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = import(data, size, &err);
  if (graph != NULL) {
    write_and_read(graph, &err);
    run(graph, 0, &err);
    run(graph, 1, &err);
    tn_graph_unref(graph);
  }
  tn_error_clear(&err);
  return 0;
}
