/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a checkpoint (V1): one table, or shards. Shards are given by the pattern that savers write,
 * PREFIX-?????-of-00003, or by their prefix. */
#include <core/formats/checkpoint_v1/v1.h>

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

/* The end of a shard's name, "-00000-of-00003". */
#define END_SIZE ((size_t)15)
/* The number of a shard in a pattern. */
#define ANY "?????"
/* The longest path that is looked for as a prefix or a pattern; the system opens no longer ones. */
#define PATH_SIZE 4096

static bool is_file(const char *path)
{
  struct stat st;
  return stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

/* Reads five digits. */
static bool read_number(const char *digits, uint32_t *out)
{
  *out = 0;
  for (int i = 0; i < 5; i++) {
    if (digits[i] < '0' || digits[i] > '9') return false;
    *out = *out * 10 + (uint32_t)(digits[i] - '0');
  }
  return true;
}

/* Reads the end of a name: "-?????-of-00003" if it is a pattern, else with the number of a shard. False: it is none. */
static bool read_end(const char *end, bool pattern, uint32_t *shards)
{
  uint32_t shard = 0;
  if (end[0] != '-' || memcmp(end + 6, "-of-", 4) != 0 || !read_number(end + 10, shards)) return false;
  return pattern ? memcmp(end + 1, ANY, 5) == 0 && *shards > 0 : read_number(end + 1, &shard) && shard < *shards;
}

static bool is_pattern(const char *path, uint32_t *shards)
{
  size_t size = strlen(path);
  return size > END_SIZE && read_end(path + size - END_SIZE, true, shards);
}

tn_status tn__v1_shard_path(const char *path, size_t prefix_size, uint32_t shard, uint32_t shards, tn__arena *arena,
                            const char **out, tn_error *err)
{
  size_t room = prefix_size + END_SIZE + 16; /* numbers above 99999 do not occur, but have room */
  char *text = tn__arena_alloc(arena, room);
  *out = text;
  if (text == NULL) return tn__no_memory(err, "the name of a file", room);
  memcpy(text, path, prefix_size);
  tn__snprintf(text + prefix_size, room - prefix_size, "-%05" PRIu32 "-of-%05" PRIu32, shard, shards);
  return TN_OK;
}

/* ---- shards of a prefix ---- */

/* The names in a folder that are shards of a prefix. */
typedef struct search {
  const char *base; /* the last part of the prefix */
  size_t size;
  uint32_t shards, other; /* the numbers of shards that were found; 0: none */
} search;

static void look_at(search *s, const char *name)
{
  uint32_t shards;
  if (strlen(name) != s->size + END_SIZE || memcmp(name, s->base, s->size) != 0) return;
  if (!read_end(name + s->size, false, &shards)) return;
  if (s->shards == 0) s->shards = shards;
  if (shards != s->shards) s->other = shards;
}

/* A folder that cannot be read has no shards. Directory calls may be cancellation points. */
static void look_in(search *s, const char *folder)
{
  int state = tn__cancel_hold();
  DIR *dir = opendir(folder);
  if (dir != NULL) {
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) look_at(s, e->d_name);
    closedir(dir);
  }
  tn__cancel_restore(state);
}

static search find_shards(const char *path)
{
  char folder[PATH_SIZE];
  const char *slash = strrchr(path, '/');
  search s = { .base = slash == NULL ? path : slash + 1 };
  size_t size = slash == NULL ? 0 : (size_t)(slash - path) + 1;
  s.size = strlen(s.base);
  if (s.size == 0 || size > sizeof folder - 2) return s;
  memcpy(folder, path, size);
  memcpy(folder + size, ".", 2);
  look_in(&s, folder);
  return s;
}

/* ---- paths ---- */

/* Whether there is any shard of a pattern. */
static bool has_shard(const char *path, uint32_t shards)
{
  char name[PATH_SIZE];
  size_t size = strlen(path);
  bool found = false;
  if (size >= sizeof name) return false;
  memcpy(name, path, size + 1);
  char *digits = name + size - END_SIZE + 1;
  for (uint32_t i = 0; !found && i < shards; i++) {
    for (uint32_t d = 5, number = i; d-- > 0; number /= 10) digits[d] = (char)('0' + number % 10);
    found = is_file(name);
  }
  return found;
}

bool tn__v1_exists(const char *path)
{
  uint32_t shards;
  struct stat st;
  if (stat(path, &st) == 0) return !S_ISDIR(st.st_mode);
  if (errno != ENOENT && errno != ENOTDIR) return false;
  return is_pattern(path, &shards) ? has_shard(path, shards) : find_shards(path).shards > 0;
}

tn_status tn__v1_shards(const char *path, uint32_t *shards, size_t *prefix_size, tn_error *err)
{
  *shards = 0;
  *prefix_size = strlen(path);
  if (is_file(path)) return TN_OK;
  if (is_pattern(path, shards)) {
    *prefix_size -= END_SIZE;
    return TN_OK;
  }
  const search s = find_shards(path);
  *shards = s.shards;
  if (s.other == 0) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT,
                      "'%s' has files of %" PRIu32 " and of %" PRIu32 " shards; name one set of them, such as '%s-" ANY
                      "-of-%05" PRIu32 "'",
                      path, s.shards, s.other, path, s.shards);
}
