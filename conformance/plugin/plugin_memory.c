/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions opened directly, without steps: they release all resources, even if they are refused or memory runs out.
 * Also calls the callbacks from several threads at once. */
#include <stdatomic.h>
#include <stdlib.h>

#include <conformance/plugin/plugin.h>

enum { ROUNDS = 1000, WARM = 100 };

static void open_and_destroy(const tn_session_options *options, int n)
{
  double begin = pg_now();
  for (int i = 0; i < n && pg_now() - begin < 10; i++) {
    tn_error err = TN_ERROR_INIT;
    tn_runtime_session *session = NULL;
    REQUIRE_OK(pg_new_session(options, &session, &err), &err);
    pg_destroy_session(session);
  }
}

/* A session's resources are released with it, and so before its factory's. */
static void plugin_memory__sessions_leave_nothing(void) /* P-45, P-46, P-94 */
{
  pg_start();
  tn_session_options *options = pg_options(NULL);
  open_and_destroy(options, WARM);
  pg_held before = pg_measure();
  open_and_destroy(options, ROUNDS);
  pg_check_held(&before, "1000 sessions, opened and destroyed", 16384);
  pg_held after = pg_measure();
  CHECK_MSG(after.threads <= before.threads + 4, "1000 sessions, opened and destroyed, left %d threads",
            after.threads - before.threads);
  tn_session_options_destroy(options);
}

/* Many sessions alive at once, destroyed in a different order. */
static void plugin_memory__sessions_are_independent(void) /* P-45, P-46 */
{
  enum { N = 50 };
  tn_runtime_session *sessions[N];
  pg_start();
  tn_session_options *options = pg_options(NULL);
  open_and_destroy(options, 2);
  pg_held before = pg_measure();
  for (int i = 0; i < N; i++) {
    tn_error err = TN_ERROR_INIT;
    REQUIRE_OK(pg_new_session(options, &sessions[i], &err), &err);
  }
  for (int i = 0; i < N; i++) pg_destroy_session(sessions[i * 7 % N]);
  pg_check_held(&before, "50 sessions at once", 16384);
  tn_session_options_destroy(options);
}

static void plugin_memory__refusals_leave_nothing(void) /* P-46, P-49 */
{
  pg_start();
  tn_session_options *options =
      pg_options(":conformance_unknown=1,conformance_long=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
  pg_held before = { 0 };
  for (int i = 0; i < ROUNDS; i++) {
    tn_error err = TN_ERROR_INIT;
    tn_runtime_session *session = NULL;
    if (i == WARM) before = pg_measure();
    pg_new_session(options, &session, &err);
    pg_destroy_session(session);
    tn_error_clear(&err);
  }
  pg_check_held(&before, "sessions that were refused", 16384);
  tn_session_options_destroy(options);
}

/* Each allocation of new_session fails once: it must report that and release its resources. */
static void plugin_memory__lack_of_memory_is_reported(void) /* P-46, P-49, P-61 */
{
  enum { MOST = 2000 };
  pg_start();
  tn_session_options *options = pg_options(NULL);
  open_and_destroy(options, 2);
  for (long n = 1; n < MOST; n++) {
    tn_error err = TN_ERROR_INIT;
    tn_runtime_session *session = NULL;
    pg_held before = pg_measure();
    pg_fail_allocation(n);
    tn_status st = pg_new_session(options, &session, &err);
    bool met = pg_failed();
    pg_fail_allocation(0);
    if (st != TN_OK) pg_check_refusal(st, &err, "without memory, its new_session");
    CHECK_MSG(st == TN_OK || (met && st == TN_RESOURCE_EXHAUSTED), "allocation %ld failed, and new_session says %s", n,
              tn_status_name(st));
    pg_destroy_session(session);
    tn_error_clear(&err);
    if (!met) break;
    pg_held after = pg_measure();
    if (!CHECK_MSG(after.blocks <= before.blocks, "allocation %ld failed: %lld blocks were not given back", n,
                   (long long)(after.blocks - before.blocks)))
      break;
  }
  tn_session_options_destroy(options);
}

/* Called directly, because the library would substitute its own text for a missing one. */
static void plugin_memory__shutdown_has_a_text(void) /* P-61, P-75, P-94 */
{
  tn_error err = TN_ERROR_INIT;
  pg_start();
  tn_session_options *options = pg_options(NULL);
  open_and_destroy(options, 2);
  tn_session_options_destroy(options);
  if (!TN_HAS_FIELD(pg_it.plugin, tn_plugin, shutdown) || pg_it.plugin->shutdown == NULL)
    TAP_SKIP("it has no shutdown");
  cf_reached("its shutdown");
  tn_status st = pg_it.plugin->shutdown(&err);
  pg_check_refusal(st, &err, "its shutdown");
  tn_error_clear(&err);
}

/* ---- several threads ---- */

static void look_at_devices(tn_runtime_session *session)
{
  for (size_t i = 0; pg_it.slots.list_devices != NULL && i < 8; i++) {
    tn_error err = TN_ERROR_INIT;
    tn_device_info info = { .struct_size = sizeof(info) };
    tn_status st = pg_it.slots.list_devices(pg_it.factory, session, i, &info, &err);
    if (st != TN_OUT_OF_RANGE) pg_check_refusal(st, &err, "its list_devices"); /* the end of the list needs no text */
    if (st == TN_OK)
      CHECK_MSG(info.name != NULL && info.type != NULL, "list_devices gives device %zu no name or type", i);
    tn_error_clear(&err);
    if (st != TN_OK) break;
  }
}

static void use_it(void *user, int thread)
{
  const tn_session_options *options = user;
  (void)thread;
  for (int i = 0; i < 100; i++) {
    tn_error err = TN_ERROR_INIT;
    tn_runtime_session *session = NULL;
    pg_it.slots.accepts_options(pg_it.factory, options);
    if (pg_it.slots.explain_options != NULL) pg_it.slots.explain_options(pg_it.factory, options, &err);
    tn_error_clear(&err);
    if (pg_it.slots.rank_for_options != NULL) pg_it.slots.rank_for_options(pg_it.factory, options, 100);
    if (pg_it.slots.health != NULL) pg_it.slots.health(pg_it.factory, &err);
    tn_error_clear(&err);
    tn_status st = pg_it.slots.new_session(pg_it.factory, options, &session, &err);
    CHECK_OK(st, &err);
    if (st == TN_OK) look_at_devices(session);
    if (st == TN_OK) pg_it.slots.destroy_session(pg_it.factory, session);
    tn_error_clear(&err);
  }
}

static void plugin_memory__callbacks_run_concurrently(void) /* P-69 */
{
  pg_start();
  tn_session_options *options = pg_options(NULL);
  cf_reached("its callbacks, from 4 threads at once");
  pg_threads(4, use_it, options);
  pg_held before = pg_measure();
  pg_threads(4, use_it, options);
  pg_check_held(&before, "400 sessions of 4 threads", 65536);
  tn_session_options_destroy(options);
}

TAP_MAIN(
  TAP_TEST(plugin_memory__sessions_leave_nothing),
  TAP_TEST(plugin_memory__sessions_are_independent),
  TAP_TEST(plugin_memory__refusals_leave_nothing),
  TAP_TEST(plugin_memory__lack_of_memory_is_reported),
  TAP_TEST(plugin_memory__shutdown_has_a_text),
  TAP_TEST(plugin_memory__callbacks_run_concurrently))
