/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a step: a value does not depend on what else is fetched or on the shapes of earlier
 * steps. */
#include <stdlib.h>

#include "conformance/support/session_kit.h"

#define NODES 60

static tn_output int_const(tn_graph *graph, const char *name, const int32_t *values, int64_t n)
{
  tn_error err = TN_ERROR_INIT;
  tn_tensor *t;
  CHECK_OK(tn_tensor_from_data(TN_INT32, &n, 1, values, (size_t)n * sizeof *values, &t, &err), &err);
  tn_output o = ts_const_tensor(graph, name, t);
  tn_tensor_unref(t);
  return o;
}

/* A sum that keeps its dimension, so that every shape in the graph broadcasts with every other one. */
static tn_output sum_last(tn_graph *graph, const char *name, tn_output x, int i)
{
  tn_error err = TN_ERROR_INIT;
  char axes_name[32];
  int32_t axis = -1;
  snprintf(axes_name, sizeof axes_name, "axes%d", i);
  tn_operation_builder *b = tn_operation_begin(graph, "Sum", name, 0);
  tn_operation_add_input(b, x);
  tn_operation_add_input(b, int_const(graph, axes_name, &axis, 1));
  tn_operation_set_bool(b, "keep_dims", 1);
  tn_operation *op = NULL;
  CHECK_OK(tn_operation_finish(b, &op, &err), &err);
  tn_error_clear(&err);
  return (tn_output){ op, 0 };
}

/* Name of a helper node. Only the constant is a scalar; its sum with x has an axis. */
static const char *widened(int i)
{
  static char name[32];
  snprintf(name, sizeof name, "wide%d", i);
  return name;
}

/* A random graph over x [4,5] and y [5]; names[i] names node i. */
static void random_graph(tn_graph *graph, char names[NODES][16])
{
  tn_output nodes[NODES + 3] = { ts_placeholder(graph, "x", TN_FLOAT), ts_placeholder(graph, "y", TN_FLOAT),
                                 ts_const(graph, "half", 0.5f) };
  static const char *const binary[] = { "AddV2", "Mul", "Sub", "Maximum" };
  static const char *const unary[] = { "Neg", "Identity", "Square", "Tanh" };
  for (int i = 0; i < NODES; i++) {
    snprintf(names[i], sizeof names[i], "n%d", i);
    int back = i + 3 < 12 ? i + 3 : 12;
    tn_output a = nodes[i + 3 - 1 - rand() % back], b = nodes[i + 3 - 1 - rand() % back];
    int kind = rand() % 10;
    if (kind < 5) nodes[i + 3] = ts_op2(graph, binary[rand() % 4], names[i], a, b);
    else if (kind < 9) nodes[i + 3] = ts_op1(graph, unary[rand() % 4], names[i], a);
    else nodes[i + 3] = sum_last(graph, names[i], ts_op2(graph, "AddV2", widened(i), a, nodes[0]), i);
  }
}

typedef struct fed {
  tn_tensor *values[2];
} fed;

static tn_tensor *random_tensor(int32_t rank, const int64_t *dims)
{
  tn_tensor *t = ts_filled(rank, dims, 0);
  for (int64_t i = 0; i < tn_tensor_elements(t); i++)
    ((float *)tn_tensor_data(t))[i] = (float)(rand() % 2000 - 1000) / 1000;
  return t;
}

static fed make_feeds(int64_t rows, int64_t columns)
{
  return (fed){ { random_tensor(2, (int64_t[]){ rows, columns }), random_tensor(1, &columns) } };
}

static void free_feeds(fed *f)
{
  tn_tensor_unref(f->values[0]);
  tn_tensor_unref(f->values[1]);
}

static tn_status run_some(ts *t, const fed *f, const char *const *fetches, size_t n, tn_tensor **out)
{
  static const char *const feeds[] = { "x", "y" };
  return tn_session_run(t->session, NULL, feeds, f->values, 2, fetches, out, n, NULL, 0, NULL, &t->err);
}

static bool same_tensor(const tn_tensor *a, const tn_tensor *b)
{
  return a != NULL && b != NULL && tn_tensor_rank(a) == tn_tensor_rank(b) && tn_tensor_bytes(a) == tn_tensor_bytes(b) &&
         memcmp(tn_tensor_dims(a), tn_tensor_dims(b), (size_t)tn_tensor_rank(a) * sizeof(int64_t)) == 0 &&
         memcmp(tn_tensor_data(a), tn_tensor_data(b), tn_tensor_bytes(a)) == 0;
}

