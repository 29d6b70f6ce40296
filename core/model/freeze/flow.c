/* SPDX-License-Identifier: Apache-2.0 */
/* Traces variables: which outputs are the resource of, or a reference to, a variable.
 *
 * In a use this is a walk forward from variables and arguments: a marked output marks the outputs of the nodes that
 * hand it on, until all readers of marked outputs were visited. A reader that does not hand it on must be one that
 * needs only the value. A call whose function returns resources waits until the function's use is done: such uses are
 * done first, on a stack. All other called uses are done later. */
#include <core/model/freeze/freeze.h>

#include <string.h>

/* ---- types ---- */

static bool is_same(const tn__freeze_type *a, const tn__freeze_type *b)
{
  return a->dtype == b->dtype && a->is_reference == b->is_reference && a->rank == b->rank &&
         (a->rank == 0 || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0);
}

static tn_status number_of(tn__freeze *fz, const tn__freeze_type *type, uint32_t *out)
{
  for (size_t i = 0; i < fz->n_types; i++) {
    *out = (uint32_t)(i + 1);
    if (is_same(&fz->types[i], type)) return TN_OK;
  }
  if (!tn__grow((void **)&fz->types, &fz->type_room, fz->n_types + 1, sizeof *fz->types))
    return tn__freeze_no_memory(fz);
  fz->types[fz->n_types++] = *type;
  *out = (uint32_t)fz->n_types;
  return TN_OK;
}

static const char *variable_name(const tn_operation *op)
{
  const char *name = "";
  size_t n;
  tn_operation_attr_string(op, "shared_name", &name, &n, NULL);
  return name != NULL && name[0] != 0 ? name : tn_operation_name(op);
}

/* The value as a tensor in the host's memory, which can be shared with a constant. */
static tn_status read_value(tn__freeze *fz, const tn__freeze_body *body, tn__freeze_node *node)
{
  tn_status st = tn__variable_value(fz->session, node->operation, &node->value, fz->err);
  if (st == TN_OK && node->value == NULL)
    return tn__freeze_refuse(fz, body, node, TN_FAILED_PRECONDITION,
                             "is variable '%.300s', which has no value: it was not restored and not initialised",
                             variable_name(node->operation));
  if (st != TN_OK || tn_buffer_describe(tn_tensor_buffer(node->value))->memory == TN_MEMORY_HOST) return st;
  tn_tensor *copy;
  st = tn_tensor_copy(node->value, &copy, fz->err);
  if (st != TN_OK) return st;
  tn_tensor_unref(node->value);
  node->value = copy;
  return TN_OK;
}

static tn_status type_variable(tn__freeze *fz, const tn__freeze_body *body, tn__freeze_node *node)
{
  if (node->value_type != 0) return TN_OK;
  tn_status st = read_value(fz, body, node);
  if (st != TN_OK) return st;
  const tn__freeze_type type = { .dtype = tn_tensor_dtype(node->value),
                                 .is_reference = node->kind == TN__FREEZE_REFERENCE,
                                 .rank = tn_tensor_rank(node->value),
                                 .dims = tn_tensor_dims(node->value),
                                 .variable = variable_name(node->operation) };
  return number_of(fz, &type, &node->value_type);
}

/* ---- uses ---- */

/* The number of outputs that may be variables. */
static size_t n_ports(const tn__freeze_body *body, const tn__freeze_node *node)
{
  if (node->kind == TN__FREEZE_PASS_EACH || node->kind == TN__FREEZE_LOOP) return node->n_data;
  if (!tn__freeze_calls(node->kind)) return node->row->two ? 2 : 1;
  const tn__freeze_body *callee = node->n_calls == 0 ? NULL : body->calls[node->first_call].body;
  return callee == NULL ? 0 : callee->n_results;
}

uint32_t tn__freeze_bound(const tn__freeze_use *use, const tn__freeze_edge *edge)
{
  if (edge->from == TN__FREEZE_NONE || use->bound[edge->from] == NULL) return 0;
  const tn__freeze_node *node = use->body->nodes[edge->from];
  return edge->port < n_ports(use->body, node) ? use->bound[edge->from][edge->port] : 0;
}

