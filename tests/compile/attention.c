/* SPDX-License-Identifier: Apache-2.0 */
/* Attention in the forms that exporters write becomes one node, whose results are those of level 0. */
#include <math.h>
#include <string.h>

#include "conformance/support/plan_kit.h"

#define FEED(name, dims) \
  NODE(name, "Placeholder", "", TYPE("dtype", "DT_FLOAT") "attr { key: 'shape' value { shape { " dims " } } }")
#define ANY4 D(-1) D(-1) D(-1) D(-1)
#define QKV FEED("q", ANY4) FEED("k", ANY4) FEED("v", ANY4) FEED("m", ANY4)
#define BINARY(name, op, x, y) NODE(name, op, "input: '" x "' input: '" y "'", F)
#define SOFTMAX(name, x) NODE(name, "Softmax", "input: '" x "'", F)
#define TURN(name, x, perm) NODE(name, "Transpose", "input: '" x "' input: '" perm "'", F TYPE("Tperm", "DT_INT32"))
#define TRUE(key) "attr { key: '" key "' value { b: true } }"
#define PRODUCT(name, x, y, more) NODE(name, "BatchMatMulV2", "input: '" x "' input: '" y "'", F more)
#define EINSUM(name, x, y, equation) \
  NODE(name, "Einsum", "input: '" x "' input: '" y "'", F INT("N", 2) TEXT("equation", equation))
#define PERMS INTS("heads", 4, "int_val: [0, 2, 1, 3]") INTS("across", 4, "int_val: [0, 2, 3, 1]")
#define SCALE SCALAR("eight", 8) SCALAR("part", 0.125)

/* [batch, length, heads, depth], a padding mask that is added, and back. */
#define KERAS                                                                                                 \
  QKV PERMS SCALE TURN("qt", "q", "heads") TURN("kt", "k", "heads") TURN("vt", "v", "heads")                  \
      PRODUCT("s", "qt", "kt", TRUE("adj_y")) BINARY("d", "RealDiv", "s", "eight")                            \
          BINARY("b", "AddV2", "d", "m") SOFTMAX("p", "b") PRODUCT("c", "p", "vt", "") TURN("y", "c", "heads")
/* The key is stored as columns. */
#define ONNX                                                                                             \
  QKV PERMS SCALE TURN("qt", "q", "heads") TURN("kt", "k", "across") TURN("vt", "v", "heads")            \
      BINARY("qs", "Mul", "qt", "part") PRODUCT("s", "qs", "kt", "") BINARY("b", "AddV2", "m", "s")      \
          SOFTMAX("p", "b") PRODUCT("c", "p", "vt", "") TURN("y", "c", "heads")
/* The query is the second operand of the scores. */
#define EINSUMS                                                                                   \
  QKV SCALE BINARY("qs", "Mul", "q", "part") EINSUM("s", "k", "qs", "aecd,abcd->acbe")            \
      BINARY("b", "AddV2", "s", "m") SOFTMAX("p", "b") EINSUM("y", "p", "v", "acbe,aecd->abcd")
/* GPT-2's: a mask of ones and zeros multiplies, and its complement is subtracted. */
#define GPT                                                                                            \
  QKV SCALE SCALAR("one", 1) SCALAR("large", 10000) PRODUCT("s", "q", "k", TRUE("adj_y"))              \
      BINARY("d", "Mul", "s", "part") BINARY("seen", "Mul", "d", "m") BINARY("not", "Sub", "one", "m") \
          BINARY("less", "Mul", "large", "not") BINARY("b", "Sub", "seen", "less") SOFTMAX("p", "b")   \
              PRODUCT("y", "p", "v", "")
/* A causal mask of the sizes of the scaled scores. */
#define I TYPE("T", "DT_INT32")
#define SIZE(name, at) NODE(name, "StridedSlice", "input: 'shape' input: '" at "' input: 'end" at "' input: 'step'", \
    I TYPE("Index", "DT_INT32") INT("shrink_axis_mask", 1))
#define RANGE(name, limit) NODE(name, "Range", "input: 'zero' input: '" limit "' input: 'unit'", \
    TYPE("Tidx", "DT_INT32"))
