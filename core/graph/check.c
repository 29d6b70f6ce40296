/* SPDX-License-Identifier: Apache-2.0 */
/* Checks an operation against its schema: attributes, outputs, inputs. Shared by the builder and the importer. */
#include <core/graph/graph_structs.h>

#include <string.h>

/* ---- one attribute ---- */

static tn_status bad_type(const tn__attr_spec *spec, tn_dtype found, tn_error *err)
{
  char allowed[256];
  size_t used = 0;
  allowed[0] = 0;
  for (tn_dtype d = 1; d < 64; d++) {
    if ((spec->types & tn__type_bit(d)) == 0 || !tn__dtype_valid(d)) continue;
    int n = tn__snprintf(allowed + used, sizeof allowed - used, "%s%s", used == 0 ? "" : ", ", tn_dtype_name(d));
    if (n < 0 || (size_t)n >= sizeof allowed - used) break;
    used += (size_t)n;
  }
  if (!tn__dtype_valid(found) && !tn__dtype_is_ref(found))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "attribute '%s' is %d, which is not a valid type", spec->value.name,
                        (int)found);
  return tn_error_set(err, TN_INVALID_ARGUMENT, "attribute '%s' is the type %s, wanted one of: %s", spec->value.name,
                      tn_dtype_name(found), allowed);
}

static bool type_allowed(const tn__attr_spec *spec, tn_dtype d)
{
  return (spec->types & tn__type_bit(d)) != 0 && tn__dtype_valid(d);
}

static tn_status check_types(const tn__attr_spec *spec, const tn__attr *attr, tn_error *err)
{
  if (attr->kind == TN_ATTR_TYPE) return type_allowed(spec, attr->v.type) ? TN_OK : bad_type(spec, attr->v.type, err);
  const tn_dtype *types = attr->v.list.items;
  for (size_t i = 0; i < attr->v.list.n; i++)
    if (!type_allowed(spec, types[i])) return bad_type(spec, types[i], err);
  return TN_OK;
}

static tn_status check_text(const tn__attr_spec *spec, tn__slice text, tn_error *err)
{
  for (uint32_t i = 0; i < spec->n_strings; i++)
    if (tn__slice_equal(spec->strings[i], text)) return TN_OK;
  char allowed[256];
  size_t used = 0;
  for (uint32_t i = 0; i < spec->n_strings; i++) {
    int n = tn__snprintf(allowed + used, sizeof allowed - used, "%s'%s'", used == 0 ? "" : ", ", spec->strings[i].data);
    if (n < 0 || (size_t)n >= sizeof allowed - used) break;
    used += (size_t)n;
  }
  return tn_error_set(err, TN_INVALID_ARGUMENT, "attribute '%s' is '%.*s', wanted one of: %s", spec->value.name,
                      (int)(text.size > 100 ? 100 : text.size), text.data, allowed);
}

static tn_status check_texts(const tn__attr_spec *spec, const tn__attr *attr, tn_error *err)
{
  if (attr->kind == TN_ATTR_STRING) return check_text(spec, attr->v.text, err);
  const tn__slice *texts = attr->v.list.items;
  tn_status st = TN_OK;
  for (size_t i = 0; i < attr->v.list.n && st == TN_OK; i++) st = check_text(spec, texts[i], err);
  return st;
}

tn_status tn__attr_check(const tn__attr_spec *spec, tn__attr *attr, tn_error *err)
{
  int32_t wanted = spec->value.kind;
  if (attr->kind == TN_ATTR_LIST && (wanted & TN_ATTR_LIST) != 0) attr->kind = (uint8_t)wanted;
  if (attr->kind != wanted)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "attribute '%s' is %s, wanted %s", spec->value.name,
                        tn__attr_kind_name(attr->kind), tn__attr_kind_name(wanted));
  if (spec->has_minimum) {
    int64_t found = wanted == TN_ATTR_INT ? attr->v.i : (int64_t)attr->v.list.n;
    if (found < spec->minimum)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "attribute '%s' %s %lld, wanted at least %lld", spec->value.name,
                          wanted == TN_ATTR_INT ? "is" : "has length", (long long)found, (long long)spec->minimum);
  }
  if ((wanted & ~TN_ATTR_LIST) == TN_ATTR_TYPE) return check_types(spec, attr, err);
  if (spec->n_strings != 0) return check_texts(spec, attr, err);
  return TN_OK;
}

