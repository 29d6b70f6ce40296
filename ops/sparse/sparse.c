/* SPDX-License-Identifier: Apache-2.0 */
#include <core/base/text.h>
#include <ops/kernel/elements/elements.h>
#include <ops/sparse/sparse.h>
#include <string.h>

/* ---- inputs ---- */

tn_status tn__want_sparse(const tn_prepare_ctx *ctx, uint32_t indices, uint32_t values, uint32_t shape, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, indices, 2, err);
  if (st == TN_OK) st = tn__want_rank(ctx, values, 1, err);
  if (st == TN_OK) st = tn__want_rank(ctx, shape, 1, err);
  if (st != TN_OK) return st;
  const int64_t wanted[2] = { ctx->inputs[values].count, ctx->inputs[shape].count };
  const int64_t *found = ctx->inputs[indices].dims;
  if (found[0] != wanted[0] || found[1] != wanted[1]) return tn__shape_error(err, ctx, indices, wanted, 2);
  if (wanted[1] <= TN_MAX_RANK) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: a sparse tensor has %lld dimensions, at most %d are possible",
                      tn_operation_type(ctx->op), (long long)wanted[1], TN_MAX_RANK);
}

tn_status tn__sparse_shape(const tn_kernel_ctx *ctx, uint32_t i, tn__shape *out)
{
  const tn_view *v = ctx->inputs[i];
  int64_t elements;
  out->rank = 0;
  if (v->count > TN_MAX_RANK)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "input %u has %lld sizes, at most %d are possible", i,
                        (long long)v->count, TN_MAX_RANK);
  tn__shape_set(out, v->data, (int32_t)v->count);
  return tn_shape_elements(out->dims, out->rank, &elements, ctx->err);
}

tn_status tn__sparse_check_bounds(const tn_kernel_ctx *ctx, uint32_t i, const int64_t *dims, tn__poll *poll)
{
  const tn_view *v = ctx->inputs[i];
  const int64_t *at = v->data;
  int64_t n = v->dims[0], rank = v->dims[1];
  for (int64_t k = 0; k < n; k++, at += rank) {
    if (tn__poll_over(poll, 1 + rank)) return TN_CANCELLED;
    for (int64_t d = 0; d < rank; d++)
      if (at[d] < 0 || at[d] >= dims[d])
        return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                            "index %lld of input %u is %lld in dimension %lld, wanted one in [0, %lld)", (long long)k,
                            i, (long long)at[d], (long long)d, (long long)dims[d]);
  }
  return TN_OK;
}

tn_status tn__sparse_same_shapes(const tn_kernel_ctx *ctx, uint32_t i, uint32_t j)
{
  const tn_view *a = ctx->inputs[i], *b = ctx->inputs[j];
  const int64_t *x = a->data, *y = b->data;
  if (a->count == b->count && (a->count == 0 || memcmp(x, y, (size_t)a->count * sizeof *x) == 0)) return TN_OK;
  char one[160], other[160];
  return tn_error_set(
      ctx->err, TN_INVALID_ARGUMENT, "inputs %u and %u are the shapes %s and %s, wanted equal ones", i, j,
      tn__format_shape(one, sizeof one, x, (int32_t)(a->count > TN_MAX_RANK ? TN_MAX_RANK : a->count)),
      tn__format_shape(other, sizeof other, y, (int32_t)(b->count > TN_MAX_RANK ? TN_MAX_RANK : b->count)));
}

/* ---- sorting ---- */

tn__int_rows tn__sparse_rows(const tn_view *indices)
{
  int32_t rank = (int32_t)indices->dims[1];
  return (tn__int_rows){ indices->data, indices->dims[0], rank, rank, NULL };
}

tn_status tn__sparse_sort_scratch(tn_prepare_ctx *ctx, uint32_t i, tn_error *err)
{
  if (tn__int_rows_room(ctx->inputs[i].dims[0], &ctx->scratch_bytes)) return TN_OK;
  return tn__no_memory(err, "room to sort indices", SIZE_MAX);
}

tn_status tn__sparse_sort(tn_kernel_ctx *ctx, const tn__int_rows *rows, const int64_t **sorted)
{
  tn__poll poll = tn__poll_of(ctx);
  *sorted = NULL;
  if (tn__int_rows_are_sorted(rows)) return TN_OK;
  *sorted = tn__int_rows_sort(rows, ctx->scratch, &poll);
  return *sorted == NULL ? TN_CANCELLED : TN_OK;
}

