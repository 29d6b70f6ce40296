/* SPDX-License-Identifier: Apache-2.0 */
/* Large weights of a model file: once kernels have packed them, their bytes are released
 * everywhere, and obtained again when needed. The test's allocator overwrites released memory. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tenon/op.h>
#include <tenon/plan.h>

#include "conformance/support/session_kit.h"

enum { K = 384, N = 1024, ROWS = 32 }; /* 1.5 MiB of weights: small files stay in memory */
#define WEIGHT_BYTES ((size_t)K * N * sizeof(float))

static char folder[] = "/tmp/tenon-large-XXXXXX", path[sizeof folder + 20];
static uint8_t *original; /* the file */
static size_t original_size;

static float weight(int64_t k, int64_t n) { return (float)((k * 7 + n * 3) % 17 - 8); }
static float scale(int64_t n) { return (float)(n % 3 + 1); }

/* ---- an op that packs w for large x, and reads w directly for small x: y[i] = x[i] * w[i] ---- */

enum { FEW = 4 };

static tn_status pack_copy(void *user, const tn_view *from, void *to, tn_error *err)
{
  (void)user, (void)err;
  memcpy(to, from->data, (size_t)from->count * sizeof(float));
  return TN_OK;
}

static tn_status prepare_pick(tn_prepare_ctx *ctx, tn_error *err)
{
  const void *packed;
  size_t bytes = (size_t)ctx->inputs[1].count * sizeof(float);
  CHECK(tn_prepare_is_constant(ctx, 1));
  CHECK(!tn_prepare_is_constant(ctx, 0));
  if (ctx->inputs[0].count > FEW) {
    tn_status st = tn_prepare_pack(ctx, 1, 1, bytes, pack_copy, NULL, &packed, err);
    if (st != TN_OK) return st;
    ctx->shape_state = (void *)packed;
  }
  return tn_prepare_output_like(ctx, 0, 0, err);
}

static tn_status compute_pick(tn_kernel_ctx *ctx)
{
  const float *x = ctx->inputs[0]->data, *w = ctx->shape_state != NULL ? ctx->shape_state : ctx->inputs[1]->data;
  for (int64_t i = 0; i < ctx->inputs[0]->count; i++) ((float *)ctx->outputs[0]->data)[i] = x[i] * w[i];
  return TN_OK;
}

static const tn_op_def ops[] = { { .struct_size = TN_OP_DEF_SIZE, .name = "TestPick", .inputs = "x: T, w: T",
                                   .outputs = "y: T", .attrs = "T: {float}" } };
static const tn_kernel_def kernels[] = { { .struct_size = TN_KERNEL_DEF_SIZE,
                                           .op = "TestPick",
                                           .device = "CPU",
                                           .name = "pick",
                                           .rank = TN_RANK_C,
                                           .prepare = prepare_pick,
                                           .compute = compute_pick } };
static const tn_op_family family = { .struct_size = TN_OP_FAMILY_SIZE, .name = "pick", .ops = ops, .n_ops = 1,
                                     .kernels = kernels, .n_kernels = 1 };

/* y = (x * w) * s: the planner multiplies s into w, and kernels pack the product. picked: each v
 * times its w. */
