/* SPDX-License-Identifier: Apache-2.0 */
/* Variables with resource handles: VarHandleOp VarIsInitializedOp ReadVariableOp AssignVariableOp
 * DestroyResourceOp VariableShape DisableCopyOnRead. The handle exists before the variable, which
 * exists from its first assignment until it is destroyed. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <ops/kernel/family.h>
#include <ops/state/variable/variable.h>
#include <string.h>

/* TensorFlow's shared_name for a variable that is in no container: each run of its node creates a
 * new one. */
#define ANONYMOUS "cd2c89b7-88b7-44c8-ad83-06c2a9158347"

/* ---- VarHandleOp ---- */

typedef struct handle_state {
  tn__resource_place place;
  tn__variable_wish wish;
  bool anonymous, unnamed;
} handle_state;

static void handle_destroy(void *state)
{
  handle_state *s = state;
  tn__resource_place_fini(&s->place);
  tn__free(s, sizeof *s);
}

static tn_status read_handle(const tn_operation *op, handle_state *s, tn_error *err)
{
  const char *text = "";
  size_t n = 0;
  tn_status st = tn_operation_attr_type(op, "dtype", &s->wish.dtype, err);
  if (st == TN_OK) st = tn_operation_attr_shape(op, "shape", &s->wish.dims, &s->wish.rank, err);
  if (st == TN_OK) st = tn_operation_attr_string(op, "shared_name", &text, &n, err);
  if (st == TN_OK) st = tn__resource_place_init(&s->place, op, err);
  if (st != TN_OK) return st;
  s->unnamed = n == 0 || text[0] == 0; /* all unnamed ones of a container are the same variable */
  s->anonymous = n == strlen(ANONYMOUS) && memcmp(text, ANONYMOUS, n) == 0;
  s->wish.name = s->anonymous ? tn_operation_name(op) : s->place.name;
  return TN_OK;
}

static tn_status handle_create(const tn_operation *op, void **state, tn_error *err)
{
  handle_state *s = tn__zalloc(sizeof *s);
  *state = NULL;
  if (s == NULL) return tn__no_memory(err, "kernel", sizeof *s);
  tn_status st = read_handle(op, s, err);
  if (st == TN_OK) *state = s;
  else tn__free(s, sizeof *s);
  return st;
}

static tn_status handle_compute(tn_kernel_ctx *ctx)
{
  const handle_state *s = ctx->state;
  tn_resource *r = NULL;
  tn__variable_wish wish = s->wish;
  tn_status st;
  if (s->anonymous) {
    void *object;
    st = tn__variable_create(&wish, &object, ctx->err);
    if (st == TN_OK) st = tn_resource_create(&tn__variable_class, wish.name, object, &r, ctx->err);
  } else {
    const char *name = s->unnamed ? "" : s->place.name;
    st = tn_kernel_obtain(ctx, s->place.container, name, &tn__variable_class, tn__variable_create, &wish, &r);
  }
  return st == TN_OK ? tn__give_handle(ctx, 0, r) : st;
}

/* ---- reading ---- */

static tn_status dynamic_prepare(tn_prepare_ctx *ctx, tn_error *err) { return tn_prepare_dynamic(ctx, 0, err); }
static tn_status other_dtype(const tn__variable *v, tn_dtype found, tn_dtype wanted, tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "variable '%s' is %s, wanted %s", v->name, tn_dtype_name(found),
                      tn_dtype_name(wanted));
}

typedef struct read_state {
  const int64_t *dims; /* known before the step, see tn__handle_shape */
  int32_t rank;
} read_state;

static tn_status read_create(const tn_operation *op, void **state, tn_error *err)
{
  read_state s;
  s.rank = tn__handle_shape(op, 0, &s.dims);
  return tn__keep_state(&s, sizeof s, "kernel", state, err);
}

static void read_destroy(void *state) { tn__free(state, sizeof(read_state)); }