/* Nodes that are fetched together have memory of their own; a node fetched alone is in an arena
 * that others used. */
static void compare_graph(ts *t, char names[NODES][16])
{
  const char *all[NODES];
  tn_tensor *whole[NODES] = { 0 };
  for (int i = 0; i < NODES; i++) all[i] = names[i];
  for (int round = 0; round < 3; round++) {
    fed f = make_feeds(1 + rand() % 6, 1 + rand() % 7);
    CHECK_OK(run_some(t, &f, all, NODES, whole), &t->err);
    for (int i = 0; i < NODES; i += 1 + rand() % 5) {
      tn_tensor *alone = NULL;
      CHECK_OK(run_some(t, &f, &all[i], 1, &alone), &t->err);
      CHECK_MSG(same_tensor(alone, whole[i]), "node %s differs when it is fetched alone", names[i]);
      tn_tensor_unref(alone);
    }
    for (int i = 0; i < NODES; i++) tn_tensor_unref(whole[i]);
    free_feeds(&f);
  }
}

static void exec__values_do_not_depend_on_what_else_is_fetched(void) /* S-CFG-21 */
{
  srand(3);
  for (int g = 0; g < 12; g++) {
    ts t;
    char names[NODES][16];
    ts_init(&t, g % 2);
    random_graph(t.graph, names);
    ts_start(&t);
    compare_graph(&t, names);
    ts_fini(&t);
  }
}

/* The layout of a step whose shape depends on a computed value, and of one whose shape is known
 * only after running. */
static void exec__shapes_depend_on_values(void)
{
  FOR_LEVELS(level) {
    ts t;
    tn_output x = ts_open_watched(&t, level), axes = ts_placeholder(t.graph, "axes", TN_INT32);
    tn_output moved = ts_op1(t.graph, "Neg", "moved", axes);
    tn_operation_builder *b = tn_operation_begin(t.graph, "Sum", "total", 0);
    tn_operation_add_input(b, ts_op1(t.graph, "Square", "squares", x));
    tn_operation_add_input(b, moved);
    tn_operation *total = NULL;
    REQUIRE_OK(tn_operation_finish(b, &total, &t.err), &t.err);
    ts_op1(t.graph, "Neg", "after", (tn_output){ total, 0 });
    ts_start(&t);
    tn_tensor *in = ts_filled(2, (int64_t[]){ 2, 3 }, 2), *out = NULL;
    for (int32_t axis = 0; axis <= 1; axis++) {
      int32_t given = axis == 0 ? 0 : 1;
      int32_t negated = -given;
      tn_tensor *a;
      REQUIRE_OK(tn_tensor_from_data(TN_INT32, NULL, 0, &negated, sizeof negated, &a, &t.err), &t.err);
      const char *feeds[] = { "in", "axes" }, *fetch = "after";
      tn_tensor *values[] = { in, a };
      CHECK_OK(tn_session_run(t.session, NULL, feeds, values, 2, &fetch, &out, 1, NULL, 0, NULL, &t.err), &t.err);
      REQUIRE(out != NULL);
      CHECK_INT(tn_tensor_rank(out), 1);
      CHECK_INT(tn_tensor_dims(out)[0], axis == 0 ? 3 : 2);
      CHECK_DOUBLE(ts_float(out), axis == 0 ? -8 : -12, 0);
      tn_tensor_unref(out);
      tn_tensor_unref(a);
    }
    tn_tensor_unref(in);
    ts_fini(&t);
  }
}

static void exec__dynamic_outputs_flow_on(void)
{
  FOR_LEVELS(level) {
    ts t;
    tn_output x = ts_open_watched(&t, level), n = ts_placeholder(t.graph, "n", TN_INT32);
    tn_output head = ts_op2(t.graph, "TestHead", "head", x, n);
    tn_output twice = ts_op2(t.graph, "AddV2", "twice", head, head);
    ts_op1(t.graph, "Neg", "after", twice);
    ts_start(&t);
    tn_tensor *in = ts_vector(4, (float[]){ 1, 2, 3, 4 });
    for (int32_t count = 0; count <= 4; count++) {
      tn_tensor *c, *out[2] = { 0 };
      REQUIRE_OK(tn_tensor_from_data(TN_INT32, NULL, 0, &count, sizeof count, &c, &t.err), &t.err);
      const char *feeds[] = { "in", "n" }, *fetches[] = { "after", "head" };
      tn_tensor *values[] = { in, c };
      CHECK_OK(tn_session_run(t.session, NULL, feeds, values, 2, fetches, out, 2, NULL, 0, NULL, &t.err), &t.err);
      REQUIRE(out[0] != NULL && out[1] != NULL);
      CHECK_INT(tn_tensor_elements(out[0]), count);
      CHECK_INT(tn_tensor_elements(out[1]), count);
      if (count > 0) CHECK_DOUBLE(((float *)tn_tensor_data(out[0]))[count - 1], -2.0 * count, 0);
      CHECK(tn_tensor_is_exclusive(out[1]));
      tn_tensor_unref(out[0]);
      tn_tensor_unref(out[1]);
      tn_tensor_unref(c);
    }
    tn_tensor_unref(in);
    ts_fini(&t);
  }
}

