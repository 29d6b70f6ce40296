/* SPDX-License-Identifier: Apache-2.0 */
/* DepthwiseConv2dNative, with and without an epilogue, and its gradients: every channel has its own filters.
 *
 * Channels are last, and the result is computed line by line, so that all inner loops run over adjacent elements.
 * Images with channels first, and half and bfloat16, are converted to that form in scratch memory. */
#include <core/base/alloc.h>
#include <ops/kernel/elements/vectors.h>
#include <ops/kernel/elements/widen.h>
#include <ops/kernel/family.h>
#include <ops/kernel/poll.h>
#include <ops/kernel/product/after_product.h>
#include <ops/kernel/shapes.h>
#include <ops/nn/conv/convolution.h>
#include <string.h>

static const tn__conv_kind forward = { .wanted = TN__CONV_Y, .directions = 2, .depthwise = true };
static const tn__conv_kind to_input = { .wanted = TN__CONV_X, .directions = 2, .depthwise = true };
static const tn__conv_kind to_filter = { .wanted = TN__CONV_FILTER, .directions = 2, .depthwise = true };

/* ---- loops ---- */

/* The taps of a window that are inside the image, relative to in and filter. Strides are in elements. */
typedef struct taps {
  int64_t rows, columns;
  int64_t in_row, in_column, filter_row, filter_column;
} taps;

/* c channels, each with `outs` outputs.
 * pixel    out = sum over taps of in times filter
 * pixels   the same for n pixels with the same taps, in_step and out_step apart, if each channel has one output.
 *          Applies bias and clamp of `then` (may be NULL), but not its `rows`
 * spread   in += out times filter, summed over a channel's outputs
 * gather   filter += in times out */
typedef struct loops {
  void (*pixel)(const taps *t, const void *in, const void *filter, void *out, int64_t c, int64_t outs);
  void (*pixels)(const taps *t, const void *in, int64_t in_step, const void *filter, void *out, int64_t out_step,
                 int64_t n, int64_t c, const tn__gemm_then *then);
  void (*spread)(void *in, const void *filter, const void *out, int64_t c, int64_t outs);
  void (*gather)(const void *in, void *filter, const void *out, int64_t c, int64_t outs);
  void (*add)(void *sums, void *to, int64_t n); /* to += sums; then clears sums */
} loops;

#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

#define PIXELS 4 /* number of pixels that share the loaded filter values */

/* Applies bias and clamp to a block's sums. Float only. */
#define FINISH_f32(T, V, bytes)                                                                                     \
  if (then != NULL) {                                                                                               \
    typedef int32_t bits __attribute__((vector_size(bytes)));                                                       \
    const V zero = { 0 }, six = zero + 6;                                                                           \
    UNROLL for (int v = 0; v < vectors; v++) {                                                                      \
      V add = { 0 };                                                                                                \
      if (then->bias != NULL) __builtin_memcpy(&add, then->bias + channel + v * LANES, sizeof add);                 \
      UNROLL for (int i = 0; i < n; i++) {                                                                          \
        if (then->bias != NULL) sum[i][v] += add;                                                                   \
        if (then->clamp != TN__GEMM_NO_CLAMP) sum[i][v] = (V)((bits)sum[i][v] & ~(sum[i][v] < zero));               \
        if (then->clamp == TN__GEMM_RELU6) {                                                                        \
          bits over = sum[i][v] > six;                                                                              \
          sum[i][v] = (V)(((bits)sum[i][v] & ~over) | ((bits)six & over));                                          \
        }                                                                                                           \
      }                                                                                                             \
    }                                                                                                               \
  }
#define FINISH_f64(T, V, bytes)

/* Keeps the sums of `n` pixels by `vectors` vectors of channels in registers while all taps are added. The last
 * vector is aligned to the end of the channels, so it may compute some channels twice. If there are fewer channels
 * than one vector holds, `fewer` is used. */
