/* SPDX-License-Identifier: Apache-2.0 */
/* Variables that are passed by reference: VariableV2 Variable Assign IsVariableInitialized CountUpTo ResourceCountUpTo
 * RefIdentity. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <ops/kernel/family.h>
#include <ops/state/variable/variable.h>
#include <string.h>

/* ---- VariableV2, Variable ---- */

typedef struct variable_state {
  tn__resource_place place;
  tn__variable_wish wish;
} variable_state;

static void variable_destroy(void *state)
{
  variable_state *s = state;
  tn__resource_place_fini(&s->place);
  tn__free(s, sizeof *s);
}

/* The declared shape must be fully known. An unknown rank means a scalar, as in TensorFlow. */
static tn_status read_wish(const tn_operation *op, tn__variable_wish *wish, tn_error *err)
{
  char text[160];
  tn_status st = tn_operation_attr_type(op, "dtype", &wish->dtype, err);
  if (st == TN_OK) st = tn_operation_attr_shape(op, "shape", &wish->dims, &wish->rank, err);
  if (st != TN_OK) return st;
  if (wish->rank < 0) wish->rank = 0;
  if (tn__shape_is_known(wish->dims, wish->rank)) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the shape %s is not known in all dimensions",
                      tn_operation_type(op), tn__format_shape(text, sizeof text, wish->dims, wish->rank));
}

static tn_status variable_create(const tn_operation *op, void **state, tn_error *err)
{
  variable_state *s = tn__zalloc(sizeof *s);
  *state = NULL;
  if (s == NULL) return tn__no_memory(err, "kernel", sizeof *s);
  tn_status st = read_wish(op, &s->wish, err);
  if (st == TN_OK) st = tn__resource_place_init(&s->place, op, err);
  if (st != TN_OK) {
    tn__free(s, sizeof *s);
    return st;
  }
  s->wish.name = s->place.name;
  s->wish.by_reference = true;
  *state = s;
  return TN_OK;
}

static tn_status variable_compute(tn_kernel_ctx *ctx)
{
  const variable_state *s = ctx->state;
  tn_resource *r;
  tn__variable_wish wish = s->wish;
  tn_status st =
      tn_kernel_obtain(ctx, s->place.container, s->place.name, &tn__variable_class, tn__variable_create, &wish, &r);
  return st == TN_OK ? tn__give_handle(ctx, 0, r) : st;
}

/* ---- Assign ---- */

typedef struct assign_state {
  bool validate;
} assign_state;
static const assign_state assign_any = { false }, assign_same = { true };

static tn_status assign_create(const tn_operation *op, void **state, tn_error *err)
{
  (void)err;
  *state = (void *)(tn__attr_bool(op, "validate_shape", true) ? &assign_same : &assign_any); /* only read through it */
  return TN_OK;
}

/* The output is the reference itself. */
static tn_status reference_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn_prepare_output_like(ctx, 0, 0, err);
  return st == TN_OK ? tn_prepare_view(ctx, 0, 0, err) : st;
}

/* The current or declared shape must equal that of the value. */
static tn_status same_shape(tn__variable *v, const tn_view *value, tn_error *err)
{
  char x[160], y[160];
  tn__shape was;
  tn__variable_lock(v);
  if (v->tensor != NULL) tn__shape_set(&was, tn_tensor_dims(v->tensor), tn_tensor_rank(v->tensor));
  else tn__shape_set(&was, v->dims, v->rank);
  tn__variable_unlock(v);
  const tn_view wanted = { .dims = was.dims, .rank = was.rank };
  if (tn__view_same_shape(&wanted, value)) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "variable '%s' has shape %s, the value has shape %s", v->name,
                      tn__format_shape(x, sizeof x, was.dims, was.rank),
                      tn__format_shape(y, sizeof y, value->dims, value->rank));
}

static tn_status assign_compute(tn_kernel_ctx *ctx)
{
  const assign_state *s = ctx->state;
  tn__variable *v;
  tn_status st = tn__variable_input(ctx, 0, &v);
  if (st == TN_OK && s->validate) st = same_shape(v, ctx->inputs[1], ctx->err);
  return st == TN_OK ? tn__variable_assign(v, ctx, 1) : st;
}

/* ---- CountUpTo, ResourceCountUpTo ---- */

typedef struct count_state {
  int64_t limit;
  tn_dtype dtype;
} count_state;

static tn_status count_create(const tn_operation *op, void **state, tn_error *err)
{
  count_state s;
  *state = NULL;
  tn_status st = tn_operation_attr_int(op, "limit", &s.limit, err);
  if (st == TN_OK) st = tn_operation_attr_type(op, "T", &s.dtype, err);
  if (st != TN_OK) return st;
  count_state *made = tn__alloc(sizeof *made);
  if (made == NULL) return tn__no_memory(err, "kernel", sizeof *made);
  *made = s;
  *state = made;
  return TN_OK;
}

