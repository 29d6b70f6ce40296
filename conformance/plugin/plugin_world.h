/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that a plugin call leaves the process and the calling thread unchanged (P-101; plugin_world.c). */
#ifndef TENON_CONFORMANCE_PLUGIN_PLUGIN_WORLD_H
#define TENON_CONFORMANCE_PLUGIN_PLUGIN_WORLD_H

#include <conformance/plugin/plugin.h>

typedef struct pg_world pg_world;

/* From now on, checks each direct call (pg_open to pg_destroy_session) and each call of the wrapping factory. */
void pg_watch(void);

/* Enclose a call, on its thread; `call` is a name such as "its init". Changes made by the call are recorded as failures
 * that name it. Both do nothing without pg_watch. Calls may be nested and run on several threads. */
pg_world *pg_call_begin(const char *call);
void pg_call_end(pg_world *before, const char *call);

/* A process signal that this thread does not block; 0: none, or unknown. */
int pg_unblocked_signal(const char *task);

#endif
