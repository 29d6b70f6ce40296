/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of 3 by 3 with fewer products (Winograd): tiles of 6 by 6 of the image and the filter are transformed,
 * so that 36 products of matrices replace the 144 of a tile's 16 results, and their results are transformed back. The
 * products are computed by oneDNN. The transforms run along the channels, which are last; the epilogue is fused into
 * the last transform.
 *
 * The tiles of all images are processed in blocks whose data fits in the cache. */
#include "onednn.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>

#define TILE 6   /* of the image */
#define OUT 4    /* of the result */
#define LANES 16
#define TARGET __attribute__((target("avx512f")))

typedef __m512 lanes;

typedef struct winograd {
  dnn_epilogue epilogue;
  int64_t x[4], y[4], before[2];
  int64_t down, across;           /* tiles of an image */
  int64_t first, n_tiles, block;  /* tile; of all, or of a part; of a block */
  size_t at, products, zeros;           /* places in the scratch */
} winograd;

TARGET static inline lanes load(const float *from)
{
  lanes v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

TARGET static inline void store(float *to, lanes v) { __builtin_memcpy(to, &v, sizeof v); }

/* ---- the image ---- */

/* The points are 0, 2/3, -2/3, 3/2, -3/2 and infinity: whole ones would lose two bits more. */
#define A (2.0f / 3)
#define B (3.0f / 2)

/* Transforms six values in a line, `step` vectors apart, to their values at the points. */
TARGET static inline __attribute__((always_inline)) void spread(const lanes *in, int step, lanes *out)
{
  lanes a = in[0], b = in[step], c = in[2 * step], d = in[3 * step], e = in[4 * step], f = in[5 * step];
  lanes even = e - B * B * c, odd = A * d - B * b, wide = e - A * A * c, far = B * d - A * b;
  out[0] = a - (A * A + B * B) * c + e;
  out[step] = even + odd;
  out[2 * step] = even - odd;
  out[3 * step] = wide + far;
  out[4 * step] = wide - far;
  out[5 * step] = b - (A * A + B * B) * d + f;
}

/* Finds the 36 places of a tile in the image; places outside point to zeros. */
static void find_tile(const winograd *w, const float *x, const float *zeros, int64_t tile, const float **at)
{
  int64_t image = tile / (w->down * w->across), rest = tile % (w->down * w->across);
  int64_t top = rest / w->across * OUT - w->before[0], left = rest % w->across * OUT - w->before[1];
  for (int64_t i = 0; i < TILE; i++)
    for (int64_t j = 0; j < TILE; j++) {
      int64_t r = top + i, c = left + j;
      bool inside = r >= 0 && r < w->x[1] && c >= 0 && c < w->x[2];
      *at++ = inside ? x + ((image * w->x[1] + r) * w->x[2] + c) * w->x[3] : zeros;
    }
}

/* Transforms a tile into its row of a block's 36 matrices, which are `step` elements apart. */
TARGET static void transform(const float *const *from, float *to, int64_t step, int64_t channels)
{
  lanes v[TILE * TILE];
  for (int64_t c = 0; c < channels; c += LANES) {
    for (int i = 0; i < TILE * TILE; i++) v[i] = load(from[i] + c);
    for (int i = 0; i < TILE; i++) spread(v + i, TILE, v + i);
    for (int i = 0; i < TILE; i++) spread(v + i * TILE, 1, v + i * TILE);
    for (int i = 0; i < TILE * TILE; i++) store(to + i * step + c, v[i]);
  }
}

static int64_t tiles_of(const winograd *w, int64_t block)
{
  int64_t left = w->n_tiles - block * w->block;
  return left < w->block ? left : w->block;
}

static void enter(const tn_kernel_ctx *ctx, char *scratch, const void *own, int64_t block)
{
  const winograd *w = own;
  float *to = (float *)(scratch + w->at), *zeros = (float *)(scratch + w->zeros);
  int64_t c = w->x[3], n = tiles_of(w, block), step = w->block * c;
  const float *from[TILE * TILE];
  if (block == 0) memset(zeros, 0, (size_t)c * sizeof *zeros);
  for (int64_t t = 0; t < n; t++) {
    find_tile(w, ctx->inputs[0]->data, zeros, w->first + block * w->block + t, from);
    transform(from, to + t * c, step, c);
  }
  for (int64_t i = 0; n < w->block && i < TILE * TILE; i++) /* rows that the last block does not have */
    memset(to + i * step + n * c, 0, (size_t)((w->block - n) * c) * sizeof *to);
}

/* ---- the result ---- */

/* Transforms six values at the points back to four in a line. */
TARGET static inline __attribute__((always_inline)) void gather(const lanes *in, int step, lanes *out, int out_step)
{
  lanes sum = in[step] + in[2 * step], minus = in[step] - in[2 * step];
  lanes far = in[3 * step] + in[4 * step], far_minus = in[3 * step] - in[4 * step];
  out[0] = in[0] + sum + far;
  out[out_step] = A * minus + B * far_minus;
  out[2 * out_step] = A * A * sum + B * B * far;
  out[3 * out_step] = A * A * A * minus + B * B * B * far_minus + in[5 * step];
}

/* Where a tile's results are stored: the rows and columns that are inside the image. */
typedef struct place {
  int64_t rows, columns, offset;
} place;

static place place_of(const winograd *w, int64_t tile)
{
  int64_t image = tile / (w->down * w->across), rest = tile % (w->down * w->across);
  int64_t top = rest / w->across * OUT, left = rest % w->across * OUT;
  place p = { w->y[1] - top, w->y[2] - left, ((image * w->y[1] + top) * w->y[2] + left) * w->y[3] };
  if (p.rows > OUT) p.rows = OUT;
  if (p.columns > OUT) p.columns = OUT;
  return p;
}

TARGET static inline lanes follow(const winograd *w, const tn_kernel_ctx *ctx, lanes v, int64_t at, int64_t channel)
{
  const lanes zero = { 0 }, alpha = _mm512_set1_ps(w->epilogue.alpha);
  uint32_t input = 2;
  for (uint32_t i = 0; i < w->epilogue.n; i++) {
    switch (w->epilogue.steps[i]) {
    case DNN_BIAS: v += load((const float *)ctx->inputs[input++]->data + channel); break;
    case DNN_ADD: v += load((const float *)ctx->inputs[input++]->data + at); break;
    /* If an operand is a NaN, the second one is returned: so a NaN in v stays, as in the library's own kernels. */
    case DNN_RELU: v = _mm512_max_ps(zero, v); break;
    case DNN_RELU6: v = _mm512_min_ps(_mm512_set1_ps(6), _mm512_max_ps(zero, v)); break;
    default: v = _mm512_mask_mul_ps(v, _mm512_cmp_ps_mask(v, zero, _CMP_LT_OQ), v, alpha); break;
    }
  }
  return v;
}

TARGET static void transform_back(const winograd *w, const tn_kernel_ctx *ctx, const float *from, int64_t step,
                                  const place *p)
{
  float *y = ctx->outputs[0]->data;
  int64_t k = w->y[3];
  for (int64_t c = 0; c < k; c += LANES) {
    lanes v[TILE * TILE], half[OUT * TILE], out[OUT * OUT];
    for (int i = 0; i < TILE * TILE; i++) v[i] = load(from + i * step + c);
    for (int i = 0; i < TILE; i++) gather(v + i, TILE, half + i, TILE);
    for (int i = 0; i < OUT; i++) gather(half + i * TILE, 1, out + i * OUT, 1);
    for (int64_t r = 0; r < p->rows; r++)
      for (int64_t l = 0; l < p->columns; l++) {
        int64_t at = p->offset + (r * w->y[2] + l) * k + c;
        store(y + at, follow(w, ctx, out[r * OUT + l], at, c));
      }
  }
}

static void leave(const tn_kernel_ctx *ctx, char *scratch, const void *own, int64_t block)
{
  const winograd *w = own;
  const float *from = (const float *)(scratch + w->products);
  int64_t n = tiles_of(w, block);
  for (int64_t t = 0; t < n; t++) {
    place p = place_of(w, w->first + block * w->block + t);
    transform_back(w, ctx, from + t * w->y[3], w->block * w->y[3], &p);
  }
}

/* ---- the filter ---- */

typedef __m512d wide;

/* The values of three taps at the six points. */
TARGET static inline __attribute__((always_inline)) void points(const wide *in, int step, wide *out, int out_step)
{
  const double a2 = 4.0 / 9, b2 = 9.0 / 4, at_a = 1 / (2 * a2 * (a2 - b2)), at_b = 1 / (2 * b2 * (b2 - a2));
  wide a = in[0], b = in[step], c = in[2 * step];
  wide even = (a + a2 * c) * at_a, odd = b * (at_a * 2 / 3), far = (a + b2 * c) * at_b, far_odd = b * (at_b * 3 / 2);
  out[0] = a;
  out[out_step] = even + odd;
  out[2 * out_step] = even - odd;
  out[3 * out_step] = far + far_odd;
  out[4 * out_step] = far - far_odd;
  out[5 * out_step] = c;
}

/* Packs [3, 3, in, out] as 36 matrices [in, out]; computed in double, rounded once. */
TARGET static tn_status pack(void *user, const tn_view *from, void *to, tn_error *err)
{
  const int64_t n = from->dims[2] * from->dims[3]; /* filters, LANES of them or more */
  const float *in = from->data;
  float *out = to;
  for (int64_t i = 0; i < n; i += LANES / 2) {
    wide taps[9], half[TILE * 3], all[TILE * TILE];
    for (int k = 0; k < 9; k++) taps[k] = _mm512_cvtps_pd(_mm256_loadu_ps(in + k * n + i));
    for (int k = 0; k < 3; k++) points(taps + k, 3, half + k, 3);
    for (int k = 0; k < TILE; k++) points(half + k * 3, 1, all + k * TILE, 1);
    for (int k = 0; k < TILE * TILE; k++) _mm256_storeu_ps(out + k * n + i, _mm512_cvtpd_ps(all[k]));
  }
  return TN_OK;
}

/* ---- the plan ---- */

#define CACHE 400000   /* bytes of a block; second-level caches have 1 MB or more */
#define MIN_PIXELS 500 /* of all results: a filter of four times the size must be computed, stored and read */

static bool fits(const tn_prepare_ctx *ctx, const dnn_epilogue *e, const dnn_window *w, const int64_t *x,
                 const int64_t *y)
{
  const unsigned wanted = dnnl_cpu_isa_avx512_core;
  if (((unsigned)dnnl_get_effective_cpu_isa() & wanted) != wanted || !tn_prepare_is_constant(ctx, 1)) return false;
  for (int a = 0; a < 2; a++)
    if (w->size[a] != 3 || w->stride[a] != 1 || w->dilation[a] != 1) return false;
  for (uint32_t i = 0; i < e->n; i++)
    if (e->steps[i] > DNN_LEAKY_RELU) return false;
  return x[3] % LANES == 0 && y[3] % LANES == 0 && y[0] * y[1] * y[2] >= MIN_PIXELS;
}

/* Divides the tiles into blocks of nearly equal size. */
static void cut(winograd *w)
{
  int64_t row = TILE * TILE * (w->x[3] + w->y[3]) * (int64_t)sizeof(float);
  int64_t most = CACHE / row;
  if (most < 16) most = 16;
  int64_t blocks = (w->n_tiles + most - 1) / most;
  w->block = (w->n_tiles + blocks - 1) / blocks;
}

static dnnl_memory_desc_t matrices(int64_t rows, int64_t columns)
{
  const int64_t dims[] = { TILE * TILE, rows, columns }, strides[] = { rows * columns, columns, 1 };
  return dnn_strided(dims, strides, 3, dnnl_f32);
}

/* Makes a plan for w->n_tiles tiles from w->first on, without the filter. */
static tn_status tiles_create(tn_prepare_ctx *ctx, const winograd *tiles, dnn_plan **out, tn_error *err)
{
  winograd *w = tn_alloc(sizeof *w);
  if (w == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "out of memory for a convolution");
  *w = *tiles;
  cut(w);
  dnnl_memory_desc_t from = matrices(w->block, w->x[3]), to = matrices(w->block, w->y[3]);
  dnnl_memory_desc_t by = matrices(w->x[3], w->y[3]);
  dnnl_matmul_desc_t desc;
  tn_status st = dnn_status(dnnl_matmul_desc_init(&desc, &from, &by, NULL, &to), "product", err);
  if (st == TN_OK) st = dnn_plan_create(ctx, &desc, &(dnn_setup){ NULL, NULL, NULL }, out, err);
  if (st != TN_OK) {
    tn_free(w);
    return st;
  }
  dnn_plan *p = *out;
  w->at = dnn_plan_room(p, dnnl_memory_desc_get_size(&from));
  w->products = dnn_plan_room(p, dnnl_memory_desc_get_size(&to));
  w->zeros = dnn_plan_room(p, (size_t)w->x[3] * sizeof(float));
  dnn_plan_inner(p, DNNL_ARG_SRC, w->at, &from);
  dnn_plan_inner(p, DNNL_ARG_DST, w->products, &to);
  p->n_blocks = (w->n_tiles + w->block - 1) / w->block;
  p->enter = enter;
  p->leave = leave;
  p->own = w;
  return TN_OK;
}

/* Adds the filter, of which all parts share one packed form. */
static tn_status tiles_end(tn_prepare_ctx *ctx, const winograd *w, dnn_plan *p, tn_error *err)
{
  dnnl_memory_desc_t by = matrices(w->x[3], w->y[3]);
  const void *filter;
  tn_status st = tn_prepare_pack(ctx, 1, 0x3341, dnnl_memory_desc_get_size(&by), pack, NULL, &filter, err);
  if (st != TN_OK) return st;
  dnn_plan_fixed(p, DNNL_ARG_WEIGHTS, filter, &by);
  st = dnn_plan_end(p, ctx, err);
  /* No other form can be tried: the filter is packed, and its elements may be freed. */
  return st == TN_UNIMPLEMENTED ? tn_error_wrap(err, TN_INTERNAL, "oneDNN takes back a product that it had taken") : st;
}

#define MIN_TILES 6 /* of a part */
#define TILE_NS 0.009 /* of a product of a tile, the transforms with it: 16 results by 9 taps */

static tn_status plan(tn_prepare_ctx *ctx, const winograd *w, tn_error *err)
{
  double ns = (double)w->n_tiles * 144 * (double)w->x[3] * (double)w->y[3] * TILE_NS;
  uint32_t n = dnn_parts_worth(ctx, ns);
  dnn_plan *p, *all = NULL;
  if (n > 1 && w->n_tiles / n < MIN_TILES) n = (uint32_t)(w->n_tiles / MIN_TILES);
  tn_status st = TN_OK;
  if (n > 1) {
    st = dnn_parts_begin(ctx, n, ns, err);
    all = ctx->shape_state;
  }
  for (uint32_t i = 0; st == TN_OK && i < (n > 1 ? n : 1); i++) {
    winograd tiles = *w;
    if (n > 1) tiles.first = dnn_part_begin(w->n_tiles, n, i);
    if (n > 1) tiles.n_tiles = dnn_part_begin(w->n_tiles, n, i + 1) - tiles.first;
    st = tiles_create(ctx, &tiles, &p, err);
  }
  if (n <= 1) return st == TN_OK ? tiles_end(ctx, w, p, err) : st;
  for (uint32_t i = 0; st == TN_OK && i < n; i++) st = tiles_end(ctx, w, all->parts[i], err);
  if (st != TN_OK) return st;
  dnn_whole_begin(ctx);
  st = tiles_create(ctx, w, &p, err);
  dnn_whole_end(ctx, st == TN_OK ? tiles_end(ctx, w, p, err) : st, err);
  return TN_OK;
}

tn_status dnn_winograd_plan(tn_prepare_ctx *ctx, const dnn_epilogue *e, const dnn_window *window, const int64_t *x,
                            const int64_t *y, tn_error *err)
{
  if (!fits(ctx, e, window, x, y)) return dnn_declined(err, "no such convolution");
  winograd w = { .epilogue = *e, .before = { window->before[0], window->before[1] } };
  memcpy(w.x, x, sizeof w.x);
  memcpy(w.y, y, sizeof w.y);
  w.down = (y[1] + OUT - 1) / OUT;
  w.across = (y[2] + OUT - 1) / OUT;
  w.n_tiles = y[0] * w.down * w.across;
  return plan(ctx, &w, err);
}

#else

tn_status dnn_winograd_plan(tn_prepare_ctx *ctx, const dnn_epilogue *e, const dnn_window *window, const int64_t *x,
                            const int64_t *y, tn_error *err)
{
  return dnn_declined(err, "no such vectors");
}

#endif