/* The tensor is returned without a copy. */
static tn_status read_compute(tn_kernel_ctx *ctx)
{
  const read_state *s = ctx->state;
  tn__variable *v;
  tn_tensor *t;
  tn_status st = tn__variable_input(ctx, 0, &v);
  if (st == TN_OK) st = tn__variable_read(v, &t, ctx->err);
  if (st != TN_OK) return st;
  tn_dtype wanted = ctx->outputs[0]->dtype;
  if (tn_tensor_dtype(t) != wanted) st = other_dtype(v, tn_tensor_dtype(t), wanted, ctx->err);
  if (st == TN_OK) st = tn__variable_check_shape(v, t, s->dims, s->rank, ctx->err);
  if (st == TN_OK) st = tn_kernel_set_output(ctx, 0, t);
  tn_tensor_unref(t);
  return st;
}

/* Reads never see a value change, so there is nothing to disable. */
static tn_status disable_compute(tn_kernel_ctx *ctx)
{
  tn__variable *v;
  tn_tensor *t;
  tn_status st = tn__variable_input(ctx, 0, &v);
  if (st == TN_OK) st = tn__variable_read(v, &t, ctx->err);
  if (st == TN_OK) tn_tensor_unref(t);
  return st;
}

static tn_status shape_compute(tn_kernel_ctx *ctx)
{
  tn__variable *v;
  tn_tensor *t = NULL;
  tn_status st = tn__variable_input(ctx, 0, &v);
  if (st != TN_OK) return st;
  if (tn__variable_read(v, &t, NULL) != TN_OK) return tn__variable_unset_error(v, ctx->err);
  int64_t rank = tn_tensor_rank(t);
  st = tn_kernel_allocate(ctx, 0, &rank, 1);
  const tn_view *out = ctx->outputs[0];
  for (int64_t k = 0; st == TN_OK && k < rank; k++) {
    int64_t dim = tn_tensor_dims(t)[k];
    if (out->dtype == TN_INT64) ((int64_t *)out->data)[k] = dim;
    else if (dim <= INT32_MAX) ((int32_t *)out->data)[k] = (int32_t)dim;
    else st = tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                           "dimension %lld of variable '%s' is %lld, which does not fit int32",
                           (long long)k, v->name, (long long)dim);
  }
  tn_tensor_unref(t);
  return st;
}

/* ---- writing ---- */

typedef struct assign_state {
  bool validate;
} assign_state;
static const assign_state assign_any = { false }, assign_same = { true };

static tn_status assign_create(const tn_operation *op, void **state, tn_error *err)
{
  (void)err;
  *state = (void *)(tn__attr_bool(op, "validate_shape", false) ? &assign_same : &assign_any); /* only read through it */
  return TN_OK;
}

/* A variable keeps its dtype, and its shape if that is validated. */
static tn_status check_value(tn__variable *v, const tn_view *value, bool validate, tn_error *err)
{
  char x[160], y[160];
  tn_tensor *t;
  if (tn__variable_read(v, &t, NULL) != TN_OK) return TN_OK;
  tn_status st = TN_OK;
  const tn_view was = { .dims = tn_tensor_dims(t), .rank = tn_tensor_rank(t) };
  if (tn_tensor_dtype(t) != value->dtype)
    st = other_dtype(v, tn_tensor_dtype(t), value->dtype, err);
  else if (validate && !tn__view_same_shape(&was, value))
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "variable '%s' has shape %s, the value has shape %s", v->name,
                      tn__format_shape(x, sizeof x, was.dims, was.rank),
                      tn__format_shape(y, sizeof y, value->dims, value->rank));
  tn_tensor_unref(t);
  return st;
}

static tn_status assign_compute(tn_kernel_ctx *ctx)
{
  const assign_state *s = ctx->state;
  tn__variable *v;
  tn_status st = tn__variable_input(ctx, 0, &v);
  if (st == TN_OK) st = check_value(v, ctx->inputs[1], s->validate, ctx->err);
  return st == TN_OK ? tn__variable_assign(v, ctx, 1) : st;
}

/* ---- DestroyResourceOp ---- */

typedef struct destroy_state {
  bool ignore;
} destroy_state;
static const destroy_state destroy_any = { true }, destroy_there = { false };

static tn_status destroy_create(const tn_operation *op, void **state, tn_error *err)
{
  (void)err;
  *state = (void *)(tn__attr_bool(op, "ignore_lookup_error", true) ? &destroy_any : &destroy_there);
  return TN_OK;
}

