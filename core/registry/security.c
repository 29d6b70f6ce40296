/* SPDX-License-Identifier: Apache-2.0 */
/* Whether another user could change a file before it is loaded (P-77, P-78).
 *
 * A user who may write to a folder on a path, or on the path of a link in it, can replace the file at its end. So the
 * path is walked component by component, through links, and no component may be world-writable. A folder with the
 * sticky bit, such as /tmp, is allowed: users cannot rename or remove files in it that they do not own. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/auxv.h>
#endif

#include <core/registry/registry_internal.h>

#define MAX_LINKS 40   /* symbolic links in one path, the kernel's own limit */
#define MAX_PATH 65536 /* bytes of a path with all its links resolved */

bool tn__elevated(void)
{
#if defined(__linux__)
  return getauxval(AT_SECURE) != 0;
#else
  return geteuid() != getuid() || getegid() != getgid();
#endif
}

bool tn__same_file(const tn__file_id *a, const tn__file_id *b) { return a->dev == b->dev && a->ino == b->ino; }

static const char *kind_of(mode_t mode)
{
  switch (mode & S_IFMT) {
  case S_IFREG: return "file";
  case S_IFDIR: return "directory";
  case S_IFIFO: return "FIFO";
  case S_IFSOCK: return "socket";
  default: return "device";
  }
}

/* Checks the mode and owner of one component. A process with elevated privileges trusts root only; otherwise a foreign
 * owner is merely reported in *foreign. */
static tn_status check_component(const char *path, const struct stat *st, bool elevated, bool *foreign, tn_error *err)
{
  unsigned mode = (unsigned)st->st_mode & 07777;
  bool directory = S_ISDIR(st->st_mode);
  if ((mode & S_IWOTH) != 0 && !(directory && (mode & S_ISVTX) != 0))
    return tn_error_set(err, TN_PERMISSION_DENIED, "%s '%s' has mode %04o: it is world-writable%s",
                        kind_of(st->st_mode), path, mode, directory ? " and has no sticky bit" : "");
  if (elevated && st->st_uid != 0)
    return tn_error_set(
        err, TN_PERMISSION_DENIED,
        "%s '%s' is owned by user %lu: a process with elevated privileges loads only files owned by root",
        kind_of(st->st_mode), path, (unsigned long)st->st_uid);
  if (elevated && (mode & S_IWGRP) != 0)
    return tn_error_set(
        err, TN_PERMISSION_DENIED,
        "%s '%s' has mode %04o: it is group-writable, and this process has elevated privileges",
        kind_of(st->st_mode), path, mode);
  if (foreign != NULL && st->st_uid != 0 && st->st_uid != geteuid()) *foreign = true;
  return TN_OK;
}

static tn_status cannot(const char *path, int number, tn_error *err)
{
  switch (number) {
  case ENOENT:
  case ENOTDIR: return tn_error_set(err, TN_NOT_FOUND, "'%s' does not exist", path);
  case EACCES:
  case EPERM: return tn_error_set(err, TN_PERMISSION_DENIED, "'%s' is not accessible to this user", path);
  case ENOMEM: return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "'%s' cannot be examined: out of memory", path);
  default: return tn_error_set(err, TN_INVALID_ARGUMENT, "'%s' cannot be examined: errno %d", path, number);
  }
}

/* Replaces `rest` by the target of the symbolic link at `path` and what follows offset `at` of rest. */
static tn_status follow(const char *path, tn__text *rest, size_t at, tn_error *err)
{
  tn__text joined;
  char target[4096];
  ssize_t n = readlink(path, target, sizeof(target));
  if (n < 0) return cannot(path, errno, err);
  if ((size_t)n == sizeof(target))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "symbolic link '%s' is longer than %zu bytes", path,
                        sizeof(target) - 1);
  tn__text_init(&joined, MAX_PATH);
  tn__text_append(&joined, target, (size_t)n);
  tn__text_puts(&joined, "/");
  tn__text_append(&joined, rest->data + at, rest->size - at);
  if (joined.failed) {
    tn__text_fini(&joined);
    return tn__no_memory(err, "a path", (size_t)n + rest->size);
  }
  tn__text_fini(rest);
  *rest = joined;
  return TN_OK;
}

