/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of partial runs: setups and calls on scalars, with lists terminated by NULL names (session_kit.h). */
#ifndef TENON_CONFORMANCE_SUPPORT_PARTIAL_KIT_H
#define TENON_CONFORMANCE_SUPPORT_PARTIAL_KIT_H

#include "conformance/support/blocked_kit.h"

/* x, y, z placeholders; a = x + 1, counted in slot 1; b = a + y, counted in 2; c = b * z, in 3. */
#define STEPS                                                                                                      \
  ANY("x", "DT_FLOAT") ANY("y", "DT_FLOAT") ANY("z", "DT_FLOAT") SCALAR("one", "1")                                \
  NODE("x1", "AddV2", "input: 'x' input: 'one'", F) NODE("a", "TestCount", "input: 'x1'", SLOT(1))                 \
  NODE("ay", "AddV2", "input: 'a' input: 'y'", F) NODE("b", "TestCount", "input: 'ay'", SLOT(2))                   \
  NODE("bz", "Mul", "input: 'b' input: 'z'", F) NODE("c", "TestCount", "input: 'bz'", SLOT(3))

/* The session may differ from t's; options may be NULL. */
tn_status pk_setup_with(ts *t, tn_session *session, const tn_run_options *options, const char *const *feeds,
                        const char *const *fetches, const char *const *targets, tn_partial_run *out);
tn_status pk_setup(ts *t, const char *const *feeds, const char *const *fetches, const char *const *targets,
                   tn_partial_run *out);
/* The same, but ends the test on failure. */
tn_partial_run pk_begin(ts *t, const char *const *feeds, const char *const *fetches, const char *const *targets);

/* Feeds at most 8 scalars. fetched need not be initialised; after a failure, checks that it is empty. */
tn_status pk_call(tn_session *session, tn_partial_run run, const ts_feed *feeds, const char *const *fetches,
                  tn_tensor **fetched, tn_error *err);
tn_status pk_give(ts *t, tn_partial_run run, const ts_feed *feeds);
/* One fetch: NAN on failure, with the error in t->err. */
float pk_get(ts *t, tn_partial_run run, const ts_feed *feeds, const char *fetch);
/* The same, for its status. */
tn_status pk_fails(ts *t, tn_partial_run run, const ts_feed *feeds, const char *fetch);
/* Whether the run rejects further calls; tested by a call without feeds and fetches. */
bool pk_has_ended(ts *t, tn_partial_run run);

/* A call on a separate thread. */
typedef struct pk_thread {
  tn_session *session;
  tn_partial_run run;
  const char *feed, *fetch; /* NULL = none */
  float x, value;
  tn_status status;
  tn_error err;
  atomic_bool ended;
  pthread_t thread;
} pk_thread;
void pk_start(pk_thread *p);
tn_status pk_join(pk_thread *p); /* err stays set until pk_done */
void pk_done(pk_thread *p);

#endif
