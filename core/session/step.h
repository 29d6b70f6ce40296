/* SPDX-License-Identifier: Apache-2.0 */
/* Running one step of an entry point, and the options of such a call. */
#ifndef TN_CORE_SESSION_STEP_H
#define TN_CORE_SESSION_STEP_H

#include <core/base/threads/stop.h>
#include <core/session/entry_point.h>

#define TN__FROM_NOW INT64_MIN /* a deadline: the time limit counts from the call that gets this */

/* run_options.c */
tn_status tn__run_options_check(const tn_session *session, const tn_run_options *options, tn_error *err);
/* Copies the fields that both structs have (rule P-26), or the defaults if `from` is NULL. Adds no reference. */
void tn__run_options_copy(tn_run_options *to, const tn_run_options *from);
/* The time at which a call that begins now has to end, 0 = never; and the limits on what the call prepares. options
 * need not be checked. */
int64_t tn__call_deadline(const tn_session *session, const tn_run_options *options);
tn__stop tn__call_limits(const tn_session *session, const tn_run_options *options, int64_t deadline_ns);

/* step.c: runs a step, which has to end at deadline_ns (0 = never, or TN__FROM_NOW). fetched[i] is NULL or the tensor
 * to write into. On error those that were NULL are NULL. */
tn_status tn__step_run(tn_session *session, const tn__entry_point *entry, const tn_run_options *options,
                       int64_t deadline_ns, tn_tensor *const *feeds, tn_tensor **fetched, tn_run_metadata *metadata,
                       tn_error *err);
/* warm.c: does the one-time work of such a step in advance. *ran, unless NULL: whether the step was run for that. */
tn_status tn__step_warm(tn_session *session, const tn__entry_point *entry, const tn_run_options *options,
                        tn_tensor *const *feeds, tn_bool *ran, tn_error *err);

#endif