static void write_model(void)
{
  ts t;
  ts_init(&t, 1);
  tn_tensor *w, *s;
  const int64_t dims[] = { K, N }, n = N;
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, dims, 2, &w, &t.err), &t.err);
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, &n, 1, &s, &t.err), &t.err);
  for (int64_t k = 0; k < K; k++)
    for (int64_t i = 0; i < N; i++) ((float *)tn_tensor_data(w))[k * N + i] = weight(k, i);
  for (int64_t i = 0; i < N; i++) ((float *)tn_tensor_data(s))[i] = scale(i);
  tn_output x = ts_placeholder(t.graph, "x", TN_FLOAT);
  tn_output product = ts_op2(t.graph, "MatMul", "product", x, ts_const_tensor(t.graph, "w", w));
  ts_op2(t.graph, "Mul", "y", product, ts_const_tensor(t.graph, "s", s));
  ts_op2(t.graph, "TestPick", "picked", ts_placeholder(t.graph, "v", TN_FLOAT),
         (tn_output){ (tn_operation *)tn_graph_find(t.graph, "w"), 0 });
  tn_tensor *table; /* numbers equal to their own indices */
  const int64_t n_numbers = 16384;
  REQUIRE_OK(tn_tensor_create(TN_INT64, &n_numbers, 1, &table, &t.err), &t.err);
  for (int64_t i = 0; i < n_numbers; i++) ((int64_t *)tn_tensor_data(table))[i] = i;
  tn_output v = { (tn_operation *)tn_graph_find(t.graph, "v"), 0 };
  tn_output sizes = ts_op2(t.graph, "Gather", "sizes", ts_const_tensor(t.graph, "table", table),
                           ts_op1(t.graph, "Shape", "shape", v));
  ts_op2(t.graph, "Reshape", "shaped", v, sizes);
  tn_tensor_unref(table);
  REQUIRE_OK(tn_graph_export_file(t.graph, path, 0, &t.err), &t.err);
  tn_tensor_unref(w);
  tn_tensor_unref(s);
  ts_fini(&t);
  FILE *f = fopen(path, "rb");
  fseek(f, 0, SEEK_END);
  original_size = (size_t)ftell(f);
  original = malloc(original_size);
  rewind(f);
  CHECK_INT(fread(original, 1, original_size, f), original_size);
  fclose(f);
}

static void restore_file(void)
{
  FILE *f = fopen(path, "wb");
  fwrite(original, 1, original_size, f);
  fclose(f);
}

/* Replaces the content by another of the same size, in place. */
static void spoil_file(void)
{
  struct timespec times[2] = { { 1000, 0 }, { 1000, 0 } };
  FILE *f = fopen(path, "r+b");
  fseek(f, (long)original_size / 2, SEEK_SET);
  fputc('x', f);
  fclose(f);
  utimensat(AT_FDCWD, path, times, 0); /* timestamps of files may be coarse */
}

typedef struct loaded {
  ts t;
  tn_plan_summary plan;
} loaded;

static void open_flags(loaded *l, int level, uint32_t flags)
{
  if (original == NULL) write_model();
  ts_init(&l->t, level);
  tn_import_options o = { .struct_size = sizeof o, .flags = flags };
  REQUIRE_OK(tn_graph_import_file(l->t.graph, path, &o, &l->t.err), &l->t.err);
  REQUIRE_OK(tn_session_options_set_string(l->t.options, "kernel_plugins", "never", &l->t.err), &l->t.err);
  ts_start(&l->t);
}

static void open_model(loaded *l, int level) { open_flags(l, level, 0); }

/* Feeds rows of 1, 2, 3, ...; returns false, with the error in t.err, if the step fails. */
static bool run_rows(loaded *l, int64_t rows, const char *fetch, bool scaled)
{
  const int64_t dims[] = { rows, K };
  const char *feed = "x";
  tn_tensor *x = ts_filled(2, dims, 0), *y;
  for (int64_t i = 0; i < rows * K; i++) ((float *)tn_tensor_data(x))[i] = (float)(i / K % 5 + 1);
  tn_status st = tn_session_run(l->t.session, NULL, &feed, &x, 1, &fetch, &y, 1, NULL, 0, NULL, &l->t.err);
  tn_tensor_unref(x);
  if (st != TN_OK) return false;
  bool right = true;
  for (int64_t n = 0; n < N; n++) {
    float sum = 0;
    for (int64_t k = 0; k < K; k++) sum += weight(k, n);
    for (int64_t i = 0; i < rows; i++)
      right &= ((float *)tn_tensor_data(y))[i * N + n] == sum * (float)(i % 5 + 1) * (scaled ? scale(n) : 1);
  }
  CHECK(right);
  tn_tensor_unref(y);
  return true;
}

