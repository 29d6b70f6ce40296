/* SPDX-License-Identifier: Apache-2.0 */
/* Reads bundles: makes the entries of a store from those of the index, and reads the bytes of their parts. */
#include <core/formats/bundle/bundle.h>

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <core/formats/table/crc32c.h>

#define CHUNK ((size_t)256 << 10) /* bytes read at once: they are still in the cache when their CRC is computed */

/* ---- entries ---- */

/* State while a store is opened. */
typedef struct opening {
  tn__store *store;
  const char *path; /* of the index */
  tn__bundle_index index;
  tn__map by_key; /* of the index's entries; empty if none has slices */
  tn__arena scratch;
  tn_error *err;
} opening;

static tn_status no_room(opening *o, size_t bytes)
{
  return tn__no_memory(o->err, "the entries of a checkpoint", bytes);
}

static tn_status bad_slice(opening *o, const tn__bundle_entry *e, const tn__region *slice, const char *what)
{
  char key[200], text[200];
  return tn_error_set(o->err, TN_DATA_LOSS, "'%s': slice %s of tensor '%s' %s", o->path,
                      tn__region_format(text, sizeof(text), slice), tn__bundle_show_key(key, sizeof(key), e->key),
                      what);
}

/* Finds the entry of a slice under its own key, and marks it as no tensor of its own. */
static tn_status find_slice(opening *o, const tn__bundle_entry *e, const tn__region *slice, tn__bundle_entry **out)
{
  tn__slice key;
  tn__arena_mark mark = tn__arena_get_mark(&o->scratch);
  tn_status s = tn__slice_key(e->key, slice, &o->scratch, &key, o->err);
  if (s != TN_OK) return s;
  *out = tn__map_get(&o->by_key, key.data, key.size);
  tn__arena_rewind(&o->scratch, mark);
  if (*out == NULL) return bad_slice(o, e, slice, "has no entry of its own");
  if ((*out)->n_slices > 0) return bad_slice(o, e, slice, "is stored in slices itself");
  (*out)->taken = true;
  return TN_OK;
}

/* Sets a part from the entry that has its bytes. */
static void set_part(tn__stored_part *part, const tn__bundle_entry *from)
{
  part->offset = from->offset;
  part->size = from->size;
  part->file = from->shard;
  part->crc = from->crc;
}

static tn_status set_slice(opening *o, const tn__bundle_entry *e, const tn__region *slice, tn__stored_part *part)
{
  tn__bundle_entry *own;
  tn_status s = find_slice(o, e, slice, &own);
  if (s == TN_OK) s = tn__region_copy_of(slice, &o->store->arena, &part->region, o->err);
  if (s != TN_OK) return s;
  if (tn__region_resolve(&part->region, e->rank, e->dims, NULL) != TN_OK)
    return bad_slice(o, e, slice, "is outside of the tensor");
  tn__region stored = { own->rank, part->region.starts, (int64_t *)own->dims };
  if (own->dtype != e->dtype || !tn__region_equals(&stored, &part->region))
    return bad_slice(o, e, slice, "has an entry of another dtype or shape");
  set_part(part, own);
  return TN_OK;
}

/* Allocates the parts of a tensor and sets them. */
static tn_status set_parts(opening *o, const tn__bundle_entry *from, tn__stored *to)
{
  to->n_parts = from->n_slices == 0 ? 1 : from->n_slices;
  to->sliced = from->n_slices > 0;
  to->parts = tn__arena_array(&o->store->arena, to->n_parts, sizeof(*to->parts));
  if (to->parts == NULL) return no_room(o, to->n_parts * sizeof(*to->parts));
  tn_status s = TN_OK;
  if (!to->sliced) {
    set_part(&to->parts[0], from);
    s = tn__region_all(from->rank, from->dims, &o->store->arena, &to->parts[0].region, o->err);
  }
  for (size_t i = 0; i < from->n_slices && s == TN_OK; i++) s = set_slice(o, from, &from->slices[i], &to->parts[i]);
  for (size_t i = 0; i < to->n_parts && s == TN_OK; i++)
    if (__builtin_add_overflow(to->bytes, to->parts[i].size, &to->bytes)) to->bytes = UINT64_MAX;
  return s;
}

