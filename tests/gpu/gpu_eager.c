/* SPDX-License-Identifier: Apache-2.0 */
/* Eager sessions on the devices of the runtime gpu: what runs and stays on the device, and which
 * copies are made. Each scene runs as on a processor that shares memory with the host, and as on
 * one that has its own. OpenCL calls are counted, and fail when a scene wants them to
 * (tests/plugins/opencl_faults.c). */
#define _GNU_SOURCE
#include <core/tensor/dlpack.h>

#include "conformance/support/eager_kit.h"
#include "tests/support/gpu_faults.h"
#include "conformance/support/oom.h"

#define TARGET "gpu:placement=device"
#define CPU0 "/job:localhost/replica:0/task:0/device:CPU:0"
#define GPU0 "/job:localhost/replica:0/task:0/device:GPU:0"
enum { N = 512 };

/* ---- sessions, tensors ---- */

static void prepare_session(te *t, int32_t policy, bool soft, bool async)
{
  te_init(t, TARGET, TN_EAGER_ON_SAFE_POINTS);
  REQUIRE_OK(tn_session_options_parse(t->session_options, "kernel_plugins", "never", &t->err), &t->err);
  REQUIRE_OK(tn_session_options_parse(t->session_options, "allow_soft_placement", soft ? "true" : "false", &t->err),
             &t->err);
  t->options.device_policy = policy;
  t->options.async = async;
}

static void open_with(te *t, int32_t policy, bool soft, bool async)
{
  prepare_session(t, policy, soft, async);
  te_start(t);
}

/* A vector of N elements equal to `value`. */
static tn_eager_handle vector(te *t, float value)
{
  static const int64_t dims[1] = { N };
  tn_eager_handle h;
  tn_tensor *tensor = ts_filled(1, dims, value);
  REQUIRE_OK(tn_eager_from_tensor(t->session, tensor, &h, &t->err), &t->err);
  tn_tensor_unref(tensor);
  return h;
}

static tn_eager_handle copied(te *t, tn_eager_handle h, const char *device)
{
  tn_eager_handle out;
  REQUIRE_OK(tn_eager_copy_to_device(t->session, h, device, &out, &t->err), &t->err);
  return out;
}

static tn_eager_handle on_gpu(te *t, float value)
{
  tn_eager_handle host = vector(t, value), out = copied(t, host, "/device:GPU:0");
  te_release(t, host);
  return out;
}

static const char *device_of(te *t, tn_eager_handle h)
{
  const char *name;
  REQUIRE_OK(tn_eager_device(t->session, h, &name, &t->err), &t->err);
  return name;
}

static tn_eager_op *op_on(te *t, const char *name, const char *device)
{
  tn_eager_op *op;
  REQUIRE_OK(tn_eager_op_create(t->session, name, device, NULL, 0, &op, &t->err), &t->err);
  return op;
}

static tn_status call(te *t, tn_eager_op *op, tn_eager_handle x, tn_eager_handle y, tn_eager_handle *out)
{
  const tn_eager_handle in[] = { x, y };
  return tn_eager_op_call(op, in, y.id != 0 ? 2 : 1, out, 1, NULL, &t->err);
}
static const tn_eager_handle none;

static tn_eager_handle called(te *t, tn_eager_op *op, tn_eager_handle x, tn_eager_handle y)
{
  tn_eager_handle out;
  REQUIRE_OK(call(t, op, x, y, &out), &t->err);
  return out;
}

/* Whether all N elements equal `value`. */
static bool is_all(te *t, tn_eager_handle h, float value)
{
  float found[N];
  tn_tensor *tensor;
  REQUIRE_OK(tn_eager_tensor(t->session, h, &tensor, &t->err), &t->err);
  REQUIRE_OK(tn_tensor_read(tensor, found, sizeof found, &t->err), &t->err);
  tn_tensor_unref(tensor);
  for (int i = 0; i < N; i++)
    if (found[i] != value) {
      printf("element %d is %g, wanted %g\n", i, (double)found[i], (double)value);
      return false;
    }
  return true;
}

/* Whether it is in a device's memory; TN_MEMORY_SHARED if the device shares memory with the
 * host. */
static bool is_there(te *t, tn_eager_handle h)
{
  tn_tensor *tensor;
  REQUIRE_OK(tn_eager_tensor(t->session, h, &tensor, &t->err), &t->err);
  int32_t memory = tn_buffer_describe(tn_tensor_buffer(tensor))->memory;
  tn_tensor_unref(tensor);
  return memory == TN_MEMORY_DEVICE || memory == TN_MEMORY_SHARED;
}

/* Copies between memories, or within the device's memory. */
static long copies(void)
{
  return calls_of("clEnqueueReadBuffer") + calls_of("clEnqueueWriteBuffer") + calls_of("clEnqueueCopyBuffer") +
         calls_of("clEnqueueMapBuffer");
}

