/* SPDX-License-Identifier: Apache-2.0 */
/* Arena offsets for calls that run concurrently. As in arena.c, blocks are placed in the order of the tape, in the
 * best-fitting gap. But a block may use a gap only if all tasks that touched the blocks that were there have ended by
 * then, in whatever order tasks run: each comes before the block's first task, or is that very task, whose calls keep
 * their order. */
#include <core/layout/layout.h>
#include <core/layout/tasks.h>

#define MANY_GAPS 256 /* above this number, adjacent gaps are joined; such a gap waits for the tasks of all */

typedef struct gap {
  size_t offset, bytes;
  uint32_t users; /* index in space.sets: tasks that touched it */
} gap;

typedef struct space {
  const tn__task_order *order; /* borrowed */
  gap *gaps;                   /* by offset */
  uint64_t *sets; /* bit sets of tasks: those of the blocks, in their order; then those of joined gaps */
  size_t n, room, n_sets, set_room;
  size_t end; /* of the arena so far */
} space;

static uint64_t *set_of(const space *s, uint32_t users) { return s->sets + (size_t)users * s->order->words; }

static bool new_set(space *s, uint32_t *out)
{
  size_t words = s->order->words;
  if (!tn__grow((void **)&s->sets, &s->set_room, (s->n_sets + 1) * words, sizeof *s->sets)) return false;
  *out = (uint32_t)s->n_sets++;
  for (size_t w = 0; w < words; w++) set_of(s, *out)[w] = 0;
  return true;
}

static bool equal_sets(const space *s, uint32_t a, uint32_t b)
{
  return a == b || __builtin_memcmp(set_of(s, a), set_of(s, b), s->order->words * sizeof *s->sets) == 0;
}

/* ---- gaps ---- */

static void remove_gaps(space *s, size_t at, size_t n)
{
  __builtin_memmove(s->gaps + at, s->gaps + at + n, (s->n - at - n) * sizeof *s->gaps);
  s->n -= n;
}

/* Joins a gap with the next one if they are adjacent, and touched by the same tasks or there are many gaps. False if
 * memory is exhausted. */
static bool join(space *s, size_t at)
{
  gap *a = &s->gaps[at], *b = &s->gaps[at + 1];
  if (a->offset + a->bytes != b->offset) return true;
  if (!equal_sets(s, a->users, b->users)) {
    if (s->n <= MANY_GAPS) return true;
    uint32_t both;
    if (!new_set(s, &both)) return false;
    for (uint32_t w = 0; w < s->order->words; w++) set_of(s, both)[w] = set_of(s, a->users)[w] | set_of(s, b->users)[w];
    a->users = both;
  }
  a->bytes += b->bytes;
  remove_gaps(s, at + 1, 1);
  return true;
}

/* Frees a place. False if memory is exhausted. */
static bool give_back(space *s, size_t offset, size_t bytes, uint32_t users)
{
  size_t at = 0, end = s->n;
  if (bytes == 0) return true;
  while (at < end) {
    size_t middle = at + (end - at) / 2;
    if (s->gaps[middle].offset < offset) at = middle + 1;
    else end = middle;
  }
  if (!tn__grow((void **)&s->gaps, &s->room, s->n + 1, sizeof *s->gaps)) return false;
  __builtin_memmove(s->gaps + at + 1, s->gaps + at, (s->n - at) * sizeof *s->gaps);
  s->gaps[at] = (gap){ offset, bytes, users };
  s->n++;
  if (at + 1 < s->n && !join(s, at)) return false;
  return at == 0 || join(s, at - 1);
}

/* Takes bytes from the front of adjacent gaps. */
static void cut_off(space *s, size_t at, size_t bytes)
{
  size_t n = 0;
  while (at + n < s->n && bytes > 0 && s->gaps[at + n].bytes <= bytes) bytes -= s->gaps[at + n++].bytes;
  if (bytes > 0) {
    s->gaps[at + n].offset += bytes;
    s->gaps[at + n].bytes -= bytes;
  }
  remove_gaps(s, at, n);
}

/* The offset of the smallest run of adjacent gaps that the task may use and that is large enough. If there is none, the
 * arena grows, by the missing bytes only if it ends with such a run. */
