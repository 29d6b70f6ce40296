/* SPDX-License-Identifier: Apache-2.0 */
/* Images of another size whose pixels are sums of others. A table has, for each line of the result, the first of its
 * taps and one more at the end; then the places of all taps, then their weights. ..._IN, ..._OUT: elements; I: places.
 */
#pragma OPENCL FP_CONTRACT OFF
__kernel void resize_taps(IN(in), IN(rows), IN(columns), OUT(out), const int h, const int w, const int c, const int oh,
                          const int ow, const int row_taps, const int column_taps, const I count)
{
  GET_IN(T_IN, in);
  GET_IN(int, rows);
  GET_IN(int, columns);
  GET_OUT(T_OUT, out);
  const I i = (I)get_global_id(0);
  if (i >= count) return;
  const I pixel = i / c, line = pixel / ow, image = line / oh, from = image * h * w * c + (i - pixel * c);
  const int y = (int)(line - image * oh), x = (int)(pixel - line * ow);
  __global const int *row_at = rows + oh + 1, *column_at = columns + ow + 1;
  __global const float *row_weight = (__global const float *)(row_at + row_taps);
  __global const float *column_weight = (__global const float *)(column_at + column_taps);
  float sum = 0;
  for (int k = columns[x]; k < columns[x + 1]; k++) {
    float part = 0;
    for (int j = rows[y]; j < rows[y + 1]; j++)
      part += row_weight[j] * (float)LOAD_IN(in, from + ((I)row_at[j] * w + column_at[k]) * c);
    sum += column_weight[k] * part;
  }
  STORE_OUT(out, i, (C_OUT)sum);
}
