/* SPDX-License-Identifier: Apache-2.0 */
/* The structs of the DLPack protocol, declared here so that no DLPack header is needed: those of version 1, and the
 * unversioned one that came before. */
#ifndef TN_CORE_DLPACK_H
#define TN_CORE_DLPACK_H

#include <core/tensor/tensor_internal.h>
#include <tenon/dlpack.h>

#define TN__DL_MAJOR 1
#define TN__DL_MINOR 1 /* the oldest minor version with everything used here */

enum { /* device types */
  TN__DL_CPU = 1,
  TN__DL_CUDA_HOST = 3,
  TN__DL_ROCM_HOST = 11
};

enum { /* codes of types */
  TN__DL_INT = 0,
  TN__DL_UINT = 1,
  TN__DL_FLOAT = 2,
  TN__DL_BFLOAT = 4,
  TN__DL_COMPLEX = 5,
  TN__DL_BOOL = 6,
  TN__DL_FLOAT8_E4M3B11FNUZ = 9,
  TN__DL_FLOAT8_E4M3FN = 10,
  TN__DL_FLOAT8_E4M3FNUZ = 11,
  TN__DL_FLOAT8_E5M2 = 12,
  TN__DL_FLOAT8_E5M2FNUZ = 13
};

enum { /* flags */
  TN__DL_READ_ONLY = 1,
  TN__DL_IS_COPIED = 2,
  TN__DL_PADDED = 4 /* elements of less than a byte occupy one byte each */
};

typedef struct tn__dl_dtype {
  uint8_t code, bits;
  uint16_t lanes;
} tn__dl_dtype;

typedef struct tn__dl_tensor {
  void *data;
  int32_t device_type, device_id;
  int32_t ndim;
  tn__dl_dtype dtype;
  int64_t *shape;
  int64_t *strides; /* in elements; NULL: row-major and contiguous */
  uint64_t byte_offset;
} tn__dl_tensor;

/* The consumer calls deleter(self) when it no longer needs the memory; manager belongs to the producer. */
struct DLManagedTensor {
  tn__dl_tensor tensor;
  void *manager;
  void (*deleter)(struct DLManagedTensor *self); /* may be NULL */
};

struct DLManagedTensorVersioned {
  struct { uint32_t major, minor; } version;
  void *manager;
  void (*deleter)(struct DLManagedTensorVersioned *self);
  uint64_t flags; /* all major versions have the same members up to here */
  tn__dl_tensor tensor;
};

/* Undoes tn_tensor_from_dlpack*: frees the tensor, to which the caller has the only reference, without calling the
 * deleter. The caller owns the managed tensor again. */
void tn__dlpack_forget(tn_tensor *tensor);

#endif
