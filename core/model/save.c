/* SPDX-License-Identifier: Apache-2.0 */
/* tn_model_save: a SavedModel from a session. It is written to a folder with a temporary name beside the wanted one,
 * which is renamed when everything in it is on disk. */
#include <core/exec/step/cancellation.h>
#include <core/formats/bundle/bundle.h>
#include <core/model/save.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *join(const char *folder, const char *name)
{
  size_t n = strlen(folder), m = strlen(name);
  char *joined = tn__alloc(n + m + 2);
  if (joined == NULL) return NULL;
  memcpy(joined, folder, n);
  joined[n] = '/';
  memcpy(joined + n + 1, name, m + 1);
  return joined;
}

/* ---- what is saved ---- */

/* The tensors of the signatures in the options must exist. */
static tn_status check_tensor(tn_graph *graph, const char *signature, const char *tensor, tn_error *err)
{
  if (tensor != NULL && tn__node_of(graph, tensor) != NULL) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "signature '%s' names the tensor '%s', but the graph has no such node",
                      signature, tensor == NULL ? "" : tensor);
}

/* The dtype and shape of a tensor "node:1"; dims is in the arena. */
static tn_status describe(tn__saving *s, tn__endpoint *e, tn_error *err)
{
  const char *colon = strrchr(e->tensor, ':');
  int64_t index = 0;
  if (colon != NULL) tn__parse_int(tn__slice_of(colon + 1), &index);
  tn_output o = { tn__node_of(s->graph, e->tensor), (int32_t)index };
  if (index < 0 || (size_t)index >= tn_operation_n_outputs(o.op))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "a signature names the tensor '%s', but node '%s' has %zu outputs",
                        e->tensor, tn_operation_name(o.op), tn_operation_n_outputs(o.op));
  int64_t *dims = tn__arena_alloc(&s->arena, TN_MAX_RANK * sizeof *dims);
  if (dims == NULL) return tn__no_memory(err, "a shape", TN_MAX_RANK * sizeof *dims);
  e->dtype = tn_operation_output_dtype(o.op, (size_t)index);
  e->dims = dims;
  return tn_output_shape(o, dims, TN_MAX_RANK, &e->rank, err);
}

static tn_status make_endpoints(tn__saving *s, const char *signature, const char *const *keys,
                                const char *const *tensors, size_t n, tn__endpoint **out, tn_error *err)
{
  *out = tn__arena_array(&s->arena, n, sizeof **out);
  if (*out == NULL) return tn__no_memory(err, "a signature", n * sizeof **out);
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < n; i++) {
    if (keys == NULL || keys[i] == NULL || tensors == NULL)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "signature '%s': key %zu or its tensor is NULL", signature, i);
    (*out)[i] = (tn__endpoint){ .key = keys[i], .tensor = tensors[i] };
    st = check_tensor(s->graph, signature, tensors[i], err);
    if (st == TN_OK) st = describe(s, &(*out)[i], err);
  }
  return st;
}

static tn_status make_signatures(tn__saving *s, const tn_model_save_options *o, tn_error *err)
{
  s->meta.signatures = tn__arena_array(&s->arena, o->n_signatures, sizeof *s->meta.signatures);
  s->meta.n_signatures = o->n_signatures;
  if (s->meta.signatures == NULL) return tn__no_memory(err, "signatures", o->n_signatures);
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < o->n_signatures; i++) {
    const tn_model_signature_spec *from =
        (const void *)((const char *)o->signatures + i * o->signatures[0].struct_size);
    tn__signature_def *to = &s->meta.signatures[i];
    if (from->struct_size < TN_SIZE_TO(tn_model_signature_spec, n_outputs) || from->name == NULL)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_model_save_options.signatures[%zu] has no %s", i,
                          from->struct_size < TN_SIZE_TO(tn_model_signature_spec, n_outputs) ? "struct_size" : "name");
    *to = (tn__signature_def){ .name = from->name, .n_inputs = from->n_inputs, .n_outputs = from->n_outputs };
    to->method_name = from->method_name == NULL ? "tensorflow/serving/predict" : from->method_name;
    st = make_endpoints(s, to->name, from->input_keys, from->input_tensors, to->n_inputs, &to->inputs, err);
    if (st == TN_OK)
      st = make_endpoints(s, to->name, from->output_keys, from->output_tensors, to->n_outputs, &to->outputs, err);
  }
  return st;
}

