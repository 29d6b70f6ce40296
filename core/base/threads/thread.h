/* SPDX-License-Identifier: Apache-2.0 */
/* The calling thread: its number, thread-local words, its stack, and protection from pthread_cancel. */
#ifndef TN_CORE_BASE_THREADS_THREAD_H
#define TN_CORE_BASE_THREADS_THREAD_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/* For the few thread-local words that every step reads. With the initial-exec model such a word is at a fixed offset
 * from the thread pointer, so reading it needs no call. glibc reserves room for such words of libraries that are loaded
 * late; other loaders may reject the library. */
#if defined(__GLIBC__)
#define TN__THREAD_WORD __attribute__((tls_model("initial-exec")))
#else
#define TN__THREAD_WORD
#endif

/* The number of this thread among all that have used the library, from 1. It is assigned at the first use and never
 * changes. tn__thread_number_or_0 is 0 before, and is async-signal-safe to read. */
extern _Thread_local uint32_t tn__thread_number_or_0 TN__THREAD_WORD;
uint32_t tn__thread_number_assign(void);
static inline uint32_t tn__thread_number(void)
{
  uint32_t n = tn__thread_number_or_0;
  return __builtin_expect(n != 0, 1) ? n : tn__thread_number_assign();
}

/* Selects one of `n` (a power of two) slots for this thread, to spread threads evenly. */
static inline uint32_t tn__thread_place(uint32_t n) { return tn__thread_number() & (n - 1); }

/* Bytes of stack that this thread's calls may still use, less a reserve for the innermost one. SIZE_MAX if unknown,
 * such as on a coroutine's stack. The first call on each thread queries the system. */
size_t tn__stack_left(void);

/* From hold to restore, pthread_cancel does not end this thread, which would leak the locks and memory that it holds.
 * Pass hold's result to restore. Nests. */
static inline int tn__cancel_hold(void)
{
  int state = PTHREAD_CANCEL_ENABLE;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  return state;
}
static inline void tn__cancel_restore(int state) { pthread_setcancelstate(state, &state); }

/* Joins a thread that the library started. Not a cancellation point. */
static inline void tn__thread_join(pthread_t thread)
{
  int state = tn__cancel_hold();
  pthread_join(thread, NULL);
  tn__cancel_restore(state);
}

#endif
