/* SPDX-License-Identifier: Apache-2.0 */
/* Elements that only change their place: walks with a stride for each dimension on both sides. */
#ifndef GPU_OPS_KERNEL_MOVE_H
#define GPU_OPS_KERNEL_MOVE_H

#include "ops/kernel/elements.h"

enum { GPU_MOVE_DIMS = 16 }; /* a node with more stays on the CPU */

/* Elements from one place of the walk to the next, in each dimension; places may begin anywhere. */
typedef struct gpu_move {
  int32_t rank;
  int64_t dims[GPU_MOVE_DIMS], from[GPU_MOVE_DIMS], to[GPU_MOVE_DIMS];
  int64_t from_at, to_at;
} gpu_move;

/* Adds a dimension inside the existing ones. */
void gpu_move_add(gpu_move *m, int64_t size, int64_t from, int64_t to);
/* A launch that moves elements of input `input` to output `output`. */
void gpu_move_launch(gpu_node *n, gpu_move *m, uint32_t input, uint32_t output);
/* A launch that makes all elements of an output 0. */
void gpu_clear(gpu_node *n, uint32_t output);
/* Integer k of a tensor whose elements planning knows. */
int64_t gpu_int_at(const gpu_value *v, int64_t k);
/* Strides of contiguous dims; false for more than GPU_MOVE_DIMS. */
bool gpu_strides(const int64_t *dims, int32_t rank, int64_t *strides);

#endif
