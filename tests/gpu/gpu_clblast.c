/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime gpu with a CLBlast that is missing, invalid, linked to another OpenCL, or failing
 * (tests/plugins/clblast_faults.c): Tenon's own kernels multiply, or the step ends with an error
 * that names the node, and nothing is leaked. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/gpu_kit.h"
#include "tests/support/plugin_files.h"
#include "conformance/support/session_kit.h"

#define CLBLAST "gpu:placement=device,blas=clblast"
enum { SIDE = 40, LARGE = 128, LARGEST = 800 };
static int side = SIDE; /* of the matrices */

/* ---- the log ---- */

static char said[4096];

static void hear(void *user, int32_t level, const char *line)
{
  (void)user, (void)level;
  size_t n = strlen(said);
  if (strstr(line, "products") != NULL) snprintf(said + n, sizeof said - n, "%s\n", line);
}

/* ---- a product ---- */

static tn_status start(ts *t, const char *target)
{
  const int64_t dims[2] = { side, side };
  ts_init(t, 1);
  REQUIRE_OK(tn_session_options_set_target(t->options, target, &t->err), &t->err);
  tn_tensor *halves = ts_filled(2, dims, 0.5f);
  tn_output x = ts_placeholder(t->graph, "x", TN_FLOAT), w = ts_const_tensor(t->graph, "w", halves);
  tn_tensor_unref(halves);
  ts_op2(t->graph, "MatMul", "product", x, w);
  tn_status st = tn_session_create(t->options, &t->session, &t->err);
  return st == TN_OK ? tn_session_set_graph(t->session, t->graph, &t->err) : st;
}

/* One step with all of x 1; *right: all elements of the product equal half of side. */
static tn_status step_for(ts *t, const tn_run_options *options, tn_run_metadata *metadata, bool *right)
{
  const int64_t dims[2] = { side, side };
  const char *feed = "x", *fetch = "product";
  tn_tensor *x = ts_filled(2, dims, 1), *y = NULL;
  tn_error_clear(&t->err);
  tn_status st = tn_session_run(t->session, options, &feed, &x, 1, &fetch, &y, 1, NULL, 0, metadata, &t->err);
  const float *got = y == NULL ? NULL : tn_tensor_data(y);
  *right = st == TN_OK;
  for (int i = 0; i < side * side; i++) *right = *right && got[i] == (float)side / 2;
  tn_tensor_unref(x);
  tn_tensor_unref(y);
  return st;
}

static tn_status step(ts *t, bool *right) { return step_for(t, NULL, NULL, right); }

/* Own kernels multiply. The log contains `reason` once for two sessions. */
static int own_kernels(const char *reason)
{
  bool right;
  tn_set_log_sink(hear, NULL);
  for (int i = 0; i < 2; i++) {
    ts t;
    SCENE_CHECK(start(&t, CLBLAST) == TN_OK && step(&t, &right) == TN_OK, "%s", tn_error_message(&t.err));
    SCENE_CHECK(right);
    ts_fini(&t);
  }
  const char *at = strstr(said, reason);
  SCENE_CHECK(at != NULL && strstr(at + 1, reason) == NULL, "%s", said);
  return 0;
}

#ifdef GPU_CLBLAST
/* ---- substitutes for CLBlast ---- */

static const char *in_folder(const char *name, const char *path)
{
  const char *folder = plugin_folder();
  if (path != NULL) REQUIRE_INT(symlink(path, plugin_path(folder, name)), 0);
  else plugin_write(plugin_path(folder, name), "nothing", 7);
  return gpu_kit_setting("LD_LIBRARY_PATH", folder);
}

static int scene_none(void) { return own_kernels("CLBlast cannot be used"); }

static const char *real_loader(char path[4096])
{
  struct link_map *map;
  void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != NULL && dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && realpath(map->l_name, path) != NULL);
  return path;
}

static void gpu_clblast__without_the_library_own_kernels_multiply(void)
{
  gpu_kit_begin();
  GPU_NEEDS_DEVICE();
  gpu_kit_play("none", (const char *[]){ in_folder("libclblast.so.1", NULL), NULL });
}

