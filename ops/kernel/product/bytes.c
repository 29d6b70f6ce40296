/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/kernel/elements/vectors.h>
#include <ops/kernel/product/bytes.h>
#include <string.h>
#if TN__VECTORS > 1
#include <immintrin.h>
#endif

#define NR 16       /* columns of a panel */
#define MR 6        /* rows of a tile */
#define BLOCK 24    /* rows that share a panel while it is in the L1 cache */
#define CHUNK 256   /* terms at a time; even */

static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t pairs_of(int64_t terms) { return terms / 2 + terms % 2; }

int64_t tn__bytes_panels(const tn__bytes *p) { return p->n / NR + (p->n % NR != 0); }

size_t tn__bytes_packed(const tn__bytes *p)
{
  return (size_t)tn__bytes_panels(p) * (size_t)pairs_of(p->k) * 2 * NR * sizeof(int16_t);
}

/* In a panel, the two terms of a pair are adjacent for each column. Missing terms and columns are 0. */
void tn__bytes_pack(const tn__bytes *p, const void *b, int64_t begin, int64_t end, void *to)
{
  int64_t pairs = pairs_of(p->k);
  for (int64_t panel = begin; panel < end; panel++) {
    int16_t *out = (int16_t *)to + panel * pairs * 2 * NR;
    int64_t first = panel * NR, columns = smaller(NR, p->n - first);
    if (p->k % 2 != 0 || columns < NR) memset(out, 0, (size_t)(pairs * 2 * NR) * sizeof *out);
    for (int64_t k = 0; k < p->k; k++) {
      int16_t *row = out + k / 2 * 2 * NR + k % 2;
      int64_t at = k * p->b_row + first * p->b_col;
      if (p->b_signed)
        for (int64_t j = 0; j < columns; j++) row[2 * j] = ((const int8_t *)b)[at + j * p->b_col];
      else
        for (int64_t j = 0; j < columns; j++) row[2 * j] = ((const uint8_t *)b)[at + j * p->b_col];
    }
  }
}

typedef struct packing {
  const tn__bytes *p;
  const void *b;
  void *to;
} packing;

static void pack_part(void *user, int64_t begin, int64_t end)
{
  const packing *r = user;
  tn__bytes_pack(r->p, r->b, begin, end, r->to);
}

void tn__bytes_pack_parallel(const tn__bytes *p, tn_kernel_ctx *ctx, const void *b, void *to)
{
  packing r = { p, b, to };
  double cost = 1 + 8 * (double)p->k;
  if (p->n > 0 && p->k > 0) tn_parallel_for(ctx, tn__bytes_panels(p), (int64_t)(20000 / cost) + 1, cost, pack_part, &r);
}

/* ---- rows of A ---- */

void tn__bytes_extend(const void *from, bool is_signed, int64_t step, int64_t n, int32_t zero, int16_t *to)
{
  const uint8_t *u = from;
  const int8_t *s = from;
  const int16_t z = (int16_t)zero;
  if (step != 1) {
    for (int64_t i = 0; i < n; i++) to[i] = (int16_t)((is_signed ? s[i * step] : u[i * step]) - z);
  } else if (is_signed) {
    for (int64_t i = 0; i < n; i++) to[i] = (int16_t)(s[i] - z);
  } else {
    for (int64_t i = 0; i < n; i++) to[i] = (int16_t)(u[i] - z);
  }
}

void tn__bytes_matrix_rows(const void *user, int64_t row, int64_t term, int64_t n, int16_t *to)
{
  const tn__bytes_matrix *a = user;
  if (a->ones) {
    for (int64_t i = 0; i < n; i++) to[i] = 1;
    return;
  }
  const char *from = (const char *)a->data + row * a->row + term * a->col;
  tn__bytes_extend(from, a->is_signed, a->col, n, a->zeros != NULL ? a->zeros[row] : a->zero, to);
}

/* ---- tiles ---- */

/* Sums of a tile: `rows` rows of A, CHUNK elements apart, times a panel of B. */
typedef void (*tile_fn)(const int16_t *a, int rows, const int16_t *b, int64_t pairs, int32_t sums[MR][NR]);

static void tile(const int16_t *a, int rows, const int16_t *b, int64_t pairs, int32_t sums[MR][NR])
{
  for (int r = 0; r < rows; r++) {
    int32_t s[NR] = { 0 };
    for (int64_t t = 0; t < pairs; t++) {
      int32_t first = a[r * CHUNK + 2 * t], second = a[r * CHUNK + 2 * t + 1];
      for (int j = 0; j < NR; j++) {
        int32_t low = first * b[(t * NR + j) * 2], high = second * b[(t * NR + j) * 2 + 1];
        s[j] = (int32_t)((uint32_t)s[j] + (uint32_t)low + (uint32_t)high);
      }
    }
    memcpy(sums[r], s, sizeof s);
  }
}

#if TN__VECTORS > 1
/* `rows` is a constant, so that the sums stay in registers. */
static inline __attribute__((always_inline, target("avx2"))) void tile_rows(const int16_t *a, int rows,
                                                                            const int16_t *b, int64_t pairs,
                                                                            int32_t sums[MR][NR])
{
  __m256i s[MR][2];
#pragma GCC unroll 6
  for (int r = 0; r < rows; r++) s[r][0] = s[r][1] = _mm256_setzero_si256();
  for (int64_t t = 0; t < pairs; t++) {
    __m256i left = _mm256_loadu_si256((const __m256i *)(b + t * 2 * NR));
    __m256i right = _mm256_loadu_si256((const __m256i *)(b + t * 2 * NR + NR));
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) {
      int32_t pair;
      memcpy(&pair, a + r * CHUNK + 2 * t, sizeof pair);
      __m256i both = _mm256_set1_epi32(pair);
      s[r][0] = _mm256_add_epi32(s[r][0], _mm256_madd_epi16(both, left));
      s[r][1] = _mm256_add_epi32(s[r][1], _mm256_madd_epi16(both, right));
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < rows; r++) {
    _mm256_storeu_si256((__m256i *)sums[r], s[r][0]);
    _mm256_storeu_si256((__m256i *)(sums[r] + NR / 2), s[r][1]);
  }
}

