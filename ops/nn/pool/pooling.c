/* SPDX-License-Identifier: Apache-2.0 */
#include <core/base/alloc.h>
#include <ops/kernel/poll.h>
#include <ops/nn/pool/pooling.h>
#include <ops/kernel/shapes.h>
#include <string.h>

#define BLOCK TN__POOL_BLOCK

/* ---- loops ---- */

#define BEST(name, T)                                                                          \
  static void best_##name(const void *from, const tn__cells *k, int64_t n, int64_t *where)     \
  {                                                                                            \
    const T *in = from;                                                                        \
    T best[BLOCK];                                                                             \
    for (int64_t j = 0; j < n; j++) {                                                          \
      best[j] = in[j];                                                                         \
      where[j] = 0;                                                                            \
    }                                                                                          \
    for (int64_t a = 0; a < k->n[0]; a++)                                                      \
      for (int64_t b = 0; b < k->n[1]; b++)                                                    \
        for (int64_t c = 0; c < k->n[2]; c++) {                                                \
          const int64_t at = a * k->step[0] + b * k->step[1] + c * k->step[2];                 \
          for (int64_t j = 0; j < n; j++) {                                                    \
            const T x = in[at + j];                                                            \
            const bool more = x > best[j];                                                     \
            best[j] = more ? x : best[j];                                                      \
            where[j] = more ? at : where[j];                                                   \
          }                                                                                    \
        }                                                                                      \
  }                                                                                            \
  static void match_##name(const void *from, const void *like, const tn__cells *k, int64_t n, int64_t *where) \
  {                                                                                            \
    const T *in = from, *pooled = like;                                                        \
    for (int64_t j = 0; j < n; j++) where[j] = -1;                                             \
    for (int64_t a = 0; a < k->n[0]; a++)                                                      \
      for (int64_t b = 0; b < k->n[1]; b++)                                                    \
        for (int64_t c = 0; c < k->n[2]; c++) {                                                \
          const int64_t at = a * k->step[0] + b * k->step[1] + c * k->step[2];                 \
          for (int64_t j = 0; j < n; j++)                                                      \
            where[j] = ((where[j] < 0) & (in[at + j] == pooled[j])) ? at : where[j];           \
        }                                                                                      \
  }
#define MOVE(name, T)                                                                          \
  static void take_##name(const void *from, const int64_t *where, int64_t n, void *to)         \
  {                                                                                            \
    const T *in = from;                                                                        \
    T *out = to;                                                                               \
    for (int64_t j = 0; j < n; j++) out[j] = where[j] < 0 ? 0 : in[where[j] + j];            \
  }                                                                                            \
  static void add_##name(void *to, const int64_t *where, int64_t n, const void *from)          \
  {                                                                                            \
    const T *in = from;                                                                        \
    T *out = to;                                                                               \
    for (int64_t j = 0; j < n; j++) out[where[j] + j] = (T)(out[where[j] + j] + in[j]);        \
  }
BEST(f32, float)
BEST(f64, double)
BEST(i8, int8_t)
BEST(i16, int16_t)
BEST(i32, int32_t)
BEST(i64, int64_t)
BEST(u8, uint8_t)
BEST(u16, uint16_t)
BEST(u32, uint32_t)
BEST(u64, uint64_t)
MOVE(f32, float)
MOVE(f64, double)
MOVE(u8, uint8_t)
MOVE(u16, uint16_t)
MOVE(u32, uint32_t)
MOVE(u64, uint64_t)

