/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over rows of pixels. */
#include <ops/image/resize.h>
#include <ops/kernel/elements/vectors.h>
#include <string.h>

#if TN__VECTORS > 1
#define KINDS(X) X(base, , 16) X(avx2, TN__FOR_AVX2, 32) X(avx512, TN__FOR_AVX512, 32)
#define PICK(f)                    \
  {                                \
    f##_base, f##_avx2, f##_avx512 \
  }
#else
#define KINDS(X) X(base, , 16)
#define PICK(f) \
  {             \
    f##_base    \
  }
#endif

/* ---- along columns ---- */

#define ROWS(end, TARGET, bytes)                                                                              \
  TARGET static void lerp_rows_##end(const float *restrict a, const float *restrict b, float lerp, int64_t n, \
                                     float *restrict out)                                                     \
  {                                                                                                           \
    for (int64_t i = 0; i < n; i++) out[i] = a[i] + (b[i] - a[i]) * lerp;                                     \
  }                                                                                                           \
  TARGET static void set_##end(const float *restrict in, float weight, int64_t n, float *restrict out)        \
  {                                                                                                           \
    for (int64_t i = 0; i < n; i++) out[i] = weight * in[i];                                                  \
  }                                                                                                           \
  TARGET static void add_##end(const float *restrict in, float weight, int64_t n, float *restrict out)        \
  {                                                                                                           \
    for (int64_t i = 0; i < n; i++) out[i] += weight * in[i];                                                 \
  }
KINDS(ROWS)

/* a and b may be the same row. */
void tn__lerp_rows(const float *a, const float *b, float lerp, int64_t n, float *out)
{
  static void (*const fns[])(const float *, const float *, float, int64_t, float *) = PICK(lerp_rows);
  fns[tn__vectors()](a, b, lerp, n, out);
}

void tn__weigh(const float *in, float weight, int64_t n, bool add, float *out)
{
  static void (*const sets[])(const float *, float, int64_t, float *) = PICK(set);
  static void (*const adds[])(const float *, float, int64_t, float *) = PICK(add);
  (add ? adds : sets)[tn__vectors()](in, weight, n, out);
}

/* ---- along rows ---- */

static inline void lerp_pixel(const float *a, const float *b, float lerp, int64_t c, float *out)
{
  for (int64_t j = 0; j < c; j++) out[j] = a[j] + (b[j] - a[j]) * lerp;
}

typedef float four __attribute__((vector_size(16)));

/* Pixels of three or four channels are processed as vectors of four. A surplus number that is
 * written is overwritten by the next pixel. */
static inline void lerp_fours(const tn__lerp *l, const float *in, const int c, int64_t n, float *out)
{
  for (int64_t i = 0; i < n; i++) {
    four a, b;
    memcpy(&a, in + (int64_t)l->lower[i] * c, sizeof a);
    memcpy(&b, in + (int64_t)l->upper[i] * c, sizeof b);
    a += (b - a) * l->lerp[i];
    memcpy(out + i * c, &a, sizeof a);
  }
}

/* More channels: the last vector is aligned to the pixel's end, so some channels are computed twice. */
#define PIXELS(end, TARGET, bytes)                                                                                   \
  typedef float vec_##end __attribute__((vector_size(bytes)));                                                       \
  TARGET static void lerp_pixels_##end(const tn__lerp *l, const float *restrict in, int64_t c, float *restrict out)  \
  {                                                                                                                  \
    enum { LANES = bytes / 4 };                                                                                      \
    for (int64_t i = 0; i < l->n; i++, out += c) {                                                                   \
      const float *a = in + l->lower[i] * c, *b = in + l->upper[i] * c;                                              \
      const float lerp = l->lerp[i];                                                                                 \
      for (int64_t j = 0; j < c; j += LANES) {                                                                       \
        vec_##end x, y;                                                                                              \
        if (j + LANES > c) j = c - LANES;                                                                            \
        memcpy(&x, a + j, sizeof x);                                                                                 \
        memcpy(&y, b + j, sizeof y);                                                                                 \
        x += (y - x) * lerp;                                                                                         \
        memcpy(out + j, &x, sizeof x);                                                                               \
      }                                                                                                              \
    }                                                                                                                \
  }                                                                                                                  \
  TARGET static void lerp_singles_##end(const tn__lerp *l, const float *restrict in, int64_t c, float *restrict out) \
  {                                                                                                                  \
    const int32_t *restrict lower = l->lower, *restrict upper = l->upper;                                            \
    const float *restrict lerp = l->lerp;                                                                            \
    for (int64_t i = 0; i < l->n; i++) out[i] = in[lower[i]] + (in[upper[i]] - in[lower[i]]) * lerp[i];              \
  }
KINDS(PIXELS)

typedef void (*lerp_row_fn)(const tn__lerp *l, const float *in, int64_t c, float *out);

void tn__lerp_row(const tn__lerp *l, const float *in, int64_t c, bool all, float *out)
{
  static const lerp_row_fn pixels[] = PICK(lerp_pixels), singles[] = PICK(lerp_singles);
  int kind = tn__vectors();
  int64_t i = 0;
  if (c == 1) {
    singles[kind](l, in, c, out);
  } else if (c == 4) {
    lerp_fours(l, in, 4, l->n, out);
  } else if (c > 4) {
    int most = c < 16 ? TN__AVX2 : TN__AVX512;
    if (c < 8) most = TN__BASELINE;
    pixels[kind < most ? kind : most](l, in, c, out);
  } else {
    if (c == 3) {
      i = all ? l->n : l->safe;
      lerp_fours(l, in, 3, i, out);
    }
    for (; i < l->n; i++) lerp_pixel(in + l->lower[i] * c, in + l->upper[i] * c, l->lerp[i], c, out + i * c);
  }
}

/* c is a compile-time constant at the call sites, so the sums stay in registers. */
static inline __attribute__((always_inline)) void sum_pixels(const tn__resize_taps *t, const float *in, const int c,
                                                             float *out)
{
  for (int64_t i = 0; i < t->n_out; i++, out += c) {
    float sum[4] = { 0 };
    for (int64_t k = t->firsts[i]; k < t->firsts[i + 1]; k++) {
      const float *at = in + (int64_t)t->indices[k] * c;
      for (int j = 0; j < c; j++) sum[j] += t->weights[k] * at[j];
    }
    for (int j = 0; j < c; j++) out[j] = sum[j];
  }
}

void tn__resize_taps_row(const tn__resize_taps *t, const float *in, int64_t c, float *out)
{
  switch (c) {
  case 1: sum_pixels(t, in, 1, out); return;
  case 2: sum_pixels(t, in, 2, out); return;
  case 3: sum_pixels(t, in, 3, out); return;
  case 4: sum_pixels(t, in, 4, out); return;
  default:
    for (int64_t i = 0; i < t->n_out; i++, out += c) {
      int64_t k = t->firsts[i];
      if (k == t->firsts[i + 1]) memset(out, 0, (size_t)c * sizeof *out);
      for (bool add = false; k < t->firsts[i + 1]; k++, add = true)
        tn__weigh(in + t->indices[k] * c, t->weights[k], c, add, out);
    }
  }
}
