/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to schemas that need no lock of the op table: texts, types, and ops that plugins would bring. */
#include <core/graph/graph_structs.h>

#include <string.h>

tn_status tn__op_not_registered(const char *type, tn_error *err)
{
  char why[1000];
  tn__op_source.explain(type, why, sizeof why);
  return tn_error_set(err, TN_NOT_FOUND, "op '%.200s' is not registered%s", type, why);
}

const tn_op_schema *tn__schema_need(const char *name, size_t size)
{
  const tn_op_schema *s = tn__schema_find(name, size);
  if (s != NULL || !tn__op_source.offered(name, size)) return s;
  tn__op_source.load(name, size);
  return tn__schema_find(name, size);
}

const tn_op_schema *tn_op_schema_find(const char *op) { return op == NULL ? NULL : tn__schema_find(op, strlen(op)); }
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
