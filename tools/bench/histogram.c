/* SPDX-License-Identifier: Apache-2.0 */
/* Queries on the histogram of histogram.h. */
#include <string.h>

#include <tools/bench/histogram.h>

void bench_histogram_clear(bench_histogram *h)
{
  memset(h, 0, sizeof(*h));
  h->min = UINT64_MAX;
}

void bench_histogram_merge(bench_histogram *into, const bench_histogram *from)
{
  into->n += from->n;
  into->sum += from->sum;
  if (from->min < into->min) into->min = from->min;
  if (from->max > into->max) into->max = from->max;
  if (from->n == 0) return;
  for (size_t i = bench_bucket_of(from->min), last = bench_bucket_of(from->max); i <= last; i++)
    into->counts[i] += from->counts[i];
}

double bench_histogram_mean(const bench_histogram *h) { return h->n > 0 ? (double)h->sum / (double)h->n : 0; }

uint64_t bench_bucket_low(size_t bucket)
{
  if (bucket < BENCH_SUBS) return bucket;
  return (uint64_t)(BENCH_SUBS + bucket % BENCH_SUBS) << (bucket / BENCH_SUBS - 1);
}

uint64_t bench_bucket_high(size_t bucket)
{
  return bucket + 1 < BENCH_BUCKETS ? bench_bucket_low(bucket + 1) - 1 : UINT64_MAX;
}

uint64_t bench_histogram_quantile(const bench_histogram *h, double share)
{
  if (h->n == 0) return 0;
  /* The rank of the value, rounded up: share 0.5 of 3 values is the second. */
  double wanted = share * (double)h->n;
  uint64_t rank = wanted >= (double)h->n ? h->n : (uint64_t)wanted, seen = 0;
  if ((double)rank < wanted) rank++;
  size_t bucket = bench_bucket_of(h->min), last = bench_bucket_of(h->max);
  for (; bucket < last; bucket++) {
    seen += h->counts[bucket];
    if (seen >= rank && seen > 0) break;
  }
  uint64_t low = bench_bucket_low(bucket), value = low + (bench_bucket_high(bucket) - low) / 2;
  if (value < h->min) value = h->min;
  return value > h->max ? h->max : value;
}
