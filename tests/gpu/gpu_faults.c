/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime gpu on an OpenCL that fails: every function in turn, at each of its calls, with
 * tests/plugins/opencl_faults.c in place of the loader. Whatever fails, there is a status with a
 * message that names the function, nothing is leaked, and the next session starts clean. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/support/gpu_faults.h"
#include "tests/support/plugin_files.h"
#include "conformance/support/session_kit.h"

static const char *const *with_queues(const char *const *environment)
{
  static const char *more[8];
  size_t n = 0;
  for (; environment[n] != NULL; n++) more[n] = environment[n];
  more[n++] = "TENON_TEST_TARGET=gpu:placement=device,queues=3";
  more[n] = NULL;
  return more;
}

/* ---- a session ---- */

enum { SIDE = 24 };
static bool in_branch; /* the nodes are in a branch, so that the kit runs the plan and the device a part of it */

static tn_output cast(tn_graph *graph, const char *name, tn_output x, tn_dtype to)
{
  tn_error err = TN_ERROR_INIT;
  tn_operation *op = NULL;
  tn_operation_builder *b = tn_operation_begin(graph, "Cast", name, 0);
  tn_operation_add_input(b, x);
  tn_operation_set_type(b, "DstT", to);
  REQUIRE_OK(tn_operation_finish(b, &op, &err), &err);
  return (tn_output){ op, 0 };
}

/* y = relu(x w + x) - x / x, w constant: a product and the nodes after it, and a quotient of
 * integers, which is checked (x is 1). */
static void life_graph(ts *t)
{
  int64_t dims[2] = { SIDE, SIDE };
  const char *target = getenv("TENON_TEST_TARGET");
  ts_init(t, 1);
  REQUIRE_OK(tn_session_options_set_target(t->options, target != NULL ? target : "gpu:placement=device", &t->err),
             &t->err);
  REQUIRE_OK(tn_session_options_parse(t->options, "kernel_plugins", "never", &t->err), &t->err);
  tn_tensor *quarters = ts_filled(2, dims, 0.25f);
  tn_output x = ts_placeholder(t->graph, "x", TN_FLOAT), w = ts_const_tensor(t->graph, "w", quarters);
  tn_tensor_unref(quarters);
  tn_output p = ts_placeholder(t->graph, "p", TN_BOOL);
  if (in_branch) x = (tn_output){ ts_op2(t->graph, "Switch", "switch", x, p).op, 1 };
  tn_output product = ts_op2(t->graph, "MatMul", "product", x, w);
  tn_output sum = ts_op2(t->graph, "AddV2", "sum", product, x);
  tn_output relu = ts_op1(t->graph, "Relu", "relu", sum);
  tn_output whole = cast(t->graph, "whole", x, TN_INT32),
            quotient = ts_op2(t->graph, "FloorDiv", "quotient", whole, whole);
  ts_op2(t->graph, "Sub", "y", relu, cast(t->graph, "one", quotient, TN_FLOAT));
}

static tn_status start(ts *t)
{
  tn_status st = tn_session_create(t->options, &t->session, &t->err);
  return st == TN_OK ? tn_session_set_graph(t->session, t->graph, &t->err) : st;
}

/* One step with all of x 1: y is SIDE / 4. */
static tn_status step(ts *t)
{
  int64_t dims[2] = { SIDE, SIDE };
  const char *const feeds[] = { "x", "p" }, *fetch = "y";
  const tn_bool yes = 1;
  tn_tensor *in[2] = { ts_filled(2, dims, 1), NULL }, *y = NULL;
  tn_status st = tn_tensor_from_data(TN_BOOL, NULL, 0, &yes, sizeof yes, &in[1], &t->err);
  if (st == TN_OK) st = tn_session_run(t->session, NULL, feeds, in, 2, &fetch, &y, 1, NULL, 0, NULL, &t->err);
  if (st == TN_OK) {
    float got[SIDE * SIDE] = { 0 };
    st = tn_tensor_read(y, got, sizeof got, &t->err);
    for (int i = 0; st == TN_OK && i < SIDE * SIDE; i++)
      if (got[i] != SIDE / 4) st = tn_error_set(&t->err, TN_DATA_LOSS, "y[%d] is %g", i, (double)got[i]);
  }
  tn_tensor_unref(in[0]);
  tn_tensor_unref(in[1]);
  tn_tensor_unref(y);
  return st;
}

