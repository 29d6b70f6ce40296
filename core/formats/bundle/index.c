/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the index of a bundle: the header under the key "" and the entries.
 *
 * The table has checked the order of the keys and the CRC of each block. Whatever an entry says about itself is checked
 * here; what it says about its data file is checked when that is opened. */
#include <core/formats/bundle/bundle.h>

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include <core/formats/table/table.h>
#include <core/formats/wire.h>

/* ---- names ---- */

char *tn__bundle_index_name(const char *prefix)
{
  tn__text name;
  tn__text_init(&name, SIZE_MAX / 2);
  tn__text_printf(&name, "%s.index", prefix);
  char *out = name.failed ? NULL : tn__strdup(name.data);
  tn__text_fini(&name);
  return out;
}

char *tn__bundle_data_name(const char *prefix, uint32_t shard, uint32_t shards)
{
  tn__text name;
  tn__text_init(&name, SIZE_MAX / 2);
  tn__text_printf(&name, "%s.data-%05" PRIu32 "-of-%05" PRIu32, prefix, shard, shards);
  char *out = name.failed ? NULL : tn__strdup(name.data);
  tn__text_fini(&name);
  return out;
}

char *tn__bundle_show_key(char *buffer, size_t size, tn__slice key)
{
  size_t n = key.size < size - 1 ? key.size : size - 1;
  for (size_t i = 0; i < n; i++) {
    unsigned char c = (unsigned char)key.data[i];
    buffer[i] = c < 0x20 || c == 0x7f || (c > 0x7f && key.data[0] == 0) ? '?' : (char)c;
  }
  buffer[n] = 0;
  return buffer;
}

/* ---- messages ---- */

typedef struct place {
  const char *path;
  const tn__table *table;
  tn__slice key;
  tn__arena *arena;
  tn_error *err;
} place;

/* Sets TN_DATA_LOSS about the current entry. */
static tn_status TN_PRINTF(2, 3) bad(const place *at, const char *format, ...)
{
  char what[300], key[200];
  va_list args;
  va_start(args, format);
  tn__vsnprintf(what, sizeof(what), format, args);
  va_end(args);
  return tn_error_set(at->err, TN_DATA_LOSS, "'%s': in the block at byte %" PRIu64 ", the %s%s%s is damaged: %s",
                      at->path, tn__table_offset(at->table), at->key.size == 0 ? "header" : "entry of '",
                      at->key.size == 0 ? "" : tn__bundle_show_key(key, sizeof(key), at->key),
                      at->key.size == 0 ? "" : "'", what);
}

static tn_status no_room(const place *at, size_t bytes)
{
  return tn__no_memory(at->err, "the index of a checkpoint", bytes);
}

/* ---- the header ---- */

/* bad_consumers lists versions whose readers are broken for this file. */
static bool lists_version(const tn__wire *w)
{
  if (w->type == TN__WIRE_VARINT) return tn__wire_int(w) == TN__BUNDLE_VERSION;
  const uint8_t *p = (const uint8_t *)w->bytes.data, *end = p + w->bytes.size;
  uint64_t value;
  while (w->type == TN__WIRE_BYTES && tn__wire_varint(&p, end, &value))
    if (value == TN__BUNDLE_VERSION) return true;
  return false;
}

static tn_status check_version(const place *at, tn__slice version)
{
  tn__wire w = tn__wire_read(version);
  while (tn__wire_next(&w)) {
    if (tn__wire_is(&w, TN__VERSION_MIN_CONSUMER, TN__WIRE_VARINT) && tn__wire_int(&w) > TN__BUNDLE_VERSION)
      return tn_error_set(at->err, TN_INVALID_ARGUMENT,
                          "'%s' was written for readers of version %" PRId64 " and newer; this one has version %d",
                          at->path, tn__wire_int(&w), TN__BUNDLE_VERSION);
    if (w.field == TN__VERSION_BAD_CONSUMERS && lists_version(&w))
      return tn_error_set(at->err, TN_INVALID_ARGUMENT, "'%s' says that readers of version %d cannot read it", at->path,
                          TN__BUNDLE_VERSION);
  }
  return w.error == NULL ? TN_OK : bad(at, "%s", w.error);
}