#define NUMBER(name, value) CONSTANT(name, "DT_INT32", "", "int_val: " value)
#define CAUSAL                                                                                                    \
  QKV SCALE INTS("row", 1, "int_val: -2") INTS("endrow", 1, "int_val: -1") INTS("column", 1, "int_val: 3")        \
      INTS("endcolumn", 1, "int_val: 4") INTS("step", 1, "int_val: 1") NUMBER("zero", "0") NUMBER("unit", "1")    \
          PRODUCT("s", "q", "k", TRUE("adj_y")) BINARY("d", "Mul", "s", "part")                                   \
              NODE("shape", "Shape", "input: 'd'", F)                                                             \
              SIZE("rows", "row") SIZE("columns", "column") RANGE("i", "rows") RANGE("j", "columns")              \
                  NODE("up", "ExpandDims", "input: 'i' input: 'unit'", I TYPE("Tdim", "DT_INT32"))                \
                      NODE("ge", "GreaterEqual", "input: 'up' input: 'j'", I)                                     \
                          NODE("seen", "Cast", "input: 'ge'", TYPE("SrcT", "DT_BOOL") TYPE("DstT", "DT_FLOAT"))   \
                              BINARY("c", "Mul", "d", "seen") BINARY("b", "AddV2", "c", "m") SOFTMAX("p", "b")    \
                                  PRODUCT("y", "p", "v", "")
/* The mask tells where scores are kept: where m is not negative. */
#define BOOLS(name, op, x, y) NODE(name, op, "input: '" x "' input: '" y "'", F)
#define CHOICE(name, op, mask, x, y) NODE(name, op, "input: '" mask "' input: '" x "' input: '" y "'", F)
#define SEEN SCALAR("none", 0) BOOLS("seen", "GreaterEqual", "m", "none")
#define SCORES SCALE PRODUCT("s", "q", "k", TRUE("adj_y")) BINARY("d", "RealDiv", "s", "eight")
#define WEIGHTED(scores) SOFTMAX("p", scores) PRODUCT("y", "p", "v", "")
#define SELECTED(other) QKV SEEN SCORES SCALAR("low", other) CHOICE("b", "SelectV2", "seen", "d", "low") WEIGHTED("b")
#define SELECTED_OLD QKV SEEN SCORES SCALAR("low", -1e9) BINARY("all", "Mul", "d", "none") \
    BINARY("lows", "AddV2", "all", "low") CHOICE("b", "Select", "seen", "d", "lows") WEIGHTED("b")
#define HIDDEN(other)                                                                           \
  QKV SEEN SCORES SCALAR("low", other) NODE("hidden", "LogicalNot", "input: 'seen'", "")        \
      CHOICE("b", "SelectV2", "hidden", "low", "d") WEIGHTED("b")
/* ones_like(scores) * -1e9 in its forms. */
#define LIKE_SCORES(fill)                                                                                    \
  QKV SEEN SCORES SCALAR("low", -1e9) SCALAR("unit", 1) fill BINARY("lows", "Mul", "ones", "low")            \
      CHOICE("b", "SelectV2", "seen", "d", "lows") WEIGHTED("b")
#define SELECTED_FILL \
  LIKE_SCORES(NODE("size", "Shape", "input: 'd'", F) NODE("ones", "Fill", "input: 'size' input: 'unit'", F))
#define SELECTED_ONES LIKE_SCORES(NODE("ones", "OnesLike", "input: 'd'", F))
#define SELECTED_ZEROS \
  LIKE_SCORES(NODE("zeros", "ZerosLike", "input: 'd'", F) BINARY("ones", "AddV2", "unit", "zeros"))
/* PyTorch's: the other value has the mask's shape, a bias follows, and query and key have a scale each. */
#define FILLED                                                                                                  \
  QKV SEEN SCALE SCALAR("root", 0.35) BINARY("qs", "Mul", "q", "root") BINARY("ks", "Mul", "k", "root")         \
      PRODUCT("s", "qs", "ks", TRUE("adj_y")) SCALAR("low", -3.4e38) BINARY("zeros", "Mul", "m", "none")        \
          BINARY("lows", "AddV2", "zeros", "low") CHOICE("b", "SelectV2", "seen", "s", "lows")                  \
              BINARY("c", "AddV2", "b", "m") WEIGHTED("c")
