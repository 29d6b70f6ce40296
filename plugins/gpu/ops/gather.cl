/* SPDX-License-Identifier: Apache-2.0 */
/* Slices picked by index, and rows with one place marked. T: a type of the elements' size; J: of indices; I: of
 * places. */

/* params [batch, outer, size, piece], indices [batch, picks]: y [batch, outer, picks, piece]. */
__kernel void gather(IN(params), IN(indices), OUT(y), const I n, const I piece, const I picks, const I outer,
                     const I size)
{
  GET_IN(T, params);
  GET_IN(J, indices);
  GET_OUT(T, y);
  const I i = (I)get_global_id(0);
  if (i >= n) return;
  const I row = i / piece, at = i - row * piece, block = row / picks, pick = row - block * picks, batch = block / outer;
  const I index = (I)indices[batch * picks + pick];
  y[i] = params[(block * size + index) * piece + at];
}

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