static int scene_no_function(void) { return own_kernels("CLBlast cannot be used: it has no CLBlast"); }

static void gpu_clblast__a_library_without_its_functions_is_not_used(void)
{
  GPU_NEEDS_DEVICE();
  gpu_kit_play("no_function", (const char *[]){ in_folder("libclblast.so.1", plugin_source("opencl_faults")), NULL });
}

/* The runtime calls a loader that replaces the real one. CLBlast would have to call the same
 * one. */
static void gpu_clblast__with_another_loader_it_is_not_used(void)
{
  GPU_NEEDS_DEVICE();
  char path[4096];
  gpu_kit_play("none", (const char *[]){ in_folder("libOpenCL.so.1", plugin_source("opencl_faults")),
                                         gpu_kit_setting("TENON_TEST_OPENCL", real_loader(path)), NULL });
}

/* ---- CLBlast fails ---- */

static const char *const *failing(const char *what, const char *temp)
{
  static const char *environment[4];
  environment[0] = in_folder("libclblast.so.1", plugin_source("clblast_faults"));
  environment[1] = gpu_kit_setting("TENON_TEST_CLBLAST", what);
  environment[2] = temp == NULL ? NULL : gpu_kit_setting("TENON_TEST_CLBLAST_TEMP", temp);
  return environment;
}

static int scene_tried(void)
{
  bool right;
  ts t;
  tn_set_log_sink(hear, NULL);
  SCENE_CHECK(start(&t, CLBLAST) == TN_OK && step(&t, &right) == TN_OK, "%s", tn_error_message(&t.err));
  SCENE_CHECK(right);
  ts_fini(&t);
  SCENE_CHECK(strstr(said, "computed by own kernels: CLBlast's Gemm on '") != NULL, "%s", said);
  SCENE_CHECK(strstr(said, "too little local memory (-2046)") != NULL, "%s", said);
  return 0;
}

/* CLBlast is tried on a product when the plan is made; if that fails, the plan uses own kernels. */
static void gpu_clblast__own_kernels_replace_it_after_a_failed_trial(void)
{
  GPU_NEEDS_DEVICE();
  gpu_kit_play("tried", failing("1:-2046", NULL));
  gpu_kit_play("tried", failing("1:-2046", "5000"));
}

/* The second product is the step's. */
static int in_a_step(tn_status wanted, const char *text)
{
  bool right;
  ts t;
  SCENE_CHECK(start(&t, CLBLAST) == TN_OK, "%s", tn_error_message(&t.err));
  tn_status st = step(&t, &right);
  SCENE_CHECK(st == wanted, "%d %s", (int)st, tn_error_message(&t.err));
  SCENE_CHECK(strstr(tn_error_message(&t.err), "node 'product': CLBlast's Gemm on '") != NULL, "%s",
              tn_error_message(&t.err));
  SCENE_CHECK(strstr(tn_error_message(&t.err), text) != NULL, "%s", tn_error_message(&t.err));
  st = step(&t, &right); /* the next step succeeds, unless the device counts as lost */
  SCENE_CHECK(st == (wanted == TN_UNAVAILABLE ? TN_UNAVAILABLE : TN_OK), "%d %s", (int)st, tn_error_message(&t.err));
  ts_fini(&t);
  SCENE_CHECK(start(&t, "gpu:placement=device,blas=own") == TN_OK && step(&t, &right) == TN_OK, "%s",
              tn_error_message(&t.err));
  SCENE_CHECK(right);
  ts_fini(&t);
  return 0;
}

static int scene_memory(void) { return in_a_step(TN_RESOURCE_EXHAUSTED, "CL_MEM_OBJECT_ALLOCATION_FAILURE (-4)"); }
static int scene_queue(void) { return in_a_step(TN_UNAVAILABLE, "CL_INVALID_COMMAND_QUEUE (-36)"); }
static int scene_too_small(void) { return in_a_step(TN_INTERNAL, "a matrix exceeds its buffer (-1009)"); }

