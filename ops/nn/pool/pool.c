/* SPDX-License-Identifier: Apache-2.0 */
/* MaxPool, MaxPoolV2 and AvgPool over rows and columns of images; MaxPool also over channels.
 *
 * If channels are first, each channel is treated as an image with a single channel. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <float.h>
#include <ops/kernel/elements/half.h>
#include <ops/kernel/elements/vectors.h>
#include <ops/kernel/family.h>
#include <ops/kernel/poll.h>
#include <ops/kernel/shapes.h>
#include <ops/kernel/window/volume.h>
#include <string.h>

/* ---- loops ---- */

/* Channels processed at a time. */
#define BLOCK 128

/* out[j] = the maximum or the mean of in[r * row + c * column + j], r < rows, c < columns; j < n <= BLOCK. */
typedef void (*window_fn)(const void *in, int64_t rows, int64_t columns, int64_t row, int64_t column, int64_t n,
                          void *out);
/* out[j] = the maximum of in[j * size + k], k < size. */
typedef void (*depth_fn)(const void *in, int64_t size, int64_t n, void *out);

#define WINDOW(name, T, E, LOAD, FIRST, TAKE, RESULT)                                                       \
  static void name(const void *from, int64_t rows, int64_t columns, int64_t row, int64_t column, int64_t n, \
                   void *to)                                                                                \
  {                                                                                                         \
    const T *in = from;                                                                                     \
    T *out = to;                                                                                            \
    E acc[BLOCK];                                                                                           \
    for (int64_t j = 0; j < n; j++) acc[j] = FIRST;                                                         \
    for (int64_t r = 0; r < rows; r++)                                                                      \
      for (int64_t c = 0; c < columns; c++) {                                                               \
        const T *at = in + r * row + c * column;                                                            \
        for (int64_t j = 0; j < n; j++) {                                                                   \
          E x = LOAD(at[j]);                                                                                \
          acc[j] = TAKE(acc[j], x);                                                                         \
        }                                                                                                   \
      }                                                                                                     \
    const int64_t count = rows * columns;                                                                   \
    (void)count;                                                                                            \
    for (int64_t j = 0; j < n; j++) out[j] = RESULT(acc[j]);                                                \
  }
#define DEPTH(name, T, E, LOAD, STORE)                                                   \
  static void name(const void *from, int64_t size, int64_t n, void *to)                  \
  {                                                                                      \
    const T *in = from;                                                                  \
    T *out = to;                                                                         \
    for (int64_t j = 0; j < n; j++, in += size) {                                        \
      E best = LOAD(in[0]);                                                              \
      for (int64_t k = 1; k < size; k++) best = LOAD(in[k]) > best ? LOAD(in[k]) : best; \
      out[j] = STORE(best);                                                              \
    }                                                                                    \
  }