__attribute__((target("avx2"))) static void tile_avx2(const int16_t *a, int rows, const int16_t *b, int64_t pairs,
                                                      int32_t sums[MR][NR])
{
  switch (rows) {
  case 1: tile_rows(a, 1, b, pairs, sums); break;
  case 2: tile_rows(a, 2, b, pairs, sums); break;
  case 3: tile_rows(a, 3, b, pairs, sums); break;
  case 4: tile_rows(a, 4, b, pairs, sums); break;
  case 5: tile_rows(a, 5, b, pairs, sums); break;
  default: tile_rows(a, 6, b, pairs, sums); break;
  }
}
#endif

static tile_fn tile_of(void)
{
#if TN__VECTORS > 1
  if (tn__vectors() != TN__BASELINE) return tile_avx2;
#endif
  return tile;
}

/* ---- running ---- */

typedef struct run {
  const tn__bytes *p;
  tile_fn tile;
  const int16_t *b;
  int32_t *c;
  int64_t groups; /* of panels: the columns are divided among them */
} run;

/* Writes, or adds, the sums of a tile to C. */
static void put(const tn__bytes *p, int32_t sums[MR][NR], int rows, int64_t row, int64_t column, bool add, int32_t *c)
{
  int64_t columns = smaller(NR, p->n - column);
  for (int r = 0; r < rows; r++) {
    int32_t *to = c + (row + r) * p->n + column;
    const uint32_t factor = p->factor;
    if (add)
      for (int64_t j = 0; j < columns; j++) to[j] = (int32_t)((uint32_t)to[j] + factor * (uint32_t)sums[r][j]);
    else
      for (int64_t j = 0; j < columns; j++) to[j] = (int32_t)(factor * (uint32_t)sums[r][j]);
  }
}

/* Subtracts the zero points of B times the sum of a row of A. */
static void put_zero(const tn__bytes *p, uint32_t sum, int64_t row, int64_t begin, int64_t end, int32_t *c)
{
  int32_t *to = c + row * p->n;
  sum *= p->factor;
  for (int64_t j = begin; j < end; j++)
    to[j] = (int32_t)((uint32_t)to[j] - sum * (uint32_t)p->zero[j * p->zero_step]);
}

/* Rows [row, row + rows) by panels [begin, end). */
static void block(const run *r, int64_t row, int rows, int64_t begin, int64_t end)
{
  const tn__bytes *p = r->p;
  int16_t a[BLOCK * CHUNK];
  int32_t sums[MR][NR];
  uint32_t row_sums[BLOCK] = { 0 };
  int64_t all_pairs = pairs_of(p->k), term = 0;
  do {
    int64_t terms = smaller(CHUNK, p->k - term), pairs = pairs_of(terms);
    for (int i = 0; i < rows; i++) {
      int16_t *to = a + i * CHUNK;
      p->rows(p->user, row + i, term, terms, to);
      if (terms % 2 != 0) to[terms] = 0;
      int32_t sum = 0;
      for (int64_t k = 0; k < terms; k++) sum += to[k];
      row_sums[i] += (uint32_t)sum;
    }
    for (int64_t panel = begin; panel < end; panel++) {
      const int16_t *b = r->b + (panel * all_pairs + term / 2) * 2 * NR;
      for (int i = 0; i < rows; i += MR) {
        int n = (int)smaller(MR, rows - i);
        r->tile(a + i * CHUNK, n, b, pairs, sums);
        put(p, sums, n, row + i, panel * NR, p->add || term > 0, r->c);
      }
    }
    term += terms;
  } while (term < p->k);
  if (p->zero == NULL) return;
  for (int i = 0; i < rows; i++)
    put_zero(p, row_sums[i], row + i, begin * NR, smaller(end * NR, p->n), r->c);
}

static void part(void *user, int64_t begin, int64_t end)
{
  const run *r = user;
  int64_t panels = tn__bytes_panels(r->p);
  for (int64_t item = begin; item < end; item++) {
    int64_t row = item / r->groups * BLOCK, group = item % r->groups;
    block(r, row, (int)smaller(BLOCK, r->p->m - row), panels * group / r->groups, panels * (group + 1) / r->groups);
  }
}

/* At least this many items for a product with enough columns. */
#define ITEMS 16

double tn__bytes_cost(const tn__bytes *p) { return (double)p->m * (double)p->n * (double)p->k / 60 + 100; }

void tn__bytes_run(const tn__bytes *p, tn_kernel_ctx *ctx, const void *packed, int32_t *c)
{
  if (p->m == 0 || p->n == 0) return;
  int64_t blocks = p->m / BLOCK + (p->m % BLOCK != 0), panels = tn__bytes_panels(p);
  run r = { p, tile_of(), packed, c, blocks >= ITEMS ? 1 : smaller(panels, ITEMS / blocks) };
  int64_t items = blocks * r.groups;
  double cost = tn__bytes_cost(p) / (double)items;
  tn_parallel_for(ctx, items, (int64_t)(20000 / cost) + 1, cost, part, &r);
}
