/* SPDX-License-Identifier: Apache-2.0 */
/* Freezing a signature: the public call, and the new graph. Nodes and functions are written as a GraphDef, which is
 * imported. The values of variables and large constants are not written: their operations share the tensors. */
#include <core/model/freeze/freeze.h>

#include <string.h>

static tn_status check(const tn_session *session, uint32_t flags, const tn_graph *const *out, tn_error *err)
{
  if (session == NULL || out == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_model_freeze: %s is NULL", out == NULL ? "out" : "session");
  if ((flags & ~(uint32_t)TN_FREEZE_INLINE) != 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_model_freeze: unknown flags 0x%x", flags);
  if (tn_session_model(session) == NULL)
    return tn_error_set(
        err, TN_FAILED_PRECONDITION,
        "the session is not of a model, so it has no signature to freeze: make it with tn_model_session");
  return TN_OK;
}

static void begin(tn__freeze *fz, tn_session *session, uint32_t flags, tn_error *err)
{
  const tn_model *model = tn_session_model(session);
  *fz = (tn__freeze){ .session = session, .model = model, .graph = model->graph, .err = err };
  fz->inlines = (flags & TN_FREEZE_INLINE) != 0;
  fz->last_use = &fz->first_use;
  tn__arena_init(&fz->arena, 16384);
  tn__map_init(&fz->bodies);
  tn__map_init(&fz->uses);
  tn__map_init(&fz->taken);
}

static void end(tn__freeze *fz)
{
  for (tn__freeze_use *use = fz->first_use; use != NULL; use = use->next) tn__freeze_use_fini(use);
  for (size_t i = 0; i < fz->n_bodies; i++) tn__freeze_body_fini(fz->all[i]);
  if (fz->main != NULL) tn__freeze_body_fini(fz->main);
  tn__freeze_scopes_fini(fz);
  tn__free(fz->all, fz->body_room * sizeof(tn__freeze_body *));
  tn__free(fz->types, fz->type_room * sizeof *fz->types);
  tn__map_fini(&fz->bodies);
  tn__map_fini(&fz->uses);
  tn__map_fini(&fz->taken);
  tn__arena_fini(&fz->arena);
}

/* ---- what is written ---- */

/* Leaves out variables whose values nothing needs. */
static tn_status leave_out(tn__freeze *fz)
{
  const tn__freeze_body *body = fz->main;
  uint8_t *needed = tn__arena_array(&fz->arena, body->n_nodes, sizeof *needed);
  if (needed == NULL) return tn__freeze_no_memory(fz);
  for (uint32_t i = 0; i < body->n_nodes; i++) {
    const tn__freeze_node *node = body->nodes[i];
    bool reads = !fz->has_flow && (node->kind == TN__FREEZE_IS_SET || node->kind == TN__FREEZE_IS_SET_REFERENCE) &&
                 tn__freeze_converts(fz, fz->main_use, i);
    for (uint32_t k = reads ? node->n_data : 0; k < node->n_data + node->n_controls; k++)
      needed[body->edges[node->first + k].from] = 1;
  }
  for (size_t i = 0; i < body->n_results; i++) needed[body->results[i].from] = 1;
  for (size_t i = 0; i < body->n_nodes; i++)
    if (tn__freeze_is_variable(body->nodes[i]->kind) && !needed[i]) body->nodes[i]->left_out = true;
  return TN_OK;
}

/* A node on the stack of the walk, and the number of its next edge. */
typedef struct step {
  uint32_t node, next;
} step;

/* Adds a node and what it needs, inputs first. `stack` has room for all nodes. */
static void order_from(const tn__freeze_body *body, uint32_t root, uint8_t *seen, step *stack, uint32_t *order,
                       size_t *n)
{
  size_t depth = 0;
  if (seen[root]) return;
  seen[root] = 1;
  stack[depth++] = (step){ root, 0 };
  while (depth > 0) {
    step *at = &stack[depth - 1];
    const tn__freeze_node *node = body->nodes[at->node];
    if (at->next == node->n_data + node->n_controls) {
      order[(*n)++] = at->node;
      depth--;
      continue;
    }
    uint32_t from = body->edges[node->first + at->next++].from;
    if (!seen[from]) stack[depth++] = (step){ from, 0 };
    seen[from] = 1;
  }
}

/* Lists the nodes so that each one follows its inputs, except in loops. */
static tn_status order_nodes(tn__freeze *fz, uint32_t **order)
{
  const tn__freeze_body *body = fz->main;
  size_t n = 0;
  *order = tn__arena_array(&fz->arena, body->n_nodes, sizeof **order);
  uint8_t *seen = tn__arena_array(&fz->arena, body->n_nodes, sizeof *seen);
  step *stack = tn__alloc_array(body->n_nodes, sizeof *stack);
  tn_status st =
      *order == NULL || seen == NULL || (stack == NULL && body->n_nodes > 0) ? tn__freeze_no_memory(fz) : TN_OK;
  for (size_t i = 0; st == TN_OK && i < body->n_results; i++)
    order_from(body, body->results[i].from, seen, stack, *order, &n);
  for (uint32_t i = 0; st == TN_OK && i < body->n_nodes; i++) order_from(body, i, seen, stack, *order, &n);
  tn__free(stack, body->n_nodes * sizeof *stack);
  return st;
}

/* Whether an operation of the new graph is made with the tensor, not imported. */
static bool shares_tensor(const tn__freeze_node *node)
{
  return node->by_reference || (tn__freeze_is_variable(node->kind) && node->n_controls == 0);
}

static tn_status add_constants(tn__freeze *fz, tn_graph *graph)
{
  const tn__freeze_body *body = fz->main;
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < body->n_nodes; i++) {
    const tn__freeze_node *node = body->nodes[i];
    tn_output out;
    if (node->left_out || !shares_tensor(node)) continue;
    tn_tensor *value = tn_tensor_ref(node->value);
    if (node->by_reference) st = tn__operation_take_constant(node->operation, false, &value, fz->err);
    if (st == TN_OK) st = tn__graph_add_constant(graph, node->name.data, value, &out, fz->err);
    tn_tensor_unref(value);
  }
  return st;
}

static void put_graph(tn__freeze *fz, const uint32_t *order, tn__sink *s)
{
  const tn__freeze_body *body = fz->main;
  tn__slice versions = tn__field_text(tn__model_meta(fz->model)->graph, TN__FZ_G_VERSIONS);
  for (size_t i = 0; s->status == TN_OK && i < body->n_nodes; i++) {
    const tn__freeze_node *node = body->nodes[order[i]];
    if (!node->left_out && !shares_tensor(node)) tn__freeze_put_node(fz, s, TN__FZ_G_NODE, fz->main_use, order[i]);
  }
  tn__freeze_put_library(fz, s);
  if (versions.size > 0) tn__sink_bytes(s, TN__FZ_G_VERSIONS, versions);
}

static void release(void *user, void *data, size_t bytes)
{
  (void)data, (void)bytes;
  tn_free(user);
}

/* The graph keeps the bytes that were written, so they are not copied. */
static tn_status import(tn__freeze *fz, tn_graph *graph, tn__sink *s)
{
  tn_buffer *file;
  const tn__slice bytes = { s->data, s->used };
  const tn_buffer_desc desc = { .struct_size = sizeof desc,
                                .ownership = TN_BUFFER_IMMUTABLE,
                                .data = s->data,
                                .bytes = s->used,
                                .release = release,
                                .user = s->data };
  tn_status st = tn_buffer_create(&desc, &file, fz->err);
  if (st != TN_OK) return st;
  s->data = NULL;
  s->used = s->room = 0;
  st = tn__graph_import_slice(graph, bytes, file, "the frozen graph", NULL, fz->err);
  tn_buffer_unref(file);
  return st;
}

static tn_status make_graph(tn__freeze *fz, tn_graph **out)
{
  tn_graph *graph;
  uint32_t *order;
  tn__sink s = tn__sink_memory(fz->err);
  tn_status st = tn_graph_create(&graph, fz->err);
  if (st != TN_OK) return st;
  st = leave_out(fz);
  if (st == TN_OK) st = add_constants(fz, graph);
  if (st == TN_OK) st = order_nodes(fz, &order);
  if (st == TN_OK) put_graph(fz, order, &s);
  if (st == TN_OK) st = s.status;
  if (st == TN_OK) st = import(fz, graph, &s);
  tn__sink_fini(&s);
  if (st == TN_OK)
    *out = graph;
  else
    tn_graph_unref(graph);
  return st;
}

tn_status tn_model_freeze(tn_session *session, const char *signature, uint32_t flags, tn_graph **out, tn_error *err)
{
  tn__freeze fz;
  tn__error_reset(err);
  if (out != NULL) *out = NULL;
  tn_status st = check(session, flags, (const tn_graph *const *)out, err);
  if (st != TN_OK) return st;
  begin(&fz, session, flags, err);
  st = tn__model_signature(fz.model, signature, &fz.signature, err);
  if (st == TN_OK) st = tn__freeze_collect(&fz);
  if (st == TN_OK) st = tn__freeze_trace(&fz);
  if (st == TN_OK) st = tn__freeze_name_uses(&fz);
  if (st == TN_OK) st = make_graph(&fz, out);
  end(&fz);
  return st;
}
