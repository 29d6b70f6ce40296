/* SPDX-License-Identifier: Apache-2.0 */
/* Makes one bundle of several. Data files get a second name, as a part of the new bundle, so that the parts can be read
 * until its index is in place (replace.c); then their own names are deleted. Where a file cannot have two names it is
 * copied. */
#include <core/formats/bundle/bundle.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK ((size_t)1 << 20) /* bytes that are copied at once */

/* A data file of a part. */
typedef struct source {
  const char *prefix;
  uint32_t shard, shards; /* its number in the part */
} source;

typedef struct merge {
  const char *destination;
  const char *const *prefixes;
  tn__arena arena;
  tn__bundle_index *indexes; /* of the parts; owned */
  size_t n;
  tn__bundle_entry **entries; /* owned */
  size_t n_entries, room_entries;
  tn__map by_key;
  source *sources; /* owned; i is data file i of the new bundle */
  size_t n_sources, room_sources;
  uint32_t shards; /* of the new bundle */
  tn_error *err;
} merge;

static tn_status no_room(merge *m, size_t bytes) { return tn__no_memory(m->err, "the index of a checkpoint", bytes); }

/* ---- entries ---- */

/* Adds the slices of one entry to those of another. That none occurs twice is seen by their own keys. */
static tn_status join_slices(merge *m, tn__bundle_entry *to, const tn__bundle_entry *from)
{
  size_t n = to->n_slices + from->n_slices;
  tn__region *slices = tn__arena_array(&m->arena, n, sizeof(*slices));
  if (slices == NULL) return no_room(m, n * sizeof(*slices));
  memcpy(slices, to->slices, to->n_slices * sizeof(*slices));
  memcpy(slices + to->n_slices, from->slices, from->n_slices * sizeof(*slices));
  to->slices = slices;
  to->n_slices = n;
  return TN_OK;
}

static tn_status refuse(merge *m, const tn__bundle_entry *e, const char *prefix, const char *what)
{
  char key[200];
  return tn_error_set(m->err, TN_INVALID_ARGUMENT, "checkpoint '%s': tensor '%s', which '%s' has, %s", m->destination,
                      tn__bundle_show_key(key, sizeof(key), e->key), prefix, what);
}

static tn_status add_entry(merge *m, tn__bundle_entry *e, const char *prefix)
{
  tn__bundle_entry *other = tn__map_get(&m->by_key, e->key.data, e->key.size);
  if (other != NULL && (e->n_slices == 0 || other->n_slices == 0))
    return refuse(m, e, prefix, "is in another part, too");
  if (other != NULL) {
    bool alike = other->dtype == e->dtype && other->rank == e->rank &&
                 (e->rank == 0 || memcmp(other->dims, e->dims, (size_t)e->rank * sizeof(*e->dims)) == 0);
    return alike ? join_slices(m, other, e) : refuse(m, e, prefix, "has another dtype or shape in another part");
  }
  if (!tn__grow((void **)&m->entries, &m->room_entries, m->n_entries + 1, sizeof(*m->entries)) ||
      !tn__map_put(&m->by_key, e->key.data, e->key.size, e, NULL))
    return no_room(m, (m->n_entries + 1) * sizeof(*m->entries));
  m->entries[m->n_entries++] = e;
  return TN_OK;
}

/* ---- numbers of data files ---- */

static int compare_shards(const void *a, const void *b)
{
  uint32_t x = (*(tn__bundle_entry *const *)a)->shard, y = (*(tn__bundle_entry *const *)b)->shard;
  return (x > y) - (x < y);
}

