/* SPDX-License-Identifier: Apache-2.0 */
/* Files: read as a whole or in parts, written so that nothing half written is left behind. Messages name the path. */
#ifndef TN_CORE_BASE_FILE_H
#define TN_CORE_BASE_FILE_H

#include <core/base/temporary.h>
#include <core/base/thread.h>
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

/* Records what the system's error `number` means: "<text>: No such file or directory". Returns the code: NOT_FOUND,
 * PERMISSION_DENIED, RESOURCE_EXHAUSTED (no space, memory or descriptors), DATA_LOSS (I/O), INVALID_ARGUMENT, ... */
tn_status tn__system_error(tn_error *err, int number, const char *format, ...) TN_PRINTF(3, 4);

/* Whether shared objects can be loaded into this program; false in one that is linked all statically. What cannot be
 * done for that reason is TN_UNIMPLEMENTED, and the message says "static build: " (P-91). */
bool tn__loads_files(void);

/* ---- reading ---- */

typedef struct tn__file {
  int fd;
  uint64_t size;
  const char *path; /* borrowed */
  int64_t changed_s, changed_ns; /* when it was last written to, as it was opened */
} tn__file;

/* Opens a regular file; a folder, FIFO, socket or device is TN_INVALID_ARGUMENT. Never waits. */
tn_status tn__file_open(const char *path, tn__file *file, tn_error *err);
/* All of the n bytes from `offset`; TN_DATA_LOSS when the file ends before. */
tn_status tn__file_read(const tn__file *file, uint64_t offset, void *to, size_t n, tn_error *err);
/* Whether the open file has the size that it had, and was not written to. */
bool tn__file_unchanged(const tn__file *file);
void tn__file_close(tn__file *file);

/* ---- writing ---- */

/* A regular file is written without a name, where the system has that (O_TMPFILE), else under another one in its
 * folder; at the end it gets its name. What exists and is something else (a terminal, a pipe, /dev/stdout) is written
 * directly. */
typedef struct tn__writer {
  int fd;
  const char *path;         /* borrowed */
  char *target;             /* where the file goes: `path`, symbolic links followed; NULL when written directly */
  tn__temporary *temporary; /* NULL: it has no name, or is written directly */
} tn__writer;

/* For tests: files are made with a name, as on systems that cannot do without. */
extern bool tn__writer_always_names;

tn_status tn__writer_open(tn__writer *w, const char *path, tn_error *err);
tn_status tn__writer_write(tn__writer *w, const void *data, size_t n, tn_error *err);
/* Puts the file in its place; on failure nothing is left. Then w is closed. TN_CANCELLED after tn_files_abandon. */
tn_status tn__writer_commit(tn__writer *w, tn_error *err);
/* Closes w and removes what was written; nothing for one that is closed. */
void tn__writer_abandon(tn__writer *w);

/* ---- system calls at which pthread_cancel does not end the thread ---- */

static inline int tn__sys_open(const char *path, int flags, mode_t mode)
{
  int state = tn__cancel_hold(), fd = open(path, flags, mode);
  tn__cancel_restore(state);
  return fd;
}

static inline ssize_t tn__sys_pread(int fd, void *to, size_t n, off_t offset)
{
  int state = tn__cancel_hold();
  ssize_t got = pread(fd, to, n, offset);
  tn__cancel_restore(state);
  return got;
}

static inline ssize_t tn__sys_write(int fd, const void *data, size_t n)
{
  int state = tn__cancel_hold();
  ssize_t put = write(fd, data, n);
  tn__cancel_restore(state);
  return put;
}

static inline int tn__sys_close(int fd)
{
  int state = tn__cancel_hold(), failed = close(fd);
  tn__cancel_restore(state);
  return failed;
}

#endif
