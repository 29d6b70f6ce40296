/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions: every loop agrees with one element at a time, every set of axes with a simple
 * walk. */
#include <math.h>
#include <ops/kernel/elements/half.h>
#include <ops/kernel/reduce/reduce_plan.h>
#include <stdlib.h>
#include <string.h>
#include <conformance/support/oom.h>
#include <conformance/support/tap.h>

#define MOST 700 /* elements of a row; covers lanes and blocks of every kind */

/* Numbers whose sums and products are exact, or any bits for integers. */
static void fill(const tn__reduce_loops *l, void *data, size_t n)
{
  static const float numbers[] = { 0, 1, -2, 0.5f, 3, -1, 0.25f, 2 };
  srand(5);
  for (size_t i = 0; i < n; i++) {
    bool product = l->op == TN__REDUCE_PROD;
    int r = rand();
    float x = numbers[r % 8];
    if (product) x = r % 2 ? 1.0f : -1.0f;
    switch (l->dtype) {
    case TN_FLOAT: ((float *)data)[i] = x; break;
    case TN_DOUBLE: ((double *)data)[i] = x; break;
    case TN_HALF: ((uint16_t *)data)[i] = tn__half_from_float(x); break;
    case TN_BFLOAT16: ((uint16_t *)data)[i] = tn__bfloat16_from_float(x); break;
    case TN_COMPLEX64: ((float *)data)[2 * i] = x, ((float *)data)[2 * i + 1] = product ? 0 : -x; break;
    case TN_COMPLEX128: ((double *)data)[2 * i] = x, ((double *)data)[2 * i + 1] = product ? 0 : -x; break;
    case TN_BOOL: ((uint8_t *)data)[i] = rand() % 40 != 0; break;
    default:
      for (size_t b = 0, size = tn_dtype_size(l->dtype); b < size; b++)
        ((uint8_t *)data)[i * size + b] = (uint8_t)rand();
    }
  }
}

/* Elements [at, at + n), one at a time. */
static void one_by_one(const tn__reduce_loops *l, void *acc, const char *in, int64_t n, int64_t stride)
{
  for (int64_t i = 0; i < n; i++) l->columns(acc, in + (size_t)(i * stride) * tn_dtype_size(l->dtype), 1, 1, 1);
}

/* The sign of a complex zero depends on the order of products. */
static bool same(const tn__reduce_loops *l, const void *a, const void *b, int64_t n)
{
  bool equal = true;
  if (l->dtype == TN_COMPLEX64) {
    for (int64_t i = 0; i < 2 * n; i++) equal &= ((const float *)a)[i] == ((const float *)b)[i];
    return equal;
  }
  if (l->dtype == TN_COMPLEX128) {
    for (int64_t i = 0; i < 2 * n; i++) equal &= ((const double *)a)[i] == ((const double *)b)[i];
    return equal;
  }
  return memcmp(a, b, (size_t)n * tn_dtype_size(l->dtype)) == 0;
}

static void check_rows(const tn__reduce_loops *l, const char *in)
{
  size_t size = tn_dtype_size(l->dtype);
  for (int64_t n = 1; n < MOST; n++) {
    _Alignas(16) char found[3 * TN__REDUCE_ACC_MAX], wanted[3 * TN__REDUCE_ACC_MAX];
    _Alignas(16) char a[48], b[48];
    l->init(found, 3);
    l->init(wanted, 3);
    l->rows(found, in, n, n + 5, 3);
    for (int o = 0; o < 3; o++)
      one_by_one(l, wanted + (size_t)o * l->acc_size, in + (size_t)(o * (n + 5)) * size, n, 1);
    l->finish(a, found, 3, n);
    l->finish(b, wanted, 3, n);
    if (same(l, a, b, 3)) continue;
    FAIL("operation %d of %s: rows of %d differ", (int)l->op, tn_dtype_name(l->dtype), (int)n);
    return;
  }
}

