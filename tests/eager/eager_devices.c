/* SPDX-License-Identifier: Apache-2.0 */
/* Eager sessions with several devices: where tensors are, where operations run, and the device
 * policy for inputs. */
#include "conformance/support/eager_kit.h"
#include "conformance/support/oom.h"

#define CPU0 "/job:localhost/replica:0/task:0/device:CPU:0"
#define CPU1 "/job:localhost/replica:0/task:0/device:CPU:1"

static void open_with(te *t, const char *runtime, int32_t policy, bool async)
{
  te_init(t, runtime, TN_EAGER_ON_SAFE_POINTS);
  REQUIRE_OK(tn_session_options_set_device_count(t->session_options, "CPU", 2, &t->err), &t->err);
  t->options.device_policy = policy;
  t->options.async = async;
  te_start(t);
}

static const char *device_of(te *t, tn_eager_handle h)
{
  const char *name;
  CHECK_OK(tn_eager_device(t->session, h, &name, &t->err), &t->err);
  return name;
}

static tn_eager_handle copied(te *t, tn_eager_handle h, const char *device)
{
  tn_eager_handle out;
  REQUIRE_OK(tn_eager_copy_to_device(t->session, h, device, &out, &t->err), &t->err);
  return out;
}

static tn_eager_op *op_on(te *t, const char *name, const char *device)
{
  tn_eager_op *op;
  REQUIRE_OK(tn_eager_op_create(t->session, name, device, NULL, 0, &op, &t->err), &t->err);
  return op;
}

static tn_eager_handle called(te *t, tn_eager_op *op, tn_eager_handle x, tn_eager_handle y)
{
  const tn_eager_handle in[] = { x, y };
  tn_eager_handle out;
  REQUIRE_OK(tn_eager_op_call(op, in, 2, &out, 1, NULL, &t->err), &t->err);
  return out;
}

static const void *address(te *t, tn_eager_handle h)
{
  tn_tensor *tensor;
  REQUIRE_OK(tn_eager_tensor(t->session, h, &tensor, &t->err), &t->err);
  const void *data = tn_tensor_data(tensor);
  tn_tensor_unref(tensor);
  return data;
}

/* ---- where tensors are ---- */

static void eager_devices__tensors_stay_where_they_were_created(void) /* S-EAG-26 */
{
  FOR_RUNTIMES(runtime)
  {
    for (int async = 0; async < 2; async++) {
      te t;
      open_with(&t, runtime, TN_EAGER_EXPLICIT, async);
      tn_eager_op *anywhere = op_on(&t, "AddV2", NULL), *second = op_on(&t, "AddV2", "/device:CPU:1");
      tn_eager_handle x = te_scalar(&t, 3), y = copied(&t, x, "/device:CPU:1"), z = copied(&t, y, "");
      CHECK_STR(device_of(&t, x), CPU0);
      CHECK_STR(device_of(&t, y), CPU1);
      CHECK_STR(device_of(&t, z), CPU0);
      CHECK(address(&t, y) == address(&t, x)); /* both are in host memory */
      tn_eager_handle sum = called(&t, second, y, y), more = called(&t, anywhere, sum, y), back = te_add(&t, x, z);
      CHECK_STR(device_of(&t, sum), CPU1);
      CHECK_STR(device_of(&t, more), CPU1); /* the device of its inputs */
      CHECK_STR(device_of(&t, back), CPU0);
      CHECK_DOUBLE(te_value(&t, more), 9, 0);
      CHECK_DOUBLE(te_value(&t, back), 6, 0);
      te_release(&t, y);
      REQUIRE_OK(tn_eager_safe_point(t.session, &t.err), &t.err);
      for (int i = 0; i < 100; i++) CHECK_STR(device_of(&t, te_scalar(&t, 1)), CPU0); /* may reuse the place of y */
      tn_eager_op_destroy(anywhere);
      tn_eager_op_destroy(second);
      te_fini(&t);
    }
  }
}