/* Removes the last component: "/a/b" becomes "/a", and "/a" becomes "". */
static void cut_last(tn__text *done)
{
  while (done->size > 0 && done->data[--done->size] != '/') {}
  if (done->data != NULL) done->data[done->size] = 0;
}

/* Moves components from `rest` to `done` until none is left. `done` is the path so far, without links: "" or "/a/b".
 * *st is that of the component reached last. */
static tn_status walk(tn__text *done, tn__text *rest, bool elevated, struct stat *st, bool *foreign, tn_error *err)
{
  unsigned links = 0;
  tn_status status = TN_OK;
  for (size_t at = 0; status == TN_OK;) {
    while (at < rest->size && rest->data[at] == '/') at++;
    if (at >= rest->size) return TN_OK;
    if (!S_ISDIR(st->st_mode)) return tn_error_set(err, TN_NOT_FOUND, "'%s' is not a directory", tn__text_get(done));
    const char *name = rest->data + at;
    size_t size = strcspn(name, "/");
    at += size;
    if (size == 1 && name[0] == '.') continue;
    if (size == 2 && name[0] == '.' && name[1] == '.') {
      cut_last(done);
      continue;
    }
    tn__text_puts(done, "/");
    tn__text_append(done, name, size);
    if (done->failed) return tn__no_memory(err, "a path", rest->size);
    if (lstat(done->data, st) != 0) return cannot(done->data, errno, err);
    if (!S_ISLNK(st->st_mode)) {
      status = check_component(done->data, st, elevated, foreign, err);
      continue;
    }
    if (++links > MAX_LINKS)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "'%s': more than %d symbolic links in its path", done->data,
                          MAX_LINKS);
    /* Continue at the folder of the link, or at the root if its target is absolute. */
    status = follow(done->data, rest, at, err);
    at = 0;
    if (status != TN_OK) break;
    if (rest->data[0] == '/')
      done->size = 0;
    else
      cut_last(done);
    if (done->size == 0) done->data[0] = 0;
    if (lstat(done->size == 0 ? "/" : done->data, st) != 0) return cannot(done->data, errno, err);
  }
  return status;
}

static tn_status take_file(const char *path, const struct stat *st, tn__file_id *id, tn_error *err)
{
  if (!S_ISREG(st->st_mode))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "'%s' is a %s, wanted a regular file", path, kind_of(st->st_mode));
  if (id != NULL) *id = (tn__file_id){ st->st_dev, st->st_ino, st->st_size, st->st_mtim };
  return TN_OK;
}

/* Checks every component from "/" on; *st is that of the last one. */
static tn_status check_path(const char *path, bool elevated, struct stat *st, bool *foreign, tn_error *err)
{
  tn__text done, rest;
  if (foreign != NULL) *foreign = false;
  if (path[0] != '/') return tn_error_set(err, TN_INVALID_ARGUMENT, "'%s' is not an absolute path", path);
  if (stat("/", st) != 0) return cannot("/", errno, err);
  tn_status status = check_component("/", st, elevated, foreign, err);
  if (status != TN_OK) return status;
  tn__text_init(&done, MAX_PATH);
  tn__text_init(&rest, MAX_PATH);
  tn__text_puts(&rest, path);
  status = rest.failed ? tn__no_memory(err, "a path", strlen(path)) : walk(&done, &rest, elevated, st, foreign, err);
  tn__text_fini(&done);
  tn__text_fini(&rest);
  return status;
}

tn_status tn__path_check(const char *path, bool elevated, tn__file_id *id, bool *foreign, tn_error *err)
{
  struct stat st;
  tn_status status = check_path(path, elevated, &st, foreign, err);
  return status == TN_OK ? take_file(path, &st, id, err) : status;
}

bool tn__folder_is_safe(const char *path, bool elevated, bool *foreign)
{
  struct stat st;
  return check_path(path, elevated, &st, foreign, NULL) == TN_OK && S_ISDIR(st.st_mode);
}

tn_status tn__path_check_last(const char *path, bool elevated, tn__file_id *id, bool *foreign, tn_error *err)
{
  struct stat st;
  if (lstat(path, &st) != 0) return cannot(path, errno, err);
  if (S_ISLNK(st.st_mode)) return tn__path_check(path, elevated, id, foreign, err);
  tn_status status = check_component(path, &st, elevated, foreign, err);
  return status == TN_OK ? take_file(path, &st, id, err) : status;
}
