/* SPDX-License-Identifier: Apache-2.0 */
/* Reversed dimensions: Reverse ReverseV2, and ReverseSequence, in which each row has its own
 * length. The list of dimensions rarely changes from step to step: if prepare knows it, the copy is
 * planned there. */
#include <core/base/alloc.h>
#include <ops/kernel/family.h>
#include <ops/kernel/move/strided.h>
#include <ops/kernel/shapes.h>
#include <string.h>

#include <core/tensor/tensor_internal.h>

#define MAX_REVERSE_RANK 8 /* TensorFlow's limit */
#define MAX_SEQUENCE_RANK 5

/* ---- which dimensions ---- */

/* Marks the dimensions named by a list of axes. */
static tn_status axes_of(const char *op, const int64_t *axes, int64_t n, int32_t rank, bool *back, tn_error *err)
{
  for (int32_t i = 0; i < rank; i++) back[i] = false;
  for (int64_t k = 0; k < n; k++) {
    int32_t at;
    tn_status st = tn__shape_axis(op, axes[k], rank, &at, err);
    if (st != TN_OK) return st;
    if (back[at]) return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 1 names axis %d twice", op, (int)at);
    back[at] = true;
  }
  return TN_OK;
}

static tn_status read_axes(const char *op, const tn_view *axes, int32_t rank, bool *back, tn_error *err)
{
  int64_t items[MAX_REVERSE_RANK + 1], n = axes->count;
  if (axes->dtype == TN_BOOL) {
    for (int32_t i = 0; i < rank; i++) back[i] = ((const uint8_t *)axes->data)[i] != 0;
    return TN_OK;
  }
  /* One axis too many is enough to find an error: it is out of range or a repetition. */
  if (n > rank + 1) n = rank + 1;
  for (int64_t k = 0; k < n; k++) items[k] = tn__view_int_at(axes, k);
  return axes_of(op, items, n, rank, back, err);
}

static tn_status infer_reverse(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape in, list;
  const char *op = tn__infer_op(ctx);
  const tn_tensor *value;
  int64_t n;
  tn__infer_get(ctx, 0, &in);
  tn_status st = tn__infer_rank(ctx, 1, 1, &list, err);
  if (st != TN_OK) return st;
  if (in.rank > MAX_REVERSE_RANK)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 0 has rank %d, at most %d is supported", op, (int)in.rank,
                        MAX_REVERSE_RANK);
  if (strcmp(op, "Reverse") == 0) {
    if (in.rank >= 0 && list.dims[0] >= 0 && list.dims[0] != in.rank)
      return tn_error_set(err, TN_INVALID_ARGUMENT,
                          "%s: input 1 has an element for each of %lld dimensions, input 0 has %d", op,
                          (long long)list.dims[0], (int)in.rank);
  } else if (in.rank > 0 && tn__infer_ints(ctx, 1, &value, &n)) {
    bool back[MAX_REVERSE_RANK];
    int64_t items[MAX_REVERSE_RANK + 1];
    if (n > in.rank + 1) n = in.rank + 1;
    for (int64_t k = 0; k < n; k++) items[k] = tn__tensor_int_at(value, k);
    st = axes_of(op, items, n, in.rank, back, err);
    if (st != TN_OK) return st;
  }
  return tn__infer_set(ctx, 0, &in, err);
}

/* ---- Reverse ---- */

typedef struct reverse_plan {
  tn__strided copy;
  int64_t first; /* index of the input element that is first in the output */
} reverse_plan;

static void plan_reverse(reverse_plan *p, const tn_view *in, const bool *back)
{
  int64_t steps[MAX_REVERSE_RANK], step = 1;
  tn__strided_init(&p->copy, in->dtype);
  p->first = 0;
  for (int32_t i = in->rank - 1; i >= 0; i--) {
    steps[i] = step;
    step *= in->dims[i];
    if (back[i]) p->first += (in->dims[i] - 1) * steps[i];
  }
  for (int32_t i = 0; i < in->rank; i++)
    tn__strided_add(&p->copy, in->dims[i], back[i] ? -steps[i] : steps[i], steps[i]);
  tn__strided_plan(&p->copy);
}

static tn_status check_list(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0], *list = &ctx->inputs[1];
  const char *op = tn_operation_type(ctx->op);
  tn_status st = tn__want_rank(ctx, 1, 1, err);
  if (st != TN_OK) return st;
  if (list->dtype == TN_BOOL && list->count != in->rank)
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "%s: input 1 has an element for each of %lld dimensions, input 0 has %d", op,
                        (long long)list->count, (int)in->rank);
  if (in->rank > MAX_REVERSE_RANK)
    return tn_error_set(err, TN_UNIMPLEMENTED, "%s: input 0 has rank %d, at most %d is supported", op, (int)in->rank,
                        MAX_REVERSE_RANK);
  return TN_OK;
}

