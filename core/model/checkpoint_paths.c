/* SPDX-License-Identifier: Apache-2.0 */
/* Paths through the object graph of a checkpoint. checkpoint.h says how threads share the graph. */
#include <core/model/checkpoint.h>

#include <string.h>

/* ---- the graph ---- */

void tn__objects_destroy(tn__objects *objects)
{
  if (objects == NULL) return;
  tn__object_graph_destroy(objects->graph);
  tn_tensor_unref(objects->message);
  tn__free(objects, sizeof *objects);
}

/* The object graph is the only element of a string tensor. */
static tn_status parse_message(const tn__store *store, tn__objects *objects, tn_error *err)
{
  tn_tensor *message = objects->message;
  if (message->dtype != TN_STRING || message->count != 1)
    return tn_error_set(err, TN_DATA_LOSS, "'%s': %s is a tensor of %s with %lld elements, wanted one string",
                        store->prefix, TN__OBJECT_GRAPH_KEY, tn_dtype_name(message->dtype), (long long)message->count);
  tn__slice bytes = { NULL, 0 };
  bytes.data = tn_string_data(message->data, &bytes.size);
  return tn__object_graph_read(bytes, store->prefix, &objects->graph, err);
}

static tn_status read_objects(tn__store *store, const tn__stored *entry, tn__objects **out, tn_error *err)
{
  tn__objects *objects = tn__zalloc(sizeof *objects);
  if (objects == NULL) return tn__no_memory(err, "an object graph", sizeof *objects);
  tn_status st = tn__store_read(store, entry, &objects->message, err);
  if (st == TN_OK) st = parse_message(store, objects, err);
  if (st == TN_OK)
    *out = objects;
  else
    tn__objects_destroy(objects);
  return st;
}

/* The checkpoint is const for its callers; what is read at first use is no part of its value. */
static tn_checkpoint *unlocked(const tn_checkpoint *checkpoint) { return (tn_checkpoint *)(uintptr_t)checkpoint; }

tn_status tn__checkpoint_graph(const tn_checkpoint *checkpoint, const tn__object_graph **out, tn_error *err)
{
  tn_checkpoint *c = unlocked(checkpoint);
  tn__objects *objects = atomic_load_explicit(&c->objects, memory_order_acquire), *mine = NULL;
  *out = NULL;
  if (objects == NULL) {
    const tn__stored *entry = tn__store_find(c->store, tn__slice_of(TN__OBJECT_GRAPH_KEY));
    if (entry == NULL) return TN_OK;
    tn_status st = read_objects(c->store, entry, &mine, err);
    if (st != TN_OK) return st;
    if (atomic_compare_exchange_strong(&c->objects, &objects, mine))
      objects = mine;
    else
      tn__objects_destroy(mine);
  }
  *out = objects->graph;
  return TN_OK;
}

/* ---- one path ---- */

/* The tensors of a table, which is one attribute in the object graph. */
static const char *const table_suffixes[] = { "-keys", "-values" };
#define TENSORS_MOST 2

/* The tensor of a key with a suffix; NULL: the checkpoint has none. */
static tn_status find_key(const tn__store *store, const tn__object_key *key, const tn__stored **out, tn_error *err)
{
  *out = NULL;
  if (key->suffix.size == 0) {
    *out = tn__store_find(store, key->key);
    return TN_OK;
  }
  tn__text whole;
  tn__text_init(&whole, SIZE_MAX);
  tn__text_append(&whole, key->key.data, key->key.size);
  tn__text_append(&whole, key->suffix.data, key->suffix.size);
  if (!whole.failed) *out = tn__store_find(store, (tn__slice){ whole.data, whole.size });
  tn_status st = whole.failed ? tn__no_memory(err, "a key", key->key.size + key->suffix.size) : TN_OK;
  tn__text_fini(&whole);
  return st;
}

