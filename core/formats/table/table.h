/* SPDX-License-Identifier: Apache-2.0 */
/* Sorted tables of keys and values, the file format of a checkpoint's index (V2) and of a whole checkpoint (V1).
 *
 * A table has data blocks, an index block with a handle (offset and size) of each, a metaindex block, and a footer of
 * 48 bytes. Each block is followed by its compression type and a masked CRC-32C. Within a block, keys share a prefix
 * with the key before; restart points have full keys. */
#ifndef TN_CORE_FORMATS_TABLE_TABLE_H
#define TN_CORE_FORMATS_TABLE_TABLE_H

#include <core/base/file.h>
#include <core/base/text.h>
#include <core/formats/sink.h>

/* ---- reading ---- */

/* A table open for reading: a walk over all of its entries, in order. One thread at a time. */
typedef struct tn__table tn__table;

/* Opens a file and checks its footer and index block. TN_DATA_LOSS: damaged, or not a table; the message names the file
 * and the byte. Also errors of tn__file_open. `path` is copied. */
tn_status tn__table_open(const char *path, tn__table **out, tn_error *err);
void tn__table_close(tn__table *table); /* NULL allowed */

/* Advances to the next entry. *key and *value are borrowed until the next call. At the end, and after an error,
 * key->data is NULL. Checks each block's CRC before it is used, and that keys ascend strictly. The work of a whole
 * walk is at most in proportion to the file's size. All keys together have at most 1024 times as many bytes as the
 * file, all values 22 times. After an error only tn__table_close may follow. TN_DATA_LOSS, TN_RESOURCE_EXHAUSTED;
 * for compressed blocks also TN_UNAVAILABLE: libsnappy is not installed, TN_UNIMPLEMENTED: a build without it, or
 * linked statically. */
tn_status tn__table_next(tn__table *table, tn__slice *key, tn__slice *value, tn_error *err);
/* The offset in the file of the block of the current entry, for messages. */
uint64_t tn__table_offset(const tn__table *table);

/* Where the value of the current entry is. */
typedef struct tn__table_place {
  uint64_t block, block_size; /* the block in the file, in bytes, without its trailer */
  uint64_t at;                /* of the value's first byte, in the contents of the block */
  bool packed;                /* the block is compressed: its contents are not those of the file */
} tn__table_place;
tn__table_place tn__table_place_of(const tn__table *table);

/* Whether the bytes end in a table's magic number. */
bool tn__table_is(tn__slice bytes);

/* ---- writing ---- */

/* A table being written to an open file, which has nothing before it, and which the caller commits or abandons. Blocks
 * are plain, of 256 KiB, and equal entries give the bytes that TensorFlow 2 writes. One thread at a time. */
typedef struct tn__table_writer tn__table_writer;

tn_status tn__table_writer_create(tn__writer *file, tn__table_writer **out, tn_error *err);
/* Adds an entry. TN_INVALID_ARGUMENT: the key is not after the one before, or key or value have 4 GiB or more; nothing
 * changed. After another error later calls fail, too. */
tn_status tn__table_writer_add(tn__table_writer *w, tn__slice key, tn__slice value, tn_error *err);
/* Writes the rest: the last block, the metaindex, the index and the footer. */
tn_status tn__table_writer_finish(tn__table_writer *w, tn_error *err);
void tn__table_writer_destroy(tn__table_writer *w); /* NULL allowed */

#endif
