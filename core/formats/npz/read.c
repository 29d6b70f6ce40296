/* SPDX-License-Identifier: Apache-2.0 */
/* Reads arrays of an .npz file. They are inflated directly into the tensor, never more than the array's header says. */
#include <core/formats/npz/npz.h>

#include <inttypes.h>
#include <string.h>

#define BEST_RATIO 1032 /* of deflate: 258 bytes from two bits */
/* Bytes read at once: the data is still in the cache when libzip computes its checksum. Also, libzip (at least 1.7)
 * miscounts if more than 4 GiB are requested at once. */
#define CHUNK ((size_t)1 << 18)

/* ---- one entry, read sequentially ---- */

typedef struct entry_reader {
  tn_npz *npz;
  const char *name;            /* for messages */
  zip_file_t *file;            /* owned by read_array */
  uint64_t at;                 /* offset in the array's file */
  uint8_t head[TN_NPY_PREFIX]; /* the first bytes, which may be requested again (npy.h) */
} entry_reader;

/* The error of a read: our source's own, else libzip's. */
static tn_status failed(entry_reader *r, const char *what, tn_error *err)
{
  if (r->npz->source_status != TN_OK) return r->npz->source_status;
  return tn__zip_failed(&r->npz->zip, r->npz->zip.file_get_error(r->file), r->name, what, err);
}

/* Reads the next n bytes of the entry, and keeps those of the head. */
static tn_status inflate_some(entry_reader *r, uint8_t *to, size_t n, tn_error *err)
{
  while (n > 0) {
    zip_int64_t got = r->npz->zip.fread(r->file, to, n < CHUNK ? n : CHUNK);
    if (got < 0) return failed(r, "the array cannot be unpacked", err);
    if (got == 0)
      return tn_error_set(err, TN_DATA_LOSS, "'%s' ends at byte %" PRIu64 ", wanted %zu bytes more", r->name, r->at, n);
    for (zip_int64_t i = 0; i < got && r->at + (uint64_t)i < sizeof(r->head); i++) r->head[r->at + (uint64_t)i] = to[i];
    r->at += (uint64_t)got;
    to += got;
    n -= (size_t)got;
  }
  return TN_OK;
}

/* The read function of a tn__npy_source: bytes of the head from its copy, all others in order. */
static tn_status read_entry(void *user, uint64_t offset, void *to, size_t n, tn_error *err)
{
  entry_reader *r = user;
  size_t known = 0;
  if (offset < r->at && offset < sizeof(r->head)) {
    uint64_t end = r->at < sizeof(r->head) ? r->at : sizeof(r->head);
    known = end - offset < n ? (size_t)(end - offset) : n;
    memcpy(to, r->head + offset, known);
  }
  if (known < n && offset + known != r->at)
    return tn_error_set(err, TN_INTERNAL, "'%s': byte %" PRIu64 " was requested after byte %" PRIu64, r->name,
                        offset + known, r->at);
  return inflate_some(r, (uint8_t *)to + known, n - known, err);
}

/* Reads beyond the last byte, because libzip compares the checksum only there. */
static tn_status check_end(entry_reader *r, tn_error *err)
{
  uint8_t more;
  zip_int64_t got = r->npz->zip.fread(r->file, &more, 1);
  if (got < 0) return failed(r, "the array is damaged", err);
  if (got > 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "'%s' has more than the %" PRIu64 " bytes that the archive declares", r->name, r->at);
  return TN_OK;
}

/* ---- limits ---- */

/* Reads the archive's description of an entry and checks that it is plausible and within the remaining budget. */
static tn_status examine(tn_npz *npz, const tn__npz_entry *e, const char *name, uint64_t budget, zip_stat_t *st,
                         tn_error *err)
{
  const zip_uint64_t needed = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
  if (npz->zip.stat_index(npz->archive, e->index, 0, st) != 0)
    return tn__zip_failed(&npz->zip, npz->zip.get_error(npz->archive), name, "the archive does not describe it", err);
  if ((st->valid & needed) != needed)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "'%s': the archive does not declare its size", name);
  if (st->encryption_method != ZIP_EM_NONE)
    return tn_error_set(err, TN_UNIMPLEMENTED, "'%s' is encrypted (method %d), which is not read", name,
                        st->encryption_method);
  if (st->comp_method != ZIP_CM_STORE && st->comp_method != ZIP_CM_DEFLATE)
    return tn_error_set(err, TN_UNIMPLEMENTED, "'%s' is compressed by method %d, wanted stored (0) or deflated (8)",
                        name, st->comp_method);
  if (st->comp_size > npz->size)
    return tn_error_set(err, TN_DATA_LOSS, "'%s' takes %" PRIu64 " bytes in the archive, which has %" PRIu64, name,
                        (uint64_t)st->comp_size, npz->size);
  if (st->comp_method == ZIP_CM_STORE && st->comp_size != st->size)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "'%s' is stored, but %" PRIu64 " bytes would become %" PRIu64, name,
                        (uint64_t)st->comp_size, (uint64_t)st->size);
  if (st->size / BEST_RATIO > st->comp_size)
    return tn_error_set(err, TN_RESOURCE_EXHAUSTED,
                        "'%s': %" PRIu64 " bytes would become %" PRIu64 ", but deflate packs no more than %d into one",
                        name, (uint64_t)st->comp_size, (uint64_t)st->size, BEST_RATIO);
  if (st->size > budget)
    return tn_error_set(err, TN_RESOURCE_EXHAUSTED,
                        "'%s': %" PRIu64 " bytes would become %" PRIu64 ", but at most %" PRIu64
                        " are left for this archive of %" PRIu64 " bytes (tn_npz_set_budget)",
                        name, (uint64_t)st->comp_size, (uint64_t)st->size, budget, npz->size);
  return TN_OK;
}

