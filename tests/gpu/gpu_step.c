/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of the runtime gpu: what runs on the device and what stays there, with results equal to
 * those of `direct`. Uses PoCL or any other device; tests are skipped without one, unless
 * TENON_TEST_GPU=required. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "conformance/support/calls_kit.h"
#include "tests/support/gpu_kit.h"
#include "tests/support/meet_op.h"
#include "conformance/support/oom.h"

#define DEVICE "gpu:placement=device"
#define APART "gpu:placement=device,copies=always" /* as on a device with memory of its own */
static const char *const targets[] = { DEVICE, APART, APART ",queues=3" };
#define FOR_TARGETS(t)                       \
  for (size_t t##_i = 0; t##_i < 3; t##_i++) \
    for (const char *t = targets[t##_i]; t != NULL; t = NULL)

/* ---- the log ---- */

static struct {
  pthread_mutex_t mu;
  char text[1 << 16];
  size_t size;
} said = { .mu = PTHREAD_MUTEX_INITIALIZER };

static void hear(void *user, int32_t level, const char *line)
{
  (void)user, (void)level;
  size_t n = strlen(line);
  pthread_mutex_lock(&said.mu);
  if (said.size + n + 2 < sizeof said.text) said.size += (size_t)sprintf(said.text + said.size, "%s\n", line);
  pthread_mutex_unlock(&said.mu);
}

static void listen(void)
{
  said.size = 0;
  said.text[0] = 0;
  tn_set_log_sink(hear, NULL);
  tn_set_log_level(TN_LOG_INFO);
}

static void listen_no_more(void)
{
  tn_set_log_level(TN_LOG_WARNING);
  tn_set_log_sink(NULL, NULL);
}

static int times_said(const char *text)
{
  int n = 0;
  for (const char *at = said.text; (at = strstr(at, text)) != NULL; at++) n++;
  return n;
}

/* ---- graphs ---- */

#define ON(device) "device: '" device "' "

/* Elementwise nodes that the planner fuses into one. */
static const char chain_text[] = IN("x", "DT_FLOAT") NODE("two", "Const", "", FLOAT_OF("2"))
    NODE("twice", "Mul", "input: 'x' input: 'two'", T("DT_FLOAT")) NODE("tanh", "Tanh", "input: 'twice'", T("DT_FLOAT"))
        NODE("sum", "AddV2", "input: 'tanh' input: 'x'", T("DT_FLOAT"))
            NODE("neg", "Neg", "input: 'sum'", T("DT_FLOAT"));

/* Views, outputs that reuse inputs, known shapes, strings, nodes placed on the CPU by the graph,
 * and values fetched twice. */
static const char mixed_text[] = IN("x", "DT_FLOAT") IN("n", "DT_INT32") NODE("a", "AddV2", "input: 'x' input: 'x'",
                                                                              T("DT_FLOAT"))
    NODE("b", "Neg", "input: 'a' " ON("/device:CPU:0"), T("DT_FLOAT")) NODE("c", "Exp", "input: 'b'", T("DT_FLOAT"))
        NODE("shape", "Shape", "input: 'c'", T("DT_FLOAT") "attr { key: 'out_type' value { type: DT_INT32 } }") NODE(
            "minus", "Const", "",
            "attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' value { tensor { dtype: DT_INT32 "
            "tensor_shape { dim { size: 1 } } int_val: -1 } } }")
            NODE("flat", "Reshape", "input: 'c' input: 'minus'",
                 T("DT_FLOAT") "attr { key: 'Tshape' value { type: DT_INT32 } }") NODE("sqrt", "Sqrt", "input: 'flat'",
                                                                                       T("DT_FLOAT"))
                NODE("tanh", "Tanh", "input: 'sqrt' " ON("/device:CPU:0"),
                     T("DT_FLOAT")) NODE("relu", "Relu", "input: 'tanh' " ON("/device:CPU:0"), T("DT_FLOAT"))
                    NODE("more", "AddV2", "input: 'relu' input: 'flat'",
                         T("DT_FLOAT")) NODE("i0", "Const", "", INT_OF("0")) NODE("i1", "Const", "", INT_OF("1"))
                        NODE("range", "Range", "input: 'i0' input: 'n' input: 'i1'",
                             "attr { key: 'Tidx' value { type: DT_INT32 } }") NODE("text", "AsString",
                                                                                   "input: 'range'", T("DT_INT32"))
                            NODE("kept", "Identity", "input: 'text'", T("DT_STRING"))
                                NODE("word", "Const", "",
                                     "attr { key: 'dtype' value { type: DT_STRING } } attr { key: 'value' value { "
                                     "tensor { dtype: DT_STRING "
                                     "tensor_shape { } string_val: ' of those that are longer than a small text' } } }")
                                    NODE("said", "StringJoin", "input: 'text' input: 'word'",
                                         "attr { key: 'N' value { i: 2 } }")
                                        NODE("fed", "Identity", "input: 'x'", T("DT_FLOAT"));
static const char *const mixed_fetches[] = { "c",   "flat", "shape", "sqrt", "range", "kept", "text",
                                             "fed", "i1",   "more",  "b",    "tanh",  "said" };
enum { N_MIXED = sizeof mixed_fetches / sizeof *mixed_fetches };

/* A branch chosen during the step. */
static const char branch_text[] =
    IN("x", "DT_FLOAT") IN("p", "DT_BOOL") NODE("switch", "Switch", "input: 'x' input: 'p'", T("DT_FLOAT"))
    NODE("yes", "Neg", "input: 'switch:1'", T("DT_FLOAT")) NODE("no", "Exp", "input: 'switch'", T("DT_FLOAT"))
    NODE("merge", "Merge", "input: 'no' input: 'yes'", T("DT_FLOAT") "attr { key: 'N' value { i: 2 } }");

/* A shape that depends on data. */
static const char where_text[] = IN("x", "DT_FLOAT") NODE("zero", "Const", "", FLOAT_OF("0.1"))
    NODE("more", "Greater", "input: 'x' input: 'zero'", T("DT_FLOAT")) NODE("where", "Where", "input: 'more'",
                                                                            "attr { key: 'T' value { type: DT_BOOL } }")
        NODE("twice", "AddV2", "input: 'where' input: 'where'", T("DT_INT64")) NODE("neg", "Neg", "input: 'x'",
                                                                                    T("DT_FLOAT"))
            NODE("seen", "GatherNd", "input: 'neg' input: 'where'",
                 "attr { key: 'Tparams' value { type: DT_FLOAT } } attr { key: 'Tindices' value { type: DT_INT64 } }")
                NODE("square", "Square", "input: 'seen'", T("DT_FLOAT"))
                    NODE("pair", "AddV2", "input: 'square' input: 'seen'", T("DT_FLOAT"));

static void open_with(ts *t, const char *target, int level, const char *text, int64_t layouts)
{
  const tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  ts_init(t, level);
  REQUIRE_OK(tn_session_options_set_target(t->options, target, &t->err), &t->err);
  if (layouts > 0) REQUIRE_OK(tn_session_options_set_int(t->options, "max_layouts", layouts, &t->err), &t->err);
  REQUIRE_OK(tn_graph_import(t->graph, text, strlen(text), &options, &t->err), &t->err);
  ts_start(t);
}

static void open_on(ts *t, const char *target, int level, const char *text) { open_with(t, target, level, text, 0); }

static tn_tensor *ramp(int64_t rows)
{
  const int64_t dims[] = { rows, 3 };
  tn_tensor *x = NULL;
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, dims, 2, &x, NULL), NULL);
  for (int64_t i = 0; i < rows * 3; i++) ((float *)tn_tensor_data(x))[i] = (float)(i % 7) / 4;
  return x;
}

static tn_status run_fed(ts *t, tn_tensor *x, const char *fetch, tn_tensor **out)
{
  return tn_session_run(t->session, NULL, NAMES("x"), &x, 1, &fetch, out, 1, NULL, 0, NULL, &t->err);
}

static tn_status run_mixed(ts *t, int64_t rows, int32_t n, tn_tensor **out)
{
  tn_tensor *in[2] = { ramp(rows), NULL };
  tn_status st = tn_tensor_from_data(TN_INT32, NULL, 0, &n, sizeof n, &in[1], &t->err);
  if (st == TN_OK)
    st = tn_session_run(t->session, NULL, NAMES("x", "n"), in, 2, mixed_fetches, out, N_MIXED, NULL, 0, NULL, &t->err);
  tn_tensor_unref(in[0]);
  tn_tensor_unref(in[1]);
  return st;
}

static void check_same(tn_tensor *a, tn_tensor *b)
{
  CHECK_INT(tn_tensor_dtype(a), tn_tensor_dtype(b));
  CHECK_INT(tn_tensor_rank(a), tn_tensor_rank(b));
  for (int32_t d = 0; d < tn_tensor_rank(a); d++) CHECK_INT(tn_tensor_dims(a)[d], tn_tensor_dims(b)[d]);
  CHECK_INT(tn_tensor_elements(a), tn_tensor_elements(b));
  for (int64_t i = 0; i < tn_tensor_elements(a); i++) {
    size_t n, m;
    if (tn_tensor_dtype(a) == TN_STRING) {
      const char *x = tn_string_data((tn_string *)tn_tensor_data(a) + i, &n),
                 *y = tn_string_data((tn_string *)tn_tensor_data(b) + i, &m);
      CHECK(n == m && memcmp(x, y, n) == 0);
    } else if (tn_tensor_dtype(a) == TN_FLOAT) {
      CHECK_DOUBLE(((float *)tn_tensor_data(a))[i], ((float *)tn_tensor_data(b))[i], 1e-5);
    } else {
      size_t bytes = tn_dtype_size(tn_tensor_dtype(a));
      CHECK(memcmp((char *)tn_tensor_data(a) + (size_t)i * bytes, (char *)tn_tensor_data(b) + (size_t)i * bytes,
                   bytes) == 0);
    }
  }
}

static void unref_all(tn_tensor **t, size_t n)
{
  for (size_t i = 0; i < n; i++) tn_tensor_unref(t[i]);
}

/* One fetch on both. */
static void check_like_direct(ts *gpu, ts *direct, int64_t rows, const char *fetch)
{
  tn_tensor *x = ramp(rows), *a = NULL, *b = NULL;
  REQUIRE_OK(run_fed(gpu, x, fetch, &a), &gpu->err);
  REQUIRE_OK(run_fed(direct, x, fetch, &b), &direct->err);
  check_same(a, b);
  tn_tensor_unref(a);
  tn_tensor_unref(b);
  tn_tensor_unref(x);
}

/* ---- placement ---- */

static void gpu_step__a_chain_runs_on_the_device(void)
{
  GPU_NEEDS_DEVICE();
  FOR_LEVELS(level)
  FOR_TARGETS(target)
  {
    ts gpu, direct;
    listen();
    open_on(&gpu, target, level, chain_text);
    open_on(&direct, "direct", level, chain_text);
    for (int64_t rows = 1; rows <= 3; rows++) check_like_direct(&gpu, &direct, rows, "neg");
    CHECK_INT(times_said(" nodes on the device, 0 on the CPU"), 3);
    CHECK_INT(times_said(": 1 nodes on the device"), level == 1 ? 3 : 0); /* one kernel for all of them */
    ts_fini(&gpu);
    ts_fini(&direct);
    listen_no_more();
  }
}

static void gpu_step__mixed_placement_gives_the_results_of_direct(void)
{
  GPU_NEEDS_DEVICE();
  static const int32_t rows[] = { 2, 5, 0, 2, 40, 1000 };
  FOR_LEVELS(level)
  FOR_TARGETS(target)
  {
    ts gpu, direct;
    open_on(&gpu, target, level, mixed_text);
    open_on(&direct, "direct", level, mixed_text);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
      tn_tensor *a[N_MIXED] = { NULL }, *b[N_MIXED] = { NULL };
      REQUIRE_OK(run_mixed(&gpu, rows[i], rows[i] + 1, a), &gpu.err);
      REQUIRE_OK(run_mixed(&direct, rows[i], rows[i] + 1, b), &direct.err);
      for (int k = 0; k < N_MIXED; k++) check_same(a[k], b[k]);
      unref_all(a, N_MIXED);
      unref_all(b, N_MIXED);
    }
    ts_fini(&gpu);
    ts_fini(&direct);
  }
}

