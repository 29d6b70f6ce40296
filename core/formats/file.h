/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files in memory.
 *
 * Parts of a large file that were copied elsewhere are released: their pages are returned to the system. If the
 * bytes are needed again, they are read from the file, which stays open for that. If the file was written to in
 * between, that is an error (TN_DATA_LOSS); if it was removed, or replaced by renaming, it is not. */
#ifndef TN_CORE_FORMATS_FILE_H
#define TN_CORE_FORMATS_FILE_H

#include <core/tensor/tensor_internal.h>

/* Reads a regular file of at most `limit` bytes into a buffer that is aligned to TN_ALIGN and immutable. Errors of
 * tn__file_open and tn__file_read; TN_INVALID_ARGUMENT if the file is too large; TN_RESOURCE_EXHAUSTED. */
tn_status tn__bytes_load(const char *path, uint64_t limit, tn_buffer **out, tn_error *err);

/* Copies bytes in memory into such a buffer. No part of it is ever released. */
tn_status tn__bytes_copy(const void *bytes, size_t size, tn_buffer **out, tn_error *err);

/* The minimum size of a part that is released, in bytes. */
#define TN__BYTES_PART ((size_t)64 << 10)

/* Copies a part out and releases it. If it was released before, it is read from the file. Parts must not overlap: each
 * call for the same bytes has the same begin and size. Any thread. */
tn_status tn__bytes_take(tn_buffer *file, const void *at, size_t size, void *to, tn_error *err);
/* Reads the released parts of [at, at + size) again and keeps them from being released. Callers that read bytes of
 * tensors in place call this first. Any thread; does nothing for other buffers. */
tn_status tn__bytes_keep(tn_buffer *file, const void *at, size_t size, tn_error *err);

#endif