/* Loads one array and subtracts its memory from the budget: the unpacked bytes or those of the tensor, whichever are
 * more. */
static tn_status read_array(tn_npz *npz, const tn__npz_entry *e, const char *name, tn_dtype as, uint64_t *budget,
                            tn_tensor **out, tn_error *err)
{
  zip_stat_t st;
  tn_tensor *t = NULL;
  tn_status s = examine(npz, e, name, *budget, &st, err);
  if (s != TN_OK) return s;
  entry_reader r = { .npz = npz, .name = name };
  r.file = npz->zip.fopen_index(npz->archive, e->index, 0);
  if (r.file == NULL)
    return npz->source_status != TN_OK
               ? npz->source_status
               : tn__zip_failed(&npz->zip, npz->zip.get_error(npz->archive), name, "the array cannot be unpacked", err);
  tn__npy_source source = { .name = name, .size = st.size, .limit = *budget, .read = read_entry, .user = &r };
  s = tn__npy_read(&source, as, &t, err);
  if (s == TN_OK) s = check_end(&r, err);
  npz->zip.fclose(r.file);
  if (s != TN_OK) {
    tn_tensor_unref(t);
    return s;
  }
  *budget -= st.size > tn_tensor_bytes(t) ? st.size : tn_tensor_bytes(t);
  *out = t;
  return TN_OK;
}

/* Loads an array; messages name it "x.npz:key". */
static tn_status load_entry(tn_npz *npz, const tn__npz_entry *e, tn_dtype as, uint64_t *budget, tn_tensor **out,
                            tn_error *err)
{
  tn__text name;
  tn__text_init(&name, SIZE_MAX / 2);
  tn__text_printf(&name, "%s:%.200s", npz->name, e->key);
  npz->err = err;
  npz->source_status = TN_OK;
  tn_status s = name.failed ? tn__no_memory(err, "the name of an array", strlen(npz->name))
                            : read_array(npz, e, name.data, as, budget, out, err);
  npz->err = NULL;
  tn__text_fini(&name);
  return s;
}

/* ---- the public functions ---- */

/* As in NumPy, `key` is first taken for a name in the archive, then for a key. */
static const tn__npz_entry *find(const tn_npz *npz, const char *key)
{
  size_t size = strlen(key);
  bool npy = size >= 4 && memcmp(key + size - 4, ".npy", 4) == 0;
  const tn__npz_entry *e = npy ? tn__map_get(&npz->by_key, key, size - 4) : NULL;
  return e != NULL && !e->plain ? e : tn__map_get(&npz->by_key, key, size);
}

/* Lists some of the keys that the file has. */
static tn_status not_found(const tn_npz *npz, const char *key, tn_error *err)
{
  enum { MOST = 8 };
  tn__text list;
  tn__text_init(&list, 4096);
  for (size_t i = 0; i < npz->n && i < MOST; i++)
    tn__text_printf(&list, "%s'%.60s'", i > 0 ? ", " : "", npz->entries[i].key);
  if (npz->n > MOST) tn__text_printf(&list, " and %zu more", npz->n - MOST);
  tn_status s = tn_error_set(err, TN_NOT_FOUND, "'%s' has no array '%.200s'; it has %s", npz->name, key,
                             npz->n > 0 ? tn__text_get(&list) : "none");
  tn__text_fini(&list);
  return s;
}

tn_status tn_npz_load(tn_npz *npz, const char *key, tn_dtype as, tn_tensor **out, tn_error *err)
{
  tn__error_reset(err);
  if (out != NULL) *out = NULL;
  const char *missing = out == NULL ? "out" : NULL;
  if (key == NULL) missing = "key";
  if (npz == NULL) missing = "npz";
  if (missing != NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_npz_load: %s is NULL", missing);
  const tn__npz_entry *e = find(npz, key);
  uint64_t budget = npz->budget;
  return e == NULL ? not_found(npz, key, err) : load_entry(npz, e, as, &budget, out, err);
}

/* All arrays together have one budget. After an error none is returned. */
tn_status tn_npz_load_all(tn_npz *npz, const tn_dtype *as, tn_tensor **out, tn_error *err)
{
  tn__error_reset(err);
  if (npz == NULL || (out == NULL && npz->n > 0))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_npz_load_all: %s is NULL", npz == NULL ? "npz" : "out");
  uint64_t budget = npz->budget;
  tn_status s = TN_OK;
  for (size_t i = 0; i < npz->n; i++) out[i] = NULL;
  for (size_t i = 0; i < npz->n && s == TN_OK; i++)
    s = load_entry(npz, &npz->entries[i], as != NULL ? as[i] : TN_DTYPE_INVALID, &budget, &out[i], err);
  for (size_t i = 0; i < npz->n && s != TN_OK; i++) {
    tn_tensor_unref(out[i]);
    out[i] = NULL;
  }
  return s;
}
