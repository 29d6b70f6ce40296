/* SPDX-License-Identifier: Apache-2.0 */
/* The function library: looking things up, and call nodes against signatures. */
#include <core/graph/functions.h>

#include <stdlib.h>
#include <string.h>

static const tn__functions *table_of(const tn_graph *graph)
{
  return graph == NULL ? NULL : atomic_load_explicit(&graph->functions, memory_order_acquire);
}

static int compare_functions(const void *a, const void *b)
{
  return strcmp((*(tn_function *const *)a)->name, (*(tn_function *const *)b)->name);
}

static int compare_gradients(const void *a, const void *b)
{
  return strcmp(((const tn__gradient *)a)->function, ((const tn__gradient *)b)->function);
}

void tn__functions_sort(tn__functions *table)
{
  if (table->n > 0) qsort(table->sorted, table->n, sizeof *table->sorted, compare_functions);
  if (table->n_gradients > 0)
    qsort(table->gradients, table->n_gradients, sizeof *table->gradients, compare_gradients);
}

const tn_function *tn__functions_find(const tn__functions *table, const char *name)
{
  if (table == NULL || table->n == 0) return NULL;
  tn_function key = { .name = name }, *wanted = &key;
  tn_function **at = bsearch(&wanted, table->sorted, table->n, sizeof *table->sorted, compare_functions);
  return at == NULL ? NULL : *at;
}

const char *tn__functions_gradient(const tn__functions *table, const char *function)
{
  if (table == NULL || table->n_gradients == 0) return NULL;
  tn__gradient key = { function, NULL };
  tn__gradient *at = bsearch(&key, table->gradients, table->n_gradients, sizeof key, compare_gradients);
  return at == NULL ? NULL : at->gradient;
}

/* ---- call nodes ---- */

static tn_dtype type_of(const tn__function_arg *arg, const tn_operation *op)
{
  if (arg->dtype != TN_DTYPE_INVALID) return arg->dtype;
  for (uint32_t i = 0; i < op->n_attrs; i++)
    if (op->attrs[i].kind == TN_ATTR_TYPE && strcmp(op->attrs[i].name, arg->type_attr) == 0) return op->attrs[i].v.type;
  return TN_DTYPE_INVALID;
}

static bool has_lists(const tn__function_arg *args, size_t n)
{
  for (size_t i = 0; i < n; i++)
    if (args[i].number_attr[0] != '\0' || args[i].list_attr[0] != '\0') return true;
  return false;
}

tn_status tn__function_set_outputs(const tn_function *f, tn_operation *op, tn__arena *arena, tn_error *err)
{
  if (has_lists(f->outputs, f->n_outputs) || f->n_outputs == 0 || f->n_outputs > TN__STORED_DTYPES) return TN_OK;
  for (size_t i = 0; i < f->n_outputs; i++) {
    if (!tn__dtype_valid(type_of(&f->outputs[i], op)))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "attribute '%s' is missing, output '%s' of function '%s' needs it",
                          f->outputs[i].type_attr, f->outputs[i].name, f->name);
  }
  uint8_t *dtypes = tn__arena_alloc(arena, f->n_outputs);
  if (dtypes == NULL) return tn__no_memory(err, "types of outputs", f->n_outputs);
  for (size_t i = 0; i < f->n_outputs; i++) dtypes[i] = (uint8_t)type_of(&f->outputs[i], op);
  op->output_dtypes = dtypes;
  op->n_outputs = (uint32_t)f->n_outputs;
  return TN_OK;
}

tn_status tn__function_check_inputs(const tn_function *f, const tn_operation *op, tn_error *err)
{
  if (has_lists(f->inputs, f->n_inputs)) return TN_OK;
  if (op->n_inputs != f->n_inputs)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%u inputs, function '%s' takes %zu", (unsigned)op->n_inputs, f->name,
                        f->n_inputs);
  for (size_t i = 0; i < f->n_inputs; i++) {
    tn_dtype wanted = type_of(&f->inputs[i], op);
    tn_dtype found = tn_operation_output_dtype(op->inputs[i].op, (size_t)op->inputs[i].index);
    if (wanted == TN_DTYPE_INVALID || found == TN_DTYPE_INVALID || found == wanted || found == wanted + 100) continue;
    return tn_error_set(err, TN_INVALID_ARGUMENT, "input %zu has type %s, function '%s' takes %s", i,
                        tn_dtype_name(found), f->name, tn_dtype_name(wanted));
  }
  return TN_OK;
}

/* ---- reading calls ---- */

size_t tn_graph_n_functions(const tn_graph *graph)
{
  const tn__functions *table = table_of(graph);
  return table == NULL ? 0 : table->n;
}

const tn_function *tn_graph_function(const tn_graph *graph, size_t i)
{
  const tn__functions *table = table_of(graph);
  return table != NULL && i < table->n ? table->items[i] : NULL;
}

const tn_function *tn_graph_find_function(const tn_graph *graph, const char *name)
{
  return name == NULL ? NULL : tn__functions_find(table_of(graph), name);
}

const char *tn_graph_gradient(const tn_graph *graph, const char *function)
{
  return function == NULL ? NULL : tn__functions_gradient(table_of(graph), function);
}

const char *tn_function_name(const tn_function *f) { return f == NULL ? NULL : f->name; }
size_t tn_function_n_inputs(const tn_function *f) { return f == NULL ? 0 : f->n_inputs; }
size_t tn_function_n_outputs(const tn_function *f) { return f == NULL ? 0 : f->n_outputs; }
size_t tn_function_n_attrs(const tn_function *f) { return f == NULL ? 0 : f->n_attrs; }
size_t tn_function_n_nodes(const tn_function *f) { return f == NULL ? 0 : f->n_nodes; }

const char *tn_function_input_name(const tn_function *f, size_t i)
{
  return i < tn_function_n_inputs(f) ? f->inputs[i].name : NULL;
}

tn_dtype tn_function_input_dtype(const tn_function *f, size_t i)
{
  return i < tn_function_n_inputs(f) ? f->inputs[i].dtype : TN_DTYPE_INVALID;
}

const char *tn_function_output_name(const tn_function *f, size_t i)
{
  return i < tn_function_n_outputs(f) ? f->outputs[i].name : NULL;
}

tn_dtype tn_function_output_dtype(const tn_function *f, size_t i)
{
  return i < tn_function_n_outputs(f) ? f->outputs[i].dtype : TN_DTYPE_INVALID;
}

const char *tn_function_attr_name(const tn_function *f, size_t i)
{
  return i < tn_function_n_attrs(f) ? f->attrs[i] : NULL;
}

const char *tn_function_node_name(const tn_function *f, size_t i)
{
  return i < tn_function_n_nodes(f) ? f->nodes[i].name : NULL;
}

const char *tn_function_node_type(const tn_function *f, size_t i)
{
  return i < tn_function_n_nodes(f) ? f->nodes[i].op : NULL;
}

size_t tn_function_node_n_inputs(const tn_function *f, size_t i)
{
  return i < tn_function_n_nodes(f) ? f->nodes[i].n_inputs : 0;
}

const char *tn_function_node_input(const tn_function *f, size_t i, size_t k)
{
  return k < tn_function_node_n_inputs(f, i) ? f->nodes[i].inputs[k] : NULL;
}
