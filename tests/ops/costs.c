/* SPDX-License-Identifier: Apache-2.0 */
/* What ops cost on the shapes of a step, as its records state it (S-MD-07). */
#include <string.h>

#include <tenon/metadata.h>

#include "conformance/support/calls_kit.h"

#define MOST_FEEDS 4

/* A graph that is fed x0, x1, ... of these shapes and fetches "y"; the record of the op with this cost. */
typedef struct example {
  const char *op; /* in the record */
  int level;
  const char *graph;
  int64_t dims[MOST_FEEDS][4]; /* up to the first 0 */
  double flops, bytes;
} example;

#define X IN("x0", "DT_FLOAT")
#define XY X IN("x1", "DT_FLOAT")
#define XYZ XY IN("x2", "DT_FLOAT")
#define FLOATS T("DT_FLOAT")
#define FLAG(key) " attr { key: '" key "' value { b: true } }"
#define LIST(key, items) " attr { key: '" key "' value { list { i: " items " } } }"
#define WORD(key, text) " attr { key: '" key "' value { s: '" text "' } }"
#define INTS(name, n, values)                                                                               \
  NODE(name, "Const", "",                                                                                   \
       "attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' value { tensor { dtype: DT_INT32 " \
       "tensor_shape { dim { size: " n " } } int_val: " values " } } }")
#define UNARY_OP(op, attrs) X NODE("y", op, "input: 'x0'", FLOATS attrs)
#define BINARY_OP(op, attrs) XY NODE("y", op, "input: 'x0' input: 'x1'", FLOATS attrs)
#define CONV(op, inputs, stride, padding) \
  NODE("y", op, inputs, FLOATS LIST("strides", "[1, " stride ", " stride ", 1]") WORD("padding", padding))
#define ANY_SIZE "dim { size: -1 } "
#define IN4(name)                                                          \
  NODE(name, "Placeholder", "",                                            \
       "attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'shape' " \
       "value { shape { " ANY_SIZE ANY_SIZE ANY_SIZE ANY_SIZE "} } }")
#define ATTENTION                                                                                              \
  IN4("x0") IN4("x1") IN4("x2")                                                                                \
      NODE("s", "BatchMatMulV2", "input: 'x0' input: 'x1'", FLOATS FLAG("adj_y"))                              \
      NODE("p", "Softmax", "input: 's'", FLOATS) NODE("y", "BatchMatMulV2", "input: 'p' input: 'x2'", FLOATS)

static const example products[] = {
  { "MatMul", 0, BINARY_OP("MatMul", ""), { { 3, 4 }, { 4, 5 } }, 120, 4 * (12 + 20 + 15) },
  { "MatMul", 0, BINARY_OP("MatMul", FLAG("transpose_b")), { { 3, 4 }, { 5, 4 } }, 120, 4 * (12 + 20 + 15) },
  { "MatMul", 0, BINARY_OP("MatMul", FLAG("transpose_a")), { { 4, 3 }, { 4, 5 } }, 120, 4 * (12 + 20 + 15) },
  { "BatchMatMulV2", 0, BINARY_OP("BatchMatMulV2", ""), { { 2, 3, 4 }, { 4, 5 } }, 240, 4 * (24 + 20 + 30) },
  { "BatchMatMulV2", 0, BINARY_OP("BatchMatMulV2", FLAG("adj_x")), { { 2, 4, 3 }, { 2, 4, 5 } }, 240,
    4 * (24 + 40 + 30) },
  { "Einsum", 0, BINARY_OP("Einsum", WORD("equation", "bij,kj->bik") " attr { key: 'N' value { i: 2 } }"),
    { { 2, 3, 4 }, { 5, 4 } }, 240, 4 * (24 + 20 + 30) },
  { "Einsum", 0, UNARY_OP("Einsum", WORD("equation", "ij->j") " attr { key: 'N' value { i: 1 } }"), { { 3, 4 } }, 12,
    4 * (12 + 4) },
  { "_TnMatMul", 1, XYZ NODE("p", "MatMul", "input: 'x0' input: 'x1'", FLOATS)
      NODE("b", "BiasAdd", "input: 'p' input: 'x2'", FLOATS) NODE("y", "Relu", "input: 'b'", FLOATS),
    { { 3, 4 }, { 4, 5 }, { 5 } }, 120 + 2 * 15, 4 * (12 + 20 + 5 + 15) },
  { "_TnAttention", 1, ATTENTION, { { 1, 2, 3, 4 }, { 1, 2, 6, 4 }, { 1, 2, 6, 5 } }, 36 * (2 * 4 + 2 * 5 + 5),
    4 * (24 + 48 + 60 + 30) },
};

