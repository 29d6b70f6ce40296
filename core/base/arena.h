/* SPDX-License-Identifier: Apache-2.0 */
/* Bump allocation in blocks: everything is freed at once. Not for several threads at once. */
#ifndef TN_CORE_BASE_ARENA_H
#define TN_CORE_BASE_ARENA_H

#include <core/base/alloc.h>

typedef struct tn__arena_block tn__arena_block;
typedef struct tn__arena {
  tn__arena_block *blocks; /* newest first */
  char *next, *end;
  size_t block_size; /* of the next block; grows */
  size_t bytes;      /* held in all */
  bool limited;
  size_t left;    /* when limited: bytes that may still be asked for */
  size_t refused; /* the first request that was too much, 0 = none */
} tn__arena;

void tn__arena_init(tn__arena *arena, size_t first_block);
void tn__arena_fini(tn__arena *arena);
/* Aligned to 8, not zeroed / zeroed; NULL without memory. Size 0 gives a valid pointer. */
void *tn__arena_alloc(tn__arena *arena, size_t size);
void *tn__arena_zalloc(tn__arena *arena, size_t size);
/* count * size, checked; zeroed. */
void *tn__arena_array(tn__arena *arena, size_t count, size_t size);
void *tn__arena_aligned(tn__arena *arena, size_t size, size_t align);
/* From now on at most `bytes` are given, which the caller takes some of for what it allocates elsewhere: _charge is
 * false when they are used up. _end_limit gives the first request that was refused, 0 for none. */
void tn__arena_limit(tn__arena *arena, size_t bytes);
bool tn__arena_charge(tn__arena *arena, size_t bytes);
size_t tn__arena_end_limit(tn__arena *arena);
/* So much more may be taken: for what is made now, but is not for who has the limit. */
void tn__arena_credit(tn__arena *arena, size_t bytes);

/* A copy that ends in a NUL. */
char *tn__arena_string(tn__arena *arena, const char *text, size_t length);

/* A place to go back to: what was allocated since is given up (a failed import leaves no trace). */
typedef struct tn__arena_mark {
  tn__arena_block *block;
  char *next, *end;
} tn__arena_mark;
tn__arena_mark tn__arena_get_mark(const tn__arena *arena);
void tn__arena_rewind(tn__arena *arena, tn__arena_mark mark);

#endif
