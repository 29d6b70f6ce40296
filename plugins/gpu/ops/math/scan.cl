/* SPDX-License-Identifier: Apache-2.0 */
/* Running sums of lines: x [outer, size, inner], lines along `size`. T, C, LOAD, STORE, ROUND: elements; W: the type of
 * sums, unsigned for integers, so that they wrap; STEP 0: sums, 1: products, 2: logarithms of sums; I: the type of
 * places. */
#if STEP == 0
#define FIRST 0
#define NEXT(a, b) ((C)((W)(a) + (W)(b)))
#elif STEP == 1
#define FIRST 1
#define NEXT(a, b) ((C)((W)(a) * (W)(b)))
#else
#define FIRST (-INFINITY)
#define NEXT(a, b) log_sum(a, b)
/* As on the CPU: two infinities give NaN, and a NaN as second operand counts as the first one again. */
static C log_sum(const C a, const C b)
{
  const C most = a < b ? b : a, least = b < a ? b : a;
  return most == (C)-INFINITY ? most : most + log1p(exp(least - most));
}
#endif

__kernel void scan(IN(x), OUT(y), const I lines, const I size, const I inner, const int exclusive, const int reverse)
{
  GET_IN(T, x);
  GET_OUT(T, y);
  const I line = (I)get_global_id(0);
  if (line >= lines) return;
  const I outer = line / inner, step = reverse ? -inner : inner;
  I at = outer * size * inner + (line - outer * inner) + (reverse ? (size - 1) * inner : 0);
  C run = (C)FIRST;
  for (I i = 0; i < size; i++, at += step) {
    const C next = ROUND(NEXT(run, LOAD(x, at)));
    STORE(y, at, exclusive ? run : next);
    run = next;
  }
}

/* A group computes a line: each work item has a part of it, and starts with the total of the parts before it. */
__kernel void scan_long(IN(x), OUT(y), const I lines, const I size, const I inner, const int exclusive,
                        const int reverse)
{
  GET_IN(T, x);
  GET_OUT(T, y);
  __local C part[GROUP];
  const int lane = get_local_id(0);
  const I line = (I)get_group_id(0), outer = line / inner, step = reverse ? -inner : inner;
  const I start = outer * size * inner + (line - outer * inner) + (reverse ? (size - 1) * inner : 0);
  const I each = (size + GROUP - 1) / GROUP, from = lane * each < size ? lane * each : size;
  const I to = size - from < each ? size : from + each;
  C sum = (C)FIRST;
  for (I i = from; i < to; i++) sum = NEXT(sum, LOAD(x, start + i * step));
  part[lane] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  C run = (C)FIRST;
  for (int k = 0; k < lane; k++) run = NEXT(run, part[k]);
  for (I i = from; i < to; i++) {
    const C next = NEXT(run, LOAD(x, start + i * step));
    STORE(y, start + i * step, exclusive ? run : next);
    run = next;
  }
}
