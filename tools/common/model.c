/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up nodes and outputs of a graph by name, and finds the nodes that cannot run. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <tools/tool.h>

/* ---- names ---- */

static tn_status no_such_node(tn_graph *graph, const char *what, const char *name, tn_error *err)
{
  tool_near near;
  tool_text text = { 0 };
  tool_near_init(&near, name);
  for (size_t i = 0; i < tn_graph_n_operations(graph); i++)
    tool_near_offer(&near, tn_operation_name(tn_graph_operation(graph, i)));
  tool_text_printf(&text, "%s '%s': the model has no node of this name", what, name);
  tool_near_text(&near, &text);
  tn_status status = tn_error_set(err, TN_NOT_FOUND, "%s", text.data);
  tool_text_fini(&text);
  return status;
}

/* Splits "node:7" in place into the node name and the number, which is returned: 0 if absent, -1 if malformed. */
static int64_t split_index(char *name)
{
  char *colon = strrchr(name, ':');
  if (colon == NULL) return 0;
  size_t digits = strspn(colon + 1, "0123456789");
  if (digits == 0 || colon[1 + digits] != '\0') return -1;
  *colon = '\0';
  return digits > 9 ? INT32_MAX : (int64_t)strtol(colon + 1, NULL, 10);
}

tn_status tool_find_output(tn_graph *graph, const char *what, const char *name, tn_output *out, tn_error *err)
{
  tn_status status = TN_OK;
  out->op = NULL;
  out->index = 0;
  if (name[0] == '\0') return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the tensor's name is empty", what);
  if (name[0] == '^') return tn_error_set(err, TN_OUT_OF_RANGE, "%s '%s': a control input has no value", what, name);
  char *node = tool_alloc(strlen(name) + 1, 1);
  memcpy(node, name, strlen(name) + 1);
  int64_t index = split_index(node);
  tn_operation *op = index >= 0 ? tn_graph_find(graph, node) : NULL;
  size_t n = op != NULL ? tn_operation_n_outputs(op) : 0;
  if (index < 0)
    status =
        tn_error_set(err, TN_INVALID_ARGUMENT, "%s '%s': expected an output number after the colon", what, name);
  else if (op == NULL)
    status = no_such_node(graph, what, node, err);
  else if (tn_operation_schema(op) != NULL && (uint64_t)index >= n)
    status = tn_error_set(err, TN_OUT_OF_RANGE, "%s '%s': node '%s' (%s) has %zu output%s", what, name, node,
                          tn_operation_type(op), n, n == 1 ? "" : "s");
  if (status == TN_OK) {
    out->op = op;
    out->index = (int32_t)index;
  }
  free(node);
  return status;
}

tn_status tool_find_node(tn_graph *graph, const char *what, const char *name, tn_operation **out, tn_error *err)
{
  if (name[0] == '\0') return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the node's name is empty", what);
  char *node = tool_alloc(strlen(name) + 1, 1);
  memcpy(node, name, strlen(name) + 1);
  split_index(node); /* "node:0" is the node */
  *out = tn_graph_find(graph, node);
  tn_status status = *out != NULL ? TN_OK : no_such_node(graph, what, node, err);
  free(node);
  return status;
}

static tn_dtype without_ref(tn_dtype dtype) { return dtype > TN_DTYPE_REF ? dtype - TN_DTYPE_REF : dtype; }

tn_dtype tool_output_dtype(tn_graph *graph, tn_output output)
{
  tn_dtype dtype = TN_DTYPE_INVALID;
  if ((size_t)output.index < tn_operation_n_outputs(output.op))
    dtype = without_ref(tn_operation_output_dtype(output.op, (size_t)output.index));
  /* Infer the output type of an unknown op from its users. */
  for (size_t i = 0; dtype == TN_DTYPE_INVALID && i < tn_graph_n_operations(graph); i++) {
    const tn_operation *user = tn_graph_operation(graph, i);
    if (tn_operation_schema(user) == NULL) continue;
    for (size_t j = 0; dtype == TN_DTYPE_INVALID && j < tn_operation_n_inputs(user); j++) {
      tn_output input = tn_operation_input(user, j);
      if (input.op == output.op && input.index == output.index) dtype = without_ref(tn_operation_input_dtype(user, j));
    }
  }
  return tn_dtype_size(dtype) > 0 ? dtype : TN_DTYPE_INVALID;
}

int64_t *tool_output_dims(tn_output output, int32_t *rank)
{
  *rank = -1;
  tn_output_shape(output, NULL, 0, rank, NULL);
  if (*rank < 0) return NULL;
  int64_t *dims = tool_alloc((size_t)*rank, sizeof(*dims));
  if (tn_output_shape(output, dims, *rank, rank, NULL) != TN_OK) *rank = -1;
  return dims;
}

