/* SPDX-License-Identifier: Apache-2.0 */
/* Level (c) of the kit: a plugin that executes plans by itself gives the same results as
 * `direct`, and wrong calls are reported. */
#include <pthread.h>
#include <stdlib.h>

#include <tenon/runtime.h>

#include "conformance/support/calls_kit.h"
#include "tests/support/meet_op.h"
#include "conformance/support/oom.h"
#include "tests/support/plugin_files.h"

static void use_executor(void)
{
  const char *folder = plugin_folder();
  plugin_copy("executor", folder, "executor.so");
  plugin_search(folder);
}

#define TEXT_OF(value)                                                                                     \
  "attr { key: 'dtype' value { type: DT_STRING } } attr { key: 'value' value { tensor { dtype: DT_STRING " \
  "tensor_shape "                                                                                          \
  "{ } string_val: '" value "' } } }"
#define IDX "attr { key: 'Tidx' value { type: DT_INT32 } }"

/* Views (reshape), outputs that reuse inputs, known shapes, a shape that depends on data,
 * strings, and a value fetched twice. */
static const char graph_text[] = IN("x", "DT_FLOAT") IN("n", "DT_INT32") NODE("a", "AddV2", "input: 'x' input: 'x'",
                                                                              T("DT_FLOAT"))
    NODE("b", "Neg", "input: 'a'", T("DT_FLOAT")) NODE("c", "Exp", "input: 'b'", T("DT_FLOAT"))
        NODE("shape", "Shape", "input: 'c'", T("DT_FLOAT") "attr { key: 'out_type' value { type: DT_INT32 } }")
            NODE("minus", "Const", "",
                 "attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' value { tensor { dtype: DT_INT32 "
                 "tensor_shape { dim { size: 1 } } int_val: -1 } } }")
                NODE("flat", "Reshape", "input: 'c' input: 'minus'",
                     T("DT_FLOAT") "attr { key: 'Tshape' value { type: DT_INT32 } }")
                    NODE("zero", "Const", "", FLOAT_OF("0.1"))
                        NODE("more", "Greater", "input: 'flat' input: 'zero'", T("DT_FLOAT"))
                            NODE("where", "Where", "input: 'more'", "attr { key: 'T' value { type: DT_BOOL } }")
                                NODE("twice", "AddV2", "input: 'where' input: 'where'", T("DT_INT64"))
                                    NODE("i0", "Const", "", INT_OF("0")) NODE("i1", "Const", "", INT_OF("1"))
                                        NODE("range", "Range", "input: 'i0' input: 'n' input: 'i1'", IDX)
                                            NODE("text", "AsString", "input: 'range'", T("DT_INT32"))
                                                NODE("word", "Const", "", TEXT_OF("row "))
                                                    NODE("joined", "StringJoin", "input: 'word' input: 'text'",
                                                         "attr { key: 'N' value { i: 2 } }")
                                                        NODE("kept", "Identity", "input: 'joined'", T("DT_STRING"))
                                                            NODE("fed", "Identity", "input: 'x'", T("DT_FLOAT"));

static const char *const fetches[] = { "c",      "flat", "shape", "where", "range", "kept",
                                       "joined", "fed",  "i1",    "twice", NULL };
enum { N_FETCHES = 10 };

static void open_on(ts *t, const char *target, int level)
{
  const tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  ts_init(t, level);
  REQUIRE_OK(tn_session_options_set_target(t->options, target, &t->err), &t->err);
  REQUIRE_OK(tn_graph_import(t->graph, graph_text, strlen(graph_text), &options, &t->err), &t->err);
  ts_start(t);
}

