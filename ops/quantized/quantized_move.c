/* SPDX-License-Identifier: Apache-2.0 */
/* QuantizedReshape, and QuantizedConcat, which brings its inputs into one range. */
#include <core/base/alloc.h>
#include <float.h>
#include <ops/kernel/family.h>
#include <ops/kernel/operands.h>
#include <ops/quantized/requantized.h>
#include <string.h>

/* ---- QuantizedReshape ---- */

static tn_status wrong_shape(tn_error *err, int64_t count)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "QuantizedReshape: input 0 has %lld elements, which do not fit shape",
                      (long long)count);
}

static tn_status reshape_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0], *shape = &ctx->inputs[1];
  int64_t dims[TN_MAX_RANK], known = 1;
  int32_t free = -1;
  tn_status st = tn__want_rank(ctx, 1, 1, err);
  if (st == TN_OK) st = tn__want_value(ctx, 1, err);
  if (st == TN_OK) st = tn__want_scalars(ctx, 2, 3, err);
  if (st != TN_OK) return st;
  if (shape->count > TN_MAX_RANK)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "QuantizedReshape: shape has %lld elements, wanted at most %d",
                        (long long)shape->count, TN_MAX_RANK);
  for (int32_t i = 0; i < (int32_t)shape->count; i++) {
    dims[i] = tn__operand_int(shape, i);
    if (dims[i] == -1 && free < 0)
      free = i;
    else if (dims[i] < 0 || __builtin_mul_overflow(known, dims[i], &known))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "QuantizedReshape: element %d of shape is %lld", (int)i,
                          (long long)dims[i]);
  }
  if (free >= 0) {
    if (known == 0 || in->count % known != 0) return wrong_shape(err, in->count);
    dims[free] = in->count / known;
  } else if (known != in->count) {
    return wrong_shape(err, in->count);
  }
  st = tn_prepare_output(ctx, 0, dims, (int32_t)shape->count, err);
  for (uint32_t i = 1; i <= 2 && st == TN_OK; i++) st = tn_prepare_output(ctx, i, NULL, 0, err);
  /* All outputs are inputs. */
  if (st == TN_OK) st = tn_prepare_view(ctx, 0, 0, err);
  if (st == TN_OK) st = tn_prepare_view(ctx, 1, 2, err);
  return st == TN_OK ? tn_prepare_view(ctx, 2, 3, err) : st;
}

static tn_status reshape_compute(tn_kernel_ctx *ctx)
{
  (void)ctx;
  return TN_OK;
}

static tn_status reshape_infer(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s;
  tn__shape_unknown(&s);
  s.rank = tn_infer_input_as_shape(ctx, 1, s.dims);
  tn_status st = tn__infer_set(ctx, 0, &s, err);
  return st == TN_OK ? tn__infer_scalars(ctx, 1, 3, err) : st;
}

/* ---- QuantizedConcat ---- */

/* Inputs: the axis, n values, n minima, n maxima. */
static uint32_t values_of(uint32_t n_inputs) { return (n_inputs - 1) / 3; }

static tn_status concat_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  uint32_t n = values_of(ctx->n_inputs);
  const tn_view *first = &ctx->inputs[1];
  int32_t axis;
  tn__shape out;
  tn_status st = tn__want_axis(ctx, 0, 0, first->rank, &axis, err);
  if (st == TN_OK && tn__operand_int(&ctx->inputs[0], 0) < 0)
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "QuantizedConcat: concat_dim is %lld, wanted at least 0",
                      (long long)tn__operand_int(&ctx->inputs[0], 0));
  if (st == TN_OK) st = tn__want_scalars(ctx, n + 1, 3 * n, err);
  if (st != TN_OK) return st;
  tn__shape_set(&out, first->dims, first->rank);
  out.dims[axis] = 0;
  for (uint32_t i = 1; i <= n; i++) {
    const tn_view *in = &ctx->inputs[i];
    bool fits = in->rank == first->rank;
    for (int32_t k = 0; fits && k < in->rank; k++) fits = k == axis || in->dims[k] == first->dims[k];
    if (!fits) {
      tn__shape_set(&out, first->dims, first->rank);
      out.dims[axis] = -1;
      return tn__shape_error(err, ctx, i, out.dims, out.rank);
    }
    if (__builtin_add_overflow(out.dims[axis], in->dims[axis], &out.dims[axis]))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "QuantizedConcat: the sizes along axis %d are too large together",
                          (int)axis);
  }
  int64_t *outer = tn__alloc(sizeof *outer);
  if (outer == NULL) return tn__no_memory(err, "plan of QuantizedConcat", sizeof *outer);
  ctx->shape_state = outer;
  *outer = 1;
  for (int32_t k = 0; k < axis; k++) *outer *= first->dims[k];
  st = tn_prepare_output(ctx, 0, out.dims, out.rank, err);
  return st == TN_OK ? tn__prepare_scalars(ctx, 1, err) : st;
}

