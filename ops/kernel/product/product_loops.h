/* SPDX-License-Identifier: Apache-2.0 */
/* Products of vectors: elementwise, and dot products. */
#ifndef TN_OPS_KERNEL_PRODUCT_PRODUCT_LOOPS_H
#define TN_OPS_KERNEL_PRODUCT_PRODUCT_LOOPS_H

#include <ops/kernel/product/gemm.h>

typedef struct tn__product_loops {
  /* If `first`, out[i] = a[i] b[i]; otherwise out[i] += a[i] b[i]. */
  void (*line)(void *out, const void *a, const void *b, int64_t n, bool first);
  /* *out = the sum of a[i] b[i], accumulated in several partial sums; the partition is the same on every machine. */
  void (*dot)(void *out, const void *a, const void *b, int64_t n);
} tn__product_loops;

const tn__product_loops *tn__product_loops_of(tn__gemm_type type);

/* The type in which products of a dtype are computed; false if there is none. */
bool tn__gemm_type_of(tn_dtype dtype, tn__gemm_type *type);

#endif
