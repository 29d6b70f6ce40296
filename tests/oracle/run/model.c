/* SPDX-License-Identifier: Apache-2.0 */
/* One folder with a case.json: load the model, run `init`, run `steps`, then feed, fetch and compare. */
#include "tests/oracle/run/oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A running model. */
typedef struct model {
  const oracle_config *config;
  const oracle_case *c;
  tn_graph *graph;
  tn_session *session;
  bool may_skip; /* it needs an op that is not claimed */
} model;

static const char *text_of(const json_t *object, const char *field)
{
  return json_string_value(json_object_get(object, field));
}

static char *path_of(const oracle_case *c, const char *file) { return oracle_format("%s/%s", c->folder, file); }

/* --- ops needed by the fetches
 * ------------------------------------------------------------------------------------ */

/* A walk from the fetches and targets back to the feeds. `seen` has a flag for each operation of
 * the graph. */
typedef struct walk {
  const oracle_step *step;
  tn_graph *graph;
  tn_operation **stack;
  size_t n;
  size_t room;
  tn_operation **seen; /* open hash table */
  size_t table;
} walk;

static bool first_visit(walk *w, tn_operation *op)
{
  size_t at = ((uintptr_t)op >> 4) * (size_t)2654435761u % w->table;
  while (w->seen[at] && w->seen[at] != op) at = (at + 1) % w->table;
  if (w->seen[at]) return false;
  w->seen[at] = op;
  return true;
}

static void visit(walk *w, tn_operation *op)
{
  if (!op || !first_visit(w, op)) return;
  w->stack = oracle_grow(w->stack, w->n, &w->room, sizeof(*w->stack));
  w->stack[w->n++] = op;
}

/* "node:1" or "node" names an output; returns the node, and the output's index in *index. */
static tn_operation *find_output(tn_graph *graph, const char *name, int *index)
{
  const char *colon = strrchr(name, ':');
  char *node = oracle_format("%.*s", colon ? (int)(colon - name) : (int)strlen(name), name);
  tn_operation *op = tn_graph_find(graph, node);
  free(node);
  *index = colon ? (int)strtol(colon + 1, NULL, 10) : 0;
  return op;
}

static bool fed(const walk *w, tn_output output)
{
  for (size_t i = 0; i < w->step->n_feeds; i++) {
    int index;
    if (find_output(w->graph, w->step->feed_names[i], &index) == output.op && index == output.index) return true;
  }
  return false;
}

/* The first missing op with its node and reason, then the types of the others, each once. */
static void note_missing(char *text, size_t size, const char *type, const char *node, const char *missing)
{
  size_t used = strlen(text);
  char quoted[200];
  snprintf(quoted, sizeof(quoted), " '%s'", type);
  if (used == 0)
    snprintf(text, size, "op '%s' (node '%s') %s", type, node, missing);
  else if (!strstr(text, quoted))
    snprintf(text + used, size - used, "%s%s", strstr(text, "; also missing:") ? "" : "; also missing:", quoted);
}

/* Checks the ops needed by the step: notes whether one is not claimed, and reports those that
 * the library lacks. */
static bool check_needed(model *m, walk *w, oracle_result *result)
{
  char lacking[1000] = "";
  while (w->n > 0) {
    tn_operation *op = w->stack[--w->n];
    const char *type = tn_operation_type(op), *missing = oracle_op_missing(type);
    if (!oracle_claimed(&m->config->claims, type)) m->may_skip = true;
    if (missing) note_missing(lacking, sizeof(lacking), type, tn_operation_name(op), missing);
    for (size_t i = 0; i < tn_operation_n_inputs(op); i++) {
      tn_output input = tn_operation_input(op, i);
      if (!fed(w, input)) visit(w, input.op);
    }
    for (size_t i = 0; i < tn_operation_n_control_inputs(op); i++) visit(w, tn_operation_control_input(op, i));
  }
  if (!lacking[0]) return true;
  return m->may_skip ? oracle_skip(result, "%s", lacking) : oracle_fail(result, "%s", lacking);
}

