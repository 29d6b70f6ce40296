/* SPDX-License-Identifier: Apache-2.0 */
/* What prepare of the library's own kernels may ask for beside <tenon/op.h>; core/layout defines it. */
#ifndef TN_CORE_GRAPH_PREPARE_H
#define TN_CORE_GRAPH_PREPARE_H

#include <stdbool.h>

#include <tenon/op.h>

/* Asks that all that prepare says be used for other values of input i, too, one of the op's shape_operands, as long as
 * its shape stays. True: they may come, so that compute has to read the value, and to refuse one that is wrong. False:
 * this value is the only one, as of a constant. So a step with another begin of a slice need not be laid out anew. */
bool tn__prepare_any_value(tn_prepare_ctx *ctx, uint32_t i);

#endif
