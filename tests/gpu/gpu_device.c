/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime gpu as seen by a program without a graph: its discovery, errors without a device,
 * choosing and listing devices, valid settings and options. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/support/eager_kit.h"
#include "tests/support/gpu_faults.h"
#include "tests/support/gpu_kit.h"
#include "tests/support/plugin_files.h"
#include "conformance/support/session_kit.h"

static tn_error err = TN_ERROR_INIT;

/* ---- help ---- */

/* The runtime's entry in the listing; false if the build has none. */
static bool listed(tn_runtime_info *out)
{
  for (size_t i = 0; *out = (tn_runtime_info){ .struct_size = sizeof *out }, tn_runtime_at(i, out, NULL) == TN_OK; i++)
    if (strcmp(out->name, "gpu") == 0) return true;
  return false;
}

#define NEEDS_PLUGIN()                                                      \
  do {                                                                      \
    tn_runtime_info found;                                                  \
    if (!listed(&found)) TAP_SKIP("this build does not have the runtime gpu"); \
  } while (0)

/* Number of lines of /proc/self/maps that contain the text; -1 if there is no such file. */
static int mapped(const char *text)
{
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[4096];
  int n = 0;
  if (maps == NULL) return -1;
  while (fgets(line, sizeof line, maps) != NULL) n += strstr(line, text) != NULL;
  fclose(maps);
  return n;
}

/* A session without a graph; options as "FIELD=VALUE". */
static tn_status open_with(const char *target, const char *option, tn_session **out)
{
  tn_session_options *options = NULL;
  *out = NULL;
  tn_status st = tn_session_options_create(&options, &err);
  if (st == TN_OK) st = tn_session_options_set_target(options, target, &err);
  const char *equals = option != NULL ? strchr(option, '=') : NULL;
  char field[64] = "";
  if (equals != NULL) snprintf(field, sizeof field, "%.*s", (int)(equals - option), option);
  if (st == TN_OK && equals != NULL) st = tn_session_options_parse(options, field, equals + 1, &err);
  if (st == TN_OK) st = tn_session_create(options, out, &err);
  tn_session_options_destroy(options);
  return st;
}

static tn_status try_target(const char *target, const char *option)
{
  tn_session *session;
  tn_status st = open_with(target, option, &session);
  tn_session_destroy(session);
  return st;
}

/* The session's devices as "CPU:0 GPU:0 GPU:1". */
static const char *devices_of(const char *target, const char *option)
{
  static char text[500];
  tn_session *session;
  size_t at = 0;
  text[0] = '\0';
  if (open_with(target, option, &session) != TN_OK) return tn_error_message(&err);
  tn_device_info info = { .struct_size = sizeof info };
  for (size_t i = 0; tn_session_device(session, i, &info, NULL) == TN_OK; i++) {
    const char *name = strstr(info.name, "/device:");
    at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", i > 0 ? " " : "", name != NULL ? name + 8 : "?");
  }
  tn_session_destroy(session);
  return text;
}

/* x + x on the target; 0 if the result is wrong. */
static int add_on(const char *target)
{
  ts t;
  ts_init(&t, 1);
  if (tn_session_options_set_target(t.options, target, &t.err) != TN_OK) return 0;
  ts_usual_graph(t.graph);
  ts_start(&t);
  float y = ts_run1(&t, FEEDS({ "x", 3 }, { "y", 4 }), "twice");
  ts_fini(&t);
  return y == 14;
}

/* ---- before OpenCL is loaded ---- */

static void gpu_device__is_listed_without_being_loaded(void)
{
  gpu_kit_begin();
  tn_runtime_info found;
  if (!listed(&found)) TAP_SKIP("this build does not have the runtime gpu");
  CHECK_STR(found.kind, "runtime");
  CHECK_STR(found.types, "GPU,CPU");
  CHECK_INT(found.rank, 0);
}

