/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/support/partial_kit.h"

#include <math.h>

static size_t count(const char *const *names)
{
  size_t n = 0;
  while (names != NULL && names[n] != NULL) n++;
  return n;
}

tn_status pk_setup_with(ts *t, tn_session *session, const tn_run_options *options, const char *const *feeds,
                        const char *const *fetches, const char *const *targets, tn_partial_run *out)
{
  tn_status st = tn_session_partial_setup(session, options, feeds, count(feeds), fetches, count(fetches), targets,
                                          count(targets), out, &t->err);
  CHECK((out->id != 0) == (st == TN_OK));
  tap_answered(st, &t->err);
  return st;
}

tn_status pk_setup(ts *t, const char *const *feeds, const char *const *fetches, const char *const *targets,
                   tn_partial_run *out)
{
  return pk_setup_with(t, t->session, NULL, feeds, fetches, targets, out);
}

tn_partial_run pk_begin(ts *t, const char *const *feeds, const char *const *fetches, const char *const *targets)
{
  tn_partial_run run = { 0 };
  REQUIRE_OK(pk_setup(t, feeds, fetches, targets, &run), &t->err);
  return run;
}

tn_status pk_call(tn_session *session, tn_partial_run run, const ts_feed *feeds, const char *const *fetches,
                  tn_tensor **fetched, tn_error *err)
{
  const char *names[8] = { NULL };
  tn_tensor *tensors[8] = { NULL };
  size_t n = 0;
  for (; feeds != NULL && feeds[n].name != NULL; n++) {
    names[n] = feeds[n].name;
    tensors[n] = ts_scalar(feeds[n].value);
  }
  tn_status st = tn_session_partial_run(session, run, names, tensors, n, fetches, fetched, count(fetches), err);
  for (size_t i = 0; i < n; i++) tn_tensor_unref(tensors[i]);
  for (size_t i = 0; st != TN_OK && fetched != NULL && i < count(fetches); i++) CHECK_NULL(fetched[i]);
  CHECK_INT(tn_error_code(err), st);
  return st;
}

tn_status pk_give(ts *t, tn_partial_run run, const ts_feed *feeds)
{
  return pk_call(t->session, run, feeds, NULL, NULL, &t->err);
}

static tn_status get(tn_session *session, tn_partial_run run, const ts_feed *feeds, const char *fetch, float *value,
                     tn_error *err)
{
  tn_tensor *fetched = NULL;
  tn_status st = pk_call(session, run, feeds, fetch == NULL ? NULL : NAMES(fetch), &fetched, err);
  *value = st == TN_OK ? ts_float(fetched) : NAN;
  CHECK(fetched == NULL || tn_tensor_is_exclusive(fetched));
  tn_tensor_unref(fetched);
  return st;
}

float pk_get(ts *t, tn_partial_run run, const ts_feed *feeds, const char *fetch)
{
  float value;
  get(t->session, run, feeds, fetch, &value, &t->err);
  return value;
}

tn_status pk_fails(ts *t, tn_partial_run run, const ts_feed *feeds, const char *fetch)
{
  float value;
  return get(t->session, run, feeds, fetch, &value, &t->err);
}

bool pk_has_ended(ts *t, tn_partial_run run) { return pk_give(t, run, NULL) == TN_INVALID_ARGUMENT; }

static void *run_thread(void *arg)
{
  pk_thread *p = arg;
  const ts_feed feeds[] = { { p->feed, p->x }, { NULL, 0 } };
  p->status = get(p->session, p->run, feeds, p->fetch, &p->value, &p->err);
  atomic_store(&p->ended, true);
  return NULL;
}

void pk_start(pk_thread *p)
{
  tn_error_init(&p->err);
  atomic_store(&p->ended, false);
  REQUIRE_INT(pthread_create(&p->thread, NULL, run_thread, p), 0);
}

tn_status pk_join(pk_thread *p)
{
  pthread_join(p->thread, NULL);
  return p->status;
}

void pk_done(pk_thread *p) { tn_error_clear(&p->err); }
