/* SPDX-License-Identifier: Apache-2.0 */
/* Rows less their mean (CENTERED), divided by their deviation, times a vector (SCALED), plus one (SHIFTED). T, C, LOAD,
 * STORE: elements; I: places; GROUP: work items of a group, which has a row. */

static C over_group(__local C *part, C mine)
{
  const int lane = get_local_id(0);
  part[lane] = mine;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int half_of = GROUP / 2; half_of > 0; half_of /= 2) {
    if (lane < half_of) part[lane] += part[lane + half_of];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  C all = part[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  return all;
}

__kernel void layer_norm(IN(x),
#ifdef SCALED
                         IN(scale),
#endif
#ifdef SHIFTED
                         IN(shift),
#endif
                         OUT(y), const I columns, const float epsilon)
{
  GET_IN(T, x);
#ifdef SCALED
  GET_IN(T, scale);
#endif
#ifdef SHIFTED
  GET_IN(T, shift);
#endif
  GET_OUT(T, y);
  __local C part[GROUP];
  const int lane = get_local_id(0);
  const I at = (I)get_group_id(0) * columns;
  C mean = 0, square = 0;
#ifdef CENTERED
  for (I j = lane; j < columns; j += GROUP) mean += LOAD(x, at + j);
  mean = over_group(part, mean) / (C)columns;
#endif
  for (I j = lane; j < columns; j += GROUP) square += (LOAD(x, at + j) - mean) * (LOAD(x, at + j) - mean);
  const C by = 1 / sqrt(over_group(part, square) / (C)columns + (C)epsilon);
  for (I j = lane; j < columns; j += GROUP) {
    C v = (LOAD(x, at + j) - mean) * by;
#ifdef SCALED
    v *= LOAD(scale, j);
#endif
#ifdef SHIFTED
    v += LOAD(shift, j);
#endif
    STORE(y, at + j, v);
  }
}
