/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the paths of an object graph.
 *
 * A walk visits nodes breadth-first, each one at most TN__OBJECT_PATHS times, once for each of the shortest paths to
 * it. So cycles end and the work is linear in the message, although the number of paths may be exponential or infinite.
 * A visit has the number of the visit that it follows; a path is put together backwards from there. */
#include <core/formats/objectgraph/nodes.h>

#include <string.h>

/* The most memory of listed paths, in bytes. */
#define PATHS_LIMIT ((size_t)64 << 20)
/* After so many visits each node that was not visited is visited once. */
#define VISITS_MOST ((size_t)1 << 20)
#define NEVER UINT32_MAX

typedef struct visit {
  uint32_t from;  /* the visit before; of the root: NEVER */
  uint32_t child; /* the edge */
  uint32_t node;
  uint32_t size; /* bytes of the path; more than PATHS_LIMIT: too many */
} visit;

typedef struct lister {
  const tn__object_graph *graph;
  tn__arena *arena;
  visit *visits;
  size_t n, capacity;
  uint32_t *first; /* by node: its first visit, or NEVER */
  uint8_t *counts; /* by node: its visits */
  uint8_t *listed; /* by attribute, the first one of its key: the listed paths of the key */
  tn__object_path *paths;
  size_t n_paths, paths_capacity;
  size_t used; /* bytes of listed paths */
  bool full;   /* PATHS_LIMIT was reached */
} lister;

/* ---- texts ---- */

/* The size of a name as paths have it, with %2F for '/'. */
static size_t encoded_size(const char *name, size_t size)
{
  size_t more = 0;
  for (size_t i = 0; i < size; i++) more += name[i] == '/';
  return size + 2 * more;
}

/* Writes a name that ends before `end`. Returns its beginning. */
static char *put_name(char *end, const char *name, size_t size)
{
  for (size_t i = size; i-- > 0;) {
    if (name[i] == '/')
      memcpy(end -= 3, "%2F", 3);
    else
      *--end = name[i];
  }
  return end;
}

/* Writes the path of a visit; `to` has room for its size. Returns the end. */
static char *put_path(const lister *l, uint32_t number, char *to)
{
  char *stop = to + l->visits[number].size, *p = stop;
  for (const visit *v = &l->visits[number]; v->from != NEVER; v = &l->visits[v->from]) {
    const tn__child *child = &l->graph->children[v->child];
    p = put_name(p, child->name, child->size);
    if (p > to) *--p = '/';
  }
  return stop;
}

/* Adds a path of `size` bytes; *text is where the caller writes it. *text is NULL if the list is full, or the key has
 * paths enough. */
static tn_status add(lister *l, const tn__attribute *attribute, size_t size, bool named, char **text, tn_error *err)
{
  *text = NULL;
  size_t more = size + 1 + sizeof *l->paths;
  l->full = l->full || size > PATHS_LIMIT || more > PATHS_LIMIT - l->used;
  if (l->full || attribute->key_size == 0 || l->listed[attribute->same] == TN__OBJECT_PATHS) return TN_OK;
  if (l->n_paths == l->paths_capacity &&
      !tn__grow((void **)&l->paths, &l->paths_capacity, l->n_paths + 1, sizeof *l->paths))
    return tn__no_memory(err, "a list of paths", (l->n_paths + 1) * sizeof *l->paths);
  char *path = tn__arena_alloc(l->arena, size + 1);
  if (path == NULL) return tn__no_memory(err, "a path", size + 1);
  path[size] = 0;
  l->listed[attribute->same]++;
  l->used += more;
  l->paths[l->n_paths++] = (tn__object_path){ path, { attribute->key, attribute->key_size }, named };
  *text = path;
  return TN_OK;
}

/* ---- the walk ---- */

/* Adds a visit of a node, unless there are enough. `child` is the edge. */
static tn_status go(lister *l, uint32_t from, uint32_t child, uint32_t node, size_t size, tn_error *err)
{
  if (l->counts[node] >= (l->n < VISITS_MOST ? TN__OBJECT_PATHS : 1)) return TN_OK;
  if (l->n == l->capacity && !tn__grow((void **)&l->visits, &l->capacity, l->n + 1, sizeof *l->visits))
    return tn__no_memory(err, "a walk through an object graph", (l->n + 1) * sizeof *l->visits);
  if (l->counts[node]++ == 0) l->first[node] = (uint32_t)l->n;
  l->visits[l->n++] = (visit){ from, child, node, (uint32_t)(size <= PATHS_LIMIT ? size : PATHS_LIMIT + 1) };
  return TN_OK;
}

/* A path is a C string, so a name with a zero byte cannot be in it. */
static bool is_text(const char *name, size_t size) { return size == 0 || memchr(name, 0, size) == NULL; }

/* Follows the children of a visited node. Of equal names only the first one is a path. */
static tn_status visit_children(lister *l, uint32_t number, tn_error *err)
{
  const tn__object_graph *graph = l->graph;
  const visit at = l->visits[number];
  const uint32_t begin = graph->nodes[at.node].child, end = graph->nodes[at.node + 1].child;
  tn_status st = TN_OK;
  for (uint32_t i = begin; st == TN_OK && i < end; i++) {
    const tn__child *child = &graph->children[i];
    if (i > begin && tn__compare_texts(child->name, child->size, child[-1].name, child[-1].size) == 0) continue;
    if (!is_text(child->name, child->size)) continue;
    size_t size = at.size + (at.from != NEVER) + encoded_size(child->name, child->size);
    st = go(l, number, i, child->node, size, err);
  }
  return st;
}

