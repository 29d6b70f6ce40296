/* SPDX-License-Identifier: Apache-2.0 */
/* Resizing images: properties that hold for all numbers, sizes that the recorded cases lack,
 * errors, and lack of memory. */
#include <math.h>
#include <ops/kernel/elements/vectors.h>

#include "conformance/support/op_kit.h"

#define BOOL(key, value) "attr { key: '" key "' value { b: " value " } }"
#define IN(name, dims) \
  NODE(name, "Placeholder", "", TYPE("dtype", "DT_FLOAT") "attr { key: 'shape' value { shape { " dims " } } }")
#define SIZE(name, h, w) INTS(name, D(2), "int_val: " h " int_val: " w)

static const int channels[] = { 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33 };
enum { N_CHANNELS = sizeof channels / sizeof channels[0] };

static tn_tensor *numbers(int64_t n, int64_t h, int64_t w, int64_t c)
{
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, (int64_t[]){ n, h, w, c }, 4, &t, NULL), NULL);
  float *x = tn_tensor_data(t);
  for (int64_t i = 0; i < tn_tensor_elements(t); i++) x[i] = (float)((i * 37 + c * 11) % 61) / 8;
  return t;
}

static tn_tensor *run(ts *t, const char *fetch, size_t n, const char *const *feeds, tn_tensor *const *in)
{
  tn_tensor *out = NULL;
  REQUIRE_OK(tn_session_run(t->session, NULL, feeds, in, n, &fetch, &out, 1, NULL, 0, NULL, &t->err), &t->err);
  return out;
}

static tn_tensor *run_in(ts *t, const char *fetch, tn_tensor *in)
{
  static const char *const feeds[] = { "in" };
  return run(t, fetch, 1, feeds, &in);
}

static void check_equal(const tn_tensor *a, const tn_tensor *b)
{
  REQUIRE_INT(tn_tensor_bytes(a), tn_tensor_bytes(b));
  CHECK_BYTES(tn_tensor_data(a), tn_tensor_data(b), tn_tensor_bytes(a));
}

static double product(const tn_tensor *a, const tn_tensor *b)
{
  const float *x = tn_tensor_data(a), *y = tn_tensor_data(b);
  double sum = 0;
  REQUIRE_INT(tn_tensor_elements(a), tn_tensor_elements(b));
  for (int64_t i = 0; i < tn_tensor_elements(a); i++) sum += (double)x[i] * (double)y[i];
  return sum;
}

/* ---- properties of all ops ---- */

/* A resize is linear in its image, so for any dy: sum of y dy = sum of x dx. */
static void check_gradient(const char *op, bool by_size, const char *attrs, const int64_t from[2], const int64_t to[2])
{
  static const char *const feeds[] = { "x", "dy" };
  char text[2000];
  ts t;
  snprintf(text, sizeof text,
           ANY("x", "DT_FLOAT") ANY("dy", "DT_FLOAT") SIZE("to", "%d", "%d")
               SIZE("from", "%d", "%d") "node { name: 'y' op: '%s' input: 'x' input: 'to' " F " %s }\n"
                                        "node { name: 'dx' op: '%sGrad' input: 'dy' input: '%s' " F " %s }\n",
           (int)to[0], (int)to[1], (int)from[0], (int)from[1], op, attrs, op, by_size ? "from" : "x", attrs);
  ops_open_text(&t, text);
  for (int k = 0; k < N_CHANNELS; k++) {
    tn_tensor *in[] = { numbers(2, from[0], from[1], channels[k]), numbers(2, to[0], to[1], channels[k]) };
    tn_tensor *y = run(&t, "y", 1, feeds, in), *dx = run(&t, "dx", 2, feeds, in);
    double sum = product(y, in[1]);
    CHECK_DOUBLE(product(in[0], dx), sum, 1e-5 * fabs(sum));
    CHECK(sum > 1);
    for (int i = 0; i < 2; i++) tn_tensor_unref(in[i]);
    tn_tensor_unref(y);
    tn_tensor_unref(dx);
  }
  ts_fini(&t);
}

