/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that create tables and their handles: HashTable MutableHashTable MutableHashTableOfTensors
 * MutableDenseHashTable, of both versions, and the Anonymous ones, which are in no container. */
#include <core/base/alloc.h>
#include <ops/kernel/family.h>
#include <ops/state/table/table.h>
#include <string.h>

/* ---- attributes ---- */

typedef struct handle_state {
  tn__resource_place place;
  bool own; /* private to the session: no name that others could refer to it by */
  tn__table_spec spec; /* without the keys */
  bool anonymous;
} handle_state;

static void handle_destroy(void *state)
{
  handle_state *h = state;
  tn__resource_place_fini(&h->place);
  tn__free(h, sizeof *h);
}

/* The shape of a value, for ops that have the attribute; otherwise a scalar. */
static tn_status read_value_shape(const tn_operation *op, tn__table_kind kind, tn__shape *out, tn_error *err)
{
  const int64_t *dims = NULL;
  int32_t rank = -1;
  bool of_tensors = kind == TN__TABLE_MUTABLE && tn_operation_attr_kind(op, "value_shape") != 0;
  tn__shape_scalar(out);
  if (kind != TN__TABLE_DENSE && !of_tensors) return TN_OK;
  if (tn_operation_attr_shape(op, "value_shape", &dims, &rank, NULL) != TN_OK) rank = of_tensors ? -1 : 0;
  if (kind == TN__TABLE_DENSE && rank < 0) rank = 0; /* an unknown shape means a scalar here */
  bool known = tn__shape_is_known(dims, rank);
  if (known && (of_tensors ? rank == 1 : rank <= 1)) {
    tn__shape_set(out, dims, rank);
    return TN_OK;
  }
  char text[96];
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: attribute 'value_shape' is %s, wanted a %s", tn_operation_type(op),
                      tn__format_shape(text, sizeof text, dims, rank),
                      of_tensors ? "vector's" : "scalar's or vector's");
}

static tn_status read_buckets(const tn_operation *op, tn__table_spec *spec, tn_error *err)
{
  spec->buckets = tn__attr_int(op, "initial_num_buckets", 131072);
  spec->max_load = tn__attr_float(op, "max_load_factor", 0.8f);
  if (spec->buckets < 4 || (spec->buckets & (spec->buckets - 1)) != 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "%s: attribute 'initial_num_buckets' is %lld, wanted a power of two that is at least 4",
                        tn_operation_type(op), (long long)spec->buckets);
  if (!(spec->max_load > 0 && spec->max_load < 1))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: attribute 'max_load_factor' is %g, wanted one between 0 and 1",
                        tn_operation_type(op), (double)spec->max_load);
  return TN_OK;
}

static bool has_name(const tn_operation *op)
{
  const char *name;
  size_t length = 0;
  return tn_operation_attr_string(op, "shared_name", &name, &length, NULL) == TN_OK && length > 0;
}

static tn_status handle_create(const tn_operation *op, void **state, tn__table_kind kind, tn_error *err)
{
  handle_state *h = tn__zalloc(sizeof *h);
  *state = NULL;
  if (h == NULL) return tn__no_memory(err, "kernel", sizeof *h);
  h->spec.kind = kind;
  h->spec.key_dtype = tn__attr_type(op, "key_dtype");
  h->spec.value_dtype = tn__attr_type(op, "value_dtype");
  h->anonymous = strncmp(tn_operation_type(op), "Anonymous", 9) == 0;
  tn_status st = tn__resource_place_init(&h->place, op, err);
  if (st == TN_OK) st = read_value_shape(op, kind, &h->spec.value_shape, err);
  if (st == TN_OK && kind == TN__TABLE_DENSE) st = read_buckets(op, &h->spec, err);
  if (st != TN_OK) {
    handle_destroy(h);
    return st;
  }
  h->own = !has_name(op) && h->place.container[0] == 0 && !tn__attr_bool(op, "use_node_name_sharing", false);
  h->spec.container = h->place.container;
  h->spec.name = h->place.name;
  *state = h;
  return TN_OK;
}

