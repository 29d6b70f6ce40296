/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TN_OPS_REWRITE_SAME_SHAPES_H
#define TN_OPS_REWRITE_SAME_SHAPES_H

#include <stdbool.h>
#include <tenon/rewrite.h>

/* True if two values are found to have one shape, whatever it will be, because elementwise operations compute both
 * from one value, or one from the other. */
bool tn__have_one_shape(const tn_rewriter *rw, uint32_t x, uint32_t y);

#endif
