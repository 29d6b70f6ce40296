/* SPDX-License-Identifier: Apache-2.0 */
/* Distributing rows over several tensors and merging them: DynamicPartition DynamicStitch
 * ParallelDynamicStitch. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <ops/kernel/elements/elements.h>
#include <ops/kernel/family.h>
#include <ops/kernel/poll.h>
#include <ops/kernel/shapes.h>
#include <string.h>

/* Elements of `data` per row, that is after its first outer_rank dimensions. If one of those is 0,
 * the product may overflow; it wraps, and is not used. */
static int64_t row_elements(const tn_view *data, int32_t outer_rank)
{
  uint64_t n = 1;
  for (int32_t i = outer_rank; i < data->rank; i++) n *= (uint64_t)data->dims[i];
  return (int64_t)n;
}

static bool begins_with(const int64_t *dims, int32_t rank, const int64_t *first, int32_t n)
{
  if (rank < 0 || n < 0) return true;
  if (rank < n) return false;
  for (int32_t i = 0; i < n; i++)
    if (dims[i] != first[i] && dims[i] >= 0 && first[i] >= 0) return false;
  return true;
}

static tn_status prefix_error(tn_error *err, const char *op, uint32_t i, const int64_t *dims, int32_t rank, uint32_t j,
                              const int64_t *first, int32_t n)
{
  char x[160], y[160];
  return tn_error_set(err, TN_INVALID_ARGUMENT,
                      "%s: input %u has shape %s, wanted one that begins with that of input %u, %s", op, i,
                      tn__format_shape(x, sizeof x, dims, rank), j, tn__format_shape(y, sizeof y, first, n));
}

/* ---- DynamicPartition ---- */

static tn_status partition_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *data = &ctx->inputs[0], *to = &ctx->inputs[1];
  if (!begins_with(data->dims, data->rank, to->dims, to->rank))
    return prefix_error(err, tn_operation_type(ctx->op), 0, data->dims, data->rank, 1, to->dims, to->rank);
  if (to->rank == 0 && data->rank == TN_MAX_RANK)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the outputs would have more than %d dimensions",
                        tn_operation_type(ctx->op), TN_MAX_RANK);
  ctx->cost_ns = 50 + 3 * (double)to->count + 0.2 * (double)data->count;
  if (!tn__size_mul(ctx->n_outputs, sizeof(int64_t), &ctx->scratch_bytes))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: too many partitions", tn_operation_type(ctx->op));
  return tn__prepare_all_dynamic(ctx, err);
}

static tn_status partition_outputs(tn_kernel_ctx *ctx, int64_t *counts)
{
  const tn_view *data = ctx->inputs[0], *to = ctx->inputs[1];
  const int32_t *part = to->data;
  memset(counts, 0, ctx->n_outputs * sizeof *counts);
  for (int64_t i = 0; i < to->count; i++) {
    if (part[i] < 0 || (uint32_t)part[i] >= ctx->n_outputs)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                          "DynamicPartition: partition %lld of input 1 is %d, wanted one in [0, %u)", (long long)i,
                          (int)part[i], ctx->n_outputs);
    counts[part[i]]++;
  }
  int64_t dims[TN_MAX_RANK];
  int32_t rank = 1;
  for (int32_t i = to->rank; i < data->rank; i++) dims[rank++] = data->dims[i];
  tn_status st = TN_OK;
  for (uint32_t i = 0; st == TN_OK && i < ctx->n_outputs; i++) {
    dims[0] = counts[i];
    st = tn_kernel_allocate(ctx, i, dims, rank);
    counts[i] = 0;
  }
  return st;
}

static tn_status partition_compute(tn_kernel_ctx *ctx)
{
  const tn_view *data = ctx->inputs[0], *to = ctx->inputs[1];
  int64_t *filled = ctx->scratch, row = row_elements(data, to->rank);
  tn_status st = partition_outputs(ctx, filled);
  size_t bytes = (size_t)row * tn_dtype_size(data->dtype);
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t i = 0; st == TN_OK && data->count > 0 && i < to->count; i++) {
    if (tn__poll_over(&poll, 10 + (int64_t)bytes / 4)) return TN_CANCELLED;
    int32_t part = ((const int32_t *)to->data)[i];
    char *out = (char *)ctx->outputs[part]->data + (size_t)filled[part]++ * bytes;
    st = tn__copy_elements(data->dtype, out, (const char *)data->data + (size_t)i * bytes, row, ctx->err);
  }
  return st;
}

static tn_status infer_partition(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape data, to, s;
  tn__infer_get(ctx, 0, &data);
  tn__infer_get(ctx, 1, &to);
  if (!begins_with(data.dims, data.rank, to.dims, to.rank))
    return prefix_error(err, tn__infer_op(ctx), 0, data.dims, data.rank, 1, to.dims, to.rank);
  tn__shape_unknown(&s);
  if (data.rank >= 0 && to.rank >= 0 && (to.rank > 0 || data.rank < TN_MAX_RANK)) {
    s.rank = 0;
    tn__shape_append(&s, -1);
    for (int32_t i = to.rank; i < data.rank; i++) tn__shape_append(&s, data.dims[i]);
  }
  tn_status st = TN_OK;
  size_t n = tn_operation_n_outputs(tn_infer_operation(ctx));
  for (size_t i = 0; st == TN_OK && i < n; i++) st = tn__infer_set(ctx, i, &s, err);
  return st;
}