/* ---- a chain ---- */

static int scene_chain(void)
{
  SCENE_CHECK(attach());
  for (int async = 0; async < 2; async++) {
    te t;
    open_with(&t, TN_EAGER_EXPLICIT, false, async);
    tn_eager_op *mul = op_on(&t, "Mul", "/device:GPU:0"), *neg = op_on(&t, "Neg", "/gpu:0"),
                *add = op_on(&t, "AddV2", NULL);
    tn_eager_handle x = on_gpu(&t, 3), y = on_gpu(&t, 2), chain[4];
    long made = 0, before = copies(), launches = calls_of("clEnqueueNDRangeKernel");
    for (int round = 0; round < 3; round++) {
      if (round == 1)
        made = calls_of("clCreateBuffer") + calls_of("clCreateKernel") + calls_of("clCreateProgramWithSource");
      chain[0] = called(&t, mul, x, y);          /* 6 */
      chain[1] = called(&t, neg, chain[0], none); /* -6 */
      chain[2] = called(&t, add, chain[1], x);   /* -3, computed where its inputs are */
      REQUIRE_OK(tn_eager_square(t.session, chain[2], &chain[3], &t.err), &t.err); /* 9, by name */
      REQUIRE_OK(tn_eager_wait(t.session, &t.err), &t.err);
      for (int i = 0; i < 4; i++) {
        SCENE_CHECK(strcmp(device_of(&t, chain[i]), GPU0) == 0, "%d is on %s", i, device_of(&t, chain[i]));
        SCENE_CHECK(is_there(&t, chain[i]), "%d is not in device memory", i);
      }
      SCENE_CHECK(copies() == before, "%ld copies", copies() - before);
      if (round < 2)
        for (int i = 0; i < 4; i++) te_release(&t, chain[i]);
      REQUIRE_OK(tn_eager_safe_point(t.session, &t.err), &t.err);
    }
    SCENE_CHECK(calls_of("clEnqueueNDRangeKernel") - launches == 12, "%ld",
                calls_of("clEnqueueNDRangeKernel") - launches);
    long again = calls_of("clCreateBuffer") + calls_of("clCreateKernel") + calls_of("clCreateProgramWithSource");
    SCENE_CHECK(again == made, "%ld objects were made in the second round", again - made);
    SCENE_CHECK(is_all(&t, chain[0], 6) && is_all(&t, chain[1], -6) && is_all(&t, chain[2], -3) &&
                is_all(&t, chain[3], 9));
    tn_eager_op_destroy(mul);
    tn_eager_op_destroy(neg);
    tn_eager_op_destroy(add);
    te_fini(&t);
    SCENE_CHECK(strcmp(alive(), nothing) == 0, "%s", alive());
  }
  return 0;
}

/* ---- copies to the device and back ---- */

static int scene_moves(void)
{
  SCENE_CHECK(attach());
  te t;
  open_with(&t, TN_EAGER_EXPLICIT, false, false);
  tn_eager_handle host = vector(&t, 5), text, out;
  long before = calls_of("clEnqueueWriteBuffer");
  tn_eager_handle there = copied(&t, host, GPU0), same = copied(&t, there, "/gpu:0"),
                  back = copied(&t, there, "/cpu:0");
  SCENE_CHECK(calls_of("clEnqueueWriteBuffer") == before + 1);
  SCENE_CHECK(strcmp(device_of(&t, there), GPU0) == 0 && strcmp(device_of(&t, back), CPU0) == 0);
  SCENE_CHECK(is_there(&t, there) && is_there(&t, same) && !is_there(&t, back) && !is_there(&t, host));
  SCENE_CHECK(is_all(&t, there, 5) && is_all(&t, same, 5) && is_all(&t, back, 5));
  te_release(&t, host);
  te_release(&t, there);
  te_release(&t, same);
  REQUIRE_OK(tn_eager_safe_point(t.session, &t.err), &t.err);
  SCENE_CHECK(is_all(&t, back, 5)); /* has its own memory */
  tn_tensor *words;
  static const char *const word[] = { "word" };
  REQUIRE_OK(tn_tensor_from_strings(NULL, 0, word, NULL, &words, &t.err), &t.err);
  REQUIRE_OK(tn_eager_from_tensor(t.session, words, &text, &t.err), &t.err);
  tn_tensor_unref(words);
  SCENE_CHECK(tn_eager_copy_to_device(t.session, text, GPU0, &out, &t.err) == TN_UNIMPLEMENTED && out.id == 0);
  SCENE_CHECK(strstr(tn_error_message(&t.err), "string") != NULL, "%s", tn_error_message(&t.err));
  SCENE_CHECK(tn_eager_copy_to_device(t.session, back, "/gpu:7", &out, &t.err) == TN_INVALID_ARGUMENT && out.id == 0);
  te_fini(&t);
  SCENE_CHECK(strcmp(alive(), nothing) == 0, "%s", alive());
  return 0;
}

