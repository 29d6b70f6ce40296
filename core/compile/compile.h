/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles a graph and a signature to a plan. */
#ifndef TN_CORE_COMPILE_COMPILE_H
#define TN_CORE_COMPILE_COMPILE_H

#include <core/plan/spec.h>

/* All functions return a plan with one reference in *out, or NULL and an error. They can be called by several threads
 * at once. */

/* Compiles a signature: prune, order, run passes, resolve kernels, cut into segments. Takes the graph's read lock while
 * it walks. */
tn_status tn__plan_compile(tn_graph *graph, const tn__signature_spec *spec, tn_plan **out, tn_error *err);
/* Compiles one operation, unchanged. spec->feeds are its inputs, where one may appear twice; fetches are its
 * outputs. */
tn_status tn__plan_operation(const tn_operation *op, const tn__signature_spec *spec, tn_plan **out, tn_error *err);
/* Compiles the nodes that `fill` adds to the ir. It also stores the values of the feeds in ir->inputs and of the
 * fetches in ir->outputs. The spec has the numbers of both, but no names. */
tn_status tn__plan_compile_with(tn_graph *graph, const tn__signature_spec *spec, tn__ir_fill_fn fill, const void *user,
                                tn_plan **out, tn_error *err);

/* Loads kernel plugins before the first step if the plan is expensive enough (kernel_demand.c). */
tn_status tn__ir_want_kernels(struct tn__ir *ir);

#endif