#define PIXEL_VECTORS(name, type, T, V, bytes, fewer, TARGET)                                                       \
  typedef T V __attribute__((vector_size(bytes)));                                                                  \
  TARGET static inline __attribute__((always_inline)) void block_##name(                                            \
      const int n, const int vectors, const taps *t, const T *in, int64_t in_step, const T *filter, T *out,         \
      int64_t out_step, const tn__gemm_then *then, int64_t channel)                                                 \
  {                                                                                                                 \
    enum { LANES = bytes / sizeof(T) };                                                                             \
    const int64_t columns = t->columns, in_column = t->in_column, filter_column = t->filter_column;                 \
    V sum[PIXELS][4];                                                                                               \
    UNROLL for (int i = 0; i < n; i++)                                                                              \
      UNROLL for (int v = 0; v < vectors; v++) sum[i][v] = (V){ 0 };                                                \
    for (int64_t r = 0; r < t->rows; r++) {                                                                         \
      const T *x = in + channel + r * t->in_row, *f = filter + channel + r * t->filter_row;                         \
      for (int64_t k = 0; k < columns; k++, x += in_column, f += filter_column) {                                   \
        UNROLL for (int v = 0; v < vectors; v++) {                                                                  \
          V by, pixel;                                                                                              \
          __builtin_memcpy(&by, f + v * LANES, sizeof by);                                                          \
          UNROLL for (int i = 0; i < n; i++) {                                                                      \
            __builtin_memcpy(&pixel, x + i * in_step + v * LANES, sizeof pixel);                                    \
            sum[i][v] += pixel * by;                                                                                \
          }                                                                                                         \
        }                                                                                                           \
      }                                                                                                             \
    }                                                                                                               \
    FINISH_##type(T, V, bytes)                                                                                      \
    UNROLL for (int i = 0; i < n; i++)                                                                              \
      UNROLL for (int v = 0; v < vectors; v++)                                                                      \
        __builtin_memcpy(out + channel + i * out_step + v * LANES, &sum[i][v], sizeof sum[i][v]);                   \
  }                                                                                                                 \
  TARGET static inline __attribute__((always_inline)) void sweep_##name(                                            \
      const int n, const int vectors, const taps *t, const T *in, int64_t in_step, const T *filter, T *out,         \
      int64_t out_step, int64_t c, const tn__gemm_then *then)                                                       \
  {                                                                                                                 \
    const int64_t lanes = bytes / (int64_t)sizeof(T), wide = vectors * lanes;                                       \
    int64_t j = 0;                                                                                                  \
    for (; j + wide <= c; j += wide) block_##name(n, vectors, t, in, in_step, filter, out, out_step, then, j);      \
    for (; j < c; j += lanes)                                                                                       \
      block_##name(n, 1, t, in, in_step, filter, out, out_step, then, j + lanes > c ? c - lanes : j);               \
  }                                                                                                                 \
  TARGET static void pixels_##name(const taps *t, const void *from, int64_t in_step, const void *filter, void *to,  \
                                   int64_t out_step, int64_t n, int64_t c, const tn__gemm_then *then)               \
  {                                                                                                                 \
    const T *in = from;                                                                                             \
    T *out = to;                                                                                                    \
    if (c < bytes / (int64_t)sizeof(T)) {                                                                           \
      pixels_##fewer(t, in, in_step, filter, out, out_step, n, c, then);                                            \
      return;                                                                                                       \
    }                                                                                                               \
    for (; n >= PIXELS; n -= PIXELS, in += PIXELS * in_step, out += PIXELS * out_step)                              \
      sweep_##name(PIXELS, 2, t, in, in_step, filter, out, out_step, c, then);                                      \
    if (n == 1) sweep_##name(1, 4, t, in, in_step, filter, out, out_step, c, then);                                 \
    if (n == 2) sweep_##name(2, 2, t, in, in_step, filter, out, out_step, c, then);                                 \
    if (n == 3) sweep_##name(3, 2, t, in, in_step, filter, out, out_step, c, then);                                 \
  }