/* A result is copied only when it is read: as a tensor, or through DLPack. */
static int scene_reading(void)
{
  SCENE_CHECK(attach());
  te t;
  open_with(&t, TN_EAGER_EXPLICIT, false, false);
  tn_eager_handle x = on_gpu(&t, 4), y;
  REQUIRE_OK(tn_eager_square(t.session, x, &y, &t.err), &t.err);
  struct DLManagedTensorVersioned *lent;
  REQUIRE_OK(tn_eager_to_dlpack_versioned(t.session, y, &lent, &t.err), &t.err);
  SCENE_CHECK(lent->tensor.data != NULL && lent->tensor.device_type == TN__DL_CPU);
  te_release(&t, y);
  te_fini(&t);
  for (int i = 0; i < N; i++)
    SCENE_CHECK(((const float *)lent->tensor.data)[i] == 16, "%d", i); /* the borrower owns it */
  lent->deleter(lent);
  SCENE_CHECK(strcmp(alive(), nothing) == 0, "%s", alive());
  return 0;
}

/* ---- shapes, views and constants ---- */

/* Shapes and axes are read on the host, and stay there under each policy. Views of values on the
 * device are on the device, too. */
static int scene_shapes(void)
{
  static const int32_t two[] = { 2, N / 2 }, axis[] = { 0 };
  SCENE_CHECK(attach());
  te t;
  open_with(&t, TN_EAGER_EXPLICIT, false, false);
  tn_eager_handle x = on_gpu(&t, 3), shape, y, sum, same, dims = te_ints(&t, two, 2), zero = te_ints(&t, axis, 1);
  REQUIRE_OK(tn_eager_shape(t.session, x, &shape, &t.err), &t.err);
  SCENE_CHECK(strcmp(device_of(&t, shape), GPU0) == 0 && !is_there(&t, shape)); /* for the host to read again */
  long before = copies();
  REQUIRE_OK(tn_eager_reshape(t.session, x, dims, &y, &t.err), &t.err);
  SCENE_CHECK(copies() == before); /* a view */
  REQUIRE_OK(tn_eager_sum(t.session, y, zero, &sum, &t.err), &t.err);
  REQUIRE_OK(tn_eager_reshape(t.session, y, shape, &same, &t.err), &t.err);
  SCENE_CHECK(strcmp(device_of(&t, y), GPU0) == 0 && is_there(&t, y));
  SCENE_CHECK(strcmp(device_of(&t, sum), GPU0) == 0 && is_there(&t, sum));
  SCENE_CHECK(strcmp(device_of(&t, same), GPU0) == 0 && is_all(&t, same, 3));
  float found[N / 2];
  tn_tensor *tensor;
  REQUIRE_OK(tn_eager_tensor(t.session, sum, &tensor, &t.err), &t.err);
  SCENE_CHECK(tn_tensor_rank(tensor) == 1 && tn_tensor_elements(tensor) == N / 2);
  REQUIRE_OK(tn_tensor_read(tensor, found, sizeof found, &t.err), &t.err);
  SCENE_CHECK(found[0] == 6 && found[N / 2 - 1] == 6, "%g", (double)found[0]);
  tn_tensor_unref(tensor);
  te_fini(&t);
  return 0;
}

/* Values that no kernel makes (views of host tensors, constants) are copied to the device if the
 * program asks for them there. */
static int scene_brought(void)
{
  static const int64_t n[] = { N };
  SCENE_CHECK(attach());
  te t;
  open_with(&t, TN_EAGER_SILENT, false, false);
  tn_tensor *value = ts_filled(1, n, 7);
  const tn_eager_attr attrs[] = { { .name = "value", .kind = TN_ATTR_TENSOR, .at = value },
                                  { .name = "dtype", .kind = TN_ATTR_TYPE, .i = TN_FLOAT } };
  tn_eager_op *constant, *identity = op_on(&t, "Identity", GPU0);
  REQUIRE_OK(tn_eager_op_create(t.session, "Const", GPU0, attrs, 2, &constant, &t.err), &t.err);
  tn_tensor_unref(value);
  tn_eager_handle c, host = vector(&t, 8), x = called(&t, identity, host, none);
  long before = copies();
  tn_eager_handle again = called(&t, identity, x, none);
  SCENE_CHECK(copies() == before);
  REQUIRE_OK(tn_eager_op_call(constant, NULL, 0, &c, 1, NULL, &t.err), &t.err);
  SCENE_CHECK(is_there(&t, c) && is_there(&t, x) && is_there(&t, again) && !is_there(&t, host));
  te_release(&t, x);
  REQUIRE_OK(tn_eager_safe_point(t.session, &t.err), &t.err);
  SCENE_CHECK(is_all(&t, c, 7) && is_all(&t, again, 8));
  tn_eager_op_destroy(constant);
  tn_eager_op_destroy(identity);
  te_fini(&t);
  return 0;
}

