/* SPDX-License-Identifier: Apache-2.0 */
/* The registry: look-ups by name, and the public functions that register runtimes and search folders. */
#include <string.h>

#include <core/registry/registry_internal.h>

/* ---- look-ups ---- */

/* A registered factory takes precedence over every file that is not loaded; among files the first in the list, which is
 * in search order, takes precedence if it is trusted enough to claim the name (P-13). */
const char *tn__plugin_shadow_locked(const tn__plugin *plugin)
{
  tn__assert_held(&tn__reg.mu);
  if (!plugin->named || plugin->n_registered > 0) return NULL;
  const tn__factory *f = plugin->manifest.is_kernels ? NULL : tn__factory_find_locked(plugin->manifest.name);
  if (f != NULL) return f->plugin != NULL ? f->plugin->path : "";
  for (const tn__plugin *p = tn__reg.plugins; p != NULL && p != plugin; p = p->next)
    if (p->claims && p->state != TN__PLUGIN_GONE && p->manifest.is_kernels == plugin->manifest.is_kernels &&
        strcmp(p->manifest.name, plugin->manifest.name) == 0)
      return p->path;
  return NULL;
}

bool tn__plugin_shadowed_locked(const tn__plugin *plugin) { return tn__plugin_shadow_locked(plugin) != NULL; }

tn__plugin *tn__plugin_by_name_locked(const char *name)
{
  tn__assert_held(&tn__reg.mu);
  tn__plugin *first = NULL;
  for (tn__plugin *p = tn__reg.plugins; p != NULL; p = p->next) {
    if (!p->named || p->manifest.is_kernels || strcmp(p->manifest.name, name) != 0) continue;
    if (p->claims && p->state != TN__PLUGIN_GONE) return p;
    if (first == NULL) first = p;
  }
  return first;
}

/* If TENON_RANK names it twice, the last one counts. */
int32_t tn__rank_of_locked(const char *name, int32_t rank)
{
  for (size_t i = 0; i < tn__reg.n_ranks; i++)
    if (strcmp(tn__reg.ranks[i].name, name) == 0) rank = tn__reg.ranks[i].rank;
  return rank;
}

/* ---- for core/host ---- */

/* The first table stays: plugins may hold pointers into it. */
void tn__registry_set_host(const tn_host *host)
{
  tn__reg_lock();
  if (tn__reg.host == NULL) tn__reg.host = host;
  tn__reg_unlock();
}

void tn__registry_hold_plugin(void *self)
{
  if (self != NULL) atomic_fetch_add(&((tn__plugin *)self)->buffers, 1);
}

void tn__registry_drop_plugin(void *self)
{
  if (self != NULL) atomic_fetch_sub(&((tn__plugin *)self)->buffers, 1);
}

/* ---- register and unregister ----
 *
 * Unregistering has three phases, since shutdown is plugin code and must run without the mutex. First the factory is
 * marked unusable, so no new session can start; then the last factory's plugin is shut down; then the factory is
 * removed, or made usable again if shutdown refused. The token is held throughout. */

tn_status tn_runtime_register(const char *name, const tn_session_factory *self, tn_error *err)
{
  tn__error_reset(err);
  if (name == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "register: the runtime's name is NULL");
  tn__factory *factory = NULL;
  tn_status status = tn__factory_create(name, self, NULL, &factory, err);
  if (status != TN_OK) return status;
  tn__reg_lock();
  if (tn__token_mine_locked()) /* P-53 */
    status = tn_error_set(
        err, TN_FAILED_PRECONDITION,
        "registering runtime '%s' is not allowed from a plugin's constructor, entry, init or shutdown", name);
  else
    status = tn__factory_insert_locked(factory, err);
  if (status == TN_OK) factory->usable = true;
  tn__reg_unlock();
  if (status != TN_OK && tn_log_enabled(TN_LOG_WARNING)) tn_log(TN_LOG_WARNING, "%s", tn_error_message(err));
  tn__factory_unref(factory);
  return status;
}

static tn_status in_use(const tn__factory *f, size_t buffers, tn_error *err)
{
  return tn_error_set(err, TN_FAILED_PRECONDITION,
                      "runtime '%s' cannot be unregistered: it is held by %zu session%s, %zu call%s and %zu buffer%s",
                      f->name, f->sessions, f->sessions == 1 ? "" : "s", f->calls, f->calls == 1 ? "" : "s", buffers,
                      buffers == 1 ? "" : "s");
}

