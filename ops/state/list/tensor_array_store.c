/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor arrays: the object referenced by a handle. */
#include <core/base/text.h>
#include <core/tensor/tensor_internal.h>
#include <ops/state/list/tensor_array_store.h>
#include <string.h>

enum { WRITTEN = 1, READ = 2, CLEARED = 4, SUM = 8 /* the tensor is a sum made here, with no other holder */ };

#define NO_SHAPE UINT32_MAX

/* ---- creation and destruction ---- */

/* The value of the array for ops with string handles: container and name. */
static tn_status read_handle(void *object, tn_tensor **out, tn_error *err)
{
  const tn__array *a = object;
  const int64_t two = 2;
  const char *texts[2] = { TN__ARRAY_HOME, a->step_name };
  *out = NULL;
  if (a->step_name == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "a TensorArray has no value");
  return tn_tensor_from_strings(&two, 1, texts, NULL, out, err);
}

const tn_resource_class tn__array_class = { .struct_size = sizeof tn__array_class, .name = "TensorArray",
                                            .destroy = tn__array_destroy, .read = read_handle };

/* Fresh pages are zero and not touched here, so a large index costs memory only for elements that
 * are written. */
static tn_status reserve(tn__array *a, size_t wanted, tn_error *err)
{
  if (wanted <= a->room) return TN_OK;
  size_t room = a->size == 0 ? wanted : wanted + wanted / 2, bytes;
  if (!tn__size_mul(room, sizeof *a->items, &bytes)) return tn__no_memory(err, "elements of a tensor array", SIZE_MAX);
  tn_status st = tn__charge_set(&a->charge, "elements of a tensor array", bytes, err);
  if (st != TN_OK) return st;
  tn__array_item *items = tn__alloc_array(room, sizeof *items);
  if (items == NULL) {
    tn__charge_settle(&a->charge, a->room * sizeof *items);
    return tn__no_memory(err, "elements of a tensor array", bytes);
  }
  if (a->used > 0) memcpy(items, a->items, (size_t)a->used * sizeof *items);
  tn__free(a->items, a->room * sizeof *items);
  a->items = items;
  a->room = room;
  return TN_OK;
}

tn_status tn__array_create(const tn__array_spec *spec, tn__array **out, tn_error *err)
{
  tn__array *a = tn__zalloc(sizeof *a);
  *out = NULL;
  if (a == NULL) return tn__no_memory(err, "tensor array", sizeof *a);
  tn__mutex_init(&a->mu, "tensor array", TN_RANK_TENSOR_ARRAY);
  a->dtype = spec->dtype;
  a->grows = spec->grows;
  a->clear_after_read = spec->clear_after_read;
  a->identical_shapes = spec->identical_shapes;
  a->last_shape = NO_SHAPE;
  tn__shape_set(&a->element, spec->dims, spec->rank);
  tn_status st = reserve(a, (size_t)spec->size, err);
  if (st != TN_OK) {
    tn__array_destroy(a);
    return st;
  }
  a->size = spec->size;
  *out = a;
  return TN_OK;
}

static void free_items(tn__array_item *items, int64_t used, size_t room)
{
  for (int64_t i = 0; i < used; i++) tn_tensor_unref(items[i].tensor);
  tn__free(items, room * sizeof *items);
}

static void free_gradients(tn__array_gradient *list, size_t n, size_t room)
{
  for (size_t i = 0; i < n; i++) {
    tn__strfree(list[i].source);
    tn_resource_unref(list[i].resource);
  }
  tn__free(list, room * sizeof *list);
}

void tn__array_destroy(void *array)
{
  tn__array *a = array;
  free_items(a->items, a->used, a->room);
  tn__charge_end(&a->charge);
  free_gradients(a->gradients, a->n_gradients, a->gradients_room);
  tn__free(a->shapes, a->shapes_room * sizeof *a->shapes);
  tn__strfree(a->step_name);
  tn__mutex_fini(&a->mu);
  tn__free(a, sizeof *a);
}

void tn__array_close(tn__array *a)
{
  tn__mutex_lock(&a->mu);
  tn__array_item *items = a->items;
  int64_t used = a->used;
  size_t room = a->room;
  a->items = NULL;
  a->size = a->used = 0;
  a->room = 0;
  tn__charge_settle(&a->charge, 0);
  a->closed = true;
  tn__mutex_unlock(&a->mu);
  free_items(items, used, room); /* after unlocking: elements may own arrays and lists */
}

/* ---- shapes ---- */

