/* SPDX-License-Identifier: Apache-2.0 */
/* The option weights: which products keep their constants in a shorter type, and how far results differ. */
#include <math.h>

#include "conformance/support/plan_kit.h"

enum { K = 201, N = 131 };

typedef struct product {
  const char *op, *reduced;
  bool across, epilogue;
  int32_t rank; /* of x */
  const char *equation;
} product;

static const product products[] = {
  { "MatMul", "_TnReducedMatMul", false, false, 2 },
  { "MatMul", "_TnReducedMatMul", true, false, 2 },
  { "MatMul", "_TnReducedMatMul", false, true, 2 },
  { "BatchMatMul", "_TnReducedBatchMatMul", false, false, 2 },
  { "BatchMatMulV2", "_TnReducedBatchMatMul", true, false, 3 },
  { "BatchMatMulV2", "_TnReducedBatchMatMul", false, false, 4 },
  { "Einsum", "_TnReducedEinsum", false, false, 2, "ab,bc->ac" },
  { "Einsum", "_TnReducedEinsum", true, false, 2, "ab,cb->ac" },
  { "Einsum", "_TnReducedEinsum", true, false, 3, "abc,dc->abd" },
  { "Einsum", "_TnReducedEinsum", false, false, 4, "...c,cd->...d" },
};
#define N_PRODUCTS (sizeof products / sizeof *products)

static float number(int64_t i) { return (float)((i * 7919 + 13) % 1009 - 504) / 333; }

static tn_tensor *numbers(const int64_t *dims, int32_t rank)
{
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, dims, rank, &t, NULL), NULL);
  for (int64_t i = 0; i < tn_tensor_elements(t); i++) ((float *)tn_tensor_data(t))[i] = number(i);
  return t;
}

static void set_bool(tn_operation_builder *b, const char *name, bool value)
{
  if (value) tn_operation_set_bool(b, name, true);
}

/* A constant that takes the tensor. */
static tn_output constant(ts *t, const char *name, tn_tensor *value)
{
  tn_output out = ts_const_tensor(t->graph, name, value);
  tn_tensor_unref(value);
  return out;
}

/* A graph with x, the constant w and their product y, with a bias and Relu if there is an epilogue. Takes w. */
static void add_product(ts *t, const product *p, tn_tensor *w)
{
  static const int64_t open[] = { -1, -1, -1, K };
  tn_operation *op;
  tn_output x = ts_placeholder(t->graph, "x", TN_FLOAT);
  REQUIRE_OK(tn_graph_set_shape(x, open + 4 - p->rank, p->rank, &t->err), &t->err);
  tn_operation_builder *b = tn_operation_begin(t->graph, p->op, p->epilogue ? "m" : "y", 0);
  const tn_output inputs[] = { x, constant(t, "w", w) };
  if (p->equation != NULL) {
    tn_operation_add_input_list(b, inputs, 2);
    tn_operation_set_string(b, "equation", p->equation, strlen(p->equation));
  } else {
    tn_operation_add_input(b, inputs[0]);
    tn_operation_add_input(b, inputs[1]);
    set_bool(b, strcmp(p->op, "MatMul") == 0 ? "transpose_b" : "adj_y", p->across);
  }
  REQUIRE_OK(tn_operation_finish(b, &op, &t->err), &t->err);
  if (!p->epilogue) return;
  tn_output biased = ts_op2(t->graph, "BiasAdd", "b", (tn_output){ op, 0 },
                            constant(t, "bias", numbers((int64_t[]){ N }, 1)));
  ts_op1(t->graph, "Relu", "y", biased);
}

static tn_tensor *weights_of(const product *p)
{
  return numbers((int64_t[]){ p->across ? N : K, p->across ? K : N }, 2);
}