/* Nodes on the CPU use the session's threads, also if others are on the device. S-CFG-10 */
static void gpu_step__nodes_on_the_cpu_have_workers(void)
{
  GPU_NEEDS_DEVICE();
  static const char text[] = IN("x", "DT_FLOAT") NODE("neg", "Neg", "input: 'x'", T("DT_FLOAT")) MEET_NODE("neg");
  static const struct {
    int64_t threads, loops;
    int32_t pool;
    float most;
  } cases[] = { { 2, 0, 0, 2 }, { 2, 0, -1, 1 }, { 2, 1, 0, 1 }, { 1, 0, 0, 1 } };
  meet_register();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
    ts t;
    tn_run_options run;
    tn_tensor *x = ramp(4), *y = NULL;
    tn_run_options_init(&run);
    run.inter_op_pool = cases[i].pool;
    meet_wait_ms = cases[i].most > 1 ? 5000 : 200;
    ts_init(&t, 1);
    REQUIRE_OK(tn_session_options_set_target(t.options, DEVICE, &t.err), &t.err);
    REQUIRE_OK(tn_session_options_set_int(t.options, "inter_op_threads", cases[i].threads, &t.err), &t.err);
    REQUIRE_OK(tn_session_options_set_int(t.options, "intra_op_threads", cases[i].loops, &t.err), &t.err);
    REQUIRE_OK(tn_session_options_set_bool(t.options, "use_per_session_threads", 1, &t.err), &t.err);
    REQUIRE_OK(tn_graph_import(t.graph, text, strlen(text), &options, &t.err), &t.err);
    ts_start(&t);
    listen();
    REQUIRE_OK(tn_session_run(t.session, &run, NAMES("x"), &x, 1, NAMES("meet"), &y, 1, NULL, 0, NULL, &t.err), &t.err);
    CHECK_INT(times_said(": 1 nodes on the device, 1 on the CPU"), 1);
    listen_no_more();
    CHECK_DOUBLE(((const float *)tn_tensor_data(y))[0], cases[i].most, 0);
    tn_tensor_unref(x);
    tn_tensor_unref(y);
    ts_fini(&t);
  }
}

