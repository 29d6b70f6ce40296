/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of SparseSegmentSum, ...Mean and ...SqrtN for the data: SparseSegmentSumGrad and the like give all rows of
 * it, SparseSegmentSumGradV2 and the like those that were selected, with their indices. */
#include <core/base/alloc.h>
#include <ops/kernel/elements/elementwise.h>
#include <ops/kernel/family.h>
#include <ops/kernel/indices.h>
#include <ops/kernel/operands.h>
#include <ops/kernel/sorted_rows.h>
#include <ops/segment/segment_loops.h>
#include <string.h>

/* ---- loops ---- */

/* Adds row from[i] of `in`, of n elements, times scale[from[i]] to row to[i] of `out`, if that is in [low, high). */
typedef void (*add_fn)(void *out, const void *in, const int64_t *to, const int64_t *from, const double *scale,
                       int64_t rows, int64_t n, int64_t low, int64_t high);

#define ADD_LOOP(op, d, unused)                                                                               \
  static void op##_##d(void *out_, const void *in_, const int64_t *to, const int64_t *from,                   \
                       const double *scale, int64_t rows, int64_t n, int64_t low, int64_t high)               \
  {                                                                                                           \
    for (int64_t i = 0; i < rows; i++) {                                                                      \
      if (to[i] < low || to[i] >= high) continue;                                                             \
      tn__S_##d *restrict out = (tn__S_##d *)out_ + to[i] * n;                                                \
      const tn__S_##d *in = (const tn__S_##d *)in_ + from[i] * n;                                             \
      tn__C_##d by = (tn__C_##d)scale[from[i]];                                                               \
      by = TN__L_##d(TN__P_##d(by));                                                                          \
      for (int64_t j = 0; j < n; j++) out[j] = TN__P_##d(TN__L_##d(out[j]) + TN__L_##d(in[j]) * by);          \
    }                                                                                                         \
  }
TN__SAME_FLOATS(ADD_LOOP, add)

static add_fn add_of(tn_dtype dtype)
{
  switch (dtype) {
  case TN_FLOAT: return add_f32;
  case TN_DOUBLE: return add_f64;
  case TN_HALF: return add_f16;
  default: return add_bf16;
  }
}

/* ---- the kernels ---- */

typedef struct grad_state {
  tn__segment_op op;
  add_fn add;
} grad_state;

static tn_status create(const tn_operation *op, tn__segment_op how, void **state, tn_error *err)
{
  grad_state s = { how, add_of(tn_operation_input_dtype(op, 0)) };
  return tn__keep_state(&s, sizeof s, "state of a segment gradient", state, err);
}

#define CREATE(name, how)                                                              \
  static tn_status name##_create(const tn_operation *op, void **state, tn_error *err)  \
  {                                                                                    \
    return create(op, TN__SEGMENT_##how, state, err);                                  \
  }
CREATE(sum, SUM)
CREATE(mean, MEAN)
CREATE(sqrtn, SQRTN)

static void destroy(void *state) { tn__free(state, sizeof(grad_state)); }

/* Scratch memory: a scale for each segment, the row of the output of each index, room to sort. */
typedef struct grad_scratch {
  double *scale;
  int64_t *to;
  void *room;
} grad_scratch;

static grad_scratch scratch_of(const tn_kernel_ctx *ctx)
{
  double *scale = ctx->scratch;
  int64_t *to = (int64_t *)(void *)(scale + ctx->inputs[0]->dims[0]);
  return (grad_scratch){ scale, to, to + ctx->inputs[1]->count };
}

static tn_status bad_rows(tn_error *err, const char *op, int64_t n)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: an output of %lld rows is wanted", op, (long long)n);
}

static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *grad = &ctx->inputs[0], *indices = &ctx->inputs[1];
  size_t bytes, room;
  tn_status st = tn__want_rank_at_least(ctx, 0, 1, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 1, 1, err);
  if (st == TN_OK) st = tn__want_same_shape(ctx, 1, 2, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 3, 0, err);
  if (st != TN_OK) return st;
  ctx->cost_ns = 50 + (double)indices->count * (20 + 0.6 * (double)tn__segment_inner(grad));
  if (!tn__int_rows_room(indices->count, &room) || !tn__size_mul((size_t)indices->count, sizeof(int64_t), &bytes) ||
      !tn__size_add(bytes, room, &bytes) || !tn__size_mul((size_t)grad->dims[0], sizeof(double), &room) ||
      !tn__size_add(bytes, room, &ctx->scratch_bytes))
    return tn__no_memory(err, "scratch memory", SIZE_MAX);
  if (ctx->n_outputs > 1) return tn__prepare_all_dynamic(ctx, err);
  st = tn__want_value(ctx, 3, err);
  if (st != TN_OK) return st;
  tn__shape out;
  tn__shape_set(&out, grad->dims, grad->rank);
  out.dims[0] = tn__operand_int(&ctx->inputs[3], 0);
  if (out.dims[0] < 0) return bad_rows(err, tn_operation_type(ctx->op), out.dims[0]);
  return tn_prepare_output(ctx, 0, out.dims, out.rank, err);
}

