/* SPDX-License-Identifier: Apache-2.0 */
/* GraphDef into a graph.
 *
 * The bytes are read in place: names are copied, everything else of a node that is not needed at once stays a slice of
 * them, and the graph holds them. Passes: count the nodes; read each one (name, op, attributes, types of outputs, and
 * inputs where they name nodes that came before); resolve the inputs that name nodes further down; look for cycles
 * where an edge goes backwards. The new nodes become visible at the end, all at once; when a pass fails, the graph's
 * memory and index go back to where they were. */
#include <core/formats/file.h>
#include <core/formats/graphdef.h>
#include <core/formats/pbtxt.h>
#include <core/graph/functions.h>

#include <string.h>

/* GraphDef, NodeDef, and the entries of its map */
enum { G_NODE = 1 };
enum { N_NAME = 1, N_OP = 2, N_INPUT = 3, N_DEVICE = 4, N_ATTR = 5 };
enum { E_KEY = 1, E_VALUE = 2 };

/* Protobuf's own limit for a message. */
#define FILE_LIMIT ((uint64_t)INT32_MAX)

/* Recent texts and what they became: most nodes of a graph share a few. A text that falls out is only copied again. */
#define CACHE_SIZE 128
typedef struct cache_entry {
  tn__slice key;
  const void *value;
} cache_entry;

typedef struct slices {
  tn__slice *at;
  size_t n, room;
} slices;

typedef struct importer {
  tn_graph *graph;
  tn_buffer *file;
  tn__slice bytes;
  const char *name; /* of the file, for messages */
  uint32_t flags;
  tn_error *err;
  size_t first; /* id of the first new node */
  size_t n_nodes, n_rest, n_indexed;
  const tn__functions *functions; /* the graph's and those of the file */
  slices inputs, entries; /* of the node that is read: inputs, and entries of its map of attributes */
  tn__attr *attrs;
  size_t n_attrs, attr_room;
  tn_operation **waiting; /* nodes with an input that was not there yet; then some edge may go backwards */
  size_t n_waiting, waiting_room;
  cache_entry types[CACHE_SIZE], texts[CACHE_SIZE];
} importer;

static tn_status malformed(importer *im, const tn__fault *fault)
{
  size_t at = (size_t)(fault->at - (const uint8_t *)im->bytes.data);
  return tn_error_set(im->err, TN_INVALID_ARGUMENT, "%s: byte %zu: %s", im->name, at, fault->what);
}

static tn_status malformed_field(importer *im, const tn__wire *w)
{
  tn__fault fault = { w->at, w->error };
  return malformed(im, &fault);
}

static bool add_slice(slices *list, tn__slice slice)
{
  if (list->n == list->room && !tn__grow((void **)&list->at, &list->room, list->n + 1, sizeof *list->at)) return false;
  list->at[list->n++] = slice;
  return true;
}

static tn_status no_memory(importer *im) { return tn__no_memory(im->err, im->name, 0); }

/* Puts file and node in front of what is wrong with a node. */
static tn_status in_node(importer *im, const tn_operation *op, tn_status st)
{
  if (st == TN_OK || im->err == NULL) return st;
  tn_error_prefix(im->err, "%s: node '%s'", im->name, op->name);
  tn_error_set_node(im->err, op->name);
  return st;
}

/* ---- texts ---- */

static cache_entry *cache_place(cache_entry *cache, tn__slice key)
{
  const unsigned char *p = (const unsigned char *)key.data;
  size_t h = key.size * 31;
  if (key.size > 0) h += p[0] * 7u + p[key.size / 2] * 13u + p[key.size - 1] * 17u;
  return &cache[h % CACHE_SIZE];
}

/* A copy of the text in the graph, the same one for equal texts as a rule. */
static const char *text_of(importer *im, tn__slice text)
{
  if (text.size == 0) return "";
  cache_entry *e = cache_place(im->texts, text);
  if (e->value != NULL && tn__slice_equal(e->key, text)) return e->value;
  const char *copy = tn__arena_string(&im->graph->arena, text.data, text.size);
  if (copy != NULL) *e = (cache_entry){ text, copy };
  return copy;
}

