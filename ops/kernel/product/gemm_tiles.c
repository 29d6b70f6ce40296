/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/kernel/product/gemm_kernel.h>
#include <ops/kernel/elements/vectors.h>

#if defined(__clang__)
/* With undefined-behaviour checks clang takes minutes to compile these loops. The sanitizer build with gcc checks
 * them. */
#pragma clang attribute push(__attribute__((no_sanitize("undefined", "coverage"))), apply_to = function)
#endif

/* Every machine that has 16-byte vectors has them in its baseline; elsewhere the compiler splits them. */
#define REAL float
#define VBYTES 16
#define VECTORS 2
#define ROWS 6
#define SUFFIX _f32
#define TARGET
#define COMPLEX 0
#define FINISH
#include <ops/kernel/product/gemm_tile.h>

#define REAL double
#define VBYTES 16
#define VECTORS 2
#define ROWS 6
#define SUFFIX _f64
#define TARGET
#define COMPLEX 0
#include <ops/kernel/product/gemm_tile.h>

#define REAL uint32_t
#define VBYTES 16
#define VECTORS 2
#define ROWS 6
#define SUFFIX _i32
#define TARGET
#define COMPLEX 0
#include <ops/kernel/product/gemm_tile.h>

#define REAL uint64_t
#define VBYTES 16
#define VECTORS 2
#define ROWS 6
#define SUFFIX _i64
#define TARGET
#define COMPLEX 0
#include <ops/kernel/product/gemm_tile.h>

#define REAL float
#define VBYTES 16
#define VECTORS 2
#define ROWS 3
#define SUFFIX _c64
#define TARGET
#define COMPLEX 1
#include <ops/kernel/product/gemm_tile.h>

#define REAL double
#define VBYTES 16
#define VECTORS 2
#define ROWS 3
#define SUFFIX _c128
#define TARGET
#define COMPLEX 1
#include <ops/kernel/product/gemm_tile.h>

/* The numbers of a pair, sign-extended. */
#define LOW(x) ((((x) & 0xffff) ^ 0x8000) - 0x8000)
#define HIGH(x) (((x) >> 16 ^ 0x8000) - 0x8000)
#define REAL uint32_t
#define VBYTES 16
#define VECTORS 2
#define ROWS 6
#define SUFFIX _pairs
#define TARGET
#define COMPLEX 0
#define MADD(a, b, sum) ((sum) + LOW(a) * LOW(b) + HIGH(a) * HIGH(b))
#include <ops/kernel/product/gemm_tile.h>

#if TN__VECTORS > 1
#include <immintrin.h>

/* A mask with all bits set in the first n lanes. */
static inline TN__FOR_AVX2 __m256i lanes_32(int n)
{
  static const int32_t lanes[16] = { -1, -1, -1, -1, -1, -1, -1, -1 };
  return _mm256_loadu_si256((const __m256i *)(lanes + 8 - n));
}

static inline TN__FOR_AVX2 __m256i lanes_64(int n)
{
  static const int64_t lanes[8] = { -1, -1, -1, -1 };
  return _mm256_loadu_si256((const __m256i *)(lanes + 4 - n));
}

#define REAL float
#define VBYTES 32
#define VECTORS 2
#define ROWS 6
#define SUFFIX _f32_avx2
#define TARGET TN__FOR_AVX2
#define COMPLEX 0
#define PUT(to, v, n) _mm256_maskstore_ps(to, lanes_32(n), (__m256)(v))
#define GET(from, n) _mm256_maskload_ps(from, lanes_32(n))
#define FINISH
#define LARGER(a, b) _mm256_max_ps((__m256)(a), (__m256)(b))
#define SMALLER(a, b) _mm256_min_ps((__m256)(a), (__m256)(b))
#include <ops/kernel/product/gemm_tile.h>

#define REAL double
#define VBYTES 32
#define VECTORS 2
#define ROWS 6
#define SUFFIX _f64_avx2
#define TARGET TN__FOR_AVX2
#define COMPLEX 0
#define PUT(to, v, n) _mm256_maskstore_pd(to, lanes_64(n), (__m256d)(v))
#define GET(from, n) _mm256_maskload_pd(from, lanes_64(n))
#include <ops/kernel/product/gemm_tile.h>

