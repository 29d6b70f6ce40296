/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling and its gradients: an item computes a channel of a place, or of a pixel. Elements outside the images do not
 * count. Without MEAN the result is the maximum: a NaN is never larger, and values below FIRST count as FIRST. */

/* The part [*from, *from + *n) of the window at a place that is inside the image, along one direction. */
static void clip(int place, int stride, int before, int size, int length, int *from, int *n)
{
  const int begin = place * stride - before, end = min(begin + size, length);
  *from = max(begin, 0);
  *n = max(end - *from, 0);
}

/* The places [*from, *end) whose windows have a pixel. */
static void reach(int pixel, int stride, int before, int size, int places, int *from, int *end)
{
  const int last = pixel + before, first = last - size + 1;
  *from = first > 0 ? (first + stride - 1) / stride : 0;
  *end = last < 0 ? 0 : min(last / stride + 1, places);
}

#define ITEM(depth, line_size, lines)                                                       \
  const I i = get_global_id(0);                                                             \
  if (i >= count) return;                                                                   \
  const I pixel = i / (depth), line = pixel / (line_size), image = line / (lines);          \
  const int channel = (int)(i - pixel * (depth)), y = (int)(line - image * (lines));        \
  const int x = (int)(pixel - line * (line_size))
#define PLACE ITEM(w.c, w.ow, w.oh)
#define PIXEL ITEM(w.c, w.w, w.h)
#define AT_PIXEL(y, x) ((((long)image * w.h + (y)) * w.w + (x)) * w.c + channel)
#define AT_PLACE(y, x) ((((long)image * w.oh + (y)) * w.ow + (x)) * w.c + channel)

#ifdef POOL
__kernel void pool(IN(in), OUT(out), const image_window w, const I count)
{
  PLACE;
  GET_IN(T, in);
  GET_OUT(T, out);
  int top, rows, left, columns;
  clip(y, w.stride_y, w.before_y, w.kh, w.h, &top, &rows);
  clip(x, w.stride_x, w.before_x, w.kw, w.w, &left, &columns);
  C all = FIRST;
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < columns; c++) {
      const C v = LOAD(in, AT_PIXEL(top + r, left + c));
#ifdef MEAN
      all += v;
#else
      all = v > all ? v : all;
#endif
    }
#ifdef MEAN
  all /= (C)rows * (C)columns;
#endif
  STORE(out, i, all);
}
#endif

#ifdef MAX_GRAD
/* The gradient of each window belongs to the first of its largest elements. */
__kernel void max_grad(IN(in), IN(grad), OUT(out), const image_window w, const I count)
{
  PIXEL;
  GET_IN(T, in);
  GET_IN(T, grad);
  GET_OUT(T, out);
  int first_y, end_y, first_x, end_x;
  reach(y, w.stride_y, w.before_y, w.kh, w.oh, &first_y, &end_y);
  reach(x, w.stride_x, w.before_x, w.kw, w.ow, &first_x, &end_x);
  C sum = 0;
  for (int py = first_y; py < end_y; py++)
    for (int px = first_x; px < end_x; px++) {
      int top, rows, left, columns, at_y, at_x;
      clip(py, w.stride_y, w.before_y, w.kh, w.h, &top, &rows);
      clip(px, w.stride_x, w.before_x, w.kw, w.w, &left, &columns);
      C best = LOAD(in, AT_PIXEL(top, left));
      at_y = top;
      at_x = left;
      for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) {
          const C v = LOAD(in, AT_PIXEL(top + r, left + c));
          if (!(v > best)) continue;
          best = v;
          at_y = top + r;
          at_x = left + c;
        }
      if (at_y == y && at_x == x) sum += LOAD(grad, AT_PLACE(py, px));
    }
  STORE(out, i, sum);
}
#endif

#ifdef MAX_GRAD_GRAD
/* Each window takes what the first element has that is as large as what was pooled. */
__kernel void max_grad_grad(IN(in), IN(pooled), IN(grad), OUT(out), const image_window w, const I count)
{
  PLACE;
  GET_IN(T, in);
  GET_IN(T, pooled);
  GET_IN(T, grad);
  GET_OUT(T, out);
  int top, rows, left, columns;
  clip(y, w.stride_y, w.before_y, w.kh, w.h, &top, &rows);
  clip(x, w.stride_x, w.before_x, w.kw, w.w, &left, &columns);
  const C wanted = LOAD(pooled, i);
  C found = 0;
  for (int r = rows - 1; r >= 0; r--)
    for (int c = columns - 1; c >= 0; c--)
      if (LOAD(in, AT_PIXEL(top + r, left + c)) == wanted) found = LOAD(grad, AT_PIXEL(top + r, left + c));
  STORE(out, i, found);
}
#endif

#ifdef MEAN_GRAD
__kernel void mean_grad(IN(grad), OUT(out), const image_window w, const I count)
{
  PIXEL;
  GET_IN(T, grad);
  GET_OUT(T, out);
  int first_y, end_y, first_x, end_x;
  reach(y, w.stride_y, w.before_y, w.kh, w.oh, &first_y, &end_y);
  reach(x, w.stride_x, w.before_x, w.kw, w.ow, &first_x, &end_x);
  C sum = 0;
  for (int py = first_y; py < end_y; py++)
    for (int px = first_x; px < end_x; px++) {
      int top, rows, left, columns;
      clip(py, w.stride_y, w.before_y, w.kh, w.h, &top, &rows);
      clip(px, w.stride_x, w.before_x, w.kw, w.w, &left, &columns);
      sum += LOAD(grad, AT_PLACE(py, px)) / ((C)rows * (C)columns);
    }
  STORE(out, i, sum);
}
#endif