/* A session from opening to closing, with two steps; an error is returned in message. */
static tn_status live(char *message, size_t size)
{
  ts t;
  life_graph(&t);
  tn_status st = start(&t);
  if (st == TN_OK) st = step(&t);
  if (st == TN_OK) st = step(&t);
  snprintf(message, size, "%s", tn_error_message(&t.err));
  ts_fini(&t);
  return st;
}

/* ---- every call in turn ---- */

/* Functions whose failure may go unnoticed once: releases, functions with an alternative, mere
 * queries, and allocation, which is retried after free memory was given back. */
static bool may_pass(const char *function)
{
  static const char *const parts[] = { "clRelease",       "clGet",    "clCreateProgramWithBinary",
                                       "clBuildProgram",  "clUnload", "clCreateBuffer",
                                       "clEnqueueFillBuffer", "clWaitForEvents" };
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (strncmp(function, parts[i], strlen(parts[i])) == 0) return true;
  return false;
}

static int fail_at(const char *function, long nth, int for_good, int code)
{
  char message[2000], again[2000];
  uint64_t before = tn_test_live_blocks();
  if (getenv("TENON_TEST_VERBOSE") != NULL) printf("%s %ld\n", function, nth), fflush(stdout);
  cl.set(function, nth, for_good, code);
  tn_status st = live(message, sizeof message);
  int met = cl.met();
  cl.set(NULL, 0, 0, 0);
  if (!met) {
    SCENE_CHECK(st == TN_OK, "%s %ld was not called: %s", function, nth, message);
    return 0;
  }
  bool at_the_end = strcmp(function, "clFinish") == 0 && nth > 2; /* each step waits once */
  SCENE_CHECK(st != TN_OK || may_pass(function) || at_the_end, "%s %ld (%d) was not noticed", function, nth, for_good);
  SCENE_CHECK(st == TN_OK || st == TN_UNAVAILABLE || st == TN_RESOURCE_EXHAUSTED || st == TN_INTERNAL, "%s %ld: %d %s",
              function, nth, (int)st, message);
  const char *name = code == OUT_OF_RESOURCES ? "CL_OUT_OF_RESOURCES" : "CL_DEVICE_NOT_AVAILABLE";
  bool named = strstr(message, function) != NULL || (for_good && strstr(message, name) != NULL);
  SCENE_CHECK(st == TN_OK || named, "%s %ld: the message does not name it: %s", function, nth, message);
  SCENE_CHECK(strcmp(alive(), nothing) == 0, "%s %ld (%d, %s): still alive: %s", function, nth, for_good, message,
              alive());
  tn_status next = live(again, sizeof again);
  SCENE_CHECK(next == TN_OK, "%s %ld (%d, %s): the next session: %s", function, nth, for_good, message, again);
  uint64_t after = tn_test_live_blocks();
  SCENE_CHECK(after <= before, "%s %ld (%d): %lld blocks more", function, nth, for_good, (long long)(after - before));
  return 0;
}

static int scene_sweep(void)
{
  char message[2000];
  long before[MOST_FUNCTIONS], n[MOST_FUNCTIONS];
  int n_functions = 0, wrong = 0, tried = 0;
  SCENE_CHECK(attach());
  for (int i = 0; i < 3; i++) /* objects made once per process, and on disk, exist afterwards */
    SCENE_CHECK(live(message, sizeof message) == TN_OK, "%s", message);
  while (n_functions < MOST_FUNCTIONS && cl.function(n_functions) != NULL) n_functions++;
  for (int i = 0; i < n_functions; i++) before[i] = cl.calls(i);
  SCENE_CHECK(live(message, sizeof message) == TN_OK, "%s", message);
  for (int i = 0; i < n_functions; i++) n[i] = cl.calls(i) - before[i];
  for (int i = 0; i < n_functions; i++) {
    for (long k = 1; k <= n[i]; k += k < 8 || n[i] - k < 4 ? 1 : 3, tried++)
      wrong += fail_at(cl.function(i), k, 0, OUT_OF_RESOURCES);
    if (n[i] > 0) wrong += fail_at(cl.function(i), 1, 1, DEVICE_NOT_AVAILABLE);
  }
  printf("# %d calls failed in turn\n", tried);
  SCENE_CHECK(tried > 20, "only %d calls", tried);
  return wrong > 0;
}