#define REAL uint32_t
#define VBYTES 32
#define VECTORS 2
#define ROWS 6
#define SUFFIX _i32_avx2
#define TARGET TN__FOR_AVX2
#define COMPLEX 0
#include <ops/kernel/product/gemm_tile.h>

#define REAL uint32_t
#define VBYTES 32
#define VECTORS 2
#define ROWS 6
#define SUFFIX _pairs_avx2
#define TARGET TN__FOR_AVX2
#define COMPLEX 0
#define MADD(a, b, sum) \
  _mm256_add_epi32((__m256i)(sum), _mm256_madd_epi16((__m256i)(a), _mm256_set1_epi32((int32_t)(b))))
#include <ops/kernel/product/gemm_tile.h>

#define REAL float
#define VBYTES 32
#define VECTORS 2
#define ROWS 3
#define SUFFIX _c64_avx2
#define TARGET TN__FOR_AVX2
#define COMPLEX 1
#include <ops/kernel/product/gemm_tile.h>

#define REAL double
#define VBYTES 32
#define VECTORS 2
#define ROWS 3
#define SUFFIX _c128_avx2
#define TARGET TN__FOR_AVX2
#define COMPLEX 1
#include <ops/kernel/product/gemm_tile.h>

#define REAL float
#define VBYTES 32
#define VECTORS 2
#define ROWS 6
#define SUFFIX _f32_fused
#define TARGET TN__FOR_FUSED_AVX2
#define COMPLEX 0
#define MADD(a, b, sum) _mm256_fmadd_ps((__m256)(a), _mm256_set1_ps(b), (__m256)(sum))
#define PUT(to, v, n) _mm256_maskstore_ps(to, lanes_32(n), (__m256)(v))
#define GET(from, n) _mm256_maskload_ps(from, lanes_32(n))
#define FINISH
#define LARGER(a, b) _mm256_max_ps((__m256)(a), (__m256)(b))
#define SMALLER(a, b) _mm256_min_ps((__m256)(a), (__m256)(b))
#include <ops/kernel/product/gemm_tile.h>

#define REAL double
#define VBYTES 32
#define VECTORS 2
#define ROWS 6
#define SUFFIX _f64_fused
#define TARGET TN__FOR_FUSED_AVX2
#define COMPLEX 0
#define MADD(a, b, sum) _mm256_fmadd_pd((__m256d)(a), _mm256_set1_pd(b), (__m256d)(sum))
#define PUT(to, v, n) _mm256_maskstore_pd(to, lanes_64(n), (__m256d)(v))
#define GET(from, n) _mm256_maskload_pd(from, lanes_64(n))
#include <ops/kernel/product/gemm_tile.h>

/* All kernels for AVX-512 multiply and add at once. With 32 registers, one vector per row is best: numbers of A are
 * memory operands of the multiplication, and many rows share each vector loaded from B. */
#define REAL float
#define VBYTES 64
#define VECTORS 1
#define ROWS 12
#define SUFFIX _f32_avx512
#define TARGET TN__FOR_FUSED_AVX512
#define COMPLEX 0
#define FEW _f32_fused
#define MADD(a, b, sum) _mm512_fmadd_ps((__m512)(a), _mm512_set1_ps(b), (__m512)(sum))
#define PUT(to, v, n) _mm512_mask_storeu_ps(to, (__mmask16)((1u << (n)) - 1), (__m512)(v))
#define GET(from, n) _mm512_maskz_loadu_ps((__mmask16)((1u << (n)) - 1), from)
#define FLAT
#define FINISH
#define LARGER(a, b) _mm512_max_ps((__m512)(a), (__m512)(b))
#define SMALLER(a, b) _mm512_min_ps((__m512)(a), (__m512)(b))
#include <ops/kernel/product/gemm_tile.h>

#define REAL double
#define VBYTES 64
#define VECTORS 1
#define ROWS 12
#define SUFFIX _f64_avx512
#define TARGET TN__FOR_FUSED_AVX512
#define COMPLEX 0
#define FEW _f64_fused
#define MADD(a, b, sum) _mm512_fmadd_pd((__m512d)(a), _mm512_set1_pd(b), (__m512d)(sum))
#define PUT(to, v, n) _mm512_mask_storeu_pd(to, (__mmask8)((1u << (n)) - 1), (__m512d)(v))
#define GET(from, n) _mm512_maskz_loadu_pd((__mmask8)((1u << (n)) - 1), from)
#define FLAT
#include <ops/kernel/product/gemm_tile.h>

