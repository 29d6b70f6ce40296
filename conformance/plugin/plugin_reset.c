/* SPDX-License-Identifier: Apache-2.0 */
/* The factory's reset: which sessions it closes, that it does not wait, and which containers it detaches. */
#include <stdlib.h>

#include <conformance/plugin/plugin.h>
#include "conformance/support/blocked_kit.h"

/* Nodes "set_" and "read_" with this suffix, for a variable in a container. */
#define BOX(s, box)                                                                                          \
  NODE("v_" s, "VarHandleOp", "", DT SHAPE("") TEXT_ATTR("shared_name", "state") TEXT_ATTR("container", box)) \
  NODE("set_" s, "AssignVariableOp", "input: 'v_" s "' input: 'x'", DT)                                      \
  NODE("read_" s, "ReadVariableOp", "input: 'v_" s "'", DT)
#define BOXES START BOX("0", "") BOX("1", "conformance.a") BOX("2", "conformance.b")
enum { N_BOXES = 3 };

static void enter(void)
{
  bool found = cf_runtime_enter(cf_under_test);
  REQUIRE_MSG(found, "%s is not found", cf_under_test->name != NULL ? cf_under_test->name : "it");
}

/* Ends the test if there is no reset, which is optional (P-38). */
#define NEEDS_RESET() \
  enter();            \
  if (!ts_has_reset()) TAP_SKIP("UNIMPLEMENTED: it has no reset")

static const char *named(const char *what, int box)
{
  static char text[32];
  snprintf(text, sizeof text, "%s_%d", what, box);
  return text;
}

static void fill(tn_session *s)
{
  for (int b = 0; b < N_BOXES; b++) CHECK_INT(bk_target(s, named("set", b), 10.f + (float)b), TN_OK);
}

/* is_new: a bit for each box that must be empty. */
static void reset_and_look(const char *const *list, size_t n, uint32_t flags, unsigned is_new)
{
  ts t;
  bk_open(&t, false, BOXES);
  fill(t.session);
  cf_reached("its reset");
  CHECK_OK(tn_reset_containers(t.options, list, n, flags, NULL, &t.err), &t.err);
  cf_reached("a session after its reset");
  tn_session *young = bk_session(&t);
  for (int b = 0; b < N_BOXES; b++) {
    bool gone = bk_fails(young, named("read", b)) == TN_FAILED_PRECONDITION;
    static const char *const names[] = { "the default container", "'conformance.a'", "'conformance.b'" };
    if ((is_new >> b & 1) != 0) CHECK_MSG(gone, "%s should have been detached, but still has its variable", names[b]);
    else CHECK_MSG(!gone, "%s should not have been detached, but has lost its variable", names[b]);
  }
  tn_session_destroy(young);
  CHECK_OK(tn_reset_containers(t.options, NULL, 0, TN_RESET_ALL, NULL, &t.err), &t.err);
  ts_fini(&t);
}

static void plugin_reset__detaches_all_that_are_named(void) /* P-42 */
{
  static const char *const both[] = { "conformance.a", "conformance.b" }, *const all[] = { "conformance.b", "localhost",
                                                                                           "conformance.a" };
  NEEDS_RESET();
  reset_and_look(both, 2, 0, 6);
  reset_and_look(all, 3, 0, 7);
}

static void plugin_reset__detaches_no_other(void) /* P-42 */
{
  static const char *const first[] = { "conformance.a" }, *const second[] = { "conformance.b" };
  NEEDS_RESET();
  reset_and_look(first, 1, 0, 2);
  reset_and_look(second, 1, 0, 4);
}

static void plugin_reset__without_names_detaches_the_default(void) /* P-42 */
{
  NEEDS_RESET();
  reset_and_look(NULL, 0, 0, 1);
}

static void plugin_reset__detaches_all_with_the_flag(void) /* P-42 */
{
  static const char *const list[] = { "conformance.a" };
  NEEDS_RESET();
  reset_and_look(NULL, 0, TN_RESET_ALL, 7);
  reset_and_look(list, 1, TN_RESET_ALL, 7);
}

static void plugin_reset__unknown_names_are_no_error(void) /* P-42 */
{
  static const char *const list[] = { "conformance.absent", "conformance.b", "", "conformance.absent" };
  NEEDS_RESET();
  reset_and_look(list, 1, 0, 0);
  reset_and_look(list, 2, 0, 4);
}

