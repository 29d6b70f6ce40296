/* SPDX-License-Identifier: Apache-2.0 */
/* Calls in the main body that are replaced by the nodes of their functions. The library makes each body as a graph of
 * its own, whose nodes are then copied into the main body. */
#include <core/model/freeze/freeze.h>

#include <string.h>

/* The body of the function that an operation calls, as PartitionedCall does or because its op is the function; NULL: it
 * calls none. */
static tn__freeze_body *called_body(const tn__freeze *fz, const tn_operation *op)
{
  const char *name = tn_operation_type(op);
  bool calls = tn__freeze_op_of(tn__slice_of(name))->kind == TN__FREEZE_CALL;
  if (calls && tn_operation_attr_func(op, "f", &name, NULL) != TN_OK) return NULL;
  if (!calls && tn_op_schema_find(name) != NULL) return NULL;
  return tn__map_get(&fz->bodies, name, strlen(name));
}

bool tn__freeze_is_inlined(const tn__freeze *fz, const tn_operation *op)
{
  const tn__freeze_body *body = fz->inlines ? called_body(fz, op) : NULL;
  return body != NULL && !body->has_unknown;
}

bool tn__freeze_has_flow(const tn_graph *graph)
{
  bool found = false;
  for (size_t i = 0; !found && i < tn_graph_n_operations(graph); i++)
    found = (tn__operation_traits(tn_graph_operation(graph, i)) & (TN_TRAIT_SWITCH | TN_TRAIT_ENTER)) != 0;
  return found;
}

const char *tn__freeze_inner_name(tn__freeze *fz, const tn__freeze_scope *scope, const char *name)
{
  if (scope == NULL) return name;
  const char *path = tn__freeze_join(fz, tn__slice_of(scope->name), tn__slice_of("/"));
  const char *full = path == NULL ? NULL : tn__freeze_join(fz, tn__slice_of(path), tn__slice_of(name));
  return full == NULL ? NULL : tn__freeze_unique(fz, fz->main, full);
}

bool tn__freeze_argument(const tn__freeze_scope *scope, tn_output output, uint32_t *out)
{
  uint32_t id = tn__operation_id(output.op);
  if (scope == NULL || id >= scope->body->n_arguments) return false; /* arguments are the first operations */
  *out = scope->first_input[id] + (uint32_t)output.index;
  return true;
}

static bool is_impure_call(const tn__freeze_body *body, const tn__freeze_node *node)
{
  for (uint32_t i = 0; i < node->n_calls; i++) {
    const tn__freeze_body *callee = body->calls[node->first_call + i].body;
    if (callee == NULL || callee->impure) return true;
  }
  return false;
}

/* A node that is no call is a target because it has an effect, or because a control output names it. */
bool tn__freeze_is_effect(const tn__freeze_scope *scope, const tn_operation *op)
{
  const char *name = tn__operation_own_name(op);
  size_t found = (size_t)tn__map_get(&scope->body->names, name, strlen(name));
  if (!scope->effects || found == 0) return scope->effects;
  const tn__freeze_node *node = scope->body->nodes[found - 1];
  if (tn__freeze_is_variable(node->kind) || tn__freeze_reads(node->kind)) return false;
  return !tn__freeze_calls(node->kind) || is_impure_call(scope->body, node);
}

/* ---- scopes ---- */

static tn_status refuse_recursion(tn__freeze *fz, const tn__freeze_scope *parent, const tn__freeze_body *body)
{
  for (const tn__freeze_scope *s = parent; s != NULL; s = s->parent)
    if (s->body == body)
      return tn_error_set(
          fz->err, TN_UNIMPLEMENTED,
          "function '%.200s', which node '%.300s' calls, calls itself: it cannot be put into the graph; "
          "freeze without TN_FREEZE_INLINE",
          tn_function_name(body->function), s->name);
  return TN_OK;
}

static tn_status index_arguments(tn__freeze *fz, tn__freeze_scope *s)
{
  const tn__function_instance *f = &s->f;
  if (f->n_inputs != tn_operation_n_inputs(s->call) || f->n_outputs != tn_operation_n_outputs(s->call))
    return tn_error_set(fz->err, TN_INVALID_ARGUMENT,
                        "function '%.200s' takes %zu and returns %zu tensors, but node '%.300s' passes %zu and has %zu",
                        f->name, f->n_inputs, f->n_outputs, tn_operation_name(s->call), tn_operation_n_inputs(s->call),
                        tn_operation_n_outputs(s->call));
  s->first_input = tn__arena_array(&fz->arena, s->body->n_arguments, sizeof *s->first_input);
  s->arguments = tn__arena_array(&fz->arena, f->n_inputs, sizeof *s->arguments);
  if (s->first_input == NULL || s->arguments == NULL) return tn__freeze_no_memory(fz);
  for (size_t i = 0; i < f->n_inputs; i++)
    if (f->inputs[i].index == 0) s->first_input[tn__operation_id(f->inputs[i].op)] = (uint32_t)i;
  return TN_OK;
}

static tn_status make(tn__freeze *fz, tn__freeze_scope *s)
{
  const tn__freeze_scope *parent = s->parent;
  s->name = tn__freeze_inner_name(fz, parent, tn_operation_name(s->call));
  if (s->name == NULL || !tn__map_put(&fz->taken, s->name, strlen(s->name), s, NULL)) return tn__freeze_no_memory(fz);
  s->body = called_body(fz, s->call);
  tn_status st = refuse_recursion(fz, parent, s->body);
  if (st == TN_OK) st = tn__freeze_count(fz, s->body->n_nodes);
  if (st == TN_OK) st = tn__function_instantiate(s->call, 0, &s->f, fz->err);
  if (st == TN_OK) st = index_arguments(fz, s);
  if (st != TN_OK) return st;
  s->device = tn__slice_of(tn_operation_device(s->call));
  if (s->device.size == 0 && parent != NULL) s->device = parent->device;
  s->effects = s->body->impure;
  s->gated = tn_operation_n_control_inputs(s->call) > 0;
  s->has_flow = tn__freeze_has_flow(s->f.graph);
  s->anchored = parent != NULL ? parent->anchored || parent->has_flow : fz->has_flow;
  return TN_OK;
}

tn_status tn__freeze_scope_get(tn__freeze *fz, tn__map *scopes, tn__freeze_scope *parent, tn_operation *call,
                               tn__freeze_scope **out)
{
  *out = tn__map_get(scopes, (const char *)&call, sizeof call);
  if (*out != NULL) return TN_OK;
  tn__freeze_scope *s = tn__arena_zalloc(&fz->arena, sizeof *s);
  if (s == NULL) return tn__freeze_no_memory(fz);
  *s = (tn__freeze_scope){ .parent = parent, .next = fz->scopes, .call = call };
  fz->scopes = s;
  if (!tn__map_put(scopes, (const char *)&s->call, sizeof(tn_operation *), s, NULL)) return tn__freeze_no_memory(fz);
  *out = s;
  return make(fz, s);
}

/* A body graph holds the graph of its call, so the order does not matter. */
void tn__freeze_scopes_fini(tn__freeze *fz)
{
  for (tn__freeze_scope *s = fz->scopes; s != NULL; s = s->next) tn__function_instance_fini(&s->f);
  fz->scopes = NULL;
}
