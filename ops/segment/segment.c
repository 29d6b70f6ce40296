/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions of the rows of a tensor by sorted segment ids: SegmentSum SegmentMean SegmentProd SegmentMax SegmentMin.
 */
#include <core/base/alloc.h>
#include <ops/kernel/family.h>
#include <ops/segment/segment_loops.h>

typedef struct segment_state {
  tn__segment_op op;
  tn__segment_loops loops;
} segment_state;

static tn_status create(const tn_operation *op, tn__segment_op how, void **state, tn_error *err)
{
  segment_state s = { .op = how };
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
CREATE(prod, PROD)
CREATE(max, MAX)
CREATE(min, MIN)

static void destroy(void *state) { tn__free(state, sizeof(segment_state)); }

static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *data = &ctx->inputs[0], *ids = &ctx->inputs[1];
  tn_status st = tn__want_rank_at_least(ctx, 0, 1, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 1, 1, err);
  if (st != TN_OK) return st;
  if (ids->count != data->dims[0]) return tn__shape_error(err, ctx, 1, data->dims, 1);
  ctx->cost_ns = 50 + 3 * (double)ids->count + 0.5 * (double)data->count;
  return tn_prepare_dynamic(ctx, 0, err);
}

static tn_status compute(tn_kernel_ctx *ctx)
{
  const segment_state *s = ctx->state;
  const tn_view *data = ctx->inputs[0], *ids = ctx->inputs[1];
  tn__shape out;
  tn__shape_set(&out, data->dims, data->rank);
  tn_status st = tn__segments_check(ctx, ids, &out.dims[0]);
  if (st == TN_OK) st = tn_kernel_allocate(ctx, 0, out.dims, out.rank);
  if (st == TN_OK) tn__segments_run(ctx, s->op, &s->loops, data, NULL, ids);
  return st;
}

static tn_status infer(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape data, ids;
  tn_status st = tn__infer_rank_at_least(ctx, 0, 1, &data, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 1, 1, &ids, err);
  if (st == TN_OK && data.rank > 0) data.dims[0] = -1;
  return st == TN_OK ? tn__infer_set(ctx, 0, &data, err) : st;
}

/* ---- tables ---- */

#define OP(op, types, text)                                                                                 \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = "data: T, segment_ids: Tindices",                  \
    .outputs = "output: T", .attrs = "T: " types "; Tindices: {int32, int64}", .traits = TN_TRAIT_DYNAMIC,  \
    .infer = infer, .summary = text }
#define T_NUMBERS "{numbertype, qint16, quint16}"

static const tn_op_def ops[] = {
  OP("SegmentMax", "realnumbertype", "maximum of the rows of each segment"),
  OP("SegmentMean", T_NUMBERS, "mean of the rows of each segment"),
  OP("SegmentMin", "realnumbertype", "minimum of the rows of each segment"),
  OP("SegmentProd", T_NUMBERS, "product of the rows of each segment"),
  OP("SegmentSum", T_NUMBERS, "sum of the rows of each segment"),
};

#define KERNEL(which, constraint, title, fn)                                                              \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .types = constraint, .name = title,  \
    .rank = TN_RANK_C, .create = fn, .destroy = destroy, .prepare = prepare, .compute = compute }
#define REAL_TYPES "T=float|double|half|bfloat16|int8|uint8|int16|uint16|int32|uint32|int64|uint64"
#define NUMBER_TYPES REAL_TYPES "|complex64|complex128"

static const tn_kernel_def kernels[] = {
  KERNEL("SegmentMax", NULL, "segment_max_cpu", max_create),
  KERNEL("SegmentMean", NUMBER_TYPES, "segment_mean_cpu", mean_create),
  KERNEL("SegmentMin", NULL, "segment_min_cpu", min_create),
  KERNEL("SegmentProd", NUMBER_TYPES, "segment_prod_cpu", prod_create),
  KERNEL("SegmentSum", NUMBER_TYPES, "segment_sum_cpu", sum_create),
};

TN_OP_FAMILY(segment)
