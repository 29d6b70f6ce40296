/* SPDX-License-Identifier: Apache-2.0 */
/* Rewrites supplied by families of ops (<tenon/rewrite.h>): the functions by which they read and change the ir, and the
 * walk that offers them nodes. New operations are added to ir->extra, a graph of the plan's own; their inputs refer to
 * the program's graph. */
#include <core/compile/ir/passes.h>
#include <core/graph/graph_structs.h>
#include <string.h>

#define MAX_TURNS 16 /* maximum walks of one pass over the nodes, in case rewrites undo each other */

struct tn_rewriter {
  tn__ir *ir;      /* borrowed */
  uint32_t before; /* new nodes are added before this one */
  size_t changes;  /* replaced values so far */
};

/* ---- reading ---- */

const tn_operation *tn_rewrite_operation(const tn_rewriter *rw, uint32_t node) { return rw->ir->nodes[node].op; }

tn_bool tn_rewrite_is(const tn_rewriter *rw, uint32_t node, const char *op)
{
  return node != TN_NO_NODE && strcmp(tn_operation_type(rw->ir->nodes[node].op), op) == 0;
}

uint32_t tn_rewrite_n_inputs(const tn_rewriter *rw, uint32_t node) { return rw->ir->nodes[node].n_inputs; }

uint32_t tn_rewrite_input(const tn_rewriter *rw, uint32_t node, uint32_t i)
{
  return tn__ir_input(rw->ir, &rw->ir->nodes[node], i);
}

uint32_t tn_rewrite_output(const tn_rewriter *rw, uint32_t node, uint32_t i)
{
  return tn__ir_value_of(rw->ir, rw->ir->nodes[node].first_value + i);
}

uint32_t tn_rewrite_producer(const tn_rewriter *rw, uint32_t value, uint32_t *index)
{
  const tn__ir_value *v = &rw->ir->values[tn__ir_value_of(rw->ir, value)];
  if (index != NULL) *index = v->index;
  return v->kind == TN_VALUE_COMPUTED && tn__ir_is_free(&rw->ir->nodes[v->node]) ? v->node : TN_NO_NODE;
}

tn_bool tn_rewrite_cpu_only(const tn_rewriter *rw) { return rw->ir->spec->cpu_only; }

tn_dtype tn_rewrite_weights(const tn_rewriter *rw)
{
  return rw->ir->spec->weights != 0 ? rw->ir->spec->weights : TN_FLOAT;
}

uint32_t tn_rewrite_n_uses(const tn_rewriter *rw, uint32_t value)
{
  return rw->ir->values[tn__ir_value_of(rw->ir, value)].n_uses;
}

tn_bool tn_rewrite_is_constant(const tn_rewriter *rw, uint32_t value)
{
  return tn__ir_is_bare_constant(rw->ir, &rw->ir->values[tn__ir_value_of(rw->ir, value)]);
}

const tn_tensor *tn_rewrite_constant(const tn_rewriter *rw, uint32_t value)
{
  tn__ir_value *v = &rw->ir->values[tn__ir_value_of(rw->ir, value)];
  tn_tensor *elements;
  if (!tn__ir_is_bare_constant(rw->ir, v)) return NULL;
  if (v->recipe == NULL || !tn__tensor_is_outline(v->constant)) return v->constant;
  if (tn__ir_elements(rw->ir, value, &elements, NULL) != TN_OK) return NULL;
  tn_tensor_unref(v->constant);
  v->constant = elements; /* kept: the caller may use them as long as the ir exists */
  return elements;
}

tn_status tn_rewrite_elements(const tn_rewriter *rw, uint32_t value, tn_tensor **out, tn_error *err)
{
  *out = NULL;
  return tn_rewrite_is_constant(rw, value) ? tn__ir_elements(rw->ir, value, out, err) : TN_OK;
}

tn_dtype tn_rewrite_dtype(const tn_rewriter *rw, uint32_t value)
{
  return rw->ir->values[tn__ir_value_of(rw->ir, value)].dtype;
}

