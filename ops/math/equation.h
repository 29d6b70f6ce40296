/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum equations such as "ij,jk->ik": which dimensions of the operands correspond, and which remain in the output. */
#ifndef TN_OPS_MATH_EQUATION_H
#define TN_OPS_MATH_EQUATION_H

#include <ops/kernel/shapes.h>

/* A label is a byte. "..." stands for all remaining dimensions, which are aligned at the last one and broadcast. */
typedef struct tn__term {
  int32_t n;        /* number of labels */
  int32_t ellipsis; /* number of labels before "...", -1 if there is none */
  uint8_t labels[TN_MAX_RANK];
} tn__term;

typedef struct tn__equation {
  const char *op;
  int32_t n_inputs; /* 1 or 2 */
  tn__term in[2], out;
} tn__equation;

tn_status tn__equation_read(const tn_operation *op, tn__equation *equation, tn_error *err);

enum { TN__IN_A = 1, TN__IN_B = 2, TN__IN_OUT = 4 }; /* 1 << operand number */

/* An index of the equation: one dimension, in every operand in which it occurs. */
typedef struct tn__index {
  int64_t size;     /* -1 if unknown */
  int64_t steps[3]; /* strides in A, B and the output, in elements; set for known shapes */
  int32_t where;    /* TN__IN_... bits; an operand in which the dimension is broadcast from size 1 does not count */
} tn__index;

/* About 25 KiB; lives on the stack. */
typedef struct tn__indices {
  int32_t n;
  int32_t rank[3]; /* rank of B is -1 if there is no B */
  bool repeated[3]; /* an index occurs more than once: a diagonal */
  int16_t dims[3][TN_MAX_RANK]; /* index of each dimension */
  int16_t of[256 + TN_MAX_RANK]; /* index of a label, or of a dimension of "..." counted from its end; -1: none */
  tn__index at[2 * TN_MAX_RANK];
} tn__indices;

/* Matches the equation with the shapes of its inputs. Sizes may be unknown; an input of unknown rank has the dimensions
 * that its labels imply. Sets *out to the output's shape. TN_INVALID_ARGUMENT if the shapes do not fit. */
tn_status tn__equation_resolve(const tn__equation *equation, const tn__shape *in, tn__indices *indices, tn__shape *out,
                               tn_error *err);
/* Sets the steps of all indices. The shapes must be known. */
void tn__indices_steps(tn__indices *indices, const tn__shape *in, const tn__shape *out);
/* Lists the indices of operand t, each once, in the order of its dimensions, without those of size 1. Returns their
 * number; list must have room for TN_MAX_RANK. */
int32_t tn__indices_list(const tn__indices *indices, int t, int16_t *list);

#endif
