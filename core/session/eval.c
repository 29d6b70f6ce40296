/* SPDX-License-Identifier: Apache-2.0 */
/* One value or one operation, in the default session or a given one. */
#include <core/base/text.h>
#include <core/session/session_internal.h>

/* The arguments for tn_session_run: one fetch or one target, and values for some outputs. */
typedef struct question {
  const char *fetch, *target; /* one of them is NULL */
  const char *const *inputs;
  tn_tensor *const *values;
  size_t n;
} question;

/* Counts a call on the session, or on the thread's default one. The caller leaves *session on TN_OK. */
static tn_status begin(tn_session **session, tn_error *err)
{
  return *session != NULL ? tn__session_enter(*session, err) : tn__default_enter(session, err);
}

/* The caller's count keeps the session alive meanwhile. */
static tn_status run(tn_session *session, const question *q, tn_tensor **out, tn_error *err)
{
  return tn_session_run(session, NULL, q->inputs, q->values, q->n, &q->fetch, out, q->fetch != NULL ? 1 : 0, &q->target,
                        q->target != NULL ? 1 : 0, NULL, err);
}

/* ---- by name ---- */

static tn_status by_name(tn_session *session, const question *q, tn_tensor **out, tn_error *err)
{
  tn_status st = begin(&session, err);
  if (st != TN_OK) return st;
  st = run(session, q, out, err);
  tn__session_leave(session);
  return st;
}

tn_status tn_eval_name(tn_session *session, const char *fetch, const char *const *inputs, tn_tensor *const *values,
                       size_t n, tn_tensor **out, tn_error *err)
{
  tn__error_reset(err);
  if (out != NULL) *out = NULL;
  if (fetch == NULL || out == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_eval_name: %s is NULL", out == NULL ? "out" : "fetch");
  const question q = { fetch, NULL, inputs, values, n };
  return by_name(session, &q, out, err);
}

tn_status tn_run_operation_name(tn_session *session, const char *op, const char *const *inputs,
                                tn_tensor *const *values, size_t n, tn_error *err)
{
  tn__error_reset(err);
  if (op == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_run_operation_name: op is NULL");
  const question q = { NULL, op, inputs, values, n };
  return by_name(session, &q, NULL, err);
}

/* ---- by output ---- */

/* Names of outputs, on the stack if they are few and short. */
#define NAMES_ON_STACK 8
#define TEXT_ON_STACK 512
#define INDEX_SIZE 12 /* ":2147483647" and a NUL */

typedef struct names {
  const char **list;
  char *text;
  size_t size; /* of the allocation that both are in; 0 = none */
  const char *fixed_list[NAMES_ON_STACK];
  char fixed_text[TEXT_ON_STACK];
} names;

/* Makes "operation:index" for each output. The caller frees them with free_names. */
static tn_status make_names(const tn_output *outputs, size_t n, names *to, tn_error *err)
{
  size_t text = 0, list = 0;
  bool fits = tn__size_mul(n, sizeof *to->list, &list);
  for (size_t i = 0; fits && i < n; i++)
    fits = tn__size_add(text, strlen(tn_operation_name(outputs[i].op)) + INDEX_SIZE, &text);
  to->list = to->fixed_list;
  to->text = to->fixed_text;
  to->size = 0;
  if (n > NAMES_ON_STACK || text > sizeof to->fixed_text) {
    fits = fits && tn__size_add(list, text, &to->size);
    to->list = fits ? tn__alloc(to->size) : NULL;
    if (to->list == NULL) return tn__no_memory(err, "names of outputs", text);
    to->text = (char *)(to->list + n);
  }
  char *at = to->text;
  for (size_t i = 0; i < n; i++) {
    const char *name = tn_operation_name(outputs[i].op);
    to->list[i] = at;
    at += tn__snprintf(at, strlen(name) + INDEX_SIZE, "%s:%d", name, outputs[i].index) + 1;
  }
  return TN_OK;
}

static void free_names(names *n)
{
  if (n->size > 0) tn__free(n->list, n->size);
}

/* S-DEF-08. An index that is too large is reported when the name is parsed. */
static tn_status check_outputs(tn_graph *graph, const tn_output *outputs, size_t n, tn_error *err)
{
  for (size_t i = 0; i < n; i++) {
    const char *name = tn_operation_name(outputs[i].op);
    if (tn__operation_graph(outputs[i].op) != graph)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "operation '%s' is of another graph than the session's", name);
    if (outputs[i].index < 0)
      return tn_error_set(err, TN_OUT_OF_RANGE, "output %d of operation '%s' was requested", outputs[i].index, name);
  }
  return TN_OK;
}

static tn_status by_output_in(tn_session *session, tn_output fetch, question *q, const tn_output *inputs,
                              tn_tensor **out, tn_error *err)
{
  tn_graph *graph;
  names fed, asked;
  tn_status st = tn__session_need_graph(session, &graph, err);
  if (st == TN_OK) st = check_outputs(graph, &fetch, 1, err);
  if (st == TN_OK) st = check_outputs(graph, inputs, q->n, err);
  if (st == TN_OK) st = make_names(inputs, q->n, &fed, err);
  if (st != TN_OK) return st;
  st = make_names(&fetch, 1, &asked, err);
  if (st == TN_OK) {
    q->inputs = fed.list;
    if (out != NULL) q->fetch = asked.list[0];
    else q->target = tn_operation_name(fetch.op);
    st = run(session, q, out, err);
    free_names(&asked);
  }
  free_names(&fed);
  return st;
}

/* The session is entered before the names are made: it keeps the graph with the operations alive. */
static tn_status by_output(tn_session *session, tn_output fetch, const tn_output *inputs, tn_tensor *const *values,
                           size_t n, tn_tensor **out, tn_error *err)
{
  if (inputs == NULL && n > 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "inputs is NULL but there are %zu values", n);
  for (size_t i = 0; i < n; i++)
    if (inputs[i].op == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "input %zu has no operation", i);
  tn_status st = begin(&session, err);
  if (st != TN_OK) return st;
  question q = { NULL, NULL, NULL, values, n };
  st = by_output_in(session, fetch, &q, inputs, out, err);
  tn__session_leave(session);
  return st;
}

tn_status tn_eval(tn_session *session, tn_output fetch, const tn_output *inputs, tn_tensor *const *values,
                  size_t n, tn_tensor **out, tn_error *err)
{
  tn__error_reset(err);
  if (out != NULL) *out = NULL;
  if (out == NULL || fetch.op == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_eval: %s is NULL", out == NULL ? "out" : "the operation");
  return by_output(session, fetch, inputs, values, n, out, err);
}

tn_status tn_run_operation(tn_session *session, tn_operation *op, const tn_output *inputs,
                           tn_tensor *const *values, size_t n, tn_error *err)
{
  tn__error_reset(err);
  if (op == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_run_operation: op is NULL");
  return by_output(session, (tn_output){ op, 0 }, inputs, values, n, NULL, err);
}
