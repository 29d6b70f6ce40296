/* SPDX-License-Identifier: Apache-2.0 */
/* half (IEEE binary16) and bfloat16, held as uint16_t bits. Conversion to float is exact. Conversion from float
 * rounds once, to nearest even; overflow gives infinity, and a NaN gives a quiet NaN of the same sign. There are no
 * branches, so loops around these functions vectorise. Requires only C11 and IEEE floats. */
#ifndef TN_OPS_KERNEL_ELEMENTS_HALF_H
#define TN_OPS_KERNEL_ELEMENTS_HALF_H

#include <stdint.h>

static inline uint32_t tn__float_bits(float f)
{
  union { float f; uint32_t u; } v = { f };
  return v.u;
}

static inline float tn__float_of_bits(uint32_t u)
{
  union { uint32_t u; float f; } v = { u };
  return v.f;
}

static inline float tn__half_to_float(uint16_t h)
{
  uint32_t u = (uint32_t)(h & 0x7fffu) << 13, exponent = u & 0x0f800000u;
  uint32_t normal = u + (112u << 23);
  uint32_t special = u + (224u << 23); /* infinity and NaN: exponent 255 */
  /* A subnormal is fraction * 2^-24: place the fraction under the implicit one of 2^-14, then subtract 2^-14. */
  uint32_t tiny = tn__float_bits(tn__float_of_bits(u + (113u << 23)) - tn__float_of_bits(113u << 23));
  uint32_t r = exponent == 0 ? tiny : normal;
  r = exponent == 0x0f800000u ? special : r;
  return tn__float_of_bits(r | (uint32_t)(h & 0x8000u) << 16);
}

static inline uint16_t tn__half_from_float(float f)
{
  uint32_t u = tn__float_bits(f), sign = u & 0x80000000u;
  u ^= sign;
  /* Below 2^-14 the unit in the last place is 2^-24: adding 0.5 lets the adder round there. */
  uint32_t tiny = tn__float_bits(tn__float_of_bits(u) + 0.5f) - (126u << 23);
  uint32_t normal = (u - (112u << 23) + 0xfffu + (u >> 13 & 1u)) >> 13;
  uint32_t r = u < 113u << 23 ? tiny : normal;
  r = u >= 143u << 23 ? 0x7c00u : r; /* 2^16 and above; smaller numbers that round up to it are already infinity */
  r = u > 0x7f800000u ? 0x7e00u : r;
  return (uint16_t)(r | sign >> 16);
}

static inline float tn__bfloat16_to_float(uint16_t b)
{
  return tn__float_of_bits((uint32_t)b << 16);
}

static inline uint16_t tn__bfloat16_from_float(float f)
{
  uint32_t u = tn__float_bits(f);
  uint32_t rounded = (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
  uint32_t nan = (u >> 16 & 0x8000u) | 0x7fc0u;
  return (uint16_t)((u & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

/* Rounds a double to float with round-to-odd: an inexact result has its last bit set. Rounding that float to a shorter
 * type then gives the same result as rounding the double directly. */
static inline float tn__float_to_odd(double d)
{
  float f = (float)d;
  double back = f;
  uint32_t u = tn__float_bits(f);
  uint32_t shrink = (back < 0 ? -back : back) > (d < 0 ? -d : d);
  uint32_t inexact = (back != d) & (d == d) & !(u & 1u);
  return tn__float_of_bits(u + (inexact ? 1u - 2u * shrink : 0u));
}

static inline uint16_t tn__half_from_double(double d) { return tn__half_from_float(tn__float_to_odd(d)); }
static inline uint16_t tn__bfloat16_from_double(double d) { return tn__bfloat16_from_float(tn__float_to_odd(d)); }

/* Tests on the bits, without conversion. */
static inline int tn__half_is_nan(uint16_t h) { return (h & 0x7fffu) > 0x7c00u; }
static inline int tn__half_is_inf(uint16_t h) { return (h & 0x7fffu) == 0x7c00u; }
static inline int tn__bfloat16_is_nan(uint16_t b) { return (b & 0x7fffu) > 0x7f80u; }
static inline int tn__bfloat16_is_inf(uint16_t b) { return (b & 0x7fffu) == 0x7f80u; }

/* Arrays of n elements; `from` and `to` do not overlap. n may be 0. */
void tn__half_to_floats(const uint16_t *from, float *to, int64_t n);
void tn__half_from_floats(const float *from, uint16_t *to, int64_t n);
void tn__bfloat16_to_floats(const uint16_t *from, float *to, int64_t n);
void tn__bfloat16_from_floats(const float *from, uint16_t *to, int64_t n);

#endif
