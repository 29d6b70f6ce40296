/* SPDX-License-Identifier: Apache-2.0 */
/* BiasAdd adds one value per channel in a single pass. BiasAddGrad sums over everything except the channels. */
#include <core/base/alloc.h>
#include <ops/kernel/elements/elementwise.h>
#include <ops/kernel/family.h>
#include <ops/kernel/reduce/reduce_plan.h>
#include <string.h>

/* A short bias is replicated to rows of up to this many elements. */
#define PATTERN 128
#define WIDEST 16 /* maximum bytes per element */

typedef struct bias_state {
  const tn__binary_loop *loop;
  bool first; /* channels are dimension 1, not the last one */
} bias_state;

/* BiasAddV1 has no attribute data_format. */
static bool channels_first(const tn_operation *op, tn_status *st, tn_error *err)
{
  static const char *const formats[] = { "NHWC", "NCHW" };
  int format = 0;
  *st = TN_OK;
  if (strcmp(tn_operation_type(op), "BiasAddV1") != 0)
    *st = tn__attr_choice(op, "data_format", formats, 2, &format, err);
  return format == 1;
}

static tn_status bias_create(const tn_operation *node, void **state, tn_error *err)
{
  tn_status st;
  *state = NULL;
  bias_state s = { tn__binary_loop_of("AddV2", node), channels_first(node, &st, err) };
  if (s.loop == NULL) return tn__no_kernel(err, node, tn_operation_input_dtype(node, 0));
  if (st != TN_OK) return st;
  return tn__keep_state(&s, sizeof s, "BiasAdd", state, err);
}

static void bias_destroy(void *state) { tn__free(state, sizeof(bias_state)); }

/* ---- shapes ---- */

static tn_status bias_infer(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape value, bias;
  tn_status st;
  bool first = channels_first(tn_infer_operation(ctx), &st, err);
  if (st == TN_OK) st = tn__infer_rank_at_least(ctx, 0, 2, &value, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 1, 1, &bias, err);
  if (st != TN_OK) return st;
  if (value.rank > 0) {
    int64_t *channels = &value.dims[first ? 1 : value.rank - 1];
    if (!tn__dim_merge(channels, bias.dims[0]))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 1 has %lld values, wanted one for each of %lld channels",
                          tn__infer_op(ctx), (long long)bias.dims[0], (long long)*channels);
  }
  return tn__infer_set(ctx, 0, &value, err);
}

static tn_status bias_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const bias_state *s = ctx->state;
  const tn_view *value = &ctx->inputs[0];
  tn_status st = tn__want_rank_at_least(ctx, 0, 2, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 1, 1, err);
  if (st != TN_OK) return st;
  int64_t channels = value->dims[s->first ? 1 : value->rank - 1];
  if (ctx->inputs[1].dims[0] != channels) return tn__shape_error(err, ctx, 1, &channels, 1);
  ctx->cost_ns = s->loop->info->cost_ns * (double)value->count;
  return tn__prepare_unchanged(ctx, err);
}

/* ---- computing ---- */

typedef struct bias_run {
  const tn__binary_loop *loop;
  tn__binary_fn fn;
  const char *x, *bias;
  char *out;
  int64_t channels, inner; /* inner: adjacent elements of one channel */
} bias_run;

static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Channels are adjacent. */
static void rows_part(void *user, int64_t begin, int64_t end)
{
  const bias_run *r = user;
  int64_t size = r->loop->from_size, row = r->channels;
  const char *bias = r->bias;
  _Alignas(64) char pattern[PATTERN * WIDEST];
  if (row <= PATTERN / 2 && end - begin > row) {
    int64_t times = smaller(PATTERN / row, (end - begin - 1) / row + 2);
    for (int64_t i = 0; i < times; i++) memcpy(pattern + i * row * size, bias, (size_t)(row * size));
    bias = pattern;
    row *= times;
  }
  for (int64_t at = begin, n; at < end; at += n) {
    int64_t c = at == begin ? at % r->channels : 0;
    /* The first piece ends at the end of a pixel, so all later ones begin with channel 0. */
    n = smaller(row - c, end - at);
    r->fn(r->x + at * size, 1, bias + c * size, 1, r->out + at * size, n);
  }
}

/* Each channel is a contiguous plane. */
static void planes_part(void *user, int64_t begin, int64_t end)
{
  const bias_run *r = user;
  int64_t size = r->loop->from_size, c = begin / r->inner % r->channels, left = r->inner - begin % r->inner;
  for (int64_t at = begin, n; at < end; at += n) {
    n = smaller(left, end - at);
    r->fn(r->x + at * size, 1, r->bias + c * size, 0, r->out + at * size, n);
    c = c + 1 == r->channels ? 0 : c + 1;
    left = r->inner;
  }
}

static tn_status bias_compute(tn_kernel_ctx *ctx)
{
  const bias_state *s = ctx->state;
  const tn_view *x = ctx->inputs[0], *bias = ctx->inputs[1], *out = ctx->outputs[0];
  int64_t n = out->count, inner = 1;
  if (n == 0) return TN_OK;
  if (s->first)
    for (int32_t i = 2; i < x->rank; i++) inner *= x->dims[i];
  bias_run run = { s->loop, s->loop->fn[tn__vectors()], x->data, bias->data, out->data, bias->count, inner };
  void (*part)(void *user, int64_t begin, int64_t end) = inner == 1 ? rows_part : planes_part;
  if (n <= TN__SERIAL_ELEMENTS)
    part(&run, 0, n);
  else
    tn_parallel_for(ctx, n, TN__SERIAL_ELEMENTS, s->loop->info->cost_ns, part, &run);
  return TN_OK;
}

