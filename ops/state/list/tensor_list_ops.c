/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by ops on tensor lists. */
#include <core/base/text.h>
#include <core/tensor/tensor_internal.h>
#include <ops/state/list/tensor_list_ops.h>

tn_status tn__list_input(const tn_kernel_ctx *ctx, uint32_t i, int64_t k, tn_dtype dtype, tn__list **out)
{
  tn_handle *h = ((tn_handle *const *)ctx->inputs[i]->data)[k];
  tn__list *l = *out = tn__handle_list(h);
  if (l == NULL)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "input %u is no tensor list, it is %s", i,
                        h == NULL ? "nothing" : h->cls->type_name);
  tn_dtype found = tn__list_kind_of(l)->dtype;
  if (dtype == TN_DTYPE_INVALID || found == dtype) return TN_OK;
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "input %u is a list of dtype %s, wanted %s", i,
                      tn_dtype_name(found), tn_dtype_name(dtype));
}

void tn__list_give(const tn_kernel_ctx *ctx, uint32_t i, int64_t k, tn__list *list)
{
  tn_handle **place = (tn_handle **)ctx->outputs[i]->data + k, *old = *place;
  *place = tn__list_handle(list);
  if (old != NULL) old->cls->unref(old);
}

tn_status tn__list_prepare(tn_prepare_ctx *ctx, tn_error *err) { return tn__want_rank(ctx, 0, 0, err); }

tn_status tn__list_prepare_scalar(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__list_prepare(ctx, err);
  return st == TN_OK ? tn__prepare_scalar(ctx, err) : st;
}

tn_status tn__list_prepare_dynamic(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__list_prepare(ctx, err);
  return st == TN_OK ? tn_prepare_dynamic(ctx, 0, err) : st;
}

tn_status tn__list_element_shape(const tn_kernel_ctx *ctx, uint32_t i, const tn__list *list, tn__shape *out)
{
  const tn__list_kind *kind = tn__list_kind_of(list);
  tn_status st = tn__shape_operand(ctx, i, out);
  return st == TN_OK ? tn__merge_or_fail(ctx->err, "shapes that the op and the list say", out, kind->dims, kind->rank)
                     : st;
}

tn_status tn__list_full_shape(const tn_kernel_ctx *ctx, tn__shape *shape, tn_tensor *const *items, int64_t n,
                              const char *what)
{
  char text[160];
  for (int64_t k = 0; k < n; k++) {
    if (items[k] == NULL) continue;
    tn_status st = tn__merge_or_fail(ctx->err, "elements of a list", shape, items[k]->dims, items[k]->rank);
    if (st != TN_OK) return st;
  }
  if (tn__shape_is_known(shape->dims, shape->rank)) return TN_OK;
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "%s, but the shape of elements is %s", what,
                      tn__format_shape(text, sizeof text, shape->dims, shape->rank));
}

tn_status tn__list_fits(const tn_kernel_ctx *ctx, const tn__list *list, const tn_view *tensor, int32_t skip)
{
  char found[160], wanted[160];
  const tn__list_kind *kind = tn__list_kind_of(list);
  if (tn__shape_fits(kind->dims, kind->rank, tensor->dims + skip, tensor->rank - skip)) return TN_OK;
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                      "an element of shape %s does not fit a list of elements of shape %s",
                      tn__format_shape(found, sizeof found, tensor->dims + skip, tensor->rank - skip),
                      tn__format_shape(wanted, sizeof wanted, kind->dims, kind->rank));
}
