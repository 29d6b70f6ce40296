/* SPDX-License-Identifier: Apache-2.0 */
/* Conv2D, with and without an epilogue, as a matrix product: row i of A is the window at position i, and B is the
 * filter, unchanged.
 *
 * Windows are read in place and never gathered. Positions whose windows have the same taps inside the image form a
 * rectangle, and are processed together: their windows read elements at the same relative offsets. Taps outside the
 * image, which would multiply zeros, are skipped. Images with channels first, and half and bfloat16, are first
 * converted to the common form in scratch memory. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <ops/kernel/elements/widen.h>
#include <ops/kernel/family.h>
#include <ops/kernel/product/after_product.h>
#include <ops/kernel/product/gemm_kernel.h>
#include <ops/kernel/product/product_loops.h>
#include <ops/kernel/shapes.h>
#include <ops/kernel/window/volume.h>
#include <ops/nn/conv/winograd.h>

/* Maximum bytes of images and results in a block, which is processed rectangle by rectangle. */
#define TOGETHER_BYTES (512 << 10)

/* ---- shapes ---- */

typedef struct conv_sizes {
  int64_t n, h, w, c;             /* sizes of the images */
  int64_t kh, kw, kc, oc, groups; /* sizes of the filter; kc: input channels per group */
  int64_t oh, ow;
  int64_t places;                 /* window positions in all images */
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
  if (tn__window_read(tn_infer_operation(ctx), &w, NULL) != TN_OK) { /* the kernel reports the error */
    tn__shape_unknown(&out);
    return tn__infer_set(ctx, 0, &out, err);
  }
  int64_t c = in.dims[tn__window_depth(&w)], kc = filter.dims[2];
  if (c >= 0 && kc > 0 && c % kc != 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %lld channels are not a multiple of the filter's %lld",
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
  tn__epilogue epilogue;
} conv_state;

/* Adjacent window positions along an axis, with taps [tap, tap + taps) inside the image. */
typedef struct stretch {
  int64_t from, n, tap, taps;
} stretch;

typedef struct conv_plan {
  tn__window_axis axis[2];
  conv_sizes z;
  tn__gemm_plan gemm; /* product of one channel group */
  size_t element;     /* bytes of the compute type */
  const void *packed; /* the constant filter in panels, or NULL */
  tn__form in, filter, out;
  size_t at_gemm;     /* offset in scratch */
  size_t bytes;       /* size of this allocation */
  bool joined;        /* a row of the window is contiguous in the image */
  bool fewer;         /* use `winograd`; the product, too, is planned if the filter is not constant */
  tn__winograd winograd;

  stretch *stretches[2];  /* of rows and of columns; each pair is a rectangle */
  int64_t n_stretches[2]; /* 0: windows are single pixels, so A is a matrix in memory */
  int64_t images, blocks; /* images per block (the last block may have fewer); number of blocks */
  int64_t *groups[2];     /* for a whole block and the last one: row groups before each rectangle, then the total */
} conv_plan;

static tn_status conv_create(const tn_operation *op, void **state, tn_error *err)
{
  *state = NULL;
  conv_state s = { .dtype = tn_operation_input_dtype(op, 0) };
  tn_status st = tn__window_read(op, &s.window, err);
  if (st == TN_OK) st = tn__after_product_read(op, !s.window.channels_first, &s.epilogue, err);
  if (st != TN_OK) return st;
  const char *type = tn_operation_type(op);
  if (s.window.batch_stride != 1 || s.window.depth_stride != 1)
    return tn_error_set(err, TN_UNIMPLEMENTED, "%s: attribute 'strides' is not 1 over batch or channels", type);
  if (s.window.batch_dilation != 1 || s.window.depth_dilation != 1)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: attribute 'dilations' is not 1 over batch or channels", type);
  s.wide = tn__wide_dtype(s.dtype);
  if (!tn__gemm_type_of(s.wide, &s.type)) return tn__no_kernel(err, op, s.dtype);
  return tn__keep_state(&s, sizeof s, "convolution", state, err);
}

static void conv_destroy(void *state) { tn__free(state, sizeof(conv_state)); }
static void conv_destroy_plan(void *plan) { tn__free(plan, ((conv_plan *)plan)->bytes); }

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
    return filter_error(ctx, "the channels are not a multiple of the filter's", err);
  z->groups = z->c / z->kc;
  if (z->oc % z->groups != 0)
    return filter_error(ctx, "the output's channels are not a multiple of the number of groups", err);
  for (int k = 0; k < 2; k++) p->axis[k] = s->window.axis[k];
  p->axis[0].size = z->kh;
  p->axis[1].size = z->kw;
  st = tn__window_fit(&p->axis[0], s->window.padding, op, z->h, &z->oh, err);
  return st != TN_OK ? st : tn__window_fit(&p->axis[1], s->window.padding, op, z->w, &z->ow, err);
}