static void gpu_step__placement_host_keeps_all_nodes_on_the_cpu(void)
{
  GPU_NEEDS_DEVICE();
  ts gpu, direct;
  listen();
  open_on(&gpu, "gpu:placement=host", 1, chain_text);
  open_on(&direct, "direct", 1, chain_text);
  check_like_direct(&gpu, &direct, 4, "neg");
  CHECK_INT(times_said(": 0 nodes on the device"), 1);
  ts_fini(&gpu);
  ts_fini(&direct);
  listen_no_more();
}

/* S-CFG-07: a small chain is not worth a copy; nodes placed on the device by the graph stay
 * there. */
static void gpu_step__placement_cost_keeps_small_nodes_on_the_cpu(void)
{
  GPU_NEEDS_DEVICE();
  static const char held[] = IN("x", "DT_FLOAT") NODE("neg", "Neg", "input: 'x'", T("DT_FLOAT"))
      NODE("tanh", "Tanh", "input: 'neg' " ON("/device:GPU:0"), T("DT_FLOAT"))
          NODE("exp", "Exp", "input: 'tanh'", T("DT_FLOAT"));
  ts gpu, direct;
  listen();
  open_on(&gpu, "gpu", 0, chain_text);
  open_on(&direct, "direct", 0, chain_text);
  check_like_direct(&gpu, &direct, 4, "neg");
  CHECK_INT(times_said(": 0 nodes on the device, 4 on the CPU"), 1);
  ts_fini(&gpu);
  ts_fini(&direct);
  open_on(&gpu, "gpu", 0, held);
  tn_tensor *x = ramp(1), *y = NULL;
  REQUIRE_OK(run_fed(&gpu, x, "exp", &y), &gpu.err);
  CHECK_DOUBLE(((float *)tn_tensor_data(y))[2], expf(tanhf(-0.5f)), 1e-5);
  CHECK_INT(times_said(": 1 nodes on the device, 2 on the CPU"), 1);
  tn_tensor_unref(x);
  tn_tensor_unref(y);
  ts_fini(&gpu);
  listen_no_more();
}

