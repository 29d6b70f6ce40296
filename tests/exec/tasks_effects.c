/* SPDX-License-Identifier: Apache-2.0 */
/* Effects in concurrent branches: effects on one resource happen in the order of the tape,
 * effects on several resources concurrently. */
#include "conformance/support/calls_kit.h"
#include "tests/support/tasks_kit.h"

#include <core/layout/tasks.h>

#define RESOURCE(name, size)                                                                                         \
  "attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'shape' value { shape { dim { size: " size " } } } } " \
  "attr { key: 'shared_name' value { s: '" name "' } } "
#define OF_FLOAT "attr { key: 'dtype' value { type: DT_FLOAT } }"
#define OF_TABLE "attr { key: 'Tin' value { type: DT_INT32 } } attr { key: 'Tout' value { type: DT_FLOAT } }"
#define VARIABLES 5
#define MOST_EFFECTS 40
#define STEPS 6

typedef struct text {
  char data[32000];
  size_t n;
} text;

static void put(text *t, const char *format, ...) TN_PRINTF(2, 3);
static void put(text *t, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  t->n += (size_t)vsnprintf(t->data + t->n, sizeof t->data - t->n, format, args);
  va_end(args);
  REQUIRE(t->n < sizeof t->data);
}

static uint32_t next(uint32_t *seed)
{
  *seed = *seed * 1664525u + 1013904223u;
  return *seed >> 16;
}

/* Values that take some time, and effects with them on a few variables, each with two handles,
 * on tables, and on random generators. Reads are "read0", "read1", and so on. */
static void random_effects(text *t, uint32_t seed)
{
  size_t n = 6 + next(&seed) % (MOST_EFFECTS - 6), n_reads = 0;
  t->n = 0;
  put(t, IN("x", "DT_FLOAT"));
  put(t, NODE("zero", "Const", "", FLOAT_OF("0")) NODE(
             "one", "Const", "",
             "attr { key: 'dtype' value { type: DT_INT32 } } "
             "attr { key: 'value' value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 1 } } }"));
  for (int i = 0; i < 3; i++)
    put(t,
        NODE("t%d", "MutableHashTableV2", "",
             "attr { key: 'shared_name' value { s: 'table%d' } } "
             "attr { key: 'key_dtype' value { type: DT_INT32 } } attr { key: 'value_dtype' value { type: DT_FLOAT } }"),
        i, i % 2);
  for (int i = 0; i < 2 * VARIABLES; i++) {
    if (i % VARIABLES < 2) put(t, NODE("h%d", "VariableV2", "", RESOURCE("ref%d", "1")), i, i % VARIABLES);
    else put(t, NODE("h%d", "VarHandleOp", "", RESOURCE("v%d", "1")), i, i % VARIABLES);
  }
  for (size_t i = 0; i < n; i++) {
    uint32_t h = next(&seed) % (2 * VARIABLES), kind = next(&seed) % 6;
    bool by_reference = h % VARIABLES < 2;
    put(t,
        NODE("value%zu", "TestScan", "input: 'x' input: 'x'",
             "attr { key: 'ns' value { i: %u } } attr { key: 'slot' value { i: %zu } }"),
        i, next(&seed) % 40000, i);
    if (kind == 4)
      put(t,
          NODE("read%zu", "RandomUniform", "input: 'one' input: '^value%zu'",
               OF_FLOAT "attr { key: 'T' value { type: DT_INT32 } } "
                        "attr { key: 'seed' value { i: %zu } }"),
          n_reads++, i, i + 1);
    else if (kind == 5 && h % 2 == 0)
      put(t, NODE("do%zu", "LookupTableInsertV2", "input: 't%u' input: 'one' input: 'value%zu'", OF_TABLE), i, h % 3,
          i);
    else if (kind == 5)
      put(t,
          NODE("read%zu", "LookupTableFindV2", "input: 't%u' input: 'one' input: 'zero' input: '^value%zu'", OF_TABLE),
          n_reads++, h % 3, i);
    else if (by_reference && kind < 2)
      put(t, NODE("do%zu", "%s", "input: 'h%u' input: 'value%zu'", T("DT_FLOAT")), i,
          kind == 0 ? "Assign" : "AssignAdd", h, i);
    else if (kind < 2)
      put(t, NODE("do%zu", "%s", "input: 'h%u' input: 'value%zu'", OF_FLOAT), i,
          kind == 0 ? "AssignVariableOp" : "AssignAddVariableOp", h, i);
    else if (by_reference)
      put(t, NODE("read%zu", "Identity", "input: 'h%u' input: '^value%zu'", T("DT_FLOAT")), n_reads++, h, i);
    else
      put(t, NODE("read%zu", "ReadVariableOp", "input: 'h%u' input: '^value%zu'", OF_FLOAT), n_reads++, h, i);
  }
}

