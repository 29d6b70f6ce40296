/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for the shape functions, `create` and `prepare` of many op families.
 *
 * A rank of -1 is unknown, as is a dimension of -1. Error texts begin with the op's name; the caller of a kernel or
 * of a shape function adds the node's name. */
#ifndef TN_OPS_KERNEL_SHAPES_H
#define TN_OPS_KERNEL_SHAPES_H

#include <stdbool.h>
#include <tenon/op.h>

/* ---- shapes on the stack ---- */

typedef struct tn__shape {
  int32_t rank;
  int64_t dims[TN_MAX_RANK]; /* the first `rank` are set */
} tn__shape;

static inline void tn__shape_unknown(tn__shape *s) { s->rank = -1; }
static inline void tn__shape_scalar(tn__shape *s) { s->rank = 0; }
void tn__shape_set(tn__shape *s, const int64_t *dims, int32_t rank);
bool tn__shape_is_known(const int64_t *dims, int32_t rank); /* rank and all dimensions */
/* Fills in unknown parts of *s from the other shape. False if the shapes cannot be equal; *s is then unchanged. */
bool tn__shape_merge(tn__shape *s, const int64_t *dims, int32_t rank);
/* The same for one dimension. */
bool tn__dim_merge(int64_t *dim, int64_t other);
bool tn__shape_append(tn__shape *s, int64_t dim); /* false past TN_MAX_RANK; an unknown rank stays unknown */
/* Maps an axis in [-rank, rank) to [0, rank); TN_INVALID_ARGUMENT "Op: axis 3 is outside [-2, 2)". */
tn_status tn__shape_axis(const char *op, int64_t axis, int32_t rank, int32_t *out, tn_error *err);

/* ---- shape functions: the `infer` of a tn_op_def ---- */

tn_status tn__infer_unchanged(tn_infer_ctx *ctx, tn_error *err); /* every output has the shape of input 0 */
tn_status tn__infer_merged(tn_infer_ctx *ctx, tn_error *err);    /* all inputs and outputs have one shape */
tn_status tn__infer_broadcast(tn_infer_ctx *ctx, tn_error *err); /* output 0 is inputs 0 and 1 broadcast together */
tn_status tn__infer_scalar(tn_infer_ctx *ctx, tn_error *err);    /* every output is a scalar */
tn_status tn__infer_nothing(tn_infer_ctx *ctx, tn_error *err);   /* there are no outputs, or their shapes are unknown */
tn_status tn__infer_unknown(tn_infer_ctx *ctx, tn_error *err);   /* every output is of unknown rank */
tn_status tn__infer_attr_shape(tn_infer_ctx *ctx, tn_error *err); /* output 0 is the attribute `shape` */

/* Building blocks for other shape functions. */

/* As tn__infer_merged, with one more shape to merge. */
tn_status tn__infer_merged_with(tn_infer_ctx *ctx, const int64_t *also, int32_t also_rank, tn_error *err);
const char *tn__infer_op(const tn_infer_ctx *ctx); /* name of the op, for messages */
void tn__infer_get(const tn_infer_ctx *ctx, size_t i, tn__shape *out);
tn_status tn__infer_set(tn_infer_ctx *ctx, size_t i, const tn__shape *s, tn_error *err);
/* Checks that input i has this rank if its rank is known. *out is its shape, or `rank` unknown dimensions if the
 * rank is unknown. */
tn_status tn__infer_rank(const tn_infer_ctx *ctx, size_t i, int32_t rank, tn__shape *out, tn_error *err);
tn_status tn__infer_rank_at_least(const tn_infer_ctx *ctx, size_t i, int32_t rank, tn__shape *out, tn_error *err);
/* The value of input i if it is a constant of int32 or int64: a vector, or a scalar treated as a vector of one. */
bool tn__infer_ints(const tn_infer_ctx *ctx, size_t i, const tn_tensor **tensor, int64_t *n);
/* Element k of an int32 or int64 tensor. */
int64_t tn__tensor_int_at(const tn_tensor *tensor, int64_t k);

