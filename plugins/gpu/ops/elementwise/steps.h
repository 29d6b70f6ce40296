/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenCL C expressions of elementwise ops. */
#ifndef GPU_OPS_ELEMENTWISE_STEPS_H
#define GPU_OPS_ELEMENTWISE_STEPS_H

#include "ops/kernel/elements.h"

/* In an expression x, y and z are the operands, A is an attribute (a float argument of the kernel) and
 *   V     the type of the result: a number, or in the expressions of floats also a vector of four
 *   K(c)  a constant of that type
 *   W     for integers: the unsigned type in which they are computed, at least 32 bits wide, so that overflow wraps
 *   BITS  for integers: their number of bits
 * Each operand is a variable, so it may be used several times. */
typedef struct gpu_step_info {
  const char *op;
  uint8_t reads;        /* operands */
  bool compares;        /* the result is bool */
  bool single;          /* its expressions are of single numbers; so are those of all that compares */
  const char *floats;   /* NULL: not for such elements */
  const char *integers;
  const char *truths;
  const char *attr;     /* the float attribute that A is */
  tn_status fault;      /* of integers that it cannot take: its expression says FAULT_AT then. TN_OK: it takes all */
  const char *fault_text;
} gpu_step_info;

const gpu_step_info *gpu_step_find(const char *op, size_t size); /* NULL for what is no step */
/* The expression for elements of a kind, or NULL. */
const char *gpu_step_text(const gpu_step_info *s, int kind);

#endif