static void gpu_step__empty_tensors(void)
{
  GPU_NEEDS_DEVICE();
  FOR_TARGETS(target)
  {
    ts gpu, direct;
    open_on(&gpu, target, 1, chain_text);
    open_on(&direct, "direct", 1, chain_text);
    check_like_direct(&gpu, &direct, 0, "neg");
    ts_fini(&gpu);
    ts_fini(&direct);
  }
}

static void gpu_step__plans_that_are_not_straight_run_in_parts(void)
{
  GPU_NEEDS_DEVICE();
  ts gpu;
  tn_bool yes = 1;
  listen();
  open_on(&gpu, DEVICE, 1, branch_text);
  tn_tensor *in[2] = { ramp(2), NULL }, *out = NULL;
  REQUIRE_OK(tn_tensor_from_data(TN_BOOL, NULL, 0, &yes, 1, &in[1], NULL), NULL);
  for (int i = 0; i < 2; i++) {
    REQUIRE_OK(
        tn_session_run(gpu.session, NULL, NAMES("x", "p"), in, 2, NAMES("merge"), &out, 1, NULL, 0, NULL, &gpu.err),
        &gpu.err);
    CHECK_DOUBLE(((float *)tn_tensor_data(out))[3], -0.75, 0);
    tn_tensor_unref(out);
  }
  unref_all(in, 2);
  ts_fini(&gpu);
  CHECK_INT(times_said("gpu: a plan runs in parts: "), 1);
  CHECK_INT(times_said(": 1 nodes on the device, 0 on the CPU"), 1);
  listen_no_more();
}

/* A CPU node may reuse the memory of an input that a node on the device reads, but not before
 * the device has copied it. */
static void gpu_step__values_being_copied_are_not_overwritten(void)
{
  GPU_NEEDS_DEVICE();
  static const char text[] = IN("x", "DT_FLOAT") NODE("a", "Neg", "input: 'x' " ON("/device:CPU:0"), T("DT_FLOAT"))
      NODE("exp", "Exp", "input: 'a'", T("DT_FLOAT"))
          NODE("over", "Relu", "input: 'a' input: '^exp' " ON("/device:CPU:0"), T("DT_FLOAT"))
              NODE("z", "Neg", "input: 'over' " ON("/device:CPU:0"), T("DT_FLOAT"))
                  NODE("e", "Neg", "input: 'exp'", T("DT_FLOAT"));
  FOR_TARGETS(target)
  {
    ts t;
    const int64_t n = 1 << 20;
    tn_tensor *x = NULL, *out[2] = { NULL };
    int wrong = 0;
    open_on(&t, target, 0, text);
    REQUIRE_OK(tn_tensor_create(TN_FLOAT, &n, 1, &x, &t.err), &t.err);
    for (int64_t i = 0; i < n; i++) ((float *)tn_tensor_data(x))[i] = 2; /* the CPU node overwrites it with 0 */
    for (int k = 0; k < 10; k++) {
      REQUIRE_OK(tn_session_run(t.session, NULL, NAMES("x"), &x, 1, NAMES("e", "z"), out, 2, NULL, 0, NULL, &t.err),
                 &t.err);
      for (int64_t i = 0; i < n; i++)
        wrong += ((float *)tn_tensor_data(out[0]))[i] < -0.2f || ((float *)tn_tensor_data(out[1]))[i] != 0;
      unref_all(out, 2);
    }
    CHECK_INT(wrong, 0);
    tn_tensor_unref(x);
    ts_fini(&t);
  }
}

