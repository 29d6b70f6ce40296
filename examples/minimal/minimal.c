/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <tenon/tenon.h>

int main(void)
{
  const char *feed = "image:0", *fetch = "class:0";
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = NULL;
  tn_session_options *options = NULL;
  tn_session *session = NULL;
  tn_tensor *images = NULL, *digits = NULL;
  if (tn_graph_create(&graph, &err) || tn_graph_import_file(graph, "digits.pb", NULL, &err) ||
      tn_session_options_create(&options, &err) || tn_session_options_set_target(options, "direct", &err) ||
      tn_session_create(options, &session, &err) || tn_session_set_graph(session, graph, &err) ||
      tn_npy_load("images.npy", TN_FLOAT, &images, &err) ||
      tn_session_run(session, NULL, &feed, &images, 1, &fetch, &digits, 1, NULL, 0, NULL, &err))
    fprintf(stderr, "%s\n", tn_error_message(&err));
  else
    printf("the first digit is a %d\n", (int)*(int64_t *)tn_tensor_data(digits));
  int status = tn_error_code(&err) != TN_OK;
  tn_tensor_unref(digits);
  tn_tensor_unref(images);
  tn_session_destroy(session);
  tn_session_options_destroy(options);
  tn_graph_unref(graph);
  tn_error_clear(&err);
  return status;
}