#define PIXEL(name, T)                                                                                              \
  static void pixel_##name(const taps *t, const void *from, const void *by, void *to, int64_t c, int64_t outs)      \
  {                                                                                                                 \
    const T *in = from, *filter = by;                                                                               \
    T *out = to;                                                                                                    \
    for (int64_t j = 0; j < c * outs; j++) out[j] = 0;                                                              \
    for (int64_t r = 0; r < t->rows; r++)                                                                           \
      for (int64_t k = 0; k < t->columns; k++) {                                                                    \
        const T *x = in + r * t->in_row + k * t->in_column;                                                         \
        const T *f = filter + r * t->filter_row + k * t->filter_column;                                             \
        for (int64_t j = 0; j < c; j++)                                                                             \
          for (int64_t o = 0; o < outs; o++) out[j * outs + o] += x[j] * f[j * outs + o];                           \
      }                                                                                                             \
  }                                                                                                                 \
  static void pixels_few_##name(const taps *t, const void *in, int64_t in_step, const void *filter, void *out,      \
                                int64_t out_step, int64_t n, int64_t c, const tn__gemm_then *then)                  \
  {                                                                                                                 \
    for (int64_t i = 0; i < n; i++) {                                                                               \
      void *to = (T *)out + i * out_step;                                                                           \
      pixel_##name(t, (const T *)in + i * in_step, filter, to, c, 1);                                               \
      if (then != NULL) tn__after_product_finish(then, 1, &to, 0, c);                                               \
    }                                                                                                               \
  }
#define SPREAD(name, T)                                                                                   \
  static void spread_##name(void *to, const void *by, const void *from, int64_t c, int64_t outs)          \
  {                                                                                                       \
    T *restrict in = to;                                                                                  \
    const T *restrict f = by, *restrict out = from;                                                       \
    if (outs == 1) {                                                                                      \
      for (int64_t j = 0; j < c; j++) in[j] += out[j] * f[j];                                             \
      return;                                                                                             \
    }                                                                                                     \
    for (int64_t j = 0; j < c; j++) {                                                                     \
      T sum = 0;                                                                                          \
      for (int64_t o = 0; o < outs; o++) sum += out[j * outs + o] * f[j * outs + o];                      \
      in[j] += sum;                                                                                       \
    }                                                                                                     \
  }
#define GATHER(name, T)                                                                                   \
  static void gather_##name(const void *from, void *to, const void *by, int64_t c, int64_t outs)          \
  {                                                                                                       \
    T *restrict f = to;                                                                                   \
    const T *restrict in = from, *restrict out = by;                                                      \
    if (outs == 1) {                                                                                      \
      for (int64_t j = 0; j < c; j++) f[j] += in[j] * out[j];                                             \
      return;                                                                                             \
    }                                                                                                     \
    for (int64_t j = 0; j < c; j++)                                                                       \
      for (int64_t o = 0; o < outs; o++) f[j * outs + o] += in[j] * out[j * outs + o];                    \
  }
#define ADD(name, T)                                           \
  static void add_##name(void *from, void *to, int64_t n)      \
  {                                                            \
    T *restrict sums = from, *restrict all = to;               \
    for (int64_t i = 0; i < n; i++) {                          \
      all[i] += sums[i];                                       \
      sums[i] = 0;                                             \
    }                                                          \
  }
