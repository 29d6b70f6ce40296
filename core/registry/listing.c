/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of the registry's contents for users: tn_runtime_at, and the lists in messages. Factories and plugins are both
 * sorted by name, so the two lists are merged. A plugin whose factories are registered is represented by them.
 *
 * The texts of an info belong to the factory or plugin: they are valid as long as that exists. */
#include <string.h>

#include <core/base/near.h>
#include <core/registry/registry_internal.h>

/* A file whose manifest cannot be read may be a runtime. */
static bool offers_runtime(const tn__plugin *plugin) { return !plugin->named || !plugin->manifest.is_kernels; }

/* ---- one entry ---- */

static void describe_manifest(tn_runtime_info *out, const tn__plugin *plugin)
{
  const tn__manifest *m = &plugin->manifest;
  out->file = plugin->module == NULL ? plugin->path : "";
  out->origin = plugin->module == NULL ? "file" : "preloaded";
  if (!plugin->named) return;
  out->name = m->name;
  out->kind = m->kind;
  out->version = m->version;
  out->vendor = m->vendor;
  out->types = m->types;
  out->abi_major = m->abi_major;
  out->abi_minor = m->abi_minor;
}

static void clear_info(tn_runtime_info *out)
{
  *out = (tn_runtime_info){ .struct_size = sizeof(*out),
                            .name = "",
                            .kind = "",
                            .file = "",
                            .origin = "",
                            .version = "",
                            .vendor = "",
                            .types = "",
                            .reason = "",
                            .shadowed_by = "" };
}

/* A factory of the program has the library's own ABI and no file. */
static void factory_info_locked(const tn__factory *f, tn_runtime_info *out)
{
  clear_info(out);
  if (f->plugin != NULL) {
    describe_manifest(out, f->plugin);
  } else {
    out->origin = "program";
    out->abi_major = TN_ABI_MAJOR;
    out->abi_minor = TN_ABI_MINOR;
  }
  out->kind = "runtime";
  out->name = f->name;
  out->rank = tn__rank_of_locked(f->name, f->rank);
  out->loaded = 1;
  out->usable = f->usable;
  if (!f->usable) out->reason = "it is being started or stopped";
}

static void plugin_info_locked(const tn__plugin *p, tn_runtime_info *out)
{
  clear_info(out);
  describe_manifest(out, p);
  out->rank = p->named ? tn__rank_of_locked(p->manifest.name, p->rank) : 0;
  out->loaded = p->state == TN__PLUGIN_UNAVAILABLE;
  out->usable = p->state == TN__PLUGIN_FOUND;
  out->shadowed = tn__plugin_shadowed_locked(p);
  out->disabled = p->disabled;
  if (p->state == TN__PLUGIN_GONE) {
    out->reason = "it was unregistered";
  } else if (!out->usable) {
    out->reason = p->reason != NULL ? p->reason : "";
  } else if (out->shadowed) {
    out->usable = 0;
    out->reason = "another one of this name takes precedence over it";
    out->shadowed_by = tn__plugin_shadow_locked(p);
  }
}

tn__plugin_call tn__factory_call(const tn__factory *factory, const char *call)
{
  return (tn__plugin_call){ .plugin = factory->name,
                            .file = factory->plugin != NULL ? factory->plugin->path : "",
                            .call = call };
}

void tn__factory_info(const tn__factory *factory, tn_runtime_info *out)
{
  tn__reg_lock();
  factory_info_locked(factory, out);
  tn__reg_unlock();
}

/* Copies as much as fits in the caller's struct; fields of a newer library that it does not know become 0 (P-26). */
static tn_status give(const tn_runtime_info *info, tn_runtime_info *out, tn_error *err)
{
  size_t size = out->struct_size;
  if (size < TN_SIZE_TO(tn_runtime_info, name))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "runtime info: struct_size is %zu; set it to sizeof(tn_runtime_info)",
                        size);
  if (size > sizeof(*info)) {
    memset((char *)out + sizeof(*info), 0, size - sizeof(*info));
    memcpy(out, info, sizeof(*info));
  } else {
    memcpy(out, info, size);
  }
  out->struct_size = size;
  return TN_OK;
}

