/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes operations and attributes as messages of a GraphDef: NodeDef, AttrValue, TensorProto, TensorShapeProto. The
 * size of a nested message is found by running the same function with a sink that only counts. */
#include <core/formats/graphdef/graphdef.h>

#include <string.h>

/* Field numbers: NodeDef and an entry of its map of attributes; AttrValue and its ListValue; NameAttrList,
 * TensorShapeProto and its dimensions; TensorProto. */
enum { N_NAME = 1, N_OP = 2, N_INPUT = 3, N_DEVICE = 4, N_ATTR = 5, E_KEY = 1, E_VALUE = 2 };
enum { A_LIST = 1, A_S = 2, A_I = 3, A_F = 4, A_B = 5, A_TYPE = 6, A_SHAPE = 7, A_TENSOR = 8, A_PLACEHOLDER = 9,
       A_FUNC = 10, L_FUNC = 9 };
enum { F_NAME = 1, S_DIM = 2, S_UNKNOWN_RANK = 3, D_SIZE = 1 };
enum { T_DTYPE = 1, T_SHAPE = 2, T_CONTENT = 4, T_STRING = 8 };

/* ---- shapes and tensors ---- */

static void write_dim(tn__sink *s, const void *what)
{
  const int64_t *size = what;
  if (*size != 0) tn__sink_int(s, D_SIZE, (uint64_t)*size);
}

static void write_shape(tn__sink *s, const void *what)
{
  const tn__shape *shape = what;
  if (shape->rank < 0) tn__sink_int(s, S_UNKNOWN_RANK, 1);
  for (int64_t i = 0; i < shape->rank; i++) tn__sink_message(s, S_DIM, write_dim, &shape->dims[i]);
}

static void write_strings(tn__sink *s, const tn_tensor *t)
{
  for (int64_t i = 0; s->status == TN_OK && i < tn_tensor_elements(t); i++) {
    tn__slice text = { NULL, 0 };
    s->status = tn_tensor_get_string(t, i, &text.data, &text.size, s->err);
    if (s->status == TN_OK) tn__sink_bytes(s, T_STRING, text);
  }
}

/* Elements as tensor_content. To count, they need not be on the host. */
static void write_content(tn__sink *s, const tn_tensor *t)
{
  size_t bytes = tn_tensor_bytes(t);
  if (bytes == 0) return;
  tn__sink_tag(s, T_CONTENT, TN__WIRE_BYTES);
  tn__sink_varint(s, bytes);
  if (s->counts || tn_tensor_data(t) != NULL) {
    tn__sink_put(s, tn_tensor_data(t), bytes);
    return;
  }
  tn_tensor *copy = NULL; /* of device memory */
  tn_status st = s->status == TN_OK ? tn_tensor_copy(t, &copy, s->err) : s->status;
  if (st == TN_OK)
    tn__sink_put(s, tn_tensor_data(copy), bytes);
  else
    s->status = st;
  tn_tensor_unref(copy);
}

/* Resources and variants have no encoding. */
static void write_tensor(tn__sink *s, const void *what)
{
  const tn_tensor *t = what;
  tn_dtype dtype = tn_tensor_dtype(t);
  if (dtype == TN_RESOURCE || dtype == TN_VARIANT) {
    s->status = tn_error_set(s->err, TN_UNIMPLEMENTED, "a tensor of type %s cannot be written", tn_dtype_name(dtype));
    return;
  }
  tn__shape shape = { t->dims, t->rank };
  tn__sink_int(s, T_DTYPE, (uint64_t)dtype);
  tn__sink_message(s, T_SHAPE, write_shape, &shape);
  if (dtype == TN_STRING)
    write_strings(s, t);
  else
    write_content(s, t);
}

/* A tensor from a file is written as its original bytes. */
static void put_tensor(tn__sink *s, uint32_t field, tn__lazy_tensor *lazy)
{
  if (lazy->proto.data != NULL)
    tn__sink_bytes(s, field, lazy->proto);
  else
    tn__sink_message(s, field, write_tensor, atomic_load_explicit(&lazy->tensor, memory_order_acquire));
}

/* ---- attributes ---- */

static void write_func(tn__sink *s, const void *what)
{
  const tn__func *func = what;
  if (func->attrs != NULL)
    tn__sink_put(s, func->attrs->proto.data, func->attrs->proto.size); /* the original message, with the name */
  else if (func->name.size > 0)
    tn__sink_bytes(s, F_NAME, func->name);
}

static void put_float(tn__sink *s, float value) { tn__sink_put(s, &value, sizeof value); /* little-endian */ }

/* Writes the numbers of a list, packed. */
static void write_numbers(tn__sink *s, const void *what)
{
  const tn__attr *a = what;
  const void *items = a->v.list.items;
  for (size_t i = 0; i < a->v.list.n; i++) {
    switch (a->kind - TN_ATTR_LIST) {
    case TN_ATTR_INT: tn__sink_varint(s, (uint64_t)((const int64_t *)items)[i]); break;
    case TN_ATTR_FLOAT: put_float(s, ((const float *)items)[i]); break;
    case TN_ATTR_BOOL: tn__sink_varint(s, ((const tn_bool *)items)[i] != 0); break;
    default: tn__sink_varint(s, (uint64_t)((const tn_dtype *)items)[i]); break;
    }
  }
}

