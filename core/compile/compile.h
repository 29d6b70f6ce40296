/* SPDX-License-Identifier: Apache-2.0 */
/* From a graph and a signature to a plan. */
#ifndef TN_CORE_COMPILE_COMPILE_H
#define TN_CORE_COMPILE_COMPILE_H

#include <core/plan/spec.h>

/* Compiles: prune, order, resolve kernels, cut into segments. Takes the graph's read lock while it walks. */
tn_status tn__plan_compile(tn_graph *graph, const tn__signature_spec *spec, tn_plan **out, tn_error *err);
/* One operation alone, as it stands; spec->feeds are its inputs (the same one may be there twice), fetches its
 * outputs. */
tn_status tn__plan_operation(const tn_operation *op, const tn__signature_spec *spec, tn_plan **out, tn_error *err);
/* Compiles what `fill` puts into the ir: values of the feeds into ir->inputs, of the fetches into ir->outputs. The spec
 * has their numbers and no names. */
tn_status tn__plan_compile_with(tn_graph *graph, const tn__signature_spec *spec, tn__ir_fill_fn fill, const void *user,
                                tn_plan **out, tn_error *err);

/* Has the kernel plugins loaded that the plan is worth (kernel_demand.c). */
tn_status tn__ir_want_kernels(struct tn__ir *ir);

#endif
