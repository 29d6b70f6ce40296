/* SPDX-License-Identifier: Apache-2.0 */
/* tenon graph: selects nodes and edges, and sorts the nodes so that producers precede consumers. */
#include <stdlib.h>
#include <string.h>

#include <tools/picture/picture.h>

const char *picture_last_part(const char *name)
{
  const char *slash = strrchr(name, '/');
  return slash != NULL && slash[1] != '\0' ? slash + 1 : name;
}

static uint32_t traits_of(const tn_operation *op)
{
  const tn_op_schema *schema = tn_operation_schema(op);
  return schema != NULL ? tn_op_schema_traits(schema) : 0;
}

static uint8_t role_of(const tool_node *node)
{
  uint32_t traits = traits_of(node->op);
  if (tool_node_is_input(node)) return ROLE_INPUT;
  if (tool_node_is_output(node) || tool_node_is_target(node)) return ROLE_OUTPUT;
  if (traits & TN_TRAIT_CONSTANT) return ROLE_CONSTANT;
  if (traits & TN_TRAIT_STATEFUL) return ROLE_STATE;
  return ROLE_OP;
}

/* ---- edges ---- */

static void add_edge(picture *p, const tn_operation *from, uint32_t to, int32_t output)
{
  const tool_node *node = tool_model_node(&p->model, from);
  if (node == NULL) return; /* added to the graph after the scan */
  p->edges = tool_grow(p->edges, p->n_edges, &p->edges_room, sizeof(*p->edges));
  p->edges[p->n_edges++] = (picture_edge){ (uint32_t)(node - p->model.nodes), to, output };
}

static void read_edges(picture *p)
{
  for (uint32_t i = 0; i < p->n; i++) {
    const tn_operation *op = p->nodes[i].op;
    for (size_t j = 0; j < tn_operation_n_inputs(op); j++) {
      tn_output input = tn_operation_input(op, j);
      add_edge(p, input.op, i, input.index);
    }
    for (size_t j = 0; j < tn_operation_n_control_inputs(op); j++)
      add_edge(p, tn_operation_control_input(op, j), i, -1);
  }
}

/* Edge numbers by source node: edges[start[i]] to edges[start[i + 1] - 1]. */
typedef struct leaving {
  size_t *start;
  size_t *edges;
} leaving;

static leaving leaving_make(const picture *p)
{
  leaving l = { tool_alloc((size_t)p->n + 2, sizeof(size_t)), tool_alloc(p->n_edges, sizeof(size_t)) };
  for (size_t e = 0; e < p->n_edges; e++) l.start[p->edges[e].from + 2]++;
  for (uint32_t i = 0; i < p->n; i++) l.start[i + 2] += l.start[i + 1];
  for (size_t e = 0; e < p->n_edges; e++) l.edges[l.start[p->edges[e].from + 1]++] = e;
  return l;
}

static void leaving_free(leaving *l)
{
  free(l->start);
  free(l->edges);
}

/* ---- order ---- */

