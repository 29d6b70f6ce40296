/* SPDX-License-Identifier: Apache-2.0 */
#include <core/base/thread.h>
#include <stdatomic.h>

static _Atomic uint32_t n_threads;

_Thread_local uint32_t tn__thread_number_or_0 TN__THREAD_WORD;

uint32_t tn__thread_number_new(void)
{
  uint32_t n = 0;
  while (n == 0) n = atomic_fetch_add_explicit(&n_threads, 1, memory_order_relaxed) + 1; /* 0 once in 2^32 threads */
  return tn__thread_number_or_0 = n;
}
