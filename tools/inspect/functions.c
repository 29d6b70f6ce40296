/* SPDX-License-Identifier: Apache-2.0 */
/* tenon inspect: lists the functions of a model. */
#include <stdlib.h>
#include <string.h>

#include <tools/inspect/inspect.h>

/* Appends "F(x: float32) -> (y: float32)". */
static char *signature_of(const tn_function *f)
{
  const tn_op_schema *schema = tn_function_schema(f);
  size_t length = tn_op_schema_format(schema, NULL, 0);
  char *text = tool_alloc(length + 1, 1);
  tn_op_schema_format(schema, text, length + 1);
  return text;
}

void inspect_print_functions(const tn_graph *graph, FILE *out)
{
  size_t n = tn_graph_n_functions(graph);
  tool_table table;
  if (n == 0) return;
  tool_table_init(&table, 2, 1);
  for (size_t i = 0; i < n && i < INSPECT_SHOWN; i++) {
    const tn_function *f = tn_graph_function(graph, i);
    const char *gradient = tn_graph_gradient(graph, tn_function_name(f));
    char *signature = signature_of(f);
    tool_table_cell(&table, "%zu", tn_function_n_nodes(f));
    tool_table_cell(&table, "%s%s%s", signature, gradient != NULL ? "; gradient " : "",
                    gradient != NULL ? gradient : "");
    free(signature);
  }
  fprintf(out, "\nFunctions (with node counts)\n");
  tool_table_print(&table, "  ", out);
  if (n > INSPECT_SHOWN) fprintf(out, "  ... and %zu more; --json shows all\n", n - INSPECT_SHOWN);
}

static json_t *json_nodes(const tn_function *f)
{
  json_t *array = json_array();
  for (size_t i = 0; i < tn_function_n_nodes(f); i++) {
    json_t *node = json_object(), *inputs = json_array();
    for (size_t k = 0; k < tn_function_node_n_inputs(f, i); k++)
      tool_json_append(inputs, tool_json_text(tn_function_node_input(f, i, k)));
    tool_json_set(node, "name", tool_json_text(tn_function_node_name(f, i)));
    tool_json_set(node, "op", tool_json_text(tn_function_node_type(f, i)));
    tool_json_set(node, "inputs", inputs);
    tool_json_append(array, node);
  }
  return array;
}

static json_t *json_outputs(const tn_function *f)
{
  json_t *object = json_object();
  for (size_t i = 0; i < tn_function_n_outputs(f); i++) {
    const char *source = tn_function_output_source(f, i);
    tool_json_set(object, tn_function_output_name(f, i), source == NULL ? json_null() : tool_json_text(source));
  }
  return object;
}

json_t *inspect_json_functions(const tn_graph *graph)
{
  json_t *array = json_array();
  for (size_t i = 0; i < tn_graph_n_functions(graph); i++) {
    const tn_function *f = tn_graph_function(graph, i);
    const char *gradient = tn_graph_gradient(graph, tn_function_name(f));
    json_t *function = json_object();
    char *signature = signature_of(f);
    tool_json_set(function, "name", tool_json_text(tn_function_name(f)));
    tool_json_set(function, "signature", tool_json_text(signature));
    tool_json_set(function, "nodes", json_nodes(f));
    tool_json_set(function, "outputs", json_outputs(f));
    if (gradient != NULL) tool_json_set(function, "gradient", tool_json_text(gradient));
    tool_json_append(array, function);
    free(signature);
  }
  return array;
}
