/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise chains as one instruction, as a user sees them: results have the same bits with
 * the pass "elementwise" on and off, for all shapes, and a step has fewer instructions. */
#include <core/compile/compile.h>

#include "tests/support/elementwise_kit.h"

/* ---- graphs ---- */

static tn_output leaky(tn_graph *graph, const char *name, tn_output x, float alpha)
{
  tn_operation_builder *b = tn_operation_begin(graph, "LeakyRelu", name, 0);
  tn_operation *op = NULL;
  tn_error err = TN_ERROR_INIT;
  tn_operation_add_input(b, x);
  tn_operation_set_float(b, "alpha", alpha);
  REQUIRE_OK(tn_operation_finish(b, &op, &err), &err);
  return (tn_output){ op, 0 };
}

static void without_pass(ts *t, bool off)
{
  if (off) REQUIRE_OK(tn_session_options_set_string(t->options, "disable_passes", "elementwise", &t->err), &t->err);
}

/* Instructions of a step with these feeds and fetches; *n_inputs, if not NULL: the inputs of the
 * last one. */
static uint32_t instructions_and_inputs(tn_graph *graph, const tn_output *feeds, size_t n_feeds,
                                        const tn_output *fetches, size_t n_fetches, const char *disabled,
                                        uint32_t *n_inputs)
{
  tn_error err = TN_ERROR_INIT;
  tn_plan *plan = NULL;
  const tn__signature_spec spec = { .feeds = feeds, .n_feeds = n_feeds, .fetches = fetches, .n_fetches = n_fetches,
                                    .level = 1, .max_layouts = 1, .disabled = disabled };
  REQUIRE_OK(tn__plan_compile(graph, &spec, &plan, &err), &err);
  uint32_t n = plan->n_instrs;
  if (n_inputs != NULL) *n_inputs = plan->instrs[n - 1].n_inputs;
  tn__plan_unref(plan);
  return n;
}

static uint32_t instructions(tn_graph *graph, const tn_output *feeds, size_t n_feeds, const tn_output *fetches,
                             size_t n_fetches, const char *disabled)
{
  return instructions_and_inputs(graph, feeds, n_feeds, fetches, n_fetches, disabled, NULL);
}

/* ---- random graphs ---- */

#define MAX_NODES 24
#define MAX_RANK 4

typedef struct shape {
  int32_t rank;
  int64_t dims[MAX_RANK];
} shape;

typedef struct trial {
  ts t;
  tn_dtype dtype;
  shape whole; /* to which everything broadcasts */
  tn_output values[MAX_NODES];
  shape shapes[MAX_NODES];
  size_t n;
  tn_output feeds[MAX_NODES], fetches[MAX_NODES];
  shape feed_shapes[MAX_NODES];
  size_t n_feeds, n_fetches;
} trial;

static const char *name_of(size_t i)
{
  static char names[MAX_NODES][8];
  snprintf(names[i], sizeof names[i], "n%zu", i);
  return names[i];
}

static void random_whole(shape *s)
{
  static const int64_t sizes[] = { 1, 2, 3, 5, 8, 16, 33 }, lasts[] = { 1, 3, 4, 7, 16, 100, 1030, 4099 };
  s->rank = (int32_t)random_below(MAX_RANK + 1);
  for (int32_t d = 0; d < s->rank; d++) s->dims[d] = sizes[random_below(s->rank > 3 ? 4 : 7)];
  if (s->rank > 0) s->dims[s->rank - 1] = lasts[random_below(8)];
  if (s->rank > 0 && random_below(16) == 0) s->dims[random_below((uint32_t)s->rank)] = 0;
}

/* The whole shape, or one that broadcasts to it: dimensions of 1, or fewer. */
static shape random_part(const shape *whole)
{
  shape s = *whole;
  uint32_t kind = random_below(8);
  if (kind < 3) return s;
  if (kind == 3) s.rank = 0;
  int32_t skip = kind < 6 && s.rank > 0 ? (int32_t)random_below((uint32_t)s.rank) : 0;
  s.rank -= skip;
  for (int32_t d = 0; d < s.rank; d++) s.dims[d] = kind > 4 && random_below(2) == 0 ? 1 : whole->dims[d + skip];
  return s;
}

static shape broadcast(shape a, shape b)
{
  shape s = a.rank >= b.rank ? a : b;
  for (int32_t d = 1; d <= a.rank && d <= b.rank; d++) {
    int64_t x = a.dims[a.rank - d], y = b.dims[b.rank - d];
    s.dims[s.rank - d] = x == 1 ? y : x;
  }
  return s;
}

