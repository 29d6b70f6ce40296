/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of default sessions. */
#ifndef TENON_CONFORMANCE_SUPPORT_DEFAULT_KIT_H
#define TENON_CONFORMANCE_SUPPORT_DEFAULT_KIT_H

#include <pthread.h>

#include "conformance/support/session_kit.h"

/* A session of the options and the graph of `t`. */
static inline tn_session *dk_session(ts *t)
{
  tn_session *session = NULL;
  REQUIRE_OK(tn_session_create(t->options, &session, &t->err), &t->err);
  REQUIRE_OK(tn_session_set_graph(session, t->graph, &t->err), &t->err);
  return session;
}

/* Runs fn(arg) on a new thread and waits for it. */
static inline void dk_on_thread(void *(*fn)(void *), void *arg)
{
  pthread_t thread;
  REQUIRE_INT(pthread_create(&thread, NULL, fn, arg), 0);
  pthread_join(thread, NULL);
}

/* Fetches constant "two" in the default session; NAN on failure. */
static inline float dk_two(void)
{
  tn_tensor *value = NULL;
  tn_eval_name(NULL, "two", NULL, NULL, 0, &value, NULL);
  float found = ts_float(value);
  tn_tensor_unref(value);
  return found;
}

static inline tn_status dk_run_two(tn_session *session)
{
  const char *fetch = "two";
  tn_tensor *value = NULL;
  tn_status status = tn_session_run(session, NULL, NULL, NULL, 0, &fetch, &value, 1, NULL, 0, NULL, NULL);
  tn_tensor_unref(value);
  return status;
}

#endif