#define BANDED                                                                                                  \
  QKV SCORES SCALAR("low", -1e9) INTS("minus", 1, "int_val: -1") NUMBER("lower", "-1") NUMBER("upper", "0")     \
      BOOLS("any", "Equal", "m", "m")                                                                           \
          NODE("band", "MatrixBandPart", "input: 'any' input: 'lower' input: 'upper'",                          \
               TYPE("T", "DT_BOOL") TYPE("Tindex", "DT_INT32"))                                                 \
              CHOICE("b", "SelectV2", "band", "d", "low") WEIGHTED("b")
#define ALONG(name, op, x) \
  NODE(name, op, "input: '" x "' input: 'last'", F TYPE("Tidx", "DT_INT32") TRUE("keep_dims"))
#define BY_HAND(x)                                                                                              \
  INTS("last", 1, "int_val: -1") ALONG("most", "Max", x) BINARY("less", "Sub", x, "most")                       \
      NODE("e", "Exp", "input: 'less'", F) ALONG("sum", "Sum", "e")
#define WRITTEN_OUT \
  QKV SCORES BINARY("b", "AddV2", "d", "m") BY_HAND("b") BINARY("p", "RealDiv", "e", "sum") PRODUCT("y", "p", "v", "")
#define WRITTEN_OUT_INVERSE                                                                            \
  QKV SCORES BINARY("b", "AddV2", "d", "m") BY_HAND("b") NODE("i", "Reciprocal", "input: 'sum'", F)    \
      BINARY("p", "Mul", "i", "e") PRODUCT("y", "p", "v", "")
/* Keys and values have a third of the heads, at dimension 1. */
#define SIZES(name, x) NODE(name, "Shape", "input: '" x "'", F TYPE("out_type", "DT_INT32"))
#define PART(name, x, from, to, masks) \
  NODE(name, "StridedSlice", "input: '" x "' input: '" from "' input: '" to "' input: 'step'",                     \
       I TYPE("Index", "DT_INT32") masks)
#define STEPS_OF_SIZES                                                                                             \
  INTS("step", 1, "int_val: 1") INTS("at0", 1, "int_val: 0") INTS("at1", 1, "int_val: 1")                          \
      INTS("at2", 1, "int_val: 2") INTS("at3", 1, "int_val: 3") NUMBER("two", "2") NUMBER("three", "3")            \
          NUMBER("six", "6") NUMBER("zero", "0")
#define FEWER FEED("q", ANY4) FEED("m", ANY4) FEED("k", D(-1) D(2) D(-1) D(16)) FEED("v", D(-1) D(2) D(-1) D(16))
#define WIDENED(x) NODE(x "1", "ExpandDims", "input: '" x "' input: 'two'", F TYPE("Tdim", "DT_INT32"))
#define REST_OF(k, v) \
  PRODUCT("s", "q", k, TRUE("adj_y")) BINARY("b", "AddV2", "s", "m") SOFTMAX("p", "b") PRODUCT("y", "p", v, "")
/* tf.repeat: Tile, and a shape with -1. */
#define TILED_ONE(x)                                                                                               \
  WIDENED(x) NODE(x "2", "Tile", "input: '" x "1' input: 'times'", F TYPE("Tmultiples", "DT_INT32"))               \
      SIZES(x "s", x) PART(x "a", x "s", "at0", "at1", INT("begin_mask", 1))                                       \
          PART(x "z", x "s", "at2", "at0", INT("end_mask", 1))                                                     \
              NODE(x "w", "ConcatV2", "input: '" x "a' input: 'open' input: '" x "z' input: 'zero'",               \
                   I INT("N", 3) TYPE("Tidx", "DT_INT32"))                                                         \
                  NODE(x "r", "Reshape", "input: '" x "2' input: '" x "w'", F TYPE("Tshape", "DT_INT32"))
#define TILED \
  FEWER STEPS_OF_SIZES INTS("times", 5, "int_val: [1, 1, 3, 1, 1]") INTS("open", 1, "int_val: -1") TILED_ONE("k")  \
      TILED_ONE("v") REST_OF("kr", "vr")