/* Gives each data file of a part that has bytes a number in the new bundle, and its entries that number. */
static tn_status number_files(merge *m, tn__bundle_index *index, const char *prefix)
{
  size_t used = 0, bytes;
  tn__bundle_entry **list = index->n == 0 ? NULL : tn__alloc_array(index->n, sizeof(*list));
  if (index->n > 0 && list == NULL) return no_room(m, index->n * sizeof(*list));
  bytes = index->n * sizeof(*list);
  for (size_t i = 0; i < index->n; i++) {
    tn__bundle_entry *e = &index->entries[i];
    if (e->size > 0)
      list[used++] = e;
    else
      e->shard = 0;
  }
  if (used > 0) qsort(list, used, sizeof(*list), compare_shards);
  tn_status s = TN_OK;
  int64_t last = -1;
  for (size_t i = 0; i < used && s == TN_OK; i++) {
    if (list[i]->shard != last) {
      last = list[i]->shard;
      if (tn__grow((void **)&m->sources, &m->room_sources, m->n_sources + 1, sizeof(*m->sources)))
        m->sources[m->n_sources++] = (source){ prefix, list[i]->shard, index->shards };
      else
        s = no_room(m, (m->n_sources + 1) * sizeof(*m->sources));
    }
    list[i]->shard = (uint32_t)m->n_sources - 1;
  }
  tn__free(list, bytes);
  return s;
}

static tn_status read_part(merge *m, size_t i)
{
  char *path = tn__bundle_index_name(m->prefixes[i]);
  if (path == NULL) return no_room(m, strlen(m->prefixes[i]));
  tn_status s = tn__bundle_index_read(path, &m->arena, &m->indexes[i], m->err);
  tn__strfree(path);
  if (s == TN_OK) s = number_files(m, &m->indexes[i], m->prefixes[i]);
  for (size_t k = 0; k < m->indexes[i].n && s == TN_OK; k++)
    s = add_entry(m, &m->indexes[i].entries[k], m->prefixes[i]);
  return s;
}

/* ---- data files ---- */

static tn_status copy_bytes(const tn__file *from, tn__writer *to, tn_error *err)
{
  tn_status s = TN_OK;
  char *buffer = tn__alloc(CHUNK);
  if (buffer == NULL) return tn__no_memory(err, "a buffer for a data file", CHUNK);
  for (uint64_t at = 0; at < from->size && s == TN_OK; at += CHUNK) {
    size_t n = from->size - at < CHUNK ? (size_t)(from->size - at) : CHUNK;
    s = tn__file_read(from, at, buffer, n, err);
    if (s == TN_OK) s = tn__writer_write(to, buffer, n, err);
  }
  tn__free(buffer, CHUNK);
  return s;
}

/* Writes a data file anew; from NULL: an empty one. */
static tn_status copy_file(const char *from, const char *to, tn_error *err)
{
  tn__file file = { .fd = -1 };
  tn__writer w;
  tn_status s = from == NULL ? TN_OK : tn__file_open(from, &file, err);
  if (s == TN_OK) s = tn__bundle_writer_file(&w, to, err);
  if (s != TN_OK) {
    tn__file_close(&file);
    return s;
  }
  if (from != NULL) s = copy_bytes(&file, &w, err);
  tn__file_close(&file);
  if (s == TN_OK) s = tn__writer_sync(&w, err);
  if (s == TN_OK) return tn__writer_commit(&w, err);
  tn__writer_abandon(&w);
  return s;
}

/* Gives a data file a second name. The name is free: what is there is of a bundle without an index. */
static tn_status link_file(const char *from, const char *to, tn_error *err)
{
  struct stat st;
  if (lstat(from, &st) != 0) return tn__system_error(err, errno, "cannot open '%s'", from);
  if (!S_ISREG(st.st_mode)) return copy_file(from, to, err);
  unlink(to);
  if (link(from, to) != 0) return copy_file(from, to, err);
  tn__writer file = { .path = to, .fd = tn__sys_open(to, O_RDONLY | O_CLOEXEC, 0) };
  if (file.fd < 0) return tn__system_error(err, errno, "cannot open '%s'", to);
  tn_status s = tn__writer_sync(&file, err);
  tn__sys_close(file.fd);
  return s;
}

