/* SPDX-License-Identifier: Apache-2.0 */
/* Steps, for errors that only a plugin can make: feeds are not modified, outputs are complete, errors keep their
 * texts. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>

#include <conformance/plugin/plugin.h>
#include <conformance/support/session_kit.h>

enum { ELEMENTS = 1024 };

static void enter(void)
{
  bool found = cf_runtime_enter(cf_under_test);
  REQUIRE_MSG(found, "%s is not found", cf_under_test->name != NULL ? cf_under_test->name : "it");
}

/* A vector in read-only memory. */
static tn_tensor *read_only(float first)
{
  static const int64_t dims[] = { ELEMENTS };
  tn_tensor *tensor = NULL;
  tn_error err = TN_ERROR_INIT;
  float *data = mmap(NULL, ELEMENTS * sizeof(float), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(data != MAP_FAILED);
  for (int i = 0; i < ELEMENTS; i++) data[i] = first + (float)i;
  REQUIRE(mprotect(data, ELEMENTS * sizeof(float), PROT_READ) == 0);
  REQUIRE_OK(tn_tensor_wrap(TN_FLOAT, dims, 1, data, ELEMENTS * sizeof(float), NULL, NULL, &tensor, &err), &err);
  return tensor;
}

/* A write by a kernel or the runtime raises a signal. */
static void plugin_steps__feeds_are_not_written(void) /* S-RUN-28, P-46 */
{
  static const char *const feeds[] = { "x", "y" }, *const fetches[] = { "twice", "neg", "x" };
  ts t;
  enter();
  FOR_LEVELS(level) {
    tn_tensor *fetched[3] = { NULL, NULL, NULL }, *x = read_only(0), *y = read_only(5);
    ts_open(&t, level);
    cf_reached("a step with feeds that cannot be written");
    tn_status st =
        tn_session_run(t.session, NULL, feeds, (tn_tensor *[]){ x, y }, 2, fetches, fetched, 3, NULL, 0, NULL, &t.err);
    CHECK_OK(st, &t.err);
    for (int i = 0; st == TN_OK && i < ELEMENTS; i += 100) {
      CHECK_DOUBLE(((const float *)tn_tensor_data(fetched[0]))[i], 2 * (2 * i + 5), 0);
      CHECK_DOUBLE(((const float *)tn_tensor_data(fetched[1]))[i], -i, 0);
      CHECK_DOUBLE(((const float *)tn_tensor_data(fetched[2]))[i], i, 0);
    }
    for (int i = 0; i < 3; i++) tn_tensor_unref(fetched[i]);
    tn_tensor_unref(x);
    tn_tensor_unref(y);
    ts_fini(&t);
  }
}

/* ---- outputs ---- */

static tn_output shape_of(tn_graph *graph, tn_output x) { return ts_op1(graph, "Shape", "shape", x); }

/* Outputs have the plan's element types and shapes; includes scalars, empty tensors and two fetches of one value. */
static void plugin_steps__outputs_match_the_plan(void) /* S-RUN-01, S-RUN-02 */
{
  static const int64_t dims[][3] = { { 2, 3, 4 }, { 0, 3, 4 }, { 1, 1, 1 } };
  static const char *const feeds[] = { "x" }, *const fetches[] = { "neg", "shape", "neg", "fixed" };
  static const tn_dtype dtypes[] = { TN_FLOAT, TN_INT32, TN_FLOAT, TN_FLOAT };
  static const int32_t ranks[] = { 3, 1, 3, 0 };
  ts t;
  enter();
  ts_init(&t, 1);
  tn_output x = ts_placeholder(t.graph, "x", TN_FLOAT);
  ts_op1(t.graph, "Neg", "neg", x);
  shape_of(t.graph, x);
  ts_const(t.graph, "fixed", 7);
  ts_start(&t);
  for (size_t k = 0; k < 3; k++) {
    tn_tensor *feed = ts_filled(3, dims[k], 3), *fetched[4] = { NULL, NULL, NULL, NULL };
    cf_reached("a step");
    tn_status st = tn_session_run(t.session, NULL, feeds, &feed, 1, fetches, fetched, 4, NULL, 0, NULL, &t.err);
    tap_answered(st, &t.err);
    CHECK_OK(st, &t.err);
    for (int i = 0; st == TN_OK && i < 4; i++) {
      if (!CHECK_MSG(fetched[i] != NULL, "'%s' is missing", fetches[i])) continue;
      CHECK_INT(tn_tensor_dtype(fetched[i]), dtypes[i]);
      CHECK_INT(tn_tensor_rank(fetched[i]), ranks[i]);
    }
    if (st == TN_OK) CHECK_INT(tn_tensor_dims(fetched[0])[0], dims[k][0]);
    if (st == TN_OK) CHECK_INT(((const int32_t *)tn_tensor_data(fetched[1]))[0], dims[k][0]);
    if (st == TN_OK) CHECK_DOUBLE(ts_float(fetched[3]), 7, 0);
    for (int i = 0; i < 4; i++) tn_tensor_unref(fetched[i]);
    tn_tensor_unref(feed);
  }
  ts_fini(&t);
}

/* ---- errors ---- */

/* A kernel's status and text are preserved, the node is named, and the next step succeeds. */
static void plugin_steps__errors_keep_their_texts(void) /* P-61, P-63, S-RUN-08 */
{
  ts t;
  enter();
  tn_output in = ts_open_watched(&t, 1);
  ts_watch_op(t.graph, "TestFail", "fails", in, TN_DATA_LOSS);
  ts_watch_op(t.graph, "TestCount", "counts", in, 1);
  ts_start(&t);
  for (int i = 0; i < 3; i++) {
    static const char *const fails[] = { "fails", NULL };
    tn_tensor *fetched = NULL;
    cf_reached("a step that fails");
    tn_status st = ts_run(&t, FEEDS({ "in", 1 }), fails, &fetched, NULL);
    CHECK_STATUS(st, TN_DATA_LOSS, &t.err);
    CHECK_CONTAINS(tn_error_message(&t.err), "told to fail");
    CHECK_MSG(fetched == NULL, "a step that failed gives a value");
    tn_error_clear(&t.err);
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "in", 2 }), "counts"), 2, 0);
  }
  ts_fini(&t);
}

