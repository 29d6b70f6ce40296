/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions used by a program that makes any calls in any order.
 *
 * The bytes are calls: sessions are opened with unusual options, extended with graphs, run, closed, destroyed and
 * reset, and make callables and partial runs, with valid and invalid names, and with allocation failures. For every
 * sequence: a failed status has a message, fetches exist exactly if the call was OK, no status is TN_INTERNAL, and
 * destroying everything frees all memory. */
#include <fuzz/bytes.h>
#include <fuzz/runtime.h>

#include <stdbool.h>
#include <stdio.h>
#include <tenon/default.h>
#include <tenon/metadata.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MOST_MEMORY ((size_t)64 << 20)
#define MOST_CALLS 60
#define TIMES 5
#define SESSIONS 3
#define HANDLES 4
#define MOST_NAMES 5

/* ---- graphs and options ---- */

#define TYPED(attr, type) "attr { key: '" attr "' value { type: " type " } } "
#define TEXT(attr, text) "attr { key: '" attr "' value { s: '" text "' } } "
#define NODE(name, op, rest) "node { name: '" name "' op: '" op "' " rest "}\n"
#define IN(name) "input: '" name "' "
#define T TYPED("T", "DT_FLOAT")
#define LIST(attr, type) "attr { key: '" attr "' value { list { type: " type " } } } "
#define NUMBER(name, rest, n)                                                                               \
  NODE(name, "Const",                                                                                       \
       rest TYPED("dtype", "DT_FLOAT") "attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape " \
                                       "{ } float_val: " n " } } } ")

/* Each may be a session's graph, or extend one. */
static const char *const texts[] = {
  NODE("x", "Placeholder", TYPED("dtype", "DT_FLOAT")) NODE("z", "Placeholder", TYPED("dtype", "DT_FLOAT"))
      NODE("p", "Placeholder", TYPED("dtype", "DT_BOOL")) NUMBER("c", "", "3") NODE("y", "AddV2", IN("x") IN("c") T)
          NODE("w", "Mul", IN("y") IN("z") T) NODE("s", "Switch", IN("y") IN("p") T) NODE("on", "Neg", IN("s:1") T)
              NODE("m", "Merge", IN("s") IN("on") T "attr { key: 'N' value { i: 2 } } ")
                  NODE("assert", "Assert", IN("p") IN("c") LIST("T", "DT_FLOAT")),

  NODE("v", "VarHandleOp",
       TYPED("dtype", "DT_FLOAT") TEXT("shared_name", "v") "attr { key: 'shape' value { shape { } } } ")
      NUMBER("one", "", "1") NODE("init", "AssignVariableOp", IN("v") IN("one") TYPED("dtype", "DT_FLOAT"))
          NODE("read", "ReadVariableOp", IN("v") TYPED("dtype", "DT_FLOAT"))
              NODE("inc", "AssignAddVariableOp", IN("v") IN("one") IN("^read") TYPED("dtype", "DT_FLOAT"))
                  NODE("held", "VarHandleOp",
                       TYPED("dtype", "DT_FLOAT") TEXT("container", "b") "attr { key: 'shape' value { shape { } } } ")
                      NODE("hold", "AssignVariableOp", IN("held") IN("one") TYPED("dtype", "DT_FLOAT"))
                          NODE("q", "FIFOQueueV2",
                               LIST("component_types",
                                    "DT_FLOAT") "attr { key: 'capacity' value { i: 1 } } " TEXT("shared_name", "q"))
                              NODE("put", "QueueEnqueueV2", IN("q") IN("one") LIST("Tcomponents", "DT_FLOAT"))
                                  NODE("get", "QueueDequeueV2", IN("q") LIST("component_types", "DT_FLOAT"))
                                      NODE("got", "Neg", IN("get") T) NODE("end", "QueueCloseV2", IN("q")),

  NUMBER("zero", "", "0") NUMBER("ten", "", "10") NODE("i", "Placeholder", TYPED("dtype", "DT_FLOAT"))
      NODE("enter", "Enter", IN("i") T TEXT("frame_name", "f"))
          NODE("limit", "Enter", IN("ten") T TEXT("frame_name", "f") "attr { key: 'is_constant' value { b: true } } ")
              NODE("merge", "Merge", IN("enter") IN("next") T "attr { key: 'N' value { i: 2 } } ")
                  NODE("less", "Less", IN("merge") IN("limit") T) NODE("cond", "LoopCond", IN("less"))
                      NODE("switch", "Switch", IN("merge") IN("cond") T) NODE("body", "Identity", IN("switch:1") T)
                          NODE("more", "AddV2", IN("body") IN("body") T) NODE("next", "NextIteration", IN("more") T)
                              NODE("exit", "Exit", IN("switch") T) NODE("odd", "NoSuchOp", IN("ten"))
                                  NODE("after", "Neg", IN("odd") T),

  "library { function { signature { name: 'F' input_arg { name: 'a' type: DT_FLOAT } output_arg { name: 'b' type: "
  "DT_FLOAT } } "
  "node_def { name: 'n' op: 'Neg' input: 'a' " T
  "} ret { key: 'b' value: 'n:y:0' } } }\n" NODE("k", "Placeholder", TYPED("dtype", "DT_FLOAT"))
      NODE("call", "StatefulPartitionedCall",
           IN("k") LIST("Tin", "DT_FLOAT") LIST("Tout", "DT_FLOAT") "attr { key: 'f' value { func { name: 'F' } } } ")
          NODE("text", "AsString", IN("call") T),

  NODE("kk", "Placeholder", TYPED("dtype", "DT_FLOAT")) NODE("far", "Neg", IN("kk") T "device: '/device:CPU:3' "),
  NODE("lost", "Neg", IN("absent") T),
  "",
};

