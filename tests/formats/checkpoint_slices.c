/* SPDX-License-Identifier: Apache-2.0 */
/* Slices of tensors: regions, their text, and the keys under which checkpoints store them. */
#include "conformance/support/tap.h"

#include <stdlib.h>
#include <string.h>

#include <core/formats/checkpoint/slices.h>

#include "conformance/support/oom.h"

static tn_error err;
static tn__arena arena;

static void setup(void) { tn__arena_init(&arena, 256); }
static void teardown(void)
{
  tn__arena_fini(&arena);
  tn_error_clear(&err);
}

/* A region of rank 2 with memory of its own. */
typedef struct box {
  int64_t starts[2], lengths[2];
} box;

static tn__region region_of(box *b) { return (tn__region){ 2, b->starts, b->lengths }; }

/* ---- regions ---- */

static void slices__a_region_lies_within_its_tensor(void)
{
  static const int64_t dims[] = { 6, 8 };
  box b = { { 2, 0 }, { 3, -1 } };
  tn__region r = region_of(&b);
  REQUIRE_OK(tn__region_resolve(&r, 2, dims, &err), &err);
  CHECK_INT(b.lengths[1], 8);
  CHECK_INT(tn__region_elements(&r), 24);
  CHECK(!tn__region_is_all(&r, dims));
  static const box wrong[] = {
    { { 4, 0 }, { 3, 8 } },         { { -1, 0 }, { 1, 8 } },        { { 0, 1 }, { 6, -1 } },
    { { INT64_MAX, 0 }, { 2, 8 } }, { { 0, 0 }, { INT64_MAX, 8 } }, { { 0, 0 }, { -2, 8 } }
  };
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
    b = wrong[i];
    CHECK_STATUS(tn__region_resolve(&r, 2, dims, &err), TN_INVALID_ARGUMENT, NULL);
    CHECK_CONTAINS(tn_error_message(&err), "[6,8]");
    tn_error_clear(&err);
  }
  CHECK_STATUS(tn__region_resolve(&r, 1, dims, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "a slice of rank 2 is not one of a tensor [6]");
  tn_error_clear(&err);
}

static void slices__common_parts(void)
{
  box a = { { 0, 0 }, { 4, 4 } }, b = { { 2, 3 }, { 4, 4 } }, c = { { 4, 0 }, { 1, 4 } }, out;
  tn__region x = region_of(&a), y = region_of(&b), z = region_of(&c), common = region_of(&out);
  REQUIRE(tn__region_common(&x, &y, &common));
  CHECK_INT(out.starts[0], 2);
  CHECK_INT(out.starts[1], 3);
  CHECK_INT(out.lengths[0], 2);
  CHECK_INT(out.lengths[1], 1);
  CHECK(!tn__region_common(&x, &z, &common));
  CHECK(tn__region_equals(&x, &x));
  CHECK(!tn__region_equals(&x, &y));
}

/* ---- coverage ---- */

static bool covers(box *list, size_t n, box *whole)
{
  tn__region regions[8], all = region_of(whole);
  bool out = false;
  for (size_t i = 0; i < n; i++) regions[i] = region_of(&list[i]);
  CHECK_OK(tn__regions_cover(regions, n, &all, &out, &err), &err);
  return out;
}

static void slices__cover_a_tensor_exactly(void)
{
  box whole = { { 0, 0 }, { 6, 8 } }, part = { { 1, 1 }, { 2, 2 } };
  box rows[] = { { { 3, 0 }, { 3, 8 } }, { { 0, 0 }, { 3, 8 } } };
  box wheel[] = { { { 0, 0 }, { 2, 5 } },
                  { { 0, 5 }, { 4, 3 } },
                  { { 4, 3 }, { 2, 5 } },
                  { { 2, 0 }, { 4, 3 } },
                  { { 2, 3 }, { 2, 2 } } };
  CHECK(covers(&whole, 1, &whole));
  CHECK(covers(rows, 2, &whole));
  CHECK(covers(wheel, 5, &whole));
  CHECK(covers(rows, 2, &part));
  CHECK(!covers(rows, 1, &whole));
  CHECK(covers(&rows[1], 1, &part)); /* what is outside of the part is not needed */
  CHECK(!covers(wheel, 4, &whole));
  CHECK(!covers(NULL, 0, &whole));
  box doubled[] = { { { 0, 0 }, { 3, 8 } },
                    { { 2, 0 }, { 3, 8 } } }; /* as many elements as the whole, but overlapping */
  CHECK(!covers(doubled, 2, &whole));
  box empty = { { 0, 0 }, { 0, 8 } };
  CHECK(covers(NULL, 0, &empty));
}