static void eager_devices__bad_handles_have_no_device(void)
{
  te t;
  const char *name = "";
  open_with(&t, te_runtime(0), TN_EAGER_SILENT, false);
  tn_eager_handle x = te_scalar(&t, 3);
  CHECK_STATUS(tn_eager_device(t.session, (tn_eager_handle){ 77 }, &name, &t.err), TN_FAILED_PRECONDITION, &t.err);
  CHECK_NULL(name);
  CHECK_STATUS(tn_eager_device(NULL, x, &name, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STATUS(tn_eager_device(t.session, x, NULL, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STATUS(tn_eager_op_create(t.session, "Neg", "/device:CPU:2", NULL, 0, &(tn_eager_op *){ NULL }, &t.err),
               TN_INVALID_ARGUMENT, &t.err);
  te_release(&t, x);
  CHECK_STATUS(tn_eager_device(t.session, x, &name, &t.err), TN_FAILED_PRECONDITION, &t.err);
  REQUIRE_OK(tn_eager_session_close(t.session, &t.err), &t.err);
  CHECK_STATUS(tn_eager_device(t.session, x, &name, &t.err), TN_FAILED_PRECONDITION, &t.err); /* S-EAG-18 */
  te_fini(&t);
}

/* ---- policies ---- */

static struct { int n; char text[512]; } lines;

static void keep_line(void *user, int32_t level, const char *line)
{
  (void)user;
  if (level != TN_LOG_WARNING) return;
  lines.n++;
  snprintf(lines.text, sizeof lines.text, "%s", line);
}

static void check_refused(te *t, tn_eager_op *op, tn_eager_handle x, tn_eager_handle y, const char *dtype)
{
  const tn_eager_handle in[] = { x, y };
  tn_eager_handle out = { 9 };
  CHECK_STATUS(tn_eager_op_call(op, in, 2, &out, 1, NULL, &t->err), TN_INVALID_ARGUMENT, &t->err);
  CHECK_INT(out.id, 0);
  CHECK_CONTAINS(tn_error_message(&t->err), "'AddV2'");
  CHECK_CONTAINS(tn_error_message(&t->err), "input 1");
  CHECK_CONTAINS(tn_error_message(&t->err), dtype);
  CHECK_CONTAINS(tn_error_message(&t->err), CPU0);
  CHECK_CONTAINS(tn_error_message(&t->err), CPU1);
}

static void eager_devices__the_policy_decides_about_copies(void) /* S-EAG-26 */
{
  static const int32_t seven[] = { 7 };
  FOR_RUNTIMES(runtime)
  {
    for (int32_t policy = TN_EAGER_SILENT; policy <= TN_EAGER_SILENT_FOR_INT32; policy++) {
      for (int async = 0; async < 2; async++) {
        te t;
        open_with(&t, runtime, policy, async);
        tn_eager_op *first = op_on(&t, "AddV2", "/device:CPU:0");
        tn_eager_handle x = te_scalar(&t, 3), n = te_ints(&t, seven, 1);
        tn_eager_handle x1 = copied(&t, x, "/device:CPU:1"), n1 = copied(&t, n, CPU1), sum;
        bool floats = policy == TN_EAGER_SILENT || policy == TN_EAGER_WARN, ints = policy != TN_EAGER_EXPLICIT;
        lines.n = 0;
        tn_set_log_sink(keep_line, NULL);
        if (floats) {
          sum = called(&t, first, x, x1);
          CHECK_STR(device_of(&t, sum), CPU0);
          CHECK_DOUBLE(te_value(&t, sum), 6, 0);
        } else {
          check_refused(&t, first, x, x1, "float32");
        }
        CHECK_INT(lines.n, policy == TN_EAGER_WARN);
        if (policy == TN_EAGER_WARN)
          CHECK_CONTAINS(lines.text, "'AddV2' runs on '" CPU0 "', its input 1 (float32) is copied from '" CPU1 "'");
        if (ints) CHECK_STR(device_of(&t, called(&t, first, n, n1)), CPU0);
        else check_refused(&t, first, n, n1, "int32");
        CHECK_INT(lines.n, policy == TN_EAGER_WARN ? 2 : 0);
        CHECK_DOUBLE(te_value(&t, called(&t, first, x, copied(&t, x1, "/device:CPU:0"))), 6, 0); /* explicit copy */
        tn_set_log_sink(NULL, NULL);
        tn_eager_op_destroy(first);
        te_fini(&t);
      }
    }
  }
}

/* An operation without a device runs on the default device if its inputs are on several. */
static void eager_devices__the_policy_applies_to_operations_without_a_device(void) /* S-EAG-26 */
{
  te t;
  open_with(&t, te_runtime(0), TN_EAGER_EXPLICIT, false);
  tn_eager_op *anywhere = op_on(&t, "AddV2", "");
  tn_eager_handle x = te_scalar(&t, 3), y = copied(&t, x, "/device:CPU:1"), in[] = { y, x }, out;
  check_refused(&t, anywhere, x, y, "float32");
  CHECK_STATUS(tn_eager_call(t.session, "AddV2", NULL, 0, in, 2, &out, 1, NULL, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "input 0");
  CHECK_CONTAINS(tn_error_message(&t.err), "tn_eager_copy_to_device");
  tn_eager_op_destroy(anywhere);
  te_fini(&t);
}

static void eager_devices__operations_run_on_the_device_of_the_resource(void) /* S-EAG-26 */
{
  static const tn_eager_attr attrs[] = {
    { .name = "shared_name", .kind = TN_ATTR_STRING, .at = "device_state", .n = 12 },
    { .name = "dtype", .kind = TN_ATTR_TYPE, .i = TN_FLOAT },
    { .name = "shape", .kind = TN_ATTR_SHAPE, .rank = 0 }
  };
  FOR_RUNTIMES(runtime)
  {
    te t;
    tn_eager_op *make, *read;
    tn_eager_handle variable, value;
    open_with(&t, runtime, TN_EAGER_EXPLICIT, false);
    REQUIRE_OK(tn_eager_op_create(t.session, "VarHandleOp", CPU1, attrs, 3, &make, &t.err), &t.err);
    REQUIRE_OK(tn_eager_op_create(t.session, "ReadVariableOp", CPU0, attrs + 1, 1, &read, &t.err), &t.err);
    REQUIRE_OK(tn_eager_op_call(make, NULL, 0, &variable, 1, NULL, &t.err), &t.err);
    CHECK_STR(device_of(&t, variable), CPU1);
    tn_eager_handle x = te_scalar(&t, 5), assign[] = { variable, x };
    CHECK_STATUS(tn_eager_call(t.session, "AssignVariableOp", attrs + 1, 1, assign, 2, NULL, 0, NULL, &t.err),
                 TN_INVALID_ARGUMENT, &t.err);
    assign[1] = copied(&t, x, CPU1);
    REQUIRE_OK(tn_eager_call(t.session, "AssignVariableOp", attrs + 1, 1, assign, 2, NULL, 0, NULL, &t.err), &t.err);
    REQUIRE_OK(tn_eager_call(t.session, "ReadVariableOp", attrs + 1, 1, &variable, 1, &value, 1, NULL, &t.err), &t.err);
    CHECK_STR(device_of(&t, value), CPU1);
    REQUIRE_OK(tn_eager_op_call(read, &variable, 1, &value, 1, NULL, &t.err), &t.err); /* a resource is not copied */
    CHECK_STR(device_of(&t, value), CPU0);
    CHECK_DOUBLE(te_value(&t, value), 5, 0);
    tn_eager_op_destroy(make);
    tn_eager_op_destroy(read);
    te_fini(&t);
  }
}

/* ---- options ---- */

static void eager_devices__options_choose_the_devices(void) /* S-CFG-18, S-CFG-19 */
{
  te t;
  tn_eager_session *none;
  tn_eager_op *op;
  te_init(&t, te_runtime(0), TN_EAGER_ON_SAFE_POINTS);
  REQUIRE_OK(tn_session_options_set_device_count(t.session_options, "CPU", 3, &t.err), &t.err);
  REQUIRE_OK(tn_session_options_parse(t.session_options, "device_filters", "/device:CPU:1,/device:CPU:2", &t.err),
             &t.err);
  te_start(&t);
  CHECK_STR(device_of(&t, te_scalar(&t, 1)), CPU1); /* the first visible device */
  CHECK_STATUS(tn_eager_op_create(t.session, "Neg", CPU0, NULL, 0, &op, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), CPU0);
  REQUIRE_OK(tn_session_options_parse(t.session_options, "device_filters", "/device:GPU:0", &t.err), &t.err);
  CHECK_STATUS(tn_eager_session_create(&t.options, &none, &t.err), TN_NOT_FOUND, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "device_filters");
  REQUIRE_OK(tn_session_options_parse(t.session_options, "device_filters", "", &t.err), &t.err);
  REQUIRE_OK(tn_session_options_set_device_count(t.session_options, "CPU", 0, &t.err), &t.err);
  CHECK_STATUS(tn_eager_session_create(&t.options, &none, &t.err), TN_NOT_FOUND, &t.err);
  CHECK_NULL(none);
  te_fini(&t);
}

static tn_status use(void *arg)
{
  tn_error err = TN_ERROR_INIT;
  tn_eager_session *s;
  tn_eager_op *op = NULL;
  tn_eager_handle x, in[2] = { { 0 } }, out;
  static const float one = 1;
  tn_status st = tn_eager_session_create(arg, &s, &err);
  if (st == TN_OK) st = tn_eager_from_data(s, TN_FLOAT, NULL, 0, &one, sizeof one, &x, &err);
  if (st == TN_OK) st = tn_eager_op_create(s, "AddV2", CPU1, NULL, 0, &op, &err);
  if (st == TN_OK) st = tn_eager_copy_to_device(s, x, CPU1, &in[0], &err);
  in[1] = in[0];
  if (st == TN_OK) st = tn_eager_op_call(op, in, 2, &out, 1, NULL, &err);
  tn_eager_op_destroy(op);
  tn_eager_session_destroy(s);
  tn_error_clear(&err);
  return st;
}

static void eager_devices__nothing_leaks_without_memory(void)
{
  te t;
  te_init(&t, te_runtime(0), TN_EAGER_ON_SAFE_POINTS);
  REQUIRE_OK(tn_session_options_set_device_count(t.session_options, "CPU", 2, &t.err), &t.err);
  tn_test_oom_sweep(use, &t.options);
  te_fini(&t);
}

TAP_MAIN(TAP_TEST(eager_devices__tensors_stay_where_they_were_created),
         TAP_TEST(eager_devices__bad_handles_have_no_device),
         TAP_TEST(eager_devices__the_policy_decides_about_copies),
         TAP_TEST(eager_devices__the_policy_applies_to_operations_without_a_device),
         TAP_TEST(eager_devices__operations_run_on_the_device_of_the_resource),
         TAP_TEST(eager_devices__options_choose_the_devices),
         TAP_TEST(eager_devices__nothing_leaks_without_memory))
