/* SPDX-License-Identifier: Apache-2.0 */
/* Any sequence of builder calls with the registered ops gives an operation or a status with a message, and shapes of
 * the result can be queried and set. */
#include <fuzz/bytes.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static tn_operation *one(tn_graph *graph, bytes *b, tn_error *err)
{
  char name[2] = { (char)('a' + next(b) % 26), 0 };
  const tn_op_schema *s = next_op(b);
  tn_operation_builder *op = tn_operation_begin(graph, tn_op_schema_name(s), name, 0);
  tn_operation *made = NULL;
  size_t have = tn_graph_n_operations(graph);
  if (op == NULL) abort();
  for (size_t i = 0; i < tn_op_schema_n_inputs(s) && have > 0; i++) {
    uint8_t what = next(b);
    tn_operation *from = tn_graph_operation(graph, what % have);
    tn_output in[3] = { { from, 0 }, { from, what >> 4 & 3 }, { from, 0 } };
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
    set_attr(op, attr.name, what > 250 ? what & 31 : attr.kind, b, number, text);
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