static void slices__cover_a_scalar(void)
{
  tn__region scalar = { 0, NULL, NULL }, two[] = { scalar, scalar };
  bool out = false;
  CHECK_OK(tn__regions_cover(two, 1, &scalar, &out, &err), &err);
  CHECK(out);
  CHECK_OK(tn__regions_cover(two, 2, &scalar, &out, &err), &err);
  CHECK(!out);
}

/* A tensor cut at random along both dimensions is covered; without one slice, or with one twice, it is not. */
static void slices__cover_at_random(void)
{
  enum { ROWS = 40, COLUMNS = 50, MOST = 2000 };
  static box boxes[MOST];
  static tn__region regions[MOST];
  srand(7);
  for (int round = 0; round < 20; round++) {
    size_t n = 0;
    for (int64_t y = 0, h; y < ROWS; y += h) {
      h = 1 + rand() % 5;
      if (h > ROWS - y) h = ROWS - y;
      for (int64_t x = 0, w; x < COLUMNS; x += w) {
        w = 1 + rand() % 7;
        if (w > COLUMNS - x) w = COLUMNS - x;
        boxes[n] = (box){ { y, x }, { h, w } };
        regions[n] = region_of(&boxes[n]);
        n++;
      }
    }
    box all = { { 0, 0 }, { ROWS, COLUMNS } };
    tn__region whole = region_of(&all), last = regions[n - 1];
    bool out = false;
    CHECK_OK(tn__regions_cover(regions, n, &whole, &out, &err), &err);
    CHECK(out);
    CHECK_OK(tn__regions_cover(regions, n - 1, &whole, &out, &err), &err);
    CHECK(!out);
    regions[n - 1] = regions[(size_t)rand() % (n - 1)];
    CHECK_OK(tn__regions_cover(regions, n, &whole, &out, &err), &err);
    CHECK(!out);
    regions[n - 1] = last;
  }
}

/* ---- copies ---- */

/* Copies between every pair of regions of a tensor of rank 3 and compares with the numbers of the elements. */
static void slices__copies_put_elements_in_their_places(void)
{
  enum { A = 3, B = 4, C = 5 };
  int32_t from[A * B * C], to[A * B * C];
  srand(3);
  for (int round = 0; round < 3000; round++) {
    int64_t s[2][3], n[2][3], dims[] = { A, B, C };
    for (int k = 0; k < 2; k++)
      for (int d = 0; d < 3; d++) {
        n[k][d] = rand() % 3 == 0 ? dims[d] : 1 + rand() % dims[d];
        s[k][d] = rand() % (dims[d] - n[k][d] + 1);
      }
    tn__region in = { 3, s[0], n[0] }, out = { 3, s[1], n[1] };
    int32_t *p = from;
    for (int64_t a = 0; a < n[0][0]; a++)
      for (int64_t b = 0; b < n[0][1]; b++)
        for (int64_t c = 0; c < n[0][2]; c++) *p++ = (int32_t)(((s[0][0] + a) * B + s[0][1] + b) * C + s[0][2] + c);
    memset(to, 0xff, sizeof(to));
    tn__region_copy(&in, from, &out, to, sizeof(int32_t), NULL);
    p = to;
    for (int64_t a = s[1][0]; a < s[1][0] + n[1][0]; a++)
      for (int64_t b = s[1][1]; b < s[1][1] + n[1][1]; b++)
        for (int64_t c = s[1][2]; c < s[1][2] + n[1][2]; c++) {
          bool common = a >= s[0][0] && a < s[0][0] + n[0][0] && b >= s[0][1] && b < s[0][1] + n[0][1] &&
                        c >= s[0][2] && c < s[0][2] + n[0][2];
          CHECK_INT(*p++, common ? (a * B + b) * C + c : -1);
        }
  }
}