/* The layer of Llama in Keras and Transformers: BroadcastTo and Reshape to sizes that are read one by one. */
#define PACKED(name, n, list) NODE(name, "Pack", list, I INT("N", n))
#define SPREAD_ONE(x)                                                                                              \
  WIDENED(x) SIZES(x "s", x) PART(x "b", x "s", "at0", "at1", INT("shrink_axis_mask", 1))                          \
      PART(x "l", x "s", "at2", "at3", INT("shrink_axis_mask", 1)) NUMBER(x "d", "16")                              \
          PACKED(x "t", 5, "input: '" x "b' input: 'two' input: 'three' input: '" x "l' input: '" x "d'")          \
              NODE(x "2", "BroadcastTo", "input: '" x "1' input: '" x "t'", F TYPE("Tidx", "DT_INT32"))            \
                  PACKED(x "w", 4, "input: '" x "b' input: 'six' input: '" x "l' input: '" x "d'")                 \
                      NODE(x "r", "Reshape", "input: '" x "2' input: '" x "w'", F TYPE("Tshape", "DT_INT32"))
#define SPREAD FEWER STEPS_OF_SIZES SPREAD_ONE("k") SPREAD_ONE("v") REST_OF("kr", "vr")
/* The same, but heads alternate: the new dimension is before that of the heads. */
#define ALTERNATING                                                                                                \
  FEWER STEPS_OF_SIZES INTS("times", 5, "int_val: [1, 3, 1, 1, 1]") INTS("all", 4, "int_val: [-1, 6, 7, 16]")       \
      NODE("k1", "ExpandDims", "input: 'k' input: 'at1'", F TYPE("Tdim", "DT_INT32"))                              \
          NODE("v1", "ExpandDims", "input: 'v' input: 'at1'", F TYPE("Tdim", "DT_INT32"))                          \
              NODE("k2", "Tile", "input: 'k1' input: 'times'", F TYPE("Tmultiples", "DT_INT32"))                   \
                  NODE("v2", "Tile", "input: 'v1' input: 'times'", F TYPE("Tmultiples", "DT_INT32"))               \
                      NODE("kr", "Reshape", "input: 'k2' input: 'all'", F TYPE("Tshape", "DT_INT32"))              \
                          NODE("vr", "Reshape", "input: 'v2' input: 'all'", F TYPE("Tshape", "DT_INT32"))          \
                              REST_OF("kr", "vr")

#define PLAIN QKV PRODUCT("s", "q", "k", TRUE("adj_y")) SOFTMAX("p", "s") PRODUCT("y", "p", "v", "")

/* Sizes in the order [batch, heads, length, depth]; keys have a length of their own. */
typedef struct sizes {
  int64_t batch, heads, rows, keys, depth;
} sizes;

typedef struct feeds {
  tn_tensor *t[4];
} feeds;

static float number(int64_t i) { return (float)((i * 7919) % 211 - 105) / 60; }

static tn_tensor *make(const int64_t *dims, int64_t seed)
{
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, dims, 4, &t, NULL), NULL);
  for (int64_t i = 0; i < tn_tensor_elements(t); i++) ((float *)tn_tensor_data(t))[i] = number(i * 3 + seed);
  return t;
}

/* inner: heads come after the length. */
static feeds make_feeds(const sizes *z, bool inner, const int64_t *mask)
{
  feeds f;
  for (int i = 0; i < 3; i++) {
    const int64_t length = i == 0 ? z->rows : z->keys;
    const int64_t dims[] = { z->batch, inner ? length : z->heads, inner ? z->heads : length, z->depth };
    f.t[i] = make(dims, i);
  }
  f.t[3] = make(mask, 5);
  return f;
}

static void drop(feeds *f)
{
  for (int i = 0; i < 4; i++) tn_tensor_unref(f->t[i]);
}

static tn_tensor *run(ts *t, const feeds *f)
{
  static const char *const names[] = { "q:0", "k:0", "v:0", "m:0" };
  const char *fetch = "y:0";
  tn_tensor *y = NULL;
  CHECK_OK(tn_session_run(t->session, NULL, names, (tn_tensor *const *)f->t, 4, &fetch, &y, 1, NULL, 0, NULL, &t->err),
           &t->err);
  return y;
}