static bool check_step_ops(model *m, const oracle_step *step, oracle_result *result)
{
  walk w = { .step = step, .graph = m->graph, .table = tn_graph_n_operations(m->graph) * 2 + 1 };
  w.seen = oracle_alloc(w.table * sizeof(*w.seen));
  int index;
  for (size_t i = 0; i < step->n_fetches; i++) visit(&w, find_output(m->graph, step->fetch_names[i], &index));
  for (size_t i = 0; i < step->n_targets; i++) visit(&w, find_output(m->graph, step->targets[i], &index));
  bool ok = check_needed(m, &w, result);
  free(w.stack);
  free(w.seen);
  return ok;
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

/* An entry of feeds or fetches: its array. */
static bool load_array(const oracle_case *c, const json_t *entry, tn_tensor **out, oracle_result *result)
{
  const json_t *shape = json_object_get(entry, "shape");
  const char *file = text_of(entry, "file"), *offsets = text_of(entry, "offsets");
  size_t rank = json_array_size(shape);
  *out = NULL;
  if (!file || !text_of(entry, "tensor"))
    return oracle_fail(result, "case.json: a feed or fetch has no file or tensor");
  if (rank > TN_MAX_RANK) return oracle_fail(result, "case.json: '%s' has rank %zu", file, rank);
  int64_t dims[TN_MAX_RANK];
  for (size_t i = 0; i < rank; i++) dims[i] = json_integer_value(json_array_get(shape, i));
  char *path = path_of(c, file), *second = offsets ? path_of(c, offsets) : NULL;
  bool ok = oracle_npy_tensor(path, second, text_of(entry, "dtype"), dims, (int32_t)rank, out, result);
  free(path);
  free(second);
  return ok;
}

static bool load_feeds(const oracle_case *c, oracle_step *step, oracle_result *result)
{
  const json_t *feeds = json_object_get(c->entry, "feeds");
  for (size_t i = 0; i < step->n_feeds; i++) {
    const json_t *entry = json_array_get(feeds, i);
    if (!load_array(c, entry, &step->feeds[i], result)) return false;
    step->feed_names[i] = text_of(entry, "tensor");
  }
  return true;
}

static bool run(model *m, const char *what, oracle_step *step, oracle_result *result)
{
  tn_error err = TN_ERROR_INIT;
  tn_status status;
  bool ok = check_step_ops(m, step, result) && oracle_step_run(m->session, step, &status, &err, result);
  if (ok && status != TN_OK) {
    if (m->may_skip && (status == TN_UNIMPLEMENTED || status == TN_NOT_FOUND))
      ok = oracle_skip(result, "%s: %s: %s", what, tn_status_name(status), tn_error_message(&err));
    else
      ok = oracle_fail_status(result, &err, what);
  }
  tn_error_clear(&err);
  return ok;
}

/* Targets that are run once, before everything else. */
static bool run_init(model *m, oracle_result *result)
{
  const json_t *init = json_object_get(m->c->entry, "init");
  size_t n = json_array_size(init);
  if (n == 0) return true;
  oracle_step step;
  oracle_step_init(&step, 0, 0, n);
  for (size_t i = 0; i < n; i++) step.targets[i] = json_string_value(json_array_get(init, i));
  bool ok = run(m, "init", &step, result);
  oracle_step_free(&step);
  return ok;
}

static oracle_tolerance tolerance_of(const oracle_case *c)
{
  oracle_tolerance t = { .mode = ORACLE_VALUES };
  const char *mode = text_of(c->entry, "compare");
  t.rtol = json_number_value(json_object_get(c->entry, "rtol"));
  t.atol = json_number_value(json_object_get(c->entry, "atol"));
  t.limit = json_number_value(json_object_get(c->entry, "limit"));
  if (mode && strcmp(mode, "mean_abs") == 0) t.mode = ORACLE_MEAN_ABS;
  return t;
}

/* Element i of a vector as a new scalar. */
static bool pick(const tn_tensor *values, size_t i, tn_tensor **out, oracle_result *result)
{
  size_t size = tn_dtype_size(tn_tensor_dtype(values));
  tn_error err = TN_ERROR_INIT;
  *out = NULL;
  if ((int64_t)i >= tn_tensor_elements(values))
    return oracle_fail(result, "values_file has %lld values, wanted %zu", (long long)tn_tensor_elements(values), i + 1);
  const char *at = (const char *)tn_tensor_data(values) + i * size;
  bool ok = tn_tensor_from_data(tn_tensor_dtype(values), NULL, 0, at, size, out, &err) == TN_OK ||
            oracle_fail_status(result, &err, "values_file");
  tn_error_clear(&err);
  return ok;
}

/* One training step: run the targets, fetch the scalar, compare it with the value recorded. */
static bool train_once(model *m, const json_t *steps, size_t k, const tn_tensor *values, oracle_result *result)
{
  const json_t *targets = json_object_get(steps, "targets");
  oracle_tolerance tolerance = tolerance_of(m->c);
  oracle_step step;
  tn_tensor *want = NULL;
  char what[40];
  snprintf(what, sizeof(what), "step %zu", k);
  oracle_step_init(&step, json_array_size(json_object_get(m->c->entry, "feeds")), 1, json_array_size(targets));
  step.fetch_names[0] = text_of(steps, "fetch");
  for (size_t i = 0; i < step.n_targets; i++) step.targets[i] = json_string_value(json_array_get(targets, i));
  bool ok = load_feeds(m->c, &step, result) && run(m, what, &step, result) && pick(values, k, &want, result) &&
            oracle_compare(&tolerance, what, want, step.fetched[0], result);
  tn_tensor_unref(want);
  oracle_step_free(&step);
  return ok;
}

static bool run_training(model *m, oracle_result *result)
{
  const json_t *steps = json_object_get(m->c->entry, "steps");
  if (!steps) return true;
  const char *file = text_of(steps, "values_file");
  if (!file || !text_of(steps, "fetch")) return oracle_fail(result, "case.json: steps without fetch or values_file");
  tn_tensor *values;
  char *path = path_of(m->c, file);
  json_int_t count = json_integer_value(json_object_get(steps, "count"));
  bool ok = oracle_npy_tensor(path, NULL, "float32", NULL, 0, &values, result);
  free(path);
  for (json_int_t k = 0; ok && k < count; k++) ok = train_once(m, steps, (size_t)k, values, result);
  tn_tensor_unref(values);
  return ok;
}

static bool run_fetches(model *m, oracle_result *result)
{
  const json_t *fetches = json_object_get(m->c->entry, "fetches");
  oracle_tolerance tolerance = tolerance_of(m->c);
  oracle_step step;
  oracle_step_init(&step, json_array_size(json_object_get(m->c->entry, "feeds")), json_array_size(fetches), 0);
  bool ok = step.n_fetches > 0 || oracle_fail(result, "case.json: nothing to fetch");
  for (size_t i = 0; ok && i < step.n_fetches; i++) {
    step.fetch_names[i] = text_of(json_array_get(fetches, i), "tensor");
    ok = step.fetch_names[i] || oracle_fail(result, "case.json: fetch %zu has no tensor", i);
  }
  ok = ok && load_feeds(m->c, &step, result) && run(m, "run", &step, result);
  for (size_t i = 0; ok && i < step.n_fetches; i++) {
    tn_tensor *want;
    ok = load_array(m->c, json_array_get(fetches, i), &want, result) &&
         oracle_compare(&tolerance, step.fetch_names[i], want, step.fetched[i], result);
    tn_tensor_unref(want);
  }
  oracle_step_free(&step);
  return ok;
}

/* --- the case ----------------------------------------------------------------------------------------------------- */

void oracle_run_model(const oracle_config *config, const oracle_case *c, oracle_result *result)
{
  const char *format = text_of(c->entry, "format"), *file = text_of(c->entry, "model");
  if (!format || !file) {
    oracle_fail(result, "case.json: no format or model");
    return;
  }
  if (strcmp(format, "graphdef") != 0) {
    oracle_skip(result, "no importer for the format '%s' yet", format);
    return;
  }
  model m = { .config = config, .c = c };
  tn_error err = TN_ERROR_INIT;
  char *path = path_of(c, file);
  if (tn_graph_create(&m.graph, &err) != TN_OK || tn_graph_import_file(m.graph, path, NULL, &err) != TN_OK)
    oracle_fail_status(result, &err, "import");
  else if (!oracle_open_session(config, m.graph, &m.session, &err))
    oracle_fail_status(result, &err, "opening the session");
  else if (run_init(&m, result) && run_training(&m, result))
    run_fetches(&m, result);
  tn_session_destroy(m.session);
  tn_graph_unref(m.graph);
  free(path);
  tn_error_clear(&err);
}