/* The handle outlives the variable: assigning a value later recreates the variable under its name. */
static tn_status destroy_variable(tn__variable *v, bool ignore, tn_error *err)
{
  if (!tn__variable_is_set(v)) return ignore ? TN_OK : tn__variable_unset_error(v, err);
  tn__variable_put(v, NULL);
  return TN_OK;
}

static tn_status destroy_compute(tn_kernel_ctx *ctx)
{
  const destroy_state *s = ctx->state;
  const tn_view *in = ctx->inputs[0];
  tn_handle *h = in->count == 1 ? *(tn_handle *const *)in->data : NULL;
  tn_resource *r = tn_handle_resource(h);
  if (r == NULL)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "input 0 is not a resource handle");
  if (tn_resource_class_of(r) == &tn__variable_class)
    return destroy_variable(tn_resource_object(r), s->ignore, ctx->err);
  tn_status st = tn_kernel_remove(ctx, r);
  if (st != TN_NOT_FOUND || !s->ignore) return st;
  tn_error_clear(ctx->err);
  return TN_OK;
}

static tn_status infer_vector(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t dim = -1;
  return tn_infer_output(ctx, 0, &dim, 1, err);
}

/* ---- tables ---- */

static tn_status infer_read(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t *dims;
  int32_t rank = tn__handle_shape(tn_infer_operation(ctx), 0, &dims);
  return tn_infer_output(ctx, 0, dims, rank, err);
}

#define OP(op, in, out, attributes, also, shapes, text)                                           \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = attributes, \
    .traits = TN_TRAIT_STATEFUL | (also), .infer = shapes, .summary = text }

static const tn_op_def ops[] = {
  OP("AssignVariableOp", "resource: resource, value: dtype", "", "dtype: type; validate_shape: bool = false", 0, NULL,
     "assigns a value to a variable"),
  OP("DestroyResourceOp", "resource: resource", "", "ignore_lookup_error: bool = true", 0, NULL,
     "removes a resource from its container"),
  OP("DisableCopyOnRead", "resource: resource", "", "", TN_TRAIT_READS, NULL,
     "nothing: reads of variables copy nothing"),
  OP("ReadVariableOp", "resource: resource", "value: dtype", "dtype: type", TN_TRAIT_DYNAMIC | TN_TRAIT_READS,
     infer_read, "value of a variable"),
  OP("VarHandleOp", "", "resource: resource",
     "container: string = ''; shared_name: string = ''; debug_name: string = ''; dtype: type; shape: shape; "
     "allowed_devices: list(string) = []",
     TN_TRAIT_READS, tn__infer_scalar, "handle of a variable that persists across steps"),
  OP("VarIsInitializedOp", "resource: resource", "is_initialized: bool", "", TN_TRAIT_READS, tn__infer_scalar,
     "whether a variable is initialised"),
  OP("VariableShape", "input: resource", "output: out_type", "out_type: {int32, int64} = int32",
     TN_TRAIT_DYNAMIC | TN_TRAIT_READS, infer_vector, "shape of a variable"),
};

static const tn_kernel_def kernels[] = {
  TN__KERNEL("AssignVariableOp", "assign_variable_op_cpu", assign_create, NULL, tn__prepare_nothing, assign_compute),
  TN__KERNEL("DestroyResourceOp", "destroy_resource_op_cpu", destroy_create, NULL, tn__prepare_nothing,
             destroy_compute),
  TN__KERNEL("DisableCopyOnRead", "disable_copy_on_read_cpu", NULL, NULL, tn__prepare_nothing, disable_compute),
  TN__KERNEL("ReadVariableOp", "read_variable_op_cpu", read_create, read_destroy, dynamic_prepare, read_compute),
  TN__KERNEL("VarHandleOp", "var_handle_op_cpu", handle_create, handle_destroy, tn__prepare_scalar, handle_compute),
  TN__KERNEL("VarIsInitializedOp", "var_is_initialized_op_cpu", NULL, NULL, tn__prepare_scalar,
             tn__variable_is_set_compute),
  TN__KERNEL("VariableShape", "variable_shape_cpu", NULL, NULL, dynamic_prepare, shape_compute),
};

TN_OP_FAMILY(variables_resource)