#define LOOPS(name, T)                                       \
  PIXEL(name, T)                                             \
  PIXEL_VECTORS(name, name, T, vec_##name, 16, few_##name, ) \
  SPREAD(name, T)                                            \
  GATHER(name, T)                                            \
  ADD(name, T)                                               \
  static const loops loops_##name = { pixel_##name, pixels_##name, spread_##name, gather_##name, add_##name };
LOOPS(f32, float)
LOOPS(f64, double)

/* Wide vectors: the same sums in the same order, more of them at a time. */
#if TN__VECTORS > 1
#define WIDE(name, T, bytes, target, base, fewer)                            \
  PIXEL_VECTORS(name, base, T, vec_##name, bytes, fewer, target)             \
  static const loops loops_##name = { pixel_##base, pixels_##name, spread_##base, gather_##base, add_##base };
WIDE(f32_avx2, float, 32, TN__FOR_AVX2, f32, f32)
WIDE(f64_avx2, double, 32, TN__FOR_AVX2, f64, f64)
WIDE(f32_avx512, float, 64, TN__FOR_AVX512, f32, f32_avx2)
WIDE(f64_avx512, double, 64, TN__FOR_AVX512, f64, f64_avx2)
#endif

static const loops *loops_of(tn_dtype wide)
{
  static const loops *const f32[] = TN__FNS(&loops_f32), *const f64[] = TN__FNS(&loops_f64);
  return (wide == TN_FLOAT ? f32 : f64)[tn__vectors()];
}

/* ---- states ---- */

typedef struct depthwise_state {
  const tn__conv_kind *kind;
  const loops *loops;
  tn__volume_window window;
  tn_dtype dtype;
  size_t size; /* bytes per element of the compute type */
  tn__epilogue epilogue;
} depthwise_state;

enum { X, FILTER, Y };

typedef struct depthwise_plan {
  tn__conv_sizes z;
  tn__form form[3];
  int64_t inside[2][2]; /* ranges [0, 1) of lines and of positions in a line whose windows have all taps on that axis */
  bool upright;         /* lines are short: positions in the same column are processed together, not those in a line */
  size_t at_sums; /* offset in scratch, for the filter's gradient: sums of one line for each tap */
} depthwise_plan;

static tn_status create(const tn_operation *op, const tn__conv_kind *kind, void **state, tn_error *err)
{
  *state = NULL;
  depthwise_state s = { .kind = kind, .dtype = tn_operation_output_dtype(op, 0) };
  tn_dtype wide = tn__wide_dtype(s.dtype);
  tn_status st = tn__conv_read(op, kind, &s.window, err);
  if (st == TN_OK) st = tn__after_product_read(op, !s.window.channels_first, &s.epilogue, err);
  if (st != TN_OK) return st;
  if (wide != TN_FLOAT && wide != TN_DOUBLE) return tn__no_kernel(err, op, s.dtype);
  s.loops = loops_of(wide);
  s.size = tn_dtype_size(wide);
  return tn__keep_state(&s, sizeof s, "convolution", state, err);
}

/* Defines the shape function and `create` of a kind. */
#define KIND(kind)                                                                            \
  static tn_status infer_##kind(tn_infer_ctx *ctx, tn_error *err)                             \
  {                                                                                           \
    return tn__conv_infer(ctx, &kind, err);                                                   \
  }                                                                                           \
  static tn_status create_##kind(const tn_operation *op, void **state, tn_error *err)         \
  {                                                                                           \
    return create(op, &kind, state, err);                                                     \
  }
KIND(forward)
KIND(to_input)
KIND(to_filter)

static void destroy(void *state) { tn__free(state, sizeof(depthwise_state)); }
static void destroy_plan(void *plan) { tn__free(plan, sizeof(depthwise_plan)); }

/* Finds the positions [inside[0], inside[1]) of an axis whose windows have all taps inside. */
static void find_inside(const tn__window_axis *a, int64_t length, int64_t places, int64_t *inside)
{
  int64_t room = length + a->before - (a->size - 1) * a->dilation; /* for the first tap, counted from position 0 */
  inside[0] = a->before <= 0 ? 0 : (a->before - 1) / a->stride + 1;
  inside[1] = room <= 0 ? 0 : (room - 1) / a->stride + 1;
  if (inside[1] > places) inside[1] = places;
  if (inside[0] >= inside[1]) inside[0] = inside[1] = 0;
}

static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const depthwise_state *s = ctx->state;
  tn__conv_sizes z;
  int64_t dims[5];
  tn_status st = tn__conv_prepare(ctx, s->kind, &s->window, &z, err);
  if (st == TN_OK && s->kind->wanted == TN__CONV_FILTER && z.y_pixels == 0)
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: there are no images to take a gradient from",
                      tn_operation_type(ctx->op));
  if (st == TN_OK) {
    tn__volume_dims(&s->window, &z.y, dims);
    st = tn__after_product_check(&s->epilogue, ctx, 2, dims, 4, err);
  }
  if (st != TN_OK) return st;
  depthwise_plan *p = tn__zalloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "convolution plan", sizeof *p);
  ctx->shape_state = p;
  p->z = z;
  for (int k = 0; k < 2 && z.y_pixels > 0; k++)
    find_inside(&z.window.axis[k + 1], z.x.size[k + 1], z.y.size[k + 1], p->inside[k]);
  const int64_t lines = p->inside[0][1] - p->inside[0][0], places = p->inside[1][1] - p->inside[1][0];
  p->upright = z.fo == 1 && places < 2 * PIXELS && lines > places;
  const tn__volume filter = { 1, { 1, 1, z.taps }, z.y.c };
  size_t scratch = 0;
  tn__form_plan(&p->form[X], s->dtype, s->window.channels_first, &z.x, &scratch);
  tn__form_plan(&p->form[FILTER], s->dtype, false, &filter, &scratch);
  tn__form_plan(&p->form[Y], s->dtype, s->window.channels_first, &z.y, &scratch);
  if (s->kind->wanted == TN__CONV_FILTER)
    p->at_sums = tn__take(&scratch, (size_t)(z.taps * z.y.c) * tn_dtype_size(tn__wide_dtype(s->dtype)));
  ctx->scratch_bytes = scratch;
  ctx->cost_ns = 50 + 0.2 * (double)z.y_pixels * (double)z.y.c * (double)z.taps;
  return TN_OK;
}

