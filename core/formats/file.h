/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files in memory. */
#ifndef TN_CORE_FORMATS_FILE_H
#define TN_CORE_FORMATS_FILE_H

#include <core/tensor/tensor_internal.h>

/* Reads a regular file of at most `limit` bytes into a buffer, aligned to TN_ALIGN, that nobody writes to afterwards.
 * Returns what tn__file_open and tn__file_read do; TN_INVALID_ARGUMENT when it is too large; TN_RESOURCE_EXHAUSTED. */
tn_status tn__bytes_load(const char *path, uint64_t limit, tn_buffer **out, tn_error *err);

/* The same of bytes in memory, which are copied. */
tn_status tn__bytes_copy(const void *bytes, size_t size, tn_buffer **out, tn_error *err);

#endif