/* The graph names a key that is not there: it is damaged, or the object is a table. */
static tn_status no_tensor(const tn__store *store, const char *path, const tn__object_key *key, tn_error *err)
{
  const tn__stored *entry = NULL;
  const tn__object_key first = { key->key, tn__slice_of(table_suffixes[0]) };
  bool table = key->suffix.size == 0 && find_key(store, &first, &entry, NULL) == TN_OK && entry != NULL;
  tn_error_set(err, TN_NOT_FOUND,
               "'%s': path '%.200s' leads to the key '%.*s%.*s', of which the checkpoint has no tensor", store->prefix,
               path, (int)(key->key.size < 200 ? key->key.size : 200), key->key.data,
               (int)(key->suffix.size < 200 ? key->suffix.size : 200), key->suffix.size == 0 ? "" : key->suffix.data);
  if (table)
    tn__error_add_cause(err, "the object is a table; '%.200s%s' and '%.200s%s' lead to its tensors", path,
                        table_suffixes[0], path, table_suffixes[1]);
  return TN_NOT_FOUND;
}

static tn_status follow(const tn_checkpoint *checkpoint, const tn__object_graph *graph, const char *path,
                        const tn__stored **out, tn_error *err)
{
  tn__object_key key;
  tn_status st = tn__object_graph_resolve(graph, path, &key, err);
  if (st == TN_OK) st = find_key(checkpoint->store, &key, out, err);
  return st == TN_OK && *out == NULL ? no_tensor(checkpoint->store, path, &key, err) : st;
}

tn_status tn__checkpoint_locate(const tn_checkpoint *checkpoint, const char *key_or_path, const tn__stored **out,
                                tn_error *err)
{
  const tn__object_graph *graph;
  *out = tn__store_find(checkpoint->store, tn__slice_of(key_or_path));
  if (*out != NULL) return TN_OK;
  tn_status st = tn__checkpoint_graph(checkpoint, &graph, err);
  if (st != TN_OK) return st;
  if (graph == NULL) return tn__store_get(checkpoint->store, tn__slice_of(key_or_path), out, err);
  return follow(checkpoint, graph, key_or_path, out, err);
}

tn_status tn__checkpoint_named(const tn_checkpoint *checkpoint, const char *name, const tn__stored **out, tn_error *err)
{
  const tn__object_graph *graph;
  tn__slice key;
  *out = tn__store_find(checkpoint->store, tn__slice_of(name));
  if (*out != NULL) return TN_OK;
  tn_status st = tn__checkpoint_graph(checkpoint, &graph, err);
  if (st == TN_OK && graph != NULL && tn__object_graph_named(graph, tn__slice_of(name), &key) == 1)
    *out = tn__store_find(checkpoint->store, key);
  return st;
}

