/* SPDX-License-Identifier: Apache-2.0 */
/* Parses an object graph. The message is read twice: the first pass counts and checks the encoding, the second one
 * fills arrays of exactly these sizes. */
#include <core/formats/objectgraph/nodes.h>
#include <core/formats/wire.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* TrackableObjectGraph, TrackableObject, ObjectReference, SerializedTensor, SlotVariableReference */
enum { G_NODE = 1 };
enum { N_CHILD = 1, N_ATTRIBUTE = 2, N_SLOT = 3 };
enum { C_NODE = 1, C_NAME = 2 };
enum { A_NAME = 1, A_FULL_NAME = 2, A_KEY = 3 };
enum { S_VARIABLE = 1, S_NAME = 2, S_NODE = 3 };

/* The maximum size of a message: protobuf's. All counts and sizes fit into 32 bits. */
#define MESSAGE_LIMIT ((size_t)INT32_MAX)

int tn__compare_texts(const char *a, size_t n, const char *b, size_t m)
{
  int order = memcmp(a, b, n < m ? n : m);
  return order != 0 ? order : (n > m) - (n < m);
}

/* ---- the first pass ---- */

static tn_status malformed(const tn__object_graph *graph, const tn__wire *w, tn_error *err)
{
  return tn_error_set(err, TN_DATA_LOSS, "'%s': %s is malformed at byte %zu of its %zu: %s", graph->file,
                      TN__OBJECT_GRAPH_KEY, (size_t)((const char *)w->at - graph->proto.data), graph->proto.size,
                      w->error);
}

static tn_status check_message(const tn__object_graph *graph, tn__slice message, tn_error *err)
{
  tn__wire w = tn__wire_read(message);
  while (tn__wire_next(&w)) { }
  return w.error == NULL ? TN_OK : malformed(graph, &w, err);
}

static tn_status count_node(tn__object_graph *graph, tn__slice node, tn_error *err)
{
  tn_status st = TN_OK;
  tn__wire w = tn__wire_read(node);
  while (st == TN_OK && tn__wire_next(&w)) {
    if (w.type != TN__WIRE_BYTES || w.field > N_SLOT) continue;
    if (w.field == N_CHILD) graph->n_children++;
    if (w.field == N_ATTRIBUTE) graph->n_attributes++;
    if (w.field == N_SLOT) graph->n_slots++;
    st = check_message(graph, w.bytes, err);
  }
  return st == TN_OK && w.error != NULL ? malformed(graph, &w, err) : st;
}

static tn_status count_all(tn__object_graph *graph, tn_error *err)
{
  tn_status st = TN_OK;
  tn__wire w = tn__wire_read(graph->proto);
  while (st == TN_OK && tn__wire_next(&w)) {
    if (!tn__wire_is(&w, G_NODE, TN__WIRE_BYTES)) continue;
    graph->n_nodes++;
    st = count_node(graph, w.bytes, err);
  }
  if (st == TN_OK && w.error != NULL) st = malformed(graph, &w, err);
  if (st == TN_OK && graph->n_nodes == 0)
    st = tn_error_set(err, TN_DATA_LOSS, "'%s': %s has no nodes, not even a root", graph->file, TN__OBJECT_GRAPH_KEY);
  return st;
}

/* Memory for an array; there is room for one more element, so none has size 0. */
static void *make_array(tn__object_graph *graph, uint32_t n, size_t size, tn_status *st, tn_error *err)
{
  void *array = *st == TN_OK ? tn__arena_array(&graph->arena, (size_t)n + 1, size) : NULL;
  if (array == NULL && *st == TN_OK) *st = tn__no_memory(err, "an object graph", ((size_t)n + 1) * size);
  return array;
}

static tn_status make_arrays(tn__object_graph *graph, tn_error *err)
{
  tn_status st = TN_OK;
  graph->nodes = make_array(graph, graph->n_nodes, sizeof *graph->nodes, &st, err);
  graph->children = make_array(graph, graph->n_children, sizeof *graph->children, &st, err);
  graph->attributes = make_array(graph, graph->n_attributes, sizeof *graph->attributes, &st, err);
  graph->slots = make_array(graph, graph->n_slots, sizeof *graph->slots, &st, err);
  return st;
}

/* ---- the second pass ---- */

