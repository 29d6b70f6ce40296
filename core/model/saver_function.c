/* SPDX-License-Identifier: Apache-2.0 */
/* The restore function of TensorFlow 2's savers: RestoreV2 nodes read the file that argument 0 names, and
 * AssignVariableOp nodes assign their outputs to variables whose handles are the other arguments. */
#include <core/model/model.h>

#include <string.h>

/* A function whose body is read. Node numbers plus 1 are the values of `nodes`, argument numbers plus 1 those of
 * `args`. */
typedef struct body {
  const tn_function *f;
  tn_operation *call;
  tn__map nodes, args;
} body;

static bool is_node(const body *b, size_t i, const char *type)
{
  return strcmp(tn_function_node_type(b->f, i), type) == 0;
}

static tn_status index_names(body *b, tn_error *err)
{
  bool ok = true;
  for (size_t i = 0; ok && i < tn_function_n_nodes(b->f); i++) {
    const char *name = tn_function_node_name(b->f, i);
    ok = tn__map_put(&b->nodes, name, strlen(name), (void *)(i + 1), NULL);
  }
  for (size_t i = 0; ok && i < tn_function_n_inputs(b->f); i++) {
    const char *name = tn_function_input_name(b->f, i);
    ok = tn__map_put(&b->args, name, strlen(name), (void *)(i + 1), NULL);
  }
  return ok ? TN_OK : tn__no_memory(err, "names of a function", tn_function_n_nodes(b->f));
}

/* A source of a value in a body: an argument, or output `index` of a node. */
typedef struct source {
  bool is_arg;
  size_t number;
  int64_t index;
} source;

/* Input k of a node, "argument" or "node:output:index". False: it is neither. */
static bool read_source(const body *b, size_t node, size_t k, source *out)
{
  const char *input = tn_function_node_input(b->f, node, k);
  if (input == NULL || input[0] == '^') return false;
  size_t n = strcspn(input, ":");
  void *arg = input[n] == 0 ? tn__map_get(&b->args, input, n) : NULL;
  if (arg != NULL) {
    *out = (source){ .is_arg = true, .number = (size_t)arg - 1 };
    return true;
  }
  void *found = tn__map_get(&b->nodes, input, n);
  if (found == NULL) return false;
  const char *last = strrchr(input, ':');
  int64_t index = 0;
  if (last != NULL && last > input + n && !tn__parse_int(tn__slice_of(last + 1), &index)) return false;
  *out = (source){ .number = (size_t)found - 1, .index = index };
  return true;
}

/* The same, past identities; at most as many as there are nodes, so that a cycle ends. */
static bool find_source(const body *b, size_t node, size_t k, source *out)
{
  if (!read_source(b, node, k, out)) return false;
  for (size_t steps = tn_function_n_nodes(b->f); !out->is_arg && is_node(b, out->number, "Identity"); steps--)
    if (steps == 0 || !read_source(b, out->number, 0, out)) return false;
  return true;
}

static bool constant_text(const body *b, size_t node, size_t k, int64_t i, tn__slice *out)
{
  source from;
  const tn_operation *c;
  tn_tensor *value;
  return find_source(b, node, k, &from) && !from.is_arg && is_node(b, from.number, "Const") &&
         tn_function_node(b->f, from.number, &c, NULL) == TN_OK &&
         tn_operation_attr_tensor(c, "value", &value, NULL) == TN_OK &&
         tn_tensor_get_string(value, i, &out->data, &out->size, NULL) == TN_OK;
}

/* What one AssignVariableOp does; false: something that is not usual. */
static bool read_assign(const body *b, size_t node, tn__restored *item)
{
  source to, from, prefix;
  if (!find_source(b, node, 0, &to) || !to.is_arg || !find_source(b, node, 1, &from) || from.is_arg) return false;
  item->variable = tn_operation_input(b->call, to.number).op;
  if (item->variable == NULL || !tn__is_variable(item->variable)) return false;
  return is_node(b, from.number, "RestoreV2") && find_source(b, from.number, 0, &prefix) && prefix.is_arg &&
         prefix.number == 0 && constant_text(b, from.number, 1, from.index, &item->key) &&
         constant_text(b, from.number, 2, from.index, &item->spec);
}

static bool is_harmless(const body *b, size_t node)
{
  static const char *const types[] = { "Const", "Identity", "NoOp", "RestoreV2" };
  bool known = false;
  for (size_t i = 0; i < sizeof types / sizeof *types && !known; i++) known = is_node(b, node, types[i]);
  return known;
}

static tn_status read_body(const body *b, tn__saver *out, bool *usual, tn_error *err)
{
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && *usual && i < tn_function_n_nodes(b->f); i++) {
    tn__restored item;
    if (!is_node(b, i, "AssignVariableOp")) *usual = is_harmless(b, i);
    else if ((*usual = read_assign(b, i, &item))) st = tn__saver_add(out, item, err);
  }
  return st;
}

/* Adds the keys of a RestoreV2 that are not among those of the items. */
static tn_status add_unused(const body *b, size_t node, tn__map *keys, tn__saver *out, tn_error *err)
{
  tn__slice key;
  tn_status st = TN_OK;
  for (int64_t i = 0; st == TN_OK && constant_text(b, node, 1, i, &key); i++)
    if (tn__map_get(keys, key.data, key.size) == NULL) {
      st = tn__saver_add_unused(out, key, err);
      if (st == TN_OK && !tn__map_put(keys, key.data, key.size, out, NULL))
        st = tn__no_memory(err, "keys of a saver", 1);
    }
  return st;
}

static tn_status find_unused(const body *b, tn__saver *out, tn_error *err)
{
  tn__map keys;
  bool ok = true;
  tn__map_init(&keys);
  for (size_t i = 0; ok && i < out->n; i++)
    ok = tn__map_put(&keys, out->items[i].key.data, out->items[i].key.size, &out->items[i], NULL);
  tn_status st = ok ? TN_OK : tn__no_memory(err, "keys of a saver", out->n);
  for (size_t i = 0; st == TN_OK && i < tn_function_n_nodes(b->f); i++)
    if (is_node(b, i, "RestoreV2")) st = add_unused(b, i, &keys, out, err);
  tn__map_fini(&keys);
  return st;
}

tn_status tn__saver_read_function(tn_graph *graph, tn_operation *call, tn__saver *out, bool *usual, tn_error *err)
{
  const char *name;
  body b = { .call = call };
  *usual = false;
  if (tn_operation_attr_func(call, "f", &name, NULL) != TN_OK) return TN_OK;
  b.f = tn_graph_find_function(graph, name);
  if (b.f == NULL || tn_function_n_inputs(b.f) != tn_operation_n_inputs(call)) return TN_OK;
  *usual = true;
  tn__map_init(&b.nodes);
  tn__map_init(&b.args);
  tn_status st = index_names(&b, err);
  if (st == TN_OK) st = read_body(&b, out, usual, err);
  if (st == TN_OK && *usual) st = find_unused(&b, out, err);
  tn__map_fini(&b.nodes);
  tn__map_fini(&b.args);
  return st;
}
