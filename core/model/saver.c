/* SPDX-License-Identifier: Apache-2.0 */
/* What the restore op of a saver does: which variable it restores from which key.
 *
 * TensorFlow 1's savers are nodes of the graph: the restore op has control inputs, at last Assign nodes, whose values
 * come from RestoreV2 (or RestoreSlice, version 1). TensorFlow 2's are a call of one function (saver_function.c).
 * Savers that do more, such as importing tables, are not usual: their graph is run. */
#include <core/model/model.h>

#include <string.h>

/* The state of a walk over control inputs, without recursion. */
typedef struct walk {
  tn__saver *saver;
  tn_operation *prefix; /* the node that is fed with the checkpoint's prefix */
  tn_operation **stack; /* owned */
  size_t n, room;
  tn__map seen;         /* operations by name */
  bool usual;
} walk;

static bool is_type(const tn_operation *op, const char *type) { return strcmp(tn_operation_type(op), type) == 0; }

/* Skips identities. */
static tn_output source_of(tn_output o)
{
  while (o.op != NULL && is_type(o.op, "Identity") && tn_operation_n_inputs(o.op) == 1) o = tn_operation_input(o.op, 0);
  return o;
}

/* Text i of the constant that input k of a node reads; false: it is no such constant. */
static bool constant_text(const tn_operation *op, size_t k, int64_t i, tn__slice *out)
{
  tn_tensor *value;
  const tn_operation *c = source_of(tn_operation_input(op, k)).op;
  if (c == NULL || !is_type(c, "Const") || tn_operation_attr_tensor(c, "value", &value, NULL) != TN_OK) return false;
  return tn_tensor_get_string(value, i, &out->data, &out->size, NULL) == TN_OK;
}

/* Whether output i of a node is a tensor of the checkpoint that the saver reads. */
static bool is_restored(const walk *w, tn_output o, tn__restored *item)
{
  if (o.op == NULL || source_of(tn_operation_input(o.op, 0)).op != w->prefix) return false;
  if (is_type(o.op, "RestoreV2"))
    return constant_text(o.op, 1, o.index, &item->key) && constant_text(o.op, 2, o.index, &item->spec);
  if (is_type(o.op, "RestoreSlice"))
    return constant_text(o.op, 1, 0, &item->key) && constant_text(o.op, 2, 0, &item->spec);
  return is_type(o.op, "Restore") && constant_text(o.op, 1, 0, &item->key);
}

/* Adds what an assignment does. */
static tn_status add_assign(walk *w, const tn_operation *assign, tn_error *err)
{
  tn__restored item = { .variable = tn_operation_input(assign, 0).op, .spec = { "", 0 } };
  w->usual = item.variable != NULL && tn__is_variable(item.variable) &&
             is_restored(w, source_of(tn_operation_input(assign, 1)), &item);
  return w->usual ? tn__saver_add(w->saver, item, err) : TN_OK;
}

static tn_status push(walk *w, tn_operation *op, tn_error *err)
{
  const char *name = tn_operation_name(op);
  if (tn__map_get(&w->seen, name, strlen(name)) != NULL) return TN_OK;
  if (!tn__map_put(&w->seen, name, strlen(name), op, NULL) ||
      !tn__grow((void **)&w->stack, &w->room, w->n + 1, sizeof *w->stack))
    return tn__no_memory(err, "walk over a saver", w->n);
  w->stack[w->n++] = op;
  return TN_OK;
}

/* Visits one operation that the restore op waits for. */
static tn_status visit(walk *w, tn_operation *op, tn_error *err)
{
  tn_status st = TN_OK;
  if (is_type(op, "Assign") || is_type(op, "AssignVariableOp")) {
    if (tn_operation_n_control_inputs(op) > 0) w->usual = false;
    return w->usual ? add_assign(w, op, err) : TN_OK;
  }
  if (!is_type(op, "NoOp")) {
    w->usual = false;
    return TN_OK;
  }
  for (size_t i = 0; st == TN_OK && i < tn_operation_n_control_inputs(op); i++)
    st = push(w, tn_operation_control_input(op, i), err);
  return st;
}

static tn_status walk_graph(walk *w, tn_operation *restore, tn_error *err)
{
  tn_status st = push(w, restore, err);
  while (st == TN_OK && w->usual && w->n > 0) {
    tn_operation *op = w->stack[--w->n];
    st = visit(w, op, err);
  }
  tn__free(w->stack, w->room * sizeof *w->stack);
  tn__map_fini(&w->seen);
  return st;
}

static tn_status no_node(const tn_model *model, const char *what, const char *name, tn_error *err)
{
  return tn_error_set(err, TN_NOT_FOUND, "'%s': the saver's %s is '%s', but the graph has no such node", model->path,
                      what, name);
}

tn_status tn__saver_read(const tn_model *model, tn__saver *out, tn_error *err)
{
  const tn__metagraph *m = tn__model_meta(model);
  *out = (tn__saver){ .usual = false };
  tn_operation *restore = tn__node_of(model->graph, m->saver_restore);
  if (restore == NULL) return no_node(model, "restore op", m->saver_restore, err);
  walk w = { .saver = out, .prefix = tn__node_of(model->graph, m->saver_filename), .usual = true };
  if (w.prefix == NULL) return no_node(model, "file name tensor", m->saver_filename, err);
  tn_status st;
  if (is_type(restore, "StatefulPartitionedCall") || is_type(restore, "PartitionedCall")) {
    st = tn__saver_read_function(model->graph, restore, out, &w.usual, err);
  } else {
    tn__map_init(&w.seen);
    st = walk_graph(&w, restore, err);
  }
  out->usual = st == TN_OK && w.usual;
  if (st != TN_OK) tn__saver_fini(out);
  return st;
}