/* For column counts that would leave half of the last wide panel empty. */
#define REAL float
#define VBYTES 32
#define VECTORS 1
#define ROWS 12
#define SUFFIX _f32_half
#define TARGET TN__FOR_FUSED_AVX512
#define COMPLEX 0
#define MADD(a, b, sum) _mm256_fmadd_ps((__m256)(a), _mm256_set1_ps(b), (__m256)(sum))
#define PUT(to, v, n) _mm256_mask_storeu_ps(to, (__mmask8)((1u << (n)) - 1), (__m256)(v))
#define GET(from, n) _mm256_maskz_loadu_ps((__mmask8)((1u << (n)) - 1), from)
#define FINISH
#define LARGER(a, b) _mm256_max_ps((__m256)(a), (__m256)(b))
#define SMALLER(a, b) _mm256_min_ps((__m256)(a), (__m256)(b))
#include <ops/kernel/product/gemm_tile.h>

#define WIDE(kernel) &kernel

/* True if n columns use the wide panels well enough. */
static bool fits(const tn__gemm_kernel *wide, int64_t n)
{
  int64_t over = n % wide->nr;
  return n >= 4 * wide->nr || over == 0 || over > wide->nr / 2;
}

static tn__gemm_variant wider(tn__gemm_type type, int64_t n, bool reproducible)
{
  static const tn__gemm_kernel *const avx2[] = { &kernel_f32_avx2, &kernel_f64_avx2, &kernel_i32_avx2,
                                                 NULL, /* AVX2 has no 64-bit multiplication */
                                                 &kernel_c64_avx2, &kernel_c128_avx2, &kernel_pairs_avx2 };
  int vectors = tn__vectors_for(reproducible);
  if (vectors == TN__BASELINE) return TN__GEMM_BASELINE;
  bool fused = vectors == TN__FUSED_AVX2 || vectors == TN__FUSED_AVX512;
  if (vectors == TN__FUSED_AVX512 && type == TN__GEMM_F32) {
    /* A half-width panel costs more than half: rows of A are loaded just as often. */
    bool half = n <= kernel_f32_half.nr || (n > kernel_f32_avx512.nr && n <= 3 * kernel_f32_half.nr);
    return half ? TN__GEMM_HALF : TN__GEMM_AVX512;
  }
  if (avx2[type] == NULL || !fits(avx2[type], n)) return TN__GEMM_BASELINE;
  if (fused && type == TN__GEMM_F32) return TN__GEMM_FUSED;
  if (fused && type == TN__GEMM_F64) return vectors == TN__FUSED_AVX512 ? TN__GEMM_AVX512 : TN__GEMM_FUSED;
  return TN__GEMM_AVX2;
}
#else
#define WIDE(kernel) NULL
static tn__gemm_variant wider(tn__gemm_type type, int64_t n, bool reproducible)
{
  (void)type, (void)n, (void)reproducible;
  return TN__GEMM_BASELINE;
}
#endif

tn__gemm_variant tn__gemm_variant_find(tn__gemm_type type, int64_t n, bool reproducible)
{
  return wider(type, n, reproducible);
}

const tn__gemm_kernel *tn__gemm_kernel_find(tn__gemm_type type, int64_t n, bool reproducible)
{
  static const tn__gemm_kernel *const kernels[][TN__GEMM_VARIANTS] = {
    [TN__GEMM_F32] = { &kernel_f32, WIDE(kernel_f32_avx2), WIDE(kernel_f32_fused), WIDE(kernel_f32_avx512),
                       WIDE(kernel_f32_half) },
    [TN__GEMM_F64] = { &kernel_f64, WIDE(kernel_f64_avx2), WIDE(kernel_f64_fused), WIDE(kernel_f64_avx512) },
    [TN__GEMM_I32] = { &kernel_i32, WIDE(kernel_i32_avx2) },
    [TN__GEMM_I64] = { &kernel_i64 },
    [TN__GEMM_C64] = { &kernel_c64, WIDE(kernel_c64_avx2) },
    [TN__GEMM_C128] = { &kernel_c128, WIDE(kernel_c128_avx2) },
    [TN__GEMM_PAIRS] = { &kernel_pairs, WIDE(kernel_pairs_avx2) },
  };
  return kernels[type][wider(type, n, reproducible)];
}

#if defined(__clang__)
#pragma clang attribute pop
#endif
