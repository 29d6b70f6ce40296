/* SPDX-License-Identifier: Apache-2.0 */
/* A session of a model: its graph, its variables, its tables. */
#include <core/model/model.h>

#include <string.h>
#include <strings.h>

#define MOST_CPUS 256 /* that a model gets without the option device_count */

/* ---- options ---- */

/* Allows the graph to read a folder. The root is no folder of a model: all files are in it. */
static tn_status allow(tn_session_options *o, const char *folder, tn_error *err)
{
  return strcmp(folder, "/") == 0 ? TN_OK : tn_session_options_add_read_folder(o, folder, err);
}

/* Allows the graph to read the files of the model's checkpoint: in the folder of its prefix, which a path that names a
 * folder leads to. A checkpoint that cannot be found is reported when it is opened. */
static tn_status allow_checkpoint(const tn_model *model, tn_session_options *o, tn_error *err)
{
  tn__store *store;
  if (model->checkpoint == NULL) return TN_OK;
  tn_status st = tn__store_open(model->checkpoint, &store, err);
  if (st == TN_RESOURCE_EXHAUSTED) return st;
  if (st != TN_OK) {
    tn__error_reset(err);
    return TN_OK;
  }
  const char *slash = strrchr(store->prefix, '/');
  size_t n = slash == NULL || slash == store->prefix ? 1 : (size_t)(slash - store->prefix);
  char *folder = tn__strndup(slash == NULL ? "." : store->prefix, n);
  tn__store_close(store);
  if (folder == NULL) return tn__no_memory(err, "a path", n);
  st = allow(o, folder, err);
  tn__strfree(folder);
  return st;
}

/* The highest number of a CPU device that a node requests, 0 if none does. */
static int32_t last_cpu(const tn_graph *graph)
{
  int32_t last = 0;
  size_t n = tn__graph_names_devices(graph) ? tn_graph_n_operations(graph) : 0;
  for (size_t i = 0; i < n; i++) {
    const char *device = tn_operation_device(tn_graph_operation(graph, i));
    tn__device_name name;
    if (*device == 0 || !tn__device_parse(device, strlen(device), &name) || name.id <= last) continue;
    if (name.type.size == 3 && strncasecmp(name.type.data, TN__HOST_DEVICE, 3) == 0) last = name.id;
  }
  return last;
}

/* A saver with a shard for each CPU device was written by a session with several of them. All are the same processor,
 * so the session has as many as the graph names, within reason. */
static tn_status set_devices(const tn_model *model, tn_session_options *o, tn_error *err)
{
  const char *text;
  int32_t last = last_cpu(model->graph);
  if (last == 0 || last >= MOST_CPUS || tn_session_options_get_item(o, "device_count", 0, &text, NULL, NULL) == TN_OK)
    return TN_OK;
  return tn_session_options_set_device_count(o, TN__HOST_DEVICE, last + 1, err);
}

/* The graph may read the model's own folder, that of its checkpoint, and those that the program named. Variables that
 * are restored are the session's own: two sessions whose variables have equal names do not share them. */
static tn_status set_options(const tn_model *model, tn_session_options *o, tn_error *err)
{
  bool restored = model->kind != TN_MODEL_GRAPH || model->checkpoint != NULL;
  tn_status st = restored ? tn_session_options_set_bool(o, "isolate_session_state", 1, err) : TN_OK;
  if (st == TN_OK) st = set_devices(model, o, err);
  if (st == TN_OK) st = allow(o, model->folder, err);
  if (st == TN_OK && !model->own_checkpoint) st = allow_checkpoint(model, o, err);
  for (size_t i = 0; st == TN_OK && i < model->n_folders; i++)
    st = tn_session_options_add_read_folder(o, model->folders[i], err);
  return st;
}

static tn_status create(const tn_model *model, const tn_session_options *given, tn_session **out, tn_error *err)
{
  tn_session_options *o;
  tn_status st = given == NULL ? tn_session_options_create(&o, err) : tn_session_options_copy(given, &o, err);
  if (st != TN_OK) return st;
  st = set_options(model, o, err);
  if (st == TN_OK) st = tn_session_create(o, out, err);
  if (st == TN_OK) st = tn_session_set_graph(*out, model->graph, err);
  tn_session_options_destroy(o);
  return st;
}

/* ---- the init op ---- */

/* The assets' paths as tensors, for the tensors that are fed with them. */
typedef struct asset_feeds {
  const char **names; /* owned; the names are borrowed */
  tn_tensor **paths;
  size_t n, room;
} asset_feeds;

static void asset_feeds_fini(asset_feeds *f)
{
  for (size_t i = 0; f->paths != NULL && i < f->n; i++) tn_tensor_unref(f->paths[i]);
  tn__free(f->names, f->room * sizeof *f->names);
  tn__free(f->paths, f->room * sizeof *f->paths);
}

static bool has_name(const asset_feeds *f, const char *name)
{
  bool found = false;
  for (size_t i = 0; i < f->n && !found; i++) found = strcmp(f->names[i], name) == 0;
  return found;
}

/* A tensor that is listed twice is fed once. Call asset_feeds_fini also after a failure. */
static tn_status asset_feeds_make(const tn_model *model, asset_feeds *f, tn_error *err)
{
  *f = (asset_feeds){ .room = model->n_assets };
  f->names = tn__zalloc(f->room * sizeof *f->names);
  f->paths = tn__zalloc(f->room * sizeof *f->paths);
  if (f->room > 0 && (f->names == NULL || f->paths == NULL)) return tn__no_memory(err, "assets", f->room);
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < model->n_assets; i++) {
    const char *name = tn__model_meta(model)->assets[i].tensor;
    if (has_name(f, name)) continue;
    st = tn_tensor_from_strings(NULL, 0, (const char *const *)&model->assets[i], NULL, &f->paths[f->n], err);
    if (st == TN_OK) f->names[f->n++] = name;
  }
  return st;
}

static tn_status run_init_op(const tn_model *model, tn_session *session, tn_error *err)
{
  const tn__metagraph *m = tn__model_meta(model);
  if (m == NULL || m->init_op == NULL) return TN_OK;
  const tn_operation *op = tn__node_of(model->graph, m->init_op);
  if (op == NULL)
    return tn_error_set(err, TN_NOT_FOUND, "'%s': the init op is '%.200s', but the graph has no such node", model->path,
                        m->init_op);
  const char *target = tn_operation_name(op);
  asset_feeds feeds;
  tn_status st = asset_feeds_make(model, &feeds, err);
  if (st == TN_OK)
    st = tn_session_run(session, NULL, feeds.names, feeds.paths, feeds.n, NULL, NULL, 0, &target, 1, NULL, err);
  asset_feeds_fini(&feeds);
  return st;
}

/* ---- the session ---- */

tn_status tn_model_session(tn_model *model, const tn_session_options *options, tn_session **out, tn_error *err)
{
  tn_session *session = NULL;
  tn__error_reset(err);
  if (out != NULL) *out = NULL;
  if (model == NULL || out == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_model_session: %s is NULL", out == NULL ? "out" : "model");
  tn_status st = create(model, options, &session, err);
  if (session != NULL) tn__model_hold(session, model);
  if (st == TN_OK) st = tn__model_restore(model, session, err);
  if (st == TN_OK) st = run_init_op(model, session, err);
  if (st == TN_OK) *out = session;
  else tn_session_destroy(session);
  return st;
}
