/* SPDX-License-Identifier: Apache-2.0 */
/* Optimisers: ops that update a variable and its slots (moments, sums of squares) by a gradient, in
 * place, in one pass.
 *
 * All have their inputs in the same order: the variables, some scalars, the gradient, the indices
 * of its rows if it is sparse, the other scalars. An optimiser is therefore a rule for one element
 * and a line in a table (optimiser_rules.c), shared by its dense and sparse forms, by reference and
 * by resource. */
#ifndef TN_OPS_STATE_VARIABLE_OPTIMISER_H
#define TN_OPS_STATE_VARIABLE_OPTIMISER_H

#include <ops/kernel/shapes.h>
#include <ops/kernel/elements/vectors.h>

#define TN__TRAINING_SLOTS 4     /* maximum variables of an optimiser */
#define TN__TRAINING_SCALARS 6   /* maximum scalars */
#define TN__TRAINING_CONSTANTS 6 /* maximum constants that a rule derives from them */
#define TN__TRAINING_SHORTS 16   /* elements of half and bfloat16 are computed in groups of this size */

/* A rule's loop over n elements of one dtype. Elements of half and bfloat16 are passed as floats,
 * and n is a multiple of TN__TRAINING_SHORTS. `slots` always has TN__TRAINING_SLOTS entries,
 * including those that the rule does not use. */
typedef void (*tn__training_fn)(void *const *slots, const void *grad, const void *constants, int64_t n);

/* A rule for one dtype.
 * setup  computes TN__TRAINING_CONSTANTS constants, in the type used for computing, from n scalars and the number of
 *        the step; returns true if this step needs the slow loop
 * fn     by vector instruction set
 * slow   NULL if setup never returns true */
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
 * name      the op's type after "Apply"
 * n_slots   variables
 * n_before  scalars before the gradient
 * flag      bool attribute that changes the rule; NULL: none
 * rules     without and with the flag
 * of_rows   the same for sparse gradients, where TensorFlow rounds at other places; empty: use `rules`
 * limits    of the scalars' values in dense and in sparse forms; NULL: none. One letter per scalar: '+' above 0,
 *           '0' at least 0, '/' above 0 without the flag and at least 0 with it, '-' at most 0, ' ' any value
 * cost_ns   per element
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

/* The optimiser of an op, and in which form. */
typedef struct tn__training_form {
  const tn__training_row *row;
  bool sparse, by_reference;
} tn__training_form;

/* Parses an op's type: [Resource][Sparse]Apply and the name of a row. `row` is NULL if there is no
 * such row. */
tn__training_form tn__training_form_of(const char *type);
/* The rule of a row for a dtype; NULL if there is none. */
const tn__training_rule *tn__training_rule_of(const tn__training_row *row, bool sparse, bool flag, tn_dtype dtype);

/* ---- the kernel of all optimisers ---- */

tn_status tn__training_create(const tn_operation *op, void **state, tn_error *err);
void tn__training_destroy(void *state);
tn_status tn__training_prepare(tn_prepare_ctx *ctx, tn_error *err);
tn_status tn__training_compute(tn_kernel_ctx *ctx);

#endif
