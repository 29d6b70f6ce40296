/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of convolutions and pooling: attributes are read once, places are computed for each shape. */
#include "onednn.h"

#include <string.h>

tn_status dnn_declined(tn_error *err, const char *why)
{
  return tn_error_set(err, TN_UNIMPLEMENTED, "oneDNN: %s", why);
}

static bool text_is(const tn_operation *op, const char *attr, const char *text)
{
  const char *found;
  size_t size;
  return tn_operation_attr_string(op, attr, &found, &size, NULL) == TN_OK && size == strlen(text) &&
         memcmp(found, text, size) == 0;
}

/* The middle of a list of axes + 2 numbers; batch and channels must have 1. */
static bool read_axes(const tn_operation *op, const char *attr, int axes, int64_t *to)
{
  const int64_t *v;
  size_t n;
  if (tn_operation_attr_ints(op, attr, &v, &n, NULL) != TN_OK || n != (size_t)axes + 2) return false;
  if (v[0] != 1 || v[axes + 1] != 1) return false;
  for (int a = 0; a < axes; a++) {
    if (v[a + 1] < 1 || v[a + 1] > DNN_MOST) return false;
    to[a] = v[a + 1];
  }
  return true;
}

static bool read_paddings(const tn_operation *op, dnn_window *w)
{
  const int64_t *v;
  size_t n;
  size_t last = 2 * (size_t)w->axes + 1; /* of the last axis; batch and channels have none */
  if (tn_operation_attr_ints(op, "explicit_paddings", &v, &n, NULL) != TN_OK || n != last + 3) return false;
  for (size_t i = 0; i < n; i++)
    if (v[i] < 0 || v[i] > DNN_MOST || (v[i] != 0 && (i < 2 || i > last))) return false;
  for (int a = 0; a < w->axes; a++) w->before[a] = v[2 + 2 * a], w->after[a] = v[3 + 2 * a];
  return true;
}

bool dnn_window_read(const tn_operation *op, int axes, bool pooling, dnn_window *w)
{
  *w = (dnn_window){ .axes = axes, .size = { 1, 1, 1 }, .stride = { 1, 1, 1 }, .dilation = { 1, 1, 1 } };
  w->same = text_is(op, "padding", "SAME");
  if (!text_is(op, "data_format", axes == 2 ? "NHWC" : "NDHWC")) return false;
  if (pooling ? !read_axes(op, "ksize", axes, w->size) : !read_axes(op, "dilations", axes, w->dilation)) return false;
  if (!read_axes(op, "strides", axes, w->stride)) return false;
  if (w->same || text_is(op, "padding", "VALID")) return true;
  return text_is(op, "padding", "EXPLICIT") && read_paddings(op, w);
}

bool dnn_window_fit(dnn_window *w, const int64_t *in, int64_t *out)
{
  for (int a = 0; a < w->axes; a++) {
    if (in[a] > DNN_MOST || w->size[a] > DNN_MOST) return false;
    int64_t reach = (w->size[a] - 1) * w->dilation[a] + 1, step = w->stride[a];
    if (w->same) {
      int64_t pad = ((in[a] + step - 1) / step - 1) * step + reach - in[a];
      w->before[a] = pad > 0 ? pad / 2 : 0;
      w->after[a] = pad > 0 ? pad - pad / 2 : 0;
    }
    int64_t room = in[a] + w->before[a] + w->after[a] - reach;
    if (room < 0 || reach > DNN_MOST) return false;
    out[a] = room / step + 1;
    w->after[a] = (out[a] - 1) * step + reach - in[a] - w->before[a]; /* for the last window; may be negative */
  }
  return true;
}

dnnl_memory_desc_t dnn_channels_last(const int64_t *dims, int n, dnnl_data_type_t type)
{
  int64_t order[5] = { dims[0], dims[n - 1] }, strides[5] = { 0, 1 }, step = dims[n - 1];
  for (int i = n - 2; i > 0; i--) {
    order[i + 1] = dims[i];
    strides[i + 1] = step;
    step *= dims[i];
  }
  strides[0] = step;
  return dnn_strided(order, strides, n, type);
}

/* ---- bands ---- */

#define MIN_POINTS 16 /* of a band, unless that leaves only one band */
#define MOST_BANDS 4  /* of a part, to make parts equal */

/* The bands of an image that give each part the same work if there are few images: 3 images in halves for two parts. */
static int64_t bands_of_image(int64_t images, int64_t parts)
{
  int64_t a = images, b = parts;
  while (b != 0) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return parts / a;
}

dnn_bands dnn_bands_cut(int64_t images, int64_t rows, int64_t points, int64_t parts, int64_t least)
{
  dnn_bands b = { parts, 1 };
  if (images >= parts) {
    int64_t some = bands_of_image(images, parts);
    bool fit = some > 1 && images * some <= MOST_BANDS * parts && rows >= some && points / some >= MIN_POINTS;
    fit = fit && points / some >= least;
    return fit ? (dnn_bands){ images, some } : b;
  }
  int64_t most = points / MIN_POINTS, some = (parts + images - 1) / images;
  if (some > most) some = most < 2 ? 2 : most;
  int64_t each = (rows + some - 1) / some; /* the last one may have fewer */
  b.images = images;
  b.rows = (rows + each - 1) / each;
  return b;
}

bool dnn_band_of(const dnn_window *w, int rank, const int64_t *x, const int64_t *y, dnn_bands b, int64_t i,
                 dnn_band *out)
{
  int64_t image = dnn_part_begin(x[0], b.images, i / b.rows), images = dnn_part_begin(x[0], b.images, i / b.rows + 1);
  int64_t row = dnn_part_begin(y[1], b.rows, i % b.rows), end = dnn_part_begin(y[1], b.rows, i % b.rows + 1);
  int64_t from = row * w->stride[0] - w->before[0], x_line = 1, y_line = 1;
  int64_t to = (end - 1) * w->stride[0] + (w->size[0] - 1) * w->dilation[0] + 1 - w->before[0];
  /* A whole image keeps its last rows even if no window reads them: the next image follows them. */
  int64_t first = from < 0 || b.rows == 1 ? 0 : from, last = to > x[1] || b.rows == 1 ? x[1] : to;
  if (last <= first) return false;
  for (int d = 0; d < rank; d++) {
    out->x[d] = x[d];
    out->y[d] = y[d];
    if (d > 1) x_line *= x[d], y_line *= y[d];
  }
  out->window = *w;
  out->window.before[0] = first - from;
  out->window.after[0] = to - last;
  out->x[0] = out->y[0] = images - image;
  out->x[1] = last - first;
  out->y[1] = end - row;
  out->x_at = (image * x[1] + first) * x_line;
  out->y_at = (image * y[1] + row) * y_line;
  return true;
}
