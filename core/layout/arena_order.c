/* SPDX-License-Identifier: Apache-2.0 */
/* Other orders in which blocks are placed in the arena. In the order in which they begin to live, blocks of varying
 * sizes leave gaps that later ones do not fit. If large blocks are placed first, each at the lowest offset that is free
 * while it lives, the arena is mostly no larger than the maximum of live bytes. Several orders are tried until the
 * arena is as small as that. */
#include <core/layout/layout.h>

#define MOST_WORK 400000 /* maximum comparisons of blocks in all tries: about a millisecond */
#define SPAN 8           /* instructions per bucket */
#define MOST_BUCKETS 8   /* maximum buckets that list a block; blocks that live longer are in a list of their own */

typedef struct entry {
  uint32_t block, next; /* next: 1 + index of the next entry; 0 = none */
} entry;

/* Placed blocks, in buckets by the time in which they live. */
typedef struct packer {
  const tn__life *lives; /* borrowed */
  size_t n, n_buckets, n_entries;
  size_t work;       /* comparisons so far */
  uint32_t begin;    /* first instruction */
  uint32_t *order;   /* blocks, in the order in which they are placed */
  size_t *offsets;   /* by block, in the current try */
  uint32_t *buckets; /* 1 + index of the first entry; 0 = empty. The last bucket has the long lives */
  entry *entries;
  uint32_t *seen;  /* by block: 1 + the block that found it last */
  uint32_t *found; /* placed blocks that live at the same time as the current one, by offset */
} packer;

/* ---- orders ---- */

static size_t room(const tn__life *l) { return tn__round_up(l->bytes, TN_ALIGN); }
/* Instructions for which a block lives; `end` is the last instruction. */
static double length(const tn__life *l, uint32_t end)
{
  return (double)((l->last < end ? l->last : end) - l->first) + 1;
}

/* Ranks: blocks with larger ones are placed first. */
static double by_size(const tn__life *l, uint32_t end)
{
  (void)end;
  return (double)room(l);
}
static double by_area(const tn__life *l, uint32_t end) { return (double)room(l) * length(l, end); }
static double by_length(const tn__life *l, uint32_t end) { return length(l, end) + 1e-18 * (double)room(l); }

typedef double (*rank_fn)(const tn__life *l, uint32_t end);
static const rank_fn ranks[] = { by_size, by_area, by_length };

/* Whether block a is placed before block b. Blocks of equal rank keep the order in which they begin. */
static bool precedes(const packer *p, rank_fn rank, uint32_t end, uint32_t a, uint32_t b)
{
  double x = rank(&p->lives[a], end), y = rank(&p->lives[b], end);
  return x > y || (x == y && a < b);
}

/* One step of a heapsort: moves order[i] down. */
static void sift(packer *p, rank_fn rank, uint32_t end, size_t i, size_t n)
{
  for (size_t child; (child = 2 * i + 1) < n; i = child) {
    if (child + 1 < n && precedes(p, rank, end, p->order[child], p->order[child + 1])) child++;
    if (!precedes(p, rank, end, p->order[i], p->order[child])) return;
    uint32_t t = p->order[i];
    p->order[i] = p->order[child];
    p->order[child] = t;
  }
}

static void sort_blocks(packer *p, rank_fn rank, uint32_t end)
{
  for (size_t i = 0; i < p->n; i++) p->order[i] = (uint32_t)i;
  for (size_t i = p->n / 2; i-- > 0;) sift(p, rank, end, i, p->n);
  for (size_t i = p->n; i-- > 1;) {
    uint32_t t = p->order[0];
    p->order[0] = p->order[i];
    p->order[i] = t;
    sift(p, rank, end, 0, i);
  }
}

/* ---- a try ---- */

static size_t bucket_of(const packer *p, uint32_t instr)
{
  size_t b = (instr - p->begin) / SPAN;
  return b < p->n_buckets ? b : p->n_buckets - 1;
}

