/* SPDX-License-Identifier: Apache-2.0 */
/* Repeated heads: keys and values that several heads of the query share. */
#ifndef TN_OPS_REWRITE_REPEATS_H
#define TN_OPS_REWRITE_REPEATS_H

#include <stdbool.h>
#include <tenon/rewrite.h>

/* True if a value is another one whose slices along a dimension are each repeated `repeat` times:
 *
 *   a dimension of size 1 is added behind it (ExpandDims, Reshape, StridedSlice with a new axis);
 *   Tile or BroadcastTo makes it larger;
 *   a Reshape joins the two.
 *
 * Nothing else reads what is in between. Sizes that are not known must come from the Shape of `from`. */
bool tn__repeated(const tn_rewriter *rw, uint32_t value, int32_t dimension, uint32_t *from, int64_t *repeat);

#endif