/* Results of one segment on the device are used there by the next segment. */
static void gpu_step__shapes_that_depend_on_data(void)
{
  GPU_NEEDS_DEVICE();
  static const char *const fetches[] = { "twice", "where", "seen", "pair" };
  FOR_LEVELS(level)
  FOR_TARGETS(target)
  {
    ts gpu, direct;
    listen();
    open_on(&gpu, target, level, where_text);
    open_on(&direct, "direct", level, where_text);
    for (int64_t rows = 0; rows < 5; rows++) {
      tn_tensor *x = ramp(rows), *a[4] = { NULL }, *b[4] = { NULL };
      REQUIRE_OK(tn_session_run(gpu.session, NULL, NAMES("x"), &x, 1, fetches, a, 4, NULL, 0, NULL, &gpu.err),
                 &gpu.err);
      REQUIRE_OK(tn_session_run(direct.session, NULL, NAMES("x"), &x, 1, fetches, b, 4, NULL, 0, NULL, &direct.err),
                 &direct.err);
      for (int k = 0; k < 4; k++) check_same(a[k], b[k]);
      unref_all(a, 4);
      unref_all(b, 4);
      tn_tensor_unref(x);
    }
    CHECK_INT(times_said("gpu: a plan runs on the CPU: "), 0);
    ts_fini(&gpu);
    ts_fini(&direct);
    listen_no_more();
  }
}

/* S-MD-02: the record of each node names its device. */
static void gpu_step__metadata_names_the_device(void)
{
  GPU_NEEDS_DEVICE();
  FOR_TARGETS(target)
  {
    ts t;
    tn_run_metadata *m = NULL;
    tn_run_options options;
    int on_device = 0, on_cpu = 0;
    int32_t n = 3;
    tn_tensor *in[2] = { ramp(4), NULL }, *out[N_MIXED] = { NULL };
    REQUIRE_OK(tn_tensor_from_data(TN_INT32, NULL, 0, &n, sizeof n, &in[1], NULL), NULL);
    open_on(&t, target, 1, mixed_text);
    tn_run_options_init(&options);
    options.trace_level = 3;
    REQUIRE_OK(tn_run_metadata_create(&m, &t.err), &t.err);
    REQUIRE_OK(
        tn_session_run(t.session, &options, NAMES("x", "n"), in, 2, mixed_fetches, out, N_MIXED, NULL, 0, m, &t.err),
        &t.err);
    tn_metadata_summary sum = { .struct_size = sizeof sum };
    REQUIRE_OK(tn_run_metadata_summary(m, &sum, &t.err), &t.err);
    for (size_t i = 0; i < sum.records; i++) {
      tn_node_record r = { .struct_size = sizeof r };
      REQUIRE_OK(tn_run_metadata_record(m, i, &r, &t.err), &t.err);
      bool gpu = strstr(r.device, "device:GPU:0") != NULL;
      on_device += gpu;
      on_cpu += !gpu;
      if (strcmp(r.node, "c") == 0) CHECK(gpu);
      if (strcmp(r.node, "b") == 0) CHECK_CONTAINS(r.device, "device:CPU:0");
      CHECK(r.duration_ns >= 0 && r.start_ns + r.duration_ns <= sum.duration_ns + 1000000);
    }
    CHECK(on_device >= 3);
    CHECK(on_cpu >= 3);
    tn_placement placed = { .struct_size = sizeof placed };
    REQUIRE_OK(tn_session_device_of(t.session, "c", &placed, &t.err), &t.err);
    CHECK_CONTAINS(placed.device, "device:GPU:0");
    REQUIRE_OK(tn_session_device_of(t.session, "text", &placed, &t.err), &t.err);
    CHECK_CONTAINS(placed.device, "device:CPU:0");
    CHECK_CONTAINS(placed.reason, "the device has no kernel for it");
    unref_all(in, 2);
    unref_all(out, N_MIXED);
    tn_run_metadata_destroy(m);
    ts_fini(&t);
  }
}

/* ---- tensors that stay on the device ---- */

static void gpu_step__tensors_stay_on_the_device(void)
{
  GPU_NEEDS_DEVICE();
  static const char *const stay[] = { DEVICE ",fetch=device", APART ",fetch=device" };
  for (size_t i = 0; i < 2; i++) {
    ts t;
    open_on(&t, stay[i], 1, chain_text);
    tn_tensor *x = ts_vector(3, (const float[]){ 0, 1, -2 }), *y = NULL, *z = NULL;
    REQUIRE_OK(run_fed(&t, x, "neg", &y), &t.err);
    const tn_buffer_desc *d = tn_buffer_describe(tn_tensor_buffer(y));
    CHECK(d->memory == TN_MEMORY_DEVICE || d->memory == TN_MEMORY_SHARED);
    REQUIRE_OK(run_fed(&t, y, "neg", &z), &t.err); /* fed from device memory */
    tn_tensor_unref(y);
    REQUIRE_OK(run_fed(&t, z, "twice", &y), &t.err);
    ts_fini(&t); /* the tensor outlives its session */
    float got[3];
    REQUIRE_OK(tn_tensor_read(y, got, sizeof got, NULL), NULL);
    for (int k = 0; k < 3; k++) {
      float v = ((float *)tn_tensor_data(x))[k], first = -(tanhf(2 * v) + v);
      CHECK_DOUBLE(got[k], -2 * (tanhf(2 * first) + first), 1e-4);
    }
    tn_tensor_unref(x);
    tn_tensor_unref(y);
    tn_tensor_unref(z);
  }
}

