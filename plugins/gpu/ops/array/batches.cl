/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of places as batches. Place o of a block and cell j are the space's index j * block + o - before. T: a type of
 * the elements' size; I: of places; M: axes with blocks. */
typedef struct blocks {
  long block[M], before[M], space[M], cells[M];
} blocks;

__kernel void to_batches(IN(x), OUT(y), const I n, const I batch, const I rest, const blocks w)
{
  GET_IN(T, x);
  GET_OUT(T, y);
  const I i = (I)get_global_id(0);
  if (i >= n) return;
  I cell[M], left = i / rest, from;
  const I r = i - left * rest;
  for (int d = M - 1; d >= 0; d--) {
    const I next = left / (I)w.cells[d];
    cell[d] = left - next * (I)w.cells[d];
    left = next;
  }
  I place = left / batch, stride = 1;
  from = 0;
  int inside = 1;
  for (int d = M - 1; d >= 0; d--) {
    const I next = place / (I)w.block[d],
            at = cell[d] * (I)w.block[d] + (place - next * (I)w.block[d]) - (I)w.before[d];
    inside &= at >= 0 && at < (I)w.space[d];
    from += at * stride;
    stride *= (I)w.space[d];
    place = next;
  }
  from += (left % batch) * stride;
  T found = (T)0;
  if (inside) found = x[from * rest + r];
  y[i] = found;
}

__kernel void to_space(IN(x), OUT(y), const I n, const I batch, const I rest, const blocks w)
{
  GET_IN(T, x);
  GET_OUT(T, y);
  const I i = (I)get_global_id(0);
  if (i >= n) return;
  I left = i / rest, from = 0, stride = 1, place = 0, places = 1;
  const I r = i - left * rest;
  for (int d = M - 1; d >= 0; d--) {
    const I next = left / (I)w.space[d], at = left - next * (I)w.space[d] + (I)w.before[d], cell = at / (I)w.block[d];
    place += (at - cell * (I)w.block[d]) * places;
    places *= (I)w.block[d];
    from += cell * stride;
    stride *= (I)w.cells[d];
    left = next;
  }
  y[i] = x[((place * batch + left) * stride + from) * rest + r];
}
