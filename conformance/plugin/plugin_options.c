/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins and options: a plugin may read them, must answer quickly, and must not keep them. */
#include <stdatomic.h>
#include <stdlib.h>

#include <conformance/plugin/plugin.h>
#include <conformance/support/session_kit.h>

/* Various options; the first are those given on the command line. */
enum { N_KINDS = 7, FIRST_UNKNOWN = 5 };

static void set(tn_session_options *options, const char *field, const char *text)
{
  tn_error err = TN_ERROR_INIT;
  REQUIRE_OK(tn_session_options_parse(options, field, text, &err), &err);
}

static void make_options(tn_session_options **options)
{
  static const char *const settings[N_KINDS] = { NULL, NULL, "", NULL, "", ":conformance_unknown=1", ":zz=,another=x" };
  for (int i = 0; i < N_KINDS; i++) options[i] = pg_options(settings[i]);
  set(options[1], "level", "0");
  set(options[2], "intra_op_threads", "1");
  set(options[3], "inter_op_threads", "-1");
  set(options[3], "session_name", "conformance");
}

static void drop_options(tn_session_options **options)
{
  for (int i = 0; i < N_KINDS; i++) tn_session_options_destroy(options[i]);
}

static bool accepts(const tn_session_options *options)
{
  cf_reached("its accepts_options");
  return pg_it.slots.accepts_options(pg_it.factory, options) != 0;
}

/* ---- accepts_options ---- */

typedef struct asked {
  tn_session_options *options[N_KINDS];
  bool first[N_KINDS];
  int calls; /* per thread */
  atomic_int changed[N_KINDS];
} asked;

static void ask_often(void *user, int thread)
{
  asked *a = user;
  for (int i = 0; i < a->calls; i++) {
    int k = (i + thread) % N_KINDS;
    if ((pg_it.slots.accepts_options(pg_it.factory, a->options[k]) != 0) != a->first[k])
      atomic_fetch_add(&a->changed[k], 1);
  }
}

static void ask_first(asked *a)
{
  pg_start();
  make_options(a->options);
  for (int k = 0; k < N_KINDS; k++) a->first[k] = accepts(a->options[k]);
  cf_reached("its accepts_options, from 4 threads");
}

/* 10,000 calls from 4 threads: the answer must depend only on the options. */
static void plugin_options__accepting_keeps_no_state(void) /* P-39, P-59, P-69, P-94 */
{
  asked a = { .calls = 2500 };
  ask_first(&a);
  pg_threads(4, ask_often, &a);
  for (int k = 0; k < N_KINDS; k++)
    CHECK_MSG(atomic_load(&a.changed[k]) == 0,
              "accepts_options first answered %s for '%s', and then %d times differently", a.first[k] ? "yes" : "no",
              tn_session_options_target(a.options[k]), atomic_load(&a.changed[k]));
  drop_options(a.options);
}

static void plugin_options__accepting_is_quick(void) /* P-39 */
{
  asked a = { .calls = 0 };
  ask_first(&a);
  double begin = pg_now(), took = 0;
  int n = 0;
  while (n < 2000 && (took = pg_now() - begin) < 0.5) accepts(a.options[n++ % N_KINDS]);
  took = pg_now() - begin;
  CHECK_MSG(took / n < 1e-3, "accepts_options took %.2f ms on average of %d calls, allowed is 1 ms", took / n * 1e3, n);
  drop_options(a.options);
}

/* A call must leave no memory of the library or the plugin, no file and no thread. */
static void plugin_options__accepting_leaves_nothing(void) /* P-39, P-46 */
{
  asked a = { .calls = 2500 };
  ask_first(&a);
  pg_held first = pg_measure();
  pg_threads(4, ask_often, &a);
  pg_held before = pg_measure();
  pg_threads(4, ask_often, &a);
  before.fds = first.fds; /* no more may remain */
  pg_check_held(&before, "10000 calls of accepts_options", 16384);
  pg_held after = pg_measure();
  CHECK_MSG(after.threads <= first.threads, "accepts_options left %d threads", after.threads - first.threads);
  drop_options(a.options);
}

/* new_session must take accepted options, or fail for a reason other than invalid options. */
static void plugin_options__accepted_ones_are_taken(void) /* P-39, P-55 */
{
  tn_session_options *options[N_KINDS];
  pg_start();
  make_options(options);
  for (int k = 0; k < N_KINDS; k++) {
    tn_error err = TN_ERROR_INIT;
    tn_runtime_session *session = NULL;
    bool accepted = accepts(options[k]);
    const char *target = tn_session_options_target(options[k]);
    tn_status st = pg_new_session(options[k], &session, &err);
    if (accepted)
      CHECK_MSG(st != TN_INVALID_ARGUMENT, "'%s': accepts_options accepts, but new_session refuses: %s", target,
                tn_error_message(&err));
    else if (k < FIRST_UNKNOWN)
      CHECK_MSG(st != TN_OK, "'%s': accepts_options refuses, but new_session takes the options", target);
    pg_destroy_session(session);
    tn_error_clear(&err);
  }
  CHECK_MSG(accepts(options[0]), "accepts_options refuses the options that were given, '%s'",
            tn_session_options_target(options[0]));
  drop_options(options);
}