static void add_leaf(trial *x)
{
  size_t i = x->n++;
  shape s = x->shapes[i] = random_part(&x->whole), declared = s;
  uint32_t kind = random_below(4);
  if (kind == 0) {
    x->values[i] = constant(x->t.graph, name_of(i), x->dtype, s.rank, s.dims);
    return;
  }
  if (kind == 1) declared.rank = -1;
  for (int32_t d = 0; d < declared.rank; d++)
    if (kind == 2 && random_below(2) == 0) declared.dims[d] = -1;
  x->values[i] = placeholder(x->t.graph, name_of(i), x->dtype, declared.rank, declared.dims);
  x->feed_shapes[x->n_feeds] = s;
  x->feeds[x->n_feeds++] = x->values[i];
}

/* Not part of a program: its result is read by one, which may reuse its memory. */
static tn_output clip(trial *x, size_t i, tn_output value)
{
  tn_output bounds[2];
  tn_error err = TN_ERROR_INIT;
  tn_operation *op = NULL;
  char name[16];
  for (int k = 0; k < 2; k++) {
    snprintf(name, sizeof name, "bound%zu_%d", i, k);
    bounds[k] = constant(x->t.graph, name, x->dtype, 0, NULL);
  }
  tn_operation_builder *b = tn_operation_begin(x->t.graph, "ClipByValue", name_of(i), 0);
  tn_operation_add_input(b, value);
  for (int k = 0; k < 2; k++) tn_operation_add_input(b, bounds[k]);
  REQUIRE_OK(tn_operation_finish(b, &op, &err), &err);
  return (tn_output){ op, 0 };
}

/* A value of this shape in parts, mostly along the last axis: constants, feeds, more such
 * values. */
static tn_output joined(trial *x, const char *name, shape s, int depth)
{
  tn_output parts[4];
  size_t n = 0;
  int32_t axis = random_below(6) == 0 ? (int32_t)random_below((uint32_t)s.rank) : s.rank - 1;
  int64_t left = s.dims[axis];
  for (size_t most = 2 + random_below(3); n < most; n++) {
    char part_name[40];
    shape part = s;
    part.dims[axis] = n + 1 == most ? left : (int64_t)random_below((uint32_t)left + 1);
    left -= part.dims[axis];
    snprintf(part_name, sizeof part_name, "%s_%zu", name, n);
    uint32_t kind = random_below(4);
    if (kind == 0 && depth > 0) {
      parts[n] = joined(x, part_name, part, depth - 1);
    } else if (kind == 1 && x->n_feeds + 4 < MAX_NODES) {
      shape declared = part;
      if (random_below(2) == 0) declared.dims[random_below((uint32_t)s.rank)] = -1;
      parts[n] = placeholder(x->t.graph, part_name, x->dtype, declared.rank, declared.dims);
      x->feed_shapes[x->n_feeds] = part;
      x->feeds[x->n_feeds++] = parts[n];
    } else {
      char inner[44];
      snprintf(inner, sizeof inner, "%s_c", part_name);
      parts[n] = ts_op1(x->t.graph, "Neg", part_name, constant(x->t.graph, inner, x->dtype, part.rank, part.dims));
    }
  }
  return concat(x->t.graph, name, parts, n, random_below(2) == 0 ? axis - s.rank : axis, random_below(4) == 0);
}

static void add_node(trial *x)
{
  static const char *const two[] = { "Add", "AddV2", "Sub", "Mul", "RealDiv", "Div", "Maximum", "Minimum",
                                     "SquaredDifference", "DivNoNan", "MulNoNan" };
  static const char *const one[] = { "Neg", "Abs", "Square", "Sqrt", "Rsqrt", "Exp", "Log", "Tanh", "Sigmoid", "Relu",
                                     "Relu6", "Elu", "Selu", "Softplus", "Softsign", "Reciprocal", "Inv", "Sign",
                                     "Floor", "Ceil", "Round", "Expm1", "Log1p", "Sin", "Cos" };
  size_t i = x->n, a = random_below(2) == 0 ? i - 1 : random_below((uint32_t)i), b = random_below((uint32_t)i);
  uint32_t kind = random_below(16);
  const shape *s = &x->shapes[a];
  x->n++;
  if (kind == 0 && s->rank >= 2) {
    char name[16];
    snprintf(name, sizeof name, "bias%zu", i);
    x->values[i] = ts_op2(x->t.graph, "BiasAdd", name_of(i), x->values[a],
                          constant(x->t.graph, name, x->dtype, 1, &s->dims[s->rank - 1]));
    x->shapes[i] = *s;
  } else if (kind > 13 && s->rank >= 1) {
    x->values[i] = joined(x, name_of(i), *s, 2);
    x->shapes[i] = *s;
  } else if (kind == 1) {
    x->values[i] = leaky(x->t.graph, name_of(i), x->values[a], (float)random_number());
    x->shapes[i] = *s;
  } else if (kind < 4) {
    x->values[i] = clip(x, i, x->values[a]);
    x->shapes[i] = *s;
  } else if (kind < 8) {
    x->values[i] = ts_op1(x->t.graph, one[random_below(25)], name_of(i), x->values[a]);
    x->shapes[i] = *s;
  } else {
    x->values[i] = ts_op2(x->t.graph, two[random_below(11)], name_of(i), x->values[a], x->values[b]);
    x->shapes[i] = broadcast(*s, x->shapes[b]);
  }
  if (random_below(24) == 0) { /* fed as an intermediate value */
    x->feed_shapes[x->n_feeds] = x->shapes[i];
    x->feeds[x->n_feeds++] = x->values[i];
  } else if (random_below(10) == 0) {
    x->fetches[x->n_fetches++] = x->values[i];
  }
}

