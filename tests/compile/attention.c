/* SPDX-License-Identifier: Apache-2.0 */
/* Attention in the forms that exporters write becomes one node, whose results are those of level 0. */
#include <math.h>

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
    { 2, 1, 70, 33, 5 }, { 1, 1, 17, 257, 9 }, { 1, 1, 3, 600, 16 }, { 1, 2, 100, 100, 20 }
  };
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) check_sizes(text, all[i], inner);
}

static void check_plan(const char *text, const char *disabled, int nodes, int transposes)
{
  static const char *const names[] = { "q:0", "k:0", "v:0", "m:0" };
  const char *fetch = "y:0";
  ts t;
  tn_plan_report *r = NULL;
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
  check_plan(ONNX, "", 1, 1); /* a scale is between the query and its transpose */
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
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) check_sizes(GPT, all[i], false);
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
  TAP_TEST(attention__without_steps),
  TAP_TEST(attention__can_be_disabled),
  TAP_TEST(attention__is_left_if_parts_are_read_elsewhere),
  TAP_TEST(attention__broadcasts_as_its_steps_do),
  TAP_TEST(attention__of_nothing),
  TAP_TEST(attention__keeps_infinities_and_nan))
