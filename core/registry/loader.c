/* SPDX-License-Identifier: Apache-2.0 */
/* Loading one plugin: checks the file again, opens it, looks up its entry, compares its description with its
 * manifest, runs its init, and publishes its factories. If a step fails, the earlier ones are undone in reverse
 * (P-49).
 *
 * The loading thread holds the token, and runs plugin code without the mutex. The first dlopen is there for its error
 * texts: libltdl reports "file not found" for every failure, and it binds functions lazily, so a missing one would end
 * the process at its first call (P-61, P-62). Once init was called, the object stays mapped, unless its manifest says
 * "unloadable": its threads, key destructors and handlers may outlive its factories (P-73).
 *
 * A load is tried once: its result is kept in the plugin's state, except that a lack of memory before init leaves the
 * state FOUND, so the next request tries again. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ltdl.h>

#include <core/base/registrar.h>
#include <core/registry/probe/probe.h>

#define MIN_PLUGIN_SIZE TN_SIZE_TO(tn_plugin, n_factories)
#define MAX_FACTORIES 1024 /* a larger count is taken for a corrupt one */

/* Prefixes an error with "plugin 'name' (path)" (P-64). */
static tn_status plugin_prefix(const tn__plugin *plugin, tn_error *err)
{
  return tn_error_prefix(err, "plugin '%s' (%s)", plugin->manifest.name, plugin->path);
}

/* The loading thread is about to begin this step: tells the parent of a probe, and the record of plugin calls. */
static void reached(tn__plugin *plugin, tn__step step)
{
  tn__probe_reached(step);
  plugin->loading.call = step == TN__STEP_OPEN ? "one of its constructors" : tn__step_text(step);
}

/* ---- libltdl ---- */

static const char *words(const char *text) { return text != NULL ? text : "no reason was given"; }

/* Opens the plugin through libltdl by its full path; its symbols are local to it. */
static tn_status open_ltdl(tn__plugin *plugin, tn_error *err)
{
  lt_dladvise advise = NULL;
  tn_status status = tn__ltdl_start(err);
  if (status != TN_OK) return status;
  tn__ltdl_enter();
  if ((lt_dladvise_init(&advise) != 0 || lt_dladvise_local(&advise) != 0))
    status = tn_error_set(err, TN_RESOURCE_EXHAUSTED, "libltdl: %s", words(lt_dlerror()));
  if (status == TN_OK) {
    plugin->handle = lt_dlopenadvise(plugin->path, advise);
    if (plugin->handle == NULL)
      status = tn_error_set(err, TN_INVALID_ARGUMENT, "libltdl cannot open it: %s", words(lt_dlerror()));
  }
  if (advise != NULL) lt_dladvise_destroy(&advise);
  tn__ltdl_leave();
  return status;
}

/* The constructors run in the first dlopen; libltdl's then only adds a reference to the mapped object. */
static tn_status open_object(tn__plugin *plugin, tn_error *err)
{
  tn_log(TN_LOG_DEBUG, "opening plugin '%s' (%s)", plugin->manifest.name, plugin->path);
  reached(plugin, TN__STEP_OPEN);
  if (plugin->module != NULL) return tn__open_preloaded(plugin, err);
  void *first = dlopen(plugin->path, RTLD_NOW | RTLD_LOCAL);
  if (first == NULL) {
    tn_error_set(err, TN_INVALID_ARGUMENT, "%s", words(dlerror()));
    return tn_error_wrap(err, TN_INVALID_ARGUMENT, "the dynamic linker cannot open it");
  }
  tn_status status = open_ltdl(plugin, err);
  dlclose(first);
  return status;
}

static void keep_object(tn__plugin *plugin)
{
  tn__ltdl_enter();
  lt_dlmakeresident(plugin->handle);
  tn__ltdl_leave();
}