static void gpu_step__device_tensors_feed_cpu_nodes(void)
{
  GPU_NEEDS_DEVICE();
  static const char *const stay[] = { DEVICE ",fetch=device", APART ",fetch=device" };
  for (size_t i = 0; i < 2; i++) {
    ts t, direct;
    open_on(&t, stay[i], 0, mixed_text);
    open_on(&direct, "direct", 0, mixed_text);
    tn_tensor *a[N_MIXED] = { NULL }, *b[N_MIXED] = { NULL }, *again[N_MIXED] = { NULL };
    REQUIRE_OK(run_mixed(&t, 6, 2, a), &t.err);
    REQUIRE_OK(run_mixed(&direct, 6, 2, b), &direct.err);
    for (int k = 0; k < N_MIXED; k++) {
      tn_tensor *copy = NULL;
      REQUIRE_OK(tn_tensor_copy(a[k], &copy, &t.err), &t.err);
      check_same(copy, b[k]);
      tn_tensor_unref(copy);
    }
    tn_tensor *in[2] = { a[0], a[8] }, *host[2] = { b[0], b[8] }; /* c and i1 */
    unref_all(b + 1, 7);
    unref_all(b + 9, N_MIXED - 9);
    REQUIRE_OK(
        tn_session_run(t.session, NULL, NAMES("x", "n"), in, 2, mixed_fetches, again, N_MIXED, NULL, 0, NULL, &t.err),
        &t.err);
    tn_tensor *want[N_MIXED] = { NULL };
    REQUIRE_OK(tn_session_run(direct.session, NULL, NAMES("x", "n"), host, 2, mixed_fetches, want, N_MIXED, NULL, 0,
                              NULL, &t.err),
               &t.err);
    for (int k = 0; k < N_MIXED; k++) {
      tn_tensor *copy = NULL;
      REQUIRE_OK(tn_tensor_copy(again[k], &copy, &t.err), &t.err);
      check_same(copy, want[k]);
      tn_tensor_unref(copy);
    }
    unref_all(host, 2);
    unref_all(a, N_MIXED);
    unref_all(again, N_MIXED);
    unref_all(want, N_MIXED);
    ts_fini(&t);
    ts_fini(&direct);
  }
}

/* ---- repeated steps ---- */

static void gpu_step__shapes_change(void)
{
  GPU_NEEDS_DEVICE();
  ts gpu, direct;
  listen();
  open_with(&gpu, DEVICE, 1, chain_text, 2);
  open_on(&direct, "direct", 1, chain_text);
  static const int64_t rows[] = { 1, 2, 1, 2, 1, 3, 1, 3, 2 };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) check_like_direct(&gpu, &direct, rows[i], "neg");
  CHECK_INT(times_said("nodes on the device"), 4); /* two shapes are kept: 1, 2, 3, and 2 again */
  ts_fini(&gpu);
  ts_fini(&direct);
  listen_no_more();
}

/* "N allocations" of the line about the device's memory. */
static long allocations_said(void)
{
  const char *at = strstr(said.text, " allocations");
  if (at == NULL) return -1;
  while (at > said.text && at[-1] >= '0' && at[-1] <= '9') at--;
  return strtol(at, NULL, 10);
}

static long allocations_of(int steps)
{
  ts t;
  listen();
  open_on(&t, DEVICE, 1, mixed_text);
  uint64_t before = 0;
  for (int i = 0; i < steps; i++) {
    tn_tensor *out[N_MIXED] = { NULL };
    REQUIRE_OK(run_mixed(&t, 5, 2, out), &t.err);
    unref_all(out, N_MIXED);
    if (i == 1) before = tn_test_live_blocks();
  }
  if (steps > 2) CHECK_INT(tn_test_live_blocks(), before); /* and no host memory is leaked */
  ts_fini(&t);
  CHECK_INT(times_said("nodes on the device"), 1);
  listen_no_more();
  return allocations_said();
}

static void gpu_step__a_second_step_allocates_nothing(void)
{
  GPU_NEEDS_DEVICE();
  long one = allocations_of(1);
  CHECK(one > 0);
  CHECK_INT(allocations_of(8), one);
}

typedef struct worker {
  ts *gpu, *direct;
  pthread_t thread;
  int64_t rows;
} worker;

static void *work(void *arg)
{
  worker *w = arg;
  tn_error err = TN_ERROR_INIT;
  for (int i = 0; i < 10; i++) {
    tn_tensor *x = ramp(w->rows + i % 2), *a = NULL, *b = NULL;
    CHECK_STATUS(tn_session_run(w->gpu->session, NULL, NAMES("x"), &x, 1, NAMES("neg"), &a, 1, NULL, 0, NULL, &err),
                 TN_OK, &err);
    CHECK_STATUS(tn_session_run(w->direct->session, NULL, NAMES("x"), &x, 1, NAMES("neg"), &b, 1, NULL, 0, NULL, &err),
                 TN_OK, &err);
    if (a != NULL && b != NULL) check_same(a, b);
    tn_tensor_unref(x);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
  }
  tn_error_clear(&err);
  return NULL;
}