/* ---- explanations, ranks and health ---- */

static void plugin_options__refused_ones_are_explained(void) /* P-44, P-61, P-69 */
{
  tn_session_options *options[N_KINDS];
  pg_start();
  if (pg_it.slots.explain_options == NULL) TAP_SKIP("it has no explain_options: the library has a general sentence");
  make_options(options);
  for (int k = 0; k < N_KINDS; k++) {
    tn_error err = TN_ERROR_INIT;
    if (accepts(options[k])) continue;
    cf_reached("its explain_options");
    pg_it.slots.explain_options(pg_it.factory, options[k], &err);
    CHECK_MSG(tn_error_message(&err)[0] != '\0', "'%s': explain_options gives no text",
              tn_session_options_target(options[k]));
    tn_error_clear(&err);
  }
  drop_options(options);
}

static void plugin_options__rank_is_only_lowered(void) /* P-58 */
{
  static const int32_t ranks[] = { 0, 1, 200, 1000 };
  tn_session_options *options[N_KINDS];
  pg_start();
  if (pg_it.slots.rank_for_options == NULL) TAP_SKIP("it has no rank_for_options");
  make_options(options);
  for (int k = 0; k < N_KINDS; k++)
    for (size_t i = 0; i < sizeof(ranks) / sizeof(*ranks); i++) {
      cf_reached("its rank_for_options");
      int32_t rank = pg_it.slots.rank_for_options(pg_it.factory, options[k], ranks[i]);
      if (!CHECK_MSG(rank >= 0 && rank <= ranks[i], "'%s': rank_for_options makes %d of rank %d, it may only lower it",
                     tn_session_options_target(options[k]), (int)rank, (int)ranks[i]))
        break;
    }
  drop_options(options);
}

static void plugin_options__health_has_a_text(void) /* P-41, P-61 */
{
  tn_error err = TN_ERROR_INIT;
  pg_start();
  if (pg_it.slots.health == NULL) TAP_SKIP("it has no health");
  cf_reached("its health");
  pg_check_refusal(pg_it.slots.health(pg_it.factory, &err), &err, "its health");
  tn_error_clear(&err);
}

/* Refusals of new_session: unknown settings, and no memory. */
static void plugin_options__refusals_have_a_text(void) /* P-61, P-63 */
{
  tn_session_options *options[N_KINDS];
  pg_start();
  make_options(options);
  for (int k = 0; k < N_KINDS; k++) {
    tn_error err = TN_ERROR_INIT;
    tn_runtime_session *session = NULL;
    tn_status st = pg_new_session(options[k], &session, &err);
    if (st != TN_INTERNAL || tn_error_code(&err) != TN_OK) pg_check_refusal(st, &err, "its new_session");
    pg_destroy_session(session);
    tn_error_clear(&err);
  }
  drop_options(options);
}

/* ---- lifetime of options ---- */

/* All arguments become unreadable when the callback returns. A later access raises a signal. */
static void plugin_options__are_read_during_the_call_only(void) /* P-47 */
{
  ts t;
  pg_front_register();
  ts_open(&t, 1);
  for (int i = 0; i < 3; i++) {
    cf_reached("a step, after its options were freed");
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 1 }, { "y", 2 }), "twice"), 6, 0);
    tn_error_clear(&t.err);
  }
  tn_device_info info = { .struct_size = sizeof(info) };
  cf_reached("its list_devices, after its options were freed");
  CHECK_OK(tn_session_device(t.session, 0, &info, &t.err), &t.err);
  static const char *const names[] = { "conformance.box" };
  for (int i = 0; i < 2; i++) {
    cf_reached(i == 0 ? "its reset, after its options were freed" : "its second reset, after the options were freed");
    tn_status st = tn_reset(t.options, names, 1, &t.err);
    if (st != TN_UNIMPLEMENTED) CHECK_OK(st, &t.err);
    tn_error_clear(&t.err);
  }
  cf_reached("its destroy_session, after its options were freed");
  ts_fini(&t);
}

TAP_MAIN(
  TAP_TEST(plugin_options__accepting_keeps_no_state),
  TAP_TEST(plugin_options__accepting_is_quick),
  TAP_TEST(plugin_options__accepting_leaves_nothing),
  TAP_TEST(plugin_options__accepted_ones_are_taken),
  TAP_TEST(plugin_options__refused_ones_are_explained),
  TAP_TEST(plugin_options__rank_is_only_lowered),
  TAP_TEST(plugin_options__health_has_a_text),
  TAP_TEST(plugin_options__refusals_have_a_text),
  TAP_TEST(plugin_options__are_read_during_the_call_only))
