/* SPDX-License-Identifier: Apache-2.0 */
/* Reduction by sorted segments. The unit of work is a block of columns of one row of the output, so that a few long
 * segments run on several threads as well as many short ones. */
#include <ops/kernel/elements/elements.h>
#include <ops/kernel/indices.h>
#include <ops/kernel/poll.h>
#include <ops/segment/segment_loops.h>
#include <string.h>

#define BLOCK 256  /* columns */
#define ROWS 256   /* rows that are added in one call, at most TN__INDEX_BLOCK */

int64_t tn__segment_inner(const tn_view *data)
{
  uint64_t n = 1;
  for (int32_t d = 1; d < data->rank; d++) n *= (uint64_t)data->dims[d];
  return (int64_t)n;
}

tn_status tn__segments_check(const tn_kernel_ctx *ctx, const tn_view *ids, int64_t *rows)
{
  int64_t block[TN__INDEX_BLOCK], last = 0;
  tn__poll poll = tn__poll_of(ctx);
  *rows = 0;
  for (int64_t at = 0, n; at < ids->count; at += n) {
    n = ids->count - at < TN__INDEX_BLOCK ? ids->count - at : TN__INDEX_BLOCK;
    if (tn__poll_over(&poll, n)) return TN_CANCELLED;
    tn__indices_load(ids, at, n, block);
    for (int64_t i = 0; i < n; i++) {
      if (block[i] < last)
        return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "segment id %lld is %lld, wanted %lld or more",
                            (long long)(at + i), (long long)block[i], (long long)last);
      last = block[i];
    }
  }
  if (ids->count == 0) return TN_OK;
  if (!__builtin_add_overflow(last, 1, rows)) return TN_OK;
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "segment id %lld is too large", (long long)last);
}

typedef struct segments_run {
  const tn__segment_loops *loops;
  const tn_view *data, *indices, *ids;
  tn_view *out;
  int64_t inner, blocks; /* blocks of columns per row */
  size_t size;
  bool ones; /* of a row without any */
} segments_run;

/* The first position in [low, high) whose id is `id` or more, else high. */
static int64_t find(const tn_view *ids, int64_t low, int64_t high, int64_t id)
{
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (tn__view_int_at(ids, middle) < id) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* The end of the ids from `at` that equal id; most segments are short. */
static int64_t end_of(const tn_view *ids, int64_t at, int64_t id)
{
  int64_t high = at;
  for (int64_t step = 1; high < ids->count && tn__view_int_at(ids, high) == id; step *= 2) {
    at = high + 1;
    high = step < ids->count - high ? high + step : ids->count;
  }
  return find(ids, at, high, id + 1);
}

/* Columns of a row without any. */
static void fill_gap(const segments_run *r, char *out, int64_t n)
{
  _Alignas(16) char acc[TN__SEGMENT_ACC_MAX], one[TN__SEGMENT_ACC_MAX];
  if (!r->ones) {
    memset(out, 0, (size_t)n * r->size);
    return;
  }
  r->loops->start(acc, 1);
  r->loops->finish(one, acc, 1, 1);
  tn__fill_bytes(r->size, out, one, n);
}

static const char *row_at(const segments_run *r, int64_t at, int64_t column)
{
  int64_t row = at;
  if (r->indices != NULL) tn__indices_load(r->indices, at, 1, &row);
  return (const char *)r->data->data + (size_t)(row * r->inner + column) * r->size;
}

/* Columns [column, column + n) of the rows of the ids [from, to), two or more. */
static void reduce(const segments_run *r, int64_t from, int64_t to, int64_t column, int64_t n, char *out,
                   tn__poll *poll)
{
  _Alignas(64) char acc[BLOCK * TN__SEGMENT_ACC_MAX];
  int64_t places[ROWS];
  const char *data = (const char *)r->data->data + (size_t)column * r->size;
  r->loops->start(acc, n);
  for (int64_t at = from, rows; at < to; at += rows) {
    rows = to - at < ROWS ? to - at : ROWS;
    if (tn__poll_over(poll, rows * (2 + n / 4))) return;
    if (r->indices != NULL) {
      tn__indices_load(r->indices, at, rows, places);
      r->loops->add(acc, data, places, rows, r->inner, n);
    } else {
      r->loops->add(acc, data + (size_t)(at * r->inner) * r->size, NULL, rows, r->inner, n);
    }
  }
  r->loops->finish(out, acc, n, to - from);
}

static void segments_part(void *user, int64_t begin, int64_t end)
{
  const segments_run *r = user;
  int64_t row = begin / r->blocks, from = find(r->ids, 0, r->ids->count, row), to = end_of(r->ids, from, row);
  tn__poll poll = tn__poll_here();
  for (int64_t u = begin; u < end && !tn__poll_over(&poll, 20); u++) {
    if (u / r->blocks != row) {
      row = u / r->blocks;
      from = to;
      to = end_of(r->ids, from, row);
    }
    int64_t column = u % r->blocks * BLOCK, n = r->inner - column < BLOCK ? r->inner - column : BLOCK;
    char *out = (char *)r->out->data + (size_t)(row * r->inner + column) * r->size;
    if (to == from) fill_gap(r, out, n);
    else if (to - from == 1) memcpy(out, row_at(r, from, column), (size_t)n * r->size);
    else reduce(r, from, to, column, n, out, &poll);
  }
}

void tn__segments_run(tn_kernel_ctx *ctx, tn__segment_op op, const tn__segment_loops *loops, const tn_view *data,
                      const tn_view *indices, const tn_view *ids)
{
  tn_view *out = ctx->outputs[0];
  if (out->count == 0) return;
  int64_t inner = tn__segment_inner(data);
  segments_run r = { loops, data, indices, ids, out, inner, (inner - 1) / BLOCK + 1, tn_dtype_size(data->dtype),
                     op == TN__SEGMENT_PROD };
  int64_t units = out->dims[0] * r.blocks;
  double terms = (double)ids->count / (double)out->dims[0] + 1, columns = (double)(inner < BLOCK ? inner : BLOCK);
  double cost = 10 + terms * (2 + 0.4 * columns);
  if (cost * (double)units < 20000) segments_part(&r, 0, units);
  else tn_parallel_for(ctx, units, (int64_t)(10000 / cost) + 1, cost, segments_part, &r);
}
