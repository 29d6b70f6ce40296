/* SPDX-License-Identifier: Apache-2.0 */
/* External ends of eager sessions: a reset of their runtime, and how a runtime is notified of
 * operations to be ended. */
#include <tenon/runtime.h>

#include "conformance/support/eager_kit.h"

#define ATTR_TYPE(name_, value) { .name = name_, .kind = TN_ATTR_TYPE, .i = value }
#define ATTR_STRING(name_, text) { .name = name_, .kind = TN_ATTR_STRING, .at = text, .n = sizeof text - 1 }

/* One call of a test op on a separate thread. */
typedef struct waiting {
  te *t;
  const char *op;
  tn_eager_handle x, out;
  tn_status status;
  atomic_int ended;
  pthread_t thread;
} waiting;

static void *call_waiting(void *arg)
{
  waiting *w = arg;
  tn_error err = TN_ERROR_INIT;
  w->status = tn_eager_call(w->t->session, w->op, NULL, 0, &w->x, 1, &w->out, 1, NULL, &err);
  atomic_store(&w->ended, 1);
  tn_error_clear(&err);
  return NULL;
}

static void begin_call(waiting *w, te *t, const char *op)
{
  *w = (waiting){ .t = t, .op = op, .x = te_scalar(t, 1) };
  REQUIRE_INT(pthread_create(&w->thread, NULL, call_waiting, w), 0);
  CHECK(ts_wait_at_gate(1));
}

static void reset_runtime(te *t)
{
  CHECK_OK(tn_reset(t->session_options, NULL, 0, &t->err), &t->err);
}

/* ---- resets ---- */

static void check_every_call_is_cancelled(te *t, tn_eager_op *op, tn_eager_handle x)
{
  tn_eager_handle out = { 9 };
  tn_eager_op *none;
  tn_tensor *tensor, *given = ts_scalar(1);
  CHECK_STATUS(tn_eager_op_call(op, &x, 1, &out, 1, NULL, &t->err), TN_CANCELLED, &t->err);
  CHECK_CONTAINS(tn_error_message(&t->err), "reset");
  CHECK_INT(out.id, 0);
  CHECK_STATUS(tn_eager_add(t->session, x, x, &out, &t->err), TN_CANCELLED, &t->err);
  CHECK_STATUS(tn_eager_op_create(t->session, "Neg", NULL, NULL, 0, &none, &t->err), TN_CANCELLED, &t->err);
  CHECK_STATUS(tn_eager_from_tensor(t->session, given, &out, &t->err), TN_CANCELLED, &t->err);
  const float one = 1;
  CHECK_STATUS(tn_eager_from_data(t->session, TN_FLOAT, NULL, 0, &one, sizeof one, &out, &t->err), TN_CANCELLED,
               &t->err);
  CHECK_STATUS(tn_eager_tensor(t->session, x, &tensor, &t->err), TN_CANCELLED, &t->err);
  CHECK_STATUS(tn_eager_detach(t->session, x, &tensor, &t->err), TN_CANCELLED, &t->err);
  CHECK_STATUS(tn_eager_safe_point(t->session, &t->err), TN_CANCELLED, &t->err);
  CHECK_STATUS(tn_eager_wait(t->session, &t->err), TN_CANCELLED, &t->err);
  CHECK_STATUS(tn_eager_scope_push(t->session, &t->err), TN_CANCELLED, &t->err);
  tn_tensor_unref(given);
}

