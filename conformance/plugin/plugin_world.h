/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a call of a plugin leaves the process and its caller's thread as it found them (P-101; plugin_world.c). */
#ifndef TENON_CONFORMANCE_PLUGIN_PLUGIN_WORLD_H
#define TENON_CONFORMANCE_PLUGIN_PLUGIN_WORLD_H

#include <conformance/plugin/plugin.h>

typedef struct pg_world pg_world;

/* From now on each call of a test's own (pg_open to pg_destroy_session) and of the front's is looked at. */
void pg_watch(void);

/* Around a call, on its thread; `call` as "its init". What the call changed is recorded as a failure that names it. Without
 * pg_watch neither does anything. Calls may be nested and run on several threads. */
pg_world *pg_call_begin(const char *call);
void pg_call_end(pg_world *before, const char *call);

/* A signal that is meant for the program and that this thread of the process would take; 0: none, or that is not known here. */
int pg_unblocked_signal(const char *task);

#endif
