/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins that are linked into the program (P-89, P-90). libtool makes a table of their symbols, and libltdl finds each
 * of them there by the name of its archive. The library has a table of its own, with the plugins given to configure
 * --enable-preloaded. Programs pass theirs to tn_runtime_preload. A module of a table is a plugin if it has a manifest;
 * reading the manifest runs none of its code.
 *
 * Each call into libltdl is between tn__ltdl_enter and tn__ltdl_leave: libltdl has no lock, and the program may use it,
 * too. */
#include <string.h>

#include <ltdl.h>

#include <core/base/file.h>
#include <core/registry/registry_internal.h>

#define MANIFEST "tn_plugin_manifest" /* libltdl adds the prefix "<module>_LTX_" */

/* The tables to search, and the modules opened by a scan. Guarded by the token. */
static struct {
  const lt_dlsymlist **list;
  size_t n, capacity;
} tables;

static struct {
  lt_dlhandle *list;
  size_t n, capacity;
  bool failed; /* memory ran out */
} opened;

static const char *words(const char *text) { return text != NULL ? text : "no reason was given"; }

tn_status tn__ltdl_start(tn_error *err)
{
  tn_status status = TN_OK;
  tn__ltdl_enter();
  if (!tn__reg.ltdl_ready && lt_dlinit() != 0)
    status = tn_error_set(err, TN_INTERNAL, "libltdl cannot be initialised: %s", words(lt_dlerror()));
  else
    tn__reg.ltdl_ready = true;
  tn__ltdl_leave();
  return status;
}

/* ---- tables ---- */

/* Adding a table twice has no effect. libltdl has no call that removes a table, so it keeps it even on failure. */
static tn_status add_table(const lt_dlsymlist *symbols, tn_error *err)
{
  for (size_t i = 0; i < tables.n; i++)
    if (tables.list[i] == symbols) return TN_OK;
  if (!tn__grow((void **)&tables.list, &tables.capacity, tables.n + 1, sizeof(*tables.list)))
    return tn__no_memory(err, "the list of linked modules", (tables.n + 1) * sizeof(*tables.list));
  tn_status status = tn__ltdl_start(err);
  if (status != TN_OK) return status;
  tn__ltdl_enter();
  if (lt_dlpreload(symbols) != 0)
    status =
        tn_error_set(err, TN_RESOURCE_EXHAUSTED, "libltdl rejects the linked modules: %s", words(lt_dlerror()));
  else
    tables.list[tables.n++] = symbols;
  tn__ltdl_leave();
  return status;
}

/* The library's own table is always the first, so its plugins precede the program's. */
static tn_status add_own(tn_error *err) { return tn__own_modules != NULL ? add_table(tn__own_modules, err) : TN_OK; }

tn_status tn__preloaded_add(const void *symbols, size_t *before, tn_error *err)
{
  tn_status status = add_own(err);
  *before = tables.n;
  return status == TN_OK ? add_table(symbols, err) : status;
}

size_t tn__preloaded_tables(void) { return tables.n; }

void tn__preloaded_forget(size_t before) { tables.n = before; }

/* ---- modules ---- */

/* The callback of lt_dlpreload_open, which has no user pointer. */
static int take_module(lt_dlhandle handle)
{
  if (!tn__grow((void **)&opened.list, &opened.capacity, opened.n + 1, sizeof(*opened.list))) {
    opened.failed = true;
    lt_dlclose(handle);
    return 0;
  }
  opened.list[opened.n++] = handle;
  return 0;
}

/* The size of texts that end with an empty one; more than TN_MANIFEST_MAX_BYTES if no end is found within that. */
static size_t size_of_texts(const char *texts)
{
  size_t size = 0;
  while (texts[size] != 0 && size <= TN_MANIFEST_MAX_BYTES) size += strnlen(texts + size, TN_MANIFEST_MAX_BYTES) + 1;
  return size;
}

/* Makes and examines the plugin of a module. A module without a manifest is not a plugin: *out is NULL. */
static tn_status make_plugin(lt_dlhandle handle, tn__plugin **out, tn_error *err)
{
  tn__text path;
  tn__ltdl_enter();
  const lt_dlinfo *info = lt_dlgetinfo(handle);
  const char *manifest = lt_dlsym(handle, MANIFEST);
  tn__ltdl_leave();
  *out = NULL;
  if (manifest == NULL || info == NULL || info->filename == NULL) return TN_OK;
  tn__text_init(&path, 65536);
  tn__text_printf(&path, "preloaded %s", info->filename);
  tn_status status = path.failed ? tn__no_memory(err, "the name of a linked module", path.size)
                                 : tn__plugin_create(tn__text_get(&path), out, err);
  tn__text_fini(&path);
  if (status != TN_OK) return status;
  (*out)->module = (*out)->path + strlen("preloaded ");
  (*out)->linked = manifest;
  (*out)->linked_size = size_of_texts(manifest);
  (*out)->id = (tn__file_id){ .ino = (ino_t)(uintptr_t)manifest }; /* unique: no file is on device 0 */
  status = tn__plugin_examine(*out, err);
  if (status == TN_OK) return TN_OK;
  tn__plugin_destroy(*out);
  *out = NULL;
  return status;
}

/* Opens the modules of all tables. Opening a linked module runs no code. */
static tn_status collect(tn_error *err)
{
  opened.failed = false;
  for (size_t i = 0; i < tables.n; i++) {
    tn__ltdl_enter();
    const char *fault = lt_dlpreload_open(tables.list[i]->name, take_module) != 0 ? words(lt_dlerror()) : NULL;
    tn__ltdl_leave();
    if (fault != NULL) tn_log(TN_LOG_WARNING, "linked modules of '%s': %s", tables.list[i]->name, fault);
  }
  return opened.failed ? tn__no_memory(err, "the list of linked modules", opened.n + 1) : TN_OK;
}

tn_status tn__each_preloaded(tn_status (*take)(void *user, tn__plugin *plugin, tn_error *err), void *user,
                             tn_error *err)
{
  tn_status status = add_own(err);
  if (status != TN_OK || tables.n == 0) return status;
  status = collect(err);
  for (size_t i = 0; i < opened.n; i++) {
    tn__plugin *plugin = NULL;
    if (status == TN_OK) status = make_plugin(opened.list[i], &plugin, err);
    if (status == TN_OK && plugin != NULL) status = take(user, plugin, err);
  }
  tn__ltdl_enter();
  while (opened.n > 0) lt_dlclose(opened.list[--opened.n]);
  tn__ltdl_leave();
  tn__free(opened.list, opened.capacity * sizeof(*opened.list));
  opened.list = NULL;
  opened.capacity = 0;
  return status;
}

tn_status tn__open_preloaded(tn__plugin *plugin, tn_error *err)
{
  lt_dladvise advise = NULL;
  tn_status status = TN_OK;
  tn__ltdl_enter();
  if (lt_dladvise_init(&advise) != 0 || lt_dladvise_preload(&advise) != 0)
    status = tn_error_set(err, TN_RESOURCE_EXHAUSTED, "libltdl: %s", words(lt_dlerror()));
  if (status == TN_OK) {
    plugin->handle = lt_dlopenadvise(plugin->module, advise); /* a bare name finds linked modules only */
    if (plugin->handle == NULL)
      status = tn_error_set(err, TN_INTERNAL, "libltdl cannot find the linked module: %s", words(lt_dlerror()));
  }
  if (advise != NULL) lt_dladvise_destroy(&advise);
  tn__ltdl_leave();
  return status;
}