/* Over rows and columns a NaN is never the maximum, and -infinity counts as the lowest finite number. */
#define LARGER(a, b) ((b) > (a) ? (b) : (a))
#define SUM(a, b) ((a) + (b))
#define SAME(x) (x)
#define MAX(name, T, E, LOAD, LOWEST, STORE)            \
  WINDOW(max_##name, T, E, LOAD, LOWEST, LARGER, STORE) \
  DEPTH(depth_##name, T, E, LOAD, STORE)
MAX(f32, float, float, SAME, -FLT_MAX, SAME)
MAX(f64, double, double, SAME, -DBL_MAX, SAME)
MAX(f16, uint16_t, float, tn__half_to_float, -65504.0f, tn__half_from_float)
MAX(b16, uint16_t, float, tn__bfloat16_to_float, -0x1.fep127f, tn__bfloat16_from_float)
MAX(i8, int8_t, int8_t, SAME, INT8_MIN, SAME)
MAX(i16, int16_t, int16_t, SAME, INT16_MIN, SAME)
MAX(i32, int32_t, int32_t, SAME, INT32_MIN, SAME)
MAX(i64, int64_t, int64_t, SAME, INT64_MIN, SAME)
MAX(u8, uint8_t, uint8_t, SAME, 0, SAME)
MAX(u16, uint16_t, uint16_t, SAME, 0, SAME)
MAX(u32, uint32_t, uint32_t, SAME, 0, SAME)
MAX(u64, uint64_t, uint64_t, SAME, 0, SAME)

#define MEAN_f32(x) ((x) / (float)count)
#define MEAN_f64(x) ((x) / (double)count)
#define MEAN_f16(x) tn__half_from_float((x) / (float)count)
#define MEAN_b16(x) tn__bfloat16_from_float((x) / (float)count)
WINDOW(mean_f32, float, float, SAME, 0, SUM, MEAN_f32)
WINDOW(mean_f64, double, double, SAME, 0, SUM, MEAN_f64)
WINDOW(mean_f16, uint16_t, float, tn__half_to_float, 0, SUM, MEAN_f16)
WINDOW(mean_b16, uint16_t, float, tn__bfloat16_to_float, 0, SUM, MEAN_b16)

/* The same, with the intermediate results of `vectors` vectors of channels in registers. The last vector is aligned
 * to the end of the channels, so some channels are processed twice. */
#define WIDE_WINDOW(name, T, V, bytes, FIRST, TAKE, RESULT, TARGET)                                                    \
  TARGET static inline __attribute__((always_inline)) void block_##name(                                               \
      const int vectors, const T *in, int64_t rows, int64_t columns, int64_t row, int64_t column, T *out)              \
  {                                                                                                                    \
    enum { LANES = bytes / sizeof(T) };                                                                                \
    const V first = (V){ 0 } + FIRST;                                                                                  \
    V acc[4] = { first, first, first, first };                                                                         \
    for (int64_t r = 0; r < rows; r++)                                                                                 \
      for (int64_t c = 0; c < columns; c++) {                                                                          \
        const T *at = in + r * row + c * column;                                                                       \
        for (int v = 0; v < vectors; v++) {                                                                            \
          V x;                                                                                                         \
          __builtin_memcpy(&x, at + v * LANES, sizeof x);                                                              \
          acc[v] = TAKE(acc[v], x);                                                                                    \
        }                                                                                                              \
      }                                                                                                                \
    const T count = (T)(rows * columns);                                                                               \
    (void)count;                                                                                                       \
    for (int v = 0; v < vectors; v++) {                                                                                \
      acc[v] = RESULT(acc[v]);                                                                                         \
      __builtin_memcpy(out + v * LANES, &acc[v], sizeof acc[v]);                                                       \
    }                                                                                                                  \
  }
#define WIDE_WINDOWS(name, T, bytes, FIRST, TAKE, RESULT, end, TARGET)                                                 \
  typedef T vec_##name##_##end __attribute__((vector_size(bytes)));                                                    \
  WIDE_WINDOW(name##_##end, T, vec_##name##_##end, bytes, FIRST, TAKE, RESULT, TARGET)                                 \
  TARGET static void name##_##end(const void *from, int64_t rows, int64_t columns, int64_t row, int64_t column,        \
                                  int64_t n, void *to)                                                                 \
  {                                                                                                                    \
    const int64_t lanes = bytes / (int64_t)sizeof(T);                                                                  \
    const T *in = from;                                                                                                \
    T *out = to;                                                                                                       \
    int64_t j = 0;                                                                                                     \
    if (n < lanes) {                                                                                                   \
      name(in, rows, columns, row, column, n, out);                                                                    \
      return;                                                                                                          \
    }                                                                                                                  \
    for (; j + 4 * lanes <= n; j += 4 * lanes) block_##name##_##end(4, in + j, rows, columns, row, column, out + j);   \
    if (j + 2 * lanes <= n) {                                                                                          \
      block_##name##_##end(2, in + j, rows, columns, row, column, out + j);                                            \
      j += 2 * lanes;                                                                                                  \
    }                                                                                                                  \
    for (; j < n; j += lanes) {                                                                                        \
      if (j + lanes > n) j = n - lanes;                                                                                \
      block_##name##_##end(1, in + j, rows, columns, row, column, out + j);                                            \
    }                                                                                                                  \
  }
#define SELECT(m, a, b) ((__typeof__(a))(((m) & (__typeof__(m))(a)) | (~(m) & (__typeof__(m))(b))))
#define LARGER_VECTOR(a, b) SELECT((b) > (a), b, a)
#define MEAN_VECTOR(x) ((x) / count)
#if TN__VECTORS > 1
#define WIDE(name, T, FIRST, TAKE, RESULT)                                  \
  WIDE_WINDOWS(name, T, 32, FIRST, TAKE, RESULT, avx2, TN__FOR_AVX2)        \
  WIDE_WINDOWS(name, T, 64, FIRST, TAKE, RESULT, avx512, TN__FOR_AVX512)
WIDE(max_f32, float, -FLT_MAX, LARGER_VECTOR, SAME)
WIDE(max_f64, double, -DBL_MAX, LARGER_VECTOR, SAME)
WIDE(mean_f32, float, 0, SUM, MEAN_VECTOR)
WIDE(mean_f64, double, 0, SUM, MEAN_VECTOR)
#endif

static const struct {
  tn_dtype dtype;
  window_fn max, mean;
  depth_fn depth;
} loops[] = {
  { TN_FLOAT, max_f32, mean_f32, depth_f32 },    { TN_DOUBLE, max_f64, mean_f64, depth_f64 },
  { TN_HALF, max_f16, mean_f16, depth_f16 },     { TN_BFLOAT16, max_b16, mean_b16, depth_b16 },
  { TN_INT8, max_i8, NULL, depth_i8 },           { TN_INT16, max_i16, NULL, depth_i16 },
  { TN_INT32, max_i32, NULL, depth_i32 },        { TN_INT64, max_i64, NULL, depth_i64 },
  { TN_UINT8, max_u8, NULL, depth_u8 },          { TN_UINT16, max_u16, NULL, depth_u16 },
  { TN_UINT32, max_u32, NULL, depth_u32 },       { TN_UINT64, max_u64, NULL, depth_u64 },
};

/* Returns the variant for this machine's vectors. */
static window_fn widened(window_fn fn)
{
  static const window_fn kinds[][TN__VECTORS] = { TN__FNS(max_f32), TN__FNS(max_f64), TN__FNS(mean_f32),
                                                  TN__FNS(mean_f64) };
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    if (kinds[i][0] == fn) return kinds[i][tn__vectors()];
  return fn;
}

/* ---- shapes ---- */

/* True if ksize and strides are inputs 1 and 2. */
static bool has_inputs(const tn_operation *op) { return strcmp(tn_operation_type(op), "MaxPoolV2") == 0; }

static void set_sizes(tn__window *w, const int64_t *size, const int64_t *stride)
{
  int depth = tn__window_depth(w);
  for (int k = 0; k < 2; k++) {
    int dim = k == 0 ? tn__window_height(w) : tn__window_width(w);
    w->axis[k].size = size[dim];
    w->axis[k].stride = stride[dim];
  }
  w->batch_size = size[0];
  w->batch_stride = stride[0];
  w->depth_size = size[depth];
  w->depth_stride = stride[depth];
}

static tn_status infer_pool(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s;
  tn__window w;
  const tn_operation *op = tn_infer_operation(ctx);
  tn_status st = tn__infer_rank(ctx, 0, 4, &s, err);
  if (st != TN_OK) return st;
  bool known = tn__window_read(op, &w, NULL) == TN_OK; /* the kernel reports the error */
  if (has_inputs(op)) {
    int64_t values[2][4];
    for (int i = 0; i < 2 && known; i++) {
      const tn_tensor *t;
      int64_t n;
      known = tn__infer_ints(ctx, (size_t)i + 1, &t, &n) && n == 4;
      for (int k = 0; k < 4 && known; k++) {
        values[i][k] = tn__tensor_int_at(t, k);
        known = values[i][k] > 0;
      }
    }
    if (known) set_sizes(&w, values[0], values[1]);
  }
  if (!known) {
    for (int32_t i = 1; i < 4; i++) s.dims[i] = -1;
    return tn__infer_set(ctx, 0, &s, err);
  }
  int h = tn__window_height(&w), x = tn__window_width(&w), c = tn__window_depth(&w);
  if (w.depth_size == 1) {
    s.dims[h] = tn__window_fit_unknown(&w.axis[0], w.padding, s.dims[h]);
    s.dims[x] = tn__window_fit_unknown(&w.axis[1], w.padding, s.dims[x]);
  } else if (s.dims[c] >= 0) {
    s.dims[c] /= w.depth_size;
  }
  return tn__infer_set(ctx, 0, &s, err);
}

/* ---- the kernel's states ---- */

typedef struct pool_state {
  tn__window window;
  bool mean, inputs;
  window_fn fn;
  depth_fn depth;
  size_t element;
} pool_state;

typedef struct pool_plan {
  tn__window_axis axis[2];
  int64_t n, h, w, c, oh, ow; /* c channels, adjacent */
  int64_t outs;               /* elements of the output; if 0, the sizes may have any product */
  int64_t depth;              /* size of a window over channels, or 0 */
} pool_plan;

static tn_status check_window(const char *op, const tn__window *w, bool mean, tn_error *err)
{
  if (w->batch_size != 1 || w->batch_stride != 1)
    return tn_error_set(err, TN_UNIMPLEMENTED, "%s: pooling over the batch is not supported", op);
  if (w->depth_size == 1) {
    for (int k = 0; k < 2; k++)
      if (w->axis[k].before >= w->axis[k].size || w->axis[k].after >= w->axis[k].size)
        return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: explicit paddings %lld and %lld for a window of %lld", op,
                            (long long)w->axis[k].before, (long long)w->axis[k].after, (long long)w->axis[k].size);
    return TN_OK;
  }
  if (mean || w->axis[0].size != 1 || w->axis[1].size != 1)
    return tn_error_set(err, TN_UNIMPLEMENTED, "%s: pooling over channels%s is not supported", op,
                        mean ? "" : " and image at once");
  if (w->depth_stride != w->depth_size)
    return tn_error_set(err, TN_UNIMPLEMENTED, "%s: windows over channels must not overlap", op);
  return TN_OK;
}

