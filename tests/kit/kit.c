/* SPDX-License-Identifier: Apache-2.0 */
/* The kit as seen by a runtime that reads the plan and computes by itself (level (c)), and the
 * session layer's handling of a runtime that breaks the contract. */
#include <pthread.h>
#include <stdlib.h>

#include <tenon/runtime.h>

#include "conformance/support/blocked_kit.h"
#include "conformance/support/partial_kit.h"
#include "tests/support/plugin_files.h"

/* ---- a runtime of the test's own ---- */

enum { RIGHT, NOTHING_SET, WRONG_TYPE, MUTTERS, NO_STATUS, FAILS_MUTELY, WAITS, ASKS };

static struct {
  int mode;
  atomic_int told, at_work, alive;
} own;

struct tn_runtime_session {
  int unused;
};

struct tn_executable {
  const tn_plan *plan;
};

static tn_status new_session(const tn_session_factory *self, const tn_session_options *options,
                             tn_runtime_session **out, tn_error *err)
{
  *out = tn_alloc(sizeof **out);
  return *out != NULL ? TN_OK : tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory");
}

static tn_bool accepts_options(const tn_session_factory *self, const tn_session_options *options) { return 1; }

static void destroy_session(const tn_session_factory *self, tn_runtime_session *session) { tn_free(session); }

