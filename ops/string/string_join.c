/* SPDX-License-Identifier: Apache-2.0 */
/* Joins texts: StringJoin ReduceJoin UnsortedSegmentJoin. */
#include <core/base/alloc.h>
#include <core/tensor/tensor_internal.h>
#include <ops/kernel/family.h>
#include <ops/kernel/operands.h>
#include <ops/kernel/poll.h>

#include <string.h>

/* ---- shared by the ops ---- */

/* The separator, borrowed from the node. */
typedef struct join_state {
  const char *separator;
  size_t n;
  bool keep_dims;
} join_state;

static void join_destroy(void *state) { tn__free(state, sizeof(join_state)); }

static tn_status join_create(const tn_operation *op, void **state, tn_error *err)
{
  join_state *s = tn__zalloc(sizeof *s);
  *state = NULL;
  if (s == NULL) return tn__no_memory(err, "kernel", sizeof *s);
  if (tn_operation_attr_string(op, "separator", &s->separator, &s->n, NULL) != TN_OK) s->separator = "", s->n = 0;
  s->keep_dims = tn__attr_bool(op, "keep_dims", false);
  *state = s;
  return TN_OK;
}

/* Joins n texts that are passed one after another. */
typedef struct joiner {
  const join_state *how;
  char *to;
  bool first;
} joiner;

static bool add_length(size_t *total, const join_state *how, const tn_string *part, bool first)
{
  size_t n;
  tn_string_data(part, &n);
  return tn__size_add(*total, n, total) && (first || tn__size_add(*total, how->n, total));
}

static void append(joiner *j, const tn_string *part)
{
  size_t n;
  const char *text = tn_string_data(part, &n);
  if (!j->first && j->how->n > 0) {
    memcpy(j->to, j->how->separator, j->how->n);
    j->to += j->how->n;
  }
  j->first = false;
  if (n > 0) memcpy(j->to, text, n);
  j->to += n;
}

static tn_status too_long(size_t total, tn_error *err) { return tn__no_memory(err, "joined text", total); }

/* ---- StringJoin ---- */

/* Scalars are joined with each element of the other inputs, which must have the same shape. */
static tn_status join_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  uint32_t shaped = UINT32_MAX;
  for (uint32_t i = 0; i < ctx->n_inputs; i++) {
    if (ctx->inputs[i].rank == 0) continue;
    if (shaped == UINT32_MAX) shaped = i;
    tn_status st = tn__want_same_shape(ctx, shaped, i, err);
    if (st != TN_OK) return st;
  }
  if (shaped == UINT32_MAX) return tn_prepare_output(ctx, 0, NULL, 0, err);
  ctx->cost_ns = 20 + 20 * (double)ctx->inputs[shaped].count * ctx->n_inputs;
  return tn_prepare_output_like(ctx, 0, shaped, err);
}

static const tn_string *part_at(const tn_view *v, int64_t i)
{
  return (const tn_string *)v->data + (v->rank == 0 ? 0 : i);
}

static tn_status join_compute(tn_kernel_ctx *ctx)
{
  joiner j = { .how = ctx->state };
  tn_string *out = ctx->outputs[0]->data;
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t i = 0; i < ctx->outputs[0]->count; i++) {
    if (tn__poll_over(&poll, 100)) return TN_CANCELLED;
    size_t total = 0;
    bool fits = true;
    for (uint32_t k = 0; fits && k < ctx->n_inputs; k++)
      fits = add_length(&total, j.how, part_at(ctx->inputs[k], i), k == 0);
    j.to = fits ? tn__string_reserve(out + i, total) : NULL;
    if (j.to == NULL) return too_long(total, ctx->err);
    j.first = true;
    for (uint32_t k = 0; k < ctx->n_inputs; k++) append(&j, part_at(ctx->inputs[k], i));
  }
  return TN_OK;
}

static tn_status infer_join(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape all, one;
  bool unknown = false;
  tn__shape_scalar(&all);
  for (size_t i = 0; i < tn_infer_n_inputs(ctx); i++) {
    tn__infer_get(ctx, i, &one);
    unknown |= one.rank < 0;
    if (one.rank <= 0) continue;
    if (all.rank == 0) all = one;
    else if (!tn__shape_merge(&all, one.dims, one.rank))
      return tn_error_set(err, TN_INVALID_ARGUMENT,
                          "StringJoin: input %zu has a different shape than the inputs before it", i);
  }
  if (unknown && all.rank == 0) tn__shape_unknown(&all);
  return tn__infer_set(ctx, 0, &all, err);
}

/* ---- ReduceJoin ---- */

