/* SPDX-License-Identifier: Apache-2.0 */
/* DLPack import and export. An imported tensor is a view of the producer's memory, and its release calls the producer's
 * deleter. An export is one allocation with the description and a reference to the tensor. */
#include <core/tensor/dlpack.h>

#include <inttypes.h>

/* ---- types ---- */

static const struct pair {
  tn_dtype dtype;
  uint8_t code, bits;
} pairs[] = {
  { TN_FLOAT, TN__DL_FLOAT, 32 },
  { TN_DOUBLE, TN__DL_FLOAT, 64 },
  { TN_HALF, TN__DL_FLOAT, 16 },
  { TN_BFLOAT16, TN__DL_BFLOAT, 16 },
  { TN_INT8, TN__DL_INT, 8 },
  { TN_INT16, TN__DL_INT, 16 },
  { TN_INT32, TN__DL_INT, 32 },
  { TN_INT64, TN__DL_INT, 64 },
  { TN_UINT8, TN__DL_UINT, 8 },
  { TN_UINT16, TN__DL_UINT, 16 },
  { TN_UINT32, TN__DL_UINT, 32 },
  { TN_UINT64, TN__DL_UINT, 64 },
  { TN_BOOL, TN__DL_BOOL, 8 },
  { TN_COMPLEX64, TN__DL_COMPLEX, 64 },
  { TN_COMPLEX128, TN__DL_COMPLEX, 128 },
  { TN_FLOAT8_E4M3B11FNUZ, TN__DL_FLOAT8_E4M3B11FNUZ, 8 },
  { TN_FLOAT8_E4M3FN, TN__DL_FLOAT8_E4M3FN, 8 },
  { TN_FLOAT8_E4M3FNUZ, TN__DL_FLOAT8_E4M3FNUZ, 8 },
  { TN_FLOAT8_E5M2, TN__DL_FLOAT8_E5M2, 8 },
  { TN_FLOAT8_E5M2FNUZ, TN__DL_FLOAT8_E5M2FNUZ, 8 },
  { TN_INT4, TN__DL_INT, 4 },
  { TN_UINT4, TN__DL_UINT, 4 },
  { TN_INT2, TN__DL_INT, 2 },
  { TN_UINT2, TN__DL_UINT, 2 },
};
#define N_PAIRS (sizeof(pairs) / sizeof(pairs[0]))

static const struct pair *pair_of(tn_dtype dtype)
{
  for (size_t i = 0; i < N_PAIRS; i++)
    if (pairs[i].dtype == dtype) return &pairs[i];
  return NULL;
}

/* DLPack's name of a type code, for messages. */
static const char *code_name(uint8_t code)
{
  static const char *const names[] = { "int",
                                       "uint",
                                       "float",
                                       "opaque handle",
                                       "bfloat",
                                       "complex",
                                       "bool",
                                       "float8_e3m4",
                                       "float8_e4m3",
                                       "float8_e4m3b11fnuz",
                                       "float8_e4m3fn",
                                       "float8_e4m3fnuz",
                                       "float8_e5m2",
                                       "float8_e5m2fnuz",
                                       "float8_e8m0fnu",
                                       "float6_e2m3fn",
                                       "float6_e3m2fn",
                                       "float4_e2m1fn" };
  return code < sizeof(names) / sizeof(names[0]) ? names[code] : "unknown";
}

/* Types are matched by code and bits. Elements of less than a byte must not share bytes. */
static tn_status read_dtype(tn__dl_dtype d, uint64_t flags, tn_dtype *out, tn_error *err)
{
  if (d.lanes != 1)
    return tn_error_set(err, TN_UNIMPLEMENTED, "DLPack: elements of %u lanes (%s, %u bits), wanted 1", d.lanes,
                        code_name(d.code), d.bits);
  for (size_t i = 0; i < N_PAIRS; i++) {
    if (pairs[i].code != d.code || pairs[i].bits != d.bits) continue;
    if (d.bits < 8 && (flags & TN__DL_PADDED) == 0)
      return tn_error_set(err, TN_UNIMPLEMENTED, "DLPack: %s elements that share bytes, wanted a byte each",
                          tn_dtype_name(pairs[i].dtype));
    *out = pairs[i].dtype;
    return TN_OK;
  }
  return tn_error_set(err, TN_UNIMPLEMENTED, "DLPack: no dtype for elements of type %s (code %u) with %u bits",
                      code_name(d.code), d.code, d.bits);
}

