/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of nodes that are copied: some change, because a variable is a plain value now. */
#include <core/model/freeze/freeze.h>

#include <string.h>

/* Copies the field that w read. */
static void copy_field(tn__sink *s, const tn__wire *w) { tn__sink_put(s, w->at, (size_t)(w->p - w->at)); }

/* ---- copying ---- */

/* Whether an entry of "_class" names a node that the main body does not have. Other libraries refuse such a node. */
static bool is_astray(const tn__freeze_writer *w, tn__slice entry)
{
  static const char prefix[] = "loc:@";
  const size_t n = sizeof prefix - 1;
  const tn__freeze_body *body = w->use->body;
  if (entry.size < n || memcmp(entry.data, prefix, n) != 0) return false;
  size_t found = (size_t)tn__map_get(&body->names, entry.data + n, entry.size - n);
  return found == 0 || body->nodes[found - 1]->left_out;
}

static void put_class(tn__freeze_writer *w, tn__slice key, tn__slice value)
{
  tn__wire list = tn__wire_read(tn__field_text(value, TN__FZ_A_LIST));
  tn__freeze_places places = { 0, 0 };
  size_t n = 0, place = 0;
  while (tn__wire_next(&list)) {
    if (!tn__wire_is(&list, TN__FZ_L_S, TN__WIRE_BYTES) || is_astray(w, list.bytes)) continue;
    if (n++ == 0) {
      places = tn__freeze_open_attr(w->s, key);
      place = tn__freeze_open(w->s, TN__FZ_A_LIST);
    }
    copy_field(w->s, &list);
  }
  if (n == 0) return;
  tn__sink_end(w->s, place);
  tn__freeze_close_attr(w->s, places);
}

void tn__freeze_copy_attrs(tn__freeze_writer *w, tn__freeze_edit edit)
{
  tn__wire node = tn__wire_read(w->node->bytes);
  while (tn__wire_next(&node)) {
    if (!tn__wire_is(&node, TN__FZ_N_ATTR, TN__WIRE_BYTES)) continue;
    tn__slice key = tn__field_text(node.bytes, TN__FZ_KEY), value = tn__field_text(node.bytes, TN__FZ_VALUE);
    if (w->use->body->function == NULL && tn__slice_is(key, "_class"))
      put_class(w, key, value);
    else if (edit == NULL || !edit(w, key, value))
      copy_field(w->s, &node);
  }
}

/* ---- edits ---- */

bool tn__freeze_edit_private(tn__freeze_writer *w, tn__slice key, tn__slice value)
{
  (void)w, (void)value;
  return key.size == 0 || key.data[0] != '_' || tn__slice_is(key, "_output_shapes");
}

bool tn__freeze_edit_pass(tn__freeze_writer *w, tn__slice key, tn__slice value)
{
  (void)value;
  if (tn__slice_is(key, "T")) tn__freeze_put_type(w->s, "T", tn__freeze_type_of(w->fz, w->type)->dtype);
  return tn__slice_is(key, "T") || tn__slice_is(key, "_output_shapes");
}

/* The type of input or output i of a call that takes or returns resources; NULL: it is no variable's resource. */
static const tn__freeze_type *item_type(const tn__freeze_writer *w, bool output, size_t i)
{
  const tn__freeze_node *node = w->node;
  size_t input = i + tn__freeze_first(node->kind);
  uint32_t type = 0;
  if (output) {
    const tn__freeze_edge edge = { .from = w->number, .port = (uint32_t)i };
    type = i < TN__FREEZE_NONE ? tn__freeze_bound(w->use, &edge) : 0;
  } else if (input < node->n_data) {
    type = tn__freeze_bound(w->use, &w->use->body->edges[node->first + input]);
  }
  const tn__freeze_type *found = type == 0 ? NULL : tn__freeze_type_of(w->fz, type);
  return found == NULL || found->is_reference ? NULL : found;
}

static void put_item_type(tn__freeze_writer *w, bool output, size_t i, uint64_t dtype)
{
  const tn__freeze_type *type = item_type(w, output, i);
  tn__sink_varint(w->s, type == NULL ? dtype : (uint64_t)type->dtype);
}

/* Writes a list of types, packed. */
static void put_types(tn__freeze_writer *w, tn__slice key, tn__slice value, bool output)
{
  const tn__freeze_places places = tn__freeze_open_attr(w->s, key);
  size_t list = tn__freeze_open(w->s, TN__FZ_A_LIST), types = tn__freeze_open(w->s, TN__FZ_L_TYPE), i = 0;
  tn__wire items = tn__wire_read(tn__field_text(value, TN__FZ_A_LIST));
  while (tn__wire_next(&items)) {
    if (tn__wire_is(&items, TN__FZ_L_TYPE, TN__WIRE_VARINT)) put_item_type(w, output, i++, items.value);
    if (!tn__wire_is(&items, TN__FZ_L_TYPE, TN__WIRE_BYTES)) continue;
    const uint8_t *p = (const uint8_t *)items.bytes.data, *end = p + items.bytes.size;
    uint64_t dtype;
    while (p < end && tn__wire_varint(&p, end, &dtype)) put_item_type(w, output, i++, dtype);
  }
  tn__sink_end(w->s, types);
  tn__sink_end(w->s, list);
  tn__freeze_close_attr(w->s, places);
}

