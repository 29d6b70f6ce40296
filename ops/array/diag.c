/* SPDX-License-Identifier: Apache-2.0 */
/* Diagonals of tensors, and bands of matrices: Diag DiagPart MatrixBandPart BatchMatrixBandPart. */
#include <core/base/text.h>
#include <ops/kernel/family.h>
#include <ops/kernel/move/strided.h>
#include <ops/kernel/shapes.h>
#include <string.h>

/* ---- Diag ---- */

static tn_status infer_diag(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s;
  tn_status st = tn__infer_rank_at_least(ctx, 0, 1, &s, err);
  if (st != TN_OK) return st;
  for (int32_t i = 0, rank = s.rank; i < rank; i++)
    if (!tn__shape_append(&s, s.dims[i]))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 0 has rank %d, its double is more than %d",
                          tn__infer_op(ctx), (int)rank, TN_MAX_RANK);
  return tn__infer_set(ctx, 0, &s, err);
}

static tn_status diag_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0];
  int64_t dims[TN_MAX_RANK];
  tn_status st = tn__want_rank_at_least(ctx, 0, 1, err);
  if (st != TN_OK) return st;
  if (in->rank > TN_MAX_RANK / 2)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 0 has rank %d, its double is more than %d",
                        tn_operation_type(ctx->op), (int)in->rank, TN_MAX_RANK);
  for (int32_t i = 0; i < in->rank; i++) dims[i] = dims[in->rank + i] = in->dims[i];
  ctx->cost_ns = 20 + 0.3 * (double)in->count * (double)in->count;
  return tn_prepare_output(ctx, 0, dims, 2 * in->rank, err);
}

typedef struct diag_run {
  const tn_view *in;
  char *out;
  size_t element;
} diag_run;

static void diag_rows(void *user, int64_t begin, int64_t end)
{
  const diag_run *r = user;
  int64_t n = r->in->count, element = (int64_t)r->element;
  memset(r->out + begin * n * element, 0, (size_t)((end - begin) * n) * r->element);
  tn__strided_line_of(r->element)(r->element, end - begin, (const char *)r->in->data + begin * element, element,
                                  r->out + begin * (n + 1) * element, (n + 1) * element);
}

static tn_status diag_compute(tn_kernel_ctx *ctx)
{
  const tn_view *in = ctx->inputs[0];
  diag_run r = { in, ctx->outputs[0]->data, tn_dtype_size(in->dtype) };
  int64_t n = in->count;
  if (n == 0) return TN_OK;
  if (ctx->outputs[0]->count <= TN__SERIAL_ELEMENTS)
    diag_rows(&r, 0, n);
  else
    tn_parallel_for(ctx, n, TN__SERIAL_ELEMENTS / n + 1, 0.3 * (double)n, diag_rows, &r);
  return TN_OK;
}

/* ---- DiagPart ---- */

/* Checks that both halves of a shape agree and merges them into *half. A scalar is its own diagonal. */
static tn_status halve(const char *op, const tn__shape *s, tn__shape *half, tn_error *err)
{
  char text[160];
  half->rank = s->rank < 0 ? -1 : s->rank / 2;
  if (s->rank < 0) return TN_OK;
  for (int32_t i = 0; i < half->rank && s->rank % 2 == 0; i++) {
    half->dims[i] = s->dims[i];
    if (!tn__dim_merge(&half->dims[i], s->dims[half->rank + i]))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 0 has shape %s, whose halves differ", op,
                          tn__format_shape(text, sizeof text, s->dims, s->rank));
  }
  if (s->rank % 2 != 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 0 has shape %s, wanted an even rank", op,
                        tn__format_shape(text, sizeof text, s->dims, s->rank));
  return TN_OK;
}

static tn_status infer_diag_part(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s, half;
  tn__infer_get(ctx, 0, &s);
  tn_status st = halve(tn__infer_op(ctx), &s, &half, err);
  return st != TN_OK ? st : tn__infer_set(ctx, 0, &half, err);
}

static tn_status diag_part_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn__shape s, half;
  tn__shape_set(&s, ctx->inputs[0].dims, ctx->inputs[0].rank);
  tn_status st = halve(tn_operation_type(ctx->op), &s, &half, err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 0, half.dims, half.rank, err);
  ctx->cost_ns = 20;
  return st;
}

static tn_status diag_part_compute(tn_kernel_ctx *ctx)
{
  tn_view *out = ctx->outputs[0];
  size_t element = tn_dtype_size(out->dtype);
  int64_t n = out->count, step = (int64_t)element;
  if (n > 0) tn__strided_line_of(element)(element, n, ctx->inputs[0]->data, (n + 1) * step, out->data, step);
  return TN_OK;
}

/* ---- MatrixBandPart ---- */

