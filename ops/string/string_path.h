/* SPDX-License-Identifier: Apache-2.0 */
/* Files named by string elements. */
#ifndef TN_OPS_STRING_STRING_PATH_H
#define TN_OPS_STRING_STRING_PATH_H

#include <core/base/file.h>
#include <core/resource/folders.h>

/* The path of the file that a scalar string names, in the folders of the session (folders.h); free it with tn__strfree.
 * TN_INVALID_ARGUMENT if the name contains a zero byte, TN_PERMISSION_DENIED if the graph may not use the file. */
tn_status tn__file_name(const tn_kernel_ctx *ctx, const tn_view *view, tn__file_use use, char **out);
/* The same for element i of a tensor of strings. */
tn_status tn__file_name_at(const tn_kernel_ctx *ctx, const tn_view *view, int64_t i, tn__file_use use, char **out);
/* Like tn__file_open, but TN_FAILED_PRECONDITION for a folder, or a path through a file. */
tn_status tn__named_file_open(const char *path, tn__file *file, tn_error *err);
/* Checks a path for a file: TN_FAILED_PRECONDITION for a folder, or a path through a file, else
 * TN_OK. */
tn_status tn__named_file_check(const char *path, tn_error *err);

#endif
