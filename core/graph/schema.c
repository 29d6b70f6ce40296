/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of schemas, attributes and types, without the lock of the op table: a parsed schema is immutable. */
#include <core/graph/graph_structs.h>

#include <string.h>

bool tn__dtype_valid(tn_dtype base) { return base > 0 && base < TN_DTYPE_REF && tn_dtype_size(base) != 0; }

const char *tn__attr_kind_name(int32_t kind)
{
  static const char *const names[] = { "nothing", "a string", "an int", "a float", "a bool", "a type",
                                       "a shape", "a tensor", "a function", "a placeholder" };
  static const char *const lists[] = { "an empty list", "a list of strings", "a list of ints", "a list of floats",
                                       "a list of bools", "a list of types", "a list of shapes", "a list of tensors",
                                       "a list of functions", "a list of placeholders" };
  int32_t item = kind & ~TN_ATTR_LIST;
  if (item < 0 || item > TN_ATTR_PLACEHOLDER) return "unknown";
  return (kind & TN_ATTR_LIST) != 0 ? lists[item] : names[item];
}

size_t tn__attr_item_size(int32_t kind)
{
  switch (kind) {
  case TN_ATTR_INT: return sizeof(int64_t);
  case TN_ATTR_FLOAT: return sizeof(float);
  case TN_ATTR_BOOL: return sizeof(tn_bool);
  case TN_ATTR_TYPE: return sizeof(tn_dtype);
  case TN_ATTR_SHAPE: return sizeof(tn__shape);
  case TN_ATTR_TENSOR: return sizeof(tn__lazy_tensor *);
  case TN_ATTR_FUNC: return sizeof(tn__func);
  default: return sizeof(tn__slice);
  }
}

int32_t tn__schema_attr_index(const tn_op_schema *s, const char *name, size_t size)
{
  for (uint32_t i = 0; i < s->n_attrs; i++)
    if (s->attrs[i].value.name_size == size && memcmp(s->attrs[i].value.name, name, size) == 0) return (int32_t)i;
  return -1;
}

tn_status tn__op_not_registered(const char *type, tn_error *err)
{
  char why[1000];
  tn__op_source.explain(type, why, sizeof why);
  return tn_error_set(err, TN_NOT_FOUND, "op '%.200s' is not registered%s", type, why);
}

const char *tn_op_schema_name(const tn_op_schema *schema) { return schema == NULL ? "" : schema->name; }
uint32_t tn_op_schema_traits(const tn_op_schema *schema) { return schema == NULL ? 0 : schema->traits; }
const tn_op_def *tn__schema_def(const tn_op_schema *schema) { return schema == NULL ? NULL : schema->def; }

size_t tn_op_schema_format(const tn_op_schema *schema, char *buffer, size_t size)
{
  if (schema == NULL) return (size_t)tn__snprintf(buffer, size, "%s", "");
  const tn_op_def *d = schema->def;
  bool attrs = d->attrs != NULL && *d->attrs != 0;
  int n = tn__snprintf(buffer, size, "%s(%s) -> (%s)%s%s", d->name, d->inputs == NULL ? "" : d->inputs,
                       d->outputs == NULL ? "" : d->outputs, attrs ? "; " : "", attrs ? d->attrs : "");
  return n < 0 ? 0 : (size_t)n;
}

bool tn__types_fit(const tn_operation *op, const tn__constraint *c)
{
  const tn__attr *a = tn__op_attr(op, c->attr);
  if (a->kind == TN_ATTR_TYPE) return (c->types & tn__type_bit(a->v.type)) != 0;
  const tn_dtype *types = a->v.list.items;
  for (size_t i = 0; i < a->v.list.n; i++)
    if ((c->types & tn__type_bit(types[i])) == 0) return false;
  return true;
}

void tn__describe_types(const tn_operation *op, tn__text *t)
{
  for (uint32_t i = 0; i < op->schema->n_attrs; i++) {
    const tn__attr_spec *spec = &op->schema->attrs[i];
    const tn__attr *a = tn__op_attr(op, i);
    if (spec->value.kind == TN_ATTR_TYPE)
      tn__text_printf(t, "%s%s=%s", t->size == 0 ? "" : ",", spec->value.name, tn_dtype_name(a->v.type));
    if (spec->value.kind != TN_ATTR_LIST + TN_ATTR_TYPE) continue;
    tn__text_printf(t, "%s%s=[", t->size == 0 ? "" : ",", spec->value.name);
    for (size_t k = 0; k < a->v.list.n; k++)
      tn__text_printf(t, "%s%s", k == 0 ? "" : ",", tn_dtype_name(((const tn_dtype *)a->v.list.items)[k]));
    tn__text_puts(t, "]");
  }
}
