/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of a table. An entry is three varints (the bytes that its key shares with the key before, the further bytes of
 * the key, the size of the value), then the bytes of the key and of the value. At a restart point the key is stored in
 * full. The block ends in the offsets of the restart points and their number, in 4 bytes each.
 *
 * The work for an entry grows with the bytes that it has in the block, not with the length of its key. */
#include <core/formats/table/block.h>

#include <core/formats/table/crc32c.h>
#include <core/formats/wire.h>
#include <inttypes.h>
#include <string.h>

static void room_fini(tn__room *room)
{
  tn__free(room->data, room->capacity);
  *room = (tn__room){ 0 };
}

/* Makes room for `size` bytes; what was there is lost. */
static tn_status make_room(tn__room *room, size_t size, tn_error *err)
{
  if (size <= room->capacity) return TN_OK;
  room_fini(room);
  room->data = tn__alloc(size);
  if (room->data == NULL) return tn__no_memory(err, "a block of a table", size);
  room->capacity = size;
  return TN_OK;
}

void tn__block_fini(tn__block *b)
{
  room_fini(&b->stored);
  room_fini(&b->unpacked);
  tn__free(b->key, b->key_capacity);
  *b = (tn__block){ 0 };
}

static uint32_t word_at(const char *p)
{
  uint32_t word;
  memcpy(&word, p, sizeof(word)); /* little-endian, like the machine */
  return word;
}

/* ---- loading ---- */

static tn_status unpack(tn__block *b, tn__slice packed, tn__slice *contents, tn__snappy_uncompress **uncompress,
                        tn_error *err)
{
  size_t size;
  tn_status s = TN_OK;
  if (!tn__snappy_size(packed, &size))
    return tn_error_set(err, TN_DATA_LOSS,
                        "'%s': byte %" PRIu64
                        ": the compressed block of %zu bytes is damaged: its first bytes are no size "
                        "that it can have when unpacked",
                        b->file->path, b->handle.offset, packed.size);
  if (*uncompress == NULL) s = tn__snappy_load(b->file->path, uncompress, err);
  if (s == TN_OK) s = make_room(&b->unpacked, size > 0 ? size : 1, err);
  if (s != TN_OK) return s;
  size_t got = size;
  if ((*uncompress)(packed.data, packed.size, b->unpacked.data, &got) != 0 || got != size)
    return tn_error_set(err, TN_DATA_LOSS,
                        "'%s': byte %" PRIu64 ": the compressed block of %zu bytes cannot be unpacked", b->file->path,
                        b->handle.offset, packed.size);
  *contents = (tn__slice){ b->unpacked.data, size };
  return TN_OK;
}

/* Reads a block with its trailer and checks the CRC. */
static tn_status read_stored(tn__block *b, tn_error *err)
{
  size_t size = (size_t)b->handle.size;
  tn_status s = make_room(&b->stored, size + TN__TABLE_TRAILER, err);
  if (s == TN_OK) s = tn__file_read(b->file, b->handle.offset, b->stored.data, size + TN__TABLE_TRAILER, err);
  if (s != TN_OK) return s;
  uint32_t found = tn__crc32c(0, b->stored.data, size + 1),
           wanted = tn__crc32c_unmask(word_at(b->stored.data + size + 1));
  if (found == wanted) return TN_OK;
  return tn_error_set(err, TN_DATA_LOSS,
                      "'%s': byte %" PRIu64 ": the block of %zu bytes is damaged: its CRC is %08" PRIx32
                      ", and %08" PRIx32 " is stored",
                      b->file->path, b->handle.offset, size, found, wanted);
}

/* An error at byte `at` of the contents. */
static tn_status damaged(const tn__block *b, size_t at, const char *what, tn_error *err)
{
  if (b->data == b->stored.data)
    return tn_error_set(err, TN_DATA_LOSS, "'%s': byte %" PRIu64 ": %s", b->file->path, b->handle.offset + at, what);
  return tn_error_set(err, TN_DATA_LOSS, "'%s': byte %zu of the unpacked block at byte %" PRIu64 ": %s", b->file->path,
                      at, b->handle.offset, what);
}

static size_t restart_at(const tn__block *b, size_t i) { return word_at(b->data + b->entries + 4 * i); }

/* Finds the restart array at the end of the contents. */
static tn_status find_restarts(tn__block *b, size_t size, tn_error *err)
{
  if (size < 4) return damaged(b, 0, "a block of a table has 4 bytes at least", err);
  size_t n = word_at(b->data + size - 4), most = (size - 4) / 4;
  if (n > most) return damaged(b, size - 4, "the block has more restart points than there is room for", err);
  b->entries = size - 4 - 4 * n;
  b->n_restarts = n;
  if (n == 0 && b->entries > 0) return damaged(b, size - 4, "the block has entries, but no restart point", err);
  if (n > 0 && restart_at(b, 0) != 0)
    return damaged(b, b->entries, "the first restart point is not the first entry", err);
  if (n > 1 && b->entries == 0) return damaged(b, size - 4, "the block has restart points, but no entries", err);
  return TN_OK;
}

