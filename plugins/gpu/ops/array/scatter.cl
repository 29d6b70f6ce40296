/* SPDX-License-Identifier: Apache-2.0 */
/* Updates stored at indices. T, C, LOAD, STORE, ROUND: elements; W: the type of sums, unsigned for integers, so that
 * they wrap; J: the type of indices, of DEPTH numbers each; I: the type of places; IGNORES: updates with an index
 * outside are ignored. */
#if STEP == 0
#define NEXT(a, b) (b)
#elif STEP == 1
#define NEXT(a, b) ((C)((W)(a) + (W)(b)))
#elif STEP == 2
#define NEXT(a, b) ((C)((W)(a) - (W)(b)))
#elif STEP == 3
#define NEXT(a, b) ((a) < (b) ? (b) : (a)) /* NaN: the old value stays */
#elif STEP == 4
#define NEXT(a, b) ((b) < (a) ? (b) : (a))
#else
#define NEXT(a, b) ((C)((a) | (b)))
#endif

/* The place of each update, among the pieces; -1: none. */
__kernel void places(IN(indices), OUT(place), const I n, const I d0, const I d1, const I d2, const I d3, const I d4,
                     const I d5, const I d6, const I d7, FAULT)
{
  GET_IN(J, indices);
  GET_OUT(long, place);
  const I k = (I)get_global_id(0);
  if (k >= n) return;
  const I dims[8] = { d0, d1, d2, d3, d4, d5, d6, d7 };
  long at = 0;
  for (int d = 0; d < DEPTH; d++) {
    const long index = indices[k * DEPTH + d];
    if (index < 0 || index >= dims[d]) {
#ifndef IGNORES
      FAULT_AT(k * DEPTH + d, index);
#endif
      place[k] = -1;
      return;
    }
    at = at * dims[d] + index;
  }
  place[k] = at;
}

/* The next update with the same place, 0: there is none. Of one that is not the first of its place, with all bits
 * turned over. */
__kernel void chain(IN(place), OUT(next), const I n)
{
  GET_IN(long, place);
  GET_OUT(long, next);
  const I k = (I)get_global_id(0);
  if (k >= n) return;
  const long mine = place[k];
  int first = mine >= 0;
  for (I j = 0; j < k && first; j++) first = place[j] != mine;
  I j = k + 1;
  while (j < n && place[j] != mine) j++;
  const long behind = j < n ? j : 0;
  next[k] = first ? behind : ~behind;
}

__kernel void put(IN(updates), IN(place), IN(next), OUT(y), const I n, const I piece)
{
  GET_IN(T, updates);
  GET_IN(long, place);
  GET_IN(long, next);
  GET_OUT(T, y);
  const I i = (I)get_global_id(0);
  if (i >= n) return;
  const I k = i / piece, at = i - k * piece;
  if (next[k] < 0) return;
  const I to = (I)place[k] * piece + at;
  C sum = LOAD(y, to);
  long j = k;
  do {
    sum = ROUND(NEXT(sum, LOAD(updates, (I)j * piece + at)));
    j = next[j] < 0 ? ~next[j] : next[j];
  } while (j != 0);
  STORE(y, to, sum);
}