static const char *const names[] = {
  "x",    "z",   "p",   "y",   "w",    "s", "s:1",  "m",      "assert",        "c",     "read", "init", "inc",
  "hold", "put", "get", "got", "end",  "i", "exit", "merge",  "odd",           "after", "k",    "call", "text",
  "kk",   "far", "x:0", "y:1", "w:00", "",  ":0",   "absent", "x:99999999999", "v",     "q",    NULL
};
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

#define WHOLE 4 /* of them are valid */

static void *graphs[COUNT(texts)];
static size_t graph_sizes[COUNT(texts)];
static tn_tensor *values[6];

static void quiet_log(void *user, int32_t level, const char *line) { (void)user, (void)level, (void)line; }
static void quiet_print(void *user, int32_t to, const char *text, size_t n)
{
  (void)user, (void)to, (void)text, (void)n;
}
static void quiet_placement(void *user, const char *line) { (void)user, (void)line; }

static tn_tensor *tensor(tn_dtype dtype, int64_t n, int32_t rank)
{
  tn_tensor *t;
  unsigned later = fuzz_fail_in;
  fuzz_fail_allocation(0);
  if (tn_tensor_create(dtype, &n, rank, &t, NULL) != TN_OK) abort();
  fuzz_fail_allocation(later);
  if (dtype == TN_FLOAT)
    for (int64_t i = 0; i < tn_tensor_elements(t); i++) ((float *)tn_tensor_data(t))[i] = 2;
  if (dtype == TN_BOOL) *(uint8_t *)tn_tensor_data(t) = 1;
  return t;
}

/* A graph as bytes; an invalid one is written by hand. */
static void make_graph(size_t i)
{
  const tn_import_options text = { .struct_size = sizeof text, .flags = TN_IMPORT_TEXT };
  tn_graph *graph;
  if (tn_graph_create(&graph, NULL) != TN_OK) abort();
  if (tn_graph_import(graph, texts[i], strlen(texts[i]), &text, NULL) != TN_OK) {
    tn_graph_unref(graph);
    graphs[i] = strdup("\n\x13\n\x04lost\x12\x03Neg\x1a\x06" "absent");
    graph_sizes[i] = strlen(graphs[i]);
    return;
  }
  if (tn_graph_export(graph, 0, &graphs[i], &graph_sizes[i], NULL) != TN_OK) abort();
  tn_graph_unref(graph);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
  (void)argc, (void)argv;
  fuzz_limit_memory(MOST_MEMORY);
  fuzz_make_options();
  tn_set_log_sink(quiet_log, NULL);
  tn_set_print_sink(quiet_print, NULL);
  tn_set_placement_sink(quiet_placement, NULL);
  for (size_t i = 0; i < COUNT(texts); i++) make_graph(i);
  values[0] = tensor(TN_FLOAT, 0, 0);
  values[1] = tensor(TN_FLOAT, 2, 1);
  values[2] = tensor(TN_BOOL, 0, 0);
  values[3] = tensor(TN_FLOAT, 0, 1);
  values[4] = tensor(TN_STRING, 0, 0);
  return 0;
}