static void check_columns(const tn__reduce_loops *l, const char *in)
{
  size_t size = tn_dtype_size(l->dtype);
  for (int64_t n = 1; n < 60; n++) {
    int64_t rows = 1 + n * 7 % 31;
    _Alignas(16) char found[60 * TN__REDUCE_ACC_MAX], wanted[60 * TN__REDUCE_ACC_MAX];
    _Alignas(16) char a[60 * 16], b[60 * 16];
    l->init(found, n);
    l->init(wanted, n);
    l->columns(found, in, rows, n + 3, n);
    for (int64_t j = 0; j < n; j++) one_by_one(l, wanted + (size_t)j * l->acc_size, in + (size_t)j * size, rows, n + 3);
    l->combine(found, wanted, 0); /* combining zero elements changes nothing */
    l->finish(a, found, n, rows);
    l->finish(b, wanted, n, rows);
    if (same(l, a, b, n)) continue;
    FAIL("operation %d of %s: %d rows of %d columns differ", (int)l->op, tn_dtype_name(l->dtype), (int)rows, (int)n);
    return;
  }
}

static void reduce__loops_agree_with_one_element_at_a_time(void)
{
  static _Alignas(64) char in[3 * (MOST + 5) * 16];
  int seen = 0;
  for (int op = 0; op <= TN__REDUCE_ANY; op++)
    for (tn_dtype d = 1; d <= TN_UINT64; d++) {
      const tn__reduce_loops *l = tn__reduce_loops_find((tn__reduce_op)op, d);
      if (l == NULL) continue;
      fill(l, in, sizeof in / 16);
      check_rows(l, in);
      check_columns(l, in);
      seen++;
    }
  CHECK_INT(seen, 4 * 14 + 2 * 12 + 2);
}

static void reduce__a_nan_wins_wherever_it_is(void)
{
  const tn__reduce_loops *l = tn__reduce_loops_find(TN__REDUCE_MAX, TN_FLOAT);
  static float in[300];
  for (int at = 0; at < 300; at++) {
    for (int i = 0; i < 300; i++) in[i] = (float)i;
    in[at] = NAN;
    float acc, out;
    l->init(&acc, 1);
    l->rows(&acc, in, 300, 300, 1);
    l->finish(&out, &acc, 1, 300);
    CHECK_MSG(out != out, "the NaN at %d is lost", at);
  }
}

static void reduce__sums_of_many_floats_are_exact_to_the_last_place(void)
{
  enum { N = 1 << 20 };
  float *in = malloc(N * sizeof *in), out;
  const tn__reduce_loops *l = tn__reduce_loops_find(TN__REDUCE_SUM, TN_FLOAT);
  for (int i = 0; i < N; i++) in[i] = 0.1f;
  double acc;
  l->init(&acc, 1);
  l->rows(&acc, in, N, N, 1);
  l->finish(&out, &acc, 1, N);
  CHECK_DOUBLE(out, 0.1f * (double)N, 0.01);
  free(in);
}

static void reduce__no_elements_give_the_identity(void)
{
  static const struct {
    tn__reduce_op op;
    float wanted;
  } cases[] = { { TN__REDUCE_SUM, 0 }, { TN__REDUCE_PROD, 1 }, { TN__REDUCE_NORM, 0 },
                { TN__REDUCE_MAX, -INFINITY }, { TN__REDUCE_MIN, INFINITY }, { TN__REDUCE_MEAN, NAN } };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const tn__reduce_loops *l = tn__reduce_loops_find(cases[i].op, TN_FLOAT);
    double acc[2];
    float out;
    l->init(acc, 1);
    l->finish(&out, acc, 1, 0);
    CHECK(out == cases[i].wanted || (out != out && cases[i].wanted != cases[i].wanted));
  }
}

/* ---- plans ---- */

