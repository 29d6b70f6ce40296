/* SPDX-License-Identifier: Apache-2.0 */
/* Constants, placeholders and ops that pass their inputs through. Most of them cost nothing: the
 * planner recognises them by their traits, and their kernels serve only runtimes that ignore
 * traits. */
#include <core/base/text.h>
#include <core/graph/graph_internal.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <string.h>

/* Outputs are views, so there is nothing to compute. */
static tn_status nothing(tn_kernel_ctx *ctx)
{
  (void)ctx;
  return TN_OK;
}

/* ---- constants ---- */

static tn_status infer_const(tn_infer_ctx *ctx, tn_error *err)
{
  int64_t dims[TN_MAX_RANK];
  int32_t rank;
  tn_status st = tn_operation_attr_tensor_shape(tn_infer_operation(ctx), "value", NULL, dims, &rank, err);
  return st == TN_OK ? tn_infer_output(ctx, 0, dims, rank, err) : st;
}

/* The state is the tensor, which the operation owns. */
static tn_status const_create(const tn_operation *op, void **state, tn_error *err)
{
  tn_tensor *value = NULL;
  tn_status st = tn_operation_attr_tensor(op, "value", &value, err);
  *state = value;
  return st;
}

static tn_status const_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_tensor *value = ctx->state;
  return tn_prepare_output(ctx, 0, tn_tensor_dims(value), tn_tensor_rank(value), err);
}

static tn_status const_compute(tn_kernel_ctx *ctx)
{
  const tn_tensor *value = ctx->state;
  tn_view *out = ctx->outputs[0];
  if (tn_tensor_dtype(value) == TN_STRING) {
    for (int64_t i = 0; i < out->count; i++) {
      size_t length;
      const char *text;
      tn_status st = tn_tensor_get_string(value, i, &text, &length, ctx->err);
      if (st == TN_OK) st = tn_string_set((tn_string *)out->data + i, text, length, ctx->err);
      if (st != TN_OK) return st;
    }
    return TN_OK;
  }
  if (out->count > 0) memcpy(out->data, tn_tensor_data(value), tn_tensor_bytes(value));
  return TN_OK;
}

/* ---- placeholders ---- */

/* Early TensorFlow graphs encoded "any shape" as the shape of a scalar. */
static tn_status infer_placeholder(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t *dims;
  int32_t rank;
  tn_status st = tn_operation_attr_shape(tn_infer_operation(ctx), "shape", &dims, &rank, err);
  if (st != TN_OK) return st;
  return tn_infer_output(ctx, 0, dims, rank == 0 ? -1 : rank, err);
}

static tn_status infer_placeholder_with_default(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t *dims;
  int32_t rank;
  tn__shape s;
  tn__infer_get(ctx, 0, &s);
  tn_status st = tn_operation_attr_shape(tn_infer_operation(ctx), "shape", &dims, &rank, err);
  if (st != TN_OK) return st;
  if (!tn__shape_merge(&s, dims, rank)) {
    char found[96], wanted[96];
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the default has shape %s, attribute 'shape' is %s",
                        tn__infer_op(ctx), tn__format_shape(found, sizeof found, s.dims, s.rank),
                        tn__format_shape(wanted, sizeof wanted, dims, rank));
  }
  /* A value of any shape that fits the attribute may be fed, so the default's own shape tells
   * nothing. */
  return tn_infer_output(ctx, 0, dims, rank, err);
}

static tn_status placeholder_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  return tn__placeholder_missing(ctx->op, "fed", err);
}

/* ---- identities ---- */

static tn_status infer_identity(tn_infer_ctx *ctx, tn_error *err)
{
  for (size_t i = 0; i < tn_infer_n_inputs(ctx); i++) {
    const int64_t *dims;
    int32_t rank = tn_infer_input(ctx, i, &dims);
    tn_status st = tn_infer_output(ctx, i, dims, rank, err);
    if (st != TN_OK) return st;
  }
  return TN_OK;
}

static tn_status prepare_identity(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = TN_OK;
  for (uint32_t i = 0; st == TN_OK && i < ctx->n_outputs; i++) {
    st = tn_prepare_output_like(ctx, i, i, err);
    if (st == TN_OK) st = tn_prepare_view(ctx, i, i, err);
  }
  return st;
}

