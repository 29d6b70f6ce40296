/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a plugin on disk; its code is not run. */
#define _XOPEN_SOURCE 700
#include <stdlib.h>
#include <sys/stat.h>

#include <conformance/plugin/plugin.h>

#define ENTRY_TAIL "_LTX_tn_plugin_query"

static const pg_file *readable(void)
{
  const pg_file *f = pg_the_file();
  if (f->fault[0] != '\0') REQUIRE_MSG(false, "%s: %s", cf_under_test->plugin, f->fault);
  return f;
}

static const pg_file *with_manifest(void)
{
  const pg_file *f = readable();
  REQUIRE_MSG(f->manifest != NULL, "it has no section .tenon.manifest: TN_PLUGIN_MANIFEST makes one");
  return f;
}

/* The value of a required key; "" after a failure. */
static const char *wanted(const pg_file *f, const char *key)
{
  const char *value = pg_value(f, key);
  return CHECK_MSG(value != NULL, "its manifest has no key '%s'", key) ? value : "";
}

static void plugin_file__is_a_shared_object_of_this_machine(void) /* P-17 */
{
  readable();
}

static const char *file_name(void)
{
  const char *slash = strrchr(cf_under_test->plugin, '/');
  return slash != NULL ? slash + 1 : cf_under_test->plugin;
}

static bool is_looked_at(const char *name)
{
  size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");
  return name[0] >= 'a' && name[0] <= 'z' && n <= 64 && strcmp(name + n, ".so") == 0;
}

/* The name of the given file; the kit's folder contains only a link to it. */
static void plugin_file__has_a_valid_name(void) /* P-06, P-03 */
{
  const char *name = file_name();
  CHECK_MSG(is_looked_at(name), "'%s' is not a plugin name: wanted a file [a-z][a-z0-9_]{0,63}.so", name);
}

static void plugin_file__is_writable_only_by_its_owner(void) /* P-78 */
{
  struct stat st;
  REQUIRE_MSG(stat(cf_under_test->plugin, &st) == 0, "'%s' cannot be examined", cf_under_test->plugin);
  CHECK_MSG(S_ISREG(st.st_mode), "it is not a regular file");
  CHECK_MSG((st.st_mode & S_IWOTH) == 0, "it is world-writable (mode %o): programs reject it",
            (unsigned)st.st_mode & 07777);
  if (st.st_mode & S_IWGRP) cf_note("it is group-writable: programs with elevated privileges reject it");
}

static void plugin_file__has_a_manifest(void) /* P-15, P-20 */
{
  const pg_file *f = with_manifest();
  CHECK_MSG(f->manifest_size > 0 && f->n_keys > 0, "its manifest is empty");
}

/* ---- the manifest ---- */

static void check_key(const pg_file *f, size_t i)
{
  const char *text = f->keys[i], *equals = strchr(text, '=');
  size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");
  if (!CHECK_MSG(equals != NULL && n > 0 && text + n == equals && text[0] >= 'a',
                 "'%.40s' is not key=value with a key [a-z][a-z0-9_]*", text))
    return;
  size_t most = strncmp(text, "kernels=", 8) == 0 ? 14 * 1024 : 1024;
  CHECK_MSG(strlen(equals + 1) <= most, "the value of '%.*s' has %zu bytes, at most %zu are allowed", (int)n, text,
            strlen(equals + 1), most);
  for (const char *at = equals + 1; *at != '\0'; at++)
    if (!CHECK_MSG((unsigned char)*at >= 0x20 && *at != 0x7f, "the value of '%.*s' has a control character", (int)n,
                   text))
      break;
  for (size_t k = 0; k < i; k++)
    CHECK_MSG(strncmp(f->keys[k], text, n + 1) != 0, "the key '%.*s' occurs twice", (int)n, text);
}

static void plugin_file__manifest_is_well_formed(void) /* P-15, P-18 */
{
  const pg_file *f = with_manifest();
  CHECK_MSG(f->manifest_size <= 16384, "it has %zu bytes, at most 16384 are allowed", f->manifest_size);
  CHECK_MSG(f->manifest_size == 0 || f->manifest[f->manifest_size - 1] == '\0', "its last entry is not NUL-terminated");
  for (size_t i = 0; i < f->n_keys; i++) check_key(f, i);
  const char *format = wanted(f, "format"), *kind = wanted(f, "kind"), *rank = wanted(f, "rank");
  char *end;
  long number = strtol(rank, &end, 10);
  CHECK_MSG(strcmp(format, "1") == 0, "'format' is '%s', wanted '1'", format);
  CHECK_MSG(strcmp(kind, "runtime") == 0 || strcmp(kind, "kernels") == 0,
            "'kind' is '%s', wanted 'runtime' or 'kernels'", kind);
  CHECK_MSG(*rank >= '0' && *rank <= '9' && *end == '\0' && number <= 1000,
            "'rank' is '%s', wanted a number from 0 to 1000", rank);
  CHECK_MSG(wanted(f, "types")[0] != '\0', "'types' is empty, wanted device types such as \"CPU\"");
  wanted(f, "version");
  wanted(f, "vendor");
}

/* The library's verdict, which programs rely on. */
static void plugin_file__is_listed_as_usable(void) /* P-16, P-18, P-78 */
{
  with_manifest();
  if (!is_looked_at(file_name())) TAP_SKIP("files with this name are not listed");
  cf_runtime_enter(cf_under_test);
}