static void open_text(ts *t, const char *runtime, const char *graph)
{
  const tn_import_options import = { .struct_size = sizeof import, .flags = TN_IMPORT_TEXT };
  ts_init(t, 1);
  ts_register_tasks();
  REQUIRE_OK(tn_session_options_set_target(t->options, runtime, &t->err), &t->err);
  REQUIRE_OK(tn_graph_import(t->graph, graph, strlen(graph), &import, &t->err), &t->err);
  ts_start(t);
}

/* The values read by each step, and those of the variables afterwards. */
static void run_effects(const char *runtime, const text *graph, float *found, size_t room)
{
  ts t;
  char names[3 * MOST_EFFECTS][16];
  const char *targets[MOST_EFFECTS], *fetches[MOST_EFFECTS], *set[2 * VARIABLES], *feed = "x";
  size_t n_targets = 0, n_fetches = 0, n = 0;
  static const int64_t one = 1;
  open_text(&t, runtime, graph->data);
  for (size_t i = 0; i < MOST_EFFECTS; i++) {
    snprintf(names[i], sizeof names[i], "do%zu", i);
    if (tn_graph_find(t.graph, names[i]) != NULL) targets[n_targets++] = names[i];
    snprintf(names[MOST_EFFECTS + i], sizeof names[i], "read%zu", i);
    if (tn_graph_find(t.graph, names[MOST_EFFECTS + i]) != NULL) fetches[n_fetches++] = names[MOST_EFFECTS + i];
  }
  for (int i = 0; i < 2 * VARIABLES; i++) {
    snprintf(names[2 * MOST_EFFECTS + i], sizeof names[0], "set%d", i);
    set[i] = names[2 * MOST_EFFECTS + i];
  }
  tn_tensor *out[MOST_EFFECTS] = { NULL }, *x = ts_filled(1, &one, 1);
  CHECK_OK(tn_session_run(t.session, NULL, &feed, &x, 1, NULL, NULL, 0, set, VARIABLES, NULL, &t.err), &t.err);
  for (int step = 0; step < STEPS; step++) {
    CHECK_OK(tn_session_run(t.session, NULL, &feed, &x, 1, fetches, out, n_fetches, targets, n_targets, NULL, &t.err),
             &t.err);
    for (size_t i = 0; i < n_fetches; i++) {
      if (n < room) found[n++] = out[i] == NULL ? -1 : *(const float *)tn_tensor_data(out[i]);
      tn_tensor_unref(out[i]);
      out[i] = NULL;
    }
  }
  while (n < room) found[n++] = 0;
  tn_tensor_unref(x);
  ts_fini(&t);
}

static void tasks_effects__on_one_resource_happen_in_order(void)
{
  enum { ROOM = STEPS * MOST_EFFECTS };
  static text graph;
  static float one[ROOM], all[ROOM];
  atomic_store(&tn__tasks_always, true);
  atomic_store(&ts_speed, 1);
  for (uint32_t seed = 1; seed <= 60; seed++) {
    random_effects(&graph, seed * 7919);
    for (int i = 0; i < VARIABLES; i++) {
      if (i < 2) put(&graph, NODE("set%d", "Assign", "input: 'h%d' input: 'x'", T("DT_FLOAT")), i, i);
      else put(&graph, NODE("set%d", "AssignVariableOp", "input: 'h%d' input: 'x'", OF_FLOAT), i, i);
    }
    run_effects("direct", &graph, one, ROOM);
    for (int again = 0; again < 2; again++) {
      run_effects("threaded:threads=3", &graph, all, ROOM);
      CHECK_MSG(memcmp(one, all, sizeof one) == 0, "seed %u", seed);
    }
  }
  atomic_store(&tn__tasks_always, false);
}

/* ---- concurrency ---- */

#define ADDS(i, handle)                                                          \
  NODE("a" i, "AssignAddVariableOp", "input: '" handle "' input: 'x'", OF_FLOAT) \
  NODE("b" i, "AssignAddVariableOp", "input: '" handle "' input: 'x' input: '^a" i "'", OF_FLOAT)

