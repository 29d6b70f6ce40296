/* SPDX-License-Identifier: Apache-2.0 */
/* Ops of eager sessions: copies of a name and attributes, from which plans are made. */
#include <core/eager/op.h>
#include <core/eager/devices.h>
#include <core/eager/queue.h>

#define MOST_ATTRS 4096 /* of an op */

/* ---- copies of attributes ---- */

/* All copies are in the op's arena, except tensors, which are references. Functions return false
 * without memory. */

static const void *copy_bytes(tn__arena *a, const void *from, size_t count, size_t size)
{
  void *to = tn__arena_array(a, count > 0 ? count : 1, size);
  if (to != NULL && count > 0) memcpy(to, from, count * size);
  return to;
}

/* Copies strings with their lengths. */
static bool copy_texts(tn__arena *a, const tn_eager_attr *from, tn_eager_attr *to)
{
  const char *const *texts = from->at;
  const size_t *sizes = (from->kind & ~TN_ATTR_LIST) == TN_ATTR_STRING ? from->sizes : NULL;
  const char **copies = tn__arena_array(a, from->n + 1, sizeof *copies);
  size_t *lengths = tn__arena_array(a, from->n + 1, sizeof *lengths);
  for (size_t i = 0; copies != NULL && lengths != NULL && i < from->n; i++) {
    lengths[i] = sizes != NULL ? sizes[i] : strlen(texts[i]);
    copies[i] = tn__arena_string(a, texts[i], lengths[i]);
    if (copies[i] == NULL) return false;
  }
  to->at = copies;
  to->sizes = lengths;
  return copies != NULL && lengths != NULL;
}

static bool copy_shapes(tn__arena *a, const tn_eager_attr *from, tn_eager_attr *to)
{
  const int64_t *const *shapes = from->at;
  const int32_t *ranks = from->sizes;
  const int64_t **copies = tn__arena_array(a, from->n + 1, sizeof *copies);
  for (size_t i = 0; copies != NULL && i < from->n; i++) {
    copies[i] = copy_bytes(a, shapes[i], ranks[i] > 0 ? (size_t)ranks[i] : 0, sizeof(int64_t));
    if (copies[i] == NULL) return false;
  }
  to->at = copies;
  to->sizes = from->n == 0 ? NULL : copy_bytes(a, ranks, from->n, sizeof *ranks);
  return copies != NULL && (from->n == 0 || to->sizes != NULL);
}

static bool copy_attr(tn__arena *a, const tn_eager_attr *from, tn_eager_attr *to)
{
  *to = *from;
  to->name = tn__arena_string(a, from->name, strlen(from->name));
  if (to->name == NULL) return false;
  switch (from->kind) {
  case TN_ATTR_STRING: return (to->at = tn__arena_string(a, from->n > 0 ? from->at : "", from->n)) != NULL;
  case TN_ATTR_FUNC: return (to->at = tn__arena_string(a, from->at, strlen(from->at))) != NULL;
  case TN_ATTR_SHAPE:
    return (to->at = copy_bytes(a, from->at, from->rank > 0 ? (size_t)from->rank : 0, sizeof(int64_t))) != NULL;
  case TN_ATTR_TENSOR: tn_tensor_ref((tn_tensor *)(uintptr_t)from->at); return true;
  case TN_ATTR_LIST | TN_ATTR_INT: return (to->at = copy_bytes(a, from->at, from->n, sizeof(int64_t))) != NULL;
  case TN_ATTR_LIST | TN_ATTR_FLOAT: return (to->at = copy_bytes(a, from->at, from->n, sizeof(float))) != NULL;
  case TN_ATTR_LIST | TN_ATTR_BOOL: return (to->at = copy_bytes(a, from->at, from->n, sizeof(tn_bool))) != NULL;
  case TN_ATTR_LIST | TN_ATTR_TYPE: return (to->at = copy_bytes(a, from->at, from->n, sizeof(tn_dtype))) != NULL;
  case TN_ATTR_LIST | TN_ATTR_STRING:
  case TN_ATTR_LIST | TN_ATTR_FUNC: return copy_texts(a, from, to);
  case TN_ATTR_LIST | TN_ATTR_SHAPE: return copy_shapes(a, from, to);
  default: return true;
  }
}

/* ---- checks ---- */

