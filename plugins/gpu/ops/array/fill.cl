/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers at equal distances. T, C, LOAD, STORE: elements; W: the type of the computation, unsigned for integers, so
 * that it wraps. */
__kernel void range(IN(start), IN(delta), OUT(y), const I n)
{
  GET_IN(T, start);
  GET_IN(T, delta);
  GET_OUT(T, y);
  const I i = (I)get_global_id(0);
  if (i < n) STORE(y, i, (C)((W)LOAD(start, 0) + (W)i * (W)LOAD(delta, 0)));
}