static tn_status read_header(const place *at, tn__slice value, uint32_t *shards)
{
  tn__wire w = tn__wire_read(value);
  tn__slice version = { "", 0 };
  int64_t n = 0, endianness = 0;
  while (tn__wire_next(&w)) {
    if (tn__wire_is(&w, TN__HEADER_SHARDS, TN__WIRE_VARINT)) n = tn__wire_int(&w);
    if (tn__wire_is(&w, TN__HEADER_ENDIANNESS, TN__WIRE_VARINT)) endianness = tn__wire_int(&w);
    if (tn__wire_is(&w, TN__HEADER_VERSION, TN__WIRE_BYTES)) version = w.bytes;
  }
  if (w.error != NULL) return bad(at, "%s", w.error);
  tn_status s = check_version(at, version);
  if (s != TN_OK) return s;
  if (n < 1 || n > INT32_MAX) return bad(at, "the bundle has %" PRId64 " data files", n);
  if (endianness != 0)
    return tn_error_set(at->err, TN_UNIMPLEMENTED, "'%s' was written on a big-endian machine, which is not read",
                        at->path);
  *shards = (uint32_t)n;
  return TN_OK;
}

/* ---- entries ---- */

static tn_status read_dim(const place *at, tn__slice dim, int64_t *out)
{
  tn__wire w = tn__wire_read(dim);
  *out = 0;
  while (tn__wire_next(&w))
    if (tn__wire_is(&w, TN__DIM_SIZE, TN__WIRE_VARINT)) *out = tn__wire_int(&w);
  return w.error == NULL ? TN_OK : bad(at, "%s", w.error);
}

static tn_status read_shape(const place *at, tn__slice shape, tn__bundle_entry *e)
{
  size_t n = tn__field_count(shape, TN__SHAPE_DIM), i = 0;
  if (n > TN_MAX_RANK) return bad(at, "a rank of %zu, wanted at most %d", n, TN_MAX_RANK);
  int64_t *dims = tn__arena_alloc(at->arena, n * sizeof(*dims));
  if (dims == NULL) return no_room(at, n * sizeof(*dims));
  tn__wire w = tn__wire_read(shape);
  tn_status s = TN_OK;
  while (s == TN_OK && tn__wire_next(&w)) {
    if (tn__wire_is(&w, TN__SHAPE_DIM, TN__WIRE_BYTES)) s = read_dim(at, w.bytes, &dims[i++]);
    if (tn__wire_is(&w, TN__SHAPE_UNKNOWN_RANK, TN__WIRE_VARINT) && w.value != 0) s = bad(at, "the rank is unknown");
  }
  if (s == TN_OK && w.error != NULL) s = bad(at, "%s", w.error);
  e->rank = (int32_t)n;
  e->dims = dims;
  return s;
}

static tn_status read_extent(const place *at, tn__slice extent, int64_t *start, int64_t *length)
{
  tn__wire w = tn__wire_read(extent);
  *start = 0;
  *length = -1;
  while (tn__wire_next(&w)) {
    if (tn__wire_is(&w, TN__EXTENT_START, TN__WIRE_VARINT)) *start = tn__wire_int(&w);
    if (!tn__wire_is(&w, TN__EXTENT_LENGTH, TN__WIRE_VARINT)) continue;
    *length = tn__wire_int(&w);
    if (*length < 0) return bad(at, "a slice has the length %" PRId64, *length);
  }
  return w.error == NULL ? TN_OK : bad(at, "%s", w.error);
}

static tn_status read_slice(const place *at, tn__slice slice, tn__region *out)
{
  size_t n = tn__field_count(slice, TN__SLICE_EXTENT), d = 0;
  if (n > TN_MAX_RANK) return bad(at, "a slice has rank %zu, wanted at most %d", n, TN_MAX_RANK);
  int64_t *numbers = tn__arena_alloc(at->arena, 2 * n * sizeof(*numbers));
  if (numbers == NULL) return no_room(at, 2 * n * sizeof(*numbers));
  *out = (tn__region){ (int32_t)n, numbers, numbers + n };
  tn__wire w = tn__wire_read(slice);
  tn_status s = TN_OK;
  while (s == TN_OK && tn__wire_next(&w))
    if (tn__wire_is(&w, TN__SLICE_EXTENT, TN__WIRE_BYTES)) {
      s = read_extent(at, w.bytes, &out->starts[d], &out->lengths[d]);
      d++;
    }
  return s == TN_OK && w.error != NULL ? bad(at, "%s", w.error) : s;
}

