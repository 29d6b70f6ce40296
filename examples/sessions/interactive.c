/* SPDX-License-Identifier: Apache-2.0 */
/* A session for interactive use. Prints [3. 5.].
 *
 *   interactive [RUNTIME]
 *
 * An interactive session is the default of its thread from when it is opened until it is closed.
 * Its graph may be empty at first; new operations can be evaluated at once. */
#include "sum.h"

int main(int argc, char **argv)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = NULL;
  tn_session_options *options = NULL;
  tn_session *session = NULL;
  tn_output sum;
  tn_tensor *value = NULL;
  if (tn_graph_create(&graph, &err) || tn_session_options_create(&options, &err) ||
      tn_session_options_set_target(options, argc > 1 ? argv[1] : "", &err) ||
      tn_session_open_interactive(options, graph, &session, &err) || add_sum(graph, &sum, &err) ||
      tn_eval(NULL, sum, NULL, NULL, 0, &value, &err) || tn_session_close(session, &err))
    fprintf(stderr, "%s\n", tn_error_message(&err));
  else
    print_vector(value);
  int status = tn_error_code(&err) != TN_OK;
  tn_tensor_unref(value);
  tn_session_destroy(session);
  tn_session_options_destroy(options);
  tn_graph_unref(graph);
  tn_error_clear(&err);
  return status;
}
