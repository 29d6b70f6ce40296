/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin's code, one more step in each test, so that an error in a constructor is not attributed to init. Each test
 * is a gate: if it fails, no later test runs. */
#include <stdlib.h>

#include <conformance/plugin/plugin.h>

enum { DEADLINE_S = 5 }; /* a probe's time limit for all steps together */

static void check_time(double begin, const char *what)
{
  double took = pg_now() - begin;
  CHECK_MSG(took < DEADLINE_S, "%s took %.1f s; a probe limits all of its loading to %d s", what, took, DEADLINE_S);
}

/* Constructors must neither end the process nor hang. The next test reports linker errors. */
static void plugin_load__opens(void) /* P-83, P-84, P-85, P-87, P-53 */
{
  double begin = pg_now();
  pg_open();
  check_time(begin, "opening it");
}

/* RTLD_NOW: a missing function is detected here, not at its first call. */
static void plugin_load__finds_all_its_symbols(void) /* P-35, P-61, P-62 */
{
  bool good = pg_open();
  CHECK_MSG(good, "%s", tn_error_message(&pg_it.err));
}

static void plugin_load__answers_its_query(void) /* P-23, P-61, P-83, P-87, P-94 */
{
  REQUIRE(pg_open());
  double begin = pg_now();
  bool good = pg_query();
  check_time(begin, "its entry");
  const char *words = tn_error_message(&pg_it.err);
  CHECK_MSG(good, "its entry refuses, %s%s", words[0] != '\0' ? "with the words: " : "without a reason", words);
}

static const tn_plugin *queried(void)
{
  bool good = pg_open() && pg_query();
  REQUIRE_MSG(good, "%s", tn_error_message(&pg_it.err));
  return pg_it.plugin;
}

static bool has_factories(const tn_plugin *p)
{
  return p->kind == TN_PLUGIN_RUNTIME && p->factories != NULL && p->n_factories > 0 && p->n_factories <= 1024;
}

/* Sizes are checked first: fields beyond them must not be read. */
static void plugin_load__sets_its_sizes(void) /* P-24, P-25, P-26, P-27 */
{
  enum { LEAST = TN_SIZE_TO(tn_plugin, n_factories), MOST = 65536 };
  const tn_plugin *p = queried();
  CHECK_MSG(p->struct_size >= LEAST && p->struct_size <= MOST,
            "struct_size of the plugin returned by its entry is %zu, wanted at least %d", p->struct_size, LEAST);
  if (p->struct_size < LEAST || p->abi_major != TN_ABI_MAJOR || !has_factories(p)) return;
  for (size_t i = 0; i < p->n_factories; i++) {
    const tn_session_factory *f = p->factories[i];
    if (f == NULL) continue;
    CHECK_MSG(f->struct_size >= TN_SESSION_FACTORY_MIN_SIZE && f->struct_size <= MOST,
              "struct_size of session factory %zu is %zu, wanted at least %zu", i, f->struct_size,
              (size_t)TN_SESSION_FACTORY_MIN_SIZE);
  }
}

static void plugin_load__has_the_abi_of_the_library(void) /* P-28, P-29, P-30 */
{
  const tn_plugin *p = queried();
  CHECK_MSG(p->abi_major == TN_ABI_MAJOR, "its code says plugin ABI %d.%d, the library has %d.%d", p->abi_major,
            p->abi_minor, TN_ABI_MAJOR, TN_ABI_MINOR);
}

static void check_equal(const char *key, const char *found)
{
  const char *manifest = pg_value(pg_the_file(), key);
  bool same = strcmp(manifest != NULL ? manifest : "", found != NULL ? found : "") == 0;
  CHECK_MSG(same, "its manifest and its code disagree: '%s' is '%s' in the manifest and '%.80s' in the code", key,
            manifest != NULL ? manifest : "", found != NULL ? found : "(NULL)");
}

static void plugin_load__agrees_with_its_manifest(void) /* P-19, P-15 */
{
  char abi[40];
  const tn_plugin *p = queried();
  snprintf(abi, sizeof(abi), "%d.%d", p->abi_major, p->abi_minor);
  check_equal("abi", abi);
  check_equal("name", p->name);
  check_equal("types", p->types);
  const char *kind = p->kind == TN_PLUGIN_KERNELS ? "kernels" : "neither";
  check_equal("kind", p->kind == TN_PLUGIN_RUNTIME ? "runtime" : kind);
  bool named = has_factories(p); /* the next test reports NULL fields */
  for (size_t i = 0; named && i < p->n_factories; i++) named = p->factories[i] != NULL && p->factories[i]->name != NULL;
  if (!named) return;
  bool good = pg_choose();
  CHECK_MSG(good, "%s", tn_error_message(&pg_it.err));
}

/* ---- factories ---- */

static void check_factory(const tn_session_factory *f, size_t i)
{
  if (!CHECK_MSG(f != NULL, "session factory %zu is NULL", i)) return;
  const char *missing = NULL;
  if (f->name == NULL) missing = "name";
  else if (f->new_session == NULL) missing = "new_session";
  else if (f->accepts_options == NULL) missing = "accepts_options";
  else if (f->destroy_session == NULL) missing = "destroy_session";
  CHECK_MSG(missing == NULL, "session factory %zu ('%.80s') lacks the required callback '%s'", i,
            f->name != NULL ? f->name : "", missing);
}

