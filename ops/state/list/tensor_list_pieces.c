/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor lists from tensors and back: TensorListFromTensor TensorListStack TensorListGather
 * TensorListScatter TensorListScatterV2 TensorListScatterIntoExistingList TensorListSplit.
 * TensorListConcat is in tensor_list_concat.c.
 *
 * Elements made from a tensor are rows of it, and each holds a reference to it; nothing is copied. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <core/tensor/tensor_internal.h>
#include <ops/kernel/family.h>
#include <ops/state/list/tensor_list_ops.h>

/* ---- one tensor from elements: Stack, Gather ---- */

static tn_status give_stacked(tn_kernel_ctx *ctx, tn_tensor *const *items, int64_t n, const tn__shape *shape)
{
  int64_t dims[TN_MAX_RANK + 1] = { n }, row = 1;
  if (shape->rank >= TN_MAX_RANK)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "the output would have more than %d dimensions", TN_MAX_RANK);
  for (int32_t d = 0; d < shape->rank; d++) {
    dims[d + 1] = shape->dims[d];
    row *= shape->dims[d];
  }
  tn_status st = tn_kernel_allocate(ctx, 0, dims, shape->rank + 1);
  return st == TN_OK ? tn__put_together(ctx, 0, items, n, NULL, row) : st;
}

static tn_status stack_create(const tn_operation *op, void **state, tn_error *err)
{
  (void)err;
  *state = (void *)(intptr_t)tn__attr_int(op, "num_elements", -1);
  return TN_OK;
}

static tn_status stack_compute(tn_kernel_ctx *ctx)
{
  tn__list *list;
  tn__shape shape;
  tn_tensor **items;
  int64_t wanted = (intptr_t)ctx->state;
  tn_status st = tn__list_input(ctx, 0, 0, ctx->outputs[0]->dtype, &list);
  if (st != TN_OK) return st;
  int64_t n = tn__list_length(list);
  if (wanted != -1 && n != wanted)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "the list has %lld elements, attribute num_elements is %lld",
                        (long long)n, (long long)wanted);
  st = tn__list_element_shape(ctx, 1, list, &shape);
  if (st == TN_OK) st = tn__list_all(list, &items, ctx->err);
  if (st != TN_OK) return st;
  st = tn__list_full_shape(ctx, &shape, items, n, "no element is set that could be stacked");
  if (st == TN_OK) st = give_stacked(ctx, items, n, &shape);
  tn__list_all_destroy(items, n);
  return st;
}

/* References to the elements at the indices. */
static tn_status pick(tn_kernel_ctx *ctx, tn__list *list, const tn_view *indices, tn_tensor **to)
{
  const int32_t *at = indices->data;
  int64_t length = tn__list_length(list);
  for (int64_t k = 0; k < indices->count; k++) {
    if (at[k] < 0 || at[k] >= length)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "element %d of a list of %lld is asked for", (int)at[k],
                          (long long)length);
    to[k] = tn__list_get(list, at[k]);
  }
  return TN_OK;
}

static tn_status gather_compute(tn_kernel_ctx *ctx)
{
  tn__list *list;
  tn__shape shape;
  const tn_view *indices = ctx->inputs[1];
  int64_t n = indices->count;
  tn_status st = tn__list_input(ctx, 0, 0, ctx->outputs[0]->dtype, &list);
  if (st == TN_OK) st = tn__list_element_shape(ctx, 2, list, &shape);
  if (st != TN_OK) return st;
  tn_tensor **items = tn__alloc_array((size_t)n + 1, sizeof *items);
  if (items == NULL) return tn__no_memory(ctx->err, "elements of a tensor list", (size_t)n * sizeof *items);
  st = pick(ctx, list, indices, items);
  if (st == TN_OK) st = tn__list_full_shape(ctx, &shape, items, n, "no element is set of those that are gathered");
  if (st == TN_OK) st = give_stacked(ctx, items, n, &shape);
  tn__list_all_destroy(items, n);
  return st;
}

/* ---- elements from one tensor ---- */

/* Checks that the tensor has rows of this shape. */
static tn_status check_rows(tn_kernel_ctx *ctx, const tn__shape *shape)
{
  char said[160], found[160];
  const tn_view *v = ctx->inputs[0];
  if (tn__shape_fits(shape->dims, shape->rank, v->dims + 1, v->rank - 1)) return TN_OK;
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "input 0 has rows of shape %s, elements must have shape %s",
                      tn__format_shape(found, sizeof found, v->dims + 1, v->rank - 1),
                      tn__format_shape(said, sizeof said, shape->dims, shape->rank));
}

