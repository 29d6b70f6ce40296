/* SPDX-License-Identifier: Apache-2.0 */
/* Joining sparse tensors along a dimension and splitting them again: SparseConcat SparseSplit. */
#include <core/base/alloc.h>
#include <ops/kernel/family.h>
#include <ops/kernel/operands.h>
#include <ops/sparse/sparse.h>
#include <string.h>

/* ---- SparseConcat ---- */

/* Inputs: n times indices, n times values, n times shapes. */
static tn_status concat_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  uint32_t n = ctx->n_inputs / 3;
  int64_t entries = 0, rank = ctx->inputs[2 * n].count;
  int32_t axis;
  tn_status st = TN_OK;
  for (uint32_t i = 0; st == TN_OK && i < n; i++) {
    st = tn__want_sparse(ctx, i, n + i, 2 * n + i, err);
    if (st == TN_OK) st = tn__want_same_shape(ctx, 2 * n, 2 * n + i, err);
    entries += ctx->inputs[n + i].count;
  }
  if (st == TN_OK)
    st = tn__shape_axis(tn_operation_type(ctx->op), tn__attr_int(ctx->op, "concat_dim", 0), (int32_t)rank, &axis, err);
  if (st != TN_OK) return st;
  size_t each, bytes;
  if (!tn__int_rows_room(entries, &bytes) || !tn__size_mul((size_t)rank + 1, sizeof(int64_t), &each) ||
      !tn__size_mul((size_t)entries, each, &each) || !tn__size_add(bytes, each, &ctx->scratch_bytes))
    return tn__no_memory(err, "scratch memory", SIZE_MAX);
  ctx->shape_state = (void *)(uintptr_t)axis; /* a number, not an address */
  ctx->cost_ns = 100 + 30 * (double)entries;
  return tn__prepare_all_dynamic(ctx, err);
}

/* The joined shape. */
static tn_status joined_shape(const tn_kernel_ctx *ctx, uint32_t n, int32_t axis, tn__shape *out)
{
  tn_status st = tn__sparse_shape(ctx, 2 * n, out);
  for (uint32_t i = 1; st == TN_OK && i < n; i++) {
    tn__shape more;
    st = tn__sparse_shape(ctx, 2 * n + i, &more);
    for (int32_t d = 0; st == TN_OK && d < out->rank; d++) {
      if (d != axis && more.dims[d] != out->dims[d])
        st = tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "size %d of shape %u is %lld, wanted %lld", (int)d, i,
                          (long long)more.dims[d], (long long)out->dims[d]);
      else if (d == axis && __builtin_add_overflow(out->dims[d], more.dims[d], &out->dims[d]))
        st = tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "the sizes in dimension %d are too large together", (int)d);
    }
  }
  return st;
}

/* Writes all indices, of which those in the axis begin after the inputs before. */
static int64_t joined_indices(const tn_kernel_ctx *ctx, uint32_t n, int32_t axis, int64_t *to, tn__poll *poll)
{
  int64_t entries = 0;
  uint64_t offset = 0;
  for (uint32_t i = 0; i < n; i++) {
    const tn_view *v = ctx->inputs[i];
    const int64_t *at = v->data;
    int64_t rank = v->dims[1];
    for (int64_t k = 0; k < v->dims[0]; k++, at += rank, to += rank) {
      if (tn__poll_over(poll, 2 + rank)) return -1;
      memcpy(to, at, (size_t)rank * sizeof *to);
      to[axis] = (int64_t)((uint64_t)at[axis] + offset);
    }
    entries += v->dims[0];
    offset += (uint64_t)((const int64_t *)ctx->inputs[2 * n + i]->data)[axis];
  }
  return entries;
}

/* Writes the entries in the order `sorted`; NULL: as they are. */
static tn_status joined_entries(tn_kernel_ctx *ctx, uint32_t n, const tn__int_rows *rows, const int64_t *sorted,
                                int64_t *places, tn__poll *poll)
{
  int64_t *to = ctx->outputs[0]->data, entry = 0;
  for (int64_t k = 0; k < rows->n; k++, to += rows->width) {
    int64_t from = sorted == NULL ? k : sorted[k];
    memcpy(to, rows->at + from * rows->width, (size_t)rows->width * sizeof *to);
    places[from] = k;
  }
  tn_status st = TN_OK;
  for (uint32_t i = 0; i < n; i++)
    for (int64_t k = 0; st == TN_OK && k < ctx->inputs[i]->dims[0]; k++, entry++) {
      if (tn__poll_over(poll, 10)) return TN_CANCELLED;
      st = tn__copy_value(ctx->outputs[1], places[entry], ctx->inputs[n + i], k, ctx->err);
    }
  return st;
}

