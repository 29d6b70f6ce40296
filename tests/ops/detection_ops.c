/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes: cropped from images, and suppressed if they overlap. */
#include <math.h>
#include <ops/kernel/elements/vectors.h>

#include "conformance/support/op_kit.h"

#define TEXT(key, value) "attr { key: '" key "' value { s: '" value "' } }"
#define BOOL(key, value) "attr { key: '" key "' value { b: " value " } }"
#define FLOAT(key, value) "attr { key: '" key "' value { f: " value " } }"
#define NUMBER(name, value) TENSOR(name, "DT_FLOAT", "", "float_val: " value)
#define COUNT(name, value) INTS(name, "", "int_val: " value)

static tn_tensor *tensor(tn_dtype dtype, int32_t rank, const int64_t *dims, const void *data, size_t bytes)
{
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_from_data(dtype, dims, rank, data, bytes, &t, NULL), NULL);
  return t;
}

/* Numbers in [0, 1) with a long period. */
static float noise(uint32_t *state)
{
  *state = *state * 1664525u + 1013904223u;
  return (float)(*state >> 8) * 0x1p-24f;
}

static tn_tensor *random_tensor(int32_t rank, const int64_t *dims, uint32_t seed)
{
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, dims, rank, &t, NULL), NULL);
  for (int64_t i = 0; i < tn_tensor_elements(t); i++) ((float *)tn_tensor_data(t))[i] = noise(&seed);
  return t;
}

static tn_status try_run(ts *t, const char *const *feeds, tn_tensor *const *in, size_t n, const char *const *fetches,
                         tn_tensor **out, size_t n_out)
{
  for (size_t i = 0; i < n_out; i++) out[i] = NULL;
  tn_error_clear(&t->err);
  return tn_session_run(t->session, NULL, feeds, in, n, fetches, out, n_out, NULL, 0, NULL, &t->err);
}

/* ---- crops ---- */

#define CROP_FEEDS ANY("image", "DT_FLOAT") ANY("boxes", "DT_FLOAT") ANY("index", "DT_INT32")
#define CROP(name, method, h, w)                                                                     \
  INTS(name "/size", D(2), "int_val: " h " int_val: " w)                                             \
  NODE(name, "CropAndResize", "input: 'image' input: 'boxes' input: 'index' input: '" name "/size'", \
       F TEXT("method", method) FLOAT("extrapolation_value", "-7"))

static const char *const crop_feeds[] = { "image", "boxes", "index", "grads" };

static void crops__a_box_of_the_whole_image_is_the_image(void)
{
  static const char *const fetches[] = { "a", "b" };
  const float boxes[] = { 0, 0, 1, 1, 1, 1, 0, 0 };
  ts t;
  tn_tensor *out[2];
  ops_open_text(&t, CROP_FEEDS CROP("a", "bilinear", "5", "6") CROP("b", "nearest", "5", "6"));
  for (int64_t c = 1; c < 20; c += 2) {
    tn_tensor *in[] = { random_tensor(4, (int64_t[]){ 2, 5, 6, c }, 1),
                        tensor(TN_FLOAT, 2, (int64_t[]){ 2, 4 }, boxes, sizeof boxes),
                        tensor(TN_INT32, 1, (int64_t[]){ 2 }, (int32_t[]){ 1, 1 }, 8) };
    const float *x = (float *)tn_tensor_data(in[0]) + 30 * c;
    REQUIRE_OK(try_run(&t, crop_feeds, in, 3, fetches, out, 2), &t.err);
    for (int k = 0; k < 2; k++) {
      const float *y = tn_tensor_data(out[k]);
      for (int64_t i = 0; i < 30; i++)
        for (int64_t j = 0; j < c; j++) {
          CHECK_DOUBLE((double)y[i * c + j], (double)x[i * c + j], 1e-5);
          CHECK_DOUBLE((double)y[(30 + 29 - i) * c + j], (double)x[i * c + j], 1e-5); /* the other crop is flipped */
        }
      tn_tensor_unref(out[k]);
    }
    for (int i = 0; i < 3; i++) tn_tensor_unref(in[i]);
  }
  ts_fini(&t);
}

