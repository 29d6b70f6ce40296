/* SPDX-License-Identifier: Apache-2.0 */
/* The transforms run along the channels, which are last. Tiles of all images are processed in blocks whose data fits
 * in the L2 cache. A block's tiles become 36 matrices, one for each point of the transform, [tiles, channels]; each is
 * multiplied by the filter's matrix of that point, and the 36 results of a tile are transformed back.
 *
 * The points are 0, 2/3, -2/3, 3/2, -3/2 and infinity in both directions: errors are 1.7 times those of the direct sum
 * (3.7 times with the usual points 1 and 2). */
#include <ops/nn/conv/winograd.h>
#include <core/base/alloc.h>
#include <ops/kernel/elements/vectors.h>
#include <ops/kernel/product/gemm_kernel.h>
#include <ops/kernel/window/volume.h>
#include <string.h>

#define TILE TN__WINOGRAD_TILE /* points of the image in a line */
#define OUT TN__WINOGRAD_OUT   /* results in a line */
#define POINTS TN__WINOGRAD_POINTS
#define LANES TN__WINOGRAD_LANES
#define CACHE 320000     /* bytes of a block, in an L2 cache of 512 KB or more */
#define FEW_TILES 24     /* of a block, whatever it takes: each block reads the whole filter */
#define NEAR_BYTES 16384 /* of a point's filter, which stay in the L1 cache for all rows of a block */

/* ---- transforms of a line ---- */

typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));

#define A TN__WINOGRAD_A
#define B TN__WINOGRAD_B

/* Six values, `step` apart, to their values at the points, LANES lines at a time. */
TN__INLINED void spread(const int fused, const float *const *in, float *out, int64_t step)
{
  const float *i0 = in[0], *i1 = in[1], *i2 = in[2], *i3 = in[3], *i4 = in[4], *i5 = in[5];
  TN__IVDEP
  for (int i = 0; i < LANES; i++) {
    float a = i0[i], b = i1[i], c = i2[i], d = i3[i], e = i4[i], f = i5[i];
    float even = TN__MADD(fused, -B * B, c, e), odd = TN__MADD(fused, -B, b, A * d);
    float wide = TN__MADD(fused, -A * A, c, e), far = TN__MADD(fused, -A, b, B * d);
    out[i] = TN__MADD(fused, -(A * A + B * B), c, a + e);
    out[step + i] = even + odd;
    out[2 * step + i] = even - odd;
    out[3 * step + i] = wide + far;
    out[4 * step + i] = wide - far;
    out[5 * step + i] = TN__MADD(fused, -(A * A + B * B), d, b + f);
  }
}

/* Six values at the points to four results. */
TN__INLINED void gather(const int fused, const float *in, int64_t in_step, float *out, int64_t step)
{
  const float *i0 = in, *i1 = in + in_step, *i2 = in + 2 * in_step, *i3 = in + 3 * in_step, *i4 = in + 4 * in_step;
  const float *i5 = in + 5 * in_step;
  TN__IVDEP
  for (int i = 0; i < LANES; i++) {
    float sum = i1[i] + i2[i], minus = i1[i] - i2[i], far = i3[i] + i4[i], far_minus = i3[i] - i4[i];
    out[i] = i0[i] + sum + far;
    out[step + i] = TN__MADD(fused, A, minus, B * far_minus);
    out[2 * step + i] = TN__MADD(fused, A * A, sum, B * B * far);
    out[3 * step + i] = TN__MADD(fused, A * A * A, minus, TN__MADD(fused, B * B * B, far_minus, i5[i]));
  }
}

/* ---- transforms of a tile ---- */