static void gpu_step__concurrent_steps(void)
{
  GPU_NEEDS_DEVICE();
  ts gpu, direct;
  worker w[4];
  open_with(&gpu, DEVICE, 0, chain_text, 3);
  open_on(&direct, "direct", 0, chain_text);
  for (int i = 0; i < 4; i++) {
    w[i] = (worker){ .gpu = &gpu, .direct = &direct, .rows = 1 + i / 2 };
    REQUIRE_INT(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
  }
  for (int i = 0; i < 4; i++) pthread_join(w[i].thread, NULL);
  ts_fini(&gpu);
  ts_fini(&direct);
}

/* ---- steps that end early ---- */

static void open_gate_graph(ts *t)
{
  tn_output in = ts_open_watched(t, 1), before = ts_op1(t->graph, "Neg", "before", in);
  tn_output gate = ts_watch_op(t->graph, "TestGate", "gate", before, 0);
  ts_op1(t->graph, "Neg", "after", gate);
  REQUIRE_OK(tn_session_options_set_target(t->options, APART, &t->err), &t->err);
  ts_start(t);
  ts_open_gate();
  CHECK_DOUBLE(ts_run1(t, FEEDS({ "in", 3 }), "after"), 3, 0); /* programs are compiled by now */
  ts_watch_reset();
}

static void gpu_step__a_time_limit(void)
{
  GPU_NEEDS_DEVICE();
  ts t;
  tn_run_options options;
  tn_tensor *x = ts_scalar(3), *out = NULL;
  open_gate_graph(&t);
  tn_run_options_init(&options);
  options.timeout_ms = 300;
  CHECK_STATUS(tn_session_run(t.session, &options, NAMES("in"), &x, 1, NAMES("after"), &out, 1, NULL, 0, NULL, &t.err),
               TN_DEADLINE_EXCEEDED, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "exceeded its time limit at node 'gate' (TestGate)");
  CHECK_NULL(out);
  ts_open_gate();
  tn_tensor_unref(x);
  ts_fini(&t);
}

/* Long products in sequence, all on the device. */
enum { N_PRODUCTS = 24, SIDE = 448 };

static void open_products(ts *t, tn_tensor **x)
{
  const int64_t dims[] = { SIDE, SIDE };
  char name[20];
  ts_init(t, 1);
  REQUIRE_OK(tn_session_options_set_target(t->options, DEVICE, &t->err), &t->err);
  tn_output at = ts_placeholder(t->graph, "x", TN_FLOAT), by = at;
  for (int i = 0; i < N_PRODUCTS; i++) {
    snprintf(name, sizeof name, i + 1 < N_PRODUCTS ? "m%d" : "last", i);
    at = ts_op2(t->graph, "MatMul", name, at, by);
  }
  ts_start(t);
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, dims, 2, x, &t->err), &t->err);
  for (int64_t i = 0; i < SIDE * SIDE; i++) ((float *)tn_tensor_data(*x))[i] = 1.0f / SIDE;
}

static int64_t run_products(ts *t, tn_tensor *x, int64_t timeout_ms, tn_status *status)
{
  tn_run_options options;
  tn_tensor *out = NULL;
  int64_t begun = ts_now_ms();
  tn_run_options_init(&options);
  options.timeout_ms = timeout_ms;
  *status = tn_session_run(t->session, &options, NAMES("x"), &x, 1, NAMES("last"), &out, 1, NULL, 0, NULL, &t->err);
  if (*status == TN_OK) CHECK_DOUBLE(((const float *)tn_tensor_data(out))[SIDE], 1.0 / SIDE, 1e-5);
  tn_tensor_unref(out);
  return ts_now_ms() - begun;
}

/* Work that the device has begun cannot be stopped, but a late step gives it no more. S-RO-04 */
static void gpu_step__a_time_limit_during_long_work(void)
{
  GPU_NEEDS_DEVICE();
  ts t;
  tn_tensor *x = NULL;
  tn_status st;
  open_products(&t, &x);
  run_products(&t, x, 0, &st); /* programs are compiled by now */
  REQUIRE_OK(st, &t.err);
  int64_t whole = run_products(&t, x, 0, &st);
  REQUIRE_OK(st, &t.err);
  if (whole >= 40) { /* otherwise the device is too fast for this test */
    int64_t late = run_products(&t, x, whole / 8, &st);
    CHECK_STATUS(st, TN_DEADLINE_EXCEEDED, &t.err);
    CHECK_MSG(late < whole * 3 / 4, "%d ms of %d", (int)late, (int)whole);
    run_products(&t, x, 0, &st); /* and the session remains usable */
    CHECK_OK(st, &t.err);
  }
  tn_tensor_unref(x);
  ts_fini(&t);
}

