/* SPDX-License-Identifier: Apache-2.0 */
/* tenon ops: lists the known ops, with the devices and types that have kernels. */
#include <fnmatch.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <tenon/plugins.h>

#include <tools/tool.h>

static const char help[] =
    "Usage: tenon ops [--runtime NAME] [--schema] [--json] [PATTERN...]\n"
    "\n"
    "Lists the known ops, with the devices and types that have kernels. PATTERN is a name, or a shell pattern\n"
    "with * ? and [...]. A name that is not known is also looked up in plugins that provide ops.\n"
    "\n"
    "  --runtime NAME  include the kernels of this runtime's plugin\n"
    "  --schema        also show inputs, outputs and attributes\n"
    "  --json          print JSON: schema and kernels of each op, and the number of ops\n"
    "  -h, --help      show this help\n";

static char *schema_text(const tn_op_schema *schema)
{
  size_t length = tn_op_schema_format(schema, NULL, 0);
  char *text = tool_alloc(length + 1, 1);
  tn_op_schema_format(schema, text, length + 1);
  return text;
}

/* ---- devices and types ---- */

/* A type attribute: the types that the schema allows, and those with kernels. Bit n is dtype n. */
typedef struct attr_types {
  char name[32];
  uint64_t allowed;
  uint64_t with_kernel;
  uint64_t of_kernel; /* types of the kernel being read; 0 if it does not constrain this attribute */
} attr_types;

typedef struct op_types {
  attr_types *items;
  size_t n;
  size_t room;
} op_types;

static uint64_t every_type(void)
{
  uint64_t types = 0;
  for (tn_dtype dtype = 1; dtype < 64; dtype++)
    if (tn_dtype_size(dtype) > 0) types |= UINT64_C(1) << dtype;
  return types;
}

/* Parses one attribute of the schema's text: "T: {float, double} = float", "T: type", "N: int >= 1". */
static void read_attr(op_types *types, const char *text, size_t length)
{
  const char *colon = memchr(text, ':', length);
  size_t name_length = colon != NULL ? (size_t)(colon - text) : 0;
  if (name_length == 0 || name_length >= sizeof(types->items->name) || length < name_length + 3) return;
  const char *value = colon + 2, *end = text + length;
  uint64_t allowed = 0;
  if (strncmp(value, "list(", 5) == 0) value += 5;
  if (*value == '{') {
    const char *brace = memchr(value, '}', (size_t)(end - value));
    if (brace != NULL) allowed = tool_parse_types(value + 1, (size_t)(brace - value) - 1);
  } else if ((size_t)(end - value) >= 4 && strncmp(value, "type", 4) == 0) {
    allowed = every_type();
  }
  if (allowed == 0) return;
  types->items = tool_grow(types->items, types->n, &types->room, sizeof(*types->items));
  attr_types *attr = &types->items[types->n++];
  memset(attr, 0, sizeof(*attr));
  memcpy(attr->name, text, name_length);
  attr->allowed = allowed;
}

static void add_constraint(void *user, const char *attr, size_t attr_length, const char *list, size_t list_length)
{
  op_types *types = user;
  for (size_t i = 0; i < types->n; i++)
    if (strlen(types->items[i].name) == attr_length && memcmp(types->items[i].name, attr, attr_length) == 0)
      types->items[i].of_kernel |= tool_parse_types(list, list_length);
}

static void read_types(const tn_op_schema *schema, op_types *types)
{
  char *text = schema_text(schema);
  const char *at = text, *next;
  const tn_kernel_def *kernel;
  memset(types, 0, sizeof(*types));
  while ((next = strstr(at, "; ")) != NULL) {
    at = next + 2;
    next = strstr(at, "; ");
    read_attr(types, at, next != NULL ? (size_t)(next - at) : strlen(at));
  }
  free(text);
  for (size_t i = 0; (kernel = tn_op_schema_kernel(schema, i)) != NULL; i++) {
    for (size_t j = 0; j < types->n; j++) types->items[j].of_kernel = 0;
    tool_each_constraint(kernel->types, add_constraint, types);
    for (size_t j = 0; j < types->n; j++) {
      attr_types *attr = &types->items[j];
      attr->with_kernel |= attr->of_kernel != 0 ? attr->of_kernel & attr->allowed : attr->allowed;
    }
  }
  if (tn_op_schema_traits(schema) & TOOL_BUILT_IN)
    for (size_t j = 0; j < types->n; j++) types->items[j].with_kernel = types->items[j].allowed;
}

