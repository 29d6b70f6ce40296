/* SPDX-License-Identifier: Apache-2.0 */
/* Variables of one step: TemporaryVariable, DestroyTemporaryVariable.
 *
 * Each run of the node creates a variable, which exists as long as its handle is held, so each
 * iteration of a loop has its own. The node claims the name in the step's own container: another
 * node with the same name is an error. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <core/graph/graph_internal.h>
#include <core/tensor/tensor_internal.h>
#include <ops/kernel/family.h>
#include <ops/state/variable/variable.h>
#include <string.h>

/* ---- names ---- */

typedef struct claim {
  const tn_operation *op;
} claim;

static void claim_destroy(void *object) { tn__free(object, sizeof(claim)); }

static const tn_resource_class claim_class = {
  .struct_size = sizeof claim_class,
  .name = "name of a temporary variable",
  .destroy = claim_destroy,
};

static tn_status claim_make(void *user, void **object, tn_error *err)
{
  claim *c = tn__alloc(sizeof *c);
  *object = c;
  if (c == NULL) return tn__no_memory(err, "temporary variable", sizeof *c);
  c->op = user;
  return TN_OK;
}

/* ---- TemporaryVariable ---- */

typedef struct temporary_state {
  const tn_operation *op;
  char *name; /* attribute var_name, or the node's name if that is empty */
  tn_dtype dtype;
  int32_t rank;
  const int64_t *dims;
} temporary_state;

static void temporary_destroy(void *state)
{
  temporary_state *s = state;
  tn__strfree(s->name);
  tn__free(s, sizeof *s);
}

static tn_status read_name(const tn_operation *op, char **name, tn_error *err)
{
  const char *text;
  size_t n;
  *name = NULL;
  tn_status st = tn_operation_attr_string(op, "var_name", &text, &n, err);
  if (st != TN_OK) return st;
  n = strnlen(text, n);
  *name = n > 0 ? tn__strndup(text, n) : tn__strdup(tn__operation_own_name(op));
  return *name != NULL ? TN_OK : tn__no_memory(err, "kernel", n);
}

static tn_status read_temporary(const tn_operation *op, temporary_state *s, tn_error *err)
{
  char text[160];
  tn_status st = tn_operation_attr_type(op, "dtype", &s->dtype, err);
  if (st == TN_OK) st = tn_operation_attr_shape(op, "shape", &s->dims, &s->rank, err);
  if (st != TN_OK) return st;
  if (s->rank < 0) s->rank = 0;
  if (!tn__shape_is_known(s->dims, s->rank))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the shape %s is not known in all dimensions",
                        tn_operation_type(op), tn__format_shape(text, sizeof text, s->dims, s->rank));
  return read_name(op, &s->name, err);
}

static tn_status temporary_create(const tn_operation *op, void **state, tn_error *err)
{
  temporary_state *s = tn__zalloc(sizeof *s);
  *state = NULL;
  if (s == NULL) return tn__no_memory(err, "kernel", sizeof *s);
  s->op = op;
  tn_status st = read_temporary(op, s, err);
  if (st == TN_OK) *state = s;
  else temporary_destroy(s);
  return st;
}

static tn_status temporary_prepare(tn_prepare_ctx *ctx, tn_error *err) { return tn__prepare_handle(ctx, 0, err); }

static tn_status take_name(tn_kernel_ctx *ctx, const temporary_state *s)
{
  tn_resource *r;
  tn_status st = tn_kernel_obtain(ctx, TN_STEP_CONTAINER, s->name, &claim_class, claim_make, (void *)s->op, &r);
  if (st != TN_OK) return st;
  const tn_operation *owner = ((const claim *)tn_resource_object(r))->op;
  if (owner != s->op)
    st = tn_error_set(ctx->err, TN_ALREADY_EXISTS, "node '%s' of this step has a temporary variable '%s' already",
                      tn_operation_name(owner), s->name);
  tn_resource_unref(r);
  return st;
}

