/* SPDX-License-Identifier: Apache-2.0 */
/* The histogram of `tenon bench`: values are recorded with little error, from nanoseconds to
 * centuries. */
#include <math.h>
#include <stdlib.h>

#include <conformance/support/tap.h>
#include <tools/bench/histogram.h>

static bench_histogram h, other;

static void bench_histogram__buckets_cover_every_value_once(void)
{
  CHECK(bench_bucket_low(0) == 0);
  CHECK(bench_bucket_high(BENCH_BUCKETS - 1) == UINT64_MAX);
  for (size_t i = 0; i < BENCH_BUCKETS; i++) {
    uint64_t low = bench_bucket_low(i), high = bench_bucket_high(i);
    CHECK(bench_bucket_of(low) == i);
    CHECK(bench_bucket_of(high) == i);
    CHECK(bench_bucket_of(low + (high - low) / 2) == i);
    CHECK(i + 1 == BENCH_BUCKETS || bench_bucket_low(i + 1) == high + 1);
    /* At most 1 % of its values wide. */
    CHECK((double)(high - low) <= 0.01 * (double)low);
  }
}

static void bench_histogram__one_value_is_exact(void)
{
  static const uint64_t values[] = { 0, 1, 127, 128, 255, 256, 257, 100000, 86400000000000, UINT64_MAX };
  for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
    bench_histogram_clear(&h);
    bench_histogram_add(&h, values[i]);
    CHECK(h.min == values[i]);
    CHECK(h.max == values[i]);
    CHECK(bench_histogram_quantile(&h, 0) == values[i]);
    CHECK(bench_histogram_quantile(&h, 0.5) == values[i]);
    CHECK(bench_histogram_quantile(&h, 1) == values[i]);
  }
}

static void bench_histogram__empty(void)
{
  bench_histogram_clear(&h);
  CHECK(bench_histogram_quantile(&h, 0.5) == 0);
  CHECK(!(bench_histogram_mean(&h) > 0));
  bench_histogram_clear(&other);
  bench_histogram_merge(&h, &other);
  CHECK(h.n == 0);
  bench_histogram_add(&other, 5);
  bench_histogram_merge(&h, &other);
  CHECK(h.min == 5);
  CHECK(h.max == 5);
}

static int compare(const void *a, const void *b)
{
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

/* Many values from 100 ns to three hours: compares all quantiles with those of the sorted list;
 * half of the values are merged in. */
static void bench_histogram__quantiles_are_within_one_percent(void)
{
  enum { N = 20000 };
  static uint64_t values[N];
  uint64_t random = 88172645463325252u;
  double sum = 0;
  bench_histogram_clear(&h);
  bench_histogram_clear(&other);
  for (int i = 0; i < N; i++) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    values[i] = (uint64_t)(100 * exp((double)(random >> 11) / 9007199254740992.0 * log(1.08e11)));
    sum += (double)values[i];
    bench_histogram_add(i % 2 == 0 ? &h : &other, values[i]);
  }
  bench_histogram_merge(&h, &other);
  qsort(values, N, sizeof(values[0]), compare);
  CHECK(h.n == N);
  CHECK(h.min == values[0]);
  CHECK(h.max == values[N - 1]);
  CHECK_DOUBLE(bench_histogram_mean(&h), sum / N, 1e-9 * sum / N);
  for (int rank = 1; rank <= N; rank++) {
    double value = (double)bench_histogram_quantile(&h, (double)rank / N), wanted = (double)values[rank - 1];
    CHECK(fabs(value - wanted) <= 0.01 * wanted);
  }
}

static void bench_histogram__quantiles_of_few_values(void)
{
  bench_histogram_clear(&h);
  for (uint64_t i = 1; i <= 3; i++) bench_histogram_add(&h, 10 * i);
  CHECK(bench_histogram_quantile(&h, 0.5) == 20);
  CHECK(bench_histogram_quantile(&h, 0.9) == 30);
  CHECK(bench_histogram_quantile(&h, 0.3) == 10);
}

TAP_MAIN(TAP_TEST(bench_histogram__buckets_cover_every_value_once), TAP_TEST(bench_histogram__one_value_is_exact),
         TAP_TEST(bench_histogram__empty), TAP_TEST(bench_histogram__quantiles_are_within_one_percent),
         TAP_TEST(bench_histogram__quantiles_of_few_values))