/* Collects what the message around the graph says: that of the session's model, replaced by the options. */
static tn_status make_meta(tn__saving *s, const tn_model_save_options *o, tn_error *err)
{
  static const char *const serve[] = { "serve" };
  const tn__metagraph *own = s->model == NULL ? NULL : tn__model_meta(s->model);
  if (own != NULL) s->meta = *own;
  if (o != NULL && !TN_HAS_FIELD(o, tn_model_save_options, n_signatures))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_model_save_options.struct_size is %zu, wanted at least %zu",
                        o->struct_size, TN_SIZE_TO(tn_model_save_options, n_signatures));
  if (own == NULL || (o != NULL && o->tags != NULL)) {
    bool given = o != NULL && o->tags != NULL;
    s->meta.tags = given ? o->tags : serve;
    s->meta.n_tags = given ? o->n_tags : 1;
    s->meta.info = (tn__slice){ NULL, 0 };
  }
  return o != NULL && o->signatures != NULL && o->n_signatures > 0 ? make_signatures(s, o, err) : TN_OK;
}

/* ---- variables ---- */

/* Adds the value of an item of the model's own saver. */
static tn_status add_item(tn__saving *s, tn__bundle_writer *w, const tn__restored *item, tn_error *err)
{
  tn_tensor *value;
  tn_status st = tn__variable_value(s->session, item->variable, &value, err);
  if (st != TN_OK || value == NULL) return st;
  tn__region region;
  int32_t rank;
  const int64_t *dims;
  if (item->spec.size == 0) {
    st = tn__bundle_writer_add(w, item->key, value, err);
  } else {
    st = tn__slice_spec_parse(item->spec, &s->arena, &rank, &dims, &region, err);
    if (st == TN_OK) st = tn__bundle_writer_add_slice(w, item->key, rank, dims, &region, value, err);
  }
  tn_tensor_unref(value);
  return st;
}

/* A key that the saver reads but assigns to no variable has its value from the model's own checkpoint. TensorFlow's
 * restore functions read the key of the object graph, and fail without it; an empty text serves as well. */
static tn_status add_unused(tn__saving *s, tn__bundle_writer *w, const tn__saver *saver, tn_error *err)
{
  static const char *const empty[] = { "" };
  tn__store *store = NULL;
  tn_status st = TN_OK;
  if (saver->n_unused > 0 && s->model->checkpoint != NULL) st = tn__store_open(s->model->checkpoint, &store, err);
  if (st != TN_OK && st != TN_RESOURCE_EXHAUSTED) { /* the files may be gone since */
    tn__error_reset(err);
    st = TN_OK;
  }
  for (size_t i = 0; st == TN_OK && i < saver->n_unused; i++) {
    const tn__stored *entry = store == NULL ? NULL : tn__store_find(store, saver->unused[i]);
    tn_tensor *value = NULL;
    st = entry != NULL ? tn__store_read(store, entry, &value, err)
                       : tn_tensor_from_strings(NULL, 0, empty, NULL, &value, err);
    if (st == TN_OK) st = tn__bundle_writer_add(w, saver->unused[i], value, err);
    tn_tensor_unref(value);
  }
  tn__store_close(store);
  return st;
}

static tn_status write_items(tn__saving *s, const tn__saver *saver, const char *prefix, tn_error *err)
{
  tn__bundle_writer *w;
  tn_status st = tn__bundle_writer_open(prefix, 1, &w, err);
  if (st != TN_OK) return st;
  for (size_t i = 0; st == TN_OK && i < saver->n; i++) st = add_item(s, w, &saver->items[i], err);
  if (st == TN_OK) st = add_unused(s, w, saver, err);
  if (st == TN_OK) return tn__bundle_writer_commit(w, err);
  tn__bundle_writer_abandon(w);
  return st;
}

/* Runs the save op of a saver that does more than write variables, such as one with tables. The step may write to the
 * folder that is being saved, whatever the session allows. */