static void gpu_clblast__the_error_of_a_failed_step_names_the_node(void)
{
  GPU_NEEDS_DEVICE();
  gpu_kit_play("memory", failing("2:-4", NULL));
  gpu_kit_play("memory", failing("2:-4", "5000")); /* with temporary memory */
  gpu_kit_play("queue", failing("2:-36", NULL));
  gpu_kit_play("too_small", failing("2:-1009", NULL));
}

static void gpu_clblast__its_programs_are_freed_with_the_last_context(void)
{
  GPU_NEEDS_DEVICE();
  const char *text;
  int status = gpu_kit_run("memory", failing("2:-4", NULL), &text);
  REQUIRE_MSG(status == 0, "%d %s", status, text);
  const char *at = strstr(text, "cleared");
  CHECK_MSG(at != NULL && strstr(at + 1, "cleared") == NULL, "%s", text); /* the second session does not use it */
}

/* ---- auto ---- */

static int scene_auto(void)
{
  static const struct { const char *target; int side; bool clblast; } cases[] = {
    { "gpu:placement=device", SIDE, false }, { "gpu:placement=device", LARGE, true },
    { "gpu:placement=device,blas=own", LARGE, false },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    bool right;
    ts t;
    side = cases[i].side;
    SCENE_CHECK(start(&t, cases[i].target) == TN_OK, "%s", tn_error_message(&t.err));
    tn_status st = step(&t, &right);
    bool failed = st == TN_INTERNAL && strstr(tn_error_message(&t.err), "CLBlast") != NULL;
    SCENE_CHECK(failed == cases[i].clblast && right == !failed, "%s, %d: %d %s", cases[i].target, side, (int)st,
                tn_error_message(&t.err));
    ts_fini(&t);
  }
  return 0;
}

static int scene_auto_on_cpu(void)
{
  bool right;
  ts t;
  side = LARGE;
  SCENE_CHECK(start(&t, "gpu:placement=device") == TN_OK && step(&t, &right) == TN_OK, "%s", tn_error_message(&t.err));
  SCENE_CHECK(right);
  ts_fini(&t);
  SCENE_CHECK(dlopen("libclblast.so.1", RTLD_NOW | RTLD_NOLOAD) == NULL);
  return 0;
}

/* Only for large products on a GPU. */
static void gpu_clblast__auto_uses_it_for_large_products_on_a_gpu(void)
{
  GPU_NEEDS_DEVICE();
  char path[4096];
  const char *folder = plugin_folder();
  REQUIRE_INT(symlink(plugin_source("opencl_faults"), plugin_path(folder, "libOpenCL.so.1")), 0);
  REQUIRE_INT(symlink(plugin_source("clblast_faults"), plugin_path(folder, "libclblast.so.1")), 0);
  const char *loader = gpu_kit_setting("TENON_TEST_OPENCL", real_loader(path)),
             *path_of_both = gpu_kit_setting("LD_LIBRARY_PATH", folder);
  const char *fails = gpu_kit_setting("TENON_TEST_CLBLAST", "2:-1009");
  gpu_kit_play("auto", (const char *[]){ path_of_both, loader, fails, "TENON_TEST_OPENCL_TYPES=gpu", NULL });
  gpu_kit_play("auto_on_cpu", (const char *[]){ path_of_both, loader, fails, "TENON_TEST_OPENCL_TYPES=cpu", NULL });
}

/* ---- several sessions ---- */

static void *live(void *user)
{
  bool *right = user;
  *right = true;
  for (int i = 0; i < 5; i++) {
    bool now = false;
    ts t;
    *right = start(&t, CLBLAST) == TN_OK && step(&t, &now) == TN_OK && now && *right;
    ts_fini(&t);
  }
  return NULL;
}

/* Contexts are created and freed while others use it. Without CLBlast this tests own kernels. */
static void gpu_clblast__sessions_of_several_threads_use_it(void)
{
  GPU_NEEDS_DEVICE();
  pthread_t threads[4];
  bool right[4];
  for (int i = 0; i < 4; i++) REQUIRE_INT(pthread_create(&threads[i], NULL, live, &right[i]), 0);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < 4; i++) CHECK_MSG(right[i], "thread %d", i);
}

