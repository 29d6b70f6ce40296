/* SPDX-License-Identifier: Apache-2.0 */
#include <core/base/alloc.h>
#include <ops/kernel/poll.h>
#include <ops/kernel/reduce/reduce_plan.h>

/* Maximum accumulators per call of a loop: they stay in the L1 cache. */
#define BLOCK 256
/* Minimum number of elements per part. */
#define PART_ELEMENTS (1 << 16)
#define PARTS_WANTED 64
#define NS_PER_ELEMENT 0.1
/* Minimum rows of a block. */
#define ROWS_AT_LEAST 8

/* ---- planning ---- */

/* Merges dims into `to`, where reduced and kept dimensions alternate. *first_reduced tells the kind of the first one.
 * Returns the number of merged dimensions. */
static int32_t merge_dims(const int64_t *dims, int32_t rank, const bool *reduced, tn__reduce_dim *to,
                          bool *first_reduced)
{
  int32_t n = 0;
  bool kind = false;
  for (int32_t i = 0; i < rank; i++) {
    if (dims[i] == 1) continue;
    if (n > 0 && reduced[i] == kind) {
      to[n - 1].size *= dims[i];
      continue;
    }
    if (n == 0) *first_reduced = reduced[i];
    kind = reduced[i];
    to[n++].size = dims[i];
  }
  int64_t stride = 1;
  for (int32_t i = n - 1; i >= 0; i--) {
    to[i].stride = stride;
    stride *= to[i].size;
  }
  return n;
}

/* Assigns the innermost one or two of the n merged dims to the typed loops. Returns how many remain. */
static int32_t take_inner(tn__reduce_plan *p, const tn__reduce_dim *d, int32_t n, bool first_reduced)
{
  p->last_reduced = n > 0 && first_reduced == (n % 2 == 1);
  const tn__reduce_dim one = { 1, 1 };
  tn__reduce_dim last = n > 0 ? d[n - 1] : one;
  tn__reduce_dim before = n > 1 ? d[n - 2] : (tn__reduce_dim){ 1, last.size };
  const tn__reduce_dim *kept = p->last_reduced ? &before : &last, *gone = p->last_reduced ? &last : &before;
  p->width = kept->size;
  p->width_stride = kept->stride;
  p->rows = gone->size;
  p->row_stride = gone->stride;
  return n > 2 ? n - 2 : 0;
}

static void split_outer(tn__reduce_plan *p, const tn__reduce_dim *d, int32_t n, bool first_reduced)
{
  p->n_kept_outer = p->n_reduced_outer = 1;
  for (int32_t i = 0; i < n; i++) {
    if (first_reduced == (i % 2 == 0)) {
      p->reduced[p->n_reduced++] = d[i];
      p->n_reduced_outer *= d[i].size;
    } else {
      p->kept[p->n_kept++] = d[i];
      p->n_kept_outer *= d[i].size;
    }
  }
}

/* If the last dimension is reduced, smaller blocks cost nothing: uses them so that there are enough for all threads. */
static void cut_blocks(tn__reduce_plan *p)
{
  p->block = BLOCK;
  bool small = p->n_kept_outer * p->width * p->n_reduced_outer * p->rows < 2 * PART_ELEMENTS;
  if (!p->last_reduced || small || p->n_kept_outer >= PARTS_WANTED) return;
  int64_t wanted = (PARTS_WANTED + p->n_kept_outer - 1) / p->n_kept_outer, block = p->width / wanted;
  if (block < ROWS_AT_LEAST) block = ROWS_AT_LEAST;
  if (block < BLOCK) p->block = block;
}