/* Records a shape, unless it equals the last recorded one. Returns false if out of memory. */
static bool note_shape(tn__array *a, const int64_t *dims, int32_t rank, uint32_t *at)
{
  const int64_t *last = a->last_shape == NO_SHAPE ? NULL : a->shapes + a->last_shape;
  *at = a->last_shape;
  if (last != NULL && last[0] == rank && (rank == 0 || memcmp(last + 1, dims, (size_t)rank * sizeof *dims) == 0))
    return true;
  size_t wanted = a->n_shapes + 1 + (size_t)rank;
  if (wanted >= NO_SHAPE || !tn__grow((void **)&a->shapes, &a->shapes_room, wanted, sizeof *a->shapes)) return false;
  a->shapes[a->n_shapes] = rank;
  if (rank > 0) memcpy(a->shapes + a->n_shapes + 1, dims, (size_t)rank * sizeof *dims);
  *at = a->last_shape = (uint32_t)a->n_shapes;
  a->n_shapes = wanted;
  return true;
}

static tn_status closed(const char *name, tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "TensorArray '%s' has been closed", name);
}

tn_status tn__array_refine(tn__array *a, const char *name, const int64_t *dims, int32_t rank, tn__shape *element,
                           tn_error *err)
{
  char mine[160], other[160];
  tn_status st = TN_OK;
  tn__mutex_lock(&a->mu);
  if (!tn__shape_merge(&a->element, dims, rank))
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "TensorArray '%s' has elements of shape %s, the op wants %s", name,
                      tn__format_shape(mine, sizeof mine, a->element.dims, a->element.rank),
                      tn__format_shape(other, sizeof other, dims, rank));
  if (st == TN_OK && a->closed) st = closed(name, err);
  tn__shape_set(element, a->element.dims, a->element.rank);
  tn__mutex_unlock(&a->mu);
  return st;
}

tn_status tn__array_want(const tn__array *a, const char *name, tn_dtype dtype, tn_error *err)
{
  if (a->dtype == dtype) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "TensorArray '%s' has elements of dtype %s, the op's is %s", name,
                      tn_dtype_name(a->dtype), tn_dtype_name(dtype));
}

tn_status tn__array_size(tn__array *a, const char *name, int64_t *size, bool *grows, tn_error *err)
{
  tn__mutex_lock(&a->mu);
  tn_status st = a->closed ? closed(name, err) : TN_OK;
  *size = a->size;
  *grows = a->grows;
  tn__mutex_unlock(&a->mu);
  return st;
}

/* ---- writing ---- */

static tn_status find_place(tn__array *a, const char *name, int32_t index, tn_error *err)
{
  if (index >= 0 && index < a->size) return TN_OK;
  if (index < 0 || !a->grows)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "TensorArray '%s': element %d is written, the array has %lld%s", name,
                        (int)index, (long long)a->size, index < 0 ? "" : " and does not grow");
  tn_status st = reserve(a, (size_t)index + 1, err);
  if (st == TN_OK) a->size = (int64_t)index + 1;
  return st;
}

static tn_status bad_shape(const char *name, int32_t index, const tn_tensor *t, const char *what, const int64_t *dims,
                           int32_t rank, tn_error *err)
{
  char found[160], wanted[160];
  return tn_error_set(err, TN_INVALID_ARGUMENT,
                      "TensorArray '%s': a tensor of shape %s is written to element %d, %s %s", name,
                      tn__format_shape(found, sizeof found, t->dims, t->rank), (int)index, what,
                      tn__format_shape(wanted, sizeof wanted, dims, rank));
}

/* Adds to an element that was written before. On return the caller owns the tensors in *value and
 * *spent. */
static tn_status add_to(tn__array *a, const char *name, int32_t index, tn_tensor **value, tn_tensor **spent,
                        tn_error *err)
{
  tn__array_item *item = &a->items[index];
  tn_tensor *t = *value, *sum;
  const int64_t *shape = a->shapes + item->shape;
  if (shape[0] != t->rank || (t->rank > 0 && memcmp(shape + 1, t->dims, (size_t)t->rank * sizeof *shape) != 0))
    return bad_shape(name, index, t, "where the sum so far has", shape + 1, (int32_t)shape[0], err);
  if (item->tensor == NULL || t->count == 0) { /* zeros so far */
    *value = item->tensor;
    item->tensor = t;
    return TN_OK;
  }
  if (!tn__can_add(a->dtype))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "TensorArray '%s': elements of dtype %s cannot be added", name,
                        tn_dtype_name(a->dtype));
  if (item->flags & SUM) {
    tn__add_elements(a->dtype, item->tensor->data, item->tensor->data, t->data, t->count);
    return TN_OK;
  }
  tn_status st = tn_tensor_create(t->dtype, t->dims, t->rank, &sum, err);
  if (st != TN_OK) return st;
  tn__add_elements(a->dtype, sum->data, item->tensor->data, t->data, t->count);
  *spent = item->tensor;
  item->tensor = sum;
  item->flags |= SUM;
  return TN_OK;
}