static tn_status infer_band(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape in, scalar;
  tn_status st = tn__infer_rank(ctx, 1, 0, &scalar, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 2, 0, &scalar, err);
  if (st == TN_OK) st = tn__infer_rank_at_least(ctx, 0, 2, &in, err);
  return st != TN_OK ? st : tn__infer_set(ctx, 0, &in, err);
}

static tn_status band_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank_at_least(ctx, 0, 2, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 1, 0, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 2, 0, err);
  ctx->cost_ns = 20 + 0.3 * (double)ctx->inputs[0].count;
  return st != TN_OK ? st : tn__prepare_unchanged(ctx, err);
}

typedef struct band_run {
  const char *in;
  char *out;
  int64_t rows, cols, lower, upper; /* size of one matrix; extent of the band */
  size_t element;
} band_run;

static int64_t clamp(int64_t x, int64_t most)
{
  if (x < 0) return 0;
  return x < most ? x : most;
}

/* Rows of all matrices. */
static void band_rows(void *user, int64_t begin, int64_t end)
{
  const band_run *r = user;
  size_t row = (size_t)r->cols * r->element;
  for (int64_t i = begin, at = begin % r->rows; i < end; i++, at = at + 1 == r->rows ? 0 : at + 1) {
    size_t first = (size_t)clamp(at - r->lower, r->cols) * r->element;
    size_t behind = (size_t)clamp(at + r->upper + 1, r->cols) * r->element;
    const char *in = r->in + (size_t)i * row;
    char *out = r->out + (size_t)i * row;
    if (behind < first) behind = first;
    memset(out, 0, first);
    if (in != out) memcpy(out + first, in + first, behind - first);
    memset(out + behind, 0, row - behind);
  }
}

/* The extent of the band on one side. A negative number keeps the whole side. */
static tn_status reach(const tn_view *number, const char *what, int64_t size, int64_t *out, tn_error *err)
{
  *out = tn__view_int_at(number, 0);
  if (*out > size)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "MatrixBandPart: %s is %lld, wanted at most %lld", what,
                        (long long)*out, (long long)size);
  if (*out < 0) *out = size;
  return TN_OK;
}

static tn_status band_compute(tn_kernel_ctx *ctx)
{
  const tn_view *in = ctx->inputs[0];
  band_run r = { in->data, ctx->outputs[0]->data, in->dims[in->rank - 2], in->dims[in->rank - 1], 0, 0,
                 tn_dtype_size(in->dtype) };
  tn_status st = reach(ctx->inputs[1], "num_lower", r.rows, &r.lower, ctx->err);
  if (st == TN_OK) st = reach(ctx->inputs[2], "num_upper", r.cols, &r.upper, ctx->err);
  if (st != TN_OK || in->count == 0) return st;
  int64_t rows = in->count / r.cols;
  if (in->count <= TN__SERIAL_ELEMENTS)
    band_rows(&r, 0, rows);
  else
    tn_parallel_for(ctx, rows, TN__SERIAL_ELEMENTS / r.cols + 1, 5 + 0.3 * (double)r.cols, band_rows, &r);
  return TN_OK;
}

/* ---- tables ---- */

#define DIAG_TYPES "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}"
#define PLAIN                                                                                                    \
  "T=float|double|half|bfloat16|int8|uint8|int16|uint16|int32|uint32|int64|uint64|bool|complex64|complex128|"   \
  "qint8|quint8|qint16|quint16|qint32"
#define OP(op, in, out, attributes, shapes, text)                                                 \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = attributes, \
    .infer = shapes, .summary = text }

static const tn_op_def ops[] = {
  OP("BatchMatrixBandPart", "input: T, num_lower: int64, num_upper: int64", "band: T", "T: type", infer_band,
     "copies matrices, setting elements outside a band to zero"),
  OP("Diag", "diagonal: T", "output: T", DIAG_TYPES, infer_diag, "tensor with the given diagonal"),
  OP("DiagPart", "input: T", "diagonal: T", DIAG_TYPES, infer_diag_part, "diagonal of a tensor"),
  OP("MatrixBandPart", "input: T, num_lower: Tindex, num_upper: Tindex", "band: T",
     "T: type; Tindex: {int32, int64} = int64", infer_band, "copies matrices, setting elements outside a band to zero"),
};

#define KERNEL(which, title, constraint, prefix)                                                         \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .types = constraint, .name = title, \
    .rank = TN_RANK_C, .prepare = prefix##_prepare, .compute = prefix##_compute }

static const tn_kernel_def kernels[] = {
  KERNEL("BatchMatrixBandPart", "batch_matrix_band_part_cpu", PLAIN, band),
  KERNEL("Diag", "diag_cpu", NULL, diag),
  KERNEL("DiagPart", "diag_part_cpu", NULL, diag_part),
  KERNEL("MatrixBandPart", "matrix_band_part_cpu", PLAIN, band),
};

TN_OP_FAMILY(diag)
