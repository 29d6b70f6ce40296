/* SPDX-License-Identifier: Apache-2.0 */
/* One value or one operation at a time, in the default session or a named one. */
#include "conformance/support/session_kit.h"

#include <pthread.h>

static tn_output output_of(ts *t, const char *name) { return (tn_output){ tn_graph_find(t->graph, name), 0 }; }

/* A tensor's first element; frees it. */
static float take(tn_tensor *value)
{
  float found = ts_float(value);
  tn_tensor_unref(value);
  return found;
}

static void eval__equals_run(void) /* S-DEF-06, S-DEF-09 */
{
  FOR_LEVELS(level)
  {
    ts t;
    ts_open(&t, level);
    const tn_output fed[] = { output_of(&t, "x"), output_of(&t, "y") };
    tn_tensor *values[] = { ts_scalar(3), ts_scalar(4) }, *a = NULL, *b = NULL;
    const float wanted = ts_run1(&t, FEEDS({ "x", 3 }, { "y", 4 }), "twice");
    REQUIRE_OK(tn_session_enter_default(t.session, &t.err), &t.err);
    for (int i = 0; i < 2; i++) { /* in the thread's default session, then in a given one */
      tn_session *session = i == 0 ? NULL : t.session;
      CHECK_OK(tn_eval(session, output_of(&t, "twice"), fed, values, 2, &a, &t.err), &t.err);
      CHECK_OK(tn_eval_name(session, "twice:0", NAMES("x:0", "y"), values, 2, &b, &t.err), &t.err);
      CHECK_DOUBLE(take(a), wanted, 0);
      CHECK_DOUBLE(take(b), wanted, 0);
    }
    CHECK_OK(tn_session_leave_default(t.session, &t.err), &t.err);
    CHECK_OK(tn_eval(t.session, output_of(&t, "two"), NULL, NULL, 0, &a, &t.err), &t.err);
    CHECK_DOUBLE(take(a), 2, 0);
    tn_tensor_unref(values[0]);
    tn_tensor_unref(values[1]);
    ts_fini(&t);
  }
}

static void *eval_here(void *arg)
{
  ts *t = arg;
  tn_tensor *out = (tn_tensor *)t;
  CHECK_STATUS(tn_eval_name(NULL, "two", NULL, NULL, 0, &out, &t->err), TN_FAILED_PRECONDITION, &t->err);
  CHECK_NULL(out);
  return NULL;
}

static void eval__needs_a_session(void) /* S-DEF-02, S-DEF-07, S-DEF-09 */
{
  ts t;
  ts_open(&t, 1);
  tn_tensor *out = (tn_tensor *)&t;
  CHECK_STATUS(tn_eval(NULL, output_of(&t, "two"), NULL, NULL, 0, &out, &t.err), TN_FAILED_PRECONDITION, &t.err);
  CHECK_NULL(out);
  CHECK_CONTAINS(tn_error_message(&t.err), "tn_session_enter_default");
  CHECK_STATUS(tn_eval_name(NULL, "two", NULL, NULL, 0, &out, &t.err), TN_FAILED_PRECONDITION, &t.err);
  CHECK_STATUS(tn_run_operation(NULL, output_of(&t, "two").op, NULL, NULL, 0, &t.err), TN_FAILED_PRECONDITION, &t.err);
  CHECK_STATUS(tn_run_operation_name(NULL, "two", NULL, NULL, 0, &t.err), TN_FAILED_PRECONDITION, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "no default session");
  pthread_t thread;
  REQUIRE_OK(tn_session_enter_default(t.session, &t.err), &t.err); /* for this thread only */
  REQUIRE_INT(pthread_create(&thread, NULL, eval_here, &t), 0);
  pthread_join(thread, NULL);
  CHECK_OK(tn_session_leave_default(t.session, &t.err), &t.err);
  ts_fini(&t);
}