/* Whether "unloadable" is among the words of its flags. A linked module is not unloaded, so it is initialised once. */
bool tn__plugin_unloadable(const tn__plugin *plugin)
{
  if (plugin->module != NULL) return false;
  for (const char *at = plugin->manifest.flags; *at != 0;) {
    size_t size = strcspn(at, ",");
    if (size == 10 && memcmp(at, "unloadable", 10) == 0) return true;
    at += size + (at[size] == ',');
  }
  return false;
}

/* lt_dlclose runs the plugin's destructors, so it counts as a call into the plugin. */
static void close_object(tn__plugin *plugin)
{
  if (plugin->handle == NULL) return;
  tn__plugin_call calling = { .plugin = plugin->manifest.name, .file = plugin->path, .call = "one of its destructors" };
  tn__plugin_call_enter(&calling);
  tn__ltdl_enter();
  lt_dlclose(plugin->handle);
  tn__ltdl_leave();
  tn__plugin_call_leave(&calling);
  plugin->handle = NULL;
  plugin->described = NULL;
}

/* Looks up the entry by the name in the manifest. The copy avoids a cast from data to function pointer. */
static tn_status find_entry(tn__plugin *plugin, tn_plugin_query_fn *out, tn_error *err)
{
  const char *entry = plugin->manifest.entry;
  tn_status status = TN_OK;
  tn__ltdl_enter();
  void *symbol = lt_dlsym(plugin->handle, entry);
  if (symbol == NULL) {
    tn_error_set(err, TN_INVALID_ARGUMENT, "%s", words(lt_dlerror()));
    status = tn_error_wrap(err, TN_INVALID_ARGUMENT, "it has no entry '%s', which its manifest names", entry);
  }
  tn__ltdl_leave();
  memcpy(out, &symbol, sizeof(*out));
  return status;
}

/* ---- the plugin's description ---- */

static const char *text_of(const char *text) { return text != NULL ? text : ""; }

static tn_status differs(const char *key, const char *manifest, const char *code, tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT,
                      "its manifest and its code disagree: '%s' is '%s' in the manifest and '%.80s' in "
                      "the code",
                      key, manifest, code);
}

static const char *kind_name(int32_t kind)
{
  if (kind == TN_PLUGIN_RUNTIME) return "runtime";
  return kind == TN_PLUGIN_KERNELS ? "kernels" : "neither runtime nor kernels";
}

static tn_status too_short(const tn_plugin *d, tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT,
                      "struct_size of the tn_plugin that its entry returned is %zu, wanted at least %zu",
                      d->struct_size, (size_t)MIN_PLUGIN_SIZE);
}

/* The ABI is checked first, as a struct of another major has other fields (P-28). Then manifest and code must agree
 * (P-19). */
static tn_status check_described(const tn__plugin *plugin, const tn_plugin *d, tn_error *err)
{
  const tn__manifest *m = &plugin->manifest;
  char in_code[32], in_manifest[32];
  if (!TN_HAS_FIELD(d, tn_plugin, abi_minor)) return too_short(d, err);
  tn_status status = tn__abi_check(d->abi_major, d->abi_minor, m->min_host_minor, TN_ABI_MAJOR, TN_ABI_MINOR, err);
  if (status != TN_OK) return status;
  if (d->struct_size < MIN_PLUGIN_SIZE) return too_short(d, err);
  if (d->abi_major != m->abi_major || d->abi_minor != m->abi_minor) {
    tn__snprintf(in_manifest, sizeof(in_manifest), "%d.%d", m->abi_major, m->abi_minor);
    tn__snprintf(in_code, sizeof(in_code), "%d.%d", d->abi_major, d->abi_minor);
    return differs("abi", in_manifest, in_code, err);
  }
  if (strcmp(text_of(d->name), m->name) != 0) return differs("name", m->name, text_of(d->name), err);
  if (strcmp(text_of(d->types), m->types) != 0) return differs("types", m->types, text_of(d->types), err);
  if (d->kind != (m->is_kernels ? TN_PLUGIN_KERNELS : TN_PLUGIN_RUNTIME))
    return differs("kind", m->kind, kind_name(d->kind), err);
  if (m->is_kernels)
    return TN_HAS_FIELD(d, tn_plugin, register_kernels) && d->register_kernels != NULL
               ? TN_OK
               : tn_error_set(err, TN_INVALID_ARGUMENT, "its register_kernels is NULL"); /* P-37 */
  if (d->factories == NULL || d->n_factories == 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "it provides no session factory");
  if (d->n_factories > MAX_FACTORIES)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "it claims to provide %zu session factories, at most %d are allowed",
                        d->n_factories, MAX_FACTORIES);
  return TN_OK;
}