static tn_status pool_create(const tn_operation *op, void **state, tn_error *err)
{
  *state = NULL;
  tn_dtype dtype = tn_operation_input_dtype(op, 0);
  pool_state s = { .mean = strcmp(tn_operation_type(op), "AvgPool") == 0, .inputs = has_inputs(op) };
  s.element = tn_dtype_size(dtype);
  tn_status st = tn__window_read(op, &s.window, err);
  if (st == TN_OK && !s.inputs) st = check_window(tn_operation_type(op), &s.window, s.mean, err);
  if (st != TN_OK) return st;
  for (size_t i = 0; i < sizeof loops / sizeof loops[0]; i++) {
    if (loops[i].dtype != dtype) continue;
    s.fn = widened(s.mean ? loops[i].mean : loops[i].max);
    s.depth = loops[i].depth;
  }
  if (s.fn == NULL) return tn__no_kernel(err, op, dtype);
  return tn__keep_state(&s, sizeof s, "pooling", state, err);
}

static void pool_destroy(void *state) { tn__free(state, sizeof(pool_state)); }
static void pool_destroy_plan(void *plan) { tn__free(plan, sizeof(pool_plan)); }

static tn_status read_input_sizes(const tn_prepare_ctx *ctx, tn__window *w, tn_error *err)
{
  int64_t values[2][4];
  const char *op = tn_operation_type(ctx->op);
  for (uint32_t i = 0; i < 2; i++) {
    const tn_view *in = &ctx->inputs[i + 1];
    if (in->rank != 1 || in->count != 4)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input %u has %lld elements, wanted a vector of 4", op, i + 1,
                          (long long)in->count);
    if (in->data == NULL) return tn_error_set(err, TN_INTERNAL, "%s: the value of input %u is not known", op, i + 1);
    for (int64_t k = 0; k < 4; k++) {
      values[i][k] = tn__view_int_at(in, k);
      if (values[i][k] <= 0)
        return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: number %lld of input %u is %lld, wanted at least 1", op,
                            (long long)k, i + 1, (long long)values[i][k]);
    }
  }
  set_sizes(w, values[0], values[1]);
  return check_window(op, w, false, err);
}