static int scene_unnamed(void)
{
  tn_runtime_info found;
  SCENE_CHECK(listed(&found));
  SCENE_CHECK(add_on("direct"));
  tn_session *session;
  SCENE_CHECK(open_with("", NULL, &session) == TN_OK);
  SCENE_CHECK(strcmp(tn_session_runtime(session)->name, "gpu") != 0);
  tn_session_destroy(session);
  SCENE_CHECK(mapped("libOpenCL") <= 0 && mapped("pocl") <= 0 && mapped("/gpu.so") <= 0);
  return 0;
}

/* S-PLG-06: neither the plugin nor OpenCL is mapped into a process that does not name the
 * runtime. */
static void gpu_device__is_not_mapped_into_processes_that_do_not_name_it(void)
{
  NEEDS_PLUGIN();
  gpu_kit_play("unnamed", NULL);
}

static int unusable(const char *reason)
{
  for (int i = 0; i < 2; i++) {
    tn_status st = try_target("gpu", NULL);
    SCENE_CHECK(st == TN_UNAVAILABLE, "%d %s", (int)st, tn_error_message(&err));
    SCENE_CHECK(strstr(tn_error_message(&err), reason) != NULL, "%s", tn_error_message(&err));
    tn_runtime_info found;
    SCENE_CHECK(listed(&found));
    SCENE_CHECK(!found.usable && strstr(found.reason, reason) != NULL, "%s", found.reason);
  }
  SCENE_CHECK(try_target("direct", NULL) == TN_OK, "%s", tn_error_message(&err));
  return 0;
}

static int scene_no_device(void) { return unusable("there is no OpenCL device"); }
static int scene_no_opencl(void) { return unusable("there is no OpenCL on this machine"); }

/* P-40, P-41, S-PLG-07 */
static void gpu_device__a_missing_device_is_reported_and_others_work(void)
{
  NEEDS_PLUGIN();
  if (real_loader() == NULL) TAP_SKIP("there is no OpenCL on this machine");
  /* Some loaders cannot be made to find no device through the environment. */
  gpu_kit_play("no_device", with_faults(NULL, "clGetPlatformIDs:1+:-1001")); /* CL_PLATFORM_NOT_FOUND_KHR */
}

/* S-PLG-07: a loader that is not a library is like a missing loader. */
static void gpu_device__missing_opencl_is_reported_and_others_work(void)
{
  NEEDS_PLUGIN();
  const char *folder = plugin_folder();
  plugin_write(plugin_path(folder, "libOpenCL.so.1"), "nothing", 7);
  plugin_write(plugin_path(folder, "libOpenCL.so"), "nothing", 7);
  const char *environment[] = { gpu_kit_setting("LD_LIBRARY_PATH", folder), NULL };
  gpu_kit_play("no_opencl", environment);
}

/* ---- devices ---- */

static void gpu_device__a_session_lists_its_devices(void)
{
  GPU_NEEDS_DEVICE();
  tn_session *session;
  REQUIRE_OK(open_with("gpu", NULL, &session), &err);
  tn_device_info cpu = { .struct_size = sizeof cpu }, gpu = { .struct_size = sizeof gpu };
  CHECK_OK(tn_session_device(session, 0, &cpu, &err), &err);
  CHECK_OK(tn_session_device(session, 1, &gpu, &err), &err);
  CHECK_STR(cpu.name, "/job:localhost/replica:0/task:0/device:CPU:0");
  CHECK_STR(cpu.type, "CPU");
  CHECK_STR(gpu.name, "/job:localhost/replica:0/task:0/device:GPU:0");
  CHECK_STR(gpu.type, "GPU");
  CHECK(gpu.memory_bytes > 0);
  CHECK(gpu.model != NULL && gpu.model[0] != '\0');
  CHECK_STATUS(tn_session_device(session, 2, &gpu, &err), TN_OUT_OF_RANGE, &err);
  CHECK_STR(tn_session_runtime(session)->name, "gpu");
  tn_session_destroy(session);
}

