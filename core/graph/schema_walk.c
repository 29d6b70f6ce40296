/* SPDX-License-Identifier: Apache-2.0 */
/* Public access to the parts of a schema. A schema that a look-up returned is parsed and never changes. */
#include <core/graph/graph_structs.h>

size_t tn_op_schema_n_inputs(const tn_op_schema *schema) { return schema == NULL ? 0 : schema->n_inputs; }
size_t tn_op_schema_n_outputs(const tn_op_schema *schema) { return schema == NULL ? 0 : schema->n_outputs; }
size_t tn_op_schema_n_attrs(const tn_op_schema *schema) { return schema == NULL ? 0 : schema->n_attrs; }

/* Checks a request for part i of n with an out-struct of `size` bytes. */
static tn_status check(const tn_op_schema *schema, const char *what, size_t i, size_t n, size_t size, size_t wanted,
                       tn_error *err)
{
  if (schema == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "no schema given");
  if (size < wanted)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "op '%s': struct_size is %zu, wanted at least %zu", schema->name,
                        size, wanted);
  if (i >= n)
    return tn_error_set(err, TN_OUT_OF_RANGE, "op '%s': %s %zu was asked for, it has %zu", schema->name, what, i, n);
  return TN_OK;
}

static void give_arg(const tn__arg_spec *arg, tn_op_arg *out)
{
  size_t size = out->struct_size;
  *out = (tn_op_arg){ .struct_size = size, .name = arg->name, .dtype = arg->dtype, .type_attr = arg->type_attr,
                      .number_attr = arg->number_attr, .list_attr = arg->list_attr, .is_ref = arg->is_ref };
}

tn_status tn_op_schema_input(const tn_op_schema *schema, size_t i, tn_op_arg *out, tn_error *err)
{
  tn__error_reset(err);
  tn_status st = check(schema, "input", i, tn_op_schema_n_inputs(schema), out->struct_size, TN_OP_ARG_SIZE, err);
  if (st == TN_OK) give_arg(&schema->inputs[i], out);
  return st;
}

tn_status tn_op_schema_output(const tn_op_schema *schema, size_t i, tn_op_arg *out, tn_error *err)
{
  tn__error_reset(err);
  tn_status st = check(schema, "output", i, tn_op_schema_n_outputs(schema), out->struct_size, TN_OP_ARG_SIZE, err);
  if (st == TN_OK) give_arg(&schema->outputs[i], out);
  return st;
}

tn_status tn_op_schema_attr(const tn_op_schema *schema, size_t i, tn_op_attr *out, tn_error *err)
{
  tn__error_reset(err);
  tn_status st = check(schema, "attribute", i, tn_op_schema_n_attrs(schema), out->struct_size, TN_OP_ATTR_SIZE, err);
  if (st != TN_OK) return st;
  const tn__attr_spec *a = &schema->attrs[i];
  size_t size = out->struct_size;
  *out = (tn_op_attr){ .struct_size = size, .name = a->value.name, .kind = a->value.kind,
                       .has_default = a->has_default, .has_minimum = a->has_minimum, .minimum = a->minimum,
                       .types = a->types, .n_strings = a->n_strings };
  if (!a->has_default) return TN_OK;
  switch (a->value.kind) {
  case TN_ATTR_INT: out->default_int = a->value.v.i; break;
  case TN_ATTR_FLOAT: out->default_float = a->value.v.f; break;
  case TN_ATTR_BOOL: out->default_bool = a->value.v.b; break;
  case TN_ATTR_TYPE: out->default_type = a->value.v.type; break;
  case TN_ATTR_STRING: out->default_string = a->value.v.text.data; break;
  default: break;
  }
  return TN_OK;
}

const char *tn_op_schema_attr_string(const tn_op_schema *schema, size_t i, size_t k)
{
  if (i >= tn_op_schema_n_attrs(schema) || k >= schema->attrs[i].n_strings) return NULL;
  return schema->attrs[i].strings[k].data;
}
