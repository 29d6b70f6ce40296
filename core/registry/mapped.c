/* SPDX-License-Identifier: Apache-2.0 */
/* Whether mapped code comes from the file that was checked (P-80). On stacked file systems the device and inode that
 * /proc/self/maps shows for a mapping may differ from those that stat returns for the file. So a page of the checked
 * file is mapped as well, and the two lines of /proc/self/maps are compared. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <core/registry/registry_internal.h>

#define LINE 256 /* bytes kept of a line: the path at its end is not needed */

typedef struct finder {
  uintptr_t wanted[2];
  char file[2][64]; /* "device inode" of the mapping that contains the address; "": not found */
} finder;

/* Reads a hexadecimal number in lower case that is followed by `end`; moves *at past both. */
static bool take_number(const char **at, char end, uintptr_t *out)
{
  const char *p = *at;
  for (*out = 0; *p != end; p++) {
    bool decimal = *p >= '0' && *p <= '9';
    if (!decimal && (*p < 'a' || *p > 'f')) return false;
    *out = *out << 4 | (unsigned)(decimal ? *p - '0' : *p - 'a' + 10);
  }
  *at = p + 1;
  return true;
}

/* Takes a line "FROM-TO RIGHTS OFFSET DEVICE INODE  PATH". */
static void take_line(finder *f, const char *line)
{
  uintptr_t from = 0, to = 0;
  if (!take_number(&line, '-', &from) || !take_number(&line, ' ', &to)) return;
  for (int skip = 0; skip < 2; skip++) {
    line += strcspn(line, " ");
    line += strspn(line, " ");
  }
  size_t size = strcspn(line, " ");
  size += strspn(line + size, " ");
  size_t inode = strcspn(line + size, " ");
  if (inode == 0 || (inode == 1 && line[size] == '0')) return; /* memory without a file */
  for (int i = 0; i < 2; i++)
    if (f->wanted[i] >= from && f->wanted[i] < to)
      tn__snprintf(f->file[i], sizeof(f->file[i]), "%.*s", (int)(size + inode), line);
}

/* Reads the lines, which may be of any length. False if the file cannot be read or lacks one of the addresses. */
static bool read_maps(finder *f)
{
  char bytes[4096], line[LINE];
  size_t used = 0;
  int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  for (ssize_t n; (n = read(fd, bytes, sizeof(bytes))) != 0;) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    for (ssize_t i = 0; i < n; i++) {
      if (bytes[i] != '\n') {
        if (used + 1 < sizeof(line)) line[used++] = bytes[i];
        continue;
      }
      line[used] = 0;
      take_line(f, line);
      used = 0;
    }
  }
  close(fd);
  return f->file[0][0] != 0 && f->file[1][0] != 0;
}

/* If the question cannot be answered, for example without /proc, the answer is true: the path was checked before. */
bool tn__mapped_from(int fd, const void *address)
{
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  void *beside = mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, 0);
  if (beside == MAP_FAILED) return true;
  finder f = { .wanted = { (uintptr_t)beside, (uintptr_t)address } };
  bool known = read_maps(&f);
  munmap(beside, page);
  return !known || strcmp(f.file[0], f.file[1]) == 0;
}
