/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing the elements of a tensor. */
#include <core/tensor/tensor_internal.h>

#include <inttypes.h>
#include <string.h>

static tn_status no_tensor(tn_error *err) { return tn_error_set(err, TN_INVALID_ARGUMENT, "no tensor is given"); }

tn_status tn_tensor_from_strings(const int64_t *dims, int32_t rank, const char *const *texts, const size_t *lengths,
                                 tn_tensor **out, tn_error *err)
{
  tn_tensor *t = NULL;
  tn_status s = tn_tensor_create(TN_STRING, dims, rank, &t, err);
  if (out == NULL && s == TN_OK) s = tn_error_set(err, TN_INVALID_ARGUMENT, "tn_tensor_from_strings: out is NULL");
  if (out != NULL) *out = NULL;
  if (s == TN_OK && texts == NULL && t->count > 0) s = tn_error_set(err, TN_INVALID_ARGUMENT, "no texts are given");
  for (int64_t i = 0; s == TN_OK && i < t->count; i++) {
    if (texts[i] == NULL && (lengths == NULL || lengths[i] > 0))
      s = tn_error_set(err, TN_INVALID_ARGUMENT, "text %" PRId64 " of %" PRId64 " is NULL", i, t->count);
    else
      s = tn_string_set((tn_string *)t->data + i, texts[i], lengths != NULL ? lengths[i] : strlen(texts[i]), err);
  }
  if (s == TN_OK)
    *out = t;
  else
    tn_tensor_unref(t);
  return s;
}

/* Copies between kinds of memory: the copy is on the host. Managed elements need a host address, because their class
 * must count the references. */
tn_status tn_tensor_copy(const tn_tensor *tensor, tn_tensor **out, tn_error *err)
{
  tn__error_reset(err);
  if (out == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_tensor_copy: out is NULL");
  *out = NULL;
  if (tensor == NULL) return no_tensor(err);
  bool managed = tn__dtype_is_managed(tensor->dtype);
  if (managed && tensor->data == NULL)
    return tn_error_set(err, TN_UNIMPLEMENTED, "%s elements in device memory cannot be copied",
                        tn_dtype_name(tensor->dtype));
  tn_tensor *t = NULL;
  tn_status s =
      tn__tensor_create_known(tensor->dtype, tensor->dims, tensor->rank, tensor->count, tensor->bytes, &t, err);
  if (s == TN_OK && managed)
    s = tn__elements_copy(t->dtype, t->data, tensor->data, t->count, err);
  else if (s == TN_OK)
    s = tn__buffer_read(tensor->buffer, tensor->offset, t->data, t->bytes, err);
  if (s == TN_OK)
    *out = t;
  else
    tn_tensor_unref(t);
  return s;
}

tn_status tn_tensor_read(const tn_tensor *tensor, void *to, size_t bytes, tn_error *err)
{
  char shape[160];
  tn__error_reset(err);
  if (tensor == NULL) return no_tensor(err);
  if (tn__dtype_is_managed(tensor->dtype))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "elements of dtype %s are not plain bytes",
                        tn_dtype_name(tensor->dtype));
  if (bytes != tensor->bytes)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "there is room for %zu bytes, but the tensor %s %s has %zu", bytes,
                        tn_dtype_name(tensor->dtype),
                        tn__format_shape(shape, sizeof(shape), tensor->dims, tensor->rank), tensor->bytes);
  if (to == NULL && bytes > 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_tensor_read: to is NULL, but the tensor has %zu bytes", bytes);
  return tn__buffer_read(tensor->buffer, tensor->offset, to, bytes, err);
}

/* Returns the i-th element of a string tensor; NULL with an error if there is none. */
static tn_string *string_at(const tn_tensor *tensor, int64_t i, tn_status *s, tn_error *err)
{
  if (tensor == NULL) {
    *s = no_tensor(err);
  } else if (tensor->dtype != TN_STRING) {
    *s =
        tn_error_set(err, TN_INVALID_ARGUMENT, "the tensor's dtype is %s, wanted string", tn_dtype_name(tensor->dtype));
  } else if (i < 0 || i >= tensor->count) {
    *s = tn_error_set(err, TN_OUT_OF_RANGE, "element %" PRId64 " was asked for, but the tensor has %" PRId64, i,
                      tensor->count);
  } else {
    *s = TN_OK;
    return (tn_string *)tensor->data + i;
  }
  return NULL;
}

tn_status tn_tensor_get_string(const tn_tensor *tensor, int64_t i, const char **text, size_t *length, tn_error *err)
{
  tn_status s;
  tn__error_reset(err);
  if (text != NULL) *text = NULL;
  if (length != NULL) *length = 0;
  const tn_string *element = string_at(tensor, i, &s, err);
  if (element == NULL) return s;
  const char *data = tn_string_data(element, length);
  if (text != NULL) *text = data;
  return TN_OK;
}

/* Refuses a shared tensor: other holders read the element without a lock. */
tn_status tn_tensor_set_string(tn_tensor *tensor, int64_t i, const void *text, size_t length, tn_error *err)
{
  tn_status s;
  tn__error_reset(err);
  tn_string *element = string_at(tensor, i, &s, err);
  if (element == NULL) return s;
  if (!tn_tensor_is_exclusive(tensor))
    return tn_error_set(err, TN_FAILED_PRECONDITION,
                        "the tensor may not be written: it has other references, or does not own its memory");
  return tn_string_set(element, text, length, err);
}