/* Calls the entry and checks what it returns. `checked` is the file that was checked, open: the mapped object must come
 * from it (P-80). */
static tn_status query(tn__plugin *plugin, int checked, tn_error *err)
{
  tn_plugin_query_fn entry = NULL;
  tn_error e = TN_ERROR_INIT;
  tn_status status = find_entry(plugin, &entry, err);
  if (status != TN_OK) return status;
  const void *address = NULL;
  memcpy(&address, &entry, sizeof(address));
  if (plugin->module == NULL && !tn__mapped_from(checked, address))
    return tn_error_set(err, TN_FAILED_PRECONDITION,
                        "the file was replaced while it was opened; its constructors have run, its entry has not");
  reached(plugin, TN__STEP_ENTRY);
  const tn_plugin *described = entry(&plugin->host, &e);
  if (described == NULL) {
    status = tn__sane_status(e.code != TN_OK ? e.code : TN_FAILED_PRECONDITION, "its entry", &e);
    tn_error_copy(err, &e);
  } else {
    plugin->described = described;
    status = check_described(plugin, described, err);
  }
  tn_error_clear(&e);
  return status;
}

/* ---- factories ---- */

/* Undoes make_factories: takes the factories out of the registry, which drops the list's reference, and frees them. */
static void drop_factories(tn__plugin *plugin)
{
  tn__factory *f = plugin->made;
  plugin->made = NULL;
  while (f != NULL) {
    tn__factory *next = f->sibling;
    tn__reg_lock();
    if (f->listed) {
      tn__factory_remove_locked(f);
      f->refs--;
    }
    tn__reg_unlock();
    tn__factory_unref(f);
    f = next;
  }
}

/* Makes all factories and reserves their names. They can be chosen only after init: see publish. */
static tn_status make_factories(tn__plugin *plugin, tn_error *err)
{
  const tn_plugin *d = plugin->described;
  bool named = false;
  reached(plugin, TN__STEP_FACTORIES);
  for (size_t i = 0; i < d->n_factories; i++) {
    tn__factory *f = NULL;
    tn_status status = tn__factory_create(NULL, d->factories[i], plugin, &f, err);
    if (status != TN_OK) return status;
    f->sibling = plugin->made;
    plugin->made = f;
    named = named || strcmp(f->name, plugin->manifest.name) == 0;
    tn__reg_lock();
    status = tn__factory_insert_locked(f, err);
    tn__reg_unlock();
    if (status != TN_OK) return status;
  }
  if (named) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "none of its session factories is named '%s', as its manifest says",
                      plugin->manifest.name);
}

/* Lets the factories be chosen, and drops the loader's references: from now on the registry's list holds them. */
static void publish(tn__plugin *plugin)
{
  tn__reg_lock();
  for (tn__factory *f = plugin->made; f != NULL; f = f->sibling) f->usable = true;
  tn__reg_unlock();
  for (tn__factory *f = plugin->made; f != NULL;) {
    tn__factory *next = f->sibling;
    f->sibling = NULL;
    tn__factory_unref(f);
    f = next;
  }
  plugin->made = NULL;
}

/* ---- the steps of a load ---- */

/* The file may have changed since the scan. If an object is mapped from the same path, dlopen would return that one
 * instead of the new file; so such a load is refused. */
