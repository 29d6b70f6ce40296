/* SPDX-License-Identifier: Apache-2.0 */
/* The variables of a session, without a step: their values are read from and written to the resources directly. */
#include <core/model/model.h>

#include <string.h>

/* The shared_name of a variable that is in no container: nothing but its own step can find it. */
#define ANONYMOUS "cd2c89b7-88b7-44c8-ad83-06c2a9158347"

static bool is_handle(const tn_operation *op) { return strcmp(tn_operation_type(op), "VarHandleOp") == 0; }

/* The text of an attribute, "" if there is none. Attributes end in a zero byte. */
static const char *text_of(const tn_operation *op, const char *attr)
{
  const char *text;
  size_t n;
  return tn_operation_attr_string(op, attr, &text, &n, NULL) == TN_OK && text != NULL ? text : "";
}

/* The name of the variable in its container, as the kernels of its op have it. */
static const char *resource_name(const tn_operation *op)
{
  const char *name = text_of(op, "shared_name");
  return name[0] != 0 || is_handle(op) ? name : tn_operation_name(op);
}

bool tn__is_variable(const tn_operation *op)
{
  const char *type = tn_operation_type(op);
  if (strcmp(type, "VariableV2") == 0 || strcmp(type, "Variable") == 0) return true;
  return is_handle(op) && strcmp(text_of(op, "shared_name"), ANONYMOUS) != 0;
}

/* ---- the list ---- */

/* Adds the operation unless an earlier one has the same resource. `keys` holds "container\0name" texts in the arena. */
static tn_status add(tn_operation *op, tn__map *keys, tn__arena *arena, tn_operation **list, size_t *n, tn_error *err)
{
  const char *container = text_of(op, "container"), *name = resource_name(op);
  size_t first = strlen(container) + 1, size = first + strlen(name);
  char *key = tn__arena_alloc(arena, size + 1);
  if (key == NULL) return tn__no_memory(err, "list of variables", size);
  memcpy(key, container, first);
  memcpy(key + first, name, size - first + 1);
  if (tn__map_get(keys, key, size) != NULL) return TN_OK;
  if (!tn__map_put(keys, key, size, op, NULL)) return tn__no_memory(err, "list of variables", size);
  list[(*n)++] = op;
  return TN_OK;
}

static size_t count(tn_graph *graph, size_t n_operations)
{
  size_t n = 0;
  for (size_t i = 0; i < n_operations; i++) n += tn__is_variable(tn_graph_operation(graph, i));
  return n;
}

tn_status tn__variables_list(tn_graph *graph, tn_operation ***out, size_t *n, tn_error *err)
{
  size_t all = tn_graph_n_operations(graph), most = count(graph, all), used = 0;
  tn__arena arena;
  tn__map keys;
  *out = NULL;
  *n = 0;
  tn_operation **list = tn__alloc(most * sizeof *list);
  if (list == NULL && most > 0) return tn__no_memory(err, "list of variables", most);
  tn__arena_init(&arena, 4096);
  tn__map_init(&keys);
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < all; i++)
    if (tn__is_variable(tn_graph_operation(graph, i)))
      st = add(tn_graph_operation(graph, i), &keys, &arena, list, &used, err);
  tn__map_fini(&keys);
  tn__arena_fini(&arena);
  if (st == TN_OK && used < most) { /* freed by the size that the caller knows */
    tn_operation **exact = tn__alloc(used * sizeof *exact);
    if (exact == NULL) st = tn__no_memory(err, "list of variables", used);
    else memcpy(exact, list, used * sizeof *exact);
    tn__free(list, most * sizeof *list);
    list = exact;
    most = used;
  }
  if (st != TN_OK) {
    tn__free(list, most * sizeof *list);
    return st;
  }
  *out = list;
  *n = used;
  return TN_OK;
}

/* ---- the declaration ---- */

tn_status tn__variable_declared(const tn_operation *op, tn_dtype *dtype, const int64_t **dims, int32_t *rank,
                                tn_error *err)
{
  tn_status st = tn_operation_attr_type(op, "dtype", dtype, err);
  return st == TN_OK ? tn_operation_attr_shape(op, "shape", dims, rank, err) : st;
}

bool tn__variable_fits(const tn_operation *op, tn_dtype dtype, const int64_t *dims, int32_t rank)
{
  tn_dtype wanted;
  const int64_t *declared;
  int32_t wanted_rank;
  if (tn__variable_declared(op, &wanted, &declared, &wanted_rank, NULL) != TN_OK || wanted != dtype) return false;
  if (wanted_rank < 0) return is_handle(op) || rank == 0; /* a reference variable of unknown rank is a scalar */
  bool fits = wanted_rank == rank;
  for (int32_t i = 0; fits && i < rank; i++) fits = declared[i] < 0 || declared[i] == dims[i];
  return fits;
}

