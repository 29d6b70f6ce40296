/* SPDX-License-Identifier: Apache-2.0 */
/* The registry: which factories there are and who uses them. See registry_internal.h for its mutex and its token. */
#include <string.h>

#include <core/base/thread.h>
#include <core/registry/registry_internal.h>

tn__registry tn__reg = { .mu = TN__MUTEX_INIT("registry", TN_RANK_REGISTRY) };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_t token_owner; /* valid while tn__reg.token; guarded by mu, as the next */
static int token_cancel_state; /* of the owner, before it took the token */

/* A child has one thread, the one that forked: lists are whole in it, and nobody will ever give the token back that another
 * thread had (P-72). */
static void before_fork(void) { pthread_mutex_lock(&tn__reg.mu.mu); }
static void in_parent(void) { pthread_mutex_unlock(&tn__reg.mu.mu); }

static void in_child(void)
{
  tn__reg.orphaned = tn__reg.orphaned || (tn__reg.token && !pthread_equal(token_owner, pthread_self()));
  pthread_mutex_unlock(&tn__reg.mu.mu);
  tn__cond_init(&tn__reg.cond); /* some may have waited */
}

static void start(void)
{
  tn__cond_init(&tn__reg.cond);
  pthread_atfork(before_fork, in_parent, in_child);
}

void tn__reg_lock(void)
{
  pthread_once(&once, start);
  tn__mutex_lock(&tn__reg.mu);
}

void tn__reg_unlock(void) { tn__mutex_unlock(&tn__reg.mu); }

bool tn__token_mine_locked(void)
{
  tn__assert_held(&tn__reg.mu);
  return tn__reg.token && pthread_equal(token_owner, pthread_self());
}

tn_status tn__token_take(const char *what, tn_error *err)
{
  tn_status status = TN_OK;
  tn__reg_lock();
  if (tn__token_mine_locked()) {
    status = tn_error_set(err, TN_FAILED_PRECONDITION,
                          "%s is not allowed from a plugin's constructor, entry, init or shutdown", what);
  } else if (tn__reg.orphaned) {
    status = tn_error_set(err, TN_FAILED_PRECONDITION,
                          "%s is not possible: another thread loaded a plugin when this process was forked; exec a new program",
                          what);
  } else {
    while (tn__reg.token) tn__cond_wait(&tn__reg.cond, &tn__reg.mu);
    tn__reg.token = true;
    token_owner = pthread_self();
    token_cancel_state = tn__cancel_hold();
  }
  tn__reg_unlock();
  return status;
}

void tn__token_give(void)
{
  int state = token_cancel_state;
  tn__reg_lock();
  tn__reg.token = false;
  tn__cond_broadcast(&tn__reg.cond);
  tn__reg_unlock();
  tn__cancel_restore(state);
}

/* ---- plugins in the list ---- */

void tn__plugin_ref_locked(tn__plugin *plugin)
{
  tn__assert_held(&tn__reg.mu);
  plugin->refs++;
}

void tn__plugin_unref(tn__plugin *plugin)
{
  if (plugin == NULL) return;
  tn__reg_lock();
  bool last = --plugin->refs == 0;
  tn__reg_unlock();
  if (last) tn__plugin_destroy(plugin);
}

int tn__plugin_compare(const tn__plugin *a, const tn__plugin *b)
{
  if (a->named != b->named) return a->named ? -1 : 1;
  int order = a->named ? strcmp(a->manifest.name, b->manifest.name) : 0;
  if (order != 0) return order;
  if (a->order != b->order) return a->order < b->order ? -1 : 1;
  return strcmp(a->path, b->path);
}

void tn__plugin_insert_locked(tn__plugin *plugin)
{
  tn__assert_held(&tn__reg.mu);
  tn__plugin **at = &tn__reg.plugins;
  while (*at != NULL && tn__plugin_compare(*at, plugin) <= 0) at = &(*at)->next;
  plugin->next = *at;
  *at = plugin;
}

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

int32_t tn__rank_of_locked(const char *name, int32_t rank)
{
  for (size_t i = 0; i < tn__reg.n_ranks; i++)
    if (strcmp(tn__reg.ranks[i].name, name) == 0) rank = tn__reg.ranks[i].rank;
  return rank;
}

/* ---- factories ---- */

/* Slots are pointers, one behind the other: those that the struct covers wholly are copied, the rest stays NULL (P-26).
 */
static void copy_table(tn_session_factory *to, const tn_session_factory *from)
{
  size_t first = offsetof(tn_session_factory, name), size = from->struct_size;
  if (size > TN_SESSION_FACTORY_SIZE) size = TN_SESSION_FACTORY_SIZE;
  size_t n = (size - first) / sizeof(void *) * sizeof(void *);
  memset(to, 0, sizeof(*to));
  memcpy((char *)to + first, (const char *)from + first, n);
  to->struct_size = TN_SESSION_FACTORY_SIZE;
}