/* A session on a product, with options that are not "". */
static void open_product(ts *t, const product *p, tn_tensor *w, const char *weights, int level, const char *disabled)
{
  ts_init(t, level);
  add_product(t, p, w);
  REQUIRE_OK(tn_session_options_set_string(t->options, "weights", weights, &t->err), &t->err);
  REQUIRE_OK(tn_session_options_set_string(t->options, "disable_passes", disabled, &t->err), &t->err);
  REQUIRE_OK(tn_session_options_set_string(t->options, "kernel_plugins", "never", &t->err), &t->err);
  ts_start(t);
}

static tn_tensor *run_rows(ts *t, int32_t rank, int64_t rows)
{
  const char *feed = "x:0", *fetch = "y:0";
  const int64_t dims[] = { 2, 1, rows, K };
  tn_tensor *x = numbers(dims + 4 - rank, rank), *y = NULL;
  CHECK_OK(tn_session_run(t->session, NULL, &feed, &x, 1, &fetch, &y, 1, NULL, 0, NULL, &t->err), &t->err);
  tn_tensor_unref(x);
  return y;
}

/* The largest error that rounding can cause, by the kind of weights: x and w are at most 1.52 in magnitude. */
static double bound(const char *weights)
{
  const double most = 505.0 / 333;
  return K * most * (strcmp(weights, "int8") == 0 ? most / 254 : most / 512) + 1e-3;
}

static bool same(const tn_tensor *a, const tn_tensor *b)
{
  return a != NULL && b != NULL && tn_tensor_bytes(a) == tn_tensor_bytes(b) &&
         memcmp(tn_tensor_data(a), tn_tensor_data(b), tn_tensor_bytes(a)) == 0;
}

static void weights__are_reduced_as_the_option_says(void)
{
  static const char *const kinds[] = { "bfloat16", "int8" };
  for (size_t i = 0; i < N_PRODUCTS; i++)
    for (int kind = 0; kind < 2; kind++) {
      const product *p = &products[i];
      tn_tensor *y[2];
      for (int reduced = 0; reduced < 2; reduced++) {
        ts t;
        open_product(&t, p, weights_of(p), reduced ? kinds[kind] : "float32", 1, "");
        y[reduced] = run_rows(&t, p->rank, 3);
        tn_plan_report *report = tp_report(&t, "x:0", "y:0");
        CHECK_INT(tp_rewrites(report, "reduce_weights"), reduced);
        CHECK_INT(tp_calls(report, p->reduced), reduced);
        uint64_t bytes = tp_summary(report).packed_bytes;
        const uint64_t full = K * 144 * sizeof(float); /* columns of whole panels */
        const uint64_t most = full / (reduced ? (uint64_t)kind + 2 : 1);
        CHECK_MSG(bytes > 0 && bytes <= most, "%llu bytes", (unsigned long long)bytes);
        tn_plan_report_release(report);
        ts_fini(&t);
      }
      const float *a = tn_tensor_data(y[0]), *b = tn_tensor_data(y[1]);
      double most = 0;
      for (int64_t k = 0; k < tn_tensor_elements(y[0]); k++) most = fmax(most, fabs((double)a[k] - (double)b[k]));
      CHECK_MSG(most > 0 && most < bound(kinds[kind]), "product %d, %s: differs by %g", (int)i, kinds[kind], most);
      tn_tensor_unref(y[0]);
      tn_tensor_unref(y[1]);
    }
}

static void weights__stay_float_at_level_0_and_without_the_pass(void)
{
  const product *p = &products[0];
  ts t;
  open_product(&t, p, weights_of(p), "float32", 1, "");
  tn_tensor *plain = run_rows(&t, 2, 3);
  ts_fini(&t);
  for (int i = 0; i < 2; i++) {
    open_product(&t, p, weights_of(p), "int8", i, i ? "weights" : "");
    tn_tensor *y = run_rows(&t, 2, 3);
    CHECK(same(plain, y));
    tn_tensor_unref(y);
    ts_fini(&t);
  }
  tn_tensor_unref(plain);
}