/* ---- rows of A ---- */

typedef struct conv_windows {
  const conv_plan *plan;
  const char *in; /* first channel of the channel group */
} conv_windows;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Finds the rectangle that contains a group of rows. *group becomes the group's number within the rectangle. */
static int64_t find_rectangle(const int64_t *groups, int64_t n, int64_t *group)
{
  int64_t low = 0;
  while (n - low > 1) {
    int64_t middle = low + (n - low) / 2;
    if (groups[middle] <= *group)
      low = middle;
    else
      n = middle;
  }
  *group -= groups[low];
  return low;
}

/* Indices into tn__gemm_window.place. NEXT: the next group; LEFT: rows left in its rectangle; DOWN, ALONG: the
 * rectangle's two stretches; IMAGE, Y, X: position of the next row. */
enum { NEXT, LEFT, DOWN, ALONG, IMAGE, Y, X };

static void find_place(const conv_plan *p, int64_t group, int64_t *at)
{
  const int64_t n = p->n_stretches[0] * p->n_stretches[1], whole = p->groups[0][n];
  const int64_t block = p->blocks == 1 ? 0 : group / whole;
  const bool last = block == p->blocks - 1;
  group -= block * whole;
  int64_t rectangle = find_rectangle(p->groups[last], n, &group);
  at[DOWN] = rectangle / p->n_stretches[1];
  at[ALONG] = rectangle % p->n_stretches[1];
  const int64_t down = p->stretches[0][at[DOWN]].n, along = p->stretches[1][at[ALONG]].n;
  const int64_t rows = (last ? p->z.n - block * p->images : p->images) * down * along;
  int64_t begin = tn__gemm_group_begin(&p->gemm, rows, group);
  at[LEFT] = rows - begin;
  at[X] = begin % along;
  at[Y] = begin / along % down;
  at[IMAGE] = block * p->images + begin / along / down;
}

/* Sets the addresses of the next out->rows rows, which proceed line by line through the rectangle. */
static void next_rows(const conv_windows *windows, const stretch *down, const stretch *along, tn__gemm_window *out)
{
  const conv_plan *p = windows->plan;
  const conv_sizes *z = &p->z;
  const tn__window_axis *v = &p->axis[0], *u = &p->axis[1];
  const bool empty = down->taps == 0 || along->taps == 0; /* nothing is read in that case */
  const int64_t step = empty ? 0 : u->stride * z->c * (int64_t)p->element;
  int64_t *at = out->place;
  for (int i = 0; i < out->rows;) {
    int64_t h = (down->from + at[Y]) * v->stride - v->before + down->tap * v->dilation;
    int64_t w = (along->from + at[X]) * u->stride - u->before + along->tap * u->dilation;
    const char *from = windows->in + (empty ? 0 : (size_t)(((at[IMAGE] * z->h + h) * z->w + w) * z->c) * p->element);
    int64_t to = (at[IMAGE] * z->oh + down->from + at[Y]) * z->ow + along->from + at[X];
    int n = (int)least(along->n - at[X], out->rows - i);
    for (int end = i + n; i < end; i++, from += step) {
      out->a[i] = from;
      out->c[i] = to++;
    }
    at[X] += n;
    if (at[X] < along->n) break;
    at[X] = 0;
    if (++at[Y] < down->n) continue;
    at[Y] = 0;
    at[IMAGE]++;
  }
}

