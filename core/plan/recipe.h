/* SPDX-License-Identifier: Apache-2.0 */
/* A recipe makes the elements of a large constant again: it takes them from the graph (and its file), or computes them
 * from other constants. If all kernels that read a constant have packed forms of it, the plan releases its elements,
 * and makes them again if a kernel needs them for other shapes. Recipes are immutable and reference-counted. */
#ifndef TN_CORE_PLAN_RECIPE_H
#define TN_CORE_PLAN_RECIPE_H

#include <core/graph/graph_internal.h>
#include <core/tensor/tensor_internal.h>

typedef struct tn__recipe tn__recipe;

/* Maximum cost of an evaluation; a NULL pointer means no limits. */
typedef struct tn__evaluate_limits {
  uint64_t bytes; /* of outputs whose size is known before they are computed; more are refused */
  double ns;      /* that the kernel declares; more is refused, else it is subtracted. The evaluation is also stopped if
                   * it takes far longer than declared */
} tn__evaluate_limits;

/* Runs one operation by its kernel on the host. The caller initialises outputs to NULL and owns them afterwards; a
 * single output may instead be a tensor to compute into. The evaluation stops early if this thread's preparation is
 * stopped (core/base/threads/stop.h). */
typedef tn_status (*tn__evaluate_fn)(const tn_operation *op, tn_tensor *const *inputs, size_t n_inputs,
                                     tn_tensor **outputs, size_t n_outputs, tn__evaluate_limits *limits, tn_error *err);

/* An input of a computed constant: its recipe, or, if that is NULL, a small tensor. */
typedef struct tn__ingredient {
  tn_tensor *tensor;
  tn__recipe *recipe;
} tn__ingredient;

/* Makes the recipe of output `output` of op, which has the dtype and shape of `like`. It has n inputs; a constant of
 * the graph has none. The recipe holds references of its own. NULL if the constant is too small to be worth a recipe,
 * it cannot be made again, or memory is exhausted. */
tn__recipe *tn__recipe_create(const tn_operation *op, uint32_t output, const tn__ingredient *inputs, uint32_t n,
                            const tn_tensor *like);
tn__recipe *tn__recipe_ref(tn__recipe *recipe);
void tn__recipe_unref(tn__recipe *recipe);

/* Whether two recipes are known to make the same elements. */
bool tn__recipe_same(const tn__recipe *a, const tn__recipe *b);
/* Makes the constant; *out is a new reference. Returns TN_DATA_LOSS if the file was modified, TN_RESOURCE_EXHAUSTED, or
 * another error of a kernel. Runs kernels and reads files: hold no lock. */
tn_status tn__recipe_follow(const tn__recipe *recipe, tn__evaluate_fn evaluate, tn_tensor **out, tn_error *err);

#endif
