/* SPDX-License-Identifier: Apache-2.0 */
/* A step without a graph session: its operations are called one by one in an eager session. */
#include "tests/oracle/run/oracle.h"

#include <stdlib.h>
#include <string.h>

#include <tenon/op.h>

#define CONTROL_FLOW                                                                                          \
  (TN_TRAIT_SWITCH | TN_TRAIT_MERGE | TN_TRAIT_ENTER | TN_TRAIT_EXIT | TN_TRAIT_NEXT_ITERATION | TN_TRAIT_LOOP_COND | \
   TN_TRAIT_CONTROL_TRIGGER | TN_TRAIT_MAY_WAIT)
#define MOST_NODES 4096

typedef struct node {
  tn_operation *op;
  tn_eager_handle *outputs; /* 0: not computed */
  size_t n;
  bool made;
} node;

typedef struct eager {
  tn_graph *graph;
  const char *device; /* NULL: no device is named */
  tn_eager_session *session;
  node *nodes;
  size_t n;
  bool cannot; /* the graph has something that is not a single operation */
  tn_error *err;
} eager;

static node *node_of(eager *e, tn_operation *op)
{
  for (size_t i = 0; i < e->n; i++)
    if (e->nodes[i].op == op) return &e->nodes[i];
  if (e->n == MOST_NODES) return NULL;
  node *found = &e->nodes[e->n++];
  *found = (node){ .op = op, .n = tn_operation_n_outputs(op) };
  found->outputs = oracle_alloc((found->n + 1) * sizeof(*found->outputs));
  memset(found->outputs, 0, (found->n + 1) * sizeof(*found->outputs));
  return found;
}

/* ---- attributes ---- */

/* Items of a list, in memory owned by lists[]. */
static bool read_list(const tn_operation *op, tn_eager_attr *a, void **items, void **sizes)
{
  int32_t kind = a->kind & ~TN_ATTR_LIST;
  size_t n = a->n;
  *items = oracle_alloc((n + 1) * sizeof(int64_t));
  *sizes = oracle_alloc((n + 1) * sizeof(size_t));
  a->at = *items;
  for (size_t i = 0; i < n; i++) {
    tn_attr_value v = { .struct_size = TN_ATTR_VALUE_SIZE };
    if (tn_operation_attr_value(op, a->name, i, &v, NULL) != TN_OK || v.n_attrs > 0) return false;
    switch (kind) {
    case TN_ATTR_INT: ((int64_t *)*items)[i] = v.i; break;
    case TN_ATTR_FLOAT: ((float *)*items)[i] = v.f; break;
    case TN_ATTR_BOOL: ((tn_bool *)*items)[i] = v.b; break;
    case TN_ATTR_TYPE: ((tn_dtype *)*items)[i] = v.type; break;
    case TN_ATTR_STRING: ((size_t *)*sizes)[i] = v.length; /* fall through */
    case TN_ATTR_FUNC: ((const char **)*items)[i] = v.text; break;
    case TN_ATTR_SHAPE:
      ((const int64_t **)*items)[i] = v.dims;
      ((int32_t *)*sizes)[i] = v.rank;
      break;
    default: return false;
    }
  }
  if (kind == TN_ATTR_STRING || kind == TN_ATTR_SHAPE) a->sizes = *sizes;
  return true;
}

static bool read_attr(const tn_operation *op, const char *name, tn_eager_attr *a, void **items, void **sizes)
{
  tn_attr_value v = { .struct_size = TN_ATTR_VALUE_SIZE };
  if (tn_operation_attr_value(op, name, 0, &v, NULL) != TN_OK) return false;
  *a = (tn_eager_attr){ .name = name, .kind = v.kind };
  if (v.kind == TN_ATTR_LIST) a->kind = TN_ATTR_LIST | TN_ATTR_INT; /* an empty list of unknown kind */
  if (v.kind & TN_ATTR_LIST) {
    a->n = v.n;
    return read_list(op, a, items, sizes);
  }
  switch (v.kind) {
  case TN_ATTR_INT: a->i = v.i; break;
  case TN_ATTR_FLOAT: a->f = v.f; break;
  case TN_ATTR_BOOL: a->i = v.b; break;
  case TN_ATTR_TYPE: a->i = v.type; break;
  case TN_ATTR_STRING: a->n = v.length; /* fall through */
  case TN_ATTR_FUNC: a->at = v.text; break;
  case TN_ATTR_SHAPE: a->at = v.dims, a->rank = v.rank; break;
  case TN_ATTR_TENSOR: a->at = v.tensor; break;
  default: return false;
  }
  return v.n_attrs == 0;
}

/* ---- running ---- */

static bool make(eager *e, tn_operation *op);

static tn_status run(eager *e, node *to, const tn_eager_attr *attrs, size_t n_attrs, const tn_eager_handle *inputs,
                     size_t n)
{
  const char *type = tn_operation_type(to->op);
  tn_eager_op *op;
  if (e->device == NULL)
    return tn_eager_call(e->session, type, attrs, n_attrs, inputs, n, to->outputs, to->n, NULL, e->err);
  tn_status st = tn_eager_op_create(e->session, type, e->device, attrs, n_attrs, &op, e->err);
  if (st != TN_OK) return st;
  st = tn_eager_op_call(op, inputs, n, to->outputs, to->n, NULL, e->err);
  tn_eager_op_destroy(op);
  return st;
}

