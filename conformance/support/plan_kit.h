/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of the planner: graphs as text, and queries on a plan's report. */
#ifndef TENON_CONFORMANCE_SUPPORT_PLAN_KIT_H
#define TENON_CONFORMANCE_SUPPORT_PLAN_KIT_H

#include "conformance/support/session_kit.h"

/* ---- parts of a GraphDef's text form ---- */

#define NODE(name, op, inputs, attrs) "node { name: '" name "' op: '" op "' " inputs " " attrs " }\n"
#define TYPE(key, type) "attr { key: '" key "' value { type: " type " } }"
#define INT(key, n) "attr { key: '" key "' value { i: " #n " } }"
#define TEXT(key, text) "attr { key: '" key "' value { s: '" text "' } }"
#define LIST(key, ...) "attr { key: '" key "' value { list { i: [" #__VA_ARGS__ "] } } }"
#define D(n) "dim { size: " #n " } "
#define F TYPE("T", "DT_FLOAT")
#define IN(dims) \
  NODE("x", "Placeholder", "", TYPE("dtype", "DT_FLOAT") "attr { key: 'shape' value { shape { " dims " } } }")
#define ANY \
  NODE("x", "Placeholder", "", TYPE("dtype", "DT_FLOAT") "attr { key: 'shape' value { shape { unknown_rank: true } } }")
#define CONSTANT(name, type, shape, values) \
  NODE(name, "Const", "", TYPE("dtype", type) "attr { key: 'value' value { tensor { dtype: " type \
       " tensor_shape { " shape " } " values " } } }")
#define INTS(name, n, values) CONSTANT(name, "DT_INT32", D(n), values)
#define SCALAR(name, value) CONSTANT(name, "DT_FLOAT", "", "float_val: " #value)

/* ---- sessions and reports ---- */

/* Reads the text form of a GraphDef into a new session; disabled: disabled passes, "" for none. */
void tp_open(ts *t, const char *text, int level, const char *disabled);

/* The plan report for one feed (NULL for none) and one fetch; the caller releases it. */
tn_plan_report *tp_report(ts *t, const char *feed, const char *fetch);
tn_plan_summary tp_summary(const tn_plan_report *report);
/* Number of changes in all rounds of a pass; -1 if it is disabled or did not run. */
int64_t tp_changes(const tn_plan_report *report, const char *pass);
/* Number of replacements by a rewrite, in any pass. */
int64_t tp_rewrites(const tn_plan_report *report, const char *name);
/* Number of instructions with an op. */
int tp_calls(const tn_plan_report *report, const char *op);

#endif