static tn_status run_all(ts *t, int64_t rows, int32_t n, tn_tensor **out)
{
  static const char *const feeds[] = { "x", "n" };
  const int64_t dims[] = { rows, 3 };
  tn_tensor *in[2] = { NULL, NULL };
  tn_status st = tn_tensor_create(TN_FLOAT, dims, 2, &in[0], &t->err);
  if (st == TN_OK) st = tn_tensor_from_data(TN_INT32, NULL, 0, &n, sizeof n, &in[1], &t->err);
  for (int64_t i = 0; st == TN_OK && i < rows * 3; i++) ((float *)tn_tensor_data(in[0]))[i] = (float)(i % 7) / 4;
  if (st == TN_OK) st = tn_session_run(t->session, NULL, feeds, in, 2, fetches, out, N_FETCHES, NULL, 0, NULL, &t->err);
  tn_tensor_unref(in[0]);
  tn_tensor_unref(in[1]);
  return st;
}

static void check_same(tn_tensor *a, tn_tensor *b)
{
  CHECK_INT(tn_tensor_dtype(a), tn_tensor_dtype(b));
  CHECK_INT(tn_tensor_rank(a), tn_tensor_rank(b));
  for (int32_t d = 0; d < tn_tensor_rank(a); d++) CHECK_INT(tn_tensor_dims(a)[d], tn_tensor_dims(b)[d]);
  if (tn_tensor_dtype(a) != TN_STRING) {
    CHECK(memcmp(tn_tensor_data(a), tn_tensor_data(b), tn_tensor_bytes(a)) == 0);
    return;
  }
  for (int64_t i = 0; i < tn_tensor_elements(a); i++) {
    size_t n, m;
    const char *x = tn_string_data((tn_string *)tn_tensor_data(a) + i, &n),
               *y = tn_string_data((tn_string *)tn_tensor_data(b) + i, &m);
    CHECK(n == m && memcmp(x, y, n) == 0);
  }
}

static void executor__results_equal_those_of_direct(void)
{
  FOR_LEVELS(level)
  {
    ts own, direct;
    open_on(&direct, "direct", level); /* stays loaded from here on */
    use_executor();
    open_on(&own, "test.executor", level);
    static const int32_t rows[] = { 2, 5, 0, 2, 40 };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
      tn_tensor *a[N_FETCHES] = { NULL }, *b[N_FETCHES] = { NULL };
      REQUIRE_OK(run_all(&own, rows[i], rows[i] + 1, a), &own.err);
      REQUIRE_OK(run_all(&direct, rows[i], rows[i] + 1, b), &direct.err);
      for (int k = 0; k < N_FETCHES; k++) {
        check_same(a[k], b[k]);
        tn_tensor_unref(a[k]);
        tn_tensor_unref(b[k]);
      }
    }
    ts_fini(&own);
    ts_fini(&direct);
  }
}

static tn_status one_run(void *arg)
{
  tn_tensor *out[N_FETCHES] = { NULL };
  ts *t = arg;
  tn_status st = run_all(t, 3, 2, out);
  for (int k = 0; k < N_FETCHES; k++) tn_tensor_unref(out[k]);
  tn_error_clear(&t->err);
  return st;
}

static void executor__without_memory(void)
{
  ts t;
  use_executor();
  open_on(&t, "test.executor", 0);
  tn_test_oom_sweep(one_run, &t);
  ts_fini(&t);
}

/* A kernel cannot tell why its step ended; the caller gets the time limit's error. S-RO-04 */
static void executor__late_steps_report_the_time_limit(void)
{
  ts t;
  use_executor();
  tn_output in = ts_open_watched(&t, 1);
  ts_watch_op(t.graph, "TestGate", "gate", in, 0);
  REQUIRE_OK(tn_session_options_set_target(t.options, "test.executor", &t.err), &t.err);
  REQUIRE_OK(tn_session_options_set_int(t.options, "operation_timeout_ms", 30, &t.err), &t.err);
  ts_start(&t);
  tn_tensor *fetched;
  CHECK_STATUS(ts_run(&t, FEEDS({ "in", 1 }), NAMES("gate"), &fetched, NULL), TN_DEADLINE_EXCEEDED, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "exceeded its time limit at node 'gate' (TestGate)");
  ts_open_gate();
  CHECK_DOUBLE(ts_run1(&t, FEEDS({ "in", 3 }), "gate"), 3, 0);
  ts_fini(&t);
}

/* Kernels called by tn_kit_compute share their loops with the workers of the step, and with no
 * other threads. */
