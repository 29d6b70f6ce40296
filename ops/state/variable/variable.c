/* SPDX-License-Identifier: Apache-2.0 */
/* Variables: read without a copy, changed in place, copied before a change if a reader still holds
 * the tensor. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <core/tensor/tensor_internal.h>
#include <ops/state/variable/variable.h>
#include <string.h>

/* ---- the object ---- */

static size_t dims_size(const tn__variable *v) { return v->rank > 0 ? (size_t)v->rank * sizeof v->dims[0] : 0; }

static void variable_destroy(void *object)
{
  tn__variable *v = object;
  tn_tensor_unref(v->tensor);
  tn__strfree(v->name);
  tn__free(v->dims, dims_size(v));
  tn__mutex_fini(&v->mu);
  tn__free(v, sizeof *v);
}

static tn_status variable_read(void *object, tn_tensor **out, tn_error *err)
{
  return tn__variable_read(object, out, err);
}

static void variable_write(void *object, tn_tensor *value) { tn__variable_put(object, value); }

const tn_resource_class tn__variable_class = {
  .struct_size = sizeof tn__variable_class,
  .name = "Variable",
  .destroy = variable_destroy,
  .read = variable_read,
  .write = variable_write,
};

tn_status tn__variable_create(void *user, void **object, tn_error *err)
{
  const tn__variable_wish *wish = user;
  *object = NULL;
  tn__variable *v = tn__zalloc(sizeof *v);
  if (v == NULL) return tn__no_memory(err, "variable", sizeof *v);
  tn__mutex_init(&v->mu, "variable", TN_RANK_VARIABLE);
  v->dtype = wish->dtype;
  v->rank = wish->rank;
  v->by_reference = wish->by_reference;
  v->name = tn__strdup(wish->name);
  v->dims = tn__alloc(dims_size(v));
  if (v->name == NULL || (v->dims == NULL && dims_size(v) > 0)) {
    variable_destroy(v);
    return tn__no_memory(err, "variable", sizeof *v);
  }
  if (v->dims != NULL) memcpy(v->dims, wish->dims, dims_size(v));
  *object = v;
  return TN_OK;
}

/* ---- one variable ---- */

tn_status tn__variable_input(const tn_kernel_ctx *ctx, uint32_t i, tn__variable **out)
{
  void *object;
  tn_status st = tn__resource_input(ctx, i, &tn__variable_class, &object, NULL);
  *out = object;
  return st;
}

tn_status tn__variable_read(tn__variable *v, tn_tensor **out, tn_error *err)
{
  tn__mutex_lock(&v->mu);
  *out = tn_tensor_ref(v->tensor);
  tn__mutex_unlock(&v->mu);
  if (*out != NULL) return TN_OK;
  return tn_error_set(err, TN_FAILED_PRECONDITION, "variable '%s' is read before it was initialised", v->name);
}

bool tn__variable_is_set(tn__variable *v)
{
  tn__mutex_lock(&v->mu);
  bool set = v->tensor != NULL;
  tn__mutex_unlock(&v->mu);
  return set;
}

tn_status tn__variable_is_set_compute(tn_kernel_ctx *ctx)
{
  tn__variable *v;
  tn_status st = tn__variable_input(ctx, 0, &v);
  if (st == TN_OK) *(uint8_t *)ctx->outputs[0]->data = tn__variable_is_set(v);
  return st;
}

void tn__variable_put(tn__variable *v, tn_tensor *tensor)
{
  tn__mutex_lock(&v->mu);
  tn_tensor *old = v->tensor;
  v->tensor = tensor;
  tn__mutex_unlock(&v->mu);
  tn_tensor_unref(old);
}

static bool same_shape(const tn_tensor *t, const tn_view *v)
{
  return t->rank == v->rank && (v->rank == 0 || memcmp(t->dims, v->dims, (size_t)v->rank * sizeof v->dims[0]) == 0);
}

/* Copies the elements into the existing memory if taking over the input's would gain nothing: it
 * belongs to the plan, or to a constant or a feed, which the next change would have to copy. */
static bool copied_in_place(tn__variable *v, const tn_view *from)
{
  if (tn__dtype_is_managed(from->dtype) || from->data == NULL) return false;
  if (from->buffer != NULL && tn_buffer_describe(from->buffer)->ownership == TN_BUFFER_OWNED) return false;
  tn__mutex_lock(&v->mu);
  tn_tensor *t = v->tensor;
  bool fits = t != NULL && tn_tensor_is_exclusive(t) && t->data != NULL && t->dtype == from->dtype &&
              same_shape(t, from);
  if (fits && t->bytes > 0) memmove(t->data, from->data, t->bytes);
  tn__mutex_unlock(&v->mu);
  return fits;
}

