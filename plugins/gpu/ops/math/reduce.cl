/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions over axes, and the place of the maximum or minimum along one. OP: the operation; T, LOAD, STORE: elements;
 * A: the accumulator's type; I: the type of places; KEPT, GONE: the numbers of dimensions kept and reduced, merged as
 * far as possible; LOWEST, HIGHEST: limits of the type; WHOLE: integers; GROUP: work items of a group. */
#define SUM 0
#define PROD 1
#define MEAN 2
#define NORM 3
#define MAX 4
#define MIN 5
#define ALL 6
#define ANY 7
#define ARGMAX 8
#define ARGMIN 9
#define HALF_SQUARES 10

#if OP == SUM || OP == MEAN || OP == NORM || OP == HALF_SQUARES
#define INIT 0
#define TAKE(a, b) ((a) + (b))
#elif OP == PROD
#define INIT 1
#define TAKE(a, b) ((a) * (b))
#elif OP == MAX || OP == ARGMAX
#define INIT LOWEST
#define BETTER(a, b) ((a) > (b))
#define TAKE(a, b) ((b) > (a) || (b) != (b) ? (b) : (a)) /* a NaN wins */
#elif OP == MIN || OP == ARGMIN
#define INIT HIGHEST
#define BETTER(a, b) ((a) < (b))
#define TAKE(a, b) ((b) < (a) || (b) != (b) ? (b) : (a))
#elif OP == ALL
#define INIT 1
#define TAKE(a, b) ((A)((a) & (b)))
#else
#define INIT 0
#define TAKE(a, b) ((A)((a) | (b)))
#endif

#if OP == NORM || OP == HALF_SQUARES
#define READ(p, i) ((A)LOAD(p, i) * (A)LOAD(p, i))
#if OP == NORM
#define FINISH(a, count) sqrt(a)
#else
#define FINISH(a, count) ((a) / 2)
#endif
#elif OP == MEAN
#define READ(p, i) ((A)LOAD(p, i))
#ifdef WHOLE
#define FINISH(a, count) ((a) / ((count) == 0 ? 1 : (A)(count)))
#else
#define FINISH(a, count) ((a) / (A)(count))
#endif
#elif OP == ALL || OP == ANY
#define READ(p, i) ((A)(LOAD(p, i) != 0))
#define FINISH(a, count) (a)
#else
#define READ(p, i) ((A)LOAD(p, i))
#define FINISH(a, count) (a)
#endif

#if OP != ARGMAX && OP != ARGMIN
/* Sizes and steps of the dimensions that stay and of those that go. */
typedef struct walk {
  long kept[KEPT], kept_step[KEPT], gone[GONE], gone_step[GONE];
} walk;

static I kept_place(const walk *w, I i)
{
  I at = 0;
#pragma unroll
  for (int d = KEPT - 1; d > 0; d--) {
    const I size = (I)w->kept[d], next = i / size;
    at += (i - next * size) * (I)w->kept_step[d];
    i = next;
  }
  return at + i * (I)w->kept_step[0];
}

static I gone_place(const walk *w, I i)
{
  I at = 0;
#pragma unroll
  for (int d = GONE - 1; d > 0; d--) {
    const I size = (I)w->gone[d], next = i / size;
    at += (i - next * size) * (I)w->gone_step[d];
    i = next;
  }
  return at + i * (I)w->gone_step[0];
}

/* PARTIAL: the elements of a result are divided into chunks, whose results are stored in `y`, chunk after chunk. */
#ifdef PARTIAL
#define TO A
#define PUT(y, o, chunk, a, count) ((y)[(chunk) * outs + (o)] = (a))
#else
#define TO T
#define PUT(y, o, chunk, a, count) STORE(y, o, FINISH(a, count))
#endif

/* A group for each result and chunk: its work items read adjacent elements, and combine their results as a tree. */
__kernel void rows(IN(x), OUT(y), const I outs, const I n, const I chunk, const walk w)
{
  GET_IN(T, x);
  GET_OUT(TO, y);
  __local A part[GROUP];
  const int lane = get_local_id(0);
  const I o = (I)get_group_id(0), c = (I)get_group_id(1), at = kept_place(&w, o), end = min(n, (c + 1) * chunk);
  A acc = INIT;
  for (I j = c * chunk + lane; j < end; j += GROUP) acc = TAKE(acc, READ(x, at + gone_place(&w, j)));
  part[lane] = acc;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int half_of = GROUP / 2; half_of > 0; half_of /= 2) {
    if (lane < half_of) part[lane] = TAKE(part[lane], part[lane + half_of]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (lane == 0) PUT(y, o, c, part[0], n);
}

/* A work item for each result and chunk: adjacent items read adjacent elements. */
__kernel void columns(IN(x), OUT(y), const I outs, const I n, const I chunk, const walk w)
{
  GET_IN(T, x);
  GET_OUT(TO, y);
  const I o = (I)get_global_id(0), c = (I)get_global_id(1);
  if (o >= outs) return;
  const I at = kept_place(&w, o), end = min(n, (c + 1) * chunk);
  A acc = INIT;
#if GONE == 1
  const I step = (I)w.gone_step[0];
  for (I j = c * chunk; j < end; j++) acc = TAKE(acc, READ(x, at + j * step));
#else
  for (I j = c * chunk; j < end; j++) acc = TAKE(acc, READ(x, at + gone_place(&w, j)));
#endif
  PUT(y, o, c, acc, n);
}

/* Combines the chunks of each result. */
#ifndef PARTIAL
__kernel void finish(IN(x), OUT(y), const I outs, const I n, const I chunks)
{
  GET_IN(A, x);
  GET_OUT(T, y);
  const I o = (I)get_global_id(0);
  if (o >= outs) return;
  A acc = x[o];
  for (I c = 1; c < chunks; c++) acc = TAKE(acc, x[c * outs + o]);
  STORE(y, o, FINISH(acc, n));
}
#endif

#else

/* The best of `n` that are `inner` apart, the first of equal ones; a NaN is never better. OUT_T: of places. */
__kernel void arg_columns(IN(x), OUT(y), const I outs, const I n, const I inner)
{
  GET_IN(T, x);
  GET_OUT(OUT_T, y);
  const I o = (I)get_global_id(0);
  if (o >= outs) return;
  const I at = o / inner * n * inner + o % inner;
  A best = INIT;
  I where = 0;
  for (I j = 0; j < n; j++) {
    const A v = LOAD(x, at + j * inner);
    if (BETTER(v, best)) {
      best = v;
      where = j;
    }
  }
  y[o] = (OUT_T)where;
}

__kernel void arg_rows(IN(x), OUT(y), const I n)
{
  GET_IN(T, x);
  GET_OUT(OUT_T, y);
  __local A bests[GROUP];
  __local I places[GROUP];
  const int lane = get_local_id(0);
  const I o = (I)get_group_id(0), at = o * n;
  A best = INIT;
  I where = 0;
  for (I j = lane; j < n; j += GROUP) {
    const A v = LOAD(x, at + j);
    if (BETTER(v, best)) {
      best = v;
      where = j;
    }
  }
  bests[lane] = best;
  places[lane] = where;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int half_of = GROUP / 2; half_of > 0; half_of /= 2) {
    if (lane < half_of) {
      const A other = bests[lane + half_of];
      const I place = places[lane + half_of];
      if (BETTER(other, bests[lane]) || (other == bests[lane] && place < places[lane])) {
        bests[lane] = other;
        places[lane] = place;
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (lane == 0) y[o] = (OUT_T)places[0];
}
#endif
