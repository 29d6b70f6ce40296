/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins as files: a hundred of them are listed without being opened, one is loaded by name, and a loaded one needs no
 * file any more. The hundred are copies of the direct runtime under different names. */
#define _GNU_SOURCE
#include <bench/bench.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PLUGINS = 100 };

static char folder[] = "/tmp/tenon-bench-XXXXXX";

/* ---- the files ---- */

static void path_of(char *path, size_t size, int i) { snprintf(path, size, "%s/p%05d.so", folder, i); }

/* Overwrites each separate text "direct", in the manifest and in the code, with a name of the same length. */
static void rename_in(char *bytes, size_t size, const char *name)
{
  for (size_t i = 1; i + 7 <= size; i++)
    if (memcmp(bytes + i, "direct", 7) == 0 && (bytes[i - 1] == 0 || bytes[i - 1] == '=')) memcpy(bytes + i, name, 6);
}

static char *read_direct(size_t *size)
{
  char path[4096];
  const char *build = getenv("TENON_BUILDDIR");
  snprintf(path, sizeof path, "%s/plugins/.libs/direct.so", build != NULL ? build : ".");
  FILE *file = fopen(path, "rb");
  if (file == NULL) return NULL;
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  char *bytes = bench_alloc(*size);
  if (fread(bytes, 1, *size, file) != *size) exit(1);
  fclose(file);
  return bytes;
}

static bool make_files(void)
{
  size_t size = 0;
  char *bytes = read_direct(&size);
  if (bytes == NULL || mkdtemp(folder) == NULL) return false;
  for (int i = 0; i < PLUGINS; i++) {
    char path[100], name[16];
    char *copy = bench_alloc(size);
    memcpy(copy, bytes, size);
    snprintf(name, sizeof name, "p%05d", i);
    rename_in(copy, size, name);
    path_of(path, sizeof path, i);
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(copy, 1, size, file) != size || fclose(file) != 0 || chmod(path, 0755) != 0) exit(1);
    free(copy);
  }
  free(bytes);
  return true;
}

static void remove_files(void)
{
  char path[100];
  for (int i = 0; i < PLUGINS; i++) {
    path_of(path, sizeof path, i);
    unlink(path);
  }
  rmdir(folder);
}

static int count(struct dl_phdr_info *info, size_t size, void *n)
{
  (void)size;
  *(int *)n += info->dlpi_name != NULL && strncmp(info->dlpi_name, folder, strlen(folder)) == 0;
  return 0;
}

static int n_mapped(void)
{
  int n = 0;
  dl_iterate_phdr(count, &n);
  return n;
}

/* ---- the figures ---- */

/* Does the work of `tenon runtimes list`: reads the folders again and queries every entry. */
static void list_all(void *user)
{
  int *n = user;
  tn_error err = TN_ERROR_INIT;
  bench_check(tn_runtime_rescan(&err), &err, "rescan");
  *n = 0;
  for (tn_runtime_info info = { .struct_size = sizeof info }; tn_runtime_at((size_t)*n, &info, NULL) == TN_OK;) ++*n;
}

static void open_named(void *user)
{
  tn_error err = TN_ERROR_INIT;
  tn_session_options *options = NULL;
  tn_session *session = NULL;
  bench_check(tn_session_options_create(&options, &err), &err, "options");
  bench_check(tn_session_options_set_target(options, user, &err), &err, "target");
  bench_check(tn_session_create(options, &session, &err), &err, "session");
  tn_session_options_destroy(options);
  tn_session_destroy(session);
}

/* No file descriptors are available, so a session that opened a file would fail. */
static void second_session(bench *b)
{
  struct rlimit limit, none;
  double median, p99;
  static char name[] = "p00042";
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  none = (struct rlimit){ 0, limit.rlim_max };
  if (setrlimit(RLIMIT_NOFILE, &none) != 0) return;
  bench_time(b, 100, open_named, name, &median, &p99);
  setrlimit(RLIMIT_NOFILE, &limit);
  bench_report(b, "second_session", median * 1e6, p99 * 1e6, "us", "no file");
}

void bench_plugins(bench *b)
{
  static char name[] = "p00042";
  double median, p99;
  int n = 0;
  if (!bench_wants("list_100_plugins") && !bench_wants("named_of_100") && !bench_wants("second_session")) return;
  if (!make_files()) return;
  const char *old = getenv("TENON_PLUGIN_PATH");
  char *before = old != NULL ? strdup(old) : NULL;
  setenv("TENON_PLUGIN_PATH", folder, 1);
  bench_time(b, 1, list_all, &n, &median, &p99);
  if (n < PLUGINS || n_mapped() != 0) {
    fprintf(stderr, "bench: %d plugins were listed, and %d opened\n", n, n_mapped());
    exit(1);
  }
  bench_report(b, "list_100_plugins", median * 1e3, p99 * 1e3, "ms", "<= 5");
  double begin = bench_now();
  open_named(name);
  median = bench_now() - begin;
  bench_report(b, "named_of_100_first", median * 1e6, -1, "us", "");
  bench_report(b, "named_of_100", n_mapped(), -1, "files", "= 1");
  second_session(b);
  if (before != NULL) setenv("TENON_PLUGIN_PATH", before, 1);
  free(before);
  remove_files();
  bench_check(tn_runtime_rescan(NULL), NULL, "rescan");
}