/* Several threads in one session, each with a chain of its own; tensors are deleted along the
 * way. */
static void run_chains(te *t, int thread, atomic_int *wrong)
{
  tn_error err = TN_ERROR_INIT;
  tn_eager_session *s = t->session;
  for (int i = 0; i < 50; i++) {
    tn_eager_handle host = { 0 }, x = { 0 }, y = { 0 }, z = { 0 };
    float found[N], data[N];
    tn_tensor *tensor = NULL;
    static const int64_t dims[] = { N };
    for (int k = 0; k < N; k++) data[k] = (float)(thread * 100 + i);
    tn_status st = tn_eager_from_data(s, TN_FLOAT, dims, 1, data, sizeof data, &host, &err);
    if (st == TN_OK) st = tn_eager_copy_to_device(s, host, GPU0, &x, &err);
    if (st == TN_OK) st = tn_eager_add(s, x, x, &y, &err);
    if (st == TN_OK) st = tn_eager_sub(s, y, x, &z, &err);
    if (st == TN_OK) st = tn_eager_tensor(s, z, &tensor, &err);
    if (st == TN_OK) st = tn_tensor_read(tensor, found, sizeof found, &err);
    if (st != TN_OK || found[0] != data[0] || found[N - 1] != data[0]) {
      printf("thread %d, round %d: %s\n", thread, i, tn_error_message(&err));
      atomic_fetch_add(wrong, 1);
    }
    tn_tensor_unref(tensor);
    const tn_eager_handle made[] = { host, x, y, z };
    for (int k = 0; k < 4; k++) tn_eager_release(s, made[k], NULL);
  }
  tn_error_clear(&err);
}

typedef struct runner {
  te *t;
  int thread;
  atomic_int *wrong;
} runner;

static void *run_thread(void *arg)
{
  const runner *r = arg;
  run_chains(r->t, r->thread, r->wrong);
  return NULL;
}

static int scene_threads(void) /* S-EAG-25 */
{
  SCENE_CHECK(attach());
  for (int32_t strategy = TN_EAGER_IN_BACKGROUND; strategy <= TN_EAGER_ON_SAFE_POINTS; strategy++) {
    te t;
    pthread_t threads[4];
    runner runners[4];
    atomic_int wrong = 0;
    prepare_session(&t, TN_EAGER_EXPLICIT, false, false);
    t.options.strategy = strategy;
    te_start(&t);
    for (int i = 0; i < 4; i++) {
      runners[i] = (runner){ &t, i, &wrong };
      REQUIRE_INT(pthread_create(&threads[i], NULL, run_thread, &runners[i]), 0);
    }
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    SCENE_CHECK(atomic_load(&wrong) == 0, "%d are wrong", atomic_load(&wrong));
    te_fini(&t);
    SCENE_CHECK(strcmp(alive(), nothing) == 0, "%s", alive());
  }
  return 0;
}

/* ---- several devices ---- */

static int scene_two(void)
{
  te t;
  tn_eager_op *second;
  prepare_session(&t, TN_EAGER_EXPLICIT, false, false);
  REQUIRE_OK(tn_session_options_set_target(t.session_options, TARGET ",device=all", &t.err), &t.err);
  te_start(&t);
  if (tn_eager_op_create(t.session, "AddV2", "/device:GPU:1", NULL, 0, &second, &t.err) != TN_OK) {
    te_fini(&t);
    return 77;
  }
  tn_eager_handle x = on_gpu(&t, 3), y = copied(&t, x, "/device:GPU:1"), sum, back;
  REQUIRE_OK(call(&t, second, y, y, &sum), &t.err);
  SCENE_CHECK(strstr(device_of(&t, sum), "GPU:1") != NULL && is_there(&t, sum) && is_all(&t, sum, 6));
  SCENE_CHECK(tn_eager_add(t.session, x, y, &back, &t.err) == TN_INVALID_ARGUMENT);
  SCENE_CHECK(call(&t, second, x, y, &back) == TN_INVALID_ARGUMENT);
  REQUIRE_OK(tn_eager_add(t.session, sum, y, &sum, &t.err), &t.err);
  SCENE_CHECK(strstr(device_of(&t, sum), "GPU:1") != NULL && is_all(&t, sum, 9));
  back = copied(&t, sum, GPU0);
  REQUIRE_OK(tn_eager_add(t.session, back, x, &back, &t.err), &t.err);
  SCENE_CHECK(strcmp(device_of(&t, back), GPU0) == 0 && is_all(&t, back, 12));
  tn_eager_op_destroy(second);
  te_fini(&t);
  return 0;
}

