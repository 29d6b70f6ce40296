/* SPDX-License-Identifier: Apache-2.0 */
/* The properties of a queue, read from the attributes of its node. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <ops/state/queue/queue_spec.h>

#include <string.h>

static const char *const kind_names[] = { "FIFOQueue", "PaddingFIFOQueue", "RandomShuffleQueue", "PriorityQueue" };

tn__queue_spec *tn__queue_spec_ref(tn__queue_spec *spec)
{
  atomic_fetch_add_explicit(&spec->refs, 1, memory_order_relaxed);
  return spec;
}

void tn__queue_spec_unref(tn__queue_spec *spec)
{
  if (spec != NULL && atomic_fetch_sub_explicit(&spec->refs, 1, memory_order_acq_rel) == 1) tn__free(spec, spec->bytes);
}

/* ---- reading ---- */

/* Reads shape k of the attribute and checks that this kind of queue accepts it. */
static tn_status read_shape(const tn_operation *op, tn__queue_kind kind, size_t k, const int64_t **dims, int32_t *rank,
                            tn_error *err)
{
  tn_status st = tn_operation_attr_shape_at(op, "shapes", k, dims, rank, NULL, err);
  if (st != TN_OK) return st;
  if (kind == TN__QUEUE_PADDING ? *rank >= 0 : tn__shape_is_known(*dims, *rank)) return TN_OK;
  char text[96];
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: attribute 'shapes' has %s at %zu, wanted %s",
                      tn_operation_type(op), tn__format_shape(text, sizeof text, *dims, *rank), k,
                      kind == TN__QUEUE_PADDING ? "a shape of known rank" : "a shape without unknown dimensions");
}

/* Counts the shapes, and the dimensions of all shapes together. */
static tn_status count_shapes(const tn_operation *op, tn__queue_kind kind, size_t n_types, size_t *n_shapes,
                              size_t *n_dims, tn_error *err)
{
  const int64_t *dims;
  int32_t rank;
  *n_shapes = *n_dims = 0;
  tn_status st = tn_operation_attr_shape_at(op, "shapes", SIZE_MAX, &dims, &rank, n_shapes, err);
  if (st != TN_OK) return st;
  bool may_lack = kind == TN__QUEUE_FIFO || kind == TN__QUEUE_RANDOM;
  if (n_types == 0 || (*n_shapes != n_types && !(may_lack && *n_shapes == 0)))
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "%s: %zu component_types and %zu shapes, wanted at least one type and "
                        "a shape for each%s",
                        tn_operation_type(op), n_types, *n_shapes, may_lack ? ", or none" : "");
  for (size_t k = 0; st == TN_OK && k < *n_shapes; k++) {
    st = read_shape(op, kind, k, &dims, &rank, err);
    if (st == TN_OK) *n_dims += (size_t)rank;
  }
  return st;
}

static tn_status read_limits(const tn_operation *op, tn__queue_spec *spec, tn_error *err)
{
  int64_t capacity = tn__attr_int(op, "capacity", -1);
  spec->capacity = capacity < 0 ? INT64_MAX : capacity;
  if (spec->kind != TN__QUEUE_RANDOM) return TN_OK;
  spec->min_after_dequeue = tn__attr_int(op, "min_after_dequeue", 0);
  spec->seed = tn__attr_int(op, "seed", 0);
  spec->seed2 = tn__attr_int(op, "seed2", 0);
  if (spec->min_after_dequeue >= 0 && spec->min_after_dequeue < spec->capacity) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT,
                      "%s: attribute 'min_after_dequeue' is %lld, wanted at least 0 and less than the capacity, %lld",
                      tn_operation_type(op), (long long)spec->min_after_dequeue, (long long)spec->capacity);
}

static tn_status read_components(const tn_operation *op, const tn_dtype *types, uint32_t n_leading,
                                 tn__queue_spec *spec, tn_error *err)
{
  int64_t *to = (int64_t *)(spec->components + spec->n);
  for (uint32_t i = n_leading; i < spec->n; i++) {
    tn__queue_component *c = &spec->components[i];
    const int64_t *dims = NULL;
    *c = (tn__queue_component){ .dtype = types[i - n_leading], .rank = -1, .dims = to };
    if (!spec->has_shapes) continue;
    tn_status st = read_shape(op, spec->kind, i - n_leading, &dims, &c->rank, err);
    if (st != TN_OK) return st;
    for (int32_t d = 0; d < c->rank; d++) *to++ = dims[d];
  }
  return TN_OK;
}

