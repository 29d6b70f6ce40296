/* SPDX-License-Identifier: Apache-2.0 */
/* The last part of a probe (P-83): the loaded runtime opens a session and runs a step of one addition, as it would for
 * a program. If the runtime refuses, that is no fault of the plugin. If it crashes, it does so here and not in the
 * program. */
#include <core/host/host.h>
#include <core/registry/probe/probe.h>
#include <string.h>
#include <tenon/plugins.h>
#include <tenon/session.h>

static const char model[] =
    "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } "
    "attr { key: 'shape' value { shape { dim { size: 2 } } } } } "
    "node { name: 'y' op: 'AddV2' input: 'x' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } }";

/* A session of the runtime with the model. */
static tn_status open_session(const char *name, tn_session **out, tn_error *err)
{
  static const tn_import_options as_text = { .struct_size = sizeof as_text,
                                             .flags = TN_IMPORT_TEXT,
                                             .file = "a probe's graph" };
  tn_session_options *options = NULL;
  tn_graph *graph = NULL;
  tn_session *session = NULL;
  tn_status st = tn_session_options_create(&options, err);
  if (st == TN_OK) st = tn_session_options_set_target(options, name, err);
  if (st == TN_OK) st = tn_graph_create(&graph, err);
  if (st == TN_OK) st = tn_graph_import(graph, model, sizeof model - 1, &as_text, err);
  if (st == TN_OK) st = tn_session_create(options, &session, err);
  if (st == TN_OK) st = tn_session_set_graph(session, graph, err);
  tn_session_options_destroy(options);
  tn_graph_unref(graph);
  if (st == TN_OK) *out = session;
  else tn_session_destroy(session);
  return st;
}

static tn_status check_result(tn_tensor *y, tn_error *err)
{
  float got[2] = { 0, 0 };
  tn_status st = tn_tensor_read(y, got, sizeof got, err);
  if (st == TN_OK && (got[0] != 3.0f || got[1] != -5.0f))
    st = tn_error_set(err, TN_INTERNAL, "1.5 + 1.5 and -2.5 + -2.5 gave %g and %g", (double)got[0], (double)got[1]);
  return st;
}

/* tn__probe_reached tells the parent process how far the probe came, for its report of a crash. */
static tn_status run_step(tn_session *session, tn_error *err)
{
  static const float values[] = { 1.5f, -2.5f };
  static const int64_t dims[] = { 2 };
  const char *feed = "x:0", *fetch = "y:0";
  tn_tensor *x = NULL, *y = NULL;
  tn_callable callable;
  tn__probe_reached(TN__STEP_PREPARE);
  tn_status st = tn_session_make_callable(session, NULL, &feed, 1, &fetch, 1, NULL, 0, &callable, err);
  if (st == TN_OK) st = tn_tensor_create(TN_FLOAT, dims, 1, &x, err);
  if (st == TN_OK) {
    memcpy(tn_tensor_data(x), values, sizeof values);
    tn__probe_reached(TN__STEP_STEP);
    st = tn_session_run_callable(session, callable, &x, 1, &y, 1, NULL, err);
  }
  if (st == TN_OK) st = check_result(y, err);
  tn_tensor_unref(x);
  tn_tensor_unref(y);
  return st;
}

static tn_status try_session(const char *name, tn_error *err)
{
  tn_session *session = NULL;
  tn__probe_reached(TN__STEP_SESSION);
  tn_status st = open_session(name, &session, err);
  if (st != TN_OK) return st;
  st = run_step(session, err);
  if (st == TN_OK) tn__probe_reached(TN__STEP_DESTROY);
  tn_session_destroy(session);
  return st;
}

int tn_probe_serve(void)
{
  tn__host_install();
  return tn__probe_serve(try_session);
}