static void resize__gradients_are_those_of_resizes(void)
{
  static const char *const ops[] = { "ResizeBilinear", "ResizeBicubic", "ResizeNearestNeighbor" };
  static const char *const modes[] = { "", BOOL("align_corners", "true"), BOOL("half_pixel_centers", "true") };
  static const int64_t sizes[][4] = {
    { 7, 5, 15, 13 }, { 15, 13, 6, 4 }, { 4, 6, 9, 3 }, { 1, 6, 5, 1 }, { 3, 4, 3, 4 }
  };
  for (int o = 0; o < 3; o++)
    for (int m = 0; m < 3; m++)
      for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        check_gradient(ops[o], o == 2, modes[m], sizes[s], sizes[s] + 2);
}

#define ALL_FOUR                                                                                        \
  ANY("in", "DT_FLOAT")                                                                                 \
  SIZE("s", "37", "61")                                                                                 \
  NODE("bilinear", "ResizeBilinear", "input: 'in' input: 's'", F)                                       \
      NODE("centers", "ResizeBilinear", "input: 'in' input: 's'", F BOOL("half_pixel_centers", "true")) \
          NODE("bicubic", "ResizeBicubic", "input: 'in' input: 's'", F)                                 \
              NODE("area", "ResizeArea", "input: 'in' input: 's'", F)                                   \
                  NODE("nearest", "ResizeNearestNeighbor", "input: 'in' input: 's'", F)
static const char *const all_four[] = { "bilinear", "centers", "bicubic", "area", "nearest" };

/* Computes on the machine's vectors, and on narrower ones. */
static void resize__all_vectors_give_the_same_bits(void)
{
  ts t;
  ops_open_text(&t, ALL_FOUR);
  for (int k = 0; k < N_CHANNELS; k++) {
    tn_tensor *in = numbers(1, 20, 30, channels[k]);
    for (int i = 0; i < 5; i++) {
      tn_tensor *best = run_in(&t, all_four[i], in);
      for (int kind = 0; kind < TN__VECTORS; kind++) {
        tn__vectors_limit(kind);
        tn_tensor *out = run_in(&t, all_four[i], in);
        check_equal(out, best);
        tn_tensor_unref(out);
      }
      tn__vectors_limit(TN__AVX512);
      tn_tensor_unref(best);
    }
    tn_tensor_unref(in);
  }
  ts_fini(&t);
}

/* A batch is divided into bands that do not end with its images. */
static void resize__images_of_a_batch_are_independent(void)
{
  ts t;
  ops_open_text(&t, ALL_FOUR);
  tn_tensor *batch = numbers(5, 90, 50, 9);
  for (int i = 0; i < 5; i++) {
    tn_tensor *whole = run_in(&t, all_four[i], batch);
    for (int k = 0; k < 5; k++) {
      tn_tensor *one = numbers(1, 90, 50, 9);
      size_t bytes = tn_tensor_bytes(one);
      memcpy(tn_tensor_data(one), (char *)tn_tensor_data(batch) + (size_t)k * bytes, bytes);
      tn_tensor *out = run_in(&t, all_four[i], one);
      CHECK_BYTES((char *)tn_tensor_data(whole) + (size_t)k * tn_tensor_bytes(out), tn_tensor_data(out),
                  tn_tensor_bytes(out));
      tn_tensor_unref(out);
      tn_tensor_unref(one);
    }
    tn_tensor_unref(whole);
  }
  tn_tensor_unref(batch);
  ts_fini(&t);
}