static const tn__pool_loops loops[] = {
  { TN_FLOAT, best_f32, match_f32, take_f32, add_f32 },
  { TN_DOUBLE, best_f64, match_f64, take_f64, add_f64 },
  { TN_HALF, best_f32, match_f32, take_f32, add_f32 },
  { TN_BFLOAT16, best_f32, match_f32, take_f32, add_f32 },
  { TN_INT8, best_i8, match_i8, take_u8, add_u8 },
  { TN_INT16, best_i16, match_i16, take_u16, add_u16 },
  { TN_INT32, best_i32, match_i32, take_u32, add_u32 },
  { TN_INT64, best_i64, match_i64, take_u64, add_u64 },
  { TN_UINT8, best_u8, match_u8, take_u8, add_u8 },
  { TN_UINT16, best_u16, match_u16, take_u16, add_u16 },
  { TN_UINT32, best_u32, match_u32, take_u32, add_u32 },
  { TN_UINT64, best_u64, match_u64, take_u64, add_u64 },
};

/* ---- states ---- */

static tn_status check_window(const tn_operation *op, const tn__volume_window *w, tn_error *err)
{
  tn_status st = tn__volume_only_space(op, w, err);
  for (int k = 0; k < 3 && st == TN_OK; k++)
    if (w->axis[k].before >= w->axis[k].size || w->axis[k].after >= w->axis[k].size)
      st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: explicit paddings %lld and %lld for a window of %lld",
                        tn_operation_type(op), (long long)w->axis[k].before, (long long)w->axis[k].after,
                        (long long)w->axis[k].size);
  return st;
}

tn_status tn__pool_create(const tn_operation *op, int directions, uint32_t sizes_from, void **state, tn_error *err)
{
  *state = NULL;
  tn__pool_state s = { .dtype = tn_operation_output_dtype(op, 0), .sizes_from = sizes_from };
  tn_status st = tn__volume_read(op, directions, &s.window, err);
  if (st == TN_OK && sizes_from == 0) st = check_window(op, &s.window, err);
  if (st != TN_OK) return st;
  for (size_t i = 0; i < sizeof loops / sizeof loops[0]; i++)
    if (loops[i].dtype == s.dtype) s.loops = &loops[i];
  if (s.loops == NULL) return tn__no_kernel(err, op, s.dtype);
  bool is_short = s.dtype == TN_HALF || s.dtype == TN_BFLOAT16;
  s.size = is_short ? sizeof(float) : tn_dtype_size(s.dtype);
  return tn__keep_state(&s, sizeof s, "pooling", state, err);
}

void tn__pool_destroy(void *state) { tn__free(state, sizeof(tn__pool_state)); }
void tn__pool_destroy_plan(void *plan) { tn__free(plan, sizeof(tn__pool_plan)); }

/* ---- sizes ---- */

static void set_sizes(tn__volume_window *w, const int64_t *size, const int64_t *stride)
{
  for (int k = 3 - w->directions; k < 3; k++) {
    int dim = tn__volume_dim(w, k);
    w->axis[k].size = size[dim];
    w->axis[k].stride = stride[dim];
  }
  w->batch_size = size[0];
  w->batch_stride = stride[0];
  w->depth_size = size[tn__volume_depth(w)];
  w->depth_stride = stride[tn__volume_depth(w)];
}

static tn_status read_sizes(const tn_prepare_ctx *ctx, tn__volume_window *w, tn_error *err)
{
  const tn__pool_state *s = ctx->state;
  int64_t values[2][5];
  *w = s->window;
  if (s->sizes_from == 0) return TN_OK;
  for (uint32_t i = 0; i < 2; i++) {
    tn_status st = tn__volume_sizes(ctx, s->sizes_from + i, w->directions + 2, values[i], err);
    if (st != TN_OK) return st;
    for (int k = 0; k < w->directions + 2; k++)
      if (values[i][k] == 0)
        return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: number %d of input %u is 0, wanted at least 1",
                            tn_operation_type(ctx->op), k, s->sizes_from + i);
  }
  set_sizes(w, values[0], values[1]);
  return check_window(ctx->op, w, err);
}

