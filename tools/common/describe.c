/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the inputs, outputs and targets of a model. */
#include <stdlib.h>

#include <tools/tool.h>

void tool_table_reason(tool_table *table, const tool_node *node, const char *otherwise)
{
  if (node->blocked_by == NULL)
    tool_table_cell(table, "%s", otherwise);
  else if (node->blocked_by == node && node->support == TOOL_IN_FUNCTION)
    tool_table_cell(table, "calls a function that needs %s, which is not supported", node->needs);
  else if (node->blocked_by == node)
    tool_table_cell(table, "%s is not supported", tn_operation_type(node->op));
  else
    tool_table_cell(table, "needs %s, which is not supported (node '%s')", tn_operation_type(node->blocked_by->op),
                    tn_operation_name(node->blocked_by->op));
}

static void add_row(tool_table *table, const tool_node *node, int32_t index)
{
  tool_text text = { 0 };
  tool_table_cell(table, "%s:%d", tn_operation_name(node->op), (int)index);
  tool_text_output(&text, (tn_output){ node->op, index });
  tool_table_cell(table, "%s", text.data);
  tool_text_fini(&text);
  tool_table_reason(table, node, tool_node_has_default(node) ? "has a default" : "");
}

/* Adds rows for the first `most` outputs of matching nodes; returns the number of all of them. */
static size_t add_rows(tool_table *table, const tool_model *model, bool (*fits)(const tool_node *), size_t most)
{
  size_t found = 0;
  for (size_t i = 0; i < model->n; i++) {
    const tool_node *node = &model->nodes[i];
    if (!fits(node)) continue;
    size_t n = tn_operation_n_outputs(node->op);
    /* Assume one output for an unknown op. A target has none. */
    if (n == 0 && tn_operation_schema(node->op) == NULL) n = 1;
    for (size_t j = 0; j < n; j++)
      if (found++ < most) add_row(table, node, (int32_t)j);
    if (n == 0 && found++ < most) {
      tool_table_cell(table, "%s", tn_operation_name(node->op));
      tool_table_cell(table, "%s", tn_operation_type(node->op));
      tool_table_reason(table, node, "");
    }
  }
  return found;
}

static void section(const tool_model *model, const char *title, const char *none, bool (*fits)(const tool_node *),
                    size_t most, FILE *out)
{
  tool_table table;
  tool_table_init(&table, 3, 0);
  size_t found = add_rows(&table, model, fits, most);
  if (found == 0 && none == NULL) return;
  fprintf(out, "\n%s\n", title);
  if (found == 0) fprintf(out, "  %s\n", none);
  tool_table_print(&table, "  ", out);
  if (found > most) fprintf(out, "  ... and %zu more\n", found - most);
}

void tool_describe_ends(const tool_model *model, size_t most, FILE *out)
{
  section(model, "Inputs (placeholders)", "none", tool_node_is_input, most, out);
  section(model, "Outputs (used by no other node)", "none", tool_node_is_output, most, out);
  section(model, "Targets (nodes without outputs)", NULL, tool_node_is_target, most, out);
}