/* ---- calls ---- */

typedef struct place {
  tn_session *session;
  tn_callable callables[HANDLES];
  tn_partial_run runs[HANDLES];
  uint8_t next_callable, next_run, of_callables[HANDLES], of_runs[HANDLES]; /* signatures */
} place;

typedef struct world {
  bytes b;
  place places[SESSIONS];
  tn_graph *graph; /* shared by several sessions */
  tn_cancellation *cancellation;
  tn_run_metadata *metadata;
  tn_error err;
} world;

static void said(world *w, tn_status status)
{
  fuzz_fail_allocation(0);
  const char *text = tn_error_message(&w->err);
  if (status == TN_INTERNAL || status != tn_error_code(&w->err) || (status != TN_OK && text[0] == 0)) {
    fprintf(stderr, "%s, with the error %s '%s'\n", tn_status_name(status), tn_status_name(tn_error_code(&w->err)),
            text);
    abort();
  }
#ifdef FUZZ_SHOW
  fprintf(stderr, "  %s %s\n", tn_status_name(status), tn_error_message(&w->err));
#endif
}

typedef struct list {
  const char *at[MOST_NAMES];
  tn_tensor *tensors[MOST_NAMES];
  size_t n;
} list;

/* The names of one signature. */
static const struct {
  const char *names[3][3]; /* feeds, fetches, targets */
} signatures[] = {
  { { { "x" }, { "y" } } },
  { { { "x", "z" }, { "y", "w" } } },
  { { { "x", "p" }, { "m", "y" } } },
  { { { "x", "p" }, { "s:1" }, { "assert" } } },
  { { { "c" }, { "c", "c" } } },
  { { { NULL }, { "read" }, { "inc" } } },
  { { { NULL }, { NULL }, { "init", "hold" } } },
  { { { NULL }, { "got", "read" } } },
  { { { "one" }, { "get" }, { "put" } } },
  { { { "get" }, { "got" }, { "end" } } },
  { { { "i" }, { "exit" } } },
  { { { "i", "x" }, { "exit", "y" }, { "init" } } },
  { { { "k" }, { "call", "text" } } },
  { { { "kk" }, { "far" } } },
  { { { "call", "y", "z" }, { "w", "text" } } },
};
enum { FEEDS, FETCHES, TARGETS };

/* The names of a signature, some of them, or arbitrary names. */
static void some_names(world *w, list *l, int which, uint8_t signature)
{
  uint8_t kind = next(&w->b);
  l->n = 0;
  for (size_t i = 0; kind < 200 && i < 3 && signatures[signature % COUNT(signatures)].names[which][i] != NULL; i++)
    if (kind < 120 || (kind >> i & 1)) l->at[l->n++] = signatures[signature % COUNT(signatures)].names[which][i];
  for (int n = kind >= 200 ? kind % 4 : 0; n > 0; n--) l->at[l->n++] = names[next(&w->b) % COUNT(names)];
  for (size_t i = 0; i < l->n; i++) {
    l->tensors[i] = NULL;
    if (which != FEEDS) continue;
    uint8_t value = next(&w->b);
    bool flag = l->at[i] != NULL && strcmp(l->at[i], "p") == 0;
    size_t usual = flag ? 2 : value % 2u;
    l->tensors[i] = values[value < 160 ? usual : value % COUNT(values)];
  }
}

static void some_options(world *w, tn_run_options *options)
{
  uint8_t kind = next(&w->b);
  tn_run_options_init(options);
  options->timeout_ms = kind & 1 ? number(&w->b) : 0;
  if (options->timeout_ms > 20) options->timeout_ms = 20;
  if (kind & 2) options->trace_level = (int32_t)(number(&w->b) % 5);
  if (kind & 4) options->inter_op_pool = (int32_t)(number(&w->b) % 4);
  options->output_partition_graphs = kind >> 3 & 1;
  if ((kind & 48) == 48) options->cancellation = w->cancellation;
  if (kind >= 250) options->struct_size = kind - 250;
}