static void plugin_load__has_the_required_callbacks(void) /* P-37, P-38 */
{
  const tn_plugin *p = queried();
  CHECK_MSG(p->name != NULL && p->name[0] != '\0', "it has no name");
  if (p->kind == TN_PLUGIN_KERNELS) {
    CHECK_MSG(TN_HAS_FIELD(p, tn_plugin, register_kernels) && p->register_kernels != NULL,
              "its register_kernels is NULL");
    return;
  }
  CHECK_MSG(p->factories != NULL && p->n_factories > 0, "it provides no session factory");
  CHECK_MSG(p->n_factories <= 1024, "it claims to provide %zu session factories, at most 1024 are allowed",
            p->n_factories);
  for (size_t i = 0; p->factories != NULL && p->n_factories <= 1024 && i < p->n_factories; i++)
    check_factory(p->factories[i], i);
}

static bool name_is_good(const char *name)
{
  size_t n = strnlen(name, 65);
  return n <= 64 && name[0] >= 'a' && name[0] <= 'z' && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.") == n;
}

static void plugin_load__names_its_factories_well(void) /* P-48, P-50, P-52 */
{
  const tn_plugin *p = queried();
  if (p->kind == TN_PLUGIN_KERNELS) return;
  for (size_t i = 0; i < p->n_factories; i++) {
    const char *name = p->factories[i]->name;
    CHECK_MSG(name_is_good(name), "'%.80s' is not a valid runtime name, wanted 1 to 64 bytes [a-z][a-z0-9_.]*", name);
    for (size_t k = 0; k < i; k++)
      CHECK_MSG(strcmp(name, p->factories[k]->name) != 0, "two of its session factories are called '%s'", name);
  }
}

/* ---- the first calls ---- */

static void plugin_load__initialises(void) /* P-40, P-41, P-61, P-83, P-87, P-94 */
{
  queried();
  double begin = pg_now();
  tn_status st = pg_init();
  check_time(begin, "its init");
  if (!pg_check_refusal(st, &pg_it.err, "its init")) return;
  if (st == TN_UNAVAILABLE) TAP_SKIP("UNAVAILABLE: %s", tn_error_message(&pg_it.err));
  CHECK_OK(st, &pg_it.err);
}

/* Opened, used and closed directly; plugin_options checks its answers. */
static void plugin_load__opens_a_session(void) /* P-37, P-39, P-46, P-61, P-83, P-87, P-94 */
{
  tn_error err = TN_ERROR_INIT;
  tn_runtime_session *session = NULL;
  if (cf_under_test->kernels) TAP_SKIP("it is a kernel plugin");
  pg_start();
  tn_session_options *options = pg_options(NULL);
  double begin = pg_now();
  cf_reached("its accepts_options");
  if (pg_it.slots.health != NULL && !pg_check_refusal(pg_it.slots.health(pg_it.factory, &err), &err, "its health"))
    return;
  tn_error_clear(&err);
  bool accepted = pg_it.slots.accepts_options(pg_it.factory, options);
  tn_status st = pg_new_session(options, &session, &err);
  check_time(begin, "its new_session");
  if (st != TN_INTERNAL || tn_error_code(&err) != TN_OK) pg_check_refusal(st, &err, "its new_session");
  if (st == TN_UNAVAILABLE) tap_skip("UNAVAILABLE: %s", tn_error_message(&err));
  else if (accepted) CHECK_OK(st, &err);
  pg_destroy_session(session);
  tn_session_options_destroy(options);
  tn_error_clear(&err);
}

/* Loaded as by a program: found by its manifest, opened, checked, initialised. */
static void plugin_load__is_taken_by_the_library(void) /* P-09, P-29, P-60 */
{
  tn_error err = TN_ERROR_INIT;
  tn_runtime_info info = { .struct_size = sizeof(info) };
  if (cf_under_test->kernels) TAP_SKIP("it is a kernel plugin");
  if (cf_under_test->name == NULL) TAP_SKIP("the library does not find it");
  if (!cf_runtime_enter(cf_under_test)) return;
  cf_reached("its loading by the library");
  tn_status st = tn_runtime_load(cf_under_test->name, &info, &err);
  if (st == TN_UNAVAILABLE) tap_skip("UNAVAILABLE: %s", tn_error_message(&err));
  else CHECK_OK(st, &err);
  tn_error_clear(&err);
}

TAP_MAIN(
  TAP_TEST(plugin_load__opens),
  TAP_TEST(plugin_load__finds_all_its_symbols),
  TAP_TEST(plugin_load__answers_its_query),
  TAP_TEST(plugin_load__sets_its_sizes),
  TAP_TEST(plugin_load__has_the_abi_of_the_library),
  TAP_TEST(plugin_load__agrees_with_its_manifest),
  TAP_TEST(plugin_load__has_the_required_callbacks),
  TAP_TEST(plugin_load__names_its_factories_well),
  TAP_TEST(plugin_load__initialises),
  TAP_TEST(plugin_load__opens_a_session),
  TAP_TEST(plugin_load__is_taken_by_the_library))