/* Makes data file i of the new bundle. */
static tn_status make_file(merge *m, uint32_t i)
{
  char *to = tn__bundle_data_name(m->destination, i, m->shards), *from = NULL;
  const source *f = i < m->n_sources ? &m->sources[i] : NULL;
  if (f != NULL) from = tn__bundle_data_name(f->prefix, f->shard, f->shards);
  tn_status s = TN_OK;
  if (to == NULL || (f != NULL && from == NULL)) s = no_room(m, 0);
  if (s == TN_OK) s = from == NULL ? copy_file(NULL, to, m->err) : link_file(from, to, m->err);
  tn__strfree(from);
  tn__strfree(to);
  return s;
}

static void delete_files(const merge *m, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++) {
    char *path = tn__bundle_data_name(m->destination, i, m->shards);
    if (path != NULL) unlink(path);
    tn__strfree(path);
  }
}

/* ---- the parts ---- */

static bool same_file(const char *a, const char *b)
{
  struct stat x, y;
  return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Removes the folder of a prefix, if it is empty. */
static void remove_folder(const char *prefix)
{
  const char *slash = strrchr(prefix, '/');
  char *folder = slash == NULL || slash == prefix ? NULL : tn__strndup(prefix, (size_t)(slash - prefix));
  if (folder != NULL) rmdir(folder);
  tn__strfree(folder);
}

static void delete_data(void *arg, const char *path, uint32_t shards)
{
  if (shards == *(const uint32_t *)arg) unlink(path);
}

/* Deletes the files of a part, the index first. A part of the new bundle's name has been replaced by it. */
static void delete_part(merge *m, size_t i, bool remove)
{
  char *index = tn__bundle_index_name(m->prefixes[i]), *own = tn__bundle_index_name(m->destination);
  if (index != NULL && own != NULL && !same_file(index, own)) {
    unlink(index);
    tn__data_files(m->prefixes[i], delete_data, &m->indexes[i].shards, NULL);
    if (remove) remove_folder(m->prefixes[i]);
  }
  tn__strfree(index);
  tn__strfree(own);
}

/* ---- the call ---- */

static tn_status put_in_place(merge *m)
{
  bool placed = false;
  uint32_t made = 0;
  tn_status s = TN_OK;
  uint32_t wanted = m->n_sources == 0 ? 1 : (uint32_t)m->n_sources;
  if (m->n_sources >= INT32_MAX / 2) s = no_room(m, m->n_sources);
  if (s == TN_OK) s = tn__bundle_choose_count(m->destination, wanted, &m->shards, m->err);
  while (s == TN_OK && made < m->shards) s = make_file(m, made++);
  if (s == TN_OK) s = tn__bundle_put_index(m->destination, m->entries, m->n_entries, m->shards, &placed, m->err);
  if (!placed) delete_files(m, made);
  return s;
}

static void merge_fini(merge *m)
{
  for (size_t i = 0; i < m->n && m->indexes != NULL; i++) tn__bundle_index_fini(&m->indexes[i]);
  tn__free(m->indexes, m->n * sizeof(*m->indexes));
  tn__free(m->entries, m->room_entries * sizeof(*m->entries));
  tn__free(m->sources, m->room_sources * sizeof(*m->sources));
  tn__map_fini(&m->by_key);
  tn__arena_fini(&m->arena);
}

tn_status tn__bundle_merge(const char *const *prefixes, size_t n, const char *destination, bool remove, tn_error *err)
{
  merge m = { .destination = destination, .prefixes = prefixes, .n = n, .err = err };
  if (n == 0) return tn_error_set(err, TN_INVALID_ARGUMENT, "checkpoint '%s' has no parts to be made of", destination);
  tn__arena_init(&m.arena, 4096);
  tn__map_init(&m.by_key);
  m.indexes = tn__alloc_array(n, sizeof(*m.indexes));
  tn_status s = m.indexes == NULL ? no_room(&m, n * sizeof(*m.indexes)) : TN_OK;
  for (size_t i = 0; i < n && s == TN_OK; i++) s = read_part(&m, i);
  if (s == TN_OK) s = put_in_place(&m);
  for (size_t i = 0; i < n && s == TN_OK; i++) delete_part(&m, i, remove);
  merge_fini(&m);
  return s;
}
