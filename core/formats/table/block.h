/* SPDX-License-Identifier: Apache-2.0 */
/* One block of a table: read from the file, checked, unpacked, and walked from entry to entry. */
#ifndef TN_CORE_FORMATS_TABLE_BLOCK_H
#define TN_CORE_FORMATS_TABLE_BLOCK_H

#include <core/base/file.h>
#include <core/formats/table/snappy.h>

#define TN__TABLE_MAGIC 0xdb4775248b80fb57u
#define TN__TABLE_FOOTER ((size_t)48) /* bytes of the footer: two handles, padded to 40, and the magic number */
#define TN__TABLE_TRAILER ((size_t)5) /* bytes after a block: its compression and a CRC */

enum { TN__BLOCK_PLAIN = 0, TN__BLOCK_SNAPPY = 1 };

/* Where a block lies in the file; its size is without the trailer. */
typedef struct tn__handle {
  uint64_t offset, size;
} tn__handle;

/* Memory that keeps its size until more is needed. */
typedef struct tn__room {
  char *data; /* owned */
  size_t capacity;
} tn__room;

/* A block, and the position of a walk over its entries. Further blocks are loaded into the same object, and their keys
 * must be after those of the blocks before. Zeroed: no block. */
typedef struct tn__block {
  const tn__file *file;
  tn__handle handle;
  tn__room stored, unpacked;
  const char *data;          /* the contents, in one of the two rooms */
  size_t entries;            /* bytes of the entries, which are followed by the restart array */
  size_t n_restarts;         /* elements of the restart array: offsets of entries that have full keys */
  size_t next, next_restart; /* offset of the next entry, and index of the first restart point from there on */
  /* The current entry. The key of the last entry stays when another block is loaded. */
  bool has_key;
  char *key; /* owned */
  size_t key_size, key_capacity;
  tn__slice value; /* in `data` */
} tn__block;

void tn__block_fini(tn__block *b);

/* Reads a block that lies within the file, checks its CRC and unpacks it. *uncompress is found when it is needed. */
tn_status tn__block_load(tn__block *b, const tn__file *file, tn__handle handle, tn__snappy_uncompress **uncompress,
                         tn_error *err);
/* Advances to the next entry. *more is false at the end. */
tn_status tn__block_next(tn__block *b, bool *more, tn_error *err);

static inline tn__slice tn__block_key(const tn__block *b)
{
  return (tn__slice){ b->key_size == 0 ? "" : b->key, b->key_size };
}

#endif
