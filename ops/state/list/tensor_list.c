/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor lists, element by element: EmptyTensorList TensorListReserve TensorListLength
 * TensorListElementShape TensorListResize TensorListPushBack TensorListPopBack TensorListGetItem
 * TensorListSetItem.
 *
 * Lists are values; ops/state/list/tensor_list_store.h explains how a list is changed without a
 * copy. Tensors are referenced, not copied. An element that is not set reads as zeros. */
#include <core/base/text.h>
#include <core/tensor/tensor_internal.h>
#include <ops/kernel/family.h>
#include <ops/state/list/tensor_list_ops.h>

/* ---- new lists ---- */

static tn_status new_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, 1, 0, err);
  return st == TN_OK ? tn__prepare_scalar(ctx, err) : st;
}

static tn_status new_list(tn_kernel_ctx *ctx, int64_t length, int64_t max)
{
  tn__shape shape;
  tn__list *list;
  tn_status st = tn__shape_operand(ctx, 0, &shape);
  if (st != TN_OK) return st;
  const tn__list_kind kind = { (tn_dtype)(uintptr_t)ctx->state, shape.rank, shape.dims, max };
  st = tn__list_create(&kind, length, &list, ctx->err);
  if (st == TN_OK) tn__list_give(ctx, 0, 0, list);
  return st;
}

/* The state is the number of a dtype. */
static tn_status new_create(const tn_operation *op, void **state, tn_error *err)
{
  (void)err;
  *state = (void *)(uintptr_t)tn__attr_type(op, "element_dtype");
  return TN_OK;
}

static tn_status empty_compute(tn_kernel_ctx *ctx)
{
  return new_list(ctx, 0, *(const int32_t *)ctx->inputs[1]->data);
}

static tn_status reserve_compute(tn_kernel_ctx *ctx)
{
  int32_t n = *(const int32_t *)ctx->inputs[1]->data;
  if (n < 0) return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "the size of a list is %d, wanted 0 or more", (int)n);
  return new_list(ctx, n, -1);
}

/* ---- properties of a list ---- */

static tn_status length_compute(tn_kernel_ctx *ctx)
{
  tn__list *list;
  tn_status st = tn__list_input(ctx, 0, 0, TN_DTYPE_INVALID, &list);
  if (st == TN_OK) *(int32_t *)ctx->outputs[0]->data = (int32_t)tn__list_length(list);
  return st;
}

/* -1 for an unknown rank. */
static tn_status shape_compute(tn_kernel_ctx *ctx)
{
  tn__list *list;
  tn_status st = tn__list_input(ctx, 0, 0, TN_DTYPE_INVALID, &list);
  if (st != TN_OK) return st;
  const tn__list_kind *kind = tn__list_kind_of(list);
  int64_t rank = kind->rank;
  st = tn_kernel_allocate(ctx, 0, &rank, rank >= 0);
  for (int64_t d = 0; st == TN_OK && d < (rank < 0 ? 1 : rank); d++) {
    int64_t dim = rank < 0 ? -1 : kind->dims[d];
    if (ctx->outputs[0]->dtype == TN_INT64) ((int64_t *)ctx->outputs[0]->data)[d] = dim;
    else ((int32_t *)ctx->outputs[0]->data)[d] = (int32_t)dim;
  }
  return st;
}

/* ---- changes ---- */

/* Input 1 is an index or a length. */
static tn_status indexed_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__list_prepare(ctx, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 1, 0, err);
  return st == TN_OK ? tn__prepare_scalar(ctx, err) : st;
}

static tn_status resize_compute(tn_kernel_ctx *ctx)
{
  tn__list *list, *out;
  int32_t n = *(const int32_t *)ctx->inputs[1]->data;
  tn_status st = tn__list_input(ctx, 0, 0, TN_DTYPE_INVALID, &list);
  if (st != TN_OK) return st;
  if (n < 0)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "the new size of a list is %d, wanted 0 or more", (int)n);
  st = tn__list_change(list, n, 0, &out, ctx->err);
  if (st != TN_OK) return st;
  tn__list_done(out);
  tn__list_give(ctx, 0, 0, out);
  return TN_OK;
}

/* Outputs a version of the list with input `value` at index i. */
static tn_status put(tn_kernel_ctx *ctx, tn__list *list, int64_t i, uint32_t value)
{
  tn__list *out;
  tn_tensor *tensor;
  int64_t length = tn__list_length(list);
  tn_status st = tn_kernel_keep_input(ctx, value, &tensor);
  if (st != TN_OK) return st;
  st = tn__list_change(list, i < length ? length : i + 1, i < length, &out, ctx->err);
  if (st != TN_OK) {
    tn_tensor_unref(tensor);
    return st;
  }
  tn__list_put(out, i, tensor);
  tn__list_done(out);
  tn__list_give(ctx, 0, 0, out);
  return TN_OK;
}

