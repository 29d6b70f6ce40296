/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the nodes of a GraphDef: names, attributes, types of outputs, inputs. */
#include <core/formats/graphdef/import.h>

#include <string.h>

/* GraphDef, NodeDef, and the entries of its map */
enum { G_NODE = 1 };
enum { N_NAME = 1, N_OP = 2, N_INPUT = 3, N_DEVICE = 4, N_ATTR = 5 };
enum { E_KEY = 1, E_VALUE = 2 };

#define no_memory tn__import_no_memory
#define shown tn__import_shown

/* Prefixes the error of a node with file and node. */
static tn_status in_node(tn__importer *im, const tn_operation *op, tn_status st)
{
  if (st == TN_OK || im->err == NULL) return st;
  tn_error_prefix(im->err, "%s: node '%s'", im->name, op->name);
  tn_error_set_node(im->err, op->name);
  return st;
}

/* ---- texts ---- */

static tn__cache_entry *cache_place(tn__cache_entry *cache, tn__slice key)
{
  const unsigned char *p = (const unsigned char *)key.data;
  size_t h = key.size * 31;
  if (key.size > 0) h += p[0] * 7u + p[key.size / 2] * 13u + p[key.size - 1] * 17u;
  return &cache[h % TN__IMPORT_CACHE];
}

/* Returns a copy of the text in the graph's arena, usually the same one for equal texts. NULL: out of memory. */
static const char *text_of(tn__importer *im, tn__slice text)
{
  if (text.size == 0) return "";
  tn__cache_entry *e = cache_place(im->texts, text);
  if (e->value != NULL && tn__slice_equal(e->key, text)) return e->value;
  const char *copy = tn__arena_string(&im->graph->arena, text.data, text.size);
  if (copy != NULL) *e = (tn__cache_entry){ text, copy };
  return copy;
}

/* The schema of an op or function, cached with names that have none. */
static const tn_op_schema *schema_of(tn__importer *im, tn__slice type)
{
  static const char none; /* marks a name that was looked up and not found */
  tn__cache_entry *e = cache_place(im->types, type);
  if (e->value == NULL || !tn__slice_equal(e->key, type)) {
    const tn_op_schema *schema = tn__schema_find(type.data, type.size);
    if (schema == NULL) schema = tn__functions_schema(im->functions, type.data, type.size);
    *e = (tn__cache_entry){ type, schema != NULL ? (const void *)schema : &none };
  }
  return e->value == &none ? NULL : e->value;
}

/* ---- names and attributes ---- */

static bool key_is_valid(tn__slice key)
{
  for (size_t i = 0; i < key.size; i++)
    if ((unsigned char)key.data[i] < 0x20 || key.data[i] == 0x7f) return false;
  return key.size > 0 && key.size <= UINT16_MAX;
}

/* Attributes in the schema are decoded now, except for tensors. Of other attributes only numbers are; their other
 * values stay encoded until they are read. */
static tn_status fill_attr(tn__importer *im, const tn__attr_spec *spec, const tn__attr_head *head, tn__attr *a)
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

/* Adds an entry of a node's map of attributes. Its encoding is checked completely, whether or not it is decoded. */
static tn_status add_attr(tn__importer *im, tn_operation *op, tn__slice entry)
{
  tn__slice key = { "", 0 }, value = { NULL, 0 };
  tn__wire w = tn__wire_read(entry);
  while (tn__wire_next(&w)) {
    if (tn__wire_is(&w, E_KEY, TN__WIRE_BYTES)) key = w.bytes;
    if (tn__wire_is(&w, E_VALUE, TN__WIRE_BYTES)) value = w.bytes;
  }
  if (w.error != NULL) return tn__import_malformed_field(im, &w);
  if (!key_is_valid(key))
    return in_node(im, op, tn_error_set(im->err, TN_INVALID_ARGUMENT, "an attribute has an invalid name"));
  tn__attr_head head;
  tn__fault fault;
  if (!tn__attr_scan(value, 4, &head, &fault)) return tn__import_malformed(im, &fault);
  if (!tn__import_grow(im, (void **)&im->attrs, &im->attr_room, im->n_attrs + 1, sizeof *im->attrs))
    return no_memory(im);

  int32_t k = op->schema == NULL ? -1 : tn__schema_attr_index(op->schema, key.data, key.size);
  const tn__attr_spec *spec = k < 0 ? NULL : &op->schema->attrs[k];
  tn__attr *a = &im->attrs[im->n_attrs++];
  *a = (tn__attr){ .name = spec != NULL ? spec->value.name : text_of(im, key),
                   .name_size = (uint32_t)key.size,
                   .proto = value };
  if (a->name == NULL) return no_memory(im);
  tn_status st = fill_attr(im, spec, &head, a);
  if (st == TN_OK && im->names.renames && tn__slice_is(key, "_class")) st = tn__import_rename_class(im, op, &head, a);
  return in_node(im, op, st);
}

