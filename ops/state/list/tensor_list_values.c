/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor lists as values: TensorListConcatLists TensorListPushBackBatch, and AddN and ZerosLike of
 * lists. They accept tensors of lists of any shape and process them list by list. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <core/tensor/tensor_internal.h>
#include <ops/kernel/family.h>
#include <ops/state/list/tensor_list_ops.h>

/* ---- ConcatLists ---- */

static tn_status lists_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_same_shape(ctx, 0, 1, err);
  return st == TN_OK ? tn_prepare_output_like(ctx, 0, 0, err) : st;
}

static bool same_shapes(const tn__list_kind *a, const tn__list_kind *b)
{
  if (a->rank != b->rank) return false;
  for (int32_t d = 0; d < a->rank; d++)
    if (a->dims[d] != b->dims[d]) return false;
  return true;
}

/* The second list's elements are fetched before the first is locked, because both may share a store. */
static tn_status join_lists(tn_kernel_ctx *ctx, tn__list *a, tn__list *b, tn__list **out)
{
  int64_t n = tn__list_length(a), m = tn__list_length(b);
  tn_tensor **items;
  *out = NULL;
  if (n > INT32_MAX - m)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "lists of %lld and %lld elements are too long to concatenate",
                        (long long)n, (long long)m);
  tn_status st = tn__list_all(b, &items, ctx->err);
  if (st != TN_OK) return st;
  st = tn__list_change(a, n + m, 0, out, ctx->err);
  for (int64_t k = 0; st == TN_OK && k < m; k++) {
    tn__list_put(*out, n + k, items[k]);
    items[k] = NULL;
  }
  if (st == TN_OK) tn__list_done(*out);
  tn__list_all_destroy(items, m);
  return st;
}

static tn_status lists_compute(tn_kernel_ctx *ctx)
{
  tn_dtype dtype = (tn_dtype)(uintptr_t)ctx->state;
  char x[160], y[160];
  for (int64_t k = 0; k < ctx->inputs[0]->count; k++) {
    tn__list *a, *b, *out;
    tn_status st = tn__list_input(ctx, 0, k, dtype, &a);
    if (st == TN_OK) st = tn__list_input(ctx, 1, k, dtype, &b);
    if (st != TN_OK) return st;
    const tn__list_kind *p = tn__list_kind_of(a), *q = tn__list_kind_of(b);
    if (!same_shapes(p, q))
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "lists %lld have elements of different shapes, %s and %s",
                          (long long)k, tn__format_shape(x, sizeof x, p->dims, p->rank),
                          tn__format_shape(y, sizeof y, q->dims, q->rank));
    st = join_lists(ctx, a, b, &out);
    if (st != TN_OK) return st;
    tn__list_give(ctx, 0, k, out);
  }
  return TN_OK;
}

/* The state is the number of a dtype. */
static tn_status lists_create(const tn_operation *op, void **state, tn_error *err)
{
  (void)err;
  *state = (void *)(uintptr_t)tn__attr_type(op, "element_dtype");
  return TN_OK;
}

/* ---- PushBackBatch ---- */

static tn_status batch_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, 0, 1, err);
  if (st == TN_OK) st = tn__want_rank_at_least(ctx, 1, 1, err);
  if (st == TN_OK && ctx->inputs[0].dims[0] != ctx->inputs[1].dims[0])
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: there are %lld lists for %lld rows", tn_operation_type(ctx->op),
                        (long long)ctx->inputs[0].dims[0], (long long)ctx->inputs[1].dims[0]);
  return st == TN_OK ? tn_prepare_output_like(ctx, 0, 0, err) : st;
}

static tn_status push_row(tn_kernel_ctx *ctx, tn_tensor *whole, int64_t k)
{
  tn__list *list, *out;
  tn_tensor *row;
  tn_status st = tn__list_input(ctx, 0, k, whole->dtype, &list);
  if (st == TN_OK) st = tn__list_fits(ctx, list, ctx->inputs[1], 1);
  if (st != TN_OK) return st;
  int64_t n = tn__list_length(list); /* the maximum length is ignored here, as in TensorFlow */
  st = tn__rows_of(whole, k, 1, false, &row, ctx->err);
  if (st != TN_OK) return st;
  st = tn__list_change(list, n + 1, 0, &out, ctx->err);
  if (st != TN_OK) {
    tn_tensor_unref(row);
    return st;
  }
  tn__list_put(out, n, row);
  tn__list_done(out);
  tn__list_give(ctx, 0, k, out);
  return TN_OK;
}

static tn_status batch_compute(tn_kernel_ctx *ctx)
{
  tn_tensor *whole;
  tn_status st = tn_kernel_keep_input(ctx, 1, &whole);
  if (st != TN_OK) return st;
  for (int64_t k = 0; st == TN_OK && k < ctx->inputs[0]->count; k++) st = push_row(ctx, whole, k);
  tn_tensor_unref(whole);
  return st;
}

/* ---- zeros and sums ---- */

/* Lists may contain lists. Deeper nesting is rejected, because each level uses some stack. */
#define MAX_DEPTH 64

