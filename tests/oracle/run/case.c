/* SPDX-License-Identifier: Apache-2.0 */
/* One case of an index: its steps, in order, in one session. */
#include "tests/oracle/run/oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tenon/op.h>

/* A running case. */
typedef struct running {
  const oracle_config *config;
  const oracle_case *c;
  oracle_arrays arrays;
  tn_session *session;
  bool may_skip;   /* some op is not claimed, so a missing one skips the case */
  bool may_repeat; /* no op is stateful or random: running a step again must give the same values */
} running;

static void note_claims(const oracle_config *config, running *r)
{
  const json_t *ops = json_object_get(r->c->entry, "ops");
  size_t i;
  json_t *op;
  json_array_foreach(ops, i, op) r->may_skip |= !oracle_claimed(&config->claims, json_string_value(op));
}

/* Functions in the case's own library count as existing ops. */
static bool check_ops(running *r, const tn_graph *graph, oracle_result *result)
{
  const json_t *ops = json_object_get(r->c->entry, "ops");
  size_t i;
  json_t *op;
  r->may_repeat = true;
  json_array_foreach(ops, i, op)
  {
    const char *name = json_string_value(op), *missing = oracle_op_missing(name);
    const tn_function *function = tn_graph_find_function(graph, name);
    if (function != NULL) {
      if (tn_op_schema_traits(tn_function_schema(function)) & TN_TRAIT_STATEFUL) r->may_repeat = false;
      continue;
    }
    if (missing && r->may_skip) return oracle_skip(result, "op '%s' %s", name, missing);
    if (missing) return oracle_fail(result, "op '%s' is claimed, but %s", name, missing);
    if (tn_op_schema_traits(tn_op_schema_find(name)) & (TN_TRAIT_STATEFUL | TN_TRAIT_RANDOM)) r->may_repeat = false;
  }
  return true;
}

/* Errors for unsupported features; they skip cases with ops that are not claimed. */
static bool says_missing(tn_status status) { return status == TN_UNIMPLEMENTED || status == TN_NOT_FOUND; }