static void gpu_eager__tensors_move_between_two_devices(void)
{
  static const char *const environment[] = { "POCL_DEVICES=basic pthread", NULL }; /* two devices on PoCL */
  const char *text;
  gpu_kit_begin();
  GPU_NEEDS_DEVICE();
  int status = gpu_kit_run("two", environment, &text);
  if (status == 77) TAP_SKIP("OpenCL has a single device");
  CHECK_MSG(status == 0, "%d: %s", status, text);
}

/* ---- policies ---- */

static struct { int n; char text[512]; } warned;

static void keep_warning(void *user, int32_t level, const char *line)
{
  (void)user;
  if (level != TN_LOG_WARNING) return;
  warned.n++;
  snprintf(warned.text, sizeof warned.text, "%s", line);
}

static int check_moved(te *t, bool allowed, const char *from, const char *to, tn_status st, tn_eager_handle sum)
{
  if (allowed) {
    SCENE_CHECK(st == TN_OK, "%s", tn_error_message(&t->err));
    SCENE_CHECK(strcmp(device_of(t, sum), to) == 0, "%s", device_of(t, sum));
    return 0;
  }
  SCENE_CHECK(st == TN_INVALID_ARGUMENT && sum.id == 0, "%d %s", (int)st, tn_error_message(&t->err));
  SCENE_CHECK(strstr(tn_error_message(&t->err), from) != NULL && strstr(tn_error_message(&t->err), to) != NULL, "%s",
              tn_error_message(&t->err));
  SCENE_CHECK(strstr(tn_error_message(&t->err), "tn_eager_copy_to_device") != NULL, "%s", tn_error_message(&t->err));
  return 0;
}

static int scene_policies(void) /* S-EAG-26 */
{
  static const int32_t seven[] = { 7 };
  SCENE_CHECK(attach());
  for (int32_t policy = TN_EAGER_SILENT; policy <= TN_EAGER_SILENT_FOR_INT32; policy++) {
    te t;
    open_with(&t, policy, false, policy == TN_EAGER_WARN);
    bool floats = policy == TN_EAGER_SILENT || policy == TN_EAGER_WARN, ints = policy != TN_EAGER_EXPLICIT;
    tn_eager_op *gpu = op_on(&t, "AddV2", GPU0), *cpu = op_on(&t, "AddV2", CPU0);
    tn_eager_handle host = vector(&t, 3), there = on_gpu(&t, 4), n = te_ints(&t, seven, 1),
                    n_there = copied(&t, n, GPU0), sum;
    warned.n = 0;
    tn_set_log_level(TN_LOG_WARNING);
    tn_set_log_sink(keep_warning, NULL);
    tn_status st = call(&t, gpu, there, host, &sum);
    if (check_moved(&t, floats, CPU0, GPU0, st, sum) != 0) return 1;
    if (floats) SCENE_CHECK(is_all(&t, sum, 7) && is_there(&t, sum));
    st = call(&t, cpu, there, host, &sum);
    if (check_moved(&t, floats, GPU0, CPU0, st, sum) != 0) return 1;
    if (floats) SCENE_CHECK(is_all(&t, sum, 7) && !is_there(&t, sum));
    SCENE_CHECK(warned.n == (policy == TN_EAGER_WARN ? 2 : 0), "%d lines", warned.n);
    st = call(&t, gpu, n, n_there, &sum);
    if (check_moved(&t, ints, CPU0, GPU0, st, sum) != 0) return 1;
    st = call(&t, cpu, n, n_there, &sum);
    if (check_moved(&t, ints, GPU0, CPU0, st, sum) != 0) return 1;
    st = tn_eager_add(t.session, host, there, &sum, &t.err); /* the default device, as its inputs are on several */
    if (check_moved(&t, floats, GPU0, CPU0, st, sum) != 0) return 1;
    tn_set_log_sink(NULL, NULL);
    tn_eager_op_destroy(gpu);
    tn_eager_op_destroy(cpu);
    te_fini(&t);
  }
  return 0;
}

/* ---- without a kernel ---- */

