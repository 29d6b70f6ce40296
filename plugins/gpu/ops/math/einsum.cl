/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of products along any dimensions. T, C, LOAD, STORE: elements; W: the type of sums, unsigned for integers, so
 * that they wrap; R, K: the numbers of dimensions of the result and of the terms; TWO: there are two operands; I: the
 * type of places. */
typedef struct dimensions {
  long size[R], a[R], b[R];
  long term_size[K], term_a[K], term_b[K];
} dimensions;

#ifdef TWO
#define TERM(i, j) ((W)LOAD(a, i) * (W)LOAD(b, j))
#else
#define TERM(i, j) ((W)LOAD(a, i))
#endif

__kernel void einsum(IN(a), IN(b), OUT(y), const I n, const long terms, const dimensions w)
{
  GET_IN(T, a);
  GET_IN(T, b);
  GET_OUT(T, y);
  const I i = (I)get_global_id(0);
  if (i >= n) return;
  I left = i, from_a = 0, from_b = 0;
  for (int d = R - 1; d >= 0; d--) {
    const I next = left / (I)w.size[d], at = left - next * (I)w.size[d];
    from_a += at * (I)w.a[d];
    from_b += at * (I)w.b[d];
    left = next;
  }
  const long line = w.term_size[K - 1], lines = line == 0 ? 0 : terms / line;
  const I step_a = (I)w.term_a[K - 1], step_b = (I)w.term_b[K - 1];
  W sum = 0;
  for (long o = 0; o < lines; o++) {
    I at_a = from_a, at_b = from_b;
    long rest = o;
    for (int d = K - 2; d >= 0; d--) {
      const long next = rest / w.term_size[d], at = rest - next * w.term_size[d];
      at_a += (I)at * (I)w.term_a[d];
      at_b += (I)at * (I)w.term_b[d];
      rest = next;
    }
    for (long k = 0; k < line; k++, at_a += step_a, at_b += step_b) sum += TERM(at_a, at_b);
  }
  STORE(y, i, (C)sum);
}
