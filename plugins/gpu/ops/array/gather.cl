/* SPDX-License-Identifier: Apache-2.0 */
/* Slices picked by index, and rows with one place marked. T: a type of the elements' size; J: of indices; I: of
 * places; CHECKED: indices may be none. DEPTH and IGNORES are of gather_nd: the numbers of an index, and whether one
 * that is outside counts for nothing. */

#ifdef CHECKED
#define MAY_FAULT , FAULT
#else
#define MAY_FAULT
#endif

/* params [batch, outer, size, piece], indices [batch, picks]: y [batch, outer, picks, piece]. */
__kernel void gather(IN(params), IN(indices), OUT(y), const I n, const I piece, const I picks, const I outer,
                     const I size MAY_FAULT)
{
  GET_IN(T, params);
  GET_IN(J, indices);
  GET_OUT(T, y);
  const I i = (I)get_global_id(0);
  if (i >= n) return;
  const I row = i / piece, at = i - row * piece, block = row / picks, pick = row - block * picks, batch = block / outer;
  const long index = indices[batch * picks + pick];
#ifdef CHECKED
  if (index < 0 || index >= size) {
    FAULT_AT(batch * picks + pick, index);
    y[i] = (T)0;
    return;
  }
#endif
  y[i] = params[(block * size + (I)index) * piece + at];
}

/* params [d0, d1, ..., piece], indices [picks, DEPTH]: y [picks, piece]. */
#ifdef DEPTH
#ifdef IGNORES
#define OR_FAULT
#else
#define OR_FAULT , FAULT
#endif
__kernel void gather_nd(IN(params), IN(indices), OUT(y), const I n, const I piece, const I d0, const I d1, const I d2,
                        const I d3, const I d4, const I d5, const I d6, const I d7 OR_FAULT)
{
  GET_IN(T, params);
  GET_IN(J, indices);
  GET_OUT(T, y);
  const I i = (I)get_global_id(0);
  if (i >= n) return;
  const I dims[8] = { d0, d1, d2, d3, d4, d5, d6, d7 };
  const I pick = i / piece, at = i - pick * piece;
  I place = 0;
  for (int d = 0; d < DEPTH; d++) {
    const long index = indices[pick * DEPTH + d];
    if (index < 0 || index >= dims[d]) {
#ifndef IGNORES
      FAULT_AT(pick * DEPTH + d, index);
#endif
      y[i] = (T)0;
      return;
    }
    place = place * dims[d] + (I)index;
  }
  y[i] = params[place * piece + at];
}
#endif

/* indices [before, after]: y [before, depth, after]. */
__kernel void one_hot(IN(indices), IN(on), IN(off), OUT(y), const I n, const I depth, const I after)
{
  GET_IN(J, indices);
  GET_IN(T, on);
  GET_IN(T, off);
  GET_OUT(T, y);
  const I i = (I)get_global_id(0);
  if (i >= n) return;
  const I row = i / after, at = i - row * after, before = row / depth, k = row - before * depth;
  if ((long)indices[before * after + at] == (long)k) y[i] = on[0];
  else y[i] = off[0];
}
