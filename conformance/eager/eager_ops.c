/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of eager sessions: by name and prepared, attributes, lists, state, functions, and what
 * is rejected. */
#include <tenon/runtime.h>

#include "conformance/support/eager_kit.h"

#define ATTR_BOOL(name_, value) { .name = name_, .kind = TN_ATTR_BOOL, .i = value }
#define ATTR_TYPE(name_, value) { .name = name_, .kind = TN_ATTR_TYPE, .i = value }
#define ATTR_INT(name_, value) { .name = name_, .kind = TN_ATTR_INT, .i = value }
#define ATTR_STRING(name_, text) { .name = name_, .kind = TN_ATTR_STRING, .at = text, .n = sizeof text - 1 }

static tn_eager_handle matrix(te *t, const float *values, int64_t rows, int64_t columns)
{
  const int64_t dims[] = { rows, columns };
  tn_eager_handle h;
  REQUIRE_OK(
      tn_eager_from_data(t->session, TN_FLOAT, dims, 2, values, (size_t)(rows * columns) * sizeof *values, &h, &t->err),
      &t->err);
  return h;
}

static void check_floats(te *t, tn_eager_handle h, const float *values, int64_t n)
{
  tn_tensor *tensor;
  REQUIRE_OK(tn_eager_tensor(t->session, h, &tensor, &t->err), &t->err);
  CHECK_INT(tn_tensor_elements(tensor), n);
  if (tn_tensor_elements(tensor) == n) CHECK_BYTES(tn_tensor_data(tensor), values, (size_t)n * sizeof *values);
  tn_tensor_unref(tensor);
}

static void eager_ops__attributes_are_applied(void) /* S-EAG-01 */
{
  static const float a[] = { 1, 2, 3, 4 }, b[] = { 1, 0, 1, 1 }, plain[] = { 3, 2, 7, 4 }, turned[] = { 4, 3, 6, 4 };
  static const tn_eager_attr transpose[] = { ATTR_BOOL("transpose_a", 1) };
  FOR_RUNTIMES(runtime)
  {
    te t;
    te_open(&t, runtime, TN_EAGER_IN_BACKGROUND);
    tn_eager_handle in[] = { matrix(&t, a, 2, 2), matrix(&t, b, 2, 2) }, out;
    for (int i = 0; i < 3; i++) {
      REQUIRE_OK(tn_eager_matmul(t.session, in[0], in[1], &out, &t.err), &t.err);
      check_floats(&t, out, plain, 4);
      REQUIRE_OK(tn_eager_call(t.session, "MatMul", transpose, 1, in, 2, &out, 1, NULL, &t.err), &t.err);
      check_floats(&t, out, turned, 4);
    }
    te_fini(&t);
  }
}

static void eager_ops__types_follow_the_inputs(void)
{
  static const int32_t five[] = { 5 };
  FOR_RUNTIMES(runtime)
  {
    te t;
    tn_eager_op *op;
    te_open(&t, runtime, TN_EAGER_IN_BACKGROUND);
    REQUIRE_OK(tn_eager_op_create(t.session, "AddV2", "/device:CPU:0", NULL, 0, &op, &t.err), &t.err);
    for (int i = 0; i < 4; i++) {
      const tn_eager_handle f[] = { te_scalar(&t, 1), te_scalar(&t, 2) },
                            n[] = { te_ints(&t, five, 1), te_ints(&t, five, 1) };
      tn_eager_handle out;
      size_t n_out = 9;
      tn_tensor *tensor;
      REQUIRE_OK(tn_eager_op_call(op, f, 2, &out, 1, &n_out, &t.err), &t.err);
      CHECK_INT(n_out, 1);
      CHECK_DOUBLE(te_value(&t, out), 3, 0);
      REQUIRE_OK(tn_eager_op_call(op, n, 2, &out, 1, &n_out, &t.err), &t.err);
      REQUIRE_OK(tn_eager_tensor(t.session, out, &tensor, &t.err), &t.err);
      CHECK_INT(tn_tensor_dtype(tensor), TN_INT32);
      CHECK_INT(*(const int32_t *)tn_tensor_data(tensor), 10);
      tn_tensor_unref(tensor);
    }
    tn_eager_op_destroy(op);
    te_fini(&t);
  }
}