/* Checks the segment ids, and computes a scale for each segment: 1, 1 / n or 1 / sqrt(n), for n rows. */
static tn_status find_scales(tn_kernel_ctx *ctx, double *scale)
{
  const grad_state *s = ctx->state;
  const tn_view *ids = ctx->inputs[2];
  int64_t n = ctx->inputs[0]->dims[0];
  for (int64_t i = 0; i < n; i++) scale[i] = 0;
  for (int64_t i = 0; i < ids->count; i++) {
    int64_t id = tn__view_int_at(ids, i);
    if (id < 0 || id >= n)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "segment id %lld is %lld, wanted one in [0, %lld)",
                          (long long)i, (long long)id, (long long)n);
    scale[id]++;
  }
  for (int64_t i = 0; i < n; i++) {
    double rows = scale[i] < 1 || s->op == TN__SEGMENT_SUM ? 1 : scale[i];
    scale[i] = 1 / (s->op == TN__SEGMENT_SQRTN ? sqrt(rows) : rows);
  }
  return TN_OK;
}

typedef struct grad_run {
  const tn_kernel_ctx *ctx;
  add_fn add;
  grad_scratch scratch;
  int64_t rows, inner, part;
  size_t size;
} grad_run;

static void grad_part(void *user, int64_t begin, int64_t end)
{
  const grad_run *r = user;
  const tn_view *grad = r->ctx->inputs[0], *ids = r->ctx->inputs[2];
  tn_view *out = r->ctx->outputs[0];
  int64_t low = begin * r->part, high = end * r->part < r->rows ? end * r->part : r->rows, from[TN__INDEX_BLOCK];
  tn__poll poll = tn__poll_here();
  memset((char *)out->data + (size_t)(low * r->inner) * r->size, 0, (size_t)((high - low) * r->inner) * r->size);
  for (int64_t at = 0, n; at < ids->count; at += n) {
    n = ids->count - at < TN__INDEX_BLOCK ? ids->count - at : TN__INDEX_BLOCK;
    if (tn__poll_over(&poll, n * (4 + r->inner / 4))) return;
    tn__indices_load(ids, at, n, from);
    r->add(out->data, grad->data, r->scratch.to + at, from, r->scratch.scale, n, r->inner, low, high);
  }
}

/* Adds up the rows of output 0; each part of the work is some of them. */
static void add_rows(tn_kernel_ctx *ctx, grad_scratch scratch)
{
  const grad_state *s = ctx->state;
  const tn_view *grad = ctx->inputs[0];
  tn_view *out = ctx->outputs[0];
  if (out->count == 0) return;
  grad_run r = { ctx, s->add, scratch, out->dims[0], tn__segment_inner(grad), 0, tn_dtype_size(grad->dtype) };
  double work = (double)ctx->inputs[2]->count * (double)r.inner * 0.6 + (double)out->count * 0.1;
  int64_t parts = work < 200000 || r.inner < 16 ? 1 : 8;
  if (parts > r.rows) parts = r.rows;
  r.part = (r.rows + parts - 1) / parts;
  parts = (r.rows + r.part - 1) / r.part;
  if (parts == 1) grad_part(&r, 0, 1);
  else tn_parallel_for(ctx, parts, 1, work / (double)parts, grad_part, &r);
}

static tn_status grad_compute(tn_kernel_ctx *ctx)
{
  const tn_view *indices = ctx->inputs[1];
  tn_view *out = ctx->outputs[0];
  grad_scratch s = scratch_of(ctx);
  if (out->dims[0] == 0) return TN_OK;
  tn_status st = find_scales(ctx, s.scale);
  if (st == TN_OK) st = tn__indices_check(ctx->err, indices, out->dims[0]);
  if (st != TN_OK) return st;
  tn__indices_load(indices, 0, indices->count, s.to);
  add_rows(ctx, s);
  return TN_OK;
}

/* Output 1: the distinct indices in ascending order. Replaces s->to[i] by the position of index i there. */
static tn_status distinct(tn_kernel_ctx *ctx, const grad_scratch *s, const int64_t *sorted, int64_t *found)
{
  int64_t n = ctx->inputs[1]->count, last = -1;
  *found = 0;
  for (int64_t k = 0; k < n; k++) *found += k == 0 || s->to[sorted[k]] != s->to[sorted[k - 1]];
  tn_status st = tn_kernel_allocate(ctx, 1, found, 1);
  if (st != TN_OK) return st;
  tn_view *out = ctx->outputs[1];
  for (int64_t k = 0, u = -1; k < n; k++) {
    int64_t index = s->to[sorted[k]];
    if (k == 0 || index != last) {
      u++;
      if (out->dtype == TN_INT64) ((int64_t *)out->data)[u] = index;
      else ((int32_t *)out->data)[u] = (int32_t)index;
    }
    last = index;
    s->to[sorted[k]] = u;
  }
  return TN_OK;
}

