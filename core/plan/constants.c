/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of a plan's large constants. They are released when every kernel that reads the constant has a packed form
 * of it (core/layout/pack.c), and made again by the constant's recipe if a kernel needs them for other shapes. plan->mu
 * guards the elements; a caller's reference stays valid after they are released. */
#include <core/plan/plan.h>

tn_tensor *tn__plan_elements(tn_plan *plan, uint32_t v)
{
  tn__plan_value *value = &plan->values[v];
  if (value->recipe == NULL) return tn_tensor_ref(value->constant);
  tn__mutex_lock(&plan->caches.mu);
  tn_tensor *t = tn_tensor_ref(value->elements);
  tn__mutex_unlock(&plan->caches.mu);
  return t;
}

tn_status tn__plan_need_elements(tn_plan *plan, uint32_t v, tn_tensor **out, tn_error *err)
{
  *out = tn__plan_elements(plan, v);
  if (*out != NULL) return TN_OK;
  tn__plan_value *value = &plan->values[v];
  tn_tensor *made;
  tn_status st =
      tn__recipe_follow(value->recipe, plan->settings.evaluate, &made, err); /* no lock: kernels run, files are read */
  if (st != TN_OK) return tn_error_prefix(err, "making a constant of %zu bytes again", value->constant->bytes), st;
  tn__mutex_lock(&plan->caches.mu);
  if (value->elements == NULL) value->elements = tn_tensor_ref(made);
  *out = tn_tensor_ref(value->elements);
  tn__mutex_unlock(&plan->caches.mu);
  tn_tensor_unref(made);
  return TN_OK;
}

void tn__plan_keep_elements(tn_plan *plan, uint32_t v, tn_tensor *elements)
{
  tn__plan_value *value = &plan->values[v];
  if (value->recipe == NULL) return;
  tn__mutex_lock(&plan->caches.mu);
  value->keeps_elements = true;
  if (value->elements == NULL) value->elements = tn_tensor_ref(elements);
  tn__mutex_unlock(&plan->caches.mu);
}

tn_status tn__plan_lend_elements(tn_plan *plan, uint32_t v, tn_tensor **out, tn_error *err)
{
  tn_tensor *made;
  tn_status st = tn__plan_need_elements(plan, v, &made, err);
  *out = NULL;
  if (st != TN_OK) return st;
  tn__plan_value *value = &plan->values[v];
  tn__mutex_lock(&plan->caches.mu);
  value->lent = true;
  if (value->elements == NULL) value->elements = tn_tensor_ref(made); /* a layout released them in between */
  *out = value->elements;
  tn__mutex_unlock(&plan->caches.mu);
  tn_tensor_unref(made);
  return TN_OK;
}

void tn__plan_forget_kept(tn_plan *plan)
{
  tn__assert_held(&plan->caches.mu);
  for (uint32_t v = 0; v < plan->n_values; v++)
    plan->values[v].keeps_elements = false; /* existing layouts hold references of their own */
}

void tn__plan_drop_elements(tn_plan *plan, uint32_t v)
{
  tn__plan_value *value = &plan->values[v];
  tn_tensor *gone = NULL;
  if (value->recipe == NULL) return;
  tn__mutex_lock(&plan->caches.mu);
  if (!value->keeps_elements && !value->lent) {
    gone = value->elements;
    value->elements = NULL;
  }
  tn__mutex_unlock(&plan->caches.mu);
  tn_tensor_unref(gone);
}