static void build_trial(trial *x, uint64_t number, bool off)
{
  static const tn_dtype dtypes[] = { TN_FLOAT, TN_FLOAT, TN_FLOAT, TN_DOUBLE, TN_HALF, TN_BFLOAT16 };
  *x = (trial){ 0 };
  seed = number * 77 + 5;
  ts_init(&x->t, 1);
  without_pass(&x->t, off);
  x->dtype = dtypes[random_below(6)];
  random_whole(&x->whole);
  for (uint32_t n = 1 + random_below(5); n > 0; n--) add_leaf(x);
  for (uint32_t n = 2 + random_below(14); n > 0; n--) add_node(x);
  x->fetches[x->n_fetches++] = x->values[x->n - 1];
  ts_start(&x->t);
}

static void run_trial(trial *x, tn_tensor **out)
{
  const char *feeds[MAX_NODES], *fetches[MAX_NODES];
  tn_tensor *in[MAX_NODES];
  for (size_t i = 0; i < x->n_feeds; i++) {
    feeds[i] = tn_operation_name(x->feeds[i].op);
    in[i] = numbers(x->dtype, x->feed_shapes[i].rank, x->feed_shapes[i].dims);
  }
  for (size_t i = 0; i < x->n_fetches; i++) fetches[i] = tn_operation_name(x->fetches[i].op);
  tn_status st = tn_session_run(x->t.session, NULL, feeds, in, x->n_feeds, fetches, out, x->n_fetches, NULL, 0, NULL,
                                &x->t.err);
  REQUIRE_OK(st, &x->t.err);
  for (size_t i = 0; i < x->n_feeds; i++) tn_tensor_unref(in[i]);
}

static void elementwise__keeps_every_bit(void)
{
  uint32_t with = 0, without = 0;
  for (uint64_t number = 0; number < 600; number++) {
    tn_tensor *found[MAX_NODES], *wanted[MAX_NODES];
    trial x, y;
    build_trial(&x, number, false);
    uint64_t after = seed;
    run_trial(&x, found);
    build_trial(&y, number, true);
    REQUIRE(seed == after);
    run_trial(&y, wanted);
    with += instructions(x.t.graph, x.feeds, x.n_feeds, x.fetches, x.n_fetches, NULL);
    without += instructions(x.t.graph, x.feeds, x.n_feeds, x.fetches, x.n_fetches, "elementwise");
    for (size_t i = 0; i < x.n_fetches; i++) {
      CHECK_MSG(same(found[i], wanted[i]), "graph %d: '%s' differs with the pass", (int)number,
                tn_operation_name(x.fetches[i].op));
      tn_tensor_unref(found[i]);
      tn_tensor_unref(wanted[i]);
    }
    ts_fini(&x.t);
    ts_fini(&y.t);
  }
  tap_note("%u instructions with the pass, %u without", (unsigned)with, (unsigned)without);
  CHECK(with * 4 < without * 3);
}

/* ---- nodes that become one instruction ---- */

/* relu6(x + 3) / 6 * x: x is read twice. */
static tn_output hard_swish(tn_graph *g, tn_output x)
{
  tn_output six = ts_op1(g, "Relu6", "clipped", ts_op2(g, "AddV2", "shifted", x, ts_const(g, "three", 3)));
  return ts_op2(g, "Mul", "out", ts_op2(g, "RealDiv", "divided", six, ts_const(g, "six", 6)), x);
}

static void elementwise__a_chain_is_one_instruction(void)
{
  ts t;
  ts_init(&t, 1);
  tn_output x = placeholder(t.graph, "x", TN_FLOAT, 4, (int64_t[]){ -1, -1, -1, 16 });
  tn_output out = hard_swish(t.graph, x);
  tn_output divided = { (tn_operation *)tn_graph_find(t.graph, "divided"), 0 };
  CHECK_INT(instructions(t.graph, &x, 1, &out, 1, "elementwise"), 4);
  CHECK_INT(instructions(t.graph, &x, 1, &out, 1, NULL), 1);
  /* Fetched values are kept, and feeds cut the chain. */
  CHECK_INT(instructions(t.graph, &x, 1, (tn_output[]){ divided, out }, 2, NULL), 2);
  CHECK_INT(instructions(t.graph, (tn_output[]){ x, divided }, 2, &out, 1, NULL), 1);
  ts_fini(&t);
}

