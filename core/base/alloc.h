/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation: the only file that names malloc is alloc.c. Sizes are given back when memory is freed, and every size is
 * worked out by the checked helpers below. */
#ifndef TN_CORE_BASE_ALLOC_H
#define TN_CORE_BASE_ALLOC_H

#include <stdbool.h>
#include <tenon/process.h>

#define TN_ALIGN 64 /* of tensors and arenas: a cache line, an AVX-512 register */

/* NULL without memory or for size 0. Not zeroed / zeroed, aligned to 16. */
void *tn__alloc(size_t size);
void *tn__zalloc(size_t size);
/* count * size, checked; zeroed. */
void *tn__alloc_array(size_t count, size_t size);
void *tn__alloc_aligned(size_t size, size_t align);
/* `size` and `align` as they were asked for (16 for the plain ones). NULL allowed. */
void tn__free(void *ptr, size_t size);
void tn__free_aligned(void *ptr, size_t size, size_t align);

/* Gives the whole pages inside [at, at + size) of an allocation back to the system: their content is lost, the
 * addresses stay, and may be written again. False: nothing happened (small, or the memory is the program's own
 * allocator's). */
bool tn__discard(void *at, size_t size);

/* No huge pages for what lies in [at, at + size) from now on: what was discarded of them would come back. */
void tn__small_pages(void *at, size_t size);

/* Grows *array (elements of `size` bytes, *capacity of them, may be 0 and NULL) so that it holds `wanted`; the content
 * is kept, new elements are not set. False without memory: nothing changed. */
bool tn__grow(void **array, size_t *capacity, size_t wanted, size_t size);

/* a + b, a * b; false on overflow. */
static inline bool tn__size_add(size_t a, size_t b, size_t *out) { return !__builtin_add_overflow(a, b, out); }
static inline bool tn__size_mul(size_t a, size_t b, size_t *out) { return !__builtin_mul_overflow(a, b, out); }
static inline size_t tn__round_up(size_t n, size_t align) { return (n + align - 1) & ~(align - 1); }

/* Records TN_RESOURCE_EXHAUSTED "out of memory: <what>, N bytes" and returns the code. */
tn_status tn__no_memory(tn_error *err, const char *what, size_t bytes);

/* What went wrong inside of a function is told of the node that called it: with the path "call/" a message that begins
 * with "node 'x'" does with "node 'call/x'", and the node is "call/x". */
void tn__error_in_call(tn_error *err, const char *path);

/* Adds a text behind the causes that an error has; nothing to one that is OK. */
void tn__error_add_cause(tn_error *err, const char *format, ...) TN_PRINTF(2, 3);

/* Resets the error object of a public call. */
static inline void tn__error_reset(tn_error *err)
{
  if (err != NULL && (err->code != TN_OK || err->used != 0)) tn_error_clear(err);
}

#endif
