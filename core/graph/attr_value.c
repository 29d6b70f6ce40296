/* SPDX-License-Identifier: Apache-2.0 */
/* Reads attributes of any kind through one struct, tn_attr_value: those of operations, of schemas, and of functions
 * that are attribute values themselves. For the latter, host[0] is the tn__func_attrs and host[1] the operation. */
#include <core/graph/graph_structs.h>

#include <string.h>

/* ---- a value ---- */

static bool is_list(const tn__attr *a) { return (a->kind & TN_ATTR_LIST) != 0; }

/* Returns item i of a list, or the single value. NULL: past the end. */
static const void *item_of(const tn__attr *a, size_t i)
{
  if (!is_list(a)) return &a->v;
  return i < a->v.list.n ? (const char *)a->v.list.items + i * tn__attr_item_size(a->kind & ~TN_ATTR_LIST) : NULL;
}

static void give_func(const tn__func *func, const tn_operation *op, tn_attr_value *out)
{
  out->text = func->name.data;
  out->length = func->name.size;
  if (func->attrs == NULL) return;
  out->n_attrs = func->attrs->n;
  out->host[0] = func->attrs;
  out->host[1] = op;
}

/* Fills *out with item i. op is NULL for a schema's default, which is never a tensor. */
static tn_status give(const tn_operation *op, const tn__attr *a, size_t i, tn_attr_value *out, tn_error *err)
{
  const void *item = item_of(a, i);
  out->kind = a->kind;
  out->n = is_list(a) ? a->v.list.n : 1;
  if (item == NULL) return TN_OK;
  switch (a->kind & ~TN_ATTR_LIST) {
  case TN_ATTR_INT: out->i = *(const int64_t *)item; break;
  case TN_ATTR_FLOAT: out->f = *(const float *)item; break;
  case TN_ATTR_BOOL: out->b = *(const tn_bool *)item; break;
  case TN_ATTR_TYPE: out->type = *(const tn_dtype *)item; break;
  case TN_ATTR_FUNC: give_func(item, op, out); break;
  case TN_ATTR_SHAPE:
    out->dims = ((const tn__shape *)item)->dims;
    out->rank = (int32_t)((const tn__shape *)item)->rank;
    break;
  case TN_ATTR_TENSOR: return tn__attr_get_tensor(op, *(tn__lazy_tensor *const *)item, &out->tensor, err);
  default:
    out->text = ((const tn__slice *)item)->data;
    out->length = ((const tn__slice *)item)->size;
    break;
  }
  return TN_OK;
}

static tn_status clear(tn_attr_value *out, tn_error *err)
{
  size_t size = out == NULL ? 0 : out->struct_size;
  if (size < TN_ATTR_VALUE_SIZE)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "struct_size is %zu, wanted at least %zu", size, TN_ATTR_VALUE_SIZE);
  *out = (tn_attr_value){ .struct_size = size };
  return TN_OK;
}

/* ---- of operations ---- */

tn_status tn_operation_attr_value(const tn_operation *op, const char *name, size_t i, tn_attr_value *out, tn_error *err)
{
  tn__error_reset(err);
  const tn__attr *a;
  tn_status st = clear(out, err);
  if (st == TN_OK) st = tn__op_attr_find(op, name, &a, err);
  if (st == TN_OK) st = tn__op_attr_resolve(op, &a, err);
  if (st != TN_OK) return st;
  st = give(op, a, i, out, err);
  return st == TN_OK ? st : (tn_error_prefix(err, "node '%s': attribute '%s'", op->name, name), st);
}

/* The total size of an attribute's parts: bytes of texts, dimensions of shapes. -1: the kind has no such size. */
static int64_t total_of(const tn__attr *a)
{
  int64_t total = 0;
  switch (a->kind) {
  case TN_ATTR_STRING:
  case TN_ATTR_PLACEHOLDER: return (int64_t)a->v.text.size;
  case TN_ATTR_FUNC: return (int64_t)a->v.func.name.size;
  case TN_ATTR_SHAPE: return a->v.shape.rank;
  case TN_ATTR_STRING + TN_ATTR_LIST:
    for (size_t i = 0; i < a->v.list.n; i++) total += (int64_t)((const tn__slice *)a->v.list.items)[i].size;
    return total;
  case TN_ATTR_FUNC + TN_ATTR_LIST:
    for (size_t i = 0; i < a->v.list.n; i++) total += (int64_t)((const tn__func *)a->v.list.items)[i].name.size;
    return total;
  case TN_ATTR_SHAPE + TN_ATTR_LIST:
    for (size_t i = 0; i < a->v.list.n; i++) {
      int64_t rank = ((const tn__shape *)a->v.list.items)[i].rank;
      total += rank > 0 ? rank : 0;
    }
    return total;
  default: return -1;
  }
}