/* In a process that has not used it before: CLBlast builds tables at the first call. */
static void gpu_clblast__the_first_sessions_may_be_concurrent(void)
{
  GPU_NEEDS_DEVICE();
  int status = -1;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* PoCL's compiler leaks */
    if (freopen("/dev/null", "w", stdout) == NULL) _exit(1);
    execl("/proc/self/exe", "test_gpu_clblast", "gpu_clblast__sessions_of_several_threads_use_it", (char *)NULL);
    _exit(127);
  }
  REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
  CHECK_INT(status, 0);
}

/* ---- metadata ---- */

/* A large product takes several kernels; the recorded time is that of all. This holds for own
 * kernels, too. */
static void gpu_clblast__metadata_includes_the_time_of_all_kernels(void)
{
  GPU_NEEDS_DEVICE();
  ts t;
  bool right;
  tn_run_metadata *m = NULL;
  tn_run_options options;
  tn_metadata_summary sum = { .struct_size = sizeof sum };
  int64_t ns = 0;
  tn_run_options_init(&options);
  options.trace_level = 3;
  side = LARGEST;
  REQUIRE_OK(start(&t, CLBLAST), &t.err);
  REQUIRE_OK(step(&t, &right), &t.err);
  REQUIRE_OK(tn_run_metadata_create(&m, &t.err), &t.err);
  REQUIRE_OK(step_for(&t, &options, m, &right), &t.err);
  CHECK(right);
  REQUIRE_OK(tn_run_metadata_summary(m, &sum, &t.err), &t.err);
  for (size_t i = 0; i < sum.records; i++) {
    tn_node_record r = { .struct_size = sizeof r };
    REQUIRE_OK(tn_run_metadata_record(m, i, &r, &t.err), &t.err);
    if (strcmp(r.node, "product") == 0) ns = r.duration_ns;
  }
  CHECK_MSG(ns > sum.duration_ns / 3 && ns <= sum.duration_ns + 1000000, "%lld ns of %lld", (long long)ns,
            (long long)sum.duration_ns);
  tn_run_metadata_destroy(m);
  ts_fini(&t);
  side = SIDE;
}

static const gpu_scene scenes[] = { { "auto", scene_auto },   { "auto_on_cpu", scene_auto_on_cpu },
                                    { "none", scene_none },   { "no_function", scene_no_function },
                                    { "tried", scene_tried }, { "memory", scene_memory },
                                    { "queue", scene_queue }, { "too_small", scene_too_small } };

static void setup(void)
{
  gpu_kit_scenes("gpu_clblast__without_the_library_own_kernels_multiply", scenes, sizeof scenes / sizeof *scenes);
}

TAP_MAIN_WITH(setup, NULL,
  TAP_TEST(gpu_clblast__without_the_library_own_kernels_multiply),
  TAP_TEST(gpu_clblast__a_library_without_its_functions_is_not_used),
  TAP_TEST(gpu_clblast__with_another_loader_it_is_not_used),
  TAP_TEST(gpu_clblast__own_kernels_replace_it_after_a_failed_trial),
  TAP_TEST(gpu_clblast__the_error_of_a_failed_step_names_the_node),
  TAP_TEST(gpu_clblast__its_programs_are_freed_with_the_last_context),
  TAP_TEST(gpu_clblast__auto_uses_it_for_large_products_on_a_gpu),
  TAP_TEST(gpu_clblast__sessions_of_several_threads_use_it),
  TAP_TEST(gpu_clblast__the_first_sessions_may_be_concurrent),
  TAP_TEST(gpu_clblast__metadata_includes_the_time_of_all_kernels))
#else
static void gpu_clblast__builds_without_it_report_that(void)
{
  gpu_kit_begin();
  GPU_NEEDS_DEVICE();
  gpu_kit_play("none", NULL);
}

static int scene_not_built(void) { return own_kernels("this plugin was built without CLBlast"); }
static const gpu_scene scenes[] = { { "none", scene_not_built } };

static void setup(void) { gpu_kit_scenes("gpu_clblast__builds_without_it_report_that", scenes, 1); }

TAP_MAIN_WITH(setup, NULL, TAP_TEST(gpu_clblast__builds_without_it_report_that))
#endif
