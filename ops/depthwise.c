/* SPDX-License-Identifier: Apache-2.0 */
/* DepthwiseConv2dNative and its gradients: every channel has windows and filters of its own.
 *
 * Channels are last and a line of the result is done at a time, so that all inner loops run over neighbours. Images
 * with channels first, half and bfloat16 are brought into that form in scratch memory. */
#include <core/base/alloc.h>
#include <ops/support/convolution.h>
#include <ops/support/shapes.h>
#include <ops/support/widen.h>
#include <string.h>

static const tn__conv_kind forward = { .wanted = TN__CONV_Y, .directions = 2, .depthwise = true };
static const tn__conv_kind to_input = { .wanted = TN__CONV_X, .directions = 2, .depthwise = true };
static const tn__conv_kind to_filter = { .wanted = TN__CONV_FILTER, .directions = 2, .depthwise = true };

/* ---- loops ---- */

/* The taps of a window that lie inside, from in and filter on. Strides are in elements. */
typedef struct taps {
  int64_t rows, columns;
  int64_t in_row, in_column, filter_row, filter_column;
} taps;

/* c channels, each with `outs` outputs.
 * pixel    out = sum over taps of in times filter
 * spread   in += out times filter, summed over a channel's outputs
 * gather   filter += in times out */
typedef struct loops {
  void (*pixel)(const taps *t, const void *in, const void *filter, void *out, int64_t c, int64_t outs);
  void (*spread)(void *in, const void *filter, const void *out, int64_t c, int64_t outs);
  void (*gather)(const void *in, void *filter, const void *out, int64_t c, int64_t outs);
  void (*add)(void *sums, void *to, int64_t n); /* to += sums, which are cleared */
} loops;

/* Sums that stay in registers while the taps run by: four vectors of `bytes`. */
#define VECTORS 4
#define PIXEL_BLOCK(name, T, V, bytes, TARGET)                                                                      \
  typedef T V __attribute__((vector_size(bytes)));                                                                  \
  TARGET static inline V load_##name(const T *from)                                                                 \
  {                                                                                                                 \
    V v;                                                                                                            \
    __builtin_memcpy(&v, from, sizeof v);                                                                           \
    return v;                                                                                                       \
  }                                                                                                                 \
  TARGET static void block_##name(const taps *t, const T *in, const T *filter, T *out)                              \
  {                                                                                                                 \
    enum { LANES = bytes / sizeof(T) };                                                                             \
    V s0 = { 0 }, s1 = { 0 }, s2 = { 0 }, s3 = { 0 };                                                               \
    const int64_t columns = t->columns, in_column = t->in_column, filter_column = t->filter_column;                 \
    for (int64_t r = 0; r < t->rows; r++) {                                                                         \
      const T *x = in + r * t->in_row, *f = filter + r * t->filter_row;                                             \
      for (int64_t k = 0; k < columns; k++, x += in_column, f += filter_column) {                                   \
        s0 += load_##name(x) * load_##name(f);                                                                      \
        s1 += load_##name(x + LANES) * load_##name(f + LANES);                                                      \
        s2 += load_##name(x + 2 * LANES) * load_##name(f + 2 * LANES);                                              \
        s3 += load_##name(x + 3 * LANES) * load_##name(f + 3 * LANES);                                              \
      }                                                                                                             \
    }                                                                                                               \
    __builtin_memcpy(out, &s0, sizeof s0);                                                                          \
    __builtin_memcpy(out + LANES, &s1, sizeof s1);                                                                  \
    __builtin_memcpy(out + 2 * LANES, &s2, sizeof s2);                                                              \
    __builtin_memcpy(out + 3 * LANES, &s3, sizeof s3);                                                              \
  }
/* Channels from `done` on that one output each. */
#define BLOCKS(name, T, bytes)                                                                                      \
  for (const int64_t step = VECTORS * bytes / (int64_t)sizeof(T); outs == 1 && done + step <= c; done += step)      \
    block_##name(t, in + done, filter + done, out + done);
