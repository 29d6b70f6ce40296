/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime gpu as seen by a program through memory and programs: tensors that stay on the
 * device, limits, programs that a second session need not compile, memory returned to the
 * driver. */
#include <stdio.h>
#include <stdlib.h>

#include <tenon/plugins.h>

#include "tests/support/gpu_kit.h"
#include "conformance/support/session_kit.h"

static const char *cache; /* in the scratch folder */
static char lines[8000];  /* of the log, about programs and memory */
static void keep_line(void *user, int32_t level, const char *line)
{
  (void)user, (void)level;
  size_t n = strlen(lines);
  if (strstr(line, "gpu: programs of") != NULL || strstr(line, "gpu: memory of") != NULL)
    snprintf(lines + n, sizeof lines - n, "%s\n", line);
}

static void setup(void)
{
  cache = tap_scratch_dir();
  setenv("TENON_CACHE_DIR", cache, 1);
  tn_set_log_sink(keep_line, NULL);
  tn_set_log_level(TN_LOG_INFO);
}
static void teardown(void) { tn_set_log_sink(NULL, NULL); }

/* y = x + x, z = y * y of a vector, on a target. */
static void open_on(ts *t, const char *target)
{
  ts_init(t, 1);
  REQUIRE_OK(tn_session_options_set_target(t->options, target, &t->err), &t->err);
  tn_output x = ts_placeholder(t->graph, "x", TN_FLOAT);
  tn_output y = ts_op2(t->graph, "AddV2", "y", x, x);
  ts_op2(t->graph, "Mul", "z", y, y);
  ts_op1(t->graph, "Softmax", "s", y);
  ts_start(t);
}

static tn_status run(ts *t, const char *feed, tn_tensor *x, const char *fetch, tn_tensor **out)
{
  *out = NULL;
  const char *fetches[1] = { fetch };
  return tn_session_run(t->session, NULL, &feed, &x, 1, fetches, out, 1, NULL, 0, NULL, &t->err);
}

static const float three[3] = { 1, 2, 3 };

static bool is_on_device(const tn_tensor *t)
{
  int32_t memory = tn_buffer_describe(tn_tensor_buffer(t))->memory;
  return memory == TN_MEMORY_DEVICE || memory == TN_MEMORY_SHARED;
}

static void check_three(const tn_tensor *t, float a, float b, float c)
{
  float found[3] = { 0 };
  const float wanted[3] = { a, b, c };
  CHECK_OK(tn_tensor_read(t, found, sizeof found, NULL), NULL);
  CHECK_BYTES(found, wanted, sizeof wanted);
}

static void gpu_tensors__tensors_fetched_on_the_device_are_fed_from_there(void)
{
  GPU_NEEDS_DEVICE();
  ts t;
  open_on(&t, "gpu:placement=device,fetch=device");
  tn_tensor *x = ts_vector(3, three), *y, *z;
  REQUIRE_OK(run(&t, "x:0", x, "y:0", &y), &t.err);
  CHECK(is_on_device(y));
  check_three(y, 2, 4, 6);
  REQUIRE_OK(run(&t, "x:0", y, "y:0", &z), &t.err); /* the same shapes as before in another memory */
  check_three(z, 4, 8, 12);
  tn_tensor_unref(z);
  REQUIRE_OK(run(&t, "y:0", y, "z:0", &z), &t.err);
  check_three(z, 4, 16, 36);
  check_three(y, 2, 4, 6); /* feeds are never written */
  tn_tensor_unref(z);
  tn_tensor_unref(y);
  tn_tensor_unref(x);
  ts_fini(&t);
}

static void gpu_tensors__are_in_host_memory_by_default(void)
{
  GPU_NEEDS_DEVICE();
  ts t;
  open_on(&t, "gpu:placement=device");
  tn_tensor *x = ts_vector(3, three), *y;
  REQUIRE_OK(run(&t, "x:0", x, "y:0", &y), &t.err);
  REQUIRE_PTR(tn_tensor_data(y));
  check_three(y, 2, 4, 6);
  CHECK(tn_tensor_is_exclusive(y));
  tn_tensor_unref(y);
  tn_tensor_unref(x);
  ts_fini(&t);
}

static void gpu_tensors__outlive_session_and_keep_the_runtime(void) /* P-45, S-CFG-23 */
{
  GPU_NEEDS_DEVICE();
  ts t;
  lines[0] = 0;
  open_on(&t, "gpu:placement=device,fetch=device");
  tn_tensor *x = ts_vector(3, three), *y, *again;
  REQUIRE_OK(run(&t, "x:0", x, "y:0", &y), &t.err);
  ts_fini(&t);
  CHECK(strstr(lines, "gpu: memory of") == NULL); /* the device is in use */
  tn_error err = TN_ERROR_INIT;
  CHECK_STATUS(tn_runtime_unregister("gpu", &err), TN_FAILED_PRECONDITION, &err);
  tn_error_clear(&err);
  check_three(y, 2, 4, 6);
  /* Another session can use it, too. */
  open_on(&t, "gpu:placement=device,fetch=device");
  REQUIRE_OK(run(&t, "x:0", y, "y:0", &again), &t.err);
  check_three(again, 4, 8, 12);
  ts_fini(&t);
  tn_tensor_unref(again);
  tn_tensor_unref(x);
  CHECK(strstr(lines, "gpu: memory of") == NULL);
  tn_tensor_unref(y);
  CHECK_CONTAINS(lines, "gpu: memory of"); /* all memory was returned with the last tensor */
}

