/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor arrays, many elements at a time: TensorArrayGather TensorArrayPack TensorArrayScatter
 * TensorArrayUnpack TensorArrayConcat TensorArraySplit, in their versions.
 *
 * Elements written this way are rows of a single tensor, to which each of them holds a reference. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <core/tensor/tensor_internal.h>
#include <ops/kernel/family.h>
#include <ops/state/list/tensor_array_ops.h>
#include <string.h>

static tn_status no_room(tn_kernel_ctx *ctx, int64_t n)
{
  return tn__no_memory(ctx->err, "elements of a tensor array", (size_t)n * sizeof(tn_tensor *));
}

/* Room for n tensors, all NULL. Returns NULL if out of memory. */
static tn_tensor **new_list(int64_t n) { return tn__alloc_array((size_t)n + 1, sizeof(tn_tensor *)); }

static void free_list(tn_tensor **list, int64_t n)
{
  if (list == NULL) return;
  tn__drop_tensors(list, n);
  tn__free(list, ((size_t)n + 1) * sizeof *list);
}

/* ---- element shape given by the attribute ---- */

typedef struct shape_state {
  const int64_t *dims;
  int32_t rank;
} shape_state;

static void destroy_shape(void *state) { tn__free(state, sizeof(shape_state)); }

static tn_status shape_create(const tn_operation *op, const char *attr, void **state, tn_error *err)
{
  shape_state *s = tn__zalloc(sizeof *s);
  *state = NULL;
  if (s == NULL) return tn__no_memory(err, "kernel", sizeof *s);
  tn_status st = tn_operation_attr_shape(op, attr, &s->dims, &s->rank, err);
  if (st == TN_OK) *state = s;
  else destroy_shape(s);
  return st;
}

static tn_status gather_create(const tn_operation *op, void **state, tn_error *err)
{
  return shape_create(op, "element_shape", state, err);
}

static tn_status concat_create(const tn_operation *op, void **state, tn_error *err)
{
  return shape_create(op, "element_shape_except0", state, err);
}

/* With no elements to join, the shape of elements must be fully known. */
static tn_status want_known(tn_kernel_ctx *ctx, const char *name, const int64_t *dims, int32_t rank)
{
  char text[160];
  if (tn__shape_is_known(dims, rank)) return TN_OK;
  return tn_error_set(ctx->err, TN_UNIMPLEMENTED,
                      "TensorArray '%s': no elements are selected, and the shape of elements is %s, which is not "
                      "fully known", name, tn__format_shape(text, sizeof text, dims, rank));
}

/* ---- Gather, Pack ---- */

static tn_status gather_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = ctx->n_inputs > 2 ? tn__want_rank(ctx, 1, 1, err) : TN_OK;
  return st == TN_OK ? tn_prepare_dynamic(ctx, 0, err) : st;
}

/* Checks that all elements have the shape of the first one, and that it fits the attribute. */
static tn_status check_alike(tn_kernel_ctx *ctx, const char *name, tn_tensor *const *list, int64_t n, int32_t skip,
                             const int64_t *dims, int32_t rank)
{
  char found[160], wanted[160];
  const tn_tensor *first = list[0];
  int64_t bad = n;
  if (!tn__shape_fits(dims, rank, first->dims + skip, first->rank - skip)) bad = 0;
  for (int64_t k = 1; k < n && bad == n; k++)
    if (!tn__shape_fits(first->dims + skip, first->rank - skip, list[k]->dims + skip, list[k]->rank - skip)) bad = k;
  if (bad == n) return TN_OK;
  if (bad > 0) {
    dims = first->dims + skip;
    rank = first->rank - skip;
  }
  tn__format_shape(found, sizeof found, list[bad]->dims + skip, list[bad]->rank - skip);
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                      "TensorArray '%s': tensor %lld of those to be joined has shape %s%s, wanted %s", name,
                      (long long)bad, found, skip > 0 ? " after the first dimension" : "",
                      tn__format_shape(wanted, sizeof wanted, dims, rank));
}

static tn_status give_stacked(tn_kernel_ctx *ctx, tn_tensor *const *list, int64_t n, const int64_t *dims, int32_t rank)
{
  int64_t out[TN_MAX_RANK + 1] = { n }, row = 1;
  if (rank >= TN_MAX_RANK)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "the output would have more than %d dimensions", TN_MAX_RANK);
  for (int32_t d = 0; d < rank; d++) {
    out[d + 1] = dims[d];
    row *= dims[d];
  }
  tn_status st = tn_kernel_allocate(ctx, 0, out, rank + 1);
  return st == TN_OK ? tn__put_together(ctx, 0, list, n, NULL, row) : st;
}