/* Output element k joins the texts at its base plus each of the offsets. */
typedef struct reduce_plan {
  int32_t rank, n_axes;
  int32_t axes[TN_MAX_RANK]; /* in the order given: the first one varies fastest */
  bool joined[TN_MAX_RANK];
  int64_t n;                 /* texts per output element */
} reduce_plan;

static void reduce_destroy(void *state) { tn__free(state, sizeof(reduce_plan)); }

static tn_status read_axes(const tn_view *axes, int32_t rank, reduce_plan *p, tn_error *err)
{
  for (int64_t k = 0; k < axes->count; k++) {
    int64_t axis = tn__operand_int(axes, k);
    int64_t at = axis < 0 ? axis + rank : axis;
    if (at < 0 || at >= rank)
      return tn_error_set(err, TN_OUT_OF_RANGE, "ReduceJoin: axis %lld is outside [%d, %d)", (long long)axis, -rank,
                          rank);
    if (p->joined[at])
      return tn_error_set(err, TN_INVALID_ARGUMENT, "ReduceJoin: axis %lld is given twice", (long long)axis);
    p->joined[at] = true;
    p->axes[p->n_axes++] = (int32_t)at;
  }
  return TN_OK;
}

static tn_status reduce_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *x = &ctx->inputs[0];
  const join_state *s = ctx->state;
  tn__shape out = { .rank = 0 };
  tn_status st = ctx->inputs[1].count > 0 ? tn__want_value(ctx, 1, err) : TN_OK;
  if (st != TN_OK) return st;
  reduce_plan *p = tn__zalloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "plan of ReduceJoin", sizeof *p);
  ctx->shape_state = p;
  p->rank = x->rank;
  p->n = 1;
  st = read_axes(&ctx->inputs[1], x->rank, p, err);
  if (st != TN_OK) return st;
  for (int32_t d = 0; d < x->rank; d++) {
    if (p->joined[d] && s->keep_dims) tn__shape_append(&out, 1);
    if (!p->joined[d]) tn__shape_append(&out, x->dims[d]);
  }
  for (int32_t k = 0; k < p->n_axes; k++) p->n = p->n == 0 || x->dims[p->axes[k]] == 0 ? 0 : p->n * x->dims[p->axes[k]];
  ctx->cost_ns = 20 + 20 * (double)x->count;
  return tn_prepare_output(ctx, 0, out.dims, out.rank, err);
}

/* The offset of text k of an output element from its first text. */
static int64_t offset_of(const reduce_plan *p, const int64_t *dims, const int64_t *strides, int64_t k)
{
  int64_t at = 0;
  for (int32_t i = 0; i < p->n_axes; i++) {
    int64_t n = dims[p->axes[i]];
    at += k % n * strides[p->axes[i]];
    k /= n;
  }
  return at;
}

static tn_status reduce_one(const reduce_plan *p, const tn_view *x, const int64_t *strides, int64_t base, joiner *j,
                            tn_string *out, tn_error *err)
{
  const tn_string *from = (const tn_string *)x->data + base;
  size_t total = 0;
  bool fits = true;
  for (int64_t k = 0; fits && k < p->n; k++)
    fits = add_length(&total, j->how, from + offset_of(p, x->dims, strides, k), k == 0);
  j->to = fits ? tn__string_reserve(out, total) : NULL;
  if (j->to == NULL) return too_long(total, err);
  j->first = true;
  for (int64_t k = 0; k < p->n; k++) append(j, from + offset_of(p, x->dims, strides, k));
  return TN_OK;
}

static tn_status reduce_compute(tn_kernel_ctx *ctx)
{
  const reduce_plan *p = ctx->shape_state;
  const tn_view *x = ctx->inputs[0];
  joiner j = { .how = ctx->state };
  tn_string *out = ctx->outputs[0]->data;
  int64_t strides[TN_MAX_RANK], index[TN_MAX_RANK] = { 0 }, stride = 1, base = 0;
  for (int32_t d = p->rank - 1; d >= 0; d--) {
    strides[d] = stride;
    stride *= x->dims[d];
  }
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t i = 0; i < ctx->outputs[0]->count; i++) {
    if (tn__poll_over(&poll, 100)) return TN_CANCELLED;
    tn_status st = reduce_one(p, x, strides, base, &j, out + i, ctx->err);
    if (st != TN_OK) return st;
    for (int32_t d = p->rank - 1; d >= 0; d--) { /* next index */
      if (p->joined[d]) continue;
      base += strides[d];
      if (++index[d] < x->dims[d]) break;
      base -= strides[d] * index[d];
      index[d] = 0;
    }
  }
  return TN_OK;
}

/* ---- UnsortedSegmentJoin ---- */

