/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and contents of layouts: outputs that reuse inputs, values that do not affect shapes,
 * numbers that follow from shapes. */
#include "conformance/support/session_kit.h"

static int n_prepared;

static tn_status prepare_probe(tn_prepare_ctx *ctx, tn_error *err)
{
  n_prepared++;
  return tn_prepare_output_like(ctx, 0, 0, err);
}

static tn_status compute_probe(tn_kernel_ctx *ctx)
{
  memcpy(ctx->outputs[0]->data, ctx->inputs[0]->data, (size_t)ctx->inputs[0]->count * sizeof(float));
  return TN_OK;
}

/* LayoutProbe x: float -> y: float; counts its layouts. */
static tn_output probe(ts *t, const char *name, tn_output x)
{
  static const tn_op_def op = { .struct_size = TN_OP_DEF_SIZE, .name = "LayoutProbe", .inputs = "x: float",
                                .outputs = "y: float", .attrs = "" };
  static const tn_kernel_def kernel = { .struct_size = TN_KERNEL_DEF_SIZE, .op = "LayoutProbe", .device = "CPU",
                                        .name = "layout_probe", .rank = TN_RANK_C, .prepare = prepare_probe,
                                        .compute = compute_probe };
  static const tn_op_family family = { .struct_size = TN_OP_FAMILY_SIZE, .name = "layout_probe", .ops = &op, .n_ops = 1,
                                       .kernels = &kernel, .n_kernels = 1 };
  static bool registered;
  if (!registered) REQUIRE_OK(tn_register_ops(&family, &t->err), &t->err);
  registered = true;
  return ts_op1(t->graph, "LayoutProbe", name, x);
}

static tn_tensor *numbers_of(int64_t n, const int32_t *values)
{
  tn_tensor *t;
  REQUIRE_OK(tn_tensor_from_data(TN_INT32, &n, 1, values, (size_t)n * sizeof *values, &t, NULL), NULL);
  return t;
}

static tn_output int_const(tn_graph *graph, const char *name, const int32_t *values, int64_t n)
{
  tn_tensor *t = numbers_of(n, values);
  tn_output o = ts_const_tensor(graph, name, t);
  tn_tensor_unref(t);
  return o;
}

static tn_plan_layout_info last_layout(ts *t, const char *const *feeds, size_t n, const char *fetch)
{
  tn_plan_layout_info info = { .struct_size = sizeof info };
  tn_plan_report *report;
  REQUIRE_OK(tn_session_plan_report(t->session, feeds, n, &fetch, 1, NULL, 0, &report, &t->err), &t->err);
  CHECK_OK(tn_plan_report_layout(report, 0, &info, &t->err), &t->err);
  tn_plan_report_release(report);
  return info;
}

/* `difference` may reuse either input: the first is needed later, the second is not. */
static void layout_cache__outputs_reuse_either_input(void)
{
  ts t;
  const char *feed = "x";
  ts_init(&t, 0);
  tn_output x = ts_placeholder(t.graph, "x", TN_FLOAT), first = ts_op1(t.graph, "Neg", "first", x);
  tn_output second = ts_op1(t.graph, "Square", "second", first);
  tn_output difference = ts_op2(t.graph, "Sub", "difference", first, second);
  ts_op1(t.graph, "Neg", "last", ts_op2(t.graph, "Mul", "product", difference, first));
  ts_start(&t);
  CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 3 }), "last"), -36, 0); /* -((-3 - 9) * -3) */
  tn_plan_layout_info info = last_layout(&t, &feed, 1, "last");
  CHECK_INT(info.in_place_bytes, 2 * sizeof(float)); /* difference, product */
  CHECK_INT(info.arena_bytes, 2 * 64); /* blocks begin at multiples of 64 */
  ts_fini(&t);
}

static void slice_of(ts *t, const int32_t begin, const int32_t size, bool laid_out)
{
  const char *feeds[] = { "x", "begin", "size" }, *fetch = "last";
  float content[20];
  for (int i = 0; i < 20; i++) content[i] = (float)i;
  tn_tensor *values[] = { ts_vector(20, content), numbers_of(1, &begin), numbers_of(1, &size) }, *out = NULL;
  int before = n_prepared;
  CHECK_OK(tn_session_run(t->session, NULL, feeds, values, 3, &fetch, &out, 1, NULL, 0, NULL, &t->err), &t->err);
  CHECK_INT(n_prepared - before, laid_out);
  CHECK_INT(tn_tensor_elements(out), size < 0 ? 20 - begin : size);
  for (int64_t i = 0; i < tn_tensor_elements(out); i++)
    CHECK_DOUBLE(((float *)tn_tensor_data(out))[i], -(begin + i), 0);
  tn_tensor_unref(out);
  for (int i = 0; i < 3; i++) tn_tensor_unref(values[i]);
}

