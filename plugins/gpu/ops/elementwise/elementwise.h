/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise programs: arguments that broadcast, steps that compute values from values, and one result, for which a
 * kernel is generated. Every elementwise op is such a program, mostly of one step. The kernel's text contains no names
 * and sizes, so equal programs are compiled once. */
#ifndef GPU_OPS_ELEMENTWISE_ELEMENTWISE_H
#define GPU_OPS_ELEMENTWISE_ELEMENTWISE_H

#include "ops/elementwise/steps.h"

enum {
  GPU_WALK_DIMS = 16, /* of the result; a node with more stays on the CPU */
  GPU_EW_VALUES = 64, /* arguments and steps together */
  GPU_EW_POINTERS = 48, /* so that all arguments fit into the 1024 bytes that every device has */
  GPU_EW_GROUP = 64
};

typedef struct gpu_ew_arg {
  tn_dtype dtype;
  uint32_t input, n_inputs; /* several: side by side along the last dimension, which must be the result's then */
  int64_t rows;             /* of several: how often each of them has its row */
  int64_t strides[GPU_WALK_DIMS]; /* elements from one place of the result to the next, 0 where it broadcasts; of
                                   * several: rows, and nothing for the last dimension */
} gpu_ew_arg;

typedef struct gpu_ew_step {
  const gpu_step_info *info;
  const char *text; /* instead of the expression of info, when it is not NULL */
  uint8_t at[3];    /* the operands: arguments first, then results of steps */
  float attr;
} gpu_ew_step;

typedef struct gpu_ew {
  gpu_node *n;
  uint32_t output;
  tn_dtype dtype;  /* of the steps' results, but those that compare */
  tn_dtype result; /* of the last one */
  int32_t rank;
  int64_t dims[GPU_WALK_DIMS];
  int64_t count;
  uint32_t n_args, n_steps;
  gpu_ew_arg args[GPU_EW_VALUES];
  gpu_ew_step steps[GPU_EW_VALUES];
  tn_status status; /* of the first call that failed */
  /* found by gpu_ew_walk */
  uint32_t n_joined, slots; /* parts of a joined argument that one launch reads */
  int width;                /* elements of one work item: 4 or 1 */
  bool vectors;             /* the expressions are of vectors */
} gpu_ew;

/* Begins a program whose result is an output of the node. TN_UNIMPLEMENTED for too many dimensions. */
tn_status gpu_ew_begin(gpu_ew *e, gpu_node *n, uint32_t output, tn_error *err);
/* The same with another shape of as many elements. */
tn_status gpu_ew_begin_as(gpu_ew *e, gpu_node *n, uint32_t output, const gpu_value *shape, tn_error *err);
uint32_t gpu_ew_input_as(gpu_ew *e, uint32_t input, const int64_t *dims, int32_t rank, tn_error *err);
/* An argument: an input that broadcasts to the result. */
uint32_t gpu_ew_input(gpu_ew *e, uint32_t input, tn_error *err);
/* `n` inputs side by side, whose shape along all but the last dimension is `dims`' and broadcasts. */
uint32_t gpu_ew_joined(gpu_ew *e, uint32_t input, uint32_t n, const int64_t *dims, int32_t rank, tn_error *err);
void gpu_ew_step_of(gpu_ew *e, const gpu_step_info *info, uint32_t x, uint32_t y, uint32_t z, tn_error *err);
void gpu_ew_text_step(gpu_ew *e, const char *text, uint32_t x, tn_error *err);
/* Launches for all of it. */
tn_status gpu_ew_end(gpu_ew *e, tn_error *err);

/* A node whose op is a step: all inputs broadcast. */
tn_status gpu_plan_step(gpu_node *n, tn_error *err);

/* ---- between the files ---- */

/* Merges dimensions, and decides how the elements are walked. */
tn_status gpu_ew_walk(gpu_ew *e, tn_error *err);
bool gpu_ew_is_flat(const gpu_ew *e, const gpu_ew_arg *a); /* element for element; of a joined one: row for row */
static inline bool gpu_ew_is_joined(const gpu_ew_arg *a) { return a->n_inputs > 1; }
static inline bool gpu_ew_last_moves(const gpu_ew *e, const gpu_ew_arg *a) { return a->strides[e->rank - 1] != 0; }
bool gpu_ew_faults(const gpu_ew *e); /* it may find invalid elements: FAULT is the last argument */
/* The program in OpenCL C, kernel "elementwise"; for tn_free. NULL without memory. */
char *gpu_ew_text(const gpu_ew *e);

#endif