static void count_destroy(void *state) { tn__free(state, sizeof(count_state)); }

/* Requires the lock and a value. */
static tn_status count(const count_state *s, tn__variable *v, void *out, tn_error *err)
{
  char text[160];
  tn_tensor *t = v->tensor;
  if (tn_tensor_dtype(t) != s->dtype || tn_tensor_rank(t) != 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "variable '%s' is %s %s, wanted a scalar of %s", v->name,
                        tn_dtype_name(tn_tensor_dtype(t)),
                        tn__format_shape(text, sizeof text, tn_tensor_dims(t), tn_tensor_rank(t)),
                        tn_dtype_name(s->dtype));
  bool wide = s->dtype == TN_INT64;
  int64_t now = wide ? *(int64_t *)tn_tensor_data(t) : *(int32_t *)tn_tensor_data(t);
  if (now >= s->limit)
    return tn_error_set(err, TN_OUT_OF_RANGE, "variable '%s' has reached the limit of %lld", v->name,
                        (long long)s->limit);
  tn_status st = tn__variable_edit(v, &t, err);
  if (st != TN_OK) return st;
  if (wide) {
    *(int64_t *)out = now;
    *(int64_t *)tn_tensor_data(t) = now + 1;
  } else {
    *(int32_t *)out = (int32_t)now;
    *(int32_t *)tn_tensor_data(t) = (int32_t)((uint32_t)now + 1);
  }
  return TN_OK;
}

static tn_status count_compute(tn_kernel_ctx *ctx)
{
  tn__variable *v;
  tn_status st = tn__variable_input(ctx, 0, &v);
  if (st != TN_OK) return st;
  tn__variable_lock(v);
  st = v->tensor == NULL ? tn__variable_unset_error(v, ctx->err)
                         : count(ctx->state, v, ctx->outputs[0]->data, ctx->err);
  tn__variable_unlock(v);
  return st;
}

/* ---- RefIdentity ---- */

static tn_status nothing(tn_kernel_ctx *ctx)
{
  (void)ctx;
  return TN_OK;
}

/* ---- tables ---- */

/* The shape of a reference is unknown before a step, because Assign may change it. */

#define OP(op, in, out, attributes, also, shapes, text)                                        \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = attributes, \
    .traits = TN_TRAIT_STATEFUL | (also), .infer = shapes, .summary = text }
#define VARIABLE "shape: shape; dtype: type; container: string = ''; shared_name: string = ''"

static const tn_op_def ops[] = {
  OP("Assign", "ref: Ref(T), value: T", "output_ref: Ref(T)",
     "T: type; validate_shape: bool = true; use_locking: bool = true", 0, tn__infer_unknown,
     "assigns a value to a variable"),
  OP("CountUpTo", "ref: Ref(T)", "output: T", "limit: int; T: {int32, int64}", 0, tn__infer_scalar,
     "increments a variable and returns its previous value"),
  OP("IsVariableInitialized", "ref: Ref(dtype)", "is_initialized: bool", "dtype: type", TN_TRAIT_READS,
     tn__infer_scalar, "whether a variable is initialised"),
  OP("RefIdentity", "input: Ref(T)", "output: Ref(T)", "T: type", TN_TRAIT_READS, tn__infer_unknown,
     "forwards its reference"),
  OP("ResourceCountUpTo", "resource: resource", "output: T", "limit: int; T: {int32, int64}", 0, tn__infer_scalar,
     "increments a variable and returns its previous value"),
  OP("Variable", "", "ref: Ref(dtype)", VARIABLE, TN_TRAIT_READS, tn__infer_unknown,
     "variable that persists across steps"),
  OP("VariableV2", "", "ref: Ref(dtype)", VARIABLE, TN_TRAIT_READS, tn__infer_unknown,
     "variable that persists across steps"),
};

static const tn_kernel_def kernels[] = {
  TN__KERNEL("Assign", "assign_cpu", assign_create, NULL, reference_prepare, assign_compute),
  TN__KERNEL("CountUpTo", "count_up_to_cpu", count_create, count_destroy, tn__prepare_scalar, count_compute),
  TN__KERNEL("IsVariableInitialized", "is_variable_initialized_cpu", NULL, NULL, tn__prepare_scalar,
             tn__variable_is_set_compute),
  TN__KERNEL("RefIdentity", "ref_identity_cpu", NULL, NULL, reference_prepare, nothing),
  TN__KERNEL("ResourceCountUpTo", "resource_count_up_to_cpu", count_create, count_destroy, tn__prepare_scalar,
             count_compute),
  TN__KERNEL("Variable", "variable_cpu", variable_create, variable_destroy, tn__prepare_scalar, variable_compute),
  TN__KERNEL("VariableV2", "variable_v2_cpu", variable_create, variable_destroy, tn__prepare_scalar, variable_compute),
};

TN_OP_FAMILY(variables)