static tn_status prepare(const tn_session_factory *self, tn_runtime_session *session, const tn_plan *plan,
                         tn_executable **out, tn_error *err)
{
  *out = tn_alloc(sizeof **out);
  if (*out == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory");
  (*out)->plan = plan;
  atomic_fetch_add(&own.alive, 1);
  return TN_OK;
}

static void release(const tn_session_factory *self, tn_runtime_session *session, tn_executable *executable)
{
  atomic_fetch_sub(&own.alive, 1);
  tn_free(executable);
}

static float apply(const char *op, float a, float b)
{
  if (strcmp(op, "AddV2") == 0) return a + b;
  if (strcmp(op, "Mul") == 0) return a * b;
  return strcmp(op, "Neg") == 0 ? -a : a;
}

/* Scalars only: adds, multiplies and negates with code of its own, as a device would. */
static tn_status compute(const tn_plan *plan, tn_step *step, float *values, tn_error *err)
{
  for (size_t i = 0; i < tn_plan_n_values(plan); i++) {
    tn_plan_value v = { .struct_size = sizeof v };
    tn_status st = tn_plan_get_value(plan, i, &v, err);
    if (st != TN_OK) return st;
    const tn_tensor *t = v.kind == TN_VALUE_FEED ? tn_step_input(step, v.index) : v.constant;
    if (v.kind != TN_VALUE_COMPUTED) values[i] = ts_float(t);
  }
  for (size_t i = 0; i < tn_plan_n_instructions(plan); i++) {
    tn_plan_instruction in = { .struct_size = sizeof in };
    tn_status st = tn_plan_get_instruction(plan, i, &in, err);
    if (st != TN_OK) return st;
    float a = in.n_inputs > 0 ? values[in.inputs[0]] : 0, b = in.n_inputs > 1 ? values[in.inputs[1]] : 0;
    if (in.n_outputs == 0) continue;
    values[in.outputs[0]] = apply(tn_operation_type(in.op), a, b);
  }
  return TN_OK;
}

static tn_status give(tn_step *step, size_t o, float value, tn_error *err)
{
  tn_tensor *t = tn_step_output(step, o);
  if (t != NULL) {
    *(float *)tn_tensor_data(t) = value;
    return TN_OK;
  }
  int32_t number = (int32_t)value;
  bool right = own.mode != WRONG_TYPE;
  tn_status st = tn_tensor_from_data(right ? TN_FLOAT : TN_INT32, NULL, 0, right ? (void *)&value : (void *)&number,
                                     sizeof value, &t, err);
  if (st == TN_OK) tn_step_set_output(step, o, t);
  return st;
}

static tn_status step(const tn_session_factory *self, tn_runtime_session *session, tn_executable *executable,
                      tn_step *step, tn_error *err)
{
  const tn_plan *plan = executable->plan;
  float values[64];
  CHECK(tn_plan_n_values(plan) <= 64);
  CHECK_INT(tn_step_n_inputs(step), tn_plan_n_inputs(plan));
  CHECK_INT(tn_step_n_outputs(step), tn_plan_n_outputs(plan));
  CHECK_NULL(tn_step_input(step, tn_step_n_inputs(step)));
  CHECK_NULL(tn_step_output(step, tn_step_n_outputs(step)));
  if (own.mode == NOTHING_SET) return TN_OK;
  if (own.mode == NO_STATUS) return -7;
  if (own.mode == FAILS_MUTELY) return TN_ABORTED;
  if (own.mode == MUTTERS) tn_error_set(err, TN_UNKNOWN, "this does not matter");
  tn_error inner = TN_ERROR_INIT;
  tn_status st = compute(plan, step, values, &inner);
  for (size_t o = 0; st == TN_OK && o < tn_plan_n_outputs(plan); o++)
    st = give(step, o, values[tn_plan_output(plan, o)], &inner);
  atomic_store(&own.at_work, 1);
  while (own.mode == WAITS && atomic_load(&own.told) == 0) ts_sleep_ms(1); /* the values are computed */
  while (own.mode == ASKS && !tn_step_cancelled(step)) ts_sleep_ms(1);
  tn_error_clear(&inner);
  return st;
}

static void told(const tn_session_factory *self, tn_runtime_session *session, tn_step *step)
{
  CHECK(tn_step_cancelled(step));
  atomic_fetch_add(&own.told, 1);
}

static tn_status list_devices(const tn_session_factory *self, tn_runtime_session *session, size_t i,
                              tn_device_info *out, tn_error *err)
{
  if (i > 1) return TN_OUT_OF_RANGE;
  out->name = i == 0 ? "/device:OWN:0" : NULL;
  out->type = "OWN";
  out->memory_bytes = 77;
  out->model = "Own 7";
  return TN_OK;
}

static const tn_session_factory factory = {
  .struct_size = TN_SESSION_FACTORY_SIZE,
  .name = "test.own",
  .new_session = new_session,
  .accepts_options = accepts_options,
  .destroy_session = destroy_session,
  .prepare = prepare,
  .release = release,
  .step = step,
  .cancel = told,
  .list_devices = list_devices,
};

static void open_own(ts *t, int mode, int level)
{
  static bool registered;
  ts_init(t, level);
  if (!registered) REQUIRE_OK(tn_runtime_register("test.own", &factory, &t->err), &t->err);
  registered = true;
  own.mode = mode;
  atomic_store(&own.told, 0);
  atomic_store(&own.at_work, 0);
  REQUIRE_OK(tn_session_options_set_target(t->options, "test.own", &t->err), &t->err);
  /* this runtime knows ops by name, and only those of the program */
  REQUIRE_OK(tn_session_options_set_string(t->options, "disable_passes", "cell,fuse,elementwise", &t->err), &t->err);
  ts_usual_graph(t->graph);
  ts_start(t);
}

/* ---- level (c) ---- */

static void kit__a_runtime_executes_the_plan_itself(void)
{
  FOR_LEVELS(level) {
    ts t;
    open_own(&t, RIGHT, level);
    tn_tensor *out[2];
    REQUIRE_OK(ts_run(&t, FEEDS({ "x", 3 }, { "y", 4 }), NAMES("neg", "twice"), out, NULL), &t.err);
    CHECK_DOUBLE(ts_float(out[0]), -3, 0);
    CHECK_DOUBLE(ts_float(out[1]), 14, 0);
    tn_tensor_unref(out[0]);
    tn_tensor_unref(out[1]);
    ts_fini(&t);
    CHECK_INT(atomic_load(&own.alive), 0);
  }
}

static void kit__a_runtime_writes_into_given_tensors(void) /* S-CAL-05 */
{
  ts t;
  open_own(&t, RIGHT, 1);
  const char *feeds[] = { "x", "y" }, *fetches[] = { "twice", "neg", "twice" };
  tn_callable callable;
  REQUIRE_OK(tn_session_make_callable(t.session, NULL, feeds, 2, fetches, 3, NULL, 0, &callable, &t.err), &t.err);
  tn_tensor *in[] = { ts_scalar(1), ts_scalar(2) }, *given = ts_scalar(0), *out[] = { NULL, NULL, given };
  CHECK_OK(tn_session_run_callable(t.session, callable, in, 2, out, 3, NULL, &t.err), &t.err);
  CHECK_DOUBLE(ts_float(out[0]), 6, 0);
  CHECK_DOUBLE(ts_float(out[1]), -1, 0);
  CHECK(out[2] == given);
  CHECK_DOUBLE(ts_float(given), 6, 0);
  for (int i = 0; i < 3; i++) tn_tensor_unref(out[i]);
  tn_tensor_unref(in[0]);
  tn_tensor_unref(in[1]);
  ts_fini(&t);
}

/* ---- breaches of the contract ---- */

static void kit__breaches_of_contract_are_internal_errors(void) /* S-ERR-02, S-RUN-08 */
{
  static const struct {
    int mode;
    tn_status code;
    const char *says;
  } cases[] = { { NOTHING_SET, TN_INTERNAL, "without fetch" },
                { WRONG_TYPE, TN_INTERNAL, "as int32, but it is float32" },
                { NO_STATUS, TN_INTERNAL, "-7" },
                { FAILS_MUTELY, TN_ABORTED, "test.own" },
                { MUTTERS, TN_OK, "" } };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ts t;
    tn_tensor *out = NULL;
    open_own(&t, cases[i].mode, 1);
    CHECK_STATUS(ts_run(&t, FEEDS({ "x", 3 }), NAMES("neg"), &out, NULL), cases[i].code, &t.err);
    CHECK_INT(tn_error_code(&t.err), cases[i].code);
    CHECK_CONTAINS(tn_error_message(&t.err), cases[i].says);
    CHECK((out != NULL) == (cases[i].code == TN_OK));
    tn_tensor_unref(out);
    ts_fini(&t);
  }
}