/* A call returns all results or none. The caller keeps its own tensors. */
static void check_fetched(list *l, tn_status status, tn_tensor *given)
{
  for (size_t i = 0; i < l->n; i++) {
    if (l->tensors[i] == given && given != NULL) continue;
    if ((l->tensors[i] != NULL) != (status == TN_OK)) abort();
    tn_tensor_unref(l->tensors[i]);
  }
}

static void run(world *w, place *p)
{
  list feeds, fetches, targets;
  uint8_t signature = next(&w->b);
  tn_run_options options;
  some_options(w, &options);
  some_names(w, &feeds, FEEDS, signature);
  some_names(w, &fetches, FETCHES, signature);
  some_names(w, &targets, TARGETS, signature);
  tn_status st = tn_session_run(p->session, &options, feeds.at, feeds.tensors, feeds.n, fetches.at, fetches.tensors,
                                fetches.n, targets.at, targets.n, next(&w->b) & 1 ? w->metadata : NULL, &w->err);
  said(w, st);
  check_fetched(&fetches, st, NULL);
}

static void make_callable(world *w, place *p)
{
  list feeds, fetches, targets;
  uint8_t signature = next(&w->b), at = p->next_callable++ % HANDLES;
  tn_run_options options;
  some_options(w, &options);
  some_names(w, &feeds, FEEDS, signature);
  some_names(w, &fetches, FETCHES, signature);
  some_names(w, &targets, TARGETS, signature);
  tn_callable made = { 77 };
  tn_status st = tn_session_make_callable(p->session, &options, feeds.at, feeds.n, fetches.at, fetches.n, targets.at,
                                          targets.n, &made, &w->err);
  said(w, st);
  if ((made.id != 0) != (st == TN_OK)) abort();
  if (st != TN_OK) return;
  p->callables[at] = made;
  p->of_callables[at] = signature;
}

static void run_callable(world *w, place *p)
{
  uint8_t kind = next(&w->b);
  tn_callable callable = p->callables[kind % HANDLES];
  if (kind > 240) callable.id = (uint64_t)number(&w->b);
  list feeds, fetches;
  some_names(w, &feeds, FEEDS, p->of_callables[kind % HANDLES]);
  some_names(w, &fetches, FETCHES, p->of_callables[kind % HANDLES]);
  tn_tensor *given = NULL;
  if (kind & 8) given = tensor(TN_FLOAT, kind & 16 ? 2 : 0, kind >> 4 & 1);
  if (given != NULL && fetches.n > 0) fetches.tensors[0] = given;
  if (given != NULL && (kind & 32) && fetches.n > 1) fetches.tensors[1] = given;
  tn_status st = tn_session_run_callable(p->session, callable, feeds.tensors, feeds.n, fetches.tensors, fetches.n,
                                         kind & 64 ? w->metadata : NULL, &w->err);
  said(w, st);
  check_fetched(&fetches, st, given);
  tn_tensor_unref(given);
}

static void partial_setup(world *w, place *p)
{
  list feeds, fetches, targets;
  uint8_t signature = next(&w->b);
  tn_run_options options;
  some_options(w, &options);
  some_names(w, &feeds, FEEDS, signature);
  some_names(w, &fetches, FETCHES, signature);
  some_names(w, &targets, TARGETS, signature);
  tn_partial_run made = { 77 };
  tn_status st = tn_session_partial_setup(p->session, &options, feeds.at, feeds.n, fetches.at, fetches.n, targets.at,
                                          targets.n, &made, &w->err);
  said(w, st);
  if ((made.id != 0) != (st == TN_OK)) abort();
  if (st != TN_OK) return;
  p->of_runs[p->next_run % HANDLES] = signature;
  p->runs[p->next_run++ % HANDLES] = made;
}