int32_t tn_rewrite_shape(const tn_rewriter *rw, uint32_t value, int64_t *dims)
{
  return tn__ir_shape(rw->ir, value, dims);
}

/* ---- changing ---- */

static tn_status ensure_extra(tn__ir *ir)
{
  return ir->made.extra != NULL ? TN_OK : tn_graph_create(&ir->made.extra, ir->err);
}

tn_operation_builder *tn_rewrite_begin(tn_rewriter *rw, const char *op, uint32_t like)
{
  tn__ir *ir = rw->ir;
  if (ensure_extra(ir) != TN_OK) return NULL;
  const tn_operation *from = ir->nodes[like].op;
  tn__text name;
  tn__text_init(&name, SIZE_MAX);
  tn__text_puts(&name, tn_operation_name(from));
  if (tn_graph_find(ir->made.extra, tn__text_get(&name)) != NULL)
    tn__text_printf(&name, TN__MADE_NAME "%u", (unsigned)++ir->made.n_extra);
  tn_operation_builder *b = NULL;
  if (!name.failed) b = tn_operation_begin(ir->made.extra, op, tn__text_get(&name), TN__BUILD_FOREIGN_INPUTS);
  tn__text_fini(&name);
  if (b != NULL) tn_operation_set_device(b, tn_operation_device(from));
  return b;
}

/* Without memory finishing the operation fails: an attribute that is left out could have a default. */
static void copy_strings(tn_operation_builder *b, const tn_operation *from, const char *name)
{
  const char *text;
  size_t n = 0, size;
  if (tn_operation_attr_string_at(from, name, 0, &text, &size, &n, NULL) != TN_OK) return;
  const void **items = tn__alloc_array(n + 1, sizeof *items);
  size_t *sizes = tn__alloc_array(n + 1, sizeof *sizes);
  for (size_t i = 0; items != NULL && sizes != NULL && i < n; i++) {
    tn_operation_attr_string_at(from, name, i, &text, &sizes[i], NULL, NULL);
    items[i] = text;
  }
  if (items != NULL && sizes != NULL) tn_operation_set_strings(b, name, items, sizes, n);
  else tn__no_memory(&b->error, "operation builder", n * sizeof *items);
  tn__free(items, (n + 1) * sizeof *items);
  tn__free(sizes, (n + 1) * sizeof *sizes);
}

static void copy_attr(tn_operation_builder *b, const tn_operation *from, const char *name)
{
  const int64_t *items;
  const char *text;
  int64_t i;
  size_t n;
  float f;
  tn_bool t;
  tn_dtype type;
  switch (tn_operation_attr_kind(from, name)) {
  case TN_ATTR_INT:
    if (tn_operation_attr_int(from, name, &i, NULL) == TN_OK) tn_operation_set_int(b, name, i);
    break;
  case TN_ATTR_FLOAT:
    if (tn_operation_attr_float(from, name, &f, NULL) == TN_OK) tn_operation_set_float(b, name, f);
    break;
  case TN_ATTR_BOOL:
    if (tn_operation_attr_bool(from, name, &t, NULL) == TN_OK) tn_operation_set_bool(b, name, t);
    break;
  case TN_ATTR_TYPE:
    if (tn_operation_attr_type(from, name, &type, NULL) == TN_OK) tn_operation_set_type(b, name, type);
    break;
  case TN_ATTR_STRING:
    if (tn_operation_attr_string(from, name, &text, &n, NULL) == TN_OK) tn_operation_set_string(b, name, text, n);
    break;
  case TN_ATTR_LIST | TN_ATTR_INT:
    if (tn_operation_attr_ints(from, name, &items, &n, NULL) == TN_OK) tn_operation_set_ints(b, name, items, n);
    break;
  case TN_ATTR_LIST | TN_ATTR_STRING: copy_strings(b, from, name); break;
  default: break;
  }
}

