/* SPDX-License-Identifier: Apache-2.0 */
/* Finding plugins: the folders of the search list, and no others, are read in order (P-01 to P-09).
 *
 * A scan runs under the loader token. It opens and checks files without the mutex, collects its results in a `scan`,
 * and installs them at the end, under the mutex. A failed scan changes nothing. Only a lack of memory or descriptors,
 * or a failure of libltdl, makes a scan fail: a folder or file with another problem is skipped or listed as refused,
 * and the scan continues.
 *
 * A rescan keeps the objects of plugins that were opened, and of files that have not changed, since factories and
 * callers refer to them. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <core/base/file.h>
#include <core/base/map.h>
#include <core/registry/registry_internal.h>

#define SUFFIX ".so"
#define NOTES_LIMIT 65536

typedef struct names {
  char **list;
  size_t n, capacity;
} names;

typedef struct folder {
  names files;
  bool has_conf; /* files beside plugins */
  bool safe;     /* no other user can change a component of its path */
  bool foreign;
} folder;

/* The result of a scan until it is installed; the fields correspond to those of tn__registry. */
typedef struct scan {
  tn__searched *directories;
  size_t n_directories, directories_capacity;
  tn__plugin **plugins;
  size_t n, capacity;
  tn__map by_file; /* place in `plugins`, from 1, by device and inode */
  tn__rank_override *ranks;
  size_t n_ranks, ranks_capacity;
  tn__text notes;
} scan;

/* ---- small helpers ---- */

static tn_status names_add(names *to, const char *text, size_t size, tn_error *err)
{
  char *copy = tn__strndup(text, size);
  if (copy == NULL || !tn__grow((void **)&to->list, &to->capacity, to->n + 1, sizeof(char *))) {
    tn__strfree(copy);
    return tn__no_memory(err, "the list of plugin folders", size + sizeof(char *));
  }
  to->list[to->n++] = copy;
  return TN_OK;
}

static void names_fini(names *list)
{
  for (size_t i = 0; i < list->n; i++) tn__strfree(list->list[i]);
  tn__free(list->list, list->capacity * sizeof(char *));
  memset(list, 0, sizeof(*list));
}

/* Logs a line and keeps it for tn_explain_selection. */
#define NOTE(s, level, ...)                    \
  do {                                         \
    size_t begin_ = (s)->notes.size;           \
    tn_log(level, __VA_ARGS__);                \
    tn__text_printf(&(s)->notes, __VA_ARGS__); \
    tn__text_make_plain(&(s)->notes, begin_);  \
    tn__text_puts(&(s)->notes, "\n");          \
  } while (0)

/* The precision of "%.*s": elements of the environment are not NUL-terminated, and may be long. */
static int shown(size_t size) { return size < 4096 ? (int)size : 4096; }

/* ---- one folder ---- */

/* <name>.so with a name [a-z][a-z0-9_]{0,63}, P-06 */
static bool file_name_ok(const char *name)
{
  size_t size = strlen(name), suffix = strlen(SUFFIX);
  if (size <= suffix || strcmp(name + size - suffix, SUFFIX) != 0) return false;
  return tn__runtime_name_ok(name, size - suffix) && memchr(name, '.', size - suffix) == NULL;
}

