/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files in memory, whose parts can be released and read again.
 *
 * A loaded file has a sorted list of disjoint parts: those that are released (their pages are discarded) and those that
 * must stay. One mutex guards the list and the bytes of released parts. Bytes outside all parts have never changed, so
 * they are read without it. */
#include <core/formats/file.h>

#include <core/base/file.h>
#include <core/base/threads/lock.h>
#include <string.h>

/* A smaller file stays in memory as a whole and is not kept open. In bytes. */
#define LEAST_FILE ((uint64_t)1 << 20)

typedef struct part {
  uint8_t *begin, *end;
  bool down; /* released; else it must stay in memory */
} part;

/* The state of a loaded file, freed with its buffer. */
typedef struct loaded {
  tn__mutex mu;
  tn__file file;    /* kept open; immutable */
  char *path;       /* owned */
  bool small_pages; /* tn__small_pages was called; guarded by mu, as are the members below */
  part *parts;      /* sorted by begin, disjoint */
  size_t n, room;
} loaded;

/* Allocated bytes: at least 1, so that an empty file has an address. */
static size_t room_of(size_t size) { return size == 0 ? 1 : size; }

static void release_copy(void *user, void *data, size_t bytes)
{
  (void)user;
  tn__free_aligned(data, room_of(bytes), TN_ALIGN);
}

static void free_loaded(loaded *l)
{
  tn__file_close(&l->file);
  tn__mutex_fini(&l->mu);
  tn__free(l->parts, l->room * sizeof *l->parts);
  tn__strfree(l->path);
  tn__free(l, sizeof *l);
}

static void release_loaded(void *user, void *data, size_t bytes)
{
  free_loaded(user);
  release_copy(NULL, data, bytes);
}

/* Makes the buffer. It takes ownership of l and data, also on failure. */
static tn_status wrap(loaded *l, void *data, size_t size, tn_buffer **out, tn_error *err)
{
  tn_buffer_desc desc = { .struct_size = sizeof desc,
                          .memory = TN_MEMORY_HOST,
                          .ownership = TN_BUFFER_IMMUTABLE,
                          .data = data,
                          .bytes = size,
                          .user = l,
                          .release = l == NULL ? release_copy : release_loaded };
  tn_status st = tn_buffer_create(&desc, out, err);
  if (st != TN_OK) desc.release(l, data, size);
  return st;
}

tn_status tn__bytes_copy(const void *bytes, size_t size, tn_buffer **out, tn_error *err)
{
  *out = NULL;
  void *data = tn__alloc_aligned(room_of(size), TN_ALIGN);
  if (data == NULL) return tn__no_memory(err, "bytes of a file", size);
  if (size > 0) memcpy(data, bytes, size);
  return wrap(NULL, data, size, out, err);
}

/* Takes ownership of the open file if it succeeds. */
static loaded *new_loaded(tn__file *file)
{
  loaded *l = tn__zalloc(sizeof *l);
  char *path = tn__strdup(file->path);
  if (l == NULL || path == NULL) {
    tn__free(l, sizeof *l);
    tn__strfree(path);
    return NULL;
  }
  tn__mutex_init(&l->mu, "bytes of a file", TN_RANK_FILE);
  l->path = path;
  l->file = *file;
  l->file.path = path;
  file->fd = -1;
  return l;
}

/* Reads the whole file. A large one stays open, so that its parts can be read again. */
static tn_status load_open(tn__file *file, uint64_t limit, tn_buffer **out, tn_error *err)
{
  if (file->size > limit || file->size > PTRDIFF_MAX)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the file has %llu bytes, at most %llu are read", file->path,
                        (unsigned long long)file->size, (unsigned long long)limit);
  size_t size = (size_t)file->size;
  void *data = tn__alloc_aligned(room_of(size), TN_ALIGN);
  if (data == NULL) return tn__no_memory(err, file->path, size);
  tn_status st = tn__file_read(file, 0, data, size, err);
  loaded *l = NULL;
  if (st == TN_OK && file->size >= LEAST_FILE) {
    l = new_loaded(file);
    if (l == NULL) st = tn__no_memory(err, file->path, sizeof *l);
  }
  if (st == TN_OK) return wrap(l, data, size, out, err);
  release_copy(NULL, data, size);
  return st;
}

/* The file is closed at the end unless new_loaded has taken it. */
tn_status tn__bytes_load(const char *path, uint64_t limit, tn_buffer **out, tn_error *err)
{
  *out = NULL;
  if (path == NULL || *path == 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "the file path is %s", path == NULL ? "NULL" : "empty");
  tn__file file;
  tn_status st = tn__file_open(path, &file, err);
  if (st != TN_OK) return st;
  st = load_open(&file, limit, out, err);
  tn__file_close(&file);
  return st;
}