static void eager_reset__ends_every_session_of_the_runtime(void) /* S-RST-02, S-RST-04, S-RST-05, S-EAG-02, P-43 */
{
  TS_NEEDS_RESET();
  FOR_RUNTIMES(runtime)
  for (int32_t strategy = TN_EAGER_IN_BACKGROUND; strategy <= TN_EAGER_ON_SESSION_CLOSE; strategy++)
  {
    te t, second;
    te_told told = { 0 };
    tn_eager_op *op;
    te_open(&t, runtime, strategy);
    te_open(&second, runtime, strategy);
    tn_eager_handle x = te_telling(&t, &told), kept = te_telling(&t, &told), out, y = te_scalar(&second, 1);
    REQUIRE_OK(tn_eager_op_create(t.session, "Neg", NULL, NULL, 0, &op, &t.err), &t.err);
    REQUIRE_OK(tn_eager_op_call(op, &x, 1, &out, 1, NULL, &t.err), &t.err);
    REQUIRE_OK(tn_eager_scope_push(t.session, &t.err), &t.err);
    reset_runtime(&t);
    check_every_call_is_cancelled(&t, op, kept);
    CHECK_STATUS(tn_eager_neg(second.session, y, &out, &second.err), TN_CANCELLED, &second.err);
    CHECK_OK(tn_eager_scope_pop(t.session, NULL, 0, &t.err), &t.err);
    te_release(&t, x); /* still allowed */
    CHECK_STATUS(tn_eager_release(t.session, x, &t.err), TN_FAILED_PRECONDITION, &t.err);
    if (strategy == TN_EAGER_IN_BACKGROUND) CHECK(te_wait_for(&told.n, 1));
    tn_eager_op_destroy(op);
    reset_runtime(&t); /* a second reset does nothing */
    CHECK_OK(tn_eager_session_close(t.session, &t.err), &t.err);
    CHECK_INT(atomic_load(&told.n), 2);
    CHECK_INT(te_counters(&t).live, 0);
    CHECK_STATUS(tn_eager_add(t.session, x, x, &out, &t.err), TN_FAILED_PRECONDITION, &t.err); /* S-EAG-18 */
    te_fini(&second); /* without closing it first */
    te_fini(&t);
  }
}

static void eager_reset__ends_an_operation_that_waits(void) /* S-RST-03, S-RST-04, P-43 */
{
  TS_NEEDS_RESET();
  FOR_RUNTIMES(runtime)
  {
    te t;
    waiting w;
    te_open(&t, runtime, TN_EAGER_IN_BACKGROUND);
    begin_call(&w, &t, "TestGate");
    reset_runtime(&t);
    pthread_join(w.thread, NULL);
    CHECK_INT(w.status, TN_CANCELLED);
    CHECK_INT(w.out.id, 0);
    te_fini(&t);
  }
}

static void eager_reset__waits_for_no_operation(void) /* S-RST-03, S-RST-04, P-43 */
{
  TS_NEEDS_RESET();
  FOR_RUNTIMES(runtime)
  {
    te t;
    waiting w;
    te_open(&t, runtime, TN_EAGER_ON_SAFE_POINTS);
    begin_call(&w, &t, "TestDeaf");
    reset_runtime(&t);
    CHECK_INT(atomic_load(&w.ended), 0);
    ts_open_gate();
    pthread_join(w.thread, NULL);
    CHECK_INT(w.status, TN_CANCELLED); /* whatever its result */
    CHECK_INT(w.out.id, 0);
    te_fini(&t);
  }
}

static void eager_reset__ends_asynchronous_calls(void) /* S-RST-04, P-43 */
{
  TS_NEEDS_RESET();
  FOR_RUNTIMES(runtime)
  {
    te t;
    te_init(&t, runtime, TN_EAGER_IN_BACKGROUND);
    t.options.async = 1;
    te_start(&t);
    tn_eager_handle x = te_scalar(&t, 1), y;
    REQUIRE_OK(tn_eager_call(t.session, "TestGate", NULL, 0, &x, 1, &y, 1, NULL, &t.err), &t.err);
    for (int i = 0; i < 50; i++) y = te_add(&t, y, x);
    CHECK(ts_wait_at_gate(1));
    reset_runtime(&t);
    CHECK_STATUS(tn_eager_wait(t.session, &t.err), TN_CANCELLED, &t.err);
    CHECK_STATUS(tn_eager_neg(t.session, x, &y, &t.err), TN_CANCELLED, &t.err);
    te_fini(&t);
  }
}

static void eager_reset__leaves_other_runtimes_alone(void) /* S-RST-13 */
{
  te t, other;
  TS_NEEDS_RESET();
  bool is_direct = strcmp(ts_runtime_name(), "direct") == 0;
  te_open(&t, te_runtime(0), TN_EAGER_IN_BACKGROUND);
  te_open(&other, is_direct ? "threaded" : "direct", TN_EAGER_IN_BACKGROUND);
  tn_eager_handle x = te_scalar(&other, 2);
  reset_runtime(&t);
  CHECK_DOUBLE(te_value(&other, te_add(&other, x, x)), 4, 0);
  te_fini(&t);
  te_fini(&other);
}

