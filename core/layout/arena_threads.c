/* SPDX-License-Identifier: Apache-2.0 */
/* Arena offsets for threads that share loops. Each writes a slice of every large value, the first thread the first one,
 * so a line of memory that several values have in turn should be in the same slice of all: then it is in the cache of
 * the core that writes it. Where slices shift, a core fetches what it overwrites from another one, which takes longer
 * than from memory that both share.
 *
 * A step is gone through several times, since a step writes over what the one before wrote. Each block gets the place
 * that costs least by who wrote there last, and how long ago. */
#include <core/layout/layout.h>
#include <string.h>

#define MOST_SLICES 4
#define MOST_CHUNKS 512
#define LEAST_CHUNKS 64
#define LEAST_SHIFT 8 /* chunks of 256 bytes */
#define ROUNDS 4
#define BRIEF 3             /* instructions: what lives longer stands at the edge of a gap, so that gaps stay large */
#define MOST_WORK 8000000   /* sums added and looked up in all tries: 7 ms, and 18 for 4000 blocks, which are the most
                             * \ */
#define WORTH_NS 3000.0     /* saved in a step; less is not worth memory */

/* What it costs to write a line, in ns: measured on a Xeon 6, with 2 MB of second cache a core. Other programs and the
 * weights have those caches, too, so what was written so many bytes ago is believed to have left its own. */
#define RECENT (1536 << 10)
#define OWN 0.7
#define COLD 2.0
#define OTHERS 8.0
#define OTHERS_OLD 4.7

#define NOBODY 255

typedef struct sharer {
  tn__life *lives;
  size_t n, room, chunk, n_chunks, most_chunks; /* room: bytes that the arena may have */
  uint32_t slices, shift; /* chunk is 2^shift */
  double share;    /* of a byte in its chunk */
  double now;      /* bytes written so far */
  uint8_t *writer; /* by chunk: the slice that it was in last */
  double *when;    /* by chunk */
  double *sums;    /* by slice, then by chunk: what all chunks in front cost */
  uint32_t *live;  /* blocks that live, by offset */
  size_t n_live;
  size_t *offsets, *best;
  size_t work;
} sharer;

static size_t rounded(const tn__life *l) { return tn__round_up(l->bytes, TN_ALIGN); }

/* ---- what it costs ---- */

static void add_up(sharer *s)
{
  double lines = (double)s->chunk / 64;
  for (uint32_t k = 0; k < s->slices; k++) {
    double *sums = s->sums + k * (s->n_chunks + 1), sum = 0;
    for (size_t c = 0; c < s->n_chunks; c++) {
      bool recent = s->now - s->when[c] < RECENT;
      sums[c] = sum;
      if (s->writer[c] == NOBODY || (s->writer[c] == k && !recent)) sum += COLD * lines;
      else sum += lines * (s->writer[c] == k ? OWN : recent ? OTHERS : OTHERS_OLD);
    }
    sums[s->n_chunks] = sum;
  }
  s->work += s->slices * s->n_chunks;
}

static double sum_at(const sharer *s, uint32_t slice, size_t offset)
{
  const double *sums = s->sums + slice * (s->n_chunks + 1) + (offset >> s->shift);
  return sums[0] + (sums[1] - sums[0]) * (double)(offset & (s->chunk - 1)) * s->share;
}

static size_t slice_begin(const sharer *s, const tn__life *l, uint32_t k) { return rounded(l) / s->slices * k; }

static double price(const sharer *s, const tn__life *l, size_t offset)
{
  double ns = 0;
  if (!l->shared) return sum_at(s, 0, offset + rounded(l)) - sum_at(s, 0, offset);
  for (uint32_t k = 0; k < s->slices; k++) {
    size_t end = k + 1 == s->slices ? rounded(l) : slice_begin(s, l, k + 1);
    ns += sum_at(s, k, offset + end) - sum_at(s, k, offset + slice_begin(s, l, k));
  }
  return ns;
}