/* ---- DynamicStitch ---- */

/* Checks that the rows of data k have the same shape as those of the first one. */
static tn_status stitch_rows(const char *op, tn__shape *rows, const int64_t *dims, int32_t rank, int32_t outer,
                             uint32_t i, tn_error *err)
{
  if (rank < 0 || outer < 0) return TN_OK;
  if (tn__shape_merge(rows, dims + outer, rank - outer)) return TN_OK;
  char x[160], y[160];
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: rows of input %u have shape %s, those before have %s", op, i,
                      tn__format_shape(x, sizeof x, dims + outer, rank - outer),
                      tn__format_shape(y, sizeof y, rows->dims, rows->rank));
}

/* The result's shape: `length` rows. */
static tn_status stitched(const char *op, const tn__shape *rows, int64_t length, tn__shape *out, tn_error *err)
{
  out->rank = 0;
  tn__shape_append(out, length);
  for (int32_t i = 0; i < rows->rank; i++)
    if (!tn__shape_append(out, rows->dims[i]))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the output would have more than %d dimensions", op,
                          TN_MAX_RANK);
  return TN_OK;
}

/* Indices are inputs [0, n), data inputs [n, 2 n). */
static tn_status stitch_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const char *op = tn_operation_type(ctx->op);
  uint32_t n = ctx->n_inputs / 2;
  tn__shape rows, out;
  tn__shape_unknown(&rows);
  tn_status st = TN_OK;
  double count = 0;
  for (uint32_t k = 0; st == TN_OK && k < n; k++) {
    const tn_view *x = &ctx->inputs[k], *data = &ctx->inputs[n + k];
    count += (double)data->count;
    if (!begins_with(data->dims, data->rank, x->dims, x->rank))
      return prefix_error(err, op, n + k, data->dims, data->rank, k, x->dims, x->rank);
    st = stitch_rows(op, &rows, data->dims, data->rank, x->rank, n + k, err);
  }
  if (st == TN_OK) st = stitched(op, &rows, 0, &out, err); /* the rank is known now */
  ctx->cost_ns = 50 + 0.5 * count;
  return st != TN_OK ? st : tn_prepare_dynamic(ctx, 0, err);
}

/* One more than the largest index, or -1 if an index is negative. */
static int64_t stitch_length(const tn_view *const *indices, uint32_t n)
{
  int64_t length = 0;
  for (uint32_t k = 0; k < n; k++) {
    const int32_t *x = indices[k]->data;
    for (int64_t i = 0; i < indices[k]->count; i++) {
      if (x[i] < 0) return -1;
      if (x[i] >= length) length = (int64_t)x[i] + 1;
    }
  }
  return length;
}

static tn_status stitch_negative(tn_kernel_ctx *ctx, uint32_t n)
{
  for (uint32_t k = 0; k < n; k++) {
    const int32_t *x = ctx->inputs[k]->data;
    for (int64_t i = 0; i < ctx->inputs[k]->count; i++)
      if (x[i] < 0)
        return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "index %lld of input %u is %d, wanted 0 or more",
                            (long long)i, k, (int)x[i]);
  }
  return TN_OK;
}

static tn_status stitch_compute(tn_kernel_ctx *ctx)
{
  uint32_t n = ctx->n_inputs / 2;
  const tn_view *first = ctx->inputs[n];
  int64_t dims[TN_MAX_RANK], length = stitch_length((const tn_view *const *)ctx->inputs, n);
  if (length < 0) return stitch_negative(ctx, n);
  int32_t outer = ctx->inputs[0]->rank, rank = 1;
  for (int32_t i = outer; i < first->rank; i++) dims[rank++] = first->dims[i];
  dims[0] = length;
  tn_status st = tn_kernel_allocate(ctx, 0, dims, rank);
  tn_view *out = ctx->outputs[0];
  if (st != TN_OK || out->count == 0) return st;
  int64_t row = out->count / length;
  size_t size = tn_dtype_size(out->dtype), bytes = (size_t)row * size;
  /* Rows that no index names are zeroed, so that the output never exposes stale memory. */
  if (!tn__dtype_is_managed(out->dtype)) memset(out->data, 0, (size_t)out->count * size);
  tn__poll poll = tn__poll_of(ctx);
  for (uint32_t k = 0; k < n; k++) {
    const int32_t *x = ctx->inputs[k]->data;
    const char *from = ctx->inputs[n + k]->data;
    char *to = out->data;
    for (int64_t i = 0; st == TN_OK && i < ctx->inputs[k]->count && !tn__poll_over(&poll, 10 + (int64_t)bytes / 4); i++)
      st = tn__copy_elements(out->dtype, to + (size_t)x[i] * bytes, from + (size_t)i * bytes, row, ctx->err);
  }
  return st;
}

