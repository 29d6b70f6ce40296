/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are a graph or a status; a graph can be asked everything. fuzz/seeds.sh gives more seeds than the corpus. */
#include <stdlib.h>
#include <string.h>

#include <tenon/tenon.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Sizes that lie are met by an allocator with an end, as on a small machine. */
#define MOST ((size_t)64 << 20)
static size_t in_use;

static void *bounded_alloc(void *user, size_t size, size_t align)
{
  (void)user;
  void *memory = NULL;
  if (size > MOST || in_use > MOST - size || posix_memalign(&memory, align, size) != 0) return NULL;
  in_use += size;
  return memory;
}

static void bounded_free(void *user, void *memory, size_t size, size_t align)
{
  (void)user;
  (void)align;
  in_use -= size;
  free(memory);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
  (void)argc;
  (void)argv;
  tn_allocator bounded = { .struct_size = sizeof bounded, .alloc = bounded_alloc, .free = bounded_free };
  if (tn_set_allocator(&bounded, NULL) != TN_OK) abort();
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph;
  if (tn_graph_create(&graph, &err) != TN_OK) abort();
  tn_status st = tn_graph_import(graph, data, size, NULL, &err);
  size_t n = tn_graph_n_operations(graph);
  if ((st == TN_OK) != (tn_error_message(&err)[0] == 0) || (st != TN_OK && n != 0)) abort();
  for (size_t i = 0; i < n; i++) read_operation(graph, tn_graph_operation(graph, i));
  tn_graph_unref(graph);
  tn_error_clear(&err);
  return 0;
}