static const tn_op_schema *schema_of(importer *im, tn__slice type)
{
  static const char none; /* stands for: looked for, not there */
  cache_entry *e = cache_place(im->types, type);
  if (e->value == NULL || !tn__slice_equal(e->key, type)) {
    const tn_op_schema *schema = tn__schema_find(type.data, type.size);
    *e = (cache_entry){ type, schema != NULL ? (const void *)schema : &none };
  }
  return e->value == &none ? NULL : e->value;
}

/* ---- count ---- */

static tn_status count_nodes(importer *im)
{
  tn__wire w = tn__wire_read(im->bytes);
  while (tn__wire_next(&w)) {
    if (tn__wire_is(&w, G_NODE, TN__WIRE_BYTES)) {
      im->n_nodes++;
    } else if (w.field == G_NODE) {
      /* Protobuf would pass over it, and a SavedModel would be a graph without nodes. */
      tn__fault fault = { w.at, "a node is a number: this is no GraphDef; a SavedModel begins like that" };
      return malformed(im, &fault);
    } else {
      im->n_rest++;
    }
  }
  return w.error == NULL ? TN_OK : malformed_field(im, &w);
}

/* ---- names and attributes ---- */

static bool key_is_valid(tn__slice key)
{
  for (size_t i = 0; i < key.size; i++)
    if ((unsigned char)key.data[i] < 0x20 || key.data[i] == 0x7f) return false;
  return key.size > 0 && key.size <= UINT16_MAX;
}

/* An attribute that the schema knows is decoded now, but for a tensor; of the others the value waits in the bytes. */
static tn_status fill_attr(importer *im, const tn__attr_spec *spec, const tn__attr_head *head, tn__attr *a)
{
  if (spec != NULL && head->mixed)
    return tn_error_set(im->err, TN_INVALID_ARGUMENT, "attribute '%s' is a list with values of several kinds", a->name);
  bool waits = spec == NULL && (head->kind >= TN_ATTR_SHAPE || head->kind == TN_ATTR_STRING);
  if (!waits) {
    tn_status st = tn__attr_decode(head, im->file, &im->graph->arena, a, im->err);
    if (st != TN_OK && st != TN_RESOURCE_EXHAUSTED) tn_error_prefix(im->err, "attribute '%s'", a->name);
    return st;
  }
  a->kind = (uint8_t)head->kind;
  a->lazy = 1;
  atomic_init(&a->v.decoded.value, NULL);
  a->v.decoded.holder = im->file;
  return TN_OK;
}

static tn_status add_attr(importer *im, const tn_operation *op, tn__slice entry)
{
  tn__slice key = { "", 0 }, value = { NULL, 0 };
  tn__wire w = tn__wire_read(entry);
  while (tn__wire_next(&w)) {
    if (tn__wire_is(&w, E_KEY, TN__WIRE_BYTES)) key = w.bytes;
    if (tn__wire_is(&w, E_VALUE, TN__WIRE_BYTES)) value = w.bytes;
  }
  if (w.error != NULL) return malformed_field(im, &w);
  if (!key_is_valid(key))
    return in_node(im, op, tn_error_set(im->err, TN_INVALID_ARGUMENT, "an attribute has no valid name"));
  tn__attr_head head;
  tn__fault fault;
  if (!tn__attr_scan(value, 4, &head, &fault)) return malformed(im, &fault);
  if (!tn__grow((void **)&im->attrs, &im->attr_room, im->n_attrs + 1, sizeof *im->attrs)) return no_memory(im);

  int32_t k = op->schema == NULL ? -1 : tn__schema_attr_index(op->schema, key.data, key.size);
  const tn__attr_spec *spec = k < 0 ? NULL : &op->schema->attrs[k];
  tn__attr *a = &im->attrs[im->n_attrs++];
  *a = (tn__attr){ .name = spec != NULL ? spec->value.name : text_of(im, key),
                   .name_size = (uint32_t)key.size,
                   .proto = value };
  if (a->name == NULL) return no_memory(im);
  return in_node(im, op, fill_attr(im, spec, &head, a));
}

