/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation. Only alloc.c calls malloc. The size is passed again when memory is freed, so that a program's allocator
 * needs no block headers. Sizes are computed with the checked helpers below. Any thread. */
#ifndef TN_CORE_BASE_ALLOC_H
#define TN_CORE_BASE_ALLOC_H

#include <stdbool.h>
#include <tenon/process.h>

#define TN_ALIGN 64 /* alignment of tensors and arenas in bytes: a cache line, an AVX-512 register */

/* Aligned to 16. tn__alloc does not zero the memory, tn__zalloc does. NULL: out of memory, or size is 0. */
void *tn__alloc(size_t size);
void *tn__zalloc(size_t size);
/* count * size, checked; zeroed. */
void *tn__alloc_array(size_t count, size_t size);
/* Not zeroed; `align` is a power of two. NULL: out of memory, or size is 0. */
void *tn__alloc_aligned(size_t size, size_t align);
/* Pass the `size` and `align` of the allocation; tn__free is for memory from tn__alloc, _zalloc and _alloc_array. ptr
 * may be NULL. */
void tn__free(void *ptr, size_t size);
void tn__free_aligned(void *ptr, size_t size, size_t align);

/* Returns the whole pages inside [at, at + size) of an allocation to the system. Their content is lost; the addresses
 * stay valid and may be written again. False: nothing was discarded, because the range has no whole page or because
 * the program's allocator cannot do it. */
bool tn__discard(void *at, size_t size);

/* Disables huge pages for [at, at + size). Otherwise the system may rebuild a huge page around discarded pages, which
 * takes their memory again. */
void tn__small_pages(void *at, size_t size);

/* Grows *array of *capacity elements of `size` bytes (0 and NULL are allowed) to hold at least `wanted` elements. Keeps
 * the content; new elements are uninitialised. False: out of memory, nothing changed. Free it with *capacity * size. */
bool tn__grow(void **array, size_t *capacity, size_t wanted, size_t size);

/* a + b, a * b; false on overflow. */
static inline bool tn__size_add(size_t a, size_t b, size_t *out) { return !__builtin_add_overflow(a, b, out); }
static inline bool tn__size_mul(size_t a, size_t b, size_t *out) { return !__builtin_mul_overflow(a, b, out); }
static inline size_t tn__round_up(size_t n, size_t align) { return (n + align - 1) & ~(align - 1); }

/* Sets TN_RESOURCE_EXHAUSTED "out of memory: <what>, N bytes" and returns the code. */
tn_status tn__no_memory(tn_error *err, const char *what, size_t bytes);

/* Qualifies an error inside a function with the path of the call: with "call/", the node "x" becomes "call/x", and a
 * message that begins with "node 'x'" begins with "node 'call/x'" instead. */
void tn__error_in_call(tn_error *err, const char *path);

/* Appends a text to the causes of an error. Does nothing if the error is TN_OK. */
void tn__error_add_cause(tn_error *err, const char *format, ...) TN_PRINTF(2, 3);

/* Resets the error object of a public call. */
static inline void tn__error_reset(tn_error *err)
{
  if (err != NULL && (err->code != TN_OK || err->used != 0)) tn_error_clear(err);
}

#endif
