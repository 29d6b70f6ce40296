/* SPDX-License-Identifier: Apache-2.0 */
/* The function library: look-up, extension and publication of tables, and the public reading calls. */
#include <core/graph/functions.h>

#include <stdlib.h>
#include <string.h>

static const tn__functions *table_of(const tn_graph *graph)
{
  return graph == NULL ? NULL : atomic_load_explicit(&graph->functions, memory_order_acquire);
}

/* Like strcmp. `a` has `size` bytes and may contain NULs; `b` is a NUL-terminated name. */
static int compare_names(const char *a, size_t size, const char *b)
{
  size_t n = strlen(b);
  int order = memcmp(a, b, size < n ? size : n);
  return order != 0 ? order : (size > n) - (size < n);
}

static int compare_functions(const void *a, const void *b)
{
  return strcmp((*(tn_function *const *)a)->name, (*(tn_function *const *)b)->name);
}

static int compare_gradients(const void *a, const void *b)
{
  return strcmp(((const tn__gradient *)a)->function, ((const tn__gradient *)b)->function);
}

static void sort(tn__functions *table)
{
  if (table->n_sorted > 0) qsort(table->sorted, table->n_sorted, sizeof *table->sorted, compare_functions);
  if (table->n_gradients > 0)
    qsort(table->gradients, table->n_gradients, sizeof *table->gradients, compare_gradients);
}

/* Concatenates two arrays in new memory; NULL: out of memory. The memory is credited to the import's limit: its own
 * items were charged already, and the others are from earlier imports. */
static void *joined(tn__arena *arena, const void *to, size_t n, const void *from, size_t n_from, size_t size)
{
  tn__arena_credit(arena, (n + n_from) * size);
  char *both = tn__arena_array(arena, n + n_from, size);
  if (both != NULL && n > 0) memcpy(both, to, n * size);
  if (both != NULL && n_from > 0) memcpy(both + n * size, from, n_from * size);
  return both;
}

/* A part is merged with the next older one while that has less than twice its size, so the parts of a table double. */
bool tn__functions_settle(tn__functions *t, tn__arena *arena)
{
  for (const tn__functions *o = t->older;
       o != NULL && (o->n_sorted + o->n_gradients) / 2 < t->n_sorted + t->n_gradients; o = t->older) {
    t->sorted = joined(arena, t->sorted, t->n_sorted, o->sorted, o->n_sorted, sizeof *t->sorted);
    t->gradients = joined(arena, t->gradients, t->n_gradients, o->gradients, o->n_gradients, sizeof *t->gradients);
    if (t->sorted == NULL || t->gradients == NULL) return false;
    t->n_sorted += o->n_sorted;
    t->n_gradients += o->n_gradients;
    t->older = o->older;
  }
  sort(t);
  return true;
}

/* Removes and returns the first block that a table owns. The table is not published yet, so its maker may change it. */
static tn__owned *take_owned(const tn__functions *table)
{
  tn__functions *mine = (tn__functions *)table;
  tn__owned *first = mine->owned;
  if (first != NULL) mine->owned = first->next;
  return first;
}

void tn__functions_abandon(const tn__functions *table)
{
  for (tn__owned *o; table != NULL && table->owned != NULL && (o = take_owned(table)) != NULL;) o->free(o);
}

void tn__functions_publish(tn_graph *graph, const tn__functions *table, tn_buffer *file)
{
  for (tn__owned *o; table != NULL && table->owned != NULL && (o = take_owned(table)) != NULL;) tn__graph_own(graph, o);
  for (size_t i = table == NULL ? 0 : table->n; i-- > 0 && table->items[i]->holder == NULL;)
    table->items[i]->holder = file;
  /* Release: a reader of the table also sees its functions. */
  atomic_store_explicit(&graph->functions, table, memory_order_release);
}

const tn_function *tn__functions_find(const tn__functions *table, const char *name, size_t size)
{
  for (const tn__functions *t = table; t != NULL; t = t->older) {
    size_t low = 0, high = t->n_sorted;
    while (low < high) {
      size_t middle = low + (high - low) / 2;
      int order = compare_names(name, size, t->sorted[middle]->name);
      if (order == 0) return t->sorted[middle];
      if (order > 0)
        low = middle + 1;
      else
        high = middle;
    }
  }
  return NULL;
}

const char *tn__functions_gradient(const tn__functions *table, const char *function, size_t size)
{
  for (const tn__functions *t = table; t != NULL; t = t->older) {
    size_t low = 0, high = t->n_gradients;
    while (low < high) {
      size_t middle = low + (high - low) / 2;
      int order = compare_names(function, size, t->gradients[middle].function);
      if (order == 0) return t->gradients[middle].gradient;
      if (order > 0)
        low = middle + 1;
      else
        high = middle;
    }
  }
  return NULL;
}

const tn_op_schema *tn__functions_schema(const tn__functions *table, const char *name, size_t size)
{
  const tn_function *f = tn__functions_find(table, name, size);
  return f == NULL ? NULL : &f->schema;
}

/* After one colon there is an index (an argument's) or the name of an output; after two, first the output, then the
 * index. */