/* S-CFG-18, S-CFG-19 */
static void gpu_device__options_limit_the_devices(void)
{
  GPU_NEEDS_DEVICE();
  CHECK_STR(devices_of("gpu", "device_count=CPU=2"), "CPU:0 CPU:1 GPU:0");
  CHECK_STR(devices_of("gpu", "device_count=GPU=0"), "CPU:0");
  CHECK_STR(devices_of("gpu", "device_count=GPU=1,NPU=7"), "CPU:0 GPU:0");
  CHECK_STR(devices_of("gpu", "device_filters=/device:CPU:*"), "CPU:0");
  CHECK_STATUS(try_target("gpu", "device_count=CPU=0"), TN_NOT_FOUND, &err);
}

/* S-CFG-22 */
static void gpu_device__memory_is_limited_by_a_fraction_or_a_number(void)
{
  static const struct {
    const char *target, *option;
    double share;
    int64_t bytes; /* 0: the fraction applies */
  } cases[] = { { "gpu", "memory_fraction=0.25", 0.25, 0 },
                { "gpu", "memory_fraction=1", 1, 0 },
                { "gpu:memory=1000000", NULL, 0, 1000000 },
                { "gpu:memory=1000000", "memory_fraction=0.000001", 0, 1000000 },
                { "gpu:memory=3K", NULL, 0, 3072 },
                { "gpu:memory=2M", NULL, 0, 2 << 20 },
                { "gpu:memory=1G", "memory_limit_bytes=5000000", 0, 5000000 },
                { "gpu", "memory_limit_bytes=7000000", 0, 7000000 } };
  GPU_NEEDS_DEVICE();
  tn_session *session;
  tn_device_info info = { .struct_size = sizeof info };
  REQUIRE_OK(open_with("gpu", NULL, &session), &err);
  REQUIRE_OK(tn_session_device(session, 1, &info, &err), &err);
  int64_t all = info.memory_bytes;
  tn_session_destroy(session);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    REQUIRE_OK(open_with(cases[i].target, cases[i].option, &session), &err);
    REQUIRE_OK(tn_session_device(session, 1, &info, &err), &err);
    double wanted = cases[i].bytes > 0 ? (double)cases[i].bytes : cases[i].share * (double)all;
    CHECK_MSG(fabs((double)info.memory_bytes - wanted) <= 1, "%s %s: %lld bytes, wanted %g", cases[i].target,
              cases[i].option != NULL ? cases[i].option : "", (long long)info.memory_bytes, wanted);
    tn_session_destroy(session);
  }
  CHECK_STATUS(try_target("gpu", "memory_fraction=0"), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "'memory_fraction' is 0, wanted above 0 and at most 1");
  CHECK_STATUS(try_target("gpu", "memory_fraction=1.5"), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(try_target("gpu", "memory_fraction=-0.5"), TN_INVALID_ARGUMENT, &err);
}

/* ---- settings ---- */

static void gpu_device__valid_settings(void)
{
  static const char *const targets[] = { "gpu",
                                         "gpu:device=0",
                                         "gpu:device=all",
                                         "gpu:type=any",
                                         "gpu:placement=cost",
                                         "gpu:placement=device",
                                         "gpu:placement=host",
                                         "gpu:fetch=host",
                                         "gpu:fetch=device",
                                         "gpu:memory=100M,device=0",
                                         "gpu:blas=auto",
                                         "gpu:blas=clblast",
                                         "gpu:blas=own" };
  GPU_NEEDS_DEVICE();
  for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
    CHECK_MSG(try_target(targets[i], NULL) == TN_OK, "%s: %s", targets[i], tn_error_message(&err));
}