static bool give_up(const char *what, const tn_error *err, bool may_skip, oracle_result *result)
{
  char text[1000];
  tn_error_format(err, text, sizeof(text));
  if (may_skip && says_missing(tn_error_code(err))) return oracle_skip(result, "%s: %s", what, text);
  return oracle_fail(result, "%s: %s", what, text);
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

static const char *dtype_of(const oracle_case *c, const char *tensor)
{
  return json_string_value(json_object_get(json_object_get(c->entry, "dtypes"), tensor));
}

static bool fill_step(running *r, size_t k, const json_t *described, oracle_step *step, oracle_result *result)
{
  for (size_t i = 0; i < step->n_feeds; i++) {
    const char *name = step->feed_names[i] = json_string_value(json_array_get(json_object_get(described, "feeds"), i));
    if (!name) return oracle_fail(result, "step %zu: feed %zu is not a string", k, i);
    char *key = oracle_format("s%zu/feed/%s", k, name);
    bool ok = oracle_arrays_tensor(&r->arrays, key, dtype_of(r->c, name), &step->feeds[i], result);
    free(key);
    if (!ok) return false;
  }
  for (size_t i = 0; i < step->n_fetches; i++)
    step->fetch_names[i] = json_string_value(json_array_get(json_object_get(described, "fetches"), i));
  for (size_t i = 0; i < step->n_targets; i++)
    step->targets[i] = json_string_value(json_array_get(json_object_get(described, "targets"), i));
  return true;
}

static bool read_tolerance(const oracle_case *c, const json_t *described, oracle_tolerance *t, oracle_result *result)
{
  const char *mode = json_string_value(json_object_get(described, "compare"));
  memset(t, 0, sizeof(*t));
  t->rtol = json_number_value(json_object_get(c->entry, "rtol"));
  t->atol = json_number_value(json_object_get(c->entry, "atol"));
  t->int_atol = json_number_value(json_object_get(c->entry, "int_atol"));
  if (!mode || strcmp(mode, "values") == 0) {
    t->mode = ORACLE_VALUES;
  } else if (strcmp(mode, "shape") == 0) {
    t->mode = ORACLE_SHAPE;
  } else if (strcmp(mode, "range") == 0) {
    const json_t *range = json_object_get(described, "range");
    t->mode = ORACLE_RANGE;
    t->low = json_number_value(json_array_get(range, 0));
    t->high = json_number_value(json_array_get(range, 1));
  } else {
    return oracle_fail(result, "compare is '%s', wanted values, shape or range", mode);
  }
  return true;
}

/* "A|B" allows either code. */
static bool code_is_one_of(const char *wanted, tn_status status)
{
  const char *name = tn_status_name(status);
  size_t length = strlen(name);
  for (const char *at = wanted; at; at = strchr(at, '|')) {
    if (*at == '|') at++;
    if (strncmp(at, name, length) == 0 && (at[length] == 0 || at[length] == '|')) return true;
  }
  return false;
}

static bool check_fetches(running *r, size_t k, const json_t *described, const oracle_step *step, oracle_result *result)
{
  oracle_tolerance tolerance;
  if (!read_tolerance(r->c, described, &tolerance, result)) return false;
  for (size_t i = 0; i < step->n_fetches; i++) {
    const char *name = step->fetch_names[i];
    tn_tensor *want;
    char *key = oracle_format("s%zu/fetch/%s", k, name);
    bool ok = oracle_arrays_tensor(&r->arrays, key, dtype_of(r->c, name), &want, result);
    free(key);
    ok = ok && oracle_compare(&tolerance, name, want, step->fetched[i], result);
    tn_tensor_unref(want);
    if (!ok) return false;
  }
  return true;
}

/* A plan that has run before takes faster paths, and a callable writes into existing tensors:
 * the values must be the same. */
static bool check_again(running *r, size_t k, const json_t *described, oracle_step *step, oracle_result *result)
{
  tn_error err = TN_ERROR_INIT;
  tn_status status;
  oracle_step_drop(step);
  bool ok = oracle_step_run(r->session, step, &status, &err, result) &&
            (status == TN_OK || oracle_fail_status(result, &err, "got")) &&
            check_fetches(r, k, described, step, result);
  if (!ok) {
    oracle_prefix(result, "second run");
  } else {
    ok = oracle_step_call(r->session, step, &status, &err, result) &&
         (status == TN_OK || oracle_fail_status(result, &err, "got")) && check_fetches(r, k, described, step, result);
    if (!ok) oracle_prefix(result, "callable into existing tensors");
  }
  tn_error_clear(&err);
  return ok;
}

static bool check_eager(running *r, size_t k, const json_t *described, oracle_step *step, oracle_result *result)
{
  bool ran;
  bool ok = oracle_step_eager(r->config, tn_session_graph(r->session), step, &ran, result) &&
            (!ran || check_fetches(r, k, described, step, result));
  if (!ok) oracle_prefix(result, "eager");
  return ok;
}

static bool check_error(const running *r, const char *wanted, tn_status status, const tn_error *err,
                        oracle_result *result)
{
  if (code_is_one_of(wanted, status)) return true;
  if (status == TN_OK) return oracle_fail(result, "got OK, expected %s", wanted);
  char *what = oracle_format("expected %s, got", wanted);
  give_up(what, err, r->may_skip, result);
  free(what);
  return false;
}

static bool check_step(running *r, size_t k, const json_t *described, oracle_step *step, oracle_result *result)
{
  const char *wanted = json_string_value(json_object_get(described, "error"));
  tn_error err = TN_ERROR_INIT;
  tn_status status;
  oracle_kernels *kernels = r->config->kernels;
  if (kernels && tn_run_metadata_create(&step->metadata, &err) != TN_OK) oracle_fail_status(result, &err, "metadata");
  bool ok = fill_step(r, k, described, step, result) && oracle_step_run(r->session, step, &status, &err, result);
  if (ok && step->metadata && status == TN_OK) oracle_kernels_note(kernels, r->session, step->metadata);
  if (ok && wanted)
    ok = check_error(r, wanted, status, &err, result);
  else if (ok && status != TN_OK)
    ok = give_up("got", &err, r->may_skip, result);
  else if (ok)
    ok = check_fetches(r, k, described, step, result) &&
         (!r->may_repeat || check_again(r, k, described, step, result)) &&
         (!r->may_repeat || !r->config->eager || check_eager(r, k, described, step, result));
  tn_error_clear(&err);
  return ok;
}

static bool run_steps(running *r, oracle_result *result)
{
  const json_t *steps = json_object_get(r->c->entry, "steps");
  size_t n = json_array_size(steps);
  if (n == 0) return oracle_fail(result, "the case has no steps");
  for (size_t k = 0; k < n; k++) {
    const json_t *described = json_array_get(steps, k);
    oracle_step step;
    oracle_step_init(&step, json_array_size(json_object_get(described, "feeds")),
                     json_array_size(json_object_get(described, "fetches")),
                     json_array_size(json_object_get(described, "targets")));
    bool ok = check_step(r, k, described, &step, result);
    oracle_step_free(&step);
    if (!ok) {
      char number[40];
      snprintf(number, sizeof(number), "step %zu", k);
      if (n > 1) oracle_prefix(result, number);
      return false;
    }
  }
  return true;
}

/* --- the case ------------------------------------------------------------------------------------------------------
 */

static void run_graph(const oracle_config *config, running *r, const oracle_bytes *pb, oracle_result *result)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = NULL;
  tn_import_options options = { .struct_size = sizeof(options), .file = r->c->id };
  if (tn_graph_create(&graph, &err) != TN_OK || tn_graph_import(graph, pb->data, pb->size, &options, &err) != TN_OK) {
    give_up("import", &err, r->may_skip, result);
  } else if (config->kernels && !oracle_kernels_want(config->kernels, r->c, graph)) {
    result->verdict = ORACLE_UNNEEDED;
  } else if (check_ops(r, graph, result)) {
    if (oracle_open_session(config, graph, &r->session, &err)) run_steps(r, result);
    else give_up("opening the session", &err, r->may_skip, result);
  }
  tn_session_destroy(r->session);
  tn_graph_unref(graph);
  tn_error_clear(&err);
}

void oracle_run_case(const oracle_config *config, const oracle_case *c, oracle_result *result)
{
  running r = { .config = config, .c = c };
  oracle_bytes pb = { NULL, 0 };
  note_claims(config, &r);
  if (oracle_open_case(c, &pb, &r.arrays, result)) run_graph(config, &r, &pb, result);
  oracle_arrays_close(&r.arrays);
  free(pb.data);
}
