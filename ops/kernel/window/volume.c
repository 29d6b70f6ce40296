/* SPDX-License-Identifier: Apache-2.0 */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <ops/kernel/shapes.h>
#include <ops/kernel/window/volume.h>
#include <ops/kernel/elements/widen.h>

#define MAX_DIMS 5

/* ---- attributes ---- */

/* Reads a list of exactly `wanted` numbers. If the op lacks the attribute, *out is unchanged. */
static tn_status read_list(const tn_operation *op, const char *name, size_t wanted, int64_t *out, tn_error *err)
{
  const int64_t *values;
  size_t n;
  if (tn_operation_attr_kind(op, name) == TN_ATTR_NONE) return TN_OK;
  tn_status st = tn_operation_attr_ints(op, name, &values, &n, err);
  if (st != TN_OK) return st;
  const char *type = tn_operation_type(op);
  if (n != wanted)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: attribute '%s' has %zu numbers, wanted %zu", type, name, n,
                        wanted);
  for (size_t i = 0; i < n; i++) {
    if (values[i] < 1 || values[i] > INT32_MAX)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: number %zu of attribute '%s' is %lld, wanted 1 to %d", type, i,
                          name, (long long)values[i], INT32_MAX);
    out[i] = values[i];
  }
  return TN_OK;
}

static tn_status read_paddings(const tn_operation *op, tn__volume_window *w, tn_error *err)
{
  const int64_t *pad = NULL;
  size_t n = 0;
  const char *type = tn_operation_type(op);
  if (tn_operation_attr_kind(op, "explicit_paddings") != TN_ATTR_NONE) {
    tn_status st = tn_operation_attr_ints(op, "explicit_paddings", &pad, &n, err);
    if (st != TN_OK) return st;
  }
  size_t wanted = w->padding == TN__PAD_EXPLICIT ? 2 * (size_t)w->directions + 4 : 0;
  if (n != wanted)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: attribute 'explicit_paddings' has %zu numbers, wanted %zu", type,
                        n, wanted);
  for (size_t i = 0; i < n; i++) {
    bool space = i >= 2 && (int)(i / 2) != tn__volume_depth(w);
    if (pad[i] < 0 || pad[i] > INT32_MAX || (pad[i] != 0 && !space))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: number %zu of 'explicit_paddings' is %lld, wanted %s", type, i,
                          (long long)pad[i], space ? "0 to 2147483647" : "0");
  }
  for (int k = 3 - w->directions; k < 3 && n > 0; k++) {
    int dim = tn__volume_dim(w, k);
    w->axis[k].before = pad[2 * dim];
    w->axis[k].after = pad[2 * dim + 1];
  }
  return TN_OK;
}

tn_status tn__volume_read(const tn_operation *op, int directions, tn__volume_window *w, tn_error *err)
{
  static const char *const formats[] = { "NHWC", "NCHW", "NDHWC", "NCDHW" };
  static const char *const paddings[] = { "SAME", "VALID", "EXPLICIT" };
  int format = 0, padding = 0;
  size_t n = (size_t)directions + 2;
  int64_t size[MAX_DIMS] = { 1, 1, 1, 1, 1 }, stride[MAX_DIMS] = { 1, 1, 1, 1, 1 };
  int64_t dilation[MAX_DIMS] = { 1, 1, 1, 1, 1 };
  *w = (tn__volume_window){ .directions = directions };
  tn_status st = TN_OK;
  if (tn_operation_attr_kind(op, "data_format") != TN_ATTR_NONE)
    st = tn__attr_choice(op, "data_format", formats + (directions == 3 ? 2 : 0), 2, &format, err);
  if (st == TN_OK) st = tn__attr_choice(op, "padding", paddings, 3, &padding, err);
  if (st == TN_OK) st = read_list(op, "ksize", n, size, err);
  if (st == TN_OK) st = read_list(op, "strides", n, stride, err);
  if (st == TN_OK) st = read_list(op, "dilations", n, dilation, err);
  if (st == TN_OK) st = read_list(op, "rates", n, dilation, err);
  if (st != TN_OK) return st;
  w->channels_first = format == 1;
  w->padding = (tn__padding)padding;
  w->axis[0] = (tn__window_axis){ .size = 1, .stride = 1, .dilation = 1 };
  for (int k = 3 - directions; k < 3; k++) {
    int dim = tn__volume_dim(w, k);
    w->axis[k] = (tn__window_axis){ .size = size[dim], .stride = stride[dim], .dilation = dilation[dim] };
  }
  int depth = tn__volume_depth(w);
  w->batch_size = size[0];
  w->batch_stride = stride[0];
  w->batch_dilation = dilation[0];
  w->depth_size = size[depth];
  w->depth_stride = stride[depth];
  w->depth_dilation = dilation[depth];
  return read_paddings(op, w, err);
}

