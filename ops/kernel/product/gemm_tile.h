/* SPDX-License-Identifier: Apache-2.0 */
/* Template of the innermost loop of matrix products. gemm_tiles.c includes it once for each type and vector width.
 *
 * REAL      number type
 * VBYTES    bytes per vector
 * VECTORS   vectors per panel: 1 or 2
 * ROWS      maximum rows of a tile: 3, 6 or 12
 * SUFFIX    suffix of the names defined
 * TARGET    attribute that enables the instructions
 * COMPLEX   1 if elements are pairs of REAL, else 0
 * FEW       optional: suffix of a kernel with equally wide panels that is better for up to 6 rows; it has PUT, too
 * PUT(to, v, n), GET(from, n)  optional: store and load the first n numbers of a vector, from 0 to all
 * MADD(a, b, sum)  optional: sum + a * b for a vector, a number and a vector, rounded once
 * FLAT      optional, see below
 * FINISH    defined if tiles can be finished (bias and clamp); REAL is then float
 * LARGER(a, b), SMALLER(a, b)  optional: of two vectors; b if either is NaN
 * WEIGHT    optional: type of B's elements if it is not REAL, and WIDEN(from), which loads a vector of them as REAL
 * SCALES    defined if final sums are multiplied by a number for each column
 *
 * A tile is up to ROWS rows by one panel, two rows by two panels, or one row by four. Its sums stay in registers
 * while all terms are added. */

#define NAME2(a, b) a##b
#define NAME1(a, b) NAME2(a, b)
#define NAME(a) NAME1(a, SUFFIX)
#define LANES ((int)(VBYTES / sizeof(REAL)))
#define PARTS (1 + COMPLEX)
#define AHEAD 32 /* prefetch distance in B, in terms: a large B comes from far down the memory hierarchy */
#define NR (VECTORS * LANES / PARTS)
#define INLINE static inline __attribute__((always_inline)) TARGET
#ifdef PUT
#define PARTIAL true
#else
#define PARTIAL false
#endif
#ifndef MADD
#define MADD(a, b, sum) ((sum) + (a) * (b))
#endif
#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#ifdef WEIGHT
#define REDUCED
#else
#define WEIGHT REAL
#define WIDEN(from) NAME(load)(from)
#endif

typedef REAL NAME(vec) __attribute__((vector_size(VBYTES)));