/* Strings own memory: views, a second fetch and a later step each have a copy. */
static void exec__strings_are_freed_and_copied(void)
{
  FOR_LEVELS(level) {
    ts t;
    ts_init(&t, level);
    tn_output a = ts_placeholder(t.graph, "a", TN_STRING), b = ts_placeholder(t.graph, "b", TN_STRING);
    tn_output ab = ts_op2(t.graph, "Add", "ab", a, b);
    tn_output same = ts_op1(t.graph, "Identity", "same", ab);
    ts_op2(t.graph, "Add", "abab", same, ab);
    ts_start(&t);
    const char *left = "a text of more than twenty-two bytes", *right = "!";
    tn_tensor *values[2], *out[3] = { 0 };
    REQUIRE_OK(tn_tensor_from_strings(NULL, 0, &left, NULL, &values[0], &t.err), &t.err);
    REQUIRE_OK(tn_tensor_from_strings(NULL, 0, &right, NULL, &values[1], &t.err), &t.err);
    const char *feeds[] = { "a", "b" }, *fetches[] = { "abab", "same", "ab" };
    for (int round = 0; round < 3; round++) {
      CHECK_OK(tn_session_run(t.session, NULL, feeds, values, 2, fetches, out, 3, NULL, 0, NULL, &t.err), &t.err);
      for (int i = 0; i < 3; i++) {
        const char *text;
        size_t n = 0;
        CHECK_OK(tn_tensor_get_string(out[i], 0, &text, &n, &t.err), &t.err);
        CHECK_INT(n, i == 0 ? 2 * (strlen(left) + 1) : strlen(left) + 1);
        CHECK(tn_tensor_is_exclusive(out[i]));
        tn_tensor_unref(out[i]);
      }
    }
    tn_tensor_unref(values[0]);
    tn_tensor_unref(values[1]);
    ts_fini(&t);
  }
}

/* More shapes than the cache holds, in turns: each is laid out again, correctly. */
static void exec__many_shapes_in_turns(void)
{
  ts t;
  char names[NODES][16];
  ts_init(&t, 1);
  REQUIRE_OK(tn_session_options_set_int(t.options, "max_layouts", 3, &t.err), &t.err);
  srand(5);
  random_graph(t.graph, names);
  ts_start(&t);
  compare_graph(&t, names);
  const char *fetch = names[NODES - 1];
  for (int round = 0; round < 4; round++)
    for (int64_t rows = 1; rows <= 9; rows++) {
      fed f = make_feeds(rows, 3);
      tn_tensor *out = NULL;
      CHECK_OK(run_some(&t, &f, &fetch, 1, &out), &t.err);
      tn_tensor_unref(out);
      free_feeds(&f);
    }
  ts_fini(&t);
}

/* ---- kernels with unusual requests ---- */

static tn_status prepare_two(tn_prepare_ctx *ctx, tn_error *err)
{
  for (uint32_t i = 0; i < 2; i++) {
    tn_status st = tn_prepare_output_like(ctx, i, 0, err);
    if (st == TN_OK) st = tn_prepare_in_place(ctx, i, 0, err);
    if (st != TN_OK) return st;
  }
  return TN_OK;
}

static tn_status compute_two(tn_kernel_ctx *ctx)
{
  for (int64_t i = 0; i < ctx->inputs[0]->count; i++) {
    float x = ((const float *)ctx->inputs[0]->data)[i];
    ((float *)ctx->outputs[0]->data)[i] = x + 1;
    ((float *)ctx->outputs[1]->data)[i] = 2 * x;
  }
  ((float *)ctx->outputs[0]->data)[0] = -1; /* a kernel may write its outputs in any order */
  return TN_OK;
}

