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

#define CHUNK ((size_t)1 << 30) /* bytes of one read or write; the system transfers at most 2 GiB at once */

/* ---- system errors ---- */

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
  case EPIPE: return TN_UNAVAILABLE; /* the reader has closed the pipe */
  default: return TN_UNKNOWN;
  }
}

tn_status tn__system_error(tn_error *err, int number, const char *format, ...)
{
  char what[PATH_MAX + 200]; /* a longer path cannot be opened anyway; its text is cut */
  va_list args;
  va_start(args, format);
  tn__vsnprintf(what, sizeof(what), format, args);
  va_end(args);
  return tn_error_set(err, code_of(number), "%s: %s", what, tn__strerror(number));
}

static const char *kind_name(mode_t mode)
{
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "of an unknown type";
}

static tn_status wrong_kind(tn_error *err, const char *path, mode_t mode)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "'%s' is %s, wanted a regular file", path, kind_name(mode));
}

/* ---- reading ---- */

/* Records size and time of change, by which tn__file_unchanged recognises the file. */
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
  /* Non-blocking: opening a FIFO would wait for a writer. */
  file->fd = tn__sys_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
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
    ssize_t got = tn__sys_pread(file->fd, (char *)to + done, part, (off_t)(offset + done));
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
  if (file->fd >= 0) tn__sys_close(file->fd);
  file->fd = -1;
}

/* ---- writing ---- */

static void writer_reset(tn__writer *w, const char *path)
{
  memset(w, 0, sizeof(*w));
  w->fd = -1;
  w->path = path;
}

bool tn__writer_always_names;

static tn_status process_ends(const tn__writer *w, tn_error *err)
{
  return tn_error_set(err, TN_CANCELLED, "cannot write '%s': unfinished files were abandoned (tn_files_abandon)",
                      w->path);
}

/* The length of the directory part of a path, including its slash; 0: the current directory. */
static size_t folder_size(const char *path)
{
  const char *slash = strrchr(path, '/');
  return slash == NULL ? 0 : (size_t)(slash - path) + 1;
}

/* Returns a probably unused path in the directory of the target, to be freed by the caller. NULL: out of memory. */
static char *other_name(const tn__writer *w)
{
  static atomic_uint counter;
  struct timespec now = { 0, 0 };
  char name[80];
  size_t folder = folder_size(w->target);
  clock_gettime(CLOCK_REALTIME, &now);
  tn__snprintf(name, sizeof(name), ".tenon-%lx-%lx-%x", (unsigned long)getpid(), (unsigned long)now.tv_nsec,
               atomic_fetch_add(&counter, 1));
  size_t size = folder + strlen(name) + 1;
  char *path = tn__alloc(size);
  if (path == NULL) return NULL;
  memcpy(path, w->target, folder);
  memcpy(path + folder, name, size - folder);
  return path;
}

/* Names the file temporarily: calls `make` with new names until one is unused (at most 101 tries). `make` returns 0 or
 * an errno, EEXIST if the name is in use. Returns the result of the last call, or ENOMEM. The caller is in a section
 * (temporary.h). */
static int name_otherwise(tn__writer *w, int (*make)(tn__writer *w, const char *name))
{
  for (int attempt = 0;; attempt++) {
    char *path = other_name(w);
    if (path == NULL || (w->temporary = tn__temporary_add(path)) == NULL) return ENOMEM;
    int number = make(w, w->temporary->path);
    if (number == 0) return 0;
    tn__temporary_drop(w->temporary);
    w->temporary = NULL;
    if (number != EEXIST || attempt == 100) return number;
  }
}

static int make_file(tn__writer *w, const char *name)
{
  w->fd = tn__sys_open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  return w->fd < 0 ? errno : 0;
}

static tn_status open_named(tn__writer *w, tn_error *err)
{
  if (!tn__temporaries_enter()) return process_ends(w, err);
  int number = name_otherwise(w, make_file);
  tn__temporaries_leave();
  if (number == ENOMEM) return tn__no_memory(err, "the name of a temporary file", strlen(w->target));
  if (number == 0) return TN_OK;
  return tn__system_error(err, number, "cannot create a file in the folder of '%s'", w->path);
}

/* A path of an open file, for access() and linkat(). Linking by the descriptor itself (AT_EMPTY_PATH) would need a
 * privilege. */
static void descriptor_name(int fd, char name[40]) { tn__snprintf(name, 40, "/proc/self/fd/%d", fd); }

/* Opens an unnamed file (O_TMPFILE). False: the system or file system has none, or could not name it afterwards. */
static bool open_unnamed(tn__writer *w)
{
#if defined(O_TMPFILE)
  char own[40], here[] = "./", *folder = here;
  size_t size = folder_size(w->target);
  if (tn__writer_always_names) return false;
  if (size > 0 && (folder = tn__strndup(w->target, size)) == NULL) return false;
  w->fd = tn__sys_open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (folder != here) tn__strfree(folder);
  if (w->fd < 0) return false;
  descriptor_name(w->fd, own);
  if (access(own, F_OK) == 0) return true;
  tn__sys_close(w->fd);
  w->fd = -1;
#endif
  return false;
}

/* Opens a target that cannot be replaced by a new file (a device, a pipe). A FIFO without a reader is an error; it does
 * not block. */
