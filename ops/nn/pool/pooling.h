/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling over images and volumes: attributes, sizes, and the loops that find the maximum of a window. MaxPool and
 * AvgPool themselves have separate loops.
 *
 * If channels are first, each channel is treated as an image with a single channel. half and bfloat16 are computed in
 * float. */
#ifndef TN_OPS_NN_POOL_POOLING_H
#define TN_OPS_NN_POOL_POOLING_H

#include <ops/kernel/window/volume.h>

/* Channels processed at a time. */
#define TN__POOL_BLOCK 64

/* The part of a window that is inside the image: number of cells along each axis, and their distance in elements. */
typedef struct tn__cells {
  int64_t n[3], step[3];
} tn__cells;

/* Estimated time for a block of channels. */
static inline int64_t tn__cells_ns(const tn__cells *k) { return k->n[0] * k->n[1] * k->n[2] * TN__POOL_BLOCK / 4; }

typedef struct tn__pool_loops {
  tn_dtype dtype;
  /* where[j] = offset of the first maximum of in[cell + j], j < n <= TN__POOL_BLOCK. There must be a cell. A NaN is
   * never larger, but is kept if it is the first element. */
  void (*best)(const void *in, const tn__cells *cells, int64_t n, int64_t *where);
  /* where[j] = offset of the first in[cell + j] equal to pooled[j], -1 if there is none. */
  void (*match)(const void *in, const void *pooled, const tn__cells *cells, int64_t n, int64_t *where);
  void (*take)(const void *in, const int64_t *where, int64_t n, void *out); /* out[j] = in[where[j] + j], 0 if none */
  void (*add)(void *out, const int64_t *where, int64_t n, const void *in);  /* out[where[j] + j] += in[j] */
} tn__pool_loops;

typedef struct tn__pool_state {
  tn__volume_window window;
  const tn__pool_loops *loops;
  tn_dtype dtype;
  size_t size;         /* bytes per element of the compute type */
  uint32_t sizes_from; /* first of the inputs ksize and strides; 0 if they are attributes */
} tn__pool_state;

/* TN_UNIMPLEMENTED for windows over batch or channels, and for dtypes without loops. */
tn_status tn__pool_create(const tn_operation *op, int directions, uint32_t sizes_from, void **state, tn_error *err);
void tn__pool_destroy(void *state);

typedef struct tn__pool_plan {
  tn__volume in, out;      /* images and results; if they have no elements, the sizes may have any product */
  tn__window_axis axis[3];
  int64_t ins, outs;       /* numbers of elements */
  int64_t lines;           /* lines of results */
  tn__form form[4];        /* of inputs and output; each kernel assigns them */
  int32_t rank;
  int64_t out_dims[5];     /* shape of the results */
  int64_t batch;           /* elements per image, all channels included */
  int64_t batch_of, channels; /* batch size and channels of the images, in either data format */
} tn__pool_plan;

/* For `prepare`: creates the shape state for images of this shape. */
tn_status tn__pool_plan_create(tn_prepare_ctx *ctx, const int64_t *dims, tn__pool_plan **plan, tn_error *err);
void tn__pool_destroy_plan(void *plan);
/* Plans form k, either for images or for results. */
void tn__pool_form(tn_prepare_ctx *ctx, tn__pool_plan *p, int k, bool images);

/* The cells of the window at position `at` of a line, and the offset of the first one in the images. False if there are
 * none. */
bool tn__pool_cells(const tn__pool_plan *p, int64_t line, int64_t at, tn__cells *cells, int64_t *first);

/* ---- gradients: shape functions and parts of kernels ---- */

typedef struct tn__pool_run {
  const tn__pool_state *state;
  const tn__pool_plan *plan;
  const char *in, *pooled, *from;
  char *out;
} tn__pool_run;

/* Output 0 has the shape of input 0 (_image) or of input 1 (_pooled). */
tn_status tn__pool_infer_image(tn_infer_ctx *ctx, tn_error *err);
tn_status tn__pool_infer_pooled(tn_infer_ctx *ctx, tn_error *err);
/* Output 0 has the shape given by the value of input 0. */
tn_status tn__pool_infer_mean_2d(tn_infer_ctx *ctx, tn_error *err);
tn_status tn__pool_infer_mean_3d(tn_infer_ctx *ctx, tn_error *err);

/* Inputs: images, their pooled result, its gradient. The gradient is added at the maxima. */
tn_status tn__pool_prepare_grad(tn_prepare_ctx *ctx, tn_error *err);
tn_status tn__pool_compute_grad(tn_kernel_ctx *ctx);
/* Inputs: images, their pooled result, a gradient of the images. The output takes the gradient at the maxima. */
tn_status tn__pool_prepare_grad_grad(tn_prepare_ctx *ctx, tn_error *err);
tn_status tn__pool_compute_grad_grad(tn_kernel_ctx *ctx);
/* Inputs: the images' shape, a gradient of means. Each gradient is distributed over the cells of its window. */
tn_status tn__pool_prepare_mean(tn_prepare_ctx *ctx, tn_error *err);
tn_status tn__pool_compute_mean(tn_kernel_ctx *ctx);

#endif
