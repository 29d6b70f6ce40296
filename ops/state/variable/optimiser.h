/* SPDX-License-Identifier: Apache-2.0 */
/* Optimisers: ops that change a variable and its slots (moments, sums of squares) by a gradient, in place, in one pass.
 *
 * All take their inputs in one order: the variables, some scalars, the gradient, the indices of its rows when it is
 * sparse, the other scalars. So an optimiser is a rule for one element and a line in a table (training_rules.c); dense
 * and sparse forms, and those by reference and by resource, share it. */
#ifndef TN_OPS_STATE_VARIABLE_OPTIMISER_H
#define TN_OPS_STATE_VARIABLE_OPTIMISER_H

#include <ops/kernel/shapes.h>
#include <ops/kernel/elements/vectors.h>

#define TN__TRAINING_SLOTS 4     /* most variables of an optimiser */
#define TN__TRAINING_SCALARS 6   /* most scalars */
#define TN__TRAINING_CONSTANTS 6 /* most numbers that a rule makes of them */
#define TN__TRAINING_SHORTS 16   /* elements of half and bfloat16 are computed that many at a time */

/* A rule's loop for n elements of one dtype; those of half and bfloat16 are given as floats, and n is a multiple of
 * TN__TRAINING_SHORTS. slots has room for all, also for those that the rule does not have. */
typedef void (*tn__training_fn)(void *const *slots, const void *grad, const void *constants, int64_t n);

/* A rule for one dtype.
 * setup  makes the constants, TN__TRAINING_CONSTANTS of the type that is computed in, of n scalars and the number of a
 *        step; true: this step needs the slow loop
 * fn     by kind of vectors
 * slow   NULL when setup never asks for it */
typedef struct tn__training_rule {
  tn_dtype dtype;
  bool (*setup)(const void *const *scalars, uint32_t n, int64_t step, bool flag, void *constants);
  tn__training_fn fn[TN__VECTORS], slow;
} tn__training_rule;

typedef struct tn__training_rules {
  const tn__training_rule *of;
  size_t n;
} tn__training_rules;

/* An optimiser.
 * name      without Apply and what is in front of it
 * n_slots   variables
 * n_before  scalars in front of the gradient
 * flag      attribute of kind bool that changes the rule, NULL: there is none
 * rules     without and with the flag
 * of_rows   the same for sparse gradients, where TensorFlow rounds at other places; empty: as the others
 * limits    of the scalars' values in dense and in sparse forms, NULL: none. A letter for each: '+' above 0, '0' not
 *           below 0 ('/' above 0 without the flag, not below 0 with it), '-' not above 0, ' ' any
 * cost_ns   of an element
 * inner     rows without elements are an error in sparse forms */
typedef struct tn__training_row {
  const char *name;
  uint32_t n_slots, n_before;
  const char *flag;
  bool flag_default;
  tn__training_rules rules[2], of_rows[2];
  const char *limits[2];
  double cost_ns;
  bool inner;
} tn__training_row;

extern const tn__training_row tn__training_rows[];
extern const size_t tn__n_training_rows;

/* Which form of which optimiser an op is. */
typedef struct tn__training_form {
  const tn__training_row *row;
  bool sparse, by_reference;
} tn__training_form;

/* Of the type of an op: [Resource][Sparse]Apply and the name of a row. row is NULL when it is none. */
tn__training_form tn__training_form_of(const char *type);
/* The rule of a row for a dtype, NULL when it has none. */
const tn__training_rule *tn__training_rule_of(const tn__training_row *row, bool sparse, bool flag, tn_dtype dtype);

/* ---- the kernel of all of them ---- */

tn_status tn__training_create(const tn_operation *op, void **state, tn_error *err);
void tn__training_destroy(void *state);
tn_status tn__training_prepare(tn_prepare_ctx *ctx, tn_error *err);
tn_status tn__training_compute(tn_kernel_ctx *ctx);

#endif