tn_status tn__block_load(tn__block *b, const tn__file *file, tn__handle handle, tn__snappy_uncompress **uncompress,
                         tn_error *err)
{
  b->file = file;
  b->handle = handle;
  b->entries = b->n_restarts = b->next = b->next_restart = 0;
  tn_status s = read_stored(b, err);
  if (s != TN_OK) return s;
  tn__slice contents = { b->stored.data, (size_t)handle.size };
  uint8_t type = (uint8_t)contents.data[contents.size];
  if (type == TN__BLOCK_SNAPPY)
    s = unpack(b, contents, &contents, uncompress, err);
  else if (type != TN__BLOCK_PLAIN)
    s = tn_error_set(err, TN_DATA_LOSS,
                     "'%s': byte %" PRIu64 ": the block has compression %u, wanted 0 (none) or 1 (snappy)", file->path,
                     handle.offset + handle.size, (unsigned)type);
  if (s != TN_OK) return s;
  b->data = contents.data;
  s = find_restarts(b, contents.size, err);
  if (s != TN_OK) b->entries = 0;
  return s;
}

/* ---- walking ---- */

/* Checks the restart points up to the next entry: each must be the offset of an entry. *full: the entry is one. */
static tn_status pass_restarts(tn__block *b, bool *full, tn_error *err)
{
  *full = false;
  if (b->next_restart == b->n_restarts || restart_at(b, b->next_restart) > b->next) return TN_OK;
  *full = restart_at(b, b->next_restart) == b->next;
  if (!*full) return damaged(b, b->entries + 4 * b->next_restart, "the restart point is at no entry", err);
  b->next_restart++;
  return TN_OK;
}

/* Compares the further bytes of the next key with those of the current one: whether the next key is after it. */
static bool is_after(const tn__block *b, size_t shared, const uint8_t *further, size_t size)
{
  if (!b->has_key) return true;
  size_t left = b->key_size - shared, n = size < left ? size : left;
  int order = n == 0 ? 0 : memcmp(further, b->key + shared, n);
  return order > 0 || (order == 0 && size > left);
}

static tn_status set_key(tn__block *b, size_t shared, const uint8_t *further, size_t size, tn_error *err)
{
  void *key = b->key;
  if (size > 0) { /* shared + size cannot overflow: each is at most the size of a block in memory */
    if (!tn__grow(&key, &b->key_capacity, shared + size, 1)) return tn__no_memory(err, "a key", shared + size);
    b->key = key;
    memcpy(b->key + shared, further, size);
  }
  b->key_size = shared + size;
  b->has_key = true;
  return TN_OK;
}

static tn_status end_of_entries(const tn__block *b, tn_error *err)
{
  if (b->entries == 0 || b->next_restart == b->n_restarts) return TN_OK;
  return damaged(b, b->entries + 4 * b->next_restart, "the restart point is at no entry", err);
}

tn_status tn__block_next(tn__block *b, bool *more, tn_error *err)
{
  bool full;
  uint64_t shared, further, value;
  size_t at = b->next;
  *more = false;
  if (at == b->entries) return end_of_entries(b, err);
  tn_status s = pass_restarts(b, &full, err);
  if (s != TN_OK) return s;
  b->next = b->entries; /* an error ends the walk */
  const uint8_t *begin = (const uint8_t *)b->data, *p = begin + at, *end = begin + b->entries;
  if (!tn__wire_varint(&p, end, &shared) || !tn__wire_varint(&p, end, &further) || !tn__wire_varint(&p, end, &value))
    return damaged(b, at, "the entry is cut short", err);
  if (shared > (full ? 0 : b->key_size))
    return damaged(b, at, "the entry's key shares more bytes with the key before than that one has", err);
  if (further > (uint64_t)(end - p) || value > (uint64_t)(end - p) - further)
    return damaged(b, at, "the entry is longer than its block", err);
  if (!is_after(b, (size_t)shared, p, (size_t)further))
    return damaged(b, at, "the entry's key is not after the key of the entry before", err);
  s = set_key(b, (size_t)shared, p, (size_t)further, err);
  if (s != TN_OK) return s;
  b->value = (tn__slice){ (const char *)p + further, (size_t)value };
  b->next = (size_t)(p - begin) + (size_t)further + (size_t)value;
  *more = true;
  return TN_OK;
}
