/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that move elements: where their sizes come from, their errors, and lack of memory. The
 * recorded cases (tests/oracle) check that the right elements arrive. */
#include <stdio.h>

#include "conformance/support/session_kit.h"

static tn_output ints(tn_graph *graph, const char *name, int64_t n, const int32_t *values)
{
  tn_tensor *t = NULL;
  tn_error err = TN_ERROR_INIT;
  REQUIRE_OK(tn_tensor_from_data(TN_INT32, &n, n == 0 ? 0 : 1, values, (size_t)(n == 0 ? 1 : n) * 4, &t, &err), &err);
  tn_output out = ts_const_tensor(graph, name, t);
  tn_tensor_unref(t);
  return out;
}

/* A matrix of paddings. */
static tn_output paddings(tn_graph *graph, const char *name, int64_t rows, const int32_t *values)
{
  tn_tensor *t = NULL;
  tn_error err = TN_ERROR_INIT;
  int64_t dims[] = { rows, 2 };
  REQUIRE_OK(tn_tensor_from_data(TN_INT32, dims, 2, values, (size_t)rows * 8, &t, &err), &err);
  tn_output out = ts_const_tensor(graph, name, t);
  tn_tensor_unref(t);
  return out;
}

static tn_output finish(tn_operation_builder *b)
{
  tn_operation *op = NULL;
  tn_error err = TN_ERROR_INIT;
  REQUIRE_OK(tn_operation_finish(b, &op, &err), &err);
  return (tn_output){ op, 0 };
}

/* An op whose inputs are a list and, for ConcatV2, an axis. */
static tn_output join(tn_graph *graph, const char *op, const char *name, const tn_output *list, size_t n,
                      const tn_output *axis)
{
  tn_operation_builder *b = tn_operation_begin(graph, op, name, 0);
  tn_operation_add_input_list(b, list, n);
  if (axis != NULL) tn_operation_add_input(b, *axis);
  return finish(b);
}

static tn_output op3(tn_graph *graph, const char *op, const char *name, tn_output x, tn_output y, tn_output z)
{
  tn_operation_builder *b = tn_operation_begin(graph, op, name, 0);
  tn_operation_add_input(b, x);
  tn_operation_add_input(b, y);
  tn_operation_add_input(b, z);
  return finish(b);
}

/* x[begin:end], or a single element if end is begin + 1. */
static tn_output pick(tn_graph *graph, const char *name, tn_output x, int32_t at)
{
  char text[3][32];
  static const char *const ends[] = { "begin", "end", "step" };
  for (int k = 0; k < 3; k++) snprintf(text[k], sizeof text[k], "%s_%s", name, ends[k]);
  tn_operation_builder *b = tn_operation_begin(graph, "StridedSlice", name, 0);
  tn_operation_add_input(b, x);
  tn_operation_add_input(b, ints(graph, text[0], 1, (int32_t[]){ at }));
  tn_operation_add_input(b, ints(graph, text[1], 1, (int32_t[]){ at + 1 }));
  tn_operation_add_input(b, ints(graph, text[2], 1, (int32_t[]){ 1 }));
  tn_operation_set_int(b, "shrink_axis_mask", 1);
  return finish(b);
}

/* ---- shapes that depend on values ---- */

#define MANY 40

/* The axis is the input after forty tensors, and its value is fed. */
static void move__an_axis_after_many_tensors_may_be_fed(void)
{
  FOR_LEVELS(level)
  {
    ts t;
    static const char *const feeds[] = { "x", "axis" }, *const fetches[] = { "all" };
    ts_init(&t, level);
    tn_output x = ts_placeholder(t.graph, "x", TN_FLOAT), axis = ts_placeholder(t.graph, "axis", TN_INT32);
    tn_output list[MANY];
    for (int i = 0; i < MANY; i++) list[i] = x;
    join(t.graph, "ConcatV2", "all", list, MANY, &axis);
    ts_start(&t);
    for (int32_t a = -2; a < 2; a++) {
      tn_tensor *in[2] = { ts_filled(2, (int64_t[]){ 2, 3 }, 7), NULL }, *out = NULL;
      REQUIRE_OK(tn_tensor_from_data(TN_INT32, NULL, 0, &a, 4, &in[1], &t.err), &t.err);
      REQUIRE_OK(tn_session_run(t.session, NULL, feeds, in, 2, fetches, &out, 1, NULL, 0, NULL, &t.err), &t.err);
      CHECK_INT(tn_tensor_dims(out)[0], a % 2 == 0 ? 2 * MANY : 2);
      CHECK_INT(tn_tensor_dims(out)[1], a % 2 == 0 ? 3 : 3 * MANY);
      for (int i = 0; i < 2; i++) tn_tensor_unref(in[i]);
      tn_tensor_unref(out);
    }
    ts_fini(&t);
  }
}

