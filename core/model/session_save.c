/* SPDX-License-Identifier: Apache-2.0 */
/* tn_session_save: the variables of a session as a checkpoint, each under its name, without a saver. Values are shared
 * with the session, not copied: a step that changes a variable meanwhile writes to a copy. */
#include <core/model/model.h>
#include <tenon/checkpoint.h>

/* Variables and their values, room for n of each; owned. */
typedef struct saving {
  tn_operation **ops;
  size_t n;
  const char **keys;
  tn_tensor **values;
  size_t n_values;
} saving;

static void fini(saving *s)
{
  for (size_t i = 0; s->values != NULL && i < s->n_values; i++) tn_tensor_unref(s->values[i]);
  tn__free(s->values, s->n * sizeof *s->values);
  tn__free(s->keys, s->n * sizeof *s->keys);
  tn__free(s->ops, s->n * sizeof *s->ops);
}

static tn_status find_named(saving *s, tn_graph *graph, const char *const *names, size_t n, tn_error *err)
{
  s->ops = tn__zalloc(n * sizeof *s->ops);
  if (s->ops == NULL && n > 0) return tn__no_memory(err, "variables to save", n);
  s->n = n;
  for (size_t i = 0; i < n; i++) {
    s->ops[i] = names[i] == NULL ? NULL : tn_graph_find(graph, names[i]);
    if (s->ops[i] == NULL || !tn__is_variable(s->ops[i]))
      return tn_error_set(err, TN_NOT_FOUND, "the graph has no variable '%.200s'", names[i] == NULL ? "" : names[i]);
  }
  return TN_OK;
}

/* Reads the values. A named variable must have one. */
static tn_status read_values(saving *s, tn_session *session, bool all, tn_error *err)
{
  s->keys = tn__zalloc(s->n * sizeof *s->keys);
  s->values = tn__zalloc(s->n * sizeof *s->values);
  if (s->n > 0 && (s->keys == NULL || s->values == NULL)) return tn__no_memory(err, "variables to save", s->n);
  for (size_t i = 0; i < s->n; i++) {
    tn_tensor **value = &s->values[s->n_values];
    tn_status st = tn__variable_value(session, s->ops[i], value, err);
    if (st != TN_OK) return st;
    if (*value == NULL && !all)
      return tn_error_set(err, TN_FAILED_PRECONDITION, "variable '%s' has no value to save",
                          tn_operation_name(s->ops[i]));
    if (*value != NULL) s->keys[s->n_values++] = tn_operation_name(s->ops[i]);
  }
  return TN_OK;
}

tn_status tn_session_save(tn_session *session, const char *prefix, const char *const *names, size_t n,
                          const tn_checkpoint_options *options, tn_error *err)
{
  saving s = { .n = 0 };
  tn_graph *graph;
  tn__error_reset(err);
  if (session == NULL || prefix == NULL || (names == NULL && n > 0))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_session_save: session, prefix or names is NULL");
  tn_status st = tn__session_enter(session, err);
  if (st != TN_OK) return st;
  st = tn__session_need_graph(session, &graph, err);
  if (st == TN_OK)
    st = names == NULL ? tn__variables_list(graph, &s.ops, &s.n, err) : find_named(&s, graph, names, n, err);
  if (st == TN_OK) st = read_values(&s, session, names == NULL, err);
  if (st == TN_OK) st = tn_checkpoint_save(prefix, s.keys, s.values, s.n_values, options, err);
  tn__session_leave(session);
  fini(&s);
  return st;
}
