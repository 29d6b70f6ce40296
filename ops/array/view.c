/* SPDX-License-Identifier: Apache-2.0 */
/* The same memory as another dtype, or with its shape checked: Bitcast EnsureShape. */
#include <core/base/text.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>

/* Outputs are views, so there is nothing to compute. */
static tn_status nothing(tn_kernel_ctx *ctx)
{
  (void)ctx;
  return TN_OK;
}

static tn_status prepare_view_of(tn_prepare_ctx *ctx, const tn__shape *s, tn_error *err)
{
  tn_status st = tn_prepare_output(ctx, 0, s->dims, s->rank, err);
  return st != TN_OK ? st : tn_prepare_view(ctx, 0, 0, err);
}

/* ---- Bitcast ---- */

/* The shape in elements of `to` for a shape in elements of `from`: the last dimension is split or
 * merged. */
static tn_status bitcast_shape(const char *op, tn__shape *s, tn_dtype from, tn_dtype to, tn_error *err)
{
  int64_t in = (int64_t)tn_dtype_size(from), out = (int64_t)tn_dtype_size(to);
  if (s->rank < 0 || in == out) return TN_OK;
  if (in > out) {
    if (tn__shape_append(s, in / out)) return TN_OK;
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 0 has %d dimensions already", op, TN_MAX_RANK);
  }
  int64_t last = s->rank > 0 ? s->dims[s->rank - 1] : 1;
  if (s->rank == 0 || (last >= 0 && last != out / in)) {
    char text[160];
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "%s: from %s to %s the last dimension must be %lld, input 0 has shape %s", op,
                        tn_dtype_name(from), tn_dtype_name(to), (long long)(out / in),
                        tn__format_shape(text, sizeof text, s->dims, s->rank));
  }
  s->rank--;
  return TN_OK;
}

static tn_status bitcast_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0];
  tn__shape s;
  tn__shape_set(&s, in->dims, in->rank);
  tn_status st = bitcast_shape(tn_operation_type(ctx->op), &s, in->dtype, tn_operation_output_dtype(ctx->op, 0), err);
  return st != TN_OK ? st : prepare_view_of(ctx, &s, err);
}

static tn_status infer_bitcast(tn_infer_ctx *ctx, tn_error *err)
{
  const tn_operation *op = tn_infer_operation(ctx);
  tn__shape s;
  tn__infer_get(ctx, 0, &s);
  tn_status st =
      bitcast_shape(tn__infer_op(ctx), &s, tn_operation_input_dtype(op, 0), tn_operation_output_dtype(op, 0), err);
  return st != TN_OK ? st : tn__infer_set(ctx, 0, &s, err);
}

/* ---- EnsureShape ---- */

static tn_status ensure(const tn_operation *op, tn__shape *s, tn_error *err)
{
  const int64_t *dims;
  int32_t rank;
  tn_status st = tn_operation_attr_shape(op, "shape", &dims, &rank, err);
  if (st != TN_OK || tn__shape_merge(s, dims, rank)) return st;
  char found[160], wanted[160];
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 0 has shape %s, attribute 'shape' is %s",
                      tn_operation_type(op), tn__format_shape(found, sizeof found, s->dims, s->rank),
                      tn__format_shape(wanted, sizeof wanted, dims, rank));
}

static tn_status ensure_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn__shape s;
  tn__shape_set(&s, ctx->inputs[0].dims, ctx->inputs[0].rank);
  tn_status st = ensure(ctx->op, &s, err);
  return st != TN_OK ? st : prepare_view_of(ctx, &s, err);
}

static tn_status infer_ensure(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s;
  tn__infer_get(ctx, 0, &s);
  tn_status st = ensure(tn_infer_operation(ctx), &s, err);
  if (st == TN_OK) st = tn__infer_set(ctx, 0, &s, err);
  const int64_t *items;
  int64_t n = tn_infer_input_ints(ctx, 0, &items);
  bool fits = s.rank == 0 ? n == 1 : s.rank == 1 && n == s.dims[0];
  return st == TN_OK && fits && n >= 0 ? tn_infer_output_ints(ctx, 0, items, n, err) : st;
}

/* ---- tables ---- */

#define BITCAST_SET                                                                                               \
  "{bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, uint64, int8, int16, complex64, "         \
  "complex128, qint8, quint8, qint16, quint16, qint32}"

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "Bitcast", .inputs = "input: T", .outputs = "output: type",
    .attrs = "T: " BITCAST_SET "; type: " BITCAST_SET, .infer = infer_bitcast,
    .summary = "reinterprets the bytes as another dtype" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "EnsureShape", .inputs = "input: T", .outputs = "output: T",
    .attrs = "shape: shape; T: type", .infer = infer_ensure,
    .summary = "forwards its input; fails if its shape does not match" },
};

#define KERNEL(which, title, prepare_fn)                                                             \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C, \
    .prepare = prepare_fn, .compute = nothing }

static const tn_kernel_def kernels[] = {
  KERNEL("Bitcast", "bitcast_cpu", bitcast_prepare),
  KERNEL("EnsureShape", "ensure_shape_cpu", ensure_prepare),
};

TN_OP_FAMILY(view)