/* Collects the attributes in the importer's array first: their number is not known. */
static tn_status read_attrs(tn__importer *im, tn_operation *op)
{
  tn_status st = TN_OK;
  im->n_attrs = 0;
  for (size_t i = 0; st == TN_OK && i < im->entries.n; i++) st = add_attr(im, op, im->entries.at[i]);
  if (st != TN_OK || im->n_attrs == 0) return st;
  op->attrs = tn__arena_alloc(&im->graph->arena, im->n_attrs * sizeof *op->attrs);
  if (op->attrs == NULL) return no_memory(im);
  memcpy(op->attrs, im->attrs, im->n_attrs * sizeof *op->attrs);
  op->n_attrs = (uint32_t)im->n_attrs;
  tn__op_sort_attrs(op);
  return TN_OK;
}

typedef struct node_fields {
  tn__slice name, type, device;
} node_fields;

/* Collects the fields of a node. Of several names, ops or devices the last one counts. */
static tn_status read_fields(tn__importer *im, tn__slice proto, node_fields *f)
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
      if (!tn__import_add_slice(im, &im->inputs, w.bytes)) return no_memory(im);
      break;
    case N_ATTR:
      if (!tn__import_add_slice(im, &im->entries, w.bytes)) return no_memory(im);
      break;
    default: break;
    }
  }
  return w.error == NULL ? TN_OK : tn__import_malformed_field(im, &w);
}

static tn_status check_names(tn__importer *im, const node_fields *f, tn__slice proto)
{
  if (!tn__name_is_valid(f->name.data, f->name.size)) /* S-GRA-07 */
    return tn_error_set(im->err, TN_INVALID_ARGUMENT, "%s: byte %zu: '%.*s' is not a valid node name", im->name,
                        (size_t)(proto.data - (const char *)im->origin.begin), shown(f->name), f->name.data);
  if (!tn__op_type_is_valid(f->type.data, f->type.size))
    return tn_error_set(im->err, TN_INVALID_ARGUMENT, "%s: node '%.*s': '%.*s' is not a valid op name", im->name,
                        shown(f->name), f->name.data, shown(f->type), f->type.data);
  if (!tn__device_is_valid(f->device.data, f->device.size)) /* S-CFG-06 */
    return tn_error_set(im->err, TN_INVALID_ARGUMENT,
                        "%s: node '%.*s': malformed device '%.*s', wanted as '/device:CPU:0'", im->name, shown(f->name),
                        f->name.data, shown(f->device), f->device.data);
  return TN_OK;
}

/* Sets name, device, op and schema. The node is `edited` if the file's name or device is replaced. */
static tn_status set_names(tn__importer *im, tn_operation *op, const node_fields *f)
{
  tn__slice name = f->name, device = f->device;
  if (im->names.renames) {
    tn_status st = tn__import_rename(im, f->name, &name);
    if (st != TN_OK) return st;
  }
  if (device.size == 0 && im->options->default_device != NULL) device = tn__slice_of(im->options->default_device);
  if (name.size > INT32_MAX) return no_memory(im);
  op->name = im->names.renames ? name.data : tn__arena_string(&im->graph->arena, name.data, name.size);
  op->name_size = (uint32_t)name.size;
  op->device = text_of(im, device);
  if (device.size > 0) atomic_store_explicit(&im->graph->names_devices, true, memory_order_relaxed);
  op->schema = schema_of(im, f->type);
  op->traits = op->schema == NULL ? 0 : op->schema->traits;
  op->type = op->schema == NULL ? text_of(im, f->type) : op->schema->name;
  if (op->name == NULL || op->device == NULL || op->type == NULL) return no_memory(im);
  op->hash = tn__hash(op->name, op->name_size);
  op->edited = device.size != f->device.size || !tn__slice_equal(name, f->name);
  if (op->schema == NULL && (im->flags & TN_IMPORT_REFUSE_UNKNOWN_OPS) != 0)
    return in_node(im, op, tn__op_not_registered(op->type, im->err));
  return TN_OK;
}

