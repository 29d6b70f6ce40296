/* SPDX-License-Identifier: Apache-2.0 */
/* A session with plain calls: create it, run it, close it. Prints [3. 5.].
 *
 *   plain [RUNTIME]
 *
 * The program controls when each object is created and freed, and must free it on every way out. */
#include "sum.h"

int main(int argc, char **argv)
{
  const char *fetch = "sum";
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = NULL;
  tn_session_options *options = NULL;
  tn_session *session = NULL;
  tn_output sum;
  tn_tensor *value = NULL;
  if (tn_graph_create(&graph, &err) || add_sum(graph, &sum, &err) || tn_session_options_create(&options, &err) ||
      tn_session_options_set_target(options, argc > 1 ? argv[1] : "", &err) ||
      tn_session_create(options, &session, &err) || tn_session_set_graph(session, graph, &err) ||
      tn_session_run(session, NULL, NULL, NULL, 0, &fetch, &value, 1, NULL, 0, NULL, &err) ||
      tn_session_close(session, &err))
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
