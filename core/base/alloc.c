/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator of the process.
 *
 * tn_set_allocator is refused while blocks are allocated, so blocks are counted. The count is spread over cache lines
 * by thread, with relaxed order: it is read only while a single thread uses the library. */
#define _GNU_SOURCE
#include <core/base/alloc.h>
#include <core/base/threads/thread.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

#define PLAIN_ALIGN 16
#define HUGE_PAGE ((uintptr_t)2 << 20)
#define HUGE_BLOCK ((size_t)4 << 20) /* begins at a huge page; what alignment leaves out is not touched */
#define N_SHARDS 16 /* a power of two */

/* A shard may be negative: a block can be freed by another thread than the one that allocated it. Only the sum
 * counts. */
typedef struct shard {
  _Alignas(64) atomic_llong live;
} shard;

static shard shards[N_SHARDS];

/* alloc is NULL while the C library's allocator is used. No lock: it is set only while the library holds no memory. */
static tn_allocator process;

static inline void count_blocks(long long n)
{
  atomic_fetch_add_explicit(&shards[tn__thread_place(N_SHARDS)].live, n, memory_order_relaxed);
}

static long long live_blocks(void)
{
  long long n = 0;
  for (size_t i = 0; i < N_SHARDS; i++) n += atomic_load_explicit(&shards[i].live, memory_order_relaxed);
  return n;
}

/* ---- the C library's allocator ---- */

/* malloc caches small blocks per thread and aligned_alloc does not, so larger alignments are made by hand from malloc.
 * The address that malloc returned is stored right before the aligned address. Not under the address sanitizer, which
 * detects more errors with aligned_alloc. */
#if defined(__SANITIZE_ADDRESS__)
#define ALIGN_BY_HAND 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ALIGN_BY_HAND 0
#endif
#endif
#ifndef ALIGN_BY_HAND
#define ALIGN_BY_HAND 1
#endif

/* Requests huge pages for large blocks (weights and arenas): most of the cost of fresh memory is its page faults, and
 * products that read weights miss fewer translations. Only the whole huge pages inside the block are affected. */