static int scene_sweep_branch(void)
{
  in_branch = true;
  return scene_sweep();
}

/* As on a processor that shares memory with the host, and as on one that has its own. */
static void gpu_faults__each_function_at_each_call(void)
{
  gpu_kit_begin();
  GPU_NEEDS_DEVICE();
  gpu_kit_play("sweep", with_faults(NULL, NULL));
  gpu_kit_play("sweep", with_faults("gpu", NULL));
  gpu_kit_play("sweep", with_queues(with_faults("gpu", NULL)));
}

static void gpu_faults__each_function_in_a_part_of_a_plan(void)
{
  GPU_NEEDS_DEVICE();
  gpu_kit_play("sweep_branch", with_faults(NULL, NULL));
  gpu_kit_play("sweep_branch", with_faults("gpu", NULL));
}

/* ---- before the first session ---- */

static int scene_init(void)
{
  char message[2000];
  tn_status st = live(message, sizeof message);
  SCENE_CHECK(st == TN_OK || st == TN_UNAVAILABLE || st == TN_NOT_FOUND, "%d %s", (int)st, message);
  SCENE_CHECK(st == TN_OK || message[0] != '\0');
  ts t;
  ts_init(&t, 1);
  SCENE_CHECK(tn_session_options_set_target(t.options, "direct", &t.err) == TN_OK);
  SCENE_CHECK(tn_session_create(t.options, &t.session, &t.err) == TN_OK, "%s", tn_error_message(&t.err));
  ts_fini(&t);
  return 0;
}

/* S-PLG-07 */
static void gpu_faults__looking_for_devices(void)
{
  static const char *const functions[] = { "clGetPlatformIDs:1", "clGetPlatformIDs:2", "clGetPlatformInfo:1+",
                                           "clGetDeviceIDs:1",   "clGetDeviceIDs:2",   "clGetDeviceInfo:1+" };
  char fail[64];
  GPU_NEEDS_DEVICE();
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    gpu_kit_play("init", with_faults(NULL, functions[i]));
  for (int i = 1; i < 30; i += 2) {
    snprintf(fail, sizeof fail, "clGetDeviceInfo:%d:-6", i);
    gpu_kit_play("init", with_faults(NULL, fail));
  }
}

/* ---- a shared context ---- */

static int scene_shared(void)
{
  ts a, b;
  SCENE_CHECK(attach());
  life_graph(&a);
  life_graph(&b);
  SCENE_CHECK(start(&a) == TN_OK && step(&a) == TN_OK, "%s", tn_error_message(&a.err));
  SCENE_CHECK(start(&b) == TN_OK && step(&b) == TN_OK, "%s", tn_error_message(&b.err));
  SCENE_CHECK(strncmp(alive(), "contexts 1,", 11) == 0, "%s", alive());
  ts_fini(&a);
  SCENE_CHECK(strncmp(alive(), "contexts 1,", 11) == 0, "%s", alive());
  SCENE_CHECK(step(&b) == TN_OK, "%s", tn_error_message(&b.err));
  ts_fini(&b);
  SCENE_CHECK(strcmp(alive(), nothing) == 0, "%s", alive());
  return 0;
}

/* S-CFG-23: the last of several sessions returns everything to the device. */
static void gpu_faults__the_last_session_frees_the_shared_context(void)
{
  GPU_NEEDS_DEVICE();
  gpu_kit_play("shared", with_faults(NULL, NULL));
}

/* ---- a lost device ---- */

static int scene_lost(void)
{
  ts a, b;
  SCENE_CHECK(attach());
  life_graph(&a);
  life_graph(&b);
  SCENE_CHECK(start(&a) == TN_OK && step(&a) == TN_OK, "%s", tn_error_message(&a.err));
  cl.set("clEnqueueNDRangeKernel", 1, 1, DEVICE_NOT_AVAILABLE);
  tn_status st = step(&a);
  cl.set(NULL, 0, 0, 0);
  SCENE_CHECK(st == TN_UNAVAILABLE, "%d %s", (int)st, tn_error_message(&a.err));
  SCENE_CHECK(strstr(tn_error_message(&a.err), "clEnqueueNDRangeKernel") != NULL, "%s", tn_error_message(&a.err));
  SCENE_CHECK(strstr(tn_error_message(&a.err), "CL_DEVICE_NOT_AVAILABLE") != NULL, "%s", tn_error_message(&a.err));
  SCENE_CHECK(step(&a) == TN_UNAVAILABLE, "%s", tn_error_message(&a.err)); /* its context is unusable */
  SCENE_CHECK(start(&b) == TN_OK && step(&b) == TN_OK, "%s",
              tn_error_message(&b.err)); /* a new session has a new context */
  ts_fini(&a);
  SCENE_CHECK(step(&b) == TN_OK, "%s", tn_error_message(&b.err));
  ts_fini(&b);
  SCENE_CHECK(strcmp(alive(), nothing) == 0, "%s", alive());
  return 0;
}

