/* SPDX-License-Identifier: Apache-2.0 */
/* AttrValue: attributes of nodes, scanned and decoded. */
#include <core/formats/graphdef/functions.h>

#include <string.h>

/* AttrValue */
enum { A_LIST = 1, A_S = 2, A_I = 3, A_F = 4, A_B = 5, A_TYPE = 6, A_SHAPE = 7, A_TENSOR = 8, A_PLACEHOLDER = 9,
       A_FUNC = 10 };
/* AttrValue.ListValue has the field numbers of AttrValue, except for functions. */
enum { L_FUNC = 9 };
/* NameAttrList and its map's entries */
enum { FUNC_NAME = 1, FUNC_ATTR = 2, ENTRY_KEY = 1, ENTRY_VALUE = 2 };

static bool too_deep(tn__slice proto, tn__fault *fault)
{
  *fault = (tn__fault){ (const uint8_t *)proto.data, "messages are nested too deeply" };
  return false;
}

/* ---- functions ---- */

static bool scan_entry(tn__slice proto, unsigned depth, tn__fault *fault)
{
  tn__wire w = tn__wire_read(proto);
  tn__attr_head head;
  while (tn__wire_next(&w))
    if (tn__wire_is(&w, ENTRY_VALUE, TN__WIRE_BYTES) && !tn__attr_scan(w.bytes, depth, &head, fault)) return false;
  return w.error == NULL || tn__fault_of(&w, fault);
}

/* Functions nest in attributes of functions; `depth` bounds the recursion. */
static bool scan_func(tn__slice proto, unsigned depth, tn__fault *fault)
{
  if (depth > TN__WIRE_DEPTH) return too_deep(proto, fault);
  tn__wire w = tn__wire_read(proto);
  while (tn__wire_next(&w))
    if (tn__wire_is(&w, FUNC_ATTR, TN__WIRE_BYTES) && !scan_entry(w.bytes, depth + 2, fault)) return false;
  return w.error == NULL || tn__fault_of(&w, fault);
}

static tn__slice func_name(tn__slice proto)
{
  tn__slice name = { "", 0 };
  tn__wire w = tn__wire_read(proto);
  while (tn__wire_next(&w))
    if (tn__wire_is(&w, FUNC_NAME, TN__WIRE_BYTES)) name = w.bytes;
  return name;
}

/* ---- lists ---- */

/* The kind of the items in a field of a list; TN_ATTR_NONE: not a field with items. */
static int32_t item_kind(const tn__wire *w)
{
  switch (w->field) {
  case A_S: return w->type == TN__WIRE_BYTES ? TN_ATTR_STRING : TN_ATTR_NONE;
  case A_I: return w->type == TN__WIRE_BYTES || w->type == TN__WIRE_VARINT ? TN_ATTR_INT : TN_ATTR_NONE;
  case A_F: return w->type == TN__WIRE_BYTES || w->type == TN__WIRE_FIXED32 ? TN_ATTR_FLOAT : TN_ATTR_NONE;
  case A_B: return w->type == TN__WIRE_BYTES || w->type == TN__WIRE_VARINT ? TN_ATTR_BOOL : TN_ATTR_NONE;
  case A_TYPE: return w->type == TN__WIRE_BYTES || w->type == TN__WIRE_VARINT ? TN_ATTR_TYPE : TN_ATTR_NONE;
  case A_SHAPE: return w->type == TN__WIRE_BYTES ? TN_ATTR_SHAPE : TN_ATTR_NONE;
  case A_TENSOR: return w->type == TN__WIRE_BYTES ? TN_ATTR_TENSOR : TN_ATTR_NONE;
  case L_FUNC: return w->type == TN__WIRE_BYTES ? TN_ATTR_FUNC : TN_ATTR_NONE;
  default: return TN_ATTR_NONE;
  }
}

/* The number of items in a field of a list. */
static size_t count_items(int32_t kind, const tn__wire *w)
{
  size_t n = 1;
  if (w->type != TN__WIRE_BYTES) return 1;
  if (kind == TN_ATTR_INT || kind == TN_ATTR_BOOL || kind == TN_ATTR_TYPE) tn__wire_count_varints(w->bytes, &n);
  if (kind == TN_ATTR_FLOAT) n = w->bytes.size / sizeof(float);
  return n;
}

static bool check_varints(const tn__wire *w, tn__fault *fault)
{
  const uint8_t *p = (const uint8_t *)w->bytes.data, *end = p + w->bytes.size;
  uint64_t value;
  while (p < end) {
    if (tn__wire_varint(&p, end, &value)) continue;
    *fault = (tn__fault){ p, "a number is cut short or longer than ten bytes" };
    return false;
  }
  return true;
}