#define PIXEL(name, T, WIDE_BLOCKS, rest)                                                                           \
  static void pixel_##name(const taps *t, const void *from, const void *by, void *to, int64_t c, int64_t outs)      \
  {                                                                                                                 \
    const T *in = from, *filter = by;                                                                               \
    T *out = to;                                                                                                    \
    int64_t done = 0;                                                                                               \
    WIDE_BLOCKS                                                                                                     \
    BLOCKS(rest, T, 16)                                                                                             \
    for (int64_t j = done * outs; j < c * outs; j++) out[j] = 0;                                                    \
    for (int64_t r = 0; r < t->rows && done < c; r++)                                                               \
      for (int64_t k = 0; k < t->columns; k++) {                                                                    \
        const T *x = in + r * t->in_row + k * t->in_column;                                                         \
        const T *f = filter + r * t->filter_row + k * t->filter_column;                                             \
        if (outs == 1)                                                                                              \
          for (int64_t j = done; j < c; j++) out[j] += x[j] * f[j];                                                 \
        else                                                                                                        \
          for (int64_t j = 0; j < c; j++)                                                                           \
            for (int64_t o = 0; o < outs; o++) out[j * outs + o] += x[j] * f[j * outs + o];                         \
      }                                                                                                             \
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
#define LOOPS(name, T, V)              \
  PIXEL_BLOCK(name, T, V, 16, )        \
  PIXEL(name, T, , name)               \
  SPREAD(name, T)                      \
  GATHER(name, T)                      \
  ADD(name, T)                         \
  static const loops loops_##name = { pixel_##name, spread_##name, gather_##name, add_##name };
LOOPS(f32, float, vec_f32)
LOOPS(f64, double, vec_f64)

/* The same sums in the same order, twice as many at a time. */
#if defined(__x86_64__) && defined(__GNUC__)
#define WIDE(name, T, V, base)                                      \
  PIXEL_BLOCK(name, T, V, 32, __attribute__((target("avx2"))))      \
  PIXEL(name, T, BLOCKS(name, T, 32), base)                         \
  static const loops loops_##name = { pixel_##name, spread_##base, gather_##base, add_##base };
WIDE(f32_avx2, float, wide_f32, f32)
WIDE(f64_avx2, double, wide_f64, f64)
#endif

static const loops *loops_of(tn_dtype wide)
{
#if defined(__x86_64__) && defined(__GNUC__)
  if (__builtin_cpu_supports("avx2")) return wide == TN_FLOAT ? &loops_f32_avx2 : &loops_f64_avx2;
#endif
  return wide == TN_FLOAT ? &loops_f32 : &loops_f64;
}

/* ---- states ---- */

typedef struct depthwise_state {
  const tn__conv_kind *kind;
  const loops *loops;
  tn__volume_window window;
  tn_dtype dtype;
  size_t size; /* of an element as it is computed */
} depthwise_state;

enum { X, FILTER, Y };

typedef struct depthwise_plan {
  tn__conv_sizes z;
  tn__form form[3];
  size_t at_sums; /* in scratch: for the filter's gradient, what a line of places says for each tap */
} depthwise_plan;

static tn_status create(const tn_operation *op, const tn__conv_kind *kind, void **state, tn_error *err)
{
  *state = NULL;
  depthwise_state s = { .kind = kind, .dtype = tn_operation_output_dtype(op, 0) };
  tn_dtype wide = tn__wide_dtype(s.dtype);
  tn_status st = tn__conv_read(op, kind, &s.window, err);
  if (st != TN_OK) return st;
  if (wide != TN_FLOAT && wide != TN_DOUBLE) return tn__no_kernel(err, op, s.dtype);
  s.loops = loops_of(wide);
  s.size = tn_dtype_size(wide);
  depthwise_state *p = tn__zalloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "convolution", sizeof *p);
  *p = s;
  *state = p;
  return TN_OK;
}

/* The two functions that name a kind. */
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

static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const depthwise_state *s = ctx->state;
  tn__conv_sizes z;
  tn_status st = tn__conv_prepare(ctx, s->kind, &s->window, &z, err);
  if (st == TN_OK && s->kind->wanted == TN__CONV_FILTER && z.y_pixels == 0)
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: there are no images to take a gradient from",
                      tn_operation_type(ctx->op));
  if (st != TN_OK) return st;
  depthwise_plan *p = tn__zalloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "convolution plan", sizeof *p);
  ctx->shape_state = p;
  p->z = z;
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
  const tn__conv_sizes *z;
  size_t size;
  char *in, *filter, *out, *sums;
} run;