static void slices__rows_of_a_tensor_are_one_run(void)
{
  tn__runs runs;
  box rows = { { 2, 0 }, { 3, 8 } }, columns = { { 0, 2 }, { 6, 3 } }, all = { { 0, 0 }, { 6, 8 } };
  tn__region from = region_of(&rows), to = region_of(&all);
  tn__runs_init(&runs, &from, &to);
  CHECK_INT(runs.run, 24);
  CHECK_INT(runs.from, 0);
  CHECK_INT(runs.to, 16);
  CHECK(!tn__runs_next(&runs));
  from = region_of(&columns);
  tn__runs_init(&runs, &from, &to);
  for (int i = 0; i < 6; i++) {
    CHECK_INT(runs.run, 3);
    CHECK_INT(runs.from, 3 * i);
    CHECK_INT(runs.to, 8 * i + 2);
    CHECK_INT(tn__runs_next(&runs), i < 5);
  }
}

/* ---- text ---- */

static void slices__texts_of_tensorflow_are_read(void)
{
  int32_t rank;
  const int64_t *dims;
  tn__region r;
  char text[40];
  REQUIRE_OK(tn__slice_spec_parse(tn__slice_of("4 10 1,2:-"), &arena, &rank, &dims, &r, &err), &err);
  CHECK_INT(rank, 2);
  CHECK_INT(dims[1], 10);
  CHECK_STR(tn__region_format(text, sizeof(text), &r), "1,2:0,10");
  CHECK_STR(tn__region_format(text, 5, &r), "1,2:");
  r.lengths[0] = -1;
  CHECK_STR(tn__region_format(text, sizeof(text), &r), "-:0,10");
  REQUIRE_OK(tn__slice_spec_parse(tn__slice_of(""), &arena, &rank, &dims, &r, &err), &err);
  CHECK_INT(rank, -1);
  static const char *const wrong[] = { "4",
                                       "4 10",
                                       "4 10 0,2",
                                       "4 10 0,2:0,9:0,1",
                                       "4 10 0,5:0,10",
                                       "4 x 0,2:-",
                                       "4 10 0,0:-",
                                       "4 10 -1,2:-",
                                       "4 -10 0,2:-",
                                       "4 10 0:-",
                                       " ",
                                       "4 10 0,2:",
                                       "9223372036854775807 9223372036854775807 0,1:0,1" };
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
    CHECK_STATUS(tn__slice_spec_parse(tn__slice_of(wrong[i]), &arena, &rank, &dims, &r, &err), TN_INVALID_ARGUMENT,
                 NULL);
    CHECK(tn_error_message(&err)[0] != 0);
    tn_error_clear(&err);
  }
}

/* ---- keys ---- */

static void check_key(const char *name, size_t name_size, int32_t rank, int64_t *starts, int64_t *lengths,
                      const char *wanted, size_t size)
{
  tn__region r = { rank, starts, lengths }, back;
  tn__slice key, found;
  REQUIRE_OK(tn__slice_key((tn__slice){ name, name_size }, &r, &arena, &key, &err), &err);
  if (wanted != NULL) {
    CHECK_INT(key.size, size);
    CHECK_BYTES(key.data, wanted, size < key.size ? size : key.size);
  }
  REQUIRE(tn__slice_key_parse(key, &arena, &found, &back));
  CHECK_INT(found.size, name_size);
  CHECK_BYTES(found.data, name, name_size);
  CHECK(tn__region_equals(&r, &back));
  for (size_t n = 0; n < key.size; n++) CHECK(!tn__slice_key_parse((tn__slice){ key.data, n }, &arena, &found, &back));
}

/* The bytes are those of files of TensorFlow. */
static void slices__keys_are_those_of_tensorflow(void)
{
  check_key("m/w", 3, 2, (int64_t[]){ 0, 0 }, (int64_t[]){ 3, -1 }, "\0m/w\0\1\1\2\x80\x83\x80\x7f", 12);
  check_key("a\0\xff", 3, 1, (int64_t[]){ 5 }, (int64_t[]){ 6 }, "\0a\0\xff\xff\0\0\1\1\1\x85\x86", 12);
  check_key("x", 1, 0, NULL, NULL, "\0x\0\1\0", 5);
  check_key("x", 1, 1, (int64_t[]){ 64 }, (int64_t[]){ 8191 }, "\0x\0\1\1\1\xc0\x40\xdf\xff", 10);
  check_key("x", 1, 1, (int64_t[]){ 8192 }, (int64_t[]){ -65 }, "\0x\0\1\1\1\xe0\x20\0\x3f\xbf", 11);
}

