/* SPDX-License-Identifier: Apache-2.0 */
/* run MODEL RUNTIME: feeds x = [[1, 2], [3, -4]] and prints y, on the named runtime. */
#include <stdio.h>
#include <tenon/tenon.h>

int main(int argc, char **argv)
{
  const float x[4] = { 1, 2, 3, -4 };
  const int64_t dims[2] = { 2, 2 };
  const char *feed = "x:0", *fetch = "y:0";
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = NULL;
  tn_session_options *options = NULL;
  tn_session *session = NULL;
  tn_tensor *in = NULL, *out = NULL;
  if (argc != 3) {
    fprintf(stderr, "Usage: %s MODEL RUNTIME\n", argv[0]);
    return 2;
  }
  if (tn_graph_create(&graph, &err) || tn_graph_import_file(graph, argv[1], NULL, &err) ||
      tn_session_options_create(&options, &err) || tn_session_options_set_target(options, argv[2], &err) ||
      tn_session_create(options, &session, &err) || tn_session_set_graph(session, graph, &err) ||
      tn_tensor_from_data(TN_FLOAT, dims, 2, x, sizeof x, &in, &err) ||
      tn_session_run(session, NULL, &feed, &in, 1, &fetch, &out, 1, NULL, 0, NULL, &err))
    fprintf(stderr, "%s\n", tn_error_message(&err));
  for (int64_t i = 0; out != NULL && i < tn_tensor_elements(out); i++)
    printf("%.6f\n", (double)((const float *)tn_tensor_data(out))[i]);
  int failed = tn_error_code(&err) != TN_OK;
  tn_tensor_unref(out);
  tn_tensor_unref(in);
  tn_session_destroy(session);
  tn_session_options_destroy(options);
  tn_graph_unref(graph);
  tn_error_clear(&err);
  return failed;
}