static tn_status read_slices(const place *at, tn__slice value, tn__bundle_entry *e)
{
  size_t n = tn__field_count(value, TN__ENTRY_SLICES);
  if (n == 0) return TN_OK;
  e->slices = tn__arena_array(at->arena, n, sizeof(*e->slices));
  if (e->slices == NULL) return no_room(at, n * sizeof(*e->slices));
  tn__wire w = tn__wire_read(value);
  tn_status s = TN_OK;
  while (s == TN_OK && tn__wire_next(&w))
    if (tn__wire_is(&w, TN__ENTRY_SLICES, TN__WIRE_BYTES)) s = read_slice(at, w.bytes, &e->slices[e->n_slices++]);
  return s;
}

/* The numbers of an entry as they are stored. */
typedef struct numbers {
  int64_t dtype, shard, offset, size;
  tn__slice shape;
} numbers;

static tn_status read_numbers(const place *at, tn__slice value, numbers *n, uint32_t *crc)
{
  tn__wire w = tn__wire_read(value);
  *n = (numbers){ 0 };
  while (tn__wire_next(&w)) {
    if (w.type == TN__WIRE_VARINT) {
      switch (w.field) {
      case TN__ENTRY_DTYPE: n->dtype = tn__wire_int(&w); break;
      case TN__ENTRY_SHARD: n->shard = tn__wire_int(&w); break;
      case TN__ENTRY_OFFSET: n->offset = tn__wire_int(&w); break;
      case TN__ENTRY_SIZE: n->size = tn__wire_int(&w); break;
      default: break;
      }
    } else if (tn__wire_is(&w, TN__ENTRY_SHAPE, TN__WIRE_BYTES)) {
      n->shape = w.bytes;
    } else if (tn__wire_is(&w, TN__ENTRY_CRC, TN__WIRE_FIXED32)) {
      *crc = (uint32_t)w.value;
    }
  }
  return w.error == NULL ? TN_OK : bad(at, "%s", w.error);
}

/* Checks the dtype and the shape, and sets the number of elements. */
static tn_status check_type(const place *at, int64_t dtype, tn__bundle_entry *e)
{
  char shape[160];
  size_t bytes, size = dtype > 0 && dtype < TN_DTYPE_REF ? tn_dtype_size((tn_dtype)dtype) : 0;
  if (size == 0) return bad(at, "%" PRId64 " is not a data type", dtype);
  e->dtype = (tn_dtype)dtype;
  if (tn_shape_bytes(e->dtype, e->dims, e->rank, &bytes, NULL) != TN_OK)
    return bad(at, "the shape %s of %s elements is impossible",
               tn__format_shape(shape, sizeof(shape), e->dims, e->rank), tn_dtype_name(e->dtype));
  e->elements = (int64_t)(bytes / size);
  return TN_OK;
}

/* Checks the place of the bytes. Strings have at least a byte of length each and the CRC of the lengths. */
static tn_status check_place(const place *at, const numbers *n, uint32_t shards, tn__bundle_entry *e)
{
  char shape[160];
  int64_t end, wanted = e->elements * (int64_t)tn_dtype_size(e->dtype);
  if (n->offset < 0 || n->size < 0 || __builtin_add_overflow(n->offset, n->size, &end))
    return bad(at, "it has %" PRId64 " bytes from byte %" PRId64 " on", n->size, n->offset);
  if (n->shard < 0 || n->shard >= shards)
    return bad(at, "it is in data file %" PRId64 " of %" PRIu32, n->shard, shards);
  bool fits = n->size == wanted;
  if (e->dtype == TN_STRING) fits = n->size >= 4 && n->size - 4 >= e->elements;
  if (!fits && (e->dtype == TN_STRING || !tn__dtype_is_managed(e->dtype)))
    return bad(at, "%" PRId64 " bytes for a tensor %s %s", n->size, tn_dtype_name(e->dtype),
               tn__format_shape(shape, sizeof(shape), e->dims, e->rank));
  e->shard = (uint32_t)n->shard;
  e->offset = (uint64_t)n->offset;
  e->size = (uint64_t)n->size;
  return TN_OK;
}

