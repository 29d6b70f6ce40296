/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of depthwise convolutions; product.cl has the convolution itself. */

#ifdef TO_INPUT
/* The gradient of a pixel from the places whose windows contain it, for one of its channels with `times` filters. */
__kernel void to_input(IN(filter), IN(grad), OUT(out), const image_window w, const int times, const I count)
{
  const I i = get_global_id(0);
  if (i >= count) return;
  GET_IN(T, filter);
  GET_IN(T, grad);
  GET_OUT(T, out);
  const I pixel = i / w.c, line = pixel / w.w, n = line / w.h;
  const int channel = (int)(i - pixel * w.c) * times;
  const int row = (int)(line - n * w.h) + w.before_y, column = (int)(pixel - line * w.w) + w.before_x;
  C sum = 0;
  for (int ky = 0; ky < w.kh; ky++) {
    const int y = row - ky * w.dilation_y;
    if (y < 0 || y % w.stride_y != 0 || y / w.stride_y >= w.oh) continue;
    for (int kx = 0; kx < w.kw; kx++) {
      const int x = column - kx * w.dilation_x;
      if (x < 0 || x % w.stride_x != 0 || x / w.stride_x >= w.ow) continue;
      const long from = (((long)n * w.oh + y / w.stride_y) * w.ow + x / w.stride_x) * w.oc + channel;
      const long tap = ((long)ky * w.kw + kx) * w.oc + channel;
      for (int k = 0; k < times; k++) sum += LOAD(grad, from + k) * LOAD(filter, tap + k);
    }
  }
  STORE(out, i, sum);
}
#endif

#ifdef TO_FILTER
/* A group has 16 channels of a tap; its items share the places. */
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void to_filter(IN(x), IN(grad), OUT(out), const image_window w, const int times, const long places)
{
  __local C parts[256];
  GET_IN(T, x);
  GET_IN(T, grad);
  GET_OUT(T, out);
  const int item = get_local_id(0), blocks = (w.oc + 15) / 16;
  const long group = get_group_id(0), tap = group / blocks;
  const int channel = (int)(group - tap * blocks) * 16 + item % 16;
  const int ky = (int)tap / w.kw, dy = ky * w.dilation_y - w.before_y;
  const int dx = ((int)tap - ky * w.kw) * w.dilation_x - w.before_x;
  C sum = 0;
  for (long i = item / 16; i < places && channel < w.oc; i += 16) {
    const long line = i / w.ow, n = line / w.oh;
    const int row = (int)(line - n * w.oh) * w.stride_y + dy, column = (int)(i - line * w.ow) * w.stride_x + dx;
    if (row >= 0 && row < w.h && column >= 0 && column < w.w)
      sum += LOAD(x, ((n * w.h + row) * w.w + column) * w.c + channel / times) * LOAD(grad, i * w.oc + channel);
  }
  parts[item] = sum;
  for (int step = 128; step >= 16; step /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < step) parts[item] += parts[item + step];
  }
  if (item < 16 && channel < w.oc) STORE(out, tap * w.oc + channel, parts[item]);
}
#endif
