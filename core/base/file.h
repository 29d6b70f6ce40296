/* SPDX-License-Identifier: Apache-2.0 */
/* Files. A file is read as a whole or in parts. A file is written atomically: under its name there is the old content
 * or the complete new content, never a part. Messages name the path. */
#ifndef TN_CORE_BASE_FILE_H
#define TN_CORE_BASE_FILE_H

#include <core/base/temporary.h>
#include <core/base/threads/thread.h>
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

/* Sets an error from the errno `number`, with the message "<text>: No such file or directory". Returns the code:
 * NOT_FOUND, PERMISSION_DENIED, RESOURCE_EXHAUSTED (no space, memory or descriptors), DATA_LOSS (I/O),
 * INVALID_ARGUMENT, ... */
tn_status tn__system_error(tn_error *err, int number, const char *format, ...) TN_PRINTF(3, 4);

/* Whether this program can load shared objects; false if it is linked statically. Operations that need it then return
 * TN_UNIMPLEMENTED with a message that says "static build: " (P-91). */
bool tn__loads_files(void);

/* ---- reading ---- */

typedef struct tn__file {
  int fd;                        /* owned; -1: closed */
  uint64_t size;                 /* in bytes, when it was opened */
  const char *path;              /* borrowed */
  int64_t changed_s, changed_ns; /* time of the last change before it was opened */
} tn__file;

/* Opens a regular file; a directory, FIFO, socket or device is TN_INVALID_ARGUMENT. Never blocks. */
tn_status tn__file_open(const char *path, tn__file *file, tn_error *err);
/* Reads exactly n bytes from `offset`; TN_DATA_LOSS if the file ends before. */
tn_status tn__file_read(const tn__file *file, uint64_t offset, void *to, size_t n, tn_error *err);
/* Whether the open file still has the size and time of change that it had when it was opened. */
bool tn__file_unchanged(const tn__file *file);
void tn__file_close(tn__file *file);

/* ---- writing ---- */

/* A regular file is written without a name where the system supports it (O_TMPFILE), else under a temporary name in the
 * directory of the target. It gets its final name when it is complete. An existing target that is not a regular file (a
 * terminal, a pipe, /dev/stdout) is written directly.
 *
 * open, any number of writes, then commit or abandon. After a failed open the writer is closed. One thread at a
 * time. */
typedef struct tn__writer {
  int fd;                   /* owned; -1: closed */
  const char *path;         /* borrowed */
  char *target;             /* the final name: `path` with symbolic links resolved; NULL: written directly */
  tn__temporary *temporary; /* the temporary name; NULL: unnamed, or written directly */
} tn__writer;

/* For tests: create files with a temporary name, as on systems without O_TMPFILE. */
extern bool tn__writer_always_names;

tn_status tn__writer_open(tn__writer *w, const char *path, tn_error *err);
tn_status tn__writer_write(tn__writer *w, const void *data, size_t n, tn_error *err);
/* Asks the system to begin to write n bytes from `offset` to the disk. Only a hint. */
void tn__writer_start(const tn__writer *w, uint64_t offset, uint64_t n);
/* Waits until the content is on the disk, so that a name given to the file later never leads to less after a crash. */
tn_status tn__writer_sync(const tn__writer *w, tn_error *err);
/* Gives the file its final name and closes w. On failure no file is left. TN_CANCELLED after tn_files_abandon. */
tn_status tn__writer_commit(tn__writer *w, tn_error *err);
/* Closes w and removes the unfinished file. Does nothing if w is closed. */
void tn__writer_abandon(tn__writer *w);

/* Waits until the names in the folder that contains `path` are on the disk: those of new files, and that others are
 * gone. Does nothing where a file system cannot do it. */
tn_status tn__folder_sync(const char *path, tn_error *err);

/* ---- system calls that are not cancellation points: pthread_cancel would leak what the caller holds ---- */

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

static inline int tn__sys_fsync(int fd)
{
  int state = tn__cancel_hold(), failed = fsync(fd);
  tn__cancel_restore(state);
  return failed;
}

static inline int tn__sys_close(int fd)
{
  int state = tn__cancel_hold(), failed = close(fd);
  tn__cancel_restore(state);
  return failed;
}

#endif