static tn_status concat_compute(tn_kernel_ctx *ctx)
{
  uint32_t n = ctx->n_inputs / 3;
  int32_t axis = (int32_t)(uintptr_t)ctx->shape_state;
  tn__shape shape;
  tn_status st = joined_shape(ctx, n, axis, &shape);
  if (st != TN_OK) return st;
  tn__poll poll = tn__poll_of(ctx);
  int64_t *at = ctx->scratch, entries = joined_indices(ctx, n, axis, at, &poll);
  if (entries < 0) return TN_CANCELLED;
  int64_t *places = at + entries * shape.rank;
  const tn__int_rows rows = { at, entries, shape.rank, shape.rank, NULL };
  const int64_t *sorted = NULL;
  if (!tn__int_rows_are_sorted(&rows) && (sorted = tn__int_rows_sort(&rows, places + entries, &poll)) == NULL)
    return TN_CANCELLED;
  st = tn__give_entries(ctx, 0, entries, shape.rank);
  if (st == TN_OK) st = tn__give_ints(ctx, 2, shape.dims, shape.rank);
  return st == TN_OK ? joined_entries(ctx, n, &rows, sorted, places, &poll) : st;
}

static tn_status infer_concat(tn_infer_ctx *ctx, tn_error *err)
{
  size_t n = tn_infer_n_inputs(ctx) / 3;
  int64_t entries = 0, rank = -1;
  int32_t axis;
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < n; i++) {
    int64_t more, of;
    st = tn__infer_sparse(ctx, i, n + i, 2 * n + i, &more, &of, err);
    if (st != TN_OK) return st;
    if (more < 0 || entries < 0 || __builtin_add_overflow(entries, more, &entries)) entries = -1;
    if (!tn__dim_merge(&rank, of))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: sparse tensor %zu has %lld dimensions, those before it %lld",
                          tn__infer_op(ctx), i, (long long)of, (long long)rank);
  }
  if (rank >= 0 && rank <= TN_MAX_RANK)
    st = tn__shape_axis(tn__infer_op(ctx), tn__attr_int(tn_infer_operation(ctx), "concat_dim", 0), (int32_t)rank, &axis,
                        err);
  return st == TN_OK ? tn__infer_sparse_output(ctx, 0, entries, rank, err) : st;
}

/* ---- SparseSplit ---- */

/* Scratch memory: a counter for each part. */
static tn_status split_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, 0, 0, err);
  if (st == TN_OK) st = tn__want_sparse(ctx, 1, 2, 3, err);
  if (st != TN_OK) return st;
  ctx->scratch_bytes = ctx->n_outputs / 3 * sizeof(int64_t);
  ctx->cost_ns = 100 + 20 * (double)ctx->inputs[2].count;
  return tn__prepare_all_dynamic(ctx, err);
}

/* The parts along an axis: the first `longer` have `part` + 1 indices, the others `part`. */
typedef struct parts {
  int32_t axis;
  int64_t n, part, longer;
} parts;

static int64_t part_of(const parts *p, int64_t index, int64_t *within)
{
  int64_t first = p->longer * (p->part + 1), size = index < first ? p->part + 1 : p->part;
  int64_t after = index < first ? index : index - first;
  *within = after % size;
  return after / size + (index < first ? 0 : p->longer);
}

static tn_status find_parts(const tn_kernel_ctx *ctx, const tn__shape *shape, parts *p)
{
  p->n = ctx->n_outputs / 3;
  tn_status st = tn__shape_axis("SparseSplit", *(const int64_t *)ctx->inputs[0]->data, shape->rank, &p->axis, ctx->err);
  if (st != TN_OK) return st;
  int64_t size = shape->dims[p->axis];
  if (p->n > size)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "dimension %d has size %lld, %lld parts are wanted",
                        (int)p->axis, (long long)size, (long long)p->n);
  p->part = size / p->n;
  p->longer = size % p->n;
  return TN_OK;
}

