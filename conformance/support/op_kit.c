/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/support/op_kit.h"

void ops_open_text_in(ts *t, const char *folder, const char *text)
{
  tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  ts_init(t, 1);
  if (folder != NULL) REQUIRE_OK(tn_session_options_add_write_folder(t->options, folder, &t->err), &t->err);
  REQUIRE_OK(tn_graph_import(t->graph, text, strlen(text), &options, &t->err), &t->err);
  ts_start(t);
}

void ops_open_text(ts *t, const char *text) { ops_open_text_in(t, NULL, text); }

const char *ops_shape_of(const ts *t, const char *node, int32_t output)
{
  static char text[200];
  int64_t dims[TN_MAX_RANK];
  int32_t rank;
  tn_output o = { tn_graph_find(t->graph, node), output };
  if (o.op == NULL || tn_output_shape(o, dims, TN_MAX_RANK, &rank, NULL) != TN_OK) return "none";
  if (rank < 0) return "?";
  size_t at = (size_t)snprintf(text, sizeof text, "[");
  for (int32_t k = 0; k < rank; k++) {
    char number[24] = "?";
    if (dims[k] >= 0) snprintf(number, sizeof number, "%lld", (long long)dims[k]);
    at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", k > 0 ? "," : "", number);
  }
  snprintf(text + at, sizeof text - at, "]");
  return text;
}