static float threads_in_a_kernel(const char *target, int32_t pool, int64_t wait_ms)
{
  static const char meet_text[] = IN("x", "DT_FLOAT") MEET_NODE("x");
  const tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  tn_run_options run;
  ts t;
  tn_run_options_init(&run);
  run.inter_op_pool = pool;
  meet_wait_ms = wait_ms;
  ts_init(&t, 1);
  REQUIRE_OK(tn_session_options_set_target(t.options, target, &t.err), &t.err);
  REQUIRE_OK(tn_graph_import(t.graph, meet_text, strlen(meet_text), &options, &t.err), &t.err);
  ts_start(&t);
  int64_t n = 8;
  float most = 0;
  for (int k = 0; k < 2; k++) { /* the first kernel releases them when it ends */
    tn_tensor *x = ts_filled(1, &n, 1), *y = NULL;
    REQUIRE_OK(tn_session_run(t.session, &run, NAMES("x"), &x, 1, NAMES("meet"), &y, 1, NULL, 0, NULL, &t.err), &t.err);
    most = ((const float *)tn_tensor_data(y))[0];
    tn_tensor_unref(x);
    tn_tensor_unref(y);
  }
  ts_fini(&t);
  return most;
}

static void executor__workers_help_its_kernels(void)
{
  meet_register();
  use_executor();
  CHECK_DOUBLE(threads_in_a_kernel("test.executor:help=yes", 0, 5000), 2, 0);
  CHECK_DOUBLE(threads_in_a_kernel("test.executor:help=yes", -1, 200), 1, 0);
  CHECK_DOUBLE(threads_in_a_kernel("test.executor", 0, 200), 1, 0);
}

/* ---- wrong calls ---- */

static tn_status wrong_layouts(const tn_plan *plan, tn_tensor **in, tn_error *err)
{
  tn_plan_layout *l = (tn_plan_layout *)in;
  CHECK_STATUS(tn_kit_layout(plan, in, 2, NULL, err), TN_INVALID_ARGUMENT, err);
  CHECK_STATUS(tn_kit_layout(NULL, in, 2, &l, err), TN_INVALID_ARGUMENT, err);
  CHECK_NULL(l);
  CHECK_STATUS(tn_kit_layout(plan, in, 1, &l, err), TN_INVALID_ARGUMENT, err);
  CHECK_STR(tn_error_message(err), "tn_kit_layout: 1 inputs for a plan with 2");
  CHECK_STATUS(tn_kit_layout(plan, NULL, 2, &l, err), TN_INVALID_ARGUMENT, err);
  tn_tensor *holes[2] = { in[0], NULL };
  CHECK_STATUS(tn_kit_layout(plan, holes, 2, &l, err), TN_INVALID_ARGUMENT, err);
  CHECK_NULL(l);
  tn_kit_layout_release(NULL);
  return TN_OK;
}

static void wrong_reads(const tn_plan *plan, tn_plan_layout *l, tn_error *err)
{
  tn_layout_value v = { .struct_size = sizeof v };
  tn_layout_segment s = { .struct_size = sizeof s };
  tn_layout_instruction in = { .struct_size = sizeof in };
  CHECK_STATUS(tn_kit_layout_value(l, tn_plan_n_values(plan), &v, err), TN_OUT_OF_RANGE, err);
  CHECK_STATUS(tn_kit_layout_value(l, 0, NULL, err), TN_INVALID_ARGUMENT, err);
  CHECK_STATUS(tn_kit_layout_segment(l, 1, &s, err), TN_OUT_OF_RANGE, err); /* it exists, but is not ready yet */
  CHECK_STATUS(tn_kit_layout_segment(NULL, 0, &s, err), TN_INVALID_ARGUMENT, err);
  CHECK_STATUS(tn_kit_layout_instruction(l, tn_plan_n_instructions(plan), &in, err), TN_OUT_OF_RANGE, err);
  CHECK_STATUS(tn_kit_layout_instruction(l, tn_plan_n_instructions(plan) - 1, &in, err), TN_FAILED_PRECONDITION, err);
  in.struct_size = 0;
  CHECK_STATUS(tn_kit_layout_instruction(l, 0, &in, err), TN_INVALID_ARGUMENT, err);
  tn_view **none = calloc(tn_plan_n_values(plan), sizeof *none);
  CHECK_STATUS(tn_kit_layout_next(l, none, 1, err), TN_INVALID_ARGUMENT, err);
  CHECK_STATUS(tn_kit_layout_next(l, NULL, 1, err), TN_INVALID_ARGUMENT, err);
  CHECK_STATUS(tn_kit_layout_next(l, none, tn_plan_n_values(plan), err), TN_INVALID_ARGUMENT, err);
  CHECK_CONTAINS(tn_error_message(err), "which has no view");
  free(none);
}

