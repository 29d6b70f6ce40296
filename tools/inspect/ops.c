/* SPDX-License-Identifier: Apache-2.0 */
/* tenon inspect: the ops of a model and of its functions, and those that are not supported. */
#include <stdlib.h>
#include <string.h>

#include <tools/inspect/inspect.h>

/* ---- counting ---- */

static const char *or_empty(const char *text) { return text != NULL ? text : ""; }

static int compare_groups(const void *a, const void *b)
{
  const inspect_group *x = a, *y = b;
  int order = strcmp(x->op, y->op);
  if (order == 0) order = strcmp(or_empty(x->types), or_empty(y->types));
  if (order == 0 && (x->function != NULL) != (y->function != NULL)) order = x->function != NULL ? 1 : -1;
  if (order == 0) order = (x->support > y->support) - (x->support < y->support);
  return order;
}

static int compare_counts(const void *a, const void *b)
{
  const inspect_group *x = a, *y = b;
  if (x->count != y->count) return x->count < y->count ? 1 : -1;
  return compare_groups(a, b);
}

static void add_group(inspect_groups *list, const inspect_group *item)
{
  list->items = tool_grow(list->items, list->n, &list->room, sizeof(*list->items));
  list->items[list->n] = *item;
  list->items[list->n].order = list->n;
  list->n++;
}

/* Sorts, merges equal groups, and puts the most frequent first. */
static void merge_groups(inspect_groups *list)
{
  size_t kept = 0;
  if (list->n == 0) return;
  qsort(list->items, list->n, sizeof(*list->items), compare_groups);
  for (size_t i = 1; i < list->n; i++) {
    inspect_group *group = &list->items[kept], *next = &list->items[i];
    if (compare_groups(group, next) != 0) {
      list->items[++kept] = *next;
      continue;
    }
    size_t count = group->count + next->count;
    char *spare = next->order < group->order ? group->types : next->types;
    if (next->order < group->order) *group = *next;
    group->count = count;
    free(spare);
  }
  list->n = kept + 1;
  qsort(list->items, list->n, sizeof(*list->items), compare_counts);
}

/* The types of a node without a kernel, as "T=float32, Tidx=int32". */
static char *types_of(const tn_operation *op)
{
  tool_text text = { 0 };
  tool_text_add(&text, "", 0);
  for (size_t i = 0; i < tn_operation_n_attrs(op); i++) {
    const char *name = tn_operation_attr_name(op, i);
    tn_dtype dtype;
    if (tn_operation_attr_kind(op, name) != TN_ATTR_TYPE || tn_operation_attr_type(op, name, &dtype, NULL) != TN_OK)
      continue;
    tool_text_printf(&text, "%s%s=%s", text.length > 0 ? ", " : "", name, tn_dtype_name(dtype));
  }
  return text.data;
}

static void count_node(inspect_summary *s, const tool_node *node)
{
  inspect_group group = {
    .op = tn_operation_type(node->op), .first = node->op, .support = node->support, .needs = node->needs, .count = 1
  };
  if (node->blocked_by != NULL) s->n_blocked++;
  if (node->support != TOOL_SUPPORTED) {
    if (node->support == TOOL_NO_KERNEL) group.types = types_of(node->op);
    add_group(&s->unsupported, &group);
  }
  group.types = NULL;
  group.support = TOOL_SUPPORTED; /* one row for all nodes of an op */
  add_group(&s->ops, &group);
}

static void count_function(inspect_summary *s, const tn_function *f)
{
  for (size_t i = 0; i < tn_function_n_nodes(f); i++) {
    inspect_group group = { .op = tn_function_node_type(f, i), .function = tn_function_name(f), .count = 1 };
    add_group(&s->function_ops, &group);
    if (tn_function_node(f, i, &group.first, NULL) != TN_OK) continue; /* a step that calls it reports the error */
    /* A call of a function of the model has no schema. */
    if (tn_graph_find_function(s->model.graph, group.op) != NULL) continue;
    group.support = tool_support_of(group.first);
    if (group.support == TOOL_SUPPORTED) continue;
    if (group.support == TOOL_NO_KERNEL) group.types = types_of(group.first);
    add_group(&s->unsupported, &group);
  }
}