void tool_text_output(tool_text *text, tn_output output)
{
  int32_t rank;
  tn_dtype dtype = tn_operation_output_dtype(output.op, (size_t)output.index);
  int64_t *dims = tool_output_dims(output, &rank);
  if (dtype == TN_DTYPE_INVALID)
    tool_text_printf(text, "unknown type%s", rank < 0 ? " and shape" : " ");
  else
    tool_text_printf(text, "%s ", tn_dtype_name(dtype));
  if (dtype != TN_DTYPE_INVALID || rank >= 0) tool_text_shape(text, dims, rank);
  free(dims);
}

/* ---- what can run ---- */

void tool_each_constraint(const char *types,
                          void (*each)(void *user, const char *attr, size_t attr_length, const char *list,
                                       size_t list_length),
                          void *user)
{
  while (types != NULL && *types != '\0') {
    size_t length = strcspn(types, ",");
    const char *equals = memchr(types, '=', length);
    if (equals != NULL) each(user, types, (size_t)(equals - types), equals + 1, length - (size_t)(equals - types) - 1);
    types += length + (types[length] == ',' ? 1 : 0);
  }
}

uint64_t tool_parse_types(const char *list, size_t length)
{
  uint64_t types = 0;
  while (length > 0) {
    size_t n = 0;
    while (n < length && list[n] != '|' && list[n] != ',' && list[n] != ' ') n++;
    char name[32];
    if (n > 0 && n < sizeof(name)) {
      memcpy(name, list, n);
      name[n] = '\0';
      tn_dtype dtype = tn_dtype_from_name(name);
      if (dtype > 0 && dtype < 64) types |= UINT64_C(1) << dtype;
    }
    n += n < length ? 1 : 0;
    list += n;
    length -= n;
  }
  return types;
}

typedef struct fit {
  const tn_operation *op;
  bool fits;
} fit;

static bool has_type(uint64_t types, tn_dtype dtype) { return dtype > 0 && dtype < 64 && (types >> dtype & 1) != 0; }

static void check_constraint(void *user, const char *attr, size_t attr_length, const char *list, size_t list_length)
{
  fit *f = user;
  char name[64];
  tn_dtype dtype;
  const tn_dtype *dtypes;
  size_t n;
  if (attr_length >= sizeof(name)) return;
  memcpy(name, attr, attr_length);
  name[attr_length] = '\0';
  uint64_t types = tool_parse_types(list, list_length);
  if (tn_operation_attr_type(f->op, name, &dtype, NULL) == TN_OK) {
    if (!has_type(types, dtype)) f->fits = false;
  } else if (tn_operation_attr_types(f->op, name, &dtypes, &n, NULL) == TN_OK) {
    for (size_t i = 0; i < n; i++)
      if (!has_type(types, dtypes[i])) f->fits = false;
  }
}

uint8_t tool_support_of(const tn_operation *op)
{
  const tn_op_schema *schema = tn_operation_schema(op);
  const tn_kernel_def *kernel;
  if (schema == NULL) return TOOL_NO_OP;
  if (tn_op_schema_traits(schema) & TOOL_BUILT_IN) return TOOL_SUPPORTED;
  if ((tn_op_schema_traits(schema) & TN_TRAIT_FUNCTION_CALL) && tn_op_schema_kernel(schema, 0) == NULL)
    return TOOL_SUPPORTED; /* a function of the model, called by a built-in kernel */
  for (size_t i = 0; (kernel = tn_op_schema_kernel(schema, i)) != NULL; i++) {
    fit f = { op, kernel->rank > 0 };
    tool_each_constraint(kernel->types, check_constraint, &f);
    if (f.fits) return TOOL_SUPPORTED;
  }
  return TOOL_NO_KERNEL;
}

/* qsort passes no context to the comparison, so sort operation addresses together with their numbers. */
typedef struct address {
  const tn_operation *op;
  uint32_t number;
} address;

static int compare_addresses(const void *a, const void *b)
{
  uintptr_t x = (uintptr_t)((const address *)a)->op, y = (uintptr_t)((const address *)b)->op;
  return x < y ? -1 : x > y;
}

tool_node *tool_model_node(const tool_model *model, const tn_operation *op)
{
  size_t low = 0, high = model->n;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    tool_node *node = &model->nodes[model->by_address[middle]];
    if (node->op == op) return node;
    if ((uintptr_t)node->op < (uintptr_t)op)
      low = middle + 1;
    else
      high = middle;
  }
  return NULL;
}

