/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/kernel/elements/vectors.h>

atomic_int tn__vectors_found = -1;

static int best(void)
{
#if TN__VECTORS > 1
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl"))
    return TN__AVX512;
  if (__builtin_cpu_supports("avx2")) return TN__AVX2;
#endif
  return TN__BASELINE;
}

int tn__vectors_find(void) { return tn__vectors_limit(TN__AVX512); }

int tn__vectors_limit(int most)
{
  int found = best();
  if (found > most) found = most;
  atomic_store_explicit(&tn__vectors_found, found, memory_order_relaxed);
  return found;
}
