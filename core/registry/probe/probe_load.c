/* SPDX-License-Identifier: Apache-2.0 */
/* When plugins are probed, and the effect of a verdict on a load. Only a plugin that crashed, exited, hung or ran out
 * of memory in its probe is refused: one that returned an error returns it again when it is loaded. */
#include <string.h>

#include <core/registry/probe/probe.h>

#define DEFAULT_TIMEOUT_MS 5000

/* Guarded by the registry's mutex. */
static struct {
  bool set; /* by the program: takes precedence over the environment */
  bool on;
  int64_t timeout_ms; /* 0: not set */
} settings;

/* The time limit in ms: the caller's, else the program's, else TENON_PROBE_TIMEOUT_MS, else the default. */
static int64_t timeout_of(int64_t asked)
{
  const char *text = tn__getenv("TENON_PROBE_TIMEOUT_MS");
  int64_t ms = 0;
  if (asked > 0) return asked;
  tn__reg_lock();
  ms = settings.timeout_ms;
  tn__reg_unlock();
  if (ms > 0) return ms;
  return text != NULL && tn__parse_int(tn__slice_of(text), &ms) && ms > 0 ? ms : DEFAULT_TIMEOUT_MS;
}

/* Whether plugins are probed before a load. Never in a probe process, which would probe without end. */
static bool wanted(void)
{
  const char *text = tn__getenv("TENON_PROBE");
  tn__reg_lock();
  bool set = settings.set, on = settings.on;
  tn__reg_unlock();
  if (tn__in_probe()) return false;
  return set ? on : text != NULL && text[0] != 0 && strcmp(text, "0") != 0;
}

/* A cached verdict is used without running the probe. A probe that cannot run refuses the plugin, since the user asked
 * for a probe; the message says how to load without one. */
tn_status tn__probe_before_load(const tn__plugin *plugin, tn_error *err)
{
  tn_probe_report report;
  tn__probe_key key;
  tn_error why = TN_ERROR_INIT, e = TN_ERROR_INIT;
  tn_status status = TN_OK;
  if (!wanted()) return TN_OK;
  tn__probe_key_init(plugin->path, &plugin->id, &key);
  bool known = tn__probe_cache_get(&key, &report, &why);
  if (!known) {
    status = tn__probe_run(plugin->path, timeout_of(0), &report, &why, &e);
    if (status == TN_OK) tn__probe_cache_put(&key, &report, &why);
  }
  if (status == TN_RESOURCE_EXHAUSTED) {
    tn_error_copy(err, &e);
  } else if (status != TN_OK) {
    status = tn_error_set(
        err, TN_FAILED_PRECONDITION,
        "it is not loaded, because it must be probed first (TENON_PROBE=1, tn_runtime_set_probe) and %s; install "
        "tenon-probe, or set TENON_PROBE_PROGRAM to its path, or TENON_PROBE=0 to load without a probe",
        tn_error_message(&e));
  } else if (report.verdict > TN_PROBE_ERROR) {
    status = tn_error_code(&why);
    tn_error_set(err, status, "refused by its probe%s: %s",
                 known ? ", whose verdict is kept until 'tenon runtimes cache clear'" : "", tn_error_message(&why));
  }
  tn_error_clear(&why);
  tn_error_clear(&e);
  return status;
}

/* ---- for programs ---- */

tn_status tn_runtime_set_probe(tn_bool on, int64_t timeout_ms, tn_error *err)
{
  tn__error_reset(err);
  if (timeout_ms < 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "probe: the time limit is %lld ms, wanted 0 or more",
                        (long long)timeout_ms);
  tn__reg_lock();
  settings.set = true;
  settings.on = on;
  settings.timeout_ms = timeout_ms;
  tn__reg_unlock();
  return TN_OK;
}

/* Copies as much as fits in the caller's struct (P-26); report NULL: clears it. */
static tn_status give(const tn_probe_report *report, tn_probe_report *out, tn_error *err)
{
  if (out == NULL) return TN_OK;
  size_t size = out->struct_size;
  if (size < TN_SIZE_TO(tn_probe_report, verdict))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "probe: struct_size is %zu; set it to sizeof(tn_probe_report)", size);
  size_t known = size < sizeof(*report) ? size : sizeof(*report);
  if (report == NULL)
    memset((char *)out + sizeof(size), 0, size - sizeof(size));
  else
    memcpy(out, report, known);
  if (report != NULL && size > known) memset((char *)out + known, 0, size - known);
  out->struct_size = size;
  return TN_OK;
}

/* Always runs the probe, and replaces a cached verdict. */
tn_status tn_runtime_probe(const char *path, int64_t timeout_ms, tn_probe_report *out, tn_error *err)
{
  tn__error_reset(err);
  tn_probe_report report = { 0 };
  tn__probe_key key;
  tn__file_id id;
  tn_error why = TN_ERROR_INIT;
  tn_status status = give(NULL, out, err);
  if (status != TN_OK) return status;
  if (path == NULL || path[0] != '/')
    return tn_error_set(err, TN_INVALID_ARGUMENT, "probe: '%s' is not an absolute path", path != NULL ? path : "");
  if (timeout_ms < 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "probe: the time limit is %lld ms, wanted 0 or more",
                        (long long)timeout_ms);
  status = tn__path_check(path, tn__elevated(), &id, NULL, err);
  if (status == TN_OK) status = tn__probe_run(path, timeout_of(timeout_ms), &report, &why, err);
  if (status != TN_OK) return status;
  tn__probe_key_init(path, &id, &key);
  tn__probe_cache_put(&key, &report, &why);
  give(&report, out, NULL);
  status = tn_error_code(&why);
  if (report.verdict > TN_PROBE_ERROR) tn_error_set(err, status, "plugin '%s': %s", path, tn_error_message(&why));
  else tn_error_copy(err, &why);
  tn_error_clear(&why);
  return status;
}

tn_status tn_runtime_cache_path(char *buffer, size_t size, size_t *needed, tn_error *err)
{
  tn__error_reset(err);
  tn__text path;
  tn__text_init(&path, 65536);
  tn__probe_cache_path(&path);
  tn_status status = path.failed ? tn__no_memory(err, "a path", 1) : TN_OK;
  if (needed != NULL) *needed = path.size;
  if (buffer != NULL && size > 0) {
    size_t n = path.size < size ? path.size : size - 1;
    memcpy(buffer, tn__text_get(&path), n);
    buffer[n] = 0;
  }
  tn__text_fini(&path);
  return status;
}
