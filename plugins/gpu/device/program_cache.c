/* SPDX-License-Identifier: Apache-2.0 */
/* Binaries of programs on disk, a file each, named by a hash of what the program is made of:
 *
 *   header | key: device, driver, versions, options, prelude, text | binary
 *
 * A file is used only if its header, sizes, whole key and checksum are right, and only this user can write it; any
 * other file is ignored and rewritten. A file is written under a temporary name and renamed, so processes may write
 * concurrently. The folder is gpu-programs in $TENON_CACHE_DIR, $XDG_CACHE_HOME/tenon or ~/.cache/tenon.
 * TENON_GPU_CACHE_BYTES limits its size (default 256 MiB); 0 disables it. */
#define _GNU_SOURCE
#include "device/program_parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <sys/auxv.h>
#endif
#include <sys/stat.h>
#include <unistd.h>

#define FORMAT 1
#define NAME_LENGTH 36 /* 32 digits and ".bin" */
#define MOST_BYTES (INT64_C(256) << 20)
#define LEFT_BEHIND_SECONDS 3600 /* age at which a temporary file is abandoned */

typedef struct header {
  char magic[8];
  uint32_t format, size;
  uint64_t key_size, binary_size, checksum;
} header;
static const char magic[8] = "TNGPUPRG";

/* Where the file of a source is, and what has to be in it. */
typedef struct place {
  char *path;
  size_t folder; /* length of the folder's name in it */
  char *key;
  size_t key_size;
} place;

/* ---- where ---- */

static const char *ask(const char *name)
{
#if defined(__linux__)
  if (getauxval(AT_SECURE) != 0) return NULL;
#else
  if (geteuid() != getuid() || getegid() != getgid()) return NULL;
#endif
  return getenv(name);
}

static int64_t most_bytes(void)
{
  const char *text = ask("TENON_GPU_CACHE_BYTES");
  char *end;
  if (text == NULL || *text == 0) return MOST_BYTES;
  errno = 0;
  long long bytes = strtoll(text, &end, 10);
  return errno == 0 && *end == 0 && bytes >= 0 ? bytes : MOST_BYTES;
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
  const unsigned char *at = bytes;
  for (size_t i = 0; i < n; i++) {
    hash = (hash ^ at[i]) * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 29;
  }
  return hash;
}

static bool make_key(const gpu_source *s, place *p)
{
  const gpu_device *d = s->device;
  const char *parts[] = { d->name, d->vendor, d->driver, d->platform_name, s->versions, GPU_PROGRAM_OPTIONS, s->options,
                          s->prelude, s->text };
  const size_t n = sizeof parts / sizeof *parts;
  for (size_t i = 0; i < n; i++) p->key_size += strlen(parts[i]) + 1;
  p->key = tn_alloc(p->key_size);
  if (p->key == NULL) return false;
  char *to = p->key;
  for (size_t i = 0; i < n; i++) {
    size_t size = strlen(parts[i]) + 1;
    memcpy(to, parts[i], size);
    to += size;
  }
  return true;
}

static bool make_path(place *p)
{
  const char *folder = ask("TENON_CACHE_DIR"), *below = "";
  if (folder == NULL || folder[0] != '/') folder = ask("XDG_CACHE_HOME"), below = "/tenon";
  if (folder == NULL || folder[0] != '/') folder = ask("HOME"), below = "/.cache/tenon";
  if (folder == NULL || folder[0] != '/') return false;
  size_t size = strlen(folder) + strlen(below) + sizeof "/gpu-programs/" + NAME_LENGTH + 1;
  p->path = tn_alloc(size);
  if (p->path == NULL) return false;
  uint64_t a = hash_bytes(1, p->key, p->key_size), b = hash_bytes(a + 2, p->key, p->key_size);
  int n = snprintf(p->path, size, "%s%s/gpu-programs", folder, below);
  p->folder = (size_t)n;
  snprintf(p->path + n, size - (size_t)n, "/%016" PRIx64 "%016" PRIx64 ".bin", a, b);
  return true;
}

