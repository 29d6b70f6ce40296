/* SPDX-License-Identifier: Apache-2.0 */
/* AddSparseToTensorsMap AddManySparseToTensorsMap TakeManySparseFromTensorsMap: sparse tensors by number, in a
 * resource. A step adds some and passes their numbers through a queue; another one takes them as one sparse tensor,
 * with a dimension for the numbers in front. */
#include <core/base/alloc.h>
#include <core/base/map.h>
#include <core/base/threads/lock.h>
#include <core/tensor/tensor_internal.h>
#include <ops/kernel/elements/elements.h>
#include <ops/kernel/family.h>
#include <ops/kernel/resources.h>
#include <ops/sparse/sparse.h>
#include <string.h>

enum { INDICES, VALUES, SHAPE, PARTS };

/* ---- entries ---- */

/* A sparse tensor. Without values it has no tensors. `number` is the map's key; before the entry is in the map, it is
 * the row of the dense tensor. */
typedef struct entry {
  struct entry *next; /* in a list outside of the map */
  int64_t number, n;
  tn_tensor *indices, *values;
  tn_dtype dtype;
  int32_t rank;
  int64_t dims[];
} entry;

typedef struct entry_list {
  entry *first, **end;
  size_t n;
} entry_list;

static size_t entry_bytes(int32_t rank) { return sizeof(entry) + (size_t)rank * sizeof(int64_t); }

static void list_clear(entry_list *list)
{
  for (entry *e = list->first, *next; e != NULL; e = next) {
    next = e->next;
    tn_tensor_unref(e->indices);
    tn_tensor_unref(e->values);
    tn__free(e, entry_bytes(e->rank));
  }
}

static void list_add(entry_list *list, entry *e)
{
  e->next = NULL;
  if (list->end == NULL) list->end = &list->first;
  *list->end = e;
  list->end = &e->next;
  list->n++;
}

static tn_status list_new(entry_list *list, tn_dtype dtype, const int64_t *dims, int32_t rank, entry **out,
                          tn_error *err)
{
  entry *e = *out = tn__zalloc(entry_bytes(rank));
  if (e == NULL) return tn__no_memory(err, "sparse tensor of a map", entry_bytes(rank));
  e->dtype = dtype;
  e->rank = rank;
  if (rank > 0) memcpy(e->dims, dims, (size_t)rank * sizeof *dims);
  list_add(list, e);
  return TN_OK;
}

/* ---- maps ---- */

typedef struct sparse_map {
  tn__mutex mu;
  tn__map entries; /* guarded by mu, as is `next`; keys are the bytes of an entry's number */
  int64_t next;    /* number of the next entry */
} sparse_map;

static void map_destroy(void *object)
{
  sparse_map *m = object;
  entry_list all = { 0 };
  size_t place = 0;
  for (tn__map_entry *e; (e = tn__map_next(&m->entries, &place)) != NULL;) list_add(&all, e->value);
  tn__map_fini(&m->entries);
  list_clear(&all);
  tn__mutex_fini(&m->mu);
  tn__free(m, sizeof *m);
}

static const tn_resource_class map_class = { .struct_size = sizeof map_class, .name = "map of sparse tensors",
                                             .destroy = map_destroy };

static tn_status map_make(void *user, void **object, tn_error *err)
{
  (void)user;
  sparse_map *m = *object = tn__zalloc(sizeof *m);
  if (m == NULL) return tn__no_memory(err, "map of sparse tensors", sizeof *m);
  tn__mutex_init(&m->mu, "map of sparse tensors", TN_RANK_TABLE);
  tn__map_init(&m->entries);
  return TN_OK;
}

static tn_status get_map(tn_kernel_ctx *ctx, sparse_map **out, tn_resource **r)
{
  const tn__resource_place *place = ctx->state;
  tn_status st = tn_kernel_obtain(ctx, place->container, place->name, &map_class, map_make, NULL, r);
  *out = st == TN_OK ? tn_resource_object(*r) : NULL;
  return st;
}

/* Moves the entries to the map and sets numbers[row] for the row that each has. On failure they stay in the list. */
static tn_status store(tn_kernel_ctx *ctx, entry_list *list, int64_t *numbers)
{
  sparse_map *m;
  tn_resource *r;
  size_t count;
  tn_status st = get_map(ctx, &m, &r);
  if (st != TN_OK) return st;
  tn__mutex_lock(&m->mu);
  bool fits = tn__size_add(m->entries.count, list->n, &count) && tn__map_reserve(&m->entries, count);
  for (entry *e = fits ? list->first : NULL, *next; e != NULL; e = next) {
    next = e->next;
    numbers[e->number] = m->next;
    e->number = m->next++;
    (void)tn__map_put(&m->entries, (const char *)&e->number, sizeof e->number, e, NULL); /* has room */
  }
  tn__mutex_unlock(&m->mu);
  tn_resource_unref(r);
  if (!fits) return tn__no_memory(ctx->err, "map of sparse tensors", SIZE_MAX);
  *list = (entry_list){ 0 };
  return TN_OK;
}

