/* SPDX-License-Identifier: Apache-2.0 */
/* The folders whose files the graph of a session may read and write: session options read_folders and write_folders.
 *
 * A model is a program from a stranger, and its ops name files by strings that it computes. Every op that touches a
 * file passes its name to tn__folders_find first and opens the path that this returns. That path has no symbolic link,
 * so a link in an allowed folder does not lead out of it. */
#ifndef TN_CORE_RESOURCE_FOLDERS_H
#define TN_CORE_RESOURCE_FOLDERS_H

#include <core/base/alloc.h>
#include <tenon/op.h>

typedef enum tn__file_use { TN__TO_READ = 0, TN__TO_WRITE = 1 } tn__file_use;

/* The folders of one session. They do not change once the session is open. */
typedef struct tn__folders {
  struct tn__folder_list {
    char **names; /* owned, as tn__path_follow returns them */
    size_t n, room;
    bool all; /* everything is allowed */
  } lists[2]; /* by tn__file_use; what may be written may also be read */
} tn__folders;

/* A zeroed object has no folder. */
void tn__folders_fini(tn__folders *folders);
/* Adds a folder, which need not exist yet, or a single file. "*" and "/" allow everything. Errors of
 * tn__path_follow. */
tn_status tn__folders_add(tn__folders *folders, tn__file_use use, const char *folder, tn_error *err);

/* The path of a file that the graph names; free *path with tn__strfree. TN_PERMISSION_DENIED: it is in no allowed
 * folder. Also errors of tn__path_follow. An empty name, which no file has, is allowed. folders NULL: none. */
tn_status tn__folders_find(const tn__folders *folders, tn__file_use use, const char *name, char **path,
                           tn_error *err);

/* The folders of the session that runs a kernel's step; NULL outside of a session. core/exec/step/resources.c */
const tn__folders *tn__kernel_folders(const tn_kernel_ctx *ctx);

#endif