tn_status tn__volume_only_space(const tn_operation *op, const tn__volume_window *w, tn_error *err)
{
  const char *type = tn_operation_type(op);
  if (w->batch_size != 1 || w->depth_size != 1)
    return tn_error_set(err, TN_UNIMPLEMENTED, "%s: windows over batch or channels are not supported", type);
  if (w->batch_stride != 1 || w->depth_stride != 1)
    return tn_error_set(err, TN_UNIMPLEMENTED, "%s: attribute 'strides' is not 1 over batch or channels", type);
  if (w->batch_dilation != 1 || w->depth_dilation != 1)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: dilations are not 1 over batch or channels", type);
  return TN_OK;
}

/* ---- sizes ---- */

tn__volume tn__volume_of(const tn__volume_window *w, const int64_t *dims)
{
  tn__volume v = { .n = dims[0], .size = { 1, 1, 1 }, .c = dims[tn__volume_depth(w)] };
  for (int k = 3 - w->directions; k < 3; k++) v.size[k] = dims[tn__volume_dim(w, k)];
  return v;
}

void tn__volume_dims(const tn__volume_window *w, const tn__volume *v, int64_t *dims)
{
  dims[0] = v->n;
  dims[tn__volume_depth(w)] = v->c;
  for (int k = 3 - w->directions; k < 3; k++) dims[tn__volume_dim(w, k)] = v->size[k];
}

tn_status tn__volume_fit(tn__volume_window *w, const char *op, const tn__volume *in, tn__volume *out, tn_error *err)
{
  *out = *in;
  for (int k = 0; k < 3; k++) {
    tn_status st = tn__window_fit(&w->axis[k], w->padding, op, in->size[k], &out->size[k], err);
    if (st != TN_OK) return st;
  }
  return TN_OK;
}

tn_status tn__volume_infer_pool(tn_infer_ctx *ctx, int directions, tn__volume_window *w, bool known, int n_outputs,
                                tn_error *err)
{
  tn__shape s;
  tn_status st = tn__infer_rank(ctx, 0, directions + 2, &s, err);
  if (st != TN_OK) return st;
  if (!known) {
    for (int32_t i = 1; i < directions + 2; i++) s.dims[i] = -1;
  } else {
    for (int k = 3 - directions; k < 3; k++) {
      int64_t *dim = &s.dims[tn__volume_dim(w, k)];
      *dim = tn__window_fit_unknown(&w->axis[k], w->padding, *dim);
    }
    int64_t *c = &s.dims[tn__volume_depth(w)];
    if (*c >= 0) *c /= w->depth_size;
  }
  for (int i = 0; i < n_outputs && st == TN_OK; i++) st = tn__infer_set(ctx, (size_t)i, &s, err);
  return st;
}

tn_status tn__volume_infer_sizes(tn_infer_ctx *ctx, size_t i, int32_t rank, tn_error *err)
{
  tn__shape s;
  s.rank = tn_infer_input_as_shape(ctx, i, s.dims);
  if (s.rank != rank) {
    s.rank = rank;
    for (int32_t k = 0; k < rank; k++) s.dims[k] = -1;
  }
  return tn__infer_set(ctx, 0, &s, err);
}

/* ---- prepare ---- */

tn_status tn__volume_sizes(const tn_prepare_ctx *ctx, uint32_t i, int32_t rank, int64_t *dims, tn_error *err)
{
  const tn_view *in = &ctx->inputs[i];
  const char *op = tn_operation_type(ctx->op);
  if (in->rank != 1 || in->count != rank)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input %u has %lld elements and rank %d, wanted a vector of %d",
                        op, i, (long long)in->count, (int)in->rank, (int)rank);
  if (in->data == NULL) return tn_error_set(err, TN_INTERNAL, "%s: the value of input %u is not known", op, i);
  for (int32_t k = 0; k < rank; k++) {
    dims[k] = tn__view_int_at(in, k);
    if (dims[k] < 0)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: number %d of input %u is %lld, wanted at least 0", op, (int)k,
                          i, (long long)dims[k]);
  }
  int64_t elements;
  return tn_shape_elements(dims, rank, &elements, err);
}

