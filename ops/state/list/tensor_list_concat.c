/* SPDX-License-Identifier: Apache-2.0 */
/* The elements of a tensor list, concatenated: TensorListConcat TensorListConcatV2.
 *
 * Elements may differ in their first dimension. An element that is not set becomes rows of zeros.
 * Their number is taken from leading_dims, else from the shape of elements, else from the elements
 * that are set, if they agree. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <core/tensor/tensor_internal.h>
#include <ops/kernel/family.h>
#include <ops/state/list/tensor_list_ops.h>

/* The known part of the elements' shape: first dimension (-1 = unknown) and the others. */
typedef struct parts {
  int64_t first;
  tn__shape rest;
  bool first_is_said; /* given by the op or the list, so valid for all elements */
} parts;

/* State of TensorListConcat: the attribute. Its first dimension is ignored, as in TensorFlow. */
typedef struct concat_state {
  const int64_t *dims;
  int32_t rank;
} concat_state;

static void destroy_state(void *state) { tn__free(state, sizeof(concat_state)); }

static tn_status concat_create(const tn_operation *op, void **state, tn_error *err)
{
  concat_state *s = tn__zalloc(sizeof *s);
  *state = NULL;
  if (s == NULL) return tn__no_memory(err, "kernel", sizeof *s);
  tn_status st = tn_operation_attr_shape(op, "element_shape", &s->dims, &s->rank, err);
  if (st == TN_OK && s->rank == 0)
    st = tn_error_set(err, TN_INVALID_ARGUMENT,
                      "attribute 'element_shape' is that of a scalar, only rows are concatenated");
  if (st == TN_OK) *state = s;
  else destroy_state(s);
  return st;
}

static tn_status concat_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__list_prepare(ctx, err);
  if (st == TN_OK && ctx->n_inputs > 2) st = tn__want_rank(ctx, 2, 1, err);
  if (st == TN_OK) st = tn_prepare_dynamic(ctx, 0, err);
  return st == TN_OK ? tn_prepare_dynamic(ctx, 1, err) : st;
}

static void shape_to_parts(const int64_t *dims, int32_t rank, bool with_first, parts *out)
{
  out->first = rank > 0 && with_first ? dims[0] : -1;
  out->first_is_said = out->first >= 0;
  tn__shape_unknown(&out->rest);
  if (rank > 0) tn__shape_set(&out->rest, dims + 1, rank - 1);
}

/* The shape given by the op and, in the second version, by the list. */
static tn_status said_parts(tn_kernel_ctx *ctx, const tn__list *list, parts *out)
{
  const concat_state *s = ctx->state;
  tn__shape shape;
  if (s != NULL) {
    shape_to_parts(s->dims, s->rank, false, out);
    return TN_OK;
  }
  tn_status st = tn__list_element_shape(ctx, 1, list, &shape);
  if (st == TN_OK && shape.rank == 0)
    st = tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "elements of the list are scalars, only rows are concatenated");
  if (st == TN_OK) shape_to_parts(shape.dims, shape.rank, true, out);
  return st;
}

static tn_status check_element(tn_kernel_ctx *ctx, parts *p, const tn_tensor *t, int64_t k)
{
  if (t->rank == 0)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                        "element %lld of the list is a scalar, only rows are concatenated", (long long)k);
  if (p->first_is_said && t->dims[0] != p->first)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "element %lld of the list has %lld rows, wanted %lld",
                        (long long)k, (long long)t->dims[0], (long long)p->first);
  return tn__merge_or_fail(ctx->err, "elements of a list after their first dimensions", &p->rest, t->dims + 1,
                           t->rank - 1);
}

/* Completes the shape from the elements that are set. */
static tn_status ask_elements(tn_kernel_ctx *ctx, parts *p, tn_tensor *const *items, int64_t n)
{
  char text[160];
  int64_t common = -2; /* -2: no element yet, -1: they differ */
  for (int64_t k = 0; k < n; k++) {
    if (items[k] == NULL) continue;
    tn_status st = check_element(ctx, p, items[k], k);
    if (st != TN_OK) return st;
    common = common == -2 || common == items[k]->dims[0] ? items[k]->dims[0] : -1;
  }
  if (!p->first_is_said && common >= 0) p->first = common;
  if (tn__shape_is_known(p->rest.dims, p->rest.rank)) return TN_OK;
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                      "no element is set that could be concatenated, and the shape of elements but for the first "
                      "dimension is %s",
                      tn__format_shape(text, sizeof text, p->rest.dims, p->rest.rank));
}