/* The variable has memory from the start. Its contents are unspecified: zeros here. */
static tn_status make_variable(tn_kernel_ctx *ctx, const temporary_state *s, tn_resource **out)
{
  tn__variable_wish wish = { s->name, s->dtype, s->rank, s->dims, true };
  tn_tensor *zeros;
  void *object;
  *out = NULL;
  tn_status st = tn_tensor_create(s->dtype, s->dims, s->rank, &zeros, ctx->err);
  if (st != TN_OK) return st;
  if (!tn__dtype_is_managed(s->dtype) && tn_tensor_bytes(zeros) > 0)
    memset(tn_tensor_data(zeros), 0, tn_tensor_bytes(zeros));
  st = tn__variable_create(&wish, &object, ctx->err);
  if (st != TN_OK) {
    tn_tensor_unref(zeros);
    return st;
  }
  tn__variable_put(object, zeros);
  return tn_resource_create(&tn__variable_class, s->name, object, out, ctx->err);
}

static tn_status temporary_compute(tn_kernel_ctx *ctx)
{
  const temporary_state *s = ctx->state;
  tn_resource *r;
  tn_status st = take_name(ctx, s);
  if (st == TN_OK) st = make_variable(ctx, s, &r);
  return st == TN_OK ? tn__give_handle(ctx, 0, r) : st;
}

/* ---- DestroyTemporaryVariable ---- */

static tn_status destroy_create(const tn_operation *op, void **state, tn_error *err)
{
  char *name;
  tn_status st = read_name(op, &name, err);
  *state = name;
  return st;
}

static void destroy_destroy(void *state) { tn__strfree(state); }

static tn_status destroy_prepare(tn_prepare_ctx *ctx, tn_error *err) { return tn_prepare_dynamic(ctx, 0, err); }

/* The value becomes the output, and the name is available again. */
static tn_status destroy_compute(tn_kernel_ctx *ctx)
{
  const char *name = ctx->state;
  tn__variable *v;
  tn_tensor *value = NULL;
  tn_resource *r;
  tn_status st = tn__variable_input(ctx, 0, &v);
  if (st != TN_OK) return st;
  tn__variable_lock(v);
  if (strcmp(v->name, name) == 0) {
    value = v->tensor;
    v->tensor = NULL;
  }
  tn__variable_unlock(v);
  if (value == NULL)
    return tn_error_set(ctx->err, TN_NOT_FOUND, "input 0 is a reference to '%s', not to a temporary variable '%s'",
                        v->name, name);
  st = tn_kernel_set_output(ctx, 0, value);
  tn_tensor_unref(value);
  if (st != TN_OK || tn_kernel_lookup(ctx, TN_STEP_CONTAINER, name, &claim_class, &r) != TN_OK) {
    if (st == TN_OK) tn_error_clear(ctx->err); /* another iteration of a loop has released the name */
    return st;
  }
  if (tn_kernel_remove(ctx, r) != TN_OK) tn_error_clear(ctx->err);
  tn_resource_unref(r);
  return TN_OK;
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "DestroyTemporaryVariable", .inputs = "ref: Ref(T)", .outputs = "value: T",
    .attrs = "T: type; var_name: string", .traits = TN_TRAIT_STATEFUL | TN_TRAIT_DYNAMIC, .infer = tn__infer_unknown,
    .summary = "destroys a temporary variable and returns its value" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "TemporaryVariable", .inputs = "", .outputs = "ref: Ref(dtype)",
    .attrs = "shape: shape; dtype: type; var_name: string = ''", .traits = TN_TRAIT_STATEFUL,
    .infer = tn__infer_unknown, .summary = "temporary variable that lives for one step" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "DestroyTemporaryVariable", .device = "CPU",
    .name = "destroy_temporary_variable_cpu", .rank = TN_RANK_C, .create = destroy_create, .destroy = destroy_destroy,
    .prepare = destroy_prepare, .compute = destroy_compute },
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "TemporaryVariable", .device = "CPU", .name = "temporary_variable_cpu",
    .rank = TN_RANK_C, .create = temporary_create, .destroy = temporary_destroy, .prepare = temporary_prepare,
    .compute = temporary_compute },
};

TN_OP_FAMILY(variables_temporary)