/* Transforms a tile, whose 36 pixels are at `from`, into its row of the matrices, which are `step` elements apart. */
TN__INLINED void transform_tile(const int fused, const float *const *from, float *to, int64_t step, int64_t channels)
{
  float half[POINTS][LANES];
  for (int64_t at = 0; at < channels; at += LANES) {
    const int64_t c = at + LANES <= channels ? at : channels - LANES; /* the last lanes may be computed twice */
    for (int k = 0; k < TILE; k++) {
      const float *in[TILE];
      for (int i = 0; i < TILE; i++) in[i] = from[i * TILE + k] + c;
      spread(fused, in, half[k], (int64_t)TILE * LANES);
    }
    for (int k = 0; k < TILE; k++) {
      const float *in[TILE];
      for (int i = 0; i < TILE; i++) in[i] = half[k * TILE + i];
      spread(fused, in, to + k * TILE * step + c, step);
    }
  }
}

/* The results of a tile that are inside the image. */
typedef struct place {
  int64_t rows, columns;
  float *out;
  int64_t row; /* elements between rows of the result */
} place;

/* Adds the bias of LANES channels to all results of a tile, and clamps them. NaN stays NaN. */
TN__INLINED void finish(float *all, const float *bias, tn__gemm_clamp clamp)
{
  float add[LANES];
  if (bias != NULL) {
    memcpy(add, bias, sizeof add);
    for (int i = 0; i < OUT * OUT * LANES; i++) all[i] += add[i % LANES];
  }
  if (clamp != TN__GEMM_NO_CLAMP)
    for (int i = 0; i < OUT * OUT * LANES; i++) all[i] = all[i] < 0 ? 0 : all[i];
  if (clamp == TN__GEMM_RELU6)
    for (int i = 0; i < OUT * OUT * LANES; i++) all[i] = all[i] > 6 ? 6 : all[i];
}

/* Transforms a tile back, adds the bias and clamps. Returns a NaN if any element of the tile or the filter was not
 * finite: each of them enters one of the results in the corners. */
TN__INLINED float transform_back(const int fused, const float *from, int64_t step, const place *p, int64_t channels,
                                 const tn__gemm_then *then)
{
  const float *bias = then != NULL ? then->bias : NULL;
  const tn__gemm_clamp clamp = then != NULL ? then->clamp : TN__GEMM_NO_CLAMP;
  lanes bad = { 0 };
  float half[OUT * TILE][LANES], all[OUT * OUT][LANES];
  for (int64_t at = 0; at < channels; at += LANES) {
    const int64_t c = at + LANES <= channels ? at : channels - LANES;
    for (int k = 0; k < TILE; k++) gather(fused, from + k * step + c, TILE * step, half[k], (int64_t)TILE * LANES);
    for (int k = 0; k < OUT; k++) gather(fused, half[k * TILE], LANES, all[k * OUT], LANES);
    lanes corners = { 0 };
    for (int i = 0; i < 4; i++) {
      lanes one;
      memcpy(&one, all[i / 2 * (OUT - 1) * OUT + i % 2 * (OUT - 1)], sizeof one);
      corners += one;
    }
    bad += corners - corners;
    finish(all[0], bias != NULL ? bias + c : NULL, clamp);
    for (int64_t r = 0; r < p->rows; r++)
      for (int64_t l = 0; l < p->columns; l++)
        memcpy(p->out + r * p->row + l * channels + c, all[r * OUT + l], LANES * sizeof(float));
  }
  float sums[LANES];
  memcpy(sums, &bad, sizeof sums);
  return tn__add_lanes(sums);
}

typedef float (*back_fn)(const float *from, int64_t step, const place *p, int64_t channels, const tn__gemm_then *then);

static void transform(const float *const *from, float *to, int64_t step, int64_t channels)
{
  transform_tile(0, from, to, step, channels);
}
static float back(const float *from, int64_t step, const place *p, int64_t channels, const tn__gemm_then *then)
{
  return transform_back(0, from, step, p, channels, then);
}
#define TRANSFORMS(fused, end, attribute)                                                                         \
  attribute static void transform_##end(const float *const *from, float *to, int64_t step, int64_t channels)      \
  {                                                                                                               \
    transform_tile(fused, from, to, step, channels);                                                              \
  }                                                                                                               \
  attribute static float back_##end(const float *from, int64_t step, const place *p, int64_t channels,            \
                                    const tn__gemm_then *then)                                                    \
  {                                                                                                               \
    return transform_back(fused, from, step, p, channels, then);                                                  \
  }
