/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by ops that make random numbers: the start of generators, the shapes of outputs, and
 * filling tensors with random numbers. */
#ifndef TN_OPS_RANDOM_RANDOM_SOURCE_H
#define TN_OPS_RANDOM_RANDOM_SOURCE_H

#include <ops/random/philox.h>
#include <ops/kernel/shapes.h>

/* ---- stateful generators: they advance from step to step ---- */

/* `create` and `destroy` of a generator. It is seeded by the attributes seed and seed2, or by the
 * system if both are 0. */
tn_status tn__random_create(const tn_operation *op, void **state, tn_error *err);
void tn__random_destroy(void *state);
/* Reserves the next `count` * `each` blocks for the calling step. Thread-safe. */
tn__philox tn__random_reserve(const void *state, int64_t count, uint64_t each);
/* Maximum blocks per element. */
#define TN__RANDOM_BLOCKS 256

/* ---- stateless generators: functions of their operands ---- */

/* The generator for two seeds (int32 or int64), for ops without state. */
tn__philox tn__random_seeded(const tn_view *seed);
/* Checks that operand: a vector of two elements. */
tn_status tn__random_want_seed(const tn_prepare_ctx *ctx, uint32_t i, tn_error *err);
/* Operands key, counter and alg, inputs i, i + 1 and i + 2: check of their shapes, and their
 * generator. */
tn_status tn__random_want_key(const tn_prepare_ctx *ctx, uint32_t i, tn_error *err);
tn_status tn__random_keyed(const tn_kernel_ctx *ctx, uint32_t i, const char *op, tn__philox *out);

/* ---- shapes ---- */

/* Reads the wanted shape from input i. */
tn_status tn__random_shape(const tn_prepare_ctx *ctx, uint32_t i, tn__shape *out, tn_error *err);
/* `prepare` for output 0 with the shape wanted by input 0. cost_ns is the cost of one element. */
tn_status tn__random_prepare(tn_prepare_ctx *ctx, double cost_ns, tn_error *err);
/* Shape functions: output 0 has the shape wanted by input 0. The other two also check further
 * operands. */
tn_status tn__infer_random(tn_infer_ctx *ctx, tn_error *err);
tn_status tn__infer_seeded(tn_infer_ctx *ctx, tn_error *err); /* input 1 is a seed */
tn_status tn__infer_keyed(tn_infer_ctx *ctx, tn_error *err);  /* inputs 1 to 3 are key, counter and alg */
/* For other shape functions: checks that inputs i, i + 1 and i + 2 are key, counter and alg. */
tn_status tn__infer_key(const tn_infer_ctx *ctx, size_t i, tn_error *err);

/* ---- tensors of random numbers ---- */

typedef enum tn__random_kind {
  TN__RANDOM_UNIFORM,   /* in [0, 1) */
  TN__RANDOM_NORMAL,    /* mean 0, deviation 1 */
  TN__RANDOM_TRUNCATED, /* the same, limited to (-2, 2) */
  TN__RANDOM_RANGE,     /* integers in [low, low + range) */
  TN__RANDOM_BITS       /* any integer */
} tn__random_kind;

/* Fills an output. low and range are used for TN__RANDOM_RANGE; range is not 0 and fits the dtype. */
void tn__random_fill(tn_kernel_ctx *ctx, tn__random_kind kind, const tn__philox *from, const tn_view *out, uint64_t low,
                     uint64_t range);
/* Fills output 0 with integers in [minval, maxval), which are inputs i and i + 1. */
tn_status tn__random_fill_between(tn_kernel_ctx *ctx, const tn__philox *from, uint32_t i, const char *op);
/* The approximate time per element in nanoseconds. */
double tn__random_cost(tn__random_kind kind);

/* Two normally distributed numbers from two words, or from four. */
void tn__normal_floats(const uint32_t *words, float *out);
void tn__normal_doubles(const uint32_t *words, double *out);

#endif
