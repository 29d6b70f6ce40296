/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling over images and volumes: attributes, sizes, and the loops that find the largest element of a window. (MaxPool
 * and AvgPool themselves have loops of their own.)
 *
 * Channels first is as many images of one channel. half and bfloat16 are computed in float. */
#ifndef TN_OPS_NN_POOLING_H
#define TN_OPS_NN_POOLING_H

#include <ops/kernel/window/volume.h>

/* Channels done at a time. */
#define TN__POOL_BLOCK 64

/* The part of a window that lies inside: cells along each axis, and elements from one to the next. */
typedef struct tn__cells {
  int64_t n[3], step[3];
} tn__cells;

/* Of a block of channels, roughly. */
static inline int64_t tn__cells_ns(const tn__cells *k) { return k->n[0] * k->n[1] * k->n[2] * TN__POOL_BLOCK / 4; }

typedef struct tn__pool_loops {
  tn_dtype dtype;
  /* where[j] = offset of the first largest of in[cell + j], j < n <= TN__POOL_BLOCK. There is a cell. A NaN is never
   * larger, but stays when it comes first. */
  void (*best)(const void *in, const tn__cells *cells, int64_t n, int64_t *where);
  /* where[j] = offset of the first in[cell + j] that is pooled[j], -1 for none. */
  void (*match)(const void *in, const void *pooled, const tn__cells *cells, int64_t n, int64_t *where);
  void (*take)(const void *in, const int64_t *where, int64_t n, void *out); /* out[j] = in[where[j] + j], 0 below 0 */
  void (*add)(void *out, const int64_t *where, int64_t n, const void *in);  /* out[where[j] + j] += in[j] */
} tn__pool_loops;

typedef struct tn__pool_state {
  tn__volume_window window;
  const tn__pool_loops *loops;
  tn_dtype dtype;
  size_t size;         /* of an element as it is computed */
  uint32_t sizes_from; /* the inputs from here on are ksize and strides; 0 where they are attributes */
} tn__pool_state;

/* TN_UNIMPLEMENTED for windows over batch or channels and for dtypes that have no loops. */
tn_status tn__pool_create(const tn_operation *op, int directions, uint32_t sizes_from, void **state, tn_error *err);
void tn__pool_destroy(void *state);

typedef struct tn__pool_plan {
  tn__volume in, out;      /* images and results; without elements, sizes may be any numbers */
  tn__window_axis axis[3];
  int64_t ins, outs;       /* elements */
  int64_t lines;           /* of results: rows of places */
  tn__form form[4];        /* of what goes in and out, as the kernel likes */
  int32_t rank;
  int64_t out_dims[5];     /* of the results */
  int64_t batch;           /* elements of an image of the batch, all channels */
  int64_t batch_of, channels; /* as the images have them, wherever channels are */
} tn__pool_plan;

/* The shape state, for images of this shape. */
tn_status tn__pool_plan_new(tn_prepare_ctx *ctx, const int64_t *dims, tn__pool_plan **plan, tn_error *err);
void tn__pool_destroy_plan(void *plan);
/* Plans form k, for images or results. */
void tn__pool_form(tn_prepare_ctx *ctx, tn__pool_plan *p, int k, bool images);

/* Place `at` of a line: the cells, and the offset of the first one in the images. False when there is none. */
bool tn__pool_cells(const tn__pool_plan *p, int64_t line, int64_t at, tn__cells *cells, int64_t *first);

/* ---- gradients: shape functions and parts of kernels ---- */

typedef struct tn__pool_run {
  const tn__pool_state *state;
  const tn__pool_plan *plan;
  const char *in, *pooled, *from;
  char *out;
} tn__pool_run;

/* Output 0 is like input 0, or like input 1. */
tn_status tn__pool_infer_image(tn_infer_ctx *ctx, tn_error *err);
tn_status tn__pool_infer_pooled(tn_infer_ctx *ctx, tn_error *err);
/* Output 0 has the shape that is input 0's value. */
tn_status tn__pool_infer_mean_2d(tn_infer_ctx *ctx, tn_error *err);
tn_status tn__pool_infer_mean_3d(tn_infer_ctx *ctx, tn_error *err);

/* Images, what was pooled from them, a gradient of that: summed at the largest elements. */
tn_status tn__pool_prepare_grad(tn_prepare_ctx *ctx, tn_error *err);
tn_status tn__pool_compute_grad(tn_kernel_ctx *ctx);
/* Images, what was pooled from them, a gradient of the images: taken where the largest elements are. */
tn_status tn__pool_prepare_grad_grad(tn_prepare_ctx *ctx, tn_error *err);
tn_status tn__pool_compute_grad_grad(tn_kernel_ctx *ctx);
/* The images' shape, a gradient of means: shared out among the cells of each window. */
tn_status tn__pool_prepare_mean(tn_prepare_ctx *ctx, tn_error *err);
tn_status tn__pool_compute_mean(tn_kernel_ctx *ctx);

#endif