/* ---- sessions ---- */

static void plugin_reset__ends_every_session_of_the_factory(void) /* P-43 */
{
  static const char *const absent = "conformance.absent";
  ts t;
  NEEDS_RESET();
  bk_open(&t, false, BOXES);
  tn_session *second = bk_session(&t);
  fill(second);
  CHECK_DOUBLE(bk_fetch(t.session, "read_1"), 11, 0);
  cf_reached("its reset");
  CHECK_OK(tn_reset(t.options, &absent, 1, &t.err), &t.err);
  CHECK_INT(bk_fails(t.session, "read_1"), TN_CANCELLED); /* never stale data */
  CHECK_INT(bk_fails(second, "read_1"), TN_CANCELLED);
  tn_session_destroy(second);
  ts_fini(&t);
}

/* A kernel that ignores cancellation: reset returns before it; when it ends, the step is cancelled. */
static void plugin_reset__does_not_wait_for_steps(void) /* P-43 */
{
  ts t;
  NEEDS_RESET();
  bk_open(&t, false, START NODE("deaf", "TestDeaf", "input: 'begun'", SLOT(3)));
  bk_step s = { .session = t.session, .fetch = "deaf" };
  bk_start_late(&s);
  REQUIRE(ts_wait_at_gate(1));
  cf_reached("its reset, while a kernel runs that does not stop");
  double begin = pg_now();
  CHECK_OK(tn_reset(t.options, NULL, 0, &t.err), &t.err);
  CHECK_MSG(pg_now() - begin < 1, "reset took %.1f s while a step was in flight", pg_now() - begin);
  CHECK_MSG(!atomic_load(&s.ended), "the step ended before its kernel");
  ts_open_gate();
  CHECK_STATUS(bk_join(&s), TN_CANCELLED, &s.err);
  CHECK_MSG(isnan(s.value) || s.status != TN_OK, "a step that was cancelled gives a value");
  bk_done(&s);
  ts_fini(&t);
}

/* ---- other runtimes ---- */

/* Another available runtime; NULL if there is none besides the one under test. */
static const char *another(void)
{
  static char name[80];
  tn_runtime_info info = { .struct_size = sizeof(info) };
  for (size_t i = 0; tn_runtime_at(i, &info, NULL) == TN_OK; i++) {
    bool good = info.usable && !info.shadowed && info.name != NULL && strcmp(info.kind, "runtime") == 0;
    if (!good || strcmp(info.name, cf_under_test->name) == 0 || strchr(info.name, '.') != NULL) continue;
    snprintf(name, sizeof(name), "%s", info.name);
    return name;
  }
  return NULL;
}

static void plugin_reset__leaves_other_runtimes_alone(void) /* P-43, S-RST-02 */
{
  ts t, other;
  NEEDS_RESET();
  const char *name = another();
  if (name == NULL) TAP_SKIP("there is no other runtime");
  ts_open(&t, 1);
  ts_init(&other, 1);
  ts_usual_graph(other.graph);
  REQUIRE_OK(tn_session_options_set_target(other.options, name, &other.err), &other.err);
  ts_start(&other);
  cf_reached("its reset");
  CHECK_OK(tn_reset_containers(t.options, NULL, 0, TN_RESET_ALL, NULL, &t.err), &t.err);
  CHECK_DOUBLE(ts_run1(&other, FEEDS({ "x", 1 }, { "y", 2 }), "twice"), 6, 0);
  CHECK_OK(tn_error_code(&other.err), &other.err);
  ts_fini(&other);
  ts_fini(&t);
}

TAP_MAIN(
  TAP_TEST(plugin_reset__detaches_all_that_are_named),
  TAP_TEST(plugin_reset__detaches_no_other),
  TAP_TEST(plugin_reset__without_names_detaches_the_default),
  TAP_TEST(plugin_reset__detaches_all_with_the_flag),
  TAP_TEST(plugin_reset__unknown_names_are_no_error),
  TAP_TEST(plugin_reset__ends_every_session_of_the_factory),
  TAP_TEST(plugin_reset__does_not_wait_for_steps),
  TAP_TEST(plugin_reset__leaves_other_runtimes_alone))