tn_status tn__want_shape(const tn_prepare_ctx *ctx, uint32_t i, const int64_t *dims, int32_t rank, tn_error *err)
{
  const tn_view wanted = { .dims = dims, .rank = rank };
  return tn__view_same_shape(&ctx->inputs[i], &wanted) ? TN_OK : tn__shape_error(err, ctx, i, dims, rank);
}

size_t tn__take(size_t *scratch, size_t bytes)
{
  size_t at = *scratch;
  *scratch += tn__round_up(bytes, TN_ALIGN);
  return at;
}

/* ---- the form that loops read ---- */

/* Transposes each image. */
typedef struct swap {
  const char *from;
  char *to;
  int64_t rows, columns;
  size_t element;
} swap;

/* Works in squares, so that neither side touches a whole cache line for a single element. */
#define SQUARE 16
#define SWAP(T)                                                                            \
  {                                                                                        \
    const T *restrict from = (const T *)(s->from + at);                                    \
    T *restrict to = (T *)(s->to + at);                                                    \
    for (int64_t i0 = 0; i0 < s->rows; i0 += SQUARE)                                       \
      for (int64_t j0 = 0; j0 < s->columns; j0 += SQUARE)                                  \
        for (int64_t i = i0; i < i0 + SQUARE && i < s->rows; i++)                          \
          for (int64_t j = j0; j < j0 + SQUARE && j < s->columns; j++)                     \
            to[j * s->rows + i] = from[i * s->columns + j];                                \
  }

static void swap_part(void *user, int64_t begin, int64_t end)
{
  const swap *s = user;
  for (int64_t n = begin; n < end; n++) {
    size_t at = (size_t)(n * s->rows * s->columns) * s->element;
    if (s->element == 4) SWAP(uint32_t) else SWAP(uint64_t)
  }
}

static void swap_images(tn_kernel_ctx *ctx, swap s, int64_t n)
{
  tn__run_parts(ctx, n, (double)(s.rows * s.columns), swap_part, &s);
}

void tn__form_plan(tn__form *f, tn_dtype dtype, bool channels_first, const tn__volume *v, size_t *scratch)
{
  *f = (tn__form){ .dtype = dtype, .wide = tn__wide_dtype(dtype) };
  if (v->n > 0 && v->c > 0 && v->size[0] > 0 && v->size[1] > 0 && v->size[2] > 0) {
    f->n = v->n;
    f->pixels = tn__volume_pixels(v);
    f->c = v->c;
  }
  f->convert = f->dtype != f->wide;
  f->swap = channels_first && f->c != 1 && f->pixels != 1;
  size_t bytes = (size_t)(f->n * f->pixels * f->c) * tn_dtype_size(f->wide);
  if (f->convert || f->swap) f->at = tn__take(scratch, bytes);
  if (f->convert && f->swap) f->at_swap = tn__take(scratch, bytes);
}

const void *tn__form_load(const tn__form *f, tn_kernel_ctx *ctx, const void *data, char *scratch)
{
  const void *from = data;
  if (f->convert) {
    void *to = scratch + (f->swap ? f->at_swap : f->at);
    tn__widen_all(ctx, f->dtype, from, f->wide, to, f->n * f->pixels * f->c);
    from = to;
  }
  if (!f->swap) return from;
  swap_images(ctx, (swap){ from, scratch + f->at, f->c, f->pixels, tn_dtype_size(f->wide) }, f->n);
  return scratch + f->at;
}

void *tn__form_room(const tn__form *f, void *data, char *scratch)
{
  return f->convert || f->swap ? scratch + f->at : data;
}

void tn__form_store(const tn__form *f, tn_kernel_ctx *ctx, void *data, char *scratch)
{
  const char *from = scratch + f->at;
  if (f->swap) {
    char *to = f->convert ? scratch + f->at_swap : data;
    swap_images(ctx, (swap){ from, to, f->pixels, f->c, tn_dtype_size(f->wide) }, f->n);
    from = to;
  }
  if (f->convert) tn__narrow_all(ctx, f->dtype, from, data, f->n * f->pixels * f->c);
}

/* ---- computing ---- */

void tn__run_parts(tn_kernel_ctx *ctx, int64_t n, double cost_ns, void (*fn)(void *user, int64_t begin, int64_t end),
                   void *user)
{
  if (cost_ns * (double)n < 16000.0)
    fn(user, 0, n);
  else
    tn_parallel_for(ctx, n, cost_ns < 5000.0 ? (int64_t)(5000.0 / cost_ns) + 1 : 1, cost_ns, fn, user);
}