tn_status tn__pool_plan_create(tn_prepare_ctx *ctx, const int64_t *dims, tn__pool_plan **plan, tn_error *err)
{
  tn__volume_window w;
  tn__pool_plan m = { 0 };
  tn_status st = read_sizes(ctx, &w, err);
  if (st != TN_OK) return st;
  m.rank = w.directions + 2;
  m.in = tn__volume_of(&w, dims);
  m.batch_of = m.in.n;
  m.channels = m.in.c;
  st = tn__volume_fit(&w, tn_operation_type(ctx->op), &m.in, &m.out, err);
  if (st != TN_OK) return st;
  tn__volume_dims(&w, &m.out, m.out_dims);
  for (int k = 0; k < 3; k++) m.axis[k] = w.axis[k];
  st = tn_shape_elements(dims, m.rank, &m.ins, err);
  if (st == TN_OK) st = tn_shape_elements(m.out_dims, m.rank, &m.outs, err);
  if (st != TN_OK) return st;
  if (m.ins > 0) m.batch = m.ins / m.in.n;
  if (w.channels_first && m.ins > 0 && m.outs > 0) {
    m.in.n = m.out.n = m.in.n * m.in.c;
    m.in.c = m.out.c = 1;
  }
  if (m.outs > 0) m.lines = m.out.n * m.out.size[0] * m.out.size[1];
  tn__pool_plan *p = tn__zalloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "pooling plan", sizeof *p);
  *p = m;
  *plan = ctx->shape_state = p;
  ctx->cost_ns = 20 + (double)m.outs * (double)w.axis[0].size * (double)w.axis[1].size * (double)w.axis[2].size;
  return TN_OK;
}

void tn__pool_form(tn_prepare_ctx *ctx, tn__pool_plan *p, int k, bool images)
{
  const tn__pool_state *s = ctx->state;
  const tn__volume v = { 1, { 1, 1, images ? p->ins : p->outs }, 1 };
  /* Only half and bfloat16 are computed in a different type: float. */
  tn_dtype dtype = s->size == tn_dtype_size(s->dtype) ? TN_FLOAT : s->dtype;
  tn__form_plan(&p->form[k], dtype, false, &v, &ctx->scratch_bytes);
}

bool tn__pool_cells(const tn__pool_plan *p, int64_t line, int64_t at, tn__cells *cells, int64_t *first)
{
  const int64_t place[3] = { line / p->out.size[1] % p->out.size[0], line % p->out.size[1], at };
  const int64_t *size = p->in.size;
  int64_t begin[3];
  for (int k = 0; k < 3; k++) {
    tn__window_clip(&p->axis[k], place[k], size[k], &begin[k], &cells->n[k]);
    if (cells->n[k] == 0) return false;
  }
  cells->step[2] = p->in.c;
  cells->step[1] = size[2] * p->in.c;
  cells->step[0] = size[1] * cells->step[1];
  int64_t image = line / p->out.size[1] / p->out.size[0];
  *first = (((image * size[0] + begin[0]) * size[1] + begin[1]) * size[2] + begin[2]) * p->in.c;
  return true;
}

/* ---- shape functions ---- */

tn_status tn__pool_infer_image(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s;
  tn__infer_get(ctx, 0, &s);
  return tn__infer_set(ctx, 0, &s, err);
}

tn_status tn__pool_infer_pooled(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s;
  tn__infer_get(ctx, 1, &s);
  return tn__infer_set(ctx, 0, &s, err);
}

/* ---- iteration ---- */

static int64_t block_at(const tn__pool_plan *p, int64_t c) { return p->in.c - c < BLOCK ? p->in.c - c : BLOCK; }

static double line_cost(const tn__pool_plan *p)
{
  return (double)(p->out.size[2] * p->in.c) * (double)p->axis[0].size * (double)p->axis[1].size *
         (double)p->axis[2].size;
}

