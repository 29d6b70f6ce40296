/* SPDX-License-Identifier: Apache-2.0 */
/* The passes, one file each. To add one, add a file, a declaration here and a line in the list of passes.c. Each pass
 * leaves an ir that computes the same results, and can be switched off by its name (option disable_passes). */
#ifndef TN_CORE_COMPILE_IR_PASSES_H
#define TN_CORE_COMPILE_IR_PASSES_H

#include <core/compile/ir/ir.h>

/* Runs a pass, and adds the number of nodes that it removed, merged or rewrote to *changes. */
typedef tn_status (*tn__pass_fn)(tn__ir *ir, size_t *changes);

/* Only reports: calls are inlined while the graph is walked (import/inline.c). */
tn_status tn__pass_inline(tn__ir *ir, size_t *changes);
tn_status tn__pass_control(tn__ir *ir, size_t *changes);
tn_status tn__pass_identity(tn__ir *ir, size_t *changes);
tn_status tn__pass_fold(tn__ir *ir, size_t *changes);
tn_status tn__pass_common(tn__ir *ir, size_t *changes);
/* Applies the rewrites that families of ops register for the pass of this name (rewriter.c), until nothing changes. If
 * from_end, nodes are offered from last to first, and a node that a rewrite leaves unread is removed at once, so each
 * rewrite sees everything that precedes its node. */
tn_status tn__rewrites_run(tn__ir *ir, const char *pass, bool from_end, size_t *changes);

/* Name and description of pass i; NULL past the end. */
const char *tn__pass_name(size_t i);
const char *tn__pass_about(size_t i);
/* TN_INVALID_ARGUMENT if a comma-separated list has a name that is not a pass. */
tn_status tn__passes_check(const char *list, tn_error *err);

/* Runs all passes that are on, in their order. */
tn_status tn__passes_run(tn__ir *ir);

#endif
