/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime that was named. The file of a plugin is found as any other one is, through a folder that has nothing
 * else: what lies beside it changes nothing. */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <conformance/conformance.h>

#include <tenon/tenon.h>

#define SUFFIX ".so"

static char *joined(const char *a, const char *b, const char *c)
{
  size_t size = strlen(a) + strlen(b) + strlen(c) + 1;
  char *text = cf_alloc(size, 1);
  snprintf(text, size, "%s%s%s", a, b, c);
  return text;
}

/* Length of the path in "PATH.so" and "PATH.so:settings"; 0 when the text is a name. */
static size_t path_length(const char *text)
{
  size_t size = strlen(text), suffix = strlen(SUFFIX);
  const char *settings = strstr(text, SUFFIX ":");
  if (settings != NULL) return (size_t)(settings - text) + suffix;
  if (strchr(text, '/') != NULL) return size;
  return size > suffix && strcmp(text + size - suffix, SUFFIX) == 0 ? size : 0;
}

static const char *base_name(const char *path)
{
  const char *slash = strrchr(path, '/');
  return slash != NULL ? slash + 1 : path;
}

static bool make_folder(cf_runtime *r)
{
  const char *tmp = getenv("TMPDIR");
  char *folder = joined(tmp != NULL && tmp[0] == '/' ? tmp : "/tmp", "/tenon-conformance-", "XXXXXX");
  if (mkdtemp(folder) == NULL) {
    fprintf(stderr, "tenon-conformance: UNAVAILABLE: '%s': %s\n", folder, strerror(errno));
    free(folder);
    return false;
  }
  r->folder = folder;
  char *link = joined(folder, "/", base_name(r->file));
  bool good = symlink(r->file, link) == 0;
  if (!good) fprintf(stderr, "tenon-conformance: UNAVAILABLE: '%s': %s\n", link, strerror(errno));
  free(link);
  return good;
}

bool cf_runtime_open(cf_runtime *r, const char *text)
{
  size_t length = path_length(text);
  memset(r, 0, sizeof(*r));
  if (length == 0) {
    r->target = joined(text, "", "");
    return true;
  }
  char *path = joined(text, "", "");
  path[length] = '\0';
  r->settings = joined(text + length, "", "");
  /* The name stays the one that was given, though it may be a link. */
  char *slash = strrchr(path, '/');
  const char *name = base_name(path);
  if (slash != NULL) *slash = '\0';
  char *folder = realpath(slash == NULL ? "." : slash == path ? "/" : path, NULL);
  if (folder != NULL) r->file = joined(folder, "/", name);
  bool good = r->file != NULL && access(r->file, R_OK) == 0;
  if (!good) fprintf(stderr, "tenon-conformance: NOT_FOUND: '%.*s': %s\n", (int)length, text, strerror(errno));
  good = good && make_folder(r);
  free(folder);
  free(path);
  if (!good) cf_runtime_close(r);
  return good;
}

void cf_runtime_close(cf_runtime *r)
{
  if (r->folder != NULL) {
    char *link = joined(r->folder, "/", base_name(r->file));
    unlink(link);
    rmdir(r->folder);
    free(link);
  }
  free(r->target);
  free(r->file);
  free(r->folder);
  free(r->settings);
  memset(r, 0, sizeof(*r));
}

/* ---- in the child ---- */

static bool lies_in(const char *path, const char *folder)
{
  size_t n = strlen(folder);
  return path != NULL && strncmp(path, folder, n) == 0 && path[n] == '/';
}

/* The plugin of the file, which goes before all others of its name. */
static bool find_file(const cf_runtime *r, tn_runtime_info *info)
{
  tn_error err = TN_ERROR_INIT;
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK; i++) {
    memset(info, 0, sizeof(*info));
    info->struct_size = sizeof(*info);
    st = tn_runtime_at(i, info, &err);
    if (st == TN_OK && (lies_in(info->file, r->folder) || strcmp(info->file, r->file) == 0)) return true;
  }
  tn_error_clear(&err);
  return false;
}

bool cf_runtime_enter(const cf_runtime *r)
{
  if (r->target != NULL) return setenv("TENON_TEST_RUNTIME", r->target, 1) == 0;
  tn_error err = TN_ERROR_INIT;
  tn_runtime_info info;
  char *folder = realpath(r->folder, NULL);
  tn_status st = tn_runtime_add_directory(folder != NULL ? folder : r->folder, &err);
  free(folder);
  if (!CHECK_OK(st, &err)) return false;
  if (!CHECK_MSG(find_file(r, &info), "'%s' is no plugin: wanted a file [a-z][a-z0-9_]*" SUFFIX, r->file)) return false;
  if (!CHECK_MSG(info.usable, "%s: %s", r->file, info.reason)) return false;
  bool right = strcmp(info.kind, "runtime") == 0;
  if (!CHECK_MSG(right, "%s is of kind '%s', wanted a runtime", r->file, info.kind)) return false;
  char *target = joined(info.name, r->settings, "");
  setenv("TENON_TEST_RUNTIME", target, 1);
  free(target);
  return true;
}
