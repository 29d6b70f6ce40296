/* SPDX-License-Identifier: Apache-2.0 */
/* Arena offsets for threads that share loops. Each thread writes a slice of every large value, the first thread the
 * first slice. A cache line that several values use in turn should therefore be in the same slice of all: then it is in
 * the cache of the core that writes it. If slices are shifted, a core must fetch the lines that it overwrites from the
 * cache of another core, which takes longer than from shared memory.
 *
 * The search simulates the writes of a step. Each block is placed where writing it costs least, given which slice wrote
 * there last and how long ago. Several rounds are made, since a step overwrites what the previous one wrote. */
#include <core/layout/layout.h>
#include <string.h>

#define MOST_SLICES 4     /* maximum threads that are simulated */
#define MOST_CHUNKS 512   /* maximum and minimum number of chunks in which the arena is simulated */
#define LEAST_CHUNKS 64
#define LEAST_SHIFT 8     /* minimum size of a chunk: 256 bytes */
#define ROUNDS 4
#define BRIEF 3           /* blocks that live for more instructions are placed at the edges of gaps, which stay large */
#define MOST_WORK 8000000 /* maximum sums computed and looked up in all tries: 7 ms; 18 ms for the maximum of blocks */
#define WORTH_NS 3000.0   /* minimum gain in a step; less is not worth the memory */

/* Cost of writing a cache line, in ns, measured on a Xeon 6 with 2 MB of second-level cache per core. Weights and other
 * programs use these caches, too, so a line is assumed to be evicted once RECENT bytes have been written after it. */
#define RECENT (1536 << 10) /* bytes */
#define OWN 0.7             /* in the core's own cache */
#define COLD 2.0            /* in no cache */
#define OTHERS 8.0          /* in the cache of another core */
#define OTHERS_OLD 4.7      /* written by another core, but not recently */

#define UNWRITTEN 255

typedef struct sharer {
  tn__life *lives; /* the caller's */
  size_t n;
  size_t room;     /* maximum bytes of the arena */
  size_t chunk, n_chunks, most_chunks; /* chunk: bytes, 2^shift */
  uint32_t slices, shift;
  double share;    /* 1 / chunk */
  double now;      /* bytes written so far: the clock of the simulation */
  uint8_t *writer; /* by chunk: the slice that wrote it last; UNWRITTEN = none */
  double *when;    /* by chunk: the time of that */
  double *sums;    /* by slice, then by chunk: cost of writing all chunks before this one */
  uint32_t *live;  /* live blocks, by offset */
  size_t n_live;
  size_t *offsets; /* by block: in this round */
  size_t *best;    /* by block: in the best round */
  size_t work;
} sharer;

static size_t rounded(const tn__life *l) { return tn__round_up(l->bytes, TN_ALIGN); }

/* ---- costs ---- */

/* Fills s->sums for the current state of the chunks. */
static void add_up(sharer *s)
{
  double lines = (double)s->chunk / 64;
  for (uint32_t k = 0; k < s->slices; k++) {
    double *sums = s->sums + k * (s->n_chunks + 1), sum = 0;
    for (size_t c = 0; c < s->n_chunks; c++) {
      bool recent = s->now - s->when[c] < RECENT;
      sums[c] = sum;
      if (s->writer[c] == UNWRITTEN) sum += COLD * lines;
      else if (s->writer[c] == k) sum += lines * (recent ? OWN : COLD);
      else sum += lines * (recent ? OTHERS : OTHERS_OLD);
    }
    sums[s->n_chunks] = sum;
  }
  s->work += s->slices * s->n_chunks;
}

/* Cost, in ns, of one slice's writing everything below an offset. */
static double sum_at(const sharer *s, uint32_t slice, size_t offset)
{
  const double *sums = s->sums + slice * (s->n_chunks + 1) + (offset >> s->shift);
  return sums[0] + (sums[1] - sums[0]) * (double)(offset & (s->chunk - 1)) * s->share;
}

static size_t slice_begin(const sharer *s, const tn__life *l, uint32_t k) { return rounded(l) / s->slices * k; }

/* Cost, in ns, of writing a block at an offset. A block that threads do not share is written by the first one. */
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

/* Records that the block is written. */
static void write_block(sharer *s, const tn__life *l, size_t offset)
{
  size_t bytes = rounded(l), each = bytes / s->slices;
  for (size_t c = offset / s->chunk; c * s->chunk < offset + bytes; c++) {
    size_t begin = c * s->chunk > offset ? c * s->chunk : offset, end = (c + 1) * s->chunk;
    if (end > offset + bytes) end = offset + bytes;
    if (end - begin < s->chunk / 2 && s->writer[c] != UNWRITTEN) continue; /* the larger part has another writer */
    size_t slice = !l->shared || each == 0 ? 0 : ((begin + end) / 2 - offset) / each;
    s->writer[c] = (uint8_t)(slice < s->slices ? slice : s->slices - 1);
    s->when[c] = s->now;
  }
  s->now += (double)bytes;
  s->work += bytes / s->chunk + 1;
}

/* ---- places ---- */