static int compare_names(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* For a file that has the suffix, but not the name or type of a plugin. */
static void report_near_miss(const char *directory, const char *name)
{
  static const char reason[] = "wanted a regular file [a-z][a-z0-9_]*" SUFFIX;
  tn__text path;
  tn_log(TN_LOG_DEBUG, "'%s/%s' is not a plugin: %s", directory, name, reason);
  tn__text_init(&path, 65536);
  tn__text_printf(&path, "%s/%s", directory, name);
  tn__debug_load(tn__text_get(&path), "not a plugin", reason, 0);
  tn__text_fini(&path);
}

/* A regular file, or a link to one. Not every file system reports the type of an entry. */
static bool is_file(int in, const struct dirent *entry)
{
  struct stat st;
  if (entry->d_type == DT_REG) return true;
  if (entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN) return false;
  return fstatat(in, entry->d_name, &st, 0) == 0 && S_ISREG(st.st_mode);
}

static bool ends_in(const char *name, const char *end)
{
  size_t size = strlen(name), n = strlen(end);
  return size > n && strcmp(name + size - n, end) == 0;
}

static const char *folder_fault(int number)
{
  switch (number) {
  case ENOENT: return "it does not exist";
  case EACCES: return "permission denied";
  case ELOOP: return "its symbolic links form a loop";
  case ENOTDIR: return "it is not a folder";
  default: return "it cannot be opened";
  }
}

/* Lists the folder's plugin files by name, so that the order does not depend on the file system. A folder that cannot
 * be read is skipped: *fault says why. */
static tn_status list_folder(const char *directory, folder *found, const char **fault, tn_error *err)
{
  int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *dir = fd < 0 ? NULL : fdopendir(fd);
  if (dir == NULL) {
    int number = errno;
    if (fd >= 0) close(fd);
    if (number == EMFILE || number == ENFILE || number == ENOMEM)
      return tn_error_set(err, TN_RESOURCE_EXHAUSTED,
                          "plugin folder '%s' cannot be opened: out of file descriptors or memory", directory);
    *fault = folder_fault(number);
    tn_log(TN_LOG_INFO, "plugin folder '%s' is skipped: %s", directory, *fault);
    return TN_OK;
  }
  tn_status status = TN_OK;
  for (struct dirent *entry; status == TN_OK && (entry = readdir(dir)) != NULL;) {
    found->has_conf = found->has_conf || ends_in(entry->d_name, ".conf");
    if (!file_name_ok(entry->d_name) || !is_file(dirfd(dir), entry)) {
      if (strstr(entry->d_name, SUFFIX) != NULL) report_near_miss(directory, entry->d_name);
      continue;
    }
    status = names_add(&found->files, entry->d_name, strlen(entry->d_name), err);
  }
  closedir(dir);
  if (status == TN_OK && found->files.n > 1) qsort(found->files.list, found->files.n, sizeof(char *), compare_names);
  return status;
}

/* The same file by two paths is one plugin (P-12): the key is its device and inode, the first fields of its id. */
#define FILE_KEY(plugin) ((const char *)&(plugin)->id), offsetof(tn__file_id, size)
_Static_assert(offsetof(tn__file_id, size) == sizeof(dev_t) + sizeof(ino_t), "the key has no padding");

/* Where the scan has the same file; NULL: nowhere. Inode 0: the file could not be examined, so it has no id. */
static tn__plugin **find_same(const scan *s, const tn__plugin *plugin)
{
  uintptr_t place = plugin->id.ino != 0 ? (uintptr_t)tn__map_get(&s->by_file, FILE_KEY(plugin)) : 0;
  return place != 0 ? &s->plugins[place - 1] : NULL;
}

static bool remember_file(scan *s, tn__plugin *plugin)
{
  return plugin->id.ino == 0 || tn__map_put(&s->by_file, FILE_KEY(plugin), (void *)(uintptr_t)(s->n + 1), NULL);
}

static const char *verdict_of(const tn__plugin *plugin)
{
  if (plugin->disabled) return "disabled";
  return plugin->state == TN__PLUGIN_REFUSED ? "refused" : "found";
}

/* Adds an examined plugin to the scan, which takes ownership, also on failure. */
static tn_status add_plugin(scan *s, tn__plugin *plugin, bool has_conf, int64_t begin, tn_error *err)
{
  if (find_same(s, plugin) != NULL) {
    const char *other = (*find_same(s, plugin))->path;
    tn_log(TN_LOG_DEBUG, "'%s' is the same file as '%s'", plugin->path, other);
    tn__debug_load(plugin->path, "the same file as", other, begin);
    tn__plugin_destroy(plugin);
    return TN_OK;
  }
  tn_status status = tn__plugin_configure(plugin, has_conf, err);
  if (status == TN_OK && (!tn__grow((void **)&s->plugins, &s->capacity, s->n + 1, sizeof(*s->plugins)) ||
                          !remember_file(s, plugin)))
    status = tn__no_memory(err, "the list of plugins", (s->n + 1) * sizeof(*s->plugins));
  if (status != TN_OK) {
    tn__plugin_destroy(plugin);
    return status;
  }
  plugin->order = s->n;
  s->plugins[s->n++] = plugin;
  tn__debug_load(plugin->path, verdict_of(plugin),
                 plugin->state == TN__PLUGIN_REFUSED ? plugin->reason : plugin->manifest.name, begin);
  if (plugin->state == TN__PLUGIN_REFUSED)
    tn_log(TN_LOG_INFO, "plugin '%s' is refused: %s", plugin->path, plugin->reason);
  else
    tn_log(TN_LOG_DEBUG, "plugin '%s' provides %s '%s'%s", plugin->path, plugin->manifest.kind, plugin->manifest.name,
           plugin->foreign ? "; note: a part of its path is owned by another user" : "");
  return TN_OK;
}

static tn_status scan_file(scan *s, const folder *in, const char *directory, const char *name, tn_error *err)
{
  tn__text path;
  tn__plugin *plugin = NULL;
  int64_t begin = tn__now_ns();
  tn__text_init(&path, 65536);
  tn__text_puts(&path, directory);
  if (path.size > 1) tn__text_puts(&path, "/");
  tn__text_puts(&path, name);
  tn_status status = path.failed ? tn__no_memory(err, "a plugin's path", strlen(directory) + strlen(name) + 2)
                                 : tn__plugin_create(tn__text_get(&path), &plugin, err);
  tn__text_fini(&path);
  if (status == TN_OK)
    status = in->safe ? tn__plugin_examine_in(plugin, in->foreign, err) : tn__plugin_examine(plugin, err);
  if (status == TN_OK) return add_plugin(s, plugin, in->has_conf, begin, err);
  tn__plugin_destroy(plugin);
  return status;
}

static tn_status add_linked(void *user, tn__plugin *plugin, tn_error *err)
{
  return add_plugin(user, plugin, false, tn__now_ns(), err);
}

/* The folder's path is checked once for all its files; if it is not safe, each file's check reports why. */
static tn_status scan_folder(scan *s, tn__searched *directory, tn_error *err)
{
  folder found = { .safe = false };
  tn_status status = list_folder(directory->path, &found, &directory->fault, err);
  found.safe = found.files.n > 0 && tn__folder_is_safe(directory->path, tn__elevated(), &found.foreign);
  for (size_t i = 0; status == TN_OK && i < found.files.n; i++)
    status = scan_file(s, &found, directory->path, found.files.list[i], err);
  names_fini(&found.files);
  return status;
}

/* ---- the environment ---- */

static tn_status add_directory(scan *s, const char *path, size_t size, tn_error *err)
{
  while (size > 1 && path[size - 1] == '/') size--;
  char *copy = tn__strndup(path, size);
  if (copy == NULL ||
      !tn__grow((void **)&s->directories, &s->directories_capacity, s->n_directories + 1, sizeof(*s->directories))) {
    tn__strfree(copy);
    return tn__no_memory(err, "the list of plugin folders", size + sizeof(*s->directories));
  }
  s->directories[s->n_directories++] = (tn__searched){ copy, "" };
  return TN_OK;
}

/* "/folder:/folder" of TENON_PLUGIN_PATH. Relative folders are refused, since the current folder is not trusted. */
static tn_status add_search_path(scan *s, const char *list, tn_error *err)
{
  for (const char *at = list;; at++) {
    size_t size = strcspn(at, ":");
    tn_status status = TN_OK;
    if (size == 0) {
      if (list[0] != 0) NOTE(s, TN_LOG_WARNING, "TENON_PLUGIN_PATH '%s' has an empty element; it is skipped", list);
    } else if (at[0] != '/') {
      NOTE(s, TN_LOG_ERROR, "TENON_PLUGIN_PATH: the element '%.*s' is refused: it is not an absolute path", shown(size),
           at);
    } else if (!tn__path_is_plain(at, size)) {
      NOTE(s, TN_LOG_ERROR,
           "TENON_PLUGIN_PATH: the element that begins at byte %zu is refused: it has a control character",
           (size_t)(at - list));
    } else {
      status = add_directory(s, at, size, err);
    }
    if (status != TN_OK) return status;
    at += size;
    if (*at == 0) return TN_OK;
  }
}

static tn_status add_rank(scan *s, const char *name, size_t size, int32_t rank, tn_error *err)
{
  char *copy = tn__strndup(name, size);
  if (copy == NULL || !tn__grow((void **)&s->ranks, &s->ranks_capacity, s->n_ranks + 1, sizeof(*s->ranks))) {
    tn__strfree(copy);
    return tn__no_memory(err, "TENON_RANK", size + sizeof(*s->ranks));
  }
  s->ranks[s->n_ranks++] = (tn__rank_override){ copy, rank };
  return TN_OK;
}

/* "name=rank,name=rank" of TENON_RANK. A wrong element is skipped with a note; the others count. */
static tn_status read_ranks(scan *s, const char *list, tn_error *err)
{
  for (const char *at = list; *at != 0;) {
    size_t size = strcspn(at, ","), name = strcspn(at, "=,");
    int64_t rank = -1;
    bool good = name < size && tn__runtime_name_ok(at, name) &&
                tn__parse_int((tn__slice){ at + name + 1, size - name - 1 }, &rank) && rank >= 0 && rank <= 1000;
    tn_status status = TN_OK;
    if (good)
      status = add_rank(s, at, name, (int32_t)rank, err);
    else if (size > 0)
      NOTE(s, TN_LOG_ERROR, "TENON_RANK: the element '%.*s' is skipped: it is not name=rank with a rank from 0 to 1000",
           shown(size), at);
    if (status != TN_OK) return status;
    at += size + (at[size] == ',');
  }
  return TN_OK;
}

/* An uninstalled build searches its own plugins first, as installed plugins may be of another version. */
static tn_status add_default_folders(scan *s, tn_error *err)
{
  char path[PATH_MAX];
  tn_status status = TN_OK;
  if (tn__uninstalled_plugins(path)) status = add_directory(s, path, strlen(path), err);
  if (status == TN_OK) status = add_directory(s, TN_PLUGIN_DIR, strlen(TN_PLUGIN_DIR), err);
  return status;
}

/* The program's folders come first, then the environment's, then the installation's (P-01, P-02). */
static tn_status make_search_list(scan *s, tn_error *err)
{
  static const char *const variables[] = { "TENON_PLUGIN_PATH", "TENON_PLUGIN_PATH_ONLY", "TENON_RANK",
                                           "TENON_PLUGIN_DISABLE", "TENON_PLUGIN_SELECT", "TENON_DEBUG",
                                           "TENON_PROBE", "TENON_PROBE_PROGRAM", "TENON_CACHE_DIR" };
  tn_status status = TN_OK;
  tn__reg_lock();
  for (size_t i = 0; status == TN_OK && i < tn__reg.n_directories; i++)
    status = add_directory(s, tn__reg.directories[i], strlen(tn__reg.directories[i]), err);
  tn__reg_unlock();
  for (size_t i = 0; tn__elevated() && i < sizeof(variables) / sizeof(variables[0]); i++)
    if (getenv(variables[i]) != NULL)
      NOTE(s, TN_LOG_WARNING, "%s is ignored: this process has elevated privileges", variables[i]);
  const char *path = tn__getenv("TENON_PLUGIN_PATH"), *only = tn__getenv("TENON_PLUGIN_PATH_ONLY");
  const char *ranks = tn__getenv("TENON_RANK");
  if (status == TN_OK && path != NULL) status = add_search_path(s, path, err);
  if (status == TN_OK && (only == NULL || only[0] == 0 || strcmp(only, "0") == 0))
    status = add_default_folders(s, err);
  if (status == TN_OK && ranks != NULL) status = read_ranks(s, ranks, err);
  return status;
}

/* ---- installing a scan ---- */

static void scan_fini(scan *s)
{
  for (size_t i = 0; i < s->n; i++) tn__plugin_unref(s->plugins[i]);
  tn__free(s->plugins, s->capacity * sizeof(*s->plugins));
  for (size_t i = 0; i < s->n_ranks; i++) tn__strfree(s->ranks[i].name);
  tn__free(s->ranks, s->ranks_capacity * sizeof(*s->ranks));
  for (size_t i = 0; i < s->n_directories; i++) tn__strfree(s->directories[i].path);
  tn__free(s->directories, s->directories_capacity * sizeof(*s->directories));
  tn__map_fini(&s->by_file);
  tn__text_fini(&s->notes);
}

/* A plugin that was opened stays in the list: its code is mapped, and its init must not be called twice. */
static bool must_stay(const tn__plugin *plugin)
{
  return plugin->initialised || plugin->state == TN__PLUGIN_LOADED || plugin->state == TN__PLUGIN_UNAVAILABLE ||
         plugin->state == TN__PLUGIN_GONE;
}

static bool same_text(const char *a, const char *b) { return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0); }

