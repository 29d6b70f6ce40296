/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions of sparse tensors: SparseReduceSum SparseReduceMax, whose results are dense, SparseReduceSumSparse
 * SparseReduceMaxSparse, whose results are sparse, and SparseSoftmax. Entries are sorted, by the dimensions that remain
 * first, so that those of one result follow each other. */
#include <core/base/alloc.h>
#include <math.h>
#include <ops/kernel/elements/half.h>
#include <ops/kernel/family.h>
#include <ops/kernel/operands.h>
#include <ops/segment/segment_loops.h>
#include <ops/sparse/sparse.h>
#include <string.h>

/* ---- reductions ---- */

typedef struct reduce_state {
  tn__segment_loops loops;
  bool keep;
} reduce_state;

static tn_status create(const tn_operation *op, tn__segment_op how, void **state, tn_error *err)
{
  reduce_state s = { .keep = tn__attr_bool(op, "keep_dims", false) };
  tn_dtype dtype = tn_operation_input_dtype(op, 1);
  *state = NULL;
  if (!tn__segment_loops_find(how, dtype, &s.loops)) return tn__no_kernel(err, op, dtype);
  return tn__keep_state(&s, sizeof s, "state of a reduction", state, err);
}

static tn_status sum_create(const tn_operation *op, void **state, tn_error *err)
{
  return create(op, TN__SEGMENT_SUM, state, err);
}

static tn_status max_create(const tn_operation *op, void **state, tn_error *err)
{
  return create(op, TN__SEGMENT_MAX, state, err);
}

static void destroy(void *state) { tn__free(state, sizeof(reduce_state)); }

static tn_status reduce_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_sparse(ctx, 0, 1, 2, err);
  if (st == TN_OK && ctx->inputs[3].rank > 1) st = tn__want_rank(ctx, 3, 1, err);
  if (st == TN_OK) st = tn__sparse_sort_scratch(ctx, 0, err);
  ctx->cost_ns = 100 + 30 * (double)ctx->inputs[1].count;
  return st == TN_OK ? tn__prepare_all_dynamic(ctx, err) : st;
}

/* What remains: order[0..kept) are the dimensions that are kept, and the others follow. */
typedef struct plan {
  int32_t order[TN_MAX_RANK], kept;
  tn__shape out;
} plan;

static tn_status plan_reduction(const tn_kernel_ctx *ctx, plan *p)
{
  const reduce_state *s = ctx->state;
  const tn_view *axes = ctx->inputs[3];
  bool reduced[TN_MAX_RANK] = { false };
  tn__shape shape;
  tn_status st = tn__sparse_shape(ctx, 2, &shape);
  for (int64_t k = 0; st == TN_OK && k < axes->count; k++) {
    int32_t axis;
    st = tn__shape_axis("SparseReduce", tn__operand_int(axes, k), shape.rank, &axis, ctx->err);
    if (st == TN_OK) reduced[axis] = true;
  }
  if (st != TN_OK) return st;
  p->kept = p->out.rank = 0;
  for (int32_t d = 0; d < shape.rank; d++) {
    if (!reduced[d]) p->order[p->kept++] = d;
    if (!reduced[d] || s->keep) p->out.dims[p->out.rank++] = reduced[d] ? 1 : shape.dims[d];
  }
  for (int32_t d = 0, k = p->kept; d < shape.rank; d++)
    if (reduced[d]) p->order[k++] = d;
  return TN_OK;
}

/* Sorted entries; groups of them have equal indices in the dimensions that are kept. */
typedef struct groups {
  tn__int_rows rows;
  const int64_t *sorted; /* NULL: as they are */
} groups;

static tn_status sort_entries(tn_kernel_ctx *ctx, const plan *p, groups *g)
{
  g->rows = tn__sparse_rows(ctx->inputs[0]);
  g->rows.order = p->order;
  tn_status st = tn__sparse_sort(ctx, &g->rows, &g->sorted);
  g->rows.keys = p->kept;
  return st;
}

static int64_t entry(const groups *g, int64_t k) { return g->sorted == NULL ? k : g->sorted[k]; }

static int64_t group_end(const groups *g, int64_t from)
{
  int64_t to = from + 1;
  while (to < g->rows.n && tn__int_rows_compare(&g->rows, entry(g, from), entry(g, to)) == 0) to++;
  return to;
}

/* Element `at` of `out` becomes the result of a group. */
static void reduce_group(const tn_kernel_ctx *ctx, const groups *g, int64_t from, int64_t to, tn_view *out, int64_t at)
{
  const reduce_state *s = ctx->state;
  const tn_view *values = ctx->inputs[1];
  _Alignas(16) char acc[TN__SEGMENT_ACC_MAX];
  size_t size = tn_dtype_size(out->dtype);
  if (to - from == 1) {
    tn__copy_value(out, at, values, entry(g, from), ctx->err);
    return;
  }
  s->loops.start(acc, 1);
  if (g->sorted != NULL) s->loops.add(acc, values->data, g->sorted + from, to - from, 1, 1);
  else s->loops.add(acc, (const char *)values->data + (size_t)from * size, NULL, to - from, 1, 1);
  s->loops.finish((char *)out->data + (size_t)at * size, acc, 1, to - from);
}