/* ---- resources ---- */

tn_status tn__variable_find(tn_session *session, const tn_operation *op, tn_resource **out, tn_error *err)
{
  tn__container *container;
  *out = NULL;
  tn_status st = tn__container_view_get(session->on.containers, text_of(op, "container"), &container, err);
  if (st == TN_OK) st = tn__container_lookup(container, NULL, resource_name(op), out, err);
  if (st == TN_NOT_FOUND) {
    tn__error_reset(err);
    st = TN_OK;
  }
  if (st != TN_OK || *out == NULL) return st;
  const tn_resource_class *cls = tn_resource_class_of(*out);
  if (TN_HAS_FIELD(cls, tn_resource_class, write) && cls->read != NULL && cls->write != NULL) return TN_OK;
  st = tn_error_set(err, TN_INVALID_ARGUMENT, "'%s' is a %s, wanted a variable", tn_operation_name(op), cls->name);
  tn_resource_unref(*out);
  *out = NULL;
  return st;
}

static void unref_all(tn_resource **resources, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    tn_resource_unref(resources[i]);
    resources[i] = NULL;
  }
}

/* Finds the resources that exist; *missing lists the nodes of the others, at most n. */
static tn_status find_all(tn_session *session, tn_operation *const *ops, size_t n, tn_resource **resources,
                          const char **missing, size_t *n_missing, tn_error *err)
{
  tn_status st = TN_OK;
  *n_missing = 0;
  for (size_t i = 0; st == TN_OK && i < n; i++) {
    if (resources[i] == NULL) st = tn__variable_find(session, ops[i], &resources[i], err);
    if (st == TN_OK && resources[i] == NULL) missing[(*n_missing)++] = tn_operation_name(ops[i]);
  }
  return st;
}

/* A step of the missing variables' nodes creates their resources. */
tn_status tn__variables_get(tn_session *session, tn_operation *const *ops, size_t n, tn_resource **resources,
                            tn_error *err)
{
  size_t n_missing = 0;
  if (n > 0) memset(resources, 0, n * sizeof *resources);
  const char **missing = tn__alloc(n * sizeof *missing);
  if (missing == NULL && n > 0) return tn__no_memory(err, "names of variables", n);
  tn_status st = find_all(session, ops, n, resources, missing, &n_missing, err);
  if (st == TN_OK && n_missing > 0) {
    st = tn_session_run(session, NULL, NULL, NULL, 0, NULL, NULL, 0, missing, n_missing, NULL, err);
    if (st == TN_OK) st = find_all(session, ops, n, resources, missing, &n_missing, err);
  }
  if (st == TN_OK && n_missing > 0)
    st = tn_error_set(err, TN_INTERNAL, "variable '%s' does not exist after a step of its node", missing[0]);
  tn__free(missing, n * sizeof *missing);
  if (st != TN_OK) unref_all(resources, n);
  return st;
}

tn_status tn__variable_value(tn_session *session, const tn_operation *op, tn_tensor **out, tn_error *err)
{
  tn_resource *r;
  *out = NULL;
  tn_status st = tn__variable_find(session, op, &r, err);
  if (st != TN_OK || r == NULL) return st;
  st = tn_resource_class_of(r)->read(tn_resource_object(r), out, err);
  if (st == TN_FAILED_PRECONDITION) { /* it has no value yet */
    tn__error_reset(err);
    st = TN_OK;
  }
  tn_resource_unref(r);
  return st;
}

tn_status tn__variables_assign(tn_session *session, tn_operation *const *ops, tn_tensor **values, size_t n,
                               tn_error *err)
{
  tn_resource **resources = tn__alloc(n * sizeof *resources);
  tn_status st = resources == NULL && n > 0 ? tn__no_memory(err, "variables", n)
                                            : tn__variables_get(session, ops, n, resources, err);
  for (size_t i = 0; i < n; i++) {
    if (st == TN_OK) { /* takes over the reference; cannot fail */
      tn_resource_class_of(resources[i])->write(tn_resource_object(resources[i]), values[i]);
      tn_resource_unref(resources[i]);
    } else {
      tn_tensor_unref(values[i]);
    }
    values[i] = NULL;
  }
  tn__free(resources, n * sizeof *resources);
  return st;
}
