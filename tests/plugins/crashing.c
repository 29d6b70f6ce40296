/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime whose steps end badly: the target's setting `how` is "signal", "exit" or "hang". For
 * programs that supervise steps. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tenon/runtime.h>

#include "runtime.h"

TN_PLUGIN_MANIFEST("runtime", "test.crashing", "CPU", "0", "1.0.0", "Tenon", "")

struct tn_runtime_session {
  char how; /* first letter of the setting */
};

static const char *const settings[] = { "how" };

static tn_status new_session(const tn_session_factory *self, const tn_session_options *options,
                             tn_runtime_session **out, tn_error *err)
{
  (void)self;
  const char *how = tn_session_options_setting(options, "how");
  *out = tn_alloc(sizeof(**out));
  if (!*out) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory");
  (*out)->how = how ? how[0] : 's';
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

static tn_status step(const tn_session_factory *self, tn_runtime_session *session, tn_executable *executable,
                      tn_step *step_, tn_error *err)
{
  (void)self;
  (void)executable;
  (void)step_;
  if (session->how == 'e') _exit(7);
  while (session->how == 'h') sleep(1);
  abort();
  return tn_error_set(err, TN_INTERNAL, "not reached");
}

TEST_RUNTIME("test.crashing", .step = step)
