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

int runtimes_too_many(const char *argument); /* reports an unexpected argument */

/* Returns "CODE: message caused by: ..." on one line; the caller frees it. */
char *runtimes_error_line(const tn_error *err);

/* Probes a file and returns the result: "well", "error", "signal", "exit", "timeout", "memory" or "not run". `err`
 * receives the message. */
const char *runtimes_try(const char *path, int64_t timeout_ms, tn_probe_report *report, tn_error *err);

/* Whether a file of this name is considered in a plugin folder. */
bool runtimes_name_is_looked_at(const char *path);

/* Whether the plugin loaded but refused to create a session. */
bool runtimes_refuses_session(const tn_probe_report *report);

/* Advice for a plugin that was rejected or whose probe failed for this reason (advice.c). */
const char *runtimes_advice(const char *reason);

#endif
