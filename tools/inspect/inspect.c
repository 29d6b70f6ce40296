/* SPDX-License-Identifier: Apache-2.0 */
/* tenon inspect: shows the contents of a model, and the parts that cannot run. */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <tools/tool.h>

static const char help[] =
    "Usage: tenon inspect MODEL [--json]\n"
    "\n"
    "Shows a model's inputs and outputs, its ops with their counts, its functions and the size of its\n"
    "constants. Also lists ops and types that are not supported, before a step fails on them.\n"
    "\n"
    "  --json      print JSON, with every input and output, and the nodes of functions\n"
    "  -h, --help  show this help\n";

enum { SHOWN = 40 };

/* The nodes of an op, or the nodes of an op that cannot run for the same reason. */
typedef struct group {
  const char *op;
  char *types; /* "T=float32, Tidx=int32" if these types have no kernel, else NULL */
  const tool_node *first;
  size_t count;
} group;

typedef struct groups {
  group *items;
  size_t n;
  size_t room;
} groups;

typedef struct summary {
  tool_model model;
  groups ops, unsupported;
  uint64_t file_bytes;
  uint64_t constant_bytes;
  size_t n_constants;
  size_t n_broken; /* unreadable constants; `why` describes the first */
  const tn_operation *broken;
  char *why;
  size_t n_blocked; /* nodes that depend on an unsupported node */
} summary;

/* ---- counting ---- */

static int compare_groups(const void *a, const void *b)
{
  const group *x = a, *y = b;
  int order = strcmp(x->op, y->op);
  if (order != 0) return order;
  return strcmp(x->types != NULL ? x->types : "", y->types != NULL ? y->types : "");
}

static int compare_counts(const void *a, const void *b)
{
  const group *x = a, *y = b;
  if (x->count != y->count) return x->count < y->count ? 1 : -1;
  return compare_groups(a, b);
}

static void add_group(groups *list, const tool_node *node, char *types)
{
  list->items = tool_grow(list->items, list->n, &list->room, sizeof(*list->items));
  list->items[list->n++] = (group){ tn_operation_type(node->op), types, node, 1 };
}

/* Sorts, merges equal groups, and puts the most frequent first. */
static void merge_groups(groups *list)
{
  size_t kept = 0;
  if (list->n == 0) return;
  qsort(list->items, list->n, sizeof(*list->items), compare_groups);
  for (size_t i = 1; i < list->n; i++) {
    if (compare_groups(&list->items[kept], &list->items[i]) == 0) {
      list->items[kept].count++;
      if (list->items[i].first < list->items[kept].first) list->items[kept].first = list->items[i].first;
      free(list->items[i].types);
    } else {
      list->items[++kept] = list->items[i];
    }
  }
  list->n = kept + 1;
  qsort(list->items, list->n, sizeof(*list->items), compare_counts);
}