/* Moves the entries with the numbers in input 0 from the map to a list. Those before a missing one are taken too. */
static tn_status take_entries(tn_kernel_ctx *ctx, entry_list *list)
{
  const tn_view *numbers = ctx->inputs[0];
  const tn__resource_place *place = ctx->state;
  sparse_map *m;
  tn_resource *r;
  tn_status st = get_map(ctx, &m, &r);
  if (st != TN_OK) return st;
  tn__mutex_lock(&m->mu);
  for (int64_t i = 0; st == TN_OK && i < numbers->count; i++) {
    const int64_t *number = (const int64_t *)numbers->data + i;
    entry *e = tn__map_remove(&m->entries, (const char *)number, sizeof *number);
    if (e != NULL) list_add(list, e);
    else st = tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "map '%s' has no sparse tensor with the number %lld",
                           place->name, (long long)*number);
  }
  tn__mutex_unlock(&m->mu);
  tn_resource_unref(r);
  return st;
}

/* ---- the kernels' state ---- */

/* Handles cannot be values: a map that holds a handle of itself would never be freed. */
static tn_status create(const tn_operation *op, void **state, tn_error *err)
{
  tn__resource_place *place;
  *state = NULL;
  for (size_t i = 0; i < tn_operation_n_inputs(op); i++) {
    tn_dtype dtype = tn_operation_input_dtype(op, i);
    if (dtype == TN_RESOURCE || dtype == TN_VARIANT) return tn__no_kernel(err, op, dtype);
  }
  *state = place = tn__zalloc(sizeof *place);
  if (place == NULL) return tn__no_memory(err, "kernel", sizeof *place);
  tn_status st = tn__resource_place_init(place, op, err);
  if (st == TN_OK) return TN_OK;
  tn__free(place, sizeof *place);
  *state = NULL;
  return st;
}

static void destroy(void *state)
{
  tn__resource_place_fini(state);
  tn__free(state, sizeof(tn__resource_place));
}

/* ---- AddSparseToTensorsMap ---- */

static tn_status add_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_sparse(ctx, INDICES, VALUES, SHAPE, err);
  return st == TN_OK ? tn__prepare_scalar(ctx, err) : st;
}

static tn_status add_compute(tn_kernel_ctx *ctx)
{
  const tn_view *values = ctx->inputs[VALUES];
  tn__shape shape;
  entry_list list = { 0 };
  entry *e;
  tn_status st = tn__sparse_shape(ctx, SHAPE, &shape);
  if (st == TN_OK) st = list_new(&list, values->dtype, shape.dims, shape.rank, &e, ctx->err);
  if (st == TN_OK && values->count > 0) {
    e->n = values->count;
    st = tn_kernel_keep_input(ctx, INDICES, &e->indices);
    if (st == TN_OK) st = tn_kernel_keep_input(ctx, VALUES, &e->values);
  }
  if (st == TN_OK) st = store(ctx, &list, ctx->outputs[0]->data);
  list_clear(&list);
  return st;
}

/* ---- AddManySparseToTensorsMap ---- */

static tn_status many_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_sparse(ctx, INDICES, VALUES, SHAPE, err);
  if (st == TN_OK && ctx->inputs[SHAPE].count < 2)
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the rank is %lld, wanted 2 or more", tn_operation_type(ctx->op),
                      (long long)ctx->inputs[SHAPE].count);
  ctx->cost_ns = 500 + 10 * (double)ctx->inputs[INDICES].count;
  return st == TN_OK ? tn_prepare_dynamic(ctx, 0, err) : st;
}

static tn_status check_order(const tn_kernel_ctx *ctx, tn__poll *poll)
{
  const tn__int_rows rows = tn__sparse_rows(ctx->inputs[INDICES]);
  for (int64_t i = 1; i < rows.n; i++) {
    if (tn__poll_over(poll, 5 * rows.width)) return TN_CANCELLED;
    if (tn__int_rows_compare(&rows, i - 1, i) >= 0)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "index %lld is not after the one before it", (long long)i);
  }
  return TN_OK;
}

