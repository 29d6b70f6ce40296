/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that reorder elements, and Einsum: partially known shapes, errors, more elements than in
 * recorded cases, and lack of memory. */
#include "conformance/support/op_kit.h"

#define IN(name, type, dims)                                                                    \
  NODE(name, "Placeholder", "", "attr { key: 'dtype' value { type: " type " } } attr { key: 'shape' value { shape { " \
       dims " } } }")
#define EQUATION(n, text) F INT("N", n) "attr { key: 'equation' value { s: '" text "' } }"

/* Feeds "x" and fetches one output. */
static tn_status run(ts *t, tn_tensor *x, const char *fetch, tn_tensor **out)
{
  static const char *const feeds[] = { "x:0" };
  tn_error_clear(&t->err);
  return tn_session_run(t->session, NULL, feeds, &x, 1, &fetch, out, 1, NULL, 0, NULL, &t->err);
}

/* 0, 1, 2, ... */
static tn_tensor *counted(const int64_t *dims, int32_t rank)
{
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, dims, rank, &t, NULL), NULL);
  for (int64_t i = 0; i < tn_tensor_elements(t); i++) ((float *)tn_tensor_data(t))[i] = (float)i;
  return t;
}

/* ---- shapes ---- */

#define SHAPES                                                                                                  \
  IN("x", "DT_FLOAT", D(4) D(-1) D(6)) ANY("y", "DT_FLOAT") ANY("i", "DT_INT32")                                \
  IN("m", "DT_FLOAT", D(6) D(5)) IN("q", "DT_FLOAT", D(-1) D(4) D(6) D(8))                                      \
  INTS("perm", D(3), "int_val: 2 int_val: 0 int_val: -2") INTS("blocks", D(2), "int_val: 2 int_val: 3")         \
  INTS("pads", D(2) D(2), "int_val: 1 int_val: 1 int_val: 0 int_val: 0")                                        \
  INTS("band", D(2), "int_val: -1 int_val: 2") INTS("pad", "", "int_val: 0")                                    \
  NODE("moved", "Transpose", "input: 'x' input: 'perm'", F)                                                     \
  NODE("moved_any", "Transpose", "input: 'y' input: 'perm'", F)                                                 \
  NODE("moved_by_any", "Transpose", "input: 'x' input: 'i'", F)                                                 \
  NODE("batches", "SpaceToBatchND", "input: 'q' input: 'blocks' input: 'pads'", F)                              \
  NODE("batches_any", "SpaceToBatchND", "input: 'x' input: 'blocks' input: 'i'", F)                               \
  NODE("deep", "SpaceToDepth", "input: 'q'", F INT("block_size", 2))                                            \
  NODE("part", "MatrixDiagPartV3", "input: 'm' input: 'band' input: 'y'", F)                                    \
  NODE("product", "Einsum", "input: 'x' input: 'm'", EQUATION(2, "...a,ab->b..."))                              \
  NODE("product_any", "Einsum", "input: 'y' input: 'm'", EQUATION(2, "...a,ab->b..."))                          \
  NODE("named", "Einsum", "input: 'y' input: 'm'", EQUATION(2, "cda,ab->bc"))

static void layout_ops__shapes_known_in_part_stay_known(void)
{
  ts t;
  ops_open_text(&t, SHAPES);
  CHECK_STR(ops_shape_of(&t, "moved", 0), "[6,4,?]");
  CHECK_STR(ops_shape_of(&t, "moved_any", 0), "[?,?,?]");
  CHECK_STR(ops_shape_of(&t, "moved_by_any", 0), "[?,?,?]");
  CHECK_STR(ops_shape_of(&t, "batches", 0), "[?,3,2,8]");
  CHECK_STR(ops_shape_of(&t, "batches_any", 0), "[24,?,?]");
  CHECK_STR(ops_shape_of(&t, "deep", 0), "[?,2,3,32]");
  CHECK_STR(ops_shape_of(&t, "part", 0), "[4,5]");
  CHECK_STR(ops_shape_of(&t, "product", 0), "[5,4,?]");
  CHECK_STR(ops_shape_of(&t, "product_any", 0), "?");
  CHECK_STR(ops_shape_of(&t, "named", 0), "[5,?]");
  ts_fini(&t);
}

/* ---- equations ---- */

#define FIFTY "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define MOST FIFTY FIFTY FIFTY FIFTY FIFTY "aaa" /* 253 */
#define SUM(name, text) NODE(name, "Einsum", "input: 'x'", EQUATION(1, text))

static void expect_error(ts *t, tn_tensor *x, const char *fetch, const char *text)
{
  tn_tensor *out = NULL;
  CHECK_INT(run(t, x, fetch, &out), TN_INVALID_ARGUMENT);
  CHECK(out == NULL);
  if (strstr(tn_error_message(&t->err), text) == NULL) CHECK_STR(tn_error_message(&t->err), text);
}

static void layout_ops__errors_explain_invalid_equations(void)
{
  ts t;
  ops_open_text(&t, ANY("x", "DT_FLOAT") SUM("labels", "a" MOST "a->a") SUM("rank", "a...->" MOST "...")
                    SUM("three", "abc->a") SUM("new", "ab->ac") SUM("square", "aa->a") SUM("lost", "a...->a"));
  tn_tensor *x = counted((const int64_t[]){ 2, 3 }, 2), *deep = counted((const int64_t[]){ 1, 1, 1 }, 3);
  expect_error(&t, x, "labels:0", "more than 254 labels");
  expect_error(&t, deep, "rank:0", "the output has more than 254 dimensions");
  expect_error(&t, x, "three:0", "input 0 has rank 2, the equation names 3 dimensions");
  expect_error(&t, x, "new:0", "label 'c' of the output is not in any input");
  expect_error(&t, x, "square:0", "input 0 has shape [2,3], whose dimension 1 should be 2");
  expect_error(&t, x, "lost:0", "'...' stands for 1 dimensions of an input, but is not in the output");
  tn_tensor_unref(x), tn_tensor_unref(deep);
  ts_fini(&t);
}

