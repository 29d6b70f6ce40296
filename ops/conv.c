/* SPDX-License-Identifier: Apache-2.0 */
/* Conv2D: a matrix product in which row i of A is the window at place i, and B is the filter as it lies.
 *
 * Windows are not copied together where that can be helped: a row of A is read straight from the image as long as its
 * terms are neighbours there, and zeros stand for the padding. Images with channels first, and half and bfloat16, are
 * brought into the form of the others in scratch memory. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <ops/support/gemm.h>
#include <ops/support/shapes.h>
#include <ops/support/volume.h>
#include <ops/support/widen.h>

/* Neighbouring terms that are worth reading in place. */
#define RUN 16

/* ---- shapes ---- */

typedef struct conv_sizes {
  int64_t n, h, w, c;             /* the images */
  int64_t kh, kw, kc, oc, groups; /* the filter; kc channels of a group */
  int64_t oh, ow;
  int64_t places;                 /* of the window, in all images */
} conv_sizes;

static tn_status conv_shape(const tn__window *w, conv_sizes *z, tn__shape *out, tn_error *err)
{
  int64_t dims[4];
  dims[0] = z->n;
  dims[tn__window_height(w)] = z->oh;
  dims[tn__window_width(w)] = z->ow;
  dims[tn__window_depth(w)] = z->oc;
  tn__shape_set(out, dims, 4);
  tn_status st = tn_shape_elements(dims, 4, &z->places, err);
  if (st == TN_OK) z->places /= z->oc;
  return st;
}

static tn_status infer_conv(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape in, filter, out;
  tn__window w;
  tn_status st = tn__infer_rank(ctx, 0, 4, &in, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 1, 4, &filter, err);
  if (st != TN_OK) return st;
  if (tn__window_read(tn_infer_operation(ctx), &w, NULL) != TN_OK) { /* the kernel says what is wrong */
    tn__shape_unknown(&out);
    return tn__infer_set(ctx, 0, &out, err);
  }
  int64_t c = in.dims[tn__window_depth(&w)], kc = filter.dims[2];
  if (c >= 0 && kc > 0 && c % kc != 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %lld channels are no multiple of the filter's %lld",
                        tn__infer_op(ctx), (long long)c, (long long)kc);
  for (int k = 0; k < 2; k++) w.axis[k].size = filter.dims[k];
  out.rank = 4;
  out.dims[0] = in.dims[0];
  out.dims[tn__window_height(&w)] =
      tn__window_fit_unknown(&w.axis[0], w.padding, in.dims[tn__window_height(&w)]);
  out.dims[tn__window_width(&w)] = tn__window_fit_unknown(&w.axis[1], w.padding, in.dims[tn__window_width(&w)]);
  out.dims[tn__window_depth(&w)] = filter.dims[3];
  return tn__infer_set(ctx, 0, &out, err);
}

/* ---- the kernel's states ---- */

typedef struct conv_state {
  tn__window window;
  tn__gemm_type type;
  tn_dtype dtype, wide;
} conv_state;

typedef struct conv_plan conv_plan;
typedef struct conv_rows conv_rows;
typedef struct places places;

/* Copies terms [term, term + terms) of a few windows together: room[t * rows + i]. */
typedef void (*fill_fn)(const conv_rows *r, const places *at, int rows, int64_t term, int64_t terms, void *room);

struct conv_plan {
  tn__window_axis axis[2];
  conv_sizes z;
  tn__gemm_plan gemm; /* of one group */
  size_t element;     /* bytes of the type computed in */
  const void *packed; /* the constant filter in panels, or NULL */
  bool joined;        /* a row of the window is one run of the image */
  fill_fn fill;
  tn__form in, filter, out;
  size_t at_gemm;     /* in scratch */
};

static tn_status conv_create(const tn_operation *op, void **state, tn_error *err)
{
  *state = NULL;
  conv_state s = { .dtype = tn_operation_input_dtype(op, 0) };
  tn_status st = tn__window_read(op, &s.window, err);
  if (st != TN_OK) return st;
  const char *type = tn_operation_type(op);
  if (s.window.batch_stride != 1 || s.window.depth_stride != 1)
    return tn_error_set(err, TN_UNIMPLEMENTED, "%s: attribute 'strides' goes over batch or channels", type);
  if (s.window.batch_dilation != 1 || s.window.depth_dilation != 1)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: attribute 'dilations' goes over batch or channels", type);
  s.wide = tn__wide_dtype(s.dtype);
  switch (s.wide) {
  case TN_FLOAT: s.type = TN__GEMM_F32; break;
  case TN_DOUBLE: s.type = TN__GEMM_F64; break;
  case TN_INT32: s.type = TN__GEMM_I32; break;
  default: return tn__no_kernel(err, op, s.dtype);
  }
  conv_state *p = tn__zalloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "convolution", sizeof *p);
  *p = s;
  *state = p;
  return TN_OK;
}