#define CREATE(name, kind)                                                                    \
  static tn_status name(const tn_operation *op, void **state, tn_error *err)                  \
  {                                                                                           \
    return handle_create(op, state, kind, err);                                               \
  }
CREATE(create_fixed, TN__TABLE_FIXED)
CREATE(create_mutable, TN__TABLE_MUTABLE)
CREATE(create_dense, TN__TABLE_DENSE)

/* ---- handles ---- */

/* The reserved keys must have the same shape and differ. */
static tn_status dense_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  if (ctx->inputs[0].rank > 1 || ctx->inputs[0].count == 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the empty key has rank %d and %lld elements, wanted a scalar or "
                        "a vector of at least one", tn_operation_type(ctx->op), ctx->inputs[0].rank,
                        (long long)ctx->inputs[0].count);
  tn_status st = ctx->n_inputs > 1 ? tn__want_same_shape(ctx, 0, 1, err) : TN_OK;
  return st == TN_OK ? tn__prepare_handle(ctx, 0, err) : st;
}

static tn_status make_table(void *user, void **object, tn_error *err)
{
  tn__table *t;
  tn_status st = tn__table_create(user, &t, err);
  *object = t;
  return st;
}

/* As in TensorFlow, an existing table may be of another kind, but not have other dtypes. */
static tn_status check_dtypes(const tn_resource *r, const tn__table_spec *spec, tn_error *err)
{
  const tn__rows *rows = &((const tn__table *)tn_resource_object(r))->rows;
  if (rows->key_dtype == spec->key_dtype && rows->value_dtype == spec->value_dtype) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "table '%s' maps %s to %s, the node wants one from %s to %s",
                      tn_resource_name(r), tn_dtype_name(rows->key_dtype), tn_dtype_name(rows->value_dtype),
                      tn_dtype_name(spec->key_dtype), tn_dtype_name(spec->value_dtype));
}

static tn_status give_table(tn_kernel_ctx *ctx, const handle_state *h, tn__table_spec *spec)
{
  tn_resource *r = NULL;
  tn_status st;
  if (h->anonymous) {
    void *object;
    st = make_table(spec, &object, ctx->err);
    if (st == TN_OK) st = tn_resource_create(&tn__table_class, spec->name, object, &r, ctx->err);
  } else {
    const char *container = h->own ? TN_SESSION_CONTAINER : h->place.container;
    st = tn_kernel_obtain(ctx, container, h->place.name, &tn__table_class, make_table, spec, &r);
    if (st == TN_OK) st = check_dtypes(r, spec, ctx->err);
  }
  if (st == TN_OK) return tn__give_handle(ctx, 0, r);
  tn_resource_unref(r);
  return st;
}

static tn_status handle_compute(tn_kernel_ctx *ctx)
{
  const handle_state *h = ctx->state;
  tn__table_spec spec = h->spec;
  return give_table(ctx, h, &spec);
}

static tn_status dense_compute(tn_kernel_ctx *ctx)
{
  const handle_state *h = ctx->state;
  const tn_view *empty = ctx->inputs[0], *deleted = ctx->n_inputs > 1 ? ctx->inputs[1] : NULL;
  tn__table_spec spec = h->spec;
  tn__shape_set(&spec.key_shape, empty->dims, empty->rank);
  spec.empty_key = empty->data;
  spec.deleted_key = deleted == NULL ? NULL : deleted->data;
  if (deleted != NULL && tn__elements_equal(spec.key_dtype, empty->data, deleted->data, empty->count))
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "table '%s': the empty and the deleted key are equal",
                        spec.name);
  return give_table(ctx, h, &spec);
}

/* ---- tables ---- */

/* The value of a handle by reference is two strings, container and name. */
static tn_status infer_handle(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t two = 2;
  return tn_infer_output(ctx, 0, &two, tn_operation_output_dtype(tn_infer_operation(ctx), 0) != TN_RESOURCE, err);
}

