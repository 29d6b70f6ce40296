/* SPDX-License-Identifier: Apache-2.0 */
/* Writes tables. The index entry of a block is written when the first key of the next block is known: its key is the
 * shortest one that is between the two. */
#include <core/formats/table/block.h>
#include <core/formats/table/crc32c.h>
#include <core/formats/table/table.h>
#include <string.h>

#define BLOCK_SIZE ((size_t)256 << 10) /* bytes from which on a block is complete */
#define RESTART_INTERVAL 16            /* entries from one full key to the next, in data blocks */

/* A block being written. Zeroed: empty, except for the interval. */
typedef struct builder {
  tn__sink bytes;
  uint32_t *restarts; /* owned */
  size_t n_restarts, restarts_capacity;
  unsigned interval, since; /* entries between restart points, and since the last one */
} builder;

struct tn__table_writer {
  tn__writer *file; /* borrowed */
  uint64_t offset;  /* bytes written */
  tn_status status; /* of the first error that is not the caller's */
  builder data, index;
  bool has_key;
  char *key; /* of the last entry; owned */
  size_t key_size, key_capacity;
  bool pending;      /* the last block has no index entry yet */
  tn__handle handle; /* of that block */
};

/* ---- blocks ---- */

static void builder_fini(builder *b)
{
  tn__sink_fini(&b->bytes);
  tn__free(b->restarts, b->restarts_capacity * sizeof(*b->restarts));
}

static tn_status add_restart(builder *b, tn_error *err)
{
  void *restarts = b->restarts;
  size_t n = b->n_restarts + 1;
  if (!tn__grow(&restarts, &b->restarts_capacity, n, sizeof(*b->restarts)))
    return tn__no_memory(err, "the restart points of a block", n * sizeof(*b->restarts));
  b->restarts = restarts;
  b->restarts[b->n_restarts++] = (uint32_t)b->bytes.used; /* blocks that can be continued are small */
  b->since = 0;
  return TN_OK;
}

static size_t common_prefix(tn__slice a, tn__slice b)
{
  size_t n = 0, most = a.size < b.size ? a.size : b.size;
  while (n < most && a.data[n] == b.data[n]) n++;
  return n;
}

/* Adds an entry whose key shares `shared` bytes with the key before. */
static tn_status add_entry(builder *b, size_t shared, tn__slice key, tn__slice value, tn_error *err)
{
  b->bytes.err = err;
  if (b->n_restarts == 0 || b->since == b->interval) {
    tn_status s = add_restart(b, err);
    if (s != TN_OK) return s;
    shared = 0;
  }
  b->since++;
  tn__sink_varint(&b->bytes, shared);
  tn__sink_varint(&b->bytes, key.size - shared);
  tn__sink_varint(&b->bytes, value.size);
  if (key.size > shared) tn__sink_put(&b->bytes, key.data + shared, key.size - shared);
  tn__sink_put(&b->bytes, value.data, value.size);
  return b->bytes.status;
}

/* The size that the block would have, in bytes. */
static size_t block_size(const builder *b) { return b->bytes.used + 4 * b->n_restarts + 4; }

/* Little-endian, like the machine. */
static void put_word(tn__sink *to, uint32_t word) { tn__sink_put(to, &word, sizeof(word)); }

/* Writes the block with its trailer and empties the builder. */
static tn_status write_block(tn__table_writer *w, builder *b, tn__handle *handle, tn_error *err)
{
  b->bytes.err = err;
  tn_status s = b->n_restarts == 0 ? add_restart(b, err) : TN_OK;
  if (s != TN_OK) return s;
  for (size_t i = 0; i < b->n_restarts; i++) put_word(&b->bytes, b->restarts[i]);
  put_word(&b->bytes, (uint32_t)b->n_restarts);
  *handle = (tn__handle){ w->offset, b->bytes.used };
  tn__sink_put(&b->bytes, (const char[]){ TN__BLOCK_PLAIN }, 1);
  if (b->bytes.status == TN_OK) put_word(&b->bytes, tn__crc32c_mask(tn__crc32c(0, b->bytes.data, b->bytes.used)));
  s = b->bytes.status;
  if (s == TN_OK) s = tn__writer_write(w->file, b->bytes.data, b->bytes.used, err);
  w->offset += b->bytes.used;
  b->bytes.used = b->n_restarts = b->since = 0;
  return s;
}

/* ---- the index ---- */

/* Shortens the last key to the shortest one that is not before it and is before `next`, a key after it. */
static void separate(tn__table_writer *w, tn__slice next)
{
  size_t n = common_prefix((tn__slice){ w->key, w->key_size }, next);
  if (n == w->key_size || n == next.size) return;
  uint8_t byte = (uint8_t)w->key[n];
  if (byte == 0xff || byte + 1 >= (uint8_t)next.data[n]) return;
  w->key[n] = (char)(byte + 1);
  w->key_size = n + 1;
}

/* Shortens the last key of the table to the shortest one that is not before it. */
static void separate_from_end(tn__table_writer *w)
{
  for (size_t i = 0; i < w->key_size; i++) {
    if ((uint8_t)w->key[i] == 0xff) continue;
    w->key[i]++;
    w->key_size = i + 1;
    return;
  }
}