static tn_status too_deep(tn_error *err)
{
  return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "lists are nested more than %d levels deep", MAX_DEPTH);
}

static tn_status zeros_of_tensor(const tn_tensor *t, tn_tensor **out, int depth, tn_error *err);

static tn_status zeros_of(tn_handle *handle, tn_handle **out, int depth, tn_error *err)
{
  tn__list *list = tn__handle_list(handle), *zeros;
  tn_tensor **items;
  *out = NULL;
  if (handle == NULL) return TN_OK;
  if (list == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "a %s has no zeros", handle->cls->type_name);
  if (depth > MAX_DEPTH) return too_deep(err);
  int64_t n = tn__list_length(list);
  tn_status st = tn__list_all(list, &items, err);
  if (st != TN_OK) return st;
  st = tn__list_create(tn__list_kind_of(list), n, &zeros, err);
  for (int64_t k = 0; st == TN_OK && k < n; k++) {
    tn_tensor *t = NULL;
    if (items[k] != NULL) st = zeros_of_tensor(items[k], &t, depth, err);
    if (st == TN_OK) tn__list_put(zeros, k, t);
  }
  tn__list_all_destroy(items, n);
  if (st == TN_OK) *out = tn__list_handle(zeros);
  else tn__list_unref(zeros);
  return st;
}

static tn_status zeros_of_tensor(const tn_tensor *t, tn_tensor **out, int depth, tn_error *err)
{
  if (t->dtype != TN_VARIANT && t->dtype != TN_BOOL && !tn__can_add(t->dtype))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "dtype %s has no zeros", tn_dtype_name(t->dtype));
  tn_status st = tn__zeros(t->dtype, t->dims, t->rank, out, err);
  for (int64_t k = 0; st == TN_OK && t->dtype == TN_VARIANT && k < t->count; k++)
    st = zeros_of(((tn_handle *const *)t->data)[k], (tn_handle **)(*out)->data + k, depth + 1, err);
  if (st == TN_OK) return TN_OK;
  tn_tensor_unref(*out);
  *out = NULL;
  return st;
}

static tn_status sum_of_tensors(tn_tensor *a, tn_tensor *b, tn_tensor **out, int depth, tn_error *err);

/* Two lists can be added if the shapes of their elements can be merged; the sum has the merged
 * shape. */
static tn_status sum_kind(tn__list *a, tn__list *b, tn__shape *shape, tn__list_kind *out, tn_error *err)
{
  const tn__list_kind *p = tn__list_kind_of(a), *q = tn__list_kind_of(b);
  if (p->dtype != q->dtype)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "lists of dtypes %s and %s cannot be added", tn_dtype_name(p->dtype),
                        tn_dtype_name(q->dtype));
  if (tn__list_length(a) != tn__list_length(b))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "lists of %lld and %lld elements cannot be added",
                        (long long)tn__list_length(a), (long long)tn__list_length(b));
  tn__shape_set(shape, p->dims, p->rank);
  tn_status st = tn__merge_or_fail(err, "elements of lists that are added", shape, q->dims, q->rank);
  *out = (tn__list_kind){ p->dtype, shape->rank, shape->dims, p->max };
  return st;
}

static tn_status sum_items(tn__list *sum, tn_tensor *const *x, tn_tensor *const *y, int depth, tn_error *err)
{
  tn_status st = TN_OK;
  for (int64_t k = 0; st == TN_OK && k < tn__list_length(sum); k++) {
    tn_tensor *t = NULL;
    if (x[k] != NULL && y[k] != NULL) st = sum_of_tensors(x[k], y[k], &t, depth, err);
    else t = tn_tensor_ref(x[k] != NULL ? x[k] : y[k]); /* unset elements count as zeros */
    if (st == TN_OK) tn__list_put(sum, k, t);
  }
  return st;
}

static tn_status sum_of_lists(tn__list *a, tn__list *b, tn__list **out, int depth, tn_error *err)
{
  tn__shape shape;
  tn__list_kind kind;
  tn_tensor **x = NULL, **y = NULL;
  *out = NULL;
  if (depth > MAX_DEPTH) return too_deep(err);
  tn_status st = sum_kind(a, b, &shape, &kind, err);
  int64_t n = tn__list_length(a);
  if (st == TN_OK) st = tn__list_all(a, &x, err);
  if (st == TN_OK) st = tn__list_all(b, &y, err);
  if (st == TN_OK) st = tn__list_create(&kind, n, out, err);
  if (st == TN_OK) st = sum_items(*out, x, y, depth, err);
  tn__list_all_destroy(x, n);
  tn__list_all_destroy(y, n);
  if (st == TN_OK) return TN_OK;
  tn__list_unref(*out);
  *out = NULL;
  return st;
}

/* The caller owns *out. If one operand is NULL, the sum is the other. */
static tn_status sum_of(tn_handle *a, tn_handle *b, tn_handle **out, int depth, tn_error *err)
{
  tn__list *p = tn__handle_list(a), *q = tn__handle_list(b), *sum;
  *out = NULL;
  if (p != NULL && q != NULL) {
    tn_status st = sum_of_lists(p, q, &sum, depth, err);
    if (st == TN_OK) *out = tn__list_handle(sum);
    return st;
  }
  if ((a != NULL && p == NULL) || (b != NULL && q == NULL))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "a %s cannot be added",
                        a != NULL && p == NULL ? a->cls->type_name : b->cls->type_name);
  *out = a != NULL ? a : b;
  if (*out != NULL) (*out)->cls->ref(*out);
  return TN_OK;
}