/* Sets the tensors of a row's entry: n values from value `at` on. */
static tn_status copy_row(const tn_kernel_ctx *ctx, entry *e, int64_t at, int64_t n)
{
  const tn_view *values = ctx->inputs[VALUES];
  const int64_t dims[2] = { n, e->rank };
  const int64_t *from = (const int64_t *)ctx->inputs[INDICES]->data + at * (e->rank + 1) + 1;
  tn_status st = tn_tensor_create(TN_INT64, dims, 2, &e->indices, ctx->err);
  if (st == TN_OK) st = tn_tensor_create(e->dtype, dims, 1, &e->values, ctx->err);
  if (st != TN_OK) return st;
  int64_t *to = e->indices->data;
  for (int64_t i = 0; i < n; i++, to += e->rank, from += e->rank + 1) memcpy(to, from, (size_t)e->rank * sizeof *to);
  e->n = n;
  return tn__copy_elements(e->dtype, e->values->data, (const char *)values->data + (size_t)at * tn_dtype_size(e->dtype),
                           n, ctx->err);
}

/* Makes an entry for each row: first for those with values, then for the rest, so the numbers are TensorFlow's. */
static tn_status split_rows(const tn_kernel_ctx *ctx, const tn__shape *shape, entry_list *list, tn__poll *poll)
{
  const int64_t *indices = ctx->inputs[INDICES]->data;
  int64_t n = ctx->inputs[VALUES]->count;
  tn_dtype dtype = ctx->inputs[VALUES]->dtype;
  for (int pass = 0; pass < 2; pass++) {
    for (int64_t row = 0, at = 0; row < shape->dims[0]; row++) {
      entry *e;
      int64_t end = at;
      while (end < n && indices[end * shape->rank] == row) end++;
      if (tn__poll_over(poll, 100 + 5 * shape->rank * (end - at))) return TN_CANCELLED;
      if ((end > at) == (pass == 0)) {
        tn_status st = list_new(list, dtype, shape->dims + 1, shape->rank - 1, &e, ctx->err);
        if (st == TN_OK && end > at) st = copy_row(ctx, e, at, end - at);
        if (st != TN_OK) return st;
        e->number = row;
      }
      at = end;
    }
  }
  return TN_OK;
}

static tn_status many_compute(tn_kernel_ctx *ctx)
{
  tn__shape shape;
  tn__poll poll = tn__poll_of(ctx);
  entry_list list = { 0 };
  tn_status st = tn__sparse_shape(ctx, SHAPE, &shape);
  if (st == TN_OK) st = tn__sparse_check_bounds(ctx, INDICES, shape.dims, &poll);
  if (st == TN_OK) st = check_order(ctx, &poll);
  if (st == TN_OK) st = tn_kernel_allocate(ctx, 0, shape.dims, 1);
  if (st == TN_OK) st = split_rows(ctx, &shape, &list, &poll);
  if (st == TN_OK) st = store(ctx, &list, ctx->outputs[0]->data);
  list_clear(&list);
  return st;
}

/* ---- TakeManySparseFromTensorsMap ---- */

static tn_status take_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, 0, 1, err);
  if (st == TN_OK && ctx->inputs[0].count == 0)
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: there are no numbers", tn_operation_type(ctx->op));
  ctx->cost_ns = 500 + 200 * (double)ctx->inputs[0].count;
  return st == TN_OK ? tn__prepare_all_dynamic(ctx, err) : st;
}

/* The shape of all entries together, and their number of values. */
static tn_status measure(const tn_kernel_ctx *ctx, const entry_list *list, tn__shape *shape, int64_t *values)
{
  tn_dtype dtype = ctx->outputs[VALUES]->dtype;
  int64_t unused, at = 0;
  *shape = (tn__shape){ .rank = list->first->rank + 1 };
  *values = 0;
  shape->dims[0] = (int64_t)list->n;
  for (const entry *e = list->first; e != NULL; e = e->next, at++) {
    if (e->dtype != dtype)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "the values of sparse tensor %lld are of %s, wanted %s",
                          (long long)at, tn_dtype_name(e->dtype), tn_dtype_name(dtype));
    if (e->rank != shape->rank - 1 || shape->rank > TN_MAX_RANK)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "sparse tensor %lld has rank %d, the first one has rank %d",
                          (long long)at, e->rank, shape->rank - 1);
    for (int32_t d = 0; d < e->rank; d++)
      if (e->dims[d] > shape->dims[d + 1]) shape->dims[d + 1] = e->dims[d];
    if (__builtin_add_overflow(*values, e->n, values)) return tn__no_memory(ctx->err, "sparse tensor", SIZE_MAX);
  }
  return tn_shape_elements(shape->dims, shape->rank, &unused, ctx->err);
}