static void gpu_faults__a_lost_device_ends_only_its_sessions(void)
{
  GPU_NEEDS_DEVICE();
  gpu_kit_play("lost", with_faults(NULL, NULL));
  gpu_kit_play("lost", with_faults("gpu", NULL));
}

static int scene_memory(void)
{
  char message[2000];
  SCENE_CHECK(attach());
  SCENE_CHECK(live(message, sizeof message) == TN_OK, "%s", message);
  cl.set("clCreateBuffer", 1, 1, NO_MEMORY);
  tn_status st = live(message, sizeof message);
  cl.set(NULL, 0, 0, 0);
  SCENE_CHECK(st == TN_RESOURCE_EXHAUSTED, "%d %s", (int)st, message);
  SCENE_CHECK(live(message, sizeof message) == TN_OK, "%s", message);
  return 0;
}

static void gpu_faults__lack_of_device_memory_is_reported(void)
{
  GPU_NEEDS_DEVICE();
  gpu_kit_play("memory", with_faults("gpu", NULL));
}

/* ---- the largest allocation ---- */

enum { N_ALIVE = 12 }; /* values of 256 KiB that are alive at the same time */

/* y = x + 2 x + 3 x + ..., the oldest value being used last */
static void wide_graph(ts *t)
{
  char name[20];
  tn_output x, at, made[N_ALIVE];
  ts_init(t, 0);
  REQUIRE_OK(tn_session_options_set_target(t->options, "gpu:placement=device", &t->err), &t->err);
  at = x = ts_placeholder(t->graph, "x", TN_FLOAT);
  for (int i = 0; i < N_ALIVE; i++) {
    snprintf(name, sizeof name, "made%d", i);
    made[i] = at = ts_op2(t->graph, "AddV2", name, at, x);
  }
  for (int i = N_ALIVE - 1; i >= 0; i--) {
    snprintf(name, sizeof name, i > 0 ? "sum%d" : "y", i);
    at = ts_op2(t->graph, "AddV2", name, at, made[i]);
  }
}

static tn_status wide_step(ts *t, int64_t n, float *got)
{
  const char *feed = "x", *fetch = "y";
  tn_tensor *x = ts_filled(1, &n, 1), *y = NULL;
  tn_status st = tn_session_run(t->session, NULL, &feed, &x, 1, &fetch, &y, 1, NULL, 0, NULL, &t->err);
  *got = st == TN_OK ? ((const float *)tn_tensor_data(y))[n - 1] : 0;
  tn_tensor_unref(x);
  tn_tensor_unref(y);
  return st;
}

static int live_in_parts(void)
{
  ts t;
  float got, wanted = N_ALIVE + 1;
  for (int i = 0; i < N_ALIVE; i++) wanted += (float)(i + 2);
  wide_graph(&t);
  SCENE_CHECK(start(&t) == TN_OK, "%s", tn_error_message(&t.err));
  for (int i = 0; i < 2; i++) {
    SCENE_CHECK(wide_step(&t, 65536, &got) == TN_OK, "%s", tn_error_message(&t.err));
    SCENE_CHECK(got == wanted, "%g, wanted %g", (double)got, (double)wanted);
  }
  tn_status st = wide_step(&t, 300000, &got); /* 1,200,000 bytes */
  SCENE_CHECK(st == TN_RESOURCE_EXHAUSTED, "%d %s", (int)st, tn_error_message(&t.err));
  SCENE_CHECK(strstr(tn_error_message(&t.err), "1200128 bytes") != NULL, "%s", tn_error_message(&t.err));
  SCENE_CHECK(strstr(tn_error_message(&t.err), "at most 1048576 at once") != NULL, "%s", tn_error_message(&t.err));
  SCENE_CHECK(wide_step(&t, 65536, &got) == TN_OK && got == wanted, "%s", tn_error_message(&t.err));
  ts_fini(&t);
  SCENE_CHECK(strcmp(alive(), nothing) == 0, "%s", alive());
  return 0;
}

