/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the data files of a prefix by the names in its folder, whatever an index says. */
#include <core/formats/checkpoint/checkpoint.h>

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

/* Parses a number of five digits, or of more without leading zeros, and advances *p. */
static bool parse_number(const char **p, uint32_t *out)
{
  uint64_t value = 0;
  size_t n = 0;
  for (; (*p)[n] >= '0' && (*p)[n] <= '9' && n < 10; n++) value = value * 10 + (uint64_t)((*p)[n] - '0');
  if (n < 5 || (n > 5 && **p == '0') || value > INT32_MAX) return false;
  *p += n;
  *out = (uint32_t)value;
  return true;
}

/* Whether a name is "BASE.data-00000-of-00001". */
static bool parse_name(const char *name, tn__slice base, uint32_t *shards)
{
  uint32_t shard;
  if (strncmp(name, base.data, base.size) != 0 || strncmp(name + base.size, ".data-", 6) != 0) return false;
  const char *p = name + base.size + 6;
  if (!parse_number(&p, &shard) || strncmp(p, "-of-", 4) != 0) return false;
  p += 4;
  return parse_number(&p, shards) && *p == 0;
}

typedef struct walk {
  tn__slice folder, base; /* the folder with its slash; "" is the current one */
  void (*found)(void *arg, const char *path, uint32_t shards);
  void *arg;
} walk;

/* A path that does not fit is too long for any file. Nothing is allocated, so that old files are deleted without
 * memory, too. */
static void offer(const walk *w, const char *name)
{
  char path[PATH_MAX];
  uint32_t shards;
  if (!parse_name(name, w->base, &shards)) return;
  int n = tn__snprintf(path, sizeof(path), "%.*s%s", (int)w->folder.size, w->folder.data, name);
  if (n > 0 && (size_t)n < sizeof(path)) w->found(w->arg, path, shards);
}

static tn_status walk_folder(const walk *w, const char *folder, tn_error *err)
{
  int state = tn__cancel_hold();
  DIR *dir = opendir(folder);
  int number = dir == NULL ? errno : 0;
  while (dir != NULL) {
    errno = 0;
    struct dirent *entry = readdir(dir);
    if (entry == NULL) {
      number = errno;
      break;
    }
    offer(w, entry->d_name);
  }
  if (dir != NULL) closedir(dir);
  tn__cancel_restore(state);
  if (number == 0 || number == ENOENT || number == ENOTDIR) return TN_OK;
  return tn__system_error(err, number, "cannot list the folder '%s'", folder);
}

tn_status tn__data_files(const char *prefix, void (*found)(void *arg, const char *path, uint32_t shards), void *arg,
                         tn_error *err)
{
  const char *slash = strrchr(prefix, '/');
  size_t size = slash == NULL ? 0 : (size_t)(slash - prefix) + 1;
  char folder[PATH_MAX] = ".";
  walk w = { { prefix, size }, tn__slice_of(prefix + size), found, arg };
  if (size >= sizeof(folder)) return tn__system_error(err, ENAMETOOLONG, "cannot list the folder of '%s'", prefix);
  if (size > 0) tn__snprintf(folder, sizeof(folder), "%.*s", (int)size, prefix);
  return walk_folder(&w, folder, err);
}
