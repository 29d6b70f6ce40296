/* SPDX-License-Identifier: Apache-2.0 */
/* Follows paths part by part. realpath() would not do: it fails where a part is missing, and then nothing is known of a
 * link that leads to a file that does not exist yet. */
#define _GNU_SOURCE
#include <core/base/path.h>

#include <core/base/file.h>
#include <core/base/text.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#define MOST_LINKS 40 /* as in Linux */

typedef struct walk {
  const char *path; /* borrowed, for messages */
  tn__text at;      /* the place so far; "" is the root */
  char *rest;       /* owned; the parts that follow begin at `next` */
  const char *next;
  int links;
  int end; /* errno of the first part that is no folder (ENOENT, ENOTDIR): no file is looked up after it; 0: none */
} walk;

static tn_status failed(const walk *w, int number, tn_error *err)
{
  return tn__system_error(err, number, "cannot follow the path '%s'", w->path);
}

static void leave_part(walk *w)
{
  char *slash = w->at.size == 0 ? NULL : strrchr(w->at.data, '/');
  if (slash == NULL) return;
  w->at.size = (size_t)(slash - w->at.data);
  *slash = 0;
}

/* Continues with the link's target, and then with the rest of the path. */
static tn_status follow_link(walk *w, tn_error *err)
{
  char target[PATH_MAX];
  ssize_t n = readlink(w->at.data, target, sizeof target);
  if (n < 0) return failed(w, errno, err);
  if (++w->links > MOST_LINKS) return failed(w, ELOOP, err);
  size_t left = strlen(w->next), size = (size_t)n + 1 + left + 1;
  if (size > 2 * PATH_MAX) return failed(w, ENAMETOOLONG, err);
  char *rest = tn__alloc(size);
  if (rest == NULL) return tn__no_memory(err, "path", size);
  memcpy(rest, target, (size_t)n);
  rest[n] = '/';
  memcpy(rest + n + 1, w->next, left + 1);
  tn__strfree(w->rest);
  w->next = w->rest = rest;
  leave_part(w);
  if (target[0] == '/') w->at.size = 0;
  return TN_OK;
}

static tn_status enter_part(walk *w, const char *part, size_t n, tn_error *err)
{
  struct stat st;
  tn__text_puts(&w->at, "/");
  tn__text_append(&w->at, part, n);
  if (w->at.failed) return tn__no_memory(err, "path", w->at.size + n);
  if (w->end != 0) return TN_OK;
  if (lstat(w->at.data, &st) == 0) {
    if (S_ISLNK(st.st_mode)) return follow_link(w, err);
    if (!S_ISDIR(st.st_mode)) w->end = ENOTDIR;
    return TN_OK;
  }
  if (errno != ENOENT && errno != ENOTDIR) return failed(w, errno, err);
  w->end = errno;
  return TN_OK;
}

static tn_status take_part(walk *w, tn_error *err)
{
  const char *part = w->next;
  size_t n = strcspn(part, "/");
  w->next = part[n] == '/' ? part + n + 1 : part + n;
  if (n == 0 || (n == 1 && part[0] == '.')) return TN_OK;
  if (n != 2 || part[0] != '.' || part[1] != '.') return enter_part(w, part, n, err);
  if (w->end != 0) return failed(w, w->end, err);
  leave_part(w);
  return TN_OK;
}

static tn_status begin(walk *w, tn_error *err)
{
  char here[PATH_MAX];
  if (w->path[0] == 0 || strlen(w->path) >= PATH_MAX)
    return failed(w, w->path[0] == 0 ? EINVAL : ENAMETOOLONG, err);
  if (w->path[0] != '/') {
    if (getcwd(here, sizeof here) == NULL) return failed(w, errno, err);
    tn__text_puts(&w->at, strcmp(here, "/") == 0 ? "" : here);
  }
  w->next = w->rest = tn__strdup(w->path);
  return w->rest != NULL ? TN_OK : tn__no_memory(err, "path", strlen(w->path) + 1);
}

tn_status tn__path_follow(const char *path, char **out, tn_error *err)
{
  walk w = { .path = path };
  tn__text_init(&w.at, SIZE_MAX / 2);
  *out = NULL;
  tn_status st = begin(&w, err);
  while (st == TN_OK && *w.next != 0) st = take_part(&w, err);
  if (st == TN_OK) {
    *out = w.at.size == 0 ? tn__strdup("/") : tn__strndup(w.at.data, w.at.size);
    if (*out == NULL) st = tn__no_memory(err, "path", w.at.size + 1);
  }
  tn__strfree(w.rest);
  tn__text_fini(&w.at);
  return st;
}

bool tn__path_is_within(const char *path, const char *folder)
{
  size_t n = strlen(folder);
  if (n == 1) return true; /* the root */
  return strncmp(path, folder, n) == 0 && (path[n] == 0 || path[n] == '/');
}