static void open_slice(ts *t, int level)
{
  tn_operation *slice;
  ts_init(t, level);
  tn_output x = ts_placeholder(t->graph, "x", TN_FLOAT), begin = ts_placeholder(t->graph, "begin", TN_INT32);
  tn_operation_builder *b = tn_operation_begin(t->graph, "Slice", "slice", 0);
  tn_operation_add_input(b, x);
  tn_operation_add_input(b, begin);
  tn_operation_add_input(b, ts_placeholder(t->graph, "size", TN_INT32));
  REQUIRE_OK(tn_operation_finish(b, &slice, &t->err), &t->err);
  probe(t, "last", ts_op1(t->graph, "Neg", "neg", (tn_output){ slice, 0 }));
  CHECK_OK(tn_session_options_set_int(t->options, "max_layouts", 4, &t->err), &t->err);
  ts_start(t);
}

/* A slice from another position does not cause new layouts after it; one of another size does. */
static void layout_cache__values_that_do_not_affect_shapes(void)
{
  FOR_LEVELS(level) {
    ts t;
    open_slice(&t, level);
    slice_of(&t, 3, 5, true);
    for (int round = 0; round < 2; round++)
      for (int32_t from = 1; from <= 15; from++) slice_of(&t, from, 5, false);
    slice_of(&t, 2, 6, true);
    slice_of(&t, 1, 6, false);
    slice_of(&t, 0, 20, true); /* the whole input is a view, not a copy */
    slice_of(&t, 14, 6, false);
    ts_fini(&t);
  }
}

static uint64_t n_layouts(ts *t, const char *const *feeds, const char *fetch)
{
  tn_plan_summary s = { .struct_size = sizeof s };
  tn_plan_report *report;
  REQUIRE_OK(tn_session_plan_report(t->session, feeds, 3, &fetch, 1, NULL, 0, &report, &t->err), &t->err);
  CHECK_OK(tn_plan_report_summary(report, &s, &t->err), &t->err);
  tn_plan_report_release(report);
  return s.layouts;
}

/* y = x[at], or x with v at that row, of a 5 by 4 matrix. */
static tn_output row_of(ts *t, const char *op, const char *name, tn_output x, tn_output at, tn_output behind,
                        const tn_output *v)
{
  tn_operation *made;
  tn_operation_builder *b = tn_operation_begin(t->graph, op, name, 0);
  tn_operation_add_input(b, x);
  tn_operation_add_input(b, at);
  tn_operation_add_input(b, behind);
  tn_operation_add_input(b, int_const(t->graph, v == NULL ? "one" : "one_more", (const int32_t[]){ 1 }, 1));
  if (v != NULL) tn_operation_add_input(b, *v);
  tn_operation_set_int(b, "shrink_axis_mask", 1);
  REQUIRE_OK(tn_operation_finish(b, &made, &t->err), &t->err);
  return (tn_output){ made, 0 };
}

static tn_status pick_row(ts *t, int32_t row, const char *fetch, tn_tensor **out)
{
  const char *feeds[] = { "x", "at", "behind" };
  float content[20];
  const int32_t behind = row + 1;
  for (int i = 0; i < 20; i++) content[i] = (float)i;
  const int64_t dims[] = { 5, 4 };
  tn_tensor *values[] = { NULL, numbers_of(1, &row), numbers_of(1, &behind) };
  REQUIRE_OK(tn_tensor_from_data(TN_FLOAT, dims, 2, content, sizeof content, &values[0], &t->err), &t->err);
  tn_status st = tn_session_run(t->session, NULL, feeds, values, 3, &fetch, out, 1, NULL, 0, NULL, &t->err);
  for (int i = 0; i < 3; i++) tn_tensor_unref(values[i]);
  return st;
}

