/* SPDX-License-Identifier: Apache-2.0 */
/* The innermost loops of strided copies. */
#ifndef TN_OPS_KERNEL_MOVE_STRIDED_BLOCKS_H
#define TN_OPS_KERNEL_MOVE_STRIDED_BLOCKS_H

#include <ops/kernel/move/strided.h>

/* The block loop for units of 1, 2, 4, 8 or 16 bytes; NULL for other widths. */
tn__strided_block tn__strided_block_of(size_t width);

/* The same for steps that are multiples of TN__FAR_STEP bytes. Each side of a block may have at most TN__FAR_EDGE
 * units and at most TN__FAR_BYTES bytes. */
#define TN__FAR_STEP 1024
#define TN__FAR_EDGE 64
#define TN__FAR_BYTES 128
tn__strided_block tn__strided_far_block_of(size_t width);

#endif
