/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that prepare() of the library's own kernels may make in addition to <tenon/op.h>; defined by core/layout. */
#ifndef TN_CORE_GRAPH_PREPARE_H
#define TN_CORE_GRAPH_PREPARE_H

#include <stdbool.h>

#include <tenon/op.h>

/* Requests that the result of prepare() also be used for other values of input i, a shape operand of the op, while its
 * shape stays the same. Then a step that, for example, slices from another position needs no new layout. True: other
 * values may occur, so compute() must read the value and refuse a bad one. False: the value never changes (a
 * constant). */
bool tn__prepare_any_value(tn_prepare_ctx *ctx, uint32_t i);

#endif