static tn_status list_attributes(lister *l, uint32_t number, tn_error *err)
{
  const tn__object_graph *graph = l->graph;
  const uint32_t node = l->visits[number].node;
  tn_status st = TN_OK;
  for (uint32_t i = graph->nodes[node].attribute; st == TN_OK && i < graph->nodes[node + 1].attribute; i++) {
    const tn__attribute *a = &graph->attributes[i];
    const bool named = !tn__attribute_is_value(a);
    char *text;
    if (!is_text(a->name, a->size) || (!named && i != graph->nodes[node].value)) continue;
    st = add(l, a, l->visits[number].size + (named ? 1 + (size_t)a->size : 0), named, &text, err);
    if (text == NULL) continue;
    text = put_path(l, number, text);
    if (!named) continue;
    *text = ':';
    memcpy(text + 1, a->name, a->size);
  }
  return st;
}

/* ---- slots ---- */

/* Lists "OPTIMIZER:SLOT(VARIABLE)". */
static tn_status list_slot(lister *l, uint32_t optimizer, const tn__slot *slot, tn_error *err)
{
  const uint32_t variable = l->first[slot->variable];
  const uint32_t value = l->graph->nodes[slot->node].value;
  char *text;
  if (variable == NEVER || value == TN__NO_VALUE || !is_text(slot->name, slot->size)) return TN_OK;
  size_t size = (size_t)l->visits[optimizer].size + slot->size + l->visits[variable].size + 3;
  tn_status st = add(l, &l->graph->attributes[value], size, false, &text, err);
  if (text == NULL) return st;
  text = put_path(l, optimizer, text);
  *text++ = ':';
  memcpy(text, slot->name, slot->size);
  text += slot->size;
  *text++ = '(';
  text = put_path(l, variable, text);
  *text = ')';
  return TN_OK;
}

/* Only on the shortest path of an optimizer. Of equal slots only the first one is a path. */
static tn_status list_slots(lister *l, uint32_t number, tn_error *err)
{
  const tn__object_graph *graph = l->graph;
  const uint32_t node = l->visits[number].node;
  tn_status st = TN_OK;
  if (l->first[node] != number) return TN_OK;
  const uint32_t begin = graph->nodes[node].slot, end = graph->nodes[node + 1].slot;
  for (uint32_t i = begin; st == TN_OK && i < end; i++) {
    const tn__slot *slot = &graph->slots[i];
    if (i > begin && slot->variable == slot[-1].variable &&
        tn__compare_texts(slot->name, slot->size, slot[-1].name, slot[-1].size) == 0)
      continue;
    st = list_slot(l, number, slot, err);
  }
  return st;
}

/* ---- the list ---- */

static tn_status list_all(lister *l, tn_error *err)
{
  tn_status st = go(l, NEVER, 0, 0, 0, err);
  for (size_t i = 0; st == TN_OK && i < l->n && !l->full; i++) {
    st = list_attributes(l, (uint32_t)i, err);
    if (st == TN_OK) st = visit_children(l, (uint32_t)i, err);
  }
  for (size_t i = 0; st == TN_OK && i < l->n && !l->full; i++) st = list_slots(l, (uint32_t)i, err);
  return st;
}

/* Copies the list into the arena. */
static tn_status deliver(const lister *l, tn__object_path **out, size_t *n, tn_error *err)
{
  size_t size = l->n_paths * sizeof *l->paths;
  *out = tn__arena_alloc(l->arena, size);
  if (*out == NULL) return tn__no_memory(err, "a list of paths", size);
  if (size > 0) memcpy(*out, l->paths, size);
  *n = l->n_paths;
  return TN_OK;
}

/* Memory by node and by attribute; one element more, so that none has size 0. */
static tn_status make_tables(lister *l, tn_error *err)
{
  const size_t nodes = l->graph->n_nodes, attributes = (size_t)l->graph->n_attributes + 1;
  l->first = tn__alloc_array(nodes, sizeof *l->first);
  l->counts = tn__zalloc(nodes);
  l->listed = tn__zalloc(attributes);
  if (l->first == NULL || l->counts == NULL || l->listed == NULL)
    return tn__no_memory(err, "a walk through an object graph", nodes * (sizeof *l->first + 1) + attributes);
  for (size_t i = 0; i < nodes; i++) l->first[i] = NEVER;
  return TN_OK;
}

tn_status tn__object_graph_paths(const tn__object_graph *graph, tn__arena *arena, tn__object_path **out, size_t *n,
                                 tn_error *err)
{
  lister l = { .graph = graph, .arena = arena };
  *out = NULL;
  *n = 0;
  tn_status st = make_tables(&l, err);
  if (st == TN_OK) st = list_all(&l, err);
  if (st == TN_OK) st = deliver(&l, out, n, err);
  tn__free(l.listed, (size_t)graph->n_attributes + 1);
  tn__free(l.counts, graph->n_nodes);
  tn__free(l.first, graph->n_nodes * sizeof *l.first);
  tn__free(l.paths, l.paths_capacity * sizeof *l.paths);
  tn__free(l.visits, l.capacity * sizeof *l.visits);
  return st;
}
