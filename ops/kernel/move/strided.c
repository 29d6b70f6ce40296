/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between two layouts of the same elements; see strided.h. */
#include <ops/kernel/poll.h>
#include <ops/kernel/move/strided.h>

#include <core/tensor/tensor_internal.h>
#include <ops/kernel/move/strided_blocks.h>
#include <string.h>

/* Bytes of a block: small enough that source and target blocks together stay in the L1 cache. */
#define BLOCK_BYTES 8192
/* Number of blocks processed side by side before advancing along `last`: keeps the number of pages in use low. */
#define BLOCK_GROUP 8
/* Bytes of work that justify another thread. */
#define GRAIN_BYTES 65536

/* ---- planning ---- */

void tn__strided_init(tn__strided *s, tn_dtype dtype)
{
  s->dtype = dtype;
  s->empty = false;
  s->rank = 0;
  s->element = s->width = tn_dtype_size(dtype);
  s->side = s->last = (tn__strided_dim){ 1, 0, 0 };
  s->block = NULL;
}

void tn__strided_add(tn__strided *s, int64_t size, int64_t from, int64_t to)
{
  if (size == 1) return;
  /* TN__STRIDED_DIMS dimensions of size 2 or more and one further: only possible if the tensor is empty. */
  if (size == 0 || s->empty || s->rank == TN__STRIDED_DIMS) {
    s->empty = true;
    return;
  }
  from *= (int64_t)s->element;
  to *= (int64_t)s->element;
  if (s->rank > 0) {
    tn__strided_dim *before = &s->dims[s->rank - 1];
    if (before->from == from * size && before->to == to * size) {
      *before = (tn__strided_dim){ before->size * size, from, to };
      return;
    }
  }
  s->dims[s->rank++] = (tn__strided_dim){ size, from, to };
}

static void take_out(tn__strided *s, int32_t i)
{
  memmove(&s->dims[i], &s->dims[i + 1], (size_t)(s->rank - i - 1) * sizeof s->dims[0]);
  s->rank--;
}

static int64_t magnitude(int64_t step) { return step < 0 ? -step : step; }

/* Chooses the second dimension of a block: the one along which the source is densest, otherwise the innermost remaining
 * one if lines would be short. -1 for none. */
static int32_t side_of(const tn__strided *s)
{
  int32_t best = -1;
  for (int32_t i = 0; i < s->rank; i++)
    if (magnitude(s->dims[i].from) < magnitude(s->last.from) &&
        (best < 0 || magnitude(s->dims[i].from) < magnitude(s->dims[best].from)))
      best = i;
  if (best >= 0 && (s->width <= 16 || s->last.size < 16)) return best;
  if (s->last.size >= 16 || s->rank == 0) return -1;
  return s->rank - 1;
}

/* Chooses a tile of two dimensions that holds about `units` units. */
static void tile(int64_t units, int64_t side, int64_t last, int64_t *side_tile, int64_t *last_tile)
{
  int64_t edge = 8;
  while (edge * edge * 4 <= units) edge *= 2;
  int64_t a = side < edge ? side : edge, b = last < edge ? last : edge;
  if (side < edge && units / a > b) b = units / a;
  if (last < edge && units / b > a) a = units / b;
  *side_tile = a < side ? a : side;
  *last_tile = b < last ? b : last;
}

static void choose_block(tn__strided *s)
{
  int64_t width = (int64_t)s->width, units = width < BLOCK_BYTES ? BLOCK_BYTES / width : 1;
  tile(units, s->side.size, s->last.size, &s->side_tile, &s->last_tile);
  if (s->side.from != width || s->last.to != width || (s->block = tn__strided_block_of(s->width)) == NULL) return;
  bool far = s->last.from % TN__FAR_STEP == 0 || s->side.to % TN__FAR_STEP == 0;
  if (!far || s->side.size * width < TN__FAR_BYTES / 2 || s->last.size * width < TN__FAR_BYTES / 2) return;
  int64_t edge = TN__FAR_BYTES / width < TN__FAR_EDGE ? TN__FAR_BYTES / width : TN__FAR_EDGE;
  s->side_tile = edge < s->side.size ? edge : s->side.size;
  s->last_tile = edge < s->last.size ? edge : s->last.size;
  s->block = tn__strided_far_block_of(s->width);
}

void tn__strided_plan(tn__strided *s)
{
  s->units = 0;
  s->cost_ns = 20;
  if (s->empty) return;
  if (s->rank > 0 && s->dims[s->rank - 1].from == (int64_t)s->width && s->dims[s->rank - 1].to == (int64_t)s->width)
    s->width *= (size_t)s->dims[--s->rank].size;
  if (s->rank > 0) {
    s->last = s->dims[--s->rank];
    int32_t side = side_of(s);
    if (side >= 0) {
      s->side = s->dims[side];
      take_out(s, side);
    }
  }
  choose_block(s);
  s->side_tiles = (s->side.size + s->side_tile - 1) / s->side_tile;
  s->last_tiles = (s->last.size + s->last_tile - 1) / s->last_tile;
  s->units = s->side_tiles * s->last_tiles;
  for (int32_t i = 0; i < s->rank; i++) s->units *= s->dims[i].size;
  s->line = tn__strided_line_of(s->width);
  double places = (double)s->side_tile * (double)s->last_tile;
  s->unit_ns = 8 + places * (0.4 + (double)s->width * 0.06);
  s->cost_ns = 20 + s->unit_ns * (double)s->units;
}

bool tn__strided_is_flat(const tn__strided *s)
{
  return s->empty || (s->rank == 0 && s->last.size == 1 && s->side.size == 1);
}

/* ---- running ---- */