/* ---- broadcasting ---- */

/* Sets *out to the shape that a and b broadcast to; unknown parts are allowed. False if they do not broadcast. */
bool tn__broadcast_shapes(const int64_t *a, int32_t a_rank, const int64_t *b, int32_t b_rank, tn__shape *out);
/* The matching error: "Add: shapes [2,3] and [4] do not broadcast". Returns TN_INVALID_ARGUMENT. */
tn_status tn__broadcast_error(tn_error *err, const char *op, const int64_t *a, int32_t a_rank, const int64_t *b,
                              int32_t b_rank);

/* ---- attributes ---- */

/* A type attribute; TN_DTYPE_INVALID if the node lacks it. */
tn_dtype tn__attr_type(const tn_operation *op, const char *name);
/* An attribute that the schema requires or gives a default: its value, or `otherwise` if the node lacks it. */
bool tn__attr_bool(const tn_operation *op, const char *name, bool otherwise);
int64_t tn__attr_int(const tn_operation *op, const char *name, int64_t otherwise);
float tn__attr_float(const tn_operation *op, const char *name, float otherwise);
/* The index of a string attribute's value in `choices` (n texts). TN_INVALID_ARGUMENT lists the allowed values. */
tn_status tn__attr_choice(const tn_operation *op, const char *name, const char *const *choices, size_t n, int *out,
                          tn_error *err);

/* ---- kernels ---- */

/* TN_UNIMPLEMENTED "Op: no kernel for dtype D". */
tn_status tn__no_kernel(tn_error *err, const tn_operation *op, tn_dtype dtype);
/* Input i must have this rank / at least this rank / be a scalar / a vector; TN_INVALID_ARGUMENT
 * "Op: input 1 has shape [2,3], wanted rank 1". */
tn_status tn__want_rank(const tn_prepare_ctx *ctx, uint32_t i, int32_t rank, tn_error *err);
tn_status tn__want_rank_at_least(const tn_prepare_ctx *ctx, uint32_t i, int32_t rank, tn_error *err);
/* Inputs i and j must have one shape; "Op: inputs 0 and 1 have shapes [2] and [3], wanted equal shapes". */
tn_status tn__want_same_shape(const tn_prepare_ctx *ctx, uint32_t i, uint32_t j, tn_error *err);
/* "Op: input 1 has shape [2,3], wanted [2,?]". Returns TN_INVALID_ARGUMENT. */
tn_status tn__shape_error(tn_error *err, const tn_prepare_ctx *ctx, uint32_t i, const int64_t *dims, int32_t rank);
bool tn__view_same_shape(const tn_view *a, const tn_view *b);
/* Element k of an int32 or int64 view. The view's data must be set. */
int64_t tn__view_int_at(const tn_view *view, int64_t k);
/* The `prepare` of elementwise kernels: output 0 has the shape of input 0, and may reuse its memory if the dtypes
 * have the same size. */
tn_status tn__prepare_unchanged(tn_prepare_ctx *ctx, tn_error *err);
/* For `create`: sets *state to a copy of s, to be freed with its size. `what` names it in the out-of-memory error. */
tn_status tn__keep_state(const void *s, size_t bytes, const char *what, void **state, tn_error *err);
/* `prepare` functions: there are no outputs / output 0 is a scalar / no output has a shape before compute. */
tn_status tn__prepare_nothing(tn_prepare_ctx *ctx, tn_error *err);
tn_status tn__prepare_scalar(tn_prepare_ctx *ctx, tn_error *err);
tn_status tn__prepare_all_dynamic(tn_prepare_ctx *ctx, tn_error *err);

/* Table entry of a kernel for the CPU and all dtypes, with a state per node and no shape state. */
#define TN__KERNEL(which, title, create_fn, destroy_fn, prepare_fn, compute_fn)                         \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C,  \
    .create = create_fn, .destroy = destroy_fn, .prepare = prepare_fn, .compute = compute_fn }

/* Up to this many elements, a loop runs on the calling thread only. */
#define TN__SERIAL_ELEMENTS 16384

#endif