/* The block is written. */
static void write_block(sharer *s, const tn__life *l, size_t offset)
{
  size_t bytes = rounded(l), each = bytes / s->slices;
  for (size_t c = offset / s->chunk; c * s->chunk < offset + bytes; c++) {
    size_t begin = c * s->chunk > offset ? c * s->chunk : offset, end = (c + 1) * s->chunk;
    if (end > offset + bytes) end = offset + bytes;
    if (end - begin < s->chunk / 2 && s->writer[c] != NOBODY) continue; /* the larger part has another writer */
    size_t slice = !l->shared || each == 0 ? 0 : ((begin + end) / 2 - offset) / each;
    s->writer[c] = (uint8_t)(slice < s->slices ? slice : s->slices - 1);
    s->when[c] = s->now;
  }
  s->now += (double)bytes;
  s->work += bytes / s->chunk + 1;
}

/* ---- places ---- */

static void end_lives(sharer *s, uint32_t first)
{
  size_t n = 0;
  for (size_t i = 0; i < s->n_live; i++)
    if (s->lives[s->live[i]].last >= first) s->live[n++] = s->live[i];
  s->work += s->n_live;
  s->n_live = n;
}

static void consider(sharer *s, const tn__life *l, size_t offset, size_t *at, double *least)
{
  double ns = price(s, l, offset);
  s->work += 2 * s->slices;
  if (*at != SIZE_MAX && ns >= *least - 0.01) return;
  *at = offset;
  *least = ns;
}

static void look_in(sharer *s, const tn__life *l, size_t begin, size_t end, size_t *at, double *least)
{
  size_t bytes = rounded(l);
  if (end < begin || end - begin < bytes) return;
  consider(s, l, begin, at, least);
  if (l->last - l->first <= BRIEF && bytes >= 4 * s->chunk)
    for (size_t offset = tn__round_up(begin, s->chunk); offset + bytes <= end; offset += s->chunk)
      consider(s, l, offset, at, least);
  consider(s, l, end - bytes, at, least);
}

/* Where the block costs least; false: it does not fit anywhere. */
static bool place(sharer *s, size_t i)
{
  const tn__life *l = &s->lives[i];
  size_t at = SIZE_MAX, begin = 0, n = 0;
  double least = 0;
  end_lives(s, l->first);
  for (; n < s->n_live; n++) {
    uint32_t other = s->live[n];
    look_in(s, l, begin, s->offsets[other], &at, &least);
    size_t behind = s->offsets[other] + rounded(&s->lives[other]);
    if (behind > begin) begin = behind;
  }
  look_in(s, l, begin, s->room, &at, &least);
  if (at == SIZE_MAX) return false;
  s->offsets[i] = at;
  for (n = s->n_live++; n > 0 && s->offsets[s->live[n - 1]] > at; n--) s->live[n] = s->live[n - 1];
  s->live[n] = (uint32_t)i;
  return true;
}

/* ---- tries ---- */

static void forget(sharer *s)
{
  memset(s->writer, NOBODY, s->n_chunks);
  memset(s->when, 0, s->n_chunks * sizeof *s->when);
  s->now = RECENT;
}

/* What writing costs in a step, with blocks at these offsets, or in better places (NULL), which are at s->offsets then;
 * below 0: they do not fit, or it is not worth more work. */
static double go_through(sharer *s, const size_t *offsets)
{
  double ns = 0;
  s->n_live = 0;
  for (size_t i = 0; i < s->n; i++) {
    const tn__life *l = &s->lives[i];
    add_up(s);
    if (offsets == NULL && (s->work > MOST_WORK || !place(s, i))) return -1;
    size_t offset = offsets == NULL ? s->offsets[i] : offsets[i];
    ns += price(s, l, offset);
    write_block(s, l, offset);
  }
  s->now += 4 * RECENT; /* weights, and what the program does */
  return ns / s->slices;
}

/* The chunks for an arena of so many bytes. */
static void cut(sharer *s, size_t room)
{
  s->room = room / TN_ALIGN * TN_ALIGN;
  for (s->shift = LEAST_SHIFT; room >> s->shift >= s->most_chunks;) s->shift++;
  s->chunk = (size_t)1 << s->shift;
  s->share = 1.0 / (double)s->chunk;
  s->n_chunks = room / s->chunk + 1;
}