/* Why the items of a list cannot be used; NULL: they can. */
static const char *missing_items(const tn_eager_attr *a)
{
  int32_t item = a->kind & ~TN_ATTR_LIST;
  for (size_t i = 0; i < a->n; i++) {
    if ((item == TN_ATTR_STRING || item == TN_ATTR_FUNC) && ((const char *const *)a->at)[i] == NULL)
      return "has an item that is NULL";
    if (item == TN_ATTR_SHAPE && a->sizes == NULL) return "is a list of shapes without ranks";
    if (item == TN_ATTR_SHAPE && ((const int32_t *)a->sizes)[i] > 0 && ((const int64_t *const *)a->at)[i] == NULL)
      return "has an item that is NULL";
  }
  return NULL;
}

/* Why an attribute cannot be used; NULL: it can. */
static const char *what_is_wrong(const tn_eager_attr *a)
{
  if (a->kind & TN_ATTR_LIST) {
    int32_t item = a->kind & ~TN_ATTR_LIST;
    if (item < TN_ATTR_STRING || item > TN_ATTR_FUNC || item == TN_ATTR_TENSOR)
      return "is of an unsupported kind";
    return a->n > 0 && a->at == NULL ? "has no items" : missing_items(a);
  }
  if (a->kind < TN_ATTR_STRING || a->kind > TN_ATTR_FUNC) return "is of an unsupported kind";
  if (a->kind == TN_ATTR_SHAPE && (a->rank > TN_MAX_RANK || a->rank < -1)) return "has an invalid rank";
  bool needs = a->kind == TN_ATTR_TENSOR || a->kind == TN_ATTR_FUNC || (a->kind == TN_ATTR_STRING && a->n > 0) ||
               (a->kind == TN_ATTR_SHAPE && a->rank > 0);
  return needs && a->at == NULL ? "has no value" : NULL;
}

tn_status tn__eager_attrs_check(const char *op, const tn_eager_attr *attrs, size_t n, tn_error *err)
{
  if (n > 0 && attrs == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "op '%.200s': attrs is NULL", op);
  if (n > MOST_ATTRS) return tn_error_set(err, TN_INVALID_ARGUMENT, "op '%.200s': %zu attributes are too many", op, n);
  for (size_t i = 0; i < n; i++) {
    if (attrs[i].name == NULL)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "op '%.200s': attribute %zu has no name", op, i);
    const char *why = what_is_wrong(&attrs[i]);
    if (why != NULL)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "op '%.200s': attribute '%.200s' %s", op, attrs[i].name, why);
  }
  return TN_OK;
}

/* ---- making ---- */

/* Beginning an operation loads the plugin that registers its op, if there is one. */
static bool is_in_plugin(const char *op)
{
  tn_graph *graph;
  if (tn_graph_create(&graph, NULL) != TN_OK) return false;
  tn_operation_abandon(tn_operation_begin(graph, op, "op", 0));
  tn_graph_unref(graph);
  return tn_op_schema_find(op) != NULL;
}

/* An op must be registered, or be a function of the session. */
static tn_status check_known(tn_eager_session *s, const char *op, tn_error *err)
{
  tn__mutex_lock(&s->mu);
  tn_graph *library = s->library;
  tn__mutex_unlock(&s->mu);
  if (tn_op_schema_find(op) != NULL) return TN_OK;
  if (library != NULL && tn_graph_find_function(library, op) != NULL) return TN_OK;
  return is_in_plugin(op) ? TN_OK : tn__op_not_registered(op, err);
}

static tn_status fill(tn_eager_op *op, const char *name, const char *device, const tn_eager_attr *attrs, size_t n,
                      tn_error *err)
{
  if (device == NULL) device = "";
  op->name = tn__arena_string(&op->arena, name, strlen(name));
  op->device = tn__arena_string(&op->arena, device, strlen(device));
  op->attrs = tn__arena_array(&op->arena, n + 1, sizeof *op->attrs);
  if (op->name == NULL || op->device == NULL || op->attrs == NULL) return tn__no_memory(err, "eager op", 0);
  for (; op->n_attrs < n; op->n_attrs++)
    if (!copy_attr(&op->arena, &attrs[op->n_attrs], &op->attrs[op->n_attrs])) return tn__no_memory(err, "eager op", 0);
  return TN_OK;
}

