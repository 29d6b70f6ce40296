/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of variables: StridedSliceAssign ResourceStridedSliceAssign ResourceGather ResourceGatherNd. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <ops/kernel/family.h>
#include <ops/kernel/move/gather.h>
#include <ops/kernel/move/slicing.h>
#include <ops/state/variable/variable.h>

/* ---- StridedSliceAssign ---- */

static tn_status slice_create(const tn_operation *op, void **state, tn_error *err)
{
  tn__slicing *s = tn__zalloc(sizeof *s);
  *state = s;
  if (s == NULL) return tn__no_memory(err, "kernel", sizeof *s);
  tn__slicing_masks(op, s);
  return TN_OK;
}

static void slice_destroy(void *state) { tn__free(state, sizeof(tn__slicing)); }

static tn_status reference_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn_prepare_output_like(ctx, 0, 0, err);
  return st == TN_OK ? tn_prepare_view(ctx, 0, 0, err) : st;
}

static tn_status other_dtype(const tn__variable *v, tn_dtype found, tn_dtype wanted, tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "variable '%s' is %s, wanted %s", v->name, tn_dtype_name(found),
                      tn_dtype_name(wanted));
}

/* Requires the lock and a value. */
static tn_status assign_slice(tn_kernel_ctx *ctx, tn__variable *v, const tn__slicing *slicing)
{
  char x[160], y[160];
  const tn_view *value = ctx->inputs[4];
  tn_dtype dtype = tn_tensor_dtype(v->tensor);
  tn__sliced s;
  int64_t steps[TN_MAX_RANK];
  tn_tensor *t;
  if (dtype != value->dtype) return other_dtype(v, dtype, value->dtype, ctx->err);
  tn_status st = tn__slicing_apply("assigning to a slice", slicing, tn_tensor_dims(v->tensor),
                                   tn_tensor_rank(v->tensor), &s, ctx->err);
  if (st != TN_OK || tn__box_is_empty(&s.box)) return st; /* nothing is written, whatever the value */
  if (!tn__sliced_value_steps(value, &s, steps))
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "input 4 has shape %s, the slice of variable '%s' has shape %s",
                        tn__format_shape(x, sizeof x, value->dims, value->rank), v->name,
                        tn__format_shape(y, sizeof y, s.shape.dims, s.shape.rank));
  st = tn__variable_edit(v, &t, ctx->err);
  if (st != TN_OK) return st;
  tn__box_copy copy;
  tn__box_copy_init(&copy, dtype, tn_tensor_dims(t), &s.box, steps, true);
  return tn__box_copy_run(&copy, ctx, tn_tensor_data(t), value->data);
}

static tn_status assign_slice_compute(tn_kernel_ctx *ctx)
{
  const tn__slicing *masks = ctx->state;
  tn__slicing slicing = *masks;
  tn__variable *v;
  tn_status st = tn__variable_input(ctx, 0, &v);
  if (st == TN_OK) st = tn__slicing_vectors(ctx, 1, &slicing);
  if (st != TN_OK) return st;
  tn__variable_lock(v);
  st = v->tensor == NULL ? tn__variable_unset_error(v, ctx->err) : assign_slice(ctx, v, &slicing);
  tn__variable_unlock(v);
  return st;
}

/* ---- ResourceGather ---- */

typedef struct gather_state {
  const int64_t *dims; /* known before the step, see tn__handle_shape */
  int32_t rank;
  int64_t batch;
} gather_state;

/* A reference to the value of input 0, checked to have the output's dtype and, with a state, the known shape. */
static tn_status params_of(tn_kernel_ctx *ctx, const gather_state *s, tn_tensor **out)
{
  tn__variable *v;
  *out = NULL;
  tn_status st = tn__variable_input(ctx, 0, &v);
  if (st != TN_OK) return st;
  if (tn__variable_read(v, out, NULL) != TN_OK) return tn__variable_unset_error(v, ctx->err);
  tn_dtype wanted = ctx->outputs[0]->dtype, found = tn_tensor_dtype(*out);
  if (found != wanted) st = other_dtype(v, found, wanted, ctx->err);
  if (st == TN_OK && s != NULL) st = tn__variable_check_shape(v, *out, s->dims, s->rank, ctx->err);
  if (st == TN_OK) return TN_OK;
  tn_tensor_unref(*out);
  *out = NULL;
  return st;
}

