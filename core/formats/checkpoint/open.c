/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a checkpoint of any version, and finds tensors by their keys. */
#include <core/formats/checkpoint/checkpoint.h>

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include <core/base/near.h>

static bool is_folder(const char *path)
{
  struct stat st;
  return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static tn_status nothing_there(const char *path, tn_error *err)
{
  struct stat st;
  if (stat(path, &st) == 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "'%s' is not a checkpoint: there is no file '%s.index'", path, path);
  if (errno != ENOENT && errno != ENOTDIR) return tn__system_error(err, errno, "cannot examine '%s'", path);
  return tn_error_set(err, TN_NOT_FOUND, "there is no checkpoint '%s': neither '%s.index' nor a file or folder '%s'",
                      path, path, path);
}

/* ---- opening ---- */

/* Makes the map of the keys, which the kind's reader has found to be unique. */
static tn_status map_keys(tn__store *store, tn_error *err)
{
  if (!tn__map_reserve(&store->by_key, store->n)) return tn__no_memory(err, "the keys of a checkpoint", store->n);
  for (size_t i = 0; i < store->n; i++) {
    tn__stored *e = &store->entries[i];
    if (!tn__map_put(&store->by_key, e->key, e->key_size, e, NULL))
      return tn__no_memory(err, "the keys of a checkpoint", store->n * sizeof(tn__map_entry));
  }
  return TN_OK;
}

/* Opens the checkpoint of a prefix, file or pattern; takes ownership of `path`. */
static tn_status open_kind(const tn__store_kind *kind, char *path, tn__store **out, tn_error *err)
{
  tn__store *store = tn__zalloc(sizeof(*store));
  if (store == NULL) {
    tn__strfree(path);
    return tn__no_memory(err, "a checkpoint", sizeof(*store));
  }
  store->kind = kind;
  store->prefix = path;
  tn__arena_init(&store->arena, 4096);
  tn__map_init(&store->by_key);
  tn_status s = kind->open(store, err);
  if (s == TN_OK) s = map_keys(store, err);
  if (s != TN_OK) {
    tn__store_close(store);
    return s;
  }
  *out = store;
  return TN_OK;
}

/* A folder without a state file may still be named like a checkpoint, so the kinds are asked first. */
tn_status tn__store_open(const char *path, tn__store **out, tn_error *err)
{
  *out = NULL;
  const tn__store_kind *kind = tn__store_kind_of(path);
  char *prefix = NULL;
  tn_status s = TN_OK;
  if (kind == NULL && is_folder(path)) {
    s = tn__checkpoint_latest(path, &prefix, err);
    if (s == TN_OK && (kind = tn__store_kind_of(prefix)) == NULL) s = nothing_there(prefix, err);
  } else if (kind == NULL) {
    s = nothing_there(path, err);
  } else if ((prefix = tn__strdup(path)) == NULL) {
    s = tn__no_memory(err, "the name of a checkpoint", strlen(path) + 1);
  }
  if (s == TN_OK) return open_kind(kind, prefix, out, err);
  tn__strfree(prefix);
  return s;
}

void tn__store_close(tn__store *store)
{
  if (store == NULL) return;
  store->kind->close(store);
  tn__map_fini(&store->by_key);
  tn__arena_fini(&store->arena);
  tn__strfree(store->prefix);
  tn__free(store, sizeof(*store));
}

/* ---- keys ---- */

const tn__stored *tn__store_find(const tn__store *store, tn__slice key)
{
  return tn__map_get(&store->by_key, key.size == 0 ? "" : key.data, key.size);
}

/* Appends the key that is nearest to the wanted one, else some of the keys. */
static void append_keys(const tn__store *store, const char *wanted, tn__text *text)
{
  enum { MOST = 8 };
  tn__near near;
  tn__near_init(&near, wanted);
  for (size_t i = 0; i < store->n; i++) tn__near_offer(&near, store->entries[i].key);
  tn__near_append(&near, text);
  if (near.best != NULL) return;
  tn__text_puts(text, store->n == 0 ? "; it has none" : "; it has ");
  for (size_t i = 0; i < store->n && i < MOST; i++)
    tn__text_printf(text, "%s'%.100s'", i > 0 ? ", " : "", store->entries[i].key);
  if (store->n > MOST) tn__text_printf(text, " and %zu more", store->n - MOST);
}

tn_status tn__store_get(const tn__store *store, tn__slice key, const tn__stored **out, tn_error *err)
{
  *out = tn__store_find(store, key);
  if (*out != NULL) return TN_OK;
  tn__text text;
  tn__text_init(&text, 4096);
  char *wanted = tn__strndup(key.size == 0 ? "" : key.data, key.size);
  if (wanted != NULL) append_keys(store, wanted, &text);
  tn_status s = tn_error_set(err, TN_NOT_FOUND, "%s '%s' has no tensor '%.200s'%s", store->kind->name, store->prefix,
                             wanted == NULL ? "" : wanted, tn__text_get(&text));
  tn__text_fini(&text);
  tn__strfree(wanted);
  return s;
}
