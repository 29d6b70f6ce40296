/* SPDX-License-Identifier: Apache-2.0 */
#include <core/base/alloc.h>
#include <math.h>
#include <ops/kernel/elements/half.h>
#include <ops/kernel/poll.h>
#include <ops/image/suppression.h>
#include <ops/kernel/elements/vectors.h>

/* ---- the heap ---- */

static inline bool before(const tn__candidate *a, const tn__candidate *b)
{
  return a->score > b->score || (a->score == b->score && a->index < b->index);
}

void tn__candidates_sink(tn__candidate *heap, int64_t n, int64_t at)
{
  tn__candidate it = heap[at];
  for (int64_t child; (child = 2 * at + 1) < n; at = child) {
    if (child + 1 < n && before(&heap[child + 1], &heap[child])) child++;
    if (!before(&heap[child], &it)) break;
    heap[at] = heap[child];
  }
  heap[at] = it;
}

/* Restores the heap after an item was appended at `at`. */
static void candidates_rise(tn__candidate *heap, int64_t at)
{
  tn__candidate it = heap[at];
  for (int64_t parent; at > 0 && before(&it, &heap[parent = (at - 1) / 2]); at = parent) heap[at] = heap[parent];
  heap[at] = it;
}

void tn__candidates_heap(tn__candidate *heap, int64_t n)
{
  for (int64_t i = n / 2 - 1; i >= 0; i--) tn__candidates_sink(heap, n, i);
}

/* ---- overlap of boxes ---- */

/* Kept boxes, as a structure of arrays. */
typedef struct kept_boxes {
  float *y0, *x0, *y1, *x1, *area, *scores;
  int32_t *index;
  int64_t n;
} kept_boxes;

typedef struct box {
  float y0, x0, y1, x1, area;
} box;

static inline float smaller(float a, float b) { return b < a ? b : a; }
static inline float larger(float a, float b) { return a < b ? b : a; }
static inline float rounded(bool half, float x) { return half ? tn__half_to_float(tn__half_from_float(x)) : x; }

static box box_at(const tn__suppression *s, int64_t i)
{
  const float *at = s->boxes + i * s->box_stride;
  box b = { smaller(at[0], at[2]), smaller(at[1], at[3]), larger(at[0], at[2]), larger(at[1], at[3]), 0 };
  b.area = (b.y1 - b.y0) * (b.x1 - b.x0);
  return b;
}

/* The overlap of two boxes: intersection over union (IoU). */
static inline __attribute__((always_inline)) float covered(box a, const kept_boxes *k, int64_t j)
{
  float h = smaller(a.y1, k->y1[j]) - larger(a.y0, k->y0[j]), w = smaller(a.x1, k->x1[j]) - larger(a.x0, k->x0[j]);
  float both = larger(h, 0) * larger(w, 0), part = both / (a.area + k->area[j] - both);
  return a.area <= 0 || k->area[j] <= 0 ? 0 : part;
}

enum { COVERED = 1, ODD = 2 };

/* COVERED: a kept box from `begin` to `end` overlaps more than the threshold; ODD: that, or an
 * overlap is NaN. */
#define LOOK(end_name, TARGET)                                                                               \
  TARGET static int look_##end_name(box a, const kept_boxes *k, int64_t begin, int64_t end, float threshold) \
  {                                                                                                          \
    int more = 0, odd = 0;                                                                                   \
    for (int64_t j = begin; j < end; j++) {                                                                  \
      float part = covered(a, k, j);                                                                         \
      more |= part > threshold;                                                                              \
      odd |= !(part <= threshold);                                                                           \
    }                                                                                                        \
    return (more ? COVERED : 0) | (odd ? ODD : 0);                                                           \
  }
LOOK(base, )
#if TN__VECTORS > 1
LOOK(avx2, TN__FOR_AVX2)
LOOK(avx512, TN__FOR_AVX512)
#define KINDS                         \
  {                                   \
    look_base, look_avx2, look_avx512 \
  }
#else
#define KINDS \
  {           \
    look_base \
  }
#endif

