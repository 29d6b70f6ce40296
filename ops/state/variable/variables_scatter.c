/* SPDX-License-Identifier: Apache-2.0 */
/* Updates of slices of variables at indices: ScatterAdd ...Div ...Max ...Min ...Mul ...Sub
 * ...Update, ScatterNdAdd ...Max ...Min ...Sub ...Update, and those of the same names that begin
 * with Resource.
 *
 * An index out of range is an error. Updates already done are kept, as in TensorFlow: for
 * Scatter... those before the bad index, for ScatterNd... all others. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <ops/kernel/family.h>
#include <ops/kernel/move/scatter.h>
#include <ops/state/variable/variable.h>
#include <string.h>

/* ---- create, prepare ---- */

typedef struct scatter_state {
  tn__scatter scatter;
  bool by_zero;    /* for integers: an update by 0 is an error */
  bool ignore_bad; /* ScatterNd... only */
} scatter_state;

static tn_status scatter_create(const tn_operation *op, tn__scatter_step step, void **state, tn_error *err)
{
  void *policy = NULL;
  *state = NULL;
  scatter_state s = { .by_zero = false };
  tn_dtype dtype = tn_operation_input_dtype(op, 2);
  tn_status st = tn__scatter_init(&s.scatter, op, step, dtype, err);
  if (st == TN_OK && tn_operation_attr_kind(op, "bad_indices_policy") != 0)
    st = tn__bad_indices_create(op, &policy, err);
  if (st != TN_OK) return st;
  s.ignore_bad = policy != NULL && ((const tn__bad_indices *)policy)->ignore;
  s.by_zero = step == TN__SCATTER_DIV && dtype != TN_FLOAT && dtype != TN_DOUBLE && dtype != TN_HALF &&
              dtype != TN_BFLOAT16 && dtype != TN_COMPLEX64 && dtype != TN_COMPLEX128;
  scatter_state *made = tn__alloc(sizeof *made);
  if (made == NULL) return tn__no_memory(err, "kernel", sizeof *made);
  *made = s;
  *state = made;
  return TN_OK;
}

#define CREATE(name, step)                                                                    \
  static tn_status name##_create(const tn_operation *op, void **state, tn_error *err)         \
  {                                                                                           \
    return scatter_create(op, step, state, err);                                              \
  }
CREATE(set, TN__SCATTER_SET)
CREATE(add, TN__SCATTER_ADD)
CREATE(sub, TN__SCATTER_SUB)
CREATE(mul, TN__SCATTER_MUL)
CREATE(div, TN__SCATTER_DIV)
CREATE(max, TN__SCATTER_MAX)
CREATE(min, TN__SCATTER_MIN)

static void scatter_destroy(void *state) { tn__free(state, sizeof(scatter_state)); }

static tn_status resource_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  (void)err;
  ctx->cost_ns = 100 + 2 * (double)ctx->inputs[2].count;
  return TN_OK;
}

static tn_status reference_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = resource_prepare(ctx, err);
  if (st == TN_OK) st = tn_prepare_output_like(ctx, 0, 0, err);
  return st == TN_OK ? tn_prepare_view(ctx, 0, 0, err) : st;
}

/* ---- checks ---- */

/* Checks the dtype, and that no integer is divided by 0. */
static tn_status check_values(const scatter_state *s, const tn__variable *v, const tn_view *updates, tn_error *err)
{
  tn_dtype dtype = tn_tensor_dtype(v->tensor);
  if (dtype != updates->dtype)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "variable '%s' is %s, the updates are %s", v->name,
                        tn_dtype_name(dtype), tn_dtype_name(updates->dtype));
  size_t size = s->by_zero ? tn_dtype_size(dtype) : 0;
  static const char zero[8];
  for (int64_t k = 0; size > 0 && k < updates->count; k++)
    if (memcmp((const char *)updates->data + (size_t)k * size, zero, size) == 0)
      return tn_error_set(err, TN_INVALID_ARGUMENT,
                          "update %lld is 0, and variable '%s' of integers would be divided by it",
                          (long long)k, v->name);
  return TN_OK;
}

/* Updates have the indices' shape followed by that of the variable's rows, or are one scalar for
 * all. */
static tn_status check_shapes(const tn__variable *v, const tn_view *indices, const tn_view *updates, tn_error *err)
{
  char x[160], y[160];
  int32_t rank = tn_tensor_rank(v->tensor);
  if (rank < 1)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "variable '%s' is a scalar, wanted rank 1 or more", v->name);
  if (updates->rank == 0) return TN_OK;
  tn__shape wanted;
  tn__shape_set(&wanted, indices->dims, indices->rank);
  bool fits = true;
  for (int32_t d = 1; d < rank; d++) fits = fits && tn__shape_append(&wanted, tn_tensor_dims(v->tensor)[d]);
  const tn_view w = { .dims = wanted.dims, .rank = wanted.rank };
  if (fits && tn__view_same_shape(updates, &w)) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "input 2 has shape %s, wanted %s or a scalar",
                      tn__format_shape(x, sizeof x, updates->dims, updates->rank),
                      tn__format_shape(y, sizeof y, wanted.dims, wanted.rank));
}

