/* SPDX-License-Identifier: Apache-2.0 */
/* Information read from a plugin file without running its code: ELF, manifest, ABI numbers,
 * modes of the files on the path. */
#define _GNU_SOURCE
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <core/registry/registry_internal.h>

#include "conformance/support/oom.h"
#include "tests/support/plugin_files.h"
#include "conformance/support/tap.h"

#define GOOD                                                                                               \
  "format=1\0kind=runtime\0name=acme.fast\0types=CPU,GPU\0rank=7\0version=1\0vendor=Acm\xc3\xa9\0flags=\0" \
  "kernels=\0abi=0.1\0min_host=0.1\0entry=fast_LTX_tn_plugin_query\0"

static tn_error err = TN_ERROR_INIT;
static tn__arena arena;

static void begin(void)
{
  tn__arena_fini(&arena);
  tn__arena_init(&arena, 1024);
}

static void end(void)
{
  tn__arena_fini(&arena);
  tn_error_clear(&err);
}

static tn_status parse(const char *bytes, size_t size, tn__manifest *out)
{
  tn_error_clear(&err);
  return tn__manifest_parse(bytes, size, &arena, out, &err);
}

/* P-15 */
static void manifest__valid_manifests_are_read(void)
{
  tn__manifest m;
  static const char text[] = GOOD "x_new=something of later\0\0\0";
  begin();
  REQUIRE_OK(parse(text, sizeof(text), &m), &err);
  CHECK_STR(m.name, "acme.fast");
  CHECK_STR(m.types, "CPU,GPU");
  CHECK_STR(m.vendor, "Acm\xc3\xa9");
  CHECK_STR(m.entry, "fast_LTX_tn_plugin_query");
  CHECK_INT(m.rank, 7);
  CHECK_INT(m.abi_major, 0);
  CHECK_INT(m.abi_minor, 1);
  CHECK_INT(m.min_host_minor, 1);
  CHECK(!m.is_kernels);
  CHECK_INT(m.n_pairs, 13); /* P-18: unknown keys are kept */
  CHECK_STR(m.pairs[12].key, "x_new");
  CHECK_STR(m.pairs[12].value, "something of later");
  end();
}

static void manifest__rank_is_0_by_default(void)
{
  tn__manifest m;
  static const char text[] = "format=1\0kind=kernels\0name=k\0abi=12.34\0min_host=12.3\0entry=k_LTX_tn_plugin_query";
  begin();
  REQUIRE_OK(parse(text, sizeof(text), &m), &err);
  CHECK_INT(m.rank, 0);
  CHECK(m.is_kernels);
  CHECK_INT(m.abi_minor, 34);
  CHECK_INT(m.min_host_minor, 3);
  CHECK_STR(m.vendor, "");
  end();
}

/* P-15, P-18: each case breaks one thing of the valid manifest. */
static void manifest__invalid_manifests_are_rejected(void)
{
  static const struct {
    const char *from, *to, *message;
  } cases[] = {
    { "format=1", "format=2", "manifest: 'format' is '2', wanted \"1\"" },
    { "format=1", "formal=1", "the key 'format' is missing" },
    { "kind=runtime", "kind=rumtime", "'kind' is 'rumtime', wanted \"runtime\" or \"kernels\"" },
    { "name=acme.fast", "name=Acme.fast", "'name' is 'Acme.fast', wanted 1 to 64 bytes" },
    { "name=acme.fast", "name=acme/fast", "'name' is 'acme/fast'" },
    { "name=acme.fast", "name=", "'name' is ''" },
    { "rank=7", "rank=x", "'rank' is 'x', wanted a number from 0 to 1000" },
    { "version=1", "vendor=12", "the key 'vendor' is listed twice" },
    { "abi=0.1", "abi=0x1", "'abi' is '0x1', wanted \"major.minor\"" },
    { "abi=0.1", "abi=.1", "'abi' is '.1'" },
    { "min_host=0.1", "min_host=1.1", "'min_host' is '1.1', wanted \"major.minor\" with the major of 'abi'" },
    { "min_host=0.1", "min-host=0.1", "byte 105: wanted \"key=value\"" },
    { "entry=fast_LTX_tn_plugin_query", "entry=abort", "'entry' is 'abort', wanted \"<module>_LTX_tn_plugin_query\"" },
    { "entry=fast_LTX_tn_plugin_query", "entry=fast-LTX_tn_plugin_query", "'entry' is" },
    { "entry=fast_LTX_tn_plugin_query", "entry=_LTX_tn_plugin_query", "'entry' is" },
    { "Acm\xc3\xa9", "Acm\xc3\x28", "the value of 'vendor' is not UTF-8 text" },
    { "Acm\xc3\xa9", "Acm\x1b[", "the value of 'vendor' is not UTF-8 text" },
    { "Acm\xc3\xa9", "Acm\xc0\x80", "the value of 'vendor' is not UTF-8 text" },
  };
  tn__manifest m;
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    unsigned char text[] = GOOD;
    begin();
    plugin_patch(text, sizeof(text), cases[i].from, cases[i].to);
    CHECK_MSG(parse((char *)text, sizeof(text), &m) == TN_INVALID_ARGUMENT, "case %zu: %s is accepted", i, cases[i].to);
    CHECK_CONTAINS(tn_error_message(&err), cases[i].message);
  }
  end();
}

