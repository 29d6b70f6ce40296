/* SPDX-License-Identifier: Apache-2.0 */
/* Getters of attributes. A value that is still encoded is decoded at the first call and published by compare-and-swap:
 * of two threads that decode it at once, one discards its result. */
#include <core/graph/graph_structs.h>

#include <stdlib.h>
#include <string.h>

#define FEW 32 /* up to this number of attributes a linear search is fast enough */

/* ---- look-up ---- */

static int compare(const tn__attr *a, const char *name, size_t size)
{
  size_t n = a->name_size < size ? a->name_size : size;
  int order = n == 0 ? 0 : memcmp(a->name, name, n);
  return order != 0 ? order : (a->name_size > size) - (a->name_size < size);
}

static int compare_attrs(const void *a, const void *b)
{
  const tn__attr *x = a, *y = b;
  int order = compare(x, y->name, y->name_size);
  return order != 0 ? order : (x->place > y->place) - (x->place < y->place);
}

void tn__op_sort_attrs(tn_operation *op)
{
  if (op->n_attrs <= FEW || op->n_attrs >= UINT16_MAX) return; /* tn__op_check_attrs refuses UINT16_MAX or more */
  for (uint32_t i = 0; i < op->n_attrs; i++) op->attrs[i].place = (uint16_t)i;
  qsort(op->attrs, op->n_attrs, sizeof *op->attrs, compare_attrs);
  op->sorted = true;
}

/* Returns the last attribute of this name. */
static const tn__attr *find_sorted(const tn_operation *op, const char *name, size_t size)
{
  uint32_t low = 0, high = op->n_attrs;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (compare(&op->attrs[middle], name, size) <= 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low > 0 && compare(&op->attrs[low - 1], name, size) == 0 ? &op->attrs[low - 1] : NULL;
}

const tn__attr *tn__op_attr_named(const tn_operation *op, const char *name, size_t size)
{
  if (op->schema != NULL) {
    int32_t k = tn__schema_attr_index(op->schema, name, size);
    if (k >= 0) {
      const tn__attr *a = tn__op_attr(op, (uint32_t)k);
      return op->slots[k] == 0 && !op->schema->attrs[k].has_default ? NULL : a;
    }
  }
  if (op->sorted) return find_sorted(op, name, size);
  for (uint32_t i = op->n_attrs; i-- > 0;)
    if (op->attrs[i].name_size == size && memcmp(op->attrs[i].name, name, size) == 0) return &op->attrs[i];
  return NULL;
}

size_t tn_operation_n_attrs(const tn_operation *op) { return op == NULL ? 0 : op->n_attrs; }

const char *tn_operation_attr_name(const tn_operation *op, size_t i)
{
  return op != NULL && i < op->n_attrs ? op->attrs[i].name : NULL;
}

int32_t tn_operation_attr_kind(const tn_operation *op, const char *name)
{
  if (op == NULL || name == NULL) return TN_ATTR_NONE;
  const tn__attr *a = tn__op_attr_named(op, name, strlen(name));
  return a == NULL ? TN_ATTR_NONE : a->kind;
}

/* ---- decoding on demand ---- */

static void free_decoded(tn__owned *owned)
{
  tn__decoded *d = (tn__decoded *)owned;
  tn__arena_fini(&d->arena);
  tn__free(d, sizeof *d);
}

static const tn__codec *codec_of(const tn_operation *op)
{
  return atomic_load_explicit(&op->graph->codec, memory_order_acquire);
}

static tn_status decode(const tn_operation *op, tn__attr *attr, tn__decoded **out, tn_error *err)
{
  tn__decoded *d = tn__zalloc(sizeof *d);
  if (d == NULL) return tn__no_memory(err, "attribute", sizeof *d);
  d->owned.free = free_decoded;
  tn__arena_init(&d->arena, 256);
  tn_status st = codec_of(op)->attr(attr->proto, attr->v.decoded.holder, &d->arena, &d->value, err);
  if (st != TN_OK) {
    free_decoded(&d->owned);
    return tn_error_prefix(err, "node '%s': attribute '%s'", op->name, attr->name), st;
  }
  /* Release publishes what d points to; acquire, in case another thread was first, sees what its value points to. */
  tn__decoded *there = NULL;
  if (atomic_compare_exchange_strong_explicit(&attr->v.decoded.value, &there, d, memory_order_acq_rel,
                                              memory_order_acquire)) {
    tn__graph_own(tn__attr_owner(op), &d->owned);
    there = d;
  } else {
    free_decoded(&d->owned);
  }
  *out = there;
  return TN_OK;
}

tn_status tn__op_attr_find(const tn_operation *op, const char *name, const tn__attr **out, tn_error *err)
{
  *out = NULL;
  if (op == NULL || name == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "no operation or no attribute name given");
  const tn__attr *a = tn__op_attr_named(op, name, strlen(name));
  if (a == NULL || a->kind == TN_ATTR_NONE)
    return tn_error_set(err, TN_NOT_FOUND, "node '%s' (%s) has no attribute '%s'", op->name, op->type, name);
  *out = a;
  return TN_OK;
}

tn_status tn__op_attr_resolve(const tn_operation *op, const tn__attr **attr, tn_error *err)
{
  if (!(*attr)->lazy) return TN_OK;
  tn__attr *lazy = (tn__attr *)*attr;
  tn__decoded *d = atomic_load_explicit(&lazy->v.decoded.value, memory_order_acquire);
  tn_status st = d == NULL ? decode(op, lazy, &d, err) : TN_OK;
  *attr = st == TN_OK ? &d->value : NULL;
  return st;
}

/* Returns the attribute of this name, decoded, if it has this kind. An empty list of unknown kind fits every list. */
static tn_status get(const tn_operation *op, const char *name, int32_t kind, const tn__attr **out, tn_error *err)
{
  tn_status st = tn__op_attr_find(op, name, out, err);
  if (st != TN_OK) return st;
  const tn__attr *a = *out;
  if (a->kind == kind || (a->kind == TN_ATTR_LIST && (kind & TN_ATTR_LIST) != 0))
    return tn__op_attr_resolve(op, out, err);
  *out = NULL;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "node '%s': attribute '%s' is %s, %s was asked for", op->name, name,
                      tn__attr_kind_name(a->kind), tn__attr_kind_name(kind));
}

