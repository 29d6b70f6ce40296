/* SPDX-License-Identifier: Apache-2.0 */
/* Writes bundles. Tensors are written as they are added, each to the data file that has the fewest bytes; commit puts
 * the files in place (replace.c). */
#include <core/formats/bundle/bundle.h>

#include <inttypes.h>
#include <string.h>

#include <core/formats/sink.h>
#include <core/formats/table/crc32c.h>

#define MOST_SHARDS 9999u
#define CHUNK ((size_t)1 << 20)  /* bytes of a tensor that are written at once */
#define START ((size_t)32 << 20) /* bytes after which the system is told to write them to the disk */

/* A data file that is written. */
typedef struct output {
  char *path;      /* owned */
  tn__writer file; /* fd is -1 unless it is open */
  tn__sink sink;   /* of the file */
  size_t started;  /* bytes that are on their way to the disk */
  bool named;      /* it has its name */
} output;

/* An entry of the index; those of the writer are in its arena. */
typedef struct record {
  tn__bundle_entry entry;
  size_t room_slices; /* for which entry.slices has room */
} record;

struct tn__bundle_writer {
  char *prefix; /* owned */
  tn__arena arena;
  output *outputs;            /* owned */
  uint32_t n, wanted;         /* of outputs; only the first `wanted` get tensors */
  tn__bundle_entry **entries; /* of records; owned */
  size_t n_entries, room_entries;
  tn__map by_key;   /* of records */
  tn_status failed; /* of the first write that failed: no commit */
};

/* ---- opening and closing ---- */

static tn_status open_output(tn__bundle_writer *w, uint32_t i, tn_error *err)
{
  output *o = &w->outputs[i];
  o->path = tn__bundle_data_name(w->prefix, i, w->n);
  if (o->path == NULL) return tn__no_memory(err, "the name of a data file", strlen(w->prefix));
  tn_status s = tn__bundle_writer_file(&o->file, o->path, err);
  o->sink = tn__sink_file(&o->file, err);
  if (s != TN_OK) o->file.fd = -1;
  return s;
}

static void writer_destroy(tn__bundle_writer *w)
{
  for (uint32_t i = 0; i < w->n && w->outputs != NULL; i++) {
    output *o = &w->outputs[i];
    if (o->file.fd >= 0) tn__writer_abandon(&o->file);
    tn__sink_fini(&o->sink);
    tn__strfree(o->path);
  }
  tn__free(w->outputs, w->n * sizeof(*w->outputs));
  tn__free(w->entries, w->room_entries * sizeof(*w->entries));
  tn__map_fini(&w->by_key);
  tn__arena_fini(&w->arena);
  tn__strfree(w->prefix);
  tn__free(w, sizeof(*w));
}

tn_status tn__bundle_writer_open(const char *prefix, unsigned shards, tn__bundle_writer **out, tn_error *err)
{
  *out = NULL;
  if (prefix[0] == 0 || shards < 1 || shards > MOST_SHARDS)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "cannot write %u data files of a checkpoint '%s', wanted 1 to %u%s",
                        shards, prefix, MOST_SHARDS, prefix[0] == 0 ? " and a name" : "");
  tn__bundle_writer *w = tn__zalloc(sizeof(*w));
  if (w == NULL) return tn__no_memory(err, "the writer of a checkpoint", sizeof(*w));
  tn__arena_init(&w->arena, 4096);
  tn__map_init(&w->by_key);
  w->wanted = shards;
  w->prefix = tn__strdup(prefix);
  tn_status s = w->prefix == NULL ? tn__no_memory(err, "the name of a checkpoint", strlen(prefix)) : TN_OK;
  if (s == TN_OK) s = tn__bundle_choose_count(prefix, shards, &w->n, err);
  if (s == TN_OK) w->outputs = tn__alloc_array(w->n, sizeof(*w->outputs));
  if (s == TN_OK && w->outputs == NULL) s = tn__no_memory(err, "the data files of a checkpoint", w->n);
  for (uint32_t i = 0; i < w->n && w->outputs != NULL; i++) w->outputs[i].file.fd = -1;
  for (uint32_t i = 0; i < w->n && s == TN_OK; i++) s = open_output(w, i, err);
  if (s == TN_OK)
    *out = w;
  else
    writer_destroy(w);
  return s;
}