/* Integers give the same pixels in every dtype. */
static void resize__short_numbers_are_resized_as_floats(void)
{
  static const char *const types[] = { "DT_UINT8", "DT_INT16", "DT_INT64", "DT_HALF", "DT_BFLOAT16", "DT_DOUBLE" };
  for (size_t k = 0; k < sizeof types / sizeof types[0]; k++) {
    char text[1500];
    ts t;
    snprintf(text, sizeof text,
             ALL_FOUR "node { name: 'short' op: 'Cast' input: 'in' " TYPE(
                 "SrcT", "DT_FLOAT") " attr { key: 'DstT' value "
                                     "{ type: %s } } }\nnode { name: 'it' op: 'ResizeBilinear' input: 'short' input: "
                                     "'s' attr { key: 'T' value { type: "
                                     "%s } } }\n",
             types[k], types[k]);
    ops_open_text(&t, text);
    tn_tensor *in = numbers(2, 11, 13, 3);
    float *x = tn_tensor_data(in);
    for (int64_t i = 0; i < tn_tensor_elements(in); i++) x[i] = (float)(i * 7 % 100);
    tn_tensor *a = run_in(&t, "bilinear", in), *b = run_in(&t, "it", in);
    check_equal(b, a);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
    tn_tensor_unref(in);
    ts_fini(&t);
  }
}

/* ---- single ops ---- */

static void resize__aligned_corners_keep_a_slope(void)
{
  ts t;
  ops_open_text(&t, ANY("in", "DT_FLOAT") SIZE("s", "9", "17")
                        NODE("it", "ResizeBilinear", "input: 'in' input: 's'", F BOOL("align_corners", "true")));
  tn_tensor *in = numbers(1, 3, 5, 3);
  float *x = tn_tensor_data(in);
  for (int i = 0; i < 45; i++) x[i] = (float)(i / 15 * 100 + i / 3 % 5 * 4 + i % 3 * 1000); /* row, column, channel */
  tn_tensor *out = run_in(&t, "it", in);
  const float *y = tn_tensor_data(out);
  for (int i = 0; i < 9 * 17 * 3; i++)
    CHECK_DOUBLE((double)y[i], i / 51 * 25.0 + i / 3 % 17 * 1.0 + i % 3 * 1000.0, 1e-3);
  tn_tensor_unref(out);
  tn_tensor_unref(in);
  ts_fini(&t);
}

static void resize__an_area_is_the_mean_of_its_pixels(void)
{
  ts t;
  ops_open_text(&t, ANY("in", "DT_FLOAT") SIZE("s", "2", "3") NODE("it", "ResizeArea", "input: 'in' input: 's'", F));
  tn_tensor *in = numbers(1, 4, 9, 2), *out = run_in(&t, "it", in);
  const float *x = tn_tensor_data(in), *y = tn_tensor_data(out);
  for (int r = 0; r < 2; r++)
    for (int c = 0; c < 3; c++)
      for (int k = 0; k < 2; k++) {
        double sum = 0;
        for (int i = 0; i < 6; i++) sum += (double)x[((2 * r + i / 3) * 9 + 3 * c + i % 3) * 2 + k];
        CHECK_DOUBLE((double)y[(r * 3 + c) * 2 + k], sum / 6, 1e-5);
      }
  tn_tensor_unref(out);
  tn_tensor_unref(in);
  ts_fini(&t);
}

#define PAIR(name, y, x) TENSOR(name, "DT_FLOAT", D(2), "float_val: " y " float_val: " x)
#define SCALED(kernel, scale, to, move)                                                               \
  PAIR("scale", scale, scale)                                                                         \
  PAIR("move", move, "0")                                                                             \
  SIZE("s", to, to) ANY("in", "DT_FLOAT") ANY("dy", "DT_FLOAT")                                       \
      NODE("y", "ScaleAndTranslate", "input: 'in' input: 's' input: 'scale' input: 'move'",           \
           F "attr { key: 'kernel_type' value { s: '" kernel "' } }")                                 \
          NODE("dx", "ScaleAndTranslateGrad", "input: 'dy' input: 'in' input: 'scale' input: 'move'", \
               F "attr { key: 'kernel_type' value { s: '" kernel "' } }")

/* Moving by whole pixels does not mix any: rows move down, and the new ones are 0. */
static void resize__translation_by_whole_pixels_is_exact(void)
{
  ts t;
  ops_open_text(&t, SCALED("triangle", "1", "8", "3"));
  tn_tensor *in = numbers(1, 8, 8, 3), *out = run_in(&t, "y", in);
  const float *x = tn_tensor_data(in), *y = tn_tensor_data(out);
  for (int i = 0; i < 192; i++) CHECK_DOUBLE((double)y[i], i < 72 ? 0 : (double)x[i - 72], 1e-6);
  tn_tensor_unref(out);
  tn_tensor_unref(in);
  ts_fini(&t);
}

