/* SPDX-License-Identifier: Apache-2.0 */
/* The largest of each row with their indices; of equal ones the one with the lower index is first, and NaN is larger
 * than all numbers. T, C, LOAD: elements; FLOATING: they may be NaN; J: of indices; I: places. */
#if FLOATING
#define LARGER(a, b) ((a) > (b) || ((a) != (a) && (b) == (b)))
#else
#define LARGER(a, b) ((a) > (b))
#endif

__kernel void top_k(IN(x), OUT(values), OUT(indices), const I n, const int columns, const int most)
{
  GET_IN(T, x);
  GET_OUT(T, values);
  GET_OUT(J, indices);
  const I i = (I)get_global_id(0);
  if (i >= n) return;
  const I row = i / columns, first = row * columns;
  const int at = (int)(i - first);
  const C mine = LOAD(x, i);
  int before = 0;
  for (int j = 0; j < columns && before < most; j++) {
    const C other = LOAD(x, first + j);
    before += LARGER(other, mine) || (j < at && !LARGER(mine, other));
  }
  if (before >= most) return;
  values[row * most + before] = x[i];
  indices[row * most + before] = (J)at;
}