/* A vector computed once for all rows is not computed again per element; arithmetic of sizes is
 * not changed. */
static void elementwise__smaller_results_and_integers_are_kept(void)
{
  ts t;
  ts_init(&t, 1);
  tn_output x = placeholder(t.graph, "x", TN_FLOAT, 2, (int64_t[]){ 8, 16 });
  tn_output v = placeholder(t.graph, "v", TN_FLOAT, 1, (int64_t[]){ 16 });
  tn_output n = placeholder(t.graph, "n", TN_INT32, 0, NULL);
  tn_output scale = ts_op1(t.graph, "Exp", "scale", v);
  tn_output out = ts_op1(t.graph, "Relu", "out", ts_op2(t.graph, "Mul", "scaled", x, scale));
  tn_output size = ts_op2(t.graph, "AddV2", "size", ts_op2(t.graph, "Mul", "square", n, n), n);
  CHECK_INT(instructions(t.graph, (tn_output[]){ x, v }, 2, &out, 1, NULL), 2);
  CHECK_INT(instructions(t.graph, &n, 1, &size, 1, NULL), 2);
  ts_fini(&t);
}

/* Ops that the pass "fuse" fuses into a product stay there. */
static void elementwise__products_take_precedence(void)
{
  ts t;
  ts_init(&t, 1);
  tn_output x = placeholder(t.graph, "x", TN_FLOAT, 2, (int64_t[]){ -1, 8 });
  tn_output w = constant(t.graph, "w", TN_FLOAT, 2, (int64_t[]){ 8, 4 });
  tn_output b = constant(t.graph, "b", TN_FLOAT, 1, (int64_t[]){ 4 });
  tn_output out = ts_op1(t.graph, "Relu", "out",
                         ts_op2(t.graph, "BiasAdd", "biased", ts_op2(t.graph, "MatMul", "product", x, w), b));
  CHECK_INT(instructions(t.graph, &x, 1, &out, 1, NULL), 1);
  CHECK_INT(instructions(t.graph, &x, 1, &out, 1, "fuse"), 2);
  CHECK_INT(instructions(t.graph, &x, 1, &out, 1, "fuse,elementwise"), 3);
  ts_fini(&t);
}

/* Nodes with control edges are not moved. */
static void elementwise__control_edges_are_kept(void)
{
  for (int off = 0; off <= 1; off++) {
    ts t;
    tn_output in = ts_open_watched(&t, 1);
    tn_operation *first = ts_watch_op(t.graph, "TestCount", "first", in, 1).op;
    tn_operation_builder *b = tn_operation_begin(t.graph, "Neg", "waits", 0);
    tn_operation *waits = NULL;
    tn_operation_add_input(b, ts_op1(t.graph, "Square", "square", in));
    tn_operation_add_control_input(b, first);
    REQUIRE_OK(tn_operation_finish(b, &waits, &t.err), &t.err);
    ts_op1(t.graph, "Abs", "out", (tn_output){ waits, 0 });
    ts_test_op(t.graph, "TestEffect", "effect", NULL, 2, &waits, 1);
    without_pass(&t, off);
    ts_start(&t);
    CHECK(ts_run1(&t, FEEDS({ "in", 3 }), "out") == 9);
    CHECK_INT(ts_counted(1), 1);
    CHECK_OK(ts_run(&t, FEEDS({ "in", 3 }), NULL, NULL, NAMES("effect")), &t.err);
    CHECK_INT(ts_counted(1), 2);
    CHECK_INT(ts_counted(2), 1);
    ts_fini(&t);
  }
}

/* ---- shapes known in a step ---- */

/* x, y and z of unknown shapes: |x| * y + z. Returns the status, the message and the result. */
static tn_status run_three(ts *t, const shape *shapes, tn_tensor **out)
{
  static const char *const names[] = { "x", "y", "z" }, *const fetch[] = { "out" };
  tn_tensor *in[3];
  seed = 9;
  for (int i = 0; i < 3; i++) in[i] = numbers(TN_FLOAT, shapes[i].rank, shapes[i].dims);
  tn_status st = tn_session_run(t->session, NULL, names, in, 3, fetch, out, 1, NULL, 0, NULL, &t->err);
  for (int i = 0; i < 3; i++) tn_tensor_unref(in[i]);
  return st;
}

static void open_three(ts *t, bool off)
{
  ts_init(t, 1);
  tn_graph *g = t->graph;
  tn_output x = ts_placeholder(g, "x", TN_FLOAT), y = ts_placeholder(g, "y", TN_FLOAT);
  tn_output z = ts_placeholder(g, "z", TN_FLOAT);
  ts_op2(g, "AddV2", "out", ts_op2(g, "Mul", "product", ts_op1(g, "Abs", "abs", x), y), z);
  without_pass(t, off);
  ts_start(t);
}