/* An image of 4 by 4 has 10 taps of 3 in each direction that are not padding. */
static const example windows[] = {
  { "Conv2D", 0, XY CONV("Conv2D", "input: 'x0' input: 'x1'", "1", "SAME"), { { 1, 4, 4, 2 }, { 3, 3, 2, 5 } }, 2000,
    4 * (32 + 90 + 80) },
  { "Conv2D", 0, XY CONV("Conv2D", "input: 'x0' input: 'x1'", "2", "VALID"), { { 1, 5, 5, 2 }, { 3, 3, 2, 5 } }, 720,
    4 * (50 + 90 + 20) },
  { "DepthwiseConv2dNative", 0, XY CONV("DepthwiseConv2dNative", "input: 'x0' input: 'x1'", "1", "SAME"),
    { { 1, 4, 4, 2 }, { 3, 3, 2, 3 } }, 1200, 4 * (32 + 54 + 96) },
  { "Conv2DBackpropInput", 0, XY INTS("sizes", "4", "[1, 4, 4, 2]")
      CONV("Conv2DBackpropInput", "input: 'sizes' input: 'x0' input: 'x1'", "1", "SAME"),
    { { 3, 3, 2, 5 }, { 1, 4, 4, 5 } }, 2000, 4 * (90 + 80 + 32) },
  { "Conv2DBackpropFilter", 0, XY INTS("sizes", "4", "[3, 3, 2, 5]")
      CONV("Conv2DBackpropFilter", "input: 'x0' input: 'sizes' input: 'x1'", "1", "SAME"),
    { { 1, 4, 4, 2 }, { 1, 4, 4, 5 } }, 2000, 4 * (32 + 80 + 90) },
  { "_TnConv2D", 1, XYZ NODE("c", "Conv2D", "input: 'x0' input: 'x1'",
                             FLOATS LIST("strides", "[1, 1, 1, 1]") WORD("padding", "SAME"))
      NODE("y", "BiasAdd", "input: 'c' input: 'x2'", FLOATS),
    { { 1, 4, 4, 2 }, { 3, 3, 2, 5 }, { 5 } }, 2000 + 80, 4 * (32 + 90 + 5 + 80) },
  { "MaxPool", 0, UNARY_OP("MaxPool", LIST("ksize", "[1, 2, 2, 1]") LIST("strides", "[1, 2, 2, 1]")
                           WORD("padding", "VALID")), { { 1, 4, 4, 2 } }, 32, 4 * (32 + 8) },
};

/* Only what is gathered is read; moving elements is no arithmetic. */
static const example others[] = {
  { "GatherV2", 0, X INTS("at", "3", "[5, 1, 5]") NODE("zero", "Const", "", INT_OF("0"))
      NODE("y", "GatherV2", "input: 'x0' input: 'at' input: 'zero'",
           "attr { key: 'Tparams' value { type: DT_FLOAT } } attr { key: 'Tindices' value { type: DT_INT32 } } "
           "attr { key: 'Taxis' value { type: DT_INT32 } }"), { { 100, 8 } }, 0, 2 * 4 * 24 + 3 * 4 + 4 },
  { "Transpose", 0, X INTS("perm", "2", "[1, 0]") NODE("y", "Transpose", "input: 'x0' input: 'perm'",
    FLOATS "attr { key: 'Tperm' value { type: DT_INT32 } }"), { { 3, 4 } }, 0, 4 * 24 + 8 },
  { "Softmax", 0, UNARY_OP("Softmax", ""), { { 3, 4 } }, 60, 4 * 24 },
  { "AddV2", 0, BINARY_OP("AddV2", ""), { { 3, 4 }, { 4 } }, 12, 4 * (12 + 4 + 12) },
  { "Shape", 0, UNARY_OP("Shape", ""), { { 3, 4 } }, 0, 2 * 4 },
};

static tn_node_record record_of(const tn_run_metadata *m, const char *op)
{
  tn_node_record r = { .struct_size = sizeof r };
  for (size_t i = 0; tn_run_metadata_record(m, i, &r, NULL) == TN_OK; i++)
    if (strcmp(r.op, op) == 0) return r;
  FAIL("no record of op '%s'", op);
  return r;
}

static void check_example(const example *e)
{
  static const char *const names[MOST_FEEDS] = { "x0", "x1", "x2", "x3" }, *const fetch = "y";
  ts t;
  tn_tensor *feeds[MOST_FEEDS] = { NULL }, *out = NULL;
  tn_run_metadata *m = NULL;
  tn_run_options options;
  size_t n = 0;
  ck_open(&t, e->level, e->graph);
  for (; n < MOST_FEEDS && e->dims[n][0] != 0; n++) {
    int32_t rank = 0;
    while (rank < 4 && e->dims[n][rank] != 0) rank++;
    feeds[n] = ts_filled(rank, e->dims[n], 0.5f);
  }
  tn_run_options_init(&options);
  options.trace_level = 1;
  REQUIRE_OK(tn_run_metadata_create(&m, &t.err), &t.err);
  REQUIRE_OK(tn_session_run(t.session, &options, names, feeds, n, &fetch, &out, 1, NULL, 0, m, &t.err), &t.err);
  tn_node_record r = record_of(m, e->op);
  CHECK_DOUBLE(r.flops, e->flops, 0);
  CHECK_INT(r.moved_bytes, e->bytes);
  tn_tensor_unref(out);
  for (size_t i = 0; i < n; i++) tn_tensor_unref(feeds[i]);
  tn_run_metadata_destroy(m);
  ts_fini(&t);
}

/* S-MD-07 */
static void costs__of_products(void)
{
  for (size_t i = 0; i < sizeof products / sizeof *products; i++) check_example(&products[i]);
}

/* S-MD-07 */
static void costs__of_windows_leave_out_the_padding(void)
{
  for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) check_example(&windows[i]);
}

/* S-MD-07 */
static void costs__of_what_moves_memory(void)
{
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) check_example(&others[i]);
}

/* S-MD-07: a call's nodes have records of their own. */
static void costs__of_a_call_are_those_of_its_nodes(void)
{
  static const example outer = { "PartitionedCall", 0, LIBRARY(TWICE) X CALL("y", "PartitionedCall", "Twice", "x0"),
                                 { { 3, 4 } }, 0, 0 };
  example inner = outer;
  inner.op = "AddV2";
  inner.flops = 12;
  inner.bytes = 4 * 36;
  check_example(&outer);
  check_example(&inner);
}

TAP_MAIN(TAP_TEST(costs__of_products), TAP_TEST(costs__of_windows_leave_out_the_padding),
         TAP_TEST(costs__of_what_moves_memory), TAP_TEST(costs__of_a_call_are_those_of_its_nodes))
