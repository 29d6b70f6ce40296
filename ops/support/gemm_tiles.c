/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/support/gemm_kernel.h>

/* 16-byte vectors are in the baseline of every machine that has them at all; elsewhere the compiler splits them. */
#define REAL float
#define VBYTES 16
#define SUFFIX _f32
#define TARGET
#define COMPLEX 0
#include <ops/support/gemm_tile.h>

#define REAL double
#define VBYTES 16
#define SUFFIX _f64
#define TARGET
#define COMPLEX 0
#include <ops/support/gemm_tile.h>

#define REAL uint32_t
#define VBYTES 16
#define SUFFIX _i32
#define TARGET
#define COMPLEX 0
#include <ops/support/gemm_tile.h>

#define REAL uint64_t
#define VBYTES 16
#define SUFFIX _i64
#define TARGET
#define COMPLEX 0
#include <ops/support/gemm_tile.h>

#define REAL float
#define VBYTES 16
#define SUFFIX _c64
#define TARGET
#define COMPLEX 1
#include <ops/support/gemm_tile.h>

#define REAL double
#define VBYTES 16
#define SUFFIX _c128
#define TARGET
#define COMPLEX 1
#include <ops/support/gemm_tile.h>

/* Vectors of 64 bytes were slower than these where they were tried: without fused operations both do as much. */
#if defined(__x86_64__) && defined(__GNUC__)
#define REAL float
#define VBYTES 32
#define SUFFIX _f32_avx2
#define TARGET __attribute__((target("avx2")))
#define COMPLEX 0
#include <ops/support/gemm_tile.h>

#define REAL double
#define VBYTES 32
#define SUFFIX _f64_avx2
#define TARGET __attribute__((target("avx2")))
#define COMPLEX 0
#include <ops/support/gemm_tile.h>

#define REAL uint32_t
#define VBYTES 32
#define SUFFIX _i32_avx2
#define TARGET __attribute__((target("avx2")))
#define COMPLEX 0
#include <ops/support/gemm_tile.h>

#define REAL float
#define VBYTES 32
#define SUFFIX _c64_avx2
#define TARGET __attribute__((target("avx2")))
#define COMPLEX 1
#include <ops/support/gemm_tile.h>

#define REAL double
#define VBYTES 32
#define SUFFIX _c128_avx2
#define TARGET __attribute__((target("avx2")))
#define COMPLEX 1
#include <ops/support/gemm_tile.h>

/* Wide vectors are wasted on few columns. */
static bool fits(const tn__gemm_kernel *wide, int64_t n)
{
  int64_t over = n % wide->nr;
  return n >= 4 * wide->nr || over == 0 || over > wide->nr / 2;
}

static const tn__gemm_kernel *wider(tn__gemm_type type, int64_t n)
{
  static const tn__gemm_kernel *const avx2[] = { &kernel_f32_avx2, &kernel_f64_avx2, &kernel_i32_avx2,
                                                 NULL, /* it has no multiplication of 64 bits */
                                                 &kernel_c64_avx2, &kernel_c128_avx2 };
  if (avx2[type] != NULL && fits(avx2[type], n) && __builtin_cpu_supports("avx2")) return avx2[type];
  return NULL;
}
#else
static const tn__gemm_kernel *wider(tn__gemm_type type, int64_t n)
{
  (void)type, (void)n;
  return NULL;
}
#endif

const tn__gemm_kernel *tn__gemm_kernel_find(tn__gemm_type type, int64_t n)
{
  static const tn__gemm_kernel *const base[] = { &kernel_f32, &kernel_f64, &kernel_i32,
                                                 &kernel_i64, &kernel_c64, &kernel_c128 };
  const tn__gemm_kernel *kernel = wider(type, n);
  return kernel != NULL ? kernel : base[type];
}