static tn_status dense_compute(tn_kernel_ctx *ctx)
{
  plan p;
  groups g;
  tn_status st = plan_reduction(ctx, &p);
  if (st == TN_OK) st = sort_entries(ctx, &p, &g);
  if (st == TN_OK) st = tn_kernel_allocate(ctx, 0, p.out.dims, p.out.rank);
  if (st != TN_OK) return st;
  tn_view *out = ctx->outputs[0];
  const int64_t *dims = ctx->inputs[2]->data;
  tn__poll poll = tn__poll_of(ctx);
  if (out->count > 0) memset(out->data, 0, (size_t)out->count * tn_dtype_size(out->dtype));
  for (int64_t from = 0, to; from < g.rows.n; from = to) {
    to = group_end(&g, from);
    if (tn__poll_over(&poll, 10 * (to - from))) return TN_CANCELLED;
    const int64_t *index = g.rows.at + entry(&g, from) * g.rows.width;
    uint64_t place = 0;
    for (int32_t k = 0; k < p.kept; k++) place = place * (uint64_t)dims[p.order[k]] + (uint64_t)index[p.order[k]];
    if (place >= (uint64_t)out->count)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "index %lld is outside of the result",
                          (long long)entry(&g, from));
    reduce_group(ctx, &g, from, to, out, (int64_t)place);
  }
  return TN_OK;
}

static tn_status sparse_compute(tn_kernel_ctx *ctx)
{
  const reduce_state *s = ctx->state;
  plan p;
  groups g;
  int64_t n = 0;
  tn_status st = plan_reduction(ctx, &p);
  if (st == TN_OK) st = sort_entries(ctx, &p, &g);
  for (int64_t from = 0; st == TN_OK && from < g.rows.n; from = group_end(&g, from)) n++;
  if (st == TN_OK) st = tn__give_entries(ctx, 0, n, p.out.rank);
  if (st == TN_OK) st = tn__give_ints(ctx, 2, p.out.dims, p.out.rank);
  if (st != TN_OK) return st;
  int64_t *to_index = ctx->outputs[0]->data, at = 0;
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t from = 0, to; from < g.rows.n; from = to, at++, to_index += p.out.rank) {
    to = group_end(&g, from);
    if (tn__poll_over(&poll, 10 * (to - from))) return TN_CANCELLED;
    const int64_t *index = g.rows.at + entry(&g, from) * g.rows.width;
    for (int32_t d = 0; d < p.out.rank; d++) to_index[d] = 0;
    for (int32_t k = 0; k < p.kept; k++) to_index[s->keep ? p.order[k] : k] = index[p.order[k]];
    reduce_group(ctx, &g, from, to, ctx->outputs[1], at);
  }
  return TN_OK;
}

static tn_status infer_reduce(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t *axes, *unused;
  int64_t n, rank, kept = -1;
  tn_status st = tn__infer_sparse(ctx, 0, 1, 2, &n, &rank, err);
  int32_t axes_rank = tn_infer_input(ctx, 3, &unused);
  if (st == TN_OK && axes_rank > 1)
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the axes have rank %d", tn__infer_op(ctx), (int)axes_rank);
  if (st != TN_OK) return st;
  int64_t n_axes = tn_infer_input_ints(ctx, 3, &axes);
  if (tn__attr_bool(tn_infer_operation(ctx), "keep_dims", false)) kept = rank;
  else if (n_axes == 0) kept = rank;
  if (tn_operation_n_outputs(tn_infer_operation(ctx)) == 3) return tn__infer_sparse_output(ctx, 0, -1, kept, err);
  tn__shape out;
  tn__shape_unknown(&out);
  if (kept >= 0 && kept <= TN_MAX_RANK) {
    out.rank = (int32_t)kept;
    for (int32_t d = 0; d < out.rank; d++) out.dims[d] = -1;
  }
  return tn__infer_set(ctx, 0, &out, err);
}

/* ---- SparseSoftmax ---- */

static tn_status softmax_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_sparse(ctx, 0, 1, 2, err);
  if (st == TN_OK && ctx->inputs[2].count < 2)
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: a sparse tensor of rank %lld, wanted 2 or more",
                      tn_operation_type(ctx->op), (long long)ctx->inputs[2].count);
  if (st == TN_OK) st = tn__sparse_sort_scratch(ctx, 0, err);
  ctx->cost_ns = 100 + 40 * (double)ctx->inputs[1].count;
  return st == TN_OK ? tn_prepare_output_like(ctx, 0, 1, err) : st;
}