static tn_status gather_create(const tn_operation *op, void **state, tn_error *err)
{
  gather_state *s = tn__alloc(sizeof *s);
  *state = s;
  if (s == NULL) return tn__no_memory(err, "kernel", sizeof *s);
  s->batch = tn__attr_int(op, "batch_dims", 0);
  s->rank = tn__handle_shape(op, 0, &s->dims);
  if (s->batch >= 0) return TN_OK;
  tn__free(s, sizeof *s);
  *state = NULL;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: batch_dims is negative", tn_operation_type(op));
}

static void gather_destroy(void *state) { tn__free(state, sizeof(gather_state)); }

static tn_status dynamic_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  ctx->cost_ns = 100 + 5 * (double)ctx->inputs[1].count;
  return tn_prepare_dynamic(ctx, 0, err);
}

/* The axis is the first one after the batch dimensions. */
static tn_status gather(tn_kernel_ctx *ctx, const tn_tensor *t, int64_t batch_wanted)
{
  const tn_view *x = ctx->inputs[1];
  tn__shape params, indices, out;
  int32_t axis, batch;
  tn__gather_plan plan;
  tn__shape_set(&params, tn_tensor_dims(t), tn_tensor_rank(t));
  tn__shape_set(&indices, x->dims, x->rank);
  tn_status st = tn__gather_places("ResourceGather", batch_wanted, batch_wanted, params.rank, x->rank, &axis, &batch,
                                   ctx->err);
  if (st == TN_OK) st = tn__gather_shape("ResourceGather", &params, &indices, axis, batch, &out, ctx->err);
  if (st == TN_OK) st = tn_kernel_allocate(ctx, 0, out.dims, out.rank);
  if (st != TN_OK) return st;
  tn__gather_plan_init(&plan, params.dims, params.rank, x, axis, batch);
  return tn__gather_run(ctx, &plan, tn_tensor_data(t), x, ctx->outputs[0]);
}

static tn_status gather_compute(tn_kernel_ctx *ctx)
{
  tn_tensor *t;
  const gather_state *s = ctx->state;
  tn_status st = params_of(ctx, s, &t);
  if (st == TN_OK) st = gather(ctx, t, s->batch);
  tn_tensor_unref(t);
  return st;
}

static tn_status infer_gather(tn_infer_ctx *ctx, tn_error *err)
{
  const tn_operation *op = tn_infer_operation(ctx);
  const int64_t *dims;
  int32_t rank = tn__handle_shape(op, 0, &dims);
  tn__shape out;
  tn__infer_get(ctx, 1, &out);
  bool known = rank > 0 && out.rank >= 0 && tn__attr_int(op, "batch_dims", 0) == 0;
  for (int32_t d = 1; known && d < rank; d++) known = tn__shape_append(&out, dims[d]);
  return known ? tn__infer_set(ctx, 0, &out, err) : tn__infer_unknown(ctx, err);
}

/* ---- ResourceGatherNd ---- */