static bool pick(loaded *l, int64_t n)
{
  const char *feed = "v", *fetch = "picked:0";
  tn_tensor *v = ts_filled(1, &n, 2), *y;
  tn_status st = tn_session_run(l->t.session, NULL, &feed, &v, 1, &fetch, &y, 1, NULL, 0, NULL, &l->t.err);
  tn_tensor_unref(v);
  if (st != TN_OK) return false;
  for (int64_t i = 0; i < n; i++) CHECK(((float *)tn_tensor_data(y))[i] == 2 * weight(i / N, i % N));
  tn_tensor_unref(y);
  return true;
}

static uint64_t held(loaded *l, const char *feed, const char *fetch, uint64_t *packed)
{
  tn_plan_report *report;
  l->plan = (tn_plan_summary){ .struct_size = sizeof l->plan };
  REQUIRE_OK(tn_session_plan_report(l->t.session, &feed, 1, &fetch, 1, NULL, 0, &report, &l->t.err), &l->t.err);
  REQUIRE_OK(tn_plan_report_summary(report, &l->plan, &l->t.err), &l->t.err);
  tn_plan_report_release(report);
  if (packed != NULL) *packed = l->plan.packed_bytes;
  return l->plan.held_bytes;
}

static void large_constants__are_held_once(void)
{
  FOR_LEVELS(level) {
    loaded l;
    uint64_t packed;
    open_model(&l, level);
    CHECK(run_rows(&l, ROWS, "y:0", true));
    CHECK(held(&l, "x", "y:0", &packed) < WEIGHT_BYTES / 2);
    CHECK(packed >= WEIGHT_BYTES);
    ts_fini(&l.t);
  }
}

static void large_constants__are_read_again_for_other_shapes(void)
{
  FOR_LEVELS(level) {
    loaded l;
    open_model(&l, level);
    CHECK(pick(&l, 2 * FEW));
    CHECK(held(&l, "v", "picked:0", NULL) < WEIGHT_BYTES / 2);
    for (int turn = 0; turn < 2; turn++) {
      CHECK(pick(&l, FEW));
      CHECK(pick(&l, 2 * FEW));
      CHECK(run_rows(&l, ROWS, "y:0", true));
      CHECK(run_rows(&l, 1, "y:0", true));
    }
    CHECK(held(&l, "v", "picked:0", NULL) >= WEIGHT_BYTES);
    ts_fini(&l.t);
  }
}

static void large_constants__serve_other_signatures_and_sessions(void)
{
  loaded l;
  open_model(&l, 1);
  CHECK(run_rows(&l, ROWS, "y:0", true));
  CHECK(run_rows(&l, ROWS, "product:0", false));
  CHECK(run_rows(&l, 1, "product:0", false));
  loaded other = { .t = { .graph = tn_graph_ref(l.t.graph), .options = l.t.options, .err = TN_ERROR_INIT } };
  REQUIRE_OK(tn_session_create(other.t.options, &other.t.session, &other.t.err), &other.t.err);
  REQUIRE_OK(tn_session_set_graph(other.t.session, other.t.graph, &other.t.err), &other.t.err);
  CHECK(run_rows(&other, ROWS, "y:0", true));
  CHECK(held(&other, "x", "y:0", NULL) < WEIGHT_BYTES / 2);
  tn_session_destroy(other.t.session);
  tn_graph_unref(other.t.graph);
  tn_error_clear(&other.t.err);
  ts_fini(&l.t);
}

static void large_constants__can_be_fetched(void)
{
  loaded l;
  open_model(&l, 1);
  CHECK(run_rows(&l, ROWS, "y:0", true));
  const char *fetch = "w:0";
  for (int turn = 0; turn < 2; turn++) {
    tn_tensor *w;
    REQUIRE_OK(tn_session_run(l.t.session, NULL, NULL, NULL, 0, &fetch, &w, 1, NULL, 0, NULL, &l.t.err), &l.t.err);
    CHECK(((float *)tn_tensor_data(w))[K * N - 1] == weight(K - 1, N - 1));
    tn_tensor_unref(w);
  }
  ts_fini(&l.t);
}

