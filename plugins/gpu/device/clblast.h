/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices by CLBlast, a library of kernels that enqueues them itself. It is opened when the
 * first session may use it, and only where it calls the OpenCL that this runtime calls. */
#ifndef GPU_DEVICE_CLBLAST_H
#define GPU_DEVICE_CLBLAST_H

#include "device/device.h"

/* The setting blas of a session: which library computes products. */
enum { GPU_BLAS_AUTO, GPU_BLAS_CLBLAST, GPU_BLAS_OWN };

/* The kinds of products that were tried on a context. */
typedef struct gpu_clblast gpu_clblast;
tn_status gpu_clblast_create(gpu_clblast **out, tn_error *err);
/* Call before the context is released. When the last context that CLBlast was used on is released, its
 * programs are freed. NULL allowed. */
void gpu_clblast_destroy(gpu_clblast *clblast);

/* The name of its file, "libclblast.so.1.5.3", for sessions with that setting on that device; NULL: the
 * runtime's own kernels are used. The reason is logged once. Any thread. */
const char *gpu_clblast_for(const gpu_device *device, int blas);

/* out [batch][m][n] = a [batch][m][k] b [batch][k][n]; all numbers in elements. */
typedef struct gpu_gemm {
  tn_dtype dtype;
  bool across_a, across_b;
  int64_t batch, m, n, k;
  int64_t a_row, b_row, out_row, a_batch, b_batch, out_batch;
} gpu_gemm;
/* A product that CLBlast takes. */
typedef struct gpu_clblast_product {
  gpu_gemm g;
  size_t temp; /* bytes of scratch memory for each matrix of the batch, beside the device's align_bytes; 0: none */
} gpu_clblast_product;
/* False if CLBlast must not compute it: by the session's setting, for these sizes, or because it does not work on this
 * device. The first product of a kind compiles CLBlast's kernels for it. */
bool gpu_clblast_takes(const gpu_device *device, int blas, const gpu_gemm *g, gpu_clblast_product *out);
/* Enqueues a gpu_clblast_product; memory: a, b, out, and scratch where it has any. *event, where event is not
 * NULL, is that of its last command. TN_UNAVAILABLE: the device is lost. */
tn_status gpu_clblast_enqueue(const gpu_device *device, cl_command_queue queue, const void *product,
                              const gpu_memory *memory, cl_event *event, tn_error *err);

#endif