static void *close_at_work(void *session)
{
  while (atomic_load(&own.at_work) == 0) ts_sleep_ms(1);
  CHECK_INT(tn_session_close(session, NULL), TN_OK);
  return NULL;
}

/* S-LIFE-04: notified once, and cancelled although all was computed */
static void kit__a_close_cancels_a_step_at_its_end(void)
{
  ts t;
  pthread_t thread;
  tn_tensor *out = NULL;
  open_own(&t, WAITS, 1);
  REQUIRE_INT(pthread_create(&thread, NULL, close_at_work, t.session), 0);
  CHECK_STATUS(ts_run(&t, FEEDS({ "x", 3 }), NAMES("neg"), &out, NULL), TN_CANCELLED, &t.err);
  pthread_join(thread, NULL);
  CHECK_NULL(out);
  CHECK_INT(atomic_load(&own.told), 1);
  ts_fini(&t);
}

static void *cancel_at_work(void *token)
{
  while (atomic_load(&own.at_work) == 0) ts_sleep_ms(1);
  tn_cancellation_cancel(token);
  return NULL;
}

/* The session layer implements the options of steps, for this runtime as for Tenon's own. */
static void kit__options_of_steps_hold_in_every_runtime(void) /* S-RO-02, S-RO-03, S-RO-09, S-RO-11, S-RO-15 */
{
  ts t;
  pthread_t thread;
  tn_tensor *x = ts_scalar(3), *out = NULL;
  const char *feed = "x", *fetch = "neg";
  tn_run_options options;
  open_own(&t, ASKS, 1);
#define RUN_WITH(code)                                                                                          \
  CHECK_STATUS(tn_session_run(t.session, &options, &feed, &x, 1, &fetch, &out, 1, NULL, 0, NULL, &t.err), code, \
               &t.err);                                                                                         \
  CHECK_NULL(out)
  tn_run_options_init(&options);
  options.trace_level = 4;
  RUN_WITH(TN_INVALID_ARGUMENT);
  tn_run_options_init(&options);
  options.inter_op_pool = 7;
  RUN_WITH(TN_INVALID_ARGUMENT);
  CHECK_INT(atomic_load(&own.at_work), 0); /* it was not notified of these */
  tn_run_options_init(&options);
  options.timeout_ms = 30;
  int64_t begun = ts_now_ms();
  RUN_WITH(TN_DEADLINE_EXCEEDED);
  CHECK(ts_now_ms() - begun >= 29);
  tn_run_options_init(&options);
  REQUIRE_OK(tn_cancellation_create(NULL, &options.cancellation, &t.err), &t.err);
  atomic_store(&own.at_work, 0);
  REQUIRE_INT(pthread_create(&thread, NULL, cancel_at_work, options.cancellation), 0);
  RUN_WITH(TN_CANCELLED);
  pthread_join(thread, NULL);
  CHECK_INT(atomic_load(&own.told), 1); /* of the cancellation; the runtime has to check a time limit itself */
  tn_cancellation_unref(options.cancellation);
  own.mode = RIGHT;
  CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 3 }), "neg"), -3, 0);
  tn_tensor_unref(x);
  ts_fini(&t);
}