/* P-18 */
static void manifest__limits_are_enforced(void)
{
  tn__manifest m;
  tn__text text;
  begin();
  tn__text_init(&text, 1 << 20);
  tn__text_append(&text, GOOD, sizeof(GOOD) - 1);
  CHECK_STATUS(parse(text.data, text.size - 1, &m), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "the last text is not terminated by a NUL");
  CHECK_STATUS(parse("", 0, &m), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(parse("\0\0\0", 3, &m), TN_INVALID_ARGUMENT, &err);

  size_t good = text.size;
  for (int i = 0; i < 52; i++) { /* twelve exist */
    tn__text_printf(&text, "k%d=", i);
    tn__text_append(&text, "", 1);
  }
  CHECK_OK(parse(text.data, text.size, &m), &err);
  CHECK_INT(m.n_pairs, 64);
  tn__text_append(&text, "more=", 6);
  CHECK_STATUS(parse(text.data, text.size, &m), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "more than 64 keys");

  text.size = good;
  tn__text_puts(&text, "long=");
  for (int i = 0; i < 1024; i++) tn__text_puts(&text, "v");
  CHECK_OK(parse(text.data, text.size + 1, &m), &err);
  tn__text_puts(&text, "v");
  CHECK_STATUS(parse(text.data, text.size + 1, &m), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "the value of 'long' has 1025 bytes, at most 1024 are allowed");

  text.size = 0; /* without the long key */
  tn__text_append(&text, GOOD, sizeof(GOOD) - 1);
  plugin_patch((unsigned char *)text.data, text.size, "kernels=", "");
  tn__text_puts(&text, "kernels=");
  for (int i = 0; i < 14336; i++) tn__text_puts(&text, "v");
  CHECK_OK(parse(text.data, text.size + 1, &m), &err);
  tn__text_puts(&text, "v");
  CHECK_STATUS(parse(text.data, text.size + 1, &m), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "the value of 'kernels' has 14337 bytes, at most 14336 are allowed");

  text.size = 0; /* padded to the longest permitted section */
  tn__text_append(&text, GOOD, sizeof(GOOD) - 1);
  while (text.size < 16384) tn__text_append(&text, "", 1);
  CHECK_OK(parse(text.data, text.size, &m), &err);
  tn__text_append(&text, "", 1);
  CHECK_STATUS(parse(text.data, text.size, &m), TN_INVALID_ARGUMENT, &err);
  CHECK_STR(tn_error_message(&err), "manifest: 16385 bytes, at most 16384 are allowed");
  tn__text_fini(&text);
  end();
}

static tn_status parse_good(void *arg)
{
  tn__arena own;
  tn__manifest m;
  (void)arg;
  tn__arena_init(&own, 0);
  tn_status status = tn__manifest_parse(GOOD, sizeof(GOOD), &own, &m, NULL);
  tn__arena_fini(&own);
  return status;
}

static void manifest__survives_lack_of_memory(void) { tn_test_oom_sweep(parse_good, NULL); }

/* P-28: three majors, four minors, and the oldest host that works with a plugin of the newest
 * minor. */
static void abi__requires_equal_majors_and_a_recent_host(void)
{
  for (int32_t major = 0; major < 3; major++) {
    for (int32_t minor = 0; minor < 4; minor++) {
      for (int32_t least = 0; least <= minor; least++) {
        tn_status wanted = major == 1 && least <= 2 ? TN_OK : TN_FAILED_PRECONDITION;
        CHECK_MSG(tn__abi_check(major, minor, least, 1, 2, &err) == wanted, "plugin %d.%d, needs %d.%d, host 1.2",
                  major, minor, major, least);
        tn_error_clear(&err);
      }
    }
  }
}

/* P-30 */
static void abi__errors_explain_which_is_older_and_what_to_do(void)
{
  CHECK_INT(tn__abi_check(0, 9, 0, 1, 2, &err), TN_FAILED_PRECONDITION);
  CHECK_STR(tn_error_message(&err),
            "made for plugin ABI 0.9, this library has 1.2: the plugin is older; rebuild the plugin "
            "with this library's headers, or get a newer one");
  tn_error_clear(&err);
  CHECK_INT(tn__abi_check(2, 0, 0, 1, 2, &err), TN_FAILED_PRECONDITION);
  CHECK_STR(tn_error_message(&err),
            "made for plugin ABI 2.0, this library has 1.2: the library is older; update the library, "
            "or rebuild the plugin with its headers");
  tn_error_clear(&err);
  CHECK_INT(tn__abi_check(1, 4, 3, 1, 2, &err), TN_FAILED_PRECONDITION);
  CHECK_STR(tn_error_message(&err),
            "made for plugin ABI 1.4 and needs at least 1.3, this library has 1.2: the library is "
            "older; update the library, or build the plugin with a lower TN_PLUGIN_MIN_HOST");
  end();
}

/* ---- ELF ---- */

static tn_status read_section(const unsigned char *bytes, size_t size)
{
  const char *section = NULL;
  size_t n = 0;
  tn__object object = { .fd = -1, .bytes = bytes, .size = size };
  begin();
  tn_error_clear(&err);
  tn_status status = tn__elf_read_manifest(&object, &arena, &section, &n, &err);
  CHECK((status == TN_OK) == (section != NULL));
  return status;
}

/* P-16 */
static void elf__manifest_is_found(void)
{
  size_t size = 0;
  unsigned char *bytes = plugin_read(plugin_source("minimal"), &size);
  CHECK_OK(read_section(bytes, size), &err);
  free(bytes);
  end();
}

/* P-15: the manifest is kept by strip. */
static void elf__manifest_survives_strip(void)
{
  const char *folder = plugin_folder();
  char command[10000];
  size_t size = 0;
  snprintf(command, sizeof(command), "strip --strip-all -o '%s' '%s' 2>/dev/null", plugin_path(folder, "stripped.so"),
           plugin_source("minimal"));
  if (system(command) != 0) TAP_SKIP("strip is not available");
  unsigned char *bytes = plugin_read(plugin_path(folder, "stripped.so"), &size);
  CHECK_OK(read_section(bytes, size), &err);
  free(bytes);
  end();
}

/* P-20 */
static void elf__shared_objects_without_a_manifest_are_not_plugins(void)
{
  size_t size = 0;
  unsigned char *bytes = plugin_read(plugin_source("no_manifest"), &size);
  CHECK_STATUS(read_section(bytes, size), TN_INVALID_ARGUMENT, &err);
  CHECK_STR(tn_error_message(&err), "not a runtime plugin (no .tenon.manifest)");
  free(bytes);
  end();
}

/* P-17 */
static void elf__every_truncation_is_rejected(void)
{
  size_t size = 0;
  unsigned char *bytes = plugin_read(plugin_source("minimal"), &size);
  for (size_t n = 0; n < size; n += 64) {
    unsigned char *cut = malloc(n + 1); /* detects reads past the end */
    memcpy(cut, bytes, n);
    CHECK_MSG(read_section(cut, n) == TN_INVALID_ARGUMENT, "truncated to %zu of %zu bytes, it is accepted", n, size);
    free(cut);
  }
  free(bytes);
  end();
}

/* P-17 */
static void elf__errors_describe_foreign_objects(void)
{
  static const struct {
    size_t at;
    unsigned char value;
    const char *message;
  } cases[] = {
    { 0, 'X', "not a shared object: byte 0 does not begin an ELF header" },
    { EI_CLASS, sizeof(void *) == 8 ? ELFCLASS32 : ELFCLASS64, "byte 4: a " },
    { EI_CLASS, 9, "byte 4: a ?--bit object (class 9)" },
    { EI_DATA, ELFDATA2MSB, "byte 5: byte order 2, this process is little-endian (1)" },
    { 16, ET_EXEC, "byte 16: ELF type 2, wanted 3 (a shared object)" },
    { 18, EM_S390, "byte 18: made for IBM Z (machine 22), this process runs on " },
    { 20, 3, "byte 20: ELF version 3, wanted 1" },
  };
  size_t size = 0;
  unsigned char *bytes = plugin_read(plugin_source("minimal"), &size);
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    unsigned char before = bytes[cases[i].at], next = bytes[19];
    bytes[cases[i].at] = cases[i].value;
    if (cases[i].at == 18) bytes[19] = 0;
    CHECK_MSG(read_section(bytes, size) == TN_INVALID_ARGUMENT, "case %zu is accepted", i);
    CHECK_CONTAINS(tn_error_message(&err), cases[i].message);
    bytes[cases[i].at] = before;
    bytes[19] = next;
  }
  CHECK_STATUS(read_section((const unsigned char *)"", 0), TN_INVALID_ARGUMENT, &err);
  CHECK_STR(tn_error_message(&err), "not a shared object: the file is empty");
  free(bytes);
  end();
}