static void text_types(tool_text *text, uint64_t types)
{
  const char *separator = "";
  if (types == every_type()) {
    tool_text_add(text, "any", 3);
    return;
  }
  for (tn_dtype dtype = 1; dtype < 64; dtype++) {
    if (!(types >> dtype & 1)) continue;
    tool_text_printf(text, "%s%s", separator, tn_dtype_name(dtype));
    separator = " ";
  }
}

/* Lists the devices that have a kernel: "CPU,GPU", or "-" for none. */
static void text_devices(tool_text *text, const tn_op_schema *schema)
{
  const tn_kernel_def *kernel;
  if (tn_op_schema_traits(schema) & TOOL_BUILT_IN) {
    tool_text_printf(text, "any");
    return;
  }
  for (size_t i = 0; (kernel = tn_op_schema_kernel(schema, i)) != NULL; i++) {
    bool seen = false;
    for (size_t j = 0; j < i && !seen; j++) seen = strcmp(tn_op_schema_kernel(schema, j)->device, kernel->device) == 0;
    if (!seen) tool_text_printf(text, "%s%s", i > 0 ? "," : "", kernel->device);
  }
  if (text->length == 0) tool_text_add(text, "-", 1);
}

/* ---- as a table ---- */

static void add_row(tool_table *table, const tn_op_schema *schema)
{
  tool_text devices = { 0 }, text = { 0 };
  op_types types;
  text_devices(&devices, schema);
  read_types(schema, &types);
  tool_text_add(&text, "", 0);
  for (size_t i = 0; i < types.n; i++) {
    if (types.items[i].with_kernel == 0) continue;
    tool_text_printf(&text, "%s%s: ", text.length > 0 ? "; " : "", types.items[i].name);
    text_types(&text, types.items[i].with_kernel);
  }
  tool_table_cell(table, "%s", tn_op_schema_name(schema));
  tool_table_cell(table, "%s", devices.data);
  tool_table_cell(table, "%s", text.data);
  tool_text_fini(&devices);
  tool_text_fini(&text);
  free(types.items);
}

static void add_schema_row(tool_table *table, const tn_op_schema *schema)
{
  char *text = schema_text(schema);
  tool_table_cell(table, "    %s", text);
  tool_table_cell(table, "%s", "");
  tool_table_cell(table, "%s", "");
  free(text);
}

/* ---- as JSON ---- */

static json_t *json_types(uint64_t types)
{
  json_t *names = json_array();
  for (tn_dtype dtype = 1; dtype < 64; dtype++)
    if (types >> dtype & 1) tool_json_append(names, tool_json_text(tn_dtype_name(dtype)));
  return names;
}

static void add_json_constraint(void *user, const char *attr, size_t attr_length, const char *list, size_t list_length)
{
  json_t *types = user;
  tool_text name = { 0 };
  tool_text_add(&name, attr, attr_length);
  tool_json_set(types, name.data, json_types(tool_parse_types(list, list_length)));
  tool_text_fini(&name);
}

static json_t *json_kernel(const tn_kernel_def *kernel)
{
  json_t *object = json_object(), *types = json_object();
  tool_each_constraint(kernel->types, add_json_constraint, types);
  tool_json_set(object, "device", tool_json_text(kernel->device));
  tool_json_set(object, "name", tool_json_text(kernel->name != NULL ? kernel->name : ""));
  tool_json_set(object, "rank", json_integer(kernel->rank));
  tool_json_set(object, "constraints", types);
  return object;
}

static json_t *json_op(const tn_op_schema *schema)
{
  json_t *object = json_object(), *kernels = json_array(), *supported = json_object();
  const tn_kernel_def *kernel;
  op_types types;
  char *text = schema_text(schema);
  read_types(schema, &types);
  for (size_t i = 0; (kernel = tn_op_schema_kernel(schema, i)) != NULL; i++)
    tool_json_append(kernels, json_kernel(kernel));
  for (size_t i = 0; i < types.n; i++)
    tool_json_set(supported, types.items[i].name, json_types(types.items[i].with_kernel));
  tool_json_set(object, "name", tool_json_text(tn_op_schema_name(schema)));
  tool_json_set(object, "schema", tool_json_text(text));
  tool_json_set(object, "built_in", json_boolean((tn_op_schema_traits(schema) & TOOL_BUILT_IN) != 0));
  tool_json_set(object, "types", supported);
  tool_json_set(object, "kernels", kernels);
  free(types.items);
  free(text);
  return object;
}

