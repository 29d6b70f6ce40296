/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of what DLPack passes around, in words of our own: version 1, and the struct from before versions. */
#ifndef TN_CORE_DLPACK_H
#define TN_CORE_DLPACK_H

#include <core/tensor/tensor_internal.h>
#include <tenon/dlpack.h>

#define TN__DL_MAJOR 1
#define TN__DL_MINOR 1 /* the oldest that has all that is used here */

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
  TN__DL_PADDED = 4 /* elements of less than a byte have one each */
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
  int64_t *strides; /* in elements; NULL: row-major, without gaps */
  uint64_t byte_offset;
} tn__dl_tensor;

struct DLManagedTensor {
  tn__dl_tensor tensor;
  void *manager;
  void (*deleter)(struct DLManagedTensor *self);
};

struct DLManagedTensorVersioned {
  struct { uint32_t major, minor; } version;
  void *manager;
  void (*deleter)(struct DLManagedTensorVersioned *self);
  uint64_t flags; /* up to here it is the same in each major version */
  tn__dl_tensor tensor;
};

/* A tensor from tn_tensor_from_dlpack* that nobody shares is undone: what it was made from is the caller's again. */
void tn__dlpack_forget(tn_tensor *tensor);

#endif
