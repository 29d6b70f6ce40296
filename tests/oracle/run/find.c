/* SPDX-License-Identifier: Apache-2.0 */
/* Finds cases: a folder may contain oracle folders (index.json), packed families (*.zip) and
 * models (case.json), at any depth. */
#include "tests/oracle/run/oracle.h"

#include <dirent.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_DEPTH 16

static oracle_case *add(oracle_list *list)
{
  list->cases = oracle_grow(list->cases, list->n, &list->room, sizeof(*list->cases));
  oracle_case *c = &list->cases[list->n++];
  memset(c, 0, sizeof(*c));
  return c;
}

static char *folder_of(const char *path)
{
  const char *slash = strrchr(path, '/');
  return slash ? oracle_format("%.*s", (int)(slash - path), path) : oracle_format(".");
}

/* The cases of an index; checks only the fields needed to name a case. */
static void add_index(oracle_list *list, const json_t *index, const char *path, oracle_archive *archive)
{
  size_t i;
  json_t *entry;
  if (!json_is_array(index)) oracle_usage_error("%s: the index is not an array", path);
  json_array_foreach(index, i, entry)
  {
    const char *id = json_string_value(json_object_get(entry, "id"));
    const char *family = json_string_value(json_object_get(entry, "family"));
    if (!id || !family) oracle_usage_error("%s: case %zu has no id or no family", path, i);
    oracle_case *c = add(list);
    c->kind = archive ? ORACLE_IN_ARCHIVE : ORACLE_IN_FOLDER;
    c->id = oracle_format("%s", id);
    c->family = oracle_format("%s", family);
    c->folder = folder_of(path);
    c->archive = archive;
    c->entry = json_incref(entry);
  }
}

static void add_index_file(oracle_list *list, const char *path)
{
  json_error_t error;
  json_t *index = json_load_file(path, 0, &error);
  if (!index) oracle_usage_error("%s:%d: %s", path, error.line, error.text);
  add_index(list, index, path, NULL);
  json_decref(index);
}

static void add_archive(oracle_list *list, const char *path)
{
  oracle_bytes text;
  json_error_t error;
  char why[500];
  if (!oracle_zip_entry(path, "index.json", &text, why, sizeof(why))) oracle_usage_error("%s", why);
  json_t *index = json_loadb((const char *)text.data, text.size, 0, &error);
  if (!index) oracle_usage_error("%s: index.json:%d: %s", path, error.line, error.text);
  oracle_archive *archive = oracle_alloc(sizeof(*archive));
  archive->path = oracle_format("%s", path);
  list->archives = oracle_grow(list->archives, list->n_archives, &list->archives_room, sizeof(*list->archives));
  list->archives[list->n_archives++] = archive;
  add_index(list, index, path, archive);
  json_decref(index);
  free(text.data);
}

static void add_model(oracle_list *list, const char *path)
{
  json_error_t error;
  json_t *described = json_load_file(path, 0, &error);
  if (!described) oracle_usage_error("%s:%d: %s", path, error.line, error.text);
  char *folder = folder_of(path);
  const char *name = json_string_value(json_object_get(described, "name")), *slash = strrchr(folder, '/');
  if (!name) name = slash ? slash + 1 : folder;
  oracle_case *c = add(list);
  c->kind = ORACLE_MODEL;
  c->id = oracle_format("models/%s", name);
  c->family = oracle_format("models");
  c->folder = folder;
  c->entry = described;
}

static bool ends_with(const char *text, const char *end)
{
  size_t n = strlen(text), m = strlen(end);
  return n >= m && strcmp(text + n - m, end) == 0;
}

static bool add_file(oracle_list *list, const char *path)
{
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  if (strcmp(name, "case.json") == 0)
    add_model(list, path);
  else if (strcmp(name, "index.json") == 0)
    add_index_file(list, path);
  else if (ends_with(name, ".zip"))
    add_archive(list, path);
  else
    return false;
  return true;
}

/* A model's folder is not searched further: everything below belongs to the model. */
static void walk(oracle_list *list, const char *folder, int depth)
{
  struct dirent **entries;
  char *model = oracle_format("%s/case.json", folder);
  struct stat info;
  bool is_model = stat(model, &info) == 0;
  if (is_model) add_model(list, model);
  free(model);
  if (is_model || depth > MAX_DEPTH) return;

  int n = scandir(folder, &entries, NULL, alphasort);
  if (n < 0) oracle_usage_error("%s: cannot be listed", folder);
  for (int i = 0; i < n; i++) {
    const char *name = entries[i]->d_name;
    char *path = oracle_format("%s/%s", folder, name);
    bool is_folder = entries[i]->d_type == DT_DIR ||
                     (entries[i]->d_type != DT_REG && stat(path, &info) == 0 && S_ISDIR(info.st_mode));
    if (name[0] != '.' && is_folder)
      walk(list, path, depth + 1);
    else if (name[0] != '.')
      add_file(list, path);
    free(path);
    free(entries[i]);
  }
  free(entries);
}

void oracle_find(oracle_list *list, const char *path)
{
  struct stat info;
  char *trimmed = oracle_format("%s", path);
  for (size_t n = strlen(trimmed); n > 1 && trimmed[n - 1] == '/'; n--) trimmed[n - 1] = 0;
  if (stat(trimmed, &info) != 0) oracle_usage_error("%s: no such file or folder", path);
  if (S_ISDIR(info.st_mode))
    walk(list, trimmed, 0);
  else if (!add_file(list, trimmed))
    oracle_usage_error("%s: neither a folder nor an index, archive or case.json", path);
  free(trimmed);
}

static int by_family(const void *a, const void *b)
{
  const oracle_case *x = a, *y = b;
  int order = strcmp(x->family, y->family);
  return order ? order : strcmp(x->id, y->id);
}

static void case_free(oracle_case *c)
{
  free(c->id);
  free(c->family);
  free(c->folder);
  json_decref(c->entry);
}

void oracle_select(oracle_list *list, const char *const *globs, size_t n_globs)
{
  size_t kept = 0;
  for (size_t i = 0; i < list->n; i++) {
    bool wanted = n_globs == 0;
    for (size_t g = 0; g < n_globs; g++) wanted |= fnmatch(globs[g], list->cases[i].id, 0) == 0;
    if (wanted)
      list->cases[kept++] = list->cases[i];
    else
      case_free(&list->cases[i]);
  }
  list->n = kept;
  if (kept) qsort(list->cases, kept, sizeof(*list->cases), by_family);
}

void oracle_list_free(oracle_list *list)
{
  for (size_t i = 0; i < list->n; i++) case_free(&list->cases[i]);
  for (size_t i = 0; i < list->n_archives; i++) {
    free(list->archives[i]->path);
    free(list->archives[i]->graphs.data);
    free(list->archives[i]->arrays.data);
    free(list->archives[i]);
  }
  free(list->cases);
  free(list->archives);
  memset(list, 0, sizeof(*list));
}