void tn__bundle_writer_abandon(tn__bundle_writer *w)
{
  if (w != NULL) writer_destroy(w);
}

/* ---- entries ---- */

static tn_status no_room(tn_error *err, size_t bytes) { return tn__no_memory(err, "the index of a checkpoint", bytes); }

static tn_status refuse(const tn__bundle_writer *w, tn__slice key, tn_error *err, const char *what)
{
  char text[200];
  return tn_error_set(err, TN_INVALID_ARGUMENT, "checkpoint '%s': tensor '%s' %s", w->prefix,
                      tn__bundle_show_key(text, sizeof(text), key), what);
}

static record *find(const tn__bundle_writer *w, tn__slice key) { return tn__map_get(&w->by_key, key.data, key.size); }

/* Makes an entry of a key that is new. It is added once its bytes are written. */
static tn_status new_record(tn__bundle_writer *w, tn__slice key, tn_dtype dtype, int32_t rank, const int64_t *dims,
                            record **out, tn_error *err)
{
  size_t bytes = (size_t)rank * sizeof(*dims);
  record *r = tn__arena_zalloc(&w->arena, sizeof(*r));
  char *copy = tn__arena_string(&w->arena, key.data, key.size);
  int64_t *shape = tn__arena_alloc(&w->arena, bytes);
  if (r == NULL || copy == NULL || shape == NULL) return no_room(err, sizeof(*r) + key.size + bytes);
  if (rank > 0) memcpy(shape, dims, bytes);
  r->entry.key = (tn__slice){ copy, key.size };
  r->entry.dtype = dtype;
  r->entry.rank = rank;
  r->entry.dims = shape;
  *out = r;
  return TN_OK;
}

/* Makes room for `more` entries, so that add_record does not fail. */
static tn_status reserve(tn__bundle_writer *w, size_t more, tn_error *err)
{
  if (tn__grow((void **)&w->entries, &w->room_entries, w->n_entries + more, sizeof(*w->entries)) &&
      tn__map_reserve(&w->by_key, w->n_entries + more))
    return TN_OK;
  return no_room(err, (w->n_entries + more) * sizeof(*w->entries));
}

static void add_record(tn__bundle_writer *w, record *r)
{
  w->entries[w->n_entries++] = &r->entry;
  tn__map_put(&w->by_key, r->entry.key.data, r->entry.key.size, r, NULL);
}

/* Adds a region to the slices of an entry. */
static tn_status add_region(tn__bundle_writer *w, record *r, const tn__region *region, tn_error *err)
{
  tn__bundle_entry *e = &r->entry;
  if (e->n_slices == r->room_slices) {
    size_t room = r->room_slices == 0 ? 4 : 2 * r->room_slices;
    tn__region *slices = tn__arena_array(&w->arena, room, sizeof(*slices));
    if (slices == NULL) return no_room(err, room * sizeof(*slices));
    if (e->n_slices > 0) memcpy(slices, e->slices, e->n_slices * sizeof(*slices));
    e->slices = slices;
    r->room_slices = room;
  }
  tn_status s = tn__region_copy_of(region, &w->arena, &e->slices[e->n_slices], err);
  e->n_slices += s == TN_OK;
  return s;
}

/* ---- bytes ---- */

/* Writes plain bytes, each chunk right after its CRC was computed. The disk is kept busy meanwhile, so that commit has
 * less to wait for. */
static void put_bytes(output *o, const char *data, size_t bytes, uint32_t *crc)
{
  for (size_t done = 0; done < bytes;) {
    size_t n = bytes - done < CHUNK ? bytes - done : CHUNK;
    *crc = tn__crc32c(*crc, data + done, n);
    tn__sink_put(&o->sink, data + done, n);
    done += n;
    if (o->sink.before - o->started < START) continue;
    tn__writer_start(&o->file, o->started, o->sink.before - o->started);
    o->started = o->sink.before;
  }
}

