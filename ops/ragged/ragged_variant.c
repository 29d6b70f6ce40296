/* SPDX-License-Identifier: Apache-2.0 */
/* Ragged tensors as elements of dtype variant: RaggedTensorToVariant RaggedTensorFromVariant, and the gradient
 * RaggedTensorToVariantGradient. An element is immutable and holds references to its splits and values; rows of a
 * larger tensor share its memory. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <core/tensor/tensor_internal.h>
#include <ops/kernel/elements/elements.h>
#include <ops/kernel/family.h>
#include <ops/kernel/move/pieces.h>
#include <ops/kernel/operands.h>
#include <ops/ragged/ragged.h>
#include <stdatomic.h>
#include <string.h>

/* ---- elements ---- */

typedef struct ragged {
  tn_handle handle; /* must be first: tensor elements point to it */
  _Atomic uint32_t refs;
  uint32_t levels;
  tn_tensor *parts[]; /* the splits of each level, then the values; references */
} ragged;

static size_t ragged_bytes(uint32_t levels) { return sizeof(ragged) + (levels + (size_t)1) * sizeof(tn_tensor *); }

static void ref_ragged(tn_handle *h)
{
  atomic_fetch_add_explicit(&((ragged *)h)->refs, 1, memory_order_relaxed);
}

/* Values are no variants, so this does not recurse. */
static void unref_ragged(tn_handle *h)
{
  ragged *r = (ragged *)h;
  if (atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) != 1) return;
  tn__drop_tensors(r->parts, (int64_t)r->levels + 1);
  tn__free(r, ragged_bytes(r->levels));
}

static const tn_handle_class ragged_class = { .struct_size = sizeof ragged_class, .type_name = "RaggedTensorVariant",
                                              .ref = ref_ragged, .unref = unref_ragged };

static tn_status new_ragged(uint32_t levels, ragged **out, tn_error *err)
{
  *out = tn__zalloc(ragged_bytes(levels));
  if (*out == NULL) return tn__no_memory(err, "ragged tensor", ragged_bytes(levels));
  (*out)->handle.cls = &ragged_class;
  atomic_init(&(*out)->refs, 1);
  (*out)->levels = levels;
  return TN_OK;
}

/* Sets element k of output 0; takes over the reference. */
static void give(const tn_kernel_ctx *ctx, int64_t k, ragged *r)
{
  tn_handle **place = (tn_handle **)ctx->outputs[0]->data + k, *old = *place;
  *place = &r->handle;
  if (old != NULL) old->cls->unref(old);
}

/* ---- RaggedTensorToVariant ---- */

/* Inputs: nested splits, values. */
static tn_status to_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  uint32_t levels = ctx->n_inputs - 1;
  bool batched = tn__attr_bool(ctx->op, "batched_input", false);
  const tn_view *first = &ctx->inputs[0];
  tn_status st = TN_OK;
  for (uint32_t i = 0; st == TN_OK && i < levels; i++) {
    st = tn__want_rank(ctx, i, 1, err);
    if (st == TN_OK && ctx->inputs[i].count == 0)
      st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input %u has no row splits", tn_operation_type(ctx->op), i);
  }
  if (st == TN_OK && (levels > 0 || batched)) st = tn__want_rank_at_least(ctx, levels, 1, err);
  if (st != TN_OK) return st;
  int64_t rows = levels > 0 ? first->count - 1 : 0;
  if (levels == 0 && batched) rows = first->dims[0];
  ctx->cost_ns = 200 + (batched ? 200 * (double)rows : 0);
  return tn_prepare_output(ctx, 0, &rows, batched, err);
}

static tn_status check_levels(const tn_kernel_ctx *ctx)
{
  uint32_t levels = ctx->n_inputs - 1;
  tn__poll poll = tn__poll_of(ctx);
  tn_status st = TN_OK;
  for (uint32_t l = 0; st == TN_OK && l < levels; l++) {
    const tn_view *next = ctx->inputs[l + 1];
    st = tn__splits_check(ctx, l, l + 1 < levels ? next->count - 1 : next->dims[0], &poll);
  }
  return st;
}