/* Whether the file and its settings are as the old object has them: then the old object stays, with its references. */
static bool unchanged(const tn__plugin *old, const tn__plugin *found)
{
  return old->state == TN__PLUGIN_FOUND && found->state == TN__PLUGIN_FOUND && strcmp(old->path, found->path) == 0 &&
         old->id.size == found->id.size && old->id.mtime.tv_sec == found->id.mtime.tv_sec &&
         old->id.mtime.tv_nsec == found->id.mtime.tv_nsec && old->rank == found->rank &&
         same_text(old->settings, found->settings);
}

/* A plugin that stays takes the place and the rank that the new scan found for it. */
static void keep_locked(tn__plugin *old, const tn__plugin *found)
{
  old->order = found->order;
  if (old->rank == found->rank) return;
  old->rank = found->rank;
  for (tn__factory *f = tn__reg.factories; f != NULL; f = f->next)
    if (f->plugin == old) f->rank = old->rank;
}

static int compare_places(const void *a, const void *b)
{
  return tn__plugin_compare(*(tn__plugin *const *)a, *(tn__plugin *const *)b);
}

/* Builds the new list from the plugins found and those that stay; *dropped gets the others. Each plugin in either list
 * has one reference of its list, which moves with it. The qsort invalidates the places in by_file. */
