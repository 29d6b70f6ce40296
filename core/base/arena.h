/* SPDX-License-Identifier: Apache-2.0 */
/* Bump allocation in blocks. There is no free for a single allocation: everything is freed at once, or everything since
 * a mark. One thread at a time. */
#ifndef TN_CORE_BASE_ARENA_H
#define TN_CORE_BASE_ARENA_H

#include <core/base/alloc.h>

typedef struct tn__arena_block tn__arena_block;
typedef struct tn__arena {
  tn__arena_block *blocks; /* newest first; owned */
  char *next, *end;        /* the free part of the current block; NULL: there is none */
  size_t block_size;       /* of the next block, in bytes; doubles */
  size_t bytes;            /* allocated in all blocks, including their headers */
  bool limited;
  size_t left;    /* if limited: bytes that may still be requested */
  size_t refused; /* if limited: size of the first refused request, 0 = none */
} tn__arena;

void tn__arena_init(tn__arena *arena, size_t first_block);
void tn__arena_fini(tn__arena *arena);
/* Aligned to 8. tn__arena_alloc does not zero the memory, tn__arena_zalloc does. NULL: out of memory, or above the
 * limit. Size 0 returns a valid pointer. */
void *tn__arena_alloc(tn__arena *arena, size_t size);
void *tn__arena_zalloc(tn__arena *arena, size_t size);
/* count * size, checked; zeroed. */
void *tn__arena_array(tn__arena *arena, size_t count, size_t size);
void *tn__arena_aligned(tn__arena *arena, size_t size, size_t align);

/* A budget for one operation, such as an import. From tn__arena_limit on, requests beyond a total of `bytes` fail. The
 * caller charges memory that it allocates elsewhere to the same budget with tn__arena_charge; false: it is exceeded.
 * tn__arena_end_limit lifts the limit and returns the size of the first refused request, 0 = none. */
void tn__arena_limit(tn__arena *arena, size_t bytes);
bool tn__arena_charge(tn__arena *arena, size_t bytes);
size_t tn__arena_end_limit(tn__arena *arena);
/* Raises the budget by `bytes`, for an allocation that must not count against the operation that is limited. */
void tn__arena_credit(tn__arena *arena, size_t bytes);

/* A NUL-terminated copy of `length` bytes. */
char *tn__arena_string(tn__arena *arena, const char *text, size_t length);

/* A mark to rewind to. Rewinding frees everything allocated since, so that a failed import leaves no trace. */
typedef struct tn__arena_mark {
  tn__arena_block *block;
  char *next, *end;
} tn__arena_mark;
tn__arena_mark tn__arena_get_mark(const tn__arena *arena);
void tn__arena_rewind(tn__arena *arena, tn__arena_mark mark);

#endif