/* One session gets shapes that broadcast in every direction, and large ones. */
static void elementwise__any_operand_may_be_the_largest(void)
{
  static const shape cases[][3] = {
    { { 1, { 7 } }, { 1, { 7 } }, { 1, { 7 } } },
    { { 0, { 0 } }, { 0, { 0 } }, { 2, { 5, 7 } } },
    { { 1, { 7 } }, { 0, { 0 } }, { 2, { 5, 7 } } },
    { { 2, { 5, 1 } }, { 1, { 7 } }, { 0, { 0 } } },
    { { 3, { 2, 1, 3 } }, { 3, { 1, 4, 1 } }, { 3, { 2, 4, 3 } } },
    { { 2, { 0, 3 } }, { 1, { 3 } }, { 0, { 0 } } },
    { { 2, { 1, 3 } }, { 2, { 0, 1 } }, { 1, { 3 } } },
    { { 4, { 2, 9, 9, 1030 } }, { 1, { 1030 } }, { 3, { 9, 9, 1030 } } },
    { { 2, { 300, 5000 } }, { 2, { 300, 1 } }, { 1, { 5000 } } },
    { { 4, { 3, 20, 20, 64 } }, { 4, { 3, 1, 1, 64 } }, { 1, { 64 } } },
    { { 4, { 2, 30, 30, 6 } }, { 1, { 6 } }, { 4, { 2, 30, 30, 1 } } },
  };
  ts on, off;
  open_three(&on, false);
  open_three(&off, true);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tn_tensor *found = NULL, *wanted = NULL;
    REQUIRE_OK(run_three(&on, cases[i], &found), &on.err);
    REQUIRE_OK(run_three(&off, cases[i], &wanted), &off.err);
    CHECK_MSG(same(found, wanted), "case %d: another result with the pass", (int)i);
    tn_tensor_unref(found);
    tn_tensor_unref(wanted);
  }
  ts_fini(&on);
  ts_fini(&off);
}

static void elementwise__errors_name_incompatible_shapes(void)
{
  static const shape cases[][3] = {
    { { 1, { 7 } }, { 1, { 6 } }, { 0, { 0 } } },
    { { 1, { 1 } }, { 1, { 6 } }, { 1, { 7 } } },
    { { 2, { 0, 6 } }, { 1, { 6 } }, { 2, { 2, 1 } } },
  };
  static const char *const words[] = { "Mul: shapes [7] and [6]", "AddV2: shapes [6] and [7]",
                                       "AddV2: shapes [0,6] and [2,1]" };
  for (int off = 0; off <= 1; off++) {
    ts t;
    open_three(&t, off);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
      tn_tensor *out = NULL;
      CHECK_STATUS(run_three(&t, cases[i], &out), TN_INVALID_ARGUMENT, &t.err);
      CHECK_CONTAINS(tn_error_message(&t.err), words[i]);
      CHECK_STR(tn_error_node(&t.err), i == 0 ? "product" : "out");
      CHECK_NULL(out);
    }
    ts_fini(&t);
  }
}

/* A bias must be a vector, with and without the pass. */
static void elementwise__a_bias_must_be_a_vector(void)
{
  for (int off = 0; off <= 1; off++) {
    static const char *const names[] = { "x", "b" }, *const fetch[] = { "out" };
    static const shape cases[][2] = { { { 2, { 4, 6 } }, { 1, { 1 } } },
                                      { { 2, { 4, 6 } }, { 2, { 1, 6 } } },
                                      { { 1, { 6 } }, { 1, { 6 } } } };
    ts t;
    ts_init(&t, 1);
    tn_output x = ts_placeholder(t.graph, "x", TN_FLOAT), b = ts_placeholder(t.graph, "b", TN_FLOAT);
    ts_op1(t.graph, "Neg", "out", ts_op2(t.graph, "BiasAdd", "biased", x, b));
    without_pass(&t, off);
    ts_start(&t);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
      tn_tensor *in[2], *out = NULL;
      for (int k = 0; k < 2; k++) in[k] = numbers(TN_FLOAT, cases[i][k].rank, cases[i][k].dims);
      tn_status st = tn_session_run(t.session, NULL, names, in, 2, fetch, &out, 1, NULL, 0, NULL, &t.err);
      CHECK_STATUS(st, TN_INVALID_ARGUMENT, &t.err);
      CHECK_CONTAINS(tn_error_message(&t.err), "BiasAdd");
      CHECK_STR(tn_error_node(&t.err), "biased");
      for (int k = 0; k < 2; k++) tn_tensor_unref(in[k]);
    }
    ts_fini(&t);
  }
}

/* ---- concatenations ---- */

