/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/kernel/window/volume.h>

tn_status tn__window_read(const tn_operation *op, tn__window *w, tn_error *err)
{
  tn__volume_window v;
  *w = (tn__window){ 0 };
  tn_status st = tn__volume_read(op, 2, &v, err);
  if (st != TN_OK) return st;
  *w = (tn__window){
    .channels_first = v.channels_first, .padding = v.padding, .axis = { v.axis[1], v.axis[2] },
    .batch_size = v.batch_size, .batch_stride = v.batch_stride, .batch_dilation = v.batch_dilation,
    .depth_size = v.depth_size, .depth_stride = v.depth_stride, .depth_dilation = v.depth_dilation,
  };
  return TN_OK;
}

/* Computes the number of window positions. It is negative if the window exceeds the input by a stride or more. Division
 * truncates towards zero, so a window that exceeds it by less has 0 positions, which is not an error. False if a number
 * overflows int64: sizes may belong to tensors without elements, and window sizes may come from an input. */
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