/* Adds the blocks of a bucket that live at the same time as `block` to p->found. */
static void look_in(packer *p, size_t bucket, uint32_t block, size_t *n)
{
  const tn__life *l = &p->lives[block];
  for (uint32_t e = p->buckets[bucket]; e != 0; e = p->entries[e - 1].next) {
    uint32_t other = p->entries[e - 1].block;
    p->work++;
    if (p->seen[other] == block + 1 || p->lives[other].first > l->last || p->lives[other].last < l->first) continue;
    p->seen[other] = block + 1;
    size_t at = (*n)++; /* insertion sort: few blocks live at one time */
    while (at > 0 && p->offsets[p->found[at - 1]] > p->offsets[other]) {
      p->found[at] = p->found[at - 1];
      at--;
      p->work++;
    }
    p->found[at] = other;
  }
}

static void list_in(packer *p, size_t bucket, uint32_t block)
{
  p->entries[p->n_entries] = (entry){ block, p->buckets[bucket] };
  p->buckets[bucket] = (uint32_t)++p->n_entries;
}

/* Places a block at the lowest offset where it does not overlap a block that lives at the same time. */
static void place(packer *p, uint32_t block)
{
  const tn__life *l = &p->lives[block];
  size_t first = bucket_of(p, l->first), last = bucket_of(p, l->last), n = 0, at = 0;
  for (size_t b = first; b <= last; b++) look_in(p, b, block, &n);
  look_in(p, p->n_buckets, block, &n);
  for (size_t i = 0; i < n; i++) {
    uint32_t other = p->found[i];
    if (p->offsets[other] >= at && p->offsets[other] - at >= room(l)) break;
    size_t end = p->offsets[other] + room(&p->lives[other]);
    if (end > at) at = end;
  }
  p->offsets[block] = at;
  if (last - first >= MOST_BUCKETS) list_in(p, p->n_buckets, block);
  else for (size_t b = first; b <= last; b++) list_in(p, b, block);
}

/* Places all blocks in order. Returns the bytes needed; SIZE_MAX if they are not less than `most`, or the maximum of
 * work is exceeded. */
static size_t try_order(packer *p, size_t most)
{
  size_t end = 0;
  p->n_entries = 0;
  for (size_t b = 0; b <= p->n_buckets; b++) p->buckets[b] = 0;
  for (size_t i = 0; i < p->n; i++) p->seen[i] = 0;
  for (size_t i = 0; i < p->n; i++) {
    uint32_t block = p->order[i];
    place(p, block);
    size_t block_end = p->offsets[block] + room(&p->lives[block]);
    if (block_end > end) end = block_end;
    if (end >= most || p->work > MOST_WORK) return SIZE_MAX;
  }
  return end;
}

void tn__layout_improve(tn__life *lives, size_t n, size_t live_bytes, size_t *arena_bytes)
{
  if (*arena_bytes - live_bytes <= live_bytes / 64 || n > MOST_WORK / 8) return;
  packer p = { .lives = lives, .n = n, .begin = lives[0].first };
  uint32_t end = lives[n - 1].first;
  p.n_buckets = (end - p.begin) / SPAN + 1;
  p.order = tn__alloc_array(n, sizeof *p.order);
  p.offsets = tn__alloc_array(n, sizeof *p.offsets);
  p.buckets = tn__alloc_array(p.n_buckets + 1, sizeof *p.buckets);
  p.entries = tn__alloc_array(n * MOST_BUCKETS, sizeof *p.entries);
  p.seen = tn__alloc_array(n, sizeof *p.seen);
  p.found = tn__alloc_array(n, sizeof *p.found);
  bool ok = p.order != NULL && p.offsets != NULL && p.buckets != NULL && p.entries != NULL && p.seen != NULL &&
            p.found != NULL;
  for (size_t k = 0; ok && k < sizeof ranks / sizeof *ranks && *arena_bytes > live_bytes && p.work <= MOST_WORK; k++) {
    sort_blocks(&p, ranks[k], end);
    size_t bytes = try_order(&p, *arena_bytes);
    if (bytes == SIZE_MAX) continue;
    *arena_bytes = bytes;
    for (size_t i = 0; i < n; i++) lives[i].offset = p.offsets[i];
  }
  tn__free(p.order, n * sizeof *p.order);
  tn__free(p.offsets, n * sizeof *p.offsets);
  tn__free(p.buckets, (p.n_buckets + 1) * sizeof *p.buckets);
  tn__free(p.entries, n * MOST_BUCKETS * sizeof *p.entries);
  tn__free(p.seen, n * sizeof *p.seen);
  tn__free(p.found, n * sizeof *p.found);
}