static void eager_ops__shapes_may_change_and_depend_on_values(void)
{
  FOR_RUNTIMES(runtime)
  {
    te t;
    te_open(&t, runtime, TN_EAGER_ON_SAFE_POINTS);
    for (int32_t n = 0; n < 40; n++) {
      tn_eager_handle dims = te_ints(&t, &n, 1), value = te_scalar(&t, (float)n), out;
      tn_tensor *tensor;
      REQUIRE_OK(tn_eager_fill(t.session, dims, value, &out, &t.err), &t.err);
      REQUIRE_OK(tn_eager_tensor(t.session, out, &tensor, &t.err), &t.err);
      CHECK_INT(tn_tensor_elements(tensor), n);
      if (n > 0) CHECK_DOUBLE(((const float *)tn_tensor_data(tensor))[n - 1], n, 0);
      tn_tensor_unref(tensor);
    }
    te_fini(&t);
  }
}

static void eager_ops__lists_are_counted_flat(void)
{
  static const tn_eager_attr split[] = { ATTR_INT("num_split", 3) };
  static const int32_t axis[] = { 0 };
  FOR_RUNTIMES(runtime)
  {
    te t;
    te_open(&t, runtime, TN_EAGER_IN_BACKGROUND);
    tn_eager_handle in[30], out, parts[4];
    size_t n;
    for (int i = 0; i < 30; i++) in[i] = te_scalar(&t, (float)i);
    for (size_t k = 1; k <= 30; k++) {
      REQUIRE_OK(tn_eager_call(t.session, "AddN", NULL, 0, in, k, &out, 1, NULL, &t.err), &t.err);
      CHECK_DOUBLE(te_value(&t, out), (double)(k * (k - 1) / 2), 0);
    }
    static const float six[] = { 1, 2, 3, 4, 5, 6 };
    tn_eager_handle to_split[] = { te_ints(&t, axis, 1), matrix(&t, six, 6, 1) }, scalar_axis;
    const int32_t zero = 0;
    REQUIRE_OK(tn_eager_from_data(t.session, TN_INT32, NULL, 0, &zero, sizeof zero, &scalar_axis, &t.err), &t.err);
    to_split[0] = scalar_axis;
    REQUIRE_OK(tn_eager_call(t.session, "Split", split, 1, to_split, 2, parts, 4, &n, &t.err), &t.err);
    CHECK_INT(n, 3);
    for (int i = 0; i < 3; i++) check_floats(&t, parts[i], six + 2 * i, 2);
    CHECK_STATUS(tn_eager_call(t.session, "Split", split, 1, to_split, 2, parts, 2, &n, &t.err), TN_INVALID_ARGUMENT,
                 &t.err);
    CHECK_INT(n, 3); /* the capacity required */
    uint64_t before = te_counters(&t).allocated;
    REQUIRE_OK(tn_eager_call(t.session, "Split", split, 1, to_split, 2, parts, 4, &n, &t.err), &t.err);
    CHECK_INT(te_counters(&t).allocated - before, 3);
    CHECK_STATUS(tn_eager_call(t.session, "Split", split, 1, to_split, 2, parts, 2, &n, &t.err), TN_INVALID_ARGUMENT,
                 &t.err);
    CHECK_INT(parts[0].id, 0);
    te_fini(&t);
  }
}

