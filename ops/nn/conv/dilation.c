/* SPDX-License-Identifier: Apache-2.0 */
/* Dilation2D, the maximum of image plus filter over a window, and its gradients, which are added at the maximum. */
#include <core/base/alloc.h>
#include <float.h>
#include <ops/kernel/elements/half.h>
#include <ops/kernel/family.h>
#include <ops/kernel/poll.h>
#include <ops/kernel/shapes.h>
#include <ops/kernel/window/volume.h>
#include <string.h>

/* ---- loops ---- */

/* Channels processed at a time. */
#define BLOCK 64

/* The taps of a window that are inside the image. Strides are in elements. */
typedef struct taps {
  int64_t rows, columns;
  int64_t in_row, in_column, filter_row, filter_column;
} taps;

typedef struct loops {
  tn_dtype dtype;
  /* out[j] = the maximum of in + filter at channel j, j < n <= BLOCK; tap[j] = row * columns + column of its first
   * occurrence, -1 if there is none. out may be NULL. */
  void (*best)(const taps *t, const void *in, const void *filter, int64_t n, void *out, int64_t *tap);
  void (*add)(void *to, const void *from); /* one element */
} loops;

/* SUM rounds or wraps as the type does; KEY maps to the values compared; FIRST is the key of the lowest finite
 * number. */
#define LOOPS(name, T, SUM, KEY, FIRST)                                                                            \
  static void best_##name(const taps *t, const void *from, const void *by, int64_t n, void *to, int64_t *tap)       \
  {                                                                                                                 \
    const T *in = from, *filter = by;                                                                               \
    T *out = to;                                                                                                    \
    T best[BLOCK];                                                                                                  \
    for (int64_t j = 0; j < n; j++) {                                                                               \
      best[j] = FIRST;                                                                                              \
      tap[j] = -1;                                                                                                  \
    }                                                                                                               \
    for (int64_t r = 0; r < t->rows; r++)                                                                           \
      for (int64_t k = 0; k < t->columns; k++) {                                                                    \
        const T *x = in + r * t->in_row + k * t->in_column, *f = filter + r * t->filter_row + k * t->filter_column; \
        for (int64_t j = 0; j < n; j++) {                                                                           \
          const T sum = SUM(x[j], f[j]);                                                                            \
          const bool more = KEY(sum) > KEY(best[j]);                                                                \
          best[j] = more ? sum : best[j];                                                                           \
          tap[j] = more ? r * t->columns + k : tap[j];                                                              \
        }                                                                                                           \
      }                                                                                                             \
    if (out != NULL) memcpy(out, best, (size_t)n * sizeof *out);                                                    \
  }                                                                                                                 \
  static void add_##name(void *to, const void *from)                                                                \
  {                                                                                                                 \
    *(T *)to = SUM(*(T *)to, *(const T *)from);                                                                     \
  }
#define SAME(x) (x)
#define PLUS(x, y) ((x) + (y))
#define PLUS_f16(x, y) tn__half_from_float(tn__half_to_float(x) + tn__half_to_float(y))
#define PLUS_b16(x, y) tn__bfloat16_from_float(tn__bfloat16_to_float(x) + tn__bfloat16_to_float(y))
/* Unsigned arithmetic, so that overflow wraps. */
#define PLUS_i8(x, y) (int8_t)((uint32_t)(x) + (uint32_t)(y))
#define PLUS_i16(x, y) (int16_t)((uint32_t)(x) + (uint32_t)(y))
#define PLUS_i32(x, y) (int32_t)((uint32_t)(x) + (uint32_t)(y))
#define PLUS_i64(x, y) (int64_t)((uint64_t)(x) + (uint64_t)(y))
#define PLUS_u8(x, y) (uint8_t)((x) + (y))
#define PLUS_u16(x, y) (uint16_t)((x) + (y))
LOOPS(f32, float, PLUS, SAME, -FLT_MAX)
LOOPS(f64, double, PLUS, SAME, -DBL_MAX)
LOOPS(f16, uint16_t, PLUS_f16, tn__half_to_float, 0xfbff)
LOOPS(b16, uint16_t, PLUS_b16, tn__bfloat16_to_float, 0xff7f)
LOOPS(i8, int8_t, PLUS_i8, SAME, INT8_MIN)
LOOPS(i16, int16_t, PLUS_i16, SAME, INT16_MIN)
LOOPS(i32, int32_t, PLUS_i32, SAME, INT32_MIN)
LOOPS(i64, int64_t, PLUS_i64, SAME, INT64_MIN)
LOOPS(u8, uint8_t, PLUS_u8, SAME, 0)
LOOPS(u16, uint16_t, PLUS_u16, SAME, 0)
LOOPS(u32, uint32_t, PLUS, SAME, 0)
LOOPS(u64, uint64_t, PLUS, SAME, 0)