static void resize__gradients_are_those_of_scaled_images(void)
{
  static const char *const feeds[] = { "in", "dy" };
  static const char *const graphs[] = {
    SCALED("lanczos3", "0.7", "9", "0.5"),    SCALED("lanczos5", "2.5", "9", "-1"),
    SCALED("gaussian", "0.4", "9", "1"),      SCALED("box", "0.5", "9", "0"),
    SCALED("mitchellcubic", "1", "9", "0.3"), SCALED("keyscubic", "0.3", "9", "0")
  };
  for (size_t g = 0; g < sizeof graphs / sizeof graphs[0]; g++) {
    ts t;
    ops_open_text(&t, graphs[g]);
    tn_tensor *in[] = { numbers(2, 12, 11, 3), numbers(2, 9, 9, 3) };
    tn_tensor *y = run(&t, "y", 1, feeds, in), *dx = run(&t, "dx", 2, feeds, in);
    double sum = product(y, in[1]);
    CHECK_DOUBLE(product(in[0], dx), sum, 1e-5 * fabs(sum));
    CHECK(sum > 1);
    for (int i = 0; i < 2; i++) tn_tensor_unref(in[i]);
    tn_tensor_unref(y);
    tn_tensor_unref(dx);
    ts_fini(&t);
  }
}

/* Nothing is computed; still, the caller owns the fetched tensor. */
static void resize__the_same_size_is_the_image(void)
{
  ts t;
  ops_open_text(&t, ALL_FOUR);
  tn_tensor *in = numbers(2, 37, 61, 2);
  for (int i = 0; i < 5; i++) {
    tn_tensor *out = run_in(&t, all_four[i], in);
    CHECK(tn_tensor_data(out) != tn_tensor_data(in));
    if (i != 3) check_equal(out, in);
    tn_tensor_unref(out);
  }
  tn_tensor_unref(in);
  ts_fini(&t);
}

static void resize__shapes_are_known_before_a_step(void)
{
  ts t;
  ops_open_text(&t, IN("in", D(-1) D(8) D(9) D(3)) ANY("any", "DT_FLOAT") SIZE("s", "5", "7") ANY("size", "DT_INT32")
                        NODE("a", "ResizeBilinear", "input: 'in' input: 's'", F)
                            NODE("b", "ResizeArea", "input: 'in' input: 'size'", F)
                                NODE("c", "ResizeBicubic", "input: 'any' input: 's'", F)
                                    NODE("d", "ResizeBilinearGrad", "input: 'a' input: 'in'", F)
                                        NODE("e", "ResizeNearestNeighborGrad", "input: 'a' input: 's'", F));
  CHECK_STR(ops_shape_of(&t, "a", 0), "[?,5,7,3]");
  CHECK_STR(ops_shape_of(&t, "b", 0), "[?,?,?,3]");
  CHECK_STR(ops_shape_of(&t, "c", 0), "[?,5,7,?]");
  CHECK_STR(ops_shape_of(&t, "d", 0), "[?,8,9,3]");
  CHECK_STR(ops_shape_of(&t, "e", 0), "[?,5,7,3]");
  ts_fini(&t);
}

/* ---- errors ---- */

static void expect_error(const char *op, const char *attrs, const int64_t dims[4], int h, int w, const char *message)
{
  static const char *const feeds[] = { "in" }, *const fetches[] = { "it" };
  char text[1000];
  ts t;
  tn_tensor *in = NULL, *out = NULL;
  snprintf(text, sizeof text,
           ANY("in", "DT_FLOAT") SIZE("s", "%d", "%d") "node { name: 'it' op: '%s' input: 'in' input: 's' " F " %s }\n",
           h, w, op, attrs);
  ops_open_text(&t, text);
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, dims, 4, &in, NULL), NULL);
  CHECK_INT(tn_session_run(t.session, NULL, feeds, &in, 1, fetches, &out, 1, NULL, 0, NULL, &t.err),
            TN_INVALID_ARGUMENT);
  CHECK_NULL(out);
  CHECK_CONTAINS(tn_error_message(&t.err), "'it'");
  CHECK_CONTAINS(tn_error_message(&t.err), message);
  tn_tensor_unref(in);
  ts_fini(&t);
}

