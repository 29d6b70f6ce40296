/* SPDX-License-Identifier: Apache-2.0 */
/* Plugin files for tests: modified copies of tests/plugins in folders of their own. Failures end
 * the test. */
#ifndef TENON_TESTS_SUPPORT_PLUGIN_FILES_H
#define TENON_TESTS_SUPPORT_PLUGIN_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include <tenon/tenon.h>

/* Path of a built test plugin; in one of four static buffers. */
const char *plugin_source(const char *name);

/* A new folder; deleted at the end of the program. */
const char *plugin_folder(void);

/* "folder/name"; in one of eight static buffers. */
const char *plugin_path(const char *folder, const char *name);

/* The bytes of a file; free them with free(). */
unsigned char *plugin_read(const char *path, size_t *size);
void plugin_write(const char *path, const void *bytes, size_t size);

/* Overwrites the single occurrence of the text `from` with `to`, which is not longer, and fills
 * the rest with zeros. */
void plugin_patch(unsigned char *bytes, size_t size, const char *from, const char *to);

/* Copies a test plugin to folder/file. */
void plugin_copy(const char *name, const char *folder, const char *file);

/* A copy of tests/plugins/chameleon.c with a name, a rank and a fault ("none" for a valid one). */
void plugin_chameleon(const char *folder, const char *file, const char *name, int rank, const char *fault);

/* A copy of tests/plugins/ender.c with a name and a fault ("none:" for a valid one). */
void plugin_ender(const char *folder, const char *file, const char *name, const char *fault);

/* Makes a list of folders, separated by ':', the whole search list, and rescans. */
void plugin_search(const char *folders);

/* The number of mapped objects in this process whose path begins with `folder`. */
int plugin_count_mapped(const char *folder);

/* A session without a graph on this target. */
tn_status plugin_open_session(const char *target, tn_session **out, tn_error *e);

#endif
