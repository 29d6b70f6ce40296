/* SPDX-License-Identifier: Apache-2.0 */
/* Any sequence of builder calls over the registered ops is an operation or a status with a message, and shapes of what
 * was built can be asked for and set. */
#include <stdlib.h>
#include <string.h>

#include <tenon/tenon.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct bytes {
  const uint8_t *at, *end;
} bytes;

static uint8_t next(bytes *b) { return b->at < b->end ? *b->at++ : 0; }

static int64_t number(bytes *b)
{
  static const int64_t edges[] = { 0, 1, -1, 2, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, (int64_t)1 << 48, 3 };
  uint8_t kind = next(b);
  return kind < 128 ? edges[kind % 10] : kind - 160;
}

static tn_tensor *tensor(bytes *b)
{
  static const tn_dtype dtypes[] = { TN_INT32, TN_FLOAT, TN_INT64, TN_BOOL };
  tn_tensor *t = NULL;
  int64_t n = next(b) % 6;
  tn_dtype dtype = dtypes[next(b) % 4];
  if (tn_tensor_create(dtype, &n, next(b) % 2, &t, NULL) != TN_OK) abort();
  for (int64_t k = 0; k < tn_tensor_elements(t); k++) {
    int64_t value = number(b);
    if (dtype == TN_INT64) ((int64_t *)tn_tensor_data(t))[k] = value;
    if (dtype == TN_INT32) ((int32_t *)tn_tensor_data(t))[k] = (int32_t)(value & 0xff) - 4;
    if (dtype == TN_FLOAT) ((float *)tn_tensor_data(t))[k] = 1;
    if (dtype == TN_BOOL) ((uint8_t *)tn_tensor_data(t))[k] = value & 1;
  }
  return t;
}

static void set_attr(tn_operation_builder *op, const char *name, int32_t kind, bytes *b, const char *text)
{
  int64_t ints[8];
  size_t n = next(b) % 9;
  for (size_t i = 0; i < n; i++) ints[i] = number(b);
  tn_dtype type = next(b) % 32;
  switch (kind) {
  case TN_ATTR_INT: tn_operation_set_int(op, name, number(b)); break;
  case TN_ATTR_FLOAT: tn_operation_set_float(op, name, (float)number(b)); break;
  case TN_ATTR_BOOL: tn_operation_set_bool(op, name, next(b) & 1); break;
  case TN_ATTR_TYPE: tn_operation_set_type(op, name, type); break;
  case TN_ATTR_STRING: tn_operation_set_string(op, name, text, strlen(text)); break;
  case TN_ATTR_SHAPE: tn_operation_set_shape(op, name, ints, (int32_t)n - 1); break;
  case TN_ATTR_FUNC: tn_operation_set_func(op, name, text); break;
  case TN_ATTR_TENSOR: {
    tn_tensor *t = tensor(b);
    tn_operation_set_tensor(op, name, t);
    tn_tensor_unref(t);
    break;
  }
  case TN_ATTR_LIST + TN_ATTR_INT: tn_operation_set_ints(op, name, ints, n); break;
  case TN_ATTR_LIST + TN_ATTR_TYPE: tn_operation_set_types(op, name, &type, n > 0); break;
  default: tn_operation_set_proto(op, name, b->at, (size_t)(b->end - b->at) % 16); break;
  }
}

static tn_operation *one(tn_graph *graph, bytes *b, tn_error *err)
{
  char name[2] = { (char)('a' + next(b) % 26), 0 };
  const tn_op_schema *s = tn_op_schema_at((next(b) | (size_t)next(b) << 8) % tn_n_op_schemas());
  tn_operation_builder *op = tn_operation_begin(graph, tn_op_schema_name(s), name, 0);
  tn_operation *made = NULL;
  size_t have = tn_graph_n_operations(graph);
  if (op == NULL) abort();
  for (size_t i = 0; i < tn_op_schema_n_inputs(s) && have > 0; i++) {
    uint8_t what = next(b);
    tn_operation *from = tn_graph_operation(graph, what % have);
    tn_output in[2] = { { from, 0 }, { from, what >> 6 } };
    tn_op_arg arg = { .struct_size = sizeof arg };
    if (tn_op_schema_input(s, i, &arg, NULL) != TN_OK) abort();
    if (arg.number_attr >= 0 || arg.list_attr >= 0)
      tn_operation_add_input_list(op, in, what >> 6);
    else
      tn_operation_add_input(op, in[what > 250]);
  }
  for (size_t i = 0; i < tn_op_schema_n_attrs(s); i++) {
    tn_op_attr attr = { .struct_size = sizeof attr };
    if (tn_op_schema_attr(s, i, &attr, NULL) != TN_OK) abort();
    uint8_t what = next(b);
    if (what < 90) continue;
    const char *text = attr.n_strings > 0 ? tn_op_schema_attr_string(s, i, what % attr.n_strings) : "x";
    set_attr(op, attr.name, what > 250 ? what & 31 : attr.kind, b, text);
  }
  tn_status st = tn_operation_finish(op, &made, err);
  if ((st == TN_OK) != (made != NULL) || (st != TN_OK && tn_error_message(err)[0] == 0)) abort();
  return made;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  bytes b = { data, data + size };
  tn_graph *graph;
  tn_error err = TN_ERROR_INIT;
  if (tn_graph_create(&graph, &err) != TN_OK) abort();
  while (b.at < b.end) {
    tn_operation *op = one(graph, &b, &err);
    if (op == NULL || tn_operation_n_outputs(op) == 0) continue;
    int64_t dims[TN_MAX_RANK];
    int32_t rank;
    tn_output out = { op, 0 };
    if (tn_output_shape(out, dims, TN_MAX_RANK, &rank, &err) != TN_OK) abort();
    if (next(&b) % 4 == 0) {
      for (int i = 0; i < 4; i++) dims[i] = number(&b);
      if (tn_graph_set_shape(out, dims, next(&b) % 5, &err) != TN_OK && tn_error_message(&err)[0] == 0) abort();
    }
  }
  size_t n;
  for (size_t i = 0; i < tn_graph_n_operations(graph); i++) {
    tn_output out = { tn_graph_operation(graph, i), 0 };
    int32_t rank;
    int64_t dims[TN_MAX_RANK];
    if (tn_output_consumers(out, NULL, 0, &n, &err) != TN_OK) abort();
    if (tn_operation_n_outputs(out.op) > 0 && tn_output_shape(out, dims, TN_MAX_RANK, &rank, &err) != TN_OK) abort();
  }
  tn_graph_unref(graph);
  tn_error_clear(&err);
  return 0;
}
