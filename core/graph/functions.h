/* SPDX-License-Identifier: Apache-2.0 */
/* The function library of a graph: for core/graph and core/formats only. A table never changes once it is published; an
 * import that brings something new publishes a longer one. Everything lies in the graph's arena. */
#ifndef TN_CORE_GRAPH_FUNCTIONS_H
#define TN_CORE_GRAPH_FUNCTIONS_H

#include <core/graph/graph_structs.h>

typedef struct tn__function_arg {
  const char *name, *type_attr, *number_attr, *list_attr; /* the last three are "" when the signature has none */
  tn_dtype dtype; /* TN_DTYPE_INVALID: an attribute says it */
} tn__function_arg;

typedef struct tn__function_node {
  const char *name, *op;
  const char **inputs;
  size_t n_inputs;
} tn__function_node;

struct tn_function {
  const char *name;
  tn__slice proto; /* the FunctionDef as it stood in its file */
  tn__function_arg *inputs, *outputs;
  const char **attrs;
  tn__function_node *nodes;
  size_t n_inputs, n_outputs, n_attrs, n_nodes;
};

typedef struct tn__gradient {
  const char *function, *gradient;
} tn__gradient;

struct tn__functions {
  tn_function **items;  /* in order of addition */
  tn_function **sorted; /* by name */
  tn__gradient *gradients; /* by function */
  size_t n, n_gradients;
};

/* In a table that may be NULL; NULL when there is none. */
const tn_function *tn__functions_find(const tn__functions *table, const char *name);
const char *tn__functions_gradient(const tn__functions *table, const char *function);
void tn__functions_sort(tn__functions *table);

/* For a node whose op is the function: types of its outputs, and whether its inputs fit. A signature with lists leaves
 * the node opaque. */
tn_status tn__function_set_outputs(const tn_function *f, tn_operation *op, tn__arena *arena, tn_error *err);
tn_status tn__function_check_inputs(const tn_function *f, const tn_operation *op, tn_error *err);

#endif