/* The tensor as one element. */
static tn_status whole(tn_kernel_ctx *ctx)
{
  ragged *r;
  tn_status st = new_ragged(ctx->n_inputs - 1, &r, ctx->err);
  for (uint32_t i = 0; st == TN_OK && i < ctx->n_inputs; i++) st = tn_kernel_keep_input(ctx, i, &r->parts[i]);
  if (st == TN_OK) give(ctx, 0, r);
  else if (r != NULL) unref_ragged(&r->handle);
  return st;
}

/* Splits [from, to] of a level, less the first of them. */
static tn_status splits_of(const tn_view *splits, int64_t from, int64_t to, tn_tensor **out, tn_error *err)
{
  int64_t n = to - from + 1, first = tn__view_int_at(splits, from);
  tn_status st = tn_tensor_create(splits->dtype, &n, 1, out, err);
  if (st != TN_OK) return st;
  tn_view made = { .data = tn_tensor_data(*out), .dtype = splits->dtype };
  for (int64_t k = 0; k < n; k++) tn__split_put(&made, k, tn__view_int_at(splits, from + k) - first);
  return TN_OK;
}

/* Row `row` of the tensor, whose values are kept in `values`. */
static tn_status row_of(tn_kernel_ctx *ctx, tn_tensor *values, int64_t row, ragged **out)
{
  uint32_t levels = ctx->n_inputs - 1;
  int64_t from = row, to = row + 1;
  tn_status st = new_ragged(levels > 0 ? levels - 1 : 0, out, ctx->err);
  for (uint32_t l = 0; st == TN_OK && l < levels; l++) {
    if (l > 0) st = splits_of(ctx->inputs[l], from, to, &(*out)->parts[l - 1], ctx->err);
    from = tn__view_int_at(ctx->inputs[l], from);
    to = tn__view_int_at(ctx->inputs[l], to);
  }
  if (st == TN_OK) st = tn__rows_of(values, from, to - from, levels > 0, &(*out)->parts[(*out)->levels], ctx->err);
  return st;
}

static tn_status to_compute(tn_kernel_ctx *ctx)
{
  tn_tensor *values = NULL;
  tn_status st = check_levels(ctx);
  if (st != TN_OK) return st;
  if (ctx->outputs[0]->rank == 0) return whole(ctx);
  st = tn_kernel_keep_input(ctx, ctx->n_inputs - 1, &values);
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t row = 0; st == TN_OK && row < ctx->outputs[0]->count; row++) {
    ragged *r = NULL;
    st = tn__poll_over(&poll, 200) ? TN_CANCELLED : row_of(ctx, values, row, &r);
    if (st == TN_OK) give(ctx, row, r);
    else if (r != NULL) unref_ragged(&r->handle);
  }
  tn_tensor_unref(values);
  return st;
}

static tn_status infer_to(tn_infer_ctx *ctx, tn_error *err)
{
  size_t levels = tn_infer_n_inputs(ctx) - 1;
  bool batched = tn__attr_bool(tn_infer_operation(ctx), "batched_input", false);
  const int64_t *dims;
  int64_t rows = -1;
  tn__shape splits;
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < levels; i++) st = tn__infer_rank(ctx, i, 1, &splits, err);
  if (st != TN_OK) return st;
  if (tn_infer_input(ctx, 0, &dims) >= 1 && dims[0] >= (levels > 0)) rows = dims[0] - (levels > 0);
  return tn_infer_output(ctx, 0, &rows, batched, err);
}

/* ---- RaggedTensorFromVariant ---- */

/* The state is the attribute input_ragged_rank; -1: found from the ranks of the input and of the output. */
static tn_status from_create(const tn_operation *op, void **state, tn_error *err)
{
  int64_t rank = tn__attr_int(op, "input_ragged_rank", -1);
  return tn__keep_state(&rank, sizeof rank, "state of RaggedTensorFromVariant", state, err);
}