/* "[2,?]", "?" for an unknown rank */
static const char *shape_of(tn_output out, char *text, size_t room)
{
  int64_t dims[TN_MAX_RANK];
  int32_t rank;
  if (tn_output_shape(out, dims, TN_MAX_RANK, &rank, NULL) != TN_OK) return "error";
  if (rank < 0) return "?";
  size_t at = (size_t)snprintf(text, room, "[");
  for (int32_t i = 0; i < rank; i++) {
    const char *comma = i > 0 ? "," : "";
    at += (size_t)(dims[i] < 0 ? snprintf(text + at, room - at, "%s?", comma)
                               : snprintf(text + at, room - at, "%s%lld", comma, (long long)dims[i]));
  }
  snprintf(text + at, room - at, "]");
  return text;
}

#define CHECK_SHAPE(out, wanted) CHECK_STR(shape_of(out, text, sizeof text), wanted)

static void move__moved_sizes_remain_sizes(void)
{
  ts t;
  char text[160];
  ts_init(&t, 0);
  tn_graph *g = t.graph;
  tn_output x = ts_placeholder(g, "x", TN_FLOAT), y = ts_placeholder(g, "y", TN_FLOAT);
  REQUIRE_OK(tn_graph_set_shape(x, (int64_t[]){ -1, 4, 6 }, 3, &t.err), &t.err);
  tn_output shape = ts_op1(g, "Shape", "shape", x), zero = ints(g, "zero", 0, (int32_t[]){ 0 });
  tn_output rows = pick(g, "rows", shape, 0), last = pick(g, "last", shape, -1);
  tn_output packed =
      join(g, "Pack", "packed", (tn_output[]){ rows, ints(g, "four", 0, (int32_t[]){ 4 }), last }, 3, NULL);
  CHECK_SHAPE(ts_op2(g, "Reshape", "r1", y, packed), "[?,4,6]");
  tn_output tail =
      op3(g, "Slice", "tail", shape, ints(g, "one", 1, (int32_t[]){ 1 }), ints(g, "rest", 1, (int32_t[]){ -1 }));
  CHECK_SHAPE(tail, "[2]");
  tn_output joined = join(g, "ConcatV2", "joined", (tn_output[]){ tail, shape }, 2, &zero);
  CHECK_SHAPE(ts_op2(g, "Reshape", "r2", y, joined), "[4,6,?,4,6]");
  CHECK_SHAPE(ts_op2(g, "BroadcastTo", "b", y, joined), "[4,6,?,4,6]");
  CHECK_SHAPE(ts_op2(g, "Tile", "tile", x, ints(g, "times", 3, (int32_t[]){ 2, 3, 0 })), "[?,12,0]");
  CHECK_SHAPE(ts_op2(g, "Pad", "pad", x, paddings(g, "p", 3, (int32_t[]){ 0, 1, 1, 1, 0, 0 })), "[?,6,6]");
  CHECK_SHAPE(pick(g, "one_of", x, 2), "[4,6]");
  ts_fini(&t);
}

/* ---- refusals ---- */