/* ---- devices ---- */

static const char *device_name(int32_t type)
{
  static const char *const names[] = { "none",    "CPU",       "CUDA",      "CUDA host",    "OpenCL",
                                       "unknown", "unknown",   "Vulkan",    "Metal",        "VPI",
                                       "ROCm",    "ROCm host", "extension", "CUDA managed", "oneAPI",
                                       "WebGPU",  "Hexagon",   "MAIA",      "Trainium" };
  return type >= 0 && (size_t)type < sizeof(names) / sizeof(names[0]) ? names[type] : "unknown";
}

static tn_status check_device(const tn__dl_tensor *d, tn_error *err)
{
  if (d->device_type == TN__DL_CPU || d->device_type == TN__DL_CUDA_HOST || d->device_type == TN__DL_ROCM_HOST)
    return TN_OK;
  return tn_error_set(err, TN_UNIMPLEMENTED, "DLPack: memory of device type %" PRId32 " (%s), device %" PRId32
                      ", wanted the host's", d->device_type, device_name(d->device_type), d->device_id);
}

/* ---- import ---- */

/* Checks that the elements are row-major and contiguous. The stride of a dimension of size 1 does not matter. `wanted`
 * cannot overflow: tn_shape_bytes has checked the product. */
static tn_status check_strides(const tn__dl_tensor *d, tn_error *err)
{
  char text[160];
  int64_t wanted = 1;
  if (d->strides == NULL) return TN_OK;
  for (int32_t i = 0; i < d->ndim; i++)
    if (d->shape[i] == 0) return TN_OK;
  for (int32_t i = d->ndim; i-- > 0;) {
    if (d->shape[i] == 1) continue;
    if (d->strides[i] != wanted)
      return tn_error_set(err, TN_INVALID_ARGUMENT,
                          "DLPack: dimension %" PRId32 " of shape %s has stride %" PRId64 ", wanted %" PRId64
                          ": the elements must be contiguous, copy them first", i,
                          tn__format_shape(text, sizeof(text), d->shape, d->ndim), d->strides[i], wanted);
    wanted *= d->shape[i];
  }
  return TN_OK;
}

/* The address of the first element. NULL is allowed for a tensor without elements. */
static tn_status find_data(const tn__dl_tensor *d, size_t bytes, void **out, tn_error *err)
{
  uintptr_t at = (uintptr_t)d->data;
  *out = NULL;
  if (bytes == 0) return TN_OK;
  if (d->data == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "DLPack: %zu bytes of elements without an address", bytes);
  if (d->byte_offset > UINTPTR_MAX - at || bytes > UINTPTR_MAX - at - (uintptr_t)d->byte_offset)
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "DLPack: %zu bytes from byte_offset %" PRIu64 " are outside the address space", bytes,
                        d->byte_offset);
  *out = (char *)d->data + d->byte_offset;
  return TN_OK;
}

/* Checks elements of 2 or 4 bits in a byte each: a producer may leave anything in the other bits, but kernels read the
 * whole byte. */
static tn_status check_small(tn_dtype dtype, const void *data, size_t n, tn_error *err)
{
  const struct pair *p = pair_of(dtype);
  if (p->bits >= 8) return TN_OK;
  bool is_signed = p->code == TN__DL_INT;
  int most = (1 << (is_signed ? p->bits - 1 : p->bits)) - 1, least = is_signed ? -most - 1 : 0;
  for (size_t i = 0; i < n; i++) {
    int value = is_signed ? ((const int8_t *)data)[i] : ((const uint8_t *)data)[i];
    if (value < least || value > most)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "DLPack: element %zu is %d, wanted %d to %d for %s", i, value,
                          least, most, tn_dtype_name(dtype));
  }
  return TN_OK;
}