static void from_destroy(void *state) { tn__free(state, sizeof(int64_t)); }

static tn_status from_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  int64_t in = *(const int64_t *)ctx->state, out = (int64_t)ctx->n_outputs - 1, rank = ctx->inputs[0].rank;
  bool stack = in < 0 && out == 0; /* elements without splits become a tensor */
  if (in < 0) in = out - rank;
  ctx->cost_ns = 200 + 200 * (double)ctx->inputs[0].count;
  if (!stack && (in < 0 || out != rank + in))
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "%s: variants of shape rank %lld, which hold ragged rank %lld, do not give ragged rank %lld",
                        tn_operation_type(ctx->op), (long long)rank, (long long)in, (long long)out);
  return tn__prepare_all_dynamic(ctx, err);
}

static const ragged *element(const tn_view *v, int64_t k)
{
  const tn_handle *h = ((tn_handle *const *)v->data)[k];
  return h != NULL && h->cls == &ragged_class ? (const ragged *)h : NULL;
}

/* Checks dtype and rank of all elements, which have `levels` levels of splits. */
static tn_status check_elements(const tn_kernel_ctx *ctx, int64_t levels, bool stack)
{
  const tn_view *in = ctx->inputs[0];
  tn_dtype dtype = ctx->outputs[ctx->n_outputs - 1]->dtype, splits = TN_DTYPE_INVALID;
  if (ctx->n_outputs > 1) splits = ctx->outputs[0]->dtype;
  for (int64_t k = 0; k < in->count; k++) {
    const ragged *r = element(in, k);
    if (r == NULL) return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "element %lld is no ragged tensor", (long long)k);
    const tn_tensor *values = r->parts[r->levels];
    if (r->levels != levels || values->dtype != dtype)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                          "element %lld has ragged rank %u and values of %s, wanted ragged rank %lld and %s",
                          (long long)k, r->levels, tn_dtype_name(values->dtype), (long long)levels,
                          tn_dtype_name(dtype));
    if (!stack && in->rank > 0 && values->rank < 1)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "the values of element %lld are a scalar", (long long)k);
    for (uint32_t l = 0; l < r->levels; l++)
      if (r->parts[l]->dtype != splits)
        return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "element %lld has splits of %s, wanted %s", (long long)k,
                            tn_dtype_name(r->parts[l]->dtype), tn_dtype_name(splits));
  }
  return TN_OK;
}

/* The outputs are the parts of the only element. */
static tn_status give_parts(tn_kernel_ctx *ctx, const ragged *r)
{
  tn_status st = TN_OK;
  for (uint32_t i = 0; st == TN_OK && i < ctx->n_outputs; i++) st = tn_kernel_set_output(ctx, i, r->parts[i]);
  return st;
}

/* Output i: splits 0, step, 2 step, ... n of them. */
static tn_status regular_splits(tn_kernel_ctx *ctx, uint32_t i, int64_t n, int64_t step)
{
  int64_t last;
  if (__builtin_mul_overflow(n, step, &last))
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "there are too many rows");
  tn_status st = tn_kernel_allocate(ctx, i, &n, 1);
  for (int64_t k = 0; st == TN_OK && k < n; k++) tn__split_put(ctx->outputs[i], k, k * step);
  return st;
}

static int64_t last_split(const tn_tensor *splits)
{
  return splits->count == 0 ? 0 : tn__tensor_int_at(splits, splits->count - 1);
}

/* Output i: the rows of each element. */
static tn_status element_splits(tn_kernel_ctx *ctx, uint32_t i)
{
  const tn_view *in = ctx->inputs[0];
  int64_t n = in->count + 1, total = 0;
  tn_status st = tn_kernel_allocate(ctx, i, &n, 1);
  for (int64_t k = 0; st == TN_OK && k < n; k++) {
    tn__split_put(ctx->outputs[i], k, total);
    if (k == in->count) break;
    const ragged *r = element(in, k);
    total += r->levels > 0 ? r->parts[0]->count - 1 : r->parts[0]->dims[0];
    if (!tn__split_fits(ctx->outputs[i]->dtype, total))
      st = tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "there are too many rows");
  }
  return st;
}

