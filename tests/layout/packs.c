/* SPDX-License-Identifier: Apache-2.0 */
/* Packed constants (tn_prepare_pack): made once for all sessions of a graph, found by their
 * bytes, freed with the last plan. The op of these tests packs w to 10 w and computes x times
 * that. */
#include <tenon/op.h>

#include "conformance/support/session_kit.h"

static atomic_int n_packed, fail_packing;

static tn_status pack_ten(void *user, const tn_view *from, void *to, tn_error *err)
{
  (void)user;
  if (atomic_load(&fail_packing)) return tn_error_set(err, TN_DATA_LOSS, "told to fail");
  atomic_fetch_add(&n_packed, 1);
  for (int64_t i = 0; i < from->count; i++) ((float *)to)[i] = 10 * ((const float *)from->data)[i];
  return TN_OK;
}

typedef struct packed_state {
  const float *w;
} packed_state;

static tn_status prepare_packed(tn_prepare_ctx *ctx, tn_error *err)
{
  const void *packed, *again;
  size_t bytes = (size_t)ctx->inputs[1].count * sizeof(float);
  tn_status st = tn_prepare_pack(ctx, 1, 7, bytes, pack_ten, NULL, &packed, err);
  if (st == TN_FAILED_PRECONDITION) return tn_error_set(err, TN_UNIMPLEMENTED, "w is no constant");
  if (st == TN_OK) st = tn_prepare_pack(ctx, 1, 7, bytes, pack_ten, NULL, &again, err);
  if (st != TN_OK) return st;
  CHECK(packed == again);
  CHECK((uintptr_t)packed % 64 == 0);
  packed_state *s = tn_alloc(sizeof *s);
  if (s == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "out of memory");
  s->w = packed;
  ctx->shape_state = s;
  return tn_prepare_output_like(ctx, 0, 0, err);
}

static tn_status compute_packed(tn_kernel_ctx *ctx)
{
  const packed_state *s = ctx->shape_state;
  for (int64_t i = 0; i < ctx->inputs[0]->count; i++)
    ((float *)ctx->outputs[0]->data)[i] = ((const float *)ctx->inputs[0]->data)[i] * s->w[0];
  return TN_OK;
}

/* The kernel for an input that cannot be packed: x times w, plus 0.5. */
static tn_status prepare_plain(tn_prepare_ctx *ctx, tn_error *err) { return tn_prepare_output_like(ctx, 0, 0, err); }

static tn_status compute_plain(tn_kernel_ctx *ctx)
{
  for (int64_t i = 0; i < ctx->inputs[0]->count; i++)
    ((float *)ctx->outputs[0]->data)[i] =
        ((const float *)ctx->inputs[0]->data)[i] * ((const float *)ctx->inputs[1]->data)[0] + 0.5f;
  return TN_OK;
}

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "PackTimes", .inputs = "x: T, w: T", .outputs = "y: T",
    .attrs = "T: {float}" },
};
static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "PackTimes", .device = "CPU", .name = "pack_times", .rank = 200,
    .prepare = prepare_packed, .destroy_shape_state = tn_free, .compute = compute_packed },
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "PackTimes", .device = "CPU", .name = "plain_times", .rank = TN_RANK_C,
    .prepare = prepare_plain, .compute = compute_plain },
};
static const tn_op_family family = { .struct_size = TN_OP_FAMILY_SIZE, .name = "packs", .ops = ops, .n_ops = 1,
                                     .kernels = kernels, .n_kernels = 2 };

/* y1 = x * 3, y2 = x * 3 by another constant, y3 = x * 4, y4 = x * z */
static void open_graph(ts *t)
{
  tn_output x, z;
  ts_init(t, 0); /* no pass merges the two constants */
  x = ts_placeholder(t->graph, "x", TN_FLOAT);
  z = ts_placeholder(t->graph, "z", TN_FLOAT);
  ts_op2(t->graph, "PackTimes", "y1", x, ts_const(t->graph, "three", 3));
  ts_op2(t->graph, "PackTimes", "y2", x, ts_const(t->graph, "also_three", 3));
  ts_op2(t->graph, "PackTimes", "y3", x, ts_const(t->graph, "four", 4));
  ts_op2(t->graph, "PackTimes", "y4", x, z);
  atomic_store(&n_packed, 0);
  atomic_store(&fail_packing, 0);
}

/* A second session on the graph of t. */
static void open_second(const ts *t, ts *second)
{
  *second = (ts){ .graph = tn_graph_ref(t->graph), .err = TN_ERROR_INIT };
  REQUIRE_OK(tn_session_options_copy(t->options, &second->options, NULL), NULL);
  ts_start(second);
}