static void free_groups(groups *list)
{
  for (size_t i = 0; i < list->n; i++) free(list->items[i].types);
  free(list->items);
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

static void count_broken(summary *s, const tn_operation *op, const tn_error *err)
{
  if (s->n_broken++ > 0) return;
  tool_text why = { 0 };
  tool_text_printf(&why, "%s", tn_error_message(err));
  s->broken = op;
  s->why = why.data;
}

static void count_constant(summary *s, const tn_operation *op)
{
  const tn_op_schema *schema = tn_operation_schema(op);
  if (schema == NULL || !(tn_op_schema_traits(schema) & TN_TRAIT_CONSTANT)) return;
  s->n_constants++;
  for (size_t i = 0; i < tn_operation_n_attrs(op); i++) {
    const char *name = tn_operation_attr_name(op, i);
    tn_tensor *tensor;
    tn_error err = TN_ERROR_INIT;
    if (tn_operation_attr_kind(op, name) != TN_ATTR_TENSOR) continue;
    if (tn_operation_attr_tensor(op, name, &tensor, &err) == TN_OK)
      s->constant_bytes += tn_tensor_bytes(tensor);
    else
      count_broken(s, op, &err);
    tn_error_clear(&err);
  }
}

static void summarise(summary *s, const char *path, tn_graph *graph)
{
  struct stat about;
  memset(s, 0, sizeof(*s));
  if (stat(path, &about) == 0) s->file_bytes = (uint64_t)about.st_size;
  tool_model_scan(&s->model, graph);
  for (size_t i = 0; i < s->model.n; i++) {
    const tool_node *node = &s->model.nodes[i];
    add_group(&s->ops, node, NULL);
    count_constant(s, node->op);
    if (node->blocked_by != NULL) s->n_blocked++;
    if (node->support != TOOL_SUPPORTED)
      add_group(&s->unsupported, node, node->support == TOOL_NO_KERNEL ? types_of(node->op) : NULL);
  }
  merge_groups(&s->ops);
  merge_groups(&s->unsupported);
}

/* ---- as text ---- */

static void print_ops(const summary *s)
{
  tool_table table;
  tool_table_init(&table, 2, 1);
  for (size_t i = 0; i < s->ops.n; i++) {
    tool_table_cell(&table, "%zu", s->ops.items[i].count);
    tool_table_cell(&table, "%s", s->ops.items[i].op);
  }
  printf("\nOps\n");
  tool_table_print(&table, "  ", stdout);
}

/* Returns the reason; formatted texts are stored in `room`. */
static const char *reason_of(const group *g, char *room, size_t size)
{
  if (g->first->support == TOOL_IN_FUNCTION) {
    snprintf(room, size, "calls a function that needs %s, which is not supported", g->first->needs);
    return room;
  }
  return g->first->support == TOOL_NO_OP ? "unknown op" : "no kernel";
}

static void print_unsupported(const summary *s)
{
  tool_table table;
  if (s->unsupported.n == 0) {
    printf("\nAll ops and types are supported.\n");
    return;
  }
  tool_table_init(&table, 4, 1);
  for (size_t i = 0; i < s->unsupported.n; i++) {
    char reason[200];
    const group *g = &s->unsupported.items[i];
    tool_table_cell(&table, "%zu", g->count);
    tool_table_cell(&table, "%s", g->op);
    if (g->types == NULL)
      tool_table_cell(&table, "%s", reason_of(g, reason, sizeof(reason)));
    else
      tool_table_cell(&table, "no kernel%s%s", g->types[0] != '\0' ? " for " : "", g->types);
    tool_table_cell(&table, "as node '%s'", tn_operation_name(g->first->op));
  }
  printf("\nNot supported\n");
  tool_table_print(&table, "  ", stdout);
  printf("  %zu of %zu nodes %s one of these; the others can run.\n", s->n_blocked, s->model.n,
         s->n_blocked == 1 ? "needs" : "need");
}

static void print_constants(const summary *s)
{
  char bytes[32];
  if (s->n_constants == 0) {
    printf("no constants\n");
    return;
  }
  printf("%zu constant%s with %s\n", s->n_constants, s->n_constants == 1 ? "" : "s",
         tool_bytes_text(bytes, s->constant_bytes));
  if (s->n_broken > 0)
    printf("\n%zu constant%s cannot be read\n  %s\n", s->n_broken, s->n_broken == 1 ? "" : "s", s->why);
}

static int print_text(const summary *s, const char *path)
{
  char file[32];
  printf("%s, %s\n", path, tool_bytes_text(file, s->file_bytes));
  printf("%zu node%s of %zu op%s; ", s->model.n, s->model.n == 1 ? "" : "s", s->ops.n, s->ops.n == 1 ? "" : "s");
  print_constants(s);
  tool_describe_ends(&s->model, SHOWN, stdout);
  print_ops(s);
  tool_print_functions(s->model.graph, stdout);
  print_unsupported(s);
  return TOOL_OK;
}

/* ---- as JSON ---- */

static json_t *json_output(const tool_node *node, int32_t index)
{
  json_t *object = json_object();
  tool_text name = { 0 };
  int32_t rank;
  tn_dtype dtype = tn_operation_output_dtype(node->op, (size_t)index);
  int64_t *dims = tool_output_dims((tn_output){ node->op, index }, &rank);
  tool_text_printf(&name, "%s:%d", tn_operation_name(node->op), (int)index);
  tool_json_set(object, "tensor", tool_json_text(name.data));
  tool_json_set(object, "dtype", dtype == TN_DTYPE_INVALID ? json_null() : tool_json_text(tn_dtype_name(dtype)));
  tool_json_set(object, "shape", tool_json_shape(dims, rank));
  if (tool_node_has_default(node)) tool_json_set(object, "has_default", json_true());
  if (node->blocked_by != NULL)
    tool_json_set(object, "blocked_by", tool_json_text(tn_operation_name(node->blocked_by->op)));
  tool_text_fini(&name);
  free(dims);
  return object;
}

static json_t *json_outputs(const tool_model *model, bool (*fits)(const tool_node *))
{
  json_t *array = json_array();
  for (size_t i = 0; i < model->n; i++) {
    const tool_node *node = &model->nodes[i];
    if (!fits(node)) continue;
    size_t n = tn_operation_n_outputs(node->op);
    if (tn_operation_schema(node->op) == NULL && n == 0) n = 1;
    for (size_t j = 0; j < n; j++) tool_json_append(array, json_output(node, (int32_t)j));
  }
  return array;
}

static json_t *json_targets(const tool_model *model)
{
  json_t *array = json_array();
  for (size_t i = 0; i < model->n; i++)
    if (tool_node_is_target(&model->nodes[i]))
      tool_json_append(array, tool_json_text(tn_operation_name(model->nodes[i].op)));
  return array;
}

static json_t *json_ops(const summary *s)
{
  json_t *array = json_array();
  for (size_t i = 0; i < s->ops.n; i++) {
    json_t *op = json_object();
    tool_json_set(op, "op", tool_json_text(s->ops.items[i].op));
    tool_json_set(op, "nodes", json_integer((json_int_t)s->ops.items[i].count));
    tool_json_append(array, op);
  }
  return array;
}

static json_t *json_unsupported(const summary *s)
{
  json_t *array = json_array();
  for (size_t i = 0; i < s->unsupported.n; i++) {
    char reason[200];
    const group *g = &s->unsupported.items[i];
    json_t *entry = json_object();
    tool_json_set(entry, "op", tool_json_text(g->op));
    tool_json_set(entry, "nodes", json_integer((json_int_t)g->count));
    tool_json_set(entry, "reason", tool_json_text(reason_of(g, reason, sizeof(reason))));
    if (g->types != NULL) tool_json_set(entry, "types", tool_json_text(g->types));
    tool_json_set(entry, "first_node", tool_json_text(tn_operation_name(g->first->op)));
    tool_json_append(array, entry);
  }
  return array;
}

static int print_json(const summary *s, const char *path)
{
  json_t *root = json_object(), *constants = json_object();
  tool_json_set(constants, "count", json_integer((json_int_t)s->n_constants));
  tool_json_set(constants, "bytes", json_integer((json_int_t)s->constant_bytes));
  if (s->n_broken > 0) {
    tool_json_set(constants, "not_readable", json_integer((json_int_t)s->n_broken));
    tool_json_set(constants, "first_not_readable", tool_json_text(tn_operation_name(s->broken)));
  }
  tool_json_set(root, "file", tool_json_text(path));
  tool_json_set(root, "bytes", json_integer((json_int_t)s->file_bytes));
  tool_json_set(root, "nodes", json_integer((json_int_t)s->model.n));
  tool_json_set(root, "constants", constants);
  tool_json_set(root, "inputs", json_outputs(&s->model, tool_node_is_input));
  tool_json_set(root, "outputs", json_outputs(&s->model, tool_node_is_output));
  tool_json_set(root, "targets", json_targets(&s->model));
  tool_json_set(root, "ops", json_ops(s));
  tool_json_set(root, "functions", tool_json_functions(s->model.graph));
  tool_json_set(root, "unsupported", json_unsupported(s));
  tool_json_set(root, "blocked_nodes", json_integer((json_int_t)s->n_blocked));
  return tool_json_print(root);
}

static int run(int argc, char **argv)
{
  static const struct option options[] = { { "json", no_argument, NULL, 'j' }, { NULL, 0, NULL, 0 } };
  bool json = false;
  int c;
  while ((c = getopt_long(argc, argv, ":", options, NULL)) != -1) {
    if (c != 'j') return tool_bad_option("inspect", c, argv);
    json = true;
  }
  if (optind == argc) return tool_usage("inspect", "no model file was given");
  if (optind + 1 < argc) return tool_usage("inspect", "expected one model, but '%s' is a second one", argv[optind + 1]);
  const char *path = argv[optind];
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph;
  if (tool_model_open(path, &graph, &err) != TN_OK) return tool_fail(&err);
  summary s;
  summarise(&s, path, graph);
  int status = json ? print_json(&s, path) : print_text(&s, path);
  free_groups(&s.ops);
  free_groups(&s.unsupported);
  free(s.why);
  tool_model_fini(&s.model);
  tn_graph_unref(graph);
  return status;
}

const tool_command tool_cmd_inspect = { "inspect", "show the contents of a model and what is not supported", help,
                                        run };