/* A shape that follows from one: its elements are needed for shape inference. */
static void large_constants__may_determine_shapes(void)
{
  FOR_LEVELS(level) {
    loaded l;
    open_model(&l, level);
    const char *feed = "v", *fetch = "shaped:0";
    for (int64_t n = 3; n < 6; n++) {
      tn_tensor *v = ts_filled(1, &n, 2), *y;
      REQUIRE_OK(tn_session_run(l.t.session, NULL, &feed, &v, 1, &fetch, &y, 1, NULL, 0, NULL, &l.t.err), &l.t.err);
      CHECK_INT(tn_tensor_elements(y), n);
      tn_tensor_unref(y);
      tn_tensor_unref(v);
    }
    ts_fini(&l.t);
  }
}

/* ---- other readers of the graph ---- */

static void large_constants__are_exported_unchanged(void)
{
  loaded l;
  void *bytes;
  size_t size;
  open_model(&l, 1);
  CHECK(run_rows(&l, ROWS, "y:0", true));
  REQUIRE_OK(tn_graph_export(l.t.graph, 0, &bytes, &size, &l.t.err), &l.t.err);
  CHECK(size == original_size && memcmp(bytes, original, size) == 0);
  tn_free(bytes);
  CHECK(run_rows(&l, 1, "y:0", true));
  ts_fini(&l.t);
}

static void large_constants__are_attributes(void)
{
  loaded l;
  tn_tensor *w;
  void *before, *after;
  size_t n, m;
  open_model(&l, 1);
  const tn_operation *op = tn_graph_find(l.t.graph, "w");
  REQUIRE_OK(tn_operation_attr_proto(op, "value", &before, &n, &l.t.err), &l.t.err);
  CHECK(run_rows(&l, ROWS, "y:0", true));
  REQUIRE_OK(tn_operation_attr_proto(op, "value", &after, &m, &l.t.err), &l.t.err);
  CHECK(n == m && memcmp(before, after, n) == 0);
  tn_free(before);
  tn_free(after);
  ts_fini(&l.t);

  open_model(&l, 1);
  int64_t dims[TN_MAX_RANK];
  int32_t rank;
  tn_dtype dtype;
  CHECK(run_rows(&l, ROWS, "y:0", true));
  op = tn_graph_find(l.t.graph, "w");
  REQUIRE_OK(tn_operation_attr_tensor_shape(op, "value", &dtype, dims, &rank, &l.t.err), &l.t.err);
  CHECK(dtype == TN_FLOAT && rank == 2 && dims[0] == K && dims[1] == N);
  REQUIRE_OK(tn_operation_attr_tensor(op, "value", &w, &l.t.err), &l.t.err);
  for (int64_t i = 0; i < K * N; i += 1023) CHECK(((float *)tn_tensor_data(w))[i] == weight(i / N, i % N));
  REQUIRE_OK(tn_operation_node_def(op, &after, &m, &l.t.err), &l.t.err);
  CHECK(m > WEIGHT_BYTES);
  tn_free(after);
  ts_fini(&l.t);
}

/* ---- the file ---- */

static void large_constants__of_a_removed_file_are_still_read(void)
{
  loaded l;
  open_model(&l, 1);
  CHECK(pick(&l, 2 * FEW));
  CHECK_INT(unlink(path), 0);
  CHECK(pick(&l, FEW));
  CHECK(run_rows(&l, ROWS, "product:0", false));
  restore_file();
  ts_fini(&l.t);
}

static void large_constants__of_a_changed_file_are_an_error(void)
{
  FOR_LEVELS(level) {
    loaded l;
    void *bytes;
    size_t size;
    open_model(&l, level);
    CHECK(run_rows(&l, ROWS, "y:0", true));
    CHECK(pick(&l, 2 * FEW));
    spoil_file();
    CHECK(!pick(&l, FEW));
    CHECK_INT(tn_error_code(&l.t.err), TN_DATA_LOSS);
    CHECK_CONTAINS(tn_error_message(&l.t.err), path);
    CHECK_CONTAINS(tn_error_message(&l.t.err), "was written to after it was loaded");
    CHECK_STATUS(tn_graph_export(l.t.graph, 0, &bytes, &size, &l.t.err), TN_DATA_LOSS, &l.t.err);
    CHECK(bytes == NULL);
    CHECK(run_rows(&l, ROWS, "y:0", true)); /* steps that need no bytes continue */
    CHECK(run_rows(&l, ROWS + 1, "y:0", true));
    restore_file();
    ts_fini(&l.t);
  }
}