/* A min-heap of node numbers. */
static void heap_push(uint32_t *heap, uint32_t *n, uint32_t value)
{
  uint32_t i = (*n)++;
  for (; i > 0 && heap[(i - 1) / 2] > value; i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
  heap[i] = value;
}

static uint32_t heap_pop(uint32_t *heap, uint32_t *n)
{
  uint32_t top = heap[0], last = heap[--*n], i = 0;
  for (;;) {
    uint32_t child = 2 * i + 1;
    if (child >= *n) break;
    if (child + 1 < *n && heap[child + 1] < heap[child]) child++;
    if (heap[child] >= last) break;
    heap[i] = heap[child];
    i = child;
  }
  heap[i] = last;
  return top;
}

/* The start of a loop: a Merge proceeds with its first available input. */
static bool is_merge(const tn_operation *op)
{
  if (tn_operation_schema(op) == NULL) return strcmp(tn_operation_type(op), "Merge") == 0;
  return (traits_of(op) & TN_TRAIT_MERGE) != 0;
}

typedef struct ordering {
  uint32_t *waits; /* by node: number of unvisited inputs */
  uint32_t *heap;  /* nodes whose inputs are all visited */
  uint32_t *begun; /* merges with one visited input, also a heap */
  uint8_t *state;
  uint32_t n_ready, n_begun, next;
} ordering;

enum { WAITING = 0, BEGUN = 1, SEEN = 2 };

/* Picks, among the nodes whose inputs are all visited, the first one in file order. In a loop no node becomes ready:
 * then picks a merge with a visited input, or if there is none, the first remaining node in file order. */
static uint32_t next_node(ordering *o)
{
  if (o->n_ready > 0) return heap_pop(o->heap, &o->n_ready);
  while (o->n_begun > 0) {
    uint32_t node = heap_pop(o->begun, &o->n_begun);
    if (o->state[node] != SEEN) return node;
  }
  while (o->state[o->next] == SEEN) o->next++;
  return o->next;
}

static void put_in_order(picture *p, const leaving *l)
{
  ordering o = { tool_alloc(p->n, sizeof(uint32_t)), tool_alloc(p->n, sizeof(uint32_t)),
                 tool_alloc(p->n, sizeof(uint32_t)), tool_alloc(p->n, 1), 0, 0, 0 };
  for (size_t e = 0; e < p->n_edges; e++) o.waits[p->edges[e].to]++;
  for (uint32_t i = 0; i < p->n; i++)
    if (o.waits[i] == 0) heap_push(o.heap, &o.n_ready, i);
  for (uint32_t order = 0; order < p->n; order++) {
    uint32_t node = next_node(&o);
    o.state[node] = SEEN;
    p->nodes[node].order = order;
    for (size_t k = l->start[node]; k < l->start[node + 1]; k++) {
      uint32_t to = p->edges[l->edges[k]].to;
      if (o.state[to] == SEEN) continue;
      if (--o.waits[to] == 0) heap_push(o.heap, &o.n_ready, to);
      if (o.state[to] == BEGUN || p->edges[l->edges[k]].output < 0 || !is_merge(p->nodes[to].op)) continue;
      o.state[to] = BEGUN;
      heap_push(o.begun, &o.n_begun, to);
    }
  }
  free(o.waits);
  free(o.heap);
  free(o.begun);
  free(o.state);
}

void picture_list_wanted(picture *p)
{
  uint32_t *all = tool_alloc(p->n, sizeof(*all));
  for (uint32_t i = 0; i < p->n; i++) all[p->nodes[i].order] = i;
  p->by_order = tool_alloc(p->n, sizeof(*p->by_order));
  for (uint32_t i = 0; i < p->n; i++)
    if (p->nodes[all[i]].wanted) p->by_order[p->n_wanted++] = all[i];
  free(all);
}

/* ---- constants drawn as labels ---- */

/* A constant whose value is used, or an Identity that only forwards such a constant. */
static bool is_label(const picture *p, uint32_t i, const uint32_t *users)
{
  const tn_operation *op = p->nodes[i].op;
  if (users[i] == 0 || p->nodes[i].seed || p->nodes[i].role == ROLE_INPUT) return false;
  if (traits_of(op) & TN_TRAIT_CONSTANT) return true;
  if (!(traits_of(op) & TN_TRAIT_IDENTITY) || tn_operation_n_inputs(op) != 1 || tn_operation_n_control_inputs(op) > 0)
    return false;
  const tool_node *from = tool_model_node(&p->model, tn_operation_input(op, 0).op);
  return from != NULL && p->nodes[from - p->model.nodes].label;
}

static void find_labels(picture *p)
{
  uint32_t *users = tool_alloc(p->n, sizeof(*users)), *all = tool_alloc(p->n, sizeof(*all));
  for (size_t e = 0; e < p->n_edges; e++)
    if (p->edges[e].output >= 0) users[p->edges[e].from]++;
  for (uint32_t i = 0; i < p->n; i++) all[p->nodes[i].order] = i;
  for (uint32_t i = 0; i < p->n && !p->options->constants; i++) p->nodes[all[i]].label = is_label(p, all[i], users);
  free(users);
  free(all);
}

/* ---- selected nodes ---- */

static tn_status no_such_name(const picture *p, tn_error *err)
{
  const char *name = p->options->around;
  tool_near near;
  tool_text text = { 0 };
  tool_near_init(&near, name);
  for (uint32_t i = 0; i < p->n; i++) tool_near_offer(&near, p->nodes[i].name);
  tool_text_printf(&text, "around '%s': the model has no node or name scope with this name", name);
  tool_near_text(&near, &text);
  tn_status status = tn_error_set(err, TN_NOT_FOUND, "%s", text.data);
  tool_text_fini(&text);
  return status;
}

/* A node takes precedence over a scope of the same name; "scope/" selects the scope. */
static tn_status find_seeds(picture *p, tn_error *err)
{
  const char *name = p->options->around;
  tn_operation *op = NULL;
  size_t length = strlen(name);
  if (length == 0) return tn_error_set(err, TN_INVALID_ARGUMENT, "around: the name is empty");
  if (name[length - 1] != '/' && tool_find_node(p->model.graph, "around", name, &op, NULL) == TN_OK) {
    p->nodes[tool_model_node(&p->model, op) - p->model.nodes].seed = true;
    return TN_OK;
  }
  while (length > 1 && name[length - 1] == '/') length--;
  for (uint32_t i = 0; i < p->n; i++)
    if (strncmp(p->nodes[i].name, name, length) == 0 && p->nodes[i].name[length] == '/') {
      p->around_scope = (uint32_t)length;
      p->nodes[i].wanted = true;
    }
  return p->around_scope > 0 ? TN_OK : no_such_name(p, err);
}

/* Whether an edge can be followed: labels are not destinations. */
static bool is_drawn_edge(const picture *p, const picture_edge *edge)
{
  return !p->nodes[edge->from].label && !p->nodes[edge->to].label;
}

/* Adds the neighbours of the selected nodes, `depth` times. */
static void spread(picture *p)
{
  bool *next = tool_alloc(p->n, sizeof(*next));
  bool grew = true;
  for (uint32_t step = 0; step < p->depth && grew; step++) {
    grew = false;
    for (size_t e = 0; e < p->n_edges; e++) {
      const picture_edge *edge = &p->edges[e];
      if (!is_drawn_edge(p, edge) || p->nodes[edge->from].wanted == p->nodes[edge->to].wanted) continue;
      next[p->nodes[edge->from].wanted ? edge->to : edge->from] = grew = true;
    }
    for (uint32_t i = 0; i < p->n; i++) p->nodes[i].wanted |= next[i];
  }
  free(next);
}

/* If the selected scope contains only constants, they are drawn as boxes. */
static void keep_some(picture *p, const bool *in_scope)
{
  for (uint32_t i = 0; i < p->n; i++)
    if (in_scope[i] && !p->nodes[i].label) return;
  for (uint32_t i = 0; i < p->n; i++)
    if (in_scope[i]) p->nodes[i].label = false;
}

/* Sets `wanted` for all nodes; on entry it is set for those in the selected scope. */
static void choose(picture *p)
{
  bool *in_scope = tool_alloc(p->n, sizeof(*in_scope));
  for (uint32_t i = 0; i < p->n; i++) in_scope[i] = p->nodes[i].wanted;
  if (p->around_scope > 0) keep_some(p, in_scope);
  for (uint32_t i = 0; i < p->n; i++) {
    picture_node *node = &p->nodes[i];
    node->wanted = !node->label && (p->options->around == NULL || node->seed || in_scope[i]);
    p->n_labels += node->label;
  }
  free(in_scope);
  if (p->options->around != NULL) spread(p);
}

tn_status picture_read(picture *p, tn_graph *graph, const picture_options *options, tn_error *err)
{
  memset(p, 0, sizeof(*p));
  p->options = options;
  tool_model_scan(&p->model, graph);
  if (p->model.n >= PICTURE_IS_GROUP / 2)
    return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "%zu nodes are too many for a picture", p->model.n);
  p->n = (uint32_t)p->model.n;
  p->nodes = tool_alloc(p->n, sizeof(*p->nodes));
  for (uint32_t i = 0; i < p->n; i++) {
    picture_node *node = &p->nodes[i];
    node->op = p->model.nodes[i].op;
    node->name = tn_operation_name(node->op);
    node->type = tn_operation_type(node->op);
    node->role = role_of(&p->model.nodes[i]);
    node->group = node->box = PICTURE_NONE;
  }
  read_edges(p);
  tn_status status = options->around != NULL ? find_seeds(p, err) : TN_OK;
  if (status != TN_OK) return status;
  p->depth = p->around_scope > 0 ? 1 : 2;
  if (options->depth != PICTURE_NONE) p->depth = options->depth;
  leaving l = leaving_make(p);
  put_in_order(p, &l);
  leaving_free(&l);
  find_labels(p);
  choose(p);
  picture_list_wanted(p);
  return TN_OK;
}

void picture_free(picture *p)
{
  for (size_t i = 0; i < p->n_groups; i++) {
    free(p->groups[i].name);
    free(p->groups[i].units);
  }
  free(p->groups);
  free(p->nodes);
  free(p->edges);
  free(p->by_order);
  free(p->boxes);
  free(p->merged);
  free(p->arrows);
  tool_model_fini(&p->model);
}
