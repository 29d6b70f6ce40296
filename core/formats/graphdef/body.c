/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a FunctionDef other than names and edges: attributes of its nodes, of its arguments and of itself. They
 * are read on demand, from bytes that were checked when the library was read. */
#include <core/formats/graphdef/functions.h>

#include <string.h>

enum { ARG_ATTR = 1 /* in ArgAttrs */ };

typedef struct reader {
  const tn_function *f;
  tn__function_body *body;
  tn_buffer *holder; /* owner of the bytes; borrowed */
  tn_error *err;
} reader;

static tn_status no_memory(reader *r) { return tn__no_memory(r->err, "body of a function", 0); }

static tn_status malformed(reader *r, const tn__fault *fault)
{
  return tn_error_set(r->err, TN_INVALID_ARGUMENT, "function '%s': byte %zu: %s", r->f->name,
                      (size_t)(fault->at - (const uint8_t *)r->f->proto.data), fault->what);
}

static const char *copy(reader *r, tn__slice text)
{
  return text.size == 0 ? "" : tn__arena_string(&r->body->arena, text.data, text.size);
}

/* ---- attributes ---- */

/* Numbers and placeholders are decoded now, other values on demand. */
static tn_status read_attr(reader *r, tn__slice entry, tn__attr *out)
{
  tn__attr_head head;
  tn__fault fault;
  tn__slice key = tn__field_text(entry, TN__E_KEY), value = tn__field_text(entry, TN__E_VALUE);
  if (!tn__attr_scan(value, 1, &head, &fault)) return malformed(r, &fault);
  *out = (tn__attr){ .name = copy(r, key), .name_size = (uint32_t)key.size, .kind = (uint8_t)head.kind,
                     .proto = value };
  if (out->name == NULL) return no_memory(r);
  bool is_text = head.kind == TN_ATTR_PLACEHOLDER;
  if (is_text || (head.kind < TN_ATTR_SHAPE && head.kind != TN_ATTR_STRING))
    return tn__attr_decode(&head, r->holder, &r->body->arena, out, r->err);
  out->lazy = 1;
  atomic_init(&out->v.decoded.value, NULL);
  out->v.decoded.holder = r->holder;
  return TN_OK;
}

/* Adds the entries of a map to op's attributes; make_room has reserved room. */
static tn_status read_attrs(reader *r, tn__slice message, uint32_t field, tn_operation *op)
{
  tn_status st = TN_OK;
  tn__wire w = tn__wire_read(message);
  while (st == TN_OK && tn__wire_next(&w))
    if (tn__wire_is(&w, field, TN__WIRE_BYTES)) st = read_attr(r, w.bytes, &op->attrs[op->n_attrs++]);
  if (st == TN_OK) tn__op_sort_attrs(op);
  return st;
}

/* Reserves room for n attributes; slots are 16 bits wide. */
static tn_status make_room(reader *r, size_t n, tn_operation *op)
{
  if (n >= UINT16_MAX)
    return tn_error_set(r->err, TN_INVALID_ARGUMENT, "function '%s': '%s' has %zu attributes, at most %d are supported",
                        r->f->name, op->name, n, UINT16_MAX - 1);
  op->attrs = tn__arena_array(&r->body->arena, n, sizeof *op->attrs);
  return op->attrs == NULL ? no_memory(r) : TN_OK;
}

/* Assigns the attributes to the slots of the schema. Values are not checked: they may be placeholders. */
static tn_status set_slots(reader *r, tn_operation *op)
{
  const tn_op_schema *s = op->schema;
  if (s == NULL || s->n_attrs == 0) return TN_OK;
  op->slots = tn__arena_array(&r->body->arena, s->n_attrs, sizeof *op->slots);
  if (op->slots == NULL) return no_memory(r);
  for (uint32_t i = 0; i < op->n_attrs; i++) {
    int32_t k = tn__schema_attr_index(s, op->attrs[i].name, op->attrs[i].name_size);
    if (k >= 0) op->slots[k] = (uint16_t)(i + 1);
  }
  return TN_OK;
}

/* ---- what carries them ---- */

/* An operation of a body has only names and attributes. It belongs to graph->bodies. */
static void start(reader *r, tn_operation *op, const char *name, const char *type)
{
  op->graph = r->f->graph->bodies;
  op->name = name;
  op->name_size = (uint32_t)strlen(name);
  op->type = type;
  op->device = "";
  op->hash = tn__hash(name, op->name_size);
}

/* Reads the attributes of a node. The op may be registered, or be a function of the library, or neither. */
static tn_status read_node(reader *r, tn__slice proto, const tn__function_node *node, tn_operation *op)
{
  start(r, op, node->name, node->op);
  op->proto = proto;
  op->schema = tn__schema_find(op->type, strlen(op->type));
  if (op->schema == NULL)
    op->schema = tn__functions_schema(atomic_load_explicit(&r->f->graph->functions, memory_order_acquire), op->type,
                                      strlen(op->type));
  op->traits = op->schema == NULL ? 0 : op->schema->traits;
  op->device = copy(r, tn__field_text(proto, TN__N_DEVICE));
  if (op->device == NULL) return no_memory(r);
  tn_status st = make_room(r, tn__field_count(proto, TN__N_ATTR), op);
  if (st == TN_OK) st = read_attrs(r, proto, TN__N_ATTR, op);
  return st == TN_OK ? set_slots(r, op) : st;
}