void inspect_count_ops(inspect_summary *s)
{
  for (size_t i = 0; i < s->model.n; i++) count_node(s, &s->model.nodes[i]);
  for (size_t i = 0; i < tn_graph_n_functions(s->model.graph); i++)
    count_function(s, tn_graph_function(s->model.graph, i));
  merge_groups(&s->ops);
  merge_groups(&s->function_ops);
  merge_groups(&s->unsupported);
}

void inspect_free_ops(inspect_summary *s)
{
  for (size_t i = 0; i < s->unsupported.n; i++) free(s->unsupported.items[i].types);
  free(s->ops.items);
  free(s->function_ops.items);
  free(s->unsupported.items);
}

/* ---- as text ---- */

static void print_list(const char *title, const inspect_groups *list)
{
  tool_table table;
  if (list->n == 0) return;
  tool_table_init(&table, 2, 1);
  for (size_t i = 0; i < list->n; i++) {
    tool_table_cell(&table, "%zu", list->items[i].count);
    tool_table_cell(&table, "%s", list->items[i].op);
  }
  printf("\n%s\n", title);
  tool_table_print(&table, "  ", stdout);
}

void inspect_print_ops(const inspect_summary *s)
{
  print_list("Ops", &s->ops);
  print_list("Ops in functions", &s->function_ops);
}

static void add_reason(const inspect_group *g, tool_text *text)
{
  if (g->support == TOOL_IN_FUNCTION)
    tool_text_printf(text, "calls a function that needs %s, which is not supported", g->needs);
  else
    tool_text_printf(text, "%s", g->support == TOOL_NO_OP ? "unknown op" : "no kernel");
}

void inspect_print_unsupported(const inspect_summary *s)
{
  tool_table table;
  if (s->unsupported.n == 0) {
    printf("\nAll ops and types are supported.\n");
    return;
  }
  tool_table_init(&table, 4, 1);
  for (size_t i = 0; i < s->unsupported.n; i++) {
    const inspect_group *g = &s->unsupported.items[i];
    tool_text reason = { 0 };
    add_reason(g, &reason);
    if (g->types != NULL && g->types[0] != '\0') tool_text_printf(&reason, " for %s", g->types);
    tool_table_cell(&table, "%zu", g->count);
    tool_table_cell(&table, "%s", g->op);
    tool_table_cell(&table, "%s", reason.data);
    tool_table_cell(&table, "as node '%s'%s%s", tn_operation_name(g->first), g->function != NULL ? " of function " : "",
                    or_empty(g->function));
    tool_text_fini(&reason);
  }
  printf("\nNot supported\n");
  tool_table_print(&table, "  ", stdout);
  printf("  %zu of %zu nodes %s one of these; the others can run.\n", s->n_blocked, s->model.n,
         s->n_blocked == 1 ? "needs" : "need");
}

/* ---- as JSON ---- */

json_t *inspect_json_ops(const inspect_groups *list)
{
  json_t *array = json_array();
  for (size_t i = 0; i < list->n; i++) {
    json_t *op = json_object();
    tool_json_set(op, "op", tool_json_text(list->items[i].op));
    tool_json_set(op, "nodes", json_integer((json_int_t)list->items[i].count));
    tool_json_append(array, op);
  }
  return array;
}

json_t *inspect_json_unsupported(const inspect_summary *s)
{
  json_t *array = json_array();
  for (size_t i = 0; i < s->unsupported.n; i++) {
    const inspect_group *g = &s->unsupported.items[i];
    json_t *entry = json_object();
    tool_text reason = { 0 };
    add_reason(g, &reason);
    tool_json_set(entry, "op", tool_json_text(g->op));
    tool_json_set(entry, "nodes", json_integer((json_int_t)g->count));
    tool_json_set(entry, "reason", tool_json_text(reason.data));
    if (g->types != NULL) tool_json_set(entry, "types", tool_json_text(g->types));
    tool_json_set(entry, "first_node", tool_json_text(tn_operation_name(g->first)));
    if (g->function != NULL) tool_json_set(entry, "function", tool_json_text(g->function));
    tool_json_append(array, entry);
    tool_text_fini(&reason);
  }
  return array;
}