/* Checks a field of a list: a packed run, or an item. */
static bool scan_item(int32_t kind, const tn__wire *w, unsigned depth, tn__fault *fault)
{
  if (w->type != TN__WIRE_BYTES) return true;
  switch (kind) {
  case TN_ATTR_INT:
  case TN_ATTR_BOOL:
  case TN_ATTR_TYPE: return check_varints(w, fault);
  case TN_ATTR_FLOAT:
    if (w->bytes.size % sizeof(float) == 0) return true;
    *fault = (tn__fault){ w->at, "a run of floats is cut short" };
    return false;
  case TN_ATTR_SHAPE: return tn__shapeproto_check(w->bytes, fault);
  case TN_ATTR_TENSOR: return tn__tensorproto_check(w->bytes, fault);
  case TN_ATTR_FUNC: return scan_func(w->bytes, depth + 1, fault);
  default: return true;
  }
}

/* The kind of a list is that of its first item; one without items is an empty list of unknown kind. */
static bool scan_list(tn__slice proto, unsigned depth, tn__attr_head *out, tn__fault *fault)
{
  tn__wire w = tn__wire_read(proto);
  int32_t kind = TN_ATTR_NONE;
  while (tn__wire_next(&w)) {
    int32_t found = item_kind(&w);
    if (found == TN_ATTR_NONE) continue;
    if (kind != TN_ATTR_NONE && kind != found) out->mixed = true;
    if (kind == TN_ATTR_NONE) kind = found;
    if (!scan_item(found, &w, depth, fault)) return false;
  }
  out->kind = TN_ATTR_LIST + kind;
  out->body = proto;
  return w.error == NULL || tn__fault_of(&w, fault);
}

/* ---- the value ---- */

/* The kind of a field of wire type varint; TN_ATTR_NONE: not a value. */
static int32_t varint_kind(uint32_t field)
{
  switch (field) {
  case A_I: return TN_ATTR_INT;
  case A_B: return TN_ATTR_BOOL;
  case A_TYPE: return TN_ATTR_TYPE;
  default: return TN_ATTR_NONE;
  }
}

static void set_body(tn__attr_head *out, int32_t kind, const tn__wire *w)
{
  out->kind = kind;
  out->body = w->bytes;
}

/* Of several values the last one counts, as in a protobuf oneof. */
bool tn__attr_scan(tn__slice proto, unsigned depth, tn__attr_head *out, tn__fault *fault)
{
  *out = (tn__attr_head){ .kind = TN_ATTR_NONE };
  if (depth > TN__WIRE_DEPTH) return too_deep(proto, fault);
  tn__wire w = tn__wire_read(proto);
  while (tn__wire_next(&w)) {
    bool ok = true;
    if (w.type == TN__WIRE_VARINT && varint_kind(w.field) != TN_ATTR_NONE) {
      out->kind = varint_kind(w.field);
      out->value = w.value;
    } else if (tn__wire_is(&w, A_F, TN__WIRE_FIXED32)) {
      out->kind = TN_ATTR_FLOAT;
      out->value = w.value;
    } else if (w.type == TN__WIRE_BYTES) {
      switch (w.field) {
      case A_LIST: ok = scan_list(w.bytes, depth + 1, out, fault); break;
      case A_S: set_body(out, TN_ATTR_STRING, &w); break;
      case A_SHAPE: set_body(out, TN_ATTR_SHAPE, &w), ok = tn__shapeproto_check(w.bytes, fault); break;
      case A_TENSOR: set_body(out, TN_ATTR_TENSOR, &w), ok = tn__tensorproto_check(w.bytes, fault); break;
      case A_PLACEHOLDER: set_body(out, TN_ATTR_PLACEHOLDER, &w); break;
      case A_FUNC: set_body(out, TN_ATTR_FUNC, &w), ok = scan_func(w.bytes, depth + 1, fault); break;
      default: break;
      }
    }
    if (!ok) return false;
  }
  return w.error == NULL || tn__fault_of(&w, fault);
}

/* ---- decoding ---- */

static tn_status no_memory(tn_error *err) { return tn__no_memory(err, "attribute", 0); }

static tn_status decode_text(tn__slice text, tn__arena *arena, tn__slice *out, tn_error *err)
{
  *out = (tn__slice){ tn__arena_string(arena, text.data, text.size), text.size };
  return out->data != NULL ? TN_OK : no_memory(err);
}

/* Decodes the name and the number of attributes; the attributes stay encoded. */
static tn_status decode_func(tn__slice proto, tn_buffer *holder, tn__arena *arena, tn__func *out, tn_error *err)
{
  size_t n = 0;
  tn__wire w = tn__wire_read(proto);
  while (tn__wire_next(&w)) n += tn__wire_is(&w, FUNC_ATTR, TN__WIRE_BYTES);
  out->attrs = NULL;
  if (n > 0) {
    out->attrs = tn__arena_alloc(arena, sizeof *out->attrs);
    if (out->attrs == NULL) return no_memory(err);
    *out->attrs = (tn__func_attrs){ .proto = proto, .holder = holder, .n = n };
    atomic_init(&out->attrs->value, NULL);
  }
  return decode_text(func_name(proto), arena, &out->name, err);
}

