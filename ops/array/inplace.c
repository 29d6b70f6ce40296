/* SPDX-License-Identifier: Apache-2.0 */
/* InplaceAdd InplaceSub InplaceUpdate: a tensor with some rows changed. The numbers of rows are modulo their count. */
#include <core/base/alloc.h>
#include <ops/kernel/elements/elements.h>
#include <ops/kernel/elements/half.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <string.h>

static tn_status change_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *x = &ctx->inputs[0], *i = &ctx->inputs[1], *v = &ctx->inputs[2];
  tn_status st = tn__want_rank(ctx, 1, 1, err);
  if (st == TN_OK) st = tn__want_rank_at_least(ctx, 0, 1, err);
  if (st != TN_OK) return st;
  tn__shape wanted;
  tn__shape_set(&wanted, x->dims, x->rank);
  wanted.dims[0] = i->count;
  bool fits = v->rank == x->rank;
  for (int32_t k = 0; fits && k < x->rank; k++) fits = v->dims[k] == wanted.dims[k];
  if (!fits) return tn__shape_error(err, ctx, 2, wanted.dims, wanted.rank);
  ctx->cost_ns = 20 + (double)x->count * 0.5 + (double)v->count;
  st = tn_prepare_output_like(ctx, 0, 0, err);
  return st != TN_OK || x->dtype == TN_STRING ? st : tn_prepare_in_place(ctx, 0, 0, err);
}

#define ADD(NAME, T, U)                                                                                        \
  static void NAME(void *to, const void *from, int64_t n, bool subtract)                                       \
  {                                                                                                            \
    T *a = to;                                                                                                 \
    const T *b = from;                                                                                         \
    for (int64_t i = 0; i < n; i++) a[i] = subtract ? (T)((U)a[i] - (U)b[i]) : (T)((U)a[i] + (U)b[i]);          \
  }
#define ADD_SHORT(NAME, LOAD, STORE)                                                                           \
  static void NAME(void *to, const void *from, int64_t n, bool subtract)                                       \
  {                                                                                                            \
    uint16_t *a = to;                                                                                          \
    const uint16_t *b = from;                                                                                  \
    for (int64_t i = 0; i < n; i++) a[i] = STORE(subtract ? LOAD(a[i]) - LOAD(b[i]) : LOAD(a[i]) + LOAD(b[i])); \
  }
ADD(add_8, uint8_t, uint32_t)
ADD(add_16, uint16_t, uint32_t)
ADD(add_32, uint32_t, uint32_t)
ADD(add_64, uint64_t, uint64_t)
ADD(add_float, float, float)
ADD(add_double, double, double)
ADD_SHORT(add_half, tn__half_to_float, tn__half_from_float)
ADD_SHORT(add_bfloat16, tn__bfloat16_to_float, tn__bfloat16_from_float)

typedef void (*add_fn)(void *to, const void *from, int64_t n, bool subtract);

/* The function for a dtype; NULL if it cannot be added. A complex number is *parts numbers. */
static add_fn add_of(tn_dtype dtype, int64_t *parts)
{
  *parts = dtype == TN_COMPLEX64 || dtype == TN_COMPLEX128 ? 2 : 1;
  switch (dtype) {
  case TN_INT8:
  case TN_UINT8: return add_8;
  case TN_INT16:
  case TN_UINT16: return add_16;
  case TN_INT32:
  case TN_UINT32: return add_32;
  case TN_INT64:
  case TN_UINT64: return add_64;
  case TN_COMPLEX64:
  case TN_FLOAT: return add_float;
  case TN_COMPLEX128:
  case TN_DOUBLE: return add_double;
  case TN_HALF: return add_half;
  case TN_BFLOAT16: return add_bfloat16;
  default: return NULL;
  }
}

typedef enum change { PUT, PLUS, MINUS } change;

static tn_status apply(tn_kernel_ctx *ctx, const char *op, change what)
{
  const tn_view *x = ctx->inputs[0], *v = ctx->inputs[2], *out = ctx->outputs[0];
  int64_t rows = x->dims[0], each = rows > 0 ? x->count / rows : 0, parts;
  size_t bytes = (size_t)each * tn_dtype_size(x->dtype);
  add_fn add = add_of(x->dtype, &parts);
  if (what != PUT && add == NULL)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "%s: dtype %s cannot be added", op, tn_dtype_name(x->dtype));
  tn_status st = TN_OK;
  if (out->data != x->data) st = tn__copy_elements(x->dtype, out->data, x->data, x->count, ctx->err);
  for (int64_t k = 0; st == TN_OK && k < ctx->inputs[1]->count && rows > 0; k++) {
    int64_t row = ((const int32_t *)ctx->inputs[1]->data)[k] % rows;
    char *to = (char *)out->data + (size_t)(row < 0 ? row + rows : row) * bytes;
    const char *from = (const char *)v->data + (size_t)k * bytes;
    if (what == PUT) st = tn__copy_elements(x->dtype, to, from, each, ctx->err);
    else add(to, from, each * parts, what == MINUS);
  }
  return st;
}

static tn_status apply_add(tn_kernel_ctx *ctx) { return apply(ctx, "InplaceAdd", PLUS); }
static tn_status apply_sub(tn_kernel_ctx *ctx) { return apply(ctx, "InplaceSub", MINUS); }
static tn_status apply_update(tn_kernel_ctx *ctx) { return apply(ctx, "InplaceUpdate", PUT); }

#define OP(op, text)                                                                                 \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = "x: T, i: int32, v: T", .outputs = "y: T",  \
    .attrs = "T: type", .infer = tn__infer_unchanged, .summary = text }

static const tn_op_def ops[] = {
  OP("InplaceAdd", "adds to some rows of a tensor"),
  OP("InplaceSub", "subtracts from some rows of a tensor"),
  OP("InplaceUpdate", "replaces some rows of a tensor"),
};

#define TYPES                                                                                                        \
  "T=float|double|half|bfloat16|int8|uint8|int16|uint16|int32|uint32|int64|uint64|bool|complex64|complex128|string|" \
  "qint8|quint8|qint16|quint16|qint32"
#define KERNEL(which, title, compute_fn)                                                                \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .types = TYPES, .name = title,     \
    .rank = TN_RANK_C, .prepare = change_prepare, .compute = compute_fn }

static const tn_kernel_def kernels[] = {
  KERNEL("InplaceAdd", "inplace_add_cpu", apply_add),
  KERNEL("InplaceSub", "inplace_sub_cpu", apply_sub),
  KERNEL("InplaceUpdate", "inplace_update_cpu", apply_update),
};

TN_OP_FAMILY(inplace)
