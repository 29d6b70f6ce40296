/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding of attributes and functions after their import. A graph calls these functions through its codec, without any
 * lock; their results are published by compare-and-swap (core/graph/attrs.c). */
#include <core/formats/graphdef/functions.h>

#include <string.h>

/* NameAttrList and its map's entries */
enum { FUNC_ATTR = 2, ENTRY_KEY = 1, ENTRY_VALUE = 2 };

static tn_status no_memory(tn_error *err) { return tn__no_memory(err, "attribute", 0); }

static tn_status malformed(const tn__fault *fault, tn__slice proto, tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "byte %zu: %s", (size_t)(fault->at - (const uint8_t *)proto.data),
                      fault->what);
}

static tn_status decode_late(tn__slice proto, tn_buffer *holder, tn__arena *arena, tn__attr *out, tn_error *err)
{
  tn__attr_head head;
  tn__fault fault;
  if (!tn__attr_scan(proto, 1, &head, &fault)) return malformed(&fault, proto, err);
  return tn__attr_decode(&head, holder, arena, out, err);
}

static tn_status decode_func_attr(tn__slice entry, tn_buffer *holder, tn__arena *arena, tn__attr *out, tn_error *err)
{
  tn__slice key = { "", 0 }, value = { NULL, 0 };
  tn__wire w = tn__wire_read(entry);
  while (tn__wire_next(&w)) {
    if (tn__wire_is(&w, ENTRY_KEY, TN__WIRE_BYTES)) key = w.bytes;
    if (tn__wire_is(&w, ENTRY_VALUE, TN__WIRE_BYTES)) value = w.bytes;
  }
  *out = (tn__attr){ .name = tn__arena_string(arena, key.data, key.size), .name_size = (uint32_t)key.size,
                     .proto = value };
  return out->name == NULL ? no_memory(err) : decode_late(value, holder, arena, out, err);
}

/* One level only: a function in these attributes keeps its own attributes encoded. */
static tn_status decode_func_attrs(const tn__func_attrs *of, tn__arena *arena, tn__attr *out, tn_error *err)
{
  size_t i = 0;
  tn_status st = TN_OK;
  tn__wire w = tn__wire_read(of->proto);
  while (st == TN_OK && tn__wire_next(&w))
    if (tn__wire_is(&w, FUNC_ATTR, TN__WIRE_BYTES)) st = decode_func_attr(w.bytes, of->holder, arena, &out[i++], err);
  return st;
}

const tn__codec tn__graphdef_codec = { decode_late,          tn__tensorproto_decode,
                                       tn__tensorproto_take, tn__tensorproto_outline,
                                       decode_func_attrs,    tn__function_body_read };

/* ---- for the builder ---- */

static tn_status decode_now(tn__lazy_tensor *lazy, tn_error *err)
{
  tn_tensor *tensor = NULL;
  tn_status st = tn__tensorproto_decode(lazy->proto, NULL, &tensor, err);
  atomic_init(&lazy->tensor, tensor);
  lazy->proto = (tn__slice){ NULL, 0 };
  return st;
}

/* The bytes belong to the caller, so they are copied to the builder's memory and tensors are decoded now. */
static tn_status set_proto(tn_operation_builder *b, tn__attr *a, tn__slice proto)
{
  tn__attr_head head;
  tn__fault fault;
  proto.data = tn__arena_string(&b->arena, proto.data, proto.size);
  if (proto.data == NULL) return no_memory(&b->error);
  if (!tn__attr_scan(proto, 1, &head, &fault)) return malformed(&fault, proto, &b->error);
  if (head.mixed) return tn_error_set(&b->error, TN_INVALID_ARGUMENT, "a list has values of several kinds");
  atomic_store_explicit(&b->graph->codec, &tn__graphdef_codec, memory_order_release);
  tn__attr value = { .name = a->name, .name_size = a->name_size, .proto = proto };
  tn_status st = tn__attr_decode(&head, NULL, &b->arena, &value, &b->error);
  if (st != TN_OK) return st;
  if (value.kind == TN_ATTR_TENSOR) st = decode_now(value.v.tensor, &b->error);
  if (value.kind == TN_ATTR_TENSOR + TN_ATTR_LIST)
    for (size_t i = 0; st == TN_OK && i < value.v.list.n; i++)
      st = decode_now(((tn__lazy_tensor *const *)value.v.list.items)[i], &b->error);
  *a = value; /* also after an error, so that tensors decoded so far are freed with the builder */
  return st;
}

void tn_operation_set_proto(tn_operation_builder *b, const char *attr, const void *bytes, size_t size)
{
  tn__attr *a = tn__builder_attr(b, attr);
  if (a == NULL) return;
  tn__slice proto = { bytes, size };
  if (set_proto(b, a, proto) != TN_OK) tn_error_prefix(&b->error, "attribute '%.100s'", attr);
}