static void line_part(void *user, int64_t begin, int64_t end)
{
  const run *r = user;
  const tn__conv_sizes *z = r->z;
  const tn__window_axis *v = &z->window.axis[1], *u = &z->window.axis[2];
  const int64_t oh = z->y.size[1], ow = z->y.size[2], h = z->x.size[1], w = z->x.size[2], c = z->x.c;
  taps t = { .in_row = v->dilation * w * c, .in_column = u->dilation * c, .filter_row = u->size * z->y.c,
             .filter_column = z->y.c };
  for (int64_t line = begin; line < end; line++) {
    int64_t at_h, at_w, row, column;
    tn__window_taps(v, line % oh, h, &at_h, &row, &t.rows);
    for (int64_t x = 0; x < ow; x++) {
      tn__window_taps(u, x, w, &at_w, &column, &t.columns);
      size_t in = (size_t)(((line / oh * h + at_h) * w + at_w) * c) * r->size;
      size_t filter = (size_t)((row * u->size + column) * z->y.c) * r->size;
      if (t.rows == 0 || t.columns == 0) filter = 0;
      r->loops->pixel(&t, r->in + in, r->filter + filter, r->out + (size_t)((line * ow + x) * z->y.c) * r->size, c,
                      z->fo);
    }
  }
}

/* Lines of the images: what all places that read them say. */
static void spread_part(void *user, int64_t begin, int64_t end)
{
  const run *r = user;
  const tn__conv_sizes *z = r->z;
  const tn__window_axis *v = &z->window.axis[1], *u = &z->window.axis[2];
  const int64_t oh = z->y.size[1], ow = z->y.size[2], h = z->x.size[1], w = z->x.size[2], c = z->x.c;
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
        for (int64_t j = 0; j < n; j++)
          r->loops->spread(to + (size_t)((at + j * u->dilation) * c) * r->size,
                           r->filter + (size_t)((k * u->size + column + j) * z->y.c) * r->size,
                           from + (size_t)(x * z->y.c) * r->size, c, z->fo);
      }
    }
  }
}

/* Taps of the filter: the sum over all places. Lines are summed on their own, so that rounding stays small. */
static void gather_part(void *user, int64_t begin, int64_t end)
{
  const run *r = user;
  const tn__conv_sizes *z = r->z;
  const tn__window_axis *v = &z->window.axis[1], *u = &z->window.axis[2];
  const int64_t oh = z->y.size[1], ow = z->y.size[2], h = z->x.size[1], w = z->x.size[2], c = z->x.c;
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
  int wanted = s->kind->wanted == TN__CONV_Y ? Y : s->kind->wanted == TN__CONV_X ? X : FILTER;
  void *at[3] = { NULL, NULL, NULL };
  if (ctx->outputs[0]->count == 0) return TN_OK;
  for (int i = 0; i < (int)ctx->n_inputs; i++)
    if (i != wanted) at[i] = (void *)tn__form_load(&p->form[i], ctx, ctx->inputs[i]->data, ctx->scratch);
  at[wanted] = tn__form_room(&p->form[wanted], ctx->outputs[0]->data, ctx->scratch);
  run r = { s->loops, z, s->size, at[X], at[FILTER], at[Y], (char *)ctx->scratch + p->at_sums };
  double all = 0.2 * (double)z->y_pixels * (double)z->y.c * (double)z->taps;
  int64_t n = wanted == Y ? z->y.n * z->y.size[1] : wanted == X ? z->x.n * z->x.size[1] : z->taps;
  tn__run_parts(ctx, n, all / (double)n, wanted == Y ? line_part : wanted == X ? spread_part : gather_part, &r);
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
               "convolution of each channel with filters of its own"),
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
  DEPTHWISE_KERNEL("DepthwiseConv2dNativeBackpropFilter", "depthwise_conv2d_backprop_filter_cpu", to_filter),
  DEPTHWISE_KERNEL("DepthwiseConv2dNativeBackpropInput", "depthwise_conv2d_backprop_input_cpu", to_input),
};

extern const tn_op_family tn__ops_depthwise;
const tn_op_family tn__ops_depthwise = {
  .struct_size = TN_OP_FAMILY_SIZE,
  .name = "depthwise",
  .ops = ops,
  .n_ops = sizeof ops / sizeof ops[0],
  .kernels = kernels,
  .n_kernels = sizeof kernels / sizeof kernels[0],
};
