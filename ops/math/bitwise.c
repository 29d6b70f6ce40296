/* SPDX-License-Identifier: Apache-2.0 */
/* Bitwise ops on integers: BitwiseAnd BitwiseOr BitwiseXor Invert LeftShift RightShift. */
#include <ops/kernel/elements/elementwise.h>
#include <ops/kernel/family.h>

#define EXPR_bitwise_and(d, x, y) ((x) & (y))
#define EXPR_bitwise_or(d, x, y) ((x) | (y))
#define EXPR_bitwise_xor(d, x, y) ((x) ^ (y))
#define EXPR_invert(d, x) (~(x))

/* Shift counts are clamped to [0, bits - 1]. A right shift of a signed number is arithmetic. */
#define SHIFTS(d, T, U, bits)                                                                      \
  static inline T shift_by_##d(T y)                                                                \
  {                                                                                                \
    T low = y < 0 ? 0 : y;                                                                         \
    return low > (bits) - 1 ? (bits) - 1 : low;                                                    \
  }                                                                                                \
  static inline T left_##d(T x, T y) { return (T)(U)((U)x << shift_by_##d(y)); }                   \
  static inline T right_##d(T x, T y) { return (T)(x >> shift_by_##d(y)); }
#define UNSIGNED_SHIFTS(d, T, U, bits)                                                             \
  static inline T shift_by_##d(T y) { return y > (bits) - 1 ? (bits) - 1 : y; }                    \
  static inline T left_##d(T x, T y) { return (T)((U)x << shift_by_##d(y)); }                      \
  static inline T right_##d(T x, T y) { return (T)(x >> shift_by_##d(y)); }
SHIFTS(i8, int8_t, uint32_t, 8)
SHIFTS(i16, int16_t, uint32_t, 16)
SHIFTS(i32, int32_t, uint32_t, 32)
SHIFTS(i64, int64_t, uint64_t, 64)
UNSIGNED_SHIFTS(u8, uint8_t, uint32_t, 8)
UNSIGNED_SHIFTS(u16, uint16_t, uint32_t, 16)
UNSIGNED_SHIFTS(u32, uint32_t, uint32_t, 32)
UNSIGNED_SHIFTS(u64, uint64_t, uint64_t, 64)
#define EXPR_left_shift(d, x, y) left_##d(x, y)
#define EXPR_right_shift(d, x, y) right_##d(x, y)

#define INTEGERS(X, op) TN__SAME_SIGNED(X, op) TN__SAME_UNSIGNED(X, op)
#define WRAPPING(X, op) TN__WRAP_SIGNED(X, op) TN__WRAP_UNSIGNED(X, op)

TN__BINARY(bitwise_and, 0.3, WRAPPING, TN__NO_TYPES)
TN__BINARY(bitwise_or, 0.3, WRAPPING, TN__NO_TYPES)
TN__BINARY(bitwise_xor, 0.3, WRAPPING, TN__NO_TYPES)
TN__UNARY(invert, 0.3, WRAPPING)
TN__BINARY(left_shift, 0.5, INTEGERS, TN__NO_TYPES)
TN__BINARY(right_shift, 0.5, INTEGERS, TN__NO_TYPES)

/* ---- the family ---- */

#define T_INTEGERS "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}"
#define BINARY_OPS(X)                                                          \
  X("BitwiseAnd", bitwise_and, TN_TRAIT_COMMUTATIVE, "x & y")                  \
  X("BitwiseOr", bitwise_or, TN_TRAIT_COMMUTATIVE, "x | y")                    \
  X("BitwiseXor", bitwise_xor, TN_TRAIT_COMMUTATIVE, "x ^ y")                  \
  X("LeftShift", left_shift, 0, "x << y, y from 0 to the number of bits less 1") \
  X("RightShift", right_shift, 0, "x >> y, y from 0 to the number of bits less 1")

#define BINARY_OP(op, fn, bits, summary) \
  TN__ELEMENTWISE_OP(op, "x: T, y: T", "z: T", T_INTEGERS, bits, tn__infer_broadcast, summary),
#define BINARY_KERNEL(op, fn, bits, summary) TN__BINARY_KERNEL(op, NULL, fn),

static const tn_op_def ops[] = {
  BINARY_OPS(BINARY_OP)
  TN__ELEMENTWISE_OP("Invert", "x: T", "y: T", T_INTEGERS, 0, tn__infer_unchanged, "all bits turned over"),
};

static const tn_kernel_def kernels[] = {
  BINARY_OPS(BINARY_KERNEL)
  TN__UNARY_KERNEL("Invert", NULL, invert),
};

TN_OP_FAMILY(bitwise)
