/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/support/calls_kit.h"

void ck_open(ts *t, int level, const char *text)
{
  const tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  ts_init(t, level);
  REQUIRE_OK(tn_graph_import(t->graph, text, strlen(text), &options, &t->err), &t->err);
  ts_start(t);
}

void ck_expect(const char *text, float x, const char *fetch, float value)
{
  FOR_LEVELS(level)
  {
    ts t;
    ck_open(&t, level, text);
    for (int i = 0; i < 3; i++) {
      float got = ts_run1(&t, FEEDS({ "x", x }), fetch);
      CHECK_MSG(got == value, "level %d: '%s' is %g, wanted %g (%s)", level, fetch, got, value,
                tn_error_message(&t.err));
    }
    ts_fini(&t);
  }
}

void ck_expect_error(const char *text, float x, const char *fetch, tn_status code, const char *message)
{
  FOR_LEVELS(level)
  {
    ts t;
    ck_open(&t, level, text);
    tn_tensor *out = NULL;
    CHECK_STATUS(ts_run(&t, FEEDS({ "x", x }), NAMES(fetch), &out, NULL), code, &t.err);
    CHECK_CONTAINS(tn_error_message(&t.err), message);
    CHECK_NULL(out);
    ts_fini(&t);
  }
}

tn_status ck_run(ts *t, int32_t n, float x, const char *fetch, tn_tensor **out)
{
  tn_tensor *in[2] = { NULL, ts_scalar(x) };
  REQUIRE_OK(tn_tensor_create(TN_INT32, NULL, 0, &in[0], &t->err), &t->err);
  *(int32_t *)tn_tensor_data(in[0]) = n;
  const char *const names[] = { "n", "x" };
  tn_error_clear(&t->err);
  *out = NULL;
  tn_status st = tn_session_run(t->session, NULL, names, in, 2, &fetch, out, 1, NULL, 0, NULL, &t->err);
  tn_tensor_unref(in[0]);
  tn_tensor_unref(in[1]);
  tap_answered(st, &t->err);
  return st;
}

/* Values that change in each iteration, one that is only passed on, and no iterations (S-EXE-13, S-EXE-16). */
