/* SPDX-License-Identifier: Apache-2.0 */
#include <core/base/arena.h>

#include <string.h>

/* Sizes of blocks in bytes. Each block is twice as large as the last one, up to MAX_BLOCK. */
#define MIN_BLOCK 256
#define MAX_BLOCK ((size_t)1 << 20)

struct tn__arena_block {
  tn__arena_block *older;
  size_t size; /* in bytes, including this header */
};

void tn__arena_init(tn__arena *arena, size_t first_block)
{
  memset(arena, 0, sizeof(*arena));
  arena->block_size = first_block < MIN_BLOCK ? MIN_BLOCK : first_block;
}

static void free_blocks_until(tn__arena *arena, tn__arena_block *last)
{
  while (arena->blocks != last) {
    tn__arena_block *block = arena->blocks;
    arena->blocks = block->older;
    arena->bytes -= block->size;
    tn__free(block, block->size);
  }
}

void tn__arena_fini(tn__arena *arena)
{
  free_blocks_until(arena, NULL);
  arena->next = arena->end = NULL;
}

static tn__arena_block *new_block(tn__arena *arena, size_t payload)
{
  size_t size;
  if (!tn__size_add(payload, sizeof(tn__arena_block), &size)) return NULL;
  tn__arena_block *block = tn__alloc(size);
  if (block == NULL) return NULL;
  block->size = size;
  block->older = arena->blocks;
  arena->blocks = block;
  arena->bytes += size;
  return block;
}

static char *align_up(char *p, size_t align)
{
  uintptr_t at = (uintptr_t)p;
  return p + (tn__round_up(at, align) - at);
}

/* Allocates `size` bytes in the current block. NULL: it has no room, or there is no block. */
static char *take(tn__arena *arena, size_t size, size_t align)
{
  if (arena->next == NULL) return NULL;
  char *at = align_up(arena->next, align);
  if (at > arena->end || (size_t)(arena->end - at) < size) return NULL;
  arena->next = at + size;
  return at;
}

void tn__arena_limit(tn__arena *arena, size_t bytes)
{
  arena->limited = true;
  arena->left = bytes;
  arena->refused = 0;
}

bool tn__arena_charge(tn__arena *arena, size_t bytes)
{
  if (!arena->limited) return true;
  if (bytes <= arena->left) {
    arena->left -= bytes;
    return true;
  }
  if (arena->refused == 0) arena->refused = bytes;
  return false;
}

void tn__arena_credit(tn__arena *arena, size_t bytes)
{
  if (arena->limited) arena->left = bytes < SIZE_MAX - arena->left ? arena->left + bytes : SIZE_MAX;
}

size_t tn__arena_end_limit(tn__arena *arena)
{
  arena->limited = false;
  return arena->refused;
}

void *tn__arena_aligned(tn__arena *arena, size_t size, size_t align)
{
  if (!tn__arena_charge(arena, size)) return NULL;
  char *at = take(arena, size, align);
  if (at != NULL) return at;

  size_t worst;
  if (!tn__size_add(size, align, &worst)) return NULL;
  if (worst > arena->block_size / 4) {
    /* Use a separate block and keep the current one: its remaining bytes still serve small requests. */
    tn__arena_block *block = new_block(arena, worst);
    return block == NULL ? NULL : align_up((char *)(block + 1), align);
  }
  tn__arena_block *block = new_block(arena, arena->block_size);
  if (block == NULL) return NULL;
  arena->next = (char *)(block + 1);
  arena->end = (char *)block + block->size;
  if (arena->block_size < MAX_BLOCK) arena->block_size *= 2;
  return take(arena, size, align);
}

void *tn__arena_alloc(tn__arena *arena, size_t size)
{
  if (size > PTRDIFF_MAX) return NULL;
  return tn__arena_aligned(arena, tn__round_up(size, 8), 8);
}

void *tn__arena_zalloc(tn__arena *arena, size_t size)
{
  void *p = tn__arena_alloc(arena, size);
  if (p != NULL) memset(p, 0, size);
  return p;
}

void *tn__arena_array(tn__arena *arena, size_t count, size_t size)
{
  size_t bytes;
  return tn__size_mul(count, size, &bytes) ? tn__arena_zalloc(arena, bytes) : NULL;
}

char *tn__arena_string(tn__arena *arena, const char *text, size_t length)
{
  size_t bytes;
  if (!tn__size_add(length, 1, &bytes)) return NULL;
  char *copy = tn__arena_aligned(arena, bytes, 1);
  if (copy == NULL) return NULL;
  if (length != 0) memcpy(copy, text, length);
  copy[length] = 0;
  return copy;
}

tn__arena_mark tn__arena_get_mark(const tn__arena *arena)
{
  tn__arena_mark mark = { arena->blocks, arena->next, arena->end };
  return mark;
}

void tn__arena_rewind(tn__arena *arena, tn__arena_mark mark)
{
  free_blocks_until(arena, mark.block);
  arena->next = mark.next;
  arena->end = mark.end;
}
