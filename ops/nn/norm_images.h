/* SPDX-License-Identifier: Apache-2.0 */
/* Common code of FusedBatchNorm and its gradient: attributes, scratch memory, images as floats. */
#ifndef TN_OPS_NN_NORM_IMAGES_H
#define TN_OPS_NN_NORM_IMAGES_H

#include <ops/nn/channels.h>

typedef struct tn__norm_state {
  float epsilon, factor;
  bool training;
  bool third;         /* version 3, which has one more reserve output */
  int32_t rank, axis; /* rank of the images, and their channel dimension */
  tn_dtype dtype;     /* dtype of the images */
} tn__norm_state;

tn_status tn__norm_read(const tn_operation *op, tn__norm_state *s, tn_error *err);
tn_status tn__norm_create(const tn_operation *op, void **state, tn_error *err);
void tn__norm_destroy(void *state);

typedef struct tn__norm_plan {
  tn__channels channels;
  int64_t count;
  size_t at_images[2]; /* offsets in scratch of inputs as floats; the result overwrites one of them */
} tn__norm_plan;

/* For `prepare`: creates the shape state for `images` image inputs, starting with input 0, and sets the scratch
 * size. */
tn_status tn__norm_plan_create(tn_prepare_ctx *ctx, int images, tn_error *err);
void tn__norm_destroy_plan(void *plan);

/* Arrays in scratch. All but `sums` have one element per channel. */
typedef struct tn__norm_room {
  double *first, *second;
  float *scale, *shift, *by;
  void *sums;
} tn__norm_room;
tn__norm_room tn__norm_room_of(const tn__norm_plan *p, void *scratch);

/* _load returns image input k as floats, _result where to write the result computed from it, and _store converts that
 * result to output 0. */
const float *tn__norm_load(tn_kernel_ctx *ctx, const tn__norm_plan *p, int k, const void *data);
float *tn__norm_result(tn_kernel_ctx *ctx, const tn__norm_plan *p, int k);
void tn__norm_store(tn_kernel_ctx *ctx, const tn__norm_plan *p, const float *result);

#endif
