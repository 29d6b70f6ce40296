/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of images and volumes, channels last: Conv2D, Conv3D and DepthwiseConv2dNative, alone and with what
 * follows them, and their gradients. */
#include "onednn.h"

#include <string.h>

typedef enum wanted { WANTED_Y, WANTED_X, WANTED_FILTER } wanted;

typedef struct conv_state {
  dnn_epilogue epilogue;
  dnn_window window;
  wanted wanted;
  bool depthwise;
} conv_state;

tn_status dnn_conv_create(const tn_operation *op, void **state, tn_error *err)
{
  const char *type = tn_operation_type(op);
  conv_state s = { .depthwise = strstr(type, "Depthwise") != NULL };
  uint32_t floats = 0; /* the first input of the convolution's own type */
  *state = NULL;
  s.wanted = WANTED_Y;
  if (strstr(type, "BackpropInput") != NULL) s.wanted = WANTED_X;
  if (strstr(type, "BackpropFilter") != NULL) s.wanted = WANTED_FILTER;
  if (s.wanted != WANTED_Y) floats = 2;
  if (!dnn_type_is_fast(tn_operation_input_dtype(op, floats)))
    return dnn_declined(err, "this processor has no such products");
  if (!dnn_window_read(op, strstr(type, "3D") != NULL ? 3 : 2, false, &s.window))
    return dnn_declined(err, "attributes that the library's own kernel judges");
  tn_status st = dnn_epilogue_read(op, &s.epilogue, err);
  if (st != TN_OK) return st;
  conv_state *p = tn_alloc(sizeof *p);
  if (p == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "out of memory for a convolution");
  *p = s;
  *state = p;
  return TN_OK;
}

/* ---- shapes ---- */

typedef struct sizes {
  dnn_window window;
  int rank;
  int64_t groups, in_group, out_group; /* channels of a group */
  int64_t x[5], filter[5], y[5];
  int64_t rows; /* elements of y without channels */
  double products;
} sizes;

/* False: left to the library's own kernel, which reports errors. */
static bool measure(const tn_prepare_ctx *ctx, const conv_state *s, sizes *z)
{
  *z = (sizes){ .window = s->window, .rank = s->window.axes + 2, .rows = 1 };
  const int axes = s->window.axes, last = axes + 1;
  if (!dnn_shape_read(&ctx->inputs[0], z->rank, z->x)) return false;
  if (!dnn_shape_read(&ctx->inputs[1], z->rank, z->filter)) return false;
  int64_t c = z->x[last], in = z->filter[axes], out = z->filter[last];
  if (s->depthwise ? in != c : c % in != 0) return false;
  z->groups = s->depthwise ? c : c / in;
  z->in_group = s->depthwise ? 1 : in;
  if (!s->depthwise && out % z->groups != 0) return false;
  z->out_group = s->depthwise ? out : out / z->groups;
  for (int a = 0; a < axes; a++) z->window.size[a] = z->filter[a];
  z->y[0] = z->x[0];
  z->y[last] = z->groups * z->out_group;
  if (!dnn_window_fit(&z->window, z->x + 1, z->y + 1) || !dnn_dims_fit(z->y, z->rank)) return false;
  z->products = 1;
  for (int d = 0; d < last; d++) z->rows *= z->y[d];
  for (int d = 0; d < z->rank; d++) z->products *= (double)z->filter[d];
  z->products *= (double)z->rows;
  if (s->wanted == WANTED_Y) return true;
  const tn_view *dy = &ctx->inputs[2];
  return dy->rank == z->rank && memcmp(dy->dims, z->y, (size_t)z->rank * sizeof *z->y) == 0;
}

typedef struct layouts {
  dnnl_memory_desc_t x, filter, any_filter, bias, y;
} layouts;

/* Filters [axes..., in, out] as (group, out, in, axes...); a depthwise one is [axes..., group, out]. */
static void describe_filter(const sizes *z, bool depthwise, dnnl_data_type_t type, layouts *l)
{
  const int axes = z->window.axes;
  int64_t oc = z->groups * z->out_group, dims[6], strides[6], step = depthwise ? oc : z->in_group * oc;
  int skip = z->groups == 1 && !depthwise, n = axes + 3 - skip;
  dims[0] = z->groups, dims[1] = z->out_group, dims[2] = z->in_group;
  strides[0] = z->out_group, strides[1] = 1, strides[2] = depthwise ? 1 : oc;
  for (int a = axes - 1; a >= 0; a--) {
    dims[3 + a] = z->window.size[a];
    strides[3 + a] = step;
    step *= z->window.size[a];
  }
  l->filter = dnn_strided(dims + skip, strides + skip, n, type);
  l->any_filter = dnn_any(dims + skip, n, type);
}

