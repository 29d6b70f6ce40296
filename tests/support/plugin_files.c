/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tests/support/plugin_files.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <tenon/session.h>

#include "conformance/support/tap.h"

const char *plugin_source(const char *name)
{
  static char buffers[4][4096];
  static unsigned next;
  const char *folder = getenv("TENON_TEST_PLUGINS");
  char *buffer = buffers[next++ % 4];
  snprintf(buffer, sizeof(buffers[0]), "%s/%s.so", folder ? folder : "tests/plugins/.libs", name);
  return buffer;
}

const char *plugin_folder(void)
{
  static char buffers[64][300];
  static unsigned next;
  char *buffer = buffers[next++ % 64];
  snprintf(buffer, sizeof(buffers[0]), "%s/plugins-%u", tap_scratch_dir(), next);
  REQUIRE_MSG(mkdir(buffer, 0755) == 0, "mkdir %s", buffer);
  return buffer;
}

const char *plugin_path(const char *folder, const char *name)
{
  static char buffers[8][4096];
  static unsigned next;
  char *buffer = buffers[next++ % 8];
  snprintf(buffer, sizeof(buffers[0]), "%s/%s", folder, name);
  return buffer;
}

unsigned char *plugin_read(const char *path, size_t *size)
{
  FILE *file = fopen(path, "rb");
  REQUIRE_MSG(file != NULL, "%s cannot be opened ('make test-modules' builds the modules of the tests)", path);
  fseek(file, 0, SEEK_END);
  long n = ftell(file);
  rewind(file);
  unsigned char *bytes = malloc(n > 0 ? (size_t)n : 1);
  bool good = bytes != NULL && n >= 0 && fread(bytes, 1, (size_t)n, file) == (size_t)n;
  fclose(file);
  REQUIRE_MSG(good, "%s cannot be read", path);
  *size = (size_t)n;
  return bytes;
}

/* Creates a new file each time: an old one may be mapped. */
void plugin_write(const char *path, const void *bytes, size_t size)
{
  char temporary[4200];
  snprintf(temporary, sizeof(temporary), "%s.new", path);
  FILE *file = fopen(temporary, "wb");
  REQUIRE_MSG(file != NULL, "%s cannot be created", temporary);
  bool good = fwrite(bytes, 1, size, file) == size;
  good = fclose(file) == 0 && good;
  REQUIRE_MSG(good && chmod(temporary, 0755) == 0 && rename(temporary, path) == 0, "%s cannot be written", path);
}

void plugin_patch(unsigned char *bytes, size_t size, const char *from, const char *to)
{
  size_t n = strlen(from), m = strlen(to);
  unsigned char *at = memmem(bytes, size, from, n);
  REQUIRE_MSG(at != NULL && m <= n, "the text '%s' cannot be replaced by '%s'", from, to);
  memset(at, 0, n);
  memcpy(at, to, m);
}

void plugin_copy(const char *name, const char *folder, const char *file)
{
  size_t size = 0;
  unsigned char *bytes = plugin_read(plugin_source(name), &size);
  plugin_write(plugin_path(folder, file), bytes, size);
  free(bytes);
}

void plugin_chameleon(const char *folder, const char *file, const char *name, int rank, const char *fault)
{
  size_t size = 0;
  char text[64];
  unsigned char *bytes = plugin_read(plugin_source("chameleon"), &size);
  plugin_patch(bytes, size, "chameleon_________________", name);
  plugin_patch(bytes, size, "none________________", fault);
  snprintf(text, sizeof(text), "rank=%03d", rank);
  plugin_patch(bytes, size, "rank=000", text);
  plugin_write(plugin_path(folder, file), bytes, size);
  free(bytes);
}

void plugin_ender(const char *folder, const char *file, const char *name, const char *fault)
{
  size_t size = 0;
  unsigned char *bytes = plugin_read(plugin_source("ender"), &size);
  plugin_patch(bytes, size, "ender_____________________", name);
  plugin_patch(bytes, size, "none:________________", fault);
  plugin_write(plugin_path(folder, file), bytes, size);
  free(bytes);
}

void plugin_search(const char *folders)
{
  tn_error err = TN_ERROR_INIT;
  setenv("TENON_PLUGIN_PATH", folders, 1);
  setenv("TENON_PLUGIN_PATH_ONLY", "1", 1);
  REQUIRE_OK(tn_runtime_rescan(&err), &err);
}

typedef struct counter {
  const char *folder;
  int n;
} counter;

static int count(struct dl_phdr_info *info, size_t size, void *user)
{
  counter *c = user;
  (void)size;
  c->n += info->dlpi_name != NULL && strncmp(info->dlpi_name, c->folder, strlen(c->folder)) == 0;
  return 0;
}

int plugin_count_mapped(const char *folder)
{
  counter c = { folder, 0 };
  dl_iterate_phdr(count, &c);
  return c.n;
}

tn_status plugin_open_session(const char *target, tn_session **out, tn_error *e)
{
  tn_session_options *options = NULL;
  *out = NULL;
  tn_status status = tn_session_options_create(&options, e);
  if (status == TN_OK) status = tn_session_options_set_target(options, target, e);
  if (status == TN_OK) status = tn_session_create(options, out, e);
  tn_session_options_destroy(options);
  return status;
}