static bool is_reserved(const char *name)
{
  static const char *const all[] = { "direct", "threaded", "gpu", "onednn", "cluster", "local", "remote" };
  for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
    if (strcmp(name, all[i]) == 0) return true;
  return false;
}

/* Whether it is in the folder of the library's own plugins, or was found there. */
static void plugin_file__names_itself_well(void) /* P-52, P-77 */
{
  const pg_file *f = with_manifest();
  const char *name = wanted(f, "name"), *vendor = pg_value(f, "vendor");
  size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.");
  bool good = name[0] >= 'a' && name[0] <= 'z' && name[n] == '\0' && n <= 64;
  CHECK_MSG(good, "its name is '%.80s', wanted 1 to 64 bytes [a-z][a-z0-9_.]*", name);
  bool ours = vendor != NULL && strcmp(vendor, "Tenon") == 0;
  if (is_reserved(name) && !ours)
    cf_note("'%s' is reserved for the library's own files: use a name such as 'acme.%s'", name, name);
  else if (strchr(name, '.') == NULL && !ours)
    cf_note("a name with a vendor prefix, such as 'acme.%s', avoids collisions", name);
}

/* ---- the ABI ---- */

static bool read_version(const char *text, int *major, int *minor)
{
  char *end;
  if (*text < '0' || *text > '9') return false;
  *major = (int)strtol(text, &end, 10);
  if (*end != '.' || end[1] < '0' || end[1] > '9') return false;
  *minor = (int)strtol(end + 1, &end, 10);
  return *end == '\0';
}

static void plugin_file__is_made_for_this_abi(void) /* P-28, P-30, P-31 */
{
  const pg_file *f = with_manifest();
  const char *abi = wanted(f, "abi"), *min_host = wanted(f, "min_host");
  int major = 0, minor = 0, min_major = 0, min_minor = 0;
  bool read = CHECK_MSG(read_version(abi, &major, &minor), "'abi' is '%s', wanted 'major.minor'", abi);
  read =
      CHECK_MSG(read_version(min_host, &min_major, &min_minor), "'min_host' is '%s', wanted 'major.minor'", min_host) &&
      read;
  if (!read) return;
  CHECK_MSG(major == TN_ABI_MAJOR, "it is made for plugin ABI %s, the library has %d.%d: the %s is older", abi,
            TN_ABI_MAJOR, TN_ABI_MINOR, major < TN_ABI_MAJOR ? "plugin" : "library");
  CHECK_MSG(min_major == major, "'min_host' is '%s' and 'abi' is '%s': their majors differ", min_host, abi);
  CHECK_MSG(min_minor <= TN_ABI_MINOR, "it needs plugin ABI %s at least, the library has %d.%d", min_host, TN_ABI_MAJOR,
            TN_ABI_MINOR);
  if (min_minor > minor)
    cf_note("it asks for a library of ABI %s, which is newer than the headers that it was made with (%s)", min_host,
            abi);
}

/* ---- symbols ---- */

static void plugin_file__exports_one_symbol(void) /* P-93 */
{
  const pg_file *f = readable();
  const char *entry = pg_value(f, "entry");
  size_t others = 0;
  for (size_t i = 0; i < f->n_exported; i++) {
    if (entry != NULL && strcmp(f->exported[i], entry) == 0) continue;
    if (others++ < 10)
      FAIL("it exports '%s', which a symbol of the same name in a program would replace", f->exported[i]);
  }
  if (others > 10)
    FAIL("and %zu more: use -fvisibility=hidden and -export-symbols-regex, or a version script", others - 10);
}

static void plugin_file__exports_its_entry(void) /* P-23 */
{
  const pg_file *f = with_manifest();
  const char *entry = wanted(f, "entry");
  size_t n = strlen(entry), tail = strlen(ENTRY_TAIL);
  bool found = false;
  CHECK_MSG(n > tail && strcmp(entry + n - tail, ENTRY_TAIL) == 0, "'entry' is '%s', wanted '<module>" ENTRY_TAIL "'",
            entry);
  for (size_t i = 0; i < f->n_exported; i++) found = found || strcmp(f->exported[i], entry) == 0;
  CHECK_MSG(found, "it exports no '%s': TN_PLUGIN_DEFINE makes it, with the same -DTN_PLUGIN as its manifest", entry);
}

static void plugin_file__is_not_linked_with_the_library(void) /* P-35 */
{
  const pg_file *f = readable();
  for (size_t i = 0; i < f->n_needed; i++)
    CHECK_MSG(strncmp(f->needed[i], "libtenon", 8) != 0,
              "it is linked with '%s': the host table provides all functions", f->needed[i]);
}

TAP_MAIN(
  TAP_TEST(plugin_file__is_a_shared_object_of_this_machine),
  TAP_TEST(plugin_file__has_a_valid_name),
  TAP_TEST(plugin_file__is_writable_only_by_its_owner),
  TAP_TEST(plugin_file__has_a_manifest),
  TAP_TEST(plugin_file__manifest_is_well_formed),
  TAP_TEST(plugin_file__names_itself_well),
  TAP_TEST(plugin_file__is_made_for_this_abi),
  TAP_TEST(plugin_file__exports_its_entry),
  TAP_TEST(plugin_file__exports_one_symbol),
  TAP_TEST(plugin_file__is_not_linked_with_the_library),
  TAP_TEST(plugin_file__is_listed_as_usable))