static void gpu_device__errors_name_wrong_settings(void)
{
  static const struct {
    const char *target, *text;
  } cases[] = { { "gpu:devise=1",
                  "there is no setting 'devise' (did you mean 'device'?); available: device, platform, type" },
                { "gpu:device=", "setting device= of runtime 'gpu': wanted a number, several as in 0+1, or all" },
                { "gpu:device=x", "setting device=x of" },
                { "gpu:device=-1", "setting device=-1 of" },
                { "gpu:device=0+", "setting device=0+ of" },
                { "gpu:device=0++1", "setting device=0++1 of" },
                { "gpu:device=+0", "setting device=+0 of" },
                { "gpu:device=0x1", "setting device=0x1 of" },
                { "gpu:device=99999999999999999999999", "wanted a number, several" },
                { "gpu:device=0+0", "setting device=0+0 of runtime 'gpu': wanted each device once" },
                { "gpu:device=1+0+1", "wanted each device once" },
                { "gpu:type=fpga", "setting type=fpga of runtime 'gpu': wanted gpu, accelerator, cpu or any" },
                { "gpu:type=GPU", "setting type=GPU of" },
                { "gpu:platform=", "setting platform= of runtime 'gpu': wanted a part of a platform's name" },
                { "gpu:placement=auto", "setting placement=auto of runtime 'gpu': wanted cost, device or host" },
                { "gpu:fetch=gpu", "setting fetch=gpu of runtime 'gpu': wanted host or device" },
                { "gpu:blas=cublas", "setting blas=cublas of runtime 'gpu': wanted auto, clblast or own" },
                { "gpu:memory=0", "setting memory=0 of runtime 'gpu': wanted bytes, as in 500000000 or 512M" },
                { "gpu:memory=-5", "setting memory=-5 of" },
                { "gpu:memory=5T", "setting memory=5T of" },
                { "gpu:memory=5MB", "setting memory=5MB of" },
                { "gpu:memory=9223372036854775807K", "setting memory=9223372036854775807K of" },
                { "gpu:memory=9223372036854775808", "setting memory=9223372036854775808 of" },
                { "gpu:queues=0", "setting queues=0 of runtime 'gpu': wanted a number from 1 to 64, or auto" },
                { "gpu:queues=65", "setting queues=65 of" },
                { "gpu:queues=2x", "setting queues=2x of" } };
  GPU_NEEDS_DEVICE();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tn_status st = try_target(cases[i].target, NULL);
    CHECK_MSG(st == TN_INVALID_ARGUMENT && strstr(tn_error_message(&err), cases[i].text) != NULL, "%s: %d %s",
              cases[i].target, (int)st, tn_error_message(&err));
  }
}

static void gpu_device__the_error_for_a_missing_device_lists_the_devices(void)
{
  GPU_NEEDS_DEVICE();
  tn_session *session;
  tn_device_info info = { .struct_size = sizeof info };
  REQUIRE_OK(open_with("gpu", NULL, &session), &err);
  REQUIRE_OK(tn_session_device(session, 1, &info, &err), &err);
  char name[200];
  snprintf(name, sizeof name, "0 = '%.80s' (", info.model);
  tn_session_destroy(session);
  static const char *const targets[] = { "gpu:device=4000", "gpu:platform=absent", "gpu:device=0,platform=absent" };
  for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
    CHECK_STATUS(try_target(targets[i], NULL), TN_NOT_FOUND, &err);
    CHECK_CONTAINS(tn_error_message(&err), "no device of this machine is that; there are: ");
    CHECK_CONTAINS(tn_error_message(&err), name);
  }
}

/* ---- several devices, provided by PoCL ---- */

