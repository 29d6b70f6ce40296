/* SPDX-License-Identifier: Apache-2.0 */
/* Prefixes of checkpoints, as ops get them: a string that all files of a checkpoint begin with. */
#ifndef TN_OPS_CHECKPOINT_PREFIX_H
#define TN_OPS_CHECKPOINT_PREFIX_H

#include <core/formats/checkpoint/checkpoint.h>
#include <core/resource/folders.h>

/* The prefix in element i of an input, in the folders of the session; free it with tn__strfree. Checks all files of the
 * checkpoint that exist: none is a link that leads out of these folders. TN_INVALID_ARGUMENT (an empty prefix, a zero
 * byte), TN_PERMISSION_DENIED. */
tn_status tn__prefix_of(const tn_kernel_ctx *ctx, uint32_t input, int64_t i, tn__file_use use, char **out);

/* Creates the folder of a prefix if it is missing, as TensorFlow does: one folder, not those above it.
 * TN_FAILED_PRECONDITION: it is not a folder. TN_NOT_FOUND: the folder above it is missing. */
tn_status tn__prefix_make_folder(const char *prefix, tn_error *err);

/* Opens the checkpoint that an input names, for reading. TN_DATA_LOSS: it is a file of another kind, or a folder: the
 * newest checkpoint that a folder names may be anywhere. */
tn_status tn__prefix_open(const tn_kernel_ctx *ctx, uint32_t input, tn__store **out);

/* Element i of an input of strings. */
tn__slice tn__text_input(const tn_kernel_ctx *ctx, uint32_t input, int64_t i);

/* ---- prepare ---- */

/* Checks that an input has one element / that inputs i and j are vectors of n elements each. `what` names the n things:
 * "tensors". TN_INVALID_ARGUMENT. */
tn_status tn__want_one(const tn_prepare_ctx *ctx, uint32_t i, tn_error *err);
tn_status tn__want_names(const tn_prepare_ctx *ctx, uint32_t i, uint32_t j, uint32_t n, const char *what,
                         tn_error *err);

#endif
