/* SPDX-License-Identifier: Apache-2.0 */
/* Public calls that encode parts of a graph as single messages: attributes, operations, schemas of ops. */
#include <core/formats/file.h>
#include <core/formats/graphdef/graphdef.h>

#include <string.h>

/* Field numbers: OpDef; its ArgDef; its AttrDef; AttrValue and its ListValue. */
enum { O_NAME = 1, O_INPUT = 2, O_OUTPUT = 3, O_ATTR = 4, O_SUMMARY = 5, O_STATEFUL = 17, O_COMMUTATIVE = 18 };
enum { AR_NAME = 1, AR_TYPE = 3, AR_TYPE_ATTR = 4, AR_NUMBER_ATTR = 5, AR_LIST_ATTR = 6, AR_IS_REF = 16 };
enum { AD_NAME = 1, AD_TYPE = 2, AD_DEFAULT = 3, AD_HAS_MINIMUM = 5, AD_MINIMUM = 6, AD_ALLOWED = 7 };
enum { A_LIST = 1, L_STRING = 2, L_TYPE = 6 };

/* Returns a message in memory of exactly its size: a copy of `ready` if that has data, else encoded by `body`. */
static tn_status give(tn__sink_body body, const void *what, tn__slice ready, void **bytes, size_t *size, tn_error *err)
{
  tn__sink count = tn__sink_counter(err), out = tn__sink_memory(err);
  if (ready.data == NULL) body(&count, what);
  if (count.status != TN_OK) return count.status;
  size_t n = ready.data == NULL ? count.before : ready.size;
  out.room = n > 0 ? n : 1;
  out.data = tn_alloc(out.room);
  if (out.data == NULL) return tn__no_memory(err, "message", n);
  if (ready.data != NULL)
    tn__sink_put(&out, ready.data, ready.size);
  else
    body(&out, what);
  if (out.status != TN_OK) {
    tn__sink_fini(&out);
    return out.status;
  }
  *bytes = out.data;
  *size = out.used;
  return TN_OK;
}

static tn_status begin(void **bytes, size_t *size, const void *what, const char *word, tn_error *err)
{
  tn__error_reset(err);
  if (bytes != NULL) *bytes = NULL;
  if (size != NULL) *size = 0;
  if (bytes == NULL || size == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s is NULL", bytes == NULL ? "bytes" : "size");
  return what != NULL ? TN_OK : tn_error_set(err, TN_INVALID_ARGUMENT, "no %s given", word);
}

/* Reads bytes of tensors again that may have been released (file.h). */
static tn_status keep_attr(const tn__attr *a, tn_error *err)
{
  if (a->lazy) return tn__bytes_keep(a->v.decoded.holder, a->proto.data, a->proto.size, err);
  size_t n = a->kind == (TN_ATTR_TENSOR | TN_ATTR_LIST) ? a->v.list.n : a->kind == TN_ATTR_TENSOR;
  tn__lazy_tensor *const *items = (a->kind & TN_ATTR_LIST) != 0 ? a->v.list.items : &a->v.tensor;
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < n; i++)
    if (items[i]->proto.data != NULL)
      st = tn__bytes_keep(items[i]->holder, items[i]->proto.data, items[i]->proto.size, err);
  return st;
}

/* An attribute from a file is returned as its original bytes, without decoding. */
tn_status tn_operation_attr_proto(const tn_operation *op, const char *name, void **bytes, size_t *size, tn_error *err)
{
  const tn__attr *a;
  tn_status st = begin(bytes, size, op, "operation", err);
  if (st == TN_OK) st = tn__op_attr_find(op, name, &a, err);
  if (st != TN_OK) return st;
  st = keep_attr(a, err);
  if (st == TN_OK) st = give(tn__graphdef_write_value, a, a->proto, bytes, size, err);
  return st == TN_OK ? st : (tn_error_prefix(err, "node '%s': attribute '%s'", op->name, name), st);
}

tn_status tn_operation_node_def(const tn_operation *op, void **bytes, size_t *size, tn_error *err)
{
  tn_status st = begin(bytes, size, op, "operation", err);
  for (uint32_t i = 0; st == TN_OK && i < op->n_attrs; i++) st = keep_attr(&op->attrs[i], err);
  return st == TN_OK ? give(tn__graphdef_write_node, op, tn__op_bytes(op), bytes, size, err) : st;
}

/* ---- schemas ---- */

/* An argument with its schema, as the single parameter of a sink body. */
typedef struct part {
  const tn_op_schema *schema;
  const void *at;
} part;