static tn_status read_attrs(importer *im, tn_operation *op)
{
  tn_status st = TN_OK;
  im->n_attrs = 0;
  for (size_t i = 0; st == TN_OK && i < im->entries.n; i++) st = add_attr(im, op, im->entries.at[i]);
  if (st != TN_OK || im->n_attrs == 0) return st;
  op->attrs = tn__arena_alloc(&im->graph->arena, im->n_attrs * sizeof *op->attrs);
  if (op->attrs == NULL) return no_memory(im);
  memcpy(op->attrs, im->attrs, im->n_attrs * sizeof *op->attrs);
  op->n_attrs = (uint32_t)im->n_attrs;
  return TN_OK;
}

typedef struct node_fields {
  tn__slice name, type, device;
} node_fields;

static tn_status read_fields(importer *im, tn__slice proto, node_fields *f)
{
  tn__wire w = tn__wire_read(proto);
  im->inputs.n = im->entries.n = 0;
  while (tn__wire_next(&w)) {
    if (w.type != TN__WIRE_BYTES) continue;
    switch (w.field) {
    case N_NAME: f->name = w.bytes; break;
    case N_OP: f->type = w.bytes; break;
    case N_DEVICE: f->device = w.bytes; break;
    case N_INPUT:
      if (!add_slice(&im->inputs, w.bytes)) return no_memory(im);
      break;
    case N_ATTR:
      if (!add_slice(&im->entries, w.bytes)) return no_memory(im);
      break;
    default: break;
    }
  }
  return w.error == NULL ? TN_OK : malformed_field(im, &w);
}

static int shown(tn__slice text) { return text.size > 200 ? 200 : (int)text.size; }

static tn_status check_names(importer *im, const node_fields *f, tn__slice proto)
{
  if (!tn__name_is_valid(f->name.data, f->name.size)) /* S-GRA-07 */
    return tn_error_set(im->err, TN_INVALID_ARGUMENT, "%s: byte %zu: '%.*s' is no valid name of a node", im->name,
                        (size_t)(proto.data - im->bytes.data), shown(f->name), f->name.data);
  if (!tn__op_type_is_valid(f->type.data, f->type.size))
    return tn_error_set(im->err, TN_INVALID_ARGUMENT, "%s: node '%.*s': '%.*s' is no name of an op", im->name,
                        shown(f->name), f->name.data, shown(f->type), f->type.data);
  if (!tn__device_is_valid(f->device.data, f->device.size)) /* S-CFG-06 */
    return tn_error_set(im->err, TN_INVALID_ARGUMENT,
                        "%s: node '%.*s': malformed device '%.*s', wanted as '/device:CPU:0'", im->name, shown(f->name),
                        f->name.data, shown(f->device), f->device.data);
  return TN_OK;
}

static tn_status set_names(importer *im, tn_operation *op, const node_fields *f)
{
  if (f->name.size > INT32_MAX) return no_memory(im);
  op->name = tn__arena_string(&im->graph->arena, f->name.data, f->name.size);
  op->name_size = (uint32_t)f->name.size;
  op->device = text_of(im, f->device);
  op->schema = schema_of(im, f->type);
  op->traits = op->schema == NULL ? 0 : op->schema->traits;
  op->type = op->schema == NULL ? text_of(im, f->type) : op->schema->name;
  if (op->name == NULL || op->device == NULL || op->type == NULL) return no_memory(im);
  op->hash = tn__hash(op->name, op->name_size);
  if (op->schema == NULL && (im->flags & TN_IMPORT_REFUSE_UNKNOWN_OPS) != 0)
    return in_node(im, op, tn_error_set(im->err, TN_NOT_FOUND, "op '%s' is not registered", op->type));
  return TN_OK;
}