static tn_status map_entries(opening *o)
{
  bool sliced = false;
  for (size_t i = 0; i < o->index.n; i++) sliced = sliced || o->index.entries[i].n_slices > 0;
  if (!sliced) return TN_OK;
  if (!tn__map_reserve(&o->by_key, o->index.n)) return no_room(o, o->index.n * sizeof(tn__map_entry));
  for (size_t i = 0; i < o->index.n; i++) {
    tn__bundle_entry *e = &o->index.entries[i];
    if (!tn__map_put(&o->by_key, e->key.data, e->key.size, e, NULL)) return no_room(o, sizeof(tn__map_entry));
  }
  return TN_OK;
}

/* Whether a key is that of a slice. One that no tensor lists is no tensor of its own; a tensor that needs it is
 * reported as not covered when it is read. */
static bool is_slice(opening *o, tn__slice key)
{
  tn__slice name;
  tn__region region;
  return key.size > 0 && key.data[0] == 0 && tn__slice_key_parse(key, &o->scratch, &name, &region);
}

/* Makes the store's entries. Only at the end it is known which of the index's entries are slices. */
static tn_status make_entries(opening *o)
{
  tn__store *store = o->store;
  tn__stored *list = tn__arena_array(&store->arena, o->index.n, sizeof(*list));
  if (list == NULL) return no_room(o, o->index.n * sizeof(*list));
  tn_status s = map_entries(o);
  for (size_t i = 0; i < o->index.n && s == TN_OK; i++) {
    const tn__bundle_entry *e = &o->index.entries[i];
    list[i] = (tn__stored){ .key = e->key.data,
                            .key_size = e->key.size,
                            .dtype = e->dtype,
                            .rank = e->rank,
                            .dims = e->dims,
                            .elements = e->elements };
    s = set_parts(o, e, &list[i]);
  }
  for (size_t i = 0; i < o->index.n && s == TN_OK; i++)
    if (!o->index.entries[i].taken && !is_slice(o, o->index.entries[i].key)) list[store->n++] = list[i];
  store->entries = list;
  return s;
}

/* ---- opening ---- */