/* ---- containers ---- */

/* Whether the variable of this container has a value that the session sees. If value is given,
 * assigns it first. */
static bool variable(te *t, const char *container, const float *value)
{
  const tn_eager_attr handle[] = {
    ATTR_TYPE("dtype", TN_FLOAT),
    { .name = "shape", .kind = TN_ATTR_SHAPE },
    ATTR_STRING("shared_name", "eager_reset"),
    { .name = "container", .kind = TN_ATTR_STRING, .at = container, .n = strlen(container) }
  };
  static const tn_eager_attr read[] = { ATTR_TYPE("dtype", TN_FLOAT) };
  tn_eager_handle in[2], out;
  REQUIRE_OK(tn_eager_call(t->session, "VarHandleOp", handle, 4, NULL, 0, in, 1, NULL, &t->err), &t->err);
  if (value != NULL) {
    in[1] = te_scalar(t, *value);
    CHECK_OK(tn_eager_call(t->session, "AssignVariableOp", NULL, 0, in, 2, NULL, 0, NULL, &t->err), &t->err);
  }
  tn_status st = tn_eager_call(t->session, "ReadVariableOp", read, 1, in, 1, &out, 1, NULL, &t->err);
  tn_error_clear(&t->err);
  CHECK(st == TN_OK || st == TN_FAILED_PRECONDITION);
  return st == TN_OK;
}

/* S-RST-06, S-RST-07, S-RST-09, S-RST-10, S-RST-18 */
static void eager_reset__new_sessions_see_listed_containers_empty(void)
{
  static const char *const listed[] = { "eager.listed" };
  const float value = 3;
  TS_NEEDS_RESET();
  FOR_RUNTIMES(runtime)
  {
    te old, young;
    te_open(&old, runtime, TN_EAGER_IN_BACKGROUND);
    CHECK(variable(&old, "eager.listed", &value));
    CHECK(variable(&old, "eager.other", &value));
    CHECK(variable(&old, "", &value));
    CHECK_OK(tn_reset(old.session_options, listed, 1, &old.err), &old.err);
    te_open(&young, runtime, TN_EAGER_IN_BACKGROUND);
    CHECK(!variable(&young, "eager.listed", NULL));
    CHECK(variable(&young, "eager.other", NULL));
    CHECK(variable(&young, "", NULL));
    CHECK_OK(tn_reset_containers(old.session_options, NULL, 0, TN_RESET_ALL, NULL, &old.err), &old.err);
    te_fini(&young);
    te_fini(&old);
  }
}

static void eager_reset__isolated_sessions_have_their_own(void) /* S-RST-02, S-RST-19 */
{
  const float value = 3;
  TS_NEEDS_RESET();
  FOR_RUNTIMES(runtime)
  {
    te t[2];
    for (int i = 0; i < 2; i++) {
      te_init(&t[i], runtime, TN_EAGER_IN_BACKGROUND);
      REQUIRE_OK(tn_session_options_set_bool(t[i].session_options, "isolate_session_state", 1, &t[i].err), &t[i].err);
      te_start(&t[i]);
    }
    CHECK(variable(&t[0], "", &value));
    CHECK(!variable(&t[1], "", NULL));
    reset_runtime(&t[0]);
    tn_eager_handle out;
    for (int i = 0; i < 2; i++)
      CHECK_STATUS(tn_eager_call(t[i].session, "NoOp", NULL, 0, NULL, 0, &out, 0, NULL, &t[i].err), TN_CANCELLED,
                   &t[i].err);
    for (int i = 0; i < 2; i++) te_fini(&t[i]);
  }
}

/* ---- the session of the process ---- */