static void kit__devices_of_a_runtime(void) /* P-26: an older program's struct is not written past its end */
{
  ts t;
  open_own(&t, RIGHT, 1);
  tn_device_info d = { .struct_size = TN_SIZE_TO(tn_device_info, type), .memory_bytes = 5 };
  CHECK_OK(tn_session_device(t.session, 0, &d, &t.err), &t.err);
  CHECK_STR(d.name, "/device:OWN:0");
  CHECK_INT(d.struct_size, TN_SIZE_TO(tn_device_info, type));
  CHECK_INT(d.memory_bytes, 5);
  d.struct_size = sizeof d;
  CHECK_OK(tn_session_device(t.session, 0, &d, &t.err), &t.err);
  CHECK_INT(d.memory_bytes, 77);
  CHECK_STR(d.model, "Own 7");
  CHECK_STATUS(tn_session_device(t.session, 1, &d, &t.err), TN_INTERNAL, &t.err); /* it did not set a name */
  CHECK_STATUS(tn_session_device(t.session, 2, &d, &t.err), TN_OUT_OF_RANGE, &t.err);
  d.struct_size = 0;
  CHECK_STATUS(tn_session_device(t.session, 0, &d, &t.err), TN_INVALID_ARGUMENT, &t.err);
  ts_fini(&t);
}

/* ---- contents of plans ---- */

static const tn_plan *seen_plan;

static tn_status look(const tn_session_factory *self, tn_runtime_session *session, const tn_plan *plan,
                      tn_executable **out, tn_error *err)
{
  tn_status st = prepare(self, session, plan, out, err);
  seen_plan = plan;
  return st;
}

/* Number of the instruction of a node, -1 for none. */
static int instruction_of(const char *node)
{
  for (size_t i = 0; i < tn_plan_n_instructions(seen_plan); i++) {
    tn_plan_instruction in = { .struct_size = sizeof in };
    if (tn_plan_get_instruction(seen_plan, i, &in, NULL) == TN_OK && strcmp(tn_operation_name(in.op), node) == 0)
      return (int)i;
  }
  return -1;
}

/* Whether an instruction has to wait for another one, judged by the plan's values and control
 * edges. */
static bool waits_for(int late, int early)
{
  tn_plan_instruction in = { .struct_size = sizeof in };
  if (late == early) return true;
  if (late < 0 || tn_plan_get_instruction(seen_plan, (size_t)late, &in, NULL) != TN_OK) return false;
  for (uint32_t i = 0; i < in.n_after; i++)
    if (waits_for((int)in.after[i], early)) return true;
  for (uint32_t i = 0; i < in.n_inputs; i++) {
    tn_plan_value v = { .struct_size = sizeof v };
    if (tn_plan_get_value(seen_plan, in.inputs[i], &v, NULL) == TN_OK && v.kind == TN_VALUE_COMPUTED &&
        waits_for((int)v.producer, early))
      return true;
  }
  return false;
}

static tn_operation *controlled(tn_graph *graph, const char *op, const char *name, tn_output x, tn_operation *control)
{
  tn_error err = TN_ERROR_INIT;
  tn_operation *made = NULL;
  tn_operation_builder *b = tn_operation_begin(graph, op, name, 0);
  if (x.op != NULL) tn_operation_add_input(b, x);
  if (control != NULL) tn_operation_add_control_input(b, control);
  if (x.op == NULL) {
    tn_tensor *one = ts_scalar(1);
    tn_operation_set_type(b, "dtype", TN_FLOAT);
    tn_operation_set_tensor(b, "value", one);
    tn_tensor_unref(one);
  }
  REQUIRE_OK(tn_operation_finish(b, &made, &err), &err);
  tn_error_clear(&err);
  return made;
}