/* Finds the use of a body with these arguments; a new one gets a copy of them. */
static tn_status find_use(tn__freeze *fz, tn__freeze_body *body, const uint32_t *arguments, tn__freeze_use **out)
{
  size_t n = body->n_arguments, size = sizeof(tn__freeze_body *) + n * sizeof *arguments;
  char *key = tn__arena_alloc(&fz->arena, size);
  if (key == NULL) return tn__freeze_no_memory(fz);
  memcpy(key, &body, sizeof(tn__freeze_body *));
  if (n > 0) memcpy(key + sizeof(tn__freeze_body *), arguments, n * sizeof *arguments);
  *out = tn__map_get(&fz->uses, key, size);
  if (*out != NULL) return TN_OK;
  tn_status st = tn__freeze_count(fz, body->n_nodes + 1);
  if (st != TN_OK) return st;
  tn__freeze_use *use = tn__arena_zalloc(&fz->arena, sizeof *use);
  if (use == NULL || !tn__map_put(&fz->uses, key, size, use, NULL)) return tn__freeze_no_memory(fz);
  use->body = body;
  use->arguments = (uint32_t *)(void *)(key + sizeof(tn__freeze_body *));
  use->results = tn__arena_array(&fz->arena, body->n_results, sizeof *use->results);
  use->bound = tn__arena_array(&fz->arena, body->n_nodes, sizeof(uint32_t *));
  use->callees = tn__arena_array(&fz->arena, body->n_calls, sizeof(tn__freeze_use *));
  *fz->last_use = use;
  fz->last_use = &use->next;
  *out = use;
  return use->results == NULL || use->bound == NULL || use->callees == NULL ? tn__freeze_no_memory(fz) : TN_OK;
}

tn_status tn__freeze_plain_use(tn__freeze *fz, const tn__freeze_body *body, const tn__freeze_use **out)
{
  const size_t head = sizeof(tn__freeze_body *), size = head + body->n_arguments * sizeof(uint32_t);
  char *key = tn__zalloc(size);
  *out = NULL;
  if (key == NULL) return tn__freeze_no_memory(fz);
  memcpy(key, &body, head);
  *out = tn__map_get(&fz->uses, key, size);
  tn__free(key, size);
  return TN_OK;
}

void tn__freeze_use_fini(tn__freeze_use *use)
{
  tn__free(use->marks, use->mark_room * sizeof *use->marks);
  tn__free(use->waiting, use->waiting_room * sizeof *use->waiting);
  use->marks = NULL;
  use->waiting = NULL;
  use->mark_room = use->waiting_room = 0;
}

/* ---- marks ---- */

static tn_status mark(tn__freeze *fz, tn__freeze_use *use, uint32_t number, uint32_t port, uint32_t type)
{
  const tn__freeze_node *node = use->body->nodes[number];
  size_t ports = n_ports(use->body, node);
  if (port >= ports) return tn__freeze_refuse(fz, use->body, node, TN_INVALID_ARGUMENT, "has no output %u", port);
  if (use->bound[number] == NULL) use->bound[number] = tn__arena_array(&fz->arena, ports, sizeof(uint32_t));
  if (use->bound[number] == NULL) return tn__freeze_no_memory(fz);
  uint32_t *bound = &use->bound[number][port];
  if (*bound == type) return TN_OK;
  if (*bound != 0)
    return tn__freeze_refuse(fz, use->body, node, TN_UNIMPLEMENTED,
                             "chooses between variables of different types or shapes, '%.200s' and '%.200s'",
                             tn__freeze_type_of(fz, *bound)->variable, tn__freeze_type_of(fz, type)->variable);
  if (!tn__grow((void **)&use->marks, &use->mark_room, use->n_marks + 1, sizeof *use->marks))
    return tn__freeze_no_memory(fz);
  *bound = type;
  use->marks[use->n_marks++] = (tn__freeze_mark){ number, port };
  return TN_OK;
}