void tn_rewrite_copy_attrs(tn_rewriter *rw, tn_operation_builder *b, uint32_t node, const char *names)
{
  char name[64];
  while (b != NULL && *names != 0) {
    size_t n = strcspn(names, " ");
    if (n > 0 && n < sizeof name) {
      memcpy(name, names, n);
      name[n] = 0;
      copy_attr(b, rw->ir->nodes[node].op, name);
    }
    names += n + strspn(names + n, " ");
  }
}

/* Infers the shapes of the inputs in their own graphs first, so that inference of the new operation finds them. */
static tn_status add_inputs(tn__ir *ir, tn_operation_builder *b, const uint32_t *inputs, uint32_t n,
                            uint32_t list_first)
{
  tn_output *outputs = tn__alloc_array((size_t)n + 1, sizeof *outputs);
  if (outputs == NULL) return tn__ir_no_memory(ir);
  for (uint32_t i = 0; i < n; i++) {
    int32_t rank;
    outputs[i] = ir->values[tn__ir_value_of(ir, inputs[i])].output;
    (void)tn_output_shape(outputs[i], NULL, 0, &rank, NULL);
    if (i < list_first) tn_operation_add_input(b, outputs[i]);
  }
  if (list_first <= n) tn_operation_add_input_list(b, outputs + list_first, n - list_first);
  tn__free(outputs, ((size_t)n + 1) * sizeof *outputs);
  return TN_OK;
}

tn_status tn_rewrite_finish(tn_rewriter *rw, tn_operation_builder *b, const uint32_t *inputs, uint32_t n,
                            uint32_t list_first, uint32_t *node, tn_error *err)
{
  tn__ir *ir = rw->ir;
  *node = TN_NO_NODE;
  if (b == NULL) return tn__no_memory(err, "plan", 0);
  tn_status st = add_inputs(ir, b, inputs, n, list_first);
  if (st != TN_OK) {
    tn_operation_abandon(b);
    return st;
  }
  tn_operation *op;
  st = tn_operation_finish(b, &op, err);
  return st == TN_OK ? tn__ir_add_node(ir, op, inputs, n, rw->before, node) : st;
}

tn_status tn_rewrite_compute(tn_rewriter *rw, tn_operation_builder *b, const uint32_t *inputs, uint32_t n,
                             uint32_t *value, tn_error *err)
{
  uint32_t node;
  size_t folded = 0;
  *value = TN_NO_NODE;
  tn_status st = tn_rewrite_finish(rw, b, inputs, n, TN_NO_LIST, &node, err);
  if (st != TN_OK || rw->ir->nodes[node].n_outputs == 0) return st;
  st = tn__ir_compute_node(rw->ir, node, &folded);
  if (st == TN_OK && folded > 0) *value = tn__ir_value_of(rw->ir, rw->ir->nodes[node].first_value);
  return st;
}

tn_status tn_rewrite_add_constant(tn_rewriter *rw, tn_tensor *tensor, uint32_t *value, tn_error *err)
{
  tn__ir *ir = rw->ir;
  char name[64];
  *value = TN_NO_NODE;
  tn_status st = ensure_extra(ir);
  if (st != TN_OK) return tn__no_memory(err, "plan", 0);
  do tn__snprintf(name, sizeof name, "constant_%u", (unsigned)++ir->made.n_extra);
  while (tn_graph_find(ir->made.extra, name) != NULL);
  tn_output output;
  st = tn__graph_add_constant(ir->made.extra, name, tensor, &output, err);
  return st == TN_OK ? tn__ir_add_constant(ir, tensor, TN__NONE, output, value) : st;
}

void tn_rewrite_place(tn_rewriter *rw, uint32_t node) { rw->before = node; }

void tn_rewrite_replace(tn_rewriter *rw, uint32_t from, uint32_t to)
{
  if (tn__ir_value_of(rw->ir, from) == tn__ir_value_of(rw->ir, to)) return;
  tn__ir_replace(rw->ir, from, to);
  rw->changes++;
}

/* ---- the walk ---- */

