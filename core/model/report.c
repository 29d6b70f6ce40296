/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of restores. */
#include <core/base/alloc.h>
#include <core/model/report.h>

#include <string.h>

tn_status tn__restore_report_create(tn_restore_report **out, tn_error *err)
{
  tn_restore_report *r = tn__zalloc(sizeof *r);
  *out = r;
  if (r == NULL) return tn__no_memory(err, "report of a restore", sizeof *r);
  tn__arena_init(&r->arena, 1024);
  return TN_OK;
}

void tn_restore_report_destroy(tn_restore_report *report)
{
  if (report == NULL) return;
  for (int i = 0; i < TN__RESTORE_KINDS; i++)
    tn__free(report->lists[i].items, report->lists[i].room * sizeof *report->lists[i].items);
  tn__arena_fini(&report->arena);
  tn__free(report, sizeof *report);
}

tn_status tn__restore_report_add(tn_restore_report *report, int32_t kind, const char *name, const char *text,
                                 tn_error *err)
{
  tn__report_list *list = &report->lists[kind];
  const tn__report_item item = { tn__arena_string(&report->arena, name, strlen(name)),
                                 tn__arena_string(&report->arena, text, strlen(text)) };
  if (item.name == NULL || item.text == NULL ||
      !tn__grow((void **)&list->items, &list->room, list->n + 1, sizeof *list->items))
    return tn__no_memory(err, "report of a restore", strlen(name) + strlen(text));
  list->items[list->n++] = item;
  return TN_OK;
}

size_t tn_restore_report_count(const tn_restore_report *report, int32_t kind)
{
  return report == NULL || kind < 0 || kind >= TN__RESTORE_KINDS ? 0 : report->lists[kind].n;
}

const char *tn_restore_report_at(const tn_restore_report *report, int32_t kind, size_t i, const char **text)
{
  if (text != NULL) *text = NULL;
  if (i >= tn_restore_report_count(report, kind)) return NULL;
  if (text != NULL) *text = report->lists[kind].items[i].text;
  return report->lists[kind].items[i].name;
}