/* P-17: false numbers in the tables. */
static void elf__false_tables_are_rejected(void)
{
  size_t size = 0;
  unsigned char *bytes = plugin_read(plugin_source("minimal"), &size);
  unsigned char *copy = malloc(size);
  static const uint64_t lies[] = {
    0, 1, 0x7f, 0xffff, 0xffffffff, 0x7fffffffffffffff, 0xffffffffffffffff, 0xfffffffffffffff0
  };
  ElfW(Ehdr) header;
  memcpy(&header, bytes, sizeof(header));
  /* Every byte of the header, the program headers and the section headers, with false values of
   * eight bytes and of one. */
  size_t places[][2] = { { EI_NIDENT, sizeof(header) },
                         { header.e_phoff, header.e_phoff + (size_t)header.e_phnum * header.e_phentsize },
                         { header.e_shoff, header.e_shoff + (size_t)header.e_shnum * header.e_shentsize } };
  for (size_t p = 0; p < 3; p++) {
    for (size_t at = places[p][0]; at < places[p][1] && at + 8 <= size; at++) {
      for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        memcpy(copy, bytes, size);
        memcpy(copy + at, &lies[i], at % 8 == 0 ? 8 : 1);
        tn_status status = read_section(copy, size);
        CHECK_MSG(status == TN_OK || status == TN_INVALID_ARGUMENT, "byte %zu: %s", at, tn_status_name(status));
      }
    }
  }
  free(copy);
  free(bytes);
  end();
}

