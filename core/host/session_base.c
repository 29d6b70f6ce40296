/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of all kinds of sessions: options, factory, the runtime's session. Each call of a slot is bracketed
 * by a record for crash handlers (plugin_call.h). */
#include <core/host/host.h>
#include <core/compile/ir/passes.h>
#include <string.h>

#define MOST_LAYOUTS (1 << 20)

/* ---- options ---- */

static tn_status read_kernels(tn__session_base *on, tn_error *err)
{
  const char *text = tn__option_string(on->options, TN__OPTION_kernel_plugins);
  bool always = strcmp(text, "always") == 0, automatic = strcmp(text, "auto") == 0;
  if (!always && !automatic && strcmp(text, "never") != 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "option kernel_plugins is '%.80s', it must be auto, always or never",
                        text);
  on->reproducible = tn__option_number(on->options, TN__OPTION_reproducible) != 0;
  if (on->reproducible && always)
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "option kernel_plugins is 'always', but the option reproducible excludes kernels of plugins");
  on->want_kernels_always = always;
  on->want_kernels = always || (automatic && !on->reproducible);
  return TN_OK;
}

static tn_status read_weights(tn__session_base *on, tn_error *err)
{
  static const struct { const char *name; tn_dtype dtype; } types[] = { { "float32", TN_FLOAT },
                                                                        { "bfloat16", TN_BFLOAT16 },
                                                                        { "int8", TN_INT8 } };
  const char *text = tn__option_string(on->options, TN__OPTION_weights);
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strcmp(text, types[i].name) == 0) {
      on->weights = types[i].dtype;
      return TN_OK;
    }
  return tn_error_set(err, TN_INVALID_ARGUMENT, "option weights is '%.80s', it must be float32, bfloat16 or int8",
                      text);
}

/* The runtime reads the option too: the limit also applies to memory of a device. */
static tn_status read_limit(tn__session_base *on, int64_t limit, tn_error *err)
{
  tn_status st = limit > 0 ? tn_session_options_set_int(on->options, "memory_limit_bytes", limit, err) : TN_OK;
  if (st != TN_OK) return st;
  limit = tn__option_number(on->options, TN__OPTION_memory_limit_bytes);
  if (limit <= 0 || (on->account = tn__account_create(limit)) != NULL) return TN_OK;
  return tn__no_memory(err, "session", 0);
}

static tn_status read_folders(tn__session_base *on, tn__file_use use, int field, tn_error *err)
{
  tn_status st = TN_OK;
  size_t n = tn__option_n_items(on->options, field);
  int64_t unused;
  for (size_t i = 0; st == TN_OK && i < n; i++)
    st = tn__folders_add(&on->folders, use, tn__option_item_at(on->options, field, i, &unused), err);
  return st;
}

static tn_status read_numbers(tn__session_base *on, tn_error *err)
{
  const tn_session_options *o = on->options; /* the setters have checked the ranges */
  int64_t max_layouts = tn__option_number(o, TN__OPTION_max_layouts);
  on->level = (int32_t)tn__option_number(o, TN__OPTION_level);
  on->max_signatures = (size_t)tn__option_number(o, TN__OPTION_max_signatures);
  on->timeout_ms = tn__option_number(o, TN__OPTION_operation_timeout_ms);
  on->version = tn__option_number(o, TN__OPTION_session_version);
  on->isolated = tn__option_number(o, TN__OPTION_isolate_session_state) != 0;
  if (max_layouts > MOST_LAYOUTS)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "option max_layouts is %lld, it must be at most %d",
                        (long long)max_layouts, MOST_LAYOUTS);
  on->max_layouts = (uint32_t)max_layouts;
  return TN_OK;
}

tn_status tn__session_base_read(tn__session_base *on, const tn_session_options *options, int64_t limit, tn_error *err)
{
  tn__mutex_init(&on->steps_mu, "steps", TN_RANK_SESSION);
  tn__cond_init(&on->notified);
  on->name = "";
  tn_status st = options != NULL ? tn_session_options_copy(options, &on->options, err)
                                 : tn_session_options_create(&on->options, err);
  if (st != TN_OK) return st;
  on->disabled_passes = tn__option_string(on->options, TN__OPTION_disable_passes);
  st = tn__passes_check(on->disabled_passes, err);
  if (st == TN_OK) st = read_numbers(on, err);
  if (st == TN_OK) st = read_limit(on, limit, err);
  if (st == TN_OK) st = read_folders(on, TN__TO_READ, TN__OPTION_read_folders, err);
  if (st == TN_OK) st = read_folders(on, TN__TO_WRITE, TN__OPTION_write_folders, err);
  if (st == TN_OK) st = read_weights(on, err);
  return st == TN_OK ? read_kernels(on, err) : st;
}