/* Computes the plan and the output's dimensions. */
static tn_status measure(const tn_prepare_ctx *ctx, const tn__window *w, pool_plan *p, int64_t *dims, tn_error *err)
{
  const char *op = tn_operation_type(ctx->op);
  const int64_t *in = ctx->inputs[0].dims;
  int h = tn__window_height(w), x = tn__window_width(w), c = tn__window_depth(w);
  for (int i = 0; i < 4; i++) dims[i] = in[i];
  *p = (pool_plan){ .axis = { w->axis[0], w->axis[1] }, .n = in[0], .h = in[h], .w = in[x], .c = in[c] };
  if (w->depth_size == 1) {
    tn_status st = tn__window_fit(&p->axis[0], w->padding, op, p->h, &p->oh, err);
    if (st == TN_OK) st = tn__window_fit(&p->axis[1], w->padding, op, p->w, &p->ow, err);
    if (st != TN_OK) return st;
    dims[h] = p->oh;
    dims[x] = p->ow;
  } else {
    if (p->c % w->depth_size != 0 || w->channels_first)
      return tn_error_set(err, TN_UNIMPLEMENTED, "%s: windows of %lld over %lld channels%s are not supported", op,
                          (long long)w->depth_size, (long long)p->c, w->channels_first ? " that come first" : "");
    p->depth = w->depth_size;
    dims[c] /= w->depth_size;
  }
  tn_status st = tn_shape_elements(dims, 4, &p->outs, err);
  if (st == TN_OK && w->channels_first && p->outs > 0) {
    p->n *= p->c;
    p->c = 1;
  }
  return st;
}