/* ---- computing ---- */

typedef struct run {
  const loops *loops;
  const depthwise_plan *plan;
  const tn__conv_sizes *z;
  size_t size;
  char *in, *filter, *out, *sums;
  const tn__gemm_then *then;
} run;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Computes `lines` lines of the result, starting at `out`, that have the same vertical taps. t's rows begin at row
 * `row` of the filter, which reads line `in` of the images. */
static void do_lines(const run *r, taps *t, const char *in, int64_t row, char *out, int64_t lines)
{
  const tn__conv_sizes *z = r->z;
  const tn__window_axis *v = &z->window.axis[1], *u = &z->window.axis[2];
  const int64_t c = z->x.c, *inside = r->plan->inside[1];
  const size_t pixel = (size_t)c * r->size, result = (size_t)z->y.c * r->size;
  const int64_t place_ns = z->y.c * z->taps / 4 * lines,
                most = place_ns < TN__POLL_NS ? TN__POLL_NS / (place_ns + 1) + PIXELS : 1;
  tn__poll poll = tn__poll_here();
  for (int64_t x = 0, n = 1; x < z->y.size[2]; x += n, out += (size_t)n * result) {
    int64_t at = x * u->stride - u->before, column = 0;
    const bool whole = x >= inside[0] && x < inside[1];
    n = whole && lines == 1 ? least(inside[1] - x, most) : 1;
    if (tn__poll_over(&poll, n * place_ns)) return;
    t->columns = u->size;
    if (!whole) tn__window_taps(u, x, z->x.size[2], &at, &column, &t->columns);
    if (t->rows <= 0 || t->columns <= 0) at = column = 0;
    const char *from = in + (size_t)at * pixel, *filter = r->filter + (size_t)(row * u->size + column) * result;
    if (lines > 1) {
      r->loops->pixels(t, from, v->stride * z->x.size[2] * c, filter, out, z->y.size[2] * c, lines, c, r->then);
      continue;
    }
    if (z->fo == 1) {
      r->loops->pixels(t, from, u->stride * c, filter, out, c, n, c, r->then);
      continue;
    }
    for (int64_t i = 0; i < n; i++) {
      void *to = out + (size_t)i * result;
      r->loops->pixel(t, from + (size_t)(i * u->stride) * pixel, filter, to, c, z->fo);
      if (r->then != NULL) tn__after_product_finish(r->then, 1, &to, 0, z->y.c);
    }
  }
}

/* Applies the remaining epilogue steps to positions [0, n), starting at `out`. */
static void follow(const run *r, char *out, int64_t n)
{
  void *places[TN__GEMM_MR];
  if (r->then == NULL || r->then->rows == NULL) return;
  for (int64_t x = 0, k; x < n; x += k) {
    for (k = 0; k < TN__GEMM_MR && x + k < n; k++) places[k] = out + (size_t)((x + k) * r->z->y.c) * r->size;
    r->then->rows(r->then, (int)k, places, 0, r->z->y.c);
  }
}

