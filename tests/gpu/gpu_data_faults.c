/* SPDX-License-Identifier: Apache-2.0 */
/* Elements that a device kernel must reject, such as an index out of range: the step ends as on
 * the CPU, with the same status, text and node; results that depend on them are discarded, and
 * the next step is not affected. */
#include <stdio.h>

#include "conformance/support/calls_kit.h"
#include "tests/support/gpu_kit.h"

static const char *const targets[] = { "gpu:placement=device", "gpu:placement=device,copies=always",
                                       "gpu:placement=device,fetch=device",
                                       "gpu:placement=device,copies=always,queues=3" };
#define FOR_TARGETS(t)                       \
  for (size_t t##_i = 0; t##_i < 4; t##_i++) \
    for (const char *t = targets[t##_i]; t != NULL; t = NULL)

/* ---- the log ---- */

static struct {
  int plans, all_on_device, on_device; /* on_device: of the last plan */
} said;

static void hear(void *user, int32_t level, const char *line)
{
  (void)user, (void)level;
  const char *at = strstr(line, "a plan for ");
  if (at == NULL) return;
  said.plans++;
  said.all_on_device += strstr(at, " on the device, 0 on the CPU") != NULL;
  const char *nodes = strstr(at, ": ");
  if (nodes != NULL) (void)sscanf(nodes, ": %d nodes", &said.on_device);
}

static void listen(void)
{
  memset(&said, 0, sizeof said);
  tn_set_log_sink(hear, NULL);
  tn_set_log_level(TN_LOG_INFO);
}

static void listen_no_more(void)
{
  tn_set_log_level(TN_LOG_WARNING);
  tn_set_log_sink(NULL, NULL);
}

/* ---- scenes: x of 4 rows and 3 columns, and i ---- */

#define PICKS "attr { key: 'Tparams' value { type: DT_FLOAT } } attr { key: 'Tindices' value { type: DT_INT32 } }"
#define AXIS "attr { key: 'Taxis' value { type: DT_INT32 } }"
#define OF_FLOATS IN("x", "DT_FLOAT") IN("i", "DT_INT32")
#define OF_INTEGERS IN("x", "DT_INT32") IN("i", "DT_INT32")
#define OF_TWO(op) OF_INTEGERS NODE("y", op, "input: 'x' input: 'i'", T("DT_INT32"))

typedef struct scene {
  const char *text;
  bool integers;
  int32_t rank; /* of i */
  int64_t dims[2];
  int32_t good[4], bad[4];
  tn_status code;
  const char *message;
} scene;

static const scene scenes[] = {
  { OF_FLOATS NODE("y", "Gather", "input: 'x' input: 'i'", PICKS),
    false,
    1,
    { 3 },
    { 3, 0, 2 },
    { 1, 4, -1 },
    TN_INVALID_ARGUMENT,
    "node 'y' (Gather): index 1 of input 1 is 4, wanted one in [0, 4)" },
  { OF_FLOATS NODE("one", "Const", "", INT_OF("1"))
        NODE("y", "GatherV2", "input: 'x' input: 'i' input: 'one'", PICKS AXIS),
    false,
    2,
    { 2, 2 },
    { 2, 0, 2, 1 },
    { 2, 0, -7, 3 },
    TN_INVALID_ARGUMENT,
    "index 2 of input 1 is -7, wanted one in [0, 3)" },
  { OF_FLOATS NODE("y", "GatherNd", "input: 'x' input: 'i'", PICKS),
    false,
    2,
    { 2, 2 },
    { 0, 2, 3, 1 },
    { 0, 1, 2, 3 },
    TN_INVALID_ARGUMENT,
    "index 1 is 3 in dimension 1, wanted one in [0, 3)" },
  { OF_FLOATS NODE("y", "SparseSoftmaxCrossEntropyWithLogits", "input: 'x' input: 'i'",
                   T("DT_FLOAT") "attr { key: 'Tlabels' value { type: DT_INT32 } }"),
    false,
    1,
    { 4 },
    { 2, 0, 1, 1 },
    { 2, 0, 3, -1 },
    TN_INVALID_ARGUMENT,
    "label 2 is 3, there are 3 classes" },
  { OF_FLOATS NODE("k", "Const", "", INT_OF("1")) NODE("rows", "ExpandDims", "input: 'i' input: 'k'", T("DT_INT32"))
        NODE("y", "TensorScatterAdd", "input: 'x' input: 'rows' input: 'x'",
             T("DT_FLOAT") "attr { key: 'Tindices' value { type: DT_INT32 } }"),
    false,
    1,
    { 4 },
    { 2, 0, 2, 2 },
    { 2, 3, -4, 5 },
    TN_INVALID_ARGUMENT,
    "index 2 is -4 in dimension 0, wanted one in [0, 4)" },
  { OF_FLOATS NODE(
        "y", "ReverseSequence", "input: 'x' input: 'i'",
        T("DT_FLOAT") "attr { key: 'Tlen' value { type: DT_INT32 } } attr { key: 'seq_dim' value { i: 1 } }"),
    false,
    1,
    { 4 },
    { 2, 0, 3, 1 },
    { 2, 0, 4, -1 },
    TN_INVALID_ARGUMENT,
    "ReverseSequence: length 2 is 4, wanted [0, 3]" },
  { OF_FLOATS NODE("f", "Cast", "input: 'i'",
                   "attr { key: 'SrcT' value { type: DT_INT32 } } attr { key: 'DstT' value { type: DT_FLOAT } }")
        NODE("quotient", "RealDiv", "input: 'x' input: 'f'", T("DT_FLOAT")) NODE(
            "y", "CheckNumerics", "input: 'quotient'", T("DT_FLOAT") "attr { key: 'message' value { s: 'quotient' } }"),
    false,
    1,
    { 3 },
    { 2, 1, 3 },
    { 0, 1, 3 },
    TN_INVALID_ARGUMENT,
    "quotient: the tensor has NaN +Inf" },
  { OF_TWO("Div"), true, 1, { 3 }, { 3, -1, 2 }, { 1, 0, 2 }, TN_INVALID_ARGUMENT, "integer division by zero" },
  { OF_TWO("FloorDiv"), true, 1, { 3 }, { 3, -2, 2 }, { 1, 0, 2 }, TN_INVALID_ARGUMENT, "integer division by zero" },
  { OF_TWO("FloorMod"), true, 1, { 3 }, { 3, -2, 2 }, { 0, 1, 2 }, TN_INVALID_ARGUMENT, "integer division by zero" },
  { OF_TWO("Mod"), true, 1, { 3 }, { 3, -2, 2 }, { 1, 2, 0 }, TN_INVALID_ARGUMENT, "integer division by zero" },
  { OF_TWO("TruncateDiv"), true, 1, { 3 }, { 3, -2, 2 }, { 1, 0, 2 }, TN_INTERNAL, "integer division by zero" },
  { OF_TWO("TruncateMod"), true, 1, { 3 }, { 3, -2, 2 }, { 1, 0, 2 }, TN_INTERNAL, "integer division by zero" },
  { OF_TWO("Pow"), true, 1, { 3 }, { 3, 0, 2 }, { 1, -1, 2 }, TN_INVALID_ARGUMENT, "integer to a negative power" },
};
enum { N_SCENES = sizeof scenes / sizeof *scenes };

static void open_on(ts *t, const char *target, int level, const char *text)
{
  const tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  ts_init(t, level);
  REQUIRE_OK(tn_session_options_set_target(t->options, target, &t->err), &t->err);
  REQUIRE_OK(tn_graph_import(t->graph, text, strlen(text), &options, &t->err), &t->err);
  ts_start(t);
}

static tn_tensor *integers(int32_t rank, const int64_t *dims, const int32_t *values)
{
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_create(TN_INT32, dims, rank, &t, NULL), NULL);
  if (values != NULL) memcpy(tn_tensor_data(t), values, tn_tensor_bytes(t));
  return t;
}

/* 0, 1, 2, ... */
static tn_tensor *ramp(tn_dtype dtype, int64_t rows, int64_t columns)
{
  const int64_t dims[] = { rows, columns };
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_create(dtype, dims, 2, &t, NULL), NULL);
  for (int64_t i = 0; i < rows * columns; i++) {
    if (dtype == TN_FLOAT) ((float *)tn_tensor_data(t))[i] = (float)i;
    else ((int32_t *)tn_tensor_data(t))[i] = (int32_t)i;
  }
  return t;
}

/* One step; x has 4 rows. Takes ownership of i. */
static tn_status step(ts *t, bool of_integers, tn_tensor *i, const char *fetch, tn_tensor **out)
{
  tn_tensor *feeds[2] = { ramp(of_integers ? TN_INT32 : TN_FLOAT, 4, 3), i };
  *out = NULL;
  tn_status st = tn_session_run(t->session, NULL, NAMES("x", "i"), feeds, 2, &fetch, out, 1, NULL, 0, NULL, &t->err);
  tn_tensor_unref(feeds[0]);
  tn_tensor_unref(feeds[1]);
  return st;
}

static void check_same(tn_tensor *a, tn_tensor *b)
{
  char x[400], y[400];
  REQUIRE_INT(tn_tensor_bytes(a), tn_tensor_bytes(b));
  REQUIRE(tn_tensor_bytes(a) <= sizeof x);
  REQUIRE_OK(tn_tensor_read(a, x, tn_tensor_bytes(a), NULL), NULL);
  REQUIRE_OK(tn_tensor_read(b, y, tn_tensor_bytes(b), NULL), NULL);
  for (int64_t i = 0; i < tn_tensor_elements(a); i++) {
    if (tn_tensor_dtype(a) == TN_FLOAT) CHECK_DOUBLE(((float *)(void *)x)[i], ((float *)(void *)y)[i], 1e-5);
    else CHECK_INT(((int32_t *)(void *)x)[i], ((int32_t *)(void *)y)[i]);
  }
  tn_tensor_unref(a);
  tn_tensor_unref(b);
}

static void check_scene(const scene *s, const char *target, int level)
{
  ts gpu, direct;
  tn_tensor *a, *b;
  listen();
  open_on(&gpu, target, level, s->text);
  open_on(&direct, "direct", level, s->text);
  for (int round = 0; round < 2; round++) {
    REQUIRE_OK(step(&gpu, s->integers, integers(s->rank, s->dims, s->good), "y", &a), &gpu.err);
    REQUIRE_OK(step(&direct, s->integers, integers(s->rank, s->dims, s->good), "y", &b), &direct.err);
    check_same(a, b);
    CHECK_STATUS(step(&gpu, s->integers, integers(s->rank, s->dims, s->bad), "y", &a), s->code, &gpu.err);
    CHECK_STATUS(step(&direct, s->integers, integers(s->rank, s->dims, s->bad), "y", &b), s->code, &direct.err);
    CHECK_NULL(a);
    CHECK_STR(tn_error_message(&gpu.err), tn_error_message(&direct.err));
    CHECK_CONTAINS(tn_error_message(&gpu.err), s->message);
    CHECK_STR(tn_error_node(&gpu.err), "y");
  }
  CHECK_INT(said.plans, 1);
  CHECK_INT(said.all_on_device, 1);
  listen_no_more();
  ts_fini(&gpu);
  ts_fini(&direct);
}

static void gpu_data_faults__a_step_fails_as_on_the_cpu_and_the_next_succeeds(void)
{
  GPU_NEEDS_DEVICE();
  FOR_LEVELS(level)
  FOR_TARGETS(target)
  for (size_t i = 0; i < N_SCENES; i++) check_scene(&scenes[i], target, level);
}

/* The first of many faults is named, in whatever order work items run. */
static void gpu_data_faults__the_error_names_the_first_of_many_faults(void)
{
  GPU_NEEDS_DEVICE();
  enum { MANY = 50000 };
  static const int64_t firsts[] = { 0, 1, 63, 64, 4097, MANY - 1 };
  const int64_t dims[] = { MANY };
  ts t;
  tn_tensor *out;
  open_on(&t, targets[0], 1, scenes[0].text);
  for (size_t k = 0; k < sizeof firsts / sizeof *firsts; k++) {
    char wanted[100];
    tn_tensor *i = integers(1, dims, NULL);
    for (int64_t at = 0; at < MANY; at++)
      ((int32_t *)tn_tensor_data(i))[at] = (int32_t)(at < firsts[k] ? at % 4 : at + 4);
    snprintf(wanted, sizeof wanted, "index %lld of input 1 is %lld, wanted", (long long)firsts[k],
             (long long)firsts[k] + 4);
    CHECK_STATUS(step(&t, false, i, "y", &out), TN_INVALID_ARGUMENT, &t.err);
    CHECK_CONTAINS(tn_error_message(&t.err), wanted);
  }
  ts_fini(&t);
}

/* Indices that are constants of the graph are checked when the node is planned. */
static void gpu_data_faults__constant_indices_are_checked_in_advance(void)
{
  GPU_NEEDS_DEVICE();
  static const char text[] =
      OF_FLOATS NODE("k", "Const", "", INT_OF("3")) NODE("y", "Gather", "input: 'x' input: 'k'", PICKS);
  static const char none[] =
      OF_FLOATS NODE("k", "Const", "", INT_OF("4")) NODE("y", "Gather", "input: 'x' input: 'k'", PICKS);
  ts t;
  tn_tensor *out;
  FOR_LEVELS(level)
  {
    open_on(&t, targets[0], level, text);
    REQUIRE_OK(step(&t, false, integers(0, NULL, (int32_t[]){ 0 }), "y", &out), &t.err);
    CHECK_DOUBLE(((float *)tn_tensor_data(out))[2], 11, 0);
    tn_tensor_unref(out);
    ts_fini(&t);
    open_on(&t, targets[0], level, none);
    CHECK_STATUS(step(&t, false, integers(0, NULL, (int32_t[]){ 0 }), "y", &out), TN_INVALID_ARGUMENT, &t.err);
    CHECK_CONTAINS(tn_error_message(&t.err), "index 0 of input 1 is 4, wanted one in [0, 4)");
    ts_fini(&t);
  }
}

/* ---- nodes that follow ---- */

static const char behind_text[] =
    OF_FLOATS NODE("picked", "Gather", "input: 'x' input: 'i'", PICKS)
    NODE("sure", "Gather", "input: 'picked' input: 'i'", PICKS) /* has four rows, too */
    NODE("host", "Identity", "input: 'sure'", T("DT_FLOAT"))
    NODE("watched", "TestCount", "input: 'sure' " "device: '/device:CPU:0'", SLOT("1"))
    NODE("apart", "TestEffect", "input: '^picked'", "attr { key: 'slot' value { i: 2 } }")
    NODE("y", "Neg", "input: 'watched' input: '^apart'", T("DT_FLOAT"));

/* In a failed step, neither a CPU node that reads the device's results nor an effect with only a
 * control dependency runs. */
static void gpu_data_faults__nodes_after_a_fault_do_not_run(void)
{
  GPU_NEEDS_DEVICE();
  const int64_t four[] = { 4 };
  FOR_LEVELS(level)
  FOR_TARGETS(target)
  {
    ts t;
    tn_tensor *out;
    open_on(&t, target, level, behind_text);
    ts_watch_reset();
    for (int round = 1; round <= 2; round++) {
      CHECK_STATUS(step(&t, false, integers(1, four, (int32_t[]){ 0, 1, 2, 4 }), "y", &out), TN_INVALID_ARGUMENT,
                   &t.err);
      CHECK_CONTAINS(tn_error_message(&t.err),
                     "node 'picked' (Gather): index 3 of input 1 is 4"); /* the first of the two */
      CHECK_INT(ts_counted(1), round - 1);
      CHECK_INT(ts_counted(2), round - 1);
      REQUIRE_OK(step(&t, false, integers(1, four, (int32_t[]){ 3, 2, 1, 0 }), "y", &out), &t.err);
      tn_tensor_unref(out);
      CHECK_INT(ts_counted(1), round);
      CHECK_INT(ts_counted(2), round);
    }
    ts_fini(&t);
  }
}

static void gpu_data_faults__effects_after_a_fault_do_not_happen(void)
{
  GPU_NEEDS_DEVICE();
  const int64_t one[] = { 1 };
  FOR_LEVELS(level)
  FOR_TARGETS(target)
  {
    ts t;
    open_on(&t, target, level, behind_text);
    ts_watch_reset();
    for (int32_t index = 4; index >= 3; index--) { /* index 3 exists */
      tn_tensor *feeds[2] = { ramp(TN_FLOAT, 4, 3), integers(1, one, &index) }, *out = NULL;
      const char *fetch = "picked";
      CHECK_STATUS(
          tn_session_run(t.session, NULL, NAMES("x", "i"), feeds, 2, &fetch, &out, 1, NAMES("apart"), 1, NULL, &t.err),
          index == 4 ? TN_INVALID_ARGUMENT : TN_OK, &t.err);
      CHECK_INT(ts_counted(2), index == 4 ? 0 : 1);
      tn_tensor_unref(out);
      tn_tensor_unref(feeds[0]);
      tn_tensor_unref(feeds[1]);
    }
    ts_fini(&t);
  }
}

#define FLOAT_VARIABLE "attr { key: 'dtype' value { type: DT_FLOAT } }"
static const char variable_text[] =
    OF_FLOATS NODE("v", "VarHandleOp", "", FLOAT_VARIABLE "attr { key: 'shape' value { shape { unknown_rank: true } } }"
                   "attr { key: 'shared_name' value { s: 'gpu_data_faults' } }")
    NODE("picked", "Gather", "input: 'x' input: 'i'", PICKS) NODE("neg", "Neg", "input: 'picked'", T("DT_FLOAT"))
    NODE("set", "AssignVariableOp", "input: 'v' input: 'neg'", FLOAT_VARIABLE)
    NODE("read", "ReadVariableOp", "input: 'v'", FLOAT_VARIABLE);

static float first_of_variable(ts *t)
{
  tn_tensor *out = NULL;
  const char *fetch = "read";
  REQUIRE_OK(tn_session_run(t->session, NULL, NULL, NULL, 0, &fetch, &out, 1, NULL, 0, NULL, &t->err), &t->err);
  float value = 0;
  REQUIRE_INT(tn_tensor_bytes(out), sizeof value * 3);
  float all[3];
  REQUIRE_OK(tn_tensor_read(out, all, sizeof all, &t->err), &t->err);
  tn_tensor_unref(out);
  return all[0];
}

static tn_status set_variable(ts *t, int32_t index)
{
  const int64_t one[] = { 1 };
  tn_tensor *feeds[2] = { ramp(TN_FLOAT, 4, 3), integers(1, one, &index) };
  tn_status st =
      tn_session_run(t->session, NULL, NAMES("x", "i"), feeds, 2, NULL, NULL, 0, NAMES("set"), 1, NULL, &t->err);
  tn_tensor_unref(feeds[0]);
  tn_tensor_unref(feeds[1]);
  return st;
}

static void gpu_data_faults__variables_keep_their_values(void)
{
  GPU_NEEDS_DEVICE();
  FOR_LEVELS(level)
  FOR_TARGETS(target)
  {
    ts t;
    open_on(&t, target, level, variable_text);
    REQUIRE_OK(set_variable(&t, 2), &t.err);
    CHECK_DOUBLE(first_of_variable(&t), -6, 0);
    CHECK_STATUS(set_variable(&t, 9), TN_INVALID_ARGUMENT, &t.err);
    CHECK_STR(tn_error_node(&t.err), "picked");
    CHECK_DOUBLE(first_of_variable(&t), -6, 0);
    REQUIRE_OK(set_variable(&t, 1), &t.err);
    CHECK_DOUBLE(first_of_variable(&t), -3, 0);
    ts_fini(&t);
  }
}

/* A segment of the plan whose shapes depend on data: faults of indices found by the device are
 * seen by the next segment. */
static const char parts_text[] =
    OF_FLOATS NODE("k", "Const", "", FLOAT_OF("4.5")) NODE("more", "Greater", "input: 'x' input: 'k'", T("DT_FLOAT"))
    NODE("where", "Where", "input: 'more'", "attr { key: 'T' value { type: DT_BOOL } }")
    NODE("small", "Gather", "input: 'x' input: 'i'", PICKS)
    NODE("y", "GatherNd", "input: 'small' input: 'where'",
         "attr { key: 'Tparams' value { type: DT_FLOAT } } attr { key: 'Tindices' value { type: DT_INT64 } }");

static void gpu_data_faults__segments_that_depend_on_data(void)
{
  GPU_NEEDS_DEVICE();
  const int64_t four[] = { 4 };
  FOR_LEVELS(level)
  FOR_TARGETS(target)
  {
    ts gpu, direct;
    tn_tensor *a, *b;
    open_on(&gpu, target, level, parts_text);
    open_on(&direct, "direct", level, parts_text);
    for (int round = 0; round < 2; round++) {
      REQUIRE_OK(step(&gpu, false, integers(1, four, (int32_t[]){ 0, 1, 2, 3 }), "y", &a), &gpu.err);
      REQUIRE_OK(step(&direct, false, integers(1, four, (int32_t[]){ 0, 1, 2, 3 }), "y", &b), &direct.err);
      check_same(a, b);
      const int64_t three[] = { 3 };
      CHECK_STATUS(step(&gpu, false, integers(1, three, (int32_t[]){ 0, 1, 2 }), "y", &a), TN_INVALID_ARGUMENT,
                   &gpu.err);
      CHECK_STATUS(step(&direct, false, integers(1, three, (int32_t[]){ 0, 1, 2 }), "y", &b), TN_INVALID_ARGUMENT,
                   &direct.err);
      CHECK_STR(tn_error_message(&gpu.err), tn_error_message(&direct.err));
      CHECK_STR(tn_error_node(&gpu.err), "y");
    }
    ts_fini(&gpu);
    ts_fini(&direct);
  }
}

/* ---- cost ---- */

static uint64_t allocations_of_step(ts *t, const int32_t *values, tn_status wanted)
{
  const int64_t three[] = { 3 };
  tn_tensor *i = integers(1, three, values), *out;
  uint64_t before = tn_test_allocations();
  CHECK_STATUS(step(t, false, i, "y", &out), wanted, &t->err);
  uint64_t after = tn_test_allocations();
  tn_tensor_unref(out);
  return after - before;
}

static void gpu_data_faults__a_step_after_a_fault_allocates_nothing(void)
{
  GPU_NEEDS_DEVICE();
  FOR_TARGETS(target)
  {
    ts t;
    open_on(&t, target, 1, scenes[0].text);
    (void)allocations_of_step(&t, scenes[0].good, TN_OK);
    uint64_t usual = allocations_of_step(&t, scenes[0].good, TN_OK);
    (void)allocations_of_step(&t, scenes[0].bad, TN_INVALID_ARGUMENT);
    CHECK_INT(allocations_of_step(&t, scenes[0].good, TN_OK), usual);
    uint64_t blocks = tn_test_live_blocks();
    for (int k = 0; k < 20; k++) {
      (void)allocations_of_step(&t, scenes[0].bad, TN_INVALID_ARGUMENT);
      CHECK_INT(allocations_of_step(&t, scenes[0].good, TN_OK), usual);
    }
    CHECK_INT(tn_test_live_blocks(), blocks);
    ts_fini(&t);
  }
}

static tn_status fail_once(void *arg)
{
  const tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  tn_session_options *o = NULL;
  tn_session *session = NULL;
  tn_graph *graph = NULL;
  tn_tensor **feeds = arg, *out = NULL;
  const char *fetch = "y";
  tn_error err = TN_ERROR_INIT;
  tn_status st = tn_session_options_create(&o, NULL);
  if (st == TN_OK) st = tn_session_options_set_target(o, targets[1], NULL);
  if (st == TN_OK) st = tn_graph_create(&graph, NULL);
  if (st == TN_OK) st = tn_graph_import(graph, scenes[0].text, strlen(scenes[0].text), &options, NULL);
  if (st == TN_OK) st = tn_session_create(o, &session, NULL);
  if (st == TN_OK) st = tn_session_set_graph(session, graph, NULL);
  if (st == TN_OK) st = tn_session_run(session, NULL, NAMES("x", "i"), feeds, 2, &fetch, &out, 1, NULL, 0, NULL, &err);
  CHECK(st != TN_OK && out == NULL);
  if (st == TN_INVALID_ARGUMENT) st = TN_OK; /* the expected status */
  tn_error_clear(&err);
  tn_session_destroy(session);
  tn_graph_unref(graph);
  tn_session_options_destroy(o);
  return st;
}

static void gpu_data_faults__without_memory(void)
{
  GPU_NEEDS_DEVICE();
  const int64_t three[] = { 3 };
  tn_tensor *feeds[2] = { ramp(TN_FLOAT, 4, 3), integers(1, three, scenes[0].bad) };
  tn_test_oom_sweep(fail_once, feeds);
  tn_tensor_unref(feeds[0]);
  tn_tensor_unref(feeds[1]);
}

TAP_MAIN(
  TAP_TEST(gpu_data_faults__a_step_fails_as_on_the_cpu_and_the_next_succeeds),
  TAP_TEST(gpu_data_faults__the_error_names_the_first_of_many_faults),
  TAP_TEST(gpu_data_faults__constant_indices_are_checked_in_advance),
  TAP_TEST(gpu_data_faults__nodes_after_a_fault_do_not_run),
  TAP_TEST(gpu_data_faults__effects_after_a_fault_do_not_happen),
  TAP_TEST(gpu_data_faults__variables_keep_their_values),
  TAP_TEST(gpu_data_faults__segments_that_depend_on_data),
  TAP_TEST(gpu_data_faults__a_step_after_a_fault_allocates_nothing),
  TAP_TEST(gpu_data_faults__without_memory))
