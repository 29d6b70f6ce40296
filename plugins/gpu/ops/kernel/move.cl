/* SPDX-License-Identifier: Apache-2.0 */
/* Elements that only change their place. T: a type of their size; I: of places; R: dimensions. */

typedef struct walk {
  long dims[R], from[R], to[R];
  long from_at, to_at;
} walk;

/* FOURS: the elements of a row are contiguous in both tensors, and the last dimension is counted in fours. */
__kernel void move(IN(x), OUT(y), const I n, const walk w)
{
  GET_IN(T, x);
  GET_OUT(T, y);
  I i = (I)get_global_id(0);
  if (i >= n) return;
  I from = (I)w.from_at, to = (I)w.to_at;
#pragma unroll
  for (int d = R - 1; d > 0; d--) {
    const I size = (I)w.dims[d], next = i / size, c = i - next * size;
    from += c * (I)w.from[d];
    to += c * (I)w.to[d];
    i = next;
  }
  from += i * (I)w.from[0];
  to += i * (I)w.to[0];
#ifdef FOURS
  vstore4(vload4(0, x + from), 0, y + to);
#else
  y[to] = x[from];
#endif
}

__kernel void clear(OUT(y), const I n)
{
  GET_OUT(T, y);
  const I i = (I)get_global_id(0);
  if (i < n) y[i] = (T)0;
}

/* Transposes contiguous matrices of rows x columns, a tile at a time through local memory, so that both tensors are
 * accessed along their rows. Groups of TILE x 8. */
#ifdef TILE
__kernel void transpose(IN(x), OUT(y), const I rows, const I columns, const long from_at, const long to_at)
{
  GET_IN(T, x);
  GET_OUT(T, y);
  __local T tile[TILE][TILE + 1];
  const int a = get_local_id(0), b = get_local_id(1);
  const I column = (I)get_group_id(0) * TILE, row = (I)get_group_id(1) * TILE, at = (I)get_group_id(2) * rows * columns;
  for (int k = b; k < TILE; k += 8)
    if (row + k < rows && column + a < columns) tile[k][a] = x[from_at + at + (row + k) * columns + column + a];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int k = b; k < TILE; k += 8)
    if (column + k < columns && row + a < rows) y[to_at + at + (column + k) * rows + row + a] = tile[a][k];
}
#endif

/* Adds a border to a tensor. MODE 0: of one value; 1: mirrored without the edge; 2: with it. `dims` are the output's,
 * `from` the input's strides, `before` the width of the border before the input, `size` the input's size. */
typedef struct border {
  long dims[R], from[R], before[R], size[R];
} border;

#ifdef MODE
__kernel void pad(IN(x),
#if MODE == 0 && !defined(ZERO)
                  IN(value),
#endif
                  OUT(y), const I n, const border w)
{
  GET_IN(T, x);
  GET_OUT(T, y);
  const I at = (I)get_global_id(0);
  if (at >= n) return;
  I i = at, from = 0;
  int inside = 1;
#pragma unroll
  for (int d = R - 1; d >= 0; d--) {
    const I all = (I)w.dims[d], next = d > 0 ? i / all : 0, size = (I)w.size[d];
    I c = i - next * all - (I)w.before[d];
#if MODE == 0
    inside &= c >= 0 && c < size;
#elif MODE == 1
    if (c < 0) c = -c;
    else if (c >= size) c = 2 * size - 2 - c;
#else
    if (c < 0) c = -c - 1;
    else if (c >= size) c = 2 * size - 1 - c;
#endif
    from += c * (I)w.from[d];
    i = next;
  }
#if MODE > 0
  y[at] = x[from];
#elif defined(ZERO)
  T none = 0;
  if (inside) none = x[from];
  y[at] = none;
#else
  GET_IN(T, value);
  T other = value[0];
  if (inside) other = x[from];
  y[at] = other;
#endif
}
#endif