/* Checks the id of a node that node `from` names. Ids are int32, so a negative one has ten bytes. */
static tn_status take_id(const tn__object_graph *graph, uint32_t from, const char *what, const char *name,
                         uint32_t size, uint64_t id, uint32_t *out, tn_error *err)
{
  *out = (uint32_t)id;
  if (id < graph->n_nodes) return TN_OK;
  return tn_error_set(err, TN_DATA_LOSS,
                      "'%s': node %" PRIu32 " of the object graph: %s '%.*s' is node %" PRId64
                      ", but there are only %" PRIu32,
                      graph->file, from, what, (int)(size < 200 ? size : 200), name, (int64_t)id, graph->n_nodes);
}

static tn_status read_child(tn__object_graph *graph, uint32_t node, tn__slice message, tn_error *err)
{
  uint64_t id = 0;
  tn__child *child = &graph->children[graph->n_children++];
  *child = (tn__child){ .name = "" };
  tn__wire w = tn__wire_read(message);
  while (tn__wire_next(&w)) {
    if (tn__wire_is(&w, C_NODE, TN__WIRE_VARINT)) id = w.value;
    if (!tn__wire_is(&w, C_NAME, TN__WIRE_BYTES)) continue;
    child->name = w.bytes.data;
    child->size = (uint32_t)w.bytes.size;
  }
  return take_id(graph, node, "child", child->name, child->size, id, &child->node, err);
}

static void read_attribute(tn__object_graph *graph, tn__slice message)
{
  tn__attribute *a = &graph->attributes[graph->n_attributes++];
  *a = (tn__attribute){ .name = "", .full_name = "", .key = "" };
  tn__wire w = tn__wire_read(message);
  while (tn__wire_next(&w)) {
    if (w.type != TN__WIRE_BYTES) continue;
    uint32_t size = (uint32_t)w.bytes.size;
    if (w.field == A_NAME) a->name = w.bytes.data, a->size = size;
    if (w.field == A_FULL_NAME) a->full_name = w.bytes.data, a->full_size = size;
    if (w.field == A_KEY) a->key = w.bytes.data, a->key_size = size;
  }
}

static tn_status read_slot(tn__object_graph *graph, uint32_t node, tn__slice message, tn_error *err)
{
  uint64_t variable = 0, id = 0;
  tn__slot *slot = &graph->slots[graph->n_slots++];
  *slot = (tn__slot){ .name = "" };
  tn__wire w = tn__wire_read(message);
  while (tn__wire_next(&w)) {
    if (tn__wire_is(&w, S_VARIABLE, TN__WIRE_VARINT)) variable = w.value;
    if (tn__wire_is(&w, S_NODE, TN__WIRE_VARINT)) id = w.value;
    if (!tn__wire_is(&w, S_NAME, TN__WIRE_BYTES)) continue;
    slot->name = w.bytes.data;
    slot->size = (uint32_t)w.bytes.size;
  }
  tn_status st = take_id(graph, node, "the variable of slot", slot->name, slot->size, variable, &slot->variable, err);
  return st == TN_OK ? take_id(graph, node, "slot", slot->name, slot->size, id, &slot->node, err) : st;
}

/* Names are parts of the message, so of equal ones the lower address comes first there. */
static int compare_children(const void *a, const void *b)
{
  const tn__child *x = a, *y = b;
  int order = tn__compare_texts(x->name, x->size, y->name, y->size);
  return order != 0 ? order : (x->name > y->name) - (x->name < y->name);
}

static int compare_slots(const void *a, const void *b)
{
  const tn__slot *x = a, *y = b;
  if (x->variable != y->variable) return x->variable < y->variable ? -1 : 1;
  int order = tn__compare_texts(x->name, x->size, y->name, y->size);
  return order != 0 ? order : (x->name > y->name) - (x->name < y->name);
}

static tn_status read_node(tn__object_graph *graph, uint32_t number, tn__slice message, tn_error *err)
{
  tn_status st = TN_OK;
  tn__node *node = &graph->nodes[number];
  *node = (tn__node){ graph->n_children, graph->n_attributes, graph->n_slots, TN__NO_VALUE };
  tn__wire w = tn__wire_read(message);
  while (st == TN_OK && tn__wire_next(&w)) {
    if (w.type != TN__WIRE_BYTES) continue;
    if (w.field == N_CHILD) st = read_child(graph, number, w.bytes, err);
    if (w.field == N_ATTRIBUTE) read_attribute(graph, w.bytes);
    if (w.field == N_SLOT) st = read_slot(graph, number, w.bytes, err);
  }
  for (uint32_t i = graph->n_attributes; i > node->attribute; i--)
    if (tn__attribute_is_value(&graph->attributes[i - 1])) node->value = i - 1;
  size_t children = graph->n_children - node->child, slots = graph->n_slots - node->slot;
  if (children > 1) qsort(graph->children + node->child, children, sizeof *graph->children, compare_children);
  if (slots > 1) qsort(graph->slots + node->slot, slots, sizeof *graph->slots, compare_slots);
  return st;
}