/* Checks everything before the tensor takes ownership: after an error the managed tensor is still the caller's. */
static tn_status import(const tn__dl_tensor *d, uint64_t flags, tn_release_fn release, void *managed, tn_tensor **out,
                        tn_error *err)
{
  tn_dtype dtype = 0;
  size_t bytes = 0;
  void *data = NULL;
  tn_status s = check_device(d, err);
  if (s == TN_OK) s = read_dtype(d->dtype, flags, &dtype, err);
  if (s == TN_OK && (s = tn_shape_bytes(dtype, d->shape, d->ndim, &bytes, err)) != TN_OK)
    tn_error_prefix(err, "DLPack");
  if (s == TN_OK) s = check_strides(d, err);
  if (s == TN_OK) s = find_data(d, bytes, &data, err);
  if (s == TN_OK) s = check_small(dtype, data, bytes, err);
  if (s != TN_OK) return s;
  s = tn_tensor_wrap(dtype, d->shape, d->ndim, data, bytes, release, managed, out, err);
  if (s != TN_OK) tn_error_prefix(err, "DLPack");
  return s;
}

static tn_status check_import(const char *call, const void *managed, tn_tensor **out, tn_error *err)
{
  tn__error_reset(err);
  if (out != NULL) *out = NULL;
  if (managed != NULL && out != NULL) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %s is NULL", call, out == NULL ? "out" : "managed");
}

static void release_plain(void *user, void *data, size_t bytes)
{
  struct DLManagedTensor *managed = user;
  (void)data, (void)bytes;
  if (managed->deleter != NULL) managed->deleter(managed);
}

static void release_versioned(void *user, void *data, size_t bytes)
{
  struct DLManagedTensorVersioned *managed = user;
  (void)data, (void)bytes;
  if (managed->deleter != NULL) managed->deleter(managed);
}

tn_status tn_tensor_from_dlpack(struct DLManagedTensor *managed, tn_tensor **out, tn_error *err)
{
  tn_status s = check_import("tn_tensor_from_dlpack", managed, out, err);
  return s != TN_OK ? s : import(&managed->tensor, 0, release_plain, managed, out, err);
}

tn_status tn_tensor_from_dlpack_versioned(struct DLManagedTensorVersioned *managed, tn_tensor **out, tn_error *err)
{
  tn_status s = check_import("tn_tensor_from_dlpack_versioned", managed, out, err);
  if (s == TN_OK && managed->version.major != TN__DL_MAJOR)
    s = tn_error_set(err, TN_UNIMPLEMENTED, "DLPack: version %" PRIu32 ".%" PRIu32 ", wanted %d of any minor number",
                     managed->version.major, managed->version.minor, TN__DL_MAJOR);
  return s != TN_OK ? s : import(&managed->tensor, managed->flags, release_versioned, managed, out, err);
}

void tn__dlpack_forget(tn_tensor *tensor)
{
  tensor->buffer->desc.release = NULL;
  tn_tensor_unref(tensor);
}

/* ---- export ---- */

/* Whether the memory may never be written, by any holder of it. */
static bool is_read_only(const tn_tensor *t)
{
  const tn_buffer_desc *d = &t->buffer->desc;
  if (d->release != release_versioned) return d->ownership == TN_BUFFER_IMMUTABLE;
  return (((const struct DLManagedTensorVersioned *)d->user)->flags & TN__DL_READ_ONLY) != 0;
}

/* Foreign memory may be written as its owner allows; our own only through the only reference. */
static bool may_write(const tn_tensor *t)
{
  if (is_read_only(t)) return false;
  return t->buffer->desc.ownership == TN_BUFFER_FOREIGN || tn_tensor_is_exclusive(t);
}

static tn_status check_memory(const tn_tensor *t, tn_error *err)
{
  const tn_buffer_desc *d = &t->buffer->desc;
  const char *device = d->device != NULL ? d->device : "a device";
  if (d->memory == TN_MEMORY_DEVICE || (t->data == NULL && t->bytes > 0))
    return tn_error_set(err, TN_UNIMPLEMENTED, "DLPack: the tensor is in memory of %s, wanted the host's", device);
  if (d->ready_event != NULL && d->map != NULL)
    return tn_error_set(err, TN_UNIMPLEMENTED, "DLPack: the tensor is still being written by %s", device);
  return TN_OK;
}

