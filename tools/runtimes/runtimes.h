/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of `tenon runtimes`. argv[0] is the command's name. */
#ifndef TENON_TOOLS_RUNTIMES_RUNTIMES_H
#define TENON_TOOLS_RUNTIMES_RUNTIMES_H

#include <tools/tool.h>

int runtimes_explain(int argc, char **argv);
int runtimes_probe(int argc, char **argv);
int runtimes_doctor(int argc, char **argv);
int runtimes_conform(int argc, char **argv);
int runtimes_cache(int argc, char **argv);

int runtimes_too_many(const char *argument); /* one argument too many */

/* "CODE: message caused by: ..." in one line; to be freed. */
char *runtimes_error_line(const tn_error *err);

/* An absolute path of the file; to be freed. */
char *runtimes_absolute(const char *path);

/* Probes a file and says how it went: "well", "error", "signal", "exit", "timeout", "memory" or "not run". `err` has the words.
 */
const char *runtimes_try(const char *path, int64_t timeout_ms, tn_probe_report *report, tn_error *err);

/* Whether a file of this name is looked at in a folder of plugins. */
bool runtimes_name_is_looked_at(const char *path);

/* Whether the probe came as far as a session, which the plugin then refused. */
bool runtimes_refuses_session(const tn_probe_report *report);

/* What to do about a plugin that is refused or whose probe went wrong for this reason (runtimes_advice.c). */
const char *runtimes_advice(const char *reason);

#endif