static int scene_soft(void) /* S-CFG-02, S-CFG-03 */
{
  SCENE_CHECK(attach());
  for (int soft = 0; soft < 2; soft++) {
    te t;
    open_with(&t, TN_EAGER_SILENT, soft, false);
    tn_eager_op *unique = op_on(&t, "InvertPermutation", "/device:GPU:0"),
                *anywhere = op_on(&t, "InvertPermutation", NULL);
    static const int32_t order[] = { 1, 2, 0 };
    tn_eager_handle host = te_ints(&t, order, 3), there = copied(&t, host, GPU0), out;
    for (int round = 0; round < 2; round++) {
      tn_status st = call(&t, unique, there, none, &out);
      SCENE_CHECK(st == (soft ? TN_OK : TN_INVALID_ARGUMENT), "%d %s", (int)st, tn_error_message(&t.err));
      if (soft) {
        SCENE_CHECK(strcmp(device_of(&t, out), CPU0) == 0 && !is_there(&t, out));
        tn_tensor *tensor;
        REQUIRE_OK(tn_eager_tensor(t.session, out, &tensor, &t.err), &t.err);
        SCENE_CHECK(((const int32_t *)tn_tensor_data(tensor))[1] == 0);
        tn_tensor_unref(tensor);
      } else {
        SCENE_CHECK(strstr(tn_error_message(&t.err), "'InvertPermutation' asks for device '/device:GPU:0'") != NULL,
                    "%s", tn_error_message(&t.err));
        SCENE_CHECK(strstr(tn_error_message(&t.err), "kernel") != NULL, "%s", tn_error_message(&t.err));
      }
    }
    out = called(&t, anywhere, there, none); /* no device was named: the default device */
    SCENE_CHECK(strcmp(device_of(&t, out), CPU0) == 0);
    tn_eager_op_destroy(unique);
    tn_eager_op_destroy(anywhere);
    te_fini(&t);
  }
  return 0;
}

/* A variable is on the CPU: values assigned to it are copied there, values read from it are
 * there. */
static int scene_variables(void)
{
  static const int64_t n[] = { N };
  static const tn_eager_attr attrs[] = { { .name = "shared_name", .kind = TN_ATTR_STRING, .at = "gpu_eager", .n = 9 },
                                         { .name = "dtype", .kind = TN_ATTR_TYPE, .i = TN_FLOAT },
                                         { .name = "shape", .kind = TN_ATTR_SHAPE, .rank = 1, .at = n } };
  SCENE_CHECK(attach());
  te t;
  open_with(&t, TN_EAGER_SILENT, true, false);
  tn_eager_op *make;
  tn_eager_handle variable, value, in[2], x = on_gpu(&t, 6);
  REQUIRE_OK(tn_eager_op_create(t.session, "VarHandleOp", GPU0, attrs, 3, &make, &t.err), &t.err);
  REQUIRE_OK(tn_eager_op_call(make, NULL, 0, &variable, 1, NULL, &t.err), &t.err);
  SCENE_CHECK(strcmp(device_of(&t, variable), CPU0) == 0);
  in[0] = variable;
  in[1] = x;
  REQUIRE_OK(tn_eager_call(t.session, "AssignVariableOp", attrs + 1, 1, in, 2, NULL, 0, NULL, &t.err), &t.err);
  te_release(&t, x);
  REQUIRE_OK(tn_eager_safe_point(t.session, &t.err), &t.err);
  REQUIRE_OK(tn_eager_call(t.session, "ReadVariableOp", attrs + 1, 1, &variable, 1, &value, 1, NULL, &t.err), &t.err);
  SCENE_CHECK(strcmp(device_of(&t, value), CPU0) == 0 && is_all(&t, value, 6));
  tn_eager_op_destroy(make);
  te_fini(&t);
  return 0;
}

/* ---- memory ---- */

static int scene_memory(void)
{
  SCENE_CHECK(attach());
  te t;
  open_with(&t, TN_EAGER_SILENT, false, false);
  tn_eager_handle x = on_gpu(&t, 2), y, kept;
  REQUIRE_OK(tn_eager_neg(t.session, x, &y, &t.err), &t.err);
  te_release(&t, y);
  REQUIRE_OK(tn_eager_safe_point(t.session, &t.err), &t.err);
  long made = calls_of("clCreateBuffer");
  for (int i = 0; i < 50; i++) { /* each reuses the memory of the one before */
    REQUIRE_OK(tn_eager_neg(t.session, x, &y, &t.err), &t.err);
    te_release(&t, y);
  }
  SCENE_CHECK(calls_of("clCreateBuffer") == made, "%ld", calls_of("clCreateBuffer") - made);
  cl.set("clCreateBuffer", 1, 1, NO_MEMORY);
  tn_status st = TN_OK;
  for (int i = 0; i < 4 && st == TN_OK; i++)
    st = tn_eager_neg(t.session, x, &y, &t.err); /* until the pool is exhausted */
  SCENE_CHECK(st == TN_RESOURCE_EXHAUSTED && y.id == 0, "%d %s", (int)st, tn_error_message(&t.err));
  st = TN_OK;
  for (int i = 0; i < 4 && st == TN_OK; i++) st = tn_eager_copy_to_device(t.session, vector(&t, 1), GPU0, &y, &t.err);
  SCENE_CHECK(st == TN_RESOURCE_EXHAUSTED && y.id == 0, "%d %s", (int)st, tn_error_message(&t.err));
  cl.set(NULL, 0, 0, 0);
  REQUIRE_OK(tn_eager_neg(t.session, x, &kept, &t.err), &t.err);
  SCENE_CHECK(is_all(&t, kept, -2));
  te_fini(&t);
  SCENE_CHECK(strcmp(alive(), nothing) == 0, "%s", alive());
  return 0;
}