static void eager_ops__every_kind_of_attribute(void)
{
  static const int64_t shape[] = { 2, 3 }, strides[] = { 1, 1, 1, 1 };
  static const tn_eager_attr random[] = { ATTR_TYPE("dtype", TN_FLOAT), ATTR_INT("seed", 5), ATTR_INT("seed2", 6) };
  static const tn_eager_attr conv[] = {
    { .name = "strides", .kind = TN_ATTR_LIST | TN_ATTR_INT, .at = strides, .n = 4 },
    ATTR_STRING("padding", "VALID"),
    ATTR_STRING("data_format", "NHWC")
  };
  static const tn_eager_attr placeholder[] = { ATTR_TYPE("dtype", TN_FLOAT),
                                               { .name = "shape", .kind = TN_ATTR_SHAPE, .at = shape, .rank = 2 } };
  static const int32_t two_three[] = { 2, 3 };
  te t;
  te_open(&t, te_runtime(0), TN_EAGER_IN_BACKGROUND);
  tn_eager_handle in = te_ints(&t, two_three, 2), a, b, out;
  REQUIRE_OK(tn_eager_call(t.session, "RandomUniform", random, 3, &in, 1, &a, 1, NULL, &t.err), &t.err);
  REQUIRE_OK(tn_eager_call(t.session, "RandomUniform", random, 3, &in, 1, &b, 1, NULL, &t.err), &t.err);
  CHECK(te_value(&t, a) != te_value(&t, b)); /* one op, whose state persists */
  const int64_t image[] = { 1, 3, 3, 1 }, filter[] = { 2, 2, 1, 1 };
  const float pixels[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 }, ones[] = { 1, 1, 1, 1 }, sums[] = { 12, 16, 24, 28 };
  tn_eager_handle conv_in[2];
  REQUIRE_OK(tn_eager_from_data(t.session, TN_FLOAT, image, 4, pixels, sizeof pixels, &conv_in[0], &t.err), &t.err);
  REQUIRE_OK(tn_eager_from_data(t.session, TN_FLOAT, filter, 4, ones, sizeof ones, &conv_in[1], &t.err), &t.err);
  REQUIRE_OK(tn_eager_call(t.session, "Conv2D", conv, 3, conv_in, 2, &out, 1, NULL, &t.err), &t.err);
  check_floats(&t, out, sums, 4);
  CHECK_STATUS(tn_eager_call(t.session, "Placeholder", placeholder, 2, NULL, 0, &out, 1, NULL, &t.err),
               TN_INVALID_ARGUMENT, &t.err);
  tn_tensor *value = ts_scalar(7);
  const tn_eager_attr constant[] = { ATTR_TYPE("dtype", TN_FLOAT),
                                     { .name = "value", .kind = TN_ATTR_TENSOR, .at = value } };
  for (int i = 0; i < 2; i++) {
    REQUIRE_OK(tn_eager_call(t.session, "Const", constant, 2, NULL, 0, &out, 1, NULL, &t.err), &t.err);
    CHECK_DOUBLE(te_value(&t, out), 7, 0);
  }
  tn_tensor_unref(value);
  te_fini(&t);
}

static void eager_ops__state_lives_in_the_containers_of_the_runtime(void)
{
  static const tn_eager_attr handle[] = { ATTR_TYPE("dtype", TN_FLOAT), { .name = "shape", .kind = TN_ATTR_SHAPE },
                                          ATTR_STRING("shared_name", "eager_ops_state") };
  static const tn_eager_attr read[] = { ATTR_TYPE("dtype", TN_FLOAT) };
  FOR_RUNTIMES(runtime)
  {
    te t[2];
    tn_eager_handle v[2], in[2], out;
    for (int i = 0; i < 2; i++) {
      te_open(&t[i], runtime, TN_EAGER_IN_BACKGROUND);
      REQUIRE_OK(tn_eager_call(t[i].session, "VarHandleOp", handle, 3, NULL, 0, &v[i], 1, NULL, &t[i].err), &t[i].err);
    }
    in[0] = v[0];
    in[1] = te_scalar(&t[0], 4);
    REQUIRE_OK(tn_eager_call(t[0].session, "AssignVariableOp", NULL, 0, in, 2, NULL, 0, NULL, &t[0].err), &t[0].err);
    in[1] = te_scalar(&t[0], 2);
    REQUIRE_OK(tn_eager_call(t[0].session, "AssignAddVariableOp", NULL, 0, in, 2, NULL, 0, NULL, &t[0].err), &t[0].err);
    for (int i = 0; i < 2; i++) {
      REQUIRE_OK(tn_eager_call(t[i].session, "ReadVariableOp", read, 1, &v[i], 1, &out, 1, NULL, &t[i].err), &t[i].err);
      CHECK_DOUBLE(te_value(&t[i], out), 6, 0);
    }
    for (int i = 0; i < 2; i++) te_fini(&t[i]);
  }
}

/* ---- functions ---- */

#define SIGNATURE \
  "signature { name: 'Twice' input_arg { name: 'x' type: DT_FLOAT } output_arg { name: 'y' type: DT_FLOAT } }"
