/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel plugins: those whose manifest names an op that a plan wants are loaded, once, and enter their kernels in
 * the op table. One that fails is logged and left: what it would have done faster the library's own kernels do. One
 * that brings new ops is loaded when a graph names one of them. */
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

static bool may_load_locked(const tn__plugin *p)
{
  return p->named && p->manifest.is_kernels && p->claims && p->state == TN__PLUGIN_FOUND &&
         tn__rank_of_locked(p->manifest.name, p->rank) > 0 && !tn__plugin_shadowed_locked(p);
}

/* The first plugin that is to be loaded for one of the ops, held for the caller; NULL when there is none. */
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
      bool again = p->state == TN__PLUGIN_FOUND; /* nothing was decided, for want of memory */
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
  return found.data != NULL ? TN_OK : tn_error_set(err, TN_OUT_OF_RANGE, "ops of plugins: there are fewer");
}

/* Whether the list "Op,Op" has the name. */
static bool brings(const char *ops, const char *name, size_t size)
{
  for (const char *at = ops; *at != 0; at += *at == ',') {
    size_t n = strcspn(at, ",");
    if (n == size && memcmp(at, name, size) == 0) return true;
    at += n;
  }
  return false;
}

/* Of those that would be loaded for the op the one of the highest rank; *rival is another one of that rank, or NULL. */
static tn__plugin *best_locked(const char *name, size_t size, tn__plugin **rival)
{
  tn__plugin *best = NULL;
  int32_t rank = 0;
  *rival = NULL;
  for (tn__plugin *p = tn__reg.frozen ? NULL : tn__reg.plugins; p != NULL; p = p->next) {
    if (!p->named || p->manifest.ops[0] == 0 || !brings(p->manifest.ops, name, size) || !may_load_locked(p)) continue;
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

/* Two vendors, one name: whoever is taken, the graph may mean the other. */
static void warn_of_rivals(const char *name, size_t size, const tn__plugin *one, const tn__plugin *other)
{
  tn_log(
      TN_LOG_ERROR,
      "op '%.*s' is brought by plugin '%s' (%s) and by plugin '%s' (%s), which have one rank: none is loaded; give one "
      "a higher rank (TENON_RANK), or disable the other",
      (int)size, name, one->manifest.name, one->path, other->manifest.name, other->path);
}

void tn__registry_want_op(const char *name, size_t size)
{
  tn_error e = TN_ERROR_INIT;
  tn__plugin *p, *rival;
  for (tn_status st = TN_INTERNAL;
       st != TN_OK && st != TN_RESOURCE_EXHAUSTED;) { /* the next one, where the best fails */
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
    if (st != TN_OK) tn_log(TN_LOG_WARNING, "%s; its ops are not known", tn_error_message(&e));
    tn__reg_lock();
    if (p->state == TN__PLUGIN_FOUND) st = TN_RESOURCE_EXHAUSTED; /* nothing was decided */
    tn__reg_unlock();
    tn__plugin_unref(p);
    tn_error_clear(&e);
  }
}

/* Why a plugin that brings the op is of no use. */
static const char *fault_locked(const tn__plugin *p)
{
  if (p->reason != NULL && p->state != TN__PLUGIN_FOUND) return p->reason;
  if (tn__reg.frozen) return "this program loads nothing any more (tn_freeze)";
  if (tn__rank_of_locked(p->manifest.name, p->rank) == 0) return "its rank is 0: it is off";
  return tn__plugin_shadowed_locked(p) ? "another one of this name goes before it"
                                       : "another plugin of its rank brings it, too";
}

void tn__registry_explain_op(const char *name, char *buffer, size_t size)
{
  size_t at = 0, length = strlen(name);
  buffer[0] = 0;
  tn__reg_lock();
  for (const tn__plugin *p = tn__reg.plugins; p != NULL && at + 1 < size; p = p->next) {
    if (!p->named || !brings(p->manifest.ops, name, length)) continue;
    tn__snprintf(buffer + at, size - at, "; plugin '%s' (%s) brings it, but: %s", p->manifest.name, p->path,
                 fault_locked(p));
    at += strlen(buffer + at);
  }
  tn__reg_unlock();
}
