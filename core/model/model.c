/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a model: finds out what the path is, reads the message around the graph, and imports the graph. */
#include <core/formats/file.h>
#include <core/model/model.h>

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void free_texts(char **texts, size_t n)
{
  for (size_t i = 0; texts != NULL && i < n; i++) tn__strfree(texts[i]);
  tn__free(texts, n * sizeof *texts);
}

void tn_model_close(tn_model *model)
{
  if (model == NULL || atomic_fetch_sub_explicit(&model->refs, 1, memory_order_acq_rel) != 1) return;
  tn_graph_unref(model->graph);
  tn__saved_model_close(model->saved);
  free_texts(model->assets, model->n_assets);
  free_texts(model->folders, model->n_folders);
  tn__strfree(model->checkpoint);
  tn__strfree(model->folder);
  tn__strfree(model->path);
  tn__free(model, sizeof *model);
}

/* ---- sessions of a model ---- */

static void release(void *model) { tn_model_close(model); }

void tn__model_hold(tn_session *session, tn_model *model)
{
  atomic_fetch_add_explicit(&model->refs, 1, memory_order_relaxed);
  tn__session_hold(session, model, release);
}

tn_model *tn_session_model(const tn_session *session)
{
  return session == NULL || session->release_held != release ? NULL : session->held;
}

/* ---- paths ---- */

static bool ends_in(const char *path, const char *ending)
{
  size_t n = strlen(path), m = strlen(ending);
  return n > m && strcmp(path + n - m, ending) == 0;
}

/* Whether the last part of the path is this name. */
static bool is_named(const char *path, const char *name)
{
  const char *slash = strrchr(path, '/');
  return strcmp(slash == NULL ? path : slash + 1, name) == 0;
}

static char *join(const char *folder, const char *name)
{
  tn__text text;
  tn__text_init(&text, PATH_MAX + strlen(name));
  tn__text_printf(&text, "%s/%s", folder, name);
  char *joined = text.failed ? NULL : tn__strdup(tn__text_get(&text));
  tn__text_fini(&text);
  return joined;
}

