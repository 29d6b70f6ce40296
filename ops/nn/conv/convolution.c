/* SPDX-License-Identifier: Apache-2.0 */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <ops/nn/conv/convolution.h>
#include <ops/kernel/shapes.h>

#define MAX_DIMS 5

/* ---- shapes ---- */

tn_status tn__conv_read(const tn_operation *op, const tn__conv_kind *kind, tn__volume_window *w, tn_error *err)
{
  tn_status st = tn__volume_read(op, kind->directions, w, err);
  if (st == TN_OK) st = tn__volume_only_space(op, w, err);
  if (st == TN_OK && kind->depthwise && w->axis[1].stride != w->axis[2].stride)
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: strides %lld and %lld of rows and columns differ",
                      tn_operation_type(op), (long long)w->axis[1].stride, (long long)w->axis[2].stride);
  return st;
}

/* The shape that input i gives: by its value, or for `by_example` kinds by its own shape. */
static tn_status said_shape(const tn_prepare_ctx *ctx, const tn__conv_kind *kind, uint32_t i, int64_t *dims,
                            tn_error *err)
{
  int32_t rank = kind->directions + 2;
  if (!kind->by_example) return tn__volume_sizes(ctx, i, rank, dims, err);
  tn_status st = tn__want_rank(ctx, i, rank, err);
  for (int32_t k = 0; k < rank && st == TN_OK; k++) dims[k] = ctx->inputs[i].dims[k];
  return st;
}

static tn_status shape_of(const tn_prepare_ctx *ctx, uint32_t i, int32_t rank, int64_t *dims, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, i, rank, err);
  for (int32_t k = 0; k < rank && st == TN_OK; k++) dims[k] = ctx->inputs[i].dims[k];
  return st;
}

/* If the sizes input has two numbers, they are the numbers of rows and columns only. */
static tn_status short_sizes(const tn_prepare_ctx *ctx, const tn__volume_window *w, const int64_t *filter,
                             const int64_t *y, int64_t *dims, tn_error *err)
{
  int64_t two[2];
  tn_status st = tn__volume_sizes(ctx, 0, 2, two, err);
  if (st != TN_OK) return st;
  dims[0] = y[0];
  dims[tn__volume_dim(w, 1)] = two[0];
  dims[tn__volume_dim(w, 2)] = two[1];
  dims[tn__volume_depth(w)] = filter[2];
  return TN_OK;
}

static tn_status read_shapes(const tn_prepare_ctx *ctx, const tn__conv_kind *kind, const tn__volume_window *w,
                             int64_t *x, int64_t *filter, int64_t *y, tn_error *err)
{
  int32_t rank = kind->directions + 2;
  tn_status st = TN_OK;
  if (kind->wanted != TN__CONV_Y) st = shape_of(ctx, 2, rank, y, err);
  if (st == TN_OK)
    st = kind->wanted == TN__CONV_FILTER ? said_shape(ctx, kind, 1, filter, err) : shape_of(ctx, 1, rank, filter, err);
  if (st != TN_OK) return st;
  if (kind->wanted != TN__CONV_X) return shape_of(ctx, 0, rank, x, err);
  if (rank == 4 && !kind->depthwise && ctx->inputs[0].rank == 1 && ctx->inputs[0].count == 2)
    return short_sizes(ctx, w, filter, y, x, err);
  return said_shape(ctx, kind, 0, x, err);
}

static tn_status misfit(const tn_prepare_ctx *ctx, const tn__conv_kind *kind, const int64_t *x, const int64_t *filter,
                        const char *what, tn_error *err)
{
  char a[128], b[128];
  int32_t rank = kind->directions + 2;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: images of shape %s, filter of shape %s: %s",
                      tn_operation_type(ctx->op), tn__format_shape(a, sizeof a, x, rank),
                      tn__format_shape(b, sizeof b, filter, rank), what);
}

static tn_status check_channels(const tn_prepare_ctx *ctx, const tn__conv_kind *kind, const tn__conv_sizes *z,
                                const int64_t *x, const int64_t *filter, tn_error *err)
{
  if (z->fc == 0 || z->fo == 0 || z->taps == 0) return misfit(ctx, kind, x, filter, "the filter has no elements", err);
  if ((kind->depthwise || kind->directions == 3) && z->x.c != z->fc)
    return misfit(ctx, kind, x, filter, "the numbers of channels differ", err);
  if (z->x.c == 0 || z->x.c % z->fc != 0)
    return misfit(ctx, kind, x, filter, "the channels are not a multiple of the filter's", err);
  if (!kind->depthwise && z->fo % (z->x.c / z->fc) != 0)
    return misfit(ctx, kind, x, filter, "the output's channels are not a multiple of the number of groups", err);
  return TN_OK;
}

