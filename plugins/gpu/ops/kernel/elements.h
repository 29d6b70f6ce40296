/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of tensors as OpenCL C code sees them. Half and bfloat16 are 16 bits in memory and float in computing, so
 * no device needs an extension for them. */
#ifndef GPU_OPS_KERNEL_ELEMENTS_H
#define GPU_OPS_KERNEL_ELEMENTS_H

#include "node/node.h"

enum { GPU_FLOATING, GPU_SIGNED, GPU_UNSIGNED, GPU_TRUTH, GPU_BYTES };
typedef struct gpu_element {
  tn_dtype dtype;
  int kind;
  int bits;
  const char *stored;   /* "ushort" */
  const char *computed; /* "float" */
  const char *access;   /* LOAD_..., STORE_... of prelude.cl: "HALF" */
} gpu_element;

/* The description of a dtype; NULL for complex numbers and everything else that is not a plain number. */
const gpu_element *gpu_element_of(tn_dtype dtype);
/* A dtype whose elements have the same size, for kernels that only move them: an unsigned number, or GPU_BYTES for 16
 * bytes. TN_DTYPE_INVALID if there is none. */
tn_dtype gpu_moved_as(tn_dtype dtype);
/* The type in which elements are added up: unsigned for integers, so that sums wrap. */
const char *gpu_sum_type(const gpu_element *t);
/* Defines Tx, Cx, LOADx, STOREx for a dtype, x being the suffix: the type in memory and in computing, and access to
 * it. The launch fails with TN_UNIMPLEMENTED if the device has no such numbers. */
void gpu_define_elements(gpu_launch *l, const char *suffix, tn_dtype dtype);
/* Defines I, the type that places among `count` elements are counted in: int, or long for many. */
void gpu_define_places(gpu_launch *l, int64_t count);
/* An argument of type I. */
void gpu_arg_place(gpu_launch *l, int64_t count, int64_t value);
static inline bool gpu_places_are_wide(int64_t count) { return count > INT32_MAX - 4096; }

/* Types for the tables of ops. */
#define GPU_FLOATS "half|bfloat16|float|double"
#define GPU_INTEGERS "int8|int16|int32|int64|uint8|uint16|uint32|uint64"
#define GPU_MOVED GPU_FLOATS "|" GPU_INTEGERS "|bool|complex64|complex128"

#endif
