/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/oracle/run/oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void count(oracle_counts *counts, oracle_verdict verdict)
{
  if (verdict == ORACLE_PASSED)
    counts->passed++;
  else if (verdict == ORACLE_FAILED)
    counts->failed++;
  else if (verdict == ORACLE_SKIPPED)
    counts->skipped++;
}

static const char *note_of(const oracle_case *c)
{
  const char *note = json_string_value(json_object_get(c->entry, c->kind == ORACLE_MODEL ? "kind" : "note"));
  return note ? note : "";
}

/* A reason may contain newlines (causes of an error): all lines but the first are indented. */
static void print_reason(const char *reason)
{
  for (; *reason; reason++) {
    putchar(*reason);
    if (*reason == '\n') printf("     ");
  }
  putchar('\n');
}

static void print_failures(const oracle_list *list, const oracle_result *results)
{
  for (size_t i = 0; i < list->n; i++) {
    if (results[i].verdict != ORACLE_FAILED) continue;
    printf("FAIL %s (%s): ", list->cases[i].id, note_of(&list->cases[i]));
    print_reason(results[i].reason);
  }
}

/* --- skipped cases ------------------------------------------------------------------------------------------------ */

typedef struct skip {
  const char *reason;
  const char *id;
} skip;

static int by_reason(const void *a, const void *b)
{
  const skip *x = a, *y = b;
  int order = strcmp(x->reason, y->reason);
  return order ? order : strcmp(x->id, y->id);
}

#define FEW 8

/* One line for each reason; the cases are named if they are few. */
static void print_skips(const oracle_config *config, const oracle_list *list, const oracle_result *results)
{
  skip *skips = oracle_alloc(list->n * sizeof(*skips));
  size_t n = 0;
  for (size_t i = 0; i < list->n; i++)
    if (results[i].verdict == ORACLE_SKIPPED) skips[n++] = (skip){ results[i].reason, list->cases[i].id };
  if (n) qsort(skips, n, sizeof(*skips), by_reason);
  for (size_t i = 0; i < n;) {
    size_t end = i + 1;
    while (end < n && strcmp(skips[end].reason, skips[i].reason) == 0) end++;
    size_t shown = config->verbose || end - i <= FEW ? end : i + 1;
    printf("SKIP %s", skips[i].id);
    for (size_t k = i + 1; k < shown; k++) printf(" %s", skips[k].id);
    if (shown < end) printf(" and %zu more", end - shown);
    printf(": ");
    print_reason(skips[i].reason);
    i = end;
  }
  free(skips);
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

void oracle_report(const oracle_config *config, const oracle_list *list, const oracle_result *results,
                   oracle_counts *total)
{
  memset(total, 0, sizeof(*total));
  if (config->verbose)
    for (size_t i = 0; i < list->n; i++)
      if (results[i].verdict == ORACLE_PASSED)
        printf("ok   %s (%.1f ms)\n", list->cases[i].id, results[i].seconds * 1e3);
  print_skips(config, list, results);
  print_failures(list, results);

  printf("%-16s %8s %8s %8s %9s\n", "family", "passed", "failed", "skipped", "seconds");
  for (size_t i = 0; i < list->n;) {
    oracle_counts counts = { 0 };
    double seconds = 0;
    const char *family = list->cases[i].family;
    for (; i < list->n && strcmp(list->cases[i].family, family) == 0; i++) {
      count(&counts, results[i].verdict);
      count(total, results[i].verdict);
      seconds += results[i].seconds;
    }
    printf("%-16s %8zu %8zu %8zu %9.2f\n", family, counts.passed, counts.failed, counts.skipped, seconds);
  }
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

static json_t *counts_object(const oracle_counts *counts)
{
  return json_pack("{s:I, s:I, s:I}", "passed", (json_int_t)counts->passed, "failed", (json_int_t)counts->failed,
                   "skipped", (json_int_t)counts->skipped);
}

static json_t *families_object(const oracle_list *list, const oracle_result *results)
{
  json_t *families = json_object();
  for (size_t i = 0; i < list->n;) {
    oracle_counts counts = { 0 };
    const char *family = list->cases[i].family;
    for (; i < list->n && strcmp(list->cases[i].family, family) == 0; i++) count(&counts, results[i].verdict);
    json_object_set_new(families, family, counts_object(&counts));
  }
  return families;
}

/* A reason may quote bytes of a string tensor; these are escaped, so invalid UTF-8 comes from
 * elsewhere. */
static json_t *text_value(const char *text)
{
  json_t *value = json_string(text);
  return value ? value : json_string("(not UTF-8)");
}

bool oracle_write_json(const char *path, const oracle_config *config, const oracle_list *list,
                       const oracle_result *results, const oracle_counts *total)
{
  static const char *const verdicts[] = { "passed", "failed", "skipped", "unneeded" };
  json_t *cases = json_array();
  for (size_t i = 0; i < list->n; i++) {
    json_t *entry = json_object();
    json_object_set_new(entry, "id", text_value(list->cases[i].id));
    json_object_set_new(entry, "family", text_value(list->cases[i].family));
    json_object_set_new(entry, "verdict", json_string(verdicts[results[i].verdict]));
    if (results[i].verdict != ORACLE_PASSED) json_object_set_new(entry, "reason", text_value(results[i].reason));
    json_object_set_new(entry, "seconds", json_real(results[i].seconds));
    json_array_append_new(cases, entry);
  }
  json_t *top = json_pack("{s:s, s:i, s:o, s:o, s:o}", "runtime", config->target, "level", config->level, "total",
                          counts_object(total), "families", families_object(list, results), "cases", cases);
  bool ok = top && json_dump_file(top, path, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) == 0;
  json_decref(top);
  return ok;
}
