/* SPDX-License-Identifier: Apache-2.0 */
/* Setters of a builder's attributes. Values are copied into the builder's memory; of tensors it takes a reference. */
#include <core/graph/graph_structs.h>

#include <string.h>

static void no_memory(tn_operation_builder *b) { tn__no_memory(&b->error, "operation builder", 0); }

void tn__builder_drop_tensors(tn__attr *a)
{
  if (a->kind == TN_ATTR_TENSOR && a->v.tensor != NULL) tn_tensor_unref(atomic_load(&a->v.tensor->tensor));
  if (a->kind != TN_ATTR_TENSOR + TN_ATTR_LIST) return;
  tn__lazy_tensor *const *items = a->v.list.items;
  for (size_t i = 0; i < a->v.list.n; i++) tn_tensor_unref(atomic_load(&items[i]->tensor));
}

tn__attr *tn__builder_attr(tn_operation_builder *b, const char *name)
{
  if (b == NULL || tn_error_code(&b->error) != TN_OK) return NULL;
  size_t size = name == NULL ? 0 : strlen(name);
  if (size == 0 || size > UINT16_MAX) {
    tn_error_set(&b->error, TN_INVALID_ARGUMENT, "the name of an attribute has %zu bytes, wanted 1 to %d", size,
                 UINT16_MAX);
    return NULL;
  }
  tn__attr *a = NULL;
  for (size_t i = 0; i < b->n_attrs && a == NULL; i++)
    if (b->attrs[i].name_size == size && memcmp(b->attrs[i].name, name, size) == 0) a = &b->attrs[i];
  if (a != NULL) {
    tn__builder_drop_tensors(a);
    *a = (tn__attr){ .name = a->name, .name_size = a->name_size };
    return a;
  }
  char *copy = tn__arena_string(&b->arena, name, size);
  if (copy == NULL || !tn__grow((void **)&b->attrs, &b->attr_room, b->n_attrs + 1, sizeof *b->attrs)) {
    no_memory(b);
    return NULL;
  }
  a = &b->attrs[b->n_attrs++];
  *a = (tn__attr){ .name = copy, .name_size = (uint32_t)size };
  return a;
}

/* Allocates n items of `size` bytes and copies `values` (NULL: zeroes) into them. Not NULL for n = 0. NULL: the builder
 * has an error. */
static void *items_of(tn_operation_builder *b, const void *values, size_t n, size_t size)
{
  size_t bytes;
  void *items = tn__size_mul(n, size, &bytes) ? tn__arena_alloc(&b->arena, bytes) : NULL;
  if (items == NULL) no_memory(b);
  if (items != NULL && bytes > 0 && values != NULL) memcpy(items, values, bytes);
  if (items != NULL && bytes > 0 && values == NULL) memset(items, 0, bytes);
  return items;
}

static bool copy_text(tn_operation_builder *b, const void *text, size_t size, tn__slice *out)
{
  *out = (tn__slice){ tn__arena_string(&b->arena, text, size), size };
  if (out->data == NULL) no_memory(b);
  return out->data != NULL;
}

static bool copy_shape(tn_operation_builder *b, const char *attr, const int64_t *dims, int32_t rank, tn__shape *out)
{
  *out = (tn__shape){ NULL, -1 };
  if (rank < -1 || rank > TN_MAX_RANK) {
    tn_error_set(&b->error, TN_INVALID_ARGUMENT, "attribute '%.100s': rank %d, wanted -1 to %d", attr, (int)rank,
                 TN_MAX_RANK);
    return false;
  }
  for (int32_t i = 0; i < rank; i++) {
    if (dims[i] >= -1) continue;
    tn_error_set(&b->error, TN_INVALID_ARGUMENT, "attribute '%.100s': dimension %d is %lld, wanted at least -1", attr,
                 (int)i, (long long)dims[i]);
    return false;
  }
  if (rank > 0 && (out->dims = items_of(b, dims, (size_t)rank, sizeof *dims)) == NULL) return false;
  out->rank = rank;
  return true;
}

static tn__lazy_tensor *hold_tensor(tn_operation_builder *b, const char *attr, tn_tensor *tensor)
{
  if (tensor == NULL) {
    tn_error_set(&b->error, TN_INVALID_ARGUMENT, "attribute '%.100s': no tensor given", attr);
    return NULL;
  }
  tn__lazy_tensor *lazy = items_of(b, NULL, 1, sizeof *lazy);
  if (lazy != NULL) atomic_init(&lazy->tensor, tn_tensor_ref(tensor));
  return lazy;
}

/* ---- single values ---- */

#define SET(name_, type_, kind_, member)                                                   \
  void tn_operation_set_##name_(tn_operation_builder *b, const char *attr, type_ value)    \
  {                                                                                        \
    tn__attr *a = tn__builder_attr(b, attr);                                               \
    if (a == NULL) return;                                                                 \
    a->kind = kind_;                                                                       \
    a->v.member = value;                                                                   \
  }
