/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a model in C, y = scale * x with a variable "scale", and saves it as a SavedModel.
 *
 *   build FOLDER */
#include <stdio.h>
#include <tenon/tenon.h>

/* Errors of a builder are returned by tn_operation_finish, so only that is checked. */
static tn_status finish(tn_operation_builder *b, tn_output *out, tn_error *err)
{
  out->index = 0;
  return tn_operation_finish(b, &out->op, err);
}

static tn_status add_placeholder(tn_graph *graph, tn_output *out, tn_error *err)
{
  const int64_t dims[] = { -1 };
  tn_operation_builder *b = tn_operation_begin(graph, "Placeholder", "x", 0);
  tn_operation_set_type(b, "dtype", TN_FLOAT);
  tn_operation_set_shape(b, "shape", dims, 1);
  return finish(b, out, err);
}

static tn_status add_constant(tn_graph *graph, float value, tn_output *out, tn_error *err)
{
  tn_tensor *tensor = NULL;
  tn_status st = tn_tensor_from_data(TN_FLOAT, NULL, 0, &value, sizeof value, &tensor, err);
  if (st != TN_OK) return st;
  tn_operation_builder *b = tn_operation_begin(graph, "Const", "initial", 0);
  tn_operation_set_type(b, "dtype", TN_FLOAT);
  tn_operation_set_tensor(b, "value", tensor);
  tn_tensor_unref(tensor);
  return finish(b, out, err);
}

static tn_status add_variable(tn_graph *graph, tn_output *out, tn_error *err)
{
  tn_operation_builder *b = tn_operation_begin(graph, "VarHandleOp", "scale", 0);
  tn_operation_set_string(b, "shared_name", "scale", 5);
  tn_operation_set_type(b, "dtype", TN_FLOAT);
  tn_operation_set_shape(b, "shape", NULL, 0);
  return finish(b, out, err);
}

/* Adds an operation with one or two inputs; the types follow from these, except that of a variable's value. */
static tn_status add(tn_graph *graph, const char *op, const char *name, const tn_output *inputs, int n, tn_output *out,
                     tn_error *err)
{
  tn_operation_builder *b = tn_operation_begin(graph, op, name, 0);
  for (int i = 0; i < n; i++) tn_operation_add_input(b, inputs[i]);
  if (n == 1) tn_operation_set_type(b, "dtype", TN_FLOAT);
  return finish(b, out, err);
}

static tn_status build(tn_graph *graph, tn_error *err)
{
  tn_output x, initial, scale, value, out;
  tn_status st = add_placeholder(graph, &x, err);
  if (st == TN_OK) st = add_constant(graph, 3, &initial, err);
  if (st == TN_OK) st = add_variable(graph, &scale, err);
  if (st == TN_OK) st = add(graph, "AssignVariableOp", "init", (tn_output[]){ scale, initial }, 2, &out, err);
  if (st == TN_OK) st = add(graph, "ReadVariableOp", "read", &scale, 1, &value, err);
  return st != TN_OK ? st : add(graph, "Mul", "y", (tn_output[]){ x, value }, 2, &out, err);
}

static tn_status save(tn_session *session, const char *folder, tn_error *err)
{
  const char *input = "x", *input_tensor = "x:0", *output = "y", *output_tensor = "y:0";
  tn_model_signature_spec signature = { .struct_size = sizeof signature,
                                        .name = "serving_default",
                                        .input_keys = &input,
                                        .input_tensors = &input_tensor,
                                        .n_inputs = 1,
                                        .output_keys = &output,
                                        .output_tensors = &output_tensor,
                                        .n_outputs = 1 };
  tn_model_save_options options = { .struct_size = sizeof options, .signatures = &signature, .n_signatures = 1 };
  return tn_model_save(session, folder, &options, err);
}

int main(int argc, char **argv)
{
  const char *init = "init";
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = NULL;
  tn_session_options *options = NULL;
  tn_session *session = NULL;
  if (tn_graph_create(&graph, &err) || build(graph, &err) || tn_session_options_create(&options, &err) ||
      tn_session_create(options, &session, &err) || tn_session_set_graph(session, graph, &err) ||
      tn_session_run(session, NULL, NULL, NULL, 0, NULL, NULL, 0, &init, 1, NULL, &err) ||
      save(session, argc > 1 ? argv[1] : "scale", &err))
    fprintf(stderr, "%s\n", tn_error_message(&err));
  int status = tn_error_code(&err) != TN_OK;
  tn_session_destroy(session);
  tn_session_options_destroy(options);
  tn_graph_unref(graph);
  tn_error_clear(&err);
  return status;
}
