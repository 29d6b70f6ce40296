/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of tensors as OpenCL C code sees them. */
#include "ops/kernel/elements.h"

#include <stdio.h>

static const gpu_element elements[] = {
  { TN_FLOAT, GPU_FLOATING, 32, "float", "float", "PLAIN" },
  { TN_DOUBLE, GPU_FLOATING, 64, "double", "double", "PLAIN" },
  { TN_HALF, GPU_FLOATING, 16, "ushort", "float", "HALF" },
  { TN_BFLOAT16, GPU_FLOATING, 16, "ushort", "float", "BFLOAT16" },
  { TN_INT8, GPU_SIGNED, 8, "char", "char", "PLAIN" },
  { TN_INT16, GPU_SIGNED, 16, "short", "short", "PLAIN" },
  { TN_INT32, GPU_SIGNED, 32, "int", "int", "PLAIN" },
  { TN_INT64, GPU_SIGNED, 64, "long", "long", "PLAIN" },
  { TN_UINT8, GPU_UNSIGNED, 8, "uchar", "uchar", "PLAIN" },
  { TN_UINT16, GPU_UNSIGNED, 16, "ushort", "ushort", "PLAIN" },
  { TN_UINT32, GPU_UNSIGNED, 32, "uint", "uint", "PLAIN" },
  { TN_UINT64, GPU_UNSIGNED, 64, "ulong", "ulong", "PLAIN" },
  { TN_BOOL, GPU_TRUTH, 8, "uchar", "uchar", "PLAIN" },
  { TN_COMPLEX128, GPU_BYTES, 128, "uint4", "uint4", "PLAIN" },
};

static const gpu_element *find(tn_dtype dtype)
{
  for (size_t i = 0; i < sizeof elements / sizeof *elements; i++)
    if (elements[i].dtype == dtype) return &elements[i];
  return NULL;
}

const gpu_element *gpu_element_of(tn_dtype dtype) { return find(dtype); }

tn_dtype gpu_moved_as(tn_dtype dtype)
{
  switch (tn_dtype_size(dtype)) {
  case 1: return TN_UINT8;
  case 2: return TN_UINT16;
  case 4: return TN_UINT32;
  case 8: return TN_UINT64;
  case 16: return TN_COMPLEX128;
  default: return TN_DTYPE_INVALID;
  }
}

const char *gpu_sum_type(const gpu_element *t)
{
  if (t->kind == GPU_FLOATING || t->kind == GPU_BYTES) return t->computed;
  return t->bits == 64 ? "ulong" : "uint";
}

void gpu_define_elements(gpu_launch *l, const char *suffix, tn_dtype dtype)
{
  static const gpu_element none = { .stored = "(null)", .computed = "(null)", .access = "" };
  const gpu_element *e = find(dtype);
  if (e == NULL) e = &none;
  char name[32];
  static const char *const parts[] = { "T%s", "C%s", "LOAD%s", "STORE%s" };
  for (int i = 0; i < 4; i++) {
    snprintf(name, sizeof name, parts[i], suffix);
    if (i < 2) gpu_define(l, name, "%s", i == 0 ? e->stored : e->computed);
    else gpu_define(l, name, "%s_%s", i == 2 ? "LOAD" : "STORE", e->access);
  }
}

void gpu_define_places(gpu_launch *l, int64_t count)
{
  gpu_define(l, "I", "%s", gpu_places_are_wide(count) ? "long" : "int");
}

void gpu_arg_place(gpu_launch *l, int64_t count, int64_t value)
{
  if (gpu_places_are_wide(count)) gpu_arg_long(l, value);
  else gpu_arg_int(l, value);
}
