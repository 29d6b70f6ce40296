/* SPDX-License-Identifier: Apache-2.0 */
/* Reads tables. All sizes and offsets are checked against the file's size before anything is allocated or read. Data
 * blocks must follow each other in the file, so that each byte is read once at most, whatever the index says. */
#include <core/formats/table/block.h>
#include <core/formats/table/table.h>
#include <core/formats/wire.h>
#include <inttypes.h>
#include <string.h>

/* The sum of the lengths of all keys is at most this many times the file's size. Keys share bytes with those before, so
 * a small file could have long keys in any number, which would harm a caller that keeps them. A writer that stores
 * every 16th key in full and packs its blocks needs less than 400. */
#define MOST_KEYS 1024

struct tn__table {
  tn__file file;
  char *path;    /* owned */
  uint64_t end;  /* of the blocks: the offset of the footer */
  uint64_t done; /* end of the current data block with its trailer */
  uint64_t keys; /* bytes of all keys up to now */
  bool in_block; /* `data` may have more entries */
  tn__block index, data;
  tn__snappy_uncompress *uncompress; /* NULL: not needed yet */
};

static uint64_t magic_at(const char *p)
{
  uint64_t magic;
  memcpy(&magic, p, sizeof(magic)); /* little-endian, like the machine */
  return magic;
}

bool tn__table_is(tn__slice bytes)
{
  return bytes.size >= TN__TABLE_FOOTER && magic_at(bytes.data + bytes.size - 8) == TN__TABLE_MAGIC;
}

static bool read_handle(const uint8_t **p, const uint8_t *end, tn__handle *out)
{
  return tn__wire_varint(p, end, &out->offset) && tn__wire_varint(p, end, &out->size);
}

/* Whether a block with its trailer lies between two offsets of the file. */
static bool lies_in(tn__handle handle, uint64_t begin, uint64_t end)
{
  if (handle.offset < begin || handle.offset > end || end - handle.offset < TN__TABLE_TRAILER) return false;
  return handle.size <= end - handle.offset - TN__TABLE_TRAILER && handle.size <= SIZE_MAX - TN__TABLE_TRAILER;
}

/* ---- opening ---- */

static tn_status outside(const tn__table *table, const char *what, tn__handle handle, tn_error *err)
{
  return tn_error_set(err, TN_DATA_LOSS,
                      "'%s': byte %" PRIu64 ": the footer says that the %s has %" PRIu64 " bytes at byte %" PRIu64
                      ", where the file has no room for it",
                      table->path, table->end, what, handle.size, handle.offset);
}

/* Reads the footer. */
static tn_status find_index(tn__table *table, tn__handle *index, tn_error *err)
{
  char footer[TN__TABLE_FOOTER];
  tn__handle meta;
  if (table->file.size < sizeof(footer))
    return tn_error_set(err, TN_DATA_LOSS,
                        "'%s': byte 0: the file has %" PRIu64
                        " bytes, a table has 48 at least: it is cut short, or no table",
                        table->path, table->file.size);
  table->end = table->file.size - sizeof(footer);
  tn_status s = tn__file_read(&table->file, table->end, footer, sizeof(footer), err);
  if (s != TN_OK) return s;
  const uint8_t *p = (const uint8_t *)footer, *end = p + sizeof(footer) - 8;
  if (magic_at(footer + sizeof(footer) - 8) != TN__TABLE_MAGIC)
    return tn_error_set(err, TN_DATA_LOSS,
                        "'%s': byte %" PRIu64
                        ": a table's magic number is not there: the file is cut short, or no table",
                        table->path, table->file.size - 8);
  if (!read_handle(&p, end, &meta) || !read_handle(&p, end, index))
    return tn_error_set(err, TN_DATA_LOSS, "'%s': byte %" PRIu64 ": the footer is damaged", table->path, table->end);
  if (!lies_in(meta, 0, table->end)) return outside(table, "metaindex", meta, err);
  if (!lies_in(*index, 0, table->end)) return outside(table, "index", *index, err);
  return TN_OK;
}