/* ---- inputs ---- */

typedef struct input {
  tn_output from; /* op is NULL if there is no such node, or not yet */
  tn__edge_name edge;
  tn__mapping *mapped; /* NULL: not mapped */
} input;

/* Finds the source of an input: mapped, of the file, or of the graph. */
static tn_status resolve(tn__importer *im, tn__slice text, bool is_control, input *out)
{
  tn__edge_name *edge = &out->edge;
  if (!tn__edge_name_parse(text.data, text.size, edge))
    return tn_error_set(im->err, TN_INVALID_ARGUMENT, "malformed input '%.*s'", shown(text), text.data);
  if (edge->is_control != is_control)
    return tn_error_set(im->err, TN_INVALID_ARGUMENT,
                        "input '%.*s' follows a control input ('^...'): control inputs must be last", shown(text),
                        text.data);
  out->mapped = im->n_map == 0 ? NULL : tn__import_mapped(im, edge);
  if (out->mapped != NULL)
    out->from = out->mapped->target;
  else
    out->from = (tn_output){ tn__import_find(im, edge->node), edge->index };
  if (out->from.op != &tn__import_left_out) return TN_OK;
  return tn_error_set(im->err, TN_INVALID_ARGUMENT,
                      "input '%.*s' belongs to a node that is left out because its outputs are mapped; map '%.*s' too",
                      shown(text), text.data, shown(text), text.data);
}

/* Data inputs end at the first control input. */
static tn_status allocate_inputs(tn__importer *im, tn_operation *op)
{
  const tn__slices *texts = &im->inputs;
  size_t n_data = 0;
  while (n_data < texts->n && (texts->at[n_data].size == 0 || texts->at[n_data].data[0] != '^')) n_data++;
  op->n_inputs = (uint32_t)n_data;
  op->n_controls = (uint32_t)(texts->n - n_data);
  if (n_data > 0) op->inputs = tn__arena_alloc(&im->graph->arena, n_data * sizeof *op->inputs);
  if (op->n_controls > 0) op->controls = tn__arena_alloc(&im->graph->arena, op->n_controls * sizeof *op->controls);
  return (n_data > 0 && op->inputs == NULL) || (op->n_controls > 0 && op->controls == NULL) ? no_memory(im) : TN_OK;
}

static tn_status not_there(tn__importer *im, tn__slice text) /* S-GRA-05 */
{
  return tn_error_set(im->err, TN_INVALID_ARGUMENT, "input '%.*s' names no node of the %s", shown(text), text.data,
                      im->names.prefix.size > 0 ? "file" : "graph");
}

/* Defers the inputs of op, one of which names a later node. */
static tn_status add_waiting(tn__importer *im, tn_operation *op)
{
  if (!tn__import_grow(im, (void **)&im->waiting, &im->waiting_room, im->n_waiting + 1, sizeof *im->waiting))
    return no_memory(im);
  im->waiting[im->n_waiting++] = op;
  return TN_OK;
}

/* Whether an export must write the edge differently from the file. */
static bool is_changed(const tn__importer *im, const input *in)
{
  if (in->mapped != NULL) return true;
  return im->names.renames && !tn__slice_equal((tn__slice){ in->from.op->name, in->from.op->name_size }, in->edge.node);
}

/* Adds a control edge; of several that are mapped to one operation only the first. */
static void add_control(tn__importer *im, tn_operation *op, const input *in)
{
  if (in->mapped != NULL) {
    tn__mapping *leader = &im->map[in->mapped->leader];
    if (leader->pass == im->pass) return;
    leader->pass = im->pass;
  }
  op->controls[op->n_controls++] = in->from.op;
}

static tn_status check_inputs(tn__importer *im, tn_operation *op)
{
  return tn__op_check_inputs(op, &im->graph->arena, im->err);
}

/* Resolves the inputs in im->inputs and checks their types. With `wait`, an input that names an unknown node defers all
 * inputs of op; otherwise it is an error. */
