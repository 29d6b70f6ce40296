/* SPDX-License-Identifier: Apache-2.0 */
/* Names that files have only until they are put in their place. A process that ends may remove them first, also from
 * the handler of a signal: tn_files_abandon goes through the list of them without a lock.
 *
 * Making such a name, moving the file and forgetting the name each happen in a section: one thread at a time, and none
 * once the files were abandoned. tn_files_abandon waits for the section that another thread is in; the section of its
 * own thread is one that its signal interrupted and that never goes on. */
#ifndef TN_CORE_BASE_TEMPORARY_H
#define TN_CORE_BASE_TEMPORARY_H

#include <core/base/alloc.h>

typedef struct tn__temporary {
  char *path;
  long process; /* that made it: a child that was forked leaves it alone */
  _Atomic(struct tn__temporary *) next;
} tn__temporary;

/* False: the files were abandoned, the process ends; then no name is made, moved or forgotten any more. */
bool tn__temporaries_enter(void);
void tn__temporaries_leave(void);

/* Inside of a section, before the file is made. Takes `path` over (tn__strdup's). NULL: no memory, and path was
 * freed. */
tn__temporary *tn__temporary_add(char *path);
/* Inside of a section, when the file is not there any more. */
void tn__temporary_drop(tn__temporary *t);

#endif