static const char library[] =
    "node { name: 'left' op: 'NoOp' } library { function { " SIGNATURE
    " node_def { name: 'a' op: 'AddV2' input: 'x' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } }"
    " ret { key: 'y' value: 'a:z:0' } } }";

static void eager_ops__functions_of_a_graph_are_ops(void)
{
  FOR_RUNTIMES(runtime)
  {
    te t;
    tn_graph *graph;
    te_open(&t, runtime, TN_EAGER_IN_BACKGROUND);
    REQUIRE_OK(tn_graph_create(&graph, &t.err), &t.err);
    const tn_import_options text = { .struct_size = sizeof text, .flags = TN_IMPORT_TEXT };
    REQUIRE_OK(tn_graph_import(graph, library, sizeof library - 1, &text, &t.err), &t.err);
    tn_eager_handle x = te_scalar(&t, 4), out;
    CHECK_STATUS(tn_eager_call(t.session, "Twice", NULL, 0, &x, 1, &out, 1, NULL, &t.err), TN_NOT_FOUND, &t.err);
    for (int i = 0; i < 2; i++) CHECK_OK(tn_eager_add_functions(t.session, graph, &t.err), &t.err);
    tn_graph_unref(graph);
    REQUIRE_OK(tn_eager_call(t.session, "Twice", NULL, 0, &x, 1, &out, 1, NULL, &t.err), &t.err);
    CHECK_DOUBLE(te_value(&t, out), 8, 0);
    static const tn_dtype types[] = { TN_FLOAT };
    static const tn_eager_attr call[] = {
      { .name = "f", .kind = TN_ATTR_FUNC, .at = "Twice" },
      { .name = "Tin", .kind = TN_ATTR_LIST | TN_ATTR_TYPE, .at = types, .n = 1 },
      { .name = "Tout", .kind = TN_ATTR_LIST | TN_ATTR_TYPE, .at = types, .n = 1 }
    };
    REQUIRE_OK(tn_eager_call(t.session, "PartitionedCall", call, 3, &out, 1, &out, 1, NULL, &t.err), &t.err);
    CHECK_DOUBLE(te_value(&t, out), 16, 0);
    te_fini(&t);
  }
}

/* ---- errors ---- */

