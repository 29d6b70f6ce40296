/* SPDX-License-Identifier: Apache-2.0 */
/* Gathers slices by index; see gather.h. */
#include <ops/kernel/move/gather.h>

#include <core/base/text.h>
#include <ops/kernel/elements/elements.h>
#include <ops/kernel/indices.h>
#include <string.h>

/* ---- copies of pieces ---- */

typedef struct pair {
  uint64_t a, b;
} pair;

/* Copies piece number at[i] of `from` to position i of `to`, for i < n. Each piece has `bytes` bytes. */
#define PIECES(name, T)                                                                              \
  static void pieces_##name(const char *from_, const int64_t *at, int64_t n, char *to_)              \
  {                                                                                                  \
    const T *from = (const T *)(const void *)from_;                                                  \
    T *to = (T *)(void *)to_;                                                                        \
    for (int64_t i = 0; i < n; i++) to[i] = from[at[i]];                                             \
  }
PIECES(1, uint8_t)
PIECES(2, uint16_t)
PIECES(4, uint32_t)
PIECES(8, uint64_t)
PIECES(16, pair)

static void copy_pieces(const char *from, const int64_t *at, int64_t n, size_t bytes, char *to, size_t element)
{
  switch (bytes == element ? element : 0) {
  case 1: pieces_1(from, at, n, to); break;
  case 2: pieces_2(from, at, n, to); break;
  case 4: pieces_4(from, at, n, to); break;
  case 8: pieces_8(from, at, n, to); break;
  case 16: pieces_16(from, at, n, to); break;
  default:
    for (int64_t i = 0; i < n; i++, to += bytes) memcpy(to, from + (size_t)at[i] * bytes, bytes);
  }
}

/* ---- along an axis ---- */

tn_status tn__gather_places(const char *op, int64_t axis_wanted, int64_t batch_wanted, int32_t rank, int32_t index_rank,
                            int32_t *axis, int32_t *batch, tn_error *err)
{
  *batch = 0;
  tn_status st = tn__shape_axis(op, axis_wanted, rank, axis, err);
  if (st != TN_OK) return st;
  if (batch_wanted < -(int64_t)index_rank || batch_wanted > index_rank)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: batch_dims is %lld, input 1 has rank %d", op,
                        (long long)batch_wanted, (int)index_rank);
  *batch = (int32_t)(batch_wanted < 0 ? batch_wanted + index_rank : batch_wanted);
  if (*batch <= *axis) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: batch_dims is %d, the axis is %d and must not be below it", op,
                      (int)*batch, (int)*axis);
}

tn_status tn__gather_shape(const char *op, const tn__shape *params, const tn__shape *indices, int32_t axis,
                           int32_t batch, tn__shape *out, tn_error *err)
{
  bool fits = true;
  out->rank = 0;
  for (int32_t i = 0; i < axis; i++) {
    int64_t dim = params->dims[i];
    if (i < batch && !tn__dim_merge(&dim, indices->dims[i]))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: batch dimension %d is %lld in input 0, %lld in input 1", op,
                          (int)i, (long long)dim, (long long)indices->dims[i]);
    fits = fits && tn__shape_append(out, dim);
  }
  for (int32_t i = batch; i < indices->rank; i++) fits = fits && tn__shape_append(out, indices->dims[i]);
  for (int32_t i = axis + 1; i < params->rank; i++) fits = fits && tn__shape_append(out, params->dims[i]);
  if (fits) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the output would have more than %d dimensions", op, TN_MAX_RANK);
}

/* If another dimension is 0, the product may not fit int64_t: it wraps then, and the result is not used. */
static int64_t product(const int64_t *dims, int32_t from, int32_t to)
{
  uint64_t n = 1;
  for (int32_t i = from; i < to; i++) n *= (uint64_t)dims[i];
  return (int64_t)n;
}

void tn__gather_plan_init(tn__gather_plan *plan, const int64_t *dims, int32_t rank, const tn_view *indices,
                          int32_t axis, int32_t batch)
{
  *plan = (tn__gather_plan){ .blocks = product(dims, 0, axis), .share = product(dims, batch, axis),
                             .n = product(indices->dims, batch, indices->rank), .pool = dims[axis],
                             .piece = product(dims, axis + 1, rank) };
}

typedef struct gather_run {
  const tn__gather_plan *plan;
  const tn_view *indices;
  const char *in;
  char *out;
  tn_dtype dtype;
  size_t element;
  tn_error *err;
  tn_status status;
} gather_run;

