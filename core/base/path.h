/* SPDX-License-Identifier: Apache-2.0 */
/* The places that paths lead to, whether or not the files exist. */
#ifndef TN_CORE_BASE_PATH_H
#define TN_CORE_BASE_PATH_H

#include <core/base/alloc.h>

/* Follows a path: *out is absolute, has no symbolic link, no "." and "..", no doubled slash and none at its end. Parts
 * that do not exist are kept. A relative path begins at the current folder. Free *out with tn__strfree.
 * TN_NOT_FOUND (".." after a part that is no folder), TN_PERMISSION_DENIED (a folder that may not be searched),
 * TN_INVALID_ARGUMENT (an empty or too long path, too many links), TN_RESOURCE_EXHAUSTED. */
tn_status tn__path_follow(const char *path, char **out, tn_error *err);
/* Whether a path is the folder or is inside of it. Both are results of tn__path_follow. */
bool tn__path_is_within(const char *path, const char *folder);

#endif