/* ---- parts ---- */

static loaded *loaded_of(const tn_buffer *file)
{
  return file != NULL && file->desc.release == release_loaded ? file->desc.user : NULL;
}

/* The index of the first part that ends after `at`. */
static size_t find(const loaded *l, const uint8_t *at)
{
  size_t low = 0, high = l->n;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (l->parts[middle].end <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* Inserts p before part i. False: out of memory, nothing changed. */
static bool insert(loaded *l, size_t i, part p)
{
  if (!tn__grow((void **)&l->parts, &l->room, l->n + 1, sizeof *l->parts)) return false;
  memmove(l->parts + i + 1, l->parts + i, (l->n - i) * sizeof *l->parts);
  l->parts[i] = p;
  l->n++;
  return true;
}

/* The check follows the read, so that a write during the read is noticed, too. */
static tn_status read_again(const loaded *l, uint64_t offset, void *to, size_t size, tn_error *err)
{
  tn_status st = tn__file_read(&l->file, offset, to, size, err);
  if (st != TN_OK || tn__file_unchanged(&l->file)) return st;
  return tn_error_set(err, TN_DATA_LOSS,
                      "'%s' was written to after it was loaded: its bytes %llu to %llu cannot be read again", l->path,
                      (unsigned long long)offset, (unsigned long long)(offset + size));
}

/* Copies the part and releases it, unless it must stay. base: address of the file's first byte. A released part may
 * be taken again, but its bytes in memory must not be read. */
static tn_status take(loaded *l, uint8_t *base, uint8_t *at, size_t size, void *to, tn_error *err)
{
  tn__assert_held(&l->mu);
  size_t i = find(l, at);
  bool overlaps = i < l->n && l->parts[i].begin < at + size;
  bool same = overlaps && l->parts[i].begin == at && l->parts[i].end == at + size;
  if (same && l->parts[i].down) return read_again(l, (uint64_t)(at - base), to, size, err);
  for (size_t k = i; k < l->n && l->parts[k].begin < at + size; k++)
    if (l->parts[k].down)
      return tn_error_set(err, TN_INTERNAL, "'%s': parts overlap at byte %llu", l->path,
                          (unsigned long long)(at - base));
  memcpy(to, at, size);
  if (overlaps || size < TN__BYTES_PART || !insert(l, i, (part){ at, at + size, false })) return TN_OK;
  if (!tn__file_unchanged(&l->file)) return TN_OK; /* it could not be read again, so it is not released */
  if (!l->small_pages) tn__small_pages(base, (size_t)l->file.size); /* else huge pages would be rebuilt */
  l->small_pages = true;
  l->parts[i].down = tn__discard(at, size);
  return TN_OK;
}

tn_status tn__bytes_take(tn_buffer *file, const void *at, size_t size, void *to, tn_error *err)
{
  loaded *l = loaded_of(file);
  if (l == NULL) {
    if (size > 0) memcpy(to, at, size);
    return TN_OK;
  }
  tn__mutex_lock(&l->mu);
  uint8_t *base = file->desc.data;
  tn_status st = take(l, base, base + ((const uint8_t *)at - base), size, to, err);
  tn__mutex_unlock(&l->mu);
  return st;
}

/* Makes [at, end) stay: reads its released parts again, and covers each gap with a part that must stay. */
static tn_status keep(loaded *l, uint8_t *base, uint8_t *at, uint8_t *end, tn_error *err)
{
  tn__assert_held(&l->mu);
  for (size_t i = find(l, at); i < l->n && l->parts[i].begin < end; i++) {
    part *p = &l->parts[i];
    if (!p->down) continue;
    tn_status st = read_again(l, (uint64_t)(p->begin - base), p->begin, (size_t)(p->end - p->begin), err);
    if (st != TN_OK) return st;
    p->down = false;
  }
  for (size_t i = find(l, at); at < end; i++) {
    uint8_t *until = i < l->n && l->parts[i].begin < end ? l->parts[i].begin : end;
    if (at < until && !insert(l, i++, (part){ at, until, false })) return tn__no_memory(err, l->path, sizeof(part));
    if (i >= l->n || until == end) break;
    at = l->parts[i].end;
  }
  return TN_OK;
}

tn_status tn__bytes_keep(tn_buffer *file, const void *at, size_t size, tn_error *err)
{
  loaded *l = loaded_of(file);
  if (l == NULL || size < TN__BYTES_PART) return TN_OK; /* smaller parts are never released */
  tn__mutex_lock(&l->mu);
  uint8_t *base = file->desc.data, *begin = base + ((const uint8_t *)at - base);
  tn_status st = keep(l, base, begin, begin + size, err);
  tn__mutex_unlock(&l->mu);
  return st;
}