/* An output of 0 rows has no gradient, whatever the indices are. */
static tn_status give_nothing(tn_kernel_ctx *ctx, tn__shape *out)
{
  out->dims[0] = 0;
  tn_status st = tn_kernel_allocate(ctx, 1, out->dims, 1);
  return st == TN_OK ? tn_kernel_allocate(ctx, 0, out->dims, out->rank) : st;
}

static tn_status grad_v2_compute(tn_kernel_ctx *ctx)
{
  const tn_view *grad = ctx->inputs[0], *indices = ctx->inputs[1];
  int64_t rows = tn__operand_int(ctx->inputs[3], 0);
  grad_scratch s = scratch_of(ctx);
  tn__shape out;
  tn__shape_set(&out, grad->dims, grad->rank);
  if (rows < 0) return bad_rows(ctx->err, "SparseSegment...GradV2", rows);
  if (rows == 0) return give_nothing(ctx, &out);
  tn_status st = find_scales(ctx, s.scale);
  if (st == TN_OK) st = tn__indices_check(ctx->err, indices, rows);
  if (st != TN_OK) return st;
  tn__indices_load(indices, 0, indices->count, s.to);
  tn__poll poll = tn__poll_of(ctx);
  const tn__int_rows keys = { s.to, indices->count, 1, 1, NULL };
  const int64_t *sorted = tn__int_rows_sort(&keys, s.room, &poll);
  if (sorted == NULL) return TN_CANCELLED;
  st = distinct(ctx, &s, sorted, &out.dims[0]);
  if (st == TN_OK) st = tn_kernel_allocate(ctx, 0, out.dims, out.rank);
  if (st == TN_OK) add_rows(ctx, s);
  return st;
}

static tn_status infer(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape grad, indices, ids, scalar;
  const int64_t *number;
  tn_status st = tn__infer_rank_at_least(ctx, 0, 1, &grad, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 1, 1, &indices, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 2, 1, &ids, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 3, 0, &scalar, err);
  if (st != TN_OK) return st;
  if (!tn__shape_merge(&ids, indices.dims, 1))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %lld indices have %lld segment ids", tn__infer_op(ctx),
                        (long long)indices.dims[0], (long long)ids.dims[0]);
  bool all = tn_operation_n_outputs(tn_infer_operation(ctx)) == 1;
  if (grad.rank > 0) grad.dims[0] = -1;
  if (grad.rank > 0 && all && tn_infer_input_ints(ctx, 3, &number) == 1 && number[0] >= 0) grad.dims[0] = number[0];
  st = tn__infer_set(ctx, 0, &grad, err);
  int64_t unknown = -1;
  return st == TN_OK && !all ? tn_infer_output(ctx, 1, &unknown, 1, err) : st;
}

/* ---- tables ---- */

#define ATTRS \
  "T: {bfloat16, half, float, double}; Tidx: {int32, int64} = int32; Tsegmentids: {int32, int64} = int32"
#define OPS(name_)                                                                                            \
  { .struct_size = TN_OP_DEF_SIZE, .name = name_ "Grad",                                                      \
    .inputs = "grad: T, indices: Tidx, segment_ids: Tsegmentids, output_dim0: int32", .outputs = "output: T", \
    .attrs = ATTRS, .shape_operands = 1u << 3, .infer = infer, .summary = "gradient of " name_ },             \
  { .struct_size = TN_OP_DEF_SIZE, .name = name_ "GradV2",                                                    \
    .inputs = "grad: T, indices: Tidx, segment_ids: Tsegmentids, dense_output_dim0: int32",                   \
    .outputs = "output: T, sorted_unique_indices: Tidx", .attrs = ATTRS, .traits = TN_TRAIT_DYNAMIC,          \
    .infer = infer, .summary = "gradient of " name_ ", only the rows that it read" }

static const tn_op_def ops[] = {
  OPS("SparseSegmentMean"),
  OPS("SparseSegmentSqrtN"),
  OPS("SparseSegmentSum"),
};

#define KERNEL(which, title, fn, compute_fn)                                                         \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title,                  \
    .rank = TN_RANK_C, .create = fn, .destroy = destroy, .prepare = prepare, .compute = compute_fn }

static const tn_kernel_def kernels[] = {
  KERNEL("SparseSegmentMeanGrad", "sparse_segment_mean_grad_cpu", mean_create, grad_compute),
  KERNEL("SparseSegmentMeanGradV2", "sparse_segment_mean_grad_v2_cpu", mean_create, grad_v2_compute),
  KERNEL("SparseSegmentSqrtNGrad", "sparse_segment_sqrt_n_grad_cpu", sqrtn_create, grad_compute),
  KERNEL("SparseSegmentSqrtNGradV2", "sparse_segment_sqrt_n_grad_v2_cpu", sqrtn_create, grad_v2_compute),
  KERNEL("SparseSegmentSumGrad", "sparse_segment_sum_grad_cpu", sum_create, grad_compute),
  KERNEL("SparseSegmentSumGradV2", "sparse_segment_sum_grad_v2_cpu", sum_create, grad_v2_compute),
};

TN_OP_FAMILY(sparse_segment_grad)