static void crops__pixels_outside_have_the_given_value(void)
{
  static const char *const fetches[] = { "a", "b" };
  const float boxes[] = { -1, -1, 2, 2, 3, 0, 4, 1, 0, 0, 3e38f, 1 };
  ts t;
  tn_tensor *out[2], *in[] = { random_tensor(4, (int64_t[]){ 1, 4, 4, 3 }, 1),
                               tensor(TN_FLOAT, 2, (int64_t[]){ 3, 4 }, boxes, sizeof boxes),
                               tensor(TN_INT32, 1, (int64_t[]){ 3 }, (int32_t[]){ 0, 0, 0 }, 12) };
  const float *x = tn_tensor_data(in[0]);
  ops_open_text(&t, CROP_FEEDS CROP("a", "bilinear", "10", "10") CROP("b", "nearest", "10", "10"));
  REQUIRE_OK(try_run(&t, crop_feeds, in, 3, fetches, out, 2), &t.err);
  for (int k = 0; k < 2; k++) {
    const float *y = tn_tensor_data(out[k]);
    for (int i = 0; i < 300; i++) {
      int row = i / 30 - 3, column = i / 3 % 10 - 3;
      bool inside = row >= 0 && row < 4 && column >= 0 && column < 4;
      CHECK_DOUBLE((double)y[i], inside ? (double)x[(row * 4 + column) * 3 + i % 3] : -7, 1e-5);
      CHECK_DOUBLE((double)y[300 + i], -7, 0);
      if (i >= 30) CHECK_DOUBLE((double)y[600 + i], -7, 0);
    }
    tn_tensor_unref(out[k]);
  }
  for (int i = 0; i < 3; i++) tn_tensor_unref(in[i]);
  ts_fini(&t);
}

#define CROP_GRADS                                                                                         \
  ANY("grads", "DT_FLOAT")                                                                                 \
  INTS("all", D(4), "int_val: 3 int_val: 9 int_val: 8 int_val: 5")                                         \
      NODE("dx", "CropAndResizeGradImage", "input: 'grads' input: 'boxes' input: 'index' input: 'all'", F) \
          NODE("db", "CropAndResizeGradBoxes", "input: 'grads' input: 'image' input: 'boxes' input: 'index'", F)

static double sum_of_products(const tn_tensor *a, const tn_tensor *b)
{
  const float *x = tn_tensor_data(a), *y = tn_tensor_data(b);
  double sum = 0;
  REQUIRE_INT(tn_tensor_elements(a), tn_tensor_elements(b));
  for (int64_t i = 0; i < tn_tensor_elements(a); i++) sum += (double)x[i] * (double)y[i];
  return sum;
}

/* A crop is linear in the image; moving a box slightly changes the crop by its gradient. */
static void crops__gradients_are_those_of_crops(void)
{
  static const char *const fetches[] = { "a", "dx", "db" };
  const float boxes[] = { 0.11f, 0.12f, 0.83f, 0.94f, 0.7f, 0.9f, 0.2f, 0.1f };
  ts t;
  ops_open_text(&t, CROP_FEEDS CROP("a", "bilinear", "7", "6") CROP_GRADS);
  tn_tensor *out[3], *moved[1];
  tn_tensor *in[] = { random_tensor(4, (int64_t[]){ 3, 9, 8, 5 }, 1),
                      tensor(TN_FLOAT, 2, (int64_t[]){ 2, 4 }, boxes, sizeof boxes),
                      tensor(TN_INT32, 1, (int64_t[]){ 2 }, (int32_t[]){ 2, 0 }, 8),
                      random_tensor(4, (int64_t[]){ 2, 7, 6, 5 }, 2) };
  REQUIRE_OK(try_run(&t, crop_feeds, in, 4, fetches, out, 3), &t.err);
  double before = sum_of_products(out[0], in[3]);
  CHECK_DOUBLE(sum_of_products(in[0], out[1]), before, 1e-4 * before);
  for (int i = 0; i < 8; i++) {
    float *box = tn_tensor_data(in[1]);
    box[i] += 1e-4f;
    REQUIRE_OK(try_run(&t, crop_feeds, in, 3, fetches, moved, 1), &t.err);
    box[i] -= 1e-4f;
    double slope = (sum_of_products(moved[0], in[3]) - before) / 1e-4,
           found = (double)((float *)tn_tensor_data(out[2]))[i];
    CHECK_DOUBLE(found, slope, 0.05 * fabs(slope) + 0.3);
    tn_tensor_unref(moved[0]);
  }
  for (int i = 0; i < 4; i++) tn_tensor_unref(in[i]);
  for (int i = 0; i < 3; i++) tn_tensor_unref(out[i]);
  ts_fini(&t);
}