/* Encodes a handle; returns its size, at most 20. */
static size_t encode_handle(tn__handle handle, char to[20])
{
  size_t n = 0;
  uint64_t values[2] = { handle.offset, handle.size };
  for (int i = 0; i < 2; i++) {
    for (; values[i] >= 0x80; values[i] >>= 7) to[n++] = (char)(values[i] | 0x80);
    to[n++] = (char)values[i];
  }
  return n;
}

static tn_status add_to_index(tn__table_writer *w, tn_error *err)
{
  char handle[20];
  size_t n = encode_handle(w->handle, handle);
  w->pending = false;
  return add_entry(&w->index, 0, (tn__slice){ w->key, w->key_size }, (tn__slice){ handle, n }, err);
}

static tn_status flush(tn__table_writer *w, tn_error *err)
{
  tn_status s = write_block(w, &w->data, &w->handle, err);
  w->pending = true;
  return s;
}

static tn_status write_footer(tn__table_writer *w, tn__handle meta, tn__handle index, tn_error *err)
{
  char footer[TN__TABLE_FOOTER] = { 0 };
  const uint64_t magic = TN__TABLE_MAGIC;
  size_t n = encode_handle(meta, footer);
  encode_handle(index, footer + n);
  memcpy(footer + sizeof(footer) - 8, &magic, 8); /* little-endian, like the machine */
  return tn__writer_write(w->file, footer, sizeof(footer), err);
}

/* ---- the writer ---- */

tn_status tn__table_writer_create(tn__writer *file, tn__table_writer **out, tn_error *err)
{
  *out = tn__zalloc(sizeof(**out));
  if (*out == NULL) return tn__no_memory(err, "a writer of tables", sizeof(**out));
  (*out)->file = file;
  (*out)->data.interval = RESTART_INTERVAL;
  (*out)->index.interval = 1;
  return TN_OK;
}

void tn__table_writer_destroy(tn__table_writer *w)
{
  if (w == NULL) return;
  builder_fini(&w->data);
  builder_fini(&w->index);
  tn__free(w->key, w->key_capacity);
  tn__free(w, sizeof(*w));
}

/* Checks the arguments of an entry. *shared is set to the bytes that its key shares with the last one. */
static tn_status check_entry(const tn__table_writer *w, tn__slice key, tn__slice value, size_t *shared, tn_error *err)
{
  tn__slice last = { w->key, w->key_size };
  *shared = common_prefix(last, key);
  if (key.size > UINT32_MAX || value.size > UINT32_MAX)
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "'%s': a table takes keys and values of less than 4 GiB, not of %zu bytes", w->file->path,
                        key.size > UINT32_MAX ? key.size : value.size);
  bool after = key.size > *shared && (last.size == *shared || (uint8_t)key.data[*shared] > (uint8_t)last.data[*shared]);
  if (after || !w->has_key) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "'%s': the keys of a table ascend, and '%.*s' is not after '%.*s'",
                      w->file->path, (int)(key.size < 200 ? key.size : 200), key.data,
                      (int)(last.size < 200 ? last.size : 200), last.size > 0 ? last.data : "");
}

static tn_status set_key(tn__table_writer *w, tn__slice key, tn_error *err)
{
  void *room = w->key;
  if (key.size > 0) {
    if (!tn__grow(&room, &w->key_capacity, key.size, 1)) return tn__no_memory(err, "a key", key.size);
    w->key = room;
    memcpy(w->key, key.data, key.size);
  }
  w->key_size = key.size;
  w->has_key = true;
  return TN_OK;
}

static tn_status failed_before(const tn__table_writer *w, tn_error *err)
{
  return tn_error_set(err, w->status, "'%s': the table is incomplete, because writing it failed before", w->file->path);
}

tn_status tn__table_writer_add(tn__table_writer *w, tn__slice key, tn__slice value, tn_error *err)
{
  size_t shared;
  if (w->status != TN_OK) return failed_before(w, err);
  if (key.size == 0) key.data = "";
  tn_status s = check_entry(w, key, value, &shared, err);
  if (s != TN_OK) return s;
  if (w->pending) {
    separate(w, key);
    s = add_to_index(w, err);
  }
  if (s == TN_OK) s = add_entry(&w->data, shared, key, value, err);
  if (s == TN_OK) s = set_key(w, key, err);
  if (s == TN_OK && block_size(&w->data) >= BLOCK_SIZE) s = flush(w, err);
  w->status = s;
  return s;
}

tn_status tn__table_writer_finish(tn__table_writer *w, tn_error *err)
{
  builder empty = { .interval = 1 };
  tn__handle meta, index;
  if (w->status != TN_OK) return failed_before(w, err);
  tn_status s = w->data.bytes.used > 0 ? flush(w, err) : TN_OK;
  if (s == TN_OK) s = write_block(w, &empty, &meta, err);
  builder_fini(&empty);
  if (s == TN_OK && w->pending) {
    separate_from_end(w);
    s = add_to_index(w, err);
  }
  if (s == TN_OK) s = write_block(w, &w->index, &index, err);
  if (s == TN_OK) s = write_footer(w, meta, index, err);
  w->status = s;
  return s;
}