static void eager_reset__the_next_default_session_is_a_new_one(void) /* S-EAG-23, S-RST-02, S-RST-05 */
{
  tn_error err = TN_ERROR_INIT;
  tn_eager_session *old, *young;
  te t;
  TS_NEEDS_RESET();
  te_init(&t, te_runtime(0), TN_EAGER_ON_SAFE_POINTS);
  REQUIRE_OK(tn_eager_set_default_options(&t.options, &err), &err);
  REQUIRE_OK(tn_eager_default(&old, &err), &err);
  CHECK_STATUS(tn_eager_session_close(old, &err), TN_FAILED_PRECONDITION, &err);
  te use = { .session = old, .err = TN_ERROR_INIT };
  tn_eager_handle x = te_scalar(&use, 1), y;
  reset_runtime(&t);
  CHECK_STATUS(tn_eager_neg(old, x, &y, &err), TN_CANCELLED, &err);
  REQUIRE_OK(tn_eager_default(&young, &err), &err);
  CHECK(young != old);
  te next = { .session = young, .err = TN_ERROR_INIT };
  x = te_scalar(&next, 2);
  CHECK_DOUBLE(te_value(&next, te_add(&next, x, x)), 4, 0);
  te_release(&next, x);
  CHECK_INT(te_counters(&next).unused, 1); /* it has the strategy that was set */
  CHECK_OK(tn_eager_session_close(old, &err), &err); /* it behaves like any other session */
  tn_eager_session_destroy(old);
  CHECK_STATUS(tn_eager_session_close(young, &err), TN_FAILED_PRECONDITION, &err);
  te_fini(&t);
  tn_error_clear(&err);
  tn_error_clear(&use.err);
  tn_error_clear(&next.err);
}

/* ---- several threads ---- */

enum { RESETS = 60 };

typedef struct storm {
  te *t;
  atomic_int *stop;
} storm;

/* Opens a session, works in it until a reset ends it, and closes it. */
static void *open_and_work(void *arg)
{
  const storm *m = arg;
  while (!atomic_load(m->stop)) {
    tn_error err = TN_ERROR_INIT;
    tn_eager_session *s;
    tn_eager_handle x, y;
    const float one = 1;
    if (!CHECK_OK(tn_eager_session_create(&m->t->options, &s, &err), &err)) return NULL;
    tn_status st = tn_eager_from_data(s, TN_FLOAT, NULL, 0, &one, sizeof one, &x, &err);
    for (int i = 0; st == TN_OK && i < 2000; i++) {
      st = tn_eager_add(s, x, x, &y, &err);
      tn_eager_release(s, y, NULL);
    }
    CHECK_MSG(st == TN_OK || st == TN_CANCELLED, "%s", tn_error_message(&err));
    tn_eager_session_destroy(s);
    tn_error_clear(&err);
  }
  return NULL;
}