bool tn__eager_op_copy_tensors(tn_eager_op *op)
{
  for (size_t i = 0; i < op->n_attrs; i++) {
    tn_tensor *own, *given = (tn_tensor *)(uintptr_t)op->attrs[i].at;
    if (op->attrs[i].kind != TN_ATTR_TENSOR) continue;
    if (tn_tensor_copy(given, &own, NULL) != TN_OK) return false;
    op->attrs[i].at = own;
    tn_tensor_unref(given);
  }
  return true;
}

void tn__eager_op_destroy(tn_eager_op *op)
{
  tn_eager_session *s = op->session;
  for (size_t i = 0; i < op->n_attrs; i++)
    if (op->attrs[i].kind == TN_ATTR_TENSOR) tn_tensor_unref((tn_tensor *)(uintptr_t)op->attrs[i].at);
  tn__arena_fini(&op->arena);
  tn__mutex_fini(&op->mu);
  tn__free(op, sizeof *op);
  tn__eager_unref(s);
}

tn_status tn__eager_op_create(tn_eager_session *s, const char *name, const char *device, const tn_eager_attr *attrs,
                           size_t n, tn_eager_op **out, tn_error *err)
{
  *out = NULL;
  uint16_t place;
  tn_status st = tn__eager_attrs_check(name, attrs, n, err);
  if (st == TN_OK) st = check_known(s, name, err);
  if (st == TN_OK) st = tn__eager_device_find(s, device, &place, err);
  if (st != TN_OK) return st;
  tn_eager_op *op = tn__zalloc(sizeof *op);
  if (op == NULL) return tn__no_memory(err, "eager op", sizeof *op);
  op->session = s;
  op->place = place;
  atomic_fetch_add(&s->refs, 1);
  tn__arena_init(&op->arena, 256);
  tn__mutex_init(&op->mu, "eager op", TN_RANK_EAGER_OP);
  st = fill(op, name, device, attrs, n, err);
  if (st == TN_OK) *out = op;
  else tn__eager_op_destroy(op);
  return st;
}

/* The first argument that is NULL; "out" if these are not. */
static const char *missing_argument(const tn_eager_session *s, const char *op)
{
  if (s == NULL) return "session";
  return op == NULL ? "op" : "out";
}

tn_status tn_eager_op_create(tn_eager_session *s, const char *op, const char *device, const tn_eager_attr *attrs,
                             size_t n_attrs, tn_eager_op **out, tn_error *err)
{
  tn__error_reset(err);
  if (out != NULL) *out = NULL;
  if (s == NULL || op == NULL || out == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_eager_op_create: %s is NULL",
                        missing_argument(s, op));
  tn__eager_frame frame;
  uint32_t thread = tn__thread_number();
  tn_status st = tn__eager_enter(s, &frame, thread, err);
  if (st != TN_OK) return st;
  st = tn__eager_op_create(s, op, device, attrs, n_attrs, out, err);
  if (st == TN_OK) {
    tn__mutex_lock(&s->mu);
    (*out)->next = s->ops;
    if (s->ops != NULL) s->ops->prev = *out;
    s->ops = *out;
    tn__mutex_unlock(&s->mu);
  }
  tn__eager_leave(s, &frame, thread);
  return st;
}

/* May be called after the session was closed, and from a function that is called when a tensor is
 * deleted (inside). Close frees the plans of all ops, so this waits until it has ended, unless this
 * thread is the one that closes. */
void tn_eager_op_destroy(tn_eager_op *op)
{
  if (op == NULL || tn__forked()) return;
  tn_eager_session *s = op->session;
  tn__eager_frame frame;
  uint32_t thread = tn__thread_number();
  bool inside = tn__eager_is_inside(s);
  bool open = tn__eager_enter_to_free(s, &frame, thread);
  if (!open && !inside) tn__eager_wait_for_end(s); /* close uses its plans until then */
  tn__mutex_lock(&s->mu);
  if (op->prev != NULL) op->prev->next = op->next;
  else s->ops = op->next;
  if (op->next != NULL) op->next->prev = op->prev;
  tn__mutex_unlock(&s->mu);
  if (open && s->queue != NULL) tn__eager_queue_wait(s, NULL, false); /* tasks in the queue may use it */
  if (open || inside) tn__eager_plans_destroy(s, op);
  if (open) tn__eager_leave(s, &frame, thread);
  tn__eager_op_destroy(op);
}
