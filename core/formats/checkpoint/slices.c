/* SPDX-License-Identifier: Apache-2.0 */
/* Regions: intersections, coverage, copies between their arrays, and TensorFlow's text for them. */
#include <core/formats/checkpoint/slices.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- regions ---- */

static tn_status new_region(int32_t rank, tn__arena *arena, tn__region *out, tn_error *err)
{
  size_t bytes = 2 * (size_t)rank * sizeof(int64_t);
  int64_t *numbers = tn__arena_alloc(arena, bytes);
  if (numbers == NULL) return tn__no_memory(err, "a region of a tensor", bytes);
  *out = (tn__region){ rank, numbers, numbers + rank };
  return TN_OK;
}

tn_status tn__region_all(int32_t rank, const int64_t *dims, tn__arena *arena, tn__region *out, tn_error *err)
{
  tn_status s = new_region(rank, arena, out, err);
  for (int32_t d = 0; d < rank && s == TN_OK; d++) {
    out->starts[d] = 0;
    out->lengths[d] = dims[d];
  }
  return s;
}

tn_status tn__region_copy_of(const tn__region *region, tn__arena *arena, tn__region *out, tn_error *err)
{
  tn_status s = new_region(region->rank, arena, out, err);
  for (int32_t d = 0; d < region->rank && s == TN_OK; d++) {
    out->starts[d] = region->starts[d];
    out->lengths[d] = region->lengths[d];
  }
  return s;
}

tn_status tn__region_resolve(tn__region *region, int32_t rank, const int64_t *dims, tn_error *err)
{
  char shape[160];
  if (region->rank != rank)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "a slice of rank %" PRId32 " is not one of a tensor %s", region->rank,
                        tn__format_shape(shape, sizeof(shape), dims, rank));
  for (int32_t d = 0; d < rank; d++) {
    int64_t start = region->starts[d], length = region->lengths[d] == -1 ? dims[d] : region->lengths[d];
    if (start < 0 || length < 0 || length > dims[d] || start > dims[d] - length)
      return tn_error_set(err, TN_INVALID_ARGUMENT,
                          "the slice has %" PRId64 " elements from %" PRId64 " on in dimension %" PRId32
                          ", which a tensor %s does not have",
                          length, start, d, tn__format_shape(shape, sizeof(shape), dims, rank));
    region->lengths[d] = length;
  }
  return TN_OK;
}

bool tn__region_equals(const tn__region *a, const tn__region *b)
{
  if (a->rank != b->rank) return false;
  for (int32_t d = 0; d < a->rank; d++)
    if (a->starts[d] != b->starts[d] || a->lengths[d] != b->lengths[d]) return false;
  return true;
}

bool tn__region_is_all(const tn__region *region, const int64_t *dims)
{
  for (int32_t d = 0; d < region->rank; d++)
    if (region->starts[d] != 0 || region->lengths[d] != dims[d]) return false;
  return true;
}

static int64_t end_of(const tn__region *r, int32_t d) { return r->starts[d] + r->lengths[d]; }

bool tn__region_common(const tn__region *a, const tn__region *b, tn__region *out)
{
  out->rank = a->rank;
  for (int32_t d = 0; d < a->rank; d++) {
    int64_t start = a->starts[d] > b->starts[d] ? a->starts[d] : b->starts[d];
    int64_t end = end_of(a, d) < end_of(b, d) ? end_of(a, d) : end_of(b, d);
    if (end <= start) return false;
    out->starts[d] = start;
    out->lengths[d] = end - start;
  }
  return true;
}

int64_t tn__region_elements(const tn__region *region)
{
  int64_t n = 1;
  for (int32_t d = 0; d < region->rank; d++) n *= region->lengths[d];
  return n;
}

/* ---- coverage ---- */

/* A region in the list that is swept along one dimension, with its extent there. */
typedef struct swept {
  int64_t start, end;
  const tn__region *region;
} swept;

static int by_start(const void *a, const void *b)
{
  const swept *x = a, *y = b;
  return (x->start > y->start) - (x->start < y->start);
}

