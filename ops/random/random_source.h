/* SPDX-License-Identifier: Apache-2.0 */
/* What ops of random numbers share: where their generators start, the shapes they are asked for, tensors of random
 * numbers. */
#ifndef TN_OPS_RANDOM_RANDOM_SOURCE_H
#define TN_OPS_RANDOM_RANDOM_SOURCE_H

#include <ops/random/philox.h>
#include <ops/kernel/shapes.h>

/* ---- generators that go on from step to step ---- */

/* `create` and `destroy`: a generator seeded by the attributes seed and seed2, by the system when both are 0. */
tn_status tn__random_create(const tn_operation *op, void **state, tn_error *err);
void tn__random_destroy(void *state);
/* The next `count` * `each` blocks for the calling step alone. */
tn__philox tn__random_reserve(const void *state, int64_t count, uint64_t each);
/* An element may use up to this many blocks. */
#define TN__RANDOM_BLOCKS 256

/* ---- generators that are a function of their operands ---- */

/* The generator for two seeds (int32 or int64) of an op that keeps no state. */
tn__philox tn__random_seeded(const tn_view *seed);
/* The checks of that operand: a vector of two. */
tn_status tn__random_want_seed(const tn_prepare_ctx *ctx, uint32_t i, tn_error *err);
/* The operands key, counter and alg, which are inputs i, i + 1 and i + 2: their shapes, and the generator. */
tn_status tn__random_want_key(const tn_prepare_ctx *ctx, uint32_t i, tn_error *err);
tn_status tn__random_keyed(const tn_kernel_ctx *ctx, uint32_t i, const char *op, tn__philox *out);

/* ---- shapes ---- */

/* Input i as the shape it asks for. */
tn_status tn__random_shape(const tn_prepare_ctx *ctx, uint32_t i, tn__shape *out, tn_error *err);
/* `prepare` for output 0 of the shape that input 0 asks for; cost_ns is that of one element. */
tn_status tn__random_prepare(tn_prepare_ctx *ctx, double cost_ns, tn_error *err);
/* Shape functions: output 0 has the shape that input 0 asks for; and the same, where operands are checked, too. */
tn_status tn__infer_random(tn_infer_ctx *ctx, tn_error *err);
tn_status tn__infer_seeded(tn_infer_ctx *ctx, tn_error *err); /* input 1 is a seed */
tn_status tn__infer_keyed(tn_infer_ctx *ctx, tn_error *err);  /* inputs 1 to 3 are key, counter and alg */
/* Part of others: inputs i, i + 1 and i + 2 are key, counter and alg. */
tn_status tn__infer_key(const tn_infer_ctx *ctx, size_t i, tn_error *err);

/* ---- tensors of random numbers ---- */

typedef enum tn__random_kind {
  TN__RANDOM_UNIFORM,   /* of [0, 1) */
  TN__RANDOM_NORMAL,    /* mean 0, deviation 1 */
  TN__RANDOM_TRUNCATED, /* the same, those inside (-2, 2) */
  TN__RANDOM_RANGE,     /* integers of [low, low + range) */
  TN__RANDOM_BITS       /* any integer */
} tn__random_kind;

/* Fills an output. low and range are for TN__RANDOM_RANGE; range is not 0 and fits the dtype. */
void tn__random_fill(tn_kernel_ctx *ctx, tn__random_kind kind, const tn__philox *from, const tn_view *out, uint64_t low,
                     uint64_t range);
/* The integers of [minval, maxval), which are inputs i and i + 1, into output 0. */
tn_status tn__random_fill_between(tn_kernel_ctx *ctx, const tn__philox *from, uint32_t i, const char *op);
/* The rough time of an element in nanoseconds. */
double tn__random_cost(tn__random_kind kind);

/* Two numbers of the normal distribution from two words, or from four. */
void tn__normal_floats(const uint32_t *words, float *out);
void tn__normal_doubles(const uint32_t *words, double *out);

#endif
