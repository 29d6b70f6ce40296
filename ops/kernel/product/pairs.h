/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of products of type TN__GEMM_PAIRS: 8-bit integers, extended to 16 bits and stored two terms in an element
 * of 32 bits. One instruction multiplies both terms and adds the products, which is exact. */
#ifndef TN_OPS_KERNEL_PRODUCT_PAIRS_H
#define TN_OPS_KERNEL_PRODUCT_PAIRS_H

#include <stdbool.h>
#include <tenon/op.h>

/* int8 and uint8. */
bool tn__pairs_can(tn_dtype dtype);

/* Number of pairs of k terms. The last term of an odd number is paired with 0. */
static inline int64_t tn__pairs_of(int64_t k) { return k / 2 + k % 2; }

/* Adjacent matrices of m x k numbers, of which number (i, t) is at from + i row + t column, become matrices of m rows
 * of pairs. ctx NULL: on the calling thread. */
void tn__pairs_left(tn_kernel_ctx *ctx, tn_dtype dtype, const void *from, int64_t matrices, int64_t m, int64_t k,
                    int64_t row, int64_t column, void *to);
/* The same for matrices of k x n numbers, which become matrices of n columns of pairs. */
void tn__pairs_right(tn_kernel_ctx *ctx, tn_dtype dtype, const void *from, int64_t matrices, int64_t k, int64_t n,
                     int64_t row, int64_t column, void *to);

#endif