/* The number of elements that both regions have inside of `whole`. */
static int64_t common_elements(const tn__region *a, const tn__region *b, const tn__region *whole)
{
  int64_t n = 1;
  for (int32_t d = 0; d < whole->rank; d++) {
    int64_t start = a->starts[d] > b->starts[d] ? a->starts[d] : b->starts[d];
    int64_t end = end_of(a, d) < end_of(b, d) ? end_of(a, d) : end_of(b, d);
    if (whole->starts[d] > start) start = whole->starts[d];
    if (end_of(whole, d) < end) end = end_of(whole, d);
    if (end <= start) return 0;
    n *= end - start;
  }
  return n;
}

/* The dimension along which the regions are shortest compared with the whole, so that the fewest of them share a
 * position. */
static int32_t most_cut(const tn__region *regions, size_t n, const tn__region *whole)
{
  int32_t best = 0;
  double least = 2;
  for (int32_t d = 0; d < whole->rank; d++) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)regions[i].lengths[d] / (double)whole->lengths[d];
    if (sum / (double)n < least) {
      least = sum / (double)n;
      best = d;
    }
  }
  return best;
}

/* Whether no two regions of the list, sorted by their starts, overlap. Compares only those that share a position: the
 * cost is linear if the tensor was cut along one dimension. */
static bool none_overlap(const swept *list, size_t n, const tn__region *whole)
{
  for (size_t i = 0; i < n; i++)
    for (size_t k = i + 1; k < n && list[k].start < list[i].end; k++)
      if (common_elements(list[i].region, list[k].region, whole) > 0) return false;
  return true;
}

/* The regions cover the whole if they have as many elements of it as the whole, and none overlap. */
tn_status tn__regions_cover(const tn__region *regions, size_t n, const tn__region *whole, bool *out, tn_error *err)
{
  int64_t wanted = tn__region_elements(whole), found = 0;
  size_t bytes, used = 0;
  *out = wanted == 0;
  if (*out || n == 0) return TN_OK;
  swept *list = tn__size_mul(n, sizeof(*list), &bytes) ? tn__alloc(bytes) : NULL;
  if (list == NULL) return tn__no_memory(err, "a list of slices", n * sizeof(*list));
  int32_t d = most_cut(regions, n, whole);
  for (size_t i = 0; i < n && found <= wanted; i++) {
    int64_t part = common_elements(&regions[i], &regions[i], whole);
    if (part == 0) continue;
    if (__builtin_add_overflow(found, part, &found)) found = INT64_MAX;
    list[used++] = whole->rank == 0 ? (swept){ 0, 1, &regions[i] }
                                    : (swept){ regions[i].starts[d], end_of(&regions[i], d), &regions[i] };
  }
  if (found == wanted) {
    qsort(list, used, sizeof(*list), by_start);
    *out = none_overlap(list, used, whole);
  }
  tn__free(list, bytes);
  return TN_OK;
}

/* ---- copies ---- */

/* The common extent of two regions in dimension d. */
static int64_t common_length(const tn__region *a, const tn__region *b, int32_t d, int64_t *start)
{
  int64_t end = end_of(a, d) < end_of(b, d) ? end_of(a, d) : end_of(b, d);
  *start = a->starts[d] > b->starts[d] ? a->starts[d] : b->starts[d];
  return end > *start ? end - *start : 0;
}

/* From the last dimension on, dimensions that are entire in both regions belong to a run, and the first one that is
 * not. */
void tn__runs_init(tn__runs *runs, const tn__region *from, const tn__region *to)
{
  int64_t from_step = 1, to_step = 1;
  bool entire = true;
  runs->run = 1;
  runs->from = runs->to = 0;
  runs->rank = 0;
  for (int32_t d = from->rank - 1; d >= 0; d--) {
    int64_t start, n = common_length(from, to, d, &start);
    if (n == 0) {
      runs->run = 0;
      return;
    }
    runs->from += (start - from->starts[d]) * from_step;
    runs->to += (start - to->starts[d]) * to_step;
    if (entire)
      runs->run *= n;
    else if (n > 1)
      runs->dims[runs->rank++] = (struct tn__runs_dim){ n, 0, from_step, to_step };
    entire = entire && n == from->lengths[d] && n == to->lengths[d];
    from_step *= from->lengths[d];
    to_step *= to->lengths[d];
  }
}

bool tn__runs_next(tn__runs *runs)
{
  for (int32_t i = 0; i < runs->rank; i++) {
    struct tn__runs_dim *d = &runs->dims[i];
    runs->from += d->from_step;
    runs->to += d->to_step;
    if (++d->at < d->n) return true;
    runs->from -= d->n * d->from_step;
    runs->to -= d->n * d->to_step;
    d->at = 0;
  }
  return false;
}