/* The items of a list: numbers packed in one field, others as one field each. */
static void write_list(tn__sink *s, const void *what)
{
  const tn__attr *a = what;
  const void *items = a->v.list.items;
  static const uint8_t fields[] = { [TN_ATTR_INT] = A_I, [TN_ATTR_FLOAT] = A_F, [TN_ATTR_BOOL] = A_B,
                                    [TN_ATTR_TYPE] = A_TYPE };
  int32_t kind = a->kind - TN_ATTR_LIST;
  if (a->v.list.n == 0) return;
  if (kind == TN_ATTR_INT || kind == TN_ATTR_FLOAT || kind == TN_ATTR_BOOL || kind == TN_ATTR_TYPE) {
    tn__sink_message(s, fields[kind], write_numbers, a);
    return;
  }
  for (size_t i = 0; i < a->v.list.n; i++) {
    switch (kind) {
    case TN_ATTR_STRING: tn__sink_bytes(s, A_S, ((const tn__slice *)items)[i]); break;
    case TN_ATTR_SHAPE: tn__sink_message(s, A_SHAPE, write_shape, (const tn__shape *)items + i); break;
    case TN_ATTR_TENSOR: put_tensor(s, A_TENSOR, ((tn__lazy_tensor *const *)items)[i]); break;
    case TN_ATTR_FUNC: tn__sink_message(s, L_FUNC, write_func, (const tn__func *)items + i); break;
    default: break;
    }
  }
}

void tn__graphdef_write_value(tn__sink *s, const void *what)
{
  const tn__attr *a = what;
  switch (a->kind) {
  case TN_ATTR_STRING: tn__sink_bytes(s, A_S, a->v.text); break;
  case TN_ATTR_PLACEHOLDER: tn__sink_bytes(s, A_PLACEHOLDER, a->v.text); break;
  case TN_ATTR_INT: tn__sink_int(s, A_I, (uint64_t)a->v.i); break;
  case TN_ATTR_BOOL: tn__sink_int(s, A_B, a->v.b != 0); break;
  case TN_ATTR_TYPE: tn__sink_int(s, A_TYPE, (uint64_t)a->v.type); break;
  case TN_ATTR_FLOAT:
    tn__sink_tag(s, A_F, TN__WIRE_FIXED32);
    put_float(s, a->v.f);
    break;
  case TN_ATTR_SHAPE: tn__sink_message(s, A_SHAPE, write_shape, &a->v.shape); break;
  case TN_ATTR_TENSOR: put_tensor(s, A_TENSOR, a->v.tensor); break;
  case TN_ATTR_FUNC: tn__sink_message(s, A_FUNC, write_func, &a->v.func); break;
  default:
    if ((a->kind & TN_ATTR_LIST) != 0) tn__sink_message(s, A_LIST, write_list, a);
    break;
  }
}

/* An attribute from a file is written as its original bytes. */
static void write_entry(tn__sink *s, const void *what)
{
  const tn__attr *a = what;
  tn__sink_bytes(s, E_KEY, (tn__slice){ a->name, a->name_size });
  if (a->proto.data != NULL)
    tn__sink_bytes(s, E_VALUE, a->proto);
  else
    tn__sink_message(s, E_VALUE, tn__graphdef_write_value, a);
}

/* ---- nodes ---- */

/* The name of an input: "^" before a control input, ":i" after an output other than 0. */
static void write_input(tn__sink *s, const tn_operation *from, const char *before, const char *after)
{
  size_t n = strlen(before), m = strlen(after);
  tn__sink_tag(s, N_INPUT, TN__WIRE_BYTES);
  tn__sink_varint(s, n + from->name_size + m);
  tn__sink_put(s, before, n);
  tn__sink_put(s, from->name, from->name_size);
  tn__sink_put(s, after, m);
}

/* Prefixes the error with node and attribute. */
static void in_attr(tn__sink *s, const tn_operation *op, const tn__attr *a)
{
  if (s->status == TN_RESOURCE_EXHAUSTED) return;
  tn_error_prefix(s->err, "node '%s': attribute '%s'", op->name, a->name);
  tn_error_set_node(s->err, op->name);
}

/* Attributes with a proto are copied unchanged. An error while counting names the attribute. */
void tn__graphdef_write_node(tn__sink *s, const void *what)
{
  const tn_operation *op = what;
  tn__sink_bytes(s, N_NAME, (tn__slice){ op->name, op->name_size });
  tn__sink_bytes(s, N_OP, tn__slice_of(op->type));
  for (uint32_t i = 0; i < op->n_inputs; i++) {
    char index[16] = "";
    if (op->inputs[i].index != 0) tn__snprintf(index, sizeof index, ":%d", (int)op->inputs[i].index);
    write_input(s, op->inputs[i].op, "", index);
  }
  for (uint32_t i = 0; i < op->n_controls; i++) write_input(s, op->controls[i], "^", "");
  if (op->device[0] != 0) tn__sink_bytes(s, N_DEVICE, tn__slice_of(op->device));
  for (uint32_t i = 0; s->status == TN_OK && i < op->n_attrs; i++) {
    tn__sink_message(s, N_ATTR, write_entry, &op->attrs[i]);
    if (s->status != TN_OK && s->counts) in_attr(s, op, &op->attrs[i]);
  }
  tn__wire w = tn__wire_read(op->proto); /* of an edited node: copy the fields that this library does not know */
  while (tn__wire_next(&w))
    if (w.field > N_ATTR) tn__sink_put(s, w.at, (size_t)(w.p - w.at));
}
