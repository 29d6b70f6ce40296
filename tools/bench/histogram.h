/* SPDX-License-Identifier: Apache-2.0 */
/* A histogram of durations with buckets that grow with the value: a bucket's width is at most 1/128 of its value, so
 * results are accurate to 0.4 %. A fixed-size block covers a nanosecond to centuries; adding a value takes a few
 * instructions. */
#ifndef TENON_TOOLS_BENCH_HISTOGRAM_H
#define TENON_TOOLS_BENCH_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

enum { BENCH_SUB_BITS = 7, BENCH_SUBS = 1 << BENCH_SUB_BITS, BENCH_BUCKETS = (64 - BENCH_SUB_BITS + 1) * BENCH_SUBS };

typedef struct bench_histogram {
  uint64_t n;
  uint64_t min, max; /* exact; UINT64_MAX and 0 if empty */
  uint64_t sum;
  uint64_t counts[BENCH_BUCKETS];
} bench_histogram;

void bench_histogram_clear(bench_histogram *h);
void bench_histogram_merge(bench_histogram *into, const bench_histogram *from);
double bench_histogram_mean(const bench_histogram *h); /* 0 if empty */
/* The value that a share (0 to 1) of all values does not exceed; between min and max. 0 if empty. */
uint64_t bench_histogram_quantile(const bench_histogram *h, double share);
/* The smallest and the largest value of a bucket. */
uint64_t bench_bucket_low(size_t bucket);
uint64_t bench_bucket_high(size_t bucket);

static inline size_t bench_bucket_of(uint64_t value)
{
  if (value < BENCH_SUBS) return (size_t)value;
  int shift = 63 - __builtin_clzll(value) - BENCH_SUB_BITS;
  return (((size_t)shift + 1) << BENCH_SUB_BITS) + (size_t)(value >> shift) - BENCH_SUBS;
}

static inline void bench_histogram_add(bench_histogram *h, uint64_t value)
{
  h->counts[bench_bucket_of(value)]++;
  h->n++;
  h->sum += value;
  if (value < h->min) h->min = value;
  if (value > h->max) h->max = value;
}

#endif