INLINE NAME(vec) NAME(load)(const REAL *from)
{
  NAME(vec) v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

INLINE void NAME(store)(REAL *to, NAME(vec) v) { __builtin_memcpy(to, &v, sizeof v); }

/* Vector v of a row of which `left` numbers exist. */
#ifdef PUT
#define AT_MOST_LANES(n) ((n) < LANES ? (n) : LANES)
#define COUNT(left, v) (int)((left) <= (v) * LANES ? 0 : AT_MOST_LANES((left) - (v) * LANES))
INLINE NAME(vec) NAME(load_at)(const REAL *row, int v, int64_t left)
{
  return left >= (v + 1) * LANES ? NAME(load)(row + v * LANES) : (NAME(vec))GET(row + v * LANES, COUNT(left, v));
}

INLINE void NAME(store_at)(REAL *row, int v, int64_t left, NAME(vec) value)
{
  if (left >= (v + 1) * LANES)
    NAME(store)(row + v * LANES, value);
  else
    PUT(row + v * LANES, value, COUNT(left, v));
}
#else
INLINE NAME(vec) NAME(load_at)(const REAL *row, int v, int64_t left) { return NAME(load)(row + v * LANES); }
INLINE void NAME(store_at)(REAL *row, int v, int64_t left, NAME(vec) value) { NAME(store)(row + v * LANES, value); }
#endif

#if COMPLEX
/* Maps (re, im) lanes to (-im, re), that is, multiplies by the imaginary unit. */
INLINE NAME(vec) NAME(turn)(NAME(vec) v)
{
  NAME(vec) r;
  UNROLL
  for (int i = 0; i < LANES; i += 2) {
    r[i] = -v[i + 1];
    r[i + 1] = v[i];
  }
  return r;
}
#endif

/* Adds one term: a row of B's panels times one number of each row of A. */
INLINE void NAME(term)(const int rows, const int vectors, const REAL *const *a, int64_t at, const WEIGHT *b,
                       int64_t panel, NAME(vec) sum[][4 * VECTORS], NAME(vec) sum_im[][4 * VECTORS])
{
  NAME(vec) line[4 * VECTORS];
#ifdef REDUCED
  /* A converted vector needs a register. With one row it is used once, at once. */
  if (rows == 1) {
    UNROLL
    for (int v = 0; v < vectors; v++)
      sum[0][v] = (NAME(vec))MADD(WIDEN(b + v / VECTORS * panel + v % VECTORS * LANES), a[0][at], sum[0][v]);
    return;
  }
#endif
  UNROLL
  for (int v = 0; v < vectors; v++) line[v] = (NAME(vec))WIDEN(b + v / VECTORS * panel + v % VECTORS * LANES);
  UNROLL
  for (int i = 0; i < rows; i++) {
    const REAL re = a[i][at];
    UNROLL
    for (int v = 0; v < vectors; v++) sum[i][v] = (NAME(vec))MADD(line[v], re, sum[i][v]);
#if COMPLEX
    const REAL im = a[i][at + 1];
    UNROLL
    for (int v = 0; v < vectors; v++) sum_im[i][v] += line[v] * im;
#endif
  }
}

/* Adds all terms. If a term takes long enough (FLAT), runs are traversed without a branch at their ends, because
 * that branch would be mispredicted for short runs. fetch: with each term, fetches the line at `next`. */
INLINE void NAME(terms)(const int rows, const int vectors, const bool fetch, const tn__gemm_tile *tile,
                        const REAL *const *a, const WEIGHT *b, const char *next, NAME(vec) sum[][4 * VECTORS],
                        NAME(vec) sum_im[][4 * VECTORS])
{
  const int64_t terms = tile->terms, step = tile->step * PARTS;
  const int64_t b_row = tile->b_row * PARTS, panel = tile->panel * PARTS;
  const int64_t a_inner = tile->a_inner * PARTS, b_inner = tile->b_inner * b_row;
  for (int64_t outer = 0; outer < tile->outer; outer++) {
    int64_t at = outer * tile->a_outer * PARTS;
    const WEIGHT *from = b + outer * tile->b_outer * b_row;
#ifdef FLAT
    const int64_t a_jump = a_inner - terms * step, b_jump = b_inner - terms * b_row;
    for (int64_t all = tile->inner * terms, left = terms; all > 0; all--) {
      __builtin_prefetch(from + AHEAD * b_row);
      NAME(term)(rows, vectors, a, at, from, panel, sum, sum_im);
      const int64_t end = -(int64_t)(--left == 0);
      left += terms & end;
      at += step + (a_jump & end);
      from += b_row + (b_jump & end);
    }
#else
    for (int64_t inner = 0; inner < tile->inner; inner++) {
      const WEIGHT *line = from + inner * b_inner;
      int64_t to = at + inner * a_inner;
      for (int64_t t = 0; t < terms; t++, to += step, line += b_row) {
        if (fetch) {
          __builtin_prefetch(next, 0, 2);
          next += tile->next_step;
        }
        NAME(term)(rows, vectors, a, to, line, panel, sum, sum_im);
      }
    }
#endif
  }
}

#ifdef FINISH
/* a > b ? a : b and a < b ? a : b; the result is b if either is NaN. */
#ifdef LARGER
INLINE NAME(vec) NAME(larger)(NAME(vec) a, NAME(vec) b) { return (NAME(vec))LARGER(a, b); }
INLINE NAME(vec) NAME(smaller)(NAME(vec) a, NAME(vec) b) { return (NAME(vec))SMALLER(a, b); }
#else
typedef int32_t NAME(bits) __attribute__((vector_size(VBYTES)));

INLINE NAME(vec) NAME(larger)(NAME(vec) a, NAME(vec) b)
{
  NAME(bits) first = a > b;
  return (NAME(vec))(((NAME(bits))a & first) | ((NAME(bits))b & ~first));
}

INLINE NAME(vec) NAME(smaller)(NAME(vec) a, NAME(vec) b)
{
  NAME(bits) first = a < b;
  return (NAME(vec))(((NAME(bits))a & first) | ((NAME(bits))b & ~first));
}
#endif

/* Applies scales, bias and clamp to a tile's final sums. NaN stays NaN. */
INLINE void NAME(finish)(const int rows, const int vectors, const tn__gemm_tile *tile, int64_t column, int64_t left,
                         NAME(vec) sum[][4 * VECTORS])
{
  const NAME(vec) zero = { 0 }, six = zero + 6;
#ifdef SCALES
  UNROLL
  for (int v = 0; v < vectors; v++) {
    NAME(vec) scale = NAME(load)((const REAL *)tile->scales + column + v * LANES);
    UNROLL
    for (int i = 0; i < rows; i++) sum[i][v] *= scale;
  }
#endif
  if (tile->bias != NULL) {
    const REAL *bias = (const REAL *)tile->bias + column;
    UNROLL
    for (int v = 0; v < vectors; v++) {
      NAME(vec) add = NAME(load_at)(bias, v, left);
      UNROLL
      for (int i = 0; i < rows; i++) sum[i][v] += add;
    }
  }
  if (tile->clamp == TN__GEMM_NO_CLAMP) return;
  UNROLL
  for (int i = 0; i < rows; i++) {
    UNROLL
    for (int v = 0; v < vectors; v++) sum[i][v] = NAME(larger)(zero, sum[i][v]);
  }
  if (tile->clamp == TN__GEMM_RELU) return;
  UNROLL
  for (int i = 0; i < rows; i++) {
    UNROLL
    for (int v = 0; v < vectors; v++) sum[i][v] = NAME(smaller)(six, sum[i][v]);
  }
}
#endif

/* Processes `panels` panels at a time, `count` times, from `column` on. With PUT, the last panel may be incomplete;
 * `panels` is then 1. */
INLINE void NAME(body)(const int rows, const int panels, const tn__gemm_tile *tile, int64_t column, int64_t count)
{
  const REAL *a[ROWS];
  const WEIGHT *b = (const WEIGHT *)tile->b + (column - tile->column) / NR * tile->panel * PARTS;
#ifndef FLAT
  const char *next = tile->next; /* whole tiles have all columns */
#endif
  const int vectors = VECTORS * panels;
  UNROLL
  for (int i = 0; i < rows; i++) a[i] = tile->a[i];
  for (; count > 0; count--, column += panels * NR, b += panels * tile->panel * PARTS) {
    const int64_t left = (tile->column + tile->columns - column) * PARTS;
    NAME(vec) sum[ROWS][4 * VECTORS], sum_im[ROWS][4 * VECTORS];
    UNROLL
    for (int i = 0; i < rows; i++) {
      UNROLL
      for (int v = 0; v < vectors; v++) sum[i][v] = sum_im[i][v] = (NAME(vec)){ 0 };
    }
    if (!tile->first) {
      UNROLL
      for (int i = 0; i < rows; i++) {
        UNROLL
        for (int v = 0; v < vectors; v++) sum[i][v] = NAME(load_at)((const REAL *)tile->c[i] + column * PARTS, v, left);
      }
    }
#ifndef FLAT
    if (rows == ROWS && next != NULL) {
      NAME(terms)(rows, vectors, true, tile, a, b, next, sum, sum_im);
      next += panels * tile->next_panel;
    } else
#endif
      NAME(terms)(rows, vectors, false, tile, a, b, NULL, sum, sum_im);
#if COMPLEX
    UNROLL
    for (int i = 0; i < rows; i++) {
      UNROLL
      for (int v = 0; v < vectors; v++) sum[i][v] += NAME(turn)(sum_im[i][v]);
    }
#endif
#ifdef FINISH
    if (tile->finish) NAME(finish)(rows, vectors, tile, column, left, sum);
#endif
    UNROLL
    for (int i = 0; i < rows; i++) {
      UNROLL
      for (int v = 0; v < vectors; v++) NAME(store_at)((REAL *)tile->c[i] + column * PARTS, v, left, sum[i][v]);
    }
  }
}

static TARGET void NAME(run)(const tn__gemm_tile *tile)
{
  int64_t column = tile->column, panels = (tile->columns + NR - 1) / NR;
#ifdef FEW
  if (tile->rows <= 6) {
    NAME1(run, FEW)(tile);
    return;
  }
#endif
  switch (tile->rows) {
#ifndef FEW
  case 1:
    NAME(body)(1, 4, tile, column, tile->columns / (4 * NR));
    column += tile->columns / (4 * NR) * (4 * NR);
    NAME(body)(1, 1, tile, column, panels - (column - tile->column) / NR);
    break;
  case 2:
    NAME(body)(2, 2, tile, column, tile->columns / (2 * NR));
    column += tile->columns / (2 * NR) * (2 * NR);
    NAME(body)(2, 1, tile, column, panels - (column - tile->column) / NR);
    break;
  case 3: NAME(body)(3, 1, tile, column, panels); break;
#if ROWS > 3
  case 4: NAME(body)(4, 1, tile, column, panels); break;
  case 5: NAME(body)(5, 1, tile, column, panels); break;
  case 6: NAME(body)(6, 1, tile, column, panels); break;
#endif
#endif
#if ROWS > 6
  case 7: NAME(body)(7, 1, tile, column, panels); break;
  case 8: NAME(body)(8, 1, tile, column, panels); break;
  case 9: NAME(body)(9, 1, tile, column, panels); break;
  case 10: NAME(body)(10, 1, tile, column, panels); break;
  case 11: NAME(body)(11, 1, tile, column, panels); break;
  case 12: NAME(body)(12, 1, tile, column, panels); break;
#endif
  default: break;
  }
}

static void NAME(tile)(int rows, int panels, int64_t terms, const void *const *a, int64_t step, const void *b,
                       int64_t b_row, int64_t panel, void *c, int64_t c_row, bool first)
{
  tn__gemm_tile t = { .rows = rows, .columns = panels * NR, .first = first, .outer = 1, .inner = 1, .terms = terms,
                      .step = step, .b_row = b_row, .panel = panel, .b = b };
  for (int i = 0; i < rows; i++) {
    t.a[i] = a[i];
    t.c[i] = (REAL *)c + i * c_row * PARTS;
  }
  NAME(run)(&t);
}

static const tn__gemm_kernel NAME(kernel) = { NAME(run), NAME(tile), PARTS * sizeof(REAL),
                                              PARTS * sizeof(WEIGHT), ROWS, NR, PARTIAL };

#undef NAME2
#undef NAME1
#undef NAME
#undef LANES
#undef PARTS
#undef AHEAD
#undef NR
#undef INLINE
#undef UNROLL
#undef REAL
#undef VBYTES
#undef VECTORS
#undef ROWS
#undef SUFFIX
#undef TARGET
#undef COMPLEX
#undef FEW
#undef MADD
#undef PUT
#undef PARTIAL
#undef COUNT
#undef AT_MOST_LANES
#undef GET
#undef FINISH
#undef FLAT
#undef LARGER
#undef SMALLER
#undef WEIGHT
#undef REDUCED
#undef WIDEN
#undef SCALES