static void weights__that_are_small_or_fed_stay_float(void)
{
  ts t;
  ts_init(&t, 1);
  tn_output x = ts_placeholder(t.graph, "x", TN_FLOAT), w = ts_placeholder(t.graph, "w", TN_FLOAT);
  tn_output m = ts_op2(t.graph, "MatMul", "m", x, w);
  ts_op2(t.graph, "MatMul", "y", m, constant(&t, "c", numbers((int64_t[]){ 127, 128 }, 2)));
  REQUIRE_OK(tn_session_options_set_string(t.options, "weights", "int8", &t.err), &t.err);
  ts_start(&t);
  const char *feeds[] = { "x:0", "w:0" }, *fetch = "y:0";
  tn_plan_report *report = NULL;
  REQUIRE_OK(tn_session_plan_report(t.session, feeds, 2, &fetch, 1, NULL, 0, &report, &t.err), &t.err);
  CHECK_INT(tp_calls(report, "MatMul"), 2);
  tn_plan_report_release(report);
  ts_fini(&t);
}

/* Each row has the same bits, however many there are, and steps may change their number. */
static void weights__rows_do_not_depend_on_their_number(void)
{
  static const char *const kinds[] = { "bfloat16", "int8" };
  for (size_t i = 0; i < 2 * N_PRODUCTS; i++) {
    const product *p = &products[i / 2];
    ts t;
    if (p->rank != 2) continue;
    open_product(&t, p, weights_of(p), kinds[i % 2], 1, "");
    tn_tensor *all = run_rows(&t, 2, 90);
    for (int64_t rows = 1; rows < 90; rows += rows < 14 ? 1 : 15) {
      tn_tensor *some = run_rows(&t, 2, rows);
      CHECK_MSG(memcmp(tn_tensor_data(all), tn_tensor_data(some), tn_tensor_bytes(some)) == 0, "%d rows", (int)rows);
      tn_tensor_unref(some);
    }
    tn_tensor_unref(all);
    ts_fini(&t);
  }
}

static void weights__of_other_equations_stay_float(void)
{
  static const char *const equations[] = { "ab,bc->a", "ab,bb->ab", "ab,cb->bc", "ab,bc->ca", "ab,bc->abc" };
  for (size_t i = 0; i < sizeof equations / sizeof *equations; i++) {
    const product p = { "Einsum", "", false, false, 2, equations[i] };
    tn_tensor *y[2];
    for (int reduced = 0; reduced < 2; reduced++) {
      ts t;
      const int64_t n = i == 1 ? K : N;
      open_product(&t, &p, numbers((int64_t[]){ i == 2 ? n : K, i == 2 ? K : n }, 2), reduced ? "int8" : "float32", 1,
                   "");
      y[reduced] = run_rows(&t, 2, 3);
      tn_plan_report *report = tp_report(&t, "x:0", "y:0");
      CHECK_INT(tp_calls(report, "Einsum"), 1);
      tn_plan_report_release(report);
      ts_fini(&t);
    }
    CHECK_MSG(same(y[0], y[1]), "%s", equations[i]);
    tn_tensor_unref(y[0]);
    tn_tensor_unref(y[1]);
  }
}

static void weights__threads_give_the_same_bits(void)
{
  static const char *const kinds[] = { "bfloat16", "int8" };
  for (int i = 0; i < 4; i++) {
    const int64_t rows = i < 2 ? 1 : 200;
    tn_tensor *y[2];
    for (int threads = 0; threads < 2; threads++) {
      ts t;
      const product *p = &products[2];
      ts_init(&t, 1);
      add_product(&t, p, weights_of(p));
      REQUIRE_OK(tn_session_options_set_string(t.options, "weights", kinds[i % 2], &t.err), &t.err);
      REQUIRE_OK(tn_session_options_set_target(t.options, threads ? "threaded:threads=3" : "direct", &t.err), &t.err);
      ts_start(&t);
      y[threads] = run_rows(&t, 2, rows);
      ts_fini(&t);
    }
    CHECK(same(y[0], y[1]));
    tn_tensor_unref(y[0]);
    tn_tensor_unref(y[1]);
  }
}

