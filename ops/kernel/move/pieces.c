/* SPDX-License-Identifier: Apache-2.0 */
/* Splits and joins tensors along their first dimension. */
#include <core/base/text.h>
#include <ops/kernel/elements/complex.h>
#include <ops/kernel/elements/elements.h>
#include <ops/kernel/elements/half.h>
#include <ops/kernel/move/pieces.h>
#include <string.h>

tn_status tn__rows_of(tn_tensor *whole, int64_t begin, int64_t n, bool keep, tn_tensor **out, tn_error *err)
{
  int64_t dims[TN_MAX_RANK], row = 1;
  int32_t rank = 0;
  if (keep) dims[rank++] = n;
  for (int32_t d = 1; d < whole->rank; d++) {
    dims[rank++] = whole->dims[d];
    row *= whole->dims[d];
  }
  size_t offset = whole->count == 0 ? 0 : (size_t)(begin * row) * tn_dtype_size(whole->dtype);
  return tn_tensor_from_buffer(whole->dtype, dims, rank, whole->buffer, whole->offset + offset, out, err);
}

tn_status tn__zeros(tn_dtype dtype, const int64_t *dims, int32_t rank, tn_tensor **out, tn_error *err)
{
  tn_status st = tn_tensor_create(dtype, dims, rank, out, err);
  if (st == TN_OK && !tn__dtype_is_managed(dtype) && (*out)->bytes > 0) memset((*out)->data, 0, (*out)->bytes);
  return st;
}

void tn__drop_tensors(tn_tensor **tensors, int64_t n)
{
  for (int64_t i = 0; i < n; i++) tn_tensor_unref(tensors[i]);
}

/* ---- joining ---- */

#define PARALLEL_BYTES (1 << 20)

typedef struct joining {
  tn_tensor *const *pieces;
  const int64_t *rows;
  int64_t row;
  size_t element;
  char *to;
} joining;

static int64_t piece_elements(const joining *j, int64_t k) { return j->rows == NULL ? j->row : j->rows[k] * j->row; }

static char *copy_plain(const joining *j, int64_t k, char *to)
{
  size_t bytes = (size_t)piece_elements(j, k) * j->element;
  if (bytes == 0) return to;
  if (j->pieces[k] != NULL) memcpy(to, j->pieces[k]->data, bytes);
  else memset(to, 0, bytes);
  return to + bytes;
}

/* All pieces have the same size, so the offset of each is known. */
static void join_part(void *user, int64_t begin, int64_t end)
{
  const joining *j = user;
  char *to = j->to + (size_t)(begin * j->row) * j->element;
  for (int64_t k = begin; k < end; k++) to = copy_plain(j, k, to);
}

static tn_status join_managed(const joining *j, tn_dtype dtype, int64_t n, tn_error *err)
{
  static const tn_string nothing; /* also serves as a null handle */
  tn_status st = TN_OK;
  char *to = j->to;
  for (int64_t k = 0; k < n && st == TN_OK; k++) {
    int64_t count = piece_elements(j, k);
    if (j->pieces[k] != NULL) st = tn__copy_elements(dtype, to, j->pieces[k]->data, count, err);
    else st = tn__fill_elements(dtype, to, &nothing, count, err);
    to += (size_t)count * j->element;
  }
  return st;
}

tn_status tn__put_together(tn_kernel_ctx *ctx, uint32_t i, tn_tensor *const *pieces, int64_t n, const int64_t *rows,
                           int64_t row)
{
  const tn_view *out = ctx->outputs[i];
  joining j = { pieces, rows, row, tn_dtype_size(out->dtype), out->data };
  if (out->count == 0) return TN_OK;
  if (tn__dtype_is_managed(out->dtype)) return join_managed(&j, out->dtype, n, ctx->err);
  if (rows == NULL && (size_t)out->count * j.element > PARALLEL_BYTES) {
    double cost = 0.05 * (double)row * (double)j.element;
    tn_parallel_for(ctx, n, 1 + (int64_t)(PARALLEL_BYTES / 4 / ((size_t)row * j.element)), cost, join_part, &j);
    return TN_OK;
  }
  char *to = j.to;
  for (int64_t k = 0; k < n; k++) to = copy_plain(&j, k, to);
  return TN_OK;
}

/* ---- adding ---- */

#define ADD(T, LOAD, PUT)                                                                        \
  do {                                                                                           \
    const T *x = a, *y = b;                                                                      \
    T *z = to;                                                                                   \
    for (int64_t k = 0; k < n; k++) z[k] = PUT(LOAD(x[k]) + LOAD(y[k]));                         \
  } while (0)