/* ---- tensors ---- */

typedef struct owned_tensor {
  tn__owned owned;
  tn_tensor *tensor;
} owned_tensor;

static void free_tensor(tn__owned *owned)
{
  owned_tensor *o = (owned_tensor *)owned;
  tn_tensor_unref(o->tensor);
  tn__free(o, sizeof *o);
}

tn_status tn__attr_get_tensor(const tn_operation *op, tn__lazy_tensor *lazy, tn_tensor **out, tn_error *err)
{
  *out = atomic_load_explicit(&lazy->tensor, memory_order_acquire);
  if (*out != NULL) return TN_OK;
  owned_tensor *o = tn__zalloc(sizeof *o);
  if (o == NULL) return tn__no_memory(err, "tensor", sizeof *o);
  o->owned.free = free_tensor;
  tn_status st = codec_of(op)->tensor(lazy->proto, lazy->holder, &o->tensor, err);
  if (st != TN_OK) {
    tn__free(o, sizeof *o);
    return st;
  }
  tn_tensor *there = NULL;
  if (atomic_compare_exchange_strong_explicit(&lazy->tensor, &there, o->tensor, memory_order_acq_rel,
                                              memory_order_acquire)) {
    there = o->tensor;
    tn__graph_own(tn__attr_owner(op), &o->owned);
  } else {
    free_tensor(&o->owned);
  }
  *out = there;
  return TN_OK;
}

tn_status tn_operation_attr_tensor(const tn_operation *op, const char *name, tn_tensor **out, tn_error *err)
{
  tn__error_reset(err);
  *out = NULL;
  const tn__attr *a;
  tn_status st = get(op, name, TN_ATTR_TENSOR, &a, err);
  if (st != TN_OK) return st;
  st = tn__attr_get_tensor(op, a->v.tensor, out, err);
  return st == TN_OK ? st : (tn_error_prefix(err, "node '%s': attribute '%s'", op->name, name), st);
}

static tn_status constant_attr(const tn_operation *op, const tn__attr **out, tn_error *err)
{
  if (op->schema == NULL || op->schema->constant_attr < 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "node '%s' (%s) is not a constant", op->name, op->type);
  *out = tn__op_attr(op, (uint32_t)op->schema->constant_attr);
  return TN_OK;
}

static tn_status check_constant(const tn_operation *op, const tn__attr *a, const tn_tensor *tensor, tn_error *err)
{
  tn_dtype wanted = tn_operation_output_dtype(op, 0);
  if (tensor->dtype == wanted) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "node '%s': the tensor in attribute '%s' has type %s, wanted %s",
                      op->name, a->name, tn_dtype_name(tensor->dtype), tn_dtype_name(wanted));
}

tn_status tn__operation_constant(const tn_operation *op, tn_tensor **out, tn_error *err)
{
  *out = NULL;
  const tn__attr *a;
  tn_tensor *tensor;
  tn_status st = constant_attr(op, &a, err);
  if (st != TN_OK) return st;
  st = tn__attr_get_tensor(op, a->v.tensor, &tensor, err);
  if (st != TN_OK) return tn_error_prefix(err, "node '%s': attribute '%s'", op->name, a->name), st;
  st = check_constant(op, a, tensor, err);
  if (st == TN_OK) *out = tensor;
  return st;
}

