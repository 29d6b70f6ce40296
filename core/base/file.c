/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <core/base/file.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <core/base/text.h>

#define CHUNK ((size_t)1 << 30) /* one read or write; the kernel takes no more than 2 GiB */

/* ---- the system's errors ---- */

static tn_status code_of(int number)
{
  switch (number) {
  case ENOENT:
  case ENOTDIR: return TN_NOT_FOUND;
  case EACCES:
  case EPERM:
  case EROFS: return TN_PERMISSION_DENIED;
  case ENOSPC:
  case EDQUOT:
  case EFBIG:
  case ENOMEM:
  case EMFILE:
  case ENFILE: return TN_RESOURCE_EXHAUSTED;
  case EIO: return TN_DATA_LOSS;
  case EISDIR:
  case ELOOP:
  case ENAMETOOLONG:
  case EINVAL:
  case ENXIO: return TN_INVALID_ARGUMENT;
  case EEXIST: return TN_ALREADY_EXISTS;
  case EPIPE: return TN_UNAVAILABLE; /* nobody reads any more */
  default: return TN_UNKNOWN;
  }
}

tn_status tn__system_error(tn_error *err, int number, const char *format, ...)
{
  char what[PATH_MAX + 200]; /* a longer path cannot be opened, and is cut */
  va_list args;
  va_start(args, format);
  tn__vsnprintf(what, sizeof(what), format, args);
  va_end(args);
  return tn_error_set(err, code_of(number), "%s: %s", what, tn__strerror(number));
}

static tn_status wrong_kind(tn_error *err, const char *path, mode_t mode)
{
  const char *kind = S_ISDIR(mode)                    ? "a directory"
                     : S_ISFIFO(mode)                 ? "a FIFO"
                     : S_ISSOCK(mode)                 ? "a socket"
                     : S_ISCHR(mode) || S_ISBLK(mode) ? "a device"
                                                      : "no regular file";
  return tn_error_set(err, TN_INVALID_ARGUMENT, "'%s' is %s, wanted a regular file", path, kind);
}

/* ---- reading ---- */

static void take_identity(tn__file *file, const struct stat *st)
{
  file->size = (uint64_t)st->st_size;
  file->changed_s = (int64_t)st->st_mtim.tv_sec;
  file->changed_ns = (int64_t)st->st_mtim.tv_nsec;
}

tn_status tn__file_open(const char *path, tn__file *file, tn_error *err)
{
  struct stat st;
  file->path = path;
  file->size = 0;
  /* Non-blocking: a FIFO would wait for a writer. */
  file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file->fd < 0) {
    int number = errno;
    if (number == ENXIO && stat(path, &st) == 0) return wrong_kind(err, path, st.st_mode); /* a socket */
    return tn__system_error(err, number, "cannot open '%s'", path);
  }
  tn_status s = TN_OK;
  if (fstat(file->fd, &st) != 0)
    s = tn__system_error(err, errno, "cannot examine '%s'", path);
  else if (!S_ISREG(st.st_mode))
    s = wrong_kind(err, path, st.st_mode);
  else
    take_identity(file, &st);
  if (s != TN_OK) tn__file_close(file);
  return s;
}

