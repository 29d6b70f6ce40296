/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts of row numbers. If the values of each column are in a range that is smaller than the number of rows, rows are
 * sorted by one column after the other, the last one first, and the values of a column are counted. Else it is a merge
 * sort, and runs of SHORT rows are sorted by insertion first. */
#include <core/base/alloc.h>
#include <ops/kernel/sorted_rows.h>
#include <string.h>

#define SHORT 16
#define COUNTED 64 /* fewer rows are merged */
#define PASSES 4   /* rows with more columns are merged */

int tn__int_rows_compare(const tn__int_rows *r, int64_t a, int64_t b)
{
  const int64_t *x = r->at + a * r->width, *y = r->at + b * r->width;
  for (int32_t k = 0; k < r->keys; k++) {
    int32_t column = r->order == NULL ? k : r->order[k];
    if (x[column] != y[column]) return x[column] < y[column] ? -1 : 1;
  }
  return 0;
}

bool tn__int_rows_are_sorted(const tn__int_rows *r)
{
  for (int64_t i = 1; i < r->n; i++)
    if (tn__int_rows_compare(r, i - 1, i) > 0) return false;
  return true;
}

bool tn__int_rows_room(int64_t n, size_t *bytes) { return tn__size_mul((size_t)n, 3 * sizeof(int64_t), bytes); }

/* ---- counting ---- */

/* The values of one column of the keys: the smallest one, and by how much the largest exceeds it. */
typedef struct column {
  const int64_t *at;
  int64_t least;
  uint64_t range;
} column;

static column column_of(const tn__int_rows *r, int32_t key)
{
  const int64_t *at = r->at + (r->order == NULL ? key : r->order[key]);
  int64_t least = at[0], most = at[0];
  for (int64_t i = 1; i < r->n; i++) {
    int64_t value = at[i * r->width];
    if (value < least) least = value;
    if (value > most) most = value;
  }
  return (column){ at, least, (uint64_t)most - (uint64_t)least };
}

static bool can_count(const tn__int_rows *r, column *columns)
{
  if (r->n < COUNTED || r->keys > PASSES) return false;
  for (int32_t k = 0; k < r->keys; k++) {
    columns[k] = column_of(r, k);
    if (columns[k].range >= (uint64_t)r->n) return false;
  }
  return true;
}

/* Sorts by one column. Rows of equal value keep their order. False once `poll` is over. */
static bool sort_column(const tn__int_rows *r, const column *c, const int64_t *from, int64_t *to, int64_t *counts,
                        tn__poll *poll)
{
  int64_t sum = 0;
  memset(counts, 0, (c->range + 1) * sizeof *counts);
  for (int64_t i = 0; i < r->n; i++) counts[c->at[i * r->width] - c->least]++;
  for (uint64_t v = 0; v <= c->range; v++) {
    int64_t n = counts[v];
    counts[v] = sum;
    sum += n;
  }
  for (int64_t i = 0; i < r->n; i++) {
    if (tn__poll_over(poll, 10)) return false;
    to[counts[c->at[from[i] * r->width] - c->least]++] = from[i];
  }
  return true;
}

/* `from` has all rows; they alternate between `from` and `to`. */
static const int64_t *count_all(const tn__int_rows *r, const column *columns, int64_t *from, int64_t *to,
                                tn__poll *poll)
{
  int64_t *counts = to + r->n;
  for (int32_t k = r->keys - 1; k >= 0; k--) {
    if (columns[k].range == 0) continue;
    if (!sort_column(r, &columns[k], from, to, counts, poll)) return NULL;
    int64_t *spare = from;
    from = to;
    to = spare;
  }
  return from;
}

/* ---- merging ---- */

static void sort_run(const tn__int_rows *r, int64_t *run, int64_t n)
{
  for (int64_t i = 1; i < n; i++) {
    int64_t row = run[i], k = i;
    for (; k > 0 && tn__int_rows_compare(r, run[k - 1], row) > 0; k--) run[k] = run[k - 1];
    run[k] = row;
  }
}

static void merge(const tn__int_rows *r, const int64_t *a, int64_t n_a, const int64_t *b, int64_t n_b, int64_t *to)
{
  if (n_b == 0 || tn__int_rows_compare(r, a[n_a - 1], b[0]) <= 0) { /* in order already */
    memcpy(to, a, (size_t)n_a * sizeof *a);
    if (n_b > 0) memcpy(to + n_a, b, (size_t)n_b * sizeof *b);
    return;
  }
  int64_t i = 0, k = 0;
  while (i < n_a && k < n_b) *to++ = tn__int_rows_compare(r, a[i], b[k]) <= 0 ? a[i++] : b[k++];
  for (; i < n_a; i++) *to++ = a[i];
  for (; k < n_b; k++) *to++ = b[k];
}

const int64_t *tn__int_rows_sort(const tn__int_rows *r, void *room, tn__poll *poll)
{
  int64_t *from = room, *to = from + r->n, n = r->n;
  column columns[PASSES];
  for (int64_t i = 0; i < n; i++) from[i] = i;
  if (can_count(r, columns)) return count_all(r, columns, from, to, poll);
  for (int64_t at = 0; at < n; at += SHORT) {
    if (tn__poll_over(poll, 500)) return NULL;
    sort_run(r, from + at, n - at < SHORT ? n - at : SHORT);
  }
  for (int64_t size = SHORT; size < n; size *= 2) {
    for (int64_t at = 0; at < n; at += 2 * size) {
      int64_t n_a = n - at < size ? n - at : size, n_b = n - at - n_a < size ? n - at - n_a : size;
      if (tn__poll_over(poll, 10 * (n_a + n_b))) return NULL;
      merge(r, from + at, n_a, from + at + n_a, n_b, to + at);
    }
    int64_t *spare = from;
    from = to;
    to = spare;
  }
  return from;
}