static tn_status reverse_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0], *list = &ctx->inputs[1];
  tn_status st = tn_prepare_output_like(ctx, 0, 0, err);
  if (st != TN_OK) return st;
  /* A scalar is passed through without checking the list. */
  if (in->rank == 0) return tn_prepare_view(ctx, 0, 0, err);
  st = check_list(ctx, err);
  if (st != TN_OK) return st;
  if (in->count == 0) return tn_prepare_view(ctx, 0, 0, err);
  ctx->cost_ns = 50 + (double)in->count;
  if (list->count > 0 && list->data == NULL) return TN_OK;
  bool back[MAX_REVERSE_RANK], any = false;
  st = read_axes(tn_operation_type(ctx->op), list, in->rank, back, err);
  if (st != TN_OK) return st;
  for (int32_t i = 0; i < in->rank; i++) any |= back[i] && in->dims[i] > 1;
  if (!any) return tn_prepare_view(ctx, 0, 0, err);
  reverse_plan *p = tn__alloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "the plan of a reversal", sizeof *p);
  ctx->shape_state = p;
  plan_reverse(p, in, back);
  ctx->cost_ns = p->copy.cost_ns;
  return TN_OK;
}

static void reverse_destroy_plan(void *plan) { tn__free(plan, sizeof(reverse_plan)); }

static tn_status reverse_compute(tn_kernel_ctx *ctx)
{
  const tn_view *in = ctx->inputs[0];
  const reverse_plan *p = ctx->shape_state;
  reverse_plan here;
  if (in->count == 0) return TN_OK;
  if (p == NULL) {
    bool back[MAX_REVERSE_RANK];
    const char *op = ctx->inputs[1]->dtype == TN_BOOL ? "Reverse" : "ReverseV2";
    tn_status st = read_axes(op, ctx->inputs[1], in->rank, back, ctx->err);
    if (st != TN_OK) return st;
    plan_reverse(&here, in, back);
    p = &here;
  }
  return tn__strided_run(&p->copy, ctx, (const char *)in->data + p->first * (int64_t)p->copy.element,
                         ctx->outputs[0]->data);
}

/* ---- ReverseSequence ---- */

/* The two dimensions of the operand. The others are merged into those before, between and after
 * these two. */
typedef struct sequence {
  int32_t seq, batch;
} sequence;

/* The attributes, for an input of rank `rank`. */
static tn_status read_sequence(const tn_operation *op, int32_t rank, sequence *s, tn_error *err)
{
  int64_t seq = tn__attr_int(op, "seq_dim", 0), batch = tn__attr_int(op, "batch_dim", 0);
  const char *type = tn_operation_type(op);
  if (seq < 0 || seq >= rank)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: seq_dim %lld is outside [0, %d)", type, (long long)seq,
                        (int)rank);
  if (batch < 0 || batch >= rank)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: batch_dim %lld is outside [0, %d)", type, (long long)batch,
                        (int)rank);
  if (seq == batch)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: seq_dim and batch_dim are both %lld", type, (long long)seq);
  *s = (sequence){ (int32_t)seq, (int32_t)batch };
  return TN_OK;
}

static tn_status infer_sequence(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape in, lengths;
  sequence s;
  tn__infer_get(ctx, 0, &in);
  tn_status st = tn__infer_rank(ctx, 1, 1, &lengths, err);
  if (st != TN_OK || in.rank < 0) return st != TN_OK ? st : tn__infer_set(ctx, 0, &in, err);
  st = read_sequence(tn_infer_operation(ctx), in.rank, &s, err);
  if (st != TN_OK) return st;
  if (!tn__dim_merge(&in.dims[s.batch], lengths.dims[0]))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: there are %lld lengths for a batch of %lld", tn__infer_op(ctx),
                        (long long)lengths.dims[0], (long long)in.dims[s.batch]);
  return tn__infer_set(ctx, 0, &in, err);
}

typedef struct sequence_plan {
  int64_t batch, batch_step;
  int64_t seq, seq_step;
  int64_t outer, outer_step; /* dimensions before both */
  int64_t middle, middle_step;
  int64_t inner;
  double cost_ns; /* of one row */
} sequence_plan;

static tn_status sequence_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0];
  const char *op = tn_operation_type(ctx->op);
  sequence s;
  tn_status st = tn_prepare_output_like(ctx, 0, 0, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 1, 1, err);
  if (st == TN_OK) st = read_sequence(ctx->op, in->rank, &s, err);
  if (st != TN_OK) return st;
  if (in->rank > MAX_SEQUENCE_RANK)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 0 has rank %d, wanted at most %d", op, (int)in->rank,
                        MAX_SEQUENCE_RANK);
  if (ctx->inputs[1].count != in->dims[s.batch])
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: there are %lld lengths for a batch of %lld", op,
                        (long long)ctx->inputs[1].count, (long long)in->dims[s.batch]);
  sequence_plan *p = tn__zalloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "the plan of a reversal", sizeof *p);
  ctx->shape_state = p;
  p->outer = p->middle = p->inner = 1;
  p->batch = in->dims[s.batch];
  p->seq = in->dims[s.seq];
  if (in->count == 0) return TN_OK;
  int32_t low = s.seq < s.batch ? s.seq : s.batch, high = s.seq < s.batch ? s.batch : s.seq;
  for (int32_t i = 0; i < in->rank; i++) {
    if (i < low) p->outer *= in->dims[i];
    else if (i > low && i < high) p->middle *= in->dims[i];
    else if (i > high) p->inner *= in->dims[i];
  }
  p->middle_step = p->inner * in->dims[high];
  p->outer_step = p->middle_step * p->middle * in->dims[low];
  p->seq_step = s.seq == high ? p->inner : p->middle_step * p->middle;
  p->batch_step = s.batch == high ? p->inner : p->middle_step * p->middle;
  p->cost_ns = 100 + (double)in->count / (double)p->batch;
  ctx->cost_ns = (double)p->batch * p->cost_ns;
  return TN_OK;
}