TN__AVX2_LOOPS(TRANSFORMS, 0)
TN__FUSED_LOOPS(TRANSFORMS, 1)

tn__winograd_enter tn__winograd_enter_of(void)
{
  static const tn__winograd_enter transforms[] = TN__FUSED_FNS(transform);
  return transforms[tn__vectors_for(false)];
}

/* ---- the filter ---- */

#define AT_A (9.0 / 8 / (4.0 / 9 - 9.0 / 4)) /* of the points 2/3 and -2/3 */
#define AT_B (2.0 / 9 / (9.0 / 4 - 4.0 / 9)) /* of the points 3/2 and -3/2 */
#define FILTERS 8                            /* transformed together */

/* Three taps to their values at the six points, FILTERS lines at a time. */
TN__INLINED void filter_points(const double *in, int step, double *out, int out_step)
{
  for (int i = 0; i < FILTERS; i++) {
    double a = in[i], b = in[step + i], c = in[2 * step + i];
    double even = (a + c * (4.0 / 9)) * AT_A, odd = b * (AT_A * 2 / 3);
    double far = (a + c * (9.0 / 4)) * AT_B, far_odd = b * (AT_B * 3 / 2);
    out[i] = a;
    out[out_step + i] = even + odd;
    out[2 * out_step + i] = even - odd;
    out[3 * out_step + i] = far + far_odd;
    out[4 * out_step + i] = far - far_odd;
    out[5 * out_step + i] = c;
  }
}

/* Where taps are in memory: tap t of filter j of channel k is at in[t * tap + k * channel + j * filter]. */
typedef struct taps {
  const float *in;
  int64_t tap, channel, filter;
} taps;

/* Packs the filters of channels [k, end) of c as 36 matrices [c, n] in panels of nr columns; computed in double,
 * rounded once. Returns a NaN if a value is not finite. */
TN__INLINED double pack_filters(const bool turned, const taps *from, float *to, int64_t k, int64_t end, int64_t c,
                              int64_t n, int64_t nr)
{
  const int64_t columns = (n + nr - 1) / nr * nr, matrix = c * columns, step = turned ? from->filter : 1;
  double tap[9][FILTERS], half[TILE * 3][FILTERS], all[POINTS][FILTERS], bad[FILTERS] = { 0 }, sum = 0;
  for (; k < end; k++)
    for (int64_t j = 0; j < columns; j += FILTERS) {
      const int64_t left = n - j < FILTERS ? n - j : FILTERS, at = j / nr * c * nr + k * nr + j % nr;
      const float *in = from->in + k * from->channel + j * step;
      for (int t = 0; t < 9; t++)
        for (int i = 0; i < FILTERS; i++) tap[t][i] = i < left ? in[t * from->tap + i * step] : 0;
      for (int t = 0; t < 3; t++) filter_points(tap[t], 3 * FILTERS, half[t], 3 * FILTERS);
      for (int t = 0; t < TILE; t++) filter_points(half[3 * t], FILTERS, all[t * TILE], FILTERS);
      for (int t = 0; t < POINTS; t++)
        for (int i = 0; i < FILTERS; i++) to[t * matrix + at + i] = (float)all[t][i];
      for (int t = 0; t < 9; t++)
        for (int i = 0; i < FILTERS; i++) {
          float more = (float)(tap[t][i] * 16); /* no value at a point is as large */
          bad[i] += more - more;
        }
    }
  for (int i = 0; i < FILTERS; i++) sum += bad[i];
  return sum;
}

typedef double (*pack_fn)(const taps *from, float *to, int64_t k, int64_t end, int64_t c, int64_t n, int64_t nr);

