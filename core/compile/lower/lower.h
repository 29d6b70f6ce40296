/* SPDX-License-Identifier: Apache-2.0 */
/* From nodes and values to instructions, in segments. */
#ifndef TN_CORE_COMPILE_LOWER_LOWER_H
#define TN_CORE_COMPILE_LOWER_LOWER_H

#include <core/compile/ir/ir.h>

/* Fills the plan with values and instructions, and creates their kernels (emit.c). The plan takes over the frames of
 * loops; afterwards the ir can only be freed. */
tn_status tn__ir_emit(tn__ir *ir, tn_plan *plan);
/* Distributes the instructions over segments and reorders them (cut.c). */
tn_status tn__plan_make_segments(tn_plan *plan, tn_error *err);
/* Makes the segments, and finds uses, entries, slots and held values (segments.c). */
tn_status tn__plan_cut(tn_plan *plan, tn_error *err);

#endif
