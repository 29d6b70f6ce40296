/* SPDX-License-Identifier: Apache-2.0 */
/* Adding a program's table of linked modules to the search. If folders were searched before, they are searched again,
 * so that the modules are found at once; if that fails, the table is dropped. */
#include <ltdl.h>

#include <core/base/file.h>
#include <core/registry/registry_internal.h>
#include <tenon/plugins.h>

tn_status tn_runtime_preload(const void *symbols, tn_error *err)
{
  const lt_dlsymlist *table = symbols;
  tn__error_reset(err);
  if (table == NULL || table->name == NULL || table->address != NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "linked modules: %s",
                        table == NULL
                            ? "the table is NULL"
                            : "the table does not begin with a name without an address, as libtool's tables do");
  tn_status status = tn__token_take("adding linked modules", err);
  if (status != TN_OK) return status;
  size_t before;
  status = tn__preloaded_add(table, &before, err);
  tn__reg_lock();
  bool scanned = tn__reg.scanned;
  tn__reg_unlock();
  if (status == TN_OK && scanned && tn__preloaded_tables() > before) status = tn__scan(err);
  if (status != TN_OK) tn__preloaded_forget(before);
  tn__token_give();
  return status;
}

tn_bool tn_runtime_loads_files(void) { return tn__loads_files(); }