/* Makes a call wait for the use of its function, if that returns resources. */
static tn_status wait_for_results(tn__freeze *fz, tn__freeze_use *use, uint32_t number)
{
  const tn__freeze_node *node = use->body->nodes[number];
  bool gives = false;
  for (uint32_t i = 0; i < node->n_calls && !gives; i++) {
    const tn__freeze_call *call = &use->body->calls[node->first_call + i];
    gives = !call->nested && call->body != NULL && call->body->gives_resources;
  }
  if (!gives || (use->n_waiting > 0 && use->waiting[use->n_waiting - 1] == number)) return TN_OK;
  if (!tn__grow((void **)&use->waiting, &use->waiting_room, use->n_waiting + 1, sizeof *use->waiting))
    return tn__freeze_no_memory(fz);
  use->waiting[use->n_waiting++] = number;
  return TN_OK;
}

static tn_status refuse_reader(tn__freeze *fz, const tn__freeze_use *use, const tn__freeze_node *node, uint32_t type)
{
  return tn__freeze_refuse(fz, use->body, node, TN_UNIMPLEMENTED,
                           "needs variable '%.300s' itself and not only its value, because it may assign to it, but a "
                           "frozen graph has no variables: freeze a signature that only reads them, or save the model "
                           "with tn_model_save",
                           tn__freeze_type_of(fz, type)->variable);
}

/* Whether an input of an op is a reference. The schema's arguments are counted only up to a list. */
static bool takes_reference(const tn__freeze_node *node, uint32_t input)
{
  const tn_op_schema *schema = node->operation == NULL ? NULL : tn_operation_schema(node->operation);
  tn_op_arg arg = { .struct_size = sizeof arg };
  if (schema == NULL) schema = tn_op_schema_find(node->op.data);
  for (size_t i = 0; schema != NULL && tn_op_schema_input(schema, i, &arg, NULL) == TN_OK; i++) {
    if (arg.number_attr >= 0 || arg.list_attr >= 0) return arg.is_ref;
    if (i == input) return arg.is_ref;
  }
  return false;
}

/* Visits a reader of a reference. All ops but those that take references see the value. */
static tn_status visit_reference(tn__freeze *fz, tn__freeze_use *use, uint32_t number, uint32_t input, uint32_t type)
{
  const tn__freeze_node *node = use->body->nodes[number];
  tn_status st = TN_OK;
  if (node->kind == TN__FREEZE_MERGE_REFERENCE) return mark(fz, use, number, 0, type);
  if (node->kind == TN__FREEZE_PASS_REFERENCE) {
    if (input > 0) return TN_OK;
    for (uint32_t port = 0; st == TN_OK && port < n_ports(use->body, node); port++)
      st = mark(fz, use, number, port, type);
    return st;
  }
  if (node->kind == TN__FREEZE_IS_SET_REFERENCE || !takes_reference(node, input)) return TN_OK;
  return refuse_reader(fz, use, node, type);
}

/* Visits a reader of a resource. */
static tn_status visit_resource(tn__freeze *fz, tn__freeze_use *use, uint32_t number, uint32_t input, uint32_t type)
{
  const tn__freeze_node *node = use->body->nodes[number];
  tn_status st = TN_OK;
  switch (node->kind) {
  case TN__FREEZE_PASS:
    for (uint32_t port = 0; st == TN_OK && input == 0 && port < n_ports(use->body, node); port++)
      st = mark(fz, use, number, port, type);
    return input == 0 ? st : refuse_reader(fz, use, node, type);
  case TN__FREEZE_MERGE: return mark(fz, use, number, 0, type);
  case TN__FREEZE_PASS_EACH:
  case TN__FREEZE_LOOP: return mark(fz, use, number, input, type);
  case TN__FREEZE_CALL:
  case TN__FREEZE_OWN_CALL:
  case TN__FREEZE_BRANCH:
    return input < tn__freeze_first(node->kind) ? refuse_reader(fz, use, node, type)
                                                : wait_for_results(fz, use, number);
  default:
    if (!tn__freeze_reads(node->kind) || input > 0) return refuse_reader(fz, use, node, type);
    bool indexes = node->kind == TN__FREEZE_GATHER || node->kind == TN__FREEZE_GATHER_ND;
    if (node->n_data == (indexes ? 2 : 1)) return TN_OK;
    return tn__freeze_refuse(fz, use->body, node, TN_INVALID_ARGUMENT, "has %u inputs", node->n_data);
  }
}