static void exchange_plugins_locked(scan *s, tn__plugin **dropped)
{
  tn__plugin *old = tn__reg.plugins, *gone = NULL;
  for (tn__plugin *next; old != NULL; old = next) {
    tn__plugin **match = find_same(s, old);
    next = old->next;
    if (match != NULL && (must_stay(old) || unchanged(old, *match))) {
      tn__plugin *swap = *match; /* the new object is dropped, the old one takes its place */
      keep_locked(old, swap);
      *match = old;
      old = swap;
    } else if (must_stay(old)) {
      old->order = SIZE_MAX;
      old->next = gone;
      gone = old;
      continue;
    }
    old->next = *dropped;
    *dropped = old;
  }
  if (s->n > 1) qsort(s->plugins, s->n, sizeof(*s->plugins), compare_places);
  tn__reg.plugins = NULL;
  for (size_t i = s->n; i-- > 0;) {
    s->plugins[i]->next = tn__reg.plugins;
    tn__reg.plugins = s->plugins[i];
  }
  s->n = 0;
  for (tn__plugin *next; gone != NULL; gone = next) {
    next = gone->next;
    tn__plugin_insert_locked(gone);
  }
}

#define EXCHANGE(a, b)           \
  do {                           \
    __typeof__(a) exchanged = a; \
    a = b;                       \
    b = exchanged;               \
  } while (0)