static const loops table[] = {
  { TN_FLOAT, best_f32, add_f32 },  { TN_DOUBLE, best_f64, add_f64 },   { TN_HALF, best_f16, add_f16 },
  { TN_INT8, best_i8, add_i8 },     { TN_INT16, best_i16, add_i16 },    { TN_INT32, best_i32, add_i32 },
  { TN_INT64, best_i64, add_i64 },  { TN_UINT8, best_u8, add_u8 },      { TN_UINT16, best_u16, add_u16 },
  { TN_UINT32, best_u32, add_u32 }, { TN_UINT64, best_u64, add_u64 },   { TN_BFLOAT16, best_b16, add_b16 },
};

/* ---- states ---- */

typedef struct dilation_state {
  const loops *loops;
  tn__volume_window window;
  size_t size; /* bytes per element */
} dilation_state;

typedef struct dilation_plan {
  tn__window_axis rows, columns;
  tn__volume in, out;
} dilation_plan;

static tn_status create(const tn_operation *op, void **state, tn_error *err)
{
  *state = NULL;
  tn_dtype dtype = tn_operation_input_dtype(op, 0);
  dilation_state s = { .size = tn_dtype_size(dtype) };
  tn_status st = tn__volume_read(op, 2, &s.window, err);
  if (st == TN_OK) st = tn__volume_only_space(op, &s.window, err);
  if (st != TN_OK) return st;
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
    if (table[i].dtype == dtype) s.loops = &table[i];
  if (s.loops == NULL) return tn__no_kernel(err, op, dtype);
  return tn__keep_state(&s, sizeof s, "dilation", state, err);
}

static void destroy(void *state) { tn__free(state, sizeof(dilation_state)); }
static void destroy_plan(void *plan) { tn__free(plan, sizeof(dilation_plan)); }

/* `like` selects the shape of output 0: that of an input, or of the result if -1. */
static tn_status prepare(tn_prepare_ctx *ctx, int like, tn_error *err)
{
  const dilation_state *s = ctx->state;
  tn__volume_window w = s->window;
  const char *op = tn_operation_type(ctx->op);
  int64_t dims[4];
  tn_status st = tn__want_rank(ctx, 0, 4, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 1, 3, err);
  if (st != TN_OK) return st;
  dilation_plan m = { .in = tn__volume_of(&w, ctx->inputs[0].dims) };
  const int64_t *filter = ctx->inputs[1].dims, wanted[3] = { filter[0], filter[1], m.in.c };
  st = tn__want_shape(ctx, 1, wanted, 3, err);
  if (st == TN_OK && (filter[0] == 0 || filter[1] == 0))
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the filter has no elements", op);
  if (st != TN_OK) return st;
  w.axis[1].size = filter[0];
  w.axis[2].size = filter[1];
  st = tn__volume_fit(&w, op, &m.in, &m.out, err);
  if (st != TN_OK) return st;
  m.rows = w.axis[1];
  m.columns = w.axis[2];
  tn__volume_dims(&w, &m.out, dims);
  if (ctx->n_inputs == 3) st = tn__want_shape(ctx, 2, dims, 4, err);
  if (st == TN_OK && like < 0) st = tn_prepare_output(ctx, 0, dims, 4, err);
  if (st == TN_OK && like >= 0) st = tn_prepare_output_like(ctx, 0, (uint32_t)like, err);
  if (st != TN_OK) return st;
  dilation_plan *p = tn__zalloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "dilation plan", sizeof *p);
  *p = m;
  ctx->shape_state = p;
  ctx->cost_ns = 50 + (double)ctx->inputs[0].count * (double)filter[0] * (double)filter[1];
  return TN_OK;
}

static tn_status prepare_forward(tn_prepare_ctx *ctx, tn_error *err) { return prepare(ctx, -1, err); }
static tn_status prepare_input(tn_prepare_ctx *ctx, tn_error *err) { return prepare(ctx, 0, err); }
static tn_status prepare_filter(tn_prepare_ctx *ctx, tn_error *err) { return prepare(ctx, 1, err); }