#define PACK(name, turned, attribute)                                                                               \
  attribute static double name(const taps *from, float *to, int64_t k, int64_t end, int64_t c, int64_t n, int64_t nr) \
  {                                                                                                                 \
    return pack_filters(turned, from, to, k, end, c, n, nr);                                                        \
  }
#define PACK_WIDE(name, end, attribute) PACK(name##_##end, false, attribute) PACK(name##_turned_##end, true, attribute)
PACK(pack, false, )
PACK(pack_turned, true, )
TN__AVX2_LOOPS(PACK_WIDE, pack)

/* Packs channels [begin, end) of a filter. False if a tap is not finite. */
static bool pack_channels(const tn__winograd *w, const float *filter, float *to, int64_t begin, int64_t end)
{
  static const pack_fn packs[] = TN__AVX2_FNS(pack), turned[] = TN__AVX2_FNS(pack_turned);
  const tn__winograd_image *z = &w->z;
  const int64_t one = z->c * z->oc, nr = w->kernel->nr;
  const int kind = tn__vectors();
  if (w->filter == TN__WINOGRAD_TURNED)
    return turned[kind](&(taps){ filter + 8 * one, -one, 1, z->c }, to, begin, end, z->c, z->oc, nr) == 0;
  return packs[kind](&(taps){ filter, one, z->oc, 1 }, to, begin, end, z->c, z->oc, nr) == 0;
}

static tn_status pack_filter(void *user, const tn_view *from, void *to, tn_error *err)
{
  const tn__winograd *w = user;
  if (pack_channels(w, from->data, to, 0, w->z.c)) return TN_OK;
  return tn_error_set(err, TN_UNIMPLEMENTED, "a filter with elements that are not finite");
}

/* ---- tiles ---- */

static int64_t tiles_down(const tn__winograd_image *z) { return (z->oh + OUT - 1) / OUT; }
static int64_t tiles_across(const tn__winograd_image *z) { return (z->ow + OUT - 1) / OUT; }

int64_t tn__winograd_tiles(const tn__winograd_image *z) { return z->n * tiles_down(z) * tiles_across(z); }

void tn__winograd_pixels(const tn__winograd_image *z, const float *in, const float *zeros, int64_t tile,
                         const float **at)
{
  const int64_t across = tiles_across(z), each = tiles_down(z) * across, image = tile / each, rest = tile % each;
  const int64_t top = rest / across * OUT - z->before[0], left = rest % across * OUT - z->before[1];
  for (int64_t i = 0; i < TILE; i++) {
    const int64_t y = top + i;
    const float *line = y >= 0 && y < z->h ? in + (image * z->h + y) * z->w * z->c : NULL;
    for (int64_t j = 0; j < TILE; j++) {
      const int64_t x = left + j;
      *at++ = line != NULL && x >= 0 && x < z->w ? line + x * z->c : zeros;
    }
  }
}

/* ---- the plan ---- */

/* Nanoseconds, one thread: of a product, of a channel of a tile, and of a byte of a filter that is read from memory. */
#define PRODUCT_NS 0.021
#define CHANNEL_NS 5.0
#define BYTE_NS 0.06
#define FILTER_NS 15.0 /* of a filter that is transformed in each step */

/* A constant filter takes four times its memory. With so few places in all results, a large one does not earn that. */
#define FEW_PLACES 300
#define MOST_FILTERS 16384.0

static bool is_worth_it(tn__winograd *w)
{
  const tn__winograd_image *z = &w->z;
  const double filters = (double)z->c * (double)z->oc, tiles = (double)w->tiles;
  const double direct = (double)(z->n * z->oh * z->ow) * filters * 9 * PRODUCT_NS + filters * 36 * BYTE_NS;
  w->cost_ns = tiles * (filters * POINTS * PRODUCT_NS + (double)(z->c + z->oc) * CHANNEL_NS) +
               filters * POINTS * 4 * BYTE_NS;
  if (w->filter != TN__WINOGRAD_CONSTANT) w->cost_ns += filters * FILTER_NS;
  if (w->filter == TN__WINOGRAD_CONSTANT && z->n * z->oh * z->ow < FEW_PLACES && filters > MOST_FILTERS) return false;
  return w->cost_ns < 0.9 * direct;
}

