/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* pthread_getattr_np */
#include <core/base/threads/thread.h>
#include <stdatomic.h>

static _Atomic uint32_t n_threads; /* the last number given */

_Thread_local uint32_t tn__thread_number_or_0 TN__THREAD_WORD;

uint32_t tn__thread_number_assign(void)
{
  uint32_t n = 0;
  /* 0 means no number yet; the counter wraps to it once in 2^32 threads. */
  while (n == 0) n = atomic_fetch_add_explicit(&n_threads, 1, memory_order_relaxed) + 1;
  return tn__thread_number_or_0 = n;
}

/* ---- the stack ---- */

/* Kept free for the innermost call: a kernel, the compilation of a function, an error message. On a small stack at most
 * a quarter of it. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RESERVE_BYTES ((size_t)512 << 10)
#else
#define RESERVE_BYTES ((size_t)128 << 10)
#endif

/* The addresses of this thread's stack. It grows downwards, from high to low. */
static _Thread_local struct {
  uintptr_t low, high; /* 0 = not determined yet, 1 = unknown */
} stack;

static void look_at_stack(void)
{
  void *address = NULL;
  size_t bytes = 0, guard = 0;
  stack.low = stack.high = 1;
#if defined(__linux__)
  pthread_attr_t attr;
  if (pthread_getattr_np(pthread_self(), &attr) != 0) return;
  if (pthread_attr_getstack(&attr, &address, &bytes) == 0 && pthread_attr_getguardsize(&attr, &guard) == 0 &&
      guard < bytes) {
    stack.low = (uintptr_t)address + guard;
    stack.high = (uintptr_t)address + bytes;
  }
  pthread_attr_destroy(&attr);
#endif
}

size_t tn__stack_left(void)
{
  uintptr_t here = (uintptr_t)__builtin_frame_address(0);
  if (stack.high == 0) look_at_stack();
  if (here <= stack.low || here >= stack.high) return SIZE_MAX;
  size_t quarter = (stack.high - stack.low) / 4, reserve = quarter < RESERVE_BYTES ? quarter : RESERVE_BYTES;
  return here - stack.low > reserve ? here - stack.low - reserve : 0;
}