/* ---- computing ---- */

typedef struct run {
  const dilation_state *state;
  const dilation_plan *plan;
  const char *in, *filter, *grad;
  char *out;
  bool to_filter;
  int64_t blocks;
} run;

/* A window: its taps, and the offsets in image and filter of the first one, at channel 0. */
typedef struct window {
  taps taps;
  int64_t in, filter;
} window;

static window window_at(const dilation_plan *p, int64_t line, int64_t at)
{
  const tn__window_axis *v = &p->rows, *u = &p->columns;
  const int64_t c = p->in.c, w = p->in.size[2];
  int64_t row, column, y, x;
  window k = { .taps = { .in_row = v->dilation * w * c, .in_column = u->dilation * c, .filter_row = u->size * c,
                         .filter_column = c } };
  tn__window_taps(v, line % p->out.size[1], p->in.size[1], &y, &row, &k.taps.rows);
  tn__window_taps(u, at, w, &x, &column, &k.taps.columns);
  k.in = ((line / p->out.size[1] * p->in.size[1] + y) * w + x) * c;
  k.filter = k.taps.rows > 0 && k.taps.columns > 0 ? (row * u->size + column) * c : 0;
  return k;
}

static double place_cost(const dilation_plan *p) { return (double)p->rows.size * (double)p->columns.size; }

static int64_t block_at(const dilation_plan *p, int64_t c) { return p->in.c - c < BLOCK ? p->in.c - c : BLOCK; }

static void forward_part(void *user, int64_t begin, int64_t end)
{
  const run *r = user;
  const dilation_plan *p = r->plan;
  const size_t size = r->state->size;
  int64_t tap[BLOCK];
  tn__poll poll = tn__poll_here();
  for (int64_t line = begin; line < end; line++)
    for (int64_t at = 0; at < p->out.size[2]; at++) {
      const window k = window_at(p, line, at);
      char *out = r->out + (size_t)((line * p->out.size[2] + at) * p->in.c) * size;
      for (int64_t c = 0; c < p->in.c; c += BLOCK) {
        if (tn__poll_over(&poll, k.taps.rows * k.taps.columns * block_at(p, c))) return;
        r->state->loops->best(&k.taps, r->in + (size_t)(k.in + c) * size, r->filter + (size_t)(k.filter + c) * size,
                              block_at(p, c), out + (size_t)c * size, tap);
      }
    }
}

/* Adds the gradient of one position of the result to the image's or the filter's gradient. If all of a window is
 * NaN, its first tap counts as the maximum. */
static void spread(const run *r, int64_t line, int64_t at, int64_t c)
{
  const dilation_plan *p = r->plan;
  const size_t size = r->state->size;
  const window k = window_at(p, line, at);
  const char *grad = r->grad + (size_t)((line * p->out.size[2] + at) * p->in.c + c) * size;
  int64_t tap[BLOCK], n = block_at(p, c);
  if (k.taps.rows == 0 || k.taps.columns == 0) return;
  r->state->loops->best(&k.taps, r->in + (size_t)(k.in + c) * size, r->filter + (size_t)(k.filter + c) * size, n, NULL,
                        tap);
  for (int64_t j = 0; j < n; j++) {
    const int64_t best = tap[j] < 0 ? 0 : tap[j], row = best / k.taps.columns, column = best % k.taps.columns;
    int64_t to = r->to_filter ? k.filter + row * k.taps.filter_row + column * k.taps.filter_column
                              : k.in + row * k.taps.in_row + column * k.taps.in_column;
    r->state->loops->add(r->out + (size_t)(to + c + j) * size, grad + (size_t)j * size);
  }
}

/* Processes blocks of channels, of one image or of all images, so that no two threads write to the same element. */
static void spread_part(void *user, int64_t begin, int64_t end)
{
  const run *r = user;
  const dilation_plan *p = r->plan;
  tn__poll poll = tn__poll_here();
  for (int64_t i = begin; i < end; i++) {
    int64_t c = i % r->blocks * BLOCK, first = i / r->blocks * p->out.size[1], lines = p->out.size[1];
    if (r->to_filter) lines *= p->out.n;
    for (int64_t line = first; line < first + lines; line++)
      for (int64_t at = 0; at < p->out.size[2] && !tn__poll_over(&poll, (int64_t)place_cost(p) * BLOCK); at++)
        spread(r, line, at, c);
  }
}

