/* SPDX-License-Identifier: Apache-2.0 */
/* Files that string elements name. */
#ifndef TN_OPS_STRING_STRING_PATH_H
#define TN_OPS_STRING_STRING_PATH_H

#include <core/base/file.h>
#include <tenon/op.h>

/* A scalar string as a path, free it with tn__strfree. TN_INVALID_ARGUMENT: it has a zero byte in it. */
tn_status tn__file_name(const tn_view *view, char **out, tn_error *err);
/* As tn__file_open, but a folder is TN_FAILED_PRECONDITION, and so is a path that goes through a file. */
tn_status tn__named_file_open(const char *path, tn__file *file, tn_error *err);
/* What is wrong with a path for a file: TN_FAILED_PRECONDITION for a folder and a path through a file, else TN_OK. */
tn_status tn__named_file_check(const char *path, tn_error *err);

#endif