/* Counts again, now as places in the arrays. */
static tn_status read_all(tn__object_graph *graph, tn_error *err)
{
  tn_status st = TN_OK;
  uint32_t number = 0;
  graph->n_children = graph->n_attributes = graph->n_slots = 0;
  tn__wire w = tn__wire_read(graph->proto);
  while (st == TN_OK && tn__wire_next(&w))
    if (tn__wire_is(&w, G_NODE, TN__WIRE_BYTES)) st = read_node(graph, number++, w.bytes, err);
  graph->nodes[number] = (tn__node){ graph->n_children, graph->n_attributes, graph->n_slots, TN__NO_VALUE };
  return st;
}

/* ---- the maps ---- */

static bool map_name(tn__object_graph *graph, tn__attribute *a)
{
  const tn__attribute *first = tn__map_get(&graph->by_name, a->full_name, a->full_size);
  if (first == NULL) return tn__map_put(&graph->by_name, a->full_name, a->full_size, a, NULL);
  if (first == &graph->several || first->same == a->same) return true;
  return tn__map_put(&graph->by_name, a->full_name, a->full_size, &graph->several, NULL);
}

static tn_status map_all(tn__object_graph *graph, tn_error *err)
{
  bool ok = true;
  for (uint32_t i = 0; ok && i < graph->n_attributes; i++) {
    tn__attribute *a = &graph->attributes[i];
    const tn__attribute *first = tn__map_get(&graph->by_key, a->key, a->key_size);
    a->same = first == NULL ? i : first->same;
    if (first == NULL) ok = tn__map_put(&graph->by_key, a->key, a->key_size, a, NULL);
    if (ok && a->full_size > 0 && tn__attribute_is_value(a)) ok = map_name(graph, a);
  }
  return ok ? TN_OK : tn__no_memory(err, "the keys of an object graph", graph->n_attributes * sizeof(tn__map_entry));
}

int tn__object_graph_named(const tn__object_graph *graph, tn__slice name, tn__slice *key)
{
  const tn__attribute *a = tn__map_get(&graph->by_name, name.data, name.size);
  if (a == NULL || a == &graph->several) return a == NULL ? 0 : 2;
  *key = (tn__slice){ a->key, a->key_size };
  return 1;
}

/* ---- the graph ---- */

tn_status tn__object_graph_read(tn__slice proto, const char *file, tn__object_graph **out, tn_error *err)
{
  *out = NULL;
  if (proto.size > MESSAGE_LIMIT)
    return tn_error_set(err, TN_DATA_LOSS, "'%s': %s has %zu bytes; a message has at most %zu", file,
                        TN__OBJECT_GRAPH_KEY, proto.size, MESSAGE_LIMIT);
  tn__object_graph *graph = tn__zalloc(sizeof *graph);
  if (graph == NULL) return tn__no_memory(err, "an object graph", sizeof *graph);
  graph->file = file;
  graph->proto = (tn__slice){ proto.data == NULL ? "" : proto.data, proto.size };
  tn__arena_init(&graph->arena, 4096);
  tn__map_init(&graph->by_key);
  tn__map_init(&graph->by_name);
  tn_status st = count_all(graph, err);
  if (st == TN_OK) st = make_arrays(graph, err);
  if (st == TN_OK) st = read_all(graph, err);
  if (st == TN_OK) st = map_all(graph, err);
  if (st == TN_OK)
    *out = graph;
  else
    tn__object_graph_destroy(graph);
  return st;
}

void tn__object_graph_destroy(tn__object_graph *graph)
{
  if (graph == NULL) return;
  tn__map_fini(&graph->by_name);
  tn__map_fini(&graph->by_key);
  tn__arena_fini(&graph->arena);
  tn__free(graph, sizeof *graph);
}