static void eager_ops__invalid_arguments_are_refused(void)
{
  static const tn_eager_attr unknown[] = { { .name = "transpose_a", .kind = TN_ATTR_STRING, .at = "x", .n = 1 } };
  static const tn_eager_attr nameless[] = { { .kind = TN_ATTR_INT } };
  static const tn_eager_attr kindless[] = { { .name = "a", .kind = 77 } },
                             empty[] = { { .name = "a", .kind = TN_ATTR_FUNC } };
  static const tn_eager_attr listless[] = { { .name = "a", .kind = TN_ATTR_LIST | TN_ATTR_INT, .n = 3 } };
  static const tn_eager_attr split[] = { ATTR_INT("N", 5) };
  FOR_RUNTIMES(runtime)
  {
    te t;
    te_open(&t, runtime, TN_EAGER_IN_BACKGROUND);
    const int32_t one[] = { 1 };
    tn_eager_handle f = te_scalar(&t, 1), in[] = { f, te_ints(&t, one, 1), f }, out;
    CHECK_STATUS(tn_eager_call(t.session, "NoSuchOp", NULL, 0, in, 1, &out, 1, NULL, &t.err), TN_NOT_FOUND, &t.err);
    CHECK_CONTAINS(tn_error_message(&t.err), "NoSuchOp");
    CHECK_STATUS(tn_eager_call(t.session, "AddV2", NULL, 0, in, 1, &out, 1, NULL, &t.err), TN_INVALID_ARGUMENT, &t.err);
    CHECK_CONTAINS(tn_error_message(&t.err), "1 inputs do not fit AddV2");
    CHECK_STATUS(tn_eager_call(t.session, "AddV2", NULL, 0, in, 3, &out, 1, NULL, &t.err), TN_INVALID_ARGUMENT, &t.err);
    CHECK_STATUS(tn_eager_call(t.session, "AddV2", NULL, 0, in, 2, &out, 1, NULL, &t.err), TN_INVALID_ARGUMENT, &t.err);
    CHECK_INT(out.id, 0);
    CHECK_STATUS(tn_eager_call(t.session, "MatMul", unknown, 1, in, 2, &out, 1, NULL, &t.err), TN_INVALID_ARGUMENT,
                 &t.err);
    CHECK_STATUS(tn_eager_call(t.session, "Neg", nameless, 1, in, 1, &out, 1, NULL, &t.err), TN_INVALID_ARGUMENT,
                 &t.err);
    CHECK_STATUS(tn_eager_call(t.session, "Neg", kindless, 1, in, 1, &out, 1, NULL, &t.err), TN_INVALID_ARGUMENT,
                 &t.err);
    CHECK_STATUS(tn_eager_call(t.session, "Neg", empty, 1, in, 1, &out, 1, NULL, &t.err), TN_INVALID_ARGUMENT, &t.err);
    CHECK_STATUS(tn_eager_call(t.session, "Neg", listless, 1, in, 1, &out, 1, NULL, &t.err), TN_INVALID_ARGUMENT,
                 &t.err);
    CHECK_STATUS(tn_eager_call(t.session, "AddN", split, 1, in, 1, &out, 1, NULL, &t.err), TN_INVALID_ARGUMENT, &t.err);
    CHECK_STATUS(tn_eager_call(t.session, "Neg", NULL, 0, in, 1, NULL, 0, NULL, &t.err), TN_INVALID_ARGUMENT, &t.err);
    CHECK_STATUS(tn_eager_call(t.session, "Neg", NULL, 0, NULL, 1, &out, 1, NULL, &t.err), TN_INVALID_ARGUMENT, &t.err);
    CHECK_STATUS(tn_eager_call(NULL, "Neg", NULL, 0, in, 1, &out, 1, NULL, &t.err), TN_INVALID_ARGUMENT, &t.err);
    CHECK_STATUS(tn_eager_call(t.session, NULL, NULL, 0, in, 1, &out, 1, NULL, &t.err), TN_INVALID_ARGUMENT, &t.err);
    CHECK_STATUS(tn_eager_op_call(NULL, in, 1, &out, 1, NULL, &t.err), TN_INVALID_ARGUMENT, &t.err);
    CHECK_DOUBLE(te_value(&t, f), 1, 0); /* the session remains usable */
    te_fini(&t);
  }
}

static void eager_ops__a_kernel_that_fails_fails_its_call_alone(void)
{
  static const tn_eager_attr code[] = { ATTR_INT("slot", TN_DATA_LOSS) };
  FOR_RUNTIMES(runtime)
  {
    te t;
    te_open(&t, runtime, TN_EAGER_ON_SAFE_POINTS);
    tn_eager_handle x = te_scalar(&t, 1), out;
    for (int i = 0; i < 3; i++) {
      CHECK_STATUS(tn_eager_call(t.session, "TestFail", code, 1, &x, 1, &out, 1, NULL, &t.err), TN_DATA_LOSS, &t.err);
      CHECK_CONTAINS(tn_error_message(&t.err), "told to fail");
      CHECK_INT(out.id, 0);
      CHECK_DOUBLE(te_value(&t, te_add(&t, x, x)), 2, 0);
    }
    CHECK_STATUS(tn_eager_call(t.session, "TestRefuse", NULL, 0, &x, 1, &out, 1, NULL, &t.err), TN_INVALID_ARGUMENT,
                 &t.err);
    te_fini(&t);
  }
}