static tn_status join_entries(tn_kernel_ctx *ctx, const entry_list *list, int32_t rank)
{
  const tn_view *values = ctx->outputs[VALUES];
  int64_t *to = ctx->outputs[INDICES]->data, row = 0, at = 0;
  tn_status st = TN_OK;
  tn__poll poll = tn__poll_of(ctx);
  for (const entry *e = list->first; st == TN_OK && e != NULL; e = e->next, row++) {
    const int64_t *from = e->n > 0 ? e->indices->data : NULL;
    if (tn__poll_over(&poll, 20 + 5 * rank * e->n)) return TN_CANCELLED;
    for (int64_t i = 0; i < e->n; i++, to += rank, from += e->rank) {
      to[0] = row;
      memcpy(to + 1, from, (size_t)e->rank * sizeof *to);
    }
    if (e->n > 0)
      st = tn__copy_elements(e->dtype, (char *)values->data + (size_t)at * tn_dtype_size(e->dtype), e->values->data,
                             e->n, ctx->err);
    at += e->n;
  }
  return st;
}

static tn_status take_compute(tn_kernel_ctx *ctx)
{
  entry_list list = { 0 };
  tn__shape shape;
  int64_t n;
  tn_status st = take_entries(ctx, &list);
  if (st == TN_OK) st = measure(ctx, &list, &shape, &n);
  if (st == TN_OK) st = tn__give_entries(ctx, INDICES, n, shape.rank);
  if (st == TN_OK) st = tn__give_ints(ctx, SHAPE, shape.dims, shape.rank);
  if (st == TN_OK) st = join_entries(ctx, &list, shape.rank);
  list_clear(&list);
  return st;
}

/* ---- shapes ---- */

static tn_status check_ranks(tn_infer_ctx *ctx, tn_error *err)
{
  int64_t n, rank;
  return tn__infer_sparse(ctx, INDICES, VALUES, SHAPE, &n, &rank, err);
}

static tn_status infer_add(tn_infer_ctx *ctx, tn_error *err)
{
  tn_status st = check_ranks(ctx, err);
  return st == TN_OK ? tn_infer_output(ctx, 0, NULL, 0, err) : st;
}

static tn_status infer_many(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t unknown = -1;
  tn_status st = check_ranks(ctx, err);
  return st == TN_OK ? tn_infer_output(ctx, 0, &unknown, 1, err) : st;
}

static tn_status infer_take(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape numbers;
  tn_status st = tn__infer_rank(ctx, 0, 1, &numbers, err);
  return st == TN_OK ? tn__infer_sparse_output(ctx, INDICES, -1, -1, err) : st;
}

/* ---- tables ---- */

#define PLACE "container: string = ''; shared_name: string = ''"

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "AddManySparseToTensorsMap",
    .inputs = "sparse_indices: int64, sparse_values: T, sparse_shape: int64", .outputs = "sparse_handles: int64",
    .attrs = "T: type; " PLACE, .traits = TN_TRAIT_STATEFUL | TN_TRAIT_DYNAMIC, .infer = infer_many,
    .summary = "adds the rows of a sparse tensor to a map" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "AddSparseToTensorsMap",
    .inputs = "sparse_indices: int64, sparse_values: T, sparse_shape: int64", .outputs = "sparse_handle: int64",
    .attrs = "T: type; " PLACE, .traits = TN_TRAIT_STATEFUL, .infer = infer_add,
    .summary = "adds a sparse tensor to a map" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "TakeManySparseFromTensorsMap", .inputs = "sparse_handles: int64",
    .outputs = "sparse_indices: int64, sparse_values: dtype, sparse_shape: int64", .attrs = "dtype: type; " PLACE,
    .traits = TN_TRAIT_STATEFUL | TN_TRAIT_DYNAMIC, .infer = infer_take,
    .summary = "removes sparse tensors from a map and returns them as one" },
};

#define KERNEL(which, title, prepare_fn, compute_fn)                                                   \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C, \
    .create = create, .destroy = destroy, .prepare = prepare_fn, .compute = compute_fn }

static const tn_kernel_def kernels[] = {
  KERNEL("AddManySparseToTensorsMap", "add_many_sparse_to_tensors_map_cpu", many_prepare, many_compute),
  KERNEL("AddSparseToTensorsMap", "add_sparse_to_tensors_map_cpu", add_prepare, add_compute),
  KERNEL("TakeManySparseFromTensorsMap", "take_many_sparse_from_tensors_map_cpu", take_prepare, take_compute),
};

TN_OP_FAMILY(sparse_maps)
