/* SPDX-License-Identifier: Apache-2.0 */
/* A session for one block of a program. Prints [3. 5.].
 *
 *   scoped [RUNTIME]
 *
 * TN_SCOPED_SESSION opens a session and makes it the default of this thread. At the end of its
 * block the session is closed and freed on every way out: here `return`, with a value or with an
 * error. */
#include "sum.h"

#ifdef TN_SCOPED_SESSION
static tn_status evaluate(tn_graph *graph, const tn_session_options *options, tn_output what, tn_tensor **value,
                          tn_error *err)
{
  TN_SCOPED_SESSION(session, options, graph, err);
  if (session == NULL) return tn_error_code(err);
  return tn_eval(NULL, what, NULL, NULL, 0, value, err); /* NULL: the default session */
}
#else /* for a compiler without the attribute cleanup */
static tn_status evaluate(tn_graph *graph, const tn_session_options *options, tn_output what, tn_tensor **value,
                          tn_error *err)
{
  tn_session *session = NULL;
  tn_status status = tn_session_open_scoped(options, graph, &session, err);
  if (status == TN_OK) status = tn_eval(NULL, what, NULL, NULL, 0, value, err);
  tn_session_release(session);
  return status;
}
#endif

int main(int argc, char **argv)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = NULL;
  tn_session_options *options = NULL;
  tn_output sum;
  tn_tensor *value = NULL;
  if (tn_graph_create(&graph, &err) || add_sum(graph, &sum, &err) || tn_session_options_create(&options, &err) ||
      tn_session_options_set_target(options, argc > 1 ? argv[1] : "", &err) ||
      evaluate(graph, options, sum, &value, &err))
    fprintf(stderr, "%s\n", tn_error_message(&err));
  else
    print_vector(value);
  int status = tn_error_code(&err) != TN_OK;
  tn_tensor_unref(value);
  tn_session_options_destroy(options);
  tn_graph_unref(graph);
  tn_error_clear(&err);
  return status;
}