/* ---- outputs ---- */

tn_status tn__give_ints(tn_kernel_ctx *ctx, uint32_t i, const int64_t *items, int64_t n)
{
  tn_status st = tn_kernel_allocate(ctx, i, &n, 1);
  if (st == TN_OK && n > 0) memcpy(ctx->outputs[i]->data, items, (size_t)n * sizeof *items);
  return st;
}

tn_status tn__give_entries(tn_kernel_ctx *ctx, uint32_t i, int64_t n, int64_t rank)
{
  const int64_t dims[2] = { n, rank };
  tn_status st = tn_kernel_allocate(ctx, i, dims, 2);
  return st == TN_OK ? tn_kernel_allocate(ctx, i + 1, dims, 1) : st;
}

tn_status tn__copy_value(const tn_view *to, int64_t k, const tn_view *from, int64_t i, tn_error *err)
{
  switch (tn__dtype_is_managed(to->dtype) ? 0 : tn_dtype_size(to->dtype)) {
  case 1: ((uint8_t *)to->data)[k] = ((const uint8_t *)from->data)[i]; return TN_OK;
  case 2: ((uint16_t *)to->data)[k] = ((const uint16_t *)from->data)[i]; return TN_OK;
  case 4: ((uint32_t *)to->data)[k] = ((const uint32_t *)from->data)[i]; return TN_OK;
  case 8: ((uint64_t *)to->data)[k] = ((const uint64_t *)from->data)[i]; return TN_OK;
  default: {
    size_t size = tn_dtype_size(to->dtype);
    return tn__copy_elements(to->dtype, (char *)to->data + (size_t)k * size,
                             (const char *)from->data + (size_t)i * size, 1, err);
  }
  }
}

#define GRAIN_BYTES 65536 /* smaller parts are not worth another thread */

typedef struct fill_run {
  char *out;
  const void *value;
  size_t size; /* of an element */
} fill_run;

static void fill_part(void *user, int64_t begin, int64_t end)
{
  const fill_run *r = user;
  tn__fill_bytes(r->size, r->out + (size_t)begin * r->size, r->value, end - begin);
}

tn_status tn__fill_all(tn_kernel_ctx *ctx, const tn_view *out, const void *value)
{
  if (tn__dtype_is_managed(out->dtype)) return tn__fill_elements(out->dtype, out->data, value, out->count, ctx->err);
  fill_run r = { out->data, value, tn_dtype_size(out->dtype) };
  int64_t grain = (int64_t)(GRAIN_BYTES / r.size);
  if (out->count <= 2 * grain) fill_part(&r, 0, out->count);
  else tn_parallel_for(ctx, out->count, grain, 0.05 * (double)r.size, fill_part, &r);
  return TN_OK;
}

/* ---- shape functions ---- */

tn_status tn__infer_sparse(tn_infer_ctx *ctx, size_t indices, size_t values, size_t shape, int64_t *n, int64_t *rank,
                           tn_error *err)
{
  tn__shape at, v, s;
  *n = *rank = -1;
  tn_status st = tn__infer_rank(ctx, indices, 2, &at, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, values, 1, &v, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, shape, 1, &s, err);
  if (st != TN_OK) return st;
  if (!tn__dim_merge(&at.dims[0], v.dims[0]) || !tn__dim_merge(&at.dims[1], s.dims[0]))
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "%s: a sparse tensor has indices of shape [%lld,%lld], %lld values and %lld sizes",
                        tn__infer_op(ctx), (long long)at.dims[0], (long long)at.dims[1], (long long)v.dims[0],
                        (long long)s.dims[0]);
  *n = at.dims[0];
  *rank = at.dims[1];
  return TN_OK;
}

tn_status tn__infer_entries(tn_infer_ctx *ctx, size_t i, int64_t n, int64_t rank, tn_error *err)
{
  const int64_t dims[2] = { n, rank };
  tn_status st = tn_infer_output(ctx, i, dims, 2, err);
  return st == TN_OK ? tn_infer_output(ctx, i + 1, dims, 1, err) : st;
}

tn_status tn__infer_sparse_output(tn_infer_ctx *ctx, size_t i, int64_t n, int64_t rank, tn_error *err)
{
  tn_status st = tn__infer_entries(ctx, i, n, rank, err);
  return st == TN_OK ? tn_infer_output(ctx, i + 2, &rank, 1, err) : st;
}