bool tn__function_edge_parse(const char *text, size_t size, tn__function_edge *out)
{
  *out = (tn__function_edge){ .node = { text, size }, .index = -1 };
  out->is_control = size > 0 && *text == '^';
  if (out->is_control) out->node = (tn__slice){ text + 1, size - 1 };
  const char *end = text + size, *colon = out->node.size == 0 ? NULL : memchr(out->node.data, ':', out->node.size);
  if (colon == NULL) return out->node.size > 0;
  out->node.size = (size_t)(colon - out->node.data);
  const char *second = memchr(colon + 1, ':', (size_t)(end - colon - 1));
  const char *number = second == NULL ? colon + 1 : second + 1;
  bool is_number = tn__parse_int((tn__slice){ number, (size_t)(end - number) }, &out->index) && out->index >= 0;
  if (!is_number) out->index = -1;
  if (second != NULL || !is_number)
    out->output = (tn__slice){ colon + 1, (size_t)((second == NULL ? end : second) - colon - 1) };
  return !out->is_control && out->node.size > 0 && (second == NULL || is_number) &&
         (out->output.data == NULL || out->output.size > 0);
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
  return name == NULL ? NULL : tn__functions_find(table_of(graph), name, strlen(name));
}

const char *tn_graph_gradient(const tn_graph *graph, const char *function)
{
  return function == NULL ? NULL : tn__functions_gradient(table_of(graph), function, strlen(function));
}

const char *tn_function_name(const tn_function *f) { return f == NULL ? NULL : f->name; }
const tn_op_schema *tn_function_schema(const tn_function *f) { return f == NULL ? NULL : &f->schema; }
size_t tn_function_n_inputs(const tn_function *f) { return f == NULL ? 0 : f->schema.n_inputs; }
size_t tn_function_n_outputs(const tn_function *f) { return f == NULL ? 0 : f->schema.n_outputs; }
size_t tn_function_n_attrs(const tn_function *f) { return f == NULL ? 0 : f->schema.n_attrs; }
size_t tn_function_n_nodes(const tn_function *f) { return f == NULL ? 0 : f->n_nodes; }
size_t tn_function_n_control_outputs(const tn_function *f) { return f == NULL ? 0 : f->n_controls; }

const char *tn_function_input_name(const tn_function *f, size_t i)
{
  return i < tn_function_n_inputs(f) ? f->schema.inputs[i].name : NULL;
}

tn_dtype tn_function_input_dtype(const tn_function *f, size_t i)
{
  return i < tn_function_n_inputs(f) ? f->schema.inputs[i].dtype : TN_DTYPE_INVALID;
}

const char *tn_function_output_name(const tn_function *f, size_t i)
{
  return i < tn_function_n_outputs(f) ? f->schema.outputs[i].name : NULL;
}

tn_dtype tn_function_output_dtype(const tn_function *f, size_t i)
{
  return i < tn_function_n_outputs(f) ? f->schema.outputs[i].dtype : TN_DTYPE_INVALID;
}

const char *tn_function_output_source(const tn_function *f, size_t i)
{
  return i < tn_function_n_outputs(f) ? f->rets[i] : NULL;
}

const char *tn_function_control_output_name(const tn_function *f, size_t i)
{
  return i < tn_function_n_control_outputs(f) ? f->controls[i].name : NULL;
}

const char *tn_function_control_output_node(const tn_function *f, size_t i)
{
  return i < tn_function_n_control_outputs(f) ? f->controls[i].node : NULL;
}

const char *tn_function_attr_name(const tn_function *f, size_t i)
{
  return i < tn_function_n_attrs(f) ? f->schema.attrs[i].value.name : NULL;
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

/* ---- bodies ---- */

tn_status tn__function_body_get(const tn_function *f, const tn__function_body **out, tn_error *err)
{
  tn_function *target = (tn_function *)f;
  tn__function_body *there = atomic_load_explicit(&target->body, memory_order_acquire), *mine = NULL;
  *out = there;
  if (there != NULL) return TN_OK;
  const tn__codec *codec = atomic_load_explicit(&f->graph->bodies->codec, memory_order_acquire);
  tn_status st = codec->body(f, &mine, err);
  if (st != TN_OK) return st;
  /* Release publishes what `mine` points to; acquire, in case another thread was first, sees what its body points
   * to. */
  if (atomic_compare_exchange_strong_explicit(&target->body, &there, mine, memory_order_acq_rel,
                                              memory_order_acquire))
    tn__graph_own(f->graph->bodies, &mine->owned);
  else
    mine->owned.free(&mine->owned);
  *out = there == NULL ? mine : there;
  return TN_OK;
}

/* Checks that i < n and returns the body. */
static tn_status body_part(const tn_function *f, const char *what, size_t i, size_t n, const tn__function_body **body,
                           tn_error *err)
{
  tn__error_reset(err);
  if (f == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "no function given");
  if (i >= n)
    return tn_error_set(err, TN_OUT_OF_RANGE, "function '%s': %s %zu was asked for, it has %zu", f->name, what, i, n);
  return tn__function_body_get(f, body, err);
}

tn_status tn_function_node(const tn_function *f, size_t i, const tn_operation **out, tn_error *err)
{
  const tn__function_body *body;
  *out = NULL;
  tn_status st = body_part(f, "node", i, tn_function_n_nodes(f), &body, err);
  if (st == TN_OK) *out = &body->nodes[i];
  return st;
}

tn_status tn_function_self(const tn_function *f, const tn_operation **out, tn_error *err)
{
  const tn__function_body *body;
  *out = NULL;
  tn_status st = body_part(f, "function", 0, 1, &body, err);
  if (st == TN_OK) *out = body->self;
  return st;
}

tn_status tn_function_input(const tn_function *f, size_t i, const tn_operation **out, int64_t *resource, tn_error *err)
{
  const tn__function_body *body;
  *out = NULL;
  if (resource != NULL) *resource = -1;
  tn_status st = body_part(f, "argument", i, tn_function_n_inputs(f), &body, err);
  if (st != TN_OK) return st;
  *out = &body->inputs[i];
  if (resource != NULL) *resource = body->resources[i];
  return TN_OK;
}
