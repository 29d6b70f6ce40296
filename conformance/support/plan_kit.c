/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of the planner. */
#include "conformance/support/plan_kit.h"

void tp_open(ts *t, const char *text, int level, const char *disabled)
{
  tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  ts_init(t, level);
  REQUIRE_OK(tn_graph_import(t->graph, text, strlen(text), &options, &t->err), &t->err);
  REQUIRE_OK(tn_session_options_set_string(t->options, "disable_passes", disabled, &t->err), &t->err);
  ts_start(t);
}

tn_plan_report *tp_report(ts *t, const char *feed, const char *fetch)
{
  tn_plan_report *report = NULL;
  REQUIRE_OK(tn_session_plan_report(t->session, &feed, feed != NULL, &fetch, 1, NULL, 0, &report, &t->err), &t->err);
  return report;
}

tn_plan_summary tp_summary(const tn_plan_report *report)
{
  tn_plan_summary s = { .struct_size = sizeof s };
  CHECK_INT(tn_plan_report_summary(report, &s, NULL), TN_OK);
  return s;
}

int64_t tp_changes(const tn_plan_report *report, const char *pass)
{
  int64_t sum = -1;
  tn_plan_pass p = { .struct_size = sizeof p };
  for (size_t i = 0; tn_plan_report_pass(report, i, &p, NULL) == TN_OK; i++)
    if (strcmp(p.name, pass) == 0 && !p.off) sum = (sum < 0 ? 0 : sum) + (int64_t)p.changes;
  return sum;
}

int64_t tp_rewrites(const tn_plan_report *report, const char *name)
{
  int64_t sum = 0;
  tn_plan_rewrite r = { .struct_size = sizeof r };
  for (size_t i = 0; i < tp_summary(report).passes; i++)
    for (size_t k = 0; tn_plan_report_rewrite(report, i, k, &r, NULL) == TN_OK; k++)
      if (strcmp(r.name, name) == 0) sum += (int64_t)r.count;
  return sum;
}

int tp_calls(const tn_plan_report *report, const char *op)
{
  int n = 0;
  tn_plan_call c = { .struct_size = sizeof c };
  for (size_t i = 0; tn_plan_report_call(report, i, &c, NULL) == TN_OK; i++)
    n += strcmp(tn_operation_type(c.op), op) == 0;
  return n;
}