static void eval__of_another_graph_is_refused(void) /* S-DEF-08, S-DEF-09 */
{
  ts t, other;
  ts_open(&t, 1);
  ts_open(&other, 1);
  tn_tensor *out = NULL, *value = ts_scalar(1);
  const tn_output x = output_of(&t, "x"), foreign_x = output_of(&other, "x"), neg = output_of(&t, "neg");
  REQUIRE_OK(tn_session_enter_default(other.session, &t.err), &t.err);
  CHECK_STATUS(tn_eval(NULL, neg, &x, &value, 1, &out, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "'neg' is of another graph");
  CHECK_STATUS(tn_run_operation(NULL, neg.op, &x, &value, 1, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STATUS(tn_eval(t.session, neg, &foreign_x, &value, 1, &out, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "'x' is of another graph");
  CHECK_OK(tn_eval(t.session, neg, &x, &value, 1, &out, &t.err), &t.err); /* a given session takes precedence */
  CHECK_DOUBLE(take(out), -1, 0);
  CHECK_OK(tn_session_leave_default(other.session, &t.err), &t.err);
  tn_tensor_unref(value);
  ts_fini(&other);
  ts_fini(&t);
}

static void eval__operation_runs_for_its_effect(void) /* S-DEF-09 */
{
  ts t;
  tn_output in = ts_open_watched(&t, 1);
  tn_output count = ts_watch_op(t.graph, "TestCount", "count", in, 3);
  ts_test_op(t.graph, "TestEffect", "effect", NULL, 4, NULL, 0);
  ts_start(&t);
  tn_tensor *value = ts_scalar(1);
  REQUIRE_OK(tn_session_enter_default(t.session, &t.err), &t.err);
  CHECK_OK(tn_run_operation(NULL, count.op, &in, &value, 1, &t.err), &t.err);
  CHECK_OK(tn_run_operation_name(NULL, "count", NAMES("in"), &value, 1, &t.err), &t.err);
  CHECK_INT(ts_counted(3), 2);
  CHECK_OK(tn_run_operation(t.session, tn_graph_find(t.graph, "effect"), NULL, NULL, 0, &t.err), &t.err);
  CHECK_INT(ts_counted(4), 1);
  CHECK_STATUS(tn_run_operation(NULL, count.op, NULL, NULL, 0, &t.err), TN_INVALID_ARGUMENT, &t.err); /* S-RUN-19 */
  CHECK_OK(tn_session_leave_default(t.session, &t.err), &t.err);
  tn_tensor_unref(value);
  ts_fini(&t);
}

static void eval__gives_the_codes_of_run(void) /* S-NAM-04 to 08, S-RUN-15, S-RUN-18, S-LIFE-05, S-GRA-01 */
{
  ts t;
  ts_open(&t, 1);
  const tn_output x = output_of(&t, "x"), neg = output_of(&t, "neg"), far = { neg.op, 1 }, negative = { neg.op, -1 };
  const int64_t none = 0;
  tn_tensor *out = (tn_tensor *)&t, *ints = NULL, *missing = NULL;
  REQUIRE_OK(tn_tensor_create(TN_INT32, &none, 1, &ints, &t.err), &t.err);
  CHECK_STATUS(tn_eval(t.session, far, NULL, NULL, 0, &out, &t.err), TN_OUT_OF_RANGE, &t.err);
  CHECK_NULL(out);
  CHECK_STATUS(tn_eval(t.session, negative, NULL, NULL, 0, &out, &t.err), TN_OUT_OF_RANGE, &t.err);
  CHECK_STATUS(tn_eval(t.session, neg, &x, &ints, 1, &out, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STATUS(tn_eval(t.session, neg, &x, &missing, 1, &out, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STATUS(tn_eval(t.session, neg, &x, NULL, 1, &out, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STATUS(tn_eval(t.session, neg, NULL, &ints, 1, &out, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STATUS(tn_eval(t.session, neg, &(tn_output){ NULL, 0 }, &ints, 1, &out, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STATUS(tn_eval(t.session, (tn_output){ NULL, 0 }, NULL, NULL, 0, &out, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STATUS(tn_eval(t.session, neg, NULL, NULL, 0, NULL, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STATUS(tn_eval_name(t.session, "absent", NULL, NULL, 0, &out, &t.err), TN_NOT_FOUND, &t.err);
  CHECK_STATUS(tn_eval_name(t.session, "", NULL, NULL, 0, &out, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STATUS(tn_eval_name(t.session, NULL, NULL, NULL, 0, &out, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STATUS(tn_eval_name(t.session, "neg", NULL, &ints, 1, &out, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STATUS(tn_eval_name(t.session, "neg", NULL, NULL, 0, NULL, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STATUS(tn_run_operation(t.session, NULL, NULL, NULL, 0, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STATUS(tn_run_operation_name(t.session, NULL, NULL, NULL, 0, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STATUS(tn_run_operation_name(t.session, "absent", NULL, NULL, 0, &t.err), TN_NOT_FOUND, &t.err);
  CHECK_OK(tn_session_close(t.session, &t.err), &t.err);
  CHECK_STATUS(tn_eval(t.session, far, NULL, NULL, 0, &out, &t.err), TN_CANCELLED, &t.err); /* S-ERR-03 */
  tn_session_destroy(t.session);
  REQUIRE_OK(tn_session_create(t.options, &t.session, &t.err), &t.err);
  CHECK_STATUS(tn_eval(t.session, neg, NULL, NULL, 0, &out, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "no graph");
  tn_tensor_unref(ints);
  ts_fini(&t);
}

/* More inputs, and longer names, than fit without an allocation. */
enum { MANY = 20 };

typedef struct wide {
  ts t;
  tn_output in[MANY], sum;
  tn_tensor *values[MANY];
} wide;

static void wide_open(wide *w)
{
  char name[120];
  ts_init(&w->t, 1);
  memset(name, 'n', sizeof(name) - 1);
  name[sizeof(name) - 1] = 0;
  for (int i = 0; i < MANY; i++) {
    name[0] = (char)('a' + i);
    w->in[i] = ts_placeholder(w->t.graph, name, TN_FLOAT);
    w->values[i] = ts_scalar((float)i);
  }
  tn_operation_builder *b = tn_operation_begin(w->t.graph, "AddN", "sum", 0);
  tn_operation_add_input_list(b, w->in, MANY);
  w->sum.index = 0;
  REQUIRE_OK(tn_operation_finish(b, &w->sum.op, &w->t.err), &w->t.err);
  ts_start(&w->t);
}

static tn_status eval_wide(void *arg)
{
  wide *w = arg;
  tn_tensor *out = NULL;
  tn_session *session = NULL;
  tn_status st = tn_session_open_scoped(w->t.options, w->t.graph, &session, NULL);
  if (st == TN_OK) st = tn_eval(NULL, w->sum, w->in, w->values, MANY, &out, NULL);
  CHECK(st == TN_OK ? ts_float(out) == MANY * (MANY - 1) / 2 : out == NULL);
  tn_tensor_unref(out);
  if (st == TN_OK) st = tn_run_operation(NULL, w->sum.op, w->in, w->values, MANY, NULL);
  tn_session_release(session);
  return st;
}

static void eval__survives_every_failed_allocation(void)
{
  wide w;
  wide_open(&w);
  tn_test_oom_sweep(eval_wide, &w);
  for (int i = 0; i < MANY; i++) tn_tensor_unref(w.values[i]);
  ts_fini(&w.t);
}

TAP_MAIN(
    TAP_TEST(eval__equals_run),
    TAP_TEST(eval__needs_a_session),
    TAP_TEST(eval__of_another_graph_is_refused),
    TAP_TEST(eval__operation_runs_for_its_effect),
    TAP_TEST(eval__gives_the_codes_of_run),
    TAP_TEST(eval__survives_every_failed_allocation))
