/* SPDX-License-Identifier: Apache-2.0 */
#include <core/base/alloc.h>
#include <ops/support/channels.h>
#include <ops/support/elementwise.h>
#include <ops/support/volume.h>
#include <string.h>

/* Elements of a part at least, and parts at most. */
#define PART 32768
#define PARTS 64
/* Terms that are summed in float before they go into double. */
#define ROWS 32
/* Channels that are done together. */
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
  double *room; /* by part: first[c], second[c] */
} sums;

/* Rows [begin, end) of adjacent channels. */
static void sum_rows(const sums *s, int64_t begin, int64_t end, double *first, double *second)
{
  const int64_t c = s->p->c;
  float shift[BLOCK], one[BLOCK], two[BLOCK];
  for (int64_t j0 = 0; j0 < c; j0 += BLOCK) {
    const int64_t n = c - j0 < BLOCK ? c - j0 : BLOCK;
    for (int64_t j = 0; j < n; j++) shift[j] = s->shift == NULL ? 0 : s->shift[j0 + j];
    for (int64_t row = begin; row < end;) {
      const int64_t stop = row + ROWS < end ? row + ROWS : end;
      for (int64_t j = 0; j < n; j++) one[j] = two[j] = 0;
      for (; row < stop; row++) {
        const float *x = s->x + row * c + j0, *y = s->y == NULL ? NULL : s->y + row * c + j0;
        if (y == NULL) {
          for (int64_t j = 0; j < n; j++) {
            const float d = x[j] - shift[j];
            one[j] += d;
            two[j] += d * d;
          }
        } else {
          for (int64_t j = 0; j < n; j++) {
            one[j] += y[j];
            two[j] += (x[j] - shift[j]) * y[j];
          }
        }
      }
      for (int64_t j = 0; j < n; j++) {
        first[j0 + j] += (double)one[j];
        second[j0 + j] += (double)two[j];
      }
    }
  }
}

/* A plane of one channel: in lanes, so that the loop becomes vector code. */
static void sum_plane(const float *x, const float *y, float shift, int64_t n, double *first, double *second)
{
  enum { LANES = 8 };
  for (int64_t i = 0; i < n;) {
    float one[LANES] = { 0 }, two[LANES] = { 0 };
    const int64_t stop = i + LANES * ROWS < n ? i + LANES * ROWS : n;
    for (; i + LANES <= stop; i += LANES)
      for (int l = 0; l < LANES; l++) {
        const float d = x[i + l] - shift, by = y == NULL ? d : y[i + l];
        one[l] += by;
        two[l] += d * by;
      }
    for (; i < stop; i++) {
      const float d = x[i] - shift, by = y == NULL ? d : y[i];
      one[0] += by;
      two[0] += d * by;
    }
    for (int l = 0; l < LANES; l++) {
      *first += (double)one[l];
      *second += (double)two[l];
    }
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

static void scale_rows(void *user, int64_t begin, int64_t end)
{
  const scaling *s = user;
  const int64_t n = s->p->c;
  const float *shift = s->shift, *scale = s->scale, *add = s->add, *by = s->by;
  for (int64_t row = begin; row < end; row++) {
    const float *x = s->x + row * n, *y = s->y == NULL ? NULL : s->y + row * n;
    float *out = s->out + row * n;
    if (y == NULL) {
      TN__IVDEP
      for (int64_t c = 0; c < n; c++) out[c] = (x[c] - shift[c]) * scale[c] + add[c];
    } else {
      TN__IVDEP
      for (int64_t c = 0; c < n; c++) out[c] = (x[c] - shift[c]) * scale[c] + add[c] + y[c] * by[c];
    }
  }
}

static void scale_planes(void *user, int64_t begin, int64_t end)
{
  const scaling *s = user;
  const int64_t n = s->p->inner;
  for (int64_t plane = begin; plane < end; plane++) {
    const int64_t c = plane % s->p->c;
    const float shift = s->shift[c], scale = s->scale[c], add = s->add[c];
    const float *x = s->x + plane * n, *y = s->y == NULL ? NULL : s->y + plane * n;
    float *out = s->out + plane * n;
    if (y == NULL) {
      TN__IVDEP
      for (int64_t i = 0; i < n; i++) out[i] = (x[i] - shift) * scale + add;
    } else {
      const float by = s->by[c];
      TN__IVDEP
      for (int64_t i = 0; i < n; i++) out[i] = (x[i] - shift) * scale + add + y[i] * by;
    }
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