/* ---- files on the path ---- */

static tn_status check_path(const char *path, bool elevated)
{
  tn_error_clear(&err);
  return tn__path_check(path, elevated, NULL, NULL, &err);
}

/* P-78 */
static void security__world_writable_files_and_folders_are_rejected(void)
{
  const char *folder = plugin_folder();
  char message[5000];
  plugin_copy("minimal", folder, "minimal.so");
  const char *path = plugin_path(folder, "minimal.so");
  CHECK_OK(check_path(path, false), &err);
  static const struct {
    unsigned folder, file;
    bool good;
  } cases[] = { { 0755, 0644, true },  { 0775, 0664, true },  { 0755, 0646, false }, { 0757, 0644, false },
                { 0777, 0644, false }, { 01777, 0644, true }, { 01777, 0666, false } };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    REQUIRE_INT(chmod(folder, cases[i].folder), 0);
    REQUIRE_INT(chmod(path, cases[i].file), 0);
    CHECK_MSG(check_path(path, false) == (cases[i].good ? TN_OK : TN_PERMISSION_DENIED), "folder %04o, file %04o",
              cases[i].folder, cases[i].file);
    if (cases[i].good) continue;
    bool file = (cases[i].file & 2) != 0;
    snprintf(message, sizeof(message),
             file ? "file '%s' has mode %04o: it is world-writable"
                  : "directory '%s' has mode %04o: it is world-writable and has no sticky bit",
             file ? path : folder, file ? cases[i].file : cases[i].folder);
    CHECK_STR(tn_error_message(&err), message);
  }
  end();
}

