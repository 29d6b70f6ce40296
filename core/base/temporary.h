/* SPDX-License-Identifier: Apache-2.0 */
/* The list of temporary names of files that are being written. A process that is about to end removes the files with
 * tn_files_abandon, also from a signal handler, so that function walks the list without a lock.
 *
 * Adding a name, renaming the file and dropping the name each happen in a section. One thread at a time is in a
 * section, and none once the files were abandoned. tn_files_abandon waits for a section of another thread. It does
 * not wait for a section of its own thread: its signal has interrupted that section, which will never resume. */
#ifndef TN_CORE_BASE_TEMPORARY_H
#define TN_CORE_BASE_TEMPORARY_H

#include <core/base/alloc.h>

typedef struct tn__temporary {
  char *path;   /* owned */
  long process; /* pid of the creator: a forked child must not remove the file */
  _Atomic(struct tn__temporary *) next;
} tn__temporary;

/* Enters a section. False: the files were abandoned and the process is ending; no section was entered. */
bool tn__temporaries_enter(void);
void tn__temporaries_leave(void);

/* In a section, before the file is created. Takes ownership of `path` (from tn__strdup), also on failure. NULL: out of
 * memory. */
tn__temporary *tn__temporary_add(char *path);
/* In a section, after the file was renamed or removed. Frees t. */
void tn__temporary_drop(tn__temporary *t);

#endif
