/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes give a graph or a status; every query of a graph is safe. fuzz/seeds.sh makes further seeds. */
#include <fuzz/memory.h>

#include <string.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MOST_MEMORY ((size_t)64 << 20)

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
  (void)argc, (void)argv;
  fuzz_limit_memory(MOST_MEMORY);
  return 0;
}

static void read_attribute(const tn_operation *op, const char *name)
{
  tn_tensor *tensor;
  const char *text;
  const int64_t *ints;
  const float *floats;
  const tn_bool *bools;
  const tn_dtype *types;
  int64_t i;
  float f;
  tn_bool b;
  tn_dtype t;
  int32_t rank;
  size_t n, length;
  tn_operation_attr_int(op, name, &i, NULL);
  tn_operation_attr_float(op, name, &f, NULL);
  tn_operation_attr_bool(op, name, &b, NULL);
  tn_operation_attr_type(op, name, &t, NULL);
  tn_operation_attr_string(op, name, &text, &length, NULL);
  tn_operation_attr_shape(op, name, &ints, &rank, NULL);
  tn_operation_attr_func(op, name, &text, NULL);
  tn_operation_attr_ints(op, name, &ints, &n, NULL);
  tn_operation_attr_floats(op, name, &floats, &n, NULL);
  tn_operation_attr_bools(op, name, &bools, &n, NULL);
  tn_operation_attr_types(op, name, &types, &n, NULL);
  for (size_t k = 0; k < 3; k++) {
    tn_operation_attr_string_at(op, name, k, &text, &length, &n, NULL);
    tn_operation_attr_shape_at(op, name, k, &ints, &rank, &n, NULL);
    tn_operation_attr_func_at(op, name, k, &text, &n, NULL);
    if (tn_operation_attr_tensor_at(op, name, k, &tensor, &n, NULL) == TN_OK && tensor != NULL)
      (void)tn_tensor_bytes(tensor);
  }
  if (tn_operation_attr_tensor(op, name, &tensor, NULL) != TN_OK) return;
  const unsigned char *bytes = tn_tensor_data(tensor);
  unsigned sum = 0;
  for (size_t k = 0; bytes != NULL && k < tn_tensor_bytes(tensor); k++) sum += bytes[k];
  if (sum == 1) (void)tn_tensor_get_string(tensor, 0, &text, &length, NULL);
}

static void read_operation(tn_graph *graph, tn_operation *op)
{
  if (tn_graph_find(graph, tn_operation_name(op)) != op) abort();
  for (size_t i = 0; i < tn_operation_n_attrs(op); i++) read_attribute(op, tn_operation_attr_name(op, i));
  for (size_t i = 0; i < tn_operation_n_inputs(op); i++)
    if (tn_operation_input(op, i).op == NULL) abort();
  for (size_t i = 0; i < tn_operation_n_control_inputs(op); i++)
    if (tn_operation_control_input(op, i) == NULL) abort();
  for (size_t i = 0; i < tn_operation_n_outputs(op) && i < 50; i++) {
    int64_t dims[TN_MAX_RANK];
    int32_t rank;
    tn_status st = tn_output_shape((tn_output){ op, (int32_t)i }, dims, TN_MAX_RANK, &rank, NULL);
    if (st != TN_OK && st != TN_RESOURCE_EXHAUSTED) abort();
    if (tn_operation_output_dtype(op, i) == TN_DTYPE_INVALID) abort();
  }
}

/* Signatures and bodies of the library. */
static void read_functions(tn_graph *graph)
{
  for (size_t i = 0; i < tn_graph_n_functions(graph); i++) {
    const tn_function *f = tn_graph_function(graph, i);
    const tn_operation *op;
    char text[200];
    if (tn_graph_find_function(graph, tn_function_name(f)) != f) abort();
    tn_op_schema_format(tn_function_schema(f), text, sizeof text);
    if (tn_function_self(f, &op, NULL) == TN_OK)
      for (size_t k = 0; k < tn_operation_n_attrs(op); k++) read_attribute(op, tn_operation_attr_name(op, k));
    for (size_t k = 0; k < tn_function_n_nodes(f); k++)
      if (tn_function_node(f, k, &op, NULL) == TN_OK)
        for (size_t a = 0; a < tn_operation_n_attrs(op); a++) read_attribute(op, tn_operation_attr_name(op, a));
  }
}

/* Reads the written graph again. */
static void export_and_import(tn_graph *graph)
{
  tn_graph *again;
  void *bytes;
  size_t size;
  if (tn_graph_export(graph, 0, &bytes, &size, NULL) != TN_OK) return;
  if (tn_graph_create(&again, NULL) != TN_OK) abort();
  tn_status st = tn_graph_import(again, bytes, size, NULL, NULL);
  if (st != TN_OK && st != TN_RESOURCE_EXHAUSTED) abort();
  tn_graph_unref(again);
  tn_free(bytes);
}

/* Imports the same bytes a second time, with options chosen by a byte in the middle. */
static void import_again(tn_graph *graph, const uint8_t *data, size_t size)
{
  size_t n = tn_graph_n_operations(graph);
  unsigned choice = size == 0 ? 0 : data[size / 2];
  tn_operation *op = tn_graph_operation(graph, n / 2);
  if (op == NULL) return;
  const char *name = tn_operation_name(op);
  tn_import_mapping map = { name, { op, 0 } };
  tn_import_results *results;
  tn_import_options o = { .struct_size = sizeof o, .prefix = choice & 1 ? name : NULL, .input_map = &map };
  o.flags = choice & (TN_IMPORT_UNIQUIFY_NAMES | TN_IMPORT_UNIQUIFY_PREFIX | TN_IMPORT_SKIP_MAPPED_NODES);
  o.budget = choice & 2 ? size * (choice >> 2) : 0;
  o.n_input_map = (choice & 32) != 0 && tn_operation_n_outputs(op) > 0;
  o.control_inputs = &op;
  o.n_control_inputs = (choice & 64) != 0;
  o.return_outputs = &name;
  o.n_return_outputs = (choice & 128) != 0;
  o.results = &results;
  tn_status st = tn_graph_import(graph, data, size, &o, NULL);
  if ((st == TN_OK) != (results != NULL) || (st != TN_OK && tn_graph_n_operations(graph) != n)) abort();
  if (st == TN_OK) export_and_import(graph);
  tn_import_results_free(results);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph;
  if (tn_graph_create(&graph, &err) != TN_OK) abort();
  tn_status st = tn_graph_import(graph, data, size, NULL, &err);
  size_t n = tn_graph_n_operations(graph);
  if ((st == TN_OK) != (tn_error_message(&err)[0] == 0) || (st != TN_OK && n != 0)) abort();
  for (size_t i = 0; i < n; i++) read_operation(graph, tn_graph_operation(graph, i));
  read_functions(graph);
  if (st == TN_OK) import_again(graph, data, size);
  tn_graph_unref(graph);
  tn_error_clear(&err);
  return 0;
}
