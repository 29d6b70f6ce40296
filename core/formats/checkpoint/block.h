/* SPDX-License-Identifier: Apache-2.0 */
/* One block of memory for many tensors that are read at once. A tensor of some megabytes has few huge pages of its own
 * or none, and most of the time to read it would be page faults. The block is freed with the last of its tensors; the
 * pages of each are returned to the system with the tensor. */
#ifndef TN_CORE_FORMATS_CHECKPOINT_BLOCK_H
#define TN_CORE_FORMATS_CHECKPOINT_BLOCK_H

#include <core/tensor/tensor_internal.h>

typedef struct tn__block tn__block;

/* Whether a tensor is better made in a block: neither tiny, nor large enough for huge pages of its own, nor of elements
 * that own memory. */
bool tn__block_suits(tn_dtype dtype, size_t bytes);
/* The bytes that a tensor takes in a block. */
size_t tn__block_bytes(size_t bytes);

/* Makes a block of this size. NULL: none is to be had, or none is of use: it is small, pages cannot be returned, or the
 * memory of the calling step is counted. The caller has a reference. */
tn__block *tn__block_create(size_t size);
void tn__block_unref(tn__block *block); /* NULL allowed */
/* Makes the next tensor in the block, as tn_tensor_create. One thread at a time. */
tn_status tn__block_tensor(tn__block *block, tn_dtype dtype, const int64_t *dims, int32_t rank, size_t bytes,
                           tn_tensor **out, tn_error *err);

#endif