/* Cuts the steps of each result into parts. A step is one row of columns, or one element of each row. */
static void cut_parts(tn__reduce_plan *p)
{
  int64_t steps = p->n_reduced_outer * p->rows, outs = p->n_kept_outer * p->width;
  int64_t blocks = p->n_kept_outer * ((p->width + p->block - 1) / p->block);
  p->count = steps;
  p->parts = 1;
  p->part = steps;
  if (blocks >= PARTS_WANTED || outs * steps < 2 * PART_ELEMENTS) return;
  int64_t least = (PART_ELEMENTS + outs - 1) / outs; /* minimum steps per part */
  int64_t part = (steps * blocks + PARTS_WANTED - 1) / PARTS_WANTED;
  if (part < least) part = least;
  if (part < 64) part = 64;
  if (part >= steps) return;
  p->part = (part + 31) / 32 * 32;
  p->parts = (steps + p->part - 1) / p->part;
}

tn__reduce_plan *tn__reduce_plan_create(const tn__reduce_loops *loops, const int64_t *dims, int32_t rank,
                                     const bool *reduced)
{
  tn__reduce_dim merged[TN_MAX_RANK];
  bool first_reduced = false;
  int32_t n = merge_dims(dims, rank, reduced, merged, &first_reduced);
  size_t outer = n > 2 ? (size_t)n - 2 : 0;
  size_t bytes = sizeof(tn__reduce_plan) + 2 * outer * sizeof(tn__reduce_dim);
  tn__reduce_plan *p = tn__zalloc(bytes);
  if (p == NULL) return NULL;
  p->bytes = bytes;
  p->loops = loops;
  p->element = tn_dtype_size(loops->dtype);
  p->kept = (tn__reduce_dim *)(p + 1);
  p->reduced = p->kept + outer;
  n = take_inner(p, merged, n, first_reduced);
  split_outer(p, merged, n, first_reduced);
  cut_blocks(p);
  cut_parts(p);
  bool half_sum = loops->op == TN__REDUCE_SUM && loops->dtype == TN_HALF;
  if (half_sum && !p->last_reduced && p->count <= TN__REDUCE_SHORT) p->loops = &tn__reduce_short_half_sum;
  return p;
}

void tn__reduce_plan_destroy(tn__reduce_plan *plan)
{
  if (plan != NULL) tn__free(plan, plan->bytes);
}

size_t tn__reduce_plan_scratch(const tn__reduce_plan *p)
{
  if (p->parts == 1) return 0;
  return (size_t)(p->parts * p->n_kept_outer * p->width) * p->loops->acc_size;
}

double tn__reduce_plan_cost(const tn__reduce_plan *p)
{
  return (double)(p->n_kept_outer * p->width) * (double)p->count * NS_PER_ELEMENT;
}

/* ---- running ---- */

static int64_t offset_of(const tn__reduce_dim *dims, int32_t n, int64_t index)
{
  int64_t offset = 0;
  for (int32_t i = n - 1; i >= 0; i--) {
    offset += index % dims[i].size * dims[i].stride;
    index /= dims[i].size;
  }
  return offset;
}

/* Position in the outer reduced dimensions; advances without division. */
typedef struct odometer {
  int64_t at[TN_MAX_RANK];
  int64_t offset;
} odometer;

static void odometer_set(odometer *o, const tn__reduce_dim *dims, int32_t n, int64_t index)
{
  o->offset = 0;
  for (int32_t i = n - 1; i >= 0; i--) {
    o->at[i] = index % dims[i].size;
    index /= dims[i].size;
    o->offset += o->at[i] * dims[i].stride;
  }
}

static void odometer_next(odometer *o, const tn__reduce_dim *dims, int32_t n)
{
  for (int32_t i = n - 1; i >= 0; i--) {
    o->offset += dims[i].stride;
    if (++o->at[i] < dims[i].size) return;
    o->offset -= dims[i].size * dims[i].stride;
    o->at[i] = 0;
  }
}