static void eager_ops__devices_are_checked(void) /* S-EAG-26 */
{
  static const char *const bad[] = { "/device:NONE:0", "/device:CPU:7", "nonsense:::" };
  for (int32_t policy = TN_EAGER_SILENT; policy <= TN_EAGER_SILENT_FOR_INT32; policy++) {
    te t;
    tn_eager_op *op;
    te_init(&t, te_runtime(0), TN_EAGER_IN_BACKGROUND);
    t.options.device_policy = policy;
    te_start(&t);
    tn_eager_handle x = te_scalar(&t, 3), y;
    for (int i = 0; i < 3; i++) {
      CHECK_STATUS(tn_eager_op_create(t.session, "Neg", bad[i], NULL, 0, &op, &t.err), TN_INVALID_ARGUMENT, &t.err);
      CHECK_NULL(op);
      CHECK_STATUS(tn_eager_copy_to_device(t.session, x, bad[i], &y, &t.err), TN_INVALID_ARGUMENT, &t.err);
      CHECK_INT(y.id, 0);
    }
    REQUIRE_OK(tn_eager_op_create(t.session, "Neg", "/device:CPU:0", NULL, 0, &op, &t.err), &t.err);
    REQUIRE_OK(tn_eager_copy_to_device(t.session, x, "/job:localhost/replica:0/task:0/device:CPU:0", &y, &t.err),
               &t.err);
    te_release(&t, x);
    CHECK_DOUBLE(te_value(&t, y), 3, 0);
    REQUIRE_OK(tn_eager_op_call(op, &y, 1, &x, 1, NULL, &t.err), &t.err);
    CHECK_DOUBLE(te_value(&t, x), -3, 0);
    tn_eager_op_destroy(op);
    te_fini(&t);
  }
}

/* ---- limits of memory ---- */

static void eager_ops__at_the_limit_unused_tensors_are_deleted_first(void)
{
  const int64_t dims[] = { 64 * 1024 };
  for (int32_t strategy = TN_EAGER_IN_BACKGROUND; strategy <= TN_EAGER_ON_SESSION_CLOSE; strategy++) {
    te t;
    te_init(&t, te_runtime(0), strategy);
    t.options.memory_limit_bytes = 3 << 20; /* each has a quarter of a MiB */
    te_start(&t);
    tn_tensor *big = ts_filled(1, dims, 1);
    tn_eager_handle x, out[16];
    REQUIRE_OK(tn_eager_from_tensor(t.session, big, &x, &t.err), &t.err);
    tn_tensor_unref(big);
    int n = 0;
    while (n < 16 && tn_eager_add(t.session, x, x, &out[n], &t.err) == TN_OK) n++;
    CHECK_STATUS(tn_error_code(&t.err), TN_RESOURCE_EXHAUSTED, &t.err);
    CHECK_MSG(n >= 8 && n < 13, "%d fit", n);
    for (int i = 0; i < n; i++) te_release(&t, out[i]);
    const tn_status wanted = strategy == TN_EAGER_ON_SESSION_CLOSE ? TN_RESOURCE_EXHAUSTED : TN_OK;
    CHECK_INT(tn_eager_add(t.session, x, x, &out[0], &t.err), wanted);
    te_fini(&t);
  }
}

/* Handles are made and released without a pause, so the session's thread is often about to delete
 * them when the limit is reached. */
static void eager_ops__at_the_limit_deletions_are_waited_for(void)
{
  enum { BIG = 256 << 10, LIVE = 10 };
  static float zeros[BIG / sizeof(float)];
  const int64_t dims[] = { BIG / sizeof(float) };
  for (int32_t strategy = TN_EAGER_IN_BACKGROUND; strategy <= TN_EAGER_ON_SAFE_POINTS; strategy++) {
    te t;
    te_init(&t, te_runtime(0), strategy);
    t.options.memory_limit_bytes = 3 << 20;
    te_start(&t);
    tn_eager_handle x, out[LIVE];
    REQUIRE_OK(tn_eager_from_data(t.session, TN_FLOAT, dims, 1, zeros, BIG, &x, &t.err), &t.err);
    for (int round = 0; round < 500; round++) {
      for (int i = 0; i < LIVE; i++) {
        tn_status st = i % 2 ? tn_eager_add(t.session, x, x, &out[i], &t.err)
                             : tn_eager_from_data(t.session, TN_FLOAT, dims, 1, zeros, BIG, &out[i], &t.err);
        REQUIRE_OK(st, &t.err);
      }
      for (int i = 0; i < LIVE; i++) te_release(&t, out[i]);
    }
    te_fini(&t);
  }
}