static void window_rows(const void *user, int64_t group, tn__gemm_window *out)
{
  const conv_windows *windows = user;
  const conv_plan *p = windows->plan;
  const conv_sizes *z = &p->z;
  int64_t *at = out->place;
  if (at[NEXT] != group || at[LEFT] == 0) find_place(p, group, at);
  const stretch *down = &p->stretches[0][at[DOWN]], *along = &p->stretches[1][at[ALONG]];
  out->rows = tn__gemm_group_rows(&p->gemm, at[LEFT]);
  out->a_outer = p->axis[0].dilation * z->w * z->c;
  out->b = (down->tap * z->kw + along->tap) * z->kc;
  out->b_outer = z->kw * z->kc;
  if (p->joined) {
    out->outer = 1;
    out->inner = down->taps;
    out->terms = along->taps * z->kc;
    out->a_inner = out->a_outer;
    out->b_inner = out->b_outer;
  } else {
    out->outer = down->taps;
    out->inner = along->taps;
    out->terms = z->kc;
    out->a_inner = p->axis[1].dilation * z->c;
    out->b_inner = z->kc;
  }
  at[NEXT] = group + 1;
  at[LEFT] -= out->rows;
  next_rows(windows, down, along, out);
}

/* ---- preparing ---- */

static tn_status pack_filter(void *user, const tn_view *from, void *to, tn_error *err)
{
  (void)err;
  tn__gemm_pack(user, from->data, to);
  return TN_OK;
}

#define MOST_PLACES ((int64_t)1 << 28) /* maximum window positions along an axis */

/* Finds the stretches of an axis and returns their number. `to` may be NULL, only to count them. */
static int64_t find_stretches(const tn__window_axis *a, int64_t length, int64_t places, stretch *to)
{
  int64_t n = 0, before = -1, taps_before = -1;
  for (int64_t i = 0; i < places; i++) {
    int64_t at, tap, taps;
    tn__window_taps(a, i, length, &at, &tap, &taps);
    if (taps <= 0) tap = taps = 0;
    if (tap != before || taps != taps_before) {
      if (to != NULL) to[n] = (stretch){ i, 0, tap, taps };
      n++;
    }
    if (to != NULL) to[n - 1].n++;
    before = tap;
    taps_before = taps;
  }
  return n;
}

static bool is_dense(const conv_plan *p)
{
  for (int k = 0; k < 2; k++) {
    const tn__window_axis *a = &p->axis[k];
    if (a->size != 1 || a->stride != 1 || a->before != 0 || a->after != 0) return false;
  }
  return true;
}

/* Allocates a copy of `m`, followed by its stretches and groups. NULL if out of memory. */
static conv_plan *new_plan(const conv_plan *m)
{
  const conv_sizes *z = &m->z;
  int64_t n[2] = { 0, 0 };
  size_t bytes, more, rectangles;
  if (z->places > 0 && !is_dense(m)) {
    n[0] = find_stretches(&m->axis[0], z->h, z->oh, NULL);
    n[1] = find_stretches(&m->axis[1], z->w, z->ow, NULL);
  }
  if (!tn__size_mul((size_t)n[0], (size_t)n[1], &rectangles) ||
      !tn__size_mul(2 * sizeof(int64_t), rectangles + 1, &bytes) ||
      !tn__size_mul((size_t)n[0] + (size_t)n[1], sizeof(stretch), &more) || !tn__size_add(bytes, more, &bytes) ||
      !tn__size_add(bytes, sizeof *m, &bytes))
    return NULL;
  conv_plan *p = tn__zalloc(bytes);
  if (p == NULL) return NULL;
  *p = *m;
  p->bytes = bytes;
  p->stretches[0] = (stretch *)(p + 1);
  p->stretches[1] = p->stretches[0] + n[0];
  p->groups[0] = (int64_t *)(p->stretches[1] + n[1]);
  p->groups[1] = p->groups[0] + rectangles + 1;
  for (int k = 0; k < 2; k++) p->n_stretches[k] = n[k];
  if (n[0] > 0) find_stretches(&p->axis[0], z->h, z->oh, p->stretches[0]);
  if (n[1] > 0) find_stretches(&p->axis[1], z->w, z->ow, p->stretches[1]);
  return p;
}

