/* SPDX-License-Identifier: Apache-2.0 */
/* The passes, one file each: adding one is a file, a line here and a line in passes.c's list. Each leaves a graph that
 * gives the same results, and can be switched off by its name (option disable_passes). */
#ifndef TN_CORE_COMPILE_IR_PASSES_H
#define TN_CORE_COMPILE_IR_PASSES_H

#include <core/compile/ir/ir.h>

/* *changes is added to: how many nodes a pass took away, merged or rewrote. */
typedef tn_status (*tn__pass_fn)(tn__ir *ir, size_t *changes);

/* Tells only: calls are inlined while the graph is walked (inline.c). */
tn_status tn__pass_inline(tn__ir *ir, size_t *changes);
tn_status tn__pass_control(tn__ir *ir, size_t *changes);
tn_status tn__pass_identity(tn__ir *ir, size_t *changes);
tn_status tn__pass_fold(tn__ir *ir, size_t *changes);
tn_status tn__pass_common(tn__ir *ir, size_t *changes);
/* The rewrites that families of ops bring for the pass of this name (rewriter.c). from_end: the last nodes are offered
 * first and what a rewrite leaves unread is taken away at once, so that each sees all that stands in front of it. */
tn_status tn__rewrites_run(tn__ir *ir, const char *pass, bool from_end, size_t *changes);

/* Name of pass i, NULL past the end; and whether a list of names between commas names passes only. */
const char *tn__pass_name(size_t i);
const char *tn__pass_about(size_t i);
tn_status tn__passes_check(const char *list, tn_error *err);

/* All passes that are on, in their order. */
tn_status tn__passes_run(tn__ir *ir);

#endif