static void packs__are_made_once_for_equal_bytes(void)
{
  ts t, second;
  open_graph(&t);
  ts_start(&t);
  CHECK(ts_run1(&t, FEEDS({ "x", 2 }), "y1:0") == 60);
  CHECK_INT(n_packed, 1);
  CHECK(ts_run1(&t, FEEDS({ "x", 3 }), "y2:0") == 90);
  CHECK_INT(n_packed, 1);
  open_second(&t, &second);
  CHECK(ts_run1(&second, FEEDS({ "x", 2 }), "y1:0") == 60);
  CHECK_INT(n_packed, 1);
  CHECK(ts_run1(&second, FEEDS({ "x", 2 }), "y3:0") == 80);
  CHECK_INT(n_packed, 2);
  ts_fini(&t); /* the second session's plans keep theirs */
  CHECK(ts_run1(&second, FEEDS({ "x", 5 }), "y1:0") == 150);
  CHECK_INT(n_packed, 2);
  ts_fini(&second);
}

static void packs__are_freed_with_the_last_plan(void)
{
  ts t, second;
  open_graph(&t);
  for (int i = 1; i <= 3; i++) {
    uint64_t blocks = tn_test_live_blocks();
    open_second(&t, &second);
    CHECK(ts_run1(&second, FEEDS({ "x", 2 }), "y1:0") == 60);
    CHECK_INT(n_packed, i);
    ts_fini(&second);
    if (i > 1) CHECK_INT(tn_test_live_blocks(), blocks);
  }
  ts_fini(&t);
}

/* New shapes get new layouts, which use the existing packed constants. */
static void packs__serve_all_shapes(void)
{
  ts t;
  open_graph(&t);
  ts_start(&t);
  for (int64_t n = 1; n < 6; n++) {
    const char *feed = "x", *fetch = "y1:0";
    tn_tensor *x = ts_filled(1, &n, 2), *y = NULL;
    REQUIRE_OK(tn_session_run(t.session, NULL, &feed, &x, 1, &fetch, &y, 1, NULL, 0, NULL, &t.err), &t.err);
    CHECK(((float *)tn_tensor_data(y))[n - 1] == 60);
    tn_tensor_unref(x);
    tn_tensor_unref(y);
  }
  CHECK_INT(n_packed, 1);
  ts_fini(&t);
}

static void packs__are_made_of_constants_only(void)
{
  ts t;
  open_graph(&t);
  ts_start(&t);
  CHECK(ts_run1(&t, FEEDS({ "x", 2 }, { "z", 3 }), "y4:0") == 6.5f);
  CHECK_INT(n_packed, 0);
  ts_fini(&t);
}

static void packs__failures_are_errors_of_the_step(void)
{
  ts t;
  tn_tensor *out;
  open_graph(&t);
  ts_start(&t);
  atomic_store(&fail_packing, 1);
  CHECK_STATUS(ts_run(&t, FEEDS({ "x", 2 }), NAMES("y1:0"), &out, NULL), TN_DATA_LOSS, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "told to fail");
  CHECK_STR(tn_error_node(&t.err), "y1");
  atomic_store(&fail_packing, 0);
  CHECK(ts_run1(&t, FEEDS({ "x", 2 }), "y1:0") == 60); /* and the session remains usable */
  ts_fini(&t);
}

static tn_status run_all(void *graph)
{
  ts t = { .graph = tn_graph_ref(graph), .err = TN_ERROR_INIT };
  const char *fetches[] = { "y1:0", "y2:0", "y3:0" }, *feed = "x";
  tn_tensor *x = NULL, *y[3] = { NULL, NULL, NULL };
  const float two = 2;
  tn_status st = tn_session_options_create(&t.options, &t.err);
  if (st == TN_OK) st = tn_session_options_set_target(t.options, ts_runtime(), &t.err);
  if (st == TN_OK) st = tn_session_create(t.options, &t.session, &t.err);
  if (st == TN_OK) st = tn_session_set_graph(t.session, t.graph, &t.err);
  if (st == TN_OK) st = tn_tensor_from_data(TN_FLOAT, NULL, 0, &two, sizeof two, &x, &t.err);
  if (st == TN_OK) st = tn_session_run(t.session, NULL, &feed, &x, 1, fetches, y, 3, NULL, 0, NULL, &t.err);
  if (st == TN_OK) CHECK(ts_float(y[0]) == 60 && ts_float(y[1]) == 60 && ts_float(y[2]) == 80);
  for (int i = 0; i < 3; i++) tn_tensor_unref(y[i]);
  tn_tensor_unref(x);
  tn_session_destroy(t.session);
  tn_session_options_destroy(t.options);
  tn_graph_unref(t.graph);
  tn_error_clear(&t.err);
  return st;
}

static void packs__survive_lack_of_memory(void)
{
  ts t;
  open_graph(&t);
  tn_test_oom_sweep(run_all, t.graph);
  ts_fini(&t);
}

static void setup(void)
{
  tn_error err = TN_ERROR_INIT;
  if (tn_register_ops(&family, &err) != TN_OK) tn_log(TN_LOG_ERROR, "%s", tn_error_message(&err));
}

static void teardown(void) {}

TAP_MAIN_WITH(setup, teardown,
  TAP_TEST(packs__are_made_once_for_equal_bytes),
  TAP_TEST(packs__are_freed_with_the_last_plan),
  TAP_TEST(packs__serve_all_shapes),
  TAP_TEST(packs__are_made_of_constants_only),
  TAP_TEST(packs__failures_are_errors_of_the_step),
  TAP_TEST(packs__survive_lack_of_memory))
