/* SPDX-License-Identifier: Apache-2.0 */
#include <core/base/alloc.h>
#include <ops/nn/channels.h>
#include <ops/kernel/elements/vectors.h>
#include <ops/kernel/window/volume.h>
#include <string.h>

/* Minimum number of elements per part, and maximum number of parts. */
#define PART 32768
#define PARTS 64
/* Number of terms summed in float before they are added to a double. */
#define ROWS 32
/* Channels processed together. */
#define BLOCK 64

void tn__channels_plan(tn__channels *p, const int64_t *dims, int32_t rank, int32_t axis, int64_t elements)
{
  *p = (tn__channels){ .outer = 1, .c = dims[axis], .inner = 1, .parts = 1 };
  if (elements == 0) return;
  p->count = elements / p->c;
  for (int32_t i = 0; i < axis; i++) p->outer *= dims[i];
  for (int32_t i = axis + 1; i < rank; i++) p->inner *= dims[i];
  p->parts = elements / PART;
  if (p->parts > PARTS) p->parts = PARTS;
  if (p->parts > p->outer) p->parts = p->outer;
  if (p->parts < 1) p->parts = 1;
  p->part = (p->outer + p->parts - 1) / p->parts;
  p->scratch = (size_t)(p->parts * p->c) * 2 * sizeof(double);
}

/* ---- sums ---- */

typedef struct sums {
  const tn__channels *p;
  const float *x, *shift, *y;
  double *room; /* for each part: first[c], second[c] */
} sums;

/* Adds `rows` rows of n adjacent channels, c elements apart, to one[n] and two[n]. */
#define ROWS_FOR(count, D, BY)                                    \
  for (int64_t row = 0; row < rows; row++, x += c) {              \
    TN__IVDEP                                                     \
    for (int64_t j = 0; j < (count); j++) {                       \
      const float d = D, by = BY;                                 \
      one[j] += by;                                               \
      two[j] += d * by;                                           \
    }                                                             \
    if (y != NULL) y += c;                                        \
  }
#define BOTH_ROWS(count)                             \
  if (y == NULL) {                                   \
    ROWS_FOR(count, x[j] - shift[j], d)              \
  } else {                                           \
    ROWS_FOR(count, x[j] - shift[j], y[j])           \
  }
#define WIDE_ROWS(name, end, attribute)                                                                             \
  attribute static void name##_##end(const float *x, const float *y, const float *shift, int64_t c, int64_t rows,   \
                                     int64_t n, float *restrict one, float *restrict two)                           \
  {                                                                                                                 \
    const int64_t whole = n & -INT64_C(16);                                                                         \
    if (whole < n)                                                                                                  \
      name(x + whole, y == NULL ? NULL : y + whole, shift + whole, c, rows, n - whole, one + whole, two + whole);   \
    BOTH_ROWS(whole)                                                                                                \
  }
TN__APART static void add_rows(const float *x, const float *y, const float *shift, int64_t c, int64_t rows, int64_t n,
                               float *restrict one, float *restrict two)
{
  BOTH_ROWS(n)
}
TN__AVX2_LOOPS(WIDE_ROWS, add_rows)

/* Rows [begin, end) of adjacent channels. */
static void sum_rows(const sums *s, int64_t begin, int64_t end, double *first, double *second)
{
  static void (*const add[])(const float *, const float *, const float *, int64_t, int64_t, int64_t, float *,
                             float *) = TN__AVX2_FNS(add_rows);
  const int64_t c = s->p->c;
  const int kind = tn__vectors();
  float shift[BLOCK], one[BLOCK], two[BLOCK];
  for (int64_t j0 = 0; j0 < c; j0 += BLOCK) {
    const int64_t n = c - j0 < BLOCK ? c - j0 : BLOCK;
    for (int64_t j = 0; j < n; j++) shift[j] = s->shift == NULL ? 0 : s->shift[j0 + j];
    for (int64_t row = begin; row < end; row += ROWS) {
      const int64_t at = row * c + j0;
      for (int64_t j = 0; j < n; j++) one[j] = two[j] = 0;
      add[kind](s->x + at, s->y == NULL ? NULL : s->y + at, shift, c, end - row < ROWS ? end - row : ROWS, n, one, two);
      for (int64_t j = 0; j < n; j++) {
        first[j0 + j] += (double)one[j];
        second[j0 + j] += (double)two[j];
      }
    }
  }
}