static tn_status check_again(tn__plugin *plugin, tn_error *err)
{
  tn__plugin *now = NULL;
  if (plugin->module != NULL) return TN_OK;
  tn_status status = tn__plugin_create(plugin->path, &now, err);
  if (status != TN_OK) return status;
  status = tn__plugin_examine(now, err);
  if (status == TN_OK && now->state == TN__PLUGIN_REFUSED) {
    tn_error_copy(err, &now->error);
    status = now->error.code;
  } else if (status == TN_OK && (!tn__same_file(&now->id, &plugin->id) || now->id.size != plugin->id.size ||
                                 strcmp(now->manifest.name, plugin->manifest.name) != 0)) {
    status = tn_error_set(err, TN_FAILED_PRECONDITION,
                          "the file was changed after it was found; call tn_runtime_rescan to search again");
  }
  tn__plugin_destroy(now);
  if (status != TN_OK) return status;
  tn__reg_lock();
  bool listed = false;
  for (tn__plugin *p = tn__reg.plugins; p != NULL && status == TN_OK; p = p->next) {
    listed = listed || p == plugin;
    if (p != plugin && p->handle != NULL && strcmp(p->path, plugin->path) == 0)
      status = tn_error_set(err, TN_FAILED_PRECONDITION,
                            "another file was loaded from this path before and is still in "
                            "memory; a new process loads the new one");
  }
  tn__reg_unlock();
  if (status == TN_OK && !listed)
    status = tn_error_set(err, TN_FAILED_PRECONDITION, "the file was changed after it was found");
  return status;
}

/* Each plugin gets a copy of the host table whose `self` identifies it. */
static tn_status prepare_host(tn__plugin *plugin, tn_error *err)
{
  tn__reg_lock();
  const tn_host *host = tn__reg.host;
  tn__reg_unlock();
  if (host == NULL) return tn_error_set(err, TN_INTERNAL, "no host table was installed for plugins");
  plugin->host = *host;
  plugin->host.self = plugin;
  return TN_OK;
}

static tn_status run_init(tn__plugin *plugin, tn_error *err)
{
  const tn_plugin *d = plugin->described;
  tn_error e = TN_ERROR_INIT;
  plugin->initialised = true;
  reached(plugin, TN__STEP_INIT);
  if (!TN_HAS_FIELD(d, tn_plugin, init) || d->init == NULL) return TN_OK;
  /* Logged before the call, which may end the process. */
  tn_log(TN_LOG_DEBUG, "calling init of plugin '%s' (%s)", plugin->manifest.name, plugin->path);
  tn_status status = tn__sane_status(d->init(&e), "its init", &e);
  if (status != TN_OK) tn_error_copy(err, &e);
  tn_error_clear(&e);
  return status;
}

/* Checks that all ops in the manifest were registered (P-19). `names` is a copy of that list, which is modified. */
static tn_status check_ops(const tn__registrar *registrar, char *names, tn_error *err)
{
  for (char *at = names, *end; at != NULL && *at != 0; at = end) {
    end = strchr(at, ',');
    if (end != NULL) *end++ = 0;
    if (registrar->has == NULL || !registrar->has(registrar, at))
      return tn_error_set(
          err, TN_INVALID_ARGUMENT,
          "its manifest and its code disagree: op '%s' is in the manifest, and its register_kernels does not "
          "register it",
          at);
  }
  return TN_OK;
}

/* The plugin's ops and kernels become visible if all were registered; then they stay until the process ends (P-49). */
/* `who` names the plugin in messages of the op table, which finds the registrar through a thread-local pointer. */
static tn_status call_register(tn__plugin *plugin, const char *who, char *ops, tn_error *err)
{
  tn__registrar registrar = { .who = who, .name = plugin->manifest.name, .file = plugin->path },
                *before = tn__registrar_now;
  tn__registrar_now = &registrar;
  tn_status status = tn__sane_status(plugin->described->register_kernels(err), "its register_kernels", err);
  if (status == TN_OK) status = check_ops(&registrar, ops, err);
  if (registrar.settle != NULL) {
    bool keep = status == TN_OK;
    tn_status settled = registrar.settle(&registrar, keep, err);
    if (keep) status = settled;
  }
  tn__registrar_now = before;
  return status;
}

