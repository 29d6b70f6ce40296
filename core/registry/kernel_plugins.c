/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel plugins. Before a plan is compiled, each plugin whose manifest names one of the plan's ops is loaded, once,
 * and registers its kernels in the op table. If that fails, the failure is logged and the library's own kernels are
 * used. A plugin that provides new ops is loaded when a graph names one of them.
 *
 * A plugin that cannot be loaded for lack of memory stays in the state FOUND, so a later call tries again; the loops
 * below end at such a plugin. */
#include <string.h>

#include <core/registry/registry_internal.h>
#include <tenon/plugins.h>

/* Whether a manifest's `kernels`, "Op@DEVICE:types;Op@DEVICE:types", names the op on the device. */
static bool offers(const char *kernels, const char *op, const char *device)
{
  size_t op_size = strlen(op), device_size = strlen(device);
  for (const char *at = kernels; *at != 0; at += *at == ';') {
    size_t n = strcspn(at, ";");
    if (n > op_size + device_size && memcmp(at, op, op_size) == 0 && at[op_size] == '@' &&
        memcmp(at + op_size + 1, device, device_size) == 0) {
      size_t end = op_size + 1 + device_size;
      if (end == n || at[end] == ':') return true;
    }
    at += n;
  }
  return false;
}

/* Whether the plugin may be loaded without being named: not with rank 0, and not if another one takes precedence. */
static bool may_load_locked(const tn__plugin *p)
{
  return p->named && p->manifest.is_kernels && p->claims && p->state == TN__PLUGIN_FOUND &&
         tn__rank_of_locked(p->manifest.name, p->rank) > 0 && !tn__plugin_shadowed_locked(p);
}

/* Returns the next plugin to load for one of the ops, with a reference for the caller; NULL: there is none. */
static tn__plugin *next_wanted(const char *const *ops, size_t n, const char *device)
{
  tn__plugin *found = NULL;
  tn__reg_lock();
  for (tn__plugin *p = tn__reg.frozen ? NULL : tn__reg.plugins; p != NULL && found == NULL; p = p->next) {
    if (!may_load_locked(p)) continue;
    for (size_t i = 0; i < n && found == NULL; i++)
      if (offers(p->manifest.kernels, ops[i], device)) found = p;
  }
  if (found != NULL) tn__plugin_ref_locked(found);
  tn__reg_unlock();
  return found;
}

void tn__registry_want_kernels(const char *const *ops, size_t n, const char *device)
{
  tn_error e = TN_ERROR_INIT;
  tn__plugin *p;
  if (tn__scan_once(&e) == TN_OK) {
    while ((p = next_wanted(ops, n, device)) != NULL) {
      tn_status st = tn__plugin_load(p, &e);
      if (st != TN_OK) tn_log(TN_LOG_WARNING, "%s; its kernels are not used", tn_error_message(&e));
      tn__reg_lock();
      bool again = p->state == TN__PLUGIN_FOUND; /* undecided, for lack of memory */
      tn__reg_unlock();
      tn__plugin_unref(p);
      tn_error_clear(&e);
      if (again) break;
    }
  }
  tn_error_clear(&e);
}

/* ---- new ops ---- */

tn_status tn_plugin_op_at(size_t i, char *buffer, size_t size, size_t *needed, tn_error *err)
{
  tn__error_reset(err);
  tn__slice found = { NULL, 0 };
  if (buffer != NULL && size > 0) buffer[0] = 0;
  if (needed != NULL) *needed = 0;
  tn_status st = tn__scan_once(err);
  if (st != TN_OK) return st;
  tn__reg_lock();
  for (const tn__plugin *p = tn__reg.frozen ? NULL : tn__reg.plugins; p != NULL && found.data == NULL; p = p->next) {
    if (!p->named || !may_load_locked(p)) continue;
    for (const char *at = p->manifest.ops; *at != 0 && found.data == NULL; at += *at == ',') {
      size_t n = strcspn(at, ",");
      if (i-- == 0) found = (tn__slice){ at, n };
      at += n;
    }
  }
  if (found.data != NULL && needed != NULL) *needed = found.size;
  size_t n = found.size < size ? found.size : size - 1;
  if (found.data != NULL && buffer != NULL && size > 0) {
    memcpy(buffer, found.data, n);
    buffer[n] = 0;
  }
  tn__reg_unlock();
  return found.data != NULL ? TN_OK : tn_error_set(err, TN_OUT_OF_RANGE, "ops of plugins: the index is out of range");
}

