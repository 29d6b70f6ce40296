/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of texts decoded to numbers: DecodeRaw DecodePaddedRaw. */
#include <core/tensor/tensor_internal.h>
#include <ops/kernel/family.h>
#include <ops/kernel/operands.h>
#include <ops/kernel/poll.h>

#include <string.h>

/* The state is NULL if bytes are little-endian. */
static tn_status raw_create(const tn_operation *op, void **state, tn_error *err)
{
  static char big;
  (void)err;
  *state = tn__attr_bool(op, "little_endian", true) ? NULL : &big;
  return TN_OK;
}

/* Bytes of a number; a complex one consists of two. */
static size_t part_size(tn_dtype dtype)
{
  size_t size = tn_dtype_size(dtype);
  return dtype == TN_COMPLEX64 || dtype == TN_COMPLEX128 ? size / 2 : size;
}

static void put_bytes(char *to, const char *from, size_t n, tn_dtype dtype, bool big)
{
  size_t size = part_size(dtype);
  if (n == 0) return;
  if (dtype == TN_BOOL) {
    for (size_t i = 0; i < n; i++) to[i] = from[i] != 0;
  } else if (!big || size == 1) {
    memcpy(to, from, n);
  } else {
    for (size_t i = 0; i < n; i += size)
      for (size_t k = 0; k < size; k++) to[i + k] = from[i + size - 1 - k];
  }
}

/* ---- DecodeRaw ---- */

static tn_status raw_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  ctx->cost_ns = 50 + 50 * (double)ctx->inputs[0].count;
  return tn_prepare_dynamic(ctx, 0, err);
}

/* All texts must have the same length. */
static tn_status check_lengths(const tn_kernel_ctx *ctx, size_t size, size_t *length)
{
  const tn_view *x = ctx->inputs[0];
  const tn_string *text = x->data;
  *length = 0;
  for (int64_t i = 0; i < x->count; i++) {
    size_t n;
    tn_string_data(text + i, &n);
    if (i == 0) *length = n;
    if (n != *length)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "DecodeRaw: string 0 has %zu bytes, string %lld has %zu",
                          *length, (long long)i, n);
  }
  if (*length % size == 0) return TN_OK;
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                      "DecodeRaw: strings have %zu bytes, wanted a multiple of the %zu bytes of %s", *length, size,
                      tn_dtype_name(ctx->outputs[0]->dtype));
}

static tn_status raw_compute(tn_kernel_ctx *ctx)
{
  const tn_view *x = ctx->inputs[0];
  tn_dtype dtype = ctx->outputs[0]->dtype;
  size_t size = tn_dtype_size(dtype), length;
  tn__shape out;
  tn_status st = check_lengths(ctx, size, &length);
  if (st != TN_OK) return st;
  tn__shape_set(&out, x->dims, x->rank);
  if (!tn__shape_append(&out, (int64_t)(length / size)))
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                        "DecodeRaw: input 0 has rank %d, the output would exceed the maximum rank", x->rank);
  st = tn_kernel_allocate(ctx, 0, out.dims, out.rank);
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t i = 0; st == TN_OK && i < x->count; i++) {
    if (tn__poll_over(&poll, 100)) return TN_CANCELLED;
    const char *text = tn_string_data((const tn_string *)x->data + i, NULL);
    put_bytes((char *)ctx->outputs[0]->data + (size_t)i * length, text, length, dtype, ctx->state != NULL);
  }
  return st;
}

/* ---- DecodePaddedRaw ---- */

static tn_status padded_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *x = &ctx->inputs[0];
  tn__shape out;
  tn_status st = tn__want_rank(ctx, 1, 0, err);
  if (st == TN_OK) st = tn__want_value(ctx, 1, err);
  if (st != TN_OK) return st;
  tn_dtype dtype = tn__attr_type(ctx->op, "out_type");
  int64_t length = tn__operand_int(&ctx->inputs[1], 0), size = (int64_t)tn_dtype_size(dtype);
  if (length <= 0 || length % size != 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "DecodePaddedRaw: fixed_length is %lld, wanted a multiple of the %lld bytes of %s",
                        (long long)length, (long long)size, tn_dtype_name(dtype));
  tn__shape_set(&out, x->dims, x->rank);
  if (!tn__shape_append(&out, length / size))
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "DecodePaddedRaw: input 0 has rank %d, the output would exceed the maximum rank", x->rank);
  ctx->cost_ns = 50 + 50 * (double)x->count;
  return tn_prepare_output(ctx, 0, out.dims, out.rank, err);
}

static tn_status padded_compute(tn_kernel_ctx *ctx)
{
  const tn_view *x = ctx->inputs[0], *out = ctx->outputs[0];
  size_t size = tn_dtype_size(out->dtype), part = part_size(out->dtype);
  size_t length = (size_t)tn__operand_int(ctx->inputs[1], 0);
  if (x->count > 0) length = (size_t)(out->count / x->count) * size;
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t i = 0; i < x->count; i++) {
    if (tn__poll_over(&poll, 100)) return TN_CANCELLED;
    size_t n, whole;
    const char *text = tn_string_data((const tn_string *)x->data + i, &n);
    char *to = (char *)out->data + (size_t)i * length, last[16] = { 0 };
    if (n > length) n = length;
    whole = n / part * part;
    memset(to, 0, length);
    put_bytes(to, text, whole, out->dtype, ctx->state != NULL);
    if (n == whole) continue;
    memcpy(last, text + whole, n - whole);
    put_bytes(to + whole, last, part, out->dtype, ctx->state != NULL);
  }
  return TN_OK;
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "DecodeRaw", .inputs = "bytes: string", .outputs = "output: out_type",
    .attrs = "out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, complex64, complex128, bool, "
             "bfloat16}; little_endian: bool = true",
    .traits = TN_TRAIT_DYNAMIC, .infer = tn__infer_unknown,
    .summary = "decodes bytes of strings as numbers" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "DecodePaddedRaw", .inputs = "input_bytes: string, fixed_length: int32",
    .outputs = "output: out_type",
    .attrs = "out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, bfloat16}; "
             "little_endian: bool = true",
    .shape_operands = 1u << 1, .infer = tn__infer_unknown,
    .summary = "decodes a fixed number of bytes of each string as numbers" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "DecodeRaw", .device = "CPU", .name = "decode_raw_cpu", .rank = TN_RANK_C,
    .create = raw_create, .prepare = raw_prepare, .compute = raw_compute },
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "DecodePaddedRaw", .device = "CPU", .name = "decode_padded_raw_cpu",
    .rank = TN_RANK_C, .create = raw_create, .prepare = padded_prepare, .compute = padded_compute },
};

TN_OP_FAMILY(string_raw)