/* The number of rows if all indices are known. */
static int64_t infer_length(const tn_infer_ctx *ctx, size_t n)
{
  int64_t length = 0;
  for (size_t k = 0; k < n; k++) {
    const tn_tensor *t = tn_infer_input_value(ctx, k);
    if (t == NULL || (tn_tensor_data(t) == NULL && tn_tensor_elements(t) > 0)) return -1;
    for (int64_t i = 0; i < tn_tensor_elements(t); i++) {
      int64_t x = tn__tensor_int_at(t, i);
      if (x >= length) length = x + 1;
    }
  }
  return length;
}

/* The output's values are inferred if known: gradients of reductions assemble shapes this way. */
static tn_status infer_stitched_ints(tn_infer_ctx *ctx, size_t n, const tn__shape *out, tn_error *err)
{
  tn_dtype dtype = tn_operation_output_dtype(tn_infer_operation(ctx), 0);
  int64_t items[TN_MAX_INFER_INTS], length = out->rank == 1 ? out->dims[0] : -1;
  if ((dtype != TN_INT32 && dtype != TN_INT64) || length < 0 || length > TN_MAX_INFER_INTS) return TN_OK;
  for (int64_t i = 0; i < length; i++) items[i] = TN_UNKNOWN_INT;
  for (size_t k = 0; k < n; k++) {
    const int64_t *x, *data;
    int64_t m = tn_infer_input_ints(ctx, k, &x), n_data = tn_infer_input_ints(ctx, n + k, &data);
    if (m < 0) return TN_OK;
    for (int64_t i = 0; i < m; i++)
      if (x[i] >= 0 && x[i] < length) items[x[i]] = n_data == m ? data[i] : TN_UNKNOWN_INT;
  }
  return tn_infer_output_ints(ctx, 0, items, length, err);
}

static tn_status infer_stitch(tn_infer_ctx *ctx, tn_error *err)
{
  const char *op = tn__infer_op(ctx);
  size_t n = tn_infer_n_inputs(ctx) / 2;
  tn__shape rows, out;
  tn__shape_unknown(&rows);
  tn__shape_unknown(&out);
  tn_status st = TN_OK;
  for (size_t k = 0; st == TN_OK && k < n; k++) {
    const int64_t *x, *data;
    int32_t x_rank = tn_infer_input(ctx, k, &x), rank = tn_infer_input(ctx, n + k, &data);
    if (!begins_with(data, rank, x, x_rank))
      return prefix_error(err, op, (uint32_t)(n + k), data, rank, (uint32_t)k, x, x_rank);
    st = stitch_rows(op, &rows, data, rank, x_rank, (uint32_t)(n + k), err);
  }
  if (st == TN_OK && rows.rank >= 0) st = stitched(op, &rows, infer_length(ctx, n), &out, err);
  if (st == TN_OK) st = tn__infer_set(ctx, 0, &out, err);
  return st != TN_OK ? st : infer_stitched_ints(ctx, n, &out, err);
}

/* ---- tables ---- */

#define OP(op, in, out, attributes, shapes, text)                                                 \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = attributes, \
    .traits = TN_TRAIT_DYNAMIC, .infer = shapes, .summary = text }
#define STITCH(op, text) \
  OP(op, "indices: N * int32, data: N * T", "merged: T", "N: int >= 1; T: type", infer_stitch, text)

static const tn_op_def ops[] = {
  OP("DynamicPartition", "data: T, partitions: int32", "outputs: num_partitions * T",
     "num_partitions: int >= 1; T: type", infer_partition, "partitions rows into several tensors"),
  STITCH("DynamicStitch", "interleaves rows of several tensors by indices"),
  STITCH("ParallelDynamicStitch", "interleaves rows of several tensors by indices"),
};

#define TYPES                                                                                                     \
  "T=float|double|half|bfloat16|int8|uint8|int16|uint16|int32|uint32|int64|uint64|bool|complex64|complex128|"     \
  "string|variant|"
#define KERNEL(which, constraint, title, prepare_fn, compute_fn)                                         \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .types = constraint, .name = title, \
    .rank = TN_RANK_C, .prepare = prepare_fn, .compute = compute_fn }

static const tn_kernel_def kernels[] = {
  KERNEL("DynamicPartition", TYPES "resource", "dynamic_partition_cpu", partition_prepare, partition_compute),
  KERNEL("DynamicStitch", TYPES "qint8|quint8|qint32", "dynamic_stitch_cpu", stitch_prepare, stitch_compute),
  KERNEL("ParallelDynamicStitch", TYPES "qint8|quint8|qint32", "parallel_dynamic_stitch_cpu", stitch_prepare,
         stitch_compute),
};

TN_OP_FAMILY(partition)