static int scene_parts(void)
{
  uint64_t blocks = 0;
  SCENE_CHECK(attach());
  for (int i = 0; i < 3; i++) { /* objects made once per process exist after the first round */
    if (live_in_parts() != 0) return 1;
    SCENE_CHECK(i < 2 || tn_test_live_blocks() <= blocks, "%lld blocks more",
                (long long)(tn_test_live_blocks() - blocks));
    blocks = tn_test_live_blocks();
  }
  return 0;
}

/* The values of a step together may exceed the device's largest allocation; each of them must
 * not. */
static void gpu_faults__values_use_several_parts_of_memory(void)
{
  static const char *const types[] = { "gpu", NULL }; /* NULL: PoCL's device shares memory with the host */
  GPU_NEEDS_DEVICE();
  for (size_t i = 0; i < 2; i++) {
    const char *environment[8];
    const char *const *faults = with_faults(types[i], NULL);
    size_t n = 0;
    for (; faults[n] != NULL; n++) environment[n] = faults[n];
    environment[n++] = "TENON_TEST_OPENCL_MOST=1048576";
    environment[n] = NULL;
    gpu_kit_play("parts", environment);
  }
}

/* ---- types ---- */

static int scene_types(void)
{
  static const char *const targets[] = { "gpu", "gpu:type=gpu", "gpu:type=cpu" };
  char models[3][200];
  for (int i = 0; i < 3; i++) {
    tn_session *session;
    tn_device_info info = { .struct_size = sizeof info };
    tn_error err = TN_ERROR_INIT;
    if (plugin_open_session(targets[i], &session, &err) != TN_OK) {
      printf("%s: %s\n", targets[i], tn_error_message(&err));
      return i == 2 ? 77 : 1; /* there is only one device */
    }
    SCENE_CHECK(tn_session_device(session, 1, &info, &err) == TN_OK && info.model != NULL);
    snprintf(models[i], sizeof models[i], "%s", info.model);
    tn_session_destroy(session);
  }
  SCENE_CHECK(strcmp(models[0], models[1]) == 0 && strcmp(models[1], models[2]) != 0, "%s, %s, %s", models[0],
              models[1], models[2]);
  return 0;
}

/* A GPU takes precedence over a CPU, wherever the driver lists it. */
static void gpu_faults__the_first_device_is_a_gpu_if_there_is_one(void)
{
  GPU_NEEDS_DEVICE();
  const char *text, *environment[8];
  const char *const *faults = with_faults("cpu,gpu", NULL);
  size_t n = 0;
  for (; faults[n] != NULL; n++) environment[n] = faults[n];
  environment[n++] = "POCL_DEVICES=pthread basic";
  environment[n] = NULL;
  int status = gpu_kit_run("types", environment, &text);
  if (status == 77) TAP_SKIP("OpenCL has a single device");
  CHECK_MSG(status == 0, "%d: %s", status, text);
}

static const gpu_scene scenes[] = { { "sweep", scene_sweep }, { "init", scene_init },     { "shared", scene_shared },
                                    { "sweep_branch", scene_sweep_branch },
                                    { "lost", scene_lost },   { "memory", scene_memory }, { "types", scene_types },
                                    { "parts", scene_parts } };

static void setup(void)
{
  gpu_kit_scenes("gpu_faults__each_function_at_each_call", scenes, sizeof scenes / sizeof *scenes);
}

TAP_MAIN_WITH(setup, NULL,
  TAP_TEST(gpu_faults__each_function_at_each_call),
  TAP_TEST(gpu_faults__each_function_in_a_part_of_a_plan),
  TAP_TEST(gpu_faults__looking_for_devices),
  TAP_TEST(gpu_faults__the_last_session_frees_the_shared_context),
  TAP_TEST(gpu_faults__a_lost_device_ends_only_its_sessions),
  TAP_TEST(gpu_faults__lack_of_device_memory_is_reported),
  TAP_TEST(gpu_faults__values_use_several_parts_of_memory),
  TAP_TEST(gpu_faults__the_first_device_is_a_gpu_if_there_is_one))