/* Position of a block. */
typedef struct place {
  const char *from;
  char *to;
  int64_t side, last; /* where it begins in the two dimensions */
  int64_t group;      /* where its group begins along `side` */
  int64_t index[TN__STRIDED_DIMS];
} place;

static void go_to(place *p, const tn__strided *s, int64_t unit, const char *from, char *to)
{
  int64_t blocks = s->side_tiles * s->last_tiles, block = unit % blocks, all = BLOCK_GROUP * s->last_tiles;
  int64_t first = block / all * BLOCK_GROUP, width = s->side_tiles - first; /* in tiles, of the group */
  if (width > BLOCK_GROUP) width = BLOCK_GROUP;
  p->group = first * s->side_tile;
  p->last = block % all / width * s->last_tile;
  p->side = p->group + block % all % width * s->side_tile;
  unit /= blocks;
  for (int32_t i = s->rank - 1; i >= 0; i--) {
    p->index[i] = unit % s->dims[i].size;
    unit /= s->dims[i].size;
    from += p->index[i] * s->dims[i].from;
    to += p->index[i] * s->dims[i].to;
  }
  p->from = from;
  p->to = to;
}

static void go_on(place *p, const tn__strided *s)
{
  int64_t group = BLOCK_GROUP * s->side_tile;
  p->side += s->side_tile;
  if (p->side < s->side.size && p->side < p->group + group) return;
  p->side = p->group;
  if ((p->last += s->last_tile) < s->last.size) return;
  p->last = 0;
  p->side = p->group += group;
  if (p->group < s->side.size) return;
  p->side = p->group = 0;
  for (int32_t i = s->rank - 1; i >= 0; i--) {
    const tn__strided_dim *d = &s->dims[i];
    p->from += d->from;
    p->to += d->to;
    if (++p->index[i] < d->size) return;
    p->from -= d->from * d->size;
    p->to -= d->to * d->size;
    p->index[i] = 0;
  }
}

static int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }

static void run_block(const tn__strided *s, const place *p)
{
  int64_t side = at_most(s->side_tile, s->side.size - p->side), last = at_most(s->last_tile, s->last.size - p->last);
  const char *from = p->from + p->side * s->side.from + p->last * s->last.from;
  char *to = p->to + p->side * s->side.to + p->last * s->last.to;
  if (s->block != NULL)
    s->block(side, last, from, s->last.from, to, s->side.to);
  else if (side > last)
    for (int64_t i = 0; i < last; i++)
      s->line(s->width, side, from + i * s->last.from, s->side.from, to + i * s->last.to, s->side.to);
  else
    for (int64_t i = 0; i < side; i++)
      s->line(s->width, last, from + i * s->side.from, s->last.from, to + i * s->side.to, s->last.to);
}

typedef struct strided_run {
  const tn__strided *s;
  const char *from;
  char *to;
} strided_run;

static void run_units(void *user, int64_t begin, int64_t end)
{
  const strided_run *r = user;
  place p;
  if (begin >= end) return;
  go_to(&p, r->s, begin, r->from, r->to);
  for (int64_t unit = begin;;) {
    run_block(r->s, &p);
    if (++unit == end) return;
    go_on(&p, r->s);
  }
}

/* Copies one contiguous range in pieces. */
static void run_piece(void *user, int64_t begin, int64_t end)
{
  const strided_run *r = user;
  int64_t at = begin * GRAIN_BYTES, bytes = at_most(end * GRAIN_BYTES, (int64_t)r->s->width) - at;
  memcpy(r->to + at, r->from + at, (size_t)bytes);
}

/* Elements that own memory are copied unit by unit on the calling thread. */
static tn_status run_managed(const strided_run *r, tn_kernel_ctx *ctx)
{
  const tn__strided *s = r->s;
  tn__poll poll = tn__poll_of(ctx);
  place p;
  go_to(&p, s, 0, r->from, r->to);
  for (int64_t unit = 0; unit < s->units; unit++, go_on(&p, s)) {
    int64_t side = at_most(s->side_tile, s->side.size - p.side), last = at_most(s->last_tile, s->last.size - p.last);
    const char *from = p.from + p.side * s->side.from + p.last * s->last.from;
    char *to = p.to + p.side * s->side.to + p.last * s->last.to;
    for (int64_t i = 0; i < side; i++)
      for (int64_t k = 0; k < last; k++) {
        if (tn__poll_over(&poll, 50 * (int64_t)(s->width / s->element))) return TN_CANCELLED;
        tn_status st = tn__elements_copy(s->dtype, to + i * s->side.to + k * s->last.to,
                                         from + i * s->side.from + k * s->last.from,
                                         (int64_t)(s->width / s->element), ctx->err);
        if (st != TN_OK) return st;
      }
  }
  return TN_OK;
}

tn_status tn__strided_run(const tn__strided *s, tn_kernel_ctx *ctx, const void *from, void *to)
{
  strided_run r = { s, from, to };
  if (s->empty) return TN_OK;
  if (tn__dtype_is_managed(s->dtype)) return run_managed(&r, ctx);
  if (tn__strided_is_flat(s) && s->width > 2 * GRAIN_BYTES && ctx != NULL) {
    tn_parallel_for(ctx, (int64_t)((s->width + GRAIN_BYTES - 1) / GRAIN_BYTES), 2, GRAIN_BYTES * 0.06, run_piece, &r);
    return TN_OK;
  }
  int64_t block = s->side_tile * s->last_tile * (int64_t)s->width, grain = GRAIN_BYTES / block + 1;
  if (ctx == NULL || s->units <= grain)
    run_units(&r, 0, s->units);
  else
    tn_parallel_for(ctx, s->units, grain, s->unit_ns, run_units, &r);
  return TN_OK;
}