static tn_status gather_nd(tn_kernel_ctx *ctx, const tn_tensor *t)
{
  const tn_view *x = ctx->inputs[1];
  tn__shape params, indices, out;
  tn__shape_set(&params, tn_tensor_dims(t), tn_tensor_rank(t));
  tn__shape_set(&indices, x->dims, x->rank);
  if (params.rank < 1 || x->rank < 1)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "%s is a scalar, wanted rank 1 or more",
                        params.rank < 1 ? "the variable" : "input 1");
  tn_status st = tn__gather_nd_shape("ResourceGatherNd", &params, &indices, &out, ctx->err);
  bool any = true;
  for (int32_t i = 0; i < x->rank - 1; i++) any = any && x->dims[i] > 0;
  if (st == TN_OK && any && tn_tensor_elements(t) == 0)
    st = tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "input 1 has indices, but the variable has no elements");
  if (st == TN_OK) st = tn_kernel_allocate(ctx, 0, out.dims, out.rank);
  return st != TN_OK ? st : tn__gather_nd_run(ctx, tn_tensor_data(t), params.dims, x, false, ctx->outputs[0]);
}

static tn_status gather_nd_compute(tn_kernel_ctx *ctx)
{
  tn_tensor *t;
  tn_status st = params_of(ctx, NULL, &t);
  if (st == TN_OK) st = gather_nd(ctx, t);
  tn_tensor_unref(t);
  return st;
}

/* ---- tables ---- */

#define SLICING                                                                                                       \
  "T: type; Index: {int32, int64}; begin_mask: int = 0; end_mask: int = 0; ellipsis_mask: int = 0; "                  \
  "new_axis_mask: int = 0; shrink_axis_mask: int = 0"
#define OP(op, in, out, attributes, also, shapes, text)                                           \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = attributes, \
    .traits = TN_TRAIT_STATEFUL | (also), .infer = shapes, .summary = text }

static const tn_op_def ops[] = {
  OP("ResourceGather", "resource: resource, indices: Tindices", "output: dtype",
     "batch_dims: int = 0; validate_indices: bool = true; dtype: type; Tindices: {int32, int64}", TN_TRAIT_DYNAMIC,
     infer_gather, "gathers slices of a variable"),
  OP("ResourceGatherNd", "resource: resource, indices: Tindices", "output: dtype",
     "dtype: type; Tindices: {int32, int64}", TN_TRAIT_DYNAMIC, tn__infer_unknown,
     "gathers slices of a variable at multi-dimensional indices"),
  OP("ResourceStridedSliceAssign", "ref: resource, begin: Index, end: Index, strides: Index, value: T", "", SLICING, 0,
     NULL, "assigns a value to a strided slice of a variable"),
  OP("StridedSliceAssign", "ref: Ref(T), begin: Index, end: Index, strides: Index, value: T", "output_ref: Ref(T)",
     SLICING, 0, tn__infer_unknown, "assigns a value to a strided slice of a variable"),
};

/* All dtypes except handles, whose old elements would have to be released. */
#define SLICE_TYPES                                                                                                 \
  "T=float|double|half|bfloat16|int8|int16|int32|int64|uint8|uint16|uint32|uint64|bool|complex64|complex128|string|" \
  "qint8|quint8|qint32|qint16|quint16|float8_e5m2|float8_e4m3fn"
#define KERNEL(which, constraint, title, create_fn, destroy_fn, prepare_fn, compute_fn)                   \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .types = constraint, .name = title,  \
    .rank = TN_RANK_C, .create = create_fn, .destroy = destroy_fn, .prepare = prepare_fn, .compute = compute_fn }

static const tn_kernel_def kernels[] = {
  KERNEL("ResourceGather", NULL, "resource_gather_cpu", gather_create, gather_destroy, dynamic_prepare, gather_compute),
  KERNEL("ResourceGatherNd", NULL, "resource_gather_nd_cpu", NULL, NULL, dynamic_prepare, gather_nd_compute),
  KERNEL("ResourceStridedSliceAssign", SLICE_TYPES, "resource_strided_slice_assign_cpu", slice_create, slice_destroy,
         tn__prepare_nothing, assign_slice_compute),
  KERNEL("StridedSliceAssign", SLICE_TYPES, "strided_slice_assign_cpu", slice_create, slice_destroy, reference_prepare,
         assign_slice_compute),
};

TN_OP_FAMILY(variables_slice)
