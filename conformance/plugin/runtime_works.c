/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that the runtime exists. Runs first; if it fails, no other test runs. */
#include <conformance/support/session_kit.h>

#include <conformance/support/tap.h>

static void check_steps(void)
{
  ts t;
  ts_open(&t, 1);
  CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 1 }, { "y", 2 }), "twice"), 6, 0);
  CHECK_OK(tn_error_code(&t.err), &t.err);
  ts_fini(&t);
}

/* It exists, accepts the given options, and runs a graph. */
static void runtime_works__opens_a_session_and_runs_a_graph(void) /* S-OPT-10, S-LIFE-01, S-RUN-01 */
{
  ts t;
  ts_init(&t, 1);
  tn_status st = tn_session_create(t.options, &t.session, &t.err);
  if (st == TN_UNAVAILABLE) tap_skip("UNAVAILABLE: %s", tn_error_message(&t.err));
  else CHECK_OK(st, &t.err);
  ts_fini(&t);
  if (st == TN_OK) check_steps();
}

TAP_MAIN(TAP_TEST(runtime_works__opens_a_session_and_runs_a_graph))
