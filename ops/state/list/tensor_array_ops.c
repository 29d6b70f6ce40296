/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by ops on tensor arrays. */
#include <core/base/text.h>
#include <ops/state/list/tensor_array_ops.h>
#include <stdatomic.h>
#include <string.h>

/* ---- arrays in the step's container: "array_7", and "array_7@source" for its gradients ---- */

static tn_status take(void *user, void **object, tn_error *err)
{
  tn__array **array = user;
  (void)err;
  *object = *array;
  *array = NULL;
  return TN_OK;
}

tn_status tn__array_register(tn_kernel_ctx *ctx, tn__array *array, const char *name, bool in_step, tn_resource **out)
{
  static atomic_uint_fast64_t n_arrays;
  char text[40];
  if (!in_step) return tn_resource_create(&tn__array_class, name, array, out, ctx->err);
  tn__snprintf(text, sizeof text, "array_%llu", (unsigned long long)atomic_fetch_add(&n_arrays, 1));
  array->step_name = tn__strdup(text);
  if (array->step_name == NULL) {
    tn__array_destroy(array);
    return tn__no_memory(ctx->err, "name of a tensor array", sizeof text);
  }
  tn_status st = tn_kernel_obtain(ctx, TN_STEP_CONTAINER, text, &tn__array_class, take, &array, out);
  if (array != NULL) tn__array_destroy(array);
  return st;
}

/* Finds an array, or its gradients of name `source` unless that is NULL. `name` has no "@source"
 * here. */
static tn_status find_cut(tn_kernel_ctx *ctx, const char *name, const char *source, tn_resource **out)
{
  tn_status st = tn_kernel_lookup(ctx, TN_STEP_CONTAINER, name, &tn__array_class, out);
  if (st != TN_OK || source == NULL) return st;
  tn_resource *array = *out;
  *out = tn__array_find_gradient(tn_resource_object(array), source);
  tn_resource_unref(array);
  if (*out != NULL) return TN_OK;
  return tn_error_set(ctx->err, TN_NOT_FOUND, "TensorArray '%s' has no gradients '%s'", name, source);
}

static tn_status find(tn_kernel_ctx *ctx, char *name, tn_resource **out)
{
  char *cut = strchr(name, '@');
  if (cut != NULL) *cut = 0;
  tn_status st = find_cut(ctx, name, cut == NULL ? NULL : cut + 1, out);
  if (cut != NULL) *cut = '@';
  return st;
}

static tn_status find_by_name(tn_kernel_ctx *ctx, tn__array_ref *out)
{
  const tn_view *v = ctx->inputs[0];
  size_t length;
  if (v->count != 2)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "input 0 has %lld strings, a handle of a TensorArray has 2",
                        (long long)v->count);
  const char *text = tn_string_data((const tn_string *)v->data + 1, &length);
  char *name = tn__strndup(text, strnlen(text, length));
  if (name == NULL) return tn__no_memory(ctx->err, "name of a tensor array", length);
  tn_status st = find(ctx, name, &out->held);
  tn__strfree(name);
  if (st != TN_OK) return st;
  out->array = tn_resource_object(out->held);
  out->name = tn_resource_name(out->held);
  return TN_OK;
}

/* ---- the array of an op ---- */

tn_status tn__array_input(tn_kernel_ctx *ctx, tn__array_ref *out)
{
  void *object;
  tn_resource *resource;
  *out = (tn__array_ref){ .array = NULL };
  if (ctx->inputs[0]->dtype == TN_STRING) return find_by_name(ctx, out);
  tn_status st = tn__resource_input(ctx, 0, &tn__array_class, &object, &resource);
  if (st != TN_OK) return st;
  out->array = object;
  out->name = tn_resource_name(resource);
  return TN_OK;
}

void tn__array_input_end(tn__array_ref *ref) { tn_resource_unref(ref->held); }

tn_status tn__array_prepare_handle(tn_prepare_ctx *ctx, uint32_t i, tn_error *err)
{
  const int64_t two = 2;
  return tn_prepare_output(ctx, i, &two, tn_operation_output_dtype(ctx->op, i) == TN_STRING, err);
}

static tn_status set_text(tn_kernel_ctx *ctx, uint32_t i, int64_t k, const char *text)
{
  return tn_string_set((tn_string *)ctx->outputs[i]->data + k, text, strlen(text), ctx->err);
}

tn_status tn__array_give(tn_kernel_ctx *ctx, uint32_t i, tn_resource *resource)
{
  if (ctx->outputs[i]->dtype != TN_STRING) return tn__give_handle(ctx, i, resource);
  const tn__array *array = tn_resource_object(resource);
  tn_status st = set_text(ctx, i, 0, TN__ARRAY_HOME);
  if (st == TN_OK) st = set_text(ctx, i, 1, array->step_name);
  tn_resource_unref(resource);
  return st;
}

tn_status tn__array_prepare_flow(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn_prepare_output_like(ctx, 0, ctx->n_inputs - 1, err);
  return st == TN_OK ? tn_prepare_view(ctx, 0, ctx->n_inputs - 1, err) : st;
}