static tn_status gather(tn_kernel_ctx *ctx, const tn__array_ref *a, const int32_t *indices, int64_t n)
{
  const shape_state *s = ctx->state;
  tn__shape element;
  tn_status st = tn__array_refine(a->array, a->name, s->dims, s->rank, &element, ctx->err);
  if (st == TN_OK && n == 0) st = want_known(ctx, a->name, element.dims, element.rank);
  if (st != TN_OK) return st;
  if (n == 0) return give_stacked(ctx, NULL, 0, element.dims, element.rank);
  tn_tensor **list = new_list(n);
  if (list == NULL) return no_room(ctx, n);
  st = tn__array_read(a->array, a->name, indices, list, n, ctx->err);
  if (st == TN_OK) st = check_alike(ctx, a->name, list, n, 0, s->dims, s->rank);
  if (st == TN_OK) st = give_stacked(ctx, list, n, list[0]->dims, list[0]->rank);
  free_list(list, n);
  return st;
}

static tn_status gather_compute(tn_kernel_ctx *ctx)
{
  tn__array_ref a;
  const tn_view *indices = ctx->n_inputs > 2 ? ctx->inputs[1] : NULL; /* Pack has none */
  int64_t size = indices == NULL ? 0 : indices->count;
  bool grows;
  tn_status st = tn__array_input(ctx, &a);
  if (st == TN_OK) st = tn__array_want(a.array, a.name, ctx->outputs[0]->dtype, ctx->err);
  if (st == TN_OK && indices == NULL) st = tn__array_size(a.array, a.name, &size, &grows, ctx->err);
  if (st == TN_OK) st = gather(ctx, &a, indices == NULL ? NULL : indices->data, size);
  tn__array_input_end(&a);
  return st;
}

/* ---- Concat ---- */

static tn_status concat_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn_prepare_dynamic(ctx, 0, err);
  return st == TN_OK ? tn_prepare_dynamic(ctx, 1, err) : st;
}

static tn_status give_joined(tn_kernel_ctx *ctx, tn_tensor *const *list, int64_t n, const int64_t *dims, int32_t rank)
{
  int64_t out[TN_MAX_RANK + 1] = { 0 }, row = 1;
  for (int32_t d = 0; d < rank; d++) {
    out[d + 1] = dims[d];
    row *= dims[d];
  }
  tn_status st = tn_kernel_allocate(ctx, 1, &n, 1);
  int64_t *lengths = st == TN_OK ? ctx->outputs[1]->data : NULL;
  for (int64_t k = 0; st == TN_OK && k < n; k++) {
    lengths[k] = list[k]->dims[0];
    if (__builtin_add_overflow(out[0], lengths[k], &out[0]))
      st = tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "the elements have too many rows together");
  }
  if (st == TN_OK) st = tn_kernel_allocate(ctx, 0, out, rank + 1);
  return st == TN_OK ? tn__put_together(ctx, 0, list, n, lengths, row) : st;
}

static tn_status check_vectors(tn_kernel_ctx *ctx, const char *name, tn_tensor *const *list, int64_t n)
{
  for (int64_t k = 0; k < n; k++)
    if (list[k]->rank == 0)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                          "TensorArray '%s': element %lld is a scalar, only rows are concatenated", name, (long long)k);
  return TN_OK;
}

static tn_status concat(tn_kernel_ctx *ctx, const tn__array_ref *a, int64_t n)
{
  const shape_state *s = ctx->state;
  if (n == 0) {
    tn_status st = want_known(ctx, a->name, s->dims, s->rank);
    return st == TN_OK ? give_joined(ctx, NULL, 0, s->dims, s->rank) : st;
  }
  tn_tensor **list = new_list(n);
  if (list == NULL) return no_room(ctx, n);
  tn_status st = tn__array_read(a->array, a->name, NULL, list, n, ctx->err);
  if (st == TN_OK) st = check_vectors(ctx, a->name, list, n);
  if (st == TN_OK) st = check_alike(ctx, a->name, list, n, 1, s->dims, s->rank);
  if (st == TN_OK) st = give_joined(ctx, list, n, list[0]->dims + 1, list[0]->rank - 1);
  free_list(list, n);
  return st;
}

static tn_status concat_compute(tn_kernel_ctx *ctx)
{
  tn__array_ref a;
  int64_t size = 0;
  bool grows;
  tn_status st = tn__array_input(ctx, &a);
  if (st == TN_OK) st = tn__array_want(a.array, a.name, ctx->outputs[0]->dtype, ctx->err);
  if (st == TN_OK) st = tn__array_size(a.array, a.name, &size, &grows, ctx->err);
  if (st == TN_OK) st = concat(ctx, &a, size);
  tn__array_input_end(&a);
  return st;
}