static tn_status rows_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank_at_least(ctx, 0, 1, err);
  return st == TN_OK ? tn__prepare_scalar(ctx, err) : st;
}

/* Sets elements indices[k] (k if NULL) of a list that is not shared yet to rows of a tensor, or to
 * lengths[k] rows each if `lengths` is not NULL. */
static tn_status set_rows(tn__list *list, tn_tensor *whole, const int32_t *indices, const int64_t *lengths, int64_t n,
                          tn_error *err)
{
  tn_status st = TN_OK;
  int64_t at = 0;
  for (int64_t k = 0; st == TN_OK && k < n; k++) {
    tn_tensor *part;
    int64_t rows = lengths == NULL ? 1 : lengths[k];
    st = tn__rows_of(whole, at, rows, lengths != NULL, &part, err);
    if (st == TN_OK) tn__list_put(list, indices == NULL ? k : indices[k], part);
    at += rows;
  }
  return st;
}

/* Outputs a new list of `length` elements, n of which are parts of input 0. */
static tn_status give_rows(tn_kernel_ctx *ctx, const tn__shape *shape, int64_t length, const int32_t *indices,
                           const int64_t *lengths, int64_t n)
{
  tn__list *list;
  tn_tensor *whole = NULL;
  const tn__list_kind kind = { ctx->inputs[0]->dtype, shape->rank, shape->dims, -1 };
  tn_status st = tn__list_create(&kind, length, &list, ctx->err);
  if (st == TN_OK) st = tn_kernel_keep_input(ctx, 0, &whole);
  if (st == TN_OK) st = set_rows(list, whole, indices, lengths, n, ctx->err);
  tn_tensor_unref(whole);
  if (st == TN_OK) tn__list_give(ctx, 0, 0, list);
  else tn__list_unref(list);
  return st;
}

static tn_status from_tensor_compute(tn_kernel_ctx *ctx)
{
  tn__shape shape;
  tn_status st = tn__shape_operand(ctx, 1, &shape);
  if (st == TN_OK) st = check_rows(ctx, &shape);
  int64_t n = ctx->inputs[0]->dims[0];
  return st == TN_OK ? give_rows(ctx, &shape, n, NULL, NULL, n) : st;
}

/* ---- Scatter ---- */

static tn_status scatter_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank_at_least(ctx, 0, 1, err);
  if (st == TN_OK && ctx->n_inputs > 3) st = tn__want_rank(ctx, 3, 0, err);
  if (st == TN_OK && ctx->inputs[1].count != ctx->inputs[0].dims[0])
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: there are %lld indices for %lld rows",
                        tn_operation_type(ctx->op), (long long)ctx->inputs[1].count, (long long)ctx->inputs[0].dims[0]);
  return st == TN_OK ? tn__prepare_scalar(ctx, err) : st;
}

/* Raises *length to what the largest index requires. limit -1: no limit. */
static tn_status check_indices(const tn_kernel_ctx *ctx, uint32_t i, int64_t limit, int64_t *length)
{
  const tn_view *v = ctx->inputs[i];
  const int32_t *at = v->data;
  for (int64_t k = 0; k < v->count; k++) {
    if (at[k] < 0 || at[k] == INT32_MAX || (limit >= 0 && at[k] >= limit))
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "index %lld of input %u is %d, wanted one in [0, %lld)",
                          (long long)k, i, (int)at[k], (long long)(limit >= 0 ? limit : INT32_MAX));
    if (at[k] >= *length) *length = (int64_t)at[k] + 1;
  }
  return TN_OK;
}

static tn_status scatter_compute(tn_kernel_ctx *ctx)
{
  tn__shape shape;
  const tn_view *indices = ctx->inputs[1];
  int64_t limit = ctx->n_inputs > 3 ? *(const int32_t *)ctx->inputs[3]->data : -1, length = limit < 0 ? 0 : limit;
  if (limit < -1)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "the size of a list is %lld, wanted -1 or more",
                        (long long)limit);
  tn_status st = tn__shape_operand(ctx, 2, &shape);
  if (st == TN_OK) st = check_rows(ctx, &shape);
  if (st == TN_OK) st = check_indices(ctx, 1, limit, &length);
  return st == TN_OK ? give_rows(ctx, &shape, length, indices->data, NULL, indices->count) : st;
}