static int scene_two_devices(void)
{
  tn_session *session;
  tn_device_info info = { .struct_size = sizeof info };
  char names[2][200];
  static const struct {
    const char *target, *option, *devices;
  } cases[] = { { "gpu", NULL, "CPU:0 GPU:0" },
                { "gpu:device=0+1", NULL, "CPU:0 GPU:0 GPU:1" },
                { "gpu:device=all", NULL, "CPU:0 GPU:0 GPU:1" },
                { "gpu", "device_count=GPU=2", "CPU:0 GPU:0 GPU:1" },
                { "gpu", "device_count=GPU=9", "CPU:0 GPU:0 GPU:1" },
                { "gpu:device=all", "device_count=GPU=1", "CPU:0 GPU:0" },
                { "gpu:device=1+0", "device_count=GPU=1", "CPU:0 GPU:0" },
                { "gpu:device=1", NULL, "CPU:0 GPU:0" },
                { "gpu:device=all,platform=portable", NULL, "CPU:0 GPU:0 GPU:1" },
                { "gpu:device=all", "device_filters=/device:CPU:*,/device:GPU:1", "CPU:0 GPU:1" } };
  if (strcmp(devices_of("gpu:device=all", NULL), "CPU:0 GPU:0 GPU:1") != 0) {
    printf("two devices are needed: %s\n", devices_of("gpu:device=all", NULL));
    return 77;
  }
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *found = devices_of(cases[i].target, cases[i].option);
    SCENE_CHECK(strcmp(found, cases[i].devices) == 0, "%s %s: %s", cases[i].target, cases[i].option, found);
  }
  for (int i = 0; i < 2; i++) {
    SCENE_CHECK(open_with(i == 0 ? "gpu:device=0+1" : "gpu:device=1+0", NULL, &session) == TN_OK);
    SCENE_CHECK(tn_session_device(session, 1, &info, NULL) == TN_OK && info.model != NULL);
    snprintf(names[i], sizeof names[i], "%s", info.model);
    tn_session_destroy(session);
  }
  SCENE_CHECK(strcmp(names[0], names[1]) != 0, "GPU:0 is '%s' for device=0+1 and device=1+0", names[0]);
  SCENE_CHECK(try_target("gpu:device=2", NULL) == TN_NOT_FOUND);
  SCENE_CHECK(strstr(tn_error_message(&err), ", 1 = '") != NULL, "%s", tn_error_message(&err));
  SCENE_CHECK(add_on("gpu:device=1") && add_on("gpu:device=0+1"));
  return 0;
}

static void gpu_device__several_devices_are_chosen_by_number(void)
{
  GPU_NEEDS_DEVICE();
  const char *environment[] = { "POCL_DEVICES=pthread basic", NULL }, *text;
  int status = gpu_kit_run("two_devices", environment, &text);
  if (status == 77) TAP_SKIP("OpenCL has a single device: %s", text);
  CHECK_MSG(status == 0, "%d: %s", status, text);
}

/* ---- reset, fork, lack of memory ---- */

static tn_status open_and_close(void *arg)
{
  tn_session *session;
  tn_status st = open_with("gpu", arg, &session);
  tn_device_info info = { .struct_size = sizeof info };
  if (st == TN_OK) st = tn_session_device(session, 1, &info, &err);
  tn_session_destroy(session);
  return st;
}

static void gpu_device__opening_without_memory_fails_cleanly(void)
{
  GPU_NEEDS_DEVICE();
  char pools[] = "session_inter_op_pools=2,3", filters[] = "device_filters=/device:*:0";
  tn_test_oom_sweep(open_and_close, NULL);
  tn_test_oom_sweep(open_and_close, pools);
  tn_test_oom_sweep(open_and_close, filters);
}

static int fork_and_open(void)
{
  pid_t child = fork();
  if (child == 0) {
    alarm(30);
    tn_status st = try_target("gpu", NULL);
    if (st != TN_FAILED_PRECONDITION) printf("the child has %d %s\n", (int)st, tn_error_message(&err));
    fflush(stdout);
    _exit(st == TN_FAILED_PRECONDITION ? 0 : 1);
  }
  int status = 0;
  SCENE_CHECK(child > 0 && waitpid(child, &status, 0) == child);
  SCENE_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%d", status);
  return 0;
}

/* The parent had no session, but asked for the runtime, which initialised OpenCL. */
static int scene_fork_after_load(void)
{
  tn_runtime_info info = { .struct_size = sizeof info };
  SCENE_CHECK(tn_runtime_load("gpu", &info, &err) == TN_OK, "%s", tn_error_message(&err));
  return fork_and_open();
}

static int scene_fork_after_session(void)
{
  tn_session *session;
  SCENE_CHECK(open_with("gpu", NULL, &session) == TN_OK);
  int status = fork_and_open();
  tn_session_destroy(session);
  return status;
}