static tn_status write_one(tn__array *a, const char *name, int32_t index, tn_tensor **value, tn_tensor **spent,
                           tn_error *err)
{
  const tn_tensor *t = *value;
  tn_status st = find_place(a, name, index, err);
  if (st != TN_OK) return st;
  tn__array_item *item = &a->items[index];
  if (!tn__shape_fits(a->element.dims, a->element.rank, t->dims, t->rank))
    return bad_shape(name, index, t, "elements have", a->element.dims, a->element.rank, err);
  if (item->flags & READ)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "TensorArray '%s': element %d is written after it was read", name,
                        (int)index);
  if ((item->flags & WRITTEN) && !a->is_gradient)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "TensorArray '%s': element %d is written a second time", name,
                        (int)index);
  if (a->identical_shapes) tn__shape_set(&a->element, t->dims, t->rank);
  if (item->flags & WRITTEN) return add_to(a, name, index, value, spent, err);
  if (!note_shape(a, t->dims, t->rank, &item->shape)) return tn__no_memory(err, "shapes of a tensor array", 0);
  item->tensor = *value;
  item->flags = WRITTEN;
  if (index >= a->used) a->used = (int64_t)index + 1;
  *value = NULL;
  return TN_OK;
}

tn_status tn__array_write(tn__array *a, const char *name, const int32_t *indices, tn_tensor **tensors, int64_t n,
                          tn_error *err)
{
  tn__mutex_lock(&a->mu);
  tn_status st = a->closed ? closed(name, err) : TN_OK;
  for (int64_t k = 0; st == TN_OK && k < n; k++)
    st = write_one(a, name, indices == NULL ? (int32_t)k : indices[k], &tensors[k], &tensors[n + k], err);
  tn__mutex_unlock(&a->mu);
  return st;
}

/* ---- reading ---- */

/* Zeros for an element without a tensor, in its known shape, or that of all elements. */
static tn_status read_zeros(tn__array *a, const char *name, int32_t index, tn_tensor **out, tn_error *err)
{
  const tn__array_item *item = &a->items[index];
  char known[160];
  bool shaped = (item->flags & WRITTEN) != 0;
  const int64_t *shape = shaped ? a->shapes + item->shape : NULL;
  if (!shaped && !tn__shape_is_known(a->element.dims, a->element.rank))
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "TensorArray '%s': element %d is read, but was not written, and the shape of zeros in its "
                        "place is not known: the shape of elements is %s",
                        name, (int)index, tn__format_shape(known, sizeof known, a->element.dims, a->element.rank));
  if (a->dtype != TN_BOOL && !tn__can_add(a->dtype))
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "TensorArray '%s': element %d is read, but was not written, and there are "
                        "no zeros of dtype %s",
                        name, (int)index, tn_dtype_name(a->dtype));
  if (shaped) return tn__zeros(a->dtype, shape + 1, (int32_t)shape[0], out, err);
  return tn__zeros(a->dtype, a->element.dims, a->element.rank, out, err);
}

static tn_status read_one(tn__array *a, const char *name, int32_t index, tn_tensor **out, tn_error *err)
{
  if (index < 0 || index >= a->size)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "TensorArray '%s': element %d is read, the array has %lld", name,
                        (int)index, (long long)a->size);
  tn__array_item *item = &a->items[index];
  if (item->flags & CLEARED)
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "TensorArray '%s': element %d is read a second time, the first time has "
                        "cleared it (attribute clear_after_read)",
                        name, (int)index);
  if (item->tensor == NULL) {
    tn_status st = read_zeros(a, name, index, out, err);
    if (st != TN_OK) return st;
  } else {
    *out = a->clear_after_read ? item->tensor : tn_tensor_ref(item->tensor);
  }
  item->flags |= READ;
  if (index >= a->used) a->used = (int64_t)index + 1;
  if (a->clear_after_read) {
    item->flags |= CLEARED;
    item->tensor = NULL;
  }
  return TN_OK;
}

tn_status tn__array_read(tn__array *a, const char *name, const int32_t *indices, tn_tensor **tensors, int64_t n,
                         tn_error *err)
{
  tn__mutex_lock(&a->mu);
  tn_status st = a->closed ? closed(name, err) : TN_OK;
  for (int64_t k = 0; st == TN_OK && k < n; k++)
    st = read_one(a, name, indices == NULL ? (int32_t)k : indices[k], &tensors[k], err);
  tn__mutex_unlock(&a->mu);
  return st;
}

/* ---- gradients ---- */

static tn__array_gradient *find_gradient(const tn__array *a, const char *source)
{
  for (size_t i = 0; i < a->n_gradients; i++)
    if (strcmp(a->gradients[i].source, source) == 0) return &a->gradients[i];
  return NULL;
}

/* Written elements have a known shape, so their gradients read as zeros of that shape until they
 * are written. */