static void *advise(void *block, size_t size)
{
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  if (block == NULL || size < HUGE_BLOCK) return block;
  uintptr_t begin = ((uintptr_t)block + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
  uintptr_t end = ((uintptr_t)block + size) & ~(HUGE_PAGE - 1);
  madvise((char *)block + (begin - (uintptr_t)block), end - begin, MADV_HUGEPAGE); /* only a hint: errors are ignored */
#else
  (void)size;
#endif
  return block;
}

static void *libc_alloc(size_t size, size_t align)
{
  if (align <= _Alignof(max_align_t)) return advise(malloc(size), size);
#if ALIGN_BY_HAND
  size_t whole;
  if (size >= HUGE_BLOCK && align < HUGE_PAGE) align = HUGE_PAGE;
  if (!tn__size_add(size, align + sizeof(void *), &whole)) return NULL;
  char *block = malloc(whole);
  if (block == NULL) return NULL;
  uintptr_t at = ((uintptr_t)block + sizeof(void *) + align - 1) & ~(uintptr_t)(align - 1);
  char *out = block + (at - (uintptr_t)block);
  memcpy(out - sizeof(void *), &block, sizeof(block));
  return advise(out, size); /* not what alignment leaves out, which nothing touches */
#else
  void *out = NULL;
  return posix_memalign(&out, align, size) == 0 ? out : NULL;
#endif
}

static void libc_free(void *ptr, size_t align)
{
  if (align <= _Alignof(max_align_t)) {
    free(ptr);
    return;
  }
#if ALIGN_BY_HAND
  void *block;
  memcpy(&block, (char *)ptr - sizeof(block), sizeof(block));
  free(block);
#else
  free(ptr);
#endif
}

/* ---- for the library ---- */

void *tn__alloc_aligned(size_t size, size_t align)
{
  if (size == 0 || size > PTRDIFF_MAX) return NULL;
  if (align < PLAIN_ALIGN) align = PLAIN_ALIGN;
  void *ptr = process.alloc == NULL ? libc_alloc(size, align) : process.alloc(process.user, size, align);
  if (ptr != NULL) count_blocks(1);
  return ptr;
}

void tn__free_aligned(void *ptr, size_t size, size_t align)
{
  if (ptr == NULL) return;
  if (align < PLAIN_ALIGN) align = PLAIN_ALIGN;
  count_blocks(-1);
  if (process.free == NULL)
    libc_free(ptr, align);
  else
    process.free(process.user, ptr, size, align);
}

bool tn__discard(void *at, size_t size)
{
  if (process.alloc != NULL) return process.discard != NULL && process.discard(process.user, at, size);
#if defined(__linux__) && defined(MADV_DONTNEED)
  long page = sysconf(_SC_PAGESIZE);
  if (page <= 0) return false;
  uintptr_t begin = tn__round_up((uintptr_t)at, (size_t)page), end = ((uintptr_t)at + size) & ~((uintptr_t)page - 1);
  return begin < end && madvise((char *)at + (begin - (uintptr_t)at), end - begin, MADV_DONTNEED) == 0;
#else
  (void)at;
  (void)size;
  return false;
#endif
}

void tn__small_pages(void *at, size_t size)
{
#if defined(__linux__) && defined(MADV_NOHUGEPAGE)
  long page = sysconf(_SC_PAGESIZE);
  if (process.alloc != NULL || page <= 0) return;
  uintptr_t begin = tn__round_up((uintptr_t)at, (size_t)page), end = ((uintptr_t)at + size) & ~((uintptr_t)page - 1);
  if (begin < end) madvise((char *)at + (begin - (uintptr_t)at), end - begin, MADV_NOHUGEPAGE);
#else
  (void)at;
  (void)size;
#endif
}

void *tn__alloc(size_t size) { return tn__alloc_aligned(size, PLAIN_ALIGN); }

void *tn__zalloc(size_t size)
{
  if (process.alloc == NULL && PLAIN_ALIGN <= _Alignof(max_align_t)) {
    if (size == 0 || size > PTRDIFF_MAX) return NULL;
    void *fresh = calloc(1, size); /* does not clear pages that the system has just zeroed */
    if (fresh != NULL) count_blocks(1);
    return fresh;
  }
  void *ptr = tn__alloc(size);
  if (ptr != NULL) memset(ptr, 0, size);
  return ptr;
}

void *tn__alloc_array(size_t n, size_t size)
{
  size_t bytes;
  return tn__size_mul(n, size, &bytes) ? tn__zalloc(bytes) : NULL;
}

void tn__free(void *ptr, size_t size) { tn__free_aligned(ptr, size, PLAIN_ALIGN); }

bool tn__grow(void **array, size_t *capacity, size_t wanted, size_t size)
{
  if (wanted <= *capacity) return true;
  size_t n = *capacity < 8 ? 8 : *capacity, bytes;
  while (n < wanted && n <= SIZE_MAX / 2) n *= 2;
  if (n < wanted || !tn__size_mul(n, size, &bytes)) {
    n = wanted;
    if (!tn__size_mul(n, size, &bytes)) return false;
  }
  void *fresh = tn__alloc(bytes), *old;
  if (fresh == NULL) return false;
  memcpy(&old, array, sizeof(old)); /* *array really has another pointer type, so no access through void ** */
  if (old != NULL) {
    memcpy(fresh, old, *capacity * size);
    tn__free(old, *capacity * size);
  }
  memcpy(array, &fresh, sizeof(fresh));
  *capacity = n;
  return true;
}

tn_status tn__no_memory(tn_error *err, const char *what, size_t bytes)
{
  return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "out of memory: %s, %zu bytes", what, bytes);
}

/* ---- for programs and plugins ---- */

tn_status tn_set_allocator(const tn_allocator *allocator, tn_error *err)
{
  tn__error_reset(err);
  tn_allocator chosen = { 0 };
  if (allocator != NULL) {
    if (allocator->struct_size < TN_SIZE_TO(tn_allocator, free))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_allocator.struct_size is %zu, wanted at least %zu",
                          allocator->struct_size, TN_SIZE_TO(tn_allocator, free));
    if (allocator->alloc == NULL || allocator->free == NULL)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_allocator.%s is missing",
                          allocator->alloc == NULL ? "alloc" : "free");
    chosen.struct_size = sizeof(chosen);
    chosen.user = allocator->user;
    chosen.alloc = allocator->alloc;
    chosen.free = allocator->free;
    if (TN_HAS_FIELD(allocator, tn_allocator, discard)) chosen.discard = allocator->discard;
  }
  long long alive = live_blocks();
  if (alive != 0)
    return tn_error_set(err, TN_FAILED_PRECONDITION,
                        "the allocator can be set only before the library holds memory: %lld allocations are alive",
                        alive);
  process = chosen;
  return TN_OK;
}

/* tn_free is not passed the size, so the size is stored in TN_ALIGN bytes before the memory. */
void *tn_alloc(size_t bytes)
{
  size_t whole;
  if (bytes == 0 || !tn__size_add(bytes, TN_ALIGN, &whole)) return NULL;
  char *block = tn__alloc_aligned(whole, TN_ALIGN);
  if (block == NULL) return NULL;
  memcpy(block, &whole, sizeof(whole));
  return block + TN_ALIGN;
}

void tn_free(void *memory)
{
  if (memory == NULL) return;
  char *block = (char *)memory - TN_ALIGN;
  size_t whole;
  memcpy(&whole, block, sizeof(whole));
  tn__free_aligned(block, whole, TN_ALIGN);
}