/* Output i: level `level` of all elements, one after another. */
static tn_status joined_splits(tn_kernel_ctx *ctx, uint32_t i, uint32_t level)
{
  const tn_view *in = ctx->inputs[0];
  int64_t n = 1, at = 1, shift = 0;
  for (int64_t k = 0; k < in->count; k++) n += element(in, k)->parts[level]->count - 1;
  tn_status st = tn_kernel_allocate(ctx, i, &n, 1);
  if (st != TN_OK) return st;
  tn__split_put(ctx->outputs[i], 0, 0);
  for (int64_t k = 0; k < in->count; k++) {
    const tn_tensor *splits = element(in, k)->parts[level];
    for (int64_t j = 1; j < splits->count; j++)
      tn__split_put(ctx->outputs[i], at++, tn__tensor_int_at(splits, j) + shift);
    shift += last_split(splits);
    if (!tn__split_fits(ctx->outputs[i]->dtype, shift))
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "there are too many rows");
  }
  return TN_OK;
}

/* The values of all elements, one after another; stacked along a new dimension if `stack`. */
static tn_status joined_values(tn_kernel_ctx *ctx, bool stack)
{
  const tn_view *in = ctx->inputs[0];
  uint32_t last = ctx->n_outputs - 1;
  tn__shape shape = { .rank = 1, .dims = { 0 } };
  for (int64_t k = 0; k < in->count; k++) {
    const ragged *r = element(in, k);
    const tn_tensor *values = r->parts[r->levels];
    tn__shape more = { .rank = 0 };
    bool fits = !stack || tn__shape_append(&more, 1);
    for (int32_t d = 0; fits && d < values->rank; d++) fits = tn__shape_append(&more, values->dims[d]);
    if (k == 0) shape = more;
    for (int32_t d = 1; fits && k > 0 && d < more.rank && d < shape.rank; d++) fits = more.dims[d] == shape.dims[d];
    if (!fits || more.rank != shape.rank ||
        (k > 0 && __builtin_add_overflow(shape.dims[0], more.dims[0], &shape.dims[0])))
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                          "the values of element %lld have another shape than those before", (long long)k);
  }
  tn_status st = tn_kernel_allocate(ctx, last, shape.dims, shape.rank);
  if (st != TN_OK) return st;
  char *to = ctx->outputs[last]->data;
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t k = 0; st == TN_OK && k < in->count; k++) {
    const ragged *r = element(in, k);
    const tn_tensor *values = r->parts[r->levels];
    if (tn__poll_over(&poll, 20 + values->count / 4)) return TN_CANCELLED;
    st = tn__copy_elements(values->dtype, to, values->data, values->count, ctx->err);
    to += values->bytes;
  }
  return st;
}

static tn_status from_compute(tn_kernel_ctx *ctx)
{
  const tn_view *in = ctx->inputs[0];
  uint32_t rank = (uint32_t)in->rank, out = ctx->n_outputs - 1;
  bool stack = out == 0 && rank > 0;
  int64_t levels = stack ? 0 : (int64_t)out - rank;
  tn_status st = check_elements(ctx, levels, stack);
  if (st != TN_OK) return st;
  if (rank == 0) return give_parts(ctx, element(in, 0));
  /* TensorFlow repeats the rows of one dimension only, not of those before it, too */
  for (uint32_t d = 0; st == TN_OK && !stack && d + 1 < rank; d++)
    st = regular_splits(ctx, d, in->dims[d] + 1, in->dims[d + 1]);
  if (st == TN_OK && !stack) st = element_splits(ctx, rank - 1);
  for (uint32_t l = 0; st == TN_OK && l < levels; l++) st = joined_splits(ctx, rank + l, l);
  return st == TN_OK ? joined_values(ctx, stack) : st;
}