/* The producer of input i of an operation, control inputs after data inputs; NULL past the end. */
static tool_node *input_node(const tool_model *model, const tn_operation *op, size_t i)
{
  size_t n = tn_operation_n_inputs(op);
  const tn_operation *from = i < n ? tn_operation_input(op, i).op : tn_operation_control_input(op, i - n);
  return from != NULL ? tool_model_node(model, from) : NULL;
}

static size_t n_input_nodes(const tn_operation *op)
{
  return tn_operation_n_inputs(op) + tn_operation_n_control_inputs(op);
}

/* Visits a node's inputs before the node itself. Uses an explicit stack because graphs can be deep. A loop's back edge
 * leads to a node that is reached but not done; it adds nothing. */
static void walk(const tool_model *model, tool_node *start)
{
  typedef struct frame {
    tool_node *node;
    size_t next;
  } frame;
  frame *stack = NULL;
  size_t n = 0, room = 0;
  stack = tool_grow(stack, n, &room, sizeof(*stack));
  stack[n++] = (frame){ start, 0 };
  start->reached = true;
  while (n > 0) {
    frame *top = &stack[n - 1];
    tool_node *node = top->node;
    if (top->next < n_input_nodes(node->op)) {
      tool_node *from = input_node(model, node->op, top->next++);
      if (from == NULL || from->reached) continue;
      from->reached = true;
      stack = tool_grow(stack, n, &room, sizeof(*stack));
      stack[n++] = (frame){ from, 0 };
      continue;
    }
    if (node->support != TOOL_SUPPORTED) node->blocked_by = node;
    for (size_t i = 0; node->blocked_by == NULL && i < n_input_nodes(node->op); i++) {
      const tool_node *from = input_node(model, node->op, i);
      if (from != NULL) node->blocked_by = from->blocked_by;
    }
    n--;
  }
  free(stack);
}

void tool_model_scan(tool_model *model, tn_graph *graph)
{
  memset(model, 0, sizeof(*model));
  model->graph = graph;
  model->n = tn_graph_n_operations(graph);
  model->nodes = tool_alloc(model->n, sizeof(*model->nodes));
  model->by_address = tool_alloc(model->n, sizeof(*model->by_address));
  address *addresses = tool_alloc(model->n, sizeof(*addresses));
  tool_functions *functions = tool_functions_scan(graph);
  for (size_t i = 0; i < model->n; i++) {
    tool_node *node = &model->nodes[i];
    node->op = tn_graph_operation(graph, i);
    node->support = tool_support_of(node->op);
    node->needs = node->support == TOOL_SUPPORTED ? tool_functions_need(functions, node->op) : NULL;
    if (node->needs != NULL) node->support = TOOL_IN_FUNCTION;
    addresses[i] = (address){ node->op, (uint32_t)i };
  }
  tool_functions_destroy(functions);
  qsort(addresses, model->n, sizeof(*addresses), compare_addresses);
  for (size_t i = 0; i < model->n; i++) model->by_address[i] = addresses[i].number;
  free(addresses);
  for (size_t i = 0; i < model->n; i++)
    for (size_t j = 0; j < n_input_nodes(model->nodes[i].op); j++) {
      tool_node *from = input_node(model, model->nodes[i].op, j);
      if (from != NULL) from->used = true;
    }
  for (size_t i = 0; i < model->n; i++)
    if (!model->nodes[i].reached) walk(model, &model->nodes[i]);
}

void tool_model_fini(tool_model *model)
{
  free(model->nodes);
  free(model->by_address);
  memset(model, 0, sizeof(*model));
}

static bool has_trait(const tool_node *node, uint32_t trait)
{
  const tn_op_schema *schema = tn_operation_schema(node->op);
  return schema != NULL && (tn_op_schema_traits(schema) & trait) != 0;
}

bool tool_node_has_default(const tool_node *node)
{
  return strcmp(tn_operation_type(node->op), "PlaceholderWithDefault") == 0;
}

bool tool_node_is_input(const tool_node *node)
{
  return has_trait(node, TN_TRAIT_PLACEHOLDER) || tool_node_has_default(node);
}

bool tool_node_is_output(const tool_node *node)
{
  if (node->used || tool_node_is_input(node) || has_trait(node, TN_TRAIT_CONSTANT)) return false;
  return tn_operation_schema(node->op) == NULL || tn_operation_n_outputs(node->op) > 0;
}

bool tool_node_is_target(const tool_node *node)
{
  return !node->used && tn_operation_schema(node->op) != NULL && tn_operation_n_outputs(node->op) == 0;
}
