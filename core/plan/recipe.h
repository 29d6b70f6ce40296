/* SPDX-License-Identifier: Apache-2.0 */
/* How a large constant is had again: from the graph (and its file), or by computing it from others. A plan whose
 * kernels all have forms of their own of a constant lets its elements go, and makes them again when shapes come for
 * which a kernel wants them. Immutable, counted. */
#ifndef TN_CORE_PLAN_RECIPE_H
#define TN_CORE_PLAN_RECIPE_H

#include <core/graph/graph_internal.h>
#include <core/tensor/tensor_internal.h>

typedef struct tn__recipe tn__recipe;

/* What an evaluation may cost. NULL where one is taken: anything. */
typedef struct tn__evaluate_limits {
  uint64_t bytes; /* of outputs, as far as they are known before; more are refused */
  double
      ns; /* that the kernel says it takes; more is refused, else it is taken off. Far more than it said ends it, too */
} tn__evaluate_limits;

/* Runs one operation by its kernel on the host. outputs are the caller's, NULL at first; a single one may be a tensor
 * to compute into. It ends early when what this thread prepares is to end (core/base/stop.h). */
typedef tn_status (*tn__evaluate_fn)(const tn_operation *op, tn_tensor *const *inputs, size_t n_inputs,
                                     tn_tensor **outputs, size_t n_outputs, tn__evaluate_limits *limits, tn_error *err);

/* What an input of a computed constant is: a recipe, or a tensor that is small. */
typedef struct tn__ingredient {
  tn_tensor *tensor;
  tn__recipe *recipe;
} tn__ingredient;

/* NULL: it is too small to be worth one, or cannot be had again, or there is no memory. References are added.
 * inputs: n of them; op's output `output` is like `like`. A constant of the graph has no inputs. */
tn__recipe *tn__recipe_make(const tn_operation *op, uint32_t output, const tn__ingredient *inputs, uint32_t n,
                            const tn_tensor *like);
tn__recipe *tn__recipe_ref(tn__recipe *recipe);
void tn__recipe_unref(tn__recipe *recipe);

/* Whether both surely give the same elements. */
bool tn__recipe_same(const tn__recipe *a, const tn__recipe *b);
/* The tensor, a reference. TN_DATA_LOSS when the file was written to, TN_RESOURCE_EXHAUSTED, ... */
tn_status tn__recipe_follow(const tn__recipe *recipe, tn__evaluate_fn evaluate, tn_tensor **out, tn_error *err);

#endif
