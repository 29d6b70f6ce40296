/* SPDX-License-Identifier: Apache-2.0 */
/* Resizing images. Tables contain, for each row and then each column of the result, the source rows or columns `lower`
 * and `upper` and the position between them. */
typedef struct place {
  int lower, upper;
  float lerp;
} place;

#define ITEM                                                                                            \
  const I i = get_global_id(0);                                                                         \
  if (i >= count) return;                                                                               \
  GET_IN(place, places);                                                                                \
  const I pixel = i / c, line = pixel / ow, image = line / oh;                                          \
  const int channel = (int)(i - pixel * c);                                                             \
  const place row = places[line - image * oh], column = places[oh + (int)(pixel - line * ow)];          \
  const long from = (long)image * h * w * c + channel
#define AT(y, x) (from + ((long)(y) * w + (x)) * c)

#ifdef BILINEAR
#define NUMBER(at) ((float)LOAD(in, at))
__kernel void bilinear(IN(in), IN(places), OUT(out), const int h, const int w, const int c, const int oh, const int ow,
                       const I count)
{
  ITEM;
  GET_IN(T, in);
  GET_OUT(float, out);
  const float a = NUMBER(AT(row.lower, column.lower)), b = NUMBER(AT(row.lower, column.upper));
  const float d = NUMBER(AT(row.upper, column.lower)), e = NUMBER(AT(row.upper, column.upper));
  const float top = a + (b - a) * column.lerp, bottom = d + (e - d) * column.lerp;
  out[i] = top + (bottom - top) * row.lerp;
}
#endif

#ifdef NEAREST
__kernel void nearest(IN(in), IN(places), OUT(out), const int h, const int w, const int c, const int oh, const int ow,
                      const I count)
{
  ITEM;
  GET_IN(T, in);
  GET_OUT(T, out);
  out[i] = in[AT(row.lower, column.lower)];
}
#endif