static void *cancel_it(void *arg)
{
  ts_wait_at_gate(1);
  tn_cancellation_cancel(arg);
  return NULL;
}

static void gpu_step__a_cancelled_step(void)
{
  GPU_NEEDS_DEVICE();
  ts t;
  pthread_t thread;
  tn_run_options options;
  tn_tensor *x = ts_scalar(3), *out = NULL;
  open_gate_graph(&t);
  tn_run_options_init(&options);
  REQUIRE_OK(tn_cancellation_create(NULL, &options.cancellation, &t.err), &t.err);
  REQUIRE_INT(pthread_create(&thread, NULL, cancel_it, options.cancellation), 0);
  CHECK_STATUS(tn_session_run(t.session, &options, NAMES("in"), &x, 1, NAMES("after"), &out, 1, NULL, 0, NULL, &t.err),
               TN_CANCELLED, &t.err);
  pthread_join(thread, NULL);
  CHECK_NULL(out);
  ts_open_gate();
  CHECK_DOUBLE(ts_run1(&t, FEEDS({ "in", 3 }), "after"), 3, 0); /* the session remains usable */
  tn_cancellation_unref(options.cancellation);
  tn_tensor_unref(x);
  ts_fini(&t);
}

static void gpu_step__a_node_fails(void)
{
  GPU_NEEDS_DEVICE();
  ts t;
  tn_tensor *out = NULL;
  tn_output in = ts_open_watched(&t, 1), before = ts_op1(t.graph, "Neg", "before", in);
  tn_output bad = ts_watch_op(t.graph, "TestFail", "bad", before, TN_DATA_LOSS);
  ts_op1(t.graph, "Neg", "after", bad);
  REQUIRE_OK(tn_session_options_set_target(t.options, APART, &t.err), &t.err);
  ts_start(&t);
  CHECK_STATUS(ts_run(&t, FEEDS({ "in", 1 }), NAMES("after"), &out, NULL), TN_DATA_LOSS, &t.err);
  CHECK_STR(tn_error_node(&t.err), "bad");
  CHECK_DOUBLE(ts_run1(&t, FEEDS({ "in", 2 }), "before"), -2, 0);
  ts_fini(&t);
}

static tn_status open_and_run(void *arg)
{
  const tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  tn_session_options *o = NULL;
  tn_session *session = NULL;
  tn_graph *graph = NULL;
  tn_tensor *x = arg, *out[2] = { NULL, NULL };
  tn_status st = tn_session_options_create(&o, NULL);
  if (st == TN_OK) st = tn_session_options_set_target(o, APART, NULL);
  if (st == TN_OK) st = tn_graph_create(&graph, NULL);
  if (st == TN_OK) st = tn_graph_import(graph, chain_text, strlen(chain_text), &options, NULL);
  if (st == TN_OK) st = tn_session_create(o, &session, NULL);
  if (st == TN_OK) st = tn_session_set_graph(session, graph, NULL);
  if (st == TN_OK)
    st = tn_session_run(session, NULL, NAMES("x"), &x, 1, NAMES("neg", "tanh"), out, 2, NULL, 0, NULL, NULL);
  unref_all(out, 2);
  tn_session_destroy(session);
  tn_graph_unref(graph);
  tn_session_options_destroy(o);
  return st;
}

static void gpu_step__without_memory(void)
{
  GPU_NEEDS_DEVICE();
  tn_tensor *x = ts_vector(3, (const float[]){ 0, 1, -2 });
  tn_test_oom_sweep(open_and_run, x);
  tn_tensor_unref(x);
}

TAP_MAIN(
  TAP_TEST(gpu_step__a_chain_runs_on_the_device),
  TAP_TEST(gpu_step__mixed_placement_gives_the_results_of_direct),
  TAP_TEST(gpu_step__nodes_on_the_cpu_have_workers),
  TAP_TEST(gpu_step__placement_host_keeps_all_nodes_on_the_cpu),
  TAP_TEST(gpu_step__placement_cost_keeps_small_nodes_on_the_cpu),
  TAP_TEST(gpu_step__empty_tensors),
  TAP_TEST(gpu_step__plans_that_are_not_straight_run_in_parts),
  TAP_TEST(gpu_step__values_being_copied_are_not_overwritten),
  TAP_TEST(gpu_step__shapes_that_depend_on_data),
  TAP_TEST(gpu_step__metadata_names_the_device),
  TAP_TEST(gpu_step__tensors_stay_on_the_device),
  TAP_TEST(gpu_step__device_tensors_feed_cpu_nodes),
  TAP_TEST(gpu_step__shapes_change),
  TAP_TEST(gpu_step__a_second_step_allocates_nothing),
  TAP_TEST(gpu_step__concurrent_steps),
  TAP_TEST(gpu_step__a_time_limit),
  TAP_TEST(gpu_step__a_time_limit_during_long_work),
  TAP_TEST(gpu_step__a_cancelled_step),
  TAP_TEST(gpu_step__a_node_fails),
  TAP_TEST(gpu_step__without_memory))
