/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of this machine: multiply-adds of floats in registers, and repeated reading of a block of memory. */
#include <bench/model.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define TURNS 20000
#define ROUNDS 9

/* Twelve independent sums: enough for a multiply-add latency of four cycles at three each cycle. */
#define FOR_SUMS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define DECLARE(i) V s##i = x + (float)(i);
#define STEP(i) s##i = s##i * x + y;
#define TOTAL(i) +s##i
#define READ_BACK(i) r##i += p[at + i];
#define FOR_READS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)

/* Both measurements for one vector width. `total` keeps the compiler from removing the work. */
#define DEFINE(NAME, TARGET, BYTES)                                              \
  typedef float NAME##_v __attribute__((vector_size(BYTES), may_alias));         \
  TARGET static float NAME##_flops(float seed)                                   \
  {                                                                              \
    typedef NAME##_v V;                                                          \
    V x = (V){ 0 } + seed, y = x * 0.5f;                                         \
    FOR_SUMS(DECLARE)                                                            \
    for (int i = 0; i < TURNS; i++) {                                            \
      FOR_SUMS(STEP)                                                             \
    }                                                                            \
    V total = x FOR_SUMS(TOTAL);                                                 \
    return total[0];                                                             \
  }                                                                              \
  TARGET static float NAME##_read(const void *data, size_t size)                 \
  {                                                                              \
    typedef NAME##_v V;                                                          \
    const V *p = data;                                                           \
    V r0 = { 0 }, r1 = r0, r2 = r0, r3 = r0, r4 = r0, r5 = r0, r6 = r0, r7 = r0; \
    for (size_t at = 0; at + 8 <= size / (BYTES); at += 8) {                     \
      FOR_READS(READ_BACK)                                                       \
    }                                                                            \
    V total = r0 + r1 + r2 + r3 + r4 + r5 + r6 + r7;                             \
    return total[0];                                                             \
  }

DEFINE(plain, , 16)
#if defined(__x86_64__)
DEFINE(avx2, __attribute__((target("avx2,fma"))), 32)
DEFINE(avx512, __attribute__((target("avx512f"))), 64)
#endif

typedef struct isa {
  const char *name;
  int lanes;
  float (*flops)(float seed);
  float (*read)(const void *data, size_t size);
} isa;

static isa best_isa(void)
{
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return (isa){ "AVX-512", 16, avx512_flops, avx512_read };
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return (isa){ "AVX2", 8, avx2_flops, avx2_read };
#endif
  return (isa){ "portable", 4, plain_flops, plain_read };
}

typedef struct worker {
  pthread_t thread;
  isa with;
  void *data;
  size_t size;
  double flops, bandwidth;
  float total;
} worker;

static void measure_flops(worker *w)
{
  for (int round = 0; round < ROUNDS; round++) {
    double t = model_now();
    for (int i = 0; i < 20; i++) w->total += w->with.flops(0.25f);
    t = model_now() - t;
    double rate = 20.0 * TURNS * 12 * w->with.lanes * 2 / t;
    if (rate > w->flops) w->flops = rate;
  }
}

static void measure_bandwidth(worker *w)
{
  int turns = (int)((size_t)(64 << 20) / w->size) + 1;
  for (int round = 0; round < ROUNDS; round++) {
    double t = model_now();
    for (int i = 0; i < turns; i++) w->total += w->with.read(w->data, w->size);
    t = model_now() - t;
    double rate = (double)turns * (double)w->size / t;
    if (rate > w->bandwidth) w->bandwidth = rate;
  }
}

static void *work(void *user)
{
  worker *w = user;
  measure_flops(w);
  measure_bandwidth(w);
  return NULL;
}

void model_machine(size_t bytes, int threads)
{
  isa with = best_isa();
  worker *workers = model_alloc((size_t)threads * sizeof *workers);
  double flops = 0, bandwidth = 0;
  size_t each = (bytes / (size_t)threads + 4095) & ~(size_t)4095;
  for (int i = 0; i < threads; i++) {
    workers[i] = (worker){ .with = with, .size = each, .data = aligned_alloc(4096, each) };
    if (workers[i].data == NULL) model_fail("no memory");
    for (size_t k = 0; k < each; k++) ((char *)workers[i].data)[k] = (char)(k & 1);
    if (i > 0 && pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) model_fail("no thread");
  }
  work(&workers[0]);
  for (int i = 0; i < threads; i++) {
    if (i > 0) pthread_join(workers[i].thread, NULL);
    flops += workers[i].flops;
    bandwidth += workers[i].bandwidth;
    free(workers[i].data);
  }
  volatile float used = workers[0].total;
  (void)used;
  printf("{\"flops\": %.6g, \"bandwidth\": %.6g, \"isa\": \"%s\"}\n", flops, bandwidth, with.name);
  free(workers);
}
