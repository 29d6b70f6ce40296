/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime controlled by its manifest. Tests copy the file and write another name, rank or fault over the manifest's
 * texts, so that one source yields every kind of plugin, valid and invalid. The key "fault" selects a fault:
 *
 *   none               nothing
 *   query_null, query_silent        the entry returns NULL, with and without a reason
 *   code_name, code_types, code_kind, code_abi, code_major    its code disagrees with its manifest
 *   short_plugin, long_plugin       struct_size too small; a longer struct of a later header (valid)
 *   no_factories, null_factory, many_factories, other_name, bad_name
 *   no_name, no_new_session, no_accepts_options, no_destroy_session, short_factory, long_factory (valid)
 *   two, two_equal                  has NAME and NAME.b (valid); has NAME twice
 *   taken                           also has "test.taken"
 *   init_fails, init_silent, init_nonsense, init_unavailable, init_slow (valid)
 *   accept_aborts                   accepts_options ends the process
 *   null_session, refuses, refuses_silently, unhealthy, lowers_rank, shutdown_refuses
 *
 * It logs "chameleon NAME: init" and "... shutdown" at level info. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tenon/runtime.h>

/* The padding is room for the tests to write into; a NUL may end a value early. */
TN_PLUGIN_MANIFEST("runtime", "chameleon_________________", "CPU\0fault=none________________", "000", "1.0.0", "Tests",
                   "")

#define LONG_TAIL 64

static struct {
  tn_plugin plugin;
  char tail[LONG_TAIL];
} described;
static struct {
  tn_session_factory factory;
  char tail[LONG_TAIL];
} made[2];
static const tn_session_factory *factories[3];
static char second_name[80];
static const char *fault;

/* volatile: the compiler must not rely on the initialiser, as the bytes in the file are changed. */
static const char *volatile manifest = tn__manifest;

static const char *value_of(const char *key)
{
  const char *text = manifest, *end = text + sizeof(tn__manifest);
  for (size_t n = strlen(key); text < end; text += strlen(text) + 1)
    if (strncmp(text, key, n) == 0 && text[n] == '=') return text + n + 1;
  return "";
}

static int is(const char *name) { return strcmp(fault, name) == 0; }

static tn_status new_session(const tn_session_factory *self, const tn_session_options *options,
                             tn_runtime_session **out, tn_error *err)
{
  (void)self, (void)options;
  *out = is("null_session") ? NULL : tn_alloc(1);
  if (*out != NULL || is("null_session")) return TN_OK;
  return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for a session");
}

static tn_bool accepts_options(const tn_session_factory *self, const tn_session_options *options)
{
  (void)self, (void)options;
  if (is("accept_aborts")) abort();
  return !is("refuses") && !is("refuses_silently");
}

static void destroy_session(const tn_session_factory *self, tn_runtime_session *session)
{
  (void)self;
  tn_free(session);
}

static void explain_options(const tn_session_factory *self, const tn_session_options *options, tn_error *err)
{
  (void)self, (void)options;
  if (is("refuses")) tn_error_set(err, TN_INVALID_ARGUMENT, "it likes no options at all");
}

static int32_t rank_for_options(const tn_session_factory *self, const tn_session_options *options, int32_t rank)
{
  (void)self, (void)options;
  return is("lowers_rank") ? 1 : rank + 500; /* more than it may return */
}

static tn_status health(const tn_session_factory *self, tn_error *err)
{
  (void)self;
  return is("unhealthy") ? tn_error_set(err, TN_UNAVAILABLE, "the device fell off the bus") : TN_OK;
}

static tn_status init(tn_error *err)
{
  struct timespec pause = { 0, 100 * 1000 * 1000 };
  tn_log(TN_LOG_INFO, "chameleon %s: init", value_of("name"));
  if (is("init_slow")) nanosleep(&pause, NULL);
  if (is("init_fails")) return tn_error_set(err, TN_DATA_LOSS, "its tables are damaged");
  if (is("init_silent")) return TN_ABORTED;
  if (is("init_nonsense")) return 4711;
  if (is("init_unavailable")) return tn_error_set(err, TN_UNAVAILABLE, "no such device here");
  return TN_OK;
}

static tn_status shutdown(tn_error *err)
{
  tn_log(TN_LOG_INFO, "chameleon %s: shutdown", value_of("name"));
  return is("shutdown_refuses") ? tn_error_set(err, TN_FAILED_PRECONDITION, "it is busy") : TN_OK;
}

static void fill_factory(size_t i, const char *name)
{
  made[i].factory = (tn_session_factory){
    .struct_size = TN_SESSION_FACTORY_SIZE,
    .name = name,
    .new_session = is("no_new_session") ? NULL : new_session,
    .accepts_options = is("no_accepts_options") ? NULL : accepts_options,
    .destroy_session = is("no_destroy_session") ? NULL : destroy_session,
    .explain_options = explain_options,
    .rank_for_options = rank_for_options,
    .health = health,
  };
  if (is("long_factory")) made[i].factory.struct_size = sizeof(made[i]);
  if (is("short_factory")) made[i].factory.struct_size = 32;
  if (is("no_name")) made[i].factory.name = NULL;
  if (is("bad_name")) made[i].factory.name = "No Name";
  if (is("other_name")) made[i].factory.name = "test.other";
  memset(made[i].tail, 0xee, LONG_TAIL);
  factories[i] = is("null_factory") ? NULL : &made[i].factory;
}

static const tn_plugin *describe(tn_error *err)
{
  fault = value_of("fault");
  if (is("query_silent")) return NULL;
  if (is("query_null")) {
    tn_error_set(err, TN_UNIMPLEMENTED, "it does not feel like it");
    return NULL;
  }
  const char *name = value_of("name");
  size_t n = 1;
  fill_factory(0, name);
  if (is("two") || is("two_equal") || is("taken")) {
    size_t length = strlen(name) < sizeof(second_name) - 3 ? strlen(name) : 0;
    memcpy(second_name, name, length + 1);
    if (is("two")) memcpy(second_name + length, ".b", 3);
    if (is("taken")) memcpy(second_name, "test.taken", 11);
    fill_factory(1, second_name);
    n = 2;
  }
  described.plugin = (tn_plugin){
    .struct_size = TN_PLUGIN_SIZE,
    .abi_major = is("code_major") ? TN_ABI_MAJOR + 1 : TN_ABI_MAJOR,
    .abi_minor = is("code_abi") ? TN_ABI_MINOR + 7 : TN_ABI_MINOR,
    .kind = is("code_kind") ? TN_PLUGIN_KERNELS : TN_PLUGIN_RUNTIME,
    .reserved = is("long_plugin") ? 7 : 0, /* ignored */
    .name = is("code_name") ? "test.liar" : name,
    .version = "1.0.0",
    .types = is("code_types") ? "GPU" : "CPU",
    .factories = factories,
    .n_factories = n,
    .init = init,
    .shutdown = shutdown,
  };
  if (is("short_plugin")) described.plugin.struct_size = 24;
  if (is("long_plugin")) described.plugin.struct_size = sizeof(described);
  if (is("no_factories")) described.plugin.n_factories = 0;
  if (is("many_factories")) described.plugin.n_factories = (size_t)1 << 40;
  memset(described.tail, 0xee, LONG_TAIL);
  return &described.plugin;
}

__attribute__((visibility("hidden"))) const tn_host *TN_HOST_TABLE = NULL;
TN_EXPORT const tn_plugin *TN__ENTRY(const tn_host *host, tn_error *err);
const tn_plugin *TN__ENTRY(const tn_host *host, tn_error *err)
{
  TN_HOST_TABLE = host;
  return describe(err);
}
