/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise ops of quantised values: QuantizedRelu QuantizedRelu6 QuantizedBiasAdd
 * QuantizedAdd QuantizedMul. */
#include <ops/kernel/family.h>
#include <ops/quantized/requantized.h>

static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- QuantizedRelu QuantizedRelu6 ---- */

static tn_status relu_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_scalars(ctx, 1, 2, err);
  ctx->cost_ns = 0.3 * (double)ctx->inputs[0].count;
  if (st == TN_OK) st = tn__prepare_unchanged(ctx, err);
  return st == TN_OK ? tn__prepare_scalars(ctx, 1, err) : st;
}

typedef struct clamp_run {
  const tn_view *in, *out;
  int32_t low, high;
} clamp_run;

static void clamp_part(void *user, int64_t begin, int64_t end)
{
  const clamp_run *r = user;
  int32_t q[TN__LEVELS_BLOCK];
  for (int64_t at = begin, n; at < end; at += n) {
    n = smaller(end - at, TN__LEVELS_BLOCK);
    tn__levels_load(r->in->dtype, r->in->data, at, n, q);
    for (int64_t i = 0; i < n; i++) {
      int32_t v = q[i] < r->low ? r->low : q[i];
      q[i] = v > r->high ? r->high : v;
    }
    tn__levels_store(r->out->dtype, r->out->data, at, n, q);
  }
}

static tn_status clamp(tn_kernel_ctx *ctx, float most)
{
  const tn_view *in = ctx->inputs[0];
  float min = tn__float_at(ctx->inputs[1]), max = tn__float_at(ctx->inputs[2]);
  clamp_run r = { in, ctx->outputs[0], tn__value_of(in->dtype, 0, min, max), (int32_t)tn__levels_highest(in->dtype) };
  if (most < INFINITY) r.high = tn__value_of(in->dtype, most, min, max);
  if (in->count > 0) tn_parallel_for(ctx, in->count, TN__SERIAL_ELEMENTS, 0.3, clamp_part, &r);
  tn__set_range(ctx, min, max);
  return TN_OK;
}

static tn_status relu_compute(tn_kernel_ctx *ctx) { return clamp(ctx, INFINITY); }
static tn_status relu6_compute(tn_kernel_ctx *ctx) { return clamp(ctx, 6); }

/* ---- QuantizedBiasAdd ---- */

static tn_status bias_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0];
  tn_status st = tn__want_rank_at_least(ctx, 0, 2, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 1, 1, err);
  if (st == TN_OK) st = tn__want_scalars(ctx, 2, 5, err);
  if (st != TN_OK) return st;
  if (ctx->inputs[1].count != in->dims[in->rank - 1])
    return tn__shape_error(err, ctx, 1, &in->dims[in->rank - 1], 1);
  ctx->scratch_bytes = (size_t)ctx->inputs[1].count * sizeof(int32_t);
  ctx->cost_ns = (double)in->count;
  st = tn_prepare_output_like(ctx, 0, 0, err);
  return st == TN_OK ? tn__prepare_scalars(ctx, 1, err) : st;
}

typedef struct bias_run {
  tn__requantized values;
  const int32_t *bias;
  tn__channels channels;
} bias_run;

static void bias_channel(void *user, int64_t channel, int step, int64_t at, int64_t n)
{
  const bias_run *r = user;
  int32_t q[TN__LEVELS_BLOCK];
  for (int64_t i = 0, m; i < n; i += m) {
    m = smaller(n - i, TN__LEVELS_BLOCK);
    tn__requantize_block(&r->values, at + i, m, q);
    for (int64_t k = 0; k < m; k++)
      q[k] = (int32_t)((uint32_t)q[k] + (uint32_t)r->bias[channel + (step ? i + k : 0)]);
    tn__levels_store(r->values.to_dtype, r->values.to, at + i, m, q);
  }
}

static void bias_part(void *user, int64_t begin, int64_t end)
{
  bias_run *r = user;
  tn__channel_runs(&r->channels, begin, end, bias_channel, r);
}

static tn_status bias_compute(tn_kernel_ctx *ctx)
{
  const tn_view *in = ctx->inputs[0], *bias = ctx->inputs[1], *out = ctx->outputs[0];
  float range[4], min, max;
  for (int i = 0; i < 4; i++) range[i] = tn__float_at(ctx->inputs[2 + i]);
  tn__sum_range(range, 17, &min, &max);
  int32_t zero = tn__value_of(out->dtype, 0, min, max), *added = ctx->scratch;
  tn_view wide = *out;
  wide.data = added;
  tn__requantized of_bias = tn__requantized_of(bias, range[2], range[3], &wide, min, max);
  for (int64_t at = 0, n; at < bias->count; at += n) {
    n = smaller(bias->count - at, TN__LEVELS_BLOCK);
    tn__requantize_block(&of_bias, at, n, added + at);
  }
  for (int64_t i = 0; i < bias->count; i++) added[i] = (int32_t)((uint32_t)added[i] + (uint32_t)zero);
  bias_run r = { tn__requantized_of(in, range[0], range[1], out, min, max), added, { bias->count, 1 } };
  if (in->count > 0) tn_parallel_for(ctx, in->count, TN__SERIAL_ELEMENTS, 1, bias_part, &r);
  tn__set_range(ctx, min, max);
  return TN_OK;
}

