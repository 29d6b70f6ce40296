/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between two layouts of elements, compared with copying one element at a time. */
#include <ops/kernel/move/strided.h>

#include <string.h>
#include <conformance/support/oom.h>
#include <conformance/support/tap.h>

#define MAX_BYTES (1 << 22)

static unsigned char from[MAX_BYTES], to[MAX_BYTES], wanted[MAX_BYTES];

/* Copies element by element; elements around the target must not change. */
static void expect_copy(const tn__strided *plan, const tn__strided_dim *dims, int32_t rank, int64_t first,
                        size_t element)
{
  int64_t index[8] = { 0 }, count = 1, last = 0;
  for (int32_t i = 0; i < rank; i++) {
    count *= dims[i].size;
    last += (dims[i].size - 1) * dims[i].to;
  }
  size_t room = (size_t)(last + 9) * element;
  CHECK(room <= MAX_BYTES);
  memset(to, 0xa5, room);
  memset(wanted, 0xa5, room);
  for (int64_t n = 0; n < count; n++) {
    int64_t in = first, out = 0;
    for (int32_t i = 0; i < rank; i++) {
      in += index[i] * dims[i].from;
      out += index[i] * dims[i].to;
    }
    memcpy(wanted + out * (int64_t)element, from + in * (int64_t)element, element);
    for (int32_t i = rank - 1; i >= 0; i--) {
      if (++index[i] < dims[i].size) break;
      index[i] = 0;
    }
  }
  CHECK(tn__strided_run(plan, NULL, from + first * (int64_t)element, to) == TN_OK);
  CHECK(memcmp(to, wanted, room) == 0);
}

/* Dimensions in the order of the target, with strides in elements. */
static void check_copy(tn_dtype dtype, const tn__strided_dim *dims, int32_t rank, int64_t first)
{
  tn__strided s;
  tn__strided_init(&s, dtype);
  for (int32_t i = 0; i < rank; i++) tn__strided_add(&s, dims[i].size, dims[i].from, dims[i].to);
  tn__strided_plan(&s);
  expect_copy(&s, dims, rank, first, tn_dtype_size(dtype));
}

static void check_order(tn_dtype dtype, const int64_t *sizes, const int *order, int32_t rank)
{
  int64_t steps[8], step = 1;
  tn__strided_dim dims[8];
  for (int32_t i = rank - 1; i >= 0; i--) {
    steps[i] = step;
    step *= sizes[i];
  }
  for (int32_t i = 0; i < rank; i++) {
    step /= sizes[order[i]];
    dims[i] = (tn__strided_dim){ sizes[order[i]], steps[order[i]], step };
  }
  check_copy(dtype, dims, rank, 0);
}

static const tn_dtype dtypes[] = { TN_UINT8, TN_HALF, TN_FLOAT, TN_DOUBLE, TN_COMPLEX128 };

static void fill_source(void)
{
  uint32_t x = 1;
  for (size_t i = 0; i < sizeof from; i++) from[i] = (unsigned char)((x = x * 1664525u + 1013904223u) >> 24);
}

/* Sizes below, at and above those of a block, in both directions, including rows that collide in
 * a cache. */
static void strided__transposes_matrices_of_every_size(void)
{
  static const int64_t sizes[] = { 2, 3, 7, 16, 31, 64, 65, 130, 256 };
  fill_source();
  for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++)
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
      for (size_t j = 0; j < sizeof sizes / sizeof sizes[0]; j++)
        check_order(dtypes[d], (const int64_t[]){ sizes[i], sizes[j] }, (const int[]){ 1, 0 }, 2);
  for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
    check_order(dtypes[d], (const int64_t[]){ 100, 1024 }, (const int[]){ 1, 0 }, 2);
    check_order(dtypes[d], (const int64_t[]){ 3, 40000 }, (const int[]){ 1, 0 }, 2);
    check_order(dtypes[d], (const int64_t[]){ 40000, 3 }, (const int[]){ 1, 0 }, 2);
  }
}

static void strided__copies_dimensions_in_any_order(void)
{
  static const int orders[][4] = { { 0, 2, 1, 3 }, { 3, 2, 1, 0 }, { 1, 0, 3, 2 }, { 0, 3, 1, 2 }, { 2, 3, 0, 1 },
                                   { 1, 2, 3, 0 }, { 0, 1, 3, 2 }, { 0, 1, 2, 3 }, { 2, 0, 1, 3 } };
  static const int64_t sizes[][4] = { { 2, 17, 5, 3 }, { 9, 2, 70, 4 }, { 3, 1, 33, 40 }, { 20, 6, 1, 2 } };
  fill_source();
  for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++)
    for (size_t o = 0; o < sizeof orders / sizeof orders[0]; o++)
      for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) check_order(dtypes[d], sizes[s], orders[o], 4);
}

/* Reversed, and into every second place: elements in between are not written. */
static void strided__copies_in_reverse_and_with_gaps(void)
{
  fill_source();
  for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
    check_copy(dtypes[d], (const tn__strided_dim[]){ { 1000, -1, 1 } }, 1, 999);
    check_copy(dtypes[d], (const tn__strided_dim[]){ { 50, -20, 20 }, { 20, 1, 1 } }, 2, 49 * 20);
    check_copy(dtypes[d], (const tn__strided_dim[]){ { 700, 3, 3 }, { 3, -1, 1 } }, 2, 2);
    check_copy(dtypes[d], (const tn__strided_dim[]){ { 30, 40, 200 }, { 40, 1, 2 } }, 2, 0);
    check_copy(dtypes[d], (const tn__strided_dim[]){ { 40, 1, 100 }, { 30, 40, 3 } }, 2, 0);
  }
}

static void strided__detects_contiguous_and_empty_copies(void)
{
  tn__strided s;
  tn__strided_init(&s, TN_FLOAT);
  tn__strided_add(&s, 3, 20, 20);
  tn__strided_add(&s, 1, 7, 9);
  tn__strided_add(&s, 20, 1, 1);
  tn__strided_plan(&s);
  CHECK(tn__strided_is_flat(&s) && s.width == 240);
  tn__strided_init(&s, TN_FLOAT);
  for (int i = 0; i < 100; i++) tn__strided_add(&s, 2, 1, 3);
  tn__strided_add(&s, 0, 1, 1);
  tn__strided_plan(&s);
  CHECK(s.empty && tn__strided_run(&s, NULL, NULL, NULL) == TN_OK);
}

TAP_MAIN(
  TAP_TEST(strided__transposes_matrices_of_every_size),
  TAP_TEST(strided__copies_dimensions_in_any_order),
  TAP_TEST(strided__copies_in_reverse_and_with_gaps),
  TAP_TEST(strided__detects_contiguous_and_empty_copies))