static layouts describe(const sizes *z, tn_dtype dtype, bool depthwise)
{
  layouts l;
  dnnl_data_type_t type = dnn_type(dtype);
  const int64_t one = 1;
  l.x = dnn_channels_last(z->x, z->rank, type);
  l.y = dnn_channels_last(z->y, z->rank, type);
  l.bias = dnn_strided(&z->y[z->rank - 1], &one, 1, type);
  describe_filter(z, depthwise, type, &l);
  return l;
}

/* ---- forward ---- */

/* Below these the library's own loops are as fast. */
#define SMALL 24000
#define SMALL_DEPTHWISE 8000
#define SMALL_NARROW 100000 /* results of less than 4 points in a row, which oneDNN computes at once */

/* They are also as fast if a dilated window is as wide as the image: oneDNN has separate code for each point. */
static bool is_slow(const sizes *z, bool depthwise)
{
  const int last = z->window.axes - 1;
  int64_t reach = (z->window.size[last] - 1) * z->window.dilation[last];
  if (depthwise) return z->products < SMALL_DEPTHWISE;
  return z->products < (z->y[last + 1] < 4 ? SMALL_NARROW : SMALL) ||
         (z->window.dilation[last] > 1 && 4 * reach > 3 * z->x[last + 1]);
}

#define SMALL_RAGGED 100000 /* if vectors are not filled */
#define FEW_CHANNELS 3      /* of an image, if vectors are not filled */
#define NARROW 8            /* channels of its result, if vectors are not filled */

/* Forward, images are also slow if vectors are not filled, and depthwise ones with strides above 1 and few channels. */
static bool is_slow_forward(const sizes *z, bool depthwise, tn_dtype dtype)
{
  const dnn_window *w = &z->window;
  int64_t channels = z->y[z->rank - 1];
  if (w->axes != 2 || dtype != TN_FLOAT) return false;
  if (depthwise) return channels < 24 || w->stride[0] > 1 || w->stride[1] > 1;
  if (z->groups != 1 || channels % 16 == 0) return false;
  return z->products < SMALL_RAGGED || z->in_group < FEW_CHANNELS || channels < NARROW || !dnn_fused_is_faster();
}

#define REUSED 32 /* rows from which packing a filter in each step pays */

static tn_status forward_desc(const sizes *z, const layouts *l, dnnl_prop_kind_t kind, bool biased,
                              dnnl_convolution_desc_t *desc, tn_error *err)
{
  const dnn_window *w = &z->window;
  dnnl_dims_t dilates;
  for (int a = 0; a < w->axes; a++) dilates[a] = w->dilation[a] - 1;
  return dnn_status(dnnl_dilated_convolution_forward_desc_init(desc, kind, dnnl_convolution_direct, &l->x,
                                                               &l->any_filter, biased ? &l->bias : NULL, &l->y,
                                                               w->stride, dilates, w->before, w->after), "convolution",
                    err);
}

/* Makes a plan for z, which begins at these bytes of x and y. The filter has the layout that the primitive prefers, or
 * that of an earlier plan, `like`. */
static tn_status conv_create(tn_prepare_ctx *ctx, const conv_state *s, const sizes *z, const int64_t *at,
                             const dnn_plan *like, dnn_plan **out, tn_error *err)
{
  layouts l = describe(z, ctx->inputs[0].dtype, s->depthwise);
  const dnn_setup setup = { &s->epilogue, &l.y, NULL };
  const dnn_follow follow = { .bias = &l.bias, .added = &l.y, .added_at = (size_t)at[1] };
  dnnl_convolution_desc_t desc;
  if (like != NULL) l.any_filter = *dnnl_primitive_desc_query_md(like->desc, dnnl_query_weights_md, 0);
  tn_status st = forward_desc(z, &l, dnnl_forward_inference, dnn_has_bias(&s->epilogue), &desc, err);
  if (st == TN_OK) st = dnn_plan_create(ctx, &desc, &setup, out, err);
  if (st != TN_OK) return st;
  dnn_plan_input_piece(*out, DNNL_ARG_SRC, 0, (size_t)at[0], &l.x);
  dnn_plan_output_piece(*out, DNNL_ARG_DST, (size_t)at[1], &l.y);
  dnn_plan_epilogue(*out, &s->epilogue, 2, &follow);
  return TN_OK;
}