static tn_status copy_shapes(tn__array *g, const tn__array *a, const tn__shape *prepend, tn_error *err)
{
  int64_t dims[2 * TN_MAX_RANK];
  uint32_t from = NO_SHAPE, to = NO_SHAPE;
  for (int64_t i = 0; i < a->used; i++) {
    const tn__array_item *item = &a->items[i];
    if (!(item->flags & WRITTEN)) continue;
    if (item->shape != from) {
      const int64_t *shape = a->shapes + item->shape;
      int32_t rank = prepend->rank + (int32_t)shape[0];
      if (rank > TN_MAX_RANK)
        return tn_error_set(err, TN_INVALID_ARGUMENT, "gradients of a TensorArray would have more than %d dimensions",
                            TN_MAX_RANK);
      memcpy(dims, prepend->dims, (size_t)prepend->rank * sizeof *dims);
      memcpy(dims + prepend->rank, shape + 1, (size_t)shape[0] * sizeof *dims);
      if (!note_shape(g, dims, rank, &to)) return tn__no_memory(err, "shapes of a tensor array", 0);
      from = item->shape;
    }
    g->items[i] = (tn__array_item){ .shape = to, .flags = WRITTEN };
  }
  g->used = a->used;
  return TN_OK;
}

static tn_status name_gradient(tn__array *g, const char *array, const char *source, tn_error *err)
{
  tn__text t;
  tn__text_init(&t, SIZE_MAX);
  tn__text_printf(&t, "%s@%s", array, source);
  g->step_name = t.failed ? NULL : tn__strdup(tn__text_get(&t));
  tn__text_fini(&t);
  return g->step_name != NULL ? TN_OK : tn__no_memory(err, "name of a tensor array", 0);
}

static tn_status make_gradient(const tn__array *a, const char *name, const char *source, const tn__shape *prepend,
                               tn_resource **out, tn_error *err)
{
  tn__shape element;
  tn__shape_unknown(&element);
  if (a->element.rank >= 0) tn__shape_set(&element, prepend->dims, prepend->rank);
  for (int32_t d = 0; d < a->element.rank; d++)
    if (!tn__shape_append(&element, a->element.dims[d]))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "gradients of a TensorArray would have more than %d dimensions",
                          TN_MAX_RANK);
  const tn__array_spec spec = { .dtype = a->dtype, .size = a->size, .dims = element.dims, .rank = element.rank,
                                .clear_after_read = true, .identical_shapes = a->identical_shapes };
  tn__array *g;
  tn_status st = tn__array_create(&spec, &g, err);
  if (st != TN_OK) return st;
  g->is_gradient = true;
  if (a->step_name != NULL) st = name_gradient(g, a->step_name, source, err);
  if (st == TN_OK) st = copy_shapes(g, a, prepend, err);
  if (st == TN_OK) return tn_resource_create(&tn__array_class, name, g, out, err);
  tn__array_destroy(g);
  return st;
}

static tn_status add_gradient(tn__array *a, const char *name, const char *source, const tn__shape *prepend,
                              tn_error *err)
{
  char *copy = tn__strdup(source);
  if (copy == NULL ||
      !tn__grow((void **)&a->gradients, &a->gradients_room, a->n_gradients + 1, sizeof *a->gradients)) {
    tn__strfree(copy);
    return tn__no_memory(err, "gradients of a tensor array", 0);
  }
  tn__array_gradient *g = &a->gradients[a->n_gradients];
  *g = (tn__array_gradient){ .source = copy };
  tn_status st = make_gradient(a, name, source, prepend, &g->resource, err);
  if (st == TN_OK) a->n_gradients++;
  else tn__strfree(copy);
  return st;
}

tn_status tn__array_gradient_of(tn__array *a, const char *name, const char *source, const tn__shape *prepend,
                                tn_resource **out, tn_error *err)
{
  *out = NULL;
  if (a->is_gradient)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "TensorArray '%s' is one of gradients, which has no gradients itself",
                        name);
  tn__mutex_lock(&a->mu);
  tn_status st = a->closed ? closed(name, err) : TN_OK;
  if (st == TN_OK && find_gradient(a, source) == NULL) st = add_gradient(a, name, source, prepend, err);
  if (st == TN_OK) {
    a->grows = false;
    *out = tn_resource_ref(find_gradient(a, source)->resource);
  }
  tn__mutex_unlock(&a->mu);
  return st;
}

tn_resource *tn__array_find_gradient(tn__array *a, const char *source)
{
  tn__mutex_lock(&a->mu);
  const tn__array_gradient *g = find_gradient(a, source);
  tn_resource *found = g == NULL ? NULL : tn_resource_ref(g->resource);
  tn__mutex_unlock(&a->mu);
  return found;
}