static size_t take(space *s, size_t bytes, uint32_t task)
{
  size_t best = SIZE_MAX, best_bytes = SIZE_MAX, row = 0, row_bytes = 0;
  for (size_t i = 0; i <= s->n; i++) {
    const gap *g = i < s->n ? &s->gaps[i] : NULL;
    bool usable = g != NULL && tn__task_follows(s->order, set_of(s, g->users), task);
    bool follows = row_bytes > 0 && g != NULL && s->gaps[i - 1].offset + s->gaps[i - 1].bytes == g->offset;
    if (row_bytes > 0 && !(usable && follows)) {
      if (row_bytes >= bytes && row_bytes < best_bytes) {
        best = row;
        best_bytes = row_bytes;
      }
      bool at_end = s->gaps[i - 1].offset + s->gaps[i - 1].bytes == s->end;
      if (best == SIZE_MAX && at_end && i == s->n) { /* extend the last run */
        size_t offset = s->gaps[row].offset;
        s->n = row;
        s->end = offset + bytes;
        return offset;
      }
      row_bytes = 0;
    }
    if (!usable) continue;
    if (row_bytes == 0) row = i;
    row_bytes += g->bytes;
  }
  size_t offset = best == SIZE_MAX ? s->end : s->gaps[best].offset;
  if (best == SIZE_MAX) s->end += bytes;
  else cut_off(s, best, bytes);
  return offset;
}

/* ---- blocks ---- */

/* Lists of blocks by the instruction after which they end. */
typedef struct ends {
  uint32_t *first; /* by instruction of the segment: 1 + block, 0 = none */
  uint32_t *next;  /* by block */
} ends;

/* Makes the set of the tasks that touch a block. Called once for each block, in order. */
static bool set_users(space *s, const tn__life *life)
{
  uint32_t users, task = tn__task_of(s->order, life->first);
  if (!new_set(s, &users)) return false;
  uint64_t *set = set_of(s, users);
  const uint64_t *touched = life->slot == TN__NONE ? NULL : tn__task_touched(s->order, life->slot);
  for (uint32_t w = 0; touched != NULL && w < s->order->words; w++) set[w] = touched[w];
  set[task / 64] |= UINT64_C(1) << task % 64;
  return true;
}

/* Frees the places of all blocks that end before instruction `i` of the segment. */
static bool end_blocks(space *s, const ends *e, const tn__life *lives, uint32_t *at, uint32_t i, size_t *now)
{
  bool ok = true;
  for (; ok && *at < i; (*at)++)
    for (uint32_t b = e->first[*at]; ok && b != 0; b = e->next[b - 1]) {
      size_t bytes = tn__round_up(lives[b - 1].bytes, TN_ALIGN);
      ok = give_back(s, lives[b - 1].offset, bytes, b - 1);
      *now -= bytes;
    }
  return ok;
}

static tn_status assign(space *s, const ends *e, tn__life *lives, size_t n, size_t *live_bytes, tn_error *err)
{
  size_t now = 0, total = 0;
  uint32_t at = 0;
  bool ok = true;
  for (size_t i = 0; ok && i < n; i++) ok = set_users(s, &lives[i]);
  for (size_t i = 0; ok && i < n; i++) {
    uint32_t first = lives[i].first - s->order->begin;
    ok = end_blocks(s, e, lives, &at, first, &now);
    if (!ok) break;
    size_t bytes = tn__round_up(lives[i].bytes, TN_ALIGN);
    if (bytes < lives[i].bytes || !tn__size_add(total, bytes, &total) || total > PTRDIFF_MAX)
      return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "the values of a step need more than %zu bytes",
                          (size_t)PTRDIFF_MAX);
    lives[i].offset = bytes == 0 ? 0 : take(s, bytes, tn__task_of(s->order, lives[i].first));
    now += bytes;
    if (now > *live_bytes) *live_bytes = now;
    uint32_t last = lives[i].last - s->order->begin;
    if (lives[i].last == UINT32_MAX || last >= s->order->n_instrs) continue; /* needed until the step ends */
    e->next[i] = e->first[last];
    e->first[last] = (uint32_t)i + 1;
  }
  return ok ? TN_OK : tn__no_memory(err, "layout", n * sizeof(gap));
}

tn_status tn__layout_assign_tasks(tn__life *lives, size_t n, const tn__task_order *order, size_t *arena_bytes,
                                  size_t *live_bytes, tn_error *err)
{
  space s = { .order = order };
  size_t n_instrs = (size_t)order->n_instrs + 1;
  ends e = { tn__alloc_array(n_instrs, sizeof *e.first), tn__alloc_array(n + 1, sizeof *e.next) };
  *live_bytes = 0;
  tn_status st = e.first == NULL || e.next == NULL ? tn__no_memory(err, "layout", n * sizeof *e.next)
                                                   : assign(&s, &e, lives, n, live_bytes, err);
  *arena_bytes = s.end;
  tn__free(e.first, n_instrs * sizeof *e.first);
  tn__free(e.next, (n + 1) * sizeof *e.next);
  tn__free(s.gaps, s.room * sizeof *s.gaps);
  tn__free(s.sets, s.set_room * sizeof *s.sets);
  return st;
}