/* Exchanges the lists: afterwards s has the registry's old ones, which the caller frees. The map is not used again, as
 * its keys are in plugins that may be dropped. Plugins are unreferenced without the mutex. */
static void install(scan *s)
{
  tn__plugin *dropped = NULL;
  tn__reg_lock();
  exchange_plugins_locked(s, &dropped);
  EXCHANGE(tn__reg.ranks, s->ranks);
  EXCHANGE(tn__reg.n_ranks, s->n_ranks);
  EXCHANGE(tn__reg.ranks_capacity, s->ranks_capacity);
  EXCHANGE(tn__reg.searched, s->directories);
  EXCHANGE(tn__reg.n_searched, s->n_directories);
  EXCHANGE(tn__reg.searched_capacity, s->directories_capacity);
  EXCHANGE(tn__reg.notes, s->notes);
  tn__reg.scanned = true;
  tn__reg_unlock();
  while (dropped != NULL) {
    tn__plugin *next = dropped->next;
    dropped->next = NULL;
    tn__plugin_unref(dropped);
    dropped = next;
  }
}

tn_status tn__scan(tn_error *err)
{
  scan s = { 0 };
  tn__text_init(&s.notes, NOTES_LIMIT);
  tn_status status = make_search_list(&s, err);
  if (status == TN_OK) status = tn__each_preloaded(add_linked, &s, err); /* before all files, P-90 */
  for (size_t i = 0; status == TN_OK && i < s.n_directories; i++) status = scan_folder(&s, &s.directories[i], err);
  if (status == TN_OK && s.notes.failed && s.notes.size == 0) status = tn__no_memory(err, "notes of a scan", 1);
  if (status == TN_OK) install(&s);
  scan_fini(&s);
  return status;
}

/* Looks again under the token: another thread may have scanned while this one waited for it. */
tn_status tn__scan_once(tn_error *err)
{
  tn__reg_lock();
  bool scanned = tn__reg.scanned;
  tn__reg_unlock();
  if (scanned) return TN_OK;
  tn_status status = tn__token_take("looking for plugins", err);
  if (status != TN_OK) return status;
  tn__reg_lock();
  scanned = tn__reg.scanned;
  tn__reg_unlock();
  if (!scanned) status = tn__scan(err);
  tn__token_give();
  return status;
}