/* Returns how many tensors of this many bytes fit below the limit. The tensors are kept. */
static int fill_up(te *t, size_t bytes)
{
  const int64_t dims[] = { (int64_t)(bytes / sizeof(float)) };
  tn_tensor *zeros = ts_filled(1, dims, 0);
  tn_eager_handle h;
  int n = 0;
  while (n < 1000 &&
         tn_eager_from_data(t->session, TN_FLOAT, dims, 1, tn_tensor_data(zeros), bytes, &h, &t->err) == TN_OK)
    n++;
  CHECK_STATUS(tn_error_code(&t->err), TN_RESOURCE_EXHAUSTED, &t->err);
  tn_tensor_unref(zeros);
  return n;
}

static void eager_ops__deleted_and_detached_tensors_do_not_count(void)
{
  enum { LIMIT = 1 << 20, BIG = 16 << 10 };
  const int64_t small_dims[] = { 250 }, big_dims[] = { BIG / sizeof(float) };
  for (int32_t strategy = TN_EAGER_IN_BACKGROUND; strategy <= TN_EAGER_ON_SAFE_POINTS; strategy++) {
    te fresh, t;
    te_init(&fresh, te_runtime(0), strategy);
    fresh.options.memory_limit_bytes = LIMIT;
    te_start(&fresh);
    int room = fill_up(&fresh, BIG);
    CHECK_MSG(room >= 55 && room <= 64, "%d tensors of 16 KiB fit into 1 MiB", room);
    t = fresh;
    te_start(&t);
    tn_tensor *small = ts_filled(1, small_dims, 1), *big = ts_filled(1, big_dims, 1), *mine[60];
    tn_eager_handle x, y, out;
    REQUIRE_OK(tn_eager_from_tensor(t.session, small, &x, &t.err), &t.err);
    REQUIRE_OK(tn_eager_from_tensor(t.session, big, &y, &t.err), &t.err);
    for (int i = 0; i < 100; i++) te_release(&t, te_add(&t, x, x));
    for (int i = 0; i < 60; i++) {
      REQUIRE_OK(tn_eager_add(t.session, y, y, &out, &t.err), &t.err);
      REQUIRE_OK(tn_eager_detach(t.session, out, &mine[i], &t.err), &t.err);
    }
    te_release(&t, x);
    te_release(&t, y);
    CHECK_OK(tn_eager_safe_point(t.session, &t.err), &t.err);
    CHECK(te_wait_deleted(&t, 102));
    CHECK_INT(fill_up(&t, BIG), room); /* as in a new session */
    for (int i = 0; i < 60; i++) tn_tensor_unref(mine[i]);
    tn_tensor_unref(small);
    tn_tensor_unref(big);
    tn_eager_session_destroy(t.session);
    te_fini(&fresh);
  }
}

static void eager_ops__a_time_limit_ends_an_operation(void) /* S-RO-04 */
{
  FOR_RUNTIMES(runtime)
  {
    te t;
    te_init(&t, runtime, TN_EAGER_IN_BACKGROUND);
    REQUIRE_OK(tn_session_options_set_int(t.session_options, "operation_timeout_ms", 50, &t.err), &t.err);
    te_start(&t);
    tn_eager_handle x = te_scalar(&t, 1), out;
    CHECK_STATUS(tn_eager_call(t.session, "TestGate", NULL, 0, &x, 1, &out, 1, NULL, &t.err), TN_DEADLINE_EXCEEDED,
                 &t.err);
    CHECK_INT(out.id, 0);
    CHECK_DOUBLE(te_value(&t, te_add(&t, x, x)), 2, 0);
    te_fini(&t);
  }
}