static tn_status pool_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const pool_state *s = ctx->state;
  tn__window w = s->window;
  pool_plan plan;
  int64_t dims[4];
  tn_status st = tn__want_rank(ctx, 0, 4, err);
  if (st == TN_OK && s->inputs) st = read_input_sizes(ctx, &w, err);
  if (st == TN_OK) st = measure(ctx, &w, &plan, dims, err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 0, dims, 4, err);
  if (st != TN_OK) return st;
  pool_plan *p = tn__zalloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "pooling plan", sizeof *p);
  *p = plan;
  ctx->shape_state = p;
  ctx->cost_ns = 20 + 0.5 * (double)p->outs * (double)p->axis[0].size * (double)p->axis[1].size;
  return TN_OK;
}

/* ---- computing ---- */

typedef struct pool_run {
  const pool_state *state;
  const pool_plan *plan;
  const char *in;
  char *out;
} pool_run;

static void row_part(void *user, int64_t begin, int64_t end)
{
  const pool_run *r = user;
  const pool_plan *p = r->plan;
  size_t size = r->state->element;
  tn__poll poll = tn__poll_here();
  for (int64_t line = begin; line < end; line++) {
    int64_t n = line / p->oh, h, rows;
    tn__window_clip(&p->axis[0], line % p->oh, p->h, &h, &rows);
    for (int64_t ow = 0; ow < p->ow; ow++) {
      int64_t w, columns;
      tn__window_clip(&p->axis[1], ow, p->w, &w, &columns);
      for (int64_t c = 0; c < p->c; c += BLOCK) {
        if (tn__poll_over(&poll, rows * columns * 8)) return;
        int64_t channels = p->c - c < BLOCK ? p->c - c : BLOCK;
        const char *from = r->in;
        if (rows > 0 && columns > 0) from += (size_t)(((n * p->h + h) * p->w + w) * p->c + c) * size;
        r->state->fn(from, rows, columns, p->w * p->c, p->c, channels,
                     r->out + (size_t)((line * p->ow + ow) * p->c + c) * size);
      }
    }
  }
}