static bool call(eager *e, node *to, const tn_eager_attr *attrs, size_t n_attrs)
{
  size_t n = tn_operation_n_inputs(to->op);
  tn_eager_handle *inputs = oracle_alloc((n + 1) * sizeof(*inputs));
  bool ok = true;
  for (size_t i = 0; ok && i < n; i++) {
    tn_output from = tn_operation_input(to->op, i);
    ok = make(e, from.op);
    if (ok) inputs[i] = node_of(e, from.op)->outputs[from.index];
  }
  ok = ok && run(e, to, attrs, n_attrs, inputs, n) == TN_OK;
  free(inputs);
  return ok;
}

static bool make_node(eager *e, node *to)
{
  size_t n_attrs = tn_operation_n_attrs(to->op), n = 0;
  tn_eager_attr *attrs = oracle_alloc((n_attrs + 1) * sizeof(*attrs));
  void **lists = oracle_alloc((2 * n_attrs + 1) * sizeof(*lists));
  memset(lists, 0, (2 * n_attrs + 1) * sizeof(*lists));
  for (size_t i = 0; i < n_attrs && !e->cannot; i++) {
    const char *name = tn_operation_attr_name(to->op, i);
    if (name[0] == '_') continue;
    if (read_attr(to->op, name, &attrs[n], &lists[2 * i], &lists[2 * i + 1])) n++;
    else e->cannot = true;
  }
  bool ok = !e->cannot && call(e, to, attrs, n);
  for (size_t i = 0; i < 2 * n_attrs; i++) free(lists[i]);
  free(lists);
  free(attrs);
  return ok;
}

static bool make(eager *e, tn_operation *op)
{
  node *to = node_of(e, op);
  const tn_op_schema *schema = tn_operation_schema(op);
  if (to == NULL || schema == NULL || (tn_op_schema_traits(schema) & CONTROL_FLOW)) e->cannot = true;
  for (size_t i = 0; !e->cannot && i < tn_operation_n_inputs(op); i++)
    if (tn_operation_input_dtype(op, i) > TN_DTYPE_REF) e->cannot = true;
  if (e->cannot) return false;
  if (to->made) return true;
  if (!make_node(e, to)) return false;
  to->made = true;
  return true;
}

/* ---- one step ---- */

static tn_output endpoint(eager *e, const char *name)
{
  const char *colon = strrchr(name, ':');
  tn_output o = { tn_graph_find(e->graph, name), 0 };
  if (o.op != NULL || colon == NULL) return o;
  char *text = oracle_format("%.*s", (int)(colon - name), name);
  o = (tn_output){ tn_graph_find(e->graph, text), (int32_t)strtol(colon + 1, NULL, 10) };
  free(text);
  return o;
}

static bool feed(eager *e, const oracle_step *step)
{
  for (size_t i = 0; i < step->n_feeds; i++) {
    tn_output o = endpoint(e, step->feed_names[i]);
    node *to = o.op == NULL ? NULL : node_of(e, o.op);
    if (to == NULL || to->n != 1) { /* only some outputs are fed, so it would have to run and not run */
      e->cannot = true;
      return false;
    }
    if (tn_eager_from_tensor(e->session, step->feeds[i], &to->outputs[o.index], e->err) != TN_OK) return false;
    to->made = true;
  }
  return true;
}

static bool fetch(eager *e, oracle_step *step)
{
  for (size_t i = 0; i < step->n_fetches; i++) {
    tn_output o = endpoint(e, step->fetch_names[i]);
    if (o.op == NULL) e->cannot = true;
    if (o.op == NULL || !make(e, o.op)) return false;
    tn_eager_handle h = node_of(e, o.op)->outputs[o.index];
    if (e->device != NULL && tn_eager_copy_to_device(e->session, h, "/device:CPU:0", &h, e->err) != TN_OK) return false;
    if (tn_eager_tensor(e->session, h, &step->fetched[i], e->err) != TN_OK) return false;
  }
  return true;
}

static bool open_eager(const oracle_config *config, eager *e)
{
  tn_eager_options options;
  tn_session_options *session_options = NULL;
  tn_eager_options_init(&options);
  options.strategy = TN_EAGER_ON_SAFE_POINTS;
  bool ok = tn_session_options_create(&session_options, e->err) == TN_OK &&
            tn_session_options_set_target(session_options, config->target, e->err) == TN_OK &&
            tn_session_options_set_int(session_options, "level", config->level, e->err) == TN_OK &&
            tn_session_options_parse(session_options, "allow_soft_placement", "true", e->err) == TN_OK;
  options.session = session_options;
  ok = ok && tn_eager_session_create(&options, &e->session, e->err) == TN_OK;
  tn_session_options_destroy(session_options);
  e->cannot = !ok && tn_error_code(e->err) == TN_UNIMPLEMENTED; /* the runtime has no eager sessions */
  return ok && (tn_graph_n_functions(e->graph) == 0 || tn_eager_add_functions(e->session, e->graph, e->err) == TN_OK);
}

bool oracle_step_eager(const oracle_config *config, tn_graph *graph, oracle_step *step, bool *ran,
                       oracle_result *result)
{
  tn_error err = TN_ERROR_INIT;
  eager e = { .graph = graph, .device = config->eager_device, .err = &err };
  e.nodes = oracle_alloc(MOST_NODES * sizeof(*e.nodes));
  oracle_step_drop(step);
  *ran = open_eager(config, &e) && feed(&e, step) && fetch(&e, step);
  bool ok = *ran || e.cannot || oracle_fail_status(result, &err, "eager");
  for (size_t i = 0; i < e.n; i++) free(e.nodes[i].outputs);
  free(e.nodes);
  tn_eager_session_destroy(e.session);
  tn_error_clear(&err);
  return ok;
}