/* ---- suppression ---- */

#define NMS_FEEDS ANY("boxes", "DT_FLOAT") ANY("scores", "DT_FLOAT") ANY("most", "DT_INT32")
#define NMS_V5(name, iou, least, sigma, attrs)                                                                         \
  NUMBER(name "/i", iou)                                                                                               \
  NUMBER(name "/l", least) NUMBER(name "/s", sigma)                                                                    \
      NODE(name, "NonMaxSuppressionV5",                                                                                \
           "input: 'boxes' input: 'scores' input: 'most' input: '" name "/i' input: '" name "/l' input: '" name "/s'", \
           attrs)

static const char *const nms_feeds[] = { "boxes", "scores", "most" };

static void nms_inputs(tn_tensor *in[3], int64_t n, int32_t most)
{
  in[0] = random_tensor(2, (int64_t[]){ n, 4 }, 7);
  in[1] = random_tensor(1, &n, 8);
  in[2] = tensor(TN_INT32, 0, NULL, &most, sizeof most);
  float *box = tn_tensor_data(in[0]);
  for (int64_t i = 0; i < n; i++, box += 4) {
    box[2] = box[0] + box[2] * 0.4f - 0.1f; /* some have swapped corners */
    box[3] = box[1] + box[3] * 0.4f - 0.1f;
  }
}

static float part_of(const float *a, const float *b)
{
  float area[2], h = fminf(fmaxf(a[0], a[2]), fmaxf(b[0], b[2])) - fmaxf(fminf(a[0], a[2]), fminf(b[0], b[2]));
  float w = fminf(fmaxf(a[1], a[3]), fmaxf(b[1], b[3])) - fmaxf(fminf(a[1], a[3]), fminf(b[1], b[3]));
  area[0] = fabsf(a[2] - a[0]) * fabsf(a[3] - a[1]);
  area[1] = fabsf(b[2] - b[0]) * fabsf(b[3] - b[1]);
  if (h <= 0 || w <= 0 || area[0] <= 0 || area[1] <= 0) return 0;
  return h * w / (area[0] + area[1] - h * w);
}

/* Every box is either kept, or overlaps too much with a kept box of a higher score. */
static void suppression__removed_boxes_overlap_kept_ones(void)
{
  static const char *const fetches[] = { "it", "it:1", "it:2" };
  enum { N = 700 };
  ts t;
  tn_tensor *in[3], *out[3];
  nms_inputs(in, N, N);
  const float *boxes = tn_tensor_data(in[0]), *scores = tn_tensor_data(in[1]);
  ops_open_text(&t, NMS_FEEDS NMS_V5("it", "0.1", "0.2", "0", ""));
  for (int kind = 0; kind < TN__VECTORS; kind++) {
    bool stays[N] = { false };
    tn__vectors_limit(kind);
    REQUIRE_OK(try_run(&t, nms_feeds, in, 3, fetches, out, 3), &t.err);
    const int32_t *kept = tn_tensor_data(out[0]);
    int64_t n = tn_tensor_elements(out[0]);
    CHECK_INT(*(int32_t *)tn_tensor_data(out[2]), n);
    CHECK(n > 20 && n < N / 2);
    for (int64_t i = 0; i < n; i++) {
      stays[kept[i]] = true;
      CHECK(i == 0 || scores[kept[i]] < scores[kept[i - 1]]);
      CHECK_DOUBLE((double)((float *)tn_tensor_data(out[1]))[i], (double)scores[kept[i]], 0);
    }
    for (int i = 0; i < N; i++) {
      bool covered = scores[i] <= 0.2f;
      for (int64_t k = 0; k < n; k++)
        covered = covered || (scores[kept[k]] > scores[i] && part_of(boxes + 4 * i, boxes + 4 * kept[k]) > 0.1f);
      CHECK_MSG(covered != stays[i], "box %d", i);
    }
    for (int i = 0; i < 3; i++) tn_tensor_unref(out[i]);
  }
  tn__vectors_limit(TN__AVX512);
  for (int i = 0; i < 3; i++) tn_tensor_unref(in[i]);
  ts_fini(&t);
}