static tn_status conv_end(tn_prepare_ctx *ctx, const conv_state *s, const sizes *z, dnn_plan *p, tn_error *err)
{
  layouts l = describe(z, ctx->inputs[0].dtype, s->depthwise);
  tn_status st = dnn_plan_weights(p, ctx, DNNL_ARG_WEIGHTS, 1, &l.filter, z->rows >= REUSED, err);
  return st == TN_OK ? dnn_plan_end(p, ctx, err) : st;
}

static tn_status conv_plan(tn_prepare_ctx *ctx, const conv_state *s, const sizes *z, const dnn_plan *like,
                           tn_error *err)
{
  const int64_t front[2] = { 0 };
  dnn_plan *p;
  tn_status st = conv_create(ctx, s, z, front, like, &p, err);
  return st == TN_OK ? conv_end(ctx, s, z, p, err) : st;
}

/* Describes band i as a separate convolution; *at: the bytes of x and y at which it begins. */
static bool band_of(const sizes *z, dnn_bands b, int64_t i, size_t element, sizes *out, int64_t *at)
{
  dnn_band band;
  if (!dnn_band_of(&z->window, z->rank, z->x, z->y, b, i, &band)) return false;
  *out = *z;
  out->window = band.window;
  memcpy(out->x, band.x, sizeof out->x);
  memcpy(out->y, band.y, sizeof out->y);
  out->rows = 1;
  for (int d = 0; d < z->rank - 1; d++) out->rows *= out->y[d];
  at[0] = band.x_at * (int64_t)element;
  at[1] = band.y_at * (int64_t)element;
  return true;
}

/* All primitives are made before the filter is packed: a packed form cannot be undone. */
static tn_status banded_plan(tn_prepare_ctx *ctx, const conv_state *s, const sizes *z, dnn_bands b, double ns,
                             tn_error *err)
{
  uint32_t n = (uint32_t)(b.images * b.rows);
  size_t element = tn_dtype_size(ctx->inputs[0].dtype);
  sizes band;
  int64_t at[2];
  tn_status st = dnn_parts_begin(ctx, n, ns, err);
  dnn_plan *p, *all = ctx->shape_state;
  for (uint32_t i = 0; st == TN_OK && i < n; i++) {
    if (!band_of(z, b, i, element, &band, at)) return dnn_declined(err, "a band of padding");
    st = conv_create(ctx, s, &band, at, i == 0 ? NULL : all->parts[0], &p, err);
  }
  for (uint32_t i = 0; st == TN_OK && i < n; i++) {
    band_of(z, b, i, element, &band, at);
    st = conv_end(ctx, s, &band, all->parts[i], err);
  }
  if (st != TN_OK) return st;
  dnn_whole_begin(ctx);
  dnn_whole_end(ctx, conv_plan(ctx, s, z, all->parts[0], err), err);
  return TN_OK;
}

#define MOST_LONG \
  128 /* maximum bands made only to limit their time: oneDNN compiles code for each padding, which takes ms */
#define DEEP 30             /* factor of the time of a depthwise one with several results for each channel */
#define MOST_FILTERS (64e6) /* maximum bytes of filters packed in a step, one for each band */
#define REUSED_BAND 512 /* rows of a band from which packing a filter for it pays */

static double cost_of(const sizes *z, bool depthwise)
{
  return depthwise ? z->products * 0.04 : dnn_product_ns(z->products, z->products / (double)z->rows);
}

