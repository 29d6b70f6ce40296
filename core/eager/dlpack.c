/* SPDX-License-Identifier: Apache-2.0 */
/* DLPack in and out of eager sessions. */
#include <core/eager/eager.h>
#include <core/tensor/dlpack.h>

static tn_status check_out(const char *call, const void *out, tn_error *err)
{
  tn__error_reset(err);
  return out != NULL ? TN_OK : tn_error_set(err, TN_INVALID_ARGUMENT, "%s: out is NULL", call);
}

/* The tensor of a handle in host memory, copied there if it is elsewhere. */
static tn_status get_tensor(tn_eager_session *session, tn_eager_handle handle, tn_tensor **out, tn_error *err)
{
  tn_tensor *there;
  tn_status st = tn_eager_tensor(session, handle, out, err);
  if (st != TN_OK || (*out)->data != NULL || (*out)->bytes == 0) return st;
  there = *out;
  st = tn_tensor_copy(there, out, err);
  tn_tensor_unref(there);
  if (st != TN_OK) *out = NULL;
  return st;
}

tn_status tn_eager_to_dlpack(tn_eager_session *session, tn_eager_handle handle, struct DLManagedTensor **out,
                             tn_error *err)
{
  tn_tensor *t = NULL;
  if (out != NULL) *out = NULL;
  tn_status st = check_out("tn_eager_to_dlpack", out, err);
  if (st == TN_OK) st = get_tensor(session, handle, &t, err);
  if (st == TN_OK) st = tn_tensor_to_dlpack(t, out, err);
  tn_tensor_unref(t);
  return st;
}

tn_status tn_eager_to_dlpack_versioned(tn_eager_session *session, tn_eager_handle handle,
                                       struct DLManagedTensorVersioned **out, tn_error *err)
{
  tn_tensor *t = NULL;
  if (out != NULL) *out = NULL;
  tn_status st = check_out("tn_eager_to_dlpack_versioned", out, err);
  if (st == TN_OK) st = get_tensor(session, handle, &t, err);
  if (st == TN_OK) st = tn_tensor_to_dlpack_versioned(t, out, err);
  tn_tensor_unref(t);
  return st;
}

/* Makes a handle of an imported tensor and takes over its reference. On failure the import is undone. */
static tn_status hand_over(tn_eager_session *s, tn_tensor *t, tn_eager_handle *out, tn_error *err)
{
  tn_status st = tn_eager_from_tensor(s, t, out, err);
  if (st == TN_OK) tn_tensor_unref(t);
  else tn__dlpack_forget(t);
  return st;
}

tn_status tn_eager_from_dlpack(tn_eager_session *session, struct DLManagedTensor *managed, tn_eager_handle *out,
                               tn_error *err)
{
  tn_tensor *t;
  if (out != NULL) out->id = 0;
  tn_status st = check_out("tn_eager_from_dlpack", out, err);
  if (st == TN_OK) st = tn_tensor_from_dlpack(managed, &t, err);
  return st == TN_OK ? hand_over(session, t, out, err) : st;
}

tn_status tn_eager_from_dlpack_versioned(tn_eager_session *session, struct DLManagedTensorVersioned *managed,
                                         tn_eager_handle *out, tn_error *err)
{
  tn_tensor *t;
  if (out != NULL) out->id = 0;
  tn_status st = check_out("tn_eager_from_dlpack_versioned", out, err);
  if (st == TN_OK) st = tn_tensor_from_dlpack_versioned(managed, &t, err);
  return st == TN_OK ? hand_over(session, t, out, err) : st;
}