/* Accumulates steps [begin, end) of results [first, first + n) within the width that begins at element `base`. */
static void gather(const tn__reduce_plan *p, const char *in, int64_t base, int64_t first, int64_t n, int64_t begin,
                   int64_t end, void *acc)
{
  odometer o;
  odometer_set(&o, p->reduced, p->n_reduced, begin / p->rows);
  int64_t row = begin % p->rows;
  base += first * p->width_stride;
  p->loops->init(acc, n);
  tn__poll poll = tn__poll_here();
  for (int64_t at = begin; at < end;) {
    int64_t rows = p->rows - row < end - at ? p->rows - row : end - at;
    if (tn__poll_over(&poll, rows * n)) return;
    const char *from = in + (size_t)(base + o.offset + row * p->row_stride) * p->element;
    if (p->last_reduced)
      p->loops->rows(acc, from, rows, p->width_stride, n);
    else
      p->loops->columns(acc, from, rows, p->row_stride, n);
    at += rows;
    row = 0;
    odometer_next(&o, p->reduced, p->n_reduced);
  }
}

typedef struct run {
  const tn__reduce_plan *plan;
  const char *in;
  char *out;
  char *partial; /* accumulators, ordered by part, then by result */
  int64_t blocks_of_width;
} run;

/* Position of a block: the results it produces and the element it begins at. */
typedef struct place {
  int64_t first, n, result, base;
} place;

static place place_of(const run *r, int64_t b)
{
  const tn__reduce_plan *p = r->plan;
  int64_t outer = b / r->blocks_of_width;
  place at = { .first = b % r->blocks_of_width * p->block };
  at.n = p->width - at.first < p->block ? p->width - at.first : p->block;
  at.result = outer * p->width + at.first;
  at.base = offset_of(p->kept, p->n_kept, outer);
  return at;
}

static void run_whole(void *user, int64_t begin, int64_t end)
{
  const run *r = user;
  const tn__reduce_plan *p = r->plan;
  _Alignas(64) char acc[BLOCK * TN__REDUCE_ACC_MAX];
  for (int64_t b = begin; b < end; b++) {
    place at = place_of(r, b);
    gather(p, r->in, at.base, at.first, at.n, 0, p->count, acc);
    p->loops->finish(r->out + (size_t)at.result * p->element, acc, at.n, p->count);
  }
}

static void run_part(void *user, int64_t begin, int64_t end)
{
  const run *r = user;
  const tn__reduce_plan *p = r->plan;
  int64_t outs = p->n_kept_outer * p->width;
  for (int64_t i = begin; i < end; i++) {
    place at = place_of(r, i / p->parts);
    int64_t part = i % p->parts, from = part * p->part, to = from + p->part < p->count ? from + p->part : p->count;
    char *acc = r->partial + (size_t)(part * outs + at.result) * p->loops->acc_size;
    gather(p, r->in, at.base, at.first, at.n, from, to, acc);
  }
}

void tn__reduce_plan_run(const tn__reduce_plan *p, tn_kernel_ctx *ctx, const void *in, void *out)
{
  run r = { .plan = p, .in = in, .out = out, .partial = ctx->scratch };
  r.blocks_of_width = (p->width + p->block - 1) / p->block;
  int64_t blocks = p->n_kept_outer * r.blocks_of_width, outs = p->n_kept_outer * p->width;
  if (p->parts == 1) {
    double cost = tn__reduce_plan_cost(p) / (double)blocks;
    int64_t grain = cost > 0 && cost < 20000.0 ? (int64_t)(20000.0 / cost) + 1 : 1;
    tn_parallel_for(ctx, blocks, grain, cost, run_whole, &r);
    return;
  }
  tn_parallel_for(ctx, blocks * p->parts, 1, tn__reduce_plan_cost(p) / (double)(blocks * p->parts), run_part, &r);
  for (int64_t part = 1; part < p->parts; part++)
    p->loops->combine(r.partial, r.partial + (size_t)(part * outs) * p->loops->acc_size, outs);
  p->loops->finish(out, r.partial, outs, p->count);
}
