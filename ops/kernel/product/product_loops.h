/* SPDX-License-Identifier: Apache-2.0 */
/* Products of vectors that are no matrices: element by element, and summed up. */
#ifndef TN_OPS_KERNEL_PRODUCT_PRODUCT_LOOPS_H
#define TN_OPS_KERNEL_PRODUCT_PRODUCT_LOOPS_H

#include <ops/kernel/product/gemm.h>

typedef struct tn__product_loops {
  /* out[i] = a[i] b[i], or what was there and that. */
  void (*line)(void *out, const void *a, const void *b, int64_t n, bool first);
  /* *out = the sum of a[i] b[i], in several parts at once: the same ones on every machine. */
  void (*dot)(void *out, const void *a, const void *b, int64_t n);
} tn__product_loops;

const tn__product_loops *tn__product_loops_of(tn__gemm_type type);

/* The type that products of a dtype are computed in; false when there is none. */
bool tn__gemm_type_of(tn_dtype dtype, tn__gemm_type *type);

#endif