/* The row to read or write is only known in the step: all rows share one layout. */
static void layout_cache__rows_share_a_layout(void)
{
  FOR_LEVELS(level) {
    ts t;
    tn_tensor *out = NULL;
    ts_init(&t, level);
    tn_output x = ts_placeholder(t.graph, "x", TN_FLOAT), at = ts_placeholder(t.graph, "at", TN_INT32);
    tn_output behind = ts_placeholder(t.graph, "behind", TN_INT32),
              row = row_of(&t, "StridedSlice", "row", x, at, behind, NULL);
    tn_output negative = ts_op1(t.graph, "Neg", "negative", row);
    probe(&t, "last", negative);
    row_of(&t, "TensorStridedSliceUpdate", "put", x, at, behind, &negative);
    CHECK_OK(tn_session_options_set_int(t.options, "max_layouts", 1, &t.err), &t.err);
    ts_start(&t);
    int before = n_prepared;
    for (int32_t i = -5; i < 5; i++) {
      const int32_t first = 4 * (i < 0 ? i + 5 : i);
      CHECK_OK(pick_row(&t, i, "last", &out), &t.err);
      for (int k = 0; out != NULL && k < 4; k++) CHECK_DOUBLE(((float *)tn_tensor_data(out))[k], -(first + k), 0);
      tn_tensor_unref(out);
      out = NULL;
      CHECK_OK(pick_row(&t, i, "put", &out), &t.err);
      for (int k = 0; out != NULL && k < 20; k++)
        CHECK_DOUBLE(((float *)tn_tensor_data(out))[k], k >= first && k < first + 4 ? -k : k, 0);
      tn_tensor_unref(out);
      out = NULL;
    }
    CHECK_INT(n_prepared - before, 1);
    CHECK_INT(n_layouts(&t, (const char *const[]){ "x", "at", "behind" }, "put"), 1);
    CHECK_STATUS(pick_row(&t, 5, "last", &out), TN_INVALID_ARGUMENT, &t.err);
    tn_error_clear(&t.err);
    CHECK_STATUS(pick_row(&t, -6, "put", &out), TN_INVALID_ARGUMENT, &t.err);
    tn_error_clear(&t.err);
    CHECK_OK(pick_row(&t, 4, "last", &out), &t.err);
    tn_tensor_unref(out);
    ts_fini(&t);
  }
}

/* Slices of one size share a layout, wherever they begin; one out of range is rejected as
 * before. */
static void layout_cache__begins_share_a_layout(void)
{
  static const char *const feeds[] = { "x", "begin", "size" }, *const fetch = "last";
  static const int32_t wrong[] = { 16, -1, 21, INT32_MIN, INT32_MAX }, five = 5;
  FOR_LEVELS(level) {
    ts t;
    open_slice(&t, level);
    slice_of(&t, 3, 5, true);
    for (int32_t from = 0; from <= 15; from++) slice_of(&t, from, 5, false);
    CHECK_INT(n_layouts(&t, feeds, fetch), 1);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
      tn_tensor *values[] = { ts_filled(1, (int64_t[]){ 20 }, 0), numbers_of(1, &wrong[i]), numbers_of(1, &five) },
                *out = NULL;
      CHECK_STATUS(tn_session_run(t.session, NULL, feeds, values, 3, &fetch, &out, 1, NULL, 0, NULL, &t.err),
                   TN_INVALID_ARGUMENT, &t.err);
      CHECK_CONTAINS(tn_error_message(&t.err), "outside dimension 0 of size 20");
      tn_error_clear(&t.err);
      for (int k = 0; k < 3; k++) tn_tensor_unref(values[k]);
    }
    slice_of(&t, 4, -1, true); /* the begin determines the size */
    slice_of(&t, 5, -1, true);
    slice_of(&t, 2, 5, false);
    ts_fini(&t);
  }
}

typedef struct sliced {
  ts *t;
  tn_tensor *x, *size;
  int32_t begin;
} sliced;

/* Slices from a position that was not used before. */
static tn_status slice_once(void *arg)
{
  sliced *s = arg;
  const char *feeds[] = { "x", "begin", "size" }, *fetch = "last";
  tn_tensor *begin = NULL, *out = NULL;
  int64_t one = 1;
  s->begin = s->begin % 900 + 1;
  tn_status st = tn_tensor_from_data(TN_INT32, &one, 1, &s->begin, sizeof s->begin, &begin, NULL);
  tn_tensor *values[] = { s->x, begin, s->size };
  if (st == TN_OK) st = tn_session_run(s->t->session, NULL, feeds, values, 3, &fetch, &out, 1, NULL, 0, NULL, NULL);
  if (st == TN_OK) CHECK_INT(tn_tensor_elements(out), 7);
  tn_tensor_unref(begin);
  tn_tensor_unref(out);
  return st;
}