/* relu(concat * scale) of parts a, b and c, where b and c are themselves a concatenation. */
static void open_joined(ts *t, int32_t axis, bool off)
{
  ts_init(t, 1);
  without_pass(t, off);
  tn_output parts[2] = { placeholder(t->graph, "b", TN_FLOAT, 3, (int64_t[]){ -1, 3, -1 }),
                         placeholder(t->graph, "c", TN_FLOAT, 3, (int64_t[]){ -1, 3, -1 }) };
  parts[1] = concat(t->graph, "inner", parts, 2, axis, false);
  parts[0] = placeholder(t->graph, "a", TN_FLOAT, 3, (int64_t[]){ -1, 3, -1 });
  tn_output all = concat(t->graph, "outer", parts, 2, axis, false);
  tn_output scale = placeholder(t->graph, "scale", TN_FLOAT, -1, NULL);
  ts_op1(t->graph, "Relu", "out", ts_op2(t->graph, "Mul", "scaled", all, scale));
  ts_start(t);
}

typedef struct parts {
  shape a, b, c, scale;
} parts;

static const char *const joined_names[] = { "a", "b", "c", "scale" }, *const joined_fetch[] = { "out" };

static void make_joined(const parts *p, tn_tensor **in)
{
  const shape *shapes[] = { &p->a, &p->b, &p->c, &p->scale };
  seed = 9;
  for (int i = 0; i < 4; i++) in[i] = numbers(TN_FLOAT, shapes[i]->rank, shapes[i]->dims);
}

static tn_status run_joined(ts *t, const parts *p, tn_tensor **out)
{
  tn_tensor *in[4];
  make_joined(p, in);
  tn_status st = tn_session_run(t->session, NULL, joined_names, in, 4, joined_fetch, out, 1, NULL, 0, NULL, &t->err);
  for (int i = 0; i < 4; i++) tn_tensor_unref(in[i]);
  return st;
}

static uint32_t joined_instructions(int32_t axis, bool outer, const char *disabled, uint32_t *n_inputs)
{
  ts t;
  open_joined(&t, axis, false);
  const tn_output feeds[] = { { tn_graph_find(t.graph, "a"), 0 }, { tn_graph_find(t.graph, "b"), 0 },
                              { tn_graph_find(t.graph, "c"), 0 }, { tn_graph_find(t.graph, "scale"), 0 } };
  const tn_output fetches[] = { { tn_graph_find(t.graph, "out"), 0 }, { tn_graph_find(t.graph, "outer"), 0 } };
  uint32_t n = instructions_and_inputs(t.graph, feeds, 4, fetches, outer ? 2 : 1, disabled, n_inputs);
  ts_fini(&t);
  return n;
}

/* A concatenation used only by a chain is never materialised; one that is fetched or used
 * otherwise is. */
static void elementwise__concatenations_are_read_in_parts(void)
{
  uint32_t n_inputs;
  CHECK_INT(joined_instructions(2, false, "elementwise", &n_inputs), 4);
  CHECK_INT(joined_instructions(2, false, NULL, &n_inputs), 1);
  CHECK_INT(n_inputs, 4);
  CHECK_INT(joined_instructions(-1, false, NULL, &n_inputs), 1);
  CHECK_INT(joined_instructions(0, false, NULL, &n_inputs), 3);
  CHECK_INT(n_inputs, 2);
  CHECK_INT(joined_instructions(2, true, NULL, &n_inputs), 3);
  CHECK_INT(n_inputs, 2);
}

/* Rows that fit a block and rows that do not, empty parts, a scale that makes the result larger. */
static void elementwise__joined_parts_have_the_same_bits(void)
{
  static const parts cases[] = {
    { { 3, { 2, 3, 4 } }, { 3, { 2, 3, 1 } }, { 3, { 2, 3, 5 } }, { 1, { 10 } } },
    { { 3, { 2, 3, 16 } }, { 3, { 2, 3, 0 } }, { 3, { 2, 3, 32 } }, { 1, { 48 } } },
    { { 3, { 2, 3, 0 } }, { 3, { 2, 3, 0 } }, { 3, { 2, 3, 0 } }, { 1, { 0 } } },
    { { 3, { 2, 3, 0 } }, { 3, { 2, 3, 0 } }, { 3, { 2, 3, 7 } }, { 0, { 0 } } },
    { { 3, { 3, 3, 5000 } }, { 3, { 3, 3, 3 } }, { 3, { 3, 3, 4000 } }, { 1, { 9003 } } },
    { { 3, { 50, 3, 64 } }, { 3, { 50, 3, 32 } }, { 3, { 50, 3, 32 } }, { 3, { 50, 3, 1 } } },
    { { 3, { 1, 3, 4 } }, { 3, { 1, 3, 1 } }, { 3, { 1, 3, 5 } }, { 3, { 20, 1, 10 } } },
    { { 3, { 1, 3, 4 } }, { 3, { 1, 3, 1 } }, { 3, { 1, 3, 5 } }, { 4, { 7, 2, 3, 10 } } },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tn_tensor *out[2] = { NULL, NULL };
    for (int off = 0; off <= 1; off++) {
      ts t;
      open_joined(&t, 2, off);
      CHECK_OK(run_joined(&t, &cases[i], &out[off]), &t.err);
      ts_fini(&t);
    }
    if (out[0] != NULL && out[1] != NULL) CHECK_MSG(same(out[0], out[1]), "case %zu", i);
    for (int k = 0; k < 2; k++) tn_tensor_unref(out[k]);
  }
}

