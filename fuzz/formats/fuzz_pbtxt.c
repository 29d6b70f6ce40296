/* SPDX-License-Identifier: Apache-2.0 */
/* Any text gives a graph or a status, and the text form of a graph, read and written again, is the same text. */
#include <stdlib.h>
#include <string.h>

#include <tenon/tenon.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static tn_graph *import(const void *data, size_t size, uint32_t flags, tn_error *err)
{
  tn_graph *graph;
  tn_import_options options = { .struct_size = sizeof options, .flags = flags };
  if (tn_graph_create(&graph, err) != TN_OK) abort();
  if (tn_graph_import(graph, data, size, &options, err) == TN_OK) return graph;
  if (tn_error_message(err)[0] == 0 || tn_graph_n_operations(graph) != 0) abort();
  tn_graph_unref(graph);
  return NULL;
}

static void check(tn_graph *graph, uint32_t flags, tn_error *err)
{
  void *first, *second;
  size_t n, m;
  tn_status st = tn_graph_export(graph, flags, &first, &n, err);
  if (st != TN_OK) return; /* malformed in parts that an import does not check */
  tn_graph *copy = import(first, n, flags == TN_EXPORT_TEXT ? TN_IMPORT_TEXT : 0, err);
  if (copy == NULL || tn_graph_n_operations(copy) != tn_graph_n_operations(graph)) abort();
  if (tn_graph_export(copy, flags, &second, &m, err) != TN_OK) abort();
  /* Comments replace fields that text cannot express; they are lost the second time. */
  if (flags == 0 || memchr(first, '#', n) == NULL)
    if (n != m || (n > 0 && memcmp(first, second, n) != 0)) abort();
  tn_free(first);
  tn_free(second);
  tn_graph_unref(copy);
}

/* The first byte chooses the form of the rest. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  if (size == 0) return 0;
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = import(data + 1, size - 1, data[0] == 'b' ? 0 : TN_IMPORT_TEXT, &err);
  if (graph != NULL) {
    check(graph, 0, &err);
    check(graph, TN_EXPORT_TEXT, &err);
    tn_graph_unref(graph);
  }
  tn_error_clear(&err);
  return 0;
}