static tn_status spread(tn__freeze *fz, tn__freeze_use *use)
{
  const tn__freeze_body *body = use->body;
  tn_status st = TN_OK;
  while (st == TN_OK && use->n_marks > 0) {
    const tn__freeze_mark m = use->marks[--use->n_marks];
    uint32_t type = use->bound[m.node][m.port];
    bool reference = tn__freeze_type_of(fz, type)->is_reference;
    for (uint32_t i = body->first_reader[m.node]; st == TN_OK && i < body->first_reader[m.node + 1]; i++) {
      uint32_t edge = body->readers[i], reader = body->edge_node[edge], input = edge - body->nodes[reader]->first;
      if (body->edges[edge].port != m.port) continue;
      st = reference ? visit_reference(fz, use, reader, input, type) : visit_resource(fz, use, reader, input, type);
    }
  }
  return st;
}

/* ---- calls ---- */

/* In lists the number of an input would not be that of an argument. */
static tn_status refuse_call(tn__freeze *fz, const tn__freeze_use *use, const tn__freeze_node *node,
                             const tn__freeze_body *callee)
{
  const char *name = tn_function_name(callee->function);
  size_t passed = node->n_data - tn__freeze_first(node->kind);
  if (passed != callee->n_arguments)
    return tn__freeze_refuse(fz, use->body, node, TN_INVALID_ARGUMENT,
                             "passes %zu values to function '%.200s', which takes %zu", passed, name,
                             callee->n_arguments);
  return tn__freeze_refuse(fz, use->body, node, TN_UNIMPLEMENTED,
                           "passes a variable to function '%.200s', whose arguments are lists or not of type resource",
                           name);
}

/* The types that a call passes to its function. References are passed by value. */
static tn_status pass_arguments(tn__freeze *fz, const tn__freeze_use *use, const tn__freeze_node *node,
                                const tn__freeze_body *callee, uint32_t *arguments)
{
  uint32_t first = tn__freeze_first(node->kind);
  for (uint32_t i = first; i < node->n_data; i++) {
    uint32_t type = tn__freeze_bound(use, &use->body->edges[node->first + i]);
    if (type == 0 || tn__freeze_type_of(fz, type)->is_reference) continue;
    bool fits = node->n_data - first == callee->n_arguments && !callee->has_lists;
    if (!fits || tn_function_input_dtype(callee->function, i - first) != TN_RESOURCE)
      return refuse_call(fz, use, node, callee);
    arguments[i - first] = type;
  }
  return TN_OK;
}

/* Finds the use that a call makes of its function. */
static tn_status find_callee(tn__freeze *fz, const tn__freeze_use *use, const tn__freeze_call *call,
                             tn__freeze_use **out)
{
  const tn__freeze_node *node = use->body->nodes[call->node];
  uint32_t *arguments = tn__alloc_array(call->body->n_arguments + 1, sizeof *arguments);
  if (arguments == NULL) return tn__freeze_no_memory(fz);
  tn_status st = TN_OK;
  if (tn__freeze_calls(node->kind) && !call->nested) st = pass_arguments(fz, use, node, call->body, arguments);
  if (st == TN_OK) st = find_use(fz, call->body, arguments, out);
  tn__free(arguments, (call->body->n_arguments + 1) * sizeof *arguments);
  return st;
}