static void concat_destroy(void *outer) { tn__free(outer, sizeof(int64_t)); }

typedef struct concat_run {
  const tn_kernel_ctx *ctx;
  float min, max;
  int64_t row; /* elements of the output in each of the outer rows */
} concat_run;

/* Joins rows [begin, end). */
static void concat_rows(void *user, int64_t begin, int64_t end)
{
  const concat_run *r = user;
  const tn_kernel_ctx *ctx = r->ctx;
  const tn_view *out = ctx->outputs[0];
  uint32_t n = values_of(ctx->n_inputs);
  int64_t outer = *(const int64_t *)ctx->shape_state, place = 0;
  size_t size = tn_dtype_size(out->dtype);
  for (uint32_t i = 1; i <= n; i++) {
    const tn_view *in = ctx->inputs[i];
    float min = tn__float_at(ctx->inputs[n + i]), max = tn__float_at(ctx->inputs[2 * n + i]);
    int64_t length = in->count / outer;
    tn__requantized q = tn__requantized_of(in, min, max, out, r->min, r->max);
    for (int64_t k = begin; k < end && length > 0; k++) {
      char *to = (char *)out->data + (k * r->row + place) * (int64_t)size;
      const char *from = (const char *)in->data + k * length * (int64_t)size;
      if (min == r->min && max == r->max) {
        memcpy(to, from, (size_t)length * size);
        continue;
      }
      q.from = from;
      q.to = to;
      tn__requantize_part(&q, 0, length);
    }
    place += length;
  }
}

static tn_status concat_compute(tn_kernel_ctx *ctx)
{
  const tn_view *out = ctx->outputs[0];
  uint32_t n = values_of(ctx->n_inputs);
  int64_t outer = *(const int64_t *)ctx->shape_state;
  concat_run r = { ctx, FLT_MAX, -FLT_MAX, outer > 0 ? out->count / outer : 0 };
  for (uint32_t i = 1; i <= n; i++) {
    r.min = fminf(r.min, tn__float_at(ctx->inputs[n + i]));
    r.max = fmaxf(r.max, tn__float_at(ctx->inputs[2 * n + i]));
  }
  if (tn__levels_lowest(out->dtype) < 0) {
    r.max = fmaxf(fabsf(r.min), fabsf(r.max));
    r.min = -r.max;
  }
  if (out->count > 0) {
    int64_t grain = TN__SERIAL_ELEMENTS / r.row + 1;
    tn_parallel_for(ctx, outer, grain, (double)r.row, concat_rows, &r);
  }
  tn__set_range(ctx, r.min, r.max);
  return TN_OK;
}

static tn_status concat_infer(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s;
  int32_t axis;
  tn__infer_get(ctx, 1, &s);
  tn_status st = tn__infer_axis(ctx, 0, s.rank, &axis, err);
  for (int32_t k = 0; k < s.rank; k++)
    if (axis < 0 || k == axis) s.dims[k] = -1;
  if (st == TN_OK) st = tn__infer_set(ctx, 0, &s, err);
  return st == TN_OK ? tn__infer_scalars(ctx, 1, 3, err) : st;
}

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "QuantizedReshape",
    .inputs = "tensor: T, shape: Tshape, input_min: float, input_max: float",
    .outputs = "output: T, output_min: float, output_max: float", .attrs = "T: type; Tshape: {int32, int64} = int32",
    .shape_operands = 1u << 1, .infer = reshape_infer, .summary = "quantised values in another shape" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "QuantizedConcat",
    .inputs = "concat_dim: int32, values: N * T, input_mins: N * float, input_maxes: N * float",
    .outputs = "output: T, output_min: float, output_max: float", .attrs = "N: int >= 2; T: type",
    .shape_operands = 1u << 0, .infer = concat_infer, .summary = "quantised values joined along an axis" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "QuantizedReshape", .device = "CPU", .types = "T=quint8|qint8|qint32",
    .name = "quantized_reshape_cpu", .rank = TN_RANK_C, .prepare = reshape_prepare, .compute = reshape_compute },
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "QuantizedConcat", .device = "CPU", .types = "T=quint8|qint8|qint32",
    .name = "quantized_concat_cpu", .rank = TN_RANK_C, .prepare = concat_prepare,
    .destroy_shape_state = concat_destroy, .compute = concat_compute },
};

TN_OP_FAMILY(quantized_move)