static void suppression__soft_suppression_lowers_scores(void)
{
  static const char *const fetches[] = { "it", "it:1", "it:2" };
  const float boxes[] = { 0, 0, 1, 1, 0, 0, 1, 0.5f, 5, 5, 6, 6 }, scores[] = { 0.9f, 0.8f, 0.7f };
  ts t;
  tn_tensor *out[3], *in[] = { tensor(TN_FLOAT, 2, (int64_t[]){ 3, 4 }, boxes, sizeof boxes),
                               tensor(TN_FLOAT, 1, (int64_t[]){ 3 }, scores, sizeof scores),
                               tensor(TN_INT32, 0, NULL, (int32_t[]){ 5 }, 4) };
  ops_open_text(&t, NMS_FEEDS NMS_V5("it", "0.1", "0", "0.5", BOOL("pad_to_max_output_size", "true")));
  REQUIRE_OK(try_run(&t, nms_feeds, in, 3, fetches, out, 3), &t.err);
  REQUIRE_INT(tn_tensor_elements(out[0]), 5);
  CHECK_BYTES(tn_tensor_data(out[0]), ((int32_t[]){ 0, 2, 1, 0, 0 }), 20);
  const double wanted[] = { 0.9, 0.7, 0.8 * exp(-0.25), 0, 0 }; /* half of both, squared, over 2 sigma */
  for (int i = 0; i < 5; i++) CHECK_DOUBLE((double)((float *)tn_tensor_data(out[1]))[i], wanted[i], 1e-6);
  CHECK_INT(*(int32_t *)tn_tensor_data(out[2]), 3);
  for (int i = 0; i < 3; i++) tn_tensor_unref(in[i]);
  for (int i = 0; i < 3; i++) tn_tensor_unref(out[i]);
  ts_fini(&t);
}

#define COMBINED_FEEDS ANY("boxes", "DT_FLOAT") ANY("scores", "DT_FLOAT")
#define COMBINED(name, per, total)                                                                                    \
  COUNT(name "/p", per)                                                                                               \
  COUNT(name "/t", total) NUMBER(name "/i", "0.5") NUMBER(name "/l", "0.1")                                           \
      NODE(name, "CombinedNonMaxSuppression",                                                                         \
           "input: 'boxes' input: 'scores' input: '" name "/p' input: '" name "/t' input: '" name "/i' input: '" name \
           "/l'",                                                                                                     \
           "")

/* Boxes that do not overlap: the best scores of all classes, at most two per class. */
static void suppression__the_best_of_all_classes_are_first(void)
{
  static const char *const fetches[] = { "it", "it:1", "it:2", "it:3" };
  const float boxes[] = { 0, 0, 0.1f, 0.1f, 0.5f, 0.5f, 2, 2, -1, 0, 0, 0.2f };
  const float scores[] = { 0.2f, 0.9f, 0.3f, 0.8f, 0.05f, 0.7f };
  ts t;
  tn_tensor *out[4], *in[] = { tensor(TN_FLOAT, 4, (int64_t[]){ 1, 3, 1, 4 }, boxes, sizeof boxes),
                               tensor(TN_FLOAT, 3, (int64_t[]){ 1, 3, 2 }, scores, sizeof scores) };
  ops_open_text(&t, COMBINED_FEEDS COMBINED("it", "2", "5"));
  REQUIRE_OK(try_run(&t, nms_feeds, in, 2, fetches, out, 4), &t.err);
  CHECK_BYTES(tn_tensor_data(out[1]), ((float[]){ 0.9f, 0.8f, 0.3f, 0.2f, 0 }), 20);
  CHECK_BYTES(tn_tensor_data(out[2]), ((float[]){ 1, 1, 0, 0, 0 }), 20);
  CHECK_INT(*(int32_t *)tn_tensor_data(out[3]), 4);
  CHECK_BYTES((float *)tn_tensor_data(out[0]) + 4, ((float[]){ 0.5f, 0.5f, 1, 1 }), 16); /* clipped */
  CHECK_STR(ops_shape_of(&t, "it", 0), "[?,5,4]");
  for (int i = 0; i < 2; i++) tn_tensor_unref(in[i]);
  for (int i = 0; i < 4; i++) tn_tensor_unref(out[i]);
  ts_fini(&t);
}

