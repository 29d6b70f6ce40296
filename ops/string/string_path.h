/* SPDX-License-Identifier: Apache-2.0 */
/* Files named by string elements. */
#ifndef TN_OPS_STRING_STRING_PATH_H
#define TN_OPS_STRING_STRING_PATH_H

#include <core/base/file.h>
#include <tenon/op.h>

/* A scalar string as a path; free it with tn__strfree. TN_INVALID_ARGUMENT if it contains a zero
 * byte. */
tn_status tn__file_name(const tn_view *view, char **out, tn_error *err);
/* Like tn__file_open, but TN_FAILED_PRECONDITION for a folder, or a path through a file. */
tn_status tn__named_file_open(const char *path, tn__file *file, tn_error *err);
/* Checks a path for a file: TN_FAILED_PRECONDITION for a folder, or a path through a file, else
 * TN_OK. */
tn_status tn__named_file_check(const char *path, tn_error *err);

#endif