/* ---- compute ---- */

/* Indices of the first dimension. Requires the lock and a value. */
static tn_status scatter_rows(tn_kernel_ctx *ctx, tn__variable *v)
{
  const scatter_state *s = ctx->state;
  const tn_view *indices = ctx->inputs[1], *updates = ctx->inputs[2];
  tn_tensor *t;
  tn_status st = check_values(s, v, updates, ctx->err);
  if (st == TN_OK) st = check_shapes(v, indices, updates, ctx->err);
  if (st != TN_OK || indices->count == 0) return st;
  const int64_t *dims = tn_tensor_dims(v->tensor);
  tn__index_space space = { indices, dims, 1, indices->count };
  if (tn_tensor_elements(v->tensor) > 0) {
    st = tn__variable_edit(v, &t, ctx->err);
    if (st != TN_OK) return st;
    space.dims = dims = tn_tensor_dims(t);
    uint32_t flags = TN__SCATTER_STOP | (updates->rank == 0 ? TN__SCATTER_SAME : 0);
    st = tn__scatter_run(&s->scatter, &space, tn_tensor_data(t), updates->data, tn_tensor_elements(t) / dims[0], flags,
                         NULL, ctx->err);
  }
  return st == TN_OK && tn__space_find_bad(&space) >= 0 ? tn__space_error(&space, ctx->err) : st;
}

/* Indices of several dimensions. */
static tn_status scatter_nd(tn_kernel_ctx *ctx, tn__variable *v)
{
  const scatter_state *s = ctx->state;
  const tn_view *indices = ctx->inputs[1], *updates = ctx->inputs[2];
  tn__shape out;
  tn_tensor *t;
  tn__index_space space;
  tn__shape_set(&out, tn_tensor_dims(v->tensor), tn_tensor_rank(v->tensor));
  tn_status st = check_values(s, v, updates, ctx->err);
  if (st == TN_OK) st = tn__scatter_check_all("updating a variable", &out, indices, 1, updates, 2, ctx->err);
  if (st != TN_OK || updates->count == 0) return st;
  st = tn__variable_edit(v, &t, ctx->err);
  if (st != TN_OK) return st;
  tn__space_init(&space, indices, out.dims);
  st = tn__scatter_run(&s->scatter, &space, tn_tensor_data(t), updates->data, updates->count / space.n, 0, NULL,
                       ctx->err);
  return st == TN_OK && !s->ignore_bad && tn__space_find_bad(&space) >= 0 ? tn__space_error(&space, ctx->err) : st;
}

static tn_status with_variable(tn_kernel_ctx *ctx, tn_status (*scatter)(tn_kernel_ctx *ctx, tn__variable *v))
{
  tn__variable *v;
  tn_status st = tn__variable_input(ctx, 0, &v);
  if (st != TN_OK) return st;
  tn__variable_lock(v);
  st = v->tensor == NULL ? tn__variable_unset_error(v, ctx->err) : scatter(ctx, v);
  tn__variable_unlock(v);
  return st;
}

static tn_status rows_compute(tn_kernel_ctx *ctx) { return with_variable(ctx, scatter_rows); }
static tn_status nd_compute(tn_kernel_ctx *ctx) { return with_variable(ctx, scatter_nd); }

/* ---- tables ---- */

#define NUMBERTYPES                                                                                                 \
  "{float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, " \
  "uint16, complex128, half, uint32, uint64}"
#define REALTYPES "{half, bfloat16, float, double, int32, int64}"
#define INDICES "; Tindices: {int32, int64}"
#define POLICY "; bad_indices_policy: string = ''"

#define OP(op, in, out, attributes, shapes, text)                                                 \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = attributes, \
    .traits = TN_TRAIT_STATEFUL, .infer = shapes, .summary = text }
#define BY_REFERENCE(op, type_set, more, text)                                                            \
  OP(op, "ref: Ref(T), indices: Tindices, updates: T", "output_ref: Ref(T)", "T: " type_set INDICES more, \
     tn__infer_unknown, text)
#define RESOURCE(op, type_set, text)                                                                                   \
  OP(op, "resource: resource, indices: Tindices, updates: dtype", "", "dtype: " type_set INDICES, NULL, text)
#define RESOURCE_ND(op, text)                                                                                          \
  OP(op, "ref: resource, indices: Tindices, updates: T", "", "T: type" INDICES "; use_locking: bool = true" POLICY,  \
     NULL, text)
#define LOCKING(value) "; use_locking: bool = " value