static tn_status use(void *arg)
{
  static const tn_eager_attr transpose[] = { ATTR_BOOL("transpose_a", 1) };
  static const float values[] = { 1, 2, 3, 4 };
  static const int64_t dims[] = { 2, 2 };
  tn_error err = TN_ERROR_INIT;
  tn_eager_session *s;
  tn_eager_op *op = NULL;
  tn_eager_handle x = { 0 }, y = { 0 }, z;
  tn_status st = tn_eager_session_create(arg, &s, &err);
  if (st == TN_OK) st = tn_eager_scope_push(s, &err);
  if (st == TN_OK) st = tn_eager_from_data(s, TN_FLOAT, dims, 2, values, sizeof values, &x, &err);
  if (st == TN_OK) st = tn_eager_op_create(s, "MatMul", NULL, transpose, 1, &op, &err);
  const tn_eager_handle in[] = { x, x };
  if (st == TN_OK) st = tn_eager_op_call(op, in, 2, &y, 1, NULL, &err);
  if (st == TN_OK) st = tn_eager_call(s, "MatMul", transpose, 1, in, 2, &z, 1, NULL, &err);
  if (st == TN_OK) st = tn_eager_wait(s, &err);
  if (st == TN_OK) st = tn_eager_scope_pop(s, &y, 1, &err);
  if (s != NULL) {
    tn_status closed = tn_eager_session_close(s, NULL);
    tn_eager_counters c = { .struct_size = TN_EAGER_COUNTERS_SIZE };
    tn_eager_get_counters(s, &c, NULL);
    CHECK_INT(closed, TN_OK);
    CHECK_INT(c.live, 0);
    CHECK_INT(c.bytes, 0);
  }
  if (s != NULL && st != TN_OK) tn_eager_scope_pop(s, NULL, 0, NULL);
  tn_eager_op_destroy(op);
  tn_eager_session_destroy(s);
  tn_error_clear(&err);
  return st;
}

static void eager_ops__without_memory_calls_fail_and_nothing_is_lost(void)
{
  FOR_RUNTIMES(runtime)
  {
    te t;
    te_init(&t, runtime, TN_EAGER_ON_SAFE_POINTS);
    tn_test_oom_sweep(use, &t.options);
    t.options.async = 1;
    tn_test_oom_sweep(use, &t.options);
    te_fini(&t);
  }
}

/* ---- runtimes ---- */

static tn_status no_session(const tn_session_factory *self, const tn_session_options *options, tn_runtime_session **out,
                            tn_error *err)
{
  (void)self, (void)options;
  *out = NULL;
  return tn_error_set(err, TN_INTERNAL, "new_session must not be called");
}
static tn_bool accept(const tn_session_factory *self, const tn_session_options *options)
{
  (void)self, (void)options;
  return 1;
}
static void no_destroy(const tn_session_factory *self, tn_runtime_session *session) { (void)self, (void)session; }

static void eager_ops__a_runtime_without_the_extension_is_named(void)
{
  static const tn_session_factory plain = { .struct_size = TN_SESSION_FACTORY_SIZE,
                                            .name = "test.graphs_only",
                                            .new_session = no_session,
                                            .accepts_options = accept,
                                            .destroy_session = no_destroy };
  te t;
  te_init(&t, "test.graphs_only", TN_EAGER_IN_BACKGROUND);
  REQUIRE_OK(tn_runtime_register("test.graphs_only", &plain, &t.err), &t.err);
  CHECK_STATUS(tn_eager_session_create(&t.options, &t.session, &t.err), TN_UNIMPLEMENTED, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "test.graphs_only");
  CHECK_CONTAINS(tn_error_message(&t.err), "tn_eager");
  CHECK_OK(tn_runtime_unregister("test.graphs_only", &t.err), &t.err);
  te_fini(&t);
}

TAP_MAIN(TAP_TEST(eager_ops__attributes_are_applied), TAP_TEST(eager_ops__types_follow_the_inputs),
         TAP_TEST(eager_ops__shapes_may_change_and_depend_on_values), TAP_TEST(eager_ops__lists_are_counted_flat),
         TAP_TEST(eager_ops__every_kind_of_attribute),
         TAP_TEST(eager_ops__state_lives_in_the_containers_of_the_runtime),
         TAP_TEST(eager_ops__functions_of_a_graph_are_ops), TAP_TEST(eager_ops__invalid_arguments_are_refused),
         TAP_TEST(eager_ops__a_kernel_that_fails_fails_its_call_alone), TAP_TEST(eager_ops__devices_are_checked),
         TAP_TEST(eager_ops__at_the_limit_unused_tensors_are_deleted_first),
         TAP_TEST(eager_ops__at_the_limit_deletions_are_waited_for),
         TAP_TEST(eager_ops__deleted_and_detached_tensors_do_not_count),
         TAP_TEST(eager_ops__a_time_limit_ends_an_operation),
         TAP_TEST(eager_ops__without_memory_calls_fail_and_nothing_is_lost),
         TAP_TEST(eager_ops__a_runtime_without_the_extension_is_named))