static tn_status segment_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *x = &ctx->inputs[0], *ids = &ctx->inputs[1];
  tn__shape out = { .rank = 0 };
  tn_status st = tn__want_rank(ctx, 2, 0, err);
  if (st == TN_OK) st = tn__want_value(ctx, 2, err);
  if (st == TN_OK) st = tn__want_rank_at_least(ctx, 1, 1, err);
  if (st != TN_OK) return st;
  bool prefix = ids->rank <= x->rank;
  for (int32_t d = 0; prefix && d < ids->rank; d++) prefix = ids->dims[d] == x->dims[d];
  if (!prefix) return tn__shape_error(err, ctx, 1, x->dims, ids->rank < x->rank ? ids->rank : x->rank);
  int64_t n = tn__operand_int(&ctx->inputs[2], 0);
  if (n < 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "UnsortedSegmentJoin: num_segments is %lld, wanted 0 or more",
                        (long long)n);
  tn__shape_append(&out, n);
  for (int32_t d = ids->rank; d < x->rank; d++) tn__shape_append(&out, x->dims[d]);
  ctx->cost_ns = 20 + 40 * (double)x->count;
  return tn_prepare_output(ctx, 0, out.dims, out.rank, err);
}

/* Appends the separator and one more text to an element. */
static tn_status extend(tn_string *to, const join_state *how, const tn_string *part, tn_error *err)
{
  tn_string whole = { .u = { .small = { 0 } } };
  size_t total = 0;
  joiner j = { .how = how, .first = true };
  tn_string_data(to, &total);
  bool begun = total > 0, fits = add_length(&total, how, part, !begun);
  j.to = fits ? tn__string_reserve(&whole, total) : NULL;
  if (j.to == NULL) return too_long(total, err);
  if (begun) append(&j, to);
  append(&j, part);
  tn_string_clear(to);
  *to = whole;
  return TN_OK;
}

/* As in TensorFlow, the separator is omitted as long as all texts of a segment were empty. */
static tn_status segment_compute(tn_kernel_ctx *ctx)
{
  const tn_view *x = ctx->inputs[0], *ids = ctx->inputs[1], *out = ctx->outputs[0];
  int64_t segments = out->dims[0], inner = ids->count == 0 ? 0 : x->count / ids->count;
  const tn_string *from = x->data;
  tn_string *to = out->data;
  tn_status st = TN_OK;
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t i = 0; i < ids->count; i++) {
    if (tn__poll_over(&poll, 100)) return TN_CANCELLED;
    int64_t id = tn__operand_int(ids, i);
    if (id < 0 || id >= segments)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                          "UnsortedSegmentJoin: segment %lld at %lld is outside [0, %lld)", (long long)id, (long long)i,
                          (long long)segments);
  }
  for (int64_t i = 0; i < out->count; i++) {
    if (tn__poll_over(&poll, 100)) return TN_CANCELLED;
    tn_string_clear(to + i);
  }
  for (int64_t i = 0; st == TN_OK && i < ids->count; i++) {
    if (tn__poll_over(&poll, 100)) return TN_CANCELLED;
    for (int64_t k = 0; st == TN_OK && k < inner; k++)
      st = extend(to + tn__operand_int(ids, i) * inner + k, ctx->state, from + i * inner + k, ctx->err);
  }
  return st;
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "StringJoin", .inputs = "inputs: N * string", .outputs = "output: string",
    .attrs = "N: int >= 0; separator: string = ''", .infer = infer_join,
    .summary = "concatenates strings element by element" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "ReduceJoin", .inputs = "inputs: string, reduction_indices: int32",
    .outputs = "output: string", .attrs = "keep_dims: bool = false; separator: string = ''", .shape_operands = 1u << 1,
    .infer = tn__infer_unknown, .summary = "concatenates strings along axes" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "UnsortedSegmentJoin",
    .inputs = "inputs: string, segment_ids: Tindices, num_segments: Tnumsegments", .outputs = "output: string",
    .attrs = "separator: string = ''; Tindices: {int32, int64}; Tnumsegments: {int32, int64} = int32",
    .shape_operands = 1u << 2, .infer = tn__infer_unknown, .summary = "concatenates the strings of each segment" },
};

#define KERNEL(which, title, ready, free_ready, run)                                                         \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C,        \
    .create = join_create, .destroy = join_destroy, .prepare = ready, .destroy_shape_state = free_ready,      \
    .compute = run }

static const tn_kernel_def kernels[] = {
  KERNEL("StringJoin", "string_join_cpu", join_prepare, NULL, join_compute),
  KERNEL("ReduceJoin", "reduce_join_cpu", reduce_prepare, reduce_destroy, reduce_compute),
  KERNEL("UnsortedSegmentJoin", "unsorted_segment_join_cpu", segment_prepare, NULL, segment_compute),
};

TN_OP_FAMILY(string_join)