static void elementwise__errors_name_mismatched_parts(void)
{
  static const parts wrong = { { 3, { 2, 3, 4 } }, { 3, { 1, 3, 1 } }, { 3, { 2, 3, 5 } }, { 1, { 10 } } };
  for (int off = 0; off <= 1; off++) {
    ts t;
    tn_tensor *out = NULL;
    open_joined(&t, 2, off);
    CHECK_STATUS(run_joined(&t, &wrong, &out), TN_INVALID_ARGUMENT, &t.err);
    CHECK_CONTAINS(tn_error_message(&t.err), "ConcatV2");
    CHECK_CONTAINS(tn_error_message(&t.err), off ? "inner" : "outer");
    ts_fini(&t);
  }
}

/* ---- programs not made by the planner ---- */

static tn_status try_program(const char *const *steps, size_t n_steps, const int64_t *operands, size_t n_operands,
                             tn_error *err)
{
  ts t;
  ts_init(&t, 0);
  tn_output x = ts_placeholder(t.graph, "x", TN_FLOAT);
  tn_operation_builder *b = tn_operation_begin(t.graph, "_TnElementwise", "it", 0);
  size_t sizes[80];
  for (size_t i = 0; i < n_steps; i++) sizes[i] = strlen(steps[i]);
  tn_operation_add_input_list(b, &x, 1);
  tn_operation_set_strings(b, "steps", (const void *const *)steps, sizes, n_steps);
  tn_operation_set_ints(b, "operands", operands, n_operands);
  tn_operation *op = NULL;
  tn_status st = tn_operation_finish(b, &op, err);
  if (st == TN_OK) {
    ts_start(&t);
    tn_tensor *out = NULL;
    st = ts_run(&t, FEEDS({ "x", 2 }), NAMES("it"), &out, NULL);
    if (st == TN_OK) CHECK(ts_float(out) == 16);
    tn_tensor_unref(out);
    tn_error_copy(err, &t.err);
  }
  ts_fini(&t);
  return st;
}

