/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/kernel/order.h>

/* Negative numbers map to sign - magnitude, others to sign + magnitude, so both zeros map to `sign`. NaN maps to the
 * largest key. */
#define FLOATS(name, U, K, which, sign, infinity)                                                      \
  static void which##_##name(const void *data, int64_t at, int64_t n, K *keys)                         \
  {                                                                                                    \
    const U *x = (const U *)data + at;                                                                 \
    for (int64_t i = 0; i < n; i++) {                                                                  \
      K u = x[i], magnitude = u & ((sign) - 1);                                                        \
      K key = magnitude != u ? (sign) - magnitude : (sign) + magnitude;                                \
      keys[i] = magnitude > (infinity) ? (sign) - 1 + (sign) : key;                                    \
    }                                                                                                  \
  }
FLOATS(f16, uint16_t, uint32_t, narrow, UINT32_C(0x8000), 0x7c00u)
FLOATS(bf16, uint16_t, uint32_t, narrow, UINT32_C(0x8000), 0x7f80u)
FLOATS(f32, uint32_t, uint32_t, narrow, UINT32_C(0x80000000), 0x7f800000u)
FLOATS(f64, uint64_t, uint64_t, wide, UINT64_C(0x8000000000000000), UINT64_C(0x7ff0000000000000))

#define INTEGERS(name, U, K, which, sign)                                              \
  static void which##_##name(const void *data, int64_t at, int64_t n, K *keys)         \
  {                                                                                    \
    const U *x = (const U *)data + at;                                                 \
    for (int64_t i = 0; i < n; i++) keys[i] = (K)(x[i] ^ (U)(sign));                   \
  }
INTEGERS(u8, uint8_t, uint32_t, narrow, 0)
INTEGERS(i8, uint8_t, uint32_t, narrow, 0x80u)
INTEGERS(u16, uint16_t, uint32_t, narrow, 0)
INTEGERS(i16, uint16_t, uint32_t, narrow, 0x8000u)
INTEGERS(u32, uint32_t, uint32_t, narrow, 0)
INTEGERS(i32, uint32_t, uint32_t, narrow, 0x80000000u)
INTEGERS(u64, uint64_t, uint64_t, wide, 0)
INTEGERS(i64, uint64_t, uint64_t, wide, UINT64_C(0x8000000000000000))

const tn__order *tn__order_of(tn_dtype dtype)
{
  static const tn__order orders[] = {
    { TN_FLOAT, 4, narrow_f32, NULL }, { TN_DOUBLE, 8, NULL, wide_f64 },  { TN_HALF, 2, narrow_f16, NULL },
    { TN_BFLOAT16, 2, narrow_bf16, NULL }, { TN_UINT8, 1, narrow_u8, NULL }, { TN_INT8, 1, narrow_i8, NULL },
    { TN_UINT16, 2, narrow_u16, NULL }, { TN_INT16, 2, narrow_i16, NULL }, { TN_UINT32, 4, narrow_u32, NULL },
    { TN_INT32, 4, narrow_i32, NULL }, { TN_UINT64, 8, NULL, wide_u64 },  { TN_INT64, 8, NULL, wide_i64 },
  };
  for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++)
    if (orders[i].dtype == dtype) return &orders[i];
  return NULL;
}
