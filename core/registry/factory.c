/* SPDX-License-Identifier: Apache-2.0 */
/* Factories: the object for a runtime's table of slots, and the list of them.
 *
 * A factory has three counters, all guarded by the registry's mutex. `refs` keeps its memory: one for the list, one for
 * each thread or session that uses it. `sessions` and `calls` keep it registered: while one of them is not 0, it cannot
 * be unregistered. A factory holds a reference to its plugin, so the plugin outlives it. */
#include <string.h>

#include <core/registry/registry_internal.h>

/* Slots are consecutive pointers. Those that the struct covers completely are copied, the others are NULL (P-26). */
static void copy_table(tn_session_factory *to, const tn_session_factory *from)
{
  size_t first = offsetof(tn_session_factory, name), size = from->struct_size;
  if (size > TN_SESSION_FACTORY_SIZE) size = TN_SESSION_FACTORY_SIZE;
  size_t n = (size - first) / sizeof(void *) * sizeof(void *);
  memset(to, 0, sizeof(*to));
  memcpy((char *)to + first, (const char *)from + first, n);
  to->struct_size = TN_SESSION_FACTORY_SIZE;
}

/* The first of the required slots that is NULL; NULL: none (P-37). */
static const char *missing_slot(const tn_session_factory *table)
{
  if (table->name == NULL) return "name";
  if (table->new_session == NULL) return "new_session";
  if (table->accepts_options == NULL) return "accepts_options";
  return table->destroy_session == NULL ? "destroy_session" : NULL;
}

tn_status tn__factory_create(const char *name, const tn_session_factory *self, tn__plugin *plugin, tn__factory **out,
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
                        "'%.80s' is not a valid runtime name, wanted 1 to %d bytes [a-z][a-z0-9_.]*", name,
                        TN_NAME_BYTES);
  if (tn__name_is_reserved(name) && (plugin == NULL || strcmp(plugin->manifest.vendor, TN_OWN_VENDOR) != 0)) /* P-52 */
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "the name '%s' is reserved for the library's own runtimes; choose another one, such as "
                        "'acme.%s'",
                        name, name);
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

/* Without the mutex: slot_destroy runs code of the rooms above. */
static void factory_free(tn__factory *factory)
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
  if (last) factory_free(factory);
}

tn__factory *tn__factory_find_locked(const char *name)
{
  tn__assert_held(&tn__reg.mu);
  for (tn__factory *f = tn__reg.factories; f != NULL; f = f->next)
    if (strcmp(f->name, name) == 0) return f;
  return NULL;
}

/* For messages. */
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

/* ---- for the rooms above ----
 *
 * A holder of a factory counts as a session: tn__factory_ref and tn__factory_release change both `refs` and
 * `sessions`. */

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

/* slot_destroy is written before the slot is published: a reader that sees the slot needs no lock. */
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

/* Plugin code may return any number, and may fail without setting an error. On TN_OK a stale error is discarded. */
tn_status tn__sane_status(tn_status status, const char *what, tn_error *err)
{
  if (status == TN_OK) {
    if (err != NULL) tn__error_reset(err);
    return TN_OK;
  }
  if (status < TN_OK || status > TN_UNAUTHENTICATED) {
    if (tn_error_code(err) != TN_OK)
      tn_error_wrap(err, TN_INTERNAL, "%s returned %d, which is not a status", what, status);
    else
      tn_error_set(err, TN_INTERNAL, "%s returned %d, which is not a status", what, status);
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