/* ---- Scatter, Unpack, Split ---- */

/* The number of the input `value`: after the indices, if there are any. */
static uint32_t value_of(uint32_t n_inputs, bool split) { return n_inputs == 3 || split ? 1 : 2; }

static tn_status scatter_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  uint32_t value = value_of(ctx->n_inputs, false);
  tn_status st = tn__want_rank_at_least(ctx, value, 1, err);
  if (st == TN_OK && value > 1) st = tn__want_rank(ctx, 1, 1, err);
  if (st == TN_OK && value > 1 && ctx->inputs[1].count != ctx->inputs[2].dims[0])
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: there are %lld indices for %lld rows",
                        tn_operation_type(ctx->op), (long long)ctx->inputs[1].count, (long long)ctx->inputs[2].dims[0]);
  return st == TN_OK ? tn__array_prepare_flow(ctx, err) : st;
}

static tn_status split_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank_at_least(ctx, 1, 1, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 2, 1, err);
  return st == TN_OK ? tn__array_prepare_flow(ctx, err) : st;
}

/* Writes n parts of the value: single rows, or lengths[k] rows each if `lengths` is not NULL. */
static tn_status write_parts(tn_kernel_ctx *ctx, const tn__array_ref *a, uint32_t value, const int32_t *indices,
                             const int64_t *lengths, int64_t n)
{
  tn_tensor *whole = NULL, **list = new_list(2 * n);
  if (list == NULL) return no_room(ctx, n);
  tn_status st = n > 0 ? tn_kernel_keep_input(ctx, value, &whole) : TN_OK;
  int64_t at = 0;
  for (int64_t k = 0; st == TN_OK && k < n; k++) {
    int64_t rows = lengths == NULL ? 1 : lengths[k];
    st = tn__rows_of(whole, at, rows, lengths != NULL, &list[k], ctx->err);
    at += rows;
  }
  if (st == TN_OK) st = tn__array_write(a->array, a->name, indices, list, n, ctx->err);
  tn_tensor_unref(whole);
  free_list(list, 2 * n);
  return st;
}

/* Unpack writes the whole array, which may grow to the number of rows. */
static tn_status check_unpack(tn_kernel_ctx *ctx, const tn__array_ref *a, int64_t rows, const char *what)
{
  int64_t size;
  bool grows;
  tn_status st = tn__array_size(a->array, a->name, &size, &grows, ctx->err);
  if (st != TN_OK || rows == size || (grows && rows > size)) return st;
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "TensorArray '%s' has %lld elements%s, there are %lld %s", a->name,
                      (long long)size, grows ? "" : " and does not grow", (long long)rows, what);
}

static tn_status scatter_compute(tn_kernel_ctx *ctx)
{
  tn__array_ref a;
  uint32_t value = value_of(ctx->n_inputs, false);
  const tn_view *v = ctx->inputs[value];
  const int32_t *indices = value > 1 ? ctx->inputs[1]->data : NULL;
  tn_status st = tn__array_input(ctx, &a);
  if (st == TN_OK) st = tn__array_want(a.array, a.name, v->dtype, ctx->err);
  if (st == TN_OK && indices == NULL) st = check_unpack(ctx, &a, v->dims[0], "rows");
  if (st == TN_OK) st = write_parts(ctx, &a, value, indices, NULL, v->dims[0]);
  tn__array_input_end(&a);
  return st;
}

static tn_status check_lengths(tn_kernel_ctx *ctx, int64_t rows)
{
  const tn_view *v = ctx->inputs[2];
  const int64_t *lengths = v->data;
  int64_t sum = 0;
  for (int64_t k = 0; k < v->count; k++) {
    if (lengths[k] < 0)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "length %lld of input 2 is %lld", (long long)k,
                          (long long)lengths[k]);
    if (__builtin_add_overflow(sum, lengths[k], &sum)) sum = -1;
    if (sum < 0) break;
  }
  if (sum == rows) return TN_OK;
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                      "the lengths of input 2 add up to %s than the %lld rows of input 1",
                      sum >= 0 && sum < rows ? "less" : "more", (long long)rows);
}

static tn_status split_compute(tn_kernel_ctx *ctx)
{
  tn__array_ref a;
  const tn_view *v = ctx->inputs[1], *lengths = ctx->inputs[2];
  tn_status st = tn__array_input(ctx, &a);
  if (st == TN_OK) st = tn__array_want(a.array, a.name, v->dtype, ctx->err);
  if (st == TN_OK) st = check_lengths(ctx, v->dims[0]);
  if (st == TN_OK) st = check_unpack(ctx, &a, lengths->count, "lengths");
  if (st == TN_OK) st = write_parts(ctx, &a, 1, NULL, lengths->data, lengths->count);
  tn__array_input_end(&a);
  return st;
}

