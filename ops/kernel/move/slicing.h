/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes of tensors: every step-th place from a begin on, in each dimension; and the slicing of Python's brackets, which
 * StridedSlice and its relatives are given as vectors and masks. */
#ifndef TN_OPS_KERNEL_MOVE_SLICING_H
#define TN_OPS_KERNEL_MOVE_SLICING_H

#include <ops/kernel/shapes.h>
#include <ops/kernel/move/strided.h>

/* ---- boxes ---- */

/* On the stack. */
typedef struct tn__box {
  int32_t rank; /* of the tensor */
  int64_t begin[TN_MAX_RANK], step[TN_MAX_RANK], size[TN_MAX_RANK]; /* size -1: not known (shape functions) */
} tn__box;

bool tn__box_is_empty(const tn__box *box);
/* All places of a tensor of these dimensions, in their order. */
bool tn__box_is_all(const tn__box *box, const int64_t *dims);

/* A copy between a box of a tensor and adjacent elements, or, with `steps`, elements that have so many others from one to
 * the next in each dimension. */
typedef struct tn__box_copy {
  tn__strided strided;
  size_t offset; /* of the box in its tensor, bytes */
  bool into;     /* the box is the target */
} tn__box_copy;

/* The box is not empty. */
void tn__box_copy_init(tn__box_copy *copy, tn_dtype dtype, const int64_t *dims, const tn__box *box, const int64_t *steps,
                       bool into);
/* tensor is the whole one. Fails without memory only. */
tn_status tn__box_copy_run(const tn__box_copy *copy, tn_kernel_ctx *ctx, void *tensor, void *other);

/* ---- brackets ---- */

/* The vectors have one bit each in the masks, so they are short. */
#define TN__SLICING_MAX 31

typedef struct tn__slicing {
  int32_t n; /* length of the vectors */
  int64_t begin[TN__SLICING_MAX], end[TN__SLICING_MAX], step[TN__SLICING_MAX]; /* TN_UNKNOWN_INT in shape functions */
  uint32_t begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask;
} tn__slicing;

/* What it means for a tensor. */
typedef struct tn__sliced {
  tn__box box;
  tn__shape shape;              /* of the result: shrunk dimensions are left out, new ones put in */
  int16_t source[TN_MAX_RANK]; /* dimension of the tensor for each of the result's; -1: a new one */
} tn__sliced;

/* The attributes, and inputs first, first + 1 and first + 2, which must be vectors of one length with known values. */
tn_status tn__slicing_read(const tn_prepare_ctx *ctx, uint32_t first, tn__slicing *out, tn_error *err);
/* The two parts of it for a kernel whose tensor is known in compute only: the masks once, then the vectors, inputs first to
 * first + 2. */
void tn__slicing_masks(const tn_operation *op, tn__slicing *out);
tn_status tn__slicing_vectors(const tn_kernel_ctx *ctx, uint32_t first, tn__slicing *out);
/* The same in a shape function; false when not even the number of elements is known. */
bool tn__slicing_infer(const tn_infer_ctx *ctx, size_t first, tn__slicing *out);
/* A dimension of the tensor may be -1, then nothing is said that is not sure. TN_INVALID_ARGUMENT for what cannot be meant. */
tn_status tn__slicing_apply(const char *op, const tn__slicing *s, const int64_t *dims, int32_t rank, tn__sliced *out,
                            tn_error *err);

/* Elements of a value from one place of the box to the next in each dimension of the tensor: it broadcasts to the shape of the
 * slice, and may have dimensions of 1 before that. False when it does not. */
bool tn__sliced_value_steps(const tn_view *value, const tn__sliced *s, int64_t *steps);

#endif