static void gpu_tensors__other_runtimes_accept_them(void)
{
  static const char *const targets[] = { "direct", "threaded", "gpu:placement=host", "gpu:placement=device" };
  GPU_NEEDS_DEVICE();
  ts t;
  open_on(&t, "gpu:placement=device,fetch=device");
  tn_tensor *x = ts_vector(3, three), *y, *z;
  REQUIRE_OK(run(&t, "x:0", x, "y:0", &y), &t.err);
  ts_fini(&t);
  for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
    open_on(&t, targets[i]);
    CHECK_OK(run(&t, "y:0", y, "z:0", &z), &t.err);
    if (z != NULL) check_three(z, 4, 16, 36);
    tn_tensor_unref(z);
    CHECK_OK(run(&t, "y:0", y, "y:0", &z), &t.err); /* a feed may be fetched */
    if (z != NULL) check_three(z, 2, 4, 6);
    tn_tensor_unref(z);
    ts_fini(&t);
  }
  tn_tensor_unref(y);
  tn_tensor_unref(x);
}

static void gpu_memory__of_a_session_has_a_limit(void) /* S-CAN-13 */
{
  GPU_NEEDS_DEVICE();
  ts t;
  const int64_t large[1] = { 1 << 20 };
  open_on(&t, "gpu:placement=device,memory=1048576");
  tn_tensor *x = ts_filled(1, large, 1), *small = ts_vector(3, three), *y;
  CHECK_STATUS(run(&t, "x:0", x, "s:0", &y), TN_RESOURCE_EXHAUSTED, &t.err);
  CHECK_NULL(y);
  CHECK_CONTAINS(tn_error_message(&t.err), "the session may have 1048576");
  /* Neither this session nor another is affected. */
  REQUIRE_OK(run(&t, "x:0", small, "y:0", &y), &t.err);
  check_three(y, 2, 4, 6);
  tn_tensor_unref(y);
  ts_fini(&t);
  open_on(&t, "gpu:placement=device");
  REQUIRE_OK(run(&t, "x:0", x, "s:0", &y), &t.err);
  CHECK_DOUBLE(ts_float(y), 1.0 / large[0], 1e-9);
  tn_tensor_unref(y);
  tn_tensor_unref(small);
  tn_tensor_unref(x);
  ts_fini(&t);
}

static void gpu_programs__a_second_session_compiles_nothing(void)
{
  GPU_NEEDS_DEVICE();
  ts t;
  tn_tensor *x = ts_vector(3, three), *y;
  char folder[700];
  snprintf(folder, sizeof folder, "%s/second", cache);
  setenv("TENON_CACHE_DIR", folder, 1);
  for (int i = 0; i < 2; i++) {
    lines[0] = 0;
    open_on(&t, "gpu:placement=device");
    REQUIRE_OK(run(&t, "x:0", x, "s:0", &y), &t.err);
    tn_tensor_unref(y);
    ts_fini(&t);
    if (i == 0) CHECK_CONTAINS(lines, " compiled, 0 read from disk");
    else CHECK_CONTAINS(lines, " 0 compiled, ");
    CHECK(i == 1 || strstr(lines, " 0 compiled, ") == NULL);
  }
  setenv("TENON_CACHE_DIR", cache, 1);
  tn_tensor_unref(x);
}

static bool has_gpu_kernel(const char *op)
{
  const tn_op_schema *schema = tn_op_schema_find(op);
  const tn_kernel_def *k;
  for (size_t i = 0; (k = tn_op_schema_kernel(schema, i)) != NULL; i++)
    if (strcmp(k->device, "GPU") == 0) return true;
  return false;
}

static void gpu_ops__are_known_to_the_library(void) /* S-CFG-02 */
{
  GPU_NEEDS_DEVICE();
  ts t;
  open_on(&t, "gpu");
  CHECK(has_gpu_kernel("MatMul"));
  CHECK(has_gpu_kernel("Softmax"));
  CHECK(!has_gpu_kernel("StringJoin"));
  ts_fini(&t);
}

TAP_MAIN_WITH(setup, teardown,
  TAP_TEST(gpu_tensors__tensors_fetched_on_the_device_are_fed_from_there),
  TAP_TEST(gpu_tensors__are_in_host_memory_by_default),
  TAP_TEST(gpu_tensors__outlive_session_and_keep_the_runtime),
  TAP_TEST(gpu_tensors__other_runtimes_accept_them),
  TAP_TEST(gpu_memory__of_a_session_has_a_limit),
  TAP_TEST(gpu_programs__a_second_session_compiles_nothing),
  TAP_TEST(gpu_ops__are_known_to_the_library))