/* Whether the list "Op,Op" of a manifest contains the name. */
static bool lists_op(const char *ops, const char *name, size_t size)
{
  for (const char *at = ops; *at != 0; at += *at == ',') {
    size_t n = strcspn(at, ",");
    if (n == size && memcmp(at, name, size) == 0) return true;
    at += n;
  }
  return false;
}

/* Returns the plugin of the highest rank that may be loaded for the op, or NULL; *rival is another one of that rank, or
 * NULL. */
static tn__plugin *best_locked(const char *name, size_t size, tn__plugin **rival)
{
  tn__plugin *best = NULL;
  int32_t rank = 0;
  *rival = NULL;
  for (tn__plugin *p = tn__reg.frozen ? NULL : tn__reg.plugins; p != NULL; p = p->next) {
    if (!p->named || p->manifest.ops[0] == 0 || !lists_op(p->manifest.ops, name, size) || !may_load_locked(p)) continue;
    int32_t own = tn__rank_of_locked(p->manifest.name, p->rank);
    if (best != NULL && own == rank) *rival = p;
    if (best != NULL && own <= rank) continue;
    best = p;
    rank = own;
    *rival = NULL;
  }
  return best;
}

bool tn__registry_offers_op(const char *name, size_t size)
{
  tn__plugin *rival;
  if (tn__scan_once(NULL) != TN_OK) return false;
  tn__reg_lock();
  bool offered = best_locked(name, size, &rival) != NULL;
  tn__reg_unlock();
  return offered;
}

/* Two vendors use the same op name: a choice between them could run another op than the graph means. */
static void warn_of_rivals(const char *name, size_t size, const tn__plugin *one, const tn__plugin *other)
{
  tn_log(TN_LOG_ERROR,
         "op '%.*s' is provided by plugin '%s' (%s) and by plugin '%s' (%s), which have the same rank: neither is "
         "loaded; give one a higher rank (TENON_RANK), or disable the other",
         (int)(size < 200 ? size : 200), name, one->manifest.name, one->path, other->manifest.name, other->path);
}

/* If the best plugin fails, tries the next one: a failed plugin is no longer in the state FOUND. */
void tn__registry_want_op(const char *name, size_t size)
{
  tn_error e = TN_ERROR_INIT;
  tn__plugin *p, *rival;
  for (tn_status st = TN_INTERNAL; st != TN_OK && st != TN_RESOURCE_EXHAUSTED;) {
    tn__reg_lock();
    p = best_locked(name, size, &rival);
    if (p != NULL && rival == NULL) tn__plugin_ref_locked(p);
    if (rival != NULL) tn__plugin_ref_locked(p), tn__plugin_ref_locked(rival);
    tn__reg_unlock();
    if (p == NULL) break;
    if (rival != NULL) {
      warn_of_rivals(name, size, p, rival);
      tn__plugin_unref(rival);
      tn__plugin_unref(p);
      break;
    }
    st = tn__plugin_load(p, &e);
    if (st != TN_OK) tn_log(TN_LOG_WARNING, "%s; its ops are not available", tn_error_message(&e));
    tn__reg_lock();
    if (p->state == TN__PLUGIN_FOUND) st = TN_RESOURCE_EXHAUSTED; /* undecided */
    tn__reg_unlock();
    tn__plugin_unref(p);
    tn_error_clear(&e);
  }
}

/* Why a plugin whose manifest lists the op is not used for it. */
static const char *fault_locked(const tn__plugin *p)
{
  if (p->reason != NULL && p->state != TN__PLUGIN_FOUND) return p->reason;
  if (tn__reg.frozen) return "this program no longer loads plugins (tn_freeze)";
  if (tn__rank_of_locked(p->manifest.name, p->rank) == 0) return "its rank is 0, which disables it";
  return tn__plugin_shadowed_locked(p) ? "another one of this name takes precedence over it"
                                       : "another plugin of the same rank provides it, too";
}

void tn__registry_explain_op(const char *name, char *buffer, size_t size)
{
  size_t at = 0, length = strlen(name);
  buffer[0] = 0;
  tn__reg_lock();
  for (const tn__plugin *p = tn__reg.plugins; p != NULL && at + 1 < size; p = p->next) {
    if (!p->named || !lists_op(p->manifest.ops, name, length)) continue;
    tn__snprintf(buffer + at, size - at, "; plugin '%s' (%s) provides it, but: %s", p->manifest.name, p->path,
                 fault_locked(p));
    at += strlen(buffer + at);
  }
  tn__reg_unlock();
}
