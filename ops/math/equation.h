/* SPDX-License-Identifier: Apache-2.0 */
/* Equations of Einsum, "ij,jk->ik": which dimensions of the operands are the same one, and which of them are left. */
#ifndef TN_OPS_MATH_EQUATION_H
#define TN_OPS_MATH_EQUATION_H

#include <ops/kernel/shapes.h>

/* A label is a byte. "..." stands for as many dimensions as are left; they broadcast, aligned at their last one. */
typedef struct tn__term {
  int32_t n;        /* labels */
  int32_t ellipsis; /* how many labels come before it, -1 without one */
  uint8_t labels[TN_MAX_RANK];
} tn__term;

typedef struct tn__equation {
  const char *op;
  int32_t n_inputs; /* 1 or 2 */
  tn__term in[2], out;
} tn__equation;

tn_status tn__equation_read(const tn_operation *op, tn__equation *equation, tn_error *err);

enum { TN__IN_A = 1, TN__IN_B = 2, TN__IN_OUT = 4 }; /* 1 << number of the operand */

/* A dimension, wherever it occurs. */
typedef struct tn__index {
  int64_t size;     /* -1 = unknown */
  int64_t steps[3]; /* elements from one place to the next in A, B and the output; set for known shapes */
  int32_t where;    /* TN__IN_... ; a dimension of size 1 that broadcasts counts as not being there */
} tn__index;

/* About 25 KiB; on the stack. */
typedef struct tn__indices {
  int32_t n;
  int32_t rank[3]; /* that of B is -1 when there is none */
  bool repeated[3]; /* an index occurs twice: a diagonal */
  int16_t dims[3][TN_MAX_RANK]; /* index of each dimension */
  int16_t of[256 + TN_MAX_RANK]; /* index of a label, or of a dimension of "..." from its end; -1 */
  tn__index at[2 * TN_MAX_RANK];
} tn__indices;

/* Puts the equation and the shapes of its inputs together. Sizes may be unknown; a rank that is not known gives what
 * the labels say. *out is the output's shape. TN_INVALID_ARGUMENT when they do not fit. */
tn_status tn__equation_resolve(const tn__equation *equation, const tn__shape *in, tn__indices *indices, tn__shape *out,
                               tn_error *err);
/* Sets the steps, from shapes that are known. */
void tn__indices_steps(tn__indices *indices, const tn__shape *in, const tn__shape *out);
/* The indices of operand t, each once, in the order of its dimensions; those of size 1 are left out. Returns how many
 * there are; list has room for TN_MAX_RANK. */
int32_t tn__indices_list(const tn__indices *indices, int t, int16_t *list);

#endif
