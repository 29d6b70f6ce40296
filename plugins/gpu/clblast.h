/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices by CLBlast, a library of kernels that enqueues them itself. It is opened when the first session may use it, and
 * only where it calls the OpenCL that this runtime calls. */
#ifndef GPU_CLBLAST_H
#define GPU_CLBLAST_H

#include "node.h"

/* What was tried of it on a context. */
typedef struct gpu_clblast gpu_clblast;
tn_status gpu_clblast_create(gpu_clblast **out, tn_error *err);
/* Before the context goes. CLBlast forgets its programs when no context that it was used on is left. NULL allowed. */
void gpu_clblast_destroy(gpu_clblast *clblast);

/* The name of its file, "libclblast.so.1.5.3", for sessions with that setting on that device; NULL: the runtime's own kernels are used.
 * The reason is logged once. Any thread. */
const char *gpu_clblast_for(const gpu_device *device, int blas);

/* out [batch][m][n] = a [batch][m][k] b [batch][k][n]; all numbers in elements. */
typedef struct gpu_gemm {
  tn_dtype dtype;
  bool across_a, across_b;
  int64_t batch, m, n, k;
  int64_t a_row, b_row, out_row, a_batch, b_batch, out_batch;
} gpu_gemm;
/* Adds a launch that multiplies inputs a and b into output 0. False, and nothing is added, when CLBlast is not to do it: by
 * the session's setting, for such numbers, or because it does not work on this device. The first product of a kind compiles
 * CLBlast's kernels for it. */
bool gpu_clblast_launch(gpu_node *n, const gpu_gemm *g, uint32_t a, uint32_t b);

#endif
