/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of a 3x3 convolution for its filter, with fewer products: the 9 taps are a convolution of the image by
 * the gradients of the results, tile by tile. 6 by 6 points of the image and 4 by 4 gradients are transformed; at each
 * of 36 points their product is added to a matrix [c, oc], and the sums of all tiles are transformed to the taps.
 *
 * A block of tiles is transformed by all threads, then each point's product is computed by one thread: so the order of
 * sums does not depend on the number of threads. */
#include <core/base/alloc.h>
#include <ops/kernel/elements/vectors.h>
#include <ops/kernel/product/gemm_kernel.h>
#include <ops/kernel/window/volume.h>
#include <ops/nn/conv/winograd.h>
#include <string.h>

#define TILE TN__WINOGRAD_TILE
#define OUT TN__WINOGRAD_OUT
#define POINTS TN__WINOGRAD_POINTS
#define LANES TN__WINOGRAD_LANES
#define A TN__WINOGRAD_A
#define B TN__WINOGRAD_B
#define TAPS 3
#define BLOCK_BYTES (1 << 21) /* of a block's matrices: in the L3 cache */
#define FEW_TILES 48          /* of a block: each block reads and writes all sums */

/* ---- transforms ---- */

#define AT_A (9.0f / 8 / (4.0f / 9 - 9.0f / 4)) /* of the points 2/3 and -2/3 */
#define AT_B (2.0f / 9 / (9.0f / 4 - 4.0f / 9)) /* of the points 3/2 and -3/2 */

/* Four gradients to their values at the six points. */
TN__INLINED void spread_four(const int fused, const float *const *in, float *out, int64_t step)
{
  const float *i0 = in[0], *i1 = in[1], *i2 = in[2], *i3 = in[3];
  TN__IVDEP
  for (int i = 0; i < LANES; i++) {
    float a = i0[i], b = i1[i], c = i2[i], d = i3[i];
    float even = AT_A * TN__MADD(fused, A * A, c, a), odd = AT_A * A * TN__MADD(fused, A * A, d, b);
    float wide = AT_B * TN__MADD(fused, B * B, c, a), far = AT_B * B * TN__MADD(fused, B * B, d, b);
    out[i] = a;
    out[step + i] = even + odd;
    out[2 * step + i] = even - odd;
    out[3 * step + i] = wide + far;
    out[4 * step + i] = wide - far;
    out[5 * step + i] = d;
  }
}

/* Six sums at the points to three taps. */
TN__INLINED void gather_taps(const int fused, const float *in, int64_t in_step, float *out, int64_t step)
{
  const float *i0 = in, *i1 = in + in_step, *i2 = in + 2 * in_step, *i3 = in + 3 * in_step, *i4 = in + 4 * in_step;
  const float *i5 = in + 5 * in_step;
  TN__IVDEP
  for (int i = 0; i < LANES; i++) {
    float sum = i1[i] + i2[i], minus = i1[i] - i2[i], far = i3[i] + i4[i], far_minus = i3[i] - i4[i];
    out[i] = i0[i] + sum + far;
    out[step + i] = TN__MADD(fused, A, minus, B * far_minus);
    out[2 * step + i] = TN__MADD(fused, A * A, sum, TN__MADD(fused, B * B, far, i5[i]));
  }
}

/* Transforms the 16 gradients of a tile into its row of the 36 matrices. */
TN__INLINED void enter_gradients(const int fused, const float *const *from, float *to, int64_t step, int64_t channels)
{
  float half[TILE * OUT][LANES];
  for (int64_t at = 0; at < channels; at += LANES) {
    const int64_t c = at + LANES <= channels ? at : channels - LANES; /* the last lanes may be computed twice */
    for (int k = 0; k < OUT; k++) {
      const float *in[OUT];
      for (int i = 0; i < OUT; i++) in[i] = from[i * OUT + k] + c;
      spread_four(fused, in, half[k], (int64_t)OUT * LANES);
    }
    for (int k = 0; k < TILE; k++) {
      const float *in[OUT];
      for (int i = 0; i < OUT; i++) in[i] = half[k * OUT + i];
      spread_four(fused, in, to + k * TILE * step + c, step);
    }
  }
}

/* Transforms the sums of a channel, `step` elements apart, to its taps, which are `tap` elements apart. Returns a NaN
 * if an element is not finite. */
