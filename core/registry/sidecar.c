/* SPDX-License-Identifier: Apache-2.0 */
/* Settings that an administrator or user gives a plugin without changing its file: NAME.conf beside NAME.so (P-21), and
 * the variables TENON_PLUGIN_DISABLE and TENON_PLUGIN_SELECT (P-22). A plugin is disabled if any of them disables it.
 *
 * NAME.conf has lines "enabled=yes|no", "rank=N" and "option.KEY=VALUE"; empty lines and lines that begin with '#'
 * are skipped. An invalid line refuses the plugin. The values of option.KEY are defaults for targets that do not set
 * KEY. */
#include <fnmatch.h>
#include <string.h>
#include <sys/stat.h>

#include <core/base/file.h>
#include <core/registry/registry_internal.h>

#define MAX_BYTES 16384 /* of a NAME.conf */

/* ---- the file ---- */

/* Without blanks at both ends, and without the '\r' of a DOS line. */
static tn__slice trimmed(const char *data, size_t size)
{
  while (size > 0 && (*data == ' ' || *data == '\t')) data++, size--;
  while (size > 0 && (data[size - 1] == ' ' || data[size - 1] == '\t' || data[size - 1] == '\r')) size--;
  return (tn__slice){ data, size };
}

static tn_status bad_line(const tn__sidecar *c, tn__slice value, const char *wanted, tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "'%s', line %zu: '%.*s', wanted %s", c->path, c->line,
                      value.size < 80 ? (int)value.size : 80, value.data, wanted);
}

/* Whether "KEY=VALUE,KEY=VALUE" contains the key. */
static bool has_setting(const tn__text *settings, tn__slice key)
{
  for (size_t at = 0; at < settings->size;) {
    const char *one = settings->data + at, *comma = memchr(one, ',', settings->size - at);
    if (settings->size - at > key.size && memcmp(one, key.data, key.size) == 0 && one[key.size] == '=') return true;
    at = comma != NULL ? (size_t)(comma - settings->data) + 1 : settings->size;
  }
  return false;
}

/* Adds option.KEY=VALUE to the settings; the same rules as for a setting of a target. */
static tn_status take_setting(tn__sidecar *c, tn__slice key, tn__slice value, tn_error *err)
{
  bool good = tn__runtime_name_ok(key.data, key.size) && memchr(key.data, '.', key.size) == NULL;
  for (size_t i = 0; good && i < value.size; i++)
    good = (unsigned char)value.data[i] >= 0x20 && value.data[i] != 0x7f && value.data[i] != ',';
  if (!good) return bad_line(c, key, "option.KEY=VALUE with a key [a-z][a-z0-9_]* and a value without commas", err);
  if (has_setting(&c->settings, key)) return bad_line(c, key, "each key at most once", err);
  tn__text_printf(&c->settings, "%s%.*s=%.*s", c->settings.size > 0 ? "," : "", (int)key.size, key.data,
                  (int)value.size, value.data);
  return c->settings.failed ? tn__no_memory(err, "settings of a plugin", MAX_BYTES) : TN_OK;
}

/* Each key may occur once. */
static tn_status take_line(tn__sidecar *c, tn__slice line, tn_error *err)
{
  const char *equals = line.size > 0 ? memchr(line.data, '=', line.size) : NULL;
  if (line.size == 0 || line.data[0] == '#') return TN_OK;
  if (equals == NULL) return bad_line(c, line, "KEY=VALUE", err);
  tn__slice key = trimmed(line.data, (size_t)(equals - line.data));
  tn__slice value = trimmed(equals + 1, line.size - (size_t)(equals - line.data) - 1);
  if (key.size > 7 && memcmp(key.data, "option.", 7) == 0)
    return take_setting(c, (tn__slice){ key.data + 7, key.size - 7 }, value, err);
  if (tn__slice_is(key, "enabled")) {
    if (!tn__slice_is(value, "yes") && !tn__slice_is(value, "no"))
      return bad_line(c, value, "enabled=yes or enabled=no", err);
    if (c->says_enabled) return bad_line(c, key, "each key at most once", err);
    c->off = tn__slice_is(value, "no");
    c->says_enabled = true;
    return TN_OK;
  }
  if (!tn__slice_is(key, "rank")) return bad_line(c, key, "enabled, rank or option.KEY", err);
  if (c->rank >= 0) return bad_line(c, key, "each key at most once", err);
  if (!tn__parse_int(value, &c->rank) || c->rank < 0 || c->rank > 1000)
    return bad_line(c, value, "a rank from 0 to 1000", err);
  return TN_OK;
}

tn_status tn__sidecar_parse(tn__sidecar *c, const char *bytes, size_t size, tn_error *err)
{
  tn_status status = TN_OK;
  for (size_t at = 0; status == TN_OK && at < size;) {
    const char *end = memchr(bytes + at, '\n', size - at);
    size_t n = end != NULL ? (size_t)(end - bytes) - at : size - at;
    c->line++;
    status = take_line(c, trimmed(bytes + at, n), err);
    at += n + 1;
  }
  return status;
}

/* The file's path is checked like a plugin's (P-78). */
static tn_status read_conf(tn__sidecar *c, tn_error *err)
{
  tn__file file;
  char bytes[MAX_BYTES];
  tn_status status = tn__path_check(c->path, tn__elevated(), NULL, NULL, err);
  if (status == TN_OK) status = tn__file_open(c->path, &file, err);
  if (status != TN_OK) return status;
  if (file.size > MAX_BYTES)
    status = tn_error_set(err, TN_INVALID_ARGUMENT, "'%s' has %llu bytes, at most %d are allowed", c->path,
                          (unsigned long long)file.size, MAX_BYTES);
  else
    status = tn__file_read(&file, 0, bytes, (size_t)file.size, err);
  size_t size = status == TN_OK ? (size_t)file.size : 0;
  tn__file_close(&file);
  return status == TN_OK ? tn__sidecar_parse(c, bytes, size, err) : status;
}

