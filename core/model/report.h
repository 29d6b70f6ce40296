/* SPDX-License-Identifier: Apache-2.0 */
/* The report of a restore: names by kind, each with an explanation. */
#ifndef TN_CORE_MODEL_REPORT_H
#define TN_CORE_MODEL_REPORT_H

#include <core/base/arena.h>
#include <tenon/checkpoint.h>

enum { TN__RESTORE_KINDS = TN_RESTORE_MISFIT + 1 };

typedef struct tn__report_item {
  const char *name, *text; /* in the arena */
} tn__report_item;

typedef struct tn__report_list {
  tn__report_item *items; /* owned */
  size_t n, room;
} tn__report_list;

struct tn_restore_report {
  tn__arena arena;
  tn__report_list lists[TN__RESTORE_KINDS];
};

tn_status tn__restore_report_create(tn_restore_report **out, tn_error *err);
/* Copies both texts. */
tn_status tn__restore_report_add(tn_restore_report *report, int32_t kind, const char *name, const char *text,
                                 tn_error *err);

#endif
