/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of a session, and where operations run. */
#ifndef TN_CORE_EAGER_DEVICES_H
#define TN_CORE_EAGER_DEVICES_H

#include <core/eager/op.h>
#include <core/host/host.h>

#define TN__EAGER_ANYWHERE UINT16_MAX /* no device was named */

typedef struct tn__eager_device {
  char *name;             /* the full name; owned, as are the other texts */
  char *type, *model;
  int64_t memory_bytes;
  tn__device_name parsed; /* in name */
  size_t number;          /* in the runtime's list_devices */
} tn__eager_device;

/* Makes the list, which does not change while the session is open. TN_NOT_FOUND without a CPU. */
tn_status tn__eager_devices_open(tn_eager_session *session, tn_error *err);
void tn__eager_devices_close(tn_eager_session *session);
/* The first device that matches a name; TN__EAGER_ANYWHERE for "" and NULL. */
tn_status tn__eager_device_find(const tn_eager_session *session, const char *device, uint16_t *out, tn_error *err);
/* For sessions with several devices: the device that a call is to run on. */
tn_status tn__eager_place(tn_eager_op *op, tn__eager_slot *const *inputs, const tn_dtype *dtypes, size_t n,
                          uint16_t *out, tn_error *err);
/* Once the plan is known: whether the policy allows the inputs to be copied to the device that it
 * runs on. */
tn_status tn__eager_admit(const tn_eager_op *op, const tn__eager_plan *plan, tn__eager_slot *const *inputs, size_t n,
                          uint16_t to, tn_error *err);
/* Whether the device has memory of its own. */
static inline bool tn__eager_is_away(const tn_eager_session *session, uint16_t device)
{
  return device >= session->n_cpus;
}
/* Returns a reference to the tensor on device `to`: to the same tensor if it can be used there, or to a copy. */
tn_status tn__eager_bring(tn_eager_session *session, tn_tensor *tensor, uint16_t from, uint16_t to, tn_tensor **out,
                          tn_error *err);
/* Sets the device of handles that the program does not have yet. */
void tn__eager_set_device(const tn_eager_session *session, const tn_eager_handle *handles, size_t n, uint16_t device);

#endif