static void line_part(void *user, int64_t begin, int64_t end)
{
  const run *r = user;
  const tn__conv_sizes *z = r->z;
  const tn__window_axis *v = &z->window.axis[1], *u = &z->window.axis[2];
  const int64_t oh = z->y.size[1], ow = z->y.size[2], h = z->x.size[1], w = z->x.size[2], c = z->x.c;
  const int64_t *inside = r->plan->inside[0];
  taps t = { .in_row = v->dilation * w * c, .in_column = u->dilation * c, .filter_row = u->size * z->y.c,
             .filter_column = z->y.c };
  for (int64_t line = begin, n; line < end; line += n) {
    int64_t at, row, y = line % oh;
    tn__window_taps(v, y, h, &at, &row, &t.rows);
    if (t.rows <= 0) row = 0;
    n = 1;
    if (r->plan->upright && y >= inside[0])
      while (n < PIXELS && line + n < end && y + n < inside[1]) n++;
    char *out = r->out + (size_t)(line * ow * z->y.c) * r->size;
    do_lines(r, &t, r->in + (size_t)((line / oh * h + at) * w * c) * r->size, row, out, n);
    follow(r, out, n * ow);
  }
}

/* Gradient of the images, by lines: adds the contributions of all positions that read a line. */
static void spread_part(void *user, int64_t begin, int64_t end)
{
  const run *r = user;
  const tn__conv_sizes *z = r->z;
  const tn__window_axis *v = &z->window.axis[1], *u = &z->window.axis[2];
  const int64_t oh = z->y.size[1], ow = z->y.size[2], h = z->x.size[1], w = z->x.size[2], c = z->x.c;
  tn__poll poll = tn__poll_here();
  for (int64_t line = begin; line < end; line++) {
    char *to = r->in + (size_t)(line * w * c) * r->size;
    memset(to, 0, (size_t)(w * c) * r->size);
    for (int64_t k = 0; k < v->size; k++) {
      int64_t way = line % h + v->before - k * v->dilation, y = way / v->stride;
      if (way < 0 || way % v->stride != 0 || y >= oh) continue;
      const char *from = r->out + (size_t)((line / h * oh + y) * ow * z->y.c) * r->size;
      for (int64_t x = 0; x < ow; x++) {
        int64_t at, column, n;
        tn__window_taps(u, x, w, &at, &column, &n);
        if (tn__poll_over(&poll, 10 + n * z->y.c / 2)) return;
        for (int64_t j = 0; j < n; j++)
          r->loops->spread(to + (size_t)((at + j * u->dilation) * c) * r->size,
                           r->filter + (size_t)((k * u->size + column + j) * z->y.c) * r->size,
                           from + (size_t)(x * z->y.c) * r->size, c, z->fo);
      }
    }
  }
}

/* Gradient of the filter, by taps: sums over all positions. Each line is summed separately, to keep rounding errors
 * small. */
static void gather_part(void *user, int64_t begin, int64_t end)
{
  const run *r = user;
  const tn__conv_sizes *z = r->z;
  const tn__window_axis *v = &z->window.axis[1], *u = &z->window.axis[2];
  const int64_t oh = z->y.size[1], ow = z->y.size[2], h = z->x.size[1], w = z->x.size[2], c = z->x.c;
  tn__poll poll = tn__poll_here();
  for (int64_t tap = begin; tap < end; tap++) {
    const size_t line_bytes = (size_t)z->y.c * r->size;
    char *to = r->filter + (size_t)tap * line_bytes, *sums = r->sums + (size_t)tap * line_bytes;
    memset(to, 0, line_bytes);
    memset(sums, 0, line_bytes);
    for (int64_t line = 0; line < z->y.n * oh; line++) {
      int64_t at_h = line % oh * v->stride - v->before + tap / u->size * v->dilation;
      if (at_h < 0 || at_h >= h) continue;
      for (int64_t x = 0; x < ow; x++) {
        int64_t at_w = x * u->stride - u->before + tap % u->size * u->dilation;
        if (at_w < 0 || at_w >= w) continue;
        if (tn__poll_over(&poll, 5 + z->y.c / 2)) return;
        r->loops->gather(r->in + (size_t)(((line / oh * h + at_h) * w + at_w) * c) * r->size, sums,
                         r->out + (size_t)((line * ow + x) * z->y.c) * r->size, c, z->fo);
      }
      r->loops->add(sums, to, z->y.c);
    }
  }
}

