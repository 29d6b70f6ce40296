/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of affine.h. They process a chunk of columns for all rows before the next chunk, so that scale and
 * shift stay in registers. */
#include <ops/kernel/product/affine.h>
#include <ops/kernel/elements/vectors.h>

#define CHUNK 32

static const float ones[CHUNK] = {
  1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
};
static const float nothing[CHUNK] = {
  -0.0F, -0.0F, -0.0F, -0.0F, -0.0F, -0.0F, -0.0F, -0.0F, -0.0F, -0.0F, -0.0F, -0.0F, -0.0F, -0.0F, -0.0F, -0.0F,
  -0.0F, -0.0F, -0.0F, -0.0F, -0.0F, -0.0F, -0.0F, -0.0F, -0.0F, -0.0F, -0.0F, -0.0F, -0.0F, -0.0F, -0.0F, -0.0F,
};

typedef void (*chunk_fn)(const tn__affine_rows *r, const float *scale, const float *shift, int64_t n);

#define ROWS(count)                                                     \
  const float *x = r->x;                                                \
  float *out = r->out;                                                  \
  const float low = r->low, high = r->high;                             \
  for (int64_t row = r->rows; row > 0; row--) {                         \
    TN__IVDEP                                                           \
    for (int64_t i = 0; i < (count); i++) {                             \
      float v = x[i] * scale[i];                                        \
      v = v + shift[i];                                                 \
      v = v <= low ? low : v;                                           \
      out[i] = v > high ? high : v;                                     \
    }                                                                   \
    x += r->x_row;                                                      \
    out += r->out_row;                                                  \
  }

TN__APART static void chunk(const tn__affine_rows *r, const float *restrict scale, const float *restrict shift,
                            int64_t n){ ROWS(n) }

#define WIDE_CHUNK(name, end, attribute)                                                    \
  attribute static void name##_##end(const tn__affine_rows *r, const float *restrict scale, \
                                     const float *restrict shift, int64_t n)                \
  {                                                                                         \
    if (n < CHUNK) {                                                                        \
      chunk(r, scale, shift, n);                                                            \
      return;                                                                               \
    }                                                                                       \
    ROWS(CHUNK)                                                                             \
  }
TN__WIDE_LOOPS(WIDE_CHUNK, chunk)

    void tn__affine_run(const tn__affine_rows *all)
{
  static const chunk_fn fns[] = TN__FNS(chunk);
  chunk_fn fn = fns[tn__vectors()];
  tn__affine_rows r = *all;
  for (int64_t at = 0; at < all->columns; at += CHUNK) {
    int64_t left = all->columns - at;
    r.x = all->x + at;
    r.out = all->out + at;
    fn(&r, all->scale != NULL ? all->scale + at : ones, all->shift != NULL ? all->shift + at : nothing,
       left < CHUNK ? left : CHUNK);
  }
}
