/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/support/shapes.h>
#include <ops/support/window.h>
#include <string.h>

/* A list of four numbers; absent leaves them as they are. */
static tn_status read_four(const tn_operation *op, const char *name, int64_t least, int64_t *out, tn_error *err)
{
  const int64_t *values;
  size_t n;
  if (tn_operation_attr_kind(op, name) == TN_ATTR_NONE) return TN_OK;
  tn_status st = tn_operation_attr_ints(op, name, &values, &n, err);
  if (st != TN_OK) return st;
  const char *type = tn_operation_type(op);
  if (n != 4)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: attribute '%s' has %zu numbers, wanted 4", type, name, n);
  for (size_t i = 0; i < 4; i++) {
    if (values[i] < least || values[i] > INT32_MAX)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: number %zu of attribute '%s' is %lld, wanted %lld to %d",
                          type, i, name, (long long)values[i], (long long)least, INT32_MAX);
    out[i] = values[i];
  }
  return TN_OK;
}

static tn_status read_paddings(const tn_operation *op, tn__window *w, tn_error *err)
{
  const int64_t *pad = NULL;
  size_t n = 0;
  const char *type = tn_operation_type(op);
  if (tn_operation_attr_kind(op, "explicit_paddings") != TN_ATTR_NONE) {
    tn_status st = tn_operation_attr_ints(op, "explicit_paddings", &pad, &n, err);
    if (st != TN_OK) return st;
  }
  size_t wanted = w->padding == TN__PAD_EXPLICIT ? 8 : 0;
  if (n != wanted)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: attribute 'explicit_paddings' has %zu numbers, wanted %zu", type,
                        n, wanted);
  for (size_t i = 0; i < n; i++) {
    int dim = (int)(i / 2);
    bool image = dim == tn__window_height(w) || dim == tn__window_width(w);
    if (pad[i] < 0 || pad[i] > INT32_MAX || (pad[i] != 0 && !image))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: number %zu of 'explicit_paddings' is %lld, wanted %s", type, i,
                          (long long)pad[i], image ? "0 to 2147483647" : "0");
  }
  for (int k = 0; k < 2 && n > 0; k++) {
    int dim = k == 0 ? tn__window_height(w) : tn__window_width(w);
    w->axis[k].before = pad[2 * dim];
    w->axis[k].after = pad[2 * dim + 1];
  }
  return TN_OK;
}

tn_status tn__window_read(const tn_operation *op, tn__window *w, tn_error *err)
{
  static const char *const formats[] = { "NHWC", "NCHW" };
  static const char *const paddings[] = { "SAME", "VALID", "EXPLICIT" };
  int format = 0, padding = 0;
  int64_t size[4] = { 1, 1, 1, 1 }, stride[4] = { 1, 1, 1, 1 }, dilation[4] = { 1, 1, 1, 1 };
  *w = (tn__window){ 0 };
  tn_status st = tn__attr_choice(op, "data_format", formats, 2, &format, err);
  if (st == TN_OK) st = tn__attr_choice(op, "padding", paddings, 3, &padding, err);
  if (st == TN_OK) st = read_four(op, "ksize", 1, size, err);
  if (st == TN_OK) st = read_four(op, "strides", 1, stride, err);
  if (st == TN_OK) st = read_four(op, "dilations", 1, dilation, err);
  if (st != TN_OK) return st;
  w->channels_first = format == 1;
  w->padding = (tn__padding)padding;
  for (int k = 0; k < 2; k++) {
    int dim = k == 0 ? tn__window_height(w) : tn__window_width(w);
    w->axis[k] = (tn__window_axis){ .size = size[dim], .stride = stride[dim], .dilation = dilation[dim] };
  }
  int depth = tn__window_depth(w);
  w->batch_size = size[0];
  w->batch_stride = stride[0];
  w->batch_dilation = dilation[0];
  w->depth_size = size[depth];
  w->depth_stride = stride[depth];
  w->depth_dilation = dilation[depth];
  return read_paddings(op, w, err);
}

/* Places of the window, negative when it is longer than the input by a stride and more. Division cuts towards zero, so
 * a window that is longer by less has no place, which is not an error. False when a number leaves int64: sizes can be
 * those of tensors without elements, windows those of an input. */
static bool places(tn__window_axis *a, tn__padding padding, int64_t length, int64_t *out)
{
  int64_t reach, room;
  if (__builtin_mul_overflow(a->size - 1, a->dilation, &reach) || __builtin_add_overflow(reach, 1, &reach))
    return false;
  if (padding != TN__PAD_SAME) {
    if (__builtin_add_overflow(length, a->before, &room) || __builtin_add_overflow(room, a->after, &room) ||
        __builtin_sub_overflow(room, reach, &room) || __builtin_add_overflow(room, a->stride, &room))
      return false;
    *out = room / a->stride;
    return true;
  }
  int64_t n = length / a->stride + (length % a->stride != 0), needed = 0;
  if (n > 0) {
    if (__builtin_mul_overflow(n - 1, a->stride, &room) || __builtin_sub_overflow(room, length, &room) ||
        __builtin_add_overflow(room, reach, &needed))
      return false;
  }
  if (needed < 0) needed = 0;
  a->before = needed / 2;
  a->after = needed - a->before;
  *out = n;
  return true;
}

tn_status tn__window_fit(tn__window_axis *a, tn__padding padding, const char *op, int64_t length, int64_t *out,
                         tn_error *err)
{
  if (places(a, padding, length, out) && *out >= 0) return TN_OK;
  *out = 0;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: a window of %lld with dilation %lld does not fit into %lld with "
                      "paddings %lld and %lld", op, (long long)a->size, (long long)a->dilation, (long long)length,
                      (long long)a->before, (long long)a->after);
}

int64_t tn__window_fit_unknown(const tn__window_axis *axis, tn__padding padding, int64_t length)
{
  tn__window_axis a = *axis;
  if (length < 0 || a.size < 0) return -1;
  int64_t n;
  return !places(&a, padding, length, &n) || n < 0 ? -1 : n;
}
