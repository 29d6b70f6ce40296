/* SPDX-License-Identifier: Apache-2.0 */
/* Eager sessions on a runtime whose operations run on a device other than a CPU. The device here
 * is host memory under another name and has no kernel for Neg. Tested are the session's requests
 * to the runtime and its handling of the answers. */
#include <tenon/runtime.h>

#include "conformance/support/eager_kit.h"
#include "conformance/support/oom.h"

#define CPU0 "/job:localhost/replica:0/task:0/device:CPU:0"
#define AWAY "/job:localhost/replica:0/task:0/device:AWAY:0"

/* ---- the runtime ---- */

static struct {
  int prepared, prepared_on, copied;
  bool gives_nothing, has_no_more; /* return OK without a result; list no devices but CPUs */
} seen;
static int state;

static tn_status new_session(const tn_session_factory *self, const tn_session_options *options,
                             tn_runtime_session **out, tn_error *err)
{
  (void)self, (void)options, (void)err;
  *out = (tn_runtime_session *)(void *)&state;
  return TN_OK;
}
static tn_bool accept(const tn_session_factory *self, const tn_session_options *options)
{
  (void)self, (void)options;
  return 1;
}
static void destroy(const tn_session_factory *self, tn_runtime_session *session) { (void)self, (void)session; }

/* The CPU is not listed first. */
static tn_status list(const tn_session_factory *self, tn_runtime_session *session, size_t i, tn_device_info *out,
                      tn_error *err)
{
  (void)self, (void)session, (void)err;
  if (i > 1) return TN_OUT_OF_RANGE;
  out->name = i == 0 ? AWAY : CPU0;
  out->type = i == 0 ? "AWAY" : "CPU";
  out->model = i == 0 ? "pretended" : NULL;
  out->memory_bytes = i == 0 ? 1000 : 0;
  return TN_OK;
}

static tn_status prepare(const tn_session_factory *self, tn_runtime_session *session, const tn_plan *plan,
                         tn_executable **out, tn_error *err)
{
  (void)self, (void)session;
  seen.prepared++;
  return tn_kit_prepare(plan, TN_KIT_INLINE, out, err);
}

static tn_status prepare_on(const tn_session_factory *self, tn_runtime_session *session, const tn_plan *plan, size_t i,
                            tn_executable **out, tn_error *err)
{
  (void)self, (void)session;
  seen.prepared_on++;
  CHECK_INT(i, 0); /* an index into list's order, not the session's */
  for (size_t k = 0; k < tn_plan_n_instructions(plan); k++) {
    tn_plan_instruction in = { .struct_size = sizeof in };
    tn_status st = tn_plan_get_instruction(plan, k, &in, err);
    if (st != TN_OK) return st;
    CHECK_STR(tn_operation_device(in.op), AWAY);
    if (strcmp(tn_operation_type(in.op), "Neg") == 0) return tn_error_set(err, TN_UNIMPLEMENTED, "it cannot negate");
  }
  return seen.gives_nothing ? TN_OK : tn_kit_prepare(plan, TN_KIT_INLINE, out, err);
}

static tn_status copy(const tn_session_factory *self, tn_runtime_session *session, const tn_tensor *tensor, size_t i,
                      tn_tensor **out, tn_error *err)
{
  (void)self, (void)session;
  seen.copied++;
  CHECK_INT(i, 0);
  return seen.gives_nothing ? TN_OK : tn_tensor_copy(tensor, out, err);
}

