/* SPDX-License-Identifier: Apache-2.0 */
/* Joins and splits tensors; see join.h. */
#include <ops/kernel/move/join.h>
#include <ops/kernel/poll.h>

#include <core/base/alloc.h>
#include <core/tensor/tensor_internal.h>
#include <string.h>

/* Bytes of the whole that are moved at a time, part by part: they stay in the L1 cache. */
#define BLOCK_BYTES 16384
/* Bytes of work that justify another thread. */
#define GRAIN_BYTES 65536

tn__join *tn__join_create(tn_dtype dtype, const int64_t *dims, int32_t axis, int32_t rank, uint32_t max_parts)
{
  size_t bytes = sizeof(tn__join) + max_parts * sizeof(tn__join_part);
  tn__join *j = tn__zalloc(bytes);
  if (j == NULL) return NULL;
  j->bytes = bytes;
  j->dtype = dtype;
  j->rows = 1;
  j->place = tn_dtype_size(dtype);
  for (int32_t i = 0; i < axis; i++) j->rows *= dims[i];
  for (int32_t i = axis + 1; i < rank; i++) j->place *= (size_t)dims[i];
  j->row = j->place * (size_t)dims[axis];
  j->block = j->row > BLOCK_BYTES ? 0 : BLOCK_BYTES / (int64_t)j->row;
  return j;
}

tn_status tn__join_no_memory(const tn_prepare_ctx *ctx, tn_error *err)
{
  return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "%s: no memory for the plan of %u inputs and %u outputs",
                      tn_operation_type(ctx->op), ctx->n_inputs, ctx->n_outputs);
}

void tn__join_add(tn__join *j, uint32_t index, int64_t size)
{
  if (size == 0) return;
  tn__join_part *p = &j->parts[j->n_parts++];
  p->index = index;
  p->offset = j->filled;
  p->width = j->place * (size_t)size;
  p->line = tn__strided_line_of(p->width);
  j->filled += p->width;
}

double tn__join_cost(const tn__join *j)
{
  double bytes = (double)j->row * (double)j->rows, pieces = (double)j->n_parts * (double)j->rows;
  return 20 + bytes * 0.06 + pieces * 2;
}

void tn__join_destroy(tn__join *j)
{
  if (j != NULL) tn__free(j, j->bytes);
}

/* ---- running ---- */

typedef struct join_run {
  const tn__join *join;
  tn_view *const *views;
  char *whole;
  bool gather; /* from the parts to the whole */
} join_run;

/* Copies n rows starting at `first`, part by part; `row` is the address of the first row in the whole. */
static void run_rows(const join_run *r, int64_t first, int64_t n, char *row)
{
  const tn__join *j = r->join;
  for (uint32_t k = 0; k < j->n_parts; k++) {
    const tn__join_part *p = &j->parts[k];
    char *part = (char *)r->views[p->index]->data + (size_t)first * p->width;
    if (r->gather)
      p->line(p->width, n, part, (int64_t)p->width, row + p->offset, (int64_t)j->row);
    else
      p->line(p->width, n, row + p->offset, (int64_t)j->row, part, (int64_t)p->width);
  }
}

/* Blocks of short rows. */
static void run_blocks(void *user, int64_t begin, int64_t end)
{
  const join_run *r = user;
  const tn__join *j = r->join;
  int64_t last = end * j->block < j->rows ? end * j->block : j->rows;
  for (int64_t at = begin * j->block; at < last; at += j->block)
    run_rows(r, at, last - at < j->block ? last - at : j->block, r->whole + (size_t)at * j->row);
}

/* The part that contains byte `at` of a row. */
static uint32_t part_at(const tn__join *j, size_t at)
{
  uint32_t low = 0, high = j->n_parts - 1;
  while (low < high) {
    uint32_t middle = high - (high - low) / 2;
    if (j->parts[middle].offset <= at) low = middle;
    else high = middle - 1;
  }
  return low;
}