TN__INLINED float leave_channel(const int fused, const float *from, int64_t step, float *to, int64_t tap, int64_t n)
{
  float half[TAPS * TILE][LANES], all[TAPS * TAPS][LANES], bad[LANES] = { 0 };
  for (int64_t at = 0; at < n; at += LANES) {
    const int64_t c = at + LANES <= n ? at : n - LANES;
    for (int k = 0; k < TILE; k++) gather_taps(fused, from + k * step + c, TILE * step, half[k], (int64_t)TILE * LANES);
    for (int k = 0; k < TAPS; k++) gather_taps(fused, half[k * TILE], LANES, all[k * TAPS], LANES);
    for (int t = 0; t < TAPS * TAPS; t++) {
      for (int i = 0; i < LANES; i++) bad[i] += all[t][i] - all[t][i];
      memcpy(to + t * tap + c, all[t], sizeof all[t]);
    }
  }
  return tn__add_lanes(bad);
}

typedef float (*leave_fn)(const float *from, int64_t step, float *to, int64_t tap, int64_t n);

static void enter(const float *const *from, float *to, int64_t step, int64_t channels)
{
  enter_gradients(0, from, to, step, channels);
}
static float leave(const float *from, int64_t step, float *to, int64_t tap, int64_t n)
{
  return leave_channel(0, from, step, to, tap, n);
}
#define TRANSFORMS(fused, end, attribute)                                                                      \
  attribute static void enter_##end(const float *const *from, float *to, int64_t step, int64_t channels)       \
  {                                                                                                            \
    enter_gradients(fused, from, to, step, channels);                                                          \
  }                                                                                                            \
  attribute static float leave_##end(const float *from, int64_t step, float *to, int64_t tap, int64_t n)       \
  {                                                                                                            \
    return leave_channel(fused, from, step, to, tap, n);                                                       \
  }
TN__AVX2_LOOPS(TRANSFORMS, 0)
TN__FUSED_LOOPS(TRANSFORMS, 1)

/* ---- the plan ---- */

#define PRODUCT_NS 0.023 /* of a product, one thread */
#define CHANNEL_NS 4.0   /* of a channel of a tile */

bool tn__winograd_sums_plan(tn__winograd_sums *w, const tn__winograd_image *z, const tn_prepare_ctx *ctx,
                            size_t *scratch)
{
  if (ctx->reproducible || z->c < LANES || z->oc < LANES) return false;
  *w = (tn__winograd_sums){ .z = *z };
  const double filters = (double)z->c * (double)z->oc;
  w->tiles = tn__winograd_tiles(z);
  w->tile_ns = (double)(z->c + z->oc) * CHANNEL_NS;
  const double each = filters * POINTS * PRODUCT_NS + w->tile_ns;
  if (w->tiles < FEW_TILES || each > (double)(OUT * OUT * TAPS * TAPS) * 0.8 * filters * PRODUCT_NS) return false;
  w->kernel = tn__gemm_kernel_find(TN__GEMM_F32, z->oc, false);
  w->columns = (z->oc + w->kernel->nr - 1) / w->kernel->nr * w->kernel->nr;
  w->block = BLOCK_BYTES / (POINTS * (z->c + w->columns) * (int64_t)sizeof(float));
  if (w->block < FEW_TILES) w->block = FEW_TILES;
  const int64_t blocks = (w->tiles + w->block - 1) / w->block;
  w->block = (w->tiles + blocks - 1) / blocks;
  w->product_ns = filters * (double)w->block * PRODUCT_NS;
  w->x_step = tn__winograd_step(w->block * z->c);
  w->y_step = tn__winograd_step(w->block * w->columns);
  size_t sums, x, y, all = *scratch;
  if (!tn__size_mul((size_t)(z->c * w->columns), POINTS * sizeof(float), &sums) ||
      !tn__size_mul((size_t)w->x_step, POINTS * sizeof(float), &x) ||
      !tn__size_mul((size_t)w->y_step, POINTS * sizeof(float), &y))
    return false;
  w->at_zeros = tn__take(&all, (size_t)(z->c > z->oc ? z->c : z->oc) * sizeof(float));
  w->at_x = tn__take(&all, x);
  w->at_y = tn__take(&all, y);
  w->at_sums = tn__take(&all, sums);
  *scratch = all;
  return true;
}