/* ---- shapes and errors ---- */

static void detection_ops__shapes_are_known_before_a_step(void)
{
  ts t;
  ops_open_text(&t, CROP_FEEDS CROP("a", "bilinear", "7", "6") CROP_GRADS ANY("scores", "DT_FLOAT") COUNT("most", "3")
                        NMS_V5("n", "0.3", "0.2", "0", "")
                            NMS_V5("p", "0.3", "0.2", "0", BOOL("pad_to_max_output_size", "true")));
  CHECK_STR(ops_shape_of(&t, "a", 0), "[?,7,6,?]");
  CHECK_STR(ops_shape_of(&t, "dx", 0), "[3,9,8,5]");
  CHECK_STR(ops_shape_of(&t, "db", 0), "[?,4]");
  CHECK_STR(ops_shape_of(&t, "n", 1), "[?]");
  CHECK_STR(ops_shape_of(&t, "p", 1), "[3]");
  CHECK_STR(ops_shape_of(&t, "p", 2), "[]");
  ts_fini(&t);
}

static void expect_error(ts *t, const char *const *feeds, tn_tensor *const *in, const char *fetch, tn_status code,
                         const char *text)
{
  tn_tensor *out[1];
  CHECK_INT(try_run(t, feeds, in, 3, &fetch, out, 1), code);
  CHECK_NULL(out[0]);
  CHECK_CONTAINS(tn_error_message(&t->err), text);
}

static void detection_ops__errors_name_the_offending_value(void)
{
  ts t;
  float boxes[] = { 0, 0, 1, 1, 0, 0, NAN, 1 };
  int32_t index[] = { 0, 5 };
  tn_tensor *in[] = { random_tensor(4, (int64_t[]){ 2, 5, 6, 3 }, 1),
                      tensor(TN_FLOAT, 2, (int64_t[]){ 2, 4 }, boxes, 32),
                      tensor(TN_INT32, 1, (int64_t[]){ 2 }, index, 8) };
  ops_open_text(&t, CROP_FEEDS CROP("a", "bilinear", "5", "6") CROP("z", "bilinear", "5", "0"));
  expect_error(&t, crop_feeds, in, "a", TN_OUT_OF_RANGE, "element 1 of input 2 is 5, wanted 0 to 1");
  ((int32_t *)tn_tensor_data(in[2]))[1] = 1;
  expect_error(&t, crop_feeds, in, "a", TN_INVALID_ARGUMENT, "row 1 of input 1 is [0 0 nan 1], wanted finite numbers");
  expect_error(&t, crop_feeds, in, "z", TN_INVALID_ARGUMENT, "the size of the images is 5 x 0");
  ts_fini(&t);
  for (int i = 0; i < 3; i++) tn_tensor_unref(in[i]);

  nms_inputs(in, 4, -2);
  ops_open_text(&t, NMS_FEEDS NMS_V5("a", "0.3", "0.2", "0", "") NMS_V5("b", "1.5", "0.2", "0", "")
                        NMS_V5("c", "0.5", "0.2", "-1", ""));
  expect_error(&t, nms_feeds, in, "a", TN_INVALID_ARGUMENT, "max_output_size is -2, wanted 0 or more");
  *(int32_t *)tn_tensor_data(in[2]) = 2;
  expect_error(&t, nms_feeds, in, "b", TN_INVALID_ARGUMENT, "iou_threshold is 1.5, wanted 0 to 1");
  expect_error(&t, nms_feeds, in, "c", TN_INVALID_ARGUMENT, "soft_nms_sigma is -1, wanted 0 or more");
  tn_tensor_unref(in[1]);
  in[1] = random_tensor(1, (int64_t[]){ 3 }, 1);
  expect_error(&t, nms_feeds, in, "a", TN_INVALID_ARGUMENT, "input 1 has shape [3], wanted [4]");
  ts_fini(&t);
  for (int i = 0; i < 3; i++) tn_tensor_unref(in[i]);
}