static int compare_numbers(const void *a, const void *b)
{
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

/* Lists the data files that have bytes of a tensor. */
static tn_status list_shards(opening *o)
{
  uint32_t *numbers = o->index.n == 0 ? NULL : tn__alloc_array(o->index.n, sizeof(*numbers));
  size_t n = 0, used = 0;
  if (o->index.n > 0 && numbers == NULL) return no_room(o, o->index.n * sizeof(*numbers));
  for (size_t i = 0; i < o->index.n; i++)
    if (o->index.entries[i].n_slices == 0) numbers[n++] = o->index.entries[i].shard;
  if (n > 0) qsort(numbers, n, sizeof(*numbers), compare_numbers);
  for (size_t i = 0; i < n; i++)
    if (used == 0 || numbers[used - 1] != numbers[i]) numbers[used++] = numbers[i];
  tn_status s = tn__bundle_shards_create(o->store->prefix, o->index.shards, numbers, used,
                                         (tn__bundle_shards **)&o->store->own, o->err);
  tn__free(numbers, o->index.n * sizeof(*numbers));
  return s;
}

static bool is_file(const char *path)
{
  struct stat st;
  return stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

static bool names_index(const char *path)
{
  size_t n = strlen(path);
  return n > 6 && strcmp(path + n - 6, ".index") == 0;
}

/* A name that does not fit is too long for any file. */
static bool fits(const char *path)
{
  char index[PATH_MAX];
  int n = tn__snprintf(index, sizeof(index), "%s.index", path);
  return (n > 0 && (size_t)n < sizeof(index) && is_file(index)) || (names_index(path) && is_file(path));
}

/* Makes "x" of the prefix "x.index", unless there is an "x.index.index". */
static tn_status trim_prefix(tn__store *store, char **index, tn_error *err)
{
  *index = tn__bundle_index_name(store->prefix);
  if (*index != NULL && names_index(store->prefix) && !is_file(*index)) {
    tn__strfree(*index);
    *index = store->prefix;
    store->prefix = tn__strndup(*index, strlen(*index) - 6);
  }
  return *index == NULL || store->prefix == NULL ? tn__no_memory(err, "the name of an index", 0) : TN_OK;
}

static tn_status open_bundle(tn__store *store, tn_error *err)
{
  char *path = NULL;
  tn_status s = trim_prefix(store, &path, err);
  opening o = { .store = store, .path = path, .err = err };
  tn__map_init(&o.by_key);
  tn__arena_init(&o.scratch, 256);
  if (s == TN_OK) s = tn__bundle_index_read(path, &store->arena, &o.index, err);
  if (s == TN_OK) s = make_entries(&o);
  if (s == TN_OK) s = list_shards(&o);
  tn__bundle_index_fini(&o.index);
  tn__arena_fini(&o.scratch);
  tn__map_fini(&o.by_key);
  tn__strfree(path);
  return s;
}

static void close_bundle(tn__store *store) { tn__bundle_shards_destroy(store->own); }

/* ---- parts ---- */

static tn_status get_file(tn__store *store, const tn__stored *e, const tn__stored_part *part, const tn__file **file,
                          tn_error *err)
{
  char key[200];
  tn_status s = tn__bundle_shard_get(store->own, part->file, file, err);
  if (s != TN_OK)
    tn_error_prefix(err, "tensor '%s'", tn__bundle_show_key(key, sizeof(key), (tn__slice){ e->key, e->key_size }));
  return s;
}

static tn_status check_range(const tn__file *file, const tn__stored *e, const tn__stored_part *part, tn_error *err)
{
  char key[200];
  if (part->size <= file->size && part->offset <= file->size - part->size) return TN_OK;
  return tn_error_set(err, TN_DATA_LOSS,
                      "'%s' has %" PRIu64 " bytes, but tensor '%s' has %" PRIu64 " from byte %" PRIu64 " on",
                      file->path, file->size, tn__bundle_show_key(key, sizeof(key), (tn__slice){ e->key, e->key_size }),
                      part->size, part->offset);
}

/* Bytes of an empty tensor are not looked for, so that it does not need its file. */
tn_status tn__bundle_check_part(tn__store *store, const tn__stored *entry, const tn__stored_part *part, tn_error *err)
{
  const tn__file *file;
  if (part->size == 0) return TN_OK;
  tn_status s = get_file(store, entry, part, &file, err);
  if (s != TN_OK) return s;
  s = check_range(file, entry, part, err);
  tn__bundle_shard_put(store->own, part->file);
  return s;
}

tn_status tn__bundle_read_some(tn__store *store, const tn__stored *entry, const tn__stored_part *part, uint64_t from,
                               size_t n, void *to, uint32_t *crc, tn_error *err)
{
  const tn__file *file;
  tn_status s = get_file(store, entry, part, &file, err);
  if (s != TN_OK) return s;
  for (size_t done = 0; done < n && s == TN_OK;) {
    size_t size = n - done < CHUNK ? n - done : CHUNK;
    s = tn__file_read(file, part->offset + from + done, (char *)to + done, size, err);
    if (s == TN_OK) *crc = tn__crc32c(*crc, (char *)to + done, size);
    done += size;
  }
  tn__bundle_shard_put(store->own, part->file);
  return s;
}

tn_status tn__bundle_verify(tn__store *store, const tn__stored *entry, const tn__stored_part *part, uint32_t crc,
                            tn_error *err)
{
  const tn__file *file;
  if (tn__crc32c_mask(crc) == part->crc) return TN_OK;
  tn_status s = get_file(store, entry, part, &file, err);
  if (s != TN_OK) return s;
  s = tn__bundle_wrong_crc(file, entry, part, tn__crc32c_mask(crc), err);
  tn__bundle_shard_put(store->own, part->file);
  return s;
}

tn_status tn__bundle_read_part(tn__store *store, const tn__stored *entry, const tn__stored_part *part, void *to,
                               tn_error *err)
{
  const tn__file *file;
  uint32_t crc = 0;
  if (entry->dtype != TN_STRING) {
    tn_status plain = tn__bundle_read_some(store, entry, part, 0, (size_t)part->size, to, &crc, err);
    return plain != TN_OK ? plain : tn__bundle_verify(store, entry, part, crc, err);
  }
  tn_status s = get_file(store, entry, part, &file, err);
  if (s != TN_OK) return s;
  s = check_range(file, entry, part, err);
  if (s == TN_OK) s = tn__bundle_read_strings(file, entry, part, to, err);
  tn__bundle_shard_put(store->own, part->file);
  return s;
}

const tn__store_kind tn__store_bundle = {
  .version = 2,
  .name = "checkpoint (V2)",
  .fits = fits,
  .open = open_bundle,
  .close = close_bundle,
  .read_part = tn__bundle_read_part,
  .check_part = tn__bundle_check_part,
  .read_some = tn__bundle_read_some,
  .verify = tn__bundle_verify,
};
