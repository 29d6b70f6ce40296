/* SPDX-License-Identifier: Apache-2.0 */
/* T: a type of the elements' size; I: of places; R: dimensions; J: of lengths. */
typedef struct turns {
  long dims[R], shift[R]; /* shifts are at least 0 and smaller than the size */
} turns;

__kernel void roll(IN(x), OUT(y), const I n, const turns w)
{
  GET_IN(T, x);
  GET_OUT(T, y);
  const I i = (I)get_global_id(0);
  if (i >= n) return;
  I left = i, from = 0, stride = 1;
  for (int d = R - 1; d >= 0; d--) {
    const I size = (I)w.dims[d], next = left / size;
    I at = left - next * size - (I)w.shift[d];
    if (at < 0) at += size;
    from += at * stride;
    stride *= size;
    left = next;
  }
  y[i] = x[from];
}

/* Matrices of which a band stays, and all else is 0. */
__kernel void band(IN(x), OUT(y), const I n, const I rows, const I columns, const I lower, const I upper)
{
  GET_IN(T, x);
  GET_OUT(T, y);
  const I i = (I)get_global_id(0);
  if (i >= n) return;
  const I line = i / columns, column = i - line * columns, row = line % rows;
  T found = (T)0;
  if (row - column <= lower && column - row <= upper) found = x[i];
  y[i] = found;
}

/* Of each row of the batch the first elements of the sequence are turned over, as many as its length says. */
#ifdef J
__kernel void reverse_sequence(IN(x), IN(lengths), OUT(y), const I n, const I size, const I step, const I batch,
                               const I batch_step, FAULT)
{
  GET_IN(T, x);
  GET_IN(J, lengths);
  GET_OUT(T, y);
  const I i = (I)get_global_id(0);
  if (i >= n) return;
  const I at = i / step % size, row = i / batch_step % batch;
  const long length = lengths[row];
  if (length < 0 || length > size) {
    FAULT_AT(row, length);
    y[i] = (T)0;
    return;
  }
  y[i] = x[at < length ? i + ((I)length - 1 - 2 * at) * step : i];
}
#endif