static tn_status open_direct(tn__writer *w, tn_error *err)
{
  w->fd = tn__sys_open(w->path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
  if (w->fd < 0) {
    int number = errno;
    if (number == ENXIO)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "'%s' is a FIFO or socket without a reader", w->path);
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
    /* /dev/stdout may link to an open regular file. Write to that file itself instead of replacing it by a new one. */
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
  tn_status s = w->target == NULL ? tn__no_memory(err, "a file name", strlen(place) + 1) : TN_OK;
  if (s == TN_OK && !open_unnamed(w)) s = open_named(w, err);
  if (s != TN_OK)
    tn__writer_abandon(w);
  else if (exists && fchmod(w->fd, st.st_mode & 07777) != 0)
    tn_log(TN_LOG_DEBUG, "cannot keep the permissions of '%s': %s", path, tn__strerror(errno));
  return s;
}

tn_status tn__writer_write(tn__writer *w, const void *data, size_t n, tn_error *err)
{
  size_t done = 0;
  while (done < n) {
    size_t part = n - done < CHUNK ? n - done : CHUNK;
    ssize_t put = tn__sys_write(w->fd, (const char *)data + done, part);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return tn__system_error(err, put < 0 ? errno : ENOSPC, "cannot write '%s'", w->path);
    done += (size_t)put;
  }
  return TN_OK;
}

void tn__writer_start(const tn__writer *w, uint64_t offset, uint64_t n)
{
#if defined(SYNC_FILE_RANGE_WRITE)
  int state = tn__cancel_hold();
  sync_file_range(w->fd, (off_t)offset, (off_t)n, SYNC_FILE_RANGE_WRITE);
  tn__cancel_restore(state);
#endif
}

/* Devices and pipes have nothing to sync: EINVAL. Returns 0 or an errno. */
static int sync_fd(int fd)
{
  while (tn__sys_fsync(fd) != 0) {
    if (errno == EINTR) continue;
    return errno == EINVAL || errno == ENOTSUP ? 0 : errno;
  }
  return 0;
}

tn_status tn__writer_sync(const tn__writer *w, tn_error *err)
{
  int number = sync_fd(w->fd);
  return number == 0 ? TN_OK : tn__system_error(err, number, "cannot write '%s' to the disk", w->path);
}

tn_status tn__folder_sync(const char *path, tn_error *err)
{
  char here[] = "./", *folder = here;
  size_t size = folder_size(path);
  if (size > 0 && (folder = tn__strndup(path, size)) == NULL)
    return tn__no_memory(err, "the name of a folder", size + 1);
  int fd = tn__sys_open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0), number = fd < 0 ? errno : sync_fd(fd);
  if (fd >= 0) tn__sys_close(fd);
  tn_status s = number == 0 ? TN_OK : tn__system_error(err, number, "cannot write the folder '%s' to the disk", folder);
  if (folder != here) tn__strfree(folder);
  return s;
}

static int link_file(tn__writer *w, const char *name)
{
  char own[40];
  descriptor_name(w->fd, own);
  return linkat(AT_FDCWD, own, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
}

/* Gives the complete file its final name. linkat() cannot replace an existing file, so in that case the file is linked
 * under a temporary name, which is then renamed. The caller is in a section. Returns 0 or an errno. */
static int put_in_place(tn__writer *w)
{
  int number = 0;
  if (w->temporary == NULL) {
    number = link_file(w, w->target);
    if (number != EEXIST) return number;
    number = name_otherwise(w, link_file);
  }
  if (number == 0 && rename(w->temporary->path, w->target) != 0) return errno;
  if (number != 0) return number;
  tn__temporary_drop(w->temporary);
  w->temporary = NULL;
  return 0;
}

/* Closes a duplicate of the descriptor: some file systems report a failed write only at close, but the file must stay
 * open until it is linked. Returns 0 or an errno. */
static int flush_file(const tn__writer *w)
{
  int other = fcntl(w->fd, F_DUPFD_CLOEXEC, 0);
  if (other < 0) return errno;
  return tn__sys_close(other) == 0 || errno == EINTR ? 0 : errno;
}

tn_status tn__writer_commit(tn__writer *w, tn_error *err)
{
  int number = flush_file(w);
  tn_status s = number == 0 ? TN_OK : tn__system_error(err, number, "cannot write '%s'", w->path);
  if (s == TN_OK && w->target != NULL) {
    if (tn__temporaries_enter()) {
      number = put_in_place(w);
      tn__temporaries_leave();
      if (number != 0) s = tn__system_error(err, number, "cannot move the new file to '%s'", w->path);
    } else {
      s = process_ends(w, err);
    }
  }
  tn__writer_abandon(w);
  return s;
}

void tn__writer_abandon(tn__writer *w)
{
  if (w->fd >= 0) tn__sys_close(w->fd);
  /* After tn_files_abandon the file is removed already, and its entry stays in the list. */
  if (w->temporary != NULL && tn__temporaries_enter()) {
    unlink(w->temporary->path);
    tn__temporary_drop(w->temporary);
    tn__temporaries_leave();
  }
  tn__strfree(w->target);
  writer_reset(w, w->path);
}

tn_status tn_file_save(const char *path, const void *data, size_t size, tn_error *err)
{
  tn__writer w;
  tn__error_reset(err);
  if (path == NULL || path[0] == 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "the path of a file to write is %s", path == NULL ? "NULL" : "empty");
  if (data == NULL && size > 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "file '%s': data is NULL but size is %zu", path, size);
  tn_status s = tn__writer_open(&w, path, err);
  if (s != TN_OK) return s;
  s = tn__writer_write(&w, data, size, err);
  if (s == TN_OK) return tn__writer_commit(&w, err);
  tn__writer_abandon(&w);
  return s;
}