/* ---- running ---- */

typedef struct run {
  const tn__winograd_sums *w;
  tn__winograd_enter enter_image, enter_gradients;
  const float *in, *gradients, *zeros;
  float *x, *y, *sums;
  int64_t first, tiles; /* of the block */
} run;

/* The 16 gradients of a tile. */
static void find_gradients(const run *r, int64_t tile, const float **at)
{
  const tn__winograd_image *z = &r->w->z;
  const int64_t across = (z->ow + OUT - 1) / OUT, each = (z->oh + OUT - 1) / OUT * across;
  const int64_t image = tile / each, top = tile % each / across * OUT, left = tile % each % across * OUT;
  for (int64_t i = top; i < top + OUT; i++)
    for (int64_t j = left; j < left + OUT; j++)
      *at++ = i < z->oh && j < z->ow ? r->gradients + ((image * z->oh + i) * z->ow + j) * z->oc : r->zeros;
}

static void enter_tiles(void *user, int64_t begin, int64_t end)
{
  const run *r = user;
  const tn__winograd_sums *w = r->w;
  for (int64_t i = begin; i < end; i++) {
    const float *pixels[POINTS], *gradients[OUT * OUT];
    tn__winograd_pixels(&w->z, r->in, r->zeros, r->first + i, pixels);
    r->enter_image(pixels, r->x + i * w->z.c, w->x_step, w->z.c);
    find_gradients(r, r->first + i, gradients);
    r->enter_gradients(gradients, r->y + i * w->columns, w->y_step, w->z.oc);
  }
}

/* Adds the products of the block's tiles at points [begin, end). */
static void add_products(void *user, int64_t begin, int64_t end)
{
  const run *r = user;
  const tn__winograd_sums *w = r->w;
  const int64_t c = w->z.c;
  for (int64_t point = begin; point < end; point++) {
    const float *x = r->x + point * w->x_step;
    float *sums = r->sums + point * c * w->columns;
    tn__gemm_tile t = { .first = r->first == 0, .columns = w->columns, .outer = 1, .inner = 1, .terms = r->tiles,
                        .step = c, .b_row = w->columns, .panel = w->kernel->nr, .b = r->y + point * w->y_step };
    for (int64_t row = 0; row < c; row += t.rows) {
      t.rows = (int)(c - row < w->kernel->mr ? c - row : w->kernel->mr);
      for (int i = 0; i < t.rows; i++) {
        t.a[i] = x + row + i;
        t.c[i] = sums + (row + i) * w->columns;
      }
      w->kernel->run(&t);
    }
  }
}

bool tn__winograd_sums_run(const tn__winograd_sums *w, tn_kernel_ctx *ctx, const float *in, const float *y,
                           float *filter)
{
  static const tn__winograd_enter enters[] = TN__FUSED_FNS(enter);
  static const leave_fn leaves[] = TN__FUSED_FNS(leave);
  const int kind = tn__vectors_for(false);
  const int64_t c = w->z.c, oc = w->z.oc;
  char *scratch = ctx->scratch;
  float *zeros = (float *)(scratch + w->at_zeros), bad = 0;
  run r = { w, tn__winograd_enter_of(), enters[kind], in, y, zeros, (float *)(scratch + w->at_x),
            (float *)(scratch + w->at_y), (float *)(scratch + w->at_sums), 0, 0 };
  memset(zeros, 0, (size_t)(c > oc ? c : oc) * sizeof *zeros);
  if (w->columns > oc) memset(r.y, 0, (size_t)(POINTS * w->y_step) * sizeof *r.y); /* the columns of no filter */
  for (r.first = 0; r.first < w->tiles; r.first += w->block) {
    r.tiles = w->tiles - r.first < w->block ? w->tiles - r.first : w->block;
    tn_parallel_for(ctx, r.tiles, 8, w->tile_ns, enter_tiles, &r);
    tn_parallel_for(ctx, POINTS, 1, w->product_ns, add_products, &r);
    if (tn_kernel_cancelled(ctx)) return true; /* nothing reads the result */
  }
  for (int64_t k = 0; k < c; k++)
    bad += leaves[kind](r.sums + k * w->columns, c * w->columns, filter + k * oc, c * oc, oc);
  return bad == 0;
}
