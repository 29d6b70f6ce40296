/* SPDX-License-Identifier: Apache-2.0 */
/* What a saver restores, as lists. */
#include <core/model/model.h>

tn_status tn__saver_add(tn__saver *saver, tn__restored item, tn_error *err)
{
  if (!tn__grow((void **)&saver->items, &saver->room, saver->n + 1, sizeof *saver->items))
    return tn__no_memory(err, "list of restored variables", saver->n + 1);
  saver->items[saver->n++] = item;
  return TN_OK;
}

tn_status tn__saver_add_unused(tn__saver *saver, tn__slice key, tn_error *err)
{
  if (!tn__grow((void **)&saver->unused, &saver->unused_room, saver->n_unused + 1, sizeof *saver->unused))
    return tn__no_memory(err, "list of keys", saver->n_unused + 1);
  saver->unused[saver->n_unused++] = key;
  return TN_OK;
}

void tn__saver_fini(tn__saver *saver)
{
  tn__free(saver->items, saver->room * sizeof *saver->items);
  tn__free(saver->unused, saver->unused_room * sizeof *saver->unused);
  *saver = (tn__saver){ .n = 0 };
}
