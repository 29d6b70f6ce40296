/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/kernel/product/pairs.h>
#include <ops/kernel/elements/vectors.h>

bool tn__pairs_can(tn_dtype dtype) { return dtype == TN_INT8 || dtype == TN_UINT8; }

/* A conversion. Pair j of line i is of the numbers at i line + j step and `second` further, or of the first one
 * alone. */
typedef struct job {
  const void *from;
  uint32_t *to;
  int64_t lines, items; /* of each matrix, in the result */
  int64_t size;         /* numbers of a matrix in `from` */
  int64_t line, step, second;
  bool odd_line, odd_item; /* the last line, or the last item of a line, has one number only */
} job;

/* A line of adjacent numbers. */
#define LINE(T, suffix, attribute)                                                                       \
  static attribute void line_##T##suffix(const T *restrict a, const T *restrict b, uint32_t *restrict to, \
                                         int64_t n)                                                      \
  {                                                                                                      \
    for (int64_t j = 0; j < n; j++) to[j] = (uint32_t)(int32_t)a[j] << 16 >> 16 | (uint32_t)(int32_t)b[j] << 16; \
  }
#define LINE_FOR(T, suffix, attribute) LINE(T, _##suffix, attribute)
LINE(int8_t, , )
LINE(uint8_t, , )
TN__AVX2_LOOPS(LINE_FOR, int8_t)
TN__AVX2_LOOPS(LINE_FOR, uint8_t)

#define LINES(name, T)                                                                                   \
  static void name(void *user, int64_t begin, int64_t end)                                               \
  {                                                                                                      \
    static void (*const lines[])(const T *restrict, const T *restrict, uint32_t *restrict, int64_t) =     \
        TN__AVX2_FNS(line_##T);                                                                          \
    const job *p = user;                                                                                 \
    const int vectors = tn__vectors();                                                                   \
    for (int64_t i = begin; i < end; i++) {                                                              \
      const int64_t line = i % p->lines, step = p->step, n = p->items - p->odd_item;                     \
      const T *a = (const T *)p->from + i / p->lines * p->size + line * p->line, *b = a + p->second;     \
      uint32_t *to = p->to + i * p->items;                                                               \
      if (p->odd_line && line == p->lines - 1)                                                           \
        for (int64_t j = 0; j < n; j++) to[j] = (uint16_t)a[j * step];                                   \
      else if (step == 1)                                                                                \
        lines[vectors](a, b, to, n);                                                                     \
      else                                                                                               \
        for (int64_t j = 0; j < n; j++) to[j] = (uint16_t)a[j * step] | (uint32_t)b[j * step] << 16;     \
      if (p->odd_item) to[n] = (uint16_t)a[n * step];                                                    \
    }                                                                                                    \
  }
LINES(lines_i8, int8_t)
LINES(lines_u8, uint8_t)

static void run(tn_kernel_ctx *ctx, tn_dtype dtype, int64_t matrices, job *j)
{
  const int64_t n = matrices * j->lines, grain = j->items > 0 && j->items < 4096 ? 4096 / j->items + 1 : 1;
  void (*fn)(void *user, int64_t begin, int64_t end) = dtype == TN_INT8 ? lines_i8 : lines_u8;
  if (ctx == NULL) fn(j, 0, n);
  else if (n > 0) tn_parallel_for(ctx, n, grain, (double)j->items / 4, fn, j);
}

void tn__pairs_left(tn_kernel_ctx *ctx, tn_dtype dtype, const void *from, int64_t matrices, int64_t m, int64_t k,
                    int64_t row, int64_t column, void *to)
{
  job j = { .from = from, .to = to, .lines = m, .items = tn__pairs_of(k), .size = m * k, .line = row,
            .step = 2 * column, .second = column, .odd_item = k % 2 != 0 };
  run(ctx, dtype, matrices, &j);
}

void tn__pairs_right(tn_kernel_ctx *ctx, tn_dtype dtype, const void *from, int64_t matrices, int64_t k, int64_t n,
                     int64_t row, int64_t column, void *to)
{
  job j = { .from = from, .to = to, .lines = tn__pairs_of(k), .items = n, .size = k * n, .line = 2 * row,
            .step = column, .second = row, .odd_line = k % 2 != 0 };
  run(ctx, dtype, matrices, &j);
}