tn_status tn__variable_assign(tn__variable *v, tn_kernel_ctx *ctx, uint32_t i)
{
  tn_tensor *value;
  if (copied_in_place(v, ctx->inputs[i])) return TN_OK;
  tn_status st = tn_kernel_keep_input(ctx, i, &value);
  if (st == TN_OK) tn__variable_put(v, value);
  return st;
}

/* ---- under the lock ---- */

void tn__variable_lock(tn__variable *v) { tn__mutex_lock(&v->mu); }

void tn__variable_unlock(tn__variable *v)
{
  tn_tensor *replaced = v->replaced;
  v->replaced = NULL;
  tn__mutex_unlock(&v->mu);
  tn_tensor_unref(replaced);
}

static tn_status unset_error(const tn__variable *v, tn_error *err)
{
  return tn_error_set(err, TN_FAILED_PRECONDITION, "variable '%s' is used before it was initialised", v->name);
}

tn_status tn__variable_unset_error(const tn__variable *v, tn_error *err)
{
  if (v->by_reference) return unset_error(v, err);
  return tn_error_set(err, TN_NOT_FOUND, "variable '%s' does not exist: no value was assigned to it", v->name);
}

tn_status tn__variable_edit(tn__variable *v, tn_tensor **out, tn_error *err)
{
  tn_tensor *copy;
  tn__assert_held(&v->mu);
  *out = v->tensor;
  if (v->tensor == NULL) return tn__variable_unset_error(v, err);
  /* Overwriting handles must not destroy a resource under the lock, so tensors of handles are
   * always copied. */
  bool handles = v->tensor->dtype == TN_RESOURCE || v->tensor->dtype == TN_VARIANT;
  if (tn_tensor_is_exclusive(v->tensor) && !handles) return TN_OK;
  *out = NULL;
  if (v->replaced != NULL) { /* it was copied already */
    *out = v->tensor;
    return TN_OK;
  }
  tn_status st = tn_tensor_copy(v->tensor, &copy, err);
  if (st != TN_OK) return st;
  v->replaced = v->tensor;
  *out = v->tensor = copy;
  return TN_OK;
}

/* ---- several variables ---- */

/* The next variable to lock: the lowest address above `last`; NULL if there is none. */
static tn__variable *next_above(tn__variable *const *vars, uint32_t n, const tn__variable *last)
{
  tn__variable *next = NULL;
  for (uint32_t k = 0; k < n; k++)
    if ((uintptr_t)vars[k] > (uintptr_t)last && (next == NULL || (uintptr_t)vars[k] < (uintptr_t)next)) next = vars[k];
  return next;
}

tn_status tn__variables_open(tn_kernel_ctx *ctx, const uint32_t *inputs, uint32_t n, tn__variable **vars,
                             tn_tensor **tensors)
{
  for (uint32_t k = 0; k < n; k++) {
    tn_status st = tn__variable_input(ctx, inputs[k], &vars[k]);
    if (st != TN_OK) return st;
  }
  tn__variable *v = NULL;
  while ((v = next_above(vars, n, v)) != NULL) tn__mutex_lock_peer(&v->mu);
  for (uint32_t k = 0; k < n; k++) {
    tn_status st = vars[k]->tensor == NULL ? unset_error(vars[k], ctx->err)
                                           : tn__variable_edit(vars[k], &tensors[k], ctx->err);
    if (st == TN_OK) continue;
    tn__variables_close(vars, tensors, n);
    return st;
  }
  return TN_OK;
}

/* Unlocks all variables before releasing any tensor. A repeated variable has nothing left to
 * release the second time. */
void tn__variables_close(tn__variable *const *vars, tn_tensor **tensors, uint32_t n)
{
  for (uint32_t k = 0; k < n; k++) {
    tensors[k] = vars[k]->replaced;
    vars[k]->replaced = NULL;
  }
  tn__variable *v = NULL;
  while ((v = next_above(vars, n, v)) != NULL) tn__mutex_unlock(&v->mu);
  for (uint32_t k = 0; k < n; k++) {
    tn_tensor_unref(tensors[k]);
    tensors[k] = NULL;
  }
}