/* ---- more elements than in recorded cases ---- */

static void layout_ops__large_transposes_and_products_agree(void)
{
  ts t;
  const int64_t dims[] = { 200, 300 };
  ops_open_text(&t, ANY("x", "DT_FLOAT") INTS("perm", D(2), "int_val: 1 int_val: 0")
                    NODE("back", "Transpose", "input: 'x' input: 'perm'", F) SUM("same", "ab->ba")
                    NODE("dots", "Einsum", "input: 'x' input: 'back'", EQUATION(2, "ab,ba->a"))
                    NODE("squares", "Einsum", "input: 'x' input: 'x'", EQUATION(2, "ab,ab->ba"))
                    NODE("sums", "Einsum", "input: 'squares'", EQUATION(1, "ba->a")));
  tn_tensor *x = counted(dims, 2), *back = NULL, *same = NULL, *dots = NULL, *sums = NULL;
  REQUIRE_OK(run(&t, x, "back:0", &back), &t.err);
  REQUIRE_OK(run(&t, x, "same:0", &same), &t.err);
  REQUIRE_OK(run(&t, x, "dots:0", &dots), &t.err);
  REQUIRE_OK(run(&t, x, "sums:0", &sums), &t.err);
  bool right = true, near = true;
  const float *a = tn_tensor_data(back), *b = tn_tensor_data(dots), *c = tn_tensor_data(sums);
  for (int64_t i = 0; i < 300 * 200; i++) right = right && a[i] == (float)(i % 200 * 300 + i / 200);
  for (int64_t i = 0; i < 200; i++) near = near && b[i] - c[i] <= 1e-5f * c[i] && c[i] - b[i] <= 1e-5f * c[i];
  CHECK(right);
  CHECK(memcmp(a, tn_tensor_data(same), 300 * 200 * sizeof *a) == 0);
  CHECK(near && c[199] > 1e11f);
  tn_tensor_unref(x), tn_tensor_unref(back), tn_tensor_unref(same), tn_tensor_unref(dots), tn_tensor_unref(sums);
  ts_fini(&t);
}

/* ---- lack of memory ---- */

#define S TYPE("T", "DT_STRING")
#define WORDS                                                                                                  \
  NODE("words", "Const", "", TYPE("dtype", "DT_STRING") "attr { key: 'value' value { tensor { dtype: DT_STRING" \
       " tensor_shape { " D(2) D(2) " } string_val: 'a text too long for the element itself' string_val: 'b'"   \
       " string_val: 'another text that is rather long' string_val: '' } } }")
#define MANY                                                                                                       \
  ANY("x", "DT_FLOAT") WORDS INTS("perm", D(2), "int_val: 1 int_val: 0") INTS("one", D(1), "int_val: 1")           \
  NODE("w1", "Transpose", "input: 'words' input: 'perm'", S) NODE("w2", "ReverseV2", "input: 'w1' input: 'one'", S) \
  NODE("w3", "Roll", "input: 'w2' input: 'one' input: 'one'", S TYPE("Tshift", "DT_INT32") TYPE("Taxis", "DT_INT32")) \
  NODE("w4", "ReverseSequence", "input: 'w3' input: 'perm'", S TYPE("Tlen", "DT_INT32") INT("seq_dim", 1))         \
  NODE("x1", "Transpose", "input: 'x' input: 'perm'", F)                                                           \
  NODE("x2", "Einsum", "input: 'x' input: 'x1'", EQUATION(2, "ab,cd->bac")) SUM("x3", "aa->a")                \
  NODE("x4", "MatrixDiag", "input: 'x3'", F)

typedef struct trial {
  ts *t;
  tn_tensor *x;
} trial;

static tn_status compile_and_run(void *arg)
{
  static const char *const feeds[] = { "x:0" };
  static const char *const fetches[] = { "w4:0", "x2:0", "x4:0" };
  trial *a = arg;
  tn_callable callable;
  tn_tensor *out[3] = { NULL };
  tn_status st = tn_session_make_callable(a->t->session, NULL, feeds, 1, fetches, 3, NULL, 0, &callable, NULL);
  if (st != TN_OK) return st;
  st = tn_session_run_callable(a->t->session, callable, &a->x, 1, out, 3, NULL, NULL);
  if (st == TN_OK) CHECK_INT(tn_tensor_elements(out[1]), 27);
  for (int k = 0; k < 3; k++) tn_tensor_unref(out[k]);
  tn_session_release_callable(a->t->session, callable, NULL);
  return st;
}

static void layout_ops__nothing_leaks_without_memory(void)
{
  ts t;
  ops_open_text(&t, MANY);
  trial a = { &t, counted((const int64_t[]){ 3, 3 }, 2) };
  CHECK_INT(compile_and_run(&a), TN_OK);
  tn_test_oom_sweep(compile_and_run, &a);
  tn_tensor_unref(a.x);
  ts_fini(&t);
}

TAP_MAIN(
  TAP_TEST(layout_ops__shapes_known_in_part_stay_known),
  TAP_TEST(layout_ops__errors_explain_invalid_equations),
  TAP_TEST(layout_ops__large_transposes_and_products_agree),
  TAP_TEST(layout_ops__nothing_leaks_without_memory))