/* The softmax of a group; values are in the order of the sorted entries. */
#define SOFTMAX(name, S, C, load, store, exp_)                                                                \
  static void softmax_##name(const void *values, const groups *g, int64_t from, int64_t to, void *out_)      \
  {                                                                                                           \
    const S *x = values;                                                                                      \
    S *out = out_;                                                                                            \
    C most = load(x[entry(g, from)]), sum = 0;                                                                \
    for (int64_t k = from; k < to; k++) most = load(x[entry(g, k)]) > most ? load(x[entry(g, k)]) : most;     \
    for (int64_t k = from; k < to; k++) sum += exp_(load(x[entry(g, k)]) - most);                             \
    for (int64_t k = from; k < to; k++) out[k] = store(exp_(load(x[entry(g, k)]) - most) * (1 / sum));        \
  }
#define SAME(x) (x)
SOFTMAX(f32, float, float, SAME, SAME, expf)
SOFTMAX(f64, double, double, SAME, SAME, exp)
SOFTMAX(f16, uint16_t, float, tn__half_to_float, tn__half_from_float, expf)

static tn_status softmax_compute(tn_kernel_ctx *ctx)
{
  const tn_view *values = ctx->inputs[1];
  tn__shape shape;
  groups g = { tn__sparse_rows(ctx->inputs[0]), NULL };
  tn__poll poll = tn__poll_of(ctx);
  tn_status st = tn__sparse_shape(ctx, 2, &shape);
  if (st == TN_OK) st = tn__sparse_sort(ctx, &g.rows, &g.sorted);
  if (st != TN_OK) return st;
  g.rows.keys--;
  for (int64_t from = 0, to; from < g.rows.n; from = to) {
    to = group_end(&g, from);
    if (tn__poll_over(&poll, 30 * (to - from))) return TN_CANCELLED;
    if (values->dtype == TN_FLOAT) softmax_f32(values->data, &g, from, to, ctx->outputs[0]->data);
    else if (values->dtype == TN_DOUBLE) softmax_f64(values->data, &g, from, to, ctx->outputs[0]->data);
    else softmax_f16(values->data, &g, from, to, ctx->outputs[0]->data);
  }
  return TN_OK;
}

static tn_status infer_softmax(tn_infer_ctx *ctx, tn_error *err)
{
  int64_t n, rank;
  tn_status st = tn__infer_sparse(ctx, 0, 1, 2, &n, &rank, err);
  return st == TN_OK ? tn_infer_output(ctx, 0, &n, 1, err) : st;
}

/* ---- tables ---- */

#define IN "input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32"
#define OPS(op, types, text)                                                                                    \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = IN, .outputs = "output: T",                            \
    .attrs = "keep_dims: bool = false; T: " types, .traits = TN_TRAIT_DYNAMIC, .infer = infer_reduce,           \
    .summary = text " of a sparse tensor over some dimensions" },                                               \
  { .struct_size = TN_OP_DEF_SIZE, .name = op "Sparse", .inputs = IN,                                           \
    .outputs = "output_indices: int64, output_values: T, output_shape: int64",                                  \
    .attrs = "keep_dims: bool = false; T: " types, .traits = TN_TRAIT_DYNAMIC, .infer = infer_reduce,           \
    .summary = text " of a sparse tensor over some dimensions, as a sparse tensor" }

static const tn_op_def ops[] = {
  OPS("SparseReduceMax", "realnumbertype", "maximum"),
  OPS("SparseReduceSum", "{numbertype, qint16, quint16}", "sum"),
  { .struct_size = TN_OP_DEF_SIZE, .name = "SparseSoftmax",
    .inputs = "sp_indices: int64, sp_values: T, sp_shape: int64", .outputs = "output: T",
    .attrs = "T: {half, float, double}", .infer = infer_softmax,
    .summary = "softmax of the entries of each row of a sparse tensor" },
};

#define KERNEL(which, constraint, title, fn, compute_fn)                                                          \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .types = constraint, .name = title,          \
    .rank = TN_RANK_C, .create = fn, .destroy = destroy, .prepare = reduce_prepare, .compute = compute_fn }
#define NUMBER_TYPES                                                                                            \
  "T=float|double|half|bfloat16|int8|uint8|int16|uint16|int32|uint32|int64|uint64|complex64|complex128"

static const tn_kernel_def kernels[] = {
  KERNEL("SparseReduceMax", NULL, "sparse_reduce_max_cpu", max_create, dense_compute),
  KERNEL("SparseReduceMaxSparse", NULL, "sparse_reduce_max_sparse_cpu", max_create, sparse_compute),
  KERNEL("SparseReduceSum", NUMBER_TYPES, "sparse_reduce_sum_cpu", sum_create, dense_compute),
  KERNEL("SparseReduceSumSparse", NUMBER_TYPES, "sparse_reduce_sum_sparse_cpu", sum_create, sparse_compute),
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "SparseSoftmax", .device = "CPU", .name = "sparse_softmax_cpu",
    .rank = TN_RANK_C, .prepare = softmax_prepare, .compute = softmax_compute },
};

TN_OP_FAMILY(sparse_reduce)
