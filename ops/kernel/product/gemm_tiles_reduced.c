/* SPDX-License-Identifier: Apache-2.0 */
/* Innermost loops of matrix products with reduced weights: A and C are float, B is bfloat16 or int8. B is converted in
 * registers, so it is read from memory as it is stored: that is what a product of few rows takes time for. */
#include <ops/kernel/product/gemm_kernel.h>
#include <ops/kernel/elements/vectors.h>

#if defined(__clang__)
/* As in gemm_tiles.c. */
#pragma clang attribute push(__attribute__((no_sanitize("undefined", "coverage"))), apply_to = function)
#endif

typedef float four __attribute__((vector_size(16)));

static inline four four_bfloat16(const uint16_t *from)
{
  typedef uint32_t words __attribute__((vector_size(16)));
  return (four)((words){ from[0], from[1], from[2], from[3] } << 16);
}

static inline four four_int8(const int8_t *from)
{
  return (four){ (float)from[0], (float)from[1], (float)from[2], (float)from[3] };
}

#define REAL float
#define VBYTES 16
#define VECTORS 2
#define ROWS 6
#define SUFFIX _bf16
#define TARGET
#define COMPLEX 0
#define FINISH
#define WIDEN(from) four_bfloat16(from)
#define WEIGHT uint16_t
#include <ops/kernel/product/gemm_tile.h>

#define REAL float
#define VBYTES 16
#define VECTORS 2
#define ROWS 6
#define SUFFIX _int8
#define TARGET
#define COMPLEX 0
#define FINISH
#define WIDEN(from) four_int8(from)
#define WEIGHT int8_t
#define SCALES
#include <ops/kernel/product/gemm_tile.h>

#if TN__VECTORS > 1
#include <immintrin.h>

static inline TN__FOR_AVX2 __m256i lanes_32(int n)
{
  static const int32_t lanes[16] = { -1, -1, -1, -1, -1, -1, -1, -1 };
  return _mm256_loadu_si256((const __m256i *)(lanes + 8 - n));
}

static inline TN__FOR_AVX2 __m256 eight_bf16(const uint16_t *from)
{
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)from)), 16));
}

static inline TN__FOR_AVX2 __m256 eight_int8(const int8_t *from)
{
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)from)));
}

static inline TN__FOR_AVX512 __m512 sixteen_bf16(const uint16_t *from)
{
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)from)), 16));
}

static inline TN__FOR_AVX512 __m512 sixteen_int8(const int8_t *from)
{
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)from)));
}

#define REAL float
#define VBYTES 32
#define VECTORS 2
#define ROWS 6
#define SUFFIX _bf16_avx2
#define TARGET TN__FOR_AVX2
#define COMPLEX 0
#define FINISH
#define PUT(to, v, n) _mm256_maskstore_ps(to, lanes_32(n), (__m256)(v))
#define GET(from, n) _mm256_maskload_ps(from, lanes_32(n))
#define LARGER(a, b) _mm256_max_ps((__m256)(a), (__m256)(b))
#define SMALLER(a, b) _mm256_min_ps((__m256)(a), (__m256)(b))
#define WIDEN(from) eight_bf16(from)
#define WEIGHT uint16_t
#include <ops/kernel/product/gemm_tile.h>

#define REAL float
#define VBYTES 32
#define VECTORS 2
#define ROWS 6
#define SUFFIX _int8_avx2
#define TARGET TN__FOR_AVX2
#define COMPLEX 0
#define FINISH
#define PUT(to, v, n) _mm256_maskstore_ps(to, lanes_32(n), (__m256)(v))
#define GET(from, n) _mm256_maskload_ps(from, lanes_32(n))
#define LARGER(a, b) _mm256_max_ps((__m256)(a), (__m256)(b))
#define SMALLER(a, b) _mm256_min_ps((__m256)(a), (__m256)(b))
#define WIDEN(from) eight_int8(from)
#define WEIGHT int8_t
#define SCALES
#include <ops/kernel/product/gemm_tile.h>

#define REAL float
#define VBYTES 32
#define VECTORS 2
#define ROWS 6
#define SUFFIX _bf16_fused
#define TARGET TN__FOR_FUSED_AVX2
#define MADD(a, b, sum) _mm256_fmadd_ps((__m256)(a), _mm256_set1_ps(b), (__m256)(sum))
#define COMPLEX 0
#define FINISH
#define PUT(to, v, n) _mm256_maskstore_ps(to, lanes_32(n), (__m256)(v))
#define GET(from, n) _mm256_maskload_ps(from, lanes_32(n))
#define LARGER(a, b) _mm256_max_ps((__m256)(a), (__m256)(b))
#define SMALLER(a, b) _mm256_min_ps((__m256)(a), (__m256)(b))
#define WIDEN(from) eight_bf16(from)
#define WEIGHT uint16_t
#include <ops/kernel/product/gemm_tile.h>

#define REAL float
#define VBYTES 32
#define VECTORS 2
#define ROWS 6
#define SUFFIX _int8_fused
#define TARGET TN__FOR_FUSED_AVX2
#define MADD(a, b, sum) _mm256_fmadd_ps((__m256)(a), _mm256_set1_ps(b), (__m256)(sum))
#define COMPLEX 0
#define FINISH
#define PUT(to, v, n) _mm256_maskstore_ps(to, lanes_32(n), (__m256)(v))
#define GET(from, n) _mm256_maskload_ps(from, lanes_32(n))
#define LARGER(a, b) _mm256_max_ps((__m256)(a), (__m256)(b))
#define SMALLER(a, b) _mm256_min_ps((__m256)(a), (__m256)(b))
#define WIDEN(from) eight_int8(from)
#define WEIGHT int8_t
#define SCALES
#include <ops/kernel/product/gemm_tile.h>