static void put_attr_name(tn__sink *s, uint32_t field, const tn_op_schema *schema, int32_t attr)
{
  if (attr < 0) return;
  const tn__attr *a = &schema->attrs[attr].value;
  tn__sink_bytes(s, field, (tn__slice){ a->name, a->name_size });
}

/* An ArgDef. */
static void write_arg(tn__sink *s, const void *what)
{
  const part *p = what;
  const tn__arg_spec *arg = p->at;
  tn__sink_bytes(s, AR_NAME, (tn__slice){ arg->name, arg->name_size });
  if (arg->dtype != TN_DTYPE_INVALID) tn__sink_int(s, AR_TYPE, arg->dtype);
  put_attr_name(s, AR_TYPE_ATTR, p->schema, arg->type_attr);
  put_attr_name(s, AR_NUMBER_ATTR, p->schema, arg->number_attr);
  put_attr_name(s, AR_LIST_ATTR, p->schema, arg->list_attr);
  if (arg->is_ref) tn__sink_int(s, AR_IS_REF, 1);
}

static void write_types(tn__sink *s, const void *what)
{
  const tn__attr_spec *a = what;
  for (tn_dtype d = 1; d < 64; d++)
    if ((a->types & tn__type_bit(d)) != 0 && tn__dtype_valid(d)) tn__sink_varint(s, (uint64_t)d);
}

static void write_allowed_list(tn__sink *s, const void *what)
{
  const tn__attr_spec *a = what;
  for (uint32_t i = 0; i < a->n_strings; i++) tn__sink_bytes(s, L_STRING, a->strings[i]);
  if (a->n_strings == 0) tn__sink_message(s, L_TYPE, write_types, a);
}

static void write_allowed(tn__sink *s, const void *what) { tn__sink_message(s, A_LIST, write_allowed_list, what); }

/* An AttrDef. The allowed values are written as a list, if there is a restriction. */
static void write_attr(tn__sink *s, const void *what)
{
  static const char *const kinds[] = { "", "string", "int", "float", "bool", "type", "shape", "tensor", "func" };
  const tn__attr_spec *a = what;
  const char *kind = kinds[a->value.kind & ~TN_ATTR_LIST];
  char list[32];
  tn__snprintf(list, sizeof list, (a->value.kind & TN_ATTR_LIST) != 0 ? "list(%s)" : "%s", kind);
  tn__sink_bytes(s, AD_NAME, (tn__slice){ a->value.name, a->value.name_size });
  tn__sink_bytes(s, AD_TYPE, tn__slice_of(list));
  if (a->has_default) tn__sink_message(s, AD_DEFAULT, tn__graphdef_write_value, &a->value);
  if (a->has_minimum) tn__sink_int(s, AD_HAS_MINIMUM, 1);
  if (a->has_minimum && a->minimum != 0) tn__sink_int(s, AD_MINIMUM, (uint64_t)a->minimum);
  bool some_types = (a->value.kind & ~TN_ATTR_LIST) == TN_ATTR_TYPE && a->types != ~UINT64_C(0);
  if (a->n_strings > 0 || some_types) tn__sink_message(s, AD_ALLOWED, write_allowed, a);
}

/* An OpDef. */
static void write_schema(tn__sink *s, const void *what)
{
  const tn_op_schema *schema = what;
  const tn_op_def *def = schema->def;
  tn__sink_bytes(s, O_NAME, (tn__slice){ schema->name, schema->name_size });
  for (uint32_t i = 0; i < schema->n_inputs; i++)
    tn__sink_message(s, O_INPUT, write_arg, &(part){ schema, &schema->inputs[i] });
  for (uint32_t i = 0; i < schema->n_outputs; i++)
    tn__sink_message(s, O_OUTPUT, write_arg, &(part){ schema, &schema->outputs[i] });
  for (uint32_t i = 0; i < schema->n_attrs; i++) tn__sink_message(s, O_ATTR, write_attr, &schema->attrs[i]);
  if (def->summary != NULL && def->summary[0] != 0) tn__sink_bytes(s, O_SUMMARY, tn__slice_of(def->summary));
  if ((schema->traits & TN_TRAIT_STATEFUL) != 0) tn__sink_int(s, O_STATEFUL, 1);
  if ((schema->traits & TN_TRAIT_COMMUTATIVE) != 0) tn__sink_int(s, O_COMMUTATIVE, 1);
}

tn_status tn_op_schema_op_def(const tn_op_schema *schema, void **bytes, size_t *size, tn_error *err)
{
  tn_status st = begin(bytes, size, schema, "schema", err);
  return st == TN_OK ? give(write_schema, schema, (tn__slice){ NULL, 0 }, bytes, size, err) : st;
}