/* A node that is reduced to a value still orders its successors. */
static void kit__plans_keep_the_order_of_control_edges(void) /* S-EXE-01, S-EXE-02 */
{
  FOR_LEVELS(level) {
    static tn_session_factory watching;
    ts t;
    ts_init(&t, level);
    if (watching.name == NULL) {
      watching = factory;
      watching.name = "test.look";
      watching.prepare = look;
      REQUIRE_OK(tn_runtime_register("test.look", &watching, &t.err), &t.err);
    }
    own.mode = RIGHT;
    REQUIRE_OK(tn_session_options_set_target(t.options, "test.look", &t.err), &t.err);
    tn_output x = ts_placeholder(t.graph, "x", TN_FLOAT);
    tn_operation *effect = ts_test_op(t.graph, "TestEffect", "effect", NULL, 0, NULL, 0);
    tn_output after = { controlled(t.graph, "Identity", "after", x, effect), 0 };
    ts_op1(t.graph, "Neg", "reads_after", after);
    tn_output one = { controlled(t.graph, "Const", "one", (tn_output){ NULL, 0 }, effect), 0 };
    ts_op2(t.graph, "AddV2", "reads_one", ts_op1(t.graph, "Identity", "same", one), x);
    tn_output squared = ts_op1(t.graph, "Square", "squared", x);
    tn_output passed = ts_op1(t.graph, "Identity", "passed", squared);
    controlled(t.graph, "Neg", "waits", x, passed.op);
    ts_start(&t);
    tn_tensor *out[3];
    REQUIRE_OK(ts_run(&t, FEEDS({ "x", 3 }), NAMES("reads_after", "reads_one", "waits"), out, NULL), &t.err);
    for (int i = 0; i < 3; i++) tn_tensor_unref(out[i]);
    CHECK(waits_for(instruction_of("reads_after"), instruction_of("effect")));
    CHECK(waits_for(instruction_of("reads_one"), instruction_of("effect")));
    CHECK(waits_for(instruction_of("waits"), instruction_of("squared")));
    CHECK(!waits_for(instruction_of("waits"), instruction_of("effect")));
    ts_fini(&t);
  }
}

static tn_status read_plan(const tn_session_factory *self, tn_runtime_session *session, const tn_plan *plan,
                           tn_executable **out, tn_error *err)
{
  struct { tn_plan_value v; char newer[16]; } wide;
  tn_plan_instruction in = { .struct_size = TN_SIZE_TO(tn_plan_instruction, kernel), .traits = 9 };
  memset(&wide, 0xab, sizeof wide);
  wide.v.struct_size = sizeof wide;
  CHECK_OK(tn_plan_get_value(plan, 0, &wide.v, err), err);
  CHECK_INT(wide.newer[15], 0); /* a field unknown to the host is 0, its default */
  CHECK_OK(tn_plan_get_instruction(plan, 0, &in, err), err);
  CHECK(in.op != NULL && in.kernel != NULL);
  CHECK_INT(in.traits, 9); /* an older plugin's struct ends before this field */
  CHECK_INT(tn_plan_get_instruction(plan, 1000, &in, NULL), TN_OUT_OF_RANGE);
  CHECK_INT(tn_plan_get_value(plan, 1000, &wide.v, NULL), TN_OUT_OF_RANGE);
  CHECK_INT(tn_plan_get_value(plan, 0, NULL, NULL), TN_INVALID_ARGUMENT);
  CHECK_INT(tn_plan_output(plan, 1000), UINT32_MAX);
  tn_kit_scheduler scheduler = { .struct_size = TN_KIT_SCHEDULER_SIZE };
  *out = (tn_executable *)&scheduler;
  CHECK_INT(tn_kit_prepare_scheduled(plan, &scheduler, out, NULL), TN_INVALID_ARGUMENT); /* it has no ready */
  CHECK_NULL(*out);
  CHECK_INT(tn_kit_prepare(plan, 64, out, NULL), TN_INVALID_ARGUMENT);
  CHECK_INT(tn_kit_prepare(plan, TN_KIT_INLINE, NULL, NULL), TN_INVALID_ARGUMENT);
  CHECK_INT(tn_kit_prepare(NULL, TN_KIT_INLINE, out, NULL), TN_INVALID_ARGUMENT);
  tn_kit_release(NULL);
  return tn_kit_prepare(plan, TN_KIT_INLINE, out, err);
}