/* ---- CheckNumerics ---- */

enum { HAS_NAN = 1, HAS_PLUS = 2, HAS_MINUS = 4 };

/* Finds out which kinds of non-finite numbers there are. EXPONENT is the bit pattern of infinity,
 * SIGN the sign bit. */
#define SCAN(name, T, EXPONENT, SIGN)                                                       \
  static int scan_##name(const void *data, int64_t n)                                       \
  {                                                                                         \
    const T *x = data;                                                                      \
    T bad = 0;                                                                              \
    for (int64_t i = 0; i < n; i++) bad |= (T)((x[i] & (EXPONENT)) == (EXPONENT));          \
    int found = 0;                                                                          \
    for (int64_t i = 0; bad != 0 && i < n; i++) {                                           \
      T magnitude = (T)(x[i] & (T) ~(T)(SIGN));                                             \
      if (magnitude < (EXPONENT)) continue;                                                 \
      int infinity = x[i] == magnitude ? HAS_PLUS : HAS_MINUS;                              \
      found |= magnitude > (EXPONENT) ? HAS_NAN : infinity;                                 \
    }                                                                                       \
    return found;                                                                           \
  }
SCAN(f16, uint16_t, 0x7c00u, 0x8000u)
SCAN(b16, uint16_t, 0x7f80u, 0x8000u)
SCAN(f32, uint32_t, 0x7f800000u, 0x80000000u)
SCAN(f64, uint64_t, UINT64_C(0x7ff0000000000000), UINT64_C(0x8000000000000000))

static tn_status check_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  ctx->cost_ns = 20 + 0.2 * (double)ctx->inputs[0].count;
  tn_status st = tn_prepare_output_like(ctx, 0, 0, err);
  return st != TN_OK ? st : tn_prepare_in_place(ctx, 0, 0, err);
}

static int scan(const tn_view *in)
{
  switch (in->dtype) {
  case TN_FLOAT: return scan_f32(in->data, in->count);
  case TN_DOUBLE: return scan_f64(in->data, in->count);
  case TN_HALF: return scan_f16(in->data, in->count);
  default: return scan_b16(in->data, in->count);
  }
}

static tn_status check_compute(tn_kernel_ctx *ctx)
{
  const tn_operation *op = ctx->state;
  const tn_view *in = ctx->inputs[0];
  tn_view *out = ctx->outputs[0];
  int found = scan(in);
  if (found != 0) {
    const char *text = "";
    size_t length = 0;
    tn_operation_attr_string(op, "message", &text, &length, NULL);
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "%.*s%sthe tensor has%s%s%s", (int)length, text,
                        length > 0 ? ": " : "", found & HAS_NAN ? " NaN" : "", found & HAS_PLUS ? " +Inf" : "",
                        found & HAS_MINUS ? " -Inf" : "");
  }
  if (out->data != in->data && in->count > 0)
    memcpy(out->data, in->data, (size_t)in->count * tn_dtype_size(in->dtype));
  return TN_OK;
}

/* The state is the operation itself: its message is needed if the check fails. */
static tn_status check_create(const tn_operation *op, void **state, tn_error *err)
{
  (void)err;
  *state = (void *)op;
  return TN_OK;
}

/* ---- tables ---- */

#define OP(op, in, out, attributes, bits, shapes, text)                                           \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = attributes, \
    .traits = bits, .infer = shapes, .summary = text }
#define IDENTITY(op, text) \
  OP(op, "input: T", "output: T", "T: type", TN_TRAIT_IDENTITY, infer_identity, text)