/* Writes the bytes of a tensor in the memory of a device, through a buffer. */
static tn_status put_from_device(output *o, const tn_tensor *t, uint32_t *crc, tn_error *err)
{
  tn_status s = TN_OK;
  char *buffer = tn__alloc(CHUNK);
  if (buffer == NULL) return tn__no_memory(err, "a buffer for a tensor of a device", CHUNK);
  for (size_t done = 0; done < t->bytes && s == TN_OK;) {
    size_t n = t->bytes - done < CHUNK ? t->bytes - done : CHUNK;
    s = tn__buffer_read(t->buffer, t->offset + done, buffer, n, err);
    if (s == TN_OK) put_bytes(o, buffer, n, crc);
    done += n;
  }
  tn__free(buffer, CHUNK);
  return s;
}

/* Writes strings: lengths, the CRC of the lengths, texts (strings.c). */
static void put_strings(output *o, const tn_string *strings, int64_t n, uint32_t *crc)
{
  for (int64_t i = 0; i < n; i++) {
    size_t length;
    tn_string_data(&strings[i], &length);
    uint64_t number = length;
    *crc = tn__crc32c(*crc, &number, number <= UINT32_MAX ? 4 : 8);
    tn__sink_varint(&o->sink, number);
  }
  uint32_t masked = tn__crc32c_mask(*crc);
  put_bytes(o, (const char *)&masked, sizeof(masked), crc);
  for (int64_t i = 0; i < n; i++) {
    size_t length;
    const char *text = tn_string_data(&strings[i], &length);
    put_bytes(o, text, length, crc);
  }
}

/* The data file with the fewest bytes. */
static uint32_t emptiest(const tn__bundle_writer *w)
{
  uint32_t best = 0;
  for (uint32_t i = 1; i < w->wanted; i++)
    if (tn__sink_size(&w->outputs[i].sink) < tn__sink_size(&w->outputs[best].sink)) best = i;
  return best;
}

/* Writes the elements and sets where they are. After a failure the file has a part of them, so the writer has failed.
 */
static tn_status put_tensor(tn__bundle_writer *w, tn__bundle_entry *e, const tn_tensor *t, tn_error *err)
{
  uint32_t shard = emptiest(w), crc = 0;
  output *o = &w->outputs[shard];
  size_t before = tn__sink_size(&o->sink);
  tn_status s = TN_OK;
  o->sink.err = err;
  if (t->dtype == TN_STRING)
    put_strings(o, tn_tensor_data(t), t->count, &crc);
  else if (t->data == NULL && t->bytes > 0)
    s = put_from_device(o, t, &crc, err);
  else
    put_bytes(o, t->data, t->bytes, &crc);
  if (s == TN_OK) s = o->sink.status;
  e->shard = shard;
  e->offset = before;
  e->size = tn__sink_size(&o->sink) - before;
  e->crc = tn__crc32c_mask(crc);
  if (s != TN_OK) w->failed = s;
  return s;
}

/* ---- tensors ---- */

/* What is wrong with a tensor or its key; NULL: nothing. */
static const char *fault_of(tn__slice key, const tn_tensor *t)
{
  if (key.size == 0) return "has an empty key";
  if (t->dtype == TN_RESOURCE || t->dtype == TN_VARIANT) return "has handles as elements, which cannot be written";
  if (tn__tensor_is_outline(t)) return "has no elements in memory";
  return NULL;
}

static tn_status check_open(const tn__bundle_writer *w, tn_error *err)
{
  if (w->failed == TN_OK) return TN_OK;
  return tn_error_set(err, w->failed, "checkpoint '%s': an earlier tensor could not be written", w->prefix);
}

static tn_status add_whole(tn__bundle_writer *w, tn__slice key, const tn_tensor *t, tn_error *err)
{
  record *r = NULL;
  tn_status s = reserve(w, 1, err);
  if (s == TN_OK) s = new_record(w, key, t->dtype, t->rank, t->dims, &r, err);
  if (s == TN_OK) s = put_tensor(w, &r->entry, t, err);
  if (s == TN_OK) add_record(w, r);
  return s;
}

tn_status tn__bundle_writer_add(tn__bundle_writer *w, tn__slice key, const tn_tensor *tensor, tn_error *err)
{
  const char *fault = fault_of(key, tensor);
  tn_status s = check_open(w, err);
  if (s != TN_OK) return s;
  if (fault == NULL && find(w, key) != NULL) fault = "was added before";
  return fault != NULL ? refuse(w, key, err, fault) : add_whole(w, key, tensor, err);
}