/* Divides the images into blocks, and counts the groups of rows in each. */
static void plan_groups(conv_plan *p)
{
  const conv_sizes *z = &p->z;
  const int64_t rectangles = p->n_stretches[0] * p->n_stretches[1];
  if (rectangles == 0) return;
  double bytes = ((double)z->h * (double)z->w * (double)z->c + (double)z->oh * (double)z->ow * (double)z->oc) *
                 (double)p->element;
  const int64_t few = p->gemm.kernel->mr; /* enough images for full groups even in rectangles at edges */
  p->images = bytes * (double)few > TOGETHER_BYTES ? few : (int64_t)(TOGETHER_BYTES / bytes);
  if (p->images > z->n) p->images = z->n;
  p->blocks = (z->n + p->images - 1) / p->images;
  for (int last = 0; last < 2; last++) {
    int64_t images = last ? z->n - (p->blocks - 1) * p->images : p->images, all = 0;
    for (int64_t i = 0; i < rectangles; i++) {
      p->groups[last][i] = all;
      all += tn__gemm_groups(&p->gemm, images * p->stretches[0][i / p->n_stretches[1]].n *
                                           p->stretches[1][i % p->n_stretches[1]].n);
    }
    p->groups[last][rectangles] = all;
  }
  p->gemm.groups = (p->blocks - 1) * p->groups[0][rectangles] + p->groups[1][rectangles];
}

/* Plans a convolution with fewer products, if that is faster. */
static void plan_fewer(tn_prepare_ctx *ctx, conv_plan *p, size_t *scratch)
{
  const conv_sizes *z = &p->z;
  const tn__window_axis *v = &p->axis[0], *u = &p->axis[1];
  if (((const conv_state *)ctx->state)->type != TN__GEMM_F32 || z->groups != 1 || p->filter.convert) return;
  if (v->size != 3 || u->size != 3 || v->stride != 1 || u->stride != 1 || v->dilation != 1 || u->dilation != 1)
    return;
  const tn__winograd_image image = { z->n, z->h, z->w, z->c, z->oh, z->ow, z->oc, { v->before, u->before } };
  const tn__winograd_filter filter = tn_prepare_is_constant(ctx, 1) ? TN__WINOGRAD_CONSTANT : TN__WINOGRAD_FED;
  p->fewer = tn__winograd_plan(&p->winograd, &image, filter, ctx, scratch);
}

static void plan_product(tn_prepare_ctx *ctx, conv_plan *p)
{
  const conv_sizes *z = &p->z;
  tn__gemm_plan *g = &p->gemm;
  g->type = ((const conv_state *)ctx->state)->type;
  g->reproducible = ctx->reproducible;
  g->m = z->places;
  g->n = z->oc / z->groups;
  g->k = z->kh * z->kw * z->kc;
  g->b_row = z->oc;
  g->b_col = 1;
  g->c_row = z->oc;
  g->a_row = z->c;
  g->a_col = 1;
  g->windows = p->n_stretches[0] > 0 ? window_rows : NULL;
  p->joined = z->groups == 1 && p->axis[1].dilation == 1;
  tn__gemm_plan_choose(g);
  if (z->groups == 1 && !p->filter.convert && g->m > 0) {
    uint64_t key = 0x636f6e7600000000u | (uint64_t)g->kernel->nr;
    tn_status st = tn_prepare_pack(ctx, 1, key, tn__gemm_packed_bytes(g), pack_filter, g, &p->packed, NULL);
    if (st != TN_OK) p->packed = NULL;
    g->packed = p->packed != NULL;
    tn__gemm_plan_choose(g);
  }
  plan_groups(p);
}

