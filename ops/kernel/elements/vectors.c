/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/kernel/elements/vectors.h>

atomic_int tn__vectors_found[2] = { -1, -1 };

#if TN__VECTORS > 1
static bool has(int kind)
{
  bool avx2 = __builtin_cpu_supports("avx2"), fma = __builtin_cpu_supports("fma");
  bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  switch (kind) {
  case TN__AVX2: return avx2;
  case TN__AVX512: return avx2 && avx512;
  case TN__FUSED_AVX2: return avx2 && fma;
  case TN__FUSED_AVX512: return avx2 && fma && avx512;
  default: return kind == TN__BASELINE;
  }
}
#else
static bool has(int kind) { return kind == TN__BASELINE; }
#endif

/* The best kind from `most` down that the machine has. */
static int best(int most)
{
  while (!has(most)) most--;
  return most;
}

int tn__vectors_find(bool reproducible)
{
  tn__vectors_limit(TN__FUSED_AVX512);
  return atomic_load_explicit(&tn__vectors_found[!reproducible], memory_order_relaxed);
}

int tn__vectors_limit(int most)
{
  int fused = best(most), plain = best(most < TN__AVX512 ? most : TN__AVX512);
  atomic_store_explicit(&tn__vectors_found[0], plain, memory_order_relaxed);
  atomic_store_explicit(&tn__vectors_found[1], fused, memory_order_relaxed);
  return fused;
}