/* Equal up to rounding; NaN where the other one has it. */
static void compare(const tn_tensor *wanted, const tn_tensor *found)
{
  REQUIRE(wanted != NULL && found != NULL && tn_tensor_bytes(wanted) == tn_tensor_bytes(found));
  for (int32_t d = 0; d < 4; d++) CHECK_INT(tn_tensor_dims(found)[d], tn_tensor_dims(wanted)[d]);
  for (int64_t i = 0; i < tn_tensor_elements(wanted); i++) {
    double a = (double)((float *)tn_tensor_data(wanted))[i], b = (double)((float *)tn_tensor_data(found))[i];
    CHECK_MSG(fabs(a - b) <= 1e-5 * (1 + fabs(a)) || a == b || (isnan(a) && isnan(b)),
              "element %d: %.9g at level 0, %.9g at level 1", (int)i, a, b);
  }
}

static void check_feeds(const char *text, const feeds *f)
{
  ts plain, t;
  tp_open(&plain, text, 0, "");
  tp_open(&t, text, 1, "");
  tn_tensor *wanted = run(&plain, f), *found = run(&t, f);
  compare(wanted, found);
  tn_tensor_unref(wanted);
  tn_tensor_unref(found);
  ts_fini(&plain);
  ts_fini(&t);
}

static void check_sizes(const char *text, sizes z, bool inner)
{
  const int64_t masks[][4] = { { z.batch, 1, 1, z.keys }, { 1, 1, z.rows, z.keys }, { z.batch, z.heads, z.rows, 1 } };
  for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++) {
    feeds f = make_feeds(&z, inner, masks[i]);
    check_feeds(text, &f);
    drop(&f);
  }
}

/* Lengths around the sizes of blocks. */
static void check_form(const char *text, bool inner)
{
  static const sizes all[] = {
    { 1, 1, 1, 1, 1 },   { 2, 3, 5, 7, 4 },    { 1, 2, 16, 16, 8 },  { 1, 1, 33, 40, 64 },
    { 2, 1, 70, 33, 5 }, { 1, 1, 17, 257, 9 }, { 1, 1, 3, 600, 16 }, { 1, 2, 100, 100, 20 },
    { 1, 2, 1, 50, 16 }, { 2, 1, 2, 300, 32 },
  };
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) check_sizes(text, all[i], inner);
}

/* Rewrites that need kernels of the CPU are not applied for a runtime with devices. */
static bool on_device(void) { return strncmp(ts_runtime(), "gpu", 3) == 0; }

static void check_plan(const char *text, const char *disabled, int nodes, int transposes)
{
  static const char *const names[] = { "q:0", "k:0", "v:0", "m:0" };
  const char *fetch = "y:0";
  ts t;
  tn_plan_report *r = NULL;
  if (on_device()) return;
  tp_open(&t, text, 1, disabled);
  REQUIRE_OK(tn_session_plan_report(t.session, names, 4, &fetch, 1, NULL, 0, &r, &t.err), &t.err);
  CHECK_INT(tp_calls(r, "_TnAttention"), nodes);
  CHECK_INT(tp_calls(r, "Transpose"), transposes);
  tn_plan_report_release(r);
  ts_fini(&t);
}

static void attention__of_transposed_heads(void)
{
  check_plan(KERAS, "", 1, 0);
  check_form(KERAS, true);
}

static void attention__with_keys_as_columns(void)
{
  check_plan(ONNX, "", 1, 0);
  check_form(ONNX, true);
}

static void attention__of_einsums(void)
{
  check_plan(EINSUMS, "", 1, 0);
  check_form(EINSUMS, true);
}

static void attention__with_a_mask_that_multiplies(void)
{
  check_plan(GPT, "", 1, 0);
  check_form(GPT, false);
}

static void attention__with_a_mask_of_the_scores_sizes(void)
{
  check_plan(CAUSAL, "", 1, 0);
  check_form(CAUSAL, false);
}

static void attention__can_be_disabled(void) { check_plan(KERAS, "attention", 0, 4); }