static void partial_run(world *w, place *p)
{
  uint8_t kind = next(&w->b);
  list feeds, fetches;
  tn_partial_run handle = p->runs[kind % HANDLES];
  if (kind > 240) handle = w->places[kind % SESSIONS].runs[0];
  some_names(w, &feeds, FEEDS, p->of_runs[kind % HANDLES]);
  some_names(w, &fetches, FETCHES, p->of_runs[kind % HANDLES]);
  tn_status st = tn_session_partial_run(p->session, handle, feeds.at, feeds.tensors, feeds.n, fetches.at,
                                        fetches.tensors, fetches.n, &w->err);
  said(w, st);
  check_fetched(&fetches, st, NULL);
}

/* ---- sessions ---- */

static const char *const settings[][2] = { { "level", "0" },
                                           { "strict_shapes", "1" },
                                           { "static_graph", "1" },
                                           { "place_pruned_graph", "1" },
                                           { "allow_soft_placement", "1" },
                                           { "log_device_placement", "1" },
                                           { "isolate_session_state", "1" },
                                           { "operation_timeout_ms", "3" },
                                           { "memory_limit_bytes", "3000" },
                                           { "max_signatures", "1" },
                                           { "max_layouts", "1" },
                                           { "session_name", "one" },
                                           { "disable_passes", "fold,inline" },
                                           { "device_count", "CPU=4" },
                                           { "device_count", "CPU=0" },
                                           { "device_filters", "/device:CPU:1" },
                                           { "session_inter_op_pools", "1,0,2@shared" },
                                           { "inter_op_threads", "-3" },
                                           { "memory_fraction", "0.5" },
                                           { "disable_output_partition_graphs", "1" },
                                           { "session_version", "-1" },
                                           { "intra_op_threads", "1" },
                                           { "level", "-9223372036854775808" },
                                           { "max_signatures", "-1" },
                                           { "max_layouts", "0" } };

static void open_session(world *w, place *p)
{
  tn_session_options *options;
  if (p->session != NULL || tn_session_options_copy(options_of[1], &options, NULL) != TN_OK) return;
  tn_session_options_set_int(options, "operation_timeout_ms", 15, NULL);
  tn_session_options_set_bool(options, "isolate_session_state", next(&w->b) & 1, NULL);
  for (int n = next(&w->b) % 4; n > 0; n--) {
    const char *const *set = settings[next(&w->b) % COUNT(settings)];
    tn_session_options_parse(options, set[0], set[1], NULL);
  }
  said(w, tn_session_create(options, &p->session, &w->err));
  tn_session_options_destroy(options);
  memset(p->callables, 0, sizeof p->callables);
  memset(p->runs, 0, sizeof p->runs);
}

static void close_session(place *p)
{
  tn_session_destroy(p->session);
  p->session = NULL;
}

static void reset(world *w)
{
  static const char *const containers[] = { "b", "", "none" };
  uint8_t kind = next(&w->b);
  said(w, tn_reset(options_of[1], containers + kind % 2, kind % 3, &w->err));
}

static void ask(world *w, place *p)
{
  tn_device_info info = { .struct_size = sizeof info };
  tn_placement placement = { .struct_size = sizeof placement };
  uint64_t compiled, held;
  said(w, tn_session_device(p->session, next(&w->b) % 5, &info, &w->err));
  said(w, tn_session_device_of(p->session, names[next(&w->b) % COUNT(names)], &placement, &w->err));
  tn_session_signature_counts(p->session, &compiled, &held);
}

static void read_metadata(world *w)
{
  void *out;
  size_t size;
  tn_status st = tn_run_metadata_serialize(w->metadata, &out, &size, &w->err);
  said(w, st);
  if (st == TN_OK) tn_free(out);
}

static void as_default(world *w, place *p)
{
  uint8_t kind = next(&w->b);
  if (kind & 1) {
    said(w, tn_session_enter_default(p->session, &w->err));
  } else if (kind & 2) {
    said(w, tn_session_leave_default(p->session, &w->err));
  } else {
    const char *feed = names[next(&w->b) % COUNT(names)];
    tn_tensor *out = NULL, *value = values[kind / 4 % COUNT(values)];
    tn_status st = tn_eval_name(NULL, names[next(&w->b) % COUNT(names)], &feed, &value, 1, &out, &w->err);
    said(w, st);
    if ((out != NULL) != (st == TN_OK)) abort();
    tn_tensor_unref(out);
  }
}