/* ---- all attributes ---- */

tn_status tn__op_check_attrs(tn_operation *op, tn__arena *arena, tn_error *err)
{
  const tn_op_schema *s = op->schema;
  if (op->n_attrs >= UINT16_MAX)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%u attributes, at most %d are supported", op->n_attrs,
                        UINT16_MAX - 1);
  if (s == NULL || s->n_attrs == 0) return TN_OK;
  op->slots = tn__arena_array(arena, s->n_attrs, sizeof *op->slots);
  if (op->slots == NULL) return tn__no_memory(err, "attributes", s->n_attrs * sizeof *op->slots);
  for (uint32_t i = 0; i < op->n_attrs; i++) {
    tn__attr *a = &op->attrs[i];
    int32_t k = tn__schema_attr_index(s, a->name, a->name_size);
    if (k < 0) continue; /* unknown to the schema: kept, but not checked */
    tn_status st = tn__attr_check(&s->attrs[k], a, err);
    if (st != TN_OK) return st;
    op->slots[k] = (uint16_t)(i + 1); /* of two with the same name the last one counts, as in protobuf */
  }
  for (uint32_t k = 0; k < s->n_attrs; k++)
    if (op->slots[k] == 0 && !s->attrs[k].has_default)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "attribute '%s' (%s) is missing", s->attrs[k].value.name,
                          tn__attr_kind_name(s->attrs[k].value.kind));
  return TN_OK;
}

/* ---- outputs ---- */

/* one_dtype[d] is d. Most operations have one output and one input; pointing into this table they need no memory for
 * the type. */
#define ROW(n) n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7, n + 8, n + 9
static const uint8_t one_dtype[] = { ROW(0),  ROW(10), ROW(20), ROW(30),  ROW(40),  ROW(50),  ROW(60),
                                     ROW(70), ROW(80), ROW(90), ROW(100), ROW(110), ROW(120), ROW(130) };

/* The number of tensors of all arguments; more than `most` is an error. */
static tn_status count_args(const tn_operation *op, const tn__arg_spec *args, uint32_t n_args, size_t most,
                            const char *what, size_t *out, tn_error *err)
{
  size_t n = 0;
  for (uint32_t k = 0; k < n_args; k++) {
    size_t count = tn__arg_count(op, &args[k]);
    if (count > most - n)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s '%s' has %zu tensors, at most %zu are supported", what,
                          args[k].name, count, most);
    n += count;
  }
  *out = n;
  return TN_OK;
}

tn_status tn__op_set_outputs(tn_operation *op, tn__arena *arena, tn_error *err)
{
  const tn_op_schema *s = op->schema;
  if (s == NULL || s->n_outputs == 0) return TN_OK;
  if (s->plain_outputs && s->n_outputs == 1) {
    op->n_outputs = 1;
    op->output_dtypes = (uint8_t *)&one_dtype[tn__arg_dtype(op, &s->outputs[0], 0)];
    return TN_OK;
  }
  size_t n;
  tn_status st = count_args(op, s->outputs, s->n_outputs, TN__MAX_OUTPUTS, "output", &n, err);
  if (st != TN_OK) return st;
  op->n_outputs = (uint32_t)n;
  if (n == 0 || n > TN__STORED_DTYPES) return TN_OK;
  uint8_t *to = op->output_dtypes = tn__arena_alloc(arena, n);
  if (to == NULL) return tn__no_memory(err, "types of outputs", n);
  for (uint32_t k = 0; k < s->n_outputs; k++) {
    size_t count = tn__arg_count(op, &s->outputs[k]);
    for (size_t i = 0; i < count; i++) *to++ = (uint8_t)tn__arg_dtype(op, &s->outputs[k], i);
  }
  return TN_OK;
}