static void resize__errors_name_the_offending_value(void)
{
  const int64_t good[] = { 1, 2, 3, 1 }, flat[] = { 1, 0, 3, 1 }, none[] = { 1, 2, 3, 0 };
  expect_error("ResizeBilinear", "", good, 0, 5, "the size of the images is 0 x 5, wanted at least 1 x 1");
  expect_error("ResizeBicubic", "", good, 4, -5, "the size of the images is 4 x -5");
  expect_error("ResizeArea", "", flat, 4, 5, "input 0 has shape [1,0,3,1], wanted rows, columns and channels");
  expect_error("ResizeNearestNeighbor", "", none, 4, 5, "input 0 has shape [1,2,3,0]");
  expect_error("ResizeNearestNeighborGrad", "", good, 0, 5, "the size of the images is 0 x 5");
  expect_error("ResizeBilinear", BOOL("align_corners", "true") BOOL("half_pixel_centers", "true"), good, 4, 5,
               "align_corners and half_pixel_centers are both set");
}

/* ---- lack of memory ---- */

typedef struct trial {
  ts *t;
  tn_tensor *in;
} trial;

static tn_status compile_and_run(void *arg)
{
  static const char *const feeds[] = { "in" };
  static const char *const fetches[] = { "bilinear", "bicubic", "area", "nearest", "d", "e", "f", "g" };
  enum { N = sizeof fetches / sizeof fetches[0] };
  trial *a = arg;
  tn_callable callable;
  tn_tensor *out[N] = { NULL };
  tn_status st = tn_session_make_callable(a->t->session, NULL, feeds, 1, fetches, N, NULL, 0, &callable, NULL);
  if (st != TN_OK) return st;
  st = tn_session_run_callable(a->t->session, callable, &a->in, 1, out, N, NULL, NULL);
  for (int k = 0; k < N; k++) tn_tensor_unref(out[k]);
  tn_session_release_callable(a->t->session, callable, NULL);
  return st;
}

static void resize__nothing_leaks_without_memory(void)
{
  ts t;
  ops_open_text(&t, ALL_FOUR SIZE("z", "3", "3") NODE("d", "ResizeBilinearGrad", "input: 'bilinear' input: 'in'", F)
                        NODE("e", "ResizeBicubicGrad", "input: 'bicubic' input: 'in'", F)
                            NODE("f", "ResizeNearestNeighborGrad", "input: 'nearest' input: 'z'", F)
                                TENSOR("p", "DT_FLOAT", D(2), "float_val: 2")
                                    NODE("g", "ScaleAndTranslate", "input: 'in' input: 'z' input: 'p' input: 'p'", F));
  trial a = { &t, numbers(2, 6, 5, 3) };
  CHECK_INT(compile_and_run(&a), TN_OK);
  tn_test_oom_sweep(compile_and_run, &a);
  tn_tensor_unref(a.in);
  ts_fini(&t);
}

TAP_MAIN(TAP_TEST(resize__gradients_are_those_of_resizes), TAP_TEST(resize__all_vectors_give_the_same_bits),
         TAP_TEST(resize__images_of_a_batch_are_independent),
         TAP_TEST(resize__short_numbers_are_resized_as_floats), TAP_TEST(resize__aligned_corners_keep_a_slope),
         TAP_TEST(resize__an_area_is_the_mean_of_its_pixels), TAP_TEST(resize__translation_by_whole_pixels_is_exact),
         TAP_TEST(resize__gradients_are_those_of_scaled_images), TAP_TEST(resize__the_same_size_is_the_image),
         TAP_TEST(resize__shapes_are_known_before_a_step), TAP_TEST(resize__errors_name_the_offending_value),
         TAP_TEST(resize__nothing_leaks_without_memory))