static tn_status prepare_greedy(tn_prepare_ctx *ctx, tn_error *err)
{
  ctx->scratch_bytes = SIZE_MAX - 3;
  return tn_prepare_output_like(ctx, 0, 0, err);
}

/* float [n] as uint8 [4n], in the same memory; as float64 it would exceed the memory. */
static tn_status prepare_bytes(tn_prepare_ctx *ctx, tn_error *err)
{
  int64_t n = ctx->inputs[0].count * (tn_operation_output_dtype(ctx->op, 0) == TN_UINT8 ? 4 : 1);
  tn_status st = tn_prepare_output(ctx, 0, &n, 1, err);
  return st == TN_OK ? tn_prepare_view(ctx, 0, 0, err) : st;
}

static tn_status prepare_like(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_error_set(err, TN_UNKNOWN, "tried and failed, not needed"); /* it succeeds: this text must not remain */
  return tn_prepare_output_like(ctx, 0, 0, NULL);
}

static tn_status compute_mutter(tn_kernel_ctx *ctx)
{
  tn_error_set(ctx->err, TN_UNKNOWN, "tried and failed, not needed");
  memcpy(ctx->outputs[0]->data, ctx->inputs[0]->data, (size_t)ctx->inputs[0]->count * sizeof(float));
  return TN_OK;
}

static tn_status compute_odd(tn_kernel_ctx *ctx) { return 4242; }
static tn_status compute_waits(tn_kernel_ctx *ctx) { return TN_PENDING; }

static tn_status compute_mixed(tn_kernel_ctx *ctx)
{
  tn_error_set(ctx->err, TN_NOT_FOUND, "one code in the text");
  return TN_DATA_LOSS;
}

#define ODD_OP(op_, out_)                                                                                  \
  { .struct_size = TN_OP_DEF_SIZE, .name = op_, .inputs = "x: float", .outputs = out_, .attrs = "" }
#define ODD_KERNEL(op_, prepare_, compute_)                                                                \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = op_, .device = "CPU", .name = op_ "_cpu", .rank = TN_RANK_C,  \
    .prepare = prepare_, .compute = compute_ }
static const tn_op_def odd_ops[] = {
  ODD_OP("OddTwo", "a: float, b: float"), ODD_OP("OddGreedy", "y: float"), ODD_OP("OddBytes", "y: uint8"),
  ODD_OP("OddWide", "y: double"),         ODD_OP("OddText", "y: string"),  ODD_OP("OddMutter", "y: float"),
  ODD_OP("OddStatus", "y: float"),        ODD_OP("OddWaits", "y: float"),  ODD_OP("OddMixed", "y: float"),
  { .struct_size = TN_OP_DEF_SIZE, .name = "OddSame", .inputs = "x: float", .outputs = "y: string", .attrs = "",
    .traits = TN_TRAIT_IDENTITY },
};
static const tn_kernel_def odd_kernels[] = {
  ODD_KERNEL("OddTwo", prepare_two, compute_two),        ODD_KERNEL("OddGreedy", prepare_greedy, compute_mutter),
  ODD_KERNEL("OddBytes", prepare_bytes, compute_mutter), ODD_KERNEL("OddWide", prepare_bytes, compute_mutter),
  ODD_KERNEL("OddText", prepare_bytes, compute_mutter),  ODD_KERNEL("OddMutter", prepare_like, compute_mutter),
  ODD_KERNEL("OddStatus", prepare_like, compute_odd),    ODD_KERNEL("OddWaits", prepare_like, compute_waits),
  ODD_KERNEL("OddMixed", prepare_like, compute_mixed),
};
static const tn_op_family odd_family = { .struct_size = TN_OP_FAMILY_SIZE, .name = "odd", .ops = odd_ops,
                                         .n_ops = sizeof odd_ops / sizeof *odd_ops, .kernels = odd_kernels,
                                         .n_kernels = sizeof odd_kernels / sizeof *odd_kernels };

static tn_output odd(ts *t, const char *op, const char *name, tn_output x)
{
  static bool registered;
  tn_operation *made = NULL;
  if (!registered) REQUIRE_OK(tn_register_ops(&odd_family, &t->err), &t->err);
  registered = true;
  tn_operation_builder *b = tn_operation_begin(t->graph, op, name, 0);
  tn_operation_add_input(b, x);
  REQUIRE_OK(tn_operation_finish(b, &made, &t->err), &t->err);
  return (tn_output){ made, 0 };
}