/* ---- QuantizedAdd QuantizedMul ---- */

static tn_status binary_infer(tn_infer_ctx *ctx, tn_error *err)
{
  tn_status st = tn__infer_broadcast(ctx, err);
  return st == TN_OK ? tn__infer_scalars(ctx, 1, 3, err) : st;
}

static tn_status binary_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *x = &ctx->inputs[0], *y = &ctx->inputs[1];
  tn__shape out;
  if (!tn__broadcast_shapes(x->dims, x->rank, y->dims, y->rank, &out))
    return tn__broadcast_error(err, tn_operation_type(ctx->op), x->dims, x->rank, y->dims, y->rank);
  tn_status st = tn__want_scalars(ctx, 2, 5, err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 0, out.dims, out.rank, err);
  return st == TN_OK ? tn__prepare_scalars(ctx, 1, err) : st;
}

/* An operand: its value at a position of the output, as an int32 in the output's terms. */
typedef struct operand {
  const tn_view *in;
  int64_t strides[TN_MAX_RANK]; /* by the output's dimensions */
  int64_t first, step;          /* for a sum: first + q * step, clamped to int32 */
  int32_t zero;                 /* for a product: q - zero */
} operand;

typedef struct binary_run {
  operand a, b;
  const tn_view *out;
  bool product;
} binary_run;

static void find_strides(operand *o, const tn_view *out)
{
  int64_t stride = 1;
  for (int32_t i = out->rank - 1; i >= 0; i--) {
    int32_t k = i - (out->rank - o->in->rank);
    int64_t size = k >= 0 ? o->in->dims[k] : 1;
    o->strides[i] = size == 1 ? 0 : stride;
    stride *= size;
  }
}

/* Values [at, at + n) of the output, all in one of its rows. */
static void load_row(const operand *o, const tn_view *out, int64_t at, int64_t n, int32_t *q)
{
  int64_t from = 0, rest = at;
  for (int32_t i = out->rank - 1; i >= 0; i--) {
    from += rest % out->dims[i] * o->strides[i];
    rest /= out->dims[i];
  }
  if (out->rank > 0 && o->strides[out->rank - 1] != 0) {
    tn__levels_load(o->in->dtype, o->in->data, from, n, q);
    return;
  }
  tn__levels_load(o->in->dtype, o->in->data, from, 1, q);
  for (int64_t i = 1; i < n; i++) q[i] = q[0];
}

static inline int32_t added(const operand *o, int32_t q)
{
  int64_t v = (int64_t)((uint64_t)o->first + (uint64_t)q * (uint64_t)o->step);
  v = v < INT32_MIN ? INT32_MIN : v;
  return (int32_t)(v > INT32_MAX ? INT32_MAX : v);
}

static void binary_part(void *user, int64_t begin, int64_t end)
{
  const binary_run *r = user;
  int32_t x[TN__LEVELS_BLOCK], y[TN__LEVELS_BLOCK], *out = r->out->data;
  int64_t row = r->out->rank > 0 ? r->out->dims[r->out->rank - 1] : 1;
  for (int64_t at = begin, n; at < end; at += n) {
    n = smaller(smaller(end - at, TN__LEVELS_BLOCK), row - at % row);
    load_row(&r->a, r->out, at, n, x);
    load_row(&r->b, r->out, at, n, y);
    if (r->product)
      for (int64_t i = 0; i < n; i++)
        out[at + i] = (int32_t)(((uint32_t)x[i] - (uint32_t)r->a.zero) * ((uint32_t)y[i] - (uint32_t)r->b.zero));
    else
      for (int64_t i = 0; i < n; i++)
        out[at + i] = (int32_t)((uint32_t)added(&r->a, x[i]) + (uint32_t)added(&r->b, y[i]));
  }
}