/* ---- several threads ---- */

static void run_own_session(void *user, int thread)
{
  (void)user;
  for (int i = 0; i < 10; i++) {
    ts t;
    ts_open(&t, i % 2);
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", (float)thread }, { "y", (float)i }), "twice"), 2 * (thread + i), 0);
    ts_fini(&t);
  }
}

static void plugin_steps__sessions_of_several_threads(void) /* P-69 */
{
  enter();
  run_own_session(NULL, 0);
  cf_reached("sessions of 4 threads");
  pg_threads(4, run_own_session, NULL);
}

static void run_shared_session(void *user, int thread)
{
  static const char *const feeds[] = { "x", "y" }, *const fetch = "twice";
  ts *t = user;
  for (int i = 0; i < 100; i++) {
    tn_error err = TN_ERROR_INIT;
    tn_tensor *values[] = { ts_scalar((float)thread), ts_scalar((float)i) }, *fetched = NULL;
    CHECK_OK(tn_session_run(t->session, NULL, feeds, values, 2, &fetch, &fetched, 1, NULL, 0, NULL, &err), &err);
    CHECK_DOUBLE(ts_float(fetched), 2 * (thread + i), 0);
    tn_tensor_unref(fetched);
    for (int k = 0; k < 2; k++) tn_tensor_unref(values[k]);
    tn_error_clear(&err);
  }
}

static void plugin_steps__of_several_threads(void) /* P-69 */
{
  ts t;
  enter();
  ts_open(&t, 1);
  CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 1 }, { "y", 2 }), "twice"), 6, 0);
  cf_reached("steps of 4 threads in one session");
  pg_threads(4, run_shared_session, &t);
  ts_fini(&t);
}

TAP_MAIN(
  TAP_TEST(plugin_steps__feeds_are_not_written),
  TAP_TEST(plugin_steps__outputs_match_the_plan),
  TAP_TEST(plugin_steps__errors_keep_their_texts),
  TAP_TEST(plugin_steps__sessions_of_several_threads),
  TAP_TEST(plugin_steps__of_several_threads))