tn_status tn_checkpoint_resolve(const tn_checkpoint *checkpoint, const char *path, const char **key, tn_error *err)
{
  const tn__object_graph *graph;
  const tn__stored *entry;
  tn__error_reset(err);
  if (key != NULL) *key = NULL;
  if (checkpoint == NULL || path == NULL || key == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_checkpoint_resolve: checkpoint, path or key is NULL");
  tn_status st = tn__checkpoint_graph(checkpoint, &graph, err);
  if (st == TN_OK && graph == NULL)
    st = tn_error_set(err, TN_FAILED_PRECONDITION,
                      "'%s' has no object graph, so path '%.200s' cannot be followed: it is not an object-based "
                      "checkpoint",
                      checkpoint->store->prefix, path);
  if (st == TN_OK) st = follow(checkpoint, graph, path, &entry, err);
  if (st == TN_OK) *key = entry->key;
  return st;
}

/* ---- the list ---- */

void tn__path_list_destroy(tn__path_list *list)
{
  if (list == NULL) return;
  tn__arena_fini(&list->arena);
  tn__free(list, sizeof *list);
}

static tn_status add_table(const tn__store *store, const tn__object_path *path, tn__path_list *list, tn_error *err)
{
  for (size_t i = 0; i < TENSORS_MOST; i++) {
    const tn__stored *entry;
    const tn__object_key key = { path->key, tn__slice_of(table_suffixes[i]) };
    tn_status st = find_key(store, &key, &entry, err);
    if (st != TN_OK) return st;
    if (entry == NULL) continue;
    size_t size = strlen(path->path);
    char *text = tn__arena_alloc(&list->arena, size + key.suffix.size + 1);
    if (text == NULL) return tn__no_memory(err, "a path", size + key.suffix.size + 1);
    memcpy(text, path->path, size);
    memcpy(text + size, key.suffix.data, key.suffix.size + 1);
    list->paths[list->n++] = (tn__listed_path){ text, entry };
  }
  return TN_OK;
}

/* Adds the tensors to which a path leads: that of its key, or else those of a table. */
static tn_status add_path(const tn__store *store, const tn__object_path *path, tn__path_list *list, tn_error *err)
{
  const tn__stored *entry = tn__store_find(store, path->key);
  if (entry == NULL) return path->attribute ? add_table(store, path, list, err) : TN_OK;
  list->paths[list->n++] = (tn__listed_path){ path->path, entry };
  return TN_OK;
}

/* Keeps the paths that lead to tensors of the checkpoint. */
static tn_status fill_list(const tn__store *store, const tn__object_graph *graph, tn__path_list *list, tn_error *err)
{
  tn__object_path *paths;
  size_t n = 0;
  tn_status st = tn__object_graph_paths(graph, &list->arena, &paths, &n, err);
  if (st != TN_OK) return st;
  list->paths = tn__arena_array(&list->arena, n, TENSORS_MOST * sizeof *list->paths);
  if (list->paths == NULL) return tn__no_memory(err, "a list of paths", n * TENSORS_MOST * sizeof *list->paths);
  for (size_t i = 0; st == TN_OK && i < n; i++) st = add_path(store, &paths[i], list, err);
  return st;
}

static tn_status read_list(const tn_checkpoint *checkpoint, tn__path_list **out, tn_error *err)
{
  const tn__object_graph *graph;
  tn_status st = tn__checkpoint_graph(checkpoint, &graph, err);
  if (st != TN_OK) return st;
  tn__path_list *list = tn__zalloc(sizeof *list);
  if (list == NULL) return tn__no_memory(err, "a list of paths", sizeof *list);
  tn__arena_init(&list->arena, 4096);
  if (graph != NULL) st = fill_list(checkpoint->store, graph, list, err);
  if (st == TN_OK)
    *out = list;
  else
    tn__path_list_destroy(list);
  return st;
}

static tn_status path_list(const tn_checkpoint *checkpoint, const tn__path_list **out, tn_error *err)
{
  tn_checkpoint *c = unlocked(checkpoint);
  tn__path_list *list = atomic_load_explicit(&c->path_list, memory_order_acquire), *mine = NULL;
  if (list == NULL) {
    tn_status st = read_list(checkpoint, &mine, err);
    if (st != TN_OK) return st;
    if (atomic_compare_exchange_strong(&c->path_list, &list, mine))
      list = mine;
    else
      tn__path_list_destroy(mine);
  }
  *out = list;
  return TN_OK;
}

/* An object graph that cannot be read has no paths; tn_checkpoint_path_at returns its error. */
size_t tn_checkpoint_path_count(const tn_checkpoint *checkpoint)
{
  const tn__path_list *list;
  return checkpoint != NULL && path_list(checkpoint, &list, NULL) == TN_OK ? list->n : 0;
}

tn_status tn_checkpoint_path_at(const tn_checkpoint *checkpoint, size_t i, const char **path, const char **key,
                                tn_error *err)
{
  const tn__path_list *list;
  tn__error_reset(err);
  if (path != NULL) *path = NULL;
  if (key != NULL) *key = NULL;
  if (checkpoint == NULL || path == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_checkpoint_path_at: checkpoint or path is NULL");
  tn_status st = path_list(checkpoint, &list, err);
  if (st != TN_OK) return st;
  if (i >= list->n)
    return tn_error_set(err, TN_OUT_OF_RANGE, "path %zu requested from '%s', which has %zu", i,
                        checkpoint->store->prefix, list->n);
  *path = list->paths[i].path;
  if (key != NULL) *key = list->paths[i].entry->key;
  return TN_OK;
}
