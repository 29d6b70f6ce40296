/* SPDX-License-Identifier: Apache-2.0 */
/* Updates of whole variables: AssignAdd AssignSub AssignAddVariableOp AssignSubVariableOp. */
#include <core/base/text.h>
#include <ops/kernel/family.h>
#include <ops/kernel/move/scatter.h>
#include <ops/state/variable/variable.h>

#define COST_NS 0.3 /* per element */

static tn_status update_create(const tn_operation *op, tn__scatter_step step, void **state, tn_error *err)
{
  tn__scatter s;
  *state = NULL;
  tn_status st = tn__scatter_init(&s, op, step, tn_operation_input_dtype(op, 1), err);
  if (st != TN_OK) return st;
  tn__scatter *made = tn__alloc(sizeof *made);
  if (made == NULL) return tn__no_memory(err, "kernel", sizeof *made);
  *made = s;
  *state = made;
  return TN_OK;
}

static tn_status add_create(const tn_operation *op, void **state, tn_error *err)
{
  return update_create(op, TN__SCATTER_ADD, state, err);
}

static tn_status sub_create(const tn_operation *op, void **state, tn_error *err)
{
  return update_create(op, TN__SCATTER_SUB, state, err);
}

static void update_destroy(void *state) { tn__free(state, sizeof(tn__scatter)); }

static void set_cost(tn_prepare_ctx *ctx) { ctx->cost_ns = 100 + COST_NS * (double)ctx->inputs[1].count; }

static tn_status reference_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  set_cost(ctx);
  tn_status st = tn_prepare_output_like(ctx, 0, 0, err);
  return st == TN_OK ? tn_prepare_view(ctx, 0, 0, err) : st;
}

static tn_status resource_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  (void)err;
  set_cost(ctx);
  return TN_OK;
}

typedef struct update_run {
  tn__scatter_fn fn;
  size_t size;
  const char *value;
  char *to;
} update_run;

static void update_part(void *user, int64_t begin, int64_t end)
{
  const update_run *r = user;
  size_t at = (size_t)begin * r->size;
  r->fn(r->to + at, r->value + at, end - begin);
}

static tn_status check(const tn__variable *v, const tn_view *value, tn_error *err)
{
  char x[160], y[160];
  const tn_tensor *t = v->tensor;
  const tn_view was = { .dims = tn_tensor_dims(t), .rank = tn_tensor_rank(t) };
  if (tn_tensor_dtype(t) != value->dtype)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "variable '%s' is %s, the value is %s", v->name,
                        tn_dtype_name(tn_tensor_dtype(t)), tn_dtype_name(value->dtype));
  if (tn__view_same_shape(&was, value)) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "variable '%s' has shape %s, the value has shape %s", v->name,
                      tn__format_shape(x, sizeof x, was.dims, was.rank),
                      tn__format_shape(y, sizeof y, value->dims, value->rank));
}

/* Requires the lock. */
static tn_status update(tn_kernel_ctx *ctx, tn__variable *v)
{
  const tn__scatter *s = ctx->state;
  const tn_view *value = ctx->inputs[1];
  tn_tensor *t;
  tn_status st = v->tensor == NULL ? tn__variable_unset_error(v, ctx->err) : check(v, value, ctx->err);
  if (st == TN_OK) st = tn__variable_edit(v, &t, ctx->err);
  if (st != TN_OK || value->count == 0) return st;
  update_run r = { s->fn, tn_dtype_size(value->dtype), value->data, tn_tensor_data(t) };
  if (value->count <= TN__SERIAL_ELEMENTS) update_part(&r, 0, value->count);
  else tn_parallel_for(ctx, value->count, TN__SERIAL_ELEMENTS, COST_NS, update_part, &r);
  return TN_OK;
}

static tn_status update_compute(tn_kernel_ctx *ctx)
{
  tn__variable *v;
  tn_status st = tn__variable_input(ctx, 0, &v);
  if (st != TN_OK) return st;
  tn__variable_lock(v);
  st = update(ctx, v);
  tn__variable_unlock(v);
  return st;
}

/* ---- tables ---- */

#define NUMBERTYPES                                                                                            \
  "{float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, " \
  "uint16, complex128, half, uint32, uint64}"
#define OP(op, in, out, attributes, shapes, text)                                                 \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = attributes, \
    .traits = TN_TRAIT_STATEFUL, .infer = shapes, .summary = text }
#define BY_REFERENCE(op, text)                                \
  OP(op, "ref: Ref(T), value: T", "output_ref: Ref(T)", "T: " NUMBERTYPES "; use_locking: bool = false", \
     tn__infer_unknown, text)

static const tn_op_def ops[] = {
  BY_REFERENCE("AssignAdd", "adds to a variable"),
  OP("AssignAddVariableOp", "resource: resource, value: dtype", "", "dtype: type", NULL, "adds to a variable"),
  BY_REFERENCE("AssignSub", "subtracts from a variable"),
  OP("AssignSubVariableOp", "resource: resource, value: dtype", "", "dtype: type", NULL, "subtracts from a variable"),
};

#define NUMBERS "float|double|half|bfloat16|int8|uint8|int16|uint16|int32|uint32|int64|uint64|complex64|complex128"
#define KERNEL(which, constraint, title, create_fn, prepare_fn)                                               \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .types = constraint, .name = title,      \
    .rank = TN_RANK_C, .create = create_fn, .destroy = update_destroy, .prepare = prepare_fn,                 \
    .compute = update_compute }

static const tn_kernel_def kernels[] = {
  KERNEL("AssignAdd", "T=" NUMBERS, "assign_add_cpu", add_create, reference_prepare),
  KERNEL("AssignAddVariableOp", "dtype=" NUMBERS, "assign_add_variable_op_cpu", add_create, resource_prepare),
  KERNEL("AssignSub", "T=" NUMBERS, "assign_sub_cpu", sub_create, reference_prepare),
  KERNEL("AssignSubVariableOp", "dtype=" NUMBERS, "assign_sub_variable_op_cpu", sub_create, resource_prepare),
};

TN_OP_FAMILY(variables_add)