/* The unversioned struct has no flags, so it cannot describe read-only or padded tensors. */
static tn_status check_export(const char *call, const tn_tensor *t, const void *out, bool versioned, tn_error *err)
{
  tn__error_reset(err);
  if (t == NULL || out == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %s is NULL", call, t == NULL ? "tensor" : "out");
  const struct pair *p = pair_of(t->dtype);
  if (p == NULL)
    return tn_error_set(err, TN_UNIMPLEMENTED, "DLPack has no type for %s elements", tn_dtype_name(t->dtype));
  if (p->bits < 8 && !versioned)
    return tn_error_set(err, TN_UNIMPLEMENTED, "DLPack before version 1 has no type for %s elements of a byte each",
                        tn_dtype_name(t->dtype));
  if (!versioned && is_read_only(t))
    return tn_error_set(err, TN_FAILED_PRECONDITION,
                        "the tensor is read-only, which DLPack before version 1 cannot express");
  return check_memory(t, err);
}

/* Bytes of an export: a struct of `head` bytes, then shape and strides. */
static size_t size_of(size_t head, const tn_tensor *t) { return head + 2 * (size_t)t->rank * sizeof(int64_t); }

/* Strides are always written, although they could be NULL for contiguous elements. */
static void describe(tn__dl_tensor *d, int64_t *numbers, const tn_tensor *t)
{
  const struct pair *p = pair_of(t->dtype);
  *d = (tn__dl_tensor){ .data = t->bytes > 0 ? t->data : NULL, .device_type = TN__DL_CPU, .ndim = t->rank,
                        .dtype = { p->code, p->bits, 1 }, .shape = numbers, .strides = numbers + t->rank };
  int64_t step = 1;
  for (int32_t i = t->rank; i-- > 0;) {
    d->shape[i] = t->dims[i];
    d->strides[i] = step;
    if (t->dims[i] > 0) step *= t->dims[i];
  }
}

static void delete_plain(struct DLManagedTensor *self)
{
  tn_tensor *t = self->manager;
  tn__free(self, size_of(sizeof *self, t));
  tn_tensor_unref(t);
}

static void delete_versioned(struct DLManagedTensorVersioned *self)
{
  tn_tensor *t = self->manager;
  tn__free(self, size_of(sizeof *self, t));
  tn_tensor_unref(t);
}

tn_status tn_tensor_to_dlpack(tn_tensor *tensor, struct DLManagedTensor **out, tn_error *err)
{
  if (out != NULL) *out = NULL;
  tn_status s = check_export("tn_tensor_to_dlpack", tensor, out, false, err);
  if (s != TN_OK) return s;
  struct DLManagedTensor *m = tn__alloc(size_of(sizeof *m, tensor));
  if (m == NULL) return tn__no_memory(err, "a tensor for DLPack", size_of(sizeof *m, tensor));
  describe(&m->tensor, (int64_t *)(m + 1), tensor);
  m->manager = tn_tensor_ref(tensor);
  m->deleter = delete_plain;
  *out = m;
  return TN_OK;
}

tn_status tn_tensor_to_dlpack_versioned(tn_tensor *tensor, struct DLManagedTensorVersioned **out, tn_error *err)
{
  if (out != NULL) *out = NULL;
  tn_status s = check_export("tn_tensor_to_dlpack_versioned", tensor, out, true, err);
  if (s != TN_OK) return s;
  struct DLManagedTensorVersioned *m = tn__alloc(size_of(sizeof *m, tensor));
  if (m == NULL) return tn__no_memory(err, "a tensor for DLPack", size_of(sizeof *m, tensor));
  m->version.major = TN__DL_MAJOR;
  m->version.minor = TN__DL_MINOR;
  m->flags = may_write(tensor) ? 0 : TN__DL_READ_ONLY;
  describe(&m->tensor, (int64_t *)(m + 1), tensor);
  if (m->tensor.dtype.bits < 8) m->flags |= TN__DL_PADDED;
  m->manager = tn_tensor_ref(tensor);
  m->deleter = delete_versioned;
  *out = m;
  return TN_OK;
}
