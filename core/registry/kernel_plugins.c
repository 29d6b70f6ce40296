/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel plugins: those whose manifest names an op that a plan wants are loaded, once, and enter their kernels in the op
 * table. One that fails is logged and left: what it would have done faster the library's own kernels do. */
#include <string.h>

#include <core/registry/registry_internal.h>

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