void tn__region_copy(const tn__region *from_region, const void *from, const tn__region *to_region, void *to,
                     size_t size, void (*move)(void *to, void *from, size_t n))
{
  tn__runs runs;
  tn__runs_init(&runs, from_region, to_region);
  if (runs.run == 0) return;
  do {
    char *in = (char *)from + (size_t)runs.from * size, *out = (char *)to + (size_t)runs.to * size;
    if (move != NULL)
      move(out, in, (size_t)runs.run);
    else
      memcpy(out, in, (size_t)runs.run * size);
  } while (tn__runs_next(&runs));
}

/* ---- TensorFlow's text ---- */

char *tn__region_format(char *buffer, size_t size, const tn__region *region)
{
  size_t used = 0;
  if (size > 0) buffer[0] = 0;
  for (int32_t d = 0; d < region->rank && used < size; d++) {
    const char *colon = d > 0 ? ":" : "";
    int n = region->lengths[d] == -1 ? tn__snprintf(buffer + used, size - used, "%s-", colon)
                                     : tn__snprintf(buffer + used, size - used, "%s%" PRId64 ",%" PRId64, colon,
                                                    region->starts[d], region->lengths[d]);
    used += n < 0 ? 0 : (size_t)n;
  }
  return buffer;
}

static tn_status bad_spec(tn__slice text, const char *what, tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "'%.*s' is not a shape and a slice of it, such as '4 10 0,2:-': %s",
                      (int)(text.size < 200 ? text.size : 200), text.data, what);
}

/* Takes the text up to the next `end`, or all; *rest follows it. */
static tn__slice take_until(tn__slice *rest, char end)
{
  const char *at = rest->size == 0 ? NULL : memchr(rest->data, end, rest->size);
  tn__slice part = { rest->data, at == NULL ? rest->size : (size_t)(at - rest->data) };
  size_t skip = part.size + (at != NULL);
  *rest = (tn__slice){ rest->size == 0 ? rest->data : rest->data + skip, rest->size - skip };
  return part;
}

static size_t count_of(tn__slice text, char c)
{
  size_t n = 0;
  for (size_t i = 0; i < text.size; i++) n += text.data[i] == c;
  return n;
}

/* Parses "0,2", or "-" for the whole dimension. */
static bool parse_extent(tn__slice text, int64_t *start, int64_t *length)
{
  *start = 0;
  *length = -1;
  if (tn__slice_is(text, "-")) return true;
  tn__slice first = take_until(&text, ',');
  return tn__parse_int(first, start) && tn__parse_int(text, length) && *start >= 0 && *length > 0;
}

tn_status tn__slice_spec_parse(tn__slice text, tn__arena *arena, int32_t *rank, const int64_t **dims, tn__region *out,
                               tn_error *err)
{
  *rank = -1;
  *dims = NULL;
  *out = (tn__region){ 0 };
  if (text.size == 0) return TN_OK;
  tn__slice rest = text;
  size_t n = count_of(text, ' ');
  if (n == 0) return bad_spec(text, "it has no blank", err);
  if (n > TN_MAX_RANK) return bad_spec(text, "it has too many dimensions", err);
  int64_t *shape = tn__arena_alloc(arena, n * sizeof(*shape));
  if (shape == NULL) return tn__no_memory(err, "the shape of a slice", n * sizeof(*shape));
  for (size_t d = 0; d < n; d++)
    if (!tn__parse_int(take_until(&rest, ' '), &shape[d]) || shape[d] < 0)
      return bad_spec(text, "a dimension is not a number", err);
  if (count_of(rest, ':') + 1 != n) return bad_spec(text, "the slice has another rank than the shape", err);
  tn_status s = new_region((int32_t)n, arena, out, err);
  for (size_t d = 0; d < n && s == TN_OK; d++)
    if (!parse_extent(take_until(&rest, ':'), &out->starts[d], &out->lengths[d]))
      return bad_spec(text, "wanted 'start,length' or '-' for each dimension", err);
  if (s == TN_OK) s = tn_shape_elements(shape, (int32_t)n, NULL, err);
  if (s == TN_OK) s = tn__region_resolve(out, (int32_t)n, shape, err);
  if (s != TN_OK) return s;
  *rank = (int32_t)n;
  *dims = shape;
  return TN_OK;
}