/* Segments follow each other. A shape depends on the number of rows to make, not on the other
 * feed. */
static void read_segments(const tn_plan *plan, tn_error *err)
{
  size_t n = tn_plan_n_segments(plan);
  uint32_t at = 0;
  tn_plan_segment s = { .struct_size = sizeof s };
  CHECK(n >= 2);
  for (size_t i = 0; i < n; i++) {
    REQUIRE_OK(tn_plan_get_segment(plan, i, &s, err), err);
    CHECK_INT(s.begin, at);
    CHECK(s.end > s.begin);
    CHECK(s.n_entries > 0);
    at = s.end;
  }
  CHECK_INT(at, tn_plan_n_instructions(plan));
  CHECK_STATUS(tn_plan_get_segment(plan, n, &s, err), TN_OUT_OF_RANGE, err);
  CHECK_STATUS(tn_plan_get_segment(plan, 0, NULL, err), TN_INVALID_ARGUMENT, err);
  CHECK_STATUS(tn_plan_get_segment(NULL, 0, &s, err), TN_INVALID_ARGUMENT, err);
  CHECK_INT(tn_plan_n_segments(NULL), 0);
  for (size_t i = 0; i < tn_plan_n_values(plan); i++) {
    tn_plan_value v = { .struct_size = sizeof v };
    REQUIRE_OK(tn_plan_get_value(plan, i, &v, err), err);
    if (v.kind == TN_VALUE_FEED)
      CHECK_INT(tn_plan_value_gives_shapes(plan, i), strcmp(tn_operation_name(v.output.op), "n") == 0);
  }
  CHECK(!tn_plan_value_gives_shapes(plan, tn_plan_n_values(plan)));
  CHECK(!tn_plan_value_gives_shapes(NULL, 0));
}

static void wrong_calls(tn_step *step, const tn_plan *plan, tn_plan_layout *l, tn_error *err)
{
  uint32_t i = 0;
  tn_layout_instruction in = { .struct_size = sizeof in };
  while (tn_kit_layout_instruction(l, i, &in, err) == TN_OK && !in.computes) i++;
  tn_plan_instruction instr = { .struct_size = sizeof instr };
  REQUIRE_OK(tn_plan_get_instruction(plan, i, &instr, err), err);
  tn_view none = { .dtype = TN_STRING }, *views[] = { &none, &none, &none };
  CHECK_STATUS(tn_kit_compute(NULL, l, i, views, views, NULL, NULL, err), TN_INVALID_ARGUMENT, err);
  CHECK_STATUS(tn_kit_compute(step, NULL, i, views, views, NULL, NULL, err), TN_INVALID_ARGUMENT, err);
  CHECK_STATUS(tn_kit_compute(step, l, i, NULL, views, NULL, NULL, err), TN_INVALID_ARGUMENT, err);
  CHECK_STATUS(tn_kit_compute(step, l, i, views, NULL, NULL, NULL, err), TN_INVALID_ARGUMENT, err);
  CHECK_STATUS(tn_kit_compute(step, l, i, views, views, NULL, NULL, err), TN_INVALID_ARGUMENT, err);
  CHECK_CONTAINS(tn_error_message(err), "has a view of another dtype");
  CHECK_STR(tn_error_node(err), tn_operation_name(instr.op));
  none.dtype = TN_FLOAT;
  CHECK_STATUS(tn_kit_compute(step, l, i, views, views, NULL, NULL, err), TN_INVALID_ARGUMENT, err);
  CHECK_CONTAINS(tn_error_message(err), "has a view of another shape");
  tn_view x = { .dtype = TN_FLOAT, .rank = 2, .dims = (const int64_t[]){ 2, 3 }, .count = 6 };
  tn_view *right[] = { &x, &x, &x };
  CHECK_STATUS(tn_kit_compute(step, l, i, right, right, NULL, NULL, err), TN_INVALID_ARGUMENT, err);
  CHECK_CONTAINS(tn_error_message(err), "has no memory");
}

