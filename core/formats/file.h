/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files in memory.
 *
 * Parts of a large file that were copied elsewhere are put down: their pages go back to the system, and when somebody wants
 * the bytes again they are read from the file, which stays open for that. A file that was written to in between is an
 * error then (TN_DATA_LOSS); one that was removed, or replaced by renaming, is not. */
#ifndef TN_CORE_FORMATS_FILE_H
#define TN_CORE_FORMATS_FILE_H

#include <core/tensor/tensor_internal.h>

/* Reads a regular file of at most `limit` bytes into a buffer, aligned to TN_ALIGN, that nobody writes to afterwards.
 * Returns what tn__file_open and tn__file_read do; TN_INVALID_ARGUMENT when it is too large; TN_RESOURCE_EXHAUSTED. */
tn_status tn__bytes_load(const char *path, uint64_t limit, tn_buffer **out, tn_error *err);

/* The same of bytes in memory, which are copied; nothing of them is put down. */
tn_status tn__bytes_copy(const void *bytes, size_t size, tn_buffer **out, tn_error *err);

/* Parts of at least so many bytes are worth being put down. */
#define TN__BYTES_PART ((size_t)64 << 10)

/* Copies a part out, and puts it down. The same part (by its begin) is asked for each time. Any thread. */
tn_status tn__bytes_take(tn_buffer *file, const void *at, size_t size, void *to, tn_error *err);
/* Reads again what was put down of [at, at + size), and sees to it that none of it is put down any more. Who reads bytes of
 * tensors in place calls it before. Any thread; nothing for other buffers. */
tn_status tn__bytes_keep(tn_buffer *file, const void *at, size_t size, tn_error *err);

#endif
