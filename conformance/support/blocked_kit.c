/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/support/blocked_kit.h"

#include <math.h>

static tn_status run_partially(bk_step *s, const tn_run_options *options, const char *feed, tn_tensor *x,
                               tn_tensor **out)
{
  tn_partial_run run = { 0 };
  size_t n_fetches = s->fetch != NULL;
  tn_status st = tn_session_partial_setup(s->session, options, &feed, 1, &s->fetch, n_fetches, &s->target,
                                          s->target != NULL, &run, &s->err);
  if (st == TN_OK) st = tn_session_partial_run(s->session, run, &feed, &x, 1, NULL, NULL, 0, &s->err);
  if (st == TN_OK && n_fetches > 0)
    st = tn_session_partial_run(s->session, run, NULL, NULL, 0, &s->fetch, out, 1, &s->err);
  tn_status left = tn_session_partial_release(s->session, run, NULL); /* only a close leaves an unfinished run */
  CHECK(left == TN_INVALID_ARGUMENT || (left == TN_OK && st == TN_CANCELLED));
  return st;
}

tn_status bk_run(bk_step *s)
{
  static const char *const feed = "x";
  tn_tensor *x = ts_scalar(s->x), *out = NULL;
  tn_run_options options;
  tn_run_options_init(&options);
  options.timeout_ms = s->timeout_ms;
  options.cancellation = s->cancellation;
  options.inter_op_pool = s->pool;
  options.trace_level = s->metadata != NULL ? 3 : 0;
  options.metadata = s->metadata;
  tn_error_init(&s->err);
  s->value = NAN;
  if (s->partial) s->status = run_partially(s, &options, feed, x, &out);
  else s->status = tn_session_run(s->session, &options, &feed, &x, 1, &s->fetch, &out, s->fetch != NULL, &s->target,
                                  s->target != NULL, s->metadata, &s->err);
  if (out != NULL)
    s->value = tn_tensor_dtype(out) == TN_INT32 ? (float)*(const int32_t *)tn_tensor_data(out) : ts_float(out);
  tn_tensor_unref(out);
  tn_tensor_unref(x);
  tap_answered(s->status, &s->err);
  return s->status;
}

static void *run_thread(void *arg)
{
  bk_step *s = arg;
  bk_run(s);
  atomic_store(&s->ended, true);
  return NULL;
}

void bk_start(bk_step *s)
{
  atomic_store(&s->ended, false);
  REQUIRE_INT(pthread_create(&s->thread, NULL, run_thread, s), 0);
}

tn_status bk_join(bk_step *s)
{
  pthread_join(s->thread, NULL);
  return s->status;
}

void bk_done(bk_step *s) { tn_error_clear(&s->err); }

tn_status bk_target(tn_session *session, const char *target, float x)
{
  bk_step s = { .session = session, .target = target, .x = x };
  bk_run(&s);
  bk_done(&s);
  return s.status;
}

float bk_fetch(tn_session *session, const char *fetch)
{
  bk_step s = { .session = session, .fetch = fetch };
  CHECK_OK(bk_run(&s), &s.err);
  bk_done(&s);
  return s.value;
}

tn_status bk_fails(tn_session *session, const char *fetch)
{
  bk_step s = { .session = session, .fetch = fetch };
  bk_run(&s);
  bk_done(&s);
  return s.status;
}

void bk_open(ts *t, bool isolated, const char *text)
{
  const tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  ts_init(t, 1);
  ts_watch_reset();
  REQUIRE_OK(tn_session_options_set_bool(t->options, "isolate_session_state", isolated, &t->err), &t->err);
  REQUIRE_OK(tn_graph_import(t->graph, text, strlen(text), &options, &t->err), &t->err);
  ts_start(t);
}

tn_session *bk_session(ts *t)
{
  tn_session *s;
  REQUIRE_OK(tn_session_create(t->options, &s, &t->err), &t->err);
  REQUIRE_OK(tn_session_set_graph(s, t->graph, &t->err), &t->err);
  return s;
}

bool bk_wait_begun(int n)
{
  for (int64_t end = ts_now_ms() + 10000; ts_now_ms() < end; ts_sleep_ms(1))
    if (ts_counted(BEGUN) >= n) return true;
  return false;
}

void bk_start_late(bk_step *s)
{
  int n = ts_counted(BEGUN);
  bk_start(s);
  CHECK(bk_wait_begun(n + 1));
}