tn_status tn__queue_spec_read(const tn_operation *op, tn__queue_kind kind, const tn_dtype *leading, uint32_t n_leading,
                              tn__queue_spec **out, tn_error *err)
{
  const tn_dtype *types = NULL;
  size_t n_types = 0, n_shapes, n_dims;
  *out = NULL;
  tn_status st = tn_operation_attr_types(op, "component_types", &types, &n_types, err);
  if (st == TN_OK) st = count_shapes(op, kind, n_types, &n_shapes, &n_dims, err);
  if (st != TN_OK) return st;
  size_t n = n_types + n_leading; /* cannot overflow: the attributes are in memory already */
  size_t bytes = sizeof(tn__queue_spec) + n * sizeof(tn__queue_component) + n_dims * sizeof(int64_t);
  tn__queue_spec *spec = tn__zalloc(bytes);
  if (spec == NULL) return tn__no_memory(err, "kernel", bytes);
  atomic_init(&spec->refs, 1);
  spec->bytes = bytes;
  spec->kind = kind;
  spec->n = (uint32_t)n;
  spec->has_shapes = n_shapes > 0;
  for (uint32_t i = 0; i < n_leading; i++) spec->components[i].dtype = leading[i]; /* scalars */
  st = read_limits(op, spec, err);
  if (st == TN_OK) st = read_components(op, types, n_leading, spec, err);
  if (st == TN_OK) *out = spec;
  else tn__queue_spec_unref(spec);
  return st;
}

/* ---- comparing ---- */

static tn_status differ(const char *what, const char *name, const char *in, int64_t found, int64_t wanted,
                        tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s '%s' exists with %s %lld, the node wants %lld", what, name, in,
                      (long long)found, (long long)wanted);
}

static tn_status match_component(const tn__queue_component *a, const tn__queue_component *b, const char *what,
                                 const char *name, uint32_t i, tn_error *err)
{
  bool same = a->rank == b->rank;
  for (int32_t d = 0; same && d < a->rank; d++) same = a->dims[d] == b->dims[d];
  if (same && a->dtype == b->dtype) return TN_OK;
  char found[96], wanted[96];
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s '%s' exists, its component %u is %s %s, the node wants %s %s", what,
                      name, i, tn_dtype_name(a->dtype), tn__format_shape(found, sizeof found, a->dims, a->rank),
                      tn_dtype_name(b->dtype), tn__format_shape(wanted, sizeof wanted, b->dims, b->rank));
}

tn_status tn__queue_spec_match(const tn__queue_spec *found, const tn__queue_spec *wanted, const char *what,
                               const char *name, tn_error *err)
{
  if (found == wanted) return TN_OK;
  if (found->kind != wanted->kind)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s '%s' exists, it is a %s, the node wants a %s", what, name,
                        kind_names[found->kind], kind_names[wanted->kind]);
  if (found->capacity != wanted->capacity)
    return differ(what, name, "capacity", found->capacity, wanted->capacity, err);
  if (found->min_after_dequeue != wanted->min_after_dequeue)
    return differ(what, name, "min_after_dequeue", found->min_after_dequeue, wanted->min_after_dequeue, err);
  if (found->seed != wanted->seed) return differ(what, name, "seed", found->seed, wanted->seed, err);
  if (found->seed2 != wanted->seed2) return differ(what, name, "seed2", found->seed2, wanted->seed2, err);
  if (found->n != wanted->n) return differ(what, name, "components:", found->n, wanted->n, err);
  tn_status st = TN_OK;
  for (uint32_t i = 0; st == TN_OK && i < found->n; i++)
    st = match_component(&found->components[i], &wanted->components[i], what, name, i, err);
  return st;
}

bool tn__queue_spec_fits(const tn__queue_spec *spec, uint32_t i, const int64_t *dims, int32_t rank, bool rows)
{
  const tn__queue_component *c = &spec->components[i];
  if (rows) {
    if (rank == 0) return false;
    dims++;
    rank--;
  }
  if (c->rank < 0) return true;
  if (c->rank != rank) return false;
  for (int32_t d = 0; d < rank; d++)
    if (c->dims[d] >= 0 && c->dims[d] != dims[d]) return false;
  return true;
}