/* Whether the tensor is large and exists only in the bytes of a file so far. */
static bool is_apart(const tn__lazy_tensor *lazy)
{
  return lazy->proto.data != NULL && lazy->proto.size >= TN__LARGE_CONSTANT &&
         atomic_load_explicit(&lazy->tensor, memory_order_acquire) == NULL;
}

tn_status tn_operation_attr_tensor_shape(const tn_operation *op, const char *name, tn_dtype *dtype, int64_t *dims,
                                         int32_t *rank, tn_error *err)
{
  tn__error_reset(err);
  const tn__attr *a;
  tn_tensor *tensor = NULL;
  tn_status st = get(op, name, TN_ATTR_TENSOR, &a, err);
  if (st != TN_OK) return st;
  if (is_apart(a->v.tensor)) st = codec_of(op)->outline(a->v.tensor->proto, &tensor, err);
  if (st == TN_OK && tensor == NULL) {
    st = tn__attr_get_tensor(op, a->v.tensor, &tensor, err);
    tn_tensor_ref(tensor);
  }
  if (st != TN_OK) return tn_error_prefix(err, "node '%s': attribute '%s'", op->name, name), st;
  if (dtype != NULL) *dtype = tensor->dtype;
  if (dims != NULL && tensor->rank > 0) memcpy(dims, tensor->dims, (size_t)tensor->rank * sizeof *dims);
  if (rank != NULL) *rank = tensor->rank;
  tn_tensor_unref(tensor);
  return TN_OK;
}

bool tn__operation_constant_is_large(const tn_operation *op)
{
  const tn__attr *a = NULL;
  return constant_attr(op, &a, NULL) == TN_OK && is_apart(a->v.tensor);
}

tn_status tn__operation_take_constant(const tn_operation *op, bool outline, tn_tensor **out, tn_error *err)
{
  *out = NULL;
  const tn__attr *a;
  tn_tensor *tensor = NULL;
  tn_status st = constant_attr(op, &a, err);
  if (st != TN_OK) return st;
  tn__lazy_tensor *lazy = a->v.tensor;
  if (is_apart(lazy) && outline) st = codec_of(op)->outline(lazy->proto, &tensor, err);
  else if (is_apart(lazy)) st = codec_of(op)->take(lazy->proto, lazy->holder, &tensor, err);
  if (st != TN_OK) return tn_error_prefix(err, "node '%s': attribute '%s'", op->name, a->name), st;
  if (tensor == NULL) {
    st = tn__operation_constant(op, &tensor, err);
    if (st == TN_OK) *out = tn_tensor_ref(tensor);
    return st;
  }
  st = check_constant(op, a, tensor, err);
  if (st == TN_OK) *out = tensor;
  else tn_tensor_unref(tensor);
  return st;
}

/* ---- single values ---- */

#define SCALAR(name_, type_, kind_, member)                                                                \
  tn_status tn_operation_attr_##name_(const tn_operation *op, const char *name, type_ *out, tn_error *err) \
  {                                                                                                        \
    tn__error_reset(err);                                                                                  \
    *out = 0;                                                                                              \
    const tn__attr *a;                                                                                     \
    tn_status st = get(op, name, kind_, &a, err);                                                          \
    if (st == TN_OK) *out = a->v.member;                                                                   \
    return st;                                                                                             \
  }
SCALAR(int, int64_t, TN_ATTR_INT, i)
SCALAR(float, float, TN_ATTR_FLOAT, f)
SCALAR(bool, tn_bool, TN_ATTR_BOOL, b)
SCALAR(type, tn_dtype, TN_ATTR_TYPE, type)
#undef SCALAR

tn_status tn_operation_attr_string(const tn_operation *op, const char *name, const char **text, size_t *length,
                                   tn_error *err)
{
  tn__error_reset(err);
  *text = NULL;
  if (length != NULL) *length = 0;
  const tn__attr *a;
  tn_status st = get(op, name, TN_ATTR_STRING, &a, err);
  if (st != TN_OK) return st;
  *text = a->v.text.data;
  if (length != NULL) *length = a->v.text.size;
  return TN_OK;
}

tn_status tn_operation_attr_func(const tn_operation *op, const char *name, const char **function, tn_error *err)
{
  tn__error_reset(err);
  *function = NULL;
  const tn__attr *a;
  tn_status st = get(op, name, TN_ATTR_FUNC, &a, err);
  if (st != TN_OK) return st;
  *function = a->v.func.name.data;
  return TN_OK;
}