static void elementwise__malformed_programs_are_rejected(void)
{
  static const char *const square[] = { "Square", "Square" };
  static const char *const unknown[] = { "Square", "Conv2D" };
  static const char *many[80];
  static int64_t zeros[160];
  tn_error err = TN_ERROR_INIT;
  for (size_t i = 0; i < 80; i++) many[i] = "Neg";
  CHECK_OK(try_program(square, 2, (int64_t[]){ 0, -1, 1, -1 }, 4, &err), &err);
#define REFUSED(text, steps, n_steps, n, ...)                                                                    \
  CHECK_STATUS(try_program(steps, n_steps, (int64_t[]){ __VA_ARGS__ }, n, &err), TN_INVALID_ARGUMENT, &err);     \
  CHECK_CONTAINS(tn_error_message(&err), text)
  REFUSED("operand 2 is value 2, wanted one of [0, 2)", square, 2, 4, 0, -1, 2, -1);
  REFUSED("operand 0 is value -1", square, 2, 4, -1, -1, 1, -1);
  REFUSED("step 1 is 'Conv2D'", unknown, 2, 4, 0, -1, 1, -1);
  REFUSED("3 operands, wanted 2 for each of 2 steps", square, 2, 3, 0, -1, 1);
  REFUSED("nothing reads value 1", square, 2, 4, 0, -1, 0, -1);
  REFUSED("too few alphas", ((const char *const[]){ "LeakyRelu" }), 1, 2, 0, -1);
  CHECK_STATUS(try_program(many, 80, zeros, 160, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "1 arguments and 80 steps");
  tn_error_clear(&err);
}

/* ---- lack of memory ---- */

static tn_status compile_and_run(void *arg)
{
  static const char *const names[] = { "x", "y", "z" }, *const fetch[] = { "out" };
  struct { ts *t; tn_tensor *in[3]; } *a = arg;
  tn_callable callable;
  tn_tensor *out = NULL;
  tn_status st = tn_session_make_callable(a->t->session, NULL, names, 3, fetch, 1, NULL, 0, &callable, NULL);
  if (st != TN_OK) return st;
  st = tn_session_run_callable(a->t->session, callable, a->in, 3, &out, 1, NULL, NULL);
  tn_tensor_unref(out);
  tn_session_release_callable(a->t->session, callable, NULL);
  return st;
}

static void elementwise__survives_lack_of_memory(void)
{
  ts t;
  open_three(&t, false);
  struct { ts *t; tn_tensor *in[3]; } a = { &t, { NULL } };
  a.in[0] = numbers(TN_FLOAT, 3, (int64_t[]){ 2, 1, 3 });
  a.in[1] = numbers(TN_FLOAT, 3, (int64_t[]){ 1, 4, 1 });
  a.in[2] = numbers(TN_FLOAT, 3, (int64_t[]){ 2, 4, 3 });
  tn_test_oom_sweep(compile_and_run, &a);
  for (int i = 0; i < 3; i++) tn_tensor_unref(a.in[i]);
  ts_fini(&t);
}

static void elementwise__malformed_joins_are_rejected(void)
{
  static const int64_t few[] = { 1 }, many[] = { 2, 3 }, none[] = { 2, 0 }, right[] = { 2 };
  static const struct {
    const int64_t *joined;
    size_t n;
    bool good;
  } cases[] = { { few, 1, false }, { many, 2, false }, { none, 2, false }, { right, 1, true } };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ts t;
    ts_init(&t, 0);
    tn_output x[2] = { ts_placeholder(t.graph, "x", TN_FLOAT), ts_placeholder(t.graph, "y", TN_FLOAT) };
    tn_operation_builder *b = tn_operation_begin(t.graph, "_TnElementwise", "it", 0);
    tn_operation *op = NULL;
    tn_operation_add_input_list(b, x, 2);
    tn_operation_set_strings(b, "steps", (const void *const[]){ "Neg" }, (size_t[]){ 3 }, 1);
    tn_operation_set_ints(b, "operands", (int64_t[]){ 0, -1 }, 2);
    tn_operation_set_ints(b, "joined", cases[i].joined, cases[i].n);
    tn_status st = tn_operation_finish(b, &op, &t.err);
    if (cases[i].good) CHECK_OK(st, &t.err);
    else CHECK_STATUS(st, TN_INVALID_ARGUMENT, &t.err);
    if (!cases[i].good) CHECK_CONTAINS(tn_error_message(&t.err), "'joined' does not add up to 2 inputs");
    if (cases[i].good) { /* a scalar cannot be part of a row */
      ts_start(&t);
      tn_tensor *out = NULL;
      CHECK_STATUS(ts_run(&t, FEEDS({ "x", 2 }, { "y", 3 }), NAMES("it"), &out, NULL), TN_INVALID_ARGUMENT, &t.err);
      CHECK_CONTAINS(tn_error_message(&t.err), "input 0 is a scalar");
    }
    ts_fini(&t);
  }
}

static tn_status compile_joined(void *arg)
{
  struct { ts *t; tn_tensor *in[4]; } *a = arg;
  tn_callable callable;
  tn_tensor *out = NULL;
  tn_status st =
      tn_session_make_callable(a->t->session, NULL, joined_names, 4, joined_fetch, 1, NULL, 0, &callable, NULL);
  if (st != TN_OK) return st;
  st = tn_session_run_callable(a->t->session, callable, a->in, 4, &out, 1, NULL, NULL);
  tn_tensor_unref(out);
  tn_session_release_callable(a->t->session, callable, NULL);
  return st;
}

static void elementwise__joins_survive_lack_of_memory(void)
{
  static const parts whole = { { 3, { 1, 3, 4 } }, { 3, { 1, 3, 1 } }, { 3, { 1, 3, 5 } }, { 3, { 20, 1, 10 } } };
  ts t;
  open_joined(&t, 2, false);
  struct { ts *t; tn_tensor *in[4]; } a = { &t, { NULL } };
  make_joined(&whole, a.in);
  tn_test_oom_sweep(compile_joined, &a);
  for (int i = 0; i < 4; i++) tn_tensor_unref(a.in[i]);
  ts_fini(&t);
}

TAP_MAIN(
  TAP_TEST(elementwise__keeps_every_bit),
  TAP_TEST(elementwise__a_chain_is_one_instruction),
  TAP_TEST(elementwise__smaller_results_and_integers_are_kept),
  TAP_TEST(elementwise__products_take_precedence),
  TAP_TEST(elementwise__control_edges_are_kept),
  TAP_TEST(elementwise__any_operand_may_be_the_largest),
  TAP_TEST(elementwise__errors_name_incompatible_shapes),
  TAP_TEST(elementwise__a_bias_must_be_a_vector),
  TAP_TEST(elementwise__concatenations_are_read_in_parts),
  TAP_TEST(elementwise__joined_parts_have_the_same_bits),
  TAP_TEST(elementwise__errors_name_mismatched_parts),
  TAP_TEST(elementwise__malformed_programs_are_rejected),
  TAP_TEST(elementwise__malformed_joins_are_rejected),
  TAP_TEST(elementwise__joins_survive_lack_of_memory),
  TAP_TEST(elementwise__survives_lack_of_memory))
