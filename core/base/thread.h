/* SPDX-License-Identifier: Apache-2.0 */
/* The calling thread: its number, words of its own, its stack, and pthread_cancel. */
#ifndef TN_CORE_BASE_THREAD_H
#define TN_CORE_BASE_THREAD_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/* For a word or two that every step reads: at a fixed distance from what the system keeps of the thread, so reading it
 * is no call. glibc keeps room for such words of libraries that are loaded late; elsewhere that may be an error of the
 * loader. */
#if defined(__GLIBC__)
#define TN__THREAD_WORD __attribute__((tls_model("initial-exec")))
#else
#define TN__THREAD_WORD
#endif

/* The number of this thread among all that used the library, from 1. It stays the same as long as the thread lives. */
extern _Thread_local uint32_t tn__thread_number_or_0 TN__THREAD_WORD;
uint32_t tn__thread_number_new(void);
static inline uint32_t tn__thread_number(void)
{
  uint32_t n = tn__thread_number_or_0;
  return __builtin_expect(n != 0, 1) ? n : tn__thread_number_new();
}

/* A place among `n`, a power of two, that few other threads have. */
static inline uint32_t tn__thread_place(uint32_t n) { return tn__thread_number() & (n - 1); }

/* Bytes of the stack that the calls of this thread may still take, less what the deepest of them needs for itself.
 * SIZE_MAX where that cannot be known: on a stack that is not the thread's own (a coroutine's). The first call asks the
 * system. */
size_t tn__stack_left(void);

/* From hold to restore, pthread_cancel does not end this thread: it would leave behind what the thread holds. */
static inline int tn__cancel_hold(void)
{
  int state = PTHREAD_CANCEL_ENABLE;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  return state;
}
static inline void tn__cancel_restore(int state) { pthread_setcancelstate(state, &state); }

/* Waits for a thread of the library's own to end. */
static inline void tn__thread_join(pthread_t thread)
{
  int state = tn__cancel_hold();
  pthread_join(thread, NULL);
  tn__cancel_restore(state);
}

#endif
