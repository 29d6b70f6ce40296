/* SPDX-License-Identifier: Apache-2.0 */
/* Run-time selection of vector instruction sets. A loop is written once and compiled for the architecture's
 * baseline and, on x86-64, for AVX2 and AVX-512. The variant is chosen at run time. These variants give the same
 * bits: contraction is off, and if a loop has lanes, their number does not depend on the vector width. A loop for wide
 * vectors processes only whole vectors and leaves the remaining elements to the baseline loop. This keeps each variant
 * a few instructions long, so that there can be many of them.
 *
 * Where it is worth it, there are also fused variants, which multiply and add at once (TN__MADD). They round less
 * often, so they are not used if a session is `reproducible`. Each element has the same bits wherever it is in a loop:
 * a fused variant processes the remaining elements itself, as part of a whole vector. */
#ifndef TN_OPS_KERNEL_ELEMENTS_VECTORS_H
#define TN_OPS_KERNEL_ELEMENTS_VECTORS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { TN__BASELINE, TN__AVX2, TN__AVX512, TN__FUSED_AVX2, TN__FUSED_AVX512 };

/* TN__WIDE_LOOPS(X, ...): expands X(..., name suffix, attribute) for each kind beyond the baseline.
 * TN__FNS(f): initialiser of TN__VECTORS functions, f and its wide variants; TN__SAME_FNS(f): f for every kind.
 *
 * TN__AVX2_LOOPS, TN__AVX2_FNS: the same with the baseline and AVX2 only, for loops with little work per element. Such
 * loops are bound by memory: 64-byte vectors were not faster in the L1 cache, and slower beyond the L2 cache.
 *
 * TN__FUSED_LOOPS, TN__FUSED_FNS: the baseline, AVX2, and the two fused kinds; loops that must give the same bits are
 * not compiled for AVX-512. */
#if defined(__x86_64__) && defined(__GNUC__)
#define TN__VECTORS 5
#define TN__FOR_AVX2 __attribute__((target("avx2")))
#define TN__FOR_AVX512 __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl")))
#define TN__FOR_FUSED_AVX2 __attribute__((target("avx2,fma")))
#define TN__FOR_FUSED_AVX512 __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,fma")))
#define TN__WIDE_LOOPS(X, ...) X(__VA_ARGS__, avx2, TN__FOR_AVX2) X(__VA_ARGS__, avx512, TN__FOR_AVX512)
#define TN__AVX2_LOOPS(X, ...) X(__VA_ARGS__, avx2, TN__FOR_AVX2)
#define TN__FUSED_LOOPS(X, ...) \
  X(__VA_ARGS__, fused_avx2, TN__FOR_FUSED_AVX2) X(__VA_ARGS__, fused_avx512, TN__FOR_FUSED_AVX512)
#define TN__FNS(f) { f, f##_avx2, f##_avx512, f##_avx2, f##_avx512 }
#define TN__AVX2_FNS(f) { f, f##_avx2, f##_avx2, f##_avx2, f##_avx2 }
#define TN__FUSED_FNS(f) { f, f##_avx2, f##_avx2, f##_fused_avx2, f##_fused_avx512 }
#define TN__PLAIN_FUSED_FNS(f) { f, f, f, f##_fused, f##_fused }
#define TN__SAME_FNS(f) { f, f, f, f, f }
#else
#define TN__VECTORS 1
#define TN__WIDE_LOOPS(X, ...)
#define TN__AVX2_LOOPS(X, ...)
#define TN__FUSED_LOOPS(X, ...)
#define TN__FNS(f) { f }
#define TN__AVX2_FNS(f) { f }
#define TN__FUSED_FNS(f) { f }
#define TN__PLAIN_FUSED_FNS(f) { f }
#define TN__SAME_FNS(f) { f }
#endif

/* Asserts that no iteration reads what another one writes. An operand either has the address of the output or does not
 * overlap it. */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed" /* loops that call functions are not vectorised */
#define TN__IVDEP _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define TN__IVDEP _Pragma("GCC ivdep")
#else
#define TN__IVDEP
#endif

/* For baseline loops: compiled once, not inlined into the loops for wide vectors. GCC must not analyse them either
 * (noipa): otherwise it omits vzeroupper before the call, and the code after it runs slowly. */
#if defined(__clang__)
#define TN__APART __attribute__((noinline))
#elif defined(__GNUC__)
#define TN__APART __attribute__((noipa))
#else
#define TN__APART
#endif

/* For functions with a constant argument `fused`. */
#if defined(__GNUC__)
#define TN__INLINED static inline __attribute__((always_inline))
#else
#define TN__INLINED static inline
#endif

/* a * b + c, rounded once if `fused`, which must be a constant. */
#define TN__MADD(fused, a, b, c) ((fused) ? __builtin_fmaf(a, b, c) : (a) * (b) + (c))
#define TN__MADD_DOUBLE(fused, a, b, c) ((fused) ? __builtin_fma(a, b, c) : (a) * (b) + (c))

/* The sum of 16 lanes, in an order that does not depend on the vectors' width. */
static inline float tn__add_lanes(const float *lanes)
{
  float half[8], quarter[4];
  for (int i = 0; i < 8; i++) half[i] = lanes[i] + lanes[i + 8];
  for (int i = 0; i < 4; i++) quarter[i] = half[i] + half[i + 4];
  return (quarter[0] + quarter[2]) + (quarter[1] + quarter[3]);
}

/* The kinds in use, without and with fused ones; negative until tn__vectors_find has run. */
extern atomic_int tn__vectors_found[2];
int tn__vectors_find(bool reproducible);

/* The kind to use, less than TN__VECTORS: an index into the arrays that TN__FNS and its like initialise. reproducible:
 * as in tn_kernel_ctx. */
static inline int tn__vectors_for(bool reproducible)
{
#if TN__VECTORS > 1
  int found = atomic_load_explicit(&tn__vectors_found[!reproducible], memory_order_relaxed);
  return found >= 0 ? found : tn__vectors_find(reproducible);
#else
  (void)reproducible;
  return TN__BASELINE;
#endif
}

/* The same for loops without fused variants. */
static inline int tn__vectors(void) { return tn__vectors_for(true); }

/* For tests of each kind: from now on uses no kind above `most`, nor any that the machine lacks. Returns the kind
 * now in use. */
int tn__vectors_limit(int most);

#endif