tn_status tn__conv_prepare(tn_prepare_ctx *ctx, const tn__conv_kind *kind, const tn__volume_window *w,
                           tn__conv_sizes *z, tn_error *err)
{
  int64_t x[MAX_DIMS], filter[MAX_DIMS], given[MAX_DIMS], y[MAX_DIMS], elements = 0;
  int32_t rank = kind->directions + 2;
  *z = (tn__conv_sizes){ .window = *w, .taps = 1, .groups = 1 };
  tn_status st = read_shapes(ctx, kind, w, x, filter, given, err);
  if (st != TN_OK) return st;
  z->x = tn__volume_of(w, x);
  z->fc = filter[rank - 2];
  z->fo = filter[rank - 1];
  st = tn_shape_elements(filter, rank, &elements, err);
  for (int k = 3 - kind->directions; k < 3; k++) {
    z->window.axis[k].size = filter[k - (3 - kind->directions)];
    z->taps = elements == 0 ? 0 : z->taps * z->window.axis[k].size;
  }
  if (st == TN_OK) st = check_channels(ctx, kind, z, x, filter, err);
  if (st == TN_OK) st = tn__volume_fit(&z->window, tn_operation_type(ctx->op), &z->x, &z->y, err);
  if (st != TN_OK) return st;
  if (!kind->depthwise) z->groups = z->x.c / z->fc;
  z->y.c = kind->depthwise ? z->fc * z->fo : z->fo;
  for (int k = 0; k < 3; k++)
    if (kind->wanted != TN__CONV_Y && z->y.size[k] == 0 && z->x.size[k] != 0)
      return misfit(ctx, kind, x, filter, "the filter is larger than the padded images", err);
  tn__volume_dims(w, &z->y, y);
  st = tn_shape_elements(x, rank, &z->x_pixels, err);
  if (st == TN_OK) st = tn_shape_elements(y, rank, &z->y_pixels, err);
  if (st != TN_OK) return st;
  z->x_pixels /= z->x.c;
  z->y_pixels /= z->y.c;
  if (kind->wanted != TN__CONV_Y) st = tn__want_shape(ctx, 2, y, rank, err);
  if (st != TN_OK) return st;
  const int64_t *wanted = kind->wanted == TN__CONV_X ? x : filter;
  return tn_prepare_output(ctx, 0, kind->wanted == TN__CONV_Y ? y : wanted, rank, err);
}

/* ---- shape functions ---- */

static tn_status infer_y(tn_infer_ctx *ctx, const tn__conv_kind *kind, tn_error *err)
{
  tn__shape x, filter, out;
  tn__volume_window w;
  int32_t rank = kind->directions + 2;
  tn_status st = tn__infer_rank(ctx, 0, rank, &x, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 1, rank, &filter, err);
  if (st != TN_OK) return st;
  if (tn__volume_read(tn_infer_operation(ctx), kind->directions, &w, NULL) != TN_OK) { /* the kernel reports it */
    tn__shape_unknown(&out);
    return tn__infer_set(ctx, 0, &out, err);
  }
  int64_t c = x.dims[tn__volume_depth(&w)], fc = filter.dims[rank - 2], fo = filter.dims[rank - 1];
  if (c >= 0 && fc > 0 && (kind->depthwise || kind->directions == 3 ? c != fc : c % fc != 0))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %lld channels do not fit the filter's %lld", tn__infer_op(ctx),
                        (long long)c, (long long)fc);
  out.rank = rank;
  out.dims[0] = x.dims[0];
  for (int k = 3 - kind->directions; k < 3; k++) {
    int dim = tn__volume_dim(&w, k);
    w.axis[k].size = filter.dims[k - (3 - kind->directions)];
    out.dims[dim] = tn__window_fit_unknown(&w.axis[k], w.padding, x.dims[dim]);
  }
  if (fc < 0) fc = c;
  if (kind->depthwise) fo = fc < 0 || fo < 0 || __builtin_mul_overflow(fc, fo, &fo) ? -1 : fo;
  out.dims[tn__volume_depth(&w)] = fo;
  return tn__infer_set(ctx, 0, &out, err);
}