#define TYPES "key_dtype: type; value_dtype: type"
#define NAMES "container: string = ''; shared_name: string = ''; use_node_name_sharing: bool = false; " TYPES
#define VALUE "; value_shape: shape = []"
#define BUCKETS "; initial_num_buckets: int = 131072; max_load_factor: float = 0.8"
#define OP(op, in, out, attributes, text)                                                                   \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = "table_handle: " out,                \
    .attrs = attributes, .traits = TN_TRAIT_STATEFUL | TN_TRAIT_READS, .infer = infer_handle, .summary = text }
#define EMPTY "empty_key: key_dtype"
#define RESERVED EMPTY ", deleted_key: key_dtype"

static const tn_op_def ops[] = {
  OP("HashTable", "", "Ref(string)", NAMES, "immutable table, initialised once"),
  OP("HashTableV2", "", "resource", NAMES, "immutable table, initialised once"),
  OP("AnonymousHashTable", "", "resource", TYPES, "immutable anonymous table, initialised once"),
  OP("MutableHashTable", "", "Ref(string)", NAMES, "mutable table of scalars"),
  OP("MutableHashTableV2", "", "resource", NAMES, "mutable table of scalars"),
  OP("AnonymousMutableHashTable", "", "resource", TYPES, "mutable anonymous table of scalars"),
  OP("MutableHashTableOfTensors", "", "Ref(string)", NAMES VALUE, "mutable table of vectors"),
  OP("MutableHashTableOfTensorsV2", "", "resource", NAMES VALUE, "mutable table of vectors"),
  OP("AnonymousMutableHashTableOfTensors", "", "resource", TYPES VALUE, "mutable anonymous table of vectors"),
  OP("MutableDenseHashTable", EMPTY, "Ref(string)", NAMES VALUE BUCKETS,
     "mutable hash table with a reserved empty key"),
  OP("MutableDenseHashTableV2", RESERVED, "resource", NAMES VALUE BUCKETS,
     "mutable hash table with reserved empty and deleted keys"),
  OP("AnonymousMutableDenseHashTable", RESERVED, "resource", TYPES VALUE BUCKETS,
     "anonymous mutable hash table with reserved empty and deleted keys"),
};

#define KERNEL(which, kind, ready, run, title)                                                               \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .types = "key_dtype=int32|int64|string", \
    .name = title, .rank = TN_RANK_C, .create = kind, .destroy = handle_destroy, .prepare = ready, .compute = run }
#define FIXED(which, title) KERNEL(which, create_fixed, tn__prepare_scalar, handle_compute, title)
#define MUTABLE(which, title) KERNEL(which, create_mutable, tn__prepare_scalar, handle_compute, title)
#define DENSE(which, title) KERNEL(which, create_dense, dense_prepare, dense_compute, title)

static const tn_kernel_def kernels[] = {
  FIXED("HashTable", "hash_table_cpu"),
  FIXED("HashTableV2", "hash_table_v2_cpu"),
  FIXED("AnonymousHashTable", "anonymous_hash_table_cpu"),
  MUTABLE("MutableHashTable", "mutable_hash_table_cpu"),
  MUTABLE("MutableHashTableV2", "mutable_hash_table_v2_cpu"),
  MUTABLE("AnonymousMutableHashTable", "anonymous_mutable_hash_table_cpu"),
  MUTABLE("MutableHashTableOfTensors", "mutable_hash_table_of_tensors_cpu"),
  MUTABLE("MutableHashTableOfTensorsV2", "mutable_hash_table_of_tensors_v2_cpu"),
  MUTABLE("AnonymousMutableHashTableOfTensors", "anonymous_mutable_hash_table_of_tensors_cpu"),
  DENSE("MutableDenseHashTable", "mutable_dense_hash_table_cpu"),
  DENSE("MutableDenseHashTableV2", "mutable_dense_hash_table_v2_cpu"),
  DENSE("AnonymousMutableDenseHashTable", "anonymous_mutable_dense_hash_table_cpu"),
};

TN_OP_FAMILY(tables)