tn_status tn__table_open(const char *path, tn__table **out, tn_error *err)
{
  tn__handle index;
  *out = NULL;
  tn__table *table = tn__zalloc(sizeof(*table));
  if (table == NULL) return tn__no_memory(err, "a table", sizeof(*table));
  table->file.fd = -1;
  table->path = tn__strdup(path);
  tn_status s = table->path == NULL ? tn__no_memory(err, "the name of a file", strlen(path) + 1) : TN_OK;
  if (s == TN_OK) s = tn__file_open(table->path, &table->file, err);
  if (s == TN_OK) s = find_index(table, &index, err);
  if (s == TN_OK) s = tn__block_load(&table->index, &table->file, index, &table->uncompress, err);
  if (s == TN_OK)
    *out = table;
  else
    tn__table_close(table);
  return s;
}

void tn__table_close(tn__table *table)
{
  if (table == NULL) return;
  tn__block_fini(&table->index);
  tn__block_fini(&table->data);
  tn__file_close(&table->file);
  tn__strfree(table->path);
  tn__free(table, sizeof(*table));
}

/* ---- walking ---- */

/* Loads the data block that the current entry of the index names. */
static tn_status open_block(tn__table *table, tn_error *err)
{
  tn__handle handle;
  const uint8_t *p = (const uint8_t *)table->index.value.data, *end = p + table->index.value.size;
  if (!read_handle(&p, end, &handle) || p != end)
    return tn_error_set(err, TN_DATA_LOSS,
                        "'%s': the index at byte %" PRIu64 ": an entry is not the offset and size of a block",
                        table->path, table->index.handle.offset);
  if (!lies_in(handle, table->done, table->end))
    return tn_error_set(err, TN_DATA_LOSS,
                        "'%s': the index at byte %" PRIu64 " says that a block has %" PRIu64 " bytes at byte %" PRIu64
                        ", wanted one between bytes %" PRIu64 " and %" PRIu64,
                        table->path, table->index.handle.offset, handle.size, handle.offset, table->done, table->end);
  table->done = handle.offset + handle.size + TN__TABLE_TRAILER;
  tn_status s = tn__block_load(&table->data, &table->file, handle, &table->uncompress, err);
  table->in_block = s == TN_OK;
  return s;
}

/* Checks at the end of a block that its last key is not after the key in the index: searches would not find it. */
static tn_status close_block(tn__table *table, tn_error *err)
{
  tn__slice last = tn__block_key(&table->data), bound = tn__block_key(&table->index);
  table->in_block = false;
  if (!table->data.has_key) return TN_OK;
  int order = memcmp(last.data, bound.data, last.size < bound.size ? last.size : bound.size);
  if (order < 0 || (order == 0 && last.size <= bound.size)) return TN_OK;
  return tn_error_set(err, TN_DATA_LOSS,
                      "'%s': byte %" PRIu64
                      ": the last key of the block is after its key in the index at byte %" PRIu64,
                      table->path, table->data.handle.offset, table->index.handle.offset);
}

static tn_status count_key(tn__table *table, tn_error *err)
{
  table->keys += table->data.key_size;
  if (table->keys / MOST_KEYS <= table->file.size) return TN_OK;
  return tn_error_set(err, TN_RESOURCE_EXHAUSTED,
                      "'%s': byte %" PRIu64 ": the keys up to this block take %" PRIu64
                      " bytes, more than %d times the %" PRIu64 " bytes of the file",
                      table->path, table->data.handle.offset, table->keys, MOST_KEYS, table->file.size);
}

tn_status tn__table_next(tn__table *table, tn__slice *key, tn__slice *value, tn_error *err)
{
  bool more = false;
  tn_status s = TN_OK;
  *key = *value = (tn__slice){ NULL, 0 };
  while (s == TN_OK && !more) {
    if (table->in_block) {
      s = tn__block_next(&table->data, &more, err);
      if (s == TN_OK && !more) s = close_block(table, err);
    } else {
      bool another;
      s = tn__block_next(&table->index, &another, err);
      if (s != TN_OK || !another) return s;
      s = open_block(table, err);
    }
  }
  if (s == TN_OK) s = count_key(table, err);
  if (s != TN_OK) return s;
  *key = tn__block_key(&table->data);
  *value = table->data.value;
  return TN_OK;
}

uint64_t tn__table_offset(const tn__table *table) { return table->data.handle.offset; }

tn__table_place tn__table_place_of(const tn__table *table)
{
  const tn__block *b = &table->data;
  return (tn__table_place){ .block = b->handle.offset,
                            .block_size = b->handle.size,
                            .at = (uint64_t)(b->value.data - b->data),
                            .packed = b->data != b->stored.data };
}