/* Sums `steps` times LANES elements of one channel's plane, in lanes so that the loop vectorises. */
#define LANES 32
#define PLANE_FOR(BY)                                                                      \
  for (int64_t step = 0; step < steps; step++, x += LANES, y = y == NULL ? NULL : y + LANES) { \
    for (int l = 0; l < LANES; l++) {                                                      \
      const float d = x[l] - shift, by = BY;                                               \
      one[l] += by;                                                                        \
      two[l] += d * by;                                                                    \
    }                                                                                      \
  }
#define PLANE(name, attribute)                                                                                     \
  attribute TN__APART static void name(const float *x, const float *y, float shift, int64_t steps,                 \
                                       float *restrict one, float *restrict two)                                   \
  {                                                                                                                \
    if (y == NULL) {                                                                                               \
      PLANE_FOR(d)                                                                                                 \
    } else {                                                                                                       \
      PLANE_FOR(y[l])                                                                                              \
    }                                                                                                              \
  }
#define WIDE_PLANE(name, end, attribute) PLANE(name##_##end, attribute)
PLANE(add_plane, )
TN__AVX2_LOOPS(WIDE_PLANE, add_plane)

static void sum_plane(const float *x, const float *y, float shift, int64_t n, double *first, double *second)
{
  static void (*const add[])(const float *, const float *, float, int64_t, float *, float *) = TN__AVX2_FNS(add_plane);
  const int kind = tn__vectors();
  double ones[8] = { 0 }, twos[8] = { 0 };
  int64_t i = 0;
  for (int64_t k; n - i >= LANES; i += k * LANES) {
    float one[LANES] = { 0 }, two[LANES] = { 0 };
    k = (n - i) / LANES < ROWS ? (n - i) / LANES : ROWS;
    add[kind](x + i, y == NULL ? NULL : y + i, shift, k, one, two);
    for (int l = 0; l < LANES; l++) {
      ones[l % 8] += (double)one[l];
      twos[l % 8] += (double)two[l];
    }
  }
  for (int l = 0; l < 8; l++) {
    *first += ones[l];
    *second += twos[l];
  }
  for (; i < n; i++) {
    const float d = x[i] - shift, by = y == NULL ? d : y[i];
    *first += (double)by;
    *second += (double)(d * by);
  }
}

static void sum_part(void *user, int64_t begin, int64_t end)
{
  const sums *s = user;
  const tn__channels *p = s->p;
  for (int64_t part = begin; part < end; part++) {
    double *first = s->room + part * 2 * p->c, *second = first + p->c;
    int64_t from = part * p->part, to = from + p->part < p->outer ? from + p->part : p->outer;
    memset(first, 0, (size_t)p->c * 2 * sizeof *first);
    if (p->inner == 1) {
      sum_rows(s, from, to, first, second);
      continue;
    }
    for (int64_t o = from; o < to; o++)
      for (int64_t c = 0; c < p->c; c++) {
        int64_t at = (o * p->c + c) * p->inner;
        sum_plane(s->x + at, s->y == NULL ? NULL : s->y + at, s->shift == NULL ? 0 : s->shift[c], p->inner, &first[c],
                  &second[c]);
      }
  }
}

void tn__channels_sums(const tn__channels *p, tn_kernel_ctx *ctx, const float *x, const float *shift, const float *y,
                       double *first, double *second, void *scratch)
{
  sums s = { p, x, shift, y, scratch };
  for (int64_t c = 0; c < p->c; c++) first[c] = second[c] = 0;
  if (p->count == 0) return;
  tn__run_parts(ctx, p->parts, 0.3 * (double)(p->count * p->c) / (double)p->parts, sum_part, &s);
  for (int64_t part = 0; part < p->parts; part++)
    for (int64_t c = 0; c < p->c; c++) {
      first[c] += s.room[part * 2 * p->c + c];
      second[c] += s.room[(part * 2 + 1) * p->c + c];
    }
}

/* ---- scale and shift ---- */

typedef struct scaling {
  const tn__channels *p;
  const float *x, *shift, *scale, *add, *y, *by;
  float *out;
} scaling;