/* Checks a slice against its tensor, and against the slices of the key that were added before. */
static tn_status check_slice(const tn__bundle_writer *w, tn__slice key, int32_t rank, const int64_t *dims,
                             const tn__region *resolved, const tn_tensor *t, tn_error *err)
{
  const record *r = find(w, key);
  const char *fault = fault_of(key, t);
  if (fault != NULL) return refuse(w, key, err, fault);
  if (t->rank != rank || (rank > 0 && memcmp(t->dims, resolved->lengths, (size_t)rank * sizeof(*dims)) != 0))
    return refuse(w, key, err, "has another shape than its slice");
  if (r == NULL) return TN_OK;
  if (r->entry.n_slices == 0) return refuse(w, key, err, "was added before as a whole");
  if (r->entry.dtype != t->dtype || r->entry.rank != rank ||
      (rank > 0 && memcmp(r->entry.dims, dims, (size_t)rank * sizeof(*dims)) != 0))
    return refuse(w, key, err, "has slices of several dtypes or shapes");
  return TN_OK;
}

/* Writes a slice under a key of its own and adds it to the entry of the tensor, which the first slice makes. */
static tn_status put_slice(tn__bundle_writer *w, tn__slice key, int32_t rank, const int64_t *dims,
                           const tn__region *region, const tn_tensor *t, tn_error *err)
{
  tn__slice own;
  record *r = find(w, key), *part = NULL;
  bool first = r == NULL;
  tn_status s = tn__slice_key(key, region, &w->arena, &own, err);
  if (s == TN_OK && find(w, own) != NULL) return refuse(w, key, err, "was added before with this slice");
  if (s == TN_OK) s = reserve(w, 2, err);
  if (s == TN_OK) s = new_record(w, own, t->dtype, t->rank, t->dims, &part, err);
  if (s == TN_OK && first) s = new_record(w, key, t->dtype, rank, dims, &r, err);
  if (s == TN_OK) s = add_region(w, r, region, err);
  if (s != TN_OK) return s;
  s = put_tensor(w, &part->entry, t, err);
  if (s != TN_OK) return s;
  if (first) add_record(w, r);
  add_record(w, part);
  return TN_OK;
}

tn_status tn__bundle_writer_add_slice(tn__bundle_writer *w, tn__slice key, int32_t rank, const int64_t *dims,
                                      const tn__region *region, const tn_tensor *tensor, tn_error *err)
{
  tn__region resolved;
  tn__arena_mark mark = tn__arena_get_mark(&w->arena);
  tn_status s = check_open(w, err);
  if (s == TN_OK) s = tn_shape_elements(dims, rank, NULL, err);
  if (s == TN_OK) s = tn__region_copy_of(region, &w->arena, &resolved, err);
  if (s == TN_OK) s = tn__region_resolve(&resolved, rank, dims, err);
  if (s == TN_OK) s = check_slice(w, key, rank, dims, &resolved, tensor, err);
  bool whole = s == TN_OK && tn__region_is_all(&resolved, dims);
  tn__arena_rewind(&w->arena, mark);
  if (s != TN_OK) return s;
  return whole ? tn__bundle_writer_add(w, key, tensor, err) : put_slice(w, key, rank, dims, region, tensor, err);
}

/* ---- commit ---- */

static tn_status finish_output(output *o, tn_error *err)
{
  o->sink.err = err;
  tn_status s = tn__sink_flush(&o->sink);
  return s == TN_OK ? tn__writer_sync(&o->file, err) : s;
}

/* Steps 2 to 6 of replace.c. Until the index is in place a failure takes the names from the data files again. */
tn_status tn__bundle_writer_commit(tn__bundle_writer *w, tn_error *err)
{
  bool placed = false;
  tn_status s = check_open(w, err);
  for (uint32_t i = 0; i < w->n && s == TN_OK; i++) s = finish_output(&w->outputs[i], err);
  for (uint32_t i = 0; i < w->n && s == TN_OK; i++) {
    s = tn__writer_commit(&w->outputs[i].file, err);
    w->outputs[i].named = s == TN_OK;
  }
  if (s == TN_OK) s = tn__bundle_put_index(w->prefix, w->entries, w->n_entries, w->n, &placed, err);
  for (uint32_t i = 0; i < w->n && !placed; i++)
    if (w->outputs[i].named) unlink(w->outputs[i].path);
  writer_destroy(w);
  return s;
}
