/* SPDX-License-Identifier: Apache-2.0 */
/* The innermost loop of matrix products, included by gemm_tiles.c once for each type and vector width.
 *
 * REAL      number type
 * VBYTES    bytes of a vector
 * SUFFIX    of the names made
 * TARGET    attribute that allows the instructions
 * COMPLEX   1 when elements are pairs of REAL
 *
 * A panel is two vectors wide. A tile is up to MR rows by one panel, or one row by four panels; its sums stay in
 * registers while the terms run by. */

#define NAME2(a, b) a##b
#define NAME1(a, b) NAME2(a, b)
#define NAME(a) NAME1(a, SUFFIX)
#define LANES ((int)(VBYTES / sizeof(REAL)))
#define INLINE static inline __attribute__((always_inline)) TARGET
#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

typedef REAL NAME(vec) __attribute__((vector_size(VBYTES)));

INLINE NAME(vec) NAME(load)(const REAL *from)
{
  NAME(vec) v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

INLINE void NAME(store)(REAL *to, NAME(vec) v) { __builtin_memcpy(to, &v, sizeof v); }

#if COMPLEX
/* (re, im) lanes to (-im, re): what multiplying by the imaginary unit does. */
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

/* c[rows][pairs panels] = (first ? 0 : c) + a b; term t of row i of A is a[i][t * step]. Strides are in REAL. */
INLINE void NAME(body)(const int rows, const int pairs, int64_t terms, const void *const *rows_of_a, int64_t step,
                       const REAL *b, int64_t b_row, int64_t panel, REAL *c, int64_t c_row, bool first)
{
  const REAL *a[TN__GEMM_MR];
  NAME(vec) sum[TN__GEMM_MR][8];
#if COMPLEX
  NAME(vec) sum_im[TN__GEMM_MR][8];
#endif
  UNROLL
  for (int i = 0; i < rows; i++) {
    a[i] = rows_of_a[i];
    UNROLL
    for (int v = 0; v < 2 * pairs; v++) {
      sum[i][v] = first ? (NAME(vec)){ 0 } : NAME(load)(c + i * c_row + v * LANES);
#if COMPLEX
      sum_im[i][v] = (NAME(vec)){ 0 };
#endif
    }
  }
  for (int64_t t = 0, at = 0; t < terms; t++, at += step, b += b_row) {
    NAME(vec) line[8];
    UNROLL
    for (int v = 0; v < 2 * pairs; v++) line[v] = NAME(load)(b + v / 2 * panel + v % 2 * LANES);
    UNROLL
    for (int i = 0; i < rows; i++) {
      const REAL re = a[i][at];
#if COMPLEX
      const REAL im = a[i][at + 1];
#endif
      UNROLL
      for (int v = 0; v < 2 * pairs; v++) {
        sum[i][v] += line[v] * re;
#if COMPLEX
        sum_im[i][v] += line[v] * im;
#endif
      }
    }
  }
  UNROLL
  for (int i = 0; i < rows; i++) {
    UNROLL
    for (int v = 0; v < 2 * pairs; v++) {
#if COMPLEX
      sum[i][v] += NAME(turn)(sum_im[i][v]);
#endif
      NAME(store)(c + i * c_row + v * LANES, sum[i][v]);
    }
  }
}

static TARGET void NAME(tile)(int rows, int pairs, int64_t terms, const void *const *a, int64_t step, const void *b_,
                              int64_t b_row, int64_t panel, void *c_, int64_t c_row, bool first)
{
  const REAL *b = b_;
  REAL *c = c_;
  step *= 1 + COMPLEX;
  b_row *= 1 + COMPLEX;
  c_row *= 1 + COMPLEX;
  panel *= 1 + COMPLEX;
  switch (rows) {
  case 1:
    if (pairs == 4)
      NAME(body)(1, 4, terms, a, step, b, b_row, panel, c, c_row, first);
    else
      NAME(body)(1, 1, terms, a, step, b, b_row, panel, c, c_row, first);
    break;
  case 2: NAME(body)(2, 1, terms, a, step, b, b_row, panel, c, c_row, first); break;
  case 3: NAME(body)(3, 1, terms, a, step, b, b_row, panel, c, c_row, first); break;
#if !COMPLEX /* which has twice the sums, so half the rows */
  case 4: NAME(body)(4, 1, terms, a, step, b, b_row, panel, c, c_row, first); break;
  case 5: NAME(body)(5, 1, terms, a, step, b, b_row, panel, c, c_row, first); break;
  default: NAME(body)(6, 1, terms, a, step, b, b_row, panel, c, c_row, first); break;
#else
  default: break;
#endif
  }
}

static const tn__gemm_kernel NAME(kernel) = { NAME(tile), (1 + COMPLEX) * sizeof(REAL), COMPLEX ? 3 : TN__GEMM_MR,
                                              2 * LANES / (1 + COMPLEX) };

#undef NAME2
#undef NAME1
#undef NAME
#undef LANES
#undef INLINE
#undef UNROLL
#undef REAL
#undef VBYTES
#undef SUFFIX
#undef TARGET
#undef COMPLEX
