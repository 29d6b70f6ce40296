/* SPDX-License-Identifier: Apache-2.0 */
/* tenon inspect: shows the contents of a model, and the parts that cannot run. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include <tools/inspect/inspect.h>

static const char help[] =
    "Usage: tenon inspect MODEL [OPTION...]\n"
    "\n"
    "Shows what a model contains: its signatures, or inputs and outputs; its ops with their counts, its functions\n"
    "and the size of its constants. Of a SavedModel also its tag sets, assets and variables. Lists ops and types\n"
    "that are not supported, before a step fails on them. MODEL is the folder of a SavedModel, a MetaGraph\n"
    "(X.meta) or a GraphDef file.\n"
    "\n"
    "  --tags TAG[,TAG...]  the MetaGraph with these tags; default: serve, or the only one\n"
    "  --checkpoint PREFIX  the checkpoint with the variables, such as that of a MetaGraph\n"
    "  --json               print JSON, with every input and output, and the nodes of functions\n"
    "  -h, --help           show this help\n"
    "\n"
    "Examples:\n"
    "  tenon inspect half_plus_two\n"
    "  tenon inspect half_plus_two --json | jq '.signatures[].name'\n";

/* ---- counting ---- */

static void count_broken(inspect_summary *s, const tn_operation *op, const tn_error *err)
{
  if (s->n_broken++ > 0) return;
  tool_text why = { 0 };
  tool_text_printf(&why, "%s", tn_error_message(err));
  s->broken = op;
  s->why = why.data;
}

static void count_constant(inspect_summary *s, const tn_operation *op)
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

static void summarise(inspect_summary *s, const tool_source *source)
{
  memset(s, 0, sizeof(*s));
  s->source = source;
  s->file_bytes = inspect_file_bytes(source);
  tool_model_scan(&s->model, source->graph);
  for (size_t i = 0; i < s->model.n; i++) count_constant(s, s->model.nodes[i].op);
  inspect_count_ops(s);
}

/* ---- as text ---- */

static void print_constants(const inspect_summary *s)
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

/* Prints all signatures; a model without any has only guessed inputs and outputs. */
static void print_ends(const inspect_summary *s)
{
  tn_model_signature signature = { .struct_size = sizeof(signature) };
  size_t n = 0;
  for (; tn_model_signature_at(s->source->model, n, &signature, NULL) == TN_OK; n++)
    tool_print_signature(s->source, &signature, &s->model, INSPECT_SHOWN, stdout);
  if (n == 0) tool_describe_ends(&s->model, INSPECT_SHOWN, stdout);
}

static int print_text(const inspect_summary *s)
{
  inspect_print_about(s);
  printf("%zu node%s of %zu op%s; ", s->model.n, s->model.n == 1 ? "" : "s", s->ops.n, s->ops.n == 1 ? "" : "s");
  print_constants(s);
  print_ends(s);
  inspect_print_files(s->source);
  inspect_print_ops(s);
  inspect_print_functions(s->model.graph, stdout);
  inspect_print_unsupported(s);
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

static int print_json(const inspect_summary *s)
{
  json_t *root = json_object(), *constants = json_object();
  tool_json_set(constants, "count", json_integer((json_int_t)s->n_constants));
  tool_json_set(constants, "bytes", json_integer((json_int_t)s->constant_bytes));
  if (s->n_broken > 0) {
    tool_json_set(constants, "not_readable", json_integer((json_int_t)s->n_broken));
    tool_json_set(constants, "first_not_readable", tool_json_text(tn_operation_name(s->broken)));
  }
  tool_json_set(root, "file", tool_json_text(s->source->request->path));
  tool_json_set(root, "bytes", json_integer((json_int_t)s->file_bytes));
  inspect_json_about(s, root);
  tool_json_set(root, "nodes", json_integer((json_int_t)s->model.n));
  tool_json_set(root, "constants", constants);
  tool_json_set(root, "inputs", json_outputs(&s->model, tool_node_is_input));
  tool_json_set(root, "outputs", json_outputs(&s->model, tool_node_is_output));
  tool_json_set(root, "targets", json_targets(&s->model));
  tool_json_set(root, "ops", inspect_json_ops(&s->ops));
  tool_json_set(root, "function_ops", inspect_json_ops(&s->function_ops));
  tool_json_set(root, "functions", inspect_json_functions(s->model.graph));
  tool_json_set(root, "unsupported", inspect_json_unsupported(s));
  tool_json_set(root, "blocked_nodes", json_integer((json_int_t)s->n_blocked));
  return tool_json_print(root);
}

static int inspect(const tool_source_request *request, bool json)
{
  tn_error err = TN_ERROR_INIT;
  tool_source source;
  if (tool_source_open(&source, request, &err) != TN_OK) return tool_fail(&err);
  inspect_summary s;
  summarise(&s, &source);
  int status = json ? print_json(&s) : print_text(&s);
  inspect_free_ops(&s);
  free(s.why);
  tool_model_fini(&s.model);
  tool_source_close(&source);
  return status;
}

static int run(int argc, char **argv)
{
  static const struct option options[] = {
    { "json", no_argument, NULL, 'j' },
    { "tags", required_argument, NULL, 't' },
    { "checkpoint", required_argument, NULL, 'c' },
    { NULL, 0, NULL, 0 },
  };
  tool_source_request request = { 0 };
  bool json = false;
  int c;
  while ((c = getopt_long(argc, argv, ":", options, NULL)) != -1) {
    switch (c) {
    case 'j': json = true; break;
    case 't': request.tags = optarg; break;
    case 'c': request.checkpoint = optarg; break;
    default: return tool_bad_option("inspect", c, argv);
    }
  }
  if (optind == argc) return tool_usage("inspect", "no model file was given");
  if (optind + 1 < argc) return tool_usage("inspect", "expected one model, but '%s' is a second one", argv[optind + 1]);
  request.path = argv[optind];
  return inspect(&request, json);
}

const tool_command tool_cmd_inspect = { "inspect", "show the contents of a model and what is not supported", help,
                                        run };