/* For a name that a file provides, but no factory has: marks an unavailable plugin as gone, or reports the file. */
static tn_status unregister_file_locked(const char *name, tn_error *err)
{
  const char *path = NULL;
  for (tn__plugin *p = tn__reg.plugins; p != NULL; p = p->next) {
    if (!p->named || p->manifest.is_kernels || strcmp(p->manifest.name, name) != 0) continue;
    if (p->state == TN__PLUGIN_UNAVAILABLE) {
      p->state = TN__PLUGIN_GONE;
      return TN_OK;
    }
    if (path == NULL && p->state != TN__PLUGIN_GONE) path = p->path;
  }
  if (path != NULL)
    return tn_error_set(err, TN_NOT_FOUND, "runtime '%s' is not registered; the file '%s' provides it", name, path);
  return tn_error_set(err, TN_NOT_FOUND, "there is no runtime '%.80s'", name);
}

/* Marks the factory as being unregistered, or reports why it is not. *last: it is the only one left of its plugin. */
static tn_status begin_unregister(const char *name, tn__factory **out, bool *last, tn_error *err)
{
  tn__reg_lock();
  tn_status status = TN_OK;
  tn__factory *f = tn__factory_find_locked(name);
  size_t buffers = f != NULL && f->plugin != NULL ? atomic_load(&f->plugin->buffers) : 0;
  if (f == NULL) {
    status = unregister_file_locked(name, err);
  } else if (f->sessions > 0 || f->calls > 0 || buffers > 0) {
    status = in_use(f, buffers, err);
  } else {
    f->usable = false;
    f->refs++;
    *last = f->plugin != NULL && f->plugin->n_registered == 1;
    *out = f;
  }
  tn__reg_unlock();
  return status;
}

tn_status tn_runtime_unregister(const char *name, tn_error *err)
{
  tn__error_reset(err);
  if (name == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "unregister: the runtime's name is NULL");
  tn__factory *factory = NULL;
  bool last = false;
  tn_status status = tn__token_take("unregistering a runtime", err);
  if (status != TN_OK) return status;
  status = begin_unregister(name, &factory, &last, err);
  if (status == TN_OK && last) {
    status = tn__plugin_shutdown(factory->plugin, err);
    if (status != TN_OK)
      tn_error_wrap(err, status, "runtime '%s' cannot be unregistered: its shutdown refuses; it stays registered",
                    name);
  }
  if (factory != NULL) {
    tn__reg_lock();
    if (status == TN_OK) {
      tn__factory_remove_locked(factory);
      factory->refs--; /* the list's */
      if (last) factory->plugin->state = TN__PLUGIN_GONE;
    } else {
      factory->usable = true;
    }
    tn__reg_unlock();
  }
  if (status == TN_OK && last && tn__plugin_unloadable(factory->plugin)) tn__plugin_unload(factory->plugin);
  tn__token_give();
  tn__factory_unref(factory);
  return status;
}

/* ---- folders ---- */

tn_status tn_runtime_rescan(tn_error *err)
{
  tn__error_reset(err);
  tn_status status = tn__token_take("looking for plugins", err);
  if (status != TN_OK) return status;
  status = tn__scan(err);
  tn__token_give();
  return status;
}

tn_status tn_runtime_add_directory(const char *path, tn_error *err)
{
  tn__error_reset(err);
  if (path == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "plugin folder: the path is NULL");
  if (path[0] != '/') return tn_error_set(err, TN_INVALID_ARGUMENT, "plugin folder '%s' is not an absolute path", path);
  size_t size = strlen(path);
  if (!tn__path_is_plain(path, size))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "plugin folder: the path has a control character");
  while (size > 1 && path[size - 1] == '/') size--; /* "/" itself stays */
  tn_status status = tn__token_take("adding a plugin folder", err);
  if (status != TN_OK) return status;
  char *copy = tn__strndup(path, size);
  tn__reg_lock();
  size_t n = tn__reg.n_directories;
  if (copy == NULL || !tn__grow((void **)&tn__reg.directories, &tn__reg.directories_capacity, n + 1, sizeof(char *))) {
    status = tn__no_memory(err, "a plugin folder", size + 1);
    tn__reg_unlock();
    tn__strfree(copy);
    tn__token_give();
    return status;
  }
  memmove(tn__reg.directories + 1, tn__reg.directories, n * sizeof(char *));
  tn__reg.directories[0] = copy;
  tn__reg.n_directories = n + 1;
  bool scanned = tn__reg.scanned;
  tn__reg_unlock();
  if (scanned) status = tn__scan(err);
  if (status != TN_OK) { /* restore the search list; nothing else has changed */
    tn__reg_lock();
    memmove(tn__reg.directories, tn__reg.directories + 1, n * sizeof(char *));
    tn__reg.n_directories = n;
    tn__reg_unlock();
    tn__strfree(copy);
  }
  tn__token_give();
  return status;
}