static const char *missing_slot(const tn_session_factory *table)
{
  if (table->name == NULL) return "name";
  if (table->new_session == NULL) return "new_session";
  if (table->accepts_options == NULL) return "accepts_options";
  return table->destroy_session == NULL ? "destroy_session" : NULL;
}

tn_status tn__factory_make(const char *name, const tn_session_factory *self, tn__plugin *plugin, tn__factory **out,
                           tn_error *err)
{
  tn_session_factory table;
  *out = NULL;
  if (self == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "session factory '%s' is NULL", name ? name : "");
  if (self->struct_size < TN_SESSION_FACTORY_MIN_SIZE)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "session factory '%s': struct_size is %zu, wanted at least %zu",
                        name ? name : "", self->struct_size, (size_t)TN_SESSION_FACTORY_MIN_SIZE);
  copy_table(&table, self);
  if (name == NULL) name = table.name;
  const char *missing = missing_slot(&table);
  if (missing != NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "session factory '%s' lacks the required callback '%s'",
                        name ? name : "", missing);
  if (!tn__runtime_name_ok(name, strnlen(name, TN_NAME_BYTES + 1)))
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "'%.80s' is no name for a runtime, wanted 1 to %d bytes [a-z][a-z0-9_.]*", name, TN_NAME_BYTES);
  if (tn__name_is_reserved(name) && (plugin == NULL || strcmp(plugin->manifest.vendor, TN_OWN_VENDOR) != 0)) /* P-52 */
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "the name '%s' is reserved for a runtime of the library's own; take another one, as 'acme.%s'", name,
                        name);
  tn__factory *factory = tn__zalloc(sizeof(*factory));
  char *copy = tn__strdup(name);
  if (factory == NULL || copy == NULL) {
    tn__free(factory, sizeof(*factory));
    tn__strfree(copy);
    return tn__no_memory(err, "a session factory", sizeof(*factory));
  }
  factory->name = copy;
  factory->plugin = plugin;
  factory->self = self;
  factory->table = table;
  factory->table.name = copy;
  factory->rank = plugin != NULL ? plugin->rank : 0;
  factory->refs = 1;
  if (plugin != NULL) {
    tn__reg_lock();
    tn__plugin_ref_locked(plugin);
    tn__reg_unlock();
  }
  *out = factory;
  return TN_OK;
}

void tn__factory_free(tn__factory *factory)
{
  void *slot = atomic_load(&factory->slot);
  if (slot != NULL && factory->slot_destroy != NULL) factory->slot_destroy(slot);
  tn__plugin_unref(factory->plugin);
  tn__strfree(factory->name);
  tn__free(factory, sizeof(*factory));
}

void tn__factory_unref(tn__factory *factory)
{
  if (factory == NULL) return;
  tn__reg_lock();
  bool last = --factory->refs == 0;
  tn__reg_unlock();
  if (last) tn__factory_free(factory);
}

tn__factory *tn__factory_find_locked(const char *name)
{
  tn__assert_held(&tn__reg.mu);
  for (tn__factory *f = tn__reg.factories; f != NULL; f = f->next)
    if (strcmp(f->name, name) == 0) return f;
  return NULL;
}

static const char *origin_text(const tn__factory *factory)
{
  return factory->plugin != NULL ? factory->plugin->path : "registered by the program";
}

tn_status tn__factory_insert_locked(tn__factory *factory, tn_error *err)
{
  tn__assert_held(&tn__reg.mu);
  for (tn__factory *f = tn__reg.factories; f != NULL; f = f->next) {
    if (strcmp(f->name, factory->name) == 0)
      return tn_error_set(err, TN_ALREADY_EXISTS,
                          "runtime '%s' exists already (%s); the second one (%s) is not registered", factory->name,
                          origin_text(f), origin_text(factory));
    if (f->self == factory->self)
      return tn_error_set(err, TN_ALREADY_EXISTS, "the session factory of '%s' is registered already, as '%s' (%s)",
                          factory->name, f->name, origin_text(f));
  }
  tn__factory **at = &tn__reg.factories;
  while (*at != NULL && strcmp((*at)->name, factory->name) < 0) at = &(*at)->next;
  factory->next = *at;
  *at = factory;
  factory->refs++;
  factory->listed = true;
  if (factory->plugin != NULL) factory->plugin->n_registered++;
  return TN_OK;
}

void tn__factory_remove_locked(tn__factory *factory)
{
  tn__assert_held(&tn__reg.mu);
  tn__factory **at = &tn__reg.factories;
  while (*at != factory) at = &(*at)->next;
  *at = factory->next;
  factory->next = NULL;
  factory->listed = factory->usable = false;
  if (factory->plugin != NULL) factory->plugin->n_registered--;
}

