/* SPDX-License-Identifier: Apache-2.0 */
/* Slices picked by index: Gather GatherV2 GatherNd. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <ops/support/elements.h>
#include <ops/support/indices.h>
#include <ops/support/shapes.h>
#include <string.h>

/* ---- copies of pieces ---- */

typedef struct pair {
  uint64_t a, b;
} pair;

/* Piece number at[i] of `from`, for each of n places, one after the other to `to`. Pieces have `bytes` bytes. */
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

/* How the work falls apart: `blocks` blocks of n places each. Block b takes its indices from those of number
 * b / share on, and picks among `pool` pieces. Shape state of Gather. */
typedef struct gather_plan {
  int64_t blocks, share, n, pool;
  int64_t piece; /* elements */
} gather_plan;

static void free_plan(void *shape_state) { tn__free(shape_state, sizeof(gather_plan)); }

/* ---- Gather: the plan ---- */

/* Where the axis and the batch dimensions are for these ranks. */
static tn_status places(const char *op, int64_t axis_wanted, int64_t batch_wanted, int32_t rank, int32_t index_rank,
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

/* The output's shape; dimensions may be unknown. */
static tn_status gathered(const char *op, const tn__shape *params, const tn__shape *indices, int32_t axis,
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

/* Beside a dimension of 0 it may be too large: it wraps then, and is not used. */
static int64_t product(const int64_t *dims, int32_t from, int32_t to)
{
  uint64_t n = 1;
  for (int32_t i = from; i < to; i++) n *= (uint64_t)dims[i];
  return (int64_t)n;
}

static tn_status gather_axis(const tn_prepare_ctx *ctx, int64_t *axis, tn_error *err)
{
  *axis = 0;
  if (ctx->n_inputs < 3) return TN_OK;
  tn_status st = tn__want_rank(ctx, 2, 0, err);
  if (st != TN_OK) return st;
  if (ctx->inputs[2].data == NULL)
    return tn_error_set(err, TN_INTERNAL, "%s: the value of input 2 is not known", tn_operation_type(ctx->op));
  *axis = tn__view_int_at(&ctx->inputs[2], 0);
  return TN_OK;
}

static tn_status gather_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *p = &ctx->inputs[0], *x = &ctx->inputs[1];
  const char *op = tn_operation_type(ctx->op);
  tn__shape params, indices, out;
  tn__shape_set(&params, p->dims, p->rank);
  tn__shape_set(&indices, x->dims, x->rank);
  int64_t wanted;
  int32_t axis, batch;
  tn_status st = gather_axis(ctx, &wanted, err);
  if (st == TN_OK)
    st = places(op, wanted, tn__attr_int(ctx->op, "batch_dims", 0), p->rank, x->rank, &axis, &batch, err);
  if (st == TN_OK) st = gathered(op, &params, &indices, axis, batch, &out, err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 0, out.dims, out.rank, err);
  if (st != TN_OK) return st;
  gather_plan *s = tn__alloc(sizeof *s);
  if (s == NULL) return tn__no_memory(err, "plan of Gather", sizeof *s);
  ctx->shape_state = s;
  *s = (gather_plan){ .blocks = product(p->dims, 0, axis), .share = product(p->dims, batch, axis),
                      .n = product(x->dims, batch, x->rank), .pool = p->dims[axis],
                      .piece = product(p->dims, axis + 1, p->rank) };
  ctx->cost_ns = 20 + (double)s->blocks * (double)s->n * (1 + 0.1 * (double)s->piece);
  return TN_OK;
}

/* ---- Gather: the elements ---- */

typedef struct gather_run {
  const gather_plan *plan;
  const tn_view *indices;
  const char *in;
  char *out;
  tn_dtype dtype;
  size_t element;
  tn_error *err;
  tn_status status;
} gather_run;

/* Places [begin, end) of all blocks. Indices were checked. */
static void gather_part(void *user, int64_t begin, int64_t end)
{
  gather_run *r = user;
  const gather_plan *p = r->plan;
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

static tn_status gather_compute(tn_kernel_ctx *ctx)
{
  const gather_plan *p = ctx->shape_state;
  const tn_view *in = ctx->inputs[0], *indices = ctx->inputs[1];
  tn_view *out = ctx->outputs[0];
  if (out->count == 0) return TN_OK; /* the indices then may be any, as in TensorFlow */
  tn_status st = tn__indices_check(ctx->err, indices, p->pool);
  if (st != TN_OK) return st;
  gather_run r = { p, indices, in->data, out->data, in->dtype, tn_dtype_size(in->dtype), ctx->err, TN_OK };
  int64_t n = p->blocks * p->n;
  if (out->count <= TN__SERIAL_ELEMENTS || tn__dtype_is_managed(in->dtype))
    gather_part(&r, 0, n);
  else
    tn_parallel_for(ctx, n, TN__SERIAL_ELEMENTS / (p->piece + 1) + 1, 1 + 0.1 * (double)p->piece, gather_part, &r);
  return r.status;
}

/* Picking among sizes gives sizes. */
static tn_status infer_picked_ints(tn_infer_ctx *ctx, const tn__shape *out, tn_error *err)
{
  const int64_t *items, *at;
  int64_t n = tn_infer_input_ints(ctx, 0, &items), m = tn_infer_input_ints(ctx, 1, &at), picked[TN_MAX_INFER_INTS];
  tn_dtype dtype = tn_operation_output_dtype(tn_infer_operation(ctx), 0);
  bool fits = out->rank == 0 ? m == 1 : out->rank == 1 && m == out->dims[0];
  if (n < 0 || m < 0 || m > TN_MAX_INFER_INTS || !fits || (dtype != TN_INT32 && dtype != TN_INT64)) return TN_OK;
  for (int64_t i = 0; i < m; i++) picked[i] = at[i] >= 0 && at[i] < n ? items[at[i]] : TN_UNKNOWN_INT;
  return tn_infer_output_ints(ctx, 0, picked, m, err);
}

static tn_status infer_gather(tn_infer_ctx *ctx, tn_error *err)
{
  const char *op = tn__infer_op(ctx);
  tn__shape params, indices, out;
  int64_t wanted = 0, batch_wanted = tn__attr_int(tn_infer_operation(ctx), "batch_dims", 0);
  const int64_t *items;
  tn__shape_unknown(&out);
  tn_status st = tn__infer_rank_at_least(ctx, 0, 1, &params, err);
  tn__infer_get(ctx, 1, &indices);
  bool known = params.rank >= 0 && indices.rank >= 0;
  if (st == TN_OK && tn_infer_n_inputs(ctx) > 2) {
    st = tn__infer_rank(ctx, 2, 0, &out, err);
    tn__shape_unknown(&out);
    wanted = tn_infer_input_ints(ctx, 2, &items) == 1 ? items[0] : TN_UNKNOWN_INT;
  }
  if (st == TN_OK && known && wanted == TN_UNKNOWN_INT && batch_wanted >= 0 && batch_wanted <= indices.rank) {
    out.rank = 0; /* the rank is the same for any axis */
    for (int64_t i = 1; i < params.rank + indices.rank - batch_wanted; i++)
      if (!tn__shape_append(&out, -1)) break;
    if (out.rank != params.rank + indices.rank - batch_wanted - 1) tn__shape_unknown(&out);
  } else if (st == TN_OK && known && wanted != TN_UNKNOWN_INT) {
    int32_t axis, batch;
    st = places(op, wanted, batch_wanted, params.rank, indices.rank, &axis, &batch, err);
    if (st == TN_OK) st = gathered(op, &params, &indices, axis, batch, &out, err);
  }
  if (st == TN_OK) st = tn__infer_set(ctx, 0, &out, err);
  return st == TN_OK && params.rank == 1 && batch_wanted == 0 ? infer_picked_ints(ctx, &out, err) : st;
}

/* ---- GatherNd ---- */

/* indices [..., depth]: output [..., params' dimensions after the first `depth`]. */
static tn_status nd_shape(const char *op, const tn__shape *params, const tn__shape *indices, tn__shape *out,
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

static tn_status nd_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *p = &ctx->inputs[0], *x = &ctx->inputs[1];
  const char *op = tn_operation_type(ctx->op);
  tn__shape params, indices, out;
  tn__shape_set(&params, p->dims, p->rank);
  tn__shape_set(&indices, x->dims, x->rank);
  tn_status st = tn__want_rank_at_least(ctx, 0, 1, err);
  if (st == TN_OK) st = tn__want_rank_at_least(ctx, 1, 1, err);
  if (st == TN_OK) st = nd_shape(op, &params, &indices, &out, err);
  if (st != TN_OK) return st;
  int64_t n = product(x->dims, 0, x->rank - 1);
  if (n > 0 && p->count == 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 1 has indices, but input 0 has no elements", op);
  ctx->cost_ns = 20 + 3 * (double)n;
  return tn_prepare_output(ctx, 0, out.dims, out.rank, err);
}

typedef struct nd_run {
  const tn__index_space *space;
  const char *in;
  char *out;
  size_t element, bytes; /* of a piece */
} nd_run;

/* Pieces of plain elements whose indices were checked. */
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

/* One by one: elements that own memory, or indices outside that are let pass and give zeros. */
static tn_status nd_slowly(tn_kernel_ctx *ctx, const nd_run *r, int64_t n)
{
  tn_dtype dtype = ctx->outputs[0]->dtype;
  int64_t piece = (int64_t)(r->bytes / r->element);
  for (int64_t k = 0; k < n; k++) {
    int64_t at;
    tn__space_places(r->space, k, 1, &at);
    char *to = r->out + (size_t)k * r->bytes;
    if (at < 0) {
      if (!tn__dtype_is_managed(dtype)) memset(to, 0, r->bytes);
      continue;
    }
    tn_status st = tn__copy_elements(dtype, to, r->in + (size_t)at * r->bytes, piece, ctx->err);
    if (st != TN_OK) return st;
  }
  return TN_OK;
}

static tn_status nd_compute(tn_kernel_ctx *ctx)
{
  const tn__bad_indices *policy = ctx->state;
  const tn_view *in = ctx->inputs[0], *x = ctx->inputs[1];
  tn_view *out = ctx->outputs[0];
  tn__index_space space;
  tn__space_init(&space, x, in->dims);
  if (out->count == 0 && space.n == 0) return TN_OK;
  bool outside = tn__space_find_bad(&space) >= 0;
  if (outside && !policy->ignore) return tn__space_error(&space, ctx->err);
  if (out->count == 0) return TN_OK;
  nd_run r = { &space, in->data, out->data, tn_dtype_size(in->dtype), 0 };
  r.bytes = r.element * (size_t)(out->count / space.n);
  if (outside || tn__dtype_is_managed(in->dtype)) return nd_slowly(ctx, &r, space.n);
  if (out->count <= TN__SERIAL_ELEMENTS)
    nd_part(&r, 0, space.n);
  else
    tn_parallel_for(ctx, space.n, TN__SERIAL_ELEMENTS / (out->count / space.n + 1) + 1, 3, nd_part, &r);
  return TN_OK;
}

static tn_status infer_nd(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape params, indices, out;
  tn_status st = tn__infer_rank_at_least(ctx, 0, 1, &params, err);
  if (st == TN_OK) st = tn__infer_rank_at_least(ctx, 1, 1, &indices, err);
  if (st == TN_OK) st = nd_shape(tn__infer_op(ctx), &params, &indices, &out, err);
  return st != TN_OK ? st : tn__infer_set(ctx, 0, &out, err);
}

/* ---- tables ---- */

#define OP(op, in, attributes, operands, shapes, text)                                                           \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = "output: Tparams", .attrs = attributes,  \
    .shape_operands = operands, .infer = shapes, .summary = text }

static const tn_op_def ops[] = {
  OP("Gather", "params: Tparams, indices: Tindices",
     "validate_indices: bool = true; Tparams: type; Tindices: {int32, int64}", 0, infer_gather,
     "slices of params along its first dimension"),
  OP("GatherNd", "params: Tparams, indices: Tindices",
     "Tparams: type; Tindices: {int16, int32, int64}; bad_indices_policy: string = ''", 0, infer_nd,
     "slices of params at indices of several dimensions"),
  OP("GatherV2", "params: Tparams, indices: Tindices, axis: Taxis",
     "batch_dims: int = 0; Tparams: type; Tindices: {int16, int32, int64}; Taxis: {int32, int64}", 1u << 2,
     infer_gather, "slices of params along an axis"),
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "Gather", .device = "CPU", .name = "gather_cpu", .rank = TN_RANK_C,
    .prepare = gather_prepare, .destroy_shape_state = free_plan, .compute = gather_compute },
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "GatherNd", .device = "CPU", .name = "gather_nd_cpu", .rank = TN_RANK_C,
    .create = tn__bad_indices_create, .prepare = nd_prepare, .compute = nd_compute },
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "GatherV2", .device = "CPU", .name = "gather_v2_cpu", .rank = TN_RANK_C,
    .prepare = gather_prepare, .destroy_shape_state = free_plan, .compute = gather_compute },
};

extern const tn_op_family tn__ops_gather;
const tn_op_family tn__ops_gather = {
  .struct_size = TN_OP_FAMILY_SIZE,
  .name = "gather",
  .ops = ops,
  .n_ops = sizeof ops / sizeof ops[0],
  .kernels = kernels,
  .n_kernels = sizeof kernels / sizeof kernels[0],
};