tn_status tn_operation_attr_size(const tn_operation *op, const char *name, int64_t *n, int64_t *total, tn_error *err)
{
  tn__error_reset(err);
  const tn__attr *a;
  if (n != NULL) *n = -1;
  if (total != NULL) *total = -1;
  tn_status st = tn__op_attr_find(op, name, &a, err);
  if (st == TN_OK) st = tn__op_attr_resolve(op, &a, err);
  if (st != TN_OK) return st;
  if (n != NULL && is_list(a)) *n = (int64_t)a->v.list.n;
  if (total != NULL) *total = total_of(a);
  return TN_OK;
}

/* ---- of schemas ---- */

tn_status tn_op_schema_attr_default(const tn_op_schema *schema, size_t i, size_t item, tn_attr_value *out,
                                    tn_error *err)
{
  tn__error_reset(err);
  tn_status st = clear(out, err);
  if (st != TN_OK) return st;
  if (schema == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "no schema given");
  if (i >= schema->n_attrs)
    return tn_error_set(err, TN_OUT_OF_RANGE, "op '%s': attribute %zu was asked for, it has %u", schema->name, i,
                        schema->n_attrs);
  const tn__attr_spec *spec = &schema->attrs[i];
  if (!spec->has_default)
    return tn_error_set(err, TN_NOT_FOUND, "op '%s': attribute '%s' has no default", schema->name, spec->value.name);
  return give(NULL, &spec->value, item, out, err);
}

/* ---- of functions ---- */

static void free_decoded(tn__owned *owned)
{
  tn__decoded_func *d = (tn__decoded_func *)owned;
  tn__arena_fini(&d->arena);
  tn__free(d, sizeof *d);
}

/* Decoded at the first call and published by compare-and-swap, like attributes of operations. */
tn_status tn__func_attrs_get(const tn_operation *op, tn__func_attrs *of, tn__decoded_func **out, tn_error *err)
{
  tn__decoded_func *there = atomic_load_explicit(&of->value, memory_order_acquire);
  *out = there;
  if (there != NULL) return TN_OK;
  tn__decoded_func *d = tn__zalloc(sizeof *d);
  if (d == NULL) return tn__no_memory(err, "attributes of a function", sizeof *d);
  d->owned.free = free_decoded;
  tn__arena_init(&d->arena, 256);
  tn_status st = TN_OK;
  d->attrs = tn__arena_array(&d->arena, of->n, sizeof *d->attrs);
  if (d->attrs == NULL)
    st = tn__no_memory(err, "attributes of a function", of->n * sizeof *d->attrs);
  else
    st = atomic_load_explicit(&op->graph->codec, memory_order_acquire)->func(of, &d->arena, d->attrs, err);
  if (st != TN_OK) {
    free_decoded(&d->owned);
    return st;
  }
  /* Release publishes what d points to; acquire, in case another thread was first, sees what its value points to. */
  if (atomic_compare_exchange_strong_explicit(&of->value, &there, d, memory_order_acq_rel, memory_order_acquire))
    tn__graph_own(tn__attr_owner(op), &d->owned);
  else
    free_decoded(&d->owned);
  *out = there == NULL ? d : there;
  return TN_OK;
}

tn_status tn_attr_value_attr(const tn_attr_value *func, size_t k, size_t i, const char **name, tn_attr_value *out,
                             tn_error *err)
{
  tn__error_reset(err);
  if (name != NULL) *name = NULL;
  if (func == NULL || func->struct_size < TN_ATTR_VALUE_SIZE || (func->kind & ~TN_ATTR_LIST) != TN_ATTR_FUNC)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "no function value given");
  const tn_attr_value of = *func; /* a copy, because out may be equal to func */
  tn_status st = clear(out, err);
  if (st != TN_OK) return st;
  if (k >= of.n_attrs || of.host[0] == NULL)
    return tn_error_set(err, TN_OUT_OF_RANGE, "function '%s': attribute %zu was asked for, it has %zu",
                        of.text == NULL ? "" : of.text, k, of.n_attrs);
  const tn_operation *op = of.host[1];
  tn__decoded_func *d;
  st = tn__func_attrs_get(op, (tn__func_attrs *)of.host[0], &d, err);
  if (st == TN_OK) st = give(op, &d->attrs[k], i, out, err);
  if (st != TN_OK) return tn_error_prefix(err, "node '%s': function '%s'", op->name, of.text), st;
  if (name != NULL) *name = d->attrs[k].name;
  return TN_OK;
}
