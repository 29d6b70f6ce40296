/* SPDX-License-Identifier: Apache-2.0 */
/* The floating point mode of a thread. */
#ifndef TN_CORE_POOL_FLOAT_MODE_H
#define TN_CORE_POOL_FLOAT_MODE_H

#include <stdint.h>

/* Rounding, and the treatment of denormal numbers. A helper takes over the mode of the thread that
 * it helps, because results must not depend on the thread that computes them. 0 where the mode is
 * not known. */
static inline uint32_t tn__float_mode(void)
{
#if defined(__SSE__)
  return __builtin_ia32_stmxcsr() & ~0x3fu; /* without the exception flags */
#elif defined(__aarch64__)
  uint64_t mode; /* the upper 32 bits are reserved */
  __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
  return (uint32_t)mode;
#else
  return 0;
#endif
}

static inline void tn__set_float_mode(uint32_t mode)
{
#if defined(__SSE__)
  __builtin_ia32_ldmxcsr(mode);
#elif defined(__aarch64__)
  __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)mode));
#else
  (void)mode;
#endif
}

#endif