static tn_status register_kernels(tn__plugin *plugin, tn_error *err)
{
  tn_error e = TN_ERROR_INIT;
  tn__text who;
  size_t size = strlen(plugin->manifest.ops) + 1;
  char *ops = tn__alloc(size);
  if (ops != NULL) memcpy(ops, plugin->manifest.ops, size);
  tn__text_init(&who, 65536);
  tn__text_printf(&who, "plugin '%s' (%s)", plugin->manifest.name, plugin->path);
  tn_status status = ops == NULL || who.failed ? tn__no_memory(&e, "a plugin's ops", size) : TN_OK;
  reached(plugin, TN__STEP_KERNELS);
  if (status == TN_OK) status = call_register(plugin, tn__text_get(&who), ops, &e);
  tn__text_fini(&who);
  tn__free(ops, size);
  if (status != TN_OK) tn_error_copy(err, &e);
  tn_error_clear(&e);
  if (status != TN_OK) return status;
  tn__reg_lock();
  plugin->n_registered = 1;
  tn__reg_unlock();
  return TN_OK;
}

/* Opens the file, which must still be the one that was checked. */
static tn_status hold_file(const tn__plugin *plugin, int *fd, tn_error *err)
{
  struct stat st;
  *fd = open(plugin->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (*fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
    return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "it cannot be opened: out of file descriptors or memory");
  if (*fd >= 0 && fstat(*fd, &st) == 0 && st.st_dev == plugin->id.dev && st.st_ino == plugin->id.ino) return TN_OK;
  return tn_error_set(err, TN_FAILED_PRECONDITION, "the file was replaced while it was checked");
}

/* All steps in order. On failure the caller undoes those that were done. */
static tn_status open_and_start(tn__plugin *plugin, tn_error *err)
{
  int checked = -1;
  tn_status status = check_again(plugin, err);
  if (status == TN_OK) status = prepare_host(plugin, err);
  if (status == TN_OK && plugin->module == NULL) status = tn__probe_before_load(plugin, err);
  if (status == TN_OK && plugin->module == NULL) status = hold_file(plugin, &checked, err);
  if (status == TN_OK) status = open_object(plugin, err);
  if (status == TN_OK) status = query(plugin, checked, err);
  if (checked >= 0) close(checked);
  if (status == TN_OK && !plugin->manifest.is_kernels) status = make_factories(plugin, err);
  if (status == TN_OK) status = run_init(plugin, err);
  if (status == TN_OK && plugin->manifest.is_kernels) status = register_kernels(plugin, err);
  return status;
}

/* Loads, or undoes what was done. While this runs, the record `loading` names the plugin as the one being called. */
static tn_status open_and_register(tn__plugin *plugin, tn_error *err)
{
  plugin->loading =
      (tn__plugin_call){ .plugin = plugin->manifest.name, .file = plugin->path, .call = "the check of its file" };
  tn__plugin_call_enter(&plugin->loading);
  tn_status status = open_and_start(plugin, err);
  if (status != TN_OK) drop_factories(plugin);
  if (!plugin->initialised)
    close_object(plugin);
  else if (status != TN_OK || plugin->manifest.is_kernels || !tn__plugin_unloadable(plugin))
    keep_object(plugin);
  tn__plugin_call_leave(&plugin->loading);
  return status;
}

/* Sets the state for the outcome. A lack of memory before init decides nothing: the next call tries again. */
static tn_status settle(tn__plugin *plugin, tn_status status, tn_error *error)
{
  tn__reg_lock();
  if (status == TN_OK) {
    plugin->state = TN__PLUGIN_LOADED;
  } else if (plugin->initialised || status != TN_RESOURCE_EXHAUSTED) {
    plugin->state = plugin->initialised && status == TN_UNAVAILABLE ? TN__PLUGIN_UNAVAILABLE : TN__PLUGIN_FAILED;
    tn__plugin_blame(plugin, error);
  }
  tn__reg_unlock();
  if (status == TN_OK) publish(plugin);
  return status;
}

/* The result of a request for a plugin that need not or cannot be loaded, by its state. */
static tn_status verdict_locked(const tn__plugin *plugin, tn_error *err)
{
  tn__assert_held(&tn__reg.mu);
  if (plugin->state == TN__PLUGIN_LOADED) return TN_OK;
  if (plugin->state == TN__PLUGIN_GONE)
    return tn_error_set(err, TN_NOT_FOUND,
                        "runtime '%s' (%s) was unregistered; a plugin is initialised only once in a process",
                        plugin->manifest.name, plugin->path);
  tn_error_copy(err, &plugin->error);
  plugin_prefix(plugin, err);
  return tn_error_code(&plugin->error);
}

static _Thread_local unsigned callbacks; /* calls of factory slots in which this thread is */

void tn__callback_enter(void) { callbacks++; }

void tn__callback_leave(void) { callbacks--; }

/* Whether the plugin must be loaded now; otherwise *status is the result. */
static bool must_load(const tn__plugin *plugin, tn_status *status, tn_error *err)
{
  tn__reg_lock();
  bool load = plugin->state == TN__PLUGIN_FOUND, frozen = tn__reg.frozen;
  *status = load ? TN_OK : verdict_locked(plugin, err);
  tn__reg_unlock();
  if (load && frozen)
    *status = tn_error_set(err, TN_FAILED_PRECONDITION,
                           "plugin '%s' (%s) is not loaded: this program no longer loads plugins (tn_freeze)",
                           plugin->manifest.name, plugin->path);
  else if (load && callbacks > 0) /* P-70 */
    *status = tn_error_set(err, TN_FAILED_PRECONDITION,
                           "plugin '%s' (%s) is not loaded: a callback of another plugin requested it",
                           plugin->manifest.name, plugin->path);
  return load && *status == TN_OK;
}

tn_status tn__plugin_load(tn__plugin *plugin, tn_error *err)
{
  tn_status status;
  if (!must_load(plugin, &status, err)) return status;
  status = tn__token_take("loading a plugin", err);
  if (status != TN_OK) return status;
  if (must_load(plugin, &status, err)) { /* again: another thread may have loaded it meanwhile */
    tn_error e = TN_ERROR_INIT;
    int64_t begin = tn__now_ns();
    status = settle(plugin, open_and_register(plugin, &e), &e);
    if (status != TN_OK) {
      plugin_prefix(plugin, &e);
      tn_error_copy(err, &e);
    } else {
      tn_log(TN_LOG_DEBUG, "plugin '%s' (%s) is loaded", plugin->manifest.name, plugin->path);
    }
    tn__debug_load(plugin->path, status == TN_OK ? "loaded" : "not loaded", status == TN_OK ? "" : tn_error_message(&e),
                   begin);
    tn_error_clear(&e);
  }
  tn__token_give();
  return status;
}

/* A plugin may refuse its shutdown: then it stays registered. */
tn_status tn__plugin_shutdown(tn__plugin *plugin, tn_error *err)
{
  const tn_plugin *d = plugin->described;
  tn_error e = TN_ERROR_INIT;
  if (d == NULL || !TN_HAS_FIELD(d, tn_plugin, shutdown) || d->shutdown == NULL) return TN_OK;
  tn__plugin_call calling = { .plugin = plugin->manifest.name, .file = plugin->path, .call = "its shutdown" };
  tn__plugin_call_enter(&calling);
  tn_status status = tn__sane_status(d->shutdown(&e), "its shutdown", &e);
  tn__plugin_call_leave(&calling);
  if (status != TN_OK) {
    plugin_prefix(plugin, &e);
    tn_error_copy(err, &e);
  }
  tn_error_clear(&e);
  return status;
}

/* The state FOUND lets a later request load it again, and call init again. */
void tn__plugin_unload(tn__plugin *plugin)
{
  close_object(plugin);
  tn__reg_lock();
  plugin->initialised = false;
  plugin->state = TN__PLUGIN_FOUND;
  tn__reg_unlock();
  tn_log(TN_LOG_DEBUG, "plugin '%s' (%s) is unloaded", plugin->manifest.name, plugin->path);
}
