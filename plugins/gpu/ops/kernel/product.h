/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices and what is one, with what follows them: how a node's product is launched. */
#ifndef GPU_OPS_KERNEL_PRODUCT_H
#define GPU_OPS_KERNEL_PRODUCT_H

#include "ops/kernel/elements.h"
#include "ops/kernel/window.h"

/* ---- what follows ---- */

#define GPU_STEPS 8
#define GPU_STEP_ARGS 4
typedef struct gpu_after {
  int n;
  uint32_t n_args;
  uint8_t kinds[GPU_STEPS]; /* as in product.cl */
  float alpha;              /* of LeakyRelu */
} gpu_after;

/* Reads fused_ops, which an op need not have. Declines steps that it does not know, arguments of other shapes.
 * `first`: the input that is the first argument; arguments fit output 0. */
tn_status gpu_after_read(const gpu_node *n, uint32_t first, gpu_after *out, tn_error *err);
/* Defines of a launch, and its arguments. */
void gpu_after_define(gpu_launch *l, const gpu_after *a);
void gpu_after_args(gpu_launch *l, const gpu_after *a, uint32_t first);

/* ---- products ---- */

enum { GPU_MATRIX, GPU_WINDOWS, GPU_PLACES, GPU_TAPS }; /* MODE of product.cl */

typedef struct gpu_batches {
  cl_long size[8], a[8], b[8];
  cl_int rank, unused;
} gpu_batches;

/* Output 0 [batch][m][n] = a [batch][m][k] b [batch][k][n]; all numbers in elements, as in product.cl. */
typedef struct gpu_product {
  int mode;
  bool across_a, across_b;
  uint32_t a, b; /* inputs */
  int64_t batch, m, n, k;
  int64_t a_row, b_row, out_row, a_batch, b_batch, out_batch;
  gpu_batches batches; /* rank > 0: in place of a_batch and b_batch */
  gpu_window_arg window;
  gpu_after after;
  uint32_t first_arg;
} gpu_product;

/* Adds the launches. Declines numbers that are too large. */
tn_status gpu_product_launch(gpu_node *n, const gpu_product *p, tn_error *err);

#endif