/* The session's memory limit applies to device memory, too. Unused memory is freed before an
 * operation is refused. */
static int scene_limit(void)
{
  SCENE_CHECK(attach());
  te t;
  prepare_session(&t, TN_EAGER_SILENT, false, false);
  t.options.memory_limit_bytes = 64 * N * (int64_t)sizeof(float);
  te_start(&t);
  tn_eager_handle host = vector(&t, 1), there[100];
  for (int round = 0; round < 2; round++) {
    int n = 0;
    tn_status st = TN_OK;
    while (n < 100 && (st = tn_eager_copy_to_device(t.session, host, GPU0, &there[n], &t.err)) == TN_OK) n++;
    SCENE_CHECK(st == TN_RESOURCE_EXHAUSTED && n > 16 && n <= 64, "%d of them: %d %s", n, (int)st,
                tn_error_message(&t.err));
    for (int i = 0; i < n; i++) te_release(&t, there[i]);
  }
  te_fini(&t);
  return 0;
}

/* Tensors that the program has obtained outlive the session; all others are freed with it. */
static int scene_close(void)
{
  float found[N];
  SCENE_CHECK(attach());
  te t;
  open_with(&t, TN_EAGER_SILENT, false, false);
  tn_eager_handle x = on_gpu(&t, 2), y, z;
  tn_tensor *taken, *held;
  REQUIRE_OK(tn_eager_neg(t.session, x, &y, &t.err), &t.err);
  REQUIRE_OK(tn_eager_square(t.session, x, &z, &t.err), &t.err);
  REQUIRE_OK(tn_eager_detach(t.session, y, &taken, &t.err), &t.err);
  REQUIRE_OK(tn_eager_tensor(t.session, z, &held, &t.err), &t.err);
  REQUIRE_OK(tn_eager_session_close(t.session, &t.err), &t.err);
  REQUIRE_OK(tn_tensor_read(taken, found, sizeof found, &t.err), &t.err);
  SCENE_CHECK(found[N - 1] == -2, "%g", (double)found[N - 1]);
  te_fini(&t);
  tn_error err = TN_ERROR_INIT;
  REQUIRE_OK(tn_tensor_read(held, found, sizeof found, &err), &err);
  SCENE_CHECK(found[0] == 4, "%g", (double)found[0]);
  tn_tensor_unref(taken);
  SCENE_CHECK(strncmp(alive(), "contexts 1,", 11) == 0, "%s", alive());
  tn_tensor_unref(held);
  SCENE_CHECK(strcmp(alive(), nothing) == 0, "%s", alive());
  return 0;
}

/* ---- failures ---- */

/* A session from opening to closing: a tensor is copied to the device, two operations run, and
 * the result is copied back. */
static tn_status live(void *options)
{
  static const float data[N];
  static const int64_t dims[] = { N };
  tn_error err = TN_ERROR_INIT;
  tn_eager_session *session = NULL;
  tn_eager_handle host, x, y, z;
  tn_tensor *tensor = NULL;
  float found[N];
  tn_status st = tn_eager_session_create(options, &session, &err);
  if (st == TN_OK) st = tn_eager_from_data(session, TN_FLOAT, dims, 1, data, sizeof data, &host, &err);
  if (st == TN_OK) st = tn_eager_copy_to_device(session, host, GPU0, &x, &err);
  if (st == TN_OK) st = tn_eager_exp(session, x, &y, &err);
  if (st == TN_OK) st = tn_eager_neg(session, y, &z, &err);
  if (st == TN_OK) st = tn_eager_tensor(session, z, &tensor, &err);
  if (st == TN_OK) st = tn_tensor_read(tensor, found, sizeof found, &err);
  if (st == TN_OK && (found[0] != -1 || found[N - 1] != -1)) st = TN_DATA_LOSS;
  if (st != TN_OK) snprintf(warned.text, sizeof warned.text, "%s", tn_error_message(&err));
  tn_tensor_unref(tensor);
  tn_eager_session_destroy(session);
  tn_error_clear(&err);
  return st;
}