/* Makes a plan in bands if threads may share them, otherwise one for the whole. */
static tn_status shared_plan(tn_prepare_ctx *ctx, const conv_state *s, const sizes *z, tn_error *err)
{
  double ns = cost_of(z, s->depthwise);
  uint32_t n = dnn_parts_worth(ctx, ns);
  bool constant = tn_prepare_is_constant(ctx, 1), is_long;
  int64_t most = constant ? MOST_LONG : (int64_t)(MOST_FILTERS / (z->products / (double)z->rows * 4 + 1));
  is_long = dnn_parts_long(ctx, n, ns, most) > n;
  n = dnn_parts_long(ctx, n, ns, most);
  dnn_bands b = dnn_bands_cut(z->x[0], z->y[1], z->rows / z->y[0], n, constant || is_long ? 0 : REUSED_BAND);
  n = (uint32_t)(b.images * b.rows);
  if (dnn_too_long(s->depthwise && z->out_group > 1 ? DEEP * ns : ns, n))
    return dnn_declined(err, "a convolution that no time limit would end");
  if (n > 1 && (constant || is_long || z->rows / n >= REUSED_BAND)) {
    tn_status st = banded_plan(ctx, s, z, b, ns, err);
    if (st != TN_UNIMPLEMENTED) return st;
    dnn_plan_undo(ctx, err);
  }
  return conv_plan(ctx, s, z, NULL, err);
}

/* Whether y is the rows of x by a matrix. */
static bool is_product(const sizes *z, const conv_state *s, tn_dtype dtype)
{
  if (s->depthwise || z->groups != 1 || dtype != TN_FLOAT) return false;
  for (int a = 0; a < z->window.axes; a++)
    if (z->window.size[a] != 1 || z->x[a + 1] != z->y[a + 1] || z->window.before[a] != 0) return false;
  return true;
}

#define FEW_ROWS 48 /* up to which it is always computed as a product if the filter is constant */

static tn_status best_plan(tn_prepare_ctx *ctx, const conv_state *s, const sizes *z, tn_error *err)
{
  const int axes = z->window.axes;
  tn_dtype dtype = ctx->inputs[0].dtype;
  if (is_product(z, s, dtype)) {
    int64_t in = z->filter[axes], out = z->filter[axes + 1];
    if (dnn_rows_plain(z->rows, out) || out % 16 != 0 || (z->rows <= FEW_ROWS && tn_prepare_is_constant(ctx, 1)))
      return dnn_rows_plan(ctx, &s->epilogue, z->rows, in, out, err);
  }
  if (axes == 2 && !s->depthwise && z->groups == 1 && dtype == TN_FLOAT) {
    tn_status st = dnn_winograd_plan(ctx, &s->epilogue, &z->window, z->x, z->y, err);
    if (st != TN_UNIMPLEMENTED) return st;
    dnn_plan_undo(ctx, err);
  }
  return shared_plan(ctx, s, z, err);
}

/* Whether it is as fast as a product by constants. */
static bool as_product(const sizes *z, const conv_state *s, const tn_prepare_ctx *ctx)
{
  return dnn_fused_is_faster() && is_product(z, s, ctx->inputs[0].dtype) && tn_prepare_is_constant(ctx, 1);
}

tn_status dnn_conv_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const conv_state *s = ctx->state;
  sizes z;
  if (!measure(ctx, s, &z)) return dnn_declined(err, "shapes that the library's own kernel judges");
  if (!dnn_epilogue_fits(&s->epilogue, ctx, 2, z.y, z.rank)) return dnn_declined(err, "fused tensors of other shapes");
  if (ctx->inputs[0].dtype == TN_FLOAT && !s->depthwise && !dnn_multiplies_faster())
    return dnn_declined(err, "a processor on which the library's own convolutions are as fast");
  if (as_product(&z, s, ctx) ? dnn_product_is_small(z.rows, z.filter[z.rank - 2], z.filter[z.rank - 1])
                             : is_slow(&z, s->depthwise) || is_slow_forward(&z, s->depthwise, ctx->inputs[0].dtype))
    return dnn_declined(err, "a convolution this small");
  tn_status st = best_plan(ctx, s, &z, err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 0, z.y, z.rank, err);
  ctx->cost_ns = cost_of(&z, s->depthwise);
  return st;
}

/* ---- gradients ---- */

static dnnl_status_t gradient_desc(const conv_state *s, const sizes *z, const layouts *l, dnnl_convolution_desc_t *desc)
{
  const dnn_window *w = &z->window;
  dnnl_dims_t dilates;
  for (int a = 0; a < w->axes; a++) dilates[a] = w->dilation[a] - 1;
  if (s->wanted == WANTED_X)
    return dnnl_dilated_convolution_backward_data_desc_init(desc, dnnl_convolution_direct, &l->x, &l->any_filter, &l->y,
                                                            w->stride, dilates, w->before, w->after);
  return dnnl_dilated_convolution_backward_weights_desc_init(desc, dnnl_convolution_direct, &l->x, &l->any_filter, NULL,
                                                             &l->y, w->stride, dilates, w->before, w->after);
}