/* Positions [begin, end), counted over all blocks. The indices have been checked. */
static void gather_part(void *user, int64_t begin, int64_t end)
{
  gather_run *r = user;
  const tn__gather_plan *p = r->plan;
  int64_t at[TN__INDEX_BLOCK];
  size_t bytes = (size_t)p->piece * r->element;
  bool managed = tn__dtype_is_managed(r->dtype);
  for (int64_t k = begin, n; k < end; k += n) {
    int64_t block = k / p->n, place = k % p->n;
    n = p->n - place < end - k ? p->n - place : end - k;
    if (n > TN__INDEX_BLOCK) n = TN__INDEX_BLOCK;
    tn__indices_load(r->indices, block / p->share * p->n + place, n, at);
    const char *from = r->in + (size_t)(block * p->pool) * bytes;
    char *to = r->out + (size_t)k * bytes;
    if (!managed) {
      copy_pieces(from, at, n, bytes, to, r->element);
      continue;
    }
    for (int64_t i = 0; i < n && r->status == TN_OK; i++)
      r->status = tn__copy_elements(r->dtype, to + (size_t)i * bytes, from + (size_t)at[i] * bytes, p->piece, r->err);
  }
}

tn_status tn__gather_run(tn_kernel_ctx *ctx, const tn__gather_plan *p, const void *params, const tn_view *indices,
                         const tn_view *out)
{
  if (out->count == 0) return TN_OK; /* indices are not checked then, as in TensorFlow */
  tn_status st = tn__indices_check(ctx->err, indices, p->pool);
  if (st != TN_OK) return st;
  gather_run r = { p, indices, params, out->data, out->dtype, tn_dtype_size(out->dtype), ctx->err, TN_OK };
  int64_t n = p->blocks * p->n;
  if (out->count <= TN__SERIAL_ELEMENTS || tn__dtype_is_managed(out->dtype))
    gather_part(&r, 0, n);
  else
    tn_parallel_for(ctx, n, TN__SERIAL_ELEMENTS / (p->piece + 1) + 1, 1 + 0.1 * (double)p->piece, gather_part, &r);
  return r.status;
}

/* ---- at indices of several dimensions ---- */

tn_status tn__gather_nd_shape(const char *op, const tn__shape *params, const tn__shape *indices, tn__shape *out,
                              tn_error *err)
{
  tn__shape_unknown(out);
  if (indices->rank < 0 || params->rank < 0) return TN_OK;
  int64_t depth = indices->dims[indices->rank - 1];
  if (depth < 0) return TN_OK;
  if (depth > params->rank)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 1 has indices of %lld numbers, input 0 has rank %d", op,
                        (long long)depth, (int)params->rank);
  bool fits = true;
  out->rank = 0;
  for (int32_t i = 0; i < indices->rank - 1; i++) fits = fits && tn__shape_append(out, indices->dims[i]);
  for (int32_t i = (int32_t)depth; i < params->rank; i++) fits = fits && tn__shape_append(out, params->dims[i]);
  if (fits) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the output would have more than %d dimensions", op, TN_MAX_RANK);
}

typedef struct nd_run {
  const tn__index_space *space;
  const char *in;
  char *out;
  size_t element, bytes; /* bytes: of a piece */
} nd_run;

/* Pieces of plain elements. The indices have been checked. */
static void nd_part(void *user, int64_t begin, int64_t end)
{
  const nd_run *r = user;
  int64_t at[TN__INDEX_BLOCK];
  for (int64_t k = begin, n; k < end; k += n) {
    n = end - k < TN__INDEX_BLOCK ? end - k : TN__INDEX_BLOCK;
    tn__space_places(r->space, k, n, at);
    copy_pieces(r->in, at, n, r->bytes, r->out + (size_t)k * r->bytes, r->element);
  }
}

/* Piece by piece: for elements that own memory, or when indices out of range give zeros. */
static tn_status nd_slowly(tn_error *err, tn_dtype dtype, const nd_run *r, int64_t n)
{
  int64_t piece = (int64_t)(r->bytes / r->element);
  for (int64_t k = 0; k < n; k++) {
    int64_t at;
    tn__space_places(r->space, k, 1, &at);
    char *to = r->out + (size_t)k * r->bytes;
    if (at < 0) {
      if (!tn__dtype_is_managed(dtype)) memset(to, 0, r->bytes);
      continue;
    }
    tn_status st = tn__copy_elements(dtype, to, r->in + (size_t)at * r->bytes, piece, err);
    if (st != TN_OK) return st;
  }
  return TN_OK;
}

tn_status tn__gather_nd_run(tn_kernel_ctx *ctx, const void *params, const int64_t *dims, const tn_view *indices,
                            bool ignore_bad, const tn_view *out)
{
  tn__index_space space;
  tn__space_init(&space, indices, dims);
  if (out->count == 0 && space.n == 0) return TN_OK;
  bool outside = tn__space_find_bad(&space) >= 0;
  if (outside && !ignore_bad) return tn__space_error(&space, ctx->err);
  if (out->count == 0) return TN_OK;
  nd_run r = { &space, params, out->data, tn_dtype_size(out->dtype), 0 };
  r.bytes = r.element * (size_t)(out->count / space.n);
  if (outside || tn__dtype_is_managed(out->dtype)) return nd_slowly(ctx->err, out->dtype, &r, space.n);
  if (out->count <= TN__SERIAL_ELEMENTS)
    nd_part(&r, 0, space.n);
  else
    tn_parallel_for(ctx, space.n, TN__SERIAL_ELEMENTS / (out->count / space.n + 1) + 1, 3, nd_part, &r);
  return TN_OK;
}