static tn_status read_inputs(tn__importer *im, tn_operation *op, bool wait)
{
  const tn__slices *texts = &im->inputs;
  im->pass++;
  op->n_controls = 0;
  for (size_t i = 0; i < texts->n; i++) {
    bool is_control = i >= op->n_inputs;
    input in;
    tn_status st = resolve(im, texts->at[i], is_control, &in);
    if (st != TN_OK) return st;
    if (in.from.op == NULL || (wait && in.from.op == op))
      return wait ? add_waiting(im, op) : not_there(im, texts->at[i]);
    if (is_control)
      add_control(im, op, &in);
    else
      op->inputs[i] = in.from;
    if ((im->names.renames || in.mapped != NULL) && is_changed(im, &in)) op->edited = true;
  }
  if (im->options->n_control_inputs > 0) {
    tn_status st = tn__import_add_controls(im, op);
    if (st != TN_OK) return st;
  }
  return check_inputs(im, op);
}

/* ---- nodes ---- */

/* Adds the node's name to the graph's index, and to `nodes` if names may change. */
static tn_status enter(tn__importer *im, tn_operation *op, tn__slice name)
{
  static const char there[] = "there are two nodes of this name"; /* S-GRA-08 */
  if (im->names.renames && tn__map_get(&im->names.nodes, name.data, name.size) != NULL)
    return tn_error_set(im->err, TN_INVALID_ARGUMENT, "%s", there);
  if (!tn__graph_index_add(im->graph, op)) { /* S-GRA-11 */
    bool twice = tn__graph_find_staged(im->graph, op->name, op->name_size)->id >= im->first;
    return tn_error_set(im->err, TN_INVALID_ARGUMENT, "%s", twice ? there : "the graph has a node of this name");
  }
  im->n_indexed++;
  return !im->names.renames || tn__map_put(&im->names.nodes, name.data, name.size, op, NULL) ? TN_OK : no_memory(im);
}

/* Unstages the node that was staged last: its outputs are replaced by outputs of the graph. */
static tn_status leave_out(tn__importer *im, tn__slice name)
{
  if (tn__map_get(&im->names.nodes, name.data, name.size) != NULL)
    return tn_error_set(im->err, TN_INVALID_ARGUMENT, "there are two nodes of this name");
  if (!tn__map_put(&im->names.nodes, name.data, name.size, (void *)&tn__import_left_out, NULL)) return no_memory(im);
  im->graph->staged--;
  return TN_OK;
}

static tn_status set_outputs(tn__importer *im, tn_operation *op)
{
  tn_status st = tn__op_check_attrs(op, &im->graph->arena, im->err);
  if (st == TN_OK) st = tn__op_set_outputs(op, &im->graph->arena, im->err);
  return st;
}

/* Reads one node. After an error the caller unstages it. */
static tn_status read_node(tn__importer *im, tn__slice proto)
{
  node_fields f = { { "", 0 }, { "", 0 }, { "", 0 } };
  tn_status st = read_fields(im, proto, &f);
  im->at = f.name;
  if (st == TN_OK) st = check_names(im, &f, proto);
  if (st != TN_OK) return st;
  tn_operation *op = tn__graph_stage(im->graph);
  op->proto = proto;
  if ((st = set_names(im, op, &f)) != TN_OK) return st;
  if ((st = read_attrs(im, op)) != TN_OK) return st;
  st = set_outputs(im, op);
  if (st == TN_OK && (im->flags & TN_IMPORT_SKIP_MAPPED_NODES) != 0 && tn__import_is_left_out(im, f.name, op))
    return in_node(im, op, leave_out(im, f.name));
  if (st == TN_OK) st = enter(im, op, f.name);
  if (st == TN_OK) st = allocate_inputs(im, op);
  if (st == TN_OK) st = read_inputs(im, op, true);
  return in_node(im, op, st);
}

static tn_status read_nodes(tn__importer *im)
{
  tn__wire w = tn__wire_read(im->bytes);
  tn_status st = TN_OK;
  while (st == TN_OK && tn__wire_next(&w))
    if (tn__wire_is(&w, G_NODE, TN__WIRE_BYTES)) st = read_node(im, w.bytes);
  return st;
}

/* Resolves the deferred inputs, which name later nodes. */
static tn_status read_waiting(tn__importer *im)
{
  tn_status st = TN_OK;
  im->all_read = true;
  for (size_t i = 0; st == TN_OK && i < im->n_waiting; i++) {
    tn_operation *op = im->waiting[i];
    node_fields f = { { "", 0 }, { "", 0 }, { "", 0 } };
    st = read_fields(im, op->proto, &f);
    im->at = f.name;
    if (st == TN_OK) st = in_node(im, op, read_inputs(im, op, false));
  }
  return st;
}

tn_status tn__import_read(tn__importer *im)
{
  tn_status st = read_nodes(im);
  return st == TN_OK ? read_waiting(im) : st;
}
