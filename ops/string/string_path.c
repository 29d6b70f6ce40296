/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/string/string_path.h>

#include <core/base/text.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

tn_status tn__file_name_at(const tn_kernel_ctx *ctx, const tn_view *view, int64_t i, tn__file_use use, char **out)
{
  size_t n;
  const char *text = tn_string_data((const tn_string *)view->data + i, &n);
  *out = NULL;
  if (n > 0 && memchr(text, 0, n) != NULL)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "the file name '%.200s' continues after a zero byte", text);
  char *name = tn__strndup(text, n);
  if (name == NULL) return tn__no_memory(ctx->err, "file name", n);
  tn_status st = tn__folders_find(tn__kernel_folders(ctx), use, name, out, ctx->err);
  tn__strfree(name);
  return st;
}

tn_status tn__file_name(const tn_kernel_ctx *ctx, const tn_view *view, tn__file_use use, char **out)
{
  return tn__file_name_at(ctx, view, 0, use, out);
}

tn_status tn__named_file_check(const char *path, tn_error *err)
{
  struct stat st;
  int failed = stat(path, &st);
  if (failed == 0 && S_ISDIR(st.st_mode))
    return tn_error_set(err, TN_FAILED_PRECONDITION, "'%s' is a folder, wanted a file", path);
  if (failed != 0 && errno == ENOTDIR)
    return tn_error_set(err, TN_FAILED_PRECONDITION, "'%s' has a parent that is not a folder", path);
  return TN_OK;
}

tn_status tn__named_file_open(const char *path, tn__file *file, tn_error *err)
{
  tn_status st = tn__named_file_check(path, err);
  return st == TN_OK ? tn__file_open(path, file, err) : st;
}