/* oneDNN needs the description of the convolution of which this is the gradient. */
static tn_status gradient_create(tn_prepare_ctx *ctx, const conv_state *s, const sizes *z, const layouts *l,
                                 dnn_plan **out, tn_error *err)
{
  dnnl_convolution_desc_t forward, desc;
  dnnl_primitive_desc_t hint = NULL;
  dnnl_engine_t engine = dnn_engine(err);
  *out = NULL;
  if (engine == NULL) return TN_UNIMPLEMENTED;
  tn_status st = forward_desc(z, l, dnnl_forward_training, false, &forward, err);
  int before = dnn_one_thread();
  if (st == TN_OK) st = dnn_status(dnnl_primitive_desc_create(&hint, &forward, NULL, engine, NULL), "gradient", err);
  dnn_restore_threads(before);
  if (st == TN_OK) st = dnn_status(gradient_desc(s, z, l, &desc), "gradient", err);
  if (st == TN_OK) st = dnn_plan_create(ctx, &desc, &(dnn_setup){ NULL, NULL, hint }, out, err);
  if (hint != NULL) dnnl_primitive_desc_destroy(hint);
  return st;
}

static tn_status gradient_plan(tn_prepare_ctx *ctx, const conv_state *s, const sizes *z, tn_error *err)
{
  layouts l = describe(z, ctx->inputs[2].dtype, s->depthwise);
  dnn_plan *p;
  tn_status st = gradient_create(ctx, s, z, &l, &p, err);
  if (st != TN_OK) return st;
  dnn_plan_input(p, DNNL_ARG_DIFF_DST, 2, &l.y, NULL);
  if (s->wanted == WANTED_X) {
    st = dnn_plan_weights(p, ctx, DNNL_ARG_WEIGHTS, 1, &l.filter, true, err);
    dnn_plan_output(p, DNNL_ARG_DIFF_SRC, &l.x, NULL);
  } else {
    dnn_plan_input(p, DNNL_ARG_SRC, 0, &l.x, NULL);
    dnn_plan_output(p, DNNL_ARG_DIFF_WEIGHTS, &l.filter,
                    dnnl_primitive_desc_query_md(p->desc, dnnl_query_diff_weights_md, 0));
  }
  return st == TN_OK ? dnn_plan_end(p, ctx, err) : st;
}

#define FEWER_ROWS 256 /* below, the library's transforms take longer than what fewer products save */
#define MANY 32        /* channels of an image with which the library's own gradient is as fast */

/* Whether the library's own kernel is at least as fast without AVX-512: it takes fewer products for windows of 3 by 3,
 * and splits gradients for images among threads. */
static bool is_left(const tn_prepare_ctx *ctx, const conv_state *s, const sizes *z)
{
  const dnn_window *w = &z->window;
  bool fewer = z->in_group >= 16 && z->out_group >= 16 && z->rows >= FEWER_ROWS;
  if (s->depthwise || w->axes != 2 || z->groups != 1 || dnn_multiplies_faster()) return false;
  for (int a = 0; a < 2; a++) {
    if (w->dilation[a] != 1) return false;
    fewer = fewer && w->size[a] == 3 && w->stride[a] == 1;
  }
  return ctx->inputs[2].dtype == TN_FLOAT && (fewer || (s->wanted == WANTED_X && z->in_group >= MANY));
}

tn_status dnn_gradient_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const conv_state *s = ctx->state;
  sizes z;
  if (!measure(ctx, s, &z)) return dnn_declined(err, "shapes that the library's own kernel judges");
  if (is_slow(&z, s->depthwise) || z.rows < REUSED)
    return dnn_declined(err, "a convolution this small");
  if (is_left(ctx, s, &z)) return dnn_declined(err, "a gradient that the library computes as fast");
  if (dnn_too_long(z.products * 0.02, 1)) return dnn_declined(err, "a gradient that no time limit would end");
  tn_status st = gradient_plan(ctx, s, &z, err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 0, s->wanted == WANTED_X ? z.x : z.filter, z.rank, err);
  ctx->cost_ns = z.products * 0.02;
  return st;
}
