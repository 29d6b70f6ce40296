/* SPDX-License-Identifier: Apache-2.0 */
/* Windows over images and volumes. Both are treated as volumes: an image is a volume one pixel deep. Loops read
 * data in a common form: channels last, in the type that sums are computed in. */
#ifndef TN_OPS_KERNEL_WINDOW_VOLUME_H
#define TN_OPS_KERNEL_WINDOW_VOLUME_H

#include <ops/kernel/window/window.h>

/* The window attributes of an op. For an image, axis[0] is a single position of a window of size 1. */
typedef struct tn__volume_window {
  int directions; /* 2 for images, 3 for volumes */
  bool channels_first;
  tn__padding padding;
  tn__window_axis axis[3];                           /* outermost first */
  int64_t batch_size, batch_stride, batch_dilation;  /* of the window over batch and channels; 1 if not given */
  int64_t depth_size, depth_stride, depth_dilation;
} tn__volume_window;

/* As tn__window_read, for lists of directions + 2 numbers. */
tn_status tn__volume_read(const tn_operation *op, int directions, tn__volume_window *window, tn_error *err);
/* Checks that the window does not extend over batch or channels: TN_UNIMPLEMENTED for a stride or size,
 * TN_INVALID_ARGUMENT for a dilation. */
tn_status tn__volume_only_space(const tn_operation *op, const tn__volume_window *window, tn_error *err);

/* Tensor dimensions by meaning; axis 0 of an image has no dimension. */
static inline int tn__volume_dim(const tn__volume_window *w, int axis)
{
  return axis + (w->channels_first ? 2 : 1) - (3 - w->directions);
}
static inline int tn__volume_depth(const tn__volume_window *w) { return w->channels_first ? 1 : w->directions + 1; }

/* Sizes by meaning. */
typedef struct tn__volume {
  int64_t n, size[3], c;
} tn__volume;

tn__volume tn__volume_of(const tn__volume_window *w, const int64_t *dims);
void tn__volume_dims(const tn__volume_window *w, const tn__volume *v, int64_t *dims);
static inline int64_t tn__volume_pixels(const tn__volume *v) { return v->size[0] * v->size[1] * v->size[2]; }

/* Computes the number of window positions along the axes of `in` and stores them in `out`, with n and c of `in`.
 * Sets the padding. */
tn_status tn__volume_fit(tn__volume_window *w, const char *op, const tn__volume *in, tn__volume *out, tn_error *err);

/* ---- shape functions: output 0 ---- */

/* Windows over the images of input 0; batch and channels are kept. The window has size 1 if the op has no ksize. */
tn_status tn__volume_infer_pool(tn_infer_ctx *ctx, int directions, tn__volume_window *w, bool known, int n_outputs,
                                tn_error *err);
/* Output 0 has the shape given by the value of input i, of this rank. */
tn_status tn__volume_infer_sizes(tn_infer_ctx *ctx, size_t i, int32_t rank, tn_error *err);

/* ---- prepare ---- */

/* Reads the shape given by the value of input i: `rank` numbers, none negative. */
tn_status tn__volume_sizes(const tn_prepare_ctx *ctx, uint32_t i, int32_t rank, int64_t *dims, tn_error *err);
/* Checks that input i has this shape. */
tn_status tn__want_shape(const tn_prepare_ctx *ctx, uint32_t i, const int64_t *dims, int32_t rank, tn_error *err);
/* Reserves bytes of scratch memory, aligned to TN_ALIGN. Returns the offset. */
size_t tn__take(size_t *scratch, size_t bytes);

/* ---- the form that loops read ---- */

typedef struct tn__form {
  tn_dtype dtype, wide;
  int64_t n, pixels, c; /* images, pixels per image, channels */
  bool convert, swap;   /* the dtype must be widened; channels must be moved last */
  size_t at, at_swap;   /* offsets in scratch */
} tn__form;

void tn__form_plan(tn__form *f, tn_dtype dtype, bool channels_first, const tn__volume *v, size_t *scratch);
/* Returns the elements in the common form: `data` itself or a copy in scratch. */
const void *tn__form_load(const tn__form *f, tn_kernel_ctx *ctx, const void *data, char *scratch);
/* _room returns where to write a result in the common form; _store then converts it to `data`. */
void *tn__form_room(const tn__form *f, void *data, char *scratch);
void tn__form_store(const tn__form *f, tn_kernel_ctx *ctx, void *data, char *scratch);

/* ---- computing ---- */

/* The part of a window at position `at` that is inside the input. Only for dilation 1. */
static inline void tn__window_clip(const tn__window_axis *a, int64_t at, int64_t length, int64_t *first, int64_t *n)
{
  int64_t begin = at * a->stride - a->before, end = begin + a->size;
  if (begin < 0) begin = 0;
  if (end > length) end = length;
  *first = end > begin ? begin : 0;
  *n = end > begin ? end - begin : 0;
}

/* Finds the taps [*first, *first + *n) of the window at a position that are inside the input; *at is the index of
 * the first one. */
static inline void tn__window_taps(const tn__window_axis *a, int64_t place, int64_t length, int64_t *at, int64_t *first,
                                   int64_t *n)
{
  int64_t begin = place * a->stride - a->before, skip = begin < 0 ? (-begin + a->dilation - 1) / a->dilation : 0;
  int64_t room = length - (begin + skip * a->dilation), inside = room <= 0 ? 0 : (room - 1) / a->dilation + 1;
  if (skip > a->size) skip = a->size;
  *first = skip;
  *n = inside < a->size - skip ? inside : a->size - skip;
  *at = *n > 0 ? begin + skip * a->dilation : 0;
}

/* Runs fn over [0, n), on several threads if the total cost justifies it. cost_ns is per item. */
void tn__run_parts(tn_kernel_ctx *ctx, int64_t n, double cost_ns, void (*fn)(void *user, int64_t begin, int64_t end),
                   void *user);

#endif