static tn_status run_saver(tn__saving *s, const char *prefix, tn_error *err)
{
  tn_tensor *path = NULL, *saved = NULL;
  tn_run_options call;
  tn__folders granted = { .lists = { [TN__TO_READ] = { .n = 0 } } };
  if (s->meta.saver_save == NULL)
    return tn_error_set(err, TN_UNIMPLEMENTED, "the saver of '%s' names no tensor that saves", s->model->path);
  tn_status st = tn__folders_add(&granted, TN__TO_WRITE, s->folder, err);
  tn_run_options_init(&call);
  if (st == TN_OK) st = tn_cancellation_create(NULL, &call.cancellation, err);
  if (st == TN_OK) st = tn_tensor_from_strings(NULL, 0, &prefix, NULL, &path, err);
  if (st == TN_OK) {
    call.cancellation->folders = &granted;
    st = tn_session_run(s->session, &call, &s->meta.saver_filename, &path, 1, &s->meta.saver_save, &saved, 1, NULL, 0,
                        NULL, err);
  }
  tn_tensor_unref(path);
  tn_tensor_unref(saved);
  tn_cancellation_unref(call.cancellation);
  tn__folders_fini(&granted);
  return st;
}

/* Writes the variables by the model's saver if it has one, else by a new one, which is added to a copy of the graph. */
static tn_status save_variables(tn__saving *s, tn_error *err)
{
  tn__saver saver = { .n = 0 };
  char *folder = join(s->folder, "variables"), *prefix = join(s->folder, "variables/variables");
  tn_status st = folder == NULL || prefix == NULL ? tn__no_memory(err, "a path", strlen(s->folder)) : TN_OK;
  if (st == TN_OK && mkdir(folder, 0777) != 0) st = tn__system_error(err, errno, "cannot make the folder '%s'", folder);
  bool own = s->meta.saver_restore != NULL && s->meta.saver_filename != NULL && s->meta.saver_version != 1;
  if (st == TN_OK) st = own ? tn__saver_read(s->model, &saver, err) : tn__saver_add_new(s, &saver, err);
  if (st == TN_OK && !saver.usual) st = run_saver(s, prefix, err);
  else if (st == TN_OK && (own || saver.n > 0)) st = write_items(s, &saver, prefix, err);
  tn__saver_fini(&saver);
  tn__strfree(folder);
  tn__strfree(prefix);
  return st;
}

/* ---- assets ---- */

static tn_status copy_file(const char *from, const char *to, tn_error *err)
{
  enum { PIECE = 1 << 18 };
  tn__file file;
  tn__writer w;
  tn_status st = tn__file_open(from, &file, err);
  if (st != TN_OK) return st;
  char *piece = tn__alloc(PIECE);
  st = piece == NULL ? tn__no_memory(err, "a copy of a file", PIECE) : tn__writer_open(&w, to, err);
  bool open = st == TN_OK;
  for (uint64_t done = 0; st == TN_OK && done < file.size;) {
    size_t n = file.size - done < PIECE ? (size_t)(file.size - done) : PIECE;
    st = tn__file_read(&file, done, piece, n, err);
    if (st == TN_OK) st = tn__writer_write(&w, piece, n, err);
    done += n;
  }
  if (st == TN_OK) st = tn__writer_sync(&w, err);
  if (st == TN_OK) st = tn__writer_commit(&w, err);
  else if (open) tn__writer_abandon(&w);
  tn__free(piece, PIECE);
  tn__file_close(&file);
  return st;
}

/* Names of assets may have folders in them. */
static tn_status make_folders(char *path, size_t from, tn_error *err)
{
  for (char *at = path + from; (at = strchr(at, '/')) != NULL; at++) {
    *at = 0;
    int failed = mkdir(path, 0777), number = errno;
    *at = '/';
    if (failed != 0 && number != EEXIST) return tn__system_error(err, number, "cannot make the folders of '%s'", path);
    if (failed != 0) continue;
    *at = 0;
    tn_status st = tn__folder_sync(path, err);
    *at = '/';
    if (st != TN_OK) return st;
  }
  return TN_OK;
}

static tn_status save_assets(tn__saving *s, tn_error *err)
{
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && s->model != NULL && i < s->model->n_assets; i++) {
    char *assets = join(s->folder, "assets"), *to = assets == NULL ? NULL : join(assets, s->meta.assets[i].filename);
    st = to == NULL ? tn__no_memory(err, "a path", strlen(s->folder)) : make_folders(to, strlen(s->folder) + 1, err);
    if (st == TN_OK) st = copy_file(s->model->assets[i], to, err);
    if (st == TN_OK) st = tn__folder_sync(to, err);
    tn__strfree(to);
    tn__strfree(assets);
  }
  return st;
}

/* ---- the folder ---- */