/* ---- lack of memory ---- */

typedef struct trial {
  ts *t;
  tn_tensor *in[5];
} trial;

static tn_status compile_and_run(void *arg)
{
  static const char *const feeds[] = { "image", "boxes", "index", "grads", "scores" };
  static const char *const fetches[] = { "a", "dx", "db", "n:2", "comb" };
  enum { N = sizeof fetches / sizeof fetches[0] };
  trial *a = arg;
  tn_callable callable;
  tn_tensor *out[N] = { NULL };
  tn_status st = tn_session_make_callable(a->t->session, NULL, feeds, 5, fetches, N, NULL, 0, &callable, NULL);
  if (st != TN_OK) return st;
  st = tn_session_run_callable(a->t->session, callable, a->in, 5, out, N, NULL, NULL);
  for (int k = 0; k < N; k++) tn_tensor_unref(out[k]);
  tn_session_release_callable(a->t->session, callable, NULL);
  return st;
}

static void detection_ops__nothing_leaks_without_memory(void)
{
  const float boxes[] = { 0, 0, 1, 1, 0.5f, 0.5f, 0.7f, 0.7f };
  ts t;
  ops_open_text(
      &t, CROP_FEEDS CROP("a", "bilinear", "7", "6") CROP_GRADS ANY("scores", "DT_FLOAT") COUNT("most", "3")
              NMS_V5("n", "0.3", "0.2", "0", BOOL("pad_to_max_output_size", "true"))
                  INTS("b/s", D(4), "int_val: 1 int_val: 2 int_val: 1 int_val: 4")
                      INTS("s/s", D(3), "int_val: 1 int_val: 2 int_val: 1")
                          NODE("b", "Reshape", "input: 'boxes' input: 'b/s'", F)
                              NODE("s", "Reshape", "input: 'scores' input: 's/s'", F) COUNT("p", "2") NUMBER("i", "0.5")
                                  NODE("comb", "CombinedNonMaxSuppression",
                                       "input: 'b' input: 's' input: 'p' input: 'p' input: 'i' input: 'i'", ""));
  trial a = { &t,
              { random_tensor(4, (int64_t[]){ 3, 9, 8, 5 }, 1),
                tensor(TN_FLOAT, 2, (int64_t[]){ 2, 4 }, boxes, sizeof boxes),
                tensor(TN_INT32, 1, (int64_t[]){ 2 }, (int32_t[]){ 2, 0 }, 8),
                random_tensor(4, (int64_t[]){ 2, 7, 6, 5 }, 2), random_tensor(1, (int64_t[]){ 2 }, 3) } };
  CHECK_INT(compile_and_run(&a), TN_OK);
  tn_test_oom_sweep(compile_and_run, &a);
  for (int i = 0; i < 5; i++) tn_tensor_unref(a.in[i]);
  ts_fini(&t);
}

TAP_MAIN(TAP_TEST(crops__a_box_of_the_whole_image_is_the_image), TAP_TEST(crops__pixels_outside_have_the_given_value),
         TAP_TEST(crops__gradients_are_those_of_crops), TAP_TEST(suppression__removed_boxes_overlap_kept_ones),
         TAP_TEST(suppression__soft_suppression_lowers_scores),
         TAP_TEST(suppression__the_best_of_all_classes_are_first),
         TAP_TEST(detection_ops__shapes_are_known_before_a_step),
         TAP_TEST(detection_ops__errors_name_the_offending_value),
         TAP_TEST(detection_ops__nothing_leaks_without_memory))
