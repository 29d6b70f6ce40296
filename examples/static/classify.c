/* SPDX-License-Identifier: Apache-2.0 */
/* A program in one file: libtenon, the runtime and the C library are linked in, so it runs on
 * systems where nothing is installed. README.md explains how to build it.
 *
 *   classify MODEL.pb IMAGES.npy [RUNTIME]   prints the digits in the images, and the runtime used */
#include <inttypes.h>
#include <stdio.h>
#include <tenon/tenon.h>

static tn_status classify(const char *model, const char *images_file, const char *runtime, tn_error *err)
{
  const char *feed = "image:0", *fetch = "class:0";
  tn_graph *graph = NULL;
  tn_session_options *options = NULL;
  tn_session *session = NULL;
  tn_tensor *images = NULL, *digits = NULL;
  if (tn_graph_create(&graph, err) == TN_OK && tn_graph_import_file(graph, model, NULL, err) == TN_OK &&
      tn_session_options_create(&options, err) == TN_OK &&
      tn_session_options_set_target(options, runtime, err) == TN_OK &&
      tn_session_create(options, &session, err) == TN_OK && tn_session_set_graph(session, graph, err) == TN_OK &&
      tn_npy_load(images_file, TN_FLOAT, &images, err) == TN_OK &&
      tn_session_run(session, NULL, &feed, &images, 1, &fetch, &digits, 1, NULL, 0, NULL, err) == TN_OK) {
    const tn_runtime_info *info = tn_session_runtime(session);
    const int64_t *digit = tn_tensor_data(digits);
    for (int64_t i = 0; i < tn_tensor_elements(digits); i++) printf("%" PRId64, digit[i]);
    printf("\n%s (%s)\n", info->name, info->file[0] != 0 ? info->file : info->origin);
  }
  tn_tensor_unref(digits);
  tn_tensor_unref(images);
  tn_session_destroy(session);
  tn_session_options_destroy(options);
  tn_graph_unref(graph);
  return tn_error_code(err);
}

int main(int argc, char **argv)
{
  tn_error err = TN_ERROR_INIT;
  if (argc < 3 || argc > 4) {
    fprintf(stderr, "Usage: classify MODEL.pb IMAGES.npy [RUNTIME]\n");
    return 2;
  }
  tn_status status = classify(argv[1], argv[2], argc == 4 ? argv[3] : "direct", &err);
  if (status != TN_OK) fprintf(stderr, "%s: %s\n", tn_status_name(status), tn_error_message(&err));
  tn_error_clear(&err);
  return status != TN_OK;
}