/* Something else reads the scores, or the softmax. */
static void attention__is_left_if_parts_are_read_elsewhere(void)
{
  check_plan(QKV PRODUCT("s", "q", "k", TRUE("adj_y")) SOFTMAX("p", "s") PRODUCT("c", "p", "v", "")
                 NODE("a", "Mean", "input: 'p' input: 'i'", F TYPE("Tidx", "DT_INT32")) INTS("i", 1, "int_val: 0")
                     BINARY("y", "AddV2", "c", "a"),
             "", 0, 0);
  check_plan(QKV PRODUCT("s", "q", "k", TRUE("adj_y")) SOFTMAX("p", "s") PRODUCT("c", "p", "v", "")
                 NODE("a", "Mean", "input: 's' input: 'i'", F TYPE("Tidx", "DT_INT32")) INTS("i", 1, "int_val: 0")
                     BINARY("y", "AddV2", "c", "a"),
             "", 0, 0);
}

/* Operands and mask have batches, heads, rows and keys that the others lack. */
static void attention__broadcasts_as_its_steps_do(void)
{
  static const int64_t all[][4][4] = {
    { { 1, 3, 4, 6 }, { 1, 1, 5, 6 }, { 1, 3, 5, 6 }, { 2, 1, 4, 5 } },
    { { 2, 1, 1, 6 }, { 1, 3, 5, 6 }, { 1, 1, 5, 7 }, { 1, 1, 4, 5 } },
    { { 1, 1, 4, 6 }, { 1, 1, 1, 6 }, { 2, 1, 5, 2 }, { 1, 3, 1, 5 } },
  };
  for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
    feeds f;
    for (int i = 0; i < 4; i++) f.t[i] = make(all[k][i], i);
    check_feeds(GPT, &f);
    drop(&f);
  }
}

static void attention__of_nothing(void)
{
  static const sizes all[] = { { 0, 2, 3, 4, 5 }, { 1, 2, 0, 4, 5 }, { 1, 2, 3, 0, 5 }, { 1, 2, 3, 4, 0 } };
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    check_sizes(GPT, all[i], false);
    check_sizes(SELECTED(-1e9), all[i], false);
    check_sizes(WRITTEN_OUT, all[i], false);
  }
}

/* Scores of +-infinity, NaN in each operand, and rows that see nothing. */
static void attention__keeps_infinities_and_nan(void)
{
  const sizes z = { 1, 2, 20, 300, 8 };
  const int64_t mask[] = { 1, 1, 20, 300 };
  static const float odd[] = { INFINITY, -INFINITY, NAN, 3e38f, -1e9f };
  for (size_t k = 0; k < sizeof odd / sizeof odd[0]; k++)
    for (int operand = 0; operand < 4; operand++) {
      feeds f = make_feeds(&z, false, mask);
      float *to = tn_tensor_data(f.t[operand]);
      to[0] = to[37] = odd[k];
      for (int i = 0; operand == 3 && i < 300; i++) to[600 + i] = odd[k];       /* a whole row */
      for (int i = 0; operand == 3 && i < 280; i++) to[1200 + i] = odd[k];      /* more than a block of keys */
      for (int i = 290; operand == 3 && i < 300; i++) to[1500 + i] = odd[k];
      check_feeds(QKV PRODUCT("s", "q", "k", TRUE("adj_y")) BINARY("b", "AddV2", "s", "m") SOFTMAX("p", "b")
                      PRODUCT("y", "p", "v", ""), &f);
      drop(&f);
    }
}

static void attention__with_a_mask_that_selects(void)
{
  static const char *const forms[] = { SELECTED(-1e9), SELECTED(-inf), HIDDEN(-inf), HIDDEN(-1e9), FILLED, BANDED,
                                       SELECTED_FILL, SELECTED_ONES, SELECTED_ZEROS };
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    check_plan(forms[i], "", 1, 0);
    check_form(forms[i], false);
  }
}

