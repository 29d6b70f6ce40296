/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by fuzz targets: an allocator with a limit, as on a small machine. False sizes, and steps that need more
 * than `most` bytes, fail, which also bounds their time. */
#ifndef TENON_FUZZ_MEMORY_H
#define TENON_FUZZ_MEMORY_H

#include <stdatomic.h>
#include <stdlib.h>
#include <tenon/tenon.h>

static atomic_size_t fuzz_memory_in_use;
static size_t fuzz_memory_most;
static unsigned fuzz_fail_in; /* 1: the next allocation fails, once; 0: none does */

static void *fuzz_alloc(void *user, size_t size, size_t align)
{
  (void)user;
  void *memory = NULL;
  if (fuzz_fail_in > 0 && --fuzz_fail_in == 0) return NULL;
  if (size > fuzz_memory_most || fuzz_memory_in_use > fuzz_memory_most - size ||
      posix_memalign(&memory, align, size) != 0)
    return NULL;
  fuzz_memory_in_use += size;
  return memory;
}

static void fuzz_free(void *user, void *memory, size_t size, size_t align)
{
  (void)user;
  (void)align;
  fuzz_memory_in_use -= size;
  free(memory);
}

static inline void fuzz_limit_memory(size_t most)
{
  tn_allocator bounded = { .struct_size = sizeof bounded, .alloc = fuzz_alloc, .free = fuzz_free };
  fuzz_memory_most = most;
  if (tn_set_allocator(&bounded, NULL) != TN_OK) abort();
}

/* The nth allocation from now on fails; 0: none. */
static inline void fuzz_fail_allocation(unsigned nth) { fuzz_fail_in = nth; }

#endif