static void kit_release(const tn_session_factory *self, tn_runtime_session *session, tn_executable *executable)
{
  tn_kit_release(executable);
}

/* Level (a) with the runtime's own prepare, all other slots by default. */
static void kit__a_runtime_reads_the_plan_and_lets_the_kit_run_it(void) /* P-26, P-38 */
{
  static const tn_session_factory reader = { .struct_size = TN_SIZE_TO(tn_session_factory, release),
                                             .name = "test.reader",
                                             .new_session = new_session,
                                             .accepts_options = accepts_options,
                                             .destroy_session = destroy_session,
                                             .prepare = read_plan,
                                             .release = kit_release };
  ts t;
  ts_init(&t, 1);
  REQUIRE_OK(tn_runtime_register("test.reader", &reader, &t.err), &t.err);
  REQUIRE_OK(tn_session_options_set_target(t.options, "test.reader", &t.err), &t.err);
  ts_usual_graph(t.graph);
  ts_start(&t);
  CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 3 }, { "y", 4 }), "twice"), 14, 0);
  CHECK_STATUS(tn_reset(t.options, NULL, 0, &t.err), TN_UNIMPLEMENTED, &t.err);
  tn_device_info d = { .struct_size = sizeof d };
  CHECK_OK(tn_session_device(t.session, 0, &d, &t.err), &t.err);
  CHECK_STR(d.type, "CPU");
  ts_fini(&t);
}

/* ---- plans that are more than their instructions ---- */

#define N2 INT("N", 2)
#define STRAIGHT                                                                                              \
  ANY("x", "DT_FLOAT") NODE("minus", "Neg", "input: 'x'", F) NODE("same", "Identity", "input: 'minus'", F)    \
  NODE("sum", "AddV2", "input: 'same' input: 'x'", F) NODE("end", "Mul", "input: 'sum' input: 'minus'", F)
#define TWO_SIDES                                                                                             \
  SCALAR("zero", "0") NODE("p", "Less", "input: 'zero' input: 'x'", F)                                        \
  NODE("sw", "Switch", "input: 'x' input: 'p'", F) NODE("side", "Neg", "input: 'sw:1'", F)                    \
  NODE("either", "Merge", "input: 'sw' input: 'side'", F N2)                                                  \
  NODE("plain", "Merge", "input: 'x' input: 'minus'", F N2)
#define STATE                                                                                                 \
  NODE("ref", "VariableV2", "", DT SHAPE("")) NODE("value", "Neg", "input: 'ref'", F)                         \
  NODE("begun", "TestCount", "input: 'x'", SLOT(1)) QUEUE("")

/* The node named by the refusal, NULL for complete plans, and part of its text. `blind`: the
 * instructions are refused, too. */
static const struct {
  const char *fetch, *node, *says;
  bool blind;
} plans[] = {
  { "end", NULL, NULL, false },
  { "side", "side", "under a condition", true },
  { "sw:1", "sw", "fetched, but may have no value", false },
  { "plain", "plain", "whichever of its inputs is live", true },
  { "ten", "t_enter", "a loop", true },
  { "value", NULL, NULL, false },
  { "get", "get", "may wait", false },
};

static tn_status (*asked_of)(const tn_plan *plan, tn_error *err);

/* Refuses every plan, with the error of asked_of if there is one. */
static tn_status ask(const tn_session_factory *self, tn_runtime_session *session, const tn_plan *plan,
                     tn_executable **out, tn_error *err)
{
  tn_status st = asked_of(plan, err);
  return st == TN_OK ? tn_error_set(err, TN_ABORTED, "the plan is complete") : st;
}

static tn_status ask_instructions(const tn_plan *plan, tn_error *err)
{
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < tn_plan_n_instructions(plan); i++) {
    tn_plan_instruction in = { .struct_size = sizeof in };
    st = tn_plan_get_instruction(plan, i, &in, err);
    CHECK((in.op != NULL) == (st == TN_OK)); /* a refusal leaves the struct unchanged */
  }
  return st;
}