/* ---- inputs ---- */

/* out->op is NULL when there is no such node, or not yet. */
static tn_status resolve(importer *im, tn__slice text, bool is_control, tn_output *out)
{
  tn__edge_name edge;
  if (!tn__edge_name_parse(text.data, text.size, &edge))
    return tn_error_set(im->err, TN_INVALID_ARGUMENT, "malformed input '%.*s'", shown(text), text.data);
  if (edge.is_control != is_control)
    return tn_error_set(im->err, TN_INVALID_ARGUMENT,
                        "input '%.*s' stands after a control input ('^...'): those come last", shown(text), text.data);
  *out = (tn_output){ tn__graph_find_staged(im->graph, edge.node.data, edge.node.size), edge.index };
  return TN_OK;
}

static tn_status allocate_inputs(importer *im, tn_operation *op)
{
  const slices *texts = &im->inputs;
  size_t n_data = 0;
  while (n_data < texts->n && (texts->at[n_data].size == 0 || texts->at[n_data].data[0] != '^')) n_data++;
  op->n_inputs = (uint32_t)n_data;
  op->n_controls = (uint32_t)(texts->n - n_data);
  if (n_data > 0) op->inputs = tn__arena_alloc(&im->graph->arena, n_data * sizeof *op->inputs);
  if (op->n_controls > 0) op->controls = tn__arena_alloc(&im->graph->arena, op->n_controls * sizeof *op->controls);
  return (n_data > 0 && op->inputs == NULL) || (op->n_controls > 0 && op->controls == NULL) ? no_memory(im) : TN_OK;
}

/* Resolves the inputs that stand in im->inputs, and checks their types. With `wait`, a node that is not there is waited
 * for: op is put on the list. */
static tn_status read_inputs(importer *im, tn_operation *op, bool wait)
{
  const slices *texts = &im->inputs;
  for (size_t i = 0; i < texts->n; i++) {
    bool is_control = i >= op->n_inputs;
    tn_output from;
    tn_status st = resolve(im, texts->at[i], is_control, &from);
    if (st != TN_OK) return st;
    if (from.op == NULL || (wait && from.op == op)) {
      if (!wait) /* S-GRA-05 */
        return tn_error_set(im->err, TN_INVALID_ARGUMENT, "input '%.*s' names no node of the graph",
                            shown(texts->at[i]), texts->at[i].data);
      if (!tn__grow((void **)&im->waiting, &im->waiting_room, im->n_waiting + 1, sizeof *im->waiting))
        return no_memory(im);
      im->waiting[im->n_waiting++] = op;
      return TN_OK;
    }
    if (is_control)
      op->controls[i - op->n_inputs] = from.op;
    else
      op->inputs[i] = from;
  }
  const tn_function *f = op->schema == NULL ? tn__functions_find(im->functions, op->type) : NULL;
  if (f != NULL) return tn__function_check_inputs(f, op, im->err);
  return tn__op_check_inputs(op, &im->graph->arena, im->err);
}

/* ---- nodes ---- */

static tn_status read_node(importer *im, tn__slice proto)
{
  node_fields f = { { "", 0 }, { "", 0 }, { "", 0 } };
  tn_status st = read_fields(im, proto, &f);
  if (st == TN_OK) st = check_names(im, &f, proto);
  if (st != TN_OK) return st;
  tn_operation *op = tn__graph_stage(im->graph);
  op->proto = proto;
  if ((st = set_names(im, op, &f)) != TN_OK) return st;
  if (!tn__graph_index_add(im->graph, op)) { /* S-GRA-08, S-GRA-11 */
    bool twice = tn__graph_find_staged(im->graph, op->name, op->name_size)->id >= im->first;
    return in_node(im, op,
                   tn_error_set(im->err, TN_INVALID_ARGUMENT, "%s",
                                twice ? "there are two nodes of this name" : "the graph has a node of this name"));
  }
  im->n_indexed++;
  if ((st = read_attrs(im, op)) != TN_OK) return st;
  st = tn__op_check_attrs(op, &im->graph->arena, im->err);
  if (st == TN_OK) st = tn__op_set_outputs(op, &im->graph->arena, im->err);
  const tn_function *called = op->schema == NULL ? tn__functions_find(im->functions, op->type) : NULL;
  if (st == TN_OK && called != NULL) st = tn__function_set_outputs(called, op, &im->graph->arena, im->err);
  if (st == TN_OK) st = allocate_inputs(im, op);
  if (st == TN_OK) st = read_inputs(im, op, true);
  return in_node(im, op, st);
}