#define REAL float
#define VBYTES 64
#define VECTORS 1
#define ROWS 12
#define SUFFIX _bf16_avx512
#define TARGET TN__FOR_FUSED_AVX512
#define COMPLEX 0
#define FEW _bf16_fused
#define FLAT
#define FINISH
#define MADD(a, b, sum) _mm512_fmadd_ps((__m512)(a), _mm512_set1_ps(b), (__m512)(sum))
#define PUT(to, v, n) _mm512_mask_storeu_ps(to, (__mmask16)((1u << (n)) - 1), (__m512)(v))
#define GET(from, n) _mm512_maskz_loadu_ps((__mmask16)((1u << (n)) - 1), from)
#define LARGER(a, b) _mm512_max_ps((__m512)(a), (__m512)(b))
#define SMALLER(a, b) _mm512_min_ps((__m512)(a), (__m512)(b))
#define WIDEN(from) sixteen_bf16(from)
#define WEIGHT uint16_t
#include <ops/kernel/product/gemm_tile.h>

#define REAL float
#define VBYTES 64
#define VECTORS 1
#define ROWS 12
#define SUFFIX _int8_avx512
#define TARGET TN__FOR_FUSED_AVX512
#define COMPLEX 0
#define FEW _int8_fused
#define FLAT
#define FINISH
#define MADD(a, b, sum) _mm512_fmadd_ps((__m512)(a), _mm512_set1_ps(b), (__m512)(sum))
#define PUT(to, v, n) _mm512_mask_storeu_ps(to, (__mmask16)((1u << (n)) - 1), (__m512)(v))
#define GET(from, n) _mm512_maskz_loadu_ps((__mmask16)((1u << (n)) - 1), from)
#define LARGER(a, b) _mm512_max_ps((__m512)(a), (__m512)(b))
#define SMALLER(a, b) _mm512_min_ps((__m512)(a), (__m512)(b))
#define WIDEN(from) sixteen_int8(from)
#define WEIGHT int8_t
#define SCALES
#include <ops/kernel/product/gemm_tile.h>

#define REAL float
#define VBYTES 32
#define VECTORS 1
#define ROWS 12
#define SUFFIX _bf16_half
#define TARGET TN__FOR_FUSED_AVX512
#define COMPLEX 0
#define FINISH
#define MADD(a, b, sum) _mm256_fmadd_ps((__m256)(a), _mm256_set1_ps(b), (__m256)(sum))
#define PUT(to, v, n) _mm256_mask_storeu_ps(to, (__mmask8)((1u << (n)) - 1), (__m256)(v))
#define GET(from, n) _mm256_maskz_loadu_ps((__mmask8)((1u << (n)) - 1), from)
#define LARGER(a, b) _mm256_max_ps((__m256)(a), (__m256)(b))
#define SMALLER(a, b) _mm256_min_ps((__m256)(a), (__m256)(b))
#define WIDEN(from) eight_bf16(from)
#define WEIGHT uint16_t
#include <ops/kernel/product/gemm_tile.h>

#define REAL float
#define VBYTES 32
#define VECTORS 1
#define ROWS 12
#define SUFFIX _int8_half
#define TARGET TN__FOR_FUSED_AVX512
#define COMPLEX 0
#define FINISH
#define MADD(a, b, sum) _mm256_fmadd_ps((__m256)(a), _mm256_set1_ps(b), (__m256)(sum))
#define PUT(to, v, n) _mm256_mask_storeu_ps(to, (__mmask8)((1u << (n)) - 1), (__m256)(v))
#define GET(from, n) _mm256_maskz_loadu_ps((__mmask8)((1u << (n)) - 1), from)
#define LARGER(a, b) _mm256_max_ps((__m256)(a), (__m256)(b))
#define SMALLER(a, b) _mm256_min_ps((__m256)(a), (__m256)(b))
#define WIDEN(from) eight_int8(from)
#define WEIGHT int8_t
#define SCALES
#include <ops/kernel/product/gemm_tile.h>

#define WIDE(kernel) &kernel
#else
#define WIDE(kernel) NULL
#endif

const tn__gemm_kernel *tn__gemm_kernel_reduced(tn__gemm_weights weights, tn__gemm_variant variant)
{
  static const tn__gemm_kernel *const kernels[][TN__GEMM_VARIANTS] = {
    [TN__GEMM_BFLOAT16] = { &kernel_bf16, WIDE(kernel_bf16_avx2), WIDE(kernel_bf16_fused), WIDE(kernel_bf16_avx512),
                            WIDE(kernel_bf16_half) },
    [TN__GEMM_INT8] = { &kernel_int8, WIDE(kernel_int8_avx2), WIDE(kernel_int8_fused), WIDE(kernel_int8_avx512),
                        WIDE(kernel_int8_half) },
  };
  return kernels[weights][variant];
}

#if defined(__clang__)
#pragma clang attribute pop
#endif