/* Marks the results of a waiting call. *needs: a use that must be done before. */
static tn_status take_results(tn__freeze *fz, tn__freeze_use *use, uint32_t number, tn__freeze_use **needs)
{
  const tn__freeze_node *node = use->body->nodes[number];
  tn_status st = TN_OK;
  for (uint32_t i = 0; st == TN_OK && i < node->n_calls; i++) {
    const tn__freeze_call *call = &use->body->calls[node->first_call + i];
    tn__freeze_use *callee;
    if (call->nested || call->body == NULL) continue;
    st = find_callee(fz, use, call, &callee);
    if (st == TN_OK && callee->state == TN__FREEZE_BEGUN)
      return tn__freeze_refuse(fz, use->body, node, TN_UNIMPLEMENTED,
                               "calls function '%.200s', which calls itself and returns a resource",
                               tn_function_name(call->body->function));
    if (st == TN_OK && callee->state == TN__FREEZE_NEW) *needs = callee;
    if (st != TN_OK || *needs != NULL) return st;
    for (uint32_t k = 0; st == TN_OK && k < call->body->n_results; k++)
      if (callee->results[k] != 0) st = mark(fz, use, number, k, callee->results[k]);
  }
  return st;
}

/* ---- a use ---- */

static tn_status begin(tn__freeze *fz, tn__freeze_use *use)
{
  tn__freeze_body *body = use->body;
  tn_status st = tn__freeze_link(fz, body);
  if (st == TN_OK && body->first_reader == NULL) st = tn__freeze_index_readers(fz, body);
  use->state = TN__FREEZE_BEGUN;
  for (uint32_t i = 0; st == TN_OK && i < body->n_nodes; i++) {
    tn__freeze_node *node = body->nodes[i];
    uint32_t type = i < body->n_arguments ? use->arguments[i] : 0;
    if (tn__freeze_is_variable(node->kind)) {
      st = type_variable(fz, body, node);
      type = node->value_type;
    }
    if (st == TN_OK && type != 0) st = mark(fz, use, i, 0, type);
    if (st == TN_OK && tn__freeze_calls(node->kind) && node->kind != TN__FREEZE_LOOP) st = wait_for_results(fz, use, i);
  }
  return st;
}

static const char *resource_word(tn__slice op)
{
  static const char *const words[][2] = { { "Table", "a table" },
                                          { "Queue", "a queue" },
                                          { "Iterator", "an iterator" },
                                          { "VarHandle", "a variable without a name" },
                                          { "Reader", "a reader" } };
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strstr(op.data, words[i][0]) != NULL) return words[i][1];
  return "a resource";
}

static tn_status refuse_resource(tn__freeze *fz, const tn__freeze_use *use, const tn__freeze_node *node)
{
  const char *word = resource_word(node->op);
  tn__slice name = tn__freeze_attr_text(node->bytes, "shared_name");
  if (name.size == 0) name = node->name;
  return tn__freeze_refuse(
      fz, use->body, node, TN_UNIMPLEMENTED,
      "makes %s, '%.*s', which the outputs of signature '%.200s' need, but a frozen graph keeps only "
      "values: run the model itself, or freeze a signature without it",
      word, name.size > 200 ? 200 : (int)name.size, name.data, fz->signature->name);
}

static tn_status set_callees(tn__freeze *fz, tn__freeze_use *use)
{
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < use->body->n_calls; i++) {
    const tn__freeze_call *call = &use->body->calls[i];
    const tn__freeze_node *node = use->body->nodes[call->node];
    if (call->body != NULL)
      st = find_callee(fz, use, call, &use->callees[i]);
    else if (tn__freeze_calls(node->kind))
      st = tn__freeze_refuse(fz, use->body, node, TN_NOT_FOUND, "calls function '%.*s', which the graph does not have",
                             call->name.size > 200 ? 200 : (int)call->name.size, call->name.data);
  }
  return st;
}

/* Sets results and callees when all marks are known. */
static tn_status finish(tn__freeze *fz, tn__freeze_use *use)
{
  tn__freeze_body *body = use->body;
  tn_status st = set_callees(fz, use);
  for (size_t i = 0; i < body->n_results; i++) {
    uint32_t type = tn__freeze_bound(use, &body->results[i]);
    use->results[i] = type != 0 && tn__freeze_type_of(fz, type)->is_reference ? 0 : type;
  }
  for (size_t i = 0; st == TN_OK && i < body->n_nodes; i++) {
    const tn__freeze_node *node = body->nodes[i];
    if (node->kind == TN__FREEZE_OTHER && !node->left_out && tn__freeze_makes_resource(node->op))
      st = refuse_resource(fz, use, node);
  }
  tn__freeze_use_fini(use);
  use->state = TN__FREEZE_DONE;
  return st;
}