static void take_part(void *user, int64_t begin, int64_t end)
{
  const tn__pool_run *r = user;
  const tn__pool_plan *p = r->plan;
  const tn__pool_loops *l = r->state->loops;
  const size_t size = r->state->size;
  int64_t where[BLOCK], first;
  tn__poll poll = tn__poll_here();
  tn__cells cells;
  for (int64_t line = begin; line < end; line++)
    for (int64_t at = 0; at < p->out.size[2]; at++) {
      char *out = r->out + (size_t)((line * p->out.size[2] + at) * p->in.c) * size;
      if (!tn__pool_cells(p, line, at, &cells, &first)) {
        memset(out, 0, (size_t)p->in.c * size);
        continue;
      }
      for (int64_t c = 0; c < p->in.c; c += BLOCK) {
        if (tn__poll_over(&poll, tn__cells_ns(&cells))) return;
        size_t from = (size_t)(first + c) * size;
        l->match(r->in + from, r->pooled + (out - r->out) + (size_t)c * size, &cells, block_at(p, c), where);
        l->take(r->from + from, where, block_at(p, c), out + (size_t)c * size);
      }
    }
}

static void take_all(tn_kernel_ctx *ctx, const tn__pool_run *r)
{
  tn__run_parts(ctx, r->plan->lines, line_cost(r->plan), take_part, (void *)r);
}

/* Processes blocks of channels of one image, so that no two threads write to the same element. */
typedef void (*place_fn)(const tn__pool_run *r, const tn__cells *cells, int64_t first, int64_t at, int64_t n);

typedef struct spread {
  const tn__pool_run *run;
  place_fn fn;
  int64_t blocks; /* per image */
} spread;

static void clear_block(const tn__pool_run *r, int64_t image, int64_t c, int64_t n)
{
  const tn__pool_plan *p = r->plan;
  const size_t size = r->state->size;
  const int64_t pixels = tn__volume_pixels(&p->in);
  for (int64_t i = image * pixels; i < (image + 1) * pixels; i++)
    memset(r->out + (size_t)(i * p->in.c + c) * size, 0, (size_t)n * size);
}

static void spread_part(void *user, int64_t begin, int64_t end)
{
  const spread *s = user;
  const tn__pool_run *r = s->run;
  const tn__pool_plan *p = r->plan;
  const int64_t lines = p->out.size[0] * p->out.size[1];
  tn__poll poll = tn__poll_here();
  tn__cells cells;
  int64_t first;
  for (int64_t i = begin; i < end; i++) {
    const int64_t image = i / s->blocks, c = i % s->blocks * BLOCK, n = block_at(p, c);
    clear_block(r, image, c, n);
    for (int64_t line = image * lines; line < (image + 1) * lines; line++)
      for (int64_t at = 0; at < p->out.size[2]; at++)
        if (tn__pool_cells(p, line, at, &cells, &first)) {
          if (tn__poll_over(&poll, tn__cells_ns(&cells))) return;
          s->fn(r, &cells, first + c, (line * p->out.size[2] + at) * p->in.c + c, n);
        }
  }
}

static void run_spread(tn_kernel_ctx *ctx, const tn__pool_run *r, place_fn fn)
{
  const tn__pool_plan *p = r->plan;
  if (p->ins == 0) return;
  if (p->outs == 0) {
    memset(r->out, 0, (size_t)p->ins * r->state->size);
    return;
  }
  spread s = { r, fn, (p->in.c + BLOCK - 1) / BLOCK };
  int64_t items = p->in.n * s.blocks;
  tn__run_parts(ctx, items, line_cost(p) * (double)p->lines / (double)items, spread_part, &s);
}

static void spread_best(const tn__pool_run *r, const tn__cells *cells, int64_t first, int64_t at, int64_t n)
{
  const size_t size = r->state->size;
  int64_t where[BLOCK];
  r->state->loops->best(r->in + (size_t)first * size, cells, n, where);
  r->state->loops->add(r->out + (size_t)first * size, where, n, r->from + (size_t)at * size);
}

