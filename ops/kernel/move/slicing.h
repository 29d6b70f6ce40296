/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes of tensors (begin, step and size in each dimension), and Python's bracket slicing, which StridedSlice and
 * related ops receive as vectors and masks. */
#ifndef TN_OPS_KERNEL_MOVE_SLICING_H
#define TN_OPS_KERNEL_MOVE_SLICING_H

#include <ops/kernel/shapes.h>
#include <ops/kernel/move/strided.h>

/* ---- boxes ---- */

/* Lives on the stack. */
typedef struct tn__box {
  int32_t rank; /* rank of the tensor */
  int64_t begin[TN_MAX_RANK], step[TN_MAX_RANK], size[TN_MAX_RANK]; /* size -1: unknown (shape functions only) */
} tn__box;

bool tn__box_is_empty(const tn__box *box);
/* True if the box covers all of a tensor of these dimensions, in order. */
bool tn__box_is_all(const tn__box *box, const int64_t *dims);

/* A copy between a box of a tensor and contiguous elements, or elements with the strides `steps`, in elements per
 * dimension. */
typedef struct tn__box_copy {
  tn__strided strided;
  size_t offset; /* byte offset of the box in its tensor */
  bool into;     /* the box is the target */
} tn__box_copy;

/* The box must not be empty. steps NULL: the other side is contiguous. into: copy to the box. */
void tn__box_copy_init(tn__box_copy *copy, tn_dtype dtype, const int64_t *dims, const tn__box *box,
                       const int64_t *steps, bool into);
/* `tensor` is the whole tensor. Fails as tn__strided_run. */
tn_status tn__box_copy_run(const tn__box_copy *copy, tn_kernel_ctx *ctx, void *tensor, void *other);

/* ---- brackets ---- */

/* Maximum length of the vectors: each entry has one bit in the masks. */
#define TN__SLICING_MAX 31

typedef struct tn__slicing {
  int32_t n; /* length of the vectors */
  int64_t begin[TN__SLICING_MAX], end[TN__SLICING_MAX], step[TN__SLICING_MAX]; /* TN_UNKNOWN_INT in shape functions */
  uint32_t begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask;
} tn__slicing;

/* The result of applying a slicing to a tensor. */
typedef struct tn__sliced {
  tn__box box;
  tn__shape shape;              /* shape of the result, without shrunk dimensions and with new ones */
  int16_t source[TN_MAX_RANK]; /* the tensor's dimension for each of the result's; -1: a new one */
} tn__sliced;

/* Reads the attributes, and inputs first, first + 1 and first + 2, which must be vectors of equal length with known
 * values. */
tn_status tn__slicing_read(const tn_prepare_ctx *ctx, uint32_t first, tn__slicing *out, tn_error *err);
/* The same in two parts, for a kernel whose tensor is known only in compute: the masks once, then the vectors,
 * inputs first to first + 2. */
void tn__slicing_masks(const tn_operation *op, tn__slicing *out);
tn_status tn__slicing_vectors(const tn_kernel_ctx *ctx, uint32_t first, tn__slicing *out);
/* The same in a shape function; false if even the length of the vectors is unknown. */
bool tn__slicing_infer(const tn_infer_ctx *ctx, size_t first, tn__slicing *out);
/* Dimensions of the tensor may be -1; the parts of the result that depend on them are then unknown.
 * TN_INVALID_ARGUMENT if the slicing is not valid for the tensor. */
tn_status tn__slicing_apply(const char *op, const tn__slicing *s, const int64_t *dims, int32_t rank, tn__sliced *out,
                            tn_error *err);

/* Sets steps[d] to the stride of a value, in elements, along each dimension of the tensor. The value must broadcast
 * to the shape of the slice; it may have additional leading dimensions of 1. False if it does not broadcast. */
bool tn__sliced_value_steps(const tn_view *value, const tn__sliced *s, int64_t *steps);

#endif