static void slices__keys_of_all_sizes_are_read_back(void)
{
  for (int shift = 0; shift < 63; shift++)
    for (int64_t more = -1; more <= 1; more++) {
      int64_t value = ((int64_t)1 << shift) + more;
      check_key("k", 1, 1, &value, (int64_t[]){ ~value }, NULL, 0);
    }
  check_key("k", 1, 1, (int64_t[]){ INT64_MAX }, (int64_t[]){ INT64_MIN }, NULL, 0);
}

/* Keys compare as their parts do: by the name, then by the numbers. */
static void slices__keys_keep_the_order_of_numbers(void)
{
  static const int64_t values[] = {
    -1, 0, 1, 63, 64, 100, 8191, 8192, 1 << 20, INT32_MAX, (int64_t)1 << 40, INT64_MAX
  };
  tn__slice before = { "", 0 };
  for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
    int64_t start = values[i], length = 1;
    tn__region r = { 1, &start, &length };
    tn__slice key;
    REQUIRE_OK(tn__slice_key(tn__slice_of("k"), &r, &arena, &key, &err), &err);
    size_t n = key.size < before.size ? key.size : before.size;
    CHECK(n == 0 || memcmp(before.data, key.data, n) < 0);
    before = key;
  }
}

static void slices__other_keys_are_none_of_slices(void)
{
  tn__slice name;
  tn__region r;
  static const struct {
    const char *bytes;
    size_t size;
  } keys[] = { { "", 0 },
               { "m/w", 3 },
               { "\1\1x\0\1\0", 6 },
               { "\0x\0\2\0", 5 },
               { "\0x\0\1\2\1\0", 7 },
               { "\0x\0\1\0\0", 6 },
               { "\0x\0\1\1\1\xff\xff\x80\0\0\0\0\0\0\0\0\x80", 18 },
               { "\0x\0\1\x09", 5 },
               { "\0\xff\1\0\1\0", 6 } };
  for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
    CHECK_MSG(!tn__slice_key_parse((tn__slice){ keys[i].bytes, keys[i].size }, &arena, &name, &r), "key %zu", i);
}

static tn_status cover(void *arg)
{
  bool out;
  box whole = { { 0, 0 }, { 6, 8 } }, rows[] = { { { 3, 0 }, { 3, 8 } }, { { 0, 0 }, { 3, 8 } } };
  tn__region all = region_of(&whole), regions[] = { region_of(&rows[0]), region_of(&rows[1]) };
  return tn__regions_cover(regions, 2, &all, &out, NULL);
}

static tn_status parse(void *arg)
{
  int32_t rank;
  const int64_t *dims;
  tn__region r;
  tn__arena own;
  tn__slice key;
  tn__arena_init(&own, 256);
  tn_status s = tn__slice_spec_parse(tn__slice_of("4 10 1,2:-"), &own, &rank, &dims, &r, NULL);
  if (s == TN_OK) s = tn__slice_key(tn__slice_of("name"), &r, &own, &key, NULL);
  tn__arena_fini(&own);
  return s;
}

static void slices__nothing_leaks_without_memory(void)
{
  tn_test_oom_sweep(cover, NULL);
  tn_test_oom_sweep(parse, NULL);
}

TAP_MAIN_WITH(setup, teardown, TAP_TEST(slices__a_region_lies_within_its_tensor), TAP_TEST(slices__common_parts),
              TAP_TEST(slices__cover_a_tensor_exactly), TAP_TEST(slices__cover_a_scalar),
              TAP_TEST(slices__cover_at_random), TAP_TEST(slices__copies_put_elements_in_their_places),
              TAP_TEST(slices__rows_of_a_tensor_are_one_run), TAP_TEST(slices__texts_of_tensorflow_are_read),
              TAP_TEST(slices__keys_are_those_of_tensorflow), TAP_TEST(slices__keys_of_all_sizes_are_read_back),
              TAP_TEST(slices__keys_keep_the_order_of_numbers), TAP_TEST(slices__other_keys_are_none_of_slices),
              TAP_TEST(slices__nothing_leaks_without_memory))