static tn_status infer_from(tn_infer_ctx *ctx, tn_error *err)
{
  size_t n = tn_operation_n_outputs(tn_infer_operation(ctx));
  const int64_t unknown = -1;
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i + 1 < n; i++) st = tn_infer_output(ctx, i, &unknown, 1, err);
  return st == TN_OK ? tn_infer_output(ctx, n - 1, NULL, -1, err) : st;
}

/* ---- RaggedTensorToVariantGradient ---- */

static tn_status gradient_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, 2, 1, err);
  if (st == TN_OK && ctx->inputs[2].count > TN_MAX_RANK)
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %lld dimensions are wanted", tn_operation_type(ctx->op),
                      (long long)ctx->inputs[2].count);
  ctx->cost_ns = 200 + 100 * (double)ctx->inputs[0].count;
  return st == TN_OK ? tn_prepare_dynamic(ctx, 0, err) : st;
}

/* The shape of the values, input 2, and the elements of a row of them. */
static tn_status values_shape(const tn_kernel_ctx *ctx, tn__shape *out, int64_t *count, int64_t *row)
{
  const tn_view *v = ctx->inputs[2];
  out->rank = (int32_t)v->count;
  for (int32_t d = 0; d < out->rank; d++) out->dims[d] = tn__operand_int(v, d);
  tn_status st = tn_shape_elements(out->dims, out->rank, count, ctx->err);
  *row = 1;
  for (int32_t d = 1; st == TN_OK && d < out->rank; d++) *row *= out->dims[d];
  return st;
}

/* The number of elements that element k of input 0 gives; a missing one gives zeros, for the row of the splits. */
static tn_status piece_of(const tn_kernel_ctx *ctx, int64_t k, int64_t row, const tn_tensor **values, int64_t *n)
{
  const ragged *r = element(ctx->inputs[0], k);
  const tn_view *splits = ctx->inputs[1];
  *values = r == NULL ? NULL : r->parts[r->levels];
  *n = 0;
  if (*values != NULL) {
    *n = (*values)->count;
    if ((*values)->dtype == ctx->outputs[0]->dtype) return TN_OK;
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "element %lld has values of %s, wanted %s", (long long)k,
                        tn_dtype_name((*values)->dtype), tn_dtype_name(ctx->outputs[0]->dtype));
  }
  if (k + 1 >= splits->count)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "element %lld has no row among %lld splits", (long long)k,
                        (long long)splits->count);
  if (!__builtin_mul_overflow(tn__view_int_at(splits, k + 1) - tn__view_int_at(splits, k), row, n)) return TN_OK;
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "row %lld is too long", (long long)k);
}

/* The only element, as it is; of a missing one, zeros. */
static tn_status single_gradient(tn_kernel_ctx *ctx, const tn_tensor *values, const tn__shape *shape)
{
  if (values != NULL) return tn_kernel_set_output(ctx, 0, (tn_tensor *)(uintptr_t)values);
  tn_status st = tn_kernel_allocate(ctx, 0, shape->dims, shape->rank);
  tn_view *out = ctx->outputs[0];
  if (st == TN_OK && out->count > 0 && !tn__dtype_is_managed(out->dtype))
    memset(out->data, 0, (size_t)out->count * tn_dtype_size(out->dtype));
  return st;
}

static tn_status join_gradients(tn_kernel_ctx *ctx, int64_t row, tn__poll *poll)
{
  tn_view *out = ctx->outputs[0];
  char *to = out->data;
  const tn_tensor *values;
  tn_status st = TN_OK;
  for (int64_t k = 0, n; st == TN_OK && k < ctx->inputs[0]->count; k++) {
    st = piece_of(ctx, k, row, &values, &n);
    size_t bytes = (size_t)n * tn_dtype_size(out->dtype);
    if (st == TN_OK && tn__poll_over(poll, 20 + n / 4)) return TN_CANCELLED;
    if (st == TN_OK && values != NULL) st = tn__copy_elements(out->dtype, to, values->data, n, ctx->err);
    else if (st == TN_OK && n > 0 && !tn__dtype_is_managed(out->dtype)) memset(to, 0, bytes);
    to += bytes;
  }
  return st;
}

