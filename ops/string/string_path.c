/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/string/string_path.h>

#include <core/base/text.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

tn_status tn__file_name(const tn_view *view, char **out, tn_error *err)
{
  size_t n;
  const char *text = tn_string_data(view->data, &n);
  *out = NULL;
  if (n > 0 && memchr(text, 0, n) != NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "the file name '%.200s' continues after a zero byte", text);
  *out = tn__strndup(text, n);
  return *out != NULL ? TN_OK : tn__no_memory(err, "file name", n);
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
