/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime that breaks one rule, for tests of tenon-conformance: faulty.so:fault=NAME. The kit runs its plans.
 *
 *   none       nothing
 *   deaf       a step continues although it was cancelled or is past its time limit
 *   scribbles  writes into a feed
 *   loses      omits its first output
 *   lies       returns 42 from the second step of a session on
 *   hides      reports success for a failed step
 *   exits      ends the process in a step, with status 0
 *   crashes    writes to an invalid address in a step
 *   hangs      never returns from new_session
 *   forgets    its reset skips the last container
 *   clears     its reset clears containers that were not named
 *   no_reset, no_partial_runs    does not support them, and says so (that breaks no rule) */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tenon/runtime.h>

#include "runtime.h"

TN_PLUGIN_MANIFEST("runtime", "test.faulty", "CPU", "0", "1.0.0", "Tests", "")

struct tn_runtime_session {
  char fault[32];
  int n_steps;
};

static const char *const settings[] = { "fault" };

static const char *fault_of(const tn_session_options *options)
{
  const char *fault = tn_session_options_setting(options, "fault");
  return fault != NULL ? fault : "none";
}

static tn_status new_session(const tn_session_factory *self, const tn_session_options *options,
                             tn_runtime_session **out, tn_error *err)
{
  (void)self;
  const char *fault = fault_of(options);
  while (strcmp(fault, "hangs") == 0) sleep(1);
  *out = tn_alloc(sizeof **out);
  if (*out == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for a session");
  memset(*out, 0, sizeof **out);
  strncpy((*out)->fault, fault, sizeof (*out)->fault - 1);
  return TN_OK;
}

static tn_bool accepts_options(const tn_session_factory *self, const tn_session_options *options)
{
  (void)self;
  return tn_session_options_check_settings(options, settings, 1, NULL) == TN_OK;
}

static void destroy_session(const tn_session_factory *self, tn_runtime_session *session)
{
  (void)self;
  tn_free(session);
}

static tn_status lie(tn_step *s, tn_error *err)
{
  static const float value = 42;
  tn_tensor *t = NULL;
  if (tn_step_n_outputs(s) == 0) return TN_OK;
  tn_status st = tn_tensor_from_data(TN_FLOAT, NULL, 0, &value, sizeof value, &t, err);
  if (st == TN_OK) tn_step_set_output(s, 0, t);
  return st;
}

static void scribble(tn_step *s)
{
  for (size_t i = 0; i < tn_step_n_inputs(s); i++) {
    tn_tensor *t = tn_step_input(s, i);
    if (tn_tensor_dtype(t) == TN_FLOAT && tn_tensor_bytes(t) > 0) *(float *)tn_tensor_data(t) += 1;
  }
}

static tn_status step(const tn_session_factory *self, tn_runtime_session *session, tn_executable *executable,
                      tn_step *s, tn_error *err)
{
  (void)self;
  const char *fault = session->fault;
  if (strcmp(fault, "exits") == 0) exit(0);
  if (strcmp(fault, "crashes") == 0) *(volatile int *)NULL = 1;
  tn_status st = tn_kit_step(executable, s, err);
  while (strcmp(fault, "deaf") == 0 && (st == TN_CANCELLED || st == TN_DEADLINE_EXCEEDED)) {
    usleep(1000);
    st = tn_kit_step(executable, s, err);
  }
  if (strcmp(fault, "hides") == 0) return TN_OK;
  if (st != TN_OK) return st;
  if (strcmp(fault, "scribbles") == 0) scribble(s);
  if (strcmp(fault, "loses") == 0 && tn_step_n_outputs(s) > 0) tn_step_set_output(s, 0, NULL);
  if (strcmp(fault, "lies") == 0 && session->n_steps++ > 0) return lie(s, err);
  return st;
}

static tn_status reset(const tn_session_factory *self, const tn_session_options *options, const char *const *containers,
                       size_t n, uint32_t flags, tn_error *err)
{
  const char *fault = fault_of(options);
  if (strcmp(fault, "no_reset") == 0) return tn_error_set(err, TN_UNIMPLEMENTED, "it keeps what it has");
  static const char *const known[] = { "localhost", "box1", "box2" };
  if (strcmp(fault, "clears") == 0) containers = known, n = sizeof known / sizeof *known;
  if (strcmp(fault, "forgets") == 0 && n > 1) n--;
  return tn_kit_reset(self, containers, n, flags, err);
}

static tn_status partial_runs(const tn_session_factory *self, tn_runtime_session *session, tn_error *err)
{
  (void)self;
  if (strcmp(session->fault, "no_partial_runs") != 0) return TN_OK;
  return tn_error_set(err, TN_UNIMPLEMENTED, "it runs whole plans only");
}

TEST_RUNTIME("test.faulty", .step = step, .reset = reset, .partial_runs = partial_runs)