static void put_shapes(tn__freeze_writer *w, tn__slice key, tn__slice value, bool output)
{
  const tn__freeze_places places = tn__freeze_open_attr(w->s, key);
  size_t list = tn__freeze_open(w->s, TN__FZ_A_LIST), i = 0;
  tn__wire items = tn__wire_read(tn__field_text(value, TN__FZ_A_LIST));
  while (tn__wire_next(&items)) {
    if (!tn__wire_is(&items, TN__FZ_L_SHAPE, TN__WIRE_BYTES)) continue;
    const tn__freeze_type *type = item_type(w, output, i++);
    if (type == NULL)
      copy_field(w->s, &items);
    else
      tn__freeze_put_type_shape(w->s, TN__FZ_L_SHAPE, type);
  }
  tn__sink_end(w->s, list);
  tn__freeze_close_attr(w->s, places);
}

/* Whether the next call of the node is in this attribute. Attributes are visited in the order of their calls. */
static bool names_functions(const tn__freeze_writer *w, tn__slice key)
{
  const tn__freeze_body *body = w->use->body;
  return w->next_call < w->node->first_call + w->node->n_calls && body->calls[w->next_call].attr.data == key.data;
}

/* Writes a function value with the name that the function has now. */
static void put_function(tn__freeze_writer *w, uint32_t field, tn__slice func)
{
  const tn__freeze_body *body = w->use->body;
  const tn__freeze_use *callee = w->use->callees[w->next_call];
  size_t place = tn__freeze_open(w->s, field);
  tn__wire parts = tn__wire_read(func);
  tn__sink_bytes(w->s, TN__FZ_F_NAME, callee == NULL ? body->calls[w->next_call].name : tn__slice_of(callee->name));
  while (tn__wire_next(&parts))
    if (parts.field != TN__FZ_F_NAME) copy_field(w->s, &parts);
  tn__sink_end(w->s, place);
  uint32_t end = w->node->first_call + w->node->n_calls;
  while (++w->next_call < end && body->calls[w->next_call].nested) continue;
}

static void put_functions(tn__freeze_writer *w, tn__slice key, tn__slice value)
{
  const tn__freeze_places places = tn__freeze_open_attr(w->s, key);
  tn__wire parts = tn__wire_read(value);
  while (tn__wire_next(&parts)) {
    if (tn__wire_is(&parts, TN__FZ_A_FUNC, TN__WIRE_BYTES)) put_function(w, TN__FZ_A_FUNC, parts.bytes);
    if (!tn__wire_is(&parts, TN__FZ_A_LIST, TN__WIRE_BYTES)) continue;
    size_t place = tn__freeze_open(w->s, TN__FZ_A_LIST);
    tn__wire items = tn__wire_read(parts.bytes);
    while (tn__wire_next(&items))
      if (tn__wire_is(&items, TN__FZ_L_FUNC, TN__WIRE_BYTES)) put_function(w, TN__FZ_L_FUNC, items.bytes);
    tn__sink_end(w->s, place);
  }
  tn__freeze_close_attr(w->s, places);
}

static bool is_placeholder(tn__slice value)
{
  tn__wire w = tn__wire_read(value);
  bool list = false;
  while (tn__wire_next(&w)) list = list || tn__wire_is(&w, TN__FZ_A_LIST, TN__WIRE_BYTES);
  return !list;
}

bool tn__freeze_edit_each(tn__freeze_writer *w, tn__slice key, tn__slice value)
{
  if (!tn__slice_is(key, "T")) return tn__slice_is(key, "_output_shapes");
  if (is_placeholder(value))
    w->s->status = tn__freeze_refuse(w->fz, w->use->body, w->node, TN_UNIMPLEMENTED,
                                     "takes a variable, but its types are an attribute of the function");
  put_types(w, key, value, false);
  return true;
}

bool tn__freeze_edit_call(tn__freeze_writer *w, tn__slice key, tn__slice value)
{
  bool loop = w->node->kind == TN__FREEZE_LOOP;
  if (names_functions(w, key)) {
    put_functions(w, key, value);
    return true;
  }
  if (!w->bound) return false;
  if (tn__slice_is(key, loop ? "T" : "Tin") || (tn__slice_is(key, "Tout") && !is_placeholder(value))) {
    if (is_placeholder(value)) return tn__freeze_edit_each(w, tn__slice_of("T"), value);
    put_types(w, key, value, tn__slice_is(key, "Tout"));
    return true;
  }
  if (tn__slice_is(key, "output_shapes")) put_shapes(w, key, value, !loop);
  return tn__slice_is(key, "output_shapes") || tn__slice_is(key, "_output_shapes") ||
         tn__slice_is(key, "_read_only_resource_inputs");
}