static void large_constants__are_kept_on_request(void)
{
  loaded l;
  open_flags(&l, 1, TN_IMPORT_KEEP_BYTES);
  CHECK(run_rows(&l, ROWS, "y:0", true));
  spoil_file();
  CHECK(pick(&l, FEW));
  CHECK(run_rows(&l, ROWS, "product:0", false));
  restore_file();
  ts_fini(&l.t);
}

/* A file that changed before any bytes were released does no harm, either: the bytes are kept. */
static void large_constants__of_a_file_changed_early_are_kept(void)
{
  loaded l;
  open_model(&l, 1);
  spoil_file();
  CHECK(run_rows(&l, ROWS, "y:0", true));
  CHECK(pick(&l, 2 * FEW));
  CHECK(pick(&l, FEW));
  restore_file();
  ts_fini(&l.t);
}

/* ---- lack of memory ---- */

static tn_status load_and_run(void *arg)
{
  (void)arg;
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = NULL;
  tn_session *session = NULL;
  tn_session_options *options = NULL;
  const char *feed = "v", *fetch = "picked:0";
  tn_tensor *v = NULL, *y = NULL;
  tn_status st = tn_graph_create(&graph, &err);
  if (st == TN_OK) st = tn_graph_import_file(graph, path, NULL, &err);
  if (st == TN_OK) st = tn_session_options_create(&options, &err);
  if (st == TN_OK) st = tn_session_options_set_target(options, ts_runtime(), &err);
  if (st == TN_OK) st = tn_session_options_set_string(options, "kernel_plugins", "never", &err);
  if (st == TN_OK) st = tn_session_create(options, &session, &err);
  if (st == TN_OK) st = tn_session_set_graph(session, graph, &err);
  for (int64_t n = 2 * FEW; st == TN_OK && n >= FEW; n /= 2) {
    st = tn_tensor_create(TN_FLOAT, &n, 1, &v, &err);
    if (st == TN_OK) memset(tn_tensor_data(v), 0, tn_tensor_bytes(v));
    if (st == TN_OK) st = tn_session_run(session, NULL, &feed, &v, 1, &fetch, &y, 1, NULL, 0, NULL, &err);
    tn_tensor_unref(y);
    tn_tensor_unref(v);
    v = y = NULL;
  }
  tn_session_destroy(session);
  tn_session_options_destroy(options);
  tn_graph_unref(graph);
  tn_error_clear(&err);
  return st;
}

static void large_constants__survive_lack_of_memory(void)
{
  if (original == NULL) write_model();
  tn_test_oom_sweep(load_and_run, NULL);
}

static void setup(void)
{
  tn_error err = TN_ERROR_INIT;
  if (mkdtemp(folder) == NULL || tn_register_ops(&family, &err) != TN_OK) exit(1);
  snprintf(path, sizeof path, "%s/model.pb", folder);
}

static void teardown(void)
{
  unlink(path);
  rmdir(folder);
  free(original);
}

TAP_MAIN_WITH(setup, teardown,
  TAP_TEST(large_constants__are_held_once),
  TAP_TEST(large_constants__are_read_again_for_other_shapes),
  TAP_TEST(large_constants__serve_other_signatures_and_sessions),
  TAP_TEST(large_constants__can_be_fetched),
  TAP_TEST(large_constants__may_determine_shapes),
  TAP_TEST(large_constants__are_exported_unchanged),
  TAP_TEST(large_constants__are_attributes),
  TAP_TEST(large_constants__of_a_removed_file_are_still_read),
  TAP_TEST(large_constants__of_a_changed_file_are_an_error),
  TAP_TEST(large_constants__are_kept_on_request),
  TAP_TEST(large_constants__of_a_file_changed_early_are_kept),
  TAP_TEST(large_constants__survive_lack_of_memory))
