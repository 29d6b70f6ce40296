/* SPDX-License-Identifier: Apache-2.0 */
/* Which vectors the machine at hand has. A loop is written once and compiled for the baseline of the architecture and,
 * on x86-64, for AVX2 and AVX-512; which one runs is found out at run time. All give the same bits: contraction is off,
 * and where a loop has lanes, their number does not depend on the vectors.
 *
 * A loop for wide vectors takes as many elements as fill whole vectors and leaves the rest to the baseline's: so it is
 * a few instructions long, and there can be many of them. */
#ifndef TN_OPS_KERNEL_ELEMENTS_VECTORS_H
#define TN_OPS_KERNEL_ELEMENTS_VECTORS_H

#include <stdatomic.h>
#include <stdint.h>

enum { TN__BASELINE, TN__AVX2, TN__AVX512 };

/* TN__WIDE_LOOPS(X, ...): X(..., end of the name, attribute) for each kind beyond the baseline.
 * TN__FNS(f): an initialiser of TN__VECTORS functions: f and those beyond; TN__SAME_FNS(f): f for all.
 *
 * TN__AVX2_LOOPS, TN__AVX2_FNS: of these two kinds alone, for loops that do little with each element. They wait for
 * memory, and with vectors of 64 bytes they were not faster in the first cache and slower beyond the second. */
#if defined(__x86_64__) && defined(__GNUC__)
#define TN__VECTORS 3
#define TN__FOR_AVX2 __attribute__((target("avx2")))
#define TN__FOR_AVX512 __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl")))
#define TN__WIDE_LOOPS(X, ...) X(__VA_ARGS__, avx2, TN__FOR_AVX2) X(__VA_ARGS__, avx512, TN__FOR_AVX512)
#define TN__AVX2_LOOPS(X, ...) X(__VA_ARGS__, avx2, TN__FOR_AVX2)
#define TN__FNS(f) { f, f##_avx2, f##_avx512 }
#define TN__AVX2_FNS(f) { f, f##_avx2, f##_avx2 }
#define TN__SAME_FNS(f) { f, f, f }
#else
#define TN__VECTORS 1
#define TN__WIDE_LOOPS(X, ...)
#define TN__AVX2_LOOPS(X, ...)
#define TN__FNS(f) { f }
#define TN__AVX2_FNS(f) { f }
#define TN__SAME_FNS(f) { f }
#endif

/* No iteration reads what another one writes, since operands have the address of the output or do not overlap it. */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed" /* loops that call functions stay as they are */
#define TN__IVDEP _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define TN__IVDEP _Pragma("GCC ivdep")
#else
#define TN__IVDEP
#endif

/* Of the baseline's loops: compiled once, and not again inside those for wide vectors. GCC may know nothing else of
 * them, or it leaves the upper halves of registers as they are when it calls one, and all that comes after is slow. */
#if defined(__clang__)
#define TN__APART __attribute__((noinline))
#elif defined(__GNUC__)
#define TN__APART __attribute__((noipa))
#else
#define TN__APART
#endif

/* Negative until the first question. */
extern atomic_int tn__vectors_found;
int tn__vectors_find(void);

/* The kind to take, below TN__VECTORS: an index into what TN__FNS makes. */
static inline int tn__vectors(void)
{
#if TN__VECTORS > 1
  int found = atomic_load_explicit(&tn__vectors_found, memory_order_relaxed);
  return found >= 0 ? found : tn__vectors_find();
#else
  return TN__BASELINE;
#endif
}

/* Tests try the kinds one after the other: none above `most` from here on, as far as the machine has them. Returns the
 * kind that is taken. */
int tn__vectors_limit(int most);

#endif