/* MaxPool3D's treatment of ties: every element equal to the maximum receives the gradient. */
static void spread_equal(const tn__pool_run *r, const tn__cells *k, int64_t first, int64_t at, int64_t n)
{
  const float *in = (const float *)r->in + first, *pooled = (const float *)r->pooled + at;
  const float *from = (const float *)r->from + at;
  float *out = (float *)r->out + first;
  for (int64_t a = 0; a < k->n[0]; a++)
    for (int64_t b = 0; b < k->n[1]; b++)
      for (int64_t c = 0; c < k->n[2]; c++) {
        const int64_t cell = a * k->step[0] + b * k->step[1] + c * k->step[2];
        for (int64_t j = 0; j < n; j++) out[cell + j] += in[cell + j] == pooled[j] ? from[j] : 0;
      }
}

static void spread_all(tn_kernel_ctx *ctx, const tn__pool_run *r)
{
  run_spread(ctx, r, r->state->window.directions == 3 ? spread_equal : spread_best);
}

#define SHARE(name, T)                                                                                               \
  static void share_##name(const tn__pool_run *r, const tn__cells *k, int64_t first, int64_t at, int64_t n)          \
  {                                                                                                                  \
    const T *from = (const T *)r->from + at, by = (T)(k->n[0] * k->n[1] * k->n[2]);                                  \
    T *out = (T *)r->out + first, part[BLOCK];                                                                       \
    for (int64_t j = 0; j < n; j++) part[j] = from[j] / by;                                                          \
    for (int64_t a = 0; a < k->n[0]; a++)                                                                            \
      for (int64_t b = 0; b < k->n[1]; b++)                                                                          \
        for (int64_t c = 0; c < k->n[2]; c++) {                                                                      \
          T *to = out + a * k->step[0] + b * k->step[1] + c * k->step[2];                                            \
          for (int64_t j = 0; j < n; j++) to[j] += part[j];                                                          \
        }                                                                                                            \
  }
SHARE(f32, float)
SHARE(f64, double)

static void share_all(tn_kernel_ctx *ctx, const tn__pool_run *r)
{
  run_spread(ctx, r, r->state->size == sizeof(double) ? share_f64 : share_f32);
}

/* ---- gradients of the maximum: inputs are the images, the pooled result, a gradient ---- */

/* to_images: input 2 has the shape of input 1, and output 0 that of input 0. Otherwise the reverse. */
static tn_status prepare_best(tn_prepare_ctx *ctx, bool to_images, tn_error *err)
{
  const tn__pool_state *s = ctx->state;
  tn__pool_plan *p;
  tn_status st = tn__want_rank(ctx, 0, s->window.directions + 2, err);
  if (st == TN_OK) st = tn__pool_plan_create(ctx, ctx->inputs[0].dims, &p, err);
  if (st == TN_OK) st = tn__want_shape(ctx, 1, p->out_dims, p->rank, err);
  if (st == TN_OK) st = tn__want_same_shape(ctx, to_images ? 1 : 0, 2, err);
  if (st == TN_OK) st = tn_prepare_output_like(ctx, 0, to_images ? 0 : 1, err);
  if (st != TN_OK) return st;
  tn__pool_form(ctx, p, 0, true);
  tn__pool_form(ctx, p, 1, !to_images);
  tn__pool_form(ctx, p, 2, to_images);
  tn__pool_form(ctx, p, 3, false);
  return TN_OK;
}

tn_status tn__pool_prepare_grad(tn_prepare_ctx *ctx, tn_error *err) { return prepare_best(ctx, true, err); }
tn_status tn__pool_prepare_grad_grad(tn_prepare_ctx *ctx, tn_error *err) { return prepare_best(ctx, false, err); }

static tn_status compute_best(tn_kernel_ctx *ctx, void (*fn)(tn_kernel_ctx *ctx, const tn__pool_run *r))
{
  const tn__pool_plan *p = ctx->shape_state;
  tn__pool_run r = { .state = ctx->state, .plan = p };
  if (ctx->outputs[0]->count == 0) return TN_OK;
  r.in = tn__form_load(&p->form[0], ctx, ctx->inputs[0]->data, ctx->scratch);
  r.pooled = tn__form_load(&p->form[3], ctx, ctx->inputs[1]->data, ctx->scratch);
  r.from = tn__form_load(&p->form[1], ctx, ctx->inputs[2]->data, ctx->scratch);
  r.out = tn__form_room(&p->form[2], ctx->outputs[0]->data, ctx->scratch);
  fn(ctx, &r);
  tn__form_store(&p->form[2], ctx, ctx->outputs[0]->data, ctx->scratch);
  return TN_OK;
}