/* Divides the tiles into blocks of nearly equal size, some for each thread. */
static void cut(tn__winograd *w, uint32_t threads)
{
  const int64_t row = POINTS * (w->z.c + w->columns) * (int64_t)sizeof(float), n = threads > 0 ? threads : 1;
  int64_t most = CACHE / row;
  if (most < FEW_TILES) most = FEW_TILES;
  int64_t blocks = (w->tiles + most - 1) / most;
  if (blocks % n != 0 && blocks < 8 * n) blocks += n - blocks % n;
  w->block = (w->tiles + blocks - 1) / blocks;
  const int64_t rows = w->kernel->mr; /* of a tile of the product */
  if (w->block > rows) w->block = (w->block + rows - 1) / rows * rows;
}

/* Packs a constant filter, or takes scratch memory for one that is packed in each step. */
static bool plan_filter(tn__winograd *w, tn_prepare_ctx *ctx, size_t *scratch)
{
  const uint64_t key = 0x77696e6f00000000u | (uint64_t)w->kernel->nr;
  size_t bytes;
  if (!tn__size_mul((size_t)w->z.c, (size_t)w->columns, &bytes) ||
      !tn__size_mul(bytes, POINTS * sizeof(float), &bytes))
    return false;
  if (w->filter == TN__WINOGRAD_CONSTANT)
    return tn_prepare_pack(ctx, 1, key, bytes, pack_filter, w, &w->packed, NULL) == TN_OK;
  w->at_packed = tn__take(scratch, bytes);
  return true;
}

bool tn__winograd_plan(tn__winograd *w, const tn__winograd_image *z, tn__winograd_filter filter, tn_prepare_ctx *ctx,
                       size_t *scratch)
{
  if (ctx->reproducible || z->c < LANES || z->oc < LANES) return false;
  *w = (tn__winograd){ .z = *z, .filter = filter };
  w->tiles = tn__winograd_tiles(z);
  w->kernel = tn__gemm_kernel_find(TN__GEMM_F32, z->oc, false);
  if (w->tiles == 0 || w->kernel->nr % FILTERS != 0 || !is_worth_it(w)) return false;
  w->columns = (z->oc + w->kernel->nr - 1) / w->kernel->nr * w->kernel->nr;
  cut(w, ctx->threads);
  w->x_step = tn__winograd_step(w->block * z->c);
  w->y_step = tn__winograd_step(w->block * w->columns);
  size_t all = *scratch, bytes;
  w->at_zeros = tn__take(&all, (size_t)z->c * sizeof(float));
  if (!tn__size_mul((size_t)(w->x_step + w->y_step), POINTS * sizeof(float), &bytes) ||
      !tn__slots_plan(&w->slots, ctx, bytes, &all) || !plan_filter(w, ctx, &all))
    return false;
  *scratch = all;
  return true;
}

/* ---- a block ---- */

typedef struct run {
  const tn__winograd *w;
  tn__winograd_enter transform;
  back_fn back;
  const float *in, *zeros, *filter; /* filter: packed */
  float *out;
  char *scratch;
  const tn__gemm_then *then;
} run;

static place find_place(const run *r, int64_t tile)
{
  const tn__winograd_image *z = &r->w->z;
  const int64_t across = tiles_across(z), each = tiles_down(z) * across, image = tile / each, rest = tile % each;
  const int64_t top = rest / across * OUT, left = rest % across * OUT;
  place p = { z->oh - top, z->ow - left, r->out + ((image * z->oh + top) * z->ow + left) * z->oc, z->ow * z->oc };
  if (p.rows > OUT) p.rows = OUT;
  if (p.columns > OUT) p.columns = OUT;
  return p;
}