tn_status tn__conv_infer(tn_infer_ctx *ctx, const tn__conv_kind *kind, tn_error *err)
{
  tn__shape s;
  size_t i = kind->wanted == TN__CONV_X ? 0 : 1;
  if (kind->wanted == TN__CONV_Y) return infer_y(ctx, kind, err);
  if (!kind->by_example) return tn__volume_infer_sizes(ctx, i, kind->directions + 2, err);
  tn_status st = tn__infer_rank(ctx, i, kind->directions + 2, &s, err);
  return st != TN_OK ? st : tn__infer_set(ctx, 0, &s, err);
}

/* ---- rows of a matrix ---- */

static tn__taps *taps_new(const tn__conv_sizes *z, const int64_t *places, const int64_t *from)
{
  size_t items = 0, bytes;
  for (int k = 0; k < 3; k++) {
    size_t n;
    if (!tn__size_mul((size_t)places[k], (size_t)z->window.axis[k].size, &n) || !tn__size_add(items, n, &items))
      return NULL;
  }
  if (!tn__size_mul(items, sizeof(int64_t), &bytes) || !tn__size_add(bytes, sizeof(tn__taps), &bytes)) return NULL;
  tn__taps *t = tn__alloc(bytes);
  if (t == NULL) return NULL;
  *t = (tn__taps){ .bytes = bytes };
  int64_t *room = (int64_t *)(t + 1);
  for (int k = 0; k < 3; k++) {
    t->places[k] = places[k];
    t->size[k] = z->window.axis[k].size;
    t->from[k] = from[k];
    t->at[k] = room;
    room += places[k] * t->size[k];
  }
  return t;
}

tn__taps *tn__taps_of_x(const tn__conv_sizes *z)
{
  tn__taps *t = taps_new(z, z->y.size, z->x.size);
  for (int k = 0; k < 3 && t != NULL; k++) {
    const tn__window_axis *a = &z->window.axis[k];
    for (int64_t place = 0; place < t->places[k]; place++)
      for (int64_t tap = 0; tap < a->size; tap++) {
        int64_t at = place * a->stride - a->before + tap * a->dilation;
        t->at[k][place * a->size + tap] = at >= 0 && at < t->from[k] ? at : -1;
      }
  }
  return t;
}

tn__taps *tn__taps_of_y(const tn__conv_sizes *z)
{
  tn__taps *t = taps_new(z, z->x.size, z->y.size);
  for (int k = 0; k < 3 && t != NULL; k++) {
    const tn__window_axis *a = &z->window.axis[k];
    for (int64_t place = 0; place < t->places[k]; place++)
      for (int64_t tap = 0; tap < a->size; tap++) {
        int64_t way = place + a->before - tap * a->dilation, at = way / a->stride;
        bool there = way >= 0 && way % a->stride == 0 && at < t->from[k];
        t->at[k][place * a->size + tap] = there ? at : -1;
      }
  }
  return t;
}

void tn__taps_destroy(tn__taps *t)
{
  if (t != NULL) tn__free(t, t->bytes);
}

static const _Alignas(64) char zeros[TN__GEMM_KC * 8];

/* Minimum number of contiguous terms for which reading in place pays. */
#define RUN 16

/* Position of a row: image, then index along each axis. */
typedef struct place {
  int64_t image, p[3];
} place;

static place place_of(const tn__taps *t, int64_t row)
{
  place at;
  at.p[2] = row % t->places[2];
  row /= t->places[2];
  at.p[1] = row % t->places[1];
  row /= t->places[1];
  at.p[0] = row % t->places[0];
  at.image = row / t->places[0];
  return at;
}

/* Offset of the source pixel, at its first channel, that tap [k0, k1, k2] reads at a position; -1 if there is none. */
static int64_t source_of(const tn__taps *t, const place *at, int64_t k0, int64_t k1, int64_t k2)
{
  int64_t a = t->at[0][at->p[0] * t->size[0] + k0], b = t->at[1][at->p[1] * t->size[1] + k1];
  int64_t c = t->at[2][at->p[2] * t->size[2] + k2];
  if ((a | b | c) < 0) return -1;
  return (((at->image * t->from[0] + a) * t->from[1] + b) * t->from[2] + c) * t->pitch;
}

