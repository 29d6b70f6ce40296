/* SPDX-License-Identifier: Apache-2.0 */
/* Windows that slide over images: the attributes of convolutions and pooling, and the resulting sizes. */
#ifndef TN_OPS_KERNEL_WINDOW_WINDOW_H
#define TN_OPS_KERNEL_WINDOW_WINDOW_H

#include <stdbool.h>
#include <tenon/op.h>

typedef enum tn__padding { TN__PAD_SAME, TN__PAD_VALID, TN__PAD_EXPLICIT } tn__padding;

/* One spatial axis: rows or columns. */
typedef struct tn__window_axis {
  int64_t size;          /* size of the window */
  int64_t stride, dilation;
  int64_t before, after; /* padding; set by tn__window_fit unless it is explicit */
} tn__window_axis;

typedef struct tn__window {
  bool channels_first;
  tn__padding padding;
  tn__window_axis axis[2];
  int64_t batch_size, batch_stride, batch_dilation; /* of the window over batch and channels; 1 if not given */
  int64_t depth_size, depth_stride, depth_dilation;
} tn__window;

/* Reads data_format, padding, explicit_paddings, strides, dilations and ksize, as far as the op has them.
 * TN_INVALID_ARGUMENT names the attribute: a list whose length is not 4, a number below 1, or paddings that are not
 * allowed. */
tn_status tn__window_read(const tn_operation *op, tn__window *window, tn_error *err);

/* Dimensions of an image batch by meaning. */
static inline int tn__window_height(const tn__window *w) { return w->channels_first ? 2 : 1; }
static inline int tn__window_width(const tn__window *w) { return w->channels_first ? 3 : 2; }
static inline int tn__window_depth(const tn__window *w) { return w->channels_first ? 1 : 3; }

/* Computes the number of window positions along an input of this length, and sets the padding. TN_INVALID_ARGUMENT
 * if the window does not fit. */
tn_status tn__window_fit(tn__window_axis *axis, tn__padding padding, const char *op, int64_t length, int64_t *out,
                         tn_error *err);

/* The same for a shape function: -1 if the length or the window's size is unknown, or if the window does not fit. */
int64_t tn__window_fit_unknown(const tn__window_axis *axis, tn__padding padding, int64_t length);

#endif
