/* SPDX-License-Identifier: Apache-2.0 */
#include <core/resource/folders.h>

#include <core/base/path.h>
#include <core/base/text.h>
#include <string.h>

#define MOST_LISTED 8 /* folders in a message */

static const char *const options[] = { [TN__TO_READ] = "read_folders", [TN__TO_WRITE] = "write_folders" };

void tn__folders_fini(tn__folders *folders)
{
  for (int use = 0; use < 2; use++) {
    struct tn__folder_list *list = &folders->lists[use];
    for (size_t i = 0; i < list->n; i++) tn__strfree(list->names[i]);
    tn__free(list->names, list->room * sizeof *list->names);
  }
  memset(folders, 0, sizeof *folders);
}

tn_status tn__folders_add(tn__folders *folders, tn__file_use use, const char *folder, tn_error *err)
{
  struct tn__folder_list *list = &folders->lists[use];
  char *name;
  if (strcmp(folder, "*") == 0) folder = "/";
  tn_status st = tn__path_follow(folder, &name, err);
  if (st != TN_OK) {
    tn_error_prefix(err, "option %s", options[use]);
    return st;
  }
  if (!tn__grow((void **)&list->names, &list->room, list->n + 1, sizeof *list->names)) {
    tn__strfree(name);
    return tn__no_memory(err, "list of folders", list->n + 1);
  }
  list->names[list->n++] = name;
  list->all |= strcmp(name, "/") == 0;
  return TN_OK;
}

static bool allows(const struct tn__folder_list *list, const char *path)
{
  for (size_t i = 0; i < list->n; i++)
    if (tn__path_is_within(path, list->names[i])) return true;
  return false;
}

static void append_list(tn__text *text, const struct tn__folder_list *list)
{
  for (size_t i = 0; i < list->n && i < MOST_LISTED; i++)
    tn__text_printf(text, "%s'%.200s'", text->size > 0 ? ", " : " allows ", list->names[i]);
  if (list->n > MOST_LISTED) tn__text_printf(text, " and %zu more", list->n - MOST_LISTED);
}

/* path: where the name leads. */
static tn_status refuse(const tn__folders *folders, tn__file_use use, const char *name, const char *path, tn_error *err)
{
  tn__text allowed, place;
  tn__text_init(&allowed, SIZE_MAX / 2);
  tn__text_init(&place, SIZE_MAX / 2);
  if (folders != NULL && use == TN__TO_READ) append_list(&allowed, &folders->lists[TN__TO_READ]);
  if (folders != NULL) append_list(&allowed, &folders->lists[TN__TO_WRITE]);
  if (allowed.size == 0) tn__text_puts(&allowed, " allows no folder");
  if (strcmp(name, path) != 0) tn__text_printf(&place, " ('%.500s')", path);
  tn_status st;
  if (allowed.failed || place.failed)
    st = tn__no_memory(err, "names of folders", allowed.size);
  else
    st = tn_error_set(err, TN_PERMISSION_DENIED, "the graph may not %s '%.500s'%s: the session option %s%s",
                      use == TN__TO_READ ? "read" : "write", name, tn__text_get(&place), options[use],
                      tn__text_get(&allowed));
  tn__text_fini(&allowed);
  tn__text_fini(&place);
  return st;
}

static bool allows_all(const tn__folders *folders, tn__file_use use)
{
  return folders != NULL && (folders->lists[TN__TO_WRITE].all || folders->lists[use].all);
}

tn_status tn__folders_find(const tn__folders *folders, tn__file_use use, const char *name, char **path, tn_error *err)
{
  *path = NULL;
  if (name[0] == 0 || allows_all(folders, use)) {
    *path = tn__strdup(name);
    return *path != NULL ? TN_OK : tn__no_memory(err, "file name", strlen(name) + 1);
  }
  char *found;
  tn_status st = tn__path_follow(name, &found, err);
  if (st != TN_OK) return st;
  bool ok = folders != NULL && (allows(&folders->lists[TN__TO_WRITE], found) || allows(&folders->lists[use], found));
  if (ok) {
    *path = found;
    return TN_OK;
  }
  st = refuse(folders, use, name, found, err);
  tn__strfree(found);
  return st;
}