static const void *extension(const tn_session_factory *self, const char *name, uint32_t version)
{
  static const tn_eager_runtime all = { .struct_size = TN_EAGER_RUNTIME_SIZE, .prepare_on = prepare_on, .copy = copy };
  static const tn_eager_runtime old = { .struct_size = TN_EAGER_RUNTIME_MIN_SIZE,
                                        .prepare_on = prepare_on,
                                        .copy = copy };
  (void)self;
  if (version != 1 || strcmp(name, TN_EAGER_EXTENSION) != 0) return NULL;
  return seen.has_no_more ? &old : &all;
}
static const tn_session_factory factory = { .struct_size = TN_SESSION_FACTORY_SIZE,
                                            .name = "test.away",
                                            .new_session = new_session,
                                            .accepts_options = accept,
                                            .destroy_session = destroy,
                                            .prepare = prepare,
                                            .list_devices = list,
                                            .get_extension = extension };

static void init_with(te *t, int32_t policy, bool soft)
{
  memset(&seen, 0, sizeof seen);
  te_init(t, "test.away", TN_EAGER_ON_SAFE_POINTS);
  REQUIRE_OK(tn_session_options_parse(t->session_options, "allow_soft_placement", soft ? "true" : "false", &t->err),
             &t->err);
  t->options.device_policy = policy;
}

static void setup(void) { (void)tn_runtime_register("test.away", &factory, NULL); }
static void teardown(void) { (void)tn_runtime_unregister("test.away", NULL); }

static const char *device_of(te *t, tn_eager_handle h)
{
  const char *name;
  CHECK_OK(tn_eager_device(t->session, h, &name, &t->err), &t->err);
  return name;
}

static tn_eager_handle away(te *t, float value)
{
  tn_eager_handle out;
  REQUIRE_OK(tn_eager_copy_to_device(t->session, te_scalar(t, value), AWAY, &out, &t->err), &t->err);
  return out;
}

/* ---- where operations run ---- */

static void eager_away__operations_run_where_their_inputs_are(void) /* S-EAG-26 */
{
  te t;
  init_with(&t, TN_EAGER_EXPLICIT, false);
  te_start(&t);
  tn_eager_handle host = te_scalar(&t, 1), x = away(&t, 3), y, z;
  CHECK_STR(device_of(&t, host), CPU0); /* CPUs come first in a session */
  CHECK_STR(device_of(&t, x), AWAY);
  CHECK_INT(seen.copied, 1);
  for (int i = 0; i < 3; i++) {
    REQUIRE_OK(tn_eager_add(t.session, x, x, &y, &t.err), &t.err);
    CHECK_STR(device_of(&t, y), AWAY);
    CHECK_DOUBLE(te_value(&t, y), 6, 0);
    REQUIRE_OK(tn_eager_add(t.session, host, host, &z, &t.err), &t.err);
    CHECK_STR(device_of(&t, z), CPU0);
  }
  CHECK_INT(seen.prepared_on, 1); /* plans are kept, one per device */
  CHECK_INT(seen.prepared, 1);
  CHECK_STATUS(tn_eager_add(t.session, host, x, &z, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), AWAY);
  CHECK_INT(seen.copied, 1);
  te_fini(&t);
}

static void eager_away__shape_operands_do_not_select_the_device(void)
{
  static const int32_t one[] = { 1 };
  te t;
  init_with(&t, TN_EAGER_EXPLICIT, false);
  te_start(&t);
  tn_eager_handle x = away(&t, 3), y, dims = te_ints(&t, one, 1);
  REQUIRE_OK(tn_eager_reshape(t.session, x, dims, &y, &t.err), &t.err);
  CHECK_STR(device_of(&t, y), AWAY);
  REQUIRE_OK(tn_eager_fill(t.session, dims, x, &y, &t.err), &t.err); /* also if the shape is the first input */
  CHECK_STR(device_of(&t, y), AWAY);
  te_fini(&t);
}

/* ---- without a kernel ---- */