/* Removes the blocks that end before instruction `first`. */
static void end_lives(sharer *s, uint32_t first)
{
  size_t n = 0;
  for (size_t i = 0; i < s->n_live; i++)
    if (s->lives[s->live[i]].last >= first) s->live[n++] = s->live[i];
  s->work += s->n_live;
  s->n_live = n;
}

/* Keeps an offset if it costs less than the best so far. */
static void consider(sharer *s, const tn__life *l, size_t offset, size_t *at, double *least)
{
  double ns = price(s, l, offset);
  s->work += 2 * s->slices;
  if (*at != SIZE_MAX && ns >= *least - 0.01) return;
  *at = offset;
  *least = ns;
}

/* Considers offsets in a gap: both ends, and, for large blocks that live briefly, all chunks between. */
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

/* Places a block where writing it costs least. False if it does not fit anywhere. */
static bool place(sharer *s, size_t i)
{
  const tn__life *l = &s->lives[i];
  size_t at = SIZE_MAX, begin = 0, n = 0;
  double least = 0;
  end_lives(s, l->first);
  for (; n < s->n_live; n++) {
    uint32_t other = s->live[n];
    look_in(s, l, begin, s->offsets[other], &at, &least);
    size_t block_end = s->offsets[other] + rounded(&s->lives[other]);
    if (block_end > begin) begin = block_end;
  }
  look_in(s, l, begin, s->room, &at, &least);
  if (at == SIZE_MAX) return false;
  s->offsets[i] = at;
  for (n = s->n_live++; n > 0 && s->offsets[s->live[n - 1]] > at; n--) s->live[n] = s->live[n - 1];
  s->live[n] = (uint32_t)i;
  return true;
}

/* ---- tries ---- */

/* Restarts the simulation with an arena that nothing was written to. */
static void forget(sharer *s)
{
  memset(s->writer, UNWRITTEN, s->n_chunks);
  memset(s->when, 0, s->n_chunks * sizeof *s->when);
  s->now = RECENT;
}

/* Simulates a step with blocks at these offsets, or, if NULL, with new ones that it stores in s->offsets. Returns the
 * cost of the writes in ns; negative if the blocks do not fit, or the maximum of work is exceeded. */
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
  s->now += 4 * RECENT; /* between steps, weights and the program use the caches */
  return ns / s->slices;
}

/* Chooses the chunks for an arena of `room` bytes. */
static void cut(sharer *s, size_t room)
{
  s->room = room / TN_ALIGN * TN_ALIGN;
  for (s->shift = LEAST_SHIFT; room >> s->shift >= s->most_chunks;) s->shift++;
  s->chunk = (size_t)1 << s->shift;
  s->share = 1.0 / (double)s->chunk;
  s->n_chunks = room / s->chunk + 1;
}

/* The cost of a step that follows another one with the same offsets. */
static double price_of(sharer *s, const size_t *offsets)
{
  forget(s);
  go_through(s, offsets);
  return go_through(s, offsets);
}

/* Finds the best offsets of some rounds in an arena of at most `room` bytes, and returns their cost; negative if there
 * are none. */
static double improve(sharer *s, size_t room)
{
  double least = -1;
  cut(s, room);
  forget(s);
  for (int r = 0; r < ROUNDS; r++) {
    double ns = go_through(s, NULL);
    if (ns < 0) break;
    if (r == 0 || (least >= 0 && ns >= least)) continue; /* in the first round nothing was written before */
    least = ns;
    memcpy(s->best, s->offsets, s->n * sizeof *s->best);
  }
  return least < 0 ? least : price_of(s, s->best); /* `least` was measured after a round with other offsets */
}

static size_t end_of(const sharer *s)
{
  size_t end = 0;
  for (size_t i = 0; i < s->n; i++)
    if (s->best[i] + rounded(&s->lives[i]) > end) end = s->best[i] + rounded(&s->lives[i]);
  return end;
}

/* Tries arenas of two sizes. False if no offsets are better enough: then nothing has changed. */
static bool try_all(sharer *s, size_t live_bytes, size_t *arena_bytes)
{
  for (size_t i = 0; i < s->n; i++) s->offsets[i] = s->lives[i].offset;
  cut(s, *arena_bytes);
  double before = price_of(s, s->offsets), after = -1;
  for (size_t more = 4; after < 0 && more >= 2; more /= 2) { /* 5/4 of the live bytes, or else 3/2 */
    after = improve(s, live_bytes + live_bytes / more);
    if (s->work > MOST_WORK) break;
  }
  if (after < 0 || before - after < WORTH_NS || before - after < before / 8) return false;
  *arena_bytes = end_of(s);
  for (size_t i = 0; i < s->n; i++) s->lives[i].offset = s->best[i];
  return true;
}

/* Whether threads share loops, and there are not too many blocks (4000). */
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
  s.most_chunks = MOST_WORK / (8 * s.slices) / n; /* fewer for many blocks, so that there is time for all rounds */
  if (s.most_chunks > MOST_CHUNKS) s.most_chunks = MOST_CHUNKS;
  if (s.most_chunks < LEAST_CHUNKS) s.most_chunks = LEAST_CHUNKS;
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