/* ---- the command ---- */

static bool wanted(const char *name, char **patterns, size_t n)
{
  for (size_t i = 0; i < n; i++)
    if (fnmatch(patterns[i], name, 0) == 0) return true;
  return n == 0;
}

static int not_found(const char *pattern)
{
  tn_error err = TN_ERROR_INIT;
  tool_near near;
  tool_text text = { 0 };
  tool_near_init(&near, pattern);
  for (size_t i = 0; i < tn_n_op_schemas(); i++) tool_near_offer(&near, tn_op_schema_name(tn_op_schema_at(i)));
  tool_text_printf(&text, "no known op matches '%s'", pattern);
  tool_near_text(&near, &text);
  tn_error_set(&err, TN_NOT_FOUND, "%s", text.data);
  tool_text_fini(&text);
  return tool_fail(&err);
}

/* Looking up an op that a plugin announces loads the plugin, as when a graph is built. Names are collected first,
 * because loading changes the list. */
static void look_in_plugins(char **patterns, size_t n)
{
  tn_graph *graph = NULL;
  tool_text names = { 0 };
  char name[1000];
  if (n == 0 || tn_graph_create(&graph, NULL) != TN_OK) return;
  for (size_t i = 0, size; tn_plugin_op_at(i, name, sizeof(name), &size, NULL) == TN_OK; i++)
    if (size < sizeof(name) && wanted(name, patterns, n)) tool_text_add(&names, name, size + 1);
  for (size_t at = 0; at < names.length; at += strlen(names.data + at) + 1)
    if (tn_op_schema_find(names.data + at) == NULL)
      tn_operation_abandon(tn_operation_begin(graph, names.data + at, "node", 0));
  tool_text_fini(&names);
  tn_graph_unref(graph);
}

static size_t list(char **patterns, size_t n_patterns, bool schemas, tool_table *table, json_t *array)
{
  size_t found = 0;
  for (size_t i = 0; i < tn_n_op_schemas(); i++) {
    const tn_op_schema *schema = tn_op_schema_at(i);
    if (!wanted(tn_op_schema_name(schema), patterns, n_patterns)) continue;
    found++;
    if (array != NULL)
      tool_json_append(array, json_op(schema));
    else
      add_row(table, schema);
    if (array == NULL && schemas) add_schema_row(table, schema);
  }
  return found;
}

static tn_status load_runtime(const char *runtime, tn_error *err)
{
  tn_runtime_info info = { .struct_size = sizeof info };
  tool_text name = { 0 };
  tn_status status = tool_target(runtime, &name, err);
  if (status == TN_OK) status = tn_runtime_load(name.data, &info, err);
  tool_text_fini(&name);
  return status;
}

static int run(int argc, char **argv)
{
  static const struct option options[] = {
    { "json", no_argument, NULL, 'j' },
    { "runtime", required_argument, NULL, 'r' },
    { "schema", no_argument, NULL, 's' },
    { NULL, 0, NULL, 0 },
  };
  bool json = false, schemas = false;
  const char *runtime = NULL;
  int c;
  while ((c = getopt_long(argc, argv, ":", options, NULL)) != -1) {
    switch (c) {
    case 'j': json = true; break;
    case 's': schemas = true; break;
    case 'r': runtime = optarg; break;
    default: return tool_bad_option("ops", c, argv);
    }
  }
  char **patterns = argv + optind;
  size_t n_patterns = (size_t)(argc - optind);
  tn_error err = TN_ERROR_INIT;
  if (runtime != NULL && load_runtime(runtime, &err) != TN_OK) return tool_fail(&err);
  tool_table table;
  tool_table_init(&table, 3, 0);
  json_t *array = json ? json_array() : NULL;
  look_in_plugins(patterns, n_patterns);
  size_t found = list(patterns, n_patterns, schemas, &table, array);
  if (found == 0 && n_patterns > 0) {
    json_decref(array);
    return not_found(patterns[0]);
  }
  if (!json) {
    tool_table_print(&table, "", stdout);
    printf("%zu op%s\n", found, found == 1 ? "" : "s");
    return TOOL_OK;
  }
  json_t *root = json_object();
  tool_json_set(root, "count", json_integer((json_int_t)found));
  tool_json_set(root, "ops", array);
  return tool_json_print(root);
}

const tool_command tool_cmd_ops = { "ops", "list known ops with their devices and types", help, run };
