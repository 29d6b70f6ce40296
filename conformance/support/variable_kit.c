/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/support/variable_kit.h"

void vk_open(ts *t, int level, const char *text)
{
  tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  static int has_reset = -1;
  if (has_reset < 0) has_reset = ts_has_reset();
  ts_init(t, level);
  if (!has_reset) /* its containers are not emptied after a test */
    REQUIRE_OK(tn_session_options_set_bool(t->options, "isolate_session_state", 1, &t->err), &t->err);
  REQUIRE_OK(tn_graph_import(t->graph, text, strlen(text), &options, &t->err), &t->err);
  ts_start(t);
}

void vk_fini(ts *t)
{
  ts_clean(t, NULL);
  ts_fini(t);
}

tn_tensor *vk_fetch(ts *t, const char *name)
{
  tn_tensor *out = NULL;
  CHECK_OK(ts_run(t, NULL, NAMES(name), &out, NULL), &t->err);
  return out;
}

bool vk_fetch_bool(ts *t, const char *name)
{
  tn_tensor *out = vk_fetch(t, name);
  bool is = out != NULL && *(const uint8_t *)tn_tensor_data(out);
  tn_tensor_unref(out);
  return is;
}

void vk_check_floats(ts *t, const char *name, int64_t n, const float *wanted)
{
  tn_tensor *out = vk_fetch(t, name);
  CHECK_INT(tn_tensor_elements(out), n);
  for (int64_t i = 0; out != NULL && i < n && i < tn_tensor_elements(out); i++)
    CHECK_DOUBLE(((const float *)tn_tensor_data(out))[i], wanted[i], 1e-6);
  tn_tensor_unref(out);
}

tn_status vk_target(ts *t, const char *name) { return ts_run(t, NULL, NULL, NULL, NAMES(name)); }

tn_status vk_fails(ts *t, const char *name)
{
  tn_tensor *out = NULL;
  tn_status st = ts_run(t, NULL, NAMES(name), &out, NULL);
  tn_tensor_unref(out);
  return st;
}

tn_status vk_feed(ts *t, const char *feed, size_t n, const float *values, const char *target)
{
  tn_tensor *vector = ts_vector(n, values);
  tn_status st = tn_session_run(t->session, NULL, &feed, &vector, 1, NULL, NULL, 0, &target, 1, NULL, &t->err);
  tn_tensor_unref(vector);
  tap_answered(st, &t->err);
  return st;
}

static tn_status step(tn_session *session, const char *target_name)
{
  return tn_session_run(session, NULL, NULL, NULL, 0, NULL, NULL, 0, &target_name, 1, NULL, NULL);
}

tn_status vk_whole_life(void *arg)
{
  tn_session *session = NULL;
  tn_tensor *out = NULL;
  const char *read = "read";
  tn_status st = ts_open_isolated(arg, &session);
  if (st == TN_OK) st = step(session, "set");
  if (st == TN_OK) st = step(session, "add");
  if (st == TN_OK) st = tn_session_run(session, NULL, NULL, NULL, 0, &read, &out, 1, NULL, 0, NULL, NULL);
  if (st == TN_OK) CHECK_DOUBLE(ts_float(out), 2, 0);
  tn_tensor_unref(out);
  tn_session_destroy(session);
  return st;
}
