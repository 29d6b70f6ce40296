/* SPDX-License-Identifier: Apache-2.0 */
/* The signatures of a model as text and as JSON. */
#include <stdlib.h>

#include <tools/tool.h>

typedef tn_status (*endpoint_at_fn)(const tn_model *model, const char *signature, size_t i, tn_model_endpoint *out,
                                    tn_error *err);

void tool_text_maker(tool_text *text, const tn_model_info *info)
{
  bool number = info->made_by[0] >= '0' && info->made_by[0] <= '9';
  tool_text_printf(text, "%s%s", number ? "TensorFlow " : "", info->made_by);
}

void tool_text_tags(tool_text *text, const tn_model *model, size_t i)
{
  const char *tag;
  tool_text_add(text, "{", 1);
  for (size_t k = 0; (tag = tn_model_tag(model, i, k)) != NULL; k++)
    tool_text_printf(text, "%s%s", k > 0 ? ", " : "", tag);
  tool_text_add(text, "}", 1);
}

/* The node that an endpoint's tensor belongs to; NULL if it is not in the graph or there is no scan. */
static const tool_node *node_of(const tool_source *source, const tn_model_endpoint *endpoint, const tool_model *scan)
{
  tn_output output;
  if (scan == NULL || tool_find_output(source->graph, "", endpoint->tensor, &output, NULL) != TN_OK) return NULL;
  return tool_model_node(scan, output.op);
}

/* ---- as text ---- */

static void add_row(const tool_source *source, const tn_model_endpoint *endpoint, const tool_model *scan,
                    tool_table *table)
{
  tool_text type = { 0 };
  const tool_node *node = node_of(source, endpoint, scan);
  const char *note = endpoint->has_default ? "has a default" : "";
  if (endpoint->dtype == TN_DTYPE_INVALID) {
    tool_text_printf(&type, "no value"); /* such as the node of an init op */
  } else {
    tool_text_printf(&type, "%s ", tn_dtype_name(endpoint->dtype));
    tool_text_shape(&type, endpoint->dims, endpoint->rank);
  }
  tool_table_cell(table, "  %s", endpoint->key);
  tool_table_cell(table, "%s", type.data);
  tool_table_cell(table, "%s", endpoint->tensor);
  if (node != NULL)
    tool_table_reason(table, node, note);
  else
    tool_table_cell(table, "%s", note);
  tool_text_fini(&type);
}

static void add_rows(const tool_source *source, const char *signature, endpoint_at_fn at, const char *title,
                     const tool_model *scan, size_t most, tool_table *table)
{
  tn_model_endpoint endpoint = { .struct_size = sizeof(endpoint) };
  size_t n = 0;
  for (; at(source->model, signature, n, &endpoint, NULL) == TN_OK; n++) {
    if (n == 0) {
      tool_table_cell(table, "%s", title);
      for (int i = 1; i < 4; i++) tool_table_cell(table, "%s", "");
    }
    if (n < most) add_row(source, &endpoint, scan, table);
  }
  if (n <= most) return;
  tool_table_cell(table, "  ... and %zu more", n - most);
  for (int i = 1; i < 4; i++) tool_table_cell(table, "%s", "");
}

void tool_print_signature(const tool_source *source, const tn_model_signature *signature, const tool_model *scan,
                          size_t most, FILE *out)
{
  tool_table table, title;
  tool_table_init(&title, 1, 0);
  tool_table_cell(&title, "Signature %s%s%s%s", signature->name, signature->method_name[0] != '\0' ? " (" : "",
                  signature->method_name, signature->method_name[0] != '\0' ? ")" : "");
  fputc('\n', out);
  tool_table_print(&title, "", out);
  tool_table_init(&table, 4, 0);
  add_rows(source, signature->name, tn_model_input_at, "inputs", scan, most, &table);
  add_rows(source, signature->name, tn_model_output_at, "outputs", scan, most, &table);
  tool_table_print(&table, "  ", out);
}

/* ---- as JSON ---- */

static json_t *json_endpoint(const tool_source *source, const tn_model_endpoint *endpoint, const tool_model *scan)
{
  json_t *object = json_object();
  const tool_node *node = node_of(source, endpoint, scan);
  bool typed = endpoint->dtype != TN_DTYPE_INVALID;
  tool_json_set(object, "key", tool_json_text(endpoint->key));
  tool_json_set(object, "tensor", tool_json_text(endpoint->tensor));
  tool_json_set(object, "dtype", typed ? tool_json_text(tn_dtype_name(endpoint->dtype)) : json_null());
  tool_json_set(object, "shape", tool_json_shape(endpoint->dims, endpoint->rank));
  if (endpoint->has_default) tool_json_set(object, "has_default", json_true());
  if (node != NULL && node->blocked_by != NULL)
    tool_json_set(object, "blocked_by", tool_json_text(tn_operation_name(node->blocked_by->op)));
  return object;
}

static json_t *json_endpoints(const tool_source *source, const char *signature, endpoint_at_fn at,
                              const tool_model *scan)
{
  tn_model_endpoint endpoint = { .struct_size = sizeof(endpoint) };
  json_t *array = json_array();
  for (size_t i = 0; at(source->model, signature, i, &endpoint, NULL) == TN_OK; i++)
    tool_json_append(array, json_endpoint(source, &endpoint, scan));
  return array;
}

json_t *tool_json_signatures(const tool_source *source, const tool_model *scan)
{
  tn_model_signature signature = { .struct_size = sizeof(signature) };
  json_t *array = json_array();
  for (size_t i = 0; tn_model_signature_at(source->model, i, &signature, NULL) == TN_OK; i++) {
    json_t *object = json_object();
    tool_json_set(object, "name", tool_json_text(signature.name));
    tool_json_set(object, "method", tool_json_text(signature.method_name));
    tool_json_set(object, "inputs", json_endpoints(source, signature.name, tn_model_input_at, scan));
    tool_json_set(object, "outputs", json_endpoints(source, signature.name, tn_model_output_at, scan));
    tool_json_append(array, object);
  }
  return array;
}
