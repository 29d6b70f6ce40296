/* SPDX-License-Identifier: Apache-2.0 */
/* Resizing images: shared by its two implementations. */
#ifndef GPU_OPS_IMAGE_RESIZE_H
#define GPU_OPS_IMAGE_RESIZE_H

#include "ops/kernel/elements.h"

typedef struct gpu_resize_mode {
  bool corners, half_pixels;
} gpu_resize_mode;

gpu_resize_mode gpu_resize_mode_of(const gpu_node *n);
/* How far it is in the image from one pixel of the result to the next. */
float gpu_resize_scale(gpu_resize_mode m, int64_t in, int64_t out);
/* TN_UNIMPLEMENTED for modes and shapes that no kernel has. */
tn_status gpu_resize_check(const gpu_node *n, gpu_resize_mode m, tn_error *err);

#endif
