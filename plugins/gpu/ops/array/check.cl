/* SPDX-License-Identifier: Apache-2.0 */
/* Whether all numbers are finite. T, C, LOAD: elements; I: of places. `found`: 1: NaN, 2: infinity, 4: the one below 0.
 */
__kernel void check_begin(OUT(found))
{
  GET_OUT(uint, found);
  found[0] = 0;
}

__kernel void check(IN(x), OUT(y), OUT(found), const I n)
{
  GET_IN(T, x);
  GET_OUT(T, y);
  GET_OUT(uint, found);
  const I i = (I)get_global_id(0);
  if (i >= n) return;
  const C number = LOAD(x, i);
  const T as_it_is = x[i];
  if (!isfinite(number)) {
    const uint infinite = number > 0 ? 2u : 4u;
    atomic_or((volatile __global uint *)found, isnan(number) ? 1u : infinite);
  }
  y[i] = as_it_is;
}

__kernel void check_end(IN(found), FAULT)
{
  GET_IN(uint, found);
  if (found[0] != 0) FAULT_AT(0, found[0]);
}