static tn_status push_compute(tn_kernel_ctx *ctx)
{
  const tn_view *value = ctx->inputs[1];
  tn__list *list;
  tn_status st = tn__list_input(ctx, 0, 0, value->dtype, &list);
  if (st == TN_OK) st = tn__list_fits(ctx, list, value, 0);
  if (st != TN_OK) return st;
  int64_t max = tn__list_kind_of(list)->max, length = tn__list_length(list);
  if ((max >= 0 && length >= max) || length == INT32_MAX)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "the list has %lld elements, at most %lld are allowed",
                        (long long)length, (long long)(max >= 0 ? max : INT32_MAX));
  return put(ctx, list, length, 1);
}

/* The state is not NULL if the list may grow to an index. */
static tn_status set_create(const tn_operation *op, void **state, tn_error *err)
{
  static const char grows;
  (void)err;
  *state = tn__attr_bool(op, "resize_if_index_out_of_bounds", false) ? (void *)(uintptr_t)&grows : NULL;
  return TN_OK;
}

static tn_status bad_index(const tn_kernel_ctx *ctx, int32_t index, int64_t length)
{
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "element %d of a list of %lld is asked for", (int)index,
                      (long long)length);
}

static tn_status set_compute(tn_kernel_ctx *ctx)
{
  const tn_view *value = ctx->inputs[2];
  int32_t i = *(const int32_t *)ctx->inputs[1]->data;
  tn__list *list;
  tn_status st = tn__list_input(ctx, 0, 0, value->dtype, &list);
  if (st != TN_OK) return st;
  if (i < 0 || i == INT32_MAX || (ctx->state == NULL && i >= tn__list_length(list)))
    return bad_index(ctx, i, tn__list_length(list));
  st = tn__list_fits(ctx, list, value, 0);
  return st == TN_OK ? put(ctx, list, i, 2) : st;
}

/* ---- reading ---- */

static tn_status get_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__list_prepare(ctx, err);
  if (st == TN_OK && ctx->inputs[1].count != 1) st = tn__want_rank(ctx, 1, 0, err);
  return st == TN_OK ? tn_prepare_dynamic(ctx, 0, err) : st;
}

/* Zeros. If the shape is not given, and `ask_others`, that of the other elements is used. */
static tn_status zeros(tn_kernel_ctx *ctx, tn__list *list, uint32_t shape_input, bool ask_others, tn_tensor **out)
{
  tn__shape shape;
  tn_tensor **items = NULL;
  int64_t n = 0;
  tn_status st = tn__list_element_shape(ctx, shape_input, list, &shape);
  if (st == TN_OK && ask_others && !tn__shape_is_known(shape.dims, shape.rank)) {
    st = tn__list_all(list, &items, ctx->err);
    if (st == TN_OK) n = tn__list_length(list);
  }
  if (st == TN_OK) st = tn__list_full_shape(ctx, &shape, items, n, "an element that is not set is read");
  tn__list_all_destroy(items, n);
  return st == TN_OK ? tn__zeros(tn__list_kind_of(list)->dtype, shape.dims, shape.rank, out, ctx->err) : st;
}

static tn_status give_tensor(tn_kernel_ctx *ctx, uint32_t output, tn_tensor *tensor)
{
  tn_status st = tn_kernel_set_output(ctx, output, tensor);
  tn_tensor_unref(tensor);
  return st;
}

static tn_status get_compute(tn_kernel_ctx *ctx)
{
  int32_t i = *(const int32_t *)ctx->inputs[1]->data;
  tn__list *list;
  tn_status st = tn__list_input(ctx, 0, 0, ctx->outputs[0]->dtype, &list);
  if (st != TN_OK) return st;
  if (i < 0 || i >= tn__list_length(list)) return bad_index(ctx, i, tn__list_length(list));
  tn_tensor *tensor = tn__list_get(list, i);
  if (tensor == NULL) st = zeros(ctx, list, 2, true, &tensor);
  return st == TN_OK ? give_tensor(ctx, 0, tensor) : st;
}

static tn_status pop_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__list_prepare_scalar(ctx, err);
  return st == TN_OK ? tn_prepare_dynamic(ctx, 1, err) : st;
}