static void depth_part(void *user, int64_t begin, int64_t end)
{
  const pool_run *r = user;
  size_t size = r->state->element;
  r->state->depth(r->in + (size_t)(begin * r->plan->depth) * size, r->plan->depth, end - begin,
                  r->out + (size_t)begin * size);
}

static tn_status pool_compute(tn_kernel_ctx *ctx)
{
  const pool_plan *p = ctx->shape_state;
  pool_run r = { ctx->state, p, ctx->inputs[0]->data, ctx->outputs[0]->data };
  if (p->outs == 0) return TN_OK;
  if (p->depth > 0) {
    if (p->outs <= TN__SERIAL_ELEMENTS)
      depth_part(&r, 0, p->outs);
    else
      tn_parallel_for(ctx, p->outs, TN__SERIAL_ELEMENTS, (double)p->depth, depth_part, &r);
    return TN_OK;
  }
  int64_t lines = p->n * p->oh;
  double cost = (double)(p->ow * p->c * p->axis[0].size) * (double)p->axis[1].size * 0.5;
  if (cost * (double)lines < 40000.0)
    row_part(&r, 0, lines);
  else
    tn_parallel_for(ctx, lines, cost < 10000.0 ? (int64_t)(10000.0 / cost) + 1 : 1, cost, row_part, &r);
  return TN_OK;
}

/* ---- tables ---- */

#define MAX_TYPES "{half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8}"
#define POOL_OP(op, in, operands, attributes, text)                                                       \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = "output: T", .attrs = attributes, \
    .shape_operands = operands, .infer = infer_pool, .summary = text }

static const tn_op_def ops[] = {
  POOL_OP("AvgPool", "value: T", 0,
          "ksize: list(int) >= 4; strides: list(int) >= 4; padding: {'SAME', 'VALID'}; "
          "data_format: {'NHWC', 'NCHW'} = 'NHWC'; T: {half, bfloat16, float, double}",
          "average pooling of images"),
  POOL_OP("MaxPool", "input: T", 0,
          "T: " MAX_TYPES " = float; ksize: list(int) >= 4; strides: list(int) >= 4; "
          "padding: {'SAME', 'VALID', 'EXPLICIT'}; explicit_paddings: list(int) = []; "
          "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'", "max pooling of images"),
  POOL_OP("MaxPoolV2", "input: T, ksize: int32, strides: int32", 1u << 1 | 1u << 2,
          "T: " MAX_TYPES " = float; padding: {'SAME', 'VALID'}; "
          "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'", "max pooling of images"),
};

#define POOL_KERNEL(which, set, title)                                                            \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .types = set, .name = title, \
    .rank = TN_RANK_C, .create = pool_create, .destroy = pool_destroy, .prepare = pool_prepare,   \
    .destroy_shape_state = pool_destroy_plan, .compute = pool_compute }
#define MAX_KERNEL_TYPES "T=float|double|half|bfloat16|int8|int16|int32|int64|uint8|uint16"

static const tn_kernel_def kernels[] = {
  POOL_KERNEL("AvgPool", "T=float|double|half|bfloat16", "avg_pool_cpu"),
  POOL_KERNEL("MaxPool", MAX_KERNEL_TYPES, "max_pool_cpu"),
  POOL_KERNEL("MaxPoolV2", MAX_KERNEL_TYPES, "max_pool_v2_cpu"),
};

TN_OP_FAMILY(pool)