SET(int, int64_t, TN_ATTR_INT, i)
SET(float, float, TN_ATTR_FLOAT, f)
SET(bool, tn_bool, TN_ATTR_BOOL, b)
SET(type, tn_dtype, TN_ATTR_TYPE, type)
#undef SET

void tn_operation_set_string(tn_operation_builder *b, const char *attr, const void *text, size_t length)
{
  tn__attr *a = tn__builder_attr(b, attr);
  if (a != NULL && copy_text(b, text, length, &a->v.text)) a->kind = TN_ATTR_STRING;
}

void tn_operation_set_func(tn_operation_builder *b, const char *attr, const char *function)
{
  tn__attr *a = tn__builder_attr(b, attr);
  size_t size = function == NULL ? 0 : strlen(function);
  if (a == NULL || !copy_text(b, function == NULL ? "" : function, size, &a->v.func.name)) return;
  a->v.func.attrs = NULL;
  a->kind = TN_ATTR_FUNC;
}

void tn_operation_set_shape(tn_operation_builder *b, const char *attr, const int64_t *dims, int32_t rank)
{
  tn__attr *a = tn__builder_attr(b, attr);
  if (a != NULL && copy_shape(b, attr, dims, rank, &a->v.shape)) a->kind = TN_ATTR_SHAPE;
}

void tn_operation_set_tensor(tn_operation_builder *b, const char *attr, tn_tensor *tensor)
{
  tn__attr *a = tn__builder_attr(b, attr);
  if (a != NULL && (a->v.tensor = hold_tensor(b, attr, tensor)) != NULL) a->kind = TN_ATTR_TENSOR;
}

/* ---- lists ---- */

static void set_list(tn__attr *a, int32_t kind, const void *items, size_t n)
{
  a->kind = (uint8_t)(TN_ATTR_LIST + kind);
  a->v.list.items = items;
  a->v.list.n = n;
}

#define SET_LIST(name_, type_, kind_)                                                                       \
  void tn_operation_set_##name_(tn_operation_builder *b, const char *attr, const type_ *values, size_t n)   \
  {                                                                                                         \
    tn__attr *a = tn__builder_attr(b, attr);                                                                \
    if (a == NULL) return;                                                                                  \
    void *items = items_of(b, values, n, sizeof(type_));                                                    \
    if (items != NULL) set_list(a, kind_, items, n);                                                        \
  }
SET_LIST(ints, int64_t, TN_ATTR_INT)
SET_LIST(floats, float, TN_ATTR_FLOAT)
SET_LIST(bools, tn_bool, TN_ATTR_BOOL)
SET_LIST(types, tn_dtype, TN_ATTR_TYPE)
#undef SET_LIST

void tn_operation_set_strings(tn_operation_builder *b, const char *attr, const void *const *texts,
                              const size_t *lengths, size_t n)
{
  tn__attr *a = tn__builder_attr(b, attr);
  if (a == NULL) return;
  tn__slice *items = items_of(b, NULL, n, sizeof *items);
  if (items == NULL) return;
  for (size_t i = 0; i < n; i++)
    if (!copy_text(b, texts[i], lengths == NULL ? strlen(texts[i]) : lengths[i], &items[i])) return;
  set_list(a, TN_ATTR_STRING, items, n);
}

void tn_operation_set_funcs(tn_operation_builder *b, const char *attr, const char *const *functions, size_t n)
{
  tn__attr *a = tn__builder_attr(b, attr);
  if (a == NULL) return;
  tn__func *items = items_of(b, NULL, n, sizeof *items);
  if (items == NULL) return;
  for (size_t i = 0; i < n; i++)
    if (!copy_text(b, functions[i], strlen(functions[i]), &items[i].name)) return;
  set_list(a, TN_ATTR_FUNC, items, n);
}

void tn_operation_set_shapes(tn_operation_builder *b, const char *attr, const int64_t *const *dims,
                             const int32_t *ranks, size_t n)
{
  tn__attr *a = tn__builder_attr(b, attr);
  if (a == NULL) return;
  tn__shape *items = items_of(b, NULL, n, sizeof *items);
  if (items == NULL) return;
  for (size_t i = 0; i < n; i++)
    if (!copy_shape(b, attr, dims[i], ranks[i], &items[i])) return;
  set_list(a, TN_ATTR_SHAPE, items, n);
}

void tn_operation_set_tensors(tn_operation_builder *b, const char *attr, tn_tensor *const *tensors, size_t n)
{
  tn__attr *a = tn__builder_attr(b, attr);
  if (a == NULL) return;
  tn__lazy_tensor **items = items_of(b, NULL, n, sizeof *items);
  if (items == NULL) return;
  set_list(a, TN_ATTR_TENSOR, items, 0);
  for (size_t i = 0; i < n; i++) {
    items[i] = hold_tensor(b, attr, tensors[i]);
    if (items[i] == NULL) return;
    a->v.list.n = i + 1; /* counts only items with a reference, which tn__builder_drop_tensors releases */
  }
}