static tn_status pop_compute(tn_kernel_ctx *ctx)
{
  tn__list *list, *out;
  tn_status st = tn__list_input(ctx, 0, 0, ctx->outputs[1]->dtype, &list);
  if (st != TN_OK) return st;
  int64_t n = tn__list_length(list);
  if (n == 0) return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "cannot pop an element from an empty list");
  tn_tensor *tensor = tn__list_get(list, n - 1);
  if (tensor == NULL) st = zeros(ctx, list, 1, false, &tensor);
  if (st == TN_OK) st = give_tensor(ctx, 1, tensor);
  if (st == TN_OK) st = tn__list_change(list, n - 1, 0, &out, ctx->err);
  if (st != TN_OK) return st;
  tn__list_done(out);
  tn__list_give(ctx, 0, 0, out);
  return TN_OK;
}

/* ---- shape functions ---- */

static tn_status infer_new(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape unused;
  tn_status st = tn__infer_rank(ctx, 1, 0, &unused, err);
  return st == TN_OK ? tn__infer_scalar(ctx, err) : st;
}

static tn_status infer_get(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape shape;
  tn__infer_shape_operand(ctx, 2, &shape);
  return tn__infer_set(ctx, 0, &shape, err);
}

static tn_status infer_pop(tn_infer_ctx *ctx, tn_error *err)
{
  tn_status st = tn_infer_output(ctx, 0, NULL, 0, err);
  return st == TN_OK ? tn_infer_output(ctx, 1, NULL, -1, err) : st;
}

/* ---- tables ---- */

#define OP(op, in, out, attributes, bits, shapes, text)                                           \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = attributes, \
    .traits = bits, .infer = shapes, .summary = text }
#define ELEMENT "element_dtype: type"
#define SHAPE "shape_type: {int32, int64}"

static const tn_op_def ops[] = {
  OP("EmptyTensorList", "element_shape: shape_type, max_num_elements: int32", "handle: variant", ELEMENT "; " SHAPE, 0,
     infer_new, "empty list of tensors"),
  OP("TensorListElementShape", "input_handle: variant", "element_shape: shape_type", SHAPE, TN_TRAIT_DYNAMIC,
     tn__infer_unknown, "element shape of a list"),
  OP("TensorListGetItem", "input_handle: variant, index: int32, element_shape: Tshape", "item: element_dtype",
     ELEMENT "; Tshape: {int32, int64} = int32", TN_TRAIT_DYNAMIC, infer_get, "element of a list"),
  OP("TensorListLength", "input_handle: variant", "length: int32", "", 0, tn__infer_scalar,
     "number of elements of a list"),
  OP("TensorListPopBack", "input_handle: variant, element_shape: int32",
     "output_handle: variant, tensor: element_dtype", ELEMENT, TN_TRAIT_DYNAMIC, infer_pop,
     "removes and returns the last element of a list"),
  OP("TensorListPushBack", "input_handle: variant, tensor: element_dtype", "output_handle: variant", ELEMENT, 0,
     tn__infer_scalar, "appends an element to a list"),
  OP("TensorListReserve", "element_shape: shape_type, num_elements: int32", "handle: variant", ELEMENT "; " SHAPE, 0,
     infer_new, "list with unset elements"),
  OP("TensorListResize", "input_handle: variant, size: int32", "output_handle: variant", "", 0, tn__infer_scalar,
     "truncates a list, or extends it with unset elements"),
  OP("TensorListSetItem", "input_handle: variant, index: int32, item: element_dtype", "output_handle: variant",
     ELEMENT "; resize_if_index_out_of_bounds: bool = false", 0, tn__infer_scalar, "replaces an element of a list"),
};

#define KERNEL(which, title, create_fn, prepare_fn, compute_fn)                                        \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C, \
    .create = create_fn, .prepare = prepare_fn, .compute = compute_fn }

static const tn_kernel_def kernels[] = {
  KERNEL("EmptyTensorList", "empty_tensor_list_cpu", new_create, new_prepare, empty_compute),
  KERNEL("TensorListElementShape", "tensor_list_element_shape_cpu", NULL, tn__list_prepare_dynamic, shape_compute),
  KERNEL("TensorListGetItem", "tensor_list_get_item_cpu", NULL, get_prepare, get_compute),
  KERNEL("TensorListLength", "tensor_list_length_cpu", NULL, tn__list_prepare_scalar, length_compute),
  KERNEL("TensorListPopBack", "tensor_list_pop_back_cpu", NULL, pop_prepare, pop_compute),
  KERNEL("TensorListPushBack", "tensor_list_push_back_cpu", NULL, tn__list_prepare_scalar, push_compute),
  KERNEL("TensorListReserve", "tensor_list_reserve_cpu", new_create, new_prepare, reserve_compute),
  KERNEL("TensorListResize", "tensor_list_resize_cpu", NULL, indexed_prepare, resize_compute),
  KERNEL("TensorListSetItem", "tensor_list_set_item_cpu", set_create, indexed_prepare, set_compute),
};

TN_OP_FAMILY(tensor_list)
