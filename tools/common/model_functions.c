/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the functions of a model that cannot run: those with unsupported ops in their bodies or in called functions. */
#include <stdlib.h>

#include <tools/tool.h>

typedef struct numbered {
  const tn_function *f;
  size_t number;
} numbered;

typedef struct call {
  size_t of, by; /* functions */
} call;

struct tool_functions {
  const tn_graph *graph;
  size_t n;
  numbered *sorted;   /* by address */
  const char **needs; /* by function: an unsupported op that it needs; NULL = none */
  call *calls;
  size_t n_calls, room;
};

static int by_address(const void *a, const void *b)
{
  uintptr_t x = (uintptr_t)((const numbered *)a)->f, y = (uintptr_t)((const numbered *)b)->f;
  return x < y ? -1 : x > y;
}

static int by_callee(const void *a, const void *b)
{
  const call *x = a, *y = b;
  if (x->of != y->of) return x->of < y->of ? -1 : 1;
  return (x->by > y->by) - (x->by < y->by);
}

typedef void (*called_fn)(tool_functions *functions, size_t of, void *user);

static void tell(tool_functions *functions, const char *name, called_fn fn, void *user)
{
  const numbered key = { name == NULL ? NULL : tn_graph_find_function(functions->graph, name), 0 };
  const numbered *at = key.f == NULL ? NULL
                                     : bsearch(&key, functions->sorted, functions->n, sizeof(key), by_address);
  if (at != NULL) fn(functions, at->number, user);
}

/* Calls fn for each function that a node refers to by its op or an attribute. */
static void each_called(tool_functions *functions, const tn_operation *op, called_fn fn, void *user)
{
  tell(functions, tn_operation_type(op), fn, user);
  for (size_t i = 0; i < tn_operation_n_attrs(op); i++) {
    const char *attr = tn_operation_attr_name(op, i), *name = NULL;
    int32_t kind = tn_operation_attr_kind(op, attr);
    size_t n = 0;
    if (kind == TN_ATTR_FUNC && tn_operation_attr_func(op, attr, &name, NULL) == TN_OK) tell(functions, name, fn, user);
    if (kind != TN_ATTR_FUNC + TN_ATTR_LIST) continue;
    tn_operation_attr_func_at(op, attr, 0, &name, &n, NULL);
    for (size_t k = 0; k < n; k++)
      if (tn_operation_attr_func_at(op, attr, k, &name, NULL, NULL) == TN_OK) tell(functions, name, fn, user);
  }
}

static void add_call(tool_functions *functions, size_t of, void *by)
{
  functions->calls = tool_grow(functions->calls, functions->n_calls, &functions->room, sizeof(*functions->calls));
  functions->calls[functions->n_calls++] = (call){ of, *(const size_t *)by };
}

static void look_into(tool_functions *functions, size_t number)
{
  const tn_function *f = tn_graph_function(functions->graph, number);
  for (size_t i = 0; i < tn_function_n_nodes(f); i++) {
    const tn_operation *op;
    if (tn_function_node(f, i, &op, NULL) != TN_OK) continue; /* a step that calls it reports the error */
    if (tool_support_of(op) != TOOL_SUPPORTED)
      functions->needs[number] = tn_operation_type(op);
    else
      each_called(functions, op, add_call, &number);
  }
}

/* A caller of a function that cannot run cannot run either. */
static void spread(tool_functions *functions)
{
  size_t *bad = tool_alloc(functions->n, sizeof(*bad)), n_bad = 0;
  for (size_t i = 0; i < functions->n; i++)
    if (functions->needs[i] != NULL) bad[n_bad++] = i;
  if (functions->n_calls > 0) qsort(functions->calls, functions->n_calls, sizeof(call), by_callee);
  for (size_t done = 0; done < n_bad; done++) {
    size_t low = 0, high = functions->n_calls;
    while (low < high) {
      size_t middle = low + (high - low) / 2;
      if (functions->calls[middle].of < bad[done]) low = middle + 1;
      else high = middle;
    }
    for (; low < functions->n_calls && functions->calls[low].of == bad[done]; low++) {
      size_t by = functions->calls[low].by;
      if (functions->needs[by] != NULL) continue;
      functions->needs[by] = functions->needs[bad[done]];
      bad[n_bad++] = by;
    }
  }
  free(bad);
}

tool_functions *tool_functions_scan(const tn_graph *graph)
{
  tool_functions *functions = tool_alloc(1, sizeof(*functions));
  functions->graph = graph;
  functions->n = tn_graph_n_functions(graph);
  functions->sorted = tool_alloc(functions->n, sizeof(*functions->sorted));
  functions->needs = tool_alloc(functions->n, sizeof(*functions->needs));
  for (size_t i = 0; i < functions->n; i++)
    functions->sorted[i] = (numbered){ tn_graph_function(graph, i), i };
  if (functions->n > 0) qsort(functions->sorted, functions->n, sizeof(numbered), by_address);
  for (size_t i = 0; i < functions->n; i++) look_into(functions, i);
  spread(functions);
  return functions;
}

static void note_need(tool_functions *functions, size_t of, void *need)
{
  if (functions->needs[of] != NULL) *(const char **)need = functions->needs[of];
}

const char *tool_functions_need(tool_functions *functions, const tn_operation *op)
{
  const char *need = NULL;
  if (functions->n > 0) each_called(functions, op, note_need, &need);
  return need;
}

void tool_functions_destroy(tool_functions *functions)
{
  if (functions == NULL) return;
  free(functions->sorted);
  free(functions->needs);
  free(functions->calls);
  free(functions);
}