#define FILL(name, T)                                                                                              \
  static void name(const tn__taps *t, const T *in, const place *at, int64_t rows, int64_t term, int64_t terms, T *to) \
  {                                                                                                                \
    int64_t c = term % t->c, tap = term / t->c, k2 = tap % t->size[2], k1 = tap / t->size[2] % t->size[1];         \
    int64_t k0 = tap / t->size[2] / t->size[1];                                                                    \
    for (T *end = to + terms * rows; to < end; c = 0) {                                                            \
      int64_t from = source_of(t, at, k0, k1, k2);                                                                 \
      for (; c < t->c && to < end; c++, to += rows) *to = from < 0 ? 0 : in[from + c];                             \
      if (++k2 < t->size[2]) continue;                                                                             \
      k2 = 0;                                                                                                      \
      if (++k1 < t->size[1]) continue;                                                                             \
      k1 = 0;                                                                                                      \
      k0++;                                                                                                        \
    }                                                                                                              \
  }
FILL(fill_32, uint32_t)
FILL(fill_64, uint64_t)

int64_t tn__taps_by_place(const void *user, int64_t row, int rows, int64_t term, int64_t terms, void *room,
                          const void **out, int64_t *step)
{
  const tn__tap_rows *r = user;
  const tn__taps *t = r->taps;
  bool in_place = t->c >= RUN;
  int64_t c = term % t->c, tap = term / t->c, run = t->c - c;
  for (int i = 0; i < rows; i++) {
    place at = place_of(t, row + i);
    if (in_place) {
      int64_t from = source_of(t, &at, tap / t->size[2] / t->size[1], tap / t->size[2] % t->size[1], tap % t->size[2]);
      out[i] = from < 0 ? zeros : r->in + (size_t)(from + c) * t->element;
      continue;
    }
    if (t->element == 4)
      fill_32(t, (const uint32_t *)r->in, &at, rows, term, terms, (uint32_t *)room + i);
    else
      fill_64(t, (const uint64_t *)r->in, &at, rows, term, terms, (uint64_t *)room + i);
    out[i] = (char *)room + (size_t)i * t->element;
  }
  *step = in_place ? 1 : rows;
  return in_place && run < terms ? run : terms;
}

#define ACROSS(name, T)                                                                                         \
  static void name(const tn__taps *t, const T *in, int64_t row, int64_t rows, int64_t term, int64_t terms, T *to) \
  {                                                                                                             \
    int64_t c = row % t->c, tap = row / t->c, k2 = tap % t->size[2], k1 = tap / t->size[2] % t->size[1];        \
    int64_t k0 = tap / t->size[2] / t->size[1];                                                                 \
    const int64_t *columns = t->at[2] + k2;                                                                     \
    place at = place_of(t, term);                                                                               \
    for (T *end = to + terms * rows; to < end; at.p[2] = 0) {                                                   \
      int64_t a = t->at[0][at.p[0] * t->size[0] + k0], b = t->at[1][at.p[1] * t->size[1] + k1];                 \
      int64_t line = ((at.image * t->from[0] + a) * t->from[1] + b) * t->from[2];                               \
      for (; at.p[2] < t->places[2] && to < end; at.p[2]++, to += rows) {                                       \
        int64_t column = columns[at.p[2] * t->size[2]];                                                         \
        *to = (a | b | column) < 0 ? 0 : in[(line + column) * t->pitch + c];                                    \
      }                                                                                                         \
      if (++at.p[1] < t->places[1]) continue;                                                                   \
      at.p[1] = 0;                                                                                              \
      if (++at.p[0] < t->places[0]) continue;                                                                   \
      at.p[0] = 0;                                                                                              \
      at.image++;                                                                                               \
    }                                                                                                           \
  }
ACROSS(across_32, uint32_t)
ACROSS(across_64, uint64_t)

int64_t tn__taps_by_tap(const void *user, int64_t row, int rows, int64_t term, int64_t terms, void *room,
                        const void **out, int64_t *step)
{
  const tn__tap_rows *r = user;
  const tn__taps *t = r->taps;
  for (int i = 0; i < rows; i++) {
    if (t->element == 4)
      across_32(t, (const uint32_t *)r->in, row + i, rows, term, terms, (uint32_t *)room + i);
    else
      across_64(t, (const uint64_t *)r->in, row + i, rows, term, terms, (uint64_t *)room + i);
    out[i] = (char *)room + (size_t)i * t->element;
  }
  *step = rows;
  return terms;
}