static void eager_away__without_a_kernel_on_the_default_device(void) /* S-CFG-03 */
{
  for (int named = 0; named < 2; named++) {
    te t;
    tn_eager_op *neg;
    init_with(&t, TN_EAGER_SILENT, named);
    te_start(&t);
    tn_eager_handle x = away(&t, 3), y;
    REQUIRE_OK(tn_eager_op_create(t.session, "Neg", named ? AWAY : "", NULL, 0, &neg, &t.err), &t.err);
    for (int i = 0; i < 3; i++) {
      REQUIRE_OK(tn_eager_op_call(neg, &x, 1, &y, 1, NULL, &t.err), &t.err);
      CHECK_STR(device_of(&t, y), CPU0);
      CHECK_DOUBLE(te_value(&t, y), -3, 0);
    }
    CHECK_INT(seen.prepared_on, 1); /* remembered from then on */
    CHECK_INT(seen.prepared, 1);
    tn_eager_op_destroy(neg);
    te_fini(&t);
  }
}

static void eager_away__a_missing_kernel_is_an_error(void) /* S-CFG-02 */
{
  te t;
  tn_eager_op *neg;
  init_with(&t, TN_EAGER_SILENT, false);
  te_start(&t);
  tn_eager_handle x = away(&t, 3), y = { 7 };
  REQUIRE_OK(tn_eager_op_create(t.session, "Neg", "/device:AWAY:0", NULL, 0, &neg, &t.err), &t.err);
  CHECK_STATUS(tn_eager_op_call(neg, &x, 1, &y, 1, NULL, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "eager op 'Neg' asks for device '/device:AWAY:0'");
  CHECK_CONTAINS(tn_error_message(&t.err), "it cannot negate");
  CHECK_INT(y.id, 0);
  tn_eager_op_destroy(neg);
  te_fini(&t);
}

/* An operation moved to the default device is subject to the policy like any other. */
static void eager_away__the_policy_applies_to_moved_operations(void) /* S-EAG-26 */
{
  te t;
  init_with(&t, TN_EAGER_EXPLICIT, true);
  te_start(&t);
  tn_eager_handle x = away(&t, 3), y;
  CHECK_STATUS(tn_eager_neg(t.session, x, &y, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "'Neg' runs on '" CPU0 "', its input 0 (float32) is on '" AWAY "'");
  te_fini(&t);
}

/* ---- behaviour of runtimes ---- */

static void eager_away__a_runtime_without_the_calls_has_cpus_only(void) /* P-24 */
{
  te t;
  tn_eager_op *op;
  init_with(&t, TN_EAGER_SILENT, false);
  seen.has_no_more = true;
  te_start(&t);
  CHECK_STATUS(tn_eager_op_create(t.session, "Neg", AWAY, NULL, 0, &op, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_DOUBLE(te_value(&t, te_add(&t, te_scalar(&t, 1), te_scalar(&t, 2))), 3, 0);
  te_fini(&t);
}

static void eager_away__devices_are_listed_cpus_first(void) /* S-EAG-26, P-26 */
{
  te t;
  tn_device_info info = { .struct_size = sizeof info }, small = { .struct_size = 16, .type = "kept" };
  init_with(&t, TN_EAGER_SILENT, false);
  te_start(&t);
  REQUIRE_OK(tn_eager_session_device(t.session, 0, &info, &t.err), &t.err);
  CHECK_STR(info.name, CPU0);
  CHECK_STR(info.type, "CPU");
  REQUIRE_OK(tn_eager_session_close(t.session, &t.err), &t.err);
  REQUIRE_OK(tn_eager_session_device(t.session, 1, &info, &t.err), &t.err);
  CHECK_STR(info.name, AWAY);
  CHECK_STR(info.type, "AWAY");
  CHECK_STR(info.model, "pretended");
  CHECK_INT(info.memory_bytes, 1000);
  REQUIRE_OK(tn_eager_session_device(t.session, 1, &small, &t.err), &t.err);
  CHECK_STR(small.name, AWAY);
  CHECK_STR(small.type, "kept");
  CHECK_STATUS(tn_eager_session_device(t.session, 2, &info, &t.err), TN_OUT_OF_RANGE, &t.err);
  CHECK_STATUS(tn_eager_session_device(NULL, 0, &info, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STATUS(tn_eager_session_device(t.session, 0, NULL, &t.err), TN_INVALID_ARGUMENT, &t.err);
  te_fini(&t);
}

static void eager_away__device_filters_hide_devices(void) /* S-CFG-19 */
{
  te t;
  tn_eager_op *op;
  tn_eager_session *none;
  init_with(&t, TN_EAGER_SILENT, false);
  REQUIRE_OK(tn_session_options_parse(t.session_options, "device_filters", "/device:CPU:0", &t.err), &t.err);
  te_start(&t);
  CHECK_STATUS(tn_eager_op_create(t.session, "Neg", AWAY, NULL, 0, &op, &t.err), TN_INVALID_ARGUMENT, &t.err);
  REQUIRE_OK(tn_session_options_parse(t.session_options, "device_filters", AWAY, &t.err), &t.err);
  CHECK_STATUS(tn_eager_session_create(&t.options, &none, &t.err), TN_NOT_FOUND,
               &t.err); /* one must be a CPU: S-CFG-18 */
  te_fini(&t);
}

static void eager_away__ok_without_a_result_is_an_internal_error(void) /* P-63 */
{
  te t;
  tn_eager_op *add;
  init_with(&t, TN_EAGER_SILENT, true);
  te_start(&t);
  tn_eager_handle x = te_scalar(&t, 1), in[2] = { x, x }, y = { 7 };
  seen.gives_nothing = true;
  CHECK_STATUS(tn_eager_copy_to_device(t.session, x, AWAY, &y, &t.err), TN_INTERNAL, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "copy returned OK without a tensor");
  CHECK_INT(y.id, 0);
  REQUIRE_OK(tn_eager_op_create(t.session, "AddV2", AWAY, NULL, 0, &add, &t.err), &t.err);
  CHECK_STATUS(tn_eager_op_call(add, in, 2, &y, 1, NULL, &t.err), TN_INTERNAL, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "prepare_on returned OK without an executable");
  tn_eager_op_destroy(add);
  te_fini(&t);
}

static tn_status use(void *options)
{
  tn_error err = TN_ERROR_INIT;
  tn_eager_session *s;
  tn_eager_handle x, there, y, z;
  static const float one = 1;
  tn_status st = tn_eager_session_create(options, &s, &err);
  if (st == TN_OK) st = tn_eager_from_data(s, TN_FLOAT, NULL, 0, &one, sizeof one, &x, &err);
  if (st == TN_OK) st = tn_eager_copy_to_device(s, x, AWAY, &there, &err);
  if (st == TN_OK) st = tn_eager_add(s, there, there, &y, &err);
  if (st == TN_OK) st = tn_eager_neg(s, y, &z, &err);
  tn_eager_session_destroy(s);
  tn_error_clear(&err);
  return st;
}

static void eager_away__nothing_leaks_without_memory(void)
{
  te t;
  init_with(&t, TN_EAGER_SILENT, true);
  tn_test_oom_sweep(use, &t.options);
  te_fini(&t);
}

TAP_MAIN_WITH(setup, teardown, TAP_TEST(eager_away__operations_run_where_their_inputs_are),
              TAP_TEST(eager_away__shape_operands_do_not_select_the_device),
              TAP_TEST(eager_away__without_a_kernel_on_the_default_device),
              TAP_TEST(eager_away__a_missing_kernel_is_an_error),
              TAP_TEST(eager_away__the_policy_applies_to_moved_operations),
              TAP_TEST(eager_away__a_runtime_without_the_calls_has_cpus_only),
              TAP_TEST(eager_away__devices_are_listed_cpus_first), TAP_TEST(eager_away__device_filters_hide_devices),
              TAP_TEST(eager_away__ok_without_a_result_is_an_internal_error),
              TAP_TEST(eager_away__nothing_leaks_without_memory))