/* ---- BiasAddGrad ---- */

typedef struct grad_state {
  const tn__reduce_loops *loops;
  bool first;
} grad_state;

static tn_status grad_create(const tn_operation *node, void **state, tn_error *err)
{
  *state = NULL;
  tn_status st;
  tn_dtype dtype = tn_operation_input_dtype(node, 0);
  grad_state s = { tn__reduce_loops_find(TN__REDUCE_SUM, dtype), channels_first(node, &st, err) };
  if (st != TN_OK) return st;
  if (s.loops == NULL) return tn__no_kernel(err, node, dtype);
  return tn__keep_state(&s, sizeof s, "BiasAddGrad", state, err);
}

static void grad_destroy(void *state) { tn__free(state, sizeof(grad_state)); }
static void grad_destroy_plan(void *plan) { tn__reduce_plan_destroy(plan); }

static tn_status grad_infer(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape value, out;
  tn_status st;
  bool first = channels_first(tn_infer_operation(ctx), &st, err);
  if (st == TN_OK) st = tn__infer_rank_at_least(ctx, 0, 2, &value, err);
  if (st != TN_OK) return st;
  out.rank = 1;
  out.dims[0] = -1;
  if (value.rank >= 0) out.dims[0] = value.dims[first ? 1 : value.rank - 1];
  return tn__infer_set(ctx, 0, &out, err);
}

static tn_status grad_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const grad_state *s = ctx->state;
  const tn_view *in = &ctx->inputs[0];
  bool reduced[TN_MAX_RANK];
  tn_status st = tn__want_rank_at_least(ctx, 0, 2, err);
  if (st != TN_OK) return st;
  int32_t channels = s->first ? 1 : in->rank - 1;
  st = tn_prepare_output(ctx, 0, &in->dims[channels], 1, err);
  if (st != TN_OK || in->count == 0) return st;
  for (int32_t i = 0; i < in->rank; i++) reduced[i] = i != channels;
  tn__reduce_plan *plan = tn__reduce_plan_create(s->loops, in->dims, in->rank, reduced);
  if (plan == NULL) return tn__no_memory(err, "reduction plan", sizeof *plan);
  ctx->shape_state = plan;
  ctx->scratch_bytes = tn__reduce_plan_scratch(plan);
  ctx->cost_ns = 50 + tn__reduce_plan_cost(plan);
  return TN_OK;
}

static tn_status grad_compute(tn_kernel_ctx *ctx)
{
  const tn_view *out = ctx->outputs[0];
  if (ctx->shape_state != NULL)
    tn__reduce_plan_run(ctx->shape_state, ctx, ctx->inputs[0]->data, out->data);
  else if (out->count > 0) /* sums over no elements */
    memset(out->data, 0, (size_t)out->count * tn_dtype_size(out->dtype));
  return TN_OK;
}

/* ---- the family ---- */

#define T_NUMBERS                                                                                              \
  "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "  \
  "quint16, uint16, complex128, half, uint32, uint64}"
#define KERNEL_TYPES \
  "T=float|double|half|bfloat16|complex64|complex128|int8|int16|int32|int64|uint8|uint16|uint32|uint64"

#define BIAS_OP(op, attributes, text)                                                                    \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = "value: T, bias: T", .outputs = "output: T",    \
    .attrs = attributes, .infer = bias_infer, .summary = text }
static const tn_op_def ops[] = {
  BIAS_OP("BiasAdd", T_NUMBERS "; data_format: {'NHWC', 'NCHW'} = 'NHWC'", "adds a value to each channel"),
  { .struct_size = TN_OP_DEF_SIZE, .name = "BiasAddGrad", .inputs = "out_backprop: T", .outputs = "output: T",
    .attrs = T_NUMBERS "; data_format: {'NHWC', 'NCHW'} = 'NHWC'", .infer = grad_infer,
    .summary = "gradient of BiasAdd for the bias" },
  BIAS_OP("BiasAddV1", T_NUMBERS, "adds a value to each channel; channels are last"),
};

#define BIAS_KERNEL(op_, title)                                                                          \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = op_, .device = "CPU", .types = KERNEL_TYPES, .name = title, \
    .rank = TN_RANK_C, .create = bias_create, .destroy = bias_destroy, .prepare = bias_prepare,          \
    .compute = bias_compute }
static const tn_kernel_def kernels[] = {
  BIAS_KERNEL("BiasAdd", "bias_add_cpu"),
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "BiasAddGrad", .device = "CPU", .types = KERNEL_TYPES,
    .name = "bias_add_grad_cpu", .rank = TN_RANK_C, .create = grad_create, .destroy = grad_destroy,
    .prepare = grad_prepare, .destroy_shape_state = grad_destroy_plan, .compute = grad_compute },
  BIAS_KERNEL("BiasAddV1", "bias_add_v1_cpu"),
};

TN_OP_FAMILY(bias)