static tn_status read_entry(const place *at, tn__slice value, uint32_t shards, tn__bundle_entry *e)
{
  numbers n;
  char *key = tn__arena_string(at->arena, at->key.data, at->key.size);
  if (key == NULL) return no_room(at, at->key.size + 1);
  *e = (tn__bundle_entry){ .key = { key, at->key.size } };
  tn_status s = read_numbers(at, value, &n, &e->crc);
  if (s == TN_OK) s = read_shape(at, n.shape, e);
  if (s == TN_OK) s = check_type(at, n.dtype, e);
  if (s == TN_OK) s = read_slices(at, value, e);
  if (s == TN_OK && e->n_slices == 0) s = check_place(at, &n, shards, e);
  return s;
}

/* ---- the file ---- */

/* Keys share their beginnings in the file, so that a small file could have large ones. TensorFlow writes each sixteenth
 * key as a whole; with compression on top of it real ones stay far below this. */
static uint64_t most_key_bytes(const char *path)
{
  struct stat st;
  uint64_t size = stat(path, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
  return ((uint64_t)1 << 20) + (size < UINT64_MAX / 128 ? 64 * size : UINT64_MAX / 2);
}

/* Reads the first entry, which is the header. */
static tn_status next_is_header(place *at, tn__table *table, tn__slice *value)
{
  tn_status s = tn__table_next(table, &at->key, value, at->err);
  if (s != TN_OK || (at->key.data != NULL && at->key.size == 0)) return s;
  return tn_error_set(at->err, TN_DATA_LOSS, "'%s' has no header: it is not the index of a checkpoint", at->path);
}

static tn_status read_entries(place *at, tn__table *table, tn__bundle_index *out)
{
  tn__slice value;
  uint64_t keys = most_key_bytes(at->path);
  tn_status s = next_is_header(at, table, &value);
  if (s == TN_OK) s = read_header(at, value, &out->shards);
  while (s == TN_OK) {
    s = tn__table_next(table, &at->key, &value, at->err);
    if (s != TN_OK || at->key.data == NULL) break;
    if (at->key.size > keys) return bad(at, "the keys have more than 64 times the bytes of the file");
    keys -= at->key.size;
    if (!tn__grow((void **)&out->entries, &out->room, out->n + 1, sizeof(*out->entries)))
      return no_room(at, (out->n + 1) * sizeof(*out->entries));
    s = read_entry(at, value, out->shards, &out->entries[out->n++]);
  }
  return s;
}

tn_status tn__bundle_index_read(const char *path, tn__arena *arena, tn__bundle_index *out, tn_error *err)
{
  tn__table *table = NULL;
  *out = (tn__bundle_index){ 0 };
  tn_status s = tn__table_open(path, &table, err);
  if (s != TN_OK) return s;
  place at = { .path = path, .table = table, .arena = arena, .err = err };
  s = read_entries(&at, table, out);
  tn__table_close(table);
  if (s != TN_OK) tn__bundle_index_fini(out);
  return s;
}

tn_status tn__bundle_index_shards(const char *path, uint32_t *out, tn_error *err)
{
  tn__table *table = NULL;
  tn__slice value;
  tn_status s = tn__table_open(path, &table, err);
  if (s != TN_OK) return s;
  place at = { .path = path, .table = table, .err = err };
  s = next_is_header(&at, table, &value);
  if (s == TN_OK) s = read_header(&at, value, out);
  tn__table_close(table);
  return s;
}

void tn__bundle_index_fini(tn__bundle_index *index)
{
  tn__free(index->entries, index->room * sizeof(*index->entries));
  *index = (tn__bundle_index){ 0 };
}