/* Copies bytes [at, last) of the whole, which need not be aligned to rows or parts; `there` is the address of byte
 * `at`. */
static void run_range(const join_run *r, size_t at, size_t last, char *there)
{
  const tn__join *j = r->join;
  size_t row = at / j->row, in_row = at % j->row;
  uint32_t k = part_at(j, in_row);
  while (at < last) {
    const tn__join_part *p = &j->parts[k];
    size_t skip = in_row - p->offset, n = p->width - skip;
    if (n > last - at) n = last - at;
    char *part = (char *)r->views[p->index]->data + row * p->width + skip;
    if (r->gather)
      memcpy(there, part, n);
    else
      memcpy(part, there, n);
    at += n;
    there += n;
    in_row += n;
    if (++k < j->n_parts) continue;
    k = 0;
    in_row = 0;
    row++;
  }
}

/* Long rows, in pieces of GRAIN_BYTES. */
static void run_bytes(void *user, int64_t begin, int64_t end)
{
  const join_run *r = user;
  size_t all = (size_t)r->join->rows * r->join->row, at = (size_t)begin * GRAIN_BYTES, last = (size_t)end * GRAIN_BYTES;
  run_range(r, at, last < all ? last : all, r->whole + at);
}

void tn__join_read(const tn__join *j, tn_view *const *views, size_t begin, size_t end, char *to)
{
  join_run r = { j, views, NULL, true };
  if (begin % j->row == 0 && end % j->row == 0)
    run_rows(&r, (int64_t)(begin / j->row), (int64_t)((end - begin) / j->row), to);
  else
    run_range(&r, begin, end, to);
}

/* Elements that own memory are copied on the calling thread. */
static tn_status run_managed(const join_run *r, tn_kernel_ctx *ctx)
{
  const tn__join *j = r->join;
  tn__poll poll = tn__poll_of(ctx);
  size_t element = tn_dtype_size(j->dtype);
  for (int64_t row = 0; row < j->rows; row++)
    for (uint32_t k = 0; k < j->n_parts; k++) {
      const tn__join_part *p = &j->parts[k];
      char *part = (char *)r->views[p->index]->data + (size_t)row * p->width;
      char *there = r->whole + (size_t)row * j->row + p->offset;
      if (tn__poll_over(&poll, 50 * (int64_t)(p->width / element))) return TN_CANCELLED;
      tn_status st = tn__elements_copy(j->dtype, r->gather ? there : part, r->gather ? part : there,
                                       (int64_t)(p->width / element), ctx->err);
      if (st != TN_OK) return st;
    }
  return TN_OK;
}

static tn_status run(const join_run *r, tn_kernel_ctx *ctx)
{
  const tn__join *j = r->join;
  if (tn__dtype_is_managed(j->dtype)) return run_managed(r, ctx);
  bool short_rows = j->block > 0;
  size_t all = (size_t)j->rows * j->row;
  int64_t n = short_rows ? (j->rows + j->block - 1) / j->block : (int64_t)((all + GRAIN_BYTES - 1) / GRAIN_BYTES);
  int64_t grain = short_rows ? GRAIN_BYTES / BLOCK_BYTES : 1;
  if (all <= 2 * GRAIN_BYTES)
    (short_rows ? run_blocks : run_bytes)((void *)r, 0, n);
  else
    tn_parallel_for(ctx, n, grain, tn__join_cost(j) / (double)n, short_rows ? run_blocks : run_bytes, (void *)r);
  return TN_OK;
}

tn_status tn__join_gather(const tn__join *j, tn_kernel_ctx *ctx, tn_view *const *views, void *whole)
{
  join_run r = { j, views, whole, true };
  return run(&r, ctx);
}

tn_status tn__join_scatter(const tn__join *j, tn_kernel_ctx *ctx, const void *whole, tn_view *const *views)
{
  join_run r = { j, views, (char *)whole, false };
  return run(&r, ctx);
}
