/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/kernel/elements/half.h>
#include <ops/kernel/elements/widen.h>

tn_dtype tn__wide_dtype(tn_dtype dtype)
{
  switch (dtype) {
  case TN_HALF:
  case TN_BFLOAT16: return TN_FLOAT;
  case TN_INT8:
  case TN_UINT8:
  case TN_INT16: return TN_INT32;
  default: return dtype;
  }
}

#define WIDEN(name, T, U)                                         \
  static void widen_##name(const void *from, void *to, int64_t n) \
  {                                                               \
    const T *restrict a = from;                                   \
    U *restrict b = to;                                           \
    for (int64_t i = 0; i < n; i++) b[i] = (U)a[i];               \
  }
WIDEN(i8_f32, int8_t, float)
WIDEN(u8_f32, uint8_t, float)
WIDEN(i16_f32, int16_t, float)
WIDEN(i8_i32, int8_t, int32_t)
WIDEN(u8_i32, uint8_t, int32_t)
WIDEN(i16_i32, int16_t, int32_t)
WIDEN(i32_i16, int32_t, int16_t)

void tn__widen(tn_dtype from_dtype, const void *from, tn_dtype to_dtype, void *to, int64_t n)
{
  bool floats = to_dtype == TN_FLOAT;
  switch (from_dtype) {
  case TN_HALF: tn__half_to_floats(from, to, n); break;
  case TN_BFLOAT16: tn__bfloat16_to_floats(from, to, n); break;
  case TN_INT8: (floats ? widen_i8_f32 : widen_i8_i32)(from, to, n); break;
  case TN_UINT8: (floats ? widen_u8_f32 : widen_u8_i32)(from, to, n); break;
  default: (floats ? widen_i16_f32 : widen_i16_i32)(from, to, n); break;
  }
}

void tn__narrow(tn_dtype to_dtype, const void *from, void *to, int64_t n)
{
  switch (to_dtype) {
  case TN_HALF: tn__half_from_floats(from, to, n); break;
  case TN_BFLOAT16: tn__bfloat16_from_floats(from, to, n); break;
  default: widen_i32_i16(from, to, n); break;
  }
}

typedef struct change {
  tn_dtype from_dtype, to_dtype;
  const char *from;
  char *to;
  bool narrow;
} change;

static void change_part(void *user, int64_t begin, int64_t end)
{
  const change *c = user;
  const char *from = c->from + (size_t)begin * tn_dtype_size(c->from_dtype);
  char *to = c->to + (size_t)begin * tn_dtype_size(c->to_dtype);
  if (c->narrow)
    tn__narrow(c->to_dtype, from, to, end - begin);
  else
    tn__widen(c->from_dtype, from, c->to_dtype, to, end - begin);
}

static void change_all(tn_kernel_ctx *ctx, change *c, int64_t n)
{
  if (n <= 1 << 16)
    change_part(c, 0, n);
  else
    tn_parallel_for(ctx, n, 1 << 15, 0.4, change_part, c);
}

void tn__widen_all(tn_kernel_ctx *ctx, tn_dtype from_dtype, const void *from, tn_dtype to_dtype, void *to, int64_t n)
{
  change c = { from_dtype, to_dtype, from, to, false };
  change_all(ctx, &c, n);
}

void tn__narrow_all(tn_kernel_ctx *ctx, tn_dtype to_dtype, const void *from, void *to, int64_t n)
{
  change c = { tn__wide_dtype(to_dtype), to_dtype, from, to, true };
  change_all(ctx, &c, n);
}