static void open_asking(ts *t, int level)
{
  static tn_session_factory asking;
  static const char text[] = LOOP_LIBRARY STRAIGHT TWO_SIDES STATE COUNTS;
  const tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  ts_init(t, level);
  if (asking.name == NULL) {
    asking = factory;
    asking.name = "test.asking";
    asking.prepare = ask;
    REQUIRE_OK(tn_runtime_register("test.asking", &asking, &t->err), &t->err);
  }
  REQUIRE_OK(tn_session_options_set_target(t->options, "test.asking", &t->err), &t->err);
  REQUIRE_OK(tn_graph_import(t->graph, text, strlen(text), &options, &t->err), &t->err);
  ts_start(t);
}

static void kit__plans_report_that_they_are_not_straight(void)
{
  FOR_LEVELS(level) {
    ts t;
    open_asking(&t, level);
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
      tn_tensor *out;
      asked_of = tn_plan_check_straight;
      CHECK_STATUS(ts_run(&t, FEEDS({ "x", 3 }), NAMES(plans[i].fetch), &out, NULL),
                   plans[i].node == NULL ? TN_ABORTED : TN_UNIMPLEMENTED, &t.err);
      if (plans[i].node != NULL) CHECK_STR(tn_error_node(&t.err), plans[i].node);
      if (plans[i].node != NULL) CHECK_CONTAINS(tn_error_message(&t.err), plans[i].says);
      asked_of = ask_instructions;
      CHECK_STATUS(ts_run(&t, FEEDS({ "x", 3 }), NAMES(plans[i].fetch), &out, NULL),
                   plans[i].blind ? TN_UNIMPLEMENTED : TN_ABORTED, &t.err);
      if (plans[i].blind) CHECK_STR(tn_error_node(&t.err), plans[i].node);
      if (plans[i].blind) CHECK_CONTAINS(tn_error_message(&t.err), plans[i].says);
    }
    CHECK_STATUS(tn_plan_check_straight(NULL, &t.err), TN_INVALID_ARGUMENT, &t.err);
    ts_fini(&t);
  }
}

static void kit__calls_of_functions_are_not_straight(void)
{
  ts t;
  tn_tensor *out;
  open_asking(&t, 0);
  asked_of = tn_plan_check_straight;
  CHECK_STATUS(ts_run(&t, FEEDS({ "x", 3 }), NAMES("few"), &out, NULL), TN_UNIMPLEMENTED, &t.err);
  CHECK_STR(tn_error_node(&t.err), "few");
  ts_fini(&t);
}

/* The same through the host table, by a plugin in a file of its own. */
static void kit__a_plugin_executes_straight_plans(void)
{
  const char *folder = plugin_folder();
  plugin_copy("straight", folder, "straight.so");
  plugin_search(folder);
  for (int blind = 0; blind < 2; blind++) FOR_LEVELS(level) {
    static const char text[] = LOOP_LIBRARY STRAIGHT TWO_SIDES COUNTS;
    const tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
    ts t;
    tn_tensor *out;
    ts_init(&t, level);
    REQUIRE_OK(tn_session_options_set_target(t.options, blind ? "test.straight:blind=1" : "test.straight", &t.err),
               &t.err);
    REQUIRE_OK(tn_session_options_set_string(t.options, "disable_passes", "fuse,elementwise,algebra", &t.err), &t.err);
    REQUIRE_OK(tn_graph_import(t.graph, text, strlen(text), &options, &t.err), &t.err);
    ts_start(&t);
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 3 }), "sum"), 0, 0);
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 3 }, { "sum", 2 }), "end"), -6, 0);
    CHECK_STATUS(ts_run(&t, FEEDS({ "x", 3 }), NAMES("plain"), &out, NULL), TN_UNIMPLEMENTED, &t.err);
    CHECK_STR(tn_error_node(&t.err), "plain");
    CHECK_STATUS(ts_run(&t, FEEDS({ "x", 3 }), NAMES("ten"), &out, NULL), TN_UNIMPLEMENTED, &t.err);
    CHECK_STR(tn_error_node(&t.err), "t_enter");
    ts_fini(&t);
  }
}