static tn_status read_nodes(importer *im)
{
  tn__wire w = tn__wire_read(im->bytes);
  tn_status st = TN_OK;
  while (st == TN_OK && tn__wire_next(&w))
    if (tn__wire_is(&w, G_NODE, TN__WIRE_BYTES)) st = read_node(im, w.bytes);
  return st;
}

/* Nodes whose inputs stand further down. */
static tn_status read_waiting(importer *im)
{
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < im->n_waiting; i++) {
    tn_operation *op = im->waiting[i];
    node_fields f;
    st = read_fields(im, op->proto, &f);
    if (st == TN_OK) st = in_node(im, op, read_inputs(im, op, false));
  }
  return st;
}

/* ---- cycles ---- */

typedef struct frame {
  tn_operation *op;
  size_t next; /* data inputs, then control inputs */
} frame;

typedef struct walker {
  importer *im;
  uint8_t *seen; /* of a new node: 0 no, 1 on the stack, 2 done */
  frame *stack;
  size_t depth, room;
} walker;

/* The next node to go to from f: new, and not by an edge that may close a cycle. Those are the back edges of loops, and
 * all into an op that is not registered, which could be part of a loop. */
static tn_operation *next_edge(const walker *wk, frame *f)
{
  size_t n = (size_t)f->op->n_inputs + f->op->n_controls;
  if (f->op->schema == NULL) return NULL;
  while (f->next < n) {
    size_t i = f->next++;
    tn_operation *from = i < f->op->n_inputs ? f->op->inputs[i].op : f->op->controls[i - f->op->n_inputs];
    if (from->id < wk->im->first || (i < f->op->n_inputs && tn__is_back_edge(from, f->op))) continue;
    if (wk->seen[from->id - wk->im->first] != 2) return from;
  }
  return NULL;
}

static tn_status report_cycle(const walker *wk, const tn_operation *again)
{
  tn__text t;
  tn__text_init(&t, 1000);
  size_t i = wk->depth;
  while (i > 0 && wk->stack[i - 1].op != again) i--;
  tn__text_printf(&t, "'%s'", again->name);
  for (size_t k = wk->depth; k > i; k--) tn__text_printf(&t, " -> '%s'", wk->stack[k - 1].op->name);
  tn__text_printf(&t, " -> '%s'", again->name);
  tn_error_set(wk->im->err, TN_INVALID_ARGUMENT, "%s: nodes form a cycle: %s%s", wk->im->name, tn__text_get(&t),
               t.failed ? " ..." : "");
  tn_error_set_node(wk->im->err, again->name);
  tn__text_fini(&t);
  return TN_INVALID_ARGUMENT; /* S-GRA-09 */
}

static tn_status push(walker *wk, tn_operation *op)
{
  uint8_t *seen = &wk->seen[op->id - wk->im->first];
  if (*seen == 1) return report_cycle(wk, op);
  if (!tn__grow((void **)&wk->stack, &wk->room, wk->depth + 1, sizeof *wk->stack)) return no_memory(wk->im);
  *seen = 1;
  wk->stack[wk->depth++] = (frame){ op, 0 };
  return TN_OK;
}

static tn_status walk_from(walker *wk, tn_operation *root)
{
  if (wk->seen[root->id - wk->im->first] != 0) return TN_OK;
  tn_status st = push(wk, root);
  while (st == TN_OK && wk->depth > 0) {
    tn_operation *next = next_edge(wk, &wk->stack[wk->depth - 1]);
    if (next != NULL)
      st = push(wk, next);
    else
      wk->seen[wk->stack[--wk->depth].op->id - wk->im->first] = 2;
  }
  return st;
}

