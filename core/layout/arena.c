/* SPDX-License-Identifier: Apache-2.0 */
/* Arena offsets by liveness. Blocks are placed in the order in which they begin to live, in the best-fitting gap. A
 * block's place becomes free after its last instruction. */
#include <core/layout/layout.h>

/* A gap of the arena; gaps are kept sorted by offset. */
typedef struct gap {
  size_t offset, bytes;
} gap;

typedef struct space {
  gap *gaps;
  size_t n, room;
  size_t end; /* of the arena so far */
} space;

static bool insert_gap(space *s, size_t at, size_t offset, size_t bytes)
{
  if (!tn__grow((void **)&s->gaps, &s->room, s->n + 1, sizeof *s->gaps)) return false;
  __builtin_memmove(s->gaps + at + 1, s->gaps + at, (s->n - at) * sizeof *s->gaps);
  s->gaps[at] = (gap){ offset, bytes };
  s->n++;
  return true;
}

static void remove_gap(space *s, size_t at)
{
  s->n--;
  __builtin_memmove(s->gaps + at, s->gaps + at + 1, (s->n - at) * sizeof *s->gaps);
}

/* Frees a place, and joins it with adjacent gaps. False if memory is exhausted. */
static bool give_back(space *s, size_t offset, size_t bytes)
{
  size_t at = 0;
  while (at < s->n && s->gaps[at].offset < offset) at++;
  bool joins_left = at > 0 && s->gaps[at - 1].offset + s->gaps[at - 1].bytes == offset;
  bool joins_right = at < s->n && offset + bytes == s->gaps[at].offset;
  if (joins_left) {
    s->gaps[at - 1].bytes += bytes;
    if (joins_right) {
      s->gaps[at - 1].bytes += s->gaps[at].bytes;
      remove_gap(s, at);
    }
    return true;
  }
  if (joins_right) {
    s->gaps[at].offset = offset;
    s->gaps[at].bytes += bytes;
    return true;
  }
  return insert_gap(s, at, offset, bytes);
}

/* The offset of the smallest gap that is large enough. If there is none, the arena grows, by the missing bytes only if
 * its end is a gap. */
static size_t take(space *s, size_t bytes)
{
  size_t best = SIZE_MAX;
  for (size_t i = 0; i < s->n; i++)
    if (s->gaps[i].bytes >= bytes && (best == SIZE_MAX || s->gaps[i].bytes < s->gaps[best].bytes)) {
      best = i;
      if (s->gaps[i].bytes == bytes) break;
    }
  if (best != SIZE_MAX) {
    size_t offset = s->gaps[best].offset;
    s->gaps[best].offset += bytes;
    s->gaps[best].bytes -= bytes;
    if (s->gaps[best].bytes == 0) remove_gap(s, best);
    return offset;
  }
  if (s->n > 0 && s->gaps[s->n - 1].offset + s->gaps[s->n - 1].bytes == s->end) { /* grow the last gap */
    size_t offset = s->gaps[s->n - 1].offset;
    s->n--;
    s->end = offset + bytes;
    return offset;
  }
  size_t offset = s->end;
  s->end += bytes;
  return offset;
}

/* ---- live blocks: a binary heap, the one that ends first on top ---- */

static void sift_down(const tn__life *lives, uint32_t *heap, size_t n, size_t i)
{
  for (;;) {
    size_t child = 2 * i + 1;
    if (child >= n) return;
    if (child + 1 < n && lives[heap[child + 1]].last < lives[heap[child]].last) child++;
    if (lives[heap[i]].last <= lives[heap[child]].last) return;
    uint32_t t = heap[i];
    heap[i] = heap[child];
    heap[child] = t;
    i = child;
  }
}

static void heap_push(const tn__life *lives, uint32_t *heap, size_t *n, uint32_t id)
{
  size_t i = (*n)++;
  heap[i] = id;
  while (i > 0 && lives[heap[(i - 1) / 2]].last > lives[heap[i]].last) {
    uint32_t t = heap[i];
    heap[i] = heap[(i - 1) / 2];
    heap[(i - 1) / 2] = t;
    i = (i - 1) / 2;
  }
}

tn_status tn__layout_assign(tn__life *lives, size_t n, size_t *arena_bytes, size_t *live_bytes, tn_error *err)
{
  space s = { 0 };
  uint32_t *heap = tn__alloc_array(n + 1, sizeof *heap);
  size_t live = 0, total = 0, now = 0, most = 0; /* number of live blocks; bytes of all; live bytes, maximum of these */
  bool ok = heap != NULL;
  for (size_t i = 0; ok && i < n; i++) {
    while (ok && live > 0 && lives[heap[0]].last < lives[i].first) {
      const tn__life *done = &lives[heap[0]];
      ok = give_back(&s, done->offset, tn__round_up(done->bytes, TN_ALIGN));
      now -= tn__round_up(done->bytes, TN_ALIGN);
      heap[0] = heap[--live];
      sift_down(lives, heap, live, 0);
    }
    size_t bytes = tn__round_up(lives[i].bytes, TN_ALIGN); /* wraps to 0 if a kernel requests nearly SIZE_MAX */
    if (bytes < lives[i].bytes || !tn__size_add(total, bytes, &total) || total > PTRDIFF_MAX) {
      tn__free(heap, (n + 1) * sizeof *heap);
      tn__free(s.gaps, s.room * sizeof *s.gaps);
      return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "the values of a step need more than %zu bytes",
                          (size_t)PTRDIFF_MAX);
    }
    lives[i].offset = take(&s, bytes);
    heap_push(lives, heap, &live, (uint32_t)i);
    now += bytes;
    if (now > most) most = now;
  }
  *arena_bytes = s.end;
  *live_bytes = most;
  tn__free(heap, (n + 1) * sizeof *heap);
  tn__free(s.gaps, s.room * sizeof *s.gaps);
  if (!ok) return tn__no_memory(err, "layout", n * sizeof *heap);
  if (*arena_bytes > *live_bytes) tn__layout_improve(lives, n, *live_bytes, arena_bytes);
  return TN_OK;
}