static int scene_faults(void)
{
  SCENE_CHECK(attach());
  te t;
  prepare_session(&t, TN_EAGER_EXPLICIT, false, false);
  for (int i = 0; i < 2; i++) SCENE_CHECK(live(&t.options) == TN_OK, "%s", warned.text);
  for (int i = 0; cl.function(i) != NULL; i++) {
    const char *function = cl.function(i);
    long n = -cl.calls(i);
    if (strncmp(function, "clGet", 5) == 0) continue; /* tested in tests/gpu/gpu_faults.c */
    SCENE_CHECK(live(&t.options) == TN_OK, "%s", warned.text);
    n += cl.calls(i);
    for (long k = 1; k <= n; k++) {
      uint64_t before = tn_test_live_blocks();
      cl.set(function, k, 0, OUT_OF_RESOURCES);
      tn_status st = live(&t.options);
      cl.set(NULL, 0, 0, 0);
      bool said = st == TN_OK ||
                  ((st == TN_UNAVAILABLE || st == TN_RESOURCE_EXHAUSTED) && strstr(warned.text, function) != NULL);
      SCENE_CHECK(said, "%s %ld: %d %s", function, k, (int)st, warned.text);
      SCENE_CHECK(strcmp(alive(), nothing) == 0, "%s %ld: %s", function, k, alive());
      SCENE_CHECK(live(&t.options) == TN_OK, "%s %ld, the next session: %s", function, k, warned.text);
      SCENE_CHECK(tn_test_live_blocks() <= before, "%s %ld", function, k);
    }
  }
  te_fini(&t);
  return 0;
}

/* ---- the tests ---- */

static const gpu_scene scenes[] = { { "chain", scene_chain },     { "moves", scene_moves },
                                    { "reading", scene_reading }, { "shapes", scene_shapes },
                                    { "brought", scene_brought }, { "policies", scene_policies },
                                    { "soft", scene_soft },       { "variables", scene_variables },
                                    { "memory", scene_memory },   { "close", scene_close },
                                    { "faults", scene_faults },   { "threads", scene_threads },
                                    { "limit", scene_limit },     { "two", scene_two } };

static void setup(void)
{
  gpu_kit_scenes("gpu_eager__a_chain_of_operations_stays_on_the_device", scenes, sizeof scenes / sizeof *scenes);
}

static void play(const char *scene)
{
  gpu_kit_play(scene, with_faults(NULL, NULL));
  gpu_kit_play(scene, with_faults("gpu", NULL));
}

#define TEST(name, scene)          \
  static void gpu_eager__##name(void) \
  {                                \
    gpu_kit_begin();               \
    GPU_NEEDS_DEVICE();            \
    play(scene);                   \
  }
TEST(a_chain_of_operations_stays_on_the_device, "chain")
TEST(copies_to_a_device_and_back_move_elements, "moves")
TEST(reading_copies, "reading")
TEST(shapes_are_read_on_the_host, "shapes")
TEST(what_no_kernel_makes_is_brought_there, "brought")
TEST(the_policy_says_what_is_copied, "policies")
TEST(without_a_kernel_it_runs_on_the_cpu_or_says_so, "soft")
TEST(variables_stay_on_the_cpu, "variables")
TEST(memory_is_used_again_and_its_end_is_said, "memory")
TEST(memory_has_the_sessions_limit, "limit")
TEST(tensors_outlive_the_session, "close")
TEST(threads_share_a_session, "threads")
TEST(each_call_may_fail, "faults")

static void gpu_eager__each_allocation_may_fail(void)
{
  gpu_kit_begin();
  GPU_NEEDS_DEVICE();
  te t;
  tn_set_log_level(TN_LOG_ERROR);
  prepare_session(&t, TN_EAGER_EXPLICIT, false, false);
  tn_test_oom_sweep(live, &t.options);
  te_fini(&t);
  tn_set_log_level(TN_LOG_WARNING);
}

TAP_MAIN_WITH(setup, NULL, TAP_TEST(gpu_eager__a_chain_of_operations_stays_on_the_device),
              TAP_TEST(gpu_eager__copies_to_a_device_and_back_move_elements), TAP_TEST(gpu_eager__reading_copies),
              TAP_TEST(gpu_eager__shapes_are_read_on_the_host),
              TAP_TEST(gpu_eager__what_no_kernel_makes_is_brought_there),
              TAP_TEST(gpu_eager__the_policy_says_what_is_copied),
              TAP_TEST(gpu_eager__without_a_kernel_it_runs_on_the_cpu_or_says_so),
              TAP_TEST(gpu_eager__variables_stay_on_the_cpu),
              TAP_TEST(gpu_eager__memory_is_used_again_and_its_end_is_said),
              TAP_TEST(gpu_eager__memory_has_the_sessions_limit), TAP_TEST(gpu_eager__tensors_outlive_the_session),
              TAP_TEST(gpu_eager__threads_share_a_session), TAP_TEST(gpu_eager__tensors_move_between_two_devices),
              TAP_TEST(gpu_eager__each_call_may_fail), TAP_TEST(gpu_eager__each_allocation_may_fail))