static tn_status check_cycles(importer *im)
{
  if (im->n_waiting == 0) return TN_OK; /* the order of the file is one in which the nodes can run */
  walker wk = { .im = im, .seen = tn__zalloc(im->n_nodes) };
  if (wk.seen == NULL) return no_memory(im);
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < im->n_nodes; i++) st = walk_from(&wk, tn__graph_at(im->graph, im->first + i));
  tn__free(wk.stack, wk.room * sizeof *wk.stack);
  tn__free(wk.seen, im->n_nodes);
  return st;
}

/* ---- the import ---- */

static tn_status keep_rest(importer *im, tn__import_record **out)
{
  tn__import_record *r = tn__arena_alloc(&im->graph->arena, sizeof *r);
  tn__slice *rest = tn__arena_alloc(&im->graph->arena, im->n_rest * sizeof *rest);
  if (r == NULL || rest == NULL) return no_memory(im);
  *r = (tn__import_record){ .file = im->file, .rest = rest };
  tn__wire w = tn__wire_read(im->bytes);
  while (tn__wire_next(&w)) {
    if (tn__wire_is(&w, G_NODE, TN__WIRE_BYTES)) continue;
    rest[r->n_rest++] = (tn__slice){ (const char *)w.at, (size_t)(w.p - w.at) };
  }
  *out = r;
  return TN_OK;
}

static tn_status run(importer *im)
{
  tn_graph *g = im->graph;
  im->first = g->staged;
  tn_status st = count_nodes(im);
  if (st == TN_OK) st = tn__graph_reserve(g, im->n_nodes, im->err);
  if (st != TN_OK || (im->n_nodes == 0 && im->n_rest == 0)) return st;
  atomic_store_explicit(&g->codec, &tn__graphdef_codec, memory_order_release);

  tn__arena_mark mark = tn__arena_get_mark(&g->arena);
  tn__import_record *record = NULL;
  st = tn__functions_read(g, im->bytes, im->name, &im->functions, im->err);
  if (st == TN_OK) st = read_nodes(im);
  if (st == TN_OK) st = read_waiting(im);
  if (st == TN_OK) st = check_cycles(im);
  if (st == TN_OK) st = keep_rest(im, &record);
  if (st != TN_OK) {
    tn__graph_unstage(g, im->first, im->n_indexed);
    tn__arena_rewind(&g->arena, mark);
    return st;
  }
  tn_buffer_ref(im->file);
  record->next = g->imports;
  g->imports = record;
  atomic_store_explicit(&g->functions, im->functions, memory_order_release);
  tn__graph_publish(g);
  return TN_OK;
}

static tn_status import(tn_graph *graph, tn_buffer *file, const char *name, uint32_t flags, tn_error *err)
{
  tn_status st = tn__ops_ensure(err);
  importer *im = st == TN_OK ? tn__zalloc(sizeof *im) : NULL;
  if (st == TN_OK && im == NULL) st = tn__no_memory(err, name, sizeof *im);
  if (st != TN_OK) return st;
  const tn_buffer_desc *desc = tn_buffer_describe(file);
  *im = (importer){ .graph = graph, .file = file, .bytes = { desc->data, desc->bytes }, .name = name, .flags = flags,
                    .err = err };
  tn__rwlock_write(&graph->lock);
  st = run(im);
  tn__rwlock_unlock(&graph->lock);
  tn__free(im->inputs.at, im->inputs.room * sizeof *im->inputs.at);
  tn__free(im->entries.at, im->entries.room * sizeof *im->entries.at);
  tn__free(im->attrs, im->attr_room * sizeof *im->attrs);
  tn__free(im->waiting, im->waiting_room * sizeof *im->waiting);
  tn__free(im, sizeof *im);
  return st;
}