static void eager_reset__may_come_at_any_moment(void) /* S-RST-14, S-RST-15 */
{
  TS_NEEDS_RESET();
  FOR_RUNTIMES(runtime)
  {
    te t;
    pthread_t threads[3];
    atomic_int stop = 0;
    te_init(&t, runtime, TN_EAGER_IN_BACKGROUND);
    storm m = { &t, &stop };
    for (int i = 0; i < 3; i++) REQUIRE_INT(pthread_create(&threads[i], NULL, open_and_work, &m), 0);
    for (int i = 0; i < RESETS; i++) {
      reset_runtime(&t);
      ts_sleep_ms(1);
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    te_fini(&t);
  }
}

/* ---- a runtime that is notified ---- */

static struct {
  atomic_int steps, told, alive;
  _Atomic(tn_step *) step; /* the running step */
  bool own_execute;
} runtime;

static tn_status new_session(const tn_session_factory *self, const tn_session_options *options,
                             tn_runtime_session **out, tn_error *err)
{
  (void)self, (void)options, (void)err;
  *out = (tn_runtime_session *)&runtime;
  atomic_fetch_add(&runtime.alive, 1);
  return TN_OK;
}
static tn_bool accept(const tn_session_factory *self, const tn_session_options *options)
{
  (void)self, (void)options;
  return 1;
}
static void destroy(const tn_session_factory *self, tn_runtime_session *session)
{
  (void)self;
  CHECK((void *)session == (void *)&runtime);
  atomic_fetch_sub(&runtime.alive, 1);
}
static tn_status step(const tn_session_factory *self, tn_runtime_session *session, tn_executable *executable,
                      tn_step *s, tn_error *err)
{
  (void)self;
  CHECK((void *)session == (void *)&runtime);
  atomic_store(&runtime.step, s);
  tn_status st = tn_kit_step(executable, s, err);
  atomic_fetch_add(&runtime.steps, 1);
  return st;
}
static void cancel(const tn_session_factory *self, tn_runtime_session *session, tn_step *s)
{
  (void)self;
  CHECK((void *)session == (void *)&runtime);
  CHECK(s == atomic_load(&runtime.step));
  CHECK(tn_step_cancelled(s));
  ts_sleep_ms(5);
  CHECK_INT(atomic_load(&runtime.alive) > 0, 1); /* neither the step nor the session ends during the callback */
  atomic_fetch_add(&runtime.told, 1);
}
static tn_status reset(const tn_session_factory *self, const tn_session_options *options, const char *const *names,
                       size_t n, uint32_t flags, tn_error *err)
{
  (void)options;
  return tn_kit_reset(self, names, n, flags, err);
}
static const void *extension(const tn_session_factory *self, const char *name, uint32_t version)
{
  static const tn_eager_runtime own = { .struct_size = TN_EAGER_RUNTIME_SIZE, .execute = step };
  static const tn_eager_runtime same = { .struct_size = TN_EAGER_RUNTIME_SIZE };
  (void)self;
  if (version != 1 || strcmp(name, TN_EAGER_EXTENSION) != 0) return NULL;
  return runtime.own_execute ? &own : &same;
}
static const tn_session_factory factory = { .struct_size = TN_SESSION_FACTORY_SIZE,
                                            .name = "test.told",
                                            .new_session = new_session,
                                            .accepts_options = accept,
                                            .destroy_session = destroy,
                                            .step = step,
                                            .cancel = cancel,
                                            .reset = reset,
                                            .get_extension = extension };

static void check_told(void (*end)(te *t), tn_status wanted)
{
  te t;
  waiting w;
  te_open(&t, "test.told", TN_EAGER_IN_BACKGROUND);
  atomic_store(&runtime.told, 0);
  tn_eager_handle x = te_scalar(&t, 1);
  CHECK_DOUBLE(te_value(&t, te_add(&t, x, x)), 2, 0);
  begin_call(&w, &t, "TestGate");
  CHECK_INT(atomic_load(&runtime.told), 0);
  end(&t);
  pthread_join(w.thread, NULL);
  CHECK_INT(w.status, wanted);
  CHECK_INT(atomic_load(&runtime.told), 1); /* once, for this operation */
  te_fini(&t);
  CHECK_INT(atomic_load(&runtime.told), 1);
  CHECK_INT(atomic_load(&runtime.alive), 0);
}

static void close_it(te *t) { CHECK_OK(tn_eager_session_close(t->session, &t->err), &t->err); }

static void eager_reset__a_runtime_is_notified_of_operations_to_end(void) /* S-EAG-18, S-RST-04, P-43 */
{
  tn_error err = TN_ERROR_INIT;
  REQUIRE_OK(tn_runtime_register("test.told", &factory, &err), &err);
  for (int own = 0; own <= 1; own++) {
    runtime.own_execute = own;
    check_told(close_it, TN_FAILED_PRECONDITION);
    check_told(reset_runtime, TN_CANCELLED);
  }
  CHECK(atomic_load(&runtime.steps) >= 8);
  CHECK_OK(tn_runtime_unregister("test.told", &err), &err);
  tn_error_clear(&err);
}

TAP_MAIN(TAP_TEST(eager_reset__ends_every_session_of_the_runtime), TAP_TEST(eager_reset__ends_an_operation_that_waits),
         TAP_TEST(eager_reset__waits_for_no_operation), TAP_TEST(eager_reset__ends_asynchronous_calls),
         TAP_TEST(eager_reset__leaves_other_runtimes_alone),
         TAP_TEST(eager_reset__new_sessions_see_listed_containers_empty),
         TAP_TEST(eager_reset__isolated_sessions_have_their_own),
         TAP_TEST(eager_reset__the_next_default_session_is_a_new_one), TAP_TEST(eager_reset__may_come_at_any_moment),
         TAP_TEST(eager_reset__a_runtime_is_notified_of_operations_to_end))
