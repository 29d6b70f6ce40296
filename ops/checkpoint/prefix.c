/* SPDX-License-Identifier: Apache-2.0 */
/* A prefix is no file, so only its folder is followed (core/base/path.h), and the rest of the name is kept. The files
 * of the checkpoint may be links, which readers and writers follow, so each of them is checked. */
#define _GNU_SOURCE
#include <ops/checkpoint/prefix.h>

#include <core/base/file.h>
#include <dirent.h>
#include <errno.h>
#include <ops/kernel/shapes.h>
#include <string.h>
#include <sys/stat.h>

tn__slice tn__text_input(const tn_kernel_ctx *ctx, uint32_t input, int64_t i)
{
  tn__slice text;
  text.data = tn_string_data((const tn_string *)ctx->inputs[input]->data + i, &text.size);
  return text;
}

/* "FOLDER/NAME"; free it with tn__strfree. NULL: out of memory. */
static char *join(const char *folder, const char *name)
{
  tn__text text;
  tn__text_init(&text, SIZE_MAX / 2);
  tn__text_puts(&text, folder);
  if (text.size == 0 || text.data[text.size - 1] != '/') tn__text_puts(&text, "/");
  tn__text_puts(&text, name);
  char *path = text.failed ? NULL : tn__strdup(tn__text_get(&text));
  tn__text_fini(&text);
  return path;
}

/* ---- links ---- */

/* Whether a file of this name may belong to the checkpoint: PREFIX, PREFIX.index, PREFIX.data-...,
 * PREFIX-00000-of-00001, or a match of a pattern. */
static bool belongs(const char *name, const char *base)
{
  size_t n = strcspn(base, "?*[");
  if (strncmp(name, base, n) != 0) return false;
  const char *end = name + n;
  if (base[n] != 0) return true;
  return *end == 0 || strcmp(end, ".index") == 0 || strncmp(end, ".data-", 6) == 0 ||
         (*end == '-' && strstr(end, "-of-") != NULL);
}

static tn_status check_link(const tn_kernel_ctx *ctx, const char *folder, const char *name, tn__file_use use)
{
  struct stat st;
  char *found = NULL, *path = join(folder, name);
  if (path == NULL) return tn__no_memory(ctx->err, "file name", strlen(name));
  tn_status s = TN_OK;
  if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
    s = tn__folders_find(tn__kernel_folders(ctx), use, path, &found, ctx->err);
  tn__strfree(found);
  tn__strfree(path);
  return s;
}

/* A folder that cannot be listed is not an error here; opening the file reports it. */
static tn_status check_links(const tn_kernel_ctx *ctx, const char *folder, const char *base, tn__file_use use)
{
  tn_status st = TN_OK;
  int state = tn__cancel_hold();
  DIR *dir = opendir(folder);
  for (struct dirent *entry; dir != NULL && st == TN_OK && (entry = readdir(dir)) != NULL;)
    if (belongs(entry->d_name, base)) st = check_link(ctx, folder, entry->d_name, use);
  if (dir != NULL) closedir(dir);
  tn__cancel_restore(state);
  return st;
}

/* ---- prefixes ---- */

static tn_status resolve(const tn_kernel_ctx *ctx, const char *prefix, tn__file_use use, char **out)
{
  const char *slash = strrchr(prefix, '/'), *base = slash == NULL ? prefix : slash + 1;
  char *given = slash == NULL ? tn__strdup(".") : tn__strndup(prefix, (size_t)(slash - prefix) + 1), *folder = NULL;
  if (given == NULL) return tn__no_memory(ctx->err, "file name", strlen(prefix));
  tn_status st = tn__folders_find(tn__kernel_folders(ctx), use, given, &folder, ctx->err);
  bool any = st == TN_OK && strcmp(folder, given) == 0; /* all files are allowed, nothing was followed */
  if (st == TN_OK && !any) st = check_links(ctx, folder, base, use);
  if (st != TN_OK) {
    tn_error_prefix(ctx->err, "checkpoint '%.500s'", prefix);
  } else {
    *out = any ? tn__strdup(prefix) : join(folder, base);
    if (*out == NULL) st = tn__no_memory(ctx->err, "file name", strlen(prefix));
  }
  tn__strfree(folder);
  tn__strfree(given);
  return st;
}

tn_status tn__prefix_of(const tn_kernel_ctx *ctx, uint32_t input, int64_t i, tn__file_use use, char **out)
{
  tn__slice text = tn__text_input(ctx, input, i);
  *out = NULL;
  if (text.size == 0) return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "the prefix of the checkpoint is empty");
  if (memchr(text.data, 0, text.size) != NULL)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "the prefix '%.200s' continues after a zero byte", text.data);
  char *prefix = tn__strndup(text.data, text.size);
  if (prefix == NULL) return tn__no_memory(ctx->err, "file name", text.size);
  tn_status st = resolve(ctx, prefix, use, out);
  tn__strfree(prefix);
  return st;
}

tn_status tn__prefix_open(const tn_kernel_ctx *ctx, uint32_t input, tn__store **out)
{
  struct stat st;
  char *path;
  *out = NULL;
  tn_status s = tn__prefix_of(ctx, input, 0, TN__TO_READ, &path);
  if (s != TN_OK) return s;
  if (!tn__checkpoint_exists(path) && stat(path, &st) == 0)
    s = tn_error_set(ctx->err, TN_DATA_LOSS, "'%s' is a %s, not a checkpoint", path,
                     S_ISDIR(st.st_mode) ? "folder" : "file of another kind");
  if (s == TN_OK) s = tn__store_open(path, out, ctx->err);
  tn__strfree(path);
  return s;
}

static tn_status make_folder(const char *folder, tn_error *err)
{
  struct stat st;
  if (stat(folder, &st) != 0) {
    if (errno == ENOENT && (mkdir(folder, 0777) == 0 || errno == EEXIST)) return TN_OK;
    return errno == ENOTDIR
               ? tn_error_set(err, TN_FAILED_PRECONDITION, "'%s' has a parent that is not a folder", folder)
               : tn__system_error(err, errno, "cannot create the folder '%s'", folder);
  }
  if (S_ISDIR(st.st_mode)) return TN_OK;
  return tn_error_set(err, TN_FAILED_PRECONDITION, "'%s' is a file, wanted a folder", folder);
}

tn_status tn__prefix_make_folder(const char *prefix, tn_error *err)
{
  const char *slash = strrchr(prefix, '/');
  if (slash == NULL || slash == prefix) return TN_OK; /* the current folder, or the root */
  char *folder = tn__strndup(prefix, (size_t)(slash - prefix));
  if (folder == NULL) return tn__no_memory(err, "file name", strlen(prefix));
  tn_status st = make_folder(folder, err);
  tn__strfree(folder);
  return st;
}

/* ---- prepare ---- */

tn_status tn__want_one(const tn_prepare_ctx *ctx, uint32_t i, tn_error *err)
{
  if (ctx->inputs[i].count == 1) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input %u has %lld elements, wanted one",
                      tn_operation_type(ctx->op), (unsigned)i, (long long)ctx->inputs[i].count);
}

tn_status tn__want_names(const tn_prepare_ctx *ctx, uint32_t i, uint32_t j, uint32_t n, const char *what, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, i, 1, err);
  if (st == TN_OK) st = tn__want_rank(ctx, j, 1, err);
  if (st == TN_OK) st = tn__want_same_shape(ctx, i, j, err);
  if (st != TN_OK || ctx->inputs[i].count == n) return st;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %lld names for %u %s", tn_operation_type(ctx->op),
                      (long long)ctx->inputs[i].count, (unsigned)n, what);
}