static const tn_op_def ops[] = {
  OP("CheckNumerics", "tensor: T", "output: T", "T: {bfloat16, half, float, double}; message: string",
     TN_TRAIT_STATEFUL | TN_TRAIT_READS, tn__infer_unchanged, "fails if an element is NaN or infinite"),
  OP("CheckNumericsV2", "tensor: T", "output: T", "T: {bfloat16, half, float, double}; message: string",
     TN_TRAIT_STATEFUL | TN_TRAIT_READS, tn__infer_unchanged, "fails if an element is NaN or infinite"),
  { .struct_size = TN_OP_DEF_SIZE, .name = "Const", .inputs = "", .outputs = "output: dtype",
    .attrs = "value: tensor; dtype: type", .traits = TN_TRAIT_CONSTANT, .constant_attr = "value", .infer = infer_const,
    .summary = "constant tensor stored in the graph" },
  IDENTITY("GuaranteeConst", "forwards its input, which never changes"),
  { .struct_size = TN_OP_DEF_SIZE, .name = "HostConst", .inputs = "", .outputs = "output: dtype",
    .attrs = "value: tensor; dtype: type", .traits = TN_TRAIT_CONSTANT, .constant_attr = "value", .infer = infer_const,
    .summary = "constant tensor stored in the graph" },
  IDENTITY("Identity", "forwards its input"),
  OP("IdentityN", "input: T", "output: T", "T: list(type) >= 1", TN_TRAIT_IDENTITY, infer_identity,
     "forwards its inputs"),
  OP("NoOp", "", "", "", TN_TRAIT_NO_EFFECT, NULL, "does nothing; groups control edges"),
  OP("Placeholder", "", "output: dtype", "dtype: type; shape: shape = ?", TN_TRAIT_PLACEHOLDER, infer_placeholder,
     "placeholder for a value that must be fed"),
  OP("PlaceholderV2", "", "output: dtype", "dtype: type; shape: shape", TN_TRAIT_PLACEHOLDER, tn__infer_attr_shape,
     "placeholder for a value that must be fed"),
  OP("PlaceholderWithDefault", "input: dtype", "output: dtype", "dtype: type; shape: shape", TN_TRAIT_IDENTITY,
     infer_placeholder_with_default, "placeholder whose default value is its input"),
  OP("PreventGradient", "input: T", "output: T", "T: type; message: string = ''", TN_TRAIT_IDENTITY, infer_identity,
     "forwards its input; an error in gradient computations"),
  IDENTITY("Snapshot", "forwards its input"),
  IDENTITY("StopGradient", "forwards its input and blocks its gradient"),
};

#define KERNEL(which, title, constraint, prepare_fn, compute_fn)                                         \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .types = constraint, .name = title, \
    .rank = TN_RANK_C, .prepare = prepare_fn, .compute = compute_fn }
#define CHECK(which, title)                                                         \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, \
    .rank = TN_RANK_C, .create = check_create, .prepare = check_prepare, .compute = check_compute }
#define SNAPSHOT_TYPES \
  "T=float|double|half|bfloat16|int8|uint8|int16|uint16|int32|uint32|int64|uint64|bool|complex64|complex128"

static const tn_kernel_def kernels[] = {
  CHECK("CheckNumerics", "check_numerics_cpu"),
  CHECK("CheckNumericsV2", "check_numerics_v2_cpu"),
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "Const", .device = "CPU", .name = "const_cpu", .rank = TN_RANK_C,
    .create = const_create, .prepare = const_prepare, .compute = const_compute },
  KERNEL("GuaranteeConst", "guarantee_const_cpu", NULL, prepare_identity, nothing),
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "HostConst", .device = "CPU", .name = "host_const_cpu", .rank = TN_RANK_C,
    .create = const_create, .prepare = const_prepare, .compute = const_compute },
  KERNEL("Identity", "identity_cpu", NULL, prepare_identity, nothing),
  KERNEL("IdentityN", "identity_n_cpu", NULL, prepare_identity, nothing),
  KERNEL("NoOp", "no_op_cpu", NULL, tn__prepare_nothing, nothing),
  KERNEL("Placeholder", "placeholder_cpu", NULL, placeholder_prepare, nothing),
  KERNEL("PlaceholderV2", "placeholder_v2_cpu", NULL, placeholder_prepare, nothing),
  KERNEL("PlaceholderWithDefault", "placeholder_with_default_cpu", NULL, prepare_identity, nothing),
  KERNEL("PreventGradient", "prevent_gradient_cpu", NULL, prepare_identity, nothing),
  KERNEL("Snapshot", "snapshot_cpu", SNAPSHOT_TYPES, prepare_identity, nothing),
  KERNEL("StopGradient", "stop_gradient_cpu", NULL, prepare_identity, nothing),
};

TN_OP_FAMILY(constants)