/* Continues a use until it is done, or needs another one to be done first. */
static tn_status advance(tn__freeze *fz, tn__freeze_use *use, tn__freeze_use **needs)
{
  *needs = NULL;
  tn_status st = use->state == TN__FREEZE_NEW ? begin(fz, use) : TN_OK;
  if (st == TN_OK) st = spread(fz, use);
  while (st == TN_OK && use->n_waiting > 0) {
    uint32_t number = use->waiting[use->n_waiting - 1];
    st = take_results(fz, use, number, needs);
    if (st != TN_OK || *needs != NULL) return st;
    use->n_waiting--;
    st = spread(fz, use);
  }
  return st == TN_OK ? finish(fz, use) : st;
}

static tn_status run_stack(tn__freeze *fz, tn__freeze_use *first)
{
  tn__freeze_use **stack = NULL, *needs;
  size_t n = 0, room = 0;
  tn_status st = TN_OK;
  for (needs = first; st == TN_OK && (needs != NULL || n > 0);) {
    if (needs != NULL && !tn__grow((void **)&stack, &room, n + 1, sizeof(tn__freeze_use *)))
      st = tn__freeze_no_memory(fz);
    else if (needs != NULL)
      stack[n++] = needs;
    if (st == TN_OK) st = advance(fz, stack[n - 1], &needs);
    if (st == TN_OK && needs == NULL) n--;
  }
  tn__free(stack, room * sizeof(tn__freeze_use *));
  return st;
}

/* ---- checks of the whole ---- */

/* All functions of a call return the same variables as its outputs are. */
static tn_status check_results(tn__freeze *fz, const tn__freeze_use *use, size_t call)
{
  const tn__freeze_call *c = &use->body->calls[call];
  const tn__freeze_node *node = use->body->nodes[c->node];
  const tn__freeze_use *callee = use->callees[call];
  if (callee == NULL || c->nested || !tn__freeze_calls(node->kind) || tn__slice_is(c->attr, "cond")) return TN_OK;
  for (uint32_t k = 0; k < callee->body->n_results; k++) {
    const tn__freeze_edge output = { .from = c->node, .port = k };
    uint32_t type = tn__freeze_bound(use, &output);
    if (type != 0 && tn__freeze_type_of(fz, type)->is_reference) type = 0;
    if (type != callee->results[k])
      return tn__freeze_refuse(fz, use->body, node, TN_UNIMPLEMENTED,
                               "returns variable '%.300s' or something else, as function '%.200s' decides",
                               tn__freeze_type_of(fz, type != 0 ? type : callee->results[k])->variable,
                               tn_function_name(callee->body->function));
  }
  return TN_OK;
}

static tn_status check_outputs(tn__freeze *fz)
{
  for (size_t i = 0; i < fz->main->n_results; i++)
    if (fz->main_use->results[i] != 0)
      return tn_error_set(fz->err, TN_UNIMPLEMENTED,
                          "output '%.200s' of signature '%.200s' is variable '%.200s' itself and not its value",
                          fz->signature->outputs[i].key, fz->signature->name,
                          tn__freeze_type_of(fz, fz->main_use->results[i])->variable);
  return TN_OK;
}

tn_status tn__freeze_trace(tn__freeze *fz)
{
  fz->last_use = &fz->first_use;
  tn_status st = find_use(fz, fz->main, NULL, &fz->main_use);
  for (tn__freeze_use *use = fz->first_use; st == TN_OK && use != NULL; use = use->next)
    if (use->state == TN__FREEZE_NEW) st = run_stack(fz, use);
  for (tn__freeze_use *use = fz->first_use; st == TN_OK && use != NULL; use = use->next)
    for (size_t i = 0; st == TN_OK && i < use->body->n_calls; i++) st = check_results(fz, use, i);
  return st == TN_OK ? check_outputs(fz) : st;
}