static void conv_destroy(void *state) { tn__free(state, sizeof(conv_state)); }
static void conv_destroy_plan(void *plan) { tn__free(plan, sizeof(conv_plan)); }

static tn_status filter_error(const tn_prepare_ctx *ctx, const char *what, tn_error *err)
{
  char x[128], y[128];
  const tn_view *in = &ctx->inputs[0], *filter = &ctx->inputs[1];
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: images of shape %s, filter of shape %s: %s",
                      tn_operation_type(ctx->op), tn__format_shape(x, sizeof x, in->dims, in->rank),
                      tn__format_shape(y, sizeof y, filter->dims, filter->rank), what);
}

static tn_status conv_measure(const tn_prepare_ctx *ctx, conv_plan *p, tn_error *err)
{
  const conv_state *s = ctx->state;
  const tn_view *in = &ctx->inputs[0], *filter = &ctx->inputs[1];
  conv_sizes *z = &p->z;
  const char *op = tn_operation_type(ctx->op);
  tn_status st = tn__want_rank(ctx, 0, 4, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 1, 4, err);
  if (st != TN_OK) return st;
  z->n = in->dims[0];
  z->h = in->dims[tn__window_height(&s->window)];
  z->w = in->dims[tn__window_width(&s->window)];
  z->c = in->dims[tn__window_depth(&s->window)];
  z->kh = filter->dims[0];
  z->kw = filter->dims[1];
  z->kc = filter->dims[2];
  z->oc = filter->dims[3];
  if (filter->count == 0) return filter_error(ctx, "the filter has no elements", err);
  if (z->c == 0 || z->c % z->kc != 0)
    return filter_error(ctx, "the channels are no multiple of the filter's", err);
  z->groups = z->c / z->kc;
  if (z->oc % z->groups != 0)
    return filter_error(ctx, "the output's channels are no multiple of the number of groups", err);
  for (int k = 0; k < 2; k++) p->axis[k] = s->window.axis[k];
  p->axis[0].size = z->kh;
  p->axis[1].size = z->kw;
  st = tn__window_fit(&p->axis[0], s->window.padding, op, z->h, &z->oh, err);
  return st != TN_OK ? st : tn__window_fit(&p->axis[1], s->window.padding, op, z->w, &z->ow, err);
}

/* ---- rows of A ---- */

struct conv_rows {
  const conv_plan *plan;
  const char *in; /* the first channel of the group */
};

static const _Alignas(64) char zeros[TN__GEMM_KC * 8];

/* Places of a few windows: rows and columns of their first elements, and the image. */
struct places {
  int64_t image[TN__GEMM_MR], h[TN__GEMM_MR], w[TN__GEMM_MR];
  bool inside; /* no window reaches over the left or right edge */
};

static void find_places(const conv_plan *p, int64_t row, int rows, places *at)
{
  const conv_sizes *z = &p->z;
  const tn__window_axis *v = &p->axis[0], *u = &p->axis[1];
  int64_t ow = row % z->ow, line = row / z->ow, oh = line % z->oh, n = line / z->oh;
  at->inside = true;
  for (int i = 0; i < rows; i++) {
    at->image[i] = n;
    at->h[i] = oh * v->stride - v->before;
    at->w[i] = ow * u->stride - u->before;
    at->inside &= at->w[i] >= 0 && at->w[i] + z->kw <= z->w;
    if (++ow < z->ow) continue;
    ow = 0;
    if (++oh < z->oh) continue;
    oh = 0;
    n++;
  }
}