/* Of a step after another with the same offsets. */
static double price_of(sharer *s, const size_t *offsets)
{
  forget(s);
  go_through(s, offsets);
  return go_through(s, offsets);
}

/* The best of some rounds in an arena of at most so many bytes; below 0: there is none. */
static double improve(sharer *s, size_t room)
{
  double least = -1;
  cut(s, room);
  forget(s);
  for (int r = 0; r < ROUNDS; r++) {
    double ns = go_through(s, NULL);
    if (ns < 0) break;
    if (r == 0 || (least >= 0 && ns >= least)) continue; /* the first one finds nothing written */
    least = ns;
    memcpy(s->best, s->offsets, s->n * sizeof *s->best);
  }
  return least < 0 ? least : price_of(s, s->best); /* a round wrote over the places of the one before */
}

static size_t end_of(const sharer *s)
{
  size_t end = 0;
  for (size_t i = 0; i < s->n; i++)
    if (s->best[i] + rounded(&s->lives[i]) > end) end = s->best[i] + rounded(&s->lives[i]);
  return end;
}

static bool try_all(sharer *s, size_t live_bytes, size_t *arena_bytes)
{
  for (size_t i = 0; i < s->n; i++) s->offsets[i] = s->lives[i].offset;
  cut(s, *arena_bytes);
  double before = price_of(s, s->offsets), after = -1;
  for (size_t more = 4; after < 0 && more >= 2; more /= 2) { /* a quarter more than what lives, or half as much again */
    after = improve(s, live_bytes + live_bytes / more);
    if (s->work > MOST_WORK) break;
  }
  if (after < 0 || before - after < WORTH_NS || before - after < before / 8) return false;
  *arena_bytes = end_of(s);
  for (size_t i = 0; i < s->n; i++) s->lives[i].offset = s->best[i];
  return true;
}

static bool worth_a_look(const tn__life *lives, size_t n, uint32_t threads, size_t live_bytes, size_t arena_bytes)
{
  size_t shared = 0;
  for (size_t i = 0; i < n; i++) shared += lives[i].shared;
  return threads > 1 && shared > 1 && live_bytes <= SIZE_MAX / 4 && arena_bytes <= SIZE_MAX / 4 &&
         n <= MOST_WORK / 2000;
}

bool tn__layout_share(tn__life *lives, size_t n, uint32_t threads, size_t live_bytes, size_t *arena_bytes)
{
  if (!worth_a_look(lives, n, threads, live_bytes, *arena_bytes)) return false;
  sharer s = { .lives = lives, .n = n, .slices = threads < MOST_SLICES ? threads : MOST_SLICES };
  s.most_chunks =
      MOST_WORK / (8 * s.slices) / n; /* coarser where there are many blocks, so that all rounds can be made */
  s.most_chunks = s.most_chunks > MOST_CHUNKS    ? MOST_CHUNKS
                  : s.most_chunks < LEAST_CHUNKS ? LEAST_CHUNKS
                                                 : s.most_chunks;
  const size_t chunks = MOST_CHUNKS + 1, sums = s.slices * (chunks + 1);
  s.writer = tn__alloc_array(chunks, sizeof *s.writer);
  s.when = tn__alloc_array(chunks, sizeof *s.when);
  s.sums = tn__alloc_array(sums, sizeof *s.sums);
  s.live = tn__alloc_array(n, sizeof *s.live);
  s.offsets = tn__alloc_array(n, sizeof *s.offsets);
  s.best = tn__alloc_array(n, sizeof *s.best);
  bool better = s.writer != NULL && s.when != NULL && s.sums != NULL && s.live != NULL && s.offsets != NULL &&
                s.best != NULL && try_all(&s, live_bytes, arena_bytes);
  tn__free(s.writer, chunks * sizeof *s.writer);
  tn__free(s.when, chunks * sizeof *s.when);
  tn__free(s.sums, sums * sizeof *s.sums);
  tn__free(s.live, n * sizeof *s.live);
  tn__free(s.offsets, n * sizeof *s.offsets);
  tn__free(s.best, n * sizeof *s.best);
  return better;
}
