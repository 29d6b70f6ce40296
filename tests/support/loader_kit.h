/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of plugins as files: the log, and queries of the registry. For one file of
 * a program. */
#ifndef TENON_TESTS_SUPPORT_LOADER_KIT_H
#define TENON_TESTS_SUPPORT_LOADER_KIT_H

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <tenon/tenon.h>

#include "tests/support/plugin_files.h"
#include "conformance/support/tap.h"

static TN_UNUSED tn_error err = TN_ERROR_INIT;

/* ---- the log ---- */

static struct {
  pthread_mutex_t mu;
  char text[100000];
  size_t size;
} logged = { .mu = PTHREAD_MUTEX_INITIALIZER };

static TN_UNUSED void keep_line(void *user, int32_t level, const char *line)
{
  (void)user, (void)level;
  pthread_mutex_lock(&logged.mu);
  size_t n = strlen(line);
  if (logged.size + n + 2 < sizeof(logged.text)) {
    memcpy(logged.text + logged.size, line, n);
    logged.size += n;
    memcpy(logged.text + logged.size++, "\n", 2);
  }
  pthread_mutex_unlock(&logged.mu);
}

static TN_UNUSED void forget_log(void)
{
  logged.size = 0;
  logged.text[0] = 0;
}

static TN_UNUSED int count_logged(const char *text)
{
  int n = 0;
  for (const char *at = logged.text; (at = strstr(at, text)) != NULL; at++) n++;
  return n;
}

/* ---- queries ---- */

static TN_UNUSED tn_runtime_info info;

static TN_UNUSED tn_status load(const char *name)
{
  info = (tn_runtime_info){ .struct_size = sizeof(info) };
  return tn_runtime_load(name, &info, &err);
}

/* The error as shown to users, with its causes. */
static TN_UNUSED const char *whole_error(void)
{
  static char text[5000];
  tn_error_format(&err, text, sizeof(text));
  return text;
}

/* The entry of a file in the listing; info.struct_size is 0 if it is not listed. */
static TN_UNUSED tn_runtime_info listed_file(const char *path)
{
  tn_runtime_info found = { .struct_size = sizeof(found) };
  for (size_t i = 0; tn_runtime_at(i, &found, NULL) == TN_OK; i++)
    if (strcmp(found.file, path) == 0) return found;
  return (tn_runtime_info){ 0 };
}

static TN_UNUSED size_t listed(void)
{
  size_t n = 0;
  for (tn_runtime_info one = { .struct_size = sizeof(one) }; tn_runtime_at(n, &one, NULL) == TN_OK; n++) {}
  return n;
}

/* The file chosen by an empty or given target; "" and the error in err if there is none. */
static TN_UNUSED const char *chosen(const char *target)
{
  static char text[300];
  char all[20000];
  tn_session_options *options = NULL;
  REQUIRE_OK(tn_session_options_create(&options, NULL), NULL);
  REQUIRE_OK(tn_session_options_set_target(options, target, NULL), NULL);
  tn_status status = tn_explain_selection(options, all, sizeof(all), NULL, &err);
  tn_session_options_destroy(options);
  const char *at = status == TN_OK ? strstr(all, "chosen: ") : NULL;
  text[0] = 0;
  if (at != NULL) snprintf(text, sizeof(text), "%.*s", (int)strcspn(at + 8, "\n"), at + 8);
  return text;
}

static TN_UNUSED void loader_setup(void)
{
  tn_set_log_sink(keep_line, NULL);
  tn_set_log_level(TN_LOG_INFO);
}

static TN_UNUSED void loader_teardown(void) { tn_error_clear(&err); }

#endif