/* Scales n channels of rows that are c elements apart. */
#define SCALE_ROWS_FOR(count)                                                                                  \
  for (int64_t row = 0; row < rows; row++, x += c, out += c) {                                                 \
    if (y == NULL) {                                                                                           \
      TN__IVDEP                                                                                                \
      for (int64_t j = 0; j < (count); j++) out[j] = (x[j] - shift[j]) * scale[j] + add[j];                    \
    } else {                                                                                                   \
      TN__IVDEP                                                                                                \
      for (int64_t j = 0; j < (count); j++) out[j] = (x[j] - shift[j]) * scale[j] + add[j] + y[j] * by[j];     \
      y += c;                                                                                                  \
    }                                                                                                          \
  }
#define SCALE_ROWS_PARAMETERS                                                                                   \
  const float *x, const float *y, float *out, int64_t rows, int64_t n, int64_t c, const float *shift,           \
      const float *scale, const float *add, const float *by
#define WIDE_SCALE_ROWS(name, end, attribute)                                                                   \
  attribute static void name##_##end(SCALE_ROWS_PARAMETERS)                                                     \
  {                                                                                                             \
    const int64_t whole = n & -INT64_C(16);                                                                     \
    if (whole < n)                                                                                              \
      name(x + whole, y == NULL ? NULL : y + whole, out + whole, rows, n - whole, c, shift + whole,             \
           scale + whole, add + whole, y == NULL ? NULL : by + whole);                                          \
    SCALE_ROWS_FOR(whole)                                                                                       \
  }
TN__APART static void scale_some_rows(SCALE_ROWS_PARAMETERS) { SCALE_ROWS_FOR(n) }
TN__AVX2_LOOPS(WIDE_SCALE_ROWS, scale_some_rows)

static void scale_rows(void *user, int64_t begin, int64_t end)
{
  static void (*const fn[])(SCALE_ROWS_PARAMETERS) = TN__AVX2_FNS(scale_some_rows);
  const scaling *s = user;
  const int64_t n = s->p->c, at = begin * n;
  fn[tn__vectors()](s->x + at, s->y == NULL ? NULL : s->y + at, s->out + at, end - begin, n, n, s->shift, s->scale,
                    s->add, s->by);
}

#define SCALE_PLANE_FOR(count)                                                                                 \
  if (y == NULL) {                                                                                             \
    TN__IVDEP                                                                                                  \
    for (int64_t i = 0; i < (count); i++) out[i] = (x[i] - shift) * scale + add;                               \
  } else {                                                                                                     \
    TN__IVDEP                                                                                                  \
    for (int64_t i = 0; i < (count); i++) out[i] = (x[i] - shift) * scale + add + y[i] * by;                   \
  }
#define SCALE_PLANE_PARAMETERS \
  const float *x, const float *y, float *out, int64_t n, float shift, float scale, float add, float by
#define WIDE_SCALE_PLANE(name, end, attribute)                                                                   \
  attribute static void name##_##end(SCALE_PLANE_PARAMETERS)                                                     \
  {                                                                                                              \
    const int64_t whole = n & -INT64_C(16);                                                                      \
    SCALE_PLANE_FOR(whole)                                                                                       \
    if (whole < n)                                                                                               \
      name(x + whole, y == NULL ? NULL : y + whole, out + whole, n - whole, shift, scale, add, by);              \
  }
TN__APART static void scale_plane(SCALE_PLANE_PARAMETERS) { SCALE_PLANE_FOR(n) }
TN__AVX2_LOOPS(WIDE_SCALE_PLANE, scale_plane)

static void scale_planes(void *user, int64_t begin, int64_t end)
{
  static void (*const fn[])(SCALE_PLANE_PARAMETERS) = TN__AVX2_FNS(scale_plane);
  const scaling *s = user;
  const int64_t n = s->p->inner;
  for (int64_t plane = begin; plane < end; plane++) {
    const int64_t c = plane % s->p->c;
    fn[tn__vectors()](s->x + plane * n, s->y == NULL ? NULL : s->y + plane * n, s->out + plane * n, n, s->shift[c],
                      s->scale[c], s->add[c], s->y == NULL ? 0 : s->by[c]);
  }
}

void tn__channels_scale(const tn__channels *p, tn_kernel_ctx *ctx, const float *x, const float *shift,
                        const float *scale, const float *add, const float *y, const float *by, float *out)
{
  scaling s = { p, x, shift, scale, add, y, by, out };
  if (p->count == 0) return;
  if (p->inner == 1)
    tn__run_parts(ctx, p->outer, 0.3 * (double)p->c, scale_rows, &s);
  else
    tn__run_parts(ctx, p->outer * p->c, 0.3 * (double)p->inner, scale_planes, &s);
}