static void check_axes(const int64_t *dims, int32_t rank, unsigned axes)
{
  const tn__reduce_loops *l = tn__reduce_loops_find(TN__REDUCE_SUM, TN_INT32);
  bool reduced[8];
  int64_t n = 1, outs = 1;
  for (int32_t i = 0; i < rank; i++) {
    reduced[i] = axes >> i & 1;
    n *= dims[i];
    if (!reduced[i]) outs *= dims[i];
  }
  int32_t *in = malloc((size_t)n * sizeof *in), *found = malloc((size_t)outs * sizeof *found);
  int32_t *wanted = calloc((size_t)outs, sizeof *wanted);
  for (int64_t i = 0; i < n; i++) {
    int64_t at = 0, rest = i, step = 1;
    in[i] = (int32_t)(i * 2654435761u);
    for (int32_t k = rank - 1; k >= 0; rest /= dims[k--]) {
      if (reduced[k]) continue;
      at += rest % dims[k] * step;
      step *= dims[k];
    }
    wanted[at] = (int32_t)((uint32_t)wanted[at] + (uint32_t)in[i]);
  }
  tn__reduce_plan *p = tn__reduce_plan_create(l, dims, rank, reduced);
  REQUIRE_PTR(p);
  tn_kernel_ctx ctx = { .struct_size = sizeof ctx, .scratch = malloc(tn__reduce_plan_scratch(p) + 1) };
  tn__reduce_plan_run(p, &ctx, in, found);
  CHECK_MSG(memcmp(found, wanted, (size_t)outs * sizeof *found) == 0, "rank %d, first %d, axes %x", (int)rank,
            (int)dims[0], axes);
  free(ctx.scratch);
  tn__reduce_plan_destroy(p);
  free(in);
  free(found);
  free(wanted);
}

static void reduce__every_set_of_axes(void)
{
  static const int64_t shapes[][6] = { { 2, 3, 4, 5, 2, 3 }, { 1, 7, 1, 3, 5, 1 }, { 2, 1, 1, 9, 2, 2 },
                                       { 3, 300, 2, 1, 1, 2 } };
  for (int s = 0; s < 4; s++)
    for (int32_t rank = 0; rank <= 6; rank++)
      for (unsigned axes = 0; axes < 1u << rank; axes++) check_axes(shapes[s], rank, axes);
}

static void reduce__parts_add_up(void)
{
  check_axes((int64_t[]){ 300000, 3 }, 2, 1);
  check_axes((int64_t[]){ 2, 300000 }, 2, 2);
  check_axes((int64_t[]){ 500, 3, 700 }, 3, 5);
}

static void reduce__few_results_of_many_elements_are_divided_into_parts(void)
{
  const tn__reduce_loops *l = tn__reduce_loops_find(TN__REDUCE_SUM, TN_FLOAT);
  int64_t dims[] = { 1000000, 3 };
  tn__reduce_plan *p = tn__reduce_plan_create(l, dims, 2, (bool[]){ true, false });
  REQUIRE_PTR(p);
  CHECK(p->parts > 1);
  CHECK_INT((p->parts - 1) * p->part < p->count && p->parts * p->part >= p->count, 1);
  CHECK_INT(tn__reduce_plan_scratch(p), p->parts * 3 * sizeof(double));
  tn__reduce_plan_destroy(p);
  p = tn__reduce_plan_create(l, dims, 2, (bool[]){ false, true });
  REQUIRE_PTR(p);
  CHECK_INT(p->parts, 1);
  tn__reduce_plan_destroy(p);
}

static tn_status plan_once(void *arg)
{
  int64_t dims[] = { 2, 3, 4, 5 };
  tn__reduce_plan *p = tn__reduce_plan_create(arg, dims, 4, (bool[]){ true, false, true, false });
  if (p == NULL) return TN_RESOURCE_EXHAUSTED;
  tn__reduce_plan_destroy(p);
  return TN_OK;
}

static void reduce__survives_lack_of_memory(void)
{
  tn_test_oom_sweep(plan_once, (void *)tn__reduce_loops_find(TN__REDUCE_SUM, TN_FLOAT));
}

TAP_MAIN(
  TAP_TEST(reduce__loops_agree_with_one_element_at_a_time),
  TAP_TEST(reduce__a_nan_wins_wherever_it_is),
  TAP_TEST(reduce__sums_of_many_floats_are_exact_to_the_last_place),
  TAP_TEST(reduce__no_elements_give_the_identity),
  TAP_TEST(reduce__every_set_of_axes),
  TAP_TEST(reduce__parts_add_up),
  TAP_TEST(reduce__few_results_of_many_elements_are_divided_into_parts),
  TAP_TEST(reduce__survives_lack_of_memory))
