/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of this machine (machine.h). In each round all threads begin together, and the rate of a round is the sum
 * of theirs; the best round counts. A block is read in chunks, and each chunk's best round counts, so that other load
 * on the machine is left out of long blocks too. Compiled with -ffp-contract=fast, so that multiplications and
 * additions fuse. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <tools/common/machine.h>

#define TURNS 20000
#define ROUNDS 9
#define FLOPS_CALLS 20
#define CHUNK ((size_t)4 << 20)         /* read between two looks at the clock */
#define MORE_ROUNDS ((size_t)256 << 20) /* bytes */
#define ALIGN ((size_t)4096)            /* of a thread's part: a multiple of what a turn of the loops reads */
#define HUGE_PAGE ((size_t)2 << 20)

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

typedef struct team {
  isa with;
  pthread_barrier_t start;
  pthread_mutex_t gate;
  bool complete; /* guarded by gate */
  bool flops;    /* measure arithmetic too */
} team;

typedef struct worker {
  team *team;
  pthread_t thread;
  void *data;
  size_t size;
  double *best; /* seconds by chunk */
  double flops[ROUNDS], bandwidth;
  float total;
} worker;

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void measure_flops(worker *w)
{
  for (int round = 0; round < ROUNDS; round++) {
    pthread_barrier_wait(&w->team->start);
    double t = now();
    for (int i = 0; i < FLOPS_CALLS; i++) w->total += w->team->with.flops(0.25f);
    w->flops[round] = (double)FLOPS_CALLS * TURNS * 12 * w->team->with.lanes * 2 / (now() - t);
  }
}

/* A small block is read several times, so that a chunk takes long enough for the clock, and in more rounds. */
static void measure_bandwidth(worker *w)
{
  size_t chunk = w->size < CHUNK ? w->size : CHUNK, n = (w->size + chunk - 1) / chunk;
  int turns = (int)(CHUNK / chunk), rounds = ROUNDS + (int)(MORE_ROUNDS / (n * CHUNK));
  for (size_t k = 0; k < w->size; k++) ((char *)w->data)[k] = (char)(k & 1);
  for (int round = 0; round < rounds; round++) {
    pthread_barrier_wait(&w->team->start);
    for (size_t c = 0; c < n; c++) {
      size_t size = c + 1 < n ? chunk : w->size - c * chunk;
      double t = now();
      for (int i = 0; i < turns; i++) w->total += w->team->with.read((char *)w->data + c * chunk, size);
      t = (now() - t) / turns;
      if (round == 0 || t < w->best[c]) w->best[c] = t;
    }
  }
  double all = 0;
  for (size_t c = 0; c < n; c++) all += w->best[c];
  w->bandwidth = all > 0 ? (double)w->size / all : 0;
}

static void measure(worker *w)
{
  if (w->team->flops) measure_flops(w);
  measure_bandwidth(w);
}

/* Threads wait at the gate until all of them are there, for a missing one would be waited for at the barrier. */
static void *work(void *user)
{
  worker *w = user;
  pthread_mutex_lock(&w->team->gate);
  bool go = w->team->complete;
  pthread_mutex_unlock(&w->team->gate);
  if (go) measure(w);
  return NULL;
}

static double best_flops(const worker *workers, size_t n)
{
  double most = 0;
  for (int round = 0; round < ROUNDS; round++) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += workers[i].flops[round];
    if (sum > most) most = sum;
  }
  return most;
}

/* In huge pages if the system has them, like the library's large blocks. */
static void *allocate(size_t size)
{
  void *data = aligned_alloc(HUGE_PAGE, (size + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1));
#ifdef MADV_HUGEPAGE
  if (data != NULL && size >= HUGE_PAGE) madvise(data, size & ~(HUGE_PAGE - 1), MADV_HUGEPAGE);
#endif
  return data;
}

/* Worker 0 is the calling thread. */
static bool run_team(team *t, worker *workers, int n)
{
  int made = 1;
  pthread_mutex_lock(&t->gate);
  while (made < n && pthread_create(&workers[made].thread, NULL, work, &workers[made]) == 0) made++;
  t->complete = made == n;
  pthread_mutex_unlock(&t->gate);
  if (t->complete) measure(&workers[0]);
  for (int i = 1; i < made; i++) pthread_join(workers[i].thread, NULL);
  return t->complete;
}

static bool measure_all(size_t bytes, int threads, bool flops, machine_limits *out)
{
  size_t n = threads > 1 ? (size_t)threads : 1, each = (bytes / n + ALIGN) & ~(ALIGN - 1);
  team t = { .with = best_isa(), .flops = flops };
  worker *workers = calloc(n, sizeof *workers);
  bool ok = workers != NULL && pthread_barrier_init(&t.start, NULL, (unsigned)n) == 0;
  if (!ok) {
    free(workers);
    return false;
  }
  pthread_mutex_init(&t.gate, NULL);
  for (size_t i = 0; i < n; i++) {
    workers[i] = (worker){ .team = &t, .size = each, .data = allocate(each) };
    workers[i].best = calloc(each / CHUNK + 1, sizeof(double));
    ok = ok && workers[i].data != NULL && workers[i].best != NULL;
  }
  ok = ok && run_team(&t, workers, (int)n);
  volatile float used = workers[0].total;
  (void)used;
  if (ok && flops) out->flops = best_flops(workers, n);
  out->bandwidth = 0;
  out->isa = t.with.name;
  for (size_t i = 0; i < n; i++) {
    out->bandwidth += workers[i].bandwidth;
    free(workers[i].data);
    free(workers[i].best);
  }
  pthread_mutex_destroy(&t.gate);
  pthread_barrier_destroy(&t.start);
  free(workers);
  return ok;
}

int machine_cpus(void)
{
#ifdef CPU_COUNT
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return CPU_COUNT(&set);
#endif
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online < 1 || online > INT16_MAX ? 1 : (int)online;
}

bool machine_measure(size_t bytes, int threads, machine_limits *out) { return measure_all(bytes, threads, true, out); }

bool machine_measure_reading(size_t bytes, int threads, machine_limits *out)
{
  return measure_all(bytes, threads, false, out);
}
