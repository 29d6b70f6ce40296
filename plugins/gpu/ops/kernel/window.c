/* SPDX-License-Identifier: Apache-2.0 */
/* Windows that slide over images. */
#include "ops/kernel/window.h"

#include <string.h>

gpu_images gpu_images_of(const gpu_window *w, const int64_t *dims)
{
  if (w->channels_first) return (gpu_images){ dims[0], dims[2], dims[3], dims[1] };
  return (gpu_images){ dims[0], dims[1], dims[2], dims[3] };
}

/* Four numbers of an attribute, by default all 1. */
static tn_status read_four(const gpu_node *n, const char *name, int64_t *out, tn_error *err)
{
  const int64_t *values;
  size_t count = 0;
  for (int i = 0; i < 4; i++) out[i] = 1;
  if (tn_operation_attr_ints(n->op, name, &values, &count, NULL) != TN_OK || count == 0) return TN_OK;
  if (count != 4) return gpu_decline(err, "attribute '%s' has %zu numbers, wanted 4", name, count);
  memcpy(out, values, 4 * sizeof *out);
  return TN_OK;
}

static tn_status read_input(const gpu_node *n, uint32_t i, int64_t *out, tn_error *err)
{
  const gpu_value *v = &n->inputs[i];
  if (v->host == NULL || v->count != 4 || v->dtype != TN_INT32)
    return gpu_decline(err, "input %u is not known to be four numbers", i);
  for (int k = 0; k < 4; k++) out[k] = ((const int32_t *)v->host)[k];
  return TN_OK;
}

static tn_status check(const char *name, const int64_t *four, bool channels_first, tn_error *err)
{
  int depth = channels_first ? 1 : 3;
  for (int i = 0; i < 4; i++)
    if (four[i] < 1 || four[i] > INT32_MAX)
      return gpu_decline(err, "number %d of '%s' is %lld", i, name, (long long)four[i]);
  if (four[0] == 1 && four[depth] == 1) return TN_OK;
  return gpu_decline(err, "'%s' covers batch or channels", name);
}

static tn_status read_paddings(const gpu_node *n, gpu_window *w, tn_error *err)
{
  const int64_t *values;
  size_t count = 0;
  int at = w->channels_first ? 4 : 2;
  w->y.before = w->x.before = gpu_attr_text_is(n, "padding", "SAME") ? -1 : 0;
  if (!gpu_attr_text_is(n, "padding", "EXPLICIT")) return TN_OK;
  tn_status st = tn_operation_attr_ints(n->op, "explicit_paddings", &values, &count, err);
  if (st != TN_OK) return st;
  if (count != 8) return gpu_decline(err, "explicit_paddings has %zu numbers, wanted 8", count);
  w->y.before = values[at];
  w->x.before = values[at + 2];
  if (w->y.before >= 0 && w->x.before >= 0) return TN_OK;
  return gpu_decline(err, "explicit_paddings has a number below 0");
}

tn_status gpu_window_read(const gpu_node *n, uint32_t sizes_from, gpu_window *w, tn_error *err)
{
  int64_t size[4], stride[4], dilation[4];
  *w = (gpu_window){ .channels_first = gpu_attr_text_is(n, "data_format", "NCHW") };
  if (!w->channels_first && tn_operation_attr_kind(n->op, "data_format") != TN_ATTR_NONE &&
      !gpu_attr_text_is(n, "data_format", "NHWC"))
    return gpu_decline(err, "attribute 'data_format' is of another kind than NHWC and NCHW");
  tn_status st = sizes_from > 0 ? read_input(n, sizes_from, size, err) : read_four(n, "ksize", size, err);
  if (st == TN_OK)
    st = sizes_from > 0 ? read_input(n, sizes_from + 1, stride, err) : read_four(n, "strides", stride, err);
  if (st == TN_OK) st = read_four(n, "dilations", dilation, err);
  if (st == TN_OK) st = check("ksize", size, w->channels_first, err);
  if (st == TN_OK) st = check("strides", stride, w->channels_first, err);
  if (st == TN_OK) st = check("dilations", dilation, w->channels_first, err);
  if (st != TN_OK) return st;
  int y = w->channels_first ? 2 : 1;
  w->y = (gpu_axis){ .size = size[y], .stride = stride[y], .dilation = dilation[y] };
  w->x = (gpu_axis){ .size = size[y + 1], .stride = stride[y + 1], .dilation = dilation[y + 1] };
  return read_paddings(n, w, err);
}

/* Places, taps and paddings are numbers of 30 bits in the kernels. */
#define MOST ((int64_t)1 << 29)

static bool fit(gpu_axis *a, int64_t length, int64_t places)
{
  a->length = length;
  a->places = places;
  if (length > MOST || places > MOST || a->size < 1 || a->size > MOST || a->before > MOST) return false;
  if (a->stride > MOST / (places > 0 ? places : 1) || a->dilation > MOST / a->size) return false;
  if (a->before >= 0) return true;
  int64_t needed = (places - 1) * a->stride + (a->size - 1) * a->dilation + 1 - length;
  a->before = needed > 0 ? needed / 2 : 0;
  return true;
}

tn_status gpu_window_fit(const gpu_node *n, gpu_window *w, const gpu_images *in, const gpu_images *out, tn_error *err)
{
  (void)n;
  if (fit(&w->y, in->h, out->h) && fit(&w->x, in->w, out->w)) return TN_OK;
  return gpu_decline(err, "images or windows of more than 2^29 lines");
}

gpu_window_arg gpu_window_pass(const gpu_window *w, int64_t c, int64_t oc, int64_t kc)
{
  return (gpu_window_arg){
    .h = (cl_int)w->y.length, .w = (cl_int)w->x.length, .c = (cl_int)c,
    .oh = (cl_int)w->y.places, .ow = (cl_int)w->x.places, .oc = (cl_int)oc,
    .kh = (cl_int)w->y.size, .kw = (cl_int)w->x.size, .kc = (cl_int)kc,
    .stride_y = (cl_int)w->y.stride, .stride_x = (cl_int)w->x.stride,
    .dilation_y = (cl_int)w->y.dilation, .dilation_x = (cl_int)w->x.dilation,
    .before_y = (cl_int)w->y.before, .before_x = (cl_int)w->x.before,
  };
}