static tn_status existing_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__list_prepare(ctx, err);
  if (st == TN_OK) st = tn__want_rank_at_least(ctx, 1, 1, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 2, 1, err);
  if (st == TN_OK && ctx->inputs[2].count != ctx->inputs[1].dims[0])
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: there are %lld indices for %lld rows",
                        tn_operation_type(ctx->op), (long long)ctx->inputs[2].count, (long long)ctx->inputs[1].dims[0]);
  return st == TN_OK ? tn__prepare_scalar(ctx, err) : st;
}

/* Makes the rows before locking the list. */
static tn_status put_rows(tn_kernel_ctx *ctx, tn__list *list, int64_t length, tn_tensor **rows, int64_t n)
{
  tn__list *out;
  const int32_t *at = ctx->inputs[2]->data;
  tn_tensor *whole;
  tn_status st = tn_kernel_keep_input(ctx, 1, &whole);
  for (int64_t k = 0; st == TN_OK && k < n; k++) st = tn__rows_of(whole, k, 1, false, &rows[k], ctx->err);
  tn_tensor_unref(whole);
  if (st == TN_OK) st = tn__list_change(list, length, (size_t)n, &out, ctx->err);
  if (st != TN_OK) return st;
  for (int64_t k = 0; k < n; k++) {
    tn__list_put(out, at[k], rows[k]);
    rows[k] = NULL;
  }
  tn__list_done(out);
  tn__list_give(ctx, 0, 0, out);
  return TN_OK;
}

static tn_status existing_compute(tn_kernel_ctx *ctx)
{
  tn__list *list;
  int64_t n = ctx->inputs[2]->count;
  tn_status st = tn__list_input(ctx, 0, 0, ctx->inputs[1]->dtype, &list);
  if (st != TN_OK) return st;
  int64_t length = tn__list_length(list);
  st = check_indices(ctx, 2, -1, &length);
  if (st != TN_OK) return st;
  tn_tensor **rows = tn__alloc_array((size_t)n + 1, sizeof *rows);
  if (rows == NULL) return tn__no_memory(ctx->err, "elements of a tensor list", (size_t)n * sizeof *rows);
  st = put_rows(ctx, list, length, rows, n);
  tn__list_all_destroy(rows, n);
  return st;
}

/* ---- Split ---- */

static tn_status split_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = rows_prepare(ctx, err);
  return st == TN_OK ? tn__want_rank(ctx, 2, 1, err) : st;
}

/* Checks that the lengths add up to all rows. Elements have the shape of the whole except the first
 * dimension, which is ignored, as in TensorFlow. */
static tn_status check_lengths(tn_kernel_ctx *ctx, const tn__shape *shape)
{
  const tn_view *v = ctx->inputs[0], *lengths = ctx->inputs[2];
  const int64_t *n = lengths->data;
  int64_t left = v->dims[0];
  char said[160], found[160];
  if (shape->rank == 0)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                        "elements must be scalars, but parts of a tensor are at least vectors");
  if (shape->rank > 0 && !tn__shape_fits(shape->dims + 1, shape->rank - 1, v->dims + 1, v->rank - 1))
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "input 0 has shape %s, elements must have shape %s",
                        tn__format_shape(found, sizeof found, v->dims, v->rank),
                        tn__format_shape(said, sizeof said, shape->dims, shape->rank));
  for (int64_t k = 0; k < lengths->count; k++) {
    if (n[k] < 0 || n[k] > left)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                          "length %lld of input 2 is %lld, there are %lld rows left of %lld", (long long)k,
                          (long long)n[k], (long long)left, (long long)v->dims[0]);
    left -= n[k];
  }
  if (left == 0) return TN_OK;
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "the lengths of input 2 leave %lld rows of %lld", (long long)left,
                      (long long)v->dims[0]);
}

static tn_status split_compute(tn_kernel_ctx *ctx)
{
  tn__shape shape;
  const tn_view *lengths = ctx->inputs[2];
  tn_status st = tn__shape_operand(ctx, 1, &shape);
  if (st == TN_OK) st = check_lengths(ctx, &shape);
  return st == TN_OK ? give_rows(ctx, &shape, lengths->count, NULL, lengths->data, lengths->count) : st;
}

/* ---- shape functions ---- */