/* A registered factory first, else the plugin that would be loaded for the name. */
tn_status tn__give_info(const char *name, tn_runtime_info *out, tn_error *err)
{
  tn_runtime_info info;
  clear_info(&info);
  tn__reg_lock();
  const tn__factory *f = tn__factory_find_locked(name);
  const tn__plugin *p = f == NULL ? tn__plugin_by_name_locked(name) : NULL;
  if (f != NULL) factory_info_locked(f, &info);
  if (p != NULL) plugin_info_locked(p, &info);
  tn__reg_unlock();
  return give(&info, out, err);
}

void tn__give_plugin_info(const tn__plugin *plugin, tn_runtime_info *out)
{
  if (!plugin->manifest.is_kernels) {
    tn__give_info(plugin->manifest.name, out, NULL);
    return;
  }
  tn_runtime_info info;
  tn__reg_lock();
  plugin_info_locked(plugin, &info);
  tn__reg_unlock();
  give(&info, out, NULL);
}

/* Merges the two lists up to entry i. A plugin without a name comes after all factories. */
tn_status tn_runtime_at(size_t i, tn_runtime_info *out, tn_error *err)
{
  tn__error_reset(err);
  tn_runtime_info info;
  if (out == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "runtime: the out pointer is NULL");
  tn_status status = tn__scan_once(err);
  if (status != TN_OK) return status;
  clear_info(&info);
  tn__reg_lock();
  const tn__plugin *p = tn__reg.plugins;
  const tn__factory *f = tn__reg.factories;
  size_t n = 0;
  bool found = false;
  for (; !found; n++) {
    while (p != NULL && p->n_registered > 0) p = p->next;
    if (p == NULL && f == NULL) break;
    bool factory = f != NULL && (p == NULL || !p->named || strcmp(f->name, p->manifest.name) <= 0);
    found = n == i;
    if (found && factory) factory_info_locked(f, &info);
    if (found && !factory) plugin_info_locked(p, &info);
    if (factory)
      f = f->next;
    else
      p = p->next;
  }
  tn__reg_unlock();
  if (!found) return tn_error_set(err, TN_OUT_OF_RANGE, "runtime %zu: there are %zu", i, n);
  return give(&info, out, err);
}

/* ---- lists in messages ---- */

/* Adds "; title: " before the first item of a list, and ", " before the others. `before` is the size of the text when
 * the list began. */
static void add_title(tn__text *text, const char *title, size_t before)
{
  if (text->size == before)
    tn__text_printf(text, "%s%s: ", before > 0 ? "; " : "", title);
  else
    tn__text_puts(text, ", ");
}

/* A kernel plugin of exactly this name is a better hint than a similar name. */
void tn__hint_locked(const char *name, tn__text *text)
{
  tn__assert_held(&tn__reg.mu);
  tn__near near;
  tn__near_init(&near, name);
  for (const tn__factory *f = tn__reg.factories; f != NULL; f = f->next) tn__near_offer(&near, f->name);
  for (const tn__plugin *p = tn__reg.plugins; p != NULL; p = p->next) {
    if (p->named && offers_runtime(p)) tn__near_offer(&near, p->manifest.name);
    if (!p->named || !p->manifest.is_kernels || strcmp(p->manifest.name, name) != 0) continue;
    tn__text_puts(text, " (it is a kernel plugin)");
    return;
  }
  tn__near_append(&near, text);
}

void tn__describe_known_locked(tn__text *text)
{
  tn__assert_held(&tn__reg.mu);
  tn_runtime_info info;
  size_t before = text->size;
  for (const tn__factory *f = tn__reg.factories; f != NULL; f = f->next) {
    add_title(text, "registered", before);
    tn__text_printf(text, "%s (%s)", f->name, f->plugin != NULL ? f->plugin->path : "by the program");
  }
  before = text->size;
  for (const tn__plugin *p = tn__reg.plugins; p != NULL; p = p->next) {
    if (p->state != TN__PLUGIN_FOUND || !offers_runtime(p) || tn__plugin_shadowed_locked(p)) continue;
    add_title(text, "found", before);
    tn__text_printf(text, "%s (%s)", p->manifest.name, p->path);
  }
  before = text->size;
  for (const tn__plugin *p = tn__reg.plugins; p != NULL; p = p->next) {
    if (p->state == TN__PLUGIN_FOUND || p->state == TN__PLUGIN_LOADED || !offers_runtime(p)) continue;
    plugin_info_locked(p, &info);
    add_title(text, "unusable", before);
    tn__text_printf(text, "%s%s%s (%s)", p->named ? p->manifest.name : "", p->named ? " " : "", p->path, info.reason);
  }
  if (text->size == 0) tn__text_puts(text, "no runtime was found");
}
