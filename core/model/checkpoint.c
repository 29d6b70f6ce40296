/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls for checkpoints: opening, reading, writing. Paths are in checkpoint_paths.c. */
#include <core/formats/bundle/bundle.h>
#include <core/model/checkpoint.h>
#include <core/plan/plan.h>

#include <string.h>

/* Data files of one checkpoint. More are of no use, and their names have five digits. */
#define SHARDS_MOST 1024

/* ---- opening ---- */

tn_status tn_checkpoint_open(const char *path, tn_checkpoint **out, tn_error *err)
{
  tn__error_reset(err);
  if (out != NULL) *out = NULL;
  if (path == NULL || out == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_checkpoint_open: %s is NULL", path == NULL ? "path" : "out");
  tn_checkpoint *checkpoint = tn__zalloc(sizeof *checkpoint);
  if (checkpoint == NULL) return tn__no_memory(err, "a checkpoint", sizeof *checkpoint);
  tn_status st = tn__store_open(path, &checkpoint->store, err);
  if (st == TN_OK)
    *out = checkpoint;
  else
    tn_checkpoint_close(checkpoint);
  return st;
}

void tn_checkpoint_close(tn_checkpoint *checkpoint)
{
  if (checkpoint == NULL) return;
  tn__path_list_destroy(atomic_load_explicit(&checkpoint->path_list, memory_order_relaxed));
  tn__objects_destroy(atomic_load_explicit(&checkpoint->objects, memory_order_relaxed));
  tn__store_close(checkpoint->store);
  tn__free(checkpoint, sizeof *checkpoint);
}

const char *tn_checkpoint_prefix(const tn_checkpoint *checkpoint)
{
  return checkpoint == NULL ? NULL : checkpoint->store->prefix;
}

int32_t tn_checkpoint_version(const tn_checkpoint *checkpoint)
{
  return checkpoint == NULL ? 0 : checkpoint->store->kind->version;
}

/* ---- entries ---- */

size_t tn_checkpoint_count(const tn_checkpoint *checkpoint) { return checkpoint == NULL ? 0 : checkpoint->store->n; }

static tn_status check_entry(const char *call, const void *checkpoint, const tn_checkpoint_entry *out, tn_error *err)
{
  tn__error_reset(err);
  if (checkpoint != NULL && out != NULL && out->struct_size >= sizeof(size_t)) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: checkpoint or out is NULL, or its struct_size is not set", call);
}

/* Sets the fields that the caller's struct has. */
static void describe(const tn__stored *entry, tn_checkpoint_entry *out)
{
  const tn_checkpoint_entry full = { .struct_size = sizeof full,
                                     .key = entry->key,
                                     .dtype = entry->dtype,
                                     .rank = entry->rank,
                                     .dims = entry->dims,
                                     .bytes = entry->bytes,
                                     .n_slices = entry->sliced ? entry->n_parts : 0 };
  tn__copy_sized(out, &full, sizeof full, out->struct_size);
}

tn_status tn_checkpoint_at(const tn_checkpoint *checkpoint, size_t i, tn_checkpoint_entry *out, tn_error *err)
{
  tn_status st = check_entry("tn_checkpoint_at", checkpoint, out, err);
  if (st != TN_OK) return st;
  if (i >= checkpoint->store->n)
    return tn_error_set(err, TN_OUT_OF_RANGE, "tensor %zu requested from '%s', which has %zu", i,
                        checkpoint->store->prefix, checkpoint->store->n);
  describe(&checkpoint->store->entries[i], out);
  return TN_OK;
}

tn_status tn_checkpoint_find(const tn_checkpoint *checkpoint, const char *key, tn_checkpoint_entry *out, tn_error *err)
{
  const tn__stored *entry;
  tn_status st = check_entry("tn_checkpoint_find", checkpoint, out, err);
  if (st == TN_OK && key == NULL) st = tn_error_set(err, TN_INVALID_ARGUMENT, "tn_checkpoint_find: key is NULL");
  if (st == TN_OK) st = tn__store_get(checkpoint->store, tn__slice_of(key), &entry, err);
  if (st == TN_OK) describe(entry, out);
  return st;
}

/* ---- reading ---- */

tn_status tn_checkpoint_read(tn_checkpoint *checkpoint, const char *key, tn_tensor **out, tn_error *err)
{
  const tn__stored *entry;
  tn__error_reset(err);
  if (out != NULL) *out = NULL;
  if (checkpoint == NULL || key == NULL || out == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_checkpoint_read: checkpoint, key or out is NULL");
  tn_status st = tn__store_get(checkpoint->store, tn__slice_of(key), &entry, err);
  return st == TN_OK ? tn__store_read(checkpoint->store, entry, out, err) : st;
}

/* Finds the tensors of all keys. `entries` has room for n. */
static tn_status find_all(const tn__store *store, const char *const *keys, size_t n, const tn__stored **entries,
                          tn_error *err)
{
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < n; i++)
    st = keys[i] != NULL ? tn__store_get(store, tn__slice_of(keys[i]), &entries[i], err)
                         : tn_error_set(err, TN_INVALID_ARGUMENT, "tn_checkpoint_read_many: keys[%zu] is NULL", i);
  return st;
}

tn_status tn_checkpoint_read_many(tn_checkpoint *checkpoint, const char *const *keys, size_t n, tn_tensor **out,
                                  tn_error *err)
{
  tn__error_reset(err);
  if (checkpoint == NULL || (n > 0 && (keys == NULL || out == NULL)))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_checkpoint_read_many: checkpoint, keys or out is NULL");
  if (n == 0) return TN_OK;
  memset(out, 0, n * sizeof(tn_tensor *));
  const tn__stored **entries = tn__alloc_array(n, sizeof *entries);
  if (entries == NULL) return tn__no_memory(err, "the list of tensors to read", n * sizeof *entries);
  tn_status st = find_all(checkpoint->store, keys, n, entries, err);
  if (st == TN_OK) st = tn__store_read_many(checkpoint->store, entries, n, 0, out, err);
  tn__free(entries, n * sizeof *entries);
  return st;
}

/* ---- writing ---- */

/* The caller's struct may be that of an older header with fewer fields; missing fields are 0. */
static tn_status take_options(const tn_checkpoint_options *given, tn_checkpoint_options *o, tn_error *err)
{
  *o = (tn_checkpoint_options){ .struct_size = sizeof *o };
#define TAKE(field) \
  if (given != NULL && TN_HAS_FIELD(given, tn_checkpoint_options, field)) o->field = given->field
  TAKE(shards);
  TAKE(update_state);
  TAKE(keep);
#undef TAKE
  if (o->shards < 0 || o->shards > SHARDS_MOST)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_checkpoint_options.shards is %d, wanted 0 to %d", (int)o->shards,
                        SHARDS_MOST);
  if (o->keep < 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_checkpoint_options.keep is %d, wanted at least 0", (int)o->keep);
  if (o->keep > 0 && !o->update_state)
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "tn_checkpoint_options.keep is %d, but update_state, which it needs, is not set", (int)o->keep);
  if (o->shards == 0) o->shards = 1;
  return TN_OK;
}