/* The mask has the scores' shape, as Select demands; there are rows that see nothing. */
static void attention__with_the_older_select(void)
{
  static const sizes all[] = { { 2, 3, 5, 7, 4 }, { 1, 2, 40, 70, 16 }, { 1, 1, 1, 1, 1 }, { 1, 2, 1, 50, 16 } };
  check_plan(SELECTED_OLD, "", 0, 0); /* the scores are read twice */
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    const int64_t mask[] = { all[i].batch, all[i].heads, all[i].rows, all[i].keys };
    feeds f = make_feeds(&all[i], false, mask);
    float *m = tn_tensor_data(f.t[3]);
    for (int64_t k = 0; k < 2 * all[i].keys && k < tn_tensor_elements(f.t[3]); k++) m[k] = -1;
    check_feeds(QKV SEEN SCORES SCALAR("low", -1e9) NODE("lows", "ZerosLike", "input: 'm'", F)
                    BINARY("l", "AddV2", "lows", "low") CHOICE("b", "Select", "seen", "d", "l") WEIGHTED("b"), &f);
    check_feeds(SELECTED(-1e9), &f);
    check_feeds(HIDDEN(-inf), &f);
    drop(&f);
  }
  check_plan(QKV SEEN SCORES SCALAR("low", -1e9) NODE("lows", "ZerosLike", "input: 'm'", F)
                 BINARY("l", "AddV2", "lows", "low") CHOICE("b", "Select", "seen", "d", "l") WEIGHTED("b"), "", 1, 0);
}

static void attention__with_a_softmax_of_steps(void)
{
  check_plan(WRITTEN_OUT, "", 1, 0);
  check_plan(WRITTEN_OUT, "norm", 0, 0);
  check_form(WRITTEN_OUT, false);
  check_plan(WRITTEN_OUT_INVERSE, "", 1, 0);
  check_form(WRITTEN_OUT_INVERSE, false);
}

/* Six heads of the query, two of keys and values. */
static void check_shared(const char *text, int64_t keys)
{
  const int64_t rows[] = { 1, 2, 5, 33 };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const int64_t mask[] = { 1, 1, rows[i], keys }, few[] = { 3, 2, keys, 16 };
    feeds f = make_feeds(&(sizes){ 3, 6, rows[i], keys, 16 }, false, mask);
    for (int k = 1; k < 3; k++) {
      tn_tensor_unref(f.t[k]);
      f.t[k] = make(few, k);
    }
    check_feeds(text, &f);
    drop(&f);
  }
}

static int count_of(const char *text, const char *op)
{
  static const char *const names[] = { "q:0", "k:0", "v:0", "m:0" };
  const char *fetch = "y:0";
  ts t;
  tn_plan_report *r = NULL;
  tp_open(&t, text, 1, "");
  REQUIRE_OK(tn_session_plan_report(t.session, names, 4, &fetch, 1, NULL, 0, &r, &t.err), &t.err);
  const int n = tp_calls(r, op);
  tn_plan_report_release(r);
  ts_fini(&t);
  return n;
}

static void attention__with_shared_heads(void)
{
  check_shared(TILED, 7);
  check_shared(SPREAD, 1);
  check_shared(SPREAD, 70);
  check_shared(ALTERNATING, 7);
  if (on_device()) return;
  CHECK_INT(count_of(TILED, "_TnAttention"), 1);
  CHECK_INT(count_of(TILED, "Tile"), 0);
  CHECK_INT(count_of(SPREAD, "_TnAttention"), 1);
  CHECK_INT(count_of(SPREAD, "BroadcastTo"), 0);
  CHECK_INT(count_of(ALTERNATING, "_TnAttention"), 1);
  CHECK_INT(count_of(ALTERNATING, "Tile"), 2);
}

static void attention__without_steps(void)
{
  check_plan(PLAIN, "", 1, 0);
  check_form(PLAIN, false);
}

TAP_MAIN(
  TAP_TEST(attention__of_transposed_heads),
  TAP_TEST(attention__with_keys_as_columns),
  TAP_TEST(attention__of_einsums),
  TAP_TEST(attention__with_a_mask_that_multiplies),
  TAP_TEST(attention__with_a_mask_of_the_scores_sizes),
  TAP_TEST(attention__with_a_mask_that_selects),
  TAP_TEST(attention__with_the_older_select),
  TAP_TEST(attention__with_a_softmax_of_steps),
  TAP_TEST(attention__with_shared_heads),
  TAP_TEST(attention__without_steps),
  TAP_TEST(attention__can_be_disabled),
  TAP_TEST(attention__is_left_if_parts_are_read_elsewhere),
  TAP_TEST(attention__broadcasts_as_its_steps_do),
  TAP_TEST(attention__of_nothing),
  TAP_TEST(attention__keeps_infinities_and_nan))