/* int8 has neither: the constant stays float. bfloat16 has both. */
static void weights__with_infinity_or_nan_keep_them(void)
{
  static const float odd[] = { INFINITY, -INFINITY, NAN };
  for (int i = 0; i < 6; i++) {
    const char *kind = i < 3 ? "int8" : "bfloat16";
    tn_tensor *y[2];
    for (int reduced = 0; reduced < 2; reduced++) {
      ts t;
      tn_tensor *w = weights_of(&products[0]);
      ((float *)tn_tensor_data(w))[5 * N + 7] = odd[i % 3];
      open_product(&t, &products[0], w, reduced ? kind : "float32", 1, "");
      y[reduced] = run_rows(&t, 2, 4);
      ts_fini(&t);
    }
    const float *a = tn_tensor_data(y[0]), *b = tn_tensor_data(y[1]);
    CHECK(i >= 3 || same(y[0], y[1]));
    for (int row = 0; row < 4; row++) {
      float f = a[row * N + 7], r = b[row * N + 7];
      CHECK_MSG(f == r || (f != f && r != r), "case %d, row %d: %g and %g", i, row, (double)f, (double)r);
      CHECK(isfinite(b[row * N + 6]));
    }
    tn_tensor_unref(y[0]);
    tn_tensor_unref(y[1]);
  }
}

static void weights__the_option_names_its_choices(void)
{
  ts t;
  ts_init(&t, 1);
  REQUIRE_OK(tn_session_options_set_string(t.options, "weights", "float16", &t.err), &t.err);
  CHECK_STATUS(tn_session_create(t.options, &t.session, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STR(tn_error_message(&t.err), "option weights is 'float16', it must be float32, bfloat16 or int8");
  ts_fini(&t);
}

static tn_status open_and_run(void *arg)
{
  tn_session *session = NULL;
  tn_session_options *o = NULL;
  tn_tensor *y = NULL;
  tn_error err = TN_ERROR_INIT;
  ts *t = arg;
  const char *feed = "x:0", *fetch = "y:0";
  const int64_t dims[] = { 1, K };
  tn_tensor *x = NULL;
  tn_status st = tn_tensor_create(TN_FLOAT, dims, 2, &x, &err);
  if (st == TN_OK) memset(tn_tensor_data(x), 0, tn_tensor_bytes(x));
  if (st == TN_OK) st = tn_session_options_copy(t->options, &o, &err);
  if (st == TN_OK) st = tn_session_create(o, &session, &err);
  if (st == TN_OK) st = tn_session_set_graph(session, t->graph, &err);
  if (st == TN_OK) st = tn_session_run(session, NULL, &feed, &x, 1, &fetch, &y, 1, NULL, 0, NULL, &err);
  tn_tensor_unref(x);
  tn_tensor_unref(y);
  tn_session_destroy(session);
  tn_session_options_destroy(o);
  tn_error_clear(&err);
  return st;
}

static void weights__survive_lack_of_memory(void)
{
  ts t;
  ts_init(&t, 1);
  add_product(&t, &products[2], weights_of(&products[2]));
  REQUIRE_OK(tn_session_options_set_string(t.options, "weights", "int8", &t.err), &t.err);
  tn_test_oom_sweep(open_and_run, &t);
  ts_fini(&t);
}

TAP_MAIN(
  TAP_TEST(weights__are_reduced_as_the_option_says),
  TAP_TEST(weights__stay_float_at_level_0_and_without_the_pass),
  TAP_TEST(weights__that_are_small_or_fed_stay_float),
  TAP_TEST(weights__rows_do_not_depend_on_their_number),
  TAP_TEST(weights__of_other_equations_stay_float),
  TAP_TEST(weights__threads_give_the_same_bits),
  TAP_TEST(weights__with_infinity_or_nan_keep_them),
  TAP_TEST(weights__the_option_names_its_choices),
  TAP_TEST(weights__survive_lack_of_memory))