static tn_status binary_compute(tn_kernel_ctx *ctx, bool product)
{
  const tn_view *out = ctx->outputs[0];
  binary_run r = { { .in = ctx->inputs[0] }, { .in = ctx->inputs[1] }, out, product };
  float range[4], min, max;
  for (int i = 0; i < 4; i++) range[i] = tn__float_at(ctx->inputs[2 + i]);
  for (int i = 0; i < 4; i += 2)
    if (!(range[i] < range[i + 1]))
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "%s: the minimum of input %d is %g, its maximum %g, wanted a "
                          "larger one", product ? "QuantizedMul" : "QuantizedAdd", i / 2, (double)range[i],
                          (double)range[i + 1]);
  if (product)
    tn__product_range(r.a.in->dtype, range[0], range[1], r.b.in->dtype, range[2], range[3], out->dtype, &min, &max);
  else
    tn__sum_range(range, 14, &min, &max);
  operand *const operands[] = { &r.a, &r.b };
  for (int i = 0; i < 2; i++) {
    operand *o = operands[i];
    float from = range[2 * i], to = range[2 * i + 1];
    find_strides(o, out);
    o->zero = (int32_t)tn__value_unclamped(o->in->dtype, 0, from, to);
    o->first = tn__value_unclamped(out->dtype, tn__number_of(o->in->dtype, 0, from, to), min, max);
    int64_t next = tn__value_unclamped(out->dtype, tn__number_of(o->in->dtype, 1, from, to), min, max);
    o->step = (int32_t)((uint64_t)next - (uint64_t)o->first);
    if (o->in->count != 1 || (i == 1 && r.a.in->count == 1)) continue;
    /* A single element is converted exactly, only one of two. */
    int32_t q;
    tn__levels_load(o->in->dtype, o->in->data, 0, 1, &q);
    o->first = tn__value_of(out->dtype, tn__number_of(o->in->dtype, q, from, to), min, max);
    o->step = 0;
  }
  if (out->count > 0) tn_parallel_for(ctx, out->count, TN__SERIAL_ELEMENTS, 1, binary_part, &r);
  tn__set_range(ctx, min, max);
  return TN_OK;
}

static tn_status add_compute(tn_kernel_ctx *ctx) { return binary_compute(ctx, false); }
static tn_status mul_compute(tn_kernel_ctx *ctx) { return binary_compute(ctx, true); }

/* ---- the family ---- */

#define RANGES(a, b) ", min_" a ": float, max_" a ": float, min_" b ": float, max_" b ": float"
#define OUT(name, type) name ": " type ", min_" name ": float, max_" name ": float"
#define OP(name_, in, out, attributes, shape, text)                                                   \
  { .struct_size = TN_OP_DEF_SIZE, .name = name_, .inputs = in, .outputs = out, .attrs = attributes,  \
    .infer = shape, .summary = text }
#define RELU(name, text)                                                                               \
  OP(name, "features: Tinput, min_features: float, max_features: float", OUT("activations", "out_type"), \
     "Tinput: " TN__QUANTIZED "; out_type: " TN__QUANTIZED " = quint8", tn__infer_quantized, text)
#define BINARY(name, text)                                                                    \
  OP(name, "x: T1, y: T2" RANGES("x", "y"), OUT("z", "Toutput"),                              \
     "T1: " TN__QUANTIZED "; T2: " TN__QUANTIZED "; Toutput: " TN__QUANTIZED " = qint32", binary_infer, text)
static const tn_op_def ops[] = {
  RELU("QuantizedRelu", "quantised values, at least 0"),
  RELU("QuantizedRelu6", "quantised values between 0 and 6"),
  OP("QuantizedBiasAdd", "input: T1, bias: T2" RANGES("input", "bias"),
     "output: out_type, min_out: float, max_out: float",
     "T1: " TN__QUANTIZED "; T2: " TN__QUANTIZED "; out_type: " TN__QUANTIZED, tn__infer_quantized,
     "adds a quantised value to each channel"),
  BINARY("QuantizedAdd", "sums of quantised values"),
  BINARY("QuantizedMul", "products of quantised values"),
};

#define KERNEL(op_, constraint, title, prepare_fn, compute_fn)                                              \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = op_, .device = "CPU", .types = constraint, .name = title,      \
    .rank = TN_RANK_C, .prepare = prepare_fn, .compute = compute_fn }
#define SAME(type) "Tinput=" type ",out_type=" type
static const tn_kernel_def kernels[] = {
  KERNEL("QuantizedRelu", SAME("quint8"), "quantized_relu_u8_cpu", relu_prepare, relu_compute),
  KERNEL("QuantizedRelu", SAME("qint32"), "quantized_relu_i32_cpu", relu_prepare, relu_compute),
  KERNEL("QuantizedRelu6", SAME("quint8"), "quantized_relu6_u8_cpu", relu_prepare, relu6_compute),
  KERNEL("QuantizedRelu6", SAME("qint32"), "quantized_relu6_i32_cpu", relu_prepare, relu6_compute),
  KERNEL("QuantizedBiasAdd", "T1=quint8|qint8,T2=quint8|qint8,out_type=qint32", "quantized_bias_add_cpu",
         bias_prepare, bias_compute),
  KERNEL("QuantizedAdd", "T1=quint8,T2=quint8,Toutput=qint32", "quantized_add_cpu", binary_prepare, add_compute),
  KERNEL("QuantizedMul", "T1=quint8,T2=quint8,Toutput=qint32", "quantized_mul_cpu", binary_prepare, mul_compute),
};

TN_OP_FAMILY(quantized_elements)