/* Multiplies the matrices of a block. While some panels of the filter are used, those that follow in memory are fetched
 * to the L2 cache, a slice with each group of rows. */
static void multiply(const tn__winograd *w, const float *packed, const float *x, float *y, int64_t tiles)
{
  const tn__gemm_kernel *kernel = w->kernel;
  const int64_t nr = kernel->nr, c = w->z.c, panel = c * nr, line = nr * (int64_t)sizeof(float);
  const int64_t groups = (tiles + kernel->mr - 1) / kernel->mr, fetched = (line + groups - 1) / groups;
  const float *end = packed + POINTS * c * w->columns;
  int64_t some = NEAR_BYTES / (panel * (int64_t)sizeof(float)) * nr;
  if (some < nr) some = nr;
  for (int point = 0; point < POINTS; point++, x += w->x_step, y += w->y_step)
    for (int64_t column = 0; column < w->columns; column += some) {
      tn__gemm_tile t = { .first = true, .outer = 1, .inner = 1, .terms = c, .step = 1, .b_row = nr, .panel = panel,
                          .column = column, .b = packed + (point * w->columns + column) * c,
                          .next_step = fetched, .next_panel = panel * (int64_t)sizeof(float) };
      t.columns = w->columns - column < some ? w->columns - column : some;
      const float *next = (const float *)t.b + t.columns * c;
      t.next = next < end ? (const char *)next : NULL;
      for (int64_t row = 0; row < tiles; row += t.rows) {
        t.rows = (int)(tiles - row < kernel->mr ? tiles - row : kernel->mr);
        for (int i = 0; i < t.rows; i++) {
          t.a[i] = x + (row + i) * c;
          t.c[i] = y + (row + i) * w->columns;
        }
        kernel->run(&t);
        if (t.next != NULL) t.next += fetched * c;
      }
    }
}

/* ---- tiles with elements that are not finite ---- */

/* The taps of nr filters for channel k, from their values at the points. */
static void find_taps(const run *r, int64_t column, int64_t k, float found[9][TN__GEMM_LINE / 4])
{
  const tn__winograd *w = r->w;
  static const int above[3][2] = { { 0, 0 }, { 1, 2 }, { 5, 5 } }; /* the difference of two points is the middle tap */
  const double by[3] = { 1, 1 / (AT_A * 4 / 3), 1 };
  const int64_t nr = w->kernel->nr, matrix = w->z.c * w->columns;
  const float *at = r->filter + column * w->z.c + k * nr;
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++)
      for (int64_t n = 0; n < nr; n++) {
        double sum = 0;
        for (int p = 0; p <= (i == 1); p++)
          for (int q = 0; q <= (j == 1); q++) {
            double v = at[(above[i][p] * TILE + above[j][q]) * matrix + n];
            sum += (p + q) % 2 == 0 ? v : -v;
          }
        found[i * 3 + j][n] = (float)(sum * by[i] * by[j]);
      }
}

/* Computes a tile by its windows. */
static void compute_directly(const run *r, const float *const *from, const place *p)
{
  const tn__winograd *w = r->w;
  const int64_t nr = w->kernel->nr, oc = w->z.oc;
  for (int64_t column = 0; column < oc; column += nr) {
    const int64_t n = oc - column < nr ? oc - column : nr;
    float sums[OUT * OUT][TN__GEMM_LINE / 4] = { { 0 } }, tap[9][TN__GEMM_LINE / 4];
    for (int64_t k = 0; k < w->z.c; k++) {
      find_taps(r, column, k, tap);
      for (int i = 0; i < OUT * OUT; i++)
        for (int t = 0; t < 9; t++) {
          const float *pixel = from[(i / OUT + t / 3) * TILE + i % OUT + t % 3];
          if (pixel == r->zeros) continue;
          for (int64_t j = 0; j < nr; j++) sums[i][j] += pixel[k] * tap[t][j];
        }
    }
    for (int64_t i = 0; i < p->rows; i++)
      for (int64_t j = 0; j < p->columns; j++)
        for (int64_t c = 0; c < n; c++) {
          float v = sums[i * OUT + j][c];
          if (r->then != NULL && r->then->bias != NULL) v += r->then->bias[column + c];
          if (r->then != NULL && r->then->clamp != TN__GEMM_NO_CLAMP) v = v < 0 ? 0 : v;
          if (r->then != NULL && r->then->clamp == TN__GEMM_RELU6) v = v > 6 ? 6 : v;
          p->out[i * p->row + j * oc + column + c] = v;
        }
  }
}