/* The number of rows of element k. */
static tn_status rows_of(tn_kernel_ctx *ctx, const parts *p, const tn_tensor *item, int64_t k, int64_t *rows)
{
  const tn_view *leading = ctx->n_inputs > 2 ? ctx->inputs[2] : NULL;
  bool said = leading != NULL && k < leading->count;
  *rows = said ? ((const int64_t *)leading->data)[k] : p->first;
  if (item != NULL) *rows = item->dims[0];
  if (*rows >= 0) return TN_OK;
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "element %lld of the list is not set, and %s", (long long)k,
                      said ? "leading_dims has a number below 0 for it" : "its number of rows is not known");
}

static tn_status give_lengths(tn_kernel_ctx *ctx, const parts *p, tn_tensor *const *items, int64_t n, int64_t *total)
{
  tn_status st = tn_kernel_allocate(ctx, 1, &n, 1);
  *total = 0;
  for (int64_t k = 0; st == TN_OK && k < n; k++) {
    int64_t *rows = (int64_t *)ctx->outputs[1]->data + k;
    st = rows_of(ctx, p, items[k], k, rows);
    if (st == TN_OK && __builtin_add_overflow(*total, *rows, total))
      st = tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "the elements of the list have too many rows together");
  }
  return st;
}

static tn_status join(tn_kernel_ctx *ctx, const parts *p, tn_tensor *const *items, int64_t n)
{
  int64_t dims[TN_MAX_RANK + 1], row = 1;
  tn_status st = give_lengths(ctx, p, items, n, &dims[0]);
  for (int32_t d = 0; d < p->rest.rank; d++) {
    dims[d + 1] = p->rest.dims[d];
    row *= p->rest.dims[d];
  }
  if (st == TN_OK) st = tn_kernel_allocate(ctx, 0, dims, p->rest.rank + 1);
  return st == TN_OK ? tn__put_together(ctx, 0, items, n, ctx->outputs[1]->data, row) : st;
}

static tn_status concat_compute(tn_kernel_ctx *ctx)
{
  tn__list *list;
  parts p;
  tn_tensor **items;
  tn_status st = tn__list_input(ctx, 0, 0, ctx->outputs[0]->dtype, &list);
  if (st == TN_OK) st = said_parts(ctx, list, &p);
  if (st == TN_OK) st = tn__list_all(list, &items, ctx->err);
  if (st != TN_OK) return st;
  int64_t n = tn__list_length(list);
  st = ask_elements(ctx, &p, items, n);
  if (st == TN_OK) st = join(ctx, &p, items, n);
  tn__list_all_destroy(items, n);
  return st;
}

/* ---- shape functions ---- */

static tn_status infer_concat(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t *dims, unknown = -1;
  int32_t rank;
  tn__shape out;
  if (tn_infer_n_inputs(ctx) > 1) {
    tn__infer_shape_operand(ctx, 1, &out);
  } else {
    tn_status st = tn_operation_attr_shape(tn_infer_operation(ctx), "element_shape", &dims, &rank, err);
    if (st != TN_OK) return st;
    tn__shape_set(&out, dims, rank);
  }
  if (out.rank > 0) out.dims[0] = -1;
  else tn__shape_unknown(&out);
  tn_status st = tn__infer_set(ctx, 0, &out, err);
  return st == TN_OK ? tn_infer_output(ctx, 1, &unknown, 1, err) : st;
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "TensorListConcat", .inputs = "input_handle: variant",
    .outputs = "tensor: element_dtype, lengths: int64", .attrs = "element_dtype: type; element_shape: shape = ?",
    .traits = TN_TRAIT_DYNAMIC, .infer = infer_concat, .summary = "concatenates the elements of a list" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "TensorListConcatV2",
    .inputs = "input_handle: variant, element_shape: shape_type, leading_dims: int64",
    .outputs = "tensor: element_dtype, lengths: int64", .attrs = "element_dtype: type; shape_type: {int32, int64}",
    .traits = TN_TRAIT_DYNAMIC, .infer = infer_concat, .summary = "concatenates the elements of a list" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "TensorListConcat", .device = "CPU", .name = "tensor_list_concat_cpu",
    .rank = TN_RANK_C, .create = concat_create, .destroy = destroy_state, .prepare = concat_prepare,
    .compute = concat_compute },
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "TensorListConcatV2", .device = "CPU", .name = "tensor_list_concat_v2_cpu",
    .rank = TN_RANK_C, .prepare = concat_prepare, .compute = concat_compute },
};

TN_OP_FAMILY(tensor_list_concat)