/* ---- inputs ---- */

static tn_status wrong_number(const tn_operation *op, size_t wanted, tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "op '%s' takes %zu inputs, found %u", op->type, wanted, op->n_inputs);
}

/* Whether an edge of type `found` may feed an input of type `wanted`: they are equal, or a reference feeds a value. */
static bool fits(tn_dtype found, tn_dtype wanted)
{
  return found == wanted || (tn__dtype_is_ref(found) && tn__dtype_base(found) == wanted);
}

static tn_status check_input(const tn_operation *op, const tn__arg_spec *arg, uint32_t i, tn_dtype wanted,
                             tn_error *err)
{
  const tn_operation *from = op->inputs[i].op;
  if (from->schema == NULL) return TN_OK; /* S-GRA-06: an output of an unregistered op fits everywhere */
  tn_dtype found = tn_operation_output_dtype(from, (size_t)op->inputs[i].index);
  if (fits(found, wanted)) return TN_OK;
  if (found == TN_DTYPE_INVALID)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "input %u ('%s') is '%s:%d', but node '%s' (%s) has %u outputs", i,
                        arg->name, from->name, (int)op->inputs[i].index, from->name, from->type, from->n_outputs);
  return tn_error_set(err, TN_INVALID_ARGUMENT, "input %u ('%s') is '%s:%d' of type %s, wanted %s", i, arg->name,
                      from->name, (int)op->inputs[i].index, tn_dtype_name(found), tn_dtype_name(wanted));
}

static tn_status check_unregistered(const tn_operation *op, tn_error *err)
{
  for (uint32_t i = 0; i < op->n_inputs; i++) {
    const tn_operation *from = op->inputs[i].op;
    if (from->schema != NULL && (uint32_t)op->inputs[i].index >= from->n_outputs)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "input %u is '%s:%d', but node '%s' (%s) has %u outputs", i,
                          from->name, (int)op->inputs[i].index, from->name, from->type, from->n_outputs);
  }
  return TN_OK;
}

tn_status tn__op_check_inputs(tn_operation *op, tn__arena *arena, tn_error *err)
{
  const tn_op_schema *s = op->schema;
  if (s == NULL) return check_unregistered(op, err);
  size_t n = s->n_inputs;
  tn_status st = TN_OK;
  if (!s->plain_inputs) st = count_args(op, s->inputs, s->n_inputs, INT32_MAX, "input", &n, err);
  if (st != TN_OK) return st;
  if (n != op->n_inputs) return wrong_number(op, n, err);
  if (n == 0) return TN_OK;
  uint8_t *dtypes = NULL;
  if (n == 1 && s->n_inputs == 1 && s->plain_inputs) {
    tn_dtype d = tn__arg_dtype(op, &s->inputs[0], 0);
    op->input_dtypes = (uint8_t *)&one_dtype[d];
    return check_input(op, &s->inputs[0], 0, d, err);
  }
  dtypes = op->input_dtypes = tn__arena_alloc(arena, n);
  if (dtypes == NULL) return tn__no_memory(err, "types of inputs", n);
  uint32_t at = 0;
  for (uint32_t k = 0; k < s->n_inputs; k++) {
    const tn__arg_spec *arg = &s->inputs[k];
    size_t count = s->plain_inputs ? 1 : tn__arg_count(op, arg);
    for (size_t i = 0; i < count; i++, at++) {
      tn_dtype wanted = tn__arg_dtype(op, arg, i);
      dtypes[at] = (uint8_t)wanted;
      if ((st = check_input(op, arg, at, wanted, err)) != TN_OK) return st;
    }
  }
  return TN_OK;
}