/* P-38: the library's defaults for a plugin with the required callbacks alone. */
static void kit__four_callbacks_are_enough(void)
{
  const char *folder = plugin_folder();
  char text[4000];
  tn_session *refused = NULL;
  ts t;
  plugin_copy("minimal", folder, "minimal.so");
  plugin_search(folder);
  ts_init(&t, 1);
  REQUIRE_OK(tn_session_options_set_target(t.options, "test.minimal", &t.err), &t.err);
  ts_usual_graph(t.graph);
  ts_start(&t);
  CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 3 }, { "y", 4 }), "twice"), 14, 0);
  tn_device_info d = { .struct_size = sizeof d };
  CHECK_OK(tn_session_device(t.session, 0, &d, &t.err), &t.err);
  CHECK_STR(d.type, "CPU");
  CHECK_STATUS(tn_session_device(t.session, 1, &d, &t.err), TN_OUT_OF_RANGE, &t.err);
  tn_partial_run run = pk_begin(&t, NAMES("x", "y"), NAMES("twice"), NULL);
  CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "x", 3 }, { "y", 4 }), "twice"), 14, 0);
  CHECK_STATUS(tn_reset(t.options, NULL, 0, &t.err), TN_UNIMPLEMENTED, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "test.minimal");
  REQUIRE_OK(tn_session_options_set_target(t.options, "test.minimal:colour=red", &t.err), &t.err);
  CHECK_STATUS(tn_session_create(t.options, &refused, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err),
                 "minimal.so) does not accept the options with target 'test.minimal:colour=red'");
  REQUIRE_OK(tn_session_options_set_target(t.options, "", &t.err), &t.err);
  REQUIRE_OK(tn_session_options_set_string(t.options, "runtime_ranks", "test.minimal=900", &t.err), &t.err);
  CHECK_OK(tn_explain_selection(t.options, text, sizeof text, NULL, &t.err), &t.err);
  CHECK_CONTAINS(text, "minimal.so) rank 900: accepted\n");
  ts_fini(&t);
  CHECK_OK(tn_runtime_unregister("test.minimal", NULL), NULL);
}

/* A reset that does nothing but returns OK would leave sessions open. */
static void kit__a_reset_needs_a_registered_factory(void) /* P-42, S-RST-09 */
{
  static const char *const names[] = { "conformance.a", NULL };
  ts t;
  open_own(&t, RIGHT, 1);
  tn_session_factory copy = factory;
  CHECK_STATUS(tn_kit_reset(&copy, NULL, 0, 0, &t.err), TN_FAILED_PRECONDITION, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "not registered");
  CHECK_STATUS(tn_kit_reset(&factory, names, 2, 0, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "container 1");
  CHECK_STATUS(tn_kit_reset(NULL, NULL, 0, 0, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STATUS(tn_kit_reset(&factory, NULL, 1, 0, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STATUS(tn_kit_reset(&factory, NULL, 0, 8, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 3 }, { "y", 4 }), "twice"), 14, 0); /* the reset closed neither session */
  CHECK_OK(tn_kit_reset(&factory, NULL, 0, 0, &t.err), &t.err);
  ts_run1(&t, FEEDS({ "x", 3 }, { "y", 4 }), "twice");
  CHECK_INT(tn_error_code(&t.err), TN_CANCELLED);
  ts_fini(&t);
}

TAP_MAIN(
  TAP_TEST(kit__a_runtime_executes_the_plan_itself),
  TAP_TEST(kit__a_runtime_writes_into_given_tensors),
  TAP_TEST(kit__breaches_of_contract_are_internal_errors),
  TAP_TEST(kit__a_close_cancels_a_step_at_its_end),
  TAP_TEST(kit__options_of_steps_hold_in_every_runtime),
  TAP_TEST(kit__devices_of_a_runtime),
  TAP_TEST(kit__plans_keep_the_order_of_control_edges),
  TAP_TEST(kit__a_runtime_reads_the_plan_and_lets_the_kit_run_it),
  TAP_TEST(kit__plans_report_that_they_are_not_straight),
  TAP_TEST(kit__calls_of_functions_are_not_straight),
  TAP_TEST(kit__a_plugin_executes_straight_plans),
  TAP_TEST(kit__four_callbacks_are_enough),
  TAP_TEST(kit__a_reset_needs_a_registered_factory))