/* ---- running ---- */

static void leave_tile(const run *r, int64_t tile, const float *from)
{
  const tn__winograd *w = r->w;
  const place p = find_place(r, tile);
  const float bad = r->back(from, w->y_step, &p, w->z.oc, r->then);
  if (bad != 0) { /* it is a NaN */
    const float *pixels[POINTS];
    tn__winograd_pixels(&w->z, r->in, r->zeros, tile, pixels);
    compute_directly(r, pixels, &p);
  }
  if (r->then == NULL || r->then->rows == NULL) return;
  for (int64_t i = 0; i < p.rows; i++) {
    void *c[OUT];
    for (int64_t j = 0; j < p.columns; j++) c[j] = p.out + i * p.row + j * w->z.oc;
    r->then->rows(r->then, (int)p.columns, c, 0, w->z.oc);
  }
}

static void run_blocks(void *user, int64_t begin, int64_t end)
{
  const run *r = user;
  const tn__winograd *w = r->w;
  float *x = tn__slots_take(&w->slots, r->scratch), *y = x + POINTS * w->x_step;
  for (int64_t block = begin; block < end; block++) {
    const int64_t first = block * w->block, left = w->tiles - first, n = left < w->block ? left : w->block;
    for (int64_t i = 0; i < n; i++) {
      const float *from[POINTS];
      tn__winograd_pixels(&w->z, r->in, r->zeros, first + i, from);
      r->transform(from, x + i * w->z.c, w->x_step, w->z.c);
    }
    multiply(w, r->filter, x, y, n);
    for (int64_t i = 0; i < n; i++) leave_tile(r, first + i, y + i * w->columns);
  }
  tn__slots_give(&w->slots, r->scratch, x);
}

typedef struct packing {
  const tn__winograd *w;
  const float *filter;
  float *to;
  atomic_bool bad; /* a tap is not finite */
} packing;

static void run_packing(void *user, int64_t begin, int64_t end)
{
  packing *p = user;
  if (!pack_channels(p->w, p->filter, p->to, begin, end)) atomic_store_explicit(&p->bad, true, memory_order_relaxed);
}

bool tn__winograd_run(const tn__winograd *w, tn_kernel_ctx *ctx, const float *in, const float *filter, float *out,
                      const tn__gemm_then *then)
{
  static const back_fn backs[] = TN__FUSED_FNS(back);
  char *scratch = ctx->scratch;
  float *zeros = (float *)(scratch + w->at_zeros);
  run r = { w, tn__winograd_enter_of(), backs[tn__vectors_for(false)], in, zeros, w->packed, out, scratch, then };
  if (w->packed == NULL) {
    packing p = { w, filter, (float *)(scratch + w->at_packed), false };
    tn_parallel_for(ctx, w->z.c, 1, (double)w->z.oc * FILTER_NS, run_packing, &p);
    if (atomic_load_explicit(&p.bad, memory_order_relaxed)) return false;
    r.filter = p.to;
  }
  memset(zeros, 0, (size_t)w->z.c * sizeof *zeros);
  tn__slots_begin(&w->slots, scratch);
  const int64_t blocks = (w->tiles + w->block - 1) / w->block;
  tn_parallel_for(ctx, blocks, 1, w->cost_ns / (double)blocks, run_blocks, &r);
  return true;
}
