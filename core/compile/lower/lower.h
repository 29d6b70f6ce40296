/* SPDX-License-Identifier: Apache-2.0 */
/* From nodes and values to instructions, in segments. */
#ifndef TN_CORE_COMPILE_LOWER_LOWER_H
#define TN_CORE_COMPILE_LOWER_LOWER_H

#include <core/compile/ir/ir.h>

/* Values and instructions, kernels resolved and created (emit.c). */
tn_status tn__ir_emit(tn__ir *ir, tn_plan *plan);
/* The cut (cut.c). */
tn_status tn__plan_make_segments(tn_plan *plan, tn_error *err);
/* Uses, segments and what each reads from outside (segments.c). */
tn_status tn__plan_cut(tn_plan *plan, tn_error *err);

#endif