static void one_call(world *w)
{
  uint8_t kind = next(&w->b), which = next(&w->b);
  place *p = &w->places[which % SESSIONS];
  if (which > 220) fuzz_fail_allocation(1 + next(&w->b) % 64);
#ifdef FUZZ_SHOW
  fprintf(stderr, "%d of session %d%s\n", kind % 24, which % SESSIONS, which > 220 ? ", an allocation fails" : "");
#endif
  size_t k = kind / 24 % COUNT(texts);
  switch (kind % 24) {
  case 0: open_session(w, p); break;
  case 1: said(w, tn_session_set_graph(p->session, w->graph, &w->err)); break;
  case 2:
  case 3: said(w, tn_session_extend(p->session, graphs[k], graph_sizes[k], &w->err)); break;
  case 4: said(w, tn_graph_import(w->graph, graphs[k], graph_sizes[k], NULL, &w->err)); break;
  case 5: if (kind > 200) said(w, tn_session_finalize(p->session, &w->err)); break;
  case 6:
  case 7:
  case 8: make_callable(w, p); break;
  case 9:
  case 10: run_callable(w, p); break;
  case 11: said(w, tn_session_release_callable(p->session, p->callables[kind / 24 % HANDLES], &w->err)); break;
  case 12:
  case 13: partial_setup(w, p); break;
  case 14:
  case 15: partial_run(w, p); break;
  case 16: said(w, tn_session_partial_release(p->session, p->runs[kind / 24 % HANDLES], &w->err)); break;
  case 17: if (kind > 200) said(w, tn_session_close(p->session, &w->err)); break;
  case 18: if (kind > 160) close_session(p); break;
  case 19: if (kind > 160) reset(w); break;
  case 20: ask(w, p); break;
  case 21: if (kind > 200) tn_cancellation_cancel(w->cancellation); else read_metadata(w); break;
  case 22: as_default(w, p); break;
  default: run(w, p); break;
  }
  fuzz_fail_allocation(0);
}

/* Two sessions in use at once; one has its own graph. */
static void begin(world *w)
{
  const uint8_t kind = next(&w->b);
  for (int i = 0; i < 2; i++) open_session(w, &w->places[i]);
  for (size_t i = 0; i < WHOLE; i++) {
    if (kind >> i & 1) continue;
    said(w, tn_session_extend(w->places[0].session, graphs[i], graph_sizes[i], &w->err));
    said(w, tn_graph_import(w->graph, graphs[i], graph_sizes[i], NULL, &w->err));
  }
  said(w, tn_session_set_graph(w->places[1].session, w->graph, &w->err));
}

static void everything(const uint8_t *data, size_t size)
{
  static const char *const containers[] = { "", "b" };
  world w = { .b = { data, data + size }, .err = TN_ERROR_INIT };
  if (tn_graph_create(&w.graph, NULL) != TN_OK || tn_cancellation_create(NULL, &w.cancellation, NULL) != TN_OK ||
      tn_run_metadata_create(&w.metadata, NULL) != TN_OK)
    abort();
  begin(&w);
  for (int n = 0; n < MOST_CALLS && w.b.at < w.b.end; n++) one_call(&w);
  for (size_t i = 0; i < SESSIONS; i++) close_session(&w.places[i]);
  tn_run_metadata_destroy(w.metadata);
  tn_cancellation_unref(w.cancellation);
  tn_graph_unref(w.graph);
  if (tn_reset(options_of[1], containers, 2, &w.err) != TN_OK) abort();
  tn_error_clear(&w.err);
}

/* Runs repeatedly, as the library creates its process-wide objects during the first runs. A step that exceeds its
 * time limit may get further in a later run. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  size_t first = 0, before = SIZE_MAX;
  for (int n = 0; n < TIMES; n++) {
    everything(data, size);
    size_t now = fuzz_memory_in_use;
    if (now <= before && n > 0) return 0;
    before = now;
    if (n == 0) first = now;
  }
  fprintf(stderr, "%zu bytes are left, %zu were\n", before, first);
  abort();
}