static const tn_op_def ops[] = {
  RESOURCE("ResourceScatterAdd", NUMBERTYPES, "adds to slices of a variable"),
  RESOURCE("ResourceScatterDiv", NUMBERTYPES, "divides slices of a variable"),
  RESOURCE("ResourceScatterMax", NUMBERTYPES, "minimum of slices of a variable and updates"),
  RESOURCE("ResourceScatterMin", NUMBERTYPES, "maximum of slices of a variable and updates"),
  RESOURCE("ResourceScatterMul", NUMBERTYPES, "multiplies slices of a variable"),
  RESOURCE_ND("ResourceScatterNdAdd", "adds to parts of a variable"),
  RESOURCE_ND("ResourceScatterNdMax", "minimum of parts of a variable and updates"),
  RESOURCE_ND("ResourceScatterNdMin", "maximum of parts of a variable and updates"),
  RESOURCE_ND("ResourceScatterNdSub", "subtracts from parts of a variable"),
  RESOURCE_ND("ResourceScatterNdUpdate", "replaces parts of a variable"),
  RESOURCE("ResourceScatterSub", NUMBERTYPES, "subtracts from slices of a variable"),
  RESOURCE("ResourceScatterUpdate", "type", "replaces slices of a variable"),
  BY_REFERENCE("ScatterAdd", NUMBERTYPES, LOCKING("false"), "adds to slices of a variable"),
  BY_REFERENCE("ScatterDiv", NUMBERTYPES, LOCKING("false"), "divides slices of a variable"),
  BY_REFERENCE("ScatterMax", REALTYPES, LOCKING("false"), "minimum of slices of a variable and updates"),
  BY_REFERENCE("ScatterMin", REALTYPES, LOCKING("false"), "maximum of slices of a variable and updates"),
  BY_REFERENCE("ScatterMul", NUMBERTYPES, LOCKING("false"), "multiplies slices of a variable"),
  BY_REFERENCE("ScatterNdAdd", NUMBERTYPES, LOCKING("false") POLICY, "adds to parts of a variable"),
  BY_REFERENCE("ScatterNdMax", NUMBERTYPES, LOCKING("false") POLICY,
               "minimum of parts of a variable and updates"),
  BY_REFERENCE("ScatterNdMin", NUMBERTYPES, LOCKING("false") POLICY,
               "maximum of parts of a variable and updates"),
  BY_REFERENCE("ScatterNdSub", NUMBERTYPES, LOCKING("false") POLICY, "subtracts from parts of a variable"),
  BY_REFERENCE("ScatterNdUpdate", "type", LOCKING("true") POLICY, "replaces parts of a variable"),
  BY_REFERENCE("ScatterSub", NUMBERTYPES, LOCKING("false"), "subtracts from slices of a variable"),
  BY_REFERENCE("ScatterUpdate", "type", LOCKING("true"), "replaces slices of a variable"),
};

#define REALS "float|double|half|bfloat16|int8|uint8|int16|uint16|int32|uint32|int64|uint64"
#define NUMBERS REALS "|complex64|complex128"
#define KERNEL(which, constraint, title, create_fn, prepare_fn, compute_fn)                                 \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .types = constraint, .name = title,    \
    .rank = TN_RANK_C, .create = create_fn##_create, .destroy = scatter_destroy, .prepare = prepare_fn,     \
    .compute = compute_fn }
#define BOTH(which, what, name, constraint, fn, compute_fn)                                                       \
  KERNEL("Scatter" which, "T=" constraint, "scatter_" name "_cpu", fn, reference_prepare, compute_fn),            \
  KERNEL("ResourceScatter" which, what "=" constraint, "resource_scatter_" name "_cpu", fn, resource_prepare,     \
         compute_fn)

static const tn_kernel_def kernels[] = {
  BOTH("Add", "dtype", "add", NUMBERS, add, rows_compute),
  BOTH("Div", "dtype", "div", NUMBERS, div, rows_compute),
  BOTH("Max", "dtype", "max", REALS, max, rows_compute),
  BOTH("Min", "dtype", "min", REALS, min, rows_compute),
  BOTH("Mul", "dtype", "mul", NUMBERS, mul, rows_compute),
  BOTH("NdAdd", "T", "nd_add", NUMBERS "|bool", add, nd_compute),
  BOTH("NdMax", "T", "nd_max", REALS, max, nd_compute),
  BOTH("NdMin", "T", "nd_min", REALS, min, nd_compute),
  BOTH("NdSub", "T", "nd_sub", NUMBERS "|bool", sub, nd_compute),
  BOTH("NdUpdate", "T", "nd_update", NUMBERS "|bool|string", set, nd_compute),
  BOTH("Sub", "dtype", "sub", NUMBERS, sub, rows_compute),
  BOTH("Update", "dtype", "update", NUMBERS "|bool|string|resource|variant", set, rows_compute),
};

TN_OP_FAMILY(variables_scatter)
