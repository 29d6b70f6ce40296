/* SPDX-License-Identifier: Apache-2.0 */
/* Single operations of eager sessions on the device: the plans that can be prepared for it, and copies of
 * tensors to it. */
#include "step/eager.h"

#include "device/base.h"
#include "device/tensor.h"
#include "node/table.h"
#include "step/prepare.h"

/* ---- plans ---- */

/* Views and what follows from shapes have no kernel and need none. */
static bool needs_kernel(uint32_t traits)
{
  return (traits &
          (TN_TRAIT_IDENTITY | TN_TRAIT_RESHAPE | TN_TRAIT_SHAPE_ONLY | TN_TRAIT_CONSTANT | TN_TRAIT_NO_EFFECT)) == 0;
}

/* Some node has a kernel, or none needs one. */
static tn_status check_nodes(const tn_executable *e, tn_error *err)
{
  const tn_operation *without = NULL;
  size_t n = tn_plan_n_instructions(e->plan);
  for (size_t i = 0; i < n; i++) {
    tn_plan_instruction in = { .struct_size = sizeof in };
    tn_status st = tn_plan_get_instruction(e->plan, i, &in, err);
    if (st != TN_OK) return st;
    if (gpu_op_find(in.op) != NULL) return TN_OK;
    if (needs_kernel(in.traits)) without = in.op;
  }
  if (without == NULL) return TN_OK;
  return tn_error_set(err, TN_UNIMPLEMENTED, "the device has no kernel for op '%s' of these types",
                      tn_operation_type(without));
}

static tn_status check_values(const tn_executable *e, tn_error *err)
{
  for (uint32_t v = 0; v < e->n_values; v++) {
    tn_plan_value value = { .struct_size = sizeof value };
    tn_status st = tn_plan_get_value(e->plan, v, &value, err);
    if (st != TN_OK) return st;
    if (!gpu_is_plain(value.dtype))
      return tn_error_set(err, TN_UNIMPLEMENTED, "%s elements cannot lie in a device's memory",
                          tn_dtype_name(value.dtype));
  }
  return TN_OK;
}

tn_status gpu_prepare_on(const tn_session_factory *self, tn_runtime_session *session, const tn_plan *plan, size_t i,
                         tn_executable **out, tn_error *err)
{
  tn_executable *e;
  *out = NULL;
  tn_status st = tn_plan_check_straight(plan, err);
  if (st == TN_OK) st = gpu_prepare(self, session, plan, &e, err);
  if (st != TN_OK) return st;
  e->placed = true;
  e->placed_at = (uint32_t)(i - (session->n_listed - session->settings.n_devices)); /* the node names it, too */
  st = check_values(e, err);
  if (st == TN_OK) st = check_nodes(e, err);
  if (st == TN_OK) *out = e;
  else gpu_release(self, session, e);
  return st;
}

/* ---- tensors ---- */

tn_status gpu_copy_to(const tn_session_factory *self, tn_runtime_session *session, const tn_tensor *tensor, size_t i,
                   tn_tensor **out, tn_error *err)
{
  size_t n_cpus = session->n_listed - session->settings.n_devices;
  tn_tensor *read = NULL;
  (void)self;
  *out = NULL;
  if (i < n_cpus || i >= session->n_listed) return tn_error_set(err, TN_INTERNAL, "gpu: a tensor for device %zu", i);
  const gpu_device *device = session->settings.devices[i - n_cpus];
  if (atomic_load(&device->lost))
    return tn_error_set(err, TN_UNAVAILABLE, "device '%s' was lost: make a new session", device->name);
  if (!gpu_is_plain(tn_tensor_dtype(tensor)))
    return tn_error_set(err, TN_UNIMPLEMENTED, "a tensor of %s cannot lie in a device's memory",
                        tn_dtype_name(tn_tensor_dtype(tensor)));
  if (tn_tensor_bytes(tensor) == 0) return tn_tensor_copy(tensor, out, err);
  tn_status st = tn_tensor_data(tensor) == NULL ? tn_tensor_copy(tensor, &read, err) : TN_OK;
  if (st == TN_OK) st = gpu_tensor_send(session->budgets[i - n_cpus], read != NULL ? read : tensor, out, err);
  tn_tensor_unref(read);
  return st;
}

