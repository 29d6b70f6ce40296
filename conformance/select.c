/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the tests to run, their order, and the rules that they cover. */
#include <fnmatch.h>
#include <stdlib.h>

#include <conformance/conformance.h>

static int stage_of(const char *name)
{
  if (strcmp(name, "plugin_file") == 0) return CF_STAGE_FILE;
  if (strcmp(name, "plugin_load") == 0) return CF_STAGE_LOAD;
  if (strcmp(name, "runtime_works") == 0) return CF_STAGE_WORKS;
  return strncmp(name, "plugin_", 7) == 0 ? CF_STAGE_PLUGIN : CF_STAGE_SESSIONS;
}

static int compare_suites(const void *a, const void *b)
{
  const tap_suite *const *x = a, *const *y = b;
  char left[64], right[64];
  tap_suite_name((*x)->file, left, sizeof(left));
  tap_suite_name((*y)->file, right, sizeof(right));
  int by_stage = stage_of(left) - stage_of(right);
  return by_stage != 0 ? by_stage : strcmp(left, right);
}

/* Suites that open the file themselves. */
static bool needs_file(const char *suite)
{
  static const char *const all[] = { "plugin_file",    "plugin_load",   "plugin_effects",
                                     "plugin_kernels", "plugin_memory", "plugin_options" };
  for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
    if (strcmp(suite, all[i]) == 0) return true;
  return false;
}

/* Whether the test applies to the plugin under test. */
static bool concerns(const cf_test *t, const cf_runtime *r)
{
  if (r == NULL) return true;
  if (needs_file(t->name) && r->plugin == NULL) return false;
  if (t->stage <= CF_STAGE_LOAD) return true;
  return r->kernels == (strcmp(t->name, "plugin_kernels") == 0);
}

static const tap_suite **sorted_suites(size_t *n, size_t *n_tests)
{
  *n = *n_tests = 0;
  for (const tap_suite *s = tap_suites(); s != NULL; s = s->next) *n += 1, *n_tests += s->n;
  const tap_suite **suites = cf_alloc(*n, sizeof(const tap_suite *));
  size_t i = 0;
  for (const tap_suite *s = tap_suites(); s != NULL; s = s->next) suites[i++] = s;
  qsort(suites, *n, sizeof(const tap_suite *), compare_suites);
  return suites;
}

static const char *rules_of(const char *suite, const char *test)
{
  for (const cf_citation *c = cf_citations; c->test != NULL; c++)
    if (strcmp(c->test, test) == 0 && strcmp(c->suite, suite) == 0) return c->rules;
  return "";
}

static bool a_rule_fits(const char *rules, const char *pattern)
{
  char rule[32];
  for (const char *at = rules; *at != '\0';) {
    size_t length = strcspn(at, " ");
    snprintf(rule, sizeof(rule), "%.*s", (int)length, at);
    if (fnmatch(pattern, rule, 0) == 0) return true;
    at += length + strspn(at + length, " ");
  }
  return false;
}

static bool fits(const cf_options *options, const cf_test *t)
{
  for (size_t i = 0; i < options->n_filters; i++) {
    const char *pattern = options->filters[i];
    if (fnmatch(pattern, t->test->name, 0) == 0 || fnmatch(pattern, t->name, 0) == 0) return true;
    if (a_rule_fits(t->rules, pattern)) return true;
  }
  return options->n_filters == 0;
}

static void fill(cf_test *t, const tap_suite *suite, size_t i)
{
  char name[64];
  tap_suite_name(suite->file, name, sizeof(name));
  t->suite = suite;
  t->test = &suite->tests[i];
  t->rules = rules_of(name, t->test->name);
  snprintf(t->name, sizeof(t->name), "%s", strncmp(name, "test_", 5) == 0 ? name + 5 : name);
  t->stage = stage_of(t->name);
}

cf_test *cf_select(const cf_options *options, const cf_runtime *runtime, size_t *n)
{
  size_t n_suites, n_tests, n_fit = 0;
  const tap_suite **suites = sorted_suites(&n_suites, &n_tests);
  cf_test *tests = cf_alloc(n_tests, sizeof(cf_test));
  *n = 0;
  for (size_t s = 0; s < n_suites; s++)
    for (size_t i = 0; i < suites[s]->n; i++) {
      fill(&tests[*n], suites[s], i);
      bool fit = fits(options, &tests[*n]),
           gate = tests[*n].stage == CF_STAGE_LOAD || tests[*n].stage == CF_STAGE_WORKS;
      if (!concerns(&tests[*n], runtime) || (!fit && (options->list || !gate))) continue;
      *n += 1;
      n_fit += fit;
    }
  free(suites);
  if (n_fit == 0) *n = 0;
  return tests;
}

void cf_list(const cf_test *tests, size_t n)
{
  size_t width = 0;
  for (size_t i = 0; i < n; i++) {
    size_t length = strlen(tests[i].test->name);
    if (length > width) width = length;
  }
  for (size_t i = 0; i < n; i++) {
    if (tests[i].rules[0] == '\0') puts(tests[i].test->name);
    else printf("%-*s  %s\n", (int)width, tests[i].test->name, tests[i].rules);
  }
}