/* Counts one application of a rewrite for the report of the current pass. */
static tn_status count(tn__ir *ir, const tn_rewrite_def *def)
{
  size_t i = ir->notes.passes[ir->notes.n_passes - 1].first_rewrite;
  while (i < ir->notes.n_rewrites && strcmp(ir->notes.rewrites[i].name, def->name) != 0) i++;
  if (i == ir->notes.n_rewrites) {
    if (!tn__grow((void **)&ir->notes.rewrites, &ir->notes.rewrite_room, i + 1, sizeof *ir->notes.rewrites))
      return tn__ir_no_memory(ir);
    ir->notes.rewrites[ir->notes.n_rewrites++] = (tn__rewrite_note){ .name = def->name };
  }
  ir->notes.rewrites[i].count++;
  return TN_OK;
}

/* A node that has no kernel is left unchanged, so that the error is reported. */
static bool could_run(const tn_operation *op)
{
  const tn_kernel_def *def;
  size_t n;
  return tn__kernels_find(op, TN__HOST_DEVICE, &def, 1, &n, NULL) == TN_OK;
}

/* Offers a node to the rewrites of its op until one changes it. A rewrite that fails is skipped; only lack of memory
 * ends the pass. New nodes that a rewrite leaves unused are removed by the next sweep, which also takes back their uses
 * of inputs. */
static tn_status offer(tn_rewriter *rw, uint32_t id, const char *pass)
{
  const tn_op_schema *schema = tn_operation_schema(rw->ir->nodes[id].op);
  if (tn__schema_rewrite(schema, 0) == NULL || !could_run(rw->ir->nodes[id].op)) return TN_OK;
  const tn_rewrite_def *def;
  for (size_t i = 0; (def = tn__schema_rewrite(schema, i)) != NULL; i++) {
    if (strcmp(def->pass, pass) != 0) continue;
    tn_error why = TN_ERROR_INIT;
    size_t before = rw->changes;
    rw->before = id;
    tn_status st = def->apply(rw, id, &why);
    if (st == TN_RESOURCE_EXHAUSTED && tn_error_code(&why) == TN_OK)
      st = tn__ir_no_memory(rw->ir); /* the rewrite returned the code without a text */
    else if (st == TN_RESOURCE_EXHAUSTED) tn_error_copy(rw->ir->err, &why);
    else if (st != TN_OK)
      tn_log(TN_LOG_DEBUG, "rewrite '%s' of node '%s': %s", def->name, tn_operation_name(rw->ir->nodes[id].op),
             tn_error_message(&why));
    tn_error_clear(&why);
    if (st == TN_RESOURCE_EXHAUSTED) return st;
    if (rw->changes != before) return count(rw->ir, def); /* the node has been replaced */
  }
  return TN_OK;
}

#define NODES_BETWEEN_CHECKS 64 /* for cancellation and the time limit */

tn_status tn__rewrites_run(tn__ir *ir, const char *pass, bool from_end, size_t *changes)
{
  tn_rewriter rw = { .ir = ir };
  size_t offered = 0;
  for (int turn = 0; turn < MAX_TURNS; turn++) {
    size_t before = rw.changes, nodes = ir->n_nodes;
    for (uint32_t id = from_end ? ir->last : ir->first; id != TN__NONE;) {
      uint32_t next = from_end ? ir->nodes[id].prev : ir->nodes[id].next;
      bool unread = from_end && !tn__ir_is_needed(ir, &ir->nodes[id]);
      if (!unread && tn__ir_is_free(&ir->nodes[id]) && tn_operation_schema(ir->nodes[id].op) != NULL) {
        tn_status st = ++offered % NODES_BETWEEN_CHECKS == 0 ? tn__prepare_check(ir->nodes[id].op, ir->err) : TN_OK;
        if (st == TN_OK) st = offer(&rw, id, pass);
        if (st != TN_OK) return st;
        unread = from_end && !tn__ir_is_needed(ir, &ir->nodes[id]);
      }
      if (unread) tn__ir_remove(ir, id);
      id = next;
    }
    if (rw.changes != before || ir->n_nodes != nodes) tn__ir_sweep(ir);
    if (rw.changes == before) break;
  }
  *changes += rw.changes;
  return TN_OK;
}
