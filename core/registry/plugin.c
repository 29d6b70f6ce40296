/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins: the object, and the list of them. An object belongs to its creator until it is inserted into the list, which
 * takes over the creator's reference. */
#include <string.h>

#include <core/registry/registry_internal.h>

void tn__text_make_plain(tn__text *text, size_t begin)
{
  for (size_t i = begin; i < text->size; i++)
    if (!tn__path_is_plain(&text->data[i], 1)) text->data[i] = ' ';
}

/* The state is REFUSED until the file was examined. */
tn_status tn__plugin_create(const char *path, tn__plugin **out, tn_error *err)
{
  tn__plugin *plugin = tn__zalloc(sizeof(*plugin));
  *out = NULL;
  if (plugin == NULL) return tn__no_memory(err, "a plugin", sizeof(*plugin));
  tn__arena_init(&plugin->arena, 1024);
  tn_error_init(&plugin->error);
  plugin->refs = 1;
  plugin->state = TN__PLUGIN_REFUSED;
  plugin->path = tn__arena_string(&plugin->arena, path, strlen(path));
  if (plugin->path == NULL) {
    tn__plugin_destroy(plugin);
    return tn__no_memory(err, "a plugin's path", strlen(path) + 1);
  }
  *out = plugin;
  return TN_OK;
}

/* Does not close the object file: a plugin that is mapped stays in the list. */
void tn__plugin_destroy(tn__plugin *plugin)
{
  if (plugin == NULL) return;
  tn_error_clear(&plugin->error);
  tn__arena_fini(&plugin->arena);
  tn__free(plugin, sizeof(*plugin));
}

/* `reason` is the message and its causes on one line, without control characters, for lists and terminals. */
bool tn__plugin_blame(tn__plugin *plugin, const tn_error *error)
{
  tn__text text;
  tn__text_init(&text, 8192);
  tn__text_puts(&text, tn_error_message(error));
  for (size_t i = 0; i < tn_error_n_causes(error); i++) tn__text_printf(&text, ": %s", tn_error_cause(error, i));
  tn__text_make_plain(&text, 0);
  const char *reason = text.failed ? NULL : tn__arena_string(&plugin->arena, tn__text_get(&text), text.size);
  tn__text_fini(&text);
  plugin->reason = reason != NULL ? reason : tn_status_text(tn_error_code(error));
  tn_error_copy(&plugin->error, error);
  return reason != NULL;
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

/* Plugins with a name first, by name; equal names in search order, so the first of them takes precedence. */
int tn__plugin_compare(const tn__plugin *a, const tn__plugin *b)
{
  if (a->named != b->named) return a->named ? -1 : 1;
  int order = a->named ? strcmp(a->manifest.name, b->manifest.name) : 0;
  if (order != 0) return order;
  if (a->order != b->order) return a->order < b->order ? -1 : 1;
  return strcmp(a->path, b->path);
}

/* After those that compare equal. The list takes over the caller's reference. */
void tn__plugin_insert_locked(tn__plugin *plugin)
{
  tn__assert_held(&tn__reg.mu);
  tn__plugin **at = &tn__reg.plugins;
  while (*at != NULL && tn__plugin_compare(*at, plugin) <= 0) at = &(*at)->next;
  plugin->next = *at;
  *at = plugin;
}