static tn_status gradient_compute(tn_kernel_ctx *ctx)
{
  const tn_view *in = ctx->inputs[0], *splits = ctx->inputs[1];
  tn__shape shape;
  int64_t count, row, total = 0, last = splits->count > 0 ? tn__view_int_at(splits, splits->count - 1) : 0;
  const tn_tensor *values = NULL;
  tn__poll poll = tn__poll_of(ctx);
  tn_status st = tn__splits_check(ctx, 1, last, &poll);
  if (st == TN_OK) st = values_shape(ctx, &shape, &count, &row);
  for (int64_t k = 0, n; st == TN_OK && k < in->count; k++) {
    st = piece_of(ctx, k, row, &values, &n);
    if (st == TN_OK && __builtin_add_overflow(total, n, &total))
      st = tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "there are too many values");
  }
  if (st != TN_OK) return st;
  if (in->count == 1) return single_gradient(ctx, values, &shape);
  if (total != count)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "the variants have %lld values, wanted %lld", (long long)total,
                        (long long)count);
  st = tn_kernel_allocate(ctx, 0, shape.dims, shape.rank);
  return st == TN_OK ? join_gradients(ctx, row, &poll) : st;
}

static tn_status infer_gradient(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape out;
  out.rank = tn_infer_input_as_shape(ctx, 2, out.dims);
  return tn__infer_set(ctx, 0, &out, err);
}

/* ---- tables ---- */

#define SPLITS "Tvalues: type; Tsplits: {int32, int64} = int64"

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "RaggedTensorFromVariant", .inputs = "encoded_ragged: variant",
    .outputs = "output_nested_splits: output_ragged_rank * Tsplits, output_dense_values: Tvalues",
    .attrs = "input_ragged_rank: int >= -1; output_ragged_rank: int >= 0; " SPLITS, .traits = TN_TRAIT_DYNAMIC,
    .infer = infer_from, .summary = "the ragged tensor in variants" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "RaggedTensorToVariant",
    .inputs = "rt_nested_splits: RAGGED_RANK * Tsplits, rt_dense_values: Tvalues", .outputs = "encoded_ragged: variant",
    .attrs = "RAGGED_RANK: int >= 0; batched_input: bool; " SPLITS, .infer = infer_to,
    .summary = "a ragged tensor as a variant, or its rows as variants" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "RaggedTensorToVariantGradient",
    .inputs = "encoded_ragged_grad: variant, row_splits: Tsplits, dense_values_shape: int32",
    .outputs = "dense_values_grad: Tvalues", .attrs = SPLITS, .traits = TN_TRAIT_DYNAMIC, .infer = infer_gradient,
    .summary = "gradient of RaggedTensorToVariant for the values" },
};

#define TYPES                                                                                                     \
  "Tvalues=float|double|half|bfloat16|int8|uint8|int16|uint16|int32|uint32|int64|uint64|complex64|complex128|"    \
  "bool|string|qint8|quint8|qint16|quint16|qint32"

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "RaggedTensorFromVariant", .device = "CPU", .types = TYPES,
    .name = "ragged_tensor_from_variant_cpu", .rank = TN_RANK_C, .create = from_create, .destroy = from_destroy,
    .prepare = from_prepare, .compute = from_compute },
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "RaggedTensorToVariant", .device = "CPU", .types = TYPES,
    .name = "ragged_tensor_to_variant_cpu", .rank = TN_RANK_C, .prepare = to_prepare, .compute = to_compute },
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "RaggedTensorToVariantGradient", .device = "CPU", .types = TYPES,
    .name = "ragged_tensor_to_variant_gradient_cpu", .rank = TN_RANK_C, .prepare = gradient_prepare,
    .compute = gradient_compute },
};

TN_OP_FAMILY(ragged_variant)