/* ---- shape functions ---- */

/* The output's shape is the attribute's with a leading dimension, whose size is the number of
 * indices. */
static tn_status infer_gather(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t *dims;
  int32_t rank;
  tn__shape indices, out;
  bool has_indices = tn_infer_n_inputs(ctx) > 2;
  tn_status st = has_indices ? tn__infer_rank(ctx, 1, 1, &indices, err) : TN_OK;
  if (st == TN_OK) st = tn_operation_attr_shape(tn_infer_operation(ctx), "element_shape", &dims, &rank, err);
  if (st != TN_OK) return st;
  tn__shape_unknown(&out);
  if (rank >= 0 && rank < TN_MAX_RANK) {
    tn__shape_set(&out, has_indices ? indices.dims : (int64_t[]){ -1 }, 1);
    for (int32_t d = 0; d < rank; d++) tn__shape_append(&out, dims[d]);
  }
  return tn__infer_set(ctx, 0, &out, err);
}

/* As in TensorFlow, nothing is inferred about the value. */
static tn_status infer_concat(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t unknown = -1;
  tn_status st = tn_infer_output(ctx, 0, NULL, -1, err);
  return st == TN_OK ? tn_infer_output(ctx, 1, &unknown, 1, err) : st;
}

/* ---- tables ---- */

#define OP(op, in, out, attributes, bits, shapes, text)                                           \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = attributes, \
    .traits = TN_TRAIT_STATEFUL | TN_TRAIT_READS | (bits), .infer = shapes, .summary = text }
#define VERSIONS(X) X("", "Ref(string)") X("V2", "string") X("V3", "resource")

#define PIECES_OPS(v, handle)                                                                                   \
  OP("TensorArrayGather" v, "handle: " handle ", indices: int32, flow_in: float", "value: dtype",               \
     "dtype: type; element_shape: shape = ?", TN_TRAIT_DYNAMIC, infer_gather,                                   \
     "gathers elements of an array into a tensor"),                                                             \
  OP("TensorArrayScatter" v, "handle: " handle ", indices: int32, value: T, flow_in: float", "flow_out: float", \
     "T: type", 0, tn__infer_scalar, "scatters the rows of a tensor to elements of an array"),                  \
  OP("TensorArrayConcat" v, "handle: " handle ", flow_in: float", "value: dtype, lengths: int64",               \
     "dtype: type; element_shape_except0: shape = ?", TN_TRAIT_DYNAMIC, infer_concat,                           \
     "concatenates the elements of an array"),                                                                  \
  OP("TensorArraySplit" v, "handle: " handle ", value: T, lengths: int64, flow_in: float", "flow_out: float",   \
     "T: type", 0, tn__infer_scalar, "splits a tensor into the elements of an array"),

static const tn_op_def ops[] = {
  VERSIONS(PIECES_OPS)
  OP("TensorArrayPack", "handle: Ref(string), flow_in: float", "value: dtype", "dtype: type; element_shape: shape = ?",
     TN_TRAIT_DYNAMIC, infer_gather, "stacks all elements of an array into a tensor"),
  OP("TensorArrayUnpack", "handle: Ref(string), value: T, flow_in: float", "flow_out: float", "T: type", 0,
     tn__infer_scalar, "unpacks the rows of a tensor to all elements of an array"),
};

#define KERNEL(which, title, create_fn, destroy_fn, prepare_fn, compute_fn)                            \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C, \
    .create = create_fn, .destroy = destroy_fn, .prepare = prepare_fn, .compute = compute_fn },
#define PIECES_KERNELS(v, handle)                                                                                \
  KERNEL("TensorArrayGather" v, "tensor_array_gather" v "_cpu", gather_create, destroy_shape, gather_prepare,    \
         gather_compute)                                                                                         \
  KERNEL("TensorArrayScatter" v, "tensor_array_scatter" v "_cpu", NULL, NULL, scatter_prepare, scatter_compute)  \
  KERNEL("TensorArrayConcat" v, "tensor_array_concat" v "_cpu", concat_create, destroy_shape, concat_prepare,    \
         concat_compute)                                                                                         \
  KERNEL("TensorArraySplit" v, "tensor_array_split" v "_cpu", NULL, NULL, split_prepare, split_compute)

static const tn_kernel_def kernels[] = {
  VERSIONS(PIECES_KERNELS)
  KERNEL("TensorArrayPack", "tensor_array_pack_cpu", gather_create, destroy_shape, gather_prepare, gather_compute)
  KERNEL("TensorArrayUnpack", "tensor_array_unpack_cpu", NULL, NULL, scatter_prepare, scatter_compute)
};

TN_OP_FAMILY(tensor_array_pieces)