static tn_status split_outputs(tn_kernel_ctx *ctx, const parts *p, const tn__shape *shape, int64_t *counts)
{
  tn_status st = TN_OK;
  tn__shape s = *shape;
  for (int64_t k = 0; st == TN_OK && k < p->n; k++) {
    const int64_t dims[2] = { counts[k], shape->rank };
    st = tn_kernel_allocate(ctx, (uint32_t)k, dims, 2);
    if (st == TN_OK) st = tn_kernel_allocate(ctx, (uint32_t)(p->n + k), dims, 1);
    s.dims[p->axis] = p->part + (k < p->longer);
    if (st == TN_OK) st = tn__give_ints(ctx, (uint32_t)(2 * p->n + k), s.dims, s.rank);
    counts[k] = 0;
  }
  return st;
}

static tn_status split_compute(tn_kernel_ctx *ctx)
{
  const tn_view *indices = ctx->inputs[1];
  const int64_t *at = indices->data;
  int64_t *counts = ctx->scratch, within, rank = indices->dims[1];
  tn__shape shape;
  parts p;
  tn__poll poll = tn__poll_of(ctx);
  tn_status st = tn__sparse_shape(ctx, 3, &shape);
  if (st == TN_OK) st = find_parts(ctx, &shape, &p);
  if (st == TN_OK) st = tn__sparse_check_bounds(ctx, 1, shape.dims, &poll);
  if (st != TN_OK) return st;
  memset(counts, 0, (size_t)p.n * sizeof *counts);
  for (int64_t i = 0; i < indices->dims[0]; i++) counts[part_of(&p, at[i * rank + p.axis], &within)]++;
  st = split_outputs(ctx, &p, &shape, counts);
  for (int64_t i = 0; st == TN_OK && i < indices->dims[0]; i++, at += rank) {
    if (tn__poll_over(&poll, 10 + rank)) return TN_CANCELLED;
    int64_t part = part_of(&p, at[p.axis], &within), k = counts[part]++;
    int64_t *to = (int64_t *)ctx->outputs[part]->data + k * rank;
    memcpy(to, at, (size_t)rank * sizeof *to);
    to[p.axis] = within;
    st = tn__copy_value(ctx->outputs[p.n + part], k, ctx->inputs[2], i, ctx->err);
  }
  return st;
}

static tn_status infer_split(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape scalar;
  int64_t n, rank, parts_wanted = (int64_t)tn_operation_n_outputs(tn_infer_operation(ctx)) / 3;
  tn_status st = tn__infer_rank(ctx, 0, 0, &scalar, err);
  if (st == TN_OK) st = tn__infer_sparse(ctx, 1, 2, 3, &n, &rank, err);
  const int64_t indices[2] = { -1, st == TN_OK ? rank : -1 };
  for (int64_t k = 0; st == TN_OK && k < parts_wanted; k++) {
    st = tn_infer_output(ctx, (size_t)k, indices, 2, err);
    if (st == TN_OK) st = tn_infer_output(ctx, (size_t)(parts_wanted + k), indices, 1, err);
    if (st == TN_OK) st = tn_infer_output(ctx, (size_t)(2 * parts_wanted + k), &rank, 1, err);
  }
  return st;
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "SparseConcat",
    .inputs = "indices: N * int64, values: N * T, shapes: N * int64",
    .outputs = "output_indices: int64, output_values: T, output_shape: int64",
    .attrs = "concat_dim: int; N: int >= 2; T: type", .traits = TN_TRAIT_DYNAMIC, .infer = infer_concat,
    .summary = "concatenates sparse tensors along a dimension" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "SparseSplit",
    .inputs = "split_dim: int64, indices: int64, values: T, shape: int64",
    .outputs = "output_indices: num_split * int64, output_values: num_split * T, output_shape: num_split * int64",
    .attrs = "num_split: int >= 1; T: type", .traits = TN_TRAIT_DYNAMIC, .infer = infer_split,
    .summary = "splits a sparse tensor along a dimension" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "SparseConcat", .device = "CPU", .name = "sparse_concat_cpu",
    .rank = TN_RANK_C, .prepare = concat_prepare, .compute = concat_compute },
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "SparseSplit", .device = "CPU", .name = "sparse_split_cpu",
    .rank = TN_RANK_C, .prepare = split_prepare, .compute = split_compute },
};

TN_OP_FAMILY(sparse_join)