/* The nodes have the same order as f->nodes, which were read from the same bytes. */
static tn_status read_nodes(reader *r)
{
  tn__function_body *b = r->body;
  b->nodes = tn__arena_array(&b->arena, r->f->n_nodes, sizeof *b->nodes);
  if (b->nodes == NULL) return no_memory(r);
  tn_status st = TN_OK;
  size_t i = 0;
  tn__wire w = tn__wire_read(r->f->proto);
  while (st == TN_OK && tn__wire_next(&w)) {
    if (!tn__wire_is(&w, TN__F_NODE, TN__WIRE_BYTES)) continue;
    st = read_node(r, w.bytes, &r->f->nodes[i], &b->nodes[i]);
    i++;
  }
  return st;
}

/* Reads an entry of a map by argument: returns the number of the argument, and its value in *value. */
static uint64_t argument_of(tn__slice entry, tn__wire *value)
{
  uint64_t key = 0;
  tn__wire w = tn__wire_read(entry);
  while (tn__wire_next(&w)) {
    if (tn__wire_is(&w, TN__E_KEY, TN__WIRE_VARINT)) key = w.value;
    if (w.field == TN__E_VALUE) *value = w;
  }
  return key;
}

/* Reads an entry of the maps arg_attr or resource_arg_unique_id. */
static tn_status read_argument(reader *r, const tn__wire *entry)
{
  tn__wire value = { .type = TN__WIRE_FIXED64 };
  uint64_t i = argument_of(entry->bytes, &value);
  if (i >= r->f->schema.n_inputs) return TN_OK; /* no such argument: ignored, but kept in the bytes */
  if (entry->field == TN__F_RESOURCE) {
    if (value.type == TN__WIRE_VARINT) r->body->resources[i] = (int64_t)(uint32_t)value.value;
    return TN_OK;
  }
  if (value.type != TN__WIRE_BYTES) return TN_OK;
  tn_operation *op = &r->body->inputs[i];
  op->n_attrs = 0; /* of two entries for one argument the last one counts */
  tn_status st = make_room(r, tn__field_count(value.bytes, ARG_ATTR), op);
  return st == TN_OK ? read_attrs(r, value.bytes, ARG_ATTR, op) : st;
}

/* One operation for each argument, which carries its attributes. */
static tn_status read_arguments(reader *r)
{
  tn__function_body *b = r->body;
  uint32_t n = r->f->schema.n_inputs;
  b->inputs = tn__arena_array(&b->arena, n, sizeof *b->inputs);
  b->resources = tn__arena_array(&b->arena, n, sizeof *b->resources);
  if (b->inputs == NULL || b->resources == NULL) return no_memory(r);
  for (uint32_t i = 0; i < n; i++) {
    start(r, &b->inputs[i], r->f->schema.inputs[i].name, r->f->name);
    b->resources[i] = -1;
  }
  tn_status st = TN_OK;
  tn__wire w = tn__wire_read(r->f->proto);
  while (st == TN_OK && tn__wire_next(&w))
    if (tn__wire_is(&w, TN__F_ARG_ATTR, TN__WIRE_BYTES) || tn__wire_is(&w, TN__F_RESOURCE, TN__WIRE_BYTES))
      st = read_argument(r, &w);
  return st;
}

/* One operation that carries the function's own attributes. */
static tn_status read_self(reader *r)
{
  tn_operation *self = r->body->self = tn__arena_zalloc(&r->body->arena, sizeof *self);
  if (self == NULL) return no_memory(r);
  start(r, self, r->f->name, r->f->name);
  tn_status st = make_room(r, tn__field_count(r->f->proto, TN__F_ATTR), self);
  return st == TN_OK ? read_attrs(r, r->f->proto, TN__F_ATTR, self) : st;
}

/* ---- the whole body ---- */

static void free_body(tn__owned *owned)
{
  tn__function_body *b = (tn__function_body *)owned;
  tn__arena_fini(&b->arena);
  tn__free(b, sizeof *b);
}

/* The body is not visible to other threads until the caller publishes it. */
tn_status tn__function_body_read(const tn_function *f, tn__function_body **out, tn_error *err)
{
  *out = NULL;
  tn__function_body *b = tn__zalloc(sizeof *b);
  if (b == NULL) return tn__no_memory(err, "body of a function", sizeof *b);
  b->owned.free = free_body;
  tn__arena_init(&b->arena, 1024);
  reader r = { f, b, f->holder, err };
  tn_status st = read_nodes(&r);
  if (st == TN_OK) st = read_arguments(&r);
  if (st == TN_OK) st = read_self(&r);
  if (st == TN_OK)
    *out = b;
  else
    free_body(&b->owned);
  return st;
}