/* The shape wanted by input i, with a leading dimension of size n. */
static tn_status infer_stacked(tn_infer_ctx *ctx, size_t i, int64_t n, tn_error *err)
{
  tn__shape element, out;
  tn__infer_shape_operand(ctx, i, &element);
  tn__shape_unknown(&out);
  if (element.rank >= 0 && element.rank < TN_MAX_RANK) tn__shape_set(&out, &n, 1);
  for (int32_t d = 0; d < element.rank; d++) tn__shape_append(&out, element.dims[d]);
  return tn__infer_set(ctx, 0, &out, err);
}

static tn_status infer_stack(tn_infer_ctx *ctx, tn_error *err)
{
  return infer_stacked(ctx, 1, tn__attr_int(tn_infer_operation(ctx), "num_elements", -1), err);
}

static tn_status infer_gather(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t *dims;
  int32_t rank = tn_infer_input(ctx, 1, &dims);
  return infer_stacked(ctx, 2, rank == 1 ? dims[0] : -1, err);
}

static tn_status infer_rows(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape unused;
  tn_status st = tn__infer_rank_at_least(ctx, 0, 1, &unused, err);
  return st == TN_OK ? tn__infer_scalar(ctx, err) : st;
}

/* ---- tables ---- */

#define OP(op, in, out, attributes, bits, shapes, text)                                           \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = attributes, \
    .traits = bits, .infer = shapes, .summary = text }
#define ELEMENT "element_dtype: type"
#define SHAPE "shape_type: {int32, int64}"

static const tn_op_def ops[] = {
  OP("TensorListFromTensor", "tensor: element_dtype, element_shape: shape_type", "output_handle: variant",
     ELEMENT "; " SHAPE, 0, infer_rows, "creates a list from the rows of a tensor"),
  OP("TensorListGather", "input_handle: variant, indices: int32, element_shape: int32", "values: element_dtype",
     ELEMENT, TN_TRAIT_DYNAMIC, infer_gather, "gathers elements of a list into a tensor"),
  OP("TensorListScatter", "tensor: element_dtype, indices: int32, element_shape: shape_type", "output_handle: variant",
     ELEMENT "; " SHAPE, 0, infer_rows, "creates a list by scattering the rows of a tensor"),
  OP("TensorListScatterIntoExistingList", "input_handle: variant, tensor: element_dtype, indices: int32",
     "output_handle: variant", ELEMENT, 0, tn__infer_scalar, "scatters the rows of a tensor into an existing list"),
  OP("TensorListScatterV2", "tensor: element_dtype, indices: int32, element_shape: shape_type, num_elements: int32",
     "output_handle: variant", ELEMENT "; " SHAPE, 0, infer_rows, "creates a list by scattering the rows of a tensor"),
  OP("TensorListSplit", "tensor: element_dtype, element_shape: shape_type, lengths: int64", "output_handle: variant",
     ELEMENT "; " SHAPE, 0, infer_rows, "splits a tensor into a list of parts"),
  OP("TensorListStack", "input_handle: variant, element_shape: int32", "tensor: element_dtype",
     ELEMENT "; num_elements: int = -1", TN_TRAIT_DYNAMIC, infer_stack, "stacks all elements of a list into a tensor"),
};

#define KERNEL(which, title, create_fn, prepare_fn, compute_fn)                                        \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C, \
    .create = create_fn, .prepare = prepare_fn, .compute = compute_fn }

static const tn_kernel_def kernels[] = {
  KERNEL("TensorListFromTensor", "tensor_list_from_tensor_cpu", NULL, rows_prepare, from_tensor_compute),
  KERNEL("TensorListGather", "tensor_list_gather_cpu", NULL, tn__list_prepare_dynamic, gather_compute),
  KERNEL("TensorListScatter", "tensor_list_scatter_cpu", NULL, scatter_prepare, scatter_compute),
  KERNEL("TensorListScatterIntoExistingList", "tensor_list_scatter_into_existing_cpu", NULL, existing_prepare,
         existing_compute),
  KERNEL("TensorListScatterV2", "tensor_list_scatter_v2_cpu", NULL, scatter_prepare, scatter_compute),
  KERNEL("TensorListSplit", "tensor_list_split_cpu", NULL, split_prepare, split_compute),
  KERNEL("TensorListStack", "tensor_list_stack_cpu", stack_create, tn__list_prepare_dynamic, stack_compute),
};

TN_OP_FAMILY(tensor_list_pieces)
