/* SPDX-License-Identifier: Apache-2.0 */
/* Windows that slide over images, as the attributes of convolutions and pooling say. */
#ifndef GPU_OPS_KERNEL_WINDOW_H
#define GPU_OPS_KERNEL_WINDOW_H

#include "node/node.h"

typedef struct gpu_axis {
  int64_t size, stride, dilation, before; /* before: padding */
  int64_t length, places;                 /* of the images; of the results */
} gpu_axis;

typedef struct gpu_window {
  bool channels_first;
  gpu_axis y, x;
} gpu_window;

/* Images and results, by meaning. */
typedef struct gpu_images {
  int64_t n, h, w, c;
} gpu_images;
gpu_images gpu_images_of(const gpu_window *w, const int64_t *dims);

/* Reads data_format, padding, explicit_paddings, strides, dilations and ksize: those that the op has. ksize and
 * strides may be inputs, from `sizes_from` on (0: they are attributes). Declines windows that cover batch or
 * channels. */
tn_status gpu_window_read(const gpu_node *n, uint32_t sizes_from, gpu_window *w, tn_error *err);
/* Sets lengths, places and paddings; y.size and x.size are there. Declines what is beyond the numbers of a kernel. */
tn_status gpu_window_fit(const gpu_node *n, gpu_window *w, const gpu_images *in, const gpu_images *out, tn_error *err);

/* `window` of the kernels. */
typedef struct gpu_window_arg {
  cl_int h, w, c, oh, ow, oc;
  cl_int kh, kw, kc;
  cl_int stride_y, stride_x, dilation_y, dilation_x, before_y, before_x;
  cl_int unused;
} gpu_window_arg;
/* c, oc: channels of an image and of a result; kc: of the filter. */
gpu_window_arg gpu_window_pass(const gpu_window *w, int64_t c, int64_t oc, int64_t kc);

#endif
