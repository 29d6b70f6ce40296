/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime under test. A plugin file is found through a temporary folder that contains only a link to it, so that
 * other files in its folder have no effect. */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
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

/* Length of the path in "PATH.so" and "PATH.so:settings"; 0 if the text is a name. */
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

/* A name followed by settings. */
static bool open_target(cf_runtime *r, const char *text)
{
  size_t length = strcspn(text, ":");
  r->target = joined(text, "", "");
  r->settings = joined(text + length, "", "");
  r->name = joined(text, "", "");
  r->name[length] = '\0';
  return true;
}

static bool open_file(cf_runtime *r, const char *text, size_t length)
{
  char *path = joined(text, "", "");
  path[length] = '\0';
  r->settings = joined(text + length, "", "");
  /* Keep the given file name, even if it is a link. */
  char *slash = strrchr(path, '/');
  const char *name = base_name(path);
  const char *parent = slash == path ? "/" : path;
  if (slash != NULL) *slash = '\0';
  char *folder = realpath(slash != NULL ? parent : ".", NULL);
  if (folder != NULL) r->file = joined(folder, "/", name);
  bool good = r->file != NULL && access(r->file, R_OK) == 0;
  if (!good) fprintf(stderr, "tenon-conformance: NOT_FOUND: '%.*s': %s\n", (int)length, text, strerror(errno));
  good = good && make_folder(r);
  if (good) r->plugin = joined(r->file, "", "");
  free(folder);
  free(path);
  return good;
}

static void look_up(cf_runtime *r);

bool cf_runtime_open(cf_runtime *r, const char *text)
{
  size_t length = path_length(text);
  memset(r, 0, sizeof(*r));
  bool good = length == 0 ? open_target(r, text) : open_file(r, text, length);
  if (good) look_up(r);
  else cf_runtime_close(r);
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
  free(r->name);
  free(r->plugin);
  memset(r, 0, sizeof(*r));
}

/* ---- in the child ---- */

static bool lies_in(const char *path, const char *folder)
{
  size_t n = strlen(folder);
  return path != NULL && strncmp(path, folder, n) == 0 && path[n] == '/';
}

static bool is_meant(const cf_runtime *r, const tn_runtime_info *info)
{
  if (r->target != NULL) return info->name != NULL && strcmp(info->name, r->name) == 0 && !info->shadowed;
  return lies_in(info->file, r->folder) || strcmp(info->file, r->file) == 0;
}

/* The library's information on the plugin, without running its code. */
static bool find_it(const cf_runtime *r, tn_runtime_info *info)
{
  tn_error err = TN_ERROR_INIT;
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK; i++) {
    memset(info, 0, sizeof(*info));
    info->struct_size = sizeof(*info);
    st = tn_runtime_at(i, info, &err);
    if (st == TN_OK && is_meant(r, info)) return true;
  }
  tn_error_clear(&err);
  return false;
}

/* The plugin file takes precedence over other plugins of its name. */
static tn_status add_folder(const cf_runtime *r, tn_error *err)
{
  if (r->folder == NULL) return TN_OK;
  char *folder = realpath(r->folder, NULL);
  tn_status st = tn_runtime_add_directory(folder != NULL ? folder : r->folder, err);
  free(folder);
  return st;
}

static bool is_kernels(const tn_runtime_info *info) { return info->kind != NULL && strcmp(info->kind, "kernels") == 0; }

bool cf_runtime_enter(const cf_runtime *r)
{
  if (r->target != NULL && !r->kernels) return setenv("TENON_TEST_RUNTIME", r->target, 1) == 0;
  tn_error err = TN_ERROR_INIT;
  tn_runtime_info info;
  if (!CHECK_OK(add_folder(r, &err), &err)) return false;
  const char *what = r->target != NULL ? r->target : r->file;
  if (!CHECK_MSG(find_it(r, &info), "'%s' is not a plugin: wanted a file [a-z][a-z0-9_]*" SUFFIX, what)) return false;
  if (!CHECK_MSG(info.usable, "%s: %s", what, info.reason)) return false;
  if (is_kernels(&info)) return true;
  char *target = joined(info.name, r->settings, "");
  setenv("TENON_TEST_RUNTIME", target, 1);
  free(target);
  return true;
}

/* ---- information before the tests ---- */

/* Writes "runtime" or "kernels", name and file, one per line. Runs in a child process, which exits here. */
static void tell_what_it_is(const cf_runtime *r, int fd)
{
  tn_runtime_info info;
  if (add_folder(r, NULL) == TN_OK && find_it(r, &info))
    dprintf(fd, "%s\n%s\n%s\n", is_kernels(&info) ? "kernels" : "runtime", info.name != NULL ? info.name : "",
            info.file != NULL ? info.file : "");
  _exit(0);
}

static char *next_line(char **text)
{
  char *line = *text;
  size_t length = strcspn(line, "\n");
  *text = line + length + (line[length] == '\n');
  line[length] = '\0';
  return line;
}

static void take_answer(cf_runtime *r, char *text)
{
  const char *kind = next_line(&text), *name = next_line(&text), *file = next_line(&text);
  r->kernels = strcmp(kind, "kernels") == 0;
  if (r->name == NULL && *name != '\0') r->name = joined(name, "", "");
  if (r->plugin == NULL && *file == '/') r->plugin = joined(file, "", "");
}

/* Queries the library in a child process, so that this process stays free of it. The tests report any failure. */
static void look_up(cf_runtime *r)
{
  char text[8192];
  size_t size = 0;
  int fds[2];
  if (pipe(fds) != 0) return;
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    close(fds[0]);
    tell_what_it_is(r, fds[1]);
  }
  close(fds[1]);
  for (ssize_t n = 1; pid > 0 && n > 0 && size < sizeof(text) - 1; size += n > 0 ? (size_t)n : 0)
    n = read(fds[0], text + size, sizeof(text) - 1 - size);
  close(fds[0]);
  if (pid > 0) waitpid(pid, NULL, 0);
  text[size] = '\0';
  take_answer(r, text);
}