static tn_status sum_of_tensors(tn_tensor *a, tn_tensor *b, tn_tensor **out, int depth, tn_error *err)
{
  char x[160], y[160];
  *out = NULL;
  if (!tn__shape_fits(a->dims, a->rank, b->dims, b->rank))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "elements of shapes %s and %s cannot be added",
                        tn__format_shape(x, sizeof x, a->dims, a->rank),
                        tn__format_shape(y, sizeof y, b->dims, b->rank));
  if (a->dtype != TN_VARIANT && !tn__can_add(a->dtype))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "elements of dtype %s cannot be added", tn_dtype_name(a->dtype));
  tn_status st = tn_tensor_create(a->dtype, a->dims, a->rank, out, err);
  if (st == TN_OK && a->dtype != TN_VARIANT) tn__add_elements(a->dtype, (*out)->data, a->data, b->data, a->count);
  for (int64_t k = 0; st == TN_OK && a->dtype == TN_VARIANT && k < a->count; k++)
    st = sum_of(((tn_handle *const *)a->data)[k], ((tn_handle *const *)b->data)[k], (tn_handle **)(*out)->data + k,
                depth + 1, err);
  if (st == TN_OK) return TN_OK;
  tn_tensor_unref(*out);
  *out = NULL;
  return st;
}

/* ---- the ops ---- */

static tn_status like_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  for (uint32_t i = 1; i < ctx->n_inputs; i++) {
    tn_status st = tn__want_same_shape(ctx, 0, i, err);
    if (st != TN_OK) return st;
  }
  return tn_prepare_output_like(ctx, 0, 0, err);
}

/* Sets element k of the output to the handle; takes over the reference. */
static void give(const tn_kernel_ctx *ctx, int64_t k, tn_handle *handle)
{
  tn_handle **place = (tn_handle **)ctx->outputs[0]->data + k, *old = *place;
  *place = handle;
  if (old != NULL) old->cls->unref(old);
}

static tn_status zeros_compute(tn_kernel_ctx *ctx)
{
  tn_status st = TN_OK;
  for (int64_t k = 0; st == TN_OK && k < ctx->inputs[0]->count; k++) {
    tn_handle *out;
    st = zeros_of(((tn_handle *const *)ctx->inputs[0]->data)[k], &out, 0, ctx->err);
    if (st == TN_OK) give(ctx, k, out);
  }
  return st;
}

static tn_status sum_compute(tn_kernel_ctx *ctx)
{
  tn_status st = TN_OK;
  for (int64_t k = 0; st == TN_OK && k < ctx->outputs[0]->count; k++) {
    tn_handle *sum = ((tn_handle *const *)ctx->inputs[0]->data)[k];
    if (sum != NULL) sum->cls->ref(sum);
    for (uint32_t i = 1; st == TN_OK && i < ctx->n_inputs; i++) {
      tn_handle *next;
      st = sum_of(sum, ((tn_handle *const *)ctx->inputs[i]->data)[k], &next, 0, ctx->err);
      if (sum != NULL) sum->cls->unref(sum);
      sum = next;
    }
    give(ctx, k, sum);
  }
  return st;
}

/* ---- shape functions ---- */

static tn_status infer_batch(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape handles;
  tn_status st = tn__infer_rank(ctx, 0, 1, &handles, err);
  return st == TN_OK ? tn__infer_set(ctx, 0, &handles, err) : st;
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "TensorListConcatLists", .inputs = "input_a: variant, input_b: variant",
    .outputs = "output: variant", .attrs = "element_dtype: type", .infer = tn__infer_merged,
    .summary = "concatenates pairs of lists" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "TensorListPushBackBatch",
    .inputs = "input_handles: variant, tensor: element_dtype", .outputs = "output_handles: variant",
    .attrs = "element_dtype: type", .infer = infer_batch, .summary = "appends an element to each list" },
};

#define KERNEL(which, constraint, title, create_fn, prepare_fn, compute_fn)                              \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .types = constraint, .name = title, \
    .rank = TN_RANK_C, .create = create_fn, .prepare = prepare_fn, .compute = compute_fn }

static const tn_kernel_def kernels[] = {
  KERNEL("TensorListConcatLists", NULL, "tensor_list_concat_lists_cpu", lists_create, lists_prepare, lists_compute),
  KERNEL("TensorListPushBackBatch", NULL, "tensor_list_push_back_batch_cpu", NULL, batch_prepare, batch_compute),
  KERNEL("AddN", "T=variant", "add_n_lists_cpu", NULL, like_prepare, sum_compute),
  KERNEL("ZerosLike", "T=variant", "zeros_like_lists_cpu", NULL, like_prepare, zeros_compute),
};

TN_OP_FAMILY(tensor_list_values)
