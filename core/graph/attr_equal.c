/* SPDX-License-Identifier: Apache-2.0 */
/* Whether two operations would compute the same from the same inputs. The comparison must be cheap, so it may miss
 * equal attributes, but never takes different ones for equal. */
#include <core/graph/graph_structs.h>

#include <string.h>

#define MAX_TENSOR_BYTES 4096 /* larger constants are not compared */

static bool same_tensors(const tn_operation *a, tn__lazy_tensor *x, const tn_operation *b, tn__lazy_tensor *y)
{
  if (x == y) return true;
  if (x->proto.data != NULL && y->proto.data != NULL)
    if (x->proto.size > 2 * MAX_TENSOR_BYTES || y->proto.size > 2 * MAX_TENSOR_BYTES) return false;
  tn_tensor *s, *t;
  if (tn__attr_get_tensor(a, x, &s, NULL) != TN_OK || tn__attr_get_tensor(b, y, &t, NULL) != TN_OK) return false;
  if (s->dtype != t->dtype || s->rank != t->rank || s->bytes != t->bytes || s->bytes > MAX_TENSOR_BYTES) return false;
  if (tn__dtype_is_managed(s->dtype)) return false;
  if (s->rank > 0 && memcmp(s->dims, t->dims, (size_t)s->rank * sizeof *s->dims) != 0) return false;
  return s->bytes == 0 || memcmp(s->data, t->data, s->bytes) == 0;
}

static bool same_shape(const tn__shape *a, const tn__shape *b)
{
  return a->rank == b->rank && (a->rank <= 0 || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0);
}

/* Functions that have attributes count as different. */
static bool same_funcs(const tn__func *a, const tn__func *b)
{
  return a->attrs == NULL && b->attrs == NULL && tn__slice_equal(a->name, b->name);
}

static bool same_lists(const tn__attr *a, const tn__attr *b)
{
  size_t n = a->v.list.n;
  const void *x = a->v.list.items, *y = b->v.list.items;
  int32_t kind = a->kind - TN_ATTR_LIST;
  bool same = n == b->v.list.n;
  if (!same || n == 0) return same;
  switch (kind) {
  case TN_ATTR_STRING:
    for (size_t i = 0; same && i < n; i++) same = tn__slice_equal(((const tn__slice *)x)[i], ((const tn__slice *)y)[i]);
    return same;
  case TN_ATTR_FUNC:
    for (size_t i = 0; same && i < n; i++) same = same_funcs((const tn__func *)x + i, (const tn__func *)y + i);
    return same;
  case TN_ATTR_SHAPE:
    for (size_t i = 0; same && i < n; i++) same = same_shape((const tn__shape *)x + i, (const tn__shape *)y + i);
    return same;
  case TN_ATTR_INT:
  case TN_ATTR_FLOAT:
  case TN_ATTR_BOOL:
  case TN_ATTR_TYPE: return memcmp(x, y, n * tn__attr_item_size(kind)) == 0;
  default: return false;
  }
}

static bool same_values(const tn_operation *x, const tn__attr *a, const tn_operation *y, const tn__attr *b)
{
  if (a == b) return true;
  if ((a->lazy || b->lazy) && a->proto.size >= TN__LARGE_CONSTANT) return false; /* its bytes may be discarded */
  if (a->lazy || b->lazy) return a->proto.data != NULL && b->proto.data != NULL && tn__slice_equal(a->proto, b->proto);
  if (a->kind != b->kind) return false;
  if (a->kind & TN_ATTR_LIST) return same_lists(a, b);
  switch (a->kind) {
  case TN_ATTR_STRING: return tn__slice_equal(a->v.text, b->v.text);
  case TN_ATTR_INT: return a->v.i == b->v.i;
  case TN_ATTR_FLOAT: return memcmp(&a->v.f, &b->v.f, sizeof a->v.f) == 0;
  case TN_ATTR_BOOL: return a->v.b == b->v.b;
  case TN_ATTR_TYPE: return a->v.type == b->v.type;
  case TN_ATTR_SHAPE: return same_shape(&a->v.shape, &b->v.shape);
  case TN_ATTR_TENSOR: return same_tensors(x, a->v.tensor, y, b->v.tensor);
  case TN_ATTR_FUNC: return same_funcs(&a->v.func, &b->v.func);
  default: return false;
  }
}

bool tn__operation_same_attrs(const tn_operation *a, const tn_operation *b)
{
  if (a->schema == NULL || a->schema != b->schema) return false;
  for (uint32_t i = 0; i < a->schema->n_attrs; i++)
    if (!same_values(a, tn__op_attr(a, i), b, tn__op_attr(b, i))) return false;
  return true;
}

static uint64_t hashed_value(const tn__attr *a)
{
  if (a->lazy) return 0;
  switch (a->kind) {
  case TN_ATTR_INT: return (uint64_t)a->v.i;
  case TN_ATTR_BOOL: return a->v.b;
  case TN_ATTR_TYPE: return (uint64_t)a->v.type;
  default: return 0;
  }
}

/* Covers only the kinds that differ most often: equal attributes have equal hashes, different ones may, too. */
uint64_t tn__operation_attrs_hash(const tn_operation *op)
{
  uint64_t h = 0;
  for (uint32_t i = 0; op->schema != NULL && i < op->schema->n_attrs; i++) {
    h = (h ^ hashed_value(tn__op_attr(op, i))) * UINT64_C(0x9e3779b97f4a7c15);
    h ^= h >> 29;
  }
  return h;
}