/* Two outputs could reuse the memory of one input; only one does. */
static void exec__only_one_of_two_outputs_reuses_an_input(void)
{
  FOR_LEVELS(level) {
    ts t;
    tn_output in = ts_open_watched(&t, level);
    tn_output two = odd(&t, "OddTwo", "two", ts_op1(t.graph, "Neg", "neg", in));
    ts_op1(t.graph, "Neg", "second", (tn_output){ two.op, 1 });
    ts_op2(t.graph, "Sub", "both", two, (tn_output){ two.op, 1 });
    ts_start(&t);
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "in", 3 }), "second"), 6, 0);
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "in", 3 }), "both"), 5, 0);
    ts_fini(&t);
  }
}

static tn_status run_odd(const char *op, tn_tensor **out, tn_error *err)
{
  ts t;
  *out = NULL;
  tn_output in = ts_open_watched(&t, 1);
  odd(&t, op, "odd", ts_op1(t.graph, "Neg", "neg", in));
  ts_start(&t);
  tn_status st = ts_run(&t, FEEDS({ "in", 3 }), NAMES("odd"), out, NULL);
  CHECK_INT(tn_error_code(&t.err), st); /* S-ERR-02: OK has no text, and a status equals that of the text */
  tn_error_copy(err, &t.err);
  ts_fini(&t);
  return st;
}

static void exec__impossible_requests_of_kernels_fail(void) /* S-CAN-14, S-ERR-01, S-ERR-02 */
{
  static const struct {
    const char *op, *says;
    tn_status code;
  } cases[] = { { "OddGreedy", "bytes", TN_RESOURCE_EXHAUSTED }, { "OddWide", "view", TN_INTERNAL },
                { "OddText", "view", TN_INTERNAL },              { "OddSame", "forward", TN_INTERNAL },
                { "OddStatus", "4242", TN_INTERNAL },            { "OddWaits", "TN_TRAIT_MAY_WAIT", TN_INTERNAL },
                { "OddMixed", "one code", TN_DATA_LOSS },        { "OddMutter", "", TN_OK },
                { "OddBytes", "", TN_OK } };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tn_error err = TN_ERROR_INIT;
    tn_tensor *out;
    CHECK_STATUS(run_odd(cases[i].op, &out, &err), cases[i].code, &err);
    CHECK_CONTAINS(tn_error_message(&err), cases[i].says);
    CHECK((out != NULL) == (cases[i].code == TN_OK));
    if (out != NULL && tn_tensor_dtype(out) == TN_UINT8) {
      float back;
      CHECK_INT(tn_tensor_bytes(out), sizeof back);
      memcpy(&back, tn_tensor_data(out), sizeof back);
      CHECK_DOUBLE(back, -3, 0);
    }
    tn_tensor_unref(out);
    tn_error_clear(&err);
  }
}

/* A plan without a single byte of values has no arena. */
static void exec__empty_tensors(void)
{
  FOR_LEVELS(level) {
    ts t;
    ts_init(&t, level);
    tn_output x = ts_placeholder(t.graph, "x", TN_FLOAT);
    ts_op1(t.graph, "Neg", "last", ts_op1(t.graph, "Square", "square", x));
    ts_start(&t);
    tn_tensor *in = ts_filled(2, (int64_t[]){ 0, 3 }, 0), *out = NULL;
    const char *feed = "x", *fetch = "last";
    CHECK_OK(tn_session_run(t.session, NULL, &feed, &in, 1, &fetch, &out, 1, NULL, 0, NULL, &t.err), &t.err);
    CHECK_INT(tn_tensor_elements(out), 0);
    CHECK_INT(tn_tensor_dims(out)[1], 3);
    tn_tensor_unref(out);
    tn_tensor_unref(in);
    ts_fini(&t);
  }
}

TAP_MAIN(
  TAP_TEST(exec__empty_tensors),
  TAP_TEST(exec__values_do_not_depend_on_what_else_is_fetched),
  TAP_TEST(exec__shapes_depend_on_values),
  TAP_TEST(exec__dynamic_outputs_flow_on),
  TAP_TEST(exec__strings_are_freed_and_copied),
  TAP_TEST(exec__many_shapes_in_turns),
  TAP_TEST(exec__only_one_of_two_outputs_reuses_an_input),
  TAP_TEST(exec__impossible_requests_of_kernels_fail))