tn_status tn__pool_compute_grad(tn_kernel_ctx *ctx) { return compute_best(ctx, spread_all); }
tn_status tn__pool_compute_grad_grad(tn_kernel_ctx *ctx) { return compute_best(ctx, take_all); }

/* ---- gradients of the mean: inputs are the shape of the images, a gradient ---- */

tn_status tn__pool_infer_mean_2d(tn_infer_ctx *ctx, tn_error *err) { return tn__volume_infer_sizes(ctx, 0, 4, err); }
tn_status tn__pool_infer_mean_3d(tn_infer_ctx *ctx, tn_error *err) { return tn__volume_infer_sizes(ctx, 0, 5, err); }

/* A gradient may have fewer or more positions than there are windows; those whose windows overlap the images count. */
static tn_status take_places(const tn_prepare_ctx *ctx, tn__pool_plan *p, tn_error *err)
{
  const tn__pool_state *s = ctx->state;
  const tn_view *grad = &ctx->inputs[1];
  int64_t wanted[5];
  tn_status st = tn__want_rank(ctx, 1, p->rank, err);
  if (st != TN_OK) return st;
  tn__volume in = tn__volume_of(&s->window, grad->dims), like = in;
  like.n = p->batch_of;
  like.c = p->channels;
  tn__volume_dims(&s->window, &like, wanted);
  st = tn__want_shape(ctx, 1, wanted, p->rank, err);
  for (int k = 0; k < 3 && st == TN_OK; k++) {
    if (in.size[k] > 0 && in.size[k] - 1 > p->in.size[k] / p->axis[k].stride)
      st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 1 has %lld places of a window with stride %lld over %lld",
                        tn_operation_type(ctx->op), (long long)in.size[k], (long long)p->axis[k].stride,
                        (long long)p->in.size[k]);
    p->out.size[k] = in.size[k];
  }
  p->outs = grad->count;
  if (st == TN_OK && p->outs > 0 && p->ins > 0 && s->window.channels_first) {
    p->in.n = p->out.n = p->batch_of * p->channels;
    p->in.c = p->out.c = 1;
  }
  p->lines = p->outs == 0 ? 0 : p->out.n * p->out.size[0] * p->out.size[1];
  return st;
}

tn_status tn__pool_prepare_mean(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn__pool_state *s = ctx->state;
  tn__pool_plan *p;
  int64_t dims[5];
  int32_t rank = s->window.directions + 2;
  tn_status st = tn__volume_sizes(ctx, 0, rank, dims, err);
  if (st == TN_OK) st = tn__pool_plan_create(ctx, dims, &p, err);
  if (st == TN_OK) st = take_places(ctx, p, err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 0, dims, rank, err);
  if (st != TN_OK) return st;
  tn__pool_form(ctx, p, 0, false);
  tn__pool_form(ctx, p, 1, true);
  return TN_OK;
}

tn_status tn__pool_compute_mean(tn_kernel_ctx *ctx)
{
  const tn__pool_plan *p = ctx->shape_state;
  tn__pool_run r = { .state = ctx->state, .plan = p };
  if (ctx->outputs[0]->count == 0) return TN_OK;
  r.from = tn__form_load(&p->form[0], ctx, ctx->inputs[1]->data, ctx->scratch);
  r.out = tn__form_room(&p->form[1], ctx->outputs[0]->data, ctx->scratch);
  share_all(ctx, &r);
  tn__form_store(&p->form[1], ctx, ctx->outputs[0]->data, ctx->scratch);
  return TN_OK;
}