/* A process that forks before it names the runtime can use it in the child. */
static int scene_fork_before(void)
{
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(add_on("gpu") ? 0 : 1);
  }
  int status = 0;
  SCENE_CHECK(child > 0 && waitpid(child, &status, 0) == child);
  SCENE_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%d", status);
  SCENE_CHECK(add_on("gpu"));
  return 0;
}

/* P-72 */
static void gpu_device__is_not_usable_after_a_fork(void)
{
  GPU_NEEDS_DEVICE();
  gpu_kit_play("fork_after_load", NULL);
  gpu_kit_play("fork_after_session", NULL);
  gpu_kit_play("fork_before", NULL);
}

static void gpu_device__sessions_graphs_and_eager_ops_run(void)
{
  GPU_NEEDS_DEVICE();
  CHECK(add_on("gpu"));
  CHECK(add_on("gpu:placement=device"));
  te t;
  te_open(&t, "gpu", 0);
  tn_eager_handle x = te_scalar(&t, 2.5f), y;
  REQUIRE_OK(tn_eager_add(t.session, x, x, &y, &t.err), &t.err);
  tn_tensor *sum = NULL;
  CHECK_OK(tn_eager_tensor(t.session, y, &sum, &t.err), &t.err);
  CHECK_DOUBLE(ts_float(sum), 5, 0);
  tn_tensor_unref(sum);
  te_fini(&t);
}

/* Sessions can be opened again after the runtime was reset. P-42 */
static void gpu_device__reset_closes_its_sessions(void)
{
  GPU_NEEDS_DEVICE();
  ts t;
  ts_init(&t, 1);
  REQUIRE_OK(tn_session_options_set_target(t.options, "gpu", &t.err), &t.err);
  ts_usual_graph(t.graph);
  ts_start(&t);
  CHECK_OK(tn_reset(t.options, NULL, 0, &t.err), &t.err);
  tn_tensor *y = NULL;
  CHECK_STATUS(ts_run(&t, FEEDS({ "x", 3 }), NAMES("neg"), &y, NULL), TN_CANCELLED, &t.err);
  ts_fini(&t);
  CHECK(add_on("gpu"));
}

static const gpu_scene scenes[] = {
  { "unnamed", scene_unnamed },
  { "no_device", scene_no_device },
  { "no_opencl", scene_no_opencl },
  { "two_devices", scene_two_devices },
  { "fork_after_load", scene_fork_after_load },
  { "fork_after_session", scene_fork_after_session },
  { "fork_before", scene_fork_before },
};

static void setup(void)
{
  gpu_kit_scenes("gpu_device__is_listed_without_being_loaded", scenes, sizeof scenes / sizeof *scenes);
}

TAP_MAIN_WITH(setup, NULL,
  TAP_TEST(gpu_device__is_listed_without_being_loaded),
  TAP_TEST(gpu_device__is_not_mapped_into_processes_that_do_not_name_it),
  TAP_TEST(gpu_device__a_missing_device_is_reported_and_others_work),
  TAP_TEST(gpu_device__missing_opencl_is_reported_and_others_work),
  TAP_TEST(gpu_device__a_session_lists_its_devices),
  TAP_TEST(gpu_device__options_limit_the_devices),
  TAP_TEST(gpu_device__memory_is_limited_by_a_fraction_or_a_number),
  TAP_TEST(gpu_device__valid_settings),
  TAP_TEST(gpu_device__errors_name_wrong_settings),
  TAP_TEST(gpu_device__the_error_for_a_missing_device_lists_the_devices),
  TAP_TEST(gpu_device__several_devices_are_chosen_by_number),
  TAP_TEST(gpu_device__opening_without_memory_fails_cleanly),
  TAP_TEST(gpu_device__is_not_usable_after_a_fork),
  TAP_TEST(gpu_device__sessions_graphs_and_eager_ops_run),
  TAP_TEST(gpu_device__reset_closes_its_sessions))
