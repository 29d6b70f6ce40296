/* SPDX-License-Identifier: Apache-2.0 */
/* What FusedBatchNorm and its gradient have in common: attributes, scratch memory, images as floats. */
#ifndef TN_OPS_NN_NORM_IMAGES_H
#define TN_OPS_NN_NORM_IMAGES_H

#include <ops/nn/channels.h>

typedef struct tn__norm_state {
  float epsilon, factor;
  bool training;
  bool third;         /* version 3, which has one more reserve */
  int32_t rank, axis; /* of the images, of the channels in them */
  tn_dtype dtype;     /* of the images */
} tn__norm_state;

tn_status tn__norm_read(const tn_operation *op, tn__norm_state *s, tn_error *err);
tn_status tn__norm_create(const tn_operation *op, void **state, tn_error *err);
void tn__norm_destroy(void *state);

typedef struct tn__norm_plan {
  tn__channels channels;
  int64_t count;
  size_t at_images[2]; /* in scratch: inputs as floats, which the result is made over */
} tn__norm_plan;

/* The shape state, for input 0 and as many inputs of images, and the scratch bytes. */
tn_status tn__norm_plan_new(tn_prepare_ctx *ctx, int images, tn_error *err);
void tn__norm_destroy_plan(void *plan);

/* Scratch: each with an element for each channel, but for `sums`. */
typedef struct tn__norm_room {
  double *first, *second;
  float *scale, *shift, *by;
  void *sums;
} tn__norm_room;
tn__norm_room tn__norm_room_of(const tn__norm_plan *p, void *scratch);

/* Images k as floats; where the result goes that is made from them; bringing it to output 0. */
const float *tn__norm_load(tn_kernel_ctx *ctx, const tn__norm_plan *p, int k, const void *data);
float *tn__norm_result(tn_kernel_ctx *ctx, const tn__norm_plan *p, int k);
void tn__norm_store(tn_kernel_ctx *ctx, const tn__norm_plan *p, const float *result);

#endif
