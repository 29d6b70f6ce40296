/* SPDX-License-Identifier: Apache-2.0 */
/* Public functions for plugin files (<tenon/plugins.h>): the search list and its notes, loading by path, and freezing
 * the registry. */
#include <string.h>

#include <core/base/file.h>
#include <core/registry/registry_internal.h>
#include <tenon/plugins.h>

/* *path and *fault are borrowed from the last scan: the next one frees the path. */
tn_status tn_runtime_directory_at(size_t i, const char **path, const char **fault, tn_error *err)
{
  tn__error_reset(err);
  if (path != NULL) *path = NULL;
  if (fault != NULL) *fault = NULL;
  tn_status status = tn__scan_once(err);
  if (status != TN_OK) return status;
  tn__reg_lock();
  if (i >= tn__reg.n_searched)
    status = tn_error_set(err, TN_OUT_OF_RANGE, "plugin folder %zu: there are %zu", i, tn__reg.n_searched);
  else {
    if (path != NULL) *path = tn__reg.searched[i].path;
    if (fault != NULL) *fault = tn__reg.searched[i].fault;
  }
  tn__reg_unlock();
  return status;
}

/* The notes are copied under the mutex, as a rescan replaces them. */
tn_status tn_runtime_notes(char *buffer, size_t size, size_t *needed, tn_error *err)
{
  tn__error_reset(err);
  if (needed != NULL) *needed = 0;
  if (buffer == NULL) size = 0;
  if (size > 0) buffer[0] = 0;
  tn_status status = tn__scan_once(err);
  if (status != TN_OK) return status;
  tn__reg_lock();
  size_t n = tn__reg.notes.size;
  if (needed != NULL) *needed = n;
  if (size > 0) {
    n = n < size ? n : size - 1;
    memcpy(buffer, tn__text_get(&tn__reg.notes), n);
    buffer[n] = 0;
  }
  tn__reg_unlock();
  return TN_OK;
}

/* ---- by path ----
 *
 * A program must allow it first (P-81). The file gets the same checks as one that a scan finds, and enters the list
 * last, so it never takes precedence over a plugin of the same name in a folder. */

tn_status tn_runtime_allow_files(tn_bool allow, tn_error *err)
{
  tn__error_reset(err);
  if (allow && tn__elevated())
    return tn_error_set(err, TN_PERMISSION_DENIED,
                        "loading by path is refused: this process has elevated privileges");
  tn__reg_lock();
  tn__reg.files = allow;
  tn__reg_unlock();
  return TN_OK;
}

/* Whether this process may load the file at all; the file itself is not touched. */
static tn_status may_load_files(const char *path, tn_error *err)
{
  if (path == NULL || path[0] != '/')
    return tn_error_set(err, TN_INVALID_ARGUMENT, "load a file: '%s' is not an absolute path",
                        path != NULL ? path : "");
  if (!tn__path_is_plain(path, strlen(path)))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "load a file: the path has a control character");
  if (!tn__loads_files())
    return tn_error_set(err, TN_UNIMPLEMENTED,
                        "static build: this program is linked statically and cannot load files; '%s' is not loaded",
                        path);
  tn__reg_lock();
  bool allowed = tn__reg.files;
  tn__reg_unlock();
  if (tn__elevated())
    return tn_error_set(err, TN_PERMISSION_DENIED, "'%s' is not loaded: this process has elevated privileges",
                        path);
  if (!allowed)
    return tn_error_set(err, TN_FAILED_PRECONDITION,
                        "'%s' is not loaded: this program does not load plugins by path (tn_runtime_allow_files)",
                        path);
  return TN_OK;
}

/* Returns the plugin in the list that has this file, or adds `made` to the list and returns it. Referenced. */
static tn__plugin *find_or_insert(tn__plugin *made)
{
  tn__reg_lock();
  tn__plugin *p = tn__reg.plugins;
  while (p != NULL && !(tn__same_file(&p->id, &made->id) && p->state != TN__PLUGIN_REFUSED)) p = p->next;
  if (p == NULL) {
    p = made;
    tn__plugin_insert_locked(p);
  }
  tn__plugin_ref_locked(p);
  tn__reg_unlock();
  return p;
}

/* Adds a file to the list as a scan would. The caller holds the token, so no scan replaces the list meanwhile. */
static tn_status add_file(const char *path, bool kernels, tn__plugin **out, tn_error *err)
{
  tn__plugin *made = NULL;
  *out = NULL;
  tn_status status = tn__plugin_create(path, &made, err);
  if (status == TN_OK) status = tn__plugin_examine(made, err);
  if (status == TN_OK && made->state == TN__PLUGIN_REFUSED) {
    tn_error_copy(err, &made->error);
    tn_error_prefix(err, "plugin '%s'", path);
    status = tn_error_code(err);
  }
  if (status == TN_OK && made->manifest.is_kernels != kernels)
    status = tn_error_set(err, TN_INVALID_ARGUMENT, "plugin '%s' provides %s", path,
                          kernels ? "a runtime, wanted ops or kernels"
                                  : "ops or kernels, wanted a runtime");
  if (status != TN_OK) {
    tn__plugin_destroy(made);
    return status;
  }
  made->order = SIZE_MAX;
  *out = find_or_insert(made);
  if (*out != made) tn__plugin_destroy(made);
  return TN_OK;
}

tn_status tn__registry_load_file(const char *path, bool kernels, tn_runtime_info *out, tn_error *err)
{
  tn__plugin *plugin = NULL;
  tn_status status = out != NULL ? tn__give_info("", out, err) : TN_OK;
  if (status == TN_OK) status = may_load_files(path, err);
  if (status == TN_OK) status = tn__scan_once(err); /* a first scan after this would drop the file */
  if (status == TN_OK) status = tn__token_take("loading a plugin", err);
  if (status != TN_OK) return status;
  status = add_file(path, kernels, &plugin, err);
  tn__token_give();
  if (status != TN_OK) return status;
  status = tn__plugin_load(plugin, err);
  if (out != NULL) tn__give_plugin_info(plugin, out);
  tn__plugin_unref(plugin);
  return status;
}

/* ---- freezing ---- */

/* Takes the token, so that no load is in progress when it returns. */
tn_status tn_freeze(tn_error *err)
{
  tn__error_reset(err);
  tn_status status = tn__token_take("freezing", err);
  if (status != TN_OK) return status;
  tn__reg_lock();
  tn__reg.frozen = true;
  tn__reg_unlock();
  tn__token_give();
  return TN_OK;
}