static void sequence_destroy_plan(void *plan) { tn__free(plan, sizeof(sequence_plan)); }

typedef struct sequence_run {
  const sequence_plan *p;
  tn_kernel_ctx *ctx; /* set for strings only, else NULL */
  const tn_view *lengths;
  tn_dtype dtype;
  const char *in;
  char *out;
  tn_status status;
} sequence_run;

/* Copies places [first, first + n) of a row's sequence, reversed if `back`. */
static tn_status copy_part(const sequence_run *r, int64_t row, int64_t first, int64_t n, bool back)
{
  const sequence_plan *p = r->p;
  tn__strided s;
  tn__strided_init(&s, r->dtype);
  bool seq_before = p->seq_step > p->middle_step;
  int64_t from_step = back ? -p->seq_step : p->seq_step;
  tn__strided_add(&s, p->outer, p->outer_step, p->outer_step);
  if (seq_before) tn__strided_add(&s, n, from_step, p->seq_step);
  tn__strided_add(&s, p->middle, p->middle_step, p->middle_step);
  if (!seq_before) tn__strided_add(&s, n, from_step, p->seq_step);
  tn__strided_add(&s, p->inner, 1, 1);
  tn__strided_plan(&s);
  int64_t to = row * p->batch_step + first * p->seq_step;
  int64_t from = to + (back && n > 0 ? (n - 1) * p->seq_step : 0);
  return tn__strided_run(&s, r->ctx, r->in + from * (int64_t)s.element, r->out + to * (int64_t)s.element);
}

static void sequence_rows(void *user, int64_t begin, int64_t end)
{
  sequence_run *r = user;
  for (int64_t row = begin; row < end; row++) {
    int64_t n = tn__view_int_at(r->lengths, row);
    tn_status st = copy_part(r, row, 0, n, true);
    if (st == TN_OK) st = copy_part(r, row, n, r->p->seq - n, false);
    if (st != TN_OK) {
      r->status = st;
      return;
    }
  }
}

static tn_status sequence_compute(tn_kernel_ctx *ctx)
{
  const sequence_plan *p = ctx->shape_state;
  const tn_view *in = ctx->inputs[0], *lengths = ctx->inputs[1];
  for (int64_t i = 0; i < p->batch; i++) {
    int64_t n = tn__view_int_at(lengths, i);
    if (n < 0 || n > p->seq)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "ReverseSequence: length %lld is %lld, wanted [0, %lld]",
                          (long long)i, (long long)n, (long long)p->seq);
  }
  if (in->count == 0) return TN_OK;
  bool managed = tn__dtype_is_managed(in->dtype);
  sequence_run r = { p, managed ? ctx : NULL, lengths, in->dtype, in->data, ctx->outputs[0]->data, TN_OK };
  if (managed || in->count <= TN__SERIAL_ELEMENTS)
    sequence_rows(&r, 0, p->batch);
  else
    tn_parallel_for(ctx, p->batch, (int64_t)(TN__SERIAL_ELEMENTS / p->cost_ns) + 1, p->cost_ns, sequence_rows, &r);
  return r.status;
}

/* ---- tables ---- */

#define TYPES \
  "T: {uint8, int8, uint16, int16, uint32, int32, uint64, int64, bool, bfloat16, half, float, double, complex64, " \
  "complex128, string}"
#define OP(op, in, attributes, shapes, text)                                                              \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = "output: T", .attrs = attributes, \
    .infer = shapes, .summary = text }

static const tn_op_def ops[] = {
  OP("Reverse", "tensor: T, dims: bool", TYPES, infer_reverse, "reverses dimensions"),
  OP("ReverseSequence", "input: T, seq_lengths: Tlen",
     "seq_dim: int; batch_dim: int = 0; T: type; Tlen: {int32, int64} = int64", infer_sequence,
     "reverses a prefix of each sequence"),
  OP("ReverseV2", "tensor: T, axis: Tidx", "Tidx: {int32, int64} = int32; " TYPES, infer_reverse,
     "reverses dimensions"),
};

#define KERNEL(which, title, prefix)                                                                               \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C,             \
    .prepare = prefix##_prepare, .destroy_shape_state = prefix##_destroy_plan, .compute = prefix##_compute }

static const tn_kernel_def kernels[] = {
  KERNEL("Reverse", "reverse_cpu", reverse),
  KERNEL("ReverseSequence", "reverse_sequence_cpu", sequence),
  KERNEL("ReverseV2", "reverse_v2_cpu", reverse),
};

TN_OP_FAMILY(reverse)