static tn_status write_message(tn__saving *s, tn_error *err)
{
  char *path = join(s->folder, "saved_model.pb");
  if (path == NULL) return tn__no_memory(err, "a path", strlen(s->folder));
  tn_status st = tn__saved_model_write(&s->meta, s->graph, path, err);
  if (st == TN_OK) st = tn__folder_sync(path, err);
  tn__strfree(path);
  return st;
}

static tn_status write_parts(tn__saving *s, const tn_model_save_options *options, tn_error *err)
{
  tn_status st = make_meta(s, options, err);
  if (st == TN_OK) st = save_variables(s, err);
  if (st == TN_OK) st = save_assets(s, err);
  return st == TN_OK ? write_message(s, err) : st;
}

/* Makes the folder with a temporary name beside the wanted one. */
static tn_status make_folder(tn__saving *s, const char *wanted, tn_error *err)
{
  static atomic_uint counter;
  enum { ENDING = 48 };
  size_t n = strlen(wanted);
  while (n > 1 && wanted[n - 1] == '/') n--;
  char *name = tn__alloc(n + ENDING);
  if (name == NULL) return tn__no_memory(err, "a path", n);
  memcpy(name, wanted, n);
  int failed = -1, number = EEXIST;
  for (int attempt = 0; failed != 0 && number == EEXIST && attempt < 100; attempt++) {
    tn__snprintf(name + n, ENDING, ".tenon-%lx-%x", (unsigned long)getpid(), atomic_fetch_add(&counter, 1));
    failed = mkdir(name, 0777);
    number = errno;
  }
  s->folder = failed == 0 ? tn__strdup(name) : NULL;
  if (failed == 0 && s->folder == NULL) rmdir(name);
  tn__free(name, n + ENDING);
  if (failed != 0) return tn__system_error(err, number, "cannot make a folder beside '%s'", wanted);
  return s->folder == NULL ? tn__no_memory(err, "a path", n) : TN_OK;
}

/* Waits until the name of the complete folder is on the disk. */
static tn_status sync_name(const char *wanted, tn_error *err)
{
  size_t n = strlen(wanted);
  while (n > 1 && wanted[n - 1] == '/') n--;
  char *name = tn__strndup(wanted, n);
  if (name == NULL) return tn__no_memory(err, "a path", n);
  tn_status st = tn__folder_sync(name, err);
  tn__strfree(name);
  return st;
}

/* An empty folder of this name is replaced; a system call says whether it is empty. */
static tn_status put_in_place(const tn__saving *s, const char *wanted, tn_error *err)
{
  if (rename(s->folder, wanted) == 0) {
    tn_status st = sync_name(wanted, err);
    if (st != TN_OK) tn__tree_remove(wanted); /* a save that failed leaves nothing */
    return st;
  }
  int number = errno;
  if (number == ENOTEMPTY || number == EEXIST || number == ENOTDIR)
    return tn_error_set(err, TN_ALREADY_EXISTS, "'%s' exists and is no empty folder: nothing was written", wanted);
  return tn__system_error(err, number, "cannot give the saved model its name '%s'", wanted);
}

static tn_status save(tn__saving *s, const char *folder, const tn_model_save_options *options, tn_error *err)
{
  struct stat there;
  tn_status st = tn__session_need_graph(s->session, &s->graph, err);
  if (st != TN_OK) return st;
  tn_graph_ref(s->graph);
  if (stat(folder, &there) == 0 && !S_ISDIR(there.st_mode))
    return tn_error_set(err, TN_ALREADY_EXISTS, "'%s' exists and is no folder: nothing was written", folder);
  st = make_folder(s, folder, err);
  if (st == TN_OK) st = write_parts(s, options, err);
  return st == TN_OK ? put_in_place(s, folder, err) : st;
}

tn_status tn_model_save(tn_session *session, const char *folder, const tn_model_save_options *options, tn_error *err)
{
  tn__error_reset(err);
  if (session == NULL || folder == NULL || *folder == 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_model_save: %s", session == NULL ? "session is NULL"
                                                                                       : "the folder is NULL or empty");
  tn_status st = tn__session_enter(session, err);
  if (st != TN_OK) return st;
  tn__saving s = { .session = session, .model = tn_session_model(session) };
  tn__arena_init(&s.arena, 4096);
  st = save(&s, folder, options, err);
  if (st != TN_OK && s.folder != NULL) tn__tree_remove(s.folder);
  tn__strfree(s.folder);
  tn__arena_fini(&s.arena);
  tn_graph_unref(s.graph);
  tn_graph_unref(s.held);
  tn__session_leave(session);
  return st;
}