static bool is_file(const char *path)
{
  struct stat st;
  return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static bool is_folder(const char *path)
{
  struct stat st;
  return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The real path of a file or folder that exists. */
static tn_status real_path(const char *path, char **out, tn_error *err)
{
  char resolved[PATH_MAX];
  if (realpath(path, resolved) == NULL) return tn__system_error(err, errno, "cannot open the model '%.4096s'", path);
  *out = tn__strdup(resolved);
  return *out == NULL ? tn__no_memory(err, "a path", strlen(resolved)) : TN_OK;
}

/* Sets model->folder to the folder of the file model->path. */
static tn_status set_folder(tn_model *model, tn_error *err)
{
  const char *slash = strrchr(model->path, '/');
  size_t n = slash == NULL || slash == model->path ? 1 : (size_t)(slash - model->path);
  model->folder = tn__strndup(slash == NULL ? "." : model->path, n);
  return model->folder == NULL ? tn__no_memory(err, "a path", n) : TN_OK;
}

/* ---- options ---- */

static tn_status check_options(const tn_model_options *options, tn_error *err)
{
  if (options == NULL) return TN_OK;
  if (!TN_HAS_FIELD(options, tn_model_options, n_tags))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_model_options.struct_size is %zu, wanted at least %zu",
                        options->struct_size, TN_SIZE_TO(tn_model_options, n_tags));
  if (options->n_tags > 0 && options->tags == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_model_options.tags is NULL, but n_tags is %zu", options->n_tags);
  for (size_t i = 0; i < options->n_tags; i++)
    if (options->tags[i] == NULL)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_model_options.tags[%zu] is NULL", i);
  if (!TN_HAS_FIELD(options, tn_model_options, n_folders)) return TN_OK;
  if (options->n_folders > 0 && options->folders == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_model_options.folders is NULL, but n_folders is %zu",
                        options->n_folders);
  for (size_t i = 0; i < options->n_folders; i++)
    if (options->folders[i] == NULL)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_model_options.folders[%zu] is NULL", i);
  return TN_OK;
}

static tn_status copy_folders(tn_model *model, const tn_model_options *options, tn_error *err)
{
  if (options == NULL || !TN_HAS_FIELD(options, tn_model_options, n_folders) || options->n_folders == 0) return TN_OK;
  model->folders = tn__zalloc(options->n_folders * sizeof *model->folders);
  if (model->folders == NULL) return tn__no_memory(err, "folders of a model", options->n_folders);
  model->n_folders = options->n_folders;
  for (size_t i = 0; i < options->n_folders; i++) {
    model->folders[i] = tn__strdup(options->folders[i]);
    if (model->folders[i] == NULL) return tn__no_memory(err, "a path", strlen(options->folders[i]));
  }
  return TN_OK;
}

static const char *option_checkpoint(const tn_model_options *options)
{
  return options != NULL && TN_HAS_FIELD(options, tn_model_options, checkpoint) ? options->checkpoint : NULL;
}

/* ---- the parts of a model ---- */

/* The checkpoint of a MetaGraph without one in the options: files with the same prefix beside it. */
static tn_status checkpoint_beside(tn_model *model, tn_error *err)
{
  size_t n = strlen(model->path) - strlen(".meta");
  if (!ends_in(model->path, ".meta")) return TN_OK;
  char *prefix = tn__strndup(model->path, n), *index = prefix == NULL ? NULL : tn__zalloc(n + sizeof ".index");
  if (index == NULL) {
    tn__strfree(prefix);
    return tn__no_memory(err, "a path", n);
  }
  memcpy(index, prefix, n);
  memcpy(index + n, ".index", sizeof ".index");
  bool there = is_file(index) || is_file(prefix);
  tn__free(index, n + sizeof ".index");
  if (there) model->checkpoint = prefix;
  else tn__strfree(prefix);
  return TN_OK;
}

/* A SavedModel's own checkpoint is variables/variables, unless the model has no saver. */
static tn_status find_checkpoint(tn_model *model, const char *given, tn_error *err)
{
  if (given != NULL) {
    model->checkpoint = tn__strdup(given);
    return model->checkpoint == NULL ? tn__no_memory(err, "a path", strlen(given)) : TN_OK;
  }
  const tn__metagraph *m = tn__model_meta(model);
  model->own_checkpoint = true;
  if (m == NULL || m->saver_restore == NULL) return TN_OK;
  if (model->kind == TN_MODEL_META_GRAPH) return checkpoint_beside(model, err);
  model->checkpoint = join(model->folder, "variables/variables");
  return model->checkpoint == NULL ? tn__no_memory(err, "a path", strlen(model->folder)) : TN_OK;
}

static tn_status find_assets(tn_model *model, tn_error *err)
{
  const tn__metagraph *m = tn__model_meta(model);
  if (m == NULL || m->n_assets == 0) return TN_OK;
  model->assets = tn__zalloc(m->n_assets * sizeof *model->assets);
  if (model->assets == NULL) return tn__no_memory(err, "assets of a model", m->n_assets);
  model->n_assets = m->n_assets;
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < m->n_assets; i++)
    st = tn__asset_path(model->folder, m->assets[i].filename, &model->assets[i], err);
  return st;
}

static tn_status read_saved(tn_model *model, const tn_model_options *options, tn_error *err)
{
  tn_status st = tn__saved_model_open(model->path, &model->saved, err);
  if (st != TN_OK) return st;
  const char *const *tags = options == NULL ? NULL : options->tags;
  st = tn__saved_model_choose(model->saved, tags, options == NULL ? 0 : options->n_tags, &model->chosen, err);
  if (st == TN_OK)
    st = tn__graph_import_slice(model->graph, tn__model_meta(model)->graph, model->saved->file, model->saved->name,
                                NULL, err);
  return st == TN_OK && model->kind == TN_MODEL_SAVED ? find_assets(model, err) : st;
}

static tn_status refuse_tags(const tn_model *model, const tn_model_options *options, tn_error *err)
{
  if (options == NULL || options->n_tags == 0) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "'%s' is a GraphDef, which has no tags; '%s' was asked for",
                      model->path, options->tags[0]);
}