static void give_shape(const tn__shape *shape, const int64_t **dims, int32_t *rank)
{
  if (dims != NULL) *dims = shape->dims;
  if (rank != NULL) *rank = (int32_t)shape->rank;
}

static const tn__shape no_shape = { NULL, 0 };

tn_status tn_operation_attr_shape(const tn_operation *op, const char *name, const int64_t **dims, int32_t *rank,
                                  tn_error *err)
{
  tn__error_reset(err);
  give_shape(&no_shape, dims, rank);
  const tn__attr *a;
  tn_status st = get(op, name, TN_ATTR_SHAPE, &a, err);
  if (st != TN_OK) return st;
  give_shape(&a->v.shape, dims, rank);
  return TN_OK;
}

/* ---- lists ---- */

#define LIST(name_, type_, kind_)                                                                                \
  tn_status tn_operation_attr_##name_(const tn_operation *op, const char *name, const type_ **values, size_t *n, \
                                      tn_error *err)                                                             \
  {                                                                                                              \
    tn__error_reset(err);                                                                                        \
    *values = NULL;                                                                                              \
    *n = 0;                                                                                                      \
    const tn__attr *a;                                                                                           \
    tn_status st = get(op, name, TN_ATTR_LIST + kind_, &a, err);                                                 \
    if (st != TN_OK) return st;                                                                                  \
    *values = a->v.list.items;                                                                                   \
    *n = a->v.list.n;                                                                                            \
    return TN_OK;                                                                                                \
  }
LIST(ints, int64_t, TN_ATTR_INT)
LIST(floats, float, TN_ATTR_FLOAT)
LIST(bools, tn_bool, TN_ATTR_BOOL)
LIST(types, tn_dtype, TN_ATTR_TYPE)
#undef LIST

/* Returns item i of a list. Past the end *item is NULL, which is an error only if the caller passes no `n`. */
static tn_status item_at(const tn_operation *op, const char *name, int32_t kind, size_t i, size_t size, size_t *n,
                         const void **item, tn_error *err)
{
  *item = NULL;
  if (n != NULL) *n = 0;
  const tn__attr *a;
  tn_status st = get(op, name, TN_ATTR_LIST + kind, &a, err);
  if (st != TN_OK) return st;
  if (n != NULL) *n = a->v.list.n;
  if (i < a->v.list.n)
    *item = (const char *)a->v.list.items + i * size;
  else if (n == NULL)
    return tn_error_set(err, TN_OUT_OF_RANGE, "node '%s': attribute '%s' has %zu items, item %zu was asked for",
                        op->name, name, a->v.list.n, i);
  return TN_OK;
}

tn_status tn_operation_attr_string_at(const tn_operation *op, const char *name, size_t i, const char **text,
                                      size_t *length, size_t *n, tn_error *err)
{
  tn__error_reset(err);
  const void *item;
  tn_status st = item_at(op, name, TN_ATTR_STRING, i, sizeof(tn__slice), n, &item, err);
  const tn__slice *slice = item;
  if (text != NULL) *text = slice == NULL ? NULL : slice->data;
  if (length != NULL) *length = slice == NULL ? 0 : slice->size;
  return st;
}

tn_status tn_operation_attr_func_at(const tn_operation *op, const char *name, size_t i, const char **function,
                                    size_t *n, tn_error *err)
{
  tn__error_reset(err);
  const void *item;
  tn_status st = item_at(op, name, TN_ATTR_FUNC, i, sizeof(tn__func), n, &item, err);
  if (function != NULL) *function = item == NULL ? NULL : ((const tn__func *)item)->name.data;
  return st;
}

tn_status tn_operation_attr_shape_at(const tn_operation *op, const char *name, size_t i, const int64_t **dims,
                                     int32_t *rank, size_t *n, tn_error *err)
{
  tn__error_reset(err);
  const void *item;
  tn_status st = item_at(op, name, TN_ATTR_SHAPE, i, sizeof(tn__shape), n, &item, err);
  give_shape(item == NULL ? &no_shape : item, dims, rank);
  return st;
}

tn_status tn_operation_attr_tensor_at(const tn_operation *op, const char *name, size_t i, tn_tensor **tensor, size_t *n,
                                      tn_error *err)
{
  tn__error_reset(err);
  if (tensor != NULL) *tensor = NULL;
  const void *item;
  tn_status st = item_at(op, name, TN_ATTR_TENSOR, i, sizeof(tn__lazy_tensor *), n, &item, err);
  if (st != TN_OK || item == NULL || tensor == NULL) return st;
  st = tn__attr_get_tensor(op, *(tn__lazy_tensor *const *)item, tensor, err);
  return st == TN_OK ? st : (tn_error_prefix(err, "node '%s': attribute '%s', item %zu", op->name, name, i), st);
}