static tn_status wrong_step(const tn_session_factory *self, tn_runtime_session *session, tn_executable *executable,
                            tn_step *step, tn_error *err)
{
  (void)self, (void)session;
  const tn_plan *plan = (const tn_plan *)executable;
  tn_tensor *in[2] = { tn_step_input(step, 0), tn_step_input(step, 1) };
  tn_plan_layout *l;
  tn_error e = TN_ERROR_INIT;
  wrong_layouts(plan, in, &e);
  REQUIRE_OK(tn_kit_layout(plan, in, 2, &l, &e), &e);
  wrong_reads(plan, l, &e);
  read_segments(plan, &e);
  CHECK_OK(tn_step_check(step, NULL, &e), &e);
  CHECK(!tn_step_wants_records(step));
  tn_step_record(step, l, 0, NULL, 0, 0, TN_OK); /* records are not collected */
  wrong_calls(step, plan, l, &e);
  tn_kit_layout_release(l);
  tn_error_clear(&e);
  return tn_error_set(err, TN_ABORTED, "all calls were made");
}

static tn_status wrong_session(const tn_session_factory *self, const tn_session_options *options,
                               tn_runtime_session **out, tn_error *err)
{
  (void)self, (void)options;
  *out = tn_alloc(1);
  return *out != NULL ? TN_OK : tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory");
}

static tn_bool wrong_accepts(const tn_session_factory *self, const tn_session_options *options)
{
  (void)self, (void)options;
  return 1;
}

static void wrong_destroy(const tn_session_factory *self, tn_runtime_session *session)
{
  (void)self;
  tn_free(session);
}

static tn_status wrong_prepare(const tn_session_factory *self, tn_runtime_session *session, const tn_plan *plan,
                               tn_executable **out, tn_error *err)
{
  (void)self, (void)session, (void)err;
  *out = (tn_executable *)plan; /* it has no state of its own */
  return TN_OK;
}

static void wrong_release(const tn_session_factory *self, tn_runtime_session *session, tn_executable *executable)
{
  (void)self, (void)session, (void)executable;
}

static const tn_session_factory wrong = {
  .struct_size = TN_SESSION_FACTORY_SIZE,
  .name = "test.wrong",
  .new_session = wrong_session,
  .accepts_options = wrong_accepts,
  .destroy_session = wrong_destroy,
  .prepare = wrong_prepare,
  .release = wrong_release,
  .step = wrong_step,
};

static void layouts__errors_name_the_mistake(void)
{
  tn_error err = TN_ERROR_INIT;
  REQUIRE_OK(tn_runtime_register("test.wrong", &wrong, &err), &err);
  FOR_LEVELS(level)
  {
    ts t;
    tn_tensor *out[N_FETCHES] = { NULL };
    open_on(&t, "test.wrong", level);
    CHECK_STATUS(run_all(&t, 2, 2, out), TN_ABORTED, &t.err);
    ts_fini(&t);
  }
}

/* ---- one layout, several steps at once ---- */

static const char *const shared_fetches[] = { "c", "flat", "shape", "range", "kept", "joined", "fed", "i1" };
enum { N_SHARED = sizeof shared_fetches / sizeof *shared_fetches, N_SHAPES = 3, N_THREADS = 8, N_RUNS = 200 };