static void leave_place(place *p)
{
  tn_free(p->path);
  tn_free(p->key);
}

/* False: nothing is kept. */
static bool find_place(const gpu_source *source, place *p)
{
  *p = (place){ 0 };
  if (most_bytes() > 0 && make_key(source, p) && make_path(p)) return true;
  leave_place(p);
  return false;
}

/* ---- reading ---- */

static bool read_all(int fd, char *to, size_t n)
{
  while (n > 0) {
    ssize_t got = read(fd, to, n);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    n -= (size_t)got;
  }
  return true;
}

static int open_own(const char *path, size_t *size)
{
  struct stat st;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return -1;
  bool own = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
             (st.st_mode & (S_IWGRP | S_IWOTH)) == 0 && st.st_size >= (off_t)sizeof(header) &&
             st.st_size <= most_bytes();
  if (own) *size = (size_t)st.st_size;
  else close(fd);
  return own ? fd : -1;
}

/* Whether a file's bytes are what they say, and for this key. */
static bool is_whole(const char *file, size_t size, const place *p)
{
  header h;
  memcpy(&h, file, sizeof h);
  if (memcmp(h.magic, magic, sizeof magic) != 0 || h.format != FORMAT || h.size != sizeof h ||
      h.key_size != p->key_size || h.binary_size == 0 || size - sizeof h < h.key_size ||
      size - sizeof h - h.key_size != h.binary_size)
    return false;
  return memcmp(file + sizeof h, p->key, p->key_size) == 0 &&
         hash_bytes(0, file + sizeof h, size - sizeof h) == h.checksum;
}

bool gpu_cache_read(const gpu_source *source, unsigned char **bytes, size_t *size)
{
  place p;
  size_t n = 0;
  if (!find_place(source, &p)) return false;
  int fd = open_own(p.path, &n);
  char *file = fd >= 0 ? tn_alloc(n) : NULL;
  bool ok = file != NULL && read_all(fd, file, n);
  if (ok && !is_whole(file, n, &p)) {
    ok = false;
    tn_log(TN_LOG_INFO, "gpu: '%s' is not whole, and is not used", p.path);
  }
  if (ok) (void)futimens(fd, NULL); /* the most recently used are removed last */
  if (fd >= 0) close(fd);
  if (ok) {
    size_t before = sizeof(header) + p.key_size;
    *size = n - before;
    memmove(file, file + before, *size);
    *bytes = (unsigned char *)file;
  } else {
    tn_free(file);
  }
  leave_place(&p);
  return ok;
}

/* ---- the size of all ---- */

typedef struct entry {
  char name[NAME_LENGTH + 1];
  int64_t size;
  struct timespec used;
} entry;

typedef struct entries {
  entry *at;
  size_t n, room;
  int64_t bytes;
} entries;

static bool is_ours(const char *name)
{
  return strspn(name, "0123456789abcdef") == 32 && strcmp(name + 32, ".bin") == 0;
}

static void note_entry(entries *all, const char *name, const struct stat *st)
{
  if (all->n == all->room) {
    size_t room = all->room * 2 + 64;
    entry *at = tn_alloc(room * sizeof *at);
    if (at == NULL) return;
    if (all->n > 0) memcpy(at, all->at, all->n * sizeof *at);
    tn_free(all->at);
    all->at = at;
    all->room = room;
  }
  entry *e = &all->at[all->n++];
  memcpy(e->name, name, NAME_LENGTH + 1);
  e->size = st->st_size;
  e->used = st->st_mtim;
  all->bytes += e->size;
}

static int by_age(const void *a, const void *b)
{
  const struct timespec *x = &((const entry *)a)->used, *y = &((const entry *)b)->used;
  if (x->tv_sec != y->tv_sec) return x->tv_sec < y->tv_sec ? -1 : 1;
  return x->tv_nsec < y->tv_nsec ? -1 : x->tv_nsec > y->tv_nsec;
}