/* ---- the runtime ---- */

tn_status tn__session_base_choose(tn__session_base *on, tn_error *err)
{
  tn_status st = tn__registry_acquire(on->options, &on->factory, err);
  if (st == TN_OK) st = tn__factory_complete(on->factory, on->options, err);
  if (st != TN_OK) return st;
  on->slots = tn__factory_vtable(on->factory);
  on->self = tn__factory_self(on->factory);
  tn__factory_info(on->factory, &on->info);
  on->stepping = tn__session_base_call(on, "its step");
  return TN_OK;
}

tn_status tn__session_base_start(tn__session_base *on, tn_error *err)
{
  tn__plugin_call calling = tn__session_base_call(on, "its new_session");
  tn__plugin_call_enter(&calling);
  tn_status st = on->slots->new_session(on->self, on->options, &on->runtime, err);
  tn__plugin_call_leave(&calling);
  if (st != TN_OK) {
    on->runtime = NULL;
    return tn__factory_status(on->factory, "new_session", st, err);
  }
  if (on->runtime == NULL) /* S-OPT-07 */
    return tn_error_set(err, TN_INTERNAL, "runtime '%s' (%s): new_session returned OK without a session", on->info.name,
                        on->info.file);
  return TN_OK;
}

tn_status tn__session_base_prepare(tn__session_base *on, const tn_plan *plan, tn_executable **out, tn_error *err)
{
  *out = NULL;
  if (on->slots->prepare == NULL) return tn_kit_prepare(plan, TN_KIT_INLINE, out, err);
  tn__plugin_call calling = tn__session_base_call(on, "its prepare");
  tn__plugin_call_enter(&calling);
  tn_status st = on->slots->prepare(on->self, on->runtime, plan, out, err);
  tn__plugin_call_leave(&calling);
  if (st != TN_OK) {
    *out = NULL;
    return tn__factory_status(on->factory, "prepare", st, err);
  }
  if (*out != NULL) return TN_OK;
  return tn_error_set(err, TN_INTERNAL, "runtime '%s': prepare returned OK without an executable", on->info.name);
}

void tn__session_base_release(tn__session_base *on, tn_executable *executable)
{
  if (executable == NULL) return;
  if (on->slots->release == NULL) {
    tn_kit_release(executable);
    return;
  }
  tn__plugin_call calling = tn__session_base_call(on, "its release");
  tn__plugin_call_enter(&calling);
  on->slots->release(on->self, on->runtime, executable);
  tn__plugin_call_leave(&calling);
}

tn_status tn__session_base_device(const tn__session_base *on, size_t i, tn_device_info *out, tn_error *err)
{
  tn__plugin_call calling = tn__session_base_call(on, "its list_devices");
  tn__plugin_call_enter(&calling);
  tn_status st = on->slots->list_devices(on->self, on->runtime, i, out, err);
  tn__plugin_call_leave(&calling);
  return st;
}

tn_kit_workers *tn__session_base_workers(const tn__session_base *on, int32_t pool)
{
  tn__plugin_call calling = tn__session_base_call(on, "its workers");
  tn__plugin_call_enter(&calling);
  tn_kit_workers *workers = on->slots->workers(on->self, on->runtime, pool);
  tn__plugin_call_leave(&calling);
  return workers;
}

void tn__session_base_end(tn__session_base *on)
{
  if (on->runtime != NULL) {
    tn__plugin_call calling = tn__session_base_call(on, "its destroy_session");
    tn__plugin_call_enter(&calling);
    on->slots->destroy_session(on->self, on->runtime);
    tn__plugin_call_leave(&calling);
  }
  on->runtime = NULL;
  tn__container_view_destroy(on->containers); /* no step uses it any more */
  on->containers = NULL;
}

void tn__session_base_fini(tn__session_base *on)
{
  tn__account_unref(on->account);
  tn__folders_fini(&on->folders);
  tn__factory_release(on->factory);
  tn_session_options_destroy(on->options);
  tn__cond_fini(&on->notified);
  tn__mutex_fini(&on->steps_mu);
}

int64_t tn__step_deadline(int64_t timeout_ms)
{
  int64_t ns, end = 0;
  if (timeout_ms <= 0) return 0;
  bool fits =
      !__builtin_mul_overflow(timeout_ms, (int64_t)1000000, &ns) && !__builtin_add_overflow(ns, tn__now_ns(), &end);
  return fits ? end : INT64_MAX;
}
