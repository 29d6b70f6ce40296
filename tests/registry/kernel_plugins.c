/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel plugins: they are loaded when a plan wants them and not before, the highest rank wins,
 * and if one fails or declines, the library's own kernels do the work. Each test has an op of
 * its own, since loaded plugins stay. */
#include <pthread.h>
#include <time.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/plugin_files.h"
#include "conformance/support/session_kit.h"

static char logged[20000];

static void keep_line(void *user, int32_t level, const char *line)
{
  size_t n = strlen(logged);
  (void)user;
  if (level <= TN_LOG_WARNING) snprintf(logged + n, sizeof logged - n, "%s\n", line);
}

static int count_logged(const char *text)
{
  int n = 0;
  for (const char *at = logged; (at = strstr(at, text)) != NULL; at++) n++;
  return n;
}

/* A copy of tests/plugins/faster.c. */
static void add_plugin(const char *folder, const char *name, const char *op, int rank, const char *fault)
{
  char text[64];
  size_t size = 0;
  unsigned char *bytes = plugin_read(plugin_source("faster"), &size);
  plugin_patch(bytes, size, "faster____________", name);
  plugin_patch(bytes, size, "none______", fault);
  snprintf(text, sizeof text, "rank=%03d", rank);
  plugin_patch(bytes, size, "rank=000", text);
  snprintf(text, sizeof text, "%s@CPU", op);
  plugin_patch(bytes, size, "OpName______@CPU", text);
  snprintf(text, sizeof text, "%s.so", name + 2); /* without its "t." */
  plugin_write(plugin_path(folder, text), bytes, size);
  free(bytes);
}

/* Computes the op of x in a new session; the kernels of faster.c add 1000 and their rank. */
static float result(const char *op, const char *option, float x)
{
  ts t;
  ts_init(&t, 1);
  ts_op1(t.graph, op, "y", ts_placeholder(t.graph, "x", TN_FLOAT));
  REQUIRE_OK(tn_session_options_set_string(t.options, "kernel_plugins", option, &t.err), &t.err);
  ts_start(&t);
  float y = ts_run1(&t, FEEDS({ "x", x }), "y:0");
  ts_fini(&t);
  return y;
}

static const char *search_one(const char *name, const char *op, int rank, const char *fault)
{
  const char *folder = plugin_folder();
  char both[3000];
  add_plugin(folder, name, op, rank, fault);
  snprintf(both, sizeof both, "%s:%s", folder, getenv("TEST_RUNTIMES"));
  plugin_search(both);
  logged[0] = 0;
  return folder;
}

static void kernel_plugins__are_loaded_when_wanted(void)
{
  const char *folder = search_one("t.wanted", "Neg", 300, "none");
  CHECK(result("Neg", "never", 2) == -2);
  CHECK_INT(plugin_count_mapped(folder), 0);
  CHECK(result("Neg", "auto", 2) == -2); /* a single product is not worth loading a plugin */
  CHECK(result("Square", "always", 2) == 4); /* the plugin has no kernel for it */
  CHECK_INT(plugin_count_mapped(folder), 0);
  CHECK(result("Neg", "always", 2) == 1302);
  CHECK_INT(plugin_count_mapped(folder), 1);
  CHECK(result("Neg", "always", 3) == 1303);
  CHECK_STR(logged, "");
}

/* Also if another session has loaded them. */
static void kernel_plugins__are_not_for_reproducible_sessions(void)
{
  const char *folder = search_one("t.other", "Neg", 300, "none");
  for (int loaded = 0; loaded < 2; loaded++) {
    ts t;
    ts_init(&t, 1);
    ts_op1(t.graph, "Neg", "y", ts_placeholder(t.graph, "x", TN_FLOAT));
    REQUIRE_OK(tn_session_options_set_bool(t.options, "reproducible", true, &t.err), &t.err);
    ts_start(&t);
    CHECK(ts_run1(&t, FEEDS({ "x", 2 }), "y:0") == -2);
    ts_fini(&t);
    CHECK_INT(plugin_count_mapped(folder), loaded);
    CHECK(result("Neg", "always", 2) == 1302);
  }
}