#define SAME(v) (v)

/* Complex numbers are added as twice as many reals. */
bool tn__add_elements(tn_dtype dtype, void *to, const void *a, const void *b, int64_t n)
{
  switch (dtype) {
  case TN_COMPLEX64: n *= 2; ADD(float, SAME, SAME); break;
  case TN_COMPLEX128: n *= 2; ADD(double, SAME, SAME); break;
  case TN_FLOAT: ADD(float, SAME, SAME); break;
  case TN_DOUBLE: ADD(double, SAME, SAME); break;
  case TN_HALF: ADD(uint16_t, tn__half_to_float, tn__half_from_float); break;
  case TN_BFLOAT16: ADD(uint16_t, tn__bfloat16_to_float, tn__bfloat16_from_float); break;
  case TN_INT8:
  case TN_UINT8: ADD(uint8_t, (uint32_t), (uint8_t)); break;
  case TN_INT16:
  case TN_UINT16: ADD(uint16_t, (uint32_t), (uint16_t)); break;
  case TN_INT32:
  case TN_UINT32: ADD(uint32_t, SAME, SAME); break;
  case TN_INT64:
  case TN_UINT64: ADD(uint64_t, SAME, SAME); break;
  default: return false;
  }
  return true;
}

bool tn__can_add(tn_dtype dtype) { return tn__add_elements(dtype, NULL, NULL, NULL, 0); }

/* ---- shapes ---- */

/* Reads the elements of a shape operand. Returns NULL, or what is wrong with it. */
static const char *read_shape(const int64_t *items, int64_t n, int32_t rank, tn__shape *out)
{
  tn__shape_unknown(out);
  if (rank == 0) return items[0] == -1 ? NULL : "a scalar that is not -1";
  if (n > TN_MAX_RANK) return "too many dimensions";
  out->rank = (int32_t)n;
  for (int64_t d = 0; d < n; d++) {
    if (items[d] < -1) return "a dimension below -1";
    out->dims[d] = items[d];
  }
  return NULL;
}

tn_status tn__shape_operand(const tn_kernel_ctx *ctx, uint32_t i, tn__shape *out)
{
  const tn_view *v = ctx->inputs[i];
  int64_t items[TN_MAX_RANK];
  tn__shape_unknown(out);
  if (v->rank > 1)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "input %u must be a shape, but has rank %d", i, (int)v->rank);
  for (int64_t k = 0; k < v->count && k < TN_MAX_RANK; k++) items[k] = tn__view_int_at(v, k);
  const char *why = read_shape(items, v->count, v->rank, out);
  if (why != NULL) return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "input %u must be a shape, but has %s", i, why);
  int64_t known[TN_MAX_RANK], elements;
  int32_t n = 0;
  for (int32_t d = 0; d < out->rank; d++)
    if (out->dims[d] >= 0) known[n++] = out->dims[d];
  return tn_shape_elements(known, n, &elements, ctx->err);
}

void tn__infer_shape_operand(const tn_infer_ctx *ctx, size_t i, tn__shape *out)
{
  const int64_t *items, *dims;
  int32_t rank = tn_infer_input(ctx, i, &dims);
  int64_t n = tn_infer_input_ints(ctx, i, &items);
  tn__shape_unknown(out);
  if (rank == 1 && n >= 0 && n <= TN_MAX_RANK) {
    out->rank = (int32_t)n;
    for (int64_t d = 0; d < n; d++) out->dims[d] = items[d] < 0 ? -1 : items[d];
  } else if (rank == 1 && dims[0] >= 0 && dims[0] <= TN_MAX_RANK) {
    out->rank = (int32_t)dims[0];
    for (int32_t d = 0; d < out->rank; d++) out->dims[d] = -1;
  }
}

tn_status tn__merge_or_fail(tn_error *err, const char *what, tn__shape *s, const int64_t *dims, int32_t rank)
{
  char mine[160], other[160];
  if (tn__shape_merge(s, dims, rank)) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: shapes %s and %s do not fit", what,
                      tn__format_shape(mine, sizeof mine, s->dims, s->rank),
                      tn__format_shape(other, sizeof other, dims, rank));
}

bool tn__shape_fits(const int64_t *partial, int32_t partial_rank, const int64_t *dims, int32_t rank)
{
  if (partial_rank < 0 || rank < 0) return true;
  if (partial_rank != rank) return false;
  for (int32_t d = 0; d < rank; d++)
    if (partial[d] >= 0 && dims[d] >= 0 && partial[d] != dims[d]) return false;
  return true;
}