/* Latest boxes first: their scores are the closest, and their positions often are. */
static int look(box a, const kept_boxes *k, int64_t begin, float threshold)
{
  static int (*const kinds[])(box, const kept_boxes *, int64_t, int64_t, float) = KINDS;
  int (*fn)(box, const kept_boxes *, int64_t, int64_t, float) = kinds[tn__vectors()], found = 0;
  for (int64_t end = k->n, at; end > begin && !(found & COVERED); end = at) {
    at = end - 64 > begin ? end - 64 : begin;
    found |= fn(a, k, at, end, threshold);
  }
  return found;
}

/* ---- one candidate ---- */

static float weight_of(const tn__suppression *s, float scale, float part)
{
  float weight = rounded(s->half, expf(rounded(s->half, rounded(s->half, scale * part) * part)));
  return s->sigma > 0 || part <= s->threshold ? weight : 0;
}

/* Lowers the score by the overlap with kept boxes that the candidate has not seen yet. Returns true
 * if the candidate is suppressed. */
static bool lower_score(const tn__suppression *s, const kept_boxes *k, float scale, box b, tn__candidate *c)
{
  for (int64_t j = k->n - 1; j >= c->seen; j--) {
    float part = s->overlaps != NULL ? s->overlaps[c->index * s->n + k->index[j]] : rounded(s->half, covered(b, k, j));
    c->score = rounded(s->half, c->score * weight_of(s, scale, part));
    if (s->sigma <= 0 && part > s->threshold) return true;
    if (c->score <= s->least) break;
  }
  return false;
}

static void keep(kept_boxes *k, box b, const tn__candidate *c)
{
  k->y0[k->n] = b.y0;
  k->x0[k->n] = b.x0;
  k->y1[k->n] = b.y1;
  k->x1[k->n] = b.x1;
  k->area[k->n] = b.area;
  k->scores[k->n] = c->score;
  k->index[k->n++] = c->index;
}

/* Removes the first candidate from the heap. It is kept, dropped, or reinserted with a lower score.
 * Returns the number of candidates left. */
static int64_t take(const tn__suppression *s, kept_boxes *k, float scale, tn__candidate *heap, int64_t n)
{
  tn__candidate c = heap[0];
  float score = c.score;
  box b = { 0 };
  heap[0] = heap[--n];
  if (n > 0) tn__candidates_sink(heap, n, 0);
  if (s->overlaps == NULL) b = box_at(s, c.index);
  if (s->overlaps == NULL && s->sigma <= 0 && !s->half) {
    int found = look(b, k, c.seen, s->threshold);
    if (found & COVERED) return n;
    if (found == 0) {
      keep(k, b, &c);
      return n;
    }
  }
  if (lower_score(s, k, scale, b, &c)) return n;
  c.seen = (int32_t)k->n;
  if (c.score == score) {
    keep(k, b, &c);
  } else if (c.score > s->least) {
    heap[n] = c;
    candidates_rise(heap, n++);
  }
  return n;
}

bool tn__suppression_scratch(int64_t n, size_t *bytes)
{
  if (n > INT32_MAX) return false;
  return tn__size_mul((size_t)n, sizeof(tn__candidate) + 6 * sizeof(float) + sizeof(int32_t), bytes);
}

int64_t tn__suppress(const tn__suppression *s, void *scratch, const int32_t **kept, const float **scores)
{
  tn__candidate *heap = scratch;
  float *at = (float *)(heap + s->n), scale = s->sigma > 0 ? rounded(s->half, -0.5f / s->sigma) : 0;
  kept_boxes k = { at, at + s->n, at + 2 * s->n, at + 3 * s->n, at + 4 * s->n, at + 5 * s->n, NULL, 0 };
  int64_t n = 0;
  k.index = (int32_t *)(k.scores + s->n);
  for (int64_t i = 0; i < s->n; i++)
    if (s->scores[i * s->score_stride] > s->least)
      heap[n++] = (tn__candidate){ s->scores[i * s->score_stride], (int32_t)i, 0 };
  tn__candidates_heap(heap, n);
  tn__poll poll = s->ctx != NULL ? tn__poll_of(s->ctx) : tn__poll_here();
  while (n > 0 && k.n < s->most && !tn__poll_over(&poll, 50 + k.n * (s->sigma > 0 || s->half ? 10 : 2)))
    n = take(s, &k, scale, heap, n);
  *kept = k.index;
  *scores = k.scores;
  return k.n;
}