static void move__errors_name_inputs_that_do_not_fit(void)
{
  ts t;
  static const char *const names[] = { "x", "y" };
  ts_init(&t, 1);
  tn_output list[] = { ts_placeholder(t.graph, "x", TN_FLOAT), ts_placeholder(t.graph, "y", TN_FLOAT) };
  tn_output zero = ints(t.graph, "zero", 0, (int32_t[]){ 0 });
  join(t.graph, "ConcatV2", "joined", list, 2, &zero);
  join(t.graph, "Pack", "packed", list, 2, NULL);
  ts_start(&t);
  tn_tensor *in[2] = { ts_filled(2, (int64_t[]){ 2, 3 }, 1), ts_filled(2, (int64_t[]){ 3, 2 }, 1) }, *out = NULL;
  const char *fetch = "joined";
  CHECK_STATUS(tn_session_run(t.session, NULL, names, in, 2, &fetch, &out, 1, NULL, 0, NULL, &t.err),
               TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "input 1 has shape [3,2], wanted [?,3]");
  CHECK_STR(tn_error_node(&t.err), "joined");
  fetch = "packed";
  CHECK_STATUS(tn_session_run(t.session, NULL, names, in, 2, &fetch, &out, 1, NULL, 0, NULL, &t.err),
               TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "shapes [2,3] and [3,2]");
  CHECK_NULL(out);
  for (int i = 0; i < 2; i++) tn_tensor_unref(in[i]);
  ts_fini(&t);
}

/* ---- lack of memory ---- */

/* Strings, which own memory wherever they are moved: in [2] -> out */
static void build_strings(tn_graph *g)
{
  tn_output x = ts_placeholder(g, "in", TN_STRING), zero = ints(g, "zero", 0, (int32_t[]){ 0 });
  tn_output edge = paddings(g, "edge", 1, (int32_t[]){ 1, 1 });
  tn_output joined = join(g, "ConcatV2", "joined", (tn_output[]){ x, x }, 2, &zero);
  tn_output tiled = ts_op2(g, "Tile", "tiled", joined, ints(g, "twice", 1, (int32_t[]){ 2 }));
  tn_output padded = ts_op2(g, "Pad", "padded", tiled, edge);
  tn_operation_builder *b = tn_operation_begin(g, "MirrorPad", "mirrored", 0);
  tn_operation_add_input(b, padded);
  tn_operation_add_input(b, edge);
  tn_operation_set_string(b, "mode", "REFLECT", 7);
  tn_output mirrored = finish(b);
  b = tn_operation_begin(g, "Unpack", "parts", 0);
  tn_operation_add_input(b, mirrored);
  tn_operation_set_int(b, "num", 12);
  tn_output part = finish(b);
  join(g, "Pack", "out", (tn_output[]){ part, { part.op, 2 } }, 2, NULL);
}

typedef struct trial {
  ts *t;
  tn_tensor *in;
} trial;

static tn_status compile_and_run(void *arg)
{
  static const char *const feeds[] = { "in" }, *const fetches[] = { "out" };
  trial *x = arg;
  tn_callable callable;
  tn_tensor *out = NULL;
  tn_status st = tn_session_make_callable(x->t->session, NULL, feeds, 1, fetches, 1, NULL, 0, &callable, NULL);
  if (st != TN_OK) return st;
  st = tn_session_run_callable(x->t->session, callable, &x->in, 1, &out, 1, NULL, NULL);
  if (st == TN_OK) { /* the element past the edge mirrors the first element */
    const char *text[2];
    size_t length[2];
    for (int i = 0; i < 2; i++) CHECK_OK(tn_tensor_get_string(out, i, &text[i], &length[i], NULL), NULL);
    CHECK_INT(length[0], 31);
    CHECK_STR(text[0], "a text that needs its own bytes");
    CHECK_STR(text[1], text[0]);
  }
  tn_tensor_unref(out);
  tn_session_release_callable(x->t->session, callable, NULL);
  return st;
}

static void move__strings_survive_lack_of_memory(void)
{
  ts t;
  static const char *const texts[] = { "a text that needs its own bytes", "another that needs its own bytes" };
  trial x = { &t, NULL };
  ts_init(&t, 0);
  build_strings(t.graph);
  ts_start(&t);
  REQUIRE_OK(tn_tensor_from_strings((int64_t[]){ 2 }, 1, texts, NULL, &x.in, &t.err), &t.err);
  tn_test_oom_sweep(compile_and_run, &x);
  tn_tensor_unref(x.in);
  ts_fini(&t);
}

TAP_MAIN(
  TAP_TEST(move__an_axis_after_many_tensors_may_be_fed),
  TAP_TEST(move__moved_sizes_remain_sizes),
  TAP_TEST(move__errors_name_inputs_that_do_not_fit),
  TAP_TEST(move__strings_survive_lack_of_memory))