/* ---- for core/session ---- */

tn__factory *tn__factory_ref(tn__factory *factory)
{
  tn__reg_lock();
  factory->refs++;
  factory->sessions++;
  tn__reg_unlock();
  return factory;
}

void tn__factory_release(tn__factory *factory)
{
  if (factory == NULL) return;
  tn__reg_lock();
  factory->sessions--;
  tn__reg_unlock();
  tn__factory_unref(factory);
}

const tn_session_factory *tn__factory_vtable(const tn__factory *factory) { return &factory->table; }

const tn_session_factory *tn__factory_self(const tn__factory *factory) { return factory->self; }

const char *tn__factory_name(const tn__factory *factory) { return factory->name; }

tn__factory *tn__factory_by_self(const tn_session_factory *self)
{
  tn__reg_lock();
  tn__factory *f = tn__reg.factories;
  while (f != NULL && f->self != self) f = f->next;
  if (f != NULL) {
    f->refs++;
    f->sessions++;
  }
  tn__reg_unlock();
  return f;
}

void *tn__factory_slot(const tn__factory *factory) { return atomic_load(&((tn__factory *)factory)->slot); }

bool tn__factory_set_slot(tn__factory *factory, void *slot, void (*destroy)(void *slot))
{
  tn__reg_lock();
  bool first = atomic_load(&factory->slot) == NULL;
  if (first) {
    factory->slot_destroy = destroy;
    atomic_store(&factory->slot, slot);
  }
  tn__reg_unlock();
  return first;
}

tn_status tn__sane_status(tn_status status, const char *what, tn_error *err)
{
  if (status == TN_OK) {
    if (err != NULL) tn__error_reset(err);
    return TN_OK;
  }
  if (status < TN_OK || status > TN_UNAUTHENTICATED) {
    if (tn_error_code(err) != TN_OK)
      tn_error_wrap(err, TN_INTERNAL, "%s returned %d, which is no status", what, status);
    else
      tn_error_set(err, TN_INTERNAL, "%s returned %d, which is no status", what, status);
    return TN_INTERNAL;
  }
  tn_error_set(err, status, "%s failed and gave no reason (%s)", what, tn_status_text(status));
  if (err != NULL) err->code = status;
  return status;
}

tn_status tn__factory_status(const tn__factory *factory, const char *slot, tn_status status, tn_error *err)
{
  status = tn__sane_status(status, slot, err);
  if (status != TN_OK) tn_error_prefix(err, "runtime '%s' (%s)", factory->name, origin_text(factory));
  return status;
}

tn_status tn__registry_each_factory(tn_status (*visit)(void *user, tn__factory *factory, tn_error *err), void *user,
                                    tn_error *err)
{
  tn__factory *last = NULL;
  for (tn_status status = TN_OK;;) {
    tn__reg_lock();
    tn__factory *f = tn__reg.factories;
    while (f != NULL && (!f->usable || (last != NULL && strcmp(f->name, last->name) <= 0))) f = f->next;
    if (f != NULL) f->refs++, f->sessions++;
    tn__reg_unlock();
    tn__factory_release(last);
    last = f;
    if (f == NULL) return TN_OK;
    status = visit(user, f, err);
    if (status == TN_OK) continue;
    tn__factory_release(f);
    return status;
  }
}

/* ---- for core/host ---- */

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

/* ---- register and unregister ---- */

tn_status tn_runtime_register(const char *name, const tn_session_factory *self, tn_error *err)
{
  tn__error_reset(err);
  if (name == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "register: the runtime's name is NULL");
  tn__factory *factory = NULL;
  tn_status status = tn__factory_make(name, self, NULL, &factory, err);
  if (status != TN_OK) return status;
  tn__reg_lock();
  if (tn__token_mine_locked()) /* P-53 */
    status = tn_error_set(err, TN_FAILED_PRECONDITION,
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

/* A name that a file offers, but that no factory has. */
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
    return tn_error_set(err, TN_NOT_FOUND, "runtime '%s' is not registered; the file '%s' offers it", name, path);
  return tn_error_set(err, TN_NOT_FOUND, "there is no runtime '%.80s'", name);
}

/* Marks the factory as leaving, or says why it stays. */
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
  while (size > 1 && path[size - 1] == '/') size--;
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
  if (status != TN_OK) { /* as it was */
    tn__reg_lock();
    memmove(tn__reg.directories, tn__reg.directories + 1, n * sizeof(char *));
    tn__reg.n_directories = n;
    tn__reg_unlock();
    tn__strfree(copy);
  }
  tn__token_give();
  return status;
}