static tn_status decode_tensor(tn__slice proto, tn_buffer *holder, tn__arena *arena, tn__lazy_tensor **out,
                               tn_error *err)
{
  tn__lazy_tensor *lazy = tn__arena_alloc(arena, sizeof *lazy);
  if (lazy == NULL) return no_memory(err);
  atomic_init(&lazy->tensor, NULL);
  lazy->proto = proto;
  lazy->holder = holder;
  *out = lazy;
  return TN_OK;
}

/* The items of a list while they are decoded. */
typedef struct items {
  int32_t kind; /* of an item */
  void *at;     /* the array, with room for all */
  size_t n;     /* decoded so far */
} items;

static void put_number(items *list, uint64_t value)
{
  size_t i = list->n++;
  switch (list->kind) {
  case TN_ATTR_INT: ((int64_t *)list->at)[i] = (int64_t)value; break;
  case TN_ATTR_BOOL: ((tn_bool *)list->at)[i] = value != 0; break;
  default: ((tn_dtype *)list->at)[i] = (tn_dtype)value; break;
  }
}

static void put_float(items *list, uint32_t bits) { memcpy((float *)list->at + list->n++, &bits, sizeof bits); }

/* A packed run of numbers; the scan has checked it. */
static void put_run(items *list, tn__slice run)
{
  const uint8_t *p = (const uint8_t *)run.data, *end = p + run.size;
  uint64_t value;
  if (list->kind == TN_ATTR_FLOAT) {
    memcpy((float *)list->at + list->n, p, run.size);
    list->n += run.size / sizeof(float);
    return;
  }
  while (p < end && tn__wire_varint(&p, end, &value)) put_number(list, value);
}

/* Adds the items of one field of the list's kind. */
static tn_status put_item(items *list, const tn__wire *w, tn_buffer *holder, tn__arena *arena, tn_error *err)
{
  size_t i = list->n;
  switch (list->kind) {
  case TN_ATTR_STRING: list->n++; return decode_text(w->bytes, arena, (tn__slice *)list->at + i, err);
  case TN_ATTR_FUNC: list->n++; return decode_func(w->bytes, holder, arena, (tn__func *)list->at + i, err);
  case TN_ATTR_SHAPE: list->n++; return tn__shapeproto_decode(w->bytes, arena, (tn__shape *)list->at + i, err);
  case TN_ATTR_TENSOR: list->n++; return decode_tensor(w->bytes, holder, arena, (tn__lazy_tensor **)list->at + i, err);
  default: break;
  }
  if (w->type == TN__WIRE_BYTES)
    put_run(list, w->bytes);
  else if (list->kind == TN_ATTR_FLOAT)
    put_float(list, (uint32_t)w->value);
  else
    put_number(list, w->value);
  return TN_OK;
}

/* Two passes: the first one counts the items. Fields of another kind than the list's are ignored. */
static tn_status decode_list(const tn__attr_head *head, tn_buffer *holder, tn__arena *arena, tn__attr *out,
                             tn_error *err)
{
  items list = { .kind = head->kind - TN_ATTR_LIST };
  size_t n = 0;
  tn__wire w = tn__wire_read(head->body);
  while (tn__wire_next(&w))
    if (item_kind(&w) == list.kind) n += list.kind == TN_ATTR_NONE ? 0 : count_items(list.kind, &w);
  out->v.list.items = NULL;
  out->v.list.n = n;
  if (n == 0) return TN_OK;
  out->v.list.items = list.at = tn__arena_array(arena, n, tn__attr_item_size(list.kind));
  if (list.at == NULL) return no_memory(err);
  tn_status st = TN_OK;
  w = tn__wire_read(head->body);
  while (st == TN_OK && tn__wire_next(&w))
    if (item_kind(&w) == list.kind) st = put_item(&list, &w, holder, arena, err);
  return st;
}

tn_status tn__attr_decode(const tn__attr_head *head, tn_buffer *holder, tn__arena *arena, tn__attr *out, tn_error *err)
{
  out->kind = (uint8_t)head->kind;
  if ((head->kind & TN_ATTR_LIST) != 0) return decode_list(head, holder, arena, out, err);
  switch (head->kind) {
  case TN_ATTR_INT: out->v.i = (int64_t)head->value; break;
  case TN_ATTR_BOOL: out->v.b = head->value != 0; break;
  case TN_ATTR_TYPE: out->v.type = (tn_dtype)head->value; break;
  case TN_ATTR_FLOAT: {
    uint32_t bits = (uint32_t)head->value;
    memcpy(&out->v.f, &bits, sizeof bits);
    break;
  }
  case TN_ATTR_STRING:
  case TN_ATTR_PLACEHOLDER: return decode_text(head->body, arena, &out->v.text, err);
  case TN_ATTR_FUNC: return decode_func(head->body, holder, arena, &out->v.func, err);
  case TN_ATTR_SHAPE: return tn__shapeproto_decode(head->body, arena, &out->v.shape, err);
  case TN_ATTR_TENSOR: return decode_tensor(head->body, holder, arena, &out->v.tensor, err);
  default: break;
  }
  return TN_OK;
}