static tn_status compute(tn_kernel_ctx *ctx)
{
  const depthwise_state *s = ctx->state;
  const depthwise_plan *p = ctx->shape_state;
  const tn__conv_sizes *z = &p->z;
  int wanted = FILTER;
  int64_t n = z->taps;
  void (*part)(void *user, int64_t begin, int64_t end) = gather_part;
  if (s->kind->wanted == TN__CONV_Y) wanted = Y, n = z->y.n * z->y.size[1], part = line_part;
  else if (s->kind->wanted == TN__CONV_X) wanted = X, n = z->x.n * z->x.size[1], part = spread_part;
  void *at[3] = { NULL, NULL, NULL };
  if (ctx->outputs[0]->count == 0) return TN_OK;
  for (int i = 0; i < 3; i++)
    if (i != wanted && i < (int)ctx->n_inputs)
      at[i] = (void *)tn__form_load(&p->form[i], ctx, ctx->inputs[i]->data, ctx->scratch);
  at[wanted] = tn__form_room(&p->form[wanted], ctx->outputs[0]->data, ctx->scratch);
  tn__after_product after;
  run r = { s->loops, p, z, s->size, at[X], at[FILTER], at[Y], (char *)ctx->scratch + p->at_sums,
            tn__after_product_set(&after, &s->epilogue, ctx, 2, 0) };
  double all = 0.2 * (double)z->y_pixels * (double)z->y.c * (double)z->taps;
  tn__run_parts(ctx, n, all / (double)n, part, &r);
  tn__form_store(&p->form[wanted], ctx, ctx->outputs[0]->data, ctx->scratch);
  return TN_OK;
}

/* ---- tables ---- */

#define ATTRS                                                                                                       \
  "T: {half, bfloat16, float, double}; strides: list(int); padding: {'SAME', 'VALID', 'EXPLICIT'}; "               \
  "explicit_paddings: list(int) = []; data_format: {'NHWC', 'NCHW'} = 'NHWC'; dilations: list(int) = [1, 1, 1, 1]"
#define DEPTHWISE_OP(op, in, operands, kind, text)                                                   \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = "output: T", .attrs = ATTRS, \
    .shape_operands = operands, .infer = infer_##kind, .summary = text }

static const tn_op_def ops[] = {
  DEPTHWISE_OP("DepthwiseConv2dNative", "input: T, filter: T", 0, forward,
               "convolution of each channel with separate filters"),
  DEPTHWISE_OP("DepthwiseConv2dNativeBackpropFilter", "input: T, filter_sizes: int32, out_backprop: T", 1u << 1,
               to_filter, "gradient of DepthwiseConv2dNative for its filter"),
  DEPTHWISE_OP("DepthwiseConv2dNativeBackpropInput", "input_sizes: int32, filter: T, out_backprop: T", 1u << 0,
               to_input, "gradient of DepthwiseConv2dNative for its images"),
};

#define DEPTHWISE_KERNEL(which, title, kind)                                                                  \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C,        \
    .create = create_##kind, .destroy = destroy, .prepare = prepare, .destroy_shape_state = destroy_plan,     \
    .compute = compute }

static const tn_kernel_def kernels[] = {
  DEPTHWISE_KERNEL("DepthwiseConv2dNative", "depthwise_conv2d_cpu", forward),
  DEPTHWISE_KERNEL("_TnDepthwiseConv2D", "fused_depthwise_cpu", forward),
  DEPTHWISE_KERNEL("DepthwiseConv2dNativeBackpropFilter", "depthwise_conv2d_backprop_filter_cpu", to_filter),
  DEPTHWISE_KERNEL("DepthwiseConv2dNativeBackpropInput", "depthwise_conv2d_backprop_input_cpu", to_input),
};

TN_OP_FAMILY(depthwise)