/* Address of the window's element (kh, kw, c) of place i; zeros outside the image. */
static const char *element_at(const conv_rows *r, const places *at, int i, int64_t kh, int64_t kw, int64_t c)
{
  const conv_plan *p = r->plan;
  int64_t h = at->h[i] + kh * p->axis[0].dilation, w = at->w[i] + kw * p->axis[1].dilation;
  if (h < 0 || h >= p->z.h || w < 0 || w >= p->z.w) return zeros;
  return r->in + (size_t)(((at->image[i] * p->z.h + h) * p->z.w + w) * p->z.c + c) * p->element;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Element by element of the window. */
#define FILL(name, T)                                                                                         \
  static void name(const conv_rows *r, const places *at, int rows, int64_t term, int64_t terms, void *room)   \
  {                                                                                                           \
    const conv_sizes *z = &r->plan->z;                                                                        \
    const T *in = (const T *)r->in;                                                                           \
    for (int i = 0; i < rows; i++) {                                                                          \
      int64_t c = term % z->kc, kw = term / z->kc % z->kw, kh = term / z->kc / z->kw;                         \
      T *to = (T *)room + i, *end = to + terms * rows;                                                        \
      while (to < end) {                                                                                      \
        int64_t h = at->h[i] + kh * r->plan->axis[0].dilation, w = at->w[i] + kw * r->plan->axis[1].dilation; \
        bool inside = h >= 0 && h < z->h && w >= 0 && w < z->w;                                               \
        int64_t base = inside ? ((at->image[i] * z->h + h) * z->w + w) * z->c : 0;                            \
        for (; c < z->kc && to < end; c++, to += rows) *to = inside ? in[base + c] : 0;                       \
        c = 0;                                                                                                \
        if (++kw < z->kw) continue;                                                                           \
        kw = 0;                                                                                               \
        kh++;                                                                                                 \
      }                                                                                                       \
    }                                                                                                         \
  }
FILL(fill_32, uint32_t)
FILL(fill_64, uint64_t)

/* Row by row of the window, each one run of the image of which some may hang over the edges. */
#define FILL_RUNS(name, T)                                                                                  \
  static void name(const conv_rows *r, const places *at, int rows, int64_t term, int64_t terms, void *room) \
  {                                                                                                         \
    const conv_sizes *z = &r->plan->z;                                                                      \
    const T *in = (const T *)r->in;                                                                         \
    const int64_t reach = z->kw * z->kc, down = r->plan->axis[0].dilation, first = term / reach;            \
    for (int i = 0; i < rows; i++) {                                                                        \
      const int64_t w = at->w[i], left = w < 0 ? -w * z->kc : 0, right = (z->w - w) * z->kc;                \
      int64_t h = at->h[i] + first * down, t = term % reach, rest = terms;                                  \
      for (T *to = (T *)room + i; rest > 0; h += down, t = 0) {                                             \
        const int64_t stop = least(reach, t + rest), base = ((at->image[i] * z->h + h) * z->w + w) * z->c;  \
        const int64_t end = h < 0 || h >= z->h ? t : least(stop, right);                                    \
        rest -= stop - t;                                                                                   \
        for (; t < least(end, left); t++, to += rows) *to = 0;                                              \
        for (; t < end; t++, to += rows) *to = in[base + t];                                                \
        for (; t < stop; t++, to += rows) *to = 0;                                                          \
      }                                                                                                     \
    }                                                                                                       \
  }
FILL_RUNS(fill_runs_32, uint32_t)
FILL_RUNS(fill_runs_64, uint64_t)

static int64_t window_rows(const void *user, int64_t row, int rows, int64_t term, int64_t terms, void *room,
                           const void **out, int64_t *step)
{
  const conv_rows *r = user;
  const conv_plan *p = r->plan;
  const conv_sizes *z = &p->z;
  places at;
  find_places(p, row, rows, &at);
  int64_t reach = p->joined && at.inside ? z->kw * z->kc : z->kc; /* terms that are neighbours */
  if (reach >= RUN) {
    int64_t c = term % reach, tap = (term - c) / z->kc, run = reach - c;
    for (int i = 0; i < rows; i++) out[i] = element_at(r, &at, i, tap / z->kw, tap % z->kw, c);
    *step = 1;
    return run < terms ? run : terms;
  }
  p->fill(r, &at, rows, term, terms, room);
  for (int i = 0; i < rows; i++) out[i] = (char *)room + (size_t)i * p->element;
  *step = rows;
  return terms;
}

/* ---- preparing ---- */

static tn_status pack_filter(void *user, const tn_view *from, void *to, tn_error *err)
{
  (void)err;
  tn__gemm_pack(user, from->data, to);
  return TN_OK;
}

static void plan_product(tn_prepare_ctx *ctx, conv_plan *p)
{
  const conv_sizes *z = &p->z;
  tn__gemm_plan *g = &p->gemm;
  const tn__window_axis *v = &p->axis[0], *u = &p->axis[1];
  g->type = ((const conv_state *)ctx->state)->type;
  g->m = z->places;
  g->n = z->oc / z->groups;
  g->k = z->kh * z->kw * z->kc;
  g->b_row = z->oc;
  g->b_col = 1;
  g->c_row = z->oc;
  bool dense = z->kh == 1 && z->kw == 1 && v->stride == 1 && u->stride == 1 && v->before + v->after == 0 &&
               u->before + u->after == 0;
  g->a_row = z->c;
  g->a_col = 1;
  g->rows = dense ? NULL : window_rows;
  p->joined = z->groups == 1 && u->dilation == 1;
  if (p->joined)
    p->fill = p->element == 4 ? fill_runs_32 : fill_runs_64;
  else
    p->fill = p->element == 4 ? fill_32 : fill_64;
  tn__gemm_plan_choose(g);
  if (z->groups != 1 || p->filter.convert || g->m == 0) return;
  if (tn_prepare_pack(ctx, 1, 0x636f6e76u, tn__gemm_packed_bytes(g), pack_filter, g, &p->packed, NULL) != TN_OK) return;
  g->packed = p->packed != NULL;
  tn__gemm_plan_choose(g);
}

static tn_status conv_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const conv_state *s = ctx->state;
  conv_plan measured = { 0 };
  tn__shape out;
  tn_status st = conv_measure(ctx, &measured, err);
  if (st == TN_OK) st = conv_shape(&s->window, &measured.z, &out, err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 0, out.dims, 4, err);
  if (st != TN_OK) return st;
  conv_plan *p = tn__zalloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "convolution plan", sizeof *p);
  ctx->shape_state = p;
  *p = measured;
  p->element = tn_dtype_size(s->wide);
  const conv_sizes *z = &p->z;
  const tn__volume in = { z->n, { 1, z->h, z->w }, z->c }, result = { z->n, { 1, z->oh, z->ow }, z->oc };
  const tn__volume filter = { 1, { 1, z->kh, z->kw }, z->kc * z->oc };
  size_t scratch = 0;
  tn__form_plan(&p->in, s->dtype, s->window.channels_first, &in, &scratch);
  tn__form_plan(&p->filter, s->dtype, false, &filter, &scratch);
  tn__form_plan(&p->out, s->dtype, s->window.channels_first, &result, &scratch);
  plan_product(ctx, p);
  p->at_gemm = tn__take(&scratch, p->gemm.scratch);
  ctx->scratch_bytes = scratch;
  ctx->cost_ns = p->gemm.cost_ns * (double)p->z.groups;
  return TN_OK;
}