/* Whether a file with another name is a SavedModel or a MetaGraph. */
static tn_status is_saved(const tn_model *model, bool *out, tn_error *err)
{
  tn__saved_model *saved;
  tn_status st = tn__saved_model_open(model->path, &saved, NULL);
  *out = st == TN_OK;
  if (st == TN_RESOURCE_EXHAUSTED) return tn__no_memory(err, model->path, 0);
  if (st == TN_OK) tn__saved_model_close(saved);
  return TN_OK;
}

/* A file that is no GraphDef may be a MetaGraph without the usual ending. */
static tn_status read_graph(tn_model *model, const char *path, const tn_model_options *options, tn_error *err)
{
  tn_status st = tn_graph_import_file(model->graph, path, NULL, err);
  if (st == TN_OK) return refuse_tags(model, options, err);
  if (st != TN_INVALID_ARGUMENT) return st;
  bool saved;
  tn_status tried = is_saved(model, &saved, err);
  if (tried != TN_OK) return tried;
  if (!saved) return st;
  tn__error_reset(err);
  model->kind = TN_MODEL_META_GRAPH;
  return read_saved(model, options, err);
}

/* A folder is a SavedModel; a file with one of its names, too. Sets kind, path (that of the file) and folder. */
static tn_status find_file(tn_model *model, const char *path, tn_error *err)
{
  tn_status st = real_path(path, &model->path, err);
  if (st != TN_OK) return st;
  if (!is_folder(model->path)) {
    model->kind = is_named(path, "saved_model.pb") || is_named(path, "saved_model.pbtxt") ? TN_MODEL_SAVED
                                                                                          : TN_MODEL_GRAPH;
    if (ends_in(path, ".meta")) model->kind = TN_MODEL_META_GRAPH;
    return set_folder(model, err);
  }
  model->kind = TN_MODEL_SAVED;
  model->folder = model->path;
  model->path = join(model->folder, "saved_model.pb");
  if (model->path != NULL && !is_file(model->path)) {
    char *text = join(model->folder, "saved_model.pbtxt");
    if (text == NULL) return tn__no_memory(err, "a path", strlen(model->folder));
    if (!is_file(text)) {
      tn__strfree(text);
      return tn_error_set(err, TN_NOT_FOUND,
                          "'%s' is no SavedModel: it has neither saved_model.pb nor saved_model.pbtxt", model->folder);
    }
    tn__strfree(model->path);
    model->path = text;
  }
  return model->path == NULL ? tn__no_memory(err, "a path", strlen(model->folder)) : TN_OK;
}

static tn_status read_model(tn_model *model, const char *path, const tn_model_options *options, tn_error *err)
{
  tn_status st = find_file(model, path, err);
  if (st == TN_OK) st = tn_graph_create(&model->graph, err);
  if (st == TN_OK) st = copy_folders(model, options, err);
  if (st == TN_OK)
    st = model->kind == TN_MODEL_GRAPH ? read_graph(model, path, options, err) : read_saved(model, options, err);
  return st == TN_OK ? find_checkpoint(model, option_checkpoint(options), err) : st;
}

tn_status tn_model_open(const char *path, const tn_model_options *options, tn_model **out, tn_error *err)
{
  tn__error_reset(err);
  if (out != NULL) *out = NULL;
  if (path == NULL || *path == 0 || out == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_model_open: %s",
                        out == NULL ? "out is NULL" : "the path is NULL or empty");
  tn_status st = check_options(options, err);
  if (st != TN_OK) return st;
  tn_model *model = tn__zalloc(sizeof *model);
  if (model == NULL) return tn__no_memory(err, "model", sizeof *model);
  atomic_init(&model->refs, 1);
  st = read_model(model, path, options, err);
  if (st == TN_OK) *out = model;
  else tn_model_close(model);
  return st;
}
