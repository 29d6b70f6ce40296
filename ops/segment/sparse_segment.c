/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions of selected rows by sorted segment ids: SparseSegmentSum SparseSegmentMean SparseSegmentSqrtN, and
 * ...WithNumSegments, which say how many rows the output has. */
#include <core/base/alloc.h>
#include <ops/kernel/family.h>
#include <ops/kernel/indices.h>
#include <ops/kernel/operands.h>
#include <ops/segment/segment_loops.h>

typedef struct sparse_segment_state {
  tn__segment_op op;
  tn__segment_loops loops;
} sparse_segment_state;

static tn_status create(const tn_operation *op, tn__segment_op how, void **state, tn_error *err)
{
  sparse_segment_state s = { .op = how };
  tn_dtype dtype = tn_operation_input_dtype(op, 0);
  *state = NULL;
  if (!tn__segment_loops_find(how, dtype, &s.loops)) return tn__no_kernel(err, op, dtype);
  return tn__keep_state(&s, sizeof s, "state of a segment reduction", state, err);
}

#define CREATE(name, how)                                                              \
  static tn_status name##_create(const tn_operation *op, void **state, tn_error *err)  \
  {                                                                                    \
    return create(op, TN__SEGMENT_##how, state, err);                                  \
  }
CREATE(sum, SUM)
CREATE(mean, MEAN)
CREATE(sqrtn, SQRTN)

static void destroy(void *state) { tn__free(state, sizeof(sparse_segment_state)); }

static tn_status bad_number(tn_error *err, const char *op, int64_t n)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %lld segments are wanted", op, (long long)n);
}

/* Input 3: the number of segments. */
static tn_status prepare_number(tn_prepare_ctx *ctx, tn_error *err)
{
  tn__shape out;
  tn_status st = tn__want_rank(ctx, 3, 0, err);
  if (st == TN_OK) st = tn__want_value(ctx, 3, err);
  if (st != TN_OK) return st;
  tn__shape_set(&out, ctx->inputs[0].dims, ctx->inputs[0].rank);
  out.dims[0] = tn__operand_int(&ctx->inputs[3], 0);
  if (out.dims[0] < 0) return bad_number(err, tn_operation_type(ctx->op), out.dims[0]);
  return tn_prepare_output(ctx, 0, out.dims, out.rank, err);
}

static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *data = &ctx->inputs[0], *indices = &ctx->inputs[1];
  tn_status st = tn__want_rank_at_least(ctx, 0, 1, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 1, 1, err);
  if (st == TN_OK) st = tn__want_same_shape(ctx, 1, 2, err);
  if (st != TN_OK) return st;
  double rows = (double)indices->count;
  ctx->cost_ns = 50 + rows * (4 + 0.5 * (double)tn__segment_inner(data));
  return ctx->n_inputs > 3 ? prepare_number(ctx, err) : tn_prepare_dynamic(ctx, 0, err);
}

static tn_status compute(tn_kernel_ctx *ctx)
{
  const sparse_segment_state *s = ctx->state;
  const tn_view *data = ctx->inputs[0], *indices = ctx->inputs[1], *ids = ctx->inputs[2];
  tn__shape out;
  tn__shape_set(&out, data->dims, data->rank);
  tn_status st = tn__segments_check(ctx, ids, &out.dims[0]);
  if (st == TN_OK) st = tn__indices_check(ctx->err, indices, data->dims[0]);
  if (st == TN_OK && ctx->n_inputs > 3 && out.dims[0] > ctx->outputs[0]->dims[0])
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "the last segment id is %lld, wanted less than %lld",
                        (long long)out.dims[0] - 1, (long long)ctx->outputs[0]->dims[0]);
  if (st == TN_OK && ctx->n_inputs == 3) st = tn_kernel_allocate(ctx, 0, out.dims, out.rank);
  if (st == TN_OK) tn__segments_run(ctx, s->op, &s->loops, data, indices, ids);
  return st;
}

static tn_status infer(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape data, indices, ids, scalar;
  const int64_t *number;
  tn_status st = tn__infer_rank_at_least(ctx, 0, 1, &data, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 1, 1, &indices, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 2, 1, &ids, err);
  if (st == TN_OK && tn_infer_n_inputs(ctx) > 3) st = tn__infer_rank(ctx, 3, 0, &scalar, err);
  if (st != TN_OK) return st;
  if (!tn__shape_merge(&ids, indices.dims, 1))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %lld indices have %lld segment ids", tn__infer_op(ctx),
                        (long long)indices.dims[0], (long long)ids.dims[0]);
  if (data.rank < 0) return tn__infer_set(ctx, 0, &data, err);
  data.dims[0] = -1;
  if (tn_infer_n_inputs(ctx) > 3 && tn_infer_input_ints(ctx, 3, &number) == 1 && number[0] != TN_UNKNOWN_INT) {
    if (number[0] < 0) return bad_number(err, tn__infer_op(ctx), number[0]);
    data.dims[0] = number[0];
  }
  return tn__infer_set(ctx, 0, &data, err);
}

/* ---- tables ---- */

#define IDS "; Tsegmentids: {int32, int64} = int32; sparse_gradient: bool = false"
#define OPS(name_, types, text)                                                                                     \
  { .struct_size = TN_OP_DEF_SIZE, .name = name_, .inputs = "data: T, indices: Tidx, segment_ids: Tsegmentids",     \
    .outputs = "output: T", .attrs = "T: " types "; Tidx: {int32, int64} = int32" IDS, .traits = TN_TRAIT_DYNAMIC,  \
    .infer = infer, .summary = text " of selected rows of each segment" },                                          \
  { .struct_size = TN_OP_DEF_SIZE, .name = name_ "WithNumSegments",                                                 \
    .inputs = "data: T, indices: Tidx, segment_ids: Tsegmentids, num_segments: Tnumsegments",                       \
    .outputs = "output: T",                                                                                         \
    .attrs = "T: " types "; Tidx: {int32, int64} = int32; Tnumsegments: {int32, int64} = int32" IDS,                \
    .shape_operands = 1u << 3, .infer = infer,                                                                      \
    .summary = text " of selected rows of each segment, of which there are num_segments" }
#define FLOATS "{bfloat16, half, float, double}"

static const tn_op_def ops[] = {
  OPS("SparseSegmentMean", FLOATS, "mean"),
  OPS("SparseSegmentSqrtN", FLOATS, "sum by the square root of their number"),
  OPS("SparseSegmentSum", "realnumbertype", "sum"),
};

#define KERNEL(which, title, fn)                                                                     \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title,                  \
    .rank = TN_RANK_C, .create = fn, .destroy = destroy, .prepare = prepare, .compute = compute }

static const tn_kernel_def kernels[] = {
  KERNEL("SparseSegmentMean", "sparse_segment_mean_cpu", mean_create),
  KERNEL("SparseSegmentMeanWithNumSegments", "sparse_segment_mean_n_cpu", mean_create),
  KERNEL("SparseSegmentSqrtN", "sparse_segment_sqrt_n_cpu", sqrtn_create),
  KERNEL("SparseSegmentSqrtNWithNumSegments", "sparse_segment_sqrt_n_n_cpu", sqrtn_create),
  KERNEL("SparseSegmentSum", "sparse_segment_sum_cpu", sum_create),
  KERNEL("SparseSegmentSumWithNumSegments", "sparse_segment_sum_n_cpu", sum_create),
};

TN_OP_FAMILY(sparse_segment)