/* Whether two updates of the step ever overlapped. */
static bool updates_overlap(const char *graph)
{
  static const char *const set[] = { "set0", "set1" }, *const targets[] = { "b0", "b1" };
  static const int64_t n = 400000;
  const char *feed = "x";
  tn_run_options options;
  ts t;
  bool overlap = false;
  open_text(&t, "threaded:threads=2", graph);
  tn_tensor *x = ts_filled(1, &n, 1);
  tn_run_options_init(&options);
  options.trace_level = 3;
  CHECK_OK(tn_session_run(t.session, NULL, &feed, &x, 1, NULL, NULL, 0, set, 2, NULL, &t.err), &t.err);
  for (int i = 0; i < 60 && !overlap; i++) { /* on a busy machine a worker may be late */
    tn_run_metadata *m;
    tn_metadata_summary sum = { .struct_size = sizeof sum };
    REQUIRE_OK(tn_run_metadata_create(&m, &t.err), &t.err);
    CHECK_OK(tn_session_run(t.session, &options, &feed, &x, 1, NULL, NULL, 0, targets, 2, m, &t.err), &t.err);
    CHECK_OK(tn_run_metadata_summary(m, &sum, &t.err), &t.err);
    for (size_t k = 0; k < sum.records; k++) {
      tn_node_record r = { .struct_size = sizeof r }, o = { .struct_size = sizeof o };
      CHECK_OK(tn_run_metadata_record(m, k, &r, &t.err), &t.err);
      for (size_t j = 0; j < k && !overlap; j++) {
        CHECK_OK(tn_run_metadata_record(m, j, &o, &t.err), &t.err);
        overlap = o.kind == TN_RECORD_NODE && r.kind == TN_RECORD_NODE && o.thread != r.thread &&
                  o.start_ns < r.start_ns + r.duration_ns && r.start_ns < o.start_ns + o.duration_ns;
      }
    }
    tn_run_metadata_destroy(m);
  }
  tn_tensor_unref(x);
  ts_fini(&t);
  return overlap;
}

#define TWO(first, second)                                                                                           \
  IN("x", "DT_FLOAT")                                                                                                \
  NODE("h0", "VarHandleOp", "", RESOURCE(first, "400000")) NODE("h1", "VarHandleOp", "", RESOURCE(second, "400000")) \
      NODE("set0", "AssignVariableOp", "input: 'h0' input: 'x'", OF_FLOAT)                                           \
          NODE("set1", "AssignVariableOp", "input: 'h1' input: 'x'", OF_FLOAT) ADDS("0", "h0") ADDS("1", "h1")

static void tasks_effects__on_two_resources_are_concurrent(void)
{
  atomic_store(&tn__tasks_always, true);
  CHECK(updates_overlap(TWO("one", "two")));
  CHECK(!updates_overlap(TWO("same", "same")));
  atomic_store(&tn__tasks_always, false);
}

/* A new session for a step whose effects are divided into tasks. */
static tn_status set_two(void *arg)
{
  static const char *const set[] = { "set0", "set1" };
  const char *feed = "x";
  const int64_t n = 400000;
  tn_error err = TN_ERROR_INIT;
  tn_session_options *options = NULL;
  tn_session *session = NULL;
  tn_tensor *x = NULL;
  tn_status st = tn_session_options_create(&options, &err);
  if (st == TN_OK) st = tn_session_options_set_target(options, "threaded:threads=2", &err);
  if (st == TN_OK)
    st = tn_session_options_set_bool(options, "use_per_session_threads", 1, &err); /* so that its pool is freed */
  if (st == TN_OK) st = tn_session_create(options, &session, &err);
  if (st == TN_OK) st = tn_session_set_graph(session, arg, &err);
  if (st == TN_OK) st = tn_tensor_create(TN_FLOAT, &n, 1, &x, &err);
  if (st == TN_OK) memset(tn_tensor_data(x), 0, (size_t)n * sizeof(float));
  if (st == TN_OK) st = tn_session_run(session, NULL, &feed, &x, 1, NULL, NULL, 0, set, 2, NULL, &err);
  tn_tensor_unref(x);
  tn_session_destroy(session);
  tn_session_options_destroy(options);
  tn_error_clear(&err);
  return st;
}

static void tasks_effects__nothing_leaks_without_memory(void)
{
  ts t;
  atomic_store(&tn__tasks_always, true);
  open_text(&t, "direct", TWO("lost1", "lost2"));
  tn_test_oom_sweep(set_two, t.graph);
  atomic_store(&tn__tasks_always, false);
  ts_fini(&t);
}

TAP_MAIN(
  TAP_TEST(tasks_effects__on_one_resource_happen_in_order),
  TAP_TEST(tasks_effects__on_two_resources_are_concurrent),
  TAP_TEST(tasks_effects__nothing_leaks_without_memory))