static void kernel_plugins__and_reproducible_exclude_each_other(void)
{
  ts t;
  ts_init(&t, 1);
  REQUIRE_OK(tn_session_options_set_bool(t.options, "reproducible", true, &t.err), &t.err);
  REQUIRE_OK(tn_session_options_set_string(t.options, "kernel_plugins", "always", &t.err), &t.err);
  CHECK_STATUS(tn_session_create(t.options, &t.session, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STR(tn_error_message(&t.err),
            "option kernel_plugins is 'always', but the option reproducible excludes kernels of plugins");
  REQUIRE_OK(tn_session_options_set_string(t.options, "kernel_plugins", "sometimes", &t.err), &t.err);
  CHECK_STATUS(tn_session_create(t.options, &t.session, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STR(tn_error_message(&t.err), "option kernel_plugins is 'sometimes', it must be auto, always or never");
  ts_fini(&t);
}

static void kernel_plugins__names_of_ops_are_compared_whole(void)
{
  const char *folder = search_one("t.prefix", "Ab", 300, "none");
  CHECK(result("Abs", "always", -2) == 2);
  CHECK_INT(plugin_count_mapped(folder), 0);
}

static void kernel_plugins__the_highest_rank_wins(void)
{
  const char *folder = search_one("t.low", "Sign", 200, "none");
  char both[3000];
  add_plugin(folder, "t.high", "Sign", 400, "none");
  add_plugin(folder, "t.own", "Sign", 50, "none"); /* below the rank of the library's own */
  add_plugin(folder, "t.off", "Sign", 0, "none");
  snprintf(both, sizeof both, "%s:%s", folder, getenv("TEST_RUNTIMES"));
  plugin_search(both);
  CHECK(result("Sign", "always", 5) == 1405);
  CHECK_INT(plugin_count_mapped(plugin_path(folder, "off.so")), 0);
  search_one("t.below", "Floor", 50, "none");
  CHECK(result("Floor", "always", 2.5f) == 2);
}

static void kernel_plugins__may_decline_nodes_and_shapes(void)
{
  const char *folder = search_one("t.create", "Ceil", 300, "create");
  CHECK(result("Ceil", "always", 2.5f) == 3);
  CHECK_INT(plugin_count_mapped(folder), 1);
  folder = search_one("t.prepare", "Square", 300, "prepare");
  CHECK(result("Square", "always", 3) == 9);
  CHECK_INT(plugin_count_mapped(folder), 1);
  CHECK_STR(logged, "");
}

/* One warning for any number of sessions; the library's own kernels are used. */
static void kernel_plugins__that_fail_are_not_used(void)
{
  search_one("t.fails", "Sqrt", 300, "fails");
  CHECK(result("Sqrt", "always", 4) == 2);
  CHECK(result("Sqrt", "always", 9) == 3);
  CHECK_INT(count_logged("told to fail"), 1);
  CHECK_INT(count_logged("its kernels are not used"), 1);
  search_one("t.silent", "Sin", 300, "silent");
  CHECK(result("Sin", "always", 0) == 0);
  CHECK(result("Sin", "always", 0) == 0);
  CHECK_INT(count_logged("its kernels are not used"), 1);
}

/* P-37: requirements for a kernel plugin. */
static void kernel_plugins__must_meet_the_requirements(void)
{
  const char *folder = search_one("t.null", "Floor", 300, "null");
  CHECK(result("Floor", "always", 2.5f) == 2);
  CHECK_INT(count_logged("its register_kernels is NULL"), 1);
  CHECK_INT(plugin_count_mapped(folder), 0);
  folder = search_one("t.unnamed", "Erf", 300, "unnamed");
  CHECK(result("Erf", "always", 0) == 0);
  CHECK_INT(count_logged("disagree: 'name' is 't.unnamed' in the manifest and '' in the code"), 1);
  CHECK_INT(plugin_count_mapped(folder), 0);
}

static void kernel_plugins__may_fail_to_fulfil_their_manifest(void)
{
  search_one("t.nothing", "Cos", 300, "nothing");
  CHECK(result("Cos", "always", 0) == 1);
  CHECK_STR(logged, "");
  search_one("t.unknown", "Log1p", 300, "unknown_op");
  CHECK(result("Log1p", "always", 0) == 0);
  CHECK_INT(count_logged("op 'NoSuchOp' is not registered"), 1);
}

/* P-49: kernels registered before the failure are not used; the code stays mapped, since init
 * has run. */
static void kernel_plugins__registrations_are_undone_after_a_failure(void)
{
  const char *folder = search_one("t.late", "Round", 300, "fails_late");
  CHECK(result("Round", "always", 2.25f) == 2);
  CHECK_INT(plugin_count_mapped(folder), 1);
  CHECK_INT(count_logged("told to fail late"), 1);
}

/* A truncated file has no kernels; the plan uses the library's own. */
static void kernel_plugins__broken_files_are_not_used(void)
{
  const char *folder = search_one("t.cut", "Reciprocal", 300, "none");
  size_t size = 0;
  unsigned char *bytes = plugin_read(plugin_path(folder, "cut.so"), &size);
  memset(bytes + size / 2, 0x5a, size / 2); /* damaged after it was listed */
  plugin_write(plugin_path(folder, "cut.so"), bytes, size);
  free(bytes);
  CHECK(result("Reciprocal", "always", 4) == 0.25f);
  CHECK(result("Reciprocal", "always", 2) == 0.5f);
  CHECK_INT(count_logged("its kernels are not used"), 1);
}

/* ---- while steps run ---- */

enum { SIDE = 128, MANY_STEPS = 100000, WORKERS = 4 };

typedef struct square {
  ts t;
  tn_tensor *x, *one;
} square;

/* A product of matrices whose sizes the planner does not know, so that it seems light; alone or
 * followed by another op. */
static void open_square(square *s, const char *op)
{
  const int64_t dims[] = { SIDE, SIDE };
  ts_init(&s->t, 1);
  tn_output x = ts_placeholder(s->t.graph, "x", TN_FLOAT), one = ts_placeholder(s->t.graph, "one", TN_FLOAT);
  if (strstr(op, "MatMul") != NULL) ts_op2(s->t.graph, op, "y", x, one);
  else ts_op1(s->t.graph, op, "y", ts_op2(s->t.graph, "BatchMatMulV2", "product", x, one));
  ts_start(&s->t);
  s->x = ts_filled(2, dims, 2);
  s->one = ts_filled(2, dims, 0);
  for (int i = 0; i < SIDE; i++) ((float *)tn_tensor_data(s->one))[i * SIDE + i] = 1;
}

static void close_square(square *s)
{
  tn_tensor_unref(s->x);
  tn_tensor_unref(s->one);
  ts_fini(&s->t);
}

/* One step: 2 with the library's own kernel, 1402 with the plugin's, 0 if neither or both ran. */
static float step_of(square *s)
{
  static const char *const feeds[] = { "x", "one" };
  const char *fetch = "y:0";
  tn_tensor *values[] = { s->x, s->one }, *y = NULL;
  tn_error err = TN_ERROR_INIT;
  tn_status st = tn_session_run(s->t.session, NULL, feeds, values, 2, &fetch, &y, 1, NULL, 0, NULL, &err);
  float found = st == TN_OK ? *(const float *)tn_tensor_data(y) : 0;
  for (int i = 0; st == TN_OK && i < SIDE * SIDE; i++)
    if (((const float *)tn_tensor_data(y))[i] != found) found = 0;
  tn_tensor_unref(y);
  tn_error_clear(&err);
  return found;
}

static void kernel_plugins__are_loaded_once_steps_have_cost_as_much(void)
{
  const char *folder = search_one("t.later", "MatMul", 400, "none");
  square s;
  open_square(&s, "MatMul");
  int own = 0;
  float found = step_of(&s);
  CHECK(found == 2);
  CHECK_INT(plugin_count_mapped(folder), 0);
  while (own < MANY_STEPS && (found = step_of(&s)) == 2) own++;
  CHECK(found == 1402);
  CHECK_MSG(own > 10 && own < MANY_STEPS, "%d steps on the library's own kernel", own);
  CHECK_INT(plugin_count_mapped(folder), 1);
  for (int i = 0; i < 20; i++) CHECK(step_of(&s) == 1402);
  close_square(&s);
  CHECK_STR(logged, "");
}

/* Erf of a product of matrices of this size, known to the planner. */
static float erf_of_product(int64_t side)
{
  const int64_t dims[] = { side, side };
  ts t;
  ts_init(&t, 1);
  tn_output x = ts_placeholder(t.graph, "x", TN_FLOAT);
  REQUIRE_OK(tn_graph_set_shape(x, dims, 2, &t.err), &t.err);
  ts_op1(t.graph, "Erf", "y", ts_op2(t.graph, "BatchMatMulV2", "product", x, x));
  ts_start(&t);
  tn_tensor *zeros = ts_filled(2, dims, 0), *y = NULL;
  const char *feed = "x", *fetch = "y:0";
  REQUIRE_OK(tn_session_run(t.session, NULL, &feed, &zeros, 1, &fetch, &y, 1, NULL, 0, NULL, &t.err), &t.err);
  float found = *(const float *)tn_tensor_data(y);
  tn_tensor_unref(zeros);
  tn_tensor_unref(y);
  ts_fini(&t);
  return found;
}

static void kernel_plugins__are_loaded_at_once_for_a_heavy_graph(void)
{
  const char *folder = search_one("t.heavy", "Erf", 400, "none");
  CHECK(erf_of_product(64) == 0);
  CHECK_INT(plugin_count_mapped(folder), 0);
  CHECK(erf_of_product(1300) == 1400);
  CHECK_INT(plugin_count_mapped(folder), 1);
}

typedef struct stepper {
  square *s;
  pthread_t thread;
  int own, faster, bad;
} stepper;

/* Runs steps until a hundred used the plugin; none reverts to the library's kernel. */
static void *step_on(void *user)
{
  stepper *w = user;
  time_t end = time(NULL) + 60; /* the thread that loads it may have to wait for a CPU */
  while (w->faster < 100 && w->bad == 0 && time(NULL) < end) {
    float found = step_of(w->s);
    w->faster += found == 1402;
    w->own += found == 2;
    w->bad += found != 2 && found != 1402;
  }
  return NULL;
}

static void kernel_plugins__are_loaded_during_concurrent_steps(void)
{
  const char *folder = search_one("t.between", "BatchMatMul", 400, "none");
  stepper workers[WORKERS];
  square s;
  open_square(&s, "BatchMatMul");
  for (int i = 0; i < WORKERS; i++) {
    workers[i] = (stepper){ .s = &s };
    REQUIRE_INT(pthread_create(&workers[i].thread, NULL, step_on, &workers[i]), 0);
  }
  for (int i = 0; i < WORKERS; i++) {
    pthread_join(workers[i].thread, NULL);
    CHECK_INT(workers[i].bad, 0);
    CHECK_INT(workers[i].faster, 100);
  }
  CHECK(step_of(&s) == 1402);
  CHECK_INT(plugin_count_mapped(folder), 1);
  close_square(&s);
}

/* It declines all shapes: steps continue as before. */
static void kernel_plugins__that_decline_change_nothing(void)
{
  const char *folder = search_one("t.useless", "Rint", 400, "prepare");
  square s;
  open_square(&s, "Rint");
  int steps = 0;
  while (plugin_count_mapped(folder) == 0 && steps++ < MANY_STEPS) CHECK(step_of(&s) == 2);
  CHECK(steps < MANY_STEPS);
  for (int i = 0; i < 20; i++) CHECK(step_of(&s) == 2);
  close_square(&s);
}

static void kernel_plugins__other_values_are_rejected(void)
{
  ts t;
  ts_init(&t, 1);
  REQUIRE_OK(tn_session_options_set_string(t.options, "kernel_plugins", "sometimes", &t.err), &t.err);
  tn_session *s = NULL;
  CHECK_STATUS(tn_session_create(t.options, &s, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "kernel_plugins is 'sometimes', it must be auto, always or never");
  ts_fini(&t);
}

static tn_status load_and_run(void *graph)
{
  tn_error err = TN_ERROR_INIT;
  tn_session_options *o = NULL;
  tn_session *s = NULL;
  tn_tensor *x = NULL, *y = NULL;
  const char *feed = "x", *fetch = "y:0";
  const float four = 4;
  tn_status st = tn_session_options_create(&o, &err);
  if (st == TN_OK) st = tn_session_options_set_target(o, ts_runtime(), &err);
  if (st == TN_OK) st = tn_session_options_set_string(o, "kernel_plugins", "always", &err);
  if (st == TN_OK) st = tn_session_create(o, &s, &err);
  if (st == TN_OK) st = tn_session_set_graph(s, graph, &err);
  if (st == TN_OK) st = tn_tensor_from_data(TN_FLOAT, NULL, 0, &four, sizeof four, &x, &err);
  if (st == TN_OK) st = tn_session_run(s, NULL, &feed, &x, 1, &fetch, &y, 1, NULL, 0, NULL, &err);
  if (st == TN_OK) CHECK(ts_float(y) == 1304 || ts_float(y) == 16); /* the plugin's, or C without memory to load it */
  tn_tensor_unref(y);
  tn_tensor_unref(x);
  tn_session_destroy(s);
  tn_session_options_destroy(o);
  tn_error_clear(&err);
  return st;
}

static void kernel_plugins__survive_lack_of_memory(void)
{
  ts t;
  search_one("t.memory", "Relu", 300, "prepare"); /* declines, so that both kernels are created */
  ts_init(&t, 1);
  ts_op1(t.graph, "Square", "y", ts_op1(t.graph, "Relu", "r", ts_placeholder(t.graph, "x", TN_FLOAT)));
  tn_test_oom_sweep(load_and_run, t.graph);
  ts_fini(&t);
}

static void setup(void)
{
  tn_set_log_sink(keep_line, NULL);
  setenv("TENON_RANK", "onednn=0", 1); /* only the plugins of these tests */
  const char *path = getenv("TENON_PLUGIN_PATH");
  if (getenv("TEST_RUNTIMES") == NULL) setenv("TEST_RUNTIMES", path == NULL ? "" : path, 1);
}

static void teardown(void) { tn_set_log_sink(NULL, NULL); }

TAP_MAIN_WITH(setup, teardown,
  TAP_TEST(kernel_plugins__are_loaded_when_wanted),
  TAP_TEST(kernel_plugins__are_not_for_reproducible_sessions),
  TAP_TEST(kernel_plugins__and_reproducible_exclude_each_other),
  TAP_TEST(kernel_plugins__names_of_ops_are_compared_whole),
  TAP_TEST(kernel_plugins__the_highest_rank_wins),
  TAP_TEST(kernel_plugins__may_decline_nodes_and_shapes),
  TAP_TEST(kernel_plugins__that_fail_are_not_used),
  TAP_TEST(kernel_plugins__must_meet_the_requirements),
  TAP_TEST(kernel_plugins__may_fail_to_fulfil_their_manifest),
  TAP_TEST(kernel_plugins__registrations_are_undone_after_a_failure),
  TAP_TEST(kernel_plugins__broken_files_are_not_used),
  TAP_TEST(kernel_plugins__are_loaded_at_once_for_a_heavy_graph),
  TAP_TEST(kernel_plugins__are_loaded_once_steps_have_cost_as_much),
  TAP_TEST(kernel_plugins__are_loaded_during_concurrent_steps),
  TAP_TEST(kernel_plugins__that_decline_change_nothing),
  TAP_TEST(kernel_plugins__other_values_are_rejected),
  TAP_TEST(kernel_plugins__survive_lack_of_memory))