static tn_status check_options(const tn_import_options *o, tn_error *err)
{
  if (o == NULL) return TN_OK;
  if (TN_HAS_FIELD(o, tn_import_options, file)) {
    uint32_t unknown = o->flags & ~(uint32_t)(TN_IMPORT_REFUSE_UNKNOWN_OPS | TN_IMPORT_TEXT);
    return unknown == 0
               ? TN_OK
               : tn_error_set(err, TN_INVALID_ARGUMENT, "tn_import_options.flags has unknown bits 0x%x", unknown);
  }
  return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_import_options.struct_size is %zu, wanted at least %zu",
                      o->struct_size, TN_SIZE_TO(tn_import_options, file));
}

static void free_translation(void *user, void *data, size_t bytes)
{
  (void)user;
  (void)bytes;
  tn_free(data);
}

/* Text to a buffer of the bytes that it means. */
static tn_status translate(tn__slice text, const char *name, tn_buffer **out, tn_error *err)
{
  tn__sink bytes = tn__sink_memory(err);
  tn_status st = tn__pbtxt_parse(text, name, &tn__pb_graphdef, &bytes, err);
  if (st == TN_OK && bytes.used > FILE_LIMIT)
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the graph has %zu bytes, at most %zu are read", name, bytes.used,
                      (size_t)FILE_LIMIT);
  if (st == TN_OK && tn__sink_reserve(&bytes, 1) == NULL) st = bytes.status; /* so that there is an address */
  tn_buffer_desc desc = { .struct_size = sizeof desc,
                          .memory = TN_MEMORY_HOST,
                          .ownership = TN_BUFFER_IMMUTABLE,
                          .data = bytes.data,
                          .bytes = bytes.used,
                          .release = free_translation };
  if (st == TN_OK) st = tn_buffer_create(&desc, out, err);
  if (st != TN_OK) tn__sink_fini(&bytes);
  return st;
}

tn_status tn_graph_import(tn_graph *graph, const void *bytes, size_t size, const tn_import_options *options,
                          tn_error *err)
{
  tn__error_reset(err);
  tn_status st = check_options(options, err);
  if (st != TN_OK) return st;
  const char *name = options != NULL && options->file != NULL ? options->file : "GraphDef";
  if (graph == NULL || (bytes == NULL && size > 0))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: no %s given", name, graph == NULL ? "graph" : "bytes");
  tn_buffer *file;
  uint32_t flags = options == NULL ? 0 : options->flags;
  tn__slice given = { bytes, size };
  bool is_text = (flags & TN_IMPORT_TEXT) != 0 || tn__pbtxt_is_text(given);
  st = is_text ? translate(given, name, &file, err) : tn__bytes_copy(bytes, size, &file, err);
  if (st != TN_OK) return st;
  st = import(graph, file, name, flags, err);
  tn_buffer_unref(file);
  return st;
}

tn_status tn_graph_import_file(tn_graph *graph, const char *path, const tn_import_options *options, tn_error *err)
{
  tn__error_reset(err);
  tn_status st = check_options(options, err);
  if (st != TN_OK) return st;
  if (graph == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: no graph given", path == NULL ? "" : path);
  tn_buffer *file;
  st = tn__bytes_load(path, FILE_LIMIT, &file, err);
  if (st != TN_OK) return st;
  const char *name = options != NULL && options->file != NULL ? options->file : path;
  uint32_t flags = options == NULL ? 0 : options->flags;
  const tn_buffer_desc *desc = tn_buffer_describe(file);
  tn__slice given = { desc->data, desc->bytes };
  if ((flags & TN_IMPORT_TEXT) != 0 || tn__pbtxt_is_path(path) || tn__pbtxt_is_text(given)) {
    tn_buffer *text = file;
    st = translate(given, name, &file, err);
    tn_buffer_unref(text);
    if (st != TN_OK) return st;
  }
  st = import(graph, file, name, flags, err);
  tn_buffer_unref(file);
  return st;
}