/* ---- computing ---- */

static tn_status conv_compute(tn_kernel_ctx *ctx)
{
  const conv_plan *p = ctx->shape_state;
  tn_view *out = ctx->outputs[0];
  char *scratch = ctx->scratch;
  if (out->count == 0) return TN_OK;
  const char *in = tn__form_load(&p->in, ctx, ctx->inputs[0]->data, scratch);
  const char *b = tn__form_load(&p->filter, ctx, ctx->inputs[1]->data, scratch);
  char *result = tn__form_room(&p->out, out->data, scratch);
  for (int64_t g = 0; g < p->z.groups; g++) {
    size_t column = (size_t)(g * p->gemm.n) * p->element;
    conv_rows rows = { p, in + (size_t)(g * p->z.kc) * p->element };
    const void *a = p->gemm.rows != NULL ? (const void *)&rows : rows.in;
    tn__gemm_run(&p->gemm, ctx, a, p->packed != NULL ? p->packed : b + column, result + column, scratch + p->at_gemm);
  }
  tn__form_store(&p->out, ctx, out->data, scratch);
  return TN_OK;
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "Conv2D", .inputs = "input: T, filter: T", .outputs = "output: T",
    .attrs = "T: {half, bfloat16, float, double, int32}; strides: list(int); use_cudnn_on_gpu: bool = true; "
             "padding: {'SAME', 'VALID', 'EXPLICIT'}; explicit_paddings: list(int) = []; "
             "data_format: {'NHWC', 'NCHW'} = 'NHWC'; dilations: list(int) = [1, 1, 1, 1]",
    .traits = TN_TRAIT_CONTRACTION, .infer = infer_conv, .summary = "convolution of images with a filter" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "Conv2D", .device = "CPU", .types = "T=half|bfloat16|float|double|int32",
    .name = "conv2d_cpu", .rank = TN_RANK_C, .create = conv_create, .destroy = conv_destroy, .prepare = conv_prepare,
    .destroy_shape_state = conv_destroy_plan, .compute = conv_compute },
};

extern const tn_op_family tn__ops_conv;
const tn_op_family tn__ops_conv = {
  .struct_size = TN_OP_FAMILY_SIZE,
  .name = "conv",
  .ops = ops,
  .n_ops = sizeof ops / sizeof ops[0],
  .kernels = kernels,
  .n_kernels = sizeof kernels / sizeof kernels[0],
};