/* ---- the environment ---- */

/* The first pattern (fnmatch) of the list "PATTERN,PATTERN" that matches the name; its size is 0 if there is none. */
static tn__slice matching(const char *list, const char *name)
{
  char glob[256];
  for (const char *at = list; at != NULL && *at != 0;) {
    size_t size = strcspn(at, ",");
    tn__slice one = trimmed(at, size);
    if (one.size > 0 && one.size < sizeof(glob)) {
      memcpy(glob, one.data, one.size);
      glob[one.size] = 0;
      if (fnmatch(glob, name, 0) == 0) return one;
    }
    at += size + (at[size] == ',');
  }
  return (tn__slice){ "", 0 };
}

static tn_status ask_environment(const char *name, tn_error *err)
{
  const char *disable = tn__getenv("TENON_PLUGIN_DISABLE"), *select = tn__getenv("TENON_PLUGIN_SELECT");
  tn__slice by = matching(disable, name);
  if (by.size > 0)
    return tn_error_set(err, TN_FAILED_PRECONDITION, "it is disabled: '%.*s' in TENON_PLUGIN_DISABLE matches it",
                        (int)by.size, by.data);
  if (select != NULL && select[0] != 0 && matching(select, name).size == 0)
    return tn_error_set(err, TN_FAILED_PRECONDITION, "it is disabled: nothing in TENON_PLUGIN_SELECT matches it");
  return TN_OK;
}

/* ---- both ---- */

/* Lists the plugin as refused. It no longer claims its name, so another file of that name may be used. */
static tn_status refuse(tn__plugin *plugin, tn_status status, tn_error *why, tn_error *err)
{
  if (status == TN_RESOURCE_EXHAUSTED) {
    tn_error_copy(err, why);
    return status;
  }
  plugin->state = TN__PLUGIN_REFUSED;
  plugin->claims = false;
  return tn__plugin_blame(plugin, why) ? TN_OK : tn__no_memory(err, "a plugin's reason", 1);
}

/* Reads the file and applies it to the plugin. The settings are copied into the plugin's arena. */
static tn_status apply(tn__plugin *plugin, tn__sidecar *c, tn_error *err)
{
  tn_error why = TN_ERROR_INIT;
  tn_status status = read_conf(c, &why);
  if (status == TN_OK && c->off)
    status = tn_error_set(&why, TN_FAILED_PRECONDITION, "it is disabled: '%s' says enabled=no", c->path);
  plugin->disabled = status != TN_OK && c->off;
  if (c->rank >= 0) plugin->rank = (int32_t)c->rank;
  if (status == TN_OK && c->settings.size > 0) {
    plugin->settings = tn__arena_string(&plugin->arena, c->settings.data, c->settings.size);
    if (plugin->settings == NULL) status = tn__no_memory(&why, "settings of a plugin", c->settings.size);
  }
  if (status != TN_OK) status = refuse(plugin, status, &why, err);
  tn_error_clear(&why);
  return status;
}

/* Applies NAME.conf if it exists. */
static tn_status look_beside(tn__plugin *plugin, tn_error *err)
{
  tn__text path;
  struct stat st;
  tn__sidecar c = { .rank = -1 };
  tn_status status = TN_OK;
  tn__text_init(&path, 65536);
  tn__text_init(&c.settings, 2 * MAX_BYTES);
  tn__text_append(&path, plugin->path, strlen(plugin->path) - 3); /* ".so" */
  tn__text_puts(&path, ".conf");
  c.path = tn__text_get(&path);
  if (path.failed)
    status = tn__no_memory(err, "a path", strlen(plugin->path));
  else if (lstat(c.path, &st) == 0)
    status = apply(plugin, &c, err);
  tn__text_fini(&path);
  tn__text_fini(&c.settings);
  return status;
}

tn_status tn__plugin_configure(tn__plugin *plugin, bool has_files, tn_error *err)
{
  tn_error why = TN_ERROR_INIT;
  if (!plugin->named) return TN_OK;
  tn_status status = has_files ? look_beside(plugin, err) : TN_OK;
  if (status != TN_OK || plugin->disabled) return status;
  if (ask_environment(plugin->manifest.name, &why) != TN_OK) {
    plugin->disabled = true;
    status = refuse(plugin, TN_FAILED_PRECONDITION, &why, err);
  }
  tn_error_clear(&why);
  return status;
}

tn_status tn__factory_complete(const tn__factory *factory, tn_session_options *options, tn_error *err)
{
  const char *at = factory->plugin != NULL ? factory->plugin->settings : NULL, *value = NULL, *key;
  tn__text target;
  if (at == NULL) return TN_OK;
  tn__text_init(&target, 65536);
  tn__text_puts(&target, factory->name);
  size_t n = 0;
  for (; (key = tn_session_options_setting_at(options, n, &value)) != NULL; n++)
    tn__text_printf(&target, "%s%s=%s", n > 0 ? "," : ":", key, value);
  while (*at != 0) {
    size_t size = strcspn(at, ","), name = strcspn(at, "=");
    char text[TN_NAME_BYTES + 1] = { 0 };
    memcpy(text, at, name);
    if (tn_session_options_setting(options, text) == NULL)
      tn__text_printf(&target, "%s%.*s", n++ > 0 ? "," : ":", (int)size, at);
    at += size + (at[size] == ',');
  }
  tn_status status = target.failed ? tn__no_memory(err, "settings of a target", target.size)
                                   : tn_session_options_set_target(options, target.data, err);
  tn__text_fini(&target);
  return status;
}