static tn_status conv_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const conv_state *s = ctx->state;
  conv_plan measured = { .element = tn_dtype_size(s->wide) };
  tn__shape out;
  tn_status st = conv_measure(ctx, &measured, err);
  if (st == TN_OK) st = conv_shape(&s->window, &measured.z, &out, err);
  if (st == TN_OK) st = tn__after_product_check(&s->epilogue, ctx, 2, out.dims, 4, err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 0, out.dims, 4, err);
  /* Planning visits each row and column. Paddings can make them so many that no memory could hold the result. */
  if (st == TN_OK && (measured.z.oh > MOST_PLACES || measured.z.ow > MOST_PLACES))
    st = tn_error_set(err, TN_RESOURCE_EXHAUSTED, "a result of %lld x %lld places is too large",
                      (long long)measured.z.oh, (long long)measured.z.ow);
  if (st != TN_OK) return st;
  conv_plan *p = new_plan(&measured);
  if (p == NULL) return tn__no_memory(err, "convolution plan", sizeof *p);
  ctx->shape_state = p;
  const conv_sizes *z = &p->z;
  const tn__volume in = { z->n, { 1, z->h, z->w }, z->c }, result = { z->n, { 1, z->oh, z->ow }, z->oc };
  const tn__volume filter = { 1, { 1, z->kh, z->kw }, z->kc * z->oc };
  size_t scratch = 0;
  tn__form_plan(&p->in, s->dtype, s->window.channels_first, &in, &scratch);
  tn__form_plan(&p->filter, s->dtype, false, &filter, &scratch);
  tn__form_plan(&p->out, s->dtype, s->window.channels_first, &result, &scratch);
  plan_fewer(ctx, p, &scratch);
  if (!p->fewer || p->winograd.filter != TN__WINOGRAD_CONSTANT) {
    plan_product(ctx, p);
    p->at_gemm = tn__take(&scratch, p->gemm.scratch);
  }
  ctx->cost_ns = p->fewer ? p->winograd.cost_ns : p->gemm.cost_ns * (double)p->z.groups;
  ctx->scratch_bytes = scratch;
  return TN_OK;
}

/* ---- computing ---- */

static tn_status conv_compute(tn_kernel_ctx *ctx)
{
  const conv_state *s = ctx->state;
  const conv_plan *p = ctx->shape_state;
  tn_view *out = ctx->outputs[0];
  char *scratch = ctx->scratch;
  if (out->count == 0) return TN_OK;
  const char *in = tn__form_load(&p->in, ctx, ctx->inputs[0]->data, scratch);
  const char *b = tn__form_load(&p->filter, ctx, ctx->inputs[1]->data, scratch);
  char *result = tn__form_room(&p->out, out->data, scratch);
  bool done = false;
  if (p->fewer) {
    tn__after_product after;
    const tn__gemm_then *then = tn__after_product_set(&after, &s->epilogue, ctx, 2, 0);
    done = tn__winograd_run(&p->winograd, ctx, (const float *)in, (const float *)b, (float *)result, then);
  }
  for (int64_t g = 0; g < p->z.groups && !done; g++) {
    size_t column = (size_t)(g * p->gemm.n) * p->element;
    tn__after_product after;
    const tn__gemm_then *then = tn__after_product_set(&after, &s->epilogue, ctx, 2, g * p->gemm.n);
    conv_windows windows = { p, in + (size_t)(g * p->z.kc) * p->element };
    const void *a = p->gemm.windows != NULL ? (const void *)&windows : windows.in;
    tn__gemm_run_then(&p->gemm, ctx, a, p->packed != NULL ? p->packed : b + column, result + column,
                      scratch + p->at_gemm, then);
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

#define CONV_KERNEL(type, set, title)                                                                          \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = type, .device = "CPU", .types = set, .name = title,               \
    .rank = TN_RANK_C, .create = conv_create, .destroy = conv_destroy, .prepare = conv_prepare,                \
    .destroy_shape_state = conv_destroy_plan, .compute = conv_compute }

static const tn_kernel_def kernels[] = {
  CONV_KERNEL("Conv2D", "T=half|bfloat16|float|double|int32", "conv2d_cpu"),
  CONV_KERNEL("_TnConv2D", "T=float", "fused_conv2d_cpu"),
};

TN_OP_FAMILY(conv)