static void list_folder(DIR *folder, entries *all)
{
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  for (struct dirent *d; (d = readdir(folder)) != NULL;) {
    struct stat st;
    bool ours = is_ours(d->d_name), left = strncmp(d->d_name, "tmp-", 4) == 0;
    if ((!ours && !left) || fstatat(dirfd(folder), d->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
      continue;
    if (ours) note_entry(all, d->d_name, &st);
    else if (now.tv_sec - st.st_mtim.tv_sec > LEFT_BEHIND_SECONDS) (void)unlinkat(dirfd(folder), d->d_name, 0);
  }
}

/* Removes what was not used for the longest time, until a quarter is free. */
static void make_room(const char *path)
{
  entries all = { 0 };
  int64_t most = most_bytes();
  DIR *folder = opendir(path);
  if (folder == NULL) return;
  list_folder(folder, &all);
  if (all.bytes > most) {
    qsort(all.at, all.n, sizeof *all.at, by_age);
    for (size_t i = 0; i < all.n && all.bytes > most / 4 * 3; i++)
      if (unlinkat(dirfd(folder), all.at[i].name, 0) == 0 || errno == ENOENT) all.bytes -= all.at[i].size;
  }
  closedir(folder);
  tn_free(all.at);
}

/* ---- writing ---- */

static void make_folders(char *path)
{
  for (char *at = strchr(path + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
    *at = 0;
    (void)mkdir(path, 0700); /* opening the file reports the error */
    *at = '/';
  }
}

static bool write_all(int fd, const void *from, size_t n)
{
  for (const char *at = from; n > 0;) {
    ssize_t put = write(fd, at, n);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    at += put;
    n -= (size_t)put;
  }
  return true;
}

static bool write_file(int fd, const place *p, const unsigned char *bytes, size_t size)
{
  header h = { .format = FORMAT, .size = sizeof h, .key_size = p->key_size, .binary_size = size };
  memcpy(h.magic, magic, sizeof magic);
  h.checksum = hash_bytes(hash_bytes(0, p->key, p->key_size), bytes, size);
  return write_all(fd, &h, sizeof h) && write_all(fd, p->key, p->key_size) && write_all(fd, bytes, size);
}

/* "FOLDER/tmp-PROCESS-NUMBER". */
static char *temporary_path(const place *p)
{
  static atomic_uint number;
  size_t size = p->folder + 64;
  char *path = tn_alloc(size);
  if (path != NULL)
    snprintf(path, size, "%.*s/tmp-%ld-%u", (int)p->folder, p->path, (long)getpid(), atomic_fetch_add(&number, 1));
  return path;
}

static bool put(const place *p, const unsigned char *bytes, size_t size)
{
  char *temporary = temporary_path(p);
  if (temporary == NULL) return false;
  make_folders(temporary);
  int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  bool ok = fd >= 0 && write_file(fd, p, bytes, size);
  int why = errno;
  if (fd >= 0 && close(fd) != 0) ok = false;
  if (ok && rename(temporary, p->path) != 0) ok = false, why = errno;
  if (!ok && fd >= 0) (void)unlink(temporary);
  tn_free(temporary);
  errno = why;
  return ok;
}

void gpu_cache_write(const gpu_source *source, const unsigned char *bytes, size_t size)
{
  place p;
  char why[128] = "";
  if (!find_place(source, &p)) return;
  if (size > (size_t)PTRDIFF_MAX / 2 || (int64_t)(sizeof(header) + p.key_size + size) > most_bytes()) {
    tn_log(TN_LOG_INFO, "gpu: the binary of program '%s' is too large to be kept: %zu bytes", source->label, size);
  } else if (put(&p, bytes, size)) {
    p.path[p.folder] = 0;
    make_room(p.path);
  } else {
    tn_log(TN_LOG_INFO, "gpu: the binary of program '%s' is not kept at '%s': %s", source->label, p.path,
           strerror_r(errno, why, sizeof why));
  }
  leave_place(&p);
}
