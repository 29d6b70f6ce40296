/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime that breaks one rule for authors of plugins, selected by the variable
 * TENON_TEST_FAULT, for tests of tenon-conformance. Without it, or with "none", it breaks none.
 * Each fault is described where it is tested for; those of loading are here, those of sessions
 * in faults_session.h. */
#include "faults_session.h"

/* ---- being opened ---- */

static void come_to_grief(const char *where)
{
  char name[40];
  snprintf(name, sizeof name, "%s_crash", where);
  if (is(name)) crash();
  snprintf(name, sizeof name, "%s_abort", where);
  if (is(name)) abort();
  snprintf(name, sizeof name, "%s_exit", where);
  if (is(name)) exit(0);
  snprintf(name, sizeof name, "%s__exit", where);
  if (is(name)) _exit(0);
  snprintf(name, sizeof name, "%s_hang", where);
  while (is(name)) sleep(1);
  effects_of(fault, where);
}

__attribute__((constructor)) static void opened(void)
{
  const char *name = getenv("TENON_TEST_FAULT");
  fault = name != NULL ? name : "none";
  come_to_grief("open");
}

/* A plugin that runs code when it is unloaded at exit, and expects its sessions to be closed by
 * then. */
__attribute__((destructor)) static void closed(void)
{
  if (is("exit_abort") && atomic_load(&live) > 0) abort();
}

static tn_status init(tn_error *err)
{
  come_to_grief("init");
  if (is("init_fails")) return tn_error_set(err, TN_DATA_LOSS, "its tables are damaged");
  if (is("init_silent")) return TN_ABORTED;
  if (is("init_nonsense")) return tn_error_set(err, 4711, "a code of its own");
  if (is("init_unavailable")) return tn_error_set(err, TN_UNAVAILABLE, "no such device here");
  return TN_OK;
}

static tn_status shutdown_(tn_error *err)
{
  come_to_grief("shutdown");
  if (is("shutdown_silent")) return TN_FAILED_PRECONDITION;
  if (is("shutdown_refuses")) return tn_error_set(err, TN_FAILED_PRECONDITION, "it is busy");
  if (is("shutdown_half")) {
    atomic_store(&is_shut, 1);
    return tn_error_set(err, TN_FAILED_PRECONDITION, "it is busy, but ended nevertheless");
  }
  atomic_store(&is_shut, 1);
  drop_kept();
  return TN_OK;
}

/* ---- its description of itself ---- */

static tn_session_factory factories_[2];
static const tn_session_factory *factories[] = { &factories_[0], &factories_[1] };

static void fill_factory(tn_session_factory *f)
{
  *f = (tn_session_factory){
    .struct_size = is("short_factory") ? 40 : TN_SESSION_FACTORY_SIZE,
    .name = is("no_name") ? NULL : "test.faults",
    .new_session = is("no_new_session") ? NULL : new_session,
    .accepts_options = is("no_accepts_options") ? NULL : accepts_options,
    .destroy_session = is("no_destroy_session") ? NULL : destroy_session,
    .prepare = prepare,
    .release = release,
    .step = step,
    .cancel = cancel,
    .partial_runs = partial_runs,
    .list_devices = begins_with("copy_") || begins_with("devices_") ? list_devices : NULL,
    .reset = is("no_reset") ? NULL : reset,
    .explain_options = explain_options,
    .rank_for_options = rank_for_options,
    .health = health,
    .get_extension = get_extension,
  };
}

static tn_plugin plugin;

static const tn_plugin *describe(void)
{
  fill_factory(&factories_[0]);
  fill_factory(&factories_[1]);
  if (is("bad_factory_name")) factories_[1].name = "No Name";
  if (is("null_factory")) factories[1] = NULL;
  bool two = is("two_equal") || is("bad_factory_name") || is("null_factory");
  plugin = (tn_plugin){
    .struct_size = TN_PLUGIN_SIZE,
    .abi_major = TN_ABI_MAJOR,
    .abi_minor = TN_ABI_MINOR + (is("code_minor") ? 1 : 0),
    .kind = is("code_kind") ? TN_PLUGIN_KERNELS : TN_PLUGIN_RUNTIME,
    .name = "test.faults",
    .version = "1.0.0",
    .types = is("code_types") ? "GPU" : "CPU",
    .factories = factories,
    .n_factories = two ? 2 : 1,
    .init = init,
    .shutdown = shutdown_,
  };
  if (is("short_plugin")) plugin.struct_size = 24;
  if (is("huge_plugin")) plugin.struct_size = (size_t)1 << 40;
  if (is("code_newer")) plugin.abi_major++;
  if (is("code_older")) plugin.abi_major--;
  if (is("code_name")) plugin.name = "test.liar";
  if (is("code_no_name")) plugin.name = NULL;
  if (is("no_factories")) plugin.n_factories = 0;
  if (is("many_factories")) plugin.n_factories = (size_t)1 << 40;
  return &plugin;
}

__attribute__((visibility("hidden"))) const tn_host *TN_HOST_TABLE = NULL;
TN_EXPORT const tn_plugin *TN__ENTRY(const tn_host *host, tn_error *err);
const tn_plugin *TN__ENTRY(const tn_host *host, tn_error *err)
{
  TN_HOST_TABLE = host;
  come_to_grief("entry");
  if (is("entry_silent")) return NULL;
  if (is("entry_refuses")) {
    tn_error_set(err, TN_UNIMPLEMENTED, "it does not feel like it");
    return NULL;
  }
  return describe();
}