static void layout_cache__without_memory_for_new_values(void)
{
  ts t;
  uint64_t before = tn_test_live_blocks();
  open_slice(&t, 1);
  int64_t n = 1000;
  sliced s = { .t = &t, .x = ts_filled(1, &n, 1), .size = numbers_of(1, &(int32_t){ 7 }) };
  for (uint64_t nth = 1;; nth++) {
    CHECK_INT(slice_once(&s), TN_OK);
    tn_test_fail_allocation(nth, 0);
    tn_status st = slice_once(&s);
    bool failed = tn_test_allocation_failed();
    tn_test_fail_allocation(0, 0);
    if (!failed) break;
    CHECK(st == TN_OK || st == TN_RESOURCE_EXHAUSTED);
  }
  tn_tensor_unref(s.x), tn_tensor_unref(s.size);
  ts_fini(&t);
  CHECK_INT(tn_test_live_blocks(), before);
}

/* A range as long as the batch follows from shapes, but a layout stores small values only. A
 * slice of the range is small, and may determine a shape. */
static void layout_cache__layouts_do_not_store_long_ranges(void)
{
  ts t;
  char name[16];
  const char *feed = "x", *fetches[] = { "range", "filled" };
  const int64_t n = 100000;
  ts_init(&t, 1);
  tn_output x = ts_placeholder(t.graph, "x", TN_FLOAT), numbers[3];
  for (int i = 0; i < 3; i++) {
    int32_t value = i == 2 ? 5 : i;
    tn_tensor *v;
    REQUIRE_OK(tn_tensor_from_data(TN_INT32, NULL, 0, &value, sizeof value, &v, &t.err), &t.err);
    snprintf(name, sizeof name, "number%d", i);
    numbers[i] = ts_const_tensor(t.graph, name, v);
    tn_tensor_unref(v);
  }
  tn_operation_builder *b = tn_operation_begin(t.graph, "Range", "range", 0);
  tn_operation_add_input(b, numbers[0]);
  tn_operation_add_input(b, ts_op1(t.graph, "Size", "size", x));
  tn_operation_add_input(b, numbers[1]);
  tn_operation *op;
  REQUIRE_OK(tn_operation_finish(b, &op, &t.err), &t.err);
  b = tn_operation_begin(t.graph, "Slice", "two", 0);
  tn_operation_add_input(b, (tn_output){ op, 0 });
  tn_operation_add_input(b, int_const(t.graph, "from", &(int32_t){ 2 }, 1));
  tn_operation_add_input(b, int_const(t.graph, "size2", &(int32_t){ 2 }, 1));
  REQUIRE_OK(tn_operation_finish(b, &op, &t.err), &t.err);
  ts_op2(t.graph, "Fill", "filled", (tn_output){ op, 0 }, numbers[2]);
  ts_start(&t);
  tn_tensor *in = ts_filled(1, &n, 1), *out[2] = { NULL };
  for (int round = 0; round < 2; round++) {
    uint64_t before = tn_test_live_bytes();
    CHECK_OK(tn_session_run(t.session, NULL, &feed, &in, 1, fetches, out, 2, NULL, 0, NULL, &t.err), &t.err);
    CHECK_INT(tn_tensor_elements(out[0]), n);
    CHECK_INT(((const int32_t *)tn_tensor_data(out[0]))[n - 1], n - 1);
    CHECK_INT(tn_tensor_rank(out[1]), 2);
    CHECK_INT(tn_tensor_dims(out[1])[0], 2);
    CHECK_INT(tn_tensor_dims(out[1])[1], 3);
    for (int i = 0; i < 2; i++) {
      tn_tensor_unref(out[i]);
      out[i] = NULL;
    }
    CHECK(tn_test_live_bytes() - before < n);
  }
  tn_tensor_unref(in);
  ts_fini(&t);
}

TAP_MAIN(
  TAP_TEST(layout_cache__outputs_reuse_either_input),
  TAP_TEST(layout_cache__values_that_do_not_affect_shapes),
  TAP_TEST(layout_cache__begins_share_a_layout),
  TAP_TEST(layout_cache__rows_share_a_layout),
  TAP_TEST(layout_cache__without_memory_for_new_values),
  TAP_TEST(layout_cache__layouts_do_not_store_long_ranges))