static tn_status add_all(tn__bundle_writer *w, const char *const *keys, tn_tensor *const *tensors, size_t n,
                         tn_error *err)
{
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < n; i++) {
    const char *missing = keys[i] == NULL ? "keys" : "tensors";
    if (keys[i] != NULL && tensors[i] != NULL)
      st = tn__bundle_writer_add(w, tn__slice_of(keys[i]), tensors[i], err);
    else
      st = tn_error_set(err, TN_INVALID_ARGUMENT, "tn_checkpoint_save: %s[%zu] is NULL", missing, i);
  }
  return st;
}

tn_status tn_checkpoint_save(const char *prefix, const char *const *keys, tn_tensor *const *tensors, size_t n,
                             const tn_checkpoint_options *options, tn_error *err)
{
  tn_checkpoint_options o;
  tn__bundle_writer *w = NULL;
  tn__error_reset(err);
  if (prefix == NULL || (n > 0 && (keys == NULL || tensors == NULL)))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_checkpoint_save: prefix, keys or tensors is NULL");
  tn_status st = take_options(options, &o, err);
  if (st == TN_OK) st = tn__bundle_writer_open(prefix, (unsigned)o.shards, &w, err);
  if (st != TN_OK) return st;
  st = add_all(w, keys, tensors, n, err);
  if (st != TN_OK)
    tn__bundle_writer_abandon(w);
  else
    st = tn__bundle_writer_commit(w, err);
  if (st == TN_OK && o.update_state) st = tn__checkpoint_update_state(prefix, o.keep, err);
  return st;
}

/* ---- the newest checkpoint ---- */

/* tn__strfree needs the allocation that tn__strdup made; the caller's tn_free needs one from tn_alloc. */
tn_status tn_checkpoint_latest(const char *folder, char **prefix, tn_error *err)
{
  char *found = NULL;
  tn__error_reset(err);
  if (prefix != NULL) *prefix = NULL;
  if (folder == NULL || prefix == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_checkpoint_latest: folder or prefix is NULL");
  tn_status st = tn__checkpoint_latest(folder, &found, err);
  if (st != TN_OK) return st;
  size_t size = strlen(found) + 1;
  *prefix = tn_alloc(size);
  if (*prefix != NULL) memcpy(*prefix, found, size);
  tn__strfree(found);
  return *prefix != NULL ? TN_OK : tn__no_memory(err, "a prefix", size);
}