/* P-78: the folder of a link's target is checked, too. */
static void security__links_are_followed(void)
{
  const char *good = plugin_folder(), *bad = plugin_folder();
  plugin_copy("minimal", bad, "minimal.so");
  REQUIRE_INT(symlink(plugin_path(bad, "minimal.so"), plugin_path(good, "link.so")), 0);
  REQUIRE_INT(symlink("../", plugin_path(good, "up")), 0);
  REQUIRE_INT(symlink("loop", plugin_path(good, "loop")), 0);
  CHECK_OK(check_path(plugin_path(good, "link.so"), false), &err);
  REQUIRE_INT(chmod(bad, 0777), 0);
  CHECK_STATUS(check_path(plugin_path(good, "link.so"), false), TN_PERMISSION_DENIED, &err);
  CHECK_CONTAINS(tn_error_message(&err), bad);
  REQUIRE_INT(chmod(bad, 0755), 0);
  CHECK_STATUS(check_path(plugin_path(good, "loop"), false), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "more than 40 symbolic links");
  char path[5000];
  snprintf(path, sizeof(path), "%s/./up//%s/minimal.so", good, strrchr(bad, '/') + 1);
  CHECK_OK(check_path(path, false), &err);
  snprintf(path, sizeof(path), "%s/../%s/minimal.so", good, strrchr(bad, '/') + 1);
  CHECK_OK(check_path(path, false), &err);
  end();
}

/* P-78, S-PLG-01 */
static void security__only_regular_files_that_exist(void)
{
  const char *folder = plugin_folder();
  REQUIRE_INT(mkfifo(plugin_path(folder, "fifo.so"), 0644), 0);
  CHECK_STATUS(check_path(plugin_path(folder, "fifo.so"), false), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "is a FIFO, wanted a regular file");
  CHECK_STATUS(check_path(folder, false), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "is a directory, wanted a regular file");
  CHECK_STATUS(check_path(plugin_path(folder, "none.so"), false), TN_NOT_FOUND, &err);
  CHECK_CONTAINS(tn_error_message(&err), "none.so' does not exist");
  CHECK_STATUS(check_path(plugin_path(folder, "fifo.so/x"), false), TN_NOT_FOUND, &err);
  CHECK_STATUS(check_path("relative.so", false), TN_INVALID_ARGUMENT, &err);
  end();
}

/* P-78 */
static void security__elevated_processes_check_more(void)
{
  const char *folder = plugin_folder();
  tn__file_id id;
  bool foreign = false;
  plugin_copy("minimal", folder, "minimal.so");
  /* /tmp may be written by a group, so everything below it is rejected. */
  CHECK_STATUS(check_path(plugin_path(folder, "minimal.so"), true), TN_PERMISSION_DENIED, &err);
  if (geteuid() != 0) TAP_SKIP("only root can change the owner of files");
  REQUIRE_INT(chown(plugin_path(folder, "minimal.so"), 65534, 65534), 0);
  CHECK_OK(tn__path_check(plugin_path(folder, "minimal.so"), false, &id, &foreign, &err), &err);
  CHECK(foreign); /* another owner is only a note */
  CHECK(id.size > 0);
  end();
}

TAP_MAIN(TAP_TEST(manifest__valid_manifests_are_read), TAP_TEST(manifest__rank_is_0_by_default),
         TAP_TEST(manifest__invalid_manifests_are_rejected), TAP_TEST(manifest__limits_are_enforced),
         TAP_TEST(manifest__survives_lack_of_memory), TAP_TEST(abi__requires_equal_majors_and_a_recent_host),
         TAP_TEST(abi__errors_explain_which_is_older_and_what_to_do), TAP_TEST(elf__manifest_is_found),
         TAP_TEST(elf__manifest_survives_strip), TAP_TEST(elf__shared_objects_without_a_manifest_are_not_plugins),
         TAP_TEST(elf__every_truncation_is_rejected), TAP_TEST(elf__errors_describe_foreign_objects),
         TAP_TEST(elf__false_tables_are_rejected), TAP_TEST(security__world_writable_files_and_folders_are_rejected),
         TAP_TEST(security__links_are_followed), TAP_TEST(security__only_regular_files_that_exist),
         TAP_TEST(security__elevated_processes_check_more))