static tn_status run_shared(ts *t, int64_t rows, float start, tn_tensor **out, tn_error *err)
{
  static const char *const feeds[] = { "x", "n" };
  const int64_t dims[] = { rows, 3 };
  int32_t n = (int32_t)rows;
  tn_tensor *in[2] = { NULL, NULL };
  tn_status st = tn_tensor_create(TN_FLOAT, dims, 2, &in[0], err);
  if (st == TN_OK) st = tn_tensor_from_data(TN_INT32, NULL, 0, &n, sizeof n, &in[1], err);
  for (int64_t i = 0; st == TN_OK && i < rows * 3; i++) ((float *)tn_tensor_data(in[0]))[i] = start + (float)i;
  if (st == TN_OK)
    st = tn_session_run(t->session, NULL, feeds, in, 2, shared_fetches, out, N_SHARED, NULL, 0, NULL, err);
  tn_tensor_unref(in[0]);
  tn_tensor_unref(in[1]);
  return st;
}

typedef struct sharer {
  ts *own, *direct;
  int number, runs;
} sharer;

/* Values differ between threads, shapes do not: a step that overwrites another step's values
 * would be noticed. */
static void *run_on_shared(void *arg)
{
  static const int64_t rows[N_SHAPES] = { 1, 4, 30 };
  sharer *s = arg;
  tn_error err = TN_ERROR_INIT;
  for (int i = 0; i < N_RUNS; i++) {
    tn_tensor *a[N_SHARED] = { NULL }, *b[N_SHARED] = { NULL };
    int64_t n = rows[(s->number + i) % N_SHAPES];
    float start = (float)(s->number * 3 + i % 5) / 16;
    if (run_shared(s->own, n, start, a, &err) != TN_OK || run_shared(s->direct, n, start, b, &err) != TN_OK) break;
    for (int k = 0; k < N_SHARED; k++) {
      check_same(a[k], b[k]);
      tn_tensor_unref(a[k]);
      tn_tensor_unref(b[k]);
    }
    s->runs++;
  }
  CHECK_STR(tn_error_message(&err), "");
  tn_error_clear(&err);
  return NULL;
}

static char last_line[200];

static void keep_last(void *user, int32_t level, const char *line)
{
  (void)user, (void)level;
  if (strncmp(line, "executor: ", 10) == 0) snprintf(last_line, sizeof last_line, "%s", line);
}

/* <tenon/kit.h> promises that a layout with one segment is kept, and may be used by steps on
 * many threads at once. */
static void layouts__are_shared_by_steps_on_many_threads(void)
{
  FOR_LEVELS(level)
  {
    ts own, direct;
    pthread_t threads[N_THREADS];
    sharer sharers[N_THREADS];
    char wanted[80];
    open_on(&direct, "direct", level);
    use_executor();
    open_on(&own, "test.executor:share=yes", level);
    for (int i = 0; i < N_THREADS; i++) {
      sharers[i] = (sharer){ &own, &direct, i, 0 };
      REQUIRE_INT(pthread_create(&threads[i], NULL, run_on_shared, &sharers[i]), 0);
    }
    for (int i = 0; i < N_THREADS; i++) {
      pthread_join(threads[i], NULL);
      CHECK_INT(sharers[i].runs, N_RUNS);
    }
    tn_set_log_sink(keep_last, NULL);
    tn_set_log_level(TN_LOG_INFO);
    last_line[0] = 0;
    ts_fini(&own);
    tn_set_log_level(TN_LOG_WARNING);
    tn_set_log_sink(NULL, NULL);
    snprintf(wanted, sizeof wanted, "executor: %d layouts for %d steps", N_SHAPES, N_THREADS * N_RUNS);
    CHECK_STR(last_line, wanted);
    ts_fini(&direct);
  }
}

TAP_MAIN(
  TAP_TEST(executor__results_equal_those_of_direct),
  TAP_TEST(layouts__are_shared_by_steps_on_many_threads),
  TAP_TEST(executor__late_steps_report_the_time_limit),
  TAP_TEST(executor__workers_help_its_kernels),
  TAP_TEST(executor__without_memory),
  TAP_TEST(layouts__errors_name_the_mistake))