static tn_status compute_forward(tn_kernel_ctx *ctx)
{
  const dilation_plan *p = ctx->shape_state;
  run r = { .state = ctx->state, .plan = p, .in = ctx->inputs[0]->data, .filter = ctx->inputs[1]->data,
            .out = ctx->outputs[0]->data };
  if (ctx->outputs[0]->count == 0) return TN_OK;
  tn__run_parts(ctx, p->out.n * p->out.size[1], place_cost(p) * (double)(p->out.size[2] * p->in.c), forward_part, &r);
  return TN_OK;
}

static tn_status compute_gradient(tn_kernel_ctx *ctx, bool to_filter)
{
  const dilation_plan *p = ctx->shape_state;
  const tn_view *out = ctx->outputs[0], *grad = ctx->inputs[2];
  run r = { .state = ctx->state, .plan = p, .in = ctx->inputs[0]->data, .filter = ctx->inputs[1]->data,
            .grad = grad->data, .out = out->data, .to_filter = to_filter };
  if (out->count > 0) memset(out->data, 0, (size_t)out->count * r.state->size);
  if (out->count == 0 || grad->count == 0) return TN_OK;
  r.blocks = (p->in.c + BLOCK - 1) / BLOCK;
  int64_t items = r.blocks * (to_filter ? 1 : p->in.n);
  tn__run_parts(ctx, items, place_cost(p) * (double)grad->count / (double)items, spread_part, &r);
  return TN_OK;
}

static tn_status compute_input(tn_kernel_ctx *ctx) { return compute_gradient(ctx, false); }
static tn_status compute_filter(tn_kernel_ctx *ctx) { return compute_gradient(ctx, true); }

/* ---- shapes ---- */

static tn_status infer_forward(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape filter;
  tn__volume_window w;
  tn_status st = tn__infer_rank(ctx, 1, 3, &filter, err);
  if (st != TN_OK) return st;
  bool known = tn__volume_read(tn_infer_operation(ctx), 2, &w, NULL) == TN_OK; /* the kernel reports the error */
  for (int k = 0; k < 2 && known; k++) w.axis[k + 1].size = filter.dims[k];
  return tn__volume_infer_pool(ctx, 2, &w, known, 1, err);
}

static tn_status infer_input(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s;
  tn_status st = tn__infer_rank(ctx, 0, 4, &s, err);
  return st != TN_OK ? st : tn__infer_set(ctx, 0, &s, err);
}

static tn_status infer_filter(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s;
  tn_status st = tn__infer_rank(ctx, 1, 3, &s, err);
  return st != TN_OK ? st : tn__infer_set(ctx, 0, &s, err);
}

/* ---- tables ---- */

#define ATTRS                                                                                              \
  "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}; "         \
  "strides: list(int) >= 4; rates: list(int) >= 4; padding: {'SAME', 'VALID'}"
#define DILATION_OP(op, in, out, kind, text)                                                              \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = ATTRS,              \
    .infer = infer_##kind, .summary = text }

static const tn_op_def ops[] = {
  DILATION_OP("Dilation2D", "input: T, filter: T", "output: T", forward,
              "greyscale dilation of images by a filter"),
  DILATION_OP("Dilation2DBackpropFilter", "input: T, filter: T, out_backprop: T", "filter_backprop: T", filter,
              "gradient of Dilation2D for its filter"),
  DILATION_OP("Dilation2DBackpropInput", "input: T, filter: T, out_backprop: T", "in_backprop: T", input,
              "gradient of Dilation2D for its images"),
};

#define DILATION_KERNEL(which, title, kind)                                                                 \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C,      \
    .create = create, .destroy = destroy, .prepare = prepare_##kind, .destroy_shape_state = destroy_plan,   \
    .compute = compute_##kind }

static const tn_kernel_def kernels[] = {
  DILATION_KERNEL("Dilation2D", "dilation2d_cpu", forward),
  DILATION_KERNEL("Dilation2DBackpropFilter", "dilation2d_backprop_filter_cpu", filter),
  DILATION_KERNEL("Dilation2DBackpropInput", "dilation2d_backprop_input_cpu", input),
};

TN_OP_FAMILY(dilation)