tn_status tn__file_read(const tn__file *file, uint64_t offset, void *to, size_t n, tn_error *err)
{
  size_t done = 0;
  while (done < n) {
    size_t part = n - done < CHUNK ? n - done : CHUNK;
    ssize_t got = pread(file->fd, (char *)to + done, part, (off_t)(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return tn__system_error(err, errno, "cannot read '%s' at byte %" PRIu64, file->path, offset + done);
    if (got == 0)
      return tn_error_set(err, TN_DATA_LOSS, "'%s' ends at byte %" PRIu64 ", wanted %zu bytes from byte %" PRIu64,
                          file->path, offset + done, n, offset);
    done += (size_t)got;
  }
  return TN_OK;
}

bool tn__file_unchanged(const tn__file *file)
{
  struct stat st;
  tn__file now;
  if (fstat(file->fd, &st) != 0) return false;
  take_identity(&now, &st);
  return now.size == file->size && now.changed_s == file->changed_s && now.changed_ns == file->changed_ns;
}

void tn__file_close(tn__file *file)
{
  if (file->fd >= 0) close(file->fd);
  file->fd = -1;
}

/* ---- writing ---- */

static void writer_reset(tn__writer *w, const char *path)
{
  memset(w, 0, sizeof(*w));
  w->fd = -1;
  w->path = path;
}

/* A name in the folder of the target that is not in use; the kernel sees to that by O_EXCL. */
static tn_status open_temporary(tn__writer *w, tn_error *err)
{
  static atomic_uint counter;
  const char *slash = strrchr(w->target, '/');
  size_t folder = slash == NULL ? 0 : (size_t)(slash - w->target) + 1;
  for (int attempt = 0;; attempt++) {
    struct timespec now = { 0, 0 };
    clock_gettime(CLOCK_REALTIME, &now);
    char name[80];
    tn__snprintf(name, sizeof(name), ".tenon-%lx-%lx-%x", (unsigned long)getpid(), (unsigned long)now.tv_nsec,
                 atomic_fetch_add(&counter, 1));
    size_t size = folder + strlen(name) + 1;
    char *path = tn__alloc(size);
    if (path == NULL) return tn__no_memory(err, "the name of a temporary file", size);
    memcpy(path, w->target, folder);
    memcpy(path + folder, name, size - folder);
    w->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (w->fd >= 0) {
      w->temporary = path;
      return TN_OK;
    }
    int number = errno;
    tn__strfree(path);
    if (number != EEXIST || attempt == 100)
      return tn__system_error(err, number, "cannot create a file in the folder of '%s'", w->path);
  }
}

/* Something that exists and cannot be replaced. A FIFO without a reader is an error and no wait. */
static tn_status open_direct(tn__writer *w, tn_error *err)
{
  w->fd = open(w->path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (w->fd < 0) {
    int number = errno;
    if (number == ENXIO)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "'%s' is a FIFO or socket that nobody reads", w->path);
    return tn__system_error(err, number, "cannot open '%s' for writing", w->path);
  }
  int flags = fcntl(w->fd, F_GETFL);
  if (flags >= 0) fcntl(w->fd, F_SETFL, flags & ~O_NONBLOCK);
  return TN_OK;
}

static bool starts_with(const char *text, const char *start) { return strncmp(text, start, strlen(start)) == 0; }

tn_status tn__writer_open(tn__writer *w, const char *path, tn_error *err)
{
  struct stat st, target;
  writer_reset(w, path);
  bool exists = lstat(path, &st) == 0;
  if (!exists && errno != ENOENT) return tn__system_error(err, errno, "cannot write '%s'", path);
  char resolved[PATH_MAX];
  const char *place = path;
  if (exists && S_ISLNK(st.st_mode)) {
    if (stat(path, &target) != 0) return tn__system_error(err, errno, "cannot follow the symbolic link '%s'", path);
    /* /dev/stdout may lead to a regular file that somebody has open: that one is meant, not a new one of its name. */
    bool device = !S_ISREG(target.st_mode) || starts_with(path, "/dev/") || starts_with(path, "/proc/");
    if (!device && realpath(path, resolved) == NULL)
      return tn__system_error(err, errno, "cannot follow the symbolic link '%s'", path);
    if (!device) place = resolved;
    st = target;
    if (device && !S_ISDIR(st.st_mode)) return open_direct(w, err);
  }
  if (exists && S_ISDIR(st.st_mode))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "cannot write '%s': it is a directory", path);
  if (exists && !S_ISREG(st.st_mode)) return open_direct(w, err);

  w->target = tn__strdup(place);
  tn_status s = w->target == NULL ? tn__no_memory(err, "a file name", strlen(place) + 1) : open_temporary(w, err);
  if (s != TN_OK)
    tn__writer_abandon(w);
  else if (exists && fchmod(w->fd, st.st_mode & 07777) != 0)
    tn_log(TN_LOG_DEBUG, "'%s' has new permissions: %s", path, tn__strerror(errno));
  return s;
}

tn_status tn__writer_write(tn__writer *w, const void *data, size_t n, tn_error *err)
{
  size_t done = 0;
  while (done < n) {
    size_t part = n - done < CHUNK ? n - done : CHUNK;
    ssize_t put = write(w->fd, (const char *)data + done, part);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return tn__system_error(err, put < 0 ? errno : ENOSPC, "cannot write '%s'", w->path);
    done += (size_t)put;
  }
  return TN_OK;
}

tn_status tn__writer_commit(tn__writer *w, tn_error *err)
{
  tn_status s = TN_OK;
  int fd = w->fd;
  w->fd = -1;
  if (close(fd) != 0 && errno != EINTR) s = tn__system_error(err, errno, "cannot write '%s'", w->path);
  if (s == TN_OK && w->temporary != NULL && rename(w->temporary, w->target) != 0)
    s = tn__system_error(err, errno, "cannot put '%s' in its place", w->path);
  if (s == TN_OK) {
    tn__strfree(w->temporary);
    w->temporary = NULL;
  }
  tn__writer_abandon(w);
  return s;
}

void tn__writer_abandon(tn__writer *w)
{
  if (w->fd >= 0) close(w->fd);
  if (w->temporary != NULL) unlink(w->temporary);
  tn__strfree(w->temporary);
  tn__strfree(w->target);
  writer_reset(w, w->path);
}
